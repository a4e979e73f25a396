/* Candidates of several stages. The axes of a stage's mesh, and what each cuts, are as stage_mesh.h has them: `data` groups of
   devices train on parts of the batch, and within a group experts, positions and parameters are cut as those ways of a second axis
   were found to cut them. The optimizer's state is cut over the groups, and gradients are added up over them at the end of a step.
   The passes of a stage are simulated, each by itself (pieces.h), and the schedule puts them in time (schedule.h). */
#include <math.h>
#include <string.h>

#include "planner/ahead.h"
#include "planner/schedule.h"
#include "planner/stage_mesh.h"
#include "sim/place.h"

static const double share_of_searching = 0.8; /* of the time: the best are timed exactly in what is left */
enum { most_stages = 64, most_model = 64, most_second = 64, most_samples = 4, most_chunks = 4, most_ways = 2 };

/* What a piece costs a device. */
typedef struct piece_cost {
  ax_stage_times times;
  double computing, exchanging; /* of a microbatch, both passes */
  double held;      /* bytes that a microbatch under way holds */
  double transient; /* bytes that a pass needs besides */
  double own[AX_HELD_SUM + 1];      /* bytes of parameters, state and sums of gradients: by ax_held_array */
  double update, update_exchanging; /* seconds at the end of a step */
  double update_bytes;              /* that it takes in all; nothing of microbatches is held then */
} piece_cost;

typedef struct piping {
  ax_planner *p;
  const ax_candidate *c; /* its mesh, its layout, which fits, its stages, and what it is called */
  ax_piece_options options;
  ax_piece_specs specs; /* as the layout says */
  ax_arena arena;       /* theirs */
  uint64_t hash_of_passes, hash_of_all; /* of the specs: without those of state, and with them */
  ax_loss_piece made;                   /* the last that was needed */
  bool *used[AX_PIECE_COUNT];           /* by parameter; NULL: it was not asked yet */
  bool fits; /* the last that was tried */
  double best; /* seconds of the fastest that fits, with so many samples in a microbatch */
  piece_cost piece[AX_PIECE_COUNT];
} piping;

static int64_t groups_of(const piping *s) { return ax_stage_groups(&s->c->mesh); }
static int64_t microbatches_of(const piping *s) { return s->p->model.samples / groups_of(s) / s->options.samples; }

/* --- Layouts --- */

static uint64_t hash_specs(uint64_t hash, const char *const *specs, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) hash = ax_hash_bytes(hash, specs[i], strlen(specs[i]) + 1);
  return hash;
}

static ax_status begin(piping *s, ax_planner *p, const ax_candidate *c) {
  const ax_model *m = &p->model;
  *s = (piping){.p = p, .c = c, .options.layers = m->layers / c->stages};
  AX_TRY(ax_stage_specs(&c->layout, m, &p->families, &c->mesh, &s->arena, &s->specs));
  s->hash_of_passes = hash_specs(AX_HASH_SEED + 1, s->specs.param, m->param_count);
  s->hash_of_passes = hash_specs(s->hash_of_passes, s->specs.sum, m->param_count);
  s->hash_of_passes = hash_specs(s->hash_of_passes, s->specs.sample, m->batch_count);
  s->hash_of_passes = hash_specs(s->hash_of_passes, s->specs.carry, ax_piece_carries(m));
  s->hash_of_all = hash_specs(s->hash_of_passes, s->specs.state, m->param_count);
  return AX_OK;
}

static void end(piping *s) {
  for (int i = 0; i < AX_PIECE_COUNT; i++) ax_free(s->used[i]);
  ax_piece_deinit(&s->made);
  ax_arena_deinit(&s->arena);
}

/* --- Pieces --- */

static bool is_made(const piping *s, ax_stage_piece number) {
  const ax_piece_options *made = &s->made.options, *wanted = &s->options;
  return s->made.model != NULL && made->piece == number && made->layers == wanted->layers && made->samples == wanted->samples &&
         made->saved == wanted->saved;
}

static ax_status need_piece(piping *s, ax_stage_piece number) {
  if (is_made(s, number)) return AX_OK;
  ax_piece_deinit(&s->made);
  s->options.piece = number;
  const ax_status status = ax_piece_make(&s->p->model, &s->options, &s->made);
  if (status != AX_OK) ax_piece_deinit(&s->made);
  return status;
}

/* The parameters that a piece uses, which are the same for all numbers of layers and samples. */
static ax_status find_used(piping *s, ax_stage_piece number) {
  const size_t count = s->p->model.param_count;
  if (s->used[number] != NULL) return AX_OK;
  AX_TRY(need_piece(s, number));
  s->used[number] = ax_calloc(count + 1, sizeof s->used[number][0]);
  if (s->used[number] == NULL) return ax_out_of_memory(count);
  memcpy(s->used[number], s->made.used, count * sizeof s->used[number][0]);
  return AX_OK;
}

/* --- Trials --- */

static ax_status run(piping *s, ax_program *program, const ax_mesh *mesh, ax_text *specs, ax_args donated, ax_trial *out) {
  const ax_trial_options options = {.machine = s->p->machine,
                                    .runtime = s->p->runtime,
                                    .times = s->p->times,
                                    .donated = donated,
                                    .most = INFINITY,
                                    .end = s->p->is_view || s->p->found_count + s->p->settled_count > 0 ? s->p->end : 0};
  const double began = ax_seconds();
  const ax_status status =
      specs->failed ? ax_out_of_memory(specs->length) : ax_trial_run(program, mesh, specs->data, &options, out);
  ax_ahead_note_longest(s->p, ax_seconds() - began);
  ax_text_deinit(specs);
  ax_program_release(program);
  return status;
}

static ax_status run_pass(piping *s, ax_stage_piece number, ax_piece_pass pass, ax_trial *out) {
  const ax_mesh group = ax_stage_group(&s->c->mesh);
  ax_program *program;
  ax_text specs = {0};
  AX_TRY(need_piece(s, number));
  AX_TRY(ax_piece_program(&s->made, pass, &program));
  const uint32_t sums = s->made.used_count;
  ax_piece_pass_specs(&s->made, pass, &s->specs, &specs);
  return run(s, program, &group, &specs, pass == AX_PASS_BACKWARD ? AX_RANGE(program->in_count - sums, sums) : AX_FIRST(0), out);
}

static ax_status run_update(piping *s, ax_stage_piece number, ax_trial *out) {
  ax_program *program = NULL;
  ax_text specs = {0};
  AX_TRY(find_used(s, number));
  AX_TRY(ax_piece_update(&s->p->model, s->used[number], s->options.layers, groups_of(s), &s->specs, &program, &specs));
  return run(s, program, &s->c->mesh, &specs, AX_FIRST(program->out_count), out);
}

enum { update_of = AX_PASS_BY_CARRIES + 1 }; /* beside the passes */

/* What a trial depends on. How many groups there are counts for the update alone. */
static uint64_t hash_of(const piping *s, ax_stage_piece number, int what) {
  const ax_mesh *mesh = &s->c->mesh;
  uint64_t hash = what == update_of ? s->hash_of_all : s->hash_of_passes;
  for (uint32_t a = what == update_of ? 0 : 1; a < mesh->count; a++) hash = ax_hash_word(hash, (uint64_t)mesh->axis[a].size);
  hash = ax_hash_word(hash, (uint64_t)number * (update_of + 1) + (uint64_t)what);
  hash = ax_hash_word(hash, (uint64_t)s->options.layers);
  if (what == update_of) return hash;
  return ax_hash_word(ax_hash_word(hash, (uint64_t)s->options.samples), (uint64_t)s->options.saved);
}

/* Makes it, unless it is known. A thread that goes ahead makes the same, and so may have made it. */
static ax_status try_one(piping *s, ax_stage_piece number, int what, ax_trial *out) {
  const uint64_t hash = hash_of(s, number, what);
  if (ax_ahead_ask(s->p, hash, out)) {
    if (out->bytes > 0) return AX_OK;
    return ax_error(AX_INVALID_ARGUMENT, "planner: a stage cannot be cut so");
  }
  const ax_status status = what == update_of ? run_update(s, number, out) : run_pass(s, number, (ax_piece_pass)what, out);
  ax_ahead_note(s->p, hash, status, out);
  return status;
}

/* --- Costs of a piece --- */

static ax_status cost_of(piping *s, ax_stage_piece number) {
  piece_cost *cost = &s->piece[number];
  const ax_planner *p = s->p;
  ax_trial forward, backward, by_carries = {0}; /* the first piece has no carries to take gradients by */
  AX_TRY(try_one(s, number, AX_PASS_FORWARD, &forward)); /* known, of the middle one */
  AX_TRY(try_one(s, number, AX_PASS_BACKWARD, &backward));
  if (number != AX_PIECE_FIRST) AX_TRY(try_one(s, number, AX_PASS_BY_CARRIES, &by_carries));
  AX_TRY(find_used(s, number));
  cost->times.forward = forward.seconds;
  cost->times.backward = backward.seconds;
  cost->times.by_parameters = fmax(backward.seconds - by_carries.seconds, 0);
  cost->computing = forward.computing + backward.computing;
  cost->exchanging = forward.exchanging + backward.exchanging;
  cost->held = forward.results;
  cost->transient = fmax(fmax(forward.bytes - forward.arguments - forward.results, backward.bytes - backward.arguments), 0);
  ax_arrangement_used_memory(&s->c->layout, &p->model, &p->families, &s->c->mesh, s->used[number], 1 / (double)s->c->stages,
                             cost->own);
  return AX_OK;
}

static ax_status cost_update(piping *s, ax_stage_piece number) {
  ax_trial trial;
  AX_TRY(try_one(s, number, update_of, &trial));
  s->piece[number].update = trial.seconds;
  s->piece[number].update_exchanging = trial.exchanging;
  s->piece[number].update_bytes = trial.bytes;
  return AX_OK;
}

/* Seconds from one stage to the next, of what a device sends there of a microbatch. */
static ax_status time_message(const piping *s, double *out) {
  const ax_mesh all = {.count = 1, .axis = {{.name = "all", .size = s->p->devices}}};
  const double bytes = ax_stage_message_bytes(&s->c->layout, &s->p->model, &s->c->mesh, s->options.samples);
  ax_sim_place place;
  ax_sim_route route = {0};
  double seconds = 0;
  AX_TRY(ax_sim_place_make(s->p->machine, &all, &place));
  AX_TRY(ax_sim_route_find(&place, 0, ax_mesh_devices(&s->c->mesh), &route));
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
    const double own = piece->own[AX_HELD_PARAM] + piece->own[AX_HELD_SUM] + piece->own[AX_HELD_STATE];
    const double all = fmax(own + made.in_flight * piece->held + piece->transient, piece->update_bytes);
    if (all > bytes) bytes = all, worst = piece;
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
  c->memory = (ax_planned_memory){.parameters = worst->own[AX_HELD_PARAM], .state = worst->own[AX_HELD_STATE], .total = bytes};
  c->memory.temporaries = bytes - c->memory.parameters - c->memory.state;
  return AX_OK;
}

static ax_status begin_pipeline(const piping *s, ax_pipeline *out) {
  *out = (ax_pipeline){.stages = s->c->stages,
                       .microbatches = microbatches_of(s),
                       .first = s->piece[AX_PIECE_FIRST].times,
                       .middle = s->piece[AX_PIECE_MIDDLE].times,
                       .last = s->piece[AX_PIECE_LAST].times};
  return time_message(s, &out->message);
}

static ax_status try_schedule(piping *s, ax_pipeline *pipe, ax_pipeline_schedule schedule, int64_t chunks) {
  ax_candidate c = *s->c;
  c.saved = s->options.saved;
  AX_TRY(time_schedule(s, pipe, schedule, chunks, &c));
  s->fits = s->fits || (schedule != AX_PIPELINE_GPIPE && c.trial.bytes <= s->p->capacity);
  if (c.trial.bytes <= s->p->capacity) s->best = fmin(s->best, c.trial.seconds);
  return ax_planner_keep(s->p, &c);
}

static ax_status try_schedules(piping *s) {
  ax_pipeline pipe;
  AX_TRY(begin_pipeline(s, &pipe));
  AX_TRY(try_schedule(s, &pipe, AX_PIPELINE_GPIPE, 1));
  AX_TRY(try_schedule(s, &pipe, AX_PIPELINE_1F1B, 1));
  AX_TRY(try_schedule(s, &pipe, AX_PIPELINE_ZERO_BUBBLE, 1));
  for (int64_t chunks = 2; chunks <= most_chunks && pipe.microbatches % s->c->stages == 0; chunks *= 2)
    if (s->options.layers % chunks == 0) AX_TRY(try_schedule(s, &pipe, AX_PIPELINE_INTERLEAVED, chunks));
  return AX_OK;
}

/* --- All of them --- */

/* Seconds that the stages take at least, of which one in the middle takes so many of a microbatch. */
static double least_seconds(const piping *s, double seconds) {
  return ((double)microbatches_of(s) + (double)(s->c->stages - 1) / most_chunks) * seconds;
}

/* Seconds that a step takes at least, by the least work that was met, were its bubbles all that is lost. */
static double least_computing(const piping *s) {
  const double bubbles = (double)(s->c->stages - 1) / most_chunks / (double)microbatches_of(s);
  return isfinite(s->p->work) ? AX_LEAST_WORK * s->p->work / (double)s->p->devices * (1 + bubbles) : 0;
}

/* Whether it may be better than what is known. */
static bool is_worth(const piping *s, double least) {
  static const double times = 1.2;
  return !ax_planner_is_hopeless(s->p, least, times) && least < times * ax_planner_known_seconds(s->p);
}

/* Whether the middle piece may be better than what is known, by its forward pass, and then by both. *status: of its trials. */
static bool is_middle_worth(piping *s, ax_status *status) {
  static const double least_both = 1.5; /* times a forward pass; a backward pass does twice its products */
  const ax_stage_times *t = &s->piece[AX_PIECE_MIDDLE].times;
  ax_trial forward;
  if (!is_worth(s, least_computing(s))) return false;
  *status = try_one(s, AX_PIECE_MIDDLE, AX_PASS_FORWARD, &forward);
  if (*status != AX_OK || !is_worth(s, least_seconds(s, least_both * forward.seconds))) return false;
  *status = cost_of(s, AX_PIECE_MIDDLE);
  return *status == AX_OK && is_worth(s, least_seconds(s, t->forward + t->backward));
}

/* Costs of all other pieces, and of the ends of a step. */
static ax_status cost_others(piping *s) {
  if (s->c->stages > 2) AX_TRY(cost_update(s, AX_PIECE_MIDDLE));
  for (int piece = 0; piece < AX_PIECE_COUNT; piece++) {
    if (piece == AX_PIECE_MIDDLE) continue;
    AX_TRY(cost_of(s, (ax_stage_piece)piece));
    AX_TRY(cost_update(s, (ax_stage_piece)piece));
  }
  if (s->c->stages == 2) s->piece[AX_PIECE_MIDDLE] = s->piece[AX_PIECE_FIRST];
  return AX_OK;
}

/* Pieces that cannot be made, or not be cut so, are no candidates. */
static ax_status try_pieces(piping *s, bool *worth) {
  ax_status status = AX_OK;
  *worth = is_middle_worth(s, &status);
  if (*worth) status = cost_others(s);
  if (*worth && status == AX_OK) return try_schedules(s);
  return status == AX_INTERNAL ? status : AX_OK;
}

/* Keeping less, which takes longer, is tried where keeping more does not fit. */
static ax_status try_policies(piping *s) {
  bool worth = true;
  s->fits = false;
  for (int saved = 0; saved < AX_CHECKPOINT_POLICY_COUNT && worth && !s->fits; saved++) {
    if (ax_planner_is_late(s->p, share_of_searching)) return AX_OK;
    s->options.saved = (ax_checkpoint_policy)saved;
    AX_TRY(try_pieces(s, &worth));
  }
  return AX_OK;
}

/* Tries stages of that mesh and layout with each number of samples: some, and more as long as that is faster, since parameters
   are then read less often. A job of ahead.h. */
static ax_status try_stages(ax_planner *p, ax_candidate *c, int none) {
  const int64_t parts = ax_stage_sample_parts(&c->layout, &c->mesh);
  piping s;
  (void)none;
  ax_status status = begin(&s, p, c);
  double before = INFINITY;
  for (int64_t samples = parts; groups_of(&s) * samples <= p->model.samples && status == AX_OK; samples *= 2) {
    s.options.samples = samples;
    s.best = INFINITY;
    if (p->model.samples % (groups_of(&s) * samples) == 0) status = try_policies(&s);
    if (samples >= most_samples * parts && !(s.best < before)) break;
    before = fmin(before, s.best);
  }
  end(&s);
  return status;
}

/* What is done along the axes between `data` and `model`. */
typedef struct within {
  uint32_t count;
  const char *axis[most_ways];
  const ax_arrangement *way[most_ways];
  const char *kinds[2]; /* without an axis `model`, and with one */
} within;

/* Sizes of a stage's axes behind `data`. */
typedef struct stage_sizes {
  int64_t way[most_ways], model;
} stage_sizes;

static bool stage_cuts_experts(const ax_planner *p, const ax_arrangement *layout, uint32_t axis) {
  for (uint32_t g = 0; g < p->families.count; g++)
    if (p->families.list[g].experts >= 0 && layout->family[g].axis[axis] == p->families.list[g].experts) return true;
  return false;
}

static void add_axis(ax_mesh *mesh, const char *name, int64_t size) {
  ax_axis *axis = &mesh->axis[mesh->count++];
  strcpy(axis->name, name);
  axis->size = size;
}

static int64_t devices_within(const stage_sizes *sizes) { return sizes->way[0] * sizes->way[1] * sizes->model; }

/* A stage's mesh and layout. False: it cannot be cut so. */
static bool make_stage(const ax_planner *p, const within *w, const stage_sizes *sizes, ax_candidate *c) {
  add_axis(&c->mesh, "data", p->devices / c->stages / devices_within(sizes));
  for (uint32_t k = 0; k < w->count; k++) add_axis(&c->mesh, w->axis[k], sizes->way[k]);
  if (w->count == 0 || sizes->model > 1) add_axis(&c->mesh, "model", sizes->model);
  c->layout.state_cut = true;
  c->layout.gathered = false;
  c->kind = w->kinds[sizes->model > 1];
  if (!ax_arrangement_fit(&c->layout, &p->model, &p->families, &c->mesh, 1)) return false;
  for (uint32_t axis = 1; axis <= w->count; axis++)
    if (!(c->layout.batch.axis[axis] == 0 ? stage_cuts_experts(p, &c->layout, axis)
                                          : ax_stage_cuts_carries(&c->layout, &p->model, &c->mesh)))
      return false;
  return true;
}

static ax_status try_within(ax_planner *p, const within *w, int64_t stages, const stage_sizes *sizes, bool offer) {
  ax_candidate c = {.stages = stages, .chunks = 1};
  AX_TRY(w->count == 0 ? ax_arrangement_copy(&p->tensor, &p->families, &c.layout)
                       : ax_planner_merge_ways(p, w->way[0], w->way[1], &c.layout));
  ax_status status = AX_OK;
  if (make_stage(p, w, sizes, &c)) {
    if (offer)
      ax_ahead_offer(p, try_stages, &c, 0);
    else
      status = try_stages(p, &c, 0);
  }
  ax_candidate_deinit(&c);
  return status;
}

/* The next number up to `most` that divides the devices; false: there is none. */
static bool next_factor(const ax_planner *p, int64_t most, int64_t *size) {
  do ++*size;
  while (*size <= most && p->devices % *size != 0);
  return *size <= most;
}

/* The sizes behind these, of axes that are all used; false: there are none. */
static bool next_sizes(const ax_planner *p, const within *w, stage_sizes *sizes) {
  for (uint32_t k = w->count; k-- > 0; sizes->way[k] = 2)
    if (next_factor(p, most_second, &sizes->way[k])) return true;
  return next_factor(p, most_model, &sizes->model);
}

static ax_status go_through(ax_planner *p, const within *w, bool offer) {
  for (int64_t stages = 2; stages <= most_stages; stages++) {
    stage_sizes sizes = {.way = {w->count > 0 ? 2 : 1, w->count > 1 ? 2 : 1}, .model = 1};
    if (p->devices % stages != 0 || p->model.layers % stages != 0) continue;
    do {
      if (p->devices % (stages * devices_within(&sizes)) == 0) AX_TRY(try_within(p, w, stages, &sizes, offer));
    } while (next_sizes(p, w, &sizes));
  }
  return AX_OK;
}

enum { kinds_within = 4 };

static void list_within(const ax_planner *p, within out[kinds_within]) {
  const within all[kinds_within] = {
      {0, {NULL}, {NULL}, {"pipeline", "pipeline, tensor parallel"}},
      {1, {"expert"}, {&p->expert}, {"pipeline, expert parallel", "pipeline, expert and tensor parallel"}},
      {1, {"sequence"}, {&p->sequence}, {"pipeline, sequence parallel", "pipeline, sequence and tensor parallel"}},
      {2,
       {"expert", "sequence"},
       {&p->expert, &p->sequence},
       {"pipeline, expert and sequence parallel", "pipeline, expert, sequence and tensor parallel"}},
  };
  memcpy(out, all, sizeof all);
}

ax_status ax_planner_search_pipelines(ax_planner *p) {
  within all[kinds_within];
  if (!ax_pieces_possible(&p->model) || p->tensor.family == NULL) return AX_OK;
  list_within(p, all);
  for (size_t i = 0; i < AX_COUNT(all); i++) {
    bool there = true;
    for (uint32_t k = 0; k < all[i].count; k++) there = there && all[i].way[k]->family != NULL;
    if (!there) continue;
    ax_ahead_forget(p);
    AX_TRY(go_through(p, &all[i], true));
    AX_TRY(go_through(p, &all[i], false));
  }
  return AX_OK;
}

/* --- Those that are given --- */

ax_status ax_stage_check_axes(const ax_mesh *mesh) {
  static const char *const names[AX_PLANNER_AXES] = {"data", "expert", "sequence", "model"};
  uint32_t next = 0, axis = 0;
  for (; axis < mesh->count; axis++, next++) {
    while (axis > 0 && next < AX_PLANNER_AXES && strcmp(mesh->axis[axis].name, names[next]) != 0) next++;
    if (next == AX_PLANNER_AXES || strcmp(mesh->axis[axis].name, names[next]) != 0) break;
  }
  if (axis > 0 && axis == mesh->count) return AX_OK;
  ax_text text = {0};
  ax_mesh_text(&text, mesh);
  const ax_status status =
      ax_error(AX_INVALID_ARGUMENT,
               "planner: a stage of a pipeline has the axis data, then expert, sequence and model, each if any, in this "
               "order, and not %s",
               text.data != NULL ? text.data : "these");
  ax_text_deinit(&text);
  return status;
}

static ax_status check_given(const ax_planner *p, const ax_candidate *c) {
  const ax_model *m = &p->model;
  const int64_t data = ax_stage_groups(&c->mesh), parts = ax_stage_sample_parts(&c->layout, &c->mesh);
  const char *why_not = ax_pieces_why_not(m);
  if (why_not != NULL) return ax_error(AX_INVALID_ARGUMENT, "planner: %s", why_not);
  if (c->stages > m->layers || c->chunks > m->layers || m->layers % (c->stages * c->chunks) != 0)
    return ax_error(AX_INVALID_ARGUMENT, "planner: %lld layers on %lld stages, of %lld parts each: these do not divide the layers",
                    (long long)m->layers, (long long)c->stages, (long long)c->chunks);
  if (data > m->samples || c->microbatches > m->samples || m->samples % (data * c->microbatches) != 0)
    return ax_error(AX_INVALID_ARGUMENT,
                    "planner: %lld samples in %lld microbatches of %lld groups of devices: these do not divide the samples",
                    (long long)m->samples, (long long)c->microbatches, (long long)data);
  if (m->samples % (data * c->microbatches * parts) != 0)
    return ax_error(AX_INVALID_ARGUMENT,
                    "planner: microbatches of %lld samples, which are cut in %lld within a stage: these do not divide the samples",
                    (long long)(m->samples / data / c->microbatches), (long long)parts);
  if (ax_candidate_devices(c) <= p->devices) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "planner: stages of %lld devices in all, and there are %lld",
                  (long long)ax_candidate_devices(c), (long long)p->devices);
}

ax_status ax_planner_time_pipeline(ax_planner *p, ax_candidate *c) {
  piping s;
  ax_pipeline pipe;
  AX_TRY(check_given(p, c));
  if (!ax_arrangement_fit(&c->layout, &p->model, &p->families, &c->mesh, 1)) {
    ax_text why = {0};
    (void)ax_arrangement_why_not(&c->layout, &p->model, &c->mesh, 1, &why);
    const ax_status refused = ax_error(AX_INVALID_ARGUMENT, "planner: %s", why.data != NULL ? why.data : "");
    ax_text_deinit(&why);
    return refused;
  }
  ax_status status = begin(&s, p, c);
  s.options.samples = p->model.samples / groups_of(&s) / c->microbatches;
  s.options.saved = c->saved;
  if (status == AX_OK) status = cost_of(&s, AX_PIECE_MIDDLE);
  if (status == AX_OK) status = cost_others(&s);
  if (status == AX_OK) status = begin_pipeline(&s, &pipe);
  if (status == AX_OK) status = time_schedule(&s, &pipe, c->schedule, c->chunks, c);
  end(&s);
  return status;
}

/* Of the ways to be within a stage the one that has the axes of the mesh. */
static const within *find_within(const within *all, const ax_mesh *mesh) {
  for (size_t i = 0; i < kinds_within; i++) {
    bool same = mesh->count >= 1 + all[i].count && mesh->count <= 2 + all[i].count;
    for (uint32_t k = 0; same && k < all[i].count; k++) same = strcmp(mesh->axis[1 + k].name, all[i].axis[k]) == 0;
    same = same && (mesh->count == 1 + all[i].count || strcmp(mesh->axis[mesh->count - 1].name, "model") == 0);
    if (same) return &all[i];
  }
  return NULL;
}

/* Whatever a pipeline of these stages is refused for, if nothing of them could be tried. */
static ax_status time_or_refuse(ax_planner *p, int64_t stages, const ax_mesh *mesh, const ax_arrangement *layout) {
  ax_candidate c = {
      .mesh = *mesh, .saved = AX_SAVE_EVERYTHING, .microbatches = 1, .stages = stages, .chunks = 1, .schedule = AX_PIPELINE_1F1B};
  AX_TRY(ax_arrangement_copy(layout, &p->families, &c.layout));
  c.layout.state_cut = true;
  ax_status status = ax_planner_time_pipeline(p, &c);
  if (status == AX_OK) status = ax_planner_keep(p, &c);
  ax_candidate_deinit(&c);
  return status;
}

ax_status ax_planner_search_pipeline(ax_planner *p, int64_t stages, const ax_mesh *mesh) {
  within all[kinds_within];
  ax_arrangement layout = {0};
  uint32_t shards;
  AX_TRY(ax_stage_check_axes(mesh));
  AX_TRY(ax_planner_find_ways(p, NULL));
  AX_TRY(ax_planner_lay_named(p, mesh, &layout, &shards));
  list_within(p, all);
  const within *w = find_within(all, mesh);
  stage_sizes sizes = {.way = {1, 1}, .model = 1};
  for (uint32_t k = 0; k < w->count; k++) sizes.way[k] = mesh->axis[1 + k].size;
  if (mesh->count == 2 + w->count) sizes.model = mesh->axis[mesh->count - 1].size;
  const bool possible = ax_pieces_possible(&p->model) && p->tensor.family != NULL && p->model.layers % stages == 0;
  ax_status status = possible ? try_within(p, w, stages, &sizes, false) : AX_OK;
  if (status == AX_OK && p->found_count == 0) status = time_or_refuse(p, stages, mesh, &layout);
  ax_arrangement_deinit(&layout);
  return status;
}
