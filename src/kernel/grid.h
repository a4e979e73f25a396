/* The grids around the functions that are being traced, for ax_program_id and ax_num_programs. A kernel over a grid has one, and so
   has each pipeline, whose body's numbers are the steps' of the pipeline. */
#ifndef AX_KERNEL_GRID_H
#define AX_KERNEL_GRID_H

#include "kernel/kernel.h"

/* From here on, in the trace in progress and those inside it, until it is popped or the trace ends: `count` dimensions of these
   sizes, and the number in each: s32[] of this trace, or one around it. ids NULL: those of the kernel_call, which program_id gives.
   Copied. False: the trace has failed. */
bool ax_grid_push(uint32_t count, const ax_value *ids, const int64_t *sizes);
void ax_grid_pop(void);

#endif
