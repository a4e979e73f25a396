/* The order of a sum's loops: memory is gone over as it lies.

     for i0<7 i1<2048, reduce i2<256:  s0[i1, 256 i0 + i2]   ->   for i0<2048 i1<7, reduce i2<256:  s0[i0, 256 i1 + i2] */
#ifndef AX_PLAN_KERNEL_ORDER_H
#define AX_PLAN_KERNEL_ORDER_H

#include "plan/kernel.h"

/* A kernel that reduces, with the dimensions that it does not reduce over in the order in which its longest load goes through
   memory; itself where that is their order, where it does not reduce, and where its results are no fewer than what it loads.
   NULL: out of memory. */
ax_loop_kernel *ax_kernel_in_memory_order(ax_arena *arena, ax_loop_kernel *kernel);

#endif
