/* Where a slice lies in its operand, for rules of operations that read it there. */
#ifndef AX_OPS_SLICE_H
#define AX_OPS_SLICE_H

#include "plan/lower.h"

/* Whether operand k of an equation is a slice of another value, without steps: of which value of the program, its strides there and where it
   begins, in elements. */
bool ax_slice_place(const ax_lower *lower, const ax_eqn *eqn, uint32_t k, uint32_t *whole, int64_t *strides, int64_t *offset);

#endif
