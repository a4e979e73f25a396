/* Races that were found: pairs of acts, each pair once, by the acts' places. */
#include <stdlib.h>

#include "check/prove.h"

ax_status ax_races_add(ax_race_list *races, ax_race race) {
  AX_TRY(ax_grow(&races->items, sizeof races->items[0], races->count, 1, &races->capacity));
  races->items[races->count++] = race;
  return AX_OK;
}

static int by_acts(const void *a, const void *b) {
  const ax_race *x = a, *y = b;
  if (x->agent != y->agent) return x->agent < y->agent ? -1 : 1;
  if (x->position != y->position) return x->position < y->position ? -1 : 1;
  if (x->other != y->other) return x->other < y->other ? -1 : 1;
  return x->other_position < y->other_position ? -1 : x->other_position > y->other_position;
}

void ax_races_sort(ax_race_list *races) {
  if (races->count > 0) qsort(races->items, races->count, sizeof races->items[0], by_acts);
  uint32_t kept = 0;
  for (uint32_t k = 0; k < races->count; k++)
    if (kept == 0 || by_acts(&races->items[kept - 1], &races->items[k]) != 0) races->items[kept++] = races->items[k];
  races->count = kept;
}
