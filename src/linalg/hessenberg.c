/* hessenberg: x T[.., n, n] -> form T[.., n, n], taus T[.., n - 1]         T f32, f64 or complex
   q^H x q = h: h, which is zero below its first subdiagonal, stands on and above that of the form. What is below it and the taus
   are the reflectors whose product q is.
   Errors: other dtypes; matrices that are not square, or without rows. There are no derivatives.
   Batched and cut along leading dimensions.
   Compiled: LAPACK's gehrd, a matrix at a time. */
#include <stdio.h>

#include "axle/linalg.h"
#include "hlo/hlo.h"
#include "linalg/matrices.h"
#include "prim/prims.h"

static ax_status infer(const ax_infer_args *args) {
  const ax_type *x = &args->in[0];
  AX_TRY(ax_infer_matrices(args, 2));
  AX_TRY(ax_infer_square(x));
  if (x->dims[x->rank - 1] == 0) return ax_error(AX_INVALID_ARGUMENT, "the matrices have no rows");
  args->out[0] = ax_array_type(x->dtype, AX_LIST(x->rank, x->dims));
  args->out[1] = ax_array_type(x->dtype, AX_LIST(x->rank - 1, x->dims));
  args->out[1].dims[x->rank - 2] = x->dims[x->rank - 1] - 1;
  return AX_OK;
}

static void reduce_one(const ax_matrix_call *call, void *const *matrix, void *work) {
  const int n = (int)call->n, first = 1;
  int info = 0;
  ax_matrix_turn(work, matrix[0], n, n, call->dtype);
  call->lapack->gehrd(&n, &first, &n, work, &n, matrix[2], ax_work_behind(call, work, call->n * call->n), &call->lwork, &info);
  ax_matrix_turn(matrix[1], work, n, n, call->dtype);
}

static void rule(const void *params, const ax_type *in, const ax_type *out, ax_matrix_routine *routine) {
  const int64_t n = in->dims[in->rank - 1];
  const int order = (int)n, first = 1, ask = -1;
  const double x = (double)n;
  ax_lapack_size work = {1, 0};
  int info = 0;
  (void)params, (void)out;
  routine->name = "gehrd";
  routine->code = reduce_one;
  routine->call.n = n;
  routine->call.lapack->gehrd(&order, &first, &order, NULL, &order, NULL, &work, &ask, &info);
  routine->call.lwork = ax_lapack_asked(in->dtype, &work);
  routine->work_bytes = (n * n + routine->call.lwork) * (int64_t)ax_dtype_bytes(in->dtype);
  routine->time = 300 + 10 * x * x + x * x * x / ax_matrix_rate(in->dtype, 6);
}

static ax_status eval(const ax_eval_args *args) { return ax_eval_by(args, rule); }
static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_by(lower, eqn, rule, in, out);
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *types = &hlo->program->types[eqn->out], *x = &types[0];
  const ax_type results[] = {types[0], types[1], ax_array_type(AX_S32, AX_LIST(x->rank - 2, x->dims))};
  char config[64];
  uint32_t made;
  if (ax_type_elems(x) == 0) {
    for (uint32_t k = 0; k < 2; k++) out[k] = ax_hlo_zeros(hlo, &types[k]);
    return AX_OK;
  }
  snprintf(config, sizeof config, "high = %lld : i32, low = 1 : i32", (long long)x->dims[x->rank - 1]);
  AX_TRY(ax_hlo_lapack(hlo, "gehrd", config, in, x, 1, results, 3, &made));
  for (uint32_t k = 0; k < 2; k++) out[k] = ax_hlo_or_nan(hlo, made + 2, made + k, &types[k], x->rank - 2);
  return AX_OK;
}

const ax_prim ax_prim_hessenberg = {
    .name = "hessenberg", .kind = AX_LOCAL, .in_count = 1, .out_count = 2,
    .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = ax_absent_jvp,
    .linearize = ax_absent_jvp, .transpose = ax_absent_transpose, .batch = ax_batch_matrices, .simplify = ax_simplify_nothing,
    .shard = ax_shard_batches, .lower = lower, .complex = lower, .hlo = hlo,
};

void (ax_hessenberg)(ax_value x, uint32_t out_count, ax_value *out) {
  if (!ax_lists_fit("hessenberg", 1, 1, out_count, 2, out)) return;
  ax_bind(&ax_prim_hessenberg, NULL, &x, 1, out, 2);
}
