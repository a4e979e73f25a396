/* psum_scatter: T[.., n k, ..]{V: axes, ..} -> T[.., k, ..]{V: axes, ..}    y = my part of the sum over the group's members of x
                 T[.., n k, ..]{U: axes, ..} -> T[.., k, ..]{V: axes, ..}
   Parameters: axes; dimension, of which member i keeps part i of n. (Untiled: its size is n, and it goes afterwards.)
   Errors: an unknown axis or one named twice; an operand that does not vary over all checked axes named, nor is
   unreduced over all of them by sum; bool; a dimension x does not have or that does not divide by n.
   Numerics: as psum.
   Linear; the transpose is all_gather, or all_gather_reduced where the operand was unreduced.
   Batching: the x of the members along the batched axis are summed, and each keeps its part: a dimension of the result. */
#include <inttypes.h>
#include <string.h>

#include "collectives/collective.h"
#include "hlo/hlo.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "prim/hlo_groups.h"
#include "prim/prims.h"

typedef struct psum_scatter_params {
  ax_axes axes;
  int64_t dimension;
} psum_scatter_params;

static ax_status infer(const ax_infer_args *args) {
  const psum_scatter_params *params = args->params;
  int64_t size;
  AX_TRY(ax_collective_size(args, &params->axes, &size));
  if (args->in[0].dtype == AX_BOOL)
    return ax_error(AX_INVALID_ARGUMENT, "needs a numeric dtype, got bool; convert_element_type gives one");
  AX_TRY(ax_require_dimension("dimension", params->dimension, args));
  args->out[0] = args->in[0];
  return ax_cut_dimension(&args->out[0], params->dimension, size, args);
}

static ax_status eval(const ax_eval_args *args) {
  const psum_scatter_params *params = args->eqn->params;
  const ax_tensor *in = args->in[0], *out = args->out[0];
  int64_t elems = ax_dims_elems(out->rank, out->dims), size = out->dims[params->dimension];
  if (args->lanes == 1) memmove(out->data, in->data, (size_t)elems * ax_dtype_bytes(out->dtype));
  for (uint32_t lane = 0; lane < args->lanes && args->lanes > 1; lane++) {
    ax_strided part = ax_tensor_part(in, params->dimension, lane * size);
    for (int64_t i = 0; i < elems; i++) {
      int64_t at = part.offset + ax_strided_at(i, out->rank, out->dims, part.strides);
      ax_number_store(out->dtype, args->out[lane]->data, i, ax_combine_members(AX_SCALAR_ADD, args->in, args->lanes, at));
    }
  }
  return AX_OK;
}

static void transpose(const ax_transpose_args *args) {
  const ax_prim *prim = ax_was_unreduced(args) ? &ax_prim_all_gather_reduced : &ax_prim_all_gather;
  ax_bind(prim, args->eqn->params, args->cotangent, 1, args->out, 1);
}

static void ungroup(const ax_ungroup_args *args) {
  const psum_scatter_params *params = args->eqn->params;
  int64_t size = ax_group_size(&args->axes->groups, 0);
  ax_value x = ax_split_dim(args->in[0], params->dimension, size);
  x = ax_ungrouped_trade(args->axes, ax_move_dim(x, (int)params->dimension, 0));
  args->out[0] = ax_combine_rows(AX_SCALAR_ADD, x);
}

static void batch(const ax_batch_args *args) {
  psum_scatter_params params = *(const psum_scatter_params *)args->eqn->params, major = params, minor = params;
  ax_value x = args->in[0];
  int dim = args->in_dim[0];
  if (!ax_axes_around(&params.axes, args->axis, &major.axes, &minor.axes)) {
    params.dimension += dim >= 0 && dim <= params.dimension;
    args->out[0] = ax_bind1(&ax_prim_psum_scatter, &params, &x, 1);
    args->out_dim[0] = dim;
    return;
  }
  /* The dimension's parts are numbered (major, batch, minor), from outside to inside. */
  x = ax_combine_batch(AX_SCALAR_ADD, x, dim, args->size);
  if (major.axes.count > 0) x = ax_bind1(&ax_prim_psum_scatter, &major, &x, 1);
  x = ax_split_dim(x, params.dimension, args->size);
  minor.dimension++;
  if (minor.axes.count > 0) x = ax_bind1(&ax_prim_psum_scatter, &minor, &x, 1);
  args->out[0] = x;
  args->out_dim[0] = (int)params.dimension;
}

static void shard(const ax_shard_args *args) {
  const psum_scatter_params *params = args->eqn->params;
  ax_shard_kept(args, (uint64_t)1 << params->dimension);
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const psum_scatter_params *params = eqn->params;
  const ax_type *x = &lower->program->types[eqn->in[0]], *y = &lower->program->types[eqn->out];
  ax_exchange exchange = {.names = params->axes, .peers = AX_PEERS_ALL, .combine = AX_SCALAR_ADD};
  ax_exchange_parts(&exchange, y->rank, y->dims, x->dims, params->dimension, y->dims, -1);
  return ax_lower_combine(lower, &exchange, in[0], y, lower->differs[eqn->out], &out[0]);
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const psum_scatter_params *params = eqn->params;
  ax_hlo_attributes attributes = {.hlo = hlo};
  ax_hlo_add_fields(&attributes, eqn->prim, params);
  ax_hlo_add_groups(&attributes, &params->axes);
  ax_hlo_add_unit(&attributes, "use_global_device_ids");
  out[0] = ax_hlo_combining(hlo, eqn, "stablehlo.reduce_scatter", AX_SCALAR_ADD, in, &attributes);
  return AX_OK;
}

/* By another body than a sum: each member gets its part of all others', and combines them. */
static ax_status scatter_by_body(const ax_hlo_read_args *args, ax_value x, const char *names, int64_t dimension, int64_t size) {
  const ax_type type = ax_typeof(x);
  if (ax_failed()) return AX_OK;
  if (type.dims[dimension] % size != 0)
    return ax_error(AX_INVALID_ARGUMENT, "%" PRId64 " members do not divide dimension %" PRId64 " of %s", size, dimension,
                    ax_type_string(&type, NULL));
  const ax_value parts = ax_split_dim(ax_all_to_all(x, names, dimension, dimension, true), dimension, size);
  return ax_hlo_combine_rows(args, ax_moveaxis(parts, dimension, 0), &args->out[0]);
}

static ax_status read(const ax_hlo_read_args *args) {
  const char *names;
  int64_t dimension, size;
  bool uneven;
  if (args->op->operand_count != 1) return ax_error(AX_INVALID_ARGUMENT, "it takes one operand");
  AX_TRY(ax_hlo_integer(args->op, "scatter_dimension", &dimension));
  AX_TRY(ax_hlo_read_groups(args, AX_HLO_BY_IDS, &names, &size));
  AX_TRY(ax_hlo_groups_uneven(args, AX_HLO_BY_IDS, &uneven));
  if (uneven) return ax_error(AX_INVALID_ARGUMENT, "its groups must be of one size, which the result's shape depends on");
  const ax_value x = ax_convert_element_type(args->in[0], args->out_types[0].dtype);
  if (dimension < 0 || dimension >= ax_typeof(x).rank)
    return ax_error(AX_INVALID_ARGUMENT, "scatter_dimension is none of its operand's");
  if (ax_hlo_combining_of(args, args->out_types[0].dtype) != ax_psum) return scatter_by_body(args, x, names, dimension, size);
  args->out[0] = ax_psum_scatter(x, names, dimension, true);
  return AX_OK;
}

/* The groups, and the region, which adds, are read and written beside it. */
static const ax_hlo_form form = {
    .op = "stablehlo.reduce_scatter", .reducer = AX_SCALAR_ADD, .fields = AX_HLO_FIELDS({"scatter_dimension", "dimension"})};

static const ax_hlo_reader readers[] = {{"stablehlo.reduce_scatter", read}, {0}};

static const ax_param params[] = {{"axes", AX_PARAM_AXES, offsetof(psum_scatter_params, axes)},
                                  {"dimension", AX_PARAM_I64, offsetof(psum_scatter_params, dimension)}};

const ax_prim ax_prim_psum_scatter = {
    .name = "psum_scatter",
    .kind = AX_COLLECTIVE,
    .effects = AX_EFFECT_EXCHANGE,
    .traffic = AX_TRAFFIC_PARTS,
    .in_count = 1,
    .out_count = 1,
    AX_PARAMS(params, psum_scatter_params), .form = &form,
    AX_LINEAR_TANGENTS,
    .kinds = AX_KINDS_SUM,
    .infer = infer,
    .spread = ax_spread_scatter,
    .eval = eval,
    .differs = ax_differs_add,
    .transpose = transpose,
    .batch = batch,
    .ungroup = ungroup,
    .simplify = ax_simplify_nothing,
    .shard = shard,
    .lower = lower,
    .complex = ax_complex_parts,
    .reads = readers,
    .hlo = hlo,
};

ax_value ax_psum_scatter(ax_value x, const char *axes, int64_t dimension, bool tiled) {
  psum_scatter_params params = {.dimension = dimension};
  const ax_prim *prim = &ax_prim_psum_scatter;
  if (!ax_collective_operand(prim, &x, axes, &params.axes)) return ax_poison;
  if (!ax_dimension(prim->name, "dimension", &params.dimension, ax_typeof(x).rank)) return ax_poison;
  int64_t size = ax_typeof(x).dims[params.dimension];
  if (!tiled && size != ax_axes_members(&params.axes))
    return ax_reject(prim, "untiled, dimension %lld of size %lld must have the size of the group along \"%s\", %lld",
                     (long long)params.dimension, (long long)size, axes, (long long)ax_axes_members(&params.axes));
  if (params.axes.count > 0) x = ax_bind1(prim, &params, &x, 1);
  return tiled ? x : ax_drop_dim(x, params.dimension);
}

ax_value ax_unreduced_psum_scatter(ax_value x, const char *axes, int64_t dimension, bool tiled) {
  if (!ax_insist("unreduced_psum_scatter", x, axes, AX_IS_UNREDUCED)) return ax_poison;
  return ax_psum_scatter(x, axes, dimension, tiled);
}
