#include <math.h>
#include <stdio.h>
#include <string.h>

#include "control/scan.h"
#include "partition/partition.h"
#include "planner/ahead.h"
#include "prim/prims.h"
#include "sim/cluster.h"
#include "sim/place.h"

/* --- The planner --- */

enum { most_devices = 1 << 20 };

/* Seconds of the products and convolutions of a program, on one device that does nothing else. */
static ax_status products(const ax_cluster *machine, const ax_program *program, double times, double *seconds) {
  const ax_program *held;
  for (uint32_t e = 0; e < program->eqn_count; e++) {
    const ax_eqn *eqn = &program->eqns[e];
    double flops = 0, within = times;
    if (eqn->prim == &ax_prim_dot_general || eqn->prim == &ax_prim_conv_general_dilated) {
      AX_TRY(ax_equation_flops(program, eqn, &flops));
      *seconds += times * flops / ax_cluster_flops(machine, program->types[eqn->in[0]].dtype);
    }
    if (eqn->prim == &ax_prim_scan) within *= (double)((const ax_scan_params *)eqn->params)->length;
    for (uint32_t k = 0; (held = ax_eqn_program(eqn, k)) != NULL; k++) AX_TRY(products(machine, held, within, seconds));
  }
  return AX_OK;
}

/* The machine has so many. */
static ax_status check_devices(const ax_cluster *machine, int64_t devices) {
  const ax_mesh mesh = {.count = 1, .axis = {{.name = "all", .size = devices}}};
  ax_sim_place place;
  return ax_sim_place_make(machine, &mesh, &place);
}

ax_status ax_planner_begin(const ax_program *program, const ax_cluster *machine, const ax_planner_options *options, ax_planner *p) {
  ax_program *step;
  *p = (ax_planner){.machine = machine, .options = *options, .devices = options->devices, .began = ax_seconds(), .work = INFINITY};
  if (options->devices < 1 || options->devices > most_devices)
    return ax_error(AX_INVALID_ARGUMENT, "planner: %lld devices; there may be 1 to %d", (long long)options->devices, most_devices);
  p->end = p->began + (options->seconds > 0 ? options->seconds : 60);
  AX_TRY(check_devices(machine, options->devices));
  p->capacity = options->memory > 0 ? options->memory : machine->capacity > 0 ? machine->capacity : INFINITY;
  AX_TRY(ax_model_make(program, options, &p->model));
  AX_TRY(ax_families_make(&p->model, &p->families));
  AX_TRY(ax_runtime_create(&(ax_runtime_options){.workers = 1}, &p->runtime));
  AX_TRY(ax_ahead_create(&p->ahead));
  AX_TRY(ax_kept_times_create(&p->times));
  AX_TRY(ax_ahead_step(p, 1, AX_SAVE_EVERYTHING, &step));
  AX_TRY(products(machine, step, 1 / (double)options->devices, &p->ideal));
  return AX_OK;
}

void ax_planner_forget_ways(ax_planner *p) {
  ax_arrangement_deinit(&p->tensor);
  ax_arrangement_deinit(&p->expert);
  ax_arrangement_deinit(&p->sequence);
}

void ax_planner_end(ax_planner *p) {
  ax_ahead_destroy(p->ahead);
  for (uint32_t i = 0; i < p->found_count; i++) ax_candidate_deinit(&p->found[i]);
  for (uint32_t i = 0; i < p->settled_count; i++) ax_candidate_deinit(&p->settled[i]);
  ax_free(p->found);
  ax_free(p->settled);
  ax_planner_forget_ways(p);
  ax_families_deinit(&p->families);
  ax_model_deinit(&p->model);
  ax_runtime_release(p->runtime);
  ax_kept_times_destroy(p->times);
  *p = (ax_planner){0};
}

/* A trial that would go on behind the end is not begun. The best is timed exactly at last, for which there is time left before
   that. */
bool ax_planner_is_late(ax_planner *p, double share) {
  const double now = ax_seconds(), left = p->end - now - (share < 1 ? 2 : 1) * ax_ahead_longest(p);
  const bool late = now > p->began + share * (p->end - p->began) || left < 0 || (p->is_view && !ax_ahead_is_wanted(p));
  p->cut_short = p->cut_short || late;
  return late;
}

/* --- Candidates --- */

ax_status ax_candidate_copy(const ax_planner *p, const ax_candidate *from, ax_candidate *out) {
  *out = *from;
  out->layout = (ax_arrangement){0};
  return ax_arrangement_copy(&from->layout, &p->families, &out->layout);
}

void ax_candidate_deinit(ax_candidate *c) { ax_arrangement_deinit(&c->layout); }

/* What a trial depends on. Axes are told apart by their order, not by their names: two of one size may change places, and what they
   are called does not count. Axes of one device do not count either. */
static ax_status find_hash(const ax_planner *p, const ax_candidate *c, bool exact, uint64_t *out) {
  ax_text specs = {0};
  ax_mesh mesh = c->mesh;
  uint64_t hash = AX_HASH_SEED;
  char next = 'a';
  for (uint32_t a = 0; a < mesh.count; a++) {
    if (mesh.axis[a].size == 1) continue;
    mesh.axis[a].name[0] = next++;
    mesh.axis[a].name[1] = '\0';
    hash = ax_hash_word(hash, (uint64_t)mesh.axis[a].size);
  }
  ax_arrangement_specs(&c->layout, &p->model, &p->families, &mesh, &specs);
  hash = ax_hash_bytes(hash, specs.data, specs.length);
  hash = ax_hash_word(hash, (uint64_t)c->microbatches);
  *out = ax_hash_word(hash, (uint64_t)c->saved * 2 + exact);
  const ax_status status = specs.failed ? ax_out_of_memory(specs.length) : AX_OK;
  ax_text_deinit(&specs);
  return status;
}

static ax_status run(ax_planner *p, const ax_candidate *c, const char *specs, bool exact, ax_trial *out) {
  ax_program *step;
  AX_TRY(ax_ahead_step(p, c->microbatches, c->saved, &step));
  const uint32_t donated = p->model.train ? p->model.param_count + p->model.state_count : 0;
  const bool may_end = p->is_view || p->found_count + p->settled_count > 0; /* something is there to be given */
  const ax_trial_options options = {p->machine, p->runtime, p->times, AX_FIRST(donated), p->capacity, exact, may_end ? p->end : 0};
  return ax_trial_run(step, &c->mesh, specs, &options, out);
}

/* What the partitioner or the simulator cannot do is no candidate, and neither is what would take more memory than any machine has. */
static ax_status run_and_note(ax_planner *p, ax_candidate *c, uint64_t hash, bool exact, bool *possible) {
  const ax_trial before = c->trial;
  const double began = ax_seconds();
  ax_text specs = {0};
  ax_arrangement_specs(&c->layout, &p->model, &p->families, &c->mesh, &specs);
  const ax_status status = specs.failed ? ax_out_of_memory(specs.length) : run(p, c, specs.data, exact, &c->trial);
  ax_text_deinit(&specs);
  ax_ahead_note_longest(p, ax_seconds() - began);
  *possible = status == AX_OK;
  ax_ahead_note(p, hash, status, &c->trial);
  if (status == AX_UNAVAILABLE) { /* what was known of it before stays */
    c->trial = before;
    p->cut_short = true;
    return AX_OK;
  }
  if (status != AX_OK && p->why[0] == '\0') snprintf(p->why, sizeof p->why, "%s", ax_message());
  if (status != AX_OK) c->trial = (ax_trial){.seconds = INFINITY};
  return status == AX_INTERNAL ? status : AX_OK;
}

ax_status ax_candidate_try(ax_planner *p, ax_candidate *c, bool exact, bool *possible) {
  uint64_t hash;
  ax_status status = AX_OK;
  *possible = false;
  if (!ax_arrangement_fit(&c->layout, &p->model, &p->families, &c->mesh, c->microbatches)) return AX_OK;
  AX_TRY(find_hash(p, c, exact, &hash));
  if (ax_ahead_ask(p, hash, &c->trial)) *possible = c->trial.bytes > 0;
  else status = run_and_note(p, c, hash, exact, possible);
  ax_arrangement_memory(&c->layout, &p->model, &p->families, &c->mesh, &c->memory);
  c->memory.total = c->trial.bytes;
  if (*possible && !exact && isfinite(c->trial.seconds))
    p->work = fmin(p->work, (c->trial.computing - c->trial.launching) * (double)ax_mesh_devices(&c->mesh));
  c->memory.temporaries = c->trial.bytes - c->memory.parameters - c->memory.state - c->memory.batch;
  return status;
}

bool ax_candidate_is_better(const ax_planner *p, const ax_candidate *a, const ax_candidate *b) {
  const bool a_fits = a->trial.bytes <= p->capacity, b_fits = b->trial.bytes <= p->capacity;
  if (a_fits != b_fits) return a_fits;
  if (!a_fits) return a->trial.bytes < b->trial.bytes;
  if (a->exact != b->exact) return a->exact;
  if (a->trial.seconds != b->trial.seconds) return a->trial.seconds < b->trial.seconds;
  return a->trial.bytes < b->trial.bytes;
}

int64_t ax_candidate_devices(const ax_candidate *c) { return ax_mesh_devices(&c->mesh) * c->stages; }

void ax_candidates_sort(const ax_planner *p, ax_candidate *list, uint32_t count) {
  for (uint32_t i = 1; i < count; i++)
    for (uint32_t k = i; k > 0 && ax_candidate_is_better(p, &list[k], &list[k - 1]); k--) {
      const ax_candidate swapped = list[k];
      list[k] = list[k - 1];
      list[k - 1] = swapped;
    }
}

bool ax_planner_is_hopeless(const ax_planner *p, double seconds, double times) {
  for (uint32_t i = 0; i < p->found_count; i++)
    if (p->found[i].trial.bytes <= p->capacity && p->found[i].trial.seconds * times < seconds) return true;
  return p->is_view && ax_ahead_best(p) * times < seconds;
}

/* The sizes of axes of several devices, in a row; 0 behind. */
static void sizes_of(const ax_candidate *c, int64_t sizes[AX_PLANNER_AXES]) {
  uint32_t count = 0;
  memset(sizes, 0, AX_PLANNER_AXES * sizeof sizes[0]);
  for (uint32_t i = 0; i < c->mesh.count; i++)
    if (c->mesh.axis[i].size > 1) sizes[count++] = c->mesh.axis[i].size;
}

bool ax_candidate_is_alike(const ax_candidate *a, const ax_candidate *b) {
  int64_t sizes[2][AX_PLANNER_AXES];
  sizes_of(a, sizes[0]);
  sizes_of(b, sizes[1]);
  return a->stages == b->stages && a->schedule == b->schedule && memcmp(sizes[0], sizes[1], sizeof sizes[0]) == 0;
}

bool ax_candidate_is_named_alike(const ax_candidate *a, const ax_candidate *b) {
  if (!ax_candidate_is_alike(a, b) || a->mesh.count != b->mesh.count) return false;
  for (uint32_t i = 0; i < a->mesh.count; i++)
    if (strcmp(a->mesh.axis[i].name, b->mesh.axis[i].name) != 0) return false;
  return true;
}

/* Whether one of them is enough. Of a mesh that is given each layout is kept, and timed exactly at the end. */
static bool is_one_enough(const ax_planner *p, const ax_candidate *a, const ax_candidate *b) {
  if (p->options.mesh != NULL && a->stages == 1)
    return a->saved == b->saved && a->microbatches == b->microbatches && ax_arrangement_equal(&a->layout, &b->layout, &p->families);
  return a->layout.state_cut == b->layout.state_cut && a->layout.gathered == b->layout.gathered;
}

ax_status ax_planner_keep(ax_planner *p, const ax_candidate *c) {
  if (c->trial.bytes <= p->capacity) ax_ahead_note_best(p, c->trial.seconds);
  for (uint32_t i = 0; i < p->found_count; i++) {
    if (!ax_candidate_is_named_alike(&p->found[i], c) || !is_one_enough(p, &p->found[i], c)) continue;
    if (!ax_candidate_is_better(p, c, &p->found[i])) return AX_OK;
    ax_candidate_deinit(&p->found[i]);
    return ax_candidate_copy(p, c, &p->found[i]);
  }
  AX_TRY(ax_grow(&p->found, sizeof p->found[0], p->found_count, 1, &p->found_capacity));
  AX_TRY(ax_candidate_copy(p, c, &p->found[p->found_count]));
  p->found_count++;
  return AX_OK;
}
