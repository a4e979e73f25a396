import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

np.set_printoptions(formatter={"float": "{:.6g}".format}, linewidth=120)

BATCH, PROMPT, NEW, VOCAB, DIM, HEADS = 4, 8, 16, 32, 32, 4
LENGTH = PROMPT + NEW


def chirp(freq, *shape):
    k = np.arange(np.prod(shape))
    return np.sin(freq * k * k).astype(np.float32).reshape(shape)


def init_params():
    shapes = {
        "wq": (DIM, DIM),
        "wk": (DIM, DIM),
        "wv": (DIM, DIM),
        "wo": (DIM, DIM),
        "w1": (DIM, 4 * DIM),
        "w2": (4 * DIM, DIM),
        "unembed": (DIM, VOCAB),
    }
    params = {
        name: chirp(0.31 + 0.06 * i, *shape) / np.sqrt(shape[0])
        for i, (name, shape) in enumerate(shapes.items())
    }
    return params | {"embed": chirp(0.83, VOCAB, DIM), "position": chirp(0.97, LENGTH, DIM)}


def layer_norm(x):
    return (x - x.mean()) * lax.rsqrt(x.var() + 1e-5)


def decode_step(params, cache, token, t):
    x = params["embed"][token] + params["position"][t]
    h = layer_norm(x)
    q, k, v = (jnp.reshape(h @ params[name], (HEADS, -1)) for name in ("wq", "wk", "wv"))
    cache = {
        "k": lax.dynamic_update_slice(cache["k"], k[None], (t, 0, 0)),
        "v": lax.dynamic_update_slice(cache["v"], v[None], (t, 0, 0)),
    }
    scores = jnp.einsum("hd,thd->ht", q, cache["k"]) / np.sqrt(DIM // HEADS)
    weights = jax.nn.softmax(jnp.where(jnp.arange(LENGTH) <= t, scores, -jnp.inf))
    x = x + jnp.einsum("ht,thd->hd", weights, cache["v"]).reshape(DIM) @ params["wo"]
    x = x + jax.nn.gelu(layer_norm(x) @ params["w1"]) @ params["w2"]
    return cache, layer_norm(x) @ params["unembed"]


def generate(params, prompt):
    def step(carry, t):
        cache, previous = carry
        token = jnp.where(t < PROMPT, prompt[jnp.minimum(t, PROMPT - 1)], previous)
        cache, logits = decode_step(params, cache, token, t)
        following = jnp.argmax(logits)
        return (cache, following), (following, logits)

    empty = jnp.zeros((LENGTH, HEADS, DIM // HEADS))
    init = {"k": empty, "v": empty}, prompt[0]
    _, (tokens, logits) = lax.scan(step, init, jnp.arange(LENGTH - 1))
    return tokens[PROMPT - 1 :], logits[PROMPT - 1 :]


prompts = np.arange(BATCH * PROMPT).reshape(BATCH, PROMPT) ** 2 * 7 % 31
tokens, logits = jax.jit(jax.vmap(generate, in_axes=(None, 0)))(init_params(), prompts)

for prompt, row in zip(prompts, tokens):
    print(*prompt, "->", *row)
print("top logits of the last position", logits[:, -1].max(axis=-1))
print(f"logits norm {jnp.linalg.norm(logits):.6g}")
