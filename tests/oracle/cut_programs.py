"""Random programs of rolls, pads, concatenations, slices, look-ups, cumulative operations, sorts and transforms on arrays that a mesh cuts, beside
XLA on one CPU. PYTHONPATH=build/python JAX_PLATFORMS=axle,cpu python tests/oracle/cut_programs.py [SEEDS [DEVICES [FIRST]]]

XLA runs them step by step: of a whole program (seed 1025 over 8 devices) it makes one dynamic slice of the two that a roll and a slice are, which
begins elsewhere where the first is clamped."""

import os
import sys

SEEDS, DEVICES, FIRST = (int(sys.argv[k]) if len(sys.argv) > k else (60, 8, 0)[k - 1] for k in (1, 2, 3))
os.environ["AXLE_DEVICES"] = str(DEVICES)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from jax.sharding import AxisType, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402


def meshes():
    yield jax.make_mesh((DEVICES,), ("d",), axis_types=(AxisType.Auto,))
    yield jax.make_mesh((DEVICES // 2, 2), ("d", "m"), axis_types=(AxisType.Auto,) * 2)
    yield jax.make_mesh((2, DEVICES // 2), ("d", "m"), axis_types=(AxisType.Auto,) * 2)


MESHES = list(meshes())


def part(r, n):
    a = int(r.integers(0, n))
    return a, int(r.integers(a + 1, n + 1))


# Each makes a function of one array, from numbers that are drawn when it is made: all runs of it do the same.
def rolled(r, n):
    by, axis = int(r.integers(-n, n)), int(r.integers(0, 2))
    return f"roll {by} {axis}", lambda x, k: jnp.roll(x, by, axis)


def rolled_by_value(r, n):
    axis = int(r.integers(0, 2))
    return f"roll k {axis}", lambda x, k: jnp.roll(x, k, axis)


def padded(r, n):
    low, high, mode = int(r.integers(0, 9)), int(r.integers(0, 9)), str(r.choice(["constant", "edge", "wrap", "reflect"]))
    low, high = (min(low, n - 1), min(high, n - 1)) if mode != "constant" else (low, high)
    return f"pad {low} {high} {mode}", lambda x, k: jnp.pad(x, ((low, high), (0, 0)), mode=mode)


def spread(r, n):
    low, high, between = int(r.integers(-n // 3, 4)), int(r.integers(-n // 3, 4)), int(r.integers(0, 3))
    return f"lax.pad {low} {high} {between}", lambda x, k: lax.pad(x, jnp.array(2, x.dtype), ((low, high, between), (0, 0, 0)))


def joined(r, n):
    (a, b), (c, d) = part(r, n), part(r, n)
    return f"concatenate {a}:{b} {c}:{d}", lambda x, k: jnp.concatenate([x[a:b], x, x[c:d] * 2])


def sliced(r, n):
    (a, b), step = part(r, n), int(r.integers(1, 4))
    return f"slice {a}:{b}:{step}", lambda x, k: x[a:b:step]


def turned(r, n):
    step = int(r.integers(1, 3))
    return f"slice ::{-step}", lambda x, k: x[::-step]


def picked(r, n):
    size = int(r.integers(1, n + 1))
    return f"dynamic_slice {size}", lambda x, k: lax.dynamic_slice_in_dim(x, k, size, 0)


def overwritten(r, n):
    size = int(r.integers(1, n + 1))
    return f"dynamic_update_slice {size}", lambda x, k: lax.dynamic_update_slice_in_dim(x, x[:size] + 1, k, 0)


def put(r, n):
    a, b = part(r, n)
    return f"set {a}:{b}", lambda x, k: x.at[a:b].set(x[:b - a] * 3)


def added(r, n):
    a, b = part(r, n)
    return f"add {a}:{b}", lambda x, k: x.at[a:b].add(x[:b - a])


def taken(r, n):
    at = r.integers(-n, n, size=int(r.integers(1, 2 * n)))
    return f"take {len(at)}", lambda x, k: x[jnp.asarray(at)]


def scattered(r, n):
    at = r.integers(0, n, size=n)
    return "scatter-add", lambda x, k: jnp.zeros_like(x).at[jnp.asarray(at)].add(x)


def looked_up(r, n):
    at = r.integers(0, n, size=int(r.integers(1, 2 * n)))
    return "gradient of a look-up", lambda x, k: jax.grad(lambda t: (t[jnp.asarray(at)] * 2).sum())(x) + x


def cumulative(r, n):
    name, axis, back = str(r.choice(["cumsum", "cummax", "cummin", "cumlogsumexp"])), int(r.integers(0, 2)), bool(r.integers(0, 2))
    return f"{name} {axis} {back}", lambda x, k: getattr(lax, name)(x, axis, reverse=back) / 4 if name == "cumsum" else getattr(lax, name)(x, axis, reverse=back)


def sorted_(r, n):
    axis = int(r.integers(0, 2))
    return f"sort {axis}", lambda x, k: jnp.sort(x, axis)


def ordered(r, n):
    return "argsort", lambda x, k: x + jnp.argsort(x, 0).astype(x.dtype) / 8


def transformed(r, n):
    axis = int(r.integers(0, 2))
    return f"fft {axis}", lambda x, k: jnp.abs(jnp.fft.fft(x, axis=axis)).astype(x.dtype) / 8


def differences(r, n):
    return "differences", lambda x, k: x[1:] - x[:-1]


STEPS = [rolled, rolled_by_value, padded, spread, joined, sliced, turned, picked, overwritten, put, added, taken, scattered, looked_up, cumulative,
         sorted_, ordered, transformed, differences]


def rounds(words):
    return words.startswith(("fft", "cumlog", "cumsum"))


def program(r, shape):
    """Functions of an array and a number, what they do in words, and the type of the last one's result."""
    steps, told, now = [], [], jax.ShapeDtypeStruct(shape, jnp.float32)
    for _ in range(int(r.integers(1, 5))):
        words, step = STEPS[int(r.integers(0, len(STEPS)))](r, now.shape[0])
        made = jax.eval_shape(step, now, jax.ShapeDtypeStruct((), jnp.int32))
        if not 2 <= made.shape[0] <= 600 or (words == "argsort" and any(map(rounds, told))):  # of what is equal but for roundings
            continue
        steps, told, now = steps + [step], told + [words], made

    return steps, told, now


def by_steps(steps, x, k):
    x = jax.device_put(x, jax.devices("cpu")[0])
    for step in steps:
        x = jax.jit(step)(x, k)
    return np.asarray(x)


def one(seed):
    r = np.random.default_rng(seed)
    mesh = MESHES[int(r.integers(0, len(MESHES)))]
    rows, columns = DEVICES * int(r.integers(1, 6)), 4 * DEVICES
    steps, told, made = program(r, (rows, columns))
    x, k = r.integers(-8, 9, size=(rows, columns)).astype(np.float32), np.int32(r.integers(-3, rows + 3))
    axes = list(mesh.axis_names)
    spec = [P("d"), P("d", axes[-1] if len(axes) > 1 else None), P(tuple(axes)), P(None, "d")][int(r.integers(0, 4))]
    fits = all(made.shape[d] % np.prod([mesh.shape[a] for a in (e if isinstance(e, tuple) else (e,))]) == 0 for d, e in enumerate(spec) if e)
    options = {"out_shardings": NamedSharding(mesh, spec)} if fits and r.integers(0, 2) else {}
    wanted = by_steps(steps, x, k)

    def run(x, k):
        for step in steps:
            x = step(x, k)
        return x

    got = np.asarray(jax.jit(run, **options)(jax.device_put(x, NamedSharding(mesh, spec)), k))
    try:
        if not any(map(rounds, told)):
            np.testing.assert_array_equal(got, wanted)
        else:
            np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=2e-4 * max(1.0, float(np.abs(wanted).max())))
    except AssertionError as e:
        sys.exit(f"seed {seed}: {rows}x{columns} {spec} over {dict(mesh.shape)}, {options}: {told}\n{e}")


for seed in range(FIRST, FIRST + SEEDS):
    one(seed)
print(f"{SEEDS} programs over {DEVICES} devices agree with one device")
