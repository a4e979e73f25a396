/* The checks of composite.h. */
#include "prim/composite.h"

const char *ax_operand_string(const ax_type *type) {
  const ax_builder *builder = ax_builder_current();
  return ax_type_string(type, builder != NULL ? &builder->axes : NULL);
}

bool ax_operand(const char *function, ax_value x, ax_type *out) { return ax_operands(function, 1, &x, out); }

bool ax_operands(const char *function, uint32_t count, const ax_value *xs, ax_type *types) {
  if (!ax_check_operands(function, xs, count)) return false;
  for (uint32_t i = 0; i < count && !ax_failed(); i++) {
    if (ax_is_number(xs[i])) ax_reject_as(function, "operand %u is a number, which has no dtype here; ax_full gives it one", i);
    types[i] = ax_typeof(xs[i]);
    if (ax_failed()) break;
    if (types[i].form != AX_ARRAY)
      ax_reject_as(function, "operand %u is %s, %s", i, ax_operand_string(&types[i]), ax_form_advice(&types[i]));
    else if (types[i].dtype != types[0].dtype)
      ax_reject_as(function, "operands 0 and %u are %s and %s; they need one dtype", i, ax_operand_string(&types[0]),
                   ax_operand_string(&types[i]));
  }
  return !ax_failed();
}
