/* Dead code elimination. Equations whose results are not used are dropped. Equations that hold programs lose the operands, results
   and inner equations that are not needed; some others compute fewer results (a decomposition without its vectors). Equations with state stay. The program's own inputs and results stay as they are. If
   everything is needed, the program itself is returned.

   It takes one walk backward over each program. A region's `prune` rule is asked for the operands that some results need, and it
   asks the same of its programs (needs.c). Then the rule builds the region without the rest (ax_prune_program, once for each set of
   operands and results). */
#include <string.h>

#include "ir/prim.h"
#include "ir/program.h"
#include "xform/xform.h"

/* The needed part of an equation that holds programs; params NULL: the equation stays as it is. */
typedef ax_needed remnant;

typedef struct sweep {
  const ax_program *program;
  const bool *keep_in, *keep_out; /* inputs and results to keep; NULL: all */
  bool *dropped;     /* by equation */
  remnant *remnants; /* likewise */
  bool changed;
  ax_memo *memo;
} sweep;

/* Emits the needed part of an equation. `in`, `out`: room for the operands and results of any equation. */
static void emit_left(const ax_eqn *eqn, const remnant *left, ax_value *map, ax_value *in, ax_value *out) {
  uint32_t in_count = 0, out_count = 0;
  bool whole = left->params == NULL;
  for (uint32_t j = 0; j < eqn->in_count; j++)
    if (whole || left->in[j]) in[in_count++] = map[eqn->in[j]];
  if (whole) {
    ax_emit(eqn->prim, eqn->params, in, in_count, map + eqn->out, eqn->out_count);
    return;
  }
  for (uint32_t k = 0; k < eqn->out_count; k++) out_count += left->out[k];
  ax_emit(eqn->prim, left->params, in, in_count, out, out_count);
  for (uint32_t k = 0; k < eqn->out_count; k++)
    if (left->out[k]) map[eqn->out + k] = *out++;
}

/* Emits the equations that are left. `map`: by value id. */
static uint32_t rebuild(const sweep *c, ax_builder *builder, ax_value *map, ax_value *in, ax_value *out, ax_value *outs) {
  const ax_program *program = c->program;
  uint32_t out_count = 0;
  for (uint32_t i = 0; i < program->in_count; i++)
    if (c->keep_in == NULL || c->keep_in[i]) map[i] = ax_builder_input(builder, &program->types[i]);
  for (uint32_t i = 0; i < program->eqn_count && !ax_failed(); i++) {
    const ax_eqn *eqn = &program->eqns[i];
    if (c->dropped[i]) continue;
    ax_builder_stem(builder, eqn);
    emit_left(eqn, &c->remnants[i], map, in, out);
  }
  for (uint32_t i = 0; i < program->out_count; i++)
    if (c->keep_out == NULL || c->keep_out[i]) outs[out_count++] = map[program->outs[i]];
  return out_count;
}

static ax_status finish(const sweep *c, ax_arena *arena, ax_program **out) {
  const ax_program *program = c->program;
  if (!c->changed) {
    *out = ax_program_retain((ax_program *)program);
    return AX_OK;
  }
  ax_value *map = ax_arena_alloc(arena, program->value_count * sizeof map[0]);
  ax_value *in = ax_arena_alloc(arena, ax_most_operands(program) * sizeof in[0]);
  ax_value *results = ax_arena_alloc(arena, ax_most_results(program) * sizeof results[0]);
  ax_value *outs = ax_arena_alloc(arena, program->out_count * sizeof outs[0]);
  if (map == NULL || in == NULL || results == NULL || outs == NULL) return ax_out_of_memory(program->value_count * sizeof map[0]);
  ax_builder builder;
  ax_builder_begin(&builder, &program->axes);
  uint32_t out_count = rebuild(c, &builder, map, in, results, outs);
  return ax_builder_finish(&builder, outs, out_count, out, NULL, NULL);
}

/* --- What is left --- */

static bool is_changed(const ax_eqn *eqn, const remnant *left) {
  const ax_eqn made = {.prim = eqn->prim, .params = left->params};
  for (uint32_t j = 0; j < eqn->in_count; j++)
    if (!left->in[j]) return true;
  for (uint32_t k = 0; k < eqn->out_count; k++)
    if (!left->out[k]) return true;
  for (uint32_t i = 0; ax_eqn_program(eqn, i) != NULL; i++)
    if (ax_eqn_program(eqn, i) != ax_eqn_program(&made, i)) return true;
  return false;
}

static ax_status remnant_init(remnant *left, const ax_eqn *eqn, ax_arena *arena) {
  left->in = ax_arena_alloc(arena, eqn->in_count);
  left->out = ax_arena_alloc(arena, eqn->out_count);
  left->params = ax_arena_alloc(arena, eqn->prim->params_bytes);
  bool made = left->in != NULL && left->out != NULL && left->params != NULL;
  return made ? AX_OK : ax_out_of_memory(eqn->in_count + (size_t)eqn->out_count);
}

static ax_status find_dead_eqn(sweep *c, ax_arena *arena, uint32_t i, bool *needed) {
  const ax_eqn *eqn = &c->program->eqns[i];
  remnant left = {0};
  bool any;
  if (eqn->prim->prune != NULL) AX_TRY(remnant_init(&left, eqn, arena));
  void *params = left.params;
  AX_TRY(ax_need_eqn(c->memo, eqn, needed, &left, &any));
  c->dropped[i] = !any;
  c->changed = c->changed || !any;
  if (!any || params == NULL) return AX_OK;
  if (is_changed(eqn, &left)) {
    c->remnants[i] = left;
    c->changed = true;
  } else {
    ax_params_release(eqn->prim, params);
  }
  return AX_OK;
}

static ax_status find_dead(sweep *c, ax_arena *arena) {
  const ax_program *program = c->program;
  bool *needed = ax_arena_alloc(arena, program->value_count);
  c->remnants = ax_arena_alloc(arena, program->eqn_count * sizeof c->remnants[0]);
  if (needed == NULL || c->remnants == NULL) return ax_out_of_memory(program->value_count);
  for (uint32_t k = 0; k < program->out_count; k++)
    if (c->keep_out == NULL || c->keep_out[k]) needed[program->outs[k]] = true;
    else c->changed = true;
  for (uint32_t i = 0; i < program->in_count; i++) c->changed = c->changed || (c->keep_in != NULL && !c->keep_in[i]);
  for (uint32_t i = program->eqn_count; i-- > 0;) AX_TRY(find_dead_eqn(c, arena, i, needed));
  return AX_OK;
}

static ax_status sweep_program(sweep *c, ax_program **out) {
  const ax_program *program = c->program;
  ax_arena arena = {0};
  *out = NULL;
  c->dropped = ax_arena_alloc(&arena, program->eqn_count);
  ax_status status = c->dropped != NULL ? find_dead(c, &arena) : ax_out_of_memory(program->eqn_count);
  if (status == AX_OK) status = finish(c, &arena, out);
  for (uint32_t i = 0; c->remnants != NULL && i < program->eqn_count; i++)
    if (c->remnants[i].params != NULL) ax_params_release(program->eqns[i].prim, c->remnants[i].params);
  ax_arena_deinit(&arena);
  return ax_verified(status, out);
}

ax_status ax_prune_program(ax_memo *memo, const ax_program *program, const bool *out, const bool *in, ax_program **pruned) {
  ax_text key = {0};
  *pruned = NULL;
  ax_text_add_bytes(&key, (const char *)out, program->out_count);
  ax_text_add_bytes(&key, (const char *)in, program->in_count);
  ax_memo_entry *entry = key.failed ? NULL : ax_memo_ask(memo, "prune", program, key.data, key.length);
  ax_text_deinit(&key);
  if (entry == NULL) return ax_out_of_memory(0);
  sweep c = {.program = program, .keep_in = in, .keep_out = out, .memo = memo};
  if (!entry->known) AX_TRY(sweep_program(&c, &entry->made[0]));
  entry->known = true;
  *pruned = ax_program_retain(entry->made[0]);
  return AX_OK;
}

ax_status ax_program_dce(const ax_program *program, ax_program **out) {
  *out = NULL;
  AX_TRY(ax_require(program, "program"));
  ax_memo own = {0};
  const ax_builder *builder = ax_builder_current();
  sweep c = {.program = program, .memo = builder != NULL && builder->memo != NULL ? builder->memo : &own};
  ax_status status = sweep_program(&c, out);
  ax_memo_deinit(&own);
  return status;
}
