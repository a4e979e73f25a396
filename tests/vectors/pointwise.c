/* Pointwise primitives, comparisons, logic, conversions: pointwise.py says the same in JAX. */
#include "vectors/vectors.h"

#define FLOAT "f32 f64 bf16"
#define NUMERIC "f32 f64 bf16 s32"
#define WIDE NUMERIC " f16 s8 u8 s64 u32"
#define ANY NUMERIC " u8"
#define BITS "bool s32 u8"

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

BODY(convert) {
  for (int d = AX_BOOL; d < AX_DTYPE_COUNT; d++) out[d - AX_BOOL] = ax_convert_element_type(in[0], (ax_dtype)d);
}

BODY(convert_signed) {
  static const ax_dtype to[] = {AX_S32, AX_S8, AX_F16, AX_BOOL};
  for (int i = 0; i < 4; i++) out[i] = ax_convert_element_type(in[0], to[i]);
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
    {"convert", "f32 f64 bf16 f16 s32 s8 u8 s64 bool", .body = convert, .out = AX_DTYPE_COUNT - AX_BOOL},
    {"convert_signed", "f32 bf16 s32 s8", .body = convert_signed, .out = 4},
    {"stop_gradient", "f32", .unary = half_stopped},
    {"broadcasting", "f32 bf16", .binary = added_and_multiplied, .scaled = true},
    {"empty", "f32", .unary = tanh_of_twice},
    {"scalar", "f32 f64", .binary = exp_over},
};

const VECTOR_GROUP(pointwise);
