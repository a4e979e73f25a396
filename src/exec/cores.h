/* CORES instructions: steps of kernels that users write (plan/cores.h). */
#ifndef AX_EXEC_CORES_H
#define AX_EXEC_CORES_H

#include "exec/scheduler.h"

/* *parked: cores that others run are not through, and the activation waits for something to do. AX_DEADLOCK: cores wait for each
   other; errors of what cores do. */
AX_MUST_USE ax_status ax_cores_do(ax_execution *run, ax_worker_slot *worker_slot, const ax_activation *activation,
                                  const ax_instr *instr, uint32_t f, bool *parked);

#endif
