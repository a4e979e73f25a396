/* Tiles of products, and the memory that the work on one takes. run/gemm.c has the idea. */
#include "code/tiles.h"

#include "code/split.h"
#include "machine/caches.h"

/* least speed-up by more threads; most extra packing that finer parts may cost, which make the wait for a late thread shorter.
   */
static const double least_gain = 1.15, finer_cost = 1.01;
enum {
  pack_work = 8,     /* for packing a number, in multiply-adds */
  most_tiles = 64,   /* products in a batch that are enough parts by themselves */
  thread_parts = 8,  /* most parts for each thread */
  whole_parts = 4,   /* products of a batch for each thread from which on threads may have different numbers of them */
  row_edge = 4,
  few_rows = 28, short_run = 512, long_run = 1024, least_run = 32 /* columns of b, read in place by few rows; of any tile */
};

/* The cost of a multiply-add together with its share of packing: each tile packs its rows and columns, unless they are packed
   already. */
static double with_packing(const ax_gemm *g, ax_tiling t) {
  return 1 + pack_work * ((g->packed ? 0 : (double)t.rows / (double)g->m) + (double)t.columns / (double)g->n);
}

/* Least columns of a tile. If there are few rows, and b does not lie transposed, a tile has so many columns that memory is read
   in long runs. */
static int64_t least_columns(const ax_gemm *g) {
  const int64_t line = AX_LINE_BYTES / (int64_t)ax_dtype_bytes(g->dtype); /* tiles end at cache lines */
  if (g->m > few_rows || g->transpose_b || g->packed) return line > least_run ? line : least_run;
  int64_t half = g->n / 2, quarter = g->n / 4, run = quarter < short_run ? short_run : quarter > long_run ? long_run : quarter;
  return half < run ? half : run;
}

/* Cuts the product into `parts` tiles so that packing costs least. False: they would be too small. If nothing is packed, tiles
   are whole rows, so that each thread's results are contiguous; otherwise prefetching at the end of a row would fetch another
   thread's lines. */
static bool cut_into(const ax_gemm *g, bool plain, int64_t parts, ax_tiling *t) {
  const int64_t run = least_columns(g);
  bool found = false;
  for (int64_t rows = 1; rows <= parts; rows++) {
    const ax_tiling one = {rows, parts / rows, 1, 1, 1};
    if (rows * one.columns != parts || (rows > 1 && rows * few_rows > g->m) || (one.columns > 1 && one.columns * run > g->n))
      continue;
    if (!found || plain || with_packing(g, one) < with_packing(g, *t)) *t = one;
    found = true;
  }
  return found;
}

/* Gives a tile to each thread, or to as many threads as gain by it; several tiles each, if that costs next to nothing. */
static ax_tiling tiling_of_one(const ax_gemm *g, bool plain, double wanted, int64_t threads) {
  ax_tiling t = {1, 1, 1, 1, 1}, trial;
  const double alone = with_packing(g, t);
  int64_t parts = wanted < (double)threads ? (int64_t)wanted : threads;
  while (parts > 1 && !(cut_into(g, plain, parts, &trial) && (double)parts * alone > least_gain * with_packing(g, trial)))
    parts /= 2;
  if (parts > 1) t = trial;
  while (parts >= threads && 2 * (double)parts <= wanted && 2 * parts <= thread_parts * threads &&
         cut_into(g, plain, 2 * parts, &trial) && with_packing(g, trial) <= finer_cost * with_packing(g, t)) {
    parts *= 2;
    t = trial;
  }
  return t;
}

/* Cuts a batch into groups of whole products, if there are enough of them or each thread gets equally many. Otherwise it cuts
   each product. */
ax_tiling ax_gemm_tiling(const ax_gemm *g, bool plain, int64_t threads) {
  const int64_t count = ax_dims_elems(g->batch_rank, g->batch);
  const double wanted = ax_gemm_wanted_parts(g, (double)count),
               parts = wanted < (double)(thread_parts * threads) ? wanted : (double)(thread_parts * threads);
  if (count >= most_tiles || wanted < 2 * (double)count) {
    const int64_t groups = parts < (double)count ? (int64_t)parts : count;
    return (ax_tiling){1, 1, groups > threads ? groups / threads * threads : groups, 1, 1};
  }
  ax_tiling t = {1, 1, 1, 1, 1};
  if (count < whole_parts * threads && count % threads != 0) t = tiling_of_one(g, plain, wanted / (double)count, threads);
  t.groups = count;
  return t;
}

void ax_gemm_cut_finer(const ax_gemm *g, int64_t bytes, ax_tiling *t) {
  const int64_t item = (int64_t)ax_dtype_bytes(g->dtype);
  while (g->m / t->rows * (g->n / t->columns) * item > bytes && 2 * t->rows * few_rows <= g->m) t->rows *= 2;
}

/* The beginning of tile `index` of `count`, in `extent` rows or columns: a multiple of `edge`. */
int64_t ax_tile_begin(int64_t extent, int64_t edge, int64_t index, int64_t count) {
  return ax_least(ax_ceil_div(extent, edge) * index / count * edge, extent);
}

/* Chooses the numbers of which a tile's rows and columns are multiples, so that the last tiles are hardly slower than others and
   cache lines are whole. */
void ax_gemm_edges(const ax_gemm *g, const ax_product_way *way, ax_tiling *t) {
  const int64_t lanes = way->kernels->lanes, line = AX_LINE_BYTES / way->kernels->number_bytes;
  const int64_t step = way->kernels->row_step > row_edge ? 2 * way->kernels->row_step : row_edge;
  t->row_edge = way->turned ? 2 * lanes : way->narrow ? way->rows : step;
  t->column_edge = g->packed        ? ax_product_panel_columns(way)
                   : way->turned    ? way->rows
                   : way->streams_b ? 2 * lanes
                   : lanes > line   ? lanes
                                    : line;
}

/* --- The memory of a tile --- */

enum { most_packed = 16 << 20 }; /* bytes */

/* Says whether all products of the batch have the same right factors. */
static bool has_one_right(const ax_gemm *g) {
  for (uint32_t d = 0; d < g->batch_rank; d++)
    if (g->b_stride[d] != 0 && g->batch[d] > 1) return false;
  return true;
}

/* Chooses the pieces of k for a long sum. Returns the bytes of its three tiles. */
static size_t plan_long_sum(ax_tile_room *r) {
  enum { line = AX_LINE_BYTES };
  const ax_product *p = &r->product;
  const int64_t block = r->way.block, fit = AX_RUN_OF_NUMBERS / block;
  r->piece = r->way.blocks == 1 ? p->k : block * (fit > 1 ? fit : 1);
  r->sums_bytes = ax_ceil_div(p->m * p->n * r->way.kernels->result_bytes, line) * line;
  return 3 * (size_t)r->sums_bytes;
}

void ax_gemm_tile_room(const ax_gemm *g, int64_t rows, int64_t columns, int64_t products, ax_tile_room *out) {
  const int64_t terms = ax_dims_elems(g->term_rank, g->terms);
  out->product = ax_gemm_product(g, rows, columns);
  out->way = ax_gemm_way(g, &out->product);
  out->is_long = (terms > AX_RUN_OF_TERMS || (double)g->k * (double)terms > AX_PRODUCT_LONG) &&
                 (g->dtype == AX_F32 || g->dtype == AX_F64) && g->k > 0;
  out->each = !g->packed && products > 1 && has_one_right(g) ? ax_product_packed_bytes(&out->way) : 0;
  if ((double)out->each * (double)terms > most_packed) out->each = 0;
  out->packed_at = (out->way.work_bytes + 63) / 64 * 64;
  out->sums_at = out->packed_at + out->each * (size_t)terms;
  out->bytes = out->sums_at + (out->is_long ? plan_long_sum(out) : 0);
}

static size_t tile_bytes(const ax_gemm *g, int64_t rows, int64_t columns, int64_t products) {
  ax_tile_room r;
  if (rows == 0 || columns == 0) return 0;
  ax_gemm_tile_room(g, rows, columns, products, &r);
  return r.bytes;
}

size_t ax_gemm_room_bytes(const ax_gemm *g, uint32_t threads) {
  const int64_t count = ax_dims_elems(g->batch_rank, g->batch);
  const size_t whole = tile_bytes(g, g->m, g->n, count);
  if (threads <= 1 || ax_gemm_parts(g) <= 1) return whole;
  const ax_product all = ax_gemm_product(g, g->m, g->n);
  const ax_product_way way = ax_gemm_way(g, &all);
  ax_tiling t = ax_gemm_tiling(g, way.plain, threads);
  size_t most = 0;
  ax_gemm_edges(g, &way, &t);
  for (int64_t row = 0; row < t.rows; row++)
    for (int64_t column = 0; column < t.columns; column++) {
      const int64_t rows = ax_tile_begin(g->m, t.row_edge, row + 1, t.rows) - ax_tile_begin(g->m, t.row_edge, row, t.rows);
      const int64_t columns = ax_tile_begin(g->n, t.column_edge, column + 1, t.columns) - ax_tile_begin(g->n, t.column_edge, column, t.columns);
      const size_t bytes = tile_bytes(g, rows, columns, ax_ceil_div(count, t.groups));
      if (bytes > most) most = bytes;
    }
  most = (most + 63) / 64 * 64 * threads;
  return most > whole ? most : whole;
}
