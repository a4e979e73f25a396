/* Pools, lists of objects, records: they only grow. */
#include "kernel/machine/act.h"

#include <string.h>

static const char *const act_names[] = {"nothing", "local", "signal", "wait", "read", "arrive", "await", "start", "join", "seen"};
static const char *const finding_names[AX_FINDING_KINDS] = {
    "nothing",       "deadlock",        "data race",     "leaked semaphore", "barrier misuse", "read of unset memory",
    "out of bounds", "use after scope", "over capacity", "copy not awaited", "several results",
    "order of additions", "missing commit", "dependence between points"};

const char *ax_act_kind_name(ax_act_kind kind) { return (uint32_t)kind < AX_COUNT(act_names) ? act_names[kind] : "?"; }
const char *ax_finding_kind_name(ax_finding_kind kind) {
  return (uint32_t)kind < AX_COUNT(finding_names) ? finding_names[kind] : "?";
}

ax_status ax_touches_add(ax_touches *pool, uint32_t region, bool write, bool scope, uint32_t run_count, const ax_bytes *runs) {
  for (uint32_t i = 0; i < run_count; i++) assert(runs[i].begin < runs[i].end && (i == 0 || runs[i - 1].end <= runs[i].begin));
  AX_TRY(ax_grow(&pool->touches, sizeof pool->touches[0], pool->touch_count, 1, &pool->touch_capacity));
  AX_TRY(ax_grow(&pool->runs, sizeof pool->runs[0], pool->run_count, run_count, &pool->run_capacity));
  pool->touches[pool->touch_count++] =
      (ax_touch){.region = region, .write = write, .scope = scope, .first = pool->run_count, .count = run_count};
  if (run_count > 0) memcpy(pool->runs + pool->run_count, runs, run_count * sizeof runs[0]);
  pool->run_count += run_count;
  return AX_OK;
}

ax_status ax_touches_copy(ax_touches *pool, const ax_touches *from, const ax_touch *touch) {
  AX_TRY(ax_touches_add(pool, touch->region, touch->write, touch->scope, touch->count, from->runs + touch->first));
  pool->touches[pool->touch_count - 1].sum = touch->sum;
  pool->touches[pool->touch_count - 1].colour = touch->colour;
  return AX_OK;
}

void ax_touches_deinit(ax_touches *pool) {
  ax_free(pool->touches);
  ax_free(pool->runs);
  *pool = (ax_touches){0};
}

ax_status ax_act_objects_add_agent(ax_act_objects *o, ax_act_agent agent) {
  AX_TRY(ax_grow(&o->agents, sizeof o->agents[0], o->agent_count, 1, &o->agent_capacity));
  o->agents[o->agent_count++] = agent;
  return AX_OK;
}

ax_status ax_act_objects_add_semaphore(ax_act_objects *o, ax_act_semaphore semaphore) {
  AX_TRY(ax_grow(&o->semaphores, sizeof o->semaphores[0], o->semaphore_count, 1, &o->semaphore_capacity));
  o->semaphores[o->semaphore_count++] = semaphore;
  return AX_OK;
}

ax_status ax_act_objects_add_barrier(ax_act_objects *o, ax_act_barrier barrier) {
  if (barrier.arrivals == 0) return ax_error(AX_INVALID_ARGUMENT, "barrier %s: a phase takes at least one arrival", barrier.name);
  AX_TRY(ax_grow(&o->barriers, sizeof o->barriers[0], o->barrier_count, 1, &o->barrier_capacity));
  o->barriers[o->barrier_count++] = barrier;
  return AX_OK;
}

ax_status ax_act_objects_add_region(ax_act_objects *o, ax_act_region region) {
  AX_TRY(ax_grow(&o->regions, sizeof o->regions[0], o->region_count, 1, &o->region_capacity));
  o->regions[o->region_count++] = region;
  return AX_OK;
}

void ax_act_objects_deinit(ax_act_objects *o) {
  ax_free(o->agents);
  ax_free(o->semaphores);
  ax_free(o->barriers);
  ax_free(o->regions);
  *o = (ax_act_objects){0};
}

/* The act, its touches copied into the record's pool. */
static ax_status copy_act(ax_act_record *record, const ax_act *act, const ax_touches *pool, ax_act *out) {
  *out = *act;
  out->touch_first = record->touches.touch_count;
  for (uint32_t i = 0; i < act->touch_count; i++)
    AX_TRY(ax_touches_copy(&record->touches, pool, &pool->touches[act->touch_first + i]));
  return AX_OK;
}

ax_status ax_act_record_step(ax_act_record *record, uint32_t agent, const ax_act *act, const ax_touches *pool) {
  AX_TRY(ax_grow(&record->steps, sizeof record->steps[0], record->step_count, 1, &record->step_capacity));
  ax_act_step *step = &record->steps[record->step_count];
  step->agent = agent;
  AX_TRY(copy_act(record, act, pool, &step->act));
  record->step_count++;
  return AX_OK;
}

ax_status ax_act_record_pending(ax_act_record *record, uint32_t agent, const ax_act *act, const ax_touches *pool) {
  AX_TRY(ax_grow(&record->pending, sizeof record->pending[0], record->pending_count, 1, &record->pending_capacity));
  ax_act_step *step = &record->pending[record->pending_count];
  step->agent = agent;
  AX_TRY(copy_act(record, act, pool, &step->act));
  record->pending_count++;
  return AX_OK;
}

ax_status ax_act_record_fault(ax_act_record *record, const ax_act_fault *fault) {
  assert(record->step_count > 0);
  AX_TRY(ax_grow(&record->faults, sizeof record->faults[0], record->fault_count, 1, &record->fault_capacity));
  record->faults[record->fault_count++] = (ax_act_noted){record->step_count - 1, *fault};
  return AX_OK;
}

void ax_act_record_deinit(ax_act_record *record) {
  ax_act_objects_deinit(&record->objects);
  ax_touches_deinit(&record->touches);
  ax_free(record->steps);
  ax_free(record->pending);
  ax_free(record->faults);
  *record = (ax_act_record){0};
}

bool ax_act_has_effect(const ax_act *act) {
  return (act->kind == AX_ACT_SIGNAL && act->amount > 0) || act->kind == AX_ACT_ARRIVE ||
         (act->kind == AX_ACT_LOCAL && act->touch_count > 0);
}
