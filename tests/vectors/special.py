"""Special functions: where JAX's are off by hundreds of units in the last place, near their zeros, results are compared to the largest
element."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from case import Case, edge

FLOAT = "f32 f64 bf16"


def between(low, high, *dims):
    return lambda random, v: np.asarray(random.uniform(low, high, dims)).astype(v.dtype)


def whole(low, high, *dims):
    return lambda random, v: np.asarray(random.integers(low, high, dims)).astype(v.dtype)


def unary(name, function, low, high):
    return Case(name, FLOAT, function, [between(low, high, 24)])


CASES = [
    Case("erf_inv_edges", FLOAT, lax.erf_inv, [edge(24)], modes="v"), unary("erf_inv", lax.erf_inv, -0.95, 0.95),
    Case("lgamma_edges", FLOAT, lax.lgamma, [edge(24)], modes="v"), unary("lgamma", lax.lgamma, 0.1, 20), unary("lgamma_below", lax.lgamma, -5, 0),
    Case("digamma_edges", FLOAT, lax.digamma, [edge(24)], modes="v"), unary("digamma", lax.digamma, 0.1, 20), unary("digamma_below", lax.digamma, -5, 0),
    Case("polygamma", FLOAT, lambda n, x: lax.polygamma(lax.stop_gradient(n), x), [whole(0, 6, 24), between(0.3, 9, 24)]),
    Case("zeta", FLOAT, lax.zeta, [between(1.1, 9, 24), between(0.3, 9, 24)], modes="v"),
    Case("bessel_i0e_edges", FLOAT, lax.bessel_i0e, [edge(24)], modes="v"), unary("bessel_i0e", lax.bessel_i0e, -20, 20),
    Case("bessel_i1e_edges", FLOAT, lax.bessel_i1e, [edge(24)], modes="v"), unary("bessel_i1e", lax.bessel_i1e, -20, 20),
]  # fmt: skip
