/* all_to_all: T[.., n k, .., c, ..]{V: axes, v..} -> T[.., k, .., n c, ..]{V: axes, v..}
   Parameters: axes; split_axis, cut into n parts, of which part i goes to member i; concat_axis, along which the parts that come
   are joined in member order. They may be the same dimension.
   (Untiled: x is given a dimension of 1 at concat_axis before, and split_axis, by then of size 1, goes afterwards.)

        member 0   a0 a1          a0 b0      k = 1, c = 1: rows are split, columns are joined
        member 1   b0 b1   -->    a1 b1

   Errors: an unknown axis or one named twice; an operand that does not vary over a checked axis; a dimension x does not have, or
   that does not divide by n.
   Linear; the transpose swaps split_axis and concat_axis. Batching over a named axis: reshapes and transposes. */
#include "collectives/collective.h"
#include "hlo/hlo.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "prim/hlo_groups.h"
#include "prim/prims.h"

typedef struct all_to_all_params {
  ax_axes axes;
  int64_t split_axis, concat_axis;
} all_to_all_params;

static ax_status infer(const ax_infer_args *args) {
  const all_to_all_params *params = args->params;
  int64_t size;
  AX_TRY(ax_collective_size(args, &params->axes, &size));
  AX_TRY(ax_require_dimension("split_axis", params->split_axis, args));
  AX_TRY(ax_require_dimension("concat_axis", params->concat_axis, args));
  args->out[0] = args->in[0];
  AX_TRY(ax_cut_dimension(&args->out[0], params->split_axis, size, args));
  return ax_grow_dimension(&args->out[0], params->concat_axis, size);
}

/* The shape of what one member sends another. */
static void part_shape(const int64_t *in, uint32_t rank, int64_t split_axis, int64_t members, int64_t *part) {
  for (uint32_t d = 0; d < rank; d++) part[d] = d == split_axis ? in[d] / members : in[d];
}

static ax_status eval(const ax_eval_args *args) {
  const all_to_all_params *params = args->eqn->params;
  const ax_tensor *in = args->in[0];
  int64_t split = params->split_axis, concat = params->concat_axis, part[AX_MAX_RANK];
  part_shape(in->dims, in->rank, split, args->lanes, part);
  for (uint32_t lane = 0; lane < args->lanes; lane++)
    for (uint32_t member = 0; member < args->lanes; member++) {
      ax_strided from = ax_tensor_part(args->in[member], split, lane * part[split]);
      ax_strided to = ax_tensor_part(args->out[lane], concat, member * part[concat]);
      ax_strided_copy(in->rank, part, ax_dtype_bytes(in->dtype), &to, &from);
    }
  return AX_OK;
}

static void transpose(const ax_transpose_args *args) {
  all_to_all_params params = *(const all_to_all_params *)args->eqn->params;
  int64_t split_axis = params.split_axis;
  params.split_axis = params.concat_axis;
  params.concat_axis = split_axis;
  args->out[0] = ax_bind1(&ax_prim_all_to_all, &params, args->cotangent, 1);
}

static void ungroup(const ax_ungroup_args *args) {
  const all_to_all_params *params = args->eqn->params;
  int64_t size = ax_group_size(&args->axes->groups, 0);
  ax_value x = ax_split_dim(args->in[0], params->split_axis, size);
  x = ax_ungrouped_trade(args->axes, ax_move_dim(x, (int)params->split_axis, 0));
  args->out[0] = ax_fold_dims(ax_move_dim(x, 0, (int)params->concat_axis), params->concat_axis);
}

/* Along the batched axis the exchange is one of dimensions: the batch dimension, which told the senders apart, becomes part of
   concat_axis, and a part of split_axis, which tells the receivers apart, becomes the batch dimension. With more axes, members are
   numbered (major, batch, minor); three leading dimensions collect the senders' numbers, which then go to concat_axis together. */
static void batch_named(const ax_batch_args *args, const all_to_all_params *params, const ax_axes *majors,
                        const ax_axes *minors) {
  int64_t s = params->split_axis, c = params->concat_axis;
  ax_value x = ax_batch_front(args->in[0], args->in_dim[0], args->size);
  x = ax_expand_dims(ax_expand_dims(x, 0), 2);
  all_to_all_params major = {*majors, s + 3, 0}, minor = {*minors, s + 4, 2};
  if (majors->count > 0) x = ax_bind1(&ax_prim_all_to_all, &major, &x, 1);
  x = ax_split_dim(x, s + 3, args->size); /* the receivers along the batched axis: at s + 3 */
  if (minors->count > 0) x = ax_bind1(&ax_prim_all_to_all, &minor, &x, 1);
  x = ax_fold_dims(ax_fold_dims(x, 0), 0); /* the senders: at 0; the receivers: at s + 1 */
  int64_t before = c + (c >= s);           /* where concat_axis stands without the senders */
  x = ax_fold_dims(ax_move_dim(x, 0, (int)before), before);
  args->out[0] = x;
  args->out_dim[0] = (int)s;
}

static void batch(const ax_batch_args *args) {
  all_to_all_params params = *(const all_to_all_params *)args->eqn->params;
  ax_axes majors, minors;
  int dim = args->in_dim[0];
  if (ax_axes_around(&params.axes, args->axis, &majors, &minors)) {
    batch_named(args, &params, &majors, &minors);
    return;
  }
  params.split_axis += dim >= 0 && dim <= params.split_axis;
  params.concat_axis += dim >= 0 && dim <= params.concat_axis;
  args->out[0] = ax_bind1(&ax_prim_all_to_all, &params, args->in, 1);
  args->out_dim[0] = dim;
}

static void shard(const ax_shard_args *args) {
  const all_to_all_params *params = args->eqn->params;
  ax_shard_kept(args, (uint64_t)1 << params->split_axis | (uint64_t)1 << params->concat_axis);
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const all_to_all_params *params = eqn->params;
  const ax_type *x = &lower->program->types[eqn->in[0]], *y = &lower->program->types[eqn->out];
  ax_exchange exchange = {.names = params->axes, .peers = AX_PEERS_ALL, .in = in[0]};
  ax_axis_set set;
  int64_t part[AX_MAX_RANK];
  AX_TRY(ax_axes_resolve(&params->axes, &lower->plan->mesh, &set));
  part_shape(x->dims, x->rank, params->split_axis, ax_axis_set_size(set, &lower->plan->mesh), part);
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  exchange.out = out[0];
  ax_exchange_parts(&exchange, x->rank, part, x->dims, params->split_axis, y->dims, params->concat_axis);
  return ax_lower_exchange(lower, &exchange);
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const all_to_all_params *params = eqn->params;
  ax_hlo_attributes attributes = {.hlo = hlo};
  ax_axis_set set;
  AX_TRY(ax_axes_resolve(&params->axes, &hlo->axes, &set));
  int64_t size = params->axes.groups.count > 0 ? ax_group_size(&params->axes.groups, 0) : ax_axis_set_size(set, &hlo->axes);
  ax_hlo_add_fields(&attributes, eqn->prim, params);
  ax_hlo_add_integer(&attributes, "split_count", size);
  ax_hlo_add_groups(&attributes, &params->axes);
  return ax_hlo_simple(hlo, eqn, "stablehlo.all_to_all", in, &attributes, out);
}

static ax_status read(const ax_hlo_read_args *args) {
  const char *names;
  int64_t count, size;
  all_to_all_params p = {0};
  AX_TRY(ax_hlo_read_fields(args, args->prim, &p));
  AX_TRY(ax_hlo_integer(args->op, "split_count", &count));
  AX_TRY(ax_hlo_read_groups(args, AX_HLO_BY_CHANNEL, &names, &size));
  if (args->op->operand_count != args->op->result_count) return ax_error(AX_INVALID_ARGUMENT, "it has a result for each operand");
  if (count != size)
    return ax_error(AX_INVALID_ARGUMENT, "split_count is %lld, and a group has %lld", (long long)count, (long long)size);
  for (uint32_t k = 0; k < args->op->operand_count; k++) args->out[k] = ax_all_to_all(args->in[k], names, p.split_axis, p.concat_axis, true);
  return AX_OK;
}

/* The groups, and how many members they have, are read and written beside it. */
static const ax_hlo_form form = {.op = "stablehlo.all_to_all",
                                 .fields = AX_HLO_FIELDS({"split_dimension", "split_axis"}, {"concat_dimension", "concat_axis"})};

static const ax_hlo_reader readers[] = {{"stablehlo.all_to_all", read}, {0}};

static const ax_param params[] = {{"axes", AX_PARAM_AXES, offsetof(all_to_all_params, axes)},
                                  {"split_axis", AX_PARAM_I64, offsetof(all_to_all_params, split_axis)},
                                  {"concat_axis", AX_PARAM_I64, offsetof(all_to_all_params, concat_axis)}};

const ax_prim ax_prim_all_to_all = {
    .name = "all_to_all",
    .kind = AX_COLLECTIVE,
    .effects = AX_EFFECT_EXCHANGE,
    .traffic = AX_TRAFFIC_PARTS,
    .in_count = 1,
    .out_count = 1,
    AX_PARAMS(params, all_to_all_params), .form = &form,
    AX_LINEAR_TANGENTS,
    .kinds = AX_KINDS_ALL,
    .infer = infer,
    .spread = ax_spread_keep,
    .eval = eval,
    .differs = ax_differs_add,
    .transpose = transpose,
    .batch = batch,
    .ungroup = ungroup,
    .simplify = ax_simplify_nothing,
    .shard = shard,
    .lower = lower,
    .complex = ax_complex_parts,
    .keys = ax_keys_whole,
    .reads = readers,
    .hlo = hlo,
};

/* Untiled: the parts, of size 1 along split_axis, are joined along a new dimension. */
static ax_value untiled(ax_value x, const char *axes, all_to_all_params *params) {
  int64_t size = ax_typeof(x).dims[params->split_axis], members = ax_axes_members(&params->axes);
  if (size != members)
    return ax_reject(&ax_prim_all_to_all,
                     "untiled, split_axis %lld of size %lld must have the size of the group along \"%s\", %lld",
                     (long long)params->split_axis, (long long)size, axes, (long long)members);
  if (params->split_axis == params->concat_axis) return ax_bind1(&ax_prim_all_to_all, params, &x, 1);
  if (params->split_axis < params->concat_axis)
    params->concat_axis++; /* it counts without split_axis */
  else
    params->split_axis++;
  x = ax_expand_dims(x, params->concat_axis);
  return ax_drop_dim(ax_bind1(&ax_prim_all_to_all, params, &x, 1), params->split_axis);
}

ax_value ax_all_to_all(ax_value x, const char *axes, int64_t split_axis, int64_t concat_axis, bool tiled) {
  const ax_prim *prim = &ax_prim_all_to_all;
  all_to_all_params params = {.split_axis = split_axis, .concat_axis = concat_axis};
  if (!ax_collective_operand(prim, &x, axes, &params.axes)) return ax_poison;
  uint32_t rank = ax_typeof(x).rank;
  if (!ax_dimension(prim->name, "split_axis", &params.split_axis, rank)) return ax_poison;
  if (!ax_dimension(prim->name, "concat_axis", &params.concat_axis, rank)) return ax_poison;
  return tiled ? ax_bind1(prim, &params, &x, 1) : untiled(x, axes, &params);
}
