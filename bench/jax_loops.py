"""Loops and small arrays as people write them in JAX, for jax_scripts.py: PROGRAMS by name, each a function and its arguments. Loops
under vmap whose rows end at different steps, tables that are filled element by element, points of three numbers."""

import numpy as np

import jax
import jax.numpy as jnp
from jax import lax

PROGRAMS = {}
_random = np.random.default_rng(1)


def normal(*shape):
    return jnp.asarray(_random.standard_normal(shape), jnp.float32)


def below(n, *shape):
    return jnp.asarray(_random.integers(0, n, shape), jnp.int32)


def program(name, *args, rows=False):
    """rows: the function is of one row of the arguments."""

    def note(f):
        PROGRAMS[name] = (jax.vmap(f) if rows else f, args)
        return f

    return note


@program("pushes and pops", jnp.arange(16), jnp.arange(16) * 100 + 1500, rows=True)
def stack(seed, steps):
    def body(c):
        i, top, items, r = c
        r = r * 1664525 + 1013904223
        push = (r >> 16) & 1
        items = lax.cond(push == 1, lambda s: s.at[top].set(i), lambda s: s, items)
        return i + 1, jnp.clip(top + 2 * push - 1, 0, 4999), items, r

    return lax.while_loop(lambda c: c[0] < steps, body, (0, 0, jnp.zeros(5000, jnp.int32), seed))[2]


@program("rows set while i < m", normal(4, 2000, 100), jnp.arange(4) * 500, rows=True)
def rows_set(x, m):
    def body(i, x):
        y = lax.dynamic_update_slice(x, (x[i] * 2)[None], (i, 0))
        return jnp.where(i < m, y, x)

    return lax.fori_loop(0, x.shape[0], body, x)


@program("longest common subsequence", below(4, 16, 200), below(4, 16, 200), rows=True)
def lcs(a, b):
    def body(i, table):
        def inner(j, table):
            value = jnp.where(a[i] == b[j], table[i, j] + 1, jnp.maximum(table[i, j + 1], table[i + 1, j]))
            return table.at[i + 1, j + 1].set(value)

        return lax.fori_loop(0, b.shape[0], inner, table)

    return lax.fori_loop(0, a.shape[0], body, jnp.zeros((a.shape[0] + 1, b.shape[0] + 1), jnp.int32))[-1, -1]


@program("time warping", normal(16, 100), normal(16, 100), rows=True)
def warp(a, b):
    def row(before, x):
        def cell(left, at):
            up, corner, y = at
            cost = jnp.abs(x - y) + jnp.minimum(jnp.minimum(left, up), corner)
            return cost, cost

        corner = jnp.concatenate([jnp.array([jnp.inf]), before[:-1]])
        return lax.scan(cell, jnp.inf, (before, corner, b))[1], None

    return lax.scan(row, jnp.full(b.shape[0], jnp.inf).at[0].set(0.0), a)[0]


@program("Viterbi", normal(32, 40), normal(40, 40))
def viterbi(seen, moves):
    def one(o):
        def forth(v, x):
            m = v[:, None] + moves
            return jnp.max(m, 0) + o * x, jnp.argmax(m, 0)

        v, back = lax.scan(forth, o, jnp.arange(64.0))
        return lax.scan(lambda s, p: (p[s], s), jnp.argmax(v), back, reverse=True)[1]

    return jax.vmap(one)(seen)


@program("a binary heap", normal(4, 1000), rows=True)
def heap(x):
    def push(c, v):
        h, n = c

        def up(s):
            i, h = s
            p = (i - 1) // 2
            return p, h.at[i].set(h[p]).at[p].set(h[i])

        _, h = lax.while_loop(lambda s: (s[0] > 0) & (s[1][(s[0] - 1) // 2] > s[1][s[0]]), up, (n, h.at[n].set(v)))
        return (h, n + 1), None

    return lax.scan(push, (jnp.full(x.shape[0], jnp.inf), 0), x)[0][0]


@program("sorting by insertion", normal(64, 100), rows=True)
def insertion(x):
    def outer(i, x):
        key = x[i]
        j, x = lax.while_loop(lambda c: (c[0] >= 0) & (c[1][c[0]] > key), lambda c: (c[0] - 1, c[1].at[c[0] + 1].set(c[1][c[0]])), (i - 1, x))
        return x.at[j + 1].set(key)

    return lax.fori_loop(1, x.shape[0], outer, x)


@program("shortest paths", jnp.abs(normal(8, 60, 60)), rows=True)
def dijkstra(w):
    def body(_, c):
        d, done = c
        u = jnp.argmin(jnp.where(done, jnp.inf, d))
        return jnp.minimum(d, d[u] + w[u]), done.at[u].set(True)

    n = w.shape[0]
    return lax.fori_loop(0, n, body, (jnp.full(n, jnp.inf).at[0].set(0.0), jnp.zeros(n, bool)))[0]


@program("the game of life", normal(8, 32, 32))
def life(x):
    def step(_, x):
        n = sum(jnp.roll(x, (a, b), (1, 2)) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0))
        return ((n == 3) | ((n == 2) & (x == 1))).astype(jnp.int32)

    return lax.fori_loop(0, 100, step, (x > 0).astype(jnp.int32))


@program("spins", normal(64, 64))
def ising(x):
    def step(c, i):
        key, s = c
        key, r = jax.random.split(key)
        around = jnp.roll(s, 1, 0) + jnp.roll(s, -1, 0) + jnp.roll(s, 1, 1) + jnp.roll(s, -1, 1)
        turn = (jnp.arange(64)[:, None] + jnp.arange(64)[None]) % 2 == i % 2
        flip = jax.random.uniform(r, s.shape) < jnp.exp(-0.88 * s * around)
        return (key, jnp.where(turn & flip, -s, s)), s.mean()

    return lax.scan(step, (jax.random.PRNGKey(1), jnp.sign(x)), jnp.arange(200))[1]


@program("50 bodies", normal(50, 3))
def bodies(p):
    def step(c, _):
        p, v = c
        d = p[:, None] - p[None]
        v = v - 0.01 * (d / ((d**2).sum(-1) + 0.1)[..., None] ** 1.5).sum(1)
        return (p + 0.01 * v, v), None

    return lax.scan(step, (p, jnp.zeros_like(p)), None, length=100)[0][0]


@program("1,000 points in a flow", normal(1000, 3), normal(1000))
def flow(x, s):
    return lax.fori_loop(0, 200, lambda _, x: x + 0.01 * (jnp.sin(x[:, ::-1]) * s[:, None] - x / jnp.sqrt((x * x).sum(-1, keepdims=True) + 1)), x)


@program("van der Pol, steps of their own", normal(128, 2), rows=True)
def oscillators(y):
    def slope(y):
        return jnp.stack([y[1], (1 - y[0] ** 2) * y[1] - y[0]])

    def body(c):
        t, y, h = c
        k1 = slope(y)
        k2 = slope(y + h * k1 / 2)
        k3 = slope(y + h * k2 / 2)
        k4 = slope(y + h * k3)
        fine, coarse = y + h * (k1 + 2 * k2 + 2 * k3 + k4) / 6, y + h * k2
        ok = jnp.max(jnp.abs(fine - coarse)) < 1e-2
        return jnp.where(ok, t + h, t), jnp.where(ok, fine, y), h * jnp.where(ok, 1.1, 0.6)

    return lax.while_loop(lambda c: c[0] < 5.0, body, (0.0, y, 0.1))[0]


@program("a state machine with a table", below(5, 64, 300), rows=True)
def tokens(t):
    table = jnp.asarray(np.random.default_rng(2).integers(0, 7, (7, 5)), jnp.int32)

    def step(c, x):
        s, n, kept = c
        s = table[s, x]
        return (s, n + (s == 0), jnp.where(s == 0, kept.at[n].set(x), kept)), s

    return lax.scan(step, (0, 0, jnp.zeros(300, jnp.int32)), t)[0][2]


@program("ranks of 2,000 pages", below(2000, 20000), below(2000, 20000))
def ranks(source, target):
    links = jnp.zeros(2000).at[source].add(1.0)

    def step(_, r):
        return 0.15 / 2000 + 0.85 * jnp.zeros(2000).at[target].add(r[source] / links[source])

    return lax.fori_loop(0, 20, step, jnp.ones(2000) / 2000)


@program("decay by rates that stay", normal(64, 64), normal(200, 64))
def decay(rates, xs):
    return lax.scan(lambda h, x: (jnp.exp(-(rates**2)) * h + x, None), jnp.zeros((64, 64)), xs)[0]


@program("an image blurred, 7 x 7", normal(4, 128, 128), normal(7, 7))
def blur(images, k):
    return jax.vmap(lambda image: jax.scipy.signal.convolve2d(image, k, mode="same"))(images)


@program("a signal through 33 taps", normal(20000), normal(33))
def taps(x, k):
    return jnp.convolve(x, k, mode="same")


@program("4,096 systems of 4 by 4", normal(4096, 4, 4), normal(4096, 4))
def systems(a, b):
    return jax.vmap(jnp.linalg.solve)(a @ a.swapaxes(1, 2) + jnp.eye(4), b)


@program("500 Kalman filters, 6 by 6", normal(50, 500, 3), normal(6, 6) * 0.1, normal(3, 6))
def filters(seen, a, h):
    a = jnp.eye(6) + a

    def one(m, p, y):
        m, p = a @ m, a @ p @ a.T + 0.1 * jnp.eye(6)
        gain = jnp.linalg.solve(h @ p @ h.T + 0.5 * jnp.eye(3), h @ p).T
        return m + gain @ (y - h @ m), p - gain @ h @ p

    def step(state, y):
        m, p = jax.vmap(one)(*state, y)
        return (m, p), m.mean(0)

    return lax.scan(step, (jnp.zeros((500, 6)), jnp.broadcast_to(jnp.eye(6), (500, 6, 6))), seen)[1]


@program("Gaussian log densities, 1,000 of 5 dimensions", normal(1000, 5), normal(1000, 5, 5))
def densities(x, a):
    def one(x, a):
        l = jnp.linalg.cholesky(a @ a.T + jnp.eye(5))
        z = jax.scipy.linalg.solve_triangular(l, x, lower=True)
        return -0.5 * z @ z - jnp.log(jnp.diag(l)).sum()

    return jax.grad(lambda x, a: jax.vmap(one)(x, a).sum(), (0, 1))(x, a)
