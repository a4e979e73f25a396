/* The machine of kernels, driven by simulated time. After each act of an agent, the computation up to its next act is done and its
   time found. Then the next act is done, or waits.

   A signal exists twice: in the machine's state from when it was given, and as visible from when its receiver can know of it. An
   agent waits for visible signals, which the state then has too. */
#include "sim/kernel.h"

#include <string.h>

#include "ir/number.h"
#include "ir/prim.h"
#include "kernel/machine/timing.h"
#include "check/watch.h"
#include "partition/partition.h"
#include "xform/evaluate.h"

typedef enum happening {
  LOOK,
  MEET,
  DO,
  SEEN
} happening; /* an agent is looked at; it comes to its act; does it; a signal is seen */

typedef struct event {
  double time;
  uint64_t number; /* of equal times the first made is first */
  happening what;
  uint32_t which;  /* an agent, or a semaphore */
  int64_t amount;
} event;

typedef struct waiting { /* an agent that is held up */
  ax_act_kind kind;     /* NONE: it is not */
  uint32_t object;
  int64_t amount;
  double since;
} waiting;

typedef struct driver {
  const ax_sim_place *place;
  const ax_machine *machine;
  ax_watch *watch;
  ax_system system;
  void *state;
  ax_simulated_kernel *out;
  ax_arena *texts;
  event *heap;
  waiting *waits;        /* by agent */
  int64_t *visible;      /* by semaphore */
  double *computes, *memory, *scratch, *busy; /* by device: when each is free again; how long it computed */
  double *links, *carried; /* by link */
  uint32_t heap_count, heap_capacity, wait_count, wait_capacity, visible_count, visible_capacity;
  uint64_t made;
  double time;
  double *flops, *to_compute; /* by core: what it has computed, but not yet taken the time for; seconds of it */
  ax_sim_route route;
} driver;

/* --- Events --- */

static bool is_before(const event *a, const event *b) { return a->time != b->time ? a->time < b->time : a->number < b->number; }

static ax_status push(driver *d, double time, happening what, uint32_t which, int64_t amount) {
  const event made = {time, d->made++, what, which, amount};
  AX_TRY(ax_grow(&d->heap, sizeof d->heap[0], d->heap_count, 1, &d->heap_capacity));
  uint32_t i = d->heap_count++;
  for (; i > 0 && is_before(&made, &d->heap[(i - 1) / 2]); i = (i - 1) / 2) d->heap[i] = d->heap[(i - 1) / 2];
  d->heap[i] = made;
  return AX_OK;
}

static event pop(driver *d) {
  const event top = d->heap[0], last = d->heap[--d->heap_count];
  uint32_t i = 0;
  for (uint32_t child = 1; child < d->heap_count; child = 2 * i + 1) {
    if (child + 1 < d->heap_count && is_before(&d->heap[child + 1], &d->heap[child])) child++;
    if (!is_before(&d->heap[child], &last)) break;
    d->heap[i] = d->heap[child];
    i = child;
  }
  if (d->heap_count > 0) d->heap[i] = last;
  return top;
}

static const ax_act_agent *agent_of(const driver *d, uint32_t agent) { return &d->watch->objects.agents[agent]; }

static ax_status note(driver *d, uint32_t agent, const char *what, double start, double end) {
  enum { most = 1 << 18 };
  ax_simulated_kernel *k = d->out;
  if (end > k->seconds) k->seconds = end;
  if (end <= start || k->span_count >= most) return AX_OK;
  const char *name = agent_of(d, agent)->name, *kept = ax_arena_copy(d->texts, name, strlen(name) + 1);
  if (kept == NULL) return ax_out_of_memory(strlen(name) + 1);
  AX_TRY(ax_grow(&k->spans, sizeof k->spans[0], k->span_count, 1, &k->span_capacity));
  k->spans[k->span_count++] = (ax_simulated_act){kept, what, (uint32_t)d->machine->devices[agent_of(d, agent)->device], start, end};
  return AX_OK;
}

/* Room in tables for an agent or a semaphore that is new. */
static ax_status make_room(driver *d) {
  const uint32_t agents = d->watch->objects.agent_count, semaphores = d->watch->objects.semaphore_count;
  if (agents > d->wait_count) {
    AX_TRY(ax_grow(&d->waits, sizeof d->waits[0], d->wait_count, agents - d->wait_count, &d->wait_capacity));
    memset(d->waits + d->wait_count, 0, (agents - d->wait_count) * sizeof d->waits[0]);
    d->wait_count = agents;
  }
  if (semaphores <= d->visible_count) return AX_OK;
  AX_TRY(ax_grow(&d->visible, sizeof d->visible[0], d->visible_count, semaphores - d->visible_count, &d->visible_capacity));
  for (; d->visible_count < semaphores; d->visible_count++)
    d->visible[d->visible_count] = d->watch->objects.semaphores[d->visible_count].initial;
  return AX_OK;
}

/* --- What acts take --- */

static ax_status computed(void *context, uint32_t core, const ax_program *program, const ax_eqn *eqn) {
  driver *d = context;
  double flops;
  if (eqn->out_count == 0 || program->types[eqn->out].form != AX_ARRAY) return AX_OK;
  const ax_type *made = &program->types[eqn->out];
  if (made->rank == 0 && !ax_rounds(made->dtype)) return AX_OK; /* numbers of blocks and slots */
  AX_TRY(ax_equation_flops(program, eqn, &flops));
  const ax_dtype dtype = program->types[eqn->in_count > 0 ? eqn->in[0] : eqn->out].dtype;
  d->flops[core] += flops;
  d->to_compute[core] += flops / ax_cluster_flops(d->place->machine, dtype);
  return AX_OK;
}

/* From now on, or when it is free: when it is through. */
static double take(double *free, double now, double seconds) {
  const double begin = *free > now ? *free : now;
  return *free = begin + seconds;
}

static bool is_large(ax_space space) { return space == AX_SPACE_HBM || space == AX_SPACE_ANY; }

/* Bytes of a device's memory, or of its cores' own. */
static double move(driver *d, uint32_t device, bool large, double bytes) {
  const ax_cluster *m = d->place->machine;
  if (large) return take(&d->memory[device], d->time, bytes / m->memory);
  return m->scratch > 0 ? take(&d->scratch[device], d->time, bytes / m->scratch) : d->time;
}

/* Over all links of its way: when the last of them has carried it. */
static ax_status carry(driver *d, uint32_t from, uint32_t to, double bytes, double *end) {
  AX_TRY(ax_sim_route_find(d->place, d->machine->devices[from], d->machine->devices[to], &d->route));
  *end = d->time + d->route.overhead;
  for (uint32_t h = 0; h < d->route.count; h++) {
    const ax_sim_hop *hop = &d->route.hops[h];
    const double seconds = bytes * hop->weight / ax_sim_place_wire(d->place, hop->link)->bandwidth;
    const double through = take(&d->links[hop->link], d->time + d->route.overhead, seconds);
    d->carried[hop->link] += seconds;
    *end = through > *end ? through : *end;
  }
  return AX_OK;
}

/* Finds the time at which a copy has read, or written. Its signals arrive with the written data. */
static ax_status end_copying(driver *d, const ax_copy_way *way, bool writes, double *end) {
  const bool away = way->from != way->to;
  *end = d->time;
  if (writes && away) {
    AX_TRY(ax_sim_route_find(d->place, d->machine->devices[way->from], d->machine->devices[way->to], &d->route));
    *end = d->time + d->route.latency;
  }
  if (writes) return AX_OK;
  if (away) d->out->sent += way->bytes;
  else d->out->copied += way->bytes;
  if (away) return carry(d, way->from, way->to, way->bytes, end);
  *end = move(d, way->from, is_large(way->from_space) || is_large(way->to_space), way->bytes);
  return AX_OK;
}

/* Finds the end of an act that only touches memory. */
static ax_status end_local(driver *d, uint32_t agent, const ax_act *act, double *end) {
  const ax_touches *touches = d->system.touches;
  ax_copy_way way;
  *end = d->time;
  if (ax_state_copy_way(d->state, agent, &way))
    return end_copying(d, &way, act->touch_count > 0 && touches->touches[act->touch_first].write, end);
  if (!agent_of(d, agent)->initial || agent >= d->machine->core_count) return AX_OK; /* the beginning or end of a device */
  for (uint32_t i = 0; i < act->touch_count; i++) {
    const ax_touch *t = &touches->touches[act->touch_first + i];
    double bytes = 0;
    for (uint32_t r = 0; r < t->count && !t->scope; r++)
      bytes += (double)(touches->runs[t->first + r].end - touches->runs[t->first + r].begin);
    const double through = move(d, agent_of(d, agent)->device, is_large(ax_state_region_space(d->state, t->region)), bytes);
    *end = through > *end ? through : *end;
  }
  return AX_OK;
}

/* --- Agents --- */

static ax_status peek(driver *d, uint32_t agent, ax_act *act, bool *enabled) {
  AX_TRY(d->system.peek(d->system.context, d->state, agent, act, enabled));
  return make_room(d);
}

/* Looks at an agent's next act; the computation since its last act takes its time first. */
static ax_status look(driver *d, uint32_t agent) {
  ax_act act;
  bool enabled;
  if (agent >= d->system.agents(d->system.context, d->state)) return AX_OK;
  AX_TRY(peek(d, agent, &act, &enabled));
  if (agent >= d->machine->core_count || d->flops[agent] == 0) return push(d, d->time, MEET, agent, 0);
  const uint32_t device = agent_of(d, agent)->device;
  const double seconds = d->to_compute[agent], end = take(&d->computes[device], d->time, seconds);
  d->out->flops += d->flops[agent];
  d->busy[device] += seconds;
  d->flops[agent] = d->to_compute[agent] = 0;
  AX_TRY(note(d, agent, "computes", end - seconds, end));
  return push(d, end, MEET, agent, 0);
}

static ax_status wake(driver *d, ax_act_kind kind, uint32_t object) {
  for (uint32_t a = 0; a < ax_machine_agents(d->machine); a++) { /* copies never wait */
    const waiting w = d->waits[a];
    if (w.kind != kind || w.object != object) continue;
    d->waits[a].kind = AX_ACT_NONE;
    AX_TRY(note(d, a, "waits", w.since, d->time));
    AX_TRY(push(d, d->time, MEET, a, 0));
  }
  return AX_OK;
}

/* Lets other agents learn of an act that was just done. */
static ax_status tell(driver *d, uint32_t agent, const ax_act *act) {
  AX_TRY(wake(d, AX_ACT_JOIN, agent));
  if (act->kind == AX_ACT_START) return push(d, d->time, LOOK, act->object, 0);
  if (act->kind == AX_ACT_ARRIVE) return wake(d, AX_ACT_AWAIT, act->object);
  if (act->kind != AX_ACT_SIGNAL) return AX_OK;
  const uint32_t from = agent_of(d, agent)->device, to = d->watch->objects.semaphores[act->object].device;
  double seen = d->time;
  if (from != to && agent_of(d, agent)->initial) {
    AX_TRY(carry(d, from, to, 0, &seen));
    seen += d->route.latency;
  }
  return push(d, seen, SEEN, act->object, act->amount);
}

static ax_status finish(driver *d, uint32_t agent, const ax_act *act) {
  ax_act_fault fault = {.region = AX_NONE};
  d->out->acts++;
  AX_TRY(d->system.step(d->system.context, d->state, agent, &fault));
  AX_TRY(make_room(d));
  if (fault.kind != AX_FINDING_NONE) return ax_error(AX_INVALID_ARGUMENT, "simulate: %s: %s", agent_of(d, agent)->name, fault.text);
  if (d->time > d->out->seconds) d->out->seconds = d->time;
  AX_TRY(tell(d, agent, act));
  return push(d, d->time, LOOK, agent, 0);
}

static ax_status hold(driver *d, uint32_t agent, const ax_act *act) {
  d->waits[agent] = (waiting){act->kind, act->object, act->amount, d->time};
  return AX_OK;
}

/* It comes to its act. Copies are not seen to wait: they are started when they can go. */
static ax_status meet(driver *d, uint32_t agent) {
  ax_act act;
  bool enabled;
  double end;
  AX_TRY(peek(d, agent, &act, &enabled));
  if (act.kind == AX_ACT_NONE) return AX_OK;
  if (act.kind == AX_ACT_WAIT) {
    if (d->visible[act.object] < act.amount) return hold(d, agent, &act);
    d->visible[act.object] -= act.amount;
    return finish(d, agent, &act);
  }
  if (!enabled) return hold(d, agent, &act);
  if (act.kind != AX_ACT_LOCAL) return finish(d, agent, &act);
  AX_TRY(end_local(d, agent, &act, &end));
  if (end <= d->time) return finish(d, agent, &act);
  AX_TRY(note(d, agent, agent_of(d, agent)->initial ? "loads and stores" : "copies", d->time, end));
  return push(d, end, DO, agent, 0);
}

static ax_status happen(driver *d, const event *e) {
  ax_act act;
  bool enabled;
  switch (e->what) {
    case LOOK: return look(d, e->which);
    case MEET: return meet(d, e->which);
    case SEEN: d->visible[e->which] += e->amount; return wake(d, AX_ACT_WAIT, e->which);
    default: AX_TRY(peek(d, e->which, &act, &enabled)); return finish(d, e->which, &act);
  }
}

static ax_status deadlock(const driver *d) {
  for (uint32_t a = 0; a < d->wait_count; a++)
    if (d->waits[a].kind != AX_ACT_NONE)
      return ax_error(AX_DEADLOCK, "simulate: deadlock in the kernel %s: %s waits, and nobody goes on", d->out->name,
                      agent_of(d, a)->name);
  return AX_OK;
}

static ax_status drive(driver *d) {
  AX_TRY(d->system.create(d->system.context, &d->state));
  AX_TRY(make_room(d));
  for (uint32_t a = 0; a < ax_machine_agents(d->machine); a++) AX_TRY(push(d, 0, LOOK, a, 0));
  while (d->heap_count > 0) {
    const event e = pop(d);
    d->time = e.time;
    AX_TRY(happen(d, &e));
  }
  AX_TRY(deadlock(d));
  const double all = d->out->seconds > 0 ? d->out->seconds : 1;
  const int64_t links = ax_sim_place_links(d->place);
  for (uint32_t i = 0; i < d->machine->device_count; i++)
    d->out->computing = d->busy[i] / all > d->out->computing ? d->busy[i] / all : d->out->computing;
  for (int64_t l = 0; l < links; l++)
    d->out->carrying = d->carried[l] / all > d->out->carrying ? d->carried[l] / all : d->out->carrying;
  return AX_OK;
}

/* --- A kernel --- */

static ax_status allocate(driver *d) {
  const size_t devices = d->machine->device_count, cores = d->machine->core_count, links = (size_t)ax_sim_place_links(d->place);
  d->computes = ax_calloc(4 * devices + 2 * cores + 2 * links, sizeof d->computes[0]);
  if (d->computes == NULL) return ax_out_of_memory((4 * devices + 2 * cores + 2 * links) * sizeof d->computes[0]);
  d->memory = d->computes + devices;
  d->scratch = d->memory + devices;
  d->busy = d->scratch + devices;
  d->flops = d->busy + devices;
  d->to_compute = d->flops + cores;
  d->links = d->to_compute + cores;
  d->carried = d->links + links;
  return AX_OK;
}

static ax_status time_machine(ax_machine *machine, const ax_eval_args *args, const ax_sim_place *place, ax_arena *texts,
                              ax_simulated_kernel *out) {
  ax_watch watch;
  driver d = {.place = place, .machine = machine, .watch = &watch, .out = out, .texts = texts};
  AX_TRY(ax_watch_init(&watch, machine, args->in));
  d.system = ax_watch_system(&watch);
  machine->computes = computed;
  machine->computes_context = &d;
  ax_status status = allocate(&d);
  if (status == AX_OK) status = drive(&d);
  if (d.state != NULL) d.system.release(d.system.context, d.state);
  ax_watch_deinit(&watch);
  ax_sim_route_deinit(&d.route);
  ax_free(d.heap);
  ax_free(d.waits);
  ax_free(d.visible);
  ax_free(d.computes);
  return status;
}

typedef struct timing {
  const ax_sim_place *place;
  ax_timed_kernels *out;
} timing;

static ax_status keep(ax_timed_kernels *k, const char *text, const char **out) {
  *out = ax_arena_copy(&k->texts, text, strlen(text) + 1);
  return *out != NULL ? AX_OK : ax_out_of_memory(strlen(text) + 1);
}

/* Reference evaluation has come to a kernel. */
static ax_status come_to(const ax_eval_args *args, void *context) {
  const timing *t = context;
  ax_timed_kernels *k = t->out;
  const ax_kernel_params *params = args->eqn->params;
  for (uint32_t i = 0; i < k->count; i++)
    if (k->eqns[i] == args->eqn) return AX_OK;
  AX_TRY(ax_grow(&k->kernels, sizeof k->kernels[0], k->count, 1, &k->capacity));
  AX_TRY(ax_grow(&k->eqns, sizeof k->eqns[0], k->count, 1, &k->eqn_capacity));
  ax_simulated_kernel *made = &k->kernels[k->count];
  *made = (ax_simulated_kernel){0};
  k->eqns[k->count++] = args->eqn;
  AX_TRY(keep(k, params->name != NULL ? params->name : "kernel", &made->name));
  AX_TRY(keep(k, args->eqn->location != NULL ? args->eqn->location : "", &made->location));
  ax_machine *machine;
  AX_TRY(ax_machine_of(args, NULL, &machine));
  ax_status status = time_machine(machine, args, t->place, &k->texts, made);
  ax_machine_release(machine);
  return status;
}

/* Small numbers, of integers 0, as the checker makes them up. */
static ax_status make_input(const ax_type *type, uint32_t index, ax_tensor **out) {
  uint64_t random = index + 1;
  AX_TRY(ax_tensor_create(type, out));
  for (int64_t i = 0; i < ax_type_elems(type) && ax_is_float(type->dtype); i++)
    ax_number_store(type->dtype, (*out)->data, i, (ax_number){.f = (double)(int64_t)(ax_next_random(&random) % 17) / 4 - 2});
  return AX_OK;
}

ax_status ax_kernels_time(const ax_program *program, const ax_sim_place *place, ax_timed_kernels *out) {
  timing t = {place, out};
  const ax_hooks hooks = {.kernel = come_to, .kernel_context = &t};
  ax_tensor **in = ax_calloc(program->in_count + 1, sizeof in[0]), **results = ax_calloc(program->out_count + 1, sizeof results[0]);
  ax_status status = in != NULL && results != NULL ? AX_OK : ax_out_of_memory(program->in_count * sizeof in[0]);
  for (uint32_t i = 0; i < program->in_count && status == AX_OK; i++) status = make_input(&program->types[i], i, &in[i]);
  if (status == AX_OK) status = ax_evaluate_on(&hooks, program, in, results);
  for (uint32_t i = 0; in != NULL && i < program->in_count; i++) ax_tensor_release(in[i]);
  for (uint32_t i = 0; results != NULL && i < program->out_count; i++) ax_tensor_release(results[i]);
  ax_free(in);
  ax_free(results);
  return status;
}

/* Passes between may have made equations anew: they have the name, and where it is known the place. */
const ax_simulated_kernel *ax_kernels_find(const ax_timed_kernels *k, const ax_eqn *eqn) {
  const ax_kernel_params *params = eqn->params;
  const char *name = params->name != NULL ? params->name : "kernel", *location = eqn->location != NULL ? eqn->location : "";
  const ax_simulated_kernel *named = NULL;
  for (uint32_t i = 0; i < k->count; i++) {
    if (strcmp(k->kernels[i].name, name) != 0) continue;
    if (named == NULL) named = &k->kernels[i];
    if (strcmp(k->kernels[i].location, location) == 0 && k->eqns[i]->line == eqn->line) return &k->kernels[i];
  }
  return named;
}

void ax_timed_kernels_deinit(ax_timed_kernels *k) {
  for (uint32_t i = 0; i < k->count; i++) ax_free(k->kernels[i].spans);
  ax_free(k->kernels);
  ax_free(k->eqns);
  ax_arena_deinit(&k->texts);
  *k = (ax_timed_kernels){0};
}
