/* Dimensions and numbers in psum, pmax and pmin. The names of axes may include numbers of the operand's dimensions ("data,0",
   "-1"): each device reduces these first. An operand that is a number is reduced without an equation. */
#include <stdlib.h>
#include <string.h>

#include "collectives/collective.h"
#include "prim/composite.h"

static bool is_number(const char *item, size_t length) {
  size_t sign = length > 0 && item[0] == '-' ? 1 : 0;
  return length > sign && length <= 8 && strspn(item + sign, "0123456789") >= length - sign;
}

/* names: room for those that are none of dimensions, with the groups. False: the trace has failed. */
static bool sort_out(const char *function, const char *axes, uint32_t rank, ax_dims *dims, char *names) {
  size_t all = strcspn(axes, "{"), used = 0, kept = 0;
  *dims = (ax_dims){0};
  for (size_t at = 0, length; all > 0 && at <= all; at += length + 1) {
    length = strcspn(axes + at, ",{");
    size_t begin = at + strspn(axes + at, " "), end = at + length;
    while (end > begin && axes[end - 1] == ' ') end--;
    if (begin < end && is_number(axes + begin, end - begin)) {
      int64_t dimension = strtol(axes + begin, NULL, 10);
      if (!ax_dimension(function, "the axis", &dimension, rank)) return false;
      if (ax_dims_has(dims, dimension)) return ax_reject_as(function, "dimension %lld is named twice", (long long)dimension), false;
      dims->v[dims->count++] = dimension;
      continue;
    }
    if (kept++ > 0) names[used++] = ',';
    memcpy(names + used, axes + at, length);
    used += length;
  }
  if (dims->count > 0 && axes[all] != '\0')
    return ax_reject_as(function, "groups are of named axes alone: \"%.200s\"", axes), false;
  strcpy(names + used, axes + all);
  return true;
}

bool ax_reduce_positional(const char *function, ax_scalar op, ax_value *x, const char **axes, int64_t *count) {
  ax_type type;
  ax_dims dims;
  *count = 1;
  if (!ax_operand(function, *x, &type)) return false;
  if (*axes == NULL || strpbrk(*axes, "0123456789") == NULL) return true;
  char *names = ax_trace_alloc(strlen(*axes) + 2);
  if (names == NULL || !sort_out(function, *axes, type.rank, &dims, names)) return false;
  *axes = names;
  if (dims.count == 0) return true;
  for (uint32_t i = 0; i < dims.count; i++) *count *= type.dims[dims.v[i]];
  *x = op == AX_SCALAR_ADD   ? ax_reduce_sum(*x, AX_LIST(dims.count, dims.v), false)
       : op == AX_SCALAR_MAX ? ax_reduce_max(*x, AX_LIST(dims.count, dims.v), false)
                             : ax_reduce_min(*x, AX_LIST(dims.count, dims.v), false);
  return !ax_failed();
}

ax_value ax_reduce_number(const char *function, ax_scalar op, ax_value number, const char *axes) {
  ax_axes names;
  if (!ax_collective_names(function, axes, &names)) return ax_poison;
  if (op != AX_SCALAR_ADD) return number;
  if (!ax_groups_even(&names.groups))
    return ax_reject_as(function, "the groups of \"%.200s\" are of several sizes, and so the sums of a number", axes);
  return ax_number_times(function, number, ax_axes_members(&names));
}
