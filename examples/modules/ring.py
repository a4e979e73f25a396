"""Prints the StableHLO module of a shard_map on eight devices: a product of matrices, whose right side goes round.

  python ring.py > ring.mlir
"""

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))


def product(a, b):
    me, n = jax.lax.axis_index("x"), b.shape[0]

    def step(k, carry):
        total, part = carry
        rows = jax.lax.dynamic_slice_in_dim(a, (me + k) % 8 * n, n, 1)
        return total + rows @ part, jax.lax.ppermute(part, "x", [(i, (i - 1) % 8) for i in range(8)])

    return jax.lax.fori_loop(0, 8, step, (jnp.zeros((a.shape[0], b.shape[1])), b))[0]


f = jax.shard_map(product, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"), check_vma=False)
shape = jax.ShapeDtypeStruct((64, 64), jnp.float32)
print(jax.jit(f).lower(shape, shape).as_text(), end="")
