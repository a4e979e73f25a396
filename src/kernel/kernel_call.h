/* What kernel_call's files know of each other. */
#ifndef AX_KERNEL_KERNEL_CALL_H
#define AX_KERNEL_KERNEL_CALL_H

#include "kernel/kernel.h"

struct ax_lower;

/* Axes of devices along which bodies do different things: those they name, and those over which they signal or copy. (kernel_call.c) */
ax_axis_set ax_kernel_named(const ax_kernel_params *params);
/* Its lower rule. (kernel_call_lower.c) */
AX_MUST_USE ax_status ax_kernel_call_lower(struct ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);

#endif
