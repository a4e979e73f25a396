/* See cores_crossing.h.

     envelope     place: the RUN; group, member; words: the kernel's (ax_cores_message). member AX_NONE: no more messages come */
#include "run/cores_crossing.h"

#include "run/scheduler.h"

/* A message that has not been taken yet: it is long, or behind one that is. */
typedef struct held {
  struct held *next;
  ax_delivery *delivery; /* not ours while it is being fetched */
  bool fetching;
} held;

typedef struct ax_cores_group {
  ax_execution *run;
  const ax_instr *instr;                 /* the RUN */
  uint32_t place, group, first, counter; /* first: the first member here; counter: that activations are parked on */
  _Atomic(void *) *states;               /* by member: of those here that have entered */
  held **queues;                         /* by process, in the order of sending; of the thread that handles messages */
} ax_cores_group;

/* --- Groups --- */

static const ax_crossing *crossing_of(const ax_cores_group *g) { return g->instr->cores->crossing; }
static const ax_process_map *map_of(const ax_cores_group *g) { return g->run->compiled->map; }

static ax_cores_group *group_at(const ax_remote *r, const ax_instr *instr, uint32_t group) {
  return &r->cores[instr->cores->crossing_first + instr->cores->crossing->index[group]];
}

static ax_cores_group *group_of(const ax_execution *run, const ax_activation *activation, const ax_instr *instr) {
  return group_at(run->remote, instr, instr->cores->crossing->group[activation->device]);
}

static ax_status describe(ax_remote *r, uint32_t place, uint32_t group) {
  const ax_instr *instr = &r->run->compiled->codes[0].instrs[place];
  const ax_cores_instr *cores = instr->cores;
  const ax_crossing *crossing = cores->crossing;
  ax_cores_group *g = group_at(r, instr, group);
  const uint32_t *here = &crossing->here[group * crossing->members], processes = r->run->compiled->map->processes;
  *g = (ax_cores_group){.run = r->run, .instr = instr, .place = place, .group = group};
  while (here[g->first] == AX_NONE) g->first++;
  g->counter = cores->first + cores->group[here[g->first]];
  g->states = ax_calloc(crossing->members, sizeof g->states[0]);
  g->queues = ax_calloc(processes, sizeof g->queues[0]);
  return g->states != NULL && g->queues != NULL ? AX_OK : ax_out_of_memory(crossing->members * sizeof g->states[0]);
}

static bool is_run(const ax_instr *instr) {
  return instr->kind == AX_INSTR_CORES && instr->cores->step == AX_CORES_RUN && instr->cores->crossing != NULL;
}

ax_status ax_cores_init(ax_remote *r) {
  const ax_compiled *c = r->run->compiled;
  r->cores = ax_calloc(c->cores_groups, sizeof r->cores[0]);
  if (r->cores == NULL) return ax_out_of_memory(c->cores_groups * sizeof r->cores[0]);
  for (uint32_t i = 0; i < c->codes[0].instr_count; i++) {
    const ax_instr *instr = &c->codes[0].instrs[i];
    for (uint32_t g = 0; is_run(instr) && g < instr->cores->crossing->groups; g++)
      if (instr->cores->crossing->index[g] != AX_NONE) AX_TRY(describe(r, i, g));
  }
  return AX_OK;
}

static void free_held(held **queue) {
  while (*queue != NULL) {
    held *one = *queue;
    *queue = one->next;
    if (!one->fetching) ax_delivery_free(one->delivery);
    ax_free(one);
  }
}

void ax_cores_reset(ax_remote *r) {
  for (uint32_t i = 0; i < r->run->compiled->cores_groups; i++) {
    ax_cores_group *g = &r->cores[i];
    for (uint32_t m = 0; g->states != NULL && m < crossing_of(g)->members; m++) atomic_store(&g->states[m], NULL);
    for (uint32_t p = 0; g->queues != NULL && p < map_of(g)->processes; p++) free_held(&g->queues[p]);
  }
}

void ax_cores_deinit(ax_remote *r) {
  if (r->cores == NULL) return;
  ax_cores_reset(r);
  for (uint32_t i = 0; i < r->run->compiled->cores_groups; i++) {
    ax_free(r->cores[i].states);
    ax_free(r->cores[i].queues);
  }
  ax_free(r->cores);
}

void ax_cores_entered(ax_execution *run, const ax_activation *activation, const ax_instr *instr, void *state) {
  atomic_store(&group_of(run, activation, instr)->states[instr->cores->number[activation->device]], state);
}

/* --- The caller of a kernel --- */

static void *state_of(const void *context, uint32_t member) {
  const ax_cores_group *g = context;
  return atomic_load(&g->states[member]);
}

static void wake(const void *context, uint32_t count) {
  const ax_cores_group *g = context;
  ax_scheduler_signal(g->run, g->counter, count);
}

static ax_envelope envelope_of(const ax_cores_group *g, uint32_t member) {
  return (ax_envelope){.kind = AX_MESSAGE_CORES, .place = g->place, .group = g->group, .member = member};
}

static ax_status send(const void *context, const ax_cores_message *message) {
  const ax_cores_group *g = context;
  const ax_crossing *crossing = crossing_of(g);
  const uint32_t device = crossing->first[g->group * crossing->members + message->member];
  ax_envelope envelope = envelope_of(g, message->member);
  envelope.bytes = message->bytes;
  for (size_t i = 0; i < AX_COUNT(message->words); i++) envelope.words[i] = message->words[i];
  return ax_remote_send(g->run->remote, map_of(g)->of[device], &envelope, message->data);
}

static ax_status say_closed(const void *context) {
  const ax_cores_group *g = context;
  const ax_crossing *crossing = crossing_of(g);
  for (uint32_t i = crossing->begin[g->group]; i < crossing->begin[g->group + 1]; i++) {
    ax_envelope envelope = envelope_of(g, AX_NONE);
    if (crossing->parties[i].process == map_of(g)->process) continue;
    AX_TRY(ax_remote_send(g->run->remote, crossing->parties[i].process, &envelope, NULL));
  }
  return AX_OK;
}

static bool poll(const void *context) {
  const ax_cores_group *g = context;
  (void)ax_remote_poll(g->run->remote);
  return !atomic_load(&g->run->over);
}

static void complete(const ax_cores_group *g, ax_cores_runner *runner) {
  const ax_crossing *crossing = crossing_of(g);
  runner->state = state_of;
  runner->wake = wake;
  runner->context = g;
  runner->members = crossing->members;
  runner->first = g->first;
  runner->away = crossing->begin[g->group + 1] - crossing->begin[g->group] - 1;
  runner->send = send;
  runner->close = say_closed;
  runner->poll = poll;
}

void ax_cores_cross(ax_execution *run, const ax_activation *activation, const ax_instr *instr, ax_cores_runner *runner) {
  complete(group_of(run, activation, instr), runner);
}

/* --- Messages that come --- */

static ax_status do_message(ax_cores_group *g, ax_delivery *delivery) {
  const ax_cores *cores = g->instr->cores->cores;
  const ax_envelope *envelope = &delivery->envelope;
  ax_cores_runner runner = {0};
  ax_status status = AX_OK;
  complete(g, &runner);
  if (envelope->member == AX_NONE) {
    cores->rules->closed(cores->kernel, &runner);
  } else {
    const ax_cores_message message = {.member = envelope->member,
                                      .words = {envelope->words[0], envelope->words[1], envelope->words[2]},
                                      .data = delivery->payload,
                                      .bytes = envelope->bytes};
    status = cores->rules->take(cores->kernel, &runner, &message);
  }
  ax_delivery_free(delivery);
  return status;
}

/* Puts a message behind those of the same process that have not been taken yet; a long one is fetched meanwhile. */
static ax_status hold(ax_cores_group *g, ax_delivery *delivery) {
  held **last = &g->queues[delivery->from], *one = ax_calloc(1, sizeof *one);
  if (one == NULL) {
    ax_delivery_free(delivery);
    return ax_out_of_memory(sizeof *one);
  }
  while (*last != NULL) last = &(*last)->next;
  *one = (held){.delivery = delivery, .fetching = ax_delivery_is_away(delivery)};
  *last = one;
  return one->fetching ? ax_remote_fetch(g->run->remote, delivery) : AX_OK;
}

static void note_fetched(ax_cores_group *g, const ax_delivery *delivery) {
  held *one = g->queues[delivery->from];
  while (one->delivery != delivery) one = one->next;
  one->fetching = false;
}

/* Does what messages of a process say, up to the first that is being fetched. */
static ax_status do_held(ax_cores_group *g, uint32_t from) {
  ax_status status = AX_OK;
  for (held *one; status == AX_OK && (one = g->queues[from]) != NULL && !one->fetching; ax_free(one)) {
    g->queues[from] = one->next;
    status = do_message(g, one->delivery);
  }
  return status;
}

/* NULL: the message names none, so that process runs something else. */
static ax_cores_group *group_named(const ax_remote *r, const ax_envelope *envelope) {
  const ax_code *code = &r->run->compiled->codes[0];
  const ax_instr *instr = envelope->place < code->instr_count ? &code->instrs[envelope->place] : NULL;
  if (instr == NULL || !is_run(instr) || envelope->group >= instr->cores->crossing->groups) return NULL;
  if (instr->cores->crossing->index[envelope->group] == AX_NONE) return NULL;
  ax_cores_group *g = group_at(r, instr, envelope->group);
  return atomic_load(&g->states[g->first]) != NULL ? g : NULL;
}

ax_status ax_cores_take(ax_execution *run, ax_delivery *delivery) {
  ax_cores_group *g = group_named(run->remote, &delivery->envelope);
  const uint32_t from = delivery->from;
  if (g == NULL) {
    ax_delivery_free(delivery);
    return ax_error(AX_INTERNAL, "process %u sends what no kernel of this program does", from);
  }
  if (delivery->fetched) note_fetched(g, delivery);
  else if (g->queues[from] == NULL && !ax_delivery_is_away(delivery)) return do_message(g, delivery);
  else AX_TRY(hold(g, delivery));
  return do_held(g, from);
}

/* --- Reports --- */

void ax_cores_waiting(ax_text *text, const ax_execution *run, const ax_activation *activation, const ax_instr *instr) {
  const ax_cores_group *g = group_of(run, activation, instr);
  const ax_cores *cores = instr->cores->cores;
  cores->rules->report(cores->kernel, state_of(g, g->first), text);
}
