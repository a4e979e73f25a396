"""Models in JAX, as modules of StableHLO and as XLA runs them; the sides of b21 and b22. serve.h says how it talks.

  jax_modules.py write FOLDER     writes a module for each model, chain_N.mlir and the modules of module_kinds.py; prints what they are
  jax_modules.py run NAME         XLA's side: runs a model on random arguments
  jax_modules.py memory NAME      prints the bytes of XLA's buffers in a run: arguments, results and temporaries
  jax_modules.py check NAME AXLE FILE   prints how far results of `AXLE run FILE` are from XLA's
  jax_modules.py compile FILE     XLA's side: from a module's text or bytecode to an executable
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jax_programs
import module_kinds


def S(*shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


def stepped(cost, count):
    """A step of gradient descent on the first `count` arguments."""

    def step(*args):
        value, slopes = jax.value_and_grad(lambda weights: cost(*weights, *args[count:]))(args[:count])
        return value, *(w - 0.01 * g for w, g in zip(args, slopes))

    return step


def entropy(scores, labels):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(scores), labels[..., None], -1))


def mlp(w1, w2, w3, x, labels):
    return entropy(jax.nn.relu(jax.nn.relu(x @ w1) @ w2) @ w3, labels)


def conv(x, k, stride=1):
    return lax.conv_general_dilated(x, k, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def pooled(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def cnn(k1, k2, w1, w2, x, labels):
    x = pooled(jax.nn.relu(conv(x, k1)))
    x = pooled(jax.nn.relu(conv(x, k2)))
    return entropy(jax.nn.relu(x.reshape(x.shape[0], -1) @ w1) @ w2, labels)


def normed(x, axes):
    return (x - x.mean(axes, keepdims=True)) * lax.rsqrt(x.var(axes, keepdims=True) + 1e-5)


RESNET = [64, 64, 128, 128, 256, 256, 512, 512]  # features of the blocks of ResNet-18


def resnet_shapes():
    shapes, last = [S(7, 7, 3, 64)], 64
    for i, features in enumerate(RESNET):
        shapes += [S(3, 3, last, features), S(3, 3, features, features)] + ([S(1, 1, last, features)] if features != last else [])
        last = features
    return [*shapes, S(512, 100)]


def resnet(*args):
    *weights, x = args
    weights = iter(weights)
    x = pooled(jax.nn.relu(normed(conv(x, next(weights), 2), (0, 1, 2))))
    for features in RESNET:
        stride = 1 if features == x.shape[-1] else 2
        y = jax.nn.relu(normed(conv(x, next(weights), stride), (0, 1, 2)))
        y = normed(conv(y, next(weights)), (0, 1, 2))
        x = jax.nn.relu(y + (x if stride == 1 else conv(x, next(weights), 2)))
    return x.mean((1, 2)) @ next(weights)


LAYERS, WIDTH, HEADS = 4, 256, 4


def gpt_shapes():
    layer = [S(WIDTH, 3 * WIDTH), S(WIDTH, WIDTH), S(WIDTH, 4 * WIDTH), S(4 * WIDTH, WIDTH)]
    return [S(512, WIDTH), S(128, WIDTH), *LAYERS * layer, S(WIDTH, 512)]


def attended(x, qkv, out):
    b, t, _ = x.shape
    q, k, v = jnp.split((x @ qkv).reshape(b, t, HEADS, -1), 3, -1)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8
    scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -1e9)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v).reshape(b, t, -1) @ out


def gpt(*args):
    words, places, *layers, last, tokens = args
    x = words[tokens] + places[: tokens.shape[1]]
    for i in range(LAYERS):
        qkv, out, up, down = layers[4 * i : 4 * i + 4]
        x = x + attended(normed(x, -1), qkv, out)
        x = x + jax.nn.gelu(normed(x, -1) @ up) @ down
    return normed(x, -1) @ last


def lstm(w, u, bias, xs):
    def cell(carry, x):
        h, c = carry
        i, f, g, o = jnp.split(x @ w + h @ u + bias, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    start = jnp.zeros((xs.shape[1], u.shape[0]))
    return jnp.mean(lax.scan(cell, (start, start), xs)[1] ** 2)


def experts(gate, up, down, x):
    probabilities = jax.nn.softmax(x @ gate)
    value, index = lax.top_k(probabilities, 2)
    mask = jax.nn.one_hot(index, 8) * value[..., None]
    each = jnp.einsum("xtd,xde->xte", jax.nn.relu(jnp.einsum("td,xde->xte", x, up)), down)
    return jnp.mean(jnp.einsum("tkx,xte->te", mask, each) ** 2)


def unet(k1, k2, k3, k4, k5, time_in, x, t):
    warm = jnp.sin(t[:, None] * jnp.arange(1, 65)) @ time_in
    a = jax.nn.silu(normed(conv(x, k1), (1, 2)))
    b = jax.nn.silu(normed(conv(a, k2, 2), (1, 2))) + warm[:, None, None]
    s = b.reshape(b.shape[0], -1, b.shape[-1])
    b = b + (jax.nn.softmax(s @ s.swapaxes(1, 2) / 11) @ s).reshape(b.shape)
    b = jax.nn.silu(normed(conv(b, k3), (1, 2)))
    up = jax.image.resize(b, (b.shape[0], 2 * b.shape[1], 2 * b.shape[2], b.shape[3]), "nearest")
    return conv(jnp.concatenate([a, jax.nn.silu(conv(up, k4))], -1), k5)


def generate(*args):
    """Sixteen tokens, one after the other, each by a pass over what there is."""
    *weights, tokens = args

    def step(i, tokens):
        return tokens.at[:, 48 + i].set(jnp.argmax(gpt(*weights, tokens)[:, 47 + i], -1).astype(jnp.int32))

    return lax.fori_loop(0, 16, step, tokens)


def mandelbrot(re, im):
    def step(_, z):
        x, y = z
        inside = x * x + y * y < 4
        return jnp.where(inside, x * x - y * y + re, x), jnp.where(inside, 2 * x * y + im, y)

    x, y = lax.fori_loop(0, 50, step, (jnp.zeros_like(re), jnp.zeros_like(im)))
    return x * x + y * y < 4


def heat(u):
    step = lambda _, u: u + 0.1 * (jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - 4 * u)  # noqa: E731
    return lax.fori_loop(0, 20, step, u)


def particles(x):
    d = x[:, None] - x[None]
    r2 = jnp.sum(d * d, -1) + 0.01
    return x - 0.001 * jnp.sum(d / r2[..., None] ** 2, 1)


def solve(a, b):
    return jax.scipy.linalg.solve(a @ a.T + 50 * jnp.eye(a.shape[0]), b, assume_a="pos")


TOKENS = S(4, 64, dtype=jnp.int32)
MODELS = {
    "MLP 784-512-512-10, a step of 128": (stepped(mlp, 3), [S(784, 512), S(512, 512), S(512, 10), S(128, 784), S(128, dtype=jnp.int32)]),
    "CNN of 28 x 28, a step of 32": (stepped(cnn, 4), [S(3, 3, 1, 32), S(3, 3, 32, 64), S(3136, 128), S(128, 10), S(32, 28, 28, 1), S(32, dtype=jnp.int32)]),
    "ResNet-18 of 64 x 64, 4 images": (resnet, [*resnet_shapes(), S(4, 64, 64, 3)]),
    "GPT of 4 layers of 256, 4 x 64 tokens": (gpt, [*gpt_shapes(), TOKENS]),
    "GPT, a step": (stepped(lambda *a: entropy(gpt(*a[:-1]), a[-1]), len(gpt_shapes())), [*gpt_shapes(), TOKENS, TOKENS]),
    "GPT, 16 tokens generated": (generate, [*gpt_shapes(), TOKENS]),
    "LSTM of 256, 64 steps of 16, gradients": (jax.grad(lstm, (0, 1, 2)), [S(128, 1024), S(256, 1024), S(1024), S(64, 16, 128)]),
    "8 experts, 256 tokens of 128, a step": (stepped(experts, 3), [S(128, 8), S(8, 128, 256), S(8, 256, 128), S(256, 128)]),
    "U-Net of 32 x 32, 4 images": (unet, [S(3, 3, 3, 64), S(3, 3, 64, 128), S(3, 3, 128, 128), S(3, 3, 128, 64), S(3, 3, 128, 3), S(64, 128), S(4, 32, 32, 3), S(4)]),
    "Mandelbrot, 512 x 512, 50 steps": (mandelbrot, [S(512, 512), S(512, 512)]),
    "heat on 512 x 512, 20 steps": (heat, [S(512, 512)]),
    "1,024 particles, forces": (particles, [S(1024, 3)]),
    "a positive system of 256, 8 right sides": (solve, [S(256, 256), S(256, 8)]),
    "normal numbers, 2^20": (lambda key: jax.random.normal(jax.random.wrap_key_data(key), (2**20,)), [S(2, dtype=jnp.uint32)]),
    **jax_programs.MODELS,
}
CHAINS = (100, 1000, 10_000, 100_000)


def file_of(name):
    return "".join(c if c.isalnum() else "_" for c in name) + ".mlir"


def chain(count):
    """`count` operations one after the other, as text."""
    ops = ["sine", "cosine", "tanh", "negate"]
    lines = [f"    %{i + 1} = stablehlo.{ops[i % 4]} %{i} : tensor<64xf32>" for i in range(count)]
    return "module @chain {\n  func.func @main(%0: tensor<64xf32>) -> tensor<64xf32> {\n" + "\n".join(lines) + f"\n    return %{count} : tensor<64xf32>\n  }}\n}}\n"


def write(folder):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, (f, shapes) in MODELS.items():
        (folder / file_of(name)).write_text(jax.jit(f, keep_unused=True).lower(*shapes).as_text())
    for count in CHAINS:
        (folder / f"chain_{count}.mlir").write_text(chain(count))
    names = [(name, file_of(name)) for name in MODELS] + [(f"{count:,} operations", f"chain_{count}.mlir") for count in CHAINS]
    print((names, module_kinds.write(folder, bytecode_of)))


def bytecode_of(text):
    import io

    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir

    out = io.BytesIO()
    with mlir.make_ir_context(), ir.Location.unknown():
        ir.Module.parse(text).operation.write_bytecode(out)
    return out.getvalue()


def wait():
    print("ready", flush=True)
    if not sys.stdin.readline():
        sys.exit()


def serve(answer):
    wait()
    while True:
        print(answer(), flush=True)
        if not sys.stdin.readline():
            sys.exit()


def time_of(work, count):
    start = time.perf_counter()
    work(count)
    return time.perf_counter() - start


def serve_often(work):
    """Answers with the time of one work, of so many that they take long enough to be timed."""
    work(2)
    count = 1
    while time_of(work, count) < 0.05:
        count *= 2
    serve(lambda: time_of(work, count) / count)


def arguments_of(shapes):
    r = np.random.default_rng(0)
    args = [r.integers(0, 8, s.shape) if jnp.issubdtype(s.dtype, jnp.integer) else r.uniform(-0.5, 0.5, s.shape) for s in shapes]
    return [np.asarray(a).astype(s.dtype) for a, s in zip(args, shapes)]


def check(name, axle, path):
    """Prints how far the results of `axle run` on the module are from XLA's: the largest difference of an element, beside the largest
    element of its array. Integers and booleans, which may be choices among what is nearly equal: the share of those that differ."""
    f, shapes = MODELS[name]
    args, far = arguments_of(shapes), 0.0
    wanted = jax.tree.leaves(jax.jit(f, keep_unused=True)(*args))
    with tempfile.TemporaryDirectory() as folder:
        command = [axle, "run", path]
        for i, a in enumerate(args):
            # NumPy has no bf16; all of its numbers are f32's, too
            np.save(f"{folder}/in{i}.npy", a.astype(np.float32) if a.dtype == jnp.bfloat16 else a)
            command += ["--in", f"{i}={folder}/in{i}.npy"]
        for k in range(len(wanted)):
            command += ["--out", f"{'result' if len(wanted) == 1 else f'result[{k}]'}={folder}/out{k}.npy"]
        subprocess.run([*command, "--convert"], check=True, stdout=subprocess.DEVNULL)
        for k, want in enumerate(wanted):
            got = np.load(f"{folder}/out{k}.npy")
            want = np.asarray(want)
            if got.dtype.kind == "V" or want.dtype == jnp.bfloat16:
                got, want = got.view(jnp.bfloat16).astype(np.float64) if got.dtype.kind == "V" else got.astype(np.float64), want.astype(np.float64)
            if got.shape != want.shape:
                far = float("inf")
            elif want.dtype.kind in "iub":
                far = max(far, float(np.mean(got != want)) if want.size else 0)
            elif want.size:
                same = (got == want) | (np.isnan(got) & np.isnan(want))
                difference = np.where(same, 0, np.abs(got - want))
                largest = np.max(np.abs(want), where=np.isfinite(want), initial=0)
                far = max(far, float(np.max(difference / max(largest, 1e-30))) if not np.all(same) else 0)
    print(far)


def run(name):
    f, shapes = MODELS[name]
    args = [jax.device_put(a) for a in arguments_of(shapes)]
    compiled = jax.jit(f, keep_unused=True).lower(*args).compile()

    def work(count):
        for _ in range(count):
            jax.block_until_ready(compiled(*args))

    serve_often(work)


def memory(name):
    f, shapes = MODELS[name]
    m = jax.jit(f, keep_unused=True).lower(*shapes).compile().memory_analysis()
    print(m.argument_size_in_bytes + m.output_size_in_bytes + m.temp_size_in_bytes - m.alias_size_in_bytes)


def compile_text(path):
    from jax._src import compiler, xla_bridge

    text = Path(path).read_bytes() if path.endswith(".mlirbc") else Path(path).read_text()
    backend = xla_bridge.get_backend()
    devices = backend.devices()[:1]
    options = compiler.get_compile_options(num_replicas=1, num_partitions=1)

    def once():
        start = time.perf_counter()
        if hasattr(backend, "compile_and_load"):
            backend.compile_and_load(text, executable_devices=devices, compile_options=options)
        else:
            backend.compile(text, compile_options=options)
        return time.perf_counter() - start

    once()
    serve(once)


if __name__ == "__main__":
    {"write": write, "run": run, "compile": compile_text, "check": check, "memory": memory}[sys.argv[1]](*sys.argv[2:])
