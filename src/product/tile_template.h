/* Included once for each kind of unit and width of register. It defines the kernels of kernels.h as functions KIND(tile) and so on.
   The including file defines:

     KIND(name)            name with the prefix of the kind
     LANES, ROWS           results in a vector; rows of a tile (4, 6 or 14, no more than 2 LANES)
     UNIT                  numbers in a unit
     SOME                  1: UNITS(load_some) costs no more than a load
     FACTOR, SUM           vectors of units; of results
     NUMBER_BYTES          bytes of a number in memory
     UNITS(name)           with the prefix of load, load_some and broadcast of units
     RESULTS(name)         with the prefix of load, load_some, store and store_some of results
     MULTIPLY_ADD(sum, a, b)
     KIND(unit_along)(from, count)                   units of one line, with `count` numbers in all
     KIND(unit_across)(from, number, count, lanes)   units of `lanes` lines that lie side by side, with `count` numbers `number`
                           bytes apart; for units of one number it is defined here
     CAREFUL               1: tiles do not take some numbers, which CAREFUL_KIND(name) takes. Then KIND(least)(least, units) notes
                           exponents, KIND(exponent)(least) is the least of all, and KIND(none) is the value to begin with
     SHIFTED               1: MULTIPLY_ADD takes left numbers that are 128 off, with their highest bit turned over; see kernels.h
     ROUND                 a function that rounds results to the factors' dtype (kernels.h: round); not defined: none
     NO_TILE, NO_NARROW    1: tiles and their lines, or narrow tiles, are not defined, since the including file has its own. Both leave out the
                           record of the kernels

   KIND(unit_along) and KIND(unit_across) give 0 for missing lanes and numbers. */
#ifndef SHIFTED
#define SHIFTED 0
#endif
#if !CAREFUL
static inline FACTOR KIND(none)(void) { return (FACTOR){0}; }
static inline FACTOR KIND(least)(FACTOR least, FACTOR units) {
  (void)units;
  return least;
}
static inline int KIND(exponent)(FACTOR least) {
  (void)least;
  return no_exponent;
}
#endif
#if SHIFTED
static inline FACTOR KIND(shifted)(FACTOR units, bool shifts) { return shifts ? units ^ ((FACTOR){0} + 0x80808080u) : units; }
#else
static inline FACTOR KIND(shifted)(FACTOR units, bool shifts) {
  (void)shifts;
  return units;
}
#endif
#if UNIT == 1
static inline FACTOR KIND(unit_across)(const char *from, int64_t number, int count, int lanes) {
  (void)number, (void)count;
  return KIND(unit_along)(from, lanes);
}
#endif
#if ROWS > 2 * LANES
#error "a tile's rows are packed as one panel"
#endif
#define COLUMNS                 \
  (NUMBER_BYTES * UNIT < 4 ? 1  \
   : LANES == 16           ? 12 \
                           : LANES / 2) /* columns of a narrow tile; for widened numbers other tiles are mostly faster */
#define UNIT_BYTES ((int64_t)sizeof(FACTOR) / LANES)
#define RESULT_BYTES ((int64_t)sizeof(SUM) / LANES)
#define VECTOR_BYTES ((int64_t)sizeof(FACTOR))
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#if SHIFTED
/* Adds the products of units of b with shifted zeros: by these the sums of shifted rows are too large. */
static inline SUM KIND(add_excess)(SUM excess, FACTOR units) {
  return MULTIPLY_ADD(excess, KIND(shifted)((FACTOR){0}, true), units);
}
#else
static inline SUM KIND(add_excess)(SUM excess, FACTOR units) {
  (void)units;
  return excess;
}
#endif

#if !NO_TILE
/* rows, vectors and stand are constants at every call, since this is always inlined: all loops over them are unrolled, and sums
   stay in registers. The distances in packed factors are constants too. */
static inline __attribute__((always_inline)) void KIND(tile_of)(const ax_tile *t, const int rows, const int vectors,
                                                                const ax_standing stand) {
  SUM sum[ROWS][2];
  const char *a = t->a, *b = t->b;
  const int64_t a_row = stand == AX_IN_LINES ? PACKED_LINE(UNIT_BYTES) : stand == AX_IN_PANEL ? UNIT_BYTES : t->a_row;
  const int64_t a_step = stand == AX_IN_LINES   ? UNIT_BYTES
                         : stand == AX_IN_PANEL ? (rows > LANES ? 2 : 1) * VECTOR_BYTES
                                                : t->a_step;
  const int64_t b_step = stand == AX_ANYHOW ? t->b_step : vectors * VECTOR_BYTES, c_row = t->c_row;
  const bool whole = !SOME || stand != AX_ANYHOW; /* vectors of b can be loaded */
  const int some = t->columns - (vectors - 1) * LANES;
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++) sum[i][j] = (SUM){0};
  if (t->resumes)
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++) sum[i][j] =
        RESULTS(load)(t->held + (2 * i + j) * (int64_t)sizeof(SUM));
  if (t->fetch)
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++)
        __builtin_prefetch(t->c + i * c_row + j * (int64_t)sizeof(SUM), 1);
  for (int64_t step = t->steps; step > 0; step--) {
    FACTOR right[2];
    UNROLL for (int j = 0; j < vectors; j++)
      right[j] = !whole && j == vectors - 1 ? UNITS(load_some)(b + j * VECTOR_BYTES, some) : UNITS(load)(b + j * VECTOR_BYTES);
    UNROLL for (int i = 0; i < rows; i++) {
      FACTOR left = UNITS(broadcast)(a + i * a_row);
      UNROLL for (int j = 0; j < vectors; j++) sum[i][j] = MULTIPLY_ADD(sum[i][j], left, right[j]);
    }
    a += a_step;
    b += b_step;
  }
#if SHIFTED
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++) sum[i][j] -= RESULTS(load)(b + j * VECTOR_BYTES);
#endif
  if (t->pauses) {
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++)
        RESULTS(store)(t->held + (2 * i + j) * (int64_t)sizeof(SUM), sum[i][j]);
    return;
  }
  char *c = t->c;
  if (t->add && some == LANES) {
    const char *old = c;
    UNROLL for (int i = 0; i < rows; i++, old += c_row) UNROLL for (int j = 0; j < vectors; j++) sum[i][j] +=
        RESULTS(load)(old + j * (int64_t)sizeof(SUM));
  } else if (t->add) {
    const char *old = c;
    UNROLL for (int i = 0; i < rows; i++, old += c_row) UNROLL for (int j = 0; j < vectors; j++) {
      const char *from = old + j * (int64_t)sizeof(SUM);
      sum[i][j] += j == vectors - 1 ? RESULTS(load_some)(from, some) : RESULTS(load)(from);
    }
  }
  if (some < LANES) {
    UNROLL for (int i = 0; i < rows; i++, c += c_row) UNROLL for (int j = 0; j < vectors; j++) {
      char *to = c + j * (int64_t)sizeof(SUM);
      if (j == vectors - 1) RESULTS(store_some)(to, sum[i][j], some);
      else RESULTS(store)(to, sum[i][j]);
    }
  } else {
    UNROLL for (int i = 0; i < rows; i++, c += c_row) UNROLL for (int j = 0; j < vectors; j++)
      RESULTS(store)(c + j * (int64_t)sizeof(SUM), sum[i][j]);
  }
}

static void KIND(tile_narrow)(const ax_tile *t) {
  switch (t->rows) {
    case 1: KIND(tile_of)(t, 1, 1, AX_ANYHOW); break;
    case 2: KIND(tile_of)(t, 2, 1, AX_ANYHOW); break;
    case 3: KIND(tile_of)(t, 3, 1, AX_ANYHOW); break;
    case 4: KIND(tile_of)(t, 4, 1, AX_ANYHOW); break;
#if ROWS > 4
    case 5: KIND(tile_of)(t, 5, 1, AX_ANYHOW); break;
    case 6: KIND(tile_of)(t, 6, 1, AX_ANYHOW); break;
#endif
#if ROWS > 6
    case 7: KIND(tile_of)(t, 7, 1, AX_ANYHOW); break;
    case 8: KIND(tile_of)(t, 8, 1, AX_ANYHOW); break;
    case 9: KIND(tile_of)(t, 9, 1, AX_ANYHOW); break;
    case 10: KIND(tile_of)(t, 10, 1, AX_ANYHOW); break;
    case 11: KIND(tile_of)(t, 11, 1, AX_ANYHOW); break;
    case 12: KIND(tile_of)(t, 12, 1, AX_ANYHOW); break;
    case 13: KIND(tile_of)(t, 13, 1, AX_ANYHOW); break;
    case 14: KIND(tile_of)(t, 14, 1, AX_ANYHOW); break;
#endif
  }
}

static void KIND(tile)(const ax_tile *t) {
  if (t->columns <= LANES) {
    KIND(tile_narrow)(t);
    return;
  }
  if (t->rows == ROWS && t->stand != AX_ANYHOW) { /* the usual case in large products */
    if (t->stand == AX_IN_LINES) KIND(tile_of)(t, ROWS, 2, AX_IN_LINES);
    else KIND(tile_of)(t, ROWS, 2, AX_IN_PANEL);
    return;
  }
  switch (t->rows) {
    case 1: KIND(tile_of)(t, 1, 2, AX_ANYHOW); break;
    case 2: KIND(tile_of)(t, 2, 2, AX_ANYHOW); break;
    case 3: KIND(tile_of)(t, 3, 2, AX_ANYHOW); break;
    case 4: KIND(tile_of)(t, 4, 2, AX_ANYHOW); break;
#if ROWS > 4
    case 5: KIND(tile_of)(t, 5, 2, AX_ANYHOW); break;
    case 6: KIND(tile_of)(t, 6, 2, AX_ANYHOW); break;
#endif
#if ROWS > 6
    case 7: KIND(tile_of)(t, 7, 2, AX_ANYHOW); break;
    case 8: KIND(tile_of)(t, 8, 2, AX_ANYHOW); break;
    case 9: KIND(tile_of)(t, 9, 2, AX_ANYHOW); break;
    case 10: KIND(tile_of)(t, 10, 2, AX_ANYHOW); break;
    case 11: KIND(tile_of)(t, 11, 2, AX_ANYHOW); break;
    case 12: KIND(tile_of)(t, 12, 2, AX_ANYHOW); break;
    case 13: KIND(tile_of)(t, 13, 2, AX_ANYHOW); break;
    case 14: KIND(tile_of)(t, 14, 2, AX_ANYHOW); break;
#endif
  }
}
#endif

/* FIRST, SECOND: numbers of x and y in turn, from the first, or second, half of each 16 bytes; _PAIRS: pairs of numbers in turn.
   EVEN, ODD: whole 16 bytes, those at even places, or at odd places. */
#if LANES == 16
/* LOWER: the first halves of x and y. EVEN_PAIR, ODD_PAIR: within each half of x and y, their first, or second, 16 bytes in
   turn. */
#define LOWER(x, y) __builtin_shufflevector(x, y, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23)
#define EVEN_PAIR(x, y) __builtin_shufflevector(x, y, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27)
#define ODD_PAIR(x, y) __builtin_shufflevector(x, y, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31)
#define FIRST(x, y) __builtin_shufflevector(x, y, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
#define SECOND(x, y) __builtin_shufflevector(x, y, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
#define FIRST_PAIRS(x, y) __builtin_shufflevector(x, y, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
#define SECOND_PAIRS(x, y) __builtin_shufflevector(x, y, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)
#define EVEN(x, y) __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27)
#define ODD(x, y) __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31)
#elif LANES == 8 && NUMBER_BYTES == 8
#define FIRST(x, y) __builtin_shufflevector(x, y, 0, 8, 2, 10, 4, 12, 6, 14)
#define SECOND(x, y) __builtin_shufflevector(x, y, 1, 9, 3, 11, 5, 13, 7, 15)
#define EVEN(x, y) __builtin_shufflevector(x, y, 0, 1, 4, 5, 8, 9, 12, 13)
#define ODD(x, y) __builtin_shufflevector(x, y, 2, 3, 6, 7, 10, 11, 14, 15)
#elif LANES == 8
#define FIRST(x, y) __builtin_shufflevector(x, y, 0, 8, 1, 9, 4, 12, 5, 13)
#define SECOND(x, y) __builtin_shufflevector(x, y, 2, 10, 3, 11, 6, 14, 7, 15)
#define FIRST_PAIRS(x, y) __builtin_shufflevector(x, y, 0, 1, 8, 9, 4, 5, 12, 13)
#define SECOND_PAIRS(x, y) __builtin_shufflevector(x, y, 2, 3, 10, 11, 6, 7, 14, 15)
#define EVEN(x, y) __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11)
#define ODD(x, y) __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15)
#elif LANES == 4 && NUMBER_BYTES == 8
#define FIRST(x, y) __builtin_shufflevector(x, y, 0, 4, 2, 6)
#define SECOND(x, y) __builtin_shufflevector(x, y, 1, 5, 3, 7)
#define EVEN(x, y) __builtin_shufflevector(x, y, 0, 1, 4, 5)
#define ODD(x, y) __builtin_shufflevector(x, y, 2, 3, 6, 7)
#elif LANES == 4
#define FIRST(x, y) __builtin_shufflevector(x, y, 0, 4, 1, 5)
#define SECOND(x, y) __builtin_shufflevector(x, y, 2, 6, 3, 7)
#define FIRST_PAIRS(x, y) __builtin_shufflevector(x, y, 0, 1, 4, 5)
#define SECOND_PAIRS(x, y) __builtin_shufflevector(x, y, 2, 3, 6, 7)
#else
#define FIRST(x, y) __builtin_shufflevector(x, y, 0, 2)
#define SECOND(x, y) __builtin_shufflevector(x, y, 1, 3)
#endif
#if NUMBER_BYTES == 8
#define EACH 2 /* units in 16 bytes */
#else
#define EACH 4
#endif

/* Transposes squares of 16 bytes a row in place. */
static inline __attribute__((always_inline)) void KIND(turn_within)(FACTOR *x, const int vectors) {
  UNROLL for (int i = 0; i < vectors; i += EACH) {
    FACTOR first = FIRST(x[i], x[i + 1]), second = SECOND(x[i], x[i + 1]);
#if EACH == 4
    FACTOR third = FIRST(x[i + 2], x[i + 3]), fourth = SECOND(x[i + 2], x[i + 3]);
    x[i] = FIRST_PAIRS(first, third);
    x[i + 1] = SECOND_PAIRS(first, third);
    x[i + 2] = FIRST_PAIRS(second, fourth);
    x[i + 3] = SECOND_PAIRS(second, fourth);
#else
    x[i] = first;
    x[i + 1] = second;
#endif
  }
}

#if LANES == 4 * EACH
/* Transposes four vectors, `apart` places from each other, as 4 by 4 blocks of 16 bytes. */
static inline __attribute__((always_inline)) void KIND(turn_squares)(FACTOR *x, const int apart) {
  FACTOR *first = x, *second = x + apart, *third = x + 2 * apart, *fourth = x + 3 * apart;
  FACTOR even = EVEN(*first, *second), odd = ODD(*first, *second), even_too = EVEN(*third, *fourth), odd_too = ODD(*third, *fourth);
  *first = EVEN(even, even_too);
  *second = EVEN(odd, odd_too);
  *third = ODD(even, even_too);
  *fourth = ODD(odd, odd_too);
}
#endif

/* Transposes LANES vectors: first within squares of 16 bytes a row, then the squares. Each step is one instruction. */
static inline __attribute__((always_inline)) void KIND(turn)(FACTOR *x) {
  KIND(turn_within)(x, LANES);
#if LANES == 4 * EACH
  UNROLL for (int i = 0; i < EACH; i++) KIND(turn_squares)(&x[i], EACH);
#elif LANES == 2 * EACH
  UNROLL for (int i = 0; i < EACH; i++) {
    FACTOR even = EVEN(x[i], x[i + EACH]);
    x[i + EACH] = ODD(x[i], x[i + EACH]);
    x[i] = even;
  }
#endif
}
#undef FIRST
#undef SECOND
#undef FIRST_PAIRS
#undef SECOND_PAIRS
#undef EVEN
#undef ODD

static inline void KIND(put)(char *to, FACTOR units, FACTOR *least) {
  *(FACTOR *)(void *)to = units;
  *least = KIND(least)(*least, units);
}

static inline void KIND(note)(ax_packing *p, FACTOR least) {
  int exponent = KIND(exponent)(least);
  if (exponent < p->least) p->least = exponent;
}

/* Returns the units as they are in memory. */
static inline __attribute__((always_inline)) FACTOR KIND(put_across)(const ax_packing *p, char *to, const char *from,
                                                                     const int numbers, const int lanes, FACTOR *least) {
  const FACTOR units = KIND(unit_across)(from, p->number, numbers, lanes);
  KIND(put)(to, SHIFTED ? KIND(shifted)(units, p->shifts) : units, least);
  return units;
}

static inline __attribute__((always_inline)) void KIND(note_excess)(const ax_packing *p, char *behind, FACTOR units) {
  if (SHIFTED && p->sums) RESULTS(store)(behind, KIND(add_excess)(RESULTS(load)(behind), units));
}

/* Packs step by step, so that memory is read in rows. first, second: lanes in the two vectors of a panel. */
static inline __attribute__((always_inline)) void KIND(across_by)(ax_packing *packing, const int first, const int second) {
  const ax_packing all = *packing, *p = &all; /* stores do not touch it */
  FACTOR least = KIND(none)();
  const int64_t width = first + second, whole = p->lines / width, rest = p->lines - whole * width;
  const int64_t step = (second > 0 ? 2 : 1) * VECTOR_BYTES, last = (rest > LANES ? 2 : 1) * VECTOR_BYTES;
  const int64_t steps = (p->count + UNIT - 1) / UNIT;
  SUM excess[2] = {{0}}; /* of the last panel, which may be alone: it does not go through memory in each step */
  for (int64_t i = 0; SHIFTED && p->sums && i < whole; i++) memset(p->to + i * p->panel + steps * step, 0, (size_t)step);
  for (int64_t at = 0, u = 0; at < p->count; at += UNIT, u++) {
    const char *from = p->from + at * p->number;
    const int numbers = p->count - at < UNIT ? (int)(p->count - at) : UNIT;
    char *to = p->to + u * step, *behind = p->to + steps * step;
    for (int64_t i = 0; i < whole; i++, from += width * NUMBER_BYTES, to += p->panel, behind += p->panel) {
      __builtin_prefetch(from + fetched_steps * p->number);
      if (second > 0 && width * NUMBER_BYTES > 64) __builtin_prefetch(from + fetched_steps * p->number + 64);
      KIND(note_excess)(p, behind, KIND(put_across)(p, to, from, numbers, first, &least));
      if (second > 0)
        KIND(note_excess)(p, behind + VECTOR_BYTES,
                          KIND(put_across)(p, to + VECTOR_BYTES, from + LANES * NUMBER_BYTES, numbers, second, &least));
    }
    to = p->to + whole * p->panel + u * last;
    if (rest > 0)
      excess[0] =
          KIND(add_excess)(excess[0], KIND(put_across)(p, to, from, numbers, rest < LANES ? (int)rest : LANES, &least));
    if (rest > LANES)
      excess[1] = KIND(add_excess)(excess[1], KIND(put_across)(p, to + VECTOR_BYTES, from + LANES * NUMBER_BYTES, numbers,
                                                               (int)rest - LANES, &least));
  }
  for (int64_t i = 0; SHIFTED && p->sums && i * LANES < rest; i++)
    RESULTS(store)(p->to + whole * p->panel + steps * last + i * VECTOR_BYTES, excess[i]);
  KIND(note)(packing, least);
}

/* Returns the address at which the vector of lines from `line` on is packed. *step: bytes between its steps; a panel has two
   vectors, the last perhaps one. */
static inline char *KIND(packed_at)(const ax_packing *p, int64_t line, int64_t *step) {
  const int64_t width = 2 * LANES, panel = line / width;
  *step = (p->lines - panel * width > LANES ? 2 : 1) * VECTOR_BYTES;
  return p->to + panel * p->panel + line / LANES % 2 * VECTOR_BYTES;
}

static void KIND(across)(ax_packing *p) {
  if (p->width == 2 * LANES) KIND(across_by)(p, LANES, LANES);
  else KIND(across_by)(p, p->width < LANES ? p->width : LANES, p->width < LANES ? 0 : p->width - LANES);
}

/* Packs a whole square of LANES by LANES units, transposed in registers. */
static inline void KIND(square)(const char *from, int64_t line, char *to, int64_t step, FACTOR *least, SUM *excess) {
  FACTOR square[LANES];
  UNROLL for (int l = 0; l < LANES; l++) square[l] = KIND(unit_along)(from + l * line, UNIT * LANES);
  KIND(turn)(square);
  UNROLL for (int u = 0; u < LANES; u++) {
    KIND(put)(to + u * step, square[u], least);
    excess[u % 4] = KIND(add_excess)(excess[u % 4], square[u]);
  }
}

/* Packs a square in which lines or numbers are missing. */
static inline void KIND(corner)(const ax_packing *p, const char *from, int64_t lines, int64_t numbers, char *to, int64_t step,
                                FACTOR *least, SUM *excess) {
  FACTOR square[LANES];
  for (int64_t l = 0; l < LANES; l++) square[l] = l < lines ? KIND(unit_along)(from + l * p->line, (int)numbers) : (FACTOR){0};
  KIND(turn)(square);
  for (int64_t u = 0; u * UNIT < numbers; u++) {
    KIND(put)(to + u * step, square[u], least);
    *excess = KIND(add_excess)(*excess, square[u]);
  }
}

static void KIND(along)(ax_packing *p) {
  FACTOR least = KIND(none)();
  for (int64_t line = 0; line < p->lines; line += LANES) {
    int64_t step;
    char *to = KIND(packed_at)(p, line, &step), *behind = to + (p->count + UNIT - 1) / UNIT * step;
    SUM excess[4] = {{0}}; /* chains, so that none waits for the one before */
    for (int64_t at = 0; at < p->count; at += UNIT * LANES, to += LANES * step) {
      const char *from = p->from + line * p->line + at * NUMBER_BYTES;
      const int64_t lines = p->lines - line, numbers = p->count - at < UNIT * LANES ? p->count - at : UNIT * LANES;
      if (lines >= LANES && numbers == UNIT * LANES) KIND(square)(from, p->line, to, step, &least, excess);
      else KIND(corner)(p, from, lines, numbers, to, step, &least, excess);
    }
    if (SHIFTED && p->sums) RESULTS(store)(behind, excess[0] + excess[1] + excess[2] + excess[3]);
  }
  KIND(note)(p, least);
}

#if !NO_TILE
static void KIND(lines)(ax_packing *p) {
  FACTOR least = KIND(none)();
  for (int64_t line = 0; line < p->lines; line++)
    for (int64_t at = 0; at < p->count; at += UNIT * LANES) {
      int64_t numbers = p->count - at < UNIT * LANES ? p->count - at : UNIT * LANES;
      FACTOR units = KIND(unit_along)(p->from + line * p->line + at * NUMBER_BYTES, (int)numbers);
      KIND(put)(p->to + line * PACKED_LINE(UNIT_BYTES) + at / UNIT * UNIT_BYTES, KIND(shifted)(units, p->shifts), &least);
    }
  KIND(note)(p, least);
}
#endif

#include "product/narrow_template.h"
#if UNIT == 1 && NUMBER_BYTES >= 4
#include "product/stream_template.h"
#endif

#if !NO_TILE && !NO_NARROW
static const ax_product_kernels KIND(kernels) = {
    .lanes = LANES,
    .most_rows = ROWS,
    .most_columns = COLUMNS,
    .unit = UNIT,
    .number_bytes = NUMBER_BYTES,
    .unit_bytes = UNIT_BYTES,
    .result_bytes = RESULT_BYTES,
    .in_place = UNIT == 1 && NUMBER_BYTES == UNIT_BYTES,
    .some = SOME,
    .tile = KIND(tile),
    .across = KIND(across),
    .along = KIND(along),
    .lines = KIND(lines),
    .narrow = KIND(narrow),
#if UNIT == 1 && NUMBER_BYTES >= 4
    .stream = KIND(stream),
    .wide_rows = WIDE_ROWS,
#endif
#if CAREFUL
    .careful = CAREFUL_KIND(tile),
#endif
    .block_steps = most_steps,
#ifdef ROUND
    .round = ROUND,
#endif
    .row_step = 1,
    .step_group = 1,
    .shifts = SHIFTED,
};
#endif

#undef ROUND
#undef KIND
#undef UNITS
#undef RESULTS
#undef MULTIPLY_ADD
#undef CAREFUL
#undef SHIFTED
#undef NO_TILE
#undef NO_NARROW
#undef CAREFUL_KIND
#undef COLUMNS
#undef EACH
#undef LANES
#undef ROWS
#undef UNIT
#undef SOME
#undef FACTOR
#undef SUM
#undef NUMBER_BYTES
#undef UNIT_BYTES
#undef RESULT_BYTES
#undef VECTOR_BYTES
#undef UNROLL
#undef LOWER
#undef EVEN_PAIR
#undef ODD_PAIR
#undef WIDE_ROWS
#undef STEP_BYTES
