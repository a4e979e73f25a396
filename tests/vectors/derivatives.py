"""vjp, linearize, Jacobians and Hessians: alone, of each other, with everything around and inside them; vmap split over a mesh."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from case import Case, index, real, shards

FLOAT = "f32 f64"
GIVEN = "v"  # the transform is in the case
LINES = "d=2 d=4 d=8"
GRID = "a=4,b=2"


def layers(x, w, s):
    """Two results, one a scalar."""
    return jnp.tanh(jnp.matmul(x, w)) * s, jnp.sum(jnp.exp(x)) * s


def loss(x, w, s):
    y, z = layers(x, w, s)
    return jnp.sum(y * y) + z * z


OPERANDS = [real(3), real(3, 2), real()]


def vjp(x, w, s, n, cy, cz):
    (y, z), pull = jax.vjp(layers, x, w, s)
    return (y, n + 1, z, *pull((cy, cz)))


def vjp_some(x, w, s, n, cy, cz):
    y, pull = jax.vjp(lambda w: layers(x, w, s)[0], w)
    return y, pull(cy)[0]


def linearize(x, w, s, dx, dw, ds, cy, cz):
    _, push = jax.linearize(layers, x, w, s)
    _, pull = jax.vjp(layers, x, w, s)
    return (*push(dx, dw, ds), *push(dx * 2, dw, ds), *pull((cy, cz)), *pull((cy * 3, cz)))


def flat(tree):
    return tuple(jax.tree.leaves(tree))


ALL = (0, 1, 2)


def edge_shapes(x, e):
    """A scalar, nothing at all, and a result that depends on no operand."""
    return jnp.sum(x) * jnp.exp(jnp.sum(e)), jnp.sum(x) * e, jnp.ones((2, 2), x.dtype)


def rnn(h, xs, w):
    return lax.scan(lambda h, x: (jnp.tanh(jnp.matmul(h, w) + x), jnp.sum(h * x)), h, xs)


def until(x, w):
    return lax.while_loop(lambda c: jnp.sum(c * c) > 1, lambda c: c * 0.5 * jnp.tanh(w), x)


def branch(i, x, w):
    return lax.switch(i, [lambda x, w: jnp.tanh(x) * w, lambda x, w: jnp.exp(x * w), lambda x, w: x], x, w)


def centred(x, w):
    """Of each of the members of i."""
    y = jnp.tanh(x * w)
    return y - lax.pmean(y, "i")


def hvp(x, w, s, vx, vw, vs):
    gradients, products = jax.jvp(jax.grad(loss, ALL), (x, w, s), (vx, vw, vs))
    return (*gradients, *products)


def captured_scan(x, w, s, v):
    """A function linearized outside, applied at every step; and through all of it a gradient."""

    def total(x):
        _, push = jax.linearize(lambda w: layers(x, w, s)[0], w)
        last, ys = lax.scan(lambda v, _: (v + 0.1 * jnp.mean(push(v)), push(v)), v, None, 3)
        return jnp.sum(last) + jnp.sum(ys * ys)

    return jax.value_and_grad(total)(x)


# --- In a shard_map: x is of each device, w of all ---


def device_layer(v, x, w):
    return lax.psum(jnp.tanh(jnp.matmul(x, w)), v.axes), x * 2


def vjp_inside(v, x, w, c):
    (y, z), pull = jax.vjp(lambda x, w: device_layer(v, x, w), x, w)
    dx, dw = pull((jnp.ones_like(y) * 0.5, c))
    return y, dx, dw


def linearize_inside(v, x, w, t):
    (y, z), push = jax.linearize(lambda x, w: device_layer(v, x, w), x, w)
    dy, dz = push(t, w * 0.25)
    return y, dy, dz


def device_loss(v, x, w):
    return lax.psum(jnp.sum(jnp.tanh(jnp.matmul(x, w)) ** 2), v.axes)


def jacrev_inside(v, x, w):
    return jax.jacrev(lambda w: lax.psum(jnp.tanh(jnp.matmul(x, w)), v.axes))(w)


def jacfwd_inside(v, x, w):
    return jax.jacfwd(lambda w: lax.psum(jnp.tanh(jnp.matmul(x, w)), v.axes))(w)


def hvp_inside(v, x, w, u):
    return jax.jvp(jax.grad(lambda w: device_loss(v, x, w)), (w,), (u,))


def hessian_inside(v, x, w):
    return jax.hessian(lambda w: device_loss(v, x, w))(w)


# --- vmap split over a mesh. JAX 0.10 fails on some of these when types are checked ---


def mapped(v, function, in_specs, out_specs, check_vma=True):
    mesh = jax.sharding.Mesh(np.array(jax.devices()[: v.devices]).reshape(tuple(v.mesh.values())), tuple(v.mesh))
    return jax.shard_map(function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_vma)


def over_b(v, x, w, check_vma=True):
    return mapped(v, lambda x, w: (lax.psum(jnp.tanh(x) * w, "b"), jnp.exp(x)), (P("b"), P()), (P(), P("b")), check_vma)(x, w)


def split(v, x, w):
    return jax.vmap(lambda x, w: over_b(v, x, w), (1, None), (0, 1), spmd_axis_name="a")(x, w)


def split_twice(v, x, w):
    """Members of members, over both axes."""
    whole = lambda x, w: mapped(v, lambda x, w: jnp.sum(jnp.tanh(x) * w), (P(), P()), P(), check_vma=False)(x, w)
    return jax.vmap(jax.vmap(whole, (0, None), spmd_axis_name="b"), (0, None), spmd_axis_name="a")(x, w)


def split_scan(v, x, w):
    body = lambda x, w: lax.scan(lambda c, s: (jnp.tanh(c * w + s), lax.psum(jnp.sum(c), "b")), jnp.ones_like(x), jnp.stack([x, x * 2]))
    return jax.vmap(lambda x, w: mapped(v, body, (P("b"), P()), (P("b"), P()), check_vma=False)(x, w), (0, None), spmd_axis_name="a")(x, w)


def split_grad(v, x, w):
    return jax.vmap(jax.grad(lambda x, w: jnp.sum(over_b(v, x, w)[0] ** 2), (0, 1)), (1, None), spmd_axis_name="a")(x, w)


def split_jacobian(v, x, w):
    return jax.vmap(jax.jacrev(lambda x: over_b(v, x, w, check_vma=False)[0]), 1, spmd_axis_name="a")(x)


def unmapped(x):
    return jax.vmap(lambda x: x * x, None, axis_size=3)(x)


CASES = [
    Case("vjp", "f32 f64 bf16", vjp, OPERANDS + [index(9, 4), real(2), real()], modes=GIVEN),
    Case("vjp_some", FLOAT, vjp_some, OPERANDS + [index(9, 4), real(2), real()], modes=GIVEN),
    Case("linearize", "f32 f64 bf16", linearize, OPERANDS * 2 + [real(2), real()], modes=GIVEN),
    Case("jacfwd", "f32 f64 bf16", lambda *xs: flat(jax.jacfwd(layers, ALL)(*xs)), OPERANDS),
    Case("jacrev", "f32 f64 bf16", lambda *xs: flat(jax.jacrev(layers, ALL)(*xs)), OPERANDS),
    Case("jacfwd_some", FLOAT, lambda *xs: flat(jax.jacfwd(layers, (0, 2))(*xs)), OPERANDS),
    Case("jacfwd_edges", FLOAT, lambda *xs: flat(jax.jacfwd(edge_shapes, (0, 1))(*xs)), [real(3), real(4, 0)]),
    Case("jacrev_edges", FLOAT, lambda *xs: flat(jax.jacrev(edge_shapes, (0, 1))(*xs)), [real(3), real(4, 0)]),
    Case("hessian", FLOAT, lambda *xs: flat(jax.hessian(loss, ALL)(*xs)), OPERANDS, modes="vj"),
    Case("hessian_of_vector", "f64", lambda x, w, s: jax.hessian(lambda x: layers(x, w, s)[0])(x), OPERANDS, modes=GIVEN),
    Case("hvp", FLOAT, hvp, OPERANDS * 2),
    Case("jacrev_scan", FLOAT, lambda *xs: flat(jax.jacrev(rnn, ALL)(*xs)), [real(2), real(3, 2), real(2, 2)], modes="vj"),
    Case("jacfwd_scan", FLOAT, lambda *xs: flat(jax.jacfwd(rnn, ALL)(*xs)), [real(2), real(3, 2), real(2, 2)], modes="vj"),
    Case("jacfwd_while", FLOAT, lambda *xs: flat(jax.jacfwd(until, (0, 1))(*xs)), [real(3, scale=4.0), real()], modes="vj"),
    Case("jacrev_switch", FLOAT, lambda i, x, w: flat(jax.jacrev(branch, (1, 2))(i, x, w)), [index(3), real(3), real(3)]),
    Case("vmap_of_jacrev", FLOAT, lambda x, w, s: jax.vmap(jax.jacrev(lambda x, w: layers(x, w, s)[0]), (0, None))(x, w), [real(4, 3), real(3, 2), real()]),
    Case("vmap_of_hvp", FLOAT, lambda x, w, s, v: jax.vmap(lambda x, v: jax.jvp(jax.grad(lambda x: loss(x, w, s)), (x,), (v,))[1])(x, v),
         [real(4, 3), real(3, 2), real(), real(4, 3)], modes="vj"),
    Case("jacfwd_of_vmap_named", FLOAT, lambda x, w: flat(jax.jacfwd(lambda x, w: jax.vmap(centred, (0, None), axis_name="i")(x, w), (0, 1))(x, w)), [real(3, 2), real(2)]),
    Case("vmap_named_of_jacrev", FLOAT, lambda x, w: jax.vmap(jax.jacrev(centred), (0, None), axis_name="i")(x, w), [real(3, 2), real(2)]),
    Case("jacrev_of_jacfwd", "f64", lambda x, w, s: jax.jacrev(lambda x: jax.jacfwd(lambda w: layers(x, w, s)[0])(w))(x), OPERANDS, modes="vj"),
    Case("linear_captured", FLOAT, captured_scan, OPERANDS + [real(3, 2)], modes="vj"),
    Case("vjp_inside", f"{LINES} {GRID}:a", vjp_inside, [shards(2, 3), real(3, 2), shards(2, 3)], "A . A > R A R"),
    Case("linearize_inside", f"{LINES} {GRID}:a", linearize_inside, [shards(2, 3), real(3, 2), shards(2, 3)], "A . A > R R A"),
    Case("jacrev_inside", "d=4", jacrev_inside, [shards(2, 3), real(3, 2)], "A . > ."),
    Case("jacfwd_inside", "d=4", jacfwd_inside, [shards(2, 3), real(3, 2)], "A . > ."),
    Case("hvp_inside", f"{LINES} {GRID}:a", hvp_inside, [shards(2, 3), real(3, 2), real(3, 2)], "A . . > R R"),
    Case("hessian_inside", "d=4", hessian_inside, [shards(2, 3), real(3, 2)], "A . > .", modes=GIVEN),
    Case("split", GRID, split, [real(6, 8), real(3)], with_variant=True),
    Case("split_twice", GRID, split_twice, [real(4, 6, 3), real(3)], with_variant=True),
    Case("split_scan", GRID, split_scan, [real(8, 6), real()], with_variant=True),
    Case("split_grad", GRID, split_grad, [real(6, 8), real(3)], with_variant=True, modes="vj"),
    Case("split_jacobian", GRID, split_jacobian, [real(6, 8), real(3)], with_variant=True, modes="vj"),
    Case("unmapped", FLOAT, unmapped, [real(2)]),
]  # fmt: skip
