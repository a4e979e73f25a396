/* The counter of ordered calls, and which devices make each call: the first of those that are alike but for the axes along which
   the call is one. If it has results and devices are spread over processes, all processes with devices that are alike get them
   from the one that makes the call: there the first of these devices takes them. */
#include <string.h>

#include "assemble/assembly.h"

static ax_status find_callers(ax_compiled *c, ax_turns *turns, uint32_t *number, const bool *first) {
  uint32_t *caller = ax_arena_alloc(&c->plan->arena, c->devices * sizeof caller[0]);
  if (caller == NULL) return ax_out_of_memory(c->devices * sizeof caller[0]);
  for (uint32_t d = 0; d < c->devices; d++) number[d] = AX_NONE;
  for (uint32_t d = 0; d < c->devices; d++) {
    if (!first[d]) continue;
    caller[turns->calls] = d;
    number[d] = turns->calls++;
  }
  turns->caller = caller;
  turns->number = number;
  return AX_OK;
}

/* index: by device, along the axes of the call; seen: by process. */
static void take(const ax_compiled *c, const ax_turns *turns, const uint32_t *index, uint32_t call, bool *seen, uint32_t *takes) {
  const uint32_t caller = turns->caller[call];
  memset(seen, 0, c->map->processes);
  seen[c->map->of[caller]] = true;
  for (uint32_t d = 0; d < c->devices; d++) {
    if (index[d] != index[caller] || seen[c->map->of[d]]) continue;
    seen[c->map->of[d]] = true;
    takes[d] = call;
  }
}

static ax_status find_takers(ax_assembly *a, ax_turns *turns, ax_axis_set axes) {
  ax_compiled *c = a->compiled;
  uint32_t set, *takes = ax_arena_alloc(&c->plan->arena, c->devices * sizeof takes[0]);
  bool *seen = ax_arena_alloc(&a->scratch, c->map->processes);
  if (takes == NULL || seen == NULL) return ax_out_of_memory(c->devices * sizeof takes[0]);
  AX_TRY(ax_set_of(c, axes, &set));
  memset(takes, 0xff, c->devices * sizeof takes[0]);
  for (uint32_t k = 0; k < turns->calls; k++) take(c, turns, c->sets[set].index, k, seen, takes);
  turns->takes = takes;
  return AX_OK;
}

static ax_status describe(ax_assembly *a, uint32_t i) {
  ax_compiled *c = a->compiled;
  const ax_axis_set axes = a->ops[i]->axes;
  ax_turns *turns = ax_arena_alloc(&c->plan->arena, sizeof *turns);
  uint32_t *number = ax_arena_alloc(&c->plan->arena, c->devices * sizeof number[0]);
  bool *first = ax_arena_alloc(&a->scratch, c->devices);
  if (turns == NULL || number == NULL || first == NULL) return ax_out_of_memory(c->devices * sizeof number[0]);
  *turns = (ax_turns){0};
  ax_find_first(c, ax_all_axes(&a->plan->mesh) & ~axes, first);
  AX_TRY(find_callers(c, turns, number, first));
  if (c->map != NULL && a->instrs[i].eqn->out_count > 0) AX_TRY(find_takers(a, turns, axes));
  a->instrs[i].call.turns = turns;
  return AX_OK;
}

ax_status ax_instrs_turns(ax_assembly *a) {
  ax_compiled *c = a->compiled;
  c->turns = AX_NONE;
  for (uint32_t i = 0; i < a->instr_count; i++) {
    if (a->instrs[i].kind != AX_INSTR_CALL) continue;
    if (c->turns == AX_NONE) {
      c->turns = c->counter_count;
      c->counter_count += c->map != NULL ? 2 : 1;
    }
    AX_TRY(describe(a, i));
  }
  return AX_OK;
}
