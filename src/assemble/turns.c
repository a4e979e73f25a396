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

/* Sorts devices by the call whose results they see: index[d], along the axes of the call, is that of the call's caller. call: by
   index. */
static void sort_by_call(const ax_compiled *c, const ax_turns *turns, const uint32_t *index, uint32_t *call, uint32_t *device,
                         uint32_t *first) {
  for (uint32_t k = 0; k < turns->calls; k++) call[index[turns->caller[k]]] = k;
  memset(first, 0, (turns->calls + 1) * sizeof first[0]);
  for (uint32_t d = 0; d < c->devices; d++) first[call[index[d]]]++;
  for (uint32_t k = 0, next = 0; k <= turns->calls; k++) {
    next += first[k];
    first[k] = next; /* where the next call's begin: each device takes the last place that is left */
  }
  for (uint32_t d = c->devices; d-- > 0;) device[--first[call[index[d]]]] = d;
}

/* Of the devices that see the results of a call, leaves the first of each process but the caller's. seen: by process, 0. */
static void leave_takers(const ax_compiled *c, const ax_turns *turns, uint32_t *device, uint32_t *first, uint32_t *seen,
                         uint32_t *takes) {
  uint32_t next = 0;
  for (uint32_t k = 0; k < turns->calls; k++) {
    const uint32_t begin = first[k], end = first[k + 1];
    first[k] = next;
    seen[c->map->of[turns->caller[k]]] = k + 1;
    for (uint32_t i = begin; i < end; i++) {
      const uint32_t d = device[i], process = c->map->of[d];
      if (seen[process] == k + 1) continue;
      seen[process] = k + 1;
      takes[d] = k;
      device[next++] = d;
    }
  }
  first[turns->calls] = next;
}

static ax_status find_takers(ax_assembly *a, ax_turns *turns, ax_axis_set axes) {
  ax_compiled *c = a->compiled;
  uint32_t set, *takes = ax_arena_alloc(&c->plan->arena, c->devices * sizeof takes[0]);
  AX_TRY(ax_set_of(c, axes, &set));
  uint32_t *taker = ax_arena_alloc(&c->plan->arena, c->devices * sizeof taker[0]);
  uint32_t *first = ax_arena_alloc(&c->plan->arena, (turns->calls + 1) * sizeof first[0]);
  uint32_t *seen = ax_arena_alloc(&a->scratch, c->map->processes * sizeof seen[0]);
  uint32_t *call = ax_arena_alloc(&a->scratch, c->sets[set].size * sizeof call[0]);
  if (takes == NULL || taker == NULL || first == NULL || seen == NULL || call == NULL)
    return ax_out_of_memory(c->devices * sizeof takes[0]);
  memset(takes, 0xff, c->devices * sizeof takes[0]);
  memset(seen, 0, c->map->processes * sizeof seen[0]);
  sort_by_call(c, turns, c->sets[set].index, call, taker, first);
  leave_takers(c, turns, taker, first, seen, takes);
  turns->takes = takes;
  turns->taker = taker;
  turns->first_taker = first;
  return AX_OK;
}

/* The other processes with devices. Places share the list. */
static ax_status find_others(ax_assembly *a, ax_turns *turns) {
  const ax_process_map *map = a->compiled->map;
  uint32_t *others = ax_arena_alloc(&a->compiled->plan->arena, map->processes * sizeof others[0]);
  bool *seen = ax_arena_alloc(&a->scratch, map->processes);
  if (others == NULL || seen == NULL) return ax_out_of_memory(map->processes * sizeof others[0]);
  memset(seen, 0, map->processes);
  seen[map->process] = true;
  for (uint32_t d = 0; d < map->devices; d++) {
    if (seen[map->of[d]]) continue;
    seen[map->of[d]] = true;
    others[turns->other_count++] = map->of[d];
  }
  turns->others = others;
  return AX_OK;
}

/* like: what all places have in common. */
static ax_status describe(ax_assembly *a, uint32_t i, const ax_turns *like) {
  ax_compiled *c = a->compiled;
  const ax_axis_set axes = a->ops[i]->axes;
  ax_turns *turns = ax_arena_alloc(&c->plan->arena, sizeof *turns);
  uint32_t *number = ax_arena_alloc(&c->plan->arena, c->devices * sizeof number[0]);
  bool *first = ax_arena_alloc(&a->scratch, c->devices);
  if (turns == NULL || number == NULL || first == NULL) return ax_out_of_memory(c->devices * sizeof number[0]);
  *turns = *like;
  ax_find_first(c, ax_all_axes(&a->plan->mesh) & ~axes, first);
  AX_TRY(find_callers(c, turns, number, first));
  if (c->map != NULL && a->instrs[i].eqn->out_count > 0) AX_TRY(find_takers(a, turns, axes));
  a->instrs[i].call.turns = turns;
  return AX_OK;
}

ax_status ax_instrs_turns(ax_assembly *a) {
  ax_compiled *c = a->compiled;
  ax_turns like = {0};
  c->turns = AX_NONE;
  for (uint32_t i = 0; i < a->instr_count; i++) {
    if (a->instrs[i].kind != AX_INSTR_CALL) continue;
    if (c->turns == AX_NONE) {
      c->turns = c->counter_count;
      c->counter_count += c->map != NULL ? 2 : 1;
      if (c->map != NULL) AX_TRY(find_others(a, &like));
    }
    AX_TRY(describe(a, i, &like));
  }
  return AX_OK;
}
