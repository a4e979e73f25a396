/* eig: x T[.., n, n] -> w C[.., n], perhaps vl C[.., n, n], perhaps vr C[.., n, n]         T f32, f64 or complex, C complex
   x vr = vr diag(w), vl^H x = diag(w) vl^H: eigenvalues in LAPACK's order, of a real x with conjugate ones side by side; the
   columns of vl and vr are of length 1, and their largest element is real. NaN where x has NaN or infinities.
   Parameters: compute_left_eigenvectors, compute_right_eigenvectors.
   Errors: other dtypes; matrices that are not square.
   With p = vr^-1 dx vr, dw is the diagonal of p, and dvr = u + vr diag(c), u = vr (f p), f[i, j] = 1 / (w[j] - w[i]), 0 on the
   diagonal; c keeps the length and the largest element real: c[j] = -re(vr[:, j]^H u[:, j]) - i im(u[k, j]) / vr[k, j], k the row
   of that element. dvl is the same of dx^H and the conjugates of w. Not finite where eigenvalues are equal. Batched and cut along
   leading dimensions.
   Compiled: LAPACK's geev, a matrix at a time. */
#include <stdio.h>
#include <string.h>

#include "axle/linalg.h"
#include "hlo/hlo.h"
#include "linalg/matrices.h"
#include "prim/prims.h"

typedef struct eig_params {
  bool compute_left_eigenvectors, compute_right_eigenvectors;
} eig_params;

static uint32_t count_outs(const void *params) {
  const eig_params *p = params;
  return 1u + p->compute_left_eigenvectors + p->compute_right_eigenvectors;
}

static ax_status infer(const ax_infer_args *args) {
  const ax_type *x = &args->in[0];
  AX_TRY(ax_infer_matrices(args, 2));
  AX_TRY(ax_infer_square(x));
  args->out[0] = ax_matrix_complex_type(x, 1);
  for (uint32_t k = 1; k < count_outs(args->params); k++) args->out[k] = ax_matrix_complex_type(x, 0);
  return AX_OK;
}

/* --- One matrix. call->left, call->vectors: whether there are left and right vectors --- */

/* The workspace has x, vl and vr column by column, 2 n elements for values, and then LAPACK's. */
typedef struct space {
  void *x, *vl, *vr, *values, *rest;
} space;

static space space_of(const ax_matrix_call *call, void *work) {
  const int64_t elems = call->n * call->n;
  space s = {.x = work, .vl = ax_work_behind(call, work, elems)};
  s.vr = ax_work_behind(call, s.vl, call->left ? elems : 0);
  s.values = ax_work_behind(call, s.vr, call->vectors ? elems : 0);
  s.rest = ax_work_behind(call, s.values, 2 * call->n);
  return s;
}

/* Of real numbers `values` takes the eigenvalues' two parts, of complex ones the eigenvalues, and real numbers that LAPACK works
   with besides. lwork: call->lwork, or -1: the number goes to s->rest. */
static int decompose(const ax_matrix_call *call, const space *s, const int *lwork) {
  const int n = (int)call->n, ld = ax_leading(n);
  const char *left = call->left ? "V" : "N", *right = call->vectors ? "V" : "N";
  ax_lapack_size none; /* LAPACK may write a number into it where it is asked */
  void *behind = *lwork == -1 ? &none : ax_work_behind(call, s->values, n);
  int info = 0;
  if (ax_is_complex(call->dtype))
    call->lapack->complex_geev(left, right, &n, s->x, &ld, s->values, s->vl, &ld, s->vr, &ld, s->rest, lwork, behind, &info, 1, 1);
  else
    call->lapack->geev(left, right, &n, s->x, &ld, s->values, behind, s->vl, &ld, s->vr, &ld, s->rest, lwork, &info, 1, 1);
  return info;
}

static ax_dtype complex_of(ax_dtype dtype) { return ax_is_complex(dtype) ? dtype : ax_complex_dtype(dtype); }

static double real_at(const ax_matrix_call *call, const void *x, int64_t i) { return ax_number_load(call->dtype, x, i).f; }

static void put_values(const ax_matrix_call *call, const void *values, void *w) {
  for (int64_t j = 0; j < call->n; j++) {
    const ax_number value = {.f = real_at(call, values, j), .imag = real_at(call, values, call->n + j)};
    ax_number_store(complex_of(call->dtype), w, j, value);
  }
}

/* Of a real matrix two conjugate eigenvalues follow each other, and the two columns at their places are the real and the imaginary
   part of the first one's vector. Here the columns become the rows of v. */
static void put_vectors(const ax_matrix_call *call, const void *values, const void *columns, void *v) {
  const int64_t n = call->n;
  for (int64_t j = 0; j < n; j++) {
    const bool paired = real_at(call, values, n + j) != 0 && j + 1 < n;
    for (int64_t i = 0; i < n; i++) {
      const double imag = paired ? real_at(call, columns, (j + 1) * n + i) : 0;
      ax_number value = {.f = real_at(call, columns, j * n + i), .imag = imag};
      ax_number_store(complex_of(call->dtype), v, i * n + j, value);
      value.imag = -imag;
      if (paired) ax_number_store(complex_of(call->dtype), v, i * n + j + 1, value);
    }
    j += paired;
  }
}

/* matrix: x; w, vl, vr, of which those that are not asked for are not there */
static void factor_one(const ax_matrix_call *call, void *const *matrix, void *work) {
  const space s = space_of(call, work);
  const int64_t n = call->n;
  const void *columns[2];
  uint32_t count = 0;
  int info = 1;
  if (call->left) columns[count++] = s.vl;
  if (call->vectors) columns[count++] = s.vr;
  ax_matrix_turn(s.x, matrix[0], n, n, call->dtype);
  if (ax_matrix_finite(call, matrix[0], n * n)) info = decompose(call, &s, &call->lwork);
  if (info != 0) {
    for (uint32_t k = 0; k <= count; k++) ax_matrix_nan(complex_of(call->dtype), matrix[1 + k], k == 0 ? n : n * n);
  } else if (ax_is_complex(call->dtype)) {
    memcpy(matrix[1], s.values, (size_t)n * ax_dtype_bytes(call->dtype));
    for (uint32_t k = 0; k < count; k++) ax_matrix_turn(matrix[2 + k], columns[k], n, n, call->dtype);
  } else {
    put_values(call, s.values, matrix[1]);
    for (uint32_t k = 0; k < count; k++) put_vectors(call, s.values, columns[k], matrix[2 + k]);
  }
}

static void rule(const void *params, const ax_type *in, const ax_type *out, ax_matrix_routine *routine) {
  const eig_params *p = params;
  const int64_t n = in->dims[in->rank - 1];
  const int ask = -1;
  const double x = (double)n;
  ax_lapack_size size = {1, 0};
  ax_matrix_call *call = &routine->call;
  (void)out;
  routine->name = "geev";
  routine->code = factor_one;
  call->n = n;
  call->left = p->compute_left_eigenvectors, call->vectors = p->compute_right_eigenvectors;
  (void)decompose(call, &(space){.rest = &size}, &ask);
  call->lwork = ax_lapack_asked(in->dtype, &size);
  routine->work_bytes = (count_outs(p) * n * n + 2 * n + call->lwork) * (int64_t)ax_dtype_bytes(in->dtype);
  routine->time = 1000 + 60 * x * x + x * x * x / ax_matrix_rate(in->dtype, 0.4);
}

static ax_status eval(const ax_eval_args *args) { return ax_eval_by(args, rule); }
static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_by(lower, eqn, rule, in, out);
}

/* --- Derivatives --- */

/* 1 / (w[j] - w[i]), 0 on the diagonal */
static ax_value apart(ax_value w, int64_t n) {
  const ax_value eye = ax_matrix_eye(w, n, n), distance = ax_sub(ax_expand_dims(w, -2), ax_expand_dims(w, -1));
  return ax_sub(ax_div(ax_real(1), ax_add(distance, eye)), eye);
}

static ax_value column_sums(ax_value x) { return ax_reduce_sum(x, AX_DIMS(-2), true); }

/* The tangent of the vectors v of the values w: p = v^-1 dx v. */
static ax_value vectors_tangent(ax_value w, ax_value v, ax_value p, int64_t n) {
  const ax_value u = ax_matmul(v, ax_mul(apart(w, n), p));
  const ax_type type = ax_typeof(v);
  if (ax_failed()) return ax_poison;
  const ax_value row = ax_expand_dims(ax_argmax(ax_abs(v), -2, AX_S32), -2);
  const ax_value largest = ax_eq(ax_iota(AX_S32, AX_LIST(type.rank, type.dims), type.rank - 2), row), none = ax_integer(0);
  const ax_value length = ax_real_part(column_sums(ax_mul(ax_conj(v), u)));
  const ax_value turn = column_sums(ax_where(largest, ax_imag_part(u), none));
  const ax_value size = column_sums(ax_where(largest, ax_real_part(v), none));
  return ax_add(u, ax_mul(v, ax_complex(ax_neg(length), ax_neg(ax_div(turn, size)))));
}

static void jvp(const ax_jvp_args *args) {
  const eig_params *p = args->eqn->params, with = {p->compute_left_eigenvectors, true};
  const uint32_t count = count_outs(p);
  const ax_type type = ax_typeof(args->in[0]);
  ax_value all[3];
  for (uint32_t k = 0; k < count; k++) args->tangent_out[k] = ax_zero;
  if (ax_is_zero(args->tangent_in[0]) || ax_failed() || ax_type_elems(&type) == 0) {
    ax_bind(args->eqn->prim, p, args->in, 1, args->out, count);
    return;
  }
  const int64_t n = type.dims[type.rank - 1];
  const uint32_t right = count_outs(&with) - 1;
  ax_bind(args->eqn->prim, &with, args->in, 1, all, right + 1);
  memcpy(args->out, all, count * sizeof all[0]);
  const ax_value w = all[0], v = all[right], dx = ax_matrix_as(args->tangent_in[0], w);
  const ax_value turned = ax_matmul(ax_matrix_solve(v, dx, false), v);
  args->tangent_out[0] = ax_diagonal_to_vector(turned);
  if (p->compute_left_eigenvectors) {
    const ax_value by_left = ax_matmul(ax_matrix_solve(all[1], ax_matrix_adjoint(dx), false), all[1]);
    args->tangent_out[1] = vectors_tangent(ax_conj(w), all[1], by_left, n);
  }
  if (p->compute_right_eigenvectors) args->tangent_out[right] = vectors_tangent(w, v, turned, n);
}

/* --- hlo --- */

/* Results of the call: the eigenvalues or their two parts, vl, vr, info. */
static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const eig_params *p = eqn->params;
  const ax_type *x = &hlo->program->types[eqn->in[0]], *types = &hlo->program->types[eqn->out];
  const ax_type values = ax_array_type(x->dtype, AX_LIST(x->rank - 1, x->dims)), vectors = ax_matrix_complex_type(x, 0);
  const ax_type info = ax_array_type(AX_S32, AX_LIST(x->rank - 2, x->dims)), results[] = {values, values, vectors, vectors, info};
  const uint32_t parted = ax_is_complex(x->dtype) ? 0 : 1, count = count_outs(p);
  ax_hlo_attributes config = {.hlo = hlo};
  uint32_t at = 0;
  if (ax_type_elems(x) == 0) {
    for (uint32_t k = 0; k < count; k++) out[k] = ax_hlo_zeros(hlo, &types[k]);
    return AX_OK;
  }
  ax_hlo_add_short(&config, "compute_left", p->compute_left_eigenvectors ? 'V' : 'N', "ui8");
  ax_hlo_add_short(&config, "compute_right", p->compute_right_eigenvectors ? 'V' : 'N', "ui8");
  const uint32_t made = ax_hlo_lapack(hlo, "geev", &config, in, x, 1, results + 1 - parted, 4 + parted);
  const uint32_t parts[] = {made, made + 1}, vl = made + 1 + parted;
  out[at++] = parted ? ax_hlo_op(hlo, "stablehlo.complex", parts, 2, NULL, &types[0], 1) : made;
  if (p->compute_left_eigenvectors) out[at++] = vl;
  if (p->compute_right_eigenvectors) out[at++] = vl + 1;
  for (uint32_t k = 0; k < count; k++) out[k] = ax_hlo_or_nan(hlo, vl + 2, out[k], &types[k], x->rank - 2);
  return AX_OK;
}

static const ax_param params[] = {{"compute_left_eigenvectors", AX_PARAM_BOOL, offsetof(eig_params, compute_left_eigenvectors)},
                                  {"compute_right_eigenvectors", AX_PARAM_BOOL, offsetof(eig_params, compute_right_eigenvectors)}};

const ax_prim ax_prim_eig = {
    .name = "eig", .kind = AX_LOCAL, .in_count = 1, .out_count = -1, .count_outs = count_outs,
    AX_PARAMS(params, eig_params),
    .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = jvp, .linearize = jvp,
    .transpose = ax_absent_transpose, .batch = ax_batch_matrices, .simplify = ax_simplify_nothing, .shard = ax_shard_batches,
    .lower = lower, .complex = lower, .hlo = hlo,
};

void (ax_eig)(ax_value x, bool compute_left_eigenvectors, bool compute_right_eigenvectors, uint32_t out_count, ax_value *out) {
  const eig_params p = {compute_left_eigenvectors, compute_right_eigenvectors};
  if (ax_lists_fit("eig", 1, 1, out_count, count_outs(&p), out)) ax_bind(&ax_prim_eig, &p, &x, 1, out, count_outs(&p));
}
