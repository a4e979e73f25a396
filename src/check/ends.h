/* Checks that an end can be reached from each state that was met. Agents that read a count again and again may loop for ever. */
#ifndef AX_CHECK_ENDS_H
#define AX_CHECK_ENDS_H

#include "check/finding.h"

typedef struct ax_ends_step { /* of an agent, from one state to another; states by hash */
  uint64_t from, to;
  uint32_t agent;
} ax_ends_step;

/* Zero-initialise to start. */
typedef struct ax_ends {
  ax_ends_step *steps;
  uint64_t *ends; /* states where no agent can go on */
  uint32_t step_count, step_capacity, end_count, end_capacity;
} ax_ends;
AX_MUST_USE ax_status ax_ends_add_step(ax_ends *ends, uint64_t from, uint64_t to, uint32_t agent);
AX_MUST_USE ax_status ax_ends_add(ax_ends *ends, uint64_t state);
void ax_ends_clear(ax_ends *ends);
/* *found: there are states from which no end can be reached; the schedule leads from `first` to one of them. The caller must have
   added all steps of the states that were met. */
AX_MUST_USE ax_status ax_ends_missing(ax_ends *ends, uint64_t first, bool *found, ax_interleaving *schedule);
void ax_ends_deinit(ax_ends *ends);

#endif
