"""JAX's own tests, and those of libraries that use it, on Axle beside XLA's plugin and JAX's own CPU devices: which pass, and a table.

jax_suites.py run TESTS OUT axle|built-in|PLUGIN.so [SUITE ..]   what each test of the suites gives, a line each, in OUT/<side>/<suite>.txt
jax_suites.py table OUT                                           docs/jax-tests.md's table, and what passes elsewhere but not on Axle

TESTS is JAX's folder of tests, at the version's tag, or that of a library, at the version that is installed; a SUITE is a file or folder in it.
AXLE_DEVICES (8) devices; AXLE_BUILD the build folder. A suite whose process ends goes on behind the test that ended it, as one does
behind a test that takes longer than AXLE_TEST_SECONDS; of one that takes longer than AXLE_SUITE_SECONDS the rest is not run. Suites that
are in OUT already are left out. PYTEST_ADDOPTS are more of pytest's options. Needs jax, pytest, absl-py and hypothesis, and what the
library's tests import.
"""

import collections
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

DEVICES = os.environ.get("AXLE_DEVICES", "8")
# XPASS: passes, though its authors allow it to fail; where they do not, pytest says FAILED.
OUTCOMES = {"PASSED": "passed", "FAILED": "failed", "SKIPPED": "skipped", "ERROR": "failed", "XFAIL": "skipped", "XPASS": "passed"}
HOW = rf"\b({'|'.join(OUTCOMES)})\b"  # as pytest -v says it
SIDES = "axle", "plugin", "built-in"
# What asks for other hardware, other processes or other packages, and what never starts a device.
LEFT_OUT = ("cudnn gpu tpu mosaic pallas magma multiprocess distributed mock_ colocated pgle fused_attention_stablehlo "
            "scaled_matmul_stablehlo local_wheel documentation_coverage package_structure").split()
TIME_LIMIT = int(os.environ.get("AXLE_SUITE_SECONDS", "3600"))
TEST_LIMIT = int(os.environ.get("AXLE_TEST_SECONDS", TIME_LIMIT))


def environment(side):
    env = dict(os.environ, JAX_PLATFORMS="cpu", PYTHONDONTWRITEBYTECODE="1")
    env.setdefault("JAX_NUM_GENERATED_CASES", "5")
    env.setdefault("HYPOTHESIS_MAX_EXAMPLES", "10")
    build = pathlib.Path(os.environ.get("AXLE_BUILD", "build")).resolve()
    if side == "axle":
        env.update(AXLE_PLATFORM="cpu", AXLE_DEVICES=DEVICES, PYTHONPATH=f"{build}/python")
    else:
        env.update(XLA_FLAGS=f"--xla_force_host_platform_device_count={DEVICES}")
        env.pop("PYTHONPATH", None)
        if side != "built-in":
            env.update(PJRT_NAMES_AND_LIBRARY_PATHS=f"cpu:{pathlib.Path(side).resolve()}")
    return env


def seconds_until(deadline):
    """How long the next test may take."""
    return max(1, min(TEST_LIMIT, int(deadline - time.monotonic())))


def run_once(tests, side, suite, done, deadline):
    """Outcomes by name; the test in which the process ended, if it did; and whether it was stopped there, as its time was over."""
    command = [sys.executable, "-m", "pytest", "-v", "--no-header", "--tb=line", "--color=no", "--rootdir=.", "-p", "no:cacheprovider", "-rfE",
               "-W", "ignore", suite]
    env = environment(side)
    if done:
        skip = pathlib.Path(env.setdefault("AXLE_SKIP_FOLDER", "/tmp")) / f"jax_suites_{os.getpid()}.py"
        skip.write_text(f"DONE = set({sorted(done)!r})\ndef pytest_collection_modifyitems(items):\n"
                        "    items[:] = [i for i in items if i.nodeid not in DONE]\n")
        env["PYTHONPATH"] = os.pathsep.join([str(skip.parent)] + env.get("PYTHONPATH", "").split(os.pathsep))
        command += ["-p", skip.stem]
    outcomes, why, running = {}, {}, None
    process = subprocess.Popen(command, cwd=tests, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
                               start_new_session=True)
    stopped = []

    def stop(*_):
        with contextlib.suppress(ProcessLookupError):  # it just ended
            os.killpg(process.pid, signal.SIGKILL)
            stopped.append(True)

    old = signal.signal(signal.SIGALRM, stop)
    ended = False
    signal.alarm(seconds_until(deadline))
    for line in process.stdout:
        signal.alarm(seconds_until(deadline))
        if found := re.match(rf"^(\S+\.py::.+?) {HOW}", line):
            outcomes[found[1]], running = OUTCOMES[found[2]], None
        elif found := re.match(r"^(\S+\.py::.+)", line):
            running = found[1].strip()
        elif running and (found := re.search(rf"{HOW} +\[ *\d+%\]", line)):
            outcomes[running], running = OUTCOMES[found[1]], None
        elif found := re.match(r"^(?:FAILED|ERROR) (\S+\.py(?:::.+?)?) - (.*)", line):
            why[found[1]] = found[2].strip()
            outcomes.setdefault(found[1], "failed")  # a file that does not load has no test
        ended = ended or bool(re.match(r"^=+ .*(passed|failed|skipped|error|no tests ran|deselected).* in ", line))
    process.wait()
    signal.alarm(0)
    signal.signal(signal.SIGALRM, old)
    return outcomes, why, None if ended else running or "the suite", bool(stopped)


def run_suite(tests, side, suite, file):
    outcomes, why, start = {}, {}, time.monotonic()
    for _ in range(30):
        more, reasons, fatal, stopped = run_once(tests, side, suite, outcomes, start + TIME_LIMIT)
        outcomes.update(more)
        why.update(reasons)
        if not fatal:
            break
        outcomes[fatal] = "stopped" if stopped else "ended"
        if fatal == "the suite" or time.monotonic() > start + TIME_LIMIT - 1:
            break
    file.write_text("".join(f"{how} {name}{' - ' + why[name][:300] if name in why else ''}\n" for name, how in outcomes.items()))
    print(side, suite, dict(collections.Counter(outcomes.values())), f"{time.monotonic() - start:.0f} s", flush=True)


def suites_of(tests):
    files = {str(p.relative_to(tests)) for pattern in ("*_test.py", "test_*.py") for p in tests.rglob(pattern)}
    return sorted(file for file in files if not any(word in file for word in LEFT_OUT))


def run(tests, out, side, *suites):
    folder = pathlib.Path(out) / (side if side in SIDES else "plugin")
    folder.mkdir(parents=True, exist_ok=True)
    missing = [suite for suite in suites if not (pathlib.Path(tests) / suite).exists()]
    if missing:
        sys.exit(f"{tests} has no {', '.join(missing)}")
    for suite in suites or suites_of(pathlib.Path(tests)):
        file = folder / f"{suite.removesuffix('.py').replace('/', '.')}.txt"
        if not file.exists():
            run_suite(tests, side, suite, file)


def table(out):
    found = {side: {f.stem: dict(line.split(" - ")[0].split(" ", 1)[::-1] for line in f.read_text().splitlines())
                    for f in (pathlib.Path(out) / side).glob("*.txt")} for side in SIDES}
    sides = [side for side in SIDES if found[side]]
    print("| suite | " + " | ".join(sides) + " |\n|---|" + "---|" * len(sides))
    totals = {side: collections.Counter() for side in sides}

    def told(count):
        return ", ".join(f"{count[how]:,} {how}" for how in ("passed", "failed", "ended", "stopped", "skipped") if count[how]) or "-"

    for suite in sorted(found["axle"]):
        counts = [collections.Counter(found[side].get(suite, {}).values()) for side in sides]
        for side, count in zip(sides, counts):
            totals[side].update(count)
        print(f"| {suite} | " + " | ".join(map(told, counts)) + " |")
    print("| all | " + " | ".join(told(totals[side]) for side in sides) + " |")
    for side in sides[1:]:
        print(f"\npass on {side} alone:")
        for suite, here in sorted(found["axle"].items()):
            for name, how in found[side].get(suite, {}).items():
                if how == "passed" and here.get(name) != "passed":
                    print(f"  {name} {here.get(name, 'not run')}")


if __name__ == "__main__":
    {"run": run, "table": table}[sys.argv[1]](*sys.argv[2:])
