/* Queries of simulated time to a machine's state: the bytes that copies move, and the memory they are in. */
#ifndef AX_KERNEL_MACHINE_TIMING_H
#define AX_KERNEL_MACHINE_TIMING_H

#include "kernel/machine/machine.h"

typedef struct ax_copy_way {
  uint32_t from, to; /* devices, by their place among the machine's */
  ax_space from_space, to_space;
  double bytes;
} ax_copy_way;

/* False: the agent is no copy that is under way. */
bool ax_state_copy_way(const ax_state *state, uint32_t agent, ax_copy_way *out);
/* AX_SPACE_NONE: it is of semaphores, or there is none. */
ax_space ax_state_region_space(const ax_state *state, uint32_t region);

#endif
