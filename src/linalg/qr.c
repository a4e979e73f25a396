/* qr: x T[.., m, n] -> q T[.., m, k], r T[.., k, n], with pivoting also p s32[.., n]         T f32, f64 or complex
   x = q r, or x's columns in the order p are q r: q^H q = 1, r is zero below its diagonal, which has real numbers, also negative
   ones. k is m, or without full_matrices min(m, n).
   Parameters: full_matrices; pivoting: each step goes on with the longest rest of a column, so that the numbers on r's diagonal
   descend but for their signs.
   Errors: other dtypes; fewer than two dimensions.
   The tangent of a square r: with g = q^H dx r^-1 and o = tril(g, -1) - tril(g, -1)^H + i im(diag(g)), dr = (g - o) r and
   dq = q (o - g) + dx r^-1; of the columns of r behind the first m, dr = dq^H x + q^H dx; of the columns of q behind the first n,
   that of the product of reflectors (arXiv:2409.13374). Not finite where r is singular. Batched and cut along leading dimensions.
   Compiled: LAPACK's geqrf, or geqp3, and orgqr, a matrix at a time. */
#include <string.h>

#include "axle/linalg.h"
#include "linalg/householder.h"
#include "prim/expand.h"
#include "prim/prims.h"

typedef struct qr_params {
  bool full_matrices, pivoting;
} qr_params;

static int64_t least(int64_t m, int64_t n) { return m < n ? m : n; }

static ax_status infer(const ax_infer_args *args) {
  const qr_params *p = args->params;
  const ax_type *x = &args->in[0];
  AX_TRY(ax_infer_matrices(args, 2));
  const int64_t m = x->dims[x->rank - 2], n = x->dims[x->rank - 1], k = p->full_matrices ? m : least(m, n);
  for (uint32_t i = 0; i < 2; i++) args->out[i] = ax_array_type(x->dtype, AX_LIST(x->rank, x->dims));
  args->out[0].dims[x->rank - 1] = k;
  args->out[1].dims[x->rank - 2] = k;
  if (!p->pivoting) return AX_OK;
  args->out[2] = ax_array_type(AX_S32, AX_LIST(x->rank - 1, x->dims));
  args->out[2].dims[x->rank - 2] = n;
  return AX_OK;
}

static uint32_t out_count(const void *params) { return ((const qr_params *)params)->pivoting ? 3 : 2; }

/* --- One matrix; the workspace has x's columns one after the other, then the taus, then LAPACK's --- */

typedef struct space {
  void *columns, *taus, *rest;
} space;

static int64_t space_columns(const ax_matrix_call *call) { return call->columns > call->n ? call->columns : call->n; }

static space space_of(const ax_matrix_call *call, void *work) {
  void *taus = ax_work_behind(call, work, call->m * space_columns(call));
  return (space){work, taus, ax_work_behind(call, taus, call->k)};
}

/* call->columns of q, as many rows of r. */
static void copy_r(const ax_matrix_call *call, const char *columns, char *r) {
  const size_t bytes = ax_dtype_bytes(call->dtype);
  memset(r, 0, (size_t)(call->columns * call->n) * bytes);
  for (int64_t i = 0; i < call->k; i++)
    for (int64_t j = i; j < call->n; j++)
      memcpy(r + (size_t)(i * call->n + j) * bytes, columns + (size_t)(j * call->m + i) * bytes, bytes);
}

static void pivot(const ax_matrix_call *call, const space *s, int32_t *p) {
  const int m = (int)call->m, n = (int)call->n;
  memset(p, 0, (size_t)n * sizeof *p);
  ax_pivoted(call, s->columns, p, s->taus, s->rest, &call->lwork);
  for (int i = 0; i < n; i++) p[i] = m == 0 ? i : p[i] - 1;
}

static void factor_one(const ax_matrix_call *call, void *const *matrix, void *work) {
  const int m = (int)call->m, n = (int)call->n, k = (int)call->k, columns = (int)call->columns, ld = ax_leading(m);
  const space s = space_of(call, work);
  int info = 0;
  ax_matrix_turn(s.columns, matrix[0], call->m, call->n, call->dtype);
  if (call->transposed)
    pivot(call, &s, matrix[3]);
  else
    call->lapack->geqrf(&m, &n, s.columns, &ld, s.taus, s.rest, &call->lwork, &info);
  copy_r(call, s.columns, matrix[2]);
  call->lapack->orgqr(&m, &columns, &k, s.columns, &ld, s.taus, s.rest, &call->lwork, &info);
  ax_matrix_turn(matrix[1], s.columns, call->columns, call->m, call->dtype);
}

/* The most that the two routines ask for. */
static int asked(const ax_matrix_call *call, ax_dtype dtype) {
  const int m = (int)call->m, n = (int)call->n, k = (int)call->k, columns = (int)call->columns, ld = ax_leading(m), ask = -1;
  ax_lapack_size first = {1, 0}, second = {1, 0};
  int info = 0;
  if (call->transposed)
    ax_pivoted(call, NULL, NULL, NULL, &first, &ask);
  else
    call->lapack->geqrf(&m, &n, NULL, &ld, NULL, &first, &ask, &info);
  call->lapack->orgqr(&m, &columns, &k, NULL, &ld, NULL, &second, &ask, &info);
  const int a = ax_lapack_asked(dtype, &first), b = ax_lapack_asked(dtype, &second);
  return a > b ? a : b;
}

static void rule(const void *params, const ax_type *in, const ax_type *out, ax_matrix_routine *routine) {
  const qr_params *p = params;
  ax_matrix_call *call = &routine->call;
  routine->name = p->pivoting ? "geqp3, orgqr" : "geqrf, orgqr";
  routine->code = factor_one;
  call->m = in->dims[in->rank - 2], call->n = in->dims[in->rank - 1], call->k = least(call->m, call->n);
  call->columns = out->dims[out->rank - 1];
  call->transposed = p->pivoting;
  call->lwork = asked(call, in->dtype);
  const double elems = (double)(call->m * space_columns(call));
  routine->work_bytes = (call->m * space_columns(call) + call->k + ax_pivoted_work(call)) * (int64_t)ax_dtype_bytes(in->dtype);
  routine->time = 400 + 6 * elems + 2 * elems * (double)call->k / ax_matrix_rate(in->dtype, p->pivoting ? 15 : 30);
}

static ax_status eval(const ax_eval_args *args) { return ax_eval_by(args, rule); }
static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_by(lower, eqn, rule, in, out);
}

/* --- Derivatives --- */

static ax_value turned(ax_value x) { return ax_matrix_adjoint(x); }

typedef struct tangents {
  ax_value q, r;
} tangents;

/* Of x with as many columns as q, which r, square, has too. */
static tangents of_square_r(ax_value q, ax_value r, ax_value dx) {
  const ax_value solved = ax_triangular_solve(r, dx, false, false, false, false, false), g = ax_matmul(turned(q), solved);
  const ax_value o = ax_skew_part(g);
  return (tangents){ax_add(ax_matmul(q, ax_sub(o, g)), solved), ax_matmul(ax_sub(g, o), r)};
}

static tangents of_wide(ax_value q, ax_value r, ax_value x, ax_value dx, int64_t m, int64_t n) {
  const tangents square = of_square_r(q, ax_matrix_part(r, 0, m, 0, m), ax_matrix_part(dx, 0, m, 0, m));
  const ax_value by_q = ax_matmul(turned(square.q), ax_matrix_part(x, 0, m, m, n - m));
  const ax_value by_x = ax_matmul(turned(q), ax_matrix_part(dx, 0, m, m, n - m));
  return (tangents){square.q, ax_matrix_beside(square.r, ax_add(by_q, by_x))};
}

/* Of a full q with more rows than x has columns. z = q21 (q11 - 1)^-1 is what v has below v1, times v1^-1. */
static tangents of_full(ax_value q, ax_value r, ax_value dx, int64_t m, int64_t n) {
  const ax_value first = ax_matrix_part(q, 0, m, 0, n), rest = ax_matrix_part(q, 0, m, n, m - n);
  const tangents thin = of_square_r(first, ax_matrix_part(r, 0, n, 0, n), dx);
  const ax_value top = ax_matrix_part(first, 0, n, 0, n), bottom = ax_matrix_part(first, n, m - n, 0, n);
  const ax_value by = ax_sub(top, ax_matrix_eye(q, n, n));
  const ax_value z = ax_matrix_transpose(ax_matrix_solve(by, ax_matrix_transpose(bottom), true)), z_turned = turned(z);
  const ax_value dtop = ax_matrix_part(thin.q, 0, n, 0, n), dbottom = ax_matrix_part(thin.q, n, m - n, 0, n);
  const ax_value moved = ax_matmul(ax_add(first, ax_matmul(rest, z)), turned(ax_sub(dbottom, ax_matmul(z, dtop))));
  const ax_value drest = ax_sub(ax_matmul(thin.q, z_turned), moved);
  return (tangents){ax_matrix_beside(thin.q, drest), ax_matrix_padded(thin.r, m, n)};
}

static void jvp(const ax_jvp_args *args) {
  const qr_params *p = args->eqn->params;
  const uint32_t count = out_count(p);
  ax_bind(args->eqn->prim, p, args->in, 1, args->out, count);
  for (uint32_t k = 0; k < count; k++) args->tangent_out[k] = ax_zero;
  const ax_type type = ax_typeof(args->in[0]);
  if (ax_is_zero(args->tangent_in[0]) || ax_failed() || ax_type_elems(&type) == 0) return;
  const int64_t m = type.dims[type.rank - 2], n = type.dims[type.rank - 1];
  const ax_value q = args->out[0], r = args->out[1];
  ax_value x = args->in[0], dx = args->tangent_in[0];
  if (p->pivoting) x = ax_matrix_columns(x, args->out[2]), dx = ax_matrix_columns(dx, args->out[2]);
  const tangents t = m < n                       ? of_wide(q, r, x, dx, m, n)
                     : m > n && p->full_matrices ? of_full(q, r, dx, m, n)
                                                 : of_square_r(q, r, dx);
  args->tangent_out[0] = t.q, args->tangent_out[1] = t.r;
}

/* --- hlo: as JAX writes it --- */

static ax_value product(ax_value form, ax_value taus, int64_t m, int64_t n, int64_t columns) {
  return ax_householder_product(n < columns ? ax_matrix_padded(form, m, columns) : ax_matrix_part(form, 0, m, 0, columns), taus);
}

static void expand(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  const qr_params *p = eqn->params;
  const ax_type type = ax_typeof(in[0]);
  ax_value made[3];
  if (ax_failed()) return;
  const int64_t m = type.dims[type.rank - 2], n = type.dims[type.rank - 1], columns = p->full_matrices ? m : least(m, n);
  if (p->pivoting) {
    ax_dims dims = {.count = type.rank - 1};
    memcpy(dims.v, type.dims, (type.rank - 2) * sizeof dims.v[0]);
    dims.v[type.rank - 2] = n;
    ax_geqp3(in[0], ax_full_i64(AX_S32, AX_LIST(dims.count, dims.v), 0), AX_LIST(3, made));
    out[2] = ax_sub(made[1], ax_integer(1));
    made[1] = made[2];
  } else {
    ax_geqrf(in[0], AX_LIST(2, made));
  }
  out[0] = product(made[0], made[1], m, n, columns);
  out[1] = ax_matrix_upper(m > columns ? ax_matrix_part(made[0], 0, columns, 0, n) : made[0], 0);
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_hlo_expanded_all(hlo, eqn, expand, in, out);
}

static const ax_param params[] = {{"full_matrices", AX_PARAM_BOOL, offsetof(qr_params, full_matrices)},
                                  {"pivoting", AX_PARAM_BOOL, offsetof(qr_params, pivoting)}};

const ax_prim ax_prim_qr = {
    .name = "qr", .kind = AX_LOCAL, .in_count = 1, .out_count = -1, .count_outs = out_count,
    AX_PARAMS(params, qr_params),
    .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = jvp, .linearize = jvp,
    .transpose = ax_absent_transpose, .batch = ax_batch_matrices, .simplify = ax_simplify_nothing, .shard = ax_shard_batches,
    .lower = lower, .complex = lower, .hlo = hlo,
};

void (ax_qr)(ax_value x, bool full_matrices, bool pivoting, uint32_t count, ax_value *out) {
  const qr_params p = {full_matrices, pivoting};
  if (!ax_lists_fit("qr", 1, 1, count, out_count(&p), out)) return;
  ax_bind(&ax_prim_qr, &p, &x, 1, out, out_count(&p));
}
