/* CORES instructions: steps of kernels that users write (plan/cores.h). */
#ifndef AX_EXEC_CORES_H
#define AX_EXEC_CORES_H

#include "exec/scheduler.h"

/* *parked: cores that others run are not through, and the frame waits for something to do. AX_DEADLOCK: cores wait for each other; errors of
   what cores do. */
AX_MUST_USE ax_status ax_cores_do(ax_execution *run, ax_seat *seat, const ax_frame *frame, const ax_instr *instr, uint32_t f, bool *parked);

#endif
