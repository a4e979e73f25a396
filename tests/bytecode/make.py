"""Writes the modules of a folder as bytecode: StableHLO's as it is in memory, and of all.mlir artifacts of several versions of VHLO; and
mixed.mlir as jax.export writes programs over meshes, VHLO with Shardy's operations; files of jax.export: with an argument that is not used, for one platform and for three, and with what is refused.

  make.py FOLDER
"""

import io
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
from jax import export
from jax._src.interpreters import mlir
from jax._src.lib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
folder = Path(sys.argv[1])
for version in ("0.9.0", "0.12.0", "0.14.0", "1.0.0", "1.17.0"):
    artifact = stablehlo.serialize_portable_artifact_str((folder / "all.mlir").read_text(), version)
    (folder / f"all.{version}.mlirbc").write_bytes(artifact)
for name in ("all", "plain"):
    with mlir.make_ir_context():
        out = io.BytesIO()
        ir.Module.parse((folder / f"{name}.mlir").read_text()).operation.write_bytecode(out)
        (folder / f"{name}.plain.mlirbc").write_bytes(out.getvalue())
with mlir.make_ir_context():  # numbers of operands are attributes before version 6
    out = io.BytesIO()
    ir.Module.parse((folder / "plain.mlir").read_text()).operation.write_bytecode(out, desired_version=5)
    (folder / "plain.5.mlirbc").write_bytes(out.getvalue())
mixed = (folder / "mixed.mlir").read_text()
(folder / "mixed.1.0.0.mlirbc").write_bytes(_jax.mlir.serialize_portable_artifact(mixed, "1.0.0", True))


def function(x, unused, w):
    y = jax.lax.platform_dependent(x @ w, cpu=jnp.tanh, default=jnp.cos)
    return y, jax.jit(lambda x: jnp.sort(x, -1))(x)


arguments = [jax.ShapeDtypeStruct((3, 5), jnp.float32), jax.ShapeDtypeStruct((7,), jnp.bfloat16), jax.ShapeDtypeStruct((5, 4), jnp.float32)]
for name, platforms in (("cpu", ["cpu"]), ("three", ["cuda", "cpu", "tpu"]), ("tpu", ["tpu"])):
    file = export.export(jax.jit(function), platforms=platforms)(*arguments)
    (folder / f"{name}.export").write_bytes(file.serialize())
