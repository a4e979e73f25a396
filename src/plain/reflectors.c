/* Matrices as products of reflectors and triangles, and products of reflectors: geqrf, geqp3, qr, householder_product, ormqr. Reflectors act
   together, `block` of them as 1 - v t v^H, by products of matrices. */
#include <string.h>

#include "axle/linalg.h"
#include "linalg/householder.h"
#include "ops/pointwise.h"
#include "plain/matrix.h"
#include "prim/prims.h"

enum { panel = 64, block = 64 };

/* --- geqrf: panels of columns one after the other, each column by column --- */

/* i, a, taus -> a, taus */
static AX_BODY(reflect_column) {
  const ax_type type = ax_typeof(in[1]);
  const ax_plain_reflector r = ax_plain_reflect(ax_plain_column(in[1], in[0]), in[0]);
  (void)context;
  if (ax_failed()) return;
  const ax_value behind = ax_gt(ax_plain_columns(type.dims[1]), in[0]);
  const ax_value a = ax_where(behind, ax_plain_reflected_left(in[1], &r), in[1]);
  out[0] = ax_plain_stored(a, in[0], in[0], &r);
  out[1] = ax_dynamic_at_set(in[2], ax_reshape(r.tau, AX_DIMS()), in[0], 0);
}

/* v and t of reflectors from, from + 1 .., `count` of them, that stand in a from that row and column on. */
static ax_reflectors some_of(ax_value a, ax_value taus, int64_t m, int64_t from, int64_t count) {
  const ax_value part = ax_matrix_part(a, from, m - from, from, count);
  return ax_reflectors_of(part, ax_slice_in_dim(taus, from, from + count, 1, 0), ax_zero, ax_zero);
}

/* (1 - v t v^H) x, or its adjoint times x. */
static ax_value multiplied(const ax_reflectors *r, ax_value x, bool adjoint) {
  const ax_value t = adjoint ? ax_matrix_adjoint(r->t) : r->t;
  return ax_sub(x, ax_matmul(r->v, ax_matmul(t, ax_matmul(ax_matrix_adjoint(r->v), x))));
}

static void factor_panels(ax_value x, int64_t m, int64_t n, ax_value *out) {
  const int64_t k = ax_least(m, n);
  ax_value a = x, all = ax_poison, made[2];
  for (int64_t from = 0; from < k && !ax_failed(); from += panel) {
    const int64_t count = ax_least(panel, n - from), used = ax_least(count, m - from), end = from + count;
    ax_geqrf(ax_matrix_part(a, from, m - from, from, count), AX_LIST(2, made));
    all = from == 0 ? made[1] : ax_concatenate(AX_VALUES(all, made[1]), 0);
    ax_value rest = made[0];
    if (end < n) {
      const ax_reflectors r = ax_reflectors_of(ax_matrix_part(rest, 0, m - from, 0, used), made[1], ax_zero, ax_zero);
      rest = ax_matrix_beside(rest, multiplied(&r, ax_matrix_part(a, from, m - from, end, n - end), true));
    }
    a = ax_dynamic_update_slice(a, rest, AX_VALUES(ax_integer(from), ax_integer(from)));
  }
  out[0] = a, out[1] = all;
}

static void factor(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  const ax_type type = ax_typeof(in[0]);
  const int64_t m = type.dims[0], n = type.dims[1], k = ax_least(m, n);
  (void)eqn;
  if (n > panel) {
    factor_panels(in[0], m, n, out);
    return;
  }
  const ax_value start[] = {in[0], ax_full(type.dtype, AX_DIMS(k), 0)};
  ax_fori_loop(ax_integer(0), ax_integer(k), AX_FN(reflect_column, 3, 2), AX_LIST(2, start), AX_LIST(2, out));
}

const ax_plain_rule ax_plain_geqrf = {&ax_prim_geqrf, ax_plain_lapack, factor, 2};

/* --- geqp3 --- */

/* a with elements or columns i and j exchanged. */
static ax_value exchanged(ax_value a, ax_value i, ax_value j) {
  const ax_value first = ax_dynamic_slice_in_dim(a, i, 1, -1), second = ax_dynamic_slice_in_dim(a, j, 1, -1);
  return ax_dynamic_update_slice_in_dim(ax_dynamic_update_slice_in_dim(a, first, j, -1), second, i, -1);
}

/* j, order, which come first, how many did -> order, which.., how many.. */
static AX_BODY(bring_forward) {
  const ax_value fixed = ax_ne(ax_dynamic_at(in[2], in[0], 0), ax_integer(0)), to = ax_where(fixed, in[3], in[0]);
  (void)context;
  out[0] = exchanged(in[1], in[0], to);
  out[1] = in[2];
  out[2] = ax_add(in[3], ax_convert_element_type(fixed, AX_S32));
}

/* i, a, order, taus, how many come first -> all but i */
static AX_BODY(pivot_column) {
  const ax_type type = ax_typeof(in[1]);
  if (ax_failed()) return;
  const ax_value i = in[0], rows = ax_plain_rows(type.dims[0]), columns = ax_plain_columns(type.dims[1]), sizes = ax_abs(in[1]);
  const ax_value left = ax_and(ax_and(ax_ge(rows, i), ax_ge(columns, i)), ax_eq(sizes, sizes));
  const ax_value rest = ax_where(left, sizes, ax_integer(0)), largest = ax_reduce_max(rest, AX_ALL_DIMS, false);
  const ax_value below = ax_square(ax_div(rest, ax_where(ax_gt(largest, ax_integer(0)), largest, ax_integer(1))));
  const ax_value sums = ax_reduce_sum(below, AX_DIMS(0), true), known = ax_where(ax_eq(sums, sums), sums, ax_integer(0));
  const ax_value free = ax_where(ax_ge(columns, i), known, ax_integer(-1));
  const ax_value best = ax_where(ax_lt(i, in[4]), i, ax_argmax(ax_squeeze(free, AX_DIMS(0)), 0, AX_S32));
  const ax_value moved[] = {i, exchanged(in[1], i, best), in[3]};
  ax_value made[2];
  reflect_column(moved, made, context);
  out[0] = made[0], out[1] = exchanged(in[2], i, best), out[2] = made[1], out[3] = in[4];
}

static void factor_pivoting(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  const ax_type type = ax_typeof(in[0]);
  const int64_t m = type.dims[0], n = type.dims[1], k = ax_least(m, n);
  (void)eqn;
  const ax_value none = ax_full_i64(AX_S32, AX_DIMS(), 0);
  const ax_value numbered[] = {ax_iota(AX_S32, AX_DIMS(n), 0), in[1], none};
  ax_value first[3], made[4];
  ax_fori_loop(ax_integer(0), ax_integer(n), AX_FN(bring_forward, 4, 3), AX_LIST(3, numbered), AX_LIST(3, first));
  const ax_value start[] = {ax_take(in[0], first[0], 1), first[0], ax_full(type.dtype, AX_DIMS(k), 0), first[2]};
  memcpy(made, start, sizeof made);
  if (k > 0) ax_fori_loop(ax_integer(0), ax_integer(k), AX_FN(pivot_column, 5, 4), AX_LIST(4, start), AX_LIST(4, made));
  out[0] = made[0], out[1] = ax_add(made[1], ax_integer(1)), out[2] = made[2];
}

const ax_plain_rule ax_plain_geqp3 = {&ax_prim_geqp3, ax_plain_lapack, factor_pivoting, 2};

/* --- qr --- */

const ax_plain_rule ax_plain_qr = {&ax_prim_qr, ax_plain_lapack, ax_qr_by_reflectors, 0};

/* --- Products --- */

static void product(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  const ax_type a = ax_typeof(in[0]), taus = ax_typeof(in[1]);
  const int64_t m = a.dims[0], n = a.dims[1], k = taus.dims[0];
  (void)eqn;
  ax_value q = ax_matrix_eye(in[0], m, n);
  for (int64_t from = k > 0 ? (k - 1) / block * block : -1; from >= 0 && !ax_failed(); from -= block) {
    const ax_reflectors r = some_of(in[0], in[1], m, from, ax_least(block, k - from));
    const ax_value part = multiplied(&r, ax_matrix_part(q, from, m - from, from, n - from), false);
    q = ax_dynamic_update_slice(q, part, AX_VALUES(ax_integer(from), ax_integer(from)));
  }
  out[0] = q;
}

const ax_plain_rule ax_plain_householder_product = {&ax_prim_householder_product, ax_plain_lapack, product, 2};

/* From the right: the adjoint of what the adjoint gives from the left. */
static void multiply(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  const bool left = ax_plain_bool(eqn, "left"), transpose = ax_plain_bool(eqn, "transpose"), adjoint = left == transpose;
  const ax_type a = ax_typeof(in[0]), taus = ax_typeof(in[1]);
  const int64_t m = a.dims[0], k = taus.dims[0], count = (k + block - 1) / block;
  ax_value c = left ? in[2] : ax_matrix_adjoint(in[2]);
  for (int64_t step = 0; step < count && !ax_failed(); step++) {
    const int64_t from = (adjoint ? step : count - 1 - step) * block;
    const ax_reflectors r = some_of(in[0], in[1], m, from, ax_least(block, k - from));
    const ax_value part = multiplied(&r, ax_slice_in_dim(c, from, m, 1, 0), adjoint);
    c = ax_dynamic_update_slice_in_dim(c, part, ax_integer(from), 0);
  }
  out[0] = left ? c : ax_matrix_adjoint(c);
}

const ax_plain_rule ax_plain_ormqr = {&ax_prim_ormqr, ax_plain_lapack, multiply, 2};
