/* Forward differentiation: each value gets its tangent beside it, equation by equation, by the primitives' rules.

     y = f(x)    becomes    y, dy = f(x), f'(x) dx

   A tangent that is zero for all tangents of the inputs is symbolic (ax_zero). Equations that have only such tangents are copied.
   Invariant: any other tangent has exactly the type that ax_tangent gives: its value's, axes included; for a future the type of the
   array itself. */
#include "control/custom_linear.h"
#include "ir/prim.h"
#include "prim/prims.h"
#include "prim/bind.h"
#include "xform/xform.h"

typedef struct jvp_walk {
  ax_program_walk walk;
  ax_value *tangent;    /* by value id */
  ax_value *tangent_in; /* room for one equation's */
  bool linearize;
} jvp_walk;

/* Returns the symbolic zero for a value that is no float. Any other tangent is spread as its value is, and checked. */
static ax_value fitted(const ax_eqn *eqn, ax_value tangent, const ax_type *type) {
  if (ax_is_zero(tangent) || !ax_is_differentiable(type->dtype)) return ax_zero;
  ax_type wanted = ax_tangent(type);
  tangent = ax_spread_to(tangent, &wanted.spread);
  return ax_check_rule(eqn, "jvp", tangent, &wanted) ? tangent : ax_poison;
}

bool ax_reverses_messages(const ax_eqn *eqn) {
  static const ax_prim *const prims[] = {&ax_prim_closed_call, &ax_prim_shard_map, &ax_prim_scan, &ax_prim_cond};
  for (size_t i = 0; i < AX_COUNT(prims); i++)
    if (eqn->prim == prims[i]) return true;
  return false;
}

static bool moves_floats(const ax_program *program) {
  for (uint32_t i = 0; i < program->eqn_count && (program->effects & AX_EFFECT_MESSAGE) != 0; i++) {
    const ax_eqn *eqn = &program->eqns[i];
    const ax_program *held;
    if ((eqn->prim->effects & AX_EFFECT_MESSAGE) != 0 &&
        (ax_is_differentiable(program->types[eqn->in[0]].dtype) || ax_is_differentiable(program->types[eqn->out].dtype)))
      return true;
    for (uint32_t k = 0; (held = ax_eqn_program(eqn, k)) != NULL; k++)
      if (moves_floats(held)) return true;
  }
  return false;
}

/* Regions whose halves or transpose cannot be told from what depends on what: messages carry tangents beside it. What custom_vjp
   and its linear map send is as their rules say, and is not differentiated. */
static bool refuses_messages(const ax_eqn *eqn) {
  const ax_program *held;
  uint32_t effects = ax_eqn_effects(eqn);
  if (eqn->prim->kind != AX_REGION || (effects & AX_EFFECT_MESSAGE) == 0 || ax_reverses_messages(eqn)) return false;
  if ((effects & AX_EFFECT_TANGENT) != 0) return true;
  for (uint32_t k = 0;
       eqn->prim != &ax_prim_custom_vjp && eqn->prim != &ax_prim_custom_linear && (held = ax_eqn_program(eqn, k)) != NULL; k++)
    if (moves_floats(held)) return true;
  return false;
}

static void step(jvp_walk *w, const ax_eqn *eqn) {
  const ax_program *program = w->walk.program;
  ax_value *tangent_out = w->tangent + eqn->out;
  if (w->linearize && refuses_messages(eqn)) {
    ax_fail(ax_error(AX_ABSENT,
                     "%s has no linearize rule where it holds messages (psend, precv) of floats, and so no transpose: of a program "
                     "with it there are forward derivatives alone (jvp)",
                     eqn->prim->name));
    return;
  }
  bool any = (ax_eqn_effects(eqn) & AX_EFFECT_MESSAGE) != 0; /* both sides go by their rules, whatever the other comes from */
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    w->tangent_in[i] = w->tangent[eqn->in[i]];
    any = any || !ax_is_zero(w->tangent_in[i]);
  }
  for (uint32_t k = 0; k < eqn->out_count; k++) tangent_out[k] = ax_zero;
  if (!any) {
    ax_walk_replay(&w->walk, eqn);
    return;
  }
  ax_jvp_args args = {eqn, ax_walk_operands(&w->walk, eqn), w->tangent_in, w->walk.value + eqn->out, tangent_out};
  (w->linearize ? eqn->prim->linearize : eqn->prim->jvp)(&args);
  for (uint32_t k = 0; k < eqn->out_count && !ax_failed(); k++)
    if (ax_check_rule(eqn, "jvp", args.out[k], &program->types[eqn->out + k]))
      tangent_out[k] = fitted(eqn, tangent_out[k], &program->types[eqn->out + k]);
}

static bool init(jvp_walk *w, ax_builder *builder, const ax_program *program, const bool *wrt) {
  if (!ax_walk_init(&w->walk, program)) return false;
  w->tangent = ax_walk_alloc(&w->walk, program->value_count * sizeof w->tangent[0]);
  w->tangent_in = ax_walk_alloc(&w->walk, w->walk.most * sizeof w->tangent_in[0]);
  if (w->tangent == NULL || w->tangent_in == NULL) return false;
  for (uint32_t i = 0; i < program->in_count; i++) {
    w->walk.value[i] = ax_builder_input(builder, &program->types[i]);
    w->tangent[i] = ax_zero;
  }
  for (uint32_t i = 0; i < program->in_count; i++) {
    ax_type tangent = ax_tangent(&program->types[i]);
    if (ax_has_tangent(program, wrt, i)) w->tangent[i] = ax_builder_input(builder, &tangent);
  }
  return !ax_failed();
}

/* The results, then those of their tangents that are wanted. NULL: the trace has failed. */
static ax_value *results(jvp_walk *w, const ax_want *want, uint32_t *count) {
  const ax_program *program = w->walk.program;
  ax_value *outs = ax_walk_alloc(&w->walk, 2 * (size_t)program->out_count * sizeof outs[0]);
  if (outs == NULL) return NULL;
  *count = program->out_count;
  for (uint32_t i = 0; i < program->out_count; i++) {
    uint32_t id = program->outs[i];
    ax_want wanted = want != NULL ? want[i] : AX_WANT_ALWAYS;
    bool is_float = ax_is_differentiable(program->types[id].dtype);
    outs[i] = w->walk.value[id];
    if (is_float && wanted == AX_WANT_ALWAYS) outs[(*count)++] = ax_instantiate(w->tangent[id], outs[i]);
    if (is_float && wanted == AX_WANT_ZERO && !ax_is_zero(w->tangent[id]))
      ax_fail(ax_error(AX_INTERNAL, "jvp: result %u has a tangent where none was expected", i));
  }
  return outs;
}

ax_status ax_differentiate(const ax_program *program, const bool *wrt, const ax_want *want, bool linearize, ax_program **out) {
  *out = NULL;
  AX_TRY(ax_check_wrt(program, wrt));
  ax_builder builder;
  ax_memo memo = {0};
  jvp_walk w = {.linearize = linearize};
  ax_value *outs = NULL;
  uint32_t out_count = 0;
  ax_builder_begin(&builder, &program->axes);
  ax_memo_enter(&builder, &memo);
  if (init(&w, &builder, program, wrt)) {
    for (uint32_t i = 0; i < program->eqn_count && !ax_failed(); i++) step(&w, &program->eqns[i]);
    outs = results(&w, want, &out_count);
  }
  ax_status status = ax_finish_clean(&builder, outs, out_count, out);
  ax_walk_deinit(&w.walk);
  ax_memo_deinit(&memo);
  return status;
}

ax_status ax_find_tangents(const char *question, const ax_program *program, const bool *wrt, const ax_want *want, const void *more,
                           size_t bytes, ax_memo_entry **entry) {
  ax_text key = {0};
  if (bytes > 0) ax_text_add_bytes(&key, more, bytes);
  for (uint32_t i = 0; i < program->in_count; i++) ax_text_add_bytes(&key, ax_has_tangent(program, wrt, i) ? "1" : "0", 1);
  for (uint32_t k = 0; k < program->out_count; k++) ax_text_add_bytes(&key, &"012"[want != NULL ? want[k] : AX_WANT_ALWAYS], 1);
  return ax_memo_find(question, program, &key, entry);
}

ax_status ax_jvp_program(const ax_program *program, const bool *wrt, const ax_want *want, ax_program **out) {
  ax_memo_entry *entry;
  *out = NULL;
  AX_TRY(ax_find_tangents("jvp", program, wrt, want, NULL, 0, &entry));
  if (entry == NULL) return ax_differentiate(program, wrt, want, false, out);
  if (!entry->known) AX_TRY(ax_differentiate(program, wrt, want, false, &entry->made[0]));
  entry->known = true;
  *out = ax_program_retain(entry->made[0]);
  return AX_OK;
}

ax_status ax_program_jvp(const ax_program *program, ax_args wrt, ax_program **out) {
  bool *mask;
  *out = NULL;
  AX_TRY(ax_require(program, "program"));
  AX_TRY(ax_wrt_mask(program, wrt, &mask));
  ax_status status = ax_jvp_program(program, mask, NULL, out);
  ax_free(mask);
  if (status == AX_OK) status = ax_custom_linear_check(*out);
  if (status == AX_OK) return AX_OK;
  ax_program_release(*out);
  *out = NULL;
  return status;
}
