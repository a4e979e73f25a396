/* How far the clock of each process is ahead of process 0's. A process sends the time of its own clock, process 0 answers with that
   of its own, and the answer comes back:

     process 1    asked ----------------------- answered        its clock is ahead by the middle of asked and answered, less told,
     process 0              told                                to within half of the time between them

   Of several rounds the shortest counts. */
#ifndef AX_PROCESSES_CLOCKS_H
#define AX_PROCESSES_CLOCKS_H

#include "processes/together.h"

typedef struct ax_clock_ahead {
  int64_t ahead, within; /* nanoseconds, and how far they may be wrong; process 0: 0 */
  int64_t given;         /* what process 0 gave */
} ax_clock_ahead;

/* `clock` gives the time of this process in nanoseconds. `given`: of process 0, for all. status, and who calls: as ax_collect_bytes. */
AX_MUST_USE ax_status ax_clocks_compare(ax_processes *processes, ax_status status, int64_t (*clock)(void), int64_t given,
                                        ax_clock_ahead *out);

#endif
