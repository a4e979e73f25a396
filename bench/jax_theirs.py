"""jax_theirs.py CASE ARGUMENT...: JAX's side of the races, case by case what main.c's table has; serve.h says how it talks."""

import os
import resource
import sys
import threading
import time

CASE, ARGUMENTS = sys.argv[1], sys.argv[2:]
DEVICES = int(ARGUMENTS[0]) if ARGUMENTS and ARGUMENTS[0].isdigit() and CASE != "calls" else 8
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, shard_map
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

import jax_models
import jax_scaling

SCAN = 200


# --- The conversation ---


def wait():
    print("ready", flush=True)
    if not sys.stdin.readline():
        sys.exit()


def time_of(work, count):
    start = time.perf_counter()
    work(count)
    return time.perf_counter() - start


def serve(work, parts=1):
    """As bench_serve."""
    work(2)
    count = 1
    while time_of(work, count) < 0.05:
        count *= 2
    wait()
    while True:
        print(time_of(work, count) / (count * parts), flush=True)
        if not sys.stdin.readline():
            sys.exit()


# --- Collectives ---


def serve_function(body, elems=1, out_spec=P("d"), parts=1):
    mesh = Mesh(np.array(jax.devices()), ("d",))
    x = jax.device_put(np.ones(DEVICES * elems, np.float32), NamedSharding(mesh, P("d")))
    f = jax.jit(shard_map(body, mesh=mesh, in_specs=P("d"), out_specs=out_spec))

    def work(count):
        for _ in range(count):
            jax.block_until_ready(f(x))

    serve(work, parts)


def add_one(_):
    serve_function(lambda x: x + 1)


def psum(_):
    serve_function(lambda x: lax.psum(x, "d"), out_spec=P())


def psum_in_scan(_):
    share = np.float32(1 / (DEVICES - 1))

    def body(carry, _):
        return (lax.pcast(lax.psum(carry, "d"), "d", to="varying") - carry) * share, None

    serve_function(lambda x: lax.scan(body, x, None, length=SCAN)[0], parts=SCAN)


def collective(name, mebibytes):
    elems = int(mebibytes) * 2**20 // 4
    ring = [(i, (i + 1) % DEVICES) for i in range(DEVICES)]
    body, out_spec, share = {
        "psum": (lambda x: lax.psum(x, "d"), P(), 1),
        "all_gather": (lambda x: lax.all_gather(x, "d", tiled=True), P("d"), DEVICES),
        "all_to_all": (lambda x: lax.all_to_all(x, "d", 0, 0, tiled=True), P("d"), 1),
        "ppermute": (lambda x: lax.ppermute(x, "d", ring), P("d"), 1),
        "psum_scatter": (lambda x: lax.psum_scatter(x, "d", tiled=True), P("d"), 1),
    }[name]
    serve_function(body, elems // share, out_spec)


def gathered_matmul(_, n):
    n = int(n)
    mesh = Mesh(np.array(jax.devices()), ("d",))
    x = jax.device_put(np.ones((n, n), np.float32), NamedSharding(mesh, P("d")))
    w = jax.device_put(np.ones((n, n), np.float32), NamedSharding(mesh, P(None, "d")))
    f = jax.jit(shard_map(lambda x, w: lax.all_gather(x, "d", tiled=True) @ w, mesh=mesh, in_specs=(P("d"), P(None, "d")), out_specs=P(None, "d")))

    def work(count):
        for _ in range(count):
            jax.block_until_ready(f(x, w))

    serve(work)


def repeated(name, size):
    elems = int(size) // 4
    length = SCAN if int(size) < 2**16 else SCAN // 10
    ring = [(i, (i + 1) % DEVICES) for i in range(DEVICES)]
    share = np.float32(1 / DEVICES)

    def varying(x):
        return lax.pcast(x, "d", to="varying")

    step = {
        "psum": lambda x: varying(lax.psum(x, "d") * share),
        "psum_of_others": lambda x: (varying(lax.psum(x, "d")) - x) * np.float32(1 / (DEVICES - 1)),
        "pmean": lambda x: varying(lax.pmean(x, "d")),
        "pmax": lambda x: varying(lax.pmax(x, "d")),
        "pmin": lambda x: varying(lax.pmin(x, "d")),
        "all_gather": lambda x: lax.all_gather(x, "d", tiled=True)[:elems],
        "all_to_all": lambda x: lax.all_to_all(x, "d", 0, 0, tiled=True),
        "ppermute": lambda x: lax.ppermute(x, "d", ring),
        "psum_scatter": lambda x: jnp.broadcast_to(lax.psum_scatter(x, "d", tiled=True) * share, (DEVICES, elems // DEVICES)).reshape(elems),
        "pbroadcast": lambda x: varying(lax.psum(jnp.where(lax.axis_index("d") == 0, x, 0), "d")),  # XLA:CPU has no collective_broadcast
    }[name]
    serve_function(lambda x: lax.scan(lambda c, _: (step(c), None), x, None, length=length)[0], elems, parts=length)


# --- Training ---


def make_step(model):
    """(weights, data) -> loss, weights: not compiled yet, and its arguments on the devices."""
    mesh = Mesh(np.array(jax.devices()).reshape(model.mesh[0]), model.mesh[1])

    def step(weights, data):
        loss, slopes = jax.value_and_grad(model.loss)(weights, data)
        return loss, jax.tree.map(lambda w, g: w - 0.1 * g, weights, slopes)

    named = lambda specs: {name: NamedSharding(mesh, spec) for name, spec in specs.items()}
    if model.is_global:
        f = jax.jit(step, in_shardings=(named(model.weight_specs), named(model.data_specs)),
                    out_shardings=(NamedSharding(mesh, P()), named(model.weight_specs)), donate_argnums=0)
    else:
        f = jax.jit(shard_map(step, mesh=mesh, in_specs=(model.weight_specs, model.data_specs),
                              out_specs=(P(), model.weight_specs)), donate_argnums=0)
    arrays = model.make(np.random.default_rng(1))
    specs = model.weight_specs, model.data_specs
    put = [{name: jax.device_put(a, NamedSharding(mesh, s[name])) for name, a in part.items()}
           for part, s in zip(arrays, specs)]
    jax.block_until_ready(put)
    return f, put[0], put[1]


def train(name):
    f, weights, data = make_step(jax_models.MODELS[name]())
    in_flight = 3 if name.startswith("transformer") else 30  # XLA aborts on the CPU when very many steps wait for one another

    def work(count):
        nonlocal weights
        for _ in range(count):
            for _ in range(in_flight):
                loss, weights = f(weights, data)
            jax.block_until_ready((loss, weights))

    serve(work, in_flight)


def at_once(name, threads):
    """Seconds a run, counting the runs of all threads."""
    threads = int(threads)

    def small():
        mesh = Mesh(np.array(jax.devices()), ("d",))
        f = jax.jit(shard_map(lambda x: x + 1, mesh=mesh, in_specs=P("d"), out_specs=P("d")))
        x = jax.device_put(np.ones(DEVICES, np.float32), NamedSharding(mesh, P("d")))
        return lambda: jax.block_until_ready(f(x))

    def training():
        f, weights, data = make_step(jax_models.MODELS[name]())

        def one():
            nonlocal weights
            loss, weights = f(weights, data)
            jax.block_until_ready((loss, weights))

        return one

    steps = [small() if name == "small" else training() for _ in range(threads)]

    def work(count):
        def run(step):
            for _ in range(count):
                step()

        crew = [threading.Thread(target=run, args=(step,)) for step in steps]
        for thread in crew:
            thread.start()
        for thread in crew:
            thread.join()

    serve(work, threads)


def compile(name):
    f, weights, data = make_step(jax_models.MODELS[name]())
    wait()
    print(time_of(lambda _: f.trace(weights, data).lower().compile(), 1), flush=True)


def scaling(family, n):
    """Seconds in all, to trace (and differentiate), to lower and to compile."""
    f, arguments = jax_scaling.FAMILIES[family](int(n))
    wait()
    start = time.perf_counter()
    traced = f.trace(*arguments)
    after_trace = time.perf_counter()
    lowered = traced.lower()
    after_lower = time.perf_counter()
    lowered.compile()
    end = time.perf_counter()
    print(end - start, after_trace - start, after_lower - after_trace, end - after_lower, flush=True)


def reading(family, n):
    """Seconds to read the text of a lowered program, and to write it."""
    f, arguments = jax_scaling.FAMILIES[family](int(n))
    module = f.lower(*arguments).compiler_ir()
    wait()
    start = time.perf_counter()
    text = str(module)
    written = time.perf_counter()
    with module.context:
        type(module).parse(text)
    print(time.perf_counter() - written, written - start, flush=True)


def peak_memory(_):
    wait()
    f, weights, data = make_step(jax_models.linear(DEVICES, 8, 4096, 4096))
    for _ in range(3):
        loss, weights = f(weights, data)
        jax.block_until_ready((loss, weights))
    print(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, flush=True)


def temporaries(what, layers):
    """Bytes that the compiled program says it holds besides its arguments, on all devices."""
    wait()
    model = jax_models.transformer(int(layers))
    f, weights, data = make_step(model)
    if what == "loss":
        mesh = Mesh(np.array(jax.devices()).reshape(model.mesh[0]), model.mesh[1])
        f = jax.jit(shard_map(model.loss, mesh=mesh, in_specs=(model.weight_specs, model.data_specs), out_specs=P()))
    print(DEVICES * f.lower(weights, data).compile().memory_analysis().temp_size_in_bytes, flush=True)


# --- Parts overwritten ---


def serve_jit(f, *arguments):
    f = jax.jit(f)

    def work(count):
        for _ in range(count):
            jax.block_until_ready(f(*arguments))

    serve(work)


def rows_in_scan(rows):
    def renew_row(carry, _):
        i, table = carry
        row = lax.dynamic_slice(table, (i, 0), (1, 1024))
        return (i + 1, lax.dynamic_update_slice(table, row * 0.5 + 1, (i, 0))), None

    serve_jit(lambda x: lax.scan(renew_row, (0, x), None, length=int(rows))[0][1], np.ones((int(rows), 1024), np.float32))


def cache_in_scan(steps):
    steps, heads, key = int(steps), 8, 64

    def decode(carry, _):
        i, keys, values, x = carry
        keys = lax.dynamic_update_slice(keys, x[:, None], (0, i, 0))
        values = lax.dynamic_update_slice(values, 0.5 * x[:, None], (0, i, 0))
        scores = jnp.einsum("hk,hsk->hs", x, keys)
        weights = jnp.where(jnp.arange(steps) <= i, jnp.exp(scores * 0.125), 0)
        weights = weights / jnp.sum(weights, -1, keepdims=True)
        return (i + 1, keys, values, jnp.tanh(jnp.einsum("hs,hsk->hk", weights, values))), None

    cache = jnp.ones((heads, steps, key), np.float32)
    serve_jit(lambda k, v, x: lax.scan(decode, (0, k, v, x), None, length=steps)[0][3], cache, cache,
              jnp.ones((heads, key), np.float32))


# --- Windows ---


def windows(name):
    shapes = {"conv_1x1": [(8, 64, 64, 32), (1, 1, 32, 64)], "conv_depthwise": [(8, 64, 64, 32), (3, 3, 1, 32)],
              "conv_7x7": [(8, 128, 128, 3), (7, 7, 3, 64)]}.get(name, [(8, 64, 64, 32), (3, 3, 32, 32)])

    def conv(x, w):
        stride, groups = (2 if name == "conv_7x7" else 1), (32 if name == "conv_depthwise" else 1)
        return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups)

    def pool(x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")

    function, inputs = (pool, shapes[:1]) if name.startswith("max_pool") else (conv, shapes)
    made = function
    if "gradient" in name:
        made = jax.grad(lambda *x: jnp.sum(jnp.square(function(*x))), tuple(range(len(inputs))))
    serve_jit(made, *(np.ones(shape, np.float32) for shape in inputs))


# --- Arrays put, laid out anew, read ---


def calls(count, what):
    """Arrays f32[8], an element a device; jit's C++ fast path from the second call on."""
    each = lambda *arrays: [array + 1 for array in arrays]
    total = lambda *arrays: sum(arrays[1:], arrays[0] + 1)
    sharding = NamedSharding(Mesh(np.array(jax.devices()), ("d",)), P("d"))
    arrays = [jax.device_put(np.ones(8, np.float32), sharding) for _ in range(int(count))]
    f = jax.jit(each if what == "each" else total, out_shardings=sharding)

    def work(times):
        for _ in range(times):
            jax.block_until_ready(f(*arrays))

    serve(work)


def checked(what, devices):
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu
    n = int(devices)
    at = {"device_id_type": pl.DeviceIdType.MESH}

    def kernel(x, out, copied, sent, received):
        me = lax.axis_index("d")
        right, left, barrier = lax.rem(me + 1, n), lax.rem(me + n - 1, n), pltpu.get_barrier_semaphore()
        for to in (left, right):
            pl.semaphore_signal(barrier, 1, device_id=(to,), **at)
        pl.semaphore_wait(barrier, 2)
        own = pltpu.make_async_copy(x, out.at[me], copied)
        own.start()
        own.wait()
        for i in range(n - 1):
            block = out.at[lax.rem(me - i + n, n)]
            copy = pltpu.make_async_remote_copy(block, block, sent.at[i], received.at[i], device_id=(right,), **at)
            copy.start()
            copy.wait()

    steps, anywhere = pltpu.SemaphoreType.DMA((n - 1,)), pl.BlockSpec(memory_space=pl.ANY)
    call = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((n, 8, 128), jnp.float32), in_specs=[anywhere], out_specs=anywhere,
                          scratch_shapes=[pltpu.SemaphoreType.DMA, steps, steps], compiler_params=pltpu.CompilerParams(collective_id=0),
                          interpret=pltpu.InterpretParams(detect_races=True))
    mesh = Mesh(np.array(jax.devices()[:n]), ("d",))
    gather = jax.jit(jax.shard_map(call, mesh=mesh, in_specs=P("d"), out_specs=P("d"), check_vma=False))
    x = jnp.zeros((n * 8, 128), jnp.float32)

    def work(count):
        for _ in range(count):
            jax.block_until_ready(gather(x))

    serve(work)


def place(what, how):
    specs = {"rows": P("d"), "columns": P(None, "d"), "whole": P()}
    mesh = Mesh(np.array(jax.devices()), ("d",))
    sharding, other = (NamedSharding(mesh, specs[name]) for name in (how, "rows" if how == "columns" else "columns"))
    data = np.arange(8192 * 8192, dtype=np.float32).reshape(8192, 8192)
    array = jax.device_put(data, sharding)
    parts = [shard.data for shard in array.addressable_shards]

    def read():  # an array keeps what it was read as, so each time it is another one of the same parts
        np.asarray(jax.make_array_from_single_device_arrays(data.shape, sharding, parts))

    once = {"put": lambda: jax.block_until_ready(jax.device_put(data, sharding)),
            "move": lambda: jax.block_until_ready(jax.device_put(array, other)), "read": read, "read_in_place": read}[what]

    def work(count):
        for _ in range(count):
            once()

    serve(work)


{f.__name__: f for f in (add_one, psum, psum_in_scan, collective, gathered_matmul, repeated, train, at_once, compile, scaling, reading, peak_memory,
                         temporaries, rows_in_scan, cache_in_scan, windows, place, calls, checked)}[CASE](*ARGUMENTS)
