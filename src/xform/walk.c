/* Helpers shared by the transforms: a walk from one program into the builder of another, and the checks on rules' results. */
#include "ir/prim.h"
#include "prim/bind.h"
#include "xform/xform.h"

bool ax_walk_init(ax_program_walk *walk, const ax_program *program) {
  *walk = (ax_program_walk){.program = program, .most = 1};
  for (uint32_t i = 0; i < program->eqn_count; i++) {
    const ax_eqn *eqn = &program->eqns[i];
    if (eqn->in_count > walk->most) walk->most = eqn->in_count;
    if (eqn->out_count > walk->most) walk->most = eqn->out_count;
  }
  walk->value = ax_walk_alloc(walk, program->value_count * sizeof walk->value[0]);
  walk->in = ax_walk_alloc(walk, walk->most * sizeof walk->in[0]);
  return walk->value != NULL && walk->in != NULL;
}

void ax_walk_deinit(ax_program_walk *walk) { ax_arena_deinit(&walk->arena); }

void *ax_walk_alloc(ax_program_walk *walk, size_t bytes) {
  void *memory = ax_arena_alloc(&walk->arena, bytes);
  if (memory == NULL) ax_fail(ax_out_of_memory(bytes));
  return memory;
}

const ax_value *ax_walk_operands(ax_program_walk *walk, const ax_eqn *eqn) {
  ax_builder_stem(ax_builder_current(), eqn);
  for (uint32_t i = 0; i < eqn->in_count; i++) walk->in[i] = walk->value[eqn->in[i]];
  return walk->in;
}

void ax_walk_replay(ax_program_walk *walk, const ax_eqn *eqn) {
  const ax_value *in = ax_walk_operands(walk, eqn);
  ax_bind(eqn->prim, eqn->params, in, eqn->in_count, walk->value + eqn->out, eqn->out_count);
}

void ax_memo_enter(ax_builder *builder, ax_memo *own) {
  if (builder->memo == NULL) builder->memo = own;
}

ax_status ax_memo_find(const char *question, const ax_program *program, ax_text *key, ax_memo_entry **entry) {
  const ax_builder *builder = ax_builder_current();
  bool failed = key->failed;
  *entry = NULL;
  if (builder != NULL && builder->memo != NULL && !failed) {
    *entry = ax_memo_ask(builder->memo, question, program, key->data, key->length);
    failed = *entry == NULL;
  }
  ax_text_deinit(key);
  return failed ? ax_out_of_memory(0) : AX_OK;
}

ax_status ax_verified(ax_status status, ax_program **made) {
#ifndef NDEBUG
  if (status == AX_OK) status = ax_program_verify(*made);
  if (status != AX_OK) {
    ax_program_release(*made);
    *made = NULL;
  }
#else
  (void)made;
#endif
  return status;
}

ax_status ax_finish_clean(ax_builder *builder, const ax_value *outs, uint32_t out_count, ax_program **out) {
  ax_program *raw;
  *out = NULL;
  AX_TRY(ax_builder_finish(builder, outs, out_count, &raw, NULL, NULL));
  ax_status status = ax_program_dce(raw, out);
  ax_program_release(raw);
  return status;
}

bool ax_check_rule(const ax_eqn *eqn, const char *rule, ax_value made, const ax_type *wanted) {
  ax_type type = ax_typeof(made);
  if (ax_failed()) return false;
  if (ax_type_equal(&type, wanted)) return true;
  const ax_mesh *axes = &ax_builder_current()->axes;
  ax_fail(ax_error(AX_INTERNAL, "%s: its %s rule made %s where %s is wanted", eqn->prim->name, rule,
                   ax_type_string(&type, axes), ax_type_string(wanted, axes)));
  return false;
}

bool ax_has_tangent(const ax_program *program, const bool *wrt, uint32_t i) {
  return wrt != NULL ? wrt[i] : ax_is_differentiable(program->types[i].dtype);
}

ax_status ax_check_wrt(const ax_program *program, const bool *wrt) {
  for (uint32_t i = 0; i < program->in_count; i++)
    if (ax_has_tangent(program, wrt, i) && !ax_is_differentiable(program->types[i].dtype))
      return ax_error(AX_INVALID_ARGUMENT, "input %u is %s: only floats have derivatives", i,
                      ax_type_string(&program->types[i], &program->axes));
  return AX_OK;
}

ax_status ax_wrt_mask(const ax_program *program, ax_args wrt, bool **out) {
  bool *mask = *out = ax_calloc((size_t)program->in_count + 1, sizeof mask[0]);
  if (mask == NULL) return ax_out_of_memory(program->in_count);
  for (uint32_t i = 0; i < program->in_count && ax_args_all(wrt); i++) mask[i] = ax_is_differentiable(program->types[i].dtype);
  ax_status status = ax_args_all(wrt) ? AX_OK : ax_args_mask(wrt, "input", program->in_count, mask);
  if (status == AX_OK) return AX_OK;
  ax_free(mask);
  *out = NULL;
  return status;
}
