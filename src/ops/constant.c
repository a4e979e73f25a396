/* constant: -> T[d..]
   Parameters: value, a dense row-major array. Printed inline where it is used when it is a scalar.
   No operands: nothing to differentiate, batch or communicate; the same on all devices. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/hlo.h"
#include "hlo/read.h"
#include "ir/number.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "prim/bind.h"
#include "prim/prims.h"
#include "prim/rules.h"

static ax_status infer(const ax_infer_args *args) {
  const ax_literal *value = args->params;
  args->out[0] = ax_array_type(value->type.dtype, AX_LIST(value->type.rank, value->type.dims));
  return AX_OK;
}

static ax_status eval(const ax_eval_args *args) {
  const ax_literal *value = args->eqn->params;
  const size_t bytes = (size_t)ax_type_elems(&value->type) * ax_dtype_bytes(value->type.dtype);
  if (bytes > 0) memcpy(args->out[0]->data, value->data, bytes); /* else the data may be NULL */
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
  buffer->owner = value->owner;
  return AX_OK;
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  (void)in;
  const ax_literal *value = eqn->params;
  out[0] = ax_hlo_dense_borrowed(hlo, &value->type, value->data);
  return AX_OK;
}

static const ax_param params[] = {{"value", AX_PARAM_LITERAL, 0}};

static ax_status read(const ax_hlo_read_args *args) {
  const ax_hlo_attribute *value = ax_hlo_find(args->op, "value");
  if (value == NULL || value->kind != AX_HLO_ELEMENTS) return ax_error(AX_INVALID_ARGUMENT, "its value must be dense<..>");
  return ax_hlo_elements_value(value, &args->out[0]);
}

static const ax_hlo_reader readers[] = {{"stablehlo.constant", read}, {"sdy.constant", read}, {"chlo.constant", read}, {0}};

const ax_prim ax_prim_constant = {
    .name = "constant",
    .kind = AX_LOCAL,
    .in_count = 0,
    .out_count = 1,
    AX_PARAMS(params, ax_literal),
    .infer = infer,
    .spread = ax_spread_local,
    .eval = eval,
    .differs = ax_differs_union,
    .jvp = ax_jvp_zero,
    .linearize = ax_jvp_zero,
    .transpose = ax_absent_transpose,
    .batch = batch,
    .simplify = ax_simplify_nothing,
    .shard = ax_shard_whole,
    .lower = lower,
    .complex = ax_complex_whole,
    .keys = ax_keys_whole,
    .reads = readers, .hlo = hlo,
};

ax_value (ax_constant)(const ax_type *type, ax_dtype element, const void *data, size_t bytes) {
  if (type == NULL) return ax_reject(&ax_prim_constant, "there is no type");
  ax_literal value = {.type = ax_array_type(type->dtype, AX_LIST(type->rank, type->dims)), .data = (void *)data};
  if (value.type.dtype == AX_NO_DTYPE) return ax_reject(&ax_prim_constant, "not a type");
  if (data == NULL && ax_type_elems(type) > 0) return ax_reject(&ax_prim_constant, "there is no data");
  ax_status status = data != NULL ? ax_memory_check("constant", &value.type, element, bytes) : AX_OK;
  if (status != AX_OK) {
    ax_fail(status);
    return ax_poison;
  }
  return ax_bind1(&ax_prim_constant, &value, NULL, 0);
}

/* An array of one element, repeated; `element` as in memory. */
static ax_value repeated(ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_number number) {
  ax_element element = {0};
  ax_type scalar = ax_array_type(dtype, AX_DIMS());
  ax_number_store(dtype, &element, 0, number);
  ax_value made = ax_constant(&scalar, (void *)&element);
  return rank > 0 ? ax_broadcast_in_dim(made, AX_LIST(rank, dims), NULL) : made;
}

/* --- Numbers, and arrays filled with them --- */

/* The bits stand in place of a trace, the kind in place of an id, which no value has. */
static const uint32_t REAL = UINT32_MAX - 3, INTEGER = UINT32_MAX - 2, UNSIGNED = UINT32_MAX - 1; /* an enumerator is an int */

bool ax_is_number(ax_value value) { return value.id >= REAL && value.id <= UNSIGNED; }

ax_value ax_real(double number) {
  ax_value value = {.id = REAL};
  memcpy(&value.trace, &number, sizeof number);
  return value;
}

ax_value ax_integer(int64_t number) { return (ax_value){(uint64_t)number, INTEGER}; }

ax_value ax_unsigned(uint64_t number) {
  return number <= INT64_MAX ? ax_integer((int64_t)number) : (ax_value){number, UNSIGNED};
}

double ax_number_real(ax_value number) {
  double real;
  memcpy(&real, &number.trace, sizeof real);
  return number.id == REAL ? real : number.id == INTEGER ? (double)(int64_t)number.trace : (double)number.trace;
}

ax_value ax_number_times(const char *function, ax_value number, int64_t factor) {
  int64_t product;
  uint64_t larger;
  if (number.id == REAL) return ax_real(ax_number_real(number) * (double)factor);
  if (number.id == INTEGER && ax_mul_i64((int64_t)number.trace, factor, &product)) return ax_integer(product);
  bool negative = number.id == INTEGER && (int64_t)number.trace < 0;
  if (!negative && !__builtin_mul_overflow(number.trace, (uint64_t)factor, &larger)) return ax_unsigned(larger);
  return ax_reject_as(function, "%s%llu times %lld is beyond 64 bits", negative ? "-" : "",
                      (unsigned long long)(negative ? -number.trace : number.trace), (long long)factor);
}

/* Floats hold what they can round, and 0, which as a power of 2 is NaN; of integers the value must be one, and one that a double tells from its neighbours. */
static bool holds(ax_dtype dtype, ax_value number) {
  const ax_dtype_info *info = ax_dtype_get(dtype);
  double real = ax_number_real(number);
  if (info->kind == AX_KIND_KEY) return holds(AX_U32, number); /* each word */
  if (info->kind == AX_KIND_FLOAT || info->kind == AX_KIND_COMPLEX) return real == 0 || ax_number_holds(dtype, real);
  if (info->kind == AX_KIND_BOOL) return real == 0 || real == 1;
  bool is_signed = info->kind == AX_KIND_SIGNED;
  if (number.id == UNSIGNED) return dtype == AX_U64;
  double limit = ldexp(1, (int)info->bits - is_signed);
  if (number.id == REAL) return trunc(real) == real && fabs(real) < 0x1p53 && real < limit && real >= (is_signed ? -limit : 0);
  int64_t integer = (int64_t)number.trace;
  if (info->bytes == 8) return is_signed || integer >= 0;
  return integer < (int64_t)limit && integer >= (is_signed ? -(int64_t)limit : 0);
}

static ax_number element_of(ax_dtype dtype, ax_value number) {
  if (ax_is_key(dtype)) return (ax_number){.u = element_of(AX_U32, number).u * 0x100000001u};
  if (number.id == REAL) return ax_number_of(dtype, ax_number_real(number));
  return ax_number_convert(number.id == INTEGER ? AX_S64 : AX_U64, dtype,
                           number.id == INTEGER ? (ax_number){.i = (int64_t)number.trace} : (ax_number){.u = number.trace});
}

static ax_value refuse_number(const char *function, ax_dtype dtype, ax_value number) {
  double real = ax_number_real(number);
  if (number.id == REAL && !ax_rounds(dtype) && isfinite(real) && trunc(real) == real && fabs(real) >= 0x1p53)
    return ax_reject_as(function, "%.17g as %s: from 2^53 on a double is not every integer; ax_full_i64 takes them", real,
                        ax_dtype_name(dtype));
  if (number.id == INTEGER) return ax_reject_as(function, "%s cannot hold %lld", ax_dtype_name(dtype), (long long)number.trace);
  if (number.id == UNSIGNED)
    return ax_reject_as(function, "%s cannot hold %llu", ax_dtype_name(dtype), (unsigned long long)number.trace);
  char text[32];
  snprintf(text, sizeof text, "%.15g", real);
  if (strtod(text, NULL) != real) snprintf(text, sizeof text, "%.17g", real);
  return ax_reject_as(
      function, "%s cannot hold %s%s", ax_dtype_name(dtype), text,
      strcmp(function, "full") != 0 && strcmp(function, "full_like") != 0 ? ", a number among operands of that dtype" : "");
}

static ax_value filled(const char *function, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_value number) {
  if (ax_dtype_bytes(dtype) == 0) return repeated(dtype, rank, dims, (ax_number){0});
  return holds(dtype, number) ? repeated(dtype, rank, dims, element_of(dtype, number)) : refuse_number(function, dtype, number);
}

bool ax_number_bits(const char *function, ax_value number, ax_dtype dtype, int64_t *bits) {
  *bits = 0;
  if (!holds(dtype, number)) refuse_number(function, dtype, number);
  else ax_number_store(dtype, bits, 0, element_of(dtype, number));
  return !ax_failed();
}

ax_value ax_as(const char *function, ax_value value, ax_dtype dtype) {
  if (!ax_is_number(value)) return value;
  return ax_is_key(dtype) ? ax_reject_as(function, "a number stands among keys, and is none") : filled(function, dtype, 0, NULL, value);
}

ax_value (ax_full)(ax_dtype dtype, uint32_t rank, const int64_t *dims, double value) {
  return filled("full", dtype, rank, dims, ax_real(value));
}

ax_value (ax_full_i64)(ax_dtype dtype, uint32_t rank, const int64_t *dims, int64_t value) {
  return filled("full_i64", dtype, rank, dims, ax_integer(value));
}

ax_value ax_full_like(ax_value x, double value) {
  ax_type type = ax_typeof(x);
  return type.dtype != AX_NO_DTYPE ? filled("full_like", type.dtype, type.rank, type.dims, ax_real(value)) : ax_poison;
}
