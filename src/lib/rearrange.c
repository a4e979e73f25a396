/* Elements in other places, arrays joined and cut, and choices among several. */
#include <string.h>

#include "axle/numpy.h"
#include "lib/checked.h"
#include "prim/shape.h"

/* Dimensions that are repeated become two, of which the first is new; then both become one again. */
ax_value (ax_tile)(ax_value x, uint32_t count, const int64_t *reps) {
  static const char name[] = "tile";
  ax_type t;
  if (!ax_operand(name, x, &t)) return ax_poison;
  const uint32_t rank = count > t.rank ? count : t.rank;
  int64_t wide[2 * AX_MAX_RANK], tall[2 * AX_MAX_RANK], result[AX_MAX_RANK];
  uint32_t n = 0;
  for (uint32_t d = 0; d < rank && rank <= AX_MAX_RANK; d++) {
    const int64_t times = d + count < rank ? 1 : reps[d + count - rank], size = d + t.rank < rank ? 1 : t.dims[d + t.rank - rank];
    if (times < 0) return ax_reject_as(name, "dimension %u cannot be repeated %lld times", d, (long long)times);
    if (times != 1) tall[n] = 1, wide[n++] = times;
    tall[n] = wide[n] = size, n++;
    if (times > 0 && size > INT64_MAX / times) return ax_reject_as(name, "dimension %u would be too large", d);
    result[d] = times * size;
  }
  if (rank > AX_MAX_RANK || n > AX_MAX_RANK) return ax_reject_as(name, "the rank would exceed %d on the way", AX_MAX_RANK);
  x = ax_broadcast_to(ax_reshape(x, AX_LIST(n, tall)), AX_LIST(n, wide));
  return ax_reshape(x, AX_LIST(rank, result));
}

ax_value ax_repeat_elements(ax_value x, int64_t repeats, int64_t axis) {
  static const char name[] = "repeat_elements";
  ax_type t;
  if (!ax_operand(name, x, &t) || !ax_dimension(name, "the axis", &axis, t.rank)) return ax_poison;
  if (repeats < 0) return ax_reject_as(name, "an element cannot be repeated %lld times", (long long)repeats);
  x = ax_expand_dims(x, axis + 1);
  ax_type wide = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  wide.dims[axis + 1] = repeats;
  x = ax_broadcast_to(x, AX_LIST(wide.rank, wide.dims));
  t.dims[axis] *= repeats;
  return ax_reshape(x, AX_LIST(t.rank, t.dims));
}

ax_value (ax_roll)(ax_value x, uint32_t shift_count, const int64_t *shifts, uint32_t count, const int64_t *axes) {
  static const char name[] = "roll";
  static const int64_t first[] = {0};
  ax_type t;
  if (!ax_operand(name, x, &t)) return ax_poison;
  const ax_type whole = t;
  if (axes == NULL) {
    count = 1, axes = first;
    x = ax_reshape(x, AX_LIST(1, ((int64_t[]){ax_type_elems(&whole)})));
    t = ax_array_type(t.dtype, AX_LIST(1, ((int64_t[]){ax_type_elems(&whole)})));
  }
  if (!ax_list_fits(name, "there are", "shift", shift_count, count)) return ax_poison;
  for (uint32_t i = 0; i < count; i++) {
    int64_t axis = axes[i];
    if (!ax_dimension(name, "an axis", &axis, t.rank)) return ax_poison;
    const int64_t size = t.dims[axis], by = size == 0 ? 0 : (shifts[i] % size + size) % size;
    if (by == 0) continue;
    const ax_value parts[] = {ax_slice_in_dim(x, size - by, AX_END, 1, axis), ax_slice_in_dim(x, 0, size - by, 1, axis)};
    x = ax_concatenate(AX_LIST(2, parts), axis);
  }
  return ax_reshape(x, AX_LIST(whole.rank, whole.dims));
}

ax_value (ax_flip)(ax_value x, uint32_t count, const int64_t *axes) {
  static const char name[] = "flip";
  int64_t dims[AX_MAX_RANK];
  ax_type t;
  if (!ax_operand(name, x, &t)) return ax_poison;
  if (axes == NULL) count = t.rank;
  if (count > t.rank) return ax_reject_as(name, "%u axes are named of %u", count, t.rank);
  for (uint32_t i = 0; i < count; i++) {
    dims[i] = axes == NULL ? i : axes[i];
    if (!ax_dimension(name, "an axis", &dims[i], t.rank)) return ax_poison;
  }
  return ax_rev(x, AX_LIST(count, dims));
}
ax_value ax_flipud(ax_value x) { return ax_flip(x, AX_LIST(1, ((int64_t[]){0}))); }
ax_value ax_fliplr(ax_value x) { return ax_flip(x, AX_LIST(1, ((int64_t[]){1}))); }

ax_value ax_rot90(ax_value x, int64_t k, int64_t axis1, int64_t axis2) {
  static const char name[] = "rot90";
  ax_type t;
  if (!ax_operand(name, x, &t) || !ax_dimension(name, "the first axis", &axis1, t.rank) ||
      !ax_dimension(name, "the second axis", &axis2, t.rank))
    return ax_poison;
  if (axis1 == axis2) return ax_reject_as(name, "dimension %lld is named twice", (long long)axis1);
  switch ((k % 4 + 4) % 4) {
    case 1:
      return ax_swapaxes(ax_flip(x, AX_LIST(1, &axis2)), axis1, axis2);
    case 2:
      return ax_flip(x, AX_LIST(2, ((int64_t[]){axis1, axis2})));
    case 3:
      return ax_flip(ax_swapaxes(x, axis1, axis2), AX_LIST(1, &axis2));
    default:
      return x;
  }
}

/* --- Joining and cutting --- */

/* x with dimensions of 1 up to this rank: those of a vector as dstack and its like want it. */
static ax_value of_rank(ax_value x, uint32_t rank, bool vectors_are_columns) {
  ax_type t = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  if (rank == 3 && t.rank < 3) return ax_expand_dims(of_rank(x, 2, false), 2);
  if (t.rank == 0 && rank > 0) x = ax_reshape(x, AX_LIST(1, ((int64_t[]){1})));
  return t.rank < 2 && rank == 2 ? ax_expand_dims(x, vectors_are_columns ? 1 : 0) : x;
}

static ax_value join(const char *name, uint32_t count, const ax_value *xs, uint32_t rank, bool columns, int64_t axis) {
  ax_type *types = ax_trace_alloc((count + 1) * sizeof types[0]);
  ax_value *parts = ax_trace_alloc((count + 1) * sizeof parts[0]);
  if (count == 0) return ax_reject_as(name, "there is nothing to stack");
  if (types == NULL || parts == NULL || !ax_operands(name, count, xs, types)) return ax_poison;
  for (uint32_t i = 0; i < count; i++) parts[i] = of_rank(xs[i], rank, columns);
  return ax_concatenate(AX_LIST(count, parts), axis);
}

ax_value (ax_hstack)(uint32_t count, const ax_value *xs) {
  ax_type first = {0};
  if (count > 0 && !ax_operand("hstack", xs[0], &first)) return ax_poison;
  return join("hstack", count, xs, 1, false, first.rank > 1);
}
ax_value (ax_vstack)(uint32_t count, const ax_value *xs) { return join("vstack", count, xs, 2, false, 0); }
ax_value (ax_dstack)(uint32_t count, const ax_value *xs) { return join("dstack", count, xs, 3, false, 2); }
ax_value (ax_column_stack)(uint32_t count, const ax_value *xs) { return join("column_stack", count, xs, 2, true, 1); }

void (ax_array_split)(ax_value x, int64_t sections, int64_t axis, uint32_t out_count, ax_value *out) {
  static const char name[] = "array_split";
  ax_type t;
  ax_poison_list(out_count, 0, out);
  if (!ax_operand(name, x, &t) || !ax_dimension(name, "the axis", &axis, t.rank)) return;
  if (sections < 1 || sections > INT32_MAX) ax_reject_as(name, "there cannot be %lld parts", (long long)sections);
  int64_t *sizes = ax_failed() ? NULL : ax_trace_alloc((size_t)sections * sizeof sizes[0]);
  if (sizes == NULL) return;
  for (int64_t i = 0; i < sections; i++) sizes[i] = t.dims[axis] / sections + (i < t.dims[axis] % sections);
  (ax_split)(x, (uint32_t)sections, sizes, axis, out_count, out);
}

/* The first condition is asked last, so that its choice stays. */
ax_value (ax_select)(uint32_t count, const ax_value *conditions, uint32_t choice_count, const ax_value *choices,
                    ax_value otherwise) {
  static const char name[] = "select";
  if (ax_failed() || !ax_list_fits(name, "there are", "choice", choice_count, count)) return ax_poison;
  if (count == 0) return ax_reject_as(name, "there are no conditions");
  for (uint32_t i = count; i-- > 0;) otherwise = ax_where(conditions[i], choices[i], otherwise);
  return otherwise;
}

/* --- By element --- */

ax_value ax_clip(ax_value x, ax_value low, ax_value high) {
  ax_type t;
  return ax_numeric_operand("clip", x, &t) ? ax_min(ax_max(x, low), high) : ax_poison;
}

/* Infinities that are equal are close; their difference is NaN. */
ax_value ax_isclose(ax_value a, ax_value b, double rtol, double atol, bool equal_nan) {
  static const char name[] = "isclose";
  ax_value both[] = {a, b};
  ax_type types[2];
  ax_give_dtype(name, both, 2);
  if (ax_failed() || !ax_operands(name, 2, both, types) || !ax_inexact_operand(name, both[0])) return ax_poison;
  if (!ax_broadcast_together(both, 2))
    return ax_reject_as(name, "%s and %s do not broadcast to one shape", ax_operand_string(&types[0]),
                        ax_operand_string(&types[1]));
  ax_value most = ax_add(ax_mul(ax_abs(both[1]), ax_real(rtol)), ax_real(atol));
  ax_value near = ax_and(ax_le(ax_abs(ax_sub(both[0], both[1])), most), ax_lt(ax_abs(both[1]), ax_real(__builtin_inf())));
  near = ax_or(near, ax_eq(both[0], both[1]));
  return equal_nan ? ax_or(near, ax_and(ax_ne(both[0], both[0]), ax_ne(both[1], both[1]))) : near;
}

/* The greatest finite number of a float dtype. */
static double greatest(ax_dtype dtype) {
  switch (dtype) {
    case AX_BF16:
      return 0x1.fep127;
    case AX_F16:
      return 65504;
    case AX_F32:
      return 0x1.fffffep127;
    default:
      return 0x1.fffffffffffffp1023;
  }
}

ax_value ax_nan_to_num(ax_value x, double nan, double posinf, double neginf) {
  ax_type t;
  if (!ax_float_operand("nan_to_num", x) || !ax_operand("nan_to_num", x, &t)) return ax_poison;
  const double infinity = __builtin_inf();
  if (posinf == infinity) posinf = greatest(t.dtype);
  if (neginf == -infinity) neginf = -greatest(t.dtype);
  x = ax_where(ax_ne(x, x), ax_real(nan), x);
  x = ax_where(ax_eq(x, ax_real(infinity)), ax_real(posinf), x);
  return ax_where(ax_eq(x, ax_real(-infinity)), ax_real(neginf), x);
}

ax_value ax_diff(ax_value x, int64_t n, int64_t axis) {
  static const char name[] = "diff";
  ax_type t;
  if (!ax_numeric_operand(name, x, &t) || !ax_dimension(name, "the axis", &axis, t.rank)) return ax_poison;
  if (n < 0) return ax_reject_as(name, "differences cannot be taken %lld times", (long long)n);
  for (int64_t i = 0, size = t.dims[axis]; i < n && size > 0; i++, size--)
    x = ax_sub(ax_slice_in_dim(x, 1, AX_END, 1, axis), ax_slice_in_dim(x, 0, size - 1, 1, axis));
  return x;
}
