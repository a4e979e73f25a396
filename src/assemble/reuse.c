/* Memory that several activations touch, reused within a run.

   Two shared allocations may be aliased allocations of the same memory, one after the other, when the later one's writers wait for
   whoever touched the earlier one. So memory is decided before synchronisation, which then finds those waits as it finds all
   others; the pairs of aliased allocations that follow one another somewhere are handed to it. A third aliased allocation need not
   wait for the first, because the second has.

   That holds where everything happens equally often for all activations and whenever its surroundings do. So allocations share
   memory only with those that

     have the same axes and the same group    a part of one is a part of the other, touched by the same activations
     have the same home                       the innermost branch or while loop around them; a for loop that runs at least once is
                                              no
                                              obstacle
     are touched only where control is the same on all devices, are written first and whenever their home runs, and are no results

   In a loop the first aliased allocation of a place follows the last one of the iteration before: they are a pair too.

   A wait for the readers of a psum's result right before the next psum would make of each psum a barrier. Therefore an allocation
   lives on, as far as placing is concerned, until all activations have waited for an exchange that starts after its last use:
   whoever has, knows that all the others are past that use, and the wait for the aliased allocation before is implied. In a chain
   of psums that is two aliased allocations by turns. */
#include <stdlib.h>
#include <string.h>

#include "assemble/assembly.h"
#include "assemble/occupancy.h"
#include "assemble/pack.h"

typedef struct aliased_allocation {
  ax_axis_set axes, group, touching; /* touching: axes of the accesses */
  uint32_t home, allocation, first, last, region;
  int64_t bytes, offset;
} aliased_allocation;

typedef struct reuser {
  ax_assembly *a;
  const ax_axis_set *group;
  const bool *fixed;
  ax_lifetime *lives;
  ax_axis_set *touching; /* by allocation */
  bool *apart;           /* by allocation: it must not share */
  aliased_allocation *aliased_allocations;       /* those that may share */
  uint32_t count;
  struct meeting *meetings;
  uint32_t meeting_count;
  ax_occupancy houses; /* by aliased allocation */
} reuser;

static int64_t bytes_of(const reuser *r, uint32_t allocation) {
  return (ax_buffer_bytes(&r->a->plan->buffers[allocation]) + 63) & ~(int64_t)63;
}

/* --- Who may share --- */

/* Says whether a region is entered whenever the region around it is. */
static bool always_runs(const ax_assembly *a, uint32_t region) {
  const ax_instr *before = &a->instrs[a->regions[region].begin - 1];
  return before->kind == AX_INSTR_LOOP && before->trips > 0;
}

static uint32_t home_of(const ax_assembly *a, uint32_t region) {
  while (region != 0 && always_runs(a, region)) region = a->regions[region].parent;
  return region;
}

static ax_status look_at_accesses(reuser *r) {
  const ax_assembly *a = r->a;
  size_t allocations = a->plan->buffer_count;
  bool *known = ax_arena_alloc(&r->a->scratch, allocations); /* accessed before */
  r->touching = ax_arena_alloc(&r->a->scratch, allocations * sizeof r->touching[0]);
  r->apart = ax_arena_alloc(&r->a->scratch, allocations);
  if (known == NULL || r->touching == NULL || r->apart == NULL) return ax_out_of_memory(allocations * sizeof r->touching[0]);
  for (uint32_t i = 0; i < a->access_count; i++) {
    const ax_access *access = &a->accesses[i];
    r->touching[access->allocation] |= access->axes;
    bool begins = access->writes && home_of(a, access->region) == home_of(a, r->lives[access->allocation].region);
    if (a->regions[access->region].axes != 0 || (!known[access->allocation] && !begins)) r->apart[access->allocation] = true;
    known[access->allocation] = true;
  }
  for (uint32_t k = 0; k < a->plan->out_count; k++) r->apart[a->plan->buffers[a->plan->out[k]].allocation] = true;
  return AX_OK;
}

static ax_status list_aliased_allocations(reuser *r) {
  const ax_plan *plan = r->a->plan;
  r->aliased_allocations = ax_arena_alloc(&r->a->scratch, plan->buffer_count * sizeof r->aliased_allocations[0]);
  if (r->aliased_allocations == NULL) return ax_out_of_memory(plan->buffer_count * sizeof r->aliased_allocations[0]);
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    const ax_buffer *buffer = &plan->buffers[i];
    const ax_lifetime *life = &r->lives[i];
    if (!r->a->shared[i] || buffer->kind != AX_BUFFER_TEMP || buffer->allocation != i || r->apart[i] || r->fixed[i]) continue;
    if (ax_seen_along(r->a, i) != 0) continue;
    r->aliased_allocations[r->count++] = (aliased_allocation){.axes = buffer->axes,
                                                              .group = r->group[i],
                                                              .touching = r->touching[i],
                                                              .allocation = i,
                                                              .first = life->first,
                                                              .last = life->last,
                                                              .region = life->region,
                                                              .home = home_of(r->a, life->region),
                                                              .bytes = bytes_of(r, i)};
  }
  return AX_OK;
}

/* --- Until everybody knows --- */

/* An exchange over `axes` that begins at `start`. An activation at `known` or later has waited for all members. */
typedef struct meeting {
  uint32_t region, start, known;
  ax_axis_set axes;
} meeting;

static int by_place(const void *x, const void *y) {
  const meeting *a = x, *b = y;
  if (a->region != b->region) return a->region < b->region ? -1 : 1;
  if (a->axes != b->axes) return a->axes < b->axes ? -1 : 1;
  return a->start < b->start ? -1 : a->start > b->start;
}

static ax_status list_meetings(reuser *r) {
  const ax_assembly *a = r->a;
  uint32_t count = 0,
           *read = ax_arena_alloc(&r->a->scratch, a->plan->buffer_count * sizeof read[0]); /* by allocation: the next read */
  for (uint32_t i = 0; i < a->access_count; i++) count += a->accesses[i].exchange != NULL;
  r->meetings = ax_arena_alloc(&r->a->scratch, count * sizeof r->meetings[0]);
  if (read == NULL || r->meetings == NULL) return ax_out_of_memory(a->plan->buffer_count * sizeof read[0]);
  memset(read, 0xff, a->plan->buffer_count * sizeof read[0]);
  for (uint32_t i = a->access_count; i-- > 0;) {
    const ax_access *access = &a->accesses[i];
    if (!access->writes) read[access->allocation] = access->position;
    const ax_exchange *x = access->exchange;
    if (x == NULL || x->peers == AX_PEERS_PAIRS || read[access->allocation] == AX_NONE || r->apart[access->allocation]) continue;
    r->meetings[r->meeting_count++] = (meeting){access->region, access->position, read[access->allocation], x->axes};
  }
  if (r->meeting_count > 0) qsort(r->meetings, r->meeting_count, sizeof r->meetings[0], by_place);
  for (uint32_t i = r->meeting_count; i-- > 1;) {
    meeting *one = &r->meetings[i - 1], *next = &r->meetings[i];
    if (one->region == next->region && one->axes == next->axes && next->known < one->known) one->known = next->known;
  }
  return AX_OK;
}

/* The first meeting that is not before (region, axes, start). */
static uint32_t find_meeting(const reuser *r, uint32_t region, ax_axis_set axes, uint32_t start) {
  const meeting wanted = {.region = region, .axes = axes, .start = start};
  uint32_t low = 0, high = r->meeting_count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (by_place(&r->meetings[middle], &wanted) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* The position at which all its users are known to be done; if no exchange tells, its last use. */
static uint32_t known_done(const reuser *r, const aliased_allocation *t) {
  ax_axis_set others = t->touching & ~t->group;
  uint32_t known = AX_NONE, i = find_meeting(r, t->region, 0, 0);
  while (i < r->meeting_count && r->meetings[i].region == t->region) {
    ax_axis_set axes = r->meetings[i].axes;
    uint32_t next = find_meeting(r, t->region, axes, t->last + 1);
    if (next < r->meeting_count && r->meetings[next].region == t->region && r->meetings[next].axes == axes &&
        (others & ~axes) == 0 && r->meetings[next].known < known)
      known = r->meetings[next].known;
    i = find_meeting(r, t->region, axes, AX_NONE);
  }
  return known != AX_NONE && known > t->last ? known - 1 : t->last;
}

/* --- Placing --- */

static int by_kind(const aliased_allocation *x, const aliased_allocation *y) {
  if (x->axes != y->axes) return x->axes < y->axes ? -1 : 1;
  if (x->group != y->group) return x->group < y->group ? -1 : 1;
  return x->home < y->home ? -1 : x->home > y->home;
}

static int by_time(const void *a, const void *b) {
  const aliased_allocation *x = a, *y = b;
  int order = by_kind(x, y);
  if (order != 0) return order;
  if (x->first != y->first) return x->first < y->first ? -1 : 1;
  return x->allocation < y->allocation ? -1 : x->allocation > y->allocation;
}

/* Gives offsets to aliased allocations begin .. end, which may share memory; *bytes: the bytes needed. */
static ax_status pack_pool(reuser *r, uint32_t begin, uint32_t end, int64_t *bytes) {
  ax_packed *items = ax_arena_alloc(&r->a->scratch, (end - begin) * sizeof items[0]);
  if (items == NULL) return ax_out_of_memory((end - begin) * sizeof items[0]);
  for (uint32_t i = begin; i < end; i++)
    items[i - begin] = (ax_packed){.first = r->aliased_allocations[i].first,
                                   .last = known_done(r, &r->aliased_allocations[i]),
                                   .bytes = r->aliased_allocations[i].bytes};
  AX_TRY(ax_pack(items, end - begin, bytes));
  for (uint32_t i = begin; i < end; i++) r->aliased_allocations[i].offset = items[i - begin].offset;
  return AX_OK;
}

/* --- Who follows whom --- */

static ax_status follow(void *context, uint32_t before, uint32_t after) {
  reuser *r = context;
  ax_assembly *a = r->a;
  if (before == AX_NONE || before == after) return AX_OK;
  const ax_aliased_allocations pair = {r->aliased_allocations[before].allocation, r->aliased_allocations[after].allocation};
  if (a->aliased_allocation_count > 0 && memcmp(&a->aliased_allocations[a->aliased_allocation_count - 1], &pair, sizeof pair) == 0)
    return AX_OK;
  AX_TRY(ax_grow(&a->aliased_allocations, sizeof a->aliased_allocations[0], a->aliased_allocation_count, 1,
                 &a->aliased_allocation_capacity));
  a->aliased_allocations[a->aliased_allocation_count++] = pair;
  return AX_OK;
}

static ax_status move_all_in(reuser *r, uint32_t begin, uint32_t end) {
  for (uint32_t i = begin; i < end; i++) {
    const aliased_allocation *t = &r->aliased_allocations[i];
    AX_TRY(ax_occupancy_move_in(&r->houses, t->offset, t->offset + t->bytes, i, follow, r));
  }
  return AX_OK;
}

/* --- Loops: once more, for the next iteration --- */

typedef struct open_loop {
  uint32_t region, begin; /* its aliased allocations begin there */
} open_loop;

static bool repeats(const ax_assembly *a, uint32_t region, uint32_t home) {
  if (region != home) return a->regions[region].is_loop;
  for (; region != 0; region = a->regions[region].parent)
    if (a->regions[region].is_loop) return true;
  return false;
}

static bool is_inside(const ax_assembly *a, uint32_t region, uint32_t around) {
  while (region != around && region != 0) region = a->regions[region].parent;
  return region == around;
}

/* Opens the regions from `home` to that of the aliased allocation that repeat and are not open yet, the outermost first. */
static void open_loops(const ax_assembly *a, const aliased_allocation *t, uint32_t index, open_loop *loops, uint32_t *count) {
  uint32_t known = *count > 0 ? loops[*count - 1].region : AX_NONE, first = *count;
  for (uint32_t g = t->region;; g = a->regions[g].parent) {
    if (g == known) break;
    if (repeats(a, g, t->home)) loops[(*count)++] = (open_loop){g, index};
    if (g == t->home) break;
  }
  for (uint32_t i = first, k = *count; i + 1 < k; i++) {
    open_loop one = loops[i];
    loops[i] = loops[--k];
    loops[k] = one;
  }
}

/* Goes through aliased allocations begin .. end in the order of time. At the end of a repeated region, those in it move in once
   more. */
static ax_status walk(reuser *r, uint32_t begin, uint32_t end) {
  const ax_assembly *a = r->a;
  open_loop *loops = ax_arena_alloc(&r->a->scratch, (a->region_count + 1) * sizeof loops[0]);
  uint32_t count = 0;
  if (loops == NULL) return ax_out_of_memory(a->region_count * sizeof loops[0]);
  for (uint32_t i = begin; i <= end; i++) {
    while (count > 0 && (i == end || !is_inside(a, r->aliased_allocations[i].region, loops[count - 1].region)))
      AX_TRY(move_all_in(r, loops[--count].begin, i));
    if (i == end) break;
    open_loops(a, &r->aliased_allocations[i], i, loops, &count);
    AX_TRY(move_all_in(r, i, i + 1));
  }
  return AX_OK;
}

static ax_status pair_up(reuser *r, uint32_t begin, uint32_t end) {
  uint32_t count = 0;
  int64_t *offsets = ax_arena_alloc(&r->a->scratch, 2 * (size_t)(end - begin) * sizeof offsets[0]);
  if (offsets == NULL) return ax_out_of_memory(2 * (size_t)(end - begin) * sizeof offsets[0]);
  for (uint32_t i = begin; i < end; i++) {
    offsets[count++] = r->aliased_allocations[i].offset;
    offsets[count++] = r->aliased_allocations[i].offset + r->aliased_allocations[i].bytes;
  }
  AX_TRY(ax_occupancy_init(&r->houses, &r->a->scratch, offsets, count));
  return walk(r, begin, end);
}

/* --- All --- */

typedef struct area { /* memory shared along the same axes */
  ax_axis_set axes;
  int64_t bytes;
} area;

/* Takes the next `bytes` of an area and returns their offset. There are few areas: one for each set of axes in use. */
static int64_t take(area *areas, uint32_t *count, ax_axis_set axes, int64_t bytes) {
  uint32_t i = 0;
  while (i < *count && areas[i].axes != axes) i++;
  if (i == *count) areas[(*count)++] = (area){axes, 0};
  const int64_t offset = ax_pack_aligned(areas[i].bytes, bytes);
  areas[i].bytes = offset + bytes;
  return offset;
}

static ax_status place_all(reuser *r, area *areas) {
  ax_assembly *a = r->a;
  uint32_t area_count = 0;
  for (uint32_t begin = 0, end; begin < r->count; begin = end) {
    int64_t bytes;
    for (end = begin; end < r->count && by_kind(&r->aliased_allocations[begin], &r->aliased_allocations[end]) == 0;) end++;
    AX_TRY(pack_pool(r, begin, end, &bytes));
    AX_TRY(pair_up(r, begin, end));
    int64_t base = take(areas, &area_count, r->aliased_allocations[begin].axes, bytes);
    for (uint32_t i = begin; i < end; i++)
      a->shared_offset[r->aliased_allocations[i].allocation] = base + r->aliased_allocations[i].offset;
  }
  for (uint32_t k = 0; k < a->plan->out_count; k++) /* results have memory of their own */
    a->shared_offset[ax_memory_of_allocation(a, a->plan->buffers[a->plan->out[k]].allocation)] = 0;
  for (uint32_t i = 0; i < a->plan->buffer_count; i++)
    if (a->shared[i] && a->shared_offset[i] < 0 && a->plan->buffers[i].kind == AX_BUFFER_TEMP)
      a->shared_offset[i] = take(areas, &area_count, a->plan->buffers[i].axes, bytes_of(r, i));
  return AX_OK;
}

ax_status ax_reuse_shared(ax_assembly *a, const ax_axis_set *group, const bool *fixed) {
  reuser r = {.a = a, .group = group, .fixed = fixed};
  size_t allocations = a->plan->buffer_count;
  a->shared_offset = ax_arena_alloc(&a->scratch, allocations * sizeof a->shared_offset[0]);
  area *areas = ax_arena_alloc(&a->scratch, (allocations + 1) * sizeof areas[0]);
  if (a->shared_offset == NULL || areas == NULL) return ax_out_of_memory(allocations * sizeof areas[0]);
  memset(a->shared_offset, 0xff, allocations * sizeof a->shared_offset[0]); /* -1: not placed yet */
  AX_TRY(ax_find_lifetimes(a, &r.lives));
  AX_TRY(look_at_accesses(&r));
  AX_TRY(list_aliased_allocations(&r));
  AX_TRY(list_meetings(&r));
  if (r.count > 0) qsort(r.aliased_allocations, r.count, sizeof r.aliased_allocations[0], by_time);
  return place_all(&r, areas);
}
