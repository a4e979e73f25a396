/* Programs as objects: reference counts, queries, tracing and calling. */
#include "ir/program.h"

#include "ir/memo.h"
#include "ir/prim.h"

#include <string.h>

ax_program *ax_program_retain(ax_program *program) {
  if (program != NULL) atomic_fetch_add_explicit(&program->references, 1, memory_order_relaxed);
  return program;
}

void ax_program_release(ax_program *program) {
  if (program == NULL || atomic_fetch_sub(&program->references, 1) != 1) return;
  for (uint32_t i = 0; i < program->eqn_count; i++)
    if (program->eqns[i].params != NULL) ax_params_release(program->eqns[i].prim, program->eqns[i].params);
  ax_arena_deinit(&program->arena);
  ax_free(program);
}

uint32_t ax_program_in_count(const ax_program *program) { return program != NULL ? program->in_count : 0; }
uint32_t ax_program_out_count(const ax_program *program) { return program != NULL ? program->out_count : 0; }
const ax_mesh *ax_program_axes(const ax_program *program) { return program != NULL ? &program->axes : NULL; }

const ax_type *ax_program_in_type(const ax_program *program, uint32_t index) {
  return index < ax_program_in_count(program) ? &program->types[index] : NULL;
}

const ax_type *ax_program_out_type(const ax_program *program, uint32_t index) {
  return index < ax_program_out_count(program) ? &program->types[program->outs[index]] : NULL;
}

void ax_string_free(char *text) { ax_free(text); }

bool ax_program_same_locations(const ax_program *a, const ax_program *b, bool lines) {
  if (a == b) return true;
  if (a->eqn_count != b->eqn_count) return false;
  for (uint32_t i = 0; i < a->eqn_count; i++) {
    const ax_eqn *x = &a->eqns[i], *y = &b->eqns[i];
    if (x->prim != y->prim || (lines && x->line != y->line)) return false;
    if (x->location != y->location && (x->location == NULL || y->location == NULL || strcmp(x->location, y->location) != 0))
      return false;
    const ax_program *body, *other;
    for (uint32_t k = 0; (body = ax_eqn_program(x, k)) != NULL; k++)
      if ((other = ax_eqn_program(y, k)) == NULL || !ax_program_same_locations(body, other, lines)) return false;
  }
  return true;
}

/* Equations may hold one program many times over: each is looked into once, or without memory as often as it is held. */
static bool holds(ax_memo *memo, const ax_program *program, const ax_prim *prim) {
  ax_memo_entry *entry = ax_memo_ask(memo, "holds", program, NULL, 0);
  const ax_program *held;
  bool found = false;
  if (entry != NULL && entry->known) return entry->count != 0;
  for (uint32_t e = 0; e < program->eqn_count && !found; e++) {
    found = program->eqns[e].prim == prim;
    for (uint32_t k = 0; !found && (held = ax_eqn_program(&program->eqns[e], k)) != NULL; k++) found = holds(memo, held, prim);
  }
  if (entry != NULL) entry->known = true, entry->count = found;
  return found;
}

bool ax_program_holds(const ax_program *program, const ax_prim *prim) {
  ax_memo memo = {0};
  const bool found = holds(&memo, program, prim);
  ax_memo_deinit(&memo);
  return found;
}

ax_program **ax_params_program(const ax_prim *prim, void *params, uint32_t index) {
  for (uint32_t i = 0; i < prim->param_count; i++) {
    const ax_param *param = &prim->params[i];
    void *field = (char *)params + param->offset;
    if (param->kind == AX_PARAM_PROGRAM && index-- == 0) return field;
    if (param->kind != AX_PARAM_PROGRAMS) continue;
    const ax_programs *programs = field;
    if (index < programs->count) return &programs->v[index];
    index -= programs->count;
  }
  return NULL;
}

ax_program *ax_eqn_program(const ax_eqn *eqn, uint32_t index) {
  ax_program **at = ax_params_program(eqn->prim, (void *)eqn->params, index);
  return at != NULL ? *at : NULL;
}

void *ax_eqn_own_params(const ax_eqn *eqn, ax_arena *arena) {
  const ax_prim *prim = eqn->prim;
  char *made = prim->params_bytes > 0 ? ax_arena_copy(arena, eqn->params, prim->params_bytes) : NULL;
  for (uint32_t i = 0; made != NULL && i < prim->param_count; i++) {
    if (prim->params[i].kind != AX_PARAM_PROGRAMS) continue;
    ax_programs *programs = (ax_programs *)(void *)(made + prim->params[i].offset);
    programs->v = ax_arena_copy(arena, programs->v, programs->count * sizeof programs->v[0]);
    if (programs->v == NULL) return NULL;
  }
  return made;
}

/* A message's link is the last parameter of its record. */
static bool has_odd_link(const ax_eqn *eqn) {
  return *(const int64_t *)ax_param_at(eqn, &eqn->prim->params[eqn->prim->param_count - 1]) % 2 != 0;
}

uint32_t ax_eqn_effects(const ax_eqn *eqn) {
  uint32_t effects = eqn->prim->effects;
  const ax_program *program;
  ax_axis_set axes;
  if ((effects & AX_EFFECT_MESSAGE) != 0 && has_odd_link(eqn)) effects |= AX_EFFECT_TANGENT;
  if (eqn->prim->outside != NULL) return effects | eqn->prim->outside(eqn->params, &axes);
  for (uint32_t i = 0; (program = ax_eqn_program(eqn, i)) != NULL; i++) effects |= program->effects;
  return effects;
}

const ax_eqn *ax_find_effect(const ax_program *program, uint32_t effect) {
  while ((program->effects & effect) != 0) {
    const ax_eqn *eqn = program->eqns;
    while ((ax_eqn_effects(eqn) & effect) == 0) eqn++;
    if ((eqn->prim->effects & effect) != 0 || eqn->prim->outside != NULL) return eqn;
    for (uint32_t i = 0; ((program = ax_eqn_program(eqn, i))->effects & effect) == 0;) i++;
  }
  return NULL;
}

ax_axis_set ax_eqn_named(const ax_eqn *eqn, const ax_mesh *axes) {
  ax_axis_set named = 0;
  const ax_program *program;
  for (uint32_t i = 0; (program = ax_eqn_program(eqn, i)) != NULL; i++)
    named |= program->named; /* their environments begin with this one */
  ax_axis_set met = 0;
  if (eqn->prim->outside != NULL) (void)eqn->prim->outside(eqn->params, &met);
  named |= met;
  for (uint32_t p = 0; p < eqn->prim->param_count && eqn->prim->kind != AX_REGION; p++) {
    const ax_axes *names = eqn->prim->params[p].kind == AX_PARAM_AXES ? ax_param_at(eqn, &eqn->prim->params[p]) : NULL;
    for (uint32_t k = 0; names != NULL && k < names->count; k++) {
      int axis = ax_mesh_find(axes, names->name[k]);
      if (axis >= 0) named |= (ax_axis_set)1 << axis;
    }
  }
  return named & ax_all_axes(axes);
}

ax_effects ax_program_effects(const ax_program *program) {
  if (program == NULL) return (ax_effects){0};
  return (ax_effects){program->named, (program->effects & AX_EFFECT_MESSAGE) != 0};
}

uint32_t ax_most_operands(const ax_program *program) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < program->eqn_count; i++)
    if (program->eqns[i].in_count > most) most = program->eqns[i].in_count;
  return most;
}

uint32_t ax_most_results(const ax_program *program) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < program->eqn_count; i++)
    if (program->eqns[i].out_count > most) most = program->eqns[i].out_count;
  return most;
}

uint32_t ax_eqn_nesting(const ax_eqn *eqn) {
  uint32_t nesting = 0;
  const ax_program *program;
  for (uint32_t i = 0; (program = ax_eqn_program(eqn, i)) != NULL; i++)
    if (program->nesting >= nesting) nesting = program->nesting + 1;
  return nesting;
}

ax_status ax_program_uses(const ax_program *program, uint32_t **out) {
  uint32_t *uses = *out = ax_calloc(program->value_count, sizeof uses[0]);
  if (uses == NULL) return ax_out_of_memory(program->value_count * sizeof uses[0]);
  for (uint32_t i = 0; i < program->eqn_count; i++)
    for (uint32_t j = 0; j < program->eqns[i].in_count; j++) uses[program->eqns[i].in[j]]++;
  for (uint32_t i = 0; i < program->out_count; i++) uses[program->outs[i]]++;
  return AX_OK;
}

/* --- Tracing --- */

ax_status (ax_trace_on)(const ax_mesh *axes, ax_fn function, uint32_t in_count, const ax_type *in_types, ax_program **out) {
  *out = NULL;
  if (function.function == NULL) return ax_error(AX_INVALID_ARGUMENT, "there is no function");
  AX_TRY(ax_require(axes, "mesh"));
  AX_TRY(ax_list_check("trace", "the function takes", "input", in_count, function.in_count));
  if (function.in_count > 0) AX_TRY(ax_require(in_types, "type of an input"));
  AX_TRY(ax_mesh_check(axes));
  const double begin = ax_seconds();
  if ((size_t)function.in_count + function.out_count >= AX_LITERAL)
    return ax_error(AX_INVALID_ARGUMENT, "%u inputs and %u results are too many", function.in_count, function.out_count);
  ax_builder *builder;
  AX_TRY(ax_builder_open(axes, &builder));
  builder->owner = "trace", builder->part = "function";
  ax_value *in = ax_arena_alloc(&builder->arena, function.in_count * sizeof in[0]);
  if (in == NULL) ax_fail(ax_out_of_memory(function.in_count * sizeof in[0]));
  for (uint32_t i = 0; in != NULL && i < function.in_count; i++) in[i] = ax_builder_input(builder, &in_types[i]);
  ax_value *outs = ax_builder_call(function, in);
  AX_TRY(ax_builder_finish(builder, outs, function.out_count, out, NULL, NULL));
  ax_status status = ax_whole_check(*out);
  (*out)->seconds = ax_seconds() - begin;
  if (status == AX_OK) return AX_OK;
  ax_program_release(*out);
  *out = NULL;
  return status;
}

double ax_program_seconds(const ax_program *program) { return program != NULL ? program->seconds : 0; }

ax_status (ax_trace)(ax_fn function, uint32_t in_count, const ax_type *in_types, ax_program **out) {
  const ax_mesh none = {0};
  return (ax_trace_on)(&none, function, in_count, in_types, out);
}

/* --- Sets of operands --- */

ax_status ax_args_mask(ax_args args, const char *what, uint32_t count, bool *mask) {
  if (ax_args_all(args)) args.count = count;
  if (ax_args_refused(args)) return ax_error_context(AX_INVALID_ARGUMENT, "%ss are to be those of a selection that failed: ", what);
  for (uint32_t k = 0; k < args.count; k++) {
    uint64_t i = args.list != NULL ? args.list[k] : (uint64_t)args.first + k;
    if (i >= count)
      return ax_error(AX_INVALID_ARGUMENT, "there is no %s %llu: there %s %u", what, (unsigned long long)i,
                      count == 1 ? "is" : "are", count);
    if (args.list != NULL && k > 0 && args.list[k - 1] >= args.list[k])
      return ax_error(AX_INVALID_ARGUMENT, "%s %u is named after %u: sets of them ascend", what, args.list[k], args.list[k - 1]);
    mask[i] = true;
  }
  return AX_OK;
}
