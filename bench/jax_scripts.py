"""JAX scripts on Axle's plugin and on JAX's own devices for CPUs: both sides of b23 to b25 and b31. serve.h says how it talks.

  jax_scripts.py SIDE DEVICES calls          a jitted x + 1, one behind the other
  jax_scripts.py SIDE DEVICES psums          a psum of 64 numbers, 100 times in a scan
  jax_scripts.py SIDE DEVICES loop NAME            a program of jax_loops.py; check_loop NAME: as check
  jax_scripts.py SIDE DEVICES step NAME LAYOUT     a training step; LAYOUT: one, data, model or fsdp
  jax_scripts.py SIDE DEVICES first NAME LAYOUT    one answer: from the script's function to its first result
  jax_scripts.py SIDE DEVICES memory NAME LAYOUT   one answer: the most memory that the process held, after five steps
  jax_scripts.py SIDE DEVICES check NAME LAYOUT    prints the sum and the largest of each result, to be compared

SIDE is axle, which needs AXLE_BUILD's Python package, or xla."""

import os
import resource
import sys
import time

side, devices = sys.argv[1], int(sys.argv[2])
if side == "axle":
    sys.path.insert(0, os.path.join(os.path.abspath(os.environ.get("AXLE_BUILD", "build")), "python"))
    os.environ.update(JAX_PLATFORMS="axle", AXLE_DEVICES=str(devices))
else:
    os.environ.update(JAX_PLATFORMS="cpu", XLA_FLAGS=f"--xla_force_host_platform_device_count={devices}")
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import jax_loops
import jax_modules
from jax_modules import S, arguments_of, entropy, serve_often, stepped

INT = jnp.int32
_gpt, _resnet = jax_modules.gpt_shapes(), jax_modules.resnet_shapes()
# The step, its weights and its data; the dimension of the data that is over examples.
STEPS = {
    "MLP": (stepped(jax_modules.mlp, 3), [S(784, 512), S(512, 512), S(512, 16)], [S(128, 784), S(128, dtype=INT)], 0),
    "CNN": (stepped(jax_modules.cnn, 4), [S(3, 3, 1, 32), S(3, 3, 32, 64), S(3136, 128), S(128, 16)], [S(32, 28, 28, 1), S(32, dtype=INT)], 0),
    "ResNet-18": (stepped(lambda *a: entropy(jax_modules.resnet(*a[:-1]), a[-1]), len(_resnet)), _resnet, [S(8, 64, 64, 3), S(8, dtype=INT)], 0),
    "GPT": (stepped(lambda *a: entropy(jax_modules.gpt(*a[:-1]), a[-1]), len(_gpt)), _gpt, [S(8, 64, dtype=INT), S(8, 64, dtype=INT)], 0),
    "LSTM": (stepped(jax_modules.lstm, 3), [S(128, 1024), S(256, 1024), S(1024)], [S(64, 16, 128)], 1),
    "MoE": (stepped(jax_modules.experts, 3), [S(128, 8), S(8, 128, 256), S(8, 256, 128)], [S(256, 128)], 0),
}


def over(shape, order):
    """Cut along the first of these dimensions that there are enough elements of."""
    for d in order:
        if shape[d] % devices == 0:
            return P(*[None] * d, "d")
    return P()


def placed(name, layout):
    """The step, jitted for the layout, and its arguments in their places."""
    f, weights, data, examples = STEPS[name]
    args = [a if a.dtype.kind == "i" else 0.1 * a for a in arguments_of([*weights, *data])] # small enough to stay so over many steps
    if layout == "one":
        return jax.jit(f), [jax.device_put(a, jax.devices()[0]) for a in args], len(weights)
    mesh = jax.make_mesh((devices,), ("d",), axis_types=(AxisType.Auto,))
    specs = []
    for w in weights:
        dims = range(len(w.shape))
        specs.append(P() if layout == "data" else over(w.shape, reversed(dims) if layout == "model" else dims))
    specs += [P() if layout == "model" else P(*[None] * examples, "d") for _ in data]
    places = [NamedSharding(mesh, s) for s in specs]
    results = (NamedSharding(mesh, P()), *places[: len(weights)])
    return jax.jit(f, out_shardings=results), [jax.device_put(a, p) for a, p in zip(args, places)], len(weights)


def train(step, args, count, steps):
    for _ in range(steps):
        _, *args[:count] = step(*args)
    jax.block_until_ready(args)


def answer_once(value):
    print("ready", flush=True)
    if sys.stdin.readline():
        print(value(), flush=True)
        sys.stdin.readline()


def calls():
    x = jnp.zeros(8)
    if devices > 1:
        x = jax.device_put(x, NamedSharding(jax.make_mesh((devices,), ("d",)), P("d")))
    f = jax.jit(lambda x: x + 1)

    def work(count):
        y = x
        for _ in range(count):
            y = f(y)
        y.block_until_ready()

    serve_often(work)


def psums():
    mesh = jax.make_mesh((devices,), ("d",), axis_types=(AxisType.Auto,))
    body = lambda x: lax.scan(lambda c, _: (lax.pmean(c, "d") * 0.5 + x, None), x, None, length=100)[0]  # noqa: E731
    f = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("d"), out_specs=P("d"), check_vma=False))
    x = jax.device_put(jnp.ones((devices * 64,)), NamedSharding(mesh, P("d")))

    def work(count):
        for _ in range(count):
            f(x).block_until_ready()

    serve_often(work)


def print_sums(results):
    for result in jax.tree.leaves(results):
        result = jnp.asarray(jax.device_get(result), jnp.float32)
        print(f"{float(jnp.sum(result)):.9g} {float(jnp.max(jnp.abs(result))):.9g} {result.size}")


def loop(name, serves):
    f, args = jax_loops.PROGRAMS[name]
    f = jax.jit(f)

    def work(count):
        for _ in range(count):
            jax.block_until_ready(f(*args))

    return serve_often(work) if serves else print_sums(f(*args))


def main():
    kind, *rest = sys.argv[3:]
    if kind in ("loop", "check_loop"):
        return loop(rest[0], kind == "loop")
    if kind in ("calls", "psums"):
        return {"calls": calls, "psums": psums}[kind]()
    name, layout = rest
    if kind == "first":

        def first():
            start = time.perf_counter()
            step, args, count = placed(name, layout)
            train(step, args, count, 1)
            return time.perf_counter() - start

        return answer_once(first)
    step, args, count = placed(name, layout)
    if kind == "check":
        print_sums(step(*args))
    elif kind == "memory":
        train(step, args, count, 5)
        answer_once(lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
    else:
        serve_often(lambda n: train(step, list(args), count, n))


if __name__ == "__main__":
    main()
