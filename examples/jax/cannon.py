import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 16)
np.set_printoptions(formatter={"float": "{:.6g}".format}, linewidth=120)

SIDE, SIZE = 4, 48
mesh = jax.make_mesh((SIDE, SIDE), ("row", "col"), axis_types=(AxisType.Auto,) * 2)


def chirp(freq, *shape):
    k = np.arange(np.prod(shape))
    return np.sin(freq * k * k).astype(np.float32).reshape(shape)


def moved(by_row, by_col):
    """Block (i, j) goes to the place that the functions say, around the torus."""
    pairs = []
    for i in range(SIDE):
        for j in range(SIDE):
            to = (i - by_row(j)) % SIDE * SIDE + (j - by_col(i)) % SIDE
            pairs.append((i * SIDE + j, to))
    return pairs


def ring(x, axis):
    return lax.ppermute(x, axis, [(i, (i - 1) % SIDE) for i in range(SIDE)])


@jax.shard_map(mesh=mesh, in_specs=(P("row", "col"), P("row", "col")), out_specs=P("row", "col"))
def cannon(a, b):
    def step(_, carry):
        c, a, b = carry
        return c + a @ b, ring(a, "col"), ring(b, "row")

    a = lax.ppermute(a, ("row", "col"), moved(lambda j: 0, lambda i: i))
    b = lax.ppermute(b, ("row", "col"), moved(lambda j: j, lambda i: 0))
    return lax.fori_loop(0, SIDE, step, (jnp.zeros_like(a), a, b))[0]


def loss(a, b):
    return jnp.sum(jnp.sin(cannon(a, b)))


a, b = chirp(0.37, SIZE, SIZE), chirp(0.53, SIZE, SIZE)
c = jax.jit(cannon)(a, b)
da, db = jax.jit(jax.grad(loss, argnums=(0, 1)))(a, b)

print("c [5, :4]", c[5, :4])
print("c matches", jnp.allclose(c, a @ b, 1e-4, 1e-4))
print(f"c norm {jnp.linalg.norm(c):.6g}")
print(f"a grad norm {jnp.linalg.norm(da):.6g}")
print(f"b grad norm {jnp.linalg.norm(db):.6g}")
print("b grad [-1, -4:]", db[-1, -4:])
