/* Moves operations before the loops that would repeat them; for the passes hoist and invariants, which differ in what they move. */
#ifndef AX_PLAN_HOIST_H
#define AX_PLAN_HOIST_H

#include "plan/nesting.h"

typedef struct ax_hoister ax_hoister;

/* Which operations of a block may go, an array by operation in the scratch arena; NULL: none. `outer`: the level around, whose current
   operation holds the block; NULL at the plan's own. Without memory it sets the hoister's status. */
typedef const bool *ax_hoist_choose(ax_hoister *h, const ax_block *block, ax_loop_level *outer);

struct ax_hoister {
  ax_plan *plan;
  ax_hoist_choose *choose; /* NULL: whatever can go does */
  void *choosing;          /* what that function remembers */
  ax_arena scratch;
  ax_nesting nesting;
  uint32_t number;          /* of the operation being visited */
  uint32_t *read, *written; /* buffers of the operation that was listed */
  uint32_t read_count, read_capacity, written_count, written_capacity;
  int64_t bytes;    /* of what was moved */
  ax_status status; /* of a visit */
};

/* Lists the buffers that an operation reads and writes. */
void ax_hoist_list(ax_hoister *h, const ax_op *op);
/* Moves what is chosen, in all blocks. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_hoist(ax_plan *plan, ax_hoist_choose *choose);

#endif
