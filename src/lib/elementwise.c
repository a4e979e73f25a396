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
   share the tangent. */
ax_value ax_clamp(ax_value low, ax_value x, ax_value high) {
  static const char name[] = "clamp";
  ax_value v[] = {low, x, high};
  ax_type types[3];
  ax_give_dtype(name, v, 3);
  if (!ax_operands(name, 3, v, types) || !is_numeric(name, types)) return ax_poison;
  if (!ax_broadcast_together(v, 3))
    return ax_reject_as(name, "%s, %s and %s do not broadcast to one shape", ax_operand_string(&types[0]),
                        ax_operand_string(&types[1]), ax_operand_string(&types[2]));
  ax_value inside = ax_and(ax_lt(v[0], v[1]), ax_lt(v[1], v[2])), under = ax_and(ax_lt(v[1], v[0]), ax_lt(v[0], v[2]));
  ax_value y = ax_stop_gradient(ax_min(ax_max(v[1], v[0]), v[2]));
  y = ax_select_n(ax_lt(v[2], v[1]), y, v[2]);
  y = ax_select_n(under, y, v[0]);
  return ax_select_n(inside, y, v[1]);
}
