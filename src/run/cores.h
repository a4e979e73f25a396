/* CORES instructions: steps of kernels that users write (plan/cores.h). */
#ifndef AX_RUN_CORES_H
#define AX_RUN_CORES_H

#include "run/scheduler.h"

/* Performs a step of a kernel. *parked: cores run by other threads are not through, and the activation waits for its turn.
   AX_DEADLOCK: cores wait for each other. Other statuses: errors in the code of a core. */
AX_MUST_USE ax_status ax_cores_do(ax_execution *run, ax_worker_slot *worker_slot, const ax_activation *activation,
                                  const ax_instr *instr, uint32_t f, bool *parked);

#endif
