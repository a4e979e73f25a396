"""Says who is nearer to the truth where Axle and openxla/stablehlo's testdata differ by more than a module's tolerance of 3 units in the
last place: computes what these modules compute exactly, with fractions and decimals, from the inputs that they hold.

  exact_testdata.py FOLDER [--axle build/axle] [--only REGEX]

A line for each module: how many elements differ by more; the largest distance from the exact value, in units of the expected one, of
what Axle computes and of what the module expects, over all elements and over those; and whether a program that rounds each exact value
correctly would pass. Where it would not, the module asks for the roundings of one order of operations.
"""

import argparse
import decimal
import re
import subprocess
import tempfile
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np

TOLERANCE = 3
DTYPES = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i64": np.int64, "i32": np.int32,
    "i16": np.int16, "i8": np.int8, "ui64": np.uint64, "ui32": np.uint32, "ui16": np.uint16, "ui8": np.uint8,
}  # fmt: skip
decimal.getcontext().prec = 60

# --- Reading a module's constants ---


def number(text, dtype):
    if text.startswith("0x"):
        return np.frombuffer(int(text, 16).to_bytes(np.dtype(dtype).itemsize, "little"), dtype)[0]
    return dtype(int(text) if np.issubdtype(dtype, np.integer) else float(text))


def elements(text, type_text):
    *dims, element = type_text.split("x", type_text.count("x") - ("complex" in type_text))
    shape = [int(d) for d in dims]
    part = element.removeprefix("complex<").removesuffix(">")
    dtype = DTYPES[part]
    if text.startswith('"0x'):
        flat = np.frombuffer(bytes.fromhex(text[3:-1]), dtype)
    else:
        flat = np.array([number(x, dtype) for x in re.findall(r"0x[0-9A-F]+|[-+]?\d[\d.]*(?:[eE][-+]?\d+)?", text)], dtype)
    if part != element:
        flat = flat.view({np.float32: np.complex64, np.float64: np.complex128}[dtype])
    return flat.reshape(shape)


def constants(text, function):
    start = text.index(f"func.func private @{function}()")
    found = re.findall(r"stablehlo\.constant dense<(.*)> : tensor<(.*)>\n", text[start : text.index("\n  }", start)])
    return [elements(*each) for each in found]


# --- Exact values: arrays of fractions; of complex numbers with the parts along a last dimension ---


def exact(x):
    if np.iscomplexobj(x):
        return np.stack([exact(x.real), exact(x.imag)], -1)
    return np.vectorize(lambda v: Fraction(int(v)) if np.issubdtype(x.dtype, np.integer) else Fraction(float(v)), otypes=[object])(x)


def as_complex(x):
    return exact(x) if np.iscomplexobj(x) else np.stack([exact(x), exact(np.zeros(x.shape))], -1)


def dot(x, y):
    a, b = as_complex(x), as_complex(y)
    real = a[..., 0].dot(b[..., 0]) - a[..., 1].dot(b[..., 1])
    return np.stack([real, a[..., 0].dot(b[..., 1]) + a[..., 1].dot(b[..., 0])], -1)


def window_sums(size, stride, high):
    def run(x):
        x = np.pad(exact(x), [(0, high)] * 2, constant_values=Fraction(0))
        count = [(n - size) // stride + 1 for n in x.shape]
        at = lambda i, j: x[i * stride : i * stride + size, j * stride : j * stride + size].sum()
        return np.array([[at(i, j) for j in range(count[1])] for i in range(count[0])], object)

    return run


def select_and_scatter(window, padding):
    def run(source, x):
        x = np.pad(x, padding, constant_values=-np.inf)
        out = np.full(x.shape, Fraction(0), object)
        for at in np.ndindex(source.shape):
            inside = x[tuple(slice(i, i + n) for i, n in zip(at, window))]
            out[tuple(np.add(at, np.unravel_index(inside.argmax(), inside.shape)))] += Fraction(float(source[at]))
        return out[tuple(slice(padding, n - padding) for n in x.shape)]

    return run


def solve(a, b):  # x a = b, upper triangular
    a, b = exact(a), exact(b)
    x = np.full(b.shape, Fraction(0), object)
    for j in range(a.shape[-1]):
        for k in range(a.shape[0]):
            x[k, :, j] = (b[k, :, j] - x[k, :, :j].dot(a[k, :j, j])) / a[k, j, j]
    return x


def apply(function, x):
    return np.vectorize(lambda v: Fraction(function(decimal.Decimal(float(v)))), otypes=[object])(x)


def cosh(x):
    return apply(lambda v: (v.exp() + (-v).exp()) / 2, x)


def cumlogsumexp(x):
    sums = np.cumsum(apply(decimal.Decimal.exp, x), 0)
    return np.vectorize(lambda v: Fraction((decimal.Decimal(v.numerator) / v.denominator).ln()), otypes=[object])(sums)


def inverse_dft(x, axis):
    n = x.shape[axis]
    turns = 2 * np.arccos(np.longdouble(-1)) * (np.outer(np.arange(n), np.arange(n)) % n) / n
    made = np.tensordot((np.cos(turns) + 1j * np.sin(turns)) / n, x, ([1], [axis]))
    return np.moveaxis(made, 0, axis)


def irfft(x):  # in long double: 11 bits more than f64's, and 40 more than f32's
    x = inverse_dft(inverse_dft(x.astype(np.clongdouble), 1), 2)
    whole = np.concatenate([x, np.conj(x[..., -2:0:-1])], -1)
    whole[..., 0], whole[..., 16] = x[..., 0].real, x[..., 16].real
    made = inverse_dft(whole, 3).real
    return np.vectorize(lambda v: Fraction(*v.as_integer_ratio()), otypes=[object])(made)


MODULES = [
    (r"dot_general_.*_4_3_complex.*", dot),
    (r"cumsum_.*_8_9", lambda x: np.cumsum(exact(x), 0)),
    (r"cumlogsumexp_.*_8_9", cumlogsumexp),
    (r"cosh_float32_20_20_chlo", cosh),
    (r"fft_complex64_14_15_16_17", irfft),
    (r"reduce_window_add_float64_4_6", window_sums(2, 1, 0)),
    (r"reduce_window_add_float32_12_12", window_sums(3, 2, 1)),
    (r"select_and_scatter_add_float32_2_3_4_float32_2_4_6", select_and_scatter((1, 2, 3), 0)),
    (r"select_and_scatter_add_float32_3_5_7_float32_2_4_6", select_and_scatter((2, 2, 2), 1)),
    (r"triangular_solve_float32_2_8_8_float32_2_10_8", solve),
]

# --- Comparing ---


def run(axle, text):
    with tempfile.TemporaryDirectory() as folder:
        plain = "\n".join(line for line in text.split("\n") if "check.expect_close" not in line)
        done = subprocess.run([axle, "run", "-", "--subnormals=keep", "--out", f"0={folder}/0.npy"], input=plain, text=True,
                              capture_output=True)  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return np.load(f"{folder}/0.npy")


def parts(x):
    return np.stack([x.real, x.imag], -1) if np.iscomplexobj(x) else x


def compare(axle, path, function):
    text = path.read_text()
    (expected,) = constants(text, "expected")
    got = parts(run(axle, text).view(expected.dtype))
    true, expected = function(*constants(text, "inputs")), parts(expected)
    unit = np.abs(np.nextafter(expected, np.array(np.inf, expected.dtype)).astype(np.float64) - expected.astype(np.float64))
    away = lambda x: np.vectorize(lambda a, b, u: float(abs(a - b) / Fraction(u)), otypes=[float])(exact(x), true, unit)
    ours, theirs, apart = away(got), away(expected), np.abs(got.astype(np.float64) - expected.astype(np.float64)) / unit
    beyond = apart > TOLERANCE
    rounded = np.vectorize(float, otypes=[float])(true).astype(expected.dtype)
    correct = np.abs(rounded.astype(np.float64) - expected.astype(np.float64)) / unit
    passes = "would pass" if (correct <= TOLERANCE).all() else f"would not pass, {correct.max():.0f} units away"
    worst = lambda x: f"{x.max():.2f}" if x.size > 0 else "-"
    print(f"{path.stem}: {beyond.sum()} differ; all: Axle {worst(ours)}, expected {worst(theirs)}; "
          f"these: Axle {worst(ours[beyond])}, expected {worst(theirs[beyond])}; correct rounding {passes}")  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--axle", default="build/axle")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    for path in sorted(options.folder.glob("*.mlir")):
        found = [function for pattern, function in MODULES if re.fullmatch(pattern, path.stem)]
        if found and re.search(options.only, path.stem) and "check.expect_close" in path.read_text():
            compare(options.axle, path, found[0])


main()
