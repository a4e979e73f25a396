#include "plan/amount.h"

#include "machine/caches.h"
#include "plan/fuse_worth.h"
#include "plan/kernel_rewrite.h"
#include "plan/op.h"

/* Elements of a slot that one load or store comes to: all steps of the kernel along dimensions that its position depends on. What a
   stride along the last dimension leaves out comes with the lines of the cache that the others are in. */
static double reach(const ax_loop_kernel *kernel, uint32_t slot, const ax_position *at) {
  const ax_slot *s = &kernel->slots[slot];
  bool moves[2 * AX_MAX_RANK] = {false};
  double steps = 1, elems = (double)ax_dims_elems(s->rank, s->dims);
  bool looked_up = false;
  for (uint32_t d = 0; d < s->rank; d++) {
    if (at[d].dim >= 0 && at[d].coef != 0) moves[at[d].dim] = true;
    looked_up = looked_up || at[d].dynamic != AX_NONE;
  }
  for (uint32_t d = 0; d < kernel->rank; d++)
    if (moves[d] || looked_up) steps *= (double)kernel->dims[d];
  if (s->rank > 0 && at[s->rank - 1].dim >= 0) {
    const int64_t coef = at[s->rank - 1].coef, stride = coef < 0 ? -coef : coef,
                  most = AX_LINE_BYTES / (int64_t)ax_dtype_bytes(s->dtype);
    steps *= (double)(stride < 1 ? 1 : stride < most ? stride : most);
  }
  return steps < elems ? steps : elems;
}

/* Nanoseconds an element that is in a register, on one thread of the core that times of plans were fitted on (wide vectors;
   machine/rates.h says how many times as long this machine takes), roughly. */
static const struct {
  double single, wide; /* of f32, and of f64 */
} function_times[AX_SCALAR_COUNT] = {
    [AX_SCALAR_DIV] = {0.15, 0.5},       [AX_SCALAR_REM] = {0.3, 0.8},        [AX_SCALAR_POW] = {1.2, 2.5},
    [AX_SCALAR_EXP] = {0.14, 0.5},       [AX_SCALAR_LOG] = {0.25, 0.63},     [AX_SCALAR_LOG1P] = {0.33, 0.74},
    [AX_SCALAR_EXPM1] = {0.21, 0.66},    [AX_SCALAR_SIN] = {0.21, 0.6},      [AX_SCALAR_COS] = {0.23, 0.65},
    [AX_SCALAR_TANH] = {0.26, 0.72},     [AX_SCALAR_LOGISTIC] = {0.24, 0.7}, [AX_SCALAR_SQRT] = {0.19, 0.8},
    [AX_SCALAR_RSQRT] = {0.37, 1.4},     [AX_SCALAR_ERF] = {0.29, 1.05},     [AX_SCALAR_EXP2] = {0.2, 0.5},
    [AX_SCALAR_CBRT] = {0.33, 0.9},      [AX_SCALAR_TAN] = {0.27, 0.63},     [AX_SCALAR_ASIN] = {0.23, 0.6},
    [AX_SCALAR_ACOS] = {0.25, 0.65},     [AX_SCALAR_ATAN] = {0.25, 0.85},    [AX_SCALAR_SINH] = {1.6, 3.5},
    [AX_SCALAR_COSH] = {0.33, 3.3},      [AX_SCALAR_ASINH] = {0.8, 7},       [AX_SCALAR_ACOSH] = {0.63, 6.6},
    [AX_SCALAR_ATANH] = {0.27, 0.7},     [AX_SCALAR_ERFC] = {0.5, 7.9},      [AX_SCALAR_ATAN2] = {0.3, 0.95},
    [AX_SCALAR_ERF_INV] = {0.85, 3},     [AX_SCALAR_LGAMMA] = {3.3, 3.3},    [AX_SCALAR_DIGAMMA] = {2.5, 2.5},
    [AX_SCALAR_BESSEL_I0E] = {0.64, 2.3}, [AX_SCALAR_BESSEL_I1E] = {0.64, 2.3}, [AX_SCALAR_POLYGAMMA] = {30, 80},
    [AX_SCALAR_ZETA] = {30, 80},
};

/* Processors have one unit for these, whose speed says little about the others' (AX_FACT_QUOTIENTS). */
static bool divides(const ax_expr *expr) {
  return expr->op == AX_SCALAR_DIV || expr->op == AX_SCALAR_REM || expr->op == AX_SCALAR_SQRT || expr->op == AX_SCALAR_RSQRT;
}

static double op_time(const ax_expr *expr) {
  const bool is_narrow = ax_is_narrow_float(expr->dtype);
  const double bytes = (double)ax_dtype_bytes(expr->dtype), rounding = is_narrow ? 0.06 : 0;
  if (expr->op == AX_LEAF_CONST || expr->op == AX_LEAF_AXIS || expr->op == AX_LEAF_INSIDE) return 0;
  if (expr->op == AX_LEAF_LOAD) return 0.002 * bytes;
  if (expr->op == AX_SCALAR_THREEFRY) return 0.8;
  const double single = expr->op < AX_SCALAR_COUNT ? function_times[expr->op].single : 0;
  if (single == 0) return is_narrow ? rounding : 0.004 * bytes;
  if (!ax_is_float(expr->dtype)) return 0.13 * bytes; /* quotients and remainders of integers */
  const double time = rounding + (!is_narrow && bytes > 4 ? function_times[expr->op].wide : single);
  return ax_scalar_precise(expr->op, expr->dtype, expr->imm) ? 5 * time : time;
}

/* Nanoseconds from the operands of an operation to its result. Functions are some tens of operations, most of which wait for each other;
   divisions and roots are one. */
static double chain_time(const ax_expr *expr) {
  enum { lanes = 16 };
  const double time = lanes * op_time(expr), quick = ax_is_float(expr->dtype) && expr->op != AX_SCALAR_SELECT ? 1.4 : 0.4;
  if (expr->op >= AX_SCALAR_COUNT) return 0;
  if (expr->op == AX_SCALAR_THREEFRY) return 3 * time;
  return function_times[expr->op].single == 0 ? quick : divides(expr) ? 2 * time : 3 * time;
}

/* The longest chain of a kernel's nodes. */
static double chain_of(const ax_loop_kernel *kernel) {
  double most = 0, ends[AX_MOST_EXPRS];
  if (kernel->expr_count > AX_MOST_EXPRS) return 0;
  for (uint32_t i = 0; i < kernel->expr_count; i++) {
    ends[i] = 0;
    for (int k = 0; k < 3; k++)
      if (kernel->exprs[i].arg[k] != AX_NONE && ends[kernel->exprs[i].arg[k]] > ends[i]) ends[i] = ends[kernel->exprs[i].arg[k]];
    ends[i] += chain_time(&kernel->exprs[i]);
    if (ends[i] > most) most = ends[i];
  }
  return most;
}

/* A running kernel's steps along a row wait for each other: within a vector they are added up in some rounds of shifts. */
static bool runs_along_rows(const ax_loop_kernel *kernel) {
  const ax_store *store = &kernel->stores[0];
  const ax_slot *slot = &kernel->slots[store->slot];
  uint32_t rank = slot->rank;
  while (rank > 0 && slot->dims[rank - 1] == 1) rank--;
  return kernel->running && rank > 0 && store->at[rank - 1].dim == (int)kernel->rank - 1;
}

ax_amount ax_kernel_amount(const ax_loop_kernel *kernel) {
  const double elems = (double)ax_dims_elems(kernel->rank, kernel->dims);
  double most[AX_MAX_SLOTS][2] = {{0}}, each = 0, time = 0.01 * kernel->store_count, dividing = 0;
  ax_amount out = {.dtype = AX_F32};
  for (uint32_t i = 0; i < kernel->expr_count; i++) {
    const ax_expr *expr = &kernel->exprs[i];
    const double took = op_time(expr);
    time += took;
    if (divides(expr)) dividing += took;
    if (expr->op == AX_LEAF_LOAD) {
      const double loaded = reach(kernel, expr->slot, expr->at);
      if (loaded > most[expr->slot][0]) most[expr->slot][0] = loaded;
    } else if (expr->op < AX_SCALAR_COUNT && expr->op != AX_SCALAR_CONVERT && expr->op != AX_SCALAR_BITCAST && ax_rounds(expr->dtype)) {
      each++;
    }
  }
  for (uint32_t i = 0; i < kernel->store_count; i++) {
    const ax_store *store = &kernel->stores[i];
    const double stored = reach(kernel, store->slot, store->at);
    most[store->slot][1] += stored; /* no two steps write one place */
    each += store->reduce != AX_SCALAR_NONE;
    out.dtype = kernel->slots[store->slot].dtype;
  }
  for (uint32_t s = 0; s < kernel->slot_count; s++) {
    const double item = (double)ax_dtype_bytes(kernel->slots[s].dtype);
    out.read += most[s][0] * item;
    out.written += most[s][1] * item;
  }
  /* registers are turned where the result is read along other rows than it is written */
  const double turned = kernel->store_count == 1 ? (double)ax_kernel_turned_elems(kernel) : 0,
               turning = 0.06 * (double)ax_dtype_bytes(out.dtype) * turned;
  if (runs_along_rows(kernel)) time += 0.2;
  time += 0.4 * ax_kernel_looks_up(kernel);
  out.flops = each * elems;
  out.core_ns = time * elems + turning;
  out.turning_ns = turning;
  out.chain_ns = chain_of(kernel);
  out.dividing_ns = dividing * elems;
  return out;
}

typedef struct touching {
  const ax_plan *plan;
  ax_amount *amount;
} touching;

static void touch(void *context, uint32_t buffer, bool writes) {
  const touching *t = context;
  *(writes ? &t->amount->written : &t->amount->read) += (double)ax_buffer_bytes(&t->plan->buffers[buffer]);
}

ax_amount ax_op_touched(const ax_plan *plan, const ax_op *op) {
  ax_amount out = {.dtype = AX_F32};
  touching all = {plan, &out};
  ax_op_visit(op, touch, &all);
  return out;
}

ax_amount ax_op_amount(const ax_plan *plan, const ax_op *op) {
  const ax_op_rules *rules = ax_op_rules_of(op);
  return rules->amount != NULL ? rules->amount(plan, op) : ax_op_touched(plan, op);
}
