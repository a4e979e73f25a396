/* Reads the text of an index, such as "1:-1, ::2, 3, ..., None": the words that NumPy has between the brackets of x[..]. axle/ops.h
   (ax_index) says what they mean. */
#ifndef AX_IR_INDEX_TEXT_H
#define AX_IR_INDEX_TEXT_H

#include "ir/equation.h"

/* The indices along one dimension: start, start + step, ..; all of them are inside. */
typedef struct ax_index_range {
  int64_t start, count, step; /* step is not 0, and may be negative */
} ax_index_range;

typedef struct ax_index_part {
  ax_index_range along[AX_MAX_RANK]; /* one for each dimension of the array */
  ax_dims result;                    /* the dimensions of the part: without those that have a single number, with each None */
} ax_index_part;

/* Applies the text to an array of this type. AX_INVALID_ARGUMENT: the text is NULL, is no index, or does not fit the array; the
   message has the character at which it is wrong. */
AX_MUST_USE ax_status ax_index_read(const char *text, const ax_type *type, ax_index_part *out);

#endif
