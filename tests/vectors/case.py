"""What a case is, and how its inputs are made. Each group of cases is a pair of files: NAME.py says them in JAX, NAME.c through
Axle's API; their names, variants and modes must be the same. tests/vectors_test.c says what is compared.

A variant is a dtype ("f32"), or a mesh with the axes that the case's collectives go over ("d=8", "a=4,b=2:b,a"; without ":..",
over all, in order). On a mesh the function runs in a shard_map: `specs` gives one word an operand, and one a result:

  A    dimension 0 is split over all axes of the mesh
  R    over those that the collectives do not go over
  N    dimension 1 is split over those
  .    replicated
  else a literal: entries by "/", one a dimension, "_" for none: "_/b"
"""

import dataclasses
import re

import ml_dtypes
import numpy as np

DTYPES = {
    "bool": np.bool_, "s8": np.int8, "s16": np.int16, "s32": np.int32, "s64": np.int64, "u8": np.uint8, "u16": np.uint16,
    "u32": np.uint32, "u64": np.uint64, "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
COMPLEX = {"c64": np.complex64, "c128": np.complex128}


@dataclasses.dataclass
class Case:
    name: str
    variants: str
    function: object  # of (variant, operands..) where `with_variant` or on a mesh with specs; otherwise of (operands..)
    inputs: list  # each a function of (random, variant), which gives the array
    specs: str = ""  # "A . > R"
    unchecked: bool = False
    with_variant: bool = False
    modes: str = "vjg"  # values; jvp; gradient. The latter two only where there are float inputs and float results


class Variant:
    def __init__(self, text):
        self.text, self.dtype, self.mesh, self.axes = text, np.float32, {}, ()
        if "=" not in text:
            self.dtype = (DTYPES | COMPLEX)[text]
            return
        mesh, _, axes = text.partition(":")
        self.mesh = {name: int(size) for name, size in (entry.split("=") for entry in mesh.split(","))}
        self.axes = tuple(axes.split(",")) if axes else tuple(self.mesh)

    @property
    def devices(self):
        return int(np.prod(list(self.mesh.values())))

    @property
    def members(self):
        """How many devices a collective goes over."""
        return int(np.prod([self.mesh[axis] for axis in self.axes]))

    def spec(self, word):
        from jax.sharding import PartitionSpec

        rest = tuple(axis for axis in self.mesh if axis not in self.axes)
        if word == ".":
            return PartitionSpec()
        if word in "ARN":
            names = tuple(self.mesh) if word == "A" else rest
            return PartitionSpec(*[None] * (word == "N"), names) if names else PartitionSpec()
        entries = [tuple(entry.split("+")) for entry in word.split("/")]
        return PartitionSpec(*[None if entry == ("_",) else entry for entry in entries])


def is_float(dtype):
    return np.dtype(dtype).kind == "f" or dtype == ml_dtypes.bfloat16


def is_complex(dtype):
    return np.dtype(dtype).kind == "c"


def of_parts(make, random, variant, kind):
    """A complex array, each part made as a real one of its dtype."""
    part = np.empty(0, kind).real.dtype.type
    real, imag = make(random, variant, part), make(random, variant, part)
    array = np.empty(real.shape, kind)
    array.real, array.imag = real, imag
    return array


# --- Inputs: edge(24), real(3, 4), .. A dimension may be a function of the variant. ---

EDGES = [0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3.75, -3.75, 10, -10, np.inf, -np.inf, np.nan]


def _dims(dims, variant):
    return [dim(variant) if callable(dim) else dim for dim in dims]


def edge(count, dtype=None):
    """Half of them values where arithmetic goes wrong. No subnormals: XLA takes those of f32 and bf16 for zero."""

    def make(random, variant, part=None):
        kind = part or dtype or variant.dtype
        if is_complex(kind):
            return of_parts(make, random, variant, kind)
        if kind == np.bool_:
            return random.integers(0, 2, count).astype(kind)
        if is_float(kind):
            hard = random.choice(EDGES, count)
            return np.where(random.random(count) < 0.5, hard, random.normal(size=count) * 2).astype(kind)
        limits = np.iinfo(kind)
        hard = [limits.min, limits.max, limits.max - 1, 0, 1, 2, 3, 7] + ([-1, -2, -7] if limits.min < 0 else [])
        easy = random.integers(max(limits.min, -20), 20, count)
        picks = random.integers(0, len(hard), count)
        return np.array([hard[p] if p % 2 else int(e) for p, e in zip(picks, easy)], dtype=object).astype(kind)

    return make


def real(*dims, scale=1.0, shift=0.0, dtype=None):
    """Normal numbers; small integers where the dtype is no float."""

    def make(random, variant, part=None):
        kind = part or dtype or variant.dtype
        size = _dims(dims, variant)
        if is_complex(kind):
            return of_parts(make, random, variant, kind)
        if kind == np.bool_:
            return np.asarray(random.integers(0, 2, size)).astype(kind)
        if not is_float(kind):
            return np.asarray(random.integers(-5 if np.dtype(kind).kind == "i" else 0, 6, size)).astype(kind)
        return np.asarray(random.normal(size=size) * scale + shift).astype(kind)

    return make


def positive(*dims, dtype=None):
    def make(random, variant):
        return np.asarray(random.uniform(0.3, 3, _dims(dims, variant))).astype(dtype or variant.dtype)

    return make


def ties(*dims):
    """Few different values, so that maxima are shared."""

    def make(random, variant):
        return np.asarray(random.integers(0, 3, _dims(dims, variant))).astype(variant.dtype)

    return make


def index(below, *dims, above=0, dtype=np.int32):
    def make(random, variant):
        return np.asarray(random.integers(above, below, _dims(dims, variant))).astype(dtype)

    return make


def boolean(*dims):
    return real(*dims, dtype=np.bool_)


def shards(*dims, dtype=None, **options):
    """Dimension 0 is given for one device: the array has that for each."""
    first = lambda variant: _dims(dims[:1], variant)[0] * variant.devices
    return real(first, *dims[1:], dtype=dtype, **options)


def members(variant):
    return variant.members


def safe_name(name):
    if not re.fullmatch(r"[a-z0-9_]+", name):
        raise ValueError(f"bad case name {name!r}")
    return name
