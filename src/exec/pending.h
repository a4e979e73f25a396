/* Runs that were not over when they were started, the arrays that are to come of them, and who waits for what.

   A pending run begins, as a task of the team, when nothing is missing: every argument is made, and those donated to it are read by
   nobody else. When it is over, its results have their parts or its failure, the runs that miss its results miss one thing
   less, and who waits on one of them goes on. Its number is what messages call it by.

   One lock of the runtime, `order`, guards all that says who waits for whom. It is held for a moment only, never while something
   runs, and no other lock of exec/ is taken under it but the team's. */
#ifndef AX_EXEC_PENDING_H
#define AX_EXEC_PENDING_H

#include "exec/call.h"
#include "exec/workers.h"

typedef struct ax_pending ax_pending;

/* Arguments that have been checked. The call's results: arrays without parts, owned by the caller; *run is retained.
   AX_INVALID_ARGUMENT: an argument was donated meanwhile, or is donated to this run and its argument more than once. */
AX_MUST_USE ax_status ax_pending_start(const ax_run_call *call, ax_pending **run);
/* Until it is over; its status and message. The thread helps meanwhile, with this run before others. */
AX_MUST_USE ax_status ax_pending_wait(ax_pending *run);
bool ax_pending_over(const ax_pending *run);
void ax_pending_release(ax_pending *run);
/* The last user of an array that was given away has left. */
void ax_pending_array_free(ax_array *array);
/* Returns when no run of the runtime is pending. */
void ax_pending_wait_for_all(ax_runtime *runtime);

#endif
