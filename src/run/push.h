/* PUSH and CLEAR instructions: exchanges between the activations of a group. */
#ifndef AX_RUN_PUSH_H
#define AX_RUN_PUSH_H

#include "run/execution.h"

/* Copies or combines this activation's parts of an exchange into their targets, then signals the exchange's event. False: the
   activation must wait for its turn, and is parked. */
bool ax_push_do(ax_execution *run, ax_worker_slot *worker_slot, const ax_activation *activation, const ax_instr *instr, uint32_t f);
/* Sets the activation's result of a ppermute to zero, if it has no source. */
void ax_push_clear(const ax_activation *activation, const ax_instr *instr);

#endif
