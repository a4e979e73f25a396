/* custom_jvp: C0.., T0.., -> R0..         call on the operands: a function with a derivative of its own
   Parameters: num_consts, how many operands are no operands of the function, but what it or its rule uses besides; call and rule,
   programs of all operands. The rule takes the tangents of the function's float operands behind them, and gives the results, then
   the tangents of those that are floats.
   Errors: programs that do not take the operands, or disagree; derivatives by one of the first num_consts operands.
   Its derivative is the rule, which is linear in the tangents. Higher derivatives are those of the rule. */
#include "control/custom.h"
#include "ir/flow.h"
#include "prim/composite.h"
#include "prim/prims.h"
#include "prim/rules.h"

typedef struct custom_jvp_params {
  ax_program *call, *rule;
  int64_t num_consts;
} custom_jvp_params;

static uint32_t count_outs(const void *params) { return ((const custom_jvp_params *)params)->call->out_count; }

/* --- infer, eval, differs --- */

static ax_status check_tangents(const ax_infer_args *args, const ax_program *rule, uint32_t consts) {
  uint32_t next = args->in_count;
  for (uint32_t i = consts; i < args->in_count; i++) {
    ax_type tangent = ax_tangent(&args->in[i]);
    if (ax_is_differentiable(tangent.dtype))
      AX_TRY(ax_region_check_type(&rule->types[next++], &tangent, args->axes, "the tangent of operand", i, "is", "must be"));
  }
  next = args->out_count;
  for (uint32_t k = 0; k < args->out_count; k++) {
    ax_type tangent = ax_tangent(&args->out[k]);
    if (ax_is_differentiable(tangent.dtype))
      AX_TRY(ax_region_check_type(&rule->types[rule->outs[next++]], &tangent, args->axes, "the tangent of result", k, "is",
                                  "must be"));
  }
  return AX_OK;
}

static ax_status infer(const ax_infer_args *args) {
  const custom_jvp_params *params = args->params;
  const ax_program *call = params->call, *rule = params->rule;
  uint32_t floats_in = 0, floats_out = 0;
  if (params->num_consts < 0 || params->num_consts > args->in_count)
    return ax_error(AX_INVALID_ARGUMENT, "num_consts is %lld, but there are %u operands", (long long)params->num_consts,
                    args->in_count);
  for (uint32_t i = (uint32_t)params->num_consts; i < args->in_count; i++) floats_in += ax_is_differentiable(args->in[i].dtype);
  for (uint32_t k = 0; k < call->out_count; k++) floats_out += ax_is_differentiable(call->types[call->outs[k]].dtype);
  AX_TRY(ax_custom_check(args, call, "the function", 0, args->out_count));
  AX_TRY(ax_custom_check(args, rule, "the rule", floats_in, args->out_count + floats_out));
  if (call->out_count != args->out_count || rule->out_count != args->out_count + floats_out)
    return ax_error(AX_INVALID_ARGUMENT, "the function gives %u values and the rule %u; they must give %u and %u", call->out_count,
                    rule->out_count, args->out_count, args->out_count + floats_out);
  AX_TRY(ax_custom_check_results(args, call, rule, "the rule's result"));
  return check_tangents(args, rule, (uint32_t)params->num_consts);
}

static ax_status eval(const ax_eval_args *args) {
  return ax_evaluate_lanes(args->driver, ax_eqn_program(args->eqn, 0), args->lanes, args->device, args->in, args->out);
}

/* A tangent is as its operand is. */
static void differs(const ax_differs_args *args) {
  const custom_jvp_params *params = args->eqn->params;
  uint32_t in_count = args->eqn->in_count, next = 0;
  ax_axis_set *tangents = ax_differs_alloc(args, in_count);
  for (uint32_t i = (uint32_t)params->num_consts; tangents != NULL && i < in_count; i++)
    if (ax_is_differentiable(params->call->types[i].dtype)) tangents[next++] = args->in[i];
  if (tangents != NULL) ax_custom_differs(args, params->call, params->rule, tangents);
}

/* --- jvp: the rule --- */

static void jvp(const ax_jvp_args *args) {
  const ax_eqn *eqn = args->eqn;
  const custom_jvp_params *params = eqn->params;
  const ax_program *rule = params->rule;
  ax_value *in = ax_trace_alloc(rule->in_count * sizeof in[0]), *out = ax_trace_alloc(rule->out_count * sizeof out[0]);
  uint32_t next = eqn->in_count;
  if (in == NULL || out == NULL || !ax_custom_check_captured(args, (uint32_t)params->num_consts)) return;
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    in[i] = args->in[i];
    if (i >= (uint32_t)params->num_consts && ax_is_differentiable(rule->types[i].dtype))
      in[next++] = ax_instantiate(args->tangent_in[i], args->in[i]);
  }
  ax_call(rule, in, out);
  const ax_value *tangent = out + eqn->out_count;
  for (uint32_t k = 0; k < eqn->out_count; k++) {
    args->out[k] = out[k];
    args->tangent_out[k] = ax_is_differentiable(params->call->types[params->call->outs[k]].dtype) ? *tangent++ : ax_zero;
  }
}

/* --- linearize: what the rule holds may compute results and tangents together. As it is linear in the tangents, its derivative by
   these, taken where they are zero, is the map; and results come of it without. --- */

static void linearize(const ax_jvp_args *args) {
  const ax_eqn *eqn = args->eqn;
  const custom_jvp_params *params = eqn->params;
  const ax_program *rule = params->rule;
  const uint32_t consts = (uint32_t)params->num_consts;
  ax_value *in = ax_trace_alloc(rule->in_count * sizeof in[0]), *tangent_in = ax_trace_alloc(eqn->in_count * sizeof in[0]);
  bool *wrt = ax_trace_alloc(rule->in_count);
  ax_want *want = ax_trace_alloc(rule->out_count * sizeof want[0]);
  uint32_t next = eqn->in_count, tangents = 0, residuals;
  ax_program *primal, *tangent;
  if (ax_failed() || !ax_custom_check_captured(args, consts)) return;
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    in[i] = args->in[i];
    if (i < consts || !ax_is_differentiable(rule->types[i].dtype)) continue;
    wrt[next] = !ax_is_zero(args->tangent_in[i]);
    if (wrt[next]) tangent_in[tangents++] = args->tangent_in[i];
    in[next] = ax_zeros_of(&rule->types[next]);
    next++;
  }
  for (uint32_t k = 0; k < rule->out_count; k++) want[k] = k < eqn->out_count ? AX_WANT_NEVER : AX_WANT_ALWAYS;
  ax_status status = ax_failed() ? AX_OK : ax_linearize_program(rule, wrt, want, NULL, &primal, &tangent, &residuals);
  if (status != AX_OK) ax_fail(status);
  if (ax_failed()) return;
  ax_value *made = ax_trace_alloc(primal->out_count * sizeof made[0]), *map_in = ax_trace_alloc(tangent->in_count * sizeof made[0]);
  ax_value *map_out = ax_trace_alloc(tangent->out_count * sizeof made[0]);
  if (!ax_failed()) ax_call(primal, AX_LIST(rule->in_count, in), AX_LIST(primal->out_count, made));
  for (uint32_t i = 0; !ax_failed() && i < tangent->in_count; i++)
    map_in[i] = i < residuals ? made[rule->out_count + i] : tangent_in[i - residuals];
  if (!ax_failed()) ax_call(tangent, map_in, map_out);
  for (uint32_t k = 0; !ax_failed() && k < eqn->out_count; k++) {
    args->out[k] = made[k];
    args->tangent_out[k] = ax_is_differentiable(params->call->types[params->call->outs[k]].dtype) ? *map_out++ : ax_zero;
  }
  ax_program_release(primal);
  ax_program_release(tangent);
}

/* --- batch --- */

/* Tangents are batched as what they belong to. */
static void batch(const ax_batch_args *args) {
  const ax_eqn *eqn = args->eqn;
  const custom_jvp_params *params = eqn->params;
  const ax_program *rule = params->rule;
  const bool *batched = ax_batched_results(args);
  int *in_dim = ax_trace_alloc(rule->in_count * sizeof in_dim[0]), *want = ax_trace_alloc(rule->out_count * sizeof want[0]);
  if (batched == NULL || in_dim == NULL || want == NULL) return;
  uint32_t next_in = eqn->in_count, next_out = eqn->out_count;
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    in_dim[i] = args->in_dim[i];
    if (i >= (uint32_t)params->num_consts && ax_is_differentiable(rule->types[i].dtype)) in_dim[next_in++] = args->in_dim[i];
  }
  for (uint32_t k = 0; k < eqn->out_count; k++) {
    args->out_dim[k] = want[k] = batched[k] ? 0 : -1;
    if (ax_is_differentiable(rule->types[rule->outs[k]].dtype)) want[next_out++] = want[k];
  }
  custom_jvp_params made = {.num_consts = params->num_consts};
  ax_status status = ax_batch_program(params->call, args->in_dim, args->size, args->axis, want, NULL, &made.call);
  if (status == AX_OK) status = ax_batch_program(rule, in_dim, args->size, args->axis, want, NULL, &made.rule);
  if (status == AX_OK) ax_bind(&ax_prim_custom_jvp, &made, args->in, eqn->in_count, args->out, eqn->out_count);
  else ax_fail(status);
  ax_program_release(made.call);
  ax_program_release(made.rule);
}

/* --- prune --- */

static ax_status prune(const ax_prune_args *args) {
  const custom_jvp_params *params = args->eqn->params;
  const ax_program *call = params->call, *rule = params->rule;
  const uint32_t in_count = args->eqn->in_count, out_count = args->eqn->out_count;
  bool *marks = ax_arena_alloc(&args->memo->arena, rule->in_count + (size_t)rule->out_count), *out = marks + rule->in_count;
  uint32_t next = out_count;
  if (marks == NULL) return ax_out_of_memory(rule->in_count + (size_t)rule->out_count);
  for (uint32_t k = 0; k < out_count; k++) {
    out[k] = args->out[k];
    if (ax_is_differentiable(call->types[call->outs[k]].dtype)) out[next++] = args->out[k];
  }
  AX_TRY(ax_custom_needs(args, (uint32_t)params->num_consts, call, rule, out));
  if (args->params == NULL) return AX_OK;
  for (uint32_t i = 0; i < rule->in_count; i++) marks[i] = i >= in_count || args->in[i];
  custom_jvp_params made = {.num_consts = ax_marked(args->in, (uint32_t)params->num_consts)};
  ax_status status = ax_prune_program(args->memo, call, args->out, args->in, &made.call);
  if (status == AX_OK) status = ax_prune_program(args->memo, rule, out, marks, &made.rule);
  if (status == AX_OK) *(custom_jvp_params *)args->params = made;
  else ax_program_release(made.call);
  return status;
}

/* --- The record --- */

static const ax_param params[] = {{"call", AX_PARAM_PROGRAM, offsetof(custom_jvp_params, call)},
                                  {"rule", AX_PARAM_PROGRAM, offsetof(custom_jvp_params, rule)},
                                  {"num_consts", AX_PARAM_I64, offsetof(custom_jvp_params, num_consts)}};

const ax_prim ax_prim_custom_jvp = {
    .name = "custom_jvp",
    .kind = AX_REGION,
    .derived = true,
    .runs = AX_RUNS_FIRST,
    .unify = true,
    .in_count = -1,
    .out_count = -1,
    .count_outs = count_outs,
    AX_PARAMS(params, custom_jvp_params),
    .infer = infer,
    .spread = ax_spread_body,
    .eval = eval,
    .differs = differs,
    .links = ax_region_links_call,
    .jvp = jvp,
    .linearize = linearize,
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

static const char owner[] = "custom_jvp";

/* The operands' types, then those of the tangents. */
static ax_type *rule_types(const ax_custom *c) {
  ax_type *types = ax_trace_alloc(2 * (size_t)c->in_count * sizeof types[0]);
  uint32_t next = c->in_count;
  for (uint32_t i = 0; types != NULL && i < c->in_count; i++) {
    types[i] = c->types[i];
    if (ax_is_differentiable(types[i].dtype)) types[next++] = ax_tangent(&types[i]);
  }
  return types;
}

static bool check_counts(const ax_custom *c, ax_fn rule) {
  uint32_t in_count = c->in_count + ax_custom_float_operands(c), out_count = c->out_count + ax_custom_float_results(c);
  if (rule.in_count == in_count && rule.out_count == out_count) return true;
  ax_reject_as(
      owner, "the rule takes %u values and gives %u; it must take %u operands and %u tangents, and give %u results and %u tangents",
      rule.in_count, rule.out_count, c->in_count, in_count - c->in_count, c->out_count, out_count - c->out_count);
  return false;
}

/* How the rule's results are to spread, tangents as what they belong to. Checks dtypes and shapes. NULL: the trace has failed. */
static ax_spread *rule_spreads(const ax_custom *c) {
  const ax_program *rule = c->body[1].program;
  ax_spread *spread = ax_trace_alloc(rule->out_count * sizeof spread[0]);
  uint32_t next = c->out_count;
  for (uint32_t k = 0; spread != NULL && k < c->out_count; k++) {
    ax_type type = ax_custom_result(c, k), tangent = ax_tangent(&type);
    spread[k] = type.spread;
    if (!ax_is_differentiable(type.dtype)) continue;
    const ax_type *made = ax_program_out_type(rule, next);
    spread[next++] = tangent.spread;
    if (made->form == AX_ARRAY && made->dtype == type.dtype && ax_same_shape(made, &type)) continue;
    ax_reject_as(owner, "result %u is %s, but the rule gives %s for its tangent", k, ax_operand_string(&type),
                 ax_operand_string(made));
    return NULL;
  }
  return ax_failed() ? NULL : spread;
}

/* The rule's results may not depend on the tangents: they are computed without. */
static bool check_results_free(const ax_custom *c, const ax_program *rule) {
  ax_memo memo = {0};
  ax_flow flow = {.memo = &memo, .question = owner, .rule = ax_differs_union};
  ax_axis_set *in = ax_trace_alloc(rule->in_count * sizeof in[0]);
  uint32_t tangents = ax_custom_float_operands(c);
  for (uint32_t i = rule->in_count - tangents; in != NULL && i < rule->in_count; i++) in[i] = 1;
  const ax_axis_set *all = in != NULL ? ax_flow_program(&flow, rule, in) : NULL;
  if (all == NULL) ax_fail(ax_out_of_memory(0));
  for (uint32_t k = 0; all != NULL && k < c->out_count; k++)
    if (all[rule->outs[k]] != 0) ax_reject_as(owner, "result %u of the rule depends on the tangents", k);
  ax_memo_deinit(&memo);
  return !ax_failed();
}

static void make(ax_custom *c, ax_fn rule, ax_value *out) {
  if (!check_counts(c, rule)) return;
  const ax_type *types = rule_types(c);
  if (types == NULL || !ax_custom_trace(c, "rule", rule, types, NULL) || !ax_custom_join(c, "the rule")) return;
  const ax_spread *spread = rule_spreads(c);
  if (spread == NULL) return;
  custom_jvp_params made = {.num_consts = ax_custom_captured(c)};
  made.call = ax_custom_program(c, &(ax_custom_part){.body = 0, .spread = spread, .spread_count = c->out_count, .keeps = AX_NONE});
  made.rule = ax_custom_program(c, &(ax_custom_part){.body = 1,
                                                     .more = types + c->in_count,
                                                     .more_count = rule.in_count - c->in_count,
                                                     .spread = spread,
                                                     .spread_count = rule.out_count,
                                                     .keeps = AX_NONE});
  if (!ax_failed() && check_results_free(c, made.rule)) ax_custom_bind(c, &ax_prim_custom_jvp, &made, out);
  ax_program_release(made.call);
  ax_program_release(made.rule);
}

void (ax_custom_jvp)(ax_fn f, ax_fn rule, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out) {
  if (!ax_lists_fit(owner, in_count, f.in_count, out_count, f.out_count, out)) return;
  ax_custom c;
  if (ax_custom_init(&c, owner, f, in, out)) make(&c, rule, out);
  ax_custom_deinit(&c);
}
