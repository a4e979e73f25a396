/* Large matrices by blocks: LAPACK's routines on blocks at the diagonal, and products of matrices for all else. These take several
   threads, with bits that do not depend on how many; on one they take as long as OpenBLAS's routine on the whole. */
#ifndef AX_LINALG_BLOCKED_H
#define AX_LINALG_BLOCKED_H

#include "linalg/matrices.h"
#include "linalg/triangular_solve.h"

/* Whether a triangle of n rows of this dtype, with so many right sides, is worth blocks. */
bool ax_is_blocked(ax_dtype dtype, int64_t n, int64_t vectors);
/* triangular_solve of real numbers; binds equations in the trace in progress, for an expansion. */
ax_value ax_blocked_solve(const ax_triangular_solve_params *p, ax_value a, ax_value b);
/* lu of real numbers: factors, pivots. */
bool ax_is_blocked_lu(ax_dtype dtype, int64_t m, int64_t n);
void ax_blocked_lu(ax_value x, ax_value *out);

#endif
