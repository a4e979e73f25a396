/* scan: the rules that make scans of scans.

     jvp         one scan, of the body's jvp: (consts, dconsts; carry, dcarry; xs, dxs)
     linearize   a scan of the body's primal half, whose residuals leave as further ys; then one of its tangent half, which takes
                 them as xs. Residuals that are constants, carries that no step changes or slices of xs are passed as they are.
     transpose   a scan the other way: (constants; sums of the constants' cotangents, cotangents of carries; xs, cotangents of ys)
     batch       one scan, of the body batched
     prune       a carry is needed when its result is, or another carry or y that is uses it

   The carries that have a tangent, a cotangent or a batch dimension are known before the body is transformed (ax_tangents,
   find_zeros, ax_batched_results). */
#include <string.h>

#include "ir/prim.h"
#include "prim/prims.h"
#include "prim/rebuild.h"
#include "control/scan.h"

/* An equation being transformed. */
typedef struct scan {
  ax_scan_params p;
  uint32_t consts, carries, in_count, out_count;
} scan;

static scan scan_of(const ax_eqn *eqn) {
  const ax_scan_params *p = eqn->params;
  return (scan){*p, (uint32_t)p->num_consts, (uint32_t)p->num_carry, eqn->in_count, eqn->out_count};
}

static bool is_carry(const scan *s, uint32_t i) { return i >= s->consts && i < s->consts + s->carries; }

/* The roles of a scan's operands and results, in their order. A slice belongs to a stacked operand or result. */
typedef enum role { ROLE_CONST, ROLE_CARRY, ROLE_SLICE, ROLE_COUNT } role;
static role role_of_in(const scan *s, uint32_t i) {
  return i < s->consts ? ROLE_CONST : is_carry(s, i) ? ROLE_CARRY : ROLE_SLICE;
}
/* A carry that every step returns as it came: each step has what went in. */
static bool stays(const scan *s, uint32_t i) { return is_carry(s, i) && s->p.body->outs[i - s->consts] == i; }
static role role_of_out(const scan *s, uint32_t k) { return k < s->carries ? ROLE_CARRY : ROLE_SLICE; }

/* Binds a scan over `body`, whose inputs are those added and of whose results those of out_from are wanted (carries first). Gives
   its results; NULL: the trace has failed. */
static ax_value *bind_sorted(const scan *s, const ax_sorting *operands, const ax_program *body, const uint32_t *out_from,
                             uint32_t out_count) {
  ax_scan_params params = s->p;
  ax_value *out = ax_trace_alloc(out_count * sizeof out[0]);
  ax_value *in = out != NULL ? ax_sorting_finish(operands, body, out_from, out_count, &params.body) : NULL;
  if (in == NULL) return NULL;
  params.num_consts = operands->of_role[ROLE_CONST];
  params.num_carry = operands->of_role[ROLE_CARRY];
  ax_bind(&ax_prim_scan, &params, in, operands->count, out, out_count);
  ax_program_release(params.body);
  return ax_failed() ? NULL : out;
}

/* --- jvp, linearize --- */

/* `in`: the inputs of the body that have a tangent. A carry whose result has one has it from the start. `want`: the tangents wanted
   of the body. */
static bool tangents_init(const scan *s, ax_tangents *t, const ax_jvp_args *args) {
  if (!ax_tangents_init(t, args)) return false;
  for (uint32_t k = 0; k < s->carries; k++) {
    t->in_count += t->out[k] && !t->in[s->consts + k];
    t->in[s->consts + k] = t->out[k];
  }
  return true;
}

static void add_primals(const scan *s, ax_sorting *operands, const ax_value *in) {
  for (uint32_t i = 0; i < s->in_count; i++) ax_sorting_add(operands, role_of_in(s, i), in[i]);
}

static void add_tangents(const scan *s, ax_sorting *operands, const ax_tangents *t) {
  for (uint32_t i = 0; i < s->in_count; i++)
    if (t->in[i]) ax_sorting_add(operands, role_of_in(s, i), ax_tangent_in(t, i));
}

/* Orders the results of a body (y.., dy..): carries, their tangents, then ys and theirs. */
static void order_results(const scan *s, const ax_tangents *t, uint32_t *out_from) {
  for (role r = ROLE_CARRY; r < ROLE_COUNT; r++) {
    for (uint32_t k = 0; k < s->out_count; k++)
      if (role_of_out(s, k) == r) *out_from++ = k;
    uint32_t next = s->out_count;
    for (uint32_t k = 0; k < s->out_count; k++) {
      if (t->out[k] && role_of_out(s, k) == r) *out_from++ = next;
      next += t->out[k];
    }
  }
}

void ax_scan_jvp(const ax_jvp_args *args) {
  scan s = scan_of(args->eqn);
  ax_tangents t;
  ax_sorting operands;
  ax_program *body;
  if (!tangents_init(&s, &t, args) || !ax_sorting_init(&operands, s.in_count + t.in_count)) return;
  uint32_t count = s.out_count + t.out_count, *out_from = ax_trace_alloc(count * sizeof out_from[0]);
  ax_value *by_result = ax_trace_alloc(count * sizeof by_result[0]);
  if (out_from == NULL || by_result == NULL) return;
  add_primals(&s, &operands, args->in);
  add_tangents(&s, &operands, &t);
  ax_status status = ax_jvp_program(s.p.body, t.in, t.want, &body);
  if (status != AX_OK) {
    ax_fail(status);
    return;
  }
  order_results(&s, &t, out_from);
  ax_value *out = bind_sorted(&s, &operands, body, out_from, count);
  ax_program_release(body);
  for (uint32_t k = 0; out != NULL && k < count; k++) by_result[out_from[k]] = out[k];
  if (out != NULL) ax_tangents_give(&t, by_result, by_result + s.out_count);
}

/* The primal half: results, then the residuals that it must keep of each step, stacked. All residuals are added to the tangent
   half's operands. Gives the results; NULL: the trace has failed. */
static ax_value *bind_primal(const scan *s, const ax_jvp_args *args, const ax_program *primal, uint32_t residuals,
                             ax_sorting *tangent) {
  ax_sorting operands;
  uint32_t *out_from = ax_in_order(primal->out_count), count = s->out_count;
  if (out_from == NULL || !ax_sorting_init(&operands, s->in_count)) return NULL;
  add_primals(s, &operands, args->in);
  for (uint32_t r = 0; r < residuals; r++) {
    uint32_t id = primal->outs[s->out_count + r];
    if (id >= s->in_count || (is_carry(s, id) && !stays(s, id))) out_from[count++] = s->out_count + r;
  }
  ax_value *out = bind_sorted(s, &operands, primal, out_from, count);
  for (uint32_t r = 0, next = s->out_count; out != NULL && r < residuals; r++) {
    uint32_t id = primal->outs[s->out_count + r];
    if (next < count && out_from[next] == s->out_count + r) ax_sorting_add(tangent, ROLE_SLICE, out[next++]);
    else ax_sorting_add(tangent, stays(s, id) ? ROLE_CONST : role_of_in(s, id), args->in[id]);
  }
  return out;
}

void ax_scan_linearize(const ax_jvp_args *args) {
  scan s = scan_of(args->eqn);
  ax_tangents t;
  ax_sorting operands;
  ax_program *primal, *tangent;
  uint32_t residuals;
  bool *held = ax_trace_alloc(s.in_count);
  if (held == NULL || !tangents_init(&s, &t, args)) return;
  for (uint32_t i = 0; i < s.in_count; i++) held[i] = !is_carry(&s, i) || stays(&s, i);
  ax_status status = ax_linearize_program(s.p.body, t.in, t.want, held, &primal, &tangent, &residuals);
  if (status != AX_OK) {
    ax_fail(status);
    return;
  }
  uint32_t *out_from = ax_in_order(tangent->out_count); /* carries' come before ys' already */
  ax_value *results = NULL, *tangents = NULL;
  if (out_from != NULL && ax_sorting_init(&operands, residuals + t.in_count))
    results = bind_primal(&s, args, primal, residuals, &operands);
  if (results != NULL) {
    add_tangents(&s, &operands, &t);
    tangents = bind_sorted(&s, &operands, tangent, out_from, tangent->out_count);
  }
  if (tangents != NULL) ax_tangents_give(&t, results, tangents);
  ax_program_release(primal);
  ax_program_release(tangent);
}

/* --- transpose --- */

/* The inputs of the transposed scan and of its body, in order: constants; running sums of constants' cotangents and cotangents of
   carries, both carried; slices of xs, and of ys' cotangents. */
typedef enum slot_kind { SLOT_GIVEN, SLOT_SUM, SLOT_COTANGENT } slot_kind;
typedef struct slot {
  slot_kind kind;
  uint32_t index; /* of the operand; of the result that it is a cotangent of */
} slot;

typedef struct transposition {
  scan s;
  const ax_transpose_args *args;
  bool *linear;    /* operands */
  bool *zero;      /* results whose cotangent is zero in every step */
  bool *made_zero; /* linear operands whose cotangent is */
  ax_program *body; /* the body transposed */
  slot *slots;
  uint32_t slot_count, of_role[ROLE_COUNT];
} transposition;

/* All carries are taken as linear: those that are not themselves (zeros that stand for a tangent) become so in the body, and their
   cotangents are not asked for. */
static ax_status settle_linear(transposition *t) {
  const scan *s = &t->s;
  for (uint32_t i = 0; i < s->in_count; i++) t->linear[i] = t->args->linear[i] || is_carry(s, i);
  for (uint32_t k = 0; k < s->carries; k++)
    if (!ax_is_differentiable(s->p.body->types[s->consts + k].dtype))
      return ax_error(AX_ABSENT, "scan: no transpose for a linear scan that carries %s along",
                      ax_type_string(&s->p.body->types[s->consts + k], &s->p.body->axes));
  return AX_OK;
}

/* A carry's cotangent is zero in every step if no result that has a cotangent needs the carry, in this step or a later one. Values
   that depend on a linear operand are used linearly, so a value is needed exactly if it gets a cotangent. */
static ax_status find_zeros(transposition *t) {
  const scan *s = &t->s;
  bool *used = ax_trace_alloc(s->out_count), *needed = ax_trace_alloc(s->in_count);
  if (used == NULL || needed == NULL) return AX_OUT_OF_MEMORY;
  for (uint32_t k = 0; k < s->out_count; k++) used[k] = !t->zero[k];
  AX_TRY(ax_scan_prune(&(ax_prune_args){t->args->eqn, used, needed, NULL, ax_builder_current()->memo}));
  for (uint32_t k = 0; k < s->carries; k++) t->zero[k] = !used[k];
  return AX_OK;
}

static ax_status transpose_body(transposition *t) {
  const scan *s = &t->s;
  AX_TRY(find_zeros(t));
  AX_TRY(ax_transpose_program(s->p.body, t->linear, t->zero, t->made_zero, &t->body));
  for (uint32_t k = 0; k < s->carries; k++)
    if (t->zero[k] && !t->made_zero[s->consts + k])
      return ax_error(AX_INTERNAL, "scan: carry %u has a cotangent where none was expected", k);
  return AX_OK;
}

/* Says whether the transposed scan gives the cotangent of an operand. */
static bool is_given(const transposition *t, uint32_t i) {
  if (!t->linear[i]) return false;
  return is_carry(&t->s, i) ? !t->zero[i - t->s.consts] : !t->made_zero[i];
}

static void add_slot(transposition *t, role role, slot_kind kind, uint32_t index) {
  t->slots[t->slot_count++] = (slot){kind, index};
  t->of_role[role]++;
}

static void find_slots(transposition *t) {
  const scan *s = &t->s;
  for (uint32_t i = 0; i < s->consts; i++)
    if (!t->linear[i]) add_slot(t, ROLE_CONST, SLOT_GIVEN, i);
  for (uint32_t i = 0; i < s->consts; i++)
    if (is_given(t, i)) add_slot(t, ROLE_CARRY, SLOT_SUM, i);
  for (uint32_t k = 0; k < s->carries; k++)
    if (!t->zero[k]) add_slot(t, ROLE_CARRY, SLOT_COTANGENT, k);
  for (uint32_t i = s->consts + s->carries; i < s->in_count; i++)
    if (!t->linear[i]) add_slot(t, ROLE_SLICE, SLOT_GIVEN, i);
  for (uint32_t k = s->carries; k < s->out_count; k++)
    if (!t->zero[k]) add_slot(t, ROLE_SLICE, SLOT_COTANGENT, k);
}

static ax_type slot_type(const transposition *t, const slot *slot) {
  const ax_program *body = t->s.p.body;
  if (slot->kind == SLOT_GIVEN) return body->types[slot->index];
  return ax_dual(&body->types[slot->kind == SLOT_SUM ? slot->index : body->outs[slot->index]]);
}

static ax_value slot_value(const transposition *t, const slot *slot) {
  if (slot->kind == SLOT_GIVEN) return t->args->in[slot->index];
  if (slot->kind == SLOT_COTANGENT && !ax_is_zero(t->args->cotangent[slot->index])) return t->args->cotangent[slot->index];
  ax_type type = slot_type(t, slot);
  return ax_zeros_of(&type);
}

/* The operands of the transposed body: the slots of a kind, in order. */
static uint32_t wire(const transposition *t, slot_kind kind, const ax_value *in, ax_value *operands) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < t->slot_count; i++)
    if (t->slots[i].kind == kind) operands[count++] = in[i];
  return count;
}

/* The body of the transposed scan: slots -> sums, cotangents of carries, cotangents of xs. */
static ax_status build_transposed(const transposition *t, ax_program **out) {
  const scan *s = &t->s;
  ax_type *types = ax_trace_alloc(t->slot_count * sizeof types[0]);
  if (types == NULL) return AX_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < t->slot_count; i++) types[i] = slot_type(t, &t->slots[i]);
  ax_builder builder;
  ax_value *in = ax_region_begin(&builder, &s->p.body->axes, types, t->slot_count);
  ax_value *operands = ax_trace_alloc(t->body->in_count * sizeof operands[0]);
  ax_value *outs = ax_trace_alloc(t->body->out_count * sizeof outs[0]);
  uint32_t count = 0;
  if (in != NULL && operands != NULL && outs != NULL) {
    uint32_t given = wire(t, SLOT_GIVEN, in, operands);
    wire(t, SLOT_COTANGENT, in, operands + given);
    ax_call(t->body, operands, outs);
    const ax_value *sums = in + t->of_role[ROLE_CONST];
    for (uint32_t i = 0, made = 0; i < s->in_count; i++) {
      if (is_given(t, i)) outs[count++] = i < s->consts ? ax_add(*sums++, outs[made]) : outs[made];
      made += t->linear[i];
    }
  }
  return ax_region_finish(&builder, outs, count, out);
}

static ax_status prepare(transposition *t, ax_scan_params *params) {
  AX_TRY(settle_linear(t));
  AX_TRY(transpose_body(t));
  find_slots(t);
  *params = (ax_scan_params){t->s.p.length, !t->s.p.reverse, t->of_role[ROLE_CONST], t->of_role[ROLE_CARRY], NULL};
  return build_transposed(t, &params->body);
}

void ax_scan_transpose(const ax_transpose_args *args) {
  transposition t = {.s = scan_of(args->eqn), .args = args, .zero = ax_cotangents_zero(args)};
  uint32_t capacity = t.s.in_count + t.s.out_count;
  t.linear = ax_trace_alloc(t.s.in_count);
  t.made_zero = ax_trace_alloc(t.s.in_count);
  t.slots = ax_trace_alloc(capacity * sizeof t.slots[0]);
  ax_value *in = ax_trace_alloc(capacity * sizeof in[0]), *out = ax_trace_alloc(t.s.in_count * sizeof out[0]);
  if (ax_failed()) return;
  ax_scan_params params = {0};
  ax_status status = prepare(&t, &params);
  ax_program_release(t.body);
  if (status != AX_OK) {
    ax_fail(status);
    return;
  }
  for (uint32_t i = 0; i < t.slot_count; i++) in[i] = slot_value(&t, &t.slots[i]);
  ax_bind(&ax_prim_scan, &params, in, t.slot_count, out, params.body->out_count);
  ax_program_release(params.body);
  for (uint32_t i = 0; i < t.s.in_count; i++) {
    if (!is_given(&t, i)) continue;
    if (args->linear[i]) args->out[i] = *out;
    out++;
  }
}

/* --- batch --- */

/* Constants keep their batch dimension; carries and slices have theirs in front, so xs and ys have it second. A carry is batched
   when it starts so or when the body makes it so. */
void ax_scan_batch(const ax_batch_args *args) {
  scan s = scan_of(args->eqn);
  bool *batched = ax_batched_results(args);
  int *in_dim = ax_trace_alloc(s.in_count * sizeof in_dim[0]), *want = ax_trace_alloc(s.out_count * sizeof want[0]);
  ax_value *in = ax_trace_alloc(s.in_count * sizeof in[0]);
  if (batched == NULL || in_dim == NULL || want == NULL || in == NULL) return;
  for (uint32_t k = 0; k < s.out_count; k++) want[k] = batched[k] ? 0 : -1;
  for (uint32_t i = 0; i < s.in_count; i++) {
    int dim = args->in_dim[i];
    in[i] = args->in[i];
    in_dim[i] = is_carry(&s, i) ? want[i - s.consts] : i < s.consts || dim < 0 ? dim : 0;
    if (is_carry(&s, i) && in_dim[i] >= 0) in[i] = ax_batch_front(in[i], dim, args->size);
    if (role_of_in(&s, i) == ROLE_SLICE && dim >= 0) in[i] = ax_move_dim(in[i], dim, 1);
  }
  ax_scan_params params = s.p;
  ax_status status = ax_batch_program(s.p.body, in_dim, args->size, args->axis, want, NULL, &params.body);
  if (status != AX_OK) {
    ax_fail(status);
    return;
  }
  ax_bind(&ax_prim_scan, &params, in, s.in_count, args->out, s.out_count);
  ax_program_release(params.body);
  for (uint32_t k = 0; k < s.out_count; k++) args->out_dim[k] = !batched[k] ? -1 : k < s.carries ? 0 : 1;
}

/* --- prune --- */

ax_status ax_scan_prune(const ax_prune_args *args) {
  scan s = scan_of(args->eqn);
  AX_TRY(ax_needs_loop(args, s.p.body, s.consts, s.carries, args->in));
  for (uint32_t k = 0; k < s.carries; k++) args->in[s.consts + k] = args->out[k];
  if (args->params == NULL) return AX_OK;
  ax_scan_params params = s.p;
  params.num_consts = ax_marked(args->in, s.consts);
  params.num_carry = ax_marked(args->out, s.carries);
  AX_TRY(ax_prune_program(args->memo, s.p.body, args->out, args->in, &params.body));
  memcpy(args->params, &params, sizeof params);
  return AX_OK;
}
