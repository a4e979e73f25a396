"""mpirun -n P python by_hand.py: the programs of by_hand.c with mpi4py and NumPy, and, in process 0, with NumPy alone on whole arrays.
Prints the same lines: case, side, seconds, digest; NumPy's for its digest."""

import math
import sys
import time
import zlib

import numpy as np
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
RANK, PROCESSES = WORLD.rank, WORLD.size
BEFORE = RANK - 1 if RANK > 0 else MPI.PROC_NULL
AFTER = RANK + 1 if RANK + 1 < PROCESSES else MPI.PROC_NULL
ALPHA = np.float32(0.2)
ROUNDS = 3
PROBLEMS = [("ring", 1 << 14, 200), ("ring", 1 << 18, 40), ("ring", 1 << 22, 4), ("halo", 256, 200), ("halo", 2048, 20), ("fft", 256, 20),
            ("fft", 1024, 2)]


def numbers(first, count, array):
    place = np.arange(first, first + count, dtype=np.uint64) * np.uint64(2654435761) + np.uint64(array * 97)
    return (place % np.uint64(1009)).astype(np.float32) / np.float32(1024)


# --- With other processes: each takes and returns what this process has ---


def ring(x):
    parts = x.reshape(PROCESSES, -1)
    came = np.empty_like(parts[0])
    to, source = (RANK + 1) % PROCESSES, (RANK - 1) % PROCESSES
    for s in range(PROCESSES - 1):
        WORLD.Sendrecv(parts[(RANK - s) % PROCESSES], to, recvbuf=came, source=source)
        parts[(RANK - s - 1) % PROCESSES] += came
    parts[(RANK + 1) % PROCESSES] *= np.float32(1 / PROCESSES)
    for s in range(PROCESSES - 1):
        WORLD.Sendrecv(parts[(RANK - s + 1) % PROCESSES], to, recvbuf=parts[(RANK - s) % PROCESSES], source=source)
    return x


def heat(tall):
    u = tall[1:-1]
    wide = np.pad(u, ((0, 0), (1, 1)))
    around = (tall[:-2] + tall[2:]) + (wide[:, :-2] + wide[:, 2:])
    return u + ALPHA * (around - np.float32(4) * u)


def halo(u):
    tall = np.zeros((u.shape[0] + 2, u.shape[1]), np.float32)
    tall[1:-1] = u
    WORLD.Sendrecv(u[0], BEFORE, recvbuf=tall[-1], source=AFTER)
    WORLD.Sendrecv(u[-1], AFTER, recvbuf=tall[0], source=BEFORE)
    return heat(tall)


def turns(n):
    angles = [-2 * math.acos(-1) * k / n for k in range(n // 2)]
    return [np.array([f(a) for a in angles]).astype(np.float32) for f in (math.cos, math.sin)]


def transform_rows(re, im, table):
    rows, n = re.shape
    m, s = n // 2, 1
    while m >= 1:
        re, im = re.reshape(rows, 2, m, s), im.reshape(rows, 2, m, s)
        c, d = (t[::s].reshape(m, 1) for t in table)
        x, y = re[:, 0] - re[:, 1], im[:, 0] - im[:, 1]
        re = np.stack([re[:, 0] + re[:, 1], x * c - y * d], 2)
        im = np.stack([im[:, 0] + im[:, 1], x * d + y * c], 2)
        m, s = m // 2, s * 2
    return re.reshape(rows, n), im.reshape(rows, n)


def transposed(x):
    rows = x.shape[0]
    out = np.ascontiguousarray(x.T).reshape(PROCESSES, rows, rows)
    came = np.empty_like(out)
    WORLD.Alltoall(out, came)
    return np.concatenate(list(came), 1)


def fft(z, table, turn=transposed):
    for _ in range(2):
        z = [turn(x) for x in transform_rows(*z, table)]
    return [x * np.float32(1 / z[0].shape[1]) for x in z]


# --- Alone ---


def alone(name, n, steps):
    """The blocks of all processes, one after the other, each a list of its arrays."""
    if name == "ring":
        xs = [numbers(r * n, n, 0) for r in range(PROCESSES)]
        part = n // PROCESSES
        for _ in range(steps):
            whole = np.empty(n, np.float32)
            for p in range(PROCESSES):  # part p has gone around from process p
                there = slice(p * part, (p + 1) * part)
                total = xs[p][there]
                for r in range(1, PROCESSES):
                    total = xs[(p + r) % PROCESSES][there] + total
                whole[there] = total * np.float32(1 / PROCESSES)
            xs = [whole] * PROCESSES
        return [[x] for x in xs]
    arrays = [numbers(0, n * n, a).reshape(n, n) for a in range(2 if name == "fft" else 1)]
    table = turns(n)
    for _ in range(steps):
        arrays = fft(arrays, table, np.transpose) if name == "fft" else [heat(np.pad(arrays[0], ((1, 1), (0, 0))))]
    return list(zip(*(np.split(a, PROCESSES) for a in arrays)))


# --- Measuring ---


def digest(rank, arrays):
    return sum(zlib.crc32(np.ascontiguousarray(a).tobytes()) * (rank * len(arrays) + i + 1) for i, a in enumerate(arrays))


def by_hand(name, n, steps):
    count = 2 if name == "fft" else 1
    elems = n if name == "ring" else n * n // PROCESSES
    table = turns(n)
    least = math.inf
    for _ in range(ROUNDS):
        arrays = [numbers(RANK * elems, elems, a) for a in range(count)]
        if name != "ring":
            arrays = [a.reshape(-1, n) for a in arrays]
        WORLD.Barrier()
        start = time.perf_counter()
        for _ in range(steps):
            arrays = fft(arrays, table) if name == "fft" else [ring(*arrays) if name == "ring" else halo(*arrays)]
        least = min(least, (time.perf_counter() - start) / steps)
    return WORLD.reduce(least, MPI.MAX), WORLD.reduce(digest(RANK, arrays))


for name, n, steps in PROBLEMS:
    if len(sys.argv) > 1 and sys.argv[1] != name:
        continue
    seconds, found = by_hand(name, n, steps)
    if RANK == 0:
        print(f"{name} {n}\tmpi4py\t{seconds:.9g}\t{found}")
        start = time.perf_counter()
        blocks = alone(name, n, steps)
        print(f"{name} {n}\tNumPy\t{(time.perf_counter() - start) / steps:.9g}\t{sum(digest(r, b) for r, b in enumerate(blocks))}", flush=True)
    WORLD.Barrier()
