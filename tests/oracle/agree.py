"""Runs a module of JAX by Axle, with its arguments, and says how far its results are from XLA's."""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np


def leaves(tree):
    """Of a list of NumPy's arrays, those, which needs no JAX."""
    if isinstance(tree, list) and all(isinstance(a, np.ndarray) for a in tree):
        return tree
    import jax

    return jax.tree.leaves(tree)


def is_float(dtype):
    try:
        return dtype.kind != "c" and ml_dtypes.finfo(dtype) is not None
    except ValueError:
        return False


def distance(got, want):
    """In epsilons of the dtype, in eighths of them for dtypes of fewer than 32 bits, of the largest element; integers must be equal."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return np.inf
    if not is_float(want.dtype) and want.dtype.kind != "c":
        return 0 if np.array_equal(got, want) else np.inf
    narrow = want.dtype.itemsize < 4
    eps = float(ml_dtypes.finfo(want.dtype).eps) / (8 if narrow else 1)
    if narrow:
        got, want = got.astype(np.float32), want.astype(np.float32)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    finite = np.abs(want[np.isfinite(want)])
    with np.errstate(all="ignore"):
        apart = np.where(same, 0, np.abs(got - want)) / (max(1, finite.max(initial=0)) * eps)
    return float(np.nan_to_num(apart, nan=np.inf).max(initial=0))


def moved(function, args, want):
    """How far the results are from those of arguments that differ by an epsilon, in epsilons as above: a model of many layers, or one
    that divides by what nearly vanishes, makes more of a rounding."""
    import jax

    r = np.random.default_rng(3)
    most = 0
    for _ in range(3):
        near = jax.tree.map(lambda a: shaken(r, a), args)
        got = [np.asarray(a) for a in leaves(function(*near))]
        most = max([most, *(distance(g, k) for g, k in zip(got, want))])
    return most


def shaken(r, array):
    array = np.asarray(array)
    if not is_float(array.dtype):
        return array
    return (array * (1 + float(ml_dtypes.finfo(array.dtype).eps) * r.choice([-1, 1], array.shape))).astype(array.dtype)


def disagreement(axle, module, args, want, tolerance=lambda: 32):
    """None if the results of the module, its text or bytecode, are those wanted, within 32 epsilons, or what `tolerance` says; else
    what differs, or the error's first line."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "m.mlir").write_bytes(module if isinstance(module, bytes) else module.encode())
        words = []
        for i, a in enumerate(leaves(args)):
            np.save(f"{folder}/in{i}.npy", a)
            words.append(f"--in={i}={folder}/in{i}.npy")
        words += [f"--out={i}={folder}/out{i}.npy" for i in range(len(want))]
        done = subprocess.run([axle, "run", f"{folder}/m.mlir", *words], capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            return "".join(done.stderr.replace(folder + "/", "").splitlines()[:1]) or f"exit {done.returncode}"
        got = [np.load(f"{folder}/out{i}.npy") for i in range(len(want))]
        got = [g.view(k.dtype) if g.dtype.kind == "V" else g for g, k in zip(got, want)]
        if any(g.shape != k.shape or g.dtype != k.dtype for g, k in zip(got, want)):
            return "results differ in shape or type"
        apart = max([distance(g, k) for g, k in zip(got, want)], default=0)
        if apart <= 32 or apart <= (most := tolerance()):  # infinite where an epsilon turns a choice, as a histogram's of a number at an edge
            return None
        return f"results differ: {apart:.3g} epsilons" + (f", and {most:.3g} may be" if most > 32 else "")


# --- The scripts that compare modules with those who wrote them ---


def judge(keep, name, modules, why):
    """Of (form, module, what else) each: keeps it in the folder `keep`, if that is not None, and says what why(module, what else) finds.
    Returns the number of modules, and of those that disagree."""
    failed = 0
    for form, module, *rest in modules:
        if keep:
            path = Path(keep) / f"{re.sub('[^a-zA-Z0-9]+', '_', name)}.{form}"
            path.write_bytes(module if isinstance(module, bytes) else module.encode())
        found = why(module, *rest)
        failed += found is not None
        if found is not None:
            print(f"{name}, {form}: {found}", flush=True)
    return len(modules), failed


def main(of, cases, run, least):
    """Runs run(options, *case) of those of cases(only), and ends the process: without success if a module disagrees, or if of all cases there are
    fewer than `least`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--axle", default="build/axle")
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", help="a folder for the modules")
    options = parser.parse_args()
    count = failed = 0
    for case in cases(options.only):
        counts = run(options, *case)
        count, failed = count + counts[0], failed + counts[1]
    print(f"{count} modules of {of}, {failed} disagree")
    sys.exit(failed > 0 or count < (1 if options.only else least))
