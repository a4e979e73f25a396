"""cond, scan, while and calls: alone, under transforms, and on meshes with collectives inside."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from case import Case, index, positive, real, shards

FLOAT = "f32 f64"
LINES = "d=2 d=4 d=8"
GRID = "a=4,b=2 a=4,b=2:b"


def cell(w):
    def body(h, x):
        h = jnp.tanh(jnp.matmul(h, w) + x)
        return h, h * x

    return body


def rnn(h, xs, w):
    h, ys = lax.scan(cell(w), h, xs)
    return h, ys


def loss(h, xs, w):
    h, ys = rnn(h, xs, w)
    return jnp.sum(h * h) + jnp.sum(ys)


def count_and_sum(x):
    (n, s), ys = lax.scan(lambda c, x: ((c[0] + 1, c[1] + x * lax.convert_element_type(c[0], x.dtype)), c[0]), (jnp.int32(0), jnp.zeros_like(x[0])), x)
    return n, s, ys


def unrolled(unroll, **more):
    return lambda h, xs, w: lax.scan(cell(w), h, xs, unroll=unroll, **more)


def unrolled_slopes(h, xs, w):
    def of(h, xs, w):
        h, ys = lax.scan(cell(w), h, xs, unroll=2)
        return jnp.sum(h * h) + jnp.sum(ys)

    return jax.grad(of, (0, 1, 2))(h, xs, w)


def mapped(batch_size):
    return lambda x, y, w: lax.map(lambda z: (jnp.tanh(jnp.matmul(z[0], w)) * z[1], jnp.sum(z[0])), (x, y), batch_size=batch_size)


def mapped_slopes(x, y, w):
    return jax.grad(lambda x, y, w: jnp.sum(mapped(2)(x, y, w)[0] ** 2), (0, 1, 2))(x, y, w)


def scan_of_scan(x, w):
    def outer(c, row):
        c, ys = lax.scan(lambda h, v: (jnp.tanh(h * w + v), h * v), c, row)
        return c, jnp.sum(ys)

    return lax.scan(outer, w, x)


BRANCHES = [lambda x, y: x * y, lambda x, y: jnp.tanh(x) + y, lambda x, y: jnp.exp(-x)]


def chosen(p, x, y):
    return lax.cond(p, BRANCHES[1], BRANCHES[0], x, y)


def switch(i, x, y):
    return lax.switch(i, BRANCHES, x, y)


def cond_in_scan(x, w):
    return lax.scan(lambda c, v: (lax.cond(v > 0, lambda c: jnp.tanh(c * w), lambda c: c + w * v, c), c), w, x)


def halvings(x, limit):
    """How often each product goes on until it is under the limit."""
    return lax.while_loop(lambda c: c[0] > limit, lambda c: (c[0] * 0.5, c[1] + 1, c[2] * c[0]), (x, jnp.int32(0), jnp.ones_like(x)))


def named_loop(x, bound):
    """A loop of `bound` steps over a vector."""
    return lax.while_loop(lambda c: c[0] < bound, lambda c: (c[0] + 1, jnp.tanh(c[1]) * 1.5), (jnp.int32(0), x))[1]


# --- On meshes. x varies over all axes; sums over v.axes. ---


def mixing(v, x):
    """x comes nearer to its mean with each step; the means are stacked."""

    def body(c, _):
        mean = lax.pmean(c, v.axes)
        return jnp.tanh(c) * 0.5 + mean, mean

    return lax.scan(body, x, length=4)


def passing(v, x, ws):
    """A ring: each step sends the carry on, and multiplies."""
    pairs = [(i, (i + 1) % v.members) for i in range(v.members)]

    def body(c, w):
        c = lax.ppermute(c, v.axes, pairs)
        return jnp.tanh(jnp.matmul(c, w)), lax.psum(c, v.axes)

    return lax.scan(body, x, ws)


def invariant_carry(v, x, w):
    """Gradient descent of a weight that is the same everywhere."""

    def body(w, _):
        value, slope = jax.value_and_grad(lambda w: lax.pmean(jnp.mean((jnp.tanh(jnp.matmul(x, w)) - 0.5) ** 2), tuple(v.mesh)))(w)
        return w - 0.1 * slope, value

    return lax.scan(body, w, length=3)


def gathered(v, x):
    def body(c, _):
        everything = lax.all_gather(c, v.axes, axis=0, tiled=True)
        return lax.psum_scatter(jnp.tanh(everything), v.axes, scatter_dimension=0, tiled=True) * 0.3, None

    return lax.scan(body, x, length=3)[0]


def uniform_choice(v, p, x):
    """All devices go the same way: collectives are allowed."""
    return lax.cond(p, lambda x: lax.psum(x, v.axes) * x, lambda x: lax.ppermute(jnp.tanh(x), v.axes, [(0, v.members - 1)]), x)


def own_choice(v, x):
    """Each device goes its own way."""
    return lax.cond(lax.axis_index(v.axes) % 2 == 1, lambda x: jnp.exp(x), lambda x: x * 2, x)


def until_small(v, x):
    """As many steps as all of them together need."""
    return lax.while_loop(lambda c: lax.psum(jnp.sum(c * c), tuple(v.mesh)) > 1, lambda c: c * 0.5 + 0.01 * lax.pmean(c, v.axes), x)


def own_trips(v, x):
    """Each device makes its own number of steps."""
    bound = lax.axis_index(v.axes)
    start = lax.pcast(jnp.int32(0), v.axes, to="varying")
    return lax.while_loop(lambda c: c[0] < bound, lambda c: (c[0] + 1, jnp.tanh(c[1])), (start, x))[1]


@jax.jit
def layer(h, w):
    h = jnp.tanh(jnp.matmul(h, w))
    return h, h * h


def calls(h, ws):
    """One function, called for each weight."""
    total = jnp.zeros_like(h)
    for w in ws:
        h, square = layer(h, w)
        total += square
    return h, total


def mesh_calls(v, x, ws):
    step = jax.jit(lambda x, w: jnp.tanh(jnp.matmul(x, w)) + lax.pmean(x, v.axes))
    for w in ws:
        x = step(x, w)
    return x


def vmap_of_scan_inside(v, x):
    return jax.vmap(lambda x: lax.scan(lambda c, _: (jnp.tanh(c) + lax.pmean(c, v.axes), None), x, length=2)[0])(x)


def powers(x, w):
    """x_{i+1} = tanh(w[i mod 3] x + i), and the sum of all."""

    def body(i, carry):
        h, total = carry
        h = jnp.tanh(h * jnp.asarray(w)[i % 3] + lax.convert_element_type(i, h.dtype))
        return h, total + h

    return lax.fori_loop(-2, 4, body, (x, jnp.zeros_like(x)))


def fori_between(x, lower, upper):
    return lax.fori_loop(lower, upper, lambda i, h: jnp.tanh(h + lax.convert_element_type(i, h.dtype)), x)


CASES = [
    Case("fori_loop", FLOAT, powers, [real(4), real(3)]),
    Case("fori_loop_vmap", "f32", lambda x, w: jax.vmap(powers, (0, None))(x, w), [real(2, 4), real(3)]),
    Case("fori_loop_none", "f32", lambda x: lax.fori_loop(3, 3, lambda i, h: h * 2, x), [real(4)]),
    Case("fori_loop_values", FLOAT, fori_between, [real(4), index(3, above=-2), index(6)], modes="vj"),
    Case("scan", FLOAT + " bf16", rnn, [real(3), real(5, 3), real(3, 3, scale=0.5)]),
    Case("scan_reverse", "f32", lambda h, xs, w: lax.scan(cell(w), h, xs, reverse=True), [real(3), real(5, 3), real(3, 3, scale=0.5)]),
    Case("scan_unroll", FLOAT, unrolled(2), [real(3), real(5, 3), real(3, 3, scale=0.5)]),
    Case("scan_unroll_evenly", "f32", unrolled(3), [real(3), real(6, 3), real(3, 3, scale=0.5)]),
    Case("scan_unroll_reverse", "f32", unrolled(2, reverse=True), [real(3), real(5, 3), real(3, 3, scale=0.5)]),
    Case("scan_unroll_all", "f32", unrolled(True), [real(3), real(5, 3), real(3, 3, scale=0.5)]),
    Case("scan_unroll_empty", "f32", unrolled(4), [real(3), real(0, 3), real(3, 3)]),
    Case("scan_unroll_grad", "f64", unrolled_slopes, [real(3), real(5, 3), real(3, 3, scale=0.5)]),
    Case("map", FLOAT, mapped(None), [real(5, 3), real(5), real(3, 3, scale=0.5)]),
    Case("map_batches", FLOAT, mapped(2), [real(5, 3), real(5), real(3, 3, scale=0.5)]),
    Case("map_whole_batches", "f32", mapped(2), [real(4, 3), real(4), real(3, 3, scale=0.5)]),
    Case("map_large_batch", "f32", mapped(8), [real(5, 3), real(5), real(3, 3, scale=0.5)]),
    Case("map_grad", "f64", mapped_slopes, [real(5, 3), real(5), real(3, 3, scale=0.5)]),
    Case("map_vmap", "f32", lambda x, y, w: jax.vmap(mapped(2), (0, None, None))(x, y, w), [real(2, 5, 3), real(5), real(3, 3, scale=0.5)]),
    Case("scan_length", "f32", lambda h, w: lax.scan(lambda h, _: (jnp.tanh(h * w), None), h, length=4)[0], [real(3), real(3)]),
    Case("scan_empty", "f32", rnn, [real(3), real(0, 3), real(3, 3)]),
    Case("scan_count", "f32", count_and_sum, [real(5, 2)]),
    Case("scan_of_scan", "f64", scan_of_scan, [real(3, 4), real()]),
    Case("scan_grad", FLOAT, jax.grad(loss, (0, 1, 2)), [real(3), real(5, 3), real(3, 3, scale=0.5)]),
    Case("scan_vmap", "f32", lambda h, xs, w: jax.vmap(rnn, (0, 1, None))(h, xs, w), [real(4, 3), real(5, 4, 3), real(3, 3, scale=0.5)]),
    Case("scan_vmap_weights", "f32", lambda h, xs, w: jax.vmap(rnn, (None, None, 0))(h, xs, w), [real(3), real(5, 3), real(4, 3, 3, scale=0.5)]),
    Case("scan_vmap_of_grad", "f32", lambda h, xs, w: jax.vmap(jax.grad(loss, (0, 2)), (0, None, None))(h, xs, w),
         [real(4, 3), real(5, 3), real(3, 3, scale=0.5)], modes="v"),
    Case("cond", "f32", chosen, [lambda random, v: np.bool_(random.integers(2)), real(3), real(3)]),
    Case("switch", FLOAT, switch, [index(5, above=-1), real(3), real(3)]),
    Case("cond_grad", "f64", lambda p, x, y: jax.grad(lambda x, y: jnp.sum(chosen(p, x, y)), (0, 1))(x, y),
         [lambda random, v: np.bool_(random.integers(2)), real(3), real(3)]),
    Case("cond_vmap", "f32", lambda p, x, y: jax.vmap(chosen, (0, 0, None))(p, x, y), [real(4, dtype=np.bool_), real(4, 3), real(3)]),
    Case("switch_vmap", "f32", lambda i, x, y: jax.vmap(switch, (0, 0, None))(i, x, y), [index(3, 4), real(4, 3), real(3)]),
    Case("switch_vmap_operands", "f32", lambda i, x, y: jax.vmap(switch, (None, 0, None))(i, x, y), [index(3), real(4, 3), real(3)]),
    Case("cond_in_scan", "f64", cond_in_scan, [real(6), real()]),
    Case("while", FLOAT, halvings, [positive(), lambda random, v: np.asarray(random.uniform(0.01, 0.1)).astype(v.dtype)], modes="v"),
    Case("while_jvp", FLOAT, named_loop, [real(3), index(5)], modes="vj"),
    Case("while_vmap", "f32", lambda x, b: jax.vmap(named_loop, (0, None))(x, b), [real(4, 3), index(5)], modes="vj"),
    Case("while_vmap_each", "f32", lambda x, b: jax.vmap(named_loop)(x, b), [real(4, 3), index(5, 4)], modes="vj"),
    Case("calls", FLOAT, calls, [real(3), real(4, 3, 3, scale=0.5)]),
    Case("calls_grad", "f32", jax.grad(lambda h, ws: jnp.sum(calls(h, ws)[1]), (0, 1)), [real(3), real(4, 3, 3, scale=0.5)]),
    Case("mesh_calls", f"d=4 {GRID}", mesh_calls, [shards(2, 3), real(4, 3, 3, scale=0.6)], "A . > A"),
    Case("mesh_scan", f"{LINES} {GRID}", mixing, [shards(2)], "A > A N"),
    Case("mesh_ring", f"{LINES} {GRID}", passing, [shards(2, 3), real(4, 3, 3, scale=0.6)], "A . > A N"),
    Case("mesh_invariant_carry", f"d=4 {GRID}", invariant_carry, [shards(2, 3), real(3, 2)], "A . > . ."),
    Case("mesh_gathered", f"d=4 {GRID}", gathered, [shards(2, 3)], "A > A"),
    Case("mesh_uniform_choice", f"d=4 {GRID}", uniform_choice, [lambda random, v: np.bool_(random.integers(2)), shards(2)], ". A > A"),
    Case("mesh_own_choice", f"d=4 {GRID}", own_choice, [shards(2)], "A > A"),
    Case("mesh_until_small", f"d=4 {GRID}", until_small, [shards(3, scale=4)], "A > A", modes="vj"),
    Case("mesh_own_trips", f"d=4 {GRID}", own_trips, [shards(2)], "A > A", modes="vj"),
    Case("mesh_vmap_scan", "d=4", vmap_of_scan_inside, [shards(2, 3)], "A > A"),
]  # fmt: skip
