/* psend: T[d..]{V: axes, v..} -> token{V: axes, v..}      sends x from member `source` to member `target`, for each of the pairs
   precv: token -> T[d..]{V: all checked axes}             the message to member `target` from member `source`, or zeros
   create_token: -> token                                  for a precv whose psend is not at hand

     t:token{V:d} = psend[axes=(d,) pairs=((0, 1),) link=0] x
     y:f32[4]{V:d} = precv[dtype=f32 dims=(4,) axes=(d,) pairs=((0, 1),) link=0] t

   Parameters: axes; pairs (source, target) of member numbers; link, 0 but for derivatives; of precv the dtype and the dims of what
   comes.
   Errors: an unknown axis or one named twice; an operand of psend that does not vary over a checked axis, one of precv that is no
   token; a number outside the group; two pairs with one source, or with one target.
   A link is a queue from one device to another, for each set of axes and each `link`: the k-th precv takes what the k-th psend
   left. psend copies x and never waits; precv waits for its message. Each is one side of an exchange, so both may stand in
   branches that only some devices take. The messages of one device stay in program order, and none is dropped, doubled or
   merged. A token adds nothing to that order: it is used once at most (ir/once.c), and holds nothing. A message whose shape or
   dtype differs from precv's is an error of the run, and so is a message that no precv takes; a precv whose message never comes
   is a deadlock.
   precv's result varies over all checked axes: nothing says that what other devices sent along them is the same.
   In derivatives x is sent on link 2 link and its tangent right after it on link 2 link + 1, between the same members; symbolic
   zeros are sent as zeros. Only messages with tangents, those on odd links, have a transpose: psend becomes a precv and precv a
   psend, in the opposite direction. A scan and a cond are transposed with the messages in them, the steps backwards on both sides;
   inside while there is no transpose. Batched messages have the batch dimension in front, also if psend's x has none, so that both
   sides agree; over a batched axis itself there is no rule. */
#include <string.h>

#include "axle/collectives.h"
#include "collectives/collective.h"
#include "collectives/messages.h"
#include "hlo/hlo.h"
#include "plan/lower.h"
#include "plan/lowering.h"
#include "plan/plan.h"
#include "prim/hlo_groups.h"
#include "prim/prims.h"
#include "prim/region.h"

typedef struct message_params { /* precv's begin with them */
  ax_axes axes;
  ax_pairs pairs;
  int64_t link;
} message_params;

typedef struct precv_params {
  message_params of;
  ax_dtype dtype;
  ax_dims dims;
} precv_params;

static const ax_type token = {.form = AX_TOKEN, .dtype = AX_BOOL};

/* --- infer --- */

static ax_status check_message(const ax_infer_args *args) {
  const message_params *params = args->params;
  int64_t size;
  AX_TRY(ax_collective_size(args, &params->axes, &size));
  if (params->link < 0 || params->link > INT64_MAX / 2) /* a tangent's is 2 link + 1 */
    return ax_error(AX_INVALID_ARGUMENT, "the link is %lld", (long long)params->link);
  return ax_pairs_check(&params->pairs, size);
}

static ax_status send_infer(const ax_infer_args *args) {
  args->out[0] = token;
  return check_message(args);
}

static ax_status receive_infer(const ax_infer_args *args) {
  const precv_params *params = args->params;
  args->out[0] = ax_array_type(params->dtype, AX_LIST(params->dims.count, params->dims.v));
  if (args->out[0].dtype == AX_NO_DTYPE)
    return ax_error(AX_INVALID_ARGUMENT, "what is to be received has no dtype, or a negative dimension");
  return check_message(args);
}

static ax_status receive_spread(const ax_infer_args *args) {
  ax_spread of_token;
  AX_TRY(ax_spread_join(args, ax_all_axes(args->axes), &of_token));
  args->out[0].spread.varying = ax_checked_axes(args->axes);
  return AX_OK;
}

static ax_status create_infer(const ax_infer_args *args) {
  args->out[0] = token;
  return AX_OK;
}

static ax_status create_spread(const ax_infer_args *args) {
  (void)args;
  return AX_OK;
}

/* --- eval --- */

/* The device that this one sends to (side 1), or receives from (side 0); -1: none. */
static int64_t other_side(const ax_eval_args *args, int side) {
  const message_params *params = args->eqn->params;
  int64_t mine = ax_axes_index(&params->axes, args->axes, args->device[0]);
  for (uint32_t i = 0; i < params->pairs.count; i++)
    if (params->pairs.v[i][1 - side] == mine)
      return ax_axes_device(&params->axes, args->axes, args->device[0], params->pairs.v[i][side]);
  return -1;
}

static ax_status send_eval(const ax_eval_args *args) {
  const message_params *params = args->eqn->params;
  int64_t to = other_side(args, 1);
  return to < 0 ? AX_OK : ax_evaluate_send(args, &params->axes, params->link, to, args->in[0]);
}

static ax_status receive_eval(const ax_eval_args *args) {
  const message_params *params = args->eqn->params;
  int64_t from = other_side(args, 0);
  return from < 0 ? AX_OK : ax_evaluate_receive(args, &params->axes, params->link, from, args->out[0]); /* zeros until then */
}

static ax_status create_eval(const ax_eval_args *args) {
  (void)args; /* results are cleared */
  return AX_OK;
}

/* --- differs --- */

static void everywhere(const ax_differs_args *args) { args->out[0] = ax_all_axes(&args->program->axes); }

/* --- jvp --- */

/* Whichever links there are, twice as many: the values' are even from here on, and odd says that it is the tangents'. */
static int64_t primal_link(int64_t link) { return 2 * link; }
static int64_t tangent_link(int64_t link) { return 2 * link + 1; }

static ax_axis_set checked(void) { return ax_checked_axes(&ax_builder_current()->axes); }

static void send_jvp(const ax_jvp_args *args) {
  message_params params = *(const message_params *)args->eqn->params;
  int64_t link = params.link;
  params.link = primal_link(link);
  args->out[0] = ax_bind1(&ax_prim_psend, &params, args->in, 1);
  args->tangent_out[0] = ax_zero;
  if (ax_failed() || !ax_is_differentiable(ax_typeof(args->in[0]).dtype)) return;
  ax_value tangent = ax_vary_to(ax_instantiate(args->tangent_in[0], args->in[0]), checked());
  params.link = tangent_link(link);
  (void)ax_bind1(&ax_prim_psend, &params, &tangent, 1);
}

static void receive_jvp(const ax_jvp_args *args) {
  precv_params params = *(const precv_params *)args->eqn->params;
  int64_t link = params.of.link;
  params.of.link = primal_link(link);
  args->out[0] = ax_bind1(&ax_prim_precv, &params, args->in, 1);
  args->tangent_out[0] = ax_zero;
  if (!ax_is_differentiable(params.dtype)) return;
  ax_value fresh = ax_create_token();
  params.of.link = tangent_link(link);
  args->tangent_out[0] = ax_bind1(&ax_prim_precv, &params, &fresh, 1);
}

/* --- transpose: of messages with tangents, which xform/transpose.c calls in any case. --- */

/* From who received to who sent; false: the trace has failed. */
static bool turn_round(message_params *params) {
  int64_t(*pairs)[2] = ax_trace_alloc(params->pairs.count * sizeof pairs[0]);
  if (pairs == NULL) return false;
  for (uint32_t i = 0; i < params->pairs.count; i++) {
    pairs[i][0] = params->pairs.v[i][1];
    pairs[i][1] = params->pairs.v[i][0];
  }
  params->pairs.v = pairs;
  return true;
}

static void send_transpose(const ax_transpose_args *args) {
  const ax_type *x = &args->in_types[0];
  precv_params params = {.of = *(const message_params *)args->eqn->params, .dtype = x->dtype, .dims.count = x->rank};
  if (!turn_round(&params.of)) return;
  memcpy(params.dims.v, x->dims, sizeof params.dims.v);
  ax_value fresh = ax_create_token();
  args->out[0] = ax_bind1(&ax_prim_precv, &params, &fresh, 1);
}

static void receive_transpose(const ax_transpose_args *args) {
  precv_params params = *(const precv_params *)args->eqn->params;
  if (!turn_round(&params.of)) return;
  ax_type result = ax_array_type(params.dtype, AX_LIST(params.dims.count, params.dims.v));
  result.spread.varying = checked();
  ax_value cotangent = ax_is_zero(args->cotangent[0]) ? ax_zero_cotangent(&result) : args->cotangent[0];
  (void)ax_bind1(&ax_prim_psend, &params.of, &cotangent, 1);
}

/* --- batch --- */

static bool over_axis(const ax_batch_args *args) {
  ax_axes rest;
  if (args->axis == NULL || !ax_axes_without(args->eqn->params, args->axis, &rest)) return false;
  ax_fail(ax_error(AX_ABSENT,
                   "vmap: no %s over an axis that is mapped: its members are one program, which has no two sides; ppermute moves "
                   "values along it",
                   args->eqn->prim->name));
  return true;
}

static void send_batch(const ax_batch_args *args) {
  if (over_axis(args)) return;
  ax_value x = ax_batch_front(args->in[0], args->in_dim[0], args->size);
  args->out[0] = ax_bind1(&ax_prim_psend, args->eqn->params, &x, 1);
  args->out_dim[0] = -1;
}

static void receive_batch(const ax_batch_args *args) {
  precv_params params = *(const precv_params *)args->eqn->params;
  if (over_axis(args)) return;
  if (params.dims.count == AX_MAX_RANK) {
    (void)ax_reject(&ax_prim_precv, "batched, it would have a rank above %d", AX_MAX_RANK);
    return;
  }
  memmove(params.dims.v + 1, params.dims.v, params.dims.count * sizeof params.dims.v[0]);
  params.dims.v[0] = args->size;
  params.dims.count++;
  args->out[0] = ax_bind1(&ax_prim_precv, &params, args->in, 1);
}

static void create_batch(const ax_batch_args *args) {
  args->out[0] = ax_create_token();
  args->out_dim[0] = -1;
}

/* --- lower: a token holds nothing, so all are one constant. --- */

static ax_status lower_token(ax_lower *lower, uint32_t *out) {
  static const unsigned char nothing[1];
  AX_TRY(ax_lower_buffer(lower, &token, 0, out));
  ax_buffer *buffer = &lower->plan->buffers[*out];
  buffer->kind = AX_BUFFER_CONST;
  buffer->data = nothing;
  return AX_OK;
}

static ax_status send_lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const message_params *params = eqn->params;
  AX_TRY(ax_lower_message(lower, AX_OP_SEND,
                          &(ax_mail){.names = params->axes, .pairs = &params->pairs, .link = params->link, .buffer = in[0]}));
  return lower_token(lower, &out[0]);
}

static ax_status receive_lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  (void)in;
  const message_params *params = eqn->params;
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  return ax_lower_message(lower, AX_OP_RECEIVE,
                          &(ax_mail){.names = params->axes, .pairs = &params->pairs, .link = params->link, .buffer = out[0]});
}

static ax_status create_lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  (void)eqn, (void)in;
  return lower_token(lower, &out[0]);
}

/* --- hlo --- */

static uint32_t hlo_token(ax_hlo *hlo) { return ax_hlo_op(hlo, "stablehlo.create_token", NULL, 0, NULL, &token, 1); }

static ax_status add_message(ax_hlo_attributes *to, const message_params *params) {
  ax_hlo *hlo = to->hlo;
  if (hlo->messages == 0) hlo->messages = ++hlo->channel;
  ax_hlo_add_bool(to, "is_host_transfer", false);
  return ax_hlo_add_exchanged(to, &params->axes, &params->pairs, hlo->messages);
}

static ax_status send_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  ax_hlo_attributes attributes = {.hlo = hlo};
  uint32_t operands[] = {in[0], hlo_token(hlo)};
  AX_TRY(add_message(&attributes, eqn->params));
  out[0] = ax_hlo_op(hlo, "stablehlo.send", operands, 2, &attributes, &token, 1);
  return AX_OK;
}

static ax_status receive_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  ax_hlo_attributes attributes = {.hlo = hlo};
  const ax_type types[] = {hlo->program->types[eqn->out], token};
  AX_TRY(add_message(&attributes, eqn->params));
  out[0] = ax_hlo_op(hlo, "stablehlo.recv", in, 1, &attributes, types, 2);
  return AX_OK;
}

static ax_status create_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  (void)eqn, (void)in;
  out[0] = hlo_token(hlo);
  return AX_OK;
}

/* The link that the channel stands for. */
static ax_status read_link(const ax_hlo_read_args *args, int64_t *link) {
  const ax_hlo_attribute *channel = ax_hlo_find(args->op, "channel_handle");
  const ax_hlo_attribute *handle = channel != NULL ? ax_hlo_item(channel, "handle") : NULL;
  if (handle == NULL || handle->kind != AX_HLO_INTEGER) return ax_error(AX_INVALID_ARGUMENT, "the attribute channel_handle must have a handle");
  *link = handle->integer;
  return AX_OK;
}

ax_status ax_send_along(const ax_hlo_read_args *args, const char *names, const ax_pairs *pairs) {
  message_params params = {.pairs = *pairs};
  AX_TRY(read_link(args, &params.link));
  for (uint32_t i = 0; i < args->op->operand_count; i++) {
    ax_value x = args->in[i];
    if (!ax_collective_operand(&ax_prim_psend, &x, names, &params.axes)) return AX_OK;
    (void)ax_bind1(&ax_prim_psend, &params, &x, 1);
  }
  return AX_OK;
}

ax_status ax_recv_along(const ax_hlo_read_args *args, const char *names, const ax_pairs *pairs) {
  precv_params params = {.of.pairs = *pairs};
  AX_TRY(read_link(args, &params.of.link));
  for (uint32_t k = 0; k < args->op->result_count; k++) {
    const ax_type *type = &args->out_types[k];
    AX_TRY(ax_hlo_want_shape(args, k));
    if (!ax_collective_names("recv", names, &params.of.axes)) return AX_OK;
    params.dtype = type->dtype, params.dims.count = type->rank;
    memcpy(params.dims.v, type->dims, sizeof params.dims.v);
    const ax_value after = ax_create_token();
    args->out[k] = ax_bind1(&ax_prim_precv, &params, &after, 1);
  }
  return AX_OK;
}

ax_status ax_send_read(const ax_hlo_read_args *args) {
  const char *names;
  ax_pairs pairs;
  AX_TRY(ax_hlo_read_pairs(args, &names, &pairs));
  return ax_send_along(args, names, &pairs);
}

ax_status ax_recv_read(const ax_hlo_read_args *args) {
  const char *names;
  ax_pairs pairs;
  AX_TRY(ax_hlo_read_pairs(args, &names, &pairs));
  return ax_recv_along(args, names, &pairs);
}

/* --- The records --- */

static const ax_param send_params[] = {{"axes", AX_PARAM_AXES, offsetof(message_params, axes)},
                                       {"pairs", AX_PARAM_PAIRS, offsetof(message_params, pairs)},
                                       {"link", AX_PARAM_I64, offsetof(message_params, link)}};
static const ax_param receive_params[] = {{"dtype", AX_PARAM_DTYPE, offsetof(precv_params, dtype)},
                                          {"dims", AX_PARAM_DIMS, offsetof(precv_params, dims)},
                                          {"axes", AX_PARAM_AXES, offsetof(precv_params, of.axes)},
                                          {"pairs", AX_PARAM_PAIRS, offsetof(precv_params, of.pairs)},
                                          {"link", AX_PARAM_I64, offsetof(precv_params, of.link)}};

enum { single_sided = AX_EFFECT_MESSAGE | AX_EFFECT_ORDER | AX_EFFECT_STATE };

const ax_prim ax_prim_psend = {
    .name = "psend", .kind = AX_COLLECTIVE, .effects = single_sided, .in_count = 1, .out_count = 1,
    AX_PARAMS(send_params, message_params),
    .infer = send_infer, .spread = ax_spread_keep, .eval = send_eval, .differs = everywhere, .jvp = send_jvp, .linearize = send_jvp,
    .transpose = send_transpose, .batch = send_batch,
    .simplify = ax_simplify_nothing, .shard = ax_shard_whole, .lower = send_lower,
    .complex = ax_complex_whole, .keys = ax_keys_whole, .hlo = send_hlo,
};

const ax_prim ax_prim_precv = {
    .name = "precv",
    .kind = AX_COLLECTIVE,
    .traffic = AX_TRAFFIC_RESULT,
    .effects = single_sided,
    .operands = AX_TOKEN,
    .in_count = 1,
    .out_count = 1,
    AX_PARAMS(receive_params, precv_params),
    .infer = receive_infer,
    .spread = receive_spread,
    .eval = receive_eval,
    .differs = everywhere,
    .jvp = receive_jvp,
    .linearize = receive_jvp,
    .transpose = receive_transpose,
    .batch = receive_batch,
    .simplify = ax_simplify_nothing,
    .shard = ax_shard_whole,
    .lower = receive_lower,
    .complex = ax_complex_whole,
    .keys = ax_keys_whole,
    .hlo = receive_hlo,
};

/* With state, so that two are never made one. */
const ax_prim ax_prim_create_token = {
    .name = "create_token",
    .kind = AX_LOCAL,
    .effects = AX_EFFECT_STATE,
    .in_count = 0,
    .out_count = 1,
    .infer = create_infer,
    .spread = create_spread,
    .eval = create_eval,
    .differs = ax_differs_union,
    .jvp = ax_jvp_zero,
    .linearize = ax_jvp_zero,
    .transpose = ax_absent_transpose,
    .batch = create_batch,
    .simplify = ax_simplify_nothing,
    .shard = ax_shard_whole,
    .lower = create_lower,
    .hlo = create_hlo,
};

/* --- The functions --- */

ax_value ax_psend(ax_value x, const char *axes, uint32_t count, const int64_t (*pairs)[2]) {
  message_params params = {.pairs = {count, (int64_t(*)[2])pairs}};
  if (!ax_collective_operand(&ax_prim_psend, &x, axes, &params.axes)) return ax_poison;
  if (pairs == NULL && count > 0) return ax_reject(&ax_prim_psend, "there are no pairs");
  return ax_bind1(&ax_prim_psend, &params, &x, 1);
}

ax_value ax_precv(ax_value after, ax_type type, const char *axes, uint32_t count, const int64_t (*pairs)[2]) {
  precv_params params = {.of.pairs = {count, (int64_t(*)[2])pairs}, .dtype = type.dtype, .dims.count = type.rank};
  if (!ax_collective_names("precv", axes, &params.of.axes)) return ax_poison;
  if (pairs == NULL && count > 0) return ax_reject(&ax_prim_precv, "there are no pairs");
  if (type.form != AX_ARRAY || type.rank > AX_MAX_RANK) return ax_reject(&ax_prim_precv, "the type is that of no array");
  memcpy(params.dims.v, type.dims, sizeof params.dims.v);
  return ax_bind1(&ax_prim_precv, &params, &after, 1);
}

ax_value ax_create_token(void) { return ax_bind1(&ax_prim_create_token, NULL, NULL, 0); }
