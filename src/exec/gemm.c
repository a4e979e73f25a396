/* Products, whole or in parts that several threads make.

   One thread makes the whole as one. Several make small products tile by tile, each for itself; of large ones they first pack the smaller factor, each
   some of it, and then take strips of the other, which they pack themselves. So each number is packed once:

                                b, packed by all                             strips
                               +----------+                               +--+--+--+--+
     strips of rows: a, each   |          |        of columns: a, packed  |  |  |  |  |     b, each its own
     its own                   +----------+        by all                 |  |  |  |  |
                               |          |                               |  |  |  |  |
                               +----------+                               +--+--+--+--+

   Where there are too few strips for all threads, each is cut in chunks of the other side as well.

   The parts follow from the number of threads, the results do not: those follow from k alone (product/product.h). */
#include "exec/gemm.h"

#include "exec/compute.h"
#include "exec/share.h"

typedef struct tile { /* of a product's result */
  int64_t row, rows, column, columns;
} tile;

enum { much_work = 64 << 10 }; /* bytes */

/* Larger than what caches near the cores hold. */
static bool is_far(const ax_gemm *g) {
  return (double)g->m * (double)g->k * (double)ax_dims_elems(g->batch_rank, g->batch) * (double)ax_dtype_bytes(g->dtype) > AX_PRODUCT_NEAR;
}

ax_product ax_gemm_product(const ax_gemm *g, int64_t rows, int64_t columns) {
  return (ax_product){.dtype = g->dtype, .m = rows, .n = columns, .k = g->k,
                      .a_row = g->transpose_a ? 1 : g->lda, .a_column = g->transpose_a ? g->lda : 1,
                      .b_row = g->transpose_b ? 1 : g->ldb, .b_column = g->transpose_b ? g->ldb : 1,
                      .c_row = g->ldc, .add = g->accumulate, .far = is_far(g)};
}

void ax_gemm_begin(const ax_gemm *g, int64_t index, int64_t *at) {
  at[0] = g->a_offset;
  at[1] = g->b_offset;
  at[2] = g->c_offset;
  for (uint32_t d = g->batch_rank; d-- > 0; index /= g->batch[d]) {
    int64_t i = d > 0 ? index % g->batch[d] : index;
    at[0] += i * g->a_stride[d];
    at[1] += i * g->b_stride[d];
    at[2] += i * g->c_stride[d];
  }
}

typedef struct factors { /* of a product of the batch, and where its result goes */
  const char *a, *b;
  char *c;
} factors;

static factors factors_of(const ax_frame *frame, const ax_instr *instr, const ax_product_kernels *k, int64_t index) {
  int64_t at[3];
  ax_gemm_begin(instr->gemm, index, at);
  return (factors){(const char *)ax_address(frame, &instr->refs[0]) + at[0] * k->number_bytes,
                   (const char *)ax_address(frame, &instr->refs[1]) + at[1] * k->number_bytes,
                   (char *)ax_address(frame, &instr->refs[2]) + at[2] * k->result_bytes};
}

/* Memory to work in; of a pool, where there is one and it is much. */
static void *take_work(ax_pool *pool, size_t bytes) {
  void *work = NULL;
  if (pool == NULL || bytes < much_work) return ax_alloc(bytes);
  return ax_pool_alloc(pool, bytes, &work) == AX_OK ? work : NULL;
}

static void give_work(ax_pool *pool, void *work, size_t bytes) {
  if (pool == NULL || bytes < much_work) ax_free(work);
  else if (work != NULL) ax_pool_free(pool, work, bytes);
}

/* Where the n-th term of a factor lies, beside the first. */
static int64_t term_at(const ax_gemm *g, const int64_t *step, int64_t n) {
  int64_t at = 0;
  for (uint32_t d = g->term_rank; d-- > 0; n /= g->terms[d]) at += n % g->terms[d] * step[d];
  return at;
}

/* Whether all products of the batch have the same right factors. */
static bool has_one_right(const ax_gemm *g) {
  for (uint32_t d = 0; d < g->batch_rank; d++)
    if (g->b_stride[d] != 0 && g->batch[d] > 1) return false;
  return true;
}

size_t ax_gemm_packed_bytes(const ax_product *p, const ax_product_way *way) {
  return way->packs_b && !way->turned && way->columns == p->n ? (size_t)(way->blocks * ax_product_panels(p, way) * way->panel_bytes) : 0;
}

/* A tile of each of some products of the batch. Right factors that all of them have are packed once. */
static ax_status product_tiles(const ax_frame *frame, const ax_instr *instr, int64_t begin, int64_t end, tile t, ax_pool *pool) {
  const ax_gemm *g = instr->gemm;
  ax_product p = ax_gemm_product(g, t.rows, t.columns);
  const ax_product_way way = ax_product_choose(&p, AX_REGISTER_BYTES);
  const ax_product_kernels *k = way.kernels;
  const int64_t terms = ax_dims_elems(g->term_rank, g->terms);
  const size_t each = end - begin > 1 && has_one_right(g) ? ax_gemm_packed_bytes(&p, &way) : 0;
  const size_t work_bytes = (way.work_bytes + 63) / 64 * 64, bytes = work_bytes + each * (size_t)terms;
  char *work = NULL;
  if (bytes > 0 && (work = take_work(pool, bytes)) == NULL) return AX_OUT_OF_MEMORY;
  for (int64_t i = begin; i < end; i++) {
    const factors f = factors_of(frame, instr, k, i);
    char *c = f.c + (t.row * p.c_row + t.column) * k->result_bytes;
    for (int64_t n = 0; n < terms; n++) {
      const char *a = f.a + (t.row * p.a_row + term_at(g, g->a_term, n)) * k->number_bytes;
      const char *b = f.b + (t.column * p.b_column + term_at(g, g->b_term, n)) * k->number_bytes;
      const ax_product_packed columns = {work + work_bytes + (size_t)n * each, (int64_t)each / way.blocks};
      p.add = g->accumulate || n > 0;
      if (each > 0 && i == begin) ax_product_pack_columns(&p, &way, b, 0, ax_product_panels(&p, &way), columns);
      if (each > 0) ax_product_run_parts(&p, &way, &(ax_product_factors){.a = a, .columns = columns}, c, work);
      else ax_product_run(&p, &way, a, b, c, work);
    }
  }
  give_work(pool, work, bytes);
  return AX_OK;
}

ax_status ax_gemm_compute(const ax_frame *frame, const ax_instr *instr, ax_pool *pool) {
  const ax_gemm *g = instr->gemm;
  const tile whole = {.rows = g->m, .columns = g->n};
  return product_tiles(frame, instr, 0, ax_dims_elems(g->batch_rank, g->batch), whole, pool);
}

/* --- The parts of a product --- */

/* Multiply-adds of f32: some eight microseconds of them, as of parts of kernels; and as what reading or writing a byte counts. */
static const double part_work = 8e5, byte_work = 2;
enum { most_parts = 256, most_tiles = 64, tile_edge = 32, pack_work = 8 };
enum { thread_parts = 8 }; /* for each thread, so that one that is late holds up little */
enum { few_rows = 28, short_run = 512, long_run = 1024 }; /* columns of b, that few rows read where they lie */

typedef struct tiling {
  int64_t rows, columns; /* tiles in each product ... */
  int64_t groups;        /* ... or, where that is 1, groups of products of the batch; in both cases rows * columns * groups parts */
} tiling;

/* What packing adds to each multiply-add, beside which a number that is packed is pack_work of them: the rows and the columns that meet in a tile are packed
   for it. */
static double with_packing(const ax_gemm *g, int64_t rows, int64_t columns) {
  return 1 + pack_work * ((double)rows / (double)g->m + (double)columns / (double)g->n);
}

/* Columns of a tile: of few rows so many that memory is read in long runs, where they do not lie transposed. */
static int64_t least_columns(const ax_gemm *g) {
  if (g->m > few_rows || g->transpose_b) return tile_edge;
  int64_t half = g->n / 2, quarter = g->n / 4, run = quarter < short_run ? short_run : quarter > long_run ? long_run : quarter;
  return half < run ? half : run;
}

/* Halves the larger side: until each thread has a tile, unless packing eats up what that brings, and then while that costs next to nothing. */
static tiling tiling_of_one(const ax_gemm *g, double wanted, int64_t threads) {
  tiling t = {1, 1, 1};
  while ((double)(t.rows * t.columns) < wanted) {
    const bool can_rows = 2 * t.rows * few_rows <= g->m, can_columns = 2 * t.columns * least_columns(g) <= g->n;
    const double by_rows = with_packing(g, 2 * t.rows, t.columns), by_columns = with_packing(g, t.rows, 2 * t.columns);
    const bool rows = can_rows && (by_rows < by_columns || !can_columns);
    if (!rows && !can_columns) break;
    if ((rows ? by_rows : by_columns) > (t.rows * t.columns < threads ? 1.7 : 1.03) * with_packing(g, t.rows, t.columns)) break;
    *(rows ? &t.rows : &t.columns) *= 2;
  }
  return t;
}

/* Of a multiply-add, beside one of f32. */
static double slowness(ax_dtype dtype) {
  return dtype == AX_F64 ? 2 : dtype == AX_BF16 ? 0.5 : ax_dtype_bytes(dtype) == 1 ? 0.25 : 1;
}

/* Multiply-adds of one product of the batch, as if they were of f32. */
static double one_work(const ax_gemm *g) {
  return (double)g->m * (double)g->n * (double)g->k * (double)ax_dims_elems(g->term_rank, g->terms) * slowness(g->dtype);
}

/* Parts that are worth somebody's while; by the product's shape alone. */
static double wanted_parts(const ax_gemm *g, double count) {
  const double m = (double)g->m, n = (double)g->n, k = (double)g->k;
  return (one_work(g) + (m * k + k * n + m * n) * ax_dtype_bytes(g->dtype) * byte_work) * count / part_work;
}

static tiling tiling_of(const ax_gemm *g, int64_t threads) {
  const double count = (double)ax_dims_elems(g->batch_rank, g->batch), wanted = wanted_parts(g, count), enough = (double)(thread_parts * threads);
  if (count >= most_tiles || wanted < 2 * count) {
    const double parts = wanted > most_parts ? most_parts : wanted;
    return (tiling){1, 1, (int64_t)(parts < count ? parts : count)};
  }
  tiling t = tiling_of_one(g, (wanted < enough ? wanted : enough) / count, threads);
  t.groups = (int64_t)count;
  return t;
}

uint32_t ax_gemm_parts(const ax_gemm *g) {
  const double wanted = wanted_parts(g, (double)ax_dims_elems(g->batch_rank, g->batch));
  return wanted < 2 ? 1 : wanted < most_parts ? (uint32_t)wanted : most_parts;
}

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* Where the index-th of `count` tiles begins, of so many rows or columns: a multiple of `edge`. */
static int64_t tile_begin(int64_t extent, int64_t edge, int64_t index, int64_t count) {
  return least(ceil_div(extent, edge) * index / count * edge, extent);
}

typedef struct gemm_run {
  const ax_frame *frame;
  const ax_instr *instr;
  ax_pool *pool;
  tiling tiles;
  int64_t row_edge;
} gemm_run;

static ax_status make_tile(const void *context, uint32_t part) {
  const gemm_run *r = context;
  const ax_gemm *g = r->instr->gemm;
  const tiling t = r->tiles;
  int64_t count = ax_dims_elems(g->batch_rank, g->batch), row = part / t.columns % t.rows, column = part % t.columns;
  int64_t group = part / (t.rows * t.columns);
  tile it = {.row = tile_begin(g->m, r->row_edge, row, t.rows), .column = tile_begin(g->n, tile_edge, column, t.columns)};
  it.rows = tile_begin(g->m, r->row_edge, row + 1, t.rows) - it.row;
  it.columns = tile_begin(g->n, tile_edge, column + 1, t.columns) - it.column;
  return product_tiles(r->frame, r->instr, count * group / t.groups, count * (group + 1) / t.groups, it, r->pool);
}

/* --- Strips --- */

static const double strips_work = 1 << 24; /* at least, so that packing in turns is worth waiting for each other twice */
enum {
  packed_bytes = 16 << 20, /* of a factor at a time */
  least_units = 4,         /* groups of rows, and panels of columns, that are worth it */
  long_strip = 224,        /* rows or columns: each number of the shared factor is read from far caches for so many; */
  short_strip = 112,       /* or for so many, where each thread would have less than two strips */
};

typedef struct striping { /* of one product, or of what is packed of it at a time */
  ax_product product;
  ax_product_way way;
  factors factors;
  ax_product_packed shared;        /* the factor that all need: columns, where strips are of rows; not packed where it lies well */
  ax_pool *pool;
  bool by_rows;
  int64_t units, packs;            /* of the shared factor: groups or panels; parts in which they are packed */
  int64_t strip_units, strips, chunks;
} striping;

static int64_t panel_columns(const striping *s) { return 2 * s->way.kernels->lanes; }
static bool packs_shared(const striping *s) { return s->by_rows ? s->way.packs_b : s->way.packs_a; }
static int64_t packed_at_once(const striping *s) { return s->by_rows || s->way.ahead == 0 ? 1 : s->way.ahead; } /* units */
static int64_t unit_bytes(const striping *s) { return s->by_rows ? s->way.panel_bytes : s->way.slot_bytes; }

/* The larger factor is cut, so that little is written to be read again; unless it has too few rows or columns for the threads. False: tiles are better. */
static bool suits_strips(striping *s, int64_t threads) {
  const int64_t groups = ax_product_groups(&s->product, &s->way), panels = ax_product_panels(&s->product, &s->way), enough = 2 * threads * least_units;
  if (s->way.turned || s->way.streams_b || groups < least_units || panels < least_units) return false;
  s->by_rows = s->product.n <= s->product.m;
  if ((s->by_rows ? groups : panels) < enough && (s->by_rows ? panels > groups : groups > panels)) s->by_rows = !s->by_rows;
  s->units = s->by_rows ? panels : groups;
  return true;
}

static ax_status pack_part(const void *context, uint32_t part) {
  const striping *s = context;
  const int64_t step = packed_at_once(s), steps = ceil_div(s->units, step);
  const int64_t begin = steps * part / s->packs * step, end = least(steps * (part + 1) / s->packs * step, s->units);
  if (s->by_rows) ax_product_pack_columns(&s->product, &s->way, s->factors.b, begin, end, s->shared);
  else ax_product_pack_rows(&s->product, &s->way, s->factors.a, begin, end, s->shared);
  return AX_OK;
}

typedef struct range {
  int64_t begin, end;
} range;

static range part_of(int64_t count, int64_t index, int64_t parts) { return (range){count * index / parts, count * (index + 1) / parts}; }

static ax_status make_strip(const void *context, uint32_t part) {
  const striping *s = context;
  const ax_product_kernels *k = s->way.kernels;
  const range strip = part_of(s->strip_units, part % s->strips, s->strips), chunk = part_of(s->units, part / s->strips, s->chunks);
  const range groups = s->by_rows ? strip : chunk, panels = s->by_rows ? chunk : strip;
  const int64_t row = groups.begin * s->way.rows, column = panels.begin * panel_columns(s);
  ax_product p = s->product;
  p.m = least(groups.end * s->way.rows, p.m) - row;
  p.n = least(panels.end * panel_columns(s), p.n) - column;
  ax_product_factors f = {.a = s->factors.a + row * p.a_row * k->number_bytes, .b = s->factors.b + column * p.b_column * k->number_bytes};
  if (s->shared.packed != NULL) *(s->by_rows ? &f.columns : &f.rows) = (ax_product_packed){s->shared.packed + chunk.begin * unit_bytes(s), s->shared.block};
  const size_t bytes = ax_product_parts_bytes(&p, &s->way, &f);
  void *work = bytes > 0 ? take_work(s->pool, bytes) : NULL;
  if (bytes > 0 && work == NULL) return AX_OUT_OF_MEMORY;
  ax_product_run_parts(&p, &s->way, &f, s->factors.c + (row * p.c_row + column) * k->result_bytes, work);
  give_work(s->pool, work, bytes);
  return AX_OK;
}

/* Several strips for each thread, of some groups or panels each; as many for each thread, where they are few. */
static void cut_strips(striping *s, int64_t threads) {
  s->strip_units = s->by_rows ? ax_product_groups(&s->product, &s->way) : ax_product_panels(&s->product, &s->way);
  const int64_t extent = s->by_rows ? s->product.m : s->product.n;
  s->strips = most(1, least(most(extent / long_strip, least(extent / short_strip, 2 * threads)), thread_parts * threads));
  if (s->strips < 2 * threads) s->strips = least(most(s->strip_units / 2, 1), 2 * threads);
  if (s->strips > threads) s->strips -= s->strips % threads;
  s->chunks = most(least(2 * threads / s->strips, s->units / least_units), 1);
  s->packs = least(thread_parts * threads, ceil_div(s->units, packed_at_once(s)));
}

/* What all need in turns, each of as much as is packed at a time. */
static ax_status make_striped(ax_execution *run, ax_seat *seat, striping *s) {
  const ax_product_kernels *k = s->way.kernels;
  const int64_t unit = s->by_rows ? panel_columns(s) : s->way.rows, all = s->by_rows ? s->product.n : s->product.m, step = packed_at_once(s);
  const bool packs = packs_shared(s);
  const int64_t fit = packs ? most(packed_bytes / (s->way.blocks * unit_bytes(s)), least_units) : s->units, turns = ceil_div(s->units, fit);
  const int64_t units = ceil_div(ceil_div(s->units, step), turns) * step;
  const size_t bytes = packs ? (size_t)(units * s->way.blocks * unit_bytes(s)) : 0;
  ax_status status = AX_OK;
  s->shared = (ax_product_packed){.packed = packs ? take_work(s->pool, bytes) : NULL, .block = units * unit_bytes(s)};
  if (packs && s->shared.packed == NULL) return AX_OUT_OF_MEMORY;
  for (int64_t begin = 0; begin < all && status == AX_OK; begin += units * unit) {
    *(s->by_rows ? &s->product.n : &s->product.m) = least(units * unit, all - begin);
    s->units = ceil_div(least(units * unit, all - begin), unit);
    cut_strips(s, run->threads);
    if (packs) status = ax_share_parts(run, seat, pack_part, s, (uint32_t)s->packs);
    if (status == AX_OK) status = ax_share_parts(run, seat, make_strip, s, (uint32_t)(s->strips * s->chunks));
    *(s->by_rows ? &s->factors.b : &s->factors.a) += units * unit * (s->by_rows ? s->product.b_column : s->product.a_row) * k->number_bytes;
    s->factors.c += units * unit * (s->by_rows ? 1 : s->product.c_row) * k->result_bytes;
  }
  give_work(s->pool, s->shared.packed, bytes);
  return status;
}

ax_status ax_gemm_run(ax_execution *run, ax_seat *seat, const ax_frame *frame, const ax_instr *instr) {
  const ax_gemm *g = instr->gemm;
  ax_pool *pool = &run->executable->runtime->pool;
  if (!run->threaded || instr->parts <= 1) return ax_gemm_compute(frame, instr, pool);
  const int64_t count = ax_dims_elems(g->batch_rank, g->batch);
  striping s = {.product = ax_gemm_product(g, g->m, g->n), .pool = pool};
  s.way = ax_product_choose(&s.product, AX_REGISTER_BYTES);
  if (one_work(g) < strips_work || count >= most_tiles || g->term_rank > 0 || !suits_strips(&s, run->threads)) {
    const gemm_run tiles = {frame, instr, pool, tiling_of(g, run->threads), s.way.rows};
    return ax_share_parts(run, seat, make_tile, &tiles, (uint32_t)(tiles.tiles.rows * tiles.tiles.columns * tiles.tiles.groups));
  }
  ax_status status = AX_OK;
  for (int64_t i = 0; i < count && status == AX_OK; i++) {
    striping one = s;
    one.factors = factors_of(frame, instr, s.way.kernels, i);
    status = make_striped(run, seat, &one);
  }
  return status;
}
