/* The integers that a node of a kernel can be, as far as the way it is made tells: i & 255 is one of 0 .. 255, and an index is below
   its dimension. */
#ifndef AX_PLAN_KERNEL_RANGE_H
#define AX_PLAN_KERNEL_RANGE_H

#include "plan/kernel.h"

/* low .. high, both included, as numbers of the node's dtype. is: false if nothing is known, as of bools, floats and large u64. */
typedef struct ax_integers {
  bool is;
  int64_t low, high;
} ax_integers;

/* Looks a few nodes deep. */
ax_integers ax_kernel_range(const ax_loop_kernel *kernel, ax_ex node);

#endif
