"""Complex numbers: arithmetic, functions, moves, sums, products, control, derivatives and collectives."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from case import Case, edge, index, real, shards

COMPLEX, FLOAT = "c64 c128", "f32 f64"


def unary(name, function, modes="vjg"):
    return Case(name, COMPLEX, function, [real(24)], modes=modes)


def binary(name, function, modes="vjg"):
    return Case(name, COMPLEX, function, [real(24), real(24)], modes=modes)


def edges(name, function, count=1):
    return Case(name, COMPLEX, function, [edge(48)] * count, modes="v")


def finite(name, function):
    """At zeros of both signs and at numbers on the axes: beside NaN and infinities XLA and C go different ways."""

    def make(random, variant):
        z = edge(48)(random, variant)
        z.real, z.imag = np.where(np.isfinite(z.real), z.real, 0), np.where(np.isfinite(z.imag), z.imag, 0)
        return z

    return Case(name, COMPLEX, function, [make], modes="v")


FUNCTIONS = "exp exp2 expm1 log log1p sqrt rsqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh logistic".split()


def looped(x, w):
    return lax.scan(lambda c, v: (c * w + v, lax.conj(c)), jnp.zeros((), x.dtype), x)


def counted(x):
    return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x + 1), (0, x))[1]


def of_parts(x, y):
    z = lax.complex(x, y)
    return lax.mul(z, lax.exp(z)), lax.real(z)


def tied(x):
    """Real parts of which some are equal."""
    return lax.complex(jnp.round(lax.real(x)), lax.imag(x))


def scattered_extremes(x, u, i):
    x = jnp.asarray(tied(x))
    return x.at[i].multiply(u), x.at[i].max(tied(u)), x.at[i].min(tied(u))


def extreme(v, function, x):
    """pmax and pmin of complex numbers, which XLA:CPU has not: of all gathered."""
    return function(lax.all_gather(lax.complex(jnp.round(x), x), v.axes), 0)


def solves(**options):
    """With a large diagonal."""
    return lambda x, b: lax.linalg.triangular_solve(x + 3 * jnp.eye(x.shape[-1], dtype=x.dtype), b, **options)


CASES = [
    edges("add_edges", lax.add, 2), edges("sub_edges", lax.sub, 2), edges("mul_edges", lax.mul, 2), edges("neg_edges", lax.neg),
    edges("real_edges", lax.real), edges("imag_edges", lax.imag), edges("conj_edges", lax.conj), finite("abs_edges", lax.abs),
    edges("eq", lax.eq, 2), edges("ne", lax.ne, 2),
    finite("exp_edges", lax.exp), finite("log_edges", lax.log),
    binary("add", lax.add), binary("sub", lax.sub), binary("mul", lax.mul), binary("div", lax.div), binary("pow", lax.pow),
    unary("neg", lax.neg), unary("abs", lax.abs), unary("sign", lax.sign, "v"), unary("real", lax.real), unary("imag", lax.imag),
    unary("conj", lax.conj), unary("integer_pow", lambda x: lax.integer_pow(x, 5)), unary("integer_pow_m3", lambda x: lax.integer_pow(x, -3)),
    Case("complex", FLOAT, lax.complex, [real(24), real(24)]), Case("of_parts", FLOAT, of_parts, [real(24), real(24)]),
    *[unary(f, getattr(lax, f), "v" if f == "acosh" else "vjg") for f in FUNCTIONS],
    Case("convert", COMPLEX, lambda x: [lax.real(x).astype(x.dtype), x.astype(jnp.complex64), x.astype(jnp.complex128), x.astype(bool)], [real(24)]),
    Case("to_real", COMPLEX, lambda x: [lax.convert_element_type(x, t) for t in (jnp.float32, jnp.int32)], [real(24, scale=9)], modes="v"),
    Case("iota", COMPLEX, lambda x: lax.broadcasted_iota(x.dtype, (3, 4), 1) * x, [real(3, 4)]),
    Case("moves", COMPLEX, lambda x: (jnp.reshape(x, (4, 6)), x.T[::2], lax.rev(x, (1,)), jnp.broadcast_to(x[:, :1], (3, 5)), x[1:, 2:7:3]), [real(3, 8)]),
    Case("joined", COMPLEX, lambda x, y: (lax.concatenate([x, y], 1), lax.pad(x, y[0, 0], [(1, 2, 0), (-1, 1, 1)])), [real(2, 3), real(2, 4)]),
    Case("chosen", COMPLEX, lambda x, y: jnp.where(lax.real(x) < lax.imag(y), x, y), [real(24), real(24)]),
    Case("sliced", COMPLEX, lambda x, y: (lax.dynamic_slice(x, (1, 2), (2, 2)), lax.dynamic_update_slice(x, y, (1, 3))), [real(4, 6), real(2, 2)]),
    Case("gathered", COMPLEX, lambda x, i: (x[i], jnp.take(x, i + 3, axis=0, mode="fill")), [real(6, 3), index(6, 5)]),
    Case("scattered", COMPLEX, lambda x, u, i: (jnp.asarray(x).at[i].add(u), jnp.asarray(x).at[i[:1]].set(u[:1])), [real(6, 3), real(5, 3), index(6, 5)]),
    Case("sums", COMPLEX, lambda x: (jnp.sum(x, 1), jnp.sum(x), lax.cumsum(x, 1), lax.cumsum(x, 0, reverse=True)), [real(5, 7)]),
    Case("prods", COMPLEX, lambda x: (jnp.prod(x, 1), jnp.prod(x, (0, 1)), lax.cumprod(x, 1)), [real(3, 5)]),
    Case("window", COMPLEX, lambda x: lax.reduce_window(x, jnp.zeros((), x.dtype), lax.add, (2, 3), (1, 2), "VALID"), [real(5, 7)]),
    Case("reduced", COMPLEX, lambda x: lax.reduce(x, jnp.ones((), x.dtype), lambda a, b: a * b + a + b, (0,)), [real(5, 2)], modes="v"),
    Case("matmul", COMPLEX, lambda x, y: jnp.matmul(x, y), [real(5, 7), real(7, 3)]),
    Case("einsum", COMPLEX, lambda x, y: jnp.einsum("bij,bkj->bik", x, jnp.conj(y)), [real(2, 3, 4), real(2, 5, 4)]),
    Case("conv", COMPLEX, lambda x, y: lax.conv(x, y, (1, 2), "SAME"), [real(2, 3, 5, 6), real(4, 3, 3, 2)]),
    Case("sorted", COMPLEX, lambda x: lax.sort(jnp.round(x), dimension=1), [real(4, 9)], modes="v"),
    Case("scan", COMPLEX, looped, [real(5), real()]), Case("loop", COMPLEX, counted, [real(4)], modes="vj"),
    Case("cond", COMPLEX, lambda x: lax.cond(lax.real(x)[0] > 0, lambda v: v * v, lambda v: lax.conj(v), x), [real(4)]),
    Case("batched", COMPLEX, lambda x, y: jax.vmap(lambda a, b: a @ b * lax.abs(a[0]), (1, None))(x, y), [real(4, 3), real(4, 2)]),
    Case("gradient", COMPLEX, jax.grad(lambda x, y: jnp.sum(lax.abs(x * y) ** 2 + lax.real(lax.exp(x) * y)), (0, 1)), [real(6), real(6)], modes="v"),
    Case("holomorphic", COMPLEX, lambda x: jax.vmap(jax.grad(lambda z: lax.sin(z) * z, holomorphic=True))(x), [real(6)], modes="v"),
    Case("second", COMPLEX, lambda x: jax.jvp(jax.grad(lambda z: jnp.sum(lax.log(1 + lax.abs(z) ** 2))), (x,), (x * 1j,))[1], [real(6)], modes="v"),
    binary("max", lambda x, y: lax.max(tied(x), tied(y))), binary("min", lambda x, y: lax.min(tied(x), tied(y))),
    binary("atan2", lax.atan2), Case("conj_of_real", FLOAT, lax.conj, [real(24)]),
    Case("clamp", COMPLEX, lambda x, y: lax.clamp(y[0], x, y[1]), [real(24), lambda random, variant: np.array([-1, 1 + 1j], variant.dtype)], modes="v"),
    Case("extremes", COMPLEX, lambda x: (jnp.max(tied(x), 1), jnp.min(tied(x)), lax.cummax(tied(x), 1), lax.cummin(tied(x), 0, reverse=True)), [real(5, 7)]),
    Case("window_extremes", COMPLEX, lambda x: (lax.reduce_window(tied(x), x.dtype.type(-np.inf), lax.max, (2, 3), (1, 2), "VALID"),
        lax.reduce_window(tied(x), x.dtype.type(np.inf), lax.min, (3, 1), (1, 1), "SAME")), [real(5, 7)], modes="v"),
    Case("cumlogsumexp", COMPLEX, lambda x: lax.cumlogsumexp(x, 1), [real(3, 5)]),
    Case("logsumexp", COMPLEX, lambda x: jax.nn.logsumexp(x, 1), [real(3, 5)]),
    Case("scattered_extremes", COMPLEX, scattered_extremes, [real(6, 3), real(5, 3), index(6, 5)], modes="v"),
    Case("products", COMPLEX, lambda x, y: (jnp.vdot(x, x), jnp.correlate(x, y), jnp.correlate(y, x, "full"), jnp.convolve(x, y), jnp.inner(x, x)), [real(7), real(3)]),
    Case("moments", COMPLEX, lambda x: (jnp.var(x, 1), jnp.std(x, ddof=1), jnp.mean(x, 0), jnp.average(x, 1, x)), [real(3, 5)]),
    Case("covariances", COMPLEX, lambda x: (jnp.cov(x), jnp.corrcoef(x)), [real(3, 5)], modes="v"),
    Case("close", COMPLEX, lambda x, y: (jnp.isclose(x, y, 0.1, 0.5), jnp.allclose(x, y, 1, 9)), [edge(24), edge(24)], modes="v"),
    Case("cholesky", COMPLEX, lambda x: lax.linalg.cholesky(x @ jnp.conj(x.swapaxes(-1, -2)) + 3 * jnp.eye(4, dtype=x.dtype)), [real(2, 4, 4)]),
    Case("cholesky_lower", COMPLEX, lambda x: jnp.tril(lax.linalg.cholesky(x + 9 * jnp.eye(4, dtype=x.dtype), symmetrize_input=False)), [real(4, 4)], modes="v"),
    Case("cholesky_indefinite", COMPLEX, lambda x: lax.linalg.cholesky(x - 9 * jnp.eye(3, dtype=x.dtype)), [real(2, 3, 3)], modes="v"),
    Case("solve_lower", COMPLEX, solves(left_side=True, lower=True), [real(4, 4), real(4, 3)]),
    Case("solve_transposed", COMPLEX, solves(left_side=True, transpose_a=True), [real(2, 3, 3), real(2, 3, 2)]),
    Case("solve_adjoint", COMPLEX, solves(lower=True, transpose_a=True, conjugate_a=True), [real(3, 3), real(4, 3)]),
    Case("solve_conjugate", COMPLEX, solves(left_side=True, lower=True, conjugate_a=True, unit_diagonal=True), [real(3, 3), real(3, 2)]),
    Case("lu", COMPLEX, lambda x: lax.linalg.lu(x), [real(2, 4, 4)]), Case("lu_wide", COMPLEX, lambda x: lax.linalg.lu(x), [real(3, 5)]),
    Case("lu_tall", COMPLEX, lambda x: lax.linalg.lu(x), [real(5, 3)]),
    Case("psum", "d=4", lambda v, x: lax.psum(lax.complex(x, x * x), v.axes), [shards(3)], specs="A > ."),
    Case("collectives", "d=4", lambda v, x: [f(lax.complex(x, x * x)) for f in (
        lambda z: lax.all_gather(z, v.axes, tiled=True), lambda z: lax.psum_scatter(z, v.axes, tiled=True),
        lambda z: lax.all_to_all(z, v.axes, 0, 0, tiled=True), lambda z: lax.ppermute(z, v.axes, [(0, 1), (1, 2), (2, 3), (3, 0)]))],
        [shards(8, 2)], specs="A > A A A A"),
    Case("pmax", "d=4", lambda v, x: (extreme(v, jnp.max, x), extreme(v, jnp.min, x)), [shards(3)], specs="A > A A", modes="v"),
]  # fmt: skip
