/* How rows are sorted, for sort.c. */
#ifndef AX_PRIM_SORT_H
#define AX_PRIM_SORT_H

#include "prim/shape.h"

typedef struct ax_sort_params {
  int64_t dimension, num_keys;
  bool is_stable;
} ax_sort_params;

/* The routine that sorts buffers `in` into `out`, `count` of them of one shape (sort_routine.c). */
AX_MUST_USE ax_status ax_lower_sort(ax_lower *lower, const ax_sort_params *p, uint32_t count, const uint32_t *in, const uint32_t *out);

#endif
