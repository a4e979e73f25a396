"""Kernels over grids, as pallas interprets them: blocks, edges, index maps, accumulators, aliases, program ids."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from case import Case, real

Spec = pl.BlockSpec


def call(body, grid, ins, out, shape, **options):
    def run(*operands):
        made = pl.pallas_call(body, grid=grid, in_specs=ins, out_specs=out, out_shape=jax.ShapeDtypeStruct(shape, operands[0].dtype),
                              interpret=True, **options)  # fmt: skip
        return made(*operands)

    return run


def add(x, y, o):
    o[...] = x[...] + y[...]


def double(x, o):
    o[...] = x[...] * 2


def sum_block(x, o):
    o[...] = jnp.sum(x[...], keepdims=True)


def matmul(x, w, o, total):
    @pl.when(pl.program_id(2) == 0)
    def _():
        total[...] = jnp.zeros_like(total)

    total[...] += jnp.dot(x[...], w[...])

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def _():
        o[...] = total[...]


def sum_rows(x, o):
    @pl.when(pl.program_id(1) == 0)
    def _():
        o[...] = jnp.zeros_like(o)

    o[...] += jnp.sum(x[...], 1)


def transpose(x, o):
    o[...] = x[...].T


def ids(x, o):
    i, j = pl.program_id(0), pl.program_id(1)  # interpreted, pallas has them at the top alone

    def step(k, total):
        return total + k.astype(jnp.int32) * i + j

    o[...] = x[...] + lax.fori_loop(0, 3, step, jnp.int32(pl.num_programs(1))).astype(x.dtype)


def row_of_all(x, o):
    o[...] = x[pl.ds(pl.program_id(0), 1), :]


def prefix(x, o, total):
    @pl.when(pl.program_id(0) == 0)
    def _():
        total[...] = jnp.zeros_like(total)

    total[...] += x[...]
    o[...] = total[...]


def whole(x, o):
    o[...] = x[...] * x[...]


ROWS = Spec((2, 6), lambda i: (i, 0))
SOME = "f32 s32 bf16"

CASES = [
    Case("add_blocks", SOME, call(add, (4,), [ROWS, Spec((6,), lambda i: (0,))], ROWS, (8, 6)), [real(8, 6), real(6)], modes="v"),
    Case("add_edges", SOME, call(add, (3, 3), [Spec((3, 2), lambda i, j: (i, j)), Spec((2,), lambda i, j: (j,))], Spec((3, 2), lambda i, j: (i, j)), (7, 5)),
         [real(7, 5), real(5)], modes="v"),
    Case("sum_edges", "f32 s32", call(sum_block, (3,), [Spec((3,), lambda i: (i,))], Spec((1,), lambda i: (i,)), (3,)), [real(7)], modes="v"),
    Case("matmul", "f32 s32", lambda x, w: call(matmul, (2, 2, 3), [Spec((2, 2), lambda i, j, k: (i, k)), Spec((2, 2), lambda i, j, k: (k, j))],
         Spec((2, 2), lambda i, j, k: (i, j)), (4, 4), scratch_shapes=[pltpu.VMEM((2, 2), x.dtype)])(x, w), [real(4, 6), real(6, 4)], modes="v"),
    Case("sum_rows", "f32 s32", call(sum_rows, (2, 3), [Spec((2, 2), lambda i, j: (i, j))], Spec((2,), lambda i, j: (i,)), (4,)), [real(4, 6)], modes="v"),
    Case("transpose", SOME, call(transpose, (2, 2), [Spec((2, 3), lambda i, j: (j, i))], Spec((3, 2), lambda i, j: (i, j)), (6, 4)), [real(4, 6)], modes="v"),
    Case("turned", SOME, call(double, (3, 2), [Spec((2, 3), lambda i, j: (2 - i, j))], Spec((2, 3), lambda i, j: (i, 1 - j)), (6, 6)), [real(6, 6)], modes="v"),
    Case("squeezed", SOME, call(double, (4, 2), [Spec((None, 3), lambda i, j: (i, j))], Spec((None, 3), lambda i, j: (3 - i, j)), (4, 6)), [real(4, 6)], modes="v"),
    Case("ids", SOME, call(ids, (2, 3), [Spec((2, 2), lambda i, j: (i, j))], Spec((2, 2), lambda i, j: (i, j)), (4, 6)), [real(4, 6)], modes="v"),
    Case("pinned", SOME, call(row_of_all, (4,), [Spec(memory_space=pl.ANY)], Spec((1, 3), lambda i: (i, 0)), (4, 3)), [real(4, 3)], modes="v"),
    Case("prefix", "f32 s32", lambda x: call(prefix, (5,), [Spec((2,), lambda i: (i,))], Spec((2,), lambda i: (i,)), (10,),
         scratch_shapes=[pltpu.VMEM((2,), x.dtype)])(x), [real(10)], modes="v"),
    Case("in_place", SOME, call(double, (2,), [Spec((2, 3), lambda i: (i, 0))], Spec((2, 3), lambda i: (i, 0)), (6, 3), input_output_aliases={0: 0}),
         [real(6, 3)], modes="v"),
    Case("no_grid", SOME, call(whole, (), [Spec()], Spec(), (3, 4)), [real(3, 4)], modes="v"),
    Case("one_block", SOME, call(double, (), [Spec((2, 4), lambda: (0, 0))], Spec((2, 4), lambda: (0, 0)), (2, 4)), [real(3, 4)], modes="v"),
]  # fmt: skip
