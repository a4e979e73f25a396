/* rev: T[d..] -> T[d..]         y[.., i, ..] = x[.., d - 1 - i, ..] along each of the dimensions
   Parameters: dimensions.
   Errors: a dimension outside the rank or named twice.
   Linear; its own transpose.
   Sharding: cuts of every dimension are kept; along one that is turned round, devices exchange their blocks. */
#include "axle/collectives.h"
#include "hlo/hlo.h"
#include "plan/lower.h"
#include "prim/prims.h"
#include "prim/shape.h"

typedef struct rev_params {
  ax_dims dimensions;
} rev_params;

static const ax_dims *dimensions_of(const ax_eqn *eqn) { return &((const rev_params *)eqn->params)->dimensions; }

static ax_status infer(const ax_infer_args *args) {
  const ax_type *x = &args->in[0];
  AX_TRY(ax_infer_distinct("dimensions", &((const rev_params *)args->params)->dimensions, x->rank));
  args->out[0] = ax_array_type(x->dtype, AX_LIST(x->rank, x->dims));
  return AX_OK;
}

static ax_status eval(const ax_eval_args *args) {
  const ax_tensor *out = args->out[0];
  ax_strided to = ax_strided_dense(out), from = ax_strided_dense(args->in[0]);
  for (uint32_t d = 0; d < out->rank; d++) {
    if (!ax_dims_has(dimensions_of(args->eqn), d)) continue;
    from.offset += (out->dims[d] - 1) * from.strides[d];
    from.strides[d] = -from.strides[d];
  }
  ax_strided_copy(out->rank, out->dims, ax_dtype_bytes(out->dtype), &to, &from);
  return AX_OK;
}

static void transpose(const ax_transpose_args *args) {
  args->out[0] = ax_bind1(args->eqn->prim, args->eqn->params, args->cotangent, 1);
}

static void batch(const ax_batch_args *args) {
  rev_params p = *(const rev_params *)args->eqn->params;
  ax_dims_shift(&p.dimensions, args->in_dim[0]);
  args->out[0] = ax_bind1(args->eqn->prim, &p, args->in, 1);
  args->out_dim[0] = args->in_dim[0];
}

/* Along dimensions of 1 there is nothing to turn round. */
static void simplify(const ax_simplify_args *args) {
  const ax_dims *dimensions = dimensions_of(args->eqn);
  const ax_type *x = &args->types[args->eqn->in[0]];
  for (uint32_t i = 0; i < dimensions->count; i++)
    if (x->dims[dimensions->v[i]] > 1) return;
  args->same[0] = args->eqn->in[0];
}

static void shard(const ax_shard_args *args) {
  const ax_type *x = &args->types[args->eqn->in[0]];
  for (uint32_t d = 0; d < x->rank; d++) {
    const uint32_t factor = ax_factor(args, x->dims[d], AX_FACTOR_ALONG);
    args->factors->exchanged[factor] = ax_dims_has(dimensions_of(args->eqn), d);
    ax_factor_of(&args->in[0], d, factor);
    ax_factor_of(&args->out[0], d, factor);
  }
}

/* The last block first. */
static ax_value swapped(ax_value block, const ax_axes_list *axes) {
  const int64_t count = ax_axis_size(axes->text);
  int64_t(*pairs)[2] = ax_trace_alloc((size_t)(count > 0 ? count : 1) * sizeof pairs[0]);
  if (pairs == NULL) return ax_poison;
  for (int64_t i = 0; i < count; i++) pairs[i][0] = i, pairs[i][1] = count - 1 - i;
  return ax_ppermute(block, axes->text, (uint32_t)count, (const int64_t(*)[2])(const void *)pairs);
}

/* Blocks whose last ends in padding, which would come to stand in front: all of them as one, without it. */
static ax_value joined(const ax_block_args *args, ax_value block, const ax_axes_list *axes, uint32_t d) {
  return ax_slice_in_dim(ax_all_gather(block, axes->text, d, true), 0, args->types[args->eqn->in[0]].dims[d], 1, d);
}

static ax_value own_block(const ax_block_args *args, ax_value x, const ax_axes_list *axes, uint32_t d) {
  const int64_t none[AX_MAX_RANK] = {0}, size = args->blocks[0].dims[d];
  int64_t high[AX_MAX_RANK] = {0};
  high[d] = size * ax_axis_size(axes->text) - args->types[args->eqn->in[0]].dims[d];
  x = ax_pad(x, ax_full(args->blocks[0].dtype, AX_DIMS(), 0), none, high, none);
  return ax_dynamic_slice_in_dim(x, ax_mul(ax_axis_index(axes->text), ax_integer(size)), size, d);
}

static void block(const ax_block_args *args) {
  const ax_type *x = &args->types[args->eqn->in[0]];
  ax_axes names[AX_MAX_RANK];
  ax_axes_list lists[AX_MAX_RANK];
  bool uneven[AX_MAX_RANK] = {0};
  ax_value y = args->in[0];
  for (uint32_t d = 0; d < x->rank && !ax_failed(); d++) {
    names[d] = ax_spec_names(&args->specs[0], &ax_builder_current()->axes, d, 0);
    if (!ax_dims_has(dimensions_of(args->eqn), d)) names[d].count = 0;
    if (names[d].count == 0) continue;
    lists[d] = ax_axes_listed(&names[d]);
    uneven[d] = x->dims[d] % ax_axis_size(lists[d].text) != 0;
    if (uneven[d]) y = joined(args, y, &lists[d], d);
  }
  y = ax_bind1(args->eqn->prim, args->eqn->params, &y, 1);
  for (uint32_t d = 0; d < x->rank && !ax_failed(); d++)
    if (names[d].count > 0) y = uneven[d] ? own_block(args, y, &lists[d], d) : swapped(y, &lists[d]);
  args->out[0] = y;
}

static bool part(const ax_part_args *args) {
  const ax_eqn *eqn = args->eqn;
  const ax_type *x = &args->types[eqn->in[0]];
  args->in[0] = *args->box;
  for (uint32_t d = 0; d < x->rank; d++) {
    if (!ax_dims_has(dimensions_of(eqn), d)) continue;
    args->in[0].low[d] = x->dims[d] - args->box->high[d];
    args->in[0].high[d] = x->dims[d] - args->box->low[d];
  }
  if (args->values != NULL) args->out[0] = ax_bind1(eqn->prim, eqn->params, args->values, 1);
  return true;
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *x = &lower->program->types[eqn->in[0]];
  ax_position from[AX_MAX_RANK], to[AX_MAX_RANK];
  ax_at_identity(from, x->rank);
  ax_at_identity(to, x->rank);
  for (uint32_t d = 0; d < x->rank; d++)
    if (ax_dims_has(dimensions_of(eqn), d) && x->dims[d] > 0) from[d].coef = -1, from[d].offset = x->dims[d] - 1;
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  return ax_lower_move(lower, x->rank, x->dims, out[0], to, in[0], from);
}

static const ax_hlo_form form = {.op = "stablehlo.reverse", .fields = AX_HLO_FIELDS({"dimensions", "dimensions"})};

static const ax_param params[] = {{"dimensions", AX_PARAM_DIMS, offsetof(rev_params, dimensions)}};

const ax_prim ax_prim_rev = {
    .name = "rev",
    .kind = AX_LOCAL,
    .cheap = true,
    .in_count = 1,
    .out_count = 1,
    AX_PARAMS(params, rev_params),
    AX_LINEAR_RULES,
    .infer = infer,
    .eval = eval,
    .transpose = transpose,
    .batch = batch,
    .simplify = simplify,
    .part = part,
    .shard = shard,
    .block = block,
    .lower = lower,
    .complex = ax_complex_parts,
    .keys = ax_keys_whole,
    .form = &form, .hlo = ax_hlo_by_form,
};

ax_value (ax_rev)(ax_value x, uint32_t count, const int64_t *dimensions) {
  rev_params p;
  uint32_t rank = ax_typeof(x).rank;
  if (ax_failed() || !ax_dims_take(&ax_prim_rev, count, dimensions, &p.dimensions)) return ax_poison;
  for (uint32_t i = 0; i < count; i++)
    if (!ax_dimension(ax_prim_rev.name, "a dimension", &p.dimensions.v[i], rank)) return ax_poison;
  return ax_bind1(&ax_prim_rev, &p, &x, 1);
}
