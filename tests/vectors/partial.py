"""shard_maps that take one axis of the mesh by hand, and leave the other to the partitioner; constraints and shard_maps over that one inside."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from case import Case, real

GRID = "a=4,b=2"


def by_hand(v, function, in_specs, out_specs, name="a", check=True):
    mesh = jax.sharding.Mesh(np.array(jax.devices()[: v.devices]).reshape(tuple(v.mesh.values())), tuple(v.mesh))
    return jax.shard_map(function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, axis_names={name}, check_vma=check)


def layers(w, u, x, cut="b"):
    """w and u lie along the automatic axis."""
    w = lax.with_sharding_constraint(w, P(None, cut))
    u = lax.with_sharding_constraint(u, P(cut))
    return jnp.tanh(x @ w) @ u


def mean_square(w, u, x):
    return lax.pmean(jnp.mean(layers(w, u, x) ** 2), "a")


def loss(v, w, u, x):
    return by_hand(v, mean_square, (P(), P(), P("a")), P())(w, u, x)


def grad_inside(v, w, u, x):
    value, grads = by_hand(v, jax.value_and_grad(mean_square, (0, 1)), (P(), P(), P("a")), (P(), (P(), P())))(w, u, x)
    return value, *grads


def grad_by_hand(v, w, u, x):
    """Each device's gradients of its own rows, then their sum: parameters are the same, but taken as different."""

    def body(w, u, x):
        w, u = lax.pcast(w, "a", to="varying"), lax.pcast(u, "a", to="varying")
        grads = jax.grad(lambda w, u: jnp.sum(layers(w, u, x) ** 2), (0, 1))(w, u)
        return lax.psum(grads, "a")

    return by_hand(v, body, (P(), P(), P("a")), (P(), P()))(w, u, x)


def nested(v, w, x):
    """JAX 0.10 has no derivatives of it."""

    def body(w, x):
        h = lax.with_sharding_constraint(x @ w, P(None, "b"))
        h = jax.shard_map(lambda h: h * lax.psum(jnp.tanh(h), "b") + lax.axis_index("b"), in_specs=P(None, "b"), out_specs=P(None, "b"), axis_names={"b"})(h)
        return lax.psum(jnp.sum(h**2), "a"), jnp.cos(h)

    return by_hand(v, body, (P(), P("a")), (P(), P("a")))(w, x)


def collectives(v, x):
    def body(x):
        x = lax.with_sharding_constraint(x, P(None, "b"))
        y = lax.all_gather(x, "a", axis=0, tiled=True) * 2
        y = lax.psum_scatter(jnp.sin(y), "a", scatter_dimension=0, tiled=True)
        y = y + lax.ppermute(x, "a", [(i, (i + 1) % 4) for i in range(4)])
        return lax.all_to_all(y, "a", split_axis=1, concat_axis=0, tiled=True)

    return by_hand(v, body, P("a"), P("a"))(x)


def steps(v, w, x):
    def body(w, x):
        w = lax.pcast(w, "a", to="varying")

        def step(carry, _):
            carry = lax.with_sharding_constraint(jnp.tanh(carry @ w), P(None, "b"))
            return lax.ppermute(carry, "a", [(i, (i + 1) % 4) for i in range(4)]), jnp.sum(carry, 0)

        return lax.scan(step, x, None, length=3)

    return by_hand(v, body, (P(), P("a")), (P("a"), P(None, "a")))(w, x)


def in_steps(v, w, x):
    """The shard_map inside a loop of whole arrays."""

    def step(w, _):
        value, dw, _ = grad_inside(v, w, jnp.ones((6, 2), jnp.float32), x)
        return lax.with_sharding_constraint(w - 0.5 * dw, jax.sharding.NamedSharding(
            jax.sharding.Mesh(np.array(jax.devices()[: v.devices]).reshape(4, 2), ("a", "b")), P(None, "b"))), value

    return lax.scan(step, w, None, length=3)


def chosen(v, w, x):
    """Residuals of a checkpoint and of a branch."""

    def body(w, x):
        f = jax.checkpoint(lambda w: jnp.sin(layers(w, jnp.ones((6, 2), jnp.float32), x)))
        y = lax.cond(lax.psum(jnp.sum(x), "a") > 0, lambda w: f(w) * 2, lambda w: f(w) - 1, w)
        return lax.psum(jnp.sum(y * y), "a")

    return by_hand(v, body, (P(), P("a")), P())(w, x)


def unchecked(v, w, u, x):
    return by_hand(v, lambda w, u, x: lax.psum(jnp.sum(layers(w, u, x)), "a"), (P(), P(), P("a")), P(), check=False)(w, u, x)


def other_axis(v, w, u, x):
    """b by hand, a automatic."""
    return by_hand(v, lambda w, u, x: lax.psum(layers(w, u, x, "a"), "b"), (P(None, "b"), P("b"), P()), P(), "b")(w, u, x)


def mapped(v, w, u, x):
    return jax.vmap(lambda x: loss(v, w, u, x))(x)


def mapped_over_b(v, w, x):
    """There with spmd_axis_name="b", which JAX 0.10 fails on where b is automatic; by value nothing comes of it."""

    def f(x):
        return by_hand(v, lambda w, x: jnp.tanh(lax.with_sharding_constraint(x @ w, P())), (P(), P("a")), P("a"))(w, x)

    return jax.vmap(f)(x)


def second(v, w, u, x):
    first = jax.grad(lambda w: loss(v, w, u, x))
    return jax.grad(lambda w: jnp.sum(first(w) ** 2))(w)


def around(v, w, u, x):
    """Operations of whole arrays before and after it, which lie over both axes."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()[: v.devices]).reshape(4, 2), ("a", "b"))
    x = lax.with_sharding_constraint(jnp.sin(x), jax.sharding.NamedSharding(mesh, P("a", "b")))
    y = by_hand(v, lambda w, u, x: layers(w, u, x * 2), (P(), P(), P("a")), P("a"))(w, u, x)
    return jnp.sum(y * x[:, :2], 0)


W, U, X = real(4, 6, scale=0.5), real(6, 2, scale=0.5), real(8, 4)
CASES = [
    Case("loss", GRID, loss, [W, U, X], with_variant=True),
    Case("grad_inside", GRID, grad_inside, [W, U, X], with_variant=True, modes="v"),
    Case("grad_by_hand", GRID, grad_by_hand, [W, U, X], with_variant=True, modes="v"),
    Case("nested", GRID, nested, [W, X], with_variant=True, modes="v"),
    Case("collectives", GRID, collectives, [real(8, 8)], with_variant=True),
    Case("steps", GRID, steps, [real(4, 4), X], with_variant=True),
    Case("in_steps", GRID, in_steps, [W, X], with_variant=True, modes="v"),
    Case("chosen", GRID, chosen, [W, X], with_variant=True),
    Case("unchecked", GRID, unchecked, [W, U, X], with_variant=True),
    Case("other_axis", GRID, other_axis, [real(8, 4, scale=0.5), real(4, 3), real(4, 8)], with_variant=True),
    Case("mapped", GRID, mapped, [W, U, real(3, 8, 4)], with_variant=True),
    Case("mapped_over_b", GRID, mapped_over_b, [W, real(6, 8, 4)], with_variant=True),
    Case("second", GRID, second, [W, U, X], with_variant=True, modes="v"),
    Case("around", GRID, around, [W, U, X], with_variant=True),
]  # fmt: skip
