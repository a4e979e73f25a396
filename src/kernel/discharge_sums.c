/* Kernels whose points only add to results that they have in common: what a result begins with is there before the first point,
   and all points, the first among them, are one loop without a branch. So the loop's steps can be computed side by side
   (plan/maps.c).

     for i, k:  if i == 0 and k == 0: y = 0              y = 0
                y = y + reduce_sum(x[i, k])              for i, k:  y = y + reduce_sum(x[i, k])

   The first branch may only store constants, and nothing may be stored but what is joined with what is there. */
#include "ir/region_link.h"
#include "kernel/discharge_points.h"
#include "kernel/ranges.h"
#include "kernel/step.h"
#include "prim/prims.h"

static const ax_program *body_of(const ax_discharged *k) { return k->params->bodies.v[k->body]; }

/* --- The branch in which results begin --- */

/* The body's one branch; AX_NONE: none, or several. */
static uint32_t find_branch(const ax_program *body) {
  uint32_t found = AX_NONE;
  for (uint32_t e = 0; e < body->eqn_count; e++) {
    if (ax_eqn_program(&body->eqns[e], 0) == NULL) continue;
    if (found != AX_NONE || body->eqns[e].prim->runs != AX_RUNS_ONE) return AX_NONE;
    found = e;
  }
  return found;
}

/* The program that the branch takes at all points with such numbers; AX_NONE: not the same at all of them. */
static uint32_t taken(const ax_program *body, uint32_t branch, ax_ranges *ranges) {
  uint32_t which = AX_NONE;
  const ax_status status = ax_ranges_find(ranges, body, false, NULL);
  if (status == AX_OK)
    which = ax_ranges_branch(ranges, body, &body->eqns[branch]);
  else
    ax_fail(status);
  ax_ranges_deinit(ranges);
  return which;
}

static bool is_gone_over(const ax_discharged *k, uint32_t d) { return ax_is_gone_over(k, d) && k->params->grid.v[d] > 1; }

/* Those that have a number from `low` to `high` along dimension `dim`. */
static ax_ranges points_where(const ax_discharged *k, uint32_t dim, int64_t low, int64_t high) {
  ax_ranges ranges;
  ax_ranges_init(&ranges, &k->params->grid);
  ranges.grid[dim] = (ax_interval){low, high};
  return ranges;
}

/* Which program the branch takes at the first point, and at all others. False: that is not known. */
static bool find_taken(const ax_discharged *k, uint32_t branch, uint32_t *first, uint32_t *others) {
  const ax_program *body = body_of(k);
  ax_ranges at_first;
  *others = AX_NONE;
  ax_ranges_init(&at_first, &k->params->grid);
  for (uint32_t d = 0; d < k->params->grid.count; d++)
    if (ax_is_gone_over(k, d)) at_first.grid[d] = (ax_interval){0, 0};
  *first = taken(body, branch, &at_first);
  for (uint32_t d = 0; d < k->params->grid.count; d++) {
    if (!is_gone_over(k, d)) continue;
    ax_ranges behind = points_where(k, d, 1, k->params->grid.v[d] - 1);
    const uint32_t there = taken(body, branch, &behind);
    if (there == AX_NONE || (*others != AX_NONE && there != *others)) return false;
    *others = there;
  }
  return !ax_failed() && *first != AX_NONE && *others != AX_NONE && *first != *others;
}

/* It stores constants to memory that it is given, and does nothing else. */
static bool only_fills(const ax_program *program) {
  for (uint32_t e = 0; e < program->eqn_count; e++) {
    const ax_eqn *eqn = &program->eqns[e];
    const ax_step_access *access = ax_step_access_of(eqn);
    const bool constant = eqn->prim->effects == 0 && (eqn->in_count == 0 || eqn->prim == &ax_prim_broadcast_in_dim);
    if (eqn->prim->step == NULL ? !constant : access == NULL || access->reads || !access->writes || ax_step_is_masked(eqn))
      return false;
    for (uint32_t i = 0; i < eqn->in_count; i++) /* of other arrays nothing is made, as they may be the point's */
      if (eqn->in[i] < program->in_count && program->types[eqn->in[i]].form == AX_ARRAY) return false;
  }
  return program->out_count == 0;
}

/* --- The rest of the body --- */

/* By equations other than `except`. */
static uint32_t uses_of(const ax_program *program, uint32_t value, uint32_t except) {
  uint32_t uses = 0;
  for (uint32_t e = 0; e < program->eqn_count; e++)
    for (uint32_t i = 0; i < program->eqns[e].in_count && e != except; i++) uses += program->eqns[e].in[i] == value;
  return uses;
}

static const ax_eqn *maker_of(const ax_program *program, uint32_t value) {
  for (uint32_t e = 0; e < program->eqn_count; e++)
    if (value >= program->eqns[e].out && value < program->eqns[e].out + program->eqns[e].out_count) return &program->eqns[e];
  return NULL;
}

static bool is_join(const ax_prim *prim) {
  return prim == &ax_prim_add || prim == &ax_prim_sub || prim == &ax_prim_mul || prim == &ax_prim_max || prim == &ax_prim_min ||
         prim == &ax_prim_and || prim == &ax_prim_or || prim == &ax_prim_xor;
}

/* The equation stores what the memory holds, joined with something else: in one step, or by a load, a join and a store. */
static bool is_joining(const ax_program *body, const ax_eqn *eqn, uint32_t branch) {
  const ax_step_access *access = ax_step_access_of(eqn);
  if (ax_step_is_masked(eqn)) return false;
  if (access->combine != NULL) return eqn->out_count == 0 && is_join(access->combine) && uses_of(body, eqn->in[0], branch) == 1;
  const ax_eqn *join = maker_of(body, eqn->in[access->value]), *load;
  if (join == NULL || !is_join(join->prim) || uses_of(body, join->out, branch) != 1) return false;
  for (int i = 0; i < 2; i++) {
    load = maker_of(body, join->in[i]);
    if (load == NULL || ax_step_access_of(load) == NULL || load->in[0] != eqn->in[0]) continue;
    return !ax_step_access_of(load)->writes && !ax_step_is_masked(load) && uses_of(body, load->out, branch) == 1 &&
           uses_of(body, eqn->in[0], branch) == 2;
  }
  return false;
}

static bool is_result(const ax_discharged *k, uint32_t value) {
  const uint32_t cut = value - (uint32_t)k->params->consts;
  return cut >= k->operand_count && cut < k->cut_count;
}

/* What is written is a result, as it was given, joined once; the branch comes first. */
static bool only_joins(const ax_discharged *k, uint32_t branch) {
  const ax_program *body = body_of(k);
  for (uint32_t e = 0; e < body->eqn_count; e++) {
    const ax_eqn *eqn = &body->eqns[e];
    const ax_step *step = eqn->prim->step;
    if (e == branch) continue;
    for (uint32_t i = 0; i < eqn->in_count && e < branch; i++)
      if (is_result(k, eqn->in[i])) return false;
    if (step == NULL ? eqn->prim->effects != 0 : step->access == NULL && step->view == NULL && !step->grid_number) return false;
    if (step == NULL || step->access == NULL || !step->access->writes) continue;
    if (!is_result(k, eqn->in[0]) || !is_joining(body, eqn, branch)) return false;
  }
  return true;
}

/* All points that are gone over have one block of each result. */
static bool have_one_block(const ax_discharged *k) {
  for (uint32_t i = k->operand_count; i < k->cut_count; i++) {
    if (k->cuts[i].shape == NULL) return false;
    for (uint32_t d = 0; d < k->cuts[i].shape->rank; d++) {
      const int8_t feed = k->beside.feeds[i].dim[d];
      if (feed == AX_FEED_OTHER || (feed >= 0 && is_gone_over(k, (uint32_t)feed))) return false;
    }
  }
  return true;
}

/* --- The program --- */

static void begin(ax_discharged *k, const ax_eqn *branch, uint32_t first) {
  const ax_program *fills = ax_eqn_program(branch, first);
  ax_discharge_value *in = ax_trace_alloc((fills->in_count + 1) * sizeof in[0]);
  for (uint32_t i = 0; in != NULL && i < fills->in_count; i++) {
    const uint32_t ref = branch->in[ax_region_link_in(branch, first, i).number];
    if (is_result(k, ref)) in[i].view = k->cuts[ref - (uint32_t)k->params->consts].block;
  }
  if (in != NULL) ax_discharge_program(&k->d, fills, in, NULL);
}

/* The branch is given results alone where it stores. */
static bool fills_results(const ax_discharged *k, const ax_eqn *branch, uint32_t first) {
  const ax_program *fills = ax_eqn_program(branch, first);
  for (uint32_t i = 0; i < fills->in_count; i++) {
    const uint32_t number = ax_region_link_in(branch, first, i).number;
    if (number == AX_NONE || (uses_of(fills, i, AX_NONE) > 0 && !is_result(k, branch->in[number]))) return false;
  }
  return true;
}

/* Much is read, in runs of a vector at least: little is added up sooner as points that are written one after the other.
   Products, if there are any, use each element once, as those of a matrix and a vector: others add themselves to results best
   one by one. */
static bool is_worth(const ax_discharged *k) {
  enum { much = 1 << 20, least_run = 16, least_of_product = 128 };
  int64_t most = 0, largest = 0, run = 0;
  for (uint32_t i = 0; i < k->operand_count; i++) {
    const ax_cut *c = &k->cuts[i];
    const int64_t elems = ax_type_elems(&k->params->blocks.v[i]),
                  all = ax_type_elems(c->type) * (int64_t)ax_dtype_bytes(c->type->dtype);
    if (elems > most) most = elems;
    if (all > largest) largest = all, run = c->shape == NULL || c->shape->rank == 0 ? 0 : c->shape->dims[c->shape->rank - 1];
  }
  return largest >= much && run >= (k->beside.product > 0 ? least_of_product : least_run) && k->beside.product <= (double)most;
}

/* Whether the points only add, and which program the branch takes at the first of them. */
static bool only_add(const ax_discharged *k, uint32_t branch, uint32_t *first) {
  const ax_program *body = body_of(k);
  uint32_t others;
  if (branch == AX_NONE || k->params->aliases.count > 0 || !k->beside.reduces || !is_worth(k) || !have_one_block(k)) return false;
  if (!only_joins(k, branch) || !find_taken(k, branch, first, &others)) return false;
  return only_fills(ax_eqn_program(&body->eqns[branch], *first)) && ax_eqn_program(&body->eqns[branch], others)->eqn_count == 0 &&
         fills_results(k, &body->eqns[branch], *first);
}

/* Blocks of results, which the points have in common. */
static void take_all(ax_discharged *k) {
  k->d.ids = ax_discharge_ids(k, ax_full_i64(AX_S32, AX_DIMS(), 0));
  k->by_group.count = 0;
  if (ax_discharge_asks(&k->d, body_of(k))) ax_carry(&k->by_group, k->d.right);
  for (uint32_t i = k->operand_count; i < k->cut_count && !ax_failed(); i++) {
    k->cuts[i].held = true;
    ax_discharge_take(k, &k->cuts[i]);
    ax_carry(&k->by_group, k->cuts[i].block->memory);
  }
}

static void put_all(ax_discharged *k) {
  for (uint32_t i = k->operand_count; i < k->cut_count; i++) {
    if (!ax_failed()) ax_discharge_put(k, &k->cuts[i]);
    k->cuts[i].held = false;
  }
}

/* The branch goes as it does behind the first point. */
static void add(ax_discharged *k, int64_t points) {
  const uint32_t last = ax_discharge_inner(k);
  ax_ranges behind = points_where(k, last, 1, k->params->grid.v[last] - 1);
  const ax_status status = ax_ranges_find(&behind, body_of(k), false, NULL);
  if (status != AX_OK) ax_fail(status);
  k->d.ranges = &behind;
  if (!ax_failed()) ax_discharge_repeat(k, 0, points, &k->by_group, ax_discharge_point);
  k->d.ranges = NULL;
  ax_ranges_deinit(&behind);
}

bool ax_discharge_sums(ax_discharged *k, int64_t points) {
  enum { few_points = 3 };
  const uint32_t branch = find_branch(body_of(k));
  uint32_t first;
  if (!k->apart || points <= few_points || !only_add(k, branch, &first)) return false;
  take_all(k);
  if (!ax_failed()) begin(k, &body_of(k)->eqns[branch], first);
  if (!ax_failed()) add(k, points);
  put_all(k);
  return true;
}
