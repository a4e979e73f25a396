/* Softmax, log-sum-exp and normalisation over any dimensions, of all elements or of those that a mask takes. */
#include <math.h>

#include "axle/nn.h"
#include "lib/checked.h"

/* x where the mask holds, else `other`. */
static ax_value taken(ax_value where, ax_value x, double other) {
  return ax_is_given(where) ? ax_where(where, x, ax_real(other)) : x;
}

/* x as a mask and its greatest element taken let it be: x less the greatest, -inf outside of the mask. Along rows of which no
   element is taken the greatest is -inf, and what comes of them is masked by the caller. */
static bool shifted(const char *name, ax_value x, ax_value where, uint32_t count, const int64_t *axes, ax_value *out) {
  ax_type type;
  if (!ax_float_operand(name, x) || !ax_operand(name, x, &type) || !ax_mask_operand(name, where, &type)) return false;
  ax_value safe = taken(where, x, -INFINITY);
  *out = ax_sub(safe, ax_reduce_max(ax_stop_gradient(safe), AX_LIST(count, axes), true));
  return !ax_failed();
}

ax_value (ax_softmax_where)(ax_value x, ax_value where, uint32_t count, const int64_t *axes) {
  ax_value y;
  if (!shifted("softmax_where", x, where, count, axes, &y)) return ax_poison;
  ax_value e = ax_exp(y);
  return taken(where, ax_div(e, ax_reduce_sum(taken(where, e, 0), AX_LIST(count, axes), true)), 0);
}

ax_value (ax_log_softmax_where)(ax_value x, ax_value where, uint32_t count, const int64_t *axes) {
  ax_value y;
  if (!shifted("log_softmax_where", x, where, count, axes, &y)) return ax_poison;
  ax_value sum = ax_reduce_sum(taken(where, ax_exp(y), 0), AX_LIST(count, axes), true);
  return taken(where, ax_sub(y, ax_log(sum)), -INFINITY);
}

/* As ax_logsumexp. A factor of 0 takes its element out: the element may be infinite. */
ax_value (ax_logsumexp_where)(ax_value x, ax_value b, ax_value where, uint32_t count, const int64_t *axes, bool keepdims) {
  static const char name[] = "logsumexp_where";
  ax_type type;
  if (!ax_float_operand(name, x) || !ax_operand(name, x, &type) || !ax_mask_operand(name, where, &type) ||
      !ax_beside(name, "b", b, &type))
    return ax_poison;
  if (ax_is_given(b)) x = ax_where(ax_ne(b, ax_real(0)), x, ax_real(-INFINITY));
  ax_value most = ax_reduce_max(ax_stop_gradient(taken(where, x, -INFINITY)), AX_LIST(count, axes), true);
  most = ax_where(ax_lt(ax_abs(most), ax_real(INFINITY)), most, ax_real(0));
  ax_value e = ax_exp(ax_sub(taken(where, x, 0), most));
  if (ax_is_given(b)) e = ax_mul(e, b);
  ax_value sum = ax_reduce_sum(taken(where, e, 0), AX_LIST(count, axes), keepdims);
  if (ax_failed()) return ax_poison;
  type = ax_typeof(sum);
  ax_value result = ax_add(ax_log(ax_abs(sum)), ax_reshape(most, AX_LIST(type.rank, type.dims)));
  return ax_is_given(b) ? ax_where(ax_lt(sum, ax_real(0)), ax_real(NAN), result) : result;
}

/* --- Normalisation --- */

/* The mean over the axes of the elements taken, with dimensions of 1. */
static ax_value mean_of(ax_value x, ax_value where, uint32_t count, const int64_t *axes) {
  if (!ax_is_given(where)) return ax_reduce_mean(x, AX_LIST(count, axes), true);
  ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  ax_value whole = ax_broadcast_to(where, AX_LIST(type.rank, type.dims));
  ax_value sum = ax_reduce_sum(ax_where(where, x, ax_real(0)), AX_LIST(count, axes), true);
  return ax_div(sum, ax_reduce_sum(ax_convert_element_type(whole, type.dtype), AX_LIST(count, axes), true));
}

/* bf16 and f16 are averaged in f32, as jnp.mean does: ax_reduce_mean adds them so, and rounds once. */
ax_value ax_standardize(ax_value x, const ax_standardize_options *options) {
  static const char name[] = "standardize";
  static const int64_t last[] = {-1};
  const ax_standardize_options none = {0}, *o = options != NULL ? options : &none;
  const uint32_t count = o->axes.v == NULL ? 1 : o->axes.count;
  const int64_t *axes = o->axes.v == NULL ? last : o->axes.v;
  ax_type type;
  if (!ax_float_operand(name, x) || !ax_operand(name, x, &type) || !ax_mask_operand(name, o->where, &type) ||
      !ax_beside(name, "the mean", o->mean, &type) || !ax_beside(name, "the variance", o->variance, &type))
    return ax_poison;
  ax_value mean = ax_is_given(o->mean) ? o->mean : mean_of(x, o->where, count, axes), variance = o->variance;
  if (!ax_is_given(variance) && o->stable) variance = mean_of(ax_square(ax_sub(x, mean)), o->where, count, axes);
  if (!ax_is_given(variance)) variance = ax_max(ax_sub(mean_of(ax_square(x), o->where, count, axes), ax_square(mean)), ax_real(0));
  return ax_mul(ax_sub(x, mean), ax_rsqrt(ax_add(variance, ax_real(o->epsilon != 0 ? o->epsilon : 1e-5))));
}

/* With centred false, the mean is taken for 0. The factor of each row is made before it meets x, as flax does it. */
static ax_value normed(const char *name, bool centred, ax_value x, ax_value scale, ax_value bias, uint32_t count,
                       const int64_t *axes, double epsilon) {
  ax_type type;
  if (!ax_float_operand(name, x) || !ax_operand(name, x, &type) || !ax_beside(name, "scale", scale, &type) ||
      !ax_beside(name, "bias", bias, &type))
    return ax_poison;
  const ax_dtype wide = type.dtype == AX_F64 ? AX_F64 : AX_F32;
  ax_value y = ax_convert_element_type(x, wide);
  ax_value variance = ax_reduce_mean(ax_square(y), AX_LIST(count, axes), true);
  if (centred) {
    ax_value mean = ax_reduce_mean(y, AX_LIST(count, axes), true);
    variance = ax_max(ax_sub(variance, ax_square(mean)), ax_real(0));
    y = ax_sub(y, mean);
  }
  ax_value factor = ax_rsqrt(ax_add(variance, ax_real(epsilon)));
  if (ax_is_given(scale)) factor = ax_mul(factor, ax_convert_element_type(scale, wide));
  y = ax_mul(y, factor);
  if (ax_is_given(bias)) y = ax_add(y, ax_convert_element_type(bias, wide));
  return ax_convert_element_type(y, type.dtype);
}

ax_value (ax_layer_norm)(ax_value x, ax_value scale, ax_value bias, uint32_t count, const int64_t *axes, double epsilon) {
  return normed("layer_norm", true, x, scale, bias, count, axes, epsilon);
}

ax_value (ax_rms_norm)(ax_value x, ax_value scale, uint32_t count, const int64_t *axes, double epsilon) {
  return normed("rms_norm", false, x, scale, (ax_value){0}, count, axes, epsilon);
}
