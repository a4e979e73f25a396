/* The latest occupant of each piece of memory. */
#ifndef AX_ASSEMBLE_OCCUPANCY_H
#define AX_ASSEMBLE_OCCUPANCY_H

#include "base/base.h"

/* A tree over the pieces between neighbouring offsets at which some occupant begins or ends. A node knows the latest occupant of
   all that is below it, or that there are several. */
typedef struct ax_occupancy {
  int64_t *offsets; /* sorted */
  uint32_t count;   /* number of offsets */
  uint32_t *last;   /* by node: the latest occupant; AX_NONE: there was none */
} ax_occupancy;

/* All memory is free. `offsets`: all at which an occupant will begin or end, in any order and repeated as needed; sorted and
   kept. */
AX_MUST_USE ax_status ax_occupancy_init(ax_occupancy *occupancy, ax_arena *arena, int64_t *offsets, uint32_t count);
/* Occupant `who` (a number below AX_NONE - 1, or AX_NONE to free the memory) moves in from begin to end. Calls leaves(context,
   before, who) for the previous occupants of these pieces, AX_NONE among them, perhaps several times for one. Ends with the first
   call that fails. */
typedef ax_status (*ax_leaves)(void *context, uint32_t before, uint32_t who);
AX_MUST_USE ax_status ax_occupancy_move_in(ax_occupancy *occupancy, int64_t begin, int64_t end, uint32_t who, ax_leaves leaves,
                                           void *context);

#endif
