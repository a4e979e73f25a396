#include "run/remote.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "run/crossing.h"
#include "run/mail.h"
#include "run/scheduler.h"

/* A long payload on its way here. It may come after the run has failed. */
typedef struct ax_fetching {
  ax_processes *processes; /* its lock guards `remote` */
  ax_remote *remote;       /* NULL: the run has ended */
  ax_delivery *delivery;
  void *payload;
  struct ax_fetching *next;
} ax_fetching;

/* --- The inbox --- */

static void append(ax_remote *r, ax_delivery *delivery) { /* with the lock held */
  delivery->next = NULL;
  if (r->first == NULL) r->first = delivery;
  else r->last->next = delivery;
  r->last = delivery;
  atomic_fetch_add(&r->waiting, 1);
}

static void deliver(void *context, ax_delivery *delivery) {
  ax_remote *r = context;
  pthread_mutex_lock(&r->lock);
  append(r, delivery);
  pthread_mutex_unlock(&r->lock);
}

static ax_delivery *take_all(ax_remote *r) {
  pthread_mutex_lock(&r->lock);
  ax_delivery *first = r->first;
  r->first = r->last = NULL;
  atomic_store(&r->waiting, 0);
  pthread_mutex_unlock(&r->lock);
  return first;
}

static void drop_all(ax_delivery *one) {
  for (ax_delivery *next; one != NULL; one = next) {
    next = one->next;
    ax_delivery_free(one);
  }
}

/* --- Sending and fetching --- */

ax_status ax_remote_send(ax_remote *r, uint32_t to, ax_envelope *envelope, const void *payload) {
  envelope->run = r->receiver.number;
  atomic_fetch_add(&r->ending.sent, 1);
  return ax_processes_send(r->ending.processes, to, envelope, payload, NULL, NULL);
}

static void unlink_fetching(ax_remote *r, const ax_fetching *mine) {
  ax_fetching **link = &r->fetching;
  while (*link != mine) link = &(*link)->next;
  *link = mine->next;
}

/* The message comes to the inbox again, with its payload, unless the run has ended. */
static void fetched(void *context) {
  ax_fetching *mine = context;
  mine->delivery->payload = mine->payload;
  pthread_mutex_lock(&mine->processes->lock);
  ax_remote *r = mine->remote;
  if (r != NULL) {
    unlink_fetching(r, mine);
    deliver(r, mine->delivery);
  } else {
    ax_delivery_free(mine->delivery);
  }
  pthread_mutex_unlock(&mine->processes->lock);
  ax_free(mine);
}

ax_status ax_remote_fetch(ax_remote *r, ax_delivery *delivery) {
  ax_transport *transport = r->ending.processes->transport;
  const size_t bytes = delivery->envelope.bytes;
  ax_fetching *mine = ax_calloc(1, sizeof *mine);
  void *payload = ax_alloc(bytes);
  if (mine == NULL || payload == NULL) {
    ax_free(mine);
    ax_free(payload);
    ax_delivery_free(delivery);
    return ax_out_of_memory(bytes);
  }
  *mine = (ax_fetching){r->ending.processes, r, delivery, payload, NULL};
  pthread_mutex_lock(&mine->processes->lock);
  mine->next = r->fetching;
  r->fetching = mine;
  pthread_mutex_unlock(&mine->processes->lock);
  ax_status status = transport->functions->fetch(transport, delivery, payload, fetched, mine);
  if (status == AX_OK) return AX_OK;
  pthread_mutex_lock(&mine->processes->lock);
  unlink_fetching(r, mine);
  pthread_mutex_unlock(&mine->processes->lock);
  ax_delivery_free(delivery);
  ax_free(payload);
  ax_free(mine);
  return status;
}

static void abandon_fetches(ax_remote *r) {
  pthread_mutex_lock(&r->ending.processes->lock);
  for (ax_fetching *mine = r->fetching; mine != NULL; mine = mine->next) mine->remote = NULL;
  r->fetching = NULL;
  pthread_mutex_unlock(&r->ending.processes->lock);
}

/* --- Handling --- */

static ax_status handle(ax_remote *r, ax_worker_slot *worker_slot, ax_delivery *delivery) {
  const ax_message_kind kind = (ax_message_kind)delivery->envelope.kind;
  if (kind == AX_MESSAGE_PART || kind == AX_MESSAGE_LETTER) {
    const bool again = delivery->envelope.bytes > AX_SHORT_PAYLOAD && delivery->payload != NULL;
    atomic_store(&r->ending.idle, false);
    if (!again) atomic_fetch_add(&r->ending.received, 1);
    if (r->closed) {
      ax_delivery_free(delivery);
      return AX_OK;
    }
  }
  switch (kind) {
    case AX_MESSAGE_PART: return ax_crossing_take(r->run, worker_slot, delivery);
    case AX_MESSAGE_LETTER: return ax_mail_take(r->run, delivery);
    default: break;
  }
  ax_status status = ax_ending_handle(&r->ending, delivery);
  ax_delivery_free(delivery);
  return status;
}

/* Only one thread at a time handles messages, in the order in which they came. */
static bool handle_all(ax_remote *r, ax_worker_slot *worker_slot) {
  bool any = false;
  if (atomic_load_explicit(&r->waiting, memory_order_relaxed) == 0 || atomic_flag_test_and_set(&r->handling)) return false;
  for (ax_delivery *next, *one = take_all(r); one != NULL; one = next) {
    next = one->next;
    any = true;
    ax_status status = handle(r, worker_slot, one);
    if (status != AX_OK && r->run != NULL) ax_scheduler_stop(r->run, status, ax_message());
  }
  atomic_flag_clear(&r->handling);
  return any;
}

/* Another process has failed. In a deadlock each process says what waits there, though others have said so already. */
static bool has_failed(ax_remote *r) { return atomic_load(&r->ending.failed) && !atomic_load(&r->ending.stuck); }

bool ax_remote_poll(ax_remote *r, ax_worker_slot *worker_slot) {
  bool moved;
  ax_status status = ax_processes_poll(r->ending.processes, &moved);
  if (status != AX_OK && !atomic_load(&r->run->over)) ax_scheduler_stop(r->run, status, ax_message());
  bool any = handle_all(r, worker_slot);
  if (has_failed(r) && !atomic_load(&r->run->over))
    ax_scheduler_stop(r->run, AX_UNAVAILABLE, "another process has failed");
  return any;
}

/* --- Waiting --- */

/* A payload that has been fetched is in the inbox before it is no longer being fetched. A thread that wakes counts as busy before it
   handles a message and says that the process is not idle, so it is seen here, or says so later. */
bool ax_remote_idle(ax_remote *r) {
  pthread_mutex_lock(&r->ending.processes->lock);
  atomic_store(&r->ending.idle, r->fetching == NULL && atomic_load(&r->waiting) == 0);
  pthread_mutex_unlock(&r->ending.processes->lock);
  if (r->run != NULL && !atomic_load(&r->run->over) && atomic_load(&r->run->busy) > 0) atomic_store(&r->ending.idle, false);
  return atomic_load(&r->ending.stuck);
}

/* Gives the processor to others more and more: other processes may be waiting for it. */
static void pause_for(uint32_t round) {
  enum { spins = 256, yields = 4096 };
  if (round < spins) ax_relax();
  else if (round < yields) sched_yield();
  else nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

enum { tell_after = 512 }; /* rounds of waiting: only then is it worth a message */

void ax_remote_wait(ax_remote *r, bool (*changed)(ax_execution *run)) {
  for (uint32_t round = 0; !changed(r->run) && atomic_load(&r->waiting) == 0; round += round < UINT32_MAX) {
    bool moved;
    if (atomic_load(&r->ending.stuck) || atomic_load(&r->ending.failed)) return;
    ax_status status = ax_processes_poll(r->ending.processes, &moved);
    if (status == AX_OK && round == tell_after) status = ax_ending_tell(&r->ending);
    if (status != AX_OK) {
      ax_scheduler_stop(r->run, status, ax_message());
      return;
    }
    if (!moved) pause_for(round);
  }
}

/* --- A run --- */

void ax_remote_begin(ax_remote *r) {
  ax_crossing_reset(r);
  atomic_store(&r->senders, ax_mail_senders(r->run));
  r->closed = false;
  ax_ending_reset(&r->ending);
  ax_processes_begin(r->ending.processes, &r->receiver);
  r->ending.number = r->receiver.number;
}

/* Handles messages, on the thread that makes the call, until `reached`. */
static ax_status handle_until(ax_remote *r, bool (*reached)(ax_remote *r)) {
  for (uint32_t round = 0; !reached(r); round += round < UINT32_MAX) {
    bool moved = false;
    ax_status status = ax_processes_poll(r->ending.processes, &moved);
    if (status != AX_OK && !(r->closed && status == AX_OUT_OF_MEMORY)) return status; /* an end that was said is waited for */
    if (handle_all(r, NULL)) round = 0;
    (void)ax_remote_idle(r);
    if (round == tell_after) AX_TRY(ax_ending_tell(&r->ending));
    if (!moved) pause_for(round);
  }
  return AX_OK;
}

static bool all_have_ended(ax_remote *r) { return ax_ending_over(&r->ending); }
static bool nothing_is_fetched(ax_remote *r) {
  pthread_mutex_lock(&r->ending.processes->lock);
  const bool nothing = r->fetching == NULL && atomic_load(&r->waiting) == 0;
  pthread_mutex_unlock(&r->ending.processes->lock);
  return nothing;
}
static bool all_has_come(ax_remote *r) {
  if (r->run->status != AX_OK || atomic_load(&r->ending.stuck) || atomic_load(&r->ending.failed)) return true;
  return atomic_load(&r->open) == 0 && atomic_load(&r->senders) == 0 && nothing_is_fetched(r);
}

/* Results may still miss what devices of other processes push, though all devices here are through; or messages may come that none of
   them has received. */
static ax_status complete(ax_remote *r) {
  AX_TRY(ax_mail_close(r->run));
  AX_TRY(handle_until(r, all_has_come));
  if (r->run->status != AX_OK) return ax_error(r->run->status, "%s", r->run->message);
  if (has_failed(r)) return AX_UNAVAILABLE;
  if (atomic_load(&r->open) > 0) return ax_crossing_report(r);
  return atomic_load(&r->ending.stuck) ? AX_OK : ax_mail_check(r->run);
}

/* Says how it has ended here, waits until all have said so, and ends. */
static ax_status agree(ax_remote *r, ax_status status, const char *message) {
  r->closed = true;
  ax_status said = ax_ending_say(&r->ending, status, status != AX_OK ? message : NULL);
  if (said == AX_OK) said = handle_until(r, all_have_ended);
  if (said == AX_OK) said = ax_ending_result(&r->ending);
  abandon_fetches(r);
  ax_processes_end(r->ending.processes, &r->receiver);
  drop_all(take_all(r));
  if (said != AX_OK) r->ending.processes->transport->functions->forget(r->ending.processes->transport, r->receiver.number);
  return said;
}

ax_status ax_remote_end(ax_remote *r, ax_status status) {
  char message[sizeof r->run->message];
  if (status == AX_OK) status = complete(r);
  const bool stopped = atomic_load(&r->ending.failed) && status == AX_UNAVAILABLE;
  snprintf(message, sizeof message, "%s", status != AX_OK && !stopped ? ax_message() : "");
  return agree(r, stopped ? AX_OK : status, message);
}

static ax_status init(ax_remote *r, ax_processes *processes) {
  r->receiver = (ax_receiver){.deliver = deliver, .context = r};
  pthread_mutex_init(&r->lock, NULL);
  pthread_mutex_init(&r->groups_lock, NULL);
  atomic_flag_clear(&r->handling);
  return ax_ending_init(&r->ending, processes);
}

static void deinit(ax_remote *r) {
  ax_ending_deinit(&r->ending);
  pthread_mutex_destroy(&r->lock);
  pthread_mutex_destroy(&r->groups_lock);
}

/* Others wait for this, so it is tried more than once if there is no memory. */
ax_status ax_remote_refuse(ax_processes *processes, ax_status status) {
  enum { most_tries = 1000 };
  ax_remote r = {0};
  char message[sizeof r.run->message];
  snprintf(message, sizeof message, "%s", ax_message());
  ax_status made = init(&r, processes);
  for (int i = 0; i < most_tries && made != AX_OK; i++) {
    deinit(&r);
    sched_yield();
    made = init(&r, processes);
  }
  if (made == AX_OK) {
    ax_ending_reset(&r.ending);
    ax_processes_begin(processes, &r.receiver);
    r.ending.number = r.receiver.number;
    made = agree(&r, status, message);
  }
  deinit(&r);
  return made;
}

ax_status ax_remote_create(ax_execution *run) {
  ax_remote *r = run->remote = ax_calloc(1, sizeof *r);
  if (r == NULL) return ax_out_of_memory(sizeof *r);
  r->run = run;
  AX_TRY(init(r, run->executor->processes));
  return ax_crossing_init(r);
}

void ax_remote_destroy(ax_execution *run) {
  ax_remote *r = run->remote;
  if (r == NULL) return;
  ax_crossing_deinit(r);
  deinit(r);
  ax_free(r);
}
