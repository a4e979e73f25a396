/* Long reductions in blocks, so that several threads may work on one. */
#ifndef AX_PLAN_BLOCKS_H
#define AX_PLAN_BLOCKS_H

#include "plan/plan.h"

enum { AX_BLOCKED_OPS = 3 };

/* Puts into `out`, in place of the kernel operation `op`, a kernel that reduces `count` blocks of its reduced dimension `dim`, each
   into a part of a new buffer, perhaps one that reduces what is left over, and one that combines the parts in order. `*made` says
   how many; 0: it cannot be had. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_reduce_in_blocks(ax_plan *plan, const ax_op *op, uint32_t dim, int64_t count, ax_op *out, uint32_t *made);

#endif
