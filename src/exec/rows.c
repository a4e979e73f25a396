/* A ROWS instruction: kernels over the same rows, a block of rows at a time (ax_rows in loop/plan.h).

   A slot of a local root is as if the root lay in memory whole: where row `first` of the block lies less so many rows. So kernels know nothing of it. */
#include "exec/compute.h"

typedef struct rows_work {
  const ax_rows_instr *instr;
  const int64_t *coordinates;
  char *base[AX_ROWS_SLOTS];  /* by slot, of outer index 0 and, where it is local, of a block that begins with row 0 */
  void *slots[AX_ROWS_SLOTS]; /* of the block at hand */
} rows_work;

/* Rows begin .. end of the one outer index `outer`. */
static void do_block(rows_work *w, int64_t outer, int64_t begin, int64_t end) {
  const ax_rows *rows = w->instr->rows;
  for (uint32_t i = 0; i < rows->slot_count; i++) {
    const ax_rows_slot *slot = &rows->slots[i];
    w->slots[i] = (void *)((uintptr_t)w->base[i] + (uintptr_t)(outer * slot->outer_step - begin * slot->row_bytes));
  }
  void **slots = w->slots;
  for (uint32_t k = 0; k < rows->count; slots += rows->kernels[k++].kernel.kernel->slot_count) w->instr->code[k](slots, w->coordinates, begin, end);
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

void ax_compute_rows(const ax_frame *frame, const ax_instr *instr, int64_t begin, int64_t end) {
  _Alignas(64) char block[AX_ROWS_BYTES];
  rows_work w;
  w.instr = instr->rows;
  w.coordinates = frame->coordinates;
  find_slots(&w, frame, instr, block);
  do_rows(&w, begin, end);
}
