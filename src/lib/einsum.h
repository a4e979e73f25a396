/* What the two files of einsum share: sets of labels, and the order of products. */
#ifndef AX_LIB_EINSUM_H
#define AX_LIB_EINSUM_H

#include "prim/rules.h"

/* A label is a letter of the subscripts, or a dimension that an ellipsis stands for; they are numbered as they are met. */
enum { AX_EINSUM_LABELS = 64 };
typedef uint64_t ax_labels; /* a set of them */

/* A product of two terms. Operands are terms 0 .. count, the result of step k is term count + k; it has the labels `kept`, those
   that the end result or another term needs, and is summed over the others. */
typedef struct ax_einsum_step {
  uint32_t left, right;
  ax_labels kept;
} ax_einsum_step;

/* The count - 1 steps that make `count` terms with these labels one, of few multiplications: the fewest there can be where there
   are at most eight terms. Each label of a term is in another one or in `out`. size: by label. False: the trace has failed; no
   order has only results of AX_MAX_RANK dimensions or fewer. */
bool ax_einsum_order(uint32_t count, const ax_labels *terms, ax_labels out, const int64_t *size, ax_einsum_step *steps);

#endif
