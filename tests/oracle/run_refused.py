"""Gives Axle the modules of openxla/stablehlo's tests that expect an error, stablehlo/tests/*.mlir, and those beside them that do not.

  run_refused.py FILES [--axle build/axle] [--jobs N] [--list WHAT]

A file's parts, at `// -----`, are modules of their own. `axle show --module` must refuse each that has an `expected-error`, at the line
that it names, and take each other one; and no part may crash it. Of a module that is taken, each function is made a program, too; which
are not, and why not, is on the list in docs/stablehlo.md. A line for each file says how many parts are

  refused    as the file wants         elsewhere  refused as the file wants, but not at that line
  accepted   and should be refused     taken      as the file wants
  wrongly    refused                   crashed
  programs   functions of parts that are taken, which become programs      none   functions that do not

--list refused, elsewhere, accepted, wrongly, crashed or none prints these parts, with what was wanted and what Axle said.
"""

import argparse
import collections
import concurrent.futures
import re
import subprocess
import sys
from pathlib import Path

KINDS = ("refused", "elsewhere", "accepted", "taken", "wrongly", "crashed", "programs", "none")


def parts_of(path):
    """(first line, text) of each part."""
    lines, start = path.read_text().splitlines(), 0
    for i, line in enumerate([*lines, "// -----"]):
        if line.startswith("// -----"):
            if any(re.match(r"\s*[^/\s]", x) for x in lines[start:i]):
                yield start + 1, "\n".join(lines[start:i]) + "\n"
            start = i + 1


def wanted_errors(text):
    """(line, message) of each error that the part expects."""
    found = []
    for i, line in enumerate(text.splitlines(), 1):
        for at, message in re.findall(r"expected-error(?:-re)?\s*(?:@([-+]\d+|unknown|above|below))?\s*\{\{(.*?)\}\}", line):
            step = {"": 0, "above": -1, "below": 1, "unknown": 0}.get(at)
            found.append((i + (int(at) if step is None else step), message))
    return found


def is_near(text, wanted, said):
    """Whether the message names the line of a wanted error, or where the operation begins that has this line."""
    at = re.match(r"(?:axle: error: )?(?:\(standard input\))?:(\d+)", said)
    lines = text.splitlines()
    for line, _ in wanted:
        first = line
        while first > 1 and not re.match(r'\s*(%\S+.* = |"?\w+\.\w+|module|\}\))', lines[min(first, len(lines)) - 1]):
            first -= 1
        if at is not None and min(first, line - 1) <= int(at[1]) <= line + 1:
            return True
    return False


def axle(command, text):
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return -1, "takes more than two minutes"
    return done.returncode, "".join(done.stderr.splitlines()[:1]).replace("axle: error: -", "")


def programs_of(options, text):
    """(kind, what was wanted, what was said) of each function as the entry function."""
    names = re.findall(r"func\.func (?:public |private )?@(\"[^\"]+\"|[\w.$-]+)", text)
    for name in names:
        one = text if "main" in names else re.sub(re.escape("@" + name) + r"(?![\w.$-])", "@main", text)
        if "main" in names and name != "main":
            continue
        code, said = axle([options.axle, "show", "-"], one)
        yield ("programs" if code == 0 else "crashed" if code < 0 or code > 100 else "none"), name, said


def case(options, path, line, text):
    """The kinds of the part, each with a line for --list."""
    wanted = wanted_errors(text)
    code, said = axle([options.axle, "show", "-", "--module"], text)
    where = f"{path.name}:{line}"
    if code < 0 or code > 100:
        return [("crashed", f"{where}: {code} {said}")]
    if wanted:
        if code == 0:  # what modules may have, and programs not
            tried = [(kind, said) for kind, _, said in programs_of(options, text) if kind != "programs" and is_near(text, wanted, said)]
            code, said = (1, tried[0][1]) if tried else (code, said)
        kind = "accepted" if code == 0 else "refused" if is_near(text, wanted, said) else "elsewhere"
        return [(kind, f"{where}+{wanted[0][0] - 1}: {wanted[0][1]}\n      {said}")]
    if code != 0:
        return [("wrongly", f"{where}: {said}")]
    return [("taken", where), *((kind, f"{where} @{name}: {said}") for kind, name, said in programs_of(options, text))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--axle", default="build/axle")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="append", default=[])
    options = parser.parse_args()
    total = collections.Counter()
    print(f"{'':36}" + "".join(f"{k:>10}" for k in KINDS))
    for path in options.files:
        count = collections.Counter()
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for found in pool.map(lambda part: case(options, path, *part), list(parts_of(path))):
                for kind, said in found:
                    count[kind] += 1
                    if kind in options.list:
                        print(f"{kind}: {said}")
        print(f"{path.name:36}" + "".join(f"{count[k]:10}" for k in KINDS), flush=True)
        total += count
    print(f"{'all':36}" + "".join(f"{total[k]:10}" for k in KINDS))
    sys.exit(any(total[k] for k in ("elsewhere", "accepted", "wrongly", "crashed")))


main()
