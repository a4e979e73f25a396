import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
np.set_printoptions(formatter={"float": "{:.6g}".format}, linewidth=120)

BATCH, SEQ, HEADS, DIM = 2, 64, 4, 16
mesh = jax.make_mesh((8,), ("seq",), axis_types=(AxisType.Auto,))


def chirp(freq, *shape):
    k = np.arange(np.prod(shape))
    return np.sin(freq * k * k).astype(np.float32).reshape(shape)


def full_attention(q, k, v):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(DIM)
    causal = jnp.tril(jnp.ones((SEQ, SEQ), bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -jnp.inf), axis=-1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


@jax.shard_map(mesh=mesh, in_specs=P(None, "seq"), out_specs=P(None, "seq"))
def ring_attention(q, k, v):
    size, rank = lax.axis_size("seq"), lax.axis_index("seq")
    batch, block, heads, dim = q.shape
    ring = [(i, (i + 1) % size) for i in range(size)]
    q_pos = rank * block + jnp.arange(block)

    def step(carry, i):
        k, v, out, denom, top = carry
        k_pos = (rank - i) % size * block + jnp.arange(block)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(dim)
        scores = jnp.where(q_pos[:, None] >= k_pos, scores, -jnp.inf)
        new_top = jnp.maximum(top, scores.max(axis=-1))
        rescale = jnp.exp(top - new_top)
        weights = jnp.exp(scores - new_top[..., None])
        denom = denom * rescale + weights.sum(axis=-1)
        out = out * rescale[..., None] + jnp.einsum("bhqk,bkhd->bhqd", weights, v)
        k, v = lax.ppermute((k, v), "seq", ring)
        return (k, v, out, denom, new_top), None

    out = jnp.zeros((batch, heads, block, dim))
    denom = jnp.zeros((batch, heads, block))
    top = jnp.full((batch, heads, block), -jnp.inf)
    out, denom, top = lax.pcast((out, denom, top), "seq", to="varying")
    (_, _, out, denom, _), _ = lax.scan(step, (k, v, out, denom, top), jnp.arange(size))
    return (out / denom[..., None]).swapaxes(1, 2)


def mean_square(attention):
    return lambda q, k, v: jnp.mean(attention(q, k, v) ** 2)


q, k, v = (2 * chirp(freq, BATCH, SEQ, HEADS, DIM) for freq in (0.37, 0.53, 0.71))
out, expected = jax.jit(ring_attention)(q, k, v), full_attention(q, k, v)
loss, grad = jax.jit(jax.value_and_grad(mean_square(ring_attention)))(q, k, v)
expected_grad = jax.grad(mean_square(full_attention))(q, k, v)

print("out[1, 63, 3, :4]", out[1, 63, 3, :4])
print(f"out norm {jnp.linalg.norm(out):.6g}")
print("out matches", bool(jnp.allclose(out, expected, rtol=1e-5, atol=1e-5)))
print(f"loss {loss:.6g}")
print(f"grad norm {jnp.linalg.norm(grad):.6g}")
print("grad matches", bool(jnp.allclose(grad, expected_grad, rtol=1e-4, atol=1e-7)))
