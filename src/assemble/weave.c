/* Writes waits and signals into the list of instructions; jumps, regions and accesses move along. */
#include <stdlib.h>
#include <string.h>

#include "assemble/synchronise.h"

static int by_position(const void *x, const void *y) {
  const ax_insertion *a = x, *b = y;
  if (a->position != b->position) return a->position < b->position ? -1 : 1;
  if (a->order != b->order) return (int)a->order - (int)b->order;
  return a->access < b->access ? -1 : a->access > b->access;
}

/* Says whether activations park at a wait: for the result of an exchange, or for readers. An owner's own results are there
   already. */
static bool parks(const ax_assembly *a, const ax_insertion *item) {
  const ax_access *access = &a->accesses[item->access];
  return ax_is_wait(item) && (!access->writes || access->exchange != NULL);
}

static ax_instr made_of(const ax_assembly *a, const ax_insertion *item) {
  bool wait = ax_is_wait(item);
  const ax_access *access = &a->accesses[item->access];
  ax_instr instr = {.kind = wait ? AX_INSTR_WAIT : AX_INSTR_SIGNAL, .skip = ax_all_axes(&a->plan->mesh) & ~item->axes};
  instr.sync.event = access->event;
  instr.sync.region = item->region;
  instr.sync.delta = item->delta;
  instr.sync.parks = parks(a, item);
  instr.sync.away = item->away;
  if (item->position < a->instr_count && a->ops[item->position] != NULL) {
    instr.eqn = a->ops[item->position]->eqn;
    instr.program = a->ops[item->position]->program;
  }
  return instr;
}

static void retarget(ax_instr *instr, const uint32_t *moved) {
  switch (instr->kind) {
    case AX_INSTR_LOOP:
    case AX_INSTR_NEXT:
    case AX_INSTR_TEST:
    case AX_INSTR_JUMP: instr->target = moved[instr->target]; break;
    case AX_INSTR_BRANCH:
      for (uint32_t k = 0; k < instr->branch.count; k++) instr->branch.targets[k] = moved[instr->branch.targets[k]];
      break;
    default: break;
  }
}

/* The new positions of instructions: with the insertions before them, and of the instructions themselves. */
typedef struct places {
  uint32_t *moved, *placed;
} places;

static void fill(ax_assembly *a, const ax_insertion *items, uint32_t count, ax_instr *instrs, const ax_op **ops, places *p) {
  uint32_t n = 0, next = 0;
  for (uint32_t i = 0; i < a->instr_count; i++) {
    p->moved[i] = n;
    for (; next < count && items[next].position == i && items[next].order != AX_SIGNAL_AFTER; next++)
      instrs[n++] = made_of(a, &items[next]);
    p->placed[i] = n;
    ops[n] = a->ops[i];
    instrs[n++] = a->instrs[i];
    for (; next < count && items[next].position == i; next++) instrs[n++] = made_of(a, &items[next]);
  }
  p->moved[a->instr_count] = p->placed[a->instr_count] = n;
}

static void move_along(ax_assembly *a, const places *p) {
  for (uint32_t i = 0; i < a->access_count; i++) a->accesses[i].position = p->placed[a->accesses[i].position];
  for (uint32_t i = 0; i < a->region_count; i++) {
    a->regions[i].begin = p->placed[a->regions[i].begin];
    a->regions[i].end = p->moved[a->regions[i].end];
    a->regions[i].exit = p->moved[a->regions[i].exit];
  }
}

ax_status ax_weave(ax_assembly *a, ax_insertion *items, uint32_t count) {
  uint32_t total = a->instr_count + count;
  ax_instr *instrs = ax_arena_alloc(&a->plan->arena, total * sizeof instrs[0]);
  const ax_op **ops = ax_calloc(total, sizeof ops[0]);
  places p = {ax_calloc(a->instr_count + 1, sizeof p.moved[0]), ax_calloc(a->instr_count + 1, sizeof p.placed[0])};
  bool enough = instrs != NULL && ops != NULL && p.moved != NULL && p.placed != NULL;
  if (enough) {
    if (count > 0) qsort(items, count, sizeof items[0], by_position);
    fill(a, items, count, instrs, ops, &p);
    for (uint32_t i = 0; i < total; i++) retarget(&instrs[i], p.moved);
    move_along(a, &p);
    ax_free(a->instrs);
    ax_free(a->ops);
    a->instrs = instrs; /* in the arena from here on: the executable's */
    a->instr_capacity = 0;
    a->ops = ops;
    a->instr_count = total;
  } else {
    ax_free(ops);
  }
  ax_free(p.moved);
  ax_free(p.placed);
  return enough ? AX_OK : ax_out_of_memory(total * sizeof instrs[0]);
}
