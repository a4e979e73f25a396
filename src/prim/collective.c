#include "prim/collective.h"

#include <string.h>

#include "prim/prims.h"

ax_status ax_collective_axes(const ax_infer_args *args, const ax_axes *names, ax_axis_set *set, int64_t *size) {
  AX_TRY(ax_axes_resolve(names, args->axes, set));
  *size = ax_axis_set_size(*set, args->axes);
  return AX_OK;
}

ax_status ax_require_varying(const ax_type *operand, ax_axis_set set, const ax_mesh *axes) {
  ax_axis_set missing = set & ax_checked_axes(axes) & ~operand->varying;
  if (missing == 0) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "the operand %s is invariant over %s; pvary makes it varying",
                  ax_type_string(operand, axes), ax_axis_set_string(missing, axes));
}

bool ax_collective_operand(const ax_prim *prim, ax_value *x, const char *axes, ax_axes *out) {
  if (ax_failed()) return false;
  ax_axis_set set;
  ax_status status = ax_axes_parse(axes, out);
  if (status == AX_OK) status = ax_axes_resolve(out, &ax_builder_current()->axes, &set);
  if (status != AX_OK) {
    ax_fail(ax_error_context(status, "%s: ", prim->name));
    return false;
  }
  *x = ax_vary_to(*x, set);
  return !ax_failed();
}

bool ax_axes_without(const ax_axes *names, const char *axis, ax_axes *out) {
  *out = (ax_axes){0};
  for (uint32_t i = 0; axis != NULL && i < names->count; i++)
    if (strcmp(names->name[i], axis) != 0) memcpy(out->name[out->count++], names->name[i], AX_MAX_NAME);
  if (axis == NULL) *out = *names;
  return out->count < names->count;
}

void ax_exchange_whole(ax_exchange *exchange, int64_t elems) {
  exchange->rank = 1;
  exchange->dims[0] = elems;
  exchange->src_stride[0] = exchange->dst_stride[0] = 1;
}

ax_status ax_lower_exchange(ax_lower *lower, const ax_exchange *exchange) {
  uint32_t id;
  AX_TRY(ax_lower_start(lower, exchange, &id));
  return ax_lower_done(lower, id);
}

static ax_axis_set named_axes(const ax_vary_args *args) {
  ax_axis_set set = 0;
  ax_status status = ax_axes_resolve(args->eqn->params, args->axes, &set);
  assert(status == AX_OK); /* infer has resolved them */
  (void)status;
  return set;
}

void ax_vary_drop(const ax_vary_args *args) {
  for (uint32_t i = 0; i < args->eqn->out_count; i++) args->out[i] = args->in[i] & ~named_axes(args);
}

void ax_vary_add(const ax_vary_args *args) {
  for (uint32_t i = 0; i < args->eqn->out_count; i++) args->out[i] = args->in[i] | named_axes(args);
}
