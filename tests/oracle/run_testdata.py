"""Runs the modules of openxla/stablehlo that hold their own inputs and expected results, stablehlo/testdata, and says which fail.

  run_testdata.py FOLDER [--axle build/axle] [--only REGEX] [--jobs N] [--list]

A module's checks become its results: each check's two values are returned, written as .npy and compared here, to the tolerance that
the check states. --list prints a line for each module that does not pass: what failed, and its message.
"""

import argparse
import collections
import concurrent.futures
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

CHECK = re.compile(r"^ *(?:stablehlo\.custom_call @)?check\.(expect_\w+)\(?\s*(%[\w#]+), (%[\w#]+)\)?(.*?): \(?(.*?)\)?(?: -> \(\))?$", re.M)
EXACT = {"i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "f16", "f32", "f64", "complex<f32>", "complex<f64>"}


def split_types(text):
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c == "<") - (c == ">")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return parts + [text[start:].strip()]


def element(tensor):
    return re.fullmatch(r"tensor<(?:[0-9?]+x)*(.*)>", tensor).group(1)


def rewritten(text):
    """The module with its checks' values as results of @main, and the checks."""
    begin = text.index("@main(")
    end = text.index("\n  }", begin)
    main = text[begin:end]
    checks, values, types, lines = [], [], [], []
    for match in CHECK.finditer(main):
        kind, a, b, _, listed = match.groups()
        narrow = False
        for value, tensor in zip((a, b), split_types(listed)):
            if element(tensor) not in EXACT:  # .npy has no such dtype; f32 has all of its numbers
                wide = re.sub(re.escape(element(tensor)) + ">$", "f32>", tensor)
                name = f"%wide{len(lines)}"
                lines.append(f"    {name} = stablehlo.convert {value} : ({tensor}) -> {wide}")
                value, tensor, narrow = name, wide, True
            values.append(value)
            types.append(tensor)
        checks.append((kind, narrow))
    main = CHECK.sub("", main)
    main = main[: main.rindex("    return")] + "\n".join(lines)
    main += f"\n    return {', '.join(values)} : {', '.join(types)}"
    main = re.sub(r"\) -> .*? \{\n|\) \{\n", lambda _: f") -> ({', '.join(types)}) {{\n", main, count=1)
    return text[:begin] + main + text[end:], checks


def ordered(x):
    bits = x.view({2: np.int16, 4: np.int32, 8: np.int64}[x.dtype.itemsize]).astype(np.int64)
    return np.where(bits < 0, np.iinfo(x.dtype.str.replace("f", "i")).min - bits, bits)


def passes(kind, narrow, got, want):
    if got.dtype != want.dtype or got.shape != want.shape:
        return False
    if got.size == 0:
        return True
    if got.dtype.kind == "c":
        got, want = got.reshape(-1).view(got.real.dtype), want.reshape(-1).view(got.real.dtype)
    if got.dtype.kind != "f" or kind == "expect_eq":
        return np.array_equal(got, want, equal_nan=got.dtype.kind == "f")
    both = np.isnan(got) & np.isnan(want) | (got == want)
    if kind == "expect_almost_eq":
        with np.errstate(all="ignore"):
            return bool(np.all(both | (np.abs(got - want) <= 1e-4 * np.maximum(1, np.abs(want)))))
    with np.errstate(all="ignore"):
        apart = np.abs(ordered(got).astype(object) - ordered(want).astype(object))
    tiny = (np.abs(got) <= np.finfo(got.dtype).tiny) & (np.abs(want) <= np.finfo(got.dtype).tiny)
    most = 3 << 16 if narrow else 3  # of bf16's last place: f32 has 16 more bits
    return bool(np.all(both | tiny | (apart <= most)))


def run(axle, path):
    """Nothing if the module passes; what failed."""
    try:
        text, checks = rewritten(path.read_text())
    except (ValueError, AttributeError):
        return "not a module with checks"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / path.name
        file.write_text(text)
        outs = [f"--out={i}={folder}/{i}.npy" for i in range(2 * len(checks))]
        try:
            done = subprocess.run([axle, "run", file, "--subnormals=keep", *outs], capture_output=True, text=True, timeout=120)
        except subprocess.TimeoutExpired:
            return "takes more than two minutes"
        if done.returncode != 0:
            lines = done.stderr.replace(folder + "/", "").splitlines()
            return f"exit {done.returncode}: " + (lines[0] if lines else "")
        for i, (kind, narrow) in enumerate(checks):
            if not passes(kind, narrow, np.load(f"{folder}/{2 * i}.npy"), np.load(f"{folder}/{2 * i + 1}.npy")):
                return f"{kind} {i}: other numbers"
    return None if checks else "no checks"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--axle", default="build/axle")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    files = [f for f in sorted(options.folder.rglob("*.mlir")) if re.search(options.only, str(f))]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        found = list(pool.map(lambda f: run(options.axle, f), files))
    failed = [(f, why) for f, why in zip(files, found) if why is not None]
    for f, why in failed if options.list else []:
        print(f"{f.relative_to(options.folder)}: {why}")
    kinds = collections.Counter(re.sub(r"^exit \d+: (axle: error: )?[\w.]+:\d+(:\d+)?: ", "", why)[:100] for _, why in failed)
    for why, count in kinds.most_common(40):
        print(f"{count:5} {why}")
    print(f"{len(files)} modules: {len(files) - len(failed)} pass, {len(failed)} do not")
    sys.exit(bool(failed))


main()
