/* Copies and memory, for those who want to know what they take. */
#include "kernel/machine/timing.h"

#include "kernel/machine/state.h"

ax_space ax_state_region_space(const ax_state *state, uint32_t region) {
  return region < state->place_count ? state->places[region].type.space : AX_SPACE_NONE;
}

bool ax_state_copy_way(const ax_state *state, uint32_t agent, ax_copy_way *out) {
  const ax_actor *actor = ax_state_actor(state, agent);
  if (actor == NULL || actor->kind != AX_AGENT_COPY || !actor->started || actor->through) return false;
  const ax_state_copy *t = &actor->transfer;
  if (t->from.region >= state->place_count || t->to.region >= state->place_count) return false;
  *out = (ax_copy_way){.from = state->places[t->from.region].device,
                       .to = state->places[t->to.region].device,
                       .from_space = ax_state_region_space(state, t->from.region),
                       .to_space = ax_state_region_space(state, t->to.region),
                       .bytes = (double)ax_type_elems(&t->from.type) * (double)ax_dtype_bytes(t->from.type.dtype)};
  return true;
}
