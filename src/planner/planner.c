#include "axle/planner.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "axle/transform.h"
#include "planner/search.h"

const char *ax_checkpoint_policy_name(ax_checkpoint_policy policy) {
  static const char *const names[] = {"everything", "dots", "nothing"};
  return (unsigned)policy < AX_CHECKPOINT_POLICY_COUNT ? names[policy] : "none";
}

const char *ax_pipeline_schedule_name(ax_pipeline_schedule schedule) {
  static const char *const names[] = {"none", "gpipe", "1f1b", "interleaved", "zero-bubble"};
  return (unsigned)schedule < AX_PIPELINE_SCHEDULE_COUNT ? names[schedule] : "none";
}

/* --- Giving strategies --- */

static ax_mesh mesh_of(const ax_candidate *c) {
  ax_mesh mesh = c->mesh;
  if (c->stages < 2) return mesh;
  memmove(mesh.axis + 1, mesh.axis, mesh.count * sizeof mesh.axis[0]);
  mesh.axis[0] = (ax_axis){.name = "pipe", .size = c->stages};
  mesh.count++;
  return mesh;
}

static ax_status give(const ax_planner *p, const ax_candidate *c, ax_strategy *out) {
  ax_text specs = {0};
  const double seconds = c->trial.seconds;
  *out = (ax_strategy){.mesh = mesh_of(c), .saved = c->saved, .microbatches = c->microbatches, .stages = c->stages, .chunks = c->chunks,
                       .schedule = c->schedule, .seconds = seconds, .memory = c->memory, .fits = c->trial.bytes <= p->capacity};
  if (isfinite(seconds) && seconds > 0) {
    out->computing = c->trial.computing / seconds;
    out->exchanging = c->trial.exchanging / seconds;
    out->waiting = c->waiting / seconds;
    out->utilization = p->ideal / seconds;
  }
  if (c->stages > 1) AX_TRY(ax_pipeline_picture(&c->pipeline, &out->picture));
  ax_arrangement_in_specs(&c->layout, &p->model, &p->families, &c->mesh, c->stages > 1, &specs);
  AX_TRY(ax_text_finish(&specs, &out->in_specs));
  specs = (ax_text){0};
  ax_arrangement_specs(&c->layout, &p->model, &p->families, &c->mesh, &specs);
  if (c->kind != NULL) snprintf(out->kind, sizeof out->kind, "%s", c->kind);
  else ax_arrangement_kind(&c->layout, &p->model, &p->families, &c->mesh, out->kind, sizeof out->kind);
  return ax_text_finish(&specs, &out->specs);
}

/* Whether one before it, which are better, is over a mesh of the same sizes; or over more devices, beside which idle ones are of no
   use. */
static bool has_better(const ax_planner *p, uint32_t candidate) {
  const ax_candidate *c = &p->settled[candidate];
  for (uint32_t i = 0; i < candidate; i++)
    if (ax_candidate_is_alike(&p->settled[i], c) || ax_candidate_devices(&p->settled[i]) > ax_candidate_devices(c)) return true;
  return false;
}

enum { timed_again = 32 }; /* however few are asked for */

static ax_status give_best(ax_planner *p, uint32_t keep, ax_strategies *out) {
  if (p->options.mesh != NULL)
    AX_TRY(ax_planner_search_given(p));
  else
    AX_TRY(ax_planner_search_counts(p, 2 * keep > timed_again ? 2 * keep : timed_again));
  out->list = ax_calloc((size_t)keep + 1, sizeof out->list[0]);
  if (out->list == NULL) return ax_out_of_memory(keep);
  for (uint32_t i = 0; i < p->settled_count && out->count < keep; i++) {
    if (has_better(p, i)) continue;
    const uint32_t next = out->count++;
    AX_TRY(give(p, &p->settled[i], &out->list[next]));
  }
  if (out->count > 0) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "planner: no way was found to spread the program over %lld devices%s%s",
                  (long long)p->options.devices, p->why[0] != '\0' ? "; of the first that was tried: " : "", p->why);
}

ax_status ax_planner_search(const ax_program *program, const ax_cluster *machine, const ax_planner_options *options, ax_strategies *out) {
  ax_planner p;
  *out = (ax_strategies){0};
  AX_TRY(ax_require(program, "program"));
  AX_TRY(ax_require(machine, "machine"));
  AX_TRY(ax_require(options, "options"));
  ax_status status = ax_planner_begin(program, machine, options, &p);
  const double began = p.began;
  if (status == AX_OK) status = give_best(&p, options->keep > 0 ? options->keep : 5, out);
  out->devices = (double)options->devices;
  out->capacity = isfinite(p.capacity) ? p.capacity : 0;
  out->tried = p.tried;
  out->seconds = ax_seconds() - began;
  out->complete = !p.cut_short;
  ax_planner_end(&p);
  if (status != AX_OK) ax_strategies_release(out);
  return status;
}

void ax_strategy_release(ax_strategy *strategy) {
  if (strategy == NULL) return;
  ax_string_free(strategy->specs);
  ax_string_free(strategy->in_specs);
  ax_string_free(strategy->picture);
  *strategy = (ax_strategy){0};
}

void ax_strategies_release(ax_strategies *strategies) {
  if (strategies == NULL) return;
  for (uint32_t i = 0; i < strategies->count; i++) ax_strategy_release(&strategies->list[i]);
  ax_free(strategies->list);
  *strategies = (ax_strategies){0};
}

/* --- One strategy --- */

static ax_status check_given(const ax_strategy *given) {
  if ((unsigned)given->saved >= AX_CHECKPOINT_POLICY_COUNT)
    return ax_error(AX_INVALID_ARGUMENT, "planner: the policy of checkpoints is %d, which is none", (int)given->saved);
  if ((unsigned)given->schedule >= AX_PIPELINE_SCHEDULE_COUNT || (given->stages > 1) != (given->schedule != AX_PIPELINE_NONE))
    return ax_error(AX_INVALID_ARGUMENT, "planner: the schedule of %lld stages is %s", (long long)given->stages,
                    ax_pipeline_schedule_name(given->schedule));
  if (given->stages > 1 && given->specs != NULL) return ax_error(AX_INVALID_ARGUMENT, "planner: specs are given for one stage, not several");
  return AX_OK;
}

static ax_status check_batch(const ax_model *m, int64_t microbatches) {
  if (m->samples % microbatches == 0) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "planner: %lld microbatches of %lld samples, which they do not divide", (long long)microbatches, (long long)m->samples);
}

static int64_t microbatches_of(const ax_strategy *given) { return given->microbatches > 0 ? given->microbatches : 1; }

static const char *specs_of(const ax_strategy *given) {
  return given->specs != NULL && given->specs[0] != '\0' ? given->specs : "? -> ?";
}

static ax_status time_specs(ax_planner *p, const ax_strategy *given, ax_strategy *out) {
  ax_trial trial;
  ax_program *step;
  AX_TRY(check_batch(&p->model, microbatches_of(given)));
  AX_TRY(ax_model_step(&p->model, microbatches_of(given), given->saved, &step));
  const uint32_t donated = p->model.train ? p->model.param_count + p->model.state_count : 0;
  const ax_trial_options how = {p->machine, p->runtime, p->times, AX_FIRST(donated), INFINITY, true, 0};
  ax_status status = ax_trial_run(step, &given->mesh, specs_of(given), &how, &trial);
  ax_program_release(step);
  AX_TRY(status);
  *out = (ax_strategy){.mesh = given->mesh, .saved = given->saved, .microbatches = microbatches_of(given), .stages = 1, .chunks = 1,
                       .seconds = trial.seconds, .computing = trial.computing / trial.seconds,
                       .exchanging = trial.exchanging / trial.seconds, .utilization = p->ideal / trial.seconds,
                       .memory.total = trial.bytes, .fits = trial.bytes <= p->capacity, .kind = "given"};
  ax_text specs = {0};
  ax_text_add(&specs, "%s", specs_of(given));
  return ax_text_finish(&specs, &out->specs);
}

/* As the search has it: parameters whole along the axes of samples, unless one shards, and the optimizer's state cut. */
static ax_status find_layout(ax_planner *p, ax_candidate *c) {
  uint32_t shards;
  AX_TRY(ax_planner_lay_named(p, &c->mesh, &c->layout, &shards));
  for (uint32_t a = 0; a < c->mesh.count; a++)
    if ((shards >> a & 1) != 0) ax_arrangement_shard(&c->layout, &p->families, &c->mesh, a);
  c->layout.gathered = shards != 0;
  c->layout.state_cut = true;
  return AX_OK;
}

static ax_status refuse_cut(const ax_planner *p, const ax_candidate *c) {
  ax_text why = {0};
  if (!ax_arrangement_why_not(&c->layout, &p->model, &c->mesh, c->microbatches, &why)) {
    ax_text_add(&why, "the program cannot be laid over ");
    ax_mesh_text(&why, &c->mesh);
    ax_text_add(&why, ": %s", p->why);
  }
  const ax_status status = ax_error(AX_INVALID_ARGUMENT, "planner: %s", why.data != NULL ? why.data : "");
  ax_text_deinit(&why);
  return status;
}

static ax_status try_one_stage(ax_planner *p, ax_candidate *c) {
  const double capacity = p->capacity;
  bool possible;
  p->capacity = INFINITY; /* it is timed whether it fits or not */
  const ax_status status = ax_candidate_try(p, c, true, &possible);
  p->capacity = capacity;
  if (status != AX_OK || possible) return status;
  return refuse_cut(p, c);
}

static ax_status time_found(ax_planner *p, const ax_strategy *given, ax_strategy *out) {
  ax_candidate c = {.mesh = given->mesh, .saved = given->saved, .microbatches = microbatches_of(given),
                    .stages = given->stages > 1 ? given->stages : 1, .chunks = given->chunks > 0 ? given->chunks : 1,
                    .schedule = given->schedule, .kind = "given"};
  if (c.stages > 1) AX_TRY(ax_stage_check_axes(&given->mesh));
  ax_status status = find_layout(p, &c);
  if (status == AX_OK) status = c.stages > 1 ? ax_planner_time_pipeline(p, &c) : try_one_stage(p, &c);
  if (status == AX_OK) status = give(p, &c, out);
  ax_candidate_deinit(&c);
  return status;
}

ax_status ax_planner_time(const ax_program *program, const ax_cluster *machine, const ax_planner_options *options, const ax_strategy *given,
                          ax_strategy *out) {
  ax_planner p;
  *out = (ax_strategy){0};
  AX_TRY(ax_require(program, "program"));
  AX_TRY(ax_require(machine, "machine"));
  AX_TRY(ax_require(options, "options"));
  AX_TRY(ax_require(given, "given"));
  AX_TRY(check_given(given));
  ax_status status = ax_planner_begin(program, machine, options, &p);
  if (status == AX_OK) status = given->specs == NULL ? time_found(&p, given, out) : time_specs(&p, given, out);
  ax_planner_end(&p);
  if (status != AX_OK) ax_strategy_release(out);
  return status;
}

ax_status ax_planner_program(const ax_program *program, const ax_planner_options *options, const ax_strategy *strategy, ax_program **out) {
  ax_model model;
  ax_program *step = NULL;
  *out = NULL;
  AX_TRY(ax_require(program, "program"));
  AX_TRY(ax_require(options, "options"));
  AX_TRY(ax_require(strategy, "strategy"));
  AX_TRY(check_given(strategy));
  if (strategy->stages > 1)
    return ax_error(AX_ABSENT, "planner: a strategy of %lld stages is several programs: ax_planner_stage makes them",
                    (long long)strategy->stages);
  ax_status status = ax_model_make(program, options, &model);
  if (status == AX_OK) status = check_batch(&model, microbatches_of(strategy));
  if (status == AX_OK) status = ax_model_step(&model, microbatches_of(strategy), strategy->saved, &step);
  if (status == AX_OK) status = ax_program_with_shardings(step, &strategy->mesh, specs_of(strategy), out);
  ax_program_release(step);
  ax_model_deinit(&model);
  return status;
}
