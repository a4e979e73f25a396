/* Arrays combined along dimensions by a function of scalars: rules of reductions add it to the trace in progress as slices and
   pointwise operations, which any transform takes and which compile to a few kernels. */
#ifndef AX_OPS_FOLD_H
#define AX_OPS_FOLD_H

#include "prim/scalars.h"

/* Combines the elements of `count` arrays of one shape along the axes by the body, a function of 2 * count scalars to count, in
   row-major order; something is there along each of them. x[k] becomes the result, without these dimensions. */
void ax_fold(const ax_program *body, uint32_t count, ax_value *x, const ax_dims *axes);

#endif
