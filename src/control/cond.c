/* cond: s32[], T0.., -> R0..            runs branch[clamp(index)] on the operands
   Parameters: branches, programs that take the same operands and give results of the same types.
   Errors: an index that is no s32 scalar; branches that disagree; checked axes along which the index varies and a branch
   communicates: devices that take another branch would never come.
   Varying: operands and results vary at least over what the index varies over (ax_if and ax_switch see to it by pvary): what a
   device's choice uses is its own, so that a transposed branch needs no psum that other devices would not come to. Linear in the
   operands for a fixed index. jvp, linearize, transpose and batch stand in cond_transform.c. */
#include <stdio.h>

#include "ir/number.h"
#include "control/cond.h"
#include "prim/prims.h"
#include "prim/region.h"

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
    for (uint32_t k = 0; k < args->eqn->out_count; k++) args->out[k] |= out[k];
  }
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
  ax_type scalar = ax_array_type(AX_S32, 0, NULL), types[] = {scalar, scalar, scalar};
  int32_t low = 0, high = (int32_t)count - 1;
  uint32_t first = ax_hlo_splat(hlo, &scalar, &low), last = ax_hlo_splat(hlo, &scalar, &high);
  uint32_t in[] = {first, index, last};
  return ax_hlo_op(hlo, "stablehlo.clamp", in, types, 3, NULL, &scalar, 1);
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_programs *branches = &((const ax_cond_params *)eqn->params)->branches;
  const ax_type *types = hlo->program->types + eqn->out;
  ax_type scalar = ax_array_type(AX_S32, 0, NULL);
  uint32_t *results = ax_calloc(eqn->out_count, sizeof results[0]);
  if (results == NULL) return ax_out_of_memory(eqn->out_count * sizeof results[0]);
  uint32_t index = hlo_clamped(hlo, in[0], branches->count);
  uint32_t first = ax_hlo_begin(hlo, "stablehlo.case", &index, 1, eqn->out_count);
  ax_status status = AX_OK;
  for (uint32_t b = 0; b < branches->count && status == AX_OK; b++) {
    ax_hlo_region_begin(hlo, NULL, 0);
    status = hlo->inline_program(hlo, branches->v[b], in + 1, results);
    ax_hlo_region_end(hlo, results, types, eqn->out_count);
  }
  ax_hlo_end(hlo, NULL, &scalar, 1, types, eqn->out_count);
  for (uint32_t k = 0; k < eqn->out_count; k++) out[k] = first + k;
  ax_free(results);
  return status;
}

/* --- The record --- */

static const ax_param params[] = {{"branches", AX_PARAM_PROGRAMS, offsetof(ax_cond_params, branches)}};

const ax_prim ax_prim_cond = {
    .name = "cond",
    .kind = AX_REGION,
    .runs = AX_RUNS_ONE,
    .tokens = true,
    .memory = true,
    .in_count = -1,
    .out_count = -1,
    .count_outs = count_outs,
    .params = params,
    .param_count = AX_COUNT(params),
    .params_bytes = sizeof(ax_cond_params),
    .infer = infer,
    .spread = ax_spread_body,
    .eval = eval,
    .differs = differs,
    .jvp = ax_cond_jvp,
    .linearize = ax_cond_linearize,
    .transpose = ax_cond_transpose,
    .batch = ax_cond_batch,
    .simplify = ax_simplify_nothing,
    .prune = ax_cond_prune,
    .shard = ax_shard_whole,
    .lower = lower,
    .hlo = hlo,
};

/* --- The function --- */

/* Each branch is traced once. Then all are given what any of them captures, and the results of all vary, or are reduced, over what
   those of any do. */
typedef struct tracing {
  const char *const *names; /* of the branches in messages; NULL: by number */
  const ax_fn *branches;
  uint32_t branch_count, in_count, out_count;
  const ax_type *in_types;
  ax_axis_set index_varying;
  ax_spread *out_spread; /* what results come to */
  ax_body *bodies;
  ax_value *captures; /* of all branches, in the order they were first met */
  uint32_t capture_count;
  uint32_t **place; /* by branch and capture of its own: which of these it is */
} tracing;

static void join(ax_spread *all, const ax_spread *on) {
  all->reduced |= on->reduced;
  if (on->unreduced != 0) all->kind = on->kind;
  all->unreduced |= on->unreduced;
  all->varying |= on->varying;
  all->reduced &= ~(all->varying | all->unreduced);
}

static ax_status trace_branch(tracing *t, uint32_t b) {
  bool is_if = t->names != NULL;
  ax_body_options options = {.owner = is_if ? "if" : "switch", .part = is_if ? t->names[b] : "branch", .function = t->branches[b],
                             .in = t->in_types, .capture_varying = t->index_varying};
  if (options.function.in_count != t->in_count || options.function.out_count != t->out_count)
    return ax_error(AX_INVALID_ARGUMENT, "takes %u operands and gives %u results, but others take %u and give %u",
                    options.function.in_count, options.function.out_count, t->in_count, t->out_count);
  AX_TRY(ax_body_trace(&options, &t->bodies[b]));
  const ax_program *program = t->bodies[b].program;
  for (uint32_t k = 0; k < t->out_count; k++) join(&t->out_spread[k], &program->types[program->outs[k]].spread);
  return AX_OK;
}

/* Results of one form, dtype and shape as those of the first branch: how they spread is made to agree. */
static ax_status check_results(const tracing *t, uint32_t b) {
  const ax_mesh *axes = &ax_builder_current()->axes;
  for (uint32_t k = 0; k < t->out_count; k++) {
    const ax_type *type = ax_program_out_type(t->bodies[b].program, k), *first = ax_program_out_type(t->bodies[0].program, k);
    if (type->form == first->form && type->dtype == first->dtype && ax_same_shape(type, first)) continue;
    char other[32] = "branch 0";
    if (t->names != NULL) snprintf(other, sizeof other, "%s", t->names[0]);
    return ax_error(AX_INVALID_ARGUMENT, "result %u is %s, but of %s it is %s", k, ax_type_string(type, axes), other,
                    ax_type_string(first, axes));
  }
  return AX_OK;
}

static ax_status trace_branches(tracing *t) {
  for (uint32_t b = 0; b < t->branch_count; b++) {
    ax_status status = trace_branch(t, b);
    if (status == AX_OK) status = check_results(t, b);
    if (status == AX_OK) status = ax_region_check_silent(t->bodies[b].program, t->index_varying, &ax_builder_current()->axes, "it");
    if (status == AX_OK) continue;
    return t->names != NULL ? ax_error_context(status, "if: %s: ", t->names[b])
                            : ax_error_context(status, "switch: branch %u: ", b);
  }
  return AX_OK;
}

/* Captures are values of the trace in progress: a table of them by id finds those met before. */
static ax_status join_captures(tracing *t) {
  size_t all = 0, size = 16;
  for (uint32_t b = 0; b < t->branch_count; b++) all += t->bodies[b].captured_count;
  while (size < 2 * all) size *= 2;
  uint32_t *table = ax_calloc(size, sizeof table[0]); /* 1 + the number of a capture */
  t->captures = ax_trace_alloc(all * sizeof t->captures[0]);
  t->place = ax_trace_alloc(t->branch_count * sizeof t->place[0]);
  for (uint32_t b = 0; b < t->branch_count && !ax_failed() && table != NULL; b++) {
    const ax_body *body = &t->bodies[b];
    t->place[b] = ax_trace_alloc(body->captured_count * sizeof t->place[b][0]);
    for (uint32_t i = 0; i < body->captured_count && t->place[b] != NULL; i++) {
      size_t at = ax_hash_word(AX_HASH_SEED, body->captured[i].id) & (size - 1);
      while (table[at] != 0 && t->captures[table[at] - 1].id != body->captured[i].id) at = (at + 1) & (size - 1);
      if (table[at] == 0) {
        t->captures[t->capture_count++] = body->captured[i];
        table[at] = t->capture_count;
      }
      t->place[b][i] = table[at] - 1;
    }
  }
  ax_free(table);
  if (table == NULL) return ax_out_of_memory(size * sizeof table[0]);
  return ax_failed() ? AX_OUT_OF_MEMORY : AX_OK;
}

/* What is unreduced in one branch must be so in all: nothing else is a part of the same sum. */
static ax_status check_unreduced(const tracing *t, uint32_t b) {
  const ax_mesh *axes = &ax_builder_current()->axes;
  for (uint32_t k = 0; k < t->out_count; k++) {
    const ax_spread *all = &t->out_spread[k], *on = &ax_program_out_type(t->bodies[b].program, k)->spread;
    ax_axis_set other = all->unreduced & ~(on->kind == all->kind ? on->unreduced : 0);
    if (other == 0) continue;
    uint32_t axis = (uint32_t)__builtin_ctzll(other);
    ax_status status =
        ax_error(AX_INVALID_ARGUMENT,
                 "result %u is %s along \"%s\", but %s in another branch; vary_unreduced_cast makes it so, or %s in that one", k,
                 ax_state_name(on, axis), axes->axis[axis].name,
                 ax_state_name(&(ax_spread){.unreduced = all->unreduced, .kind = all->kind}, axis), ax_reduce_advice(all->kind));
    return t->names != NULL ? ax_error_context(status, "if: %s: ", t->names[b])
                            : ax_error_context(status, "switch: branch %u: ", b);
  }
  return AX_OK;
}

/* Whether it takes all captures, in order, and its results spread enough. */
static bool is_alike(const tracing *t, uint32_t b) {
  const ax_program *program = t->bodies[b].program;
  bool alike = t->bodies[b].captured_count == t->capture_count;
  for (uint32_t i = 0; alike && i < t->capture_count; i++) alike = t->place[b][i] == i;
  for (uint32_t k = 0; alike && k < t->out_count; k++)
    alike = ax_spread_equal(&program->types[program->outs[k]].spread, &t->out_spread[k]);
  return alike;
}

/* (captures of all.., in..) -> (out..) */
static ax_status make_alike(const tracing *t, uint32_t b) {
  ax_body *body = &t->bodies[b];
  uint32_t own = body->captured_count, count = t->capture_count + t->in_count;
  ax_type *types = ax_trace_alloc(count * sizeof types[0]);
  for (uint32_t i = 0; types != NULL && i < t->capture_count; i++) {
    types[i] = ax_typeof(t->captures[i]);
    ax_spread_vary(&types[i].spread, t->index_varying);
  }
  for (uint32_t i = 0; types != NULL && i < t->in_count; i++) types[t->capture_count + i] = t->in_types[i];
  if (types == NULL) return AX_OUT_OF_MEMORY;
  ax_builder builder;
  ax_program *made;
  ax_value *in = ax_region_begin(&builder, &body->program->axes, types, count);
  ax_value *operands = ax_trace_alloc(body->program->in_count * sizeof operands[0]);
  ax_value *outs = ax_trace_alloc(t->out_count * sizeof outs[0]);
  if (in != NULL && operands != NULL && outs != NULL) {
    for (uint32_t i = 0; i < own; i++) operands[i] = in[t->place[b][i]];
    for (uint32_t i = 0; i < t->in_count; i++) operands[own + i] = in[t->capture_count + i];
    ax_call(body->program, body->program->in_count, operands, t->out_count, outs);
    for (uint32_t k = 0; k < t->out_count; k++) outs[k] = ax_spread_to(outs[k], &t->out_spread[k]);
  }
  AX_TRY(ax_region_finish(&builder, outs, t->out_count, &made));
  ax_program_release(body->program);
  body->program = made;
  return AX_OK;
}

static ax_status trace_all(tracing *t) {
  AX_TRY(trace_branches(t));
  for (uint32_t b = 0; b < t->branch_count; b++) AX_TRY(check_unreduced(t, b));
  AX_TRY(join_captures(t));
  for (uint32_t b = 0; b < t->branch_count; b++)
    if (!is_alike(t, b)) AX_TRY(make_alike(t, b));
  return AX_OK;
}

static void bind_traced(tracing *t, ax_value index, const ax_value *in, ax_value *out) {
  uint32_t count = 1 + t->capture_count + t->in_count;
  ax_value *all = ax_trace_alloc(count * sizeof all[0]);
  ax_program **branches = ax_trace_alloc(t->branch_count * sizeof branches[0]);
  if (all == NULL || branches == NULL) return;
  all[0] = index;
  for (uint32_t i = 0; i < t->capture_count; i++) all[1 + i] = ax_vary_to(t->captures[i], t->index_varying);
  for (uint32_t i = 0; i < t->in_count; i++) all[1 + t->capture_count + i] = ax_vary_to(in[i], t->index_varying);
  for (uint32_t b = 0; b < t->branch_count; b++) branches[b] = t->bodies[b].program;
  ax_cond_params params = {{t->branch_count, branches}};
  ax_bind(&ax_prim_cond, &params, all, count, out, t->out_count);
}

/* t: names, branches and counts; operands were taken. */
static void choose(tracing *t, ax_value index, const ax_value *in, ax_value *out) {
  ax_type *types = ax_types_of(t->names != NULL ? "if" : "switch", in, t->in_count);
  t->index_varying = ax_typeof(index).spread.varying;
  t->out_spread = ax_trace_alloc(t->out_count * sizeof t->out_spread[0]);
  t->bodies = ax_trace_alloc(t->branch_count * sizeof t->bodies[0]);
  if (types == NULL || t->out_spread == NULL || t->bodies == NULL) return;
  t->in_types = types;
  for (uint32_t i = 0; i < t->in_count; i++) ax_spread_vary(&types[i].spread, t->index_varying);
  for (uint32_t k = 0; k < t->out_count; k++) t->out_spread[k].varying = t->index_varying;
  ax_status status = trace_all(t);
  if (status != AX_OK) ax_fail(status);
  if (!ax_failed()) bind_traced(t, index, in, out);
  for (uint32_t b = 0; b < t->branch_count; b++) ax_body_deinit(&t->bodies[b]);
}

/* A scalar of this dtype; or the trace has failed. */
static bool is_scalar(ax_value x, ax_dtype dtype, const char *format) {
  ax_type type = ax_typeof(x);
  if (ax_failed()) return false;
  if (type.dtype == dtype && type.rank == 0) return true;
  ax_fail(ax_error(AX_INVALID_ARGUMENT, format, ax_type_string(&type, &ax_builder_current()->axes)));
  return false;
}

void ax_switch(ax_value index, uint32_t count, const ax_fn *branches, const ax_value *in, ax_value *out) {
  if (count == 0 || branches == NULL) {
    if (!ax_failed()) ax_fail(ax_error(AX_INVALID_ARGUMENT, "switch: there is no branch"));
    return;
  }
  tracing t = {.branches = branches, .branch_count = count, .in_count = branches[0].in_count, .out_count = branches[0].out_count};
  in = ax_take_operands(in, t.in_count, out, t.out_count);
  if (is_scalar(index, AX_S32, "switch: the index is %s; it must be an s32 scalar (ax_if takes a bool)"))
    choose(&t, index, in, out);
}

void ax_if(ax_value predicate, ax_fn then, ax_fn otherwise, const ax_value *in, ax_value *out) {
  static const char *const names[] = {"otherwise", "then"};
  const ax_fn branches[] = {otherwise, then};
  tracing t = {.names = names, .branches = branches, .branch_count = 2, .in_count = then.in_count, .out_count = then.out_count};
  in = ax_take_operands(in, t.in_count, out, t.out_count);
  if (is_scalar(predicate, AX_BOOL, "if: the predicate is %s; it must be a bool scalar (ax_switch takes an s32)"))
    choose(&t, ax_convert_element_type(predicate, AX_S32), in, out);
}
