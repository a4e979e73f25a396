/* pargmax, pargmin: the number of the member that has the extreme. As in argmax, a NaN is the extreme, and the first of equal
   members counts. Each member compares its value with the extreme over all members. The members that have it give their number, and
   the least number is the result. */
#include "collectives/collective.h"
#include "prim/composite.h"

static ax_value member_of(const char *name, ax_value (*extreme)(ax_value, const char *), ax_value x, const char *axes) {
  ax_axes names;
  ax_type type;
  if (!ax_operand(name, x, &type) || !ax_ungrouped_names(name, axes, &names)) return ax_poison;
  if (type.dtype == AX_BOOL) x = ax_convert_element_type(x, AX_U8);
  ax_value has = ax_eq(x, extreme(x, axes));
  if (ax_is_float(type.dtype)) has = ax_or(has, ax_ne(x, x));
  return ax_pmin(ax_where(has, ax_axis_index(axes), ax_integer(INT32_MAX)), axes);
}

ax_value ax_pargmax(ax_value x, const char *axes) { return member_of("pargmax", ax_pmax, x, axes); }
ax_value ax_pargmin(ax_value x, const char *axes) { return member_of("pargmin", ax_pmin, x, axes); }
