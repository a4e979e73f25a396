/* geqp3: x T[.., m, n], order s32[.., n] -> form T[.., m, n], order s32[.., n], taus T[.., k]         k = min(m, n), T f32, f64 or
   complex As geqrf, of x's columns in the order of the second result, counted from 1: the columns where the operand `order` is not
   0 come first, and at each step the longest rest of the others is next.
   Errors: other dtypes; an order that has not one number a column.
   The tangent is geqrf's, of the columns in that order; the order has none. Batched and cut along leading dimensions.
   Compiled: LAPACK's geqp3, a matrix at a time. */
#include <stdio.h>
#include <string.h>

#include "axle/linalg.h"
#include "hlo/hlo.h"
#include "linalg/householder.h"
#include "prim/prims.h"

static ax_status infer(const ax_infer_args *args) {
  const ax_type *x = &args->in[0], *order = &args->in[1];
  ax_infer_args alone = *args;
  alone.in_count = 1;
  AX_TRY(ax_infer_matrices(&alone, 2));
  if (order->dtype != AX_S32)
    return ax_error(AX_INVALID_ARGUMENT, "the order is of %s; it must be of s32", ax_dtype_name(order->dtype));
  const int64_t m = x->dims[x->rank - 2], n = x->dims[x->rank - 1];
  if (order->rank != x->rank - 1 || memcmp(order->dims, x->dims, (x->rank - 2) * sizeof x->dims[0]) != 0 ||
      order->dims[x->rank - 2] != n)
    return ax_error(AX_INVALID_ARGUMENT, "the order needs a number for each column, and the same leading dimensions");
  args->out[0] = ax_array_type(x->dtype, AX_LIST(x->rank, x->dims));
  args->out[1] = ax_array_type(AX_S32, AX_LIST(order->rank, order->dims));
  args->out[2] = ax_array_type(x->dtype, AX_LIST(x->rank - 1, x->dims));
  args->out[2].dims[x->rank - 2] = m < n ? m : n;
  return AX_OK;
}

/* matrix: x, order; form, order, taus */
static void factor_one(const ax_matrix_call *call, void *const *matrix, void *work) {
  const int m = (int)call->m, n = (int)call->n;
  ax_matrix_turn(work, matrix[0], call->m, call->n, call->dtype);
  memcpy(matrix[3], matrix[1], (size_t)n * sizeof(int32_t));
  ax_pivoted(call, work, matrix[3], matrix[4], ax_work_behind(call, work, call->m * call->n), &call->lwork);
  for (int i = 0; m == 0 && i < n; i++) ((int32_t *)matrix[3])[i] = i + 1; /* LAPACK leaves it as it is */
  ax_matrix_turn(matrix[2], work, call->n, call->m, call->dtype);
}

static void rule(const void *params, const ax_type *in, const ax_type *out, ax_matrix_routine *routine) {
  const int64_t m = in->dims[in->rank - 2], n = in->dims[in->rank - 1], k = m < n ? m : n;
  const int ask = -1;
  ax_lapack_size work = {1, 0};
  (void)params, (void)out;
  routine->name = "geqp3";
  routine->code = factor_one;
  routine->call.m = m, routine->call.n = n;
  ax_pivoted(&routine->call, NULL, NULL, NULL, &work, &ask);
  routine->call.lwork = ax_lapack_asked(in->dtype, &work);
  routine->work_bytes = (m * n + ax_pivoted_work(&routine->call)) * (int64_t)ax_dtype_bytes(in->dtype);
  routine->time = 300 + 4 * (double)(m * n) + (double)(m * n) * (double)k / ax_matrix_rate(in->dtype, 12);
}

static ax_status eval(const ax_eval_args *args) { return ax_eval_by(args, rule); }
static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_by(lower, eqn, rule, in, out);
}

static void jvp(const ax_jvp_args *args) {
  ax_bind(args->eqn->prim, NULL, args->in, 2, args->out, 3);
  for (uint32_t k = 0; k < 3; k++) args->tangent_out[k] = ax_zero;
  const ax_type type = ax_typeof(args->in[0]);
  if (ax_is_zero(args->tangent_in[0]) || ax_failed() || ax_type_elems(&type) == 0) return;
  const ax_value moved = ax_matrix_columns(args->tangent_in[0], ax_sub(args->out[1], ax_integer(1)));
  ax_reflectors_factored(args->out[0], args->out[2], moved, &args->tangent_out[0], &args->tangent_out[2]);
}

static uint32_t counted_from_1(ax_hlo *hlo, const ax_type *type) {
  const int32_t one = 1;
  const uint32_t in[] = {ax_hlo_iota(hlo, type, type->rank - 1), ax_hlo_splat(hlo, type, &one)};
  return ax_hlo_op(hlo, "stablehlo.add", in, 2, NULL, type, 1);
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *types = &hlo->program->types[eqn->out], in_types[] = {types[0], types[1]};
  if (ax_type_elems(&types[0]) > 0) {
    out[0] = ax_hlo_lapack(hlo, "geqp3", NULL, in, in_types, 2, types, 3);
    out[1] = out[0] + 1, out[2] = out[0] + 2;
  } else {
    out[0] = ax_hlo_zeros(hlo, &types[0]), out[2] = ax_hlo_zeros(hlo, &types[2]);
    out[1] = counted_from_1(hlo, &types[1]);
  }
  return AX_OK;
}

const ax_prim ax_prim_geqp3 = {
    .name = "geqp3", .kind = AX_LOCAL, .in_count = 2, .out_count = 3,
    .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = jvp, .linearize = jvp,
    .transpose = ax_absent_transpose, .batch = ax_batch_matrices, .simplify = ax_simplify_nothing, .shard = ax_shard_batches,
    .lower = lower, .complex = lower, .hlo = hlo,
};

void (ax_geqp3)(ax_value x, ax_value order, uint32_t out_count, ax_value *out) {
  if (!ax_lists_fit("geqp3", 1, 1, out_count, 3, out)) return;
  ax_bind(&ax_prim_geqp3, NULL, (ax_value[]){x, order}, 2, out, 3);
}
