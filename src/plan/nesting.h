/* The loops around each operation, and which of them change an allocation. For passes that move operations out of loops which do
   not change their operands; such a pass walks all blocks, each operation before those inside it. */
#ifndef AX_PLAN_NESTING_H
#define AX_PLAN_NESTING_H

#include "plan/plan.h"

typedef struct ax_nesting {
  const ax_plan *plan;
  uint32_t allocations;              /* allocations in the plan when the tables were made, which are indexed by them */
  uint32_t *reads, *writes;    /* see ax_plan_count */
  uint32_t *first, *last;      /* numbers of the first and last operation that touches it; last: UINT32_MAX for a result */
  uint32_t *first_write, *written; /* written: writers' numbers, rising; an allocation has `filled` from first_write on */
  uint32_t *begin, *end;       /* by loop: its number, and that of the first operation after it */
  uint32_t number, *filled;    /* number: used while the tables are made; filled: see above */
} ax_nesting;

/* Makes the tables, in the arena. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_nesting_make(ax_nesting *nesting, const ax_plan *plan, ax_arena *scratch);
/* Records that the only operation that writes the allocation now stands before the loop. */
void ax_nesting_move(ax_nesting *nesting, uint32_t allocation, uint32_t loop);

/* A block that is being walked. Its current operation may hold the next level's block. */
typedef struct ax_loop_level {
  ax_block *block;
  struct ax_loop_level *outer;
  uint32_t at, count;          /* count: operations to be added to the block */
  struct ax_moved *first, **last;
} ax_loop_level;
void ax_level_begin(ax_loop_level *level, ax_block *block, ax_loop_level *outer);
/* Puts a copy of `op` before the current operation, after those that were put there earlier. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_level_put(ax_loop_level *level, ax_arena *scratch, const ax_op *op);
/* Ends the walk of a block: adds the operations that were put, and drops those of kind NONE. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_level_end(ax_loop_level *level, ax_arena *arena);

/* The level of the outermost loop around `inner` that a read of these buffers can be moved out of: neither it nor a loop in
   between changes them. NULL: there is none, or these loops run once. Moves past no operation with messages, and past branches
   only if past_branches. */
ax_loop_level *ax_nesting_place(const ax_nesting *nesting, ax_loop_level *inner, const uint32_t *buffers, uint32_t count,
                                bool past_branches);

#endif
