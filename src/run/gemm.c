/* Products, whole or in parts that several threads make.

   One thread makes the whole as one. Several make tiles of it, each for itself: whoever makes a tile packs the rows and the columns
   that meet in it, though others pack some of them too. To read what another core has just packed takes longer than to pack it, by
   far: some 40 ns a line of the cache. So tiles are as large as they can be, one or two for each thread:

         b | | |
        +---+---+
     a  |   |   |     2 x 2 tiles: a is packed twice, so is b
        +---+---+
        |   |   |
        +---+---+

   The parts follow from the number of threads, the results do not: those follow from k alone (product/product.h). */
#include "run/gemm.h"

#include <math.h>
#include <string.h>

#include "code/split.h"
#include "machine/caches.h"
#include "run/compute.h"
#include "run/share.h"

typedef struct tile { /* of a product's result */
  int64_t row, rows, column, columns;
} tile;

enum { much_work = 64 << 10 }; /* bytes */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

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

typedef struct factors { /* a product of the batch: addresses of its factors and of its result */
  const char *a, *b;
  char *c;
} factors;

/* refs: of a, b and c. */
static factors factors_of(const ax_activation *activation, const ax_ref *refs, const ax_gemm *g, const ax_product_kernels *k,
                          int64_t index) {
  int64_t at[3];
  ax_gemm_begin(g, index, at);
  return (factors){(const char *)ax_address(activation, &refs[0]) + at[0] * k->number_bytes,
                   (const char *)ax_address(activation, &refs[1]) + at[1] * k->number_bytes,
                   (char *)ax_address(activation, &refs[2]) + at[2] * ax_made_bytes(k, g->rounds)};
}

/* Allocates memory to work in; from the pool, if there is one and the size is large. */
static void *take_work(ax_pool *pool, size_t bytes) {
  void *work = NULL;
  if (pool == NULL || bytes < much_work) return ax_alloc(bytes);
  return ax_pool_alloc(pool, bytes, &work) == AX_OK ? work : NULL;
}

static void give_work(ax_pool *pool, void *work, size_t bytes) {
  if (pool == NULL || bytes < much_work) ax_free(work);
  else if (work != NULL) ax_pool_free(pool, work, bytes);
}

/* Distance in elements from the first term of a factor to the n-th. */
static int64_t term_at(const ax_gemm *g, const int64_t *step, int64_t n) {
  int64_t at = 0;
  for (uint32_t d = g->term_rank; d-- > 0; n /= g->terms[d]) at += n % g->terms[d] * step[d];
  return at;
}

/* Says whether all products of the batch have the same right factors. */
static bool has_one_right(const ax_gemm *g) {
  for (uint32_t d = 0; d < g->batch_rank; d++)
    if (g->b_stride[d] != 0 && g->batch[d] > 1) return false;
  return true;
}

/* Where a tile is made. */
typedef struct target {
  char *c;       /* of one product of the batch; NULL: where its operand says */
  int64_t c_row; /* then: elements from row to row */
  bool add;      /* to what is there */
} target;

/* --- Terms --- */

enum {
  run_of_terms = 64, run_of_numbers = 4096, /* terms and numbers of a run: a run is added up as usual, runs are added exactly */
  most_packed = 16 << 20                    /* bytes */
};

/* State for a tile of the products of a batch, on one thread. */
typedef struct tile_work {
  const ax_gemm *gemm;
  tile tile;
  ax_product product;
  ax_product_way way;
  char *work, *packed; /* packed: right factors shared by all products, `each` bytes a term; none if `each` is 0 */
  size_t each;
  int64_t piece; /* length along k that is multiplied at once: whole blocks, or all of k */
  char *sums; /* long sums: three tiles in whole cache lines: sum of a run, total, and what the total lacks */
  int64_t sums_bytes; /* of each tile */
} tile_work;

#define NUMBER float
#define KIND(name) name##_f32
#include "run/long_sum_template.h"
#define NUMBER double
#define KIND(name) name##_f64
#include "run/long_sum_template.h"

/* Makes the n-th term of the product with these factors into c: the whole term, or its piece from step `at` on. packs: the right
   factors are not packed yet. */
static void make_term(tile_work *w, const factors *f, int64_t n, int64_t at, bool packs, char *c) {
  const ax_gemm *g = w->gemm;
  const ax_product *p = &w->product;
  const int64_t bytes = w->way.kernels->number_bytes;
  const char *a = f->a + (w->tile.row * p->a_row + at * p->a_column + term_at(g, g->a_term, n)) * bytes;
  const char *b = f->b + term_at(g, g->b_term, n) * bytes;
  if (g->packed) {
    ax_product_run_packed(p, &w->way, a, b + ax_product_packed_at(&w->way, at) + ax_product_panel_at(&w->way, w->tile.column), c,
                          w->work);
    return;
  }
  b += (w->tile.column * p->b_column + at * p->b_row) * bytes;
  if (w->each == 0) {
    ax_product_run(p, &w->way, a, b, c, w->work);
    return;
  }
  char *packed = w->packed + (size_t)n * w->each + ax_product_packed_at(&w->way, at);
  if (packs) ax_product_pack(p, &w->way, b, packed);
  ax_product_run_packed(p, &w->way, a, packed, c, w->work);
}

static void add_run(const tile_work *w, const char *run, char *total, char *lack) {
  const int64_t count = w->product.m * w->product.n;
  (w->product.dtype == AX_F32 ? add_run_f32 : add_run_f64)(total, lack, run, count);
}

static void put_sums(const tile_work *w, char *c, int64_t c_row, bool add, const char *total, const char *lack) {
  (w->product.dtype == AX_F32 ? put_sums_f32 : put_sums_f64)(c, total, lack, &w->product, c_row, add);
}

/* Adds many terms, or terms of many numbers, in runs, and adds the runs exactly, so that sums do not become worse with their
   length. */
static void make_long_sum(tile_work *w, const factors *f, int64_t terms, bool packs, const target *to, char *c) {
  ax_product *p = &w->product;
  const int64_t c_row = p->c_row;
  char *run = w->sums, *total = run + w->sums_bytes, *lack = total + w->sums_bytes;
  const int64_t k = w->gemm->k, fit = run_of_numbers / w->piece, most = least(fit > 1 ? fit : 1, run_of_terms);
  int64_t in_run = 0;
  memset(run, 0, 3 * (size_t)w->sums_bytes);
  p->c_row = p->n;
  for (int64_t n = 0; n < terms; n++)
    for (int64_t at = 0; at < k; at += w->piece) {
      p->k = least(k - at, w->piece);
      w->way.blocks = ax_ceil_div(p->k, w->way.block);
      p->add = in_run > 0;
      make_term(w, f, n, at, packs, run);
      if (++in_run < most && (n + 1 < terms || at + p->k < k)) continue;
      add_run(w, run, total, lack);
      in_run = 0;
    }
  put_sums(w, c, c_row, to->add, total, lack);
  p->c_row = c_row;
}

/* Sets the factors to prefetch: those of the tile in the next product of the batch, if they differ and are far. */
static void look_ahead(tile_work *w, const factors *now, const ax_activation *activation, const ax_ref *refs, int64_t index) {
  ax_product *p = &w->product;
  const ax_gemm *g = w->gemm;
  const int64_t bytes = w->way.kernels->number_bytes;
  p->next_a = p->next_b = NULL;
  if (!p->far || g->term_rank > 0 || index + 1 == ax_dims_elems(g->batch_rank, g->batch)) return;
  const factors next = factors_of(activation, refs, g, w->way.kernels, index + 1);
  if (next.a != now->a) p->next_a = next.a + w->tile.row * p->a_row * bytes;
  if (next.b != now->b && !g->packed) p->next_b = next.b + w->tile.column * p->b_column * bytes;
}

/* Chooses the pieces of k for a long sum. Returns the bytes of its three tiles. */
static size_t plan_long_sum(tile_work *w) {
  enum { line = AX_LINE_BYTES };
  const ax_product *p = &w->product;
  const int64_t block = w->way.block, fit = run_of_numbers / block;
  w->piece = w->way.blocks == 1 ? p->k : block * (fit > 1 ? fit : 1);
  w->sums_bytes = ax_ceil_div(p->m * p->n * w->way.kernels->result_bytes, line) * line;
  return 3 * (size_t)w->sums_bytes;
}

/* Makes one tile in each of some products of the batch. Right factors shared by all of them are packed once. */
static ax_status product_tiles(const ax_activation *activation, const ax_ref *refs, const ax_gemm *g, int64_t begin, int64_t end, tile t,
                               const target *to, ax_pool *pool) {
  if (t.rows == 0 || t.columns == 0) return AX_OK;
  tile_work w = {.gemm = g, .tile = t, .product = ax_gemm_product(g, t.rows, t.columns)};
  if (to->c != NULL) w.product.c_row = to->c_row;
  w.product.add = to->add;
  w.way = ax_gemm_way(g, &w.product);
  const ax_product_kernels *k = w.way.kernels;
  const int64_t terms = ax_dims_elems(g->term_rank, g->terms);
  const bool is_long = (terms > run_of_terms || (double)g->k * (double)terms > AX_PRODUCT_LONG) &&
                       (g->dtype == AX_F32 || g->dtype == AX_F64) && g->k > 0;
  if (!g->packed && end - begin > 1 && has_one_right(g)) w.each = ax_product_packed_bytes(&w.way);
  if ((double)w.each * (double)terms > most_packed) w.each = 0;
  const size_t work_bytes = (w.way.work_bytes + 63) / 64 * 64, packed_bytes = w.each * (size_t)terms;
  const size_t bytes = work_bytes + packed_bytes + (is_long ? plan_long_sum(&w) : 0);
  char *memory = NULL;
  if (bytes > 0 && (memory = take_work(pool, bytes)) == NULL) return AX_OUT_OF_MEMORY;
  w.work = memory;
  w.packed = memory + work_bytes;
  w.sums = w.packed + packed_bytes;
  ax_product_begin(&w.way);
  for (int64_t i = begin; i < end; i++) {
    const factors f = factors_of(activation, refs, g, k, i);
    look_ahead(&w, &f, activation, refs, i);
    char *c = to->c != NULL ? to->c : f.c + (t.row * g->ldc + t.column) * ax_made_bytes(k, g->rounds);
    if (is_long) make_long_sum(&w, &f, terms, i == begin, to, c);
    for (int64_t n = 0; n < terms && !is_long; n++) {
      w.product.add = to->add || n > 0;
      make_term(&w, &f, n, 0, i == begin, c);
    }
  }
  ax_product_end(&w.way);
  give_work(pool, memory, bytes);
  return AX_OK;
}

ax_status ax_gemm_compute(const ax_activation *activation, const ax_instr *instr, ax_pool *pool) {
  const ax_gemm *g = instr->gemm;
  const tile whole = {.rows = g->m, .columns = g->n};
  return product_tiles(activation, instr->refs, g, 0, ax_dims_elems(g->batch_rank, g->batch), whole, &(target){.add = g->accumulate}, pool);
}

/* --- The parts of a product --- */

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

typedef struct tiling {
  int64_t rows, columns; /* tiles in each product */
  int64_t groups;        /* groups of products of the batch; there are rows * columns * groups parts */
} tiling;

/* The cost of a multiply-add together with its share of packing: each tile packs its rows and columns, unless they are packed
   already. */
static double with_packing(const ax_gemm *g, tiling t) {
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
static bool cut_into(const ax_gemm *g, bool plain, int64_t parts, tiling *t) {
  const int64_t run = least_columns(g);
  bool found = false;
  for (int64_t rows = 1; rows <= parts; rows++) {
    const tiling one = {rows, parts / rows, 1};
    if (rows * one.columns != parts || (rows > 1 && rows * few_rows > g->m) || (one.columns > 1 && one.columns * run > g->n))
      continue;
    if (!found || plain || with_packing(g, one) < with_packing(g, *t)) *t = one;
    found = true;
  }
  return found;
}

/* Gives a tile to each thread, or to as many threads as gain by it; several tiles each, if that costs next to nothing. */
static tiling tiling_of_one(const ax_gemm *g, bool plain, double wanted, int64_t threads) {
  tiling t = {1, 1, 1}, trial;
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
static tiling tiling_of(const ax_gemm *g, bool plain, int64_t threads) {
  const int64_t count = ax_dims_elems(g->batch_rank, g->batch);
  const double wanted = ax_gemm_wanted_parts(g, (double)count),
               parts = wanted < (double)(thread_parts * threads) ? wanted : (double)(thread_parts * threads);
  if (count >= most_tiles || wanted < 2 * (double)count) {
    const int64_t groups = parts < (double)count ? (int64_t)parts : count;
    return (tiling){1, 1, groups > threads ? groups / threads * threads : groups};
  }
  tiling t = {1, 1, 1};
  if (count < whole_parts * threads && count % threads != 0) t = tiling_of_one(g, plain, wanted / (double)count, threads);
  t.groups = count;
  return t;
}

/* The beginning of tile `index` of `count`, in `extent` rows or columns: a multiple of `edge`. */
static int64_t tile_begin(int64_t extent, int64_t edge, int64_t index, int64_t count) {
  return least(ax_ceil_div(extent, edge) * index / count * edge, extent);
}

typedef struct gemm_run {
  const ax_activation *activation;
  const ax_ref *refs;
  const ax_gemm *gemm;
  ax_pool *pool;
  tiling tiles;
  int64_t row_edge, column_edge;
} gemm_run;

static tile tile_of(const gemm_run *r, uint32_t part) {
  const ax_gemm *g = r->gemm;
  const tiling t = r->tiles;
  const int64_t row = part / t.columns % t.rows, column = part % t.columns;
  tile it = {.row = tile_begin(g->m, r->row_edge, row, t.rows), .column = tile_begin(g->n, r->column_edge, column, t.columns)};
  it.rows = tile_begin(g->m, r->row_edge, row + 1, t.rows) - it.row;
  it.columns = tile_begin(g->n, r->column_edge, column + 1, t.columns) - it.column;
  return it;
}

static ax_status make_tile(const void *context, ax_worker_slot *worker_slot, uint32_t part) {
  (void)worker_slot;
  const gemm_run *r = context;
  const ax_gemm *g = r->gemm;
  const int64_t count = ax_dims_elems(g->batch_rank, g->batch), groups = r->tiles.groups, group = part / (r->tiles.rows * r->tiles.columns);
  return product_tiles(r->activation, r->refs, g, count * group / groups, count * (group + 1) / groups, tile_of(r, part),
                       &(target){.add = g->accumulate}, r->pool);
}

/* Chooses the numbers of which a tile's rows and columns are multiples, so that the last tiles are hardly slower than others and
   cache lines are whole. */
static void set_edges(gemm_run *r, const ax_gemm *g, const ax_product_way *way) {
  const int64_t lanes = way->kernels->lanes, line = AX_LINE_BYTES / way->kernels->number_bytes;
  const int64_t step = way->kernels->row_step > row_edge ? 2 * way->kernels->row_step : row_edge;
  r->row_edge = way->turned ? 2 * lanes : way->narrow ? way->rows : step;
  r->column_edge = g->packed        ? ax_product_panel_columns(way)
                   : way->turned    ? way->rows
                   : way->streams_b ? 2 * lanes
                   : lanes > line   ? lanes
                                    : line;
}

static gemm_run plan_run(ax_execution *run, const ax_ref *refs, const ax_gemm *g) {
  const ax_product whole = ax_gemm_product(g, g->m, g->n);
  const ax_product_way way = ax_gemm_way(g, &whole);
  gemm_run r = {.refs = refs, .gemm = g, .pool = &run->executor->pool, .tiles = tiling_of(g, way.plain, run->threads)};
  set_edges(&r, g, &way);
  return r;
}

static uint32_t parts_of(const gemm_run *r) { return (uint32_t)(r->tiles.rows * r->tiles.columns * r->tiles.groups); }

ax_status ax_gemm_run(ax_execution *run, ax_worker_slot *worker_slot, const ax_activation *activation, const ax_instr *instr) {
  gemm_run r = plan_run(run, instr->refs, instr->gemm);
  r.activation = activation;
  return ax_share_parts(run, worker_slot, make_tile, &r, parts_of(&r));
}

/* --- Products that are added up --- */

typedef struct sum_run {
  gemm_run run;
  const ax_gemm_sum *sum;
  bool adds_last; /* a product adds what is there last, so that bits are those of a separate addition */
} sum_run;

/* A product of several blocks, or terms, is made by itself, and then added: so its bits are its own. */
static ax_status add_apart(const sum_run *r, const ax_activation *activation, tile it) {
  const ax_gemm *g = r->run.gemm;
  const int64_t item = (int64_t)ax_dtype_bytes(g->dtype);
  const size_t bytes = (size_t)(it.rows * it.columns * item);
  char *made = take_work(r->run.pool, bytes), *sum = (char *)ax_address(activation, &r->run.refs[2]);
  if (made == NULL && bytes > 0) return AX_OUT_OF_MEMORY;
  const ax_status status = product_tiles(activation, r->run.refs, g, 0, 1, it, &(target){made, it.columns, false}, r->run.pool);
  for (int64_t row = 0; row < it.rows && status == AX_OK; row++) {
    void *slots[] = {sum + ((it.row + row) * g->ldc + it.column) * item, made + row * it.columns * item};
    r->sum->combine(slots, NULL, 0, it.columns);
  }
  give_work(r->run.pool, made, bytes);
  return status;
}

static ax_status make_sum_tile(const void *context, ax_worker_slot *worker_slot, uint32_t part) {
  (void)worker_slot;
  const sum_run *r = context;
  const tile it = tile_of(&r->run, part);
  ax_status status = AX_OK;
  for (uint32_t k = 0; k < r->sum->count && status == AX_OK; k++) {
    const bool first = k == 0 && r->sum->first;
    if (first || r->adds_last) status = product_tiles(r->sum->activations[k], r->run.refs, r->run.gemm, 0, 1, it, &(target){.add = !first}, r->run.pool);
    else status = add_apart(r, r->sum->activations[k], it);
  }
  return status;
}

/* Tiles of the sum stay in the cache while all add to them. */
static void cut_finer(gemm_run *r) {
  const ax_gemm *g = r->gemm;
  const int64_t most = ax_caches_here()->second / 4, item = (int64_t)ax_dtype_bytes(g->dtype);
  tiling *t = &r->tiles;
  while (g->m / t->rows * (g->n / t->columns) * item > most && 2 * t->rows * few_rows <= g->m) t->rows *= 2;
}

ax_status ax_gemm_add_up(ax_execution *run, ax_worker_slot *worker_slot, const ax_instr *instr, const ax_gemm_sum *sum) {
  const ax_gemm *g = instr->push->product;
  const ax_product whole = ax_gemm_product(g, g->m, g->n);
  sum_run r = {.run = plan_run(run, instr->refs, g), .sum = sum};
  r.adds_last = ax_dims_elems(g->term_rank, g->terms) == 1 && ax_gemm_way(g, &whole).blocks == 1;
  r.run.tiles.groups = 1; /* also where it is too little for a thread */
  cut_finer(&r.run);
  ax_status status = AX_OK;
  if (ax_share_worth(run, instr)) return ax_share_parts(run, worker_slot, make_sum_tile, &r, parts_of(&r.run));
  for (uint32_t part = 0; part < parts_of(&r.run) && status == AX_OK; part++) status = make_sum_tile(&r, worker_slot, part);
  return status;
}
