/* Two loops as one, for squares that are transposed (TRANSPOSE). If rows are short on the written or on the read side, they go
   on in the next loop:

       for c:  for a:  for v < 5:  y[c, a, v] = x[v, a, c]
       for c:  for r:              y[c, r]    = x[r % 5, r / 5, c]        r = 5 a + v; y is even along r, x is not

   So cache lines are written whole, or read whole, and no register is mostly empty. An access that is uneven along the two loops
   moves by its stride from one index to the next, and by `uneven` more at each end of a row of the inner loop. Squares are read
   row by row, so the transposed load may be uneven along the vector loop, and the store may be uneven along the loop that
   squares lie along. */
#include <string.h>

#include "jit/nest/schedule.h"
#include "machine/caches.h"

enum { line = AX_LINE_BYTES, least_side = 8, long_enough = 16 };

bool ax_nest_schedule_only_moves(const ax_nest_schedule *s) {
  if (s->reduces || s->kernel->store_count != 1) return false;
  for (ax_ex id = 0; id < s->kernel->expr_count; id++) {
    const ax_nest_access *access = &s->accesses[id];
    const ax_scalar op = s->kernel->exprs[id].op;
    if (s->live[id] && (op == AX_LEAF_INDEX || op == AX_LEAF_INSIDE)) return false;
    if (access->live && (access->moved != 0 || access->guard != AX_NONE)) return false;
  }
  return true;
}

/* The loop of more than one step along which an access moves by `stride`; -1: there is none. */
static int find_loop(const ax_nest_schedule *s, const ax_nest_access *access, int64_t stride) {
  for (uint32_t l = 0; l < s->loop_count; l++)
    if (access->stride[l] == stride && s->loops[l].extent > 1) return (int)l;
  return -1;
}

/* Rows that fill no line of a cache, or leave much of their last register empty. */
static bool is_short(const ax_nest_schedule *s, uint32_t loop, int64_t bytes) {
  const int64_t extent = s->loops[loop].extent, lanes = s->lanes, room = ax_ceil_div(extent, lanes) * lanes;
  return extent * bytes < line || room * 4 > extent * 5;
}

static void remove_loop(ax_nest_schedule *s, uint32_t loop) {
  const size_t after = s->loop_count - loop - 1;
  memmove(&s->loops[loop], &s->loops[loop + 1], after * sizeof s->loops[0]);
  for (uint32_t a = 0; a < ax_nest_schedule_access_count(s); a++) {
    ax_nest_access *access = &s->accesses[a];
    memmove(&access->stride[loop], &access->stride[loop + 1], after * sizeof access->stride[0]);
    memmove(&access->uneven[loop], &access->uneven[loop + 1], after * sizeof access->uneven[0]);
    access->stride[s->loop_count - 1] = access->uneven[s->loop_count - 1] = 0;
  }
  for (uint32_t d = 0; d < s->kernel->rank; d++)
    if (s->loop_of_dim[d] > (int)loop) s->loop_of_dim[d]--;
  s->loop_count--;
}

/* `outer` goes around `inner`; returns the number of what they have become. */
static uint32_t merge(ax_nest_schedule *s, uint32_t outer, uint32_t inner) {
  ax_loop *loop = &s->loops[inner];
  loop->inner = loop->extent;
  for (uint32_t a = 0; a < ax_nest_schedule_access_count(s); a++)
    s->accesses[a].uneven[inner] = s->accesses[a].stride[outer] - loop->inner * s->accesses[a].stride[inner];
  loop->ranged = s->loops[outer].ranged;
  loop->scale = s->loops[outer].scale * loop->inner;
  loop->extent *= s->loops[outer].extent;
  for (uint32_t d = 0; d < s->kernel->rank; d++)
    if (s->loop_of_dim[d] == (int)outer) s->loop_of_dim[d] = (int)inner;
  remove_loop(s, outer);
  return inner - (outer < inner);
}

/* All loads that lie along `along` are turned; what else there is goes evenly along the vector loop. */
static bool turns(ax_nest_schedule *s, uint32_t along) {
  for (uint32_t a = 0; a < ax_nest_schedule_access_count(s); a++) {
    ax_nest_access *access = &s->accesses[a];
    if (!access->live) continue;
    const bool moves =
        access->stride[s->vector] != 0 || access->uneven[s->vector] != 0; /* or it is the same for all rows of a square */
    access->transposed = a < s->kernel->expr_count && access->stride[along] == 1 && moves;
    if (access->transposed ? access->uneven[along] != 0
                           : access->uneven[s->vector] != 0 || access->stride[s->vector] < 0 || access->stride[s->vector] > 1)
      return false;
  }
  return true;
}

/* The first load that strides over the vector loop; NULL. */
static const ax_nest_access *turned_load(const ax_nest_schedule *s, uint32_t vector) {
  for (ax_ex id = 0; id < s->kernel->expr_count; id++) {
    const ax_nest_access *access = &s->accesses[id];
    if (access->live && (access->stride[vector] < 0 || access->stride[vector] > 1)) return access;
  }
  return NULL;
}

/* Merges the vector loop, and the loop that squares lie along, with a loop around it where that pays. False: nothing is merged. */
static bool merge_short(ax_nest_schedule *s, int *along, int vector) {
  const ax_nest_access *to = ax_nest_schedule_store(s, 0), *from = turned_load(s, (uint32_t)vector);
  if (from == NULL || (*along = find_loop(s, from, 1)) < 0 || *along == vector) return false;
  const int64_t bytes = (int64_t)ax_dtype_bytes(s->kernel->slots[to->slot].dtype), rows = s->loops[vector].extent,
                columns = s->loops[*along].extent;
  int around = find_loop(s, to, rows), beyond = find_loop(s, from, columns);
  if (around == *along || s->loops[vector].ranged || !is_short(s, (uint32_t)vector, bytes)) around = -1;
  if (beyond == vector || s->loops[*along].ranged || !is_short(s, (uint32_t)*along, bytes)) beyond = -1;
  if (around >= 0 && around == beyond) *(rows <= columns ? &beyond : &around) = -1; /* it can be part of one */
  if (around < 0 && (beyond < 0 || rows >= long_enough))
    return false; /* such rows are read column by column, or turned as they are */
  if (around >= 0) {
    const uint32_t merged = merge(s, (uint32_t)around, (uint32_t)vector);
    *along -= *along > around;
    beyond -= beyond > around;
    vector = (int)merged;
  }
  if (beyond >= 0) {
    const uint32_t merged = merge(s, (uint32_t)beyond, (uint32_t)*along);
    vector -= vector > beyond;
    *along = (int)merged;
  }
  s->vector = (uint32_t)vector;
  return true;
}

ax_status ax_nest_schedule_compose(ax_nest_schedule *s, ax_arena *arena, int *along) {
  const ax_nest_schedule before = *s;
  const int vector = ax_nest_schedule_only_moves(s) ? find_loop(s, ax_nest_schedule_store(s, 0), 1) : -1;
  *along = -1;
  if (vector < 0) return AX_OK;
  ax_nest_access *accesses = ax_arena_copy(arena, s->accesses, ax_nest_schedule_access_count(s) * sizeof accesses[0]);
  if (accesses == NULL) return ax_out_of_memory(ax_nest_schedule_access_count(s) * sizeof accesses[0]);
  int found = -1;
  const bool fits = merge_short(s, &found, vector) && s->loops[s->vector].extent >= least_side &&
                    s->loops[found].extent >= least_side && turns(s, (uint32_t)found);
  if (fits) *along = found;
  if (fits) return AX_OK;
  *s = before;
  s->accesses = accesses;
  return AX_OK;
}
