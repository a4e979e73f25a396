/* Long reductions in blocks, so that several threads may work on one. */
#ifndef AX_PLAN_BLOCKS_H
#define AX_PLAN_BLOCKS_H

#include "plan/plan.h"

enum { AX_BLOCKED_OPS = 3 };

/* Replaces the kernel operation `op` by the operations in `out`: a kernel that reduces `count` blocks of its reduced dimension
   `dim`, each into a part of a new buffer; a kernel that reduces the rest, if there is one; and a kernel that combines the parts
   in order. *made: how many they are; 0: not possible. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_reduce_in_blocks(ax_plan *plan, const ax_op *op, uint32_t dim, int64_t count, ax_op *out, uint32_t *made);

#endif
