/* What an agent has done on the way to a state, by hash: its acts, and what the counts that it read gave. */
#ifndef AX_CHECK_HISTORY_H
#define AX_CHECK_HISTORY_H

#include "kernel/machine/act.h"

typedef struct ax_history { /* zero-initialise to start */
  uint64_t acts;            /* all but reads of counts */
  uint64_t reads[6]; /* since the last of these: which counts gave what, each once; of more than these the rest is not told apart */
  uint32_t read_count;
} ax_history;

uint64_t ax_history_hash(const ax_history *history); /* 0: nothing done */
/* One act more, whose touches are in `pool`. count: what a read gives. */
ax_history ax_history_add(const ax_history *before, const ax_act *act, const ax_touches *pool, int64_t count);

#endif
