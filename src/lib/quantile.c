/* Quantiles: the dimensions that are reduced become one, which is sorted, and two of its elements are taken. NaN is sorted last, so
   a row has one if its last element is one. */
#include <math.h>
#include <string.h>

#include "axle/numpy.h"
#include "lib/checked.h"
#include "prim/shape.h"

typedef enum between { LINEAR, LOWER, HIGHER, MIDPOINT, NEAREST, INVERTED_CDF, NO_METHOD } between;

/* An operand [kept.., n], sorted along n. */
typedef struct row_order {
  const char *name;
  ax_value x;
  ax_type type;    /* before its dimensions were moved */
  ax_dims reduced; /* those of them that became n */
  int64_t n;
  between method;
} row_order;

static between method_of(const char *name, const char *method) {
  static const char *const names[] = {"linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf"};
  if (method == NULL) return LINEAR;
  for (int i = 0; i < NO_METHOD; i++)
    if (strcmp(method, names[i]) == 0) return (between)i;
  ax_reject_as(name, "there is no method \"%s\"", method);
  return NO_METHOD;
}

static bool sorted_rows(row_order *r, const char *name, ax_value x, uint32_t count, const int64_t *axes, const char *method) {
  *r = (row_order){.name = name, .x = x, .method = method_of(name, method), .n = 1};
  if (r->method == NO_METHOD || !ax_float_operand(name, x) || !ax_operand(name, x, &r->type)) return false;
  if (axes == NULL) count = r->type.rank;
  for (uint32_t i = 0; i < count; i++) {
    int64_t axis = axes == NULL ? i : axes[i];
    if (!ax_dimension(name, "an axis", &axis, r->type.rank)) return false;
    if (ax_dims_has(&r->reduced, axis)) return ax_reject_as(name, "dimension %lld is named twice", (long long)axis), false;
    r->reduced.v[r->reduced.count++] = axis;
    r->n *= r->type.dims[axis];
  }
  if (r->n == 0) return ax_reject_as(name, "%s has no elements there", ax_operand_string(&r->type)), false;
  ax_dims order = ax_dims_others(r->type.rank, &r->reduced, NULL), shape = ax_dims_left(&r->type, &r->reduced);
  for (uint32_t i = 0; i < count; i++) order.v[order.count++] = r->reduced.v[i];
  shape.v[shape.count++] = r->n;
  x = ax_transpose(x, AX_LIST(order.count, order.v));
  r->x = ax_sort(ax_reshape(x, AX_LIST(shape.count, shape.v)), -1);
  return !ax_failed();
}

/* low + (high - low) of the method's share, for places low and high and the share between. */
static ax_value between_two(const row_order *r, ax_value low, ax_value high, ax_value share) {
  switch (r->method) {
    case LINEAR:
      return ax_add(ax_mul(low, ax_sub(ax_real(1), share)), ax_mul(high, share));
    case MIDPOINT:
      return ax_mul(ax_add(low, high), ax_real(0.5));
    case NEAREST:
      return ax_where(ax_le(share, ax_real(0.5)), low, high);
    case HIGHER:
      return high;
    default:
      return low;
  }
}

/* A result of rows, [k.., kept..], in the operand's dtype, with dimensions of 1 where they are kept. */
static ax_value finished(const row_order *r, ax_value y, bool keepdims) {
  y = ax_convert_element_type(y, r->type.dtype);
  ax_type t = ax_typeof(y);
  if (ax_failed() || !keepdims) return y;
  const uint32_t front = t.rank + r->reduced.count - r->type.rank;
  for (uint32_t d = 0; d < r->type.rank; d++) t.dims[front + d] = ax_dims_has(&r->reduced, d) ? 1 : r->type.dims[d];
  t.rank = front + r->type.rank;
  if (t.rank > AX_MAX_RANK) return ax_reject_as(r->name, "the rank would exceed %d", AX_MAX_RANK);
  return ax_reshape(y, AX_LIST(t.rank, t.dims));
}

static ax_dtype wide_of(ax_dtype dtype) { return dtype == AX_F64 ? AX_F64 : AX_F32; }

static ax_value nan_for(ax_value bad, ax_value y) { return ax_where(bad, ax_real(NAN), y); }

/* The place of q among n elements, and the whole places around it; of inverted_cdf the place alone. */
static double place_of(const row_order *r, double q, int64_t n) {
  const double last = (double)(n - 1), place = r->method == INVERTED_CDF ? ceil(q * (double)n) - 1 : q * last;
  return place < 0 ? 0 : place > last ? last : place;
}

static ax_value at_number(const row_order *r, double q) {
  const ax_dtype wide = wide_of(r->type.dtype);
  const double place = place_of(r, q, r->n);
  ax_value low = ax_convert_element_type(ax_at(r->x, (int64_t)floor(place), -1), wide);
  ax_value high = ax_convert_element_type(ax_at(r->x, (int64_t)ceil(place), -1), wide);
  ax_value last = ax_at(r->x, -1, -1), share = ax_full(wide, AX_DIMS(), place - floor(place));
  return nan_for(ax_ne(last, last), between_two(r, low, high, share));
}

/* Of q U[k]: the places are found in f32 or f64, and the results put in front. */
static ax_value at_values(const row_order *r, ax_value q, double scale) {
  ax_type t;
  if (!ax_float_operand(r->name, q) || !ax_operand(r->name, q, &t)) return ax_poison;
  if (t.rank > 1) return ax_reject_as(r->name, "q is %s; it must be a number, a scalar or a vector", ax_operand_string(&t));
  const ax_dtype wide = wide_of(t.dtype == AX_F64 ? AX_F64 : r->type.dtype);
  const double last = (double)(r->n - 1);
  ax_value place = ax_mul(ax_convert_element_type(q, wide), ax_real(scale));
  if (r->method == INVERTED_CDF)
    place = ax_sub(ax_ceil(ax_mul(place, ax_real((double)r->n))), ax_real(1));
  else
    place = ax_mul(place, ax_real(last));
  place = ax_min(ax_max(place, ax_real(0)), ax_real(last));
  ax_value low = ax_stop_gradient(ax_floor(place)), high = ax_stop_gradient(ax_ceil(place)), share = ax_sub(place, low);
  low = ax_convert_element_type(ax_take(r->x, ax_convert_element_type(low, AX_S64), -1), wide);
  high = ax_convert_element_type(ax_take(r->x, ax_convert_element_type(high, AX_S64), -1), wide);
  ax_value end = ax_at(r->x, -1, -1), y = between_two(r, low, high, share);
  if (t.rank == 1) y = ax_moveaxis(y, -1, 0);
  return nan_for(ax_ne(end, end), y);
}

static ax_value quantile(const char *name, ax_value x, ax_value q, double scale, uint32_t count, const int64_t *axes,
                         const char *method, bool keepdims) {
  row_order r;
  if (!sorted_rows(&r, name, x, count, axes, method)) return ax_poison;
  if (!ax_is_number(q)) return finished(&r, at_values(&r, q, scale), keepdims);
  const double share = ax_number_real(q) * scale;
  if (!(share >= 0 && share <= 1)) return ax_reject_as(name, "q is %g", ax_number_real(q));
  return finished(&r, at_number(&r, share), keepdims);
}

ax_value (ax_quantile)(ax_value x, ax_value q, uint32_t count, const int64_t *axes, const char *method, bool keepdims) {
  return quantile("quantile", x, q, 1, count, axes, method, keepdims);
}
ax_value (ax_percentile)(ax_value x, ax_value q, uint32_t count, const int64_t *axes, const char *method, bool keepdims) {
  return quantile("percentile", x, q, 0.01, count, axes, method, keepdims);
}
ax_value (ax_median)(ax_value x, uint32_t count, const int64_t *axes, bool keepdims) {
  return quantile("median", x, ax_real(0.5), 1, count, axes, "midpoint", keepdims);
}

/* --- Without NaN: each row has a number of its own. --- */

static ax_value without_nan(const char *name, ax_value x, double q, uint32_t count, const int64_t *axes, const char *method,
                            bool keepdims) {
  row_order r;
  if (!(q >= 0 && q <= 1)) return ax_reject_as(name, "q is %g", q);
  if (!sorted_rows(&r, name, x, count, axes, method)) return ax_poison;
  const ax_dtype wide = wide_of(r.type.dtype);
  const int64_t last[] = {-1};
  ax_value number = ax_reduce_sum(ax_convert_element_type(ax_eq(r.x, r.x), AX_F64), AX_LIST(1, last), true);
  ax_value end = ax_sub(number, ax_real(1)), place = ax_mul(end, ax_real(q));
  if (r.method == INVERTED_CDF) place = ax_sub(ax_ceil(ax_mul(number, ax_real(q))), ax_real(1));
  place = ax_max(ax_min(place, end), ax_real(0));
  ax_value low = ax_floor(place), high = ax_ceil(place), share = ax_convert_element_type(ax_sub(place, low), wide);
  low = ax_take_along_axis(r.x, ax_convert_element_type(low, AX_S64), -1, NULL);
  high = ax_take_along_axis(r.x, ax_convert_element_type(high, AX_S64), -1, NULL);
  ax_value y = between_two(&r, ax_convert_element_type(low, wide), ax_convert_element_type(high, wide), share);
  return finished(&r, ax_squeeze(y, AX_LIST(1, last)), keepdims);
}

ax_value (ax_nanquantile)(ax_value x, double q, uint32_t count, const int64_t *axes, const char *method, bool keepdims) {
  return without_nan("nanquantile", x, q, count, axes, method, keepdims);
}
ax_value (ax_nanmedian)(ax_value x, uint32_t count, const int64_t *axes, bool keepdims) {
  return without_nan("nanmedian", x, 0.5, count, axes, "midpoint", keepdims);
}
