/* Runs of a system at random. */
#ifndef AX_CHECK_SCOUT_H
#define AX_CHECK_SCOUT_H

#include "check/explore.h"

/* Called at the end of each run: all agents came to theirs, and it is `whole`; or none can go on, or the last step has a fault. The
   state is the caller's of ax_scout no longer than this. */
typedef ax_status (*ax_scout_end)(void *context, const void *state, const ax_interleaving *schedule, bool whole);

/* So many runs, agents chosen at random, always the same ones; fewer where runs are long. */
AX_MUST_USE ax_status ax_scout(const ax_system *system, uint32_t runs, ax_scout_end end, void *context);

#endif
