/* The types of an equation's results. The rules that hold for every primitive are checked here; the primitive's own rules `infer`
   and `spread` check the rest. */
#include <string.h>

#include "ir/prim.h"
#include "ir/program.h"

uint32_t ax_prim_outs(const ax_prim *prim, const void *params, uint32_t in_count) {
  if (prim->out_count == AX_AS_OPERANDS) return in_count;
  return prim->out_count >= 0 ? (uint32_t)prim->out_count : prim->count_outs(params);
}

static ax_status check_sizes(const ax_infer_args *args) {
  for (uint32_t i = 0; i < args->out_count; i++) {
    int64_t bytes = (int64_t)ax_dtype_bytes(args->out[i].dtype);
    for (uint32_t d = 0; d < args->out[i].rank; d++)
      if (args->out[i].dims[d] > 0 && !ax_mul_i64(bytes, args->out[i].dims[d], &bytes))
        return ax_error(AX_INVALID_ARGUMENT, "the result %s is too large", ax_type_string(&args->out[i], args->axes));
  }
  return AX_OK;
}

static ax_status check_forms(const ax_infer_args *args) {
  for (uint32_t i = 0; i < args->in_count; i++) {
    ax_form form = args->in[i].form;
    if (form == args->prim->operands || (form == AX_TOKEN && args->prim->tokens) || (ax_is_memory(form) && args->prim->memory))
      continue;
    return ax_error(AX_INVALID_ARGUMENT, "operand %u is %s, %s", i, ax_type_string(&args->in[i], args->axes),
                    form == AX_FUTURE                      ? ax_form_advice(&args->in[i])
                    : args->prim->operands == AX_FUTURE ? "no future"
                    : args->prim->operands == AX_TOKEN  ? "no token"
                                                           : ax_form_advice(&args->in[i]));
  }
  return AX_OK;
}

static ax_status check_groups(const ax_infer_args *args) {
  for (uint32_t p = 0; p < args->prim->param_count && args->prim->ungroup == NULL; p++) {
    const ax_param *param = &args->prim->params[p];
    const ax_axes *axes = (const void *)((const char *)args->params + param->offset);
    if (param->kind == AX_PARAM_AXES && axes->groups.count > 0)
      return ax_error(AX_INVALID_ARGUMENT, "it takes no groups: it is over all members along its axes");
  }
  return AX_OK;
}

/* Complex numbers come to primitives that say how they are lowered. */
static ax_status check_complex(const ax_infer_args *args, const ax_type *types, uint32_t count, const char *what) {
  if (args->prim->complex != NULL) return AX_OK;
  for (uint32_t i = 0; i < count; i++)
    if (ax_is_complex(types[i].dtype))
      return ax_error(AX_INVALID_ARGUMENT, "%s %u is %s, and %s takes no complex numbers", what, i,
                      ax_type_string(&types[i], args->axes), args->prim->name);
  return AX_OK;
}

/* Keys come to primitives that say that they only move elements. */
static ax_status check_keys(const ax_infer_args *args, const ax_type *types, uint32_t count, const char *what) {
  if (args->prim->keys != NULL) return AX_OK;
  for (uint32_t i = 0; i < count; i++)
    if (ax_is_key(types[i].dtype))
      return ax_error(AX_INVALID_ARGUMENT, "%s %u is %s, and %s takes no keys: they have no arithmetic, no order and no other dtype. "
                      "ax_random_key_data gives their words", what, i, ax_type_string(&types[i], args->axes), args->prim->name);
  return AX_OK;
}

static ax_status infer_inner(const ax_infer_args *args) {
  const ax_prim *prim = args->prim;
  if (prim->in_count >= 0 && args->in_count != (uint32_t)prim->in_count)
    return ax_error(AX_INVALID_ARGUMENT, "takes %d operands, got %u", prim->in_count, args->in_count);
  AX_TRY(check_forms(args));
  AX_TRY(check_groups(args));
  AX_TRY(check_complex(args, args->in, args->in_count, "operand"));
  AX_TRY(check_keys(args, args->in, args->in_count, "operand"));
  AX_TRY(prim->infer(args));
  AX_TRY(check_complex(args, args->out, args->out_count, "result"));
  AX_TRY(check_keys(args, args->out, args->out_count, "result"));
  AX_TRY(prim->spread(args));
  return check_sizes(args);
}

/* "mul f32[3] f32[4]: " before the message. */
static ax_status name_equation(ax_status status, const ax_infer_args *args) {
  ax_text text = {0};
  for (uint32_t i = 0; i < args->in_count && i < 8; i++) {
    ax_text_add(&text, " ");
    ax_type_text(&text, &args->in[i], args->axes);
  }
  if (args->in_count > 8) ax_text_add(&text, " ...");
  status = ax_error_context(status, "%s%s: ", args->prim->name, text.data != NULL && !text.failed ? text.data : "");
  ax_text_deinit(&text);
  return status;
}

ax_status ax_infer_types(const ax_prim *prim, const ax_mesh *axes, const void *params, const ax_type *in,
                         uint32_t in_count, ax_type *out, uint32_t out_count) {
  ax_infer_args args = {prim, axes, params, in, in_count, out_count, out};
  if (out_count > 0) memset(out, 0, out_count * sizeof out[0]);
  ax_status status = infer_inner(&args);
  return status == AX_OK || status == AX_OUT_OF_MEMORY ? status : name_equation(status, &args);
}
