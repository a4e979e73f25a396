"""Lets XLA run what examples/stablehlo.c wrote, on CPU devices, and compares the results. Needs JAX.

  python3 examples/stablehlo.py FOLDER        from the source root
"""

import os
import subprocess
import sys

import numpy as np

folder = sys.argv[1]
runner = os.path.join(os.path.dirname(__file__), "..", "tests", "oracle", "run_stablehlo.py")
files = [os.path.join(folder, name) for name in ("softmax.mlir", "softmax_in.npz", "softmax_xla.npz")]
subprocess.run([sys.executable, runner, *files], check=True)

ours = np.load(os.path.join(folder, "softmax_out.npz"))["0"]
theirs = np.load(files[2])["0"]
print(f"the largest difference from XLA's result is {np.abs(ours - theirs).max():.1e}")
np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-7)
