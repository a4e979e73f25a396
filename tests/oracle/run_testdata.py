"""Runs the modules of openxla/stablehlo that check their own results, stablehlo/testdata and stablehlo/tests/interpret, and says which
fail. Each check compares two arrays while the program runs (src/bridge/checks.c), and `axle run` fails where they differ.

  run_testdata.py FOLDER [--axle build/axle] [--only REGEX] [--jobs N] [--list]

--list prints a line for each module that does not pass, with its message. exact_testdata.py says of those that differ who is nearer to the
truth.
"""

import argparse
import collections
import concurrent.futures
import re
import subprocess
import sys
from pathlib import Path


def functions(text):
    """The tests of a file: modules with one function called @main."""
    found = []
    for part in text.split("// -----"):
        if "@main(" in part:
            found.append(part)
            continue
        for match in re.finditer(r"func\.func (?:public )?@(\w+)\(\)", part):
            if "check." in part[match.start() :].split("func.func", 2)[1]:
                found.append(part.replace(f"@{match.group(1)}(", "@main("))
    return found


def run(axle, name, text):
    """Nothing if the module passes; what failed."""
    if "check." not in text:
        return "no checks"
    try:
        done = subprocess.run([axle, "run", "-", "--subnormals=keep"], input=text, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return "takes more than two minutes"
    return None if done.returncode == 0 else f"exit {done.returncode}: " + "".join(done.stderr.splitlines()[:1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--axle", default="build/axle")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    files = [f for f in sorted(options.folder.rglob("*.mlir")) if re.search(options.only, str(f))]
    tests = [(f, text) for f in files for text in functions(f.read_text())]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        found = list(pool.map(lambda test: run(options.axle, *test), tests))
    failed = [(f, why) for (f, _), why in zip(tests, found) if why is not None]
    for f, why in failed if options.list else []:
        print(f"{f.relative_to(options.folder)}: {why}")
    kinds = collections.Counter(re.sub(r"^.*?\(standard input\):\d+(:\d+)?: |element .*", "", why)[-100:] for _, why in failed)
    for why, count in kinds.most_common(40):
        print(f"{count:5} {why}")
    print(f"{len(tests)} modules: {len(tests) - len(failed)} pass, {len(failed)} do not")
    sys.exit(bool(failed))


main()
