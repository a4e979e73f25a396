"""A training step in JAX on 4,096 devices in one process: JAX_PLATFORMS=axle AXLE_DEVICES=4096 python examples/many_devices.py"""

import time

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((len(jax.devices()) // 16, 16), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def place(value, *axes):
    return jax.device_put(value, NamedSharding(mesh, P(*axes)))


def loss(weights, x, y):
    hidden = jax.nn.relu(x @ weights["in"])
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(hidden @ weights["out"]) * y, axis=1))


@jax.jit
def step(weights, x, y):
    value, gradient = jax.value_and_grad(loss)(weights, x, y)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradient), value


keys = jax.random.split(jax.random.key(0), 3)
x = place(jax.random.normal(keys[0], (4096, 784)), "data", None)
y = place(jax.nn.one_hot(jnp.argmax(x[:, :10], axis=1), 10), "data", None)
weights = {"in": place(0.05 * jax.random.normal(keys[1], (784, 512)), None, "model"),
           "out": place(0.05 * jax.random.normal(keys[2], (512, 10)), "model", None)}
for i in range(11):
    start = time.perf_counter()
    weights, value = step(weights, x, y)
    value = float(value)
    if i % 5 == 0:
        print(f"step {i:2}  loss {value:.4f}  {1e3 * (time.perf_counter() - start):6.1f} ms")
print(f"{len(jax.devices())} devices; weights over {mesh.shape['model']}, data over {mesh.shape['data']}")
