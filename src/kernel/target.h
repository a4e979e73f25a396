/* The memory of a kernel's target, and the check that a kernel fits into it. */
#ifndef AX_KERNEL_TARGET_H
#define AX_KERNEL_TARGET_H

#include "kernel/kernel.h"

/* Checks that the refs that are alive at the same time, on each core and each path of a body, fit the target that the parameters
   name, and that no core loads or stores where it cannot. AX_INVALID_ARGUMENT: the message lists each ref with its bytes. */
AX_MUST_USE ax_status ax_target_check(const ax_kernel_params *params);

#endif
