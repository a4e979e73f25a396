/* vmap of a function inside a trace: the function is traced without its mapped dimensions, batched, and called. */
#include <stdio.h>
#include <string.h>

#include "xform/in_trace.h"

/* The size of the mapped dimensions, which it removes from the types. */
static ax_status unbatch(ax_type *types, uint32_t count, const ax_dim_list *in_axes, int64_t given, int64_t *size) {
  *size = given != 0 ? given : -1;
  uint32_t first = 0; /* the operand whose size it is */
  if (given < 0) return ax_error(AX_INVALID_ARGUMENT, "vmap: the size is %lld", (long long)given);
  for (uint32_t i = 0; i < count; i++) {
    ax_type *type = &types[i];
    const int64_t asked = ax_option_at(in_axes, i, 0);
    int axis;
    if (!ax_mapped_dim(asked, type->rank, &axis))
      return ax_error(AX_INVALID_ARGUMENT, "vmap: in_axes[%u]=%lld of %s is out of range", i, (long long)asked,
                      ax_type_string(type, ax_axes_here()));
    if (axis < 0) continue;
    if (*size < 0) {
      *size = type->dims[axis];
      first = i;
    }
    if (type->dims[axis] != *size)
      return given != 0
                 ? ax_error(AX_INVALID_ARGUMENT, "vmap: in_axes[%u]=%d of %s has size %lld, but the size is %lld", i, axis,
                            ax_type_string(type, ax_axes_here()), (long long)type->dims[axis], (long long)*size)
                 : ax_error(AX_INVALID_ARGUMENT, "vmap: in_axes[%u]=%d of %s has size %lld, but the size is %lld, operand %u's", i,
                            axis, ax_type_string(type, ax_axes_here()), (long long)type->dims[axis], (long long)*size, first);
    type->rank--;
    memmove(type->dims + axis, type->dims + axis + 1, (type->rank - (uint32_t)axis) * sizeof type->dims[0]);
  }
  if (*size >= 0) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "vmap: in_axes maps no operand, and options.size does not say how many there are");
}

static ax_status add_axis(ax_mesh *axes, const char *name, int64_t size) {
  if (name == NULL) return AX_OK;
  if (name[0] == '\0' || strlen(name) >= AX_MAX_NAME)
    return ax_error(AX_INVALID_ARGUMENT, "vmap: an axis name has 1 to %d bytes, not \"%s\"", AX_MAX_NAME - 1, name);
  if (ax_mesh_find(axes, name) >= 0) return ax_error(AX_INVALID_ARGUMENT, "vmap: there is an axis \"%s\" already", name);
  if (axes->count == AX_MAX_AXES) return ax_error(AX_INVALID_ARGUMENT, "vmap: more than %d axes", AX_MAX_AXES);
  if (size == 0) return ax_error(AX_INVALID_ARGUMENT, "vmap: axis \"%s\" would have size 0", name);
  ax_axis *axis = &axes->axis[axes->count++];
  *axis = (ax_axis){.size = size, .unchecked = true};
  snprintf(axis->name, sizeof axis->name, "%s", name);
  return AX_OK;
}

/* in_axes with the captured values, which are not mapped, in front. */
static ax_dim_list all_in_axes(const ax_body *f, const ax_dim_list *in_axes, uint32_t in_count) {
  int64_t *all = ax_trace_alloc(((size_t)f->captured_count + in_count) * sizeof all[0]);
  for (uint32_t i = 0; i < f->captured_count && all != NULL; i++) all[i] = AX_NOT_MAPPED;
  for (uint32_t i = 0; i < in_count && all != NULL; i++) all[f->captured_count + i] = ax_option_at(in_axes, i, 0);
  return (ax_dim_list){f->captured_count + in_count, all};
}

/* False: the trace has failed. */
static bool check_axes(const ax_vmap_options *options, ax_fn function) {
  return ax_option_fits("vmap", "in_axes", options->in_axes.count, options->in_axes.v, function.in_count, "operand") &&
         ax_option_fits("vmap", "out_axes", options->out_axes.count, options->out_axes.v, function.out_count, "result");
}

void (ax_vmap)(ax_fn function, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out,
               const ax_vmap_options *options) {
  const ax_vmap_options none = {0};
  ax_traced f;
  if (!ax_lists_fit("vmap", in_count, function.in_count, out_count, function.out_count, out)) return;
  if (options == NULL) options = &none;
  if (!check_axes(options, function)) {
    ax_poison_list(out_count, function.out_count, out);
    return;
  }
  if (ax_traced_init(&f, "vmap", function, in, out, function.out_count)) {
    ax_mesh axes = *ax_axes_here();
    int64_t size;
    ax_status status = unbatch(f.types, function.in_count, &options->in_axes, options->size, &size);
    if (status == AX_OK) status = add_axis(&axes, options->axis_name, size);
    if (status != AX_OK) ax_fail(status);
    if (ax_traced_trace(&f, &axes)) {
      ax_program *transformed = NULL;
      ax_vmap_options all = *options;
      all.in_axes = all_in_axes(&f.body, &options->in_axes, function.in_count);
      all.size = size;
      if (all.in_axes.v != NULL) status = ax_program_vmap(f.body.program, &all, &transformed);
      ax_traced_call(&f, status, transformed, NULL, 0, out, function.out_count);
    }
  }
  ax_traced_deinit(&f);
}

void ax_call_vmapped(const ax_value *in, ax_value *out, void *vmapped) {
  const ax_vmapped *v = vmapped;
  (ax_vmap)(v->body, v->body.in_count, in, v->body.out_count, out, v->options);
  if (v->call != NULL) ax_stamp(v->call);
}
