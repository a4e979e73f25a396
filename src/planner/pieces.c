#include "planner/pieces.h"

#include <string.h>

#include "axle/nn.h"
#include "axle/transform.h"
#include "control/scan.h"
#include "prim/prims.h"
#include "xform/xform.h"

static const ax_eqn *loop_of(const ax_model *m) { return &m->program->eqns[m->loop]; }
static const ax_scan_params *scan_of(const ax_model *m) { return loop_of(m)->params; }

uint32_t ax_piece_carries(const ax_model *m) { return (uint32_t)scan_of(m)->num_carry; }
ax_type ax_piece_carry(const ax_model *m, uint32_t k) { return m->program->types[loop_of(m)->in[scan_of(m)->num_consts + k]]; }

/* Gradients of devices, and carries of samples, have one more dimension. */
static bool has_room(const ax_model *m) {
  for (uint32_t p = 0; p < m->param_count; p++)
    if (!ax_has_batch(&m->program->types[m->params[p]])) return false;
  for (uint32_t k = 0; k < ax_piece_carries(m); k++) {
    const ax_type carry = ax_piece_carry(m, k);
    if (!ax_has_batch(&carry)) return false;
  }
  return true;
}

/* Whether something behind the loop reads a stacked result of it. */
bool ax_pieces_possible(const ax_model *m) {
  if (!m->train || m->loop == AX_NONE || loop_of(m)->out_count == 0 || !has_room(m)) return false;
  const uint32_t first = loop_of(m)->out + ax_piece_carries(m), end = loop_of(m)->out + loop_of(m)->out_count;
  for (uint32_t e = m->loop + 1; e < m->program->eqn_count; e++)
    for (uint32_t i = 0; i < m->program->eqns[e].in_count; i++)
      if (m->program->eqns[e].in[i] >= first && m->program->eqns[e].in[i] < end) return false;
  return true;
}

/* --- A piece of one sample --- */

typedef struct piecing {
  const ax_model *model;
  const ax_piece_options *options;
  const bool *used;
} piecing;

static uint32_t result_count(const piecing *s) { return s->options->piece == AX_PIECE_LAST ? 1 : ax_piece_carries(s->model); }
static uint32_t in_count(const piecing *s) { return s->model->param_count + s->model->batch_count + ax_piece_carries(s->model); }

/* The slices of the layers: of parameters those that are there, of other values the first. */
static ax_value layers_of(const piecing *s, ax_value x) {
  ax_type type = ax_typeof(x);
  int64_t start[AX_MAX_RANK] = {0};
  if (ax_failed() || type.dims[0] == s->options->layers) return x;
  type.dims[0] = s->options->layers;
  return (ax_slice)(x, type.rank, start, type.rank, type.dims, 0, NULL);
}

static void replay_layers(const piecing *s, ax_program_walk *walk, const ax_value *carries) {
  const ax_eqn *eqn = loop_of(s->model);
  const ax_scan_params *scan = eqn->params;
  ax_value *in = ax_trace_alloc(eqn->in_count * sizeof in[0]);
  const ax_value *given = ax_walk_operands(walk, eqn);
  const uint32_t consts = (uint32_t)scan->num_consts, carry_count = (uint32_t)scan->num_carry;
  if (in == NULL) return;
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    const bool sliced = i >= consts + carry_count;
    in[i] = sliced ? layers_of(s, given[i]) : i >= consts && carries != NULL ? carries[i - consts] : given[i];
  }
  ax_loop_again(eqn, in, s->options->layers, s->options->saved, walk->value + eqn->out);
}

static void replay_piece(const piecing *s, ax_program_walk *walk, const ax_value *carries, ax_value *out) {
  const ax_model *m = s->model;
  const ax_program *loss = m->program;
  const bool last = s->options->piece == AX_PIECE_LAST;
  for (uint32_t e = 0; e < loss->eqn_count && !ax_failed(); e++) {
    if (e > m->loop && !last) break;
    if (e == m->loop) replay_layers(s, walk, s->options->piece == AX_PIECE_FIRST ? NULL : carries);
    else ax_walk_replay(walk, &loss->eqns[e]);
  }
  for (uint32_t k = 0; k < result_count(s); k++) out[k] = walk->value[last ? loss->outs[0] : loop_of(m)->out + k];
}

/* parameters, sample, carries -> results */
static AX_BODY(piece_of_sample) {
  const piecing *s = context;
  const ax_model *m = s->model;
  ax_program_walk walk;
  if (ax_walk_init(&walk, m->program)) {
    for (uint32_t p = 0; p < m->param_count; p++) walk.value[m->params[p]] = in[p];
    for (uint32_t b = 0; b < m->batch_count; b++) walk.value[m->batch[b]] = in[m->param_count + b];
    replay_piece(s, &walk, in + m->param_count + m->batch_count, out);
  }
  ax_walk_deinit(&walk);
}

/* --- Batched, and its gradient --- */

static AX_BODY(piece_of_batch) {
  const piecing *s = context;
  int64_t *mapped = ax_trace_alloc(in_count(s) * sizeof mapped[0]);
  if (mapped == NULL) return;
  for (uint32_t i = 0; i < in_count(s); i++) mapped[i] = i < s->model->param_count ? AX_NOT_MAPPED : 0;
  const ax_vmap_options options = {.in_axes = {AX_LIST(in_count(s), mapped)}};
  (ax_vmap)(AX_CLOSURE(piece_of_sample, in_count(s), result_count(s), context), in_count(s), in, result_count(s), out, &options);
}

static bool is_float(ax_type type) { return ax_is_differentiable(type.dtype); }

typedef struct dotted { /* of the results with cotangents, which do not depend on what it is differentiated by */
  const piecing *s;
  const ax_value *cotangents;
} dotted;

/* -> f32[]: the sum of all results times their cotangents; of the last piece the sum of the losses */
static AX_BODY(dot_of_piece) {
  const dotted *d = context;
  ax_value *made = ax_trace_alloc(result_count(d->s) * sizeof made[0]);
  if (made == NULL) return;
  piece_of_batch(in, made, (void *)d->s);
  out[0] = ax_real(0);
  for (uint32_t k = 0; k < result_count(d->s); k++) {
    if (!is_float(ax_typeof(made[k]))) continue;
    const ax_value term = d->s->options->piece == AX_PIECE_LAST ? made[k] : ax_mul(made[k], d->cotangents[k]);
    out[0] = ax_add(ax_reduce_sum(ax_convert_element_type(term, AX_F32), AX_ALL_DIMS, false), out[0]);
  }
}

/* The operands that gradients are taken by: parameters that are used, unless by_carries, and carries that the piece is given. */
static uint32_t wanted(const piecing *s, bool by_carries, uint32_t *list) {
  const ax_model *m = s->model;
  uint32_t count = 0;
  for (uint32_t p = 0; p < m->param_count && !by_carries; p++)
    if (s->used[p]) list[count++] = p;
  for (uint32_t k = 0; k < ax_piece_carries(m) && s->options->piece != AX_PIECE_FIRST; k++)
    if (is_float(ax_piece_carry(m, k))) list[count++] = m->param_count + m->batch_count + k;
  return count;
}

typedef struct passing {
  piecing s;
  bool by_carries;
  uint32_t *wanted, wanted_count, sums;
} passing;

static AX_BODY(backward) {
  const passing *p = context;
  const uint32_t cotangents = p->s.options->piece == AX_PIECE_LAST ? 0 : result_count(&p->s);
  const dotted d = {&p->s, in + in_count(&p->s)};
  const ax_args by = {.list = p->wanted, .count = p->wanted_count};
  (ax_grad)(AX_CLOSURE(dot_of_piece, in_count(&p->s), 1, (void *)&d), by, in_count(&p->s), in, p->wanted_count, out);
  for (uint32_t k = 0; k < p->sums; k++) out[k] = ax_add(in[in_count(&p->s) + cotangents + k], out[k]);
}

/* --- Programs --- */

/* Types of parameters, samples and carries; then of cotangents and sums. */
static uint32_t types_of(const piecing *s, bool cotangents, bool sums, ax_type *types) {
  const ax_model *m = s->model;
  const int64_t samples = s->options->samples;
  uint32_t n = 0;
  for (uint32_t p = 0; p < m->param_count; p++) types[n++] = ax_model_param(m, p, s->options->layers);
  for (uint32_t b = 0; b < m->batch_count; b++) types[n++] = ax_batch_type(m->program->types[m->batch[b]], samples);
  for (int times = 0; times < (cotangents && s->options->piece != AX_PIECE_LAST ? 2 : 1); times++)
    for (uint32_t k = 0; k < ax_piece_carries(m); k++) types[n++] = ax_batch_type(ax_piece_carry(m, k), samples);
  for (uint32_t p = 0; p < m->param_count && sums; p++)
    if (s->used[p]) types[n++] = ax_model_param(m, p, s->options->layers);
  return n;
}

static ax_type *room_for_types(const piecing *s) {
  return ax_calloc((size_t)2 * s->model->param_count + s->model->batch_count + 2 * (size_t)ax_piece_carries(s->model) + 1, sizeof(ax_type));
}

ax_status ax_piece_used(const ax_model *m, const ax_piece_options *options, bool *used) {
  const piecing s = {m, options, NULL};
  ax_program *traced = NULL, *program = NULL;
  ax_type *types = room_for_types(&s);
  if (types == NULL) return ax_out_of_memory(0);
  const uint32_t count = types_of(&s, false, false, types);
  ax_status status = (ax_trace)(AX_CLOSURE(piece_of_batch, count, result_count(&s), (void *)&s), count, types, &traced);
  if (status == AX_OK) status = ax_program_dce(traced, &program);
  for (uint32_t p = 0; p < m->param_count; p++) used[p] = false;
  for (uint32_t e = 0; status == AX_OK && e < program->eqn_count; e++)
    for (uint32_t i = 0; i < program->eqns[e].in_count; i++)
      if (program->eqns[e].in[i] < m->param_count) used[program->eqns[e].in[i]] = true;
  ax_program_release(traced);
  ax_program_release(program);
  ax_free(types);
  return status;
}

/* The results, and what the backward pass needs of them, as it is when gradients are taken by all. */
static ax_status forward(const piecing *s, const ax_type *types, uint32_t count, const bool *wrt, ax_program **out) {
  ax_program *traced = NULL, *tangent = NULL;
  uint32_t residuals;
  ax_want want[AX_MAX_RANK * 8];
  if (result_count(s) > AX_COUNT(want)) return ax_error(AX_INVALID_ARGUMENT, "planner: a loop with so many carries is not cut");
  AX_TRY((ax_trace)(AX_CLOSURE(piece_of_batch, count, result_count(s), (void *)s), count, types, &traced));
  for (uint32_t k = 0; k < result_count(s); k++) want[k] = AX_WANT_ALWAYS;
  const ax_status status = ax_linearize_program(traced, wrt, want, NULL, out, &tangent, &residuals);
  ax_program_release(traced);
  ax_program_release(tangent);
  return status;
}

ax_status ax_piece_make(const ax_model *m, const ax_piece_options *options, ax_piece_pass pass, const bool *used, ax_program **out) {
  passing p = {.s = {m, options, used}, .by_carries = pass == AX_PASS_BY_CARRIES};
  *out = NULL;
  p.wanted = ax_calloc((size_t)in_count(&p.s) + 1, sizeof p.wanted[0]);
  bool *wrt = ax_calloc((size_t)in_count(&p.s) + 1, sizeof wrt[0]);
  ax_type *types = room_for_types(&p.s);
  ax_status status = p.wanted != NULL && wrt != NULL && types != NULL ? AX_OK : ax_out_of_memory(in_count(&p.s));
  if (status == AX_OK) {
    p.wanted_count = wanted(&p.s, p.by_carries, p.wanted);
    for (uint32_t i = 0; i < p.wanted_count; i++) wrt[p.wanted[i]] = true;
    for (uint32_t i = 0; i < m->param_count && pass == AX_PASS_BOTH; i++) p.sums += used[i];
    const uint32_t count = types_of(&p.s, pass != AX_PASS_FORWARD, pass == AX_PASS_BOTH, types);
    if (pass == AX_PASS_FORWARD) status = forward(&p.s, types, count, wrt, out);
    else status = (ax_trace)(AX_CLOSURE(backward, count, p.wanted_count, &p), count, types, out);
  }
  ax_free(p.wanted);
  ax_free(wrt);
  ax_free(types);
  return status;
}

/* --- The update --- */

typedef struct updating {
  const ax_model *model;
  const ax_treedef *params;
  uint32_t state_count;
} updating;

static AX_BODY(update) {
  const updating *u = context;
  const uint32_t n = ax_treedef_count(u->params);
  ax_value *gradients = ax_trace_alloc((n + 1) * sizeof gradients[0]);
  if (gradients == NULL) return;
  for (uint32_t p = 0; p < n; p++) gradients[p] = ax_reduce_sum(in[n + u->state_count + p], AX_DIMS(0), false);
  (ax_optimizer_update)(&u->model->optimizer, u->params, n, gradients, u->state_count, in + n, n, in, u->state_count, out + n, n, out);
}

ax_status ax_piece_update(const ax_model *m, const ax_treedef *params, int64_t data, ax_program **out) {
  ax_treedef *state;
  const uint32_t n = ax_treedef_count(params);
  *out = NULL;
  AX_TRY(ax_optimizer_state(&m->optimizer, params, &state));
  const uint32_t states = ax_treedef_count(state), count = 2 * n + states;
  ax_type *types = ax_calloc((size_t)count + 1, sizeof types[0]);
  const updating u = {m, params, states};
  ax_status status = types != NULL ? AX_OK : ax_out_of_memory(count);
  for (uint32_t i = 0; status == AX_OK && i < count; i++)
    types[i] = i < n            ? *ax_treedef_type(params, i)
               : i < n + states ? *ax_treedef_type(state, i - n)
                                : ax_batch_type(*ax_treedef_type(params, i - n - states), data);
  if (status == AX_OK) status = (ax_trace)(AX_CLOSURE(update, count, n + states, (void *)&u), count, types, out);
  ax_free(types);
  ax_treedef_release(state);
  return status;
}
