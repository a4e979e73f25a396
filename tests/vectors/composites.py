"""Composites: values and gradients are those of jax.numpy and jax.nn."""

import jax
import jax.numpy as jnp
import numpy as np

from case import Case, boolean, edge, index, real

FLOAT = "f32 f64 bf16"


def cross_entropy(logits, labels):
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * jax.nn.one_hot(labels, 5, dtype=logits.dtype), -1))


CASES = [
    Case("mean", FLOAT, lambda x: (jnp.mean(x), jnp.mean(x, 0), jnp.mean(x, (0, 2))), [real(3, 4, 2)]),
    Case("sum", FLOAT, lambda x: (jnp.sum(x, 1), jnp.sum(x, -1)), [real(3, 4, 2)]),
    Case("softmax", FLOAT, lambda x: (jax.nn.softmax(x, 0), jax.nn.softmax(x, -1)), [real(4, 5)]),
    Case("softmax_far", "f32 f64", lambda x: jax.nn.softmax(x, -1), [real(4, 5, scale=40)]),
    Case("log_softmax", FLOAT, lambda x: (jax.nn.log_softmax(x, 0), jax.nn.log_softmax(x, -1)), [real(4, 5)]),
    Case("one_hot", "f32 bf16 s32", lambda x, i: x * jax.nn.one_hot(i, 4, dtype=x.dtype), [real(3, 4), index(5, 3, above=-1)]),
    Case("one_hot_u8", "f32", lambda x, i: x * jax.nn.one_hot(i, 300, dtype=x.dtype)[:, ::60], [real(3, 5), index(250, 3, dtype=np.uint8)]),
    Case("relu", FLOAT, jax.nn.relu, [edge(24)]),
    Case("softplus", "f32 f64", jax.nn.softplus, [edge(24)]),
    Case("softplus_wide", "f32 f64", jax.nn.softplus, [real(24, scale=20)]),
    Case("gelu", FLOAT, jax.nn.gelu, [real(24, scale=2)]),
    Case("where", "f32 bf16 s32", lambda c, x, y: jnp.where(c, x, y), [boolean(3, 1), real(3, 4), real(4)]),
    Case("cross_entropy", FLOAT, cross_entropy, [real(6, 5), index(5, 6)]),
    Case("layer_norm", "f32 f64",
         lambda x, g: (x - jnp.mean(x, -1, keepdims=True)) * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * g, [real(3, 8), real(8)]),
    Case("two_layers", FLOAT, lambda x, w, b, u: jnp.matmul(jnp.tanh(jnp.matmul(x, w) + b), u), [real(5, 4), real(4, 6), real(6), real(6, 3)]),
    Case("attention", "f32 f64", lambda q, k, v: jnp.matmul(jax.nn.softmax(jnp.matmul(q, jnp.swapaxes(k, -1, -2)) * 0.5, -1), v),
         [real(2, 3, 4), real(2, 5, 4), real(2, 5, 3)]),
]  # fmt: skip
