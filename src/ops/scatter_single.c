/* A scatter of one window that is not large, as x[i, j] = y or x[i] += y: a slice that is overwritten, by kernels. Where a
   window outside of x is skipped, what stands at the nearest place inside is put there again. So a loop of such updates is
   compiled as one function, which no routine can be part of, and works in x's own memory. */
#include "ops/indexed.h"
#include "ops/scatter.h"
#include "prim/expand.h"
#include "prim/prims.h"

/* Elements. Of whole rows, which lie together, the routine copies more at once. */
enum { small_window = 1024, most_of_parts = 1 << 18 };

/* Whether the window has whole rows of x, but for its first dimension of more than one index. */
static bool has_whole_rows(const ax_type *x, const ax_index_windows *w) {
  uint32_t d = 0;
  while (d < x->rank && w->sizes[d] == 1) d++;
  for (d++; d < x->rank; d++)
    if (w->sizes[d] != x->dims[d]) return false;
  return true;
}

bool ax_scatter_has_one(const ax_eqn *eqn, const ax_type *types) {
  const ax_type *x = &types[eqn->in[0]], *indices = &types[eqn->in[1]], *updates = &types[eqn->in[2]];
  const ax_index_windows w = ax_scatter_windows(ax_scatter_indexing(eqn), x, indices, updates);
  bool one = ax_type_elems(updates) <= (has_whole_rows(x, &w) ? small_window : most_of_parts) &&
             (indices->dtype == AX_S32 || indices->dtype == AX_S64);
  if (eqn->prim != &ax_prim_scatter) one = one && ax_dtype_get(x->dtype)->kind != AX_KIND_COMPLEX && x->dtype != AX_BOOL;
  for (uint32_t d = 0; d + 1 < indices->rank; d++) one = one && indices->dims[d] == 1;
  for (uint32_t d = 0; d < x->rank; d++) one = one && w.limit[d] >= 0 && w.limit[d] <= INT32_MAX;
  return one;
}

/* Where the window starts, one number a dimension. Returns whether it is inside. */
static ax_value take_starts(const ax_index_windows *w, ax_value indices, ax_value *starts) {
  const ax_type type = ax_typeof(indices);
  const int64_t count = type.dims[type.rank - 1], stride = 1;
  const ax_value zero = (ax_full)(type.dtype, AX_LIST(0, NULL), 0), numbers = (ax_reshape)(indices, AX_LIST(1, &count));
  ax_value inside = (ax_full)(AX_BOOL, AX_LIST(0, NULL), 1);
  for (uint32_t d = 0; d < w->rank; d++) {
    const int64_t first = w->component_of[d], behind = first + 1;
    starts[d] = zero;
    if (first < 0) continue;
    starts[d] = (ax_reshape)((ax_slice)(numbers, AX_LIST(1, &first), AX_LIST(1, &behind), AX_LIST(1, &stride)), AX_LIST(0, NULL));
    const ax_value limit = (ax_full)(type.dtype, AX_LIST(0, NULL), (double)w->limit[d]);
    inside = ax_and(inside, ax_and(ax_ge(starts[d], zero), ax_le(starts[d], limit)));
  }
  return inside;
}

static ax_value combined(const ax_prim *prim, ax_value before, ax_value update) {
  return prim == &ax_prim_scatter_add   ? ax_add(before, update)
         : prim == &ax_prim_scatter_mul ? ax_mul(before, update)
         : prim == &ax_prim_scatter_min ? ax_min(before, update)
         : prim == &ax_prim_scatter_max ? ax_max(before, update)
                                        : update;
}

static ax_value expand(const ax_eqn *eqn, const ax_value *in) {
  const ax_type x = ax_typeof(in[0]), indices = ax_typeof(in[1]), updates = ax_typeof(in[2]);
  const ax_index_windows w = ax_scatter_windows(ax_scatter_indexing(eqn), &x, &indices, &updates);
  ax_value starts[AX_MAX_RANK];
  const ax_value inside = take_starts(&w, in[1], starts);
  const ax_value before = (ax_dynamic_slice)(in[0], AX_LIST(x.rank, starts), AX_LIST(x.rank, w.sizes));
  ax_value window = combined(eqn->prim, before, (ax_reshape)(in[2], AX_LIST(x.rank, w.sizes)));
  if (ax_indexing_fills(ax_scatter_indexing(eqn))) window = ax_select_n(inside, before, window);
  return (ax_dynamic_update_slice)(in[0], window, AX_LIST(x.rank, starts));
}

ax_status ax_scatter_lower_one(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_expanded(lower, eqn, expand, in, out);
}
