/* Between which bounds the integers lie that equations make, from bounds of their operands. */
#ifndef AX_PRIM_INTERVALS_H
#define AX_PRIM_INTERVALS_H

#include "ir/prim.h"

typedef struct ax_interval { /* both belong to it */
  int64_t low, high;
} ax_interval;
static inline bool ax_interval_is_one(ax_interval r) { return r.low == r.high; }
static inline ax_interval ax_interval_hull(ax_interval a, ax_interval b) {
  return (ax_interval){a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
}
static inline ax_interval ax_interval_common(ax_interval a, ax_interval b) { /* where they meet */
  return (ax_interval){a.low > b.low ? a.low : b.low, a.high < b.high ? a.high : b.high};
}
static inline bool ax_interval_is_within(ax_interval a, ax_interval b) { return a.low >= b.low && a.high <= b.high; }
/* False: an end is beyond 64 bits. */
bool ax_interval_sum(ax_interval a, ax_interval b, ax_interval *out);
bool ax_interval_product(ax_interval a, ax_interval b, ax_interval *out);
/* Whether its numbers are followed: integers that an int64 holds, and booleans. */
bool ax_is_counted(ax_dtype dtype);
/* Of all numbers of the dtype; of those that are not followed, all of int64. */
ax_interval ax_interval_of_dtype(ax_dtype dtype);
/* Of a constant's elements; of one without elements, or with more than `most`, of its dtype. */
ax_interval ax_interval_of_literal(const ax_literal *literal, int64_t most);
/* Of iota's numbers, along whichever dimension; where there are no elements, anything is true of them. */
ax_interval ax_interval_of_iota(const ax_type *type);
/* Bounds of an elementwise or moving equation's results, from bounds of its operands, each of all their elements. */
ax_interval ax_interval_of_eqn(const ax_eqn *eqn, const ax_dtype *in_dtypes, const ax_interval *in, ax_dtype out);
/* Whether each element of its results is made of the operands' elements in the same place alone. */
bool ax_is_elementwise(const ax_eqn *eqn);

#endif
