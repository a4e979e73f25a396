/* Means, variances and the like: of all elements, of those that a mask takes, or of those that are not NaN. Elements that do not
   count are replaced before they meet the others, so that no derivative goes through them. */
#include <math.h>

#include "axle/numpy.h"
#include "lib/checked.h"

/* Elements of a reduction. */
typedef struct some {
  const char *name;
  ax_value x, counted; /* counted: bool of x's shape; {0}: all */
  ax_type type;
  uint32_t count;
  const int64_t *axes;
} some;

static bool all_of(some *s, const char *name, ax_value x, uint32_t count, const int64_t *axes) {
  *s = (some){.name = name, .x = x, .count = count, .axes = axes};
  return ax_inexact_operand(name, x) && ax_operand(name, x, &s->type);
}

static bool masked(some *s, const char *name, ax_value x, ax_value where, uint32_t count, const int64_t *axes) {
  *s = (some){.name = name, .x = x, .count = count, .axes = axes};
  if (!ax_numeric_operand(name, x, &s->type) || !ax_mask_operand(name, where, &s->type)) return false;
  s->counted = ax_is_given(where) ? ax_broadcast_to(where, AX_LIST(s->type.rank, s->type.dims)) : where;
  return !ax_failed();
}

static bool not_nan(some *s, const char *name, ax_value x, uint32_t count, const int64_t *axes) {
  if (!all_of(s, name, x, count, axes)) return false;
  s->counted = ax_eq(x, x);
  return !ax_failed();
}

/* bf16 and f16 are computed in f32. */
static void widen(some *s) {
  if (!ax_is_narrow_float(s->type.dtype)) return;
  s->x = ax_convert_element_type(s->x, AX_F32);
}

static ax_value taken(const some *s, ax_value x, double other) {
  return ax_is_given(s->counted) ? ax_where(s->counted, x, ax_real(other)) : x;
}
static ax_value sum_of(const some *s, ax_value x, bool keepdims) {
  return ax_reduce_sum(taken(s, x, 0), AX_LIST(s->count, s->axes), keepdims);
}

/* How many elements count in each sum, in the dtype of x as it is computed, of complex numbers that of their parts; a number where
   all do. */
static ax_value number_of(const some *s, bool keepdims) {
  ax_type type = ax_typeof(s->x);
  if (ax_failed()) return ax_poison;
  type.dtype = ax_part_dtype(type.dtype);
  if (ax_is_given(s->counted))
    return ax_reduce_sum(ax_convert_element_type(s->counted, type.dtype), AX_LIST(s->count, s->axes), keepdims);
  double number = s->axes == NULL ? (double)ax_type_elems(&type) : 1;
  for (uint32_t i = 0; i < s->count && s->axes != NULL; i++) {
    int64_t axis = s->axes[i];
    if (!ax_dimension(s->name, "an axis", &axis, type.rank)) return ax_poison;
    number *= (double)type.dims[axis];
  }
  return ax_full(type.dtype, AX_DIMS(), number);
}

static ax_value divided(const some *s, bool keepdims) {
  ax_value sum = sum_of(s, s->x, keepdims), number = number_of(s, keepdims);
  if (ax_failed()) return ax_poison;
  return ax_div(sum, ax_convert_element_type(number, ax_typeof(sum).dtype));
}

static ax_value mean_of(some *s, bool keepdims) {
  widen(s);
  return ax_convert_element_type(divided(s, keepdims), s->type.dtype);
}

/* |x|^2 */
static ax_value squared(ax_value x) {
  if (ax_failed() || !ax_is_complex(ax_typeof(x).dtype)) return ax_square(x);
  ax_value real = ax_square(ax_real_part(x));
  return ax_add(real, ax_square(ax_imag_part(x)));
}

static ax_value variance_of(some *s, double ddof, bool keepdims) {
  widen(s);
  ax_value mean = divided(s, true);
  ax_value sum = ax_reduce_sum(squared(taken(s, ax_sub(s->x, mean), 0)), AX_LIST(s->count, s->axes), keepdims);
  ax_value divisor = ax_sub(number_of(s, keepdims), ax_real(ddof));
  ax_value enough = ax_gt(divisor, ax_real(0));
  ax_value result = ax_where(enough, ax_div(sum, ax_where(enough, divisor, ax_real(1))), ax_real(NAN));
  return ax_convert_element_type(result, ax_part_dtype(s->type.dtype));
}

ax_value (ax_var)(ax_value x, uint32_t count, const int64_t *axes, double ddof, bool keepdims) {
  some s;
  return all_of(&s, "var", x, count, axes) ? variance_of(&s, ddof, keepdims) : ax_poison;
}
ax_value (ax_std)(ax_value x, uint32_t count, const int64_t *axes, double ddof, bool keepdims) {
  some s;
  return all_of(&s, "std", x, count, axes) ? ax_sqrt(variance_of(&s, ddof, keepdims)) : ax_poison;
}

/* --- Of the elements that a mask takes --- */

ax_value (ax_reduce_sum_where)(ax_value x, ax_value where, uint32_t count, const int64_t *axes, bool keepdims) {
  some s;
  if (!masked(&s, "reduce_sum_where", x, where, count, axes)) return ax_poison;
  if (ax_is_given(where)) x = ax_where(where, x, ax_integer(0));
  return ax_reduce_sum(x, AX_LIST(count, axes), keepdims);
}
ax_value (ax_reduce_mean_where)(ax_value x, ax_value where, uint32_t count, const int64_t *axes, bool keepdims) {
  some s;
  if (!ax_inexact_operand("reduce_mean_where", x) || !masked(&s, "reduce_mean_where", x, where, count, axes)) return ax_poison;
  return mean_of(&s, keepdims);
}
ax_value (ax_var_where)(ax_value x, ax_value where, uint32_t count, const int64_t *axes, double ddof, bool keepdims) {
  some s;
  if (!ax_inexact_operand("var_where", x) || !masked(&s, "var_where", x, where, count, axes)) return ax_poison;
  return variance_of(&s, ddof, keepdims);
}

/* What a reduction of nothing gives stands for the elements that are not taken. */
static ax_value neutral(bool greatest, ax_dtype dtype) {
  const ax_value nothing = ax_full(dtype, AX_LIST(1, (int64_t[]){0}), 0);
  return greatest ? ax_reduce_max(nothing, AX_ALL_DIMS, false) : ax_reduce_min(nothing, AX_ALL_DIMS, false);
}
ax_value (ax_reduce_max_where)(ax_value x, ax_value where, uint32_t count, const int64_t *axes, bool keepdims) {
  some s;
  if (!masked(&s, "reduce_max_where", x, where, count, axes)) return ax_poison;
  return ax_reduce_max(ax_is_given(where) ? ax_where(where, x, neutral(true, s.type.dtype)) : x, AX_LIST(count, axes), keepdims);
}
ax_value (ax_reduce_min_where)(ax_value x, ax_value where, uint32_t count, const int64_t *axes, bool keepdims) {
  some s;
  if (!masked(&s, "reduce_min_where", x, where, count, axes)) return ax_poison;
  return ax_reduce_min(ax_is_given(where) ? ax_where(where, x, neutral(false, s.type.dtype)) : x, AX_LIST(count, axes), keepdims);
}

/* --- Of the elements that are not NaN --- */

ax_value (ax_nansum)(ax_value x, uint32_t count, const int64_t *axes, bool keepdims) {
  some s;
  return not_nan(&s, "nansum", x, count, axes) ? sum_of(&s, x, keepdims) : ax_poison;
}
ax_value (ax_nanmean)(ax_value x, uint32_t count, const int64_t *axes, bool keepdims) {
  some s;
  return not_nan(&s, "nanmean", x, count, axes) ? mean_of(&s, keepdims) : ax_poison;
}
ax_value (ax_nanvar)(ax_value x, uint32_t count, const int64_t *axes, double ddof, bool keepdims) {
  some s;
  return not_nan(&s, "nanvar", x, count, axes) ? variance_of(&s, ddof, keepdims) : ax_poison;
}
ax_value (ax_nanstd)(ax_value x, uint32_t count, const int64_t *axes, double ddof, bool keepdims) {
  some s;
  return not_nan(&s, "nanstd", x, count, axes) ? ax_sqrt(variance_of(&s, ddof, keepdims)) : ax_poison;
}

static ax_value extreme(const some *s, bool greatest, bool keepdims) {
  ax_value x = taken(s, s->x, greatest ? -INFINITY : INFINITY);
  x = greatest ? ax_reduce_max(x, AX_LIST(s->count, s->axes), keepdims) : ax_reduce_min(x, AX_LIST(s->count, s->axes), keepdims);
  return ax_where(ax_reduce_or(s->counted, AX_LIST(s->count, s->axes), keepdims), x, ax_real(NAN));
}
ax_value (ax_nanmax)(ax_value x, uint32_t count, const int64_t *axes, bool keepdims) {
  some s;
  return not_nan(&s, "nanmax", x, count, axes) ? extreme(&s, true, keepdims) : ax_poison;
}
ax_value (ax_nanmin)(ax_value x, uint32_t count, const int64_t *axes, bool keepdims) {
  some s;
  return not_nan(&s, "nanmin", x, count, axes) ? extreme(&s, false, keepdims) : ax_poison;
}

/* --- Of two kinds of number --- */

ax_value (ax_average)(ax_value x, ax_value weights, uint32_t count, const int64_t *axes, bool keepdims) {
  some s;
  if (!all_of(&s, "average", x, count, axes) || !ax_beside("average", "the weights", weights, &s.type)) return ax_poison;
  if (!ax_is_given(weights)) return ax_reduce_mean(x, AX_LIST(count, axes), keepdims);
  weights = ax_broadcast_to(weights, AX_LIST(s.type.rank, s.type.dims));
  ax_value sum = ax_reduce_sum(ax_mul(x, weights), AX_LIST(count, axes), keepdims);
  return ax_div(sum, ax_reduce_sum(weights, AX_LIST(count, axes), keepdims));
}

ax_value (ax_ptp)(ax_value x, uint32_t count, const int64_t *axes, bool keepdims) {
  ax_type t;
  if (!ax_numeric_operand("ptp", x, &t)) return ax_poison;
  return ax_sub(ax_reduce_max(x, AX_LIST(count, axes), keepdims), ax_reduce_min(x, AX_LIST(count, axes), keepdims));
}

ax_value ax_cov(ax_value x, bool rowvar, double ddof) {
  ax_type t;
  if (!ax_inexact_operand("cov", x) || !ax_operand("cov", x, &t)) return ax_poison;
  if (t.rank != 1 && t.rank != 2)
    return ax_reject_as("cov", "the operand is %s; it must be a vector or a matrix", ax_operand_string(&t));
  const int64_t last[] = {-1};
  const bool vector = t.rank == 1;
  if (vector)
    x = ax_expand_dims(x, 0);
  else if (!rowvar)
    x = ax_swapaxes(x, 0, 1);
  t = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  x = ax_sub(x, ax_reduce_mean(x, AX_LIST(1, last), true));
  ax_value products = ax_div(ax_matmul(x, ax_conjugated(ax_swapaxes(x, 0, 1))), ax_real((double)t.dims[1] - ddof));
  return t.dims[0] == 1 ? ax_reshape(products, AX_DIMS()) : products;
}

ax_value ax_corrcoef(ax_value x, bool rowvar) {
  ax_value c = ax_cov(x, rowvar, 1);
  ax_type t = ax_typeof(c);
  if (ax_failed()) return ax_poison;
  if (t.rank == 0) return ax_div(c, c);
  ax_value deviation = ax_sqrt(ax_diagonal(c, 0, 0, 1));
  c = ax_div(ax_div(c, ax_expand_dims(deviation, 1)), ax_expand_dims(deviation, 0));
  if (!ax_is_complex(t.dtype)) return ax_clip(c, ax_real(-1), ax_real(1));
  ax_value real = ax_clip(ax_real_part(c), ax_real(-1), ax_real(1));
  return ax_complex(real, ax_clip(ax_imag_part(c), ax_real(-1), ax_real(1)));
}
