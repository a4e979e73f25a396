/* cumsum: the sum of a window that ends, or begins, at its place and sees everything up to there. */
#include "prim/composite.h"
#include "prim/shape.h"

ax_value ax_cumsum(ax_value x, int64_t axis, bool reverse) {
  static const char name[] = "cumsum";
  int64_t window[AX_MAX_RANK], before[AX_MAX_RANK] = {0};
  static const int64_t none[AX_MAX_RANK] = {0};
  ax_type given;
  if (!ax_operand(name, x, &given) || !ax_dimension(name, "the axis", &axis, given.rank)) return ax_poison;
  if (given.dtype == AX_BOOL) return ax_reject_as(name, "the operand is %s; it must be numeric", ax_operand_string(&given));
  if (given.dims[axis] == 0) return x;
  for (uint32_t d = 0; d < given.rank; d++) window[d] = 1;
  window[axis] = given.dims[axis];
  before[axis] = given.dims[axis] - 1;
  const ax_window_options options = {.low = {given.rank, reverse ? none : before}, .high = {given.rank, reverse ? before : none}};
  return ax_reduce_window_sum(x, AX_LIST(given.rank, window), &options);
}
