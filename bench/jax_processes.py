"""mpirun -n P python jax_processes.py gloo|mpi PORT [MOST_BYTES]: JAX's side of b27, one device in each of P processes. The same steps as
peers/processes.c, in a scan of one call, and the same lines. With MPI the environment names the library: MPITRAMPOLINE_LIB."""

import math
import os
import sys
import time

os.environ["JAX_PLATFORMS"] = "cpu"

import jax

IMPLEMENTATION, PORT = sys.argv[1:3]
MOST = int(sys.argv[3]) if len(sys.argv) > 3 else 64 << 20
ROUNDS = 5


def told(*names):
    return int(next(os.environ[name] for name in names if name in os.environ))


RANK, PROCESSES = told("PMI_RANK", "OMPI_COMM_WORLD_RANK"), told("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")
jax.config.update("jax_cpu_collectives_implementation", IMPLEMENTATION)
jax.distributed.initialize(f"localhost:{PORT}", PROCESSES, RANK)

import numpy as np
from jax import lax
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

MESH = Mesh(np.array(jax.devices()), ("x",))


def steps_of(size):
    steps = 1000 if size < 65536 else 50 if size < 4194304 else 16
    return steps if PROCESSES <= os.cpu_count() else (steps + 19) // 20


def kinds(n):
    ring = [(i, (i + 1) % PROCESSES) for i in range(PROCESSES)]
    number = lambda: lax.axis_index("x").astype(np.float32)
    return {
        "psum": lambda x: lax.psum(x, "x") * ((number() + 1) * np.float32(2 / (PROCESSES * (PROCESSES + 1)))),
        "all_gather": lambda x: lax.all_gather(x[: n // PROCESSES] * (1 - number()), "x", tiled=True),
        "all_to_all": lambda x: lax.all_to_all(x, "x", 0, 0, tiled=True),
        "ppermute": lambda x: lax.ppermute(x, "x", ring),
    }


def measure(name, size):
    n = max(size // 4, PROCESSES if name in ("all_gather", "all_to_all") else 1)
    step, steps = kinds(n)[name], steps_of(size)
    # gloo takes about a millisecond for the smallest
    steps = min(steps, 200) if IMPLEMENTATION == "gloo" else steps
    f = jax.jit(jax.shard_map(lambda x: lax.scan(lambda c, _: (step(c), None), x, None, length=steps)[0], mesh=MESH, in_specs=P("x"),
                              out_specs=P("x")))
    x = jax.make_array_from_callback((n * PROCESSES,), NamedSharding(MESH, P("x")), lambda _: np.ones(n, np.float32))
    jax.block_until_ready(f(x))
    least = math.inf
    for _ in range(ROUNDS):
        multihost_utils.sync_global_devices("round")
        start = time.perf_counter()
        jax.block_until_ready(f(x))
        least = min(least, (time.perf_counter() - start) / steps)
    if RANK == 0:
        print(f"{name} {n * 4}\tJAX {IMPLEMENTATION}\t{least:.9g}\t0", flush=True)


for name in kinds(1):
    size = 4
    while size <= MOST:
        measure(name, size)
        size *= 16
sys.stdout.flush()
os._exit(0)  # XLA's end calls MPI after MPI_Finalize
