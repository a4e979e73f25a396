/* Finds the pairs of acts of a record that must be in order: accesses of the same bytes by different agents, one of them a write;
   waits of several agents on one semaphore; a read of a count, and an act that changes it. */
#ifndef AX_CHECK_CONFLICT_H
#define AX_CHECK_CONFLICT_H

#include "check/game.h"

typedef enum ax_conflict {
  AX_CONFLICT_MEMORY,
  AX_CONFLICT_WAITS, /* of two agents on one semaphore */
  AX_CONFLICT_COUNT, /* one reads a semaphore's count, the other changes it */
  AX_CONFLICT_LOCK   /* of acts on locks, which must be in this order (locks.c) */
} ax_conflict;

typedef struct ax_pair {
  uint32_t earlier, later; /* steps of the record; of WAITS, `later` may be pending */
  ax_conflict conflict;
} ax_pair;

typedef struct ax_pair_list {
  ax_pair *items;
  uint32_t count, capacity;
} ax_pair_list;

struct ax_locks;
/* Appends pairs such that, if in each of them the earlier act is needed for the later, that holds for all conflicting pairs. `all`:
   every conflicting pair of memory. Sorted, each once. locks (NULL: none): pairs of theirs instead of those of waits on them, and none
   of additions within sections that exclude each other; locks->refused is set where such additions do not commute,
   or a pair could not be in order. */
AX_MUST_USE ax_status ax_conflicts_find(const ax_game *game, bool all, struct ax_locks *locks, ax_pair_list *out);
AX_MUST_USE ax_status ax_pairs_add(ax_pair_list *list, ax_pair pair);

/* Do they touch the same bytes, and one of them writes? `scope`: where one of those touches begins or ends a scope. */
bool ax_touches_conflict(const ax_touches *pool, const ax_act *a, const ax_touches *other_pool, const ax_act *b, bool *scope);

#endif
