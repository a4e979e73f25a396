/* How many of the devices are used. A small program is slowed down by more devices than it has work for: its mesh is then of the
   first of them, and the others are idle. So the search goes over all devices first, and then over fewer: over each number that
   divides theirs, each power of two, and each that divides the samples, or would but for a power of two; the largest first. That on fewer is the one that would be made were there no more, so that
   what is found for more devices is never slower than what is found for a part of them, or for such a number. It ends where the work of the model alone,
   on so few devices, takes longer than what is known. */
#include <math.h>

#include "planner/ahead.h"

/* A simulated time is not shorter than this part of the estimate: collectives that the estimate puts in a row may overlap. */
static const double least_simulated = 0.8;

static bool is_power_of_two(int64_t n) { return (n & (n - 1)) == 0; }

bool ax_planner_is_between(const ax_planner *p) { return p->options.devices % p->devices != 0 && !is_power_of_two(p->devices); }

/* Whether samples can be cut over so many devices, but for a power of two, which can cut something else. What divides such a number
   is one too, so that what is found for it is known to any larger number. */
static bool suits_samples(const ax_planner *p, int64_t n) { return p->model.samples % (n / (n & -n)) == 0; }

/* The next number of devices to be tried, below n; 0: there is none. */
static int64_t next_count(const ax_planner *p, int64_t n) {
  while (--n > 0 && p->options.devices % n != 0 && !suits_samples(p, n)) {
  }
  return n;
}

double ax_planner_known_seconds(const ax_planner *p) {
  return p->settled_count > 0 && p->settled[0].trial.bytes <= p->capacity ? p->settled[0].trial.seconds : INFINITY;
}

/* Whether so few devices may be faster than the best that is known. */
static bool is_worth(const ax_planner *p, int64_t devices) {
  const double products = p->ideal * (double)p->options.devices / (double)devices;
  return fmax(products, isfinite(p->work) ? AX_LEAST_WORK * p->work / (double)devices : 0) < ax_planner_known_seconds(p);
}

/* Whether a candidate is of use: on fewer devices only one that may be faster than what is known. */
static bool is_of_use(const ax_planner *p, const ax_candidate *c) {
  return p->devices == p->options.devices || least_simulated * c->trial.seconds < ax_planner_known_seconds(p);
}

/* A job of ahead.h. */
static ax_status time_exactly(ax_planner *p, ax_candidate *c, int none) {
  bool possible;
  (void)none;
  return ax_planner_is_late(p, 1) ? AX_OK : ax_candidate_try(p, c, true, &possible);
}

ax_status ax_planner_settle(ax_planner *p, uint32_t most) {
  ax_candidates_sort(p, p->found, p->found_count);
  while (p->found_count > 0 && (p->found_count > most || !is_of_use(p, &p->found[p->found_count - 1])))
    ax_candidate_deinit(&p->found[--p->found_count]);
  AX_TRY(ax_grow(&p->settled, sizeof p->settled[0], p->settled_count, p->found_count, &p->settled_capacity));
  ax_ahead_forget(p);
  for (uint32_t i = 0; i < p->found_count; i++)
    if (p->found[i].stages == 1) ax_ahead_offer(p, time_exactly, &p->found[i], 0);
  for (uint32_t i = 0; i < p->found_count; i++) {
    bool possible = false;
    if (p->found[i].stages == 1 && !ax_planner_is_late(p, 1)) AX_TRY(ax_candidate_try(p, &p->found[i], true, &possible));
    p->found[i].exact = possible || p->found[i].stages > 1; /* pieces of a pipeline are not timed again */
    if (p->found[i].stages == 1) ax_candidate_tidy(p, &p->found[i]);
  }
  bool any = p->settled_count > 0;
  for (uint32_t i = 0; i < p->found_count; i++) any = any || p->found[i].exact;
  for (uint32_t i = 0; i < p->found_count; i++) { /* an estimate beside times that are none would look better than it is */
    if (p->found[i].exact || !any)
      p->settled[p->settled_count++] = p->found[i];
    else
      ax_candidate_deinit(&p->found[i]);
  }
  p->found_count = 0;
  ax_candidates_sort(p, p->settled, p->settled_count);
  return AX_OK;
}

ax_status ax_planner_search_counts(ax_planner *p, uint32_t most) {
  for (p->devices = p->options.devices; p->devices > 0 && is_worth(p, p->devices); p->devices = next_count(p, p->devices)) {
    p->began = ax_seconds();
    if (p->settled_count > 0 && ax_planner_is_late(p, 1)) return AX_OK;
    ax_planner_forget_ways(p);
    AX_TRY(ax_planner_search_meshes(p));
    AX_TRY(ax_planner_search_pipelines(p));
    AX_TRY(ax_planner_settle(p, most));
  }
  return AX_OK;
}
