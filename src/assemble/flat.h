/* Kernels over arrays in memory order, element by element. The number of elements is data to their code, so one code serves all
   shapes. */
#ifndef AX_ASSEMBLE_FLAT_H
#define AX_ASSEMBLE_FLAT_H

#include "plan/kernel.h"

/* The number of elements that stands for the class of `elems` along one dimension: `elems` itself, if there is no other in it. */
int64_t ax_flat_class(int64_t elems);

/* Returns a kernel whose machine code serves for this one. If there is no other, it is `kernel` itself, and *scale is 1.
   Otherwise it is one in the arena that stands for all kernels that do the same over shapes of one class: its dimensions name the
   class. One step of `kernel` along its ranged dimension is then *scale of its steps. NULL: no memory. */
const ax_loop_kernel *ax_kernel_flat(ax_arena *arena, const ax_loop_kernel *kernel, int64_t *scale);

#endif
