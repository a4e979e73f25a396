/* scatter: x T[d..], indices I[b.., n], updates T[b.. and w..] -> T[d..]         x with updates[b..] put at start(b..)
   scatter_add: x T[d..], indices I[b.., n], updates T[b.. and w..] -> T[d..]         added to the elements there
   scatter_mul: x T[d..], indices I[b.., n], updates T[b.. and w..] -> T[d..]         multiplied with the elements there
   scatter_min: x T[d..], indices I[b.., n], updates T[b.. and w..] -> T[d..]         the smaller of both, NaN if either is
   scatter_max: x T[d..], indices I[b.., n], updates T[b.. and w..] -> T[d..]         the larger of both, NaN if either is
   start(b..) is indices[b.., k] along dimension scatter_dims_to_operand_dims[k] and 0 along the others. Updates have the dimensions
   w.. of a window at update_window_dims, without the inserted and batching ones, which have size 1. Along a batching dimension of x
   the window lies at the coordinate that b.. has along the dimension of the indices that is paired with it. Windows are applied one
   after the other, in the order of b..
   Parameters: update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims, operand_batching_dims,
   scatter_indices_batching_dims; mode: windows that are not inside x are dropped ("fill") or moved inside ("clip",
   "promise_in_bounds"); indices_are_sorted, unique_indices (promises).
   Errors: lists as gather's; updates of another dtype or of other dimensions than the indices, larger windows than x, unless an
   index would pick one element of none; add and mul of bool.
   scatter and scatter_add are linear in x and updates, scatter_mul in one of them. The transpose of scatter_add gives x
   the cotangent, and updates the windows that gather reads from it. The transpose of scatter, which needs unique_indices, gives x
   the cotangent with zeros in the windows. An element that several windows put has the tangent of the last; an extreme that several
   have, the mean of theirs. Batching adds a batching dimension.
   Sharding: cuts of batching dimensions and of dimensions that windows have whole are kept. A dimension of x from which an index
   picks one element, or windows of at most an eighth of it, may be cut too: each device applies the updates of its part. Updates that
   are cut make parts of a sum, or of an extreme.
   Compiled: a copy, and code of its own; one small window is a slice that is overwritten. Extremes of complex numbers are those of
   pmin and pmax. */
#include "ops/scatter.h"

#include <string.h>

#include "hlo/read.h"
#include "ops/gather.h"
#include "ops/pointwise.h"
#include "plan/lower.h"
#include "prim/prims.h"

static const char *const list_names[] = {"update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims",
                                         "operand_batching_dims", "scatter_indices_batching_dims"};

/* The operation that combines an update with the element there; NONE: the update replaces it. */
static ax_scalar combination(const ax_prim *prim) { return prim->form->reducer; }

static ax_value scatter(const ax_prim *prim, ax_value x, ax_value indices, ax_value updates, const ax_scatter_dims *dims,
                        const ax_index_options *options);

/* --- infer --- */

static ax_status check_updates(const ax_infer_args *args, const ax_indexing *at) {
  const ax_type *x = &args->in[0], *indices = &args->in[1], *updates = &args->in[2];
  const uint32_t wide = indices->rank - 1 + at->window.count;
  if (updates->rank != wide)
    return ax_error(AX_INVALID_ARGUMENT,
                    "updates %s have rank %u; with the indices' %u dimensions and the window's %u it must be %u",
                    ax_type_string(updates, args->axes), updates->rank, indices->rank - 1, at->window.count, wide);
  const ax_index_windows w = ax_scatter_windows(at, x, indices, updates);
  for (uint32_t d = 0; d < x->rank; d++)
    if (w.limit[d] < 0 && !(x->dims[d] == 0 && ax_dims_has(&at->collapsed, d))) /* of no elements, none is updated */
      return ax_error(AX_INVALID_ARGUMENT, "a window of %lld does not fit dimension %u, of %lld", (long long)w.sizes[d], d,
                      (long long)x->dims[d]);
  for (uint32_t d = 0; d + 1 < indices->rank; d++)
    if (updates->dims[w.wide_of_index[d]] != indices->dims[d])
      return ax_error(AX_INVALID_ARGUMENT, "updates %s have %lld where dimension %u of the indices has %lld",
                      ax_type_string(updates, args->axes), (long long)updates->dims[w.wide_of_index[d]], d,
                      (long long)indices->dims[d]);
  return AX_OK;
}

static ax_status infer(const ax_infer_args *args) {
  const ax_indexing *at = &((const ax_scatter_params *)args->params)->at;
  const ax_type *x = &args->in[0], *updates = &args->in[2];
  ax_scalar combine = combination(args->prim);
  if (updates->dtype != x->dtype)
    return ax_error(AX_INVALID_ARGUMENT, "updates are %s, the operand %s", ax_dtype_name(updates->dtype), ax_dtype_name(x->dtype));
  if (x->dtype == AX_BOOL && (combine == AX_SCALAR_ADD || combine == AX_SCALAR_MUL))
    return ax_error(AX_INVALID_ARGUMENT, "needs a numeric dtype, got bool");
  AX_TRY(ax_indexing_check(at, list_names, x, &args->in[1]));
  AX_TRY(check_updates(args, at));
  args->out[0] = ax_array_type(x->dtype, AX_LIST(x->rank, x->dims));
  return AX_OK;
}

/* --- eval --- */

static ax_type type_of(const ax_tensor *tensor) { return ax_array_type(tensor->dtype, AX_LIST(tensor->rank, tensor->dims)); }

static void update_one(ax_scalar combine, const ax_tensor *out, int64_t at, const ax_tensor *updates, int64_t from) {
  const size_t bytes = ax_dtype_bytes(out->dtype);
  if (combine == AX_SCALAR_NONE) {
    memcpy((char *)out->data + (size_t)at * bytes, (const char *)updates->data + (size_t)from * bytes, bytes);
    return;
  }
  ax_number x[] = {ax_number_load(out->dtype, out->data, at), ax_number_load(out->dtype, updates->data, from)};
  ax_number_store(out->dtype, out->data, at, ax_scalar_eval(combine, out->dtype, x, 0));
}

/* Windows in order, and the elements of each: their numbers in updates are put together from both. */
static ax_status eval(const ax_eval_args *args) {
  const ax_indexing *at = ax_scatter_indexing(args->eqn);
  const ax_tensor *indices = args->in[1], *updates = args->in[2], *out = args->out[0];
  const ax_type types[] = {type_of(args->in[0]), type_of(indices), type_of(updates)};
  ax_dims others = ax_dims_others(updates->rank, &at->window, NULL), order = {0};
  int64_t strides[AX_MAX_RANK], by[AX_MAX_RANK], dims[AX_MAX_RANK];
  const ax_index_windows w = ax_scatter_windows(at, &types[0], &types[1], &types[2]);
  ax_dense_strides(updates->rank, updates->dims, strides);
  for (uint32_t i = 0; i < updates->rank; i++) order.v[i] = i < others.count ? others.v[i] : at->window.v[i - others.count];
  for (uint32_t i = 0; i < updates->rank; i++) by[i] = strides[order.v[i]], dims[i] = updates->dims[order.v[i]];
  ax_tensor_assign(args->out[0], args->in[0]);
  if (ax_dims_elems(out->rank, out->dims) == 0) return AX_OK;
  for (int64_t i = 0, elems = ax_dims_elems(updates->rank, dims); i < elems; i++) {
    int64_t from = ax_strided_at(i, updates->rank, dims, by);
    int64_t to = ax_window_place(&w, out, indices, updates, from, !ax_indexing_fills(at));
    if (to >= 0) update_one(combination(args->eqn->prim), out, to, updates, from);
  }
  return AX_OK;
}

/* --- jvp --- */

static ax_value bind(const ax_prim *prim, ax_value x, ax_value indices, ax_value updates, const ax_indexing *at) {
  ax_scatter_params p = {.at = *at};
  return ax_bind1(prim, &p, (ax_value[]){x, indices, updates}, 3);
}

ax_value ax_scatter_add_of(ax_value x, ax_value indices, ax_value updates, const ax_indexing *at) {
  return bind(&ax_prim_scatter_add, x, indices, updates, at);
}
ax_value ax_scatter_of(ax_value x, ax_value indices, ax_value updates, const ax_indexing *at) {
  return bind(&ax_prim_scatter, x, indices, updates, at);
}

/* The windows of x that the updates are put into; zeros of an x that has no elements. */
static ax_value windows_of(ax_value x, ax_value indices, const ax_type *updates, const ax_indexing *at) {
  const ax_type type = ax_typeof(x);
  int64_t sizes[AX_MAX_RANK];
  if (ax_failed()) return ax_poison;
  if (ax_type_elems(&type) == 0) return ax_full(type.dtype, AX_LIST(updates->rank, updates->dims), 0);
  ax_window_sizes(at, &type, updates, sizes);
  return ax_gather_of(x, indices, at, sizes);
}

typedef struct tangents { /* real zeros for symbolic ones */
  ax_value x, updates;
} tangents;

/* The result and no tangent where none comes in: false. */
static bool begin_jvp(const ax_jvp_args *args, tangents *t) {
  args->out[0] = ax_bind1(args->eqn->prim, args->eqn->params, args->in, 3);
  args->tangent_out[0] = ax_zero;
  if (ax_is_zero(args->tangent_in[0]) && ax_is_zero(args->tangent_in[2])) return false;
  *t = (tangents){ax_instantiate(args->tangent_in[0], args->in[0]), ax_instantiate(args->tangent_in[2], args->in[2])};
  return !ax_failed();
}

static void add_jvp(const ax_jvp_args *args) {
  tangents t;
  if (begin_jvp(args, &t)) args->tangent_out[0] = bind(args->eqn->prim, t.x, args->in[1], t.updates, args->eqn->params);
}

/* Each element of the updates has a number, which is put as it is: where its number stays, so does its tangent. */
static void put_jvp(const ax_jvp_args *args) {
  const ax_indexing *at = ax_scatter_indexing(args->eqn);
  tangents t;
  if (!begin_jvp(args, &t)) return;
  if (at->unique) {
    args->tangent_out[0] = ax_scatter_of(t.x, args->in[1], t.updates, at);
    return;
  }
  const ax_type x = ax_typeof(args->in[0]), updates = ax_typeof(args->in[2]);
  int64_t elems = ax_type_elems(&updates);
  ax_dtype dtype = elems < INT32_MAX ? AX_S32 : AX_S64;
  ax_value ids = ax_reshape(ax_add(ax_iota(dtype, AX_LIST(1, &elems), 0), ax_integer(1)), AX_LIST(updates.rank, updates.dims));
  ax_value put = ax_scatter_of(ax_full(dtype, AX_LIST(x.rank, x.dims), 0), args->in[1], ids, at);
  ax_value stays = ax_eq(windows_of(put, args->in[1], &updates, at), ids);
  ax_value left = ax_where(ax_eq(put, ax_integer(0)), t.x, ax_zero_like(t.x));
  args->tangent_out[0] = ax_scatter_add_of(left, args->in[1], ax_where(stays, t.updates, ax_zero_like(t.updates)), at);
}

/* y = x u: of one window in each place y' = x' u + x u'. */
static void mul_jvp(const ax_jvp_args *args) {
  const ax_indexing *at = ax_scatter_indexing(args->eqn);
  ax_value tangent = ax_zero;
  args->out[0] = ax_bind1(args->eqn->prim, args->eqn->params, args->in, 3);
  if (!ax_is_zero(args->tangent_in[0])) tangent = bind(args->eqn->prim, args->tangent_in[0], args->in[1], args->in[2], at);
  if (!ax_is_zero(args->tangent_in[2]) && !at->unique) {
    if (!ax_failed())
      ax_fail(ax_error(AX_ABSENT, "scatter_mul has derivatives through its updates only where unique_indices is promised"));
    return;
  }
  if (!ax_is_zero(args->tangent_in[2])) {
    ax_value zeros = ax_instantiate(ax_zero, args->in[0]);
    tangent = ax_add_any(tangent, ax_mul(args->in[0], ax_scatter_add_of(zeros, args->in[1], args->tangent_in[2], at)));
  }
  args->tangent_out[0] = tangent;
}

/* The mean of the tangents of those, of x and of the updates, that are the extreme. */
static void extreme_jvp(const ax_jvp_args *args) {
  const ax_indexing *at = ax_scatter_indexing(args->eqn);
  tangents t;
  if (!begin_jvp(args, &t)) return;
  const ax_type updates = ax_typeof(args->in[2]);
  ax_value indices = args->in[1], kept = ax_eq(args->in[0], args->out[0]);
  ax_value hits = ax_eq(args->in[2], windows_of(args->out[0], indices, &updates, at));
  const ax_value each = ax_convert_element_type(hits, updates.dtype);
  ax_value count = ax_scatter_add_of(ax_convert_element_type(kept, updates.dtype), indices, each, at);
  ax_value sum = ax_where(kept, t.x, ax_zero_like(t.x));
  sum = ax_scatter_add_of(sum, indices, ax_where(hits, t.updates, ax_zero_like(t.updates)), at);
  args->tangent_out[0] = ax_div(sum, count);
}

/* --- transpose --- */

static void add_transpose(const ax_transpose_args *args) {
  const ax_indexing *at = ax_scatter_indexing(args->eqn);
  if (args->linear[0]) args->out[0] = args->cotangent[0];
  if (args->linear[2]) args->out[2] = windows_of(args->cotangent[0], args->in[1], &args->in_types[2], at);
}

static void put_transpose(const ax_transpose_args *args) {
  const ax_indexing *at = ax_scatter_indexing(args->eqn);
  if (!at->unique) {
    if (!ax_failed()) ax_fail(ax_error(AX_ABSENT, "scatter has a transpose only where unique_indices is promised"));
    return;
  }
  if (args->linear[0])
    args->out[0] = ax_scatter_of(args->cotangent[0], args->in[1], ax_zero_cotangent(&args->in_types[2]), at);
  if (args->linear[2]) args->out[2] = windows_of(args->cotangent[0], args->in[1], &args->in_types[2], at);
}

static void mul_transpose(const ax_transpose_args *args) {
  const ax_indexing *at = ax_scatter_indexing(args->eqn);
  if (args->linear[0] && args->linear[2]) {
    if (!ax_failed()) ax_fail(ax_error(AX_ABSENT, "scatter_mul of two values that both depend on the linear inputs is not linear"));
    return;
  }
  if (args->linear[0]) args->out[0] = bind(args->eqn->prim, args->cotangent[0], args->in[1], args->in[2], at);
  if (args->linear[2] && !ax_failed())
    ax_fail(
        ax_error(AX_ABSENT, "scatter_mul has no transpose through its updates: where x is not updated it is not linear in them"));
}

/* --- batch: x and updates always have the batch dimension --- */

static void batch(const ax_batch_args *args) {
  ax_scatter_params p = *(const ax_scatter_params *)args->eqn->params;
  const bool indices = args->in_dim[1] >= 0;
  if (!ax_indexing_batch(args->eqn->prim, &p.at, true, indices, args->size, NULL)) return;
  ax_value in[] = {ax_batch_front(args->in[0], args->in_dim[0], args->size),
                   indices ? ax_move_dim(args->in[1], args->in_dim[1], 0) : args->in[1],
                   ax_batch_front(args->in[2], args->in_dim[2], args->size)};
  args->out[0] = ax_bind1(args->eqn->prim, &p, in, 3);
}

/* --- shard: a device takes the windows that lie in its part of x; or some of the updates, which makes parts of a sum --- */

static ax_index_windows all_windows(const ax_eqn *eqn, const ax_type *types) {
  const ax_indexing *at = ax_scatter_indexing(eqn);
  return ax_scatter_windows(at, &types[eqn->in[0]], &types[eqn->in[1]], &types[eqn->in[2]]);
}

/* How what several devices make of x is put together, each with some of the updates; false: it cannot be. */
static bool combined_by(ax_scalar combine, ax_dtype dtype, ax_factor_kind *kind) {
  *kind = combine == AX_SCALAR_ADD ? AX_FACTOR_SUM : combine == AX_SCALAR_MIN ? AX_FACTOR_MIN : AX_FACTOR_MAX;
  return dtype != AX_BOOL && combine != AX_SCALAR_NONE && combine != AX_SCALAR_MUL;
}

static void shard(const ax_shard_args *args) {
  const ax_indexing *at = ax_scatter_indexing(args->eqn);
  const ax_type *x = &args->types[args->eqn->in[0]];
  const ax_index_windows w = all_windows(args->eqn, args->types);
  ax_factor_kind kind;
  bool combines = combined_by(combination(args->eqn->prim), x->dtype, &kind);
  ax_shard_windows(args, &w, at, &args->in[2], &args->out[0], combines ? &kind : NULL);
  for (uint32_t d = 0; d < x->rank; d++) {
    if (!ax_window_picks(&w, at, d) && (!ax_window_overlaps(&w, at, d) || ax_is_key(x->dtype))) continue;
    uint32_t factor = ax_factor(args, x->dims[d], AX_FACTOR_ALONG);
    ax_factor_of(&args->in[0], d, factor);
    ax_factor_of(&args->out[0], d, factor);
  }
}

/* x with room on either side of the dimensions that are cut and that windows overlap. False: there are none. */
static bool with_room(const ax_block_args *args, const ax_index_windows *w, const ax_indexing *at, ax_value *x, int64_t *room) {
  const int64_t none[AX_MAX_RANK] = {0};
  const ax_type type = ax_typeof(*x);
  bool any = false;
  for (uint32_t d = 0; d < w->rank; d++) {
    room[d] = ax_window_overlaps(w, at, d) && args->in_specs[0].count[d] > 0 ? w->sizes[d] - 1 : 0;
    any = any || room[d] > 0;
  }
  if (any && !ax_failed()) *x = ax_pad(*x, ax_full(type.dtype, AX_DIMS(), 0), room, room, none);
  return any;
}

static ax_value without_room(ax_value y, const int64_t *room) {
  const ax_type type = ax_typeof(y);
  int64_t limit[AX_MAX_RANK];
  for (uint32_t d = 0; d < type.rank; d++) limit[d] = type.dims[d] - room[d];
  return ax_failed() ? ax_poison : ax_slice(y, room, limit, NULL);
}

/* If the updates are cut they make parts of a sum, and only one part contains x. */
static void block(const ax_block_args *args) {
  const ax_index_windows w = all_windows(args->eqn, args->types);
  ax_scatter_params p = *(const ax_scatter_params *)args->eqn->params;
  ax_value x = args->in[0], outside;
  bool cut;
  for (uint32_t k = 0; k + 1 < w.index_rank && combination(args->eqn->prim) == AX_SCALAR_ADD && !ax_failed(); k++) {
    if (ax_dims_has(&p.at.index_batching, k) || args->in_specs[1].count[k] == 0) continue;
    const ax_axes names = ax_spec_names(&args->in_specs[1], &ax_builder_current()->axes, k, 0);
    x = ax_once(x, &names);
  }
  ax_value indices = ax_block_indices(args, &w, &p.at, &cut, &outside);
  if (cut) p.at.mode = "fill", p.at.sorted = false;
  int64_t room[AX_MAX_RANK];
  const bool wide = with_room(args, &w, &p.at, &x, room);
  const ax_value y = ax_bind1(args->eqn->prim, &p, (ax_value[]){x, indices, args->in[2]}, 3);
  args->out[0] = wide ? without_room(y, room) : y;
}

/* --- lower --- */

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_indexing *at = ax_scatter_indexing(eqn);
  const ax_type *types = lower->program->types;
  const ax_index_windows w = all_windows(eqn, types);
  const bool is_empty = ax_type_elems(&types[eqn->in[2]]) == 0 || ax_type_elems(&types[eqn->out]) == 0;
  if (!is_empty && ax_scatter_has_one(eqn, types)) return ax_scatter_lower_one(lower, eqn, in, out);
  const bool fresh = ax_lower_operand(lower, eqn, 0, &ax_prim_broadcast_in_dim) != NULL;
  if (!is_empty && ax_scatter_has_few_each(eqn, types, fresh)) return ax_scatter_lower_few_each(lower, combination(eqn->prim), eqn, in, out);
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  AX_TRY(ax_lower_copy(lower, out[0], in[0]));
  if (is_empty) return AX_OK;
  return ax_lower_scatter(lower, combination(eqn->prim), &w, !ax_indexing_fills(at), in + 1, out[0]);
}

/* Of an array in memory whose parts are not known all that is touched is what is written. */
static ax_status lower_complex(ax_lower *to, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_has_parts(to, in[0]) ? ax_complex_parts(to, eqn, in, out) : lower(to, eqn, in, out);
}

/* --- hlo --- */

static void hlo_region(ax_hlo *hlo, ax_scalar combine, ax_dtype dtype) {
  ax_type scalar = ax_array_type(dtype, AX_DIMS()), pair[] = {scalar, scalar};
  if (combine != AX_SCALAR_NONE) {
    ax_hlo_combination(hlo, combine, dtype);
    return;
  }
  uint32_t result = ax_hlo_region_begin(hlo, pair, 2) + 1;
  ax_hlo_region_end(hlo, &result, 1);
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_indexing *at = ax_scatter_indexing(eqn);
  const ax_type *types = hlo->program->types, *indices = &types[eqn->in[1]], *y = &types[eqn->out];
  uint32_t operands[] = {in[0], in[1], in[2]};
  ax_hlo_attributes attributes = {.hlo = hlo};
  if (strcmp(at->mode, "clip") == 0 && at->map.count > 0) {
    const ax_index_windows w = all_windows(eqn, types);
    operands[1] = ax_hlo_indices_clamped(hlo, &w, in[1], indices);
  }
  ax_hlo_add_fields(&attributes, eqn->prim, eqn->params);
  ax_hlo_add_entry(&attributes, "scatter_dimension_numbers", "index_vector_dim", indices->rank - 1);
  out[0] = ax_hlo_begin(hlo, "stablehlo.scatter", operands, 3, y, 1);
  hlo_region(hlo, combination(eqn->prim), y->dtype);
  ax_hlo_end(hlo, &attributes);
  return AX_OK;
}

/* --- The records --- */

static const ax_param params[] = {AX_INDEXING_PARAMS(ax_scatter_params, "update_window_dims", "inserted_window_dims",
                                                     "scatter_dims_to_operand_dims", "operand_batching_dims",
                                                     "scatter_indices_batching_dims")};

/* What the body makes of an element and an update: the update, or one operation on both. NULL: something else. Booleans are combined as
   the numbers 0 and 1. */
static const ax_prim *combines_by(const ax_hlo_operation *op, bool of_bool) {
  static const ax_prim *const family[] = {&ax_prim_scatter_add, &ax_prim_scatter_mul, &ax_prim_scatter_min, &ax_prim_scatter_max};
  const ax_scalar by = ax_hlo_body_scalar(op, 0);
  if (of_bool && (by == AX_SCALAR_OR || by == AX_SCALAR_ADD)) return &ax_prim_scatter_max;
  if (of_bool && (by == AX_SCALAR_AND || by == AX_SCALAR_MUL)) return &ax_prim_scatter_min;
  if (by != AX_SCALAR_NONE) return ax_hlo_reducer_of(family, AX_COUNT(family), by);
  const ax_hlo_block *block = op->region_count == 1 && op->regions[0].block_count == 1 ? &op->regions[0].blocks[0] : NULL;
  const bool returns = block != NULL && block->operation_count == 1 && block->argument_count == 2;
  const ax_hlo_operation *last = returns ? block->operations[0] : NULL;
  return last != NULL && last->operand_count == 1 && last->operands[0] == block->argument + 1 ? &ax_prim_scatter : NULL;
}

/* Arrays, indices, updates. */
static ax_status read(const ax_hlo_read_args *args) {
  const uint32_t count = args->op->operand_count / 2;
  ax_scatter_params p = {.at.mode = "fill"};
  ax_hlo_body body;
  ax_fn function;
  if (count == 0 || args->op->operand_count != 2 * count + 1 || args->op->result_count != count)
    return ax_error(AX_INVALID_ARGUMENT, "it takes arrays, indices and as many updates as arrays, and has as many results");
  const ax_prim *prim = count == 1 ? combines_by(args->op, ax_typeof(args->in[0]).dtype == AX_BOOL) : NULL;
  ax_value indices = args->in[count], x = args->in[0], updates = args->in[count + 1];
  AX_TRY(ax_hlo_read_fields(args, &ax_prim_scatter, &p));
  AX_TRY(ax_hlo_index_vectors(args, "scatter_dimension_numbers", indices, &p.at.index_batching, &indices));
  if (ax_failed()) return AX_OK;
  if (prim == NULL) {
    AX_TRY(ax_hlo_body_of(args, 0, count, &body, &function));
    return ax_scatter_by(count, args->in, indices, args->in + count + 1, &p, function, args->out);
  }
  const bool of_bool = ax_typeof(x).dtype == AX_BOOL && prim != &ax_prim_scatter;
  if (of_bool) x = ax_convert_element_type(x, AX_U8), updates = ax_convert_element_type(updates, AX_U8);
  const ax_value y = bind(prim, x, indices, updates, &p.at);
  args->out[0] = of_bool ? ax_convert_element_type(y, AX_BOOL) : y;
  return AX_OK;
}

static const ax_hlo_reader readers[] = {{"stablehlo.scatter", read}, {0}};


#define SCATTER_FIELDS                                                                                               \
  AX_HLO_FIELDS({"scatter_dimension_numbers.update_window_dims", "update_window_dims"},                              \
                {"scatter_dimension_numbers.inserted_window_dims", "inserted_window_dims"},                          \
                {"scatter_dimension_numbers.input_batching_dims", "operand_batching_dims"},                          \
                {"scatter_dimension_numbers.scatter_indices_batching_dims", "scatter_indices_batching_dims"},        \
                {"scatter_dimension_numbers.scatter_dims_to_operand_dims", "scatter_dims_to_operand_dims"},          \
                {"indices_are_sorted", "indices_are_sorted"}, {"unique_indices", "unique_indices"})
#define SCATTER_RECORD(name_, reducer_, linear_, kinds_, jvp_, ...) /* the transpose, and further slots */                    \
  static const ax_hlo_form name_##_form = {.op = "stablehlo.scatter", .reducer = reducer_, .fields = SCATTER_FIELDS};   \
  const ax_prim ax_prim_##name_ = {                                                                                 \
      .name = #name_, .kind = AX_LOCAL, .in_count = 3, .out_count = 1, .form = &name_##_form, .linear = linear_, .kinds = kinds_,          \
      AX_PARAMS(params, ax_scatter_params),                 \
      .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union,                         \
      .jvp = jvp_, .linearize = jvp_, .batch = batch, .simplify = ax_simplify_nothing,                                \
      .shard = shard, .block = block, .lower = lower, .hlo = hlo, .transpose = __VA_ARGS__,                               \
  }
SCATTER_RECORD(scatter, AX_SCALAR_NONE, AX_LINEAR_OUTER, AX_KINDS_ALL, put_jvp, put_transpose, .complex = lower_complex, .keys = ax_keys_words,
               .reads = readers);
SCATTER_RECORD(scatter_add, AX_SCALAR_ADD, AX_LINEAR_OUTER, AX_KINDS_SUM, add_jvp, add_transpose, .complex = lower_complex);
SCATTER_RECORD(scatter_mul, AX_SCALAR_MUL, AX_LINEAR_FIRST, AX_KINDS_SUM, mul_jvp, mul_transpose, .complex = ax_complex_whole);
SCATTER_RECORD(scatter_min, AX_SCALAR_MIN, AX_LINEAR_NOT, 0, extreme_jvp, ax_absent_transpose, .complex = ax_complex_whole);
SCATTER_RECORD(scatter_max, AX_SCALAR_MAX, AX_LINEAR_NOT, 0, extreme_jvp, ax_absent_transpose, .complex = ax_complex_whole);

/* --- The functions --- */

static ax_value scatter(const ax_prim *prim, ax_value x, ax_value indices, ax_value updates, const ax_scatter_dims *dims,
                        const ax_index_options *options) {
  ax_scatter_params p = {0};
  ax_value in[] = {x, indices, updates};
  if (dims == NULL) return ax_reject(prim, "there are no dimension numbers");
  const ax_dim_list *const lists[] = {&dims->update_window_dims, &dims->inserted_window_dims, &dims->scatter_dims_to_operand_dims,
                                      &dims->operand_batching_dims, &dims->scatter_indices_batching_dims};
  if (!ax_check_operands(prim->name, in, 3) || !ax_indexing_take(prim, lists, options, &p.at)) return ax_poison;
  return ax_bind1(prim, &p, in, 3);
}

ax_value ax_scatter(ax_value x, ax_value indices, ax_value updates, const ax_scatter_dims *dims, const ax_index_options *options) {
  return scatter(&ax_prim_scatter, x, indices, updates, dims, options);
}
ax_value ax_scatter_add(ax_value x, ax_value indices, ax_value updates, const ax_scatter_dims *dims,
                        const ax_index_options *options) {
  return scatter(&ax_prim_scatter_add, x, indices, updates, dims, options);
}
ax_value ax_scatter_mul(ax_value x, ax_value indices, ax_value updates, const ax_scatter_dims *dims,
                        const ax_index_options *options) {
  return scatter(&ax_prim_scatter_mul, x, indices, updates, dims, options);
}
ax_value ax_scatter_min(ax_value x, ax_value indices, ax_value updates, const ax_scatter_dims *dims,
                        const ax_index_options *options) {
  return scatter(&ax_prim_scatter_min, x, indices, updates, dims, options);
}
ax_value ax_scatter_max(ax_value x, ax_value indices, ax_value updates, const ax_scatter_dims *dims,
                        const ax_index_options *options) {
  return scatter(&ax_prim_scatter_max, x, indices, updates, dims, options);
}
