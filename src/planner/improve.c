/* Improves a candidate step by step: one thing is changed after the other, and what is better is kept, until nothing is. Changed are which
   dimension an axis cuts, in all families of parameters that have a dimension of one size, and in each family alone; what axes cut of the
   batch; the order of axes; how what is held is shared; what layers keep, and the microbatches. */
#include "planner/search.h"

/* Tries a changed copy, and keeps it in *c if it is better; otherwise it is released. */
static ax_status take_if_better(ax_planner *p, ax_candidate *c, ax_candidate *changed, bool *better) {
  bool possible;
  const ax_status status = ax_candidate_try(p, changed, false, &possible);
  if (status == AX_OK && possible && ax_candidate_is_better(p, changed, c)) {
    ax_candidate_deinit(c);
    *c = *changed;
    *better = true;
    return AX_OK;
  }
  ax_candidate_deinit(changed);
  return status;
}

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

/* Cuts the dimensions of one size in all families at once: such are often one dimension of the model, as the experts, or what is
   between two layers, and to cut it in one family alone is of no use. */
static ax_status improve_sizes(ax_planner *p, ax_candidate *c, uint32_t first_axis, double share, bool *better) {
  for (uint32_t f = 0; f < p->families.count; f++)
    for (uint32_t d = p->families.list[f].layered; d < p->families.list[f].type.rank; d++)
      for (uint32_t axis = first_axis; axis < c->mesh.count && !met_before(p, f, d); axis++) {
        ax_candidate changed;
        if (ax_planner_is_late(p, share)) return AX_OK;
        AX_TRY(ax_candidate_copy(p, c, &changed));
        for (uint32_t g = 0; g < p->families.count; g++) {
          const int same = dim_of_size(&p->families.list[g], p->families.list[f].type.dims[d]);
          if (same >= 0) changed.layout.family[g].axis[axis] = (int8_t)same;
        }
        AX_TRY(take_if_better(p, c, &changed, better));
      }
  return AX_OK;
}

static ax_status improve_families(ax_planner *p, ax_candidate *c, uint32_t first_axis, double share, bool *better) {
  for (uint32_t g = 0; g < p->families.count; g++)
    for (uint32_t axis = first_axis; axis < c->mesh.count; axis++)
      for (int d = AX_WHOLE; d < (int)p->families.list[g].type.rank; d++) {
        ax_candidate changed;
        if (d == c->layout.family[g].axis[axis] || (d == 0 && p->families.list[g].layered)) continue;
        if (ax_planner_is_late(p, share)) return AX_OK;
        AX_TRY(ax_candidate_copy(p, c, &changed));
        changed.layout.family[g].axis[axis] = (int8_t)d;
        AX_TRY(take_if_better(p, c, &changed, better));
      }
  return AX_OK;
}

/* The same with what axes of the batch cut of parameters gathered, or not, and with the state cut, or not. */
static ax_status improve_sharing(ax_planner *p, ax_candidate *c, double share, bool *better) {
  for (int which = 0; p->model.train && which < 2; which++) {
    ax_candidate changed;
    if (ax_planner_is_late(p, share)) return AX_OK;
    AX_TRY(ax_candidate_copy(p, c, &changed));
    if (which == 0) changed.layout.gathered = !changed.layout.gathered;
    else changed.layout.state_cut = !changed.layout.state_cut;
    AX_TRY(take_if_better(p, c, &changed, better));
  }
  return AX_OK;
}

/* The same with another checkpoint policy, whose values to write and read may take longer than to compute them again, and with half or
   twice the microbatches. */
static ax_status improve_step(ax_planner *p, ax_candidate *c, double share, bool *better) {
  enum { halved = AX_CHECKPOINT_POLICY_COUNT, doubled, changes };
  for (int change = 0; p->model.train && change < changes; change++) {
    ax_candidate changed;
    if (change == (int)c->saved || (change == halved && c->microbatches == 1)) continue;
    if (ax_planner_is_late(p, share)) return AX_OK;
    AX_TRY(ax_candidate_copy(p, c, &changed));
    if (change < AX_CHECKPOINT_POLICY_COUNT) changed.saved = (ax_checkpoint_policy)change;
    if (change == halved) changed.microbatches /= 2;
    if (change == doubled) changed.microbatches *= 2;
    AX_TRY(take_if_better(p, c, &changed, better));
  }
  return AX_OK;
}

/* The same for the samples, and the first dimension of each. */
static ax_status improve_batch(ax_planner *p, ax_candidate *c, double share, bool *better) {
  for (uint32_t axis = 0; p->model.train && axis < c->mesh.count; axis++)
    for (int d = AX_WHOLE; d <= 1; d++) {
      ax_candidate changed;
      if (d == c->layout.batch.axis[axis]) continue;
      if (ax_planner_is_late(p, share)) return AX_OK;
      AX_TRY(ax_candidate_copy(p, c, &changed));
      changed.layout.batch.axis[axis] = (int8_t)d;
      AX_TRY(take_if_better(p, c, &changed, better));
    }
  return AX_OK;
}

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

/* The same with two axes in the other order, so that the other of them has the near devices: as it is; or with one more of them
   cutting the samples, or that one alone, which may only be worth it there. */
static ax_status try_order(ax_planner *p, ax_candidate *c, uint32_t axis, int cuts_samples, bool alone, bool *better) {
  ax_candidate changed;
  AX_TRY(ax_candidate_copy(p, c, &changed));
  ax_candidate_swap_axes(p, &changed, axis);
  for (uint32_t a = 0; a < c->mesh.count && alone; a++) changed.layout.batch.axis[a] = AX_WHOLE;
  if (cuts_samples >= 0) changed.layout.batch.axis[cuts_samples] = 0;
  return take_if_better(p, c, &changed, better);
}

static ax_status improve_order(ax_planner *p, ax_candidate *c, double share, bool *better) {
  for (uint32_t axis = 0; axis + 1 < c->mesh.count; axis++)
    for (int which = -1; which < (p->model.train ? 4 : 0); which++) {
      if (ax_planner_is_late(p, share)) return AX_OK;
      AX_TRY(try_order(p, c, axis, which < 0 ? -1 : (int)axis + which % 2, which >= 2, better));
    }
  return AX_OK;
}

ax_status ax_candidate_improve(ax_planner *p, ax_candidate *c, uint32_t first_axis, double share) {
  enum { most_rounds = 5 };
  bool better = true;
  for (int round = 0; round < most_rounds && better; round++) {
    better = false;
    if (first_axis == 0) AX_TRY(improve_order(p, c, share, &better));
    if (round == 0) AX_TRY(improve_sizes(p, c, first_axis, share, &better));
    AX_TRY(improve_families(p, c, first_axis, share, &better));
    if (first_axis > 0) continue;
    AX_TRY(improve_batch(p, c, share, &better));
    AX_TRY(improve_sharing(p, c, share, &better));
    AX_TRY(improve_step(p, c, share, &better));
  }
  return AX_OK;
}
