/* RAGGED instructions: the steps of a ragged exchange (plan/ragged.h). */
#ifndef AX_EXEC_RAGGED_H
#define AX_EXEC_RAGGED_H

#include "exec/execution.h"

/* False: slices that come to this frame do not fit, which the run remembers as a finding (check.h). The frame's pc is that of the
   instruction. */
bool ax_ragged_do(ax_execution *run, ax_frame *frame, const ax_instr *instr);

#endif
