#include "check/joins.h"

enum { deepest = 4 }; /* how many go between the two at most */

ax_status ax_joins_init(ax_joins *joins, const ax_game *game) {
  const uint32_t agents = game->agent_count, total = game->first[agents];
  joins->g = game;
  joins->first = ax_calloc((size_t)agents + 2, sizeof joins->first[0]);
  joins->items = ax_alloc(((size_t)total + 1) * sizeof joins->items[0]);
  if (joins->first == NULL || joins->items == NULL) return ax_out_of_memory(total);
  for (uint32_t k = 0; k < total; k++)
    if (game->tokens[k].kind == AX_ACT_JOIN) joins->first[game->tokens[k].object + 2]++;
  for (uint32_t a = 0; a < agents; a++) joins->first[a + 2] += joins->first[a + 1];
  for (uint32_t a = 0; a < agents; a++) /* first[b + 1] moves from the beginning of b's to their end */
    for (uint32_t p = 0; p < ax_game_acts(game, a); p++) {
      const ax_game_act *t = ax_game_token(game, a, p);
      if (t->kind == AX_ACT_JOIN) joins->items[joins->first[t->object + 1]++] = (ax_joined){a, p, t->amount};
    }
  return AX_OK;
}

void ax_joins_deinit(ax_joins *joins) {
  ax_free(joins->first);
  ax_free(joins->items);
}

static bool needs(const ax_joins *joins, uint32_t agent, uint32_t position, uint32_t other, uint32_t other_position, int depth);

static bool is_or_needs(const ax_joins *joins, uint32_t agent, uint32_t position, uint32_t other, uint32_t other_position,
                        int depth) {
  return agent == other ? position <= other_position : needs(joins, agent, position, other, other_position, depth);
}

static bool needs(const ax_joins *joins, uint32_t agent, uint32_t position, uint32_t other, uint32_t other_position, int depth) {
  const ax_game *g = joins->g;
  uint32_t seen = AX_NONE; /* of each agent the first such wait is the one that matters */
  if (depth == 0) return false;
  if (g->starter[other] != AX_NONE && is_or_needs(joins, agent, position, g->starter[other], g->start[other], depth - 1))
    return true;
  for (uint32_t k = joins->first[agent]; k < joins->first[agent + 1]; k++) {
    const ax_joined *j = &joins->items[k];
    if (j->amount <= (int64_t)position || j->agent == seen) continue;
    seen = j->agent;
    if (is_or_needs(joins, j->agent, j->position, other, other_position, depth - 1)) return true;
  }
  return false;
}

bool ax_joins_need(const ax_joins *joins, uint32_t agent, uint32_t position, uint32_t other, uint32_t other_position) {
  return agent == other ? position < other_position : needs(joins, agent, position, other, other_position, deepest);
}
