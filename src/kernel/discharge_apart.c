/* Points that stand apart from the loop over the others. Bodies say `if k == 0` and `if k == last` where sums begin and end; at a point that is
   known these are no branches, and what a sum begins with is no memory that is copied:

     for k in 0 .. 4:  if k == 0: y = 0           y = 0 + x_0
                       y = y + x_k                y = y + x_1
                                                  y = y + x_2 ..     so the blocks are slices at known places

   The points that differ along the last dimension alone are a group. Few points, of small bodies, are all written one after the other. Of many
   the first and the last are, and a loop goes over those between; there too a branch goes whose test the numbers of these points decide.
   Around that is a loop over groups, which takes the blocks of results that a group has in common out of the whole once. */
#include "ir/prim.h"
#include "kernel/discharge_points.h"
#include "kernel/ranges.h"

enum { most_points = 16, most_eqns = 256, most_written = 1000 }; /* equations of a body that may be written three times */

static int64_t eqns_of(const ax_program *program) {
  const ax_program *nested;
  int64_t count = program->eqn_count;
  for (uint32_t e = 0; e < program->eqn_count && count <= most_eqns; e++)
    for (uint32_t i = 0; (nested = ax_eqn_program(&program->eqns[e], i)) != NULL; i++) count += eqns_of(nested);
  return count;
}

static bool find(ax_ranges *ranges, const ax_program *body) {
  const ax_status status = ax_ranges_find(ranges, body, false, NULL);
  if (status != AX_OK) ax_fail(status);
  return status == AX_OK;
}

uint32_t ax_discharge_inner(const ax_discharged *k) {
  for (uint32_t d = k->params->grid.count; d-- > 0;)
    if (ax_is_gone_over(k, d) && k->params->grid.v[d] > 1) return d;
  return AX_NONE;
}

/* Of the points of a group whose numbers are from `low` to `high`. */
static void know(const ax_discharged *k, int64_t low, int64_t high, ax_ranges *ranges) {
  ax_ranges_init(ranges, &k->params->grid);
  ranges->grid[k->inner] = (ax_interval){low, high};
}

/* Whether a branch of the body is decided at a point that is not decided at all of them. */
static bool decides(const ax_discharged *k, const ax_program *body, int64_t number) {
  ax_ranges all, one;
  bool found = false;
  ax_ranges_init(&all, &k->params->grid);
  know(k, number, number, &one);
  if (find(&all, body) && find(&one, body))
    for (uint32_t e = 0; e < body->eqn_count && !found; e++) {
      if (body->eqns[e].prim->runs != AX_RUNS_ONE || ax_eqn_program(&body->eqns[e], 0) == NULL) continue;
      const ax_interval before = ax_ranges_of(&all, body, body->eqns[e].in[0]), there = ax_ranges_of(&one, body, body->eqns[e].in[0]);
      found = before.low != before.high && there.low == there.high;
    }
  ax_ranges_deinit(&all);
  ax_ranges_deinit(&one);
  return found;
}

/* --- The points of a group --- */

static const ax_carried *carried_of(const ax_discharged *k) { return k->group != NULL ? &k->by_group : &k->by_point; }

static void one_point(ax_discharged *k, const ax_program *body, int64_t number) {
  int64_t point[AX_MAX_RANK];
  ax_ranges ranges;
  for (uint32_t d = 0; d < k->params->grid.count; d++) point[d] = k->params->grid.v[d] > 1 ? -1 : 0;
  point[k->inner] = number;
  know(k, number, number, &ranges);
  k->point = point;
  k->d.ranges = &ranges;
  if (find(&ranges, body)) ax_discharge_point(k, ax_poison);
  k->d.ranges = NULL;
  k->point = NULL;
  ax_ranges_deinit(&ranges);
}

static void those_between(ax_discharged *k, const ax_program *body, int64_t points) {
  ax_ranges ranges;
  if (points <= 2) return;
  know(k, 1, points - 2, &ranges);
  k->d.ranges = &ranges;
  if (find(&ranges, body)) ax_discharge_repeat(k, 1, points - 2, carried_of(k), ax_discharge_point);
  k->d.ranges = NULL;
  ax_ranges_deinit(&ranges);
}

static void points_of_group(ax_discharged *k) {
  const ax_program *body = k->params->bodies.v[k->body];
  const int64_t points = k->params->grid.v[k->inner];
  const bool many = points > most_points || points * eqns_of(body) > most_eqns;
  for (int64_t p = 0; p < points && !many && !ax_failed(); p++) one_point(k, body, p);
  if (!many) return;
  one_point(k, body, 0);
  if (!ax_failed()) those_between(k, body, points);
  if (!ax_failed()) one_point(k, body, points - 1);
}

/* --- Groups --- */

/* A result's block that all points of a group have. */
static bool is_held(const ax_discharged *k, const ax_cut *c) {
  if (!c->result || c->shape == NULL || k->params->aliases.count > 0) return false;
  for (uint32_t d = 0; d < c->shape->rank; d++) {
    const int8_t feed = k->beside.feeds[c - k->cuts].dim[d];
    if (feed == AX_FEED_OTHER || feed == (int8_t)k->inner) return false;
  }
  return true;
}

static bool holds(const ax_discharged *k, uint32_t memory) {
  for (uint32_t i = 0; i < k->cut_count; i++)
    if (k->cuts[i].held && k->cuts[i].whole->memory == memory) return true;
  return false;
}

static void hold(ax_discharged *k) {
  k->by_group.count = 0;
  for (uint32_t i = 0; i < k->cut_count; i++) k->cuts[i].held = is_held(k, &k->cuts[i]);
  for (uint32_t c = 0; c < k->by_point.count; c++)
    if (!holds(k, k->by_point.memory[c])) ax_carry(&k->by_group, k->by_point.memory[c]);
  for (uint32_t i = 0; i < k->cut_count; i++)
    if (k->cuts[i].held) ax_carry(&k->by_group, k->cuts[i].block->memory);
}

static void do_group(ax_discharged *k, ax_value number) {
  const ax_dims *grid = &k->params->grid;
  ax_value *ids = ax_trace_alloc((grid->count + 1) * sizeof ids[0]), some[AX_MAX_RANK];
  int64_t sizes[AX_MAX_RANK];
  uint32_t count = 0, at = 0;
  if (ids == NULL) return;
  for (uint32_t d = 0; d < grid->count; d++)
    if (ax_is_gone_over(k, d) && d != k->inner) sizes[count++] = grid->v[d];
  ax_discharge_number(&k->d, number, count, sizes, some);
  for (uint32_t d = 0; d < grid->count; d++)
    if (ax_is_gone_over(k, d) && d != k->inner) ids[d] = some[at++];
  k->group = ids;
  k->d.ids = ax_discharge_ids(k, ax_full_i64(AX_S32, AX_DIMS(), 0));
  for (uint32_t i = 0; i < k->cut_count && !ax_failed(); i++)
    if (k->cuts[i].held) ax_discharge_take(k, &k->cuts[i]);
  if (!ax_failed()) points_of_group(k);
  for (uint32_t i = 0; i < k->cut_count && !ax_failed(); i++)
    if (k->cuts[i].held) ax_discharge_put(k, &k->cuts[i]);
  k->group = NULL;
}

void ax_discharge_apart(ax_discharged *k, int64_t points) {
  const ax_program *body = k->params->bodies.v[k->body];
  k->inner = AX_NONE;
  if (ax_discharge_sums(k, points) || ax_failed()) return;
  k->inner = k->apart && points > 1 && body->eqn_count <= most_written ? ax_discharge_inner(k) : AX_NONE;
  const int64_t size = k->inner != AX_NONE ? k->params->grid.v[k->inner] : 1;
  if (k->inner == AX_NONE || !(decides(k, body, 0) || decides(k, body, size - 1))) {
    k->inner = AX_NONE;
    if (!ax_failed()) ax_discharge_repeat(k, 0, points, &k->by_point, ax_discharge_point);
  } else if (points == size) {
    points_of_group(k);
  } else {
    hold(k);
    ax_discharge_repeat(k, 0, points / size, &k->by_point, do_group);
    for (uint32_t i = 0; i < k->cut_count; i++) k->cuts[i].held = false;
  }
  k->inner = AX_NONE;
}
