/* argmax, argmin: T[d..] -> index_dtype[without the axis]         the place of the greatest, or least, element along the axis
   The first of equals; NaN counts as greatest in argmax, and as least in argmin.
   Parameters: axes (one), index_dtype.
   Errors: not one axis, or outside the rank; nothing along it; an index dtype that is no integer or too small for the axis. No
   tangent. Where the axis is cut, devices compare what they found. Compiled: the extreme m (NaN if there is one), then the least
   index where x = m or x is NaN; along a short axis, element after element is compared with the best so far. */
#include <stdio.h>

#include "axle/collectives.h"
#include "ops/argmax.h"
#include "ops/pointwise.h"
#include "plan/lower.h"
#include "prim/prims.h"
#include "prim/shape.h"

typedef struct argmax_params {
  ax_dims axes;
  ax_dtype index_dtype;
} argmax_params;

static ax_status infer(const ax_infer_args *args) {
  const argmax_params *p = args->params;
  const ax_type *x = &args->in[0];
  ax_dtype_kind kind = ax_dtype_get(p->index_dtype)->kind;
  if (p->axes.count != 1) return ax_error(AX_INVALID_ARGUMENT, "takes one axis, got %u", p->axes.count);
  AX_TRY(ax_infer_distinct("axes", &p->axes, x->rank));
  if (kind != AX_KIND_SIGNED && kind != AX_KIND_UNSIGNED)
    return ax_error(AX_INVALID_ARGUMENT, "the index dtype %s is no integer", ax_dtype_name(p->index_dtype));
  int64_t size = x->dims[p->axes.v[0]];
  if (size == 0) return ax_error(AX_INVALID_ARGUMENT, "there is nothing along axis %lld", (long long)p->axes.v[0]);
  if (ax_reduce_identity(AX_SCALAR_MIN, p->index_dtype).u < (uint64_t)size - 1)
    return ax_error(AX_INVALID_ARGUMENT, "the index dtype %s does not count to %lld", ax_dtype_name(p->index_dtype),
                    (long long)size - 1);
  ax_dims left = ax_dims_left(x, &p->axes);
  return ax_infer_shape(p->index_dtype, &left, &args->out[0]);
}

static bool seeks_least(const ax_eqn *eqn) { return eqn->prim == &ax_prim_argmin; }

/* Says whether x goes before the best so far. A NaN goes before any number. */
static bool beats(ax_dtype dtype, bool least, ax_number x, ax_number best) {
  switch (ax_dtype_get(dtype)->kind) {
    case AX_KIND_FLOAT:
      return (least ? x.f < best.f : x.f > best.f) || (x.f != x.f && best.f == best.f);
    case AX_KIND_SIGNED:
      return least ? x.i < best.i : x.i > best.i;
    default:
      return least ? x.u < best.u : x.u > best.u;
  }
}

static ax_status eval(const ax_eval_args *args) {
  const argmax_params *p = args->eqn->params;
  const ax_tensor *x = args->in[0], *out = args->out[0];
  int64_t axis = p->axes.v[0], size = x->dims[axis], count = ax_dims_elems(out->rank, out->dims);
  int64_t inner = ax_dims_elems(x->rank - (uint32_t)axis - 1, x->dims + axis + 1);
  for (int64_t i = 0; i < count; i++) {
    int64_t base = i / inner * size * inner + i % inner, best = 0;
    for (int64_t j = 1; j < size; j++)
      if (beats(x->dtype, seeks_least(args->eqn), ax_number_load(x->dtype, x->data, base + j * inner),
                ax_number_load(x->dtype, x->data, base + best * inner)))
        best = j;
    ax_number_store(out->dtype, out->data, i, (ax_number){.i = best});
  }
  return AX_OK;
}

static void batch(const ax_batch_args *args) {
  argmax_params p = *(const argmax_params *)args->eqn->params;
  int dim = args->in_dim[0];
  args->out_dim[0] = p.axes.v[0] < dim ? dim - 1 : dim;
  ax_dims_shift(&p.axes, dim);
  args->out[0] = ax_bind1(args->eqn->prim, &p, args->in, 1);
}

/* --- shard, block --- */

static void shard(const ax_shard_args *args) {
  const ax_dims *axes = &((const argmax_params *)args->eqn->params)->axes;
  const ax_type *x = &args->types[args->eqn->in[0]];
  for (uint32_t d = 0, kept = 0; d < x->rank; d++) {
    uint32_t factor = ax_factor(args, x->dims[d], AX_FACTOR_ALONG);
    ax_factor_of(&args->in[0], d, factor);
    if (!ax_dims_has(axes, d)) ax_factor_of(&args->out[0], kept++, factor);
  }
}

ax_value ax_elements_at(ax_value x, ax_value place, int64_t axis) {
  static const ax_index_options inside = {.mode = AX_INDEX_PROMISE_IN_BOUNDS};
  return (ax_squeeze)(ax_take_along_axis(x, ax_expand_dims(place, axis), axis, &inside), AX_DIMS(axis));
}

/* Each device finds its block's extreme and where that is; of the devices whose extreme is that of all, the least place counts. */
static ax_value across(const ax_block_args *args, const ax_axes *names, bool padded) {
  const argmax_params *p = args->eqn->params;
  const ax_axes_list list = ax_axes_listed(names);
  const bool least = seeks_least(args->eqn);
  const int64_t d = p->axes.v[0], size = args->types[args->eqn->in[0]].dims[d];
  const argmax_params wide = {.axes = p->axes, .index_dtype = size > 1 << 30 ? AX_S64 : AX_S32}; /* holds places of padding, too */
  ax_value x = args->in[0];
  if (ax_typeof(x).dtype == AX_BOOL) x = ax_convert_element_type(x, AX_U8);
  if (padded) /* in its place what no element goes behind */
    x = ax_where(ax_block_unpadded(args, 0, &p->axes), x,
                 ax_reduce_neutral(least ? AX_SCALAR_MIN : AX_SCALAR_MAX, ax_typeof(x).dtype));
  const ax_value start = ax_spec_start(&args->in_specs[0], (uint32_t)d, ax_typeof(args->in[0]).dims[d], wide.index_dtype);
  const ax_value within = ax_bind1(args->eqn->prim, &wide, &x, 1), place = ax_add(within, start),
                 here = ax_elements_at(x, within, d);
  const ax_value most = least ? ax_pmin(here, list.text) : ax_pmax(here, list.text);
  const ax_value hit = ax_or(ax_eq(here, most), ax_ne(here, here)), none = ax_reduce_neutral(AX_SCALAR_MIN, wide.index_dtype);
  return ax_convert_element_type(ax_pmin(ax_where(hit, place, none), list.text), p->index_dtype);
}

static void block(const ax_block_args *args) {
  const ax_eqn *eqn = args->eqn;
  const argmax_params *p = eqn->params;
  bool padded;
  const ax_axes names = ax_block_axes(args, 0, (uint32_t)p->axes.v[0], &padded);
  args->out[0] = names.count > 0 ? across(args, &names, padded) : ax_bind1(eqn->prim, p, args->in, 1);
}

/* --- lower --- */

static ax_status lower_extreme(ax_lower *lower, bool least, uint32_t x, const ax_reduction *r, uint32_t out) {
  ax_dtype dtype = ax_lower_type(lower, x)->dtype;
  ax_position to[AX_MAX_RANK];
  ax_at_identity(to, r->kept.count);
  AX_TRY(ax_lower_kernel_begin(lower, r->rank, 1, r->dims));
  ax_lower_store(lower, out, to, ax_lower_load(lower, x, r->at),
                 dtype == AX_BOOL ? (least ? AX_SCALAR_AND : AX_SCALAR_OR) : least ? AX_SCALAR_MIN : AX_SCALAR_MAX);
  return ax_lower_kernel_end(lower);
}

static ax_status lower_index(ax_lower *lower, uint32_t x, uint32_t extreme, const ax_reduction *r, uint32_t out) {
  ax_dtype index_dtype = ax_lower_type(lower, out)->dtype;
  ax_position to[AX_MAX_RANK];
  ax_at_identity(to, r->kept.count);
  AX_TRY(ax_lower_kernel_begin(lower, r->rank, 1, r->dims));
  ax_loop_kernel *kernel = lower->kernel;
  ax_ex here = ax_lower_load(lower, x, r->at), most = ax_lower_load(lower, extreme, to);
  ax_ex hit = ax_kernel_op(kernel, AX_SCALAR_EQ, AX_BOOL, here, most, AX_NONE);
  if (ax_is_float(ax_lower_type(lower, x)->dtype)) {
    ax_ex is_nan = ax_kernel_op(kernel, AX_SCALAR_NE, AX_BOOL, here, here, AX_NONE);
    hit = ax_kernel_op(kernel, AX_SCALAR_OR, AX_BOOL, hit, is_nan, AX_NONE);
  }
  ax_ex index = ax_kernel_index(kernel, r->rank - 1);
  if (index_dtype != AX_S64) index = ax_kernel_op(kernel, AX_SCALAR_CONVERT, index_dtype, index, AX_NONE, AX_NONE);
  ax_ex last = ax_kernel_const(kernel, index_dtype, r->dims[r->rank - 1] - 1);
  ax_ex place = ax_kernel_op(kernel, AX_SCALAR_SELECT, index_dtype, hit, index, last);
  ax_lower_store(lower, out, to, place, AX_SCALAR_MIN);
  return ax_lower_kernel_end(lower);
}

static ax_ex load_at(ax_lower *lower, uint32_t x, const ax_reduction *r, int64_t place) {
  ax_position at[AX_MAX_RANK];
  for (uint32_t d = 0; d < r->rank; d++)
    at[d] = r->at[d].dim + 1 == (int)r->rank ? (ax_position){.dim = -1, .offset = place, .dynamic = AX_NONE} : r->at[d];
  return ax_lower_load(lower, x, at);
}

/* As `beats`: x is not behind the best or equal to it, which holds for NaN too. */
static ax_ex emit_beats(ax_loop_kernel *kernel, ax_dtype dtype, bool least, ax_ex here, ax_ex best) {
  if (dtype == AX_BOOL) {
    const ax_ex yes = least ? best : here, no = least ? here : best;
    return ax_kernel_op(kernel, AX_SCALAR_AND, AX_BOOL, yes, ax_kernel_op(kernel, AX_SCALAR_NOT, AX_BOOL, no, AX_NONE, AX_NONE),
                        AX_NONE);
  }
  if (!ax_is_float(dtype)) return ax_kernel_op(kernel, least ? AX_SCALAR_LT : AX_SCALAR_GT, AX_BOOL, here, best, AX_NONE);
  ax_ex below = ax_kernel_op(kernel, least ? AX_SCALAR_GE : AX_SCALAR_LE, AX_BOOL, here, best, AX_NONE),
        number = ax_kernel_op(kernel, AX_SCALAR_EQ, AX_BOOL, best, best, AX_NONE);
  return ax_kernel_op(kernel, AX_SCALAR_AND, AX_BOOL, ax_kernel_op(kernel, AX_SCALAR_NOT, AX_BOOL, below, AX_NONE, AX_NONE), number,
                      AX_NONE);
}

/* In one pass: the elements of an axis are loads of one step. */
static ax_status lower_short(ax_lower *lower, bool least, uint32_t x, const ax_reduction *r, uint32_t out) {
  ax_dtype dtype = ax_lower_type(lower, x)->dtype, index_dtype = ax_lower_type(lower, out)->dtype;
  ax_position to[AX_MAX_RANK];
  ax_at_identity(to, r->kept.count);
  AX_TRY(ax_lower_kernel_begin(lower, r->kept.count, 0, r->dims));
  ax_loop_kernel *kernel = lower->kernel;
  ax_ex best = load_at(lower, x, r, 0), place = ax_kernel_const(kernel, index_dtype, 0);
  for (int64_t i = 1; i < r->dims[r->rank - 1]; i++) {
    ax_ex here = load_at(lower, x, r, i), hit = emit_beats(kernel, dtype, least, here, best);
    best = ax_kernel_op(kernel, AX_SCALAR_SELECT, dtype, hit, here, best);
    place = ax_kernel_op(kernel, AX_SCALAR_SELECT, index_dtype, hit, ax_kernel_const(kernel, index_dtype, i), place);
  }
  ax_lower_store(lower, out, to, place, AX_SCALAR_NONE);
  return ax_lower_kernel_end(lower);
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *x = &lower->program->types[eqn->in[0]];
  const argmax_params *p = eqn->params;
  ax_reduction r = ax_reduction_of(x->rank, x->dims, &p->axes);
  ax_type type = lower->program->types[eqn->out];
  const bool least = seeks_least(eqn);
  uint32_t extreme;
  type.dtype = x->dtype;
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  bool is_last = p->axes.v[0] + 1 == (int64_t)x->rank;
  if (r.dims[r.rank - 1] <= AX_LINE_LOADS && (!is_last || ax_dims_elems(r.kept.count, r.dims) >= AX_LINE_ROWS))
    return lower_short(lower, least, in[0], &r, out[0]);
  AX_TRY(ax_lower_buffer(lower, &type, lower->differs[eqn->out], &extreme));
  AX_TRY(lower_extreme(lower, least, in[0], &r, extreme));
  return lower_index(lower, in[0], extreme, &r, out[0]);
}

/* --- hlo: the same two steps --- */

/* A mask that is true where x equals its extreme along the axes, or is NaN. */
static uint32_t hlo_hits(ax_hlo *hlo, bool least, uint32_t x, const ax_type *type, const ax_dims *axes) {
  const ax_dims kept = ax_dims_others(type->rank, axes, NULL);
  const ax_type hits = ax_array_type(AX_BOOL, AX_LIST(type->rank, type->dims));
  uint32_t most = ax_hlo_reduce_axes(hlo, least ? AX_SCALAR_MIN : AX_SCALAR_MAX, x, type, axes);
  most = ax_hlo_broadcast(hlo, most, &kept, type);
  const uint32_t equal = ax_hlo_compare(hlo, "EQ", NULL, x, most, type), nan = ax_hlo_compare(hlo, "NE", NULL, x, x, type);
  return ax_hlo_op(hlo, "stablehlo.or", (uint32_t[]){equal, nan}, 2, NULL, &hits, 1);
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const argmax_params *p = eqn->params;
  const ax_type *x = &hlo->program->types[eqn->in[0]];
  const ax_type indices = ax_array_type(p->index_dtype, AX_LIST(x->rank, x->dims));
  const int64_t last = x->dims[p->axes.v[0]] - 1;
  const uint32_t hits = hlo_hits(hlo, seeks_least(eqn), in[0], x, &p->axes), index = ax_hlo_iota(hlo, &indices, p->axes.v[0]);
  const uint32_t operands[] = {hits, index, ax_hlo_splat(hlo, &indices, &last)};
  const uint32_t places = ax_hlo_op(hlo, "stablehlo.select", operands, 3, NULL, &indices, 1);
  out[0] = ax_hlo_reduce_axes(hlo, AX_SCALAR_MIN, places, &indices, &p->axes);
  return AX_OK;
}

static const ax_param params[] = {
    {"axes", AX_PARAM_DIMS, offsetof(argmax_params, axes)},
    {"index_dtype", AX_PARAM_DTYPE, offsetof(argmax_params, index_dtype)},
};

#define ARG_RECORD(name_, jvp_)                                                                                       \
  const ax_prim ax_prim_##name_ = {                                                                                        \
      .name = #name_, .kind = AX_LOCAL, .in_count = 1, .out_count = 1, AX_PARAMS(params, argmax_params), .infer = infer,   \
      .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = jvp_, .linearize = jvp_,  \
      .transpose = ax_absent_transpose, .batch = batch, .simplify = ax_simplify_nothing, .shard = shard, .block = block,   \
      .lower = lower, .hlo = hlo,                                                                                          \
  }
ARG_RECORD(argmax, ax_jvp_zero);
ARG_RECORD(argmin, ax_jvp_zero);

static ax_value place_of(const ax_prim *prim, ax_value x, int64_t axis, ax_dtype index_dtype) {
  argmax_params p = {.axes = {1, {axis}}, .index_dtype = index_dtype};
  if (!ax_dimension(prim->name, "axis", &p.axes.v[0], ax_typeof(x).rank)) return ax_poison;
  return ax_bind1(prim, &p, &x, 1);
}

ax_value ax_argmax(ax_value x, int64_t axis, ax_dtype index_dtype) { return place_of(&ax_prim_argmax, x, axis, index_dtype); }
ax_value ax_argmin(ax_value x, int64_t axis, ax_dtype index_dtype) { return place_of(&ax_prim_argmin, x, axis, index_dtype); }
