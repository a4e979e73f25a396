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

#include "code/tiles.h"
#include "run/compute.h"
#include "run/share.h"

typedef struct tile { /* of a product's result */
  int64_t row, rows, column, columns;
} tile;

enum { much_work = 64 << 10 }; /* bytes */

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
  return ax_pool_borrow(pool, bytes, &work) == AX_OK ? work : NULL;
}

static void give_work(ax_pool *pool, void *work, size_t bytes) {
  if (pool == NULL || bytes < much_work) ax_free(work);
  else if (work != NULL) ax_pool_give_back(pool, work, bytes);
}

/* Distance in elements from the first term of a factor to the n-th. */
static int64_t term_at(const ax_gemm *g, const int64_t *step, int64_t n) {
  int64_t at = 0;
  for (uint32_t d = g->term_rank; d-- > 0; n /= g->terms[d]) at += n % g->terms[d] * step[d];
  return at;
}

/* Where a tile is made. */
typedef struct target {
  char *c;       /* of one product of the batch; NULL: where its operand says */
  int64_t c_row; /* then: elements from row to row */
  bool add;      /* to what is there */
} target;

/* --- Terms --- */

/* State for a tile of the products of a batch, on one thread. */
typedef struct tile_work {
  const ax_gemm *gemm;
  tile tile;
  ax_tile_room room;
  char *work, *packed; /* packed: right factors shared by all products, `each` bytes a term */
  char *sums; /* long sums: three tiles in whole cache lines: sum of a run, total, and what the total lacks */
  const target *to;
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
  const ax_product *p = &w->room.product;
  const int64_t bytes = w->room.way.kernels->number_bytes;
  const char *a = f->a + (w->tile.row * p->a_row + at * p->a_column + term_at(g, g->a_term, n)) * bytes;
  const char *b = f->b + term_at(g, g->b_term, n) * bytes;
  if (g->packed) {
    ax_product_run_packed(p, &w->room.way, a, b + ax_product_packed_at(&w->room.way, at) + ax_product_panel_at(&w->room.way, w->tile.column), c,
                          w->work);
    return;
  }
  b += (w->tile.column * p->b_column + at * p->b_row) * bytes;
  if (w->room.each == 0) {
    ax_product_run(p, &w->room.way, a, b, c, w->work);
    return;
  }
  char *packed = w->packed + (size_t)n * w->room.each + ax_product_packed_at(&w->room.way, at);
  if (packs) ax_product_pack(p, &w->room.way, b, packed);
  ax_product_run_packed(p, &w->room.way, a, packed, c, w->work);
}

static void add_run(const tile_work *w, const char *run, char *total, char *lack) {
  const int64_t count = w->room.product.m * w->room.product.n;
  (w->room.product.dtype == AX_F32 ? add_run_f32 : add_run_f64)(total, lack, run, count);
}

static void put_sums(const tile_work *w, char *c, int64_t c_row, const char *total, const char *lack) {
  (w->room.product.dtype == AX_F32 ? put_sums_f32 : put_sums_f64)(c, total, lack, &w->room.product, c_row, w->to->add);
}

/* Adds many terms, or terms of many numbers, in runs, and adds the runs exactly, so that sums do not become worse with their
   length. */
static void make_long_sum(tile_work *w, const factors *f, int64_t terms, bool packs, char *c) {
  ax_product *p = &w->room.product;
  const int64_t c_row = p->c_row;
  char *run = w->sums, *total = run + w->room.sums_bytes, *lack = total + w->room.sums_bytes;
  const int64_t k = w->gemm->k, fit = AX_RUN_OF_NUMBERS / w->room.piece, most = ax_least(fit > 1 ? fit : 1, AX_RUN_OF_TERMS);
  int64_t in_run = 0;
  memset(run, 0, 3 * (size_t)w->room.sums_bytes);
  p->c_row = p->n;
  for (int64_t n = 0; n < terms; n++)
    for (int64_t at = 0; at < k; at += w->room.piece) {
      p->k = ax_least(k - at, w->room.piece);
      w->room.way.blocks = ax_ceil_div(p->k, w->room.way.block);
      p->add = in_run > 0;
      make_term(w, f, n, at, packs, run);
      if (++in_run < most && (n + 1 < terms || at + p->k < k)) continue;
      add_run(w, run, total, lack);
      in_run = 0;
    }
  put_sums(w, c, c_row, total, lack);
  p->c_row = c_row;
}

/* Sets the factors to prefetch: those of the tile in the next product of the batch, if they differ and are far. */
static void look_ahead(tile_work *w, const factors *now, const ax_activation *activation, const ax_ref *refs, int64_t index) {
  ax_product *p = &w->room.product;
  const ax_gemm *g = w->gemm;
  const int64_t bytes = w->room.way.kernels->number_bytes;
  p->next_a = p->next_b = NULL;
  if (!p->far || g->term_rank > 0 || index + 1 == ax_dims_elems(g->batch_rank, g->batch)) return;
  const factors next = factors_of(activation, refs, g, w->room.way.kernels, index + 1);
  if (next.a != now->a) p->next_a = next.a + w->tile.row * p->a_row * bytes;
  if (next.b != now->b && !g->packed) p->next_b = next.b + w->tile.column * p->b_column * bytes;
}

static void make_products(tile_work *w, const ax_activation *activation, const ax_ref *refs, int64_t begin, int64_t end) {
  const ax_gemm *g = w->gemm;
  const ax_product_kernels *k = w->room.way.kernels;
  const int64_t terms = ax_dims_elems(g->term_rank, g->terms);
  const bool is_long = w->room.is_long;
  ax_product_begin(&w->room.way);
  for (int64_t i = begin; i < end; i++) {
    const factors f = factors_of(activation, refs, g, k, i);
    look_ahead(w, &f, activation, refs, i);
    char *c = w->to->c != NULL ? w->to->c : f.c + (w->tile.row * g->ldc + w->tile.column) * ax_made_bytes(k, g->rounds);
    if (is_long) make_long_sum(w, &f, terms, i == begin, c);
    for (int64_t n = 0; n < terms && !is_long; n++) {
      w->room.product.add = w->to->add || n > 0;
      make_term(w, &f, n, 0, i == begin, c);
    }
  }
  ax_product_end(&w->room.way);
}

/* Makes one tile in each of some products of the batch. Right factors shared by all of them are packed once. room: memory to work in,
   if it is large enough; otherwise it comes from the pool, or from the heap. */
static ax_status product_tiles(const ax_activation *activation, const ax_ref *refs, const ax_gemm *g, int64_t begin, int64_t end, tile t,
                               const target *to, ax_room_share room, ax_pool *pool) {
  if (t.rows == 0 || t.columns == 0) return AX_OK;
  tile_work w;
  char *taken = NULL;
  w.gemm = g;
  w.tile = t;
  w.to = to;
  ax_gemm_tile_room(g, t.rows, t.columns, end - begin, &w.room);
  if (to->c != NULL) w.room.product.c_row = to->c_row;
  const size_t bytes = w.room.bytes;
  if (bytes > room.bytes && (taken = take_work(pool, bytes)) == NULL) return AX_OUT_OF_MEMORY;
  w.work = taken != NULL ? taken : room.memory;
  if (AX_HOSTILE && bytes > 0) memset(w.work, 0xff, bytes);
  w.packed = w.work + w.room.packed_at;
  w.sums = w.work + w.room.sums_at;
  make_products(&w, activation, refs, begin, end);
  if (taken != NULL) give_work(pool, taken, bytes);
  return AX_OK;
}

ax_status ax_gemm_compute(const ax_activation *activation, const ax_instr *instr, ax_pool *pool) {
  const ax_gemm *g = instr->gemm;
  const tile whole = {.rows = g->m, .columns = g->n};
  return product_tiles(activation, instr->refs, g, 0, ax_dims_elems(g->batch_rank, g->batch), whole, &(target){.add = g->accumulate},
                       ax_room_of(activation, instr, 0, 1), pool);
}

/* --- The parts of a product --- */

typedef struct gemm_run {
  const ax_execution *run;
  const ax_activation *activation;
  const ax_instr *instr;
  ax_tiling tiles;
} gemm_run;

static tile tile_of(const ax_gemm *g, const ax_tiling *t, uint32_t part) {
  const int64_t row = part / t->columns % t->rows, column = part % t->columns;
  tile it = {.row = ax_tile_begin(g->m, t->row_edge, row, t->rows), .column = ax_tile_begin(g->n, t->column_edge, column, t->columns)};
  it.rows = ax_tile_begin(g->m, t->row_edge, row + 1, t->rows) - it.row;
  it.columns = ax_tile_begin(g->n, t->column_edge, column + 1, t->columns) - it.column;
  return it;
}

static uint32_t parts_of(const ax_tiling *t) { return (uint32_t)(t->rows * t->columns * t->groups); }

static ax_status make_tile(const void *context, ax_worker_slot *worker_slot, uint32_t part) {
  const gemm_run *r = context;
  const ax_gemm *g = r->instr->gemm;
  const int64_t count = ax_dims_elems(g->batch_rank, g->batch), groups = r->tiles.groups, group = part / (r->tiles.rows * r->tiles.columns);
  const ax_room_share room = ax_room_of(r->activation, r->instr, (uint32_t)(worker_slot - r->run->worker_slots), r->run->threads);
  return product_tiles(r->activation, r->instr->refs, g, count * group / groups, count * (group + 1) / groups, tile_of(g, &r->tiles, part),
                       &(target){.add = g->accumulate}, room, &r->run->executor->pool);
}

static ax_tiling tiling_for(const ax_execution *run, const ax_gemm *g) {
  const ax_product whole = ax_gemm_product(g, g->m, g->n);
  const ax_product_way way = ax_gemm_way(g, &whole);
  ax_tiling t = ax_gemm_tiling(g, way.plain, run->threads);
  ax_gemm_edges(g, &way, &t);
  return t;
}

ax_status ax_gemm_run(ax_execution *run, ax_worker_slot *worker_slot, const ax_activation *activation, const ax_instr *instr) {
  const gemm_run r = {.run = run, .activation = activation, .instr = instr, .tiles = tiling_for(run, instr->gemm)};
  return ax_share_parts(run, worker_slot, make_tile, &r, parts_of(&r.tiles));
}

/* --- Products that are added up --- */

typedef struct sum_run {
  const ax_execution *run;
  const ax_instr *instr;
  ax_tiling tiles;
  const ax_gemm_sum *sum;
  bool adds_last;
} sum_run;

static ax_status make_own(const sum_run *r, const ax_activation *activation, tile it, const target *to) {
  return product_tiles(activation, r->instr->refs, r->instr->push->product, 0, 1, it, to, (ax_room_share){0}, &r->run->executor->pool);
}

/* A product of several blocks, or terms, is made by itself, and then added: so its bits are its own. */
static ax_status add_apart(const sum_run *r, const ax_activation *activation, tile it) {
  const ax_gemm *g = r->instr->push->product;
  const int64_t item = (int64_t)ax_dtype_bytes(g->dtype);
  const size_t bytes = (size_t)(it.rows * it.columns * item);
  char *made = take_work(&r->run->executor->pool, bytes), *sum = (char *)ax_address(activation, &r->instr->refs[2]);
  if (made == NULL && bytes > 0) return AX_OUT_OF_MEMORY;
  const ax_status status = make_own(r, activation, it, &(target){made, it.columns, false});
  for (int64_t row = 0; row < it.rows && status == AX_OK; row++) {
    void *slots[] = {sum + ((it.row + row) * g->ldc + it.column) * item, made + row * it.columns * item};
    r->sum->combine(slots, NULL, 0, it.columns);
  }
  give_work(&r->run->executor->pool, made, bytes);
  return status;
}

static ax_status make_sum_tile(const void *context, ax_worker_slot *worker_slot, uint32_t part) {
  (void)worker_slot;
  const sum_run *r = context;
  const tile it = tile_of(r->instr->push->product, &r->tiles, part);
  ax_status status = AX_OK;
  for (uint32_t k = 0; k < r->sum->count && status == AX_OK; k++) {
    const bool first = k == 0 && r->sum->first;
    if (first || r->adds_last) status = make_own(r, r->sum->activations[k], it, &(target){.add = !first});
    else status = add_apart(r, r->sum->activations[k], it);
  }
  return status;
}

ax_status ax_gemm_add_up(ax_execution *run, ax_worker_slot *worker_slot, const ax_instr *instr, const ax_gemm_sum *sum) {
  const ax_gemm *g = instr->push->product;
  sum_run r = {.run = run, .instr = instr, .tiles = tiling_for(run, g), .sum = sum, .adds_last = ax_gemm_adds_last(g)};
  r.tiles.groups = 1; /* also where it is too little for a thread */
  ax_gemm_cut_finer(g, ax_caches_here()->second / 4, &r.tiles); /* tiles of the sum stay in the cache while all add to them */
  ax_status status = AX_OK;
  if (ax_share_worth(run, instr)) return ax_share_parts(run, worker_slot, make_sum_tile, &r, parts_of(&r.tiles));
  for (uint32_t part = 0; part < parts_of(&r.tiles) && status == AX_OK; part++) status = make_sum_tile(&r, worker_slot, part);
  return status;
}
