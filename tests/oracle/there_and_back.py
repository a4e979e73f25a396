"""Writes programs of Axle as StableHLO, reads the modules again, and says which are other programs then, and which of these give other
results.

  there_and_back.py [FILE.axle..] [--axle build/axle] [--show]

Without files: the programs of tests/golden. Two programs are the same if `axle show` prints the same equations, places in the source left
out. Programs of several devices are written as one device's, so they are only read again. --show: where a program differs first.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np

DTYPES = {"bool": np.bool_, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64, "c64": np.complex64,
          "c128": np.complex128, **{f"{k[0]}{b}": np.dtype(f"{'u' if k == 'u' else ''}int{b}").type for k in "su" for b in (8, 16, 32, 64)}}  # fmt: skip


def axle(options, *words):
    done = subprocess.run([options.axle, *words], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise RuntimeError("".join(done.stderr.splitlines()[:1]) or f"exit {done.returncode}")
    return done.stdout


def equations(text):
    return re.sub(r' @"[^"]*"', "", text)


def numbers(r, dtype, dims):
    dtype = np.dtype(DTYPES[dtype])
    if dtype.kind == "b":
        return r.random(dims) < 0.5
    if dtype.kind in "iu":
        return r.integers(0, 3, dims).astype(dtype)
    if len(dims) == 2 and dims[0] == dims[1]:  # it may be factorised
        return (np.eye(dims[0]) * (dims[0] + 1) + np.minimum.outer(np.arange(dims[0]), np.arange(dims[0])) / dims[0]).astype(dtype)
    return np.asarray(r.uniform(0.1, 1, dims) * (1 + 0.5j if dtype.kind == "c" else 1)).astype(dtype)


def inputs_of(text, folder):
    head = re.search(r"lambda (.*?)\. let", text, re.S)
    r = np.random.default_rng(3)
    words = []
    for i, (dtype, dims) in enumerate(re.findall(r"\w+:(\w+)\[([\d,]*)\]", head.group(1)) if head else []):
        if dtype not in DTYPES:
            raise RuntimeError(f"not compared: an input of {dtype}")
        array = numbers(r, dtype, [int(d) for d in dims.split(",") if d])
        np.save(f"{folder}/in{i}.npy", array.view("V2") if array.dtype == ml_dtypes.bfloat16 else array)
        words.append(f"--in={i}={folder}/in{i}.npy")
    return words


def results(options, path, words, count, folder):
    """Arrays; keys are their words."""
    axle(options, "run", path, *words, *(f"--out={k}={folder}/out{k}.npy" for k in range(count)))
    return [np.load(f"{folder}/out{k}.npy") for k in range(count)]


def near(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind not in "fc":
        return a.tobytes() == b.tobytes()
    return np.allclose(a, b, rtol=32 * np.finfo(a.dtype).eps, atol=32 * np.finfo(a.dtype).eps, equal_nan=True)


def compare(options, path, folder):
    """'same', or what differs."""
    program, module = f"{folder}/p.axle", f"{folder}/m.mlir"
    Path(program).write_text(path.read_text().split("\n>>> ")[0] + "\n")
    before = equations(axle(options, "show", program))
    Path(module).write_text(axle(options, "show", program, "--pass=stablehlo"))
    after = equations(axle(options, "show", module))
    if before == after:
        return "same"
    differs = next((f": {a.strip()[:110]} became {b.strip()[:110]}" for a, b in zip(before.splitlines(), after.splitlines()) if a != b), "")
    differs = differs if options.show else ""
    if "num_partitions = 1 :" not in Path(module).read_text():
        return "of several devices" + differs
    words = inputs_of(before, folder)
    count = len(re.search(r" in \(([^()]*)\) }$", before.rstrip()).group(1).rstrip(",").split(","))
    same = all(map(near, results(options, program, words, count, folder), results(options, module, words, count, folder)))
    return ("other equations, the same results" if same else "OTHER RESULTS") + differs


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*")
    parser.add_argument("--axle", default="build/axle")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    failed = 0
    files = options.files or sorted(Path(__file__).parents[1].glob("golden/*.axle"))
    for path in map(Path, files):
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = compare(options, path, folder)
            except RuntimeError as error:
                found = str(error).replace(folder + "/", "")
        failed += "OTHER RESULTS" in found or found.startswith(("axle: error: m.mlir", "exit "))
        print(f"{path.name}: {found}", flush=True)
    print(f"{len(files)} programs, {failed} are not read again or give other results")
    sys.exit(failed > 0)


main()
