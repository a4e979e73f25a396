"""The Python package beside the plugin: devices, check, simulate and timelines. PYTHONPATH=build/python JAX_PLATFORMS=axle python tests/oracle/jax_package.py"""

import json
import pathlib
import subprocess
import sys
import tempfile

import jax
import jax.numpy as jnp
import jax_plugins.axle as axle
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

assert len(axle.devices(32)) == 32 == len(jax.devices("axle")) == len(jax.devices("cpu"))
assert axle.__version__ in jax.devices()[0].client.platform_version
mesh = jax.make_mesh((8, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def abstract(shape, spec):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec))


def product(x, w):
    return x @ w


# On so many devices as the layouts have, by the machine that is named; a function that is jitted, and one that is not.
layout = abstract((4096, 4096), P("data", "model")), abstract((4096, 4096), P("model", None))
for function in (product, jax.jit(product)):
    said = axle.simulate(function, *layout, cluster="h200-switch")
    assert said.startswith("32 devices of the machine h200-switch") and "dot_general" in said and "psum" in said, said
with tempfile.TemporaryDirectory() as folder:
    picture = pathlib.Path(folder) / "step.svg"
    axle.simulate(product, *layout, timeline=picture)
    assert picture.read_text().startswith("<svg")
try:
    axle.simulate(product, *layout, cluster="no-such-machine")
    sys.exit("a machine that is not there was taken")
except axle.CommandError as e:
    assert "no-such-machine" in str(e), e


def on_each(f):
    return jax.shard_map(f, mesh=mesh, in_specs=P("data"), out_specs=P("data"), check_vma=False)


x = jnp.arange(16.0)
assert "comes to its end" in axle.check(on_each(lambda b: jax.lax.psum(b, "data")), x)
try:
    axle.check(on_each(lambda b: jax.lax.cond(jax.lax.axis_index("data") < 3, lambda c: jax.lax.psum(c, "data"), lambda c: c, b)), x)
    sys.exit("a deadlock was not found")
except axle.CommandError as e:
    assert "deadlock" in str(e) and "jax_package.py:" in str(e), e

# Values decide which way a program goes: only with these does it stop. An argument is not used, one is bf16, one a key.
def by_value(unused, flag, scale, key, b):
    noise = jax.random.normal(key, ()) * scale.astype(jnp.float32)
    return jax.lax.cond(flag[0] + noise > 5, lambda c: jax.lax.cond(jax.lax.axis_index("data") < 3, lambda e: jax.lax.psum(e, "data"), lambda e: e, c), lambda c: c, b)


stops = jax.jit(jax.shard_map(by_value, mesh=mesh, in_specs=(P(), P(), P(), P(), P("data")), out_specs=P("data"), check_vma=False))
rest = jnp.zeros((), jnp.bfloat16), jax.random.key(3), x
assert "comes to its end" in axle.check(stops, x, jnp.zeros(1), *rest)
assert "comes to its end" in axle.check(stops, x, jnp.full(1, 4.0), *rest)
try:
    axle.check(stops, x, jnp.full(1, 6.0), *rest)
    sys.exit("values of arguments do not count")
except axle.CommandError as e:
    assert "deadlock" in str(e), e

# A trace has equations with their lines, on threads and on all devices, and programs by name.
multiply = jax.jit(product)
multiply(*[jax.device_put(jnp.ones((64, 64)), s.sharding) for s in layout])
with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder) / "step.json"
    with axle.timeline(file):
        multiply(*[jax.device_put(jnp.ones((64, 64)), s.sharding) for s in layout]).block_until_ready()
    events = json.loads(file.read_text())["traceEvents"]
    names = {e["args"]["name"] for e in events if e.get("ph") == "M" and "name" in e["args"]}
    assert {"thread 0", "device 0", "device 31", "programs"} <= names, names
    shown = [e["name"] for e in events if e.get("ph") == "X"]
    assert sum(n.startswith("dot_general (") and "jax_package.py:" in n for n in shown) == 64 and "jit_product" in shown, shown

# What runs has the same numbers as NumPy.
a, b = np.random.default_rng(1).normal(size=(2, 64, 64)).astype(np.float32)
placed = [jax.device_put(v, NamedSharding(mesh, s)) for v, s in ((a, P("data", "model")), (b, P("model", None)))]
np.testing.assert_allclose(jax.jit(product)(*placed), a @ b, rtol=2e-5, atol=2e-5)
jax.debug.callback(lambda v: print("callback", v), x.sum())
np.testing.assert_allclose(np.sort(jnp.linalg.eigvals(jnp.array([[2.0, 1], [1, 3]])).real), np.sort(np.linalg.eigvals([[2.0, 1], [1, 3]])), rtol=1e-6)
try:
    axle.devices(2)
    sys.exit("devices were counted anew after JAX had started")
except RuntimeError as e:
    assert "32" in str(e), e
assert subprocess.run([axle.programs.COMMAND, "--version"], capture_output=True, text=True).stdout.strip() == f"axle {axle.__version__}"

# Functions that get the memory itself, functions with a rule for devices, and layouts that are asked for.
from jax.experimental import buffer_callback  # noqa: E402
from jax.experimental.custom_partitioning import custom_partitioning  # noqa: E402


def triple(context, out, x):
    np.asarray(out)[...] = np.asarray(x) * 3


tripled = buffer_callback.buffer_callback(triple, jax.ShapeDtypeStruct((4,), jnp.float32))
np.testing.assert_array_equal(jax.jit(tripled)(jnp.arange(4.0)), 3 * np.arange(4.0))


asked = []


@custom_partitioning
def summed(x):
    return x * 2, x.sum()


def rule(mesh, arguments, results):  # its own way: by the axis "model", along which the program cuts nothing
    asked.append((arguments[0].sharding.spec, results[0].sharding.spec))

    def part(x):
        return x + x, jax.lax.psum(x.sum(), "model")

    by_model = NamedSharding(mesh, P("model"))
    return mesh, part, (by_model, NamedSharding(mesh, P())), (by_model,)


summed.def_partition(partition=rule, sharding_rule="i -> i, ")
cut = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, P("data")))
double, total = jax.jit(summed)(cut)
np.testing.assert_array_equal(double, 2 * np.arange(8.0))
assert total == 28 and asked == [(P("data"), P("data"))] and double.sharding.spec == P("model"), (total, asked, double.sharding)
twice = jax.jit(lambda x: jax.lax.fori_loop(0, 2, lambda i, c: (lambda y, s: y - s)(*summed(c)), x))(cut)
np.testing.assert_array_equal(twice, (2 * np.arange(8.0) - 28) * 2 - (56 - 8 * 28))
assert len(asked) == 2, asked
told = []
jax.jit(lambda x: (jax.debug.inspect_array_sharding(x + 1, callback=told.append), x)[1])(cut)
assert told[0].is_equivalent_to(cut.sharding, 1), told
told.clear()
jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda i, c: (jax.debug.inspect_array_sharding(c * 2, callback=told.append), c + 1)[1], x))(cut)
assert told[0].is_equivalent_to(cut.sharding, 1), told

# A callback that each device calls with its own part.
parts = []
jax.block_until_ready(jax.jit(lambda x: (jax.debug.callback(lambda v: parts.append(np.asarray(v)), x * 2, partitioned=True), x)[1])(cut))
jax.effects_barrier()
assert sorted(float(p[0]) for p in parts) == sorted(2.0 * (i // 4) for i in range(32)) and {p.shape for p in parts} == {(1,)}, parts

# A callback may use jax, whatever mesh is set where the program is run: it may be called on that thread.
with jax.set_mesh(jax.make_mesh((2,), ("x",), axis_types=(AxisType.Explicit,), devices=jax.devices()[:2])):
    per_shard = jax.shard_map(lambda x: jax.pure_callback(lambda v: jnp.asarray(v) + 1, jax.ShapeDtypeStruct.like(x), x), in_specs=P("x"),
                              out_specs=P("x"))  # jax takes what it gives for the same on all devices
    for _ in range(20):
        np.testing.assert_array_equal(per_shard(jax.device_put(np.arange(8.0), P("x"))), np.arange(8.0) + 1)

# Meshes of the same devices in other orders.
turned = jax.sharding.Mesh(mesh.devices.reshape(-1)[::-1].reshape(8, 4), ("data", "model"))
moved = jax.device_put(cut, NamedSharding(turned, P("data")))
for shard in moved.addressable_shards:
    np.testing.assert_array_equal(shard.data, np.arange(8.0)[shard.index])
print("ok")
