"""Cumulative operations, and scans of any combination."""

import jax.numpy as jnp
from jax import lax

from case import Case, edge, real, ties

FLOAT = "f32 bf16"
NUMBER = "f32 bf16 s32 u8"


def ways(function):
    return lambda x: (function(x, 0), function(x, 1, reverse=True), function(x, 2))


def affine(a, b):
    return a[0] * b[0], a[1] * b[0] + b[1]


def counts(a, b):
    return a[0] + b[0], jnp.maximum(a[1] + b[0], b[1])


CASES = [
    Case("cumprod", NUMBER, ways(lax.cumprod), [real(1, 3, 5)]),
    Case("cumprod_zeros", "f32", lambda x: lax.cumprod(jnp.where(jnp.abs(x) < 0.4, 0, x), 1), [real(4, 7)]),
    Case("cummax", NUMBER, ways(lax.cummax), [real(1, 3, 5)]),
    Case("cummin", NUMBER, ways(lax.cummin), [real(1, 3, 5)]),
    Case("cummax_ties", "f32", lambda x: (lax.cummax(x, 0), lax.cummax(x, 0, reverse=True)), [ties(13, 2)]),
    Case("cummin_ties", "f32", lambda x: (lax.cummin(x, 0), lax.cummin(x, 0, reverse=True)), [ties(8, 2)]),
    Case("cumlogsumexp", FLOAT, ways(lax.cumlogsumexp), [real(1, 3, 5, scale=8)]),
    Case("cumlogsumexp_long", "f32", lambda x: (lax.cumlogsumexp(x, 0), lax.cumlogsumexp(x, 0, reverse=True)), [real(300, scale=30)], modes="v"),
    Case("cumsum_edges", NUMBER, lambda x: lax.cumsum(x.reshape(12, 4), 1), [edge(48)], modes="v"),
    Case("cummax_edges", NUMBER, lambda x: (lax.cummax(x, 0), lax.cummin(x.reshape(12, 4), 1)), [edge(48)], modes="v"),
    Case("cumlogsumexp_edges", "f32", lambda x: lax.cumlogsumexp(x.reshape(12, 4), 1), [edge(48)], modes="v"),
    Case("associative_scan", "f32 s32", lambda x: (lax.associative_scan(jnp.add, x, axis=1), lax.associative_scan(jnp.maximum, x, reverse=True, axis=1)),
         [real(3, 13)]),
    Case("associative_scan_affine", "f32", lambda a, b: lax.associative_scan(affine, (a, b), reverse=True, axis=0), [real(12, 3), real(12, 3)]),
    Case("associative_scan_counts", "f32 s32", lambda a, b: lax.associative_scan(counts, (a, b), axis=1), [real(2, 9), real(2, 9)]),
]  # fmt: skip
