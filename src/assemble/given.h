/* Kernels that differ in numbers alone. The numbers are data to their code, so one code serves all of them. */
#ifndef AX_ASSEMBLE_GIVEN_H
#define AX_ASSEMBLE_GIVEN_H

#include "plan/kernel.h"

/* Returns a kernel that is given numbers by its calls (AX_LEAF_GIVEN) where this one has constants, and else is the same: it gives
   the same bits, with the same loops. bits[k]: number k, for this kernel; there is room for AX_MAX_GIVEN. If there is none to be
   given, it is `kernel` itself. NULL: no memory. */
const ax_loop_kernel *ax_kernel_given(ax_arena *arena, const ax_loop_kernel *kernel, uint64_t *bits, uint32_t *count);

#endif
