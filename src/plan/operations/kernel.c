/* A kernel as an operation.

   Invariants: slots are like the buffers they stand for; operands come before their users; every place loaded or stored is inside;
   where a kernel stores depends on loop indices only as its positions say. */
#include <string.h>

#include "plan/kernel_rewrite.h"
#include "plan/op.h"

static void visit_all(const ax_op *op, ax_visit visit, void *context) {
  const ax_loop_kernel *kernel = op->kernel.kernel;
  for (uint32_t i = 0; i < kernel->expr_count; i++)
    if (kernel->exprs[i].op == AX_LEAF_LOAD) visit(context, op->kernel.buffers[kernel->exprs[i].slot], false);
  for (uint32_t i = 0; i < kernel->store_count; i++) visit(context, op->kernel.buffers[kernel->stores[i].slot], true);
}

/* Whether a store leaves elements of its array as they were. */
static bool stores_part(const ax_loop_kernel *kernel, const ax_store *store) {
  for (uint32_t d = 0; d < kernel->slots[store->slot].rank; d++)
    if (store->at[d].dynamic != AX_NONE || store->at[d].offset != 0) return true;
  const ax_slot *slot = &kernel->slots[store->slot];
  return kernel->reduce_rank == 0 && ax_dims_elems(kernel->rank, kernel->dims) < ax_dims_elems(slot->rank, slot->dims);
}

static void visit_updated(const ax_op *op, ax_visit visit, void *context) {
  const ax_loop_kernel *kernel = op->kernel.kernel;
  for (uint32_t i = 0; i < kernel->store_count; i++)
    if (stores_part(kernel, &kernel->stores[i])) visit(context, op->kernel.buffers[kernel->stores[i].slot], true);
}

static uint32_t stored(const ax_op *op) { return op->kernel.buffers[op->kernel.kernel->stores[0].slot]; }

static void text_of(ax_text *text, const ax_plan *plan, const ax_op *op, int indent) {
  (void)plan, (void)indent;
  ax_buffers_text(text, "kernel of", op->kernel.buffers, op->kernel.kernel->slot_count);
  ax_text_add(text, ", ");
  ax_kernel_text(text, op->kernel.kernel);
}

static double time_of(const ax_plan *plan, const ax_op *op) {
  (void)plan;
  return 20 + ax_kernel_time(op->kernel.kernel);
}

static ax_amount amount_of(const ax_plan *plan, const ax_op *op) {
  (void)plan;
  return ax_kernel_amount(op->kernel.kernel);
}

/* Kernels name no buffers, so all copies share them; a pass copies a kernel before it changes it. */
static ax_status rename_all(const ax_op_renaming *r, ax_op *op) {
  return ax_op_rename_list(r, r->lists, &op->kernel.buffers, op->kernel.kernel->slot_count);
}

/* --- NaNs and infinities --- */

/* Whether the scalar operation gives neither NaN nor infinity if its operands are finite. */
static bool keeps_finite(ax_scalar op) {
  switch (op) {
    case AX_SCALAR_MAX:
    case AX_SCALAR_MIN:
    case AX_SCALAR_NEG:
    case AX_SCALAR_ABS:
    case AX_SCALAR_SIGN:
    case AX_SCALAR_FLOOR:
    case AX_SCALAR_CEIL:
    case AX_SCALAR_ROUND_NEAREST_EVEN:
    case AX_SCALAR_ROUND_NEAREST_AFZ:
    case AX_SCALAR_SIN:
    case AX_SCALAR_COS:
    case AX_SCALAR_TANH:
    case AX_SCALAR_LOGISTIC:
    case AX_SCALAR_ERF:
    case AX_SCALAR_CBRT:
    case AX_SCALAR_ATAN:
    case AX_SCALAR_ATAN2:
    case AX_SCALAR_ASINH:
    case AX_SCALAR_ERFC:
    case AX_SCALAR_BESSEL_I0E:
    case AX_SCALAR_BESSEL_I1E:
    case AX_SCALAR_SELECT: return true;
    default: return op >= AX_SCALAR_COUNT; /* loads, constants, indices */
  }
}

static bool makes_nonfinite(const ax_op *op) {
  const ax_loop_kernel *kernel = op->kernel.kernel;
  for (uint32_t i = 0; i < kernel->expr_count; i++)
    if (ax_is_float(kernel->exprs[i].dtype) && !keeps_finite(kernel->exprs[i].op)) return true;
  for (uint32_t i = 0; i < kernel->store_count; i++) {
    ax_scalar reduce = kernel->stores[i].reduce;
    if (ax_is_float(kernel->slots[kernel->stores[i].slot].dtype) && (reduce == AX_SCALAR_ADD || reduce == AX_SCALAR_MUL))
      return true;
  }
  return false;
}

/* --- Invariants --- */

static int64_t divide_down(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

/* The steps first .. last of loop index `dim` in which a guard may hold. */
static void narrow(const ax_loop_kernel *kernel, ax_ex guard, int dim, int64_t *first, int64_t *last) {
  if (guard == AX_NONE) return;
  const ax_expr *expr = &kernel->exprs[guard];
  if (expr->op == AX_SCALAR_AND) {
    narrow(kernel, expr->arg[0], dim, first, last);
    narrow(kernel, expr->arg[1], dim, first, last);
  }
  if (expr->op != AX_LEAF_INSIDE || expr->at->dim != dim || expr->at->coef == 0) return;
  int64_t coef = expr->at->coef, at_0 = -expr->at->offset, at_end = expr->imm - 1 - expr->at->offset;
  int64_t low = -divide_down(-(coef > 0 ? at_0 : at_end), coef), high = divide_down(coef > 0 ? at_end : at_0, coef);
  if (low > *first) *first = low;
  if (high < *last) *last = high;
}

/* The places that the static part of a position takes, where the guard holds. False: it never does. */
static bool range_of(const ax_loop_kernel *kernel, const ax_position *at, ax_ex guard, int64_t *low, int64_t *high) {
  int64_t first = 0, last = at->dim < 0 || kernel->dims[at->dim] == 0 ? 0 : kernel->dims[at->dim] - 1,
          coef = at->dim < 0 ? 0 : at->coef;
  if (at->dim >= 0) narrow(kernel, guard, at->dim, &first, &last);
  if (last < first) return false;
  *low = at->offset + coef * (coef < 0 ? last : first);
  *high = at->offset + coef * (coef < 0 ? first : last);
  return true;
}

/* `before`: nodes that a dynamic position may be. */
static ax_status check_position(const ax_loop_kernel *kernel, uint32_t slot, const ax_position *at, ax_ex guard, ax_ex before) {
  if (slot >= kernel->slot_count) return ax_error(AX_INTERNAL, "slot %u of %u", slot, kernel->slot_count);
  for (uint32_t d = 0; d < kernel->slots[slot].rank; d++) {
    int64_t low, high;
    if (at == NULL || at[d].dim >= (int)kernel->rank) return ax_error(AX_INTERNAL, "slot %u: position %u is missing", slot, d);
    if (at[d].dynamic != AX_NONE && (at[d].dynamic >= before || at[d].limit < 0))
      return ax_error(AX_INTERNAL, "slot %u: position %u is moved by e%u up to %lld", slot, d, at[d].dynamic,
                      (long long)at[d].limit);
    if (!range_of(kernel, &at[d], guard, &low, &high)) return AX_OK; /* nothing is touched */
    if (at[d].dynamic != AX_NONE) high += at[d].limit;
    if (low < 0 || high >= kernel->slots[slot].dims[d])
      return ax_error(AX_INTERNAL, "slot %u: position %u goes from %lld to %lld of %lld", slot, d, (long long)low, (long long)high,
                      (long long)kernel->slots[slot].dims[d]);
  }
  return AX_OK;
}

static bool is_empty(const ax_loop_kernel *kernel) { return ax_dims_elems(kernel->rank, kernel->dims) == 0; }

/* The reduced dimension is the last one, and each of its steps has a place of its own. */
static ax_status check_running(const ax_loop_kernel *kernel) {
  bool steps = false;
  if (!kernel->running) return AX_OK;
  if (kernel->reduce_rank != 1 || kernel->store_count != 1 || kernel->stores[0].reduce == AX_SCALAR_NONE)
    return ax_error(AX_INTERNAL, "a running kernel reduces %u dimensions and has %u stores", kernel->reduce_rank,
                    kernel->store_count);
  const ax_store *store = &kernel->stores[0];
  for (uint32_t d = 0; d < kernel->slots[store->slot].rank; d++)
    steps = steps || (store->at[d].dim == (int)kernel->rank - 1 && store->at[d].coef != 0);
  return steps ? AX_OK : ax_error(AX_INTERNAL, "a running kernel stores all its steps to one place");
}

static bool is_short_float(ax_dtype dtype) { return dtype == AX_F32 || ax_is_narrow_float(dtype); }

static bool suits_slot(const ax_store *store, ax_dtype value, ax_dtype slot) {
  return value == slot || (store->reduce != AX_SCALAR_NONE && is_short_float(value) && is_short_float(slot));
}

/* An index of which there are several; that of a dimension of one step is always 0. */
static bool moves_along(const ax_loop_kernel *kernel, int64_t dim) { return dim >= 0 && kernel->dims[dim] > 1; }

/* A store goes to places that follow from loop indices as its positions say, and from nothing else that they bring. */
static ax_status check_still(const ax_loop_kernel *kernel, const ax_store *store) {
  bool needed[AX_MOST_EXPRS] = {false};
  if (kernel->expr_count > AX_MOST_EXPRS) return AX_OK;
  for (uint32_t d = 0; d < kernel->slots[store->slot].rank; d++)
    if (store->at[d].dynamic != AX_NONE) needed[store->at[d].dynamic] = true;
  ax_kernel_needs(kernel, needed);
  for (ax_ex e = 0; e < kernel->expr_count; e++) {
    const ax_expr *expr = &kernel->exprs[e];
    const int64_t index = expr->op == AX_LEAF_INDEX ? expr->imm : expr->op == AX_LEAF_INSIDE ? expr->at->dim : -1;
    bool moves = needed[e] && moves_along(kernel, index);
    for (uint32_t d = 0; needed[e] && expr->op == AX_LEAF_LOAD && d < kernel->slots[expr->slot].rank; d++)
      moves = moves || moves_along(kernel, expr->at[d].dim);
    if (moves)
      return ax_error(AX_INTERNAL, "slot %u: where e%u is stored depends on an index, by e%u", store->slot, store->expr, e);
  }
  return AX_OK;
}

/* Conditions on loop indices and conjunctions of them, and nothing else. */
static ax_status check_guard(const ax_loop_kernel *kernel, ax_ex load, ax_ex guard) {
  if (guard >= load) return ax_error(AX_INTERNAL, "e%u is guarded by e%u", load, guard);
  const ax_expr *expr = &kernel->exprs[guard];
  if (expr->op == AX_LEAF_INSIDE) return AX_OK;
  if (expr->op != AX_SCALAR_AND || expr->arg[0] >= guard || expr->arg[1] >= guard)
    return ax_error(AX_INTERNAL, "e%u is guarded by e%u", load, guard);
  AX_TRY(check_guard(kernel, load, expr->arg[0]));
  return check_guard(kernel, load, expr->arg[1]);
}

static ax_status check_nest(const ax_loop_kernel *kernel) {
  for (ax_ex e = 0; e < kernel->expr_count; e++) {
    const ax_expr *expr = &kernel->exprs[e];
    for (int i = 0; i < ax_scalar_arity(expr->op); i++)
      if (expr->arg[i] >= e) return ax_error(AX_INTERNAL, "e%u uses e%u", e, expr->arg[i]);
    if (expr->op == AX_LEAF_LOAD && expr->arg[0] != AX_NONE) AX_TRY(check_guard(kernel, e, expr->arg[0]));
    if (expr->op == AX_LEAF_LOAD && !is_empty(kernel)) AX_TRY(check_position(kernel, expr->slot, expr->at, expr->arg[0], e));
    if (expr->op == AX_LEAF_INSIDE && (expr->at == NULL || expr->at->dim >= (int)kernel->rank || expr->at->dynamic != AX_NONE))
      return ax_error(AX_INTERNAL, "e%u: the position is missing", e);
  }
  for (uint32_t i = 0; i < kernel->store_count; i++) {
    const ax_store *store = &kernel->stores[i];
    if (store->expr >= kernel->expr_count) return ax_error(AX_INTERNAL, "stores e%u", store->expr);
    if (!is_empty(kernel)) {
      AX_TRY(check_position(kernel, store->slot, store->at, AX_NONE, kernel->expr_count));
      AX_TRY(check_still(kernel, store));
    }
    if (!suits_slot(store, kernel->exprs[store->expr].dtype, kernel->slots[store->slot].dtype))
      return ax_error(AX_INTERNAL, "e%u is not of its slot's dtype", store->expr);
  }
  if (kernel->store_count == 0) return ax_error(AX_INTERNAL, "nothing is stored");
  return check_running(kernel);
}

static ax_status verify(ax_plan_verifier *v, const ax_op *op) {
  const ax_loop_kernel *kernel = op->kernel.kernel;
  for (uint32_t i = 0; i < kernel->slot_count; i++) {
    const ax_slot *slot = &kernel->slots[i];
    if (op->kernel.buffers[i] >= v->plan->buffer_count) return ax_error(AX_INTERNAL, "slot %u is b%u", i, op->kernel.buffers[i]);
    const ax_type *type = &v->plan->buffers[op->kernel.buffers[i]].type;
    if (slot->dtype != type->dtype || slot->rank != type->rank ||
        memcmp(slot->dims, type->dims, slot->rank * sizeof slot->dims[0]) != 0)
      return ax_error(AX_INTERNAL, "slot %u is not like b%u", i, op->kernel.buffers[i]);
  }
  return check_nest(kernel);
}

const ax_op_rules ax_op_kernel_rules = {.name = "kernel",
                                        .only_computes = true,
                                        .makes_results = true,
                                        .visit = visit_all,
                                        .stored = stored,
                                        .visit_updated = visit_updated,
                                        .time = time_of,
                                        .amount = amount_of,
                                        .makes_nonfinite = makes_nonfinite,
                                        .rename = rename_all,
                                        .text = text_of,
                                        .verify = verify};
