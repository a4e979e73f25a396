#include "processes/ending.h"

#include <sched.h>
#include <string.h>

#include "base/base.h"

static uint32_t count_of(const ax_ending *e) { return e->processes->rule.processes; }
static uint32_t own(const ax_ending *e) { return e->processes->rule.process; }

ax_status ax_ending_init(ax_ending *e, ax_processes *processes) {
  const uint32_t count = processes->rule.processes;
  *e = (ax_ending){.processes = processes};
  pthread_mutex_init(&e->lock, NULL);
  e->ended = ax_calloc(count, sizeof e->ended[0]);
  e->all = ax_calloc(count, sizeof e->all[0]);
  e->again = ax_calloc(count, sizeof e->again[0]);
  return e->ended != NULL && e->all != NULL && e->again != NULL ? AX_OK : ax_out_of_memory(count * sizeof e->ended[0]);
}

static void forget_messages(ax_ending *e) {
  for (uint32_t p = 0; e->ended != NULL && p < count_of(e); p++) {
    ax_free(e->ended[p].message);
    e->ended[p] = (ax_ended){0};
  }
}

void ax_ending_deinit(ax_ending *e) {
  if (e->processes == NULL) return;
  forget_messages(e);
  ax_free(e->ended);
  ax_free(e->all);
  ax_free(e->again);
  pthread_mutex_destroy(&e->lock);
}

void ax_ending_reset(ax_ending *e) {
  forget_messages(e);
  atomic_store(&e->sent, 0);
  atomic_store(&e->received, 0);
  atomic_store(&e->idle, false);
  atomic_store(&e->stuck, false);
  atomic_store(&e->failed, false);
  atomic_store(&e->done, 0);
  e->told = (ax_counts_told){0};
  memset(e->all, 0, count_of(e) * sizeof e->all[0]);
  e->probe = 0;
  e->answers = 0;
  e->told_again = false;
  e->place.count = 0;
  e->well = 0;
  e->check_below = 0;
  e->tells_all = count_of(e) <= AX_ENDING_FEW;
}

/* --- Messages --- */

/* An end that is not noted for want of memory would leave others waiting, so it is tried again for a while. */
enum { most_tries = 1000 };

static char *copy_surely(const char *text) {
  char *copy = text != NULL ? ax_alloc(strlen(text) + 1) : NULL;
  for (int i = 1; i < most_tries && text != NULL && copy == NULL; i++) {
    sched_yield();
    copy = ax_alloc(strlen(text) + 1);
  }
  if (copy != NULL) strcpy(copy, text);
  return copy;
}

static ax_status send(ax_ending *e, uint32_t to, ax_message_kind kind, const ax_counts_told *counts, const char *text) {
  ax_envelope envelope = {.run = e->number, .check = e->check, .kind = kind, .bytes = text != NULL ? strlen(text) + 1 : 0};
  if (counts != NULL) {
    envelope.words[0] = counts->sent;
    envelope.words[1] = counts->received;
    envelope.member = counts->idle;
  }
  envelope.words[2] = e->probe;
  return ax_processes_insist(e->processes, to, &envelope, text);
}

static ax_counts_told counts_of(const ax_envelope *envelope) {
  return (ax_counts_told){envelope->member != 0, envelope->words[0], envelope->words[1]};
}
static ax_counts_told own_counts(const ax_ending *e) {
  return (ax_counts_told){atomic_load(&e->idle), atomic_load(&e->sent), atomic_load(&e->received)};
}
static bool same(const ax_counts_told *a, const ax_counts_told *b) {
  return a->idle == b->idle && a->sent == b->sent && a->received == b->received;
}

static ax_status send_to_all(ax_ending *e, ax_message_kind kind, const ax_counts_told *counts, const char *text) {
  for (uint32_t p = 0; p < count_of(e); p++)
    if (p != own(e)) AX_TRY(send(e, p, kind, counts, text));
  return AX_OK;
}

/* --- Deadlock: process 0, with the lock held --- */

static bool none_on_its_way(const ax_counts_told *all, uint32_t count) {
  uint64_t sent = 0, received = 0;
  for (uint32_t p = 0; p < count; p++) {
    if (!all[p].idle) return false;
    sent += all[p].sent;
    received += all[p].received;
  }
  return sent == received;
}

static ax_status judge(ax_ending *e);

static ax_status take_answer(ax_ending *e, uint32_t from, const ax_counts_told *counts) {
  e->again[from] = *counts;
  if (--e->answers > 0) return AX_OK;
  bool unchanged = !e->told_again;
  for (uint32_t p = 0; p < count_of(e); p++) unchanged = unchanged && e->again[p].idle && same(&e->again[p], &e->all[p]);
  if (!unchanged) {
    memcpy(e->all, e->again, count_of(e) * sizeof e->all[0]);
    return judge(e);
  }
  atomic_store(&e->stuck, true);
  return send_to_all(e, AX_MESSAGE_STUCK, NULL, NULL);
}

/* A process that has failed says so before it tells that it is idle. Then others wait in vain, but that is no deadlock. */
static bool any_failed(const ax_ending *e) {
  for (uint32_t p = 0; p < count_of(e); p++)
    if (e->ended[p].status != AX_OK) return true;
  return false;
}

/* Begins a second round if all were idle in the first one and nothing was on its way. */
static ax_status judge(ax_ending *e) {
  if (any_failed(e)) return AX_OK;
  if (e->answers > 0 || atomic_load(&e->stuck) || ax_ending_over(e) || !none_on_its_way(e->all, count_of(e))) return AX_OK;
  e->probe++;
  e->answers = count_of(e);
  e->told_again = false;
  AX_TRY(send_to_all(e, AX_MESSAGE_PROBE, NULL, NULL));
  const ax_counts_told mine = own_counts(e);
  return take_answer(e, own(e), &mine);
}

/* A process that tells during a second round has changed since the first one. What it tells is newer than its answer, if that has
   come: it is kept for the next round, since the process will not tell the same again. */
static ax_status take_told(ax_ending *e, uint32_t from, const ax_counts_told *counts) {
  if (e->answers > 0) {
    e->again[from] = *counts;
    e->told_again = true;
    return AX_OK;
  }
  e->all[from] = *counts;
  return judge(e);
}

/* --- Every process --- */

static ax_status tell(ax_ending *e) {
  const ax_counts_told counts = own_counts(e);
  if (!counts.idle || same(&counts, &e->told)) return AX_OK;
  e->told = counts;
  return own(e) == 0 ? take_told(e, 0, &counts) : send(e, 0, AX_MESSAGE_IDLE, &counts, NULL);
}

ax_status ax_ending_tell(ax_ending *e) {
  pthread_mutex_lock(&e->lock);
  ax_status status = tell(e);
  pthread_mutex_unlock(&e->lock);
  return status;
}

/* A process that is not idle when it is asked tells again later. */
static ax_status answer(ax_ending *e, const ax_envelope *probe) {
  const ax_counts_told counts = own_counts(e);
  e->probe = probe->words[2];
  e->told = counts;
  return send(e, 0, AX_MESSAGE_ANSWER, &counts, NULL);
}

/* A process that did something else will not send what this one waits for. */
static bool did_something_else(const ax_ending *e, uint64_t check) { return check != 0 && e->check != 0 && check != e->check; }

/* With the lock held. */
static void note_done(ax_ending *e, uint32_t process, const ax_envelope *said, const char *message) {
  const ax_status how = (ax_status)said->place;
  ax_ended *ended = &e->ended[process];
  if (ended->done) return;
  *ended = (ax_ended){.done = true, .status = how, .check = said->check, .message = copy_surely(message)};
  ended->place.count = said->group < AX_PLACE_WORDS ? said->group : AX_PLACE_WORDS;
  if (ended->place.count > 0)
    memcpy(ended->place.words, message + strlen(message) + 1, ended->place.count * sizeof ended->place.words[0]);
  if (said->member != 0) atomic_store(&e->stuck, true); /* it has heard so earlier */
  if (process != own(e) && (how != AX_OK || did_something_else(e, said->check))) atomic_store(&e->failed, true);
  atomic_fetch_add(&e->done, 1);
}

/* All hear how this process has ended, also if one of them is gone. */
static ax_status say_to_all(ax_ending *e, const ax_envelope *said, const char *message) {
  ax_status status = AX_OK;
  for (uint32_t p = 0; p < count_of(e); p++) {
    ax_status sent = p != own(e) ? ax_processes_insist(e->processes, p, said, message) : AX_OK;
    if (sent != AX_OK && status == AX_OK) status = sent;
  }
  return status;
}

/* A process that has told nobody but the one above it has ended well. */
static ax_status tell_all(ax_ending *e) {
  const ax_envelope envelope = {.run = e->number, .check = e->check, .kind = AX_MESSAGE_DONE, .place = AX_OK, .member = atomic_load(&e->stuck)};
  if (e->tells_all) return AX_OK;
  e->tells_all = true;
  return e->ended[own(e)].done ? say_to_all(e, &envelope, NULL) : AX_OK;
}

ax_status ax_ending_tell_all(ax_ending *e) {
  pthread_mutex_lock(&e->lock);
  ax_status status = tell_all(e);
  pthread_mutex_unlock(&e->lock);
  return status;
}

/* --- The tree, with the lock held --- */

enum { base = 4 };

/* What the last digit of a process's number that is not 0 counts; of process 0, that of any process. */
static uint64_t digit_of(uint32_t process) {
  uint64_t step = 1;
  while (step <= UINT32_MAX && process % (step * base) == 0) step *= base;
  return step;
}
static uint32_t above(uint32_t process) { return (uint32_t)(process - process % (digit_of(process) * base)); }

/* Calls `visit`, if there is one, with each process just below this one. Returns how many there are. */
static uint32_t each_below(ax_ending *e, ax_status (*visit)(ax_ending *e, uint32_t process), ax_status *status) {
  uint32_t found = 0;
  for (uint64_t step = 1; step < digit_of(own(e)) && step < count_of(e); step *= base)
    for (uint64_t p = own(e) + step; p < own(e) + base * step && p < count_of(e); p += step, found++)
      if (visit != NULL && *status == AX_OK) *status = visit(e, (uint32_t)p);
  return found;
}

/* What this process and those below it did, as far as it is known; 0: nothing to be compared. */
static uint64_t check_so_far(const ax_ending *e) { return e->check != 0 ? e->check : e->check_below; }

static ax_status send_over(ax_ending *e, uint32_t to) { return send(e, to, AX_MESSAGE_OVER, NULL, NULL); }

/* It is over. Those below are told first: once it is over here, this process may leave. */
static ax_status take_over(ax_ending *e) {
  ax_status status = AX_OK;
  (void)each_below(e, send_over, &status);
  for (uint32_t p = 0; p < count_of(e); p++) e->ended[p].done = true;
  atomic_store(&e->done, count_of(e));
  return status;
}

/* Tells the process above, if this one has ended well and all below it have. */
static ax_status go_up(ax_ending *e) {
  const ax_ended *mine = &e->ended[own(e)];
  if (!mine->done || mine->status != AX_OK || e->well < each_below(e, NULL, NULL)) return AX_OK;
  if (own(e) == 0) return take_over(e);
  ax_envelope envelope = {.run = e->number, .check = check_so_far(e), .kind = AX_MESSAGE_WELL};
  return ax_processes_insist(e->processes, above(own(e)), &envelope, NULL);
}

static ax_status take_well(ax_ending *e, uint64_t check) {
  const uint64_t known = check_so_far(e);
  if (check != 0 && known != 0 && check != known) return tell_all(e); /* by which all learn who did what */
  if (check != 0) e->check_below = check;
  e->well++;
  return go_up(e);
}

/* --- Every process --- */

static ax_status handle(ax_ending *e, const ax_delivery *delivery) {
  const ax_envelope *envelope = &delivery->envelope;
  const ax_counts_told counts = counts_of(envelope);
  switch ((ax_message_kind)envelope->kind) {
    case AX_MESSAGE_DONE:
      note_done(e, delivery->from, envelope, delivery->payload);
      return tell_all(e);
    case AX_MESSAGE_WELL: return take_well(e, envelope->check);
    case AX_MESSAGE_OVER: return take_over(e);
    case AX_MESSAGE_IDLE: return take_told(e, delivery->from, &counts);
    case AX_MESSAGE_PROBE: return answer(e, envelope);
    case AX_MESSAGE_ANSWER: return take_answer(e, delivery->from, &counts);
    case AX_MESSAGE_STUCK: atomic_store(&e->stuck, true); return AX_OK;
    case AX_MESSAGE_PART:
    case AX_MESSAGE_LETTER:
    case AX_MESSAGE_CORES:
    case AX_MESSAGE_ROWS:
    case AX_MESSAGE_TURN:
    case AX_MESSAGE_TEXT:
    case AX_MESSAGE_DIFFERENCE:
    case AX_MESSAGE_WAITS:
    case AX_MESSAGE_LEAVES: break;
  }
  return ax_error(AX_INTERNAL, "a message of kind %u is not about an end", envelope->kind);
}

ax_status ax_ending_handle(ax_ending *e, const ax_delivery *delivery) {
  pthread_mutex_lock(&e->lock);
  ax_status status = handle(e, delivery);
  pthread_mutex_unlock(&e->lock);
  return status;
}

/* With a place, the payload is the message and then the place. Both in one block; NULL: there is no memory. */
static char *with_place(const ax_ending *e, const char *message) {
  const size_t bytes = strlen(message) + 1, more = e->place.count * sizeof e->place.words[0];
  char *both = ax_alloc(bytes + more);
  if (both == NULL) return NULL;
  memcpy(both, message, bytes);
  memcpy(both + bytes, e->place.words, more);
  return both;
}

ax_status ax_ending_say(ax_ending *e, ax_status how, const char *message) {
  char *both = message != NULL && e->place.count > 0 ? with_place(e, message) : NULL;
  ax_envelope envelope = {.run = e->number, .check = e->check, .kind = AX_MESSAGE_DONE, .place = how,
                          .group = both != NULL ? e->place.count : 0, .member = atomic_load(&e->stuck)};
  envelope.bytes = message != NULL ? strlen(message) + 1 + envelope.group * sizeof e->place.words[0] : 0;
  if (both != NULL) message = both;
  pthread_mutex_lock(&e->lock);
  atomic_store(&e->idle, true); /* nothing goes on in it any more */
  e->tells_all = e->tells_all || how != AX_OK;
  ax_status status = e->tells_all ? say_to_all(e, &envelope, message) : AX_OK;
  note_done(e, own(e), &envelope, message);
  if (status == AX_OK && count_of(e) > AX_ENDING_FEW) status = go_up(e);
  pthread_mutex_unlock(&e->lock);
  ax_free(both);
  return status;
}

/* --- How it ended --- */

static ax_status deadlock(ax_ending *e) {
  ax_text text = {0};
  for (uint32_t p = 0; p < count_of(e); p++)
    if (e->ended[p].status == AX_DEADLOCK && e->ended[p].message != NULL)
      ax_text_add(&text, "%sprocess %u: %s", text.length > 0 ? "\n" : "", p, e->ended[p].message);
  ax_status status = ax_error(AX_DEADLOCK, "%s", text.data != NULL && !text.failed ? text.data : "deadlock");
  ax_text_deinit(&text);
  return status;
}

/* A failure of a process itself, then one of the program, then a deadlock, in which others wait for those that have failed. */
static int rank_of(const ax_ended *ended) {
  if (ended->status == AX_OK) return 3;
  return ended->status == AX_DEADLOCK ? 2 : ended->place.count > 0;
}

static bool comes_before(const ax_ended *a, const ax_ended *b) {
  if (rank_of(a) != rank_of(b)) return rank_of(a) < rank_of(b);
  const uint32_t count = a->place.count < b->place.count ? a->place.count : b->place.count;
  for (uint32_t i = 0; i < count; i++)
    if (a->place.words[i] != b->place.words[i]) return a->place.words[i] < b->place.words[i];
  return a->place.count < b->place.count;
}

ax_status ax_ending_result(ax_ending *e) {
  uint32_t p = 0;
  for (uint32_t q = 1; q < count_of(e); q++)
    if (comes_before(&e->ended[q], &e->ended[p])) p = q;
  if (e->ended[p].status == AX_OK) return AX_OK;
  if (e->ended[p].status == AX_DEADLOCK) return deadlock(e);
  return ax_error(e->ended[p].status, "process %u: %s", p, e->ended[p].message != NULL ? e->ended[p].message : "failed");
}
