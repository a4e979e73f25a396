/* cumsum in log2 n passes. Each pass adds to every partial sum the one that ends where it begins:

     x   a b c    d
     +1  a ab bc  cd
     +2  a ab abc abcd

   So each sum is made by log2 n additions in a row, and f32 is enough up to 2^25 elements (the bound on sums is in axle/ops.h);
   longer ones are made in f64. */
#include "prim/composite.h"
#include "prim/shape.h"

enum { most_in_f32 = 1 << 25 };

/* x moved by `by` along the axis, towards its end or its beginning, zeros moving in. */
static ax_value shifted(ax_value x, int64_t axis, int64_t by, bool to_end) {
  int64_t low[AX_MAX_RANK] = {0}, high[AX_MAX_RANK] = {0}, interior[AX_MAX_RANK] = {0};
  low[axis] = to_end ? by : -by;
  high[axis] = -low[axis];
  return ax_pad(x, ax_zero_like(x), low, high, interior);
}

ax_value ax_cumsum(ax_value x, int64_t axis, bool reverse) {
  static const char name[] = "cumsum";
  ax_type given;
  if (!ax_operand(name, x, &given) || !ax_dimension(name, "the axis", &axis, given.rank)) return ax_poison;
  if (given.dtype == AX_BOOL) return ax_reject_as(name, "the operand is %s; it must be numeric", ax_operand_string(&given));
  ax_dtype dtype = given.dtype;
  if (dtype == AX_BF16 || dtype == AX_F16) dtype = AX_F32;
  if (dtype == AX_F32 && given.dims[axis] > most_in_f32) dtype = AX_F64;
  ax_value sums = dtype != given.dtype ? ax_convert_element_type(x, dtype) : x;
  for (int64_t by = 1; by < given.dims[axis] && !ax_failed(); by *= 2) sums = ax_add(sums, shifted(sums, axis, by, !reverse));
  return dtype != given.dtype ? ax_convert_element_type(sums, given.dtype) : sums;
}
