"""Runs functions of JAX on eight devices by Axle, from the text of their modules, beside XLA on CPU, and says which do not agree.

  import_devices.py [--axle build/axle] [--only REGEX] [--keep FOLDER]

As import_jax.py; the functions are laid out: by shard_map, pmap, and jit with shardings, each as Shardy's module, in the forms that XLA gives that where Shardy's dialect is not,
and as GSPMD's.
"""

import argparse
import functools
import os
import re
import sys
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from agree import disagreement  # noqa: E402
from jax import lax  # noqa: E402
from jax._src.lib import _jax  # noqa: E402
from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402
from jaxlib.mlir.dialects import stablehlo  # noqa: E402

mlir = _jax.mlir

r = np.random.default_rng(7)
F = lambda *s: r.standard_normal(s).astype(np.float32)  # noqa: E731
I = lambda *s, n=100: r.integers(0, n, s).astype(np.int32)  # noqa: E731, E741
devices = np.array(jax.devices())
two = Mesh(devices.reshape(4, 2), ("data", "model"))
one = Mesh(devices, ("i",))
cube = Mesh(devices.reshape(2, 2, 2), ("a", "b", "c"))
turned = Mesh(devices.reshape(2, 4).T, ("data", "model"))
four = Mesh(devices[:4], ("i",))

CASES = {}


def add(name, f, *args):
    CASES[name] = (f, args)


def mapped(name, body, mesh, in_specs, out_specs, *args, **options):
    add(f"shard_map: {name}", jax.shard_map(body, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False, **options), *args)


def at(mesh, *spec):
    return NamedSharding(mesh, P(*spec))


x, y = F(16, 8), F(8, 8)
n = I(16, 8)

# --- Collectives ---
for name in "psum pmean pmax pmin".split():
    f = getattr(lax, name)
    for axes in ["data", "model", ("data", "model"), ("model", "data")]:
        mapped(f"{name} {axes}", lambda a, f=f, axes=axes: f(a, axes), two, P("data", "model"), P("data", "model"), x)
    mapped(f"{name} of integers", lambda a, f=f: f(a, "i"), one, P("i"), P("i"), n)
    mapped(f"{name} of bf16", lambda a, f=f: f(a, "i"), one, P("i"), P("i"), x.astype(jnp.bfloat16))
mapped("psum of several", lambda a, b: lax.psum((a, b, a.sum()), "i"), one, P("i"), (P("i"), P("i"), P()), x, n)
mapped("psum of bools", lambda a: lax.psum(a > 0, "i"), one, P("i"), P("i"), x)
mapped("psum of complex numbers", lambda a: lax.psum(a + 1j * a, "data"), two, P("data", "model"), P(None, "model"), x)
groups = [[0, 2, 4, 6], [1, 3, 5, 7]]
odd = [[3, 0], [1, 2], [7, 5], [4, 6]]
mapped("psum in groups", lambda a: lax.psum(a, "i", axis_index_groups=groups), one, P("i"), P("i"), x)
mapped("psum in odd groups", lambda a: lax.psum(a, "i", axis_index_groups=odd), one, P("i"), P("i"), x)
mapped("pmax in odd groups", lambda a: lax.pmax(a, "i", axis_index_groups=odd), one, P("i"), P("i"), x)
for axis in (0, 1):
    for tiled in (False, True):
        for axes in ["data", ("model", "data"), ("data", "model")]:
            mapped(f"all_gather {axes} {axis} {tiled}", lambda a, axis=axis, tiled=tiled, axes=axes:
                   lax.all_gather(a, axes, axis=axis, tiled=tiled), two, P("data", "model"), P(), x)  # fmt: skip
mapped("all_gather in odd groups", lambda a: lax.all_gather(a, "i", axis_index_groups=odd, tiled=True), one, P("i"), P("i"), x)
mapped("all_gather of integers", lambda a: lax.all_gather(a, "i"), one, P("i"), P("i"), n)
for axes in ["data", ("model", "data"), ("data", "model")]:
    mapped(f"psum_scatter {axes}", lambda a, axes=axes: lax.psum_scatter(a, axes, tiled=True), two, P(None, None), P(axes), x)
    mapped(f"all_to_all {axes}", lambda a, axes=axes: lax.all_to_all(a, axes, 1, 0, tiled=True), two, P(None, None), P(None, axes), x)
mapped("psum_scatter in odd groups", lambda a: lax.psum_scatter(a, "i", axis_index_groups=odd, tiled=True), one, P("i"), P("i"), x)
mapped("psum_scatter untiled", lambda a: lax.psum_scatter(a, "i", scatter_dimension=1), one, P(), P(None, ), x)
mapped("all_to_all untiled", lambda a: lax.all_to_all(a, "i", 1, 0), one, P(), P("i"), x)
mapped("all_to_all in odd groups", lambda a: lax.all_to_all(a, "i", 1, 0, axis_index_groups=odd, tiled=True), one, P("i"), P("i"), x)
mapped("pswapaxes", lambda a: lax.pswapaxes(a, "i", 1), one, P("i"), P(None, None, "i"), F(8, 8, 3).reshape(8, 8, 3))
mapped("ppermute", lambda a: lax.ppermute(a, "data", [(0, 1), (1, 2), (3, 0)]), two, P("data", "model"), P("data", "model"), x)
mapped("ppermute over both", lambda a: lax.ppermute(a, ("data", "model"), [(i, (i + 3) % 8) for i in range(8)]), two, P("data", "model"),
       P("data", "model"), x)  # fmt: skip
mapped("ppermute, none", lambda a: lax.ppermute(a, "i", []), one, P("i"), P("i"), x)
mapped("pshuffle", lambda a: lax.pshuffle(a, "i", [1, 0, 3, 2, 5, 4, 7, 6]), one, P("i"), P("i"), x)
for axes in ["a", "b", "c", ("c", "a"), ("a", "b", "c")]:
    mapped(f"axis_index {axes}", lambda a, axes=axes: a + lax.axis_index(axes), cube, P(("a", "b", "c")), P(("a", "b", "c")), n)
mapped("axis_index, turned", lambda a: a + lax.axis_index("model"), turned, P(("data", "model")), P(("data", "model")), n)
mapped("psum, turned", lambda a: lax.psum(a, "data"), turned, P("data", "model"), P(None, "model"), x)
mapped("all_gather, turned", lambda a: lax.all_gather(a, ("model", "data"), tiled=True), turned, P(("data", "model")), P(), x)
mapped("ppermute, turned", lambda a: lax.ppermute(a, "data", [(0, 1), (1, 2)]), turned, P("data", "model"), P("data", "model"), x)
mapped("on four of eight", lambda a: lax.psum(a, "i"), four, P("i"), P(), x)

# --- Programs ---


def ring(a, b):
    def body(carry, _):
        total, part = carry
        return (total + part @ b, lax.ppermute(part, "i", [(k, (k + 1) % 8) for k in range(8)])), part.sum()

    (total, _), sums = lax.scan(body, (jnp.zeros_like(a @ b), a), None, length=8)
    return total, sums


mapped("a ring", ring, one, (P("i"), P()), (P("i"), P("i")), x, y)
mapped("a loop until all agree", lambda a: lax.while_loop(lambda c: lax.pmax(c.max(), "i") < 50, lambda c: c * 2 + 1, jnp.abs(a)), one,
       P("i"), P("i"), x)  # fmt: skip
mapped("cond", lambda a: lax.cond(lax.axis_index("i") % 2 == 0, jnp.sin, jnp.cos, a), one, P("i"), P("i"), x)
mapped("jit inside", jax.jit(lambda a: lax.psum(jnp.sin(a), "i")), one, P("i"), P(), x)
helper = jax.jit(lambda a: a * 2 + 1)
add("jit inside and outside", lambda a: helper(jax.shard_map(lambda c: lax.psum(helper(c), "i"), mesh=one, in_specs=P("i"), out_specs=P(),
                                                               check_vma=False)(helper(a))), x)  # fmt: skip
summed = jax.jit(lambda a: lax.psum(a, "data"))
other = Mesh(devices.reshape(2, 4), ("model", "data"))
add("one helper in two meshes", lambda a: jax.shard_map(summed, mesh=two, in_specs=P("data"), out_specs=P(), check_vma=False)(a).sum(0) +
    jax.shard_map(summed, mesh=other, in_specs=P(None, "data"), out_specs=P(), check_vma=False)(a)[0, 0], x)  # fmt: skip
mapped("matmul by columns", lambda a, b: lax.psum(a @ b, "model"), two, (P("data", "model"), P("model", None)), P("data", None), x, y)
loss = lambda a, b: jnp.sum(jax.shard_map(lambda c, d: lax.psum(jnp.tanh(c @ d), "model"), mesh=two,  # noqa: E731
                                          in_specs=(P("data", "model"), P("model")), out_specs=P("data"))(a, b) ** 2)  # fmt: skip
add("gradients of shard_map", jax.grad(loss, (0, 1)), x, y)
add("vmap of shard_map", jax.vmap(lambda a: jax.shard_map(lambda c: lax.psum(c, "i"), mesh=one, in_specs=P("i"), out_specs=P())(a)), F(3, 8, 2))
mapped("by hand along data alone", lambda a, b: lax.psum(a, "data") @ b, two, (P("data"), P()), P(), x, y, axis_names={"data"})
mapped("by hand along model alone", lambda a, b: lax.all_gather(a, "model", tiled=True, axis=1) @ b, two, (P(None, "model"), P()), P(), x, y,
       axis_names={"model"})  # fmt: skip


def nested(a):
    inner = jax.shard_map(lambda c: lax.psum(c, "model") * 2, in_specs=P(None, "model"), out_specs=P(), axis_names={"model"}, check_vma=False)
    return jax.shard_map(lambda c: lax.psum(inner(c), "data"), mesh=two, in_specs=P("data"), out_specs=P(), axis_names={"data"},
                         check_vma=False)(a)  # fmt: skip


add("shard_map in shard_map", nested, x)
add("pmap", jax.pmap(lambda a: a - lax.pmean(a, "i"), axis_name="i"), F(8, 5))
add("pmap with axis_index", jax.pmap(lambda a: a * lax.axis_index("i"), axis_name="i"), F(8, 5))
add("pmap of a step", jax.pmap(lambda a, b: b - 0.1 * lax.pmean(jax.grad(lambda c: jnp.sum((a @ c) ** 2))(b), "i"), axis_name="i",
                               in_axes=(0, None)), F(8, 4, 3), F(3))  # fmt: skip

# --- Sharded jit ---


def sharded(name, f, shardings, *args, out=None):
    add(f"jit: {name}", jax.jit(f, in_shardings=shardings, out_shardings=out, keep_unused=True), *args)


sharded("matmul", lambda a, b: jnp.tanh(a @ b).sum(0), (at(two, "data"), at(two, None, "model")), x, y, out=at(two, "model"))
sharded("constraint", lambda a, b: lax.with_sharding_constraint(a @ b, at(two, "data", "model")).sum(), (at(two, "data"), at(two)), x, y)
sharded("open constraint", lambda a: lax.with_sharding_constraint(a * 2, at(two, P.UNCONSTRAINED, "model")), (at(two, "data"),), x)
sharded("both axes on one", lambda a: jnp.sort(a, 0), (at(two, ("data", "model")),), x)
sharded("both axes, turned", lambda a: jnp.cumsum(a, 0), (at(two, ("model", "data")),), x)
sharded("cumsum and argmax", lambda a: (jnp.cumsum(a, 1), a.argmax(0)), (at(two, "data", "model"),), x)
sharded("softmax", lambda a: jax.nn.softmax(a, 1), (at(two, "data", "model"),), x)
sharded("convolution", lambda a, k: lax.conv(a, k, (1, 1), "SAME"), (at(two, "data", None, "model"), at(two)), F(4, 2, 8, 6), F(3, 2, 3, 3))
sharded("gather", lambda a, i: a[i], (at(two, "data"), at(two, "model")), x, I(4, n=16))
sharded("scatter", lambda a, i: a.at[i].add(1.0), (at(two, "data"), at(two)), x, I(4, n=16))
sharded("random", lambda k: jax.random.normal(jax.random.wrap_key_data(k), (8, 8)), (at(two),), np.array([1, 2], np.uint32), out=at(two, "data"))
sharded("three axes", lambda a, b: jnp.einsum("ij,jk->ik", a, b), (at(cube, "a", "b"), at(cube, "b", "c")), x, y, out=at(cube, ("a", "c")))
sharded("turned", lambda a, b: a @ b, (at(turned, "data", "model"), at(turned, "model")), x, y)
sharded("cond", lambda a: lax.cond(a.sum() > 0, lambda b: lax.with_sharding_constraint(b * 2, at(two, "data")), jnp.sin, a), (at(two, None, "model"),), x)
sharded("scan", lambda a, b: lax.scan(lambda c, d: (jnp.tanh(c @ b + d), c.sum()), a, jnp.stack([a] * 3)), (at(two, "data"), at(two, None, "model")), x, y)
sharded("replicated", lambda a: a + 1, (at(two),), x)
sharded("shard_map inside", lambda a: jax.shard_map(lambda c: lax.psum(c, "data"), mesh=two, in_specs=P("data"), out_specs=P())(a) * 2, (at(two, "data"),), x)


def step(w1, w2, a, target):
    def cost(w1, w2):
        h = lax.with_sharding_constraint(jax.nn.gelu(a @ w1), at(two, "data", "model"))
        return jnp.mean((h @ w2 - target) ** 2)

    value, (g1, g2) = jax.value_and_grad(cost, (0, 1))(w1, w2)
    return value, w1 - 0.1 * g1, w2 - 0.1 * g2


sharded("a step of training", step, (at(two, None, "model"), at(two, "model"), at(two, "data"), at(two, "data")), F(8, 16), F(16, 4), F(32, 8), F(32, 4))


def attention(q, k, v):
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 2
    s = jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool)), s, -1e9)
    return lax.with_sharding_constraint(jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s), v), at(two, "data", None, "model"))


sharded("attention", attention, (at(two, "data", None, "model"),) * 3, F(4, 6, 2, 4), F(4, 6, 2, 4), F(4, 6, 2, 4))


def experts(a, w1, w2, gate):
    chosen = jnp.argmax(a @ gate, -1)
    mask = jax.nn.one_hot(chosen, 8)
    inputs = jnp.einsum("tx,td->xtd", mask, a)
    inputs = lax.with_sharding_constraint(inputs, at(one, "i"))
    return jnp.einsum("tx,xtd->td", mask, jax.nn.relu(inputs @ w1) @ w2)


sharded("a mixture of experts", experts, (at(one, "i"), at(one, "i"), at(one, "i"), at(one)), F(16, 4), F(8, 4, 6), F(8, 6, 4), F(4, 8))


# --- Arrays that are sums of what devices have ---

explicit = jax.make_mesh((4, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)


class InMesh:
    """A function of arrays whose types say how they lie, and how its arguments lie."""

    def __init__(self, f, *specs):
        self.f = lambda *args: f(*(jax.sharding.reshard(a, spec) for a, spec in zip(args, specs)))

    def lower(self, *args):
        with jax.set_mesh(explicit):
            return jax.jit(self.f, keep_unused=True).lower(*args)


product = lambda a, b, spec: jnp.einsum("ij,jk->ik", a, b, out_sharding=spec)  # noqa: E731
parts = P("data", None, unreduced={"model"})
cut = (P("data", "model"), P("model", None))
whole_again = lambda a: jax.sharding.reshard(a, P("data", None))  # noqa: E731
add("unreduced: a product", InMesh(lambda a, b: whole_again(product(a, b, parts)), *cut), x, y)
add("unreduced: a sum of products", InMesh(lambda a, b: whole_again(product(a, b, parts) + product(a * 2, b, parts)), *cut), x, y)
add("unreduced: into a cut result", InMesh(lambda a, b: jax.sharding.reshard(product(a, b, parts), P("data", "model")), *cut), x, y)
add("unreduced: out of shard_map", InMesh(lambda a, b: whole_again(jax.shard_map(lambda c, d: c @ d, in_specs=cut, out_specs=parts)(a, b)), *cut), x, y)
add("unreduced: into shard_map", InMesh(lambda a, b: jax.shard_map(lambda c: lax.psum(c, "model"), in_specs=parts, out_specs=P("data", None))(
    product(a, b, parts)), *cut), x, y)  # fmt: skip
add("unreduced: of a whole array", InMesh(lambda a: whole_again(jax.sharding.reshard(a, parts)), P("data", None)), x)
add("unreduced: gradients", InMesh(jax.grad(lambda a, b: (whole_again(product(a, b, parts)) ** 2).sum(), (0, 1)), *cut), x, y)

# --- Ways that models are cut ---

checked = functools.partial(jax.shard_map, check_vma=True)


def ring_attention(q, k, v):
    """The keys and values go round; each device has a block of the sequence."""
    size = 8

    def step(carry, _):
        k, v, top, total, out = carry
        s = jnp.einsum("qd,kd->qk", q, k)
        new = jnp.maximum(top, s.max(-1))
        w = jnp.exp(s - new[:, None])
        scale = jnp.exp(top - new)
        out = out * scale[:, None] + w @ v
        round_ = [(i, (i + 1) % size) for i in range(size)]
        return (lax.ppermute(k, "i", round_), lax.ppermute(v, "i", round_), new, total * scale + w.sum(-1), out), None

    start = (k, v, lax.pcast(jnp.full(q.shape[0], -jnp.inf), ("i",), to="varying"), lax.pcast(jnp.zeros(q.shape[0]), ("i",), to="varying"),
             lax.pcast(jnp.zeros(q.shape), ("i",), to="varying"))  # fmt: skip
    (_, _, _, total, out), _ = lax.scan(step, start, None, length=size)
    return out / total[:, None]


attended = checked(ring_attention, mesh=one, in_specs=(P("i"),) * 3, out_specs=P("i"))
add("ring attention", attended, F(32, 4), F(32, 4), F(32, 4))
add("gradients of ring attention", jax.grad(lambda *a: (attended(*a) ** 2).sum(), (0, 1, 2)), F(32, 4), F(32, 4), F(32, 4))


def fsdp(w1, w2, a):
    """Weights lie in parts, and are gathered where they are used; their gradients are scattered."""
    full = [lax.all_gather(w, "i", tiled=True) for w in (w1, w2)]
    return lax.pmean(jnp.mean((jax.nn.relu(a @ full[0]) @ full[1]) ** 2), "i")


whole = checked(fsdp, mesh=one, in_specs=(P("i"), P("i"), P("i")), out_specs=P())
add("weights in parts, gathered", jax.value_and_grad(whole, (0, 1)), F(8, 16), F(16, 8), F(16, 8))


def pipeline(w, a):
    """Each device has a layer; blocks of the batch go from one to the next."""
    me = lax.axis_index("i")

    def step(carry, t):
        inside, done = carry
        fresh = jnp.where(me == 0, a[jnp.minimum(t, 3)], inside)
        made = jnp.tanh(fresh @ w[0])
        done = jnp.where((me == 7) & (t >= 7), done.at[jnp.maximum(t - 7, 0)].set(made), done)
        return (lax.ppermute(made, "i", [(i, i + 1) for i in range(7)]), done), None

    start = (jnp.zeros_like(a[0]), jnp.zeros_like(a))
    (_, done), _ = lax.scan(step, start, jnp.arange(11))
    return lax.psum(jnp.where(me == 7, done, 0), "i")


add("a pipeline", jax.shard_map(pipeline, mesh=one, in_specs=(P("i"), P()), out_specs=P(), check_vma=False), F(8, 6, 6), F(4, 3, 6))
add("gradients of a pipeline", jax.grad(lambda w, a: (jax.shard_map(pipeline, mesh=one, in_specs=(P("i"), P()), out_specs=P(),
                                                                    check_vma=False)(w, a) ** 2).sum()), F(8, 6, 6) / 3, F(4, 3, 6))  # fmt: skip


def routed(a, gate, w):
    """Tokens go to the devices that have their experts, and come back."""
    chosen = jnp.argmax(a @ gate, -1)
    place = jnp.cumsum(jax.nn.one_hot(chosen, 8, dtype=jnp.int32), 0)[jnp.arange(a.shape[0]), chosen] - 1
    sent = jnp.zeros((8, a.shape[0], a.shape[1])).at[chosen, place].set(a)
    got = lax.all_to_all(sent, "i", 0, 0, tiled=True)
    made = jnp.tanh(got.reshape(-1, a.shape[1]) @ w[0]).reshape(got.shape)
    return lax.all_to_all(made, "i", 0, 0, tiled=True)[chosen, place]


add("experts on devices", checked(routed, mesh=one, in_specs=(P("i"), P(), P("i")), out_specs=P("i")), F(32, 4), F(4, 8), F(8, 4, 4))
add("random numbers of each device", checked(lambda k: jax.random.uniform(jax.random.fold_in(jax.random.wrap_key_data(k), lax.axis_index("i")), (1, 4)),
                                             mesh=one, in_specs=P(), out_specs=P("i")), np.array([5, 6], np.uint32))  # fmt: skip
add("checked types, mixed", checked(lambda a, b: (lax.psum(a * b, "data"), a + lax.pmax(b, "model")), mesh=two,
                                    in_specs=(P("data", "model"), P(None, "model")), out_specs=(P(None, "model"), P("data", "model"))), x, F(4, 8))  # fmt: skip
add("a constraint among free axes", lambda a, b: jax.shard_map(
    lambda c, d: lax.psum(lax.with_sharding_constraint(c @ d, NamedSharding(jax.sharding.get_abstract_mesh(), P(None, "model"))), "data"),
    mesh=two, in_specs=(P("data"), P()), out_specs=P(), axis_names={"data"})(a, b), x, y)  # fmt: skip
add("jit of a halo", checked(lambda u: u + 0.1 * (lax.ppermute(u[-1:], "i", [(i, (i + 1) % 8) for i in range(8)])
                                                    + lax.ppermute(u[:1], "i", [(i, (i - 1) % 8) for i in range(8)])), mesh=one, in_specs=P("i"),
                             out_specs=P("i")), F(16, 5))  # fmt: skip
for name, f in [("fft", lambda a: jnp.abs(jnp.fft.fft(a, axis=1))), ("sort along the cut", lambda a: jnp.sort(a, 1)), ("top_k", lambda a: lax.top_k(a, 3)),
                ("cholesky", lambda a: jnp.linalg.cholesky(a @ a.T + 9 * jnp.eye(16))), ("norm", lambda a: jnp.linalg.norm(a, axis=0)),
                ("roll", lambda a: jnp.roll(a, 3, 0)), ("concatenate", lambda a: jnp.concatenate([a, a * 2], 0)), ("flip", lambda a: jnp.flip(a, (0, 1))),
                ("pad", lambda a: jnp.pad(a, 1)), ("pooling", lambda a: lax.reduce_window(a, -jnp.inf, lax.max, (3, 3), (1, 1), "SAME")),
                ("unique sums", lambda a: jax.ops.segment_sum(a, jnp.arange(16) % 3, 3)), ("median", lambda a: jnp.median(a, 0)),
                ("layer norm, gradients", jax.grad(lambda a: ((a - a.mean(1, keepdims=True)) / a.std(1, keepdims=True) ** 2).sum())),
                ("while", lambda a: lax.while_loop(lambda c: jnp.abs(c).max() > 0.1, lambda c: c * 0.7, a))]:  # fmt: skip
    sharded(name, f, (at(two, "data", "model"),), x)


try:
    import optax

    adam = optax.adamw(1e-2)

    def adam_step(w, state, a):
        slope = jax.grad(lambda w: jnp.mean(jnp.tanh(a @ w["in"]) @ w["out"]))(w)
        change, state = adam.update(slope, state, w)
        return optax.apply_updates(w, change), state

    weights = {"in": F(8, 16), "out": F(16, 4)}
    add("jit: AdamW, weights cut", jax.jit(adam_step, in_shardings=({"in": at(two, None, "model"), "out": at(two, "model")}, None, at(two, "data")),
                                           keep_unused=True), weights, jax.tree.map(np.asarray, adam.init(weights)), F(32, 8))  # fmt: skip
except ImportError:
    print("no optax: its step is left out")


def laid_out(f, args):
    """As forms.py takes it."""
    made = lambda *args: f(*args)  # noqa: E731
    made.jitted = f if hasattr(f, "lower") else jax.jit(f, keep_unused=True)
    return made, args


def lower(f, args, shardy):
    jax.config.update("jax_use_shardy_partitioner", shardy)
    jax.clear_caches()
    return laid_out(f, args)[0].jitted.lower(*args)


def without_shardy(text):
    """The module as PJRT plugins get it, and as it comes back from HLO: Shardy's operations are custom calls in both. An artifact may
    also have the dialect itself."""
    computation = mlir.mlir_module_to_xla_computation(text, use_tuple_args=False, return_tuple=False)
    forms = {"artifact": mlir.serialize_portable_artifact(text, stablehlo.get_current_version()),
             "mixed": mlir.serialize_portable_artifact(text, stablehlo.get_current_version(), True),
             "HLO": mlir.xla_computation_to_mlir_module(computation)}  # fmt: skip
    return {f" ({kind})": form for kind, form in forms.items() if not re.search("= mhlo[.]", str(form))}  # that dialect is XLA's own


def messages():
    """psend and precv, which XLA runs on GPUs alone: their module, and what ppermute gives."""
    pairs = [(k, (3 * k + 1) % 8) for k in range(8)]

    def sent(a):
        token = lax.psend(a, "i", pairs[:5])
        other = lax.psend(a.sum(0), "i", pairs[2:])
        return lax.precv(token, jax.ShapeDtypeStruct(a.shape, a.dtype), "i", pairs[:5]), lax.precv(
            other, jax.ShapeDtypeStruct(a.shape[1:], a.dtype), "i", pairs[2:])

    whole = lambda f: jax.jit(jax.shard_map(f, mesh=one, in_specs=P("i"), out_specs=(P("i"), P("i")), check_vma=False))  # noqa: E731
    want = whole(lambda a: (lax.ppermute(a, "i", pairs[:5]), lax.ppermute(a.sum(0), "i", pairs[2:])))(x)
    return whole(sent).trace(x).lower(lowering_platforms=("cuda",)).as_text(), [np.asarray(a) for a in want]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--axle", default="build/axle")
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", help="a folder for the modules")
    options = parser.parse_args()
    failed = tried = 0
    for number, name in enumerate(CASES):
        if not re.search(options.only, name):
            continue
        f, args = CASES[name]
        try:
            lowered = lower(f, args, True)
            want = [np.asarray(a) for a in jax.tree.leaves(lowered.compile()(*args))]
            texts = {"": lowered.as_text(), **without_shardy(lowered.as_text())}
            if not isinstance(f, InMesh):  # GSPMD has no such sums
                texts[" (GSPMD)"] = lower(f, args, False).as_text()
        except Exception as error:  # JAX itself cannot
            print(f"{name}: left out: {str(error).splitlines()[0][:200]}", flush=True)
            continue
        for kind, text in texts.items():
            if options.keep:
                (Path(options.keep) / f"{number}{kind[2:3].lower()}.mlir").write_bytes(text if isinstance(text, bytes) else text.encode())
            why = disagreement(options.axle, text, args, want)
            tried += 1
            failed += why is not None
            if why is not None:
                print(f"{name}{kind} {number}: {why}", flush=True)
    if re.search(options.only, "messages"):
        jax.config.update("jax_use_shardy_partitioner", True)
        jax.clear_caches()
        text, want = messages()
        why = disagreement(options.axle, text, (x,), want)
        tried += 1
        failed += why is not None
        print(f"messages: {why}\n" if why is not None else "", end="", flush=True)
    print(f"{tried} modules: {tried - failed} agree, {failed} do not")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
