/* See turns.h.

     place A, by all of 3 devices      calls 0 1 2         a device's turn here: what it has counted + its number
     place B, by one for all           call  3             the others count it as they pass
     place A again, in a loop          calls 4 5 6 */
#include "exec/turns.h"

#include "exec/compute.h"

/* --- Before a run --- */

static ax_status describe(ax_assembly *a, uint32_t i) {
  ax_executable *e = a->executable;
  const ax_axis_set all = ax_all_axes(&a->plan->mesh), axes = a->ops[i]->axes;
  ax_turns *turns = ax_arena_alloc(&e->plan->arena, sizeof *turns);
  uint32_t set;
  if (turns == NULL) return ax_out_of_memory(sizeof *turns);
  AX_TRY(ax_set_of(e, axes, &set));
  *turns = (ax_turns){all & ~axes, e->sets[set].size, e->sets[set].index};
  a->instrs[i].call.turns = turns;
  return AX_OK;
}

ax_status ax_instrs_turns(ax_assembly *a) {
  ax_executable *e = a->executable;
  e->turns = AX_NONE;
  for (uint32_t i = 0; i < a->instr_count; i++) {
    if (a->instrs[i].kind != AX_INSTR_CALL) continue;
    if (e->turns == AX_NONE) e->turns = e->counter_count++;
    AX_TRY(describe(a, i));
  }
  return AX_OK;
}

/* --- In a run --- */

ax_status ax_turn_take(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation, const ax_instr *instr, uint32_t f,
                       bool *parked) {
  const ax_executable *e = run->executable;
  const ax_turns *turns = instr->call.turns;
  *parked = false;
  if ((turns->others & activation->nonzero) == 0) {
    *parked = !ax_scheduler_await(run, worker_slot, f, e->turns, activation->turn + turns->number[activation->device], true);
    if (*parked) return AX_OK;
    AX_TRY(ax_compute_eval(e, activation, instr, activation->device));
    ax_scheduler_signal(run, e->turns, 1);
  }
  activation->turn += turns->calls;
  return AX_OK;
}
