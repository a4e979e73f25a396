/* See over_steps.h. */
#include "plan/over_steps.h"

#include <string.h>

#include "plan/fuse_worth.h"
#include "plan/index_map.h"
#include "plan/kernel_range.h"

typedef struct maker {
  const ax_bound *from;
  ax_bound to;
  const ax_step_slot *slots;
  const ax_views *views;
  ax_ex *map;               /* by from's nodes */
  int dim[2 * AX_MAX_RANK]; /* by from's loops: that of `to`; -1: of one step, which goes */
  bool failed;              /* there is no such kernel */
} maker;

static bool has_failed(const maker *m) { return m->failed || m->to.kernel->failed; }

static uint32_t slot_of(maker *m, uint32_t buffer, ax_dtype dtype, uint32_t rank, const int64_t *dims) {
  ax_loop_kernel *to = m->to.kernel;
  for (uint32_t i = 0; i < to->slot_count; i++)
    if (m->to.buffers[i] == buffer) return i;
  m->failed = m->failed || to->slot_count == AX_MOST_SLOTS;
  const uint32_t slot = has_failed(m) ? 0 : ax_kernel_slot(to, dtype, rank, dims);
  if (!has_failed(m)) m->to.buffers[slot] = buffer;
  return slot;
}

/* --- Places --- */

/* The position in terms of the loops of `to`. What is computed and is a number by the loops alone, which no clamp changes, becomes one:
   *number. False: it stays as it is, in *at. */
static bool number_of(const maker *m, const ax_position *from, ax_position *at, ax_affine *number) {
  const ax_loop_kernel *to = m->to.kernel;
  *at = *from;
  *number = (ax_affine){0};
  if (at->dim >= 0) at->dim = m->dim[at->dim];
  if (at->dynamic != AX_NONE) {
    at->dynamic = m->map[at->dynamic];
    const ax_integers range = ax_kernel_range(to, at->dynamic);
    if (!range.is || range.low < 0 || range.high > at->limit || !ax_affine_node(to, at->dynamic, number)) return false;
  }
  number->offset += at->offset;
  if (at->dim >= 0) number->coef[at->dim] += at->coef;
  return true;
}

/* The number as a position of at most one loop index; false: it has more. */
static bool as_position(const ax_loop_kernel *to, const ax_affine *number, ax_position *at) {
  *at = (ax_position){.dim = -1, .offset = number->offset, .dynamic = AX_NONE};
  for (uint32_t d = 0; d < to->rank; d++) {
    if (number->coef[d] == 0) continue;
    if (at->dim >= 0) return false;
    at->dim = (int)d, at->coef = number->coef[d];
  }
  return true;
}

/* An array of the same memory in which each place has one index, as rows of b at b * step + i have in [steps, b, ..]. */
static uint32_t slot_of_rows(maker *m, uint32_t from_slot, const ax_affine *numbers, ax_position *at) {
  const ax_loop_kernel *to = m->to.kernel;
  const ax_slot *array = &m->from->kernel->slots[from_slot];
  const int64_t elems = ax_dims_elems(array->rank, array->dims);
  int64_t dims[AX_MAX_RANK], pitch = 1;
  ax_affine address = {0};
  uint32_t rank;
  for (uint32_t d = array->rank; d-- > 0; pitch *= array->dims[d]) {
    address.offset += pitch * numbers[d].offset;
    for (uint32_t l = 0; l < to->rank; l++) address.coef[l] += pitch * numbers[d].coef[l];
  }
  m->failed = m->failed || !ax_affine_array(&address, to->rank, to->dims, elems, &rank, dims, at);
  if (has_failed(m)) return 0;
  const uint32_t view = m->views->make(m->views->context, m->from->buffers[from_slot], rank, dims);
  m->to.kernel->failed = m->to.kernel->failed || view == AX_NONE;
  return has_failed(m) ? 0 : slot_of(m, view, array->dtype, rank, dims);
}

/* The step's own array, as a position in that of all steps. */
static uint32_t slot_of_own(maker *m, uint32_t from_slot, ax_position *at) {
  const ax_slot *array = &m->from->kernel->slots[from_slot];
  const ax_step_slot *own = &m->slots[from_slot];
  ax_position first = {.dim = 0, .coef = 1, .dynamic = AX_NONE};
  int64_t dims[AX_MAX_RANK] = {m->to.kernel->dims[0]};
  uint32_t rank = 1;
  if (own->use == AX_STEP_OWN_BACK) first.coef = -1, first.offset = dims[0] - 1;
  for (uint32_t d = 0; d < array->rank && rank < AX_MAX_RANK; d++) {
    const ax_position one = at[d];
    if (array->dims[d] == 1) continue;
    at[rank - 1] = first, first = one; /* each moves by one place */
    dims[rank++] = array->dims[d];
  }
  at[rank - 1] = first;
  return slot_of(m, own->buffer, array->dtype, rank, dims);
}

/* The slot of `to` for one of from's, and the places in it. */
static uint32_t slot_and_at(maker *m, uint32_t from_slot, const ax_position *from, ax_position *at) {
  const ax_slot *array = &m->from->kernel->slots[from_slot];
  ax_affine numbers[AX_MAX_RANK];
  bool known = true, alone = true;
  for (uint32_t d = 0; d < array->rank; d++) {
    ax_position one;
    const bool is = number_of(m, &from[d], &at[d], &numbers[d]);
    known = known && is;
    if (is && as_position(m->to.kernel, &numbers[d], &one))
      at[d] = one;
    else
      alone = alone && !is;
  }
  if (m->slots[from_slot].use != AX_STEP_SAME) {
    m->failed = m->failed || !alone;
    return slot_of_own(m, from_slot, at);
  }
  if (known && !alone) return slot_of_rows(m, from_slot, numbers, at);
  m->failed = m->failed || !alone;
  return slot_of(m, m->from->buffers[from_slot], array->dtype, array->rank, array->dims);
}

/* --- Nodes --- */

static ax_ex number_node(maker *m, const ax_step_slot *number, ax_dtype dtype) {
  ax_loop_kernel *to = m->to.kernel;
  const ax_ex each = ax_kernel_const(to, AX_S64, number->each),
              times = ax_kernel_op(to, AX_SCALAR_MUL, AX_S64, ax_kernel_index(to, 0), each, AX_NONE),
              sum = ax_kernel_op(to, AX_SCALAR_ADD, AX_S64, times, ax_kernel_const(to, AX_S64, number->first), AX_NONE);
  return dtype == AX_S64 ? sum : ax_kernel_op(to, AX_SCALAR_CONVERT, dtype, sum, AX_NONE, AX_NONE);
}

static ax_ex load_node(maker *m, const ax_expr *expr) {
  ax_loop_kernel *to = m->to.kernel;
  const ax_step_slot *slot = &m->slots[expr->slot];
  ax_position at[AX_MAX_RANK + 1];
  if (slot->use == AX_STEP_NUMBER) return number_node(m, slot, expr->dtype);
  if (slot->use == AX_STEP_CONSTANT) return ax_kernel_const(to, expr->dtype, slot->first);
  const uint32_t made = slot_and_at(m, expr->slot, expr->at, at);
  return has_failed(m) ? 0 : ax_kernel_load_where(to, made, at, expr->arg[0] != AX_NONE ? m->map[expr->arg[0]] : AX_NONE);
}

static ax_ex node_of(maker *m, const ax_expr *expr) {
  ax_loop_kernel *to = m->to.kernel;
  ax_ex arg[3];
  for (int k = 0; k < 3; k++) arg[k] = expr->arg[k] != AX_NONE ? m->map[expr->arg[k]] : AX_NONE;
  switch (expr->op) {
    case AX_LEAF_CONST:
    case AX_LEAF_AXIS: return ax_kernel_op_imm(to, expr->op, expr->dtype, AX_NONE, expr->imm);
    case AX_LEAF_INDEX:
      return m->dim[expr->imm] < 0 ? ax_kernel_const(to, AX_S64, 0) : ax_kernel_index(to, (uint32_t)m->dim[expr->imm]);
    case AX_LEAF_INSIDE:
      return ax_kernel_inside(to, expr->at->dim >= 0 ? m->dim[expr->at->dim] : -1, expr->at->coef, expr->at->offset, expr->imm);
    case AX_LEAF_LOAD: return load_node(m, expr);
    case AX_LEAF_GIVEN: m->failed = true; return 0;
    default: break;
  }
  m->failed = m->failed || (ax_scalar_arity(expr->op) == 2 && expr->imm != 0); /* contracted (plan/contract.h) */
  return ax_kernel_op_like(to, expr, arg);
}

static void make_store(maker *m, const ax_store *store) {
  ax_position at[AX_MAX_RANK + 1];
  const uint32_t slot = slot_and_at(m, store->slot, store->at, at);
  if (has_failed(m)) return;
  for (uint32_t d = 0; d < m->to.kernel->slots[slot].rank; d++) m->failed = m->failed || at[d].dynamic != AX_NONE;
  if (!m->failed) ax_kernel_store(m->to.kernel, slot, at, m->map[store->expr], store->reduce);
}

/* Without nodes yet, but with the step before its dimensions, of which those of one step go. */
static ax_status begin(maker *m, ax_arena *arena, int64_t steps) {
  const ax_loop_kernel *from = m->from->kernel;
  int64_t dims[2 * AX_MAX_RANK + 1] = {steps};
  uint32_t rank = 1;
  for (uint32_t d = 0; d < from->rank; d++) {
    const bool goes = from->dims[d] == 1 && d < from->rank - from->reduce_rank;
    m->dim[d] = goes ? -1 : (int)rank;
    if (!goes) dims[rank++] = from->dims[d];
  }
  m->map = ax_arena_alloc(arena, (from->expr_count + 1) * sizeof m->map[0]);
  m->to.buffers = ax_arena_alloc(arena, AX_MOST_SLOTS * sizeof m->to.buffers[0]);
  m->to.kernel = ax_kernel_create(arena, rank, from->reduce_rank, dims);
  if (m->map == NULL || m->to.buffers == NULL || m->to.kernel == NULL) return ax_out_of_memory(0);
  m->to.kernel->running = from->running;
  return AX_OK;
}

ax_status ax_kernel_over_steps(ax_arena *arena, const ax_bound *kernel, int64_t steps, const ax_step_slot *slots,
                               const bool *dropped, const ax_views *views, ax_bound *out) {
  const ax_loop_kernel *from = kernel->kernel;
  maker m = {.from = kernel, .slots = slots, .views = views};
  *out = (ax_bound){NULL, NULL};
  if (from->rank >= AX_MAX_RANK || from->expr_count > AX_MOST_EXPRS) return AX_OK;
  AX_TRY(begin(&m, arena, steps));
  for (uint32_t i = 0; i < from->expr_count && !has_failed(&m); i++) m.map[i] = node_of(&m, &from->exprs[i]);
  for (uint32_t i = 0; i < from->store_count && !has_failed(&m); i++)
    if (dropped == NULL || !dropped[i]) make_store(&m, &from->stores[i]);
  if (m.to.kernel->failed) return ax_out_of_memory(0);
  if (!m.failed && m.to.kernel->expr_count <= AX_MOST_EXPRS) *out = m.to;
  return AX_OK;
}

bool ax_over_steps_known(const ax_loop_kernel *kernel, ax_ex node, ax_step_slot *out) {
  const ax_expr *expr = &kernel->exprs[node];
  ax_affine number;
  if (expr->op == AX_LEAF_CONST) {
    *out = (ax_step_slot){.use = AX_STEP_CONSTANT, .first = expr->imm};
    return true;
  }
  if (!ax_affine_node(kernel, node, &number)) return false;
  for (uint32_t d = 1; d < kernel->rank; d++)
    if (number.coef[d] != 0) return false;
  *out = (ax_step_slot){.use = AX_STEP_NUMBER, .first = number.offset, .each = number.coef[0]};
  return true;
}
