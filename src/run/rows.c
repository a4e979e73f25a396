/* A ROWS instruction: kernels and products over the same rows, a block of rows at a time (ax_rows in plan/plan.h). The slot of a
   local allocation has the address that the whole allocation would have: the address of the block, less the bytes of the rows
   before it. So members need not know of blocks. A thread packs the products' right factors for each outer index, unless they are
   packed already. */
#include <string.h>

#include "run/compute.h"
#include "run/gemm.h"
#include "run/share.h"

enum {
  few_parts = 2,
  whole_parts = 8
}; /* for each thread, in groups with products: if parts repeat each other's packing, and if not */

typedef struct rows_product { /* for a member that is a product */
  ax_product product;
  ax_product_way way;
  char *packed;   /* packed right factor; NULL: it is read where it lies */
  int64_t packed_of; /* the outer index it was packed for; -1: none yet */
} rows_product;

typedef struct rows_work {
  const ax_rows_instr *instr;
  const int64_t *coordinates;
  char *base[AX_ROWS_SLOTS];  /* by slot, for outer index 0; if local, for a block that begins with row 0 */
  void *slots[AX_ROWS_SLOTS]; /* for the current block */
  rows_product *products;     /* by member; in the same memory: packed factors, and room to work in */
  char *room;
} rows_work;

/* Sets the factors to prefetch: the next rows, or those of the next outer index with its right factor. Local allocations are in
   the cache anyway. */
static void look_ahead(const rows_work *w, const ax_gemm *g, ax_product *p, uint32_t first_slot, int64_t outer, int64_t end) {
  const ax_rows *rows = w->instr->rows;
  const ax_rows_slot *slots = &rows->slots[first_slot];
  const int64_t bytes = ax_dtype_bytes(g->dtype), past = end == rows->extent ? 1 : 0, row = past ? 0 : end;
  int64_t now[3], next[3];
  p->next_a = p->next_b = NULL;
  if (!p->far || outer + past == rows->outer) return;
  ax_gemm_begin(g, outer, now);
  ax_gemm_begin(g, outer + past, next);
  if (slots[0].row_bytes == 0) p->next_a = w->base[first_slot] + (next[0] + row * p->a_row) * bytes;
  if (slots[1].row_bytes == 0 && !g->packed && next[1] != now[1]) p->next_b = w->base[first_slot + 1] + next[1] * bytes;
}

static void do_product(rows_work *w, const ax_gemm *g, rows_product *of, uint32_t first_slot, int64_t outer, int64_t begin,
                       int64_t end) {
  const ax_product_way *way = &of->way;
  int64_t at[3], all[3] = {g->a_offset, g->b_offset, g->c_offset};
  ax_gemm_begin(g, outer, at);
  for (uint32_t i = 0; i < 3; i++)
    if (w->instr->rows->slots[first_slot + i].row_bytes != 0) at[i] = all[i];
  void *const *slots = w->slots + first_slot;
  ax_product *p = &of->product;
  p->m = end - begin;
  const char *a = (const char *)slots[0] + (at[0] + begin * p->a_row) * way->kernels->number_bytes;
  const char *b = (const char *)slots[1] + at[1] * way->kernels->number_bytes;
  char *c = (char *)slots[2] + (at[2] + begin * p->c_row) * ax_made_bytes(way->kernels, g->rounds);
  look_ahead(w, g, p, first_slot, outer, end);
  if (g->packed) {
    ax_product_run_packed(p, way, a, b, c, w->room);
    return;
  }
  if (of->packed == NULL) {
    ax_product_run(p, way, a, b, c, w->room);
    return;
  }
  if (of->packed_of != outer) ax_product_pack(p, way, b, of->packed);
  of->packed_of = outer;
  ax_product_run_packed(p, way, a, of->packed, c, w->room);
}

/* Performs rows begin .. end of outer index `outer`. */
static void do_block(rows_work *w, int64_t outer, int64_t begin, int64_t end) {
  const ax_rows *rows = w->instr->rows;
  for (uint32_t i = 0; i < rows->slot_count; i++) {
    const ax_rows_slot *slot = &rows->slots[i];
    w->slots[i] = (void *)((uintptr_t)w->base[i] + (uintptr_t)(outer * slot->outer_step - begin * slot->row_bytes));
  }
  uint32_t first = 0;
  for (uint32_t k = 0; k < rows->count; first += ax_op_slots(&rows->members[k++])) {
    const ax_op *member = &rows->members[k];
    if (member->kind == AX_OP_GEMM) do_product(w, member->gemm, &w->products[k], first, outer, begin, end);
    else w->instr->code[k](w->slots + first, w->coordinates, begin, end);
  }
}

static void do_rows(rows_work *w, int64_t begin, int64_t end) {
  const ax_rows *rows = w->instr->rows;
  while (begin < end) {
    int64_t outer = begin / rows->extent, first = begin % rows->extent, last = first + rows->step;
    if (last > rows->extent) last = rows->extent;
    if (last > first + (end - begin)) last = first + (end - begin);
    do_block(w, outer, first, last);
    begin += last - first;
  }
}

static void find_slots(rows_work *w, const ax_activation *activation, const ax_instr *instr, char *block) {
  const ax_rows *rows = w->instr->rows;
  for (uint32_t i = 0; i < rows->slot_count; i++) {
    const ax_ref *ref = &instr->refs[i];
    w->base[i] = rows->slots[i].row_bytes != 0 ? block + rows->slots[i].place + ref->offset : ax_address(activation, ref);
  }
}

/* Chooses how each product is made, for at most `most` rows, and allocates its memory. */
static ax_status prepare_products(rows_work *w, int64_t most) {
  const ax_rows *rows = w->instr->rows;
  rows_product list[AX_ROWS_MEMBERS] = {0};
  size_t packed = 0, room = 0, bytes[AX_ROWS_MEMBERS];
  bool any = false;
  for (uint32_t k = 0; k < rows->count; k++) {
    const ax_gemm *g = rows->members[k].gemm;
    if (rows->members[k].kind != AX_OP_GEMM) continue;
    any = true;
    list[k].product = ax_gemm_product(g, most < rows->extent ? most : rows->extent, g->n);
    list[k].way = ax_gemm_way(g, &list[k].product);
    bytes[k] = g->packed ? 0 : ax_product_packed_bytes(&list[k].way);
    packed += bytes[k];
    if (list[k].way.work_bytes > room) room = list[k].way.work_bytes;
  }
  if (!any) return AX_OK;
  const size_t head = (rows->count * sizeof list[0] + 63) / 64 * 64;
  char *memory = ax_alloc(head + packed + room);
  if (memory == NULL) return AX_OUT_OF_MEMORY;
  w->products = (rows_product *)(void *)memory;
  memory += head;
  for (uint32_t k = 0; k < rows->count; k++) {
    if (rows->members[k].kind != AX_OP_GEMM) continue;
    w->products[k] = list[k];
    w->products[k].packed = bytes[k] > 0 ? memory : NULL;
    w->products[k].packed_of = -1;
    memory += bytes[k];
  }
  w->room = memory;
  return AX_OK;
}

/* See ax_product_begin. */
static void hold_products(const rows_work *w, bool holds) {
  const ax_rows *rows = w->instr->rows;
  for (uint32_t k = 0; k < rows->count; k++)
    if (rows->members[k].kind == AX_OP_GEMM) (holds ? ax_product_begin : ax_product_end)(&w->products[k].way);
}

ax_status ax_compute_rows(const ax_activation *activation, const ax_instr *instr, int64_t begin, int64_t end, void *block) {
  rows_work w;
  if (AX_HOSTILE && instr->rows->rows->block_bytes > 0) memset(block, 0xff, (size_t)instr->rows->rows->block_bytes);
  w.instr = instr->rows;
  w.coordinates = activation->coordinates;
  w.products = NULL;
  AX_TRY(prepare_products(&w, end - begin));
  find_slots(&w, activation, instr, block);
  hold_products(&w, true);
  do_rows(&w, begin, end);
  hold_products(&w, false);
  ax_free(w.products);
  return AX_OK;
}

/* --- By several threads --- */

typedef struct rows_run {
  ax_execution *run;
  const ax_activation *activation;
  const ax_instr *instr;
  int64_t parts;
  bool whole; /* parts are whole outer indices */
} rows_run;

static int64_t first_row(const rows_run *r, int64_t part) {
  const ax_rows *rows = r->instr->rows->rows;
  return r->whole ? rows->outer * part / r->parts * rows->extent : ax_part_begin(rows->outer * rows->extent, part, r->parts);
}

/* Gives a block: in the room that the plan keeps free, of whose shares this thread has number `index` of `count`; or the worker slot's.
   That need not fit on a thread's stack, and stays with the run, which is kept for the next call. */
static ax_status take_block(ax_execution *run, ax_worker_slot *worker_slot, const ax_activation *activation, const ax_instr *instr,
                            uint32_t index, uint32_t count, void **out) {
  const ax_compiled *c = run->compiled;
  const ax_room_share room = ax_room_of(activation, instr, index, count);
  *out = room.memory;
  if (room.memory != NULL && room.bytes >= (size_t)instr->rows->rows->block_bytes) return AX_OK;
  if (worker_slot->rows == NULL && c->rows_bytes > 0)
    AX_TRY(ax_pool_alloc(&run->executor->pool, c->rows_bytes, &worker_slot->rows));
  *out = worker_slot->rows;
  return AX_OK;
}

static ax_status compute_part(const void *context, ax_worker_slot *worker_slot, uint32_t part) {
  const rows_run *r = context;
  void *block;
  AX_TRY(take_block(r->run, worker_slot, r->activation, r->instr, (uint32_t)(worker_slot - r->run->worker_slots), r->run->threads, &block));
  return ax_compute_rows(r->activation, r->instr, first_row(r, part), first_row(r, part + (int64_t)1), block);
}

static bool has_products(const ax_rows *rows) {
  for (uint32_t k = 0; k < rows->count; k++)
    if (rows->members[k].kind == AX_OP_GEMM) return true;
  return false;
}

ax_status ax_rows_run(ax_execution *run, ax_worker_slot *worker_slot, const ax_activation *activation, const ax_instr *instr) {
  const ax_rows *rows = instr->rows->rows;
  rows_run r = {.run = run, .activation = activation, .instr = instr, .parts = instr->parts};
  if (!ax_share_worth(run, instr)) {
    void *block;
    AX_TRY(take_block(run, worker_slot, activation, instr, 0, 1, &block));
    return ax_compute_rows(activation, instr, 0, rows->outer * rows->extent, block);
  }
  if (has_products(rows)) {
    r.whole = rows->outer >= few_parts * (int64_t)run->threads;
    const int64_t most = (r.whole ? whole_parts : few_parts) * (int64_t)run->threads;
    if (r.parts > most) r.parts = most;
    if (r.whole && r.parts > rows->outer) r.parts = rows->outer;
  }
  return ax_share_parts(run, worker_slot, compute_part, &r, (uint32_t)r.parts);
}
