/* Stores that fill memory together: each alone takes every second element, or every third and so on, along the vector loop. No two stores of a
   kernel write one place, so that where the vector loop has steps enough for a whole vector each store is in one group. */
#include <string.h>

#include "jit/nest/schedule.h"

bool ax_nest_schedule_go_together(const ax_nest_schedule *s, const ax_nest_access *a, const ax_nest_access *b) {
  if (a->slot != b->slot || a->transposed || b->transposed || a->moved != 0 || b->moved != 0) return false;
  for (uint32_t d = 0; d < s->kernel->slots[a->slot].rank; d++)
    if (a->at[d].dynamic != b->at[d].dynamic || (a->at[d].dynamic != AX_NONE && a->at[d].limit != b->at[d].limit)) return false;
  return memcmp(a->stride, b->stride, s->loop_count * sizeof a->stride[0]) == 0 &&
         memcmp(a->uneven, b->uneven, s->loop_count * sizeof a->uneven[0]) == 0;
}

uint32_t ax_nest_schedule_woven(const ax_nest_schedule *s, uint32_t store, uint32_t *stores) {
  const ax_nest_access *first = ax_nest_schedule_store(s, store);
  const int64_t count = first->stride[s->vector];
  uint32_t found = 0;
  int64_t low = first->offset;
  if (count < 2 || count > AX_MOST_WOVEN || !ax_nest_takes_turns(count, ax_dtype_bytes(s->kernel->slots[first->slot].dtype)))
    return 0;
  for (uint32_t i = 0; i < s->kernel->store_count; i++) {
    const ax_nest_access *a = ax_nest_schedule_store(s, i);
    if (s->kernel->stores[i].reduce != AX_SCALAR_NONE || !ax_nest_schedule_go_together(s, first, a)) continue;
    if (a->offset < low && first->offset - a->offset < count) low = a->offset;
  }
  for (uint32_t i = 0; i < s->kernel->store_count; i++) {
    const ax_nest_access *a = ax_nest_schedule_store(s, i);
    if (s->kernel->stores[i].reduce != AX_SCALAR_NONE || !ax_nest_schedule_go_together(s, first, a)) continue;
    if (a->offset < low || a->offset - low >= count) continue;
    stores[a->offset - low] = i;
    found |= 1u << (a->offset - low);
  }
  return found == (1u << count) - 1 ? (uint32_t)count : 0;
}

bool ax_nest_schedule_weaves(const ax_nest_schedule *s) {
  uint32_t stores[AX_MOST_WOVEN];
  for (uint32_t i = 0; i < s->kernel->store_count; i++)
    if (ax_nest_schedule_woven(s, i, stores) == 0) return false;
  return true;
}
