/* Checks that functions of matrices share. */
#ifndef AX_LIB_LINEAR_H
#define AX_LIB_LINEAR_H

#include "prim/composite.h"

/* The operand is a batch of matrices of f32, f64 or complex numbers, square ones if so asked. False: the trace has failed. */
bool ax_matrix_operand(const char *function, ax_value x, bool square, ax_type *type);

#endif
