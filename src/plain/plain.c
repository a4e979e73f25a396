/* The walk: finds the equations that are replaced, in nested programs too, each of which is gone through once, and builds the programs that
   hold them again. What an equation becomes is a program of its own, which the new program calls: so equal equations share it. */
#include "plain/plain.h"

#include <string.h>

#include "axle/ops.h"
#include "axle/transform.h"
#include "control/closed_call.h"
#include "ir/prim.h"
#include "plain/rules.h"
#include "prim/prims.h"
#include "xform/xform.h"

static const ax_plain_rule *const rules[] = {
    &ax_plain_cholesky, &ax_plain_lu, &ax_plain_geqrf, &ax_plain_geqp3, &ax_plain_householder_product, &ax_plain_ormqr, &ax_plain_qr,
    &ax_plain_hessenberg, &ax_plain_tridiagonal, &ax_plain_tridiagonal_solve, &ax_plain_eigh_steps, &ax_plain_eigh, &ax_plain_svd,
    &ax_plain_schur, &ax_plain_eig, &ax_plain_reduce, NULL,
};
static const ax_plain_rule *const lists[] = {ax_plain_collectives, ax_plain_narrow, NULL};

bool ax_plain_lapack(const ax_plain_lacks *lacks, const ax_eqn *eqn, const ax_type *in, const ax_type *out) {
  (void)eqn, (void)in, (void)out;
  return lacks->lapack;
}

const void *ax_plain_parameter(const ax_eqn *eqn, const char *name) {
  uint32_t i = 0;
  while (strcmp(eqn->prim->params[i].name, name) != 0) i++;
  return (const char *)eqn->params + eqn->prim->params[i].offset;
}

bool ax_plain_bool(const ax_eqn *eqn, const char *name) { return *(const bool *)ax_plain_parameter(eqn, name); }

typedef struct replacing { /* a program and all in it */
  const ax_plain_lacks *lacks;
  ax_memo memo;
} replacing;

typedef struct work { /* one program */
  replacing *all;
  ax_program_walk walk;
  const void **params;        /* by equation: with nested programs replaced */
  const ax_plain_rule **rule; /* by equation; NULL: it stays */
  bool *inlined;              /* by value: a future whose equation's body stands in its place: it is the array itself */
  ax_type *in;                /* room for the types of any equation's operands */
  bool changed;
} work;

static ax_status replaced(replacing *all, const ax_program *program, ax_program **out);

/* --- What is to be done --- */

static const ax_type *operand_types(work *w, const ax_eqn *eqn) {
  for (uint32_t i = 0; i < eqn->in_count; i++) w->in[i] = w->walk.program->types[eqn->in[i]];
  return w->in;
}

static bool fits(work *w, const ax_plain_rule *rule, const ax_eqn *eqn) {
  return rule->prim == eqn->prim && rule->applies(w->all->lacks, eqn, operand_types(w, eqn), &w->walk.program->types[eqn->out]);
}

static const ax_plain_rule *find_rule(work *w, const ax_eqn *eqn) {
  for (uint32_t r = 0; rules[r] != NULL; r++)
    if (fits(w, rules[r], eqn)) return rules[r];
  for (uint32_t l = 0; lists[l] != NULL; l++)
    for (const ax_plain_rule *rule = lists[l]; rule->prim != NULL; rule++)
      if (fits(w, rule, eqn)) return rule;
  return NULL;
}

static ax_status look(work *w, uint32_t e) {
  const ax_eqn *eqn = &w->walk.program->eqns[e];
  ax_program **nested;
  w->params[e] = eqn->params;
  w->rule[e] = find_rule(w, eqn);
  w->changed = w->changed || w->rule[e] != NULL;
  if (w->rule[e] != NULL || ax_eqn_program(eqn, 0) == NULL) return AX_OK;
  void *params = ax_eqn_own_params(eqn, &w->walk.arena);
  if (params == NULL) return ax_out_of_memory(eqn->prim->params_bytes);
  bool changed = false;
  for (uint32_t k = 0; (nested = ax_params_program(eqn->prim, params, k)) != NULL; k++) {
    const ax_program *before = *nested;
    AX_TRY(replaced(w->all, before, nested));
    changed = changed || *nested != before;
  }
  if (changed) w->params[e] = params;
  w->changed = w->changed || changed;
  return AX_OK;
}

/* --- A rule's batch --- */

typedef struct over_batch {
  const ax_plain_rule *rule;
  const ax_eqn *eqn;
} over_batch;

static void one_of_batch(const ax_value *in, ax_value *out, void *context) {
  const over_batch *b = context;
  b->rule->trace(b->eqn, in, out);
}

/* x with its first `count` dimensions as those given. */
static ax_value with_leading(ax_value x, uint32_t count, uint32_t given, const int64_t *dims) {
  const ax_type type = ax_typeof(x);
  ax_dims all = {.count = given + type.rank - count};
  memcpy(all.v, dims, given * sizeof dims[0]);
  memcpy(all.v + given, type.dims + count, (type.rank - count) * sizeof dims[0]);
  return ax_reshape(x, AX_LIST(all.count, all.v));
}

static void trace_batch(const ax_plain_rule *rule, const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  const ax_type type = ax_typeof(in[0]);
  const uint32_t batch = type.rank - rule->rank;
  const int64_t elems = ax_dims_elems(batch, type.dims);
  over_batch context = {rule, eqn};
  ax_value *flat = ax_trace_alloc(eqn->in_count * sizeof flat[0]);
  if (flat == NULL) return;
  for (uint32_t i = 0; i < eqn->in_count && !ax_failed(); i++) flat[i] = with_leading(in[i], batch, 1, &elems);
  if (!ax_failed())
    (ax_vmap)((ax_fn){one_of_batch, eqn->in_count, eqn->out_count, &context}, eqn->in_count, flat, eqn->out_count, out, NULL);
  for (uint32_t k = 0; k < eqn->out_count && !ax_failed(); k++) out[k] = with_leading(out[k], 1, batch, type.dims);
}

static void trace_alone(const ax_plain_rule *rule, const ax_eqn *eqn, const ax_value *in, ax_value *out) { rule->trace(eqn, in, out); }

/* --- Building --- */

static void trace_rule(work *w, const ax_plain_rule *rule, const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  const ax_type *wanted = &w->walk.program->types[eqn->out];
  const uint32_t batch = rule->rank > 0 ? ax_typeof(in[0]).rank - rule->rank : 0;
  bool any = false;
  for (uint32_t k = 0; k < eqn->out_count; k++) any = any || ax_type_elems(&wanted[k]) > 0;
  for (uint32_t k = 0; k < eqn->out_count && !any; k++) out[k] = ax_full(wanted[k].dtype, AX_LIST(wanted[k].rank, wanted[k].dims), 0);
  if (any) (batch > 0 ? trace_batch : trace_alone)(rule, eqn, in, out);
  for (uint32_t k = 0; k < eqn->out_count && !ax_failed(); k++) {
    out[k] = ax_spread_to(out[k], &wanted[k].spread);
    (void)ax_check_rule(eqn, "plain", out[k], &wanted[k]);
  }
}

/* The equation as a program of its own, owned by the memo; it may still have equations that are to be replaced. */
static ax_status make(work *w, const ax_plain_rule *rule, const ax_eqn *eqn, ax_program **out) {
  ax_builder builder;
  ax_context numbers;
  ax_keep_numbers(&numbers);
  const ax_value *in = ax_region_begin(&builder, &w->walk.program->axes, operand_types(w, eqn), eqn->in_count);
  ax_builder_stem(&builder, eqn);
  ax_value *made = ax_trace_alloc(eqn->out_count * sizeof made[0]);
  for (uint32_t k = 0; made != NULL && k < eqn->out_count; k++) made[k] = ax_poison;
  if (in != NULL && made != NULL) trace_rule(w, rule, eqn, in, made);
  const ax_status status = ax_region_finish(&builder, made, eqn->out_count, out);
  ax_context_leave(&numbers);
  return status == AX_OK ? AX_OK : ax_error_context(status, "%s as a program of other primitives: ", eqn->prim->name);
}

static void replace(work *w, const ax_plain_rule *rule, const ax_eqn *eqn) {
  ax_program *made = NULL, *plain = NULL;
  ax_status status = make(w, rule, eqn, &made);
  if (status == AX_OK) status = replaced(w->all, made, &plain);
  ax_program_release(made);
  if (status != AX_OK) {
    ax_fail(status);
    return;
  }
  const ax_closed_call_params call = {ax_unify_program(ax_program_retain(plain))};
  const ax_value *in = ax_walk_operands(&w->walk, eqn);
  if (!ax_failed()) ax_bind(&ax_prim_closed_call, &call, in, eqn->in_count, w->walk.value + eqn->out, eqn->out_count);
  ax_program_release(call.body);
}

/* What is started calls no program that communicates, as those do that replace collectives. So its body stands here itself, which is what a
   start comes to without its future, and done gives what there is. */
static bool inline_start(work *w, uint32_t e) {
  const ax_eqn *eqn = &w->walk.program->eqns[e];
  ax_value *out = w->walk.value + eqn->out;
  if (eqn->prim == &ax_prim_done && w->inlined[eqn->in[0]]) {
    out[0] = w->walk.value[eqn->in[0]];
    return true;
  }
  if (eqn->prim != &ax_prim_start || w->params[e] == eqn->params) return false;
  const ax_program *body = *ax_params_program(eqn->prim, (void *)(uintptr_t)w->params[e], 0);
  (ax_call)(body, eqn->in_count, ax_walk_operands(&w->walk, eqn), eqn->out_count, out);
  for (uint32_t k = 0; k < eqn->out_count; k++) w->inlined[eqn->out + k] = true;
  return true;
}

static void copy(work *w, uint32_t e) {
  const ax_eqn *eqn = &w->walk.program->eqns[e];
  if (inline_start(w, e)) return;
  const ax_value *in = ax_walk_operands(&w->walk, eqn);
  ax_emit(eqn->prim, w->params[e], in, eqn->in_count, w->walk.value + eqn->out, eqn->out_count);
}

static ax_status build(work *w, ax_program **out) {
  const ax_program *program = w->walk.program;
  ax_value *outs = ax_arena_alloc(&w->walk.arena, program->out_count * sizeof outs[0]);
  if (outs == NULL) return ax_out_of_memory(program->out_count * sizeof outs[0]);
  ax_builder builder;
  ax_builder_begin(&builder, &program->axes);
  for (uint32_t i = 0; i < program->in_count; i++) w->walk.value[i] = ax_builder_input(&builder, &program->types[i]);
  for (uint32_t e = 0; e < program->eqn_count && !ax_failed(); e++) {
    if (w->rule[e] != NULL) replace(w, w->rule[e], &program->eqns[e]);
    else copy(w, e);
  }
  for (uint32_t k = 0; k < program->out_count; k++) outs[k] = w->walk.value[program->outs[k]];
  return ax_builder_finish(&builder, outs, program->out_count, out, NULL, NULL);
}

static ax_status work_on(work *w, ax_program **out) {
  const ax_program *program = w->walk.program;
  const size_t eqns = program->eqn_count + (size_t)1;
  w->params = ax_arena_alloc(&w->walk.arena, eqns * sizeof w->params[0]);
  w->rule = ax_arena_alloc(&w->walk.arena, eqns * sizeof w->rule[0]);
  w->inlined = ax_arena_alloc(&w->walk.arena, program->value_count + (size_t)1);
  w->in = ax_arena_alloc(&w->walk.arena, w->walk.most * sizeof w->in[0]);
  if (w->params == NULL || w->rule == NULL || w->inlined == NULL || w->in == NULL) return ax_out_of_memory(eqns * sizeof w->params[0]);
  for (uint32_t e = 0; e < program->eqn_count; e++) AX_TRY(look(w, e));
  if (w->changed) return build(w, out);
  *out = ax_program_retain((ax_program *)program);
  return AX_OK;
}

/* The program as it becomes, owned by the memo. */
static ax_status replaced(replacing *all, const ax_program *program, ax_program **out) {
  ax_memo_entry *entry = ax_memo_ask(&all->memo, "plain", program, NULL, 0);
  if (entry == NULL) return ax_out_of_memory(sizeof *entry);
  if (!entry->known) {
    work w = {.all = all};
    const ax_status status = ax_walk_init(&w.walk, program) ? work_on(&w, &entry->made[0]) : ax_out_of_memory(0);
    ax_walk_deinit(&w.walk);
    AX_TRY(status);
  }
  entry->known = true;
  *out = entry->made[0];
  return AX_OK;
}

ax_status ax_plain_program(const ax_program *program, const ax_plain_lacks *lacks, ax_program **out) {
  replacing all = {.lacks = lacks};
  ax_program *silent = NULL, *made;
  *out = NULL;
  if (lacks->messages && ax_find_effect(program, AX_EFFECT_MESSAGE) != NULL) AX_TRY(ax_plain_messages(program, &silent));
  const ax_status status = replaced(&all, silent != NULL ? silent : program, &made);
  if (status == AX_OK) *out = ax_program_retain(made);
  ax_memo_deinit(&all.memo);
  ax_program_release(silent);
  return ax_verified(status, out);
}
