#include "processes/together.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* A long payload on its way here. It may come after all is over. */
typedef struct ax_fetching {
  ax_processes *processes; /* its lock guards `together` */
  ax_together *together;   /* NULL: that has ended */
  ax_delivery *delivery;
  void *payload;
  struct ax_fetching *next;
} ax_fetching;

/* --- The inbox --- */

/* The lock of the processes is held. */
static void deliver(void *context, ax_delivery *delivery) {
  ax_together *t = context;
  delivery->next = atomic_load_explicit(&t->newest, memory_order_relaxed);
  while (!atomic_compare_exchange_weak(&t->newest, &delivery->next, delivery)) continue; /* another thread has taken what was there */
}

ax_delivery *ax_together_take(ax_together *t) {
  ax_delivery *first = NULL;
  for (ax_delivery *before, *one = atomic_exchange(&t->newest, NULL); one != NULL; one = before) {
    before = one->next;
    one->next = first;
    first = one;
  }
  return first;
}

/* --- Sending and fetching --- */

static void stamp(ax_together *t, ax_envelope *envelope) {
  envelope->run = t->receiver.number;
  envelope->check = t->doing.check;
  if (!ax_message_is_counted(envelope->kind)) return;
  if (t->alone) atomic_store_explicit(&t->ending.sent, atomic_load_explicit(&t->ending.sent, memory_order_relaxed) + 1, memory_order_release);
  else atomic_fetch_add(&t->ending.sent, 1);
}

ax_status ax_together_lend(ax_together *t, uint32_t to, ax_envelope *envelope, const void *payload, ax_loan *loan) {
  stamp(t, envelope);
  return ax_processes_lend(t->ending.processes, to, envelope, payload, loan);
}

ax_status ax_together_send(ax_together *t, uint32_t to, ax_envelope *envelope, const void *payload, ax_on_done *sent,
                           void *context) {
  stamp(t, envelope);
  return ax_processes_send(t->ending.processes, to, envelope, payload, sent, context);
}

ax_status ax_together_send_owned(ax_together *t, uint32_t to, ax_envelope *envelope, void *payload) {
  ax_status status = ax_together_send(t, to, envelope, payload, ax_free, payload);
  if (status != AX_OK) ax_free(payload);
  return status;
}

static void unlink_fetching(ax_together *t, const ax_fetching *mine) {
  ax_fetching **link = &t->fetching;
  while (*link != mine) link = &(*link)->next;
  *link = mine->next;
}

/* The message comes to the inbox again, with its payload, unless all is over. */
static void fetched(void *context) {
  ax_fetching *mine = context;
  mine->delivery->payload = mine->payload;
  mine->delivery->fetched = true;
  pthread_mutex_lock(&mine->processes->lock);
  ax_together *t = mine->together;
  if (t != NULL) {
    unlink_fetching(t, mine);
    deliver(t, mine->delivery);
  } else {
    ax_delivery_free(mine->delivery);
  }
  pthread_mutex_unlock(&mine->processes->lock);
  ax_free(mine);
}

ax_status ax_together_fetch(ax_together *t, ax_delivery *delivery) {
  ax_transport *transport = t->ending.processes->transport;
  ax_fetching *mine = ax_calloc(1, sizeof *mine);
  void *payload = ax_alloc(delivery->envelope.bytes);
  if (mine == NULL || payload == NULL) {
    ax_free(mine);
    ax_free(payload);
    const size_t bytes = delivery->envelope.bytes;
    ax_delivery_free(delivery);
    return ax_out_of_memory(bytes);
  }
  *mine = (ax_fetching){t->ending.processes, t, delivery, payload, NULL};
  pthread_mutex_lock(&mine->processes->lock);
  mine->next = t->fetching;
  t->fetching = mine;
  pthread_mutex_unlock(&mine->processes->lock);
  ax_status status = transport->functions->fetch(transport, delivery, payload, fetched, mine);
  if (status == AX_OK) return AX_OK;
  pthread_mutex_lock(&mine->processes->lock);
  unlink_fetching(t, mine);
  pthread_mutex_unlock(&mine->processes->lock);
  ax_delivery_free(delivery);
  ax_free(payload);
  ax_free(mine);
  return status;
}

static void abandon_fetches(ax_together *t) {
  pthread_mutex_lock(&t->ending.processes->lock);
  for (ax_fetching *mine = t->fetching; mine != NULL; mine = mine->next) mine->together = NULL;
  t->fetching = NULL;
  pthread_mutex_unlock(&t->ending.processes->lock);
}

/* --- Handling --- */

ax_status ax_together_count(ax_together *t, const ax_delivery *delivery) {
  if (atomic_load(&t->ending.idle)) atomic_store(&t->ending.idle, false); /* who handles messages is busy, and is seen to be so */
  const uint64_t received = atomic_load_explicit(&t->ending.received, memory_order_relaxed) + !delivery->fetched;
  atomic_store_explicit(&t->ending.received, received, memory_order_release); /* one thread at a time handles messages */
  if (delivery->envelope.check == t->doing.check) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "process %u does something else", delivery->from);
}

ax_status ax_together_handle(ax_together *t, ax_delivery *delivery) {
  ax_delivery **keep = delivery->envelope.kind == AX_MESSAGE_TEXT         ? &t->text
                       : delivery->envelope.kind == AX_MESSAGE_DIFFERENCE ? &t->difference
                                                                          : NULL;
  if (keep == NULL) {
    ax_status status = ax_ending_handle(&t->ending, delivery);
    ax_delivery_free(delivery);
    return status;
  }
  if (ax_delivery_is_away(delivery)) return ax_together_fetch(t, delivery);
  ax_delivery_free(*keep);
  *keep = delivery;
  return AX_OK;
}

/* --- Waiting --- */

/* The lock of the processes is held. A payload that has been fetched is in the inbox before it is no longer being fetched. */
static bool is_empty(const ax_together *t) { return t->fetching == NULL && !ax_together_has_come(t); }

bool ax_together_is_empty(ax_together *t) {
  pthread_mutex_lock(&t->ending.processes->lock);
  const bool empty = is_empty(t);
  pthread_mutex_unlock(&t->ending.processes->lock);
  return empty;
}

bool ax_together_idle(ax_together *t) {
  pthread_mutex_lock(&t->ending.processes->lock);
  atomic_store(&t->ending.idle, is_empty(t));
  pthread_mutex_unlock(&t->ending.processes->lock);
  return atomic_load(&t->ending.stuck);
}

enum { spins = 256, yields = 4096 };

/* The answer of another processor takes some tens of rounds: a pause would find it late. */
void ax_together_pause(uint32_t round) {
  if (round < AX_AT_ONCE) return;
  if (round < spins) ax_relax();
  else if (round < yields) sched_yield();
  else nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

void ax_together_list(ax_together *t, ax_stall_report *report) {
  ax_ending *e = &t->ending;
  char where[64];
  bool *awaited = ax_calloc(e->processes->rule.processes, sizeof awaited[0]);
  if (awaited == NULL) return;
  pthread_mutex_lock(&e->lock);
  for (uint32_t p = 0; p < e->processes->rule.processes; p++) awaited[p] = p != e->processes->rule.process && !e->ended[p].done;
  pthread_mutex_unlock(&e->lock);
  snprintf(where, sizeof where, "in %s", t->receiver.what);
  ax_stall_add(report, where, awaited);
  ax_free(awaited);
}

static void list_rest(void *context, ax_stall_report *report) { ax_together_list(context, report); }

void ax_together_look(ax_together *t, uint32_t round, ax_stall_list *list, void *context) {
  const ax_ending *e = &t->ending;
  const bool looks = round >= yields || (round > spins && round % 64 == 0); /* on a busy machine a yield takes milliseconds */
  if (looks) ax_stall_look(&t->stall, e->processes, e->number, atomic_load(&e->sent) + atomic_load(&e->received), list, context);
}

/* Whatever a process has sent was in the inbox before its release was noted. One that has come to this, and yet released the runtime,
   knows that it is over: that word is on its way here from another process. */
ax_status ax_together_check_released(ax_together *t) {
  ax_ending *e = &t->ending;
  ax_processes *p = e->processes;
  uint32_t first = AX_NONE;
  if (atomic_load(&p->released_count) == 0) return AX_OK;
  pthread_mutex_lock(&e->lock);
  for (uint32_t q = p->rule.processes; q-- > 0;)
    if (atomic_load(&p->released[q]) && !e->ended[q].done && ax_processes_heard(p, q).number < e->number) first = q;
  pthread_mutex_unlock(&e->lock);
  return first == AX_NONE || ax_together_has_come(t) ? AX_OK : ax_error(AX_UNAVAILABLE, "process %u has released the runtime, and does not come to this", first);
}

ax_status ax_together_tell(ax_together *t, uint32_t round) {
  if (round == AX_TELL_AFTER) return ax_ending_tell(&t->ending);
  return round == AX_ENDING_LONG ? ax_ending_tell_all(&t->ending) : AX_OK;
}

ax_status ax_together_until(ax_together *t, const ax_waiting *w) {
  for (uint32_t round = 0; !w->reached(w->context); round += round < UINT32_MAX) {
    bool moved = false;
    ax_status status = ax_processes_poll(t->ending.processes, &moved);
    if (w->handle(w->context)) round = 0;
    (void)ax_together_idle(t);
    if (status == AX_OK) status = ax_together_tell(t, round);
    if (status == AX_OK && !moved && !w->reached(w->context)) status = ax_together_check_released(t);
    /* A process may leave as soon as it has all that it waits for: what it has sent before may be all that is waited for here. There may
       be memory in the next round. */
    if (status != AX_OK && status != AX_OUT_OF_MEMORY) return w->reached(w->context) ? AX_OK : status;
    if (!moved) ax_together_pause(round);
    if (!moved) ax_together_look(t, round, w->list != NULL ? w->list : list_rest, w->list != NULL ? w->context : t);
  }
  return AX_OK;
}

/* --- Differences --- */

typedef struct sides { /* the first process that does something, and the first that does something else; the same in all */
  uint32_t one, other;
} sides;

static bool find_difference(const ax_together *t, sides *out) {
  const ax_ended *ended = t->ending.ended;
  out->one = out->other = AX_NONE;
  for (uint32_t p = 0; p < t->ending.processes->rule.processes; p++) {
    if (ended[p].check == 0) continue;
    if (out->one == AX_NONE) out->one = p;
    else if (out->other == AX_NONE && ended[p].check != ended[out->one].check) out->other = p;
  }
  return out->other != AX_NONE;
}

/* The others wait for it. */
static ax_status insist(ax_together *t, uint32_t to, ax_envelope *envelope, const char *text) {
  envelope->run = t->receiver.number;
  return ax_processes_insist(t->ending.processes, to, envelope, text);
}

/* What this process does, and whose it takes the devices for. The text is the caller's; empty if there is no memory. */
static const char *describe(const ax_together *t, ax_text *text) {
  const ax_process_rule *rule = &t->ending.processes->rule;
  t->doing.describe(t->doing.context, text);
  if (rule->listed == 0) ax_text_add(text, "\nhas the devices in blocks");
  for (uint32_t d = 0; d < rule->listed; d++) ax_text_add(text, "\ntakes device %u for one of process %u", d, rule->of[d]);
  return text->data != NULL && !text->failed ? text->data : "";
}

static ax_status send_text(ax_together *t, uint32_t to) {
  ax_text text = {0};
  const char *what = describe(t, &text);
  ax_envelope envelope = {.kind = AX_MESSAGE_TEXT, .bytes = strlen(what) + 1};
  ax_status status = insist(t, to, &envelope, what);
  ax_text_deinit(&text);
  return status;
}

static int line_length(const char *line) {
  enum { most = 1000 };
  const size_t length = strcspn(line, "\n");
  return (int)(length < most ? length : most);
}

/* Skips the lines that are equal. */
static uint32_t first_difference(const char **a, const char **b) {
  uint32_t line = 1;
  for (; **a != '\0' && **b != '\0'; line++) {
    const size_t length = strcspn(*a, "\n");
    if (strncmp(*a, *b, length + 1) != 0) break;
    *a += length + ((*a)[length] == '\n');
    *b += length + ((*b)[length] == '\n');
  }
  return line;
}

static ax_status send_difference(ax_together *t, const sides *s, const char *message) {
  ax_envelope envelope = {.kind = AX_MESSAGE_DIFFERENCE, .bytes = strlen(message) + 1};
  for (uint32_t p = 0; p < t->ending.processes->rule.processes; p++)
    if (p != s->other) AX_TRY(insist(t, p, &envelope, message));
  return AX_OK;
}

/* On the process whose description is the other one. */
static ax_status tell_difference(ax_together *t, const sides *s) {
  ax_text text = {0};
  char message[4096];
  const char *a = t->text->payload, *b = describe(t, &text);
  const uint32_t line = first_difference(&a, &b);
  snprintf(message, sizeof message, "processes %u and %u do not do the same, line %u:\n  process %u: %.*s\n  process %u: %.*s",
           s->one, s->other, line, s->one, line_length(a), a, s->other, line_length(b), b);
  ax_text_deinit(&text);
  AX_TRY(send_difference(t, s, message));
  return ax_error(AX_INVALID_ARGUMENT, "%s", message);
}

/* What its sender does is something else, which the ends say. It is counted, since counts that never meet hide a deadlock. */
static void drop(ax_together *t, ax_delivery *delivery) {
  (void)!ax_together_count(t, delivery);
  ax_delivery_free(delivery);
}

static bool has_text(void *context) { return ((ax_together *)context)->text != NULL; }
static bool has_difference(void *context) { return ((ax_together *)context)->difference != NULL; }
static bool handle_rest(void *context) {
  ax_together *t = context;
  bool any = false;
  for (ax_delivery *next, *one = ax_together_take(t); one != NULL; one = next) {
    next = one->next;
    any = true;
    if (ax_message_is_counted(one->envelope.kind)) drop(t, one);
    else (void)!ax_together_handle(t, one);
  }
  return any;
}

static ax_status report_difference(ax_together *t, const sides *s) {
  const uint32_t own = t->ending.processes->rule.process;
  if (own == s->one) AX_TRY(send_text(t, s->other));
  if (own == s->other) {
    AX_TRY(ax_together_until(t, &(ax_waiting){has_text, handle_rest, t, NULL}));
    return tell_difference(t, s);
  }
  AX_TRY(ax_together_until(t, &(ax_waiting){has_difference, handle_rest, t, NULL}));
  return ax_error(AX_INVALID_ARGUMENT, "%s", (const char *)t->difference->payload);
}

/* --- Begin and end --- */

void ax_together_begin(ax_together *t, const ax_doing *doing) {
  ax_ending_reset(&t->ending);
  ax_stall_begin(&t->stall);
  t->doing = *doing;
  t->alone = false;
  if (doing->check != 0) t->doing.check = ax_hash_word(doing->check, t->ending.processes->digest) | 1;
  t->receiver.what = doing->what != NULL ? doing->what : "a call";
  t->ending.check = t->doing.check;
  ax_processes_begin(t->ending.processes, &t->receiver);
  t->ending.number = t->receiver.number;
}

typedef struct ended_here {
  ax_together *together;
  bool (*handle)(void *context);
  void *context;
} ended_here;

static bool all_have_ended(void *context) { return ax_ending_over(&((ended_here *)context)->together->ending); }
static bool handle_more(void *context) {
  const ended_here *e = context;
  return e->handle(e->context);
}

/* How it has ended everywhere, once this process has said how it has ended here. */
static ax_status result(ax_together *t, ended_here *e) {
  sides s;
  AX_TRY(ax_together_until(t, &(ax_waiting){all_have_ended, handle_more, e, NULL}));
  return find_difference(t, &s) ? report_difference(t, &s) : ax_ending_result(&t->ending);
}

ax_status ax_together_end(ax_together *t, ax_status status, bool (*handle)(void *context), void *context) {
  ax_processes *processes = t->ending.processes;
  const bool stopped = atomic_load(&t->ending.failed) && status == AX_UNAVAILABLE; /* another process says why */
  const bool failed = status != AX_OK && !stopped;
  char message[4096];
  snprintf(message, sizeof message, "%s", ax_message()); /* a copy, since sending may fail too */
  ax_status said = ax_ending_say(&t->ending, failed ? status : AX_OK, failed ? message : NULL);
  if (said == AX_OK) said = result(t, &(ended_here){t, handle, context});
  abandon_fetches(t);
  ax_processes_end(processes, &t->receiver);
  for (ax_delivery *next, *late = ax_together_take(t); late != NULL; late = next) {
    next = late->next;
    ax_delivery_free(late);
  }
  ax_delivery_free(t->text);
  ax_delivery_free(t->difference);
  t->text = t->difference = NULL;
  if (said == AX_OK) return AX_OK;
  processes->transport->functions->forget(processes->transport, t->receiver.number);
  atomic_fetch_add(&processes->failures, 1);
  return said;
}

ax_together *ax_together_borrow(ax_processes *processes) {
  pthread_mutex_lock(&processes->in_turn);
  return processes->spare;
}

void ax_together_give_back(ax_processes *processes) { pthread_mutex_unlock(&processes->in_turn); }

ax_status ax_agree(ax_processes *processes, const ax_doing *doing, ax_status status) {
  ax_together *t = ax_together_borrow(processes);
  ax_together_begin(t, doing);
  status = ax_together_end(t, status, handle_rest, t);
  ax_together_give_back(processes);
  return status;
}

/* --- The object --- */

ax_status ax_together_init(ax_together *t, ax_processes *processes) {
  t->receiver = (ax_receiver){.deliver = deliver, .context = t};
  return ax_ending_init(&t->ending, processes);
}

void ax_together_deinit(ax_together *t) {
  ax_ending_deinit(&t->ending);
}

ax_status ax_together_create(ax_processes *processes, ax_together **out) {
  ax_together *t = *out = ax_calloc(1, sizeof *t);
  return t != NULL ? ax_together_init(t, processes) : ax_out_of_memory(sizeof *t);
}

void ax_together_destroy(ax_together *t) {
  if (t == NULL) return;
  ax_together_deinit(t);
  ax_free(t);
}
