/* Pointwise primitives, comparisons, logic, conversions: pointwise.py says the same in JAX. */
#include "vectors/vectors.h"

#define FLOAT "f32 f64 bf16"
#define NUMERIC "f32 f64 bf16 s32"
#define WIDE NUMERIC " f16 s8 u8 s64 u32"
#define ANY NUMERIC " u8"
#define BITS "bool s32 u8"
#define INTEGER "s32 u8 s8 u32 s64 u64 s16"

static ax_value power_0(ax_value x) { return ax_integer_pow(x, 0); }
static ax_value power_1(ax_value x) { return ax_integer_pow(x, 1); }
static ax_value power_2(ax_value x) { return ax_integer_pow(x, 2); }
static ax_value power_3(ax_value x) { return ax_integer_pow(x, 3); }
static ax_value power_7(ax_value x) { return ax_integer_pow(x, 7); }
static ax_value power_m1(ax_value x) { return ax_integer_pow(x, -1); }
static ax_value power_m2(ax_value x) { return ax_integer_pow(x, -2); }
static ax_value power_m3(ax_value x) { return ax_integer_pow(x, -3); }
static ax_value half_stopped(ax_value x) { return ax_mul(x, ax_stop_gradient(x)); }
static ax_value added_and_multiplied(ax_value x, ax_value y) { return ax_mul(ax_add(x, y), x); }
static ax_value tanh_of_twice(ax_value x) { return ax_tanh(ax_add(x, x)); }
static ax_value exp_over(ax_value x, ax_value y) { return ax_div(ax_exp(x), y); }

BODY(select_n) { out[0] = ax_select_n(in[0], in[1], in[2]); }

/* Those of a byte are in ../byte_floats_test.c. */
static const ax_dtype converted[] = {AX_BOOL, AX_S8,  AX_S16,  AX_S32, AX_S64, AX_U8, AX_U16,
                                     AX_U32,  AX_U64, AX_BF16, AX_F16, AX_F32, AX_F64};
enum { converted_count = sizeof converted / sizeof converted[0] };

BODY(convert) {
  for (int d = 0; d < converted_count; d++) out[d] = ax_convert_element_type(in[0], converted[d]);
}

BODY(convert_signed) {
  static const ax_dtype to[] = {AX_S32, AX_S8, AX_F16, AX_BOOL};
  for (int i = 0; i < 4; i++) out[i] = ax_convert_element_type(in[0], to[i]);
}

BODY(bitcast) {
  static const ax_dtype to[] = {AX_U32, AX_F32, AX_U16, AX_U8};
  for (int i = 0; i < 4; i++) out[i] = ax_bitcast_convert_type(in[0], to[i]);
}

BODY(bitcast_narrow) {
  static const ax_dtype to[] = {AX_U16, AX_BF16, AX_F16, AX_U8};
  for (int i = 0; i < 4; i++) out[i] = ax_bitcast_convert_type(in[0], to[i]);
}

BODY(bitcast_wide) {
  static const ax_dtype to[] = {AX_U64, AX_F64};
  for (int i = 0; i < 2; i++) out[i] = ax_bitcast_convert_type(in[0], to[i]);
}

static ax_value half_precision(ax_value x) { return ax_reduce_precision(x, 5, 10); }
static ax_value fp8_precision(ax_value x) { return ax_reduce_precision(x, 4, 3); }
BODY(barrier) {
  ax_value product = ax_mul(in[0], in[1]), power = ax_exp(in[1]);
  ax_optimization_barrier(AX_VALUES(product, power), AX_LIST(2, out));
}

static const vector_case pointwise_cases[] = {
    {"add", WIDE, .binary = ax_add},
    {"sub", WIDE, .binary = ax_sub},
    {"mul", WIDE, .binary = ax_mul},
    {"div", WIDE, .binary = ax_div, .scaled = true},
    {"max", WIDE, .binary = ax_max},
    {"min", WIDE, .binary = ax_min},
    {"pow", FLOAT, .binary = ax_pow},
    {"rem", WIDE, .binary = ax_rem, .modes = "v"},
    {"rem_real", FLOAT, .binary = ax_rem},
    {"floor", FLOAT, .unary = ax_floor},
    {"ceil", FLOAT, .unary = ax_ceil},
    {"round", FLOAT, .unary = ax_round},
    {"neg", WIDE, .unary = ax_neg},
    {"abs", NUMERIC, .unary = ax_abs},
    {"sign", NUMERIC, .unary = ax_sign},
    {"exp", FLOAT, .unary = ax_exp},
    {"log", FLOAT, .unary = ax_log},
    {"log1p", FLOAT, .unary = ax_log1p},
    {"expm1", FLOAT, .unary = ax_expm1},
    {"sin", FLOAT, .unary = ax_sin, .scaled = true},
    {"cos", FLOAT, .unary = ax_cos, .scaled = true},
    {"tanh", FLOAT, .unary = ax_tanh, .scaled = true},
    {"logistic", FLOAT, .unary = ax_logistic, .scaled = true},
    {"sqrt", FLOAT, .unary = ax_sqrt},
    {"rsqrt", FLOAT, .unary = ax_rsqrt},
    {"erf", FLOAT, .unary = ax_erf},
    {"integer_pow_0", NUMERIC, .unary = power_0},
    {"integer_pow_1", NUMERIC, .unary = power_1},
    {"integer_pow_2", NUMERIC, .unary = power_2},
    {"integer_pow_3", NUMERIC, .unary = power_3},
    {"integer_pow_7", NUMERIC, .unary = power_7},
    {"integer_pow_m1", FLOAT, .unary = power_m1},
    {"integer_pow_m2", FLOAT, .unary = power_m2},
    {"integer_pow_m3", FLOAT, .unary = power_m3},
    {"pow_positive", FLOAT, .binary = ax_pow},
    {"eq", ANY, .binary = ax_eq},
    {"ne", ANY, .binary = ax_ne},
    {"lt", ANY, .binary = ax_lt},
    {"le", ANY, .binary = ax_le},
    {"gt", ANY, .binary = ax_gt},
    {"ge", ANY, .binary = ax_ge},
    {"and_", BITS, .binary = ax_and},
    {"or_", BITS, .binary = ax_or},
    {"not_", BITS, .unary = ax_not},
    {"select_n", ANY, .body = select_n, .in = 3},
    {"select_n_scalar", "f32 s32", .body = select_n, .in = 3},
    {"convert", "f32 f64 bf16 f16 s32 s8 u8 s64 bool", .body = convert, .out = converted_count},
    {"convert_signed", "f32 bf16 s32 s8", .body = convert_signed, .out = 4},
    {"stop_gradient", "f32", .unary = half_stopped},
    {"exp2", FLOAT, .unary = ax_exp2},
    {"cbrt", FLOAT, .unary = ax_cbrt},
    {"tan", FLOAT, .unary = ax_tan},
    {"asin", FLOAT, .unary = ax_asin},
    {"acos", FLOAT, .unary = ax_acos},
    {"atan", FLOAT, .unary = ax_atan},
    {"sinh", FLOAT, .unary = ax_sinh},
    {"cosh", FLOAT, .unary = ax_cosh},
    {"asinh", FLOAT, .unary = ax_asinh},
    {"acosh", FLOAT, .unary = ax_acosh},
    {"atanh", FLOAT, .unary = ax_atanh},
    {"erfc", FLOAT, .unary = ax_erfc},
    {"atan2", FLOAT, .binary = ax_atan2},
    {"xor", BITS, .binary = ax_xor},
    {"shift_left", INTEGER, .binary = ax_shift_left},
    {"shift_right_logical", INTEGER, .binary = ax_shift_right_logical},
    {"shift_right_arithmetic", INTEGER, .binary = ax_shift_right_arithmetic},
    {"population_count", INTEGER, .unary = ax_population_count},
    {"clz", INTEGER, .unary = ax_clz},
    {"bitcast", "f32 s32 u32", .body = bitcast, .out = 4},
    {"bitcast_narrow", "bf16 f16 u16", .body = bitcast_narrow, .out = 4},
    {"bitcast_wide", "f32 s32", .body = bitcast_wide, .out = 2},
    {"is_finite", FLOAT " f16", .unary = ax_is_finite},
    {"round_nearest_afz", FLOAT " f16", .unary = ax_round_nearest_afz},
    {"nextafter", FLOAT " f16", .binary = ax_nextafter, .modes = "v"},
    {"reduce_precision_half", "f32 f64", .unary = half_precision},
    {"reduce_precision_fp8", FLOAT " f16", .unary = fp8_precision},
    {"optimization_barrier", "f32", .body = barrier, .in = 2, .out = 2},
    {"broadcasting", "f32 bf16", .binary = added_and_multiplied, .scaled = true},
    {"empty", "f32", .unary = tanh_of_twice},
    {"scalar", "f32 f64", .binary = exp_over},
};

const VECTOR_GROUP(pointwise);
