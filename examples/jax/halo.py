import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
np.set_printoptions(formatter={"float": "{:.6g}".format}, linewidth=120)

NY, NX, STEPS, ALPHA = 32, 24, 50, 0.2
mesh = jax.make_mesh((4, 2), ("y", "x"), axis_types=(AxisType.Auto,) * 2)


def pad_with_halo(u, axis, name):
    """Neighbours' edges on both sides of `axis`; zeros outside the domain."""
    n = lax.axis_size(name)
    first = lax.slice_in_dim(u, 0, 1, axis=axis)
    last = lax.slice_in_dim(u, u.shape[axis] - 1, u.shape[axis], axis=axis)
    before = lax.ppermute(last, name, [(i, i + 1) for i in range(n - 1)])
    after = lax.ppermute(first, name, [(i + 1, i) for i in range(n - 1)])
    return jnp.concatenate([before, u, after], axis=axis)


def heat_step(u, _):
    uy, ux = pad_with_halo(u, 0, "y"), pad_with_halo(u, 1, "x")
    laplacian = uy[:-2] + uy[2:] + ux[:, :-2] + ux[:, 2:] - 4 * u
    return u + ALPHA * laplacian, None


@jax.shard_map(mesh=mesh, in_specs=P("y", "x"), out_specs=(P(), P("y", "x")))
def simulate(u):
    u, _ = lax.scan(heat_step, u, length=STEPS)
    return 0.5 * lax.psum(jnp.sum(u**2), ("y", "x")), u


row, col = np.meshgrid(np.arange(NY), np.arange(NX), indexing="ij")
u0 = (np.sin(0.3 * row) * np.cos(0.2 * col) + 0.01 * row).astype(np.float32)
(energy, u), grad = jax.jit(jax.value_and_grad(simulate, has_aux=True))(u0)

print(f"initial energy {0.5 * np.sum(u0**2):.6g}")
print(f"final energy {energy:.6g}")
print("u[15, 10:14]", u[15, 10:14])
print(f"grad norm {jnp.linalg.norm(grad):.6g}")
print("grad[15, 10:14]", grad[15, 10:14])
print("grad[0, 0], grad[31, 23]", jnp.stack([grad[0, 0], grad[31, 23]]))
# The step is linear and symmetric, so <grad, u0> is twice the final energy.
print(f"<grad, u0> / final energy {jnp.vdot(grad, u0) / energy:.6g}")
