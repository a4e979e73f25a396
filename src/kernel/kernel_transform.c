/* The rules of kernel_call that go by the plain program that it equals (discharge.h): derivatives, which are those of a closed_call
   of that program; what
   `interpret` runs; StableHLO. A kernel whose cores wait for one another has none of these, and says so. */
#include "kernel/kernel_call.h"

#include <string.h>

#include "control/closed_call.h"
#include "hlo/hlo.h"
#include "kernel/discharge.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "prim/prims.h"

/* --- Derivatives --- */

/* A closed_call of the plain program in the place of the equation, whose operands spread so. False: the trace has failed. */
static bool as_call(const ax_eqn *eqn, const ax_type *in, ax_closed_call_params *params, ax_eqn *call) {
  const ax_mesh *axes = &ax_builder_current()->axes;
  ax_type *out = ax_trace_alloc((eqn->out_count + 1) * sizeof out[0]);
  if (out == NULL) return false;
  ax_status status = ax_infer_types(eqn->prim, axes, eqn->params, in, eqn->in_count, out, eqn->out_count);
  ax_discharge_options options = {.in = in, .in_count = eqn->in_count, .axes = axes, .zeros = true, .beside = true};
  if (eqn->out_count > 0) options.spread = out[0].spread;
  if (status == AX_OK) status = ax_kernel_discharge(eqn->params, &options, &params->body);
  if (status == AX_ABSENT) status = ax_error_context(status, "no derivative, which ax_custom_vjp would give it: ");
  if (status != AX_OK) {
    ax_fail(status);
    return false;
  }
  params->body = ax_unify_program(params->body);
  *call = *eqn;
  call->prim = &ax_prim_closed_call;
  call->params = params;
  return true;
}

static const ax_type *types_of(const ax_eqn *eqn, const ax_value *in) {
  ax_type *types = ax_trace_alloc((eqn->in_count + 1) * sizeof types[0]);
  for (uint32_t i = 0; types != NULL && i < eqn->in_count; i++) types[i] = ax_typeof(in[i]);
  return ax_failed() ? NULL : types;
}

static void derive(const ax_jvp_args *args, void (*rule)(const ax_jvp_args *args)) {
  ax_closed_call_params params = {NULL};
  ax_eqn call;
  ax_jvp_args of = *args;
  const ax_type *types = types_of(args->eqn, args->in);
  if (types == NULL || !as_call(args->eqn, types, &params, &call)) return;
  of.eqn = &call;
  rule(&of);
  ax_program_release(params.body);
}

void ax_kernel_call_jvp(const ax_jvp_args *args) { derive(args, ax_prim_closed_call.jvp); }

void ax_kernel_call_linearize(const ax_jvp_args *args) { derive(args, ax_prim_closed_call.linearize); }

void ax_kernel_call_transpose(const ax_transpose_args *args) {
  ax_closed_call_params params = {NULL};
  ax_eqn call;
  ax_transpose_args of = *args;
  if (!as_call(args->eqn, args->in_types, &params, &call)) return;
  of.eqn = &call;
  ax_prim_closed_call.transpose(&of);
  ax_program_release(params.body);
}

/* --- Running --- */

static bool interprets(const ax_eqn *eqn) { return ((const ax_kernel_params *)eqn->params)->interpret; }

ax_status ax_kernel_operand_types(const ax_eval_args *args, ax_type **out) {
  const uint32_t count = args->eqn->in_count;
  ax_type *types = *out = ax_calloc((size_t)count + 1, sizeof types[0]);
  if (types == NULL) return ax_out_of_memory(count * sizeof types[0]);
  for (uint32_t i = 0; i < count; i++) {
    const ax_tensor *x = args->in[(size_t)i * args->lanes];
    types[i] = ax_array_type(x->dtype, AX_LIST(x->rank, x->dims));
  }
  return AX_OK;
}

ax_status ax_kernel_call_eval(const ax_eval_args *args) {
  ax_type *types;
  ax_program *plain = NULL;
  if (args->hooks != NULL && args->hooks->kernel != NULL) AX_TRY(args->hooks->kernel(args, args->hooks->kernel_context));
  if (!interprets(args->eqn)) return ax_kernel_eval(args);
  AX_TRY(ax_kernel_operand_types(args, &types));
  ax_status status = ax_kernel_discharge_run(args->eqn, &(ax_discharge_options){.in = types, .in_count = args->eqn->in_count}, &plain);
  ax_free(types);
  if (status == AX_OK) status = ax_evaluate_lanes(args->driver, plain, args->lanes, args->device, args->in, args->out);
  ax_program_release(plain);
  return status;
}

static ax_status discharge_of(const ax_program *program, const ax_eqn *eqn, const ax_discharge_options *how, ax_program **out) {
  ax_type *types = ax_calloc((size_t)eqn->in_count + 1, sizeof types[0]);
  *out = NULL;
  if (types == NULL) return ax_out_of_memory(eqn->in_count * sizeof types[0]);
  for (uint32_t i = 0; i < eqn->in_count; i++) types[i] = program->types[eqn->in[i]];
  ax_discharge_options options = *how;
  options.in = types;
  options.in_count = eqn->in_count;
  ax_status status = ax_kernel_discharge_run(eqn, &options, out);
  ax_free(types);
  return status;
}

ax_status ax_kernel_call_lower_plain(ax_lower *lower, const ax_eqn *eqn, ax_plain_manner manner, const uint32_t *in, uint32_t *out) {
  const ax_discharge_options how = {
      .beside = manner != AX_PLAIN_IN_ORDER, .apart = manner != AX_PLAIN_IN_ORDER, .checked = manner == AX_PLAIN_CHECKED};
  ax_program *plain;
  AX_TRY(discharge_of(lower->program, eqn, &how, &plain));
  AX_TRY(ax_plan_keep(lower->plan, plain));
  return ax_lower_call(lower, plain, in, out);
}

ax_status ax_kernel_call_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  ax_program *plain;
  ax_status status = discharge_of(hlo->program, eqn, &(ax_discharge_options){.beside = true}, &plain);
  if (status != AX_OK) return status == AX_ABSENT ? ax_error_context(status, "no StableHLO: ") : status;
  status = hlo->call_program(hlo, plain, in, out);
  ax_program_release(plain);
  return status;
}
