/* Who runs next: see scheduler.c. A worker slot is that of the thread that calls. */
#ifndef AX_EXEC_SCHEDULER_H
#define AX_EXEC_SCHEDULER_H

#include "exec/execution.h"

/* A worker slot for this thread; NULL when there is none left. It is busy from here on. */
ax_worker_slot *ax_scheduler_enter(ax_execution *run);
void ax_scheduler_leave(ax_execution *run, ax_worker_slot *worker_slot);

/* An activation that is ready, to be run now; AX_NONE when there is none. */
uint32_t ax_scheduler_take(ax_execution *run, ax_worker_slot *worker_slot);
/* It has run: it makes way for others, or has ended. One that was parked is not reported: somebody else may be running it
   already. */
void ax_scheduler_yield(ax_execution *run, uint32_t f);
void ax_scheduler_end(ax_execution *run, ax_worker_slot *worker_slot, uint32_t f);

/* Gives an activation that is about to run, and needs it, a block of scratch memory. */
AX_MUST_USE ax_status ax_scheduler_give_scratch(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation);
AX_MUST_USE static inline ax_status ax_scheduler_scratch(ax_execution *run, ax_worker_slot *worker_slot,
                                                         ax_activation *activation) {
  bool needed = activation->code->instrs[activation->pc].scratch && activation->scratch == NULL;
  return needed ? ax_scheduler_give_scratch(run, worker_slot, activation) : AX_OK;
}

/* There is nothing to take: true when there never will be, and run->over is set then. Else this thread is not busy any more until
   ax_scheduler_wait is over: something has changed, or somebody wants this thread elsewhere. */
bool ax_scheduler_exhausted(ax_execution *run);
void ax_scheduler_wait(ax_execution *run);
/* Ends the run early. */
void ax_scheduler_stop(ax_execution *run, ax_status status, const char *message);
/* The run is over, but what is in flight will still post: waits for it. */
void ax_scheduler_land(ax_execution *run);
/* Wakes threads that wait: all of them, or as many as there is something new for. */
void ax_scheduler_wake(ax_execution *run, bool all);

/* What follows a signal that somebody waits for, and a wait that must be parked. */
void ax_scheduler_release(ax_execution *run, uint32_t counter);
bool ax_scheduler_park(ax_execution *run, ax_worker_slot *worker_slot, uint32_t f, uint32_t counter, uint64_t target, bool parks);
uint32_t ax_scheduler_take_out(ax_execution *run, uint32_t counter, uint64_t target);

/* Adds `times` to a counter; who waited for that is ready. */
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

/* True when the count is reached; otherwise f is parked there, and belongs to whoever lets it go on. An activation that is parked
   where it `parks` gives its scratch memory back. */
static inline bool ax_scheduler_await(ax_execution *run, ax_worker_slot *worker_slot, uint32_t f, uint32_t counter, uint64_t target,
                                      bool parks) {
  return atomic_load_explicit(&run->counters[counter].count, memory_order_acquire) >= target ||
         ax_scheduler_park(run, worker_slot, f, counter, target, parks);
}

/* The least target of the activations parked on a counter is this one. */
static inline bool ax_scheduler_is_next(ax_execution *run, uint32_t counter, uint64_t target) {
  return atomic_load_explicit(&run->counters[counter].least, memory_order_acquire) == target;
}
/* The activation parked there with just that target, when it is the least: it is taken out, and goes on when it is resumed.
   AX_NONE. */
static inline uint32_t ax_scheduler_unpark(ax_execution *run, uint32_t counter, uint64_t target) {
  return ax_scheduler_is_next(run, counter, target) ? ax_scheduler_take_out(run, counter, target) : AX_NONE;
}
/* Activations linked by parking.next. */
void ax_scheduler_resume(ax_execution *run, uint32_t first);

#endif
