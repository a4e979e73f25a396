/* A ROWS instruction: kernels and products over the same rows, a block of rows at a time (ax_rows in loop/plan.h).

   A slot of a local root is as if the root lay in memory whole: where row `first` of the block lies less so many rows. So its members know nothing of it. */
#include "exec/compute.h"

typedef struct rows_work {
  const ax_rows_instr *instr;
  const int64_t *coordinates;
  char *base[AX_ROWS_SLOTS];  /* by slot, of outer index 0 and, where it is local, of a block that begins with row 0 */
  void *slots[AX_ROWS_SLOTS]; /* of the block at hand */
  void *work;                 /* of products: */
  size_t work_bytes;
} rows_work;

static ax_status do_product(rows_work *w, const ax_gemm *g, uint32_t first_slot, int64_t outer, int64_t begin, int64_t end) {
  const ax_product p = ax_gemm_product(g, end - begin, g->n);
  const ax_product_way way = ax_product_choose(&p, AX_REGISTER_BYTES);
  int64_t at[3] = {g->a_offset, g->b_offset, g->c_offset}, all[3];
  if (way.work_bytes > w->work_bytes) {
    ax_free(w->work);
    w->work_bytes = 0;
    if ((w->work = ax_alloc(way.work_bytes)) == NULL) return AX_OUT_OF_MEMORY;
    w->work_bytes = way.work_bytes;
  }
  ax_gemm_begin(g, outer, all);
  for (uint32_t i = 0; i < 3; i++)
    if (w->instr->rows->slots[first_slot + i].row_bytes == 0) at[i] = all[i];
  void *const *slots = w->slots + first_slot;
  const char *a = (const char *)slots[0] + (at[0] + begin * p.a_row) * way.kernels->number_bytes;
  const char *b = (const char *)slots[1] + at[1] * way.kernels->number_bytes;
  ax_product_run(&p, &way, a, b, (char *)slots[2] + (at[2] + begin * p.c_row) * way.kernels->result_bytes, w->work);
  return AX_OK;
}

/* Rows begin .. end of the one outer index `outer`. */
static ax_status do_block(rows_work *w, int64_t outer, int64_t begin, int64_t end) {
  const ax_rows *rows = w->instr->rows;
  for (uint32_t i = 0; i < rows->slot_count; i++) {
    const ax_rows_slot *slot = &rows->slots[i];
    w->slots[i] = (void *)((uintptr_t)w->base[i] + (uintptr_t)(outer * slot->outer_step - begin * slot->row_bytes));
  }
  uint32_t first = 0;
  for (uint32_t k = 0; k < rows->count; first += ax_op_slots(&rows->members[k++])) {
    const ax_op *member = &rows->members[k];
    if (member->kind == AX_OP_GEMM) AX_TRY(do_product(w, member->gemm, first, outer, begin, end));
    else w->instr->code[k](w->slots + first, w->coordinates, begin, end);
  }
  return AX_OK;
}

static ax_status do_rows(rows_work *w, int64_t begin, int64_t end) {
  const ax_rows *rows = w->instr->rows;
  while (begin < end) {
    int64_t outer = begin / rows->extent, first = begin % rows->extent, last = first + rows->step;
    if (last > rows->extent) last = rows->extent;
    if (last > first + (end - begin)) last = first + (end - begin);
    AX_TRY(do_block(w, outer, first, last));
    begin += last - first;
  }
  return AX_OK;
}

static void find_slots(rows_work *w, const ax_frame *frame, const ax_instr *instr, char *block) {
  const ax_rows *rows = w->instr->rows;
  for (uint32_t i = 0; i < rows->slot_count; i++) {
    const ax_ref *ref = &instr->refs[i];
    w->base[i] = rows->slots[i].row_bytes != 0 ? block + rows->slots[i].place + ref->offset : ax_address(frame, ref);
  }
}

ax_status ax_compute_rows(const ax_frame *frame, const ax_instr *instr, int64_t begin, int64_t end) {
  _Alignas(64) char block[AX_ROWS_BYTES];
  rows_work w;
  w.instr = instr->rows;
  w.coordinates = frame->coordinates;
  w.work = NULL;
  w.work_bytes = 0;
  find_slots(&w, frame, instr, block);
  ax_status status = do_rows(&w, begin, end);
  ax_free(w.work);
  return status;
}
