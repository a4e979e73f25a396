/* What a kernel's target has of memory, and whether the kernel keeps to it. */
#ifndef AX_KERNEL_TARGET_H
#define AX_KERNEL_TARGET_H

#include "kernel/kernel.h"

/* Whether what is alive at once, on each core and each of a body's paths, fits the target the parameters name; that no core loads
   or stores where it cannot. AX_INVALID_ARGUMENT: with what took how much. */
AX_MUST_USE ax_status ax_target_check(const ax_kernel_params *params);

#endif
