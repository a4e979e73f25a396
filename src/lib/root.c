/* Roots of functions, as jax.lax.custom_root finds them: any solver, and the derivatives of the implicit function theorem. From
   f(p, x) = 0 follows df_x dx = -df_p dp: a linear equation, which tangent_solve solves.

   A custom_jvp is made of three programs of (values p of the enclosing trace that any of them uses.., x..):
     solve    (p.., guess..) -> x..
     f        (p.., x..) -> 0..
     tangent  (p.., x.., b..) -> dx.., for which df_x dx = b
   Its rule finds the root by another custom_jvp, so that derivatives may be taken again. */
#include <string.h>

#include "axle/solvers.h"
#include "axle/transform.h"
#include "control/custom.h"
#include "ir/dtype.h"
#include "lib/checked.h"

static const char name[] = "custom_root";

enum { of_f, of_solve, of_tangent, functions };
enum { derivatives = 3 }; /* how often derivatives may be taken: each takes a rule inside the one before */

/* --- The root and its tangent --- */

typedef struct root {
  ax_program *const *program; /* of each function */
  uint32_t values, count;     /* p, and arrays of x */
  int depth;                  /* how often derivatives may still be taken */
} root;

static bool differs_smoothly(const root *r, uint32_t i) { return ax_is_differentiable(r->program[of_f]->types[i].dtype); }

static uint32_t tangent_count(const root *r) {
  uint32_t count = r->count;
  for (uint32_t i = 0; i < r->values; i++) count += differs_smoothly(r, i);
  return count;
}

static AX_BODY(found) { /* p.., guess.. -> x.. */
  const root *r = context;
  ax_call(r->program[of_solve], AX_LIST(r->values + r->count, in), AX_LIST(r->count, out));
}

typedef struct point {
  const root *r;
  const ax_value *in; /* p.., x.. */
} point;

static AX_BODY(f_at_root) { /* those of p that are floats.. -> f.. */
  const point *at = context;
  const root *r = at->r;
  ax_value *all = ax_trace_alloc((r->values + r->count) * sizeof all[0]);
  if (all == NULL) return;
  memcpy(all, at->in, (r->values + r->count) * sizeof all[0]);
  for (uint32_t i = 0, next = 0; i < r->values; i++)
    if (differs_smoothly(r, i)) all[i] = in[next++];
  ax_call(r->program[of_f], AX_LIST(r->values + r->count, all), AX_LIST(r->count, out));
}

static void find(const root *r, const ax_value *in, ax_value *out);

static AX_BODY(rule) { /* p.., guess.., their tangents.. -> x.., dx.. */
  const root *r = context;
  const uint32_t n = r->count, all = r->values + n, floats = tangent_count(r) - n;
  const ax_value *tangents = in + all;
  ax_value *room = ax_trace_alloc((all + n + floats + 2 * n) * sizeof room[0]), *operands = room + all + n,
           *values = operands + floats;
  if (room == NULL) return;
  memcpy(room, in, all * sizeof room[0]);
  find(&(root){r->program, r->values, n, r->depth - 1}, in, out);
  if (ax_failed()) return;
  memcpy(room + r->values, out, n * sizeof room[0]);
  for (uint32_t i = 0, next = 0; i < r->values; i++)
    if (differs_smoothly(r, i)) operands[next++] = in[i];
  if (floats > 0) {
    (ax_jvp)(AX_CLOSURE(f_at_root, floats, n, (&(point){r, room})), AX_FIRST(floats), floats, operands, floats, tangents, n, values,
             n, room + all);
    ax_call(r->program[of_tangent], AX_LIST(all + n, room), AX_LIST(n, values));
  }
  for (uint32_t k = 0; k < n; k++) out[n + k] = floats > 0 ? ax_neg(values[k]) : ax_full_like(out[k], 0);
}

typedef struct last { /* a root without a derivative: its operands are none */
  const root *r;
  const ax_value *in;
} last;

static AX_BODY(found_last) {
  const last *l = context;
  found(l->in, out, (void *)(uintptr_t)l->r);
}
static AX_BODY(rule_of_last) {
  const last *l = context;
  found_last(in, out, context);
  for (uint32_t k = 0; k < l->r->count; k++) out[l->r->count + k] = ax_full_like(out[k], 0);
}

static void find(const root *r, const ax_value *in, ax_value *out) {
  const uint32_t n = r->count, all = r->values + n;
  last l = {r, in};
  if (r->depth > 0)
    (ax_custom_jvp)(AX_CLOSURE(found, all, n, r), AX_CLOSURE(rule, all + tangent_count(r), 2 * n, r), all, in, n, out);
  else
    (ax_custom_jvp)(AX_CLOSURE(found_last, 0, n, &l), AX_CLOSURE(rule_of_last, 0, 2 * n, &l), 0, in, n, out);
}

/* --- The function --- */

typedef struct root_call {
  ax_fn f, solve;
  ax_tangent_solve tangent_solve;
} root_call;

typedef struct pushing {
  ax_linear linear;
  uint32_t count;
} pushing;

static AX_BODY(push) {
  const pushing *p = context;
  (ax_pushforward)(p->linear, p->count, in, p->count, out);
}

static AX_BODY(solve_tangents) { /* x.., b.. -> dx.. */
  const root_call *call = context;
  const uint32_t n = call->f.in_count;
  ax_value *values = ax_trace_alloc(n * sizeof values[0]);
  if (values == NULL) return;
  pushing p = {.count = n};
  p.linear = (ax_linearize)(call->f, AX_FIRST(n), n, in, n, values);
  if (!ax_failed()) call->tangent_solve.function(AX_CLOSURE(push, n, n, &p), in + n, out, call->tangent_solve.context);
}

static bool take_guess(uint32_t count, const ax_type *types) {
  for (uint32_t i = 0; i < count; i++) {
    const bool is_float = types[i].form == AX_ARRAY && ax_is_differentiable(types[i].dtype);
    if (is_float && types[i].spread.reduced == 0 && types[i].spread.unreduced == 0) continue;
    return ax_reject_as(name, "the guess %u is %s; it must be an array of floats, neither reduced nor unreduced", i,
                        ax_operand_string(&types[i])),
           false;
  }
  return true;
}

static bool gives_guess(const ax_custom *c, uint32_t body, const char *what) {
  for (uint32_t k = 0; k < c->in_count; k++) {
    const ax_type *made = ax_program_out_type(c->body[body].program, k);
    if (made->form == AX_ARRAY && made->dtype == c->types[k].dtype && ax_same_shape(made, &c->types[k])) continue;
    return ax_reject_as(name, "%s: result %u is %s; the guess is %s", what, k, ax_operand_string(made),
                        ax_operand_string(&c->types[k])),
           false;
  }
  return true;
}

static bool trace_all(ax_custom *c, const root_call *call, const ax_value *guess, ax_value *out) {
  if (!ax_custom_init(c, name, call->f, guess, out) || !take_guess(c->in_count, c->types) || !gives_guess(c, of_f, "f"))
    return false;
  const uint32_t n = c->in_count;
  ax_type *types = ax_trace_alloc(2 * n * sizeof types[0]);
  if (types == NULL) return false;
  memcpy(types, c->types, n * sizeof types[0]);
  memcpy(types + n, c->types, n * sizeof types[0]);
  return ax_custom_trace(c, "solve", call->solve, c->types, NULL) && gives_guess(c, of_solve, "solve") &&
         ax_custom_trace(c, "tangent_solve", AX_CLOSURE(solve_tangents, 2 * n, n, call), types, NULL) &&
         gives_guess(c, of_tangent, "tangent_solve");
}

static void make(const ax_custom *c, ax_value *out) {
  const uint32_t n = c->in_count, values = ax_custom_captured(c);
  ax_program *program[functions] = {NULL};
  ax_spread *spread = ax_trace_alloc(n * sizeof spread[0]);
  ax_value *in = ax_trace_alloc((values + n) * sizeof in[0]), *next = in;
  if (ax_failed()) return;
  for (uint32_t k = 0; k < n; k++) spread[k] = c->types[k].spread;
  for (uint32_t b = 0; b < functions && !ax_failed(); b++)
    program[b] = ax_custom_program(c, &(ax_custom_part){.body = b,
                                                        .more = c->types,
                                                        .more_count = b == of_tangent ? n : 0,
                                                        .spread = spread,
                                                        .spread_count = n,
                                                        .keeps = AX_NONE});
  for (uint32_t b = 0; b < functions; b++)
    for (uint32_t i = 0; i < c->body[b].captured_count; i++) *next++ = c->body[b].captured[i];
  memcpy(next, c->in, n * sizeof in[0]);
  if (!ax_failed()) find(&(root){program, values, n, derivatives}, in, out);
  for (uint32_t b = 0; b < functions; b++) ax_program_release(program[b]);
}

static bool fits(const char *part, ax_fn f) {
  if (f.in_count == f.out_count && f.in_count > 0) return true;
  return ax_reject_as(name, "%s takes %u values and gives %u; it must take and give what the guess is", part, f.in_count,
                      f.out_count),
         false;
}

void(ax_custom_root)(ax_fn f, ax_fn solve, ax_tangent_solve tangent_solve, uint32_t in_count, const ax_value *guess,
                     uint32_t out_count, ax_value *out) {
  const root_call call = {f, solve, tangent_solve};
  if (!ax_lists_fit(name, in_count, f.in_count, out_count, f.out_count, out)) return;
  guess = ax_take_operands(guess, f.in_count, out, f.out_count);
  if (ax_failed() || !fits("f", f) || !fits("solve", solve)) return;
  if (solve.in_count != f.in_count) {
    (void)ax_reject_as(name, "solve takes %u values; f takes %u", solve.in_count, f.in_count);
    return;
  }
  if (tangent_solve.function == NULL) {
    (void)ax_reject_as(name, "there is no tangent_solve");
    return;
  }
  ax_custom c;
  bool traced = trace_all(&c, &call, guess, out);
  const ax_axis_set varying = traced ? ax_custom_grown(&c) : 0;
  if (varying != 0) {
    guess = ax_custom_spread(&c, varying);
    ax_custom_deinit(&c);
    c = (ax_custom){0};
    traced = guess != NULL && trace_all(&c, &call, guess, out);
  }
  if (traced) make(&c, out);
  ax_custom_deinit(&c);
}
