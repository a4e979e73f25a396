/* RAGGED instructions: the steps of a ragged exchange (plan/ragged.h). */
#ifndef AX_RUN_RAGGED_H
#define AX_RUN_RAGGED_H

#include "run/execution.h"

/* Performs a step. False: slices sent to this activation do not fit, which the run keeps as a finding (check.h). The
   activation's pc is that of the instruction. */
bool ax_ragged_do(ax_execution *run, ax_activation *activation, const ax_instr *instr);

#endif
