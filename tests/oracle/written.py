"""Writes modules of JAX as artifacts of VHLO by Axle, has XLA's libraries read, compile and run them, and says which are other than those
that StableHLO's own writer makes, or give other results.

  written.py [--axle build/axle] [--only REGEX] [--target VERSION] [--mixed]

The functions are those of import_jax.py. What CHLO has is made StableHLO first, as jax.export does; --mixed: it stays, beside VHLO.
"""

import argparse
import re
import subprocess
import sys
import tempfile

import import_jax
import jax
import numpy as np
from agree import distance
from jax._src.interpreters import mlir as interpreters
from jax._src.lib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
from run_stablehlo import compile_module, run


def read(artifact):
    with interpreters.make_ir_context():
        return interpreters.module_to_string(_jax.mlir.deserialize_portable_artifact(artifact), enable_debug_info=False)


def original(lowered, target, mixed):
    """The module that is to come back."""
    if not mixed:
        return read(_jax.mlir.serialize_portable_artifact(lowered.as_text(), target))
    with interpreters.make_ir_context():
        return read(stablehlo.serialize_portable_artifact(ir.Module.parse(lowered.as_text()), target, True))


def disagreement(axle, target, mixed, f, args):
    lowered = import_jax.lower(f, args)
    try:
        wanted = original(lowered, target, mixed)
    except Exception:  # noqa: BLE001 - of several kinds, by version
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/m.mlir"
        with open(path, "w") as file:
            file.write(wanted)
        words = [axle, "show", path, "--module", f"--bytecode={folder}/m.mlirbc", f"--target={target}{'+mixed' * mixed}"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            return "".join(done.stderr.replace(folder + "/", "").splitlines()[:1])
        with open(f"{folder}/m.mlirbc", "rb") as file:
            got = read(file.read())
    if got != wanted:
        pairs = [pair for pair in zip(got.splitlines(), wanted.splitlines()) if pair[0] != pair[1]]
        return f"other than StableHLO writes: {pairs[0][0].strip()[:150]}" if pairs else "longer or shorter"
    executable, devices = compile_module(got, 1)
    results = run(executable, devices, [np.asarray(a)[None] for a in jax.tree.leaves(args)])
    same = all(distance(np.asarray(a)[0], b) <= 32 for a, b in zip(results, expected(lowered, args)))
    return None if same else "other results"


def expected(lowered, args):
    return [np.asarray(a) for a in jax.tree.leaves(lowered.compile()(*args))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--axle", default="build/axle")
    parser.add_argument("--only", default="")
    parser.add_argument("--target", default="1.0.0")
    parser.add_argument("--mixed", action="store_true")
    options = parser.parse_args()
    names = [name for name, case in import_jax.CASES.items() if len(case) == 2 and re.search(options.only, name)]
    failed = 0
    for name in names:
        why = disagreement(options.axle, options.target, options.mixed, *import_jax.CASES[name])
        failed += why is not None
        if why is not None:
            print(f"{name}: {why}", flush=True)
    print(f"{len(names)} functions, VHLO {options.target}: {len(names) - failed} agree, {failed} do not")
    sys.exit(failed > 0)


main()
