#include "run/remote.h"

#include <stdio.h>

#include "run/arrivals.h"
#include "run/check.h"
#include "run/cores_crossing.h"
#include "run/crossing.h"
#include "run/lent.h"
#include "run/mail.h"
#include "run/scheduler.h"
#include "run/turns.h"

ax_status ax_remote_send(ax_remote *r, uint32_t to, ax_envelope *envelope, const void *payload) {
  return ax_together_send(&r->together, to, envelope, payload, NULL, NULL);
}

ax_status ax_remote_lend(ax_remote *r, uint32_t to, ax_envelope *envelope, const void *payload, ax_loan *loan) {
  return ax_together_lend(&r->together, to, envelope, payload, loan);
}

ax_status ax_remote_send_owned(ax_remote *r, uint32_t to, ax_envelope *envelope, void *payload) {
  return ax_together_send_owned(&r->together, to, envelope, payload);
}

ax_status ax_remote_read(ax_remote *r, const ax_delivery *delivery, size_t offset, void *into, size_t bytes) {
  ax_transport *transport = ax_remote_transport(r);
  return transport->functions->read(transport, delivery, offset, into, bytes);
}

const void *ax_remote_see(ax_remote *r, const ax_delivery *delivery) {
  ax_transport *transport = ax_remote_transport(r);
  return transport->functions->see(transport, delivery);
}

ax_status ax_remote_release(ax_remote *r, const ax_delivery *delivery) {
  ax_transport *transport = ax_remote_transport(r);
  return transport->functions->release(transport, delivery);
}

ax_status ax_remote_fetch(ax_remote *r, ax_delivery *delivery) { return ax_together_fetch(&r->together, delivery); }

/* --- In order --- */

void ax_in_order_empty(ax_in_order *order) {
  ax_deliveries_free(&order->held);
  order->fetching = false;
}

static ax_status take_next(ax_in_order *order, ax_remote *r, ax_delivery *delivery,
                           ax_status (*take)(ax_execution *run, ax_delivery *delivery)) {
  order->fetching = ax_delivery_is_away(delivery);
  return order->fetching ? ax_remote_fetch(r, delivery) : take(r->run, delivery);
}

ax_status ax_in_order_take(ax_in_order *order, ax_remote *r, ax_delivery *delivery,
                           ax_status (*take)(ax_execution *run, ax_delivery *delivery)) {
  if (order->fetching && !delivery->fetched) {
    ax_deliveries_add(&order->held, delivery);
    return AX_OK;
  }
  AX_TRY(take_next(order, r, delivery, take));
  while (order->held.first != NULL && !order->fetching) AX_TRY(take_next(order, r, ax_deliveries_take(&order->held, NULL), take));
  return AX_OK;
}

/* --- Handling --- */

static ax_status take(ax_remote *r, ax_delivery *delivery) {
  ax_status status = ax_together_count(&r->together, delivery);
  if (status != AX_OK || r->closed) {
    ax_delivery_free(delivery);
    return r->closed ? AX_OK : status;
  }
  switch (delivery->envelope.kind) {
    case AX_MESSAGE_PART: return ax_crossing_take(r->run, delivery);
    case AX_MESSAGE_CORES: return ax_cores_take(r->run, delivery);
    case AX_MESSAGE_ROWS: return ax_arrivals_take(r->run, delivery);
    case AX_MESSAGE_TURN: return ax_turn_told(r->run, delivery);
    default: return ax_mail_take(r->run, delivery);
  }
}

static ax_status handle(ax_remote *r, ax_delivery *delivery) {
  if (ax_message_is_counted(delivery->envelope.kind)) return take(r, delivery);
  return ax_together_handle(&r->together, delivery);
}

/* Only one thread at a time handles messages, in the order in which they came. */
static bool handle_all(void *context) {
  ax_remote *r = context;
  bool any = false;
  if (!ax_together_has_come(&r->together) || atomic_flag_test_and_set_explicit(&r->handling, memory_order_acquire)) return false;
  for (ax_delivery *next, *one = ax_together_take(&r->together); one != NULL; one = next) {
    next = one->next;
    any = true;
    ax_status status = handle(r, one);
    if (status != AX_OK) ax_scheduler_stop(r->run, status, ax_message());
  }
  atomic_flag_clear_explicit(&r->handling, memory_order_release);
  return any;
}

/* A run of one thread polls for itself alone, so nothing is being handled, and nothing goes on. What is in the inbox came earlier. */
static bool take_here(void *context, uint32_t from, const ax_envelope *envelope, const void *payload) {
  ax_remote *r = (ax_remote *)(void *)((char *)context - offsetof(ax_remote, together));
  if (r->closed || envelope->kind != AX_MESSAGE_PART || ax_together_has_come(&r->together)) return false;
  const bool taken = ax_crossing_take_here(r->run, &(ax_delivery){.envelope = *envelope, .from = from, .payload = (void *)payload});
  r->taken = r->taken || taken;
  return taken;
}

/* Another process has failed. In a deadlock each process says what waits there, though others have said so already. */
static bool has_failed(ax_remote *r) { return atomic_load(&r->together.ending.failed) && !atomic_load(&r->together.ending.stuck); }

/* *taken: a message was taken where it lay, and activations may go on since. */
static ax_status poll(ax_remote *r, bool *moved, bool *taken) {
  *taken = false;
  if (r->run->threaded) return ax_processes_poll(r->together.ending.processes, moved);
  r->taken = false;
  const ax_status status = ax_processes_poll_for(r->together.ending.processes, &r->together.receiver, moved);
  *taken = r->taken;
  return status;
}

bool ax_remote_poll(ax_remote *r) {
  bool moved, taken;
  ax_status status = poll(r, &moved, &taken);
  if (status != AX_OK && !atomic_load(&r->run->over)) ax_scheduler_stop(r->run, status, ax_message());
  bool any = handle_all(r) || taken;
  any = ax_lent_look(r, atomic_load(&r->run->over)) || any;
  if (has_failed(r) && !atomic_load(&r->run->over))
    ax_scheduler_stop(r->run, AX_UNAVAILABLE, "another process has failed");
  return any;
}

/* The run's only thread has nothing else to do, and holds nothing back. */
static bool waits_alone(const ax_remote *r, const ax_worker_slot *worker_slot) {
  const ax_execution *run = r->run;
  if (run->threaded || run->scheduling_policy != NULL || worker_slot->first != AX_NONE) return false;
  return atomic_load(&run->fresh) >= run->compiled->activation_count && atomic_load(&run->post_count) == 0 &&
         atomic_load(&r->held_back) == 0 && !atomic_load(&run->over);
}

bool ax_remote_await(ax_remote *r, const ax_worker_slot *worker_slot, uint32_t counter, uint64_t target) {
  bool reached = false;
  for (uint32_t round = 0; !reached && round < AX_AT_ONCE && waits_alone(r, worker_slot); round++) {
    (void)ax_remote_poll(r);
    reached = atomic_load_explicit(&r->run->counters[counter].count, memory_order_relaxed) >= target;
  }
  return reached;
}

/* --- Reports of long waits --- */

/* Nothing changes while it is listed: no thread is busy or handles messages, and those that want to begin wait for the lock. */
static void list_places(void *context, ax_stall_report *report) {
  ax_remote *r = context;
  ax_execution *run = r->run;
  if (atomic_flag_test_and_set(&r->handling)) return;
  pthread_mutex_lock(&run->lock);
  if (atomic_load(&run->busy) == 0 && atomic_load(&run->in_flight) == 0 && !atomic_load(&run->over))
    ax_execution_list_stalls(run, report);
  pthread_mutex_unlock(&run->lock);
  atomic_flag_clear(&r->handling);
}

/* Where the devices here are through. */
static void list_rounds(void *context, ax_stall_report *report) {
  ax_remote *r = context;
  if (atomic_load(&r->open) > 0) ax_crossing_list(r, report);
  else ax_together_list(&r->together, report);
}

/* --- Waiting --- */

/* A thread that wakes counts as busy before it handles a message and says that the process is not idle, so it is seen here, or says
   so later. */
bool ax_remote_idle(ax_remote *r) {
  const bool stuck = ax_together_idle(&r->together);
  const bool goes_on = !atomic_load(&r->run->over) && atomic_load(&r->run->busy) > 0;
  if (goes_on || atomic_load(&r->held_back) > 0) atomic_store(&r->together.ending.idle, false);
  return stuck;
}

void ax_remote_flush(ax_remote *r) {
  if (atomic_load(&r->held_back) == 0) return;
  ax_status status = ax_crossing_flush(r);
  if (status != AX_OK) ax_scheduler_stop(r->run, status, ax_message());
}

/* What has come is handled first. */
static ax_status check_released(ax_remote *r) {
  if (atomic_load(&r->together.ending.processes->released_count) == 0 || atomic_flag_test_and_set(&r->handling)) return AX_OK;
  const ax_status status = ax_together_check_released(&r->together);
  atomic_flag_clear(&r->handling);
  return status;
}

void ax_remote_wait(ax_remote *r, bool (*changed)(ax_execution *run)) {
  bool taken = false;
  for (uint32_t round = r->run->threaded ? 0 : 2 * AX_AT_ONCE; !changed(r->run) && !ax_together_has_come(&r->together) && !taken; round += round < UINT32_MAX) {
    bool moved;
    if (atomic_load(&r->together.ending.stuck) || atomic_load(&r->together.ending.failed)) return;
    ax_status status = poll(r, &moved, &taken);
    if (status == AX_OK) status = ax_together_tell(&r->together, round);
    if (status == AX_OK && !moved) status = check_released(r);
    if (status != AX_OK) {
      ax_scheduler_stop(r->run, status, ax_message());
      return;
    }
    const bool lent = ax_lent_look(r, false);
    if (!moved && !lent) ax_together_pause(round);
    if (!moved && !lent && atomic_load(&r->run->busy) == 0) ax_together_look(&r->together, round, list_places, r);
  }
}

/* --- A run --- */

void ax_remote_begin(ax_remote *r, const ax_doing *doing) {
  ax_crossing_reset(r);
  ax_cores_reset(r);
  ax_arrivals_reset(r);
  ax_deliveries_free(&r->call_results);
  atomic_store(&r->senders, ax_mail_senders(r->run));
  r->closed = false;
  ax_together_begin(&r->together, doing);
  r->together.alone = !r->run->threaded;
}

static bool all_has_come(void *context) {
  ax_remote *r = context;
  if (r->run->status != AX_OK || atomic_load(&r->together.ending.stuck) || atomic_load(&r->together.ending.failed)) return true;
  return atomic_load(&r->open) == 0 && atomic_load(&r->senders) == 0 && ax_together_is_empty(&r->together);
}

/* Results may still miss what devices of other processes push, though all devices here are through; or messages may come that none
   of them has received. */
static ax_status complete(ax_remote *r) {
  AX_TRY(ax_crossing_flush(r));
  AX_TRY(ax_mail_close(r->run));
  AX_TRY(ax_together_until(&r->together, &(ax_waiting){all_has_come, handle_all, r, list_rounds}));
  if (r->run->status != AX_OK) return ax_error(r->run->status, "%s", r->run->message);
  if (has_failed(r)) return AX_UNAVAILABLE;
  if (atomic_load(&r->open) > 0) return ax_crossing_report(r);
  return atomic_load(&r->together.ending.stuck) ? AX_OK : ax_mail_check(r->run);
}

static bool has_settled(void *context) {
  const ax_ending *ending = &((ax_remote *)context)->together.ending;
  return atomic_load(&ending->stuck) || atomic_load(&ending->failed);
}

/* Other processes may have earlier findings, so they go on until none can. A process that is gone is noticed again at the end. */
static ax_status settle(ax_remote *r) {
  char message[sizeof r->run->message];
  snprintf(message, sizeof message, "%s", ax_message());
  (void)!ax_crossing_flush(r);
  ax_finding_place(r->run, &r->together.ending.place);
  (void)!ax_together_until(&r->together, &(ax_waiting){has_settled, handle_all, r, NULL});
  return ax_error(r->run->finding.status, "%s", message);
}

ax_status ax_remote_end(ax_remote *r, ax_status status) {
  if (status == AX_OK) status = complete(r);
  else if (status == r->run->finding.status) status = settle(r);
  r->closed = true;
  status = ax_together_end(&r->together, status, handle_all, r);
  atomic_fetch_add(&r->together.ending.processes->runs, 1);
  return status;
}

ax_status ax_remote_create(ax_execution *run) {
  ax_remote *r = run->remote = ax_calloc(1, sizeof *r);
  if (r == NULL) return ax_out_of_memory(sizeof *r);
  r->run = run;
  pthread_mutex_init(&r->groups_lock, NULL);
  atomic_flag_clear(&r->handling);
  AX_TRY(ax_together_init(&r->together, run->executor->processes));
  r->together.receiver.take_here = take_here;
  AX_TRY(ax_cores_init(r));
  AX_TRY(ax_arrivals_init(r));
  return ax_crossing_init(r);
}

void ax_remote_destroy(ax_execution *run) {
  ax_remote *r = run->remote;
  if (r == NULL) return;
  ax_crossing_deinit(r);
  ax_cores_deinit(r);
  ax_arrivals_deinit(r);
  ax_deliveries_free(&r->call_results);
  ax_together_deinit(&r->together);
  pthread_mutex_destroy(&r->groups_lock);
  ax_free(r);
}
