"""Models of Equinox, as models_linen.py has those of Linen. They are functions of one example, and vmap makes the batch."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from equinox import nn
from jax import lax


def keys(n):
    return jax.random.split(jax.random.key(1), n)


class Cnn(eqx.Module):
    layers: nn.Sequential

    def __init__(self):
        k = keys(4)
        self.layers = nn.Sequential([
            nn.Conv2d(3, 8, 3, padding=1, key=k[0]), nn.Lambda(jax.nn.relu), nn.MaxPool2d(2, 2), nn.Conv2d(8, 16, 3, key=k[1]),
            nn.Lambda(jax.nn.gelu), nn.AvgPool2d(2, 2), nn.Lambda(jnp.ravel), nn.Dropout(0.3), nn.Linear(144, 10, key=k[2]),
        ])  # fmt: skip

    def __call__(self, a, key):
        return self.layers(a, key=key)


class Block(eqx.Module):
    one: nn.Conv2d
    two: nn.Conv2d
    short: nn.Conv2d | None
    norms: list

    def __init__(self, before, features, stride, key):
        k = jax.random.split(key, 3)
        self.one = nn.Conv2d(before, features, 3, stride, 1, use_bias=False, key=k[0])
        self.two = nn.Conv2d(features, features, 3, 1, 1, use_bias=False, key=k[1])
        self.short = nn.Conv2d(before, features, 1, stride, use_bias=False, key=k[2]) if stride > 1 else None
        self.norms = [nn.BatchNorm(features, "batch", mode="batch") for _ in range(3)]

    def __call__(self, a, state):
        t, state = self.norms[0](self.one(a), state)
        t, state = self.norms[1](self.two(jax.nn.relu(t)), state)
        if self.short is not None:
            a, state = self.norms[2](self.short(a), state)
        return jax.nn.relu(a + t), state


class ResNet18(eqx.Module):
    first: nn.Conv2d
    norm: nn.BatchNorm
    pool: nn.MaxPool2d
    blocks: list
    last: nn.Linear

    def __init__(self):
        k = keys(10)
        self.first = nn.Conv2d(3, 8, 7, 2, 3, use_bias=False, key=k[0])
        self.norm = nn.BatchNorm(8, "batch", mode="batch")
        self.pool = nn.MaxPool2d(3, 2, 1)
        sizes = [(8, 8, 1), (8, 8, 1), (8, 16, 2), (16, 16, 1), (16, 32, 2), (32, 32, 1), (32, 64, 2), (64, 64, 1)]
        self.blocks = [Block(*s, key) for s, key in zip(sizes, k[1:])]
        self.last = nn.Linear(64, 10, key=k[9])

    def __call__(self, a, key, state):
        a, state = self.norm(self.first(a), state)
        a = self.pool(jax.nn.relu(a))
        for block in self.blocks:
            a, state = block(a, state)
        return self.last(a.mean((1, 2))), state


class Transformer(eqx.Module):
    words: nn.Embedding
    places: nn.Embedding
    rope: nn.RotaryPositionalEmbedding
    attention: list
    mlps: list
    norms: list
    drop: nn.Dropout
    last: nn.Linear

    def __init__(self):
        k = keys(8)
        self.words, self.places = nn.Embedding(50, 32, key=k[0]), nn.Embedding(16, 32, key=k[1])
        self.rope = nn.RotaryPositionalEmbedding(8)
        self.attention = [nn.MultiheadAttention(4, 32, dropout_p=0.1, key=i) for i in k[2:4]]
        self.mlps = [nn.MLP(32, 32, 64, 1, jax.nn.gelu, key=i) for i in k[4:6]]
        self.norms = [nn.LayerNorm(32) for _ in range(5)]
        self.drop = nn.Dropout(0.1)
        self.last = nn.Linear(32, 50, key=k[6])

    def __call__(self, words, key):
        a = jax.vmap(self.words)(words) + jax.vmap(self.places)(jnp.arange(words.shape[0]))
        mask = jnp.tril(jnp.ones((words.shape[0],) * 2, bool))
        turn = lambda q, k, v: (jax.vmap(self.rope, 1, 1)(q), jax.vmap(self.rope, 1, 1)(k), v)  # noqa: E731
        for i, k in enumerate(jax.random.split(key, 2)):
            k1, k2 = jax.random.split(k)
            t = jax.vmap(self.norms[2 * i])(a)
            a = a + self.attention[i](t, t, t, mask, key=k1, process_heads=turn)
            a = a + self.drop(jax.vmap(self.mlps[i])(jax.vmap(self.norms[2 * i + 1])(a)), key=k2)
        return jax.vmap(self.last)(jax.vmap(self.norms[4])(a))


class Recurrent(eqx.Module):
    cell: eqx.Module
    last: nn.Linear

    def __init__(self, cell):
        self.cell, self.last = cell(6, 16, key=keys(2)[0]), nn.Linear(16, 10, key=keys(2)[1])

    def __call__(self, a, key):
        zero = jnp.zeros(16)
        start = (zero, zero) if isinstance(self.cell, nn.LSTMCell) else zero

        def step(state, x):
            return self.cell(x, state), None

        state, _ = lax.scan(step, start, a)
        return self.last(jax.tree.leaves(state)[0])


class Experts(eqx.Module):
    """The best two of four experts, whose weights are gathered for each token."""

    gate: nn.Linear
    experts: nn.MLP
    last: nn.Linear

    def __init__(self):
        k = keys(3)
        self.gate, self.last = nn.Linear(12, 4, key=k[0]), nn.Linear(12, 10, key=k[1])
        self.experts = eqx.filter_vmap(lambda key: nn.MLP(12, 12, 32, 1, jax.nn.silu, key=key))(jax.random.split(k[2], 4))

    def __call__(self, a, key):
        weights, chosen = lax.top_k(jax.nn.softmax(self.gate(a) + 0.01 * jax.random.normal(key, (4,))), 2)
        arrays, static = eqx.partition(self.experts, eqx.is_array)
        made = jax.vmap(lambda i: eqx.combine(jax.tree.map(lambda w: w[i], arrays), static)(a))(chosen)
        return self.last(a + weights @ made)


class UNet(eqx.Module):
    time: nn.MLP
    convs: list
    norms: list
    attention: nn.MultiheadAttention
    up: nn.ConvTranspose2d

    def __init__(self):
        k = keys(8)
        self.time = nn.MLP(16, 16, 32, 1, jax.nn.silu, key=k[0])
        conv = lambda a, b, s, key: nn.Conv2d(a, b, 3, s, 1, key=key)  # noqa: E731
        self.convs = [conv(3, 8, 1, k[1]), conv(8, 16, 2, k[2]), conv(16, 16, 1, k[3]), conv(16, 3, 1, k[4])]
        self.norms = [nn.GroupNorm(4, c) for c in (8, 16, 16, 16)]
        self.attention = nn.MultiheadAttention(2, 16, key=k[5])
        self.up = nn.ConvTranspose2d(16, 8, 4, 2, padding=1, key=k[6])

    def __call__(self, a, time, key):
        angles = time * jnp.exp(-np.log(10000.0) * jnp.arange(8) / 8)
        t = self.time(jnp.concatenate([jnp.sin(angles), jnp.cos(angles)]))
        top = self.convs[0](a)
        a = self.convs[1](jax.nn.silu(self.norms[0](top))) + t[:, None, None]
        a = a + self.convs[2](jax.nn.silu(self.norms[1](a)))
        flat = self.norms[2](a).reshape(16, -1).T
        a = a + self.attention(flat, flat, flat).T.reshape(a.shape)
        a = jnp.concatenate([self.up(a), top])
        return self.convs[3](jax.nn.silu(self.norms[3](a)))


def made(make, *inputs, stateful=False):
    model, state = eqx.nn.make_with_state(make)()
    params, static = eqx.partition(model, eqx.is_inexact_array)

    def apply(params, key, *inputs):
        model = eqx.combine(params, static)
        each = jax.random.split(jax.random.wrap_key_data(key), inputs[0].shape[0])
        if not stateful:
            return jax.vmap(model)(*inputs, each), {}
        result, after = jax.vmap(model, (0, 0, None), (0, None), axis_name="batch")(*inputs, each, state)
        return result, jax.tree.leaves(after)

    return jax.tree.map(np.asarray, params), apply, inputs




class Mlp(eqx.Module):
    inner: nn.MLP

    def __init__(self):
        self.inner = nn.MLP(12, 10, 32, 3, key=keys(1)[0])

    def __call__(self, a, key):
        return self.inner(a)


MODELS = {
    "MLP": lambda n: made(Mlp, n.floats(8, 12)),
    "CNN": lambda n: made(Cnn, n.floats(8, 3, 16, 16)),
    "ResNet-18": lambda n: made(ResNet18, n.floats(4, 3, 32, 32), stateful=True),
    "transformer": lambda n: made(Transformer, n.integers(50, 4, 16)),
    "LSTM": lambda n: made(lambda: Recurrent(nn.LSTMCell), n.floats(4, 9, 6)),
    "GRU": lambda n: made(lambda: Recurrent(nn.GRUCell), n.floats(4, 9, 6)),
    "MoE": lambda n: made(Experts, n.floats(16, 12)),
    "U-Net": lambda n: made(UNet, n.floats(4, 3, 16, 16), np.float32([0, 10, 200, 900])),
}
