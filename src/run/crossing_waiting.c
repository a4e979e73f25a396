/* Contributions whose time has not come, by group: those of members elsewhere, and copies that members here have left. */
#include "run/crossing_group.h"
#include "run/scheduler.h"

static bool is_own(const ax_crossing_group *g, const ax_delivery *delivery) { return delivery->from == g->own->process; }

bool ax_crossing_may_be_put(const ax_execution *run, const ax_crossing_group *g, const ax_delivery *delivery, ax_open_round **round) {
  const ax_push *push = g->instr->push;
  *round = ax_crossing_round(g, delivery->envelope.words[0]);
  if (*round == NULL) return false;
  if (push->exchange->combine == AX_SCALAR_NONE || ax_is_total(delivery)) return true;
  const uint64_t turn = (delivery->envelope.words[0] - 1) * push->members + delivery->envelope.member;
  return atomic_load(&run->counters[g->counter].count) == turn;
}

/* Rounds that have been opened come first, so that what waits for later ones is not looked at. */
void ax_crossing_wait(ax_crossing_group *g, ax_delivery *delivery) {
  const ax_crossing *crossing = g->instr->push->crossing;
  const uint64_t round = delivery->envelope.words[0];
  uint32_t i = 0;
  while (crossing->parties[crossing->begin[g->group] + i].process != delivery->from) i++;
  ax_deliveries *list = &g->waiting[i];
  ax_delivery *before = list->first != NULL ? list->last : NULL;
  if (before != NULL && before->envelope.words[0] > round) {
    before = NULL;
    for (ax_delivery *one = list->first; one->envelope.words[0] <= round; one = one->next) before = one;
  }
  ax_deliveries_insert(list, before, delivery);
  g->left += is_own(g, delivery);
  g->to_fetch += ax_has_to_be_fetched(delivery);
  atomic_fetch_add(&g->waiting_count, 1);
}

/* In a sum it is the turn of a member here, and nothing else can be done until then. */
static bool is_turn_of_own(const ax_execution *run, const ax_crossing_group *g) {
  const ax_push *push = g->instr->push;
  if (push->exchange->combine == AX_SCALAR_NONE || g->split || g->to_fetch > 0 || g->left > 0) return false;
  const uint64_t member = atomic_load(&run->counters[g->counter].count) % push->members;
  return push->crossing->here[g->group * push->members + member] != AX_NONE;
}

static ax_delivery *take_waiting_from(const ax_execution *run, ax_crossing_group *g, ax_deliveries *list, ax_open_round **round) {
  ax_delivery *before = NULL;
  for (ax_delivery *one = list->first; one != NULL && one->envelope.words[0] <= g->latest; before = one, one = one->next) {
    if (!ax_crossing_may_be_put(run, g, one, round) && !(ax_has_to_be_fetched(one) && *round != NULL)) continue;
    g->left -= is_own(g, one);
    g->to_fetch -= ax_has_to_be_fetched(one);
    atomic_fetch_sub(&g->waiting_count, 1);
    return ax_deliveries_take(list, before);
  }
  return NULL;
}

ax_delivery *ax_crossing_take_ready(const ax_execution *run, ax_crossing_group *g, ax_open_round **round) {
  ax_delivery *one = NULL;
  if (atomic_load(&g->waiting_count) == 0 || is_turn_of_own(run, g)) return NULL;
  for (uint32_t i = 0; i < ax_crossing_parties(g) && one == NULL; i++) one = take_waiting_from(run, g, &g->waiting[i], round);
  return one;
}

