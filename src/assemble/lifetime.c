/* Lifetimes: the positions of the list between which the memory of an allocation is needed. */
#include <string.h>

#include "assemble/assembly.h"

static void cover(ax_lifetime *life, uint32_t first, uint32_t last) {
  if (first < life->first) life->first = first;
  if (last > life->last) life->last = last;
}

static uint32_t depth_of(const ax_assembly *a, uint32_t region) {
  uint32_t depth = 0;
  for (; region != 0; region = a->regions[region].parent) depth++;
  return depth;
}

/* The innermost region that has both inside. */
static uint32_t common_region(const ax_assembly *a, uint32_t x, uint32_t y) {
  if (x == y) return x;
  uint32_t dx = depth_of(a, x), dy = depth_of(a, y);
  for (; dx > dy; dx--) x = a->regions[x].parent;
  for (; dy > dx; dy--) y = a->regions[y].parent;
  for (; x != y; x = a->regions[x].parent) y = a->regions[y].parent;
  return x;
}

/* An allocation that is accessed in a loop and outside of it is alive through the whole loop. With nested loops, that is the
   outermost loop that does not hold all its accesses. The test and the body of a while loop are one loop, from the beginning of the
   test to the exit. */
static void extend_over_loops(const ax_assembly *a, ax_lifetime *lives) {
  for (uint32_t i = 0; i < a->access_count; i++) {
    ax_lifetime *life = &lives[a->accesses[i].allocation];
    for (uint32_t g = a->accesses[i].region; g != life->region; g = a->regions[g].parent)
      if (a->regions[g].is_loop) cover(life, a->regions[g].begin, a->regions[g].exit - 1);
  }
}

/* An allocation that is read before it is written, in a loop, carries a value from one iteration to the next. */
static void extend_carried(const ax_assembly *a, ax_lifetime *lives, bool *written) {
  for (uint32_t i = 0; i < a->access_count; i++) {
    const ax_access *access = &a->accesses[i];
    if (access->writes) written[access->allocation] = true;
    for (uint32_t g = access->region; !written[access->allocation] && g != 0; g = a->regions[g].parent)
      if (a->regions[g].is_loop) cover(&lives[access->allocation], a->regions[g].begin, a->regions[g].exit - 1);
  }
}

ax_status ax_find_lifetimes(ax_assembly *a, ax_lifetime **out) {
  uint32_t count = a->plan->buffer_count;
  ax_lifetime *lives = *out = ax_arena_alloc(&a->scratch, count * sizeof lives[0]);
  bool *written = ax_arena_alloc(&a->scratch, count);
  if (lives == NULL || written == NULL) return ax_out_of_memory(count * sizeof lives[0]);
  for (uint32_t i = 0; i < count; i++) lives[i] = (ax_lifetime){UINT32_MAX, 0, AX_NONE};
  for (uint32_t i = 0; i < a->access_count; i++) {
    const ax_access *access = &a->accesses[i];
    ax_lifetime *life = &lives[access->allocation];
    cover(life, access->position, access->position);
    life->region = life->region == AX_NONE ? access->region : common_region(a, life->region, access->region);
  }
  extend_carried(a, lives, written);
  extend_over_loops(a, lives);
  return AX_OK;
}
