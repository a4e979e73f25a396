/* householder_product: a T[.., m, n], taus T[.., k] -> q T[.., m, n]         k <= n <= m, T f32, f64 or complex
   The first n columns of the product of the reflectors that a and taus say as the results of geqrf do.
   Errors: other dtypes; fewer rows than columns; more taus than columns; leading dimensions that differ.
   The tangent is that of 1 - v t v^H, t = (1 + d s)^-1 d, d of taus, s the part of v^H v above the diagonal. Batched and cut along
   leading dimensions.
   Compiled: LAPACK's orgqr, a matrix at a time. Real matrices of at most 64 rows and columns are done by our own code (small.h). */
#include "axle/linalg.h"
#include "hlo/hlo.h"
#include "linalg/householder.h"
#include "linalg/small.h"
#include "prim/prims.h"

static ax_status infer(const ax_infer_args *args) {
  const ax_type *a = &args->in[0];
  AX_TRY(ax_infer_reflectors(args));
  if (a->dims[a->rank - 2] < a->dims[a->rank - 1])
    return ax_error(AX_INVALID_ARGUMENT, "there are more columns than rows, %lld and %lld", (long long)a->dims[a->rank - 1],
                    (long long)a->dims[a->rank - 2]);
  args->out[0] = ax_array_type(a->dtype, AX_LIST(a->rank, a->dims));
  return AX_OK;
}

static void multiply_one(const ax_matrix_call *call, void *const *matrix, void *work) {
  const int m = (int)call->m, n = (int)call->n, k = (int)call->k, ld = ax_leading(m);
  int info = 0;
  ax_matrix_turn(work, matrix[0], call->m, call->n, call->dtype);
  call->lapack->orgqr(&m, &n, &k, work, &ld, matrix[1], ax_work_behind(call, work, call->m * call->n), &call->lwork, &info);
  ax_matrix_turn(matrix[2], work, call->n, call->m, call->dtype);
}

static void rule(const void *params, const ax_type *in, const ax_type *out, ax_matrix_routine *routine) {
  const int64_t m = in->dims[in->rank - 2], n = in->dims[in->rank - 1], k = in[1].dims[in[1].rank - 1];
  const int rows = (int)m, columns = (int)n, reflectors = (int)k, ld = ax_leading(m), ask = -1;
  ax_lapack_size work = {1, 0};
  int info = 0;
  (void)params, (void)out;
  routine->name = "orgqr";
  routine->code = multiply_one;
  routine->call.m = m, routine->call.n = n, routine->call.k = k;
  routine->call.lapack->orgqr(&rows, &columns, &reflectors, NULL, &ld, NULL, &work, &ask, &info);
  routine->call.lwork = ax_lapack_asked(in->dtype, &work);
  routine->work_bytes = (m * n + routine->call.lwork) * (int64_t)ax_dtype_bytes(in->dtype);
  routine->time = 200 + 3 * (double)(m * n) + (double)(m * n) * (double)k / ax_matrix_rate(in->dtype, 30);
  ax_small_code(routine, AX_SMALL_HOUSEHOLDER_PRODUCT);
}

static ax_status eval(const ax_eval_args *args) { return ax_eval_by(args, rule); }
static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_by(lower, eqn, rule, in, out);
}

static void jvp(const ax_jvp_args *args) {
  const ax_type a = ax_typeof(args->in[0]);
  args->out[0] = ax_bind1(args->eqn->prim, NULL, args->in, 2);
  args->tangent_out[0] = ax_zero;
  if (ax_failed() || (ax_is_zero(args->tangent_in[0]) && ax_is_zero(args->tangent_in[1]))) return;
  const ax_reflectors r = ax_reflectors_of(args->in[0], args->in[1], args->tangent_in[0], args->tangent_in[1]);
  const ax_value eye = ax_matrix_eye(args->in[0], a.dims[a.rank - 2], a.dims[a.rank - 1]);
  args->tangent_out[0] = ax_reflectors_tangent(&r, eye, true, false);
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *types = hlo->program->types, in_types[] = {types[eqn->in[0]], types[eqn->in[1]]};
  const bool any = ax_type_elems(&types[eqn->out]) > 0;
  out[0] = any ? ax_hlo_lapack(hlo, "orgqr", NULL, in, in_types, 2, &types[eqn->out], 1) : ax_hlo_zeros(hlo, &types[eqn->out]);
  return AX_OK;
}

const ax_prim ax_prim_householder_product = {
    .name = "householder_product", .kind = AX_LOCAL, .in_count = 2, .out_count = 1,
    .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = jvp, .linearize = jvp,
    .transpose = ax_absent_transpose, .batch = ax_batch_matrices, .simplify = ax_simplify_nothing, .shard = ax_shard_batches,
    .lower = lower, .complex = lower, .hlo = hlo,
};

ax_value ax_householder_product(ax_value a, ax_value taus) {
  return ax_bind1(&ax_prim_householder_product, NULL, (ax_value[]){a, taus}, 2);
}
