/* The steps of a procedure (procedure.h): who sends to whom, what of a group they need, and how long they take. */
#include <math.h>
#include <string.h>

#include "processes/ways.h"
#include "sim/switches.h"

/* --- Processes --- */

int64_t ax_sim_procedure_processes(const ax_sim_procedure *s) {
  int64_t count = 1;
  if (s->per_process == 0) return 0;
  for (uint32_t p = 0; p < s->group.count; p++) {
    if (s->group.cycle[p].digit == AX_NONE) return 0;
    if (ax_sim_procedure_crosses(s, &s->group.cycle[p])) count *= s->group.cycle[p].size;
  }
  return count;
}

double ax_sim_procedure_block(const ax_sim_procedure *s, int64_t k) {
  return fmin(AX_CHAIN_BLOCK, s->bytes - (double)k * AX_CHAIN_BLOCK);
}
int64_t ax_sim_procedure_blocks(const ax_sim_procedure *s) { return (int64_t)ceil(fmax(1, s->bytes / AX_CHAIN_BLOCK)); }

/* The process of a member among those of its group, and its number there. */
static int64_t process_at(const ax_sim_procedure *s, int64_t device) {
  int64_t number = 0;
  for (uint32_t p = 0; p < s->group.count; p++) {
    const ax_sim_cycle *cycle = &s->group.cycle[p];
    if (ax_sim_procedure_crosses(s, cycle)) number = number * cycle->size + ax_sim_cycle_value(cycle, device);
  }
  return number;
}
static bool is_first_within(const ax_sim_procedure *s, int64_t device) {
  for (uint32_t p = 0; p < s->group.count; p++)
    if (!ax_sim_procedure_crosses(s, &s->group.cycle[p]) && ax_sim_cycle_value(&s->group.cycle[p], device) != 0) return false;
  return true;
}

/* --- What it keeps --- */

void ax_sim_procedure_keep(const ax_sim_procedure *s, ax_sim_place *place) {
  const ax_sim_group *g = &s->group;
  for (uint32_t c = 0; c < s->chain_count; c++)
    for (uint32_t i = 0; i < s->chains[c].phase_count; i++) {
      const ax_sim_phase *phase = &s->chains[c].phases[i];
      if (phase->move == AX_MOVE_WINDING) ax_sim_place_keep_winding(place, g);
      for (uint32_t p = 0; p < g->count && phase->move != AX_MOVE_WINDING; p++) {
        const bool of_firsts = phase->move == AX_MOVE_TOTALS || phase->move == AX_MOVE_OUT; /* alike in each process */
        const bool moves = phase->move == AX_MOVE_APART || phase->move == AX_MOVE_PROCESSES || phase->move == AX_MOVE_WITHIN ||
                           (phase->move == AX_MOVE_MEMBER && p == 0) || (of_firsts && ax_sim_procedure_crosses(s, &g->cycle[p]));
        if (phase->move == AX_MOVE_CYCLE && phase->cycle != p) continue;
        if (phase->move == AX_MOVE_SWITCH && !ax_sim_switch_has(s, phase, &g->cycle[p])) continue;
        if (moves || phase->move == AX_MOVE_CYCLE || phase->move == AX_MOVE_SWITCH) ax_sim_place_keep_moves(place, &g->cycle[p]);
        else ax_sim_place_keep_values(place, &g->cycle[p]);
      }
    }
}

/* How many members send in a step of the phase. */
static double senders(const ax_sim_procedure *s, const ax_sim_phase *phase) {
  const bool in_tree = phase->move == AX_MOVE_UP || phase->move == AX_MOVE_DOWN;
  const int64_t n = s->group.members, far = in_tree ? (int64_t)1 << phase->shift : 0;
  double count = 0;
  switch (phase->move) {
    case AX_MOVE_UP:
    case AX_MOVE_DOWN: return (double)((n - far + 2 * far - 1) / (2 * far));
    case AX_MOVE_STAR: return 1;
    case AX_MOVE_FORTH:
    case AX_MOVE_BACK: return 1;
    case AX_MOVE_TOTALS:
    case AX_MOVE_OUT: return (double)ax_sim_procedure_processes(s);
    case AX_MOVE_PAIRS:
      for (int64_t m = 0; m < n; m++) count += s->target[m] >= 0;
      return count;
    default: return (double)n;
  }
}

double ax_sim_procedure_bytes(const ax_sim_procedure *s) {
  double bytes = 0;
  for (uint32_t c = 0; c < s->chain_count; c++)
    for (uint32_t i = 0; i < s->chains[c].phase_count; i++) {
      const ax_sim_phase *phase = &s->chains[c].phases[i];
      bytes += (double)phase->repeat * (double)phase->fan * phase->bytes * senders(s, phase) / (double)s->group.members;
    }
  return bytes;
}

double ax_sim_procedure_work(const ax_sim_procedure *s, bool whole) {
  enum { until_steady = 256 };
  const int64_t n = s->group.members;
  double messages = 0;
  for (uint32_t c = 0; c < s->chain_count; c++)
    for (uint32_t i = 0; i < s->chains[c].phase_count; i++) {
      const ax_sim_phase *phase = &s->chains[c].phases[i];
      const double steps = (double)(phase->varied || phase->repeat < until_steady || whole ? phase->repeat : until_steady);
      messages += steps * (double)phase->fan * senders(s, phase) / (double)n;
    }
  return messages;
}

/* --- Steps --- */

/* Its number counted from the root. */
static int64_t from_root(const ax_sim_procedure *s, int64_t device) {
  return (ax_sim_group_member(&s->group, device) - s->root + s->group.members) % s->group.members;
}

/* In a tree's level: it is a child, or has one. */
static bool is_child(int64_t number, int64_t level) { return (number & (((int64_t)2 << level) - 1)) == (int64_t)1 << level; }
static bool has_child(const ax_sim_procedure *s, int64_t number, int64_t level) {
  return (number & (((int64_t)2 << level) - 1)) == 0 && number + ((int64_t)1 << level) < s->group.members;
}

int64_t ax_sim_procedure_sends(const ax_sim_procedure *s, const ax_sim_phase *phase, int64_t device) {
  switch (phase->move) {
    case AX_MOVE_UP: return is_child(from_root(s, device), phase->shift);
    case AX_MOVE_DOWN: return has_child(s, from_root(s, device), phase->shift);
    case AX_MOVE_STAR: return from_root(s, device) == 0 ? phase->fan : 0;
    case AX_MOVE_FORTH:
    case AX_MOVE_BACK: return is_first_within(s, device) && process_at(s, device) == phase->shift;
    case AX_MOVE_TOTALS:
    case AX_MOVE_OUT: return is_first_within(s, device) ? phase->fan : 0;
    case AX_MOVE_PAIRS: return s->target[ax_sim_group_member(&s->group, device)] >= 0;
    default: return phase->fan;
  }
}

int64_t ax_sim_procedure_receives(const ax_sim_procedure *s, const ax_sim_phase *phase, int64_t device) {
  switch (phase->move) {
    case AX_MOVE_UP: return has_child(s, from_root(s, device), phase->shift);
    case AX_MOVE_DOWN: return is_child(from_root(s, device), phase->shift);
    case AX_MOVE_STAR: return from_root(s, device) != 0;
    case AX_MOVE_FORTH: return is_first_within(s, device) && process_at(s, device) == phase->shift + 1;
    case AX_MOVE_BACK: return is_first_within(s, device) && process_at(s, device) == phase->shift - 1;
    case AX_MOVE_TOTALS: return is_first_within(s, device) ? phase->fan : 0;
    case AX_MOVE_OUT: return !is_first_within(s, device);
    case AX_MOVE_PAIRS: return s->source[ax_sim_group_member(&s->group, device)] >= 0;
    default: return phase->fan;
  }
}

/* As move_apart, along the cycles between processes alone, or along those within one. */
static int64_t move_some(const ax_sim_procedure *s, int64_t device, int64_t shift, bool of_nodes) {
  for (uint32_t p = s->group.count; p-- > 0;) {
    const ax_sim_cycle *cycle = &s->group.cycle[p];
    if (ax_sim_procedure_crosses(s, cycle) != of_nodes) continue;
    const int64_t value = ax_sim_cycle_value(cycle, device);
    device += ((value + shift) % cycle->size - value) * cycle->stride;
    shift /= cycle->size;
  }
  return device;
}

/* To the process of this number, among those of the group. */
static int64_t move_to_process(const ax_sim_procedure *s, int64_t device, int64_t process) {
  for (uint32_t p = s->group.count; p-- > 0;) {
    const ax_sim_cycle *cycle = &s->group.cycle[p];
    if (!ax_sim_procedure_crosses(s, cycle)) continue;
    device += (process % cycle->size - ax_sim_cycle_value(cycle, device)) * cycle->stride;
    process /= cycle->size;
  }
  return device;
}

static int64_t move_apart(const ax_sim_group *g, int64_t device, int64_t shift) {
  for (uint32_t p = g->count; p-- > 0; shift /= g->cycle[p].size) {
    const ax_sim_cycle *cycle = &g->cycle[p];
    const int64_t value = ax_sim_cycle_value(cycle, device);
    device += ((value + shift) % cycle->size - value) * cycle->stride;
  }
  return device;
}

int64_t ax_sim_procedure_target(const ax_sim_procedure *s, const ax_sim_phase *phase, int64_t r, int64_t k, int64_t device) {
  const ax_sim_group *g = &s->group;
  const int64_t n = g->members, shift = phase->shift + (phase->varied ? r : 0) + k;
  if (phase->move == AX_MOVE_SWITCH) return device; /* by way of the switch */
  if (phase->move == AX_MOVE_APART) return move_apart(g, device, shift);
  if (phase->move == AX_MOVE_WINDING) return ax_sim_group_winding_next(g, device, shift < 0);
  if (phase->move == AX_MOVE_PROCESSES || phase->move == AX_MOVE_TOTALS) return move_some(s, device, shift, true);
  if (phase->move == AX_MOVE_WITHIN || phase->move == AX_MOVE_OUT) return move_some(s, device, shift, false);
  if (phase->move == AX_MOVE_FORTH || phase->move == AX_MOVE_BACK)
    return move_to_process(s, device, phase->shift + (phase->move == AX_MOVE_FORTH ? 1 : -1));
  if (phase->move == AX_MOVE_CYCLE) {
    const ax_sim_cycle *cycle = &g->cycle[phase->cycle];
    const int64_t value = ax_sim_cycle_value(cycle, device);
    return device + ((value + shift) % cycle->size - value) * cycle->stride;
  }
  const int64_t member = ax_sim_group_member(g, device), number = (member - s->root + n) % n,
                far = phase->move == AX_MOVE_UP || phase->move == AX_MOVE_DOWN ? (int64_t)1 << phase->shift : 0;
  switch (phase->move) {
    case AX_MOVE_UP: return ax_sim_group_device(g, device, (number - far + s->root) % n);
    case AX_MOVE_DOWN: return ax_sim_group_device(g, device, (number + far + s->root) % n);
    case AX_MOVE_PAIRS: return ax_sim_group_device(g, device, s->target[member]);
    default: return ax_sim_group_device(g, device, (member + shift) % n);
  }
}

/* --- How long it takes, roughly --- */

typedef struct estimate {
  const ax_sim_procedure *procedure;
  ax_sim_place place;
  ax_sim_route route;
  double *load, overhead, latency; /* load: by link, seconds */
  int64_t links;
} estimate;

static void add_route(estimate *e, double bytes) {
  for (uint32_t h = 0; h < e->route.count; h++) {
    const ax_sim_hop *hop = &e->route.hops[h];
    e->load[hop->link] += bytes * hop->weight / ax_sim_place_wire(&e->place, hop->link)->bandwidth;
  }
}

static ax_status load_switches(estimate *e, const ax_sim_phase *phase, int64_t images) {
  for (int64_t i = 0; i < images; i++) {
    e->route.count = 0;
    AX_TRY(ax_sim_switch_route(&e->place, phase, ax_sim_place_device(&e->place, i), &e->route));
    add_route(e, 1);
  }
  e->overhead = fmax(e->overhead, e->route.overhead);
  e->latency = fmax(e->latency, e->route.latency);
  return AX_OK;
}

static bool is_prime(int64_t n) {
  for (int64_t factor = 2; factor * factor <= n; factor++)
    if (n % factor == 0) return false;
  return true;
}

/* Of the messages of a device every so manyth is looked at, and stands for as many. If devices differ and are very many, all
   messages would take minutes. Then the distance is a prime number, which has no factor in common with the sizes of most digits:
   otherwise all that are looked at might go along one dimension. */
static int64_t distance_of(int64_t sends, int64_t images) {
  enum { most = 1 << 14, many_images = 1 << 12, most_of_many = 1 << 22, fewest = 16 };
  if (images <= many_images) return sends > most ? (sends + most - 1) / most : 1;
  const int64_t each = most_of_many / images > fewest ? most_of_many / images : fewest;
  int64_t distance = (sends + each - 1) / each;
  while (!is_prime(distance)) distance++;
  return distance > 0 ? distance : 1;
}

/* Finds the load of each link in one step, and the longest route. If there are many messages, some, evenly chosen, stand for
   all. */
static ax_status load_step(estimate *e, const ax_sim_phase *phase, int64_t r, int64_t images) {
  if (phase->move == AX_MOVE_SWITCH) return load_switches(e, phase, images);
  for (int64_t i = 0; i < images; i++) {
    const int64_t device = ax_sim_place_device(&e->place, i), sends = ax_sim_procedure_sends(e->procedure, phase, device);
    const int64_t stride = distance_of(sends, images);
    double overhead = 0;
    for (int64_t k = 0; k < sends; k += stride) {
      const int64_t to = ax_sim_procedure_target(e->procedure, phase, r, k, device);
      AX_TRY(ax_sim_route_find(&e->place, device, to, &e->route));
      overhead += e->route.overhead * (double)stride;
      const double latency = e->route.latency + ax_sim_place_besides(&e->place, device, to, phase->bytes);
      if (latency > e->latency) e->latency = latency;
      add_route(e, phase->bytes * (double)stride);
    }
    if (overhead > e->overhead) e->overhead = overhead;
  }
  return AX_OK;
}

/* One step of phase i of all chains, which go on together. Chains have as many phases; where their steps are not as many, those with
   fewer wait for the others. */
static ax_status time_step(estimate *e, uint32_t i, int64_t r, int64_t images, ax_sim_alone *out) {
  double most = 0;
  *out = (ax_sim_alone){0};
  memset(e->load, 0, (size_t)e->links * sizeof e->load[0]);
  e->overhead = e->latency = 0;
  for (uint32_t c = 0; c < e->procedure->chain_count; c++) AX_TRY(load_step(e, &e->procedure->chains[c].phases[i], r, images));
  for (int64_t l = 0; l < e->links; l++) {
    double *busy = &out->busy[ax_sim_place_kind(&e->place, l)];
    *busy = e->load[l] > *busy ? e->load[l] : *busy;
    most = e->load[l] > most ? e->load[l] : most;
  }
  const bool many = e->procedure->chains[0].phases[i].fan > 1; /* they begin to arrive while others are still to be sent */
  out->seconds = e->latency + (many ? (most > e->overhead ? most : e->overhead) : most + e->overhead);
  out->waiting = out->seconds - most;
  return AX_OK;
}

static ax_status time_phases(estimate *e, int64_t images, ax_sim_alone *out) {
  enum { most = 32 };
  const ax_sim_chain *chain = &e->procedure->chains[0];
  for (uint32_t i = 0; i < chain->phase_count; i++) {
    int64_t repeat = chain->phases[i].repeat;
    for (uint32_t c = 1; c < e->procedure->chain_count; c++)
      if (e->procedure->chains[c].phases[i].repeat > repeat) repeat = e->procedure->chains[c].phases[i].repeat;
    const int64_t stride = !chain->phases[i].varied ? repeat : repeat > most ? (repeat + most - 1) / most : 1;
    for (int64_t r = 0; r < repeat; r += stride) {
      const double steps = (double)(stride < repeat - r ? stride : repeat - r);
      ax_sim_alone step;
      AX_TRY(time_step(e, i, r, images, &step));
      out->seconds += step.seconds * steps;
      out->waiting += step.waiting * steps;
      for (uint32_t k = 0; k < AX_MAX_LINK_KINDS; k++) out->busy[k] += step.busy[k] * steps;
    }
  }
  return AX_OK;
}

/* A chain of processes: the first block goes to the last process and back, and the others follow it (ax_chain_seconds). */
static void time_chain(const ax_sim_procedure *s, const ax_sim_place *place, ax_sim_alone *out) {
  const ax_sim_wire *wire = &place->machine->network, *inside = &place->machine->wire;
  const double processes = (double)ax_sim_procedure_processes(s), hops = 2 * (processes - 1);
  const double within = (double)s->group.members / processes - 1;
  const double block = ax_sim_procedure_block(s, 0), besides = ax_sim_place_besides(place, 0, place->machine->per_node, block);
  const double carrying = (double)(ax_sim_procedure_blocks(s) - 1) * (hops > 2 ? 2 : 1) * block / wire->bandwidth +
                          2 * within * s->bytes / inside->bandwidth;
  out->waiting = hops * (wire->latency + wire->overhead + besides + block / wire->bandwidth);
  out->seconds = out->waiting + carrying;
}

static bool is_chain_of_processes(const ax_sim_procedure *s) {
  const ax_sim_chain *last = &s->chains[s->chain_count - 1];
  return last->phases[last->phase_count > 1].move == AX_MOVE_FORTH || last->phases[0].move == AX_MOVE_FORTH;
}

ax_status ax_sim_procedure_estimate(const ax_sim_procedure *s, const ax_sim_place *place, ax_sim_alone *out) {
  estimate e = {.procedure = s, .place = *place};
  *out = (ax_sim_alone){0};
  ax_sim_place_fold(&e.place);
  ax_sim_procedure_keep(s, &e.place);
  if (is_chain_of_processes(s)) {
    time_chain(s, place, out);
    return AX_OK;
  }
  const int64_t images = ax_sim_place_images(&e.place);
  e.links = ax_sim_place_links(&e.place);
  e.load = ax_calloc((size_t)e.links, sizeof e.load[0]);
  ax_status status = e.load != NULL ? AX_OK : ax_out_of_memory((size_t)e.links * sizeof e.load[0]);
  if (status == AX_OK) status = time_phases(&e, images < place->devices ? images : place->devices, out);
  ax_free(e.load);
  ax_sim_route_deinit(&e.route);
  return status;
}
