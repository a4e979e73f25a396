/* A product goes block of k by block of k, some columns of b at a time, and then rows by rows:

     b[block, columns]  packed into panels of two vectors        stays in the second-level cache
     a[rows, block]     as many rows as a tile has               stays in the first-level cache while all panels go by
     c[rows, panel]     one tile, in registers

   What lies well is not packed: few rows read b where it is, and rows of a are only copied where they would meet in one set of the cache. */
#include "product/product.h"

#include <string.h>

#include "base/base.h"

enum {
  block_steps = 384,        /* at most so many units of k in a block; */
  block_bytes = 3072,       /* and of a row of a */
  panel_bytes = 448 << 10,  /* packed of b */
  near_bytes = 32 << 10,    /* of b, to be read where it lies */
  few_groups = 2,           /* of rows, that read it where it lies however large it is */
  many_panels = 3,          /* that make it worth to copy rows of a */
  conflict = 8192,          /* bytes: rows so far apart meet in a few sets */
  least_copied = 1024,      /* bytes of a row */
  long_tile = 64,           /* steps, in which what comes next can be fetched */
};

bool ax_product_result(ax_dtype dtype, ax_dtype *result) {
  bool narrow = dtype == AX_S8 || dtype == AX_U8, half = dtype == AX_BF16 || dtype == AX_F16;
  *result = half ? AX_F32 : narrow ? AX_S32 : dtype;
  return half || narrow || dtype == AX_F32 || dtype == AX_F64 || dtype == AX_S32 || dtype == AX_U32;
}

static const ax_product_kernels *kernels_of(ax_dtype dtype, uint32_t most_bytes) {
  const ax_product_kernels *kernels = most_bytes >= 64 ? ax_product_kernels_512(dtype) : NULL;
  if (kernels == NULL && most_bytes >= 32) kernels = ax_product_kernels_256(dtype);
  return kernels != NULL ? kernels : ax_product_kernels_128(dtype);
}

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }
/* Small products are over before a division is: units are of one, two or four numbers. */
static int64_t units_of(const ax_product_kernels *k, int64_t numbers) { return (numbers + k->unit - 1) >> k->unit / 2; }

static bool packs_b(const ax_product *p, const ax_product_kernels *k, int64_t block) {
  if (!k->in_place || p->b_column != 1) return true;
  if (!k->some && p->n % k->lanes != 0) return true;
  if (p->m <= few_groups * k->most_rows) return false;
  return block * p->n * k->unit_bytes > near_bytes;
}

static bool packs_a(const ax_product *p, const ax_product_kernels *k, int64_t block) {
  bool turned = p->a_column != 1;
  if (!k->in_place) return true;
  if (p->n <= many_panels * 2 * k->lanes || block * k->unit_bytes < least_copied) return false;
  return turned || p->a_row * k->number_bytes % conflict == 0;
}

/* Bytes between rows of a that were copied: odd lines of the cache, so that rows do not meet in one set. */
static int64_t copied_row(const ax_product_kernels *k, int64_t block) {
  return round_up(units_of(k, block) * k->unit_bytes, 128) + 64;
}

ax_product_way ax_product_choose(const ax_product *p, uint32_t most_bytes) {
  const ax_product_kernels *k = kernels_of(p->dtype, most_bytes);
  int64_t most = (block_bytes / k->unit_bytes < block_steps ? block_bytes / k->unit_bytes : block_steps) * k->unit;
  int64_t blocks = p->k > most ? ceil_div(p->k, most) : 1, block = round_up(ceil_div(p->k, blocks), k->unit);
  int64_t width = 2 * k->lanes, units = units_of(k, block), fit = panel_bytes / (units * k->unit_bytes + 1) / width * width;
  ax_product_way way = {.kernels = k, .blocks = block > 0 ? ceil_div(p->k, block) : 1, .block = block};
  way.rows = p->m <= k->most_rows ? p->m : ceil_div(p->m, ceil_div(p->m, k->most_rows));
  way.packs_b = packs_b(p, k, block);
  way.packs_a = packs_a(p, k, block);
  way.columns = !way.packs_b || p->n <= fit ? p->n : fit;
  if (way.packs_b) way.b_bytes = (size_t)(round_up(way.columns, k->lanes) * units * k->unit_bytes);
  int64_t across = width * units * k->unit_bytes, along = k->most_rows * copied_row(k, block);
  way.work_bytes = way.b_bytes + (way.packs_a ? (size_t)(across > along ? across : along) : 0);
  return way;
}

typedef struct making { /* of some columns, over one block of k */
  const ax_product *product;
  const ax_product_way *way;
  const char *a, *b;
  char *c, *packed_a, *packed_b;
  int64_t columns, numbers; /* of k */
  int a_least, b_least;     /* exponents: see kernels->careful */
  bool add;
} making;

static void pack_columns(making *m) {
  const ax_product *p = m->product;
  const ax_product_kernels *k = m->way->kernels;
  ax_packing packing = {.from = m->b, .to = m->packed_b, .line = p->b_column * k->number_bytes, .number = p->b_row * k->number_bytes,
                        .lines = m->columns, .count = m->numbers,
                        .panel = 2 * k->lanes * units_of(k, m->numbers) * k->unit_bytes, .least = no_exponent};
  (p->b_column == 1 ? k->across : k->along)(&packing);
  m->b_least = packing.least;
}

/* Rows of a as the tile reads them: copied, or where they lie. */
static void take_rows(making *m, const char *a, ax_tile *tile) {
  const ax_product *p = m->product;
  const ax_product_kernels *k = m->way->kernels;
  tile->a = a;
  tile->a_row = p->a_row * k->number_bytes;
  tile->a_step = p->a_column * k->unit * k->number_bytes;
  if (!m->way->packs_a) return;
  ax_packing packing = {.from = a, .to = m->packed_a, .line = tile->a_row, .number = p->a_column * k->number_bytes, .lines = tile->rows,
                        .count = m->numbers, .to_line = copied_row(k, m->numbers), .least = no_exponent};
  tile->a = m->packed_a;
  if (p->a_column == 1) {
    k->lines(&packing);
    tile->a_row = packing.to_line;
    tile->a_step = k->unit_bytes;
  } else {
    k->across(&packing); /* one panel: rows are no more than two vectors hold */
    tile->a_row = k->unit_bytes;
    tile->a_step = (tile->rows > k->lanes ? 2 : 1) * k->lanes * k->unit_bytes;
  }
  m->a_least = packing.least;
}

/* Rows of a that come next: they are on their way to the cache while the panels of those before them are made, a share with each. */
typedef struct fetching {
  const char *run;            /* the next line is `at` bytes into it */
  int64_t apart, bytes, at, lines; /* of runs; lines with each panel */
} fetching;

enum { line_bytes = 64 };

static fetching fetch_rows(const making *m, const char *a, int64_t rows) {
  const ax_product *p = m->product;
  int64_t number = m->way->kernels->number_bytes, panels = ceil_div(m->columns, 2 * m->way->kernels->lanes), runs = rows;
  fetching f = {.run = a, .apart = p->a_row * number, .bytes = m->numbers * number};
  if (p->a_column != 1) runs = m->numbers, f.bytes = rows * number, f.apart = p->a_column * number;
  f.lines = ceil_div(runs * (f.bytes / line_bytes + 1), panels);
  return f;
}

static inline void fetch_some(fetching *f) {
  for (int64_t i = 0; i < f->lines; i++) {
    __builtin_prefetch(f->run + f->at);
    f->at += line_bytes;
    if (f->at > f->bytes) f->at = 0, f->run += f->apart;
  }
}

static void make_panels(const making *m, ax_tile *tile, char *c, fetching next) {
  const ax_product_kernels *k = m->way->kernels;
  int64_t width = 2 * k->lanes, units = units_of(k, m->numbers);
  bool careful = k->careful != NULL && m->a_least + m->b_least < careful_below;
  for (int64_t column = 0; column < m->columns; column += width) {
    int64_t left = m->columns - column;
    tile->columns = (int)(left < width ? left : width);
    tile->b = m->way->packs_b ? m->packed_b + column * units * k->unit_bytes : m->b + column * k->number_bytes;
    tile->b_step = m->way->packs_b ? (left > k->lanes ? width : k->lanes) * k->unit_bytes : m->product->b_row * k->number_bytes;
    tile->c = c + column * k->result_bytes;
    fetch_some(&next);
    (careful ? k->careful : k->tile)(tile);
  }
}

static void make(making *m) {
  const ax_product *p = m->product;
  const ax_product_kernels *k = m->way->kernels;
  ax_tile tile = {.steps = units_of(k, m->numbers), .c_row = p->c_row * k->result_bytes, .add = m->add};
  tile.fetch = m->way->packs_b && tile.steps >= long_tile;
  if (m->way->packs_b) pack_columns(m);
  for (int64_t row = 0; row < p->m; row += m->way->rows) {
    const int64_t next = row + m->way->rows, left = p->m - next;
    fetching fetch = {0};
    tile.rows = (int)(left < 0 ? p->m - row : m->way->rows);
    if (tile.fetch && left > 0) fetch = fetch_rows(m, m->a + next * p->a_row * k->number_bytes, left < m->way->rows ? left : m->way->rows);
    take_rows(m, m->a + row * p->a_row * k->number_bytes, &tile);
    make_panels(m, &tile, m->c + row * tile.c_row, fetch);
  }
}

void ax_product_run(const ax_product *p, const ax_product_way *way, const void *a, const void *b, void *c, void *work) {
  const ax_product_kernels *k = way->kernels;
  making m = {.product = p, .way = way, .packed_b = work, .packed_a = work != NULL ? (char *)work + way->b_bytes : NULL};
  for (int64_t column = 0; column < p->n; column += way->columns)
    for (int64_t i = 0; i < way->blocks; i++) {
      int64_t at = i * way->block;
      m.numbers = p->k - at < way->block ? p->k - at : way->block;
      m.columns = p->n - column < way->columns ? p->n - column : way->columns;
      m.a = (const char *)a + at * p->a_column * k->number_bytes;
      m.b = (const char *)b + (at * p->b_row + column * p->b_column) * k->number_bytes;
      m.c = (char *)c + column * k->result_bytes;
      m.add = p->add || i > 0;
      make(&m);
    }
}
