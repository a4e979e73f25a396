"""Shape primitives, reductions, argmax and products."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from case import Case, edge, index, real, ties

MOVE, SUMS = "f32 bf16 s32", "f32 f64 bf16 s32"


def dot(name, lhs, rhs, contract, batch=((), ()), variants=SUMS):
    dimensions = (contract, batch)
    return Case(name, variants, lambda x, y: lax.dot_general(x, y, dimensions), [real(*lhs), real(*rhs)])


def matmul(name, lhs, rhs, variants="f32 bf16"):
    return Case(name, variants, jnp.matmul, [real(*lhs), real(*rhs)])


CASES = [
    Case("constant", MOVE, lambda x: x * np.arange(-2, 4).reshape(2, 3).astype(x.dtype), [real(2, 3)]),
    Case("full", "f32 s32", lambda x: (jnp.full((2, 2), 3, x.dtype), jnp.full_like(x, -1)), [real(3)]),
    Case("reshape", MOVE, lambda x: x.reshape(4, 1, 3), [real(2, 6)]),
    Case("reshape_scalar", "f32", lambda x: x.reshape(()), [real(1, 1)]),
    Case("transpose", MOVE, lambda x: lax.transpose(x, (2, 0, 1)), [real(2, 3, 4)]),
    Case("broadcast_in_dim", MOVE, lambda x: lax.broadcast_in_dim(x, (2, 3, 4), (0, 2)), [real(2, 1)]),
    Case("slice", MOVE, lambda x: lax.slice(x, (1, 0), (4, 5)), [real(5, 6)]),
    Case("slice_strided", "f32", lambda x: lax.slice(x, (0, 1), (5, 6), (2, 3)), [real(5, 6)]),
    Case("pad", MOVE, lambda x, v: lax.pad(x, v, ((1, 2, 0), (0, 1, 2))), [real(2, 3), real()]),
    Case("pad_negative", "f32", lambda x, v: lax.pad(x, v, ((-1, 3, 1), (2, -2, 0))), [real(4, 5), real()]),
    Case("concatenate", MOVE, lambda x, y, z: lax.concatenate((x, y, z), 1), [real(2, 3), real(2, 1), real(2, 2)]),
    Case("iota", "f32 bf16 s32 u8", lambda x: (lax.broadcasted_iota(x.dtype, (2, 3), 0), lax.broadcasted_iota(x.dtype, (2, 3), 1)), [real()]),
    Case("dynamic_slice", MOVE, lambda x, i, j: lax.dynamic_slice(x, (i, j), (2, 3), allow_negative_indices=False), [real(4, 5), index(6, above=-2), index(6)]),
    Case("dynamic_update_slice", MOVE, lambda x, u, i, j: lax.dynamic_update_slice(x, u, (i, j), allow_negative_indices=False),
         [real(4, 5), real(2, 3), index(6, above=-2), index(6)]),
    Case("expand_dims", "f32", lambda x: (jnp.expand_dims(x, 0), jnp.expand_dims(x, 1), jnp.expand_dims(x, -1)), [real(2, 3)]),
    Case("reduce_sum", SUMS, lambda x: [lax.reduce_sum(x, a) for a in ((0,), (0, 2), (0, 1, 2))],
         [real(3, 4, 2)]),
    Case("reduce_max", SUMS, lambda x: (jnp.max(x, 0), jnp.max(x, (0, 2)), jnp.max(x)), [real(3, 4, 2)]),
    Case("reduce_min", SUMS, lambda x: (jnp.min(x, 0), jnp.min(x, (0, 2)), jnp.min(x)), [real(3, 4, 2)]),
    Case("reduce_ties", "f32", lambda x: (jnp.max(x, 1), jnp.min(x, 0)), [ties(4, 5)]),
    Case("reduce_edges", "f32 f64", lambda x: (lax.reduce_max(x.reshape(6, 4), (1,)), lax.reduce_min(x.reshape(6, 4), (1,))), [edge(24)], modes="v"),
    Case("reduce_none", "f32", lambda x: jnp.sum(x, 0), [real(0, 3)]),
    Case("argmax", SUMS, lambda x: (lax.argmax(x, 0, jnp.int32), lax.argmax(x, 1, jnp.uint8)), [real(4, 5)]),
    Case("argmax_ties", "f32 s32", lambda x: lax.argmax(x, 1, jnp.int32), [ties(6, 5)]),
    Case("argmax_edges", "f32 f64", lambda x: lax.argmax(x.reshape(6, 4), 1, jnp.int32), [edge(24)]),
    Case("argmin", SUMS + " u8 bool", lambda x: (lax.argmin(x, 0, jnp.int32), lax.argmin(x, 1, jnp.uint8)), [real(4, 5)]),
    Case("argmin_ties", "f32 s32", lambda x: lax.argmin(x, 1, jnp.int32), [ties(6, 5)]),
    Case("argmin_edges", "f32 f64 s32 u8", lambda x: lax.argmin(x.reshape(6, 4), 1, jnp.int32), [edge(24)]),
    dot("dot", (3, 4), (4, 5), ((1,), (0,))),
    dot("dot_vectors", (7,), (7,), ((0,), (0,))),
    dot("dot_outer", (3,), (2,), ((), ())),
    dot("dot_transposed", (4, 3), (5, 4), ((0,), (1,))),
    dot("dot_two_contracted", (2, 3, 4), (4, 5, 3), ((1, 2), (2, 0)), variants="f32 f64 bf16"),
    dot("dot_batch", (2, 3, 4), (2, 4, 5), ((2,), (1,)), ((0,), (0,))),
    dot("dot_batch_inside", (3, 2, 4), (4, 5, 2), ((2,), (0,)), ((1,), (2,)), variants="f32 f64 bf16"),
    dot("dot_two_batches", (2, 3, 4, 2), (2, 5, 3, 4), ((2,), (3,)), ((0, 1), (0, 2)), variants="f32 f64"),
    dot("dot_empty", (2, 0), (0, 3), ((1,), (0,)), variants="f32"),
    dot("dot_large", (33, 20), (20, 17), ((1,), (0,)), variants="f32"),
    matmul("matmul_vector_matrix", (4,), (4, 3)),
    matmul("matmul_matrix_vector", (3, 4), (4,)),
    matmul("matmul_vectors", (4,), (4,)),
    matmul("matmul_batched", (2, 3, 4), (2, 4, 2)),
    matmul("matmul_broadcast", (5, 1, 3, 4), (2, 4, 2)),
    matmul("matmul_one_batched", (2, 3, 4), (4, 2), "f32 bf16 f64"),
]  # fmt: skip
