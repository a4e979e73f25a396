/* Cleaning: cse drops equations equal to an earlier one (same primitive, parameters and operands) and uses the earlier results;
   simplification drops, by the primitives' rules, equations whose results equal other values bit for bit. Equations with state are
   left alone, others may become several that cost less. Exchanges may be dropped and merged, since all devices of a program run its
   equations in one order and lose the same ones. Whole numbers that follow from literals become literals. Inputs and results stay as they
   are. A program with nothing to clean is returned itself.

   The choice is made on a copy of the equations, in one walk forward, and the program is built again once. ax_program_simplify does
   both, nested programs first, each once however many equations hold it. Then it drops unused equations (dce.c). */
#include "ir/prim.h"
#include "ir/program.h"
#include "xform/xform.h"

/* --- The work --- */

enum { MERGE_EQUAL = 1, SIMPLIFY = 2 };
enum { most_rewritings = 16 }; /* of equations that use each other's results: each takes another walk */

typedef struct cleaning {
  const ax_program *program;
  uint32_t how;
  ax_memo *memo; /* of nested programs that have been cleaned; NULL: they stay as they are */
  ax_arena arena;
  ax_eqn *eqns;           /* the program's, rewritten */
  const ax_eqn **made_by; /* by value; NULL: an input */
  bool *dropped;          /* by equation */
  bool *rewritten;        /* by equation: its rule makes others of it */
  uint32_t *same;         /* by value: the value to use in its place */
  uint32_t *table;        /* a hash table: 1 + an equation, or 0 */
  size_t slots;
  bool changed;
} cleaning;

static void drop(cleaning *c, uint32_t i) {
  c->dropped[i] = true;
  c->changed = true;
}

/* --- Rewriting: operands that others stand for, nested programs that have been cleaned --- */

static ax_status use_same(cleaning *c, ax_eqn *eqn) {
  uint32_t k = 0;
  while (k < eqn->in_count && c->same[eqn->in[k]] == eqn->in[k]) k++;
  if (k == eqn->in_count) return AX_OK;
  uint32_t *in = ax_arena_alloc(&c->arena, eqn->in_count * sizeof in[0]);
  if (in == NULL) return ax_out_of_memory(eqn->in_count * sizeof in[0]);
  for (k = 0; k < eqn->in_count; k++) in[k] = c->same[eqn->in[k]];
  eqn->in = in;
  return AX_OK;
}

static ax_status work(const ax_program *program, uint32_t how, ax_memo *memo, ax_program **out);

static ax_status clean_nested(cleaning *c, ax_program **program, bool *changed) {
  ax_memo_entry *entry = ax_memo_ask(c->memo, "simplified", *program, NULL, 0);
  if (entry == NULL) return ax_out_of_memory(sizeof *entry);
  if (!entry->known) AX_TRY(work(*program, c->how, c->memo, &entry->made[0]));
  entry->known = true;
  *changed = *changed || entry->made[0] != *program;
  *program = entry->made[0];
  return AX_OK;
}

static ax_status clean_params(cleaning *c, ax_eqn *eqn) {
  ax_program **nested;
  bool changed = false;
  if (ax_eqn_program(eqn, 0) == NULL) return AX_OK;
  void *params = ax_eqn_own_params(eqn, &c->arena);
  if (params == NULL) return ax_out_of_memory(eqn->prim->params_bytes);
  for (uint32_t k = 0; (nested = ax_params_program(eqn->prim, params, k)) != NULL; k++) AX_TRY(clean_nested(c, nested, &changed));
  if (changed) eqn->params = params;
  c->changed = c->changed || changed;
  return AX_OK;
}

/* --- Simplification --- */

static ax_status simplify(cleaning *c, uint32_t i) {
  ax_eqn *eqn = &c->eqns[i];
  uint32_t *same = c->same + eqn->out;
  bool failed = false, all = eqn->out_count > 0, changed = false;
  for (uint32_t k = 0; k < eqn->out_count; k++) same[k] = AX_NONE;
  ax_simplify_args args = {eqn, c->program->types, c->made_by, same, &c->arena, &changed, &failed};
  eqn->prim->simplify(&args);
  for (uint32_t k = 0; k < eqn->out_count; k++) {
    const ax_type *types = c->program->types;
    if (same[k] != AX_NONE && ax_type_equal(&types[same[k]], &types[eqn->out + k])) continue;
    same[k] = eqn->out + k;
    all = false;
  }
  c->changed = c->changed || changed;
  if (all) drop(c, i);
  return failed ? ax_out_of_memory(eqn->prim->params_bytes) : AX_OK;
}

/* --- Numbers that are known --- */

enum { most_known = 4, most_bytes = 8 }; /* operands of an equation; bytes of a number */

/* The tensor of one whole number or truth value that is a literal. Floats stay: what they are may depend on how a program is
   compiled. */
static bool is_known(const cleaning *c, uint32_t id, ax_tensor *out) {
  const ax_literal *literal = ax_made_literal(c->made_by, id);
  if (literal == NULL || !ax_is_exact(literal->type.dtype)) return false;
  *out = (ax_tensor){.dtype = literal->type.dtype, .data = literal->data};
  return true;
}

/* An equation of a few operands whose result is one such number: the index of a branch, or a condition. */
static bool gives_exact(const ax_eqn *eqn, const ax_type *type) {
  const bool cheap = eqn->prim->kind == AX_LOCAL && eqn->prim->cheap && eqn->prim->eval != NULL;
  if (!cheap || eqn->out_count != 1 || eqn->in_count == 0 || eqn->in_count > most_known) return false;
  return type->form == AX_ARRAY && type->rank == 0 && ax_is_exact(type->dtype) && type->spread.varying == 0 && type->spread.unreduced == 0;
}

/* Makes a literal of an equation whose operands are known. */
static ax_status compute_known(cleaning *c, ax_eqn *eqn) {
  const ax_type *type = &c->program->types[eqn->out];
  ax_tensor operands[most_known], result = {.dtype = type->dtype}, *in[most_known], *out[] = {&result};
  if (!gives_exact(eqn, type)) return AX_OK;
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    if (!is_known(c, eqn->in[i], &operands[i])) return AX_OK;
    in[i] = &operands[i];
  }
  ax_literal *literal = ax_arena_alloc(&c->arena, sizeof *literal);
  result.data = ax_arena_alloc(&c->arena, most_bytes);
  if (literal == NULL || result.data == NULL) return ax_out_of_memory(sizeof *literal);
  const int64_t device = 0;
  AX_TRY(eqn->prim->eval(&(ax_eval_args){.eqn = eqn, .axes = &c->program->axes, .lanes = 1, .device = &device, .in = in, .out = out}));
  *literal = (ax_literal){.type = *type, .data = result.data};
  eqn->prim = c->made_by[eqn->in[0]]->prim;
  eqn->params = literal;
  eqn->in_count = 0;
  c->changed = true;
  return AX_OK;
}

/* --- Rewriting into other equations --- */

/* Asks whether an equation that is left becomes others. They are made when the program is built again. */
static void ask_rewrite(cleaning *c, uint32_t i) {
  const ax_eqn *eqn = &c->eqns[i];
  const ax_rewrite_args args = {.eqn = eqn, .types = c->program->types, .made_by = c->made_by};
  c->rewritten[i] = !c->dropped[i] && eqn->prim->rewrite != NULL && eqn->prim->rewrite(&args);
  c->changed = c->changed || c->rewritten[i];
}

/* --- cse --- */

static uint64_t hash_eqn(const ax_eqn *eqn) {
  uint64_t hash = ax_hash_bytes(AX_HASH_SEED, &eqn->prim, sizeof eqn->prim);
  hash = ax_hash_bytes(hash, eqn->in, eqn->in_count * sizeof eqn->in[0]);
  return ax_params_hash(hash, eqn->prim, eqn->params);
}

static bool equal(const ax_eqn *a, const ax_eqn *b) {
  if (a->prim != b->prim || a->in_count != b->in_count || a->out_count != b->out_count) return false;
  for (uint32_t j = 0; j < a->in_count; j++)
    if (a->in[j] != b->in[j]) return false;
  return ax_params_equal(a->prim, a->params, b->params);
}

static void merge(cleaning *c, uint32_t i) {
  const ax_eqn *eqn = &c->eqns[i];
  size_t at = hash_eqn(eqn) & (c->slots - 1);
  while (c->table[at] != 0 && !equal(&c->eqns[c->table[at] - 1], eqn)) at = (at + 1) & (c->slots - 1);
  if (c->table[at] == 0) {
    c->table[at] = i + 1;
    return;
  }
  for (uint32_t k = 0; k < eqn->out_count; k++) c->same[eqn->out + k] = c->eqns[c->table[at] - 1].out + k;
  drop(c, i);
}

/* --- The walk, and the program that is left --- */

static ax_status forward(cleaning *c) {
  for (uint32_t i = 0; i < c->program->eqn_count; i++) {
    ax_eqn *eqn = &c->eqns[i];
    for (uint32_t k = 0; k < eqn->out_count; k++) c->made_by[eqn->out + k] = eqn;
    AX_TRY(use_same(c, eqn));
    if (c->memo != NULL) AX_TRY(clean_params(c, eqn));
    if ((ax_eqn_effects(eqn) & AX_EFFECT_STATE) != 0) continue;
    if ((c->how & SIMPLIFY) != 0) AX_TRY(simplify(c, i));
    if ((c->how & SIMPLIFY) != 0 && !c->dropped[i]) AX_TRY(compute_known(c, eqn));
    if ((c->how & MERGE_EQUAL) != 0 && !c->dropped[i]) merge(c, i);
    if ((c->how & SIMPLIFY) != 0) ask_rewrite(c, i);
  }
  return AX_OK;
}

/* Emits the equations that are left. `map`: by value id; `in`: room for the operands of any equation. */
static void rebuild(const cleaning *c, ax_builder *builder, ax_value *map, ax_value *in, ax_value *outs) {
  const ax_program *program = c->program;
  for (uint32_t i = 0; i < program->in_count; i++) map[i] = ax_builder_input(builder, &program->types[i]);
  for (uint32_t i = 0; i < program->eqn_count && !ax_failed(); i++) {
    const ax_eqn *eqn = &c->eqns[i];
    if (c->dropped[i]) continue;
    ax_builder_stem(builder, eqn);
    if (c->rewritten[i]) {
      eqn->prim->rewrite(&(ax_rewrite_args){eqn, program->types, c->made_by, map, map + eqn->out});
      continue;
    }
    for (uint32_t j = 0; j < eqn->in_count; j++) in[j] = map[eqn->in[j]];
    ax_emit(eqn->prim, eqn->params, in, eqn->in_count, map + eqn->out, eqn->out_count);
  }
  for (uint32_t i = 0; i < program->out_count; i++) outs[i] = map[c->same[program->outs[i]]];
}

static ax_status finish(cleaning *c, ax_program **out) {
  const ax_program *program = c->program;
  if (!c->changed) {
    *out = ax_program_retain((ax_program *)program);
    return AX_OK;
  }
  ax_value *map = ax_arena_alloc(&c->arena, program->value_count * sizeof map[0]);
  ax_value *in = ax_arena_alloc(&c->arena, ax_most_operands(program) * sizeof in[0]);
  ax_value *outs = ax_arena_alloc(&c->arena, program->out_count * sizeof outs[0]);
  if (map == NULL || in == NULL || outs == NULL) return ax_out_of_memory(program->value_count * sizeof map[0]);
  ax_builder builder;
  ax_builder_begin(&builder, &program->axes);
  if (builder.memo == NULL) builder.memo = c->memo; /* rewriting asks it for bodies */
  rebuild(c, &builder, map, in, outs);
  return ax_builder_finish(&builder, outs, program->out_count, out, NULL, NULL);
}

static ax_status init(cleaning *c) {
  const ax_program *program = c->program;
  c->slots = 16;
  while (c->slots < 2 * (size_t)program->eqn_count) c->slots *= 2;
  c->eqns = ax_arena_copy(&c->arena, program->eqns, program->eqn_count * sizeof c->eqns[0]);
  c->dropped = ax_arena_alloc(&c->arena, program->eqn_count);
  c->rewritten = ax_arena_alloc(&c->arena, program->eqn_count);
  c->made_by = ax_arena_alloc(&c->arena, program->value_count * sizeof c->made_by[0]);
  c->same = ax_arena_alloc(&c->arena, program->value_count * sizeof c->same[0]);
  if ((c->how & MERGE_EQUAL) != 0) c->table = ax_arena_alloc(&c->arena, c->slots * sizeof c->table[0]);
  if (c->eqns == NULL || c->dropped == NULL || c->rewritten == NULL || c->made_by == NULL || c->same == NULL ||
      ((c->how & MERGE_EQUAL) != 0 && c->table == NULL))
    return ax_out_of_memory(program->value_count * sizeof c->same[0]);
  for (uint32_t id = 0; id < program->value_count; id++) c->same[id] = id;
  return AX_OK;
}

/* *again: equations were rewritten, and what uses their results may now be. */
static ax_status clean_once(const ax_program *program, uint32_t how, ax_memo *memo, ax_program **out, bool *again) {
  cleaning c = {.program = program, .how = how, .memo = memo};
  *out = NULL;
  *again = false;
  ax_status status = init(&c);
  if (status == AX_OK) status = forward(&c);
  if (status == AX_OK) status = finish(&c, out);
  for (uint32_t i = 0; i < program->eqn_count && status == AX_OK; i++) *again = *again || c.rewritten[i];
  ax_arena_deinit(&c.arena);
  return status;
}

static ax_status work(const ax_program *program, uint32_t how, ax_memo *memo, ax_program **out) {
  bool again;
  AX_TRY(clean_once(program, how, memo, out, &again));
  for (int times = 0; again && times < most_rewritings; times++) {
    ax_program *before = *out;
    const ax_status status = clean_once(before, how, memo, out, &again);
    ax_program_release(before);
    AX_TRY(status);
  }
  return AX_OK;
}

ax_status ax_program_cse(const ax_program *program, ax_program **out) {
  *out = NULL;
  AX_TRY(ax_require(program, "program"));
  return ax_verified(work(program, MERGE_EQUAL, NULL, out), out);
}

ax_status ax_program_simplify(const ax_program *program, ax_program **out) {
  ax_program *simple;
  *out = NULL;
  AX_TRY(ax_require(program, "program"));
  ax_memo memo = {0};
  ax_status status = work(program, MERGE_EQUAL | SIMPLIFY, &memo, &simple);
  if (status == AX_OK) status = ax_program_dce(simple, out);
  ax_program_release(simple);
  ax_memo_deinit(&memo);
  return status;
}
