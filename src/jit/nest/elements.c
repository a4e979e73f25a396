#include "jit/nest/elements.h"

#include <string.h>

#include "ir/program.h"
#include "plan/kernel_rewrite.h"

enum { most_steps = 64, most_in_all = 256 }; /* steps of a kernel; elements of all places together */

typedef struct finder {
  const ax_fused_loop *loop;
  bool *can;                   /* by place */
  uint32_t *group;             /* by place: one of those that are held so together, or not: one kernel touches them */
  const ax_loop_kernel **made; /* by step: its kernel in one step; NULL: there is none */
  double *cost;                /* by group: processor cycles that it takes more */
} finder;

static uint32_t root_of(const finder *f, uint32_t place) {
  while (f->group[place] != place) place = f->group[place];
  return place;
}

/* The step's operands that are such places. */
static uint32_t places_of(const finder *f, uint32_t step, uint32_t *out) {
  uint32_t count = 0;
  for (uint32_t k = 0; k < ax_fused_loop_operands(&f->loop->steps[step]); k++)
    if (f->can[f->loop->steps[step].operands[k].place]) out[count++] = f->loop->steps[step].operands[k].place;
  return count;
}

/* Leaves the step's places in memory. */
static void leave(finder *f, uint32_t step) {
  uint32_t places[AX_MAX_SLOTS];
  for (uint32_t i = places_of(f, step, places); i-- > 0;) f->can[places[i]] = false;
}

static bool is_settled(const ax_position *at, uint32_t rank) {
  for (uint32_t d = 0; d < rank; d++)
    if (at[d].dim >= 0 || at[d].dynamic != AX_NONE) return false;
  return true;
}

/* Leaves places of which the kernel computes where it touches them, or does so under a guard. */
static void leave_computed(finder *f, uint32_t step) {
  const ax_loop_kernel *kernel = f->made[step];
  const ax_fused_loop_operand *operands = f->loop->steps[step].operands;
  for (ax_ex node = 0; node < kernel->expr_count; node++) {
    const ax_expr *e = &kernel->exprs[node];
    if (e->op == AX_LEAF_LOAD && (e->arg[0] != AX_NONE || !is_settled(e->at, kernel->slots[e->slot].rank)))
      f->can[operands[e->slot].place] = false;
  }
  for (uint32_t i = 0; i < kernel->store_count; i++) {
    const ax_store *store = &kernel->stores[i];
    if (!is_settled(store->at, kernel->slots[store->slot].rank)) f->can[operands[store->slot].place] = false;
  }
}

static uint32_t operations(const ax_loop_kernel *kernel) {
  uint32_t count = 0;
  for (ax_ex node = 0; node < kernel->expr_count; node++) count += kernel->exprs[node].op < AX_SCALAR_COUNT;
  return count;
}

/* What the step takes more, or less, if it is done in one: two instructions a cycle, of which a vector takes a row; in memory, a wait
   for what was written in other parts; and where the numbers of a row become one, some instructions more, one after the other. */
static double cost_of(const finder *f, uint32_t step, bool waits) {
  enum { wait = 12, combining = 8, combined = 24 };
  const ax_loop_kernel *kernel = f->loop->steps[step].kernel;
  const int64_t row = kernel->rank > 0 ? kernel->dims[kernel->rank - 1] : 1;
  const double rows = (double)(ax_dims_elems(kernel->rank, kernel->dims) / row);
  const bool combines = kernel->reduce_rank > 0 && row > 1;
  const double apart = rows * (operations(kernel) + (combines ? combining : 0)) / 2 + (combines ? combined : 0);
  return 0.5 * operations(f->made[step]) - apart - (waits ? wait : 0);
}

static bool allocate(ax_arena *arena, finder *f) {
  f->can = ax_arena_alloc(arena, f->loop->place_count);
  f->group = ax_arena_alloc(arena, f->loop->place_count * sizeof f->group[0]);
  f->made = ax_arena_alloc(arena, f->loop->step_count * sizeof f->made[0]);
  f->cost = ax_arena_alloc(arena, f->loop->place_count * sizeof f->cost[0]);
  return f->can != NULL && f->group != NULL && f->made != NULL && f->cost != NULL;
}

/* Leaves places that the step moves through with a loop around it: which element that is, is not known here. */
static void leave_moving(finder *f, uint32_t step) {
  for (uint32_t k = 0; k < ax_fused_loop_operands(&f->loop->steps[step]); k++) {
    const ax_fused_loop_operand *operand = &f->loop->steps[step].operands[k];
    if (operand->loop != AX_NONE && operand->step != 0) f->can[operand->place] = false;
  }
}

/* Makes the kernels in one step, and leaves the places of those that cannot be. A kernel made before one of its places is left is still
   good: it goes through memory there, element by element. */
static ax_status unroll(ax_arena *arena, finder *f, const bool *often) {
  uint32_t places[AX_MAX_SLOTS];
  for (uint32_t i = 0; i < f->loop->step_count; i++) {
    const ax_fused_loop_step *step = &f->loop->steps[i];
    ax_loop_kernel *made = NULL;
    leave_moving(f, i);
    if (places_of(f, i, places) == 0) continue;
    if (step->kind == AX_FUSED_LOOP_KERNEL && often[i]) AX_TRY(ax_kernel_unroll(arena, step->kernel, 0, most_steps, &made));
    f->made[i] = made;
    if (made == NULL)
      leave(f, i);
    else
      leave_computed(f, i);
  }
  return AX_OK;
}

/* Whether the step touches a place that stays in vectors. */
static bool needs_vectors(const finder *f, uint32_t step, const bool *in_memory) {
  for (uint32_t k = 0; k < ax_fused_loop_operands(&f->loop->steps[step]); k++) {
    const uint32_t place = f->loop->steps[step].operands[k].place;
    if (!f->can[place] && !in_memory[place] && f->loop->places[place].elems > 1) return true;
  }
  return false;
}

/* Kernels that need vectors are left as they are, with all their places, which others may touch. */
static void leave_vectors(finder *f, const bool *in_memory) {
  uint32_t places[AX_MAX_SLOTS];
  for (bool more = true; more;) {
    more = false;
    for (uint32_t i = 0; i < f->loop->step_count; i++) {
      if (places_of(f, i, places) == 0 || !needs_vectors(f, i, in_memory)) continue;
      leave(f, i);
      more = true;
    }
  }
}

/* Places that one kernel touches are held so together. */
static void find_groups(finder *f, const bool *in_memory) {
  uint32_t places[AX_MAX_SLOTS];
  for (uint32_t p = 0; p < f->loop->place_count; p++) f->group[p] = p;
  for (uint32_t i = 0; i < f->loop->step_count; i++)
    for (uint32_t count = places_of(f, i, places), k = 1; k < count; k++) f->group[root_of(f, places[k])] = root_of(f, places[0]);
  for (uint32_t i = 0; i < f->loop->step_count; i++) {
    bool waits = false;
    const uint32_t count = places_of(f, i, places);
    for (uint32_t k = 0; k < count; k++) waits = waits || in_memory[places[k]];
    if (count > 0) f->cost[root_of(f, places[0])] += cost_of(f, i, waits);
  }
}

ax_status ax_fused_loop_by_elements(ax_arena *arena, const ax_fused_loop *fused_loop, const bool *in_memory, const bool *often,
                                    bool *held, bool *changed, ax_fused_loop **out) {
  finder f = {.loop = fused_loop};
  uint32_t elements = 0, places[AX_MAX_SLOTS];
  bool any = false;
  ax_fused_loop_step *steps = ax_arena_copy(arena, fused_loop->steps, fused_loop->step_count * sizeof steps[0]);
  *out = ax_arena_copy(arena, fused_loop, sizeof **out);
  if (!allocate(arena, &f) || steps == NULL || *out == NULL) return ax_out_of_memory(fused_loop->step_count * sizeof steps[0]);
  (*out)->steps = steps;
  for (uint32_t p = 0; p < fused_loop->place_count; p++) {
    f.can[p] = fused_loop->places[p].elems > 1 && fused_loop->places[p].elems <= AX_FUSED_LOOP_ELEMENTS;
    any = any || (f.can[p] && in_memory[p]);
  }
  if (!any) return AX_OK;
  AX_TRY(unroll(arena, &f, often));
  leave_vectors(&f, in_memory);
  find_groups(&f, in_memory);
  for (uint32_t p = 0; p < fused_loop->place_count; p++) {
    held[p] = f.can[p] && f.cost[root_of(&f, p)] < 0;
    if (held[p]) elements += fused_loop->places[p].elems;
  }
  if (elements > most_in_all) memset(held, 0, fused_loop->place_count);
  for (uint32_t i = 0; i < fused_loop->step_count; i++) {
    if (f.made[i] == NULL || places_of(&f, i, places) == 0 || !held[places[0]]) continue;
    steps[i].kernel = f.made[i];
    changed[i] = true;
  }
  return AX_OK;
}
