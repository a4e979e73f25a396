/* The scatters, for the rules of other primitives, and the routine that computes them. */
#ifndef AX_OPS_SCATTER_H
#define AX_OPS_SCATTER_H

#include "ops/indexed.h"

typedef struct ax_scatter_params {
  ax_indexing at;
} ax_scatter_params;

static inline const ax_indexing *ax_scatter_indexing(const ax_eqn *eqn) { return &((const ax_scatter_params *)eqn->params)->at; }

/* x with the updates added, or put. The lists mean the same as those of the gather that reads the same windows. */
ax_value ax_scatter_add_of(ax_value x, ax_value indices, ax_value updates, const ax_indexing *at);
ax_value ax_scatter_of(ax_value x, ax_value indices, ax_value updates, const ax_indexing *at);

/* Each array with its updates combined by the body, a function of the arrays' elements and then the updates' to the arrays' new ones, in
   the order of the indices (scatter_by.c). AX_INVALID_ARGUMENT: lists and shapes as of scatter; a body that is no function of such
   scalars. May also fail the trace. */
AX_MUST_USE ax_status ax_scatter_by(uint32_t count, const ax_value *xs, ax_value indices, const ax_value *updates,
                                    const ax_scatter_params *params, ax_fn body, ax_value *out);

/* Says whether a scatter has one small window (scatter_single.c); and lowers it as a slice that is overwritten. */
bool ax_scatter_has_one(const ax_eqn *eqn, const ax_type *types);
AX_MUST_USE ax_status ax_scatter_lower_one(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);

/* Says whether a scatter has one window, or a few, for each place along the dimensions that no index moves along, at one of few places
   (scatter_each.c); and lowers it as a kernel that goes through all places. fresh: the array is one number or row repeated, which no update in place
   would save. */
bool ax_scatter_has_few_each(const ax_eqn *eqn, const ax_type *types, bool fresh);
AX_MUST_USE ax_status ax_scatter_lower_few_each(ax_lower *lower, ax_scalar combine, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);

/* Adds the routine that applies the updates to a copy of the operand (scatter_routine.c). Its memory: indices, updates, then the
   result. combine AX_SCALAR_NONE: an update replaces the element. */
AX_MUST_USE ax_status ax_lower_scatter(ax_lower *lower, ax_scalar combine, const ax_index_windows *w, bool clips,
                                       const uint32_t *in, uint32_t out);

#endif
