/* CHECK instructions: an equation that makes a NaN or an infinity ends its frame, and then the run.

   A frame that finds one goes no further. All others go on until they have ended too, or wait for what never comes because of it;
   nothing they do depends on who ran when, so neither does what is found: of all findings the earliest in the program's order, and
   of those the lowest device's, is what the run fails with. */
#ifndef AX_EXEC_CHECK_H
#define AX_EXEC_CHECK_H

#include "exec/execution.h"

/* False: a finding, which the run remembers if it is the earliest so far. The frame's pc is that of the instruction. */
bool ax_check_passes(ax_execution *run, ax_seat *seat, ax_frame *frame, const ax_instr *instr);
/* Of a run that has ended with AX_NOT_FINITE: its message. */
void ax_check_report(ax_execution *run);

#endif
