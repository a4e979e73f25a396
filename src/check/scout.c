/* A search in depth changes the order of what comes last first, and may be far from orders with another result: a sum whose first
   terms decide about its roundings. Runs at random differ from their beginnings on. */
#include "check/scout.h"

enum { most_looks = 4 * 1000 * 1000 }; /* at next acts, in all runs */

/* The first agent from a random one on that can go on; AX_NONE: none can. *pending: some have not come to their ends. */
static ax_status choose(const ax_system *s, void *state, uint64_t *random, uint64_t *looks, uint32_t *out, bool *pending) {
  const uint32_t agents = s->agents(s->context, state), first = (uint32_t)(ax_next_random(random) % agents);
  *out = AX_NONE;
  *pending = false;
  for (uint32_t k = 0; k < agents && *out == AX_NONE; k++) {
    const uint32_t agent = (first + k) % agents;
    ax_act act;
    bool enabled;
    ++*looks;
    AX_TRY(s->peek(s->context, state, agent, &act, &enabled));
    if (act.kind == AX_ACT_NONE) continue;
    *pending = true;
    if (enabled) *out = agent;
  }
  return AX_OK;
}

/* *ends: it is not given up. */
static ax_status run(const ax_system *s, void *state, uint64_t *random, uint64_t *looks, ax_interleaving *schedule, bool *ends,
                     bool *whole) {
  bool pending = true, faulty = false;
  *ends = false;
  for (uint32_t agent = 0; agent != AX_NONE && *looks < most_looks && !faulty;) {
    AX_TRY(choose(s, state, random, looks, &agent, &pending));
    if (agent == AX_NONE) *ends = true;
    if (agent == AX_NONE) break;
    ax_act_fault fault = {.region = AX_NONE};
    AX_TRY(ax_interleaving_add(schedule, agent));
    AX_TRY(s->step(s->context, state, agent, &fault));
    faulty = fault.kind != AX_FINDING_NONE;
  }
  *ends = *ends || faulty;
  *whole = !pending && !faulty;
  return AX_OK;
}

ax_status ax_scout(const ax_system *s, uint32_t runs, ax_scout_end end, void *context) {
  uint64_t random = 1, looks = 0;
  ax_status status = AX_OK;
  for (uint32_t k = 0; k < runs && looks < most_looks && status == AX_OK; k++) {
    ax_interleaving schedule = {0};
    void *state = NULL;
    bool ends = false, whole = false;
    status = s->create(s->context, &state);
    if (status == AX_OK) status = run(s, state, &random, &looks, &schedule, &ends, &whole);
    if (status == AX_OK && ends) status = end(context, state, &schedule, whole);
    s->release(s->context, state);
    ax_interleaving_deinit(&schedule);
  }
  return status;
}
