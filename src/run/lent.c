#include "run/lent.h"

#include "processes/node.h"
#include "run/scheduler.h"

enum { least_lent = AX_HOSTILE ? 16 : AX_NODE_PAYLOAD + 1 }; /* what a message carries at once is copied sooner than it is read */

ax_status ax_lent_send(ax_lent *lent, ax_remote *r, uint32_t to, ax_envelope *envelope, const void *payload) {
  static const double seconds_at_least = 5e-6, bytes_per_second = 8e9;
  if (envelope->bytes < least_lent) return ax_remote_send(r, to, envelope, payload);
  AX_TRY(ax_grow(&lent->loans, sizeof lent->loans[0], lent->count, 1, &lent->capacity));
  if (lent->count == 0) lent->until = ax_seconds() + seconds_at_least;
  lent->until += (double)envelope->bytes / bytes_per_second;
  AX_TRY(ax_remote_lend(r, to, envelope, payload, &lent->loans[lent->count]));
  lent->count += lent->loans[lent->count].ticket != 0;
  return AX_OK;
}

static bool are_returned(const ax_remote *r, const ax_lent *lent) {
  ax_transport *transport = ax_remote_transport(r);
  for (uint32_t i = 0; i < lent->count; i++)
    if (!transport->functions->is_returned(transport, &lent->loans[i])) return false;
  return true;
}

static ax_status settle_now(ax_lent *lent, ax_remote *r) {
  ax_transport *transport = ax_remote_transport(r);
  ax_status status = AX_OK;
  for (uint32_t i = 0; i < lent->count; i++) {
    ax_status settled = transport->functions->settle(transport, &lent->loans[i]);
    if (status == AX_OK) status = settled;
  }
  lent->count = 0;
  return status;
}

ax_status ax_lent_settle(ax_lent *lent, ax_remote *r) {
  bool any;
  while (!are_returned(r, lent) && ax_seconds() < lent->until) {
    (void)!ax_processes_poll(r->together.ending.processes, &any); /* who polls next reports */
    if (!any) ax_relax();
  }
  return settle_now(lent, r);
}

/* --- Devices that wait --- */

static uint32_t device_of(const ax_remote *r, const ax_lent *lent) { return (uint32_t)(lent - r->lent); }

ax_status ax_lent_await(ax_remote *r, ax_worker_slot *worker_slot, uint32_t device, uint32_t f, bool *parked) {
  ax_lent *lent = &r->lent[device];
  *parked = false;
  if (are_returned(r, lent)) return settle_now(lent, r);
  AX_TRY(ax_execution_begin_flight(r->run));
  const uint64_t times = ++lent->times;
  ax_remote_lock(r);
  lent->next = r->lenders;
  atomic_store(&r->lenders, lent);
  ax_remote_unlock(r);
  *parked = !ax_scheduler_await(r->run, worker_slot, f, r->run->compiled->first_loan + device, times, false);
  return AX_OK;
}

/* Takes those out that are ready. */
static ax_lent *take_ready(ax_remote *r, bool all) {
  ax_lent *ready = NULL, *rest = NULL;
  ax_remote_lock(r);
  for (ax_lent *next, *one = r->lenders; one != NULL; one = next) {
    ax_lent **list = all || are_returned(r, one) || ax_seconds() >= one->until ? &ready : &rest;
    next = one->next;
    one->next = *list;
    *list = one;
  }
  atomic_store(&r->lenders, rest);
  ax_remote_unlock(r);
  return ready;
}

bool ax_lent_look(ax_remote *r, bool all) {
  if (atomic_load_explicit(&r->lenders, memory_order_relaxed) == NULL) return false;
  ax_lent *ready = take_ready(r, all);
  const bool any = ready != NULL;
  for (ax_lent *next; ready != NULL; ready = next) {
    next = ready->next;
    ax_status status = settle_now(ready, r);
    if (status != AX_OK) ax_scheduler_stop(r->run, status, ax_message());
    ax_execution_post(r->run, r->run->compiled->first_loan + device_of(r, ready), 1); /* the device may lend again at once */
  }
  return any;
}
