"""Kernels transformed: derivatives and batches, of kernels that run and of the plain programs that they are when interpreted.

Forward derivatives and batches are pallas'. It has no reverse ones: gradients are those of its forward ones over a basis where it has these (not of kernels
with scratch, aliases, masks or program ids), and of the same function without a kernel otherwise."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import triton

from case import Case, real

Spec = pl.BlockSpec


def call(body, grid, ins, out, shape, **options):
    def run(*operands):
        made = pl.pallas_call(body, grid=grid, in_specs=ins, out_specs=out, out_shape=jax.ShapeDtypeStruct(shape, operands[0].dtype),
                              interpret=True, **options)  # fmt: skip
        return made(*operands)

    return run


def gradient(function):
    """(operands.., cotangent) -> cotangents, by reverse derivatives."""
    return lambda *given: jax.vjp(function, *given[:-1])[1](given[-1])


def gradient_by_forward(function):
    """One element after the other: pallas does not batch its forward derivatives by their tangents alone."""

    def back(*given):
        operands, ct = given[:-1], given[-1]
        along = jax.jit(lambda *tangents: jnp.sum(ct * jax.jvp(function, operands, tangents)[1]))
        made = []
        for k, operand in enumerate(operands):
            zeros = [jnp.zeros_like(other) for other in operands]
            elements = []
            for e in range(operand.size):
                zeros[k] = jnp.zeros(operand.size, operand.dtype).at[e].set(1).reshape(operand.shape)
                elements.append(along(*zeros))
            made.append(jnp.stack(elements).reshape(operand.shape))
        return tuple(made)

    return back


# --- Bodies ---


def bend(x, o):
    o[...] = x[...] * x[...] + jnp.sin(x[...])


def product_block(x, w, o, total):
    @pl.when(pl.program_id(2) == 0)
    def _():
        total[...] = jnp.zeros_like(total)

    total[...] += jnp.dot(x[...], w[...])

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def _():
        o[...] = total[...]


def doubling_rows(x, o):
    def step(i, factor):
        o[i, :] = x[i, :] * factor + jnp.cos(x[i, :])
        return factor * 2

    lax.fori_loop(0, 3, step, jnp.ones((), x.dtype))


def times_scale(x, w, o):
    o[...] = x[...] * w[...]


def twice(x, o):
    o[...] = x[...] * 2


def masked(x, o):
    inside = lax.broadcasted_iota(jnp.int32, (4,), 0) + pl.program_id(0) * 4 < 10
    triton.store(o.at[pl.ds(0, 4)], jnp.exp(triton.load(x.at[pl.ds(0, 4)], mask=inside, other=0.0)), mask=inside)


def chosen(x, o):
    o[...] = lax.cond(pl.program_id(0) % 2 == 0, jnp.sin, lambda v: v * v, x[...])


def sum_rows(x, o):
    @pl.when(pl.program_id(1) == 0)
    def _():
        o[...] = jnp.zeros_like(o)

    o[...] += jnp.sum(x[...] * x[...], 1)


def halved(x, o):
    def step(carry):
        value, count = carry
        return value * 0.5 + jnp.sin(value), count + 1

    o[...] = lax.while_loop(lambda carry: carry[1] < 4, step, (x[...], jnp.int32(0)))[0]


# --- Calls ---

edges = call(bend, (3, 3), [Spec((2, 3), lambda i, j: (i, j))], Spec((2, 3), lambda i, j: (i, j)), (5, 7))
rows = call(doubling_rows, (), [Spec()], Spec(), (3, 4))
scale = call(times_scale, (2, 2), [Spec((2, 3), lambda i, j: (i, j)), Spec((3,), lambda i, j: (j,))], Spec((2, 3), lambda i, j: (i, j)), (4, 6))
in_place = call(twice, (2,), [Spec((2, 3), lambda i: (i, 0))], Spec((2, 3), lambda i: (i, 0)), (6, 3), input_output_aliases={0: 0})
mask = call(masked, (3,), [Spec((4,), lambda i: (i,))], Spec((4,), lambda i: (i,)), (10,))
choice = call(chosen, (4,), [Spec((1, 3), lambda i: (i, 0))], Spec((1, 3), lambda i: (i, 0)), (4, 3))
squares = call(sum_rows, (2, 3), [Spec((2, 2), lambda i, j: (i, j))], Spec((2,), lambda i, j: (i,)), (4,))
halving = call(halved, (2,), [Spec((2,), lambda i: (i,))], Spec((2,), lambda i: (i,)), (4,))
squeezed = call(twice, (4, 2), [Spec((None, 3), lambda i, j: (i, j))], Spec((None, 3), lambda i, j: (3 - i, j)), (4, 6))


def product(x, w):
    made = call(product_block, (2, 2, 3), [Spec((2, 2), lambda i, j, k: (i, k)), Spec((2, 2), lambda i, j, k: (k, j))],
                Spec((2, 2), lambda i, j, k: (i, j)), (4, 4), scratch_shapes=[pltpu.VMEM((2, 2), x.dtype)])  # fmt: skip
    return made(x, w)


def plain_choice(x):
    return jnp.where(jnp.arange(4)[:, None] % 2 == 0, jnp.sin(x), x * x)


F = "f32 f64"


def both(name, function, inputs, modes="v", variants=F):
    """Of the kernel, and of it interpreted."""
    return [Case(name, variants, function, inputs, modes=modes), Case(name + "_plain", variants, function, inputs, modes=modes)]


CASES = [
    *both("edges", edges, [real(5, 7)], "vj"),
    *both("edges_grad", gradient_by_forward(edges), [real(5, 7), real(5, 7)]),
    *both("edges_vmap", jax.vmap(edges, 2, 1), [real(5, 7, 3)], "vj"),
    *both("product_grad", gradient(jnp.matmul), [real(4, 6), real(6, 4), real(4, 4)]),
    *both("product_vmap", jax.vmap(product), [real(3, 4, 6), real(3, 6, 4)]),
    *both("product_vmap_left", jax.vmap(product, (0, None)), [real(3, 4, 6), real(6, 4)]),
    *both("product_vmap_twice", jax.vmap(jax.vmap(product, (0, None)), (None, 0)), [real(2, 4, 6), real(3, 6, 4)]),
    *both("rows", rows, [real(3, 4)], "vj"),
    *both("rows_grad", gradient_by_forward(rows), [real(3, 4), real(3, 4)]),
    *both("rows_vmap", jax.vmap(rows), [real(2, 3, 4)], "vj"),
    *both("scale", scale, [real(4, 6), real(6)], "vj"),
    *both("scale_grad", gradient_by_forward(scale), [real(4, 6), real(6), real(4, 6)]),
    *both("scale_vmap_right", jax.vmap(scale, (None, 0)), [real(4, 6), real(3, 6)], "vj"),
    *both("in_place_vmap", jax.vmap(in_place), [real(2, 6, 3)], variants="f32 s32"),
    *both("in_place_grad", gradient(lambda x: x.at[:4].multiply(2)), [real(6, 3), real(6, 3)]),
    *both("mask", mask, [real(10)]),
    *both("mask_vmap", jax.vmap(mask), [real(3, 10)]),
    *both("mask_grad", gradient(jnp.exp), [real(10), real(10)]),
    *both("choice", choice, [real(4, 3)]),
    *both("choice_vmap", jax.vmap(choice), [real(2, 4, 3)]),
    *both("choice_grad", gradient(plain_choice), [real(4, 3), real(4, 3)]),
    *both("squares_vmap", jax.vmap(squares, 1), [real(4, 3, 6)]),
    *both("squares_grad", gradient(lambda x: jnp.sum(x * x, 1)), [real(4, 6), real(4)]),
    *both("halving", halving, [real(4)], "vj"),
    *both("squeezed_vmap", jax.vmap(squeezed, 1, 2), [real(4, 3, 6)], "vj"),
]  # fmt: skip
