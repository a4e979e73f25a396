"""Activations, normalisation and attention: values and gradients are those of jax.nn, and of flax.linen for layer_norm and rms_norm."""

import jax
import jax.numpy as jnp
import numpy as np

from case import Case, boolean, edge, positive, real

FLOAT = "f32 f64 bf16"
WIDE = "f32 f64"


def one(name, function, *inputs, variants=FLOAT, **more):
    return Case(name, variants, function, list(inputs) or [edge(24)], **more)


def activation(name, *arguments):
    return one(name, lambda x: getattr(jax.nn, name)(x, *arguments))


def flax_norm(x, scale, bias=None, axes=(-1,), epsilon=1e-6):
    """flax.linen.LayerNorm, and with bias None RMSNorm: statistics in f32 at least, mean(x^2) - mean^2."""
    wide = jnp.promote_types(x.dtype, jnp.float32)
    y, factor = x.astype(wide), scale.astype(wide)
    variance = jnp.mean(jnp.square(y), axes, keepdims=True)
    if bias is not None:
        mean = jnp.mean(y, axes, keepdims=True)
        variance = jnp.maximum(0.0, variance - jnp.square(mean))
        y = y - mean
    y = y * (jax.lax.rsqrt(variance + epsilon) * factor)
    return (y if bias is None else y + bias.astype(wide)).astype(x.dtype)


def attention(q, k, v, **options):
    """jax.nn's takes the softmax of f64 in f32: so its definition, for heads that are not grouped, in f64."""
    if q.dtype != jnp.float64:
        return jax.nn.dot_product_attention(q, k, v, **options)
    scores = jnp.einsum("btnh,bsnh->bnts", q, k) / np.sqrt(q.shape[-1])
    if "bias" in options:
        scores = scores + options["bias"]
    seen = jnp.ones(scores.shape, bool) & options.get("mask", True)
    if options.get("is_causal"):
        seen = seen & jnp.tril(jnp.ones(scores.shape[2:], bool))
    return jnp.einsum("bnts,bsnh->btnh", jax.nn.softmax(jnp.where(seen, scores, -0.7 * float(np.finfo(np.float32).max)), -1), v)


def lengths(*numbers):
    return lambda random, variant: np.array(numbers, np.int32)


def signed(*dims):
    """Factors, some of them 0."""
    return lambda random, variant: np.asarray(random.choice([-1, 0, 0.5, 2], size=dims)).astype(variant.dtype)


QKV = [real(2, 3, 4, 5), real(2, 6, 4, 5), real(2, 6, 4, 5)]
SQUARE = [real(2, 5, 2, 4), real(2, 5, 2, 4), real(2, 5, 2, 4)]
GROUPED = [real(2, 5, 6, 4), real(2, 5, 2, 4), real(2, 5, 2, 4)]

CASES = [
    activation("relu6"),
    one("elu_half", lambda x: jax.nn.elu(x, 0.5)),
    activation("selu"),
    activation("celu", 1.5),
    activation("silu"),
    one("mish", jax.nn.mish, real(24, scale=3)),
    activation("leaky_relu", 0.01),
    activation("hard_tanh"),
    activation("hard_sigmoid"),
    activation("hard_silu"),
    activation("log_sigmoid"),
    activation("squareplus", 4),
    activation("soft_sign"),
    one("sparse_plus", jax.nn.sparse_plus, real(24, scale=2)),
    activation("sparse_sigmoid"),
    one("log1mexp", jax.nn.log1mexp, positive(24), variants=WIDE),
    one("glu", lambda x: (jax.nn.glu(x), jax.nn.glu(x, 0)), real(4, 6)),
    one("softmax_where", lambda x, m: (jax.nn.softmax(x, (0, 1), where=m), jax.nn.softmax(x, -1, where=m | (x == x))), real(4, 5), boolean(4, 5)),
    one("softmax_together", lambda x: jax.nn.softmax(x, (0, 2)), real(3, 4, 2)),
    one("log_softmax_where", lambda x, m: jax.nn.log_softmax(x, (0, 1), where=m), real(4, 5), boolean(4, 5), modes="v"),
    one("logsumexp_where", lambda x, b, m: jax.nn.logsumexp(x, 1, b=b, where=m), real(6, 5), signed(6, 5), boolean(6, 5), variants=WIDE, modes="v"),
    one("logsumexp_mask", lambda x, m: jax.nn.logsumexp(x, (0, 1), where=m, keepdims=True), real(6, 5), boolean(6, 5), variants=WIDE),
    one("logsumexp_factors", lambda x, b: jax.nn.logsumexp(x, None, b=b), real(6, 5), positive(6, 5), variants=WIDE),
    one("standardize", lambda x: (jax.nn.standardize(x), jax.nn.standardize(x, (0, 1), epsilon=1e-3, algorithm="stable")), real(4, 6), variants=WIDE),
    one("standardize_where", lambda x, m, u, v: (jax.nn.standardize(x, 1, where=m), jax.nn.standardize(x, 1, mean=u, variance=v)),
        real(4, 6), lambda random, variant: np.arange(24).reshape(4, 6) % 3 != 0, real(4, 1), positive(4, 1), variants=WIDE),
    one("layer_norm", lambda x, s, b: flax_norm(x, s, b), real(3, 8), real(8), real(8)),
    one("layer_norm_images", lambda x, s, b: flax_norm(x, s, b, (1, 2), 1e-3), real(2, 3, 4, 3), real(3), real(3), variants=WIDE),
    one("rms_norm", lambda x, s: flax_norm(x, s), real(3, 8), real(8)),
    one("attention", attention, *QKV),
    one("attention_causal", lambda q, k, v: attention(q, k, v, is_causal=True), *SQUARE),
    one("attention_mask", lambda q, k, v, b, m: attention(q, k, v, bias=b, mask=m), *QKV, real(1, 4, 3, 6), boolean(2, 1, 1, 6), variants=WIDE),
    one("attention_grouped", lambda q, k, v, b, m: attention(q, k, v, bias=b, mask=m, is_causal=True, scale=0.3), *GROUPED, real(2, 6, 5, 5),
        boolean(1, 6, 5, 5), variants="f32 bf16"),
    one("attention_one_key_head", lambda q, k, v: attention(q, k, v), real(2, 3, 4, 5), real(2, 6, 1, 5), real(2, 6, 1, 5), variants="f32"),
    one("attention_window", lambda q, k, v: (attention(q, k, v, local_window_size=(2, 1)), attention(q, k, v, local_window_size=1, is_causal=True)),
        *SQUARE, variants="f32"),
    one("attention_lengths", lambda q, k, v, t, s: attention(q, k, v, query_seq_lengths=t, key_value_seq_lengths=s), *QKV, lengths(2, 3), lengths(6, 4),
        variants="f32"),
    one("attention_no_batch", lambda q, k, v: attention(q, k, v), real(3, 4, 5), real(6, 4, 5), real(6, 4, 5), variants="f32"),
]  # fmt: skip
