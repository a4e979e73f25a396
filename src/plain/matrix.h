/* What the rules of matrices share. Matrices are T[m, n], one each; numbers in loops are matrices of one element, T[1, 1], or scalars. */
#ifndef AX_PLAIN_MATRIX_H
#define AX_PLAIN_MATRIX_H

#include "linalg/matrices.h"
#include "plain/rules.h"

/* s32[count, 1] and s32[1, count]: the numbers of rows, and of columns. */
ax_value ax_plain_rows(int64_t count);
ax_value ax_plain_columns(int64_t count);
/* R of x's parts: squares of sizes, and sizes. */
ax_value ax_plain_squares(ax_value x);
double ax_plain_epsilon(ax_dtype dtype); /* the distance from 1 to the next number */
double ax_plain_least(ax_dtype dtype);   /* the least normal number */
ax_value ax_plain_or_one(ax_value x);    /* x, and 1 for 0: to divide by */
/* R scalar: a power of 2 from 1/4 to 3/4 of the largest part of a number in x; 1 where that is nearly 0. Divided by it, x has numbers whose sums
   and differences are finite and whose roundings are no subnormal numbers, as LAPACK scales its matrices. */
ax_value ax_plain_scale(ax_value x);
/* x / by, by real numbers: complex division squares what it divides by, and loses digits where squares are no normal numbers. */
ax_value ax_plain_divided(ax_value x, ax_value by);
ax_value ax_plain_quotient(ax_value x, ax_value by); /* x / by, by any numbers, with the same care */
/* bool scalar: no number of x is infinite or NaN. */
ax_value ax_plain_finite(ax_value x);
ax_value ax_plain_or_nan(ax_value condition, ax_value x); /* x, or NaN everywhere */
ax_value ax_plain_column(ax_value x, ax_value index);     /* T[m, 1] */

/* The reflector h = 1 - tau v v^H that brings a column to a multiple of a unit vector from row `at` on, as LAPACK's larfg: h^H x has beta, a
   real number, there and 0 behind it. v is 0 before row `at`, and 1 in it. */
typedef struct ax_plain_reflector {
  ax_value v, tau, beta; /* T[m, 1], T[1, 1] */
} ax_plain_reflector;
ax_plain_reflector ax_plain_reflect(ax_value column, ax_value at);
/* x's column number `index`, which became the reflector's: what it was before row `at`, then beta and v. */
ax_value ax_plain_stored(ax_value x, ax_value index, ax_value at, const ax_plain_reflector *r);
/* h^H x, and x h. */
ax_value ax_plain_reflected_left(ax_value x, const ax_plain_reflector *r);
ax_value ax_plain_reflected_right(ax_value x, const ax_plain_reflector *r);

#endif
