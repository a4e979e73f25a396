/* pbroadcast: T[d..]{V: axes, v..} -> T[d..]{V: axes, v..}     y on every member = x of member `source`
   Parameters: axes; source, a member's number.
   Errors: an unknown axis or one named twice; an operand that does not vary over a checked axis; a source outside the group. The
   result is typed varying, as jax.lax types it, and computed once for the group.
   Linear; the transpose: every member receives the source's x, so the source's cotangent is the sum over all members; the others
   have zeros.
   Batching over a named axis: one slice of the batch dimension, over the other axes from the source's number there. */
#include <string.h>

#include "collectives/collective.h"
#include "hlo/hlo.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "prim/composite.h"
#include "prim/hlo_groups.h"
#include "prim/prims.h"

typedef struct pbroadcast_params {
  ax_axes axes;
  int64_t source;
} pbroadcast_params;

static ax_status infer(const ax_infer_args *args) {
  const pbroadcast_params *params = args->params;
  int64_t size;
  AX_TRY(ax_collective_size(args, &params->axes, &size));
  if (params->source < 0 || params->source >= size)
    return ax_error(AX_INVALID_ARGUMENT, "source is %lld: the group's members are 0 to %lld", (long long)params->source,
                    (long long)size - 1);
  args->out[0] = args->in[0];
  return AX_OK;
}

static ax_status eval(const ax_eval_args *args) {
  const pbroadcast_params *params = args->eqn->params;
  for (uint32_t lane = 0; lane < args->lanes; lane++) ax_tensor_assign(args->out[lane], args->in[params->source]);
  return AX_OK;
}

static void transpose(const ax_transpose_args *args) {
  const pbroadcast_params *params = args->eqn->params;
  ax_value sum = ax_bind1(&ax_prim_psum, &params->axes, args->cotangent, 1);
  ax_value index = ax_bind1(&ax_prim_axis_index, &params->axes, NULL, 0);
  if (ax_failed()) return;
  ax_value mine = ax_eq(index, ax_full(AX_S32, AX_DIMS(), (double)params->source));
  args->out[0] = ax_where(mine, sum, ax_full_like(sum, 0));
}

/* Members are numbered (major, batch, minor). */
static void batch(const ax_batch_args *args) {
  pbroadcast_params params = *(const pbroadcast_params *)args->eqn->params;
  ax_axes major, minor, rest;
  ax_value x = args->in[0];
  int dim = args->in_dim[0];
  if (ax_axes_around(&params.axes, args->axis, &major, &minor)) {
    int64_t inside = ax_axes_members(&minor), own = params.source / inside % args->size;
    ax_axes_without(&params.axes, args->axis, &rest);
    params.axes = rest;
    params.source = params.source / (inside * args->size) * inside + params.source % inside;
    if (dim >= 0) x = ax_drop_dim(ax_slice_in_dim(x, own, own + 1, 1, dim), dim);
    dim = -1;
  }
  args->out[0] = params.axes.count > 0 ? ax_bind1(&ax_prim_pbroadcast, &params, &x, 1) : x;
  args->out_dim[0] = dim;
}

/* One result, which the source fills. */
static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const pbroadcast_params *params = eqn->params;
  ax_exchange exchange = {.names = params->axes, .peers = AX_PEERS_ONE, .alone = true, .source = params->source, .in = in[0]};
  bool same;
  AX_TRY(ax_lower_is_same(lower, &params->axes, in[0], &same));
  out[0] = in[0];
  if (same) return AX_OK;
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  exchange.out = out[0];
  ax_exchange_whole(&exchange, ax_type_elems(&lower->program->types[eqn->out]));
  return ax_lower_exchange(lower, &exchange);
}

/* The first of each group is the source. */
static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const pbroadcast_params *params = eqn->params;
  const ax_mesh *mesh = &hlo->axes;
  ax_hlo_attributes attributes = {.hlo = hlo};
  ax_axis_set set;
  int64_t *row;
  AX_TRY(ax_axes_resolve(&params->axes, mesh, &set));
  const int64_t devices = ax_mesh_devices(mesh), members = ax_axis_set_size(set, mesh);
  ax_hlo_add_matrix(&attributes, "replica_groups", devices / members, members, &row);
  for (int64_t d = 0; d < devices && row != NULL; d++) {
    if (ax_axes_index(&params->axes, mesh, d) != params->source) continue;
    *row++ = d;
    for (int64_t m = 0; m < members; m++)
      if (m != params->source) *row++ = ax_axes_device(&params->axes, mesh, d, m);
  }
  ax_hlo_add_channel(&attributes, ++hlo->channel);
  return ax_hlo_simple(hlo, eqn, "stablehlo.collective_broadcast", in, &attributes, out);
}

typedef struct rooted { /* groups that are no axes, or have a root that is computed */
  const char *all;  /* the names of all axes */
  ax_value peers;   /* s64[most members of a group]: the places of this device's group; -1 behind them, or everywhere */
} rooted;

/* Everything is gathered, and the root's kept: root s32[] says which of the peers it is. In no group: zeros. */
static ax_value from_root(const rooted *r, ax_value x, ax_value root) {
  const ax_value place = ax_take(r->peers, root, 0), all = ax_all_gather(x, r->all, 0, false);
  const ax_value kept = ax_take(all, ax_max(place, ax_integer(0)), 0);
  return ax_where(ax_ge(place, ax_integer(0)), kept, ax_full_like(x, 0));
}

static ax_status read_rooted(const ax_hlo_read_args *args, bool dynamic) {
  const ax_mesh *mesh = &args->devices->grid->mesh;
  const ax_axes names = ax_axis_set_names(ax_all_axes(mesh), mesh);
  const ax_axes_list all = ax_axes_listed(&names);
  const uint32_t count = args->op->result_count;
  ax_hlo_peers peers;
  AX_TRY(ax_hlo_read_peers(args, AX_HLO_BY_CHANNEL, !dynamic, &peers));
  const int64_t dims[] = {peers.devices, peers.columns};
  const ax_type type = (ax_array_type)(AX_S64, AX_LIST(2, dims));
  const rooted r = {all.text, ax_hlo_own_row(args, &type, peers.place)};
  for (uint32_t k = 0; k < count && !ax_failed(); k++) {
    ax_value root = ax_full(AX_S32, AX_DIMS(), 0);
    if (dynamic) root = ax_drop_dim(ax_slice_in_dim(args->in[count], k, (int64_t)k + 1, 1, 0), 0);
    args->out[k] = from_root(&r, args->in[k], root);
  }
  ax_free(peers.place);
  return AX_OK;
}

/* Each group's first member's values; or of operand k those of the member that the last operand, s32[operands], says. */
static ax_status read(const ax_hlo_read_args *args) {
  const char *names;
  bool dynamic;
  AX_TRY(ax_hlo_bool_or(args->op, "has_dynamic_root", false, &dynamic));
  if (args->op->operand_count != args->op->result_count + dynamic)
    return ax_error(AX_INVALID_ARGUMENT, "it has a result for each operand");
  AX_TRY(ax_hlo_read_groups(args, AX_HLO_BY_CHANNEL, &names, NULL));
  if (dynamic || strchr(names, '{') != NULL) return read_rooted(args, dynamic);
  for (uint32_t k = 0; k < args->op->result_count; k++) args->out[k] = ax_pbroadcast(args->in[k], names, 0);
  return AX_OK;
}

static const ax_hlo_reader readers[] = {{"stablehlo.collective_broadcast", read}, {0}};

static const ax_param params[] = {{"axes", AX_PARAM_AXES, offsetof(pbroadcast_params, axes)},
                                  {"source", AX_PARAM_I64, offsetof(pbroadcast_params, source)}};

const ax_prim ax_prim_pbroadcast = {
    .name = "pbroadcast",
    .kind = AX_COLLECTIVE,
    .effects = AX_EFFECT_EXCHANGE,
    .traffic = AX_TRAFFIC_OPERAND,
    .in_count = 1,
    .out_count = 1,
    AX_PARAMS(params, pbroadcast_params),
    AX_LINEAR_TANGENTS,
    .kinds = AX_KINDS_ALL,
    .infer = infer,
    .spread = ax_spread_keep,
    .eval = eval,
    .differs = ax_differs_drop,
    .transpose = transpose,
    .batch = batch,
    .simplify = ax_simplify_nothing,
    .shard = ax_shard_pointwise,
    .lower = lower,
    .complex = ax_complex_parts,
    .keys = ax_keys_words,
    .reads = readers,
    .hlo = hlo,
};

ax_value ax_pbroadcast(ax_value x, const char *axes, int64_t source) {
  pbroadcast_params params = {.source = source};
  if (!ax_collective_operand(&ax_prim_pbroadcast, &x, axes, &params.axes)) return ax_poison;
  return ax_bind1(&ax_prim_pbroadcast, &params, &x, 1);
}

ax_value ax_pbroadcast_dynamic(ax_value x, const char *axes, ax_value source) {
  static const char name[] = "pbroadcast_dynamic";
  ax_type from;
  ax_axes names;
  if (ax_is_number(source)) source = ax_as(name, source, AX_S32);
  if (!ax_collective_operand(&ax_prim_pbroadcast, &x, axes, &names) || !ax_operand(name, source, &from)) return ax_poison;
  if (from.dtype != AX_S32 || from.rank > 0)
    return ax_reject_as(name, "the source is %s; it must be s32[]", ax_operand_string(&from));
  ax_type type = ax_typeof(x);
  ax_value kept = ax_where(ax_eq(ax_axis_index(axes), source), x, ax_full_like(x, 0));
  return ax_spread_to(type.dtype == AX_BOOL ? ax_pmax(kept, axes) : ax_psum(kept, axes), &type.spread);
}
