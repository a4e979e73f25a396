/* A binary heap of equations (worklist.h). In backward order an equation's key is its number counted from the end. */
#include "ir/worklist.h"

bool ax_worklist_init(ax_worklist *list, ax_arena *arena, uint32_t eqn_count, bool backward) {
  *list = (ax_worklist){.eqn_count = eqn_count, .backward = backward};
  list->heap = ax_arena_alloc(arena, eqn_count * sizeof list->heap[0]);
  list->waits = ax_arena_alloc(arena, eqn_count);
  return list->heap != NULL && list->waits != NULL;
}

/* An equation's number in the order they are taken in; and back. */
static uint32_t turned(const ax_worklist *list, uint32_t number) {
  return list->backward ? list->eqn_count - 1 - number : number;
}

void ax_worklist_add(ax_worklist *list, uint32_t eqn) {
  assert(eqn < list->eqn_count);
  if (list->waits[eqn]) return;
  list->waits[eqn] = true;
  uint32_t key = turned(list, eqn), at = list->count++;
  for (; at > 0 && list->heap[(at - 1) / 2] > key; at = (at - 1) / 2) list->heap[at] = list->heap[(at - 1) / 2];
  list->heap[at] = key;
}

uint32_t ax_worklist_take(ax_worklist *list) {
  if (list->count == 0) return AX_NONE;
  uint32_t *heap = list->heap, first = heap[0], last = heap[--list->count], at = 0;
  for (uint32_t child = 1; child < list->count; at = child, child = 2 * at + 1) {
    child += child + 1 < list->count && heap[child + 1] < heap[child];
    if (heap[child] >= last) break;
    heap[at] = heap[child];
  }
  heap[at] = last;
  uint32_t eqn = turned(list, first);
  list->waits[eqn] = false;
  return eqn;
}
