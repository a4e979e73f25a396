/* Calls as steps of loops. Lowering copies a called body once for each call (plan/fragment.c), so functions that call each other
   twice, to a depth of n, would be 2^n copies. In a program that is too long when its calls are written out, the large calls become
   one loop, whose steps choose their operands, and each body stands in it once:

     s0; r = f a; s1; q = g b; s2; t = f c; s3        (s..: equations between calls)

     s0; loop of 3 steps, over what s1 and s2 make and later steps need, and the last results of f and of g:
           switch step:  0: a    1: s1, b    2: s2, c
           switch body of step:  f, g
     s3

   Results have the same bits: the same equations are done in the same order. Values that wait between steps cost copies, so shorter
   programs stay as they are. */
#include "axle/ops.h"
#include "control/closed_call.h"
#include "ir/prim.h"
#include "ir/program.h"
#include "prim/bind.h"
#include "prim/prims.h"
#include "xform/xform.h"

enum { most_choices = 1 << 20 }; /* values that all switches of a loop give */

typedef struct shortening { /* of a program and all in it */
  ax_memo memo;
  uint64_t most; /* equations, written out, of a whole program that stays as it is */
} shortening;

/* Equations, written out, of bodies that stay as they are, and of those whose calls may become steps. */
static uint64_t most_of_body(const shortening *all) { return all->most / 32; }
static uint64_t least_body(const shortening *all) { return all->most / 4096; }

static ax_status length_of(shortening *all, const ax_program *program, uint64_t *out) {
  ax_memo_entry *entry = ax_memo_ask(&all->memo, "written out", program, NULL, 0);
  if (entry == NULL) return ax_out_of_memory(sizeof *entry);
  uint64_t *kept = entry->data, inside;
  if (!entry->known) {
    entry->data = kept = ax_arena_alloc(&all->memo.arena, sizeof *kept);
    if (kept == NULL) return ax_out_of_memory(sizeof *kept);
    *kept = program->eqn_count;
    for (uint32_t e = 0; e < program->eqn_count && program->nesting > 0; e++) {
      const ax_program *nested;
      for (uint32_t i = 0; (nested = ax_eqn_program(&program->eqns[e], i)) != NULL; i++) {
        AX_TRY(length_of(all, nested, &inside));
        *kept = inside > UINT64_MAX - *kept ? UINT64_MAX : *kept + inside;
      }
    }
    entry->known = true;
  }
  *out = *kept;
  return AX_OK;
}

/* --- What becomes a loop --- */

typedef struct looping { /* one program */
  ax_program_walk walk;
  shortening *all;
  const void **params; /* by equation: with nested programs as they are compiled */
  uint32_t *call;      /* by step: its equation; then the number of equations */
  uint32_t *which;     /* by step: the number of its body */
  uint32_t *first;     /* by body: the first equation that calls it */
  uint32_t *result;    /* by body: its first result among the loop's carries */
  uint32_t *made;      /* by value: 1 + the step in whose switch it can be used first; 0: before or behind the loop */
  bool *is_kept;       /* by value: a later step, or what is behind the loop, uses it */
  uint32_t *kept;      /* those values: the loop's first carries */
  uint32_t calls, bodies, kept_count, carries, operands; /* operands: of all bodies */
} looping;

static ax_status compiled(shortening *all, const ax_program *program, ax_program **out);

static const ax_eqn *call_of(const looping *l, uint32_t step) { return &l->walk.program->eqns[l->call[step]]; }
static const ax_eqn *caller_of(const looping *l, uint32_t body) { return &l->walk.program->eqns[l->first[body]]; }

static ax_status allocate(looping *l) {
  const ax_program *program = l->walk.program;
  const size_t eqns = program->eqn_count + (size_t)1, values = program->value_count + (size_t)1;
  l->params = ax_arena_alloc(&l->walk.arena, eqns * sizeof l->params[0]);
  l->call = ax_arena_alloc(&l->walk.arena, eqns * sizeof l->call[0]);
  l->which = ax_arena_alloc(&l->walk.arena, eqns * sizeof l->which[0]);
  l->first = ax_arena_alloc(&l->walk.arena, eqns * sizeof l->first[0]);
  l->result = ax_arena_alloc(&l->walk.arena, eqns * sizeof l->result[0]);
  l->made = ax_arena_alloc(&l->walk.arena, values * sizeof l->made[0]);
  l->is_kept = ax_arena_alloc(&l->walk.arena, values * sizeof l->is_kept[0]);
  l->kept = ax_arena_alloc(&l->walk.arena, values * sizeof l->kept[0]);
  const bool all = l->params != NULL && l->call != NULL && l->which != NULL && l->first != NULL && l->result != NULL &&
                   l->made != NULL && l->is_kept != NULL && l->kept != NULL;
  return all ? AX_OK : ax_out_of_memory(eqns * sizeof l->params[0]);
}

static ax_status make_params(looping *l, uint32_t e) {
  const ax_eqn *eqn = &l->walk.program->eqns[e];
  ax_program **nested;
  l->params[e] = eqn->params;
  if (ax_eqn_program(eqn, 0) == NULL) return AX_OK;
  void *params = ax_eqn_own_params(eqn, &l->walk.arena);
  if (params == NULL) return ax_out_of_memory(eqn->prim->params_bytes);
  for (uint32_t k = 0; (nested = ax_params_program(eqn->prim, params, k)) != NULL; k++) AX_TRY(compiled(l->all, *nested, nested));
  l->params[e] = params;
  return AX_OK;
}

static ax_status note_call(looping *l, uint32_t e) {
  const ax_program *program = l->walk.program;
  const ax_eqn *eqn = &program->eqns[e];
  uint64_t length;
  if (eqn->prim != &ax_prim_closed_call || eqn->in_count == 0 || eqn->out_count == 0) return AX_OK;
  AX_TRY(length_of(l->all, ax_eqn_program(eqn, 0), &length));
  if (length < least_body(l->all)) return AX_OK;
  ax_memo_entry *entry = ax_memo_ask(&l->all->memo, "called by", ax_eqn_program(eqn, 0), &program, sizeof program);
  if (entry == NULL) return ax_out_of_memory(sizeof *entry);
  if (!entry->known) l->first[entry->count = l->bodies++] = e;
  entry->known = true;
  l->which[l->calls] = entry->count;
  l->call[l->calls++] = e;
  return AX_OK;
}

static void use(looping *l, uint32_t id, uint32_t step) {
  if (l->made[id] == 0 || l->made[id] > step || l->is_kept[id]) return;
  l->is_kept[id] = true;
  l->kept[l->kept_count++] = id;
}

/* Equations without operands, as constants, are done before the loop. */
static void find_kept(looping *l) {
  const ax_program *program = l->walk.program;
  for (uint32_t e = 0, step = 0; e < program->eqn_count; e++) {
    const ax_eqn *eqn = &program->eqns[e];
    for (uint32_t i = 0; i < eqn->in_count; i++) use(l, eqn->in[i], step);
    if (e == l->call[step]) step++; /* its results can be used in the next step */
    else if (eqn->in_count == 0 || step == 0 || step == l->calls) continue;
    for (uint32_t k = 0; k < eqn->out_count; k++) l->made[eqn->out + k] = step + 1;
  }
  for (uint32_t k = 0; k < program->out_count; k++) use(l, program->outs[k], l->calls);
}

static bool is_plain(const ax_type *type) {
  return type->form == AX_ARRAY && type->dtype != AX_KEY && !ax_is_power(type->dtype) &&
         (type->spread.reduced | type->spread.unreduced) == 0;
}

static bool are_plain(const ax_type *types, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (!is_plain(&types[i])) return false;
  return true;
}

/* Gives the bodies' results their places. False: values that loops cannot carry, or more copies than calls are worth. */
static bool place_carries(looping *l) {
  const ax_program *program = l->walk.program;
  l->carries = l->kept_count;
  for (uint32_t b = 0; b < l->bodies; b++) {
    const ax_eqn *eqn = caller_of(l, b);
    const ax_program *body = ax_eqn_program(eqn, 0);
    l->result[b] = l->carries;
    l->carries += eqn->out_count;
    l->operands += eqn->in_count;
    if (!are_plain(body->types, body->in_count) || !are_plain(program->types + eqn->out, eqn->out_count)) return false;
  }
  for (uint32_t k = 0; k < l->kept_count; k++)
    if (!is_plain(&program->types[l->kept[k]])) return false;
  return (uint64_t)l->calls * ((uint64_t)l->carries + l->operands) <= most_choices;
}

static ax_status find_steps(looping *l, bool *loops) {
  const ax_program *program = l->walk.program;
  *loops = false;
  if ((program->effects & ~(uint32_t)AX_EFFECT_EXCHANGE) != 0) return AX_OK;
  for (uint32_t e = 0; e < program->eqn_count; e++) AX_TRY(note_call(l, e));
  l->call[l->calls] = program->eqn_count;
  if (l->calls == l->bodies) return AX_OK;
  find_kept(l);
  *loops = place_carries(l);
  return AX_OK;
}

/* --- The loop --- */

static void replay(looping *l, uint32_t e) {
  const ax_eqn *eqn = &l->walk.program->eqns[e];
  const ax_value *in = ax_walk_operands(&l->walk, eqn);
  if (!ax_failed()) ax_bind(eqn->prim, l->params[e], in, eqn->in_count, l->walk.value + eqn->out, eqn->out_count);
}

static ax_value zeros_of(const ax_type *type) { return (ax_full)(type->dtype, AX_LIST(type->rank, type->dims), 0); }

/* From the loop's carries to the values that they are before this step. */
static void take_carries(looping *l, uint32_t step, const ax_value *in) {
  for (uint32_t k = 0; k < l->kept_count; k++) l->walk.value[l->kept[k]] = in[k];
  const ax_eqn *last = step > 0 ? call_of(l, step - 1) : NULL;
  for (uint32_t k = 0; last != NULL && k < last->out_count; k++) l->walk.value[last->out + k] = in[l->result[l->which[step - 1]] + k];
}

typedef struct choice { /* of a switch */
  looping *l;
  uint32_t number;
} choice;

/* A step's equations, up to its call: carries -> the values that are kept, and the operands of all bodies. */
static void before_call(const ax_value *in, ax_value *out, void *context) {
  const choice *c = context;
  looping *l = c->l;
  const ax_program *program = l->walk.program;
  const uint32_t step = c->number;
  take_carries(l, step, in);
  for (uint32_t e = step > 0 ? l->call[step - 1] + 1 : l->call[0]; e < l->call[step]; e++)
    if (program->eqns[e].in_count > 0) replay(l, e);
  for (uint32_t k = 0; k < l->kept_count; k++) *out++ = l->walk.value[l->kept[k]];
  for (uint32_t b = 0; b < l->bodies; b++) {
    const ax_eqn *eqn = b == l->which[step] ? call_of(l, step) : caller_of(l, b);
    const ax_program *body = ax_eqn_program(eqn, 0);
    for (uint32_t i = 0; i < eqn->in_count; i++)
      *out++ = b == l->which[step] ? l->walk.value[eqn->in[i]] : zeros_of(&body->types[i]);
  }
}

/* A body: the last results of all bodies, and their operands -> the results. */
static void call(const ax_value *in, ax_value *out, void *context) {
  const choice *c = context;
  const looping *l = c->l;
  const uint32_t results = l->carries - l->kept_count, at = l->result[c->number] - l->kept_count;
  const ax_eqn *eqn = caller_of(l, c->number);
  const ax_closed_call_params *params = l->params[l->first[c->number]];
  const ax_value *operands = in + results;
  for (uint32_t b = 0; b < c->number; b++) operands += caller_of(l, b)->in_count;
  for (uint32_t k = 0; k < results; k++) out[k] = in[k];
  (ax_call)(params->body, eqn->in_count, operands, eqn->out_count, out + at);
}

/* Makes a switch over functions of the same operands and results; of one function, a call of that. */
static void choose(looping *l, ax_function function, uint32_t count, ax_value index, uint32_t in_count, const ax_value *in,
                   uint32_t out_count, ax_value *out) {
  ax_fn *functions = ax_walk_alloc(&l->walk, count * sizeof functions[0]);
  choice *choices = ax_walk_alloc(&l->walk, count * sizeof choices[0]);
  if (functions == NULL || choices == NULL) return;
  for (uint32_t i = 0; i < count; i++) {
    choices[i] = (choice){l, i};
    functions[i] = (ax_fn){function, in_count, out_count, &choices[i]};
  }
  if (count == 1) function(in, out, &choices[0]);
  else (ax_switch)(index, count, functions, in_count, in, out_count, out);
}

/* carries, the number of the step, that of its body -> carries */
static void one_step(const ax_value *in, ax_value *out, void *context) {
  looping *l = context;
  const uint32_t results = l->carries - l->kept_count;
  ax_value *chosen = ax_walk_alloc(&l->walk, ((size_t)l->carries + l->operands) * sizeof chosen[0]);
  ax_value *called = ax_walk_alloc(&l->walk, ((size_t)results + l->operands) * sizeof called[0]);
  if (chosen == NULL || called == NULL) return;
  choose(l, before_call, l->calls, in[l->carries], l->carries, in, l->kept_count + l->operands, chosen);
  for (uint32_t k = 0; k < results; k++) called[k] = in[l->kept_count + k];
  for (uint32_t i = 0; i < l->operands; i++) called[results + i] = chosen[l->kept_count + i];
  for (uint32_t k = 0; k < l->kept_count; k++) out[k] = chosen[k];
  choose(l, call, l->bodies, in[l->carries + 1], results + l->operands, called, results, out + l->kept_count);
}

static ax_value bodies_of_steps(looping *l) {
  int32_t *numbers = ax_walk_alloc(&l->walk, l->calls * sizeof numbers[0]);
  if (numbers == NULL) return ax_poison;
  for (uint32_t i = 0; i < l->calls; i++) numbers[i] = (int32_t)l->which[i];
  const ax_type type = {.dtype = AX_S32, .rank = 1, .dims = {l->calls}};
  return (ax_constant)(&type, AX_S32, numbers, l->calls * sizeof numbers[0]);
}

static void emit_loop(looping *l) {
  const ax_program *program = l->walk.program;
  const uint32_t in_count = l->carries + 2;
  ax_value *in = ax_walk_alloc(&l->walk, in_count * sizeof in[0]), *out = ax_walk_alloc(&l->walk, l->carries * sizeof out[0]);
  const int64_t steps[] = {l->calls};
  if (in == NULL || out == NULL) return;
  for (uint32_t k = 0; k < l->kept_count; k++) in[k] = zeros_of(&program->types[l->kept[k]]);
  for (uint32_t b = 0; b < l->bodies; b++)
    for (uint32_t k = 0; k < caller_of(l, b)->out_count; k++)
      in[l->result[b] + k] = zeros_of(&program->types[caller_of(l, b)->out + k]);
  in[l->carries] = (ax_iota)(AX_S32, AX_LIST(1, steps), 0);
  in[l->carries + 1] = bodies_of_steps(l);
  (ax_scan)((ax_fn){one_step, in_count, l->carries, l}, l->carries, l->calls, false, in_count, in, l->carries, out);
  if (!ax_failed()) take_carries(l, l->calls, out);
}

/* --- Programs --- */

static void emit(looping *l, bool loops) {
  const ax_program *program = l->walk.program;
  const uint32_t first = loops ? l->call[0] : program->eqn_count, last = loops ? l->call[l->calls - 1] : program->eqn_count;
  for (uint32_t e = 0; e < program->eqn_count && !ax_failed(); e++)
    if (e < first || program->eqns[e].in_count == 0) replay(l, e);
  if (loops && !ax_failed()) emit_loop(l);
  for (uint32_t e = last; e < program->eqn_count && !ax_failed(); e++)
    if (e > last && program->eqns[e].in_count > 0) replay(l, e);
}

static ax_status rebuild(looping *l, bool loops, ax_program **out) {
  const ax_program *program = l->walk.program;
  ax_value *outs = ax_arena_alloc(&l->walk.arena, program->out_count * sizeof outs[0]);
  if (outs == NULL) return ax_out_of_memory(program->out_count * sizeof outs[0]);
  ax_builder builder;
  ax_builder_begin(&builder, &program->axes);
  for (uint32_t i = 0; i < program->in_count; i++) l->walk.value[i] = ax_builder_input(&builder, &program->types[i]);
  emit(l, loops);
  for (uint32_t k = 0; k < program->out_count; k++) outs[k] = l->walk.value[program->outs[k]];
  return ax_builder_finish(&builder, outs, program->out_count, out, NULL, NULL);
}

static ax_status work(looping *l, ax_program **out) {
  const ax_program *program = l->walk.program;
  bool loops;
  AX_TRY(allocate(l));
  for (uint32_t e = 0; e < program->eqn_count; e++) AX_TRY(make_params(l, e));
  AX_TRY(find_steps(l, &loops));
  return rebuild(l, loops, out);
}

/* The program as it is compiled, owned by the memo. */
static ax_status compiled(shortening *all, const ax_program *program, ax_program **out) {
  uint64_t length;
  AX_TRY(length_of(all, program, &length));
  ax_memo_entry *entry = ax_memo_ask(&all->memo, "calls as steps", program, NULL, 0);
  if (entry == NULL) return ax_out_of_memory(sizeof *entry);
  if (!entry->known && (length <= most_of_body(all) || program->nesting == 0)) {
    entry->made[0] = ax_program_retain((ax_program *)program);
  } else if (!entry->known) {
    looping l = {.all = all};
    const ax_status status = ax_walk_init(&l.walk, program) ? work(&l, &entry->made[0]) : ax_out_of_memory(0);
    ax_walk_deinit(&l.walk);
    AX_TRY(status);
  }
  entry->known = true;
  *out = entry->made[0];
  return AX_OK;
}

ax_status ax_program_loop_calls(const ax_program *program, uint64_t most, ax_program **out) {
  shortening all = {.most = most};
  uint64_t length = 0;
  *out = (ax_program *)program;
  ax_status status = length_of(&all, program, &length);
  if (status == AX_OK && length > most) status = compiled(&all, program, out);
  if (status == AX_OK) status = length_of(&all, *out, &length);
  if (status == AX_OK && length > AX_MOST_COMPILED)
    status = ax_error(AX_INVALID_ARGUMENT, "with its calls written out the program has %s%llu equations: at most %d are compiled",
                      length == UINT64_MAX ? "more than " : "", (unsigned long long)(length == UINT64_MAX ? INT64_MAX : length),
                      AX_MOST_COMPILED);
  *out = status == AX_OK ? ax_program_retain(*out) : NULL;
  ax_memo_deinit(&all.memo);
  return ax_verified(status, out);
}
