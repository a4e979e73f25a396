/* Right factors packed once. A product packs its right factor into panels, or reads it where it lies as well as it can, each time
   it is made:

     loop 0, 1000 times                           routine: pack b7 to b20
       gemm b13 = b10 b7'            ->           loop 0, 1000 times
                                                    gemm b13 = b10 panels b20

   A factor that a loop does not change is packed before the loop: the outermost one that reads it and does not write it. A constant
   is packed when memory is placed (ax_buffer.panels), and is held in panels alone where nothing else reads it. What several
   products of a block read, and nothing writes in between, as where steps are written out, is packed before the first of them.
   Products that read a factor alike share it.

   How panels lie follows from the factor's dtype and extents, and products have the same bits either way (product/product.h), so
   nothing else changes.

   It costs memory: so much as factors take. So a plan has bounds for it. Few rows by a factor that is in no cache are made best
   where it lies, in long runs, so those have a bound of their own; and many rows hardly gain: packing takes the time of eight. */
#include "plan/panels.h"

#include <string.h>

#include "machine/caches.h"
#include "machine/rates.h"
#include "plan/nesting.h"
#include "plan/passes.h"

enum {
  most_rows = 512,           /* beyond it, packing is little beside the product, */
  most_held_rows = 192,      /* and beyond this, too little for a second copy of a factor that is no constant */
  most_bytes = 64 << 20,     /* of all factors before loops, and of constants that are held as they are too */
  shared_rows = 64, /* outside of loops a factor is read as often as that is written out, and what one core has packed comes slowly
                       to another: many rows gain too little by it, */
  shared_reads = 6,
  shared_few = 4 /* and so do fewer products than these; the second: of few rows, for which reading it as it lies is slow */
};

/* --- Products --- */

/* Bytes of a factor, with all matrices of its batch. */
static double factor_bytes(const ax_gemm *g, int64_t extent, const int64_t *stride) {
  double bytes = (double)extent * (double)g->k * (double)ax_dtype_bytes(g->dtype);
  for (uint32_t d = 0; d < g->batch_rank; d++)
    if (stride[d] != 0) bytes *= (double)g->batch[d];
  return bytes;
}

ax_product ax_gemm_product(const ax_gemm *g, int64_t rows, int64_t columns) {
  return (ax_product){.dtype = g->dtype,
                      .m = rows,
                      .n = columns,
                      .k = g->k,
                      .a_row = g->transpose_a ? 1 : g->lda,
                      .a_column = g->transpose_a ? g->lda : 1,
                      .b_row = g->transpose_b ? 1 : g->ldb,
                      .b_column = g->transpose_b ? g->ldb : 1,
                      .c_row = g->ldc,
                      .add = g->accumulate,
                      .rounds = g->rounds,
                      .far = factor_bytes(g, g->m, g->a_stride) > (double)ax_caches_here()->far_rows,
                      .far_b = factor_bytes(g, g->n, g->b_stride) > (double)ax_caches_here()->far_factor};
}

ax_product_way ax_gemm_way(const ax_gemm *g, const ax_product *p) {
  return g->packed ? ax_product_choose_packed(p, g->n, AX_REGISTER_BYTES) : ax_product_choose(p, AX_REGISTER_BYTES);
}

bool ax_gemm_is_dense(const ax_gemm *g, int64_t elems) {
  int64_t stride = g->m * g->n;
  if (g->c_offset != 0 || (g->ldc != g->n && g->m > 1)) return false;
  for (uint32_t d = g->batch_rank; d-- > 0; stride *= g->batch[d])
    if (g->batch[d] > 1 && g->c_stride[d] != stride) return false;
  return stride == elems;
}

bool ax_gemm_adds_last(const ax_gemm *g) {
  const ax_product whole = ax_gemm_product(g, g->m, g->n);
  return ax_dims_elems(g->term_rank, g->terms) == 1 && (!ax_rounds(g->dtype) || ax_gemm_way(g, &whole).blocks == 1);
}

/* --- Packing --- */

bool ax_panels_equal(const ax_panels *a, const ax_panels *b) {
  if (a->dtype != b->dtype || a->n != b->n || a->k != b->k || a->row != b->row || a->column != b->column ||
      a->offset != b->offset || a->rank != b->rank)
    return false;
  return memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) == 0 &&
         memcmp(a->stride, b->stride, a->rank * sizeof a->stride[0]) == 0;
}

static ax_product product_of(const ax_panels *p, int64_t columns) {
  return (ax_product){.dtype = p->dtype,
                      .m = 1,
                      .n = columns,
                      .k = p->k,
                      .a_row = p->k,
                      .a_column = 1,
                      .b_row = p->row,
                      .b_column = p->column,
                      .c_row = columns};
}

static ax_product_way way_of(const ax_panels *p) {
  const ax_product whole = product_of(p, p->n);
  return ax_product_choose_packed(&whole, p->n, AX_REGISTER_BYTES);
}

int64_t ax_panels_each(const ax_panels *p) {
  const ax_product_way way = way_of(p);
  return (int64_t)(ax_product_packed_bytes(&way) / ax_dtype_bytes(p->dtype));
}

int64_t ax_panels_numbers(const ax_panels *p) { return ax_dims_elems(p->rank, p->dims) * ax_panels_each(p); }

/* Nanoseconds on one thread, roughly. */
static double time_of(const ax_panels *p) { return 0.2 * (double)p->n * (double)p->k * (double)ax_dims_elems(p->rank, p->dims); }

static int64_t panels_of(const ax_panels *p, const ax_product_way *way) { return ax_ceil_div(p->n, ax_product_panel_columns(way)); }

uint32_t ax_panels_parts(const ax_panels *p) {
  enum { part_time = 30000, most_parts = 64 };
  const ax_product_way way = way_of(p);
  const double all = (double)panels_of(p, &way) * (double)ax_dims_elems(p->rank, p->dims),
               worth = time_of(p) / (part_time * ax_rates_planned()->sharing);
  const double most = all < most_parts ? all : most_parts;
  return worth < 2 || most < 2 ? 1 : (uint32_t)(worth < most ? worth : most);
}

/* The offset of the index-th matrix. */
static int64_t begin_of(const ax_panels *p, int64_t index) {
  int64_t at = p->offset;
  for (uint32_t d = p->rank; d-- > 0; index /= p->dims[d]) at += index % p->dims[d] * p->stride[d];
  return at;
}

ax_status ax_panels_pack(const void *panels, void *const *memory, uint32_t part) {
  const ax_panels *p = panels;
  const ax_product_way way = way_of(p);
  const int64_t bytes = (int64_t)ax_dtype_bytes(p->dtype), width = ax_product_panel_columns(&way), each = panels_of(p, &way);
  const int64_t all = each * ax_dims_elems(p->rank, p->dims), parts = ax_panels_parts(p), end = all * (part + (int64_t)1) / parts;
  for (int64_t at = all * part / parts, next; at < end; at = next) {
    const int64_t matrix = at / each, column = at % each * width;
    next = (matrix + 1) * each < end ? (matrix + 1) * each : end;
    const int64_t columns = (next - at) * width < p->n - column ? (next - at) * width : p->n - column;
    const ax_product some = product_of(p, columns);
    ax_product_pack(&some, &way, (const char *)memory[0] + (begin_of(p, matrix) + column * p->column) * bytes,
                    (char *)memory[1] + matrix * (int64_t)ax_product_packed_bytes(&way) + ax_product_panel_at(&way, column));
  }
  return AX_OK;
}

/* --- What is worth it --- */

typedef enum gain { GAIN_NONE, GAIN_NEAR, GAIN_ALWAYS } gain; /* NEAR: while a cache holds the factor */

static gain gain_of(const ax_gemm *g) {
  if (g->packed || g->m < 2 || g->m > most_rows || g->n == 0 || g->k == 0 ||
      ax_dims_elems(g->batch_rank, g->batch) * ax_dims_elems(g->term_rank, g->terms) == 0)
    return GAIN_NONE;
  const ax_product p = ax_gemm_product(g, g->m, g->n);
  const ax_product_way way = ax_gemm_way(g, &p);
  if (way.packs_b && !way.turned) return GAIN_ALWAYS;
  return way.turned || way.streams_b || way.turns_b ? GAIN_NEAR : GAIN_NONE;
}

/* One dimension more of the matrices, unless all along it are the same. */
static int64_t add_dim(ax_panels *p, int64_t size, int64_t stride) {
  if (stride == 0 || size == 1) return 0;
  p->dims[p->rank] = size;
  p->stride[p->rank++] = stride;
  return 1;
}

/* The factors of a product, and the product that reads them packed. */
static ax_panels panels_of_product(const ax_gemm *g, ax_gemm *packed) {
  ax_panels p = {.dtype = g->dtype,
                 .n = g->n,
                 .k = g->k,
                 .row = g->transpose_b ? 1 : g->ldb,
                 .column = g->transpose_b ? g->ldb : 1,
                 .offset = g->b_offset};
  *packed = *g;
  for (uint32_t d = 0; d < g->batch_rank; d++) packed->b_stride[d] = add_dim(&p, g->batch[d], g->b_stride[d]);
  for (uint32_t d = 0; d < g->term_rank; d++) packed->b_term[d] = add_dim(&p, g->terms[d], g->b_term[d]);
  int64_t stride = ax_panels_each(&p);
  for (uint32_t d = g->term_rank; d-- > 0;)
    if (packed->b_term[d] != 0) packed->b_term[d] = stride, stride *= g->terms[d];
  for (uint32_t d = g->batch_rank; d-- > 0;)
    if (packed->b_stride[d] != 0) packed->b_stride[d] = stride, stride *= g->batch[d];
  packed->packed = true;
  packed->transpose_b = false;
  packed->b_offset = 0;
  packed->ldb = g->n;
  return p;
}

/* --- What there is --- */

typedef struct packed { /* an allocation's factor in panels */
  const ax_panels *panels;
  uint32_t buffer, from, loop; /* from: of which it was packed; loop: before which; AX_NONE: a constant */
  struct packed *next;
} packed;

/* A factor as some products of a block read it, with nothing in between that writes it. */
typedef struct sharing {
  ax_panels panels;
  uint32_t from, version,
      block;                   /* version: how often its allocation had been written; block: which one, in the order of the walk */
  uint32_t count;              /* products */
  const packed *made;          /* NULL: not yet */
  struct sharing *next;
} sharing;

typedef struct packer {
  ax_plan *plan;
  ax_arena scratch;
  ax_nesting nesting;
  packed **made;               /* by allocation */
  uint32_t *shared;            /* by allocation that is a constant: reads as factors that are packed alike; */
  ax_panels **alike;           /* as this says; NULL: none yet; */
  bool *always;                /* and that one of these gains by it wherever the factor is */
  int64_t bytes, near_bytes;   /* packed so far */
  sharing **sharings;          /* by allocation, those of the block listed last first */
  uint32_t *version;           /* by allocation: writes that lists of blocks have come to */
  uint32_t blocks;             /* listed so far */
} packer;

/* The products of a block, in order, those in groups too. */
typedef struct readers {
  sharing **of; /* each; NULL: it packs nothing */
  uint32_t count, capacity, at;
} readers;

/* Constants are whole: what views of them would be is for the others. */
static bool is_constant(const packer *p, uint32_t buffer) {
  const ax_buffer *b = &p->plan->buffers[buffer];
  return b->allocation == buffer && b->kind == AX_BUFFER_CONST;
}

/* Notes for a constant factor whether all its readers are products that would pack it alike. */
static void note_factor(packer *p, const ax_gemm *g) {
  ax_gemm made;
  const uint32_t allocation = g->b;
  const gain of = gain_of(g);
  if (!is_constant(p, allocation) || of == GAIN_NONE) return;
  p->always[allocation] = p->always[allocation] || of == GAIN_ALWAYS;
  const ax_panels panels = panels_of_product(g, &made);
  if (p->alike[allocation] == NULL) p->alike[allocation] = ax_arena_copy(&p->scratch, &panels, sizeof panels);
  if (p->alike[allocation] != NULL && ax_panels_equal(p->alike[allocation], &panels)) p->shared[allocation]++;
}

static void note_op(void *context, ax_op *op) {
  uint32_t count;
  const ax_op *members = ax_op_members(op, &count);
  for (uint32_t k = 0; k < count; k++)
    if (members[k].kind == AX_OP_GEMM) note_factor(context, members[k].gemm);
}

/* --- What is shared within a block --- */

static bool same_place(const packer *p, uint32_t a, uint32_t b) {
  const ax_buffer *x = &p->plan->buffers[a], *y = &p->plan->buffers[b];
  return x->offset == y->offset && x->loop == y->loop && x->step == y->step;
}

static ax_status list_reader(packer *p, readers *r, const ax_gemm *g) {
  ax_gemm made;
  const uint32_t allocation = p->plan->buffers[g->b].allocation;
  AX_TRY(ax_grow(&r->of, sizeof r->of[0], r->count, 1, &r->capacity));
  r->of[r->count++] = NULL;
  if (g->m > shared_rows || allocation >= p->nesting.allocations || is_constant(p, g->b) || gain_of(g) == GAIN_NONE) return AX_OK;
  const ax_panels panels = panels_of_product(g, &made);
  sharing *s = p->sharings[allocation];
  while (s != NULL && s->block == p->blocks &&
         !(s->version == p->version[allocation] && same_place(p, s->from, g->b) && ax_panels_equal(&s->panels, &panels)))
    s = s->next;
  if (s == NULL || s->block != p->blocks) {
    if ((s = ax_arena_alloc(&p->scratch, sizeof *s)) == NULL) return ax_out_of_memory(sizeof *s);
    *s = (sharing){
        .panels = panels, .from = g->b, .version = p->version[allocation], .block = p->blocks, .next = p->sharings[allocation]};
    p->sharings[allocation] = s;
  }
  s->count++;
  r->of[r->count - 1] = s;
  return AX_OK;
}

static void note_write(void *context, uint32_t buffer, bool writes) {
  packer *p = context;
  const uint32_t allocation = p->plan->buffers[buffer].allocation;
  if (writes && allocation < p->nesting.allocations) p->version[allocation]++;
}

static ax_status list_readers(packer *p, ax_block *block, readers *r) {
  p->blocks++;
  for (uint32_t i = 0; i < block->count; i++) {
    ax_op *op = &block->ops[i];
    uint32_t count;
    const ax_op *members = ax_op_members(op, &count);
    for (uint32_t k = 0; k < count; k++)
      if (members[k].kind == AX_OP_GEMM) AX_TRY(list_reader(p, r, members[k].gemm));
    ax_op_visit_all(op, note_write, p);
  }
  return AX_OK;
}

/* --- Where it is packed --- */

static const uint32_t not_before_a_loop = AX_NONE - 1; /* an enumerator is an int */

static const packed *find_made(const packer *p, uint32_t allocation, uint32_t from, uint32_t loop, const ax_panels *panels) {
  for (const packed *one = p->made[allocation]; one != NULL; one = one->next)
    if (one->loop == loop && same_place(p, from, one->from) && ax_panels_equal(one->panels, panels)) return one;
  return NULL;
}

/* Whether there is room for it, which it then has. */
static bool fits(packer *p, gain of, int64_t bytes) {
  if (bytes > most_bytes - p->bytes || (of == GAIN_NEAR && bytes > ax_caches_here()->kept - p->near_bytes)) return false;
  p->bytes += bytes;
  if (of == GAIN_NEAR) p->near_bytes += bytes;
  return true;
}

static ax_status add_made(packer *p, uint32_t allocation, uint32_t from, uint32_t loop, const ax_panels *panels,
                          const ax_buffer *buffer, packed **out) {
  packed *one = *out = ax_arena_alloc(&p->scratch, sizeof *one);
  if (one == NULL) return ax_out_of_memory(sizeof *one);
  *one = (packed){.panels = panels, .from = from, .loop = loop, .next = p->made[allocation]};
  p->made[allocation] = one;
  return ax_plan_add_buffer(p->plan, buffer, &one->buffer);
}

/* An operation before the one at hand there: a loop, or the first of the products that share it. */
static ax_status pack_before(packer *p, ax_loop_level *place, const ax_op *of, uint32_t from, const ax_panels *panels,
                             packed **out) {
  const ax_op *next = &place->block->ops[place->at];
  const uint32_t allocation = p->plan->buffers[from].allocation;
  const int64_t numbers = ax_panels_numbers(panels);
  const ax_buffer to = {.type = ax_array_type(panels->dtype, AX_LIST(1, &numbers)),
                        .axes = p->plan->buffers[allocation].axes | next->diverging,
                        .allocation = AX_NONE,
                        .loop = AX_NONE};
  AX_TRY(add_made(p, allocation, from, next->kind == AX_OP_LOOP ? next->loop.id : not_before_a_loop, panels, &to, out));
  uint32_t buffers[] = {from, (*out)->buffer};
  const ax_routine routine = {.run = ax_panels_pack,
                              .data = panels,
                              .in_count = 1,
                              .out_count = 1,
                              .parts = ax_panels_parts(panels),
                              .buffers = buffers,
                              .name = "pack",
                              .moves = true,
                              .time = time_of(panels)};
  ax_op op = {.kind = AX_OP_ROUTINE,
              .eqn = of->eqn,
              .program = of->program,
              .axes = to.axes,
              .diverging = next->diverging,
              .routine = ax_routine_copy(&p->plan->arena, &routine)};
  return op.routine != NULL ? ax_level_put(place, &p->scratch, &op) : ax_out_of_memory(sizeof routine);
}

static ax_status pack_constant(packer *p, uint32_t from, const ax_panels *panels, packed **out) {
  const ax_buffer *buffer = &p->plan->buffers[from];
  const int64_t numbers = ax_panels_numbers(panels);
  const ax_buffer to = {.kind = AX_BUFFER_CONST,
                        .type = ax_array_type(panels->dtype, AX_LIST(1, &numbers)),
                        .data = p->plan->buffers[buffer->allocation].data,
                        .panels = panels,
                        .allocation = AX_NONE,
                        .loop = AX_NONE};
  return add_made(p, buffer->allocation, from, AX_NONE, panels, &to, out);
}

/* Whether enough products read a factor to pack it before the first of them. For factors that are neither constant nor packed
   before a loop. */
static bool worth_sharing(const sharing *s, gain of) {
  return s != NULL && s->count >= (of == GAIN_ALWAYS ? shared_reads : shared_few);
}

/* The factor of the product `op`, or of a member of that group, in panels; *out NULL: it stays as it is. */
static ax_status find_or_pack(packer *p, ax_loop_level *inner, const ax_op *op, const ax_gemm *gemm, sharing *shared,
                              const packed **out) {
  ax_gemm made;
  const uint32_t from = gemm->b, allocation = p->plan->buffers[from].allocation;
  const gain of = gain_of(gemm);
  *out = NULL;
  if (of == GAIN_NONE || allocation >= p->nesting.allocations) return AX_OK;
  const bool constant = is_constant(p, from);
  if (!constant && gemm->m > most_held_rows) return AX_OK;
  ax_loop_level *place = constant ? NULL : ax_nesting_place(&p->nesting, inner, &from, 1, true);
  const bool here = !constant && place == NULL;
  if (here && !worth_sharing(shared, of)) return AX_OK;
  if (here) place = inner;
  const ax_panels panels = panels_of_product(gemm, &made);
  *out = here ? shared->made : find_made(p, allocation, from, constant ? AX_NONE : place->block->ops[place->at].loop.id, &panels);
  if (*out != NULL) return AX_OK;
  packed *one;
  const int64_t bytes = ax_panels_numbers(&panels) * (int64_t)ax_dtype_bytes(panels.dtype);
  const bool instead =
      constant && p->always[allocation] &&
      p->shared[allocation] == p->nesting.reads[allocation]; /* all its readers take it in panels */
  if (!instead && !fits(p, of, bytes)) return AX_OK;
  const ax_panels *kept = ax_arena_copy(&p->plan->arena, &panels, sizeof panels);
  if (kept == NULL) return ax_out_of_memory(sizeof panels);
  AX_TRY(constant ? pack_constant(p, from, kept, &one) : pack_before(p, place, op, from, kept, &one));
  if (here) shared->made = one;
  *out = one;
  return AX_OK;
}

static ax_status pack_factor(packer *p, ax_loop_level *inner, const ax_op *op, readers *r, ax_gemm **gemm) {
  ax_gemm made;
  const packed *there;
  AX_TRY(find_or_pack(p, inner, op, *gemm, r->of[r->at++], &there));
  if (there == NULL) return AX_OK;
  (void)panels_of_product(*gemm, &made);
  made.b = there->buffer;
  *gemm = ax_arena_copy(&p->plan->arena, &made, sizeof made);
  return *gemm != NULL ? AX_OK : ax_out_of_memory(sizeof made);
}

/* --- The walk --- */

static ax_status pack_block(packer *p, ax_block *block, ax_loop_level *outer);

static ax_status pack_listed(packer *p, ax_block *block, ax_loop_level *outer, readers *r) {
  ax_loop_level here;
  AX_TRY(list_readers(p, block, r));
  ax_level_begin(&here, block, outer);
  for (; here.at < block->count; here.at++) {
    ax_op *op = &block->ops[here.at];
    uint32_t count;
    ax_op *members = ax_op_members(op, &count);
    for (uint32_t k = 0; k < count; k++)
      if (members[k].kind == AX_OP_GEMM) AX_TRY(pack_factor(p, &here, op, r, &members[k].gemm));
    for (uint32_t k = 0; ax_op_block(op, k) != NULL; k++) AX_TRY(pack_block(p, ax_op_block(op, k), &here));
  }
  return ax_level_end(&here, &p->plan->arena);
}

static ax_status pack_block(packer *p, ax_block *block, ax_loop_level *outer) {
  readers r = {0};
  const ax_status status = pack_listed(p, block, outer, &r);
  ax_free(r.of);
  return status;
}

/* Whether there is anything to be done: a loop, a constant that a product may read, or several operations that may be products, or
   hold some. */
static bool has_any(const ax_plan *plan) {
  uint32_t products = 0;
  bool any = plan->loop_count > 0;
  for (uint32_t i = 0; i < plan->block.count && !any; i++) {
    ax_op *op = &plan->block.ops[i];
    uint32_t count;
    const ax_op *members = ax_op_members(op, &count);
    for (uint32_t k = 0; k < count; k++) products += members[k].kind == AX_OP_GEMM;
    any = products >= shared_few || op->kind == AX_OP_BRANCH;
  }
  for (uint32_t i = 0; i < plan->buffer_count && !any; i++)
    any = plan->buffers[i].kind == AX_BUFFER_CONST && plan->buffers[i].type.rank > 0;
  return any;
}

static ax_status make_tables(packer *p) {
  AX_TRY(ax_nesting_make(&p->nesting, p->plan, &p->scratch));
  const size_t allocations = p->nesting.allocations;
  p->made = ax_arena_alloc(&p->scratch, allocations * sizeof p->made[0]);
  p->shared = ax_arena_alloc(&p->scratch, allocations * sizeof p->shared[0]);
  p->alike = ax_arena_alloc(&p->scratch, allocations * sizeof p->alike[0]);
  p->always = ax_arena_alloc(&p->scratch, allocations * sizeof p->always[0]);
  p->sharings = ax_arena_alloc(&p->scratch, allocations * sizeof p->sharings[0]);
  p->version = ax_arena_alloc(&p->scratch, allocations * sizeof p->version[0]);
  const bool there =
      p->made != NULL && p->shared != NULL && p->alike != NULL && p->always != NULL && p->sharings != NULL && p->version != NULL;
  return there ? AX_OK : ax_out_of_memory(allocations * sizeof p->made[0]);
}

ax_status ax_plan_panels(ax_plan *plan) {
  packer p = {.plan = plan};
  if (!has_any(plan)) return AX_OK;
  ax_status status = make_tables(&p);
  if (status == AX_OK) {
    ax_block_walk(&plan->block, note_op, &p);
    status = pack_block(&p, &plan->block, NULL);
  }
  ax_arena_deinit(&p.scratch);
  return status;
}
