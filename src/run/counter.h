/* Counters, and the activations parked on them.

   A counter only grows. An activation that must wait until the counter has reached a target is parked on it. A thread that signals
   compares the count with one number, the least target of all activations parked here. It looks at activations only if some may go
   on. Activations with the same target form a list in the order they came. The lists form a heap by target (a pairing heap), linked
   through the activations themselves:

     parked -> [target 8: f3, f0, f5]  -> child [target 9: f1] -> sibling [target 12: f2, f4]

   So parking costs O(1), and so does a signal that wakes no activation. Waking costs O(1) for each activation and O(log n) for each
   of their targets. */
#ifndef AX_RUN_COUNTER_H
#define AX_RUN_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

#define AX_NO_TARGET UINT64_MAX

typedef struct ax_counter {
  _Atomic uint64_t count;
  _Atomic uint64_t least; /* least target of the activations parked here; AX_NO_TARGET: none is */
  uint32_t parked;        /* head of the list with the least target; AX_NONE: no activation is parked */
} ax_counter;

/* The links of one parked activation. */
typedef struct ax_parking {
  uint64_t target;
  uint32_t counter;        /* the counter that it is parked on */
  uint32_t next;           /* next activation in its list */
  uint32_t last;           /* in a list's head: the last of the list. This and the next fields are set in heads only */
  uint32_t child, sibling; /* in a list's head: lists with greater targets */
} ax_parking;

void ax_counter_reset(ax_counter *counter);
/* Parks activation f, whose target is set. `parking` is indexed by activation. */
void ax_counter_park(ax_counter *counter, ax_parking *parking, uint32_t f);
/* Takes out all activations whose target is at most `count`. Returns the head of their list, linked by `next`, whose `last` is set.
   AX_NONE: there are none. */
uint32_t ax_counter_release(ax_counter *counter, ax_parking *parking, uint64_t count);

#endif
