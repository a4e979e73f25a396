#!/usr/bin/env python3
"""Bytes that global programs move between devices: ours, and XLA's, whose SPMD partitioner gets the same programs and the same shardings.

  cmake --build build --target bench_global && $AXLE_JAX_PYTHON bench/global/compare.py [CASE..]

Ours are counted from the program (axle show --cost), XLA's from its optimised HLO; a device's, as rings of the fewest bytes do them: 2(n-1)/n B for an
all-reduce of B bytes, (n-1)/n B for an all-to-all of B, for an all-gather whose result and a reduce-scatter whose operand has B, B for a
permutation; loops multiplied. Both run, on the same inputs, and results are compared. The table is in docs/sharding.md. Status 1: results differ, or
ours are more."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

BUILD = os.environ.get("AXLE_BUILD", "build")
WIDTH, HEADS, HIDDEN, LENGTH, BATCH, VOCABULARY, LAYERS = 64, 8, 256, 32, 16, 128, 2
KEY = WIDTH // HEADS


def mesh_of(text):
    names, sizes = zip(*((axis, int(size)) for axis, size in (part.split("=") for part in text.split(","))))
    return Mesh(np.array(jax.devices()[: int(np.prod(sizes))]).reshape(sizes), names)


def spec_of(text):
    return PartitionSpec(*(None if entry in ("_", "") else tuple(entry.split("+")) for entry in text.split(",")))


def constrained(x, mesh, spec):
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, spec_of(spec)))


# --- The programs: as programs.c has them ---


def rms_norm(x, gain):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * gain


def transformer(mesh, *inputs):
    *weights, embedding, tokens = inputs
    one_hot = jax.nn.one_hot(tokens, VOCABULARY, dtype=jnp.float32)
    h = one_hot @ embedding
    mask = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
    for n in range(LAYERS):
        wqkv, wo, w1, w2, g1, g2 = weights[6 * n : 6 * n + 6]
        qkv = jnp.einsum("btd,dchk->btchk", rms_norm(h, g1), wqkv)
        query, key, value = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
        scores = jnp.einsum("bthk,bshk->bhts", query, key) / np.sqrt(KEY)
        seen = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(jnp.where(mask, scores, -1e9)), value)
        h += jnp.einsum("bthk,hkd->btd", seen, wo)
        h += jax.nn.gelu(rms_norm(h, g2) @ w1) @ w2
    guess = jax.nn.log_softmax((h @ embedding.T)[:, :-1])
    return -jnp.mean(jnp.sum(guess * one_hot[:, 1:], -1))


def mlp(mesh, w1, w2, x, y):
    hidden = constrained(jax.nn.gelu(x @ w1), mesh, "data,model")
    return jnp.mean(jnp.square(constrained(hidden @ w2, mesh, "data") - y))


def attention(mesh, wq, wk, wv, wo, x):
    q, k, v = (jnp.einsum("btw,whk->bhtk", x, w) for w in (wq, wk, wv))
    shares = jax.nn.softmax(jnp.einsum("bhtk,bhsk->bhts", q, k) / 4)
    made = jnp.einsum("bhtk,hkw->btw", jnp.einsum("bhts,bhsk->bhtk", shares, v), wo)
    return jnp.mean(jnp.square(made - x))


def moe(mesh, gate, up, down, x, y):
    shares = jax.nn.softmax(jnp.einsum("gsm,me->gse", x, gate))
    chosen = jax.nn.one_hot(jnp.argmax(shares, -1), 8, dtype=jnp.float32)
    place = jnp.cumsum(chosen, 1) * chosen - 1
    slots = jax.nn.one_hot(place.astype(jnp.int32), 16, dtype=jnp.float32)
    combine = slots * (shares * chosen)[..., None]
    sent = constrained(jnp.einsum("gsec,gsm->egcm", slots, x), mesh, "expert")
    hidden = jax.nn.relu(jnp.einsum("egcm,emh->egch", sent, up))
    made = constrained(jnp.einsum("egch,ehm->egcm", hidden, down), mesh, "expert")
    found = constrained(jnp.einsum("gsec,egcm->gsm", combine, made), mesh, "expert")
    return jnp.mean(jnp.square(found - y))


def conv(x, w, stride=1):
    return jax.lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def convolution(mesh, w1, w2, w3, x, y):
    found = conv(jax.nn.relu(conv(jax.nn.relu(conv(x, w1)), w2, 2)), w3)
    return jnp.mean(jnp.square(found - y))


def pooled(mesh, w1, w2, x, y):
    hidden = jax.lax.reduce_window(jax.nn.relu(conv(x, w1)), -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return jnp.mean(jnp.square(conv(hidden, w2) - y))


def shifted(u, by, d):
    return jax.lax.pad(u, 0.0, [(by, -by, 0) if i == d else (0, 0, 0) for i in range(2)])


def looped(step):
    def loss(mesh, u, target):
        return jnp.mean(jnp.square(jax.lax.fori_loop(0, 10, lambda i, u: step(u), u) - target))

    return loss


def heat_step(u):
    around = shifted(u, 1, 0) + shifted(u, -1, 0) + shifted(u, 1, 1) + shifted(u, -1, 1)
    return u + 0.125 * (around - 4 * u)


def ring_step(u):
    return u - 0.125 * u * ((u - jnp.roll(u, 1, 0)) + (jnp.roll(u, -1, 0) - u))


CONVOLUTION = [(5, 5, 8, 32), (3, 3, 32, 32), (3, 3, 32, 16), (4, 64, 64, 8), (4, 32, 32, 16)]
TRANSFORMER = [(WIDTH, 3, HEADS, KEY), (HEADS, KEY, WIDTH), (WIDTH, HIDDEN), (HIDDEN, WIDTH), (WIDTH,), (WIDTH,)] * LAYERS
TRANSFORMER += [(VOCABULARY, WIDTH), (BATCH, LENGTH)]
ATTENTION = [(64, 4, 16)] * 3 + [(4, 16, 64), (2, 256, 64)]

# what: the program, its function, the number of weights, shapes of its inputs, the mesh, and how inputs lie
CASES = {
    "transformer, batch cut": ("transformer", transformer, 13, TRANSFORMER, "data=8", ["_"] * 13 + ["data"]),
    "transformer, batch and heads cut": (
        "transformer", transformer, 13, TRANSFORMER, "data=4,model=2",
        ["_,_,model", "model", "_,model", "model", "_", "_"] * LAYERS + ["_", "data"]),
    "transformer, weights and batch cut alike": (
        "transformer", transformer, 13, TRANSFORMER, "data=8", ["data", "data", "data", "data", "data", "data"] * LAYERS + ["data", "data"]),
    "MLP, activations constrained": (
        "mlp", mlp, 2, [(256, 1024), (1024, 256), (512, 256), (512, 256)], "data=4,model=2", ["_,model", "model", "data", "data"]),
    "attention, positions cut": ("attention", attention, 4, ATTENTION, "seq=8", ["_"] * 4 + ["_,seq"]),
    "mixture of experts": (
        "moe", moe, 3, [(64, 8), (8, 64, 256), (8, 256, 64), (8, 64, 64), (8, 64, 64)], "expert=8",
        ["_", "expert", "expert", "expert", "expert"]),
    "convolutions, rows cut": ("convolution", convolution, 3, CONVOLUTION, "row=8", ["_"] * 3 + ["_,row"] * 2),
    "convolutions, batch and rows cut": ("convolution", convolution, 3, CONVOLUTION, "data=2,row=4", ["_"] * 3 + ["data,row"] * 2),
    "convolutions and a pool, rows and columns cut": (
        "pooled", pooled, 2, [(3, 3, 8, 32), (3, 3, 32, 16), (4, 64, 64, 8), (4, 32, 32, 16)], "row=4,column=2", ["_"] * 2 + ["_,row,column"] * 2),
    "heat equation in a loop, rows cut": ("heat", looped(heat_step), 1, [(512, 512)] * 2, "row=8", ["row"] * 2),
    "wave round a ring in a loop, rows cut": ("ring", looped(ring_step), 1, [(512, 512)] * 2, "row=8", ["row"] * 2),
}


# --- XLA's bytes ---

BYTES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8, "u64": 8, "f64": 8}
KINDS = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"


def size_of(shapes):
    return sum(BYTES[dtype] * int(np.prod([int(d) for d in dims.split(",") if d] or [1])) for dtype, dims in re.findall(r"(\w+)\[([\d,]*)\]", shapes))


def group_size(line):
    listed = re.search(r"replica_groups=\{\{([\d,]*)\}", line)
    if listed:
        return len(listed[1].split(","))
    counted = re.search(r"replica_groups=\[\d+,(\d+)\]", line)
    if counted:
        return int(counted[1])
    axes = re.search(r"replica_groups=mesh\[([^\]]*)\] ?\{([^}]*)\}", line)
    if axes is None:
        raise ValueError(f"groups of which form? {line}")
    sizes = dict(re.findall(r"'(\w+)'=(\d+)", axes[1]))
    parts = re.findall(r"'(\w+)'(?::\(\d+\)(\d+))?", axes[2])  # 'axis':(1)2 is a part of an axis, of size 2
    return int(np.prod([int(size or sizes[name]) for name, size in parts]))


def moved(kind, size, line):
    if kind == "collective-permute":
        return size
    n = group_size(line)
    return {"all-reduce": 2 * size, "all-gather": size, "all-to-all": size, "reduce-scatter": n * size}[kind] * (n - 1) / n


def xla_bytes(hlo):
    """By kind. A computation's own, and those of what it calls: loops as often as XLA knows that they run."""
    own, calls, name, entry = {}, {}, None, None
    for line in hlo.splitlines():
        begins = re.match(r"(ENTRY )?%?([\w.\-]+) \(.*\{$", line)
        if begins:
            name = begins[2]
            own[name], calls[name] = {}, []
            entry = name if begins[1] else entry
            continue
        found = re.match(rf"\s+(?:ROOT )?%?[\w.\-]+ = (.*?) ({KINDS})(-start)?\(", line)
        if found:
            assert not found[3], line  # XLA's CPU has none
            own[name][found[2]] = own[name].get(found[2], 0) + moved(found[2], size_of(found[1]), line)
        trips = re.search(r'"known_trip_count":\{"n":"(\d+)"', line)
        for called in re.findall(r"(?:body|calls|to_apply|true_computation|false_computation)=%?([\w.\-]+)", line):
            calls[name].append((called, int(trips[1]) if trips else 1))

    def total(computation):
        sums = dict(own[computation])
        for called, times in calls[computation]:
            for kind, size in total(called).items():
                sums[kind] = sums.get(kind, 0) + times * size
        return sums

    return total(entry)


def theirs(function, weights, mesh, specs, inputs):
    lie = [NamedSharding(mesh, spec_of(spec)) for spec in specs]
    gradients = jax.value_and_grad(lambda *all: function(mesh, *all), tuple(range(weights)))
    jitted = jax.jit(gradients, in_shardings=lie, out_shardings=(NamedSharding(mesh, PartitionSpec()), tuple(lie[:weights])))
    compiled = jitted.lower(*inputs).compile()
    text = compiled.as_text()
    if os.environ.get("SHOW"):
        print(text)
    loss, found = compiled(*(jax.device_put(x, s) for x, s in zip(inputs, lie)))
    return xla_bytes(text), [np.asarray(loss), *map(np.asarray, found)]


# --- Ours ---

PRIMITIVES = {"psum": "all-reduce", "pmax": "all-reduce", "pmin": "all-reduce", "all_gather": "all-gather", "all_gather_invariant": "all-gather",
              "psum_scatter": "reduce-scatter", "all_to_all": "all-to-all", "ppermute": "collective-permute"}


def our_bytes(cost):
    """By kind, from the table: bytes, times, members, primitive, "over", axes."""
    sums = {}
    for size, primitive in re.findall(r"^ *(\d+) +\d+ +\d+ +(\w+) over", cost, re.M):
        kind = PRIMITIVES[primitive]
        sums[kind] = sums.get(kind, 0) + int(size)
    return sums


def ours(program, weights, mesh, specs, inputs, folder):
    axle, text = f"{BUILD}/axle", folder / "program.axle"
    text.write_text(subprocess.run([f"{BUILD}/bench/global", program], check=True, capture_output=True, text=True).stdout)
    laid = [f"--mesh={mesh}", *(f"--in-sharding={i}={spec}" for i, spec in enumerate(specs))]
    laid += ["--out-sharding=0=", *(f"--out-sharding={1 + i}={spec}" for i, spec in enumerate(specs[:weights]))]
    cost = subprocess.run([axle, "show", text, "--cost", *laid], check=True, capture_output=True, text=True).stdout
    if os.environ.get("SHOW"):
        print(cost)
    for i, x in enumerate(inputs):
        np.save(folder / f"in{i}.npy", x)
    run = [axle, "run", text, *laid, *(f"--in={i}={folder}/in{i}.npy" for i in range(len(inputs)))]
    subprocess.run(run + [f"--out={k}={folder}/out{k}.npy" for k in range(1 + weights)], check=True)
    return our_bytes(cost), [np.load(folder / f"out{k}.npy") for k in range(1 + weights)]


def inputs_of(shapes, program):
    rng = np.random.default_rng(1)
    made = [rng.standard_normal(shape, np.float32) * np.float32(0.1 if len(shape) > 1 else 1) for shape in shapes]
    if program == "transformer":
        made[-1] = rng.integers(0, VOCABULARY, shapes[-1], np.int32)
    return made


def row(*cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def main():
    bad = []
    kinds = KINDS.split("|")
    row("program", "mesh", "", *kinds, "bytes", "ours of theirs")
    row(*["---"] * (5 + len(kinds)))
    for what in sys.argv[1:] or CASES:
        program, function, weights, shapes, mesh, specs = CASES[what]
        inputs = inputs_of(shapes, program)
        with tempfile.TemporaryDirectory() as folder:
            mine, got = ours(program, weights, mesh, specs, inputs, Path(folder))
        xla, want = theirs(function, weights, mesh_of(mesh), specs, inputs)
        apart = max(float(np.max(np.abs(a - b)) / np.max(np.abs(b))) for a, b in zip(got, want))
        share = sum(mine.values()) / max(1, sum(xla.values()))
        row(what, mesh.replace(",", ", "), "ours", *(f"{mine.get(k, 0):,.0f}" for k in kinds), f"{sum(mine.values()):,.0f}", f"{share:.2f}")
        row("", "", "XLA", *(f"{xla.get(k, 0):,.0f}" for k in kinds), f"{sum(xla.values()):,.0f}", "")
        if not apart < 1e-4:
            bad.append(f"{what}: results differ by {apart:.1e} of the largest")
        if share > 1:
            bad.append(f"{what}: {share:.2f} of the bytes that XLA moves")
    print(*bad, sep="\n", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
