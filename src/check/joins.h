/* Order between agents that is known without a game: each agent's own order, starts of agents, and joins, which wait for an agent
   by name. */
#ifndef AX_CHECK_JOINS_H
#define AX_CHECK_JOINS_H

#include "check/game.h"

typedef struct ax_joined { /* act `position` of `agent` goes on when the agent that is waited for has done `amount` acts */
  uint32_t agent, position;
  int64_t amount;
} ax_joined;

typedef struct ax_joins { /* zero-initialise to start */
  const ax_game *g;
  uint32_t *first; /* by the agent that is waited for; of items, in the order of agents and positions */
  ax_joined *items;
} ax_joins;
AX_MUST_USE ax_status ax_joins_init(ax_joins *joins, const ax_game *game);
void ax_joins_deinit(ax_joins *joins);

/* Says that the act at `position` of `agent` is needed for the other, by these three. False: the game must decide. */
bool ax_joins_need(const ax_joins *joins, uint32_t agent, uint32_t position, uint32_t other, uint32_t other_position);

#endif
