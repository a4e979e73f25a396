/* The scatters, for the rules of other primitives, and the routine that computes them. */
#ifndef AX_OPS_SCATTER_H
#define AX_OPS_SCATTER_H

#include "ops/indexed.h"

typedef struct ax_scatter_params {
  ax_indexing at;
} ax_scatter_params;

/* x with the updates added, or put. The lists mean the same as those of the gather that reads the same windows. */
ax_value ax_scatter_add_of(ax_value x, ax_value indices, ax_value updates, const ax_indexing *at);
ax_value ax_scatter_of(ax_value x, ax_value indices, ax_value updates, const ax_indexing *at);

/* Adds the routine that applies the updates to a copy of the operand (scatter_routine.c). Its memory: indices, updates, then the
   result. combine AX_SCALAR_NONE: an update replaces the element. */
AX_MUST_USE ax_status ax_lower_scatter(ax_lower *lower, ax_scalar combine, const ax_index_windows *w, bool clips,
                                       const uint32_t *in, uint32_t out);

#endif
