/* Balancing, before eigenvalues are looked for: rows and columns are put in another order and divided by powers of 2. */
#ifndef AX_PLAIN_BALANCE_H
#define AX_PLAIN_BALANCE_H

#include "plain/matrix.h"

typedef struct ax_plain_balanced {
  ax_value matrices; /* T[b, n, n]: diag(scales)^-1 p^T x p diag(scales) */
  ax_value scales;   /* R[b, n, 1]: powers of 2 */
  ax_value places;   /* s32[b, n]: row i of x is row places[i] of the balanced matrix */
} ax_plain_balanced;
/* x T[b, n, n]: finite numbers, the largest near 1. As LAPACK's gebal, with its job "B". */
ax_plain_balanced ax_plain_balance(ax_value x);

#endif
