/* Sets of axes, with each device's index along them. Memory and events are numbered by these. */
#include <string.h>

#include "assemble/assembly.h"

static void fill_index(const ax_compiled *c, ax_set *set) {
  const ax_mesh *mesh = &c->plan->mesh;
  for (uint32_t d = 0; d < c->devices; d++) {
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

ax_status ax_set_of(ax_compiled *c, ax_axis_set axes, uint32_t *out) {
  for (uint32_t i = 0; i < c->set_count; i++)
    if (c->sets[i].axes == axes) {
      *out = i;
      return AX_OK;
    }
  ax_set *sets = ax_arena_alloc(&c->plan->arena, (c->set_count + 1) * sizeof sets[0]);
  uint32_t *index = ax_arena_alloc(&c->plan->arena, c->devices * sizeof index[0]);
  if (sets == NULL || index == NULL) return ax_out_of_memory(c->devices * sizeof index[0]);
  if (c->set_count > 0) memcpy(sets, c->sets, c->set_count * sizeof sets[0]);
  c->sets = sets;
  *out = c->set_count++;
  sets[*out] = (ax_set){axes, (uint32_t)ax_axis_set_size(axes, &c->plan->mesh), index};
  fill_index(c, &sets[*out]);
  return AX_OK;
}

/* --- Groups --- */

ax_status ax_member_numbers(ax_compiled *c, const ax_axes *names, uint32_t **numbers) {
  *numbers = ax_arena_alloc(&c->plan->arena, c->devices * sizeof **numbers);
  if (*numbers == NULL) return ax_out_of_memory(c->devices * sizeof **numbers);
  for (uint32_t d = 0; d < c->devices; d++) (*numbers)[d] = (uint32_t)ax_axes_index(names, &c->plan->mesh, d);
  return AX_OK;
}

ax_status ax_member_places(ax_compiled *c, const ax_axes *names, uint32_t members, uint32_t set, uint32_t **places) {
  *places = ax_arena_alloc(&c->plan->arena, members * sizeof **places);
  if (*places == NULL) return ax_out_of_memory(members * sizeof **places);
  for (uint32_t i = 0; i < members; i++) (*places)[i] = c->sets[set].index[ax_axes_device(names, &c->plan->mesh, 0, i)];
  return AX_OK;
}
