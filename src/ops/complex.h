/* Complex numbers in the pointwise family: lowering and reference evaluation of its members. */
#ifndef AX_OPS_COMPLEX_H
#define AX_OPS_COMPLEX_H

#include "ir/number.h"
#include "ir/prim.h"
#include "prim/expand.h"

/* The slot `complex` of pointwise primitives: the formula of their scalar operation on the parts (complex_functions.c). */
ax_status ax_complex_pointwise(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);
/* For hlo rules: the same formula, where StableHLO has none for complex numbers. */
ax_status ax_complex_pointwise_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);
/* The reference: x[0], and x[1] of operations of two operands -> the result, not rounded (complex_eval.c). */
ax_number ax_complex_eval(ax_scalar op, ax_dtype dtype, const ax_number *x, int64_t imm);

#endif
