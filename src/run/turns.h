/* Ordered calls of the host. All ordered calls of a program have one order: that of the program, and at each place that of the
   devices. One counter says how many have been made. Each activation counts the calls that come before its own next one, including
   those of other devices. So calls are made in the order of devices in lock step, under every policy. */
#ifndef AX_RUN_TURNS_H
#define AX_RUN_TURNS_H

#include "run/scheduler.h"

/* Performs a CALL. *parked: it is not this activation's turn yet. Otherwise the status and message of the call. */
AX_MUST_USE ax_status ax_turn_take(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation, const ax_instr *instr,
                                   uint32_t f, bool *parked);

#endif
