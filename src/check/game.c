/* The token game. One step costs a few instructions, and wakes only whoever may wait for just this: an agent is looked at when a
   semaphore is signalled that it waits on next of all, not whenever anybody goes on. Steps are undone by doing them backwards. */
#include "check/game.h"

#include <stdlib.h>
#include <string.h>

bool ax_game_enabled(const ax_game *g, uint32_t agent) {
  uint32_t at = g->at[agent];
  if (!g->started[agent] || at >= ax_game_acts(g, agent)) return false;
  const ax_game_act *t = ax_game_token(g, agent, at);
  switch (t->kind) {
    case AX_ACT_WAIT:
      return g->count[t->object] >= t->amount && (!t->ordered || g->turns[t->object] == t->turn);
    case AX_ACT_AWAIT:
      return g->arrivals[t->object] >= t->amount * g->record->objects.barriers[t->object].arrivals;
    case AX_ACT_JOIN:
      return g->at[t->object] >= t->amount;
    default:
      return true;
  }
}

static void push(ax_game *g, uint32_t agent) {
  if (g->queued[agent]) return;
  g->queued[agent] = true;
  g->queue[g->queue_count++] = agent;
}

static void wake(ax_game *g, const ax_lists *lists, uint32_t list, uint32_t but) {
  for (uint32_t k = lists->first[list]; k < lists->first[list + 1]; k++)
    if (lists->item[k] != but) push(g, lists->item[k]);
}

/* After a change of a semaphore: only the wait that comes next of all may be possible now. */
static void wake_next(ax_game *g, uint32_t semaphore, uint32_t but) {
  const uint32_t next = g->order.first[semaphore] + g->turns[semaphore];
  if (g->out_of_order[semaphore])
    wake(g, &g->waiters, semaphore, but);
  else if (next < g->order.first[semaphore + 1] && g->order.item[next] != but)
    push(g, g->order.item[next]);
}

static void go_on(ax_game *g, uint32_t agent) {
  const ax_game_act *t = ax_game_token(g, agent, g->at[agent]);
  switch (t->kind) {
    case AX_ACT_SIGNAL:
      if (t->free) break;
      g->count[t->object] += t->amount;
      wake_next(g, t->object, agent);
      break;
    case AX_ACT_WAIT:
      if (t->free) break;
      g->count[t->object] -= t->amount;
      g->turns[t->object]++;
      if (t->ordered) wake_next(g, t->object, agent);
      break;
    case AX_ACT_ARRIVE:
      if (++g->arrivals[t->object] % g->record->objects.barriers[t->object].arrivals == 0) wake(g, &g->awaiters, t->object, agent);
      break;
    case AX_ACT_START:
      g->started[t->object] = true;
      push(g, t->object);
      break;
    default:
      break;
  }
  g->at[agent]++;
  g->trail[g->trail_count++] = agent;
  g->steps++;
  wake(g, &g->joiners, agent, agent);
}

void ax_game_run(ax_game *g) {
  while (g->queue_count > 0) {
    uint32_t agent = g->queue[--g->queue_count];
    g->queued[agent] = false;
    while (g->at[agent] < g->limit[agent] && ax_game_enabled(g, agent)) go_on(g, agent);
  }
}

void ax_game_run_in_order(ax_game *g) {
  const ax_act_record *r = g->record;
  for (uint32_t before = g->trail_count + 1; before != g->trail_count;) {
    before = g->trail_count;
    for (uint32_t s = 0; s < r->step_count; s++) {
      uint32_t agent = r->steps[s].agent;
      if (g->at[agent] == g->position[s] && g->at[agent] < g->limit[agent] && ax_game_enabled(g, agent)) go_on(g, agent);
    }
  }
}

static void go_back(ax_game *g, uint32_t agent) {
  const ax_game_act *t = ax_game_token(g, agent, --g->at[agent]);
  if (t->kind == AX_ACT_SIGNAL && !t->free) g->count[t->object] -= t->amount;
  if (t->kind == AX_ACT_WAIT && !t->free) g->count[t->object] += t->amount, g->turns[t->object]--;
  if (t->kind == AX_ACT_ARRIVE) g->arrivals[t->object]--;
  if (t->kind == AX_ACT_START) g->started[t->object] = false;
}

void ax_game_undo(ax_game *g, uint32_t trail_count) {
  assert(g->queue_count == 0);
  while (g->trail_count > trail_count) go_back(g, g->trail[--g->trail_count]);
}

static void take(ax_game *g, uint32_t agent) {
  if (g->is_taken[agent]) return;
  g->is_taken[agent] = true;
  g->taken[g->taken_count++] = agent;
}

static void take_all(ax_game *g, const ax_lists *lists, uint32_t list) {
  for (uint32_t k = lists->first[list]; k < lists->first[list + 1]; k++) take(g, lists->item[k]);
}

static void take_dependent(ax_game *g, uint32_t agent) {
  take_all(g, &g->joiners, agent);
  for (uint32_t k = 0; k < g->done[agent]; k++) {
    const ax_game_act *t = ax_game_token(g, agent, k);
    if ((t->kind == AX_ACT_SIGNAL && !t->free) || (t->kind == AX_ACT_WAIT && t->ordered)) take_all(g, &g->waiters, t->object);
    if (t->kind == AX_ACT_ARRIVE) take_all(g, &g->awaiters, t->object);
    if (t->kind == AX_ACT_START) take(g, t->object);
  }
}

bool ax_game_find_dependent(ax_game *g, uint32_t agent, uint64_t most) {
  uint64_t acts = 0;
  g->taken_count = 0;
  take(g, agent);
  for (uint32_t k = 0; k < g->taken_count && acts <= most; k++) {
    acts += g->done[g->taken[k]];
    if (acts <= most) take_dependent(g, g->taken[k]);
  }
  for (uint32_t k = 0; k < g->taken_count; k++) g->is_taken[g->taken[k]] = false;
  return acts <= most;
}

void ax_game_take_back(ax_game *g, uint32_t agent) {
  assert(g->queue_count == 0);
  for (uint32_t k = 0; k < g->taken_count; k++)
    while (g->at[g->taken[k]] > 0) go_back(g, g->taken[k]);
  g->trail_count = 0;
  for (uint32_t k = g->taken_count; k-- > 0;)
    if (g->started[g->taken[k]]) push(g, g->taken[k]);
  g->limit[agent] = 0;
}

void ax_game_hold(ax_game *g, uint32_t agent, uint32_t position) {
  g->limit[agent] = position < g->done[agent] ? position : g->done[agent];
  push(g, agent);
}

void ax_game_reset(ax_game *g) {
  const ax_act_objects *o = &g->record->objects;
  g->queue_count = g->trail_count = 0;
  memset(g->at, 0, g->agent_count * sizeof g->at[0]);
  memset(g->queued, 0, g->agent_count * sizeof g->queued[0]);
  memset(g->turns, 0, o->semaphore_count * sizeof g->turns[0]);
  memset(g->arrivals, 0, o->barrier_count * sizeof g->arrivals[0]);
  for (uint32_t s = 0; s < o->semaphore_count; s++) g->count[s] = o->semaphores[s].initial;
  for (uint32_t a = 0; a < g->agent_count; a++) {
    g->limit[a] = g->done[a];
    g->started[a] = o->agents[a].initial;
  }
  for (uint32_t a = g->agent_count; a-- > 0;)
    if (g->started[a]) push(g, a);
}

/* --- From a record --- */

static uint32_t object_count(const ax_act_objects *o, ax_act_kind kind) {
  switch (kind) {
    case AX_ACT_SIGNAL:
    case AX_ACT_WAIT:
    case AX_ACT_READ:
      return o->semaphore_count;
    case AX_ACT_ARRIVE:
    case AX_ACT_AWAIT:
      return o->barrier_count;
    case AX_ACT_START:
    case AX_ACT_JOIN:
      return o->agent_count;
    default:
      return UINT32_MAX;
  }
}

static ax_status check_step(const ax_act_record *r, const ax_act_step *step, uint32_t number) {
  const ax_act *act = &step->act;
  if (step->agent >= r->objects.agent_count)
    return ax_error(AX_INVALID_ARGUMENT, "step %u: there is no agent %u", number, step->agent);
  if (act->kind == AX_ACT_NONE || (uint32_t)act->kind > AX_ACT_JOIN || act->amount < 0)
    return ax_error(AX_INVALID_ARGUMENT, "step %u: %s of %lld is not an act", number, ax_act_kind_name(act->kind),
                    (long long)act->amount);
  if (act->kind != AX_ACT_LOCAL && act->object >= object_count(&r->objects, act->kind))
    return ax_error(AX_INVALID_ARGUMENT, "step %u: there is no object %u to %s", number, act->object, ax_act_kind_name(act->kind));
  return AX_OK;
}

static ax_status place_tokens(ax_game *g) {
  const ax_act_record *r = g->record;
  uint32_t total = r->step_count + r->pending_count;
  for (uint32_t s = 0; s < total; s++) {
    const ax_act_step *step = ax_game_step(g, s);
    AX_TRY(check_step(r, step, s));
    g->first[step->agent + 1]++;
    if (s < r->step_count) g->done[step->agent]++;
  }
  for (uint32_t a = 0; a < g->agent_count; a++) {
    if (g->first[a + 1] > g->done[a] + 1)
      return ax_error(AX_INVALID_ARGUMENT, "%s has %u acts that are pending", r->objects.agents[a].name,
                      g->first[a + 1] - g->done[a]);
    g->first[a + 1] += g->first[a];
  }
  for (uint32_t s = 0; s < total; s++) {
    const ax_act_step *step = ax_game_step(g, s);
    g->position[s] = g->at[step->agent]++; /* not the state yet: how many are placed */
    g->tokens[g->first[step->agent] + g->position[s]] =
        (ax_game_act){.kind = step->act.kind, .object = step->act.object, .amount = step->act.amount, .step = s};
    if (step->act.kind != AX_ACT_START || s >= r->step_count) continue;
    uint32_t begun = step->act.object;
    if (g->starter[begun] != AX_NONE || r->objects.agents[begun].initial)
      return ax_error(AX_INVALID_ARGUMENT, "step %u: %s is started twice", s, r->objects.agents[begun].name);
    g->starter[begun] = step->agent;
    g->start[begun] = g->position[s];
  }
  return AX_OK;
}

typedef struct entry { /* of lists: an item of a list */
  uint32_t list, item;
} entry;

static int by_list(const void *a, const void *b) {
  const entry *x = a, *y = b;
  if (x->list != y->list) return x->list < y->list ? -1 : 1;
  return x->item < y->item ? -1 : x->item > y->item;
}

/* Lists, for each object, the agents that do acts of this kind. */
static ax_status make_lists(const ax_game *g, ax_act_kind kind, uint32_t list_count, ax_lists *out) {
  uint32_t total = g->first[g->agent_count], count = 0, kept = 0;
  entry *entries = ax_alloc(total * sizeof entries[0]);
  out->first = ax_calloc((size_t)list_count + 1, sizeof out->first[0]);
  out->item = ax_alloc(total * sizeof out->item[0]);
  ax_status status = entries == NULL || out->first == NULL || out->item == NULL ? ax_out_of_memory(0) : AX_OK;
  if (status != AX_OK) goto cleanup;
  for (uint32_t a = 0; a < g->agent_count; a++)
    for (uint32_t k = g->first[a]; k < g->first[a + 1]; k++)
      if (g->tokens[k].kind == kind) entries[count++] = (entry){g->tokens[k].object, a};
  if (count > 0) qsort(entries, count, sizeof entries[0], by_list);
  for (uint32_t k = 0; k < count; k++) {
    if (k > 0 && by_list(&entries[k - 1], &entries[k]) == 0) continue;
    out->first[entries[k].list + 1]++;
    out->item[kept++] = entries[k].item;
  }
  for (uint32_t l = 0; l < list_count; l++) out->first[l + 1] += out->first[l];
cleanup:
  ax_free(entries);
  return status;
}

/* Waits of several agents on one semaphore take turns as they did; pending waits come after all, without turns among themselves. */
static ax_status order_waits(ax_game *g) {
  const ax_act_record *r = g->record;
  memset(g->turns, 0, r->objects.semaphore_count * sizeof g->turns[0]);
  for (uint32_t s = 0; s < r->step_count + r->pending_count; s++) {
    const ax_act_step *step = ax_game_step(g, s);
    if (step->act.kind != AX_ACT_WAIT) continue;
    uint32_t object = step->act.object;
    ax_game_act *t = &g->tokens[g->first[step->agent] + g->position[s]];
    t->ordered = g->waiters.first[object + 1] - g->waiters.first[object] > 1;
    t->turn = g->turns[object];
    if (s < r->step_count) g->turns[object]++;
  }
  const uint32_t count = r->objects.semaphore_count;
  g->order = (ax_lists){ax_calloc((size_t)count + 1, sizeof(uint32_t)), ax_alloc(((size_t)r->step_count + 1) * sizeof(uint32_t))};
  if (g->order.first == NULL || g->order.item == NULL) return ax_out_of_memory(r->step_count);
  for (uint32_t k = 0; k < count; k++) g->order.first[k + 1] = g->order.first[k] + g->turns[k];
  for (uint32_t s = 0; s < r->step_count; s++) {
    const ax_game_act *t = ax_game_token(g, r->steps[s].agent, g->position[s]);
    if (t->kind == AX_ACT_WAIT) g->order.item[g->order.first[t->object] + t->turn] = r->steps[s].agent;
  }
  return AX_OK;
}

/* The record is a run of its own game. */
static ax_status replay(ax_game *g) {
  const ax_act_record *r = g->record;
  ax_game_reset(g);
  for (uint32_t s = 0; s < r->step_count; s++) {
    uint32_t agent = r->steps[s].agent;
    if (!ax_game_enabled(g, agent))
      return ax_error(AX_INVALID_ARGUMENT, "step %u: %s cannot %s %u", s, r->objects.agents[agent].name,
                      ax_act_kind_name(r->steps[s].act.kind), r->steps[s].act.object);
    go_on(g, agent);
  }
  g->complete = true;
  for (uint32_t k = 0; k < r->pending_count; k++) g->complete = g->complete && !ax_game_enabled(g, r->pending[k].agent);
  return AX_OK;
}

static ax_status allocate(ax_game *g) {
  const ax_act_record *r = g->record;
  const ax_act_objects *o = &r->objects;
  uint32_t total = r->step_count + r->pending_count;
  g->tokens = ax_calloc(total, sizeof g->tokens[0]);
  g->first = ax_calloc((size_t)g->agent_count + 1, sizeof g->first[0]);
  g->done = ax_calloc(g->agent_count, sizeof g->done[0]);
  g->position = ax_calloc(total, sizeof g->position[0]);
  g->starter = ax_alloc(g->agent_count * sizeof g->starter[0]);
  g->start = ax_calloc(g->agent_count, sizeof g->start[0]);
  g->at = ax_calloc(g->agent_count, sizeof g->at[0]);
  g->limit = ax_calloc(g->agent_count, sizeof g->limit[0]);
  g->started = ax_calloc(g->agent_count, sizeof g->started[0]);
  g->queued = ax_calloc(g->agent_count, sizeof g->queued[0]);
  g->queue = ax_calloc(g->agent_count, sizeof g->queue[0]);
  g->count = ax_calloc(o->semaphore_count, sizeof g->count[0]);
  g->turns = ax_calloc(o->semaphore_count, sizeof g->turns[0]);
  g->out_of_order = ax_calloc((size_t)o->semaphore_count + 1, sizeof g->out_of_order[0]);
  g->arrivals = ax_calloc(o->barrier_count, sizeof g->arrivals[0]);
  g->trail = ax_calloc(total, sizeof g->trail[0]);
  g->taken = ax_calloc(g->agent_count, sizeof g->taken[0]);
  g->is_taken = ax_calloc(g->agent_count, sizeof g->is_taken[0]);
  if (g->tokens == NULL || g->first == NULL || g->done == NULL || g->position == NULL || g->starter == NULL || g->start == NULL ||
      g->at == NULL || g->limit == NULL || g->started == NULL || g->queued == NULL || g->queue == NULL || g->count == NULL ||
      g->turns == NULL || g->out_of_order == NULL || g->arrivals == NULL || g->trail == NULL || g->taken == NULL ||
      g->is_taken == NULL)
    return ax_out_of_memory(0);
  for (uint32_t a = 0; a < g->agent_count; a++) g->starter[a] = AX_NONE;
  return AX_OK;
}

static ax_status build(ax_game *g) {
  const ax_act_objects *o = &g->record->objects;
  AX_TRY(allocate(g));
  AX_TRY(place_tokens(g));
  AX_TRY(make_lists(g, AX_ACT_WAIT, o->semaphore_count, &g->waiters));
  AX_TRY(make_lists(g, AX_ACT_AWAIT, o->barrier_count, &g->awaiters));
  AX_TRY(make_lists(g, AX_ACT_JOIN, o->agent_count, &g->joiners));
  AX_TRY(order_waits(g));
  return replay(g);
}

ax_status ax_game_create(const ax_act_record *record, ax_game **out) {
  *out = NULL;
  ax_game *g = ax_calloc(1, sizeof *g);
  if (g == NULL) return ax_out_of_memory(sizeof *g);
  g->record = record;
  g->agent_count = record->objects.agent_count;
  ax_status status = build(g);
  if (status == AX_OK)
    *out = g;
  else
    ax_game_destroy(g);
  return status;
}

static void free_lists(ax_lists *lists) {
  ax_free(lists->first);
  ax_free(lists->item);
}

void ax_game_destroy(ax_game *g) {
  if (g == NULL) return;
  free_lists(&g->waiters);
  free_lists(&g->awaiters);
  free_lists(&g->joiners);
  free_lists(&g->order);
  void *all[] = {g->tokens,  g->first,  g->done,  g->position, g->starter, g->start,    g->at,   g->limit,
                 g->started, g->queued, g->queue, g->count,    g->turns,   g->arrivals, g->trail, g->out_of_order,
                 g->taken,   g->is_taken};
  for (uint32_t k = 0; k < AX_COUNT(all); k++) ax_free(all[k]);
  ax_free(g);
}
