"""Runs functions of JAX on eight devices by Axle, from the text of their modules, beside XLA on CPU, and says which do not agree.

  import_devices.py [--axle build/axle] [--only REGEX] [--keep FOLDER]

As import_jax.py; the functions are laid out: by shard_map, pmap, and jit with shardings, each as Shardy's module and as GSPMD's.
"""

import argparse
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
from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

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
mapped("pbroadcast", lambda a: lax.pbroadcast(a, "i", 3), one, P("i"), P("i"), x)
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
add("one helper in two meshes", lambda a: jax.shard_map(summed, mesh=two, in_specs=P("data", "model"), out_specs=P(None, "model"),
                                                          check_vma=False)(a) +
    jax.shard_map(summed, mesh=turned, in_specs=P("model", "data"), out_specs=P("model"), check_vma=False)(a)[:4, :1], x)  # fmt: skip
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


def lower(f, args, shardy):
    jax.config.update("jax_use_shardy_partitioner", shardy)
    jax.clear_caches()
    function = f if hasattr(f, "lower") else jax.jit(f, keep_unused=True)
    return function.lower(*args)


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
            texts = {"": lowered.as_text(), " (GSPMD)": lower(f, args, False).as_text()}
        except Exception as error:  # JAX itself cannot
            print(f"{name}: left out: {str(error).splitlines()[0][:200]}", flush=True)
            continue
        for kind, text in texts.items():
            if options.keep:
                (Path(options.keep) / f"{number}{kind[2:3].lower()}.mlir").write_text(text)
            why = disagreement(options.axle, text, args, want)
            tried += 1
            failed += why is not None
            if why is not None:
                print(f"{name}{kind} {number}: {why}", flush=True)
    print(f"{tried} modules: {tried - failed} agree, {failed} do not")
    sys.exit(failed > 0)


main()
