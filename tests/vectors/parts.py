"""Parts along one dimension, dimensions put elsewhere, arrays beside one another, bounds."""

import jax
import jax.numpy as jnp
from jax import lax

from case import Case, edge, index, real, ties

MOVE = "f32 bf16 s32 bool"
FLOAT = "f32 f64 bf16"
DIVIDED = "f32 f64 bf16 s32 s8 u8"

# The texts of parts.c.
TEXTS = [
    "4::1", "3, -5::, None, None", "::3, None, -4:0", ":2:-2,None,None", "-3:5:3, None, 1, 1:", "-5::-1", "None, ::2",
    "None, ::1, -3, None, -6:2:", "...", "-1,-2,...,:-3", "0, 6::-2, None, :0", ":2, 6:-6:1", "None, None",
    "-5::-3,-6:2:-2,2::3", "None", "4:-8,-3,0", ":2:-1", "-3", "None,-1,-1:-3,None,4:-5:", "5:-6,3,5:0", "1, None, None",
    "-1::-2, :-9:-3, :1", "2,-8::-3,4:-6:-1", "None, None, -4:-5:-3, ::", "-3,...", "-4, :", "3,0", ":-6, 0:-1:-3, ..., :-6",
    ":1,6::3,1", "None,-2,None,-3", "2:,:-7:1", "4::2,None,None,-4::-1,:-4", "-5", "..., 1:", "1:-1, ::2, ::-1", "2, 3, -1",
    "::-1, ..., None",
]  # fmt: skip
SETS = [
    "1:-1", ":, 2", "-1, ::2", "::-2, 1:5", "..., None, :", "3:3", "2, 3", "::3, ::-1", "1::2, -2::-3", "...",
]  # fmt: skip


def index_all(x):
    return [eval(f"x[{text}]", {"x": x}) for text in TEXTS]


def index_set_all(x, row, part):
    x = jnp.asarray(x)
    rows = [eval(f"x.at[{text}].set(row)", {"x": x, "row": row}) for text in SETS]
    return rows + [x.at[1:-1, ::-2].set(part), x.at[..., 0].set(x.dtype.type(2))]


def dynamic_at(x, i, j):
    n, m = x.shape[0], x.shape[2]
    i, j = jnp.clip(i, 0, n - 1), jnp.clip(j, 0, m - 1)
    return lax.dynamic_index_in_dim(x, i, 0, keepdims=False), lax.dynamic_index_in_dim(x, j, -1, keepdims=False)


def dynamic_put(x, row, i):
    return lax.dynamic_update_index_in_dim(x, row, jnp.clip(i, 0, x.shape[1] - 1), 1)


def dynamic_parts(x, u, i):
    i = jnp.clip(i, 0, 2)
    return lax.dynamic_slice_in_dim(x, i, 3, 1), lax.dynamic_update_slice_in_dim(x, u, i, -1)


def rows(x, i):
    return jax.vmap(lambda row, at: lax.dynamic_index_in_dim(row, at, 0, keepdims=False))(x, i)


CASES = [
    Case("slice_in_dim", MOVE, lambda x: (lax.slice_in_dim(x, 1, 4, 1, 0), lax.slice_in_dim(x, -5, None, 2, -1), lax.slice_in_dim(x, 0, -1, 3, 1),
                                          lax.slice_in_dim(x, 2, 2, 1, 0)), [real(5, 6)]),
    Case("index", MOVE, index_all, [real(5, 6, 3)]),
    Case("index_set", MOVE, index_set_all, [real(5, 6, 3), real(3), real(3, 3, 3)]),
    Case("matrix_transpose", MOVE, lambda x: (jnp.matrix_transpose(x), x[0].mT), [real(2, 3, 4)]),
    Case("at", MOVE, lambda x: (x[1], x[:, -2], lax.index_in_dim(x, 0, 2, keepdims=False)), [real(3, 4, 2)]),
    Case("at_vector", "f32", lambda x: x[-1], [real(4)]),
    Case("dynamic_at", MOVE, dynamic_at, [real(3, 4, 2), index(4, above=-2), index(3)]),
    Case("dynamic_at_u8", "f32", lambda x, i: lax.dynamic_index_in_dim(x, i, 0, keepdims=False), [real(300, 2), index(255, dtype=jnp.uint8)]),
    Case("dynamic_put", MOVE, dynamic_put, [real(3, 4, 2), real(3, 2), index(6, above=-2)]),
    Case("dynamic_parts", MOVE, dynamic_parts, [real(3, 5), real(3, 3), index(4, above=-1)]),
    Case("rows", "f32", rows, [real(4, 5), index(5, 4)]),
    Case("split", MOVE, lambda x: lax.split(x, (2, 0, 3, 1), 1), [real(2, 6)]),
    Case("squeeze", MOVE, lambda x: (jnp.squeeze(x), jnp.squeeze(x, 0), jnp.squeeze(x, (-1, 2))), [real(1, 3, 1, 2, 1)]),
    Case("moveaxis", MOVE, lambda x: (jnp.moveaxis(x, 0, -1), jnp.moveaxis(x, 3, 1)), [real(2, 3, 4, 5)]),
    Case("swapaxes", MOVE, lambda x: (jnp.swapaxes(x, 0, -1), jnp.swapaxes(x, 1, 1)), [real(2, 3, 4)]),
    Case("stack", MOVE, lambda x, y, z: (jnp.stack((x, y, z)), jnp.stack((x, y), -1), jnp.stack((z,), 1)), [real(2, 3), real(2, 3), real(2, 3)]),
    Case("mod", DIVIDED, jnp.remainder, [edge(24), edge(24)], modes="v"), Case("floor_divide", FLOAT, jnp.floor_divide, [edge(24), edge(24)], modes="v"),
    Case("floor_divide_odd", "s32 s8 u8", lambda x, y: jnp.floor_divide(x, y + y + y.dtype.type(1)), [edge(24), edge(24)]),
    Case("mod_rows", DIVIDED, jnp.remainder, [real(6, 4, scale=20), real(4, scale=3)]),
    Case("floor_divide_rows", FLOAT, jnp.floor_divide, [real(6, 4, scale=20), real(4, scale=3)]),
    Case("square", "f32 f64 bf16 s32", lax.square, [real(6)]),
    Case("clamp", "f32 bf16 s32", lambda x, a, b: (lax.clamp(a, x, b), lax.clamp(b, x, a)), [ties(24), ties(24), ties(24)]),
    Case("clamp_scalar", FLOAT, lambda x, a: lax.clamp(jnp.broadcast_to(a, x.shape), x, jnp.full_like(x, 0.5)), [real(4, 6), real()]),
    Case("broadcast_to", MOVE, lambda x: (jnp.broadcast_to(x, (4, 3, 2)), jnp.broadcast_to(x, (3, 1))), [real(3, 1)]),
    Case("take", MOVE, lambda x, i: (jnp.take(x, i, 0, mode="clip"), jnp.take(x, i, 1, mode="clip"), jnp.take(x, i, -1, mode="clip")),
         [real(3, 4, 2), index(5, 2, 3, above=-2)]),
    Case("take_u8", "f32", lambda x, i: jnp.take(x, i, 0, mode="clip"), [real(200), index(255, 5, dtype=jnp.uint8)]),
    Case("cumsum", "f32 f64 bf16 s32 u8", lambda x: (lax.cumsum(x, 0), lax.cumsum(x, 1, reverse=True), lax.cumsum(x, 2)), [real(1, 7, 8)]),
    Case("cumsum_long", FLOAT, lambda x: (lax.cumsum(x, 0), lax.cumsum(x, 0, reverse=True)), [real(1000)]),
    Case("logsumexp", FLOAT, lambda x: (jax.nn.logsumexp(x), jax.nn.logsumexp(x, 0), jax.nn.logsumexp(x, (-1, 0), keepdims=True)), [real(3, 4, 2, scale=30)]),
    Case("logsumexp_edges", "f32 f64", lambda x: jax.nn.logsumexp(x.reshape(12, 2), 1), [edge(24)], modes="v"),
    Case("logsumexp_none", "f32", lambda x: jax.nn.logsumexp(x - jnp.inf, 1), [real(2, 3)], modes="v"),
    Case("reduce_bools", "bool", lambda x: (jnp.any(x, 1), jnp.all(x, 1), jnp.any(x), jnp.all(x, (0, 1), keepdims=True)), [real(6, 2)]),
]  # fmt: skip
