/* Included by tile_template.h, for the same kind: a tile of few columns, with the rows of a in lanes.

     a[LANES, LANES] as it lies     transposed: the units of step u are x[u]
     sum[j]                         += x[u] * b[u, j], for each column j
     c[LANES, columns]              the sums, transposed

   The sums are those of the tile: one chain over the steps for each result. So both kernels make the same bits.

   Squares are read across the rows, and the processor's own prefetching follows lines in the order in which they lie. So the
   rows to come are prefetched in that order, as many bytes with each step as it multiplies: the buffers of a first cache for
   lines under way never overflow, and arithmetic goes on meanwhile. [m,k] by [k,4] of f32 was read so at 25 to 31 GB/s for k
   of 32 to 320 on one core of a Zen 4, where a plain sum reads 31; with lines prefetched square by square at 14 for k = 32, and at
   9 to 11 from 64 on. */

/* Takes LANES units of each of LANES rows, transposed: x[u] has the units of step u. */
static inline __attribute__((always_inline)) void KIND(take_square)(FACTOR *x, const char *from, int64_t row, FACTOR *least) {
  UNROLL for (int l = 0; l < LANES; l++, from += row) x[l] = KIND(shifted)(KIND(unit_along)(from, LANES * UNIT), SHIFTED);
  UNROLL for (int l = 0; l < LANES; l++) *least = KIND(least)(*least, x[l]);
  KIND(turn)(x);
}

/* Takes fewer units, of `numbers` numbers in each row. It is a call, since its code is the same for all numbers of columns. If
   half a square holds all units, two rows share a vector. */
static __attribute__((noinline)) void KIND(take_some)(FACTOR *made, const char *from, const int64_t *rows, int numbers,
                                                      FACTOR *least) {
  FACTOR x[LANES];
  UNROLL for (int l = 0; l < LANES; l++) x[l] = KIND(shifted)(KIND(unit_along)(from + rows[l], numbers), SHIFTED);
  UNROLL for (int l = 0; l < LANES; l++) *least = KIND(least)(*least, x[l]);
#if LANES == 16
  if (numbers <= 8 * UNIT) {
    UNROLL for (int l = 0; l < 8; l++) x[l] = LOWER(x[l], x[l + 8]);
    KIND(turn_within)(x, 8);
    UNROLL for (int l = 0; l < 4; l++) made[l] = EVEN_PAIR(x[l], x[l + 4]);
    UNROLL for (int l = 0; l < 4; l++) made[l + 4] = ODD_PAIR(x[l], x[l + 4]);
    return;
  }
#endif
  KIND(turn)(x);
  UNROLL for (int l = 0; l < LANES; l++) made[l] = x[l];
}

/* Pairs of sums that lie side by side. */
#if LANES == 16
static inline void KIND(put_pairs)(char *c, const SUM *sum, bool add) {
  const SUM first = __builtin_shufflevector(sum[0], sum[1], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const SUM second = __builtin_shufflevector(sum[0], sum[1], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  RESULTS(store)(c, add ? first + RESULTS(load)(c) : first);
  RESULTS(store)(c + sizeof(SUM), add ? second + RESULTS(load)(c + sizeof(SUM)) : second);
}
#endif

/* As many of them as 16 bytes hold. */
#if LANES == 16
static inline void KIND(put_squares)(char *c, const SUM *sum, bool add) {
  FACTOR x[EACH];
  UNROLL for (int j = 0; j < EACH; j++) x[j] = (FACTOR)sum[j];
  KIND(turn_within)(x, EACH);
  KIND(turn_squares)(x, 1);
  UNROLL for (int j = 0; j < EACH; j++, c += sizeof(SUM)) RESULTS(store)(c, add ? (SUM)x[j] + RESULTS(load)(c) : (SUM)x[j]);
}
#endif

/* It is a call, since its code is the same for all numbers of columns: sums go through memory once for each LANES rows. */
static __attribute__((noinline)) void KIND(put_columns)(const ax_tile *t, const SUM *sum) {
  FACTOR x[LANES];
  const int columns = t->columns;
  if (t->turned) {
    char *to = t->c;
    for (int j = 0; j < columns; j++, to += t->c_row) {
      SUM row = sum[j];
      if (t->add) row += RESULTS(load_some)(to, t->rows);
      RESULTS(store_some)(to, row, t->rows);
    }
    return;
  }
  if (columns == 1 && t->c_row == RESULT_BYTES) {
    SUM all = sum[0];
    if (t->add) all += t->rows == LANES ? RESULTS(load)(t->c) : RESULTS(load_some)(t->c, t->rows);
    if (t->rows == LANES) RESULTS(store)(t->c, all);
    else RESULTS(store_some)(t->c, all, t->rows);
    return;
  }
#if LANES == 16
  if (columns == 2 && t->rows == LANES && t->c_row == 2 * RESULT_BYTES) {
    KIND(put_pairs)(t->c, sum, t->add);
    return;
  }
  if (columns == EACH && t->rows == LANES && t->c_row == EACH * RESULT_BYTES) {
    KIND(put_squares)(t->c, sum, t->add);
    return;
  }
#endif
  UNROLL for (int l = 0; l < LANES; l++) x[l] = l < columns ? (FACTOR)sum[l] : (FACTOR){0};
  KIND(turn)(x);
  char *c = t->c;
  /* Rows that touch each other: a whole vector is stored, and the next rows overwrite its surplus. */
  const int whole = t->c_row == columns * RESULT_BYTES && t->rows == LANES && !t->add ? LANES * (columns - 1) : -1;
  UNROLL for (int l = 0; l < LANES; l++, c += t->c_row) {
    SUM row = (SUM)x[l];
    if (l == t->rows) break;
    if (l * columns <= whole) {
      RESULTS(store)(c, row);
      continue;
    }
    if (t->add) row += RESULTS(load_some)(c, columns);
    RESULTS(store_some)(c, row, columns);
  }
}

/* Bytes of LANES rows that one step multiplies. */
#define STEP_BYTES (LANES * UNIT * NUMBER_BYTES)

/* Lines of the rows to come, one after the other. */
typedef struct KIND(coming) {
  const char *run; /* the next line is `at` bytes into it */
  int64_t at, left; /* left: bytes, of the lines that these rows prefetch in all */
} KIND(coming);

/* Prefetches as much as LANES rows have for one step, and again what is due soon: without that, one column takes up to 1.4 times
   as long. Where rows are so long that those to come do not fit in the first cache, they come into the second at first. */
static inline __attribute__((always_inline)) void KIND(fetch_step)(const ax_tile *t, KIND(coming) *c) {
  const char *line = c->run + c->at;
  if (STEP_BYTES < 64 && c->at % 64 != 0) {
    /* it is prefetched already */
  } else if (t->second) {
    __builtin_prefetch(line, 0, 2);
    if (t->again > 0) __builtin_prefetch(line - t->again);
  } else {
    __builtin_prefetch(line);
    __builtin_prefetch(line - t->again, 0, 2);
  }
  c->at += STEP_BYTES;
  c->left -= STEP_BYTES;
  if (c->at < t->run) return;
  c->at = 0;
  c->run += t->a_row;
}

#if !NO_NARROW
/* What the sums of the columns begin with. */
static inline void KIND(begin_columns)(const ax_tile *t, SUM *begin, const int columns) {
#if SHIFTED
  SUM even = {0}, odd = {0}; /* two chains */
  const char *b = t->b;
  int64_t steps = (t->numbers + UNIT - 1) / UNIT;
  for (; steps > 1; steps -= 2, b += 2 * t->b_step) {
    even = KIND(add_excess)(even, UNITS(load)(b));
    odd = KIND(add_excess)(odd, UNITS(load)(b + t->b_step));
  }
  if (steps > 0) even = KIND(add_excess)(even, UNITS(load)(b));
  even += odd;
  for (int j = 0; j < columns; j++) begin[j] = (SUM){0} - even[j];
#else
  (void)t;
  for (int j = 0; j < columns; j++) begin[j] = (SUM){0};
#endif
}

/* columns is a constant at every call, since this is always inlined. */
static inline __attribute__((always_inline)) void KIND(narrow_of)(const ax_tile *t, const int columns) {
  ax_tile one = *t;
  int64_t rows[LANES];
  SUM begin[COLUMNS];
  KIND(begin_columns)(t, begin, columns);
  for (int l = 0; l < LANES; l++) rows[l] = l * t->a_row;
  for (int64_t left = t->lines; left > 0; left -= LANES) {
    SUM sum[COLUMNS];
    FACTOR x[LANES], least = KIND(none)();
    const char *a = one.a, *b = t->b;
    int64_t numbers = t->numbers;
    one.lines = one.rows = left < LANES ? (int)left : LANES;
    for (int l = one.rows; l < LANES; l++)
      rows[l] = (one.rows - 1) * t->a_row; /* lanes without a row compute the last row once more */
    UNROLL for (int j = 0; j < columns; j++) sum[j] = SHIFTED ? begin[j] : (SUM){0};
    KIND(coming) coming = {a + t->ahead, 0, t->fetched};
    for (; numbers >= LANES * UNIT; numbers -= LANES * UNIT, a += LANES * UNIT * NUMBER_BYTES) {
      if (one.rows == LANES) KIND(take_square)(x, a, t->a_row, &least);
      else KIND(take_some)(x, a, rows, LANES * UNIT, &least);
      UNROLL for (int u = 0; u < LANES; u++, b += t->b_step) {
        if (t->ahead > 0) KIND(fetch_step)(t, &coming);
        UNROLL for (int j = 0; j < columns; j++) sum[j] = MULTIPLY_ADD(sum[j], x[u], UNITS(broadcast)(b + j * UNIT_BYTES));
      }
    }
    if (numbers > 0) {
      FACTOR some[LANES];
      KIND(take_some)(some, a, rows, (int)numbers, &least);
      for (int u = 0; u * UNIT < numbers; u++, b += t->b_step) {
        if (t->ahead > 0) KIND(fetch_step)(t, &coming);
        UNROLL for (int j = 0; j < columns; j++) sum[j] = MULTIPLY_ADD(sum[j], some[u], UNITS(broadcast)(b + j * UNIT_BYTES));
      }
    }
    while (coming.left > 0) KIND(fetch_step)(t, &coming);
#if CAREFUL
    if (t->b_least + KIND(exponent)(least) < careful_below) CAREFUL_KIND(narrow)(&one);
    else KIND(put_columns)(&one, sum);
#else
    KIND(put_columns)(&one, sum);
#endif
    one.a += LANES * t->a_row;
    one.c += LANES * (t->turned ? RESULT_BYTES : t->c_row);
  }
}

static void KIND(narrow)(const ax_tile *t) {
  switch (t->columns) {
    case 1: KIND(narrow_of)(t, 1); break;
#if COLUMNS > 1
    case 2: KIND(narrow_of)(t, 2); break;
#endif
#if COLUMNS > 2
    case 3: KIND(narrow_of)(t, 3); break;
    case 4: KIND(narrow_of)(t, 4); break;
#endif
#if COLUMNS > 4
    case 5: KIND(narrow_of)(t, 5); break;
    case 6: KIND(narrow_of)(t, 6); break;
    case 7: KIND(narrow_of)(t, 7); break;
    case 8: KIND(narrow_of)(t, 8); break;
    case 9: KIND(narrow_of)(t, 9); break;
    case 10: KIND(narrow_of)(t, 10); break;
    case 11: KIND(narrow_of)(t, 11); break;
    case 12: KIND(narrow_of)(t, 12); break;
#endif
  }
}
#endif
