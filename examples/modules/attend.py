"""Attention over batches and sequences of any size in JAX, and the text of its module: python3 attend.py > attend.mlir"""

import jax
import jax.numpy as jnp
from jax import export


def attend(q, k, v):
    scores = jnp.einsum("bqd,bkd->bqk", q, k) / q.shape[-1] ** 0.5
    mask = jnp.arange(q.shape[1])[:, None] >= jnp.arange(k.shape[1])
    return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(jnp.where(mask, scores, -1e9)), v)


jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")  # lines of attend.py, wherever it lies
array = jax.ShapeDtypeStruct(export.symbolic_shape("b, s, 4"), "float32")
print(export.export(jax.jit(attend))(array, array, array).mlir_module(), end="")
