/* Rounds that repeat themselves.

   If all transfers are in phases of equal steps, the simulation ends in a round: after some steps the state is the same again,
   except that the steps of each transfer have advanced by some number and all times by some amount. Then the next rounds are the
   same, up to the end of a phase, or until another event (a device reaches its next transfer). A state is: the place of each agent
   relative to the first of its transfer, the messages on their way, and how long links are busy. States are kept at steps 1, 2, 4,
   8, .. of one transfer, the leader, and compared with those that follow (Brent, 1980). So a round of any length is found, in a
   small multiple of its own time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/state.h"

enum { most_images = 1 << 14, least_steps = 8 };

typedef struct ax_sim_steady {
  double *kept, *now;  /* states */
  double *link_bytes;  /* when the state was kept */
  int64_t *steps;      /* by transfer: of its first agent, when the state was kept */
  ax_sim_event *events;    /* of transfers, in an order of their own */
  uint32_t kept_count, now_count, kept_capacity, now_capacity, event_count, event_capacity;
  bool valid, compares;
  int64_t since, window;
  double time, messages, outside; /* outside: when something else happens */
} ax_sim_steady;

ax_sim_steady *ax_sim_steady_create(void) { return ax_calloc(1, sizeof(ax_sim_steady)); }

void ax_sim_steady_destroy(ax_sim_steady *s) {
  if (s == NULL) return;
  ax_free(s->kept);
  ax_free(s->now);
  ax_free(s->link_bytes);
  ax_free(s->steps);
  ax_free(s->events);
  ax_free(s);
}

static uint32_t chains_of(const ax_sim_engine *e, uint32_t transfer) { return e->work->transfers[transfer].procedure.chain_count; }
static bool is_under_way(const ax_sim_engine *e, uint32_t transfer) { return e->tables[transfer].under_way > 0; }

/* The first that is under way. */
static uint32_t leader_of(const ax_sim_engine *e) {
  uint32_t t = 0;
  while (!is_under_way(e, t)) t++;
  return t;
}

/* --- The state --- */

/* False in *whole: the state is compared with the kept one, and differs here. */
static ax_status add(ax_sim_steady *s, double value, bool *whole) {
  if (s->compares && (s->now_count == s->kept_count || s->kept[s->now_count] != value)) *whole = false;
  AX_TRY(ax_grow(&s->now, sizeof s->now[0], s->now_count, 1, &s->now_capacity));
  s->now[s->now_count++] = value;
  return AX_OK;
}

static int by_agent(const void *x, const void *y) {
  const ax_sim_event *a = x, *b = y;
  if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
  if (a->transfer != b->transfer) return a->transfer < b->transfer ? -1 : 1;
  if (a->chain != b->chain) return a->chain < b->chain ? -1 : 1;
  if (a->image != b->image) return a->image < b->image ? -1 : 1;
  return a->time < b->time ? -1 : a->time > b->time;
}

/* False in *whole: an agent is not in a phase of equal steps, or a message has come for another phase. */
static ax_status add_agents(const ax_sim_engine *e, ax_sim_steady *s, uint32_t transfer, bool *whole) {
  const ax_sim_agent *first = ax_sim_agent_at(e, transfer, 0, 0);
  AX_TRY(add(s, (double)transfer, whole));
  AX_TRY(add(s, (double)e->tables[transfer].courses[0].runs, whole));
  AX_TRY(add(s, (double)first->phase, whole));
  for (uint32_t c = 0; c < chains_of(e, transfer) && *whole; c++)
    for (uint32_t i = 0; i < e->images && *whole; i++) {
      const ax_sim_agent *a = ax_sim_agent_at(e, transfer, c, i);
      *whole = a->active && a->phase == first->phase && a->early == 0 && !ax_sim_agent_phase(e, a, transfer, c)->varied;
      AX_TRY(add(s, (double)(a->step - first->step), whole));
      AX_TRY(add(s, (double)a->sent, whole));
      AX_TRY(add(s, (double)(a->got - a->step * (int64_t)a->to_get), whole));
    }
  return AX_OK;
}

static ax_status add_events(const ax_sim_engine *e, ax_sim_steady *s, bool *whole) {
  s->outside = INFINITY;
  s->event_count = 0;
  AX_SIM_QUEUE_EACH(&e->queue, i, queued) {
    const ax_sim_event *event = &queued->event;
    const bool inside = event->kind >= AX_EVENT_SEND;
    if (!inside && event->time < s->outside) s->outside = event->time;
    if (!inside) continue;
    *whole = *whole && (event->kind == AX_EVENT_SEND ||
                        event->key == ax_sim_agent_at(e, event->transfer, event->chain, event->image)->key);
    AX_TRY(ax_grow(&s->events, sizeof s->events[0], s->event_count, 1, &s->event_capacity));
    s->events[s->event_count++] = *event;
  }
  if (s->event_count > 0) qsort(s->events, s->event_count, sizeof s->events[0], by_agent);
  for (uint32_t i = 0; i < s->event_count && *whole; i++) {
    AX_TRY(add(s, (double)s->events[i].kind, whole));
    AX_TRY(add(s, (double)s->events[i].transfer, whole));
    AX_TRY(add(s, (double)s->events[i].image, whole));
    AX_TRY(add(s, s->events[i].time - e->time, whole));
  }
  return AX_OK;
}

/* compares: it ends, not whole, at the first value that differs from the kept state. */
static ax_status take_state(const ax_sim_engine *e, ax_sim_steady *s, bool compares, bool *whole) {
  const int64_t links = ax_sim_place_links(e->place);
  *whole = true;
  s->compares = compares;
  s->now_count = 0;
  for (uint32_t t = 0; t < e->work->transfer_count && *whole; t++)
    if (is_under_way(e, t)) AX_TRY(add_agents(e, s, t, whole));
  if (*whole) AX_TRY(add_events(e, s, whole));
  for (int64_t l = 0; l < links && *whole; l++) AX_TRY(add(s, e->free[l] > e->time ? e->free[l] - e->time : 0, whole));
  return AX_OK;
}

static ax_status keep(const ax_sim_engine *e, ax_sim_steady *s) {
  const size_t steps = e->work->transfer_count * sizeof s->steps[0],
               bytes = (size_t)ax_sim_place_links(e->place) * sizeof s->link_bytes[0];
  double *other = s->kept;
  const uint32_t capacity = s->kept_capacity;
  if (s->link_bytes == NULL && (s->link_bytes = ax_alloc(bytes)) == NULL) return ax_out_of_memory(bytes);
  if (s->steps == NULL && (s->steps = ax_alloc(steps)) == NULL) return ax_out_of_memory(steps);
  for (uint32_t t = 0; t < e->work->transfer_count; t++)
    if (is_under_way(e, t)) s->steps[t] = ax_sim_agent_at(e, t, 0, 0)->step;
  memcpy(s->link_bytes, e->result->link_bytes, bytes);
  s->kept = s->now;
  s->kept_count = s->now_count;
  s->kept_capacity = s->now_capacity;
  s->now = other;
  s->now_capacity = capacity;
  s->time = e->time;
  s->messages = e->result->messages;
  s->since = 0;
  return AX_OK;
}

/* --- Going round --- */

/* Steps of a transfer in a round. */
static int64_t steps_of(const ax_sim_engine *e, const ax_sim_steady *s, uint32_t transfer) {
  return ax_sim_agent_at(e, transfer, 0, 0)->step - s->steps[transfer];
}

/* The state is that which was kept: time and the leader have gone on. */
static bool is_round(const ax_sim_engine *e, const ax_sim_steady *s) {
  return e->time > s->time && s->kept_count == s->now_count && steps_of(e, s, e->leader) > 0;
}

/* The most rounds that all agents can still do whole. */
static double rounds_left(const ax_sim_engine *e, const ax_sim_steady *s) {
  double most = (s->outside - e->time) / (e->time - s->time) - 1;
  for (uint32_t t = 0; t < e->work->transfer_count; t++) {
    const int64_t steps = is_under_way(e, t) ? steps_of(e, s, t) : 0;
    for (uint32_t c = 0; steps > 0 && c < chains_of(e, t); c++)
      for (uint32_t i = 0; i < e->images; i++) {
        const ax_sim_agent *a = ax_sim_agent_at(e, t, c, i);
        const int64_t left = (ax_sim_agent_phase(e, a, t, c)->repeat - a->step - 2) / steps;
        most = (double)left < most ? (double)left : most;
      }
  }
  return floor(most);
}

static void go_further(ax_sim_engine *e, const ax_sim_steady *s, uint32_t transfer, int64_t rounds) {
  const int64_t further = rounds * steps_of(e, s, transfer);
  for (uint32_t c = 0; c < chains_of(e, transfer); c++)
    for (uint32_t i = 0; i < e->images; i++) {
      ax_sim_agent *a = ax_sim_agent_at(e, transfer, c, i);
      a->step += further;
      a->got += further * (int64_t)a->to_get;
    }
}

static ax_status repeat(ax_sim_engine *e, const ax_sim_steady *s, double rounds) {
  const int64_t links = ax_sim_place_links(e->place);
  const double later = rounds * (e->time - s->time);
  for (uint32_t t = 0; t < e->work->transfer_count; t++)
    if (is_under_way(e, t)) go_further(e, s, t, (int64_t)rounds);
  AX_TRY(ax_sim_queue_delay(&e->queue, AX_EVENT_SEND, later));
  for (int64_t l = 0; l < links; l++) {
    if (e->free[l] > e->time) e->free[l] += later;
    e->result->link_bytes[l] += rounds * (e->result->link_bytes[l] - s->link_bytes[l]);
  }
  e->result->messages += rounds * (e->result->messages - s->messages);
  e->unrepeated = e->most;
  return AX_OK;
}

ax_status ax_sim_steady_look(ax_sim_engine *e) {
  ax_sim_steady *s = e->steady;
  bool whole;
  if (e->under_way == 0 || e->images > most_images || e->leader != leader_of(e)) return AX_OK;
  const ax_sim_agent *first = ax_sim_agent_at(e, e->leader, 0, 0);
  if (!first->active) return AX_OK;
  const ax_sim_phase *phase = ax_sim_agent_phase(e, first, e->leader, 0);
  if (phase->varied || phase->repeat - first->step < least_steps) return AX_OK;
  if (e->disturbed) s->valid = false; /* what lies between two states must be nothing but the round */
  e->disturbed = false;
  if (s->valid) {
    AX_TRY(take_state(e, s, true, &whole));
    if (whole && is_round(e, s)) {
      const double rounds = rounds_left(e, s);
      if (rounds >= 1) AX_TRY(repeat(e, s, rounds));
      s->valid = rounds < 1;
      return AX_OK;
    }
    if (++s->since < s->window) return AX_OK;
  }
  AX_TRY(take_state(e, s, false, &whole));
  s->window = s->valid ? 2 * s->window : 1;
  s->valid = whole;
  return whole ? keep(e, s) : AX_OK;
}
