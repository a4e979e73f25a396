/* constant: -> T[d..]
   Parameters: value, a dense row-major array. Printed inline where it is used when it is a scalar.
   No operands: nothing to differentiate, batch or communicate; the same on all devices. */
#include <string.h>

#include "ir/number.h"
#include "prim/prims.h"
#include "prim/rules.h"

static ax_status infer(const ax_infer_args *args) {
  const ax_literal *value = args->params;
  args->out[0] = ax_array_type(value->type.dtype, value->type.rank, value->type.dims);
  return AX_OK;
}

static ax_status eval(const ax_eval_args *args) {
  const ax_literal *value = args->eqn->params;
  memcpy(args->out[0]->data, value->data, (size_t)ax_type_elems(&value->type) * ax_dtype_bytes(value->type.dtype));
  return AX_OK;
}

static void batch(const ax_batch_args *args) {
  args->out[0] = ax_bind1(&ax_prim_constant, args->eqn->params, NULL, 0);
  args->out_dim[0] = -1;
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  (void)in;
  const ax_literal *value = eqn->params;
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  ax_buffer *buffer = &lower->plan->buffers[out[0]];
  buffer->kind = AX_BUFFER_CONST;
  buffer->data = value->data;
  return AX_OK;
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  (void)in;
  const ax_literal *value = eqn->params;
  out[0] = ax_hlo_dense(hlo, &value->type, value->data);
  return AX_OK;
}

static const ax_param params[] = {{"value", AX_PARAM_LITERAL, 0}};

const ax_prim ax_prim_constant = {
    .name = "constant", .kind = AX_LOCAL, .in_count = 0, .out_count = 1,
    .params = params, .param_count = AX_COUNT(params), .params_bytes = sizeof(ax_literal),
    .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = ax_jvp_zero, .linearize = ax_jvp_zero,
    .transpose = ax_absent_transpose, .batch = batch, .lower = lower, .hlo = hlo,
};

ax_value ax_constant(const ax_type *type, const void *data) {
  if (type == NULL || data == NULL) return ax_reject(&ax_prim_constant, "there is no %s", type == NULL ? "type" : "data");
  ax_literal value = {.type = ax_array_type(type->dtype, type->rank, type->dims), .data = (void *)data};
  if (value.type.dtype == AX_NO_DTYPE) return ax_reject(&ax_prim_constant, "not a type");
  return ax_bind1(&ax_prim_constant, &value, NULL, 0);
}

ax_value ax_full(ax_dtype dtype, uint32_t rank, const int64_t *dims, double value) {
  uint64_t element = 0;
  ax_type scalar = ax_array_type(dtype, 0, NULL);
  ax_number_store(dtype, &element, 0, ax_number_of(dtype, value));
  ax_value made = ax_constant(&scalar, &element);
  return rank > 0 ? ax_broadcast_in_dim(made, rank, dims, NULL) : made;
}

ax_value ax_full_like(ax_value x, double value) {
  ax_type type = ax_typeof(x);
  return type.dtype != AX_NO_DTYPE ? ax_full(type.dtype, type.rank, type.dims, value) : ax_poison;
}
