/* eigh: x T[.., n, n] -> w R[.., n], with compute_v before it v T[.., n, n]     T f32, f64 or complex, R that of T's real parts
   Of a symmetric x, or Hermitian one, whose lower or upper triangle is read, and of its diagonal the real parts: x v = v diag(w),
   v^H v = 1, w ascends. NaN where x has NaN or infinities. A column of v may be multiplied by any number of size 1; with `lower`
   the first row is real, else the last.
   Parameters: lower: which triangle; compute_v.
   Errors: other dtypes; matrices that are not square.
   With g = v^H dx v, dx symmetric by its triangle, dw is the diagonal of g, and dv = v (f g), f[i, j] = 1 / (w[j] - w[i]), 0 on
   the diagonal, so that vectors turn as little as they can; not finite where eigenvalues are equal. Batched and cut along leading
   dimensions.
   Compiled: LAPACK's syevd, or heevd, a matrix at a time; without vectors, where they are not used. */
#include <string.h>

#include "axle/linalg.h"
#include "hlo/hlo.h"
#include "linalg/matrices.h"
#include "prim/prims.h"

typedef struct eigh_params {
  bool lower, compute_v;
} eigh_params;

static uint32_t count_outs(const void *params) { return ((const eigh_params *)params)->compute_v ? 2 : 1; }

static ax_status infer(const ax_infer_args *args) {
  const ax_type *x = &args->in[0];
  AX_TRY(ax_infer_matrices(args, 2));
  AX_TRY(ax_infer_square(x));
  if (args->out_count > 1) args->out[0] = ax_array_type(x->dtype, AX_LIST(x->rank, x->dims));
  args->out[args->out_count - 1] = ax_matrix_parts_type(x, 1);
  return AX_OK;
}

/* The triangle that is read. */
static bool triangle_finite(const ax_matrix_call *call, const void *x) {
  for (int64_t i = 0; i < call->n; i++) {
    const int64_t from = call->lower ? 0 : i, to = call->lower ? i + 1 : call->n;
    const char *row = (const char *)x + (size_t)(i * call->n + from) * ax_dtype_bytes(call->dtype);
    if (!ax_matrix_finite(call, row, to - from)) return false;
  }
  return true;
}

/* Real numbers and integers that LAPACK works with besides. */
static int64_t reals(const ax_matrix_call *call) {
  return ax_is_complex(call->dtype) ? 1 + 5 * call->n + 2 * call->n * call->n : 0;
}
static int64_t integers(const ax_matrix_call *call) { return 5 * call->n + 3; }

/* The n by n matrix at x, column by column, becomes its vectors, or is spoilt. work: call->lwork elements, then the reals and the integers; with
   `lwork` -1 that number alone. */
static int decompose(const ax_matrix_call *call, void *x, void *w, void *work, const int *lwork) {
  const int n = (int)call->n, ld = ax_leading(n), asks = *lwork == -1;
  const int lrwork = asks ? -1 : (int)reals(call), liwork = asks ? -1 : (int)integers(call);
  const char *job = call->vectors ? "V" : "N", *triangle = call->lower ? "L" : "U";
  double asked_reals = 0;
  int asked_integers = 0, info = 0;
  void *real = asks ? &asked_reals : ax_work_behind(call, work, call->lwork);
  int *numbers = asks ? &asked_integers : ax_parts_behind(call, real, reals(call));
  if (ax_is_complex(call->dtype))
    call->lapack->heevd(job, triangle, &n, x, &ld, w, work, lwork, real, &lrwork, numbers, &liwork, &info, 1, 1);
  else
    call->lapack->syevd(job, triangle, &n, x, &ld, w, work, lwork, numbers, &liwork, &info, 1, 1);
  return info;
}

/* matrix: x; v, if it is wanted; w */
static void factor_one(const ax_matrix_call *call, void *const *matrix, void *work) {
  void *rest = ax_work_behind(call, work, call->n * call->n), *w = matrix[call->vectors ? 2 : 1];
  int info = 1;
  ax_matrix_turn(work, matrix[0], call->n, call->n, call->dtype);
  if (triangle_finite(call, matrix[0])) info = decompose(call, work, w, rest, &call->lwork);
  if (call->vectors) ax_matrix_turn(matrix[1], work, call->n, call->n, call->dtype);
  if (info == 0) return;
  if (call->vectors) ax_matrix_nan(call->dtype, matrix[1], call->n * call->n);
  ax_matrix_nan(ax_part_dtype(call->dtype), w, call->n);
}

static void rule(const void *params, const ax_type *in, const ax_type *out, ax_matrix_routine *routine) {
  const eigh_params *p = params;
  const int64_t n = in->dims[in->rank - 1];
  const int ask = -1;
  const double x = (double)n;
  ax_lapack_size work = {1, 0};
  (void)out;
  routine->name = ax_is_complex(in->dtype) ? "heevd" : "syevd";
  routine->code = factor_one;
  routine->call.n = n;
  routine->call.lower = p->lower, routine->call.vectors = p->compute_v;
  (void)decompose(&routine->call, NULL, NULL, &work, &ask);
  routine->call.lwork = ax_lapack_asked(in->dtype, &work);
  routine->work_bytes = (n * n + routine->call.lwork) * (int64_t)ax_dtype_bytes(in->dtype) +
                        reals(&routine->call) * (int64_t)ax_dtype_bytes(ax_part_dtype(in->dtype)) +
                        integers(&routine->call) * (int64_t)sizeof(int);
  routine->time = 1000 + 30 * x * x + (p->compute_v ? 1 : 0.4) * x * x * x / ax_matrix_rate(in->dtype, 4 + x / 50);
}

static ax_status eval(const ax_eval_args *args) { return ax_eval_by(args, rule); }
static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_by(lower, eqn, rule, in, out);
}

/* Values alone, where no vectors are needed. */
static ax_status prune(const ax_prune_args *args) {
  const eigh_params *p = args->eqn->params;
  const bool vectors = p->compute_v && args->out[0];
  args->in[0] = true;
  for (uint32_t k = 0; k < args->eqn->out_count; k++) args->out[k] = vectors || k + 1 == args->eqn->out_count;
  if (args->params != NULL) *(eigh_params *)args->params = (eigh_params){p->lower, vectors};
  return AX_OK;
}

/* --- Derivatives --- */

static void jvp(const ax_jvp_args *args) {
  const eigh_params *p = args->eqn->params;
  const uint32_t count = count_outs(p);
  ax_value all[2];
  for (uint32_t k = 0; k < count; k++) args->tangent_out[k] = ax_zero;
  if (ax_is_zero(args->tangent_in[0]) || ax_failed()) {
    ax_bind(args->eqn->prim, p, args->in, 1, args->out, count);
    return;
  }
  ax_bind(args->eqn->prim, &(eigh_params){p->lower, true}, args->in, 1, all, 2);
  memcpy(args->out, &all[2 - count], count * sizeof all[0]);
  const ax_type type = ax_typeof(args->in[0]);
  const int64_t n = type.dims[type.rank - 1];
  const ax_value v = all[0], w = all[1], eye = ax_matrix_eye(w, n, n);
  const ax_value g = ax_matmul(ax_matmul(ax_matrix_adjoint(v), ax_matrix_of_triangle(args->tangent_in[0], p->lower)), v);
  args->tangent_out[count - 1] = ax_matrix_reals(ax_diagonal_to_vector(g));
  if (!p->compute_v) return;
  const ax_value apart = ax_sub(ax_expand_dims(w, -2), ax_expand_dims(w, -1));
  const ax_value f = ax_sub(ax_div(ax_real(1), ax_add(apart, eye)), eye);
  args->tangent_out[0] = ax_matmul(v, ax_mul(ax_matrix_as(f, v), g));
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const eigh_params *p = eqn->params;
  const ax_type *types = &hlo->program->types[eqn->out], *x = &hlo->program->types[eqn->in[0]];
  const uint32_t count = count_outs(p);
  const ax_type info = ax_array_type(AX_S32, AX_LIST(x->rank - 2, x->dims)), results[] = {*x, types[count - 1], info};
  if (ax_type_elems(x) == 0) {
    for (uint32_t k = 0; k < count; k++) out[k] = ax_hlo_zeros(hlo, &types[k]);
    return AX_OK;
  }
  ax_hlo_attributes config = {.hlo = hlo};
  ax_hlo_add_short(&config, "mode", p->compute_v ? 'V' : 'N', "ui8");
  ax_hlo_add_short(&config, "uplo", p->lower ? 'L' : 'U', "ui8");
  const uint32_t made = ax_hlo_lapack(hlo, "syevd", &config, in, x, 1, results, 3);
  for (uint32_t k = 0; k < count; k++) out[k] = ax_hlo_or_nan(hlo, made + 2, made + 2 - count + k, &types[k], x->rank - 2);
  return AX_OK;
}

static const ax_param params[] = {{"lower", AX_PARAM_BOOL, offsetof(eigh_params, lower)},
                                  {"compute_v", AX_PARAM_BOOL, offsetof(eigh_params, compute_v)}};

const ax_prim ax_prim_eigh = {
    .name = "eigh", .kind = AX_LOCAL, .in_count = 1, .out_count = -1, .count_outs = count_outs,
    AX_PARAMS(params, eigh_params),
    .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = jvp, .linearize = jvp,
    .transpose = ax_absent_transpose, .batch = ax_batch_matrices, .simplify = ax_simplify_nothing, .prune = prune, .shard = ax_shard_batches,
    .lower = lower, .complex = lower, .hlo = hlo,
};

void (ax_eigh)(ax_value x, bool lower, bool symmetrize_input, uint32_t out_count, ax_value *out) {
  if (!ax_lists_fit("eigh", 1, 1, out_count, 2, out)) return;
  if (symmetrize_input && !ax_matrix_symmetrized("eigh", &x)) return;
  ax_bind(&ax_prim_eigh, &(eigh_params){lower, true}, &x, 1, out, 2);
}
