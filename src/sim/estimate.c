#include "sim/estimate.h"

#include <string.h>

#include "sim/algorithms.h"

enum { rounds = 3 };

typedef struct estimating {
  const ax_sim_work *work;
  double launch;     /* seconds of beginning a kernel */
  ax_sim_estimate e;
  double *done;      /* by transfer: when it is over */
  double *free;      /* by group: when its last collective is over */
  double carried[AX_MAX_LINK_KINDS]; /* by kind of link: when the bytes of all collectives so far are carried */
  uint32_t *group;   /* by transfer */
} estimating;

static void wait(estimating *s, double until) {
  if (until <= s->e.seconds) return;
  s->e.exchanging += until - s->e.seconds;
  s->e.seconds = until;
}

static void start(estimating *s, uint32_t op) {
  const uint32_t transfer = s->work->ops[op].transfer;
  const ax_sim_alone *alone = &s->work->transfers[transfer].alone;
  double *free = &s->free[s->group[transfer]];
  const double begin = *free > s->e.seconds ? *free : s->e.seconds;
  double end = begin + alone->seconds;
  for (uint32_t k = 0; k < AX_MAX_LINK_KINDS; k++) {
    if (alone->busy[k] == 0) continue;
    s->carried[k] = (s->carried[k] > begin ? s->carried[k] : begin) + alone->busy[k];
    if (end < s->carried[k]) end = s->carried[k];
  }
  s->done[transfer] = *free = end;
}

static uint32_t end_of_loop(const ax_sim_work *w, uint32_t begin) {
  uint32_t end = begin + 1;
  while (w->steps[end].kind != AX_WORK_NEXT || w->steps[end].target != begin) end++;
  return end;
}

static void walk(estimating *s, uint32_t first, uint32_t end);

/* All that is later than the loop's last round is later by the rounds that are left out. */
static void skip(estimating *s, const ax_sim_estimate *before, double times) {
  const double shift = times * (s->e.seconds - before->seconds);
  s->e.computing += times * (s->e.computing - before->computing);
  s->e.launching += times * (s->e.launching - before->launching);
  s->e.exchanging += times * (s->e.exchanging - before->exchanging);
  s->e.seconds += shift;
  for (uint32_t t = 0; t < s->work->transfer_count; t++) {
    if (s->done[t] > before->seconds) s->done[t] += shift;
    if (s->free[t] > before->seconds) s->free[t] += shift;
  }
  for (uint32_t k = 0; k < AX_MAX_LINK_KINDS; k++)
    if (s->carried[k] > before->seconds) s->carried[k] += shift;
}

static void walk_loop(estimating *s, uint32_t begin, uint32_t end) {
  const int64_t trips = s->work->steps[begin].trips;
  for (int64_t i = 0; i < trips && i < rounds; i++) {
    const ax_sim_estimate before = s->e;
    walk(s, begin + 1, end);
    if (i + 1 == rounds && trips > rounds) skip(s, &before, (double)(trips - rounds));
  }
}

static void walk(estimating *s, uint32_t first, uint32_t end) {
  const ax_sim_work *w = s->work;
  for (uint32_t i = first; i < end; i++) {
    const ax_sim_work_step *step = &w->steps[i];
    for (uint32_t k = 0; k < step->await_count; k++) wait(s, s->done[w->awaits[step->await_first + k]]);
    if (step->kind == AX_WORK_TRANSFER) start(s, step->op);
    if (step->kind == AX_WORK_COMPUTE) {
      s->e.seconds += w->ops[step->op].seconds;
      s->e.computing += w->ops[step->op].seconds;
      s->e.launching += w->ops[step->op].effort.launched ? s->launch : 0;
    }
    if (step->kind != AX_WORK_LOOP) continue;
    const uint32_t next = end_of_loop(w, i);
    walk_loop(s, i, next);
    i = next;
  }
}

static ax_status estimate(estimating *s, ax_sim_estimate *out) {
  const ax_sim_work *w = s->work;
  s->done = ax_calloc((size_t)w->transfer_count + 1, sizeof s->done[0]);
  s->free = ax_calloc((size_t)w->transfer_count + 1, sizeof s->free[0]);
  s->group = ax_calloc((size_t)w->transfer_count + 1, sizeof s->group[0]);
  if (s->done == NULL || s->free == NULL || s->group == NULL) return ax_out_of_memory(w->transfer_count * sizeof s->done[0]);
  for (uint32_t t = 0; t < w->transfer_count; t++)
    while (memcmp(&w->transfers[s->group[t]].procedure.group, &w->transfers[t].procedure.group, sizeof(ax_sim_group)) != 0) s->group[t]++;
  walk(s, 0, w->step_count);
  for (uint32_t t = 0; t < w->transfer_count; t++) wait(s, s->done[t]);
  *out = s->e;
  return AX_OK;
}

ax_status ax_sim_work_estimate(const ax_sim_work *work, double launch, ax_sim_estimate *out) {
  estimating s = {.work = work, .launch = launch};
  const ax_status status = estimate(&s, out);
  ax_free(s.done);
  ax_free(s.free);
  ax_free(s.group);
  return status;
}

static ax_status make_work(const ax_plan *plan, const ax_cluster *machine, ax_kept_times *times, ax_sim_work *work) {
  ax_sim_place place;
  const ax_timed_kernels none = {0};
  if (ax_plan_has_kernels(plan)) return ax_error(AX_ABSENT, "simulate: the time of a program with kernels is not estimated");
  AX_TRY(ax_sim_place_make(machine, &plan->mesh, &place));
  AX_TRY(ax_sim_work_make(plan, &place, &none, work));
  return ax_algorithms_time_alone(work, &place, &(ax_simulate_options){.most_messages = 5e7}, times);
}

ax_status ax_plan_estimate(const ax_plan *plan, const ax_cluster *machine, ax_kept_times *times, ax_sim_estimate *out) {
  ax_sim_work work = {0};
  *out = (ax_sim_estimate){0};
  ax_status status = make_work(plan, machine, times, &work);
  if (status == AX_OK) status = ax_sim_work_estimate(&work, machine->launch, out);
  ax_sim_work_deinit(&work);
  return status;
}
