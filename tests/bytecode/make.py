"""Writes the modules of a folder as bytecode: StableHLO's as it is in memory, and of all.mlir artifacts of several versions of VHLO.

  make.py FOLDER
"""

import io
import sys
from pathlib import Path

from jax._src.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

folder = Path(sys.argv[1])
for version in ("0.9.0", "0.12.0", "0.14.0", "1.0.0", "1.17.0"):
    artifact = stablehlo.serialize_portable_artifact_str((folder / "all.mlir").read_text(), version)
    (folder / f"all.{version}.mlirbc").write_bytes(artifact)
for name in ("all", "plain"):
    with mlir.make_ir_context():
        out = io.BytesIO()
        ir.Module.parse((folder / f"{name}.mlir").read_text()).operation.write_bytecode(out)
        (folder / f"{name}.plain.mlirbc").write_bytes(out.getvalue())
