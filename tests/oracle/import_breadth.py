"""Runs whatever functions jax.numpy, jax.lax, jax.nn, jax.random, jax.scipy and jax.ops have, by Axle beside XLA on CPU.

  import_breadth.py [--axle build/axle] [--only REGEX] [--x64] [--precision NAME] [--list]

No list says which: names are looked up, and each function is tried with arguments of several numbers, types and shapes; what JAX takes
is a case. Of a function of floats there are also its derivatives, and itself under vmap, scan, while and cond. All cases of one function
are one module; where that is refused or differs, each is a module of its own.
Results agree within 32 epsilons of the dtype, of the largest element, or eight times what XLA's move by with the arguments; integers
exactly. --list: also the functions that were not tried, since no arguments fit.
"""

import argparse
import importlib
import inspect
import os
import re
import sys
import warnings

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=1"
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from agree import disagreement, moved  # noqa: E402
from forms import lower  # noqa: E402
from jax import lax  # noqa: E402

warnings.filterwarnings("ignore")
MODULES = """jax.numpy jax.lax jax.nn jax.random jax.numpy.linalg jax.numpy.fft jax.scipy.special jax.scipy.linalg jax.scipy.signal
    jax.scipy.fft jax.scipy.ndimage jax.scipy.cluster.vq jax.scipy.integrate jax.ops""".split()
STATS = """bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l gumbel_r laplace logistic multinomial
    multivariate_normal nbinom norm pareto poisson t truncnorm uniform vonmises wrapcauchy""".split()
# Of no arrays, of the host, or of devices; import_devices.py has those of devices.
SKIPPED = set("""array_repr array_str save savez load fromfile frombuffer fromstring from_dlpack fromiter printoptions set_printoptions
    get_printoptions einsum_path frompyfunc vectorize all_gather all_to_all axis_index axis_size pbroadcast pcast pmax pmean pmin ppermute
    precv psend pshuffle psum psum_scatter pswapaxes ragged_all_to_all create_token after_all with_sharding_constraint empty empty_like
    stage custom_root composite dce_sink clone key PRNGKey key_impl key_dtype apply_along_axis apply_over_axes fromfunction piecewise""".split())  # fmt: skip
# What differs, and why: a regular expression of names and labels.
KNOWN = {
    r"numpy.poly: (float32|bfloat16) specials 1 1": "a convolution multiplies NaN with the zeros of its padding, which XLA leaves out",
    r"random.beta: (vmap )?8": "of parameters below 0, which has no meaning",
    r"stats.cauchy.logcdf: float32 specials .*": "the logarithm of 0, which XLA's arc tangent misses by its rounding",
    r"scipy.linalg.fiedler_companion: bool 0": "0 / 0 is NaN, which XLA makes -0 in a fusion",
    r"numpy.histogram2d: int(64|32) 3": "a number on an edge, which is 0 or 5.6e-17 by how often its products are rounded (x64)",
    r"lax.cumlogsumexp: complex64 .*": "a window takes its padding, of -inf, into the sum, as the specification says, which XLA leaves out",
}
# Loops that never end, of JAX's function, whoever runs it: not tried.
ENDLESS = {r"scipy.special.expn": r".* specials 2 1"}
DTYPES = "float32 bfloat16 float16 int8 int16 int32 uint8 uint16 uint32 bool complex64".split()
WIDE = "float64 int64 uint64 complex128".split()


def numbers(r, dtype, shape):
    dtype = jnp.dtype(dtype)
    if dtype == bool:
        return r.random(shape) < 0.5
    if jnp.issubdtype(dtype, jnp.integer):
        return r.integers(0 if dtype.kind == "u" else -3, 6, shape).astype(dtype)
    if jnp.issubdtype(dtype, jnp.complexfloating):
        return (r.standard_normal(shape) + 1j * r.standard_normal(shape)).astype(dtype)
    return np.asarray(r.uniform(0.1, 0.9, shape)).astype(dtype)


def special(dtype, shape):
    info = jnp.finfo(dtype)
    found = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, -2.5, 0.5, float(info.max), -float(info.max), float(info.tiny), 100.0]
    return np.resize(np.array(found, np.float64), shape).astype(dtype)


def candidates(dtype, shape):
    """Lists of arguments to try; what is no array is a constant."""
    r = np.random.default_rng(5)
    n = lambda *s: numbers(r, dtype, s)  # noqa: E731
    i = lambda *s: r.integers(0, 3, s).astype(np.int32)  # noqa: E731
    if shape != (4, 4):
        x, y = n(*shape), n(*shape)
        return [(x,), (x, y), (x, y, n(*shape)), (x, 0), (x, (0,)), (i(*shape) > 0, x, y)]
    a, b = n(4, 4), n(4, 4)
    if np.issubdtype(a.dtype, np.floating):
        a = (a @ a.T + 3 * np.eye(4)).astype(dtype) / np.asarray(8, dtype)
    v = n(4)
    img, ker = n(1, 4, 6, 6), n(2, 4, 3, 3)
    return [
        (a,), (v,), (a, b), (v, n(4)), (a, v), (a, b, n(4, 4)), (v, n(4), n(4)), (a, 1), (v, 2), (a, 1, 2), (a, (1,)), (a, (1, 0)), (a, 0, 1),
        (a, i(4)), (a, i(4), 0), (v, i(3)), (a, i(4, 4), 1), (a, i(4), b), ([a, b],), ((v, v),), (i(4, 4) > 0, a, b), (i(4), v),
        (a, (2, 8)), (a, (2, 4, 4)), (4, a), (a, b, 1), (a, b, (1, 0)), (a, b, n(4, 4), n(4, 4)), (v, n(4), n(4), n(4)), (a, 1, 3, 0), (a, (0, 0), (2, 2)),
        (a, i(), 2), (a, b[:2, :2], (i(), i())), (a, b[:1], i(), 0), (v, (2, 2)), (3,), (4, 4), (img, ker, (1, 1), "SAME"), (a, 5, 7), (np.float32(0), a, np.float32(1)),
        (lambda c, t: (c + t, c * t), v, a), (lambda t: t * t, a), (a, a.reshape(-1)[0], lax.add, (0,)), (a, np.zeros((), dtype), lax.add, (2, 2), (1, 1), "SAME"),
        (img, "fft", (6,)), ("ij,jk->ik", a, b), (a, jnp.dtype("float32")), ([a, b, a],), (a, [a, b]), ([v > 0], [v]), (v, v, v, v, v), (i(4), i(4), v),
    ]  # fmt: skip


def random_candidates():
    v = np.array([0.5, 0.7, 1.5], np.float32)
    shape = (3,)
    m = np.eye(3, dtype=np.float32)
    return [(), (shape,), (v,), (v, v), (v, v, shape), (v, shape), (2,), (shape, 0, 9), (-1.0, 1.0, shape), (v, m), (5, 3), (1.0, 2.0, shape), (3, v), (0.0, 0.5, 1.0, shape),
            (np.arange(5),), (7, np.array([0.2, 0.3, 0.5], np.float32)), (3, 2.0, shape)]  # fmt: skip


def bound(f, args):
    """The function of those arguments that are arrays, and these."""
    leaves, tree = jax.tree.flatten(args, is_leaf=lambda a: callable(a))
    arrays = [isinstance(a, (np.ndarray, np.generic)) for a in leaves]

    def of(*given):
        given = iter(given)
        return f(*jax.tree.unflatten(tree, [next(given) if is_array else a for is_array, a in zip(arrays, leaves)]))

    return of, [np.asarray(a, jax.dtypes.canonicalize_dtype(a.dtype)) for a, is_array in zip(leaves, arrays) if is_array]


def outputs(f, args):
    """The shapes of the results if JAX takes the function, and they are arrays; else None."""
    try:
        leaves = jax.tree.leaves(jax.eval_shape(f, *args))
    except Exception:  # noqa: BLE001 - of any kind
        return None
    fine = leaves and all(hasattr(s, "dtype") and s.dtype != jax.dtypes.float0 and not jnp.issubdtype(s.dtype, jax.dtypes.extended) for s in leaves)
    return leaves if fine else None


def floats(leaves):
    return [k for k, a in enumerate(leaves) if jnp.issubdtype(a.dtype, jnp.floating)]


def transformed(f, args):
    """(name, function, arguments) of what transformations make of a function of floats."""
    out = outputs(f, args)
    if out is None or not args or not all(jnp.issubdtype(a.dtype, jnp.floating) for a in args):
        return
    many = [np.stack([a, a[::-1] if a.ndim else a * 2]) for a in args]
    total = lambda *a: sum(jnp.sum(t * t).astype(jnp.float32) for t in jax.tree.leaves(f(*a)) if jnp.issubdtype(t.dtype, jnp.floating))  # noqa: E731
    yield "vmap", jax.vmap(f), many
    if floats(out):
        yield "grad", jax.grad(total, tuple(range(len(args)))), args
        yield "jvp", lambda *a: jax.jvp(f, a[: len(args)], a[len(args) :])[1], [*args, *args]
        yield "hessian", jax.hessian(lambda a: total(a[:2] if a.ndim == 1 else a[..., :2], *args[1:])), args[:1]
        yield "grad of vmap", jax.grad(lambda *a: sum(jnp.sum(t) for t in jax.tree.leaves(jax.vmap(total)(*a)))), many
    yield "scan", lambda *a: lax.scan(lambda c, t: (c + 1, f(*t)), 0, a), many
    yield "cond", lambda *a: lax.cond(a[0].sum() > 0, f, lambda *b: jax.tree.map(jnp.zeros_like, f(*b)), *a), args
    if len(out) == 1 and (out[0].shape, out[0].dtype) == (args[0].shape, args[0].dtype):
        yield "while", lambda *a: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, f(c[1], *a[1:]).reshape(a[0].shape)), (0, a[0])), args


def of_arrays(f, dtypes):
    """(label, function, arguments): the first lists that JAX takes, and what they become in other types and shapes."""
    taken = [k for k, args in enumerate(candidates("float32", (4, 4))) if outputs(*bound(f, args)) is not None]
    if not taken:
        taken = [k for k, args in enumerate(candidates("int32", (4, 4))) if outputs(*bound(f, args)) is not None]
    for dtype in dtypes:
        lists = candidates(dtype, (4, 4))
        for k in taken[: 6 if dtype == "float32" else 2]:
            yield f"{dtype} {k}", *bound(f, lists[k])
    for shape in [(), (0,), (0, 3), (2, 1, 3, 1, 2)]:
        for k, args in enumerate(candidates("float32", shape)):
            yield f"{list(shape)} {k}", *bound(f, args)
    for dtype in ("float32", "bfloat16"):
        x = special(dtype, (16,))
        for args in [(x,), (x, x[::-1].copy()), (np.repeat(x, 16).reshape(16, 16), np.tile(x, 16).reshape(16, 16))]:
            yield f"{dtype} specials {len(args)} {x.ndim}", *bound(f, args)
    for k in taken[:2]:
        for name, g, args in transformed(*bound(f, candidates("float32", (4, 4))[k])):
            yield f"{name} {k}", g, args


def of_key(f):
    key = np.array([1, 2], np.uint32)
    count = 0
    for k, args in enumerate(random_candidates()):
        g, arrays = bound(lambda *a: f(*a), (key, *args))
        typed = lambda key, *a, g=g: g(jax.random.wrap_key_data(key), *a)  # noqa: E731
        if outputs(typed, arrays) is not None and count < 4:
            count += 1
            yield f"{k}", typed, arrays
            yield f"vmap {k}", lambda key, *a, t=typed: jax.vmap(lambda q: t(jax.random.key_data(q), *a))(jax.random.split(jax.random.wrap_key_data(key), 3)), arrays


def functions():
    """(name, function) of every function there is."""
    for path in MODULES:
        module = importlib.import_module(path)
        for name in dir(module):
            f = getattr(module, name)
            if not name.startswith("_") and callable(f) and not inspect.isclass(f) and name not in SKIPPED:
                yield f"{path.removeprefix('jax.')}.{name}", f
    for name in STATS:
        module = importlib.import_module(f"jax.scipy.stats.{name}")
        for part in ("logpdf", "logpmf", "cdf", "logcdf", "ppf", "sf", "isf", "pdf"):
            if hasattr(module, part):
                yield f"stats.{name}.{part}", getattr(module, part)
    ufuncs = {name: f for name, f in vars(jnp).items() if isinstance(f, jnp.ufunc)}
    for name, f in ufuncs.items():
        for part in ("reduce", "accumulate", "outer"):
            yield f"numpy.{name}.{part}", getattr(f, part)


def cases_of(name, f, dtypes):
    found = {}
    for label, g, args in of_key(f) if name.startswith("random.") else of_arrays(f, dtypes):
        if name in ENDLESS and re.fullmatch(ENDLESS[name], label):
            continue
        if label not in found and outputs(g, args) is not None:
            found[label] = (g, args)
    return found


def together(found):
    """All cases as one function."""

    def f(args):
        return {label: found[label][0](*args[label]) for label in found}

    return f, ({label: args for label, (_, args) in found.items()},)


def check(options, f, args):
    executable = lower(f, args).compile()
    want = [np.asarray(a) for a in jax.tree.leaves(executable(*args))]
    return disagreement(options.axle, lower(f, args).as_text(), args, want, lambda: 8 * moved(executable, args, want))


def try_function(options, name, found):
    """(cases, those that failed)."""
    try:
        why = check(options, *together(found))
    except Exception as error:  # noqa: BLE001 - of XLA or JAX: each by itself
        why = str(error)
    if why is None:
        return len(found), 0
    count = failed = 0
    reasons = {}
    for label, (f, args) in found.items():
        if any(re.fullmatch(known, f"{name}: {label}") for known in KNOWN):
            continue
        try:
            why = check(options, f, args)
        except Exception:  # noqa: BLE001 - JAX itself cannot
            continue
        count += 1
        failed += why is not None
        if why is not None:
            reasons.setdefault(re.sub(r"\d[\d.e+]*", "#", why), []).append((label, why))
    for labels in reasons.values():
        print(f"{name}: {', '.join(label for label, _ in labels)}: {labels[0][1]}", flush=True)
    return count, failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--axle", default="build/axle")
    parser.add_argument("--only", default="")
    parser.add_argument("--x64", action="store_true")
    parser.add_argument("--precision")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", options.x64)
    if options.precision:
        jax.config.update("jax_default_matmul_precision", options.precision)
    tried = count = failed = 0
    for name, f in functions():
        if not re.search(options.only, name):
            continue
        found = cases_of(name, f, WIDE + ["int32"] if options.x64 else DTYPES)
        if options.list and not found:
            print(f"{name}: no arguments fit")
        if not found:
            continue
        counts = try_function(options, name, found)
        tried, count, failed = tried + 1, count + counts[0], failed + counts[1]
    print(f"{tried} functions, {count} cases: {count - failed} agree, {failed} do not")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
