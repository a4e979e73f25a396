/* Ordered calls of the host. All that a program makes are in one order: that of the program, and at each place that of the devices.
   One counter says how many have been made; each activation counts those that come before its own next one, also those that others
   make. So they are made in the order in which devices in lock step would make them, whatever the policy. */
#ifndef AX_EXEC_TURNS_H
#define AX_EXEC_TURNS_H

#include "exec/scheduler.h"

/* What a CALL does: *parked: it is not this activation's turn yet. Or the status and message of what it calls. */
AX_MUST_USE ax_status ax_turn_take(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation, const ax_instr *instr,
                                   uint32_t f, bool *parked);

#endif
