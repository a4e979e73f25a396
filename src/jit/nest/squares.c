/* Squares: loads that step over rows along the vector loop and lie along another loop w are read along w, lanes by lanes, and
   turned in registers (transposed.c).

       for w:  for V:  y[w, V] = x[V, w]        x is read as rows of w, y is written as rows of V

   A reduction over both loops reads so too. Its lanes are added up last:

       for w:  for V:  s = s + y[w, V] x[V, w]

   Full squares want 16 elements along w, or as many as there are lanes, and go before everything else. Short ones make do with 8,
   where no columns (columns.c) can be read, and only where little of them is left over. */
#include "jit/nest/schedule.h"
#include "machine/caches.h"

/* Elements of 4 bytes or more can be gathered. So short squares pay only if they leave little of their area unused: less for
   arrays that fit the first cache, where gathering is fast. */
static bool fits_short(const ax_nest_schedule *s, const ax_nest_access *access, uint32_t vector, uint32_t along) {
  const int64_t bytes = (int64_t)ax_dtype_bytes(s->kernel->slots[access->slot].dtype), across = s->loops[vector].extent,
                down = s->loops[along].extent;
  const int64_t squares = ax_ceil_div(across, AX_SHORT_SQUARE) * ax_ceil_div(down, AX_SHORT_SQUARE),
                room = squares * AX_SHORT_SQUARE * AX_SHORT_SQUARE;
  if (bytes < 4 || down % AX_SHORT_SQUARE == 0) return true;
  if (ax_nest_schedule_store(s, 0)->stride[vector] != 1) return false;
  return ax_stride_length(access->stride[vector]) * across * bytes > ax_caches_here()->first ? room <= 2 * across * down
                                                                          : room * 4 <= 5 * across * down;
}

/* The loop along which an access that strides over `vector` lies in memory; -1: none that has `least` elements, or as many as there
   are lanes. */
static int along(const ax_nest_schedule *s, const ax_nest_access *access, uint32_t vector, uint32_t least) {
  int64_t stride = access->stride[vector];
  if ((stride >= -1 && stride <= 1) ||
      (ax_stride_picks(stride, s->lanes) && (least != AX_SHORT_SQUARE || stride < AX_SHORT_SQUARE)))
    return -1;
  for (uint32_t l = 0; l < s->loop_count; l++)
    if (access->stride[l] == 1 && s->loops[l].extent >= (least < s->lanes ? least : s->lanes) &&
        (least != AX_SHORT_SQUARE || fits_short(s, access, vector, l)))
      return (int)l;
  return -1;
}

/* Whether every store reduces, over the loops V and w alone, and the loads in squares are too many to be gathered fast. */
static bool reduces_fitly(const ax_nest_schedule *s, const ax_nest_access *access, uint32_t vector, int along) {
  const int64_t bytes = (int64_t)ax_dtype_bytes(s->kernel->slots[access->slot].dtype);
  if (bytes >= 4 && s->work * bytes < AX_SUMS_NEAR_BYTES / 4) return false;
  for (uint32_t i = 0; i < s->kernel->store_count; i++)
    if (s->kernel->stores[i].reduce == AX_SCALAR_NONE) return false;
  for (uint32_t l = 0; l < s->loop_count; l++)
    if (s->loops[l].reduced != (l == vector || (int)l == along)) return false;
  return true;
}

bool ax_nest_schedule_can_turn(const ax_nest_schedule *s, const ax_nest_access *access, uint32_t vector, uint32_t least) {
  if (access->moved != 0 || access->guard != AX_NONE || s->loops[vector].extent <= 1) return false;
  const int loop = along(s, access, vector, least);
  return loop >= 0 && (!s->reduces || (least == AX_FULL_SQUARE && reduces_fitly(s, access, vector, loop)));
}

int ax_nest_schedule_choose_turned(ax_nest_schedule *s, uint32_t least) {
  int transposed = -1;
  for (ax_ex id = 0; id < s->kernel->expr_count; id++) {
    ax_nest_access *access = &s->accesses[id];
    if (!access->live || !ax_nest_schedule_can_turn(s, access, s->vector, least)) continue;
    int loop = along(s, access, s->vector, least);
    if (transposed < 0) transposed = loop;
    access->transposed = loop == transposed;
  }
  return transposed;
}

uint32_t ax_nest_schedule_turned_lanes(const ax_nest_schedule *s, uint32_t along, uint32_t whole) {
  const ax_loop *vector = &s->loops[s->vector];
  uint32_t lanes = s->lanes;
  if (whole > 0 && !vector->ranged && vector->extent % whole == 0)
    lanes = whole; /* nothing is left over, and so no masks are needed */
  while (lanes > 4 && (s->loops[along].extent < lanes || vector->extent <= lanes / 2)) lanes /= 2;
  return lanes;
}

bool ax_nest_schedule_fits_squares(const ax_nest_schedule *s) {
  for (ax_ex id = 0; id < s->kernel->expr_count; id++) {
    const ax_nest_access *access = &s->accesses[id];
    if (!access->live || !ax_nest_schedule_can_turn(s, access, s->vector, AX_SHORT_SQUARE)) continue;
    const int loop = along(s, access, s->vector, AX_SHORT_SQUARE);
    const int64_t bytes = (int64_t)ax_dtype_bytes(s->kernel->slots[access->slot].dtype);
    return bytes >= 4 && s->loops[loop].extent % AX_SHORT_SQUARE == 0 && s->loops[s->vector].extent % AX_SHORT_SQUARE == 0 &&
           s->work * bytes <= ax_caches_here()->kept;
  }
  return false;
}
