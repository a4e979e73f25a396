/* Who lives where: for each piece of memory, who came last. */
#ifndef AX_EXEC_OCCUPANCY_H
#define AX_EXEC_OCCUPANCY_H

#include "base/base.h"

/* A tree over the pieces between any two offsets at which somebody begins or ends. A node knows who came last in all that is below
   it, or that there are several. */
typedef struct ax_occupancy {
  int64_t *offsets; /* sorted */
  uint32_t count;   /* of them */
  uint32_t *last;   /* by node; AX_NONE: nobody */
} ax_occupancy;

/* Nobody lives anywhere. `offsets`: all at which anybody will begin or end, in any order and as often as may be; sorted and
   kept. */
AX_MUST_USE ax_status ax_occupancy_init(ax_occupancy *occupancy, ax_arena *arena, int64_t *offsets, uint32_t count);
/* `who`, a number below AX_NONE - 1 or AX_NONE for nobody, moves in from begin to end. Calls leaves(context, before, who) for
   whoever, AX_NONE too, lived in a piece of that, perhaps several times for one, and ends with the first that fails. */
typedef ax_status (*ax_leaves)(void *context, uint32_t before, uint32_t who);
AX_MUST_USE ax_status ax_occupancy_move_in(ax_occupancy *occupancy, int64_t begin, int64_t end, uint32_t who, ax_leaves leaves,
                                           void *context);

#endif
