/* Which of a device's caches an operation's bytes come from, where a machine has caches.

   A cache that keeps what was touched last holds a buffer as long as no more bytes were touched since than it has room for. So the
   distance of a touch is the bytes of all that was touched since the last touch of the same buffer, and the smallest cache of so many
   bytes gives them. A program is taken to run over and over, and a loop to be in the middle of its steps. */
#ifndef AX_SIM_LEVELS_H
#define AX_SIM_LEVELS_H

#include "sim/work.h"

/* Sets the seconds of all operations that compute. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_sim_from_caches(const ax_plan *plan, const ax_cluster *machine, ax_sim_work *work);

#endif
