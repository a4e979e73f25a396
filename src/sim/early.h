/* Messages that came before they are waited for, in lists by what keeps them: an agent keeps those of its later steps, a device those of a
   queue. All lists are in one pool. */
#ifndef AX_SIM_EARLY_H
#define AX_SIM_EARLY_H

#include "base/base.h"

typedef struct ax_sim_early { /* those of one key */
  int64_t key, count;
  uint32_t next;          /* 1 + another; 0: none */
  uint32_t cause;         /* of a queue: of the latest */
} ax_sim_early;

/* Zero to start. */
typedef struct ax_sim_early_pool {
  ax_sim_early *all;
  uint32_t count, capacity, free; /* free: 1 + the first; 0: none */
} ax_sim_early_pool;

/* A list begins with 1 + the first, or 0. NULL: it has none of this key. */
ax_sim_early *ax_sim_early_find(const ax_sim_early_pool *pool, uint32_t first, int64_t key);
/* Counts one more of this key. *out, which may be NULL: those of the key, until the next call. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_sim_early_keep(ax_sim_early_pool *pool, uint32_t *first, int64_t key, ax_sim_early **out);
/* Takes all of this key out. Returns how many there were. */
int64_t ax_sim_early_take(ax_sim_early_pool *pool, uint32_t *first, int64_t key);
void ax_sim_early_deinit(ax_sim_early_pool *pool);

#endif
