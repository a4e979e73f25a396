/* See matrix.h. Sums over rows and columns are reductions, not products of matrices, which some devices round. */
#include "plain/matrix.h"

#include <math.h>

#include "axle/ops.h"
#include "ops/pointwise.h"

ax_value ax_plain_rows(int64_t count) { return ax_iota(AX_S32, AX_DIMS(count, 1), 0); }
ax_value ax_plain_columns(int64_t count) { return ax_iota(AX_S32, AX_DIMS(1, count), 1); }

ax_value ax_plain_squares(ax_value x) {
  if (ax_failed() || !ax_is_complex(ax_typeof(x).dtype)) return ax_square(x);
  return ax_add(ax_square(ax_real_part(x)), ax_square(ax_imag_part(x)));
}

double ax_plain_epsilon(ax_dtype dtype) { return ax_part_dtype(dtype) == AX_F64 ? 0x1p-52 : 0x1p-23; }
double ax_plain_least(ax_dtype dtype) { return ax_part_dtype(dtype) == AX_F64 ? 0x1p-1022 : 0x1p-126; }
ax_value ax_plain_or_one(ax_value x) { return ax_where(ax_eq(x, ax_integer(0)), ax_integer(1), x); }

static ax_value largest_part(ax_value x) {
  if (ax_failed() || !ax_is_complex(ax_typeof(x).dtype)) return ax_reduce_max(ax_abs(x), AX_ALL_DIMS, false);
  return ax_max(largest_part(ax_real_part(x)), largest_part(ax_imag_part(x)));
}

ax_value ax_plain_scale(ax_value x) {
  const ax_value half = ax_mul(largest_part(x), ax_real(0.5)); /* which rounded up to a power of 2 is still finite */
  if (ax_failed()) return ax_poison;
  const ax_value by = ax_reduce_precision(half, ax_typeof(half).dtype == AX_F64 ? 11 : 8, 0);
  return ax_plain_or_one(by);
}

ax_value ax_plain_divided(ax_value x, ax_value by) {
  if (ax_failed() || !ax_is_complex(ax_typeof(x).dtype)) return ax_div(x, by);
  return ax_complex(ax_div(ax_real_part(x), by), ax_div(ax_imag_part(x), by));
}

ax_value ax_plain_quotient(ax_value x, ax_value by) {
  if (ax_failed() || !ax_is_complex(ax_typeof(by).dtype)) return ax_div(x, by);
  const ax_value size = ax_abs(by);
  return ax_mul(ax_plain_divided(x, size), ax_conjugated(ax_plain_divided(by, size)));
}

ax_value ax_plain_finite(ax_value x) {
  if (ax_failed()) return ax_poison;
  if (!ax_is_complex(ax_typeof(x).dtype)) return ax_reduce_and(ax_is_finite(x), AX_ALL_DIMS, false);
  return ax_and(ax_plain_finite(ax_real_part(x)), ax_plain_finite(ax_imag_part(x)));
}

ax_value ax_plain_or_nan(ax_value condition, ax_value x) {
  const ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  const ax_value nan = ax_full(ax_part_dtype(type.dtype), AX_DIMS(), NAN);
  return ax_where(condition, x, ax_is_complex(type.dtype) ? ax_complex(nan, nan) : nan);
}

ax_value ax_plain_column(ax_value x, ax_value index) { return ax_dynamic_slice_in_dim(x, index, 1, -1); }

/* --- Reflectors --- */

/* The sizes of what is behind row `at` of a column, and of all from that row on. Squares are those of quotients by the largest
   element, so they do not overflow. The elements behind the row are divided by the largest of their own: beside a much larger one
   their squares would be 0, the reflector would be 1, and a QR step whose reflectors are 1 leads nowhere. */
static void sizes(ax_value rest, ax_value alpha, ax_value *of_rest, ax_value *of_all) {
  const ax_value largest = ax_reduce_max(ax_abs(rest), AX_DIMS(0), true), by = ax_plain_or_one(largest);
  const ax_value sum = ax_reduce_sum(ax_plain_squares(ax_plain_divided(rest, by)), AX_DIMS(0), true);
  *of_rest = ax_mul(by, ax_sqrt(sum));
  const ax_value all = ax_plain_or_one(ax_max(*of_rest, ax_abs(alpha)));
  *of_all = ax_mul(all, ax_sqrt(ax_add(ax_square(ax_div(*of_rest, all)), ax_plain_squares(ax_plain_divided(alpha, all)))));
}

ax_plain_reflector ax_plain_reflect(ax_value column, ax_value at) {
  const ax_type type = ax_typeof(column);
  ax_plain_reflector r = {ax_poison, ax_poison, ax_poison};
  ax_value size, whole;
  if (ax_failed()) return r;
  const ax_value rows = ax_plain_rows(type.dims[0]), alpha = ax_dynamic_slice_in_dim(column, at, 1, 0);
  const ax_value rest = ax_where(ax_gt(rows, at), column, ax_integer(0)), real = ax_matrix_reals(alpha);
  sizes(rest, alpha, &size, &whole);
  ax_value none = ax_eq(size, ax_integer(0));
  if (ax_is_complex(type.dtype)) none = ax_and(none, ax_eq(ax_imag_part(alpha), ax_integer(0)));
  const ax_value to = ax_where(ax_lt(real, ax_integer(0)), whole, ax_neg(whole)), beta = ax_matrix_as(to, column);
  const ax_value by = ax_where(none, ax_integer(1), ax_sub(alpha, beta));
  r.v = ax_where(ax_eq(rows, at), ax_integer(1), ax_plain_quotient(rest, by));
  r.tau = ax_where(none, ax_integer(0), ax_plain_divided(ax_sub(beta, alpha), to));
  r.beta = ax_where(none, alpha, beta);
  return r;
}

ax_value ax_plain_stored(ax_value x, ax_value index, ax_value at, const ax_plain_reflector *r) {
  const ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  const ax_value rows = ax_plain_rows(type.dims[0]), from = ax_where(ax_eq(rows, at), r->beta, r->v);
  return ax_dynamic_update_slice_in_dim(x, ax_where(ax_lt(rows, at), ax_plain_column(x, index), from), index, -1);
}

ax_value ax_plain_reflected_left(ax_value x, const ax_plain_reflector *r) {
  const ax_value row = ax_reduce_sum(ax_mul(ax_conjugated(r->v), x), AX_DIMS(0), true);
  return ax_sub(x, ax_mul(ax_mul(ax_conjugated(r->tau), r->v), row));
}

ax_value ax_plain_reflected_right(ax_value x, const ax_plain_reflector *r) {
  const ax_value v = ax_matrix_transpose(r->v), column = ax_reduce_sum(ax_mul(x, v), AX_DIMS(1), true);
  return ax_sub(x, ax_mul(ax_mul(column, r->tau), ax_conjugated(v)));
}
