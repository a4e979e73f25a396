"""Functions with derivatives of their own: custom_vjp and custom_jvp, under every transform, with collectives in their rules. Where the
functions are not of a mesh their rules are not their derivatives, so that it shows which was used."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from case import Case, index, real, shards

FLOAT = "f32 f64"
LINES = "d=2 d=4 d=8"
GRID = "a=4,b=2:a a=4,b=2:b,a"


# --- x, w -> tanh(x w), sum of x. Its derivative is said to be 3 w, 5 x, and -2 ---


def two(x, w):
    return jnp.tanh(x * w), jnp.sum(x)


two_by_vjp = jax.custom_vjp(two)
two_by_vjp.defvjp(lambda x, w: (two(x, w), (x, w)), lambda xw, cts: (cts[0] * xw[1] * 3 - cts[1] * 2, jnp.sum(cts[0] * xw[0] * 5)))
two_by_jvp = jax.custom_jvp(two)
two_by_jvp.defjvp(lambda xw, ts: (two(*xw), (ts[0] * xw[1] * 3 + ts[1] * xw[0] * 5, jnp.sum(ts[0]) * -2)))


def whole(f, x, w):
    y, z = f(x, w)
    return jnp.sum(y * y) + z * z


def scanned(f, x, w):
    return lax.scan(lambda x, _: f(x, w), x, None, length=3)


def branch(f, i, x, w):
    return lax.switch(i, [lambda x, w: f(x, w)[0], lambda x, w: x * w], x, w)


def until(f, x, w):
    return lax.while_loop(lambda c: jnp.sum(c * c) > 1, lambda c: f(c, w)[0] * 0.5, x)


def both(name, function, inputs, variants=FLOAT, vjp="vg", jvp="vjg", **more):
    """The same of a function by custom_vjp, and by custom_jvp; modes of each."""
    ways = [("vjp", two_by_vjp, vjp), ("jvp", two_by_jvp, jvp)]
    return [Case(f"{name}_by_{way}", variants, partial(function, f), inputs, modes=modes, **more) for way, f, modes in ways]


# --- Integers have no derivatives: i, x -> i + 1, x i. Said to be 7 i ---


def scaled(i, x):
    return i + 1, x * i.astype(x.dtype)


scaled_by_vjp = jax.custom_vjp(scaled)
scaled_by_vjp.defvjp(lambda i, x: (scaled(i, x), i), lambda i, cts: (np.zeros((), jax.dtypes.float0), cts[1] * 7 * i.astype(cts[1].dtype)))
scaled_by_jvp = jax.custom_jvp(scaled)
scaled_by_jvp.defjvp(lambda ix, ts: (scaled(*ix), (np.zeros((), jax.dtypes.float0), ts[1] * 7 * ix[0].astype(ts[1].dtype))))


# --- Over an axis of vmap: x -> x minus the mean. Said to be twice that, of the members' cotangents or tangents ---


def centred(x):
    return x - lax.pmean(x, "i")


centred_by_vjp = jax.custom_vjp(centred)
centred_by_vjp.defvjp(lambda x: (centred(x), x), lambda x, ct: (2 * centred(ct) * jnp.cos(x),))
centred_by_jvp = jax.custom_jvp(centred)
centred_by_jvp.defjvp(lambda x, t: (centred(x[0]), 2 * centred(t[0]) * jnp.cos(x[0])))


# --- In a shard_map: x is of each device, w of all ---


def summed(v):
    """x, w -> the sum of tanh(x w) over the variant's axes."""

    def f(x, w):
        return lax.psum(jnp.tanh(x * w), v.axes)

    def slope(x, w):
        return 1 - jnp.tanh(x * w) ** 2

    def backward(xw, ct):
        x, w = xw
        ct = ct * slope(x, w)
        return ct * w, lax.psum(jnp.sum(ct * x), tuple(v.mesh))

    by_vjp, by_jvp = jax.custom_vjp(f), jax.custom_jvp(f)
    by_vjp.defvjp(lambda x, w: (f(x, w), (x, w)), backward)
    by_jvp.defjvp(lambda xw, ts: (f(*xw), lax.psum(slope(*xw) * (ts[0] * xw[1] + xw[0] * ts[1]), v.axes)))
    return by_vjp, by_jvp


def moved(function, back):
    """Moving collectives, squared before: the way back is another one."""

    def f(x):
        return function(x * x)

    by_vjp, by_jvp = jax.custom_vjp(f), jax.custom_jvp(f)
    by_vjp.defvjp(lambda x: (f(x), x), lambda x, ct: (2 * x * back(ct),))
    by_jvp.defjvp(lambda x, t: (f(x[0]), function(2 * x[0] * t[0])))
    return by_vjp, by_jvp


def gathers(v):
    return moved(lambda x: lax.all_gather(x, v.axes, tiled=True), lambda ct: lax.psum_scatter(ct, v.axes, tiled=True))


def trades(v):
    return moved(lambda x: lax.all_to_all(x, v.axes, 1, 0, tiled=True), lambda ct: lax.all_to_all(ct, v.axes, 0, 1, tiled=True))


def passes(v):
    ring = [(i, (i + 1) % v.members) for i in range(v.members)]
    return moved(lambda x: lax.ppermute(x, v.axes, ring), lambda ct: lax.ppermute(ct, v.axes, [(to, of) for of, to in ring]))


def halves(v):
    groups = [list(range(0, v.members, 2)), list(range(1, v.members, 2))]
    return moved(lambda x: lax.psum(x, v.axes, axis_index_groups=groups), lambda ct: lax.psum(ct, v.axes, axis_index_groups=groups))


def loop(f, x, w):
    """A sum a step: x changes on each device, by what all have."""
    return lax.scan(lambda x, _: (jnp.sin(x) * jnp.sum(f(x, w)), None), x, None, length=2)[0]


def gradients(v, f, x, w):
    return jax.grad(lambda x, w: jnp.sum(jnp.sin(f(x, w))), (0, 1))(x, w)


def rows(f, x, w):
    return jax.vmap(f, (0, None))(x, w)


def on_mesh(name, function, inputs, specs, vjp="vg", jvp="vjg", variants=f"{LINES} {GRID}", **more):
    """function: of (variant, way, operands..), where way is 0 for custom_vjp and 1 for custom_jvp."""
    return [
        Case(f"{name}_by_{way}", variants, lambda v, *operands, k=k: function(v, k, *operands), inputs, specs=specs, modes=modes, **more)
        for k, (way, modes) in enumerate((("vjp", vjp), ("jvp", jvp)))
    ]


OPERANDS = [real(3), real()]
SHARDS = [shards(2, 3), real()]

CASES = [
    *both("two", lambda f, x, w: f(x, w), OPERANDS, "f32 f64 bf16"),
    *both("unused", lambda f, x, w: f(x, w)[0], OPERANDS),
    *both("slopes", lambda f, x, w: jax.grad(partial(whole, f), (0, 1))(x, w), OPERANDS, vjp="vj"),
    *both("hessian", lambda f, x, w: jax.hessian(partial(whole, f))(x, w), OPERANDS, vjp="v", jvp="v"),
    *both("vmap", lambda f, x, w: jax.vmap(f, (0, None))(x, w), [real(4, 3), real()]),
    *both("vmap_of_slopes", lambda f, x, w: jax.vmap(jax.grad(partial(whole, f), (0, 1)), (None, 0))(x, w), [real(3), real(4)], vjp="v", jvp="v"),
    *both("scan", scanned, OPERANDS),
    *both("switch", branch, [index(2), *OPERANDS]),
    *both("while", until, [real(3, scale=4.0), real()], vjp="v", jvp="vj"),
    Case("integer_by_vjp", FLOAT, scaled_by_vjp, [index(5), real(3)], modes="vg"),
    Case("integer_by_jvp", FLOAT, scaled_by_jvp, [index(5), real(3)]),
    Case("centred_by_vjp", FLOAT, lambda x: jax.vmap(lambda x: jax.vjp(centred_by_vjp, x)[1](jnp.sin(x))[0], axis_name="i")(x), [real(4, 3)], modes="v"),
    Case("centred_by_jvp", FLOAT, lambda x: jax.vmap(centred_by_jvp, axis_name="i")(x), [real(4, 3)]),
    *on_mesh("psum", lambda v, k, x, w: summed(v)[k](x, w), SHARDS, "A . > R"),
    *on_mesh("psum_loop", lambda v, k, x, w: loop(summed(v)[k], x, w), SHARDS, "A . > A"),
    *on_mesh("psum_rows", lambda v, k, x, w: rows(summed(v)[k], x, w), SHARDS, "A . > R"),
    *on_mesh("psum_slopes", lambda v, k, x, w: gradients(v, summed(v)[k], x, w), SHARDS, "A . > A .", vjp="vj"),
    *on_mesh("all_gather", lambda v, k, x: gathers(v)[k](x), [shards(2, 3)], "A > A"),
    *on_mesh("all_to_all", lambda v, k, x: trades(v)[k](x), [shards(2, 8)], "A > A"),
    *on_mesh("ppermute", lambda v, k, x: passes(v)[k](x), [shards(2, 3)], "A > A", variants=f"{LINES} a=4,b=2:a"),
    *on_mesh("groups", lambda v, k, x: halves(v)[k](x), [shards(2, 3)], "A > A", variants="d=4 d=8", unchecked=True),
]  # fmt: skip
