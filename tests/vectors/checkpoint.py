"""jax.checkpoint: alone, nested, in loops and branches, under transforms, and on meshes with collectives inside."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.ad_checkpoint import checkpoint_name

from case import Case, real, shards

SAVEABLE = jax.checkpoint_policies.dots_saveable


def layer(h, w):
    h = jnp.tanh(jnp.matmul(h, w))
    return jnp.sin(jnp.matmul(h, w)) * h


def chain(again):
    def f(h, ws):
        for w in ws:
            h = again(layer)(h, w)
        return h

    return f


def loss(f):
    return lambda h, ws: jnp.sum(f(h, ws) ** 2)


def dots(f):
    return jax.checkpoint(f, policy=SAVEABLE)


def named_layer(h, w):
    h = checkpoint_name(jnp.tanh(jnp.matmul(h, w)), "first")
    return checkpoint_name(jnp.sin(jnp.matmul(h, w)), "second") * h


def names(h, ws):
    for w in ws:
        h = jax.checkpoint(named_layer, policy=jax.checkpoint_policies.save_only_these_names("first", "third"))(h, w)
    return h


POLICIES = jax.checkpoint_policies


def by(policy):
    def f(h, ws):
        for w in ws:
            h = jax.checkpoint(named_layer, policy=policy)(h, w)
        return h

    return lambda h, ws: jax.grad(loss(f), (0, 1))(h, ws)


def own_policy(prim, *_, **params):
    return prim.name in ("tanh", "cos")


def nested(h, ws):
    two = lambda h, ws: chain(jax.checkpoint)(h, ws)
    return jax.checkpoint(two)(jax.checkpoint(two)(h, ws[:2]), ws[2:])


def scanned(h, ws):
    return lax.scan(lambda h, w: (jax.checkpoint(layer)(h, w), None), h, ws)[0]


def of_a_scan(h, ws):
    return jax.checkpoint(lambda h, ws: lax.scan(lambda h, w: (layer(h, w), None), h, ws)[0])(h, ws)


def chosen(h, ws):
    return lax.cond(jnp.sum(h) > 0, jax.checkpoint(lambda h, w: layer(h, w)), lambda h, w: h * 2, h, ws[0])


def captured(h, ws):
    return jax.checkpoint(lambda h: layer(h, ws[0]) + ws[1][0])(h)


def second(f):
    return jax.grad(lambda h, ws: jnp.sum(jax.grad(loss(f), 1)(h, ws) ** 2))


OPERANDS = [real(3), real(4, 3, 3, scale=0.5)]


def on_mesh(collective):
    """The collective of what is done again, and its gradient as a result."""

    def f(v, x, w):
        g = jax.checkpoint(lambda x, w: collective(v, jnp.sin(x * w)))
        return g(x, w), jax.grad(lambda x: jnp.sum(jnp.sin(g(x, w))))(x)

    return f


def over(name, collective, **more):
    return Case(f"mesh_{name}", "d=4 a=4,b=2:a", on_mesh(collective), [shards(8, 3), real(3)], "A . > A A", unchecked=True, **more)


def ring(v):
    return [(i, (i + 1) % v.members) for i in range(v.members)]


def pairs(v):
    return [[i, i + 1] for i in range(0, v.members, 2)]


CASES = [
    Case("chain", "f32 f64", chain(jax.checkpoint), OPERANDS),
    Case("chain_dots", "f64", chain(dots), OPERANDS),
    Case("chain_grad", "f32 f64", lambda h, ws: jax.grad(loss(chain(jax.checkpoint)), (0, 1))(h, ws), OPERANDS),
    Case("chain_dots_grad", "f64", lambda h, ws: jax.grad(loss(chain(dots)), (0, 1))(h, ws), OPERANDS),
    Case("names", "f64", names, OPERANDS),
    Case("names_grad", "f64", lambda h, ws: jax.grad(loss(names), (0, 1))(h, ws), OPERANDS),
    Case("everything_grad", "f64", by(POLICIES.everything_saveable), OPERANDS),
    Case("unbatched_grad", "f64", by(POLICIES.dots_with_no_batch_dims_saveable), OPERANDS),
    Case("other_names_grad", "f64", by(POLICIES.save_any_names_but_these("second")), OPERANDS),
    Case("either_grad", "f64", by(POLICIES.save_from_both_policies(SAVEABLE, POLICIES.save_only_these_names("second"))), OPERANDS),
    Case("own_policy_grad", "f64", by(own_policy), OPERANDS),
    Case("nested_grad", "f64", lambda h, ws: jax.grad(loss(nested), (0, 1))(h, ws), OPERANDS),
    Case("scan_grad", "f32 f64", lambda h, ws: jax.grad(loss(scanned), (0, 1))(h, ws), OPERANDS),
    Case("of_scan_grad", "f64", lambda h, ws: jax.grad(loss(of_a_scan), (0, 1))(h, ws), OPERANDS),
    Case("cond_grad", "f64", lambda h, ws: jax.grad(loss(chosen), (0, 1))(h, ws), OPERANDS),
    Case("captured_grad", "f64", lambda h, ws: jax.grad(loss(captured), (0, 1))(h, ws), OPERANDS),
    Case("second", "f64", second(chain(jax.checkpoint)), OPERANDS),
    Case("second_scan", "f64", second(scanned), OPERANDS),
    Case("vmap_of_grad", "f64", lambda h, ws: jax.vmap(jax.grad(loss(scanned)), (0, None))(h, ws), [real(2, 3), real(4, 3, 3, scale=0.5)]),
    Case("grad_of_vmap", "f64", lambda h, ws: jax.grad(lambda h, ws: jnp.sum(jax.vmap(chain(jax.checkpoint), (0, None))(h, ws)))(h, ws),
         [real(2, 3), real(4, 3, 3, scale=0.5)]),
    over("psum", lambda v, x: lax.psum(x, v.axes) * x),
    over("pmean", lambda v, x: lax.pmean(x, v.axes) * x),
    over("all_gather", lambda v, x: jnp.sum(lax.all_gather(x, v.axes), 0) * x),
    over("psum_scatter", lambda v, x: jnp.tile(lax.psum_scatter(x, v.axes, tiled=True), (4, 1)) * x),
    over("all_to_all", lambda v, x: lax.all_to_all(x, v.axes, 0, 0, tiled=True) * x),
    over("ppermute", lambda v, x: lax.ppermute(x, v.axes, ring(v)) * x),
    over("pswapaxes", lambda v, x: lax.pswapaxes(jnp.reshape(x, (4, 2, 3)), v.axes, 0).reshape(8, 3) * x),
    over("axis_index", lambda v, x: x * lax.convert_element_type(lax.axis_index(v.axes), x.dtype)),
    over("groups", lambda v, x: lax.psum(x, v.axes, axis_index_groups=pairs(v)) * x),
    Case("mesh_psum_scan", "d=4 a=4,b=2:a",
         lambda v, x, w: lax.scan(lambda c, _: (jax.checkpoint(lambda c: jnp.sin(c * w) + lax.pmean(jnp.tanh(c), v.axes))(c), None), x, None, length=3)[0],
         [shards(2, 3), real(3)], "A . > A"),
]  # fmt: skip
