/* Equations of a program to look at again. Each is in the list at most once. They are taken in order, first to last or last to
   first, so that an equation that depends on several others is looked at once for all of them. A binary heap. */
#ifndef AX_IR_WORKLIST_H
#define AX_IR_WORKLIST_H

#include "base/base.h"

typedef struct ax_worklist {
  uint32_t *heap; /* count of them; numbers from the end when `backward` */
  bool *waits;    /* by equation: it is in the list */
  uint32_t count, eqn_count;
  bool backward;
} ax_worklist;

/* Makes an empty list in the arena's memory. False: no memory. */
bool ax_worklist_init(ax_worklist *list, ax_arena *arena, uint32_t eqn_count, bool backward);
void ax_worklist_add(ax_worklist *list, uint32_t eqn);
/* Takes the next equation; AX_NONE: the list is empty. */
uint32_t ax_worklist_take(ax_worklist *list);

#endif
