/* The token game of a record: its acts without data. Each agent does its own acts in order; an act that waits is done when the
   counts allow it.

   The position of every agent is the whole state: counts follow from it. Waits of several agents on one semaphore are done in the
   order of the record (prove.c says when that leaves nothing out), so an act that is enabled stays enabled while others go on:
   doing enabled acts until there are none gives the same positions in any order. To find the acts that need an act first, its agent
   is held in front of it (a limit), and all others go on. */
#ifndef AX_CHECK_GAME_H
#define AX_CHECK_GAME_H

#include "kernel/machine/act.h"

typedef struct ax_game_act { /* an act */
  ax_act_kind kind;
  bool ordered; /* a wait on a semaphore that several agents wait on: after `turn` others */
  bool free;    /* it changes no count: of a lock (locks.h) */
  uint32_t object;
  int64_t amount;
  uint32_t turn, step; /* step: of the record; from its step_count on: pending */
} ax_game_act;

typedef struct ax_lists { /* list k: item[first[k] .. first[k + 1]) */
  uint32_t *first, *item;
} ax_lists;

typedef struct ax_game {
  const ax_act_record *record;
  uint32_t agent_count;
  ax_game_act *tokens;
  uint32_t *first;    /* by agent: its acts are tokens[first[a] .. first[a + 1]), those pending at the end among them */
  uint32_t *done;     /* by agent: how many of these the record did; the game does no more */
  uint32_t *position; /* by step: its number among its agent's acts */
  ax_lists waiters, awaiters, joiners; /* by semaphore, barrier, agent: agents that ever wait there */
  ax_lists order;     /* by semaphore: the agents of the waits that the record did, one after the other */
  bool *out_of_order; /* by semaphore: they may be done in another order (locks.h) */
  uint32_t *starter, *start;           /* by agent: its starter, and the number of the starter's act; AX_NONE */
  bool complete;                       /* none of the pending acts was enabled */

  /* The state. */
  uint32_t *at, *limit; /* by agent: acts done; it does not go beyond */
  bool *started, *queued;
  int64_t *count, *arrivals; /* by semaphore; by barrier */
  uint32_t *turns;           /* by semaphore: waits done */
  uint32_t *queue, queue_count;
  uint32_t *trail, trail_count; /* agents as they went on since the last reset */
  uint32_t *taken, taken_count; /* agents that may be taken back .. */
  bool *is_taken;               /* .. and by agent, while they are listed */
  uint64_t steps;               /* done in all, for figures */
} ax_game;

/* AX_INVALID_ARGUMENT: the record is not a run: an object that there is not, an act that could not be done where it was. */
AX_MUST_USE ax_status ax_game_create(const ax_act_record *record, ax_game **out);
void ax_game_destroy(ax_game *game);

/* Goes back to the beginning; no agent is held. */
void ax_game_reset(ax_game *game);
/* Lets an agent go on to a position, or holds it there. */
void ax_game_hold(ax_game *game, uint32_t agent, uint32_t position);
/* Lists the agents that something that an agent does lets go on, itself among them, and what these let go on. False: they have more
   acts than `most`. */
bool ax_game_find_dependent(ax_game *game, uint32_t agent, uint64_t most);
/* From the end of a run in which no agent is held: takes those that were listed last back to their beginning, where `agent` is
   held. That is a position of the game, as the others need nothing of these. The trail begins anew. */
void ax_game_take_back(ax_game *game, uint32_t agent);
/* Runs until no agent can go on. */
void ax_game_run(ax_game *game);
/* The same, in the record's order as far as possible. Takes time in proportion to the record. */
void ax_game_run_in_order(ax_game *game);
/* Goes back to the state in which the trail had this length. Limits stay. */
void ax_game_undo(ax_game *game, uint32_t trail_count);

static inline uint32_t ax_game_acts(const ax_game *game, uint32_t agent) { return game->first[agent + 1] - game->first[agent]; }
static inline const ax_game_act *ax_game_token(const ax_game *game, uint32_t agent, uint32_t position) {
  return &game->tokens[game->first[agent] + position];
}
static inline const ax_act_step *ax_game_step(const ax_game *game, uint32_t step) {
  const ax_act_record *r = game->record;
  return step < r->step_count ? &r->steps[step] : &r->pending[step - r->step_count];
}
/* Says that the agent's next act can be done now, ignoring its limit. */
bool ax_game_enabled(const ax_game *game, uint32_t agent);

#endif
