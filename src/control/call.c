/* A program called inside a trace: its equations bound there one by one, so that operands which vary more than its inputs did are
   made to agree as anywhere else. */
#include "prim/bind.h"

static ax_status check_call(const ax_program *program, uint32_t in_count, uint32_t out_count) {
  AX_TRY(ax_require(program, "program"));
  AX_TRY(ax_list_check("call", "the program takes", "value", in_count, program->in_count));
  return ax_list_check("call", "the program gives", "value", out_count, program->out_count);
}

/* map: program value id -> handle in the current trace. */
static void replay(const ax_program *program, ax_value *map) {
  ax_builder *builder = ax_builder_current();
  const char *here = builder->location;
  uint32_t line = builder->line;
  for (uint32_t i = 0; i < program->eqn_count && !ax_failed(); i++) {
    const ax_eqn *eqn = &program->eqns[i];
    ax_value *in = ax_arena_alloc(&builder->arena, eqn->in_count * sizeof in[0]);
    if (in == NULL) {
      ax_fail(ax_out_of_memory(eqn->in_count * sizeof in[0]));
      return;
    }
    for (uint32_t j = 0; j < eqn->in_count; j++) in[j] = map[eqn->in[j]];
    ax_builder_locate(builder, eqn->location != NULL ? eqn->location : here);
    builder->line = eqn->line;
    ax_bind(eqn->prim, eqn->params, in, eqn->in_count, map + eqn->out, eqn->out_count);
  }
  builder->location = here;
  builder->line = line;
}

static void check_argument(const ax_program *program, uint32_t index, ax_value value) {
  ax_type type = ax_typeof(value);
  if (ax_failed() || (type.dtype == program->types[index].dtype && ax_same_shape(&type, &program->types[index]))) return;
  const ax_mesh *axes = &ax_builder_current()->axes;
  ax_fail(ax_error(AX_INVALID_ARGUMENT, "call: operand %u is %s, but the program takes %s", index,
                   ax_type_string(&type, axes), ax_type_string(&program->types[index], axes)));
}

void (ax_call)(const ax_program *program, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out) {
  ax_status status = check_call(program, in_count, out_count);
  if (status != AX_OK || ax_failed()) {
    ax_poison_list(out_count, program != NULL ? program->out_count : 0, out);
    if (status != AX_OK) ax_fail(status);
    return;
  }
  in_count = program->in_count;
  out_count = program->out_count;
  in = ax_take_operands(in, in_count, out, out_count);
  if (ax_failed()) return;
  ax_value *map = ax_arena_alloc(&ax_builder_current()->arena, program->value_count * sizeof map[0]);
  if (map == NULL) {
    ax_fail(ax_out_of_memory(program->value_count * sizeof map[0]));
    return;
  }
  for (uint32_t i = 0; i < in_count; i++) {
    check_argument(program, i, in[i]);
    map[i] = in[i];
  }
  replay(program, map);
  for (uint32_t i = 0; i < out_count && !ax_failed(); i++) out[i] = map[program->outs[i]];
}
