"""Collectives over groups of members (axis_index_groups). JAX knows them under check_vma=False."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from case import Case, real, shards

EVEN = "d=4 d=8 a=4,b=2:a,b a=4,b=2:a"
UNEVEN = "d=4 d=8 a=4,b=2:a"


def pairs(v):
    """Neighbours: {0,1} {2,3} .."""
    return [[i, i + 1] for i in range(0, v.members, 2)]


def halves(v):
    """Every second one: {0,2,..} {1,3,..}"""
    return [list(range(0, v.members, 2)), list(range(1, v.members, 2))]


def mixed(v):
    """In no order: {n-1,0} {n-2,1} .."""
    return [[v.members - 1 - i, i] for i in range(v.members // 2)]


def uneven(v):
    return [[2], [1, 0] + list(range(3, v.members))]


def over(name, function, variants=EVEN, inputs=None, **more):
    return Case(name, variants, function, inputs or [shards(2, 3)], specs="A > A", unchecked=True, **more)


def each(name, function, inputs=None, **more):
    kinds = {"pairs": pairs, "halves": halves, "mixed": mixed}
    return [over(f"{name}_{kind}", lambda v, x, f=function, g=groups: f(v, x, g(v)), inputs=inputs, **more) for kind, groups in kinds.items()]


CASES = [
    *each("psum", lambda v, x, groups: lax.psum(x, v.axes, axis_index_groups=groups)),
    *each("pmean", lambda v, x, groups: lax.pmean(x, v.axes, axis_index_groups=groups)),
    *each("pmax", lambda v, x, groups: lax.pmax(x, v.axes, axis_index_groups=groups), modes="v"),
    *each("pmin", lambda v, x, groups: lax.pmin(x, v.axes, axis_index_groups=groups), modes="v"),
    *each("all_gather", lambda v, x, groups: lax.all_gather(x, v.axes, axis_index_groups=groups, axis=1)),
    *each("all_gather_tiled", lambda v, x, groups: lax.all_gather(x, v.axes, axis_index_groups=groups, tiled=True)),
    *each(
        "psum_scatter",
        lambda v, x, groups: lax.psum_scatter(x, v.axes, scatter_dimension=1, axis_index_groups=groups, tiled=True),
        [shards(2, 8)],
    ),
    *each(
        "all_to_all",
        lambda v, x, groups: lax.all_to_all(x, v.axes, 1, 0, axis_index_groups=groups, tiled=True),
        [shards(2, 8)],
    ),
    over("psum_uneven", lambda v, x: lax.psum(x, v.axes, axis_index_groups=uneven(v)), UNEVEN),
    over("psum_uneven_s32", lambda v, x: lax.psum(x, v.axes, axis_index_groups=uneven(v)), UNEVEN, [shards(2, 3, dtype=np.int32)]),
    over("pmax_uneven", lambda v, x: lax.pmax(x, v.axes, axis_index_groups=uneven(v)), UNEVEN, modes="v"),
    over("psum_bf16", lambda v, x: lax.psum(x, v.axes, axis_index_groups=pairs(v)), "d=8", [shards(2, 3, dtype=jnp.bfloat16)]),
    over("pswapaxes", lambda v, x: lax.pswapaxes(x, v.axes, 1, axis_index_groups=pairs(v)), inputs=[shards(2, 2)]),
    over("psum_vmap", lambda v, x: jax.vmap(lambda r: lax.psum(jnp.sin(r), v.axes, axis_index_groups=halves(v)))(x)),
    over(
        "all_gather_vmap",
        lambda v, x: jax.vmap(lambda r: lax.all_gather(jnp.sin(r), v.axes, axis_index_groups=mixed(v), tiled=True), in_axes=1, out_axes=1)(x),
    ),
    over(
        "psum_scan",
        lambda v, x: lax.scan(lambda c, _: (jnp.sin(lax.psum(c, v.axes, axis_index_groups=pairs(v))), None), x, None, length=3)[0],
    ),
]
