"""A training step in JAX, and the text of its module: python3 step.py > step.mlir"""

import jax
import jax.numpy as jnp


def loss(w1, w2, x, y):
    hidden = jax.nn.relu(x @ w1)
    return jnp.mean((hidden @ w2 - y) ** 2)


def step(w1, w2, x, y):
    value, (g1, g2) = jax.value_and_grad(loss, (0, 1))(w1, w2, x, y)
    return value, w1 - 0.1 * g1, w2 - 0.1 * g2


def array(*shape):
    return jax.ShapeDtypeStruct(shape, "float32")


print(jax.jit(step).lower(array(4, 8), array(8, 2), array(1024, 4), array(1024, 2)).as_text(), end="")
