/* Rounds that repeat themselves.

   A transfer that is alone on the links, in a phase of equal steps, ends up in a round: after some steps everything is as it was, but that
   all steps are so many further and all times so much later. Then the next rounds are the same, up to the end of the phase, or until
   something else happens (a device comes to its next transfer). A state is: where each agent is beside the leader, what is on its
   way, and how long links are taken. States are kept at steps 1, 2, 4, 8, .. and compared with those that follow (Brent, 1980), so a round of any
   length is found, in a small multiple of the time that one takes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/state.h"

enum { most_images = 1 << 14, least_steps = 8 };

typedef struct ax_steady {
  double *kept, *now;  /* states */
  double *link_bytes;  /* when the state was kept */
  ax_event *events;    /* of the transfer, in an order of their own */
  uint32_t kept_count, now_count, kept_capacity, now_capacity, event_count, event_capacity;
  bool valid;
  uint32_t transfer, phase;
  int64_t run, step, since, window;
  double time, messages, outside; /* outside: when something else happens */
} ax_steady;

ax_steady *ax_steady_create(void) { return ax_calloc(1, sizeof(ax_steady)); }

void ax_steady_destroy(ax_steady *s) {
  if (s == NULL) return;
  ax_free(s->kept);
  ax_free(s->now);
  ax_free(s->link_bytes);
  ax_free(s->events);
  ax_free(s);
}

/* --- The state --- */

static ax_status add(ax_steady *s, double value) {
  AX_TRY(ax_grow(&s->now, sizeof s->now[0], s->now_count, 1, &s->now_capacity));
  s->now[s->now_count++] = value;
  return AX_OK;
}

static int by_agent(const void *x, const void *y) {
  const ax_event *a = x, *b = y;
  if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
  if (a->chain != b->chain) return a->chain < b->chain ? -1 : 1;
  if (a->image != b->image) return a->image < b->image ? -1 : 1;
  return a->time < b->time ? -1 : a->time > b->time;
}

/* False in *whole: an agent is in another phase, or a message is for one. */
static ax_status add_agents(const ax_engine *e, ax_steady *s, const ax_agent *leader, bool *whole) {
  const ax_procedure *procedure = &e->work->transfers[e->leader].procedure;
  for (uint32_t c = 0; c < procedure->chain_count && *whole; c++)
    for (uint32_t i = 0; i < e->images && *whole; i++) {
      const ax_agent *a = ax_agent_at(e, e->leader, c, i);
      *whole = a->active && a->phase == leader->phase && a->early == 0;
      AX_TRY(add(s, (double)(a->step - leader->step)));
      AX_TRY(add(s, (double)a->sent));
      AX_TRY(add(s, (double)(a->got - a->step * a->to_get)));
    }
  return AX_OK;
}

static ax_status add_events(const ax_engine *e, ax_steady *s, bool *whole) {
  s->outside = INFINITY;
  s->event_count = 0;
  for (uint32_t i = 0; i < e->heap_count && *whole; i++) {
    const ax_event *event = &e->heap[i];
    const bool inside = event->kind >= AX_EVENT_SEND && event->transfer == e->leader;
    if (!inside && event->time < s->outside) s->outside = event->time;
    if (!inside) continue;
    *whole = event->kind == AX_EVENT_SEND || event->key == ax_agent_at(e, event->transfer, event->chain, event->image)->key;
    AX_TRY(ax_grow(&s->events, sizeof s->events[0], s->event_count, 1, &s->event_capacity));
    s->events[s->event_count++] = *event;
  }
  if (s->event_count > 0) qsort(s->events, s->event_count, sizeof s->events[0], by_agent);
  for (uint32_t i = 0; i < s->event_count && *whole; i++) {
    AX_TRY(add(s, (double)s->events[i].kind));
    AX_TRY(add(s, (double)s->events[i].image));
    AX_TRY(add(s, s->events[i].time - e->time));
  }
  return AX_OK;
}

static ax_status take_state(const ax_engine *e, ax_steady *s, const ax_agent *leader, bool *whole) {
  const int64_t links = ax_place_links(e->place);
  *whole = true;
  s->now_count = 0;
  AX_TRY(add_agents(e, s, leader, whole));
  AX_TRY(add_events(e, s, whole));
  for (int64_t l = 0; l < links && *whole; l++) AX_TRY(add(s, e->free[l] > e->time ? e->free[l] - e->time : 0));
  return AX_OK;
}

static ax_status keep(const ax_engine *e, ax_steady *s, const ax_agent *leader) {
  const size_t bytes = (size_t)ax_place_links(e->place) * sizeof s->link_bytes[0];
  double *other = s->kept;
  const uint32_t capacity = s->kept_capacity;
  if (s->link_bytes == NULL && (s->link_bytes = ax_alloc(bytes)) == NULL) return ax_out_of_memory(bytes);
  memcpy(s->link_bytes, e->result->link_bytes, bytes);
  s->kept = s->now;
  s->kept_count = s->now_count;
  s->kept_capacity = s->now_capacity;
  s->now = other;
  s->now_capacity = capacity;
  s->step = leader->step;
  s->time = e->time;
  s->messages = e->result->messages;
  s->since = 0;
  return AX_OK;
}

static bool is_same(const ax_engine *e, const ax_steady *s) {
  return e->time > s->time && s->kept_count == s->now_count && memcmp(s->kept, s->now, s->now_count * sizeof s->now[0]) == 0;
}

/* --- Going round --- */

static int by_time(const void *x, const void *y) {
  const ax_event *a = x, *b = y;
  return a->time < b->time ? -1 : a->time > b->time;
}

/* The most rounds that all agents can still do whole. */
static double rounds_left(const ax_engine *e, const ax_steady *s, int64_t steps) {
  const ax_procedure *procedure = &e->work->transfers[e->leader].procedure;
  double most = (s->outside - e->time) / (e->time - s->time) - 1;
  for (uint32_t c = 0; c < procedure->chain_count; c++)
    for (uint32_t i = 0; i < e->images; i++) {
      const ax_agent *a = ax_agent_at(e, e->leader, c, i);
      const int64_t left = (ax_agent_phase(e, a, e->leader, c)->repeat - a->step - 2) / steps;
      most = (double)left < most ? (double)left : most;
    }
  return floor(most);
}

static void repeat(ax_engine *e, const ax_steady *s, double rounds, int64_t steps) {
  const ax_procedure *procedure = &e->work->transfers[e->leader].procedure;
  const int64_t links = ax_place_links(e->place), further = (int64_t)rounds * steps;
  const double later = rounds * (e->time - s->time);
  for (uint32_t c = 0; c < procedure->chain_count; c++)
    for (uint32_t i = 0; i < e->images; i++) {
      ax_agent *a = ax_agent_at(e, e->leader, c, i);
      a->step += further;
      a->got += further * a->to_get;
    }
  for (uint32_t i = 0; i < e->heap_count; i++)
    if (e->heap[i].kind >= AX_EVENT_SEND) e->heap[i].time += later;
  qsort(e->heap, e->heap_count, sizeof e->heap[0], by_time); /* a sorted list is a heap */
  for (int64_t l = 0; l < links; l++) {
    if (e->free[l] > e->time) e->free[l] += later;
    e->result->link_bytes[l] += rounds * (e->result->link_bytes[l] - s->link_bytes[l]);
  }
  e->result->messages += rounds * (e->result->messages - s->messages);
}

ax_status ax_steady_look(ax_engine *e) {
  ax_steady *s = e->steady;
  const ax_agent *leader = ax_agent_at(e, e->leader, 0, 0);
  const int64_t run = e->tables[e->leader].courses[0].runs;
  bool whole;
  if (!leader->active || e->under_way != 1 || e->images > most_images) return AX_OK;
  const ax_phase *phase = ax_agent_phase(e, leader, e->leader, 0);
  if (phase->varied || phase->repeat - leader->step < least_steps) return AX_OK;
  AX_TRY(take_state(e, s, leader, &whole));
  s->valid = s->valid && s->transfer == e->leader && s->phase == leader->phase && s->run == run;
  if (!whole) s->valid = false;
  if (!whole) return AX_OK;
  const int64_t steps = leader->step - s->step;
  if (s->valid && steps > 0 && is_same(e, s)) {
    const double rounds = rounds_left(e, s, steps);
    if (rounds >= 1) repeat(e, s, rounds, steps);
    s->valid = rounds < 1;
    return AX_OK;
  }
  if (s->valid && ++s->since < s->window) return AX_OK;
  s->window = s->valid ? 2 * s->window : 1;
  s->valid = true;
  s->transfer = e->leader;
  s->phase = leader->phase;
  s->run = run;
  return keep(e, s, leader);
}
