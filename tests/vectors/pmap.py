"""pmap: what is mapped along which dimension, collectives over the axis, derivatives inside and around, vmap of both kinds, control flow
around and functions inside. A nest of pmaps, which JAX 0.10 has no more, is a shard_map over both axes."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from case import Case, real

LINES = "d=2 d=4 d=8"
GRID = "a=4,b=2"


def n(variant):
    return variant.devices


def pmap(function, in_axes=0, out_axes=0, axis_name="d"):
    return jax.pmap(function, axis_name=axis_name, in_axes=in_axes, out_axes=out_axes)


def mapped(v, x, w, y):
    return pmap(lambda x, w, y: (jnp.tanh(x) * w, jnp.sin(y), x * 2, jnp.sum(y) * w), (0, None, 1), (1, 0, None, 0))(x, w, y)


def product(x, w):
    return lax.psum(jnp.sin(x) * w, "d") * x


def sums(v, x, w):
    return pmap(lambda x, w: (product(x, w), lax.pmean(x * w, "d")), (0, None), (1, 0))(x, w)


def sum_once(v, x, w):
    """A sum that all devices have, and what each has of its own: both are the first's."""
    return pmap(lambda x, w: (product(x, w), lax.psum(x * w, "d")), (0, None), None)(x, w)


def largest(v, x):
    return pmap(lambda x: (lax.pmax(x, "d"), lax.pmin(x, "d"), lax.axis_index("d"), lax.psum(1, "d") + lax.axis_index("d")))(x)


def exchanges(v, x):
    def one(x):
        ring = [(i, (i + 1) % v.devices) for i in range(v.devices)]
        swapped = lax.all_to_all(x, "d", 0, 1, tiled=True)
        return lax.all_gather(x[0], "d") * x[1, 0], lax.ppermute(x, "d", ring), lax.psum_scatter(x * x, "d", tiled=True), swapped

    return pmap(one)(x)


def error(w, x, y):
    off = jnp.tanh(jnp.matmul(x, w)) - y
    return lax.pmean(jnp.mean(off * off), "d")


def step(v, w, x, y):
    """A training step as data parallelism has it: the parameters once, the batch cut, gradients averaged."""

    def one(w, x, y):
        loss, slope = jax.value_and_grad(error)(w, x, y)
        return w - lax.pmean(slope, "d"), loss

    return pmap(one, (None, 0, 0), None)(w, x, y)


def loss(v, x, w):
    return sum(jnp.sum(y * y) for y in sums(v, x, w))


def loss_once(v, x, w):
    """What differs between devices is used linearly: XLA computes with each device's own after that, Axle with the first's."""
    own, once = sum_once(v, x, w)
    return jnp.sum(own) + jnp.sum(once * once)


def captured(v, x, w):
    return pmap(lambda x: product(x, w))(x)


def jvp_inside(v, x, w, dx):
    return pmap(lambda x, w, dx: jax.jvp(lambda x: product(x, w), (x,), (dx,)), (0, None, 0))(x, w, dx)


def linear_inside(v, x, w, dx):
    def one(x, w, dx):
        y, forward = jax.linearize(lambda x: product(x, w), x)
        return y, forward(dx), jax.linear_transpose(forward, x)(dx)[0]

    return pmap(one, (0, None, 0))(x, w, dx)


def vmap_of(v, x, w):
    return jax.vmap(lambda x: pmap(product, (0, None), 1)(x, w), 1, 1)(x)


def named_vmap_of(v, x, w):
    return jax.vmap(lambda x: pmap(lambda x: product(x, w) + lax.psum(x, "k") * lax.pmean(x * x, ("k", "d")))(x), 1, axis_name="k")(x)


def of_vmap(v, x, w):
    return pmap(lambda x: jax.vmap(lambda x: product(x, w) + lax.psum(x, "k") * lax.pmean(x * x, ("k", "d")), axis_name="k")(x))(x)


def in_scan(v, x, w):
    def body(x, w):
        y = pmap(lambda x, w: jnp.tanh(product(x, w)), (0, None))(x, w)
        return y, y[0]

    return lax.scan(body, x, w)


def in_cond(v, p, x, w):
    return lax.cond(jnp.sum(p) > 0, lambda x: pmap(product, (0, None))(x, w), lambda x: jnp.sin(x), x)


def of_calls(v, x, w):
    @jax.custom_vjp
    def own(x):
        return jnp.sin(x)

    own.defvjp(lambda x: (own(x), x), lambda x, ct: (lax.psum(ct, "d") * x,))
    once = jax.jit(product)

    def one(x, w):
        y = lax.fori_loop(0, 2, lambda i, x: once(x, w), x)
        return own(y) * x + jax.checkpoint(product)(x, w)

    return pmap(one, (0, None))(x, w)


def nest(v, function, in_specs, out_specs, squeezes, expands):
    """squeezes: of each operand the dimensions that go; expands: of each result those that come."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()[: v.devices]).reshape(tuple(v.mesh.values())), tuple(v.mesh))

    def block(*xs):
        made = function(*(jnp.squeeze(x, dims) for x, dims in zip(xs, squeezes)))
        return tuple(jnp.expand_dims(y, dims) for y, dims in zip(made, expands))

    return jax.shard_map(block, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)


def nested(v, x, w):
    def inner(x, w):
        inside = lax.psum(jnp.sin(x) * w, "b")
        return inside * lax.pmean(x, "a"), lax.psum(x * w, ("a", "b")) * x, lax.axis_index("a") * x

    return nest(v, inner, (P("a", None, "b"), P("b")), (P("b", "a"), P("a"), P("b")), ((0, 2), (0,)), ((0, 1), (0,), (0,)))(x, w)


CASES = [
    Case("pmap", LINES, mapped, [real(n, 3), real(), real(2, n)], with_variant=True),
    Case("pmap_sums", LINES, sums, [real(n, 3), real(3)], with_variant=True),
    Case("pmap_sum_once", LINES, sum_once, [real(n, 3), real(3)], with_variant=True),
    Case("pmap_largest", LINES, largest, [real(n, 3)], with_variant=True, modes="v"),
    Case("pmap_exchanges", "d=2 d=4", exchanges, [real(n, n, n)], with_variant=True),
    Case("pmap_step", LINES, step, [real(3, 2), real(n, 4, 3), real(n, 4, 2)], with_variant=True),
    Case("pmap_grad", LINES, lambda v, *xs: jax.grad(lambda *ys: loss(v, *ys), (0, 1))(*xs), [real(n, 3), real(3)], with_variant=True),
    Case("pmap_grad_once", LINES, lambda v, *xs: jax.grad(lambda *ys: loss_once(v, *ys), (0, 1))(*xs), [real(n, 3), real(3)], with_variant=True),
    Case("pmap_captured", "d=4", captured, [real(n, 3), real(3)], with_variant=True),
    Case("pmap_jvp", "d=4", jvp_inside, [real(n, 3), real(3), real(n, 3)], with_variant=True),
    Case("pmap_linear", "d=4", linear_inside, [real(n, 3), real(3), real(n, 3)], with_variant=True, modes="vj"),
    Case("pmap_under_vmap", "d=4", vmap_of, [real(n, 5, 3), real(3)], with_variant=True),
    Case("pmap_under_named_vmap", "d=4", named_vmap_of, [real(n, 5, 3), real(3)], with_variant=True),
    Case("pmap_of_vmap", "d=4", of_vmap, [real(n, 5, 3), real(3)], with_variant=True),
    Case("pmap_in_scan", "d=4", in_scan, [real(n, 3), real(5, 3)], with_variant=True),
    Case("pmap_in_cond", "d=4", in_cond, [real(2), real(n, 3), real(3)], with_variant=True),
    Case("pmap_of_calls", "d=4", of_calls, [real(n, 3), real(3)], with_variant=True, modes="vg"),
    Case("pmap_nested", GRID, nested, [real(4, 3, 2), real(2)], with_variant=True),
]  # fmt: skip
