/* The checks of checked.h. */
#include "lib/checked.h"

bool ax_float_operand(const char *function, ax_value x) {
  ax_type type;
  if (!ax_operand(function, x, &type)) return false;
  if (ax_is_float(type.dtype)) return true;
  ax_reject_as(function, "the operand is %s; it must be of floats", ax_operand_string(&type));
  return false;
}

bool ax_inexact_operand(const char *function, ax_value x) {
  ax_type type;
  if (!ax_operand(function, x, &type)) return false;
  if (ax_rounds(type.dtype)) return true;
  ax_reject_as(function, "the operand is %s; it must be of floats or complex numbers", ax_operand_string(&type));
  return false;
}

bool ax_numeric_operand(const char *function, ax_value x, ax_type *out) {
  if (!ax_operand(function, x, out)) return false;
  if (out->dtype != AX_BOOL) return true;
  ax_reject_as(function, "the operand is %s; it must be numeric", ax_operand_string(out));
  return false;
}

bool ax_shaped_as(const char *function, uint32_t i, const ax_type *type, const ax_type *first) {
  if (ax_same_shape(type, first)) return true;
  ax_reject_as(function, "operand %u is %s; all must be of one shape, as %s", i, ax_operand_string(type), ax_operand_string(first));
  return false;
}

bool ax_is_given(ax_value x) { return x.trace != 0 || x.id != 0; }

static bool stretches(const ax_type *from, const ax_type *to) {
  if (from->rank > to->rank) return false;
  for (uint32_t d = 0; d < from->rank; d++)
    if (from->dims[d] != 1 && from->dims[d] != to->dims[to->rank - from->rank + d]) return false;
  return true;
}

static bool fits(const char *function, const char *what, ax_value x, ax_dtype dtype, const ax_type *like) {
  ax_type type;
  if (!ax_is_given(x)) return !ax_failed();
  if (!ax_operand(function, x, &type)) return false;
  if (type.dtype != dtype)
    ax_reject_as(function, "%s is %s; it must be of %s", what, ax_operand_string(&type), ax_dtype_name(dtype));
  else if (!stretches(&type, like))
    ax_reject_as(function, "%s is %s, which does not broadcast to %s", what, ax_operand_string(&type), ax_operand_string(like));
  return !ax_failed();
}

bool ax_mask_operand(const char *function, ax_value mask, const ax_type *like) {
  return fits(function, "`where`", mask, AX_BOOL, like);
}

bool ax_beside(const char *function, const char *what, ax_value x, const ax_type *like) {
  return fits(function, what, x, like->dtype, like);
}
