"""Computes what the tests of trees compare with: initialisers by JAX, optimisers and schedules by optax.

  make_trees.py [--seed N] FOLDER        writes FOLDER/trees.npz; tests/vectors holds those of seed 0. JAX 0.10, optax 0.2.8

init.RULE.DTYPE: jax.nn.initializers' RULE with fold_in(key(SEED), leaf), where leaf is the rule's place in INITIALIZERS.
bf16 is stored as '<V2'.
"""

import argparse
import os
import sys
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_allow_excess_precision=false --xla_cpu_enable_fast_math=false"
sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))

import jax  # noqa: E402
import numpy as np  # noqa: E402

from case import DTYPES  # noqa: E402

SEED, SHAPE = 20261120, (3, 5, 7)
init = jax.nn.initializers
INITIALIZERS = {
    "zeros": init.zeros, "ones": init.ones, "constant(1.1)": init.constant(1.1), "uniform": init.uniform(), "normal(2.5)": init.normal(2.5),
    "truncated_normal(0.3)": init.truncated_normal(0.3), "lecun_uniform": init.lecun_uniform(), "lecun_normal": init.lecun_normal(),
    "glorot_uniform": init.glorot_uniform(), "glorot_normal": init.glorot_normal(), "he_uniform": init.he_uniform(), "he_normal": init.he_normal(),
}  # fmt: skip


def storable(array):
    array = np.asarray(array)
    return array.view("V2") if array.dtype.name == "bfloat16" else array


def initial_values():
    arrays = {}
    with jax.enable_x64(True):
        for dtype in ("f32", "f64", "bf16", "f16"):
            for leaf, (rule, function) in enumerate(INITIALIZERS.items()):
                key = jax.random.fold_in(jax.random.key(SEED), leaf)
                arrays[f"init.{rule}.{dtype}"] = storable(function(key, SHAPE, DTYPES[dtype]))
    return arrays


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    arrays = initial_values()
    np.savez_compressed(options.folder / "trees.npz", **arrays)
    print(f"trees: {len(arrays)} arrays")


if __name__ == "__main__":
    main()
