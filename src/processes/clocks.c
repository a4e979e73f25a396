#include "processes/clocks.h"

enum { rounds = 32 };

typedef struct comparing {
  ax_together *together;
  int64_t (*clock)(void);
  bool answers; /* process 0 */
  ax_clock_ahead *out;
  uint32_t left; /* rounds to be made */
  int64_t asked; /* the time of the question that is out */
  ax_status status;
} comparing;

static ax_status ask(comparing *c) {
  ax_envelope envelope = {.kind = AX_MESSAGE_PART};
  c->asked = c->clock();
  return ax_together_send(c->together, 0, &envelope, NULL, NULL, NULL);
}

static ax_status answer(comparing *c, uint32_t to) {
  ax_envelope envelope = {.kind = AX_MESSAGE_PART, .words = {(uint64_t)c->clock(), (uint64_t)c->out->given}};
  return ax_together_send(c->together, to, &envelope, NULL, NULL, NULL);
}

static ax_status note(comparing *c, const ax_envelope *envelope) {
  const int64_t now = c->clock(), told = (int64_t)envelope->words[0], within = (now - c->asked + 1) / 2;
  c->out->given = (int64_t)envelope->words[1];
  if (c->left == rounds || within < c->out->within) {
    c->out->within = within;
    c->out->ahead = c->asked + (now - c->asked) / 2 - told;
  }
  return --c->left > 0 ? ask(c) : AX_OK;
}

static ax_status take(comparing *c, ax_delivery *delivery) {
  const uint32_t kind = delivery->envelope.kind;
  if (!ax_message_is_counted(kind)) return ax_together_handle(c->together, delivery);
  ax_status status = ax_together_count(c->together, delivery);
  if (status == AX_OK && c->status == AX_OK) status = c->answers ? answer(c, delivery->from) : note(c, &delivery->envelope);
  ax_delivery_free(delivery);
  return status;
}

static bool handle(void *context) {
  comparing *c = context;
  bool any = false;
  for (ax_delivery *next, *one = ax_together_take(c->together); one != NULL; one = next) {
    next = one->next;
    any = true;
    ax_status status = take(c, one);
    if (c->status == AX_OK) c->status = status; /* its message stays, since nothing is done after it that fails */
  }
  return any;
}

static bool is_done(void *context) {
  const comparing *c = context;
  const ax_ending *ending = &c->together->ending;
  const bool all_others = c->answers && atomic_load(&ending->done) + 1 == ending->processes->rule.processes;
  return (c->answers ? all_others : c->left == 0) || c->status != AX_OK || atomic_load(&ending->failed) || atomic_load(&ending->stuck);
}

static ax_status compare(comparing *c) {
  if (!c->answers) AX_TRY(ask(c));
  AX_TRY(ax_together_until(c->together, &(ax_waiting){is_done, handle, c, NULL}));
  if (c->status != AX_OK) return c->status;
  if (atomic_load(&c->together->ending.failed)) return AX_UNAVAILABLE;
  return atomic_load(&c->together->ending.stuck) ? ax_error(AX_DEADLOCK, "clocks are not compared by all processes") : AX_OK;
}

static void describe(const void *context, ax_text *text) {
  (void)context;
  ax_text_add(text, "compares clocks");
}

ax_status ax_clocks_compare(ax_processes *processes, ax_status status, int64_t (*clock)(void), int64_t given, ax_clock_ahead *out) {
  *out = (ax_clock_ahead){.given = given};
  ax_together *together = ax_together_borrow(processes);
  comparing c = {together, clock, processes->rule.process == 0, out, rounds, 0, status};
  ax_together_begin(together, &(ax_doing){status == AX_OK ? ax_hash_word(9, 0) | 1 : 0, describe, NULL, "the comparing of clocks"});
  if (status == AX_OK) c.status = status = compare(&c);
  status = ax_together_end(together, status, handle, &c);
  ax_together_give_back(processes);
  return status;
}
