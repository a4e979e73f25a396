/* Transposed copies between rows that lie anywhere. */
#ifndef AX_RUN_TRANSPOSE_H
#define AX_RUN_TRANSPOSE_H

#include <stdint.h>

/* Copies item p of each source row q to item q of destination row p. Items have `item` bytes; a step is the distance from one item
   of a row to the next, in bytes. No destination overlaps another, or a source. */
void ax_transpose_rows(char *const *dst, int64_t dst_step, uint32_t dst_count, const char *const *src, int64_t src_step,
                       uint32_t src_count, int64_t item);

#endif
