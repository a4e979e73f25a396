"""Values that are reduced or unreduced along mesh axes, in a shard_map with checked types, as far as JAX has rules for them."""

import jax
import jax.numpy as jnp
from jax import lax
from jax._src.lax import parallel

from case import Case, members, real, shards

MESHES = "d=2 d=4 d=8 a=4,b=2:a,b a=4,b=2:b a=4,b=2:a"
FEW = "d=4 a=4,b=2:a"


def unreduced(v, x):
    return lax.pcast(x, v.axes, to="unreduced")


def reduced(v, x):
    return lax.pcast(x, v.axes, to="reduced")


def varying(v, x):
    return lax.pcast(x, v.axes, to="varying")


def total(v, x):
    return parallel.unreduced_psum(x, v.axes)


def over(name, function, options="A . > R", variants=MESHES, inputs=None, **more):
    return Case(name, variants, function, inputs or [shards(2, 3), real(3)], specs=options, **more)


CASES = [
    over("unreduced_psum", lambda v, x, w: total(v, unreduced(v, x * w))),
    over("psum_of_unreduced", lambda v, x, w: lax.psum(unreduced(v, x * w), v.axes)),
    over("unreduced_psum_scatter", lambda v, x, w: parallel.unreduced_psum_scatter(unreduced(v, x * w), v.axes, tiled=True), "A . > A",
         inputs=[shards(lambda v: 2 * v.members, 3), real(3)]),
    over("unreduced_psum_scatter_untiled", lambda v, x, w: parallel.unreduced_psum_scatter(unreduced(v, x * w), v.axes, scatter_dimension=0, tiled=False),
         "A . > A", inputs=[shards(members, 3), real(3)]),
    over("psum_scatter_of_unreduced", lambda v, x, w: lax.psum_scatter(unreduced(v, x * w), v.axes, scatter_dimension=1, tiled=True), "A . > A", FEW,
         [shards(2, lambda v: 2 * v.members), real(1)]),
    over("all_gather_reduced", lambda v, x: jnp.sum(varying(v, parallel.all_gather_reduced(x, v.axes, axis=0, tiled=True)), 0, keepdims=True) * x, "A > A",
         inputs=[shards(1, 3)]),
    over("all_gather_reduced_untiled", lambda v, x: varying(v, parallel.all_gather_reduced(x, v.axes, axis=1)) * 2, "A > A", FEW, [shards(2, 3)]),
    over("preduced", lambda v, x, w: lax.psum(x * varying(v, reduced(v, w)), v.axes)),
    over("reduced_sine", lambda v, x, w: lax.psum(x * varying(v, jnp.sin(reduced(v, w))), v.axes), modes="vj"),
    over("unreduced_by_reduced", lambda v, x, w: total(v, unreduced(v, x) * reduced(v, jnp.broadcast_to(w, x.shape))), modes="vj"),
    over("unreduced_sum", lambda v, x, w: total(v, unreduced(v, x) + unreduced(v, x * w))),
    over("unreduced_joined", lambda v, x, w: total(v, jnp.concatenate([unreduced(v, x), unreduced(v, x * w)], 1)), variants=FEW),
    over("unreduced_shapes", lambda v, x, w: total(v, jnp.sum(unreduced(v, x * w).T.reshape(2, 3), 1)), variants=FEW),
    over("unreduced_scan", lambda v, x, w: total(v, lax.scan(lambda c, _: (c + unreduced(v, x * w), None), unreduced(v, x), None, length=3)[0]), variants=FEW),
    over("unreduced_cond", lambda v, x, w: total(v, lax.cond(w[0] > 0, lambda: unreduced(v, x * w), lambda: unreduced(v, jnp.sin(x)))), variants=FEW),
    over("unreduced_in_jit", lambda v, x, w: total(v, jax.jit(lambda y: unreduced(v, jnp.sin(y)))(x * w)), variants=FEW),
]
