"""The losses of mlp.c and transformer.c in JAX, with the same weights by the same names."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

LAYERS, WIDTH, HEADS, HIDDEN, LENGTH, BATCH, VOCABULARY = 4, 256, 8, 1024, 128, 32, 256
KEY = WIDTH // HEADS


class Model:
    """loss(weights, data), both dicts; specs by name; make(rng) gives the arrays: weights, data."""

    mesh = ((4, 2), ("data", "model"))
    kinks = staticmethod(lambda weights, data: {})  # by weight: which of its elements have gradients that a rounding may change much

    def __init__(self, loss, weights, data, make, is_global=False):
        """is_global: the loss is over whole arrays, and jit lays them out."""
        self.loss, self.weight_specs, self.data_specs, self.make, self.is_global = loss, weights, data, make, is_global


def mlp(batch, width, hidden, classes):
    def loss(w, d):
        logits = lax.psum(jnp.maximum(d["x"] @ w["w1"], 0) @ w["w2"], "model")
        return lax.pmean(-jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * d["y"], -1)), "data")

    def make(rng):
        normal = lambda *shape: rng.standard_normal(shape, np.float32)
        y = np.eye(classes, dtype=np.float32)[rng.integers(0, classes, batch)]
        weights = {"w1": normal(width, hidden) * np.float32(0.05), "w2": normal(hidden, classes) * np.float32(0.05)}
        return weights, {"x": normal(batch, width), "y": y}

    def kinks(weights, data):  # hidden features that are as good as 0 for some example, where the slope jumps
        near = np.abs(data["x"].astype(np.float64) @ weights["w1"]) < 3e-6
        return {"w1": near.any(0)[None, :]}

    model = Model(loss, {"w1": P(None, "model"), "w2": P("model")}, {"x": P("data"), "y": P("data")}, make)
    model.kinks = kinks
    return model


def linear(devices, batch, width, out):
    def loss(w, d):
        error = d["x"] @ w["w"] - d["y"]
        return lax.pmean(jnp.mean(error * error), "data")

    def make(rng):
        normal = lambda *shape: rng.standard_normal(shape, np.float32)
        return {"w": normal(width, out)}, {"x": normal(devices * batch, width), "y": normal(devices * batch, out)}

    model = Model(loss, {"w": P()}, {"x": P("data"), "y": P("data")}, make)
    model.mesh = ((devices,), ("data",))
    return model


def rms_norm(x, gain):
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * gain


def attention(x, wqkv, wo, mask):
    query, key, value = jnp.einsum("btd,dchk->cbhtk", x, wqkv)
    scores = jnp.einsum("bhtk,bhsk->bhts", query, key) / np.sqrt(KEY)
    shares = jax.nn.softmax(jnp.where(mask, scores, -1e9))
    return jnp.einsum("bthk,hkd->btd", jnp.einsum("bhts,bhsk->bthk", shares, value), wo)


def transformer(layers=LAYERS, is_global=False):
    add_up = (lambda x, axis: x) if is_global else lax.psum
    average = (lambda x, axis: x) if is_global else lax.pmean
    layer_specs = {"wqkv": P(None, None, "model"), "wo": P("model"), "w1": P(None, "model"), "w2": P("model"), "g1": P(),
                   "g2": P()}
    layer_shapes = {"wqkv": (WIDTH, 3, HEADS, KEY), "wo": (HEADS, KEY, WIDTH), "w1": (WIDTH, HIDDEN), "w2": (HIDDEN, WIDTH),
                    "g1": (WIDTH,), "g2": (WIDTH,)}

    def loss(w, d):
        tokens = jax.nn.one_hot(d["tok"], VOCABULARY, dtype=jnp.float32)
        h = tokens @ w["e"]
        mask = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
        for n in range(layers):
            h += add_up(attention(rms_norm(h, w[f"g1{n}"]), w[f"wqkv{n}"], w[f"wo{n}"], mask), "model")
            h += add_up(jax.nn.gelu(rms_norm(h, w[f"g2{n}"]) @ w[f"w1{n}"]) @ w[f"w2{n}"], "model")
        guess = jax.nn.log_softmax((h @ w["e"].T)[:, :-1])
        return average(-jnp.mean(jnp.sum(guess * tokens[:, 1:], -1)), "data")

    def make(rng):
        weights = {}
        for n in range(layers):
            for name, shape in layer_shapes.items():
                weights[f"{name}{n}"] = (np.ones(shape, np.float32) if len(shape) == 1 else
                                         rng.standard_normal(shape, np.float32) * np.float32(0.02))
        weights["e"] = rng.standard_normal((VOCABULARY, WIDTH), np.float32) * np.float32(0.02)
        return weights, {"tok": rng.integers(0, VOCABULARY, (BATCH, LENGTH)).astype(np.int32)}

    weights = {f"{name}{n}": spec for n in range(layers) for name, spec in layer_specs.items()} | {"e": P()}
    return Model(loss, weights, {"tok": P("data")}, make, is_global)


MODELS = {"mlp_small": lambda: mlp(256, 64, 512, 10), "mlp_middle": lambda: mlp(1024, 784, 2048, 10),
          "transformer": transformer, "transformer_global": lambda: transformer(is_global=True),
          "transformer_global_32": lambda: transformer(32, is_global=True)}
