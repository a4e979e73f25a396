/* Whether products are contracted: what the caller, the environment and the default say. */
#ifndef AX_PLAN_CONTRACT_H
#define AX_PLAN_CONTRACT_H

#include "axle/exec.h"
#include "plan/kernel.h"

/* *fused: the choice asked for; where that is AX_CONTRACTION_DEFAULT, AXLE_CONTRACTION; without it, exact.
   AX_INVALID_ARGUMENT: no such choice, or AXLE_CONTRACTION is none of "exact" and "fused". */
AX_MUST_USE ax_status ax_contraction_fused(ax_contraction asked, bool *fused);
/* Reads "exact" or "fused". False: the word is neither. */
bool ax_contraction_find(const char *word, ax_contraction *out);

/* Marks the contracted sums of a kernel (ax_expr.imm). *any: there are such sums. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_kernel_contract(ax_loop_kernel *kernel, bool *any);
/* The product in a sum or difference that is not rounded by itself, as the number of the operand; -1: none. */
int ax_expr_contracted(const ax_expr *expr);

#endif
