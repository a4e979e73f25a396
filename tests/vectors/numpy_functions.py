"""Functions of jax.numpy that axle/numpy.h has, and jax.image.resize."""

import jax
import jax.numpy as jnp
import numpy as np

from case import Case, boolean, edge, index, positive, real, ties

WIDE = "f32 f64"


def one(name, function, *inputs, variants="f32", **more):
    return Case(name, variants, jax.jit(function), list(inputs), **more)


def ascending(*dims):
    return lambda random, variant: np.sort(random.normal(size=dims) * 2, axis=-1).astype(variant.dtype)


def holes(*dims):
    """Some elements NaN, and all of the first row."""

    def make(random, variant):
        x = random.normal(size=dims).astype(variant.dtype)
        x[random.random(dims) < 0.3] = np.nan
        x[0] = np.nan
        return x

    return make


def given(*numbers, dtype=None):
    return lambda random, variant: np.array(numbers).astype(dtype or variant.dtype)


NANS = (jnp.nansum, jnp.nanmean, jnp.nanmax, jnp.nanmin)
QUANTILES = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")

CASES = [
    one("linspace", lambda a, b: (jnp.linspace(a, b, 7), jnp.linspace(a, b, 5, endpoint=False), jnp.linspace(a, b, 1)), real(3), real(3), variants=WIDE),
    one("arange", lambda x: (x + jnp.arange(0.5, 3, 0.3, dtype=x.dtype), jnp.arange(-3, 20, 4, dtype=np.int32), jnp.arange(5, 0, -2, dtype=np.uint8)), real(1)),
    one("eye", lambda x: (x * jnp.eye(3, 4, dtype=x.dtype), x * jnp.eye(3, 4, k=-1, dtype=x.dtype), x * jnp.tri(3, 4, 1, dtype=x.dtype)), real(1)),
    one("triangles", lambda x: (jnp.tril(x), jnp.tril(x, -1), jnp.triu(x), jnp.triu(x, 2)), real(2, 3, 4), variants="f32 s32 bool"),
    one("diag", lambda x, y: (jnp.diag(x), jnp.diag(x, 2), jnp.diag(x, -1), jnp.diag(y), jnp.diag(y, 3), jnp.diag(y, -1)), real(3), real(3, 4), variants="f32 s32"),
    one("diagonal", lambda x: (jnp.diagonal(x, 1, 0, 2), jnp.diagonal(x, -1, 2, 1), jnp.trace(x, 0, 1, 2), jnp.diagonal(x, 9)), real(2, 3, 4)),
    one("meshgrid", lambda x, y, z: (*jnp.meshgrid(x, y, z), *jnp.meshgrid(x, y, z, indexing="ij")), real(2), real(3), real(4)),
    one("tile", lambda x: (jnp.tile(x, (2, 3)), jnp.tile(x, 2), jnp.tile(x, (2, 1, 1)), jnp.repeat(x, 3, 1), jnp.repeat(x, 2, 0)), real(2, 3)),
    one("roll", lambda x: (jnp.roll(x, 2), jnp.roll(x, -1, 1), jnp.roll(x, (1, 5), (0, 1))), real(3, 4), variants="f32 bool"),
    one("flip", lambda x: (jnp.flip(x), jnp.flip(x, 2), jnp.fliplr(x), jnp.flipud(x), jnp.rot90(x), jnp.rot90(x, 2), jnp.rot90(x, -1, (0, 2))), real(2, 3, 4)),
    one("stacks", lambda x, y, z: (jnp.hstack([x, y]), jnp.hstack([z, z]), jnp.vstack([x, y]), jnp.vstack([z, z]), jnp.dstack([x, y]), jnp.dstack([z, z]),
        jnp.column_stack([z, z])), real(2, 3), real(2, 3), real(4)),
    one("array_split", lambda x: tuple(jnp.array_split(x, 3, 1)), real(2, 7)),
    one("select", lambda x, y: jnp.select([x > 1, x > 0], [y, x], 7), real(4, 3), real(3)),
    one("clip", lambda x, a, b: jnp.clip(x, a, b), ties(3, 4), given(0.5), given(1, 2, 1, 0.25), variants=WIDE),
    one("isclose", lambda x, y: (jnp.isclose(x, y, 0.1, 0.01), jnp.isclose(x, y, equal_nan=True)), edge(24), edge(24)),
    one("nan_to_num", lambda x: (jnp.nan_to_num(x), jnp.nan_to_num(x, nan=1, posinf=2, neginf=3)), edge(24), variants="f32 f64 bf16 f16"),
    one("diff", lambda x: (jnp.diff(x), jnp.diff(x, 2, 0), jnp.diff(x, 9)), real(4, 3), variants="f32 s32"),
    one("outer", lambda x, y: (jnp.outer(x, y), jnp.inner(x, x), jnp.inner(y, y), jnp.vdot(x, x), jnp.kron(y, y)), real(2, 3), real(4), variants="f32 s32"),
    one("tensordot", lambda x, y: jnp.tensordot(x, y, ((0, 2), (1, 0))), real(2, 3, 4), real(4, 2, 5)),
    one("cross", lambda x, y: (jnp.cross(x, y), jnp.cross(x.T, x.T, axis=0)), real(4, 3), real(3), variants=WIDE),
    one("convolve", lambda x, y: (jnp.convolve(x, y), jnp.convolve(y, x, "same"), jnp.convolve(x, y, "valid"), jnp.correlate(x, y), jnp.correlate(y, x, "full"),
        jnp.correlate(x, y, "same")), real(8), real(3)),
    one("var", lambda x: (jnp.var(x), jnp.var(x, 1, ddof=1), jnp.std(x, (0, 2), keepdims=True), jnp.std(x, 0, ddof=2)), real(3, 4, 2, shift=3),
        variants="f32 f64 bf16"),
    one("reduced_where", lambda x, m: (jnp.sum(x, 0, where=m), jnp.mean(x, 0, where=m), jnp.var(x, 0, where=m, ddof=1), jnp.max(x, 1, where=m, initial=-jnp.inf),
        jnp.min(x, 1, where=m, initial=jnp.inf, keepdims=True)), real(5, 4), boolean(5, 4), variants=WIDE),
    one("nan_reduced", lambda x: tuple(f(x, 1) for f in NANS) + tuple(f(x) for f in NANS), holes(4, 5), variants=WIDE),
    one("nanvar", lambda x: (jnp.nanvar(x, 0), jnp.nanstd(x, 0, ddof=1), jnp.nanvar(x, 1, keepdims=True)), holes(6, 3), modes="v"),
    one("average", lambda x, w: (jnp.average(x, 1, w), jnp.average(x), jnp.ptp(x, 0)), real(3, 4), positive(3, 4)),
    one("cov", lambda x: (jnp.cov(x), jnp.cov(x, rowvar=False, ddof=0), jnp.cov(x[0]), jnp.corrcoef(x)), real(3, 6), variants=WIDE),
    one("quantile", lambda x: tuple(jnp.quantile(x, x.dtype.type(q), 1, method=m) for m in QUANTILES for q in (0.0, 0.3, 0.75)), real(3, 6), variants=WIDE),
    one("quantiles", lambda x, q: (jnp.quantile(x, q), jnp.quantile(x, q, (0, 2), keepdims=True, method="inverted_cdf"), jnp.percentile(x, 100 * q, 1)),
        real(2, 3, 4), given(0, 0.2, 0.5, 1), variants=WIDE),
    one("median", lambda x, y: (jnp.median(x), jnp.median(x, 1), jnp.median(y, 1, keepdims=True), jnp.nanmedian(y, 1), jnp.nanquantile(y, 0.3, 1)), real(3, 4),
        holes(4, 6), variants=WIDE, modes="v"),
    one("median_bf16", lambda x: (jnp.median(x, 1), jnp.quantile(x, 0.25)), real(4, 5), variants="bf16"),
    one("searchsorted", lambda a, v: (jnp.searchsorted(a, v), jnp.searchsorted(a, v, side="right"), jnp.digitize(v, a), jnp.digitize(v, a[::-1], right=True)),
        given(-2, -0.5, 0, 0, 1, 2, 3.75), edge(24), variants="f32 bf16"),
    one("searchsorted_long", lambda a, v: (jnp.searchsorted(a, v), jnp.searchsorted(a, v, side="right")), ascending(300), real(5, 6, scale=3), variants="f32"),
    one("searchsorted_integers", lambda a, v: (jnp.searchsorted(a, v), jnp.searchsorted(a, v, side="right")), given(*range(-100, 400, 3)), real(40, scale=3), variants="s32"),
    one("bincount", lambda i, w: (jnp.bincount(i, length=6).astype(np.int32), jnp.bincount(i, w, length=4)), index(7, 20, above=-1), real(20)),
    one("histogram", lambda x, w: (*jnp.histogram(x, 5), jnp.histogram(x, jnp.array([-1, 0, 0.5, 2], x.dtype), weights=w)[0]), real(4, 6), real(4, 6), variants=WIDE,
        modes="v"),
    one("interp", lambda x, xp, fp: jnp.interp(x, xp, fp), real(4, 3, scale=2), ascending(6), real(6), variants=WIDE),
    one("unique", lambda x: tuple(y.astype(x.dtype if k == 0 else np.int32) for k, y in enumerate(
        jnp.unique(x, return_index=True, return_inverse=True, return_counts=True, size=6)))[:2] + (jnp.unique(x, size=9, fill_value=7),), ties(3, 4), variants="f32 s32", modes="v"),
    one("unique_inverse", lambda x: tuple(y.astype(np.int32).reshape(-1) for y in jnp.unique(x, return_inverse=True, return_counts=True, size=5)[1:]), edge(24)),
    one("nonzero", lambda x: tuple(i.astype(np.int32) for i in (*jnp.nonzero(x, size=8, fill_value=-1), *jnp.nonzero(x, size=3))), ties(3, 4)),
    one("resize", lambda x: tuple(jax.image.resize(x, (2, 3, 8), m) for m in ("linear", "cubic", "lanczos3", "lanczos5")), real(2, 5, 4), variants=WIDE),
    one("resize_sharp", lambda x: (jax.image.resize(x, (3, 9), "linear", antialias=False), jax.image.resize(x, (9, 3), "cubic", antialias=False),
        jax.image.resize(x, (3, 13), "nearest")), real(7, 5), variants="f32"),
]  # fmt: skip
