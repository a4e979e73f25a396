"""Random numbers: bits, keys and distributions of jax.random."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from case import Case, real

FLOAT = "f32 f64"
UNSIGNED = "u8 u16 u32 u64"


def key(random, variant):
    return random.integers(0, 2**32, 2, np.uint32)


def keys(*dims):
    return lambda random, variant: random.integers(0, 2**32, (*dims, 2), np.uint32)


def words(*dims):
    return lambda random, variant: random.integers(0, 2**32, dims, np.uint32)


def seed(random, variant):
    return np.asarray(random.integers(-(2**31), 2**31), variant.dtype) if variant.dtype != np.uint64 else np.uint64(2**63 + 12345)


def like(random, variant):
    """What tells the dtype."""
    return np.zeros((), variant.dtype)


def all_of(key, shape, dtype):
    info = np.iinfo(dtype)
    most = np.uint64(2**63) if info.bits == 64 else np.int64(info.max + 1)
    return jax.random.randint(key, shape, info.min, most, dtype)


def without_x64(function):
    """As JAX does by default: the dtype of a Python number is f32."""

    def run(*operands):
        with jax.enable_x64(False):
            return function(*operands)

    return run


def with_its_x64(function):
    """With jax_enable_x64 where the second operand, or its parts, have 64 bits."""

    def run(k, like):
        with jax.enable_x64(like.real.dtype.itemsize == 8):
            return function(k, like)

    return run


def positive(*dims):
    return lambda random, variant: random.uniform(0.5, 3, dims).astype(variant.dtype)


def edges(*numbers):
    return lambda random, variant: np.array(numbers, variant.dtype)


def small(*dims):
    return lambda random, variant: random.uniform(0.1, 0.9, dims).astype(variant.dtype)


def probability(*dims):
    return lambda random, variant: random.uniform(0.1, 0.9, dims).astype(variant.dtype)


def shares(n):
    def make(random, variant):
        p = random.uniform(0.1, 1, n)
        return (p / p.sum()).astype(variant.dtype)

    return make


def covariance(n):
    def make(random, variant):
        x = random.uniform(-1, 1, (n, n))
        return (x @ x.T + n * np.eye(n)).astype(variant.dtype)

    return make


def of(name, variants, shape, function, **options):
    return Case(name, variants, lambda key, like: function(key, shape=shape, dtype=like.dtype, **options), [key, like], modes="v")


R = jax.random
R_generator = lambda key, shape, dtype, algorithm: lax.rng_bit_generator(key, shape, dtype, lax.RandomAlgorithm(algorithm))


def state(random, variant):
    """The count carries into its upper half."""
    return np.array([7, 2**31, 2**32 - 2, 2**32 - 1], np.uint32)


def state_wide(random, variant):
    return random.integers(0, 2**63, 2, np.uint64)


def generator(name, shape, number):
    algorithm = 1 if name == "threefry" else 2 if number < 4 else 0
    return Case(f"{name}_{number}", UNSIGNED, lambda k, like: R_generator(k, shape, like.dtype, algorithm), [state, like])


from jax._src.random.threefry2x32 import threefry2x32_p  # noqa: E402

CASES = [
    Case("threefry2x32", "u32", lambda a, b, c, d: tuple(threefry2x32_p.bind(a, b, c, d)), [words(5, 3)] * 4),
    of("bits", UNSIGNED, (7, 5), R.bits),
    of("bits_scalar", UNSIGNED, (), R.bits),
    of("bits_none", UNSIGNED, (0, 3), R.bits),
    *[generator("threefry", shape, a) for a, shape in enumerate([(), (4, 3), (3, 5), (2, 0), (3, 4, 5)])],
    *[generator("philox", shape, a) for a, shape in enumerate([(), (4, 3), (3, 5), (2, 0), (3, 4, 5)])],
    Case("generator_wide", UNSIGNED, lambda k, like: R_generator(k, (5,), like.dtype, 2), [state_wide, like]),
    Case("bits_batch", UNSIGNED, lambda k, like: jax.vmap(jax.vmap(lambda k: R.bits(k, (5,), like.dtype)), 1, 1)(k), [keys(2, 3), like]),
    Case("key", "s32 u32 s64 u64", R.PRNGKey, [seed]),
    Case("key_number", "u32", lambda k: k ^ R.PRNGKey(0x123456789ABC), [key]),
    Case("split", "u32", lambda k: R.split(k, (2, 3)), [key]),
    Case("fold_in", "s32 u32", lambda k, n: R.fold_in(k, n), [key, lambda random, v: np.asarray(random.integers(0, 2**31), v.dtype)]),
    Case("fold_in_number", "u32", lambda k: R.fold_in(k, 77), [key]),
    of("uniform", "bf16 f16 f32 f64", (40,), R.uniform),
    of("uniform_bounds", FLOAT, (40,), R.uniform, minval=-1.7, maxval=3.3),
    Case("uniform_arrays", FLOAT, lambda k, a, b: R.uniform(k, (5, 3), a.dtype, a, b), [key, real(3), positive(3)]),
    of("normal", "bf16 f16 f32 f64", (50,), R.normal),
    of("normal_complex", "c64 c128", (20,), R.normal),
    of("exponential", FLOAT, (20,), R.exponential),
    of("laplace", FLOAT, (20,), R.laplace),
    of("logistic", FLOAT, (20,), R.logistic),
    of("cauchy", FLOAT, (20,), R.cauchy),
    of("gumbel", FLOAT, (20,), R.gumbel),
    of("gumbel_high", FLOAT, (20,), R.gumbel, mode="high"),
    of("gumbel_highest", FLOAT, (20,), R.gumbel, mode="highest"),
    of("maxwell", FLOAT, (20,), R.maxwell),
    Case("truncated_normal", FLOAT, lambda k, a: R.truncated_normal(k, -a, 2.0 * a, (4, 3), a.dtype), [key, positive(3)]),
    Case("lognormal", FLOAT, lambda k, a: R.lognormal(k, a, (4, 3), a.dtype), [key, positive(3)]),
    Case("pareto", FLOAT, lambda k, a: R.pareto(k, a, (4, 3), a.dtype), [key, positive(3)]),
    Case("rayleigh", FLOAT, lambda k, a: R.rayleigh(k, a, (4, 3), a.dtype), [key, positive(3)]),
    Case("weibull_min", FLOAT, lambda k, a, b: R.weibull_min(k, a, b, (4, 3), a.dtype), [key, positive(3), positive(3)]),
    Case("triangular", FLOAT, lambda k, a: R.triangular(k, -a, 0.5 * a, a, (4, 3), a.dtype), [key, positive(3)]),
    Case("wald", FLOAT, lambda k, a: R.wald(k, a, (4, 3), a.dtype), [key, positive(3)]),
    Case("double_sided_maxwell", "f32", without_x64(lambda k: R.double_sided_maxwell(k, 0.5, 2.0, (6,), np.float32)), [key]),
    Case("geometric", FLOAT, lambda k, p: R.geometric(k, p, (5, 3), np.int32), [key, probability(3)]),
    Case("gamma", FLOAT, lambda k, a: R.gamma(k, a, (6, 3), a.dtype), [key, positive(3)]),
    Case("gamma_small", FLOAT, lambda k, a: R.gamma(k, a, (6, 3), a.dtype), [key, small(3)], modes="v"),
    Case("gamma_large", FLOAT, lambda k, a: R.gamma(k, 20 * a, (6, 3), a.dtype), [key, positive(3)]),
    Case("gamma_none", FLOAT, lambda k, like: R.gamma(k, 1 + like, (0, 3), like.dtype), [key, like], modes="v"),
    Case("loggamma", FLOAT, lambda k, a: R.loggamma(k, a, (6, 3), a.dtype), [key, small(3)]),
    Case("beta", FLOAT, lambda k, a, b: R.beta(k, a, b, (6, 3), a.dtype), [key, positive(3), small(6, 1)], modes="v"),
    Case("chisquare", FLOAT, lambda k, a: R.chisquare(k, a, (6, 3), a.dtype), [key, positive(3)], modes="v"),
    Case("f", FLOAT, lambda k, a, b: R.f(k, a, b, (12,), a.dtype), [key, positive(12), positive(12)], modes="v"),
    Case("t", FLOAT, lambda k, a: R.t(k, a, (6, 3), a.dtype), [key, positive(3)], modes="v"),
    Case("dirichlet", FLOAT, lambda k, a: R.dirichlet(k, a, (5, 2), a.dtype), [key, positive(2, 3)], modes="v"),
    Case("generalized_normal", FLOAT, with_its_x64(lambda k, like: R.generalized_normal(k, 1.7, (20,), like.dtype)), [key, like], modes="v"),
    Case("ball", FLOAT, with_its_x64(lambda k, like: R.ball(k, 3, 2.5, (6,), like.dtype)), [key, like], modes="v"),
    Case("poisson", "f32", lambda k, a: R.poisson(k, 2 * a, (9, 3), np.int32), [key, positive(3)], modes="v"),
    Case("poisson_large", "f32", lambda k, a: R.poisson(k, 30 * a, (9, 3), np.int64), [key, positive(3)], modes="v"),
    Case("poisson_edges", "f32", lambda k, a: R.poisson(k, a, None, np.int32), [key, edges(0, -1, np.nan, 9.5, 10)], modes="v"),
    Case("binomial", FLOAT, lambda k, p: R.binomial(k, 12, p, (9, 3), p.dtype), [key, probability(3)], modes="v"),
    Case("binomial_large", FLOAT, lambda k, p: R.binomial(k, 300, p, (9, 3), p.dtype), [key, probability(3)], modes="v"),
    Case("binomial_edges", FLOAT, lambda k, n, p: R.binomial(k, n, p, None, p.dtype), [key, edges(5, -1, np.nan, 5, 0, 5, 20.5, 7, np.inf), edges(0, 0.5, 0.5, -0.1, 0.5, 1, 0.9, np.nan, 0.9)], modes="v"),
    Case("multinomial", FLOAT, lambda k, n, p: R.multinomial(k, n, p, shape=(4, 2, 3), dtype=p.dtype), [key, lambda random, v: np.array([10, 60], v.dtype), shares(3)], modes="v"),
    Case("multivariate_normal", FLOAT, lambda k, m, c: R.multivariate_normal(k, m, c, (4,)), [key, real(3), covariance(3)]),
    Case("multivariate_normal_svd", FLOAT, lambda k, m, c: R.multivariate_normal(k, m, c, (4,), method="svd"), [key, real(3), covariance(3)]),
    Case("multivariate_normal_eigh", FLOAT, lambda k, m, c: R.multivariate_normal(k, m, c, (4,), method="eigh"), [key, real(3), covariance(3)]),
    Case("orthogonal", FLOAT, lambda k, like: R.orthogonal(k, 5, (), like.dtype), [key, like], modes="v"),
    Case("orthogonal_tall", FLOAT, lambda k, like: R.orthogonal(k, 6, (2, 3), like.dtype, 4), [key, like], modes="v"),
    Case("orthogonal_wide", FLOAT, lambda k, like: R.orthogonal(k, 2, (3,), like.dtype, 7), [key, like], modes="v"),
    of("randint", "s32 s64 u32 u64 s8 u8 s16 u16", (30,), R.randint, minval=3, maxval=101),
    of("randint_all", "s8 u8 s16 u16 s32 s64", (30,), all_of),
    of("randint_empty", "s32", (5,), R.randint, minval=7, maxval=7),
    Case("randint_arrays", "s32 u32 s64", lambda k, a: R.randint(k, (4, 3), a, 100, a.dtype), [key, lambda random, v: random.integers(0, 120, 3).astype(v.dtype)]),
    Case("bernoulli", FLOAT, lambda k, p: R.bernoulli(k, p, (20, 3)), [key, probability(3)]),
    Case("bernoulli_high", FLOAT, lambda k, p: R.bernoulli(k, p, mode="high"), [key, probability(30)]),
    Case("rademacher", "s32 f32 s8 s64 f64 c64 c128", with_its_x64(lambda k, like: R.rademacher(k, (20,), like.dtype)), [key, like], modes="v"),
    Case("categorical", FLOAT, lambda k, x: R.categorical(k, x).astype(np.int32), [key, real(20, 4)]),
    Case("categorical_axis", FLOAT, lambda k, x: R.categorical(k, x, 0, (5, 3)).astype(np.int32), [key, real(4, 3)]),
    Case("categorical_distinct", FLOAT, lambda k, x: R.categorical(k, x, shape=(3, 5), replace=False).astype(np.int32), [key, real(5, 4)]),
    Case("choice", "u32", without_x64(lambda k: R.choice(k, 50, (4, 5))), [key]),
    Case("choice_distinct", "u32", without_x64(lambda k: R.choice(k, 20, (4, 5), replace=False)), [key]),
    Case("choice_parts", "f32", without_x64(lambda k, x: R.choice(k, x, (2, 3), axis=1)), [key, real(2, 4, 2)], modes="v"),
    Case("choice_parts_distinct", "f32", without_x64(lambda k, x: R.choice(k, x, (3,), False, axis=1)), [key, real(2, 4, 2)], modes="v"),
    Case("choice_weighted", "f32", without_x64(lambda k, p: R.choice(k, 6, (20,), p=p)), [key, shares(6)]),
    Case("choice_weighted_distinct", "f32", without_x64(lambda k, p: R.choice(k, 6, (4,), False, p)), [key, shares(6)]),
    Case("permutation", "u32", without_x64(lambda k: R.permutation(k, 30)), [key]),
    Case("permutation_rows", "f32", lambda k, x: R.permutation(k, x), [key, real(6, 2)], modes="v"),
    Case("permutation_independent", "f32", lambda k, x: R.permutation(k, x, 1, True), [key, real(3, 6)], modes="v"),
]  # fmt: skip
