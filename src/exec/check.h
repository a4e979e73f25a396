/* CHECK instructions: an equation that makes a NaN or an infinity ends its activation, and then the run. Findings, of those and
   others: of ragged exchanges, and of callbacks that fail, and whatever else reference code does.

   An activation that finds one goes no further. All others go on until they have ended too, or wait for what never comes because of
   it; nothing they do depends on who ran when, so neither does what is found: of all findings the earliest in the program's order,
   and of those the lowest device's, is what the run fails with. */
#ifndef AX_EXEC_CHECK_H
#define AX_EXEC_CHECK_H

#include "exec/execution.h"

/* False: a finding, which the run remembers if it is the earliest so far. The activation's pc is that of the instruction. */
bool ax_check_passes(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation, const ax_instr *instr);
/* What activation f, which goes no further, has found where it stands. */
void ax_finding_note(ax_execution *run, uint32_t f, const ax_finding *finding);
/* The same where an EVAL or a CALL has failed there, with this thread's message. */
void ax_finding_of_eval(ax_execution *run, uint32_t f, ax_status status);
/* Of a run that has ended with one: its message. */
void ax_finding_report(ax_execution *run);

#endif
