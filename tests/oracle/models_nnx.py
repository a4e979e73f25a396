"""Models of Flax NNX, as models_linen.py has those of Linen."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax


class Mlp(nnx.Module):
    def __init__(self, rngs):
        sizes = (12, 32, 64, 32)
        self.layers = nnx.List([nnx.Linear(a, b, rngs=rngs) for a, b in zip(sizes, sizes[1:])])
        self.norms = nnx.List([nnx.RMSNorm(b, rngs=rngs) for b in sizes[1:]])
        self.last = nnx.Linear(32, 10, rngs=rngs)

    def __call__(self, a):
        for layer, norm in zip(self.layers, self.norms):
            a = nnx.relu(norm(layer(a)))
        return self.last(a)


class Cnn(nnx.Module):
    def __init__(self, rngs):
        self.one, self.two = nnx.Conv(3, 8, (3, 3), rngs=rngs), nnx.Conv(8, 16, (3, 3), rngs=rngs)
        self.norm = nnx.BatchNorm(8, rngs=rngs)
        self.drop = nnx.Dropout(0.3, rngs=rngs)
        self.last = nnx.Linear(256, 10, rngs=rngs)

    def __call__(self, a):
        a = nnx.max_pool(nnx.relu(self.norm(self.one(a))), (2, 2), (2, 2))
        a = nnx.avg_pool(nnx.gelu(self.two(a)), (2, 2), (2, 2))
        return self.last(self.drop(a.reshape(a.shape[0], -1)))


class Block(nnx.Module):
    def __init__(self, before, features, stride, rngs):
        same = dict(use_bias=False, rngs=rngs)
        self.one = nnx.Conv(before, features, (3, 3), stride, **same)
        self.two = nnx.Conv(features, features, (3, 3), **same)
        self.norms = nnx.List([nnx.BatchNorm(features, rngs=rngs) for _ in range(3)])
        self.short = nnx.Conv(before, features, (1, 1), stride, **same) if stride > 1 or before != features else None

    def __call__(self, a):
        t = self.norms[1](self.two(nnx.relu(self.norms[0](self.one(a)))))
        return nnx.relu(t + (a if self.short is None else self.norms[2](self.short(a))))


class ResNet18(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Conv(3, 8, (7, 7), 2, padding=3, use_bias=False, rngs=rngs)
        self.norm = nnx.BatchNorm(8, rngs=rngs)
        sizes = [(8, 8, 1), (8, 8, 1), (8, 16, 2), (16, 16, 1), (16, 32, 2), (32, 32, 1), (32, 64, 2), (64, 64, 1)]
        self.blocks = nnx.List([Block(a, b, s, rngs) for a, b, s in sizes])
        self.last = nnx.Linear(64, 10, rngs=rngs)

    def __call__(self, a):
        a = nnx.max_pool(nnx.relu(self.norm(self.first(a))), (3, 3), (2, 2), ((1, 1), (1, 1)))
        for block in self.blocks:
            a = block(a)
        return self.last(a.mean((1, 2)))


class Transformer(nnx.Module):
    def __init__(self, rngs):
        self.words, self.places = nnx.Embed(50, 32, rngs=rngs), nnx.Embed(16, 32, rngs=rngs)
        self.attention = nnx.List([nnx.MultiHeadAttention(4, 32, dropout_rate=0.1, decode=False, deterministic=False, rngs=rngs) for _ in range(2)])
        self.wide = nnx.List([nnx.Linear(32, 64, rngs=rngs) for _ in range(2)])
        self.narrow = nnx.List([nnx.Linear(64, 32, rngs=rngs) for _ in range(2)])
        self.norms = nnx.List([nnx.LayerNorm(32, rngs=rngs) for _ in range(4)])
        self.drop = nnx.Dropout(0.1, rngs=rngs)

    def __call__(self, words):
        a = self.drop(self.words(words) + self.places(jnp.arange(words.shape[1])))
        mask = nnx.make_causal_mask(words)
        for i in range(2):
            a = a + self.attention[i](self.norms[2 * i](a), mask=mask)
            a = a + self.drop(self.narrow[i](nnx.gelu(self.wide[i](self.norms[2 * i + 1](a)))))
        return self.words.attend(a)


class Lstm(nnx.Module):
    def __init__(self, rngs):
        self.one = nnx.RNN(nnx.OptimizedLSTMCell(6, 16, rngs=rngs))
        self.two = nnx.RNN(nnx.LSTMCell(16, 8, rngs=rngs), reverse=True, keep_order=True)
        self.last = nnx.Linear(8, 10, rngs=rngs)

    def __call__(self, a):
        return self.last(self.two(self.one(a))[:, 0])


class Gru(nnx.Module):
    def __init__(self, rngs):
        self.one = nnx.RNN(nnx.GRUCell(6, 16, rngs=rngs))
        self.last = nnx.Linear(16, 10, rngs=rngs)

    def __call__(self, a):
        return self.last(self.one(a).mean(1))


class Experts(nnx.Module):
    """The best two of four experts: tokens are sorted by expert, and products are of ragged groups."""

    def __init__(self, rngs):
        self.gate = nnx.Linear(12, 4, rngs=rngs)
        init = nnx.initializers.lecun_normal()
        self.w1, self.w2 = nnx.Param(init(rngs.params(), (4, 12, 32))), nnx.Param(init(rngs.params(), (4, 32, 12)))
        self.last = nnx.Linear(12, 10, rngs=rngs)

    def __call__(self, a):
        weights, chosen = lax.top_k(jax.nn.softmax(self.gate(a)), 2)
        order = jnp.argsort(chosen.reshape(-1))
        sizes = jnp.bincount(chosen.reshape(-1), length=4)
        h = nnx.gelu(lax.ragged_dot(jnp.repeat(a, 2, 0)[order], self.w1[...], sizes))
        h = lax.ragged_dot(h, self.w2[...], sizes)
        back = jnp.zeros_like(h).at[order].set(h).reshape(a.shape[0], 2, -1)
        return self.last(a + (back * weights[..., None]).sum(1))


class UNet(nnx.Module):
    def __init__(self, rngs):
        conv = lambda a, b, k=3, s=1: nnx.Conv(a, b, (k, k), s, rngs=rngs)  # noqa: E731
        self.time = nnx.Sequential(nnx.Linear(16, 32, rngs=rngs), nnx.silu, nnx.Linear(32, 16, rngs=rngs))
        self.first, self.down, self.deep = conv(3, 8), conv(8, 16, s=2), conv(16, 16)
        self.norms = nnx.List([nnx.GroupNorm(c, 4, rngs=rngs) for c in (8, 16, 16, 16)])
        self.attention = nnx.MultiHeadAttention(2, 16, decode=False, deterministic=False, rngs=rngs)
        self.up = nnx.ConvTranspose(16, 8, (4, 4), 2, rngs=rngs)
        self.last = conv(16, 3)

    def __call__(self, a, time):
        angles = time[:, None] * jnp.exp(-np.log(10000.0) * jnp.arange(8) / 8)
        t = self.time(jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1))
        top = self.first(a)
        a = self.down(nnx.silu(self.norms[0](top))) + t[:, None, None]
        a = a + self.deep(nnx.silu(self.norms[1](a)))
        b, h, w, c = a.shape
        a = a + self.attention(self.norms[2](a).reshape(b, h * w, c)).reshape(a.shape)
        a = jnp.concatenate([self.up(a), top], -1)
        return self.last(nnx.silu(self.norms[3](a)))


def made(model, *inputs):
    graph, params, rest = nnx.split(model(nnx.Rngs(1, dropout=2)), nnx.Param, ...)

    def apply(params, key, *inputs):
        model = nnx.merge(graph, params, rest, copy=True)
        nnx.reseed(model, dropout=jax.random.wrap_key_data(key))
        result = model(*inputs)
        return result, nnx.to_pure_dict(nnx.state(model, nnx.BatchStat))

    return jax.tree.map(np.asarray, params), apply, inputs


MODELS = {
    "MLP": lambda n: made(Mlp, n.floats(8, 12)),
    "CNN": lambda n: made(Cnn, n.floats(8, 16, 16, 3)),
    "ResNet-18": lambda n: made(ResNet18, n.floats(4, 32, 32, 3)),
    "transformer": lambda n: made(Transformer, n.integers(50, 4, 16)),
    "LSTM": lambda n: made(Lstm, n.floats(4, 9, 6)),
    "GRU": lambda n: made(Gru, n.floats(4, 9, 6)),
    "MoE": lambda n: made(Experts, n.floats(16, 12)),
    "U-Net": lambda n: made(UNet, n.floats(4, 16, 16, 3), np.float32([0, 10, 200, 900])),
}
