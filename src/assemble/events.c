/* Tables by device of the counters that are signalled and awaited. One table serves all events and waits of the same kind.

   An activation signals and awaits the counter of its group: the devices with its coordinates along some axes. The result of a
   ppermute has a counter for each part. A source signals the counter of its target's part, and waits for the readers of that part,
   so the table names the part that the source's own goes to; AX_NONE: it has no target. How often a counter is signalled each time
   round is counted from the table. */
#include <stdlib.h>
#include <string.h>

#include "assemble/assembly.h"

/* A table that is needed, and where its address goes. */
typedef struct request {
  const ax_exchange *away;
  ax_axis_set groups, by;
  const uint32_t *counters; /* for a table of times: the table of signals */
  uint32_t count;           /* for a table of times: the number of counters */
  const uint32_t **out;
} request;

typedef struct requests {
  request *items;
  uint32_t count, capacity;
} requests;

static ax_status ask(requests *r, const request *wanted) {
  AX_TRY(ax_grow(&r->items, sizeof r->items[0], r->count, 1, &r->capacity));
  r->items[r->count++] = *wanted;
  return AX_OK;
}

/* --- Which counter --- */

int ax_compare_pairs(const ax_exchange *x, const ax_exchange *y) {
  if (x == y) return 0;
  if (x == NULL || y == NULL) return x == NULL ? -1 : 1;
  if (x->names.count != y->names.count) return x->names.count < y->names.count ? -1 : 1;
  for (uint32_t i = 0; i < x->names.count; i++) {
    int order = strcmp(x->names.name[i], y->names.name[i]);
    if (order != 0) return order;
  }
  if (x->pairs->count != y->pairs->count) return x->pairs->count < y->pairs->count ? -1 : 1;
  return x->pairs->count > 0 ? memcmp(x->pairs->v, y->pairs->v, x->pairs->count * sizeof x->pairs->v[0]) : 0;
}

static int by_table(const void *a, const void *b) {
  const request *x = a, *y = b;
  if (x->groups != y->groups) return x->groups < y->groups ? -1 : 1;
  return ax_compare_pairs(x->away, y->away);
}

static ax_status make_table(ax_compiled *c, const request *wanted, const uint32_t **out) {
  uint32_t set;
  AX_TRY(ax_set_of(c, wanted->groups, &set));
  const uint32_t *group = c->sets[set].index;
  *out = group;
  if (wanted->away == NULL) return AX_OK;
  const ax_exchange *x = wanted->away;
  const ax_mesh *mesh = &c->plan->mesh;
  uint32_t *table = ax_arena_alloc(&c->plan->arena, c->devices * sizeof table[0]);
  int64_t members = ax_axis_set_size(x->axes, mesh), *target = ax_alloc((size_t)members * sizeof target[0]);
  if (table == NULL || target == NULL) {
    ax_free(target);
    return ax_out_of_memory(c->devices * sizeof table[0]);
  }
  for (int64_t i = 0; i < members; i++) target[i] = -1;
  for (uint32_t i = 0; i < x->pairs->count; i++) target[x->pairs->v[i][0]] = x->pairs->v[i][1];
  for (uint32_t d = 0; d < c->devices; d++) {
    int64_t to = target[ax_axes_index(&x->names, mesh, d)];
    table[d] = to >= 0 ? group[ax_axes_device(&x->names, mesh, d, to)] : AX_NONE;
  }
  ax_free(target);
  *out = table;
  return AX_OK;
}

/* Makes one table for all requests that are the same. */
static ax_status make_tables(ax_compiled *c, requests *r) {
  if (r->count > 0) qsort(r->items, r->count, sizeof r->items[0], by_table);
  for (uint32_t i = 0; i < r->count; i++)
    if (i > 0 && by_table(&r->items[i - 1], &r->items[i]) == 0) *r->items[i].out = *r->items[i - 1].out;
    else AX_TRY(make_table(c, &r->items[i], r->items[i].out));
  return AX_OK;
}

/* --- How often --- */

static int by_times(const void *a, const void *b) {
  const request *x = a, *y = b;
  uintptr_t mine = (uintptr_t)x->counters, other = (uintptr_t)y->counters; /* any fixed order will do */
  if (mine != other) return mine < other ? -1 : 1;
  return x->by < y->by ? -1 : x->by > y->by;
}

static ax_status make_times(ax_compiled *c, const request *wanted, const uint32_t **out) {
  uint32_t *times = ax_arena_alloc(&c->plan->arena, wanted->count * sizeof times[0]);
  bool *signals = ax_alloc(c->devices);
  ax_status status = times == NULL || signals == NULL ? ax_out_of_memory(wanted->count * sizeof times[0]) : AX_OK;
  if (status == AX_OK) status = ax_find_owners(c, ax_all_axes(&c->plan->mesh) & ~wanted->by, signals);
  for (uint32_t d = 0; d < c->devices && status == AX_OK; d++)
    if (signals[d] && wanted->counters[d] != AX_NONE) times[wanted->counters[d]]++;
  ax_free(signals);
  *out = times;
  return status;
}

/* Of an exchange that crosses to other processes: members that are here signal, and those that are not when what they sent has been
   put. */
static ax_status make_crossing_times(ax_compiled *c, ax_event *event, const ax_exchange *x, const ax_crossing *crossing) {
  uint32_t *times = ax_arena_alloc(&c->plan->arena, event->count * sizeof times[0]);
  uint32_t *target = ax_alloc(crossing->members * sizeof target[0]);
  if (times == NULL || target == NULL) {
    ax_free(target);
    return ax_out_of_memory(event->count * sizeof times[0]);
  }
  memset(target, 0xff, crossing->members * sizeof target[0]);
  for (uint32_t i = 0; x->peers == AX_PEERS_PAIRS && i < x->pairs->count; i++)
    target[x->pairs->v[i][0]] = (uint32_t)x->pairs->v[i][1];
  for (uint32_t g = 0; g < crossing->groups; g++) {
    const ax_party *own = ax_party_of(crossing, g, c->map->process);
    for (uint32_t m = 0; own != NULL && m < crossing->members; m++)
      if (ax_party_has(crossing, own, m) || ax_reaches(x, crossing, target, m, own))
        times[event->signal[crossing->first[g * crossing->members + m]]]++;
  }
  ax_free(target);
  event->times = times;
  return AX_OK;
}

static ax_status make_all_crossing_times(ax_assembly *a) {
  for (uint32_t i = 0; i < a->access_count && a->compiled->map != NULL; i++) {
    const ax_access *access = &a->accesses[i];
    const ax_exchange *x = access->exchange;
    const ax_crossing *crossing = NULL;
    if (x != NULL) AX_TRY(ax_find_crossing(a->compiled, &x->names, x->axes, access->axes, &crossing));
    if (crossing != NULL) AX_TRY(make_crossing_times(a->compiled, &a->compiled->events[access->event], x, crossing));
  }
  return AX_OK;
}

static ax_status make_all_times(ax_compiled *c, requests *r) {
  for (uint32_t i = 0; i < c->event_count; i++) {
    ax_event *event = &c->events[i];
    AX_TRY(ask(r, &(request){.counters = event->signal, .by = event->by, .count = event->count, .out = &event->times}));
  }
  if (r->count > 0) qsort(r->items, r->count, sizeof r->items[0], by_times);
  for (uint32_t i = 0; i < r->count; i++)
    if (i > 0 && by_times(&r->items[i - 1], &r->items[i]) == 0) *r->items[i].out = *r->items[i - 1].out;
    else AX_TRY(make_times(c, &r->items[i], r->items[i].out));
  return AX_OK;
}

/* --- Numbers --- */

/* Counters have 32-bit numbers; memory would be exhausted long before. */
static ax_status number_counters(ax_compiled *c) {
  for (uint32_t i = 0; i < c->event_count; i++) {
    ax_event *event = &c->events[i];
    uint32_t set;
    AX_TRY(ax_set_of(c, event->groups, &set));
    event->count = c->sets[set].size;
    event->first = c->counter_count;
    if (event->count > AX_NONE - c->counter_count)
      return ax_error(AX_OUT_OF_MEMORY, "compile: %u events, for up to %u groups of devices each, need more than 2^32 counters",
                      c->event_count, event->count);
    c->counter_count += event->count;
  }
  return AX_OK;
}

static ax_status ask_for_counters(ax_assembly *a, requests *r) {
  ax_compiled *c = a->compiled;
  for (uint32_t i = 0; i < c->event_count; i++)
    AX_TRY(ask(r, &(request){.away = c->events[i].away, .groups = c->events[i].groups, .out = &c->events[i].signal}));
  for (uint32_t i = 0; i < a->instr_count; i++) {
    ax_instr *instr = &a->instrs[i];
    if (instr->kind != AX_INSTR_WAIT) continue;
    AX_TRY(
        ask(r, &(request){.away = instr->sync.away, .groups = c->events[instr->sync.event].groups, .out = &instr->sync.counter}));
  }
  return AX_OK;
}

ax_status ax_instrs_events(ax_assembly *a) {
  ax_compiled *c = a->compiled;
  requests counters = {0}, times = {0};
  c->events = ax_arena_copy(&a->plan->arena, a->events, a->event_count * sizeof a->events[0]);
  if (c->events == NULL) return ax_out_of_memory(a->event_count * sizeof a->events[0]);
  c->event_count = a->event_count;
  ax_status status = number_counters(c);
  if (status == AX_OK) status = ask_for_counters(a, &counters);
  if (status == AX_OK) status = make_tables(c, &counters);
  if (status == AX_OK) status = make_all_times(c, &times);
  if (status == AX_OK) status = make_all_crossing_times(a);
  ax_free(counters.items);
  ax_free(times.items);
  return status;
}

void ax_resolve_counters(ax_assembly *a) {
  for (uint32_t i = 0; i < a->instr_count; i++) {
    ax_instr *instr = &a->instrs[i];
    bool push = instr->kind == AX_INSTR_PUSH;
    if (!push && instr->kind != AX_INSTR_WAIT && instr->kind != AX_INSTR_SIGNAL) continue;
    ax_event *event = &a->compiled->events[push ? instr->push->event : instr->sync.event];
    if (push) {
      instr->push->first = event->first;
      instr->push->counter = event->signal;
    } else {
      instr->sync.first = event->first;
      instr->sync.times = event->times;
      if (instr->kind == AX_INSTR_SIGNAL) instr->sync.counter = event->signal;
    }
    if (instr->kind != AX_INSTR_WAIT) event->signalled_at = i;
  }
}
