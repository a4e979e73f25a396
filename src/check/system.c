/* One run of a system, as a record. */
#include <string.h>

#include "check/explore.h"

typedef struct recorder {
  const ax_system *system;
  void *state;
  ax_act_record *out;
  uint64_t steps, most;
} recorder;

/* One step of the agent, if it can; *done: it could; *through: nothing is left of it to do, or it has not begun. */
static ax_status try_step(recorder *r, uint32_t agent, bool *done, bool *through) {
  const ax_system *s = r->system;
  ax_act act = {.kind = AX_ACT_NONE};
  *done = *through = false;
  if (agent >= s->agents(s->context, r->state)) return AX_OK;
  AX_TRY(s->peek(s->context, r->state, agent, &act, done));
  *through = act.kind == AX_ACT_NONE;
  *done = *done && !*through;
  if (!*done) return AX_OK;
  if (++r->steps > r->most)
    return ax_error(AX_INVALID_ARGUMENT, "the run has no end within %llu steps: %s goes on and on", (unsigned long long)r->most,
                    s->objects->agents[agent].name);
  AX_TRY(ax_act_record_step(r->out, agent, &act, s->touches));
  ax_act_fault fault = {.region = AX_NONE};
  AX_TRY(s->step(s->context, r->state, agent, &fault));
  return fault.kind != AX_FINDING_NONE ? ax_act_record_fault(r->out, &fault) : AX_OK;
}

static ax_status follow(recorder *r, const ax_interleaving *schedule) {
  for (uint32_t k = 0; k < schedule->count; k++) {
    bool done, through;
    uint32_t agent = schedule->agents[k];
    AX_TRY(try_step(r, agent, &done, &through));
    if (done) continue;
    bool there = agent < r->system->objects->agent_count;
    return ax_error(AX_INVALID_ARGUMENT, "step %u of the schedule: agent %u%s%s%s cannot go on", k, agent, there ? " (" : "",
                    there ? r->system->objects->agents[agent].name : "", there ? ")" : "");
  }
  return AX_OK;
}

ax_status ax_system_follow(const ax_system *system, const ax_interleaving *schedule, uint32_t *count) {
  ax_act_record record = {0};
  recorder r = {.system = system, .out = &record, .most = UINT64_MAX};
  bool done = true, through;
  *count = 0;
  ax_status status = system->create(system->context, &r.state);
  while (status == AX_OK && done && *count < schedule->count) {
    status = try_step(&r, schedule->agents[*count], &done, &through);
    if (done) ++*count;
  }
  system->release(system->context, r.state);
  ax_act_record_deinit(&record);
  return status;
}

typedef struct turns { /* agents that may still do something, in the order of their numbers; `acted`: by number, below `known` */
  uint32_t *agents, count, capacity, known, acted_capacity;
  bool *acted;
} turns;

static ax_status add_turn(turns *t) {
  AX_TRY(ax_grow(&t->agents, sizeof t->agents[0], t->count, 1, &t->capacity));
  AX_TRY(ax_grow(&t->acted, sizeof t->acted[0], t->known, 1, &t->acted_capacity));
  t->acted[t->known] = false;
  t->agents[t->count++] = t->known++;
  return AX_OK;
}

/* A step each, also of those that this round has begun. *reads: a count was read. */
static ax_status go_round(recorder *r, turns *t, bool *any, bool *reads) {
  const ax_system *s = r->system;
  uint32_t kept = 0;
  *any = *reads = false;
  for (uint32_t k = 0;; k++) {
    if (k == t->count && t->known < s->agents(s->context, r->state)) AX_TRY(add_turn(t));
    if (k == t->count) break;
    const uint32_t agent = t->agents[k];
    bool done, through;
    AX_TRY(try_step(r, agent, &done, &through));
    t->acted[agent] = t->acted[agent] || done;
    *reads = *reads || (done && r->out->steps[r->out->step_count - 1].act.kind == AX_ACT_READ);
    *any = *any || done;
    if (!through || !t->acted[agent]) t->agents[kept++] = agent;
  }
  t->count = kept;
  return AX_OK;
}

/* Agents that read counts, or memory, may come to the same state again, and so for ever: it is compared with one that is kept, a later one
   after 1, 2, 4, .. times. */
typedef struct circle {
  uint64_t kept[2], rounds, next;
} circle;

static bool closes(circle *c, const recorder *r) {
  uint64_t hash[2];
  r->system->hash(r->system->context, r->state, hash);
  if (c->rounds > 0 && memcmp(hash, c->kept, sizeof hash) == 0) return true;
  if (c->rounds++ < c->next) return false;
  c->next = 2 * c->rounds;
  memcpy(c->kept, hash, sizeof hash);
  return false;
}

/* Agents in turn. There are many copies, but few at a time: who is through is not asked again. */
static ax_status go_on(recorder *r) {
  enum { many_rounds = 1 << 10 };
  turns t = {0};
  circle c = {0};
  ax_status status = AX_OK;
  bool any = true, reads = false;
  for (uint64_t round = 1; any && status == AX_OK; round++) {
    status = go_round(r, &t, &any, &reads);
    if (status == AX_OK && any && (reads || round % many_rounds == 0) && closes(&c, r)) break;
  }
  ax_free(t.agents);
  ax_free(t.acted);
  return status;
}

static ax_status note_pending(recorder *r) {
  const ax_system *s = r->system;
  for (uint32_t a = 0; a < s->agents(s->context, r->state); a++) {
    ax_act act;
    bool enabled;
    AX_TRY(s->peek(s->context, r->state, a, &act, &enabled));
    if (act.kind != AX_ACT_NONE) AX_TRY(ax_act_record_pending(r->out, a, &act, s->touches));
  }
  return AX_OK;
}

static ax_status copy_objects(const ax_act_objects *from, ax_act_objects *to) {
  for (uint32_t k = 0; k < from->agent_count; k++) AX_TRY(ax_act_objects_add_agent(to, from->agents[k]));
  for (uint32_t k = 0; k < from->semaphore_count; k++) AX_TRY(ax_act_objects_add_semaphore(to, from->semaphores[k]));
  for (uint32_t k = 0; k < from->barrier_count; k++) AX_TRY(ax_act_objects_add_barrier(to, from->barriers[k]));
  for (uint32_t k = 0; k < from->region_count; k++) AX_TRY(ax_act_objects_add_region(to, from->regions[k]));
  return AX_OK;
}

enum { longest_run = 1 << 24 }; /* acts; 100 bytes each, and far more than kernels that end have */

ax_status ax_system_record(const ax_system *system, const ax_interleaving *schedule, bool finish, uint64_t most_steps,
                           ax_act_record *out) {
  *out = (ax_act_record){0};
  recorder r = {.system = system, .out = out, .most = most_steps > 0 ? most_steps : longest_run};
  ax_status status = system->create(system->context, &r.state);
  if (status == AX_OK && schedule != NULL) status = follow(&r, schedule);
  if (status == AX_OK && finish) status = go_on(&r);
  if (status == AX_OK) status = note_pending(&r);
  system->release(system->context, r.state);
  if (status == AX_OK) status = copy_objects(system->objects, &out->objects);
  if (status != AX_OK) ax_act_record_deinit(out);
  return status;
}
