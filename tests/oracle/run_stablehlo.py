"""Compiles a per-device StableHLO module for CPU devices with XLA, through jaxlib, and runs it once.

  run_stablehlo.py MODULE.mlir IN.npz OUT.npz

Run k of the module is device k's: partition k of mhlo.num_partitions. Input i is the array named str(i) of IN.npz, of shape
[devices, the parameter's shape..]; OUT.npz gets the results in the same form. bf16 arrays are stored as '<V2' (see axle/npy.h).
XLA on CPU takes subnormal bf16 and f32 for zero.
"""

import os
import re
import sys

import numpy as np


def devices_of(text):
    """mhlo.num_partitions of the module; 1 without it."""
    found = re.search(r"mhlo\.num_partitions\s*=\s*(\d+)", text)
    return int(found.group(1)) if found else 1


def compile_module(text, count):
    import jax
    from jax._src.lib import xla_client
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir

    if "lapack_" in text:  # which jaxlib loads when a function of JAX needs it, and calls unasked else
        from jaxlib import lapack

        lapack.prepare_lapack_call("getrf_ffi", np.dtype(np.float32))
    devices = jax.devices("cpu")[:count]
    options = xla_client.CompileOptions()
    options.num_replicas = 1
    options.num_partitions = count
    options.device_assignment = xla_client.DeviceAssignment.create(np.arange(count).reshape(1, count))
    build = options.executable_build_options
    build.use_spmd_partitioning = True  # else XLA refuses partitions; it leaves alone what is marked {manual}
    build.use_shardy_partitioner = False
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        client = devices[0].client
        return client.compile_and_load(module, xla_client.DeviceList(tuple(devices)), options), devices


def sharded(array, devices):
    """array[k] on device k, as one jax.Array over all of them. The runtime looks at the buffers only, so it may as well be called
    replicated, though the buffers differ."""
    import jax

    mesh = jax.sharding.Mesh(np.array(devices), ("device",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    parts = [jax.device_put(np.array(array[k]), device) for k, device in enumerate(devices)]
    return jax.make_array_from_single_device_arrays(array.shape[1:], sharding, parts)


def run(executable, devices, inputs):
    operands = [sharded(array, devices) for array in inputs]
    results = executable.execute_sharded(operands)
    shards = results.disassemble_into_single_device_arrays()
    return [np.stack([np.asarray(shard) for shard in result]) for result in shards]


def from_file(array):
    import ml_dtypes

    return array.view(ml_dtypes.bfloat16) if array.dtype == np.dtype("V2") else array


def to_file(array):
    return array.view("V2") if array.dtype.name == "bfloat16" else array


def main(module_path, in_path, out_path):
    with open(module_path, encoding="utf-8") as file:
        text = file.read()
    count = devices_of(text)
    os.environ["JAX_PLATFORMS"] = "cpu"
    # The values are compared element by element: roundings where the module says them, and nowhere else.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # that GSPMD will go one day
    os.environ["XLA_FLAGS"] = (
        f"--xla_force_host_platform_device_count={count} --xla_allow_excess_precision=false --xla_cpu_enable_fast_math=false"
    )
    import jax

    jax.config.update("jax_enable_x64", True)
    with np.load(in_path) as archive:
        inputs = [from_file(archive[str(i)]) for i in range(len(archive.files))]
    for i, array in enumerate(inputs):
        if array.ndim == 0 or array.shape[0] != count:
            sys.exit(f"input {i} has shape {list(array.shape)}: its first dimension must be the {count} devices")
    executable, devices = compile_module(text, count)
    results = run(executable, devices, inputs)
    np.savez(out_path, **{str(i): to_file(result) for i, result in enumerate(results)})


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
