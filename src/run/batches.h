/* Exchanges in batches: the last of some members puts the pieces of all of them. */
#ifndef AX_RUN_BATCHES_H
#define AX_RUN_BATCHES_H

#include "run/execution.h"

/* Takes the activation's operand of a PUSH whose way is AX_PUSH_IN_BATCHES. If its batch is complete, puts the pieces of all its
   members, and signals `counter` for all of them. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_batch_push(ax_execution *run, ax_worker_slot *worker_slot, const ax_activation *activation,
                                    const ax_instr *instr, uint32_t counter);

#endif
