"""Computes the vectors: inputs, and JAX's values, tangents and gradients for them, one .npz a group.

  make.py [--seed N] [--only GROUP] FOLDER        tests/vectors holds those of seed 0

Arrays are named CASE.VARIANT.KINDk: `in`, `out`, `jvp` (a tangent for each float result, along weights(.., TANGENT) for every
float input), `grad` (a cotangent for each float input, of weights(.., COTANGENT) for every float result). bf16 is stored as '<V2'.
Inputs depend on the seed and the case's name only.
"""

import argparse
import importlib
import os
import sys
import zlib
from pathlib import Path

GROUPS = "pointwise arrays parts windows indexing einsum linalg composites nn numpy_functions transforms collectives groups ragged reduced mesh partial pmap control derivatives custom checkpoint mlp kernels kernel_transforms reductions cumulative".split()
GROUPS += ["special"]
GROUPS += ["solvers"]
GROUPS += ["fft"]
GROUPS += ["incomplete"]
GROUPS += ["random_draws", "keys"]
GROUPS += ["complex_numbers"]
TANGENT, COTANGENT = 3, 5

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = (  # roundings where the program says them, and nowhere else
    "--xla_force_host_platform_device_count=8 --xla_allow_excess_precision=false --xla_cpu_enable_fast_math=false"
)
sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))

import jax  # noqa: E402
import numpy as np  # noqa: E402

from case import Variant, is_complex, is_float, safe_name  # noqa: E402

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_default_matmul_precision", "highest")


def weights(like, k, salt):
    """Numbers that every dtype holds, and that vectors_test.c makes alike."""
    if is_complex(like.dtype):
        return weights(np.empty(2 * like.size, like.real.dtype), k, salt).view(like.dtype).reshape(like.shape)
    i = np.arange(like.size)
    return (((i * 37 + k * 11 + salt) % 17 - 8) / 8).astype(like.dtype).reshape(like.shape)


def callable_of(case, variant):
    """The case as a function of its operands, which gives a tuple."""
    function = case.function
    if case.specs or case.with_variant:
        function = lambda *operands: case.function(variant, *operands)
    if case.specs:
        ins, outs = (side.split() for side in case.specs.split(">"))
        mesh = jax.sharding.Mesh(np.array(jax.devices()[: variant.devices]).reshape(tuple(variant.mesh.values())), tuple(variant.mesh))
        out_specs = tuple(variant.spec(word) for word in outs)
        inner, function = function, None
        mapped = jax.shard_map(
            lambda *operands: as_tuple(inner(*operands)), mesh=mesh, in_specs=tuple(variant.spec(word) for word in ins),
            out_specs=out_specs, check_vma=not case.unchecked,
        )  # fmt: skip
        return jax.jit(mapped)
    return (lambda *operands: as_tuple(jax.jit(function)(*operands))) if variant.mesh else lambda *operands: as_tuple(function(*operands))


def as_tuple(result):
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def derivatives(case, function, inputs, outputs):
    """jvp's tangents and vjp's cotangents."""
    wrt = [k for k, x in enumerate(inputs) if is_float(x.dtype) or is_complex(x.dtype)]
    float_outs = [k for k, y in enumerate(outputs) if is_float(y.dtype) or is_complex(y.dtype)]
    if not wrt or not float_outs:
        return [], []

    def floats(*varied):
        operands = list(inputs)
        for k, x in zip(wrt, varied):
            operands[k] = x
        results = function(*operands)
        return tuple(results[k] for k in float_outs)

    varied = [inputs[k] for k in wrt]
    tangents, cotangents = [], []
    if "j" in case.modes:
        along = [weights(inputs[k], k, TANGENT) for k in wrt]
        tangents = jax.jvp(floats, tuple(varied), tuple(along))[1]
    if "g" in case.modes:
        of = tuple(weights(np.asarray(outputs[k]), k, COTANGENT) for k in float_outs)
        cotangents = jax.vjp(floats, *varied)[1](of)
    return tangents, cotangents


def storable(array):
    array = np.asarray(array)
    return array.view("V2") if array.dtype.name == "bfloat16" else array


def compute(case, text, seed):
    variant = Variant(text)
    random = np.random.default_rng([seed, zlib.crc32(f"{case.name}.{text}".encode())])
    inputs = [make(random, variant) for make in case.inputs]
    function = callable_of(case, variant)
    outputs = function(*inputs)
    tangents, cotangents = derivatives(case, function, inputs, outputs)
    arrays = {}
    for kind, group in (("in", inputs), ("out", outputs), ("jvp", tangents), ("grad", cotangents)):
        for k, array in enumerate(group):
            arrays[f"{case.name}.{text}.{kind}{k}"] = storable(array)
    return arrays


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=GROUPS)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    for group in [options.only] if options.only else GROUPS:
        cases = importlib.import_module(group).CASES
        if len({safe_name(case.name) for case in cases}) != len(cases):
            raise ValueError(f"{group}: two cases have one name")
        arrays = {}
        for case in cases:
            for text in case.variants.split():
                try:
                    arrays.update(compute(case, text, options.seed))
                except Exception as error:
                    raise RuntimeError(f"{group}: {case.name}.{text}") from error
        np.savez_compressed(options.folder / f"{group}.npz", **arrays)
        print(f"{group}: {len(cases)} cases, {len(arrays)} arrays")


if __name__ == "__main__":
    main()
