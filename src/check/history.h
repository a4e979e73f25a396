/* An agent's past on the way to a state, as a hash: its acts, and the values of the counts that it read. */
#ifndef AX_CHECK_HISTORY_H
#define AX_CHECK_HISTORY_H

#include "kernel/machine/act.h"

typedef struct ax_history { /* zero-initialise to start */
  uint64_t acts;            /* all but reads of counts */
  uint64_t reads[6]; /* reads since the last other act: counts with their values, each once; reads beyond these six are not told
                        apart */
  uint32_t read_count;
} ax_history;

uint64_t ax_history_hash(const ax_history *history); /* 0: nothing done */
/* Adds one act, whose touches are in `pool`. count: the value that a read gives. */
ax_history ax_history_add(const ax_history *before, const ax_act *act, const ax_touches *pool, int64_t count);

#endif
