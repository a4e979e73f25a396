"""Random programs of JAX over all its dtypes: chains of operations from all of jax.numpy and jax.lax, over odd shapes and strange numbers, as they
are, or their gradients, tangents, maps, or cut over eight devices; beside XLA on one CPU.
PYTHONPATH=build/python JAX_PLATFORMS=axle,cpu python tests/oracle/random_programs.py [SEEDS [FIRST [plain|grad|jvp|vmap|cut|all]]]

XLA runs each twice, whole and equation by equation. What those two differ by, and what a rounding of the arguments makes, is allowed here too:
where an operation makes much of little (a remainder, a difference of near numbers), nobody's last digits are right."""

import os
import sys

SEEDS, FIRST = (int(sys.argv[k]) if len(sys.argv) > k else (100, 0)[k - 1] for k in (1, 2))
KIND = sys.argv[3] if len(sys.argv) > 3 else "all"
KINDS = ["plain", "grad", "jvp", "vmap", "cut"]
os.environ.setdefault("AXLE_DEVICES", "8")

import warnings  # noqa: E402

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from jax.sharding import AxisType  # noqa: E402
from laid import laid  # noqa: E402

jax.config.update("jax_enable_x64", True)
warnings.simplefilter("ignore")
MESH = jax.make_mesh((2, 2, 2), ("a", "b", "c"), axis_types=(AxisType.Auto,) * 3)
CPU = jax.devices("cpu")[0]
FLOATS = ["float32"] * 6 + ["float64"] * 3 + ["bfloat16"] * 2 + ["float16"] * 2
OTHERS = ["int32"] * 3 + ["int8", "uint8", "int16", "uint16", "uint32", "int64", "uint64", "bool", "complex64", "complex128"]
MOST = 20000  # elements of a value


def is_float(x):
    return jnp.issubdtype(x.dtype, jnp.floating)


def is_complex(x):
    return jnp.issubdtype(x.dtype, jnp.complexfloating)


def is_integer(x):
    return jnp.issubdtype(x.dtype, jnp.integer)


def inexact(x):
    return x if is_float(x) or is_complex(x) else x.astype(jnp.float32)


def real(x):
    return x if is_float(x) else jnp.real(x) if is_complex(x) else x.astype(jnp.float32)


def real_number(x):
    return jnp.real(x) if is_complex(x) else x.astype(jnp.int32) if x.dtype == bool else x


def bounded(x):
    return jnp.clip(real(x), -8, 8)


def like(b, a):
    """b as an array that goes with a: of its dtype, broadcast or cut to its shape."""
    if is_complex(b) and not is_complex(a):
        b = jnp.real(b)
    flat = b.reshape(-1).astype(a.dtype)
    return jnp.resize(flat, a.shape) if b.shape != a.shape else b.astype(a.dtype)


# --- Steps: of two values and a source of numbers, a value, or None where they do not fit ---


def unary(a, b, r):
    name = str(r.choice(["sin", "cos", "tanh", "arctan", "sinh", "arcsinh", "exp", "expm1", "log", "log1p", "sqrt", "square", "abs", "sign", "cbrt",
                         "floor", "ceil", "rint", "trunc", "negative", "reciprocal", "erf", "logistic", "rsqrt", "softplus", "gelu", "silu",
                         "logsumexp", "tan", "exp2", "relu", "isfinite", "positive"]))
    x = inexact(a)
    if name in ("erf", "gelu", "softplus", "cbrt", "floor", "ceil", "rint", "trunc", "logistic", "silu", "logsumexp", "relu"):
        x = real(a)
    if name in ("exp", "expm1", "sinh", "exp2"):
        x = x if is_complex(x) else jnp.clip(x, -20, 20)
    if name == "tan":
        x = jnp.clip(real(x), -1.2, 1.2)
    own = {"erf": lax.erf, "logistic": lax.logistic, "rsqrt": lambda v: lax.rsqrt(jnp.abs(v) + 1), "softplus": jax.nn.softplus, "gelu": jax.nn.gelu,
           "silu": jax.nn.silu, "relu": jax.nn.relu, "logsumexp": jax.nn.logsumexp, "log": lambda v: jnp.log(jnp.abs(v) + 0.1),
           "log1p": lambda v: jnp.log1p(jnp.abs(v)), "sqrt": lambda v: jnp.sqrt(jnp.abs(v)), "reciprocal": lambda v: 1 / (jnp.abs(v) + 1)}
    return own.get(name, getattr(jnp, name, None))(x)


def binary(a, b, r):
    name = str(r.choice(["add", "subtract", "multiply", "maximum", "minimum", "divide", "arctan2", "power", "hypot", "logaddexp", "fmod", "copysign"]))
    b = like(b, a)
    if a.dtype == bool:
        return [jnp.logical_and, jnp.logical_or, jnp.logical_xor][int(r.integers(3))](a, b)
    if name in ("add", "subtract", "multiply"):
        return getattr(jnp, name)(a, b)
    if name == "divide":
        return inexact(a) / (jnp.abs(inexact(b)) + 1).astype(inexact(a).dtype)
    if name in ("maximum", "minimum"):
        return getattr(jnp, name)(real_number(a), real_number(b))
    if name == "power":
        return jnp.power(jnp.abs(bounded(a)) + 0.5, jnp.clip(real(b), -3, 3))
    if name == "fmod" and is_integer(a):
        return lax.rem(a, b) if r.integers(2) else lax.div(a, b)
    return getattr(jnp, name)(real(a), real(b))


def bits(a, b, r):
    if not is_integer(a):
        return None
    b = like(b, a)
    n = int(r.integers(9))
    if n < 3:
        return [jnp.bitwise_and, jnp.bitwise_or, jnp.bitwise_xor][n](a, b)
    if n < 6:
        return [lax.shift_left, lax.shift_right_logical, lax.shift_right_arithmetic][n - 3](a, b & 15)
    return [lax.population_count, lax.clz, jnp.invert][n - 6](a)


def compared(a, b, r):
    a = real_number(a)
    b = like(b, a)
    test = [jnp.less, jnp.greater_equal, jnp.equal, jnp.not_equal][int(r.integers(4))](a, b)
    return test if r.integers(3) == 0 else jnp.where(test, a, b)


def clipped(a, b, r):
    low, high = sorted(int(v) for v in r.integers(-4, 9, 2))
    return jnp.clip(real_number(a), max(low, 0), max(high, 0))


def converted(a, b, r):
    to = str(r.choice(FLOATS + OTHERS))
    if jnp.issubdtype(jnp.dtype(to), jnp.integer) and not is_integer(a):
        a = jnp.floor(jnp.clip(jnp.nan_to_num(real(a)), 0, 100) + 0.37)
    if is_complex(a) and not to.startswith("complex"):
        a = jnp.real(a)
    if to.startswith("complex") and not is_complex(a):
        return lax.complex(*(real(v).astype("float64" if to == "complex128" else "float32") for v in (a, a * 0 if a.dtype == bool else -a)))
    return a.astype(to)


def complex_part(a, b, r):
    if not is_complex(a):
        return None
    return [jnp.real, jnp.imag, jnp.conj, jnp.abs, lambda v: v * (1 - 2j), lambda v: v / (2 + 1j), lambda v: v * jnp.conj(v)][int(r.integers(7))](a)


def reduced(a, b, r):
    if not a.ndim:
        return None
    axes = tuple(int(v) for v in r.permutation(a.ndim)[: int(r.integers(1, a.ndim + 1))])
    keep = bool(r.integers(2))
    name = str(r.choice(["sum", "max", "min", "mean", "var", "any", "all", "argmax", "argmin", "prod", "logsumexp", "std", "ptp", "count_nonzero"]))
    if name in ("max", "min", "ptp"):
        return getattr(jnp, name)(real_number(a), axis=axes, keepdims=keep)
    if name in ("argmax", "argmin"):
        return getattr(jnp, name)(jnp.floor(bounded(a)), axis=axes[0], keepdims=keep)
    if name == "logsumexp":
        return jax.nn.logsumexp(real(a), axis=axes, keepdims=keep)
    if name == "prod":
        return jnp.prod(jnp.tanh(real(a)) + 1, axis=axes[0], keepdims=keep)
    if name in ("mean", "var", "std"):
        return getattr(jnp, name)(real(a), axis=axes, keepdims=keep) if name != "std" else jnp.sqrt(jnp.var(real(a), axis=axes, keepdims=keep) + 1)
    return getattr(jnp, name)(a, axis=axes, keepdims=keep)


def cumulative(a, b, r):
    if not a.ndim:
        return None
    axis, back = int(r.integers(a.ndim)), bool(r.integers(2))
    n = int(r.integers(5))
    if n == 0:
        return lax.cumsum(real_number(a), axis, reverse=back)
    if n == 1:
        return lax.cumprod(jnp.tanh(real(a)) + 0.5, axis, reverse=back)
    if n == 4:
        return lax.cumlogsumexp(bounded(a), axis, reverse=back)
    return [lax.cummax, lax.cummin][n - 2](real_number(a), axis, reverse=back)


def ordered(a, b, r):
    if not a.ndim:
        return None
    axis, n = int(r.integers(a.ndim)), int(r.integers(4))
    x = jnp.floor(bounded(a) * 4) if not is_integer(a) else a
    if n == 0:
        return jnp.sort(real_number(a), axis=axis, descending=bool(r.integers(2)))
    if n == 1:
        return jnp.argsort(x, axis=axis)
    if n == 2:
        return lax.top_k(x, int(r.integers(1, x.shape[-1] + 1)))[int(r.integers(2))]
    return lax.sort((x, like(b, x)), dimension=axis, num_keys=1)[1]


def shaped(a, b, r):
    n = int(r.integers(12))
    if n == 0:
        return a.reshape(-1)
    if n == 1:
        return jnp.transpose(a, [int(v) for v in r.permutation(a.ndim)])
    if n == 2:
        return a[None] if a.ndim < 4 else None
    if n == 3:
        return jnp.squeeze(a)
    if n == 4:
        return jnp.flip(a, int(r.integers(a.ndim))) if a.ndim else None
    if n == 5:
        return jnp.broadcast_to(a, (int(r.integers(1, 5)), *a.shape)) if a.ndim < 4 else None
    if n == 6:
        return jnp.stack([a, like(b, a)], axis=int(r.integers(a.ndim + 1))) if a.ndim < 4 else None
    if n == 7:
        return jnp.concatenate([a, like(b, a)[: int(r.integers(1, a.shape[0] + 1))]]) if a.ndim else None
    if n == 8:
        return jnp.tile(a, int(r.integers(1, 4)))
    if n == 9:
        return jnp.repeat(a, int(r.integers(1, 4)), axis=int(r.integers(a.ndim))) if a.ndim else None
    if n == 10 and a.ndim:
        k = [d for d in range(1, a.shape[-1] + 1) if a.shape[-1] % d == 0]
        d = int(r.choice(k))
        return a.reshape(*a.shape[:-1], d, a.shape[-1] // d) if a.ndim < 4 else None
    return jnp.moveaxis(a, 0, -1) if a.ndim else None


def cut(a, b, r):
    if not a.ndim:
        return None
    n = int(r.integers(6))
    if n == 0:
        at = [slice(int(p), int(q) + 1, int(s)) for p, q, s in ((r.integers(0, m), r.integers(m // 2, m), r.integers(1, 4)) for m in a.shape)]
        return a[tuple(at)]
    if n == 1:
        return lax.pad(a, jnp.array(1, a.dtype), [(int(r.integers(-1, 4)), int(r.integers(-1, 4)), int(r.integers(0, 3))) for _ in a.shape])
    if n == 2:
        return jnp.pad(a, [(int(r.integers(0, m)), int(r.integers(0, m))) for m in a.shape], mode=str(r.choice(["edge", "reflect", "wrap", "symmetric"])))
    if n == 3:
        return jnp.roll(a, int(r.integers(-4, 5)), axis=int(r.integers(a.ndim)))
    if n == 4:
        return jnp.diff(real(a), axis=int(r.integers(a.ndim))) if min(a.shape) > 1 else None
    return jnp.triu(a, int(r.integers(-2, 3))) if a.ndim > 1 else a[::-1]


def indices(b, n, r):
    if r.integers(2):
        return jnp.asarray(r.integers(-n, n, int(r.integers(1, 30))))
    return (jnp.nan_to_num(bounded(b)).reshape(-1)[:30] * 3).astype(jnp.int32) % n


def looked_up(a, b, r):
    if not a.ndim:
        return None
    axis = int(r.integers(a.ndim))
    at = indices(b, a.shape[axis], r)
    if r.integers(4) == 0:
        return jnp.take_along_axis(a, jnp.argsort(jnp.floor(bounded(a)), axis=axis), axis)
    return jnp.take(a, at, axis=axis, mode=str(r.choice(["clip", "fill", "wrap"])) if not a.dtype == bool else "clip")


def scattered(a, b, r):
    if not a.ndim or a.dtype == bool:
        return None
    at = indices(b, a.shape[0], r)
    rows = like(b, jax.ShapeDtypeStruct((at.size, *a.shape[1:]), a.dtype))
    n = int(r.integers(6))
    if n == 0:
        return jax.ops.segment_sum(rows, at % a.shape[0], num_segments=a.shape[0])
    if n == 1:
        return a.at[at[0]].set(rows[0])
    if n == 2 and not is_complex(a):
        return a.at[at].mul(jnp.clip(rows, 0, 2))
    if n >= 3 and not is_complex(a):
        there = a.at[at]
        return [there.max, there.min, there.add][n - 3](rows)
    return a.at[at].add(rows)


def product(a, b, r):
    a, n = inexact(a), int(r.integers(5))
    if not a.ndim:
        return None
    b = like(b, a)
    if n == 0:
        return jnp.tensordot(a, b, axes=([a.ndim - 1], [a.ndim - 1])) / a.shape[-1]
    if n == 1 and a.ndim > 1:
        return jnp.matmul(a, jnp.swapaxes(b, -1, -2)) / a.shape[-1]
    if n == 2:
        return a @ b.reshape(-1)[: a.shape[-1]] / a.shape[-1]
    if n == 3:
        return jnp.einsum("...i,...i->...", a, b)
    return jnp.outer(a.reshape(-1)[:60], b.reshape(-1)[:50])


def windows(a, b, r):
    a = real(a)
    n = int(r.integers(5))
    if n < 2:
        size, step = [int(r.integers(1, min(4, m) + 1)) for m in a.shape], [int(r.integers(1, 3)) for _ in a.shape]
        init, op = [(-np.inf, lax.max), (0.0, lax.add)][n]
        return lax.reduce_window(a, jnp.array(init, a.dtype), op, size, step, str(r.choice(["SAME", "VALID"])))
    if n == 2:
        return jnp.convolve(a.reshape(-1)[:200], like(b, a).reshape(-1)[:7], mode=str(r.choice(["same", "full", "valid"]))) if a.size > 7 else None
    if a.ndim < 2 or a.dtype == jnp.float64 and n == 4:
        return None
    image = a.reshape(1, 1, a.shape[0], -1)
    filters = jnp.resize(like(b, a), (3, 1, min(3, image.shape[2]), min(2, image.shape[3])))
    return lax.conv_general_dilated(image, filters, [int(v) for v in r.integers(1, 3, 2)], str(r.choice(["SAME", "VALID"])),
                                    rhs_dilation=[1, 1] if n == 3 else [1, 2] if image.shape[3] > 2 else [1, 1])[0]


def layers(a, b, r):
    if not a.ndim:
        return None
    x, n = real(a), int(r.integers(6))
    if n == 0:
        return jax.nn.softmax(x, axis=int(r.integers(a.ndim)))
    if n == 1:
        return jax.nn.log_softmax(bounded(x))
    if n == 2:
        m = x.mean(-1, keepdims=True)
        return (x - m) * lax.rsqrt(((x - m) ** 2).mean(-1, keepdims=True) + 0.1)
    if n == 3:
        return jax.nn.one_hot(indices(b, 5, r) % 5, 5, dtype=x.dtype)
    if n == 4:
        return jnp.where(like(b, x) > 0, x, -jnp.inf).max(-1)
    return x / (1 + jnp.sqrt((x * x).sum(-1, keepdims=True)))


def controlled(a, b, r):
    n, steps = int(r.integers(5)), int(r.integers(1, 5))
    x = inexact(a)
    b = like(b, x)
    if n == 0:
        return lax.cond(jnp.sum(real(a)) > 0, lambda v: v * 2, lambda v: v - 1, x)
    if n == 1 and a.ndim:
        return lax.scan(lambda c, v: (c * 0.5 + v, c + v), jnp.zeros(x.shape[1:], x.dtype), x, reverse=bool(r.integers(2)))[int(r.integers(2))]
    if n == 2:
        return lax.fori_loop(0, steps, lambda i, v: v * 0.5 + b * (i + 1).astype(v.dtype), x)
    if n == 3:
        return lax.scan(lambda c, _: (jnp.tanh(c) + b, c), x, None, length=steps)[0] if not is_complex(x) else None
    return lax.map(lambda v: jnp.sum(v) * v, x) if a.ndim else None


def transformed(a, b, r):
    if not a.ndim:
        return None
    x = a.astype("complex64") if a.dtype in (jnp.bfloat16, jnp.float16) or not (is_float(a) or is_complex(a)) else a
    axis, n = int(r.integers(a.ndim)), int(r.integers(3))
    if n == 0:
        return jnp.fft.fft(x, axis=axis) / a.shape[axis]
    if n == 1:
        return jnp.abs(jnp.fft.ifft(x, axis=axis))
    return jnp.fft.rfft(jnp.real(x), axis=axis) / a.shape[axis]


def drawn(a, b, r):
    key = jax.random.key(int(r.integers(1000)))
    n = int(r.integers(4))
    if n == 0:
        return jax.random.normal(key, a.shape, a.dtype) if is_float(a) else jax.random.bits(key, a.shape)
    return [jax.random.uniform(key, a.shape), jax.random.randint(key, a.shape, -5, 9), jax.random.bernoulli(key, 0.3, a.shape)][n - 1]


STEPS = [unary] * 5 + [binary] * 5 + [shaped] * 4 + [reduced] * 3 + [cut] * 2 + [product] * 2 + [looked_up] * 2 + [scattered] * 2 + [
    bits, compared, clipped, converted, converted, complex_part, cumulative, ordered, windows, layers, layers, controlled, controlled, transformed, drawn]


# --- Programs ---


def shape_of(r):
    extents = [1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 17, 24, 31, 32, 33, 40, 64]
    while True:
        shape = tuple(int(r.choice(extents)) for _ in range(int(r.choice([0, 1, 1, 2, 2, 2, 3, 3, 4]))))
        if np.prod(shape, dtype=int) <= 3000:
            return shape


def drawn_input(r, floats):
    shape, dtype = shape_of(r), str(r.choice(FLOATS if floats or r.integers(3) else OTHERS))
    if dtype == "bool":
        return r.random(shape) > 0.5
    if "int" in dtype:
        info, small = np.iinfo(dtype), r.integers(4)
        return (r.integers(-3 if info.min else 0, 12, shape) if small else r.integers(info.min // 2, info.max // 2, shape)).astype(dtype)
    x = r.normal(size=shape) * float(r.choice([1, 1, 1, 0.01, 30]))
    if dtype.startswith("complex"):
        return (x + 1j * r.normal(size=shape)).astype(dtype)
    x = np.asarray(x, ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    if not floats and x.ndim and x.size and r.integers(6) == 0:  # strange numbers in some places
        flat = x.reshape(-1)
        for k in r.integers(0, x.size, 3):
            flat[k] = r.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, 1e30])
    return x


def made(seed, floats):
    """A function of some arrays; the same numbers are drawn whenever it is traced. And what it does, in words, once it was traced."""
    told = []

    def run(*inputs):
        r, values = np.random.default_rng(seed), list(inputs)
        del told[:]
        for _ in range(int(r.integers(2, 9))):
            step = STEPS[int(r.integers(len(STEPS)))]
            i, j, draws = -1 - min(int(r.geometric(0.6)) - 1, len(values) - 1), int(r.integers(len(values))), np.random.default_rng(r.integers(2**32))
            value = step(values[i], values[j], draws)
            if value is not None and 0 < value.size <= MOST and value.ndim <= 5:
                values.append(value)
                told.append(step.__name__)
        return values[-1], values[max(len(inputs), len(values) - 2)] if len(values) > len(inputs) else values[0]

    return run, told


def scalar(out):
    """A number whose derivatives are as accurate where results are large."""
    wide = [real(x).astype(jnp.float32) for x in out]
    return sum(jnp.sum(x / (1 + jnp.abs(x))) for x in wide)


def program(seed, kind):
    """A function and its arguments."""
    r, floats = np.random.default_rng([seed, 1]), kind in ("grad", "jvp")
    inputs = [drawn_input(r, floats) for _ in range(int(r.integers(1, 4)))]
    run, told = made([seed, 2], floats)
    if kind == "grad":
        return jax.grad(lambda *a: scalar(run(*a)), argnums=tuple(range(len(inputs)))), inputs, told
    if kind == "jvp":
        return lambda *a: jax.jvp(run, a, tuple(jnp.cos(x) for x in a))[1], inputs, told
    if kind == "vmap":
        return jax.vmap(run), [np.stack([x, x[..., ::-1] if x.ndim else x, x]) for x in inputs], told
    return run, inputs, told


# --- Results, held against each other ---


def wide(x):
    x = np.asarray(x)
    return x.astype(np.complex128) if x.dtype.kind == "c" else x.astype(np.float64)


def eps_of_type(dtype):
    if dtype == jax.dtypes.float0:
        return 0.0
    return 0.0 if dtype.kind in "biu" else float(ml_dtypes.finfo(np.float32 if dtype == np.complex64 else np.float64 if dtype == np.complex128 else dtype).eps)


def eps_of(x):
    return eps_of_type(np.asarray(x).dtype)


def dtypes_in(function, inputs):
    """Of arguments and of values on the way: what was rounded to bf16 once is as good as bf16."""
    program = jax.make_jaxpr(function)(*inputs)
    return {v.aval.dtype for v in program.jaxpr.invars + [v for e in program.jaxpr.eqns for v in e.outvars] if isinstance(v.aval.dtype, np.dtype)}


def apart(x, y):
    """The difference of each two elements: 0 where both are the same infinity or NaN, infinite where one is."""
    with np.errstate(all="ignore"):
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        return np.where(same, 0, np.nan_to_num(np.abs(x - y), nan=np.inf))


def shaken(r, x):
    if x.dtype.kind in "biu" or x.dtype == bool:
        return x
    return (x * (1 + (r.random(x.shape) - 0.5) * 4 * eps_of(x))).astype(x.dtype)


def by_equations(function, inputs):
    program = jax.make_jaxpr(function)(*inputs)
    with jax.disable_jit():
        return jax.tree.leaves(jax.core.eval_jaxpr(program.jaxpr, program.consts, *inputs))


def differences(function, inputs, given):
    """Of results that are further from XLA's than allowed: which, and by how much more."""
    ours = [np.asarray(x) for x in jax.tree.leaves(jax.jit(function)(*given))]
    with jax.default_device(CPU):
        there = [jax.device_put(x, CPU) for x in inputs]
        whole = jax.jit(function)
        theirs = [np.asarray(x) for x in jax.tree.leaves(whole(*there))]
        if all(np.array_equal(x, y, equal_nan=x.dtype.kind not in "biuV" and x.dtype.itemsize > 2) for x, y in zip(ours, theirs)):
            return []
        others = [[np.asarray(x) for x in by_equations(function, there)]]
        r = np.random.default_rng(7)
        others += [[np.asarray(x) for x in jax.tree.leaves(whole(*[shaken(r, x) for x in inputs]))] for _ in range(6)]
    wrong, coarsest = [], max(map(eps_of_type, dtypes_in(function, inputs)))
    for k, (x, y) in enumerate(zip(ours, theirs, strict=True)):
        assert x.shape == y.shape and x.dtype == y.dtype, (x.shape, x.dtype, y.shape, y.dtype)
        if x.dtype == jax.dtypes.float0:  # the tangent of an integer
            continue
        a, b = wide(x), wide(y)
        with np.errstate(all="ignore"):
            size = np.abs(b[np.isfinite(b)]).max(initial=1e-30)
        moved = np.max([apart(wide(o[k]), b) for o in others], axis=0)
        off = np.minimum(apart(a, b), apart(a, wide(others[0][k])))
        eps = max(256 * eps_of(x), 4 * coarsest * (x.dtype.kind not in "biu"))
        allowed = eps * np.where(np.isfinite(b), np.maximum(np.abs(b), size / 64), 0) + 16 * np.max(moved, initial=0)
        if np.any(off > allowed):
            at = np.unravel_index(int(np.argmax(np.where(off > allowed, off, -1))), off.shape)
            wrong.append(f"result {k} {x.dtype}{list(x.shape)} at {[int(v) for v in at]}: {x[at]}, XLA {y[at]}, allowed {np.max(allowed):.3g}")
    return wrong


def one(seed, kind):
    function, inputs, told = program(seed, kind)
    try:
        with jax.default_device(CPU):
            jax.eval_shape(function, *inputs)
    except (TypeError, ValueError, AssertionError, NotImplementedError, OverflowError):  # what JAX does not trace
        return None
    r = np.random.default_rng([seed, 3])
    return [f"{words} ({' '.join(told)})" for words in differences(function, inputs, [laid(r, x, MESH) for x in inputs] if kind == "cut" else inputs)]


if __name__ == "__main__":
    failed, ran = 0, 0
    for seed in range(FIRST, FIRST + SEEDS):
        kind = KINDS[seed % len(KINDS)] if KIND == "all" else KIND
        wrong = one(seed, kind)
        ran += wrong is not None
        for words in wrong or []:
            print(f"seed {seed} {kind}: {words}", flush=True)
        failed += bool(wrong)
        if seed % 50 == 49:
            jax.clear_caches()
    print(f"{ran} random programs of JAX over all dtypes: {ran - failed} agree with XLA")
    sys.exit(failed > 0)
