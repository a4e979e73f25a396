/* What fusion (fuse.c) asks of kernels alone: whether it is worth it, not whether it is allowed. */
#ifndef AX_PLAN_FUSE_WORTH_H
#define AX_PLAN_FUSE_WORTH_H

#include "plan/plan.h"

/* An element of what is stored costs no more than a load: one load and nothing else, a little work on indices, anything on
   constants (which the compiler does). */
bool ax_store_is_cheap(const ax_loop_kernel *kernel, const ax_store *store);
/* All that a kernel does. A reduction is not: no reader can make it of a load. */
bool ax_kernel_is_cheap(const ax_loop_kernel *kernel);
/* One node alone loads from the slot; some load from it has a guard. */
bool ax_kernel_loads_once(const ax_loop_kernel *kernel, uint32_t slot);
bool ax_kernel_guards(const ax_loop_kernel *kernel, uint32_t slot);

/* They walk memory in the same order. Rows of one array and columns of another, gone through together, are one of them against the
   grain. */
bool ax_kernels_walk_alike(const ax_loop_kernel *a, const ax_loop_kernel *b);
/* One reduces long rows to few results, which is done in blocks (plan/blocks.h), and the other stores each element, which cannot be
   done there. */
bool ax_kernels_need_blocks(const ax_loop_kernel *a, const ax_loop_kernel *b);
bool ax_kernels_same_space(const ax_loop_kernel *a, const ax_loop_kernel *b);
/* Both together touch no more buffers than a kernel may. */
bool ax_bounds_fit(const ax_bound *a, const ax_bound *b);

#endif
