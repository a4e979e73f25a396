/* Messages (psend, precv) as exchanges that all devices take part in, for devices that have no messages: each precv becomes a ppermute of
   what its messages were sent with.

   Which psend a precv takes from is known only in part before a run: messages between two devices over one link are a queue, and devices may
   be at different places. So it must be alike for all: the messages that a program takes are sent before, in the same program, and none is
   left at its end or where an equation begins whose programs have messages. A loop's body, or a branch's, is such a program; but how long
   the loop runs, and which branch, must be the same on all devices. Everything else is refused. */
#include "collectives/collective.h"
#include "plain/plain.h"
#include "plain/rules.h"
#include "prim/bind.h"
#include "prim/prims.h"
#include "xform/xform.h"

typedef struct sent { /* a psend with messages that no precv has taken */
  const ax_eqn *eqn;
  const ax_pairs *pairs;
  bool *taken; /* by pair */
  uint32_t left;
} sent;

typedef struct work { /* one program */
  ax_memo *memo;
  ax_program_walk walk;
  const void **params; /* by equation: with nested programs replaced */
  bool *needed;        /* by value: a token that an equation which stays takes */
  sent *sent;          /* in order; the first of them has messages left */
  uint32_t first, count;
} work;

static ax_status replaced(ax_memo *memo, const ax_program *program, ax_program **out);

static int64_t link_of(const ax_eqn *eqn) { return *(const int64_t *)ax_plain_parameter(eqn, "link"); }
static const ax_pairs *pairs_of(const ax_eqn *eqn) { return ax_plain_parameter(eqn, "pairs"); }
static const ax_axes *axes_of(const ax_eqn *eqn) { return ax_plain_parameter(eqn, "axes"); }

static ax_status refuse(const ax_eqn *eqn, const char *why) {
  return ax_error(AX_ABSENT,
                  "%s: the plugin has no messages, and this is not an exchange of all devices: %s. A message must be sent and taken in "
                  "the same program, body of a loop or branch, in this order, on all devices alike",
                  eqn->prim->name, why);
}

/* --- Which messages a precv takes --- */

/* Where the pair is among the psend's messages that are left; AX_NONE: nowhere. It is often at place `guess`. */
static uint32_t find_left(const sent *s, const int64_t *pair, uint32_t guess) {
  const ax_pairs *pairs = s->pairs;
  uint32_t p = guess;
  if (p >= pairs->count || pairs->v[p][0] != pair[0] || pairs->v[p][1] != pair[1])
    for (p = 0; p < pairs->count && (pairs->v[p][0] != pair[0] || pairs->v[p][1] != pair[1]);) p++;
  return p < pairs->count && !s->taken[p] ? p : AX_NONE;
}

/* Takes message number i of the precv from the oldest psend that sent it: *from, by number. */
static ax_status take(work *w, const ax_eqn *eqn, uint32_t i, uint32_t *from) {
  const ax_pairs *pairs = pairs_of(eqn);
  for (uint32_t k = w->first; k < w->count; k++) {
    sent *s = &w->sent[k];
    if (link_of(s->eqn) != link_of(eqn)) continue;
    if (!ax_axes_equal(axes_of(s->eqn), axes_of(eqn))) return refuse(eqn, "its axes are not those that messages over the link have");
    const uint32_t p = find_left(s, pairs->v[i], i);
    if (p == AX_NONE) continue;
    s->taken[p] = true;
    s->left--;
    *from = k;
    return AX_OK;
  }
  return refuse(eqn, "a message that it takes is not sent before");
}

static ax_status send(work *w, const ax_eqn *eqn) {
  const ax_pairs *pairs = pairs_of(eqn);
  bool *taken = ax_walk_alloc(&w->walk, pairs->count + (size_t)1);
  if (taken == NULL) return ax_out_of_memory(pairs->count);
  w->sent[w->count++] = (sent){eqn, pairs, taken, pairs->count};
  return AX_OK;
}

static void skip_taken(work *w) {
  while (w->first < w->count && w->sent[w->first].left == 0) w->first++;
}

static ax_status check_none_left(work *w) {
  skip_taken(w);
  return w->first == w->count ? AX_OK : refuse(w->sent[w->first].eqn, "a message of it is not taken");
}

/* --- precv --- */

static ax_status check_type(const work *w, const ax_eqn *send, const ax_eqn *eqn) {
  const ax_type *types = w->walk.program->types;
  const ax_type *x = &types[send->in[0]], *wanted = &types[eqn->out];
  return x->dtype == wanted->dtype && ax_same_shape(x, wanted) ? AX_OK : refuse(eqn, "a message has another shape or dtype");
}

/* Those messages of the precv that come from psend number k. from: by message. False: the trace has failed. */
static bool pairs_from(const ax_eqn *eqn, const uint32_t *from, uint32_t k, ax_pairs *out) {
  const ax_pairs *pairs = pairs_of(eqn);
  *out = (ax_pairs){.v = ax_trace_alloc((pairs->count + (size_t)1) * sizeof out->v[0])};
  for (uint32_t i = 0; out->v != NULL && i < pairs->count; i++)
    if (from[i] == k) out->v[out->count][0] = pairs->v[i][0], out->v[out->count++][1] = pairs->v[i][1];
  return out->v != NULL;
}

/* Whether this device is a target among the pairs. */
static ax_value is_target(const ax_axes *axes, const ax_pairs *pairs) {
  const ax_value me = ax_bind1(&ax_prim_axis_index, axes, NULL, 0);
  ax_value any = ax_poison;
  for (uint32_t i = 0; i < pairs->count && !ax_failed(); i++) {
    const ax_value is = ax_eq(me, ax_integer(pairs->v[i][1]));
    any = i == 0 ? is : ax_or(any, is);
  }
  return any;
}

/* What came of psend number k; `others` where it sent nothing. */
static ax_value exchanged(work *w, const ax_eqn *eqn, const uint32_t *from, uint32_t k, const ax_value *others) {
  ax_ppermute_params params = {.axes = *axes_of(eqn)};
  if (!pairs_from(eqn, from, k, &params.pairs)) return ax_poison;
  const ax_value x = w->walk.value[w->sent[k].eqn->in[0]], came = ax_bind1(&ax_prim_ppermute, &params, &x, 1);
  return others == NULL ? came : ax_where(is_target(&params.axes, &params.pairs), came, *others); /* zeros where nothing came */
}

/* from: by message. */
static ax_value received(work *w, const ax_eqn *eqn, const uint32_t *from) {
  const uint32_t messages = pairs_of(eqn)->count;
  ax_type type = w->walk.program->types[eqn->out];
  ax_value made = ax_poison;
  type.spread = (ax_spread){0};
  if (messages == 0) return ax_filled(&type, 0);
  bool *done = ax_trace_alloc(w->count - w->first);
  for (uint32_t i = 0, several = 0; done != NULL && i < messages && !ax_failed(); i++) {
    bool *before = &done[from[i] - w->first];
    if (*before) continue;
    *before = true;
    made = exchanged(w, eqn, from, from[i], several++ > 0 ? &made : NULL);
  }
  return made;
}

static ax_status receive(work *w, const ax_eqn *eqn) {
  const ax_pairs *pairs = pairs_of(eqn);
  uint32_t *from = ax_walk_alloc(&w->walk, (pairs->count + (size_t)1) * sizeof from[0]);
  if (from == NULL) return ax_out_of_memory(pairs->count * sizeof from[0]);
  for (uint32_t i = 0; i < pairs->count; i++) {
    AX_TRY(take(w, eqn, i, &from[i]));
    AX_TRY(check_type(w, w->sent[from[i]].eqn, eqn));
  }
  ax_builder_stem(ax_builder_current(), eqn);
  w->walk.value[eqn->out] = ax_spread_to(received(w, eqn, from), &w->walk.program->types[eqn->out].spread);
  skip_taken(w);
  return AX_OK;
}

/* --- Other equations --- */

/* All devices run the equation's programs alike. */
static bool runs_alike(const work *w, const ax_eqn *eqn) {
  const ax_program *program = w->walk.program, *test = ax_eqn_program(eqn, 0);
  const ax_type *choice = eqn->prim->runs == AX_RUNS_ONE ? &program->types[eqn->in[0]] : &test->types[test->outs[0]];
  if (eqn->prim->runs == AX_RUNS_EACH || eqn->prim->runs == AX_RUNS_FIRST || eqn->prim->runs == AX_RUNS_LENGTH) return true;
  return ax_checked_axes(&program->axes) == ax_all_axes(&program->axes) && choice->spread.varying == 0;
}

static ax_status copy(work *w, uint32_t e) {
  const ax_eqn *eqn = &w->walk.program->eqns[e];
  if (ax_eqn_program(eqn, 0) != NULL && (ax_eqn_effects(eqn) & AX_EFFECT_MESSAGE) != 0) {
    AX_TRY(check_none_left(w));
    if (!runs_alike(w, eqn)) return refuse(eqn, "devices may run this differently");
  }
  const ax_value *in = ax_walk_operands(&w->walk, eqn);
  ax_emit(eqn->prim, w->params[e], in, eqn->in_count, w->walk.value + eqn->out, eqn->out_count);
  return AX_OK;
}

/* Of a token: nothing, unless what stays takes it. */
static void make_token(work *w, const ax_eqn *eqn) {
  if (!w->needed[eqn->out]) return;
  ax_builder_stem(ax_builder_current(), eqn);
  w->walk.value[eqn->out] = ax_spread_to(ax_create_token(), &w->walk.program->types[eqn->out].spread);
}

static ax_status step(work *w, uint32_t e) {
  const ax_eqn *eqn = &w->walk.program->eqns[e];
  if (eqn->prim == &ax_prim_precv) return receive(w, eqn);
  if (eqn->prim == &ax_prim_psend) AX_TRY(send(w, eqn));
  else if (eqn->prim != &ax_prim_create_token) return copy(w, e);
  make_token(w, eqn);
  return AX_OK;
}

static ax_status steps(work *w) {
  const ax_program *program = w->walk.program;
  for (uint32_t e = 0; e < program->eqn_count && !ax_failed(); e++) AX_TRY(step(w, e));
  return check_none_left(w);
}

/* --- Programs --- */

static ax_status nested(work *w, uint32_t e) {
  const ax_eqn *eqn = &w->walk.program->eqns[e];
  ax_program **held;
  w->params[e] = eqn->params;
  for (uint32_t i = 0; i < eqn->in_count && eqn->prim != &ax_prim_precv; i++) w->needed[eqn->in[i]] = true;
  if (ax_eqn_program(eqn, 0) == NULL || (ax_eqn_effects(eqn) & AX_EFFECT_MESSAGE) == 0) return AX_OK;
  void *params = ax_eqn_own_params(eqn, &w->walk.arena);
  if (params == NULL) return ax_out_of_memory(eqn->prim->params_bytes);
  for (uint32_t k = 0; (held = ax_params_program(eqn->prim, params, k)) != NULL; k++) AX_TRY(replaced(w->memo, *held, held));
  w->params[e] = params;
  return AX_OK;
}

static ax_status build(work *w, ax_program **out) {
  const ax_program *program = w->walk.program;
  ax_value *outs = ax_walk_alloc(&w->walk, (program->out_count + (size_t)1) * sizeof outs[0]);
  if (outs == NULL) return ax_out_of_memory(program->out_count * sizeof outs[0]);
  ax_builder builder;
  ax_builder_begin(&builder, &program->axes);
  for (uint32_t i = 0; i < program->in_count; i++) w->walk.value[i] = ax_builder_input(&builder, &program->types[i]);
  const ax_status status = steps(w);
  if (status != AX_OK) ax_fail(status);
  for (uint32_t k = 0; k < program->out_count; k++) outs[k] = w->walk.value[program->outs[k]];
  return ax_builder_finish(&builder, outs, program->out_count, out, NULL, NULL);
}

static ax_status work_on(work *w, ax_program **out) {
  const ax_program *program = w->walk.program;
  const size_t eqns = program->eqn_count + (size_t)1;
  w->params = ax_arena_alloc(&w->walk.arena, eqns * sizeof w->params[0]);
  w->sent = ax_arena_alloc(&w->walk.arena, eqns * sizeof w->sent[0]);
  w->needed = ax_arena_alloc(&w->walk.arena, program->value_count + (size_t)1);
  if (w->params == NULL || w->sent == NULL || w->needed == NULL) return ax_out_of_memory(eqns * sizeof w->sent[0]);
  for (uint32_t k = 0; k < program->out_count; k++) w->needed[program->outs[k]] = true;
  for (uint32_t e = 0; e < program->eqn_count; e++) AX_TRY(nested(w, e));
  return build(w, out);
}

/* The program as it becomes, owned by the memo. */
static ax_status replaced(ax_memo *memo, const ax_program *program, ax_program **out) {
  ax_memo_entry *entry = ax_memo_ask(memo, "messages", program, NULL, 0);
  if (entry == NULL) return ax_out_of_memory(sizeof *entry);
  if (!entry->known) {
    work w = {.memo = memo};
    const ax_status status = ax_walk_init(&w.walk, program) ? work_on(&w, &entry->made[0]) : ax_out_of_memory(0);
    ax_walk_deinit(&w.walk);
    AX_TRY(status);
  }
  entry->known = true;
  *out = entry->made[0];
  return AX_OK;
}

ax_status ax_plain_messages(const ax_program *program, ax_program **out) {
  ax_memo memo = {0};
  ax_program *made = NULL;
  *out = NULL;
  const ax_status status = replaced(&memo, program, &made);
  if (status == AX_OK) *out = ax_program_retain(made);
  ax_memo_deinit(&memo);
  return ax_verified(status, out);
}
