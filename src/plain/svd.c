/* svd: x, or its adjoint, which has as many rows as columns or more, is q r. r's adjoint times rotations v is a matrix whose columns are at right
   angles (one-sided Jacobi, jacobi.h): their lengths are the singular values, and x is q v s u^H. u is the q of these columns once more, so that its
   columns are at right angles also where values are 0. */
#include <math.h>

#include "axle/linalg.h"
#include "ops/pointwise.h"
#include "plain/jacobi.h"
#include "prim/prims.h"

enum { COUNT, OFF, TOP, BOTTOM, CARRIES }; /* rows are columns of the matrix, and behind them those of the rotations */

typedef struct sizes {
  int64_t k; /* elements of a column */
  double least; /* cosines that count as 0 */
  double none;  /* squares of lengths that do: such a column has no direction, but what roundings left */
} sizes;

static ax_value column_of(ax_value rows, int64_t k) { return ax_slice_in_dim(rows, 0, k, 1, 1); }

/* round, off, top, bottom -> off, top, bottom */
static AX_BODY(turn_pairs) {
  const sizes *s = context;
  ax_value top = in[2], bottom = in[3];
  const ax_value p = column_of(top, s->k), q = column_of(bottom, s->k);
  const ax_value a = ax_reduce_sum(ax_plain_squares(p), AX_DIMS(1), true), d = ax_reduce_sum(ax_plain_squares(q), AX_DIMS(1), true);
  const ax_value b = ax_reduce_sum(ax_mul(ax_conjugated(p), q), AX_DIMS(1), true), both = ax_mul(ax_sqrt(a), ax_sqrt(d)), size = ax_abs(b);
  const ax_value turns = ax_and(ax_gt(size, ax_mul(both, ax_real(s->least))), ax_gt(ax_min(a, d), ax_real(s->none)));
  const ax_plain_rotations r = ax_plain_rotate(a, b, d, turns);
  ax_plain_turn(r.c, r.s, &top, &bottom);
  ax_plain_move(&top, &bottom, 0);
  const ax_value cosines = ax_where(turns, ax_div(size, ax_where(turns, both, ax_integer(1))), ax_integer(0));
  out[0] = ax_max(in[1], ax_reduce_max(cosines, AX_ALL_DIMS, false));
  out[1] = top, out[2] = bottom;
}

static AX_BODY(goes_on) {
  (void)context;
  out[0] = ax_and(ax_lt(in[COUNT], ax_integer(AX_PLAIN_SWEEPS)), ax_gt(in[OFF], ax_integer(0)));
}

static AX_BODY(sweep) {
  const ax_type type = ax_typeof(in[TOP]);
  if (ax_failed()) return;
  const ax_value start[] = {ax_full_like(in[OFF], 0), in[TOP], in[BOTTOM]};
  ax_fori_loop(ax_integer(0), ax_integer(2 * type.dims[0] - 1), AX_CLOSURE(turn_pairs, 4, 3, context), AX_LIST(3, start), AX_LIST(3, out + OFF));
  out[COUNT] = ax_add(in[COUNT], ax_integer(1));
}

/* columns: T[k, k], rows of which are columns of a matrix -> T[k, 2 k], behind them the rotations. */
static ax_value orthogonal(ax_value columns, int64_t k) {
  const ax_type type = ax_typeof(columns);
  const int64_t h = (k + 1) / 2;
  const double epsilon = ax_plain_epsilon(type.dtype);
  sizes s = {k, epsilon * (double)(k < 8 ? 2 : k / 4), pow(epsilon, 4)};
  const ax_value both = ax_matrix_padded(ax_matrix_beside(columns, ax_matrix_eye(columns, k, k)), 2 * h, 2 * k);
  const ax_value one = ax_full(ax_part_dtype(type.dtype), AX_DIMS(), 1), none = ax_full_i64(AX_S32, AX_DIMS(), 0);
  const ax_value start[] = {none, one, ax_slice_in_dim(both, 0, h, 1, 0), ax_slice_in_dim(both, h, 2 * h, 1, 0)};
  ax_value made[CARRIES];
  ax_while(AX_FN(goes_on, CARRIES, 1), AX_CLOSURE(sweep, CARRIES, CARRIES, &s), AX_LIST(CARRIES, start), AX_LIST(CARRIES, made));
  return ax_slice_in_dim(ax_matrix_above(made[TOP], made[BOTTOM]), 0, k, 1, 0);
}

/* The numbers of size 1 on the diagonal of r, where that is not 0. */
static ax_value signs_of(ax_value r) {
  const ax_value d = ax_diagonal_to_vector(r), size = ax_abs(d), some = ax_gt(size, ax_integer(0));
  return ax_where(some, ax_plain_divided(d, ax_where(some, size, ax_integer(1))), ax_integer(1));
}

typedef struct parts {
  ax_value q, taus; /* reflectors */
  ax_value v, u, s; /* T[k, k], T[k, k], R[k] */
} parts;

/* Of m by k matrices, m >= k > 0. */
static parts parts_of(ax_value x, int64_t k) {
  ax_value made[2];
  ax_geqrf(x, AX_LIST(2, made));
  parts p = {.q = made[0], .taus = made[1]};
  const ax_value r = ax_matrix_upper(ax_matrix_part(made[0], 0, k, 0, k), 0), both = orthogonal(ax_conjugated(r), k);
  const ax_value sums = ax_reduce_sum(ax_plain_squares(column_of(both, k)), AX_DIMS(1), false), order = ax_argsort(ax_neg(sums), 0);
  const ax_value sorted = ax_take(both, order, 0), columns = ax_matrix_transpose(column_of(sorted, k));
  p.s = ax_sqrt(ax_take(sums, order, 0));
  p.v = ax_matrix_transpose(ax_slice_in_dim(sorted, k, 2 * k, 1, 1));
  ax_geqrf(columns, AX_LIST(2, made));
  p.u = ax_mul(ax_householder_product(made[0], made[1]), ax_expand_dims(signs_of(made[0]), -2));
  return p;
}

/* q v, with the columns that a full matrix has besides. */
static ax_value long_vectors(const parts *p, int64_t m, int64_t k, bool full) {
  const int64_t more = full ? m - k : 0;
  const ax_value unit = ax_matrix_part(ax_matrix_eye(p->v, m, m), 0, m, k, more);
  return ax_ormqr(p->q, p->taus, ax_matrix_beside(ax_matrix_padded(p->v, m, k), unit), true, false);
}

/* Matrices without rows or columns have full matrices alone. */
static void trace_none(const ax_eqn *eqn, int64_t m, int64_t n, ax_value like, ax_value *out) {
  const bool full = ax_plain_bool(eqn, "full_matrices");
  out[0] = ax_full(ax_part_dtype(ax_typeof(like).dtype), AX_DIMS(0), 0);
  if (eqn->out_count == 1) return;
  out[1] = ax_matrix_eye(like, m, full ? m : 0), out[2] = ax_matrix_eye(like, full ? n : 0, n);
}

static void trace(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  const bool full = ax_plain_bool(eqn, "full_matrices");
  const ax_type type = ax_typeof(in[0]);
  const int64_t m = type.dims[0], n = type.dims[1], k = m < n ? m : n, most = m < n ? n : m;
  if (k == 0) {
    trace_none(eqn, m, n, in[0], out);
    return;
  }
  const ax_value finite = ax_plain_finite(in[0]), by = ax_plain_scale(in[0]), x = ax_plain_divided(in[0], by);
  const parts p = parts_of(m < n ? ax_matrix_adjoint(x) : x, k);
  out[0] = ax_plain_or_nan(finite, ax_mul(p.s, by));
  if (eqn->out_count == 1) return;
  const ax_value vectors = long_vectors(&p, most, k, full);
  out[1] = ax_plain_or_nan(finite, m < n ? p.u : vectors);
  out[2] = ax_plain_or_nan(finite, ax_matrix_adjoint(m < n ? vectors : p.u));
}

const ax_plain_rule ax_plain_svd = {&ax_prim_svd, ax_plain_lapack, trace, 2};
