"""Convolutions, windowed reductions, pools, arrays turned round."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax._src.lax import windowed_reductions as windowed

from case import Case, real

ALL = "f32 f64 bf16 s32"
FLOAT = "f32 bf16"


def conv(name, left, right, strides, padding="VALID", lhs=None, rhs=None, specs=None, variants="f32", **more):
    def function(x, w):
        return lax.conv_general_dilated(x, w, strides, padding, lhs, rhs, specs, precision="highest", **more)

    return Case(name, variants, function, [real(*left), real(*right)])


def mapped(name, axes, left, right, variants="f32", **more):
    def function(x, w):
        return jax.vmap(lambda x, w: lax.conv_general_dilated(x, w, precision="highest", **more), axes)(x, w)

    return Case(name, variants, function, [real(*left), real(*right)])


def identity(how, dtype):
    if how == "sum":
        return 0
    if jnp.issubdtype(dtype, jnp.inexact):
        return -np.inf if how == "max" else np.inf
    return jnp.iinfo(dtype).min if how == "max" else jnp.iinfo(dtype).max


def reduced(name, how, shape, window, strides, padding="VALID", base=None, dilation=None, variants=ALL, modes="vjg"):
    combine = {"sum": lax.add, "max": lax.max, "min": lax.min}[how]

    def function(x):
        start = np.asarray(identity(how, x.dtype), x.dtype)[()]
        return lax.reduce_window(x, start, combine, window, strides, padding, base, dilation)

    return Case(name, variants, function, [real(*shape)], modes=modes)


def extreme(how, window, strides, padding="VALID", base=None, dilation=None):
    combine, start = (lax.max, -jnp.inf) if how == "max" else (lax.min, jnp.inf)
    return lambda x: lax.reduce_window(x, start, combine, window, strides, padding, base, dilation)


def tied(x):
    """Few different numbers, so that windows hold several that are equal."""
    return extreme("max", (2, 3), (1, 2), "SAME")(jnp.round(x)), extreme("min", (3, 2), (1, 1))(jnp.round(x))


def tied_derivative(x):
    return jax.jvp(lambda x: extreme("max", (2, 2), (1, 1))(x), (jnp.round(x),), (jnp.arange(x.size, dtype=x.dtype).reshape(x.shape),))[1]


def tied_gradient(x):
    weights = jnp.arange(12.0, dtype=x.dtype).reshape(3, 4) + 1
    return (jax.grad(lambda x: jnp.sum(extreme("max", (3, 3), (1, 1))(x) * weights))(jnp.round(x)),
            jax.grad(lambda x: jnp.sum(extreme("min", (3, 3), (1, 1))(x) * weights))(jnp.round(x)))


def product(x):
    """Of any function: here one that XLA cannot know."""
    mul = lambda a, b: a * b
    one = x.dtype.type(1)
    dilated = lax.reduce_window(x, one, mul, (2, 3), (1, 2), ((1, 0), (0, 2)), (2, 1), (1, 2))
    return dilated, lax.reduce_window(x, one, mul, (1, 7), (1, 1), "SAME"), lax.reduce_window(x, one, mul, (3, 2), (2, 1), "VALID")


def largest_and_place(x):
    """Two operands."""

    def larger(a, b):
        first = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
        return lax.select(first, a[0], b[0]), lax.select(first, a[1], b[1])

    place = lax.broadcasted_iota(np.int32, x.shape, 1)
    return lax.reduce_window((x, place), (x.dtype.type(-np.inf), np.int32(99)), larger, (2, 5), (1, 2), "SAME")


def pools(x):
    full = (1, 3, 2, 1)
    mean = lax.reduce_window(x, 0.0, lax.add, full, (1, 2, 1, 1), "SAME") / 6
    return extreme("max", full, (1, 2, 1, 1), "SAME")(x), mean


def select_and_gather(t, x):
    of = lambda prim, strides, padding: windowed._select_and_gather_add(t, x, prim, (2, 3), strides, padding, (1, 1), (1, 1))
    return of(lax.ge_p, (1, 2), ((0, 0), (0, 0))), of(lax.le_p, (2, 1), ((1, 0), (1, 2)))


def select_and_gather_dilated(t, x):
    return windowed._select_and_gather_add(t, x, lax.ge_p, (2, 3), (1, 1), ((0, 0), (2, 2)), (1, 1), (1, 2))


def select_and_scatter(s, x):
    return (
        windowed._select_and_scatter_add(s, x, lax.ge_p, (2, 3), (2, 2), ((0, 0), (0, 0))),
        windowed._select_and_scatter_add(s, x, lax.le_p, (2, 3), (2, 2), ((0, 0), (0, 0))),
    )


NHWC = ("NHWC", "HWIO", "NHWC")

CASES = [
    conv("conv_plain", (2, 3, 8), (4, 3, 3), (1,), variants=ALL),
    conv("conv_same", (2, 3, 7, 6), (4, 3, 3, 2), (1, 1), "SAME", variants=FLOAT),
    conv("conv_strided", (2, 3, 9, 8), (5, 3, 3, 3), (2, 3), "SAME", variants="f32 s32"),
    conv("conv_lower", (1, 2, 8, 7), (3, 2, 4, 2), (2, 1), "SAME_LOWER"),
    conv("conv_nhwc", (2, 6, 7, 3), (3, 3, 3, 4), (1, 1), "SAME", specs=NHWC, variants=FLOAT),
    conv("conv_padded", (2, 2, 6), (3, 2, 3), (1,), [(2, 1)]),
    conv("conv_cut", (2, 2, 9), (3, 2, 2), (2,), [(-1, -2)]),
    conv("conv_lhs_dilated", (1, 2, 5, 4), (3, 2, 3, 2), (1, 2), [(1, 2), (0, 1)], (2, 3)),
    conv("conv_rhs_dilated", (1, 2, 9, 8), (3, 2, 3, 2), (1, 1), [(1, 2), (0, 1)], None, (2, 3)),
    conv("conv_both_dilated", (2, 2, 7), (3, 2, 3), (3,), [(2, -1)], (2,), (3,), variants="f32 s32"),
    conv("conv_grouped", (2, 6, 7), (4, 3, 3), (2,), "SAME", feature_group_count=2, variants="f32 s32"),
    conv("conv_depthwise", (1, 6, 7, 4), (3, 3, 1, 8), (1, 1), "SAME", specs=NHWC, feature_group_count=4),
    conv("conv_batch_grouped", (6, 3, 7), (4, 3, 3), (1,), "SAME", batch_group_count=2),
    conv("conv_long_kernel", (2, 3, 40), (2, 3, 38), (1,), "VALID"),
    conv("conv_no_space", (3, 4), (5, 4), (), "VALID"),
    conv("conv_volume", (1, 2, 4, 5, 3), (2, 2, 2, 3, 2), (1, 2, 1), "SAME"),
    conv("conv_orders", (3, 2, 6, 5), (2, 4, 3, 3), (1, 2), [(1, 0), (0, 2)], specs=("CNHW", "HOWI", "HCWN")),
    conv("conv_wider", (2, 3, 8), (4, 3, 3), (1,), variants="bf16", preferred_element_type=jnp.float32),
    mapped("conv_map_left", (0, None), (3, 2, 2, 7), (4, 2, 3), window_strides=(2,), padding="SAME"),
    mapped("conv_map_right", (None, 3), (2, 2, 7), (4, 2, 3, 3), window_strides=(1,), padding="SAME"),
    mapped("conv_map_both", (1, 0), (2, 3, 2, 7), (3, 4, 2, 3), window_strides=(1,), padding="VALID"),
    mapped("conv_map_groups", (2, 1), (2, 4, 3, 7), (4, 3, 2, 3), window_strides=(1,), padding="VALID", feature_group_count=2),
    mapped("conv_map_right_groups", (None, 0), (2, 4, 7), (3, 4, 2, 3), window_strides=(1,), padding="VALID", feature_group_count=2),
    mapped("conv_map_left_batches", (1, None), (4, 3, 2, 7), (4, 2, 3), window_strides=(1,), padding="VALID", batch_group_count=2),
    mapped("conv_map_both_batches", (0, 0), (3, 4, 2, 7), (3, 4, 2, 3), window_strides=(1,), padding="VALID", batch_group_count=2),
    reduced("window_sum", "sum", (6, 7), (2, 3), (1, 2)),
    reduced("window_sum_same", "sum", (5, 7), (3, 2), (2, 1), "SAME"),
    reduced("window_sum_dilated", "sum", (5, 4), (2, 2), (1, 2), [(2, 1), (-1, 2)], (2, 1), (3, 2)),
    reduced("window_sum_long", "sum", (3, 50), (1, 37), (1, 3), [(0, 0), (5, 6)], variants="f32 s32"),
    reduced("window_sum_all", "sum", (3, 50), (1, 50), (1, 1), variants="f32 bf16"),
    reduced("window_max", "max", (6, 7), (2, 3), (1, 2)),
    reduced("window_max_same", "max", (5, 7), (3, 2), (2, 1), "SAME", variants="f32 s32 u8"),
    reduced("window_max_dilated", "max", (5, 4), (2, 2), (1, 2), [(2, 1), (0, 2)], None, (3, 2), variants="f32 s32", modes="vj"),
    reduced("window_max_long", "max", (2, 40), (1, 21), (1, 2), "SAME", variants="f32"),
    reduced("window_min", "min", (6, 7), (2, 3), (2, 1), "SAME", variants="f32 s32 u8"),
    Case("window_ties", "f32", tied, [real(6, 7)], modes="v"),
    Case("window_tied_derivative", "f32", tied_derivative, [real(5, 6)], modes="v"),
    Case("window_tied_gradient", "f32", tied_gradient, [real(5, 6)], modes="v"),
    Case("product", "f32 f64 s32", product, [real(5, 9)], modes="v"),
    Case("largest_and_place", "f32", largest_and_place, [lambda random, variant: random.integers(-4, 5, (4, 9)).astype(variant.dtype)], modes="v"),
    Case("select_and_gather", FLOAT, select_and_gather, [real(6, 7), real(6, 7)]),
    Case("select_and_gather_dilated", "f32", select_and_gather_dilated, [real(6, 7), real(6, 7)], modes="vj"),
    Case("select_and_scatter", FLOAT, select_and_scatter, [real(3, 3), real(6, 7)]),
    Case("pools", "f32 bf16", pools, [real(2, 7, 5, 3)]),
    Case("rev", "f32 bf16 s32 bool", lambda x: (lax.rev(x, (1,)), lax.rev(x, (2, 0)), lax.rev(x, ())), [real(3, 4, 5)]),
]
