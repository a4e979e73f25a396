/* Improves a candidate step by step: one thing is changed after the other, and what is better is kept, until nothing is. Each kind of step
   numbers its choices and makes one of them; one frame tries them. */
#include "planner/ahead.h"

enum { numbers = 3, most_dims = AX_MAX_RANK };

/* A choice of a step is so many numbers, each below a limit of its own. */
typedef struct choice {
  uint32_t at[numbers];
} choice;

typedef struct step_kind {
  choice (*limits)(const ax_planner *planner, const ax_candidate *candidate);
  bool (*change)(const ax_planner *planner, const choice *choice, ax_candidate *candidate); /* false: there is nothing to change */
  uint32_t axis;  /* which of the numbers is an axis; `numbers`: none */
  bool trained;   /* what a program without a batch does not have */
  bool of_params; /* only how parameters are cut */
  bool once;      /* in the first round alone */
  bool at_last;   /* for the best alone */
  bool of_axes;   /* changes what axes do, or how long they are: not where the mesh is given */
} step_kind;

/* Whether it does not fit by what is held alone, which is known without a trial. */
static bool cannot_fit(const ax_planner *p, ax_candidate *c) {
  if (!ax_arrangement_fit(&c->layout, &p->model, &p->families, &c->mesh, c->microbatches)) return true;
  ax_arrangement_memory(&c->layout, &p->model, &p->families, &c->mesh, &c->memory);
  return c->memory.parameters + c->memory.state + c->memory.batch > p->capacity;
}

/* Tries a changed copy, and keeps it in *c if it is better; otherwise it is released. */
static ax_status take_if_better(ax_planner *p, ax_candidate *c, ax_candidate *changed, bool *better) {
  bool possible = false;
  const bool refused = c->trial.bytes <= p->capacity && cannot_fit(p, changed);
  const ax_status status = refused ? AX_OK : ax_candidate_try(p, changed, false, &possible);
  if (status == AX_OK && possible && ax_candidate_is_better(p, changed, c)) {
    ax_candidate_deinit(c);
    *c = *changed;
    *better = true;
    return AX_OK;
  }
  ax_candidate_deinit(changed);
  return status;
}

/* --- Dimensions of parameters --- */

/* The first dimension of that size that a mesh may cut; AX_WHOLE: there is none. */
static int dim_of_size(const ax_family *family, int64_t size) {
  for (uint32_t d = family->layered; d < family->type.rank; d++)
    if (family->type.dims[d] == size) return (int)d;
  return AX_WHOLE;
}

/* Whether a family before this one, or a dimension before, has the size. */
static bool met_before(const ax_planner *p, uint32_t family, uint32_t dim) {
  const ax_family *f = &p->families.list[family];
  for (uint32_t g = 0; g < family; g++)
    if (dim_of_size(&p->families.list[g], f->type.dims[dim]) >= 0) return true;
  return dim_of_size(f, f->type.dims[dim]) != (int)dim;
}

static choice limits_of_sizes(const ax_planner *p, const ax_candidate *c) { return (choice){{p->families.count, most_dims, c->mesh.count}}; }

/* Cuts the dimensions of one size in all families at once: such are often one dimension of the model, as the experts, or what is
   between two layers, and to cut it in one family alone is of no use. */
static bool change_size(const ax_planner *p, const choice *at, ax_candidate *c) {
  const uint32_t f = at->at[0], d = at->at[1], axis = at->at[2];
  const ax_family *family = &p->families.list[f];
  if (d < family->layered || d >= family->type.rank || met_before(p, f, d)) return false;
  for (uint32_t g = 0; g < p->families.count; g++) {
    const int same = dim_of_size(&p->families.list[g], family->type.dims[d]);
    if (same >= 0) c->layout.family[g].axis[axis] = (int8_t)same;
  }
  return true;
}

static choice limits_of_families(const ax_planner *p, const ax_candidate *c) {
  return (choice){{p->families.count, c->mesh.count, 1 + most_dims}};
}

/* Cuts one family alone along another dimension, or not at all. */
static bool change_family(const ax_planner *p, const choice *at, ax_candidate *c) {
  const ax_family *family = &p->families.list[at->at[0]];
  int8_t *cut = &c->layout.family[at->at[0]].axis[at->at[1]];
  const int d = (int)at->at[2] + AX_WHOLE;
  if (d == *cut || d >= (int)family->type.rank || (d == 0 && family->layered)) return false;
  *cut = (int8_t)d;
  return true;
}

/* --- The batch, and what is held --- */

static choice limits_of_batch(const ax_planner *p, const ax_candidate *c) {
  (void)p;
  return (choice){{c->mesh.count, 3, 1}}; /* nothing, samples, and the first dimension of each */
}

static bool change_batch(const ax_planner *p, const choice *at, ax_candidate *c) {
  int8_t *cut = &c->layout.batch.axis[at->at[0]];
  const int d = (int)at->at[1] + AX_WHOLE;
  (void)p;
  if (d == *cut) return false;
  *cut = (int8_t)d;
  return true;
}

static choice limits_of_sharing(const ax_planner *p, const ax_candidate *c) {
  (void)p;
  (void)c;
  return (choice){{2, 1, 1}};
}

/* Gathers what axes of the batch cut of parameters, or no more; cuts the state, or no more. */
static bool change_sharing(const ax_planner *p, const choice *at, ax_candidate *c) {
  bool *changed = at->at[0] == 0 ? &c->layout.gathered : &c->layout.state_cut;
  (void)p;
  *changed = !*changed;
  return true;
}

enum { halved = AX_CHECKPOINT_POLICY_COUNT, doubled, changes_of_rounds };

static choice limits_of_rounds(const ax_planner *p, const ax_candidate *c) {
  (void)p;
  (void)c;
  return (choice){{changes_of_rounds, 1, 1}};
}

/* Takes another checkpoint policy, whose values to write and read may take longer than to compute them again; or half or twice the
   microbatches. */
static bool change_rounds(const ax_planner *p, const choice *at, ax_candidate *c) {
  const uint32_t change = at->at[0];
  (void)p;
  if (change == (uint32_t)c->saved || (change == halved && c->microbatches == 1)) return false;
  if (change < AX_CHECKPOINT_POLICY_COUNT) c->saved = (ax_checkpoint_policy)change;
  if (change == halved) c->microbatches /= 2;
  if (change == doubled) c->microbatches *= 2;
  return true;
}

/* --- Axes --- */

static void swap_cuts(ax_axis_cuts *cuts, uint32_t axis) {
  const int8_t first = cuts->axis[axis];
  cuts->axis[axis] = cuts->axis[axis + 1];
  cuts->axis[axis + 1] = first;
}

void ax_candidate_swap_axes(const ax_planner *p, ax_candidate *c, uint32_t axis) {
  const ax_axis first = c->mesh.axis[axis];
  c->mesh.axis[axis] = c->mesh.axis[axis + 1];
  c->mesh.axis[axis + 1] = first;
  swap_cuts(&c->layout.batch, axis);
  for (uint32_t g = 0; g < p->families.count; g++) swap_cuts(&c->layout.family[g], axis);
}

static choice limits_of_order(const ax_planner *p, const ax_candidate *c) {
  return (choice){{c->mesh.count - 1, p->model.train ? 5 : 1, 1}};
}

/* Gives the near devices to the other of two axes: as they are; or with one more of them cutting the samples, or that one alone, which may
   only be worth it there. */
static bool change_order(const ax_planner *p, const choice *at, ax_candidate *c) {
  const uint32_t axis = at->at[0], which = at->at[1];
  ax_candidate_swap_axes(p, c, axis);
  for (uint32_t a = 0; a < c->mesh.count && which > 2; a++) c->layout.batch.axis[a] = AX_WHOLE;
  if (which > 0) c->layout.batch.axis[axis + (which - 1) % 2] = 0;
  return true;
}

static choice limits_of_lengths(const ax_planner *p, const ax_candidate *c) {
  (void)p;
  return (choice){{c->mesh.count, c->mesh.count, 1}};
}

static int64_t least_factor(int64_t n) {
  for (int64_t factor = 2; factor * factor <= n; factor++)
    if (n % factor == 0) return factor;
  return n;
}

/* Makes one axis shorter, and another longer. */
static bool change_lengths(const ax_planner *p, const choice *at, ax_candidate *c) {
  ax_axis *from = &c->mesh.axis[at->at[0]], *to = &c->mesh.axis[at->at[1]];
  const int64_t factor = least_factor(from->size);
  (void)p;
  if (from == to || from->size == 1) return false;
  from->size /= factor;
  to->size *= factor;
  return true;
}

/* --- All of them --- */

static const step_kind kinds[] = {
    {limits_of_order, change_order, .axis = numbers, .of_axes = true},
    {limits_of_sizes, change_size, .axis = 2, .of_params = true, .once = true},
    {limits_of_families, change_family, .axis = 1, .of_params = true},
    {limits_of_batch, change_batch, .axis = 0, .trained = true, .of_axes = true},
    {limits_of_sharing, change_sharing, .axis = numbers, .trained = true},
    {limits_of_rounds, change_rounds, .axis = numbers, .trained = true},
    {limits_of_lengths, change_lengths, .axis = numbers, .at_last = true, .of_axes = true},
};

static choice choice_of(uint32_t number, const choice *limits) {
  choice made;
  for (uint32_t k = numbers; k-- > 0; number /= limits->at[k]) made.at[k] = number % limits->at[k];
  return made;
}

static ax_status try_ahead(ax_planner *p, ax_candidate *c, int none) {
  bool possible;
  (void)none;
  return ax_candidate_try(p, c, false, &possible);
}

/* Offers to try ahead the first choice from *number on that changes something. *number is then the one behind it. */
static ax_status offer_next(ax_planner *p, const ax_candidate *c, const step_kind *kind, const choice *limits, uint32_t first_axis,
                            uint32_t *number) {
  const uint32_t count = limits->at[0] * limits->at[1] * limits->at[2];
  bool offered = false;
  while (!offered && *number < count) {
    const choice next = choice_of((*number)++, limits);
    ax_candidate changed;
    if (kind->axis < numbers && next.at[kind->axis] < first_axis) continue;
    AX_TRY(ax_candidate_copy(p, c, &changed));
    offered = kind->change(p, &next, &changed);
    if (offered) ax_ahead_offer(p, try_ahead, &changed, 0);
    ax_candidate_deinit(&changed);
  }
  return AX_OK;
}

/* Tries all choices of one kind, each on what those before have led to. */
static ax_status improve_by(ax_planner *p, ax_candidate *c, const step_kind *kind, uint32_t first_axis, double share, bool *better) {
  const choice limits = kind->limits(p, c);
  const uint32_t count = limits.at[0] * limits.at[1] * limits.at[2];
  uint32_t ahead = 0;
  for (uint32_t number = 0; number < count; number++) {
    if (ahead <= number) ahead = number + 1;
    if (ax_ahead_is_idle(p)) AX_TRY(offer_next(p, c, kind, &limits, first_axis, &ahead));
    const choice next = choice_of(number, &limits);
    ax_candidate changed;
    if (kind->axis < numbers && next.at[kind->axis] < first_axis) continue;
    AX_TRY(ax_candidate_copy(p, c, &changed));
    const bool made = kind->change(p, &next, &changed);
    if (made && !ax_planner_is_late(p, share)) {
      AX_TRY(take_if_better(p, c, &changed, better));
      continue;
    }
    ax_candidate_deinit(&changed);
    if (made) return AX_OK;
  }
  return AX_OK;
}

ax_status ax_candidate_improve(ax_planner *p, ax_candidate *c, uint32_t first_axis, bool at_last, double share) {
  enum { most_rounds = 5 };
  bool better = true;
  for (int round = 0; round < most_rounds && better; round++) {
    better = false;
    for (size_t k = 0; k < AX_COUNT(kinds); k++) {
      const step_kind *kind = &kinds[k];
      if ((kind->trained && !p->model.train) || (first_axis > 0 && !kind->of_params) || (kind->once && round > 0) || (kind->at_last && !at_last))
        continue;
      if (kind->of_axes && p->options.mesh != NULL) continue;
      AX_TRY(improve_by(p, c, kind, first_axis, share, &better));
    }
  }
  return AX_OK;
}
