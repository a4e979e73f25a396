/* custom_vjp: C0.., T0.., -> R0..         call on the operands: a function with a derivative backwards of its own
   Parameters: num_consts, how many operands are no operands of the function, but what it or its derivative uses besides; call, a
   program of all operands; forward, one that gives the results and then residuals; backward, a program of the residuals and the
   cotangents of the results that are floats, which gives the cotangents of those operands of the function that are.
   Errors: programs that do not take the operands, or disagree; derivatives by one of the first num_consts operands.
   Its derivative is forward, and a custom_linear of the residuals and the tangents. */
#include "control/custom.h"
#include "control/custom_linear.h"
#include "prim/composite.h"
#include "prim/prims.h"
#include "prim/rules.h"

typedef struct custom_vjp_params {
  ax_program *call, *forward, *backward;
  int64_t num_consts;
} custom_vjp_params;

static uint32_t count_outs(const void *params) { return ((const custom_vjp_params *)params)->call->out_count; }

/* --- infer, eval, differs --- */

/* The residuals as forward gives them; cotangents of the duals of what they belong to. */
static ax_status check_backward(const ax_infer_args *args, const custom_vjp_params *params) {
  const ax_program *forward = params->forward, *backward = params->backward;
  uint32_t residuals = forward->out_count - args->out_count, next = residuals, made = 0;
  AX_TRY(ax_region_check_axes(backward, args->axes, "backward"));
  for (uint32_t k = 0; k < args->out_count; k++) next += ax_is_differentiable(args->out[k].dtype);
  for (uint32_t i = (uint32_t)params->num_consts; i < args->in_count; i++) made += ax_is_differentiable(args->in[i].dtype);
  if (backward->in_count != next || backward->out_count != made)
    return ax_error(AX_INVALID_ARGUMENT,
                    "backward takes %u values and gives %u; it must take %u residuals and %u cotangents, and give %u cotangents",
                    backward->in_count, backward->out_count, residuals, next - residuals, made);
  for (uint32_t r = 0; r < residuals; r++)
    AX_TRY(ax_region_check_type(&forward->types[forward->outs[args->out_count + r]], &backward->types[r], args->axes, "residual", r,
                                "is", "backward takes"));
  next = residuals, made = 0;
  for (uint32_t k = 0; k < args->out_count; k++) {
    ax_type dual = ax_dual(&args->out[k]);
    if (ax_is_differentiable(dual.dtype))
      AX_TRY(
          ax_region_check_type(&dual, &backward->types[next++], args->axes, "the cotangent of result", k, "is", "backward takes"));
  }
  for (uint32_t i = (uint32_t)params->num_consts; i < args->in_count; i++) {
    ax_type dual = ax_dual(&args->in[i]);
    if (!ax_is_differentiable(dual.dtype)) continue;
    AX_TRY(ax_region_check_type(&backward->types[backward->outs[made++]], &dual, args->axes, "the cotangent of operand", i,
                                "is given as", "must be"));
  }
  return AX_OK;
}

static ax_status infer(const ax_infer_args *args) {
  const custom_vjp_params *params = args->params;
  if (params->num_consts < 0 || params->num_consts > args->in_count)
    return ax_error(AX_INVALID_ARGUMENT, "num_consts is %lld, but there are %u operands", (long long)params->num_consts,
                    args->in_count);
  AX_TRY(ax_custom_check(args, params->call, "the function", 0, args->out_count));
  AX_TRY(ax_custom_check(args, params->forward, "forward", 0, args->out_count));
  AX_TRY(ax_custom_check_results(args, params->call, params->forward, "forward's result"));
  for (uint32_t r = args->out_count; r < params->forward->out_count; r++) {
    const ax_type *type = &params->forward->types[params->forward->outs[r]];
    if (type->form != AX_ARRAY)
      return ax_error(AX_INVALID_ARGUMENT, "residual %u is %s, but must be an array", r - args->out_count,
                      ax_type_string(type, args->axes));
  }
  return check_backward(args, params);
}

static ax_status eval(const ax_eval_args *args) {
  return ax_evaluate_lanes(args->driver, ax_eqn_program(args->eqn, 0), args->lanes, args->device, args->in, args->out);
}

static void differs(const ax_differs_args *args) {
  const custom_vjp_params *params = args->eqn->params;
  ax_custom_differs(args, params->call, params->forward, NULL);
}

/* backward is run for derivatives alone, on residuals and cotangents. */
static ax_region_link links(const ax_region_link_args *args) {
  return args->program < 2 ? ax_region_links_call(args) : ax_region_link_own();
}

/* --- jvp: forwards the results and residuals; the map of tangents waits to be transposed --- */

static void jvp(const ax_jvp_args *args) {
  const ax_eqn *eqn = args->eqn;
  const custom_vjp_params *params = eqn->params;
  const ax_program *forward = params->forward, *backward = params->backward;
  const uint32_t residuals = forward->out_count - eqn->out_count, tangents = backward->in_count - residuals;
  uint32_t count = residuals;
  ax_value *made = ax_trace_alloc(forward->out_count * sizeof made[0]), *out = ax_trace_alloc(tangents * sizeof out[0]);
  ax_value *in = ax_trace_alloc(((size_t)residuals + backward->out_count) * sizeof in[0]);
  if (ax_failed() || !ax_custom_check_captured(args, (uint32_t)params->num_consts)) return;
  ax_call(forward, AX_LIST(eqn->in_count, args->in), AX_LIST(forward->out_count, made));
  for (uint32_t r = 0; r < residuals; r++) in[r] = made[eqn->out_count + r];
  for (uint32_t i = (uint32_t)params->num_consts; i < eqn->in_count; i++)
    if (ax_is_differentiable(params->call->types[i].dtype)) in[count++] = ax_instantiate(args->tangent_in[i], args->in[i]);
  ax_custom_linear_bind(backward, residuals, in, out);
  for (uint32_t k = 0; k < eqn->out_count; k++) {
    args->out[k] = made[k];
    args->tangent_out[k] = ax_is_differentiable(params->call->types[params->call->outs[k]].dtype) ? *out++ : ax_zero;
  }
}

/* --- batch --- */

typedef struct batching {
  const ax_batch_args *args;
  const custom_vjp_params *params;
  int *want;     /* of forward's results */
  int *made;     /* where they, and then backward's, have it */
  int *backward; /* of backward's inputs */
} batching;

static ax_status batch_programs(const batching *b, custom_vjp_params *made) {
  const ax_batch_args *args = b->args;
  const custom_vjp_params *params = b->params;
  const uint32_t out_count = args->eqn->out_count, residuals = params->forward->out_count - out_count;
  AX_TRY(ax_batch_program(params->call, args->in_dim, args->size, args->axis, b->want, NULL, &made->call));
  AX_TRY(ax_batch_program(params->forward, args->in_dim, args->size, args->axis, b->want, b->made, &made->forward));
  uint32_t next = residuals, next_out = 0;
  for (uint32_t r = 0; r < residuals; r++) b->backward[r] = b->made[out_count + r];
  for (uint32_t k = 0; k < out_count; k++)
    if (ax_is_differentiable(params->call->types[params->call->outs[k]].dtype)) b->backward[next++] = b->want[k];
  int *wanted = ax_trace_alloc(params->backward->out_count * sizeof wanted[0]);
  if (wanted == NULL) return AX_OUT_OF_MEMORY;
  for (uint32_t i = (uint32_t)params->num_consts; i < args->eqn->in_count; i++)
    if (ax_is_differentiable(params->call->types[i].dtype)) wanted[next_out++] = args->in_dim[i];
  return ax_custom_batch_backward(args, params->backward, b->backward, wanted, &made->backward);
}

static void batch(const ax_batch_args *args) {
  const custom_vjp_params *params = args->eqn->params;
  const ax_program *forward = params->forward;
  const uint32_t out_count = args->eqn->out_count;
  const bool *batched = ax_batched_results(args);
  batching b = {args, params, ax_trace_alloc(forward->out_count * sizeof b.want[0]),
                ax_trace_alloc(forward->out_count * sizeof b.made[0]),
                ax_trace_alloc(params->backward->in_count * sizeof b.backward[0])};
  if (batched == NULL || ax_failed()) return;
  for (uint32_t k = 0; k < forward->out_count; k++) b.want[k] = k >= out_count ? AX_BATCH_ANY : batched[k] ? 0 : -1;
  for (uint32_t k = 0; k < out_count; k++) args->out_dim[k] = b.want[k];
  custom_vjp_params made = {.num_consts = params->num_consts};
  ax_status status = batch_programs(&b, &made);
  if (status == AX_OK) ax_bind(&ax_prim_custom_vjp, &made, args->in, args->eqn->in_count, args->out, out_count);
  else ax_fail(status);
  ax_program_release(made.call);
  ax_program_release(made.forward);
  ax_program_release(made.backward);
}

/* --- prune --- */

/* Marks the inputs of backward that stay: the residuals that it needs, and the cotangents of the results marked. NULL: no
   memory. */
static bool *needed_of_backward(const ax_prune_args *args, const custom_vjp_params *params) {
  const ax_program *backward = params->backward;
  const uint32_t out_count = args->eqn->out_count;
  uint32_t next = params->forward->out_count - out_count;
  bool *in = ax_arena_alloc(&args->memo->arena, backward->in_count), *all = ax_arena_alloc(&args->memo->arena, backward->out_count);
  if (in == NULL || all == NULL) return NULL;
  for (uint32_t k = 0; k < backward->out_count; k++) all[k] = true;
  if (ax_needs_program(args->memo, backward, all, in) != AX_OK) return NULL;
  for (uint32_t k = 0; k < out_count; k++)
    if (ax_is_differentiable(params->call->types[params->call->outs[k]].dtype)) in[next++] = args->out[k];
  return in;
}

static ax_status prune(const ax_prune_args *args) {
  const custom_vjp_params *params = args->eqn->params;
  const ax_program *forward = params->forward;
  const uint32_t out_count = args->eqn->out_count, residuals = forward->out_count - out_count;
  const bool *backward_in = needed_of_backward(args, params);
  bool *out = ax_arena_alloc(&args->memo->arena, forward->out_count);
  if (backward_in == NULL || out == NULL) return ax_out_of_memory(forward->out_count);
  for (uint32_t k = 0; k < forward->out_count; k++) out[k] = k < out_count ? args->out[k] : backward_in[k - out_count];
  AX_TRY(ax_custom_needs(args, (uint32_t)params->num_consts, params->call, forward, out));
  if (args->params == NULL) return AX_OK;
  custom_vjp_params made = {.num_consts = ax_marked(args->in, (uint32_t)params->num_consts)};
  ax_status status = ax_prune_program(args->memo, params->call, args->out, args->in, &made.call);
  if (status == AX_OK) status = ax_prune_program(args->memo, forward, out, args->in, &made.forward);
  if (status == AX_OK) status = ax_custom_prune_backward(args->memo, params->backward, residuals, backward_in, &made.backward);
  if (status == AX_OK) {
    *(custom_vjp_params *)args->params = made;
    return AX_OK;
  }
  ax_program_release(made.call);
  ax_program_release(made.forward);
  return status;
}

/* --- The record --- */

static const ax_param params[] = {{"call", AX_PARAM_PROGRAM, offsetof(custom_vjp_params, call)},
                                  {"forward", AX_PARAM_PROGRAM, offsetof(custom_vjp_params, forward)},
                                  {"backward", AX_PARAM_PROGRAM, offsetof(custom_vjp_params, backward)},
                                  {"num_consts", AX_PARAM_I64, offsetof(custom_vjp_params, num_consts)}};

const ax_prim ax_prim_custom_vjp = {
    .name = "custom_vjp",
    .kind = AX_REGION,
    .derived = true,
    .runs = AX_RUNS_FIRST,
    .unify = true,
    .in_count = -1,
    .out_count = -1,
    .count_outs = count_outs,
    AX_PARAMS(params, custom_vjp_params),
    .infer = infer,
    .spread = ax_spread_body,
    .eval = eval,
    .differs = differs,
    .links = links,
    .jvp = jvp,
    .linearize = jvp,
    .transpose = ax_absent_transpose,
    .batch = batch,
    .simplify = ax_simplify_nothing,
    .prune = prune,
    .shard = ax_shard_whole,
    .lower = ax_custom_lower,
    .complex = ax_complex_whole,
    .keys = ax_keys_whole,
    .hlo = ax_custom_hlo,
};

/* --- The function --- */

static const char owner[] = "custom_vjp";

static bool check_counts(const ax_custom *c, ax_fn forward, ax_fn backward) {
  if (forward.in_count != c->in_count || forward.out_count < c->out_count) {
    ax_reject_as(owner,
                 "forward takes %u values and gives %u; it must take the %u operands, and give the %u results and then residuals",
                 forward.in_count, forward.out_count, c->in_count, c->out_count);
    return false;
  }
  uint32_t residuals = forward.out_count - c->out_count, floats_out = ax_custom_float_results(c),
           floats_in = ax_custom_float_operands(c);
  if (backward.in_count == residuals + floats_out && backward.out_count == floats_in) return true;
  ax_reject_as(owner,
               "backward takes %u values and gives %u; it must take the %u residuals and the cotangents of the %u results that are "
               "floats, and give those of the %u operands that are",
               backward.in_count, backward.out_count, residuals, floats_out, floats_in);
  return false;
}

/* The residuals' types, then those of cotangents. */
static ax_type *backward_types(const ax_custom *c, ax_fn backward) {
  const ax_program *forward = c->body[1].program;
  ax_type *types = ax_trace_alloc(backward.in_count * sizeof types[0]);
  uint32_t next = 0;
  for (uint32_t r = c->out_count; types != NULL && r < forward->out_count; r++) types[next++] = *ax_program_out_type(forward, r);
  for (uint32_t k = 0; types != NULL && k < c->out_count; k++) {
    ax_type type = ax_custom_result(c, k);
    if (ax_is_differentiable(type.dtype)) types[next++] = ax_dual(&type);
  }
  return types;
}

static bool trace_backward(ax_custom *c, ax_fn backward) {
  const ax_type *types = backward_types(c, backward);
  ax_spread *spread = ax_trace_alloc(backward.out_count * sizeof spread[0]);
  uint32_t next = 0;
  if (types == NULL || spread == NULL) return false;
  for (uint32_t i = 0; i < c->in_count; i++) {
    ax_type dual = ax_dual(&c->types[i]);
    if (ax_is_differentiable(dual.dtype)) spread[next++] = dual.spread;
  }
  if (!ax_custom_trace(c, "backward", backward, types, spread)) return false;
  next = 0;
  for (uint32_t i = 0; i < c->in_count; i++) {
    ax_type dual = ax_dual(&c->types[i]);
    const ax_type *made = ax_is_differentiable(dual.dtype) ? ax_program_out_type(c->body[2].program, next++) : NULL;
    if (made == NULL || ax_type_equal(made, &dual)) continue;
    ax_reject_as(owner, "operand %u is %s, so that its cotangent is %s, but backward gives %s", i, ax_operand_string(&c->types[i]),
                 ax_operand_string(&dual), ax_operand_string(made));
    return false;
  }
  return true;
}

/* Values that backward captures become residuals, in front of the others. */
static void make(ax_custom *c, ax_fn forward, ax_fn backward, ax_value *out) {
  if (!check_counts(c, forward, backward) || !ax_custom_trace(c, "forward", forward, c->types, NULL) ||
      !ax_custom_join(c, "forward") || !trace_backward(c, backward))
    return;
  custom_vjp_params made = {.num_consts = ax_custom_captured(c)};
  made.call =
      ax_custom_program(c, &(ax_custom_part){.body = 0, .spread = c->spread, .spread_count = c->out_count, .keeps = AX_NONE});
  made.forward = ax_custom_program(c, &(ax_custom_part){.body = 1, .spread = c->spread, .spread_count = c->out_count, .keeps = 2});
  made.backward = c->body[2].program = ax_unify_program(c->body[2].program);
  if (!ax_failed()) ax_custom_bind(c, &ax_prim_custom_vjp, &made, out);
  ax_program_release(made.call);
  ax_program_release(made.forward);
}

void (ax_custom_vjp)(ax_fn f, ax_fn forward, ax_fn backward, uint32_t in_count, const ax_value *in, uint32_t out_count,
                     ax_value *out) {
  if (!ax_lists_fit(owner, in_count, f.in_count, out_count, f.out_count, out)) return;
  ax_custom c;
  if (ax_custom_init(&c, owner, f, in, out)) make(&c, forward, backward, out);
  ax_custom_deinit(&c);
}
