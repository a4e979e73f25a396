/* Exchanges whose groups have members in several processes: who of a group is where. Tables depend on the group alone, and are made
   once for all exchanges that are alike. */
#include <stdlib.h>
#include <string.h>

#include "assemble/assembly.h"

typedef struct holder { /* a process that has a device which is this member */
  uint32_t group, process, member;
} holder;

static int by_process(const void *a, const void *b) {
  const holder *x = a, *y = b;
  if (x->group != y->group) return x->group < y->group ? -1 : 1;
  if (x->process != y->process) return x->process < y->process ? -1 : 1;
  return x->member < y->member ? -1 : x->member > y->member;
}

static ax_status allocate(ax_compiled *c, ax_crossing *crossing) {
  ax_arena *arena = &c->plan->arena;
  const size_t places = (size_t)crossing->groups * crossing->members;
  crossing->first = ax_arena_alloc(arena, places * sizeof crossing->first[0]);
  crossing->here = ax_arena_alloc(arena, places * sizeof crossing->here[0]);
  crossing->begin = ax_arena_alloc(arena, (crossing->groups + 1) * sizeof crossing->begin[0]);
  crossing->index = ax_arena_alloc(arena, crossing->groups * sizeof crossing->index[0]);
  crossing->held = ax_arena_alloc(arena, c->devices * sizeof crossing->held[0]);
  crossing->parties = ax_arena_alloc(arena, c->devices * sizeof crossing->parties[0]);
  if (crossing->first == NULL || crossing->here == NULL || crossing->begin == NULL || crossing->index == NULL ||
      crossing->held == NULL || crossing->parties == NULL)
    return ax_out_of_memory(places * sizeof crossing->first[0]);
  memset(crossing->first, 0xff, places * sizeof crossing->first[0]);
  memset(crossing->here, 0xff, places * sizeof crossing->here[0]);
  return AX_OK;
}

/* Groups the holders by process: `parties` of a group, each with the members that it holds. */
static void list_parties(const ax_compiled *c, ax_crossing *crossing, holder *holders) {
  uint32_t count = 0, party_count = 0, group = 0;
  qsort(holders, c->devices, sizeof holders[0], by_process);
  for (uint32_t i = 0; i < c->devices; i++) {
    const holder *one = &holders[i];
    if (i > 0 && by_process(&holders[i - 1], one) == 0) continue;
    while (group <= one->group) crossing->begin[group++] = party_count;
    const ax_party *last = party_count > 0 ? &crossing->parties[party_count - 1] : NULL;
    if (crossing->begin[one->group] == party_count || last->process != one->process)
      crossing->parties[party_count++] = (ax_party){.process = one->process, .first = count};
    crossing->parties[party_count - 1].count++;
    crossing->held[count++] = one->member;
  }
  while (group <= crossing->groups) crossing->begin[group++] = party_count;
}

/* Numbers the groups that have a member here. Returns false if every process that has a member of a group has all of them, so that
   nothing has to be sent. */
static bool number_groups(const ax_compiled *c, ax_crossing *crossing) {
  bool crosses = false;
  for (uint32_t g = 0; g < crossing->groups; g++) {
    crossing->index[g] = ax_party_of(crossing, g, c->map->process) != NULL ? crossing->here_count++ : AX_NONE;
    for (uint32_t i = crossing->begin[g]; i < crossing->begin[g + 1]; i++)
      crosses = crosses || crossing->parties[i].count != crossing->members;
  }
  return crosses;
}

static ax_status make(ax_compiled *c, ax_crossing *crossing) {
  const ax_mesh *mesh = &c->plan->mesh;
  uint32_t set;
  AX_TRY(ax_set_of(c, crossing->on & ~crossing->axes, &set));
  crossing->groups = c->sets[set].size;
  crossing->members = (uint32_t)ax_axis_set_size(crossing->axes, mesh);
  crossing->group = c->sets[set].index;
  AX_TRY(allocate(c, crossing));
  holder *holders = ax_calloc(c->devices, sizeof holders[0]);
  if (holders == NULL) return ax_out_of_memory(c->devices * sizeof holders[0]);
  for (uint32_t d = 0; d < c->devices; d++) {
    const uint32_t g = crossing->group[d], m = (uint32_t)ax_axes_index(crossing->names, mesh, d);
    uint32_t *first = &crossing->first[g * crossing->members + m], *here = &crossing->here[g * crossing->members + m];
    holders[d] = (holder){g, c->map->of[d], m};
    if (*first == AX_NONE) *first = d;
    if (*here == AX_NONE && ax_device_is_here(c->map, d)) *here = d;
  }
  list_parties(c, crossing, holders);
  ax_free(holders);
  crossing->crosses = number_groups(c, crossing);
  return AX_OK;
}

ax_status ax_find_crossing(ax_compiled *c, const ax_axes *names, ax_axis_set axes, ax_axis_set on, const ax_crossing **out) {
  ax_crossing *one = c->crossings;
  *out = NULL;
  if (c->map == NULL) return AX_OK;
  while (one != NULL && (one->on != on || !ax_axes_equal(one->names, names))) one = one->next;
  if (one == NULL) {
    one = ax_arena_alloc(&c->plan->arena, sizeof *one);
    if (one == NULL) return ax_out_of_memory(sizeof *one);
    *one = (ax_crossing){.names = names, .axes = axes, .on = on, .next = c->crossings};
    AX_TRY(make(c, one));
    c->crossings = one;
  }
  if (one->crosses) *out = one;
  return AX_OK;
}
