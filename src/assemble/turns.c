/* The counter of ordered calls, and which devices make each call. */
#include "assemble/assembly.h"

static ax_status describe(ax_assembly *a, uint32_t i) {
  ax_compiled *c = a->compiled;
  const ax_axis_set all = ax_all_axes(&a->plan->mesh), axes = a->ops[i]->axes;
  ax_turns *turns = ax_arena_alloc(&c->plan->arena, sizeof *turns);
  uint32_t set;
  if (turns == NULL) return ax_out_of_memory(sizeof *turns);
  AX_TRY(ax_set_of(c, axes, &set));
  *turns = (ax_turns){all & ~axes, c->sets[set].size, c->sets[set].index};
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
