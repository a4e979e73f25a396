/* Says so when a process waits long for the others in ax_runtime_create. That wait is MPI's own (MPI_Init, MPI_Comm_dup), and returns
   only when all have come; so unlike later waits (stall.h) it has a thread that looks at the clock, and asks the system which of the
   processes that were started on this machine have come (siblings.h). The thread calls nothing of MPI.

     axle: process 0 and 1 more wait in ax_runtime_create for process 1 of 4, which has not come (pid 4711, sh); for process 3 of 4, which
     is stopped (pid 4712, train)

   The first process of a machine that waits speaks for its others. */
#ifndef AX_PROCESSES_OPENING_WATCH_H
#define AX_PROCESSES_OPENING_WATCH_H

#include "base/base.h"
#include "processes/processes.h"
#include "processes/siblings.h"

typedef struct ax_opening_watch ax_opening_watch;
/* of_some: the processes are those of a communicator, which need not be all that were started. NULL: there is no memory, or no thread,
   or one process only; then nothing is said. */
ax_opening_watch *ax_opening_watch_begin(const ax_stalls *stalls, bool of_some);
void ax_opening_watch_end(ax_opening_watch *watch); /* NULL is allowed */

typedef struct ax_opening {
  uint32_t process, processes, here; /* here: how many were started on this machine; 0: unknown */
  bool of_some;
} ax_opening;
/* Adds the line that this process says, or nothing. of: by process. */
void ax_opening_say(const ax_opening *opening, const ax_sibling *of, ax_text *text);

#endif
