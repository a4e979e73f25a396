/* What windows choose by one array, taken from another or added to it: the derivatives of the windows' extremes, as operations. */
#include "axle/transform.h"
#include "lib/checked.h"
#include "prim/shape.h"

typedef struct choice {
  bool largest;
  uint32_t count;
  const int64_t *window;
  const ax_window_options *options;
} choice;

static AX_BODY(extreme) {
  const choice *c = context;
  out[0] = (c->largest ? (ax_reduce_window_max) : (ax_reduce_window_min))(in[0], c->count, c->window, c->options);
}

/* `beside` has the dtype of the operand, and its shape or that of the windows. */
static bool fits(const char *name, const char *what, ax_value beside, const ax_type *wanted) {
  ax_type type;
  if (!ax_operand(name, beside, &type)) return false;
  if (type.dtype == wanted->dtype && ax_same_shape(&type, wanted)) return true;
  (void)ax_reject_as(name, "%s is %s; it must be %s", what, ax_operand_string(&type), ax_operand_string(wanted));
  return false;
}

ax_value(ax_select_and_gather_add)(ax_value tangents, ax_value operand, bool largest, uint32_t count, const int64_t *window,
                                   const ax_window_options *options) {
  static const char name[] = "select_and_gather_add";
  choice c = {largest, count, window, options};
  if (!ax_float_operand(name, operand)) return ax_poison;
  const ax_type type = ax_typeof(operand);
  ax_value chosen = ax_poison, gathered = ax_poison;
  if (!fits(name, "the array of tangents", tangents, &type)) return ax_poison;
  (ax_jvp)(AX_CLOSURE(extreme, 1, 1, &c), AX_ALL_ARGS, 1, &operand, 1, &tangents, 1, &chosen, 1, &gathered);
  return ax_failed() ? ax_poison : gathered;
}

ax_value(ax_select_and_scatter_add)(ax_value source, ax_value operand, bool largest, uint32_t count, const int64_t *window,
                                    const ax_window_options *options) {
  static const char name[] = "select_and_scatter_add";
  choice c = {largest, count, window, options};
  if (!ax_float_operand(name, operand)) return ax_poison;
  ax_value chosen = ax_poison, scattered = ax_poison;
  ax_linear linear = (ax_linearize)(AX_CLOSURE(extreme, 1, 1, &c), AX_ALL_ARGS, 1, &operand, 1, &chosen);
  if (ax_failed()) return ax_poison;
  const ax_type windows = ax_typeof(chosen);
  if (!fits(name, "the source", source, &windows)) return ax_poison;
  (ax_pullback)(linear, 1, &source, 1, &scattered);
  return ax_failed() ? ax_poison : scattered;
}
