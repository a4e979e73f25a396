"""Arrays laid over a mesh at random."""

import jax
from jax.sharding import NamedSharding, PartitionSpec


def laid(r, x, mesh):
    """x, each dimension cut by axes of the mesh, all of two devices, that divide it and were drawn."""
    left, spec = list(r.permutation(mesh.axis_names)), []
    for n in x.shape:
        axes = []
        while left and n % 2 ** (len(axes) + 1) == 0 and r.random() < 0.6:
            axes.append(str(left.pop()))
        spec.append(tuple(axes) or None)
    return jax.device_put(x, NamedSharding(mesh, PartitionSpec(*spec)))
