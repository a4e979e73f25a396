"""Models of Flax Linen. MODELS: name to a function of a generator of numbers that gives (parameters, apply, inputs), where
apply(parameters, key, *inputs) gives the model's result and what else it changes."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

constrain = [lambda a, *spec: a]  # how activations lie over devices; import_models.py sets it


class Mlp(nn.Module):
    @nn.compact
    def __call__(self, a):
        for features in (32, 64, 32):
            a = nn.relu(nn.LayerNorm()(nn.Dense(features)(a)))
        return nn.Dense(10)(a)


class Cnn(nn.Module):
    @nn.compact
    def __call__(self, a):
        for features in (8, 16):
            a = nn.BatchNorm(use_running_average=False)(nn.Conv(features, (3, 3))(a))
            a = nn.avg_pool(nn.relu(a), (2, 2), (2, 2))
        a = nn.Dropout(0.3, deterministic=False)(a.reshape((a.shape[0], -1)))
        return nn.Dense(10)(a)


class Block(nn.Module):
    features: int
    stride: int = 1

    @nn.compact
    def __call__(self, a):
        norm = lambda t: nn.BatchNorm(use_running_average=False)(t)  # noqa: E731
        t = nn.relu(norm(nn.Conv(self.features, (3, 3), (self.stride,) * 2, use_bias=False)(a)))
        t = norm(nn.Conv(self.features, (3, 3), use_bias=False)(t))
        if a.shape != t.shape:
            a = norm(nn.Conv(self.features, (1, 1), (self.stride,) * 2, use_bias=False)(a))
        return nn.relu(a + t)


class ResNet18(nn.Module):
    """He and others, 2015: 17 convolutions and a dense layer, of narrow layers."""

    @nn.compact
    def __call__(self, a):
        a = nn.Conv(8, (7, 7), (2, 2), padding=3, use_bias=False)(a)
        a = nn.max_pool(nn.relu(nn.BatchNorm(use_running_average=False)(a)), (3, 3), (2, 2), ((1, 1), (1, 1)))
        for i, features in enumerate((8, 16, 32, 64)):
            a = Block(features, 1 if i == 0 else 2)(a)
            a = Block(features)(a)
        return nn.Dense(10)(a.mean((1, 2)))


class Transformer(nn.Module):
    @nn.compact
    def __call__(self, words):
        a = nn.Embed(50, 32)(words) + nn.Embed(16, 32)(jnp.arange(words.shape[1]))
        a = nn.Dropout(0.1, deterministic=False)(a)
        for _ in range(2):
            mask = nn.make_causal_mask(jnp.ones(words.shape))
            t = nn.MultiHeadDotProductAttention(4, dropout_rate=0.1, deterministic=False)(nn.LayerNorm()(a), mask=mask)
            a = constrain[0](a + t, "data")
            t = constrain[0](nn.gelu(nn.Dense(64)(nn.LayerNorm()(a))), "data", None, "model")
            a = a + nn.Dropout(0.1, deterministic=False)(nn.Dense(32)(t))
        return nn.Dense(50)(nn.LayerNorm()(a))


class Lstm(nn.Module):
    @nn.compact
    def __call__(self, a):
        a = nn.RNN(nn.OptimizedLSTMCell(16))(a)
        a = nn.Bidirectional(nn.RNN(nn.LSTMCell(8)), nn.RNN(nn.LSTMCell(8)))(a)
        return nn.Dense(10)(a[:, -1])


class Gru(nn.Module):
    @nn.compact
    def __call__(self, a):
        lengths = jnp.arange(a.shape[0]) * 2 % 7 + 3
        return nn.Dense(10)(nn.RNN(nn.GRUCell(16))(a, seq_lengths=lengths).mean(1))


class Experts(nn.Module):
    """The best two of four experts, each with room for so many tokens."""

    @nn.compact
    def __call__(self, a):
        tokens, width = a.shape
        logits = nn.Dense(4)(a)
        weights, chosen = lax.top_k(jax.nn.softmax(logits), 2)
        weights = weights / weights.sum(-1, keepdims=True)
        mask = jax.nn.one_hot(chosen, 4, dtype=jnp.int32)  # [tokens, 2, experts]
        place = jnp.cumsum(mask.reshape(-1, 4), 0).reshape(mask.shape) * mask - 1
        room = tokens // 2 + 2
        sent = jax.nn.one_hot(place, room) * mask[..., None]  # [tokens, 2, experts, room]
        inputs = jnp.einsum("tkxr,td->xrd", sent, a)
        w1 = self.param("w1", nn.initializers.lecun_normal(), (4, width, 32))
        w2 = self.param("w2", nn.initializers.lecun_normal(), (4, 32, width))
        made = jnp.einsum("xrh,xhd->xrd", nn.gelu(jnp.einsum("xrd,xdh->xrh", inputs, w1)), w2)
        self.sow("losses", "balance", (jax.nn.softmax(logits).mean(0) * mask.sum((0, 1))).sum())
        return nn.Dense(10)(a + jnp.einsum("tkxr,tk,xrd->td", sent, weights, made))


class UNet(nn.Module):
    """Of a diffusion model: images and times to noise; attention where it is narrowest."""

    @nn.compact
    def __call__(self, a, time):
        half = 8
        angles = time[:, None] * jnp.exp(-np.log(10000.0) * jnp.arange(half) / half)
        t = nn.Dense(32)(nn.silu(nn.Dense(32)(jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1))))

        def block(a, features):
            h = nn.Conv(features, (3, 3))(nn.silu(nn.GroupNorm(4)(a)))
            h = h + nn.Dense(features)(nn.silu(t))[:, None, None]
            h = nn.Conv(features, (3, 3))(nn.silu(nn.GroupNorm(4)(h)))
            return h + (a if a.shape[-1] == features else nn.Conv(features, (1, 1))(a))

        a = nn.Conv(8, (3, 3))(a)
        kept = []
        for features in (8, 16):
            a = block(a, features)
            kept.append(a)
            a = nn.Conv(features, (3, 3), (2, 2))(a)
        b, h, w, c = a.shape
        a = a + nn.SelfAttention(2)(nn.GroupNorm(4)(a).reshape(b, h * w, c)).reshape(a.shape)
        for features in (16, 8):
            a = nn.ConvTranspose(features, (4, 4), (2, 2))(a)
            a = block(jnp.concatenate([a, kept.pop()], -1), features)
        return nn.Conv(3, (3, 3))(nn.silu(nn.GroupNorm(4)(a)))


def made(model, *inputs):
    rngs = {"params": jax.random.key(1), "dropout": jax.random.key(2)}
    variables = jax.tree.map(np.asarray, dict(model.init(rngs, *inputs)))
    params = variables.pop("params")
    variables.pop("losses", None)

    def apply(params, key, *inputs):
        return model.apply({"params": params, **variables}, *inputs, rngs={"dropout": jax.random.wrap_key_data(key)},
                           mutable=["batch_stats", "losses"])  # fmt: skip

    return params, apply, inputs


MODELS = {
    "MLP": lambda n: made(Mlp(), n.floats(8, 12)),
    "CNN": lambda n: made(Cnn(), n.floats(8, 16, 16, 3)),
    "ResNet-18": lambda n: made(ResNet18(), n.floats(4, 32, 32, 3)),
    "transformer": lambda n: made(Transformer(), n.integers(50, 4, 16)),
    "LSTM": lambda n: made(Lstm(), n.floats(4, 9, 6)),
    "GRU": lambda n: made(Gru(), n.floats(4, 9, 6)),
    "MoE": lambda n: made(Experts(), n.floats(16, 12)),
    "U-Net": lambda n: made(UNet(), n.floats(4, 16, 16, 3), np.float32([0, 10, 200, 900])),
}
