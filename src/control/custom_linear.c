/* custom_linear: R0.., T0.., -> U0..         the linear map of the tangents T whose transpose is backward, at the residuals R
   Parameters: num_residuals; backward, a program of the residuals and the cotangents of the results, which gives those of the
   tangents.
   Errors: operands that are not of the types whose duals backward has; any evaluation, since only its transpose is known.
   Linear in the tangents. custom_vjp leaves it in the forward pass. */
#include "control/custom_linear.h"

#include "control/custom.h"
#include "prim/prims.h"
#include "prim/rules.h"

typedef struct custom_linear_params {
  ax_program *backward;
  int64_t num_residuals;
} custom_linear_params;

/* 0 where there is something wrong with the parameters, which infer says. */
static uint32_t count_outs(const void *params) {
  const custom_linear_params *p = params;
  return p->num_residuals >= 0 && p->num_residuals <= p->backward->in_count ? p->backward->in_count - (uint32_t)p->num_residuals
                                                                            : 0;
}

static ax_status only_backwards(const ax_eqn *eqn) {
  return ax_error(AX_ABSENT,
                  "the function with custom_vjp%s%s has no derivative forwards, as only its backward rule is known: use vjp or "
                  "grad, or custom_jvp",
                  eqn->location != NULL ? " at " : "", eqn->location != NULL ? eqn->location : "");
}

ax_status ax_custom_linear_check(const ax_program *program) {
  const ax_eqn *eqn = ax_find_effect(program, AX_EFFECT_BACKWARD);
  return eqn != NULL ? only_backwards(eqn) : AX_OK;
}

/* --- infer, eval, differs --- */

static ax_status infer(const ax_infer_args *args) {
  const custom_linear_params *params = args->params;
  const ax_program *backward = params->backward;
  AX_TRY(ax_region_check_axes(backward, args->axes, "backward"));
  if (params->num_residuals < 0 || params->num_residuals > backward->in_count)
    return ax_error(AX_INVALID_ARGUMENT, "num_residuals is %lld, but backward takes %u values", (long long)params->num_residuals,
                    backward->in_count);
  const uint32_t residuals = (uint32_t)params->num_residuals;
  if (args->in_count != residuals + backward->out_count)
    return ax_error(AX_INVALID_ARGUMENT, "there are %u operands, not %u residuals and %u tangents", args->in_count, residuals,
                    backward->out_count);
  for (uint32_t r = 0; r < residuals; r++)
    AX_TRY(ax_region_check_type(&args->in[r], &backward->types[r], args->axes, "residual", r, "is", "backward takes"));
  for (uint32_t i = 0; i < backward->out_count; i++) {
    ax_type dual = ax_dual(&backward->types[backward->outs[i]]);
    AX_TRY(ax_region_check_type(&args->in[residuals + i], &dual, args->axes, "tangent", i, "is", "must be"));
  }
  for (uint32_t k = 0; k < args->out_count; k++) args->out[k] = ax_dual(&backward->types[residuals + k]);
  return AX_OK;
}

static ax_status eval(const ax_eval_args *args) { return only_backwards(args->eqn); }

/* backward is run for derivatives alone: it takes cotangents of the results, and gives those of the tangents. */
static ax_region_link links(const ax_region_link_args *args) {
  const custom_linear_params *params = args->eqn->params;
  const bool residual = !args->is_output && args->number < (uint32_t)params->num_residuals;
  return residual ? ax_region_link_to(AX_LINK_SAME, args->number) : ax_region_link_own();
}

/* --- jvp, transpose --- */

/* On tangents of the tangents. At other residuals it is another map, of which nothing is known. */
static void jvp(const ax_jvp_args *args) {
  const ax_eqn *eqn = args->eqn;
  const custom_linear_params *params = eqn->params;
  ax_value *in = ax_trace_alloc(eqn->in_count * sizeof in[0]);
  if (in == NULL) return;
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    bool is_residual = i < (uint32_t)params->num_residuals;
    if (is_residual && !ax_is_zero(args->tangent_in[i])) {
      ax_fail(only_backwards(eqn));
      return;
    }
    in[i] = is_residual ? args->in[i] : ax_instantiate(args->tangent_in[i], args->in[i]);
  }
  ax_bind(eqn->prim, params, args->in, eqn->in_count, args->out, eqn->out_count);
  ax_bind(eqn->prim, params, in, eqn->in_count, args->tangent_out, eqn->out_count);
}

static void transpose(const ax_transpose_args *args) {
  const ax_eqn *eqn = args->eqn;
  const custom_linear_params *params = eqn->params;
  const ax_program *backward = params->backward;
  const uint32_t residuals = (uint32_t)params->num_residuals;
  ax_value *in = ax_trace_alloc(backward->in_count * sizeof in[0]), *out = ax_trace_alloc(backward->out_count * sizeof out[0]);
  if (in == NULL || out == NULL) return;
  for (uint32_t r = 0; r < residuals; r++) {
    if (args->linear[r]) {
      ax_absent_transpose(args);
      return;
    }
    in[r] = args->in[r];
  }
  for (uint32_t k = 0; k < eqn->out_count; k++) {
    ax_type tangent = ax_dual(&backward->types[residuals + k]);
    in[residuals + k] = ax_is_zero(args->cotangent[k]) ? ax_zero_cotangent(&tangent) : args->cotangent[k];
  }
  ax_call(backward, in, out);
  for (uint32_t i = 0; i < backward->out_count; i++)
    if (args->linear[residuals + i]) args->out[residuals + i] = out[i];
}

/* --- batch --- */

/* A result wanted without a batch dimension: its sum over it, and over what it has come to vary over besides. */
static ax_value summed(ax_value made, int dim, const ax_type *type) {
  const int64_t front = dim;
  if (dim >= 0) made = ax_reduce_sum(made, AX_LIST(1, &front), false);
  ax_axis_set more = ax_typeof(made).spread.varying & ~(type->spread.varying | type->spread.unreduced);
  return more != 0 && !ax_failed() ? ax_cast(&ax_prim_psum, made, more) : made;
}

ax_status ax_custom_batch_backward(const ax_batch_args *args, const ax_program *backward, const int *in_dim, const int *want,
                                   ax_program **out) {
  int *wanted = ax_trace_alloc(backward->out_count * sizeof wanted[0]),
      *made = ax_trace_alloc(backward->out_count * sizeof made[0]);
  ax_program *batched;
  ax_builder builder;
  *out = NULL;
  if (wanted == NULL || made == NULL) return AX_OUT_OF_MEMORY;
  for (uint32_t k = 0; k < backward->out_count; k++) wanted[k] = want[k] >= 0 ? want[k] : AX_BATCH_ANY;
  AX_TRY(ax_batch_program(backward, in_dim, args->size, args->axis, wanted, made, &batched));
  const ax_value *in = ax_region_begin(&builder, &batched->axes, batched->types, batched->in_count);
  ax_value *outs = ax_trace_alloc(batched->out_count * sizeof outs[0]);
  if (in != NULL && outs != NULL) ax_call(batched, in, outs);
  for (uint32_t k = 0; k < batched->out_count && !ax_failed(); k++)
    if (want[k] < 0) outs[k] = summed(outs[k], made[k], &backward->types[backward->outs[k]]);
  ax_status status = ax_region_finish(&builder, outs, batched->out_count, out);
  ax_program_release(batched);
  return status;
}

/* All tangents with their batch dimension in front. */
static void batch(const ax_batch_args *args) {
  const ax_eqn *eqn = args->eqn;
  const custom_linear_params *params = eqn->params;
  const uint32_t residuals = (uint32_t)params->num_residuals, tangents = eqn->in_count - residuals;
  ax_value *in = ax_trace_alloc(eqn->in_count * sizeof in[0]);
  int *dim = ax_trace_alloc(params->backward->in_count * sizeof dim[0]), *want = ax_trace_alloc(tangents * sizeof want[0]);
  custom_linear_params made = *params;
  if (in == NULL || dim == NULL || want == NULL) return;
  for (uint32_t i = 0; i < eqn->in_count; i++)
    in[i] = i < residuals ? args->in[i] : ax_batch_front(args->in[i], args->in_dim[i], args->size);
  for (uint32_t r = 0; r < residuals; r++) dim[r] = args->in_dim[r];
  ax_status status = ax_custom_batch_backward(args, params->backward, dim, want, &made.backward);
  if (status == AX_OK) ax_bind(eqn->prim, &made, in, eqn->in_count, args->out, eqn->out_count);
  else ax_fail(status);
  ax_program_release(made.backward);
}

/* --- prune --- */

static ax_status prune(const ax_prune_args *args) {
  const custom_linear_params *params = args->eqn->params;
  const ax_program *backward = params->backward;
  const uint32_t residuals = (uint32_t)params->num_residuals;
  bool *marks = ax_arena_alloc(&args->memo->arena, backward->in_count + (size_t)backward->out_count),
       *all = marks + backward->in_count;
  if (marks == NULL) return ax_out_of_memory(backward->in_count + (size_t)backward->out_count);
  for (uint32_t i = 0; i < backward->out_count; i++) all[i] = true;
  AX_TRY(ax_needs_program(args->memo, backward, all, marks));
  for (uint32_t i = 0; i < args->eqn->in_count; i++) args->in[i] = i >= residuals || marks[i];
  for (uint32_t k = 0; k < args->eqn->out_count; k++) marks[residuals + k] = args->out[k];
  if (args->params == NULL) return AX_OK;
  custom_linear_params made = {.num_residuals = ax_marked(args->in, residuals)};
  AX_TRY(ax_custom_prune_backward(args->memo, backward, residuals, marks, &made.backward));
  *(custom_linear_params *)args->params = made;
  return AX_OK;
}

/* --- lower, hlo --- */

static ax_status lower(AX_UNUSED ax_lower *lower, const ax_eqn *eqn, AX_UNUSED const uint32_t *in, AX_UNUSED uint32_t *out) {
  return only_backwards(eqn);
}

static ax_status hlo(AX_UNUSED ax_hlo *hlo, const ax_eqn *eqn, AX_UNUSED const uint32_t *in, AX_UNUSED uint32_t *out) {
  return only_backwards(eqn);
}

/* --- The record --- */

static const ax_param params[] = {{"backward", AX_PARAM_PROGRAM, offsetof(custom_linear_params, backward)},
                                  {"num_residuals", AX_PARAM_I64, offsetof(custom_linear_params, num_residuals)}};

const ax_prim ax_prim_custom_linear = {
    .name = "custom_linear",
    .kind = AX_REGION,
    .effects = AX_EFFECT_BACKWARD,
    .unify = true,
    .in_count = -1,
    .out_count = -1,
    .count_outs = count_outs,
    AX_PARAMS(params, custom_linear_params),
    .infer = infer,
    .spread = ax_spread_body,
    .eval = eval,
    .differs = ax_differs_union,
    .links = links,
    .jvp = jvp,
    .linearize = jvp,
    .transpose = transpose,
    .batch = batch,
    .simplify = ax_simplify_nothing,
    .prune = prune,
    .shard = ax_shard_whole,
    .lower = lower,
    .complex = ax_complex_whole,
    .keys = ax_keys_whole,
    .hlo = hlo,
};

void ax_custom_linear_bind(const ax_program *backward, uint32_t residuals, const ax_value *in, ax_value *out) {
  custom_linear_params params = {ax_program_retain((ax_program *)(uintptr_t)backward), residuals};
  ax_bind(&ax_prim_custom_linear, &params, in, residuals + backward->out_count, out, backward->in_count - residuals);
  ax_program_release(params.backward);
}
