/* The transforms on functions, inside a trace: the function is traced on its own, the program transformed and called here.

     outer trace:   x..            captured c..
     inner program: (c.., x..) -> (y..)     transformed     called on (c.., x..)

   Captured values are constants to the transform; to the enclosing trace they are operands like others, so that it can be
   differentiated again. This file has their common helpers; the transforms are in derivatives.c, linear.c, jacobian.c and
   vmap.c. */
#include "xform/in_trace.h"

#include <string.h>

const ax_mesh *ax_axes_here(void) { return &ax_builder_current()->axes; }

void ax_trace_fails(const char *what, ax_status status) {
  size_t length = strlen(what);
  bool named = strncmp(ax_message(), what, length) == 0 && ax_message()[length] == ':';
  ax_fail(named || status == AX_OUT_OF_MEMORY ? status : ax_error_context(status, "%s: ", what));
}

bool ax_traced_init(ax_traced *f, const char *what, ax_fn function, const ax_value *in, ax_value *out, uint32_t out_count) {
  *f = (ax_traced){.what = what, .function = function};
  f->in = ax_take_operands(in, function.in_count, out, out_count);
  f->types = ax_types_of(f->what, f->in, function.in_count);
  return f->types != NULL;
}

bool ax_traced_choose(ax_traced *f, ax_args wrt) {
  uint32_t in_count = f->function.in_count;
  f->by_count = ax_args_all(wrt)       ? 0
                : wrt.count < in_count ? wrt.count
                                       : in_count; /* results of a set that there cannot be are not all there */
  bool *mask = ax_trace_alloc(in_count);
  f->by = ax_trace_alloc(in_count * sizeof f->by[0]);
  if (f->types == NULL || mask == NULL || f->by == NULL) return false;
  ax_status status = ax_args_mask(wrt, "operand", in_count, mask);
  uint32_t count = 0;
  for (uint32_t i = 0; i < in_count && status == AX_OK; i++) {
    bool is_float = ax_is_differentiable(f->types[i].dtype);
    if (mask[i] && !is_float && !ax_args_all(wrt))
      status = ax_error(AX_INVALID_ARGUMENT, "operand %u is %s: only floats have derivatives", i,
                        ax_type_string(&f->types[i], ax_axes_here()));
    if (mask[i] && is_float) f->by[count++] = i;
  }
  if (status == AX_OK && count == 0) status = ax_error(AX_INVALID_ARGUMENT, "there is nothing to take derivatives by");
  if (status == AX_OK) f->by_count = count;
  if (status != AX_OK) ax_trace_fails(f->what, status);
  return status == AX_OK;
}

bool ax_traced_begin(ax_traced *f, const char *what, ax_fn function, ax_args wrt, uint32_t in_count, const ax_value *in) {
  bool fits = ax_list_fits(what, "the function takes", "operand", in_count, function.in_count);
  bool ready = ax_traced_init(f, what, function, fits ? in : NULL, NULL, 0);
  return ax_traced_choose(f, wrt) && ready;
}

bool ax_traced_results(const char *what, uint32_t count, uint32_t needed, ax_value *out) {
  ax_poison_list(count, needed, out);
  return ax_list_fits(what, "the call gives", "result", count, needed);
}

bool ax_traced_trace(ax_traced *f, const ax_mesh *axes) {
  if (ax_failed()) return false;
  ax_body_options options = {.owner = f->what, .part = "function", .axes = axes, .function = f->function, .in = f->types};
  ax_status status = ax_body_trace(&options, &f->body);
  if (status != AX_OK) ax_fail(ax_error_context(status, "%s: function: ", f->what));
  return status == AX_OK;
}

void ax_traced_deinit(ax_traced *f) { ax_body_deinit(&f->body); }

ax_args ax_traced_inputs(const ax_traced *f) {
  uint32_t *list = ax_trace_alloc(f->by_count * sizeof list[0]);
  for (uint32_t k = 0; k < f->by_count && list != NULL; k++) list[k] = f->body.captured_count + f->by[k];
  return (ax_args){.list = list, .count = list != NULL ? f->by_count : 0};
}

void ax_traced_call(const ax_traced *f, ax_status status, ax_program *transformed, const ax_value *more, uint32_t more_count,
                    ax_value *out, uint32_t out_count) {
  if (status != AX_OK) ax_trace_fails(f->what, status);
  uint32_t captured = f->body.captured_count, in_count = f->function.in_count;
  size_t count = (size_t)captured + in_count + more_count;
  ax_value *operands = ax_trace_alloc(count * sizeof operands[0]);
  if (operands != NULL) {
    if (captured > 0) memcpy(operands, f->body.captured, captured * sizeof operands[0]);
    if (in_count > 0) memcpy(operands + captured, f->in, in_count * sizeof operands[0]);
    if (more_count > 0) memcpy(operands + captured + in_count, more, more_count * sizeof operands[0]);
    ax_call(transformed, AX_LIST((uint32_t)count, operands), AX_LIST(out_count, out));
  }
  ax_program_release(transformed);
}

bool ax_fit_tangent(const char *what, const char *of, const char *kind, uint32_t index, const ax_type *type, ax_axis_set own,
                    ax_value *value) {
  if (ax_is_number(*value)) {
    *value = ax_as(what, *value, type->dtype);
    if (type->rank > 0) *value = ax_broadcast_in_dim(*value, AX_LIST(type->rank, type->dims), NULL);
    *value = ax_placed(*value, &type->spread);
  }
  *value = ax_spread_to(*value, &type->spread);
  ax_type given = ax_typeof(*value), own_part = given;
  own_part.spread.varying &= own;
  own_part.spread.reduced &= own;
  own_part.spread.unreduced &= own;
  if (own_part.spread.unreduced == 0) own_part.spread.kind = AX_UNREDUCED_SUM;
  if (ax_failed() || ax_type_equal(&own_part, type)) return !ax_failed();
  ax_fail(ax_error(AX_INVALID_ARGUMENT, "%s: %s %u is %s, but its %s is %s", what, of, index, ax_type_string(type, ax_axes_here()),
                   kind, ax_type_string(&given, ax_axes_here())));
  return false;
}
