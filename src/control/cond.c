/* cond: s32[], T0.., -> R0..            runs branch[clamp(index)] on the operands
   Parameters: branches, programs that take the same operands and give results of the same types.
   Errors: an index that is no s32 scalar; branches that disagree; checked axes along which the index varies and a branch
   communicates: devices that take another branch would never come.
   Varying: operands and results vary at least over the axes that the index varies over; ax_if and ax_switch insert pvary. A
   device's branch then uses only the device's own values, so a transposed branch needs no psum that other devices would not
   reach.
   Linear in the operands for a fixed index. jvp, linearize, transpose and batch stand in cond_transform.c, the functions in
   cond_trace.c. */
#include <stdio.h>

#include "control/closed_call.h"
#include "control/cond.h"
#include "hlo/hlo.h"
#include "hlo/read.h"
#include "ir/flow.h"
#include "ir/number.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "prim/prims.h"
#include "prim/region.h"
#include "prim/rules.h"

static uint32_t count_outs(const void *params) {
  const ax_programs *branches = params;
  return branches->count > 0 ? branches->v[0]->out_count : 0;
}

/* --- infer --- */

static ax_status check_varying(const ax_infer_args *args, const ax_program *branch, const char *name) {
  ax_axis_set varying = args->in[0].spread.varying;
  for (uint32_t i = 0; i < branch->in_count + branch->out_count; i++) {
    bool is_operand = i < branch->in_count;
    uint32_t number = is_operand ? i : i - branch->in_count;
    const ax_type *type = &branch->types[is_operand ? i : branch->outs[number]];
    if ((varying & ~type->spread.varying) != 0)
      return ax_error(AX_INVALID_ARGUMENT, "%s %u of %s is %s, but the index varies over %s%s%s",
                      is_operand ? "operand" : "result", number, name, ax_type_string(type, args->axes),
                      ax_axis_set_string(varying, args->axes), (varying & type->spread.unreduced) != 0 ? "; " : "",
                      (varying & type->spread.unreduced) != 0 ? ax_reduce_advice(type->spread.kind) : "");
  }
  return AX_OK;
}

static ax_status check_branch(const ax_infer_args *args, const ax_program *branch, const ax_program *first,
                              uint32_t b) {
  char name[32];
  snprintf(name, sizeof name, "branch %u", b);
  AX_TRY(ax_region_check_axes(branch, args->axes, name));
  if (branch->in_count + 1 != args->in_count || branch->out_count != args->out_count)
    return ax_error(AX_INVALID_ARGUMENT, "%s takes %u operands and gives %u results, not %u and %u", name,
                    branch->in_count, branch->out_count, args->in_count - 1, args->out_count);
  for (uint32_t i = 0; i < branch->in_count; i++)
    AX_TRY(ax_region_check_type(&args->in[i + 1], &branch->types[i], args->axes, "operand", i, "is", "a branch takes"));
  AX_TRY(check_varying(args, branch, name));
  for (uint32_t k = 0; k < branch->out_count; k++)
    AX_TRY(ax_region_check_type(&branch->types[branch->outs[k]], &first->types[first->outs[k]], args->axes,
                                "the branches disagree: result", k, "is", "of branch 0 it is"));
  return ax_region_check_silent(branch, args->in[0].spread.varying, args->axes, name);
}

static ax_status infer(const ax_infer_args *args) {
  const ax_cond_params *params = args->params;
  if (params->branches.count == 0 || args->in_count == 0)
    return ax_error(AX_INVALID_ARGUMENT, "needs an index and at least one branch");
  const ax_type *index = &args->in[0];
  if (index->form != AX_ARRAY || index->dtype != AX_S32 || index->rank != 0)
    return ax_error(AX_INVALID_ARGUMENT, "the index is %s, not s32[]", ax_type_string(index, args->axes));
  if (index->spread.unreduced != 0)
    return ax_error(AX_INVALID_ARGUMENT, "the index %s is unreduced over %s; %s", ax_type_string(index, args->axes),
                    ax_axis_set_string(index->spread.unreduced, args->axes), ax_reduce_advice(index->spread.kind));
  const ax_program *first = params->branches.v[0];
  for (uint32_t b = 0; b < params->branches.count; b++)
    AX_TRY(check_branch(args, params->branches.v[b], first, b));
  for (uint32_t k = 0; k < args->out_count; k++) args->out[k] = first->types[first->outs[k]];
  return AX_OK;
}

/* --- eval, differs --- */

static uint32_t chosen(const ax_tensor *index, uint32_t count) {
  int64_t i = ax_number_load(AX_S32, index->data, 0).i;
  return i < 0 ? 0 : i >= count ? count - 1 : (uint32_t)i;
}

/* Devices that chose the same branch run it together. */
static ax_status eval(const ax_eval_args *args) {
  const ax_programs *branches = &((const ax_cond_params *)args->eqn->params)->branches;
  ax_arena arena = {0};
  uint32_t in_count = args->eqn->in_count - 1, out_count = args->eqn->out_count;
  uint32_t *lane = ax_arena_alloc(&arena, args->lanes * sizeof lane[0]);
  ax_tensor *const **in = ax_arena_alloc(&arena, in_count * sizeof in[0]);
  ax_tensor ***out = ax_arena_alloc(&arena, out_count * sizeof out[0]);
  ax_status status = lane == NULL || in == NULL || out == NULL ? ax_out_of_memory(0) : AX_OK;
  for (uint32_t i = 0; status == AX_OK && i < in_count; i++) in[i] = args->in + (i + 1) * args->lanes;
  for (uint32_t k = 0; status == AX_OK && k < out_count; k++) out[k] = args->out + k * args->lanes;
  for (uint32_t b = 0; status == AX_OK && b < branches->count; b++) {
    uint32_t count = 0;
    for (uint32_t l = 0; l < args->lanes; l++)
      if (chosen(args->in[l], branches->count) == b) lane[count++] = l;
    status = ax_region_eval(args, branches->v[b], lane, count, in, out);
  }
  return ax_region_eval_end(args, &arena, status);
}

static void differs(const ax_differs_args *args) {
  const ax_programs *branches = &((const ax_cond_params *)args->eqn->params)->branches;
  ax_axis_set *out = ax_differs_alloc(args, args->eqn->out_count);
  for (uint32_t k = 0; k < args->eqn->out_count; k++) args->out[k] = args->in[0];
  for (uint32_t b = 0; out != NULL && b < branches->count; b++) {
    if (!ax_region_differs(args, branches->v[b], args->in + 1, out)) return;
    ax_flow_choose(args->flow, branches->v[b], args->in[0]);
    for (uint32_t k = 0; k < args->eqn->out_count; k++) args->out[k] |= out[k];
  }
}

/* The first operand says which branch. */
static ax_region_link links(const ax_region_link_args *args) {
  return ax_region_link_to(AX_LINK_SAME, args->is_output ? args->number : args->number + 1);
}

/* --- lower, hlo --- */

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_programs *branches = &((const ax_cond_params *)eqn->params)->branches;
  ax_block *outer;
  uint32_t *results = ax_arena_alloc(&lower->plan->arena, eqn->out_count * sizeof results[0]);
  if (results == NULL) return ax_out_of_memory(eqn->out_count * sizeof results[0]);
  for (uint32_t k = 0; k < eqn->out_count; k++) AX_TRY(ax_lower_result(lower, eqn, k, &out[k]));
  AX_TRY(ax_lower_branch_begin(lower, in[0], branches->count, ax_lower_get(lower, in[0])->axes, &outer));
  for (uint32_t b = 0; b < branches->count; b++) {
    ax_lower_branch_case(lower, outer, b);
    AX_TRY(ax_lower_program(lower, branches->v[b], in + 1, results));
    for (uint32_t k = 0; k < eqn->out_count; k++) AX_TRY(ax_lower_copy(lower, out[k], results[k]));
  }
  ax_lower_branch_end(lower, outer);
  return AX_OK;
}

/* stablehlo.case takes the last branch for an index out of range; ours is clamped, so it is clamped first. */
static uint32_t hlo_clamped(ax_hlo *hlo, uint32_t index, uint32_t count) {
  ax_type scalar = ax_array_type(AX_S32, AX_DIMS());
  int32_t low = 0, high = (int32_t)count - 1;
  uint32_t first = ax_hlo_splat(hlo, &scalar, &low), last = ax_hlo_splat(hlo, &scalar, &high);
  uint32_t in[] = {first, index, last};
  return ax_hlo_op(hlo, "stablehlo.clamp", in, 3, NULL, &scalar, 1);
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_programs *branches = &((const ax_cond_params *)eqn->params)->branches;
  const ax_type *types = hlo->program->types + eqn->out;
  uint32_t *results = ax_calloc(eqn->out_count, sizeof results[0]);
  if (results == NULL) return ax_out_of_memory(eqn->out_count * sizeof results[0]);
  uint32_t index = hlo_clamped(hlo, in[0], branches->count);
  uint32_t first = ax_hlo_begin(hlo, "stablehlo.case", &index, 1, types, eqn->out_count);
  ax_status status = AX_OK;
  for (uint32_t b = 0; b < branches->count && status == AX_OK; b++) {
    ax_hlo_region_begin(hlo, NULL, 0);
    status = hlo->inline_program(hlo, branches->v[b], in + 1, results);
    ax_hlo_region_end(hlo, results, eqn->out_count);
  }
  ax_hlo_end(hlo, NULL);
  for (uint32_t k = 0; k < eqn->out_count; k++) out[k] = first + k;
  ax_free(results);
  return status;
}

/* --- The record --- */

static const ax_param params[] = {{"branches", AX_PARAM_PROGRAMS, offsetof(ax_cond_params, branches)}};

/* One branch, since the index is known. */
static ax_status chosen_read(const ax_hlo_read_args *args, uint32_t branch) {
  ax_hlo_body body;
  ax_fn function;
  AX_TRY(ax_hlo_body_of(args, branch, args->op->result_count, &body, &function));
  if (function.in_count > 0) return ax_error(AX_INVALID_ARGUMENT, "a branch takes no arguments");
  function.function(NULL, args->out, function.context);
  return AX_OK;
}

/* An index outside means the last branch. */
static ax_status case_read(const ax_hlo_read_args *args) {
  const uint32_t count = args->op->region_count, results = args->op->result_count, chosen = ax_hlo_chosen_branch(args);
  if (chosen != AX_NONE) return chosen_read(args, chosen);
  ax_hlo_body *bodies = ax_trace_alloc(count * sizeof bodies[0]);
  ax_fn *branches = ax_trace_alloc(count * sizeof branches[0]);
  if (bodies == NULL || branches == NULL) return AX_OK;
  if (count == 0 || args->op->operand_count != 1) return ax_error(AX_INVALID_ARGUMENT, "it takes an index, and a region for each branch");
  for (uint32_t i = 0; i < count; i++) AX_TRY(ax_hlo_body_of(args, i, results, &bodies[i], &branches[i]));
  const ax_value index = args->in[0], least = ax_ge(index, ax_integer(0)), inside = ax_and(least, ax_lt(index, ax_integer(count)));
  (ax_switch)(ax_where(inside, index, ax_integer(count - 1)), count, branches, 0, NULL, results, args->out);
  return AX_OK;
}

static ax_status if_read(const ax_hlo_read_args *args) {
  ax_hlo_body bodies[2];
  ax_fn then, otherwise;
  if (args->op->operand_count != 1) return ax_error(AX_INVALID_ARGUMENT, "it takes one operand, the predicate");
  AX_TRY(ax_hlo_body_of(args, 0, args->op->result_count, &bodies[0], &then));
  AX_TRY(ax_hlo_body_of(args, 1, args->op->result_count, &bodies[1], &otherwise));
  (ax_if)(args->in[0], then, otherwise, 0, NULL, args->op->result_count, args->out);
  return AX_OK;
}

/* --- rewrite: a branch that is known to be chosen stands in the place of the choice --- */

static bool take_branch(const ax_rewrite_args *args) {
  const ax_literal *index = ax_made_literal(args->made_by, args->eqn->in[0]);
  const ax_programs *branches = args->eqn->params;
  if (index == NULL) return false;
  if (args->values == NULL) return true;
  ax_called_in_place(args, 1, branches->v[chosen(&(ax_tensor){.dtype = AX_S32, .data = index->data}, branches->count)]);
  return true;
}

static const ax_hlo_reader readers[] = {{"stablehlo.case", case_read}, {"stablehlo.if", if_read}, {0}};

const ax_prim ax_prim_cond = {
    .name = "cond",
    .kind = AX_REGION,
    .runs = AX_RUNS_ONE,
    .tokens = true,
    .memory = true,
    .in_count = -1,
    .out_count = -1,
    .count_outs = count_outs,
    AX_PARAMS(params, ax_cond_params),
    .infer = infer,
    .spread = ax_spread_body,
    .eval = eval,
    .differs = differs,
    .links = links,
    .jvp = ax_cond_jvp,
    .linearize = ax_cond_linearize,
    .transpose = ax_cond_transpose,
    .batch = ax_cond_batch,
    .simplify = ax_simplify_nothing,
    .rewrite = take_branch,
    .prune = ax_cond_prune,
    .shard = ax_shard_whole,
    .lower = lower,
    .complex = ax_complex_whole,
    .keys = ax_keys_whole,
    .reads = readers, .hlo = hlo,
};
