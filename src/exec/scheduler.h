/* Who runs next: see scheduler.c. A seat is that of the thread that calls. */
#ifndef AX_EXEC_SCHEDULER_H
#define AX_EXEC_SCHEDULER_H

#include "exec/execution.h"

/* A seat for this thread; NULL when there is none left. It is busy from here on. */
ax_seat *ax_schedule_enter(ax_execution *run);
void ax_schedule_leave(ax_execution *run, ax_seat *seat);

/* A frame that is ready, to be run now; AX_NONE when there is none. */
uint32_t ax_schedule_take(ax_execution *run, ax_seat *seat);
/* It has run: it makes way for others, or has ended. One that was parked is not reported: somebody else may be running it already. */
void ax_schedule_yield(ax_execution *run, uint32_t f);
void ax_schedule_end(ax_execution *run, ax_seat *seat, uint32_t f);

/* Gives a frame that is about to run, and needs it, a block of scratch memory. */
AX_MUST_USE ax_status ax_schedule_give_scratch(ax_execution *run, ax_seat *seat, ax_frame *frame);
AX_MUST_USE static inline ax_status ax_schedule_scratch(ax_execution *run, ax_seat *seat, ax_frame *frame) {
  bool needed = frame->code->instrs[frame->pc].scratch && frame->scratch == NULL;
  return needed ? ax_schedule_give_scratch(run, seat, frame) : AX_OK;
}

/* There is nothing to take: true when there never will be, and run->over is set then. Else this thread is not busy any more until
   ax_schedule_wait is over: something has changed, or somebody wants this thread elsewhere. */
bool ax_schedule_exhausted(ax_execution *run);
void ax_schedule_wait(ax_execution *run);
/* Ends the run early. */
void ax_schedule_stop(ax_execution *run, ax_status status, const char *message);
/* The run is over, but what is in flight will still post: waits for it. */
void ax_schedule_land(ax_execution *run);
/* Wakes threads that wait: all of them, or as many as there is something new for. */
void ax_schedule_wake(ax_execution *run, bool all);

/* What follows a signal that somebody waits for, and a wait that must be parked. */
void ax_schedule_release(ax_execution *run, uint32_t counter);
bool ax_schedule_park(ax_execution *run, ax_seat *seat, uint32_t f, uint32_t counter, uint64_t target, bool parks);
uint32_t ax_schedule_take_out(ax_execution *run, uint32_t counter, uint64_t target);

/* Adds `times` to a counter; who waited for that is ready. */
static inline void ax_schedule_signal(ax_execution *run, uint32_t index, uint32_t times) {
  ax_counter *counter = &run->counters[index];
  if (!run->threaded) {
    uint64_t count = atomic_load_explicit(&counter->count, memory_order_relaxed) + times;
    atomic_store_explicit(&counter->count, count, memory_order_relaxed);
    if (atomic_load_explicit(&counter->least, memory_order_relaxed) <= count) ax_schedule_release(run, index);
    return;
  }
  uint64_t count = atomic_fetch_add(&counter->count, times) + times;
  if (atomic_load(&counter->least) <= count) ax_schedule_release(run, index);
}

/* True when the count is reached; otherwise f is parked there, and belongs to whoever lets it go on. A frame that is parked
   where it `parks` gives its scratch memory back. */
static inline bool ax_schedule_await(ax_execution *run, ax_seat *seat, uint32_t f, uint32_t counter, uint64_t target, bool parks) {
  return atomic_load_explicit(&run->counters[counter].count, memory_order_acquire) >= target ||
         ax_schedule_park(run, seat, f, counter, target, parks);
}

/* The least target of the frames parked on a counter is this one. */
static inline bool ax_schedule_is_next(ax_execution *run, uint32_t counter, uint64_t target) {
  return atomic_load_explicit(&run->counters[counter].least, memory_order_acquire) == target;
}
/* The frame parked there with just that target, when it is the least: it is taken out, and goes on when it is resumed. AX_NONE. */
static inline uint32_t ax_schedule_unpark(ax_execution *run, uint32_t counter, uint64_t target) {
  return ax_schedule_is_next(run, counter, target) ? ax_schedule_take_out(run, counter, target) : AX_NONE;
}
/* Frames linked by parking.next. */
void ax_schedule_resume(ax_execution *run, uint32_t first);

#endif
