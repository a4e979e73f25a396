/* Where operations stand in loops, which of these change an allocation, and operations that move to before a loop. For passes that
   walk all blocks of a plan, each operation before those inside it, and take out of loops what these do not change. */
#ifndef AX_PLAN_NESTING_H
#define AX_PLAN_NESTING_H

#include "plan/plan.h"

typedef struct ax_nesting {
  const ax_plan *plan;
  uint32_t allocations;              /* that there were when it was made: all tables are by them */
  uint32_t *reads, *writes;    /* see ax_plan_count */
  uint32_t *first, *last;      /* numbers of the operations that touch it, in the order of the walk; last: UINT32_MAX of a result */
  uint32_t *first_write, *written; /* written: from there on, the numbers of those that write it, which rise */
  uint32_t *begin, *end;       /* by loop: its own number, and that of the first operation after it */
  uint32_t number, *filled;    /* while it is made */
} ax_nesting;

/* Tables are in the arena. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_nesting_make(ax_nesting *nesting, const ax_plan *plan, ax_arena *scratch);
/* An allocation that one operation writes is now written before the loop. */
void ax_nesting_move(ax_nesting *nesting, uint32_t allocation, uint32_t loop);

/* A block that is walked: its operation at hand may hold the next one. */
typedef struct ax_loop_level {
  ax_block *block;
  struct ax_loop_level *outer;
  uint32_t at, count;          /* count: of operations that are to come into the block */
  struct ax_moved *first, **last;
} ax_loop_level;
void ax_level_begin(ax_loop_level *level, ax_block *block, ax_loop_level *outer);
/* Before the operation at hand, and after those that were put there before; copied. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_level_put(ax_loop_level *level, ax_arena *scratch, const ax_op *op);
/* When all of the block has been walked: what was put there, and without what is NONE. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_level_end(ax_loop_level *level, ax_arena *arena);

/* The level of the outermost loop around `inner` out of which that what is read in these buffers can be taken: neither it nor a
   loop in between changes them. NULL: there is none, or these go round once. Not past messages, nor past branches, unless told
   so. */
ax_loop_level *ax_nesting_place(const ax_nesting *nesting, ax_loop_level *inner, const uint32_t *buffers, uint32_t count,
                                bool past_branches);

#endif
