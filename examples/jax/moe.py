import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
np.set_printoptions(formatter={"float": "{:.6g}".format}, linewidth=120)

TOKENS, DIM, HIDDEN, EXPERTS, CAPACITY, AUX_WEIGHT = 128, 16, 32, 8, 3, 0.01
mesh = jax.make_mesh((8,), ("expert",), axis_types=(AxisType.Auto,))


def chirp(freq, *shape):
    k = np.arange(np.prod(shape))
    return np.sin(freq * k * k).astype(np.float32).reshape(shape)


def route(router, x):
    """One-hot dispatch [token, expert, slot], gates, dropped-token count and balance loss."""
    probs = jax.nn.softmax(x @ router)
    chosen = jax.nn.one_hot(jnp.argmax(probs, axis=-1), EXPERTS)
    slot = jnp.sum((jnp.cumsum(chosen, axis=0) - 1) * chosen, axis=-1).astype(int)
    dispatch = chosen[:, :, None] * jax.nn.one_hot(slot, CAPACITY)[:, None, :]
    gate = jnp.sum(probs * chosen, axis=-1)
    dropped = lax.psum(jnp.sum(slot >= CAPACITY), "expert")
    load, importance = lax.pmean((chosen.mean(axis=0), probs.mean(axis=0)), "expert")
    return dispatch, gate, dropped, EXPERTS * jnp.sum(load * importance)


def moe(params, x):
    dispatch, gate, dropped, balance = route(params["router"], x)
    slots = jnp.einsum("tec,td->ecd", dispatch, x)
    slots = lax.all_to_all(slots, "expert", split_axis=0, concat_axis=1, tiled=True)
    hidden = jax.nn.gelu(jnp.einsum("ecd,edh->ech", slots, params["w_in"]))
    slots = jnp.einsum("ech,ehd->ecd", hidden, params["w_out"])
    slots = lax.all_to_all(slots, "expert", split_axis=1, concat_axis=0, tiled=True)
    return gate[:, None] * jnp.einsum("tec,ecd->td", dispatch, slots), dropped, balance


param_specs = {"router": P(), "w_in": P("expert"), "w_out": P("expert")}


@jax.shard_map(mesh=mesh, in_specs=(param_specs, P("expert"), P("expert")), out_specs=P())
def loss_fn(params, x, y):
    out, dropped, balance = moe(params, x)
    error = lax.pmean(jnp.mean((x + out - y) ** 2), "expert")
    return error + AUX_WEIGHT * balance, {"dropped": dropped, "balance": balance}


params = {
    "router": chirp(0.61, DIM, EXPERTS),
    "w_in": chirp(0.37, EXPERTS, DIM, HIDDEN) / np.sqrt(DIM),
    "w_out": chirp(0.53, EXPERTS, HIDDEN, DIM) / np.sqrt(HIDDEN),
}
x = chirp(0.29, TOKENS, DIM)
y = np.cos(2 * x)
grad_fn = jax.jit(jax.value_and_grad(loss_fn, has_aux=True))
(loss, aux), grads = grad_fn(params, x, y)

print(f"loss {loss:.6g} balance {aux['balance']:.6g} dropped {aux['dropped']}")
print(f"router grad norm {jnp.linalg.norm(grads['router']):.6g}")
print("router grad [0, :4]", grads["router"][0, :4])
for name in ("w_in", "w_out"):
    print(f"{name} grad norm by expert", jnp.linalg.norm(grads[name].reshape(EXPERTS, -1), axis=1))
