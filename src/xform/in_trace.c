/* The transforms on functions, inside a trace: the function is traced on its own, the program transformed and called here.

     outer trace:   x..            captured c..
     inner program: (c.., x..) -> (y..)     transformed     called on (c.., x..)

   Captured values are constants to the transform; to the enclosing trace they are operands like others, so that it can be
   differentiated again. */
#include <stdio.h>
#include <string.h>

#include "prim/region.h"
#include "xform/xform.h"

static const ax_mesh *axes_here(void) { return &ax_builder_current()->axes; }

/* Traces f on `types` under `axes`. False: the current trace has failed. */
static bool trace(const char *what, ax_body *body, ax_fn f, const ax_mesh *axes, const ax_type *types) {
  ax_status status = ax_body_trace(&(ax_body_options){.axes = axes, .function = f, .in = types}, body);
  if (status != AX_OK) ax_fail(ax_error_context(status, "%s: function: ", what));
  return status == AX_OK;
}

/* Those of the operands that derivatives are taken by. */
typedef struct chosen {
  uint32_t *operand; /* ascending */
  uint32_t count;
} chosen;

/* False: the trace has failed. */
static bool choose(const char *what, ax_args wrt, const ax_type *types, uint32_t in_count, chosen *out) {
  bool *mask = ax_trace_alloc(in_count);
  *out = (chosen){.operand = ax_trace_alloc(in_count * sizeof(uint32_t))};
  if (mask == NULL || out->operand == NULL) return false;
  ax_status status = ax_args_mask(wrt, "operand", in_count, mask);
  for (uint32_t i = 0; i < in_count && status == AX_OK; i++) {
    bool is_float = ax_is_float(types[i].dtype);
    if (mask[i] && !is_float && !ax_args_all(wrt))
      status = ax_error(AX_INVALID_ARGUMENT, "operand %u is %s: only floats have derivatives", i, ax_type_string(&types[i], axes_here()));
    if (mask[i] && is_float) out->operand[out->count++] = i;
  }
  if (status == AX_OK && out->count == 0) status = ax_error(AX_INVALID_ARGUMENT, "there is nothing to take derivatives by");
  if (status != AX_OK) ax_fail(ax_error_context(status, "%s: ", what));
  return status == AX_OK;
}

/* The same, of the inputs of f's program, where captured values come first. */
static ax_args inputs_of(const ax_body *f, const chosen *by) {
  uint32_t *list = ax_trace_alloc(by->count * sizeof list[0]);
  for (uint32_t k = 0; k < by->count && list != NULL; k++) list[k] = f->captured_count + by->operand[k];
  return (ax_args){.list = list, .count = list != NULL ? by->count : 0};
}

/* Calls the transformed program, which it consumes, on (captured.., in..); or fails the trace with `status`. */
static void call(const ax_body *f, ax_status status, ax_program *transformed, const ax_value *in, uint32_t in_count,
                 ax_value *out, uint32_t out_count) {
  if (status != AX_OK) ax_fail(status);
  size_t count = (size_t)f->captured_count + in_count;
  ax_value *operands = ax_trace_alloc(count * sizeof operands[0]);
  if (operands != NULL) {
    if (f->captured_count > 0) memcpy(operands, f->captured, f->captured_count * sizeof operands[0]);
    if (in_count > 0) memcpy(operands + f->captured_count, in, in_count * sizeof operands[0]);
    ax_call(transformed, operands, (uint32_t)count, out, out_count);
  }
  ax_program_release(transformed);
}

/* --- grad --- */

static void grad(const char *what, bool with_value, ax_fn function, ax_args wrt, const ax_value *in, ax_value *out) {
  const ax_type *types = ax_types_of(in, function.in_count);
  chosen by;
  ax_body f = {0};
  if (types == NULL || !choose(what, wrt, types, function.in_count, &by)) return;
  uint32_t out_count = by.count + (with_value ? function.out_count : 0);
  in = ax_take(in, function.in_count, out, out_count);
  if (trace(what, &f, function, axes_here(), types)) {
    ax_program *transformed = NULL;
    ax_args inputs = inputs_of(&f, &by);
    ax_status status = AX_OK;
    if (!ax_failed())
      status = with_value ? ax_program_value_and_grad(f.program, inputs, &transformed) : ax_program_grad(f.program, inputs, &transformed);
    call(&f, status, transformed, in, function.in_count, out, out_count);
  }
  ax_body_deinit(&f);
}

void ax_value_and_grad(ax_fn f, ax_args wrt, const ax_value *in, ax_value *out) { grad("value_and_grad", true, f, wrt, in, out); }

void ax_grad(ax_fn f, ax_args wrt, const ax_value *in, ax_value *out) { grad("grad", false, f, wrt, in, out); }

/* --- jvp --- */

/* The operands, and behind them the tangents of some, made as varying as these are. NULL: the trace has failed. */
static ax_value *with_tangents(const ax_value *in, uint32_t in_count, const ax_value *tangents, const ax_type *types, const chosen *by) {
  ax_value *operands = ax_trace_alloc(((size_t)in_count + by->count) * sizeof operands[0]);
  for (uint32_t i = 0; i < in_count && operands != NULL; i++) operands[i] = in[i];
  for (uint32_t k = 0; k < by->count && operands != NULL; k++) {
    const ax_type *type = &types[by->operand[k]];
    ax_value made = operands[in_count + k] = ax_vary_to(tangents[k], type->spread.varying);
    ax_type tangent = ax_typeof(made);
    if (ax_failed() || ax_type_equal(&tangent, type)) continue;
    ax_fail(ax_error(AX_INVALID_ARGUMENT, "jvp: operand %u is %s, but its tangent is %s", by->operand[k],
                     ax_type_string(type, axes_here()), ax_type_string(&tangent, axes_here())));
  }
  return ax_failed() ? NULL : operands;
}

/* Results that are no floats get zeros for tangents. */
static void spread_tangents(const ax_program *program, const ax_value *made, ax_value *out, ax_value *out_tangents) {
  if (ax_failed()) return;
  const ax_value *tangent = made + program->out_count;
  for (uint32_t i = 0; i < program->out_count; i++) {
    const ax_type *type = ax_program_out_type(program, i);
    out[i] = made[i];
    out_tangents[i] = ax_is_float(type->dtype) ? *tangent++ : ax_zeros_of(type);
  }
}

void ax_jvp(ax_fn function, ax_args wrt, const ax_value *in, const ax_value *tangents, ax_value *out, ax_value *out_tangents) {
  const ax_type *types = ax_types_of(in, function.in_count);
  chosen by;
  ax_body f = {0};
  if (types == NULL || !choose("jvp", wrt, types, function.in_count, &by)) return;
  ax_value *operands = with_tangents(in, function.in_count, tangents, types, &by);
  (void)ax_take(NULL, 0, out, function.out_count);
  (void)ax_take(NULL, 0, out_tangents, function.out_count);
  if (operands != NULL && trace("jvp", &f, function, axes_here(), types)) {
    ax_program *transformed = NULL;
    ax_args inputs = inputs_of(&f, &by);
    ax_status status = !ax_failed() ? ax_program_jvp(f.program, inputs, &transformed) : AX_OK;
    uint32_t made_count = transformed != NULL ? transformed->out_count : 0;
    ax_value *made = ax_trace_alloc(made_count * sizeof made[0]);
    call(&f, status, transformed, operands, function.in_count + by.count, made, made_count);
    spread_tangents(f.program, made, out, out_tangents);
  }
  ax_body_deinit(&f);
}

/* --- vmap --- */

/* The size of the mapped dimensions, which it removes from the types. */
static ax_status unbatch(ax_type *types, uint32_t count, const int *in_axes, int64_t *size) {
  *size = -1;
  for (uint32_t i = 0; i < count; i++) {
    ax_type *type = &types[i];
    int axis = in_axes != NULL ? in_axes[i] : 0;
    if (axis == -1) continue;
    if (axis < -1 || axis >= (int)type->rank)
      return ax_error(AX_INVALID_ARGUMENT, "vmap: in_axes[%u]=%d of %s is out of range", i, axis,
                      ax_type_string(type, axes_here()));
    if (*size < 0) *size = type->dims[axis];
    if (type->dims[axis] != *size)
      return ax_error(AX_INVALID_ARGUMENT, "vmap: in_axes[%u]=%d of %s has size %lld, but the size is %lld", i, axis,
                      ax_type_string(type, axes_here()), (long long)type->dims[axis], (long long)*size);
    type->rank--;
    memmove(type->dims + axis, type->dims + axis + 1, (type->rank - (uint32_t)axis) * sizeof type->dims[0]);
  }
  if (*size >= 0) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "vmap: at least one of in_axes must map an operand; none does");
}

static ax_status add_axis(ax_mesh *axes, const char *name, int64_t size) {
  if (name == NULL) return AX_OK;
  if (name[0] == '\0' || strlen(name) >= AX_MAX_NAME)
    return ax_error(AX_INVALID_ARGUMENT, "vmap: an axis name has 1 to %d bytes, not \"%s\"", AX_MAX_NAME - 1, name);
  if (ax_mesh_find(axes, name) >= 0)
    return ax_error(AX_INVALID_ARGUMENT, "vmap: there is an axis \"%s\" already", name);
  if (axes->count == AX_MAX_AXES) return ax_error(AX_INVALID_ARGUMENT, "vmap: more than %d axes", AX_MAX_AXES);
  if (size == 0) return ax_error(AX_INVALID_ARGUMENT, "vmap: axis \"%s\" would have size 0", name);
  ax_axis *axis = &axes->axis[axes->count++];
  *axis = (ax_axis){.size = size, .unchecked = true};
  snprintf(axis->name, sizeof axis->name, "%s", name);
  return AX_OK;
}

/* in_axes with the captured values, which are not mapped, in front. */
static int *all_in_axes(const ax_body *f, const int *in_axes, uint32_t in_count) {
  int *all = ax_trace_alloc(((size_t)f->captured_count + in_count) * sizeof all[0]);
  for (uint32_t i = 0; i < f->captured_count && all != NULL; i++) all[i] = -1;
  for (uint32_t i = 0; i < in_count && all != NULL; i++) all[f->captured_count + i] = in_axes != NULL ? in_axes[i] : 0;
  return all;
}

void ax_vmap(const ax_vmap_options *options, ax_fn function, const ax_value *in, ax_value *out) {
  const ax_vmap_options none = {0};
  uint32_t in_count = function.in_count, out_count = function.out_count;
  if (options == NULL) options = &none;
  in = ax_take(in, in_count, out, out_count);
  ax_type *types = ax_types_of(in, in_count);
  if (types == NULL) return;
  ax_mesh axes = *axes_here();
  int64_t size;
  ax_status status = unbatch(types, in_count, options->in_axes, &size);
  if (status == AX_OK) status = add_axis(&axes, options->axis_name, size);
  if (status != AX_OK) {
    ax_fail(status);
    return;
  }
  ax_body f = {0};
  if (trace("vmap", &f, function, &axes, types)) {
    ax_program *transformed = NULL;
    int *in_axes = all_in_axes(&f, options->in_axes, in_count);
    if (in_axes != NULL)
      status = ax_program_vmap(f.program, in_axes, options->out_axes, size, options->axis_name, &transformed);
    call(&f, status, transformed, in, in_count, out, out_count);
  }
  ax_body_deinit(&f);
}
