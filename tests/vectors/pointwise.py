"""Pointwise primitives, comparisons, logic, conversions."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from case import DTYPES, Case, boolean, edge, positive, real

FLOAT, NUMERIC, ANY = "f32 f64 bf16", "f32 f64 bf16 s32", "f32 f64 bf16 s32 u8"
WIDE = NUMERIC + " f16 s8 u8 s64 u32"
BITS = "bool s32 u8"
INTEGER = "s32 u8 s8 u32 s64 u64 s16"


def unary(name, function, variants=FLOAT):
    return Case(name, variants, function, [edge(24)])


def binary(name, function, variants=NUMERIC):
    return Case(name, variants, function, [edge(24), edge(24)])


def power(exponent, variants=FLOAT):
    name = f"integer_pow_{'m' if exponent < 0 else ''}{abs(exponent)}"
    return Case(name, variants, lambda x: lax.integer_pow(x, exponent), [edge(24)])


CASES = [
    binary("add", lax.add, WIDE), binary("sub", lax.sub, WIDE), binary("mul", lax.mul, WIDE), binary("div", lax.div, WIDE),
    binary("max", lax.max, WIDE), binary("min", lax.min, WIDE), binary("pow", lax.pow, FLOAT),
    Case("rem", WIDE, lax.rem, [edge(24), edge(24)], modes="v"), Case("rem_real", FLOAT, lax.rem, [real(24, scale=30), real(24)]),
    unary("floor", lax.floor), unary("ceil", lax.ceil),
    unary("round", lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)),
    unary("neg", lax.neg, WIDE), unary("abs", lax.abs, NUMERIC), unary("sign", lax.sign, NUMERIC),
    unary("exp", lax.exp), unary("log", lax.log), unary("log1p", lax.log1p), unary("expm1", lax.expm1),
    unary("sin", lax.sin), unary("cos", lax.cos),
    unary("tanh", lax.tanh), unary("logistic", lax.logistic), unary("sqrt", lax.sqrt), unary("rsqrt", lax.rsqrt),
    unary("erf", lax.erf),
    power(0, NUMERIC), power(1, NUMERIC), power(2, NUMERIC), power(3, NUMERIC), power(7, NUMERIC), power(-1), power(-2), power(-3),
    Case("pow_positive", FLOAT, lax.pow, [positive(12), real(12)]),
    binary("eq", lax.eq, ANY), binary("ne", lax.ne, ANY), binary("lt", lax.lt, ANY), binary("le", lax.le, ANY),
    binary("gt", lax.gt, ANY), binary("ge", lax.ge, ANY),
    binary("and_", lax.bitwise_and, BITS), binary("or_", lax.bitwise_or, BITS), unary("not_", lax.bitwise_not, BITS),
    Case("select_n", ANY, lax.select_n, [boolean(24), edge(24), edge(24)]),
    Case("select_n_scalar", "f32 s32", lax.select_n, [boolean(), real(3, 4), real(3, 4)]),
    Case("convert", "f32 f64 bf16 f16 s32 s8 u8 s64 bool", lambda x: [lax.convert_element_type(x, d) for d in DTYPES.values()],
         [lambda random, v: np.abs(real(12)(random, v)) * np.array(20, v.dtype) if v.dtype != np.bool_ else boolean(12)(random, v)]),
    Case("convert_signed", "f32 bf16 s32 s8", lambda x: [lax.convert_element_type(x, d) for d in (jnp.int32, jnp.int8, jnp.float16, jnp.bool_)],
         [real(12, scale=20)]),
    Case("stop_gradient", "f32", lambda x: lax.mul(x, lax.stop_gradient(x)), [real(5)]),
    unary("exp2", lax.exp2), unary("cbrt", lax.cbrt), unary("tan", lax.tan), unary("asin", lax.asin), unary("acos", lax.acos), unary("atan", lax.atan),
    unary("sinh", lax.sinh), unary("cosh", lax.cosh), unary("asinh", lax.asinh), unary("acosh", lax.acosh), unary("atanh", lax.atanh), unary("erfc", lax.erfc),
    binary("atan2", lax.atan2, FLOAT),
    binary("xor", lax.bitwise_xor, BITS), binary("shift_left", lax.shift_left, INTEGER),
    binary("shift_right_logical", lax.shift_right_logical, INTEGER),
    binary("shift_right_arithmetic", lax.shift_right_arithmetic, INTEGER),
    unary("population_count", lax.population_count, INTEGER), unary("clz", lax.clz, INTEGER),
    Case("bitcast", "f32 s32 u32", lambda x: [lax.bitcast_convert_type(x, d) for d in (jnp.uint32, jnp.float32, jnp.uint16, jnp.uint8)],
         [edge(24)]),
    Case("bitcast_narrow", "bf16 f16 u16", lambda x: [lax.bitcast_convert_type(x, d) for d in (jnp.uint16, jnp.bfloat16, jnp.float16, jnp.uint8)],
         [edge(24)]),
    Case("bitcast_wide", "f32 s32", lambda x: [lax.bitcast_convert_type(x, d) for d in (jnp.uint64, jnp.float64)], [real(12, 2)]),
    unary("is_finite", lax.is_finite, FLOAT + " f16"), unary("round_nearest_afz", lax.round, FLOAT + " f16"),
    Case("nextafter", FLOAT + " f16", lax.nextafter, [edge(24), edge(24)], modes="v"),
    unary("reduce_precision_half", lambda x: lax.reduce_precision(x, 5, 10), "f32 f64"),
    unary("reduce_precision_fp8", lambda x: lax.reduce_precision(x, 4, 3), FLOAT + " f16"),
    Case("optimization_barrier", "f32", lambda x, y: lax.optimization_barrier((x * y, lax.exp(y))), [real(5), real(5)]),
    # Shapes are broadcast as NumPy does.
    Case("broadcasting", "f32 bf16", lambda x, y: jnp.multiply(jnp.add(x, y), x), [real(3, 1, 2), real(4, 1)]),
    Case("empty", "f32", lambda x: lax.tanh(lax.add(x, x)), [real(0, 3)]),
    Case("scalar", "f32 f64", lambda x, y: lax.div(lax.exp(x), y), [real(), positive()]),
]  # fmt: skip
