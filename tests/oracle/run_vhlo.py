"""Reads the artifacts of StableHLO's own tests, stablehlo/tests/vhlo, and says which are other modules than the texts beside them.

  run_vhlo.py FOLDER [--axle build/axle]

NAME.mlir.bc is what a release of StableHLO wrote of NAME.mlir. `axle show --module` must print both alike.
"""

import argparse
import difflib
import re
import subprocess
import sys
from pathlib import Path


def one_form(text):
    """What may be written in two ways, in one: bounds of types, and the scales of quantized ones."""
    text = re.sub(r"#stablehlo.type_extensions<bounds = \[(.*?)\]>", r"#stablehlo.bounds<\1>", text)
    scale = lambda found: re.sub(r"-?\d+\.\d*(e[-+]?\d+)?", lambda digits: repr(float(digits[0])), found[0])  # noqa: E731
    return re.sub(r"!quant\.uniform<[^>]*>*[^>]*>", scale, text)


def module(axle, path):
    done = subprocess.run([axle, "show", path, "--module"], capture_output=True, text=True, timeout=120)
    return (one_form(done.stdout), None) if done.returncode == 0 else ("", done.stderr.splitlines()[0].replace(str(path.parent) + "/", ""))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--axle", default="build/axle")
    options = parser.parse_args()
    same = failed = 0
    for path in sorted(Path(options.folder).glob("[!i]*.mlir.bc")):  # invalid_..: beside texts in forms of VHLO's own
        (got, why), (want, why_not) = module(options.axle, path), module(options.axle, path.with_suffix(""))
        if got == want and not why and not why_not:
            same += 1
            continue
        failed += 1
        lines = [line for line in difflib.unified_diff(want.splitlines(), got.splitlines(), n=0, lineterm="") if line[0] in "+-"][2:]
        print(f"{path.name}: {why or why_not or f'{len(lines)} lines differ'}")
        for line in lines[:6]:
            print("   ", line[:240])
    print(f"{same + failed} artifacts: {same} are what their texts say, {failed} are not")
    sys.exit(failed > 0)


main()
