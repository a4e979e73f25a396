/* See balance.h.

   First what is triangular already goes to the ends. A row whose other elements are all 0 has its element of the diagonal as
   eigenvalue: it comes last. So does such a row of what is left then, before it. Columns of zeros come first, in the same way.
   Rounds take all such rows and columns at once, since they do not meet in an element that is not 0.

     . x . x      b x x x          row 1 has zeros alone, and comes last; column 0 of what is left has zeros, and comes first:
     . b . .  ->  . . x x          the eigenvalues b of rows 1 and 0 are there to be read
     x x . x      . x . x
     . x x .      . . . b

   Then the row and the column of each number that is left are brought to lengths that differ by some 2 at most: with the
   diagonal, and by roots of sums of squares. Where sums of sizes are made alike, vectors may get much less precise (James, Langou
   and Lowery, 2014). Where rows and columns of zeros took part, scales would grow without end: an element beside them would
   become so small that Francis' iteration takes it for 0, though in the vectors, which the scales make large again, it counts. */
#include "plain/balance.h"

#include "axle/ops.h"
#include "axle/transform.h"
#include "ops/pointwise.h"

/* --- Order --- */

/* KEYS: s32[n, 1]; 0: it is left; below 0: its column comes first; above 0: its row comes last. */
enum { ROUND, FOUND, KEYS, ORDER };

static AX_BODY(finds) {
  (void)context;
  out[0] = in[FOUND];
}

/* Looks for rows and columns of zeros in what is left. Those that are found first are the farthest out. */
static AX_BODY(isolate) {
  const ax_value *x = context, keys = in[KEYS], zero = ax_integer(0);
  const ax_type type = ax_typeof(*x);
  if (ax_failed()) return;
  const int64_t n = type.dims[0];
  const ax_value left = ax_eq(keys, zero), across = ax_matrix_transpose(left), beside = ax_ne(ax_plain_rows(n), ax_plain_columns(n));
  const ax_value counts = ax_and(ax_and(ax_ne(*x, zero), beside), ax_and(left, across));
  const ax_value row = ax_and(left, ax_not(ax_reduce_or(counts, AX_DIMS(1), true)));
  const ax_value column = ax_and(left, ax_not(ax_matrix_transpose(ax_reduce_or(counts, AX_DIMS(0), true))));
  const ax_value out_there = ax_sub(ax_integer(n), in[ROUND]);
  out[ROUND] = ax_add(in[ROUND], ax_integer(1));
  out[FOUND] = ax_reduce_or(ax_or(row, column), AX_ALL_DIMS, false);
  out[KEYS] = ax_where(row, out_there, ax_where(column, ax_neg(out_there), keys));
}

/* x -> x in order, bool[n, 1]: what is left; s32[n]: places */
static void put_in_order(ax_value x, ax_value *ordered, ax_value *left, ax_value *places) {
  const ax_type type = ax_typeof(x);
  if (ax_failed()) return;
  const int64_t n = type.dims[0];
  const ax_value numbers = ax_iota(AX_S32, AX_DIMS(n), 0);
  const ax_value start[] = {ax_full_i64(AX_S32, AX_DIMS(), 0), ax_full(AX_BOOL, AX_DIMS(), 1), ax_full_i64(AX_S32, AX_DIMS(n, 1), 0)};
  ax_value made[ORDER], sorted[2];
  ax_while(AX_FN(finds, ORDER, 1), AX_CLOSURE(isolate, ORDER, ORDER, &x), AX_LIST(ORDER, start), AX_LIST(ORDER, made));
  ax_sort_together(AX_VALUES(ax_squeeze(made[KEYS], AX_DIMS(1)), numbers), 0, 1, sorted);
  *ordered = ax_take(ax_take(x, sorted[1], 0), sorted[1], 1);
  *left = ax_expand_dims(ax_eq(sorted[0], ax_integer(0)), 1);
  *places = ax_argsort(sorted[1], 0);
}

/* --- Scales --- */

enum { COUNT, CHANGED, MATRIX, SCALES, BALANCE, SWEEPS = 16 };

/* R[1, 1]: the root of the sum of squares, which are those of quotients by the largest element. */
static ax_value length_of(ax_value x) {
  const ax_value by = ax_plain_or_one(ax_reduce_max(ax_abs(x), AX_ALL_DIMS, false));
  const ax_value sum = ax_reduce_sum(ax_plain_squares(ax_plain_divided(x, by)), AX_ALL_DIMS, false);
  return ax_reshape(ax_mul(by, ax_sqrt(sum)), AX_DIMS(1, 1));
}

/* i, changed, x, d -> changed, x, d; left: bool[n, 1] */
static AX_BODY(scale_one) {
  const ax_value *left = context, i = in[0], x = in[2], d = in[3], none = ax_integer(0);
  const ax_type type = ax_typeof(d);
  if (ax_failed()) return;
  const bool wide = type.dtype == AX_F64;
  const ax_value in_row = ax_where(ax_matrix_transpose(*left), ax_dynamic_slice_in_dim(x, i, 1, 0), none);
  const ax_value row = length_of(in_row), column = length_of(ax_where(*left, ax_plain_column(x, i), none));
  const ax_value some = ax_and(ax_dynamic_slice_in_dim(*left, i, 1, 0), ax_and(ax_gt(row, none), ax_gt(column, none)));
  const ax_value before = ax_dynamic_slice_in_dim(d, i, 1, 0);
  const ax_value root = ax_div(ax_sqrt(ax_plain_or_one(row)), ax_sqrt(ax_plain_or_one(column)));
  const ax_value most = ax_real(wide ? 0x1p400 : 0x1p50), least = ax_real(wide ? 0x1p-400 : 0x1p-50);
  const ax_value to = ax_clamp(least, ax_mul(before, ax_reduce_precision(root, wide ? 11 : 8, 0)), most), by = ax_div(to, before);
  const ax_value sum = ax_add(ax_mul(column, by), ax_div(row, by)), pays = ax_lt(sum, ax_mul(ax_add(column, row), ax_real(0.95)));
  const ax_value chosen = ax_where(ax_and(some, pays), by, ax_integer(1)), factor = ax_matrix_as(chosen, x);
  const ax_value wider = ax_dynamic_update_slice_in_dim(x, ax_mul(ax_plain_column(x, i), factor), i, 1);
  const ax_value shorter = ax_plain_divided(ax_dynamic_slice_in_dim(wider, i, 1, 0), chosen);
  out[0] = ax_or(in[1], ax_reshape(ax_ne(chosen, ax_integer(1)), AX_DIMS()));
  out[1] = ax_dynamic_update_slice_in_dim(wider, shorter, i, 0);
  out[2] = ax_dynamic_update_slice_in_dim(d, ax_mul(before, chosen), i, 0);
}

static AX_BODY(unbalanced) {
  (void)context;
  out[0] = ax_and(ax_lt(in[COUNT], ax_integer(SWEEPS)), in[CHANGED]);
}

static AX_BODY(sweep) {
  const ax_type type = ax_typeof(in[MATRIX]);
  if (ax_failed()) return;
  const ax_value start[] = {ax_full(AX_BOOL, AX_DIMS(), 0), in[MATRIX], in[SCALES]};
  ax_fori_loop(ax_integer(0), ax_integer(type.dims[0]), AX_CLOSURE(scale_one, 4, 3, context), AX_LIST(3, start),
               AX_LIST(3, out + CHANGED));
  out[COUNT] = ax_add(in[COUNT], ax_integer(1));
}

/* --- Both --- */

static AX_BODY(balance_one) { /* x -> balanced, scales, places */
  const ax_type type = ax_typeof(in[0]);
  ax_value x = ax_poison, left = ax_poison, made[BALANCE];
  (void)context;
  if (ax_failed()) return;
  put_in_order(in[0], &x, &left, &out[2]);
  const ax_value one = ax_full(ax_part_dtype(type.dtype), AX_DIMS(type.dims[0], 1), 1);
  const ax_value start[] = {ax_full_i64(AX_S32, AX_DIMS(), 0), ax_full(AX_BOOL, AX_DIMS(), 1), x, one};
  ax_while(AX_FN(unbalanced, BALANCE, 1), AX_CLOSURE(sweep, BALANCE, BALANCE, &left), AX_LIST(BALANCE, start),
           AX_LIST(BALANCE, made));
  out[0] = made[MATRIX], out[1] = made[SCALES];
}

ax_plain_balanced ax_plain_balance(ax_value x) {
  ax_value made[3] = {ax_poison, ax_poison, ax_poison};
  ax_vmap(AX_FN(balance_one, 1, 3), AX_VALUES(x), AX_LIST(3, made), NULL);
  return (ax_plain_balanced){made[0], made[1], made[2]};
}
