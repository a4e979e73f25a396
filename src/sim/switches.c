#include "sim/switches.h"

#include <math.h>
#include <stdlib.h>

/* --- What switches do --- */

static double times_as_long(const ax_sim_wire *wire, double rate) { return rate > 0 ? fmax(1, wire->bandwidth / rate) : 0; }

static ax_sim_switches of_wire(const ax_sim_wire *wire, ax_dtype dtype, bool sums) {
  return (ax_sim_switches){.sums = sums ? times_as_long(wire, wire->reduces[dtype]) : 0,
                           .copies = times_as_long(wire, wire->multicast),
                           .radix = wire->radix,
                           .before = wire->overhead,
                           .latency = wire->latency,
                           .bandwidth = wire->bandwidth};
}

void ax_sim_switches_note(const ax_cluster *machine, int64_t devices, ax_dtype dtype, bool sums, ax_sim_procedure *s) {
  s->inside = of_wire(&machine->wire, dtype, sums);
  s->between = of_wire(&machine->network, dtype, sums);
  s->per_switch = machine->topology == AX_TOPOLOGY_NODES && devices > machine->per_node ? machine->per_node : 0;
  if (machine->by_node) s->between.bandwidth /= (double)machine->per_node;
}

/* Of a group whose cycles are each inside of nodes or between them. */
static bool is_between(const ax_sim_procedure *s, const ax_sim_cycle *cycle) {
  return s->per_switch > 0 && cycle->stride >= s->per_switch;
}

bool ax_sim_switch_has(const ax_sim_procedure *s, const ax_sim_phase *phase, const ax_sim_cycle *cycle) {
  return is_between(s, cycle) == (phase->shift == 1);
}

/* --- Phases --- */

static int64_t depth_of(int64_t members, int64_t radix) {
  int64_t depth = 1;
  for (double reach = (double)radix; radix > 1 && reach < (double)members; reach *= (double)radix) depth++;
  return depth;
}

typedef struct level {
  const ax_sim_procedure *procedure;
  ax_sim_chain *chain;
  const ax_sim_switches *switches;
  int64_t members, depth;
  bool between, alone; /* alone: members are at this level only, so that nothing goes but what was asked for */
} level;

static level level_of(const ax_sim_procedure *s, ax_sim_chain *chain, bool between) {
  level l = {s, chain, between ? &s->between : &s->inside, 1, 1, between, false};
  for (uint32_t p = 0; p < s->group.count; p++)
    if (is_between(s, &s->group.cycle[p]) == between) l.members *= s->group.cycle[p].size;
  l.depth = depth_of(l.members, l.switches->radix);
  l.alone = l.members == s->group.members;
  return l;
}

static ax_status add_switch(const level *l, double bytes, double back, double slower) {
  return ax_sim_chain_add(l->chain, (ax_sim_phase){.move = AX_MOVE_SWITCH,
                                                   .shift = l->between,
                                                   .repeat = l->members > 1,
                                                   .fan = 1,
                                                   .bytes = bytes,
                                                   .back = ceil(back),
                                                   .slower = slower,
                                                   .depth = l->depth});
}

/* Whether the switch does it at all, and sooner than by doubling, as a scatter or a gather or both. */
static bool is_sooner(const level *l, double bytes, double slower, double times) {
  const ax_sim_switches *at = l->switches;
  double part = bytes, doubling = 0;
  for (uint32_t p = l->procedure->group.count; p-- > 0;) {
    const ax_sim_cycle *cycle = &l->procedure->group.cycle[p];
    if (is_between(l->procedure, cycle) != l->between) continue;
    part = ceil(part / (double)cycle->size);
    doubling += times * ((double)ax_sim_levels(cycle->size) * (at->before + at->latency) + (double)(cycle->size - 1) * part / at->bandwidth);
  }
  return slower > 0 && (l->alone || at->before + (double)l->depth * at->latency + bytes * slower / at->bandwidth < doubling);
}

/* Leaves each member its part of the sum. */
static ax_status scatter(const level *l, double *bytes) {
  const ax_sim_group *g = &l->procedure->group;
  const double all = *bytes;
  if (is_sooner(l, all, l->switches->sums, 1)) {
    *bytes = ceil(all / (double)l->members);
    return add_switch(l, all, *bytes, l->switches->sums);
  }
  for (uint32_t p = g->count; p-- > 0;) {
    if (is_between(l->procedure, &g->cycle[p]) != l->between) continue;
    *bytes = ceil(*bytes / (double)g->cycle[p].size);
    AX_TRY(ax_sim_chain_double(l->chain, p, g->cycle[p].size, *bytes, false));
  }
  return AX_OK;
}

/* Gives each member what all members have. */
static ax_status gather(const level *l, double *bytes) {
  const ax_sim_group *g = &l->procedure->group;
  const double part = *bytes, all = part * (double)l->members;
  if (is_sooner(l, all, l->switches->copies, 1)) {
    *bytes = all;
    return add_switch(l, part, all, l->switches->copies);
  }
  for (uint32_t p = 0; p < g->count; p++) {
    if (is_between(l->procedure, &g->cycle[p]) != l->between) continue;
    AX_TRY(ax_sim_chain_double(l->chain, p, g->cycle[p].size, *bytes, true));
    *bytes *= (double)g->cycle[p].size;
  }
  return AX_OK;
}

static ax_status add_up(const level *l, double bytes) {
  if (is_sooner(l, bytes, l->switches->sums, 2)) return add_switch(l, bytes, bytes, l->switches->sums);
  AX_TRY(scatter(l, &bytes));
  return gather(l, &bytes);
}

static ax_status all_reduce(const level *inside, const level *between, double bytes) {
  if (inside->alone) return add_up(inside, bytes);
  AX_TRY(scatter(inside, &bytes));
  AX_TRY(add_up(between, bytes));
  return gather(inside, &bytes);
}

static bool is_in_whole_parts(const ax_sim_procedure *s) {
  for (uint32_t p = 0; p < s->group.count && s->per_switch > 0; p++) {
    const ax_sim_cycle *cycle = &s->group.cycle[p];
    if (cycle->stride % s->per_switch != 0 && s->per_switch % (cycle->stride * cycle->size) != 0) return false;
  }
  return true;
}

static ax_status make(const ax_sim_procedure *s, ax_sim_chain *chain) {
  const level inside = level_of(s, chain, false), between = level_of(s, chain, true);
  double bytes = s->bytes;
  if (s->kind == AX_COLLECTIVE_ALL_REDUCE) return all_reduce(&inside, &between, bytes);
  if (s->kind == AX_COLLECTIVE_REDUCE_SCATTER) {
    AX_TRY(scatter(&inside, &bytes));
    return scatter(&between, &bytes);
  }
  if (s->kind != AX_COLLECTIVE_ALL_GATHER) return AX_OK;
  AX_TRY(gather(&between, &bytes));
  return gather(&inside, &bytes);
}

ax_status ax_sim_switch_make(const ax_sim_procedure *s, ax_sim_chain *chain) {
  bool any = false;
  if (!is_in_whole_parts(s)) return AX_OK;
  AX_TRY(make(s, chain));
  for (uint32_t i = 0; i < chain->phase_count; i++) any = any || chain->phases[i].move == AX_MOVE_SWITCH;
  if (!any) chain->phase_count = 0; /* that is another algorithm */
  return AX_OK;
}

/* --- Members at a switch --- */

/* In whole bytes, so that sums of them are exact. */
ax_status ax_sim_switch_route(const ax_sim_place *place, const ax_sim_phase *phase, int64_t device, ax_sim_route *route) {
  AX_TRY(ax_sim_route_add_switch(place, device, phase->shift == 1, ceil(phase->bytes * phase->slower), ceil(phase->back * phase->slower),
                                 route));
  route->latency *= (double)phase->depth;
  return AX_OK;
}

static int64_t greatest_divisor(int64_t a, int64_t b) {
  while (b != 0) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* Values of a cycle after which its images come again. */
static int64_t different(const ax_sim_place *place, const ax_sim_cycle *cycle) {
  if (cycle->digit == AX_NONE) return cycle->size;
  const int64_t fold = place->digit[cycle->digit].fold, period = fold / greatest_divisor(cycle->unit, fold);
  return period < cycle->size ? period : cycle->size;
}

static int by_number(const void *x, const void *y) {
  const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
  return a < b ? -1 : a > b;
}

ax_status ax_sim_switch_images(const ax_sim_procedure *s, const ax_sim_phase *phase, const ax_sim_place *place, int64_t device,
                               uint32_t **images, uint32_t *count, uint32_t *capacity) {
  const uint32_t first = *count;
  int64_t all = 1;
  for (uint32_t p = 0; p < s->group.count; p++)
    if (ax_sim_switch_has(s, phase, &s->group.cycle[p])) all *= different(place, &s->group.cycle[p]);
  for (int64_t i = 0; i < all; i++) {
    int64_t left = i, to = device;
    for (uint32_t p = 0; p < s->group.count; p++) {
      const ax_sim_cycle *cycle = &s->group.cycle[p];
      if (!ax_sim_switch_has(s, phase, cycle)) continue;
      const int64_t value = ax_sim_cycle_value(cycle, device), values = different(place, cycle);
      to += ((value + left % values) % cycle->size - value) * cycle->stride;
      left /= values;
    }
    AX_TRY(ax_grow(images, sizeof **images, *count, 1, capacity));
    (*images)[(*count)++] = (uint32_t)ax_sim_place_image(place, to);
  }
  qsort(*images + first, *count - first, sizeof **images, by_number);
  uint32_t kept = first;
  for (uint32_t i = first; i < *count; i++)
    if (i == first || (*images)[i] != (*images)[kept - 1]) (*images)[kept++] = (*images)[i];
  *count = kept;
  return AX_OK;
}
