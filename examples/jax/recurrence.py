import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
np.set_printoptions(formatter={"float": "{:.6g}".format}, linewidth=120)

STEPS, WIDTH = 128, 6
mesh = jax.make_mesh((8,), ("time",), axis_types=(AxisType.Auto,))


def chirp(freq, *shape):
    k = np.arange(np.prod(shape))
    return np.sin(freq * k * k).astype(np.float32).reshape(shape)


def scan_states(a, b, start):
    """h[t] = a[t] h[t-1] + b[t]; beside it the product of a up to t."""

    def step(carry, row):
        h, product = carry
        h, product = row[0] * h + row[1], row[0] * product
        return (h, product), (h, product)

    return lax.scan(step, (start, jnp.ones_like(start)), (a, b))[1]


@jax.shard_map(mesh=mesh, in_specs=(P("time"), P("time")), out_specs=P("time"))
def cut_states(a, b):
    """Each device scans its own steps from 0, then adds what comes in from those before it."""
    zero = lax.pcast(jnp.zeros(WIDTH), "time", to="varying")
    h, product = scan_states(a, b, zero)
    ends, decays = lax.all_gather((h[-1], product[-1]), "time")
    before = jnp.arange(8) < lax.axis_index("time")
    decays, ends = jnp.where(before[:, None], decays, 1), jnp.where(before[:, None], ends, 0)
    incoming = scan_states(decays, ends, zero)[0][-1]
    return h + product * incoming


def loss(a, b):
    return jnp.mean(cut_states(a, b) ** 2)


a, b = 0.9 + 0.1 * chirp(0.37, STEPS, WIDTH), chirp(0.53, STEPS, WIDTH)
h = jax.jit(cut_states)(a, b)
da, db = jax.jit(jax.grad(loss, argnums=(0, 1)))(a, b)

print("h[-1]", h[-1])
print("h matches", jnp.allclose(h, scan_states(a, b, jnp.zeros(WIDTH))[0], 1e-4, 1e-5))
print(f"h norm {jnp.linalg.norm(h):.6g}")
print(f"a grad norm {jnp.linalg.norm(da):.6g}")
print(f"b grad norm {jnp.linalg.norm(db):.6g}")
print("a grad [64, :3]", da[64, :3])
