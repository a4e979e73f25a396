/* geqrf: x T[.., m, n] -> form T[.., m, n], taus T[.., k]         k = min(m, n), T f32, f64 or complex
   x = q r: r stands on and above the diagonal of the form. q is the product h_0 h_1 .. of k reflectors h_i = 1 - taus[i] v v^H; v
   is 0 before its element i, which is 1, and behind it what column i of the form has below the diagonal. The diagonal of r is
   real.
   Errors: other dtypes; fewer than two dimensions.
   The tangent is that of q and r, and of the reflectors by q's; where r is singular it is not finite. Batched and cut along leading
   dimensions.
   Compiled: LAPACK's geqrf, a matrix at a time. Real matrices of at most 64 rows and columns are done by our own code (small.h). */
#include "axle/linalg.h"
#include "hlo/hlo.h"
#include "linalg/householder.h"
#include "linalg/small.h"
#include "prim/prims.h"

static ax_status infer(const ax_infer_args *args) {
  const ax_type *x = &args->in[0];
  AX_TRY(ax_infer_matrices(args, 2));
  const int64_t m = x->dims[x->rank - 2], n = x->dims[x->rank - 1];
  args->out[0] = ax_array_type(x->dtype, AX_LIST(x->rank, x->dims));
  args->out[1] = ax_array_type(x->dtype, AX_LIST(x->rank - 1, x->dims));
  args->out[1].dims[x->rank - 2] = m < n ? m : n;
  return AX_OK;
}

static void factor_one(const ax_matrix_call *call, void *const *matrix, void *work) {
  const int m = (int)call->m, n = (int)call->n, ld = ax_leading(m);
  int info = 0;
  ax_matrix_turn(work, matrix[0], call->m, call->n, call->dtype);
  call->lapack->geqrf(&m, &n, work, &ld, matrix[2], ax_work_behind(call, work, call->m * call->n), &call->lwork, &info);
  ax_matrix_turn(matrix[1], work, call->n, call->m, call->dtype);
}

static void rule(const void *params, const ax_type *in, const ax_type *out, ax_matrix_routine *routine) {
  const int64_t m = in->dims[in->rank - 2], n = in->dims[in->rank - 1], k = m < n ? m : n;
  const int rows = (int)m, columns = (int)n, ld = ax_leading(m), ask = -1;
  ax_lapack_size work = {1, 0};
  int info = 0;
  (void)params, (void)out;
  routine->name = "geqrf";
  routine->code = factor_one;
  routine->call.m = m, routine->call.n = n;
  routine->call.lapack->geqrf(&rows, &columns, NULL, &ld, NULL, &work, &ask, &info);
  routine->call.lwork = ax_lapack_asked(in->dtype, &work);
  routine->work_bytes = (m * n + routine->call.lwork) * (int64_t)ax_dtype_bytes(in->dtype);
  routine->time = 200 + 3 * (double)(m * n) + (double)(m * n) * (double)k / ax_matrix_rate(in->dtype, 30);
  ax_small_code(routine, AX_SMALL_GEQRF);
}

static ax_status eval(const ax_eval_args *args) { return ax_eval_by(args, rule); }
static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_by(lower, eqn, rule, in, out);
}

static void jvp(const ax_jvp_args *args) {
  ax_bind(args->eqn->prim, NULL, args->in, 1, args->out, 2);
  args->tangent_out[0] = args->tangent_out[1] = ax_zero;
  const ax_type type = ax_typeof(args->in[0]);
  if (ax_is_zero(args->tangent_in[0]) || ax_failed() || ax_type_elems(&type) == 0) return;
  ax_reflectors_factored(args->out[0], args->out[1], args->tangent_in[0], &args->tangent_out[0], &args->tangent_out[1]);
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *types = &hlo->program->types[eqn->out];
  if (ax_type_elems(&types[0]) > 0) {
    out[0] = ax_hlo_lapack(hlo, "geqrf", NULL, in, &types[0], 1, types, 2);
    out[1] = out[0] + 1;
  } else {
    for (uint32_t k = 0; k < 2; k++) out[k] = ax_hlo_zeros(hlo, &types[k]);
  }
  return AX_OK;
}

const ax_prim ax_prim_geqrf = {
    .name = "geqrf", .kind = AX_LOCAL, .in_count = 1, .out_count = 2,
    .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = jvp, .linearize = jvp,
    .transpose = ax_absent_transpose, .batch = ax_batch_matrices, .simplify = ax_simplify_nothing, .shard = ax_shard_batches,
    .lower = lower, .complex = lower, .hlo = hlo,
};

void (ax_geqrf)(ax_value x, uint32_t out_count, ax_value *out) {
  if (!ax_lists_fit("geqrf", 1, 1, out_count, 2, out)) return;
  ax_bind(&ax_prim_geqrf, NULL, &x, 1, out, 2);
}
