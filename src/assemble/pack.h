/* Packing by lifetime: gives offsets to items that are not all alive at the same time. */
#ifndef AX_ASSEMBLE_PACK_H
#define AX_ASSEMBLE_PACK_H

#include "base/base.h"

typedef struct ax_packed {
  uint32_t first, last; /* alive from first to last, inclusive */
  int64_t bytes;
  int64_t offset; /* the result */
} ax_packed;

/* Gives every item an offset, such that items alive at the same time do not overlap. Items are placed in the order in which they
   come alive (the largest first if several do), each at the lowest offset where it fits. *bytes: the highest end of an item. O(n
   log n). */
AX_MUST_USE ax_status ax_pack(ax_packed *items, uint32_t count, int64_t *bytes);

#endif
