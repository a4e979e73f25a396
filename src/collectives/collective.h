/* Helpers shared by the collective primitives. A collective's parameters begin with its axes. n is the number of members of a
   group; members are numbered row-major over the axes in the order named. Dimensions in parameters are checked and never negative;
   those of the public functions may count from the end. Gathering and scattering are tiled in the primitives (a dimension grows or
   shrinks n times); the public functions make the untiled forms by reshaping. */
#ifndef AX_COLLECTIVES_COLLECTIVE_H
#define AX_COLLECTIVES_COLLECTIVE_H

#include "plan/lower.h"
#include "prim/shape.h"

/* --- infer --- */
/* The number of members of a group along the named axes. AX_INVALID_ARGUMENT: groups of several sizes. */
AX_MUST_USE ax_status ax_collective_size(const ax_infer_args *args, const ax_axes *names, int64_t *size);
/* Refuses a dimension the operand does not have. `what` is the parameter's name. */
AX_MUST_USE ax_status ax_require_dimension(const char *what, int64_t dimension, const ax_infer_args *args);
/* Multiplies dims[dimension] of the result by n, or divides it by n; an error names the operand if n does not divide it. */
AX_MUST_USE ax_status ax_grow_dimension(ax_type *result, int64_t dimension, int64_t size);
AX_MUST_USE ax_status ax_cut_dimension(ax_type *result, int64_t dimension, int64_t size, const ax_infer_args *args);

/* --- Pairs (pairs.c) --- */
/* Refuses numbers outside a group of `members`, and two pairs with one source or one target. */
AX_MUST_USE ax_status ax_pairs_check(const ax_pairs *pairs, int64_t members);
/* Exchanges sources and targets, in the trace's memory. False: no memory, and the trace has failed. */
bool ax_pairs_swap(const ax_pairs *pairs, ax_pairs *out);
/* Adds source_target_pairs and channel_handle. */
AX_MUST_USE ax_status ax_hlo_add_exchanged(struct ax_hlo_attributes *to, const ax_axes *names, const ax_pairs *pairs, uint32_t channel);

/* --- spread --- */
/* The operand must vary over the checked axes among those named. The result is invariant / varies / is reduced over them. */
ax_status ax_spread_drop(const ax_infer_args *args);
ax_status ax_spread_keep(const ax_infer_args *args);
ax_status ax_spread_reduced(const ax_infer_args *args);
/* The operand must vary over them, or be unreduced by one of the primitive's kinds. The result is invariant / varies. */
ax_status ax_spread_sum(const ax_infer_args *args);
ax_status ax_spread_scatter(const ax_infer_args *args);

/* The dtype in which elements of `dtype` of so many members are combined. */
ax_dtype ax_combined_in(ax_scalar op, ax_dtype dtype, int64_t members);

/* --- eval --- */
/* The tensor's elements from index `start` of dimension `dim` on. */
ax_strided ax_tensor_part(const ax_tensor *tensor, int64_t dim, int64_t start);
/* Combines element i of the members' tensors in member order; bf16 and f16 in f32, not yet rounded. */
ax_number ax_combine_members(ax_scalar op, ax_tensor *const *members, uint32_t count, int64_t i);

/* --- differs: the results do not differ / differ between devices along the axes of the collective; along other axes they differ as
   the operand does. --- */
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
/* Parses the names and makes an invariant x vary over `axes`, as a collective wants it. False: the trace has failed. */
bool ax_collective_operand(const ax_prim *prim, ax_value *x, const char *axes, ax_axes *out);
/* Checks that x is unreduced over the checked ones of `axes`, or varies over them or can be made to, as `wanted` says. False: the
   trace has failed, in the name of `who`. */
bool ax_insist(const char *who, ax_value x, const char *axes, ax_axis_state wanted);
/* Parses the names, which the current trace must know. False: the trace has failed, in the name of `who`. */
bool ax_collective_names(const char *who, const char *axes, ax_axes *out);
bool ax_ungrouped_names(const char *who, const char *axes, ax_axes *out); /* the same, and groups are refused */
/* For psum, pmax and pmin: reduces x over the dimensions among `axes` on each device; *axes then holds the names alone. *count: the
   number of elements that became one. False: the trace has failed, in `function`'s name. (collectives/positional.c) */
bool ax_reduce_positional(const char *function, ax_scalar op, ax_value *x, const char **axes, int64_t *count);
/* The result of psum, pmax or pmin if every member has this number: again a number. */
ax_value ax_reduce_number(const char *function, ax_scalar op, ax_value number, const char *axes);
/* The checked axes among the names, and the state that a value of this type has along all of them; varying if there are none.
   False: the state differs between them; the trace has failed, in the name of `who`. */
bool ax_collective_state(const char *who, const ax_type *type, const ax_axes *names, ax_axis_set *set, ax_axis_state *out);
/* For a transpose: says whether the operand was unreduced over the named axes. */
bool ax_was_unreduced(const ax_transpose_args *args);
/* This member's own part of dimension `dimension`, which is cut into as many parts as the group has members. */
ax_value ax_own_part(ax_value x, const ax_axes *names, int64_t dimension);
/* --- Groups by exchanges over all members, for ungroup rules; `axes` with their groups --- */
/* Each group's combination of its members' x in member order, on every member of the group. */
ax_value ax_ungrouped_combine(ax_scalar op, const ax_axes *axes, ax_value x);
/* The x of my group's members, joined along a new dimension in front; groups of one size. */
ax_value ax_ungrouped_gather(const ax_axes *axes, ax_value x);
/* parts: T[size, d..], row i for member i of my group -> T[size, d..], row i from member i; groups of one size. */
ax_value ax_ungrouped_trade(const ax_axes *axes, ax_value parts);
/* T[n, d..] -> T[d..]: the rows combined one after the other, as the collectives do. */
ax_value ax_combine_rows(ax_scalar op, ax_value rows);
ax_value ax_own_group_size(const ax_axes *axes); /* s32[] */

/* Combines the values of `size` members, which stand along batch dimension `dim`; -1: every member has x. */
ax_value ax_combine_batch(ax_scalar op, ax_value x, int64_t dim, int64_t size);
/* x with dimension d cut into `major` and the rest / with dimensions d and d + 1 merged / without dimension d, of size 1. */
ax_value ax_split_dim(ax_value x, int64_t d, int64_t major);
ax_value ax_fold_dims(ax_value x, int64_t d);
ax_value ax_drop_dim(ax_value x, int64_t d);

/* --- lower --- */
/* Describes the exchanged part as one dense run of `elems`. */
void ax_exchange_whole(ax_exchange *exchange, int64_t elems);
/* Describes the exchanged parts, of shape `part`: each is one of n along dimension `split` of an operand of shape `in`, and goes to
   one of n places along dimension `concat` of a result of shape `out`. -1: the whole. Fills the steps, shape and strides. */
void ax_exchange_parts(ax_exchange *exchange, uint32_t rank, const int64_t *part, const int64_t *in, int64_t split,
                       const int64_t *out, int64_t concat);
/* Starts the exchange and waits for it at once. */
AX_MUST_USE ax_status ax_lower_exchange(ax_lower *lower, const ax_exchange *exchange);
/* Says whether all members along the names hold the operand in one buffer and reach this equation together. Then there is nothing
   to exchange. */
AX_MUST_USE ax_status ax_lower_is_same(const ax_lower *lower, const ax_axes *names, uint32_t in, bool *out);
/* Adds an exchange that combines `in`; bf16, f16 and sums over many members in a wider dtype. Returns the result, of `type` on
   `axes`. Fills exchange->in and ->out. */
AX_MUST_USE ax_status ax_lower_combine(ax_lower *lower, ax_exchange *exchange, uint32_t in, const ax_type *type, ax_axis_set axes,
                                       uint32_t *out);

/* --- reads --- */
/* What the body of an all_reduce or a reduce_scatter does to elements of this dtype, if it is psum, pmax or pmin; NULL: it is not. */
typedef ax_value (*ax_combining)(ax_value x, const char *axes);
ax_combining ax_hlo_combining_of(const ax_hlo_read_args *args, ax_dtype dtype);
/* The entry of a table by place, s64[devices, d..], that is of the device's own place on the grid. */
ax_value ax_hlo_own_row(const ax_hlo_read_args *args, const ax_type *type, const int64_t *table);
/* The body applied to the rows of x, T[n, d..], one after the other in some tree: T[d..]. */
AX_MUST_USE ax_status ax_hlo_combine_rows(const ax_hlo_read_args *args, ax_value x, ax_value *out);
/* The body applied to the x of this device's group, where groups have several sizes. AX_ABSENT: some axes are free. */
AX_MUST_USE ax_status ax_hlo_combine_uneven(const ax_hlo_read_args *args, ax_value x, ax_value *out);

/* --- hlo --- */
/* Adds replica_groups, for the groups along the names, and a channel_handle of their own. */
void ax_hlo_add_groups(struct ax_hlo_attributes *to, const ax_axes *names);
void ax_hlo_add_channel(struct ax_hlo_attributes *to, uint32_t channel);
/* The op of a combining collective. Returns its result. */
uint32_t ax_hlo_combining(ax_hlo *hlo, const ax_eqn *eqn, const char *name, ax_scalar op, const uint32_t *in,
                          const struct ax_hlo_attributes *attributes);

/* --- parameters that other rooms bind --- */
typedef struct ax_ppermute_params {
  ax_axes axes;
  ax_pairs pairs;
} ax_ppermute_params;

#endif
