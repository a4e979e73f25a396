/* Functions of scalars: traced with calls written out, checked, and applied to arrays operation by operation, which pointwise
   primitives allow, since their rules take any shape. */
#include "ir/number.h"
#include "prim/scalars.h"

#include <string.h>

#include "prim/prims.h"
#include "prim/region.h"
#include "prim/rules.h"

/* --- Checking --- */

/* bitcast_convert_type of numbers of one size; a result of another size is no scalar. */
static bool is_pointwise(const ax_prim *prim) {
  const bool each = prim->batch == ax_batch_pointwise || prim == &ax_prim_select_n || prim == &ax_prim_bitcast_convert_type;
  return prim->kind == AX_LOCAL && each;
}

/* A call of its first program, whatever derivatives it has. */
static bool is_call(const ax_prim *prim) {
  return prim == &ax_prim_closed_call || prim == &ax_prim_checkpoint || prim == &ax_prim_custom_jvp || prim == &ax_prim_custom_vjp;
}

static bool is_scalar(const ax_type *type) { return type->form == AX_ARRAY && type->rank == 0; }

ax_status ax_scalars_check(const ax_program *body, const char *part) {
  if (body->axes.count != 0) return ax_error(AX_INVALID_ARGUMENT, "%s must be a program without axes", part);
  for (uint32_t i = 0; i < body->in_count; i++)
    if (!is_scalar(&body->types[i]))
      return ax_error(AX_INVALID_ARGUMENT, "%s takes %s, which is no scalar", part, ax_type_string(&body->types[i], NULL));
  for (uint32_t i = 0; i < body->eqn_count; i++) {
    const ax_eqn *eqn = &body->eqns[i];
    if (!is_pointwise(eqn->prim) && ax_eqn_literal(eqn) == NULL)
      return ax_error(AX_INVALID_ARGUMENT, "%s: %s is no operation on scalars", part, eqn->prim->name);
    for (uint32_t k = 0; k < eqn->out_count; k++)
      if (!is_scalar(&body->types[eqn->out + k]))
        return ax_error(AX_INVALID_ARGUMENT, "%s: %s makes %s, which is no scalar", part, eqn->prim->name,
                        ax_type_string(&body->types[eqn->out + k], NULL));
  }
  return AX_OK;
}

const ax_prim *ax_scalars_operation(const ax_program *body) {
  if (body->in_count != 2 || body->out_count != 1 || body->eqn_count != 1) return NULL;
  const ax_eqn *eqn = &body->eqns[0];
  if (eqn->in_count != 2 || body->outs[0] != eqn->out || eqn->in[0] + eqn->in[1] != 1) return NULL;
  return eqn->prim->scalar != AX_SCALAR_NONE && eqn->prim->param_count == 0 ? eqn->prim : NULL;
}

/* --- Applying --- */

/* Scalars among the operands are constants; pointwise operations take operands of one shape. */
static void apply(const ax_eqn *eqn, const ax_value *value, ax_value *out) {
  ax_value in[4];
  for (uint32_t i = 0; i < eqn->in_count; i++) in[i] = value[eqn->in[i]];
  if (eqn->in_count > 1 && !ax_broadcast_together(in, eqn->in_count)) return;
  ax_bind(eqn->prim, eqn->params, in, eqn->in_count, out, eqn->out_count);
}

/* The values of the program's equations; calls in it are written out, and layouts left out, as scalars have none. */
static void replay(const ax_program *program, const ax_value *in, ax_value *out) {
  ax_value *value = ax_trace_alloc(program->value_count * sizeof value[0]);
  if (value == NULL) return;
  memcpy(value, in, program->in_count * sizeof in[0]);
  for (uint32_t i = 0; i < program->eqn_count && !ax_failed(); i++) {
    const ax_eqn *eqn = &program->eqns[i];
    if (eqn->prim == &ax_prim_sharding_constraint) {
      value[eqn->out] = value[eqn->in[0]];
    } else if (is_call(eqn->prim)) {
      ax_value *operands = ax_trace_alloc(eqn->in_count * sizeof operands[0]);
      if (operands == NULL) return;
      for (uint32_t j = 0; j < eqn->in_count; j++) operands[j] = value[eqn->in[j]];
      replay(ax_eqn_program(eqn, 0), operands, value + eqn->out);
    } else if (eqn->in_count > 4 || !(is_pointwise(eqn->prim) || ax_eqn_literal(eqn) != NULL)) {
      ax_fail(ax_error(AX_INVALID_ARGUMENT, "%s is no operation on scalars", eqn->prim->name));
    } else {
      apply(eqn, value, value + eqn->out);
    }
  }
  for (uint32_t k = 0; k < program->out_count; k++) out[k] = value[program->outs[k]];
}

void ax_scalars_call(const ax_program *body, const ax_value *in, ax_value *out) {
  replay(body, in, out);
  for (uint32_t k = 0; k < body->out_count && !ax_failed(); k++) {
    ax_value pair[] = {out[k], in[0]}; /* a result that no input decides is a scalar yet */
    if (ax_typeof(out[k]).rank == 0 && ax_broadcast_together(pair, 2)) out[k] = pair[0];
  }
}

/* --- Tracing --- */

static ax_status written_out(const ax_program *program, const ax_type *types, ax_program **out) {
  const ax_mesh none = {0};
  ax_builder builder;
  ax_value *in = ax_region_begin(&builder, &none, types, program->in_count);
  ax_value *outs = ax_trace_alloc(program->out_count * sizeof outs[0]);
  if (in != NULL && outs != NULL) replay(program, in, outs);
  return ax_region_finish(&builder, outs, program->out_count, out);
}

/* Equations of a body that is traced as any other, which may have captured values. */
static ax_status without_captures(const char *function, const char *part, const ax_body *traced, const ax_type *types, ax_program **out) {
  if (traced->captured_count > 0)
    return ax_error(AX_INVALID_ARGUMENT, "%s: the %s uses a value from outside, where it may use its operands and numbers alone",
                    function, part);
  AX_TRY(written_out(traced->program, types, out));
  return ax_scalars_check(*out, part);
}

ax_status ax_scalars_trace(const char *function, const char *part, ax_fn body, const ax_dtype *in, ax_program **out) {
  const ax_mesh none = {0};
  ax_body traced = {0};
  *out = NULL;
  ax_type *types = ax_calloc(body.in_count + 1, sizeof types[0]);
  if (types == NULL) return ax_out_of_memory(body.in_count * sizeof types[0]);
  for (uint32_t i = 0; i < body.in_count; i++) types[i] = ax_array_type(in[i], AX_DIMS());
  const ax_body_options options = {.axes = &none, .owner = function, .part = part, .function = body, .in = types};
  ax_status status = ax_body_trace(&options, &traced);
  if (status == AX_OK) status = without_captures(function, part, &traced, types, out);
  if (status != AX_OK) {
    ax_program_release(*out);
    *out = NULL;
  }
  ax_body_deinit(&traced);
  ax_free(types);
  return status;
}

/* --- Running --- */

ax_status ax_scalars_open(ax_arena *arena, const ax_program *body, ax_scalars_run *out) {
  ax_element *cells = ax_arena_alloc(arena, body->value_count * sizeof cells[0]);
  *out = (ax_scalars_run){.body = body, .value = ax_arena_alloc(arena, body->value_count * sizeof out->value[0])};
  if (cells == NULL || out->value == NULL) return ax_out_of_memory(body->value_count * sizeof out->value[0]);
  for (uint32_t i = 0; i < body->value_count; i++) {
    cells[i] = (ax_element){0};
    out->value[i] = (ax_tensor){.dtype = body->types[i].dtype, .data = &cells[i]};
  }
  return AX_OK;
}

ax_status ax_scalars_step(const ax_scalars_run *run) {
  const int64_t device = 0;
  for (uint32_t i = 0; i < run->body->eqn_count; i++) {
    const ax_eqn *eqn = &run->body->eqns[i];
    ax_tensor *in[4], *out[] = {&run->value[eqn->out]};
    for (uint32_t j = 0; j < eqn->in_count && j < 4; j++) in[j] = &run->value[eqn->in[j]];
    AX_TRY(eqn->prim->eval(
        &(ax_eval_args){.eqn = eqn, .axes = &run->body->axes, .lanes = 1, .device = &device, .in = in, .out = out}));
  }
  return AX_OK;
}
