/* Routines on small matrices, row by row, for small.c. Element (i, j) of `lanes` matrices stands side by side, so one instruction does for all
   of them what it would do for one; lanes of 1 are a single matrix. What is done to a matrix, and in which order, is the same in both, and
   so are the bits. A complex number is two vectors, of the real and of the imaginary parts; small_numbers.h computes with numbers of both
   kinds. The includer says:

     NAME(x)      names of these functions
     PART         float or double
     BITS         the integer of its size
     COMPLEX      whether numbers have two parts: 0 or 1
     SIZE_OF, ROOT_OF   of a PART: the absolute value, the square root
     LANES        matrices side by side: 1, or as many as have 64 bytes of parts
     SIDES        where LANES is 1: solve_sides of these numbers in more lanes
     TARGETED     attributes of a function for the processor's registers, or nothing */

#include "linalg/small_numbers.h"

/* x to the square root of x; NaN where there is none. */
TARGETED static inline void NAME(root)(V *x) {
  PART parts[LANES];
  memcpy(parts, x, sizeof parts);
  for (int l = 0; l < LANES; l++) parts[l] = ROOT_OF(parts[l]);
  memcpy(x, parts, sizeof parts);
}

/* Exchanges row k of `numbers`, m rows of them, with row at[l] in lane l; those are `from` and later ones. */
TARGETED static inline void NAME(exchange)(N *numbers, int64_t k, const M *at, int64_t from, int64_t m, int64_t columns) {
  const int64_t n = columns * (int64_t)(sizeof(N) / sizeof(V));
  V *a = (V *)numbers;
#if LANES == 1
  (void)from, (void)m;
  for (int64_t j = 0; *at != k && j < n; j++) {
    const V kept = a[k * n + j];
    a[k * n + j] = a[*at * n + j];
    a[*at * n + j] = kept;
  }
#else
  enum { many = 20 }; /* rows that take longer to look at than to exchange one in each lane */
  PART *const parts = (PART *)a;
  M with[AX_SMALL_ORDER];
  for (int64_t l = 0; m - from > many && l < LANES; l++) {
    const int64_t row = ((const BITS *)at)[l];
    for (int64_t j = 0; row != k && j < n; j++) {
      const PART kept = parts[(k * n + j) * LANES + l];
      parts[(k * n + j) * LANES + l] = parts[(row * n + j) * LANES + l];
      parts[(row * n + j) * LANES + l] = kept;
    }
  }
  if (m - from > many) return;
  for (int64_t i = from; i < m; i++) with[i] = *at == (BITS)i;
  for (int64_t j = 0; j < n; j++) {
    const V kept = a[k * n + j];
    V now = kept;
    for (int64_t i = from; i < m; i++) {
      const V other = a[i * n + j];
      now = CHOSEN(with[i], other, now);
      a[i * n + j] = CHOSEN(with[i], kept, other);
    }
    a[k * n + j] = now;
  }
#endif
}

/* a: x; lu, pivots */
TARGETED static void NAME(lu)(const ax_matrix_call *call, void *const *matrix, void *work) {
  const int64_t m = call->m, n = call->n;
  N *a = matrix[1];
  int32_t *pivots = matrix[2];
  (void)work;
  if (a != matrix[0]) memcpy(a, matrix[0], (size_t)(m * n) * sizeof(N));
  for (int64_t k = 0; k < m && k < n; k++) {
    V best = NAME(size)(a[k * n + k]);
    M at = best != best; /* of integers, all 0 then */
    at = at - at + (BITS)k;
    for (int64_t i = k + 1; i < m; i++) {
      const V size = NAME(size)(a[i * n + k]);
      const M more = size > best;
      best = CHOSEN(more, size, best);
      at = CHOSEN_BITS(more, (BITS)i, at);
    }
    for (int l = 0; l < LANES; l++) pivots[k * LANES + l] = (int32_t)((const BITS *)&at)[l];
    NAME(exchange)(a, k, &at, k + 1, m, n);
    const V none = {0};
    const D pivot = NAME(divisor)(NAME(choose)(NAME(is_zero)(a[k * n + k]), NAME(real)(none + 1), a[k * n + k]));
    for (int64_t i = k + 1; i < m; i++) {
      const N factor = NAME(over)(a[i * n + k], &pivot);
      a[i * n + k] = factor;
      for (int64_t j = k + 1; j < n; j++) a[i * n + j] = NAME(less)(a[i * n + j], factor, a[k * n + j]);
    }
  }
}

/* a: x; l. By columns: what stands to the right of one is what the columns before it have left. */
TARGETED static void NAME(cholesky)(const ax_matrix_call *call, void *const *matrix, void *work) {
  const int64_t n = call->n;
  const N *x = matrix[0];
  const V none = {0};
  N *l = matrix[1], column[AX_SMALL_ORDER], less[AX_SMALL_ORDER];
  M fails = none != none;
  (void)work;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) l[i * n + j] = j <= i ? x[i * n + j] : NAME(real)(none);
  for (int64_t k = 0; k < n; k++) {
    V root = NAME(real_part)(l[k * n + k]);
    fails |= NOT(root > none);
    NAME(root)(&root);
    l[k * n + k] = NAME(real)(root);
    for (int64_t i = k + 1; i < n; i++) {
      l[i * n + k] = column[i] = NAME(over_real)(l[i * n + k], root);
      less[i] = NAME(conjugate)(column[i]);
    }
    for (int64_t i = k + 1; i < n; i++)
      for (int64_t j = k + 1; j <= i; j++) l[i * n + j] = NAME(less)(l[i * n + j], column[i], less[j]);
  }
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j <= i; j++) l[i * n + j] = NAME(choose)(fails, NAME(nan)(), l[i * n + j]);
}

#if LANES == 1
enum { NAME(together) = 8 }; /* rows whose sums do not wait for each other: as many as a processor adds while it waits for one */

/* Rows of op(a) x = b in the order in which they are solved: element (i, j) of the triangle is first[i * down + j * along]. */
typedef struct NAME(ordered) {
  const N *first;
  int64_t down, along;
} NAME(ordered);

INLINED NAME(ordered) NAME(in_order)(const N *a, int64_t order, triangle how) {
  const int64_t down = how.transposed ? 1 : order, along = how.transposed ? order : 1;
  if (how.lower != how.transposed) return (NAME(ordered)){a, down, along};
  return (NAME(ordered)){a + order * order - 1, -down, -along};
}

/* Rows from `at` on of y, which have nothing of the rows before `at` any more: `count` of them, a constant where it is
   `together`. */
INLINED void NAME(solve_diagonal)(NAME(ordered) a, N *y, int64_t at, int64_t count, bool conjugated, bool unit) {
  for (int64_t j = at; j < at + count; j++) {
    const N *column = a.first + j * a.along;
    const D diagonal = NAME(divisor)(NAME(conjugate_if)(column[j * a.down], conjugated));
    if (!unit) y[j] = NAME(over)(y[j], &diagonal);
    for (int64_t i = j + 1; i < at + count; i++) y[i] = NAME(less)(y[i], NAME(conjugate_if)(column[i * a.down], conjugated), y[j]);
  }
}

/* y holds b in the order of the rows. Each row takes off its products in the order of the columns, as solve_left does, but some
   rows at a time, so that their sums stay in registers. */
INLINED void NAME(solve_rows)(NAME(ordered) a, N *y, int64_t order, bool conjugated, bool unit) {
  const int64_t rest = order % NAME(together);
  NAME(solve_diagonal)(a, y, 0, rest, conjugated, unit);
  for (int64_t at = rest; at < order; at += NAME(together)) {
    N sums[NAME(together)];
    const N *row = a.first + at * a.down;
    memcpy(sums, y + at, sizeof sums);
    for (int64_t j = 0; j < at; j++, row += a.along) {
#pragma GCC unroll 8
      for (int r = 0; r < NAME(together); r++) sums[r] = NAME(less)(sums[r], NAME(conjugate_if)(row[r * a.down], conjugated), y[j]);
    }
    memcpy(y + at, sums, sizeof sums);
    NAME(solve_diagonal)(a, y, at, NAME(together), conjugated, unit);
  }
}

/* op(a) x = b for one right side. */
TARGETED static void NAME(solve_side)(const N *a, N *x, int64_t order, triangle how) {
  const bool ascends = how.lower != how.transposed;
  const NAME(ordered) ordered = NAME(in_order)(a, order, how);
  N y[AX_SMALL_ORDER];
  for (int64_t i = 0; i < order; i++) y[i] = x[ascends ? i : order - 1 - i];
  if (COMPLEX && how.conjugated)
    NAME(solve_rows)(ordered, y, order, true, how.unit);
  else
    NAME(solve_rows)(ordered, y, order, false, how.unit);
  for (int64_t i = 0; i < order; i++) x[ascends ? i : order - 1 - i] = y[i];
}
#else
/* A number of one matrix, the same in all lanes; zero is taken off, not added, so that -0 stays. */
INLINED N NAME(in_all)(const PART *x, bool conjugated) {
  const V none = {0};
#if COMPLEX
  return (N){x[0] - none, (conjugated ? -x[1] : x[1]) - none};
#else
  return (void)conjugated, x[0] - none;
#endif
}

/* y, which has a right side in each lane, from or to x, where element i of side s is x[i * down + s * along]. */
INLINED void NAME(move_sides)(N *y, PART *x, int64_t order, int64_t sides, int64_t down, int64_t along, bool ascends, bool back) {
  enum { parts = 1 + COMPLEX };
  for (int64_t i = 0; i < order; i++) {
    PART *lanes = (PART *)&y[i], *row = x + (ascends ? i : order - 1 - i) * down * parts;
    if (along == 1 && parts == 1 && sides == LANES)
      memcpy(back ? row : lanes, back ? lanes : row, sizeof(V));
    else if (back)
      for (int64_t s = 0; s < sides * parts; s++) row[s / parts * along * parts + s % parts] = lanes[s % parts * LANES + s / parts];
    else
      for (int64_t s = 0; s < sides * parts; s++) lanes[s % parts * LANES + s / parts] = row[s / parts * along * parts + s % parts];
  }
}

enum { NAME(rows_together) = 4 };

/* The rows of y from `at` on, `count` of them, a constant, less what those before have to do with them, and solved. */
INLINED void NAME(solve_some)(const PART *first, int64_t down, int64_t along, N *y, int64_t at, int64_t count, bool conjugated,
                              bool unit) {
  N sums[NAME(rows_together)];
  const PART *row = first + at * down;
  for (int64_t r = 0; r < count; r++) sums[r] = y[at + r];
  for (int64_t j = 0; j < at; j++, row += along) {
#pragma GCC unroll 4
    for (int64_t r = 0; r < count; r++) sums[r] = NAME(less)(sums[r], NAME(in_all)(row + r * down, conjugated), y[j]);
  }
#pragma GCC unroll 4
  for (int64_t j = 0; j < count; j++, row += along) {
    const D diagonal = NAME(divisor)(NAME(in_all)(row + j * down, conjugated));
    if (!unit) sums[j] = NAME(over)(sums[j], &diagonal);
    y[at + j] = sums[j];
#pragma GCC unroll 4
    for (int64_t r = j + 1; r < count; r++) sums[r] = NAME(less)(sums[r], NAME(in_all)(row + r * down, conjugated), sums[j]);
  }
}

INLINED void NAME(solve_all)(const PART *first, int64_t down, int64_t along, N *y, int64_t order, bool conjugated, bool unit) {
  const int64_t rest = order % NAME(rows_together);
  for (int64_t i = 0; i < rest; i++) NAME(solve_some)(first, down, along, y, i, 1, conjugated, unit);
  for (int64_t i = rest; i < order; i += NAME(rows_together))
    NAME(solve_some)(first, down, along, y, i, NAME(rows_together), conjugated, unit);
}

/* op(a) x = b of one matrix, with a right side in each lane; element i of side s is x[i * down + s * along]. */
TARGETED static void NAME(solve_sides)(const PART *a, PART *x, int64_t order, int64_t sides, int64_t down, int64_t along,
                                       triangle how) {
  enum { parts = 1 + COMPLEX };
  const bool ascends = how.lower != how.transposed;
  const int64_t to_end = ascends ? parts : -parts, a_down = to_end * (how.transposed ? 1 : order),
                a_along = to_end * (how.transposed ? order : 1);
  const PART *first = ascends ? a : a + (order * order - 1) * parts;
  N y[AX_SMALL_ORDER];
  memset(y, 0, (size_t)order * sizeof y[0]);
  for (int64_t s = 0; s < sides; s += LANES) {
    const int64_t some = sides - s < LANES ? sides - s : LANES;
    PART *own = x + s * along * parts;
    NAME(move_sides)(y, own, order, some, down, along, ascends, false);
    if (COMPLEX && how.conjugated)
      NAME(solve_all)(first, a_down, a_along, y, order, true, how.unit);
    else
      NAME(solve_all)(first, a_down, a_along, y, order, false, how.unit);
    NAME(move_sides)(y, own, order, some, down, along, ascends, true);
  }
}
#endif

/* op(a) x = b, rows by rows; x, order by columns, holds b. `how`: which triangle a is, and what op is. */
TARGETED static inline void NAME(solve_left)(const N *a, N *x, int64_t order, int64_t columns, triangle how) {
  const bool ascends = how.lower != how.transposed;
#if LANES == 1
  if (!order) return; /* no element that could be pointed at */
  if (columns == 1) {
    NAME(solve_side)(a, x, order, how);
    return;
  }
  if (!COMPLEX || (order >= least_beside && columns <= MANY)) {
    SIDES((const PART *)a, (PART *)x, order, columns, columns, 1, how);
    return;
  }
#endif
  for (int64_t count = 0; count < order; count++) {
    const int64_t i = ascends ? count : order - 1 - count;
    const D diagonal = NAME(divisor)(NAME(conjugate_if)(a[i * order + i], how.conjugated));
    if (!how.unit)
      for (int64_t j = 0; j < columns; j++) x[i * columns + j] = NAME(over)(x[i * columns + j], &diagonal);
    for (int64_t left = count + 1; left < order; left++) {
      const int64_t row = ascends ? left : order - 1 - left;
      const N factor = NAME(conjugate_if)(how.transposed ? a[i * order + row] : a[row * order + i], how.conjugated);
      for (int64_t j = 0; j < columns; j++) x[row * columns + j] = NAME(less)(x[row * columns + j], factor, x[i * columns + j]);
    }
  }
}

/* x op(a) = b; x, rows by order, holds b. All rows at each step, since the steps of one wait for each other. */
TARGETED static inline void NAME(solve_right)(const N *a, N *x, int64_t order, int64_t rows, triangle how) {
  const bool ascends = how.lower == how.transposed;
#if LANES == 1
  if (!order) return;
  if (!COMPLEX && rows > 1) { /* the systems of op(a)'s transpose */
    SIDES((const PART *)a, (PART *)x, order, rows, 1, order, (triangle){how.lower, !how.transposed, how.conjugated, how.unit});
    return;
  }
#endif
  N factors[AX_SMALL_ORDER];
  for (int64_t count = 0; count < order; count++) {
    const int64_t i = ascends ? count : order - 1 - count, first = ascends ? i + 1 : 0, end = ascends ? order : i;
    const D diagonal = NAME(divisor)(NAME(conjugate_if)(a[i * order + i], how.conjugated));
    for (int64_t j = first; j < end; j++)
      factors[j] = NAME(conjugate_if)(how.transposed ? a[j * order + i] : a[i * order + j], how.conjugated);
    for (int64_t row = 0; row < rows; row++) {
      N *y = x + row * order;
      if (!how.unit) y[i] = NAME(over)(y[i], &diagonal);
      const N solved = y[i];
      for (int64_t j = first; j < end; j++) y[j] = NAME(less)(y[j], solved, factors[j]);
    }
  }
}

/* a, b; x */
TARGETED static void NAME(triangular_solve)(const ax_matrix_call *call, void *const *matrix, void *work) {
  const triangle how = {call->lower, call->transposed, call->conjugated, call->unit};
  (void)work;
  if (matrix[2] != matrix[1]) memcpy(matrix[2], matrix[1], (size_t)(call->m * call->n) * sizeof(N));
  if (call->left) NAME(solve_left)(matrix[0], matrix[2], call->m, call->n, how);
  else NAME(solve_right)(matrix[0], matrix[2], call->n, call->m, how);
}

TARGETED static inline void NAME(exchange_by)(const ax_matrix_call *call, N *x, const int32_t *pivots, int64_t row) {
  M at;
  for (int l = 0; l < LANES; l++) ((BITS *)&at)[l] = existing_row(pivots[row * LANES + l], call->m);
  NAME(exchange)(x, row, &at, 0, call->m, call->n);
}

/* a, lu, pivots, b; x */
TARGETED static void NAME(linear_solve)(const ax_matrix_call *call, void *const *matrix, void *work) {
  const int64_t m = call->m, n = call->n;
  const int32_t *pivots = matrix[2];
  N *x = matrix[4];
  (void)work;
  if (x != matrix[3]) memcpy(x, matrix[3], (size_t)(m * n) * sizeof(N));
  for (int64_t i = 0; i < m && !call->transposed; i++) NAME(exchange_by)(call, x, pivots, i);
  NAME(solve_left)(matrix[1], x, m, n, (triangle){.lower = !call->transposed, .transposed = call->transposed, .unit = !call->transposed});
  NAME(solve_left)(matrix[1], x, m, n, (triangle){.lower = call->transposed, .transposed = call->transposed, .unit = call->transposed});
  for (int64_t i = m - 1; i >= 0 && call->transposed; i--) NAME(exchange_by)(call, x, pivots, i);
}

/* Row k of a and the rows below it less tau times v times the products of them with v's conjugate, from column `from` on; v is 1 in row k, and
   column k below it. */
TARGETED static inline void NAME(reflect)(N *a, int64_t k, int64_t from, int64_t m, int64_t n, N tau) {
  N products[AX_SMALL_ORDER];
  for (int64_t j = from; j < n; j++) products[j] = a[k * n + j];
  for (int64_t i = k + 1; i < m; i++) {
    const N v = NAME(conjugate)(a[i * n + k]);
    for (int64_t j = from; j < n; j++) products[j] = NAME(plus)(products[j], NAME(times)(v, a[i * n + j]));
  }
  for (int64_t j = from; j < n; j++) {
    products[j] = NAME(times)(products[j], tau);
    a[k * n + j] = NAME(minus)(a[k * n + j], products[j]);
  }
  for (int64_t i = k + 1; i < m; i++)
    for (int64_t j = from; j < n; j++) a[i * n + j] = NAME(less)(a[i * n + j], a[i * n + k], products[j]);
}

/* The reflector whose adjoint leaves of column k, from row k on, its first element alone, a real number. The column is multiplied by a power
   of two first, after which its largest part is at least 1/2 and less than 4: then no square that counts is too large or too small. */
TARGETED static inline void NAME(reflector)(N *a, int64_t k, int64_t m, int64_t n, N *tau) {
  enum { digits = sizeof(PART) == 4 ? 23 : 52, largest = (1 << (8 * sizeof(PART) - 1 - digits)) - 4 }; /* exponents, so that both powers are numbers */
  const BITS one_power = (BITS)1 << digits, most = largest * one_power;
  const V none = {0};
  M top = BITS_OF(none), tail = BITS_OF(NAME(imaginary_size)(a[k * n + k]));
  V sum = none;
  for (int64_t i = k; i < m; i++) {
    const M power = BITS_OF(NAME(largest_part)(a[i * n + k])) / one_power * one_power;
    top = CHOSEN_BITS(power > top, power, top);
  }
  top = CHOSEN_BITS(top > most, BITS_OF(none) + most, top);
  const V scale = OF_BITS(most + one_power - top), back = OF_BITS(top + one_power);
  const N alpha = NAME(times_real)(a[k * n + k], scale);
  for (int64_t i = k + 1; i < m; i++) {
    tail |= BITS_OF(NAME(largest_part)(a[i * n + k]));
    a[i * n + k] = NAME(times_real)(a[i * n + k], scale);
    sum += NAME(square)(a[i * n + k]);
  }
  V norm = NAME(square)(alpha) + sum;
  NAME(root)(&norm);
  const M stays = (tail == 0) | (norm == none); /* also where all are subnormal, and these count as zero */
  const V beta = CHOSEN(BITS_OF(NAME(real_part)(alpha)) < 0, norm, -norm);
  const D divisor = NAME(divisor)(NAME(choose)(stays, NAME(real)(none + 1), NAME(minus)(alpha, NAME(real)(beta))));
  const N zero = NAME(real)(none);
  *tau = NAME(choose)(stays, zero, NAME(over_real)(NAME(minus)(NAME(real)(beta), alpha), beta));
  a[k * n + k] = NAME(choose)(stays, a[k * n + k], NAME(real)(beta * back));
  for (int64_t i = k + 1; i < m; i++) a[i * n + k] = NAME(choose)(stays, zero, NAME(over)(a[i * n + k], &divisor));
}

TARGETED static inline void NAME(factor)(N *a, int64_t m, int64_t n, N *taus) {
  for (int64_t k = 0; k < m && k < n; k++) {
    NAME(reflector)(a, k, m, n, &taus[k]);
    NAME(reflect)(a, k, k + 1, m, n, NAME(conjugate)(taus[k]));
  }
}

/* a's first k columns have reflectors below the diagonal; it becomes the product of them. */
TARGETED static inline void NAME(multiply)(N *a, int64_t m, int64_t n, int64_t reflectors, const N *taus) {
  const V none = {0};
  const N zero = NAME(real)(none), one = NAME(real)(none + 1);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = reflectors; j < n; j++) a[i * n + j] = i == j ? one : zero;
  for (int64_t k = reflectors - 1; k >= 0; k--) {
    const N less = NAME(negative)(taus[k]);
    NAME(reflect)(a, k, k + 1, m, n, taus[k]);
    for (int64_t i = 0; i < k; i++) a[i * n + k] = zero;
    a[k * n + k] = NAME(minus)(one, taus[k]);
    for (int64_t i = k + 1; i < m; i++) a[i * n + k] = NAME(times)(a[i * n + k], less);
  }
}

/* x; form, taus */
TARGETED static void NAME(geqrf)(const ax_matrix_call *call, void *const *matrix, void *work) {
  (void)work;
  if (matrix[1] != matrix[0]) memcpy(matrix[1], matrix[0], (size_t)(call->m * call->n) * sizeof(N));
  NAME(factor)(matrix[1], call->m, call->n, matrix[2]);
}

/* form, taus; q */
TARGETED static void NAME(householder_product)(const ax_matrix_call *call, void *const *matrix, void *work) {
  (void)work;
  if (matrix[2] != matrix[0]) memcpy(matrix[2], matrix[0], (size_t)(call->m * call->n) * sizeof(N));
  NAME(multiply)(matrix[2], call->m, call->n, call->k, matrix[1]);
}

/* x; q, m by columns, r, columns by n. The form is as large as r or as q: columns are m or n. */
TARGETED static void NAME(qr)(const ax_matrix_call *call, void *const *matrix, void *work) {
  const int64_t m = call->m, n = call->n, columns = call->columns;
  N *q = matrix[1], *r = matrix[2], *form = columns == n ? q : r, taus[AX_SMALL_ORDER];
  const V none = {0};
  const N zero = NAME(real)(none);
  (void)work;
  memcpy(form, matrix[0], (size_t)(m * n) * sizeof(N));
  NAME(factor)(form, m, n, taus);
  for (int64_t i = 0; i < m && form == r; i++)
    for (int64_t j = 0; j < columns; j++) q[i * columns + j] = j < n ? r[i * n + j] : zero;
  for (int64_t i = 0; i < columns; i++)
    for (int64_t j = 0; j < n; j++) r[i * n + j] = j < i ? zero : form[i * n + j];
  NAME(multiply)(q, m, columns, call->k, taus);
}

#undef V
#undef M
#undef N
#undef D
#undef CHOSEN
#undef CHOSEN_BITS
#undef NOT
#undef BITS_OF
#undef OF_BITS
#undef SIZE
#undef ROUNDED
#undef NAME
#undef LANES
#undef SIDES
#undef TARGETED
#undef INLINED
