/* Locks: semaphores that several agents wait on, such that it does not matter which of them comes first. */
#ifndef AX_CHECK_LOCKS_H
#define AX_CHECK_LOCKS_H

#include "check/conflict.h"

typedef struct ax_locks { /* of the record of a game; zero-initialise to start */
  const ax_game *g;
  uint32_t count;    /* of locks; 0: the record has none */
  bool *is_lock;     /* by semaphore */
  uint8_t *role;     /* by token: what it is to its semaphore */
  uint64_t *held;    /* by step: locks that its agent holds so that all others are shut out, a bit each */
  uint32_t *stretch; /* by step: how many of its agent's acts on locks come before */
  bool floats, extremes,
      refused; /* set by ax_conflicts_find: additions within sections are sums of floats; maxima or minima of floats;
                                     they do not commute, or condition (4) of locks.c cannot hold */
} ax_locks;
/* Finds the locks of a record that has come to an end. */
AX_MUST_USE ax_status ax_locks_find(const ax_game *game, ax_locks *out);
void ax_locks_deinit(ax_locks *locks);

/* Adds the pairs of acts that must be in order; refuses locks where an agent would have to do its own acts in another order. */
AX_MUST_USE ax_status ax_locks_pair(ax_locks *locks, ax_pair_list *out);
/* From now on agents of the game do not shut one another out by locks. It must be reset. */
void ax_locks_free(const ax_locks *locks, ax_game *game);

#endif
