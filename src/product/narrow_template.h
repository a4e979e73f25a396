/* Included by tile_template.h, for the same kind: a tile of few columns, with the rows of a in lanes.

     a[LANES, LANES] as it lies     transposed: the units of step u are x[u]
     sum[j]                         += x[u] * b[u, j], for each column j
     c[LANES, columns]              the sums, transposed

   The sums are those of the tile: one chain over the steps for each result. So both kernels make the same bits. */

/* Takes LANES units of each of LANES rows, transposed: x[u] has the units of step u. */
static inline __attribute__((always_inline)) void KIND(take_square)(FACTOR *x, const char *from, const int64_t *rows,
                                                                    FACTOR *least) {
  UNROLL for (int l = 0; l < LANES; l++) x[l] = KIND(unit_along)(from + rows[l], LANES * UNIT);
  UNROLL for (int l = 0; l < LANES; l++) *least = KIND(least)(*least, x[l]);
  KIND(turn)(x);
}

/* Takes fewer units, of `numbers` numbers in each row. It is a call, since its code is the same for all numbers of columns. If
   half a square holds all units, two rows share a vector. */
static __attribute__((noinline)) void KIND(take_some)(FACTOR *made, const char *from, const int64_t *rows, int numbers,
                                                      FACTOR *least) {
  FACTOR x[LANES];
  UNROLL for (int l = 0; l < LANES; l++) x[l] = KIND(unit_along)(from + rows[l], numbers);
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

/* Prefetches the ends of later rows. Short rows that touch each other are prefetched whole, line by line. */
static inline void KIND(fetch_ends)(const ax_tile *t, const char *a, const int64_t *rows) {
  const int64_t bytes = t->numbers * NUMBER_BYTES;
  a += t->ahead;
  if (t->a_row == bytes && t->numbers < LANES * UNIT) {
    for (int64_t at = 0; at < LANES * bytes; at += 64) __builtin_prefetch(a + at);
  } else {
    for (int l = 0; l < LANES; l++) __builtin_prefetch(a + rows[l]);
  }
}

#if !NO_NARROW
/* columns is a constant at every call, since this is always inlined. */
static inline __attribute__((always_inline)) void KIND(narrow_of)(const ax_tile *t, const int columns) {
  ax_tile one = *t;
  int64_t rows[LANES];
  for (int l = 0; l < LANES; l++) rows[l] = l * t->a_row;
  for (int64_t left = t->lines; left > 0; left -= LANES) {
    SUM sum[COLUMNS];
    FACTOR x[LANES], least = KIND(none)();
    const char *a = one.a, *b = t->b;
    int64_t numbers = t->numbers;
    one.lines = one.rows = left < LANES ? (int)left : LANES;
    for (int l = one.rows; l < LANES; l++)
      rows[l] = (one.rows - 1) * t->a_row; /* lanes without a row compute the last row once more */
    UNROLL for (int j = 0; j < columns; j++) sum[j] = (SUM){0};
    for (; numbers >= LANES * UNIT; numbers -= LANES * UNIT, a += LANES * UNIT * NUMBER_BYTES) {
      if (t->ahead > 0)
        UNROLL for (int l = 0; l < LANES; l++) __builtin_prefetch(a + rows[l] + t->ahead);
      KIND(take_square)(x, a, rows, &least);
      UNROLL for (int u = 0; u < LANES; u++, b += t->b_step)
        UNROLL for (int j = 0; j < columns; j++) sum[j] = MULTIPLY_ADD(sum[j], x[u], UNITS(broadcast)(b + j * UNIT_BYTES));
    }
    if (numbers > 0) {
      FACTOR some[LANES];
      if (t->ahead > 0) KIND(fetch_ends)(t, a, rows);
      KIND(take_some)(some, a, rows, (int)numbers, &least);
      for (int u = 0; u * UNIT < numbers; u++, b += t->b_step)
        UNROLL for (int j = 0; j < columns; j++) sum[j] = MULTIPLY_ADD(sum[j], some[u], UNITS(broadcast)(b + j * UNIT_BYTES));
    }
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
