/* Kernels that do the same at other places of their arrays. The places are data to their code, so one code serves all of them. */
#ifndef AX_ASSEMBLE_MOVED_H
#define AX_ASSEMBLE_MOVED_H

#include "plan/kernel.h"

/* Returns a kernel whose machine code serves for this one if slot k begins bytes[k] later. If there is no other, it is `kernel`
   itself, and the bytes are 0. `bytes` has an entry for each slot. NULL: no memory. */
const ax_loop_kernel *ax_kernel_moved(ax_arena *arena, const ax_loop_kernel *kernel, int64_t *bytes);

#endif
