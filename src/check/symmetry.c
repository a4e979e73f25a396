/* A symmetry of a game: a permutation of its agents such that each does what the one does whose place it takes, to objects that
   correspond. It maps runs to runs, so where others get while one is held follows from where they get while another of its cycle
   is.

   Memory plays no part: the game has none. So it does not matter that device 3 reads another slice than device 2. */
#include "check/symmetry.h"

#include <string.h>

typedef struct matcher {
  const ax_game *g;
  uint32_t *agents, *semaphores, *barriers; /* what each becomes; AX_NONE */
  bool *taken, *semaphore_taken, *barrier_taken;
  uint32_t *queue, count; /* agents whose image is known */
} matcher;

static bool bind(uint32_t *map, bool *taken, uint32_t from, uint32_t to) {
  if (map[from] != AX_NONE) return map[from] == to;
  if (taken[to]) return false;
  map[from] = to;
  taken[to] = true;
  return true;
}

static bool bind_agent(matcher *m, uint32_t from, uint32_t to) {
  if (m->agents[from] == AX_NONE) m->queue[m->count++] = from;
  return bind(m->agents, m->taken, from, to);
}

static bool bind_object(matcher *m, const ax_game_act *t, const ax_game_act *u) {
  const ax_act_objects *o = &m->g->record->objects;
  switch (t->kind) {
    case AX_ACT_SIGNAL:
    case AX_ACT_WAIT:
    case AX_ACT_READ:
      return o->semaphores[t->object].initial == o->semaphores[u->object].initial &&
             bind(m->semaphores, m->semaphore_taken, t->object, u->object);
    case AX_ACT_ARRIVE:
    case AX_ACT_AWAIT:
      return o->barriers[t->object].arrivals == o->barriers[u->object].arrivals &&
             bind(m->barriers, m->barrier_taken, t->object, u->object);
    case AX_ACT_START:
    case AX_ACT_JOIN:
      return bind_agent(m, t->object, u->object);
    default:
      return true;
  }
}

static bool match(matcher *m, uint32_t from) {
  const ax_game *g = m->g;
  uint32_t to = m->agents[from];
  if (ax_game_acts(g, from) != ax_game_acts(g, to) || g->done[from] != g->done[to]) return false;
  if (g->record->objects.agents[from].initial != g->record->objects.agents[to].initial) return false;
  for (uint32_t k = 0; k < ax_game_acts(g, from); k++) {
    const ax_game_act *t = ax_game_token(g, from, k), *u = ax_game_token(g, to, k);
    if (t->kind != u->kind || t->amount != u->amount || t->ordered != u->ordered || (t->ordered && t->turn != u->turn))
      return false;
    if (!bind_object(m, t, u)) return false;
  }
  return true;
}

static bool match_all(matcher *m, const uint32_t *turned) {
  uint32_t agents = m->g->agent_count;
  for (uint32_t a = 0; a < agents; a++) {
    if (!m->g->record->objects.agents[a].initial) continue;
    if (turned[a] >= agents || !bind_agent(m, a, turned[a])) return false;
  }
  for (uint32_t k = 0; k < m->count; k++)
    if (!match(m, m->queue[k])) return false;
  for (uint32_t a = 0; a < agents; a++) /* that were never started: each for itself */
    if (m->agents[a] == AX_NONE && (ax_game_acts(m->g, a) > 0 || !bind(m->agents, m->taken, a, a))) return false;
  return true;
}

/* The permutation as cycles; NULL: each agent for itself. */
static ax_status make_cycles(const uint32_t *agents, uint32_t count, ax_symmetry *out) {
  out->cycle = ax_alloc(count * sizeof out->cycle[0]);
  out->place = ax_calloc(count, sizeof out->place[0]);
  out->first = ax_calloc((size_t)count + 1, sizeof out->first[0]);
  out->member = ax_alloc(count * sizeof out->member[0]);
  if (out->cycle == NULL || out->place == NULL || out->first == NULL || out->member == NULL) return ax_out_of_memory(0);
  memset(out->cycle, 0xff, count * sizeof out->cycle[0]);
  for (uint32_t a = 0, members = 0; a < count; a++) {
    if (out->cycle[a] != AX_NONE) continue;
    for (uint32_t b = a; out->cycle[b] == AX_NONE; b = agents != NULL ? agents[b] : b) {
      out->cycle[b] = out->cycle_count;
      out->place[b] = members - out->first[out->cycle_count];
      out->member[members++] = b;
    }
    out->first[++out->cycle_count] = members;
  }
  return AX_OK;
}

static bool *no_marks(uint32_t count) { return ax_calloc(count, sizeof(bool)); }

static uint32_t *no_map(uint32_t count) {
  uint32_t *map = ax_alloc(count * sizeof map[0]);
  if (map != NULL) memset(map, 0xff, count * sizeof map[0]);
  return map;
}

ax_status ax_symmetry_find(const ax_game *game, const uint32_t *turned, ax_symmetry *out, bool *found) {
  const ax_act_objects *o = &game->record->objects;
  *found = false;
  *out = (ax_symmetry){0};
  if (turned == NULL) return make_cycles(NULL, game->agent_count, out);
  matcher m = {.g = game,
               .agents = no_map(game->agent_count),
               .semaphores = no_map(o->semaphore_count),
               .barriers = no_map(o->barrier_count),
               .taken = no_marks(game->agent_count),
               .semaphore_taken = no_marks(o->semaphore_count),
               .barrier_taken = no_marks(o->barrier_count),
               .queue = no_map(game->agent_count)};
  ax_status status = AX_OK;
  if (m.agents == NULL || m.semaphores == NULL || m.barriers == NULL || m.taken == NULL || m.semaphore_taken == NULL ||
      m.barrier_taken == NULL || m.queue == NULL)
    status = ax_out_of_memory(0);
  if (status == AX_OK) *found = match_all(&m, turned);
  if (status == AX_OK) status = make_cycles(*found ? m.agents : NULL, game->agent_count, out);
  void *all[] = {m.agents, m.semaphores, m.barriers, m.taken, m.semaphore_taken, m.barrier_taken, m.queue};
  for (uint32_t k = 0; k < AX_COUNT(all); k++) ax_free(all[k]);
  return status;
}

void ax_symmetry_deinit(ax_symmetry *s) {
  ax_free(s->cycle);
  ax_free(s->place);
  ax_free(s->first);
  ax_free(s->member);
  *s = (ax_symmetry){0};
}
