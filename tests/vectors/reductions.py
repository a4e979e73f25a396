"""Reductions by one operation beyond sums and extremes, and by functions of several arrays."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from case import Case, edge, real, ties

NUMBERS, BITS = "f32 f64 bf16 s32 u8", "bool s32 u8 s64"


def dual(a, b):
    return a * b + a + b


def by_dual(axes):
    return lambda x: lax.reduce(x, np.zeros((), x.dtype)[()], dual, axes)


def later_of_equals(left, right):
    (a, i), (b, j) = left, right
    first = (a > b) | (a != a)
    return lax.select(first, a, b), lax.select(first, i, j)


def places(x):
    at = lax.broadcasted_iota(jnp.int32, x.shape, 1)
    least = -np.inf if jnp.issubdtype(x.dtype, jnp.floating) else np.iinfo(x.dtype).min
    starts = np.asarray(least, x.dtype)[()], np.int32(-1)
    return lax.reduce((x, at), starts, later_of_equals, (1,))


def moments(x, w):
    """Count, mean and sum of squares, put together as Chan, Golub and LeVeque do."""

    def body(a, b):
        n = a[0] + b[0]
        safe = jnp.maximum(n, 1e-30)
        d = b[1] - a[1]
        return n, a[1] + d * b[0] / safe, a[2] + b[2] + d * d * a[0] * b[0] / safe

    zero = np.zeros((), x.dtype)[()]
    return lax.reduce((w, x, x * 0), (zero, zero, zero), body, (0,))


CASES = [
    Case("reduce_prod", NUMBERS, lambda x: [lax.reduce_prod(x, a) for a in ((0,), (0, 2), (0, 1, 2))], [real(3, 4, 2)]),
    Case("reduce_prod_long", "f32 f64", lambda x: lax.reduce_prod(1 + x / 16, (0,)), [real(37, 3)]),
    Case("reduce_prod_zeros", "f32", lambda x: lax.reduce_prod(jnp.where(x < 0.4, 0, x), (1,)), [real(8, 5)]),
    Case("reduce_prod_edges", "f32 f64", lambda x: lax.reduce_prod(x.reshape(12, 2), (1,)), [edge(24)], modes="v"),
    Case("reduce_prod_none", "f32 s32", lambda x: lax.reduce_prod(x, (0,)), [real(0, 3)]),
    Case("reduce_bits", BITS, lambda x: [f(x, a) for f in (lax.reduce_and, lax.reduce_or, lax.reduce_xor) for a in ((0,), (0, 2))], [real(3, 4, 2)]),
    Case("reduce_bits_none", "bool s32", lambda x: [lax.reduce_and(x, (0,)), lax.reduce_or(x, (0,))], [real(0, 3)]),
    Case("reduce_dual", "f32 f64 s32", lambda x: [by_dual(a)(x) for a in ((0,), (1,), (0, 2), (0, 1, 2))], [real(3, 5, 2, scale=0.3)]),
    Case("reduce_dual_long", "f32 s32", by_dual((1,)), [real(3, 150, scale=0.1)]),
    Case("reduce_dual_none", "f32", by_dual((1,)), [real(3, 0)]),
    Case("reduce_dual_mapped", "f32", jax.vmap(by_dual((0,)), 1), [real(19, 3, scale=0.3)]),
    Case("reduce_places", "f32 bf16 s32", places, [ties(6, 23)], modes="v"),
    Case("reduce_places_edges", "f32 f64 s32", lambda x: places(x.reshape(3, 8)), [edge(24)], modes="v"),
    Case("reduce_moments", "f32 f64", lambda x, w: moments(x, jnp.abs(w)), [real(40, 3), real(40, 3)], modes="v"),
    Case("reduce_start", "f32 s32", lambda x: (lax.reduce(x, x.dtype.type(3), lax.add, (0,)), lax.reduce(x, x.dtype.type(1), lax.max, (1,)),
                                               lax.reduce(x, x.dtype.type(2), lax.mul, (0, 1))), [real(4, 5)], modes="v"),
]  # fmt: skip
