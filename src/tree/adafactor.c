/* adafactor, as optax has it (arXiv:1804.04235): squares of gradients by their means along the two largest dimensions, steps that
   are bounded, and as large as the parameter. */
#include "axle/ops.h"
#include "ir/program.h"
#include "prim/bind.h"
#include "tree/moments.h"

/* How many elements a leaf has of which x is this device's part. */
static double whole_elems(ax_value x, ax_axis_set axes) {
  ax_type type = ax_typeof(x);
  if (ax_failed()) return 1;
  return (double)ax_type_elems(&type) * (double)ax_axis_set_size(axes, &ax_builder_current()->axes);
}

ax_value ax_rms_of_parts(ax_value x, ax_axis_set axes) {
  return ax_sqrt(ax_div(ax_sum_of_parts(ax_sum_of_squares(x), axes), ax_real(whole_elems(x, axes))));
}

ax_value ax_within_rms(ax_value x, ax_axis_set axes, double bound) {
  ax_value by = ax_max(ax_real(1), ax_div(ax_rms_of_parts(x, axes), ax_real(bound)));
  if (ax_failed()) return ax_poison;
  return ax_div(x, ax_convert_element_type(by, ax_typeof(x).dtype));
}

/* The mean along dimension `along` of x, which is dimension d of the parameter. */
static ax_value mean_along(const ax_adafactor_leaf *leaf, ax_value x, uint32_t along, uint32_t d, bool keepdims) {
  const int64_t axis = along;
  ax_value sum = ax_sum_of_parts((ax_reduce_sum)(x, 1, &axis, keepdims), ax_cut_axes(&leaf->cut, d));
  return ax_div(sum, ax_real((double)leaf->cut.whole->dims[d]));
}

static ax_value moved(ax_value decay, ax_value m, ax_value x) {
  return ax_add(ax_mul(decay, m), ax_mul(ax_sub(ax_real(1), decay), x));
}

/* g over the root of the mean of its squares. */
static ax_value direction_of(const ax_adafactor_leaf *leaf, ax_value g, ax_value *const *moments) {
  uint32_t largest, next;
  ax_value square = ax_add(ax_mul(g, g), ax_real(leaf->o->eps));
  if (!ax_is_factored(leaf->o, leaf->cut.whole, &largest, &next)) {
    *moments[2] = moved(leaf->decay, *moments[2], square);
    return ax_mul(g, ax_rsqrt(*moments[2]));
  }
  *moments[0] = moved(leaf->decay, *moments[0], mean_along(leaf, square, largest, largest, false));
  *moments[1] = moved(leaf->decay, *moments[1], mean_along(leaf, square, next, next, false));
  const uint32_t left = next > largest ? next - 1 : next;
  ax_value rows = ax_rsqrt(ax_div(*moments[0], mean_along(leaf, *moments[0], left, next, true)));
  return ax_mul(ax_mul(g, ax_expand_dims(rows, largest)), ax_expand_dims(ax_rsqrt(*moments[1]), next));
}

ax_value ax_adafactor_step(const ax_adafactor_leaf *leaf, ax_value g, ax_value p, ax_value *const *moments) {
  const ax_optimizer *o = leaf->o;
  ax_type part = ax_typeof(p);
  if (ax_failed() || !ax_is_cut_as_said(&leaf->cut, &part, "adafactor takes means along dimensions")) return ax_poison;
  ax_value step = direction_of(leaf, g, moments);
  if (o->clipping_threshold > 0) step = ax_within_rms(step, leaf->cut.axes, o->clipping_threshold);
  step = ax_mul(ax_neg(leaf->rate), step);
  if (o->multiply_by_parameter_scale) {
    ax_value scale = ax_max(ax_rms_of_parts(p, leaf->cut.axes), ax_real(1e-3));
    step = ax_mul(step, ax_convert_element_type(scale, part.dtype));
  }
  if (o->momentum != 0)
    step = *moments[3] = ax_add(ax_mul(ax_real(1 - o->momentum), step), ax_mul(ax_real(o->momentum), *moments[3]));
  if (leaf->decays) step = ax_add(step, ax_mul(ax_real(o->weight_decay), p));
  return ax_sub(p, step);
}
