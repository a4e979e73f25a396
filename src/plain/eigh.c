/* eigh, of large matrices where steps of a loop cost little, by Schur's form, which is diagonal; else by rotations from both
   sides (Jacobi's method), of all pairs in turn, half as many as there are rows at once (jacobi.h). What is off the diagonal
   goes to 0 at last quadratically. The matrix is four quarters, of the rows and columns of those at the top and at the bottom;
   one more row and column of zeros, where their number is odd, meets all others and turns none. */
#include <math.h>

#include "axle/linalg.h"
#include "axle/transform.h"
#include "ops/pointwise.h"
#include "plain/jacobi.h"
#include "plain/schur.h"
#include "prim/prims.h"

enum { COUNT, OFF, TOP_LEFT, TOP_RIGHT, BOTTOM_LEFT, BOTTOM_RIGHT, LEFT, RIGHT, CARRIES }; /* LEFT, RIGHT: columns of the vectors */

static ax_value diagonal(ax_value x) { return ax_matrix_reals(ax_diagonal_to_vector(x)); }
static ax_value with_diagonal(ax_value x, ax_value values) {
  const ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  const ax_value on = ax_eq(ax_plain_rows(type.dims[0]), ax_plain_columns(type.dims[1]));
  return ax_where(on, values, x);
}
static ax_value without_diagonal(ax_value x) { return ax_mul(x, ax_matrix_diagonal(x, ax_typeof(x).dims[0], 0, 1)); }

/* One round; of the carries the four quarters, and the vectors. Pairs whose elements beside the diagonal count as 0 stay: where eigenvalues
   are equal these are noise, which rotations would only move about. */
static AX_BODY(turn_pairs) {
  const ax_value *least = context;
  ax_value x[CARRIES];
  for (int i = TOP_LEFT; i < CARRIES; i++) x[i] = in[1 + i - TOP_LEFT];
  const ax_value a = diagonal(x[TOP_LEFT]), d = diagonal(x[BOTTOM_RIGHT]), b = ax_diagonal_to_vector(x[TOP_RIGHT]);
  const ax_value turns = ax_gt(ax_abs(b), *least), rest = ax_where(turns, ax_full_like(b, 0), b);
  const ax_plain_rotations r = ax_plain_rotate(a, b, d, turns);
  const ax_value moved = ax_mul(r.t, r.size), by_row = ax_conjugated(ax_expand_dims(r.s, -1)), by_column = ax_expand_dims(r.s, -2);
  ax_plain_turn(ax_expand_dims(r.c, -1), by_row, &x[TOP_LEFT], &x[BOTTOM_LEFT]);
  ax_plain_turn(ax_expand_dims(r.c, -1), by_row, &x[TOP_RIGHT], &x[BOTTOM_RIGHT]);
  for (int i = TOP_LEFT; i < CARRIES; i += 2) ax_plain_turn(ax_expand_dims(r.c, -2), by_column, &x[i], &x[i + 1]);
  x[TOP_LEFT] = with_diagonal(x[TOP_LEFT], ax_matrix_as(ax_sub(a, moved), b));
  x[BOTTOM_RIGHT] = with_diagonal(x[BOTTOM_RIGHT], ax_matrix_as(ax_add(d, moved), b));
  x[TOP_RIGHT] = with_diagonal(x[TOP_RIGHT], rest);
  x[BOTTOM_LEFT] = with_diagonal(x[BOTTOM_LEFT], ax_conjugated(rest)); /* which roundings have made another number */
  ax_plain_move(&x[TOP_LEFT], &x[BOTTOM_LEFT], 0);
  ax_plain_move(&x[TOP_RIGHT], &x[BOTTOM_RIGHT], 0);
  for (int i = TOP_LEFT; i < CARRIES; i += 2) ax_plain_move(&x[i], &x[i + 1], 1);
  for (int i = TOP_LEFT; i < CARRIES; i++) out[i - TOP_LEFT] = x[i];
}

static ax_value largest(ax_value x) { return ax_reduce_max(ax_abs(x), AX_ALL_DIMS, false); }

/* The largest element that is not on the diagonal. */
static ax_value off_diagonal(const ax_value *x) {
  const ax_value first = ax_max(largest(without_diagonal(x[TOP_LEFT])), largest(x[TOP_RIGHT]));
  return ax_max(first, ax_max(largest(without_diagonal(x[BOTTOM_RIGHT])), largest(x[BOTTOM_LEFT])));
}

static AX_BODY(goes_on) {
  const ax_value *least = context; /* where NaN have come in it is false */
  out[0] = ax_and(ax_lt(in[COUNT], ax_integer(AX_PLAIN_SWEEPS)), ax_gt(in[OFF], *least));
}

static AX_BODY(sweep) {
  const ax_type type = ax_typeof(in[TOP_LEFT]);
  if (ax_failed()) return;
  ax_fori_loop(ax_integer(0), ax_integer(2 * type.dims[0] - 1), AX_CLOSURE(turn_pairs, 7, 6, context), AX_LIST(6, in + TOP_LEFT), AX_LIST(6, out + TOP_LEFT));
  out[COUNT] = ax_add(in[COUNT], ax_integer(1));
  out[OFF] = off_diagonal(out);
}

/* The n by n matrix x becomes quarters and vectors. */
static void begin(ax_value x, int64_t n, ax_value *carries) {
  const int64_t h = (n + 1) / 2;
  const ax_value whole = ax_matrix_padded(x, 2 * h, 2 * h), unit = ax_matrix_eye(x, n, 2 * h);
  for (int i = 0; i < 4; i++) carries[TOP_LEFT + i] = ax_matrix_part(whole, i / 2 * h, h, i % 2 * h, h);
  for (int i = 0; i < 2; i++) carries[LEFT + i] = ax_matrix_part(unit, 0, n, i * h, h);
  carries[COUNT] = ax_full_i64(AX_S32, AX_DIMS(), 0);
  carries[OFF] = off_diagonal(carries);
}

/* Columns of complex vectors may be multiplied by any number of size 1: LAPACK's have a real first row, or last. */
static ax_value with_real_row(ax_value v, bool lower, int64_t n) {
  if (ax_failed() || !ax_is_complex(ax_typeof(v).dtype)) return v;
  const ax_value row = ax_slice_in_dim(v, lower ? 0 : n - 1, lower ? 1 : n, 1, 0), size = ax_abs(row), some = ax_gt(size, ax_integer(0));
  const ax_value phase = ax_plain_divided(ax_conjugated(row), ax_where(some, size, ax_integer(1)));
  const ax_value turned = ax_mul(v, ax_where(some, phase, ax_integer(1)));
  const ax_value is_row = ax_eq(ax_plain_rows(n), ax_integer(lower ? 0 : n - 1));
  return ax_where(is_row, ax_matrix_real(turned), turned);
}

typedef struct wanted {
  bool lower, vectors;
} wanted;

/* In ascending order: w R[n], v T[n, n], unless vectors are not wanted. */
static void put(const wanted *wanted, ax_value known, ax_value by, ax_value w, ax_value v, ax_value *out) {
  const ax_value order = ax_argsort(w, 0);
  out[wanted->vectors] = ax_plain_or_nan(known, ax_mul(ax_take(w, order, 0), by));
  if (!wanted->vectors || ax_failed()) return;
  out[0] = ax_plain_or_nan(known, with_real_row(ax_take(v, order, 1), wanted->lower, ax_typeof(w).dims[0]));
}

static void trace(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  const bool lower = ax_plain_bool(eqn, "lower"), vectors = ax_plain_bool(eqn, "compute_v");
  const ax_type type = ax_typeof(in[0]);
  const int64_t n = type.dims[0];
  const ax_value given = ax_matrix_of_triangle(in[0], lower), finite = ax_plain_finite(given);
  const ax_value by = ax_plain_scale(given), x = ax_plain_divided(given, by);
  ax_value carries[CARRIES], made[CARRIES];
  ax_value least = ax_mul(largest(x), ax_real(ax_plain_epsilon(type.dtype) / sqrt((double)n)));
  begin(x, n, carries);
  ax_while(AX_CLOSURE(goes_on, CARRIES, 1, &least), AX_CLOSURE(sweep, CARRIES, CARRIES, &least), AX_LIST(CARRIES, carries), AX_LIST(CARRIES, made));
  const ax_value values = ax_concatenate(AX_VALUES(diagonal(made[TOP_LEFT]), diagonal(made[BOTTOM_RIGHT])), 0);
  const ax_value v = ax_slice_in_dim(ax_matrix_beside(made[LEFT], made[RIGHT]), 0, n, 1, 1);
  put(&(wanted){lower, vectors}, finite, by, ax_slice_in_dim(values, 0, n, 1, 0), v, out);
}

const ax_plain_rule ax_plain_eigh = {&ax_prim_eigh, ax_plain_lapack, trace, 2};

/* --- By Schur's form --- */

static bool takes_steps(const ax_plain_lacks *lacks, const ax_eqn *eqn, const ax_type *in, const ax_type *out) {
  (void)eqn, (void)out;
  return lacks->lapack && !lacks->slow_steps && in->dims[in->rank - 1] >= 256; /* below that it takes longer to compile than it gains */
}

static AX_BODY(finish) { /* t, whether it is known, what it is divided by, q */
  put(context, in[1], in[2], diagonal(in[0]), in[3], out);
}

static void trace_steps(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  wanted wanted = {ax_plain_bool(eqn, "lower"), ax_plain_bool(eqn, "compute_v")};
  const ax_type type = ax_typeof(in[0]);
  const uint32_t count = 3u + wanted.vectors;
  const ax_plain_prepared x = ax_plain_prepare(ax_matrix_of_triangle(in[0], wanted.lower));
  const ax_plain_schur_form form = ax_plain_schur_of(x.matrices, wanted.vectors);
  const ax_value parts[] = {form.t, ax_and(x.finite, form.known), x.scale, form.q};
  ax_value made[2];
  (ax_vmap)((ax_fn){finish, count, eqn->out_count, &wanted}, count, parts, eqn->out_count, made, NULL);
  out[wanted.vectors] = ax_reshape(made[wanted.vectors], AX_LIST(type.rank - 1, type.dims));
  if (wanted.vectors) out[0] = ax_reshape(made[0], AX_LIST(type.rank, type.dims));
}

const ax_plain_rule ax_plain_eigh_steps = {&ax_prim_eigh, takes_steps, trace_steps, 0};
