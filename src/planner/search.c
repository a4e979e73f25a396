/* Candidates of one stage.

   First the ways in which a second axis can help are found, each once, on a mesh of its own: a layout of parameters is improved
   step by step, from one in which the axis cuts nothing but a part of the batch. A way is tensor parallelism if the axis cuts
   parameters alone, expert parallelism if it cuts the samples too, and sequence parallelism if it cuts the first dimension of a
   sample.

   Then each mesh of two axes is tried with each of these ways; with parameters whole along the axes of samples, or cut (fully
   sharded; gathered where they are used, or not), or only the optimizer's state cut; and with as few microbatches as memory allows,
   for each checkpoint policy. A second axis that cuts samples and all parameters, which are gathered, shards over groups of
   devices.

   Then meshes of three axes, in which the third one does what tensor parallelism does, of the sizes at which that was best.

   The best of these are improved step by step (improve.c), over all families of parameters and all axes. */
#include <math.h>
#include <string.h>

#include "planner/ahead.h"

enum {
  improved_at_last = 8,
  improved_of_gathered = 4,
  improved_of_given = 8,
  most_second = 64,
  most_models = 3,
  axis_samples = 0,
  axis_second = 1
};
static const double share_of_first = 0.25, share_of_meshes = 0.55, share_of_pipelines = 0.75; /* of the time */
static const double worth_sharing = 1.5; /* times the best: what is held otherwise does not make more of a difference */

/* Over the axes of samples: the optimizer's state; parameters, gathered where they are used; parameters, where it is cheaper to
   move activations. */
typedef enum sharing { SHARING_NOTHING, SHARING_STATE, SHARING_GATHERED, SHARING_PARAMETERS, SHARING_COUNT } sharing;

typedef struct way { /* what the second axis does */
  bool there;
  int names; /* which name the axis has, below */
  ax_arrangement layout;
} way;

/* WAY_SHARD cuts samples, and all parameters as they come, which are gathered where they are used. That needs no search. */
enum { WAY_NOTHING, WAY_SHARD, WAY_TENSOR, WAY_EXPERT, WAY_SEQUENCE, WAY_COUNT };

static const char *const names_of_axis[WAY_COUNT] = {"model", "shard", "model", "expert", "sequence"};
static void mesh_of(int64_t samples, int64_t second, const char *name, ax_mesh *out) {
  *out = (ax_mesh){.count = second > 1 ? 2 : 1};
  strcpy(out->axis[0].name, "data");
  out->axis[0].size = samples;
  if (second > 1) strcpy(out->axis[1].name, name);
  out->axis[1].size = second > 1 ? second : 0;
}

/* --- Ways --- */

static int64_t gcd(int64_t a, int64_t b) { return b == 0 ? a : gcd(b, a % b); }

/* Whether an axis of that size can do what the way is of: cut the positions of all samples, or all experts. */
static bool can_cut(const ax_planner *p, int which, int64_t size) {
  for (uint32_t b = 0; which == WAY_SEQUENCE && b < p->model.batch_count; b++) {
    const ax_type *sample = &p->model.program->types[p->model.batch[b]];
    if (sample->rank > 0 && sample->dims[0] % size != 0) return false;
  }
  for (uint32_t g = 0; which == WAY_EXPERT && g < p->families.count; g++) {
    const ax_family *family = &p->families.list[g];
    if (family->experts >= 0 && family->type.dims[family->experts] % size != 0) return false;
  }
  return true;
}

/* The size of the second axis on which ways are found: about 8, no more than half of the devices, and one that can cut so, if there
   is one. */
static int64_t size_of_proxy(const ax_planner *p, int which) {
  const int64_t devices = p->devices;
  int64_t any = 1, able = 1;
  for (int64_t size = 2; size <= devices && size <= 8; size++) {
    if (devices % size != 0) continue;
    if (2 * size <= devices || any == 1) any = size;
    if ((2 * size <= devices || able == 1) && can_cut(p, which, size)) able = size;
  }
  return able > 1 ? able : any;
}

static bool cuts_experts(const ax_planner *p, const way *way) {
  for (uint32_t g = 0; way->there && g < p->families.count; g++) {
    const int experts = p->families.list[g].experts;
    if (experts >= 0 && way->layout.family[g].axis[axis_second] == experts) return true;
  }
  return false;
}

/* Cuts the experts, if there are any. */
static bool cut_experts(const ax_planner *p, ax_arrangement *layout) {
  bool any = false;
  for (uint32_t g = 0; g < p->families.count; g++) {
    const int8_t experts = p->families.list[g].experts;
    if (experts < 0) continue;
    layout->family[g].axis[axis_second] = experts;
    any = true;
  }
  return any;
}

static void cut_batch(int which, ax_arrangement *layout) {
  layout->batch.axis[axis_samples] = 0;
  if (which == WAY_EXPERT || which == WAY_SHARD) layout->batch.axis[axis_second] = 0;
  if (which == WAY_SEQUENCE) layout->batch.axis[axis_second] = 1;
}

static ax_status find_way(ax_planner *p, int which, way *way) {
  const int64_t second = size_of_proxy(p, which);
  const int64_t left = p->devices / second, each = which == WAY_EXPERT ? p->model.samples / second : p->model.samples;
  const int64_t samples = p->model.train ? gcd(left, each) : left;
  const double capacity = p->capacity;
  ax_candidate c = {.saved = AX_SAVE_NOTHING, .microbatches = 1, .stages = 1, .chunks = 1};
  bool possible;
  if (second < 2 || samples < 1 || (which != WAY_TENSOR && !p->model.train)) return AX_OK;
  if (p->found_count > 0 && ax_planner_is_late(p, share_of_meshes)) return AX_OK;
  mesh_of(samples, second, names_of_axis[which], &c.mesh);
  AX_TRY(ax_arrangement_whole(&p->families, &c.layout));
  cut_batch(which, &c.layout);
  if (which == WAY_EXPERT) (void)cut_experts(p, &c.layout); /* where the search begins: with that alone */
  p->capacity = INFINITY; /* what helps is asked, not what fits */
  ax_status status = ax_candidate_try(p, &c, false, &possible);
  if (status == AX_OK && possible) status = ax_candidate_improve(p, &c, axis_second, false, share_of_meshes / 2);
  p->capacity = capacity;
  way->there = status == AX_OK && possible;
  if (way->there) way->layout = c.layout;
  if (way->there) cut_batch(which, &way->layout); /* on this mesh the first axis may be of size 1, which cuts nothing */
  else ax_candidate_deinit(&c);
  way->names = which == WAY_EXPERT && !cuts_experts(p, way) ? WAY_SHARD : which;
  return status;
}

static ax_status find_way_ahead(ax_planner *p, ax_candidate *none, int which) {
  way found = {0};
  (void)none;
  const ax_status status = find_way(p, which, &found);
  ax_arrangement_deinit(&found.layout);
  return status;
}

/* --- Meshes --- */

/* The least number of microbatches, a power of 2, with which the candidate fits; it is tried with that. What is known of more and
   of fewer tells where to look: what a microbatch takes falls with their number, the rest stays. */
static ax_status fit_microbatches(ax_planner *p, ax_candidate *c, bool *fits) {
  double fixed = 0, one = 0;
  int64_t tried = 1;
  bool possible = true;
  ax_trial last = {.seconds = INFINITY};
  *fits = false;
  for (c->microbatches = 1; p->model.samples % c->microbatches == 0 && c->microbatches <= p->model.samples; c->microbatches *= 2) {
    if (c->microbatches > 1 && (fixed > p->capacity || fixed + one / (double)c->microbatches > 1.1 * p->capacity)) continue;
    if (c->microbatches > 1 && ax_planner_is_late(p, share_of_meshes)) break;
    AX_TRY(ax_candidate_try(p, c, false, &possible));
    if (!possible) break;
    tried = c->microbatches;
    last = c->trial;
    *fits = c->trial.bytes <= p->capacity;
    if (*fits || !p->model.train) return AX_OK;
    fixed = c->memory.parameters + c->memory.state + c->memory.batch;
    one = (c->trial.bytes - fixed) * (double)c->microbatches;
    if (fixed + c->memory.parameters > p->capacity) return AX_OK; /* gradients are as large as parameters */
  }
  c->microbatches = tried;
  c->trial = last;
  return AX_OK;
}

static bool fits_anything(const ax_planner *p) {
  for (uint32_t i = 0; i < p->found_count; i++)
    if (p->found[i].trial.bytes <= p->capacity) return true;
  return p->is_view && isfinite(ax_ahead_best(p));
}

/* Keeps it with each checkpoint policy; one that keeps less is tried if one that keeps more needs microbatches, or does not fit,
   as long as there is time. Where what is held alone does not fit, no policy is of use; what comes nearest is only of interest
   where nothing else fits. */
static ax_status try_policies(ax_planner *p, ax_candidate *c) {
  for (int saved = 0; saved < AX_CHECKPOINT_POLICY_COUNT; saved++) {
    bool fits;
    if (saved > 0 && ax_planner_is_late(p, share_of_meshes)) return AX_OK;
    c->saved = (ax_checkpoint_policy)saved;
    AX_TRY(fit_microbatches(p, c, &fits));
    if (c->trial.bytes > 0) AX_TRY(ax_planner_keep(p, c));
    if ((fits && c->microbatches == 1) || !p->model.train) return AX_OK;
    if (!fits && c->memory.parameters + c->memory.state + c->memory.batch > p->capacity && fits_anything(p)) return AX_OK;
  }
  return AX_OK;
}

ax_status ax_planner_try_sharings(ax_planner *p, const ax_mesh *mesh, const ax_arrangement *layout, uint32_t shards) {
  for (int sharing = 0; sharing < (!p->model.train ? 1 : shards != 0 ? SHARING_GATHERED : SHARING_COUNT); sharing++) {
    ax_candidate c = {.mesh = *mesh, .stages = 1, .chunks = 1};
    if (ax_planner_is_late(p, share_of_meshes)) return AX_OK;
    AX_TRY(ax_arrangement_copy(layout, &p->families, &c.layout));
    c.layout.state_cut = sharing == SHARING_STATE;
    c.layout.gathered = shards != 0 || sharing == SHARING_GATHERED;
    for (uint32_t a = 0; a < mesh->count; a++)
      if ((shards >> a & 1) != 0 || (sharing >= SHARING_GATHERED && layout->batch.axis[a] >= 0))
        ax_arrangement_shard(&c.layout, &p->families, mesh, a);
    const ax_status status = try_policies(p, &c);
    const bool hopeless = isfinite(c.trial.seconds) && ax_planner_is_hopeless(p, c.trial.seconds, worth_sharing);
    ax_candidate_deinit(&c);
    AX_TRY(status);
    if (hopeless) return AX_OK;
  }
  return AX_OK;
}

/* Each device does all. Where links are slow, or the model small, nothing is faster, and whoever asks should hear that. */
static ax_status try_uncut(ax_planner *p) {
  ax_candidate c = {.stages = 1, .chunks = 1};
  mesh_of(p->devices, 1, NULL, &c.mesh);
  AX_TRY(ax_arrangement_whole(&p->families, &c.layout));
  const ax_status status = try_policies(p, &c);
  ax_candidate_deinit(&c);
  return status;
}

/* A job of ahead.h: its candidate has the mesh and the layout alone. */
static ax_status try_sharings_ahead(ax_planner *p, ax_candidate *c, int shards) {
  return ax_planner_try_sharings(p, &c->mesh, &c->layout, (uint32_t)shards);
}

/* Tries a mesh, or offers to do so ahead. */
static ax_status try_or_offer(ax_planner *p, ax_mesh *mesh, ax_arrangement *layout, bool second_shards, bool offer) {
  const uint32_t shards = second_shards ? 1u << axis_second : 0;
  if (!offer) return ax_planner_try_sharings(p, mesh, layout, shards);
  ax_ahead_offer(p, try_sharings_ahead, &(ax_candidate){.mesh = *mesh, .layout = *layout}, (int)shards);
  return AX_OK;
}

static ax_status go_through_two(ax_planner *p, way *ways, int first, int behind, bool offer) {
  ax_mesh mesh;
  for (int64_t second = 1; second <= p->devices; second++) {
    const int64_t samples = p->devices / second;
    if (samples * second != p->devices) continue;
    for (int which = first; which < behind; which++) {
      if (!ways[which].there || (which == WAY_NOTHING) != (second == 1)) continue;
      mesh_of(samples, second, names_of_axis[ways[which].names], &mesh);
      AX_TRY(try_or_offer(p, &mesh, &ways[which].layout, which == WAY_SHARD, offer));
    }
  }
  return AX_OK;
}

/* Tries meshes of two axes with the ways from `first` to before `behind`. */
static ax_status try_two(ax_planner *p, way *ways, int first, int behind) {
  AX_TRY(go_through_two(p, ways, first, behind, true));
  return go_through_two(p, ways, first, behind, false);
}

/* --- Meshes of three axes: samples, experts or sequences, and parameters --- */

/* Of the sizes of a tensor-parallel axis that are not among the first `count` of `met` the one with the best candidate; 0: none. */
static int64_t next_size(const ax_planner *p, const int64_t *met, int count) {
  uint32_t best = AX_NONE;
  for (uint32_t i = 0; i < p->found_count; i++) {
    const ax_candidate *c = &p->found[i];
    bool is_met = c->mesh.count != 2 || strcmp(c->mesh.axis[1].name, "model") != 0;
    for (int n = 0; n < count && !is_met; n++) is_met = met[n] == c->mesh.axis[1].size;
    if (!is_met && (best == AX_NONE || ax_candidate_is_better(p, c, &p->found[best]))) best = i;
  }
  return best != AX_NONE ? p->found[best].mesh.axis[1].size : 0;
}

/* What a way's second axis cuts of parameters, that axis cuts. */
static void cut_as(const ax_planner *p, const ax_arrangement *way, uint32_t axis, ax_arrangement *out) {
  for (uint32_t g = 0; way->family != NULL && g < p->families.count; g++)
    out->family[g].axis[axis] = way->family[g].axis[axis_second];
}

ax_status ax_planner_merge_ways(const ax_planner *p, const ax_arrangement *second, const ax_arrangement *third, ax_arrangement *out) {
  uint32_t next = axis_second + 1;
  AX_TRY(ax_arrangement_copy(second, &p->families, out));
  if (third != NULL) {
    cut_as(p, third, next, out);
    out->batch.axis[next++] = third->batch.axis[axis_second];
  }
  cut_as(p, &p->tensor, next, out);
  return AX_OK;
}

static ax_status try_third(ax_planner *p, const way *way, bool shards, int64_t model, bool offer) {
  ax_arrangement layout;
  AX_TRY(ax_planner_merge_ways(p, &way->layout, NULL, &layout));
  ax_status status = AX_OK;
  for (int64_t second = 2; second <= most_second && status == AX_OK; second++) {
    const int64_t samples = p->devices / model / second;
    ax_mesh mesh;
    if (samples < 2 || samples * second * model != p->devices) continue;
    mesh_of(samples, second, names_of_axis[way->names], &mesh);
    mesh.count = 3;
    strcpy(mesh.axis[2].name, "model");
    mesh.axis[2].size = model;
    status = try_or_offer(p, &mesh, &layout, shards, offer);
  }
  ax_arrangement_deinit(&layout);
  return status;
}

static ax_status go_through_three(ax_planner *p, const way *ways, int64_t model, bool offer) {
  for (int which = 0; which < WAY_COUNT; which++) {
    if (!ways[which].there || which == WAY_NOTHING || which == WAY_TENSOR) continue;
    if (which == WAY_EXPERT && !ax_arrangement_cuts(&ways[which].layout, &p->families, axis_second)) continue;
    AX_TRY(try_third(p, &ways[which], which == WAY_SHARD, model, offer));
  }
  return AX_OK;
}

static ax_status try_three(ax_planner *p, const way *ways) {
  int64_t models[most_models];
  if (p->tensor.family == NULL) return AX_OK;
  for (int n = 0; n < most_models; n++) {
    const int64_t model = models[n] = next_size(p, models, n);
    if (model == 0) return AX_OK;
    AX_TRY(go_through_three(p, ways, model, true));
    AX_TRY(go_through_three(p, ways, model, false));
  }
  return AX_OK;
}

/* --- All of it --- */

static void remove_axis(const ax_planner *p, ax_candidate *c, uint32_t axis) {
  for (; axis + 1 < c->mesh.count; axis++) ax_candidate_swap_axes(p, c, axis);
  c->mesh.count--;
  c->layout.batch.axis[c->mesh.count] = AX_WHOLE;
  for (uint32_t g = 0; g < p->families.count; g++) c->layout.family[g].axis[c->mesh.count] = AX_WHOLE;
}

/* Whether an axis and the next cut the same, and so are one. A mesh that is given stays as it is. */
static bool cut_alike(const ax_planner *p, const ax_candidate *c, uint32_t axis) {
  if (p->options.mesh != NULL || axis + 1 >= c->mesh.count || c->layout.batch.axis[axis] != c->layout.batch.axis[axis + 1])
    return false;
  for (uint32_t g = 0; g < p->families.count; g++)
    if (c->layout.family[g].axis[axis] != c->layout.family[g].axis[axis + 1]) return false;
  return true;
}

void ax_candidate_tidy(const ax_planner *p, ax_candidate *c) {
  for (uint32_t a = 0; a < c->mesh.count && c->mesh.count > 1;) {
    if (c->mesh.axis[a].size > 1 && !cut_alike(p, c, a)) {
      a++;
      continue;
    }
    if (c->mesh.axis[a].size > 1) c->mesh.axis[a + 1].size *= c->mesh.axis[a].size;
    remove_axis(p, c, a);
  }
  ax_arrangement_name_axes(&c->layout, &p->model, &p->families, &c->mesh);
}

/* The best of the first `count`, of those that gather or of the others, that is not done (NULL: none is). Of several that are
   named alike one is improved, since they would mostly come to the same; on a mesh that is given all are named alike. AX_NONE:
   there is none. */
static uint32_t next_best(const ax_planner *p, const bool *done, uint32_t count, bool gathered) {
  uint32_t best = AX_NONE;
  for (uint32_t i = 0; i < count; i++) {
    const ax_candidate *c = &p->found[i];
    bool met = c->stages > 1 || c->layout.gathered != gathered;
    for (uint32_t k = 0; k < count && !met && done != NULL; k++)
      met = done[k] && (p->options.mesh != NULL ? k == i : ax_candidate_is_named_alike(&p->found[k], c));
    if (!met && (best == AX_NONE || ax_candidate_is_better(p, c, &p->found[best]))) best = i;
  }
  return best;
}

/* Also a job of ahead.h. */
static ax_status improve(ax_planner *p, ax_candidate *c, int at_last) {
  return ax_candidate_improve(p, c, 0, at_last == 1, share_of_pipelines);
}

static ax_status improve_found(ax_planner *p, uint32_t which, bool at_last) {
  ax_candidate c;
  AX_TRY(ax_candidate_copy(p, &p->found[which], &c));
  ax_status status = improve(p, &c, at_last);
  if (status == AX_OK) ax_candidate_tidy(p, &c);
  if (status == AX_OK) status = ax_planner_keep(p, &c);
  ax_candidate_deinit(&c);
  return status;
}

/* Whether it is worth improving on fewer devices: it may become faster than what more devices do. In the tests' nets, on few
   devices, a candidate did that which took 1.6 times as long as the known one, and of large models, whose trials are dear, none
   that took twice. A program that is not trained has no samples that are cut anyway: one of two products became 5 times as fast. */
static bool may_lead(const ax_planner *p, const ax_candidate *c) {
  enum { few_devices = 64 };
  const double times = !p->model.train ? 20 : p->options.devices <= few_devices && !ax_planner_is_between(p) ? 5 : 2;
  return p->devices == p->options.devices || c->trial.seconds < times * ax_planner_known_seconds(p);
}

/* Improves the best of what is found, of those that gather and of the others; or offers to do so ahead, as if that changed nothing
   of which are the best. done: room for as many as there are. */
static ax_status improve_each(ax_planner *p, bool *done, uint32_t count, bool offer) {
  for (int gathered = 0; gathered < 2; gathered++) {
    const int most = p->options.mesh != NULL ? improved_of_given : gathered == 1 ? improved_of_gathered : improved_at_last;
    memset(done, 0, count * sizeof done[0]);
    for (int n = 0; n < most; n++) {
      const uint32_t best = next_best(p, done, count, gathered == 1);
      if (best == AX_NONE || !may_lead(p, &p->found[best])) break;
      done[best] = true;
      if (offer) ax_ahead_offer(p, improve, &p->found[best], 0);
      else AX_TRY(improve_found(p, best, false));
    }
  }
  return AX_OK;
}

ax_status ax_planner_improve_found(ax_planner *p) {
  const uint32_t count = p->found_count;
  bool *done = ax_calloc((size_t)count + 1, sizeof done[0]);
  ax_status status = done != NULL ? improve_each(p, done, count, true) : ax_out_of_memory(count);
  if (status == AX_OK) status = improve_each(p, done, count, false);
  ax_free(done);
  return status;
}

/* Improves the best that are found. Where parameters are gathered steps lead elsewhere than where they are not, so some of either
   are begun with. At last the best is improved with axes of other lengths. */
static ax_status improve_best(ax_planner *p) {
  ax_status status = ax_planner_improve_found(p);
  for (int offer = 1; offer >= 0; offer--)
    for (int gathered = 0; status == AX_OK && gathered < 2; gathered++) {
      const uint32_t best = next_best(p, NULL, p->found_count, gathered == 1);
      if (best == AX_NONE || !may_lead(p, &p->found[best])) continue;
      if (offer == 1) ax_ahead_offer(p, improve, &p->found[best], true);
      else status = improve_found(p, best, true);
    }
  return status;
}

/* Seconds of computing, without launches, that one device would take at least for all samples: of the steps that all devices do alike,
   which alone are found here, the fastest. What each microbatch but the first reads and adds of parameters is left out, since
   other devices would do that for none or for fewer. INFINITY: none fits. */
static double time_alone(const ax_planner *p) {
  enum { touches = 6 }; /* read forward and backward; a gradient written, and read to be added to a sum, which is read and written */
  double parameters = 0, least = INFINITY;
  for (uint32_t g = 0; g < p->families.count; g++) parameters += p->families.list[g].bytes;
  for (uint32_t i = 0; i < p->found_count; i++) {
    const ax_candidate *c = &p->found[i];
    const double again = (double)(c->microbatches - 1) * touches * parameters / p->machine->memory;
    if (c->trial.bytes <= p->capacity) least = fmin(least, c->trial.computing - c->trial.launching - again);
  }
  return least;
}

/* Tries the steps that all devices do alike, and gives what time_alone says of them, before they are kept among what else is
   found. */
static ax_status try_uncut_apart(ax_planner *p, double *alone) {
  ax_candidate *others = p->found;
  const uint32_t count = p->found_count, capacity = p->found_capacity;
  p->found = NULL;
  p->found_count = p->found_capacity = 0;
  ax_status status = try_uncut(p);
  *alone = time_alone(p);
  ax_candidate *uncut = p->found;
  const uint32_t uncut_count = p->found_count;
  p->found = others;
  p->found_count = count;
  p->found_capacity = capacity;
  for (uint32_t i = 0; i < uncut_count; i++) {
    if (status == AX_OK) status = ax_planner_keep(p, &uncut[i]);
    ax_candidate_deinit(&uncut[i]);
  }
  ax_free(uncut);
  return status;
}

/* Says whether other ways of a second axis need not be looked for, since nothing can be much faster than the best that is found: each
   device computes its part of what one would compute alone, in so many seconds, and hardly waits. Layouts cut operations and spare none,
   so its launches are no more than those of any. A stage of a pipeline has only its own: where launches take most of the time all
   is looked for. */
static ax_status find_whether_done(ax_planner *p, double alone, bool *done) {
  static const double nearly = 1.05;
  const uint32_t found[2] = {next_best(p, NULL, p->found_count, false), next_best(p, NULL, p->found_count, true)};
  const ax_candidate *best = NULL;
  ax_candidate c;
  bool possible;
  *done = false;
  if (ax_planner_is_late(p, share_of_meshes)) return AX_OK;
  for (int k = 0; k < 2; k++)
    if (found[k] != AX_NONE && (best == NULL || ax_candidate_is_better(p, &p->found[found[k]], best))) best = &p->found[found[k]];
  if (best == NULL || best->trial.bytes > p->capacity || best->microbatches > 1) return AX_OK;
  const double least = alone / (double)p->devices + best->trial.launching;
  if (!isfinite(alone) || 2 * best->trial.launching > least || best->trial.computing > nearly * least) return AX_OK;
  AX_TRY(ax_candidate_copy(p, best, &c));
  const ax_status status = ax_candidate_try(p, &c, true, &possible); /* an estimate lets no collective go on beside computing */
  *done = status == AX_OK && possible && c.trial.seconds <= nearly * least;
  ax_candidate_deinit(&c);
  return status;
}

/* Where in the planner a way is kept for stages of pipelines; NULL: nowhere. */
static ax_arrangement *kept_way(ax_planner *p, const way *way) {
  if (!way->there) return NULL;
  return way->names == WAY_TENSOR     ? &p->tensor
         : way->names == WAY_EXPERT   ? &p->expert
         : way->names == WAY_SEQUENCE ? &p->sequence
                                      : NULL;
}

/* Keeps a copy of what was found of a way, for stages and for meshes that are given. */
static ax_status keep_way(ax_planner *p, int which, const way *found) {
  way copy = *found;
  if (!found->there) return AX_OK;
  AX_TRY(ax_arrangement_copy(&found->layout, &p->families, &copy.layout));
  if (which == WAY_EXPERT && cut_experts(p, &copy.layout)) copy.names = WAY_EXPERT; /* all, whether that helps or not */
  ax_arrangement *kept = kept_way(p, &copy);
  ax_arrangement_deinit(kept != NULL ? kept : &copy.layout); /* what was found before is the same */
  if (kept != NULL) *kept = copy.layout;
  return AX_OK;
}

static ax_status find_and_keep(ax_planner *p, int which) {
  way found = {0};
  ax_status status = find_way(p, which, &found);
  if (status == AX_OK) status = keep_way(p, which, &found);
  ax_arrangement_deinit(&found.layout);
  return status;
}

ax_status ax_planner_find_ways(ax_planner *p, const char *besides) {
  AX_TRY(find_and_keep(p, WAY_TENSOR));
  for (int which = WAY_EXPERT; besides != NULL && which < WAY_COUNT; which++)
    if (strcmp(names_of_axis[which], besides) == 0) AX_TRY(find_and_keep(p, which));
  return AX_OK;
}

/* A way that needs no search. */
static ax_status give_way(const ax_planner *p, int which, way *way) {
  AX_TRY(ax_arrangement_whole(&p->families, &way->layout));
  cut_batch(which, &way->layout);
  way->there = which == WAY_NOTHING || p->model.train;
  way->names = which;
  return AX_OK;
}

/* The samples cut over all devices: what is seldom far from good. It comes first, so that something is found however long a trial
   of a large program takes. */
static ax_status try_samples_first(ax_planner *p, way *ways) {
  for (int offer = 1; offer >= 0; offer--) {
    ax_mesh mesh;
    mesh_of(p->devices, 1, NULL, &mesh);
    AX_TRY(try_or_offer(p, &mesh, &ways[WAY_NOTHING].layout, false, offer == 1));
  }
  return AX_OK;
}

/* Meshes whose ways need no search. */
static ax_status try_plain(ax_planner *p, way *ways, bool *done) {
  AX_TRY(give_way(p, WAY_NOTHING, &ways[WAY_NOTHING]));
  AX_TRY(give_way(p, WAY_SHARD, &ways[WAY_SHARD]));
  ax_ahead_forget(p);
  if (p->model.train) AX_TRY(try_samples_first(p, ways));
  double alone = INFINITY;
  if (p->found_count == 0 || !ax_planner_is_late(p, share_of_first)) AX_TRY(try_uncut_apart(p, &alone));
  p->work = fmin(p->work, alone); /* what devices repeat is no work */
  AX_TRY(try_two(p, ways, WAY_NOTHING, WAY_TENSOR));
  return find_whether_done(p, alone, done);
}

static ax_status try_others(ax_planner *p, way *ways) {
  ax_ahead_forget(p);
  for (int which = WAY_TENSOR + 1; which < WAY_COUNT; which++) ax_ahead_offer(p, find_way_ahead, NULL, which);
  for (int which = WAY_TENSOR; which < WAY_COUNT; which++) AX_TRY(find_way(p, which, &ways[which]));
  for (int which = WAY_TENSOR; which < WAY_COUNT; which++) AX_TRY(keep_way(p, which, &ways[which]));
  AX_TRY(try_two(p, ways, WAY_TENSOR, WAY_COUNT));
  AX_TRY(try_three(p, ways));
  return improve_best(p);
}

ax_status ax_planner_search_meshes(ax_planner *p) {
  way ways[WAY_COUNT] = {0};
  bool done = false;
  ax_status status = try_plain(p, ways, &done);
  if (status == AX_OK && !done) status = try_others(p, ways);
  for (int which = 0; which < WAY_COUNT; which++) ax_arrangement_deinit(&ways[which].layout);
  return status;
}
