import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)

SIZES, BATCH, STEPS, CLIP = [8, 16, 16, 5], 64, 10, 2.0
mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
schedule = optax.warmup_cosine_decay_schedule(0.0, 0.05, warmup_steps=3, decay_steps=STEPS)
optimizer = optax.adamw(schedule, weight_decay=0.01)


def chirp(freq, *shape):
    k = np.arange(np.prod(shape))
    return np.sin(freq * k * k).astype(np.float32).reshape(shape)


def init_params():
    params = {}
    for i, (n_in, n_out) in enumerate(zip(SIZES[:-1], SIZES[1:])):
        w = chirp(0.37 + 0.1 * i, n_in, n_out) / np.sqrt(n_in)
        params[f"layer{i}"] = {"w": w, "b": jnp.zeros(n_out)}
    return params


def loss_fn(params, x, label):
    *hidden, last = params.values()
    for layer in hidden:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return -jax.nn.log_softmax(x @ last["w"] + last["b"])[label]


def clipped_grad(params, x, label):
    loss, grad = jax.value_and_grad(loss_fn)(params, x, label)
    norm = optax.tree.norm(grad)
    scale = jnp.minimum(1.0, CLIP / norm)
    return jax.tree.map(lambda g: g * scale, grad), loss, norm > CLIP


@jax.jit
@jax.shard_map(mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())
def private_gradient(params, x, label):
    params = lax.pcast(params, "data", to="varying")
    per_example = jax.vmap(clipped_grad, in_axes=(None, 0, 0))(params, x, label)
    total = lax.psum(jax.tree.map(lambda a: a.sum(axis=0), per_example), "data")
    return jax.tree.map(lambda a: a / BATCH, total)


@jax.jit
def train_step(params, opt_state, x, label):
    grad, loss, clipped = private_gradient(params, x, label)
    updates, opt_state = optimizer.update(grad, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss, clipped


def save(file, params):
    leaves, _ = jax.tree.flatten_with_path(params)
    np.savez(file, **{jax.tree_util.keystr(path): leaf for path, leaf in leaves})


def load(file, like):
    arrays = np.load(file)
    return jax.tree.map_with_path(lambda path, _: arrays[jax.tree_util.keystr(path)], like)


x = chirp(0.29, BATCH, SIZES[0])
label = np.argmax(x[:, :5] + x[:, 3:], axis=1)
params = init_params()
opt_state = optimizer.init(params)
for step in range(STEPS):
    params, opt_state, loss, clipped = train_step(params, opt_state, x, label)
    print(f"step {step} loss {loss:.6f} clipped {clipped:.6f}")
with tempfile.NamedTemporaryFile(suffix=".npz") as file:
    save(file, params)
    file.seek(0)
    restored = load(file, init_params())
print(f"restored norm {optax.tree.norm(restored):.6g}")
print(f"restored loss {private_gradient(restored, x, label)[1]:.6f}")
