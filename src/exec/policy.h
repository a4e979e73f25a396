/* Policies: who runs next, of the activations that are ready, and where an activation makes way for others. They decide for runs on
   one thread.

     fixed        no scheduling policy: who was ready first runs, until it must wait
     seeded       at random, and activations make way at random, before instructions that order activations; the same seed, the same
                  run
     recorded     as another scheduling policy says, and every decision is written down
     replayed     as a record says, then as another scheduling policy says: a schedule again, or another that begins like it

   Several threads (the parallel policy) have no scheduling policy: who runs next is who comes first. Results do not depend on any
   of it. */
#ifndef AX_EXEC_POLICY_H
#define AX_EXEC_POLICY_H

#include "exec/exec.h"

typedef struct ax_scheduling_policy {
  /* Which of the `count` activations in `ready` runs next: its place there. At least one is ready. */
  uint32_t (*pick)(void *state, const uint32_t *ready, uint32_t count);
  /* Whether an activation that has just done `instr` makes way for others. */
  bool (*yields)(void *state, const ax_instr *instr);
  void *state;
} ax_scheduling_policy;

typedef struct ax_seeded {
  uint64_t state; /* the seed */
} ax_seeded;
ax_scheduling_policy ax_choose_seeded(ax_seeded *seeded);

/* Decisions in the order they were made: places of picks, and 0 or 1 for who makes way. */
typedef struct ax_record {
  uint32_t *decisions;
  uint32_t count, capacity;
  ax_status status; /* of writing them down: AX_OUT_OF_MEMORY leaves some out */
  const ax_scheduling_policy *scheduling_policy;
} ax_record;
ax_scheduling_policy ax_choose_recorded(ax_record *record, const ax_scheduling_policy *scheduling_policy);
void ax_record_deinit(ax_record *record);

typedef struct ax_replay {
  const uint32_t *decisions;
  uint32_t count, next;
  const ax_scheduling_policy *scheduling_policy; /* of what comes after them; NULL: who was ready first, and nobody makes way */
} ax_replay;
ax_scheduling_policy ax_choose_replayed(ax_replay *replay);

#endif
