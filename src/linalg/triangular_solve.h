/* The parameters of triangular_solve, for its block rule; and its call of BLAS, which linear_solve shares. */
#ifndef AX_LINALG_TRIANGULAR_SOLVE_H
#define AX_LINALG_TRIANGULAR_SOLVE_H

#include "linalg/matrices.h"

typedef struct ax_triangular_solve_params {
  bool left_side, lower, transpose_a, conjugate_a, unit_diagonal;
} ax_triangular_solve_params;

/* Solves op(a) x = b, or x op(a) = b, for the right sides from call->from to call->to, of which x, the first one's first element,
   holds b. */
void ax_solve_by_blas(const ax_matrix_call *call, const void *a, char *x);

#endif
