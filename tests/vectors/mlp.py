"""The training step of a two-layer classifier: batch over data, hidden layer over model. Three steps of SGD."""

import jax
import jax.numpy as jnp
from jax import lax

from case import Case, index, real

BATCH, FEATURES, HIDDEN, CLASSES, STEPS = 32, 8, 16, 4, 3


def loss(w1, w2, x, y):
    hidden = jnp.maximum(jnp.matmul(x, w1), 0)
    logits = lax.psum(jnp.matmul(hidden, w2), "model")
    return lax.pmean(-jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * y, -1)), "data")


def train(v, w1, w2, x, labels):
    y = jax.nn.one_hot(labels, CLASSES, dtype=x.dtype)
    losses = []
    for _ in range(STEPS):
        value, (g1, g2) = jax.value_and_grad(loss, (0, 1))(w1, w2, x, y)
        w1, w2 = w1 - 0.1 * g1, w2 - 0.1 * g2
        losses.append(value)
    return (*losses, w1, w2)


INPUTS = [real(FEATURES, HIDDEN, scale=0.4), real(HIDDEN, CLASSES, scale=0.4), real(BATCH, FEATURES), index(CLASSES, BATCH)]
MESHES = "data=4,model=2 data=8,model=1 data=2,model=4 data=1,model=2 data=1,model=1"

CASES = [Case("mlp", MESHES, train, INPUTS, "_/model model data data > . . . _/model model", modes="v")]
