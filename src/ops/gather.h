/* gather, for the rules of other primitives. */
#ifndef AX_OPS_GATHER_H
#define AX_OPS_GATHER_H

#include "ops/indexed.h"

typedef struct ax_gather_params {
  ax_indexing at;
  ax_dims slice_sizes;
  ax_literal fill_value;
} ax_gather_params;

/* gather with mode "fill": windows of x that are not inside x are 0. */
ax_value ax_gather_of(ax_value x, ax_value indices, const ax_indexing *at, const int64_t *sizes);

#endif
