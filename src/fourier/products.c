/* Discrete Fourier transforms of any length, made of products with small matrices. A number is two arrays, its parts.

   Of n = n1 n2 elements x[j1 n2 + j2], with w(m, p) = exp(-2 pi i p / m),

     y[k2 n1 + k1] = sum over j2 of  w(n2, j2 k2)  w(n, j2 k1)  sum over j1 of w(n1, j1 k1) x[j1 n2 + j2]

   so that a product with a matrix of n1 by n1, a factor for each element and a transform of length n2 make one of length n
   (Cooley and Tukey). Products put what they make in front, which is where y has k2 and then k1: nothing is moved. A length with a
   large prime factor is a convolution with a chirp, made of transforms of a power of two (Bluestein). */
#include "fourier/products.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "axle/numpy.h"
#include "ir/dtype.h"

typedef struct parts { /* of complex numbers, of one type */
  ax_value re, im;
} parts;

enum {
  LARGEST_MATRIX = 128,   /* by which a prime length is transformed whole */
  PASS = 16,              /* what a pass over all elements costs beside a row of a matrix */
  LARGEST_TABLE = 1 << 16 /* of factors in one constant */
};

/* --- Constants --- */

typedef struct table { /* roots of one, exp(-2 pi i p / n), row by row */
  double *re, *im;
} table;

static bool table_of(int64_t rows, int64_t columns, table *t) {
  t->re = ax_trace_alloc((size_t)(rows * columns) * sizeof(double));
  t->im = ax_trace_alloc((size_t)(rows * columns) * sizeof(double));
  return t->re != NULL && t->im != NULL;
}

void ax_fourier_root(int64_t p, int64_t n, double *re, double *im) {
  const int64_t quarters = 4 * (p % n);
  const long double angle = acosl(0.0L) * (long double)(quarters % n) / (long double)n;
  const double c = quarters % n == 0 ? 1 : (double)cosl(angle), s = (double)sinl(angle);
  switch (quarters / n) {
    case 0: *re = c, *im = -s; break;
    case 1: *re = -s, *im = -c; break;
    case 2: *re = -c, *im = s; break;
    default: *re = s, *im = c;
  }
}

static void put_root(table *t, int64_t at, int64_t power, int64_t n) { ax_fourier_root(power, n, &t->re[at], &t->im[at]); }

static ax_value constant(ax_dtype dtype, uint32_t rank, const int64_t *dims, const double *values) {
  ax_type type = {.form = AX_ARRAY, .dtype = dtype, .rank = rank};
  memcpy(type.dims, dims, rank * sizeof dims[0]);
  const int64_t count = ax_type_elems(&type);
  if (dtype == AX_F64) return (ax_constant)(&type, dtype, values, (size_t)count * sizeof(double));
  float *rounded = ax_trace_alloc((size_t)count * sizeof rounded[0]);
  if (rounded == NULL) return ax_poison;
  for (int64_t i = 0; i < count; i++) rounded[i] = (float)values[i];
  return (ax_constant)(&type, dtype, rounded, (size_t)count * sizeof(float));
}

static parts constants(ax_dtype dtype, uint32_t rank, const int64_t *dims, const table *t) {
  return (parts){constant(dtype, rank, dims, t->re), constant(dtype, rank, dims, t->im)};
}

/* --- Arithmetic --- */

static ax_dtype dtype_of(parts x) { return ax_typeof(x.re).dtype; }
static parts swapped(parts x) { return (parts){x.im, x.re}; }
static parts reshaped(parts x, uint32_t rank, const int64_t *dims) {
  return (parts){(ax_reshape)(x.re, rank, dims), (ax_reshape)(x.im, rank, dims)};
}
static parts multiplied(parts x, parts y) {
  return (parts){ax_sub(ax_mul(x.re, y.re), ax_mul(x.im, y.im)), ax_add(ax_mul(x.re, y.im), ax_mul(x.im, y.re))};
}
static parts scaled(parts x, double factor) { return (parts){ax_mul(x.re, ax_real(factor)), ax_mul(x.im, ax_real(factor))}; }
static parts sliced(parts x, int64_t from, int64_t to, int64_t dimension) {
  return (parts){ax_slice_in_dim(x.re, from, to, 1, dimension), ax_slice_in_dim(x.im, from, to, 1, dimension)};
}
static parts joined(parts x, parts y, int64_t dimension) {
  const ax_value re[] = {x.re, y.re}, im[] = {x.im, y.im};
  return (parts){(ax_concatenate)(2, re, dimension), (ax_concatenate)(2, im, dimension)};
}

/* y[k, a.., s] = the sum over j of m[k, j] x[a, j, s]; x has dimensions a, j and then others. */
static ax_value product(ax_value m, ax_value x) {
  const int64_t one = 1;
  return (ax_dot_general)(m, x, 1, &one, 1, &one, 0, NULL, 0, NULL);
}
static parts product_of_parts(parts m, parts x) {
  return (parts){ax_sub(product(m.re, x.re), product(m.im, x.im)), ax_add(product(m.re, x.im), product(m.im, x.re))};
}

/* --- Transforms along the middle of x[a, n, s], to y[n, a, s] --- */

typedef struct division { /* of the transform of a divisor of n */
  int64_t divisor, first; /* first: the rows of the matrix to begin with; 0: a prime factor is too large */
  double cost;            /* of the whole transform, an element */
} division;

static int by_divisor(const void *x, const void *y) {
  const int64_t a = ((const division *)x)->divisor, b = ((const division *)y)->divisor;
  return a < b ? -1 : a > b;
}

static uint32_t divisors_of(int64_t n, division *out) { /* in order; out NULL: how many */
  uint32_t count = 0;
  for (int64_t d = 1; d <= n / d; d++) {
    if (n % d != 0) continue;
    if (out != NULL) out[count] = (division){.divisor = d};
    if (out != NULL && d != n / d) out[count + 1] = (division){.divisor = n / d};
    count += 1 + (d != n / d);
  }
  if (out != NULL) qsort(out, count, sizeof out[0], by_divisor);
  return count;
}

/* By the matrices of all smaller divisors. */
static void divide(division *of, const division *all) {
  const int64_t n = of->divisor;
  of->first = n <= LARGEST_MATRIX ? n : 0;
  of->cost = n <= LARGEST_MATRIX ? (double)n + PASS : INFINITY;
  for (const division *d = all; d < of && d->divisor <= LARGEST_MATRIX; d++) {
    if (d->divisor == 1 || n % d->divisor != 0) continue;
    const division *rest = bsearch(&(division){.divisor = n / d->divisor}, all, (size_t)(of - all), sizeof all[0], by_divisor);
    const double cost = (double)d->divisor + PASS + rest->cost;
    if (cost < of->cost) of->first = d->divisor, of->cost = cost;
  }
}

/* The rows of the matrix to begin with, n1; 0: n has a prime factor that is too large, or the trace has failed. */
static int64_t first_factor(int64_t n) {
  const uint32_t count = divisors_of(n, NULL);
  division *all = ax_trace_alloc(count * sizeof all[0]);
  if (all == NULL) return 0;
  divisors_of(n, all);
  for (uint32_t i = 0; i < count; i++) divide(&all[i], all);
  return all[count - 1].first;
}

static parts matrix(int64_t n, ax_dtype dtype) {
  const int64_t dims[] = {n, n};
  table t;
  if (!table_of(n, n, &t)) return (parts){ax_poison, ax_poison};
  for (int64_t k = 0; k < n; k++)
    for (int64_t j = 0; j < n; j++) put_root(&t, k * n + j, k * j, n);
  return constants(dtype, 2, dims, &t);
}

/* w(n, k step j) for k below rows, and j below columns, in these dimensions. */
static parts factors(int64_t n, int64_t rows, int64_t step, int64_t columns, const int64_t *dims, ax_dtype dtype) {
  table t;
  if (!table_of(rows, columns, &t)) return (parts){ax_poison, ax_poison};
  for (int64_t k = 0; k < rows; k++)
    for (int64_t j = 0; j < columns; j++) put_root(&t, k * columns + j, k * step % n * j, n);
  return constants(dtype, 5, dims, &t);
}

/* x[k1, a, n2, s] by w(n, k1 j2): by one table, or by two, j2 = q d + r. */
static parts twisted(parts x, int64_t n, int64_t n1, int64_t a, int64_t n2, int64_t s) {
  int64_t d = 1;
  for (int64_t i = 2; n1 * n2 > LARGEST_TABLE && i * i <= n2; i++)
    if (n2 % i == 0) d = i;
  const int64_t dims[] = {n1, a, n2 / d, d, s}, large[] = {n1, 1, n2 / d, 1, 1}, small[] = {n1, 1, 1, d, 1};
  x = multiplied(reshaped(x, 5, dims), factors(n, n1, d, n2 / d, large, dtype_of(x)));
  return d > 1 ? multiplied(x, factors(n, n1, 1, d, small, dtype_of(x))) : x;
}

static parts forward(parts x, int64_t a, int64_t n, int64_t s);

/* y[k] = c[k] sum over j of (x[j] c[j]) conj(c[k - j]), with the chirp c[j] = exp(-pi i j^2 / n): a convolution, round a circle of at
   least 2 n - 1 so that its ends do not meet, by transforms. Those of numbers whose parts change places are the inverse ones, but
   for 1 / m. */
static parts by_chirp(parts x, int64_t a, int64_t n, int64_t s) {
  int64_t m = 1;
  while (m < 2 * n - 1) m *= 2;
  const int64_t middle[] = {1, n, 1}, line[] = {1, m, 1}, all[] = {m, 1, 1}, front[] = {n, 1, 1}, wide[] = {1, m, a * s},
                back[] = {n, a, s};
  const ax_dtype dtype = dtype_of(x);
  table chirp, spread;
  if (!table_of(n, 1, &chirp) || !table_of(m, 1, &spread)) return (parts){ax_poison, ax_poison};
  memset(spread.re, 0, (size_t)m * sizeof(double));
  memset(spread.im, 0, (size_t)m * sizeof(double));
  for (int64_t j = 0; j < n; j++) {
    put_root(&chirp, j, j * j % (2 * n), 2 * n);
    spread.re[j] = spread.re[(m - j) % m] = chirp.re[j];
    spread.im[j] = spread.im[(m - j) % m] = -chirp.im[j];
  }
  const parts kernel = forward(constants(dtype, 3, line, &spread), 1, m, 1);
  const parts turned = multiplied(x, constants(dtype, 3, middle, &chirp));
  const int64_t low[] = {0, 0, 0}, high[] = {0, m - n, 0};
  const parts padded = {(ax_pad)(turned.re, ax_real(0), 3, low, 3, high, 3, low),
                        (ax_pad)(turned.im, ax_real(0), 3, low, 3, high, 3, low)};
  const parts made = multiplied(forward(padded, a, m, s), reshaped(kernel, 3, all));
  const parts again = sliced(swapped(forward(swapped(reshaped(made, 3, wide)), 1, m, a * s)), 0, n, 0);
  return scaled(multiplied(reshaped(again, 3, back), constants(dtype, 3, front, &chirp)), 1 / (double)m);
}

static parts forward(parts x, int64_t a, int64_t n, int64_t s) {
  const int64_t n1 = first_factor(n), dims[] = {n, a, s};
  if (ax_failed()) return x;
  if (n1 == 0) return by_chirp(x, a, n, s);
  const parts m = matrix(n1, dtype_of(x));
  if (n1 == n) return product_of_parts(m, x);
  const int64_t n2 = n / n1, cut[] = {a, n1, n2, s}, next[] = {n1 * a, n2, s};
  const parts once = product_of_parts(m, reshaped(x, 4, cut));
  return reshaped(forward(reshaped(twisted(once, n, n1, a, n2, s), 3, next), n1 * a, n2, s), 3, dims);
}

static parts backward(parts x, int64_t a, int64_t n, int64_t s) { /* with the factor 1 / n */
  return scaled(swapped(forward(swapped(x), a, n, s)), 1 / (double)n);
}

/* --- Along a dimension of any array --- */

typedef struct line { /* x[a, n, s] of an array: the dimension, and the sizes in front of it and behind it */
  ax_type type;
  int64_t axis, a, n, s;
} line;

static line line_of(ax_value x, int64_t axis) {
  line l = {.type = ax_typeof(x), .axis = axis, .a = 1, .s = 1};
  l.n = l.type.dims[axis];
  for (int64_t d = 0; d < (int64_t)l.type.rank; d++) *(d < axis ? &l.a : d > axis ? &l.s : &(int64_t){1}) *= l.type.dims[d];
  return l;
}

static ax_value flat(const line *l, ax_value x) { return (ax_reshape)(x, 3, (int64_t[]){l->a, l->n, l->s}); }

static parts parts_of(const line *l, ax_value x) {
  x = flat(l, x);
  return ax_is_complex(l->type.dtype) ? (parts){ax_real_part(x), ax_imag_part(x)} : (parts){x, ax_full_like(x, 0)};
}

/* y[count, a, s] with the dimension where it was. */
static ax_value placed(const line *l, ax_value y, int64_t count) {
  int64_t dims[AX_MAX_RANK];
  memcpy(dims, l->type.dims, l->type.rank * sizeof dims[0]);
  dims[l->axis] = count;
  return (ax_reshape)(ax_swapaxes(y, 0, 1), l->type.rank, dims);
}

static ax_value complex_result(const line *l, parts y, int64_t count) { return placed(l, ax_complex(y.re, y.im), count); }

/* --- Real numbers. Of an even number of them the even ones are taken as real parts and the odd ones as imaginary parts: half the
   transform. Z is that of z[j] = x[2 j] + i x[2 j + 1]; conj(Z[h - k]) tells the two apart. --- */

/* w(n, k) or its conjugate for k = 0 .. n / 2, [n / 2 + 1, 1, 1]. */
static parts half_roots(int64_t n, bool conjugate, ax_dtype dtype) {
  const int64_t count = n / 2 + 1, dims[] = {count, 1, 1};
  table t;
  if (!table_of(count, 1, &t)) return (parts){ax_poison, ax_poison};
  for (int64_t k = 0; k < count; k++) {
    put_root(&t, k, k, n);
    if (conjugate) t.im[k] = -t.im[k];
  }
  return constants(dtype, 3, dims, &t);
}

static parts mirrored(parts x) { /* x[h - k], conjugate */
  const int64_t front = 0;
  return (parts){(ax_rev)(x.re, 1, &front), ax_neg((ax_rev)(x.im, 1, &front))};
}

/* x[a, pairs, s]: the elements whose place is even, or odd, of 2 pairs. */
static ax_value every_second(const line *l, ax_value x, int64_t which) { return ax_slice_in_dim(x, which, which + l->n - 1, 2, 1); }

static ax_value of_real(const line *l, ax_value x) {
  const int64_t h = l->n / 2;
  if (l->n % 2 != 0) return complex_result(l, sliced(forward(parts_of(l, x), l->a, l->n, l->s), 0, h + 1, 0), h + 1);
  const ax_value whole = flat(l, x);
  const parts half = forward((parts){every_second(l, whole, 0), every_second(l, whole, 1)}, l->a, h, l->s);
  const parts z = joined(half, sliced(half, 0, 1, 0), 0), m = mirrored(z);
  const parts even = {ax_add(z.re, m.re), ax_add(z.im, m.im)}, odd = {ax_sub(z.im, m.im), ax_sub(m.re, z.re)};
  const parts turned = multiplied(odd, half_roots(l->n, false, l->type.dtype));
  return complex_result(l, scaled((parts){ax_add(even.re, turned.re), ax_add(even.im, turned.im)}, 0.5), h + 1);
}

ax_value ax_fourier_own_conjugates(ax_value x, int64_t n, int64_t axis) {
  const ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  const ax_value place = ax_iota(AX_S32, AX_LIST(type.rank, type.dims), axis);
  const ax_value first = ax_eq(place, ax_integer(0));
  return n % 2 == 0 ? ax_or(first, ax_eq(place, ax_integer(n / 2))) : first;
}

/* The numbers x[k, a, s] of a real signal: those that are their own conjugates are real. */
static parts made_real(parts x, int64_t n) {
  return (parts){x.re, ax_where(ax_fourier_own_conjugates(x.im, n, 0), ax_real(0), x.im)};
}

static ax_value back_to_real(const line *l, ax_value x, int64_t n) {
  const int64_t h = n / 2;
  parts given = parts_of(l, x);
  given = made_real((parts){ax_swapaxes(given.re, 0, 1), ax_swapaxes(given.im, 0, 1)}, n);
  const int64_t wide[] = {1, n % 2 == 0 ? h : n, l->a * l->s}, pairs[] = {h, l->a, l->s}, out[] = {n, l->a, l->s};
  const parts m = mirrored(given);
  if (n % 2 != 0) {
    const parts all = h > 0 ? joined(given, sliced(m, 0, h, 0), 0) : given;
    return placed(l, (ax_reshape)(backward(reshaped(all, 3, wide), 1, n, l->a * l->s).re, 3, out), n);
  }
  const parts even = {ax_add(given.re, m.re), ax_add(given.im, m.im)},
              difference = {ax_sub(given.re, m.re), ax_sub(given.im, m.im)};
  const parts odd = multiplied(difference, half_roots(n, true, ax_typeof(given.re).dtype));
  const parts z = scaled((parts){ax_sub(even.re, odd.im), ax_add(even.im, odd.re)}, 0.5);
  const parts made = reshaped(backward(reshaped(sliced(z, 0, h, 0), 3, wide), 1, h, l->a * l->s), 3, pairs);
  const ax_value two[] = {made.re, made.im};
  return placed(l, (ax_reshape)((ax_stack)(2, two, 1), 3, out), n);
}

ax_value ax_fourier_by_products(ax_value x, ax_fourier_kind kind, int64_t n, int64_t axis) {
  if (ax_failed()) return ax_poison;
  const line l = line_of(x, axis);
  switch (kind) {
    case AX_FOURIER_REAL: return of_real(&l, x);
    case AX_FOURIER_REAL_BACK: return back_to_real(&l, x, n);
    case AX_FOURIER_FORWARD: return complex_result(&l, forward(parts_of(&l, x), l.a, l.n, l.s), l.n);
    default: return complex_result(&l, backward(parts_of(&l, x), l.a, l.n, l.s), l.n);
  }
}
