/* Activations: functions of each element, as jax.nn has them. Where a derivative at a corner is not that of min and max, which
   share the tangent between equal operands, the value is a choice instead. */
#include "axle/nn.h"
#include "lib/checked.h"

ax_value ax_relu6(ax_value x) {
  if (!ax_float_operand("relu6", x)) return ax_poison;
  ax_value inside = ax_and(ax_gt(x, ax_real(0)), ax_lt(x, ax_real(6)));
  return ax_select_n(inside, ax_stop_gradient(ax_min(ax_max(x, ax_real(0)), ax_real(6))), x);
}

/* The exponential sees no positive number, so that its derivative does not overflow where it is not used. */
ax_value ax_elu(ax_value x, double alpha) {
  if (!ax_float_operand("elu", x)) return ax_poison;
  ax_value above = ax_gt(x, ax_real(0));
  return ax_where(above, x, ax_mul(ax_real(alpha), ax_expm1(ax_where(above, ax_real(0), x))));
}

ax_value ax_selu(ax_value x) {
  if (!ax_float_operand("selu", x)) return ax_poison;
  return ax_mul(ax_real(1.0507009873554804934193349852946), ax_elu(x, 1.6732632423543772848170429916717));
}

ax_value ax_celu(ax_value x, double alpha) {
  if (!ax_float_operand("celu", x)) return ax_poison;
  if (alpha == 0) return ax_reject_as("celu", "alpha is 0");
  ax_value below = ax_expm1(ax_div(ax_min(x, ax_real(0)), ax_real(alpha)));
  return ax_add(ax_max(x, ax_real(0)), ax_mul(ax_real(alpha), below));
}

ax_value ax_silu(ax_value x) { return ax_float_operand("silu", x) ? ax_mul(x, ax_logistic(x)) : ax_poison; }

ax_value ax_mish(ax_value x) { return ax_float_operand("mish", x) ? ax_mul(x, ax_tanh(ax_softplus(x))) : ax_poison; }

ax_value ax_leaky_relu(ax_value x, double negative_slope) {
  if (!ax_float_operand("leaky_relu", x)) return ax_poison;
  return ax_where(ax_ge(x, ax_real(0)), x, ax_mul(ax_real(negative_slope), x));
}

ax_value ax_hard_tanh(ax_value x) {
  if (!ax_float_operand("hard_tanh", x)) return ax_poison;
  return ax_where(ax_gt(x, ax_real(1)), ax_real(1), ax_where(ax_lt(x, ax_real(-1)), ax_real(-1), x));
}

ax_value ax_hard_sigmoid(ax_value x) {
  return ax_float_operand("hard_sigmoid", x) ? ax_div(ax_relu6(ax_add(x, ax_real(3))), ax_real(6)) : ax_poison;
}

ax_value ax_hard_silu(ax_value x) { return ax_float_operand("hard_silu", x) ? ax_mul(x, ax_hard_sigmoid(x)) : ax_poison; }

ax_value ax_log_sigmoid(ax_value x) { return ax_float_operand("log_sigmoid", x) ? ax_neg(ax_softplus(ax_neg(x))) : ax_poison; }

ax_value ax_squareplus(ax_value x, double b) {
  if (!ax_float_operand("squareplus", x)) return ax_poison;
  return ax_div(ax_add(x, ax_sqrt(ax_add(ax_square(x), ax_real(b)))), ax_real(2));
}

ax_value ax_soft_sign(ax_value x) {
  return ax_float_operand("soft_sign", x) ? ax_div(x, ax_add(ax_abs(x), ax_real(1))) : ax_poison;
}

ax_value ax_sparse_plus(ax_value x) {
  if (!ax_float_operand("sparse_plus", x)) return ax_poison;
  ax_value between = ax_div(ax_square(ax_add(x, ax_real(1))), ax_real(4));
  return ax_where(ax_le(x, ax_real(-1)), ax_real(0), ax_where(ax_ge(x, ax_real(1)), x, between));
}

ax_value ax_sparse_sigmoid(ax_value x) {
  if (!ax_float_operand("sparse_sigmoid", x)) return ax_poison;
  return ax_mul(ax_real(0.5), ax_min(ax_max(ax_add(x, ax_real(1)), ax_real(0)), ax_real(2)));
}

/* Below log 2, 1 - e^-x loses digits, and above it e^-x is small. The derivative is 1 / (e^x - 1) on both sides; each side sees
   only numbers that it is accurate for. */
ax_value ax_log1mexp(ax_value x) {
  const double log2 = 0.69314718055994530942;
  if (!ax_float_operand("log1mexp", x)) return ax_poison;
  ax_value near = ax_lt(x, ax_real(log2));
  ax_value left = ax_log(ax_neg(ax_expm1(ax_neg(ax_where(near, x, ax_real(log2))))));
  return ax_where(near, left, ax_log1p(ax_neg(ax_exp(ax_neg(ax_where(near, ax_real(log2), x))))));
}

ax_value ax_glu(ax_value x, int64_t axis) {
  static const char name[] = "glu";
  ax_type type;
  ax_value half[2];
  if (!ax_float_operand(name, x) || !ax_operand(name, x, &type) || !ax_dimension(name, "the axis", &axis, type.rank))
    return ax_poison;
  if (type.dims[axis] % 2 != 0) return ax_reject_as(name, "dimension %lld of %s is odd", (long long)axis, ax_operand_string(&type));
  const int64_t sizes[] = {type.dims[axis] / 2, type.dims[axis] / 2};
  ax_split(x, AX_LIST(2, sizes), axis, AX_LIST(2, half));
  return ax_failed() ? ax_poison : ax_mul(half[0], ax_logistic(half[1]));
}
