/* schur: x T[.., n, n] -> t T[.., n, n], with compute_schur_vectors also q T[.., n, n]         T f32, f64 or complex
   x = q t q^H, q^H q = 1. t is upper triangular, but of a real x with blocks of 2 by 2 on its diagonal, each for two eigenvalues
   that are complex and conjugate. NaN where x has NaN or infinities.
   Parameters: compute_schur_vectors.
   Errors: other dtypes; matrices that are not square. There are no derivatives.
   Batched and cut along leading dimensions.
   Compiled: LAPACK's gees, a matrix at a time. */
#include "axle/linalg.h"
#include "hlo/hlo.h"
#include "linalg/matrices.h"
#include "prim/prims.h"

typedef struct schur_params {
  bool compute_schur_vectors;
} schur_params;

static uint32_t count_outs(const void *params) { return ((const schur_params *)params)->compute_schur_vectors ? 2 : 1; }

static ax_status infer(const ax_infer_args *args) {
  const ax_type *x = &args->in[0];
  AX_TRY(ax_infer_matrices(args, 2));
  AX_TRY(ax_infer_square(x));
  for (uint32_t k = 0; k < count_outs(args->params); k++) args->out[k] = ax_array_type(x->dtype, AX_LIST(x->rank, x->dims));
  return AX_OK;
}

/* values: 2 n elements. Of real numbers they take the eigenvalues' two parts, of complex ones the eigenvalues, and real numbers
   that LAPACK works with besides. work: call->lwork elements; with `lwork` -1 that number. */
static int decompose(const ax_matrix_call *call, void *x, void *q, void *values, void *work, const int *lwork) {
  const int n = (int)call->n, ld = ax_leading(n);
  const char *job = call->vectors ? "V" : "N";
  ax_lapack_size none; /* LAPACK may write a number into it where it is asked */
  void *behind = *lwork == -1 ? &none : ax_work_behind(call, values, n);
  int info = 0, chosen = 0;
  if (ax_is_complex(call->dtype))
    call->lapack->complex_gees(job, "N", NULL, &n, x, &ld, &chosen, values, q, &ld, work, lwork, behind, NULL, &info, 1, 1);
  else
    call->lapack->gees(job, "N", NULL, &n, x, &ld, &chosen, values, behind, q, &ld, work, lwork, NULL, &info, 1, 1);
  return info;
}

/* The workspace has t and q column by column, the eigenvalues' two parts, and then LAPACK's. */
static void factor_one(const ax_matrix_call *call, void *const *matrix, void *work) {
  const int64_t n = call->n;
  void *q = ax_work_behind(call, work, n * n), *values = ax_work_behind(call, q, call->vectors ? n * n : 0);
  int info = 1;
  ax_matrix_turn(work, matrix[0], n, n, call->dtype);
  if (ax_matrix_finite(call, matrix[0], n * n))
    info = decompose(call, work, q, values, ax_work_behind(call, values, 2 * n), &call->lwork);
  for (uint32_t k = 0; k < (call->vectors ? 2u : 1u); k++) {
    if (info == 0)
      ax_matrix_turn(matrix[1 + k], k == 0 ? work : q, n, n, call->dtype);
    else
      ax_matrix_nan(call->dtype, matrix[1 + k], n * n);
  }
}

static void rule(const void *params, const ax_type *in, const ax_type *out, ax_matrix_routine *routine) {
  const int64_t n = in->dims[in->rank - 1];
  const int ask = -1;
  const double x = (double)n;
  ax_lapack_size work = {1, 0};
  (void)out;
  routine->name = "gees";
  routine->code = factor_one;
  routine->call.n = n;
  routine->call.vectors = ((const schur_params *)params)->compute_schur_vectors;
  (void)decompose(&routine->call, NULL, NULL, NULL, &work, &ask);
  routine->call.lwork = ax_lapack_asked(in->dtype, &work);
  routine->work_bytes =
      ((routine->call.vectors ? 2 : 1) * n * n + 2 * n + routine->call.lwork) * (int64_t)ax_dtype_bytes(in->dtype);
  routine->time = 1000 + 60 * x * x + x * x * x / ax_matrix_rate(in->dtype, 0.5);
}

static ax_status eval(const ax_eval_args *args) { return ax_eval_by(args, rule); }
static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_by(lower, eqn, rule, in, out);
}

/* Results of the call: t, q, the eigenvalues or their two parts, how many were chosen, info. */
static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const bool vectors = ((const schur_params *)eqn->params)->compute_schur_vectors;
  const ax_type *x = &hlo->program->types[eqn->in[0]], form = ax_array_type(x->dtype, AX_LIST(x->rank, x->dims));
  const ax_type values = ax_array_type(x->dtype, AX_LIST(x->rank - 1, x->dims)),
                info = ax_array_type(AX_S32, AX_LIST(x->rank - 2, x->dims));
  const uint32_t count = ax_is_complex(x->dtype) ? 5 : 6;
  const ax_type results[] = {form, form, values, count == 6 ? values : info, info, info};
  uint32_t made;
  for (uint32_t k = 0; k < count_outs(eqn->params); k++) out[k] = in[0];
  if (ax_type_elems(x) == 0) return AX_OK;
  const char *config = vectors ? "mode = 86 : ui8, sort = 78 : ui8" : "mode = 78 : ui8, sort = 78 : ui8"; /* 'V' or 'N'; 'N' */
  AX_TRY(ax_hlo_lapack(hlo, "gees", config, in, x, 1, results, count, &made));
  for (uint32_t k = 0; k < count_outs(eqn->params); k++)
    out[k] = ax_hlo_or_nan(hlo, made + count - 1, made + k, &form, x->rank - 2);
  return AX_OK;
}

static const ax_param params[] = {{"compute_schur_vectors", AX_PARAM_BOOL, offsetof(schur_params, compute_schur_vectors)}};

const ax_prim ax_prim_schur = {
    .name = "schur", .kind = AX_LOCAL, .in_count = 1, .out_count = -1, .count_outs = count_outs,
    AX_PARAMS(params, schur_params),
    .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = ax_absent_jvp,
    .linearize = ax_absent_jvp, .transpose = ax_absent_transpose, .batch = ax_batch_matrices, .simplify = ax_simplify_nothing,
    .shard = ax_shard_batches, .lower = lower, .complex = lower, .hlo = hlo,
};

void (ax_schur)(ax_value x, bool compute_schur_vectors, uint32_t out_count, ax_value *out) {
  const schur_params p = {compute_schur_vectors};
  if (ax_lists_fit("schur", 1, 1, out_count, count_outs(&p), out)) ax_bind(&ax_prim_schur, &p, &x, 1, out, count_outs(&p));
}
