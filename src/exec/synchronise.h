/* Between the passes that decide where activations wait and signal (synchronise.c) and the one that writes it into the list
   (weave.c). */
#ifndef AX_EXEC_SYNC_H
#define AX_EXEC_SYNC_H

#include "exec/exec.h"

typedef enum ax_insertion_order { AX_WAIT_FIRST, AX_SIGNAL_BEFORE, AX_WAIT_BEFORE, AX_SIGNAL_AFTER } ax_insertion_order;

typedef struct ax_insertion { /* a wait or a signal to be put beside the instruction at `position` */
  ax_insertion_order order;
  uint32_t position;
  uint32_t access;         /* of a wait: what it waits for; of a signal: what it reports */
  ax_axis_set axes;        /* the activations that do it */
  uint32_t region, waiter_region; /* where the signal stands; of a wait: where it stands itself */
  int64_t delta;           /* of a wait */
  const ax_exchange *away; /* of a wait: it is for the part that my part of this exchange goes to, not for my own; NULL */
  bool implied;            /* by other waits: not wanted */
} ax_insertion;

static inline bool ax_is_wait(const ax_insertion *item) { return item->order == AX_WAIT_FIRST || item->order == AX_WAIT_BEFORE; }

/* Where accesses are done and where waits stand, on one line: greater is later in the list. */
static inline uint64_t ax_done_point(const ax_access *access) {
  return 4 * (uint64_t)access->done_position + (access->done_before ? 1 : 3);
}
static inline uint64_t ax_wait_point(const ax_insertion *wait) {
  return 4 * (uint64_t)wait->position + (wait->order == AX_WAIT_FIRST ? 0 : 2);
}

/* Writes insertions into the list, and moves jumps, regions and accesses along. */
AX_MUST_USE ax_status ax_weave(ax_assembly *assembly, ax_insertion *items, uint32_t count);

#endif
