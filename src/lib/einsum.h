/* Declarations shared by the two files of einsum: sets of labels, and the order of products. */
#ifndef AX_LIB_EINSUM_H
#define AX_LIB_EINSUM_H

#include "prim/bind.h"

/* A label is a letter of the subscripts, or a dimension that an ellipsis stands for. Labels are numbered in the order of their
   first use. */
enum { AX_EINSUM_LABELS = 64 };
typedef uint64_t ax_labels; /* a set of them */

/* A product of two terms. Operands are terms 0 .. count - 1, and the result of step k is term count + k. It has the labels `kept`,
   those that the einsum's result or another term needs, and is summed over the others. */
typedef struct ax_einsum_step {
  uint32_t left, right;
  ax_labels kept;
} ax_einsum_step;

/* Finds the count - 1 products that combine `count` terms with these labels: for up to eight terms the order of least cost
   (einsum_order.c), for more a greedy order. Each label of a term is in another term or in `out`. size: by label. False: the trace
   has failed, as the products have more than AX_MAX_RANK dimensions in every order that was tried. */
bool ax_einsum_order(uint32_t count, const ax_labels *terms, ax_labels out, const int64_t *size, ax_einsum_step *steps);

#endif
