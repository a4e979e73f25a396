/* Products, whole or in parts that several threads make.

   One thread makes the whole as one. Several make small products tile by tile, each for itself; of large ones they first pack the rows, each some of
   them, and then take strips of columns, whose own columns they pack:

                  strips
               +--+--+--+--+
     a, packed |  |  |  |  |    chunks of rows, where there are too few strips
     by all    +--+--+--+--+
               |  |  |  |  |
               +--+--+--+--+

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

/* A tile of each of some products of the batch. */
static ax_status product_tiles(const ax_frame *frame, const ax_instr *instr, int64_t begin, int64_t end, tile t, ax_pool *pool) {
  const ax_product p = ax_gemm_product(instr->gemm, t.rows, t.columns);
  const ax_product_way way = ax_product_choose(&p, AX_REGISTER_BYTES);
  const ax_product_kernels *k = way.kernels;
  void *work = NULL;
  if (way.work_bytes > 0 && (work = take_work(pool, way.work_bytes)) == NULL) return AX_OUT_OF_MEMORY;
  for (int64_t i = begin; i < end; i++) {
    const factors f = factors_of(frame, instr, k, i);
    ax_product_run(&p, &way, f.a + t.row * p.a_row * k->number_bytes, f.b + t.column * p.b_column * k->number_bytes,
                   f.c + (t.row * p.c_row + t.column) * k->result_bytes, work);
  }
  give_work(pool, work, way.work_bytes);
  return AX_OK;
}

ax_status ax_gemm_compute(const ax_frame *frame, const ax_instr *instr, ax_pool *pool) {
  const ax_gemm *g = instr->gemm;
  const tile whole = {.rows = g->m, .columns = g->n};
  return product_tiles(frame, instr, 0, ax_dims_elems(g->batch_rank, g->batch), whole, pool);
}

/* --- The parts of a product --- */

/* Multiply-adds of f32: some tens of microseconds of them; and as what reading or writing a byte counts. */
static const double part_work = 1 << 21, byte_work = 2;
enum { most_parts = 256, most_tiles = 64, tile_edge = 32 };
enum { few_rows = 28, short_run = 256, long_run = 512 }; /* columns of b, that few rows read where they lie */

typedef struct tiling {
  int64_t rows, columns; /* tiles in each product ... */
  int64_t groups;        /* ... or, where that is 1, groups of products of the batch; in both cases rows * columns * groups parts */
} tiling;

/* What a library does for an element of a tile besides its multiply-adds: it packs the rows and the columns that meet in the tile. */
static double packing(const ax_gemm *g, int64_t rows, int64_t columns) {
  return (double)rows / (double)g->m + (double)columns / (double)g->n;
}

/* Columns of a tile: of few rows so many that memory is read in long runs. */
static int64_t least_columns(const ax_gemm *g) {
  if (g->m > few_rows) return tile_edge;
  int64_t half = g->n / 2, eighth = g->n / 8, run = eighth < short_run ? short_run : eighth > long_run ? long_run : eighth;
  return half < run ? half : run;
}

/* Halves the larger side until there are enough tiles, or packing would cost more than a tenth or so of the product. */
static tiling tiling_of_one(const ax_gemm *g, double wanted) {
  tiling t = {1, 1, 1};
  double most = 1.25 * packing(g, 1, 1);
  if (most < 1.0 / 85) most = 1.0 / 85;
  while ((double)(t.rows * t.columns) < wanted) {
    double by_rows = packing(g, 2 * t.rows, t.columns), by_columns = packing(g, t.rows, 2 * t.columns);
    if ((by_rows < by_columns ? by_rows : by_columns) > most) break;
    if (by_rows >= by_columns && 2 * t.columns * least_columns(g) > g->n) break;
    *(by_rows < by_columns ? &t.rows : &t.columns) *= 2;
  }
  return t;
}

/* Of a multiply-add, beside one of f32. */
static double slowness(ax_dtype dtype) {
  return dtype == AX_F64 ? 2 : dtype == AX_BF16 ? 0.5 : ax_dtype_bytes(dtype) == 1 ? 0.25 : 1;
}

/* Multiply-adds of one product of the batch, as if they were of f32. */
static double one_work(const ax_gemm *g) { return (double)g->m * (double)g->n * (double)g->k * slowness(g->dtype); }

/* By the product's shape alone. */
static tiling tiling_of(const ax_gemm *g) {
  double count = (double)ax_dims_elems(g->batch_rank, g->batch);
  double m = (double)g->m, n = (double)g->n, k = (double)g->k;
  double work = one_work(g) + (m * k + k * n + m * n) * ax_dtype_bytes(g->dtype) * byte_work, wanted = work * count / part_work;
  if (wanted < 2) return (tiling){1, 1, 1};
  if (count >= most_tiles || work < 2 * part_work) {
    if (wanted > most_parts) wanted = most_parts;
    return (tiling){1, 1, (int64_t)(wanted < count ? wanted : count)};
  }
  tiling t = tiling_of_one(g, (wanted < most_tiles ? wanted : most_tiles) / count);
  t.groups = (int64_t)count;
  return t;
}

uint32_t ax_gemm_parts(const ax_gemm *g) {
  tiling t = tiling_of(g);
  return (uint32_t)(t.rows * t.columns * t.groups);
}

/* Where the index-th of `count` tiles begins. */
static int64_t tile_begin(int64_t extent, int64_t index, int64_t count) {
  return index == count ? extent : extent * index / count / tile_edge * tile_edge;
}

typedef struct gemm_run {
  const ax_frame *frame;
  const ax_instr *instr;
  ax_pool *pool;
  tiling tiles;
} gemm_run;

static ax_status make_tile(const void *context, uint32_t part) {
  const gemm_run *r = context;
  const ax_gemm *g = r->instr->gemm;
  const tiling t = r->tiles;
  int64_t count = ax_dims_elems(g->batch_rank, g->batch), row = part / t.columns % t.rows, column = part % t.columns;
  int64_t group = part / (t.rows * t.columns);
  tile it = {.row = tile_begin(g->m, row, t.rows), .column = tile_begin(g->n, column, t.columns)};
  it.rows = tile_begin(g->m, row + 1, t.rows) - it.row;
  it.columns = tile_begin(g->n, column + 1, t.columns) - it.column;
  return product_tiles(r->frame, r->instr, count * group / t.groups, count * (group + 1) / t.groups, it, r->pool);
}

/* --- Strips --- */

static const double strips_work = 1 << 25; /* at least, so that packing in turns is worth waiting for each other twice */
enum {
  packed_bytes = 16 << 20, /* of a at a time */
  least_groups = 4,        /* of rows */
  least_panels = 8,        /* of columns */
  thread_parts = 8,        /* for each thread, so that one that is late holds up little */
};

typedef struct striping { /* of one product, or of as many of its rows as are packed at a time */
  ax_product product;
  ax_product_way way;
  factors factors;
  ax_product_rows rows;
  ax_pool *pool;
  int64_t groups, packs;           /* of rows; parts in which they are packed */
  int64_t chunks, strips, columns; /* columns: of a strip, but perhaps the last */
} striping;

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Of some hundred rows or more, and as many columns; of which so many groups are packed at a time. */
static int64_t striped_groups(const ax_product *p, const ax_product_way *way) {
  const int64_t groups = ceil_div(p->m, way->rows), most = packed_bytes / (way->blocks * way->slot_bytes + 1);
  if (!way->packs_a || !way->packs_b || groups < least_groups || most < least(groups, 2 * way->ahead + least_groups)) return 0;
  if (p->n < least_panels * 2 * way->kernels->lanes) return 0;
  const int64_t steps = ceil_div(groups, way->ahead), most_at_once = most / way->ahead;
  return groups <= most ? groups : ceil_div(steps, ceil_div(steps, most_at_once)) * way->ahead;
}

static ax_status pack_part(const void *context, uint32_t part) {
  const striping *s = context;
  const int64_t steps = ceil_div(s->groups, s->way.ahead), begin = steps * part / s->packs, end = steps * (part + 1) / s->packs;
  ax_product_pack_rows(&s->product, &s->way, s->factors.a, begin * s->way.ahead, least(end * s->way.ahead, s->groups), s->rows);
  return AX_OK;
}

static ax_status make_strip(const void *context, uint32_t part) {
  const striping *s = context;
  const ax_product_kernels *k = s->way.kernels;
  const int64_t chunk = part / s->strips, group = s->groups * chunk / s->chunks, next = s->groups * (chunk + 1) / s->chunks;
  const int64_t column = part % s->strips * s->columns, row = group * s->way.rows;
  ax_product p = s->product;
  p.n = least(s->columns, p.n - column);
  p.m = least(next * s->way.rows, p.m) - row;
  void *work = take_work(s->pool, s->way.b_bytes);
  if (work == NULL) return AX_OUT_OF_MEMORY;
  const ax_product_rows rows = {s->rows.packed + group * s->way.slot_bytes, s->rows.block};
  ax_product_run_rows(&p, &s->way, rows, s->factors.b + column * p.b_column * k->number_bytes, s->factors.c + (row * p.c_row + column) * k->result_bytes,
                        work);
  give_work(s->pool, work, s->way.b_bytes);
  return AX_OK;
}

/* Whole panels, and several parts for each thread. */
static void cut_strips(striping *s, int64_t threads) {
  const int64_t width = 2 * s->way.kernels->lanes, panels = ceil_div(s->product.n, width), wanted = thread_parts * threads;
  s->columns = (panels > wanted ? panels / wanted : 1) * width;
  s->strips = ceil_div(s->product.n, s->columns);
  s->chunks = least(ceil_div(wanted / 2, s->strips), ceil_div(s->groups, least_groups));
  s->packs = least(wanted, ceil_div(s->groups, s->way.ahead));
}

static ax_status make_striped(ax_execution *run, ax_seat *seat, striping *s, int64_t groups) {
  const ax_product_kernels *k = s->way.kernels;
  const int64_t rows = groups * s->way.rows, m = s->product.m;
  const size_t bytes = (size_t)(groups * s->way.blocks * s->way.slot_bytes);
  ax_status status = AX_OK;
  s->rows = (ax_product_rows){.packed = take_work(s->pool, bytes), .block = groups * s->way.slot_bytes};
  if (s->rows.packed == NULL) return AX_OUT_OF_MEMORY;
  for (int64_t row = 0; row < m && status == AX_OK; row += rows) {
    s->product.m = least(rows, m - row);
    s->groups = ceil_div(s->product.m, s->way.rows);
    cut_strips(s, run->threads);
    status = ax_share_parts(run, seat, pack_part, s, (uint32_t)s->packs);
    if (status == AX_OK) status = ax_share_parts(run, seat, make_strip, s, (uint32_t)(s->strips * s->chunks));
    s->factors.a += rows * s->product.a_row * k->number_bytes;
    s->factors.c += rows * s->product.c_row * k->result_bytes;
  }
  give_work(s->pool, s->rows.packed, bytes);
  return status;
}

ax_status ax_gemm_run(ax_execution *run, ax_seat *seat, const ax_frame *frame, const ax_instr *instr) {
  const ax_gemm *g = instr->gemm;
  ax_pool *pool = &run->executable->runtime->pool;
  if (!run->threaded || instr->parts <= 1) return ax_gemm_compute(frame, instr, pool);
  const int64_t count = ax_dims_elems(g->batch_rank, g->batch);
  striping s = {.product = ax_gemm_product(g, g->m, g->n), .pool = pool};
  s.way = ax_product_choose(&s.product, AX_REGISTER_BYTES);
  const int64_t groups = one_work(g) < strips_work || count >= most_tiles ? 0 : striped_groups(&s.product, &s.way);
  if (groups == 0) return ax_share_parts(run, seat, make_tile, &(gemm_run){frame, instr, pool, tiling_of(g)}, instr->parts);
  ax_status status = AX_OK;
  for (int64_t i = 0; i < count && status == AX_OK; i++) {
    striping one = s;
    one.factors = factors_of(frame, instr, s.way.kernels, i);
    status = make_striped(run, seat, &one, groups);
  }
  return status;
}
