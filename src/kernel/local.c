/* Steps of a kernel's core: the rules that they have in common, all of which say that the kernel around answers, and checks of
   operands. */
#include "kernel/local.h"

#include <string.h>

/* --- Rules --- */

ax_status ax_step_spread(const ax_infer_args *args) {
  for (uint32_t i = 0; i < args->in_count; i++) {
    const ax_spread *on = &args->in[i].spread;
    if ((on->varying | on->reduced | on->unreduced) != 0)
      return ax_error(AX_INVALID_ARGUMENT,
                      "operand %u is %s, but it stands in kernels, where nothing is typed to spread over devices", i,
                      ax_type_string(&args->in[i], args->axes));
  }
  return AX_OK;
}

static ax_status outside(ax_status status, const ax_prim *prim) {
  return ax_error(status, "%s stands outside of a kernel: the body of a kernel_call alone has such steps", prim->name);
}

ax_status ax_step_eval(const ax_eval_args *args) { return outside(AX_INVALID_ARGUMENT, args->eqn->prim); }

void ax_step_jvp(const ax_jvp_args *args) { ax_fail(outside(AX_ABSENT, args->eqn->prim)); }

void ax_step_transpose(const ax_transpose_args *args) { ax_fail(outside(AX_ABSENT, args->eqn->prim)); }

void ax_step_batch(const ax_batch_args *args) { ax_fail(outside(AX_ABSENT, args->eqn->prim)); }

ax_status ax_step_lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  (void)lower, (void)in, (void)out;
  return outside(AX_ABSENT, eqn->prim);
}

/* --- infer --- */

ax_status ax_step_count(const ax_infer_args *args, uint32_t from, uint32_t to) {
  if (args->in_count >= from && args->in_count <= to) return AX_OK;
  if (from == to) return ax_error(AX_INVALID_ARGUMENT, "takes %u operands, got %u", from, args->in_count);
  return ax_error(AX_INVALID_ARGUMENT, "takes %u to %u operands, got %u", from, to, args->in_count);
}

static ax_status wrong(const ax_infer_args *args, uint32_t i, const char *needed) {
  return ax_error(AX_INVALID_ARGUMENT, "operand %u is %s, where %s is needed", i, ax_type_string(&args->in[i], args->axes), needed);
}

ax_status ax_step_memory(const ax_infer_args *args, uint32_t i) {
  return ax_is_memory(args->in[i].form) ? AX_OK : wrong(args, i, "a ref, a semaphore or a barrier");
}

ax_status ax_step_ref(const ax_infer_args *args, uint32_t i) {
  return args->in[i].form == AX_REF ? AX_OK : wrong(args, i, "a ref");
}

ax_status ax_step_one(const ax_infer_args *args, uint32_t i, ax_form form) {
  const char *one = form == AX_SEMAPHORE ? "a semaphore" : form == AX_BARRIER ? "a barrier" : "a DMA semaphore";
  const ax_type *type = &args->in[i];
  if (type->form == AX_DMA_SEMAPHORE && form == AX_SEMAPHORE)
    return wrong(args, i, "a semaphore that cores signal; copies signal this one, and copy_wait waits for it: a semaphore");
  if (type->form == AX_SEMAPHORE && form == AX_DMA_SEMAPHORE)
    return wrong(args, i, "a semaphore that copies signal; cores signal this one: a DMA semaphore");
  if (type->form != form) return wrong(args, i, one);
  if (type->rank == 0) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "operand %u is %s, where one of them is needed; take ax_ref_at of it", i,
                  ax_type_string(type, args->axes));
}

ax_status ax_step_scalar(const ax_infer_args *args, uint32_t i, ax_dtype dtype, const char *what) {
  const ax_type *type = &args->in[i];
  if (type->form == AX_ARRAY && type->dtype == dtype && type->rank == 0) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%s is %s, not %s[]", what, ax_type_string(type, args->axes), ax_dtype_name(dtype));
}

ax_status ax_step_array(const ax_infer_args *args, uint32_t i, ax_dtype dtype, const ax_type *like, const char *what) {
  const ax_type *type = &args->in[i];
  if (type->form == AX_ARRAY && type->dtype == dtype && ax_same_shape(type, like)) return AX_OK;
  ax_type wanted = ax_array_type(dtype, AX_LIST(like->rank, like->dims));
  return ax_error(AX_INVALID_ARGUMENT, "%s is %s, not %s, for %s", what, ax_type_string(type, args->axes),
                  ax_type_string(&wanted, NULL), ax_type_string(like, args->axes));
}

ax_status ax_step_core(const ax_infer_args *args, const ax_core_params *to, uint32_t first) {
  ax_axis_set set;
  AX_TRY(ax_axes_resolve(&to->axes, args->axes, &set));
  if (to->logical && to->axes.count > 0)
    return ax_error(AX_INVALID_ARGUMENT, "a device's number goes with no axes: it is along all of them");
  for (uint32_t i = 0; i < ax_core_operands(to); i++)
    AX_TRY(ax_step_scalar(args, first + i, AX_S32, to->logical ? "the device's number" : "a coordinate"));
  return AX_OK;
}

/* --- The functions --- */

ax_type ax_memory_type(const char *function, ax_value memory) {
  ax_type type = {0};
  if (ax_failed()) return type;
  if (ax_is_number(memory)) {
    ax_reject_as(function, "a number is no ref");
    return type;
  }
  if (!ax_check_operands(function, &memory, 1)) return type;
  type = ax_typeof(memory);
  if (ax_failed() || ax_is_memory(type.form)) return type;
  ax_reject_as(function, "%s is an array, and no ref", ax_type_string(&type, &ax_builder_current()->axes));
  return (ax_type){0};
}

bool ax_take_core(const char *function, const ax_target_core *to, ax_core_params *out, ax_value *in, uint32_t *count) {
  *out = (ax_core_params){0};
  if (ax_failed()) return false;
  if (to == NULL || (to->axes == NULL && !to->logical)) return true;
  if (to->axes != NULL && to->logical) {
    ax_reject_as(function, "a core is named by axes and coordinates or by the number of its device, not by both");
    return false;
  }
  out->logical = to->logical;
  if (to->logical) {
    in[(*count)++] = ax_as(function, to->device, AX_S32);
    return !ax_failed();
  }
  ax_status status = ax_axes_parse(to->axes, NULL, &out->axes);
  if (status != AX_OK) {
    ax_fail(ax_error_context(status, "%s: ", function));
    return false;
  }
  if (to->coordinates.count != out->axes.count || (out->axes.count > 0 && to->coordinates.v == NULL)) {
    const uint32_t count = to->coordinates.v != NULL ? to->coordinates.count : 0;
    ax_reject_as(function, "axes \"%s\" take %u coordinate%s, but there %s %u", to->axes, out->axes.count,
                 out->axes.count == 1 ? "" : "s", count == 1 ? "is" : "are", count);
    return false;
  }
  for (uint32_t i = 0; i < out->axes.count; i++) in[(*count)++] = ax_as(function, to->coordinates.v[i], AX_S32);
  return !ax_failed();
}

ax_value ax_of_shape(const char *function, ax_value value, const ax_type *ref) {
  if (ax_failed()) return ax_poison;
  value = ax_as(function, value, ref->dtype);
  if (ax_failed() || !ax_check_operands(function, &value, 1)) return ax_poison;
  ax_type type = ax_typeof(value);
  if (ax_failed() || type.form != AX_ARRAY || type.rank != 0 || ref->rank == 0) return value;
  return ax_broadcast_in_dim(value, AX_LIST(ref->rank, ref->dims), NULL);
}

void ax_step_bind(const ax_prim *prim, const void *params, const ax_value *in, uint32_t count) {
  ax_bind(prim, params, in, count, NULL, 0);
}
