"""Runs functions of JAX by Axle, from the text of their modules, beside XLA on CPU, and says which do not agree.

  import_jax.py [--axle build/axle] [--only REGEX] [--form text|bytecode|vhlo|oldest|export|platforms|all]

Each case is a function and its arguments: jax.jit(f).lower(x) is what `axle run` is given, with the arguments as .npy. Forms of a
module are its text, MLIR's bytecode of it, artifacts of VHLO, of the current version and of the oldest that has all it needs, and
files of jax.export, for CPUs and for several platforms. Functions of open shapes are exported
once, and bound to several sizes.
Results agree within 32 epsilons of the dtype, of the largest element; integers exactly.
"""

import argparse
import os
import re
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import jax.scipy as jsp  # noqa: E402
import numpy as np  # noqa: E402
from agree import disagreement  # noqa: E402
from forms import FORMS, lower  # noqa: E402
from jax import export, lax  # noqa: E402

jax.config.update("jax_enable_x64", True)
r = np.random.default_rng(5)
F = lambda *s: r.standard_normal(s).astype(np.float32)  # noqa: E731
P = lambda *s: (r.random(s) + 0.25).astype(np.float32)  # noqa: E731
I = lambda *s, n=8: r.integers(0, n, s).astype(np.int32)  # noqa: E731, E741
B = lambda *s: r.random(s) < 0.5  # noqa: E731
x, y, v, w, p = F(4, 6), F(4, 6), F(6), F(6, 5), P(4, 6)
n, m, b = I(4, 6), I(4, 6) + 1, B(4, 6)
spd = (lambda a: a @ a.T + 3 * np.eye(5, dtype=np.float32))(F(5, 5))
img, ker = F(2, 3, 9, 8), F(4, 3, 3, 3)
key = np.array([3, 7], np.uint32)
c = (F(3, 4) + 1j * F(3, 4)).astype(np.complex64)

CASES = {}


def add(name, f, *args):
    CASES[name] = (f, args)


for name in """abs negative positive sign floor ceil rint round trunc exp exp2 expm1 sin cos tan arcsinh arctan sinh cosh tanh square
    reciprocal cbrt degrees radians sinc isnan isinf isfinite signbit nan_to_num i0 logical_not ravel flip flipud fliplr transpose
    sort argsort cumsum cumprod diff ediff1d trace tril triu squeeze atleast_3d median ptp average""".split():
    add(f"jnp.{name}", getattr(jnp, name), x)
for name in "log log2 log10 log1p sqrt".split():
    add(f"jnp.{name}", getattr(jnp, name), p)
for name in "arcsin arccos arctanh".split():
    add(f"jnp.{name}", getattr(jnp, name), np.clip(x, -0.9, 0.9))
add("jnp.arccosh", jnp.arccosh, p + 1)
for name in """add subtract multiply divide maximum minimum fmax fmin hypot arctan2 copysign nextafter logaddexp logaddexp2 heaviside
    equal not_equal less greater_equal isclose logical_and logical_xor floor_divide remainder fmod mod float_power""".split():
    add(f"jnp.{name}", getattr(jnp, name), p if "power" in name else x, y)
add("jnp.power", jnp.power, p, y)
add("jnp.ldexp", jnp.ldexp, x, n)
add("jnp.frexp", jnp.frexp, x)
add("jnp.modf", jnp.modf, x)
add("jnp.divmod", jnp.divmod, x, y)
for name in "bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd lcm floor_divide remainder power".split():
    add(f"jnp.{name} of integers", getattr(jnp, name), n, m)
add("jnp.invert", jnp.invert, n)
add("jnp.bitwise_count", jnp.bitwise_count, n)
for name in """sum prod max min mean std var argmax argmin any all nansum nanmean nanmax nanargmax count_nonzero cumsum nanstd
    nancumsum""".split():
    add(f"jnp.{name} of an axis", lambda a, f=getattr(jnp, name): f(a, axis=1), x)
    add(f"jnp.{name}", getattr(jnp, name), x)
add("jnp.percentile", lambda a: jnp.percentile(a, 30.0, axis=0), x)
add("jnp.quantile", lambda a: jnp.quantile(a, jnp.array([0.1, 0.5])), x)
add("jnp.matmul", jnp.matmul, x, w)
add("jnp.dot", jnp.dot, v, v)
add("jnp.vdot", jnp.vdot, x, y)
add("jnp.tensordot", lambda a, k: jnp.tensordot(a, k, 2), x, y)
add("jnp.einsum", lambda a, k: jnp.einsum("ij,kj->ik", a, k), x, y)
add("jnp.einsum batched", lambda a, k: jnp.einsum("bij,bjk->bki", a, k), F(3, 4, 5), F(3, 5, 2))
add("jnp.outer", jnp.outer, v, v)
add("jnp.kron", jnp.kron, x, F(2, 2))
add("jnp.cross", jnp.cross, F(4, 3), F(4, 3))
add("jnp.inner", jnp.inner, x, y)
add("jnp.where", lambda q, a, k: jnp.where(q, a, k), b, x, y)
add("jnp.select", lambda q, a, k: jnp.select([q, a > 0], [a, k], 3.0), b, x, y)
add("jnp.clip", lambda a: jnp.clip(a, -0.5, 0.5), x)
add("jnp.take", lambda a, i: jnp.take(a, i, axis=1), x, I(3, n=6))
add("jnp.take_along_axis", lambda a, i: jnp.take_along_axis(a, i, 1), x, I(4, 2, n=6))
add("indexing", lambda a, i: a[i, 1:4], x, I(3, n=4))
add("indexing by two", lambda a, i, j: a[i, j], x, I(3, n=4), I(3, n=6))
add("negative indices", lambda a, i: a[i - 4], x, I(3, n=4))
add("strides", lambda a: a[::-2, 1::2], x)
add("at.set", lambda a, i: a.at[i].set(1.0), x, I(3, n=4))
add("at.add", lambda a, i, u: a.at[i].add(u), x, I(5, n=4), F(5, 6))
add("at.mul", lambda a, i: a.at[:, i].mul(2.0), x, I(3, n=6))
add("at.max", lambda a, i: a.at[i, 2].max(0.3), x, I(3, n=4))
add("at.get", lambda a, i: a.at[i].get(mode="fill", fill_value=7), x, I(3, n=9))
add("jnp.concatenate", lambda a, k: jnp.concatenate([a, k], 1), x, y)
add("jnp.stack", lambda a, k: jnp.stack([a, k], 1), x, y)
add("jnp.split", lambda a: jnp.split(a, 3, axis=1), x)
add("jnp.tile", lambda a: jnp.tile(a, (2, 1)), x)
add("jnp.repeat", lambda a: jnp.repeat(a, 3, axis=1), x)
add("jnp.roll", lambda a: jnp.roll(a, 2, axis=1), x)
add("jnp.rot90", jnp.rot90, x)
for mode in "constant edge reflect symmetric wrap".split():
    add(f"jnp.pad {mode}", lambda a, mode=mode: jnp.pad(a, ((1, 2), (0, 3)), mode), x)
add("jnp.reshape", lambda a: a.reshape(3, 8).T.reshape(-1), x)
add("jnp.moveaxis", lambda a: jnp.moveaxis(a, 0, 2), F(2, 3, 4))
add("jnp.broadcast_to", lambda a: jnp.broadcast_to(a, (3, 4, 6)), x)
add("jnp.meshgrid", jnp.meshgrid, v, v)
add("jnp.arange", lambda a: a + jnp.arange(6.0), x)
add("jnp.linspace", lambda a: a + jnp.linspace(0, 1, 6), x)
add("jnp.eye", lambda a: a + jnp.eye(4, 6, 1), x)
add("jnp.searchsorted", lambda a, q: jnp.searchsorted(jnp.sort(a), q), v, F(5))
add("jnp.digitize", lambda a, q: jnp.digitize(a, jnp.sort(q)), x, v)
add("jnp.histogram", lambda a: jnp.histogram(a, 5), v)
add("jnp.bincount", lambda a: jnp.bincount(a.ravel(), length=9), n)
add("jnp.interp", lambda q, a: jnp.interp(q, jnp.sort(a), a), F(5), v)
add("jnp.convolve", jnp.convolve, v, F(3))
add("jnp.polyval", jnp.polyval, v, x)
add("jnp.unique", lambda a: jnp.unique(a, size=8, fill_value=0), n)
add("jnp.nonzero", lambda a: jnp.nonzero(a, size=9), b)
add("jnp.lexsort", lambda a, k: jnp.lexsort((a, k)), v, I(6, n=2))
add("jnp.corrcoef", jnp.corrcoef, x)
add("jnp.cov", jnp.cov, x)
add("jnp.gradient", lambda a: jnp.gradient(a, axis=0), x)
add("jnp.trapezoid", jnp.trapezoid, x)
add("jnp.piecewise", lambda a: jnp.piecewise(a, [a < 0, a > 1], [lambda t: -t, lambda t: t * t, 1.0]), x)
add("jnp.apply_along_axis", lambda a: jnp.apply_along_axis(lambda t: t / t.sum(), 1, a), p)
add("jnp.real, imag, angle, conj", lambda a: (jnp.real(a), jnp.imag(a), jnp.angle(a), jnp.conj(a), jnp.abs(a)), c)
for name in "exp log sqrt sin tanh square".split():
    add(f"jnp.{name} of complex numbers", getattr(jnp, name), c)
for dtype in "bfloat16 float16 float64 int8 uint8 int64 bool complex64".split():
    add(f"astype {dtype}", lambda a, d=dtype: a.astype(d).astype(jnp.complex64 if d == "complex64" else jnp.float32), 3 * x)
add("bfloat16 arithmetic", lambda a, k: 2.0**-16 * (jnp.exp(a.astype(jnp.bfloat16)) @ k.astype(jnp.bfloat16)).astype(jnp.float32), x, w)
add("float8", lambda a: a.astype(jnp.float8_e4m3fn).astype(jnp.float32), x)
add("int4", lambda a: a.astype(jnp.int4).astype(jnp.int32), n - 3)

for name in """relu relu6 sigmoid softplus silu soft_sign log_sigmoid elu selu celu gelu hard_tanh hard_sigmoid hard_silu leaky_relu
    mish squareplus softmax log_softmax logsumexp standardize glu sparse_plus""".split():
    add(f"jax.nn.{name}", getattr(jax.nn, name), x)
    add(f"gradient of jax.nn.{name}", jax.grad(lambda a, f=getattr(jax.nn, name): jnp.sum(jnp.sin(f(a)))), x)
add("jax.nn.one_hot", lambda i: jax.nn.one_hot(i, 9), n)
q = F(2, 7, 4, 8)
add("lax.approx_max_k", lambda a: lax.approx_max_k(a, 2), x)
add("jax.nn.dot_product_attention", lambda a, k, t: jax.nn.dot_product_attention(a, k, t, is_causal=True), q, F(2, 7, 4, 8), F(2, 7, 4, 8))
add("gradient of attention", jax.grad(lambda a: jnp.sum(jax.nn.dot_product_attention(a, a, a, is_causal=True) ** 2)), q)

for name in "erf erfc erf_inv lgamma digamma bessel_i0e bessel_i1e rsqrt logistic cbrt is_finite".split():
    add(f"lax.{name}", getattr(lax, name), np.clip(x, -0.9, 0.9) if name == "erf_inv" else p)
add("lax.igamma", lax.igamma, p, p + 1)
add("lax.betainc", lax.betainc, p, p, np.clip(p / 2, 0, 1))
add("lax.polygamma", lax.polygamma, np.ones((4, 6), np.float32), p)
add("lax.zeta", lax.zeta, p + 1.5, p)
add("lax.reduce_precision", lambda a: lax.reduce_precision(a, 5, 7), x)
add("lax.population_count", lax.population_count, n)
add("lax.clz", lax.clz, n)
add("lax.shifts", lambda a, k: (lax.shift_left(a, k), lax.shift_right_logical(a, k), lax.shift_right_arithmetic(-a, k)), n, m)
add("lax.sort of several", lambda a, k: lax.sort((a, k, a * k), num_keys=2), n, m)
add("lax.sort of floats by two keys", lambda a, k: lax.sort((a, k, a * k), num_keys=2), np.round(x), y)
add("lax.sort of floats and integers", lambda a, k: lax.sort((a, k, a), num_keys=2), np.round(x), n)
add("lax.sort of integers and floats", lambda a, k, t: lax.sort((a, k, t), num_keys=3), n, np.round(x), m)
add("jnp.sort of complex numbers", jnp.sort, c)
add("lax.sort with a complex payload", lambda a: lax.sort((jnp.real(a), a), num_keys=1), c)
add("jnp.sort descending", lambda a: jnp.sort(a, descending=True), x)
add("lax.clamp", lambda a: (lax.clamp(np.float32(np.nan), a, np.float32(1)), lax.clamp(np.float32(-0.5), a, np.float32(0.5))), x)
add("at.apply of booleans", lambda q, i: (q.at[i].max(True), q.at[i].min(False)), b[0], I(3, n=6))
add("lax.top_k", lambda a: lax.top_k(a, 3), x)
add("lax.cumsum in reverse", lambda a: lax.cumsum(a, 1, reverse=True), x)
add("lax.cummax", lambda a: lax.cummax(a, 1), x)
add("lax.cumlogsumexp", lambda a: lax.cumlogsumexp(a, 1), x)
add("lax.reduce", lambda a: lax.reduce(a, np.float32(1), lambda s, t: s + t + 0.1 * s * t, (0,)), x)
add("lax.reduce of two", lambda a, k: lax.reduce((a, k), (np.float32(0), np.int32(0)), lambda s, t: (s[0] + t[0], jnp.maximum(s[1], t[1])), (1,)), x, n)
add("lax.reduce_and", lambda a: lax.reduce_and(a, (0,)), b)
add("lax.reduce_window", lambda a: lax.reduce_window(a, 0.0, lax.add, (2, 3), (1, 2), "SAME"), x)
add("lax.dynamic_slice", lambda a, i: lax.dynamic_slice(a, (i[0, 0], i[0, 1]), (2, 3)), x, n)
add("lax.dynamic_update_slice", lambda a, i: lax.dynamic_update_slice(a, a[:2, :3] * 2, (i[0, 0], i[0, 1])), x, n)
add("lax.conv", lambda a, k: lax.conv(a, k, (1, 1), "SAME"), img, ker)
add("lax.conv_general_dilated", lambda a, k: lax.conv_general_dilated(a, k, (2, 1), ((1, 0), (2, 1)), (1, 2), (2, 1)), img, ker)
add("lax.conv_transpose", lambda a, k: lax.conv_transpose(a, k, (2, 2), "SAME"), F(1, 4, 4, 3), F(3, 3, 3, 2))
add("grouped conv", lambda a, k: lax.conv_general_dilated(a, k, (1, 1), "VALID", feature_group_count=3), img, F(6, 1, 3, 3))
add("gradients of conv", jax.grad(lambda a, k: jnp.sum(lax.conv(a, k, (2, 2), "SAME") ** 2), (0, 1)), img, ker)
add("max pool and gradient", jax.grad(lambda a: jnp.sum(lax.reduce_window(a, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID") ** 2)), img)
add("lax.scan", lambda a: lax.scan(lambda s, t: (s * 0.5 + t, jnp.sin(s)), a[0], a), x)
add("lax.while_loop", lambda a: lax.while_loop(lambda s: jnp.sum(s) < 50, lambda s: s * 1.5 + 1, a), p)
add("lax.fori_loop", lambda a: lax.fori_loop(0, 5, lambda i, s: s * 1.1 + i, a), x)
add("lax.cond", lambda a: lax.cond(a[0, 0] > 0, lambda t: t * 2, lambda t: -t, a), x)
add("lax.switch", lambda a, i: lax.switch(i[0, 0] % 3, [lambda t: t, lambda t: t * t, jnp.sin], a), x, n)
add("lax.map", lambda a: lax.map(lambda t: jnp.sort(t)[:2], a), x)
add("lax.associative_scan", lambda a: lax.associative_scan(jnp.multiply, a, axis=1), p)
add("gradient of scan", jax.grad(lambda a: lax.scan(lambda s, t: (jnp.tanh(s @ t), s.sum()), jnp.ones((3, 3)), a)[0].sum()), F(4, 3, 3))
add("jax.checkpoint", jax.grad(jax.checkpoint(lambda a: jnp.sum(jnp.sin(jnp.exp(a) @ w)))), x)
add("jacobian", jax.jacfwd(lambda a: jnp.tanh(a @ w)), F(6))
add("hessian", jax.hessian(lambda a: jnp.sum(jnp.exp(a) * a[::-1])), v)
add("vmap", jax.vmap(lambda a, i: lax.dynamic_slice(a, (i,), (2,)) * a.sum()), x, I(4, n=5))
add("custom_jvp", jax.grad(lambda a: jnp.sum(jax.nn.relu(a) * jax.numpy.sinc(a))), x)

for name, f in {
    "uniform": lambda k: jax.random.uniform(k, (5, 3)), "normal": lambda k: jax.random.normal(k, (7,)),
    "bernoulli": lambda k: jax.random.bernoulli(k, 0.3, (9,)), "randint": lambda k: jax.random.randint(k, (9,), 0, 100),
    "permutation": lambda k: jax.random.permutation(k, 12), "choice": lambda k: jax.random.choice(k, 12, (5,), replace=False),
    "categorical": lambda k: jax.random.categorical(k, jnp.arange(4.0), shape=(6,)), "gumbel": lambda k: jax.random.gumbel(k, (5,)),
    "exponential": lambda k: jax.random.exponential(k, (5,)), "truncated_normal": lambda k: jax.random.truncated_normal(k, -1, 1, (5,)),
    "gamma": lambda k: jax.random.gamma(k, 2.5, (5,)), "beta": lambda k: jax.random.beta(k, 2.0, 3.0, (5,)),
    "poisson": lambda k: jax.random.poisson(k, 3.0, (9,)), "dirichlet": lambda k: jax.random.dirichlet(k, jnp.ones(3), (2,)),
    "split": lambda k: jax.random.split(k, 3), "fold_in": lambda k: jax.random.fold_in(k, 7), "bits": lambda k: jax.random.bits(k, (5,)),
    "rademacher": lambda k: jax.random.rademacher(k, (9,)), "laplace": lambda k: jax.random.laplace(k, (5,)),
    "typed keys": lambda k: jax.random.normal(jax.random.split(jax.random.wrap_key_data(k), 2)[1], (3,)),
}.items():  # fmt: skip
    add(f"jax.random.{name}", f, key)

add("jsp.special.logsumexp", jsp.special.logsumexp, x)
for name in "gammaln expit ndtr log_ndtr i0 i1 i0e entr exp1 xlogy".split():
    add(f"jsp.special.{name}", getattr(jsp.special, name), *((p, p) if name == "xlogy" else (p,)))
add("jsp.special.logit", jsp.special.logit, np.clip(p / 2, 0.01, 0.9))
add("jsp.stats.norm.logpdf", jsp.stats.norm.logpdf, x)
add("jsp.stats.multivariate_normal.logpdf", lambda a: jsp.stats.multivariate_normal.logpdf(a, jnp.zeros(5), jnp.eye(5) * 2), F(5))
add("jnp.fft", lambda a: (jnp.fft.fft(a), jnp.fft.rfft(a), jnp.fft.irfft(jnp.fft.rfft(a)), jnp.fft.fft2(a)), x)
add("jnp.linalg.norm", jnp.linalg.norm, x)
add("lax.linalg.cholesky", lax.linalg.cholesky, spd)
add("triangular_solve", lambda a, k: lax.linalg.triangular_solve(jnp.tril(a), k, left_side=True, lower=True), spd, F(5, 2))
for name in "inv det slogdet eigh svd qr pinv eigvalsh".split():
    add(f"jnp.linalg.{name}", getattr(jnp.linalg, name), spd)
add("jnp.linalg.solve", jnp.linalg.solve, spd, F(5, 2))
add("gradient of cholesky", jax.grad(lambda a: jnp.sum(jnp.sin(jnp.linalg.cholesky(a)))), spd)
add("jax.image.resize", lambda a: jax.image.resize(a, (2, 3, 12, 5), "bilinear"), img)


def mlp(params, a):
    for k, t in params[:-1]:
        a = jax.nn.relu(a @ k + t)
    return a @ params[-1][0] + params[-1][1]


sizes = [(6, 16), (16, 16), (16, 5)]
layers = [(F(*s) * 0.3, F(s[1]) * 0.1) for s in sizes]


def loss(params, a, t):
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(mlp(params, a)) * jax.nn.one_hot(t, 5), 1))


add("training step", lambda params, a, t: jax.tree.map(lambda k, g: k - 0.1 * g, params, jax.grad(loss)(params, a, t)), layers, F(8, 6), I(8, n=5))


def lstm(params, seq):
    def step(carry, a):
        h, s = carry
        i, g, f, o = jnp.split(jnp.concatenate([a, h], -1) @ params, 4, -1)
        s = jax.nn.sigmoid(f) * s + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(s)
        return (h, s), h

    zero = jnp.zeros((seq.shape[1], 8))
    return jnp.sum(lax.scan(step, (zero, zero), seq)[1] ** 2)


add("lstm and gradient", jax.value_and_grad(lstm), F(12, 32) * 0.3, F(7, 3, 4))


def add_models():
    """Models of Flax, their results and a step of gradient descent. (Adam divides by gradients that may be rounding alone.)"""
    import flax.linen as nn

    class Convolutional(nn.Module):
        @nn.compact
        def __call__(self, a):
            for features in (8, 16):
                a = nn.BatchNorm(use_running_average=True)(nn.Conv(features, (3, 3))(a))
                a = nn.avg_pool(nn.relu(a), (2, 2), (2, 2))
            return nn.Dense(10)(a.reshape((a.shape[0], -1)))

    class Residual(nn.Module):
        @nn.compact
        def __call__(self, a):
            a = nn.max_pool(nn.Conv(8, (7, 7), (2, 2))(a), (3, 3), (2, 2), "SAME")
            for features in (8, 16):
                t = nn.Conv(features, (3, 3))(nn.relu(nn.GroupNorm(4)(a)))
                t = nn.Conv(features, (3, 3))(nn.relu(nn.GroupNorm(4)(t)))
                a = nn.Conv(features, (1, 1))(a) + t
            return nn.Dense(10)(a.mean((1, 2)))

    class Transformer(nn.Module):
        @nn.compact
        def __call__(self, words):
            a = nn.Embed(50, 32)(words) + nn.Embed(16, 32)(jnp.arange(words.shape[1]))
            for _ in range(2):
                mask = nn.make_causal_mask(jnp.ones(words.shape))
                a = a + nn.SelfAttention(4)(nn.LayerNorm()(a), mask=mask)
                a = a + nn.Dense(32)(nn.gelu(nn.Dense(64)(nn.LayerNorm()(a))))
            return nn.Dense(50)(nn.LayerNorm()(a))

    for model, a, labels in [(Convolutional(), F(4, 16, 16, 3), I(4, n=10)), (Residual(), F(2, 32, 32, 3), I(2, n=10)),
                             (Transformer(), I(2, 16, n=50), I(2, 16, n=50))]:  # fmt: skip
        name = type(model).__name__
        params = jax.tree.map(np.asarray, model.init(jax.random.key(0), a))

        def step(params, a, labels, model=model):
            def cost(params):
                scores = jax.nn.log_softmax(model.apply(params, a))
                return -jnp.mean(jnp.take_along_axis(scores, labels[..., None], -1))

            return jax.tree.map(lambda k, g: k - 0.1 * g, params, jax.grad(cost)(params))

        add(f"flax {name}", model.apply, params, a)
        add(f"flax {name}, a step", step, params, a, labels)


try:
    add_models()
except ImportError:
    print("no Flax: its models are left out")


# Functions of shapes that are not known, exported once and bound twice: "b, 4" is f32[b, 4], and "i32 b" an integer array.


def symbolic(shape, scope, sizes=None):
    """The argument's type; or, with sizes, numbers of that type."""
    dtype = np.int32 if shape.startswith("i32 ") else np.float32
    text = shape.removeprefix("i32 ")
    if sizes is None:
        return jax.ShapeDtypeStruct(export.symbolic_shape(text, scope=scope), dtype)
    dims = tuple(eval(e, {}, sizes) for e in text.split(",") if e.strip())  # noqa: S307
    return r.integers(0, 3, dims).astype(np.int32) if dtype is np.int32 else r.standard_normal(dims).astype(np.float32)


def add_open(name, f, shapes, *bindings, constraints=()):
    scope = export.SymbolicScope(constraints)
    module = export.export(jax.jit(f))(*(symbolic(s, scope) for s in shapes))
    for sizes in bindings:
        label = ", ".join(f"{k} = {n}" for k, n in sizes.items())
        CASES[f"{name} of open shapes, {label}"] = (f, [symbolic(s, scope, sizes) for s in shapes], module)


def count_up(a):
    return lax.while_loop(lambda c: c[0] < a.shape[0], lambda c: (c[0] + 1, c[1] + a[c[0]]), (0, jnp.zeros(a.shape[1:])))[1]


def attend(a, k, t):
    scores = jnp.einsum("bqhd,bkhd->bhqk", a, k) / a.shape[-1] ** 0.5
    scores = jnp.where(jnp.arange(a.shape[1])[:, None] >= jnp.arange(k.shape[1])[None], scores, -1e9)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), t)


two = ({"b": 3}, {"b": 8})
weights = {"w": w, "k": F(5, 4)}
add_open("an MLP", lambda a: jnp.tanh(jax.nn.relu(a @ w) @ weights["k"]), ["b, 6"], *two)
add_open("a step of training", lambda a, t, m: m - 0.1 * jax.grad(lambda q: jnp.mean((a @ q - t) ** 2))(m), ["b, 6", "b, 5", "6, 5"], *two)
add_open("attention", attend, ["b, s, 2, 8"] * 3, {"b": 2, "s": 5}, {"b": 3, "s": 9})
add_open("jax.nn.dot_product_attention", jax.nn.dot_product_attention, ["b, s, 2, 8"] * 3, {"b": 2, "s": 5}, {"b": 1, "s": 7})
add_open("reshapes", lambda a: (a.reshape(-1), a.reshape(a.shape[0] * 2, 2), a.reshape(2, -1)), ["b, 4"], *two)
add_open("jnp.arange", lambda a: jnp.arange(2 * a.shape[0]) + jnp.concatenate([a, a]), ["b"], *two)
add_open("jnp.pad", lambda a: (jnp.pad(a, ((a.shape[0], 1), (0, 2))), jnp.pad(a, ((1, 0), (1, 1)), "edge")), ["b, 3"], *two)
add_open("convolutions", lambda a, k: lax.conv_general_dilated(a, k, (2, 1), "SAME"), ["b, 3, h, w", "4, 3, 3, 3"],
         {"b": 2, "h": 9, "w": 8}, {"b": 1, "h": 6, "w": 7}, constraints=("h>=3", "w>=3"))
add_open("convolutions of valid windows", lambda a, k: lax.conv_general_dilated(a, k, (1, 1), "VALID"), ["b, 3, h, 8", "4, 3, 3, 3"],
         {"b": 2, "h": 9}, {"b": 1, "h": 6}, constraints=("h>=3",))
add_open("a while loop", count_up, ["b, 4"], *two)
add_open("a scan", lambda a: lax.scan(lambda c, x: (c + x, c * x), jnp.zeros(4), a), ["b, 4"], *two)
add_open("lax.cond", lambda a, i: lax.cond(i[0] > 0, jnp.sin, lambda t: t + a.shape[0], a), ["b, 4", "i32 1"], *two)
add_open("softmax and mean", lambda a: (jax.nn.softmax(a), a.mean(0), a.std(1), jnp.max(a), jnp.argmax(a, 0)), ["b, c"], {"b": 3, "c": 5}, {"b": 1, "c": 2})
add_open("sorts", lambda a: (jnp.sort(a, 0), jnp.argsort(a), lax.top_k(a, 2), lax.top_k(a[0], a.shape[1] - 1)), ["b, c"],
         {"b": 3, "c": 5}, {"b": 4, "c": 3}, constraints=("c>=2",))
add_open("lax.approx_max_k", lambda a: (lax.approx_max_k(a, 2), lax.approx_min_k(a, a.shape[1] - 1)), ["b, c"], {"b": 3, "c": 5}, {"b": 4, "c": 3},
         constraints=("c>=2",))
add_open("sums along a dimension", lambda a: (jnp.cumsum(a, 0), jnp.cumprod(a, 1), lax.cummax(a)), ["b, c"], {"b": 3, "c": 5}, {"b": 6, "c": 2})
add_open("windows", lambda a: lax.reduce_window(a, -jnp.inf, lax.max, (a.shape[0], 2), (1, 1), "SAME"), ["b, c"], {"b": 3, "c": 5}, {"b": 2, "c": 4})
add_open("indexing", lambda a, i: (a[i], a[0], a[-1], a[1:], a[:, ::2], jnp.take(a, i, 0)), ["b, c", "i32 k"], {"b": 3, "c": 5, "k": 2},
         {"b": 4, "c": 2, "k": 3}, constraints=("b>=3",))
add_open("slices that move", lambda a, i: lax.dynamic_slice(a, (i[0], i[0]), (a.shape[0] - 1, 2)), ["b, 4", "i32 1"], *two)
add_open("updates", lambda a, u, i: (lax.dynamic_update_slice(a, u, (i[0], i[0] * 0)), a.at[i].add(u)), ["b, c", "2, c", "i32 2"], {"b": 4, "c": 3},
         {"b": 9, "c": 1}, constraints=("b>=3",))
add_open("random numbers", lambda a: (jax.random.normal(jax.random.key(3), a.shape) * a, jax.random.randint(jax.random.key(4), a.shape, 0, 9)),
         ["b, c"], {"b": 3, "c": 5}, {"b": 2, "c": 2})
add_open("matrices", lambda a: (jnp.linalg.qr(a), jnp.linalg.cholesky(a @ a.mT + 4 * jnp.eye(4, dtype=a.dtype)), jnp.linalg.solve(a + 4 * jnp.eye(4, dtype=a.dtype), a)),
         ["b, 4, 4"], *two)
add_open("extents from extents", lambda a, k: a.reshape(-1)[: k.shape[0]] + k, ["b, 2*c+1", "b"], {"b": 2, "c": 1}, {"b": 3, "c": 4})
add_open("a jitted function of several shapes", lambda a, k: (jax.jit(lambda t: jnp.sum(t) + jnp.arange(t.shape[0]))(a), jax.nn.gelu(a),
         jax.jit(jnp.linalg.norm)(k), jnp.var(k)), ["b", "c"], {"b": 2, "c": 3}, {"b": 5, "c": 5})


# Of functions of open shapes.
OPEN_FORMS = {"text": lambda module: module.mlir_module(), "vhlo": lambda module: bytes(module.mlir_module_serialized), "export": lambda module: bytes(module.serialize())}


def run(axle, form, f, args, opened=None):
    want = [np.asarray(a) for a in jax.tree.leaves(lower(f, args).compile()(*args))]
    try:
        module = FORMS[form](f, args) if opened is None else OPEN_FORMS[form](opened)
    except Exception as error:  # noqa: BLE001 - what JAX cannot write is no fault of the reader
        return f"not written: {str(error).splitlines()[0][:100]}"
    return disagreement(axle, module, args, want)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--axle", default="build/axle")
    parser.add_argument("--only", default="")
    parser.add_argument("--form", default="text", choices=[*FORMS, "all"])
    options = parser.parse_args()
    forms = FORMS if options.form == "all" else [options.form]
    names = [name for name in CASES if re.search(options.only, name)]
    failed = unwritten = count = 0
    for name in names:
        for form in forms:
            if len(CASES[name]) == 3 and form not in OPEN_FORMS:
                continue
            count += 1
            why = run(options.axle, form, *CASES[name])
            unwritten += (why or "").startswith("not written")
            failed += why is not None
            if why is not None:
                print(f"{name}, {form}: {why}", flush=True)
    failed -= unwritten
    count -= unwritten
    print(f"{len(names)} functions, {len(forms)} forms: {count - failed} agree, {failed} do not")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
