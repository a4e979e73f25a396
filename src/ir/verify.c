/* The verifier checks all invariants of a program anew.

     values     inputs are 0 .. in_count; each equation's results are the next ids; operands and outputs come earlier
     types      a dtype, at most AX_MAX_RANK dimensions, a size that can be counted; axis sets are disjoint, within the
                environment, and hold no unchecked axis
     equations  each result has the type that its primitive infers
     futures    are no inputs and no outputs; one equation ends each
     tokens     are used once at most
     memory     is no result
     nested     programs hold the same, and their environment begins with their parent's; one that occurs often is checked once

   Only a defect in Axle can break one, so the status is AX_INTERNAL. */
#include "ir/memo.h"
#include "ir/prim.h"
#include "ir/text.h"

static ax_status verify(const ax_program *program, ax_memo *memo);

static ax_status check_type(const ax_type *type, const ax_mesh *axes) {
  return ax_type_check(type, axes) == AX_OK ? AX_OK : ax_error(AX_INTERNAL, "%s", ax_message());
}

static ax_status check_nested(const ax_program *program, const ax_program *nested, ax_memo *memo) {
  if (nested == NULL) return ax_error(AX_INTERNAL, "a program is missing");
  if (!ax_axes_begin_with(&nested->axes, &program->axes))
    return ax_error(AX_INTERNAL, "the axes of a nested program do not begin with those around it");
  ax_memo_entry *entry = ax_memo_ask(memo, "verified", nested, NULL, 0);
  if (entry == NULL) return ax_out_of_memory(sizeof *entry);
  if (!entry->known) AX_TRY(verify(nested, memo));
  entry->known = true;
  return AX_OK;
}

static ax_status check_params(const ax_program *program, const ax_eqn *eqn, ax_memo *memo) {
  const ax_program *nested;
  for (uint32_t k = 0; (nested = ax_eqn_program(eqn, k)) != NULL; k++) AX_TRY(check_nested(program, nested, memo));
  return AX_OK;
}

/* `types`: room for the operands' and results'. */
static ax_status check_types(const ax_program *program, const ax_eqn *eqn, ax_type *types) {
  ax_type *out = types + eqn->in_count;
  for (uint32_t i = 0; i < eqn->in_count; i++) types[i] = program->types[eqn->in[i]];
  AX_TRY(ax_infer_types(eqn->prim, &program->axes, eqn->params, types, eqn->in_count, out, eqn->out_count));
  for (uint32_t i = 0; i < eqn->out_count; i++) {
    const ax_type *type = &program->types[eqn->out + i];
    AX_TRY(check_type(type, &program->axes));
    if (!ax_type_equal(&out[i], type))
      return ax_error(AX_INTERNAL, "result %u is %s by inference", i, ax_type_string(&out[i], &program->axes));
  }
  return AX_OK;
}

/* next: the first id that does not exist yet. */
static ax_status check_eqn(const ax_program *program, const ax_eqn *eqn, uint32_t next, ax_memo *memo, ax_arena *scratch) {
  for (uint32_t i = 0; i < eqn->in_count; i++)
    if (eqn->in[i] >= next) return ax_error(AX_INTERNAL, "operand %u is used before it is defined", i);
  if (eqn->out_count > 0 && eqn->out != next) return ax_error(AX_INTERNAL, "its results are not the next values");
  if (eqn->out_count > program->value_count - next) return ax_error(AX_INTERNAL, "more results than there are values");
  if ((eqn->params == NULL) != (eqn->prim->params_bytes == 0))
    return ax_error(AX_INTERNAL, "its parameters are missing");
  AX_TRY(check_params(program, eqn, memo));
  if (eqn->out_count != ax_prim_outs(eqn->prim, eqn->params, eqn->in_count))
    return ax_error(AX_INTERNAL, "it has %u results, not %u", eqn->out_count, ax_prim_outs(eqn->prim, eqn->params, eqn->in_count));
  size_t bytes = ((size_t)eqn->in_count + eqn->out_count) * sizeof(ax_type);
  ax_type *types = ax_arena_alloc(scratch, bytes);
  return types != NULL ? check_types(program, eqn, types) : ax_out_of_memory(bytes);
}

/* Names the equation and does not print its operands, since the values themselves may be invalid. */
static ax_status name_eqn(ax_status status, const ax_program *program, uint32_t index) {
  const ax_eqn *eqn = &program->eqns[index];
  const char *name = eqn->prim != NULL ? eqn->prim->name : "without a primitive";
  if (status == AX_OUT_OF_MEMORY) return status;
  if (eqn->line == 0) return ax_error_context(AX_INTERNAL, "verify: equation %u, %s: ", index, name);
  return ax_error_context(AX_INTERNAL, "verify: equation %u (line %u), %s: ", index, eqn->line, name);
}

static ax_status check_outputs(const ax_program *program, uint32_t values) {
  if (values != program->value_count) return ax_error(AX_INTERNAL, "verify: values that no equation computes");
  for (uint32_t i = 0; i < program->out_count; i++)
    if (program->outs[i] >= program->value_count) return ax_error(AX_INTERNAL, "verify: output %u is not a value", i);
  ax_status status = ax_results_check(program->types, program->outs, program->out_count, &program->axes);
  if (status == AX_OK)
    status = ax_linear_check(program->types, program->value_count, program->eqns, program->eqn_count, program->outs,
                             program->out_count, &program->axes);
  return status != AX_INVALID_ARGUMENT ? status : ax_error_context(AX_INTERNAL, "verify: ");
}

static ax_status verify(const ax_program *program, ax_memo *memo) {
  uint32_t next = program->in_count;
  if (next > program->value_count) return ax_error(AX_INTERNAL, "verify: more inputs than values");
  for (uint32_t i = 0; i < program->in_count; i++) {
    ax_status status = check_type(&program->types[i], &program->axes);
    if (status != AX_OK) return ax_error_context(status, "verify: input %u: ", i);
  }
  for (uint32_t i = 0; i < program->eqn_count; i++) {
    const ax_eqn *eqn = &program->eqns[i];
    ax_arena scratch = {0};
    ax_status status =
        eqn->prim != NULL ? check_eqn(program, eqn, next, memo, &scratch) : ax_error(AX_INTERNAL, "no primitive");
    ax_arena_deinit(&scratch);
    if (status != AX_OK) return name_eqn(status, program, i);
    next += eqn->out_count;
  }
  return check_outputs(program, next);
}

ax_status ax_program_verify(const ax_program *program) {
  AX_TRY(ax_require(program, "program"));
  ax_memo memo = {0};
  const ax_status status = verify(program, &memo);
  ax_memo_deinit(&memo);
  return status;
}
