/* Primitives that are one StableHLO op on the same operands, written and read by the form in their records; constants, and what they
   mean to readers of reductions. */
#include <string.h>

#include "hlo/hlo.h"
#include "hlo/read.h"
#include "ir/number.h"
#include "prim/prims.h"
#include "prim/rules.h"
#include "prim/shape.h"

static const ax_param *param_of(const ax_prim *prim, const char *name) {
  for (uint32_t i = 0; i < prim->param_count; i++)
    if (strcmp(prim->params[i].name, name) == 0) return &prim->params[i];
  assert(false && "a form names a parameter that the primitive has not");
  return NULL;
}

static void write_field(ax_text *text, const struct ax_hlo_field *field, const ax_param *param, const void *at) {
  ax_text_add(text, "%s%s = ", text->length > 0 ? ", " : "", field->attribute);
  if (param->kind == AX_PARAM_DIMS)
    ax_hlo_dims(text, "", at);
  else
    ax_text_add(text, "%lld : i64", *(const long long *)at);
}

ax_status ax_hlo_by_form(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_hlo_form *form = eqn->prim->form;
  ax_text attributes = {0};
  if (form->fields[0].param == NULL) return ax_hlo_simple(hlo, eqn, form->op, in, form->attributes, out);
  for (uint32_t i = 0; i < AX_COUNT(form->fields) && form->fields[i].param != NULL; i++) {
    const ax_param *param = param_of(eqn->prim, form->fields[i].param);
    if (form->fields[i].attribute != NULL) write_field(&attributes, &form->fields[i], param, ax_param_at(eqn, param));
  }
  return ax_hlo_attributed(hlo, eqn, form->op, in, &attributes, out);
}

static ax_status read_field(const ax_hlo_read_args *args, const struct ax_hlo_field *field, const ax_param *param, void *at) {
  const ax_type *type = &args->out_types[0];
  if (field->attribute != NULL)
    return param->kind == AX_PARAM_DIMS ? ax_hlo_integers(args->op, field->attribute, at)
                                        : ax_hlo_integer(args->op, field->attribute, at);
  if (param->kind == AX_PARAM_DTYPE) {
    memcpy(at, &type->dtype, sizeof type->dtype);
    return AX_OK;
  }
  ax_dims *dims = at;
  AX_TRY(ax_hlo_want_shape(args, 0));
  dims->count = type->rank;
  memcpy(dims->v, type->dims, type->rank * sizeof dims->v[0]);
  return AX_OK;
}

ax_status ax_hlo_read_by_form(const ax_hlo_read_args *args) {
  const ax_prim *prim = args->prim;
  const ax_hlo_form *form = prim->form;
  const ax_hlo_operation *op = args->op;
  void *params = prim->params_bytes > 0 ? ax_trace_alloc(prim->params_bytes) : NULL;
  if (prim->params_bytes > 0 && params == NULL) return AX_OK; /* the trace has failed */
  if (params != NULL) memset(params, 0, prim->params_bytes);
  for (uint32_t i = 0; i < AX_COUNT(form->fields) && form->fields[i].param != NULL; i++) {
    const ax_param *param = param_of(prim, form->fields[i].param);
    AX_TRY(read_field(args, &form->fields[i], param, (char *)params + param->offset));
  }
  if (prim->in_count >= 0 && op->operand_count != (uint32_t)prim->in_count)
    return ax_error(AX_INVALID_ARGUMENT, "it takes %d operands, and here are %u", prim->in_count, op->operand_count);
  ax_bind(prim, params, args->in, op->operand_count, args->out, op->result_count);
  return AX_OK;
}

ax_status ax_hlo_elements_value(const ax_hlo_attribute *elements, ax_value *out) {
  ax_type type;
  AX_TRY(ax_hlo_array_type(elements->type, &type));
  const ax_type scalar = ax_array_type(type.dtype, AX_DIMS());
  const ax_literal literal = {elements->splat ? scalar : type, (void *)(uintptr_t)elements->data, elements->owner};
  *out = ax_bind1(&ax_prim_constant, &literal, NULL, 0);
  if (elements->splat) *out = ax_broadcast_in_dim(*out, AX_LIST(type.rank, type.dims), AX_DIMS());
  return AX_OK;
}

bool ax_hlo_starts_neutral(const ax_hlo_read_args *args, ax_scalar op) {
  const ax_hlo_attribute *start = args->op->operand_count == 2 ? ax_hlo_constant_operand(args, 1) : NULL;
  const ax_dtype dtype = ax_typeof(args->in[0]).dtype;
  if (start == NULL || start->type->dtype != dtype || ax_is_complex(dtype)) return false;
  const ax_number has = ax_number_load(dtype, start->data, 0), neutral = ax_reduce_identity(op, dtype);
  return ax_is_float(dtype) ? has.f == neutral.f : has.u == neutral.u;
}
