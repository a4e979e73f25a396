/* The states that are known, by 128-bit hashes. Two states with the same hash count as one; among 10^9 states that happens with a
   probability of 10^-21. */
#ifndef AX_CHECK_KNOWN_H
#define AX_CHECK_KNOWN_H

#include "base/base.h"

typedef struct ax_known_states { /* zero-initialise to start */
  uint64_t (*keys)[2];    /* a power of two of them; zero: free */
  uint64_t count, capacity;
} ax_known_states;

/* *slot: the state's slot, until the next call that adds. *is_new: it was not known; then it is on the present path. */
AX_MUST_USE ax_status ax_known_states_add(ax_known_states *known, const uint64_t hash[2], uint64_t *slot, bool *is_new);
/* Says that a state is on the present path from the first one. */
bool ax_known_states_on_way(const ax_known_states *known, uint64_t slot);
void ax_known_states_leave(ax_known_states *known, const uint64_t hash[2]);
void ax_known_states_clear(ax_known_states *known);
void ax_known_states_deinit(ax_known_states *known);

#endif
