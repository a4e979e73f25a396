/* Transposition of a linear program: cotangents walk backward, from the results to the linear inputs.

     (c.., dx..) -> (dy..)   becomes   (c.., ct of dy..) -> (ct of dx..)

   Equations that do not depend on the linear inputs are copied forward first. A value used in several places gets the sum of the
   cotangents from each. If many equations take small parts of a value, each adds its cotangent to that part of the sum so far:
   arrays of zeros with one part in them would take the time and the memory of the whole value for each.

   Invariant: a cotangent has exactly the dual of its value's type (ax_dual), axes included; a value that is invariant while its
   uses vary has a pvary between, whose transpose is the psum.

   Messages with tangents (AX_EFFECT_TANGENT) depend on linear inputs, though no operand says so. They are always sent back, zeros
   as well: the receiver sends, and the sender receives. Each device runs its own equations in reverse, so the k-th message of a
   link is the k-th from the end on both sides. A program without a cycle of waits has none in reverse either. */
#include <string.h>

#include "ir/prim.h"
#include "prim/bind.h"
#include "xform/xform.h"

/* Fewer parts, or larger ones, are padded with zeros: such sums become one kernel, as in a stencil. */
enum { many_parts = 8, small_part = 8 };

typedef struct transpose_walk {
  ax_program_walk walk;
  const bool *linear_in;
  bool *depends;       /* by value: on a linear input */
  ax_value *cotangent; /* by value; symbolic zero until something uses it */
  uint32_t *parts;     /* by value: the equations that take small parts of it */
  /* room for one equation's */
  bool *linear;
  ax_type *types;
  ax_value *cotangent_in;
} transpose_walk;

static bool init(transpose_walk *w, const ax_program *program) {
  if (!ax_walk_init(&w->walk, program)) return false;
  w->depends = ax_walk_alloc(&w->walk, program->value_count);
  w->cotangent = ax_walk_alloc(&w->walk, program->value_count * sizeof w->cotangent[0]);
  w->parts = ax_walk_alloc(&w->walk, program->value_count * sizeof w->parts[0]);
  w->linear = ax_walk_alloc(&w->walk, w->walk.most);
  w->types = ax_walk_alloc(&w->walk, w->walk.most * sizeof w->types[0]);
  w->cotangent_in = ax_walk_alloc(&w->walk, w->walk.most * sizeof w->cotangent_in[0]);
  if (w->depends == NULL || w->cotangent == NULL || w->parts == NULL || w->linear == NULL || w->types == NULL ||
      w->cotangent_in == NULL)
    return false;
  for (uint32_t i = 0; i < program->value_count; i++) w->cotangent[i] = ax_zero;
  return true;
}

/* The constants, then a cotangent for each result that has one. */
static void inputs(transpose_walk *w, ax_builder *builder, const bool *zero) {
  const ax_program *program = w->walk.program;
  ax_value *given = ax_walk_alloc(&w->walk, program->out_count * sizeof given[0]);
  for (uint32_t i = 0; i < program->in_count; i++) {
    w->depends[i] = w->linear_in[i];
    if (!w->depends[i]) w->walk.value[i] = ax_builder_input(builder, &program->types[i]);
  }
  for (uint32_t i = 0; i < program->out_count && given != NULL; i++) {
    ax_type type = ax_dual(&program->types[program->outs[i]]);
    given[i] = zero != NULL && zero[i] ? ax_zero : ax_builder_input(builder, &type);
  }
  for (uint32_t i = 0; i < program->out_count && given != NULL; i++) {
    ax_value *sum = &w->cotangent[program->outs[i]];
    *sum = ax_add_any(*sum, given[i]);
  }
}

static void check_messages(const ax_eqn *eqn) {
  uint32_t effects = ax_eqn_effects(eqn);
  if ((effects & AX_EFFECT_MESSAGE) == 0 || (effects & AX_EFFECT_BACKWARD) != 0) return;
  if ((effects & AX_EFFECT_TANGENT) == 0)
    ax_fail(
        ax_error(AX_ABSENT,
                 "%s has no transpose where it sends or receives what is linear: its other side cannot be found; derivatives mark "
                 "messages with tangents",
                 eqn->prim->name));
  else if (eqn->prim->kind == AX_REGION && !ax_reverses_messages(eqn))
    ax_fail(ax_error(AX_ABSENT, "%s has no transpose where it holds messages (psend, precv) with tangents", eqn->prim->name));
}

/* Whether the equation's result is so much smaller than its first operand that it may be a part of it. */
static bool takes_part(const transpose_walk *w, const ax_eqn *eqn) {
  const ax_program *program = w->walk.program;
  if (eqn->in_count == 0 || eqn->out_count != 1 || eqn->prim->kind != AX_LOCAL) return false;
  const int64_t whole = ax_type_elems(&program->types[eqn->in[0]]);
  return w->depends[eqn->in[0]] && ax_type_elems(&program->types[eqn->out]) <= whole / small_part;
}

static void forward(transpose_walk *w) {
  const ax_program *program = w->walk.program;
  for (uint32_t i = 0; i < program->eqn_count && !ax_failed(); i++) {
    const ax_eqn *eqn = &program->eqns[i];
    bool depends = (ax_eqn_effects(eqn) & AX_EFFECT_TANGENT) != 0;
    for (uint32_t j = 0; j < eqn->in_count; j++) depends = depends || w->depends[eqn->in[j]];
    for (uint32_t k = 0; k < eqn->out_count; k++) w->depends[eqn->out + k] = depends;
    if (!depends) ax_walk_replay(&w->walk, eqn);
    else check_messages(eqn);
    if (depends && takes_part(w, eqn)) w->parts[eqn->in[0]]++;
  }
}

/* One equation that depends on linear inputs, from its results' cotangents to those of its operands. */
static void step(transpose_walk *w, const ax_eqn *eqn) {
  const ax_program *program = w->walk.program;
  bool any = (ax_eqn_effects(eqn) & AX_EFFECT_TANGENT) != 0;
  for (uint32_t k = 0; k < eqn->out_count; k++)
    any = any || (w->depends[eqn->out + k] && !ax_is_zero(w->cotangent[eqn->out + k]));
  if (!any) return;
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    w->linear[i] = w->depends[eqn->in[i]];
    w->types[i] = program->types[eqn->in[i]];
    w->cotangent_in[i] = ax_zero;
  }
  const bool one_of_many = takes_part(w, eqn) && w->parts[eqn->in[0]] >= many_parts;
  bool summed = false;
  ax_transpose_args args = {eqn,
                            w->types,
                            w->linear,
                            ax_walk_operands(&w->walk, eqn),
                            w->cotangent + eqn->out,
                            w->cotangent_in,
                            one_of_many ? w->cotangent[eqn->in[0]] : ax_zero,
                            &summed};
  eqn->prim->transpose(&args);
  if (summed) w->cotangent[eqn->in[0]] = ax_zero;
  for (uint32_t i = 0; i < eqn->in_count && !ax_failed(); i++) {
    if (!w->linear[i] || ax_is_zero(w->cotangent_in[i])) continue;
    ax_value *sum = &w->cotangent[eqn->in[i]];
    ax_type dual = ax_dual(&w->types[i]);
    if (ax_check_rule(eqn, "transpose", w->cotangent_in[i], &dual)) *sum = ax_add_any(*sum, w->cotangent_in[i]);
  }
}

static ax_value *results(transpose_walk *w, bool *made_zero, uint32_t *count) {
  const ax_program *program = w->walk.program;
  ax_value *outs = ax_walk_alloc(&w->walk, program->in_count * sizeof outs[0]);
  for (uint32_t i = 0; i < program->in_count && outs != NULL; i++) {
    if (!w->linear_in[i]) continue;
    ax_value made = w->cotangent[i];
    if (made_zero != NULL) made_zero[i] = ax_is_zero(made);
    outs[(*count)++] = ax_is_zero(made) ? ax_zero_cotangent(&program->types[i]) : made;
  }
  return outs;
}

static ax_status transpose(const ax_program *program, const bool *linear, const bool *zero, bool *made_zero, ax_program **out) {
  ax_builder builder;
  ax_memo memo = {0};
  transpose_walk w = {.linear_in = linear};
  ax_value *outs = NULL;
  uint32_t out_count = 0;
  ax_builder_begin(&builder, &program->axes);
  ax_memo_enter(&builder, &memo);
  if (init(&w, program)) {
    inputs(&w, &builder, zero);
    forward(&w);
    for (uint32_t i = program->eqn_count; i-- > 0 && !ax_failed();) step(&w, &program->eqns[i]);
    outs = results(&w, made_zero, &out_count);
  }
  ax_status status = ax_finish_clean(&builder, outs, out_count, out);
  ax_walk_deinit(&w.walk);
  ax_memo_deinit(&memo);
  return status;
}

ax_status ax_transpose_program(const ax_program *program, const bool *linear, const bool *zero, bool *made_zero, ax_program **out) {
  ax_memo_entry *entry;
  ax_text key = {0};
  *out = NULL;
  for (uint32_t i = 0; i < program->in_count; i++) ax_text_add_bytes(&key, linear[i] ? "1" : "0", 1);
  for (uint32_t k = 0; k < program->out_count; k++) ax_text_add_bytes(&key, zero != NULL && zero[k] ? "1" : "0", 1);
  AX_TRY(ax_memo_find("transpose", program, &key, &entry));
  if (entry == NULL) return transpose(program, linear, zero, made_zero, out);
  if (!entry->known) {
    entry->data = ax_arena_alloc(&ax_builder_current()->memo->arena, program->in_count);
    if (entry->data == NULL) return ax_out_of_memory(program->in_count);
    AX_TRY(transpose(program, linear, zero, entry->data, &entry->made[0]));
    entry->known = true;
  }
  if (made_zero != NULL && program->in_count > 0) memcpy(made_zero, entry->data, program->in_count);
  *out = ax_program_retain(entry->made[0]);
  return AX_OK;
}

ax_status ax_program_transpose(const ax_program *program, ax_args linear, ax_program **out) {
  bool *mask;
  *out = NULL;
  AX_TRY(ax_require(program, "program"));
  AX_TRY(ax_wrt_mask(program, linear, &mask));
  ax_status status = ax_transpose_program(program, mask, NULL, NULL, out);
  ax_free(mask);
  return status;
}
