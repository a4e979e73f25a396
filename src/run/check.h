/* CHECK instructions: an equation that makes a NaN or an infinity ends its activation, and then the run.

   Findings come from CHECKs, ragged exchanges, failed callbacks and other reference code that fails. An activation with a finding
   stops. All others go on until they end too, or wait for a signal that the stopped ones will not give. The order in which threads
   run activations changes nothing of that, so the set of findings is always the same. The run fails with the earliest finding in
   the program's order; of several there, with that of the lowest device. In a run over several processes, each says where its own
   earliest finding is once none can go on (processes/ending.h). */
#ifndef AX_RUN_CHECK_H
#define AX_RUN_CHECK_H

#include "processes/ending.h"
#include "run/execution.h"

/* Performs a CHECK. False: it has a finding, which the run keeps if it is the earliest so far. The activation's pc is that of
   the instruction. */
bool ax_check_passes(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation, const ax_instr *instr);
/* Notes the finding of activation f at the instruction where it stands. The activation stops there. */
void ax_finding_note(ax_execution *run, uint32_t f, const ax_finding *finding);
/* The same for an EVAL or a CALL that has failed, with this thread's message. */
void ax_finding_of_eval(ax_execution *run, uint32_t f, ax_status status);
/* Sets the message of a run that has ended with a finding. */
void ax_finding_report(ax_execution *run);
/* The place of the finding, for comparison with those of other processes. */
void ax_finding_place(const ax_execution *run, ax_place *out);

#endif
