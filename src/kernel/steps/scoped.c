/* run_scoped: T.., -> R..         runs body on the operands and on new refs, semaphores and barriers, which are gone after it
   Parameters: scratch, their types; arrivals: for each scratch that is barriers, its number and how many arrivals complete a phase;
   along: axes of cores; the cores that differ along these axes alone share one scratch; body, which takes the operands and then the
   scratch.
   Errors: operands that the body does not take; scratch that is an array; barriers without arrivals, or arrivals of scratch that is
   no barrier; an unknown axis. A core that uses the scratch after it is gone, or takes another path than the others along those
   axes, is found when the kernel runs.
   The effects are the body's. It stands in kernels' bodies alone. */
#include <string.h>

#include "kernel/discharge.h"
#include "kernel/scratch.h"
#include "prim/prims.h"
#include "prim/region.h"

/* --- infer, differs --- */

static uint32_t count_outs(const void *params) { return ((const ax_run_scoped_params *)params)->body->out_count; }

static ax_status infer(const ax_infer_args *args) {
  const ax_run_scoped_params *params = args->params;
  const ax_program *body = params->body;
  ax_axis_set along;
  AX_TRY(ax_region_check_axes(body, args->axes, "the body"));
  AX_TRY(ax_scratch_check(&params->scratch, &params->arrivals));
  AX_TRY(ax_axes_resolve(&params->along, args->axes, &along));
  if (body->in_count != args->in_count + params->scratch.count || body->out_count != args->out_count)
    return ax_error(AX_INVALID_ARGUMENT, "the body takes %u values and gives %u, not %u operands and %u scratch, and %u",
                    body->in_count, body->out_count, args->in_count, params->scratch.count, args->out_count);
  for (uint32_t i = 0; i < args->in_count; i++)
    AX_TRY(ax_region_check_type(&args->in[i], &body->types[i], args->axes, "operand", i, "is", "the body takes"));
  for (uint32_t i = 0; i < params->scratch.count; i++)
    AX_TRY(ax_region_check_type(&params->scratch.v[i], &body->types[args->in_count + i], args->axes, "scratch", i, "is",
                                "the body takes"));
  for (uint32_t k = 0; k < args->out_count; k++) args->out[k] = body->types[body->outs[k]];
  return AX_OK;
}

static void differs(const ax_differs_args *args) {
  const ax_program *body = ((const ax_run_scoped_params *)args->eqn->params)->body;
  ax_axis_set *in = ax_differs_alloc(args, body->in_count), all = 0;
  for (uint32_t i = 0; i < args->eqn->in_count; i++) all |= args->in[i];
  for (uint32_t i = 0; in != NULL && i < body->in_count; i++) in[i] = i < args->eqn->in_count ? args->in[i] : all;
  if (in != NULL) (void)ax_region_differs(args, body, in, args->out);
}

/* --- check --- */

static ax_status check(ax_step_check_args *args) {
  const ax_axes *along = &((const ax_run_scoped_params *)args->eqn->params)->along;
  for (uint32_t i = 0; i < along->count; i++)
    if (ax_mesh_find(&args->program->axes, along->name[i]) < (int)args->devices)
      return ax_error(AX_INVALID_ARGUMENT, "run_scoped along \"%s\", which is an axis of devices", along->name[i]);
  return AX_OK;
}

/* --- In a plain program: its scratch is memory until the body is over --- */

static void discharge(const ax_discharge_args *args) {
  const ax_run_scoped_params *params = args->eqn->params;
  const uint32_t in_count = args->eqn->in_count, memories = args->d->memory_count;
  ax_discharge_value *all = ax_trace_alloc((in_count + params->scratch.count + 1) * sizeof all[0]);
  if (all == NULL) return;
  memcpy(all, args->in, in_count * sizeof all[0]);
  for (uint32_t i = 0; i < params->scratch.count && !ax_failed(); i++) {
    const ax_type *type = &params->scratch.v[i];
    all[in_count + i] = (ax_discharge_value){.view = ax_content_add(args->d, type, ax_content_unset(args->d, type))};
  }
  if (!ax_failed()) ax_discharge_body(args, params->body, all);
  args->d->memory_count = memories;
}

/* --- The record --- */

static const ax_step step = {.role = AX_STEP_HOLDS_BODY, .opens_scope = true, .check = check, .discharge = discharge};

static const ax_param params[] = {{"scratch", AX_PARAM_TYPES, offsetof(ax_run_scoped_params, scratch)},
                                  {"arrivals", AX_PARAM_PAIRS, offsetof(ax_run_scoped_params, arrivals)},
                                  {"along", AX_PARAM_NAMES, offsetof(ax_run_scoped_params, along)},
                                  {"body", AX_PARAM_PROGRAM, offsetof(ax_run_scoped_params, body)}};

const ax_prim ax_prim_run_scoped = {
    .name = "run_scoped",
    AX_STEP_REGION_RULES,
    AX_PARAMS(params, ax_run_scoped_params),
    .infer = infer,
    .differs = differs,
    .links = ax_region_links_call,
    .step = &step,
};

/* --- The function --- */

void (ax_run_scoped)(uint32_t count, const ax_scratch *scratch, const char *along, ax_fn function, uint32_t out_count,
                     ax_value *out) {
  ax_run_scoped_params made = {0};
  ax_poison_list(out_count, function.out_count, out);
  count = ax_list_entries(count, function.in_count);
  if (!ax_list_fits("run_scoped", "the function gives", "result", out_count, function.out_count)) return;
  if (!ax_take_scratch("run_scoped", count, scratch, &made.scratch, &made.arrivals)) return;
  if (function.in_count != count) {
    ax_reject_as("run_scoped", "the function takes %u operands, but there are %u scratch", function.in_count, count);
    return;
  }
  ax_body body;
  ax_status status = along != NULL ? ax_axes_parse(along, NULL, &made.along) : AX_OK;
  if (status != AX_OK) {
    ax_fail(ax_error_context(status, "run_scoped: "));
    return;
  }
  status =
      ax_body_trace(&(ax_body_options){.owner = "run_scoped", .part = "body", .function = function, .in = made.scratch.v}, &body);
  if (status != AX_OK) {
    ax_fail(ax_error_context(status, "run_scoped: body: "));
    return;
  }
  made.body = body.program;
  ax_bind(&ax_prim_run_scoped, &made, body.captured, body.captured_count, out, function.out_count);
  ax_body_deinit(&body);
}
