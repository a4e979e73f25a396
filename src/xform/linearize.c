/* Linearization: the jvp by the `linearize` rules, split into the equations that depend on the tangents and the others.

     joint:    (x.., dx..) -> (y.., dy..)
     primal:   (x..) -> (y.., residual..)             all that does not depend on dx
     tangent:  (residual.., dx..) -> (dy..)           the rest: linear in dx

   A residual is a known value that the tangent program uses and does not compute again. It computes a value again if the value
   depends on no input, or only spreads a smaller value out (a broadcast, a widening conversion, a pvary); the smaller value is then
   kept. If residuals are kept one by one (a scan stacks them), more values are computed again: residuals.c. Otherwise both halves
   end up in one program, where equal equations are merged and plan/recompute.c decides. A checkpoint's body is computed again
   whole, except for its inputs and the values that it saves; what it prints is printed again.

   A received tangent depends on dx although no operand of the equation does, and the operands of its sender may not depend on dx
   either. So these equations, and regions that hold them, always belong to the tangent half (AX_EFFECT_TANGENT), and so do the
   tokens made for them. */
#include <string.h>

#include "ir/prim.h"
#include "prim/prims.h"
#include "prim/bind.h"
#include "xform/xform.h"

typedef struct split {
  const ax_program *joint;
  const ax_saved *saved; /* all else is made again; NULL: little is */
  uint32_t x_count, y_count;
  bool *tangent; /* by value: depends on some dx */
  bool *fixed;   /* by value: depends on no input */
  bool *needed;  /* by value: the tangent program uses it */
  bool *linear;  /* by equation: it stands in the tangent program alone */
  bool *acts;    /* by equation: in the tangent program whether or not its results are used */
  bool *known;   /* by equation: it may stand in both programs */
  bool *again;   /* by equation: made again in the tangent program */
  bool *more;    /* by equation: to be made again if its result is needed, as residuals.c says */
  uint32_t *residuals;
  uint32_t residual_count;
} split;

static bool is_tangent(const split *s, const ax_eqn *eqn) { return s->linear[eqn - s->joint->eqns]; }

static bool spreads(const split *s, const ax_eqn *eqn) {
  if (eqn->in_count != 1 || eqn->out_count != 1 || ax_value_weight(s->joint, eqn->out) <= ax_value_weight(s->joint, eqn->in[0]))
    return false;
  return eqn->prim->kind == AX_LOCAL ||
         (eqn->prim->kind == AX_COLLECTIVE && ax_same_shape(&s->joint->types[eqn->out], &s->joint->types[eqn->in[0]]));
}

static bool is_saved(const split *s, const ax_eqn *eqn) { return s->saved->saves(s->saved->policy, eqn); }

/* Whether an equation may stand in both programs: not with state, and not half of a start and its done, which stay together; where
   all is made again, both of them are, and what has state prints. */
static bool repeatable(const split *s, const ax_eqn *eqn) {
  const ax_type *types = s->joint->types;
  if (s->saved != NULL) return true;
  if ((ax_eqn_effects(eqn) & AX_EFFECT_STATE) != 0 || eqn->out_count == 0) return false;
  if (types[eqn->out].form != AX_ARRAY) return false;
  return eqn->in_count == 0 || types[eqn->in[0]].form == AX_ARRAY;
}

static void forward(split *s) {
  const ax_program *joint = s->joint;
  for (uint32_t i = s->x_count; i < joint->in_count; i++) s->tangent[i] = true;
  for (uint32_t i = 0; i < joint->eqn_count; i++) {
    const ax_eqn *eqn = &joint->eqns[i];
    uint32_t effects = ax_eqn_effects(eqn);
    bool tangent = (effects & AX_EFFECT_TANGENT) != 0, fixed = true;
    for (uint32_t j = 0; j < eqn->in_count; j++) {
      tangent = tangent || s->tangent[eqn->in[j]];
      fixed = fixed && s->fixed[eqn->in[j]];
    }
    for (uint32_t k = 0; k < eqn->out_count; k++) {
      s->tangent[eqn->out + k] = tangent;
      s->fixed[eqn->out + k] = fixed;
    }
    s->linear[i] = tangent;
    s->known[i] = !tangent && repeatable(s, eqn);
    s->acts[i] = tangent ? eqn->out_count == 0 || (effects & AX_EFFECT_TANGENT) != 0
                         : s->known[i] && (effects & AX_EFFECT_STATE) != 0 && !is_saved(s, eqn);
  }
}

/* A token goes with the equation that takes it. */
static void mark_tokens(split *s) {
  const ax_program *joint = s->joint;
  for (uint32_t i = joint->eqn_count; i-- > 0;) {
    const ax_eqn *eqn = &joint->eqns[i];
    if (eqn->prim == &ax_prim_create_token) s->linear[i] = s->tangent[eqn->out];
    for (uint32_t j = 0; j < eqn->in_count && s->linear[i]; j++)
      if (joint->types[eqn->in[j]].form == AX_TOKEN) s->tangent[eqn->in[j]] = true;
  }
}

/* Refuses messages that a user's derivative rule sends or receives as a function of tangents: they are not marked as tangents'
   messages, so the transpose could not find their other side. */
static ax_status check_messages(const split *s) {
  for (uint32_t i = 0; i < s->joint->eqn_count; i++) {
    const ax_eqn *eqn = &s->joint->eqns[i];
    if (s->linear[i] && (ax_eqn_effects(eqn) & (AX_EFFECT_MESSAGE | AX_EFFECT_TANGENT | AX_EFFECT_BACKWARD)) == AX_EFFECT_MESSAGE)
      return ax_error(
          AX_ABSENT,
          "linearize: %s sends or receives, in a rule given for derivatives, what depends on a tangent: that has no transpose",
          eqn->prim->name);
  }
  return AX_OK;
}

static bool any_needed(const split *s, const ax_eqn *eqn) {
  bool any = false;
  for (uint32_t k = 0; k < eqn->out_count; k++) any = any || s->needed[eqn->out + k];
  return any;
}

static void backward(split *s) {
  const ax_program *joint = s->joint;
  for (uint32_t i = s->y_count; i < joint->out_count; i++) s->needed[joint->outs[i]] = true;
  for (uint32_t i = joint->eqn_count; i-- > 0;) {
    const ax_eqn *eqn = &joint->eqns[i];
    if (!any_needed(s, eqn) && !s->acts[i]) continue;
    bool again = s->known[i] && (s->saved != NULL ? !is_saved(s, eqn) : s->fixed[eqn->out] || spreads(s, eqn) || s->more[i]);
    s->again[i] = again;
    if (is_tangent(s, eqn) || s->again[i])
      for (uint32_t j = 0; j < eqn->in_count; j++) s->needed[eqn->in[j]] = true;
  }
}

static void collect(split *s) {
  const ax_program *joint = s->joint;
  for (uint32_t i = 0; i < s->x_count; i++)
    if (s->needed[i]) s->residuals[s->residual_count++] = i;
  for (uint32_t i = 0; i < joint->eqn_count; i++) {
    const ax_eqn *eqn = &joint->eqns[i];
    for (uint32_t k = 0; k < eqn->out_count && !s->again[i] && !is_tangent(s, eqn); k++)
      if (s->needed[eqn->out + k]) s->residuals[s->residual_count++] = eqn->out + k;
  }
}

/* Goes backward again with what residuals.c has chosen. */
static ax_status choose(split *s, const bool *held) {
  ax_residuals residuals = {s->joint, held, s->known, s->again, s->fixed, s->needed, s->more};
  AX_TRY(ax_choose_residuals(&residuals));
  memset(s->needed, 0, s->joint->value_count);
  memset(s->again, 0, s->joint->eqn_count);
  backward(s);
  return AX_OK;
}

static ax_status analyse(split *s, const bool *held, ax_arena *arena) {
  size_t values = s->joint->value_count, eqns = s->joint->eqn_count;
  s->tangent = ax_arena_alloc(arena, values);
  s->fixed = ax_arena_alloc(arena, values);
  s->needed = ax_arena_alloc(arena, values);
  s->linear = ax_arena_alloc(arena, eqns);
  s->acts = ax_arena_alloc(arena, eqns);
  s->known = ax_arena_alloc(arena, eqns);
  s->again = ax_arena_alloc(arena, eqns);
  s->more = ax_arena_alloc(arena, eqns);
  s->residuals = ax_arena_alloc(arena, values * sizeof s->residuals[0]);
  if (s->tangent == NULL || s->fixed == NULL || s->needed == NULL || s->linear == NULL || s->acts == NULL || s->known == NULL ||
      s->again == NULL || s->more == NULL || s->residuals == NULL)
    return ax_out_of_memory(values * sizeof s->residuals[0]);
  forward(s);
  mark_tokens(s);
  AX_TRY(check_messages(s));
  for (uint32_t i = 0; i < s->y_count; i++)
    if (s->tangent[s->joint->outs[i]]) return ax_error(AX_INTERNAL, "linearize: result %u depends on the tangents", i);
  backward(s);
  if (held != NULL) AX_TRY(choose(s, held));
  collect(s);
  return AX_OK;
}

static ax_status build_primal(const split *s, ax_program **out) {
  const ax_program *joint = s->joint;
  ax_builder builder;
  ax_program_walk walk;
  ax_value *outs = NULL;
  ax_builder_begin(&builder, &joint->axes);
  if (ax_walk_init(&walk, joint)) {
    for (uint32_t i = 0; i < s->x_count; i++) walk.value[i] = ax_builder_input(&builder, &joint->types[i]);
    for (uint32_t i = 0; i < joint->eqn_count && !ax_failed(); i++)
      if (!is_tangent(s, &joint->eqns[i])) ax_walk_replay(&walk, &joint->eqns[i]);
    outs = ax_walk_alloc(&walk, (s->y_count + (size_t)s->residual_count) * sizeof outs[0]);
  }
  for (uint32_t i = 0; i < s->y_count && outs != NULL; i++) outs[i] = walk.value[joint->outs[i]];
  for (uint32_t i = 0; i < s->residual_count && outs != NULL; i++) outs[s->y_count + i] = walk.value[s->residuals[i]];
  ax_status status = ax_finish_clean(&builder, outs, s->y_count + s->residual_count, out);
  ax_walk_deinit(&walk);
  return status;
}

static ax_status build_tangent(const split *s, ax_program **out) {
  const ax_program *joint = s->joint;
  uint32_t out_count = joint->out_count - s->y_count;
  ax_builder builder;
  ax_program_walk walk;
  ax_value *outs = NULL;
  ax_builder_begin(&builder, &joint->axes);
  if (ax_walk_init(&walk, joint)) {
    for (uint32_t i = 0; i < s->residual_count; i++)
      walk.value[s->residuals[i]] = ax_builder_input(&builder, &joint->types[s->residuals[i]]);
    for (uint32_t i = s->x_count; i < joint->in_count; i++)
      walk.value[i] = ax_builder_input(&builder, &joint->types[i]);
    for (uint32_t i = 0; i < joint->eqn_count && !ax_failed(); i++)
      if (s->again[i] || is_tangent(s, &joint->eqns[i])) ax_walk_replay(&walk, &joint->eqns[i]);
    outs = ax_walk_alloc(&walk, out_count * sizeof outs[0]);
  }
  for (uint32_t i = 0; i < out_count && outs != NULL; i++) outs[i] = walk.value[joint->outs[s->y_count + i]];
  ax_status status = ax_finish_clean(&builder, outs, out_count, out);
  ax_walk_deinit(&walk);
  return status;
}

typedef struct question {
  const ax_program *program;
  const bool *wrt, *held;
  const ax_want *want;
  const ax_saved *saved;
} question;

static ax_status linearize(const question *q, ax_program **primal, ax_program **tangent, uint32_t *residual_count) {
  const ax_program *program = q->program;
  ax_program *joint;
  ax_arena arena = {0};
  *primal = *tangent = NULL;
  *residual_count = 0;
  AX_TRY(ax_differentiate(program, q->wrt, q->want, true, &joint));
  split s = {.joint = joint, .saved = q->saved, .x_count = program->in_count, .y_count = program->out_count};
  ax_status status = analyse(&s, q->held, &arena);
  if (status == AX_OK) status = build_primal(&s, primal);
  if (status == AX_OK) status = build_tangent(&s, tangent);
  if (status == AX_OK) {
    *residual_count = s.residual_count;
  } else {
    ax_program_release(*primal);
    *primal = NULL;
  }
  ax_arena_deinit(&arena);
  ax_program_release(joint);
  return status;
}

static ax_status answer(const char *name, const question *q, ax_program **primal, ax_program **tangent, uint32_t *residual_count) {
  ax_memo_entry *entry;
  *primal = *tangent = NULL;
  const void *more = q->saved != NULL ? q->saved->policy : q->held;
  size_t bytes = q->saved != NULL ? q->saved->policy_bytes : q->held != NULL ? q->program->in_count : 0;
  AX_TRY(ax_find_tangents(name, q->program, q->wrt, q->want, more, bytes, &entry));
  if (entry == NULL) return linearize(q, primal, tangent, residual_count);
  if (!entry->known) AX_TRY(linearize(q, &entry->made[0], &entry->made[1], &entry->count));
  entry->known = true;
  *primal = ax_program_retain(entry->made[0]);
  *tangent = ax_program_retain(entry->made[1]);
  *residual_count = entry->count;
  return AX_OK;
}

ax_status ax_linearize_program(const ax_program *program, const bool *wrt, const ax_want *want, const bool *held,
                               ax_program **primal, ax_program **tangent, uint32_t *residual_count) {
  return answer("linearize", &(question){program, wrt, held, want, NULL}, primal, tangent, residual_count);
}

ax_status ax_remat_program(const ax_program *program, const bool *wrt, const ax_want *want, const ax_saved *saved,
                           ax_program **primal, ax_program **tangent, uint32_t *residual_count) {
  return answer("remat", &(question){program, wrt, NULL, want, saved}, primal, tangent, residual_count);
}

ax_status ax_program_linearize(const ax_program *program, ax_args wrt, ax_program **primal, ax_program **tangent,
                               uint32_t *residual_count) {
  bool *mask;
  *primal = *tangent = NULL;
  AX_TRY(ax_require(program, "program"));
  AX_TRY(ax_wrt_mask(program, wrt, &mask));
  ax_status status = ax_linearize_program(program, mask, NULL, NULL, primal, tangent, residual_count);
  ax_free(mask);
  return status;
}
