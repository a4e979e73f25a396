/* A ROWS instruction: kernels and products over the same rows, a block of rows at a time (ax_rows in loop/plan.h).

   A slot of a local root is as if the root lay in memory whole: where row `first` of the block lies less so many rows. So its members know nothing of it.

   The products' right factors are packed once: by whoever does the rows, for each outer index, or, where there is one such index and several threads do parts,
   by all of them before. */
#include "exec/compute.h"
#include "exec/gemm.h"
#include "exec/share.h"

enum { pack_bytes = 32 << 10, thread_parts = 8 }; /* for a part of packing; parts for each thread */

typedef struct rows_product { /* of a member that is one */
  ax_product product;
  ax_product_way way;
  ax_product_packed packed; /* its right factor; none: it is read where it is */
  int64_t packed_of; /* outer index; -1: of none yet */
} rows_product;

typedef struct rows_work {
  const ax_rows_instr *instr;
  const int64_t *coordinates;
  char *base[AX_ROWS_SLOTS];  /* by slot, of outer index 0 and, where it is local, of a block that begins with row 0 */
  void *slots[AX_ROWS_SLOTS]; /* of the block at hand */
  rows_product *products;     /* by member; then all that is packed, and room for each to work in */
  char *room;
} rows_work;

static void do_product(rows_work *w, const ax_gemm *g, rows_product *of, uint32_t first_slot, int64_t outer, int64_t begin, int64_t end) {
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
  char *c = (char *)slots[2] + (at[2] + begin * p->c_row) * way->kernels->result_bytes;
  if (of->packed.packed == NULL) {
    ax_product_run(p, way, a, b, c, w->room);
    return;
  }
  if (of->packed_of != outer) ax_product_pack_columns(p, way, b, 0, ax_product_panels(p, way), of->packed);
  of->packed_of = outer;
  ax_product_run_parts(p, way, &(ax_product_factors){.a = a, .columns = of->packed}, c, w->room);
}

/* Rows begin .. end of the one outer index `outer`. */
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

static void find_slots(rows_work *w, const ax_frame *frame, const ax_instr *instr, char *block) {
  const ax_rows *rows = w->instr->rows;
  for (uint32_t i = 0; i < rows->slot_count; i++) {
    const ax_ref *ref = &instr->refs[i];
    w->base[i] = rows->slots[i].row_bytes != 0 ? block + rows->slots[i].place + ref->offset : ax_address(frame, ref);
  }
}

/* How rows are made of each product, at most `most` at a time. False: there is no product. */
static bool choose_products(const ax_rows *rows, int64_t most, rows_product *list) {
  bool any = false;
  for (uint32_t k = 0; k < rows->count; k++) {
    const ax_gemm *g = rows->members[k].gemm;
    if (rows->members[k].kind != AX_OP_GEMM) continue;
    any = true;
    list[k] = (rows_product){.product = ax_gemm_product(g, most < rows->extent ? most : rows->extent, g->n), .packed_of = -1};
    list[k].way = ax_product_choose(&list[k].product, AX_REGISTER_BYTES);
  }
  return any;
}

static ax_product_packed packed_at(const rows_product *of, char *memory, size_t bytes) {
  return (ax_product_packed){.packed = bytes > 0 ? memory : NULL, .block = (int64_t)bytes / of->way.blocks};
}

/* Memory for the products; what is packed already stays where it is. */
static ax_status prepare_products(rows_work *w, int64_t most, const rows_product *shared) {
  const ax_rows *rows = w->instr->rows;
  rows_product list[AX_ROWS_MEMBERS];
  size_t packed = 0, room = 0, bytes[AX_ROWS_MEMBERS];
  if (shared == NULL && !choose_products(rows, most, list)) return AX_OK;
  for (uint32_t k = 0; k < rows->count; k++) {
    if (rows->members[k].kind != AX_OP_GEMM) continue;
    if (shared != NULL) list[k] = shared[k];
    bytes[k] = list[k].packed.packed == NULL ? ax_gemm_packed_bytes(&list[k].product, &list[k].way) : 0;
    packed += bytes[k];
    if (list[k].way.work_bytes > room) room = list[k].way.work_bytes;
  }
  const size_t head = (rows->count * sizeof list[0] + 63) / 64 * 64;
  char *memory = ax_alloc(head + packed + room);
  if (memory == NULL) return AX_OUT_OF_MEMORY;
  w->products = (rows_product *)(void *)memory;
  memory += head;
  for (uint32_t k = 0; k < rows->count; k++) {
    if (rows->members[k].kind != AX_OP_GEMM) continue;
    w->products[k] = list[k];
    if (list[k].packed.packed == NULL) w->products[k].packed = packed_at(&list[k], memory, bytes[k]);
    memory += bytes[k];
  }
  w->room = memory;
  return AX_OK;
}

static ax_status compute_rows(const ax_frame *frame, const ax_instr *instr, int64_t begin, int64_t end, const rows_product *shared) {
  _Alignas(64) char block[AX_ROWS_BYTES];
  rows_work w;
  w.instr = instr->rows;
  w.coordinates = frame->coordinates;
  w.products = NULL;
  AX_TRY(prepare_products(&w, end - begin, shared));
  find_slots(&w, frame, instr, block);
  do_rows(&w, begin, end);
  ax_free(w.products);
  return AX_OK;
}

ax_status ax_compute_rows(const ax_frame *frame, const ax_instr *instr, int64_t begin, int64_t end) {
  return compute_rows(frame, instr, begin, end, NULL);
}

/* --- By several threads --- */

typedef struct rows_run {
  const ax_frame *frame;
  const ax_instr *instr;
  const rows_product *products; /* by member, their right factors packed; NULL: each part packs its own */
  int64_t parts;
  bool whole;                   /* parts are of whole outer indices */
  /* of a product at hand: */
  const rows_product *packing;
  const char *factor;
  int64_t packs;
} rows_run;

static ax_status pack_part(const void *context, uint32_t part) {
  const rows_run *r = context;
  const rows_product *of = r->packing;
  const int64_t panels = ax_product_panels(&of->product, &of->way);
  ax_product_pack_columns(&of->product, &of->way, r->factor, panels * part / r->packs, panels * (part + 1) / r->packs, of->packed);
  return AX_OK;
}

static int64_t first_row(const rows_run *r, int64_t part) {
  const ax_rows *rows = r->instr->rows->rows;
  return r->whole ? rows->outer * part / r->parts * rows->extent : ax_part_begin(rows->outer * rows->extent, part, r->parts);
}

static ax_status compute_part(const void *context, uint32_t part) {
  const rows_run *r = context;
  return compute_rows(r->frame, r->instr, first_row(r, part), first_row(r, part + (int64_t)1), r->products);
}

/* The right factors of all products, packed; *memory: where. */
static ax_status pack_factors(ax_execution *run, ax_seat *seat, rows_run *r, rows_product *list, char **memory, size_t *bytes) {
  const ax_rows *rows = r->instr->rows->rows;
  ax_pool *pool = &run->executable->runtime->pool;
  ax_status status = AX_OK;
  for (uint32_t k = 0; k < rows->count; k++)
    if (rows->members[k].kind == AX_OP_GEMM) *bytes += ax_gemm_packed_bytes(&list[k].product, &list[k].way);
  if (*bytes == 0) return AX_OK;
  if (ax_pool_alloc(pool, *bytes, (void **)memory) != AX_OK) return AX_OUT_OF_MEMORY;
  char *at = *memory;
  for (uint32_t k = 0, slot = 0; k < rows->count && status == AX_OK; slot += ax_op_slots(&rows->members[k++])) {
    const ax_gemm *g = rows->members[k].gemm;
    const size_t mine = rows->members[k].kind == AX_OP_GEMM ? ax_gemm_packed_bytes(&list[k].product, &list[k].way) : 0;
    if (mine == 0) continue;
    list[k].packed = packed_at(&list[k], at, mine);
    list[k].packed_of = 0;
    r->packing = &list[k];
    r->factor = (const char *)ax_address(r->frame, &r->instr->refs[slot + 1]) + g->b_offset * list[k].way.kernels->number_bytes;
    r->packs = (int64_t)(mine / pack_bytes) + 1;
    if (r->packs > ax_product_panels(&list[k].product, &list[k].way)) r->packs = ax_product_panels(&list[k].product, &list[k].way);
    status = ax_share_parts(run, seat, pack_part, r, (uint32_t)r->packs);
    at += mine;
  }
  r->products = list;
  return status;
}

/* Parts are whole outer indices where there are enough of them, since each needs factors of its own. */
ax_status ax_rows_run(ax_execution *run, ax_seat *seat, const ax_frame *frame, const ax_instr *instr) {
  const ax_rows *rows = instr->rows->rows;
  rows_product list[AX_ROWS_MEMBERS];
  rows_run r = {.frame = frame, .instr = instr, .parts = instr->parts};
  char *memory = NULL;
  size_t bytes = 0;
  ax_status status = AX_OK;
  const bool products = choose_products(rows, rows->extent, list);
  if (products && r.parts > thread_parts * (int64_t)run->threads) r.parts = thread_parts * run->threads;
  r.whole = products && rows->outer >= r.parts;
  if (products && rows->outer == 1) status = pack_factors(run, seat, &r, list, &memory, &bytes);
  if (status == AX_OK) status = ax_share_parts(run, seat, compute_part, &r, (uint32_t)r.parts);
  ax_pool_free(&run->executable->runtime->pool, memory, bytes);
  return status;
}
