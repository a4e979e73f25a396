/* Candidates of one stage.

   First the ways in which a second axis can help are found, each once, on a mesh of its own: a layout of parameters is improved step by
   step, from one in which the axis cuts nothing but a part of the batch. A way is tensor parallelism if the axis cuts parameters alone,
   expert parallelism if it cuts the samples too, and sequence parallelism if it cuts the first dimension of a sample.

   Then each mesh of two axes is tried with each of these ways; with parameters whole along the axes of samples, or cut (fully
   sharded), or only the optimizer's state cut; and with as few microbatches as memory allows, for each checkpoint policy.

   The best of these are improved step by step, over all groups of parameters and all axes. */
#include <math.h>
#include <string.h>

#include "planner/search.h"

enum { most_rounds = 3, improved_at_last = 4, axis_samples = 0, axis_second = 1 };
static const double share_of_meshes = 0.55, share_of_pipelines = 0.75; /* of the time */

typedef enum sharing { SHARING_NOTHING, SHARING_STATE, SHARING_PARAMETERS, SHARING_COUNT } sharing; /* over the axes of samples */

typedef struct way { /* what the second axis does */
  const char *names[SHARING_COUNT];
  bool there;
  ax_layout layout;
} way;

enum { WAY_NOTHING, WAY_TENSOR, WAY_EXPERT, WAY_SEQUENCE, WAY_COUNT };

static const char *const second_names[WAY_COUNT] = {"model", "model", "expert", "sequence"};
static const char *const way_names[WAY_COUNT][SHARING_COUNT] = {
    {"data parallel", "data parallel, state sharded", "fully sharded"},
    {"tensor parallel", "tensor parallel, state sharded", "tensor parallel, fully sharded"},
    {"expert parallel", "expert parallel, state sharded", "expert parallel, fully sharded"},
    {"sequence parallel", "sequence parallel, state sharded", "sequence parallel, fully sharded"},
};

static void mesh_of(int64_t samples, int64_t second, const char *name, ax_mesh *out) {
  *out = (ax_mesh){.count = second > 1 ? 2 : 1};
  strcpy(out->axis[0].name, "data");
  out->axis[0].size = samples;
  if (second > 1) strcpy(out->axis[1].name, name);
  out->axis[1].size = second > 1 ? second : 0;
}

/* --- Step by step --- */

/* Tries one change of a copy, and keeps it in *c if it is better. */
static ax_status change(ax_planner *p, ax_candidate *c, int8_t *(*place)(ax_candidate *, uint32_t, uint32_t), uint32_t group, uint32_t axis,
                        int dim, bool *better) {
  ax_candidate next;
  bool possible;
  AX_TRY(ax_candidate_copy(p, c, &next));
  *place(&next, group, axis) = (int8_t)dim;
  ax_status status = ax_candidate_try(p, &next, false, &possible);
  if (status == AX_OK && possible && ax_candidate_is_better(p, &next, c)) {
    ax_candidate_deinit(c);
    *c = next;
    *better = true;
    return AX_OK;
  }
  ax_candidate_deinit(&next);
  return status;
}

static int8_t *place_of_group(ax_candidate *c, uint32_t group, uint32_t axis) { return &c->layout.group[group].axis[axis]; }

static ax_status improve_groups(ax_planner *p, ax_candidate *c, uint32_t first_axis, double share, bool *better) {
  for (uint32_t g = 0; g < p->groups.count; g++)
    for (uint32_t axis = first_axis; axis < c->mesh.count; axis++)
      for (int d = AX_WHOLE; d < (int)p->groups.list[g].type.rank; d++) {
        if (d == *place_of_group(c, g, axis) || (d == 0 && p->groups.list[g].layered)) continue;
        if (ax_planner_is_late(p, share)) return AX_OK;
        AX_TRY(change(p, c, place_of_group, g, axis, d, better));
      }
  return AX_OK;
}

static ax_status improve(ax_planner *p, ax_candidate *c, uint32_t first_axis, double share) {
  bool better = true;
  for (int round = 0; round < most_rounds && better; round++) {
    better = false;
    AX_TRY(improve_groups(p, c, first_axis, share, &better));
  }
  return AX_OK;
}

/* --- Ways --- */

static int64_t gcd(int64_t a, int64_t b) { return b == 0 ? a : gcd(b, a % b); }

/* The size of the second axis on which ways are found: about 8, and no more than half of the devices. */
static int64_t size_of_proxy(const ax_planner *p) {
  const int64_t devices = p->options.devices;
  int64_t best = 1;
  for (int64_t size = 2; size <= devices && size <= 8; size++)
    if (devices % size == 0) best = size;
  return best;
}

static ax_status find_way(ax_planner *p, int which, way *way) {
  const int64_t second = size_of_proxy(p);
  const int64_t samples = p->model.train ? gcd(p->options.devices / second, p->model.samples) : p->options.devices / second;
  const double capacity = p->capacity;
  ax_candidate c = {.saved = AX_SAVE_NOTHING, .microbatches = 1, .stages = 1, .chunks = 1};
  bool possible;
  if (second < 2 || (which != WAY_TENSOR && !p->model.train)) return AX_OK;
  mesh_of(samples, second, second_names[which], &c.mesh);
  AX_TRY(ax_layout_whole(&p->groups, &c.layout));
  c.layout.batch.axis[axis_samples] = 0;
  if (which == WAY_EXPERT) c.layout.batch.axis[axis_second] = 0;
  if (which == WAY_SEQUENCE) c.layout.batch.axis[axis_second] = 1;
  p->capacity = INFINITY; /* what helps is asked, not what fits */
  ax_status status = ax_candidate_try(p, &c, false, &possible);
  if (status == AX_OK && possible) status = improve(p, &c, axis_second, share_of_meshes / 2);
  p->capacity = capacity;
  way->there = status == AX_OK && possible;
  if (way->there) way->layout = c.layout;
  else ax_candidate_deinit(&c);
  return status;
}

/* --- Meshes --- */

/* The least number of microbatches, a power of 2, with which the candidate fits; it is tried with that. What is known of more and of
   fewer tells where to look: what a microbatch takes falls with their number, the rest stays. */
static ax_status fit_microbatches(ax_planner *p, ax_candidate *c, bool *fits) {
  double fixed = 0, one = 0;
  bool possible = true;
  *fits = false;
  for (c->microbatches = 1; p->model.samples % c->microbatches == 0 && c->microbatches <= p->model.samples; c->microbatches *= 2) {
    if (c->microbatches > 1 && (fixed > p->capacity || fixed + one / (double)c->microbatches > 1.1 * p->capacity)) continue;
    AX_TRY(ax_candidate_try(p, c, false, &possible));
    if (!possible) return AX_OK;
    *fits = c->trial.bytes <= p->capacity;
    if (*fits || !p->model.train) return AX_OK;
    fixed = c->memory.parameters + c->memory.state + c->memory.batch;
    one = (c->trial.bytes - fixed) * (double)c->microbatches;
    if (fixed + c->memory.parameters > p->capacity) return AX_OK; /* gradients are as large as parameters */
  }
  return AX_OK;
}

/* Keeps it with each checkpoint policy; one that keeps less is tried if one that keeps more needs microbatches, or does not fit. */
static ax_status try_policies(ax_planner *p, ax_candidate *c) {
  for (int saved = 0; saved < AX_CHECKPOINT_POLICY_COUNT; saved++) {
    bool fits;
    c->saved = (ax_checkpoint_policy)saved;
    AX_TRY(fit_microbatches(p, c, &fits));
    if (c->trial.bytes > 0) AX_TRY(ax_planner_keep(p, c));
    if ((fits && c->microbatches == 1) || !p->model.train) return AX_OK;
  }
  return AX_OK;
}

static ax_status try_mesh(ax_planner *p, int64_t samples, int64_t second, const way *way, int which) {
  for (int sharing = 0; sharing < (p->model.train ? SHARING_COUNT : 1); sharing++) {
    ax_candidate c = {.stages = 1, .chunks = 1, .kind = way_names[which][sharing]};
    if (ax_planner_is_late(p, share_of_meshes)) return AX_OK;
    mesh_of(samples, second, second_names[which], &c.mesh);
    AX_TRY(ax_layout_copy(&way->layout, &p->groups, &c.layout));
    c.layout.state_cut = sharing == SHARING_STATE;
    if (sharing == SHARING_PARAMETERS)
      for (uint32_t a = 0; a < c.mesh.count; a++)
        if (a == axis_samples || which != WAY_TENSOR) ax_layout_shard(&c.layout, &p->groups, &c.mesh, a);
    const ax_status status = try_policies(p, &c);
    ax_candidate_deinit(&c);
    AX_TRY(status);
  }
  return AX_OK;
}

static ax_status try_meshes(ax_planner *p, const way *ways) {
  for (int64_t second = 1; second <= p->options.devices; second++) {
    const int64_t samples = p->options.devices / second;
    if (samples * second != p->options.devices) continue;
    for (int which = 0; which < WAY_COUNT; which++)
      if (ways[which].there && (which == WAY_NOTHING) == (second == 1)) AX_TRY(try_mesh(p, samples, second, &ways[which], which));
  }
  return AX_OK;
}

/* --- All of it --- */

static int by_merit(const ax_planner *p, uint32_t a, uint32_t b) { return ax_candidate_is_better(p, &p->found[a], &p->found[b]); }

/* Improves the best that are found. */
static ax_status improve_best(ax_planner *p) {
  const uint32_t count = p->found_count;
  bool *done = ax_calloc((size_t)count + 1, sizeof done[0]);
  ax_status status = done != NULL ? AX_OK : ax_out_of_memory(count);
  for (int n = 0; status == AX_OK && n < improved_at_last; n++) {
    uint32_t best = AX_NONE;
    ax_candidate c;
    for (uint32_t i = 0; i < count; i++)
      if (!done[i] && p->found[i].stages == 1 && (best == AX_NONE || by_merit(p, i, best))) best = i;
    if (best == AX_NONE) break;
    done[best] = true;
    status = ax_candidate_copy(p, &p->found[best], &c);
    if (status != AX_OK) break;
    status = improve(p, &c, 0, share_of_pipelines);
    if (status == AX_OK) status = ax_planner_keep(p, &c);
    ax_candidate_deinit(&c);
  }
  ax_free(done);
  return status;
}

ax_status ax_planner_search_meshes(ax_planner *p) {
  way ways[WAY_COUNT] = {0};
  ax_status status = ax_layout_whole(&p->groups, &ways[WAY_NOTHING].layout);
  ways[WAY_NOTHING].there = status == AX_OK;
  ways[WAY_NOTHING].layout.batch.axis[axis_samples] = 0;
  for (int which = WAY_TENSOR; which < WAY_COUNT && status == AX_OK; which++) status = find_way(p, which, &ways[which]);
  if (status == AX_OK && ways[WAY_TENSOR].there) status = ax_layout_copy(&ways[WAY_TENSOR].layout, &p->groups, &p->tensor);
  if (status == AX_OK) status = try_meshes(p, ways);
  if (status == AX_OK) status = improve_best(p);
  for (int which = 0; which < WAY_COUNT; which++) ax_layout_deinit(&ways[which].layout);
  return status;
}
