/* Ordered calls of the host. All ordered calls of a program have one order: that of the program, and at each place that of the
   devices. One counter says how many have been made. Each activation counts the calls that come before its own next one, including
   those of other devices. So calls are made in the order of devices in lock step, under every policy.

   If devices are spread over processes, each process has such a counter, and is told what it must know: whoever makes a call
   tells the process that makes the next one; the last at a place tells all, since who comes next depends on the way that the
   program takes.

     device      0   1 | 2   3 | 4   5        0 and 1 are of process 0, 2 and 3 of 1, 4 and 5 of 0 again
     calls       0   1   2   3   4   5
     is told           1 ^     0 ^     all ^  "so many calls have been made"

   The results of a call go to the other processes with devices that see them. They may come later than the turn of the next
   call. */
#ifndef AX_RUN_TURNS_H
#define AX_RUN_TURNS_H

#include "run/scheduler.h"

/* Performs a CALL. *parked: it is not this activation's turn yet, or results of another process have not come. Otherwise the
   status and message of the call. */
AX_MUST_USE ax_status ax_turn_take(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation, const ax_instr *instr,
                                   uint32_t f, bool *parked);
/* What another process says of its calls. Consumes the message. */
AX_MUST_USE ax_status ax_turn_told(ax_execution *run, ax_delivery *delivery);
/* For reports: calls `list` for the devices of other processes whose calls come before that of the parked activation f, at its
   place, and of which nothing has been heard. Returns how many are listed, `count` before. */
uint32_t ax_turn_missing(ax_text *text, const ax_execution *run, uint32_t f,
                         void (*list)(ax_text *text, const ax_execution *run, uint32_t device, uint32_t count), uint32_t count);

#endif
