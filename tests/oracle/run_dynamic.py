"""Runs StableHLO modules whose @main leaves extents open, by Axle and by XLA on CPU, and says which do not agree: those of
openxla/stablehlo's testdata/dynamic, which check nothing themselves.

  run_dynamic.py FOLDER [--axle build/axle] [--only REGEX] [--extents 3,5] [--list]

Each extent that is open, and each i64 scalar among the first arguments, which says one, is bound to a number of --extents, one after
the other. Inputs are random. XLA gets the module with @main called from a function of shapes that are known, and refines the rest.
"""

import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_allow_excess_precision=false"
import jax  # noqa: E402
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import run_stablehlo  # noqa: E402
from jax._src.interpreters import mlir  # noqa: E402
from jax._src.lib import _jax  # noqa: E402
from jaxlib.mlir import ir  # noqa: E402

jax.config.update("jax_enable_x64", True)
DTYPES = {"i1": np.bool_, "bf16": ml_dtypes.bfloat16, "complex<f32>": np.complex64, "complex<f64>": np.complex128, "f16": np.float16,
          "f32": np.float32, "f64": np.float64, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "ui8": np.uint8,
          "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64}


def arguments_of(text):
    """(name, extents with None for open ones, element) of each argument of @main."""
    head = re.search(r"@main\((.*?)\) ->", text, re.S).group(1)
    found = re.findall(r"%(\w+): tensor<((?:[\d?]+x)*)([^>]+>?)>(?:[ ,{]|$)", head)
    return [(n, [None if e == "?" else int(e) for e in d.split("x") if e], t) for n, d, t in found]


def for_xla(text, arguments, extent):
    """@main, called by a function of shapes that are known."""
    results = re.search(r"@main\(.*?\) -> (.*?) \{\n", text, re.S).group(1)
    types = re.findall(r"tensor<[^<>]+(?:<[^>]+>)?>", results)
    open_types = [f"tensor<{''.join(('?' if e is None else str(e)) + 'x' for e in d)}{t}>" for _, d, t in arguments]
    shapes = [f"tensor<{''.join(f'{extent if e is None else e}x' for e in d)}{t}>" for _, d, t in arguments]
    head, body, operands = [], [], []
    for i, (_, dims, element) in enumerate(arguments):
        if element == "i64" and not dims:
            body.append(f"%c{i} = stablehlo.constant dense<{extent}> : tensor<i64>")
        else:
            head.append(f"%a{i}: {shapes[i]}")
            body.append(f"%c{i} = stablehlo.reshape %a{i} : ({shapes[i]}) -> {shapes[i]}" if shapes[i] == open_types[i]
                        else f"%c{i} = stablehlo.convert %a{i} : ({shapes[i]}) -> {open_types[i]}")
        operands.append(f"%c{i}")
    names = ", ".join(f"%r#{k}" if len(types) > 1 else "%r" for k in range(len(types)))
    many = f":{len(types)}" if len(types) > 1 else ""
    body.append(f"%r{many} = func.call @open({', '.join(operands)}) : ({', '.join(open_types)}) -> ({', '.join(types)})")
    body.append(f"func.return {names} : {', '.join(types)}")
    main = f"func.func public @main({', '.join(head)}) -> ({', '.join(types)}) {{\n  " + "\n  ".join(body) + "\n}\n"
    text = re.sub(r"func\.func (public )?@main\(", "func.func private @open(", text).replace("@main(", "@open(")
    text = re.sub(r'mhlo\.sharding = ""', "", text)
    return re.sub(r"(module[^\n]*\{\n)", lambda m: m.group(1) + main, text, count=1)


def by_xla(text, inputs):
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        refined = _jax.mlir.refine_polymorphic_shapes(mlir.module_to_bytecode(module), True, True)
        refined = str(ir.Module.parse(refined))
    executable, devices = run_stablehlo.compile_module(refined, 1)
    return [r[0] for r in run_stablehlo.run(executable, devices, [x[None] for x in inputs])]


def numbers(r, shape, element):
    dtype = np.dtype(DTYPES[element])
    if dtype.kind in "iu":
        return r.integers(0, 3, shape).astype(dtype)
    if dtype.kind == "b":
        return r.random(shape) < 0.5
    if dtype.kind == "c":
        return (r.standard_normal(shape) + 1j * r.standard_normal(shape)).astype(dtype)
    return np.asarray(r.standard_normal(shape)).astype(dtype)


def by_axle(axle, path, arguments, extent, inputs, count, folder):
    command = [axle, "run", path, "--subnormals=keep"]
    given = iter(inputs)
    for name, dims, element in arguments:
        if element == "i64" and not dims:
            command += ["--dim", f"{name}={extent}"]
            continue
        file = f"{folder}/{name}.npy"
        array = next(given)
        np.save(file, array.view("V2") if array.dtype == ml_dtypes.bfloat16 else array)
        command += ["--in", f"{name}={file}"]
    for k in range(count):
        command += ["--out", f"{k}={folder}/out{k}.npy"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise RuntimeError("".join(done.stderr.splitlines()[:1]))
    return [np.load(f"{folder}/out{k}.npy") for k in range(count)]


def difference(got, want):
    """Nothing if they agree within 32 epsilons of the largest element."""
    if got.dtype.kind == "V":
        got = got.view(ml_dtypes.bfloat16)
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"is {got.dtype}{got.shape}, and XLA's {want.dtype}{want.shape}"
    if want.dtype.kind in "iub":
        return None if np.array_equal(got, want) else "other integers"
    epsilon = float(ml_dtypes.finfo(want.dtype).eps)
    a, b = (x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in (got, want))
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    scale = np.max(np.abs(b[np.isfinite(b)]), initial=1e-30)
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0, np.abs(a - b))
    return None if np.all(apart <= 32 * epsilon * scale) else f"{np.nanmax(apart)} apart"


def case(axle, path, extent):
    """Nothing if the two agree; else who fails and why."""
    text = path.read_text()
    arguments = arguments_of(text)
    r = np.random.default_rng(7)
    shapes = [(tuple(extent if e is None else e for e in d), t) for _, d, t in arguments if d or t != "i64"]
    inputs = [numbers(r, s, t) for s, t in shapes]
    try:
        want = by_xla(for_xla(text, arguments, extent), inputs)
    except Exception as e:  # noqa: BLE001
        return "XLA: " + str(e).strip().splitlines()[0][:160]
    with tempfile.TemporaryDirectory() as folder:
        try:
            got = by_axle(axle, str(path), arguments, extent, inputs, len(want), folder)
        except (RuntimeError, subprocess.TimeoutExpired) as e:
            return "Axle: " + str(e)[:300]
    differences = [d for d in map(difference, got, want) if d is not None]
    return "differs: " + differences[0] if differences else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--axle", default="build/axle")
    parser.add_argument("--only", default="")
    parser.add_argument("--extents", default="3,5")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    kinds, count = collections.Counter(), 0
    for path in sorted(options.folder.glob("*.mlir")):
        if not re.search(options.only, path.name) or "@main(" not in path.read_text():
            continue
        for extent in map(int, options.extents.split(",")):
            why = case(options.axle, path, extent)
            count += 1
            kinds[why.split(":")[0] if why else "agree"] += 1
            if why and options.list:
                print(f"{path.name} with {extent}: {why}", flush=True)
    print(f"{count} cases: " + ", ".join(f"{n} {what}" for what, n in kinds.most_common()))
    sys.exit(kinds["agree"] != count)


main()
