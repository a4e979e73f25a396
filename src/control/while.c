/* while: C0.., B0.., A0.. -> A0..         while cond(C.., carry): carry = body(B.., carry)
   Parameters: cond, body; cond_nconsts, body_nconsts: how many operands are constants of each.
   Errors: a condition that is no bool scalar; a carry that the body changes in type; communication over checked axes along which
   the condition varies: devices that have left the loop would never come.
   Varying: carries vary over the axes that the condition varies over, and over those that the body's results vary over.
   Derivatives: forward only. The number of iterations is not known in advance, so residuals would have no known size. jvp,
   linearize, transpose and batch stand in while_transform.c, the function in while_trace.c. */
#include <string.h>

#include "axle/ops.h"
#include "control/fori_loop.h"
#include "control/while.h"
#include "hlo/hlo.h"
#include "hlo/read.h"
#include "ir/flow.h"
#include "ir/number.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "prim/prims.h"
#include "prim/region.h"
#include "prim/rules.h"

static uint32_t count_outs(const void *params) { return ((const ax_while_params *)params)->body->out_count; }

/* --- infer --- */

static ax_status check_counts(const ax_infer_args *args) {
  const ax_while_params *params = args->params;
  int64_t carries = args->out_count, consts = (int64_t)args->in_count - carries;
  if (params->cond_nconsts < 0 || params->body_nconsts < 0 || params->cond_nconsts > consts ||
      params->body_nconsts != consts - params->cond_nconsts)
    return ax_error(AX_INVALID_ARGUMENT, "%lld and %lld constants, of %u operands with %u carries",
                    (long long)params->cond_nconsts, (long long)params->body_nconsts, args->in_count, args->out_count);
  if (params->body->in_count != params->body_nconsts + carries || params->body->out_count != carries)
    return ax_error(AX_INVALID_ARGUMENT, "the body takes %u values and gives %u, but there are %u carries",
                    params->body->in_count, params->body->out_count, args->out_count);
  if (params->cond->in_count != params->cond_nconsts + carries || params->cond->out_count != 1)
    return ax_error(AX_INVALID_ARGUMENT, "the condition takes %u values and gives %u, but there are %u carries",
                    params->cond->in_count, params->cond->out_count, args->out_count);
  AX_TRY(ax_region_check_axes(params->cond, args->axes, "the condition"));
  return ax_region_check_axes(params->body, args->axes, "the body");
}

static ax_status check_predicate(const ax_infer_args *args, ax_axis_set *varying) {
  const ax_while_params *params = args->params;
  const ax_type *predicate = &params->cond->types[params->cond->outs[0]];
  if (predicate->dtype != AX_BOOL || predicate->rank != 0)
    return ax_error(AX_INVALID_ARGUMENT, "the condition gives %s, not bool[]", ax_type_string(predicate, args->axes));
  if (predicate->spread.unreduced != 0)
    return ax_error(AX_INVALID_ARGUMENT, "the condition %s is unreduced over %s; %s", ax_type_string(predicate, args->axes),
                    ax_axis_set_string(predicate->spread.unreduced, args->axes), ax_reduce_advice(predicate->spread.kind));
  *varying = predicate->spread.varying;
  AX_TRY(ax_region_check_silent(params->cond, *varying, args->axes, "the condition"));
  return ax_region_check_silent(params->body, *varying, args->axes, "the body");
}

/* The body takes the carries after the condition has looked at them. */
static ax_status check_test_tokens(const ax_program *cond) {
  for (uint32_t i = 0; i < cond->eqn_count; i++)
    for (uint32_t j = 0; j < cond->eqns[i].in_count; j++) {
      uint32_t id = cond->eqns[i].in[j];
      if (id < cond->in_count && cond->types[id].form == AX_TOKEN)
        return ax_error(AX_INVALID_ARGUMENT, "the condition uses a token that is carried, which the body takes");
    }
  return AX_OK;
}

static ax_status infer(const ax_infer_args *args) {
  const ax_while_params *params = args->params;
  const ax_program *cond = params->cond, *body = params->body;
  ax_axis_set varying = 0;
  AX_TRY(check_counts(args));
  AX_TRY(check_predicate(args, &varying));
  uint32_t cond_consts = (uint32_t)params->cond_nconsts, body_consts = (uint32_t)params->body_nconsts;
  AX_TRY(ax_region_check_tokens(cond, 0, cond_consts, "a while"));
  AX_TRY(ax_region_check_tokens(body, 0, body_consts, "a while"));
  AX_TRY(check_test_tokens(cond));
  AX_TRY(ax_region_check_memory(args, cond_consts + body_consts, args->out_count, "while"));
  for (uint32_t i = 0; i < cond_consts; i++)
    AX_TRY(ax_region_check_type(&args->in[i], &cond->types[i], args->axes, "constant", i, "is", "the condition takes"));
  for (uint32_t i = 0; i < body_consts; i++)
    AX_TRY(ax_region_check_type(&args->in[cond_consts + i], &body->types[i], args->axes, "constant", cond_consts + i,
                                "is", "the body takes"));
  for (uint32_t k = 0; k < args->out_count; k++) {
    const ax_type *start = &args->in[cond_consts + body_consts + k];
    AX_TRY(ax_region_check_type(start, &cond->types[cond_consts + k], args->axes, "carry", k, "starts as",
                                "the condition takes"));
    AX_TRY(ax_region_check_type(start, &body->types[body_consts + k], args->axes, "carry", k, "starts as",
                                "the body takes"));
    AX_TRY(ax_region_check_type(start, &body->types[body->outs[k]], args->axes, "carry", k, "is", "the body returns"));
    if ((varying & ~start->spread.varying) != 0)
      return ax_error(AX_INVALID_ARGUMENT, "carry %u is %s, but the condition varies over %s", k,
                      ax_type_string(start, args->axes), ax_axis_set_string(varying, args->axes));
    args->out[k] = *start;
  }
  return AX_OK;
}

/* --- eval, differs --- */

/* The lanes lane[0 .. *count) for which the condition still holds; the others leave. */
static ax_status test(const ax_eval_args *args, ax_tensor *const *const *in, uint32_t *lane, uint32_t *count,
                      ax_tensor **predicate) {
  const ax_while_params *params = args->eqn->params;
  AX_TRY(ax_region_eval(args, params->cond, lane, *count, in, &predicate));
  uint32_t staying = 0;
  for (uint32_t j = 0; j < *count; j++)
    if (ax_number_load(AX_BOOL, predicate[lane[j]]->data, 0).u != 0) lane[staying++] = lane[j];
  *count = staying;
  return AX_OK;
}

static ax_status eval(const ax_eval_args *args) {
  const ax_while_params *params = args->eqn->params;
  uint32_t cond_consts = (uint32_t)params->cond_nconsts, body_consts = (uint32_t)params->body_nconsts;
  uint32_t carries = args->eqn->out_count, lanes = args->lanes, active = lanes;
  ax_arena arena = {0};
  uint32_t *lane = ax_arena_alloc(&arena, lanes * sizeof lane[0]);
  ax_tensor *const **cond_in = ax_arena_alloc(&arena, (cond_consts + carries) * sizeof cond_in[0]);
  ax_tensor *const **body_in = ax_arena_alloc(&arena, (body_consts + carries) * sizeof body_in[0]);
  ax_tensor ***out = ax_arena_alloc(&arena, carries * sizeof out[0]);
  ax_tensor **predicate = ax_arena_alloc(&arena, lanes * sizeof predicate[0]);
  if (lane == NULL || cond_in == NULL || body_in == NULL || out == NULL || predicate == NULL)
    return ax_region_eval_end(args, &arena, ax_out_of_memory(0));
  for (uint32_t l = 0; l < lanes; l++) lane[l] = l;
  for (uint32_t i = 0; i < cond_consts; i++) cond_in[i] = args->in + i * lanes;
  for (uint32_t i = 0; i < body_consts; i++) body_in[i] = args->in + (cond_consts + i) * lanes;
  for (uint32_t k = 0; k < carries; k++)
    cond_in[cond_consts + k] = body_in[body_consts + k] = out[k] = args->out + k * lanes;
  ax_status status = AX_OK;
  for (uint32_t i = 0; status == AX_OK && i < carries * lanes; i++)
    status = ax_tensor_copy(args->in[(cond_consts + body_consts) * lanes + i], &args->out[i]);
  if (status == AX_OK) status = test(args, cond_in, lane, &active, predicate);
  while (status == AX_OK && active > 0) {
    status = ax_region_eval(args, params->body, lane, active, body_in, out);
    if (status == AX_OK) status = test(args, cond_in, lane, &active, predicate);
  }
  for (uint32_t l = 0; l < lanes; l++) ax_tensor_release(predicate[l]);
  return ax_region_eval_end(args, &arena, status);
}

/* Carries vary wherever their start, what the body makes of them, or the number of iterations does. */
static void differs(const ax_differs_args *args) {
  const ax_while_params *params = args->eqn->params;
  uint32_t cond_consts = (uint32_t)params->cond_nconsts, body_consts = (uint32_t)params->body_nconsts;
  uint32_t carries = args->eqn->out_count;
  ax_axis_set *in = ax_differs_alloc(args, body_consts + (size_t)carries);
  ax_axis_set *cond_in = ax_differs_alloc(args, params->cond->in_count), predicate = 0;
  if (in == NULL || cond_in == NULL) return;
  for (uint32_t i = 0; i < body_consts + carries; i++) in[i] = args->in[cond_consts + i];
  for (uint32_t i = 0; i < cond_consts; i++) cond_in[i] = args->in[i];
  for (bool changed = true; changed;) { /* at most once for each axis there is */
    changed = false;
    const ax_axis_set *all = ax_flow_loop(args, params->body, in, body_consts, carries);
    if (all == NULL) return;
    for (uint32_t k = 0; k < carries; k++) args->out[k] = cond_in[cond_consts + k] = all[body_consts + k];
    if (!ax_region_differs(args, params->cond, cond_in, &predicate)) return;
    ax_flow_choose(args->flow, params->body, predicate);
    ax_flow_choose(args->flow, params->cond, predicate);
    for (uint32_t k = 0; k < carries; k++) {
      changed = changed || (predicate & ~args->out[k]) != 0;
      in[body_consts + k] |= predicate;
    }
  }
}

static ax_region_link links(const ax_region_link_args *args) {
  const ax_while_params *params = args->eqn->params;
  const bool is_cond = args->program == 0;
  const uint32_t cond_consts = (uint32_t)params->cond_nconsts, body_consts = (uint32_t)params->body_nconsts, i = args->number;
  const uint32_t own = is_cond ? cond_consts : body_consts;
  if (args->is_output) return is_cond ? ax_region_link_own() : (ax_region_link){AX_LINK_SAME, i, body_consts + i, false};
  ax_region_link link = ax_region_link_to(AX_LINK_SAME, i >= own  ? cond_consts + body_consts + (i - own)
                                                        : is_cond ? i
                                                                  : cond_consts + i);
  link.once = i < own;
  if (i >= own) link.carry = i - own;
  return link;
}

/* --- lower, hlo --- */

/* The axes along which devices may leave the loop at different times. */
static ax_status test_axes(ax_lower *lower, const ax_while_params *params, const uint32_t *in, const uint32_t *carries,
                           ax_axis_set *out) {
  const ax_program *cond = params->cond;
  ax_arena *arena = &lower->plan->arena;
  ax_axis_set *differs = ax_arena_alloc(arena, cond->in_count * sizeof differs[0]);
  const ax_axis_set *all = NULL;
  for (uint32_t i = 0; differs != NULL && i < cond->in_count; i++) {
    uint32_t consts = (uint32_t)params->cond_nconsts;
    differs[i] = ax_lower_get(lower, i < consts ? in[i] : carries[i - consts])->axes;
  }
  if (differs != NULL) all = ax_flow_program(lower->flow, cond, differs);
  if (all == NULL) return ax_out_of_memory(cond->value_count * sizeof differs[0]);
  *out = all[cond->outs[0]];
  return AX_OK;
}

/* Carry k's buffer. One that no iteration changes is a constant, and needs no copy: JAX's loops carry all that their bodies read. */
static ax_status begin_carry(ax_lower *lower, const ax_eqn *eqn, uint32_t k, uint32_t from, uint32_t *out) {
  const ax_while_params *params = eqn->params;
  const bool stays = params->body->outs[k] == (uint32_t)params->body_nconsts + k;
  *out = from;
  if (stays && ax_lower_get(lower, from)->axes == lower->differs[eqn->out + k]) return AX_OK;
  AX_TRY(ax_lower_result(lower, eqn, k, out));
  return ax_lower_copy(lower, *out, from);
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_while_params *params = eqn->params;
  uint32_t cond_consts = (uint32_t)params->cond_nconsts, body_consts = (uint32_t)params->body_nconsts;
  uint32_t carries = eqn->out_count, holds, loop;
  uint32_t *cond_in = ax_arena_alloc(&lower->plan->arena, (cond_consts + (size_t)carries) * sizeof cond_in[0]);
  uint32_t *body_in = ax_arena_alloc(&lower->plan->arena, (body_consts + (size_t)carries) * sizeof body_in[0]);
  uint32_t *results = ax_arena_alloc(&lower->plan->arena, carries * sizeof results[0]);
  ax_block *outer;
  ax_axis_set axes = 0;
  if (cond_in == NULL || body_in == NULL || results == NULL) return ax_out_of_memory(0);
  for (uint32_t i = 0; i < cond_consts; i++) cond_in[i] = in[i];
  for (uint32_t i = 0; i < body_consts; i++) body_in[i] = in[cond_consts + i];
  for (uint32_t k = 0; k < carries; k++) {
    AX_TRY(begin_carry(lower, eqn, k, in[cond_consts + body_consts + k], &out[k]));
    cond_in[cond_consts + k] = body_in[body_consts + k] = out[k];
  }
  AX_TRY(test_axes(lower, params, in, out, &axes));
  AX_TRY(ax_lower_loop_begin(lower, -1, axes, &outer, &loop));
  AX_TRY(ax_lower_program(lower, params->cond, cond_in, &holds));
  AX_TRY(ax_lower_loop_test(lower, outer, holds));
  AX_TRY(ax_lower_program(lower, params->body, body_in, results));
  AX_TRY(ax_region_lower_carries(lower, out, results, carries));
  ax_lower_loop_end(lower, outer);
  return AX_OK;
}

/* stablehlo.while over all operands; the constants pass through. `values`: room for as many ids and as many again. */
static ax_status hlo_loop(ax_hlo *hlo, const ax_eqn *eqn, const ax_type *types, const uint32_t *in, uint32_t *values,
                          uint32_t *out) {
  const ax_while_params *params = eqn->params;
  uint32_t cond_consts = (uint32_t)params->cond_nconsts, consts = cond_consts + (uint32_t)params->body_nconsts;
  uint32_t count = eqn->in_count, *results = values + count, holds;
  uint32_t first = ax_hlo_begin(hlo, "stablehlo.while", in, count, types, count);
  uint32_t arg = ax_hlo_region_begin(hlo, types, count);
  for (uint32_t i = 0; i < params->cond->in_count; i++)
    values[i] = arg + (i < cond_consts ? i : consts + i - cond_consts);
  AX_TRY(hlo->inline_program(hlo, params->cond, values, &holds));
  ax_hlo_region_end(hlo, &holds, 1);
  arg = ax_hlo_region_begin(hlo, types, count);
  for (uint32_t i = 0; i < params->body->in_count; i++) values[i] = arg + cond_consts + i;
  for (uint32_t i = 0; i < consts; i++) results[i] = arg + i;
  AX_TRY(hlo->inline_program(hlo, params->body, values, results + consts));
  ax_hlo_region_end(hlo, results, count);
  ax_hlo_end(hlo, NULL);
  for (uint32_t k = 0; k < eqn->out_count; k++) out[k] = first + consts + k;
  return AX_OK;
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  ax_arena arena = {0};
  ax_type *types = ax_arena_alloc(&arena, eqn->in_count * sizeof types[0]);
  uint32_t *values = ax_arena_alloc(&arena, 2 * (size_t)eqn->in_count * sizeof values[0]);
  for (uint32_t i = 0; types != NULL && i < eqn->in_count; i++) types[i] = hlo->program->types[eqn->in[i]];
  ax_status status = types == NULL || values == NULL ? ax_out_of_memory(eqn->in_count * sizeof types[0])
                                                     : hlo_loop(hlo, eqn, types, in, values, out);
  ax_arena_deinit(&arena);
  return status;
}

/* --- The record --- */

static const ax_param params[] = {
    {"cond", AX_PARAM_PROGRAM, offsetof(ax_while_params, cond)},
    {"cond_nconsts", AX_PARAM_I64, offsetof(ax_while_params, cond_nconsts)},
    {"body", AX_PARAM_PROGRAM, offsetof(ax_while_params, body)},
    {"body_nconsts", AX_PARAM_I64, offsetof(ax_while_params, body_nconsts)},
};

/* --- Loops that count: JAX writes those of known bounds as

       while (i = lower, ..):  i < upper  do  .., i + 1

   They become fori_loops, which are scans: with derivatives, and costs that say how often. Where types have layouts, each of these numbers
   has one, which says nothing of a number. --- */

typedef struct counted {
  uint32_t index, count; /* which carry counts, of so many */
  ax_fn body;            /* of all carries */
  ax_value lower, upper;
} counted;

/* What makes the value, without its layout; and the value that has none. */
static const ax_hlo_operation *maker_of(const ax_hlo_read_args *args, uint32_t *value) {
  const ax_hlo_operation *maker = ax_hlo_maker_of(args, *value);
  while (maker != NULL && ax_hlo_slice_is(maker->name, "sdy.sharding_constraint") && maker->operand_count == 1)
    *value = maker->operands[0], maker = ax_hlo_maker_of(args, *value);
  return maker;
}

static bool is_argument(const ax_hlo_read_args *args, uint32_t region, uint32_t value, uint32_t *which) {
  const ax_hlo_block *block = &args->op->regions[region].blocks[0];
  (void)maker_of(args, &value);
  *which = value - block->argument;
  return value >= block->argument && *which < block->argument_count;
}

/* A constant integer without dimensions. */
static bool is_integer(const ax_hlo_read_args *args, uint32_t value, int64_t *out, ax_dtype *dtype) {
  const ax_hlo_operation *maker = maker_of(args, &value);
  const bool constant = maker != NULL && ax_hlo_slice_is(maker->name, "stablehlo.constant");
  const ax_hlo_attribute *elements = constant ? ax_hlo_find(maker, "value") : NULL;
  if (elements == NULL || elements->kind != AX_HLO_ELEMENTS || elements->type->rank > 0 || elements->data == NULL) return false;
  const ax_dtype_kind kind = ax_dtype_get(elements->type->dtype)->kind;
  *dtype = elements->type->dtype;
  *out = ax_number_load(*dtype, elements->data, 0).i;
  return kind == AX_KIND_SIGNED || kind == AX_KIND_UNSIGNED;
}

/* The condition is  carry < upper , where upper is a constant. */
static bool is_below_bound(const ax_hlo_read_args *args, counted *loop) {
  const ax_hlo_block *block = &args->op->regions[0].blocks[0];
  uint32_t holds = block->operations[block->operation_count - 1]->operands[0];
  const ax_hlo_operation *test = maker_of(args, &holds);
  const ax_hlo_attribute *direction = test != NULL ? ax_hlo_find(test, "comparison_direction") : NULL;
  uint32_t other;
  int64_t bound, start;
  ax_dtype dtype, of_start;
  if (direction == NULL || !ax_hlo_slice_is(direction->text, "LT") || test->operand_count != 2) return false;
  if (!is_argument(args, 0, test->operands[0], &loop->index) || is_argument(args, 0, test->operands[1], &other)) return false;
  if (loop->index >= loop->count) return false;
  if (!is_integer(args, test->operands[1], &bound, &dtype)) return false;
  loop->upper = ax_full_i64(dtype, AX_DIMS(), bound);
  loop->lower = args->in[loop->index];
  if (is_integer(args, args->op->operands[loop->index], &start, &of_start)) loop->lower = ax_full_i64(of_start, AX_DIMS(), start);
  return !ax_failed() && ax_fori_known(loop->lower, loop->upper);
}

/* The body gives  carry + 1  for it. */
static bool adds_one(const ax_hlo_read_args *args, const counted *loop) {
  const ax_hlo_block *block = &args->op->regions[1].blocks[0];
  uint32_t value = block->operations[block->operation_count - 1]->operands[loop->index];
  const ax_hlo_operation *next = maker_of(args, &value);
  if (next == NULL || !ax_hlo_slice_is(next->name, "stablehlo.add") || next->operand_count != 2) return false;
  for (int side = 0; side < 2; side++) {
    uint32_t which;
    int64_t by;
    ax_dtype dtype;
    if (!is_argument(args, 1, next->operands[side], &which) || which != loop->index) continue;
    if (is_integer(args, next->operands[1 - side], &by, &dtype) && by == 1) return true;
  }
  return false;
}

/* (index, the other carries..) -> (the other carries..) */
static AX_BODY(run_counted) {
  const counted *loop = context;
  ax_value *carries = ax_trace_alloc(loop->count * sizeof carries[0]);
  if (carries == NULL) return;
  for (uint32_t k = 0, from = 1; k < loop->count; k++) carries[k] = k == loop->index ? in[0] : in[from++];
  const ax_value *made = ax_builder_call(loop->body, carries);
  for (uint32_t k = 0, to = 0; k < loop->count && made != NULL; k++)
    if (k != loop->index) out[to++] = made[k];
}

static void count_up(const ax_hlo_read_args *args, counted *loop) {
  const uint32_t others = loop->count - 1;
  ax_value *in = ax_trace_alloc(2 * (size_t)loop->count * sizeof in[0]);
  if (in == NULL) return;
  ax_value *out = in + loop->count;
  for (uint32_t k = 0, to = 0; k < loop->count; k++)
    if (k != loop->index) in[to++] = args->in[k];
  (ax_fori_loop)(loop->lower, loop->upper, (ax_fn){run_counted, loop->count, others, loop}, others, in, others, out);
  if (ax_failed()) return;
  for (uint32_t k = 0, from = 0; k < loop->count; k++)
    args->out[k] = k == loop->index ? ax_max(loop->lower, loop->upper) : out[from++];
}

static ax_status read(const ax_hlo_read_args *args) {
  const uint32_t count = args->op->operand_count;
  ax_hlo_body bodies[2];
  ax_fn condition, body;
  AX_TRY(ax_hlo_body_of(args, 0, 1, &bodies[0], &condition));
  AX_TRY(ax_hlo_body_of(args, 1, count, &bodies[1], &body));
  if (args->op->result_count != count)
    return ax_error(AX_INVALID_ARGUMENT, "it has %u operands and %u results", count, args->op->result_count);
  counted loop = {.count = count, .body = body};
  const bool takes_all = condition.in_count == count && body.in_count == count;
  if (takes_all && count > 0 && is_below_bound(args, &loop) && adds_one(args, &loop)) count_up(args, &loop);
  else if (!ax_failed()) (ax_while)(condition, body, count, args->in, count, args->out);
  return AX_OK;
}

static const ax_hlo_reader readers[] = {{"stablehlo.while", read}, {0}};

const ax_prim ax_prim_while = {
    .name = "while",
    .kind = AX_REGION,
    .runs = AX_RUNS_UNTIL,
    .tokens = true,
    .memory = true,
    .in_count = -1,
    .out_count = -1,
    .count_outs = count_outs,
    AX_PARAMS(params, ax_while_params),
    .infer = infer,
    .spread = ax_spread_body,
    .eval = eval,
    .differs = differs,
    .links = links,
    .jvp = ax_while_jvp,
    .linearize = ax_while_linearize,
    .transpose = ax_while_transpose,
    .batch = ax_while_batch,
    .simplify = ax_simplify_nothing,
    .prune = ax_while_prune,
    .shard = ax_shard_whole,
    .lower = lower,
    .complex = ax_complex_whole,
    .keys = ax_keys_whole,
    .reads = readers, .hlo = hlo,
};
