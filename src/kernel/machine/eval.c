/* Reference evaluation of a kernel: the machine, one act of each agent in turn. */
#include <string.h>

#include "ir/prim.h"
#include "kernel/machine/machine.h"
#include "kernel/machine/state.h"

/* The error of a deadlock: lists the agents that are not through, and the act that each waits for. */
static ax_status deadlock(ax_state *state) {
  ax_text text = {0};
  uint32_t listed = 0;
  ax_text_add(&text, "deadlock in the kernel:");
  for (uint32_t agent = 0; agent < ax_state_agents(state) && listed < 8; agent++) {
    ax_act act;
    ax_act_fault fault;
    bool enabled;
    if (ax_state_peek(state, agent, &act, &enabled, &fault) != AX_OK || act.kind == AX_ACT_NONE) continue;
    const ax_actor *actor = ax_state_actor(state, agent);
    if (actor->kind == AX_AGENT_END || actor->kind == AX_AGENT_BEGIN) continue;
    ax_text_add(&text, "%s ", listed++ > 0 ? ";" : "");
    ax_actor_text(&text, state, agent);
    ax_text_add(&text, " waits in %s%s%s", act.what, act.location != NULL ? ", " : "", act.location != NULL ? act.location : "");
    if (act.kind == AX_ACT_WAIT)
      ax_text_add(&text, " for %lld, of which there are %lld", (long long)act.amount, (long long)state->objects[act.object].count);
  }
  ax_status status = text.failed ? ax_out_of_memory(0) : ax_error(AX_DEADLOCK, "%s", text.data);
  ax_text_deinit(&text);
  return status;
}

static ax_status fault_error(const ax_state *state, uint32_t agent, const ax_act_fault *fault) {
  ax_text text = {0};
  ax_actor_text(&text, state, agent);
  ax_status status = text.failed ? ax_out_of_memory(0) : ax_error(AX_INVALID_ARGUMENT, "%s: %s", text.data, fault->text);
  ax_text_deinit(&text);
  return status;
}

enum { many_acts = 1 << 14 };

/* An agent as far as it comes; not beyond a count that it reads, as it may read it again and again until another one changes it, and not
   beyond many acts, as it may read memory again and again. *acts: how many others it did. */
static ax_status go_on(ax_state *state, uint32_t agent, bool *moved, uint64_t *acts) {
  for (uint32_t k = 0; k < many_acts; k++) {
    ax_act act;
    ax_act_fault fault;
    bool enabled;
    AX_TRY(ax_state_peek(state, agent, &act, &enabled, &fault));
    if (fault.kind != AX_FINDING_NONE) return fault_error(state, agent, &fault);
    if (act.kind == AX_ACT_NONE || !enabled) return AX_OK;
    AX_TRY(ax_state_step(state, agent, &fault));
    if (fault.kind != AX_FINDING_NONE) return fault_error(state, agent, &fault);
    *moved = true;
    if (act.kind == AX_ACT_READ) return AX_OK;
    ++*acts;
  }
  return AX_OK;
}

/* A state that comes again comes for ever. It is compared with one that is kept, a later one after 1, 2, 4, .. times: after each round
   in which agents only read counts, and else after many acts. */
typedef struct circle {
  uint64_t kept[2], rounds, next;
} circle;

static bool closes(circle *c, const ax_state *state) {
  uint64_t hash[2];
  ax_state_hash(state, hash);
  if (c->rounds > 0 && memcmp(hash, c->kept, sizeof hash) == 0) return true;
  if (c->rounds++ < c->next) return false;
  c->next = 2 * c->rounds;
  memcpy(c->kept, hash, sizeof hash);
  return false;
}

/* The next agent that may have something to do: copies before `low` are through. */
static uint32_t after(const ax_state *state, uint32_t agent, uint32_t low) {
  const uint32_t copies = ax_machine_agents(state->machine);
  return agent + 1 >= copies && agent + 1 < low ? low : agent + 1;
}

ax_status ax_state_run(ax_state *state) {
  bool moved = true, done = false;
  circle circle = {0};
  uint64_t acts = 0, compared = 0;
  uint32_t low = ax_machine_agents(state->machine); /* copies end about as they begin, and there are many */
  while (moved && !done) {
    const uint64_t before = acts;
    moved = false;
    for (uint32_t agent = 0; agent < ax_state_agents(state); agent = after(state, agent, low))
      AX_TRY(go_on(state, agent, &moved, &acts));
    const bool compares = moved && (acts == before || acts - compared >= many_acts);
    if (compares && closes(&circle, state)) return deadlock(state);
    if (compares) compared = acts;
    for (const ax_actor *copy; (copy = ax_state_actor(state, low)) != NULL && copy->through;) low++;
    done = true;
    for (uint32_t agent = 0; agent < ax_state_agents(state) && done; agent = after(state, agent, low)) {
      const ax_actor *actor = ax_state_actor(state, agent);
      done = actor == NULL || actor->through;
    }
  }
  return done ? AX_OK : deadlock(state);
}

static ax_status run(const ax_eval_args *args, ax_machine *machine) {
  ax_state *state;
  AX_TRY(ax_state_create(machine, args->in, &state));
  ax_status status = ax_state_run(state);
  for (uint32_t k = 0; k < args->eqn->out_count && status == AX_OK; k++)
    for (uint32_t d = 0; d < args->lanes && status == AX_OK; d++)
      status = ax_state_result(state, k, d, &args->out[(size_t)k * args->lanes + d]);
  ax_state_release(state);
  return status;
}

ax_status ax_kernel_eval(const ax_eval_args *args) {
  ax_machine *machine;
  AX_TRY(ax_machine_of(args, args->hooks, &machine));
  ax_status status = run(args, machine);
  ax_machine_release(machine);
  ax_arena none = {0};
  return ax_region_eval_end(args, &none, status);
}

/* --- For people --- */

void ax_actor_text(ax_text *text, const ax_state *state, uint32_t agent) {
  const ax_machine *machine = state->machine;
  const ax_actor *actor = ax_state_actor(state, agent);
  uint32_t c = agent;
  if (agent >= machine->core_count && agent < ax_machine_agents(machine)) {
    bool end = agent < machine->core_count + machine->device_count;
    ax_text_add(text, "the %s of device %lld", end ? "end" : "beginning",
                (long long)machine->devices[agent - machine->core_count - (end ? 0 : machine->device_count)]);
    return;
  }
  if (agent >= machine->core_count) {
    const ax_name_key *key = ax_names_key(machine->names, AX_NAME_AGENT, agent - ax_machine_agents(machine));
    ax_text_add(text, "%s %u of ", key->site == 0 ? "copy" : "signal", key->index);
    c = key->core;
  }
  const ax_core *core = &machine->cores[c];
  const ax_mesh *mesh = &machine->params->bodies.v[core->body]->axes;
  ax_text_add(text, "device %lld", (long long)machine->devices[core->device]);
  for (uint32_t a = mesh->count - (uint32_t)machine->params->core_axes.v[core->body]; a < mesh->count; a++)
    ax_text_add(text, ", %s %lld", mesh->axis[a].name, (long long)ax_mesh_coordinate(mesh, core->place, a));
  if (machine->params->cores.count > 1) ax_text_add(text, " (%s)", machine->params->cores.name[core->body]);
  bool sent = actor != NULL && (actor->kind == AX_AGENT_COPY || actor->kind == AX_AGENT_SIGNAL);
  if (sent && actor->transfer.step->location != NULL) ax_text_add(text, ", started at %s", actor->transfer.step->location);
}
