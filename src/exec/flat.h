/* Kernels that go over arrays as they lie, element by element: how many elements there are is data, so one code does for all
   shapes. */
#ifndef AX_EXEC_FLAT_H
#define AX_EXEC_FLAT_H

#include "plan/kernel.h"

/* The kernel whose code does what this one's does: itself, and *scale is 1; or one in the arena, of which *scale steps are one of
   this one's ranged dimension. That one's dimensions say nothing but which of a few classes of shapes this one is of: kernels that
   do the same over other shapes have the same. NULL: no memory. */
const ax_loop_kernel *ax_kernel_flat(ax_arena *arena, const ax_loop_kernel *kernel, int64_t *scale);

#endif
