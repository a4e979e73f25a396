/* The integers that a node of a kernel can be, as far as the way it is made tells: i & 255 is one of 0 .. 255, and an index is
   below its dimension. */
#ifndef AX_PLAN_KERNEL_RANGE_H
#define AX_PLAN_KERNEL_RANGE_H

#include "plan/kernel.h"

/* Of a node that is being added, whose operands are there. */
ax_integers ax_kernel_range_of(const ax_loop_kernel *kernel, const ax_expr *expr);
static inline ax_integers ax_kernel_range(const ax_loop_kernel *kernel, ax_ex node) { return kernel->exprs[node].range; }

#endif
