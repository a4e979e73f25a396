/* See turns.h.

     place A, by all of 3 devices      calls 0 1 2         a device's turn here: what it has counted + its number
     place B, by one for all           call  3             the others count it as they pass
     place A again, in a loop          calls 4 5 6 */
#include "run/turns.h"

#include "run/compute.h"

ax_status ax_turn_take(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation, const ax_instr *instr, uint32_t f,
                       bool *parked) {
  const ax_compiled *c = run->compiled;
  const ax_turns *turns = instr->call.turns;
  *parked = false;
  const uint32_t number = turns->number[activation->device];
  if (number != AX_NONE) {
    *parked = !ax_scheduler_await(run, worker_slot, f, c->turns, activation->turn + number, true);
    if (*parked) return AX_OK;
    AX_TRY(ax_compute_eval(c, &run->executor->hooks, activation, instr, activation->device));
    ax_scheduler_signal(run, c->turns, 1);
  }
  activation->turn += turns->calls;
  return AX_OK;
}
