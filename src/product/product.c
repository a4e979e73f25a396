/* A product is made block of k by block of k, some columns of b at a time, and then group by group of rows:

     b[block, columns]  packed into panels of two vectors        stays in the second-level cache
     a[rows, block]     as many rows as a tile has               stays in the first-level cache for all panels
     c[rows, panel]     one tile, in registers

   A factor that already lies well is not packed. A product of few rows reads a large b where it is, in long runs (few.h). A narrow
   product reads a where it is; if the columns are few, rows of a are in the lanes of a vector (narrow_template.h). Other rows of a
   are copied once for all columns of b. Then the kernel knows their distance, and they do not share one set of the cache.

   Among many products, the factors of the next one are prefetched from memory while one is made, a few cache lines with each tile:
   small products would otherwise wait for them as long as they compute. */
#include "product/product.h"

#include <string.h>

#include "base/base.h"
#include "ir/dtype.h"
#include "machine/float_mode.h"
#include "product/few.h"
#include "product/way.h"

enum {
  /* The most bytes of a factor of the next product that are prefetched if it is packed; if it is read where it lies, so many as
     its second cache holds. The processor prefetches longer runs itself, unless they are read in panels. */
  most_fetched = 128 << 10,
  fetched_ahead = 8 << 10, /* bytes of a, if memory takes longer than a tile */
  narrow_ahead = 4 << 10,  /* the same in narrow products, */
  narrow_soon = 1 << 10,   /* which ask a second time for rows so near */
};

bool ax_product_result(ax_dtype dtype, ax_dtype *result) {
  const bool is_byte = dtype == AX_S8 || dtype == AX_U8, is_narrow = dtype == AX_BF16 || dtype == AX_F16;
  *result = is_narrow ? AX_F32 : is_byte ? AX_S32 : dtype;
  return is_narrow || is_byte || dtype == AX_F32 || dtype == AX_F64 || dtype == AX_S32 || dtype == AX_U32;
}

/* Lines to prefetch. Rows of a are prefetched while the panels of the rows before them are made, some lines with each panel. */
typedef struct fetching {
  const char *run;            /* the next line is `at` bytes into it */
  int64_t apart, bytes, at, lines; /* apart, bytes: of runs; lines: for each panel */
} fetching;

typedef struct making { /* some rows and columns, over one block of k */
  const ax_product *product;
  const ax_product_way *way;
  const char *a, *b;
  char *c, *packed_a, *packed_b;
  char *sums;                     /* of a group of rows, which are rounded to c; NULL: c has them */
  int64_t slots;                  /* slots at packed_a */
  int64_t rows, columns, numbers; /* of k */
  bool add, packs_a, packs_b;     /* packs_: rows, or columns, are still to be packed */
  bool careful;                   /* some numbers may be for the careful tile: not where subnormal ones count as 0 on this thread */
  bool in_place;                  /* tiles take rows where they lie, but those of a group that fill no tile */
  fetching next[2];               /* of the next product's factors */
} making;

/* Notes the least exponent of a panel's columns, behind the panel. */
static void note_columns(const making *m, int64_t panel, int least) {
  if (m->way->kernels->careful != NULL)
    memcpy(m->packed_b + (panel + 1) * m->way->panel_bytes - AX_LINE_BYTES, &least, sizeof least);
}

static int least_of_columns(const making *m) {
  int least = no_exponent, one;
  if (!m->way->packs_b || m->way->kernels->careful == NULL) return least;
  for (int64_t column = 0, panel = 1; column < m->columns; column += 2 * m->way->kernels->lanes, panel++) {
    memcpy(&one, m->packed_b + panel * m->way->panel_bytes - AX_LINE_BYTES, sizeof one);
    if (one < least) least = one;
  }
  return least;
}

static void pack_columns(const making *m) {
  const ax_product *p = m->product;
  const ax_product_kernels *k = m->way->kernels;
  ax_packing packing = {.from = m->b,
                        .to = m->packed_b,
                        .line = p->b_column * k->number_bytes,
                        .number = p->b_row * k->number_bytes,
                        .lines = m->columns,
                        .count = m->numbers,
                        .width = 2 * k->lanes,
                        .panel = m->way->panel_bytes,
                        .sums = k->shifts,
                        .least = no_exponent};
  (p->b_column == 1 ? k->across : k->along)(&packing);
  for (int64_t column = 0, panel = 0; column < m->columns; column += 2 * k->lanes, panel++) note_columns(m, panel, packing.least);
}

static char *slot_of(const making *m, int64_t group) { return m->packed_a + group % m->slots * m->way->slot_bytes; }

/* Notes the least exponent of a slot's rows, behind the slot. */
static void note_least(const making *m, int64_t group, int least) {
  if (m->way->kernels->careful != NULL) memcpy(slot_of(m, group) + m->way->slot_bytes - AX_LINE_BYTES, &least, sizeof least);
}

static int least_of(const making *m, int64_t group) {
  int least = no_exponent;
  if (m->way->packs_a && m->way->kernels->careful != NULL)
    memcpy(&least, slot_of(m, group) + m->way->slot_bytes - AX_LINE_BYTES, sizeof least);
  return least;
}

/* Packs a group of rows. Transposed rows are packed several groups at once, since they share cache lines. */
static void pack_rows(const making *m, int64_t group) {
  const ax_product *p = m->product;
  const ax_product_kernels *k = m->way->kernels;
  const int64_t row = group * m->way->rows, left = m->rows - row, most = m->way->ahead * m->way->rows,
                lines = left < most ? left : most;
  ax_packing packing = {.from = m->a + row * p->a_row * k->number_bytes,
                        .to = slot_of(m, group),
                        .line = p->a_row * k->number_bytes,
                        .number = p->a_column * k->number_bytes,
                        .lines = lines,
                        .count = m->numbers,
                        .panel = m->way->slot_bytes,
                        .width = (int)m->way->rows,
                        .shifts = k->shifts,
                        .least = no_exponent};
  if (group % m->way->ahead != 0) return;
  (p->a_column == 1 || k->in_tiles ? k->lines : k->across)(&packing);
  for (int64_t i = 0; i * m->way->rows < lines; i++) note_least(m, group + i, packing.least);
}

/* Gives the processor's tiles their rows. */
static void take_tile_rows(const making *m, int64_t group, ax_tile *tile) {
  const ax_product_kernels *k = m->way->kernels;
  const int64_t row_bytes = k->step_group * k->unit_bytes;
  if (m->in_place && tile->rows % k->row_step == 0) {
    tile->a_row = m->product->a_row * k->number_bytes;
    tile->a = m->a + group * m->way->rows * tile->a_row;
    tile->a_step = row_bytes;
    return;
  }
  if (m->packs_a) pack_rows(m, group);
  tile->a = slot_of(m, group);
  tile->a_row = row_bytes;
  tile->a_step = m->way->rows * row_bytes;
}

/* Gives the tile its rows of a: packed, or where they lie. */
static void take_rows(const making *m, int64_t group, ax_tile *tile) {
  const ax_product *p = m->product;
  const ax_product_kernels *k = m->way->kernels;
  const bool turned = p->a_column != 1;
  tile->stand = AX_ANYHOW;
  if (k->in_tiles) {
    take_tile_rows(m, group, tile);
    return;
  }
  if (!m->way->packs_a) {
    tile->a = m->a + group * m->way->rows * p->a_row * k->number_bytes;
    tile->a_row = p->a_row * k->number_bytes;
    tile->a_step = p->a_column * k->unit * k->number_bytes;
    return;
  }
  if (m->packs_a) pack_rows(m, group);
  tile->a = slot_of(m, group);
  tile->a_row = turned ? k->unit_bytes : PACKED_LINE(k->unit_bytes);
  tile->a_step = turned ? (tile->rows > k->lanes ? 2 : 1) * k->lanes * k->unit_bytes : k->unit_bytes;
  if (m->way->packs_b) tile->stand = turned ? AX_IN_PANEL : AX_IN_LINES;
}

/* How many groups ahead rows are prefetched while one group is made. A distance of m->rows or more means none. */
static int64_t fetch_distance(const making *m, bool long_tiles) {
  const ax_product *p = m->product;
  const ax_product_way *way = m->way;
  if (long_tiles && m->packs_a && !m->in_place) return way->ahead;
  if (long_tiles) return way->packs_a ? m->rows : 1;
  if (p->a_column != 1 || way->columns < p->n || !p->far || m->numbers == 0) return m->rows;
  return ax_ceil_div(fetched_ahead, m->numbers * way->kernels->number_bytes * way->rows);
}

static inline fetching fetch_rows(const making *m, int64_t group) {
  const ax_product *p = m->product;
  const int64_t row = group * m->way->rows, left = m->rows - row, rows = left < m->way->rows ? left : m->way->rows;
  if (left <= 0) return (fetching){0};
  const int64_t number = m->way->kernels->number_bytes, panels = ax_ceil_div(m->columns, 2 * m->way->kernels->lanes);
  fetching f = {.run = m->a + row * p->a_row * number, .apart = p->a_row * number, .bytes = m->numbers * number};
  int64_t runs = rows;
  if (p->a_column == 1 && f.apart == f.bytes) runs = 1, f.bytes *= rows;
  if (p->a_column != 1) runs = m->numbers, f.bytes = rows * number, f.apart = p->a_column * number;
  f.lines = ax_ceil_div(runs * (f.bytes / AX_LINE_BYTES + 1), panels);
  return f;
}

/* All lines of a factor, shared out to `panels` panels; none if the factor is larger than `most` bytes. */
static fetching fetch_factor(const void *factor, int64_t most, int64_t runs, int64_t apart, int64_t bytes, int64_t panels) {
  if (factor == NULL || runs * bytes > most) return (fetching){0};
  if (apart == bytes) bytes *= runs, runs = 1;
  const int64_t lines = runs * (bytes / AX_LINE_BYTES + 1);
  return (fetching){.run = factor, .apart = apart, .bytes = bytes, .lines = ax_ceil_div(lines, panels)};
}

/* Sets up the prefetching of the next product's factors, if this product is made in one go. */
static void fetch_next(making *m) {
  const ax_product *p = m->product;
  const int64_t number = m->way->kernels->number_bytes, most_b = m->way->packs_b ? most_fetched : ax_caches_here()->second;
  m->next[0] = m->next[1] = (fetching){0};
  if (!p->far || m->rows < p->m || m->columns < p->n || m->numbers < p->k) return;
  const int64_t panels = m->way->groups * ax_ceil_div(p->n, 2 * m->way->kernels->lanes);
  if (p->a_column == 1) m->next[0] = fetch_factor(p->next_a, most_fetched, p->m, p->a_row * number, p->k * number, panels);
  else m->next[0] = fetch_factor(p->next_a, most_fetched, p->k, p->a_column * number, p->m * number, panels);
  if (p->b_column == 1) m->next[1] = fetch_factor(p->next_b, most_b, p->k, p->b_row * number, p->n * number, panels);
  else m->next[1] = fetch_factor(p->next_b, most_b, p->n, p->b_column * number, p->k * number, panels);
}

static inline void fetch_some(fetching *f) {
  for (int64_t i = 0; i < f->lines; i++) {
    __builtin_prefetch(f->run + f->at);
    f->at += AX_LINE_BYTES;
    if (f->at > f->bytes) f->at = 0, f->run += f->apart;
  }
}

static inline void make_panels(making *m, ax_tile *tile, char *c, bool careful, fetching next) {
  const ax_product_kernels *k = m->way->kernels;
  const int64_t width = 2 * k->lanes;
  const char *packed = m->packed_b;
  for (int64_t column = 0; column < m->columns; column += width, packed += m->way->panel_bytes) {
    int64_t left = m->columns - column;
    tile->columns = (int)(left < width ? left : width);
    tile->b = m->way->packs_b ? packed : m->b + column * k->number_bytes;
    tile->b_step = m->way->packs_b ? (left > k->lanes ? width : k->lanes) * k->unit_bytes : m->product->b_row * k->number_bytes;
    tile->c = c + column * k->result_bytes;
    fetch_some(&next);
    fetch_some(&m->next[0]);
    fetch_some(&m->next[1]);
    (careful ? k->careful : k->tile)(tile);
  }
}

/* Chooses how rows of so many bytes are prefetched: no fewer ahead than are made at once, since these are read across. Rows that
   touch each other are one run. */
static void fetch_narrow(ax_tile *tile, int64_t bytes, int64_t lanes) {
  const bool touch = tile->a_row == bytes;
  const int64_t some = touch ? narrow_ahead : ax_ceil_div(narrow_ahead, bytes) * tile->a_row,
                soon = touch ? narrow_soon : ax_ceil_div(narrow_soon, bytes) * tile->a_row, all = lanes * tile->a_row;
  tile->ahead = some > all ? some : all;
  tile->second = lanes * bytes > ax_caches_here()->first / 4;
  tile->again = touch || !tile->second ? tile->ahead - soon : 0;
  tile->run = touch ? lanes * bytes : bytes;
  tile->fetched = touch ? lanes * bytes : lanes * ax_round_up(bytes, AX_LINE_BYTES);
}

/* Makes all rows in one call of the kernel, which reads them where they lie. */
static void make_narrow(making *m) {
  const ax_product *p = m->product;
  const ax_product_way *way = m->way;
  const ax_product_kernels *k = way->kernels;
  const int64_t bytes = m->numbers * k->number_bytes;
  if (m->packs_b) pack_columns(m);
  ax_tile tile = {.a = m->a,
                  .b = way->packs_b ? m->packed_b : m->b,
                  .c = m->c,
                  .a_row = p->a_row * k->number_bytes,
                  .b_step = way->packs_b ? k->lanes * k->unit_bytes : p->b_row * k->number_bytes,
                  .c_row = p->c_row * k->result_bytes,
                  .columns = (int)m->columns,
                  .numbers = m->numbers,
                  .lines = m->rows,
                  .b_least = least_of_columns(m),
                  .add = m->add,
                  .turned = way->turned};
  if (p->far) fetch_narrow(&tile, bytes, k->lanes);
  k->narrow(&tile);
}

/* Rounds the sums of a group of rows to c. */
static void round_rows(const making *m, int64_t row, int64_t rows) {
  const ax_product_kernels *k = m->way->kernels;
  const int64_t apart = m->product->c_row * k->number_bytes;
  k->round(&(ax_rounding){.sums = m->sums,
                          .to = m->c + row * apart,
                          .sums_row = ax_sums_row(m->way),
                          .to_row = apart,
                          .rows = rows,
                          .count = m->columns});
}

static inline void make(making *m) {
  const ax_product *p = m->product;
  const ax_product_way *way = m->way;
  ax_tile tile = {.steps = ax_units_of(way->kernels, m->numbers),
                  .c_row = m->sums != NULL ? ax_sums_row(way) : p->c_row * way->kernels->result_bytes,
                  .add = m->add};
  const bool long_tiles = way->packs_b && tile.steps >= AX_WAY_LONG_TILE;
  tile.fetch = long_tiles || m->add;
  const int64_t ahead = fetch_distance(m, long_tiles);
  if (m->packs_b) pack_columns(m);
  tile.b_least = least_of_columns(m);
  fetch_next(m);
  for (int64_t row = 0, group = 0; row < m->rows; row += way->rows, group++) {
    tile.rows = (int)(m->rows - row < way->rows ? m->rows - row : way->rows);
    take_rows(m, group, &tile);
    const bool careful = m->careful && least_of(m, group) + tile.b_least < careful_below;
    make_panels(m, &tile, m->sums != NULL ? m->sums : m->c + row * tile.c_row, careful, fetch_rows(m, group + ahead));
    if (m->sums != NULL) round_rows(m, row, tile.rows);
  }
}

static int64_t block_numbers(const ax_product *p, const ax_product_way *way, int64_t block) {
  const int64_t left = p->k - block * way->block;
  return left < way->block ? left : way->block;
}

/* A pass: makes some rows, over one block of k, for all columns, a few panels at a time. b NULL: all columns are packed
   already. */
static void make_pass(making *m, const char *b, char *c) {
  const ax_product *p = m->product;
  char *packed = m->packed_b;
  for (int64_t column = 0; column < p->n; column += m->way->columns) {
    m->columns = p->n - column < m->way->columns ? p->n - column : m->way->columns;
    if (b != NULL) m->b = b + column * p->b_column * m->way->kernels->number_bytes;
    else m->packed_b = packed + ax_product_panel_at(m->way, column);
    m->c = c + column * ax_made_bytes(m->way->kernels, p->rounds);
    m->packs_a = m->way->packs_a && column == 0;
    if (m->way->narrow) make_narrow(m);
    else make(m);
  }
}

/* All kernels that take tiles take the same. */
static _Thread_local int held;

void ax_product_begin(const ax_product_way *way) {
  if (way->kernels->begin != NULL && held++ == 0) way->kernels->begin();
}

void ax_product_end(const ax_product_way *way) {
  if (way->kernels->end != NULL && --held == 0) way->kernels->end();
}

/* packed: b, packed before; NULL if it was not. */
static void run_sums(const ax_product *p, const ax_product_way *way, const void *a, const void *b, const char *packed, char *c,
                     char *work) {
  const ax_product_kernels *k = way->kernels;
  const int64_t most_rows = way->groups * way->rows;
  making m = {.product = p,
              .way = way,
              .packed_b = work,
              .packed_a = work != NULL ? work + way->b_bytes : NULL,
              .sums = p->rounds ? work + way->sums_at : NULL,
              .slots = way->slots,
              .packs_b = way->packs_b && packed == NULL,
              .careful = k->careful != NULL && !ax_float_mode_flushes()};
  m.in_place = ax_takes_in_place(p, k) && !m.careful;
  if (!way->narrow) ax_product_begin(way);
  for (int64_t row = 0; row < p->m; row += most_rows)
    for (int64_t i = 0; i < way->blocks; i++) {
      const int64_t at = i * way->block;
      m.rows = p->m - row < most_rows ? p->m - row : most_rows;
      m.numbers = block_numbers(p, way, i);
      m.a = (const char *)a + (at * p->a_column + row * p->a_row) * k->number_bytes;
      m.add = p->add || i > 0;
      if (packed != NULL) m.packed_b = (char *)(uintptr_t)packed + i * way->block_bytes;
      make_pass(&m, packed != NULL ? NULL : (const char *)b + at * p->b_row * k->number_bytes,
                c + row * p->c_row * ax_made_bytes(k, p->rounds));
    }
  if (!way->narrow) ax_product_end(way);
}

static void run_either_way(const ax_product *p, const ax_product_way *way, const void *a, const void *b, const char *packed, char *c,
                           char *work) {
  if (way->turned) {
    const ax_product turned = ax_product_turned(p);
    run_sums(&turned, way, b, a, NULL, c, work);
  } else {
    run_sums(p, way, a, b, packed, c, work);
  }
}

/* All sums first, and then their rounding. */
static void run_and_round(const ax_product *p, const ax_product_way *way, const void *a, const void *b, const char *packed, char *c,
                          char *work) {
  ax_product sums = *p;
  sums.rounds = false;
  sums.c_row = p->n;
  run_either_way(&sums, way, a, b, packed, work + way->sums_at, work);
  way->kernels->round(&(ax_rounding){.sums = work + way->sums_at,
                                     .to = c,
                                     .sums_row = p->n * (int64_t)sizeof(float),
                                     .to_row = p->c_row * way->kernels->number_bytes,
                                     .rows = p->m,
                                     .count = p->n});
}

static void run(const ax_product *p, const ax_product_way *way, const void *a, const void *b, const char *packed, char *c,
                char *work) {
  const bool rounds_all = p->rounds && !ax_rounds_groups(p, way);
  (rounds_all ? run_and_round : run_either_way)(p, way, a, b, packed, c, work);
}

/* Makes one row for whole panels of b's columns. Panels are wide, since a single chain of additions is slow. Returns the number
   of columns made. */
static int64_t make_row(const ax_product *p, const ax_product_kernels *k, const char *a, const char *b, char *c) {
  const int64_t width = 4 * k->lanes, panels = p->n / width;
  const ax_product_stream row = {.a = a,
                                 .b = b,
                                 .c = c,
                                 .steps = p->k,
                                 .panels = panels,
                                 .a_step = p->a_column * k->number_bytes,
                                 .b_step = p->b_row * k->number_bytes,
                                 .rows = 1,
                                 .add = p->add};
  if (panels > 0) k->stream(&row);
  return panels * width;
}

/* Prefetches the panel of b behind this tile's. Always inlined, since compilers leave out calls of what does nothing else. */
static inline __attribute__((always_inline)) void fetch_panel(const ax_tile *tile, int64_t bytes) {
  const char *next = tile->b + bytes;
  for (int64_t step = 0; step < tile->steps; step++, next += tile->b_step)
    for (int64_t at = 0; at < bytes; at += AX_LINE_BYTES) __builtin_prefetch(next + at);
}

static void run_plain(const ax_product *p, const ax_product_way *way, const char *a, const char *b, char *c) {
  const ax_product_kernels *k = way->kernels;
  const int64_t width = 2 * k->lanes, c_row = p->c_row * k->result_bytes,
                begin = p->m == 1 && k->stream != NULL ? make_row(p, k, a, b, c) : 0;
  ax_tile tile = {.steps = p->k,
                  .a_row = p->a_row * k->number_bytes,
                  .a_step = p->a_column * k->number_bytes,
                  .b_step = p->b_row * k->number_bytes,
                  .c_row = c_row,
                  .add = p->add,
                  .fetch = p->add};
  for (int64_t row = 0; row < p->m; row += way->rows) {
    tile.rows = (int)(p->m - row < way->rows ? p->m - row : way->rows);
    tile.a = a + row * tile.a_row;
    for (int64_t column = begin; column < p->n; column += width) {
      tile.columns = (int)(p->n - column < width ? p->n - column : width);
      tile.b = b + column * k->number_bytes;
      if (way->fetches_b && row == 0 && column + width < p->n) fetch_panel(&tile, width * k->number_bytes);
      tile.c = c + row * c_row + column * k->result_bytes;
      k->tile(&tile);
    }
  }
}

void ax_product_run(const ax_product *p, const ax_product_way *way, const void *a, const void *b, void *c, void *work) {
  if (way->turned && way->streams_b) {
    const ax_product turned = ax_product_turned(p);
    ax_few_run(&turned, way, b, a, c, work);
  } else if (way->streams_b) {
    ax_few_run(p, way, a, b, c, work);
  } else if (way->turns_b) {
    ax_few_run_turns(p, way, a, b, c, work);
  } else if (way->plain) {
    run_plain(p, way, a, b, c);
  } else {
    run(p, way, a, b, NULL, c, work);
  }
}

size_t ax_product_packed_bytes(const ax_product_way *way) {
  return way->packs_b && !way->turned ? (size_t)(way->blocks * way->block_bytes) : 0;
}

size_t ax_product_packed_at(const ax_product_way *way, int64_t at) {
  return at > 0 ? (size_t)(at / way->block * way->block_bytes) : 0;
}

void ax_product_pack(const ax_product *p, const ax_product_way *way, const void *b, void *packed) {
  making m = {.product = p, .way = way, .columns = p->n}; /* all at once */
  for (int64_t i = 0; i < way->blocks; i++) {
    m.numbers = block_numbers(p, way, i);
    m.b = (const char *)b + i * way->block * p->b_row * way->kernels->number_bytes;
    m.packed_b = (char *)packed + i * way->block_bytes;
    pack_columns(&m);
  }
}

void ax_product_run_packed(const ax_product *p, const ax_product_way *way, const void *a, const void *packed, void *c, void *work) {
  run(p, way, a, NULL, packed, c, work);
}
