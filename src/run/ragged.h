/* RAGGED instructions: the steps of a ragged exchange (plan/ragged.h). */
#ifndef AX_RUN_RAGGED_H
#define AX_RUN_RAGGED_H

#include "run/execution.h"

/* Performs a step. *parked: rows of other processes have not come yet. activation->found: slices sent to this activation do not
   fit, which the run keeps as a finding (check.h). The activation's pc is that of the instruction. */
AX_MUST_USE ax_status ax_ragged_do(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation, const ax_instr *instr,
                                   uint32_t f, bool *parked);

#endif
