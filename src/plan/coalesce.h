/* Inside the pass coalesce: operations whose result may be in the memory of what they read. */
#ifndef AX_PLAN_COALESCE_H
#define AX_PLAN_COALESCE_H

#include "plan/plan.h"

/* A kernel writes all that it writes of the allocation source, and reads of target, at each step, at most what is in the place of what it
   writes: an element, or the two parts of a complex number. */
bool ax_kernel_in_place(const ax_plan *plan, const ax_op *op, uint32_t source, uint32_t target);

/* --- coalesce_cases.c: what the cases of a branch touch --- */
typedef struct ax_cases ax_cases;
/* Goes through a branch's blocks once. The arena's. NULL: no memory. */
const ax_cases *ax_cases_list(const ax_plan *plan, const ax_block *blocks, uint32_t block_count, ax_arena *arena);
uint32_t ax_cases_writes(const ax_cases *cases, uint32_t allocation); /* how often all cases together write to it, as ax_plan_count counts */
const ax_op *ax_cases_first(const ax_cases *cases, uint32_t allocation, uint32_t of_case); /* that touches it; NULL: none does */
/* Says whether source may be in target's memory as far as the branch goes: each case gives all of source a value by one operation, in the
   place of what that reads of target, and touches target no more behind it, but for the operation `copy`; AX_NONE: none. */
bool ax_cases_in_place(const ax_cases *cases, uint32_t source, uint32_t target, uint32_t copy);

#endif
