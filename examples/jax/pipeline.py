import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
np.set_printoptions(formatter={"float": "{:.6g}".format}, linewidth=120)

STAGES, MICROBATCHES, ROWS, DIM, LR = 4, 8, 4, 16, 0.5
mesh = jax.make_mesh(
    (STAGES,), ("stage",), axis_types=(AxisType.Auto,), devices=jax.devices()[:STAGES]
)


def chirp(freq, *shape):
    k = np.arange(np.prod(shape))
    return np.sin(freq * k * k).astype(np.float32).reshape(shape)


def layer(params, x):
    return jnp.tanh(x @ params["w"] + params["b"])


def sequential(params, x):
    for i in range(STAGES):
        x = layer(jax.tree.map(lambda p: p[i], params), x)
    return x


@jax.shard_map(mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())
def pipelined(params, x):
    params = jax.tree.map(lambda p: p[0], params)
    stage = lax.axis_index("stage")
    forward = [(i, i + 1) for i in range(STAGES - 1)]

    def tick(received, t):
        fresh = x[jnp.minimum(t, MICROBATCHES - 1)]
        out = layer(params, jnp.where(stage == 0, fresh, received))
        return lax.ppermute(out, "stage", forward), out

    init = lax.pcast(jnp.zeros_like(x[0]), "stage", to="varying")
    _, outs = lax.scan(tick, init, jnp.arange(MICROBATCHES + STAGES - 1))
    last = jnp.where(stage == STAGES - 1, outs[STAGES - 1 :], 0)
    return lax.psum(last, "stage")


def sgd_step(model, params, x, y):
    def loss_fn(params):
        return jnp.mean((model(params, x) - y) ** 2)

    loss, grads = jax.value_and_grad(loss_fn)(params)
    params = jax.tree.map(lambda p, g: p - LR * g, params, grads)
    return loss, grads, params, loss_fn(params)


params = {
    "w": chirp(0.37, STAGES, DIM, DIM) / np.sqrt(DIM),
    "b": 0.1 * chirp(0.53, STAGES, DIM),
}
x = chirp(0.29, MICROBATCHES, ROWS, DIM)
y = 0.5 * np.cos(3 * x)
step = jax.jit(sgd_step, static_argnums=0)
result = loss, grads, new_params, new_loss = step(pipelined, params, x, y)
expected = step(sequential, params, x, y)

print(f"loss {loss:.6g} after step {new_loss:.6g}")
for name in ("w", "b"):
    norms = jnp.linalg.norm(grads[name].reshape(STAGES, -1), axis=1)
    print(f"grad norm of {name} by stage", norms)
print("new w[3, 0, :4]", new_params["w"][3, 0, :4])
close = jax.tree.map(lambda a, b: jnp.allclose(a, b, rtol=1e-5, atol=1e-6), result, expected)
print("matches unpipelined", all(jax.tree.leaves(close)))
