/* The parameters of triangular_solve, for its block rule. */
#ifndef AX_LINALG_TRIANGULAR_SOLVE_H
#define AX_LINALG_TRIANGULAR_SOLVE_H

#include <stdbool.h>

typedef struct ax_triangular_solve_params {
  bool left_side, lower, transpose_a, conjugate_a, unit_diagonal;
} ax_triangular_solve_params;

#endif
