"""Runs with XLA the modules that vectors_test exported, and compares the results with Axle's.

  compare_stablehlo.py FOLDER

FOLDER/cases.txt has a line a module: its number, the case, the mode, the tolerance in epsilons of the dtype, and whether that is
of the largest element of a result (or of 1, if that is larger) or of each. Files: N.mlir, N.in.npz, N.want.npz, with arrays of
shape [devices, the shape on one..]. XLA takes subnormal numbers of bf16 and f32 for zero: what is smaller is as good as zero.
"""

import os
import sys
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["XLA_FLAGS"] = (  # roundings where the module says them, and nowhere else
    "--xla_force_host_platform_device_count=8 --xla_allow_excess_precision=false --xla_cpu_enable_fast_math=false"
)

import jax  # noqa: E402
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
from run_stablehlo import compile_module, devices_of, from_file, run  # noqa: E402

jax.config.update("jax_enable_x64", True)


def arrays(path):
    with np.load(path) as archive:
        return [from_file(archive[str(i)]) for i in range(len(archive.files))]


def distance(got, want, scaled):
    """The largest distance between elements, in epsilons; between the parts of complex numbers in those of their sizes."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return np.inf
    if want.dtype.kind in "iub":
        return 0 if np.array_equal(got, want) else np.inf
    sizes = 0
    if want.dtype.kind == "c":
        sizes = np.repeat(np.nan_to_num(np.abs(want.reshape(-1)), nan=0, posinf=0), 2)
        got, want = (np.ascontiguousarray(x).reshape(-1).view(want.real.dtype) for x in (got, want))
    info = ml_dtypes.finfo(want.dtype)
    a, b = got.astype(np.float64), want.astype(np.float64)
    finite = np.abs(b[np.isfinite(b)])
    scale = max(1, finite.max(initial=0)) if scaled else 0
    with np.errstate(all="ignore"):
        apart = np.abs(a - b)
        size = np.maximum(np.maximum(scale, sizes), np.maximum(np.abs(a), np.abs(b)))
        epsilon = float(info.eps) * (8 if want.dtype == np.float64 else 1)  # as in vectors_test.c
        steps = np.where(np.isinf(size), np.inf, apart / (size * epsilon))
    same = (a == b) | (np.isnan(a) & np.isnan(b)) | (apart <= float(info.smallest_normal))
    return float(np.max(np.where(same, 0, np.where(np.isnan(steps), np.inf, steps)), initial=0))


def parse(text):
    """What StableHLO's verifier has against the module."""
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir

    with mlir.make_ir_context():
        return [] if ir.Module.parse(text).operation.verify() else ["is no valid module"]


def refused(text, words):
    """Differences of a module that XLA reads, verifies and makes ready for CPU, and only then cannot run there, saying `words`."""
    try:
        compile_module(text, devices_of(text))
    except Exception as error:
        return [] if words in str(error) else ["; ".join(str(error).splitlines()[:3])]
    return ["XLA can run it now: compare the results"]


def compare(folder, number, tolerance, scaled):
    text = (folder / f"{number}.mlir").read_text(encoding="utf-8")
    if "stablehlo.collective_broadcast" in text:  # XLA cannot run it on CPU
        return parse(text)
    if '"ragged_all_to_all"' in text:
        return refused(text, "`ragged-all-to-all` is not supported by XLA:CPU")
    executable, devices = compile_module(text, devices_of(text))
    results = run(executable, devices, arrays(folder / f"{number}.in.npz"))
    wanted = arrays(folder / f"{number}.want.npz")
    if len(results) != len(wanted):
        return [f"{len(results)} results, not {len(wanted)}"]
    distances = [distance(np.asarray(got), want, scaled) for got, want in zip(results, wanted)]
    return [f"result {k} is {d:.3g} epsilons away" for k, d in enumerate(distances) if not d <= tolerance]


def main(folder):
    modules = differing = 0
    for line in (folder / "cases.txt").read_text(encoding="utf-8").splitlines():
        number, case, mode, tolerance, scaled = line.split()
        try:
            differences = compare(folder, number, float(tolerance), scaled == "1")
        except Exception as error:  # of XLA's compiler or runtime: its first lines say what
            differences = ["; ".join(str(error).splitlines()[:3])]
        modules += 1
        differing += bool(differences)
        for difference in differences:
            print(f"{case}: {mode}: {folder / number}.mlir: XLA: {difference}", flush=True)
    print(f"StableHLO: {modules} modules run by XLA, {differing} differ")
    return differing == 0 and modules > 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(0 if main(Path(sys.argv[1])) else 1)
