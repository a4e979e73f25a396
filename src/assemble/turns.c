/* The counter of ordered calls, and which devices make each call: the first of those that are alike but for the axes along which
   the call is one. If devices are spread over processes, each process orders the calls of its own devices. */
#include "assemble/assembly.h"

static ax_status describe(ax_assembly *a, uint32_t i) {
  ax_compiled *c = a->compiled;
  ax_turns *turns = ax_arena_alloc(&c->plan->arena, sizeof *turns);
  uint32_t *number = ax_arena_alloc(&c->plan->arena, c->devices * sizeof number[0]);
  bool *first = ax_arena_alloc(&a->scratch, c->devices);
  if (turns == NULL || number == NULL || first == NULL) return ax_out_of_memory(c->devices * sizeof number[0]);
  ax_find_first(c, ax_all_axes(&a->plan->mesh) & ~a->ops[i]->axes, first);
  for (uint32_t d = 0; d < c->devices; d++) number[d] = first[d] ? turns->calls++ : AX_NONE;
  turns->number = number;
  a->instrs[i].call.turns = turns;
  return AX_OK;
}

ax_status ax_instrs_turns(ax_assembly *a) {
  ax_compiled *c = a->compiled;
  c->turns = AX_NONE;
  for (uint32_t i = 0; i < a->instr_count; i++) {
    if (a->instrs[i].kind != AX_INSTR_CALL) continue;
    if (c->turns == AX_NONE) c->turns = c->counter_count++;
    AX_TRY(describe(a, i));
  }
  return AX_OK;
}
