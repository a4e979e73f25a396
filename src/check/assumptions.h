/* What a search of all schedules assumes of acts, until an act contradicts it: explore.c says how that is used, and proves it. */
#ifndef AX_CHECK_ASSUMPTIONS_H
#define AX_CHECK_ASSUMPTIONS_H

#include "kernel/machine/act.h"

typedef struct ax_semaphore_use {
  uint32_t waiter; /* AX_NONE: nobody yet */
  bool several, read;
} ax_semaphore_use;

typedef struct ax_region_use {
  uint32_t agent; /* AX_NONE: nobody yet */
  bool several;
} ax_region_use;

typedef struct ax_contended_bytes {
  uint32_t region;
  ax_bytes bytes;
} ax_contended_bytes;

typedef struct ax_assumptions { /* zero-initialise to start */
  ax_semaphore_use *semaphores;
  uint32_t semaphore_count, semaphore_capacity;
  ax_region_use *regions;
  uint32_t region_count, region_capacity;
  ax_contended_bytes *bytes;
  uint32_t byte_count, byte_capacity;
  bool reads;          /* counts are read */
  bool refuted, again; /* since the caller cleared them: some assumption was dropped; one that an exhaustive search makes as well */
} ax_assumptions;

/* Makes room for all objects; each new one starts with its assumptions. */
AX_MUST_USE ax_status ax_assumptions_grow(ax_assumptions *a, const ax_act_objects *objects);
/* Drops the assumptions that an act contradicts, which is the agent's next somewhere. alike: others are like it, who do the same. */
void ax_assumptions_note(ax_assumptions *a, uint32_t agent, bool alike, const ax_act *act, const ax_touches *pool);
/* The bytes that two acts race about are contended from now on. */
AX_MUST_USE ax_status ax_assumptions_contend(ax_assumptions *a, const ax_touches *pool, const ax_act *act, const ax_act *other);
/* An assumption of the act was dropped: it may not commute with what others do. */
bool ax_assumptions_dropped(const ax_assumptions *a, const ax_touches *pool, const ax_act *act);
/* Several agents touch the region. */
static inline bool ax_is_touched_by_several(const ax_assumptions *a, uint32_t region) { return a->regions[region].several; }
void ax_assumptions_deinit(ax_assumptions *a);

#endif
