/* Sets of axes, with each device's index along them. Memory and events are numbered by these. */
#include <string.h>

#include "exec/exec.h"

static void fill_index(const ax_executable *e, ax_set *set) {
  const ax_mesh *mesh = &e->plan->mesh;
  for (uint32_t d = 0; d < e->devices; d++) {
    int64_t rest = d, index = 0, scale = 1;
    for (uint32_t axis = mesh->count; axis-- > 0;) {
      if (set->axes >> axis & 1) {
        index += rest % mesh->axis[axis].size * scale;
        scale *= mesh->axis[axis].size;
      }
      rest /= mesh->axis[axis].size;
    }
    set->index[d] = (uint32_t)index;
  }
}

ax_status ax_set_of(ax_executable *e, ax_axis_set axes, uint32_t *out) {
  for (uint32_t i = 0; i < e->set_count; i++)
    if (e->sets[i].axes == axes) {
      *out = i;
      return AX_OK;
    }
  ax_set *sets = ax_arena_alloc(&e->plan->arena, (e->set_count + 1) * sizeof sets[0]);
  uint32_t *index = ax_arena_alloc(&e->plan->arena, e->devices * sizeof index[0]);
  if (sets == NULL || index == NULL) return ax_out_of_memory(e->devices * sizeof index[0]);
  if (e->set_count > 0) memcpy(sets, e->sets, e->set_count * sizeof sets[0]);
  e->sets = sets;
  *out = e->set_count++;
  sets[*out] = (ax_set){axes, (uint32_t)ax_axis_set_size(axes, &e->plan->mesh), index};
  fill_index(e, &sets[*out]);
  return AX_OK;
}
