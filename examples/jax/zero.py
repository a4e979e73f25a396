import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree
from jax.sharding import AxisType, PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)

SIZES, BATCH, STEPS = [8, 32, 32, 4], 64, 20
LR, B1, B2, EPS = 1e-2, 0.9, 0.999, 1e-8
mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


def chirp(freq, *shape):
    k = np.arange(np.prod(shape))
    return np.sin(freq * k * k).astype(np.float32).reshape(shape)


def init_params():
    return [
        {"w": chirp(0.37 + 0.1 * i, n_in, n_out) / np.sqrt(n_in), "b": jnp.zeros(n_out)}
        for i, (n_in, n_out) in enumerate(zip(SIZES[:-1], SIZES[1:]))
    ]


def mlp(params, x):
    for layer in params[:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss_fn(params, x, y):
    return jnp.mean((mlp(params, x) - y) ** 2)


def init_adam(params):
    flat, _ = ravel_pytree(params)
    padded = -(-flat.size // mesh.size) * mesh.size
    return {"mu": jnp.zeros(padded), "nu": jnp.zeros(padded), "count": jnp.zeros((), jnp.int32)}


adam_specs = {"mu": P("data"), "nu": P("data"), "count": P()}


@jax.jit
@jax.shard_map(
    mesh=mesh,
    in_specs=(P(), adam_specs, P("data"), P("data")),
    out_specs=(P(), adam_specs, P()),
)
def train_step(params, adam, x, y):
    local_params = lax.pcast(params, "data", to="varying")
    loss, grads = jax.value_and_grad(loss_fn)(local_params, x, y)
    flat, unravel = ravel_pytree(params)
    size, shard = flat.size, adam["mu"].size
    pad = (0, shard * lax.axis_size("data") - size)

    grad = lax.psum_scatter(jnp.pad(ravel_pytree(grads)[0], pad), "data", tiled=True)
    grad = grad / lax.axis_size("data")
    count = adam["count"] + 1
    mu = B1 * adam["mu"] + (1 - B1) * grad
    nu = B2 * adam["nu"] + (1 - B2) * grad**2
    update = LR * (mu / (1 - B1**count)) / (jnp.sqrt(nu / (1 - B2**count)) + EPS)
    mine = lax.dynamic_slice(jnp.pad(flat, pad), [lax.axis_index("data") * shard], [shard])
    flat = lax.all_gather(mine - update, "data", tiled=True, to="invarying")
    adam = {"mu": mu, "nu": nu, "count": count}
    return unravel(flat[:size]), adam, lax.pmean(loss, "data")


x = chirp(0.29, BATCH, SIZES[0])
y = np.sin(2 * x[:, :4]) * x[:, 4:]
params = init_params()
adam = init_adam(params)
for step in range(STEPS):
    params, adam, loss = train_step(params, adam, x, y)
    print(f"step {step} loss {loss:.6f}")
print(f"param norm {jnp.linalg.norm(ravel_pytree(params)[0]):.6g}")
print("moment shard", adam["mu"].addressable_shards[0].data.shape)
