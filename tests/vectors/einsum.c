/* einsum: subscripts as users write them, and its corners: einsum.py says the same in JAX. */
#include "vectors/vectors.h"

#define SUMS "f32 f64 bf16 s32"
#define FLOAT "f32 f64"

#define EINSUM(name, subscripts, count) \
  BODY(name) { out[0] = ax_einsum(subscripts, AX_LIST(count, in)); }

EINSUM(product, "ij,jk->ik", 2)
EINSUM(product_usual, "ij,jk", 2)
EINSUM(product_transposed, "ij,jk->ki", 2)
EINSUM(product_both_transposed, "ji,kj->ki", 2)
EINSUM(batched, "bij,bjk->bik", 2)
EINSUM(batch_last, "ijb,jkb->ikb", 2)
EINSUM(heads, "bqhd,bkhd->bhqk", 2)
EINSUM(values, "bhqk,bkhd->bqhd", 2)
EINSUM(projection, "btd,dhk->bthk", 2)
EINSUM(inner, "i,i", 2)
EINSUM(inner_matrices, "ij,ij->", 2)
EINSUM(outer, "i,j->ji", 2)
EINSUM(hadamard, "ij,ji->ij", 2)
EINSUM(scale_rows, "ij,i->ij", 2)
EINSUM(scalar, ",ij->ji", 2)
EINSUM(transpose, "abc->cab", 1)
EINSUM(sum, "ijk->j", 1)
EINSUM(sum_all, "ij->", 1)
EINSUM(alone, "ij,k->i", 2)
EINSUM(trace, "ii", 1)
EINSUM(diagonal, "ii->i", 1)
EINSUM(diagonals, "aibij,bj->aj", 2)
EINSUM(diagonal_thrice, "iaii->ai", 1)
EINSUM(ellipsis, "...ij,...jk->...ik", 2)
EINSUM(ellipsis_usual, "i...,...j", 2)
EINSUM(ellipsis_moved, "a...b->b...a", 1)
EINSUM(ellipsis_summed, "...i,...i->i", 2)
EINSUM(ones_stretch, "ij,jk->ik", 2)
EINSUM(ones_stretch_kept, "ij,ij->ij", 2)
EINSUM(three, "ij,jk,kl->il", 3)
EINSUM(quadratic, "i,ij,j", 3)
EINSUM(tensor_train, "ab,bic,cjd,d->aij", 4)
EINSUM(eight, "ab,bc,cd,de,ef,fg,gh,ha->", 8)
EINSUM(ten, "a,b,ab,bc,cd,de,ef,fg,gh,hi->i", 10)
EINSUM(hyperedge, "ai,bi,ci->abc", 3)
EINSUM(nothing, "ij,jk->ik", 2)

#define CASE(name, variants, count) \
  { #name, variants, .body = name, .in = count, .scaled = true }

static const vector_case einsum_cases[] = {
    CASE(product, SUMS, 2),
    CASE(product_usual, FLOAT, 2),
    CASE(product_transposed, SUMS, 2),
    CASE(product_both_transposed, FLOAT, 2),
    CASE(batched, SUMS, 2),
    CASE(batch_last, FLOAT, 2),
    CASE(heads, FLOAT, 2),
    CASE(values, FLOAT, 2),
    CASE(projection, FLOAT, 2),
    CASE(inner, SUMS, 2),
    CASE(inner_matrices, SUMS, 2),
    CASE(outer, SUMS, 2),
    CASE(hadamard, FLOAT, 2),
    CASE(scale_rows, FLOAT, 2),
    CASE(scalar, FLOAT, 2),
    CASE(transpose, SUMS, 1),
    CASE(sum, SUMS, 1),
    CASE(sum_all, FLOAT, 1),
    CASE(alone, FLOAT, 2),
    CASE(trace, SUMS, 1),
    CASE(diagonal, SUMS, 1),
    CASE(diagonals, FLOAT, 2),
    CASE(diagonal_thrice, FLOAT, 1),
    CASE(ellipsis, FLOAT, 2),
    CASE(ellipsis_usual, FLOAT, 2),
    CASE(ellipsis_moved, FLOAT, 1),
    CASE(ellipsis_summed, FLOAT, 2),
    CASE(ones_stretch, FLOAT, 2),
    CASE(ones_stretch_kept, FLOAT, 2),
    CASE(three, FLOAT, 3),
    CASE(quadratic, FLOAT, 3),
    CASE(tensor_train, FLOAT, 4),
    CASE(eight, FLOAT, 8),
    CASE(ten, FLOAT, 10),
    CASE(hyperedge, FLOAT, 3),
    CASE(nothing, "f32", 2),
};

const VECTOR_GROUP(einsum);
