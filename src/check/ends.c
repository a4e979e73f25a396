/* Searches backwards from the ends: a state that is not met cannot reach an end. States get numbers, so that steps can be listed by
   the state they lead to. */
#include "check/ends.h"

#include <stdlib.h>
#include <string.h>

ax_status ax_ends_add_step(ax_ends *e, uint64_t from, uint64_t to, uint32_t agent) {
  AX_TRY(ax_grow(&e->steps, sizeof e->steps[0], e->step_count, 1, &e->step_capacity));
  e->steps[e->step_count++] = (ax_ends_step){from, to, agent};
  return AX_OK;
}

ax_status ax_ends_add(ax_ends *e, uint64_t state) {
  AX_TRY(ax_grow(&e->ends, sizeof e->ends[0], e->end_count, 1, &e->end_capacity));
  e->ends[e->end_count++] = state;
  return AX_OK;
}

void ax_ends_clear(ax_ends *e) { e->step_count = e->end_count = 0; }

void ax_ends_deinit(ax_ends *e) {
  ax_free(e->steps);
  ax_free(e->ends);
  *e = (ax_ends){0};
}

typedef struct link { /* of a list of steps: from a state to another, either way round */
  uint32_t state, other, step;
} link;

typedef struct graph {
  const ax_ends *e;
  uint64_t *states; /* ascending */
  uint32_t count;
  link *after, *before;                                /* steps by where they come from; by where they lead */
  uint32_t *first_after, *first_before, *queue, *came; /* came: the step by which a state was met */
  bool *met;
} graph;

static int by_word(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static int by_state(const void *a, const void *b) {
  const link *x = a, *y = b;
  if (x->state != y->state) return x->state < y->state ? -1 : 1;
  return x->step < y->step ? -1 : x->step > y->step;
}

static uint32_t number_of(const graph *g, uint64_t state) {
  const uint64_t *found = bsearch(&state, g->states, g->count, sizeof state, by_word);
  return (uint32_t)(found - g->states);
}

static void list_steps(link *links, uint32_t *first, uint32_t steps, uint32_t states) {
  if (steps > 0) qsort(links, steps, sizeof links[0], by_state);
  for (uint32_t k = 0; k < steps; k++) first[links[k].state + 1]++;
  for (uint32_t s = 0; s < states; s++) first[s + 1] += first[s];
}

static ax_status build(graph *g, uint64_t start) {
  const ax_ends *e = g->e;
  const size_t most = 2 * (size_t)e->step_count + e->end_count + 1;
  uint32_t kept = 0;
  g->states = ax_alloc(most * sizeof g->states[0]);
  g->after = ax_alloc(((size_t)e->step_count + 1) * sizeof g->after[0]);
  g->before = ax_alloc(((size_t)e->step_count + 1) * sizeof g->before[0]);
  g->first_after = ax_calloc(most + 1, sizeof g->first_after[0]);
  g->first_before = ax_calloc(most + 1, sizeof g->first_before[0]);
  g->queue = ax_alloc(most * sizeof g->queue[0]);
  g->came = ax_alloc(most * sizeof g->came[0]);
  g->met = ax_calloc(most, sizeof g->met[0]);
  if (g->states == NULL || g->after == NULL || g->before == NULL || g->first_after == NULL || g->first_before == NULL ||
      g->queue == NULL || g->came == NULL || g->met == NULL)
    return ax_out_of_memory(most * sizeof g->states[0]);
  for (uint32_t k = 0; k < e->step_count; k++) g->states[g->count++] = e->steps[k].from, g->states[g->count++] = e->steps[k].to;
  for (uint32_t k = 0; k < e->end_count; k++) g->states[g->count++] = e->ends[k];
  g->states[g->count++] = start;
  qsort(g->states, g->count, sizeof g->states[0], by_word);
  for (uint32_t k = 0; k < g->count; k++)
    if (kept == 0 || g->states[kept - 1] != g->states[k]) g->states[kept++] = g->states[k];
  g->count = kept;
  for (uint32_t k = 0; k < e->step_count; k++) {
    const uint32_t from = number_of(g, e->steps[k].from), to = number_of(g, e->steps[k].to);
    g->after[k] = (link){from, to, k};
    g->before[k] = (link){to, from, k};
  }
  list_steps(g->after, g->first_after, e->step_count, g->count);
  list_steps(g->before, g->first_before, e->step_count, g->count);
  return AX_OK;
}

/* All that links lead to from the `count` states in the queue, in order; how many they are. */
static uint32_t spread(graph *g, const link *links, const uint32_t *first, uint32_t count) {
  for (uint32_t k = 0; k < count; k++) {
    const uint32_t state = g->queue[k];
    for (uint32_t i = first[state]; i < first[state + 1]; i++) {
      if (g->met[links[i].other]) continue;
      g->met[links[i].other] = true;
      g->came[links[i].other] = links[i].step;
      g->queue[count++] = links[i].other;
    }
  }
  return count;
}

/* Forward from `start`, met afresh; the last state. */
static uint32_t spread_from(graph *g, uint32_t start) {
  memset(g->met, 0, g->count * sizeof g->met[0]);
  g->met[start] = true;
  g->queue[0] = start;
  return g->queue[spread(g, g->after, g->first_after, 1) - 1];
}

static ax_status add_way(const graph *g, uint32_t from, uint32_t to, ax_interleaving *schedule) {
  const uint32_t begin = schedule->count;
  for (uint32_t at = to; at != from; at = number_of(g, g->e->steps[g->came[at]].from))
    AX_TRY(ax_interleaving_add(schedule, g->e->steps[g->came[at]].agent));
  for (uint32_t i = begin, k = schedule->count; i + 1 < k; i++, k--) {
    const uint32_t agent = schedule->agents[i];
    schedule->agents[i] = schedule->agents[k - 1];
    schedule->agents[k - 1] = agent;
  }
  return AX_OK;
}

/* As far as others go: to where agents only go round. */
static ax_status find(graph *g, uint64_t first, bool *found, ax_interleaving *schedule) {
  uint32_t ends = 0;
  for (uint32_t k = 0; k < g->e->end_count; k++) {
    const uint32_t state = number_of(g, g->e->ends[k]);
    if (!g->met[state]) g->queue[ends++] = state;
    g->met[state] = true;
  }
  uint32_t state = 0;
  (void)spread(g, g->before, g->first_before, ends);
  while (state < g->count && g->met[state]) state++;
  *found = state < g->count;
  if (!*found) return AX_OK;
  const uint32_t start = number_of(g, first);
  (void)spread_from(g, start);
  AX_TRY(add_way(g, start, state, schedule));
  const uint32_t last = spread_from(g, state);
  return add_way(g, state, last, schedule);
}

ax_status ax_ends_missing(ax_ends *e, uint64_t first, bool *found, ax_interleaving *schedule) {
  graph g = {.e = e};
  *found = false;
  ax_status status = build(&g, first);
  if (status == AX_OK) status = find(&g, first, found, schedule);
  void *memory[] = {g.states, g.after, g.before, g.first_after, g.first_before, g.queue, g.came, g.met};
  for (uint32_t k = 0; k < AX_COUNT(memory); k++) ax_free(memory[k]);
  return status;
}
