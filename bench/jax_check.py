"""jax_check.py OURS: the losses and gradients that build/bench/ours computes beside JAX's, from the same weights and data.

Prints, for each model, the loss's relative difference and the largest difference in a gradient relative to that gradient's
largest element. Fails where one is above 1e-3. Elements at a kink of the model are left out: they depend on how a zero was rounded."""

import os
import subprocess
import sys
import tempfile

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np
from jax import shard_map
from jax.sharding import Mesh, PartitionSpec as P

import jax_models


def theirs(model, weights, data):
    mesh = Mesh(np.array(jax.devices()).reshape(model.mesh[0]), model.mesh[1])
    both = jax.value_and_grad(model.loss)
    if not model.is_global:
        both = shard_map(both, mesh=mesh, in_specs=(model.weight_specs, model.data_specs), out_specs=(P(), model.weight_specs))
    loss, slopes = jax.jit(both)(weights, data)
    return {"loss": np.asarray(loss)} | {name: np.asarray(g) for name, g in slopes.items()}


def ours(program, name, arrays):
    with tempfile.TemporaryDirectory() as folder:
        given, got = os.path.join(folder, "in.npz"), os.path.join(folder, "out.npz")
        np.savez(given, **arrays)
        subprocess.run([program, "gradients", name, given, got], check=True)
        with np.load(got) as results:
            return {key: results[key] for key in results.files}


good = True
for name, make in jax_models.MODELS.items():
    model = make()
    weights, data = model.make(np.random.default_rng(7))
    want, got = theirs(model, weights, data), ours(sys.argv[1], name, weights | data)
    kinks = model.kinks(weights, data)
    off = {key: float((np.abs(got[key] - want[key]) * ~kinks.get(key, np.False_)).max() / np.abs(want[key]).max()) for key in want}
    left_out = max((float(np.mean(mask)) for mask in kinks.values()), default=0)
    worst = max((key for key in off if key != "loss"), key=off.get)
    good = good and max(off.values()) < 1e-3
    print(f"{name}: loss {float(got['loss']):.6f}, off by {off['loss']:.1e}; gradients off by at most {off[worst]:.1e} ({worst})"
          + (f", without the {left_out:.1%} at kinks" if left_out > 0 else ""))
sys.exit(0 if good else 1)
