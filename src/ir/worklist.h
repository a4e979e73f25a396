/* Equations of a program to look at again: each is in it once however often it is added, and they are taken in order, first to last
   or last to first, so that one that follows from several is not looked at for each of them. A binary heap. */
#ifndef AX_IR_WORKLIST_H
#define AX_IR_WORKLIST_H

#include "base/base.h"

typedef struct ax_worklist {
  uint32_t *heap; /* count of them; numbers from the end when `backward` */
  bool *waits;    /* by equation */
  uint32_t count, eqn_count;
  bool backward;
} ax_worklist;

/* Empty, in the arena's memory. False: there is none. */
bool ax_worklist_init(ax_worklist *list, ax_arena *arena, uint32_t eqn_count, bool backward);
void ax_worklist_add(ax_worklist *list, uint32_t eqn);
/* AX_NONE: it is empty. */
uint32_t ax_worklist_take(ax_worklist *list);

#endif
