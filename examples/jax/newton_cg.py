import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
np.set_printoptions(formatter={"float": "{:.6g}".format}, linewidth=120)

SAMPLES, FEATURES, L2, ITERATIONS, CG_TOL, CG_MAX = 256, 12, 1e-2, 6, 1e-3, 50
mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


def chirp(freq, *shape):
    k = np.arange(np.prod(shape))
    return np.sin(freq * k * k).astype(np.float32).reshape(shape)


@jax.jit
@jax.shard_map(mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())
def loss_fn(w, x, y):
    margin = y * (x @ w)
    return lax.pmean(jnp.mean(jax.nn.softplus(-margin)), "data") + 0.5 * L2 * w @ w


def conjugate_gradients(matvec, b):
    def unfinished(state):
        _, _, _, rr, count = state
        return (rr > CG_TOL**2 * (b @ b)) & (count < CG_MAX)

    def step(state):
        x, r, p, rr, count = state
        ap = matvec(p)
        alpha = rr / (p @ ap)
        x, r = x + alpha * p, r - alpha * ap
        new_rr = r @ r
        return x, r, r + new_rr / rr * p, new_rr, count + 1

    x, _, _, _, count = lax.while_loop(unfinished, step, (jnp.zeros_like(b), b, b, b @ b, 0))
    return x, count


@jax.jit
def newton_step(w, x, y):
    def grad_fn(w):
        return jax.grad(loss_fn)(w, x, y)

    def hvp(v):
        return jax.jvp(grad_fn, (w,), (v,))[1]

    grad = grad_fn(w)
    direction, count = conjugate_gradients(hvp, grad)
    return w - direction, loss_fn(w, x, y), jnp.linalg.norm(grad), count


x = chirp(0.29, SAMPLES, FEATURES)
noise = chirp(0.41, SAMPLES)
true_w = 2 * np.cos(np.arange(FEATURES)).astype(np.float32)
y = np.where(x @ true_w + 2 * noise > 0, 1, -1).astype(np.float32)
w = jnp.zeros(FEATURES)
for i in range(ITERATIONS):
    w, loss, grad_norm, count = newton_step(w, x, y)
    print(f"iteration {i} loss {loss:.6f} grad norm {grad_norm:.2e} cg steps {count}")
print(f"final loss {loss_fn(w, x, y):.6f}")
print(f"accuracy {jnp.mean(jnp.sign(x @ w) == y):.6f}")
print("w[:4]", w[:4])
