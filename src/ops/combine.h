/* Rows of elements combined with others, for scatters: sums, products and extremes; and rows that take the place of others. */
#ifndef AX_OPS_COMBINE_H
#define AX_OPS_COMBINE_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/scalar.h"

typedef struct ax_combined { /* rows whose elements lie next to each other; none of `to` overlaps one of `from` */
  char *to;
  const char *from;
  int64_t to_pitch, from_pitch; /* bytes from a row to the next */
  const int64_t *place, *row;   /* which rows of `to`, and which of `from` they are combined with, in this order */
  int64_t rows, count;          /* how many; elements of each */
  bool far;                     /* those of `from` lie in memory, not in caches */
} ax_combined;

/* Each element of each row of `to` becomes itself and its partner combined: with the bits of ax_scalar_eval, rounded once, but for
   those of a NaN. AX_SCALAR_NONE: it becomes its partner. */
typedef void ax_combine(ax_scalar combine, ax_dtype dtype, const ax_combined *rows);

/* Returns the function that does so with this machine's widest registers; NULL: there is none for these. There is one for copies;
   for sums, products, minima and maxima of all numbers but f8e8m0fnu, complex ones too; for sums and products of f16 if the processor converts them. */
ax_combine *ax_combiner(ax_scalar combine, ax_dtype dtype);
/* The one for registers of so many bytes: 16, 32 or 64. NULL: this machine has none. */
ax_combine *ax_combiner_of(ax_scalar combine, ax_dtype dtype, uint32_t bytes);

typedef struct ax_short_rows { /* rows of few elements, each at the place that one number or two say */
  char *to;
  const char *from;
  const int32_t *at;
  int64_t at_step, from_step;   /* numbers, and elements, from a row to the next */
  int64_t limit[2], pitch[2];   /* by number: the largest, and elements from a place to the next */
  int64_t rows, count;          /* how many; elements of each */
  uint32_t numbers;             /* of a place */
  bool clips;                   /* a number below 0 or above its limit is the nearest; if not, its row goes nowhere */
  bool far;                     /* the rows of `from` lie in memory, not in caches */
} ax_short_rows;

/* Whether there is a function for rows of so many elements at so many numbers: of 1 to 4 at one number, and of one at two, for what
   ax_combiner has a function for, but sums and products of f16, and copies of 16 bytes; of 5 to 8, 12 and 16 at one number, 64 bytes at
   most, for copies of 2 to 8 bytes, integers of 32 bits and floats of 16 to 64, but sums and products of f16. */
bool ax_has_short_rows(ax_scalar combine, ax_dtype dtype, int64_t count, uint32_t numbers);
/* Each row is combined, in order, with what stands at its place, with the same bits as by ax_combiner's but for those of a NaN.
   ax_has_short_rows holds. */
void ax_combine_short_rows(ax_scalar combine, ax_dtype dtype, const ax_short_rows *rows);

#endif
