/* qr: x T[.., m, n] -> q T[.., m, k], r T[.., k, n], with pivoting also p s32[.., n]         T f32, f64 or complex
   x = q r, or x's columns in the order p are q r: q^H q = 1, r is zero below its diagonal, which has real numbers, also negative
   ones. k is m, or without full_matrices min(m, n).
   Parameters: full_matrices; pivoting: each step goes on with the longest rest of a column, so that the numbers on r's diagonal
   descend but for their signs.
   Errors: other dtypes; fewer than two dimensions.
   The tangent of a square r: with g = q^H dx r^-1 and o = tril(g, -1) - tril(g, -1)^H + i im(diag(g)), dr = (g - o) r and
   dq = q (o - g) + dx r^-1; of the columns of r behind the first m, dr = dq^H x + q^H dx; of the columns of q behind the first n,
   that of the product of reflectors (arXiv:2409.13374). Not finite where r is singular. Batched and cut along leading dimensions.
   Sharding: the rows of x and q are cut where there are more of them than columns, without full_matrices and pivoting. If each
   device has at least 2n rows, and the last n, each factors its own, and the triangles are gathered and factored again (TSQR, SIAM
   J. Sci. Comput. 34, 2012); otherwise x is gathered. The numbers on r's diagonal have the signs that they have uncut, unless
   roundings decide these: the first n rows of x, of which LAPACK takes the signs, are left to the second step. A NaN in x can
   make all of q NaN, and all columns of r from its own on.
   Compiled: LAPACK's geqrf, or geqp3, and orgqr, a matrix at a time. Without pivoting, real matrices of at most 64 rows and
   columns are done by our own code (small.h). */
#include <string.h>

#include "axle/collectives.h"
#include "axle/linalg.h"
#include "axle/ops.h"
#include "linalg/bands.h"
#include "linalg/householder.h"
#include "linalg/small.h"
#include "prim/expand.h"
#include "prim/prims.h"

typedef struct qr_params {
  bool full_matrices, pivoting;
} qr_params;

static ax_status infer(const ax_infer_args *args) {
  const qr_params *p = args->params;
  const ax_type *x = &args->in[0];
  AX_TRY(ax_infer_matrices(args, 2));
  const int64_t m = x->dims[x->rank - 2], n = x->dims[x->rank - 1], k = p->full_matrices ? m : ax_least(m, n);
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
  call->m = in->dims[in->rank - 2], call->n = in->dims[in->rank - 1], call->k = ax_least(call->m, call->n);
  call->columns = out->dims[out->rank - 1];
  call->transposed = p->pivoting;
  call->lwork = asked(call, in->dtype);
  const double elems = (double)(call->m * space_columns(call));
  routine->work_bytes = (call->m * space_columns(call) + call->k + ax_pivoted_work(call)) * (int64_t)ax_dtype_bytes(in->dtype);
  routine->time = 400 + 6 * elems + 2 * elems * (double)call->k / ax_matrix_rate(in->dtype, p->pivoting ? 15 : 30);
  if (!p->pivoting) ax_small_code(routine, AX_SMALL_QR);
}

static ax_status eval(const ax_eval_args *args) { return ax_eval_by(args, rule); }
static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_by(lower, eqn, rule, in, out);
}

/* --- shard --- */

static void shard(const ax_shard_args *args) {
  const qr_params *p = args->eqn->params;
  const ax_type *x = &args->types[args->eqn->in[0]];
  const uint32_t rows = x->rank - 2;
  ax_shard_batches(args);
  if (p->full_matrices || p->pivoting || x->dims[rows + 1] == 0 || x->dims[rows] <= x->dims[rows + 1]) return;
  const uint32_t factor = ax_factor(args, x->dims[rows], AX_FACTOR_ALONG);
  ax_factor_of(&args->in[0], rows, factor);
  ax_factor_of(&args->out[0], rows, factor);
}

static void factors_of(const ax_block_args *args, ax_value x, ax_value *made) {
  ax_bind(args->eqn->prim, args->eqn->params, &x, 1, made, 2);
}

/* `rows` rows of x and the zeros behind it, from row `first` on. */
static ax_value rows_from(ax_value x, ax_value first, int64_t rows, int64_t zeros) {
  const ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  return ax_dynamic_slice_in_dim(ax_matrix_fitted(x, type.dims[type.rank - 2] + zeros, -2), first, rows, -2);
}

static void gathered(const ax_block_args *args, const ax_bands *bands) {
  const uint32_t rows = args->blocks[0].rank - 2;
  const ax_value x = ax_all_gather_invariant(args->in[0], bands->all.text, rows, true);
  ax_value made[2];
  factors_of(args, ax_matrix_fitted(x, bands->total, -2), made);
  args->out[0] = rows_from(made[0], ax_bands_start(bands), bands->size, bands->size * bands->count - bands->total);
  args->out[1] = made[1];
}

/* x's first n rows count as a block of their own: reflectors take signs from them alone, and these do not change when rows below
   are put together by orthogonal matrices. The first device's other rows move up, so that on each device rows without numbers stand
   below n rows with numbers, and are zero in its q too. */
static void block(const ax_block_args *args) {
  const ax_type *x = &args->types[args->eqn->in[0]];
  const uint32_t rows = x->rank - 2;
  const int64_t m = x->dims[rows], n = x->dims[rows + 1];
  const ax_bands bands = ax_bands_of(&args->specs[0], rows, AX_NONE, m);
  const char *axes = bands.all.text;
  ax_value own[2], joint[2];
  if (bands.count == 1) {
    ax_bind(args->eqn->prim, args->eqn->params, args->in, 1, args->out, args->eqn->out_count);
    return;
  }
  if (bands.size < 2 * n || m - (bands.count - 1) * bands.size < n) {
    gathered(args, &bands);
    return;
  }
  const ax_value me = ax_convert_element_type(ax_bands_own(&bands), AX_S64), is_first = ax_eq(me, ax_integer(0));
  const ax_value all = ax_bands_without_padding(&bands, args->in[0], -2);
  const ax_value top = ax_psum(ax_where(is_first, ax_slice_in_dim(all, 0, n, 1, -2), ax_integer(0)), axes);
  const ax_value skipped = ax_mul(ax_convert_element_type(is_first, AX_S64), ax_integer(n));
  factors_of(args, rows_from(all, skipped, bands.size, n), own);
  factors_of(args, ax_matrix_above(top, ax_all_gather_invariant(own[1], axes, rows, true)), joint);
  const ax_value mine = ax_dynamic_slice_in_dim(joint[0], ax_mul(ax_add(me, ax_integer(1)), ax_integer(n)), n, -2);
  const ax_value q = ax_matrix_above(ax_slice_in_dim(joint[0], 0, n, 1, -2), ax_matmul(own[0], mine));
  args->out[0] = ax_dynamic_slice_in_dim(q, ax_sub(ax_integer(n), skipped), bands.size, -2);
  args->out[1] = joint[1];
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

void ax_qr_by_reflectors(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  const qr_params *p = eqn->params;
  const ax_type type = ax_typeof(in[0]);
  ax_value made[3];
  if (ax_failed()) return;
  const int64_t m = type.dims[type.rank - 2], n = type.dims[type.rank - 1], columns = p->full_matrices ? m : ax_least(m, n);
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
  return ax_hlo_expanded_all(hlo, eqn, ax_qr_by_reflectors, in, out);
}

static const ax_param params[] = {{"full_matrices", AX_PARAM_BOOL, offsetof(qr_params, full_matrices)},
                                  {"pivoting", AX_PARAM_BOOL, offsetof(qr_params, pivoting)}};

const ax_prim ax_prim_qr = {
    .name = "qr", .kind = AX_LOCAL, .in_count = 1, .out_count = -1, .count_outs = out_count,
    AX_PARAMS(params, qr_params),
    .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = jvp, .linearize = jvp,
    .transpose = ax_absent_transpose, .batch = ax_batch_matrices, .simplify = ax_simplify_nothing, .shard = shard,
    .block = block, .lower = lower, .complex = lower, .hlo = hlo,
};

void (ax_qr)(ax_value x, bool full_matrices, bool pivoting, uint32_t count, ax_value *out) {
  const qr_params p = {full_matrices, pivoting};
  if (!ax_lists_fit("qr", 1, 1, count, out_count(&p), out)) return;
  ax_bind(&ax_prim_qr, &p, &x, 1, out, out_count(&p));
}
