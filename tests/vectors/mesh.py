"""shard_map as users write it, and transforms through it: losses, gradients inside and outside, vmap of both kinds."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from case import Case, real, shards

LINES = "d=2 d=4 d=8"
GRID = "a=4,b=2"


def mean_loss(v, w, x, y):
    error = jnp.tanh(jnp.matmul(x, w)) - y
    return lax.pmean(jnp.mean(error * error), v.axes)


def two_layers(v, w, u, x):
    """A hidden layer over b, the batch over a."""
    return lax.psum(jnp.matmul(jnp.tanh(jnp.matmul(x, w)), u), "b")


def mapped(v, function, in_specs, out_specs):
    mesh = jax.sharding.Mesh(np.array(jax.devices()[: v.devices]).reshape(tuple(v.mesh.values())), tuple(v.mesh))
    return jax.shard_map(function, mesh=mesh, in_specs=in_specs, out_specs=out_specs)


def scaled_sum(v, x, w):
    return mapped(v, lambda x, w: lax.psum(jnp.tanh(x) * w, "d"), (P("d"), P()), P())(x, w)


def vmap_of_shard_map(v, x, w):
    return jax.vmap(lambda x, w: scaled_sum(v, x, w), (1, None))(x, w)


def grad_of_vmap_of_shard_map(v, x, w):
    return jax.grad(lambda x, w: jnp.sum(vmap_of_shard_map(v, x, w) ** 2), (0, 1))(x, w)


def vmap_of_grad_of_shard_map(v, x, w):
    return jax.vmap(jax.grad(lambda x, w: jnp.sum(scaled_sum(v, x, w) ** 2), (0, 1)), (1, None))(x, w)


def second_of_shard_map(v, x, w):
    first = jax.grad(lambda x: jnp.sum(scaled_sum(v, x, w) ** 2))
    return jax.grad(lambda x: jnp.sum(first(x) ** 2))(x)


def jvp_of_shard_map(v, x, w, dx, dw):
    return jax.jvp(lambda x, w: scaled_sum(v, x, w), (x, w), (dx, dw))


def around(v, x, w):
    """Operations before and after the shard_map."""
    return jnp.exp(-scaled_sum(v, x * 2, jnp.sum(w, 0))) + 1


CASES = [
    Case("mean_loss", f"{LINES} {GRID}", mean_loss, [real(3, 2), shards(2, 3), shards(2, 2)], ". A A > ."),
    Case("grad_inside", f"{LINES} {GRID}", lambda v, *xs: jax.value_and_grad(lambda *ys: mean_loss(v, *ys))(*xs),
         [real(3, 2), shards(2, 3), shards(2, 2)], ". A A > . ."),
    Case("grad_without_mean", f"d=4 {GRID}:a", lambda v, w, x: jax.grad(lambda w: jnp.sum(jnp.tanh(jnp.matmul(x, w))))(w),
         [real(3, 2), shards(2, 3)], ". A > ."),
    Case("second_inside", "d=4", lambda v, x: jax.grad(lambda x: jnp.sum(jax.grad(lambda x: jnp.sum(lax.psum(jnp.tanh(x), "d") ** 2))(x) ** 2))(x),
         [shards(2)], "A > A"),
    Case("jvp_inside", "d=4", lambda v, x, t: jax.jvp(lambda x: lax.psum(jnp.tanh(x), "d"), (x,), (t,)), [shards(2), shards(2)], "A A > . ."),
    Case("vmap_inside", f"d=4 {GRID}:a", lambda v, x, w: jax.vmap(lambda x: lax.psum(jnp.matmul(x, w), v.axes))(x), [shards(2, 3), real(3, 2)], "A . > R"),
    Case("vmap_of_grad_inside", "d=4", lambda v, w, x: jax.vmap(jax.grad(lambda w, x: jnp.sum(jnp.tanh(jnp.matmul(x, w)))), (None, 0))(w, x),
         [real(3, 2), shards(2, 3)], ". A > A"),
    Case("vmap_named_inside", "d=4", lambda v, x: jax.vmap(lambda x: lax.psum(lax.psum(x, "i"), "d") + lax.pmean(x, "i") * x, axis_name="i")(x), [shards(3, 2)], "A > A",
         unchecked=True),  # JAX fails on it when types are checked
    Case("two_layers", GRID, two_layers, [real(4, 6, scale=0.5), real(6, 3, scale=0.5), real(8, 4)], "_/b b a > a"),
    Case("two_layers_over_both", GRID, lambda v, w, u, x: lax.psum(jnp.matmul(jnp.tanh(jnp.matmul(x, w)), u), ("a", "b")),
         [real(3, 16, scale=0.5), real(16, 2, scale=0.5), real(4, 3)], "_/a+b b+a . > ."),
    Case("layout_exchange", GRID, lambda v, x: lax.all_to_all(x, "b", 1, 0, tiled=True), [real(8, 4)], "a+b > a/b"),
    Case("layout_columns", GRID, lambda v, x: x * 2, [real(4, 8)], "b/a > b/a"),
    Case("layout_both_on_one", GRID, lambda v, x: x + 1, [real(3, 16)], "_/b+a > _/b+a"),
    Case("shard_map", "d=4", scaled_sum, [real(8), real(2)], with_variant=True),
    Case("shard_map_around", "d=4", around, [real(8), real(3, 2)], with_variant=True),
    Case("shard_map_vmap", "d=4", vmap_of_shard_map, [real(8, 3), real(2)], with_variant=True),
    Case("shard_map_grad_of_vmap", "d=4", grad_of_vmap_of_shard_map, [real(8, 3), real(2)], with_variant=True, modes="vj"),
    Case("shard_map_vmap_of_grad", "d=4", vmap_of_grad_of_shard_map, [real(8, 3), real(2)], with_variant=True, modes="v"),
    Case("shard_map_second", "d=4", second_of_shard_map, [real(8), real(2)], with_variant=True, modes="v"),
    Case("shard_map_jvp", "d=4", jvp_of_shard_map, [real(8), real(2), real(8), real(2)], with_variant=True),
]  # fmt: skip
