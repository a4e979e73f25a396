/* Runs that were not over when they were started, and the arrays they will make.

   A pending run begins, as a task of the team, when nothing is missing: every argument is ready, and arrays donated to the run have
   no other users. When it is over, its results get their parts or its failure, runs that take its results miss one thing less, and
   threads that wait for a result go on. Messages name a run by its number.

   A run that a plugin makes is handed over before it is over: then its results have parts, whose elements are not there yet, and runs that
   take them are handed over too. So the devices always have something to do next. Where it fails, so do they.

   A run that all processes make misses, besides, the one of these that was started before it. So each process makes them in the
   order in which they were started, one after the other, and their numbers are the same in all (joint.h).

   One lock of the runtime, `order`, guards all fields that say which run waits for which. It is held for a moment only, never while
   something runs. No other lock of this room or of run/ is taken under it but the team's. */
#ifndef AX_ARRAY_PENDING_H
#define AX_ARRAY_PENDING_H

#include "array/call.h"
#include "run/workers.h"

typedef struct ax_pending ax_pending;

/* Starts a run. The arguments have been checked. The call's results are arrays without parts, owned by the caller; *run is
   retained. AX_INVALID_ARGUMENT: an argument was donated meanwhile, or is donated to this run and is its argument more than
   once. */
AX_MUST_USE ax_status ax_pending_start(const ax_run_call *call, ax_pending **run);
/* Waits until the run is over; returns its status and message. The thread helps meanwhile, with this run before others. */
AX_MUST_USE ax_status ax_pending_wait(ax_pending *run);
bool ax_pending_over(const ax_pending *run);
/* Calls `tell` with the run's status and message when it is over: on the thread that ends it, with no lock held, or at once if it is
   over. AX_OUT_OF_MEMORY: it will not be called. */
AX_MUST_USE ax_status ax_pending_when_over(ax_pending *run, ax_ready_callback tell, void *context);
void ax_pending_release(ax_pending *run);
/* Called when the last user of an array that was given away has left. */
void ax_pending_array_free(ax_array *array);
/* Returns when no run that all processes make is pending; at once inside a run. The thread's message stays. */
void ax_pending_wait_together(ax_runtime *runtime);
/* Returns when no run of the runtime is pending. */
void ax_pending_wait_for_all(ax_runtime *runtime);

#endif
