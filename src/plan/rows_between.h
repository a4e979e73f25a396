/* For rows.c: the operations between a group's members. A member moves up to the group, over those that stay; what it needs of
   these moves before the group instead, if it needs nothing of the members.

     before                          after
     scores = q k'                   mask = ..
     mask = ..                       group: scores = q k'; shares = softmax where mask, scores
     shares = softmax where mask, scores                                                              */
#ifndef AX_PLAN_ROWS_BETWEEN_H
#define AX_PLAN_ROWS_BETWEEN_H

#include "plan/plan.h"

enum { AX_ROWS_BETWEEN = 6 }; /* operations between a group's members, at most */

typedef struct ax_rows_between {
  const ax_plan *plan;
  uint8_t *touched; /* by allocation: who reads and writes it, see rows_between.c */
  uint32_t *noted, count, capacity; /* allocations that are not 0 there */
  uint32_t before[AX_ROWS_BETWEEN], before_count; /* places of operations that may move before the group, */
  uint32_t staying; /* and how many cannot */
  uint8_t shift; /* of the bits in `touched` that are looked at or set */
  bool found;
  bool failed;      /* no memory */
} ax_rows_between;

/* tables: of the caller; allocations: how many there are. */
ax_status ax_rows_between_init(ax_rows_between *between, const ax_plan *plan, ax_arena *tables, uint32_t allocations);
void ax_rows_between_deinit(ax_rows_between *between);
void ax_rows_between_clear(ax_rows_between *between); /* for the next group */

void ax_rows_note_member(ax_rows_between *between, const ax_op *op);
/* Says whether the operation can be done at the group's place: it has nothing to do with operations that stay. */
bool ax_rows_moves_up(ax_rows_between *between, const ax_op *op);
/* Notes an operation that is no member. movable: it may be done earlier, as far as other devices are concerned. */
void ax_rows_note_other(ax_rows_between *between, const ax_op *op, uint32_t place, bool movable);
static inline uint32_t ax_rows_others(const ax_rows_between *b) { return b->staying + b->before_count; }

/* Moves those operations before the group at `at` that its members need; the group moves on by so many places, which are returned,
   and members between are at other places than before. places: of the `count` members, ascending; the first is the group's. */
uint32_t ax_rows_move_before(ax_rows_between *between, ax_block *block, bool *gone, uint32_t *places, uint32_t count);

#endif
