/* See kernel_order.h. */
#include "plan/kernel_order.h"

#include <string.h>

#include "ir/program.h"

enum { most_dims = 2 * AX_MAX_RANK };

/* How many elements lie between those of neighbouring steps along each dimension. What is looked up lies anywhere. */
static void find_strides(const ax_loop_kernel *kernel, const ax_expr *load, int64_t *strides) {
  const ax_slot *array = &kernel->slots[load->slot];
  int64_t pitch = 1;
  memset(strides, 0, most_dims * sizeof strides[0]);
  for (uint32_t d = array->rank; d-- > 0; pitch *= array->dims[d])
    if (load->at[d].dim >= 0) strides[load->at[d].dim] += pitch * load->at[d].coef;
  for (uint32_t d = 0; d < kernel->rank; d++)
    if (strides[d] < 0) strides[d] = -strides[d];
}

static int64_t elems_of(const ax_loop_kernel *kernel, const int64_t *strides) {
  int64_t elems = 1;
  for (uint32_t d = 0; d < kernel->rank; d++)
    if (strides[d] != 0) elems *= kernel->dims[d];
  return elems;
}

/* The strides of the load that goes over the most elements. False: none goes over many more than there are results. */
static bool find_longest(const ax_loop_kernel *kernel, int64_t *strides) {
  enum { many = 4 };
  int64_t most = 0, other[most_dims];
  for (ax_ex e = 0; e < kernel->expr_count; e++) {
    if (kernel->exprs[e].op != AX_LEAF_LOAD) continue;
    find_strides(kernel, &kernel->exprs[e], other);
    const int64_t elems = elems_of(kernel, other);
    if (elems <= most) continue;
    most = elems;
    memcpy(strides, other, sizeof other);
  }
  return most >= many * ax_dims_elems(kernel->rank - kernel->reduce_rank, kernel->dims);
}

typedef struct maker {
  const ax_loop_kernel *from;
  ax_loop_kernel *to;
  const int *dim; /* by from's dimensions: that of `to` */
  ax_ex *map;
} maker;

static void turn_places(const maker *m, const ax_position *from, uint32_t count, ax_position *at) {
  for (uint32_t d = 0; d < count; d++) {
    at[d] = from[d];
    if (at[d].dim >= 0) at[d].dim = m->dim[at[d].dim];
    if (at[d].dynamic != AX_NONE) at[d].dynamic = m->map[at[d].dynamic];
  }
}

static ax_ex node_of(const maker *m, const ax_expr *expr) {
  ax_position at[AX_MAX_RANK];
  ax_ex arg[3];
  for (int k = 0; k < 3; k++) arg[k] = expr->arg[k] != AX_NONE ? m->map[expr->arg[k]] : AX_NONE;
  switch (expr->op) {
    case AX_LEAF_CONST:
    case AX_LEAF_AXIS:
      return ax_kernel_op_imm(m->to, expr->op, expr->dtype, AX_NONE, expr->imm);
    case AX_LEAF_INDEX:
      return ax_kernel_index(m->to, (uint32_t)m->dim[expr->imm]);
    case AX_LEAF_INSIDE:
      return ax_kernel_inside(m->to, expr->at->dim >= 0 ? m->dim[expr->at->dim] : -1, expr->at->coef, expr->at->offset, expr->imm);
    case AX_LEAF_LOAD:
      turn_places(m, expr->at, m->from->slots[expr->slot].rank, at);
      return ax_kernel_load_where(m->to, expr->slot, at, arg[0]);
    default:
      return ax_kernel_op_like(m->to, expr, arg);
  }
}

static ax_loop_kernel *turned(ax_arena *arena, const ax_loop_kernel *from, const int *dim) {
  int64_t dims[most_dims];
  ax_position at[AX_MAX_RANK];
  for (uint32_t d = 0; d < from->rank; d++) dims[dim[d]] = from->dims[d];
  maker m = {from, ax_kernel_create(arena, from->rank, from->reduce_rank, dims), dim,
             ax_arena_alloc(arena, (from->expr_count + 1) * sizeof m.map[0])};
  if (m.to == NULL || m.map == NULL) return NULL;
  for (uint32_t s = 0; s < from->slot_count; s++)
    ax_kernel_slot(m.to, from->slots[s].dtype, from->slots[s].rank, from->slots[s].dims);
  for (ax_ex e = 0; e < from->expr_count && !m.to->failed; e++) m.map[e] = node_of(&m, &from->exprs[e]);
  for (uint32_t s = 0; s < from->store_count && !m.to->failed; s++) {
    const ax_store *store = &from->stores[s];
    turn_places(&m, store->at, from->slots[store->slot].rank, at);
    ax_kernel_store(m.to, store->slot, at, m.map[store->expr], store->reduce);
  }
  return m.to->failed ? NULL : m.to;
}

ax_loop_kernel *ax_kernel_in_memory_order(ax_arena *arena, ax_loop_kernel *kernel) {
  const uint32_t outer = kernel->rank - kernel->reduce_rank;
  int64_t strides[most_dims];
  uint32_t order[most_dims];
  int dim[most_dims];
  bool same = true;
  if (kernel->reduce_rank == 0 || kernel->running || outer < 2 || !find_longest(kernel, strides)) return kernel;
  for (uint32_t d = 0; d < kernel->rank; d++) {
    uint32_t at = d;
    for (; at > 0 && d < outer && strides[order[at - 1]] < strides[d] && strides[d] != 0; at--) order[at] = order[at - 1];
    order[at] = d;
  }
  for (uint32_t at = 0; at < kernel->rank; at++) dim[order[at]] = (int)at, same = same && order[at] == at;
  return same ? kernel : turned(arena, kernel, dim);
}
