/* Candidates of several stages. A stage's layers are cut over axis `model`, as tensor parallelism was found to cut them, and each of
   `data` groups of devices trains on its part of the batch; the optimizer's state is cut over them, and gradients are added up at the
   end of a step. The passes of a stage are simulated, each by itself (pieces.h), and the schedule puts them in time (schedule.h). */
#include <math.h>
#include <string.h>

#include "planner/pieces.h"
#include "planner/schedule.h"
#include "planner/search.h"
#include "sim/place.h"

enum { most_stages = 64, most_model = 64, most_samples = 4, most_chunks = 4 };

/* What a piece costs a device. */
typedef struct piece_cost {
  ax_stage_times times;
  double computing, exchanging; /* of a microbatch, both passes */
  double held;      /* bytes that a microbatch under way holds */
  double transient; /* bytes that a pass needs besides */
  double parameters, state;
  double update, update_exchanging; /* seconds at the end of a step */
} piece_cost;

typedef struct piping {
  ax_planner *p;
  ax_arrangement layout;
  int64_t stages, model, data;
  ax_piece_options options;
  bool *used;
  ax_piece_specs specs; /* as the layout says */
  ax_arena arena;       /* theirs */
  bool fits; /* the last that was tried */
  piece_cost piece[AX_PIECE_COUNT];
} piping;

static ax_mesh mesh_of(int64_t data, int64_t model) {
  ax_mesh mesh = {.count = 2};
  strcpy(mesh.axis[0].name, "data");
  strcpy(mesh.axis[1].name, "model");
  mesh.axis[0].size = data;
  mesh.axis[1].size = model;
  return mesh;
}

static ax_status run(piping *s, ax_program *program, const ax_mesh *mesh, ax_text *specs, ax_args donated, ax_trial *out) {
  const ax_trial_options options = {.machine = s->p->machine, .runtime = s->p->runtime, .times = s->p->times, .donated = donated, .most = INFINITY};
  s->p->tried++;
  if (specs->failed) return ax_out_of_memory(specs->length);
  return ax_trial_run(program, mesh, specs->data, &options, out);
}

/* --- Layouts --- */

static ax_status write_spec(piping *s, const ax_mesh *mesh, uint32_t p, bool state, const char **out) {
  ax_text text = {0};
  ax_arrangement_param_spec(&s->layout, &s->p->model, &s->p->families, mesh, p, state, &text);
  char *copy = text.failed ? NULL : ax_arena_alloc(&s->arena, text.length + 1);
  if (copy != NULL && text.length > 0) memcpy(copy, text.data, text.length);
  ax_text_deinit(&text);
  *out = copy;
  return copy != NULL ? AX_OK : ax_out_of_memory(text.length);
}

/* Says how parameters lie. What was said before is forgotten. */
static ax_status write_specs(piping *s) {
  const ax_mesh mesh = mesh_of(s->data, s->model);
  const uint32_t count = s->p->model.param_count;
  ax_arena_deinit(&s->arena);
  s->arena = (ax_arena){0};
  const char **param = ax_arena_alloc(&s->arena, ((size_t)count + 1) * sizeof param[0]),
             **state = ax_arena_alloc(&s->arena, ((size_t)count + 1) * sizeof state[0]);
  if (param == NULL || state == NULL) return ax_out_of_memory(count);
  for (uint32_t p = 0; p < count; p++) {
    AX_TRY(write_spec(s, &mesh, p, false, &param[p]));
    AX_TRY(write_spec(s, &mesh, p, true, &state[p]));
  }
  s->specs = (ax_piece_specs){param, state};
  return AX_OK;
}

/* --- A pass --- */

static ax_status time_pass(piping *s, const ax_loss_piece *piece, ax_piece_pass pass, ax_trial *out) {
  const ax_mesh mesh = mesh_of(1, s->model);
  ax_program *program;
  ax_text specs = {0};
  AX_TRY(ax_piece_program(piece, pass, &program));
  const ax_args donated =
      pass == AX_PASS_BACKWARD ? AX_RANGE(program->in_count - piece->used_count, piece->used_count) : AX_FIRST(0);
  ax_piece_pass_specs(piece, pass, &s->specs, &specs);
  const ax_status status = run(s, program, &mesh, &specs, donated, out);
  ax_text_deinit(&specs);
  ax_program_release(program);
  return status;
}

/* --- The update --- */

static ax_status time_update(piping *s, piece_cost *cost) {
  const ax_mesh mesh = mesh_of(s->data, s->model);
  ax_program *program;
  ax_text specs = {0};
  ax_trial trial = {0};
  ax_status status = ax_piece_update(&s->p->model, s->used, s->options.layers, s->data, &s->specs, &program, &specs);
  if (status == AX_OK) status = run(s, program, &mesh, &specs, AX_FIRST(program->out_count), &trial);
  cost->update = trial.seconds;
  cost->update_exchanging = trial.exchanging;
  ax_text_deinit(&specs);
  ax_program_release(program);
  return status;
}

/* Bytes of the parameters that a stage uses, and of their state. */
static void count_memory(const piping *s, piece_cost *cost) {
  const ax_mesh mesh = mesh_of(s->data, s->model);
  ax_arrangement_used_memory(&s->layout, &s->p->model, &s->p->families, &mesh, s->used, 1 / (double)s->stages, &cost->parameters, &cost->state);
}

/* --- Costs of a piece --- */

static ax_status time_passes(piping *s, const ax_loss_piece *piece, piece_cost *cost) {
  ax_trial forward, backward, by_carries = {0}; /* the first piece has no carries to take gradients by */
  AX_TRY(time_pass(s, piece, AX_PASS_FORWARD, &forward));
  AX_TRY(time_pass(s, piece, AX_PASS_BACKWARD, &backward));
  if (piece->options.piece != AX_PIECE_FIRST) AX_TRY(time_pass(s, piece, AX_PASS_BY_CARRIES, &by_carries));
  cost->times.forward = forward.seconds;
  cost->times.backward = backward.seconds;
  cost->times.by_parameters = fmax(backward.seconds - by_carries.seconds, 0);
  cost->computing = forward.computing + backward.computing;
  cost->exchanging = forward.exchanging + backward.exchanging;
  cost->held = forward.results;
  cost->transient = fmax(fmax(forward.bytes - forward.arguments - forward.results, backward.bytes - backward.arguments), 0);
  return AX_OK;
}

static ax_status cost_of(piping *s, ax_stage_piece number) {
  piece_cost *cost = &s->piece[number];
  ax_loss_piece piece;
  s->options.piece = number;
  ax_status status = ax_piece_make(&s->p->model, &s->options, &piece);
  if (status == AX_OK) {
    memcpy(s->used, piece.used, s->p->model.param_count * sizeof s->used[0]);
    status = time_passes(s, &piece, cost);
    count_memory(s, cost);
  }
  ax_piece_deinit(&piece);
  return status;
}

/* Seconds from one stage to the next, of what goes between them for a microbatch. */
static ax_status time_message(const piping *s, double *out) {
  const ax_model *m = &s->p->model;
  ax_mesh mesh = {.count = 1};
  ax_sim_place place;
  ax_sim_route route = {0};
  double bytes = 0, seconds = 0;
  strcpy(mesh.axis[0].name, "all");
  mesh.axis[0].size = s->p->devices;
  for (uint32_t k = 0; k < ax_piece_carries(m); k++) {
    const ax_type carry = ax_piece_carry(m, k);
    bytes += (double)ax_type_elems(&carry) * (double)ax_dtype_bytes(carry.dtype) * (double)s->options.samples;
  }
  AX_TRY(ax_sim_place_make(s->p->machine, &mesh, &place));
  AX_TRY(ax_sim_route_find(&place, 0, s->data * s->model, &route));
  for (uint32_t h = 0; h < route.count; h++)
    seconds = fmax(seconds, bytes * route.hops[h].weight / ax_sim_place_wire(&place, route.hops[h].link)->bandwidth);
  *out = route.overhead + route.latency + seconds;
  ax_sim_route_deinit(&route);
  return AX_OK;
}

/* --- Schedules --- */

/* Fills in a candidate of these pieces by a schedule. Of the stages the one that takes the most memory counts. */
static ax_status time_schedule(const piping *s, ax_pipeline *pipe, ax_pipeline_schedule schedule, int64_t chunks, ax_candidate *c) {
  const piece_cost *worst = &s->piece[AX_PIECE_FIRST];
  ax_pipelined made;
  double bytes = 0, update = 0, computing = 0, exchanging = 0;
  pipe->schedule = schedule;
  pipe->chunks = chunks;
  AX_TRY(ax_pipeline_run(pipe, &made));
  for (int i = 0; i < AX_PIECE_COUNT; i++) {
    const piece_cost *piece = &s->piece[i];
    /* Gradients are as large as parameters. */
    const double own = 2 * piece->parameters + piece->state + made.in_flight * piece->held + piece->transient;
    if (own > bytes) bytes = own, worst = piece;
    update = fmax(update, piece->update);
    computing = fmax(computing, piece->computing);
    exchanging = fmax(exchanging, piece->exchanging);
  }
  const double rounds = (double)pipe->microbatches;
  c->schedule = schedule;
  c->chunks = chunks;
  c->pipeline = *pipe;
  c->microbatches = pipe->microbatches;
  c->trial = (ax_trial){.bytes = bytes, .seconds = made.seconds + update, .exchanging = rounds * exchanging + worst->update_exchanging};
  c->waiting = fmax(made.seconds - rounds * (computing + exchanging), 0);
  c->trial.computing = c->trial.seconds - c->waiting - c->trial.exchanging;
  c->memory = (ax_planned_memory){.parameters = worst->parameters, .state = worst->state, .total = bytes};
  c->memory.temporaries = bytes - worst->parameters - worst->state;
  return AX_OK;
}

static ax_status begin_pipeline(const piping *s, ax_pipeline *out) {
  *out = (ax_pipeline){.stages = s->stages, .microbatches = s->p->model.samples / s->data / s->options.samples,
                       .first = s->piece[AX_PIECE_FIRST].times, .middle = s->piece[AX_PIECE_MIDDLE].times,
                       .last = s->piece[AX_PIECE_LAST].times};
  return time_message(s, &out->message);
}

static ax_status try_schedule(piping *s, ax_pipeline *pipe, ax_pipeline_schedule schedule, int64_t chunks) {
  ax_candidate c = {.mesh = mesh_of(s->data, s->model), .layout = s->layout, .saved = s->options.saved, .stages = s->stages,
                    .kind = s->model > 1 ? "pipeline, tensor parallel" : "pipeline"};
  AX_TRY(time_schedule(s, pipe, schedule, chunks, &c));
  s->fits = s->fits || (schedule != AX_PIPELINE_GPIPE && c.trial.bytes <= s->p->capacity);
  return ax_planner_keep(s->p, &c);
}

static ax_status try_schedules(piping *s) {
  ax_pipeline pipe;
  AX_TRY(begin_pipeline(s, &pipe));
  AX_TRY(try_schedule(s, &pipe, AX_PIPELINE_GPIPE, 1));
  AX_TRY(try_schedule(s, &pipe, AX_PIPELINE_1F1B, 1));
  AX_TRY(try_schedule(s, &pipe, AX_PIPELINE_ZERO_BUBBLE, 1));
  for (int64_t chunks = 2; chunks <= most_chunks && pipe.microbatches % s->stages == 0; chunks *= 2)
    if (s->options.layers % chunks == 0) AX_TRY(try_schedule(s, &pipe, AX_PIPELINE_INTERLEAVED, chunks));
  return AX_OK;
}

/* --- All of them --- */

/* Seconds that the stages take at least, were all of them in the middle. */
static double least_seconds(const piping *s) {
  const ax_stage_times *t = &s->piece[AX_PIECE_MIDDLE].times;
  const double microbatches = (double)(s->p->model.samples / s->data / s->options.samples);
  return (microbatches + (double)(s->stages - 1) / most_chunks) * (t->forward + t->backward);
}

/* Seconds that a step takes at least, by the least work that was met, were its bubbles all that is lost. */
static double least_computing(const piping *s) {
  const double microbatches = (double)(s->p->model.samples / s->data / s->options.samples);
  const double bubbles = (double)(s->stages - 1) / most_chunks / microbatches;
  return isfinite(s->p->work) ? AX_LEAST_WORK * s->p->work / (double)s->p->devices * (1 + bubbles) : 0;
}

/* Whether it may be better than what is known. */
static bool is_worth(const piping *s, double least) {
  static const double times = 1.2;
  return !ax_planner_is_hopeless(s->p, least, times) && least < times * ax_planner_known_seconds(s->p);
}

/* Costs of all pieces, the middle one first. *worth: it may be better than what is known, which is asked if it is not NULL. */
static ax_status cost_pieces(piping *s, bool *worth) {
  if (worth != NULL) *worth = is_worth(s, least_computing(s));
  if (worth != NULL && !*worth) return AX_OK;
  AX_TRY(cost_of(s, AX_PIECE_MIDDLE));
  if (worth != NULL) *worth = is_worth(s, least_seconds(s));
  if (worth != NULL && !*worth) return AX_OK;
  if (s->stages > 2) AX_TRY(time_update(s, &s->piece[AX_PIECE_MIDDLE]));
  for (int piece = 0; piece < AX_PIECE_COUNT; piece++) {
    if (piece == AX_PIECE_MIDDLE) continue;
    AX_TRY(cost_of(s, (ax_stage_piece)piece));
    AX_TRY(time_update(s, &s->piece[piece]));
  }
  if (s->stages == 2) s->piece[AX_PIECE_MIDDLE] = s->piece[AX_PIECE_FIRST];
  return AX_OK;
}

/* Pieces that cannot be made, or not be cut so, are no candidates. */
static ax_status try_pieces(piping *s) {
  bool worth;
  const ax_status status = cost_pieces(s, &worth);
  if (status == AX_OK && worth) return try_schedules(s);
  return status == AX_INTERNAL ? status : AX_OK;
}

/* Keeping less is tried where keeping more does not fit. */
static ax_status try_policies(piping *s) {
  for (int saved = 0; saved < AX_CHECKPOINT_POLICY_COUNT; saved++) {
    if (ax_planner_is_late(s->p, 0.95)) return AX_OK;
    s->options.saved = (ax_checkpoint_policy)saved;
    s->fits = false;
    AX_TRY(try_pieces(s));
    if (s->fits) return AX_OK;
  }
  return AX_OK;
}

static ax_status try_stages(piping *s) {
  ax_planner *p = s->p;
  const ax_mesh mesh = mesh_of(s->data, s->model);
  AX_TRY(ax_arrangement_copy(&p->tensor, &p->families, &s->layout));
  s->layout.state_cut = true;
  ax_status status = AX_OK;
  const bool fits = ax_arrangement_fit(&s->layout, &p->model, &p->families, &mesh, 1);
  if (fits) status = write_specs(s);
  if (fits)
    for (int64_t samples = 1; samples <= most_samples && status == AX_OK; samples *= 2) {
      s->options = (ax_piece_options){.layers = p->model.layers / s->stages, .samples = samples};
      if (p->model.samples % (s->data * samples) == 0) status = try_policies(s);
    }
  ax_arrangement_deinit(&s->layout);
  return status;
}

ax_status ax_planner_search_pipelines(ax_planner *p) {
  const int64_t devices = p->devices;
  piping s = {.p = p};
  ax_status status = AX_OK;
  if (!ax_pieces_possible(&p->model) || p->tensor.family == NULL) return AX_OK;
  s.used = ax_calloc((size_t)p->model.param_count + 1, sizeof s.used[0]);
  if (s.used == NULL) return ax_out_of_memory(p->model.param_count);
  for (s.stages = 2; s.stages <= most_stages && status == AX_OK; s.stages++)
    for (s.model = 1; s.model <= most_model && status == AX_OK; s.model++) {
      s.data = devices / s.stages / s.model;
      if (s.data * s.stages * s.model != devices || p->model.layers % s.stages != 0) continue;
      status = try_stages(&s);
    }
  ax_arena_deinit(&s.arena);
  ax_free(s.used);
  return status;
}

static ax_status check_given(const piping *s, const ax_candidate *c) {
  const ax_model *m = &s->p->model;
  const int64_t groups = s->data * c->microbatches;
  if (!ax_pieces_possible(m)) return ax_error(AX_INVALID_ARGUMENT, "planner: the loss has no loop over layers to be cut into stages");
  if (m->layers % (s->stages * c->chunks) != 0)
    return ax_error(AX_INVALID_ARGUMENT, "planner: %lld layers on %lld stages, of %lld parts each: these do not divide the layers", (long long)m->layers, (long long)s->stages,
                    (long long)c->chunks);
  if (m->samples % groups != 0)
    return ax_error(AX_INVALID_ARGUMENT, "planner: %lld samples in %lld microbatches of %lld groups of devices: these do not divide the samples", (long long)m->samples,
                    (long long)c->microbatches, (long long)s->data);
  if (s->data * s->model * s->stages <= s->p->devices) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "planner: stages of %lld devices in all, and there are %lld",
                  (long long)(s->data * s->model * s->stages), (long long)s->p->devices);
}

ax_status ax_planner_time_pipeline(ax_planner *p, ax_candidate *c) {
  piping s = {.p = p, .stages = c->stages, .data = c->mesh.axis[0].size, .model = c->mesh.count > 1 ? c->mesh.axis[1].size : 1};
  const ax_mesh mesh = mesh_of(s.data, s.model);
  ax_pipeline pipe;
  AX_TRY(check_given(&s, c));
  s.options = (ax_piece_options){.layers = p->model.layers / s.stages, .samples = p->model.samples / s.data / c->microbatches, .saved = c->saved};
  s.used = ax_calloc((size_t)p->model.param_count + 1, sizeof s.used[0]);
  if (s.used == NULL) return ax_out_of_memory(p->model.param_count);
  s.layout = c->layout;
  (void)ax_arrangement_fit(&s.layout, &p->model, &p->families, &mesh, 1);
  ax_status status = write_specs(&s);
  if (status == AX_OK) status = cost_pieces(&s, NULL);
  if (status == AX_OK) status = begin_pipeline(&s, &pipe);
  if (status == AX_OK) status = time_schedule(&s, &pipe, c->schedule, c->chunks, c);
  ax_arena_deinit(&s.arena);
  ax_free(s.used);
  return status;
}
