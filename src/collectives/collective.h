/* What the collective primitives share. A collective's parameters begin with its axes; n is the number of members of a group, who
   are numbered row-major over the axes in the order named. The dimensions in parameters are checked and never negative; those of
   the public functions may count from the end. Gathering and scattering are tiled in the primitives (a dimension grows or shrinks
   n times); the public functions make the untiled forms of them by reshaping. */
#ifndef AX_COLLECTIVES_COLLECTIVE_H
#define AX_COLLECTIVES_COLLECTIVE_H

#include "prim/shape.h"

/* --- infer --- */
/* The number of members of a group along the named axes. AX_INVALID_ARGUMENT: groups of several sizes. */
AX_MUST_USE ax_status ax_collective_size(const ax_infer_args *args, const ax_axes *names, int64_t *size);
/* Refuses a dimension the operand does not have. `what` is the parameter's name. */
AX_MUST_USE ax_status ax_require_dimension(const char *what, int64_t dimension, const ax_infer_args *args);
/* dims[dimension] of the result times n; divided by n, where `operand` has what is divided. */
AX_MUST_USE ax_status ax_grow_dimension(ax_type *result, int64_t dimension, int64_t size);
AX_MUST_USE ax_status ax_cut_dimension(ax_type *result, int64_t dimension, int64_t size, const ax_infer_args *args);

/* --- Pairs (pairs.c) --- */
/* Numbers outside a group of so many members, and two pairs with one source or one target, are errors. */
AX_MUST_USE ax_status ax_pairs_check(const ax_pairs *pairs, int64_t members);
/* Sources and targets exchanged, in the trace's memory; false: none, and the trace has failed. */
bool ax_pairs_swap(const ax_pairs *pairs, ax_pairs *out);
/* "source_target_pairs = .., channel_handle = .." */
AX_MUST_USE ax_status ax_hlo_pairs(ax_text *text, const ax_hlo *hlo, const ax_axes *names, const ax_pairs *pairs, uint32_t channel);

/* --- spread: the operand must vary over the checked axes among those named. The result does not / does so too / is reduced over
   them. --- */
ax_status ax_spread_drop(const ax_infer_args *args);
ax_status ax_spread_keep(const ax_infer_args *args);
ax_status ax_spread_reduced(const ax_infer_args *args);
/* ... must vary or be unreduced over them, by one of the primitive's kinds. The result is invariant / varies over them. */
ax_status ax_spread_sum(const ax_infer_args *args);
ax_status ax_spread_scatter(const ax_infer_args *args);

/* The dtype that so many members of `dtype` are combined in. */
ax_dtype ax_combined_in(ax_scalar op, ax_dtype dtype, int64_t members);

/* --- eval --- */
/* The tensor's elements from index `start` of dimension `dim` on. */
ax_strided ax_tensor_part(const ax_tensor *tensor, int64_t dim, int64_t start);
/* Element i of the members' tensors combined in member order; bf16 and f16 in f32, not yet rounded. */
ax_number ax_combine_members(ax_scalar op, ax_tensor *const *members, uint32_t count, int64_t i);

/* --- differs: the results do not / do differ along the axes of the collective, otherwise as the operand. --- */
void ax_differs_drop(const ax_differs_args *args);
void ax_differs_add(const ax_differs_args *args);

/* --- Names --- */
/* The names without `axis` (NULL: all of them); true when it was among them. */
bool ax_axes_without(const ax_axes *names, const char *axis, ax_axes *out);
/* The names before and after `axis`; false when it is not among them. */
bool ax_axes_around(const ax_axes *names, const char *axis, ax_axes *before, ax_axes *after);
/* The names that take part in varying/invariant types in the current trace, and the others; orders are kept. */
void ax_axes_split(const ax_axes *names, ax_axes *checked, ax_axes *unchecked);
/* The number of members along the names, which are known in the current trace; with groups, of the first of them. */
int64_t ax_axes_members(const ax_axes *names);

/* --- Building equations --- */
/* x made to vary over `axes` as a collective wants it where it is invariant, and the names parsed; false and the trace failed
   otherwise. */
bool ax_collective_operand(const ax_prim *prim, ax_value *x, const char *axes, ax_axes *out);
/* x is unreduced over the checked ones of `axes`, or varying (or to be made so); false and the trace failed, in the name of `who`,
   otherwise. */
bool ax_insist(const char *who, ax_value x, const char *axes, ax_axis_state wanted);
/* Names parsed and known to the current trace; false and the trace failed otherwise, in the name of `who`. */
bool ax_collective_names(const char *who, const char *axes, ax_axes *out);
bool ax_ungrouped_names(const char *who, const char *axes, ax_axes *out); /* the same, and groups are refused */
/* Of psum, pmax and pmin, in `function`'s name: x reduced over the dimensions among `axes`, which are then the names alone; how
   many elements became one. False: the trace has failed. (collectives/positional.c) */
bool ax_reduce_positional(const char *function, ax_scalar op, ax_value *x, const char **axes, int64_t *count);
/* What members that all have this number have together: a number. */
ax_value ax_reduce_number(const char *function, ax_scalar op, ax_value number, const char *axes);
/* The checked axes among the names, and the state that a value of this type has along all of them (varying where there are none);
   false and the trace failed, in the name of `who`, where it is not one. */
bool ax_collective_state(const char *who, const ax_type *type, const ax_axes *names, ax_axis_set *set, ax_axis_state *out);
/* For a transpose: the operand was unreduced over the named axes. */
bool ax_was_unreduced(const ax_transpose_args *args);
/* The part of dimension `dimension`, cut into as many as the group has members, that is this member's own. */
ax_value ax_own_part(ax_value x, const ax_axes *names, int64_t dimension);
/* --- Groups by exchanges over all members (ungroup rules): `axes` with their groups --- */
/* Each group's combination of its members' x, on them; in member order. */
ax_value ax_ungrouped_combine(ax_scalar op, const ax_axes *axes, ax_value x);
/* The x of my group's members, joined along a new dimension in front; groups of one size. */
ax_value ax_ungrouped_gather(const ax_axes *axes, ax_value x);
/* parts: T[size, d..], row i for member i of my group -> T[size, d..], row i from member i; groups of one size. */
ax_value ax_ungrouped_trade(const ax_axes *axes, ax_value parts);
/* T[n, d..] -> T[d..]: the rows combined one after the other, as the collectives do. */
ax_value ax_combine_rows(ax_scalar op, ax_value rows);
ax_value ax_own_group_size(const ax_axes *axes); /* s32[] */

/* What `size` members combine to whose values stand along batch dimension `dim`; -1: they all have x. */
ax_value ax_combine_batch(ax_scalar op, ax_value x, int64_t dim, int64_t size);
/* x with dimension d cut in two, of `major` and the rest; with d and d + 1 made one; with d, of size 1, gone. */
ax_value ax_split_dim(ax_value x, int64_t d, int64_t major);
ax_value ax_fold_dims(ax_value x, int64_t d);
ax_value ax_drop_dim(ax_value x, int64_t d);

/* --- lower --- */
/* The part of an exchange that is one dense run of `elems`. */
void ax_exchange_whole(ax_exchange *exchange, int64_t elems);
/* Parts of shape `part`: one of n along dimension `split` of an operand of shape `in`, put at one of n places along dimension
   `concat` of a result of shape `out`; -1: the whole. Fills the steps, shape and strides. */
void ax_exchange_parts(ax_exchange *exchange, uint32_t rank, const int64_t *part, const int64_t *in, int64_t split,
                       const int64_t *out, int64_t concat);
/* Start, then done at once. */
AX_MUST_USE ax_status ax_lower_exchange(ax_lower *lower, const ax_exchange *exchange);
/* Whether all members along the names hold the operand's one buffer, and come to this together: then there is nothing to
   exchange. */
AX_MUST_USE ax_status ax_lower_is_same(const ax_lower *lower, const ax_axes *names, uint32_t in, bool *out);
/* An exchange that combines `in`, in a wider dtype for bf16, f16 and sums over many; gives the result, of `type` on `axes`.
   Fills exchange->in and ->out. */
AX_MUST_USE ax_status ax_lower_combine(ax_lower *lower, ax_exchange *exchange, uint32_t in, const ax_type *type, ax_axis_set axes,
                                       uint32_t *out);

/* --- hlo --- */
/* "replica_groups = ..., channel_handle = ..." for the groups along the names. */
void ax_hlo_groups(ax_text *text, ax_hlo *hlo, const ax_axes *names);
/* The op of a combining collective; releases the attributes. */
AX_MUST_USE ax_status ax_hlo_combining(ax_hlo *hlo, const ax_eqn *eqn, const char *name, ax_scalar op, const uint32_t *in,
                                       ax_text *attributes, uint32_t *out);

#endif
