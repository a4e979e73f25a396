/* Matrices brought near to triangles, and systems with three diagonals: hessenberg, tridiagonal, tridiagonal_solve. */
#include <math.h>

#include "axle/linalg.h"
#include "ops/pointwise.h"
#include "plain/matrix.h"
#include "prim/prims.h"

/* --- hessenberg --- */

/* i, a, taus -> a, taus */
static AX_BODY(reduce_column) {
  const ax_type type = ax_typeof(in[1]);
  if (ax_failed()) return;
  const ax_value at = ax_add(in[0], ax_integer(1)), behind = ax_gt(ax_plain_columns(type.dims[1]), in[0]);
  const ax_plain_reflector r = ax_plain_reflect(ax_plain_column(in[1], in[0]), at);
  (void)context;
  const ax_value both = ax_plain_reflected_left(ax_plain_reflected_right(in[1], &r), &r);
  out[0] = ax_plain_stored(ax_where(behind, both, in[1]), in[0], at, &r);
  out[1] = ax_dynamic_at_set(in[2], ax_reshape(r.tau, AX_DIMS()), in[0], 0);
}

static void reduce(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  const ax_type type = ax_typeof(in[0]);
  const int64_t n = type.dims[0];
  (void)eqn;
  const ax_value start[] = {in[0], ax_full(type.dtype, AX_DIMS(n - 1), 0)};
  out[0] = start[0], out[1] = start[1];
  if (n > 1)
    ax_fori_loop(ax_integer(0), ax_integer(n - 1), AX_FN(reduce_column, 3, 2), AX_LIST(2, start), AX_LIST(2, out));
}

const ax_plain_rule ax_plain_hessenberg = {&ax_prim_hessenberg, ax_plain_lapack, reduce, 2};

/* --- tridiagonal: that of the symmetric matrix; the upper triangle is the lower one of the matrix in reverse --- */

static ax_value reversed(ax_value x, bool lower) {
  if (lower || ax_failed()) return x;
  const ax_type type = ax_typeof(x);
  return type.rank == 2 ? ax_rev(x, AX_DIMS(0, 1)) : ax_rev(x, AX_DIMS(0));
}

static void reduce_symmetric(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  const bool lower = ax_plain_bool(eqn, "lower");
  const ax_type type = ax_typeof(in[0]);
  const int64_t n = type.dims[0];
  ax_value made[2];
  ax_hessenberg(reversed(ax_matrix_of_triangle(in[0], lower), lower), AX_LIST(2, made));
  const ax_value rows = ax_plain_rows(n), columns = ax_plain_columns(n), form = made[0];
  const ax_value beside = ax_le(rows, ax_add(columns, ax_integer(1)));
  const ax_value reals = ax_where(beside, ax_matrix_real(form), form);
  out[0] = ax_where(ax_ge(rows, columns), reals, reversed(in[0], lower));
  out[0] = reversed(out[0], lower);
  out[1] = reversed(ax_matrix_reals(ax_diagonal_to_vector(form)), lower);
  out[2] = n > 1 ? ax_matrix_reals(ax_diagonal_to_vector(ax_matrix_part(form, 1, n - 1, 0, n - 1))) : ax_slice_in_dim(out[1], 0, 0, 1, 0);
  out[2] = reversed(out[2], lower);
  out[3] = reversed(made[1], lower);
}

const ax_plain_rule ax_plain_tridiagonal = {&ax_prim_tridiagonal, ax_plain_lapack, reduce_symmetric, 2};

/* --- tridiagonal_solve, with partial pivoting, as LAPACK's gtsv --- */

static ax_value compared(ax_value x) {
  if (ax_failed() || !ax_is_complex(ax_typeof(x).dtype)) return ax_abs(x);
  return ax_add(ax_abs(ax_real_part(x)), ax_abs(ax_imag_part(x)));
}

/* d, du, b of this row; dl, d, du, b of the next -> d, du, b of the next row; d, du, second du, b of the row of the triangle */
static AX_BODY(eliminate) {
  const ax_value d = in[0], du = in[1], b = in[2], dl = in[3], next_d = in[4], next_du = in[5], next_b = in[6];
  const ax_value stays = ax_ge(compared(d), compared(dl)), zero = ax_full_like(d, 0);
  (void)context;
  const ax_value pivot = ax_where(stays, d, dl), other = ax_where(stays, dl, d), by = ax_div(other, pivot);
  const ax_value above = ax_where(stays, du, next_d), below = ax_where(stays, next_d, du);
  const ax_value second = ax_where(stays, zero, next_du), right = ax_where(stays, b, next_b), left = ax_where(stays, next_b, b);
  out[0] = ax_sub(below, ax_mul(by, above));
  out[1] = ax_sub(ax_where(stays, next_du, zero), ax_mul(by, second));
  out[2] = ax_sub(left, ax_mul(by, right));
  out[3] = pivot, out[4] = above, out[5] = second, out[6] = right;
}

/* x of the next row and of the one behind it; d, du, second du, b -> the same, x */
static AX_BODY(substitute) {
  const ax_value known = ax_add(ax_mul(in[3], in[0]), ax_mul(in[4], in[1]));
  (void)context;
  out[0] = out[2] = ax_div(ax_sub(in[5], known), in[2]);
  out[1] = in[0];
}

/* x's elements but the first, and one more. */
static ax_value next_of(ax_value x, int64_t n, ax_value last) { return ax_concatenate(AX_VALUES(ax_slice_in_dim(x, 1, n, 1, 0), last), 0); }

static void solve(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  const ax_type type = ax_typeof(in[3]);
  const int64_t n = type.dims[0];
  (void)eqn;
  const ax_value one = ax_full(type.dtype, AX_DIMS(1), 1), zero = ax_full(type.dtype, AX_DIMS(1), 0), dl = in[0], d = in[1], b = in[3];
  const ax_value du = ax_concatenate(AX_VALUES(ax_slice_in_dim(in[2], 0, n - 1, 1, 0), zero), 0);
  const ax_value none = ax_full_like(ax_slice_in_dim(b, 0, 1, 1, 0), 0), row = ax_squeeze(none, AX_DIMS(0));
  const ax_value start[] = {ax_at(d, 0, 0), ax_at(du, 0, 0), ax_at(b, 0, 0), next_of(dl, n, zero), next_of(d, n, one), next_of(du, n, zero),
                            next_of(b, n, none)};
  ax_value made[7], solved[3];
  ax_scan(AX_FN(eliminate, 7, 7), 3, n, false, AX_LIST(7, start), AX_LIST(7, made));
  const ax_value back[] = {row, row, made[3], made[4], made[5], made[6]};
  ax_scan(AX_FN(substitute, 6, 3), 2, n, true, AX_LIST(6, back), AX_LIST(3, solved));
  out[0] = ax_plain_or_nan(ax_reduce_and(ax_ne(made[3], ax_integer(0)), AX_ALL_DIMS, false), solved[2]);
}

const ax_plain_rule ax_plain_tridiagonal_solve = {&ax_prim_tridiagonal_solve, ax_plain_lapack, solve, 1};
