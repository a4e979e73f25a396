/* Cleaning: dce drops equations whose results nobody uses; cse drops those equal to an earlier one (same primitive, parameters
   and operands) and uses the earlier results. Equations with state are left alone. Exchanges are not: the devices of a program run
   its equations in one order, and drop and merge the same ones. Inputs and results stay as they are. A program with nothing to
   clean is returned itself. */
#include <string.h>

#include "ir/program.h"
#include "xform/xform.h"

typedef struct cleaning {
  const ax_program *program;
  bool *dropped;  /* by equation */
  uint32_t *same; /* by value: the value to use in its place; NULL: each is its own */
  uint32_t drop_count;
} cleaning;

static uint32_t same(const cleaning *c, uint32_t id) { return c->same != NULL ? c->same[id] : id; }

/* Emits the equations that are left. `map`: by value id; `in`: room for the operands of any equation. */
static void rebuild(const cleaning *c, ax_builder *builder, ax_value *map, ax_value *in, ax_value *outs) {
  const ax_program *program = c->program;
  for (uint32_t i = 0; i < program->in_count; i++) map[i] = ax_builder_input(builder, &program->types[i]);
  for (uint32_t i = 0; i < program->eqn_count && !ax_failed(); i++) {
    const ax_eqn *eqn = &program->eqns[i];
    if (c->dropped[i]) continue;
    builder->line = eqn->line;
    for (uint32_t j = 0; j < eqn->in_count; j++) in[j] = map[same(c, eqn->in[j])];
    ax_emit(eqn->prim, eqn->params, in, eqn->in_count, map + eqn->out, eqn->out_count);
  }
  for (uint32_t i = 0; i < program->out_count; i++) outs[i] = map[same(c, program->outs[i])];
}

static ax_status finish(const cleaning *c, ax_arena *arena, ax_program **out) {
  const ax_program *program = c->program;
  if (c->drop_count == 0) {
    *out = ax_program_retain((ax_program *)program);
    return AX_OK;
  }
  uint32_t most = 1;
  for (uint32_t i = 0; i < program->eqn_count; i++)
    if (program->eqns[i].in_count > most) most = program->eqns[i].in_count;
  ax_value *map = ax_arena_alloc(arena, program->value_count * sizeof map[0]);
  ax_value *in = ax_arena_alloc(arena, most * sizeof in[0]);
  ax_value *outs = ax_arena_alloc(arena, program->out_count * sizeof outs[0]);
  if (map == NULL || in == NULL || outs == NULL) return ax_out_of_memory(program->value_count * sizeof map[0]);
  ax_builder builder;
  ax_builder_begin(&builder, &program->axes);
  rebuild(c, &builder, map, in, outs);
  return ax_builder_finish(&builder, outs, program->out_count, out, NULL, NULL);
}

/* --- dce --- */

static ax_status find_dead(cleaning *c, ax_arena *arena) {
  const ax_program *program = c->program;
  bool *needed = ax_arena_alloc(arena, program->value_count);
  if (needed == NULL) return ax_out_of_memory(program->value_count);
  for (uint32_t i = 0; i < program->out_count; i++) needed[program->outs[i]] = true;
  for (uint32_t i = program->eqn_count; i-- > 0;) {
    const ax_eqn *eqn = &program->eqns[i];
    bool any = (ax_eqn_effects(eqn) & AX_EFFECT_STATE) != 0;
    for (uint32_t k = 0; k < eqn->out_count; k++) any = any || needed[eqn->out + k];
    c->dropped[i] = !any;
    c->drop_count += !any;
    for (uint32_t j = 0; j < eqn->in_count && any; j++) needed[eqn->in[j]] = true;
  }
  return AX_OK;
}

/* --- cse --- */

static uint64_t hash_eqn(const cleaning *c, const ax_eqn *eqn) {
  uint64_t hash = ax_hash_bytes(AX_HASH_SEED, &eqn->prim, sizeof eqn->prim);
  for (uint32_t j = 0; j < eqn->in_count; j++) {
    uint32_t id = same(c, eqn->in[j]);
    hash = ax_hash_bytes(hash, &id, sizeof id);
  }
  return ax_params_hash(hash, eqn->prim, eqn->params);
}

static bool equal(const cleaning *c, const ax_eqn *a, const ax_eqn *b) {
  if (a->prim != b->prim || a->in_count != b->in_count || a->out_count != b->out_count) return false;
  for (uint32_t j = 0; j < a->in_count; j++)
    if (same(c, a->in[j]) != same(c, b->in[j])) return false;
  return ax_params_equal(a->prim, a->params, b->params);
}

static ax_status find_equal(cleaning *c, ax_arena *arena) {
  const ax_program *program = c->program;
  size_t slots = 16;
  while (slots < 2 * (size_t)program->eqn_count) slots *= 2;
  uint32_t *table = ax_arena_alloc(arena, slots * sizeof table[0]); /* 1 + an equation, or 0 */
  c->same = ax_arena_alloc(arena, program->value_count * sizeof c->same[0]);
  if (table == NULL || c->same == NULL) return ax_out_of_memory(slots * sizeof table[0]);
  for (uint32_t id = 0; id < program->value_count; id++) c->same[id] = id;
  for (uint32_t i = 0; i < program->eqn_count; i++) {
    const ax_eqn *eqn = &program->eqns[i];
    if ((ax_eqn_effects(eqn) & AX_EFFECT_STATE) != 0) continue;
    size_t at = hash_eqn(c, eqn) & (slots - 1);
    while (table[at] != 0 && !equal(c, &program->eqns[table[at] - 1], eqn)) at = (at + 1) & (slots - 1);
    if (table[at] == 0) {
      table[at] = i + 1;
      continue;
    }
    for (uint32_t k = 0; k < eqn->out_count; k++) c->same[eqn->out + k] = program->eqns[table[at] - 1].out + k;
    c->dropped[i] = true;
    c->drop_count++;
  }
  return AX_OK;
}

/* Every pass ends here: in debug builds the verifier looks at what it made. */
static ax_status verify(ax_status status, ax_program **out) {
#ifndef NDEBUG
  if (status == AX_OK) status = ax_program_verify(*out);
  if (status != AX_OK) {
    ax_program_release(*out);
    *out = NULL;
  }
#else
  (void)out;
#endif
  return status;
}

static ax_status clean(const ax_program *program, ax_status (*find)(cleaning *, ax_arena *), ax_program **out) {
  *out = NULL;
  AX_TRY(ax_require(program, "program"));
  ax_arena arena = {0};
  cleaning c = {.program = program, .dropped = ax_arena_alloc(&arena, program->eqn_count)};
  ax_status status = c.dropped != NULL ? find(&c, &arena) : ax_out_of_memory(program->eqn_count);
  if (status == AX_OK) status = finish(&c, &arena, out);
  ax_arena_deinit(&arena);
  return verify(status, out);
}

ax_status ax_program_dce(const ax_program *program, ax_program **out) { return clean(program, find_dead, out); }
ax_status ax_program_cse(const ax_program *program, ax_program **out) { return clean(program, find_equal, out); }
