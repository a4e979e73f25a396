/* Included by tile_template.h, and of the same kind: a tile of few columns, with the rows of a in lanes.

     a[LANES, LANES] as it lies, turned: step u is x[u]      sum[j] += x[u] * b[u, j] for each column j      c[LANES, columns]: the sums, turned

   The sums are the tile's: one chain over the steps for each result. So which of the two makes a result shows in time alone. */

/* The units of `rows` rows from `from` on, `numbers` of each: those of step u are in x[u]. */
static inline __attribute__((always_inline)) void KIND(take_square)(FACTOR *x, const char *from, int64_t row, int rows, int numbers, FACTOR *least) {
  if (rows == LANES) {
    UNROLL for (int l = 0; l < LANES; l++) x[l] = KIND(unit_along)(from + l * row, numbers);
  } else {
    UNROLL for (int l = 0; l < LANES; l++) x[l] = l < rows ? KIND(unit_along)(from + l * row, numbers) : (FACTOR){0};
  }
  UNROLL for (int l = 0; l < LANES; l++) *least = KIND(least)(*least, x[l]);
  KIND(turn)(x);
}

static inline __attribute__((always_inline)) void KIND(put_columns)(const ax_tile *t, SUM *sum, const int columns) {
  FACTOR x[LANES];
  if (columns == 1 && t->c_row == RESULT_BYTES) {
    if (t->add) sum[0] += t->rows == LANES ? RESULTS(load)(t->c) : RESULTS(load_some)(t->c, t->rows);
    if (t->rows == LANES) RESULTS(store)(t->c, sum[0]);
    else RESULTS(store_some)(t->c, sum[0], t->rows);
    return;
  }
  UNROLL for (int l = 0; l < LANES; l++) x[l] = l < columns ? (FACTOR)sum[l] : (FACTOR){0};
  KIND(turn)(x);
  char *c = t->c;
  UNROLL for (int l = 0; l < LANES; l++, c += t->c_row) {
    SUM row = (SUM)x[l];
    if (l == t->rows) break;
    if (t->add) row += RESULTS(load_some)(c, columns);
    RESULTS(store_some)(c, row, columns);
  }
}

/* columns is a constant wherever this is inlined. */
static inline __attribute__((always_inline)) void KIND(narrow_of)(const ax_tile *t, const int columns) {
  SUM sum[COLUMNS];
  FACTOR x[LANES], least = KIND(none)();
  const char *a = t->a, *b = t->b;
  int64_t steps = t->steps;
  UNROLL for (int j = 0; j < columns; j++) sum[j] = (SUM){0};
  for (; steps > LANES; steps -= LANES, a += LANES * UNIT * NUMBER_BYTES) {
    KIND(take_square)(x, a, t->a_row, t->rows, LANES * UNIT, &least);
    UNROLL for (int u = 0; u < LANES; u++, b += t->b_step)
      UNROLL for (int j = 0; j < columns; j++) sum[j] = MULTIPLY_ADD(sum[j], x[u], UNITS(broadcast)(b + j * UNIT_BYTES));
  }
  KIND(take_square)(x, a, t->a_row, t->rows, (int)(t->numbers - (t->steps - steps) * UNIT), &least);
  UNROLL for (int u = 0; u < LANES; u++, b += t->b_step) {
    if (u == steps) break;
    UNROLL for (int j = 0; j < columns; j++) sum[j] = MULTIPLY_ADD(sum[j], x[u], UNITS(broadcast)(b + j * UNIT_BYTES));
  }
#if CAREFUL
  if (t->b_least + KIND(exponent)(least) < careful_below) {
    CAREFUL_KIND(narrow)(t);
    return;
  }
#endif
  KIND(put_columns)(t, sum, columns);
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
