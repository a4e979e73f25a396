"""Collectives over every mesh and choice of axes, in a shard_map with checked types. x has a few rows on each device."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from case import Case, members, real, shards

LINE = "d=2 d=4 d=8 d=1"
GRID = "a=4,b=2:a,b a=4,b=2:b a=4,b=2:a"
MESHES = f"{LINE} {GRID} a=4,b=2:b,a"
FEW = "d=2 a=2,b=2:b,a a=2,b=2:b"
MORE = "d=8 a=4,b=2:a,b a=4,b=2:a"


def ring(v):
    return [(i, (i + 1) % v.members) for i in range(v.members)]


def pairs(v):
    """Some members send to others, one to itself; some get nothing."""
    n = v.members
    return [(n - 1, 0)] + ([(0, n - 1)] if n > 2 else []) + ([(1, 1)] if n > 3 else [])


def shift(v, by, wrap):
    n = v.members
    return [(i, (i + by) % n) for i in range(n) if wrap or 0 <= i + by < n]


def told(v, x, source):
    """As pbroadcast does, which XLA has not on CPU."""
    return lax.pcast(lax.psum(jnp.where(lax.axis_index(v.axes) == source, x, 0), v.axes), v.axes, to="varying")


def which(v, x, argument):
    """The first member that has the extreme: JAX's own takes one axis, and no NaN."""
    return lax.pmax(jnp.int32(argument(lax.all_gather(x, v.axes), axis=0)), v.axes)


def from_the_end(v, x):
    n = x.ndim
    return [
        lax.all_to_all(x, v.axes, n - 1, n - 3, tiled=True),
        lax.all_to_all(x, v.axes, n - 2, n - 1, tiled=True),
        lax.psum_scatter(x, v.axes, scatter_dimension=n - 1, tiled=True),
        lax.all_gather(x, v.axes, axis=n - 2, tiled=True),
        lax.all_gather(x, v.axes, axis=n),
    ]


def over(function, options="A > A", name=None, variants=MESHES, inputs=None, **more):
    return Case(name, variants, function, inputs or [shards(2, 3)], specs=options, **more)


CASES = [
    over(lambda v, x: lax.psum(x, v.axes), "A > R", "psum"),
    over(lambda v, x: lax.psum(x, v.axes) * x, "A > A", "psum_used"),
    over(lambda v, x, y: lax.psum((x, y), v.axes), "A . > R R", "psum_of_replicated", GRID, [shards(2, 3), real(2, 3)]),
    over(lambda v, x: lax.psum(x, v.axes), "A > R", "psum_s32", "d=8 a=4,b=2:a", [shards(2, 3, dtype=np.int32)]),
    over(lambda v, x: lax.psum(x, v.axes), "A > R", "psum_bf16", "d=8", [shards(2, 3, dtype=jnp.bfloat16)]),
    over(lambda v, x: lax.psum(x, v.axes), "A > R", "psum_f64", "d=8 a=4,b=2:b,a", [shards(2, 3, dtype=np.float64)]),
    over(lambda v, x: lax.pmean(x, v.axes), "A > R", "pmean"),
    over(lambda v, x: lax.pmax(x, v.axes), "A > R", "pmax", modes="v"),
    over(lambda v, x: lax.pmin(x, v.axes), "A > R", "pmin", modes="v"),
    over(lambda v, x: lax.pmax(x, v.axes), "A > R", "pmax_s32", "d=8", [shards(2, 3, dtype=np.int32)]),
    over(lambda v, x: [lax.psum(x.sum(0), v.axes), lax.pmean(x.mean(0), v.axes)], "A > R R", "psum_positional"),
    over(lambda v, x: [reduce(x > 0, v.axes) for reduce in (lax.psum, lax.pmax, lax.pmin)], "A > R R R", "of_bools", modes="v"),
    over(lambda v, x: x * lax.psum(3, v.axes), "A > A", "psum_of_number"),
    over(lambda v, x: which(v, x, jnp.argmax), "A > R", "pargmax", modes="v"),
    over(lambda v, x: which(v, x, jnp.argmin), "A > R", "pargmin_s8", "d=8 a=4,b=2:b,a", [shards(2, 3, dtype=np.int8)]),
    over(lambda v, x: lax.all_gather(x, v.axes), "A > A", "all_gather"),
    over(lambda v, x: lax.all_gather(x, v.axes, axis=1), "A > A", "all_gather_1", MORE),
    over(lambda v, x: lax.all_gather(x, v.axes, axis=2), "A > A", "all_gather_last", MORE),
    over(lambda v, x: lax.all_gather(x, v.axes, tiled=True), "A > A", "all_gather_tiled"),
    over(lambda v, x: lax.all_gather(x, v.axes, axis=1, tiled=True), "A > A", "all_gather_tiled_1", MORE),
    over(lambda v, x: lax.psum_scatter(x, v.axes), "A > A", "psum_scatter", inputs=[shards(members, 3)]),
    over(lambda v, x: lax.psum_scatter(x, v.axes, scatter_dimension=1), "A > A", "psum_scatter_1", MORE, [shards(2, members)]),
    over(lambda v, x: lax.psum_scatter(x, v.axes, tiled=True), "A > A", "psum_scatter_tiled", inputs=[shards(lambda v: 2 * v.members, 3)]),
    over(lambda v, x: lax.psum_scatter(x, v.axes, scatter_dimension=1, tiled=True), "A > A", "psum_scatter_tiled_1", MORE,
         [shards(2, lambda v: 2 * v.members)]),
    over(lambda v, x: lax.all_to_all(x, v.axes, 0, 0), "A > A", "all_to_all", inputs=[shards(members, 3)]),
    over(lambda v, x: lax.all_to_all(x, v.axes, 1, 0), "A > A", "all_to_all_1_0", MORE, [shards(2, members, 3)], modes="vj"),  # JAX 0.10 fails to
    # transpose these two
    over(lambda v, x: lax.all_to_all(x, v.axes, 0, 2), "A > A", "all_to_all_0_2", MORE, [shards(members, 2, 3)], modes="vj"),
    over(lambda v, x: lax.all_to_all(x, v.axes, 0, 0, tiled=True), "A > A", "all_to_all_tiled", inputs=[shards(lambda v: 2 * v.members, 3)]),
    over(lambda v, x: lax.all_to_all(x, v.axes, 1, 0, tiled=True), "A > A", "all_to_all_tiled_1_0", MORE, [shards(2, lambda v: 2 * v.members)]),
    over(lambda v, x: lax.all_to_all(x, v.axes, 0, 1, tiled=True), "A > A", "all_to_all_tiled_0_1", MORE, [shards(lambda v: 2 * v.members, 3)]),
    over(lambda v, x: [lax.all_to_all(x, v.axes, s, c) for s in range(3) for c in range(3)], "A >" + " A" * 9, "all_to_all_orders", FEW,
         [shards(members, members, members)], modes="vj"),
    over(lambda v, x: [lax.all_to_all(x, v.axes, s, c, tiled=True) for s in range(3) for c in range(3)], "A >" + " A" * 9,
         "all_to_all_tiled_orders", FEW, [shards(members, members, lambda v: 2 * v.members)]),
    over(from_the_end, "A > A A A A A", "from_the_end", FEW, [shards(members, members, members)]),
    over(lambda v, x: [lax.all_gather(x.sum(), v.axes), lax.all_gather(x[0], v.axes, axis=-1).sum(0)], "A > A A", "all_gather_scalar", FEW),
    # Over several axes only in the order of the mesh: in another, jax.lax numbers the members in mesh order, Axle as named.
    over(lambda v, x: lax.ppermute(x, v.axes, ring(v)), "A > A", "ppermute_ring", f"{LINE} {GRID}"),
    over(lambda v, x: lax.ppermute(x, v.axes, pairs(v)), "A > A", "ppermute_pairs", f"{LINE} {GRID}"),
    over(lambda v, x: lax.pshuffle(x, v.axes, list(range(v.members))[::-1]), "A > A", "pshuffle", f"{LINE} {GRID}"),
    over(lambda v, x: lax.pswapaxes(x, v.axes, 1), "A > A", "pswapaxes", inputs=[shards(2, members)]),
    over(lambda v, x: told(v, x, v.members - 1), "A > A", "pbroadcast"),
    over(lambda v, x: [lax.ppermute(x, v.axes, shift(v, by, True)) for by in (1, -1, 5, -12)], "A > A A A A", "pshift_ring", f"{LINE} {GRID}"),
    over(lambda v, x: [lax.ppermute(x, v.axes, shift(v, by, False)) for by in (1, -1, 2, 0, -99)], "A > A A A A A", "pshift_line", f"{LINE} {GRID}"),
    over(lambda v, x: x * jnp.float32(lax.axis_index(v.axes)), "A > A", "axis_index"),
    over(lambda v, x: lax.axis_index(v.axes)[None] + x, "A > A", "axis_index_s32", inputs=[shards(1, dtype=np.int32)]),
    over(lambda v, x: x * lax.axis_size(v.axes), "A > A", "axis_size"),
    over(lambda v, x: lax.pcast(x, v.axes, to="varying") * 2, ". > A", "pvary", inputs=[real(2, 3)]),
    over(lambda v, x, w: lax.psum(jnp.matmul(x, w), v.axes), "A . > R", "implicit_pvary", inputs=[shards(2, 3), real(3, 2)]),
    over(lambda v, x: lax.pmean(jnp.tanh(lax.psum(x, v.axes) * x), v.axes), "A > R", "psum_of_psum", MORE),
    over(lambda v, x: (lax.psum(x, v.axes), lax.all_gather(x, v.axes, tiled=True), lax.ppermute(x, v.axes, ring(v))), "A > A A A", "unchecked",
         "d=4 a=4,b=2:a", unchecked=True),
]  # fmt: skip
