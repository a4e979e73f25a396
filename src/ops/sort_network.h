/* Short rows of which only the elements are wanted are sorted many at a time: row r stands in lane r of vectors, and the
   comparators of a sorting network exchange two of these. All that are equal must have the same bits. */
#ifndef AX_OPS_SORT_NETWORK_H
#define AX_OPS_SORT_NETWORK_H

#include "ir/dtype.h"

/* Elements of a row, and comparators, at most; bytes of a vector. */
enum { AX_NETWORK_EXTENT = 64, AX_NETWORK_PAIRS = 543, AX_NETWORK_LINE = 64 };

typedef struct ax_sort_network {
  int64_t extent, inner; /* of the dimension; elements between neighbours along it */
  ax_dtype dtype;
  uint32_t count;                      /* of comparators */
  uint8_t pairs[2 * AX_NETWORK_PAIRS]; /* the lesser of each two goes to the first of them */
} ax_sort_network;

/* Batcher's odd-even merge sort of so many elements. False: rows of the dtype or of the length are not sorted so. */
bool ax_sort_network_make(ax_dtype dtype, int64_t extent, int64_t inner, ax_sort_network *out);
/* The number of rows from `row` on, of which there are `end`, that are sorted at once. */
int64_t ax_sort_network_rows(const ax_sort_network *network, int64_t row, int64_t end);
/* Sorts these, by registers of `bytes` bytes, 64, 32 or 16. False: nothing is done, because there is a NaN or -0 among them; or
   the processor has no such registers. */
bool ax_sort_network_run(const ax_sort_network *network, uint32_t bytes, const void *from, void *to, int64_t row, int64_t rows);

#endif
