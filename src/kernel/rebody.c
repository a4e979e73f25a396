/* See rebody.h. Nothing in a body is typed to spread, so that equations are taken over as they are. */
#include "kernel/rebody.h"

#include "ir/prim.h"

static void rebind(const ax_rebody *how, const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  ax_arena arena = {0};
  void *params = ax_eqn_own_params(eqn, &arena);
  ax_program **at;
  uint32_t programs = 0;
  if (params == NULL && eqn->prim->params_bytes > 0) ax_fail(ax_out_of_memory(eqn->prim->params_bytes));
  for (; !ax_failed() && params != NULL && (at = ax_params_program(eqn->prim, params, programs)) != NULL; programs++) {
    ax_status status = ax_rebody_program(how, *at, at);
    if (status != AX_OK) ax_fail(status);
  }
  if (!ax_failed() && params != NULL) how->params(how->context, eqn, params);
  if (!ax_failed()) ax_emit(eqn->prim, params, in, eqn->in_count, out, eqn->out_count);
  while (programs > 0) ax_program_release(*ax_params_program(eqn->prim, params, --programs));
  ax_arena_deinit(&arena);
}

void ax_rebody_bind(const ax_rebody *how, const ax_program *program, const ax_value *in, ax_value *out) {
  ax_value *values = ax_trace_alloc((program->value_count + 1) * sizeof values[0]);
  ax_value *operands = ax_trace_alloc((ax_most_operands(program) + 1) * sizeof operands[0]);
  if (ax_failed()) return;
  for (uint32_t i = 0; i < program->in_count; i++) values[i] = in[i];
  for (uint32_t e = 0; e < program->eqn_count && !ax_failed(); e++) {
    const ax_eqn *eqn = &program->eqns[e];
    ax_builder_stem(ax_builder_current(), eqn);
    for (uint32_t i = 0; i < eqn->in_count; i++) operands[i] = values[eqn->in[i]];
    if (!how->bind(how->context, eqn, operands, values + eqn->out)) rebind(how, eqn, operands, values + eqn->out);
  }
  for (uint32_t k = 0; k < program->out_count; k++) out[k] = ax_failed() ? ax_poison : values[program->outs[k]];
}

ax_status ax_rebody_program(const ax_rebody *how, const ax_program *program, ax_program **out) {
  ax_builder builder;
  const ax_mesh axes = how->axes(how->context, &program->axes);
  ax_value *in = ax_region_begin(&builder, &axes, program->types, program->in_count);
  ax_value *outs = ax_trace_alloc((program->out_count + 1) * sizeof outs[0]);
  if (in != NULL && outs != NULL) ax_rebody_bind(how, program, in, outs);
  return ax_region_finish(&builder, outs, program->out_count, out);
}
