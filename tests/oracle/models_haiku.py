"""Models of Haiku, as models_linen.py has those of Linen."""

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def cnn(a):
    for features in (8, 16):
        a = hk.BatchNorm(True, True, 0.9)(hk.Conv2D(features, 3)(a), is_training=True)
        a = hk.avg_pool(jax.nn.relu(a), (2, 2, 1), (2, 2, 1), "SAME")
    return hk.Linear(10)(hk.dropout(hk.next_rng_key(), 0.3, hk.Flatten()(a)))


def resnet18(a):
    model = hk.nets.ResNet((2, 2, 2, 2), 10, bottleneck=False, channels_per_group=(8, 16, 32, 64), use_projection=(False, True, True, True),
                           initial_conv_config={"output_channels": 8})  # fmt: skip
    return model(a, is_training=True)


def transformer(words):
    a = hk.Embed(50, 32)(words) + hk.get_parameter("places", (16, 32), init=hk.initializers.RandomNormal(0.02))[: words.shape[1]]
    mask = jnp.tril(jnp.ones((1, 1, words.shape[1], words.shape[1])))
    norm = lambda t: hk.LayerNorm(-1, True, True)(t)  # noqa: E731
    for _ in range(2):
        t = norm(a)
        t = hk.MultiHeadAttention(4, 8, w_init_scale=1.0, model_size=32)(t, t, t, mask=mask)
        a = a + hk.dropout(hk.next_rng_key(), 0.1, t)
        t = hk.Linear(32)(jax.nn.gelu(hk.Linear(64)(norm(a))))
        a = a + hk.dropout(hk.next_rng_key(), 0.1, t)
    return hk.Linear(50)(norm(a))


def lstm(a):
    core = hk.DeepRNN([hk.LSTM(16), jax.nn.tanh, hk.LSTM(8)])
    out, _ = hk.dynamic_unroll(core, a, core.initial_state(a.shape[0]), time_major=False)
    return hk.Linear(10)(out[:, -1])


def gru(a):
    core = hk.ResetCore(hk.GRU(16))
    resets = jnp.arange(a.shape[1])[None] % jnp.arange(2, 2 + a.shape[0])[:, None] == 0
    out, _ = hk.dynamic_unroll(core, (a, resets), core.initial_state(a.shape[0]), time_major=False)
    return hk.Linear(10)(out.mean(1))


def experts(a):
    """The best of four experts by a switch for each token, and the second by one-hot products."""
    logits = hk.Linear(4)(a)
    weights, chosen = lax.top_k(jax.nn.softmax(logits), 2)
    w1 = hk.get_parameter("w1", (4, 12, 32), init=hk.initializers.VarianceScaling())
    w2 = hk.get_parameter("w2", (4, 32, 12), init=hk.initializers.VarianceScaling())
    branches = [lambda t, i=i: jnp.tanh(t @ w1[i]) @ w2[i] for i in range(4)]
    best = lax.map(lambda p: lax.switch(p[0], branches, p[1]), (chosen[:, 0], a))
    second = jnp.einsum("tx,xtd->td", jax.nn.one_hot(chosen[:, 1], 4), jnp.einsum("xth,xhd->xtd", jnp.tanh(jnp.einsum("td,xdh->xth", a, w1)), w2))
    return hk.Linear(10)(a + weights[:, :1] * best + weights[:, 1:] * second)


def unet(a, time):
    angles = time[:, None] * jnp.exp(-np.log(10000.0) * jnp.arange(8) / 8)
    t = hk.Linear(16)(jax.nn.silu(hk.Linear(32)(jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1))))
    norm = lambda a: jax.nn.silu(hk.GroupNorm(4)(a))  # noqa: E731
    top = hk.Conv2D(8, 3)(a)
    a = hk.Conv2D(16, 3, 2)(norm(top)) + t[:, None, None]
    a = a + hk.Conv2D(16, 3)(norm(a))
    b, h, w, c = a.shape
    flat = hk.GroupNorm(4)(a).reshape(b, h * w, c)
    a = a + hk.MultiHeadAttention(2, 8, w_init_scale=1.0, model_size=16)(flat, flat, flat).reshape(a.shape)
    a = jnp.concatenate([hk.Conv2DTranspose(8, 4, 2)(a), top], -1)
    return hk.Conv2D(3, 3)(norm(a))


def made(function, *inputs):
    model = hk.transform_with_state(function)
    params, state = jax.tree.map(np.asarray, model.init(jax.random.key(1), *inputs))

    def apply(params, key, *inputs):
        return model.apply(params, state, jax.random.wrap_key_data(key), *inputs)

    return params, apply, inputs


MODELS = {
    "MLP": lambda n: made(lambda a: hk.nets.MLP([32, 64, 10])(a, 0.2, hk.next_rng_key()), n.floats(8, 12)),
    "CNN": lambda n: made(cnn, n.floats(8, 16, 16, 3)),
    "ResNet-18": lambda n: made(resnet18, n.floats(4, 32, 32, 3)),
    "transformer": lambda n: made(transformer, n.integers(50, 4, 16)),
    "LSTM": lambda n: made(lstm, n.floats(4, 9, 6)),
    "GRU": lambda n: made(gru, n.floats(4, 9, 6)),
    "MoE": lambda n: made(experts, n.floats(16, 12)),
    "U-Net": lambda n: made(unet, n.floats(4, 16, 16, 3), np.float32([0, 10, 200, 900])),
}
