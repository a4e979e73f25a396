/* Reductions made of other reductions. */
#include <math.h>

#include "prim/composite.h"

/* Subtracts the maximum before exp, so that exp does not overflow. A maximum that is infinite or NaN is replaced by 0, since
   subtracting it would make NaN. */
ax_value (ax_logsumexp)(ax_value x, uint32_t count, const int64_t *axes, bool keepdims) {
  ax_type type;
  if (!ax_operand("logsumexp", x, &type)) return ax_poison;
  if (!ax_is_float(type.dtype))
    return ax_reject_as("logsumexp", "the operand is %s; it must be of floats", ax_operand_string(&type));
  ax_value most = ax_reduce_max(ax_stop_gradient(x), AX_LIST(count, axes), true);
  most = ax_where(ax_lt(ax_abs(most), ax_real(INFINITY)), most, ax_real(0));
  ax_value sum = ax_log(ax_reduce_sum(ax_exp(ax_sub(x, most)), AX_LIST(count, axes), keepdims));
  if (ax_failed()) return ax_poison;
  type = ax_typeof(sum);
  return ax_add(sum, ax_reshape(most, AX_LIST(type.rank, type.dims)));
}

/* Whether any element is `wanted`: as bytes, the largest of none is 0. */
static ax_value any_is(const char *name, bool wanted, ax_value x, uint32_t count, const int64_t *axes, bool keepdims) {
  ax_type type;
  if (!ax_operand(name, x, &type)) return ax_poison;
  if (type.dtype != AX_BOOL) return ax_reject_as(name, "the operand is %s; it must be of bools", ax_operand_string(&type));
  ax_value bytes = ax_convert_element_type(wanted ? x : ax_not(x), AX_U8);
  return ax_ne(ax_reduce_max(bytes, AX_LIST(count, axes), keepdims), ax_integer(0));
}

ax_value (ax_reduce_or)(ax_value x, uint32_t count, const int64_t *axes, bool keepdims) {
  return any_is("reduce_or", true, x, count, axes, keepdims);
}

ax_value (ax_reduce_and)(ax_value x, uint32_t count, const int64_t *axes, bool keepdims) {
  return ax_not(any_is("reduce_and", false, x, count, axes, keepdims));
}

/* The argmax of the elements in reverse order. For integers and bools `not` reverses the order; negation would not for unsigned
   integers and the least signed one. Floats are negated, and the negative of a NaN is one. */
ax_value ax_argmin(ax_value x, int64_t axis, ax_dtype index_dtype) {
  ax_type type;
  if (!ax_operand("argmin", x, &type)) return ax_poison;
  return ax_argmax(ax_is_float(type.dtype) ? ax_neg(x) : ax_not(x), axis, index_dtype);
}

/* Equal infinities are close, whose difference is NaN. */
ax_value ax_allclose(ax_value a, ax_value b, double rtol, double atol) {
  ax_value both[] = {a, b};
  ax_give_dtype("allclose", both, 2);
  ax_dtype dtype = ax_failed() ? AX_NO_DTYPE : ax_typeof(both[0]).dtype;
  if (ax_failed()) return ax_poison;
  if (!ax_is_float(dtype)) return ax_reject_as("allclose", "the operands are of %s; they must be floats", ax_dtype_name(dtype));
  ax_value most = ax_add(ax_mul(ax_abs(both[1]), ax_real(rtol)), ax_real(atol));
  ax_value near = ax_and(ax_le(ax_abs(ax_sub(both[0], both[1])), most), ax_lt(ax_abs(both[1]), ax_real(INFINITY)));
  return ax_reduce_and(ax_or(near, ax_eq(both[0], both[1])), AX_ALL_DIMS, false);
}
