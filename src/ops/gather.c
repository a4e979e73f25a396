/* gather: x T[d..], indices I[b.., n] -> T[b.. and w..]
   y[b.. and w..] = x[w.. + start(b..)], where start(b..) is indices[b.., k] along dimension start_index_map[k] and 0 along the
   others. A window has sizes slice_sizes. Its dimensions w.. stand at offset_dims, without the collapsed and batching ones, which
   have size 1. Along a batching dimension of x the window lies at the coordinate that b.. has along the dimension of the indices
   that is paired with it.
   Parameters: offset_dims, collapsed_slice_dims, start_index_map, operand_batching_dims, start_indices_batching_dims; mode: for a
   window that is not inside x, "fill" gives the fill value all over it, "clip" and "promise_in_bounds" the nearest window that is
   inside; indices_are_sorted, unique_indices (promises); slice_sizes, one a dimension of x; fill_value, T[].
   Errors: lists with numbers that are no dimensions, that do not ascend (start_index_map need not), or that have one in common; an
   index whose length is not start_index_map's; windows larger than x, or not of size 1 along collapsed or batching dimensions; an
   unreduced x with a fill value other than 0.
   Linear in x; its transpose is scatter_add into zeros at the same indices. Batching adds a batching dimension.
   Sharding: cuts of the indices' dimensions, and of x's dimensions that windows have whole, are kept. A dimension of x from which
   an index picks one element may be cut too, but of keys, bools and f8e8m0fnu: each device looks up the elements it holds, and the
   parts are added.
   Compiled: one kernel of loads. */
#include <string.h>

#include "hlo/hlo.h"
#include "hlo/read.h"
#include "ops/gather.h"
#include "ops/scatter.h"
#include "plan/lower.h"
#include "prim/expand.h"
#include "prim/prims.h"

static const char *const list_names[] = {"offset_dims", "collapsed_slice_dims", "start_index_map", "operand_batching_dims",
                                         "start_indices_batching_dims"};

/* --- infer --- */

static ax_status check_sizes(const ax_gather_params *p, const ax_type *x) {
  AX_TRY(ax_infer_one_each("slice_sizes", &p->slice_sizes, x->rank));
  for (uint32_t d = 0; d < x->rank; d++) {
    int64_t size = p->slice_sizes.v[d];
    bool batches = ax_dims_has(&p->at.batching, d), one = batches || ax_dims_has(&p->at.collapsed, d);
    if (size < 0 || size > x->dims[d])
      return ax_error(AX_INVALID_ARGUMENT, "a window of %lld does not fit dimension %u, of %lld", (long long)size, d,
                      (long long)x->dims[d]);
    if (one && size != 1 && !(batches && x->dims[d] == 0))
      return ax_error(AX_INVALID_ARGUMENT, "dimension %u is %s, so a window has 1 of it, not %lld", d,
                      batches ? "batching" : "collapsed", (long long)size);
  }
  return AX_OK;
}

static ax_status infer(const ax_infer_args *args) {
  const ax_gather_params *p = args->params;
  const ax_type *x = &args->in[0], *indices = &args->in[1];
  AX_TRY(ax_indexing_check(&p->at, list_names, x, indices));
  AX_TRY(check_sizes(p, x));
  if (p->fill_value.type.rank != 0 || p->fill_value.type.dtype != x->dtype)
    return ax_error(AX_INVALID_ARGUMENT, "the fill value is %s, not %s[]", ax_type_string(&p->fill_value.type, args->axes),
                    ax_dtype_name(x->dtype));
  ax_index_windows w = ax_windows_of(&p->at, x, indices, p->slice_sizes.v);
  ax_dims dims = {.count = w.wide_rank};
  for (uint32_t d = 0; d + 1 < indices->rank; d++) dims.v[w.wide_of_index[d]] = indices->dims[d];
  for (uint32_t d = 0; d < x->rank; d++)
    if (w.wide_of[d] >= 0 && !ax_dims_has(&p->at.batching, d)) dims.v[w.wide_of[d]] = p->slice_sizes.v[d];
  return ax_infer_shape(x->dtype, &dims, &args->out[0]);
}

/* The bits of 0, of either sign of a float. */
static bool fills_with_zero(const ax_gather_params *p) {
  const ax_type *type = &p->fill_value.type;
  ax_number number = ax_number_load(type->dtype, p->fill_value.data, 0);
  return !ax_indexing_fills(&p->at) || (ax_rounds(type->dtype) ? number.f == 0 && number.imag == 0 : number.u == 0);
}

/* Whether windows that no device finds have the fill value once the parts are added. The parts have -0 there if they round. */
static bool sum_fills(const ax_gather_params *p) {
  return !ax_indexing_fills(&p->at) || (fills_with_zero(p) && !ax_rounds(p->fill_value.type.dtype));
}

/* An x that is unreduced is looked up part by part. The parts add up to the result only if the fill value adds nothing: it must be
   0. */
static ax_status spread(const ax_infer_args *args) {
  if (args->in[0].spread.unreduced != 0 && !fills_with_zero(args->params))
    return ax_error(AX_INVALID_ARGUMENT, "x is unreduced, and what windows outside of it are filled with is not 0");
  return ax_spread_local(args);
}

/* --- eval --- */

static ax_type type_of(const ax_tensor *tensor) { return ax_array_type(tensor->dtype, AX_LIST(tensor->rank, tensor->dims)); }

static ax_status eval(const ax_eval_args *args) {
  const ax_gather_params *p = args->eqn->params;
  const ax_tensor *x = args->in[0], *indices = args->in[1], *out = args->out[0];
  const ax_type types[] = {type_of(x), type_of(indices)};
  const ax_index_windows w = ax_windows_of(&p->at, &types[0], &types[1], p->slice_sizes.v);
  size_t bytes = ax_dtype_bytes(out->dtype);
  for (int64_t i = 0, elems = ax_dims_elems(out->rank, out->dims); i < elems; i++) {
    int64_t at = ax_window_place(&w, x, indices, out, i, !ax_indexing_fills(&p->at));
    memcpy((char *)out->data + (size_t)i * bytes, at < 0 ? p->fill_value.data : (const char *)x->data + (size_t)at * bytes, bytes);
  }
  return AX_OK;
}

/* --- jvp, transpose --- */

/* 0 of any dtype. */
static const ax_element zero_bits;
static ax_literal zero_of(ax_dtype dtype) { return (ax_literal){.type = ax_array_type(dtype, AX_DIMS()), .data = (void *)(uintptr_t)&zero_bits}; }

ax_value ax_gather_of(ax_value x, ax_value indices, const ax_indexing *at, const int64_t *sizes) {
  ax_gather_params p = {.at = *at, .slice_sizes = {.count = ax_typeof(x).rank}, .fill_value = zero_of(ax_typeof(x).dtype)};
  if (ax_failed()) return ax_poison;
  memcpy(p.slice_sizes.v, sizes, p.slice_sizes.count * sizeof sizes[0]);
  return ax_bind1(&ax_prim_gather, &p, (ax_value[]){x, indices}, 2);
}

static void jvp(const ax_jvp_args *args) {
  const ax_gather_params *p = args->eqn->params;
  args->out[0] = ax_bind1(args->eqn->prim, p, args->in, 2);
  args->tangent_out[0] =
      ax_is_zero(args->tangent_in[0]) ? ax_zero : ax_gather_of(args->tangent_in[0], args->in[1], &p->at, p->slice_sizes.v);
}

static void transpose(const ax_transpose_args *args) {
  const ax_gather_params *p = args->eqn->params;
  if (!args->linear[0]) return;
  *args->summed = !ax_is_zero(args->sum);
  ax_value sum = *args->summed ? args->sum : ax_zero_cotangent(&args->in_types[0]);
  args->out[0] = ax_scatter_add_of(sum, args->in[1], args->cotangent[0], &p->at);
}

/* --- batch --- */

static void batch(const ax_batch_args *args) {
  ax_gather_params p = *(const ax_gather_params *)args->eqn->params;
  const bool x = args->in_dim[0] >= 0, indices = args->in_dim[1] >= 0;
  if (!ax_indexing_batch(args->eqn->prim, &p.at, x, indices, args->size, &p.slice_sizes)) return;
  ax_value in[2];
  for (int i = 0; i < 2; i++) in[i] = args->in_dim[i] >= 0 ? ax_move_dim(args->in[i], args->in_dim[i], 0) : args->in[i];
  args->out[0] = ax_bind1(args->eqn->prim, &p, in, 2);
}

/* --- shard: dimensions of which an index picks one are cut too; devices look up what they have, and the parts are added --- */

static ax_index_windows windows_of(const ax_eqn *eqn, const ax_type *types) {
  const ax_gather_params *p = eqn->params;
  return ax_windows_of(&p->at, &types[eqn->in[0]], &types[eqn->in[1]], p->slice_sizes.v);
}

static void shard(const ax_shard_args *args) {
  static const ax_factor_kind along = AX_FACTOR_ALONG;
  const ax_indexing *at = &((const ax_gather_params *)args->eqn->params)->at;
  const ax_type *x = &args->types[args->eqn->in[0]];
  const ax_index_windows w = windows_of(args->eqn, args->types);
  ax_shard_windows(args, &w, at, &args->out[0], NULL, &along);
  for (uint32_t d = 0; d < x->rank && ax_picked_adds_up(x->dtype); d++)
    if (ax_window_picks(&w, at, d)) ax_factor_of(&args->in[0], d, ax_factor(args, x->dims[d], AX_FACTOR_SUM));
}

/* Windows that are outside the whole of x are filled by the first of the devices whose parts are added, so that the fill value
   counts once. */
static ax_value filled_once(const ax_block_args *args, const ax_index_windows *w, ax_value y, ax_value outside) {
  const ax_gather_params *p = args->eqn->params;
  const ax_type type = ax_typeof(y);
  ax_value fill = ax_constant(&p->fill_value.type, p->fill_value.data);
  int64_t where[AX_MAX_RANK];
  if (ax_failed()) return ax_poison;
  for (uint32_t d = 0; d < w->rank; d++) {
    if (!ax_window_picks(w, &p->at, d) || args->in_specs[0].count[d] == 0) continue;
    const ax_axes names = ax_spec_names(&args->in_specs[0], &ax_builder_current()->axes, d, 0);
    fill = ax_once(fill, &names);
  }
  for (uint32_t d = 0; d + 1 < w->index_rank; d++) where[d] = w->wide_of_index[d];
  return ax_where(ax_broadcast_in_dim(outside, AX_LIST(type.rank, type.dims), where), fill, y);
}

static void block(const ax_block_args *args) {
  const ax_gather_params *whole = args->eqn->params;
  const ax_index_windows w = windows_of(args->eqn, args->types);
  ax_gather_params p = *whole;
  ax_value outside = ax_poison;
  bool cut;
  for (uint32_t d = 0; d < w.rank; d++)
    if (w.wide_of[d] >= 0 && !ax_dims_has(&p.at.batching, d)) p.slice_sizes.v[d] = args->blocks[0].dims[w.wide_of[d]];
  ax_value in[] = {args->in[0], ax_block_indices(args, &w, &p.at, &cut, &outside)};
  if (cut) p.at.mode = "fill", p.at.sorted = false, p.fill_value = ax_not_picked(p.fill_value.type.dtype);
  if (ax_failed()) return;
  args->out[0] = ax_bind1(args->eqn->prim, &p, in, 2);
  if (cut && !sum_fills(whole)) args->out[0] = filled_once(args, &w, args->out[0], outside);
}

/* --- lower --- */

/* y = the windows of x. */
static ax_status gather_of(ax_lower *lower, const ax_eqn *eqn, uint32_t x, uint32_t indices, uint32_t y) {
  const ax_gather_params *p = eqn->params;
  const ax_type *types = lower->program->types;
  const ax_type to_type = *ax_lower_type(lower, y);
  const ax_index_windows w = ax_windows_of(&p->at, &types[eqn->in[0]], &types[eqn->in[1]], p->slice_sizes.v);
  ax_position from[AX_MAX_RANK], to[AX_MAX_RANK];
  ax_ex inside;
  AX_TRY(ax_lower_kernel_begin(lower, to_type.rank, 0, to_type.dims));
  ax_lower_windows(lower, &w, indices, from, ax_indexing_fills(&p->at) ? &inside : NULL);
  ax_ex value = ax_lower_load(lower, x, from);
  if (ax_indexing_fills(&p->at) && inside != AX_NONE) {
    int64_t bits = 0;
    memcpy(&bits, p->fill_value.data, ax_dtype_bytes(to_type.dtype));
    const ax_ex fill = ax_kernel_const(lower->kernel, to_type.dtype, bits);
    value = ax_kernel_op(lower->kernel, AX_SCALAR_SELECT, to_type.dtype, inside, value, fill);
  }
  ax_at_identity(to, to_type.rank);
  ax_lower_store(lower, y, to, value, AX_SCALAR_NONE);
  return ax_lower_kernel_end(lower);
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  return gather_of(lower, eqn, in[0], in[1], out[0]);
}

/* --- hlo: stablehlo.gather takes the nearest window --- */

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_gather_params *p = eqn->params;
  const ax_type *x = &hlo->program->types[eqn->in[0]], *indices = &hlo->program->types[eqn->in[1]],
                *y = &hlo->program->types[eqn->out];
  const ax_index_windows w = ax_windows_of(&p->at, x, indices, p->slice_sizes.v);
  ax_hlo_attributes attributes = {.hlo = hlo};
  ax_hlo_add_fields(&attributes, eqn->prim, p);
  ax_hlo_add_entry(&attributes, "dimension_numbers", "index_vector_dim", indices->rank - 1);
  AX_TRY(ax_hlo_simple(hlo, eqn, "stablehlo.gather", in, &attributes, out));
  if (!ax_indexing_fills(&p->at) || p->at.map.count == 0) return AX_OK;
  const uint32_t inside = ax_hlo_windows_inside(hlo, &w, in[1], indices, y);
  uint32_t cases[] = {inside, out[0], ax_hlo_splat(hlo, y, p->fill_value.data)};
  out[0] = ax_hlo_op(hlo, "stablehlo.select", cases, 3, NULL, y, 1);
  return AX_OK;
}

static const ax_hlo_form form = {
    .op = "stablehlo.gather",
    .fields = AX_HLO_FIELDS({"dimension_numbers.offset_dims", "offset_dims"},
                            {"dimension_numbers.collapsed_slice_dims", "collapsed_slice_dims"},
                            {"dimension_numbers.operand_batching_dims", "operand_batching_dims"},
                            {"dimension_numbers.start_indices_batching_dims", "start_indices_batching_dims"},
                            {"dimension_numbers.start_index_map", "start_index_map"}, {"indices_are_sorted", "indices_are_sorted"},
                            {"slice_sizes", "slice_sizes"})};

/* --- The record --- */

/* Each part with its part of what windows outside of x are filled with. */
static ax_value expand(const ax_eqn *eqn, const ax_value *in) {
  ax_gather_params p = *(const ax_gather_params *)eqn->params;
  const ax_dtype dtype = ax_part_dtype(p.fill_value.type.dtype);
  ax_value part[2];
  for (int k = 0; k < 2; k++) {
    ax_element fill = {0};
    memcpy(&fill, (const char *)((const ax_gather_params *)eqn->params)->fill_value.data + (size_t)k * ax_dtype_bytes(dtype),
           ax_dtype_bytes(dtype));
    p.fill_value = (ax_literal){.type = ax_array_type(dtype, AX_DIMS()), .data = &fill};
    ax_value x = k == 0 ? ax_real_part(in[0]) : ax_imag_part(in[0]);
    part[k] = ax_bind1(&ax_prim_gather, &p, (ax_value[]){x, in[1]}, 2);
  }
  return ax_complex(part[0], part[1]);
}

/* Numbers of 8 bytes that are in memory go as words; but few by their parts, which other operations' kernels take in. */
static ax_status gather_complex(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  enum { few_elems = 64 };
  uint32_t x, y;
  if (ax_lower_type(lower, in[0])->dtype != AX_C64 || ax_lower_has_parts(lower, in[0]) ||
      ax_type_elems(&lower->program->types[eqn->out]) < few_elems)
    return ax_lower_expanded(lower, eqn, expand, in, out);
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  AX_TRY(ax_lower_as_words(lower, in[0], &x));
  AX_TRY(ax_lower_as_words(lower, out[0], &y));
  return gather_of(lower, eqn, x, in[1], y);
}

static const ax_param params[] = {
    AX_INDEXING_PARAMS(ax_gather_params, "offset_dims", "collapsed_slice_dims", "start_index_map", "operand_batching_dims",
                       "start_indices_batching_dims"),
    {"slice_sizes", AX_PARAM_DIMS, offsetof(ax_gather_params, slice_sizes)},
    {"fill_value", AX_PARAM_LITERAL, offsetof(ax_gather_params, fill_value)},
};

/* It does more than the form: an index's numbers may stand along any dimension. */
static ax_status read(const ax_hlo_read_args *args) {
  ax_gather_params p = {.at.mode = "clip", .fill_value = zero_of(ax_typeof(args->in[0]).dtype)};
  ax_value indices;
  if (args->op->operand_count != 2) return ax_error(AX_INVALID_ARGUMENT, "it takes 2 operands, and here are %u", args->op->operand_count);
  AX_TRY(ax_hlo_read_fields(args, &ax_prim_gather, &p));
  AX_TRY(ax_hlo_index_vectors(args, "dimension_numbers", args->in[1], &p.at.index_batching, &indices));
  args->out[0] = ax_bind1(&ax_prim_gather, &p, (ax_value[]){args->in[0], indices}, 2);
  return AX_OK;
}

static const ax_hlo_reader readers[] = {{"stablehlo.gather", read}, {0}};

const ax_prim ax_prim_gather = {
    .name = "gather",
    .kind = AX_LOCAL,
    .in_count = 2,
    .out_count = 1,
    AX_PARAMS(params, ax_gather_params),
    .linear = AX_LINEAR_FIRST,
    .kinds = AX_KINDS_ALL,
    .infer = infer,
    .spread = spread,
    .eval = eval,
    .differs = ax_differs_union,
    .jvp = jvp,
    .linearize = jvp,
    .transpose = transpose,
    .batch = batch,
    .simplify = ax_simplify_nothing,
    .shard = shard,
    .block = block,
    .lower = lower,
    .complex = gather_complex,
    .keys = ax_keys_words,
    .form = &form, .reads = readers, .hlo = hlo,
};

/* --- The function --- */

/* JAX's default fill value: NaN for floats, the least signed number, the greatest unsigned one. */
static ax_number default_fill(ax_dtype dtype) {
  switch (ax_dtype_get(dtype)->kind) {
    case AX_KIND_COMPLEX:
    case AX_KIND_FLOAT: return (ax_number){.f = __builtin_nan("")};
    case AX_KIND_SIGNED: return ax_reduce_identity(AX_SCALAR_MAX, dtype);
    default: return ax_reduce_identity(AX_SCALAR_MIN, dtype);
  }
}

/* The bits of the fill value: `number`, a number of C, or the default if none is given. */
static bool take_fill(ax_value number, ax_dtype dtype, ax_element *bits) {
  *bits = (ax_element){0};
  if (number.trace == 0 && number.id == 0) {
    ax_number_store(dtype, bits, 0, default_fill(dtype));
    return true;
  }
  if (!ax_is_number(number)) {
    ax_reject(&ax_prim_gather, "the fill value is not a number");
    return false;
  }
  int64_t real;
  if (!ax_number_bits("gather", number, ax_part_dtype(dtype), &real)) return false;
  memcpy(bits, &real, ax_dtype_bytes(ax_part_dtype(dtype)));
  return true;
}

ax_value (ax_gather)(ax_value x, ax_value indices, uint32_t count, const int64_t *slice_sizes, const ax_gather_dims *dims,
                     const ax_index_options *options) {
  ax_gather_params p = {0};
  ax_element bits = {0};
  const ax_type type = ax_typeof(x);
  if (dims == NULL) return ax_reject(&ax_prim_gather, "there are no dimension numbers");
  const ax_dim_list *const lists[] = {&dims->offset_dims, &dims->collapsed_slice_dims, &dims->start_index_map,
                                      &dims->operand_batching_dims, &dims->start_indices_batching_dims};
  if (ax_failed() || !ax_list_fits("gather", "the array has", "dimension", count, type.rank) ||
      !ax_check_operands("gather", (ax_value[]){x, indices}, 2) ||
      !ax_indexing_take(&ax_prim_gather, lists, options, &p.at) ||
      !ax_dims_take(&ax_prim_gather, type.rank, slice_sizes, &p.slice_sizes))
    return ax_poison;
  if (ax_indexing_fills(&p.at) && !take_fill(options != NULL ? options->fill_value : (ax_value){0, 0}, type.dtype, &bits))
    return ax_poison;
  p.fill_value = (ax_literal){.type = ax_array_type(type.dtype, AX_DIMS()), .data = &bits};
  return ax_bind1(&ax_prim_gather, &p, (ax_value[]){x, indices}, 2);
}
