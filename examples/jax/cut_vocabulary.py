import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
np.set_printoptions(formatter={"float": "{:.6g}".format}, linewidth=120)

TOKENS, DIM, VOCAB = 64, 16, 96
mesh = jax.make_mesh((2, 4), ("data", "vocab"), axis_types=(AxisType.Auto,) * 2)


def chirp(freq, *shape):
    k = np.arange(np.prod(shape))
    return np.sin(freq * k * k).astype(np.float32).reshape(shape)


@jax.shard_map(mesh=mesh, in_specs=(P("data"), P(None, "vocab"), P("data")), out_specs=P())
def cut_loss(x, w, labels):
    """No device has more than its rows and columns of the logits."""
    logits = x @ w
    columns = logits.shape[1]
    top = lax.pmax(lax.stop_gradient(logits.max(axis=-1)), "vocab")
    total = lax.psum(jnp.exp(logits - top[:, None]).sum(axis=-1), "vocab")
    # All zeros on the devices that do not have the label's column.
    chosen = jax.nn.one_hot(labels - lax.axis_index("vocab") * columns, columns)
    label = lax.psum(jnp.sum(logits * chosen, axis=-1), "vocab")
    return lax.pmean(jnp.mean(jnp.log(total) + top - label), "data")


def full_loss(x, w, labels):
    log_probs = jax.nn.log_softmax(x @ w)
    return -jnp.mean(jnp.take_along_axis(log_probs, labels[:, None], axis=1))


x = chirp(0.29, TOKENS, DIM)
w = chirp(0.37, DIM, VOCAB)
labels = np.arange(TOKENS, dtype=np.int32) ** 2 * 7 % VOCAB
loss, grads = jax.jit(jax.value_and_grad(cut_loss, argnums=(0, 1)))(x, w, labels)
expected, expected_grads = jax.value_and_grad(full_loss, argnums=(0, 1))(x, w, labels)

print(f"loss {loss:.6g}")
print("loss matches", jnp.allclose(loss, expected, 1e-5, 1e-6))
for name, grad, wanted in zip("xw", grads, expected_grads):
    print(f"{name} grad norm {jnp.linalg.norm(grad):.6g}")
    print(f"{name} grad matches", jnp.allclose(grad, wanted, 1e-4, 1e-6))
print("w grad [:2, -3:]", grads[1][:2, -3:].ravel())
