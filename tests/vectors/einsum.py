"""einsum: subscripts as users write them, and its corners. A case's operands, in order, have the shapes given."""

import jax.numpy as jnp

from case import Case, real

SUMS, FLOAT = "f32 f64 bf16 s32", "f32 f64"


def einsum(name, subscripts, *shapes, variants=FLOAT):
    return Case(name, variants, lambda *operands: jnp.einsum(subscripts, *operands), [real(*shape) for shape in shapes])


CASES = [
    einsum("product", "ij,jk->ik", (3, 4), (4, 5), variants=SUMS),
    einsum("product_usual", "ij,jk", (3, 4), (4, 5)),
    einsum("product_transposed", "ij,jk->ki", (3, 4), (4, 5), variants=SUMS),
    einsum("product_both_transposed", "ji,kj->ki", (4, 3), (5, 4)),
    einsum("batched", "bij,bjk->bik", (2, 3, 4), (2, 4, 5), variants=SUMS),
    einsum("batch_last", "ijb,jkb->ikb", (3, 4, 2), (4, 5, 2)),
    einsum("heads", "bqhd,bkhd->bhqk", (2, 3, 2, 4), (2, 5, 2, 4)),
    einsum("values", "bhqk,bkhd->bqhd", (2, 2, 3, 5), (2, 5, 2, 4)),
    einsum("projection", "btd,dhk->bthk", (2, 3, 4), (4, 2, 3)),
    einsum("inner", "i,i", (7,), (7,), variants=SUMS),
    einsum("inner_matrices", "ij,ij->", (3, 4), (3, 4), variants=SUMS),
    einsum("outer", "i,j->ji", (3,), (2,), variants=SUMS),
    einsum("hadamard", "ij,ji->ij", (3, 4), (4, 3)),
    einsum("scale_rows", "ij,i->ij", (3, 4), (3,)),
    einsum("scalar", ",ij->ji", (), (3, 4)),
    einsum("transpose", "abc->cab", (2, 3, 4), variants=SUMS),
    einsum("sum", "ijk->j", (2, 3, 4), variants=SUMS),
    einsum("sum_all", "ij->", (3, 4)),
    einsum("alone", "ij,k->i", (3, 4), (5,)),
    einsum("trace", "ii", (4, 4), variants=SUMS),
    einsum("diagonal", "ii->i", (4, 4), variants=SUMS),
    einsum("diagonals", "aibij,bj->aj", (2, 3, 2, 3, 4), (2, 4)),
    einsum("diagonal_thrice", "iaii->ai", (3, 2, 3, 3)),
    einsum("ellipsis", "...ij,...jk->...ik", (5, 1, 3, 4), (2, 4, 2)),
    einsum("ellipsis_usual", "i...,...j", (3, 2), (2, 4)),
    einsum("ellipsis_moved", "a...b->b...a", (2, 3, 4, 5)),
    einsum("ellipsis_summed", "...i,...i->i", (2, 3, 4), (3, 4)),
    einsum("ones_stretch", "ij,jk->ik", (3, 1), (4, 2)),
    einsum("ones_stretch_kept", "ij,ij->ij", (3, 1), (3, 4)),
    einsum("three", "ij,jk,kl->il", (2, 3), (3, 4), (4, 5), variants=FLOAT),
    einsum("quadratic", "i,ij,j", (3,), (3, 4), (4,)),
    einsum("tensor_train", "ab,bic,cjd,d->aij", (2, 3), (3, 2, 4), (4, 3, 2), (2,)),
    einsum("eight", "ab,bc,cd,de,ef,fg,gh,ha->", (2, 3), (3, 2), (2, 4), (4, 2), (2, 3), (3, 2), (2, 2), (2, 2)),
    einsum("ten", "a,b,ab,bc,cd,de,ef,fg,gh,hi->i", (2,), (3,), (2, 3), (3, 2), (2, 2), (2, 3), (3, 2), (2, 3), (3, 2), (2, 3)),
    einsum("hyperedge", "ai,bi,ci->abc", (2, 5), (3, 5), (4, 5)),
    einsum("nothing", "ij,jk->ik", (2, 0), (0, 3), variants="f32"),
]  # fmt: skip
