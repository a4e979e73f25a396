/* Quantized values: in a trace they are the integers that are stored, and what these stand for is in the module's types.

     %2 = stablehlo.add %0, %1 : !quant..     a = dequantized %0, b = dequantized %1, c = add a b, %2 = quantized c
     %3 = stablehlo.reshape %2                reshape of what is stored: operations that only move elements

   As StableHLO's reference interpreter does: x = (stored - zero) * scale; stored = round(clamp(x / scale + zero)), half to even; from
   one quantization to another by one product and one sum. In f32, or f64 if that is expressed. */
#include "bridge/quantized.h"

#include <math.h>
#include <string.h>

#include "axle/ops.h"
#include "bridge/import.h"
#include "ir/dtype.h"
#include "ir/number.h"
#include "prim/bind.h"
#include "prim/prims.h"

/* --- Arithmetic --- */

static ax_dtype wide_of(const ax_hlo_quantized *q) { return q->expressed == AX_F64 ? AX_F64 : AX_F32; }

static ax_status check_axis(const ax_hlo_quantized *q, const ax_type *type) {
  if (q->axis < 0 || (q->axis < type->rank && type->dims[q->axis] == q->count)) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "there are %u scales along dimension %lld of %s", q->count, (long long)q->axis,
                  ax_type_string(type, NULL));
}

/* Numbers, one for all or one for each index of the axis, as an array of the shape. */
static ax_value spread_numbers(const ax_hlo_quantized *q, const double *numbers, ax_dtype dtype, const ax_type *shape) {
  const ax_type type = {.form = AX_ARRAY, .dtype = dtype, .rank = q->axis >= 0, .dims = {q->count}};
  void *data = ax_trace_alloc(q->count * ax_dtype_bytes(dtype));
  const bool of_integers = !ax_is_float(dtype);
  if (data == NULL) return ax_poison;
  for (uint32_t i = 0; i < q->count; i++) {
    const ax_number number = of_integers ? (ax_number){.i = (int64_t)numbers[i]} : (ax_number){.f = numbers[i]};
    ax_number_store(dtype, data, i, number);
  }
  const ax_value made = ax_bind1(&ax_prim_constant, &(ax_literal){.type = type, .data = data}, NULL, 0);
  return (ax_broadcast_in_dim)(made, AX_LIST(shape->rank, shape->dims), AX_LIST(q->axis >= 0, &q->axis));
}

static double *zeros_of(const ax_hlo_quantized *q) {
  double *zeros = ax_trace_alloc(q->count * sizeof zeros[0]);
  for (uint32_t i = 0; zeros != NULL && i < q->count; i++) zeros[i] = (double)q->zeros[i];
  return zeros;
}

static ax_status dequantize(ax_value x, const ax_hlo_quantized *q, ax_value *out) {
  const ax_type type = ax_typeof(x);
  const ax_dtype middle = q->storage == AX_U32 ? AX_S64 : AX_S32;
  const double *zeros = zeros_of(q);
  if (zeros == NULL || ax_failed()) return AX_OK;
  AX_TRY(check_axis(q, &type));
  const ax_value stored = ax_convert_element_type(x, middle), above = ax_sub(stored, spread_numbers(q, zeros, middle, &type));
  const ax_value number = ax_convert_element_type(above, wide_of(q));
  *out = ax_convert_element_type(ax_mul(number, spread_numbers(q, q->scales, wide_of(q), &type)), q->expressed);
  return AX_OK;
}

/* Clamped, rounded, and converted to what is stored. */
static ax_value store(ax_value x, const ax_hlo_quantized *q) {
  x = ax_clamp(ax_real((double)q->least), x, ax_real((double)q->greatest));
  return ax_convert_element_type(ax_round(x), q->storage);
}

static ax_status quantize(ax_value x, const ax_hlo_quantized *q, ax_value *out) {
  const ax_type type = ax_typeof(x);
  const double *zeros = zeros_of(q);
  if (zeros == NULL || ax_failed()) return AX_OK;
  AX_TRY(check_axis(q, &type));
  const ax_value wide = ax_convert_element_type(x, wide_of(q));
  const ax_value scaled = ax_div(wide, spread_numbers(q, q->scales, wide_of(q), &type));
  *out = store(ax_add(scaled, spread_numbers(q, zeros, wide_of(q), &type)), q);
  return AX_OK;
}

/* stored * (scale / its scale) + (its zero - zero * that) */
static ax_status requantize(ax_value x, const ax_hlo_quantized *from, const ax_hlo_quantized *to, ax_value *out) {
  const ax_hlo_quantized *wider = to->axis >= 0 ? to : from;
  const ax_type type = ax_typeof(x);
  if (ax_hlo_same_quantized(from, to)) return *out = x, AX_OK;
  if (from->axis >= 0 && to->axis >= 0 && (from->axis != to->axis || from->count != to->count))
    return ax_error(AX_INVALID_ARGUMENT, "the quantized dimensions of operand and result differ");
  AX_TRY(check_axis(wider, &type));
  double *scales = ax_trace_alloc(wider->count * sizeof scales[0]), *zeros = ax_trace_alloc(wider->count * sizeof zeros[0]);
  if (scales == NULL || zeros == NULL) return AX_OK; /* the trace has failed */
  for (uint32_t i = 0; i < wider->count; i++) {
    const uint32_t a = from->axis >= 0 ? i : 0, b = to->axis >= 0 ? i : 0;
    scales[i] = from->scales[a] / to->scales[b];
    zeros[i] = (double)to->zeros[b] - (double)from->zeros[a] * scales[i];
  }
  const ax_value wide = ax_convert_element_type(x, wide_of(to));
  const ax_value scaled = ax_mul(wide, spread_numbers(wider, scales, wide_of(to), &type));
  *out = store(ax_add(scaled, spread_numbers(wider, zeros, wide_of(to), &type)), to);
  return AX_OK;
}

/* --- Operations --- */

static const ax_hlo_quantized *of_value(const ax_hlo_import *import, uint32_t value) { return import->module->values[value]->quantized; }

static ax_status uniform_quantize_read(const ax_hlo_read_args *args) {
  if (args->op->operand_count != 1 || args->op->result_count != 1) return ax_error(AX_INVALID_ARGUMENT, "it takes 1 operand");
  const ax_hlo_quantized *from = of_value(args->import, args->op->operands[0]), *to = of_value(args->import, args->op->result);
  if (to == NULL) return ax_error(AX_INVALID_ARGUMENT, "its result is not quantized");
  if (from != NULL) return requantize(args->in[0], from, to, &args->out[0]);
  if (!ax_failed() && !ax_is_float(ax_typeof(args->in[0]).dtype)) return ax_error(AX_INVALID_ARGUMENT, "its operand must be of floats");
  return quantize(args->in[0], to, &args->out[0]);
}

static ax_status uniform_dequantize_read(const ax_hlo_read_args *args) {
  if (args->op->operand_count != 1 || args->op->result_count != 1) return ax_error(AX_INVALID_ARGUMENT, "it takes 1 operand");
  const ax_hlo_quantized *from = of_value(args->import, args->op->operands[0]);
  if (from == NULL) return ax_error(AX_INVALID_ARGUMENT, "its operand is not quantized");
  return dequantize(args->in[0], from, &args->out[0]);
}

const ax_hlo_reader ax_hlo_quantized_readers[] = {
    {"stablehlo.uniform_quantize", uniform_quantize_read}, {"stablehlo.uniform_dequantize", uniform_dequantize_read}, {0}};

/* What is done with an operation that has quantized operands or results, if it is not computed in what they express. */
typedef enum quantized_how {
  QUANTIZED_MOVES,   /* its results are elements of its operands, as they are stored: of the same quantization */
  QUANTIZED_STORED,  /* the same, but the quantizations may differ */
  QUANTIZED_BODIES   /* the same; its regions compute, and their operations are looked at by themselves */
} quantized_how;

static const struct {
  const char *op;
  quantized_how how;
} stored[] = {{"stablehlo.broadcast", QUANTIZED_MOVES},
              {"stablehlo.broadcast_in_dim", QUANTIZED_MOVES},
              {"stablehlo.concatenate", QUANTIZED_MOVES},
              {"stablehlo.dynamic_broadcast_in_dim", QUANTIZED_MOVES},
              {"stablehlo.dynamic_gather", QUANTIZED_MOVES},
              {"stablehlo.dynamic_pad", QUANTIZED_MOVES},
              {"stablehlo.dynamic_reshape", QUANTIZED_MOVES},
              {"stablehlo.dynamic_slice", QUANTIZED_MOVES},
              {"stablehlo.dynamic_update_slice", QUANTIZED_MOVES},
              {"stablehlo.gather", QUANTIZED_MOVES},
              {"stablehlo.optimization_barrier", QUANTIZED_STORED},
              {"stablehlo.pad", QUANTIZED_MOVES},
              {"stablehlo.real_dynamic_slice", QUANTIZED_MOVES},
              {"stablehlo.reshape", QUANTIZED_MOVES},
              {"stablehlo.reverse", QUANTIZED_MOVES},
              {"stablehlo.slice", QUANTIZED_MOVES},
              {"stablehlo.transpose", QUANTIZED_MOVES},
              {"stablehlo.bitcast_convert", QUANTIZED_STORED},
              {"stablehlo.composite", QUANTIZED_STORED},
              {"stablehlo.constant", QUANTIZED_STORED},
              {"stablehlo.custom_call", QUANTIZED_STORED},
              {"stablehlo.get_dimension_size", QUANTIZED_STORED},
              {"stablehlo.uniform_dequantize", QUANTIZED_STORED},
              {"stablehlo.uniform_quantize", QUANTIZED_STORED},
              {"check.expect_eq", QUANTIZED_STORED},
              {"func.call", QUANTIZED_STORED},
              {"stablehlo.case", QUANTIZED_BODIES},
              {"stablehlo.if", QUANTIZED_BODIES},
              {"stablehlo.map", QUANTIZED_BODIES},
              {"stablehlo.reduce", QUANTIZED_BODIES},
              {"stablehlo.reduce_window", QUANTIZED_BODIES},
              {"stablehlo.scatter", QUANTIZED_BODIES},
              {"stablehlo.select_and_scatter", QUANTIZED_BODIES},
              {"stablehlo.sort", QUANTIZED_BODIES},
              {"stablehlo.while", QUANTIZED_BODIES}};

bool ax_quantized_touches(const ax_hlo_import *import, const ax_hlo_operation *op) {
  for (uint32_t i = 0; i < op->operand_count; i++)
    if (of_value(import, op->operands[i]) != NULL) return true;
  for (uint32_t k = 0; k < op->result_count; k++)
    if (of_value(import, op->result + k) != NULL) return true;
  return false;
}

static ax_status check_moved(const ax_hlo_import *import, const ax_hlo_operation *op) {
  const ax_hlo_quantized *to = op->result_count > 0 ? of_value(import, op->result) : NULL;
  for (uint32_t i = 0; i < op->operand_count; i++) {
    const ax_hlo_quantized *from = of_value(import, op->operands[i]);
    const bool compared = from != NULL && (to == NULL || from->axis < 0 || to->axis < 0);
    if ((compared && (to == NULL || !ax_hlo_same_quantized(from, to))) || (i == 0 && from == NULL))
      return ax_error(AX_INVALID_ARGUMENT, "its result is quantized otherwise than its operand %u", i);
  }
  return AX_OK;
}

/* Operands and results as what they express. */
static ax_status read_expressed(const ax_hlo_read_args *args, ax_status (*read)(const ax_hlo_read_args *args)) {
  const ax_hlo_operation *op = args->op;
  ax_value *in = ax_trace_alloc((op->operand_count + 1) * sizeof in[0]);
  ax_type *types = ax_trace_alloc((op->result_count + 1) * sizeof types[0]);
  ax_hlo_read_args expressed = *args;
  if (in == NULL || types == NULL) return AX_OK; /* the trace has failed */
  if (op->region_count > 0) return ax_error(AX_ABSENT, "its regions are not read yet where values are quantized");
  for (uint32_t i = 0; i < op->operand_count; i++) {
    const ax_hlo_quantized *q = of_value(args->import, op->operands[i]);
    in[i] = args->in[i];
    if (q != NULL) AX_TRY(dequantize(args->in[i], q, &in[i]));
  }
  for (uint32_t k = 0; k < op->result_count; k++) {
    types[k] = args->out_types[k];
    if (of_value(args->import, op->result + k) != NULL) types[k].dtype = of_value(args->import, op->result + k)->expressed;
  }
  expressed.in = in, expressed.out_types = types;
  AX_TRY(read(&expressed));
  for (uint32_t k = 0; k < op->result_count && !ax_failed(); k++) {
    const ax_hlo_quantized *q = of_value(args->import, op->result + k);
    if (q != NULL) AX_TRY(quantize(args->out[k], q, &args->out[k]));
  }
  return AX_OK;
}

ax_status ax_quantized_read(const ax_hlo_read_args *args, ax_status (*read)(const ax_hlo_read_args *args)) {
  size_t i = 0;
  while (i < AX_COUNT(stored) && !ax_hlo_slice_is(args->op->name, stored[i].op)) i++;
  if (i == AX_COUNT(stored)) return read_expressed(args, read);
  if (stored[i].how == QUANTIZED_MOVES) AX_TRY(check_moved(args->import, args->op));
  ax_hlo_operation op = *args->op;
  ax_hlo_read_args as = *args;
  op.opaque = true;
  as.op = &op;
  return read(&as);
}
