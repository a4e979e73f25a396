"""b26 to b28: programs over processes, for bench/run. Each program prints lines "CASE TAB SIDE TAB SECONDS TAB DIGEST" from process 0;
those of a race are run by turns, and the least of a case and side counts. Sides that give a digest must give the same one."""

import os
import socket
import subprocess
import sys
from dataclasses import dataclass, field

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 600  # seconds for a program
OURS = "Axle"


class Failed(Exception):
    pass


# --- What there is to race with ---


@dataclass
class Library:
    """Of MPI, as mpi.txt in the build folder names it."""

    name: str
    launcher: str

    def command(self, processes, *program):
        """Processes that are more than the processors leave them to one another."""
        command = [self.launcher]
        if self.name.startswith("openmpi"):
            command += ["--allow-run-as-root"] + (["--oversubscribe"] if processes > len(os.sched_getaffinity(0)) else [])
        return [*command, "-n", str(processes), *map(str, program)]


def libraries(build):
    try:
        with open(os.path.join(build, "bench", "mpi.txt")) as file:
            return [Library(*line.split()) for line in file if len(line.split()) == 2]
    except OSError:
        return []


def imports(python, module):
    return python is not None and subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0


# --- Races ---


@dataclass
class Race:
    """`programs` are run one after the other, `rounds` times. aims: by side, the ratio that is to be reached."""

    id: str
    what: str  # of each case: "on 2 processes"
    programs: list
    aims: dict = field(default_factory=dict)
    rounds: int = 3
    environment: dict = field(default_factory=dict)


def free_port():
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]


def collectives_by_hand(build, library):
    return Race("b26", f"2 processes, {library.name}", [library.command(2, os.path.join(build, "bench", f"processes_{library.name}"))],
                {"MPI": 1}, environment={"AXLE_MPI": library.name})


def beside_jax(build, library, jax_python, processes):
    theirs = [library.command(processes, jax_python, os.path.join(HERE, "jax_processes.py"), "gloo", "PORT")]
    if "MPITRAMPOLINE_LIB" in os.environ:
        theirs.append(library.command(processes, jax_python, os.path.join(HERE, "jax_processes.py"), "mpi", "PORT"))
    ours = library.command(processes, os.path.join(build, "bench", f"processes_{library.name}"))
    return Race("b27", f"{processes} processes, {library.name}", [ours, *theirs], {"JAX gloo": 3, "JAX gloo, small": 20},
                environment={"AXLE_MPI": library.name})


def programs_by_hand(build, library, mpi4py_python, processes):
    programs = [library.command(processes, os.path.join(build, "bench", f"by_hand_{library.name}"))]
    if mpi4py_python:
        programs.append(library.command(processes, mpi4py_python, os.path.join(HERE, "peers", "by_hand.py")))
    abi = library.name.rstrip("0123456789")  # mpi4py takes the first library that it finds, not the launcher's
    return Race("b27", f"{processes} processes, {library.name}", programs, environment={"AXLE_MPI": library.name, "MPI4PY_MPIABI": abi})


def training(build, library):
    models = [("mlp_small", 200, 9), ("mlp_middle", 10, 5), ("transformer", 2, 3), ("transformer_global", 2, 3)]
    programs = []
    for case in models:
        one = [os.path.join(build, "bench", "ours"), "train_rounds", *map(str, case)]
        programs += [["env", "AXLE_PROCESSES=one", *one], library.command(2, "env", "AXLE_PROCESSES=mpi", *one)]
    return Race("b28", f"a step, 2 processes of 4 devices, {library.name}", programs, {"one process": 0.9},
                environment={"AXLE_MPI": library.name})


def races(only, build, jax_python, notes):
    wanted = lambda id: only is None or id in only
    found = libraries(build) if wanted("b26") or wanted("b27") or wanted("b28") else []
    if not found and (wanted("b26") or wanted("b27") or wanted("b28")):
        notes.append("b26 to b28 were left out: no library of MPI was found when this was built")
    if found and wanted("b27"):
        if not jax_python:
            notes.append("b27: AXLE_JAX_PYTHON is not set, so JAX's rows were left out")
        elif "MPITRAMPOLINE_LIB" not in os.environ:
            notes.append("b27: MPITRAMPOLINE_LIB does not name an MPIwrapper (github.com/eschnett/MPIwrapper), so JAX's rows with MPI were left out")
    mpi4py_python = next((p for p in (os.environ.get("AXLE_MPI4PY_PYTHON"), jax_python, sys.executable) if imports(p, "mpi4py, numpy")), None)
    if found and wanted("b27") and not mpi4py_python:
        notes.append("b27: neither AXLE_MPI4PY_PYTHON nor AXLE_JAX_PYTHON imports mpi4py and numpy, so their rows were left out")
    if wanted("b26"):
        yield from (collectives_by_hand(build, library) for library in found)
    if wanted("b27"):
        if jax_python:
            yield from (beside_jax(build, library, jax_python, processes) for library in found[:1] for processes in (2, 4))
        yield from (programs_by_hand(build, library, mpi4py_python, processes) for library in found for processes in (2, 4))
    if wanted("b28"):
        yield from (training(build, library) for library in found)


# --- Running them ---


def lines_of(command, environment):
    """[(case, side, seconds, digest)]. What a program has printed counts also if it fails at its end."""
    command = [str(free_port()) if word == "PORT" else word for word in command]
    try:
        found = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE,
                               env={**os.environ, **environment})
    except subprocess.TimeoutExpired as late:
        raise Failed(f"{' '.join(command)}: not over within {PATIENCE} s") from late
    except OSError as error:
        raise Failed(f"{command[0]}: {error.strerror}") from error
    lines = [line.split("\t") for line in found.stdout.splitlines()]
    lines = [(case, side, float(seconds), int(digest)) for case, side, seconds, digest in (line for line in lines if len(line) == 4)]
    if not lines:
        raise Failed(f"{' '.join(command)}: {(found.stderr or found.stdout).strip()[-300:] or f'status {found.returncode}'}")
    return lines


def measure(race, rounds, notes):
    """({case: {side: seconds}}, {case: {digest}})"""
    least, digests, programs = {}, {}, list(race.programs)
    for _ in range(min(race.rounds, rounds or race.rounds)):
        for program in list(programs):
            try:
                for case, side, seconds, digest in lines_of(program, race.environment):
                    sides = least.setdefault(case, {})
                    sides[side] = min(seconds, sides.get(side, seconds))
                    digests.setdefault(case, set()).update({digest} - {0})
            except Failed as failure:
                notes.append(f"{race.id}, {race.what}: {failure}")
                programs.remove(program)
    return least, digests


def size(case):
    name, _, count = case.partition(" ")
    if name not in ("psum", "all_gather", "all_to_all", "ppermute"):
        return case
    count = int(count)
    return f"{name} of {count} B" if count < 1024 else f"{name} of {count >> 10} KiB" if count < 1 << 20 else f"{name} of {count >> 20} MiB"


def is_small(case):
    count = case.partition(" ")[2]
    return count.isdigit() and int(count) <= 1024


def verdict(race, case, side, ours, theirs):
    aim = race.aims.get(f"{side}, small") if is_small(case) else None
    aim = aim or race.aims.get(side)
    if aim is None:
        return ""
    met = theirs / ours >= aim
    if race.id == "b26" and case.split()[1] in ("4", "8"):
        return f">= {aim}, or 1 us more {'yes' if met or ours - theirs <= 1e-6 else 'no'}"
    return f">= {aim} {'yes' if met else 'no'}"


def rows(race, rounds, notes):
    """(case, ours, theirs, unit, ratio, verdict), in microseconds."""
    least, digests = measure(race, rounds, notes)
    for case, sides in least.items():
        if len(digests[case]) > 1:
            notes.append(f"the bits of {case}, {race.what}, are not the same on all sides")
        if OURS not in sides:
            continue
        ours = sides.pop(OURS)
        for side, theirs in sides.items():
            yield f"{size(case)}, {race.what}, beside {side}", ours * 1e6, theirs * 1e6, "us", theirs / ours, verdict(race, case, side, ours, theirs)
