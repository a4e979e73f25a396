#include "support/schedules.h"

#include <stdio.h>
#include <stdlib.h>

#include "ir/prim.h"
#include "kernel/machine/state.h"
#include "support/cmocka.h"

typedef struct trial {
  uint32_t count;
  uint64_t seed;
  char wrong[1024];
} trial;

/* An agent that can go on, drawn among all; AX_NONE: none can. *left: somebody is not through. */
static uint32_t draw(ax_state *state, uint64_t *random, bool *left) {
  uint32_t chosen = AX_NONE, able = 0;
  *left = false;
  for (uint32_t agent = 0; agent < ax_state_agents(state); agent++) {
    ax_act act;
    ax_act_fault fault;
    bool enabled;
    TEST_OK(ax_state_peek(state, agent, &act, &enabled, &fault));
    *left = *left || act.kind != AX_ACT_NONE;
    if (enabled && ax_next_random(random) % ++able == 0) chosen = agent;
  }
  return chosen;
}

static void run_random(trial *t, const ax_machine *machine, ax_tensor *const *in, uint64_t seed, uint64_t outcome) {
  ax_state *state;
  uint64_t random = seed;
  bool left = true;
  TEST_OK(ax_state_create(machine, in, &state));
  for (uint32_t agent; t->wrong[0] == '\0' && (agent = draw(state, &random, &left)) != AX_NONE;) {
    ax_act_fault fault;
    TEST_OK(ax_state_step(state, agent, &fault));
    if (fault.kind == AX_FINDING_NONE) continue;
    ax_text who = {0};
    ax_actor_text(&who, state, agent);
    snprintf(t->wrong, sizeof t->wrong, "seed %llu: a fault: %s: %s", (unsigned long long)seed, who.data, fault.text);
    ax_text_deinit(&who);
  }
  if (t->wrong[0] == '\0' && left && ax_state_run(state) != AX_OK)
    snprintf(t->wrong, sizeof t->wrong, "seed %llu: %s", (unsigned long long)seed, ax_message());
  if (t->wrong[0] == '\0' && ax_state_outcome(state) != outcome)
    snprintf(t->wrong, sizeof t->wrong, "seed %llu: another outcome", (unsigned long long)seed);
  ax_state_release(state);
}

static ax_status come_to(const ax_eval_args *args, void *context) {
  trial *t = context;
  ax_machine *machine;
  ax_state *state;
  if (t->wrong[0] != '\0') return AX_OK;
  AX_TRY(ax_machine_of(args, NULL, &machine));
  machine->strict = true;
  TEST_OK(ax_state_create(machine, args->in, &state));
  ax_status status = ax_state_run(state);
  if (status != AX_OK) snprintf(t->wrong, sizeof t->wrong, "in the machine's own order: %s", ax_message());
  uint64_t outcome = ax_state_outcome(state);
  ax_state_release(state);
  for (uint32_t i = 0; i < t->count && t->wrong[0] == '\0'; i++) run_random(t, machine, args->in, t->seed + i, outcome);
  ax_machine_release(machine);
  return AX_OK;
}

const char *test_schedules_try(const ax_program *program, ax_tensor *const *in, ax_tensor **out, uint32_t count, uint64_t seed) {
  static _Thread_local trial t;
  t = (trial){.count = count, .seed = seed};
  const ax_hooks hooks = {.kernel = come_to, .kernel_context = &t};
  ax_status status = ax_evaluate_on(&hooks, program, in, out);
  if (status != AX_OK && t.wrong[0] == '\0') snprintf(t.wrong, sizeof t.wrong, "%s", ax_message());
  return t.wrong[0] != '\0' ? t.wrong : NULL;
}

void test_schedules(const ax_program *program, ax_tensor *const *in, ax_tensor **out, uint32_t count, uint64_t seed) {
  const char *wrong = test_schedules_try(program, in, out, count, seed);
  if (wrong != NULL) fail_msg("%s", wrong);
}
