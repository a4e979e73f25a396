/* Declarations shared by sort and top_k, and their routines. */
#ifndef AX_OPS_SORT_H
#define AX_OPS_SORT_H

#include "hlo/read.h"
#include "prim/shape.h"

typedef struct ax_sort_params {
  int64_t dimension, num_keys;
  bool is_stable;
} ax_sort_params;

/* Adds the routine that sorts the `count` buffers `in`, of one shape, into `out` (sort_routine.c). */
AX_MUST_USE ax_status ax_lower_sort(ax_lower *lower, const ax_sort_params *p, uint32_t count, const uint32_t *in,
                                    const uint32_t *out);

/* Adds the routine of top_k; out: the values and their places (top_k_routine.c). */
AX_MUST_USE ax_status ax_lower_top_k(ax_lower *lower, uint32_t in, const uint32_t *out);
/* An element as an unsigned number that ascends with the element. NaN has the largest number; 0 and -0 have the same. */
uint64_t ax_sort_key(ax_dtype dtype, const void *data, int64_t at);
/* The same in IEEE 754's total order, of floats of 16 bits and more: -NaN, -infinity, .., -0, 0, .., infinity, NaN. */
uint64_t ax_total_key(ax_dtype dtype, const void *data, int64_t at);
/* Says whether one of a chunk of elements from `at` on has a larger key, as ax_total_key gives it. True also for dtypes whose keys take too long to be
   compared so. */
enum { AX_SORT_CHUNK = 64 };
bool ax_sort_any_above(ax_dtype dtype, const void *data, int64_t at, uint64_t key);
/* Readers of StableHLO's sort (sort_read.c). */
extern const ax_hlo_reader ax_sort_readers[];
/* Reads a sort along `dimension` by the operation's comparator; of its results only the first `first` along the dimension are made,
   unless that is below 0. */
AX_MUST_USE ax_status ax_hlo_read_sort(const ax_hlo_read_args *args, int64_t dimension, int64_t first);
/* Takes elements of x along the dimension at these places, s32 or s64, which have x's rank. */
ax_value ax_taken_in_order(ax_value x, ax_value places, int64_t dimension);
/* stablehlo.compare of scalars in the order of sorting; direction: "LT", .. */
uint32_t ax_hlo_sort_compare(ax_hlo *hlo, const char *direction, uint32_t a, uint32_t b, const ax_type *type);
/* The same in the order of ax_total_key. */
uint32_t ax_hlo_total_compare(ax_hlo *hlo, const char *direction, uint32_t a, uint32_t b, const ax_type *type);

#endif
