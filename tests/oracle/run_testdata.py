"""Runs the modules of openxla/stablehlo that check their own results, stablehlo/testdata and stablehlo/tests/interpret, and says which
fail. Each check compares two arrays while the program runs (src/bridge/checks.c), and `axle run` fails where they differ. Modules
without checks must run; those whose inputs are not in the file are counted as ones that do not pass.

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


def inputs_of(path):
    """--in for each of --args="[dense<1> : tensor<2xi32>, ..]" of the file's first command that has it."""
    command = re.search(r'RUN: stablehlo-translate.*--args="(.*?)"', path.read_text())
    found = re.findall(r"dense<([-\d.]+)> : tensor<([\dx]*?)x?(u?)i?(f?)(\d+)>", command[1]) if command else []
    names = [f"{'u' if u else 'f' if f else 's'}{bits}[{dims.replace('x', ',')}]" for _, dims, u, f, bits in found]
    return [word for i, (value, *_) in enumerate(found) for word in ("--in", f"{i}={value}:{names[i]}")]


def run(axle, path, text):
    """Nothing if the module passes; what failed."""
    inputs = inputs_of(path) if "check." not in text else []
    if "check." not in text and not inputs and "@main()" not in text:
        return "no checks"
    try:
        command = [axle, "run", "-", "--subnormals=keep", *inputs]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)
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
