#include "processes/clocks.h"

#include "processes/talk.h"

enum { rounds = 32 };

typedef struct comparing {
  int64_t (*clock)(void);
  bool answers; /* process 0 */
  ax_clock_ahead *out;
  uint32_t left; /* rounds to be made */
  int64_t asked; /* the time of the question that is out */
} comparing;

static ax_status ask(ax_together *together, comparing *c) {
  ax_envelope envelope = {.kind = AX_MESSAGE_PART};
  c->asked = c->clock();
  return ax_together_send(together, 0, &envelope, NULL, NULL, NULL);
}

static ax_status answer(ax_together *together, const comparing *c, uint32_t to) {
  ax_envelope envelope = {.kind = AX_MESSAGE_PART, .words = {(uint64_t)c->clock(), (uint64_t)c->out->given}};
  return ax_together_send(together, to, &envelope, NULL, NULL, NULL);
}

static ax_status note(ax_together *together, comparing *c, const ax_envelope *envelope) {
  const int64_t now = c->clock(), told = (int64_t)envelope->words[0], within = (now - c->asked + 1) / 2;
  c->out->given = (int64_t)envelope->words[1];
  if (c->left == rounds || within < c->out->within) {
    c->out->within = within;
    c->out->ahead = c->asked + (now - c->asked) / 2 - told;
  }
  return --c->left > 0 ? ask(together, c) : AX_OK;
}

static ax_status begin(ax_together *together, void *context) {
  comparing *c = context;
  return c->answers ? AX_OK : ask(together, c);
}

static ax_status take(ax_together *together, void *context, const ax_delivery *delivery) {
  comparing *c = context;
  return c->answers ? answer(together, c, delivery->from) : note(together, c, &delivery->envelope);
}

static bool is_done(const ax_together *together, const void *context) {
  const comparing *c = context;
  const ax_ending *ending = &together->ending;
  return c->answers ? atomic_load(&ending->done) + 1 == ending->processes->rule.processes : c->left == 0;
}

static ax_status lacks(const void *context) {
  (void)context;
  return ax_error(AX_DEADLOCK, "clocks are not compared by all processes");
}

static void describe(const void *context, ax_text *text) {
  (void)context;
  ax_text_add(text, "compares clocks");
}

ax_status ax_clocks_compare(ax_processes *processes, ax_status status, int64_t (*clock)(void), int64_t given, ax_clock_ahead *out) {
  static const ax_talk talk = {begin, take, is_done, lacks};
  const ax_doing doing = {ax_hash_word(9, 0) | 1, describe, NULL, "the comparing of clocks"};
  *out = (ax_clock_ahead){.given = given};
  comparing c = {clock, processes->rule.process == 0, out, rounds, 0};
  return ax_talk_hold(&talk, processes, &doing, status, &c);
}
