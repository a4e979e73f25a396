/* Included by kernels_amx.c, once for each kind of unit, after tile_template.h. It defines before:

     KIND(name)            name with the prefix of the kind
     UNIT, NUMBER_BYTES    numbers in a unit; bytes of a number
     MULTIPLY(c, a, b)     adds the product of tiles a and b to tile c
     PUT(t, sums, row, column)   adds a tile of sums to c, or stores it there, at this place in `t`

   Tiles 0 to 3 are sums, 4 and 5 are rows of a, 6 and 7 are columns of b. Their numbers are constants of instructions. */

/* row_tiles and column_tiles (1 or 2) are constants at every call, since this is always inlined. */
static inline __attribute__((always_inline)) void KIND(add_tiles)(const ax_tile *t, const int row_tiles, const int column_tiles) {
  const char *a = t->a, *b = t->b;
  _tile_zero(0);
  if (column_tiles > 1) _tile_zero(1);
  if (row_tiles > 1) _tile_zero(2);
  if (row_tiles > 1 && column_tiles > 1) _tile_zero(3);
  for (int64_t step = 0; step < t->steps; step += group, a += t->a_step, b += group * t->b_step) {
    _tile_loadd(6, b, t->b_step);
    _tile_loadd(4, a, t->a_row);
    MULTIPLY(0, 4, 6);
    if (column_tiles > 1) {
      _tile_loadd(7, b + row_bytes, t->b_step);
      MULTIPLY(1, 4, 7);
    }
    if (row_tiles > 1) {
      _tile_loadd(5, a + tile_rows * t->a_row, t->a_row);
      MULTIPLY(2, 5, 6);
      if (column_tiles > 1) MULTIPLY(3, 5, 7);
    }
  }
}

/* Stores the sums by way of memory, since some of them are to be added to others, or are not part of c. */
static inline __attribute__((always_inline)) void KIND(put_some)(const ax_tile *t, const int row_tiles, const int column_tiles) {
  _Alignas(row_bytes) char sums[4][tile_bytes];
  _tile_stored(0, sums[0], row_bytes);
  if (column_tiles > 1) _tile_stored(1, sums[1], row_bytes);
  if (row_tiles > 1) _tile_stored(2, sums[2], row_bytes);
  if (row_tiles > 1 && column_tiles > 1) _tile_stored(3, sums[3], row_bytes);
  for (int i = 0; i < row_tiles; i++)
    for (int j = 0; j < column_tiles; j++) PUT(t, sums[2 * i + j], i * tile_rows, j * 16);
}

static inline void KIND(put_whole)(const ax_tile *t) {
  char *lower = t->c + tile_rows * t->c_row;
  _tile_stored(0, t->c, t->c_row);
  _tile_stored(1, t->c + row_bytes, t->c_row);
  _tile_stored(2, lower, t->c_row);
  _tile_stored(3, lower + row_bytes, t->c_row);
}

static void KIND(in_tiles)(const ax_tile *t) {
  const bool high = t->rows > tile_rows, wide = t->columns > 16;
  if (high && wide) {
    KIND(add_tiles)(t, 2, 2);
    if (t->rows == 2 * tile_rows && t->columns == 32 && !t->add) KIND(put_whole)(t);
    else KIND(put_some)(t, 2, 2);
  } else if (wide) {
    KIND(add_tiles)(t, 1, 2);
    KIND(put_some)(t, 1, 2);
  } else if (high) {
    KIND(add_tiles)(t, 2, 1);
    KIND(put_some)(t, 2, 1);
  } else {
    KIND(add_tiles)(t, 1, 1);
    KIND(put_some)(t, 1, 1);
  }
}

/* Fills up the steps of all panels with zeros to whole groups. */
static void KIND(fill_panels)(const ax_packing *p) {
  const int64_t steps = (p->count + UNIT - 1) / UNIT, all = (steps + group - 1) / group * group;
  char *panel = p->to;
  for (int64_t line = 0; line < p->lines; line += 32, panel += p->panel) {
    const int64_t step = (p->lines - line > 16 ? 2 : 1) * row_bytes;
    memset(panel + steps * step, 0, (size_t)((all - steps) * step));
  }
}

static void KIND(filled_across)(ax_packing *p) {
  KIND(across)(p);
  KIND(fill_panels)(p);
}

static void KIND(filled_along)(ax_packing *p) {
  KIND(along)(p);
  KIND(fill_panels)(p);
}

/* A row of a tile: a group of units of a line whose numbers lie side by side, of which `numbers` are left. */
static inline words KIND(tile_row)(const char *from, int64_t numbers) {
  return KIND(unit_along)(from, numbers < group * UNIT ? (int)numbers : group * UNIT);
}

/* Takes `lines` lines that lie side by side, at most 16, over a group of units, and puts them into a tile. */
static inline void KIND(turn_group)(const ax_packing *p, const char *from, int lines, int64_t numbers, char *to, words *least) {
  words x[16];
  for (int u = 0; u < group; u++, from += UNIT * p->number, numbers -= UNIT)
    x[u] = numbers > 0 ? KIND(unit_across)(from, p->number, numbers < UNIT ? (int)numbers : UNIT, lines) : (words){0};
  KIND(turn)(x);
  for (int l = 0; l < tile_rows; l++) KIND(put)(to + l * row_bytes, x[l], least);
}

/* Copies lines into tiles, p->width of them in a panel, however they lie. Numbers that lie side by side are read line by line. */
static void KIND(into_tiles)(ax_packing *p) {
  words least = KIND(none)();
  const int64_t apart = p->width * (int64_t)row_bytes;
  for (int64_t line = 0; line < p->lines; line += tile_rows) {
    const int64_t left = p->lines - line, lines = left < tile_rows ? left : tile_rows;
    const char *from = p->from + line * p->line;
    char *tile = p->to + line / p->width * p->panel + line % p->width * row_bytes;
    for (int64_t l = 0; l < lines && p->number == NUMBER_BYTES; l++) {
      char *to = tile + l * row_bytes;
      for (int64_t at = 0; at < p->count; at += group * UNIT, to += apart)
        KIND(put)(to, KIND(tile_row)(from + l * p->line + at * NUMBER_BYTES, p->count - at), &least);
    }
    for (int64_t at = 0; at < p->count && p->number != NUMBER_BYTES; at += group * UNIT, tile += apart)
      KIND(turn_group)(p, from + at * p->number, (int)lines, p->count - at, tile, &least);
  }
  KIND(note)(p, least);
}

#undef KIND
#undef MULTIPLY
#undef PUT
#undef UNIT
#undef NUMBER_BYTES
