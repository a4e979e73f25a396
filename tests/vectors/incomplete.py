"""Incomplete gamma and beta functions and what is made of logarithms: jax.lax and jax.scipy.special."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy import special

from case import Case, positive, real

FLOAT = "f32 f64"


def values(*numbers):
    return lambda random, variant: np.array(numbers, variant.dtype)


def between(low, high, *dims):
    return lambda random, variant: random.uniform(low, high, dims).astype(variant.dtype)


A = values(0.1, 0.5, 1, 1, 2, 3.5, 10, 50, 200, 2, 1, 0, -1, np.nan, 3)
X = values(0.05, 3, 0.5, 1, 1, 8, 7, 60, 190, np.inf, 0, 1, 2, 1, np.nan)
P = values(0, 0.25, 1, 2, 0, -1, 0.5)
Q = values(0.5, 0.5, 3, 0, 0, 1, -2)


def two(name, f, x, y, **more):
    return Case(name, FLOAT, f, [x, y], **more)


CASES = [
    two("igamma_edges", lambda a, x: (lax.igamma(a, x), lax.igammac(jnp.where(a == 0, 2, a), x)), A, X, modes="v"),
    two("igamma", lax.igamma, between(0.2, 20, 30), between(0.1, 25, 30)),
    two("igammac", lax.igammac, between(0.2, 20, 30), between(0.1, 25, 30)),
    two("igamma_grad_a", lax.igamma_grad_a, between(0.2, 20, 30), between(0.1, 25, 30), modes="v"),
    two("random_gamma_grad", lax.random_gamma_grad, between(0.3, 10, 30), between(0.2, 12, 30), modes="v"),
    Case("betainc", FLOAT, lax.betainc, [between(0.3, 20, 30), between(0.3, 20, 30), between(0.02, 0.98, 30)], modes="v"),
    Case("betainc_edges", FLOAT, lax.betainc, [values(1, 2, 0.5, 3, 0, 2, 2), values(1, 3, 0.5, 2, 1, -1, 2), values(0, 1, 0.5, np.nan, 0.5, 0.5, 1.5)], modes="v"),
    Case("betainc_x", FLOAT, lambda x: lax.betainc(jnp.full_like(x, 2.5), jnp.full_like(x, 0.75), x), [between(0.05, 0.95, 20)]),
    Case("betaln", "f32", special.betaln, [between(0.3, 30, 20), between(0.3, 30, 20)]),  # f64: JAX is 1e-7 off
    two("xlogy", special.xlogy, between(-2, 2, 20), positive(20)),
    two("xlogy_edges", special.xlogy, values(0, 0, 0, 1, 2), values(0, -1, np.inf, 0, 3), modes="v"),
    two("xlog1py", special.xlog1py, between(-2, 2, 20), positive(20)),
    Case("entr", FLOAT, special.entr, [positive(20)]),
    Case("entr_edges", FLOAT, special.entr, [values(0, -1, 1, 0.5)], modes="v"),
    Case("logit", FLOAT, special.logit, [between(0.02, 0.98, 20)]),
    two("rel_entr", lambda p, q: (special.rel_entr(p, q), special.kl_div(p, q)), P, Q, modes="v"),
    two("rel_entr_inside", lambda p, q: (special.rel_entr(p, q), special.kl_div(p, q)), between(0.1, 2, 12), between(0.1, 2, 12)),
    Case("ndtr", FLOAT, special.ndtr, [real(30, scale=3)]),
]  # fmt: skip
