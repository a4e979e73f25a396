"""jax_language.py: the cases of op_language.c: Fourier transforms, random numbers, matrices, orders, further functions, complex numbers."""

from jax_cases import Case, DTYPES, family, ints, scaled

import jax
import jax.numpy as jnp
import jax.scipy.linalg
from jax import lax


def parts(function):
    def run(*args):
        z = function(*args)
        return jnp.real(z), jnp.imag(z)

    return run


@family
def fft(kind, dtype, *dims):
    inputs = [(dtype, ints(dims))]
    if kind == "rfft":
        return Case(parts(jnp.fft.rfft), inputs)
    function = {"fft": jnp.fft.fft, "ifft": jnp.fft.ifft, "fft2": jnp.fft.fft2}[kind]
    return Case(parts(lambda x, y: function(lax.complex(x, y))), inputs * 2)


@family
def draw(name, dtype, *dims):
    t, n = DTYPES[dtype], ints(dims)
    one = {
        "bits": lambda key: jax.random.bits(key, n, jnp.uint32).astype(jnp.float32),
        "uniform": lambda key: jax.random.uniform(key, n, t),
        "normal": lambda key: jax.random.normal(key, n, t),
        "exponential": lambda key: jax.random.exponential(key, n, t),
        "gumbel": lambda key: jax.random.gumbel(key, n, t, mode="low"),
        "bernoulli": lambda key: jax.random.bernoulli(key, jnp.float32(0.3), n),
        "randint": lambda key: jax.random.randint(key, n, 0, 1000, jnp.int32),
        "gamma": lambda key: jax.random.gamma(key, t(2.5), n, t),
        "permutation": lambda key: jax.random.permutation(key, jnp.arange(n[0], dtype=jnp.int32)),
    }[name]
    return Case(lambda seed: one(jax.random.key(seed)), [("s32", ())])


def positive(x):
    n = x.shape[-1]
    return scaled(x + x.swapaxes(1, 2), 0.5) + scaled(jnp.eye(n, dtype=x.dtype), 2 * n)


@family
def matrix(name, dtype, batch, n):
    function = {
        "cholesky": lambda x: lax.linalg.cholesky(positive(x), symmetrize_input=False),
        "lu": lambda x: lax.linalg.lu(positive(x))[0],
        "qr": lambda x: lax.linalg.qr(x, full_matrices=False)[1],
        "qr_both": lambda x: jnp.matmul(*lax.linalg.qr(x, full_matrices=False)),
        "eigh": lambda x: lax.linalg.eigh(positive(x), symmetrize_input=False)[1],
        "svd": lambda x: lax.linalg.svd(x, compute_uv=False),
        "solve": lambda x: jnp.linalg.solve(positive(x), x),
        "inv": lambda x: jnp.linalg.inv(positive(x)),
        "triangular": lambda x: lax.linalg.triangular_solve(positive(x), x, left_side=True, lower=True),
        "slogdet": lambda x: jnp.linalg.slogdet(positive(x))[1],
        "expm": lambda x: jax.scipy.linalg.expm(scaled(x, 1 / int(n))),
    }[name]
    return Case(function, [(dtype, ints((batch, n, n)))])


@family
def order(name, dtype, axis, *dims):
    at, t = int(axis), DTYPES[dtype]
    function = {
        "sort": lambda x: jnp.sort(x, at),
        "argsort": lambda x: jnp.argsort(x, at).astype(jnp.int32),
        "top_k": lambda x: lax.top_k(x, 8)[0],
        "median": lambda x: jnp.median(x, at),
        "searchsorted": lambda x: jnp.searchsorted(jnp.sort(x, at), x).astype(jnp.int32),
    }[name]
    return Case(lambda x: function(x.astype(t)), [("s32", ints(dims))], below=1 << 23)


def bits(x):
    return lax.bitcast_convert_type(x, jnp.int32)


def mixed(x):
    y = lax.shift_left(bits(x), jnp.int32(7)) ^ lax.shift_right_logical(bits(x), jnp.int32(7))
    return (y & jnp.int32(0xFFFF)).astype(x.dtype)


SPECIAL = {"acosh": lambda x: jnp.arccosh(x + x.dtype.type(1)), "popcount": lambda x: lax.population_count(bits(x)).astype(x.dtype), "mixed": mixed}


@family
def special(name, dtype, n):
    function = SPECIAL.get(name) or getattr(lax, name)
    return Case(lambda x: function(scaled(x, 0.5)), [(dtype, ints((n,)))])


@family
def complex(name, dtype, *dims):
    function = {"mul": lambda a, b: a * (a * b), "div": lambda a, b: a / b, "exp": lambda a, b: jnp.exp(a), "matmul": jnp.matmul}[name]
    return Case(parts(lambda x, y: function(lax.complex(x, y), lax.complex(y, x))), [(dtype, ints(dims))] * 2)
