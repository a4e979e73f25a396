/* Schur's form of matrices of a batch, and blocks of 2 by 2 on the diagonals of such forms. */
#ifndef AX_PLAIN_SCHUR_H
#define AX_PLAIN_SCHUR_H

#include "plain/francis.h"

/* Matrices of any batch as T[b, n, n], divided by numbers near their largest ones, R[b]; zeros where they have numbers that are
   not finite. */
typedef struct ax_plain_prepared {
  ax_value matrices, finite, scale; /* finite: bool[b] */
} ax_plain_prepared;
ax_plain_prepared ax_plain_prepare(ax_value x);
/* x T[b, n, n]: finite numbers, the largest near 1. x = q t q^H; where vectors are not wanted q is not there. t as ax_schur
   gives it. */
ax_plain_schur_form ax_plain_schur_of(ax_value x, bool vectors);

/* T[n - 1] each, for blocks that begin at row i: a unitary matrix, and what it makes of the block; row by row. is: bool[n - 1]:
   there is one. */
typedef struct ax_plain_blocks {
  ax_value is, turn[4], made[4];
} ax_plain_blocks;
/* Where a block of the triangle begins; its elements. T[n - 1] */
ax_value ax_plain_block_at(ax_value t);
void ax_plain_block_elements(ax_value t, ax_value *elements);
/* *t becomes p^H t p, and *q, unless q is NULL, q p: p has the blocks' matrices on its diagonal and else ones. T[n, n] */
void ax_plain_turn_blocks(const ax_plain_blocks *blocks, ax_value *t, ax_value *q);

#endif
