/* Reductions made of other reductions. */
#include <math.h>

#include "prim/composite.h"

static ax_value is_finite(ax_value x) {
  if (!ax_failed() && ax_is_complex(ax_typeof(x).dtype)) x = ax_abs(x);
  if (ax_failed()) return ax_poison;
  return ax_has_infinity(ax_typeof(x).dtype) ? ax_lt(ax_abs(x), ax_real(INFINITY)) : ax_eq(x, x);
}

/* Subtracts the maximum, of complex numbers that of the real parts, before exp, so that exp does not overflow. A maximum that is infinite or NaN is replaced by 0, since
   subtracting it would make NaN. */
ax_value (ax_logsumexp)(ax_value x, uint32_t count, const int64_t *axes, bool keepdims) {
  ax_type type;
  if (!ax_operand("logsumexp", x, &type)) return ax_poison;
  if (!ax_rounds(type.dtype))
    return ax_reject_as("logsumexp", "the operand is %s; it must be of floats", ax_operand_string(&type));
  ax_value fixed = ax_stop_gradient(x), most = ax_reduce_max(ax_is_complex(type.dtype) ? ax_real_part(fixed) : fixed, AX_LIST(count, axes), true);
  most = ax_convert_element_type(ax_where(is_finite(most), most, ax_real(0)), type.dtype);
  ax_value sum = ax_log(ax_reduce_sum(ax_exp(ax_sub(x, most)), AX_LIST(count, axes), keepdims));
  if (ax_failed()) return ax_poison;
  type = ax_typeof(sum);
  return ax_add(sum, ax_reshape(most, AX_LIST(type.rank, type.dims)));
}

/* Equal infinities are close, whose difference is NaN. */
ax_value ax_allclose(ax_value a, ax_value b, double rtol, double atol) {
  ax_value both[] = {a, b};
  ax_give_dtype("allclose", both, 2);
  ax_dtype dtype = ax_failed() ? AX_NO_DTYPE : ax_typeof(both[0]).dtype;
  if (ax_failed()) return ax_poison;
  if (!ax_rounds(dtype)) return ax_reject_as("allclose", "the operands are of %s; they must be floats", ax_dtype_name(dtype));
  ax_value most = ax_add(ax_mul(ax_abs(both[1]), ax_real(rtol)), ax_real(atol));
  ax_value near = ax_and(ax_le(ax_abs(ax_sub(both[0], both[1])), most), is_finite(both[1]));
  return ax_reduce_and(ax_or(near, ax_eq(both[0], both[1])), AX_ALL_DIMS, false);
}
