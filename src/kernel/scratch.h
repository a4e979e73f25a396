/* Scratch: memory, semaphores and barriers that kernels and scopes have beside their operands. */
#ifndef AX_KERNEL_SCRATCH_H
#define AX_KERNEL_SCRATCH_H

#include "kernel/local.h"

/* Each is a ref, semaphores or barriers, and barriers, and they alone, have arrivals. */
AX_MUST_USE ax_status ax_scratch_check(const ax_types *scratch, const ax_pairs *arrivals);
/* As parameters, in the trace's memory; false: the trace has failed. */
bool ax_take_scratch(const char *function, uint32_t count, const ax_scratch *scratch, ax_types *types, ax_pairs *arrivals);

/* A REGION that stands whole or not at all: prune's rule. */
ax_status ax_prune_nothing(const ax_prune_args *args);

#endif
