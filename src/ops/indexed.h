/* Windows of an operand at places that indices say: what gather, which reads them, and the scatters, which write them, share.

     operand  [ .. d .. ]       a window is a box of it, of sizes[d] each, 1 where d is collapsed or batching
     indices  [ b.., n ]        n numbers for each b..: where its window begins along operand dimensions map[0 .. n)
     wide     [ b.. and w.. ]   gather's result, a scatter's updates: the window of each b.., without the dimensions of 1; its
   dimensions w.. stand at `window`, those of b.. at the others, both in order

   Names are those of jax.lax's GatherDimensionNumbers; ScatterDimensionNumbers has others for the same. Batching dimensions of the
   operand go along with dimensions of the indices: b there is where its window lies. */
#ifndef AX_OPS_INDEXED_H
#define AX_OPS_INDEXED_H

#include "prim/shape.h"

typedef struct ax_indexing {
  ax_dims window, collapsed, map, batching, index_batching;
  const char *mode; /* what indices that say something outside come to: "fill", "clip" or "promise_in_bounds" */
  bool sorted, unique;
} ax_indexing;

/* Fields of params: by the names that the primitive gives them. */
#define AX_INDEXING_PARAMS(type, window_, collapsed_, map_, batching_, index_batching_)                      \
  {window_, AX_PARAM_DIMS, offsetof(type, at.window)}, {collapsed_, AX_PARAM_DIMS, offsetof(type, at.collapsed)}, \
      {map_, AX_PARAM_DIMS, offsetof(type, at.map)}, {batching_, AX_PARAM_DIMS, offsetof(type, at.batching)},     \
      {index_batching_, AX_PARAM_DIMS, offsetof(type, at.index_batching)}, {"mode", AX_PARAM_TEXT, offsetof(type, at.mode)}, \
      {"indices_are_sorted", AX_PARAM_BOOL, offsetof(type, at.sorted)}, {"unique_indices", AX_PARAM_BOOL, offsetof(type, at.unique)}

/* Who goes with whom; -1: nobody. */
typedef struct ax_index_windows {
  uint32_t rank, index_rank, wide_rank; /* of the operand, the indices, and what is wide */
  int wide_of[AX_MAX_RANK]; /* by operand dimension: a wide one that moves in it, of its window or of the indices that it batches
                               with */
  int component_of[AX_MAX_RANK];  /* by operand dimension: which number of an index moves it */
  int wide_of_index[AX_MAX_RANK]; /* by dimension of the indices but the last */
  int64_t sizes[AX_MAX_RANK];     /* of a window, by operand dimension */
  int64_t limit[AX_MAX_RANK];     /* where a window may begin at most, by operand dimension */
} ax_index_windows;

/* Refuses what does not go together; `names` are those of the parameters in AX_INDEXING_PARAMS' order. */
AX_MUST_USE ax_status ax_indexing_check(const ax_indexing *at, const char *const *names, const ax_type *operand,
                                        const ax_type *indices);
/* Of parameters that were checked, sizes one an operand dimension. */
ax_index_windows ax_windows_of(const ax_indexing *at, const ax_type *operand, const ax_type *indices, const int64_t *sizes);
/* The sizes of windows that what is wide has. */
void ax_window_sizes(const ax_indexing *at, const ax_type *operand, const ax_type *wide, int64_t *sizes);

/* Windows that are not inside are nowhere. Others are moved inside, also where it was promised that there are none. */
static inline bool ax_indexing_fills(const ax_indexing *at) { return at->mode[0] == 'f'; }

/* For eval: where the element of what is wide with number `index` lies in the operand. -1: nowhere, as its window is not inside,
   unless `clips`. */
int64_t ax_window_place(const ax_index_windows *w, const ax_tensor *operand, const ax_tensor *indices, const ax_tensor *wide,
                        int64_t index, bool clips);

/* For transforms: the parameters of the same over operands with a batch dimension in front, for those that are batched (dimension
   >= 0); both, or the one. `sizes`, of windows, get an entry for it. False: the trace has failed. */
bool ax_indexing_batch(const ax_prim *prim, ax_indexing *at, bool operand, bool indices, int64_t size, ax_dims *sizes);
/* A front function's lists and options as parameters. False: the trace has failed. */
bool ax_indexing_take(const ax_prim *prim, const ax_dim_list *const lists[5], const ax_index_options *options, ax_indexing *out);

/* For lower: the places of windows in the operand, in terms of the kernel being built, whose first loops are those of what is wide.
   `inside`: whether the window is, a node; AX_NONE where it cannot be elsewhere. NULL: it is not asked. */
void ax_lower_windows(ax_lower *lower, const ax_index_windows *w, uint32_t indices, ax_position *at, ax_ex *inside);

/* For hlo: a mask of the shape of what is wide, true where the window is inside; the indices as s64, clamped; and the lists of
   "#stablehlo.gather<..", not closed: `names` in the order window, collapsed, batching, index_batching, map. */
AX_MUST_USE ax_status ax_hlo_windows_inside(ax_hlo *hlo, const ax_index_windows *w, uint32_t indices, const ax_type *index_type,
                                            const ax_type *wide, uint32_t *out);
AX_MUST_USE ax_status ax_hlo_indices_clamped(ax_hlo *hlo, const ax_index_windows *w, uint32_t indices, const ax_type *index_type,
                                             ax_type *type, uint32_t *out);
void ax_hlo_indexing(ax_text *text, const char *lead, const char *const *names, const ax_indexing *at);

/* For shard: a factor for each dimension of the indices but the last, where it stands in what is wide, and in the operand where it
   batches with it; of `alone` where it does not, or none where `alone` is NULL. Likewise each dimension of the operand that windows
   have whole. `out`: NULL, or what has the operand's dimensions. */
void ax_shard_windows(const ax_shard_args *args, const ax_index_windows *w, const ax_indexing *at, ax_factored *wide,
                      ax_factored *out, const ax_factor_kind *alone);
/* Whether an index's number picks one place of d: then a device that has some of them can do what is asked of these. */
bool ax_window_picks(const ax_index_windows *w, const ax_indexing *at, uint32_t d);

/* For block: where such dimensions are cut, *cut is true, and the result is the indices, as s64, counted from where this device's
   block begins; what is not in it is outside of it. Where windows are not inside the whole operand either, they are in no device's;
   *outside: which those are, b.. (NULL: not asked). */
ax_value ax_block_indices(const ax_block_args *args, const ax_index_windows *w, const ax_indexing *at, bool *cut,
                          ax_value *outside);

#endif
