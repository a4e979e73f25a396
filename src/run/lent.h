/* Payloads that a run lends to other processes, which read them where they lie until their owner goes on. */
#ifndef AX_RUN_LENT_H
#define AX_RUN_LENT_H

#include "run/remote.h"

/* What is lent at one time; zero-initialised. */
typedef struct ax_lent {
  ax_loan *loans;
  uint32_t count, capacity;
  double until;         /* whoever has not begun to read by then gets a copy */
  uint64_t times;       /* how often a device has waited for what it has lent, in this run */
  struct ax_lent *next; /* among those that wait */
} ax_lent;
static inline void ax_lent_deinit(ax_lent *lent) { ax_free(lent->loans); }

/* Sends a message: a long payload is lent, a shorter one copied. AX_OUT_OF_MEMORY; AX_UNAVAILABLE. */
AX_MUST_USE ax_status ax_lent_send(ax_lent *lent, ax_remote *remote, uint32_t to, ax_envelope *envelope, const void *payload);
/* The memory is needed. Waits for readers about as long as copying takes, and then copies: so a copy is made at most once too often, and
   nothing waits for what may never come. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_lent_settle(ax_lent *lent, ax_remote *remote);

/* The same for what a device has lent (remote->lent): its activation f is parked in the meantime. *parked: it is. */
AX_MUST_USE ax_status ax_lent_await(ax_remote *remote, ax_worker_slot *worker_slot, uint32_t device, uint32_t f, bool *parked);
/* Settles what can be, or all, and lets those devices go on. For threads that poll. Returns true if there was any. */
bool ax_lent_look(ax_remote *remote, bool all);

#endif
