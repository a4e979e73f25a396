/* PUSH and CLEAR instructions: exchanges between the activations of a group. */
#ifndef AX_RUN_PUSH_H
#define AX_RUN_PUSH_H

#include <string.h>

#include "run/execution.h"

/* The rows of a part, on both sides; strides in elements, by dimension around a run. src_stride NULL: src has only the rows that
   are put, one after the other. dst_item: bytes of an element there. */
typedef struct ax_push_rows {
  const char *src;
  char *dst;
  const int64_t *src_stride, *dst_stride;
  int64_t dst_item;
} ax_push_rows;

/* The code by which a contribution is put: combined with what is there, or the first. NULL: it is copied. */
static inline ax_kernel_code ax_push_code(const ax_push *push, bool combine) { return combine ? push->combine : push->widen; }
/* Puts elements begin to end - 1 of a run. */
static inline void ax_push_put_run(const ax_push *push, ax_kernel_code code, const char *src, char *dst, int64_t begin,
                                   int64_t end) {
  if (code != NULL) {
    void *slots[] = {dst, (void *)src};
    code(slots, NULL, begin, end);
  } else if (end > begin) { /* empty arrays have no address */
    memcpy(dst + begin * push->item, src + begin * push->item, (size_t)((end - begin) * push->item));
  }
}
/* Elements from the beginning of the part to a row, at dst. */
int64_t ax_push_row_offset(const ax_push *push, const ax_push_rows *rows, int64_t row);
/* Puts rows begin to end - 1. */
void ax_push_put_rows(const ax_push *push, ax_kernel_code code, const ax_push_rows *rows, int64_t begin, int64_t end);

/* Copies or combines this activation's parts of an exchange into their targets, then signals the exchange's event. In a batch, the
   last member does both for all others. *parked: the activation must wait for its turn. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_push_do(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation,
                                 const ax_instr *instr, uint32_t f, bool *parked);
/* Sets the activation's result of a ppermute to zero, if it has no source. */
void ax_push_clear(const ax_activation *activation, const ax_instr *instr);

#endif
