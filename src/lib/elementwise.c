/* Functions of each element, made of primitives. */
#include "prim/composite.h"
#include "prim/shape.h"

static bool is_numeric(const char *name, const ax_type *type) {
  if (type->dtype != AX_BOOL) return true;
  ax_reject_as(name, "operand 0 is %s; it must be numeric", ax_operand_string(type));
  return false;
}

ax_value ax_square(ax_value x) {
  static const char name[] = "square";
  ax_type type;
  return ax_operand(name, x, &type) && is_numeric(name, &type) ? ax_integer_pow(x, 2) : ax_poison;
}

/* The value is min(max(x, low), high), NaN where x is. Its tangent is that of x strictly between the bounds,
   that of a bound strictly beyond it, and zero if two of the values are equal. So it is a choice between them, as min and max would
   share the tangent; complex numbers, which jax.lax clamps without derivatives, have that. */
ax_value ax_clamp(ax_value low, ax_value x, ax_value high) {
  static const char name[] = "clamp";
  ax_value v[] = {low, x, high};
  ax_type types[3];
  ax_give_dtype(name, v, 3);
  if (!ax_operands(name, 3, v, types) || !is_numeric(name, types)) return ax_poison;
  if (!ax_broadcast_together(v, 3))
    return ax_reject_as(name, "%s, %s and %s do not broadcast to one shape", ax_operand_string(&types[0]),
                        ax_operand_string(&types[1]), ax_operand_string(&types[2]));
  if (ax_is_complex(types[0].dtype)) return ax_min(ax_max(v[1], v[0]), v[2]);
  ax_value inside = ax_and(ax_lt(v[0], v[1]), ax_lt(v[1], v[2])), under = ax_and(ax_lt(v[1], v[0]), ax_lt(v[0], v[2]));
  ax_value y = ax_stop_gradient(ax_min(ax_max(v[1], v[0]), v[2]));
  y = ax_select_n(ax_lt(v[2], v[1]), y, v[2]);
  y = ax_select_n(under, y, v[0]);
  return ax_select_n(inside, y, v[1]);
}

/* --- Division that rounds down --- */

/* Two operands of one numeric dtype, numbers among them, broadcast to one shape. */
static bool pair(const char *name, ax_value *v, ax_type *type) {
  ax_type types[2];
  ax_give_dtype(name, v, 2);
  if (!ax_operands(name, 2, v, types) || !is_numeric(name, types)) return false;
  if (!ax_broadcast_together(v, 2)) {
    ax_reject_as(name, "%s and %s do not broadcast to one shape", ax_operand_string(&types[0]), ax_operand_string(&types[1]));
    return false;
  }
  *type = ax_typeof(v[0]);
  return true;
}

/* Whether a remainder that has the sign of the dividend is on the wrong side of 0. Of NaN it says no. */
static ax_value is_behind(ax_value rest, ax_value divisor) {
  ax_value signs = ax_mul(ax_sign(rest), ax_sign(divisor));
  return ax_lt(signs, ax_full_like(signs, 0));
}

ax_value ax_mod(ax_value a, ax_value b) {
  ax_value v[] = {a, b};
  ax_type type;
  const bool nonzero = ax_is_number(b) && ax_number_real(b) != 0;
  if (!pair("mod", v, &type)) return ax_poison;
  if (!ax_is_float(type.dtype) && !nonzero) v[1] = ax_select_n(ax_eq(v[1], ax_full_like(v[1], 0)), v[1], ax_full_like(v[1], 1));
  ax_value rest = ax_rem(v[0], v[1]);
  if (ax_dtype_get(type.dtype)->kind == AX_KIND_UNSIGNED) return rest;
  return ax_select_n(is_behind(rest, v[1]), rest, ax_add(rest, v[1]));
}

/* Floats: the division (a - a rem b) / b gives a whole number but for its own rounding. Rounding a / b down would be wrong if that
   division had been rounded up to a whole number. */
ax_value ax_floor_divide(ax_value a, ax_value b) {
  ax_value v[] = {a, b};
  ax_type type;
  if (!pair("floor_divide", v, &type)) return ax_poison;
  if (ax_dtype_get(type.dtype)->kind == AX_KIND_UNSIGNED) return ax_div(v[0], v[1]);
  const bool is_float = ax_is_float(type.dtype);
  ax_value rest = ax_rem(v[0], v[1]);
  ax_value whole = v[0];
  if (is_float) whole = ax_select_n(ax_eq(v[1], ax_full_like(v[1], 0)), ax_sub(v[0], rest), v[0]);
  ax_value quotient = ax_div(whole, v[1]);
  quotient = ax_select_n(is_behind(rest, v[1]), quotient, ax_sub(quotient, ax_full_like(quotient, 1)));
  return is_float ? ax_round(quotient) : quotient;
}
