/* Lowering and export of equations as programs of others. */
#include "prim/expand.h"

#include "hlo/hlo.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "prim/bind.h"

/* The parts of a complex number that is unreduced by max or min are no parts of what it is of the whole: each device has its own. */
static ax_type own_parts(ax_type type) {
  ax_spread *spread = &type.spread;
  if (!ax_is_complex(type.dtype) || spread->kind == AX_UNREDUCED_SUM) return type;
  spread->varying |= spread->unreduced;
  spread->unreduced = 0;
  spread->kind = AX_UNREDUCED_SUM;
  return type;
}

/* One of the two functions is NULL. */
static ax_status trace(const ax_program *program, const ax_eqn *eqn, ax_expansion one, ax_expansion_all all, ax_program **out) {
  const uint32_t count = one != NULL ? 1 : eqn->out_count;
  ax_builder builder;
  ax_context numbers;
  ax_keep_numbers(&numbers);
  ax_builder_begin(&builder, &program->axes);
  ax_builder_stem(&builder, eqn);
  ax_value *in = ax_trace_alloc(eqn->in_count * sizeof in[0]), *made = ax_trace_alloc(count * sizeof made[0]);
  for (uint32_t i = 0; i < eqn->in_count && in != NULL; i++) {
    const ax_type type = own_parts(program->types[eqn->in[i]]);
    in[i] = ax_builder_input(&builder, &type);
  }
  for (uint32_t k = 0; k < count && made != NULL; k++) made[k] = ax_poison;
  if (in != NULL && made != NULL && one != NULL) made[0] = one(eqn, in);
  if (in != NULL && made != NULL && all != NULL) all(eqn, in, made);
  ax_status status = ax_builder_finish(&builder, made, count, out, NULL, NULL);
  ax_context_leave(&numbers);
  return status;
}

/* Checks for NaN and infinity look at the results of the equation as a whole, so they are off for the equations it is made of. */
static ax_status lower_kept(ax_lower *lower, ax_program *program, const uint32_t *in, uint32_t *out) {
  ax_status status = ax_plan_keep(lower->plan, program);
  if (status != AX_OK) return status;
  uint32_t check = lower->plan->options.check;
  lower->plan->options.check = 0;
  status = ax_lower_program(lower, program, in, out);
  lower->plan->options.check = check;
  return status;
}

static ax_status write_here(ax_hlo *hlo, ax_program *program, const uint32_t *in, uint32_t *out) {
  ax_status status = hlo->inline_program(hlo, program, in, out);
  ax_program_release(program);
  return status;
}

ax_status ax_lower_expanded(ax_lower *lower, const ax_eqn *eqn, ax_expansion function, const uint32_t *in, uint32_t *out) {
  ax_program *program;
  AX_TRY(trace(lower->program, eqn, function, NULL, &program));
  return lower_kept(lower, program, in, out);
}

ax_status ax_lower_expanded_all(ax_lower *lower, const ax_eqn *eqn, ax_expansion_all function, const uint32_t *in,
                                uint32_t *out) {
  ax_program *program;
  AX_TRY(trace(lower->program, eqn, NULL, function, &program));
  return lower_kept(lower, program, in, out);
}

ax_status ax_hlo_expanded(ax_hlo *hlo, const ax_eqn *eqn, ax_expansion function, const uint32_t *in, uint32_t *out) {
  ax_program *program;
  AX_TRY(trace(hlo->program, eqn, function, NULL, &program));
  return write_here(hlo, program, in, out);
}

ax_status ax_hlo_called_all(ax_hlo *hlo, const ax_eqn *eqn, ax_expansion_all function, const uint32_t *in, uint32_t *out) {
  ax_eqn from_anywhere = *eqn;
  ax_program *program;
  from_anywhere.location = NULL;
  from_anywhere.line = from_anywhere.number = 0;
  AX_TRY(trace(hlo->program, &from_anywhere, NULL, function, &program));
  ax_status status = hlo->call_program(hlo, program, in, out);
  ax_program_release(program);
  return status;
}

ax_status ax_hlo_expanded_all(ax_hlo *hlo, const ax_eqn *eqn, ax_expansion_all function, const uint32_t *in, uint32_t *out) {
  ax_program *program;
  AX_TRY(trace(hlo->program, eqn, NULL, function, &program));
  return write_here(hlo, program, in, out);
}
