/* Shared by the pass that decides where activations wait and signal (synchronise.c) and the one that writes this into the list
   (weave.c). */
#ifndef AX_EXEC_SYNC_H
#define AX_EXEC_SYNC_H

#include "assemble/assembly.h"

typedef enum ax_insertion_order { AX_WAIT_FIRST, AX_SIGNAL_BEFORE, AX_WAIT_BEFORE, AX_SIGNAL_AFTER } ax_insertion_order;

typedef struct ax_insertion { /* a wait or a signal to be put beside the instruction at `position` */
  ax_insertion_order order;
  uint32_t position;
  uint32_t access;         /* for a wait: the access it waits for; for a signal: the access it reports */
  ax_axis_set axes;        /* the activations that perform it */
  uint32_t region, waiter_region; /* region of the signal; for a wait: also the region of the wait itself */
  int64_t delta;           /* for a wait */
  const ax_exchange *away; /* for a wait on the part that mine of this exchange goes to, not on my own; NULL */
  bool implied;            /* other waits imply this one: it is left out */
} ax_insertion;

static inline bool ax_is_wait(const ax_insertion *item) { return item->order == AX_WAIT_FIRST || item->order == AX_WAIT_BEFORE; }

/* One order for the points where accesses are done and where waits stand: a greater number is later in the list. */
static inline uint64_t ax_done_point(const ax_access *access) {
  return 4 * (uint64_t)access->done_position + (access->done_before ? 1 : 3);
}
static inline uint64_t ax_wait_point(const ax_insertion *wait) {
  return 4 * (uint64_t)wait->position + (wait->order == AX_WAIT_FIRST ? 0 : 2);
}

/* Writes insertions into the list, and moves jumps, regions and accesses along. */
AX_MUST_USE ax_status ax_weave(ax_assembly *assembly, ax_insertion *items, uint32_t count);

#endif
