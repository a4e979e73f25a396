/* Windows of an operand at places given by indices, for gather, which reads the windows, and for the scatters, which write them.

     operand  [ .. d .. ]       a window is a box of it, of sizes[d] each, 1 where d is collapsed or batching
     indices  [ b.., n ]        n numbers for each b..: the start of its window along operand dimensions map[0 .. n)
     wide     [ b.. and w.. ]   gather's result, a scatter's updates: the window of each b.., without the dimensions of 1.
                                w.. are the dimensions listed in `window`, b.. the others, both in order

   The fields are named after jax.lax's GatherDimensionNumbers; ScatterDimensionNumbers has other names for the same fields. Each
   batching dimension of the operand is paired with a dimension of the indices: the window of b.. lies at b's coordinate
   along it. */
#ifndef AX_OPS_INDEXED_H
#define AX_OPS_INDEXED_H

#include "hlo/read.h"
#include "ir/prim.h"
#include "prim/shape.h"

typedef struct ax_indexing {
  ax_dims window, collapsed, map, batching, index_batching;
  const char *mode; /* the treatment of indices whose window is not inside: "fill", "clip" or "promise_in_bounds" */
  bool sorted, unique;
} ax_indexing;

/* The fields as parameters of a primitive, under the primitive's own names. */
#define AX_INDEXING_PARAMS(type, window_, collapsed_, map_, batching_, index_batching_)                      \
  {window_, AX_PARAM_DIMS, offsetof(type, at.window)}, {collapsed_, AX_PARAM_DIMS, offsetof(type, at.collapsed)}, \
      {map_, AX_PARAM_DIMS, offsetof(type, at.map)}, {batching_, AX_PARAM_DIMS, offsetof(type, at.batching)},     \
      {index_batching_, AX_PARAM_DIMS, offsetof(type, at.index_batching)}, {"mode", AX_PARAM_TEXT, offsetof(type, at.mode)}, \
      {"indices_are_sorted", AX_PARAM_BOOL, offsetof(type, at.sorted)}, {"unique_indices", AX_PARAM_BOOL, offsetof(type, at.unique)}

/* For reading StableHLO, where any dimension of the indices may have an index's numbers, or none: makes it the last. Dimensions in
   `batching` follow. numbers: the attribute that says which it is. */
AX_MUST_USE ax_status ax_hlo_index_vectors(const ax_hlo_read_args *args, const char *numbers, ax_value indices, ax_dims *batching,
                                           ax_value *out);

/* The dimensions of operand, indices and wide array that belong together; -1: none does. */
typedef struct ax_index_windows {
  uint32_t rank, index_rank, wide_rank; /* ranks of the operand, the indices and the wide array */
  int wide_of[AX_MAX_RANK]; /* by operand dimension: the wide dimension that moves in it, which is a dimension of its window or of
                               the indices it is batched with */
  int component_of[AX_MAX_RANK];  /* by operand dimension: the number of an index that moves the window along it */
  int wide_of_index[AX_MAX_RANK]; /* by dimension of the indices but the last: the wide dimension */
  int64_t sizes[AX_MAX_RANK];     /* sizes of a window, by operand dimension */
  int64_t limit[AX_MAX_RANK];     /* the largest start of a window, by operand dimension */
} ax_index_windows;

/* Refuses lists of dimensions that do not fit each other or the operands; `names` are the parameters' names in AX_INDEXING_PARAMS'
   order. */
AX_MUST_USE ax_status ax_indexing_check(const ax_indexing *at, const char *const *names, const ax_type *operand,
                                        const ax_type *indices);
/* The windows of checked parameters; `sizes` has one entry an operand dimension. */
ax_index_windows ax_windows_of(const ax_indexing *at, const ax_type *operand, const ax_type *indices, const int64_t *sizes);
/* Finds the sizes of a scatter's windows, one an operand dimension, from the wide array's type. */
void ax_window_sizes(const ax_indexing *at, const ax_type *operand, const ax_type *wide, int64_t *sizes);
/* The windows of a scatter, whose updates have the sizes. */
ax_index_windows ax_scatter_windows(const ax_indexing *at, const ax_type *operand, const ax_type *indices, const ax_type *updates);

/* Says whether windows that are not inside the operand are skipped or filled. In the other modes they are moved inside, also where
   the caller promised that there are none. */
static inline bool ax_indexing_fills(const ax_indexing *at) { return at->mode[0] == 'f'; }

/* For eval: the offset in the operand of element number `index` of the wide array. -1 if that element's window is not inside the
   operand and `clips` is false. */
int64_t ax_window_place(const ax_index_windows *w, const ax_tensor *operand, const ax_tensor *indices, const ax_tensor *wide,
                        int64_t index, bool clips);

/* For transforms: rewrites the parameters for operands with a batch dimension in front, on the operand, the indices or both, as the
   two flags say. `sizes`, the windows' sizes, get an entry for it. False: the trace has failed. */
bool ax_indexing_batch(const ax_prim *prim, ax_indexing *at, bool operand, bool indices, int64_t size, ax_dims *sizes);
/* Reads a front function's lists and options into parameters. False: the trace has failed. */
bool ax_indexing_take(const ax_prim *prim, const ax_dim_list *const lists[5], const ax_index_options *options, ax_indexing *out);

/* For lower: number `component` of an index, as an s64 node of the kernel being built; at_index: where it is, by dimension of the indices but
   the last. */
ax_ex ax_lower_index(ax_lower *lower, const ax_index_windows *w, uint32_t indices, int component, const ax_position *at_index);
/* For lower: the positions of windows in the operand, as terms of the kernel being built, whose first loops are the wide array's
   dimensions. *inside becomes the node that says whether the window is inside, AX_NONE if it always is; `inside` may be NULL. */
void ax_lower_windows(ax_lower *lower, const ax_index_windows *w, uint32_t indices, ax_position *at, ax_ex *inside);

/* For hlo: a mask of the wide array's shape, true where the window is inside; the indices as s64, clamped. */
uint32_t ax_hlo_windows_inside(ax_hlo *hlo, const ax_index_windows *w, uint32_t indices, const ax_type *index_type,
                               const ax_type *wide);
uint32_t ax_hlo_indices_clamped(ax_hlo *hlo, const ax_index_windows *w, uint32_t indices, const ax_type *index_type);

/* For shard: gives each dimension of the indices but the last a factor, shared with its dimension of the wide array and with the
   operand's dimension that it is batched with. A dimension that is not batched gets a factor of kind *alone, or none if `alone` is
   NULL. Each operand dimension that windows have whole gets a factor likewise. `out`: the tensor that has the operand's dimensions,
   or NULL. */
void ax_shard_windows(const ax_shard_args *args, const ax_index_windows *w, const ax_indexing *at, ax_factored *wide,
                      ax_factored *out, const ax_factor_kind *alone);
/* Says whether an index picks single places along operand dimension d. A device that holds some of these places can then do the
   work for them alone. */
bool ax_window_picks(const ax_index_windows *w, const ax_indexing *at, uint32_t d);
/* A window of a dimension of n has few of its elements if it has at most n / AX_FEW_OF. */
enum { AX_FEW_OF = 8 };

/* Says whether windows cover several places along operand dimension d, but few of them. A device that holds a block can then do the work for
   what windows have of the block, if it has room for the rest of them: sizes[d] - 1 more places on either side. */
bool ax_window_overlaps(const ax_index_windows *w, const ax_indexing *at, uint32_t d);

/* If devices look for elements in their own blocks, the results are parts of a sum: one device has the element, the others a number that
   changes none it is added to. Of bools, keys and powers of 2 (f8e8m0fnu) there is no such number. */
bool ax_picked_adds_up(ax_dtype dtype);
/* For block: this number, as a literal of the trace in progress. Of dtypes that round it is -0, since 0 would make a 0 of a -0. */
ax_literal ax_not_picked(ax_dtype dtype);

/* For block: the indices, as s64, counted from the start of this device's block, when dimensions that an index picks from are cut;
   *cut says whether any is. An index outside the block is then outside the operand. Along dimensions that windows overlap they count from the
   block with room on either side (ax_window_overlaps). If *cut and mode is "fill", *outside becomes a
   mask over b.. of the windows that are not inside the whole operand; these are in no device's block either. */
ax_value ax_block_indices(const ax_block_args *args, const ax_index_windows *w, const ax_indexing *at, bool *cut,
                          ax_value *outside);

#endif
