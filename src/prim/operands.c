/* How functions made of primitives refuse what is wrong. */
#include <stdio.h>

#include "prim/composite.h"

ax_value ax_refuse(const char *function, const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (!ax_failed()) ax_fail(ax_error(AX_INVALID_ARGUMENT, "%s: %s", function, text));
  return ax_poison;
}

const char *ax_operand_string(const ax_type *type) {
  const ax_builder *builder = ax_builder_current();
  return ax_type_string(type, builder != NULL ? &builder->axes : NULL);
}

bool ax_operand(const char *function, ax_value x, ax_type *out) { return ax_operands(function, 1, &x, out); }

bool ax_operands(const char *function, uint32_t count, const ax_value *xs, ax_type *types) {
  if (ax_failed()) return false;
  if (count > 0 && xs == NULL) ax_refuse(function, "there are no operands");
  for (uint32_t i = 0; i < count && !ax_failed(); i++) {
    types[i] = ax_typeof(xs[i]);
    if (ax_failed()) break;
    if (types[i].form != AX_ARRAY)
      ax_refuse(function, "operand %u is %s, which done must end first", i, ax_operand_string(&types[i]));
    else if (types[i].dtype != types[0].dtype)
      ax_refuse(function, "operands 0 and %u are %s and %s; they need one dtype", i, ax_operand_string(&types[0]),
                ax_operand_string(&types[i]));
  }
  return !ax_failed();
}

bool ax_dimension(const char *function, const char *what, int64_t *dimension, uint32_t rank) {
  int64_t given = *dimension;
  if (given < 0) *dimension += rank;
  if (*dimension >= 0 && *dimension < rank) return true;
  ax_refuse(function, "%s is %lld, but there are %u dimensions", what, (long long)given, rank);
  return false;
}
