/* Counters, and the activations parked on them.

   A counter only grows. An activation that must wait until it has reached a target is parked on it; who signals looks at one
   number, the least target of all parked here, and need not look at any activation unless some may go on. Activations with the same
   target are listed in the order they came; the lists form a heap by target (a pairing heap), linked through the activations
   themselves:

     parked -> [target 8: f3, f0, f5] -> child [target 9: f1] -> sibling [target 12: f2, f4]

   So parking costs O(1), a signal that lets nobody go O(1), and letting activations go O(1) each and O(log n) for each of their
   targets. */
#ifndef AX_EXEC_COUNTER_H
#define AX_EXEC_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

#define AX_NO_TARGET UINT64_MAX

typedef struct ax_counter {
  _Atomic uint64_t count;
  _Atomic uint64_t least; /* the least target of those parked here; AX_NO_TARGET when nobody is */
  uint32_t parked;        /* the activation at the head of the list with the least target; AX_NONE */
} ax_counter;

/* An activation's place among those parked. */
typedef struct ax_parking {
  uint64_t target;
  uint32_t counter;        /* which it is parked on */
  uint32_t next;           /* after it in its list */
  uint32_t last;           /* of a list's head: the last in the list. This and what follows is not set in the others */
  uint32_t child, sibling; /* of a list's head: lists with greater targets */
} ax_parking;

void ax_counter_reset(ax_counter *counter);
/* Adds activation f, whose target is set. `parking` is by activation. */
void ax_counter_park(ax_counter *counter, ax_parking *parking, uint32_t f);
/* Takes out all whose target is at most `count`: the head of one list, which knows its last; AX_NONE when there are none. */
uint32_t ax_counter_release(ax_counter *counter, ax_parking *parking, uint64_t count);

#endif
