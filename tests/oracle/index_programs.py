"""Random programs over small arrays, many of them of one element, in which numbers that were computed say where others are read and stored:
scatters, look-ups, slices, branches and loops by such numbers, mapped by vmap, and on eight devices cut. Beside XLA on one CPU, which runs
them equation by equation, since of whole programs it merges slices of slices without their clamps.
PYTHONPATH=build/python JAX_PLATFORMS=axle,cpu python tests/oracle/index_programs.py [SEEDS [FIRST]]"""

import os
import sys

SEEDS, FIRST = (int(sys.argv[k]) if len(sys.argv) > k else (100, 0)[k - 1] for k in (1, 2))
os.environ.setdefault("AXLE_DEVICES", "8")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from jax.sharding import AxisType  # noqa: E402
from laid import laid  # noqa: E402

SHAPES = [(), (1,), (10, 10, 7), (1, 1), (1, 1, 1), (3,), (1, 3), (3, 1), (2, 3), (8,), (1, 8), (2, 4), (4, 1, 2), (5, 4), (16,), (33,)]
MOST = 4000  # elements of a value
MESH = jax.make_mesh((2, 2, 2), ("a", "b", "c"), axis_types=(AxisType.Auto,) * 3)
CPU = jax.devices("cpu")[0]


# --- Steps: each takes two values and numbers that were computed, and gives a value, or None where they do not fit ---


def whole(x):
    if jnp.issubdtype(x.dtype, jnp.floating):
        x = jnp.clip(jnp.round(jnp.nan_to_num(x) + 0.03), -100, 100)  # seldom halfway between two
    return x.astype(jnp.int32)


def joined(a, b, at, n):
    return [jnp.add, jnp.subtract, jnp.maximum, jnp.minimum][n % 4](a, b if b.dtype == a.dtype else b.astype(a.dtype)) if a.dtype != bool else ~a


def chosen(a, b, at, n):
    return jnp.where(at[0] > n % 4, a, jnp.zeros_like(a))


def piece(a, b, at, n):
    return lax.dynamic_slice(a, at[: a.ndim], [max(1, s // (1 + n % 3)) for s in a.shape]) if a.ndim else None


def piece_set(a, b, at, n):
    sizes = [max(1, s // (1 + n % 3)) for s in a.shape]
    return lax.dynamic_update_slice(a, jnp.broadcast_to(b.reshape(-1)[0].astype(a.dtype), sizes), at[: a.ndim]) if a.ndim else None


def element_set(a, b, at, n):
    if not a.ndim:
        return None
    there = a.at[tuple(at[: a.ndim if n % 3 else 1])]
    store = [there.set, there.max, there.min, there.set if a.dtype == bool else there.add][n % 4]
    return store(b.reshape(-1)[0].astype(a.dtype))


def elements_set(a, b, at, n):
    for i in range(8 if a.ndim else 0):
        a = a.at[tuple(at[(i + d * (1 + n % 3)) % len(at)] if d < 2 or i % 2 else n % 3 for d in range(a.ndim))].set(at[i % 3].astype(a.dtype))
    return a


def looked_up(a, b, at, n):
    return jnp.take(a, whole(b).reshape(-1)[:40], axis=n % a.ndim, mode=["clip", "fill", "wrap"][n % 3]) if a.ndim else None


def scattered(a, b, at, n):
    rows = whole(b).reshape(-1)[:20]
    return a.at[rows].add(jnp.ones((rows.size, *a.shape[1:]), a.dtype)) if a.ndim and a.dtype != bool else None


def shaped(a, b, at, n):
    return [a.reshape(-1), a[None] if a.ndim < 3 else a.T, jnp.squeeze(a), a.T, jnp.flip(a)][n % 5]


def reduced(a, b, at, n):
    return [jnp.sum, jnp.max, jnp.min][n % 3](whole(a) if a.dtype == bool else a, axis=n % a.ndim if a.ndim else None)


def ordered(a, b, at, n):
    return [jnp.sort(a), jnp.argsort(a), jnp.cumsum(whole(a), axis=0)][n % 3] if a.ndim else None


def branched(a, b, at, n):
    return lax.switch(at[0], [lambda x: x, jnp.flip, jnp.zeros_like][: 1 + n % 3], a)


def repeated(a, b, at, n):
    if n % 2:
        return lax.fori_loop(0, 3, lambda i, x: x.at[i + at[0]].set(x[-1]), a) if a.ndim else None
    return lax.while_loop(lambda c: c[0] < (at[0] & 3), lambda c: (c[0] + 1, jnp.roll(c[1], 1) if c[1].ndim else c[1]), (jnp.int32(0), a))[1]


def converted(a, b, at, n):
    return [whole(a), whole(a).astype(jnp.float32), whole(a).astype(jnp.int8), whole(a) > n % 3][n % 4]


STEPS = [joined, chosen, piece, piece_set, element_set, elements_set, looked_up, scattered, shaped, reduced, ordered, branched, repeated, converted]


# --- Programs ---


def number(values, k):
    x = values[k % len(values)]
    return whole(x).reshape(-1)[k % x.size]


def made(steps):
    def run(*inputs):
        values = list(inputs)
        for step, (i, j, n), at in steps:
            a, b = values[-1 - i % min(len(values), 12)], values[-1 - j % min(len(values), 12)]
            try:
                value = step(a, b, [number(values, k) for k in at], n)
            except (TypeError, ValueError):  # shapes that do not go together
                continue
            if value is not None and 0 < value.size <= MOST:
                values.append(value)
        return values[len(inputs) :]

    return run


def drawn_input(r):
    shape = SHAPES[int(r.integers(len(SHAPES)))]
    kind = r.integers(0, 4)
    return r.integers(-2, 6, shape).astype(np.int32) if kind < 2 else np.round(r.normal(size=shape) * 3, 1).astype(np.float32) if kind == 2 else r.random(shape) > 0.5


def by_equations(program, inputs):
    with jax.default_device(CPU), jax.disable_jit():
        return jax.core.eval_jaxpr(program.jaxpr, program.consts, *[jax.device_put(x, CPU) for x in inputs])


def one(seed):
    r = np.random.default_rng(seed)
    steps = [(STEPS[int(r.integers(len(STEPS)))], r.integers(0, 1000, 3).tolist(), r.integers(0, 1000, 8).tolist()) for _ in range(r.integers(6, 22))]
    inputs = [drawn_input(r) for _ in range(r.integers(2, 6))]
    run = made(steps)
    if seed % 3 == 0:
        inputs, run = [np.stack([x, x if x.dtype == bool else x + x.dtype.type(1)]) for x in inputs], jax.vmap(run)
    wanted = by_equations(jax.make_jaxpr(run)(*inputs), inputs)
    for where, given in ("one device", inputs), ("eight devices", [laid(r, x, MESH) for x in inputs]):
        for k, (x, y) in enumerate(zip(jax.jit(run)(*given), wanted, strict=True)):
            try:
                np.testing.assert_allclose(np.asarray(x, np.float64), np.asarray(y, np.float64), rtol=1e-4, atol=1e-4)
            except AssertionError as e:
                sys.exit(f"seed {seed}, result {k} on {where}: {[s[0].__name__ for s in steps]}\n{e}")


for seed in range(FIRST, FIRST + SEEDS):
    one(seed)
print(f"{SEEDS} programs that index by what they compute agree with XLA, on one device and cut over eight")
