#include "planner/pieces.h"

#include <string.h>

#include "axle/nn.h"
#include "axle/transform.h"
#include "control/scan.h"
#include "prim/bind.h"
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
static bool reads_stacked(const ax_model *m) {
  const uint32_t first = loop_of(m)->out + ax_piece_carries(m), end = loop_of(m)->out + loop_of(m)->out_count;
  for (uint32_t e = m->loop + 1; e < m->program->eqn_count; e++)
    for (uint32_t i = 0; i < m->program->eqns[e].in_count; i++)
      if (m->program->eqns[e].in[i] >= first && m->program->eqns[e].in[i] < end) return true;
  return false;
}

enum { of_params = 1, of_sample = 2 };

/* What the values before the loop are computed from. NULL: no memory; to be freed. */
static unsigned char *find_sources(const ax_model *m) {
  const ax_program *program = m->program;
  unsigned char *sources = ax_calloc((size_t)program->value_count + 1, 1);
  if (sources == NULL) return NULL;
  for (uint32_t p = 0; p < m->param_count; p++) sources[m->params[p]] = of_params;
  for (uint32_t b = 0; b < m->batch_count; b++) sources[m->batch[b]] = of_sample;
  for (uint32_t e = 0; e < m->loop; e++) {
    const ax_eqn *eqn = &program->eqns[e];
    unsigned char all = 0;
    for (uint32_t i = 0; i < eqn->in_count; i++) all |= sources[eqn->in[i]];
    for (uint32_t k = 0; k < eqn->out_count; k++) sources[eqn->out + k] = all;
  }
  return sources;
}

/* Whether a value is a parameter that the loop slices, or that converted. */
static bool is_layered(const ax_model *m, uint32_t value) {
  for (uint32_t e = m->loop; e-- > 0;)
    if (m->program->eqns[e].out == value && m->program->eqns[e].prim == &ax_prim_convert_element_type)
      value = m->program->eqns[e].in[0];
  for (uint32_t p = 0; p < m->param_count; p++)
    if (m->params[p] == value) return m->layered[p];
  return false;
}

/* What a step of the loop has besides its layer: nothing that several stages would have gradients of, and no part of a sample. */
static const char *check_operands(const ax_model *m, const unsigned char *sources) {
  const ax_eqn *eqn = loop_of(m);
  const uint32_t consts = (uint32_t)scan_of(m)->num_consts, sliced = consts + ax_piece_carries(m);
  bool any = false;
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    const bool layered = i >= sliced && is_layered(m, eqn->in[i]);
    any = any || layered;
    if (layered || (i >= consts && i < sliced)) continue;
    if ((sources[eqn->in[i]] & of_params) != 0)
      return "the steps of the loop use a parameter in common, so that each stage would have a part of its gradient";
    if (i >= sliced && (sources[eqn->in[i]] & of_sample) != 0)
      return "the loop goes over parts of a sample, and so is none over layers";
  }
  return any ? NULL : "the loop slices no parameters, and so is none over layers";
}

const char *ax_pieces_why_not(const ax_model *m) {
  if (!m->train) return "what is not trained is not cut into stages";
  if (m->loop == AX_NONE || loop_of(m)->out_count == 0) return "the loss has no loop over layers to be cut into stages";
  if (scan_of(m)->reverse) return "the loop goes over its layers backwards, and stages go forwards";
  if (!has_room(m)) return "a parameter or a carry of the loop has too many dimensions for stages";
  if (reads_stacked(m)) return "what its steps stack is read behind the loop over layers, so that it cannot be cut into stages";
  unsigned char *sources = find_sources(m);
  const char *why = sources != NULL ? check_operands(m, sources) : "there is no memory";
  ax_free(sources);
  return why;
}

bool ax_pieces_possible(const ax_model *m) { return ax_pieces_why_not(m) == NULL; }

/* --- A piece of one sample --- */

static uint32_t result_count(const ax_loss_piece *s) { return s->options.piece == AX_PIECE_LAST ? 1 : ax_piece_carries(s->model); }
static uint32_t in_count(const ax_loss_piece *s) { return s->model->param_count + s->model->batch_count + ax_piece_carries(s->model); }

/* The slices of the layers: of parameters those that are there, of other values those of the piece. */
static ax_value layers_of(const ax_loss_piece *s, ax_value x) {
  ax_type type = ax_typeof(x);
  int64_t start[AX_MAX_RANK] = {0};
  if (ax_failed() || type.dims[0] == s->options.layers) return x;
  start[0] = s->options.first_layer;
  int64_t end[AX_MAX_RANK];
  for (uint32_t d = 0; d < type.rank; d++) end[d] = d == 0 ? start[0] + s->options.layers : type.dims[d];
  return (ax_slice)(x, type.rank, start, type.rank, end, 0, NULL);
}

static void replay_layers(const ax_loss_piece *s, ax_program_walk *walk, const ax_value *carries) {
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
  ax_loop_again(eqn, in, s->options.layers, s->options.saved, walk->value + eqn->out);
}

static void replay_piece(const ax_loss_piece *s, ax_program_walk *walk, const ax_value *carries, ax_value *out) {
  const ax_model *m = s->model;
  const ax_program *loss = m->program;
  const bool last = s->options.piece == AX_PIECE_LAST;
  for (uint32_t e = 0; e < loss->eqn_count && !ax_failed(); e++) {
    if (e > m->loop && !last) break;
    if (e == m->loop) replay_layers(s, walk, s->options.piece == AX_PIECE_FIRST ? NULL : carries);
    else ax_walk_replay(walk, &loss->eqns[e]);
  }
  for (uint32_t k = 0; k < result_count(s); k++) out[k] = walk->value[last ? loss->outs[0] : loop_of(m)->out + k];
}

/* parameters, sample, carries -> results */
static AX_BODY(piece_of_sample) {
  const ax_loss_piece *s = context;
  const ax_model *m = s->model;
  ax_program_walk walk;
  if (ax_walk_init(&walk, m->program)) {
    for (uint32_t p = 0; p < m->param_count; p++) walk.value[m->params[p]] = in[p];
    for (uint32_t b = 0; b < m->batch_count; b++) walk.value[m->batch[b]] = in[m->param_count + b];
    replay_piece(s, &walk, in + m->param_count + m->batch_count, out);
  }
  ax_walk_deinit(&walk);
}

static AX_BODY(piece_of_batch) {
  const ax_loss_piece *s = context;
  int64_t *mapped = ax_trace_alloc(in_count(s) * sizeof mapped[0]);
  if (mapped == NULL) return;
  for (uint32_t i = 0; i < in_count(s); i++) mapped[i] = i < s->model->param_count ? AX_NOT_MAPPED : 0;
  const ax_vmap_options options = {.in_axes = {AX_LIST(in_count(s), mapped)}};
  (ax_vmap)(AX_CLOSURE(piece_of_sample, in_count(s), result_count(s), context), in_count(s), in, result_count(s), out, &options);
}

/* --- Its derivative --- */

static bool is_float(ax_type type) { return ax_is_differentiable(type.dtype); }

uint32_t ax_piece_float_carries(const ax_model *m) {
  uint32_t count = 0;
  for (uint32_t k = 0; k < ax_piece_carries(m); k++) count += is_float(ax_piece_carry(m, k));
  return count;
}

uint32_t ax_piece_taken(const ax_loss_piece *s) { return s->options.piece != AX_PIECE_FIRST ? ax_piece_carries(s->model) : 0; }
uint32_t ax_piece_cotangents(const ax_loss_piece *s) { return s->options.piece != AX_PIECE_LAST ? ax_piece_float_carries(s->model) : 0; }

/* Of parameters, samples and carries. */
static void give_types(const ax_loss_piece *s, ax_type *types) {
  const ax_model *m = s->model;
  uint32_t n = 0;
  for (uint32_t p = 0; p < m->param_count; p++) types[n++] = ax_model_param(m, p, s->options.layers);
  for (uint32_t b = 0; b < m->batch_count; b++) types[n++] = ax_batch_type(m->program->types[m->batch[b]], s->options.samples);
  for (uint32_t k = 0; k < ax_piece_carries(m); k++) types[n++] = ax_batch_type(ax_piece_carry(m, k), s->options.samples);
}

static ax_status trace(ax_loss_piece *s, ax_arena *arena, ax_program **out) {
  ax_type *types = ax_arena_alloc(arena, in_count(s) * sizeof types[0]);
  if (types == NULL) return ax_out_of_memory(in_count(s) * sizeof types[0]);
  give_types(s, types);
  return (ax_trace)(AX_CLOSURE(piece_of_batch, in_count(s), result_count(s), s), in_count(s), types, out);
}

static ax_status find_used(ax_loss_piece *s, const ax_program *traced) {
  ax_program *program;
  s->used = ax_calloc((size_t)s->model->param_count + 1, sizeof s->used[0]);
  if (s->used == NULL) return ax_out_of_memory(s->model->param_count);
  AX_TRY(ax_program_dce(traced, &program));
  for (uint32_t e = 0; e < program->eqn_count; e++)
    for (uint32_t i = 0; i < program->eqns[e].in_count; i++)
      if (program->eqns[e].in[i] < s->model->param_count) s->used[program->eqns[e].in[i]] = true;
  for (uint32_t p = 0; p < s->model->param_count; p++) s->used_count += s->used[p];
  ax_program_release(program);
  return AX_OK;
}

/* By the parameters that are used and the carries that are taken; of all results that are floats. */
static ax_status differentiate(ax_loss_piece *s, ax_arena *arena, const ax_program *traced) {
  const ax_model *m = s->model;
  ax_program *tangent;
  bool *wrt = ax_arena_alloc(arena, in_count(s) * sizeof wrt[0]);
  ax_want *want = ax_arena_alloc(arena, result_count(s) * sizeof want[0]);
  if (wrt == NULL || want == NULL) return ax_out_of_memory(in_count(s));
  for (uint32_t p = 0; p < m->param_count; p++) wrt[p] = s->used[p];
  for (uint32_t k = 0; k < ax_piece_taken(s); k++) wrt[m->param_count + m->batch_count + k] = is_float(ax_piece_carry(m, k));
  for (uint32_t k = 0; k < result_count(s); k++)
    want[k] = is_float(*ax_program_out_type(traced, k)) ? AX_WANT_ALWAYS : AX_WANT_NEVER;
  AX_TRY(ax_linearize_program(traced, wrt, want, NULL, &s->primal, &tangent, &s->residuals));
  const ax_status status = ax_program_transpose(tangent, AX_RANGE(s->residuals, tangent->in_count - s->residuals), &s->transposed);
  ax_program_release(tangent);
  return status;
}

ax_status ax_piece_make(const ax_model *m, const ax_piece_options *options, ax_loss_piece *out) {
  ax_program *traced = NULL;
  ax_arena arena = {0};
  *out = (ax_loss_piece){.model = m, .options = *options};
  ax_status status = trace(out, &arena, &traced);
  if (status == AX_OK) status = find_used(out, traced);
  if (status == AX_OK) status = differentiate(out, &arena, traced);
  ax_program_release(traced);
  ax_arena_deinit(&arena);
  return status;
}

void ax_piece_deinit(ax_loss_piece *s) {
  ax_program_release(s->primal);
  ax_program_release(s->transposed);
  ax_free(s->used);
  *s = (ax_loss_piece){0};
}

/* --- Programs --- */

static uint32_t residual(const ax_loss_piece *s, uint32_t r) { return s->primal->outs[result_count(s) + r]; }
/* Inputs of the piece are there for its backward pass too, and are not kept. */
static bool is_kept(const ax_loss_piece *s, uint32_t r) { return residual(s, r) >= in_count(s); }

uint32_t ax_piece_kept(const ax_loss_piece *s) {
  uint32_t count = 0;
  for (uint32_t r = 0; r < s->residuals; r++) count += is_kept(s, r);
  return count;
}

static bool is_taken(const ax_loss_piece *s, uint32_t input) {
  const uint32_t samples = s->model->param_count + s->model->batch_count;
  return input < s->model->param_count ? s->used[input] : input < samples || ax_piece_taken(s) > 0;
}

typedef struct passing { /* values of the trace */
  ax_builder builder;
  ax_value *in;        /* of the piece, all of them */
  ax_value *residuals; /* then cotangents of results */
  ax_value *sums;      /* of parameters that are used */
  ax_value *made, *outs;
} passing;

static ax_status prepare(const ax_loss_piece *s, ax_arena *arena, passing *p) {
  const size_t results = (size_t)result_count(s) + s->residuals, most = results + in_count(s) + 1;
  *p = (passing){.in = ax_arena_alloc(arena, in_count(s) * sizeof p->in[0])};
  p->residuals = ax_arena_alloc(arena, most * sizeof p->residuals[0]);
  p->sums = ax_arena_alloc(arena, ((size_t)s->used_count + 1) * sizeof p->sums[0]);
  p->made = ax_arena_alloc(arena, most * sizeof p->made[0]);
  p->outs = ax_arena_alloc(arena, most * sizeof p->outs[0]);
  const bool all = p->in != NULL && p->residuals != NULL && p->sums != NULL && p->made != NULL && p->outs != NULL;
  return all ? AX_OK : ax_out_of_memory(most * sizeof p->outs[0]);
}

static void take_inputs(const ax_loss_piece *s, passing *p) {
  for (uint32_t i = 0; i < in_count(s); i++)
    if (is_taken(s, i)) p->in[i] = ax_builder_input(&p->builder, &s->primal->types[i]);
}

/* After all inputs: nothing reads the others. */
static void fill_others(const ax_loss_piece *s, passing *p) {
  for (uint32_t i = 0; i < in_count(s); i++)
    if (!is_taken(s, i)) p->in[i] = ax_filled(&s->primal->types[i], 0);
}

static uint32_t trace_forward(const ax_loss_piece *s, passing *p) {
  uint32_t count = 0;
  take_inputs(s, p);
  fill_others(s, p);
  ax_call(s->primal, AX_LIST(in_count(s), p->in), AX_LIST(s->primal->out_count, p->made));
  for (uint32_t k = 0; k < result_count(s); k++) p->outs[count++] = p->made[k];
  for (uint32_t r = 0; r < s->residuals; r++)
    if (is_kept(s, r)) p->outs[count++] = p->made[result_count(s) + r];
  return count;
}

/* Of the last piece the mean's derivative by each sample's loss. */
static void take_cotangents(const ax_loss_piece *s, passing *p) {
  ax_value *cotangents = p->residuals + s->residuals;
  if (s->options.piece == AX_PIECE_LAST) return;
  for (uint32_t k = 0; k < result_count(s); k++)
    if (is_float(*ax_program_out_type(s->primal, k))) *cotangents++ = ax_builder_input(&p->builder, ax_program_out_type(s->primal, k));
}

static uint32_t trace_backward(const ax_loss_piece *s, bool by_carries, passing *p) {
  uint32_t sums = 0, count = 0;
  take_inputs(s, p);
  for (uint32_t r = 0; r < s->residuals; r++)
    if (is_kept(s, r)) p->residuals[r] = ax_builder_input(&p->builder, &s->primal->types[residual(s, r)]);
  take_cotangents(s, p);
  for (uint32_t i = 0; i < s->model->param_count && !by_carries; i++)
    if (s->used[i]) p->sums[sums++] = ax_builder_input(&p->builder, &s->primal->types[i]);
  fill_others(s, p);
  for (uint32_t r = 0; r < s->residuals; r++)
    if (!is_kept(s, r)) p->residuals[r] = p->in[residual(s, r)];
  if (s->options.piece == AX_PIECE_LAST)
    p->residuals[s->residuals] = ax_filled(ax_program_out_type(s->primal, 0), 1 / (double)s->model->samples);
  ax_call(s->transposed, AX_LIST(s->transposed->in_count, p->residuals), AX_LIST(s->transposed->out_count, p->made));
  for (uint32_t i = 0; i < sums; i++) p->outs[count++] = ax_add(p->sums[i], p->made[i]);
  for (uint32_t i = s->used_count; i < s->transposed->out_count; i++) p->outs[count++] = p->made[i];
  return count;
}

ax_status ax_piece_program(const ax_loss_piece *s, ax_piece_pass pass, ax_program **out) {
  ax_arena arena = {0};
  ax_program *traced = NULL;
  passing p;
  *out = NULL;
  ax_status status = prepare(s, &arena, &p);
  if (status == AX_OK) {
    ax_builder_begin(&p.builder, &s->primal->axes);
    const uint32_t count = pass == AX_PASS_FORWARD ? trace_forward(s, &p) : trace_backward(s, pass == AX_PASS_BY_CARRIES, &p);
    status = ax_finish_clean(&p.builder, p.outs, count, &traced);
  }
  if (status == AX_OK) status = ax_program_simplify(traced, out);
  ax_program_release(traced);
  ax_arena_deinit(&arena);
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

/* All that is needed for one result goes before what the next needs besides. So gradients are added up over the groups where each
   is needed, and not all at once, which would take memory for all of them. */
typedef struct ordering {
  ax_program_walk walk;
  uint32_t *def; /* by value: 1 + the equation that makes it; 0: an input */
  bool *made;    /* by equation */
} ordering;

static void make_value(ordering *o, uint32_t value) {
  if (o->def[value] == 0 || o->made[o->def[value] - 1] || ax_failed()) return;
  const ax_eqn *eqn = &o->walk.program->eqns[o->def[value] - 1];
  o->made[o->def[value] - 1] = true;
  for (uint32_t i = 0; i < eqn->in_count; i++) make_value(o, eqn->in[i]);
  ax_walk_replay(&o->walk, eqn);
}

static ax_status order_by_results(const ax_program *program, ax_program **out) {
  ordering o;
  ax_builder builder;
  ax_builder_begin(&builder, &program->axes);
  ax_value *outs = ax_trace_alloc(((size_t)program->out_count + 1) * sizeof outs[0]);
  if (ax_walk_init(&o.walk, program) && outs != NULL) {
    o.def = ax_walk_alloc(&o.walk, ((size_t)program->value_count + 1) * sizeof o.def[0]);
    o.made = ax_walk_alloc(&o.walk, (size_t)program->eqn_count + 1);
    for (uint32_t i = 0; i < program->in_count; i++) o.walk.value[i] = ax_builder_input(&builder, &program->types[i]);
    for (uint32_t e = 0; e < program->eqn_count && !ax_failed(); e++)
      for (uint32_t k = 0; k < program->eqns[e].out_count; k++) o.def[program->eqns[e].out + k] = e + 1;
    for (uint32_t k = 0; k < program->out_count && !ax_failed(); k++) {
      make_value(&o, program->outs[k]);
      outs[k] = o.walk.value[program->outs[k]];
    }
  }
  ax_walk_deinit(&o.walk);
  return ax_finish_clean(&builder, outs, program->out_count, out);
}

static ax_status trace_update(const ax_model *m, const ax_treedef *params, const ax_treedef *state, int64_t data, ax_program **out) {
  const uint32_t n = ax_treedef_count(params), states = ax_treedef_count(state), count = 2 * n + states;
  ax_type *types = ax_calloc((size_t)count + 1, sizeof types[0]);
  const updating u = {m, params, states};
  if (types == NULL) return ax_out_of_memory(count);
  for (uint32_t i = 0; i < count; i++)
    types[i] = i < n            ? *ax_treedef_type(params, i)
               : i < n + states ? *ax_treedef_type(state, i - n)
                                : ax_batch_type(*ax_treedef_type(params, i - n - states), data);
  ax_program *traced = NULL;
  ax_status status = (ax_trace)(AX_CLOSURE(update, count, n + states, (void *)&u), count, types, &traced);
  if (status == AX_OK) status = order_by_results(traced, out);
  ax_program_release(traced);
  ax_free(types);
  return status;
}

/* --- Layouts --- */

/* Each entry ends with ";", and the last of a side without. */
static void end_side(ax_text *text, const char *next) {
  if (!text->failed) text->data[--text->length] = '\0';
  ax_text_add(text, "%s", next);
}

static void add_used(const ax_loss_piece *s, const char *const *specs, ax_text *text) {
  for (uint32_t p = 0; p < s->model->param_count; p++)
    if (s->used[p]) ax_text_add(text, "%s;", specs[p]);
}

static void add_carries(const ax_loss_piece *s, const ax_piece_specs *specs, bool floats, ax_text *text) {
  for (uint32_t k = 0; k < ax_piece_carries(s->model); k++)
    if (!floats || is_float(ax_piece_carry(s->model, k))) ax_text_add(text, "%s;", specs->carry[k]);
}

static void add_unsaid(uint32_t count, ax_text *text) {
  for (uint32_t i = 0; i < count; i++) ax_text_add(text, "?;");
}

void ax_piece_pass_specs(const ax_loss_piece *s, ax_piece_pass pass, const ax_piece_specs *specs, ax_text *text) {
  const bool first = s->options.piece == AX_PIECE_FIRST, last = s->options.piece == AX_PIECE_LAST;
  add_used(s, specs->param, text);
  for (uint32_t b = 0; b < s->model->batch_count; b++) ax_text_add(text, "%s;", specs->sample[b]);
  if (!first) add_carries(s, specs, false, text);
  if (pass != AX_PASS_FORWARD) add_unsaid(ax_piece_kept(s), text);
  if (pass != AX_PASS_FORWARD && !last) add_carries(s, specs, true, text);
  if (pass == AX_PASS_BACKWARD) add_used(s, specs->sum, text);
  end_side(text, " -> ");
  if (pass == AX_PASS_FORWARD && last) add_unsaid(1, text); /* the losses */
  if (pass == AX_PASS_FORWARD && !last) add_carries(s, specs, false, text);
  if (pass == AX_PASS_FORWARD) add_unsaid(ax_piece_kept(s), text);
  if (pass == AX_PASS_BACKWARD) add_used(s, specs->sum, text);
  if (pass != AX_PASS_FORWARD && !first) add_carries(s, specs, true, text);
  end_side(text, "");
}

/* The number of the model's parameter that leaf `leaf` of a treedef is of, or is the state of. */
static uint32_t param_of(const ax_model *m, const ax_treedef *def, uint32_t leaf) {
  const char *path = ax_treedef_name(def, leaf), *name = strrchr(path, '/');
  const int64_t p = ax_treedef_find(m->param_def, "%s", name != NULL ? name + 1 : path);
  return p >= 0 && ax_treedef_type(def, leaf)->rank == m->program->types[m->params[p]].rank ? (uint32_t)p : AX_NONE;
}

static void add_leaves(const ax_model *m, const ax_treedef *def, const char *before, const char *const *specs, ax_text *text) {
  for (uint32_t k = 0; k < ax_treedef_count(def); k++) {
    const uint32_t p = param_of(m, def, k);
    ax_text_add(text, "%s%s;", before, p != AX_NONE ? specs[p] : "");
  }
}

static void add_update_specs(const ax_model *m, const ax_treedef *params, const ax_treedef *state, const ax_piece_specs *specs, ax_text *text) {
  add_leaves(m, params, "", specs->param, text);
  add_leaves(m, state, "", specs->state, text);
  add_leaves(m, params, "data,", specs->sum, text);
  end_side(text, " -> ");
  add_leaves(m, params, "", specs->param, text);
  add_leaves(m, state, "", specs->state, text);
  end_side(text, "");
}

ax_status ax_piece_update(const ax_model *m, const bool *used, int64_t layers, int64_t data, const ax_piece_specs *specs, ax_program **out,
                          ax_text *text) {
  ax_treedef *params, *state = NULL;
  *out = NULL;
  AX_TRY(ax_model_def(m, used, layers, &params));
  ax_status status = ax_optimizer_state(&m->optimizer, params, &state);
  if (status == AX_OK) status = trace_update(m, params, state, data, out);
  if (status == AX_OK) add_update_specs(m, params, state, specs, text);
  ax_treedef_release(state);
  ax_treedef_release(params);
  return status;
}
