"""Writes dtypes.npz: what ml_dtypes says of floats of a byte, for tests/byte_floats_test.c.

  $AXLE_JAX_PYTHON tests/vectors/make_dtypes.py tests/vectors

For each of them: `NAME_f32`, the f32 of each of its bits; `NAME_from_bf16` and `NAME_from_f16`, its bits of each bf16 and each f16;
`NAME_from_f32`, its bits of the numbers in `f32`: every middle between neighbours of any of these dtypes, and the f32 beside it.
NumPy casts f64 by way of f32, and so rounds twice: those are in the test, from first principles."""
import sys

import ml_dtypes
import numpy as np

FLOATS = ("float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz "
          "float8_e5m2 float8_e5m2fnuz float8_e8m0fnu").split()


def short(name):
  return name.replace("float", "f").replace("_", "")


def sample(dtypes):
  numbers = []
  for d in dtypes:
    own = np.unique(np.arange(2 ** ml_dtypes.finfo(d).bits, dtype=np.uint8).view(d).astype(np.float32))
    own = own[np.isfinite(own)].astype(np.float64)
    own = np.concatenate([own, own[-1:] * 2, own[-1:] * 3])
    numbers += [own, (own[1:] + own[:-1]) / 2]
  with np.errstate(over="ignore"):
    exact = np.unique(np.concatenate(numbers)).astype(np.float32)
  near = np.concatenate([exact, np.nextafter(exact, np.float32(np.inf)), np.nextafter(exact, np.float32(-np.inf))])
  edges = np.array([0.0, np.nan, np.inf, -np.inf, 1e-45, -1e-45, 1e-38, 3.4e38, -3.4e38], np.float32)
  return np.concatenate([np.unique(near), edges, -edges[:2]])


def main():
  dtypes = [np.dtype(getattr(ml_dtypes, name)) for name in FLOATS]
  out = {"f32": sample(dtypes)}
  words = np.arange(65536, dtype=np.uint16)
  for name, d in zip(FLOATS, dtypes):
    with np.errstate(all="ignore"):
      out[f"{short(name)}_f32"] = np.arange(2 ** ml_dtypes.finfo(d).bits, dtype=np.uint8).view(d).astype(np.float32)
      out[f"{short(name)}_from_bf16"] = words.view(ml_dtypes.bfloat16).astype(d).view(np.uint8)
      out[f"{short(name)}_from_f16"] = words.view(np.float16).astype(d).view(np.uint8)
      out[f"{short(name)}_from_f32"] = out["f32"].astype(d).view(np.uint8)
  np.savez_compressed(f"{sys.argv[1]}/dtypes.npz", **out)


main()
