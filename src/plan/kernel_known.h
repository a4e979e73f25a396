/* Nodes of kernels whose result is known when they are made: of numbers, of a choice by one, and the like. */
#ifndef AX_PLAN_KERNEL_KNOWN_H
#define AX_PLAN_KERNEL_KNOWN_H

#include "plan/kernel.h"

/* A node that an operation on these nodes would equal; AX_NONE: none is known. It is a number, an operand, or takes less time,
   and is made if it is not there. That goes for integers and bools, also where only their ranges are known (kernel_range.h):
   floats are left to the code that computes them, but for roots of powers of four and numbers that are the same in another
   dtype. */
ax_ex ax_kernel_known(ax_loop_kernel *kernel, ax_scalar op, ax_dtype dtype, const ax_ex arg[3]);
/* If the operation divides by a power of two, of either sign: the number by which a product has the same bits, in less time. AX_NONE: it does
   not. */
ax_ex ax_kernel_inverse(ax_loop_kernel *kernel, ax_scalar op, ax_dtype dtype, ax_ex divisor);

#endif
