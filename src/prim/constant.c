/* constant: -> T[d..]
   Parameters: value, a dense row-major array. Printed inline where it is used when it is a scalar.
   No operands: nothing to differentiate, batch or communicate; the same on all devices. */
#include <math.h>
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
    .transpose = ax_absent_transpose, .batch = batch,
    .simplify = ax_simplify_nothing, .shard = ax_absent_shard, .lower = lower, .hlo = hlo,
};

ax_value ax_constant(const ax_type *type, const void *data) {
  if (type == NULL) return ax_reject(&ax_prim_constant, "there is no type");
  ax_literal value = {.type = ax_array_type(type->dtype, type->rank, type->dims), .data = (void *)data};
  if (value.type.dtype == AX_NO_DTYPE) return ax_reject(&ax_prim_constant, "not a type");
  if (data == NULL && ax_type_elems(type) > 0) return ax_reject(&ax_prim_constant, "there is no data");
  return ax_bind1(&ax_prim_constant, &value, NULL, 0);
}

/* An array of one element, repeated; `element` as in memory. */
static ax_value repeated(ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_number number) {
  uint64_t element = 0;
  ax_type scalar = ax_array_type(dtype, 0, NULL);
  ax_number_store(dtype, &element, 0, number);
  ax_value made = ax_constant(&scalar, &element);
  return rank > 0 ? ax_broadcast_in_dim(made, rank, dims, NULL) : made;
}

/* Floats hold what they can round; of integers the value must be one, and one that a double tells from its neighbours. */
static bool holds(ax_dtype dtype, double value) {
  const ax_dtype_info *info = ax_dtype_get(dtype);
  if (info->kind == AX_KIND_FLOAT) return !isfinite(value) || isfinite(ax_number_round(dtype, (ax_number){.f = value}).f);
  if (info->kind == AX_KIND_BOOL) return value == 0 || value == 1;
  bool is_signed = info->kind == AX_KIND_SIGNED;
  double limit = ldexp(1, (int)info->bytes * 8 - is_signed);
  return trunc(value) == value && fabs(value) < 0x1p53 && value < limit && value >= (is_signed ? -limit : 0);
}

ax_value ax_full(ax_dtype dtype, uint32_t rank, const int64_t *dims, double value) {
  if (ax_dtype_bytes(dtype) == 0 || holds(dtype, value)) return repeated(dtype, rank, dims, ax_number_of(dtype, value));
  if (!ax_is_float(dtype) && isfinite(value) && trunc(value) == value && fabs(value) >= 0x1p53)
    return ax_reject(&ax_prim_constant, "%.17g as %s: from 2^53 on a double is not every integer; ax_full_i64 takes them", value,
                     ax_dtype_name(dtype));
  return ax_reject(&ax_prim_constant, "%s cannot hold %.17g", ax_dtype_name(dtype), value);
}

ax_value ax_full_i64(ax_dtype dtype, uint32_t rank, const int64_t *dims, int64_t value) {
  const ax_dtype_info *info = ax_dtype_get(dtype);
  int bits = (int)info->bytes * 8;
  bool fits = true;
  if (info->kind == AX_KIND_SIGNED) fits = bits == 64 || (value >= -((int64_t)1 << (bits - 1)) && value < (int64_t)1 << (bits - 1));
  if (info->kind == AX_KIND_UNSIGNED) fits = value >= 0 && (bits == 64 || value < (int64_t)1 << bits);
  if (info->kind == AX_KIND_BOOL) fits = value == 0 || value == 1;
  ax_number number = ax_number_convert(AX_S64, dtype, (ax_number){.i = value});
  if (info->kind == AX_KIND_FLOAT) fits = isfinite(ax_number_round(dtype, number).f);
  if (info->bytes == 0 || fits) return repeated(dtype, rank, dims, number);
  return ax_reject(&ax_prim_constant, "%s cannot hold %lld", ax_dtype_name(dtype), (long long)value);
}

ax_value ax_full_like(ax_value x, double value) {
  ax_type type = ax_typeof(x);
  return type.dtype != AX_NO_DTYPE ? ax_full(type.dtype, type.rank, type.dims, value) : ax_poison;
}
