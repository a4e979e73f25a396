"""Reads modules of JAX by Axle, writes them again as StableHLO, has XLA run what is written, and says which give other results.

  roundtrip.py [--axle build/axle] [--only REGEX] [--of functions|models|devices] [--bytecode]

The functions are those of import_jax.py, the models those of import_models.py, on one device and on eight, and the functions on eight
devices those of import_devices.py. --bytecode: as an artifact of VHLO 1.0.0, or of the current version for what that has not. What is
written is one device's module, and its arguments are cut as `axle show --pass partition` says.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax  # noqa: E402
import numpy as np  # noqa: E402
from agree import distance, moved  # noqa: E402
from forms import lower, mlir  # noqa: E402
from jax._src.interpreters import mlir as interpreters  # noqa: E402
from jaxlib.mlir.dialects import stablehlo  # noqa: E402
from run_stablehlo import compile_module, devices_of, run  # noqa: E402


def axle(options, *words):
    """What the command prints; its first line of errors is raised."""
    done = subprocess.run([options.axle, *words], capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(re.sub(r"\S*/m\.mlir", "m.mlir", "".join(done.stderr.splitlines()[:1])) or f"exit {done.returncode}")
    return done.stdout


def written(options, path):
    if not options.bytecode:
        return axle(options, "show", path, "--pass=stablehlo")
    for target in ("1.0.0", stablehlo.get_current_version()):
        try:
            axle(options, "show", path, "--pass=stablehlo", f"--bytecode={path}bc", f"--target={target}")
            break
        except RuntimeError as error:
            if target != "1.0.0":
                raise error
    with interpreters.make_ir_context():
        return interpreters.module_to_string(mlir.deserialize_portable_artifact(Path(f"{path}bc").read_bytes()))


# --- Arguments and results on several devices ---


def specs(text, which):
    """For each argument the axes of each dimension."""
    inner = re.search(rf"{which}=\((.*?)\)\n", text).group(1)
    dims = [re.findall(r"\([^)]*\)|[^, ()]+", spec) for spec in re.findall(r"P\(((?:[^()]|\([^)]*\))*)\)", inner)]
    return [[re.findall(r"\w+", d) if d != "_" and d != "None" else [] for d in spec] for spec in dims]


def place(mesh, spec, shape, device):
    """Where the device's part is: slices, and the parts' sizes, of which the last may hang over."""
    at, found = {}, device
    for axis, size in reversed(mesh):
        at[axis], found = found % size, found // size
    slices = []
    for d, extent in enumerate(shape):
        index, count = 0, 1
        for axis in spec[d] if d < len(spec) else []:
            index, count = index * dict(mesh)[axis] + at[axis], count * dict(mesh)[axis]
        if extent % count:
            raise RuntimeError(f"not compared: {extent} over {count} devices")
        slices.append(slice(index * extent // count, (index + 1) * extent // count))
    return tuple(slices)


def by_devices(options, path, text, args, want):
    """The results of XLA's run, put together."""
    count = devices_of(text)
    executable, devices = compile_module(text, count)
    if count == 1:
        return [a[0] for a in run(executable, devices, [np.asarray(a)[None] for a in args])]
    head = axle(options, "show", path, "--pass=partition").split("body={")[0]
    mesh = [(axis, int(size)) for axis, size in re.findall(r"(\w+)=(\d+)", re.search(r"mesh=\((.*?)\)\n", head).group(1))]
    cut = [np.stack([np.asarray(a)[place(mesh, s, np.shape(a), k)] for k in range(count)]) for a, s in zip(args, specs(head, "in_specs"))]
    got = []
    for parts, spec, whole in zip(run(executable, devices, cut), specs(head, "out_specs"), want):
        result = np.zeros(whole.shape, whole.dtype)
        for k in reversed(range(count)):  # where devices differ in what should be one, the first counts
            result[place(mesh, spec, whole.shape, k)] = parts[k]
        got.append(result)
    return got


def disagreement(options, f, args, tolerance):
    lowered = lower(f, args)
    executable = lowered.compile()
    want = [np.asarray(a) for a in jax.tree.leaves(executable(*args))]
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/m.mlir"
        Path(path).write_text(lowered.as_text())
        try:
            got = by_devices(options, path, written(options, path), jax.tree.leaves(args), want)
        except Exception as error:  # noqa: BLE001 - of ours, or XLA's compiler or runtime
            return "; ".join(str(error).splitlines()[:2])[:400]
    apart = max([distance(np.asarray(g), k) for g, k in zip(got, want)], default=0)
    return None if apart <= 32 or apart <= tolerance(executable, want) else f"results differ: {apart:.3g} epsilons"


def all_cases(options):
    if options.of == "models":
        import import_models

        for name, model, kind in import_models.cases(options.only):
            import_models.prepare(model, kind)
            yield name, *import_models.case(model, kind)
        return
    if options.of == "devices":
        import import_devices

        cases = {name: import_devices.laid_out(*case) for name, case in import_devices.CASES.items()}
    else:
        import import_jax

        cases = {name: case for name, case in import_jax.CASES.items() if len(case) == 2}
    for name, (f, args) in cases.items():
        if re.search(options.only, name):
            yield name, f, args


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--axle", default="build/axle")
    parser.add_argument("--only", default="")
    parser.add_argument("--of", default="functions", choices=["functions", "models", "devices"])
    parser.add_argument("--bytecode", action="store_true")
    options = parser.parse_args()
    count = failed = 0
    for name, f, args in all_cases(options):
        try:
            why = disagreement(options, f, args, lambda executable, want, args=args: 8 * moved(executable, args, want))
        except Exception as error:  # noqa: BLE001 - JAX itself cannot
            print(f"{name}: left out: {str(error).splitlines()[0][:200]}", flush=True)
            continue
        count += 1
        failed += why is not None
        if why is not None:
            print(f"{name}: {why}", flush=True)
    print(f"{count} modules, read and written: {count - failed} agree, {failed} do not")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
