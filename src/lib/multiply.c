/* Products of vectors and arrays that are neither matmul nor einsum, and convolutions of vectors. */
#include <string.h>

#include "axle/numpy.h"
#include "lib/checked.h"

static bool pair(const char *name, ax_value a, ax_value b, ax_type *types) {
  return ax_operands(name, 2, (ax_value[]){a, b}, types) && ax_numeric_operand(name, a, types);
}

static ax_value as_vector(ax_value x, const ax_type *type) { return ax_reshape(x, AX_LIST(1, ((int64_t[]){ax_type_elems(type)}))); }

ax_value ax_outer(ax_value a, ax_value b) {
  ax_type t[2];
  if (!pair("outer", a, b, t)) return ax_poison;
  return ax_mul(ax_expand_dims(as_vector(a, &t[0]), 1), ax_expand_dims(as_vector(b, &t[1]), 0));
}

ax_value ax_inner(ax_value a, ax_value b) {
  ax_type t[2];
  if (!pair("inner", a, b, t)) return ax_poison;
  if (t[0].rank == 0 || t[1].rank == 0) return ax_mul(a, b);
  const int64_t la = t[0].rank - 1, lb = t[1].rank - 1;
  if (t[0].dims[la] != t[1].dims[lb])
    return ax_reject_as("inner", "the last dimensions of %s and %s differ", ax_operand_string(&t[0]), ax_operand_string(&t[1]));
  return ax_dot_general(a, b, AX_LIST(1, &la), AX_LIST(1, &lb), AX_DIMS(), AX_DIMS());
}

ax_value ax_vdot(ax_value a, ax_value b) {
  ax_type t[2];
  if (!pair("vdot", a, b, t)) return ax_poison;
  if (ax_type_elems(&t[0]) != ax_type_elems(&t[1]))
    return ax_reject_as("vdot", "%s and %s have not as many elements", ax_operand_string(&t[0]), ax_operand_string(&t[1]));
  a = ax_conjugated(as_vector(a, &t[0]));
  return ax_inner(a, as_vector(b, &t[1]));
}

ax_value ax_vecdot(ax_value a, ax_value b, int64_t axis) {
  static const char name[] = "vecdot";
  ax_type t[2];
  if (!pair(name, a, b, t)) return ax_poison;
  int64_t of_a = axis, of_b = axis;
  if (!ax_dimension(name, "the axis of a", &of_a, t[0].rank) || !ax_dimension(name, "the axis of b", &of_b, t[1].rank))
    return ax_poison;
  if (t[0].dims[of_a] != t[1].dims[of_b])
    return ax_reject_as(name, "%s and %s have not as many elements along the axis", ax_operand_string(&t[0]),
                        ax_operand_string(&t[1]));
  const ax_value x = ax_moveaxis(ax_conjugated(a), of_a, -1), y = ax_moveaxis(b, of_b, -1);
  return ax_reduce_sum(ax_mul(x, y), AX_DIMS(-1), false);
}

ax_value (ax_tensordot)(ax_value a, ax_value b, uint32_t a_count, const int64_t *a_axes, uint32_t b_count, const int64_t *b_axes) {
  static const char name[] = "tensordot";
  int64_t left[AX_MAX_RANK], right[AX_MAX_RANK];
  ax_type t[2];
  if (!pair(name, a, b, t) || !ax_list_fits(name, "there are", "axis of b", b_count, a_count)) return ax_poison;
  if (a_count > t[0].rank || a_count > t[1].rank)
    return ax_reject_as(name, "%u axes are more than %s and %s have", a_count, ax_operand_string(&t[0]), ax_operand_string(&t[1]));
  for (uint32_t i = 0; i < a_count; i++) {
    left[i] = a_axes[i], right[i] = b_axes[i];
    if (!ax_dimension(name, "an axis of a", &left[i], t[0].rank) || !ax_dimension(name, "an axis of b", &right[i], t[1].rank))
      return ax_poison;
  }
  return ax_dot_general(a, b, AX_LIST(a_count, left), AX_LIST(a_count, right), AX_DIMS(), AX_DIMS());
}

ax_value ax_kron(ax_value a, ax_value b) {
  static const char name[] = "kron";
  int64_t wide[2][2 * AX_MAX_RANK], dims[AX_MAX_RANK];
  ax_type t[2];
  if (!pair(name, a, b, t)) return ax_poison;
  if (t[0].rank != t[1].rank || 2 * t[0].rank > AX_MAX_RANK)
    return ax_reject_as(name, "%s and %s must have one rank of at most %d", ax_operand_string(&t[0]), ax_operand_string(&t[1]),
                        AX_MAX_RANK / 2);
  for (uint32_t d = 0; d < t[0].rank; d++) {
    wide[0][2 * d] = t[0].dims[d], wide[0][2 * d + 1] = 1;
    wide[1][2 * d] = 1, wide[1][2 * d + 1] = t[1].dims[d];
    dims[d] = t[0].dims[d] * t[1].dims[d];
  }
  a = ax_reshape(a, AX_LIST(2 * t[0].rank, wide[0]));
  return ax_reshape(ax_mul(a, ax_reshape(b, AX_LIST(2 * t[0].rank, wide[1]))), AX_LIST(t[0].rank, dims));
}

ax_value ax_cross(ax_value a, ax_value b, int64_t axis) {
  static const char name[] = "cross";
  ax_value in[] = {a, b}, part[2][3];
  ax_type t[2];
  if (!pair(name, a, b, t)) return ax_poison;
  if (!ax_broadcast_together(in, 2))
    return ax_reject_as(name, "%s and %s do not broadcast to one shape", ax_operand_string(&t[0]), ax_operand_string(&t[1]));
  const ax_type whole = ax_typeof(in[0]);
  if (ax_failed() || !ax_dimension(name, "the axis", &axis, whole.rank)) return ax_poison;
  if (whole.dims[axis] != 3) return ax_reject_as(name, "dimension %lld of %s is not 3", (long long)axis, ax_operand_string(&whole));
  for (int i = 0; i < 6; i++) part[i / 3][i % 3] = ax_at(in[i / 3], i % 3, axis);
  ax_value product[3];
  for (int i = 0; i < 3; i++) {
    const int j = (i + 1) % 3, k = (i + 2) % 3;
    product[i] = ax_sub(ax_mul(part[0][j], part[1][k]), ax_mul(part[0][k], part[1][j]));
  }
  return ax_stack(AX_LIST(3, product), axis);
}

/* --- Convolutions --- */

static bool pad_for(const char *name, const char *mode, int64_t size, int64_t *low, int64_t *high) {
  if (strcmp(mode, "full") == 0)
    *low = *high = size - 1;
  else if (strcmp(mode, "same") == 0)
    *low = size / 2, *high = size - size / 2 - 1;
  else if (strcmp(mode, "valid") == 0)
    *low = *high = 0;
  else
    ax_reject_as(name, "the mode is \"%s\"; it must be \"full\", \"same\" or \"valid\"", mode);
  return !ax_failed();
}

/* The longer one is slid over; correlate turns its result round where that is the second. */
static ax_value slid(const char *name, ax_value a, ax_value v, const char *mode, bool convolved) {
  ax_type t[2];
  int64_t low, high;
  if (!pair(name, a, v, t)) return ax_poison;
  if (t[0].rank != 1 || t[1].rank != 1 || t[0].dims[0] == 0 || t[1].dims[0] == 0)
    return ax_reject_as(name, "%s and %s must be vectors with elements", ax_operand_string(&t[0]), ax_operand_string(&t[1]));
  const bool swapped = t[0].dims[0] < t[1].dims[0];
  const int64_t n = t[swapped].dims[0], m = t[!swapped].dims[0];
  if (!pad_for(name, mode, m, &low, &high)) return ax_poison;
  if (!convolved) v = ax_conjugated(v);
  ax_value over = ax_reshape(swapped ? v : a, AX_LIST(3, ((int64_t[]){1, 1, n}))), window = swapped ? a : v;
  if (convolved) window = ax_flip(window, AX_ALL_DIMS);
  window = ax_reshape(window, AX_LIST(3, ((int64_t[]){1, 1, m})));
  ax_value y = ax_conv_general_dilated(over, window, &(ax_conv_options){.low = {1, &low}, .high = {1, &high}});
  y = ax_reshape(y, AX_LIST(1, ((int64_t[]){n + low + high - m + 1})));
  return swapped && !convolved ? ax_flip(y, AX_ALL_DIMS) : y;
}

ax_value ax_convolve(ax_value a, ax_value v, const char *mode) {
  return slid("convolve", a, v, mode != NULL ? mode : "full", true);
}
ax_value ax_correlate(ax_value a, ax_value v, const char *mode) {
  return slid("correlate", a, v, mode != NULL ? mode : "valid", false);
}
