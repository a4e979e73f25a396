/* Agents that do the same in other places: a ring, turned. */
#ifndef AX_CHECK_SYMMETRY_H
#define AX_CHECK_SYMMETRY_H

#include "check/game.h"

/* A permutation of agents under which the game looks the same, as cycles. */
typedef struct ax_symmetry {
  uint32_t *cycle, *place;  /* by agent: its cycle, and its place in the cycle */
  uint32_t *first, *member; /* by cycle: its agents, member[first[c] .. first[c + 1]) */
  uint32_t cycle_count;
} ax_symmetry;

/* `turned` permutes the agents that exist from the beginning; the others follow from their starters, and semaphores and barriers
   from their users. NULL, or a permutation that is no symmetry: all cycles have one agent, and *found is false. */
AX_MUST_USE ax_status ax_symmetry_find(const ax_game *game, const uint32_t *turned, ax_symmetry *out, bool *found);
void ax_symmetry_deinit(ax_symmetry *symmetry);

/* The agent that stands for `agent`; and the agent that `other` becomes by the turn that takes `agent` there. */
static inline uint32_t ax_symmetry_chosen(const ax_symmetry *s, uint32_t agent) { return s->member[s->first[s->cycle[agent]]]; }
static inline uint32_t ax_symmetry_turned(const ax_symmetry *s, uint32_t agent, uint32_t other) {
  uint32_t c = s->cycle[other], length = s->first[c + 1] - s->first[c];
  return s->member[s->first[c] + (s->place[other] + length - s->place[agent] % length) % length];
}

#endif
