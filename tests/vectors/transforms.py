"""Transforms, nested: derivatives of derivatives, vmap of every kind of primitive, named axes."""

import jax
import jax.numpy as jnp
from jax import lax

from case import Case, index, positive, real

NESTED = "v"  # the transform is in the case


def mlp_loss(w, u, x, y):
    error = jnp.matmul(jnp.tanh(jnp.matmul(x, w)), u) - y
    return jnp.mean(error * error)


WEIGHTS = [real(4, 5, scale=0.5), real(5, 2, scale=0.5)]
BATCH = [real(3, 4), real(3, 2)]

SMOOTH = [jnp.exp, jnp.log, jnp.log1p, jnp.expm1, jnp.tanh, lax.logistic, jnp.sqrt, lax.rsqrt, lax.erf,
          lambda x: lax.integer_pow(x, 4), lambda x: lax.integer_pow(x, -2), jax.nn.gelu]  # fmt: skip


def second(f):
    return jax.grad(lambda x: jnp.sum(jax.grad(lambda y: jnp.sum(f(y)))(x)))


def third(x):
    inner = lambda y: jnp.sum(jnp.tanh(y) * y)
    return jax.grad(lambda x: jnp.sum(jax.grad(lambda x: jnp.sum(jax.grad(inner)(x)))(x)))(x)


def hessian(x, w):
    """Forward over reverse, a row for each unit vector."""
    f = lambda x: jnp.sum(jnp.tanh(jnp.matmul(w, x)) * x)
    return jax.vmap(lambda e: jax.jvp(jax.grad(f), (x,), (e,))[1])(jnp.eye(4, dtype=x.dtype))


def cross_entropy(logits, label):
    return -jnp.sum(jax.nn.log_softmax(logits) * jax.nn.one_hot(label, 5, dtype=logits.dtype))


def vmapped(function, in_axes, out_axes=0):
    return lambda *operands: jax.vmap(function, in_axes, out_axes)(*operands)


def named(x):
    """x: [4, 2] of each of the 4 members of i."""
    f32 = lambda v: lax.convert_element_type(v, x.dtype)
    first = x[0]
    return (
        lax.psum(first, "i") * first, lax.pmean(x, "i") + x,
        lax.all_gather(first, "i", axis=1), lax.all_gather(x, "i", axis=0, tiled=True), lax.psum_scatter(x, "i", scatter_dimension=0),
        lax.psum_scatter(x, "i", scatter_dimension=0, tiled=True), lax.all_to_all(x, "i", 0, 1), lax.all_to_all(x, "i", 0, 1, tiled=True),
        lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 3), (3, 0)]), f32(lax.axis_index("i")) * x,
    )  # fmt: skip


CASES = [
    Case("grad", "f32 f64", jax.grad(mlp_loss, (0, 1)), WEIGHTS + BATCH, modes="vjg"),
    Case("value_and_grad", "f32", lambda *xs: (lambda r: (r[0], *r[1]))(jax.value_and_grad(mlp_loss, (0, 1))(*xs)), WEIGHTS + BATCH, modes=NESTED),
    Case("jvp", "f32", lambda w, u, x, y, dw, du, dx, dy: jax.jvp(mlp_loss, (w, u, x, y), (dw, du, dx, dy)), (WEIGHTS + BATCH) * 2, modes=NESTED),
    Case("second_pointwise", "f64", lambda x: [second(f)(x) for f in SMOOTH], [positive(8)]),
    Case("second_pow", "f64", lambda x, y: jax.grad(lambda x, y: jnp.sum(jax.grad(lambda x, y: jnp.sum(lax.pow(x, y)))(x, y)), (0, 1))(x, y),
         [positive(6), real(6)]),
    Case("second_div", "f64", lambda x, y: jax.grad(lambda x, y: jnp.sum(jax.grad(lambda x, y: jnp.sum(x / y * x), 1)(x, y)), (0, 1))(x, y),
         [real(6), positive(6)]),
    Case("third", "f64", third, [real(8)]),
    Case("hessian", "f64 f32", hessian, [real(4), real(4, 4)]),
    Case("second_softmax", "f64", lambda x: jax.grad(lambda x: jnp.sum(jax.grad(lambda x: cross_entropy(x, 2))(x) ** 2))(x), [real(5)]),
    Case("second_max", "f64", lambda x: jax.grad(lambda x: jnp.sum(jax.grad(lambda x: jnp.sum(jnp.max(x * x, 1)))(x) ** 2))(x), [real(4, 3)]),
    Case("vmap", "f32", vmapped(jnp.add, (0, None)), [real(3, 2), real(2)]),
    Case("vmap_axes", "f32", vmapped(lambda x, y: jnp.matmul(x, y), (1, 2), 1), [real(2, 3, 4), real(4, 5, 3)]),
    Case("vmap_twice", "f32", vmapped(lambda x, y: jax.vmap(jnp.multiply, (None, 0))(x, y), (0, None)), [real(3), real(4)]),
    Case("vmap_reduce", "f32", vmapped(lambda x: (jnp.sum(x, 0), jnp.max(x, 1), lax.argmax(x, 0, jnp.int32), jnp.mean(x)), 1), [real(4, 3, 5)]),
    Case("vmap_shape", "f32", vmapped(
        lambda x, y: (x.reshape(6), x.T, lax.slice(x, (0, 1), (2, 3)), lax.pad(x, y, ((1, 0, 0), (0, 1, 1))),
                      lax.concatenate((x, x), 0), jnp.broadcast_to(y, (2, 2)), lax.select_n(x > y, x, -x)), (2, 0)), [real(2, 3, 4), real(4)]),
    Case("vmap_dynamic_slice", "f32", vmapped(lambda x, i: lax.dynamic_slice(x, (i,), (2,), allow_negative_indices=False), (0, 0)),
         [real(3, 5), index(6, 3)]),
    Case("vmap_dynamic_slice_index", "f32", vmapped(lambda x, i: lax.dynamic_slice(x, (i,), (2,), allow_negative_indices=False), (None, 0)),
         [real(5), index(6, 3)]),
    Case("vmap_dynamic_update_slice", "f32",
         vmapped(lambda x, u, i: lax.dynamic_update_slice(x, u, (i,), allow_negative_indices=False), (None, 1, 0)), [real(5), real(2, 3), index(6, 3)]),
    Case("vmap_dot_left", "f32 bf16", vmapped(jnp.matmul, (0, None)), [real(3, 2, 4), real(4, 5)]),
    Case("vmap_dot_right", "f32", vmapped(jnp.matmul, (None, 1), 2), [real(2, 4), real(4, 3, 5)]),
    Case("vmap_of_grad", "f32 f64", lambda w, u, x, y: jax.vmap(jax.grad(lambda w, u, x, y: mlp_loss(w, u, x[None], y[None]), (0, 1)), (None, None, 0, 0))(w, u, x, y),
         WEIGHTS + BATCH),
    Case("grad_of_vmap", "f32 f64", lambda w, x, y: jax.grad(lambda w: jnp.mean(jax.vmap(lambda x, y: jnp.sum((jnp.tanh(jnp.matmul(x, w)) - y) ** 2))(x, y)))(w),
         [real(4, 2), real(3, 4), real(3, 2)]),
    Case("grad_of_vmap_of_grad", "f64", lambda x: jax.grad(lambda x: jnp.sum(jax.vmap(jax.grad(lambda x: jnp.sum(jnp.tanh(x) ** 3)))(x)))(x), [real(3, 4)]),
    Case("vmap_of_jvp", "f32", lambda x, t: jax.vmap(lambda x, t: jax.jvp(lambda x: jnp.exp(jnp.tanh(x)), (x,), (t,)))(x, t),
         [real(3, 2), real(3, 2)]),
    Case("vmap_cross_entropy", "f32", vmapped(cross_entropy, 0), [real(4, 5), index(5, 4)]),
    Case("vmap_named", "f32", lambda x: jax.vmap(named, axis_name="i")(x), [real(4, 4, 2)]),
    Case("vmap_named_max", "f32", lambda x: jax.vmap(lambda x: (lax.pmax(x, "i") - x, lax.pmin(x, "i") - x), axis_name="i")(x), [real(4, 2)],
         modes="v"),  # jax.lax has no derivative of pmax
    Case("vmap_named_mean_loss", "f64",
         lambda w, x: jax.grad(lambda w: jnp.sum(jax.vmap(lambda x: lax.pmean(jnp.tanh(jnp.matmul(x, w)), "i"), axis_name="i")(x)))(w), [real(3, 2), real(4, 3)]),
]  # fmt: skip
