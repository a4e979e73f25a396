/* Policies for runs on one thread: they choose which of the ready activations runs next, and where an activation makes way for
   others.

     fixed      no scheduling policy: the activation that was ready first runs until it must wait
     seeded     chooses at random; activations make way at random, before instructions that order activations. The same seed gives
                the same run
     recorded   chooses as another scheduling policy does, and every decision is written down
     replayed   follows a record, and after its end chooses as another scheduling policy does: it repeats a schedule, or the
                beginning of one

   Several threads (the parallel policy) have no scheduling policy: each thread takes the next ready one. Results depend on none of
   this. */
#ifndef AX_RUN_POLICY_H
#define AX_RUN_POLICY_H

#include "code/instr.h"

typedef struct ax_scheduling_policy {
  /* Chooses which of the `count` (at least one) activations in `ready` runs next: returns its index there. */
  uint32_t (*pick)(void *state, const uint32_t *ready, uint32_t count);
  /* Says whether an activation that has just done `instr` makes way for others. */
  bool (*yields)(void *state, const ax_instr *instr);
  void *state;
} ax_scheduling_policy;

typedef struct ax_seeded {
  uint64_t state; /* begins as the seed */
} ax_seeded;
ax_scheduling_policy ax_choose_seeded(ax_seeded *seeded);

/* Decisions in the order they were made: the index for each pick, and 0 or 1 for each chance to make way. */
typedef struct ax_record {
  uint32_t *decisions;
  uint32_t count, capacity;
  ax_status status; /* of writing them down: after AX_OUT_OF_MEMORY some are missing */
  const ax_scheduling_policy *scheduling_policy;
} ax_record;
ax_scheduling_policy ax_choose_recorded(ax_record *record, const ax_scheduling_policy *scheduling_policy);
void ax_record_deinit(ax_record *record);

typedef struct ax_replay {
  const uint32_t *decisions;
  uint32_t count, next;
  const ax_scheduling_policy
      *scheduling_policy; /* decides after the record's end; NULL: first ready first, and no activation makes way */
} ax_replay;
ax_scheduling_policy ax_choose_replayed(ax_replay *replay);

#endif
