/* hessenberg: x T[.., n, n] -> form T[.., n, n], taus T[.., n - 1]         T f32, f64 or complex
   q^H x q = h: h, which is zero below its first subdiagonal, stands on and above that of the form. What is below it and the taus
   are the reflectors whose product q is.
   Errors: other dtypes; matrices that are not square, or without rows.
   The tangent: with g = q^H dx q and o = q^H dq, which is skew, dh = g + h o - o h. o's first row and column are 0, as q's never
   change. Column k of dh is zero below the subdiagonal, and real on it; this gives column k + 1 of o from those
   before it. The reflectors' tangents are those of a product that turns by o. Not finite where h has a 0 on its subdiagonal.
   Batched and cut along leading dimensions.
   Compiled: LAPACK's gehrd, a matrix at a time. */
#include <stdio.h>

#include "axle/linalg.h"
#include "hlo/hlo.h"
#include "linalg/hessenberg.h"
#include "linalg/householder.h"
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

/* --- Derivatives --- */

/* o, of which columns 0 .. k are known; of step k: h's column down to the diagonal, g's column, 1 / h[k + 1, k], the unit vectors k
   and k + 1, ones at rows > k + 1 -> o with column and row k + 1. Context: h. */
static AX_BODY(next_column) {
  const ax_value h = *(const ax_value *)context, o = in[0], unit = in[5];
  const ax_value rest = ax_sub(ax_add(in[2], ax_matmul(h, ax_matmul(o, in[4]))), ax_matmul(o, in[1]));
  const ax_value column = ax_mul(rest, in[3]), half = ax_mul(ax_matrix_imaginary(column), ax_mul(unit, ax_real(0.5)));
  const ax_value next = ax_add(ax_mul(column, in[6]), half);
  const ax_value outer = ax_mul(next, ax_matrix_transpose(unit));
  out[0] = ax_add(o, ax_sub(outer, ax_matrix_adjoint(outer)));
}

/* x's first n - 1 columns, or the rows of a matrix from `row` on, as n - 1 matrices of one column. */
static ax_value columns_of(ax_value x, int64_t n) {
  return ax_expand_dims(ax_moveaxis(ax_slice_in_dim(x, 0, n - 1, 1, -1), -1, 0), -1);
}
static ax_value rows_of(ax_value x, int64_t row, int64_t n) {
  return ax_expand_dims(ax_slice_in_dim(x, row, row + n - 1, 1, 0), -1);
}

/* q^H dq, given g = q^H da q */
static ax_value turn_of(ax_value h, ax_value g, int64_t n) {
  const ax_value eye = ax_matrix_eye(h, n, n), above = ax_matrix_upper(ax_full_like(eye, 1), 1);
  const ax_value beside = ax_diagonal_to_vector(ax_matrix_part(h, 1, n - 1, 0, n - 1));
  const ax_value inverse = ax_expand_dims(ax_expand_dims(ax_moveaxis(ax_div(ax_real(1), beside), -1, 0), -1), -1);
  ax_value o = ax_full_like(g, 0);
  ax_value in[] = {o,       columns_of(ax_matrix_upper(h, 0), n), columns_of(g, n),     inverse, rows_of(eye, 0, n),
                   rows_of(eye, 1, n), rows_of(above, 1, n)};
  ax_scan(AX_CLOSURE(next_column, 7, 1, &h), 1, n - 1, false, AX_LIST(7, in), AX_LIST(1, &o));
  return o;
}

ax_hessenberg_tangents ax_hessenberg_tangents_of(ax_value h, ax_value form, ax_value taus, ax_value a_tangent) {
  ax_hessenberg_tangents t = {a_tangent, ax_zero, ax_zero};
  const ax_type type = ax_typeof(h);
  if (ax_failed()) return t;
  const int64_t n = type.dims[type.rank - 1];
  if (n == 1) return t;
  const ax_value reflectors = ax_matrix_part(form, 1, n - 1, 0, n - 1), corner = ax_matrix_padded(ax_matrix_eye(h, 1, 1), n, n);
  const ax_value q = ax_add(ax_matrix_within(ax_householder_product(reflectors, taus), 1, 1, n), corner);
  const ax_value g = ax_matmul(ax_matmul(ax_matrix_adjoint(q), a_tangent), q), o = turn_of(h, g, n);
  t.h = ax_add(g, ax_sub(ax_matmul(h, o), ax_matmul(o, h)));
  ax_reflectors_turned(reflectors, taus, ax_matrix_part(o, 1, n - 1, 1, n - 1), &t.form, &t.taus);
  t.form = ax_matrix_within(t.form, 1, 0, n);
  return t;
}

/* h is real on its subdiagonal; what is left of the tangent's imaginary part there are roundings. */
static void jvp(const ax_jvp_args *args) {
  ax_bind(args->eqn->prim, NULL, args->in, 1, args->out, 2);
  args->tangent_out[0] = args->tangent_out[1] = ax_zero;
  const ax_type type = ax_typeof(args->in[0]);
  if (ax_is_zero(args->tangent_in[0]) || ax_failed() || ax_type_elems(&type) == 0) return;
  const ax_value form = args->out[0], h = ax_matrix_upper(form, -1);
  const ax_hessenberg_tangents t = ax_hessenberg_tangents_of(h, form, args->out[1], args->tangent_in[0]);
  const ax_value dh = ax_matrix_upper(t.h, -1);
  args->tangent_out[0] = ax_is_zero(t.form) ? dh : ax_add(dh, t.form);
  args->tangent_out[1] = t.taus;
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *types = &hlo->program->types[eqn->out], *x = &types[0];
  const ax_type results[] = {types[0], types[1], ax_array_type(AX_S32, AX_LIST(x->rank - 2, x->dims))};
  ax_hlo_attributes config = {.hlo = hlo};
  if (ax_type_elems(x) == 0) {
    for (uint32_t k = 0; k < 2; k++) out[k] = ax_hlo_zeros(hlo, &types[k]);
    return AX_OK;
  }
  ax_hlo_add_short(&config, "high", x->dims[x->rank - 1], "i32");
  ax_hlo_add_short(&config, "low", 1, "i32");
  const uint32_t made = ax_hlo_lapack(hlo, "gehrd", &config, in, x, 1, results, 3);
  for (uint32_t k = 0; k < 2; k++) out[k] = ax_hlo_or_nan(hlo, made + 2, made + k, &types[k], x->rank - 2);
  return AX_OK;
}

const ax_prim ax_prim_hessenberg = {
    .name = "hessenberg", .kind = AX_LOCAL, .in_count = 1, .out_count = 2,
    .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = jvp,
    .linearize = jvp, .transpose = ax_absent_transpose, .batch = ax_batch_matrices, .simplify = ax_simplify_nothing,
    .shard = ax_shard_batches, .lower = lower, .complex = lower, .hlo = hlo,
};

void (ax_hessenberg)(ax_value x, uint32_t out_count, ax_value *out) {
  if (!ax_lists_fit("hessenberg", 1, 1, out_count, 2, out)) return;
  ax_bind(&ax_prim_hessenberg, NULL, &x, 1, out, 2);
}
