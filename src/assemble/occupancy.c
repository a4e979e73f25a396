/* The latest occupants of memory (occupancy.h): a tree over pieces of memory. An occupant that takes all pieces of a node is
   noted once, in that node. */
#include "assemble/occupancy.h"

#include <stdlib.h>
#include <string.h>

static const uint32_t several = AX_NONE - 1;

static int by_value(const void *x, const void *y) {
  const int64_t *a = x, *b = y;
  return *a < *b ? -1 : *a > *b;
}

ax_status ax_occupancy_init(ax_occupancy *o, ax_arena *arena, int64_t *offsets, uint32_t count) {
  *o = (ax_occupancy){.offsets = offsets};
  if (count > 0) qsort(offsets, count, sizeof offsets[0], by_value);
  for (uint32_t i = 0; i < count; i++)
    if (o->count == 0 || offsets[o->count - 1] != offsets[i]) offsets[o->count++] = offsets[i];
  o->last = ax_arena_alloc(arena, 4 * ((size_t)o->count + 1) * sizeof o->last[0]);
  if (o->last == NULL) return ax_out_of_memory(4 * (size_t)o->count * sizeof o->last[0]);
  memset(o->last, 0xff, 4 * ((size_t)o->count + 1) * sizeof o->last[0]);
  return AX_OK;
}

static uint32_t find(const ax_occupancy *o, int64_t offset) {
  const int64_t *found = bsearch(&offset, o->offsets, o->count, sizeof offset, by_value);
  assert(found != NULL);
  return (uint32_t)(found - o->offsets);
}

typedef struct arrival {
  ax_occupancy *o;
  uint32_t low, high, who; /* pieces */
  ax_leaves leaves;
  void *context;
} arrival;

/* The node covers the pieces begin .. end. */
static ax_status move_in(const arrival *a, uint32_t node, uint32_t begin, uint32_t end) {
  if (a->high <= begin || end <= a->low) return AX_OK;
  uint32_t *last = &a->o->last[node], *below = &a->o->last[2 * node + 1], middle = begin + (end - begin) / 2;
  if (a->low <= begin && end <= a->high && *last != several) {
    uint32_t before = *last;
    *last = a->who;
    return a->leaves(a->context, before, a->who);
  }
  if (*last != several) below[0] = below[1] = *last;
  AX_TRY(move_in(a, 2 * node + 1, begin, middle));
  AX_TRY(move_in(a, 2 * node + 2, middle, end));
  *last = below[0] == below[1] ? below[0] : several;
  return AX_OK;
}

ax_status ax_occupancy_move_in(ax_occupancy *o, int64_t begin, int64_t end, uint32_t who, ax_leaves leaves, void *context) {
  if (begin == end) return AX_OK;
  const arrival a = {o, find(o, begin), find(o, end), who, leaves, context};
  return move_in(&a, 0, 0, o->count - 1);
}
