/* What a state of a search shows: races, misuse, copies that nobody awaits, deadlocks, results. */
#include <string.h>

#include "check/conflict.h"
#include "check/explorer.h"

ax_status ax_explorer_peek(ax_explorer *e, void *state) {
  const ax_system *s = e->s;
  uint32_t agents = s->agents(s->context, state);
  e->act_count = e->pool.touch_count = e->pool.run_count = 0;
  AX_TRY(ax_grow(&e->acts, sizeof e->acts[0], 0, agents, &e->act_capacity));
  if (agents > e->done_count) {
    AX_TRY(ax_grow(&e->done, sizeof e->done[0], e->done_count, agents - e->done_count, &e->done_capacity));
    AX_TRY(ax_grow(&e->history, sizeof e->history[0], e->done_count, agents - e->done_count, &e->history_capacity));
    while (e->done_count < agents) e->history[e->done_count] = (ax_history){0}, e->done[e->done_count++] = 0;
  }
  for (uint32_t a = 0; a < agents; a++) {
    ax_next_act *n = &e->acts[e->act_count];
    n->agent = a;
    AX_TRY(s->peek(s->context, state, a, &n->act, &n->enabled));
    if (n->act.kind == AX_ACT_NONE) continue;
    uint32_t first = e->pool.touch_count;
    for (uint32_t t = 0; t < n->act.touch_count; t++)
      AX_TRY(ax_touches_copy(&e->pool, s->touches, &s->touches->touches[n->act.touch_first + t]));
    n->act.touch_first = first;
    e->act_count++;
  }
  AX_TRY(ax_assumptions_grow(&e->assumed, s->objects));
  for (uint32_t k = 0; k < e->act_count; k++) {
    const ax_next_act *n = &e->acts[k];
    ax_assumptions_note(&e->assumed, n->agent, s->has_like != NULL && s->has_like(s->context, n->agent), &n->act, &e->pool);
  }
  return AX_OK;
}

static ax_status look_at_races(ax_explorer *e) {
  for (uint32_t i = 0; i < e->act_count; i++) {
    if (!e->acts[i].enabled || e->acts[i].act.touch_count == 0) continue;
    for (uint32_t k = i + 1; k < e->act_count; k++) {
      const ax_next_act *a = &e->acts[i], *b = &e->acts[k];
      bool scope, is_new;
      if (!b->enabled || b->act.touch_count == 0) continue;
      if (!ax_touches_conflict(&e->pool, &a->act, &e->pool, &b->act, &scope)) continue;
      if (e->options->mode == AX_EXPLORE_REDUCED) AX_TRY(ax_assumptions_contend(&e->assumed, &e->pool, &a->act, &b->act));
      ax_act_finding finding = ax_act_finding_of(scope ? AX_FINDING_AFTER_SCOPE : AX_FINDING_RACE);
      finding.agent = a->agent;
      finding.position = e->done[a->agent];
      finding.other = b->agent;
      finding.other_position = e->done[b->agent];
      AX_TRY(ax_explorer_tell(e, finding, AX_NONE, &is_new));
      if (!is_new) continue;
      AX_TRY(ax_races_add(&e->out->races, (ax_race){a->agent, finding.position, b->agent, finding.other_position, scope}));
    }
  }
  return AX_OK;
}

static ax_status look_at_barriers(ax_explorer *e, void *state) {
  bool is_new;
  for (uint32_t i = 0; i < e->act_count; i++) {
    const ax_act *act = &e->acts[i].act;
    if (act->kind != AX_ACT_AWAIT) continue;
    if (e->s->arrivals(e->s->context, state, act->object) < (act->amount + 1) * e->s->objects->barriers[act->object].arrivals)
      continue;
    ax_act_finding finding = ax_act_finding_of(AX_FINDING_BARRIER);
    finding.agent = e->acts[i].agent;
    finding.position = e->done[finding.agent];
    finding.object = act->object;
    finding.amount = act->amount + 1;
    AX_TRY(ax_explorer_tell(e, finding, AX_NONE, &is_new));
  }
  return AX_OK;
}

/* Copies that are under way though all cores are through. */
static ax_status look_at_copies(ax_explorer *e) {
  bool is_new;
  for (uint32_t i = 0; i < e->act_count; i++)
    if (e->s->objects->agents[e->acts[i].agent].initial) return AX_OK;
  for (uint32_t i = 0; i < e->act_count; i++) {
    if (!ax_act_has_effect(&e->acts[i].act) || e->s->objects->agents[e->acts[i].agent].signal) continue;
    ax_act_finding finding = ax_act_finding_of(AX_FINDING_COPY_NOT_AWAITED);
    finding.agent = e->acts[i].agent;
    AX_TRY(ax_explorer_tell(e, finding, AX_NONE, &is_new));
  }
  return AX_OK;
}

ax_status ax_explorer_look(ax_explorer *e, void *state) {
  AX_TRY(ax_explorer_peek(e, state));
  AX_TRY(look_at_races(e));
  AX_TRY(look_at_barriers(e, state));
  return look_at_copies(e);
}

/* There is a second result: the state with the first one learns how large the terms of its sums were. */
static ax_status weigh_first(ax_explorer *e) {
  if (e->s->weigh == NULL) return AX_OK;
  e->s->release(e->s->context, e->end);
  e->end = NULL;
  return e->s->weigh(e->s->context, &e->end_way, &e->end);
}

ax_status ax_explorer_add_outcome(ax_explorer *e, const void *state) {
  ax_exploration *out = e->out;
  const uint64_t outcome = e->s->outcome(e->s->context, state);
  uint32_t at = 0;
  while (at < out->outcome_count && out->outcomes[at] < outcome) at++;
  if (at < out->outcome_count && out->outcomes[at] == outcome) return AX_OK;
  AX_TRY(ax_grow(&out->outcomes, sizeof out->outcomes[0], out->outcome_count, 1, &out->outcome_capacity));
  if (out->outcome_count == 0) {
    AX_TRY(e->s->clone(e->s->context, state, &e->end));
    AX_TRY(ax_explorer_way(e, &e->end_way));
  }
  if (out->outcome_count == 1) AX_TRY(weigh_first(e));
  if (out->outcome_count > 0)
    e->beyond_rounding = e->beyond_rounding || e->s->rounded == NULL || !e->s->rounded(e->s->context, e->end, state);
  if (out->outcome_count == 1) {
    AX_TRY(ax_explorer_way(e, &e->other));
    e->second_at = out->states + 1;
  }
  memmove(out->outcomes + at + 1, out->outcomes + at, (out->outcome_count - at) * sizeof out->outcomes[0]);
  out->outcomes[at] = outcome;
  out->outcome_count++;
  return AX_OK;
}

/* Nobody can go on, and all are through: the same acts in other orders, which reads of counts do not forbid. A run with other
   findings is wrong as it is. */
static ax_status look_at_orders(ax_explorer *e) {
  uint64_t word = AX_HASH_SEED, key[2], slot;
  bool is_new;
  if (!e->assumed.reads || e->out->kinds != 0) return AX_OK;
  for (uint32_t a = 0; a < e->done_count; a++) word = ax_hash_word(word, ax_history_hash(&e->history[a]));
  key[0] = ax_next_random(&word), key[1] = ax_next_random(&word);
  AX_TRY(ax_known_states_add(&e->runs, key, &slot, &is_new));
  if (!is_new) return AX_OK;
  ax_interleaving schedule = {0};
  ax_act_record record = {0};
  ax_status status = ax_explorer_way(e, &schedule);
  if (status == AX_OK) status = ax_system_record(e->s, &schedule, false, 0, &record);
  if (status == AX_OK) status = ax_orders_add(&e->orders, &record, e->options->most_states);
  ax_act_record_deinit(&record);
  ax_interleaving_deinit(&schedule);
  return status;
}

ax_status ax_explorer_look_at_end(ax_explorer *e, void *state) {
  const ax_system *s = e->s;
  bool is_new;
  for (uint32_t i = 0; i < e->act_count; i++)
    if (e->acts[i].act.kind == AX_ACT_SEEN) return AX_OK; /* no run goes this way */
  if (e->act_count > 0) {
    ax_act_finding finding = ax_act_finding_of(AX_FINDING_DEADLOCK);
    uint64_t word = 0;
    for (uint32_t i = 0; i < e->act_count; i++)
      word = ax_hash_word(word, (uint64_t)e->acts[i].agent << 32 | e->done[e->acts[i].agent]);
    finding.object = (uint32_t)word; /* so that each is told once */
    return ax_explorer_tell(e, finding, AX_NONE, &is_new);
  }
  AX_TRY(ax_explorer_add_outcome(e, state));
  for (uint32_t k = 0; k < s->objects->semaphore_count; k++) {
    ax_act_finding finding = ax_act_finding_of(AX_FINDING_LEAK);
    finding.object = k;
    finding.amount = s->semaphore(s->context, state, k);
    if (finding.amount != 0) AX_TRY(ax_explorer_tell(e, finding, AX_NONE, &is_new));
  }
  for (uint32_t k = 0; k < s->objects->barrier_count; k++) {
    ax_act_finding finding = ax_act_finding_of(AX_FINDING_BARRIER);
    finding.object = k;
    if (s->arrivals(s->context, state, k) % s->objects->barriers[k].arrivals != 0) AX_TRY(ax_explorer_tell(e, finding, AX_NONE, &is_new));
  }
  return look_at_orders(e);
}
