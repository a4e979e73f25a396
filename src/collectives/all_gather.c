/* all_gather: T[.., k, ..]{V: axes, v..} -> T[.., n k, ..]{V: axes, v..}    the members' x joined along a dimension
   all_gather_invariant: the same, but the result is typed invariant over axes.
   all_gather_reduced: the same, but the result is typed reduced over axes.
   Parameters: axes; dimension, which grows n times. (Untiled: x is first given a dimension of 1 there.)
   Errors: an unknown axis or one named twice; an operand that does not vary over a checked axis; a dimension x does not have.
   Linear. Transposes: every member receives a member's x, so the cotangents of that part are summed: psum_scatter, for
   all_gather_reduced too, whose cotangents are unreduced. The invariant result is one value for all, and every member has its whole
   cotangent: it takes its own part. On unchecked axes each member has its own cotangent, and they are summed first (jax.lax leaves
   that sum out, and is n times off).
   Batching: the part of the batched axis is its batch dimension moved in front of `dimension` and merged with it. */
#include "collectives/collective.h"
#include "hlo/hlo.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "prim/hlo_groups.h"
#include "prim/prims.h"

typedef struct all_gather_params {
  ax_axes axes;
  int64_t dimension;
} all_gather_params;

static ax_status infer(const ax_infer_args *args) {
  const all_gather_params *params = args->params;
  int64_t size;
  AX_TRY(ax_collective_size(args, &params->axes, &size));
  AX_TRY(ax_require_dimension("dimension", params->dimension, args));
  args->out[0] = args->in[0];
  return ax_grow_dimension(&args->out[0], params->dimension, size);
}

static ax_status eval(const ax_eval_args *args) {
  const all_gather_params *params = args->eqn->params;
  for (uint32_t lane = 0; lane < args->lanes; lane++)
    for (uint32_t member = 0; member < args->lanes; member++) {
      const ax_tensor *in = args->in[member];
      ax_strided from = ax_strided_dense(in);
      ax_strided to = ax_tensor_part(args->out[lane], params->dimension, member * in->dims[params->dimension]);
      ax_strided_copy(in->rank, in->dims, ax_dtype_bytes(in->dtype), &to, &from);
    }
  return AX_OK;
}

static void gather_transpose(const ax_transpose_args *args) {
  ax_bind(&ax_prim_psum_scatter, args->eqn->params, args->cotangent, 1, args->out, 1);
}

static void invariant_transpose(const ax_transpose_args *args) {
  const all_gather_params *params = args->eqn->params;
  ax_axes checked, unchecked;
  ax_value cotangent = args->cotangent[0];
  ax_axes_split(&params->axes, &checked, &unchecked);
  if (checked.count == 0) {
    gather_transpose(args);
    return;
  }
  if (unchecked.count > 0) cotangent = ax_bind1(&ax_prim_psum, &unchecked, &cotangent, 1);
  args->out[0] = ax_own_part(cotangent, &params->axes, params->dimension);
}

static void gather_ungroup(const ax_ungroup_args *args) {
  const all_gather_params *params = args->eqn->params;
  ax_value x = ax_ungrouped_gather(args->axes, args->in[0]);
  args->out[0] = ax_fold_dims(ax_move_dim(x, 0, (int)params->dimension), params->dimension);
}

static void batch(const ax_batch_args *args) {
  const ax_prim *prim = args->eqn->prim;
  all_gather_params params = *(const all_gather_params *)args->eqn->params, major = params, minor = params;
  ax_value x = args->in[0];
  int dim = args->in_dim[0];
  if (!ax_axes_around(&params.axes, args->axis, &major.axes, &minor.axes)) {
    params.dimension += dim >= 0 && dim <= params.dimension;
    args->out[0] = ax_bind1(prim, &params, &x, 1);
    args->out_dim[0] = dim;
    return;
  }
  /* Members are numbered (major, batch, minor), and so is the grown dimension, from outside to inside. */
  x = ax_batch_front(x, dim, args->size);
  minor.dimension++;
  if (minor.axes.count > 0) x = ax_bind1(prim, &minor, &x, 1);
  x = ax_fold_dims(ax_move_dim(x, 0, (int)params.dimension), params.dimension);
  if (major.axes.count > 0) x = ax_bind1(prim, &major, &x, 1);
  args->out[0] = x;
  args->out_dim[0] = -1;
}

/* One result that all members fill; it is the same for all of them whatever its type says. */
/* The gather of a value that all members have: copies of it. */
static ax_status repeat(ax_lower *lower, const ax_eqn *eqn, uint32_t in, uint32_t *out) {
  const all_gather_params *params = eqn->params;
  const ax_type *x = &lower->program->types[eqn->in[0]], *y = &lower->program->types[eqn->out];
  const int64_t inner = ax_dims_elems(x->rank - (uint32_t)params->dimension, x->dims + params->dimension);
  const int64_t outer = ax_dims_elems((uint32_t)params->dimension, x->dims), part = x->dims[params->dimension];
  const int64_t dims[] = {outer, part > 0 ? y->dims[params->dimension] / part : 0, inner};
  const ax_type rows = ax_array_type(x->dtype, AX_DIMS(outer, inner)), repeated = ax_array_type(x->dtype, AX_LIST(3, dims));
  ax_position from[2], to[3];
  uint32_t src, dst;
  AX_TRY(ax_lower_result(lower, eqn, 0, out));
  AX_TRY(ax_lower_view(lower, in, &rows, 0, AX_NONE, 0, &src));
  AX_TRY(ax_lower_view(lower, *out, &repeated, 0, AX_NONE, 0, &dst));
  ax_at_identity(to, 3);
  from[0] = to[0];
  from[1] = to[2];
  return ax_lower_move(lower, 3, dims, dst, to, src, from);
}

static void shard(const ax_shard_args *args) {
  const all_gather_params *params = args->eqn->params;
  ax_shard_kept(args, (uint64_t)1 << params->dimension);
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const all_gather_params *params = eqn->params;
  const ax_type *x = &lower->program->types[eqn->in[0]], *y = &lower->program->types[eqn->out];
  ax_exchange exchange = {.names = params->axes, .peers = AX_PEERS_ONE, .in = in[0]};
  bool same;
  AX_TRY(ax_lower_is_same(lower, &params->axes, in[0], &same));
  if (same) return repeat(lower, eqn, in[0], &out[0]);
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  exchange.out = out[0];
  ax_exchange_parts(&exchange, x->rank, x->dims, x->dims, -1, y->dims, params->dimension);
  return ax_lower_exchange(lower, &exchange);
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const all_gather_params *params = eqn->params;
  ax_hlo_attributes attributes = {.hlo = hlo};
  ax_hlo_add_fields(&attributes, eqn->prim, params);
  ax_hlo_add_groups(&attributes, &params->axes);
  ax_hlo_add_unit(&attributes, "use_global_device_ids");
  return ax_hlo_simple(hlo, eqn, "stablehlo.all_gather", in, &attributes, out);
}

static const ax_param params[] = {{"axes", AX_PARAM_AXES, offsetof(all_gather_params, axes)},
                                  {"dimension", AX_PARAM_I64, offsetof(all_gather_params, dimension)}};

static ax_status read(const ax_hlo_read_args *args) {
  const char *names;
  all_gather_params p = {0};
  AX_TRY(ax_hlo_read_fields(args, args->prim, &p));
  AX_TRY(ax_hlo_read_groups(args, AX_HLO_BY_IDS, &names, NULL));
  if (args->op->operand_count != args->op->result_count) return ax_error(AX_INVALID_ARGUMENT, "it has a result for each operand");
  for (uint32_t k = 0; k < args->op->operand_count; k++) args->out[k] = ax_all_gather(args->in[k], names, p.dimension, true);
  return AX_OK;
}

/* The groups are read and written beside it. */
static const ax_hlo_form form = {.op = "stablehlo.all_gather", .fields = AX_HLO_FIELDS({"all_gather_dim", "dimension"})};

static const ax_hlo_reader readers[] = {{"stablehlo.all_gather", read}, {0}};

#define GATHER_RECORD(name_, spread_, transpose_, ungroup_, reads_) \
  const ax_prim ax_prim_##name_ = {                         \
      .name = #name_,                                       \
      .kind = AX_COLLECTIVE,                                \
      .effects = AX_EFFECT_EXCHANGE,                        \
      .traffic = AX_TRAFFIC_GATHERED,                       \
      .in_count = 1,                                        \
      .out_count = 1,                                       \
      .linear = AX_LINEAR_ALL,                              \
      .kinds = AX_KINDS_ALL,                                \
      AX_PARAMS(params, all_gather_params), .form = &form,  \
      .infer = infer,                                       \
      .spread = spread_,                                    \
      .eval = eval,                                         \
      .differs = ax_differs_drop,                           \
      .jvp = ax_jvp_linear,                                 \
      .linearize = ax_jvp_linear,                           \
      .transpose = transpose_,                              \
      .batch = batch,                                       \
      .ungroup = ungroup_,                                  \
      .simplify = ax_simplify_nothing,                      \
      .shard = shard,                                       \
      .lower = lower,                                       \
      .complex = ax_complex_parts,                          \
      .keys = ax_keys_whole,                                \
      .reads = reads_,                                      \
      .hlo = hlo,                                           \
  }
GATHER_RECORD(all_gather, ax_spread_keep, gather_transpose, gather_ungroup, readers);
GATHER_RECORD(all_gather_invariant, ax_spread_drop, invariant_transpose, NULL, NULL);
GATHER_RECORD(all_gather_reduced, ax_spread_reduced, gather_transpose, NULL, NULL);

static ax_value gather(const ax_prim *prim, ax_value x, const char *axes, int64_t dimension, bool tiled) {
  all_gather_params params = {.dimension = dimension};
  if (!ax_collective_operand(prim, &x, axes, &params.axes)) return ax_poison;
  if (!ax_dimension(prim->name, "dimension", &params.dimension, ax_typeof(x).rank + !tiled)) return ax_poison;
  if (!tiled) x = ax_expand_dims(x, params.dimension);
  return params.axes.count > 0 ? ax_bind1(prim, &params, &x, 1) : x;
}

ax_value ax_all_gather(ax_value x, const char *axes, int64_t dimension, bool tiled) {
  return gather(&ax_prim_all_gather, x, axes, dimension, tiled);
}
ax_value ax_all_gather_invariant(ax_value x, const char *axes, int64_t dimension, bool tiled) {
  return gather(&ax_prim_all_gather_invariant, x, axes, dimension, tiled);
}
ax_value ax_all_gather_reduced(ax_value x, const char *axes, int64_t dimension, bool tiled) {
  return gather(&ax_prim_all_gather_reduced, x, axes, dimension, tiled);
}
