/* A kernel's dimensions become loops: dimensions of size 1 vanish, and neighbours become one if every access steps through them
   evenly.

     y[i, j, 0] = x[i, j] + b[j]           two loops, for i and j; without b it is one, over all of x

   Strides are by dimension of the kernel until loops are made, and by loop afterwards. Only accesses that some store needs are
   live. The dependences of nodes are in terms of loops, and are found again when loops change places. */
#include <string.h>

#include "jit/nest/schedule.h"
#include "plan/kernel_rewrite.h"

/* --- What is needed --- */

static void mark_starts(bool *marks, const ax_position *at, uint32_t rank) {
  for (uint32_t d = 0; d < rank; d++)
    if (at[d].dynamic != AX_NONE) marks[at[d].dynamic] = true;
}

void ax_nest_schedule_mark_live(ax_nest_schedule *s) {
  const ax_loop_kernel *kernel = s->kernel;
  for (uint32_t i = 0; i < kernel->store_count; i++) {
    s->live[kernel->stores[i].expr] = true;
    mark_starts(s->live, kernel->stores[i].at, kernel->slots[kernel->stores[i].slot].rank);
    mark_starts(s->still, kernel->stores[i].at, kernel->slots[kernel->stores[i].slot].rank);
  }
  ax_kernel_needs(kernel, s->still);
  for (ax_ex id = kernel->expr_count; id-- > 0;) {
    const ax_expr *expr = &kernel->exprs[id];
    if (!s->live[id]) continue;
    for (int i = 0; i < ax_scalar_arity(expr->op); i++) s->live[expr->arg[i]] = true;
    if (expr->op != AX_LEAF_LOAD) continue;
    mark_starts(s->live, expr->at, kernel->slots[expr->slot].rank);
    if (expr->arg[0] != AX_NONE) s->live[expr->arg[0]] = true;
  }
}

/* Strides by kernel dimension, until loops are made. */
static ax_nest_access make_access(const ax_loop_kernel *kernel, uint32_t slot, const ax_position *at, ax_ex guard) {
  ax_nest_access access = {.live = true, .slot = slot, .guard = guard, .at = at};
  int64_t pitch = 1;
  for (uint32_t d = kernel->slots[slot].rank; d-- > 0; pitch *= kernel->slots[slot].dims[d]) {
    access.offset += at[d].offset * pitch;
    if (at[d].dim >= 0) access.stride[at[d].dim] += at[d].coef * pitch;
  }
  return access;
}

/* A dimension of one index moves nothing, but has a loop if it is the one of which calls do a range. Where a store starts must be
   known before all loops: in table[p[i]] = x, for the only i, p[i] is. */
static void keep_still(const ax_loop_kernel *kernel, ax_nest_access *access) {
  for (uint32_t d = 0; d < kernel->rank; d++)
    if (kernel->dims[d] == 1) access->stride[d] = 0;
}

static void make_accesses(ax_nest_schedule *s) {
  const ax_loop_kernel *kernel = s->kernel;
  for (ax_ex id = 0; id < kernel->expr_count; id++) {
    const ax_expr *expr = &kernel->exprs[id];
    if (!s->live[id] || expr->op != AX_LEAF_LOAD) continue;
    s->accesses[id] = make_access(kernel, expr->slot, expr->at, expr->arg[0]);
    if (s->still[id]) keep_still(kernel, &s->accesses[id]);
  }
  for (uint32_t i = 0; i < kernel->store_count; i++)
    *ax_nest_schedule_store(s, i) = make_access(kernel, kernel->stores[i].slot, kernel->stores[i].at, AX_NONE);
}

/* --- Dimensions to loops --- */

static bool index_used(const ax_nest_schedule *s, uint32_t dim) {
  for (ax_ex id = 0; id < s->kernel->expr_count; id++)
    if (s->live[id] && s->kernel->exprs[id].op == AX_LEAF_INDEX && s->kernel->exprs[id].imm == dim) return true;
  return false;
}

static bool is_guard(const ax_nest_schedule *s, ax_ex id) { return s->live[id] && s->kernel->exprs[id].op == AX_LEAF_INSIDE; }

static bool guard_used(const ax_nest_schedule *s, uint32_t dim) {
  for (ax_ex id = 0; id < s->kernel->expr_count; id++)
    if (is_guard(s, id) && s->kernel->exprs[id].at->dim == (int)dim) return true;
  return false;
}

static int64_t divide_down(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

/* The indices in which a guard holds, of those there are. */
static ax_stretch stretch_of(const ax_loop_kernel *kernel, const ax_expr *guard) {
  int64_t coef = guard->at->dim < 0 ? 0 : guard->at->coef, offset = guard->at->offset,
          extent = guard->at->dim < 0 ? 1 : kernel->dims[guard->at->dim];
  if (coef == 0) return (ax_stretch){0, offset >= 0 && offset < guard->imm ? extent : 0};
  int64_t first = coef > 0 ? -divide_down(offset, coef) : divide_down(offset - guard->imm, -coef) + 1;
  int64_t end = coef > 0 ? -divide_down(offset - guard->imm, coef) : divide_down(offset, -coef) + 1;
  if (first < 0) first = 0;
  if (end > extent) end = extent;
  return (ax_stretch){first, end < first ? first : end};
}

static void find_stretches(ax_nest_schedule *s) {
  for (ax_ex id = 0; id < s->kernel->expr_count; id++)
    if (is_guard(s, id)) s->stretches[id] = stretch_of(s->kernel, &s->kernel->exprs[id]);
}

/* Each iteration of the loop has become so many. */
static void scale_stretches(ax_nest_schedule *s, uint32_t loop, int64_t by) {
  for (ax_ex id = 0; id < s->kernel->expr_count; id++) {
    if (!is_guard(s, id)) continue;
    int dim = s->kernel->exprs[id].at->dim;
    if (dim < 0 || s->loop_of_dim[dim] != (int)loop) continue;
    s->stretches[id].first *= by;
    s->stretches[id].end *= by;
  }
}

/* The outer of two neighbours steps exactly over the inner one, in every access. */
static bool linear_across(const ax_nest_schedule *s, uint32_t outer, uint32_t inner, int64_t inner_extent) {
  for (uint32_t a = 0; a < ax_nest_schedule_access_count(s); a++) {
    const ax_nest_access *access = &s->accesses[a];
    if (access->live && access->stride[outer] != access->stride[inner] * inner_extent) return false;
  }
  return true;
}

/* Along a dimension of one index nothing moves: what is there is computed once, and not in a vector of its own. */
static void keep_in_place(ax_nest_schedule *s, uint32_t dim) {
  for (uint32_t a = 0; a < ax_nest_schedule_access_count(s); a++) s->accesses[a].stride[dim] = 0;
}

static void rename_dim(ax_nest_schedule *s, uint32_t dim, uint32_t loop) {
  for (uint32_t a = 0; a < ax_nest_schedule_access_count(s); a++) {
    ax_nest_access *access = &s->accesses[a];
    int64_t stride = access->stride[dim];
    access->stride[dim] = 0;
    access->stride[loop] = stride;
  }
  s->loop_of_dim[dim] = (int)loop;
}

/* A first dimension of size 1 needs no loop of its own when the next loop can carry its range. */
static bool range_moves_on(const ax_nest_schedule *s, const ax_loop *first, const ax_loop *next) {
  return first->ranged && first->extent == 1 && first->reduced == next->reduced && s->loop_count == 1;
}

/* Loops are written over the front of the dimensions already read: loop_count <= d throughout. */
void ax_nest_schedule_make_loops(ax_nest_schedule *s) {
  const ax_loop_kernel *kernel = s->kernel;
  bool last_has_index = false;
  make_accesses(s);
  for (uint32_t d = 0; d < kernel->rank; d++) s->loop_of_dim[d] = -1;
  find_stretches(s);
  uint32_t parallel = kernel->rank - kernel->reduce_rank;
  for (uint32_t d = 0; d < kernel->rank; d++) {
    bool reduced = s->reduces && d >= parallel, has_index = index_used(s, d);
    ax_loop loop = {.extent = kernel->dims[d], .scale = 1, .reduced = reduced, .ranged = d == kernel->ranged && d < parallel};
    s->loop_of_dim[d] = -1;
    if (loop.extent == 1 && !s->reduces) keep_in_place(s, d);
    if (loop.extent == 1 && !loop.ranged) continue;
    ax_loop *last = &s->loops[s->loop_count > 0 ? s->loop_count - 1 : 0];
    if (s->loop_count > 0 && range_moves_on(s, last, &loop)) {
      loop.ranged = true;
      loop.scale = loop.extent;
      s->loop_count = 0;
      last_has_index = false;
      for (uint32_t i = 0; i < d; i++) s->loop_of_dim[i] = -1;
    } else if (s->loop_count > 0 && last->reduced == reduced && !loop.ranged && !has_index && !last_has_index &&
               !guard_used(s, d) && linear_across(s, s->loop_count - 1, d, loop.extent)) {
      scale_stretches(s, s->loop_count - 1, loop.extent);
      loop.ranged = last->ranged;
      loop.scale = last->scale * loop.extent;
      loop.extent *= last->extent;
      s->loop_count--;
    }
    rename_dim(s, d, s->loop_count);
    if (kernel->dims[d] == 1) s->loop_of_dim[d] = -1;
    s->loops[s->loop_count++] = loop;
    last_has_index = has_index;
  }
  if (s->loop_count == 0) s->loops[s->loop_count++] = (ax_loop){.extent = 1, .scale = 1};
}

/* --- The loops that nodes depend on --- */

uint64_t ax_access_deps(const ax_nest_schedule *s, const ax_nest_access *access) {
  uint64_t deps = 0;
  for (uint32_t l = 0; l < s->loop_count; l++)
    if (access->stride[l] != 0 || access->uneven[l] != 0) deps |= (uint64_t)1 << l;
  return deps;
}

uint64_t ax_access_starts(const ax_nest_schedule *s, const ax_nest_access *access) {
  uint64_t loops = 0;
  for (uint32_t d = 0; d < s->kernel->slots[access->slot].rank; d++)
    if (access->at[d].dynamic != AX_NONE) loops |= s->deps[access->at[d].dynamic];
  return loops;
}

void ax_nest_schedule_find_deps(ax_nest_schedule *s) {
  for (ax_ex id = 0; id < s->kernel->expr_count; id++) {
    const ax_expr *expr = &s->kernel->exprs[id];
    s->deps[id] = 0;
    if (!s->live[id]) continue;
    if (expr->op == AX_LEAF_LOAD) {
      s->accesses[id].moved = ax_access_starts(s, &s->accesses[id]); /* of earlier nodes, whose loops are known */
      s->deps[id] = ax_access_deps(s, &s->accesses[id]) | s->accesses[id].moved;
      if (expr->arg[0] != AX_NONE) s->deps[id] |= s->deps[expr->arg[0]];
    }
    if (expr->op == AX_LEAF_INSIDE && expr->at->dim >= 0 && s->loop_of_dim[expr->at->dim] >= 0)
      s->deps[id] = (uint64_t)1 << s->loop_of_dim[expr->at->dim];
    if (expr->op == AX_LEAF_INDEX && s->loop_of_dim[expr->imm] >= 0)
      s->deps[id] = (uint64_t)1 << s->loop_of_dim[expr->imm];
    for (int i = 0; i < ax_scalar_arity(expr->op); i++) s->deps[id] |= s->deps[expr->arg[i]];
  }
}
