import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 4)
np.set_printoptions(formatter={"float": "{:.6g}".format}, linewidth=120)

SEQ, DIM, HEADS, HEAD, HIDDEN = 32, 16, 4, 8, 64
mesh = jax.make_mesh((4,), ("model",), axis_types=(AxisType.Auto,))


def chirp(freq, *shape):
    k = np.arange(np.prod(shape))
    return np.sin(freq * k * k).astype(np.float32).reshape(shape)


def layer_norm(x):
    centered = x - x.mean(axis=-1, keepdims=True)
    return centered * lax.rsqrt(jnp.mean(centered**2, axis=-1, keepdims=True) + 1e-5)


def attend(x, wq, wk, wv):
    """Causal; of as many heads as the weights have."""
    q, k, v = (jnp.einsum("sd,dhe->she", x, w) for w in (wq, wk, wv))
    scores = jnp.einsum("she,the->hst", q, k) / np.sqrt(HEAD)
    scores = jnp.where(jnp.tri(SEQ, dtype=bool), scores, -jnp.inf)
    return jnp.einsum("hst,the->she", jax.nn.softmax(scores), v).reshape(SEQ, -1)


def block(params, x, gather, scatter):
    """Heads and hidden units are cut; between the products each device has some rows of the sequence."""
    wq, wk, wv, wo, w1, w2 = params
    x = x + scatter(attend(gather(layer_norm(x)), wq, wk, wv) @ wo)
    return x + scatter(jax.nn.gelu(gather(layer_norm(x)) @ w1) @ w2)


by_column, by_row = P(None, "model"), P("model")
specs = (by_column, by_column, by_column, by_row, by_column, by_row), by_row


@jax.shard_map(mesh=mesh, in_specs=specs, out_specs=by_row)
def cut_block(params, x):
    gather = lambda x: lax.all_gather(x, "model", tiled=True)
    scatter = lambda x: lax.psum_scatter(x, "model", tiled=True)
    return block(params, x, gather, scatter)


def whole_block(params, x):
    return block(params, x, lambda x: x, lambda x: x)


heads = (DIM, HEADS, HEAD)
shapes = [heads, heads, heads, (HEADS * HEAD, DIM), (DIM, HIDDEN), (HIDDEN, DIM)]
params = tuple(chirp(0.31 + 0.06 * i, *shape) / 4 for i, shape in enumerate(shapes))
x = chirp(0.29, SEQ, DIM)
for name, f in ("cut", cut_block), ("whole", whole_block):
    loss = lambda params, x: jnp.mean(f(params, x) ** 2)
    value, grads = jax.jit(jax.value_and_grad(loss))(params, x)
    print(f"{name}: loss {value:.6g}")
    print("norms", *(f"{jnp.linalg.norm(g):.6g}" for g in grads))
