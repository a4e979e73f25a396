/* A roll is a part of an array behind another part of the same array. Both are taken from one source, so a roll over a whole number of
   elements for each device is two exchanges around the ring, with the same pieces on all devices:

     roll by 1      device      0      1      2      3
                    block       a b    c d    e f    g h
                    from the    h      b      d      f       one ppermute, around the ring
                    left
                    makes       h a    b c    d e    f g
*/
#include "partition/join.h"

#include "partition/redistribute.h"
#include "collectives/collective.h"
#include "prim/bind.h"
#include "prim/shape.h"

/* The arrays that parts are taken of, each once. */
typedef struct sources {
  ax_piece_source of[AX_MOST_JOINED];
  ax_value blocks[AX_MOST_JOINED];
  uint32_t count, by_part[AX_MOST_JOINED];
} sources;

static sources sources_of(const ax_joined_part *in, uint32_t count, int64_t parts) {
  sources s = {.count = 0};
  for (uint32_t i = 0; i < count; i++) {
    const int64_t block = (in[i].size + parts - 1) / parts;
    uint32_t k = 0;
    while (k < s.count &&
           (s.blocks[k].id != in[i].block.id || s.blocks[k].trace != in[i].block.trace || s.of[k].whole != in[i].whole))
      k++;
    if (k == s.count) s.of[k] = (ax_piece_source){block, in[i].whole}, s.blocks[k] = in[i].block, s.count++;
    s.by_part[i] = k;
  }
  return s;
}

static ax_status needs_of_all(const ax_joined_part *in, uint32_t count, const sources *s, ax_redistribution *t, int64_t total) {
  for (int64_t i = 0; i < t->parts; i++) {
    const int64_t begin = i * t->length, stop = ax_least(begin + t->length, total);
    int64_t at = 0; /* where the part begins in the result */
    for (uint32_t k = 0; k < count; at += in[k].count, k++) {
      const int64_t low = ax_most(begin, at), end = ax_least(stop, at + in[k].count);
      if (low < end)
        AX_TRY(ax_redistribution_need(t, s->by_part[k], i, in[k].first + low - at, in[k].first + end - at, low - begin));
    }
  }
  return ax_redistribution_arrange(t);
}

ax_value ax_join_blocks(const ax_joined_part *in, uint32_t count, const ax_axes *names, int64_t parts, uint32_t d) {
  const ax_axes_list list = ax_axes_listed(names);
  const sources s = sources_of(in, count, parts);
  int64_t total = 0;
  for (uint32_t i = 0; i < count; i++) total += in[i].count;
  ax_redistribution t = {.parts = parts, .length = (total + parts - 1) / parts, .sources = s.of, .source_count = s.count};
  const ax_status status = needs_of_all(in, count, &s, &t, total);
  ax_value made = ax_poison;
  if (status == AX_OK && !ax_failed())
    made = ax_redistribution_bring(&t, s.blocks, list.text, d, ax_full(ax_typeof(s.blocks[0]).dtype, AX_DIMS(), 0));
  ax_redistribution_deinit(&t);
  if (status != AX_OK && status != AX_ABSENT) ax_fail(status);
  return made;
}
