/* PUSH and CLEAR instructions: exchanges between the activations of a group. */
#ifndef AX_RUN_PUSH_H
#define AX_RUN_PUSH_H

#include "run/execution.h"

/* Copies or combines this activation's parts of an exchange into their targets, then signals the exchange's event. In a batch, the
   last member does both for all others. *parked: the activation must wait for its turn. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_push_do(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation,
                                 const ax_instr *instr, uint32_t f, bool *parked);
/* Sets the activation's result of a ppermute to zero, if it has no source. */
void ax_push_clear(const ax_activation *activation, const ax_instr *instr);

#endif
