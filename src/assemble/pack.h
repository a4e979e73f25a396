/* Packing by lifetime: gives offsets to items that are not all alive at the same time, aligned as arrays are (ax_array_alignment). */
#ifndef AX_ASSEMBLE_PACK_H
#define AX_ASSEMBLE_PACK_H

#include "base/base.h"

static inline int64_t ax_pack_aligned(int64_t offset, int64_t bytes) {
  const int64_t mask = (int64_t)ax_array_alignment((size_t)bytes) - 1;
  return (offset + mask) & ~mask;
}

typedef struct ax_packed {
  uint32_t first, last; /* alive from first to last, inclusive */
  int64_t bytes;
  bool apart;     /* for ax_pack_into: it may lie in no place */
  int64_t offset; /* the result */
  uint32_t place; /* the result of ax_pack_into: in which of the places; AX_NONE: in none */
} ax_packed;

/* Memory that is there anyway, and free at first. */
typedef struct ax_pack_place {
  uint32_t until; /* items in it must have died before */
  int64_t bytes;
} ax_pack_place;

/* Gives every item an offset, such that items alive at the same time do not overlap. Items are placed in the order in which they
   come alive (the largest first if several do), each at the lowest offset where it fits. *bytes: the highest end of an item. O(n
   log n). */
AX_MUST_USE ax_status ax_pack(ax_packed *items, uint32_t count, int64_t *bytes);
/* The same for items that may also lie in places. Several orders are tried, and the one that needs the fewest bytes besides the
   places is kept. O(n log n), and what 512 items take each with each. */
AX_MUST_USE ax_status ax_pack_into(ax_packed *items, uint32_t count, const ax_pack_place *places, uint32_t place_count, int64_t *bytes);

#endif
