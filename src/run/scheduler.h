/* Chooses the activation that runs next: see scheduler.c. A worker slot is always that of the calling thread. */
#ifndef AX_RUN_SCHEDULER_H
#define AX_RUN_SCHEDULER_H

#include "run/execution.h"

/* Takes a worker slot for this thread, which counts as busy from here on. NULL: there is none left. */
ax_worker_slot *ax_scheduler_enter(ax_execution *run);
/* The same for a helper: the slot that it had when it helped last, if that is free, and rather not the first one, which is for the
   caller's thread. So a thread does the same parts of arrays (share.h) run after run, and they lie in the memory near it. */
ax_worker_slot *ax_scheduler_join(ax_execution *run);
void ax_scheduler_leave(ax_execution *run, ax_worker_slot *worker_slot);

/* Takes an activation that is ready, to be run now. AX_NONE: there is none. */
uint32_t ax_scheduler_take(ax_execution *run, ax_worker_slot *worker_slot);
/* Called after an activation has run: it makes way for others (_yield), or has ended (_end). A parked activation is not
   reported, since another thread may be running it already. */
void ax_scheduler_yield(ax_execution *run, uint32_t f);
void ax_scheduler_end(ax_execution *run, ax_worker_slot *worker_slot, uint32_t f);

/* Gives an activation that is about to run a block of scratch memory, if it needs one. */
AX_MUST_USE ax_status ax_scheduler_give_scratch(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation);
AX_MUST_USE static inline ax_status ax_scheduler_scratch(ax_execution *run, ax_worker_slot *worker_slot,
                                                         ax_activation *activation) {
  bool needed = activation->code->instrs[activation->pc].scratch && activation->scratch == NULL;
  return needed ? ax_scheduler_give_scratch(run, worker_slot, activation) : AX_OK;
}

/* Says that this thread found no activation to run. Returns true, with run->over set, if none will ever be ready. Otherwise the
   thread no longer counts as busy; it must call ax_scheduler_wait, which returns when something has changed or another run wants
   the thread. */
bool ax_scheduler_exhausted(ax_execution *run);
void ax_scheduler_wait(ax_execution *run);
/* Ends the run early. */
void ax_scheduler_stop(ax_execution *run, ax_status status, const char *message);
/* Called when the run is over: waits until everything in flight has been posted. */
void ax_scheduler_land(ax_execution *run);
/* Wakes waiting threads: all of them, or as many as there is new work for. */
void ax_scheduler_wake(ax_execution *run, bool all);

/* The slow paths of _signal, _await and _unpark below: they change the lists of parked activations. */
void ax_scheduler_release(ax_execution *run, uint32_t counter);
bool ax_scheduler_park(ax_execution *run, ax_worker_slot *worker_slot, uint32_t f, uint32_t counter, uint64_t target, bool parks);
uint32_t ax_scheduler_take_out(ax_execution *run, uint32_t counter, uint64_t target);

/* Adds `times` to a counter. Activations whose target is reached become ready. */
static inline void ax_scheduler_signal(ax_execution *run, uint32_t index, uint32_t times) {
  ax_counter *counter = &run->counters[index];
  if (!run->threaded) {
    uint64_t count = atomic_load_explicit(&counter->count, memory_order_relaxed) + times;
    atomic_store_explicit(&counter->count, count, memory_order_relaxed);
    if (atomic_load_explicit(&counter->least, memory_order_relaxed) <= count) ax_scheduler_release(run, index);
    return;
  }
  uint64_t count = atomic_fetch_add(&counter->count, times) + times;
  if (atomic_load(&counter->least) <= count) ax_scheduler_release(run, index);
}

/* Returns true if the count is reached. Otherwise activation f is parked there; from then on it belongs to the thread that will
   take it out. If `parks`, a parked activation gives its scratch memory back. */
static inline bool ax_scheduler_await(ax_execution *run, ax_worker_slot *worker_slot, uint32_t f, uint32_t counter, uint64_t target,
                                      bool parks) {
  return atomic_load_explicit(&run->counters[counter].count, memory_order_acquire) >= target ||
         ax_scheduler_park(run, worker_slot, f, counter, target, parks);
}

/* Says whether `target` is the least target of the activations parked on a counter. */
static inline bool ax_scheduler_is_next(ax_execution *run, uint32_t counter, uint64_t target) {
  return atomic_load_explicit(&run->counters[counter].least, memory_order_acquire) == target;
}
/* Takes out the activation parked there with this target, if that is the least one. It goes on when ax_scheduler_resume gets it.
   AX_NONE: there is none. */
static inline uint32_t ax_scheduler_unpark(ax_execution *run, uint32_t counter, uint64_t target) {
  return ax_scheduler_is_next(run, counter, target) ? ax_scheduler_take_out(run, counter, target) : AX_NONE;
}
/* Makes activations ready; `first` begins a list linked by parking.next. */
void ax_scheduler_resume(ax_execution *run, uint32_t first);

#endif
