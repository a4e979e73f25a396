/* A depth-first search of the states of a system.

   AX_EXPLORE_ALL takes every enabled step from every state. A fault shows at some state: no agent can go on; two conflicting acts
   are next and both enabled; an agent is about to wait for a phase, and the one after it is complete.

   AX_EXPLORE_REDUCED does an act at once, alone, if it commutes with all acts that others can ever do before it. The future is not
   known, so this is *assumed*. The search looks for evidence against an assumption; where it finds some it drops the assumption and
   begins again. The assumptions are

     of a semaphore   that one agent waits on it, and no agent reads its count
     of bytes         that no two agents may touch them at the same time, one of them writing; of a whole region, that only one
                      agent touches it

   Acts whose assumption was dropped are *contended*. From a state the search takes one step, of an agent whose next act is enabled
   and not contended; where there is none, every enabled step. Where that step touches memory that others touch as well, is a wait
   for a phase, or is a copy's, the search also goes the other way: this agent is *held* there, and all others go on for as long as
   they can (the same search, of the system without this agent). One of them may come to an act that conflicts with the held one.

   Nothing is missed. Call a state *bad* if it is evidence against an assumption, shows a race or misuse, or is final. Suppose there
   is one. Take a shortest run r to a bad state, so that before its end all assumptions hold, and follow the search from the first
   state. Where it takes one step g, of agent a:

     a moves in r       its first step in r is g. The steps before it in r commute with g: their states are not bad, so there is no
                        conflict. So r goes to the same state with g in front, and the rest is shorter
     a does not move    g commutes with all of r. If a is not one of the agents that make the state bad, r leads from the state
                        after g to one that is bad for the same reason, and the system has fewer steps to go. If it is, g makes the
                        state bad together with an act f of another agent: then a is held, and the search without a follows r, in
                        the same way, to where f is next

   Where the search takes every step, it takes r's first one as well. Runs are finite, so it comes to the bad state. Once there is
   no evidence against the remaining assumptions, every final state, deadlock, race and misuse has been found, with every result. (A
   final state is bad because of all agents; but there all agents have moved in r that can.)

   Where counts are read, two things are added. States that differ in the acts that led to them are distinct (history.c), so that
   every complete run is met, up to the order of its acts. And orders.c looks at these runs in other orders.

   Where runs go in circles (an agent reads a count, or memory under a lock, again and again), the search begins again and notes all
   steps: ends.c finds states from which no end can be reached.

   A system has one result, or there is a finding: runs that end well with different results are reported, unless acts race anyway.

   Agents that are alike (explore.h) may change places in a state, and it stays as good or bad as it was. So r can be followed up to
   such changes, and states that differ in nothing else are one. What one of these agents does, another may have done on the way that
   r is, so whatever is theirs counts as that of several. The exhaustive search of a kernel (check.c) joins no such states.

   States may be joined by hash, because the search from a state depends only on the state, the held agents and the assumptions.
   Where runs go in circles, one agent could keep all others from going on: if the one step leads to a state on the present path, every step is taken. */
#include "check/explore.h"

#include "check/explorer.h"
#include "check/scout.h"

static ax_status add_choice(ax_explorer *e, ax_explorer_node *n, uint32_t agent, bool holds) {
  AX_TRY(ax_grow(&e->choices, sizeof e->choices[0], e->choice_count, 1, &e->choice_capacity));
  e->choices[e->choice_count++] = (ax_explorer_choice){agent, holds};
  n->count++;
  return AX_OK;
}

/* May others do something to it before this act, or is it a matter of how far they come meanwhile? */
static bool is_worth_holding(const ax_explorer *e, const ax_next_act *n) {
  if (n->act.kind == AX_ACT_AWAIT) return true;
  const ax_act_agent *agent = &e->s->objects->agents[n->agent];
  if (!agent->initial && !agent->signal && ax_act_has_effect(&n->act)) return true;
  for (uint32_t t = n->act.touch_first; t < n->act.touch_first + n->act.touch_count; t++)
    if (ax_is_touched_by_several(&e->assumed, e->pool.touches[t].region)) return true;
  return false;
}

static ax_status choose(ax_explorer *e, ax_explorer_node *n) {
  n->first = e->choice_count;
  n->count = n->next = 0;
  if (e->options->mode == AX_EXPLORE_REDUCED)
    for (uint32_t i = 0; i < e->act_count; i++) {
      const ax_next_act *a = &e->acts[i];
      if (!a->enabled || a->agent == n->held || ax_assumptions_dropped(&e->assumed, &e->pool, &a->act)) continue;
      if (n->held == AX_NONE && is_worth_holding(e, a)) AX_TRY(add_choice(e, n, a->agent, true));
      n->alone = true;
      return add_choice(e, n, a->agent, false);
    }
  for (uint32_t i = 0; i < e->act_count; i++)
    if (e->acts[i].enabled && e->acts[i].agent != n->held) AX_TRY(add_choice(e, n, e->acts[i].agent, false));
  if (n->count > 0 || n->held == AX_NONE) return AX_OK;
  for (uint32_t i = 0; i < e->act_count; i++) /* what it would touch may be gone by now: doing it shows the fault */
    if (e->acts[i].agent == n->held && e->acts[i].enabled && e->acts[i].act.kind == AX_ACT_LOCAL && e->acts[i].act.touch_count == 0)
      AX_TRY(add_choice(e, n, n->held, false));
  return AX_OK;
}

/* The one step has come back to a state on the way: all others are taken as well. */
static ax_status choose_others(ax_explorer *e, ax_explorer_node *n, uint32_t but) {
  n->alone = false;
  AX_TRY(ax_explorer_peek(e, n->state));
  for (uint32_t i = 0; i < e->act_count; i++)
    if (e->acts[i].enabled && e->acts[i].agent != n->held && e->acts[i].agent != but)
      AX_TRY(add_choice(e, n, e->acts[i].agent, false));
  return AX_OK;
}

static ax_status look(ax_explorer *e, ax_explorer_node *n) {
  AX_TRY(ax_explorer_look(e, n->state));
  AX_TRY(choose(e, n));
  if (ax_explorer_notes_ends(e) && n->count == 0 && n->held == AX_NONE) AX_TRY(ax_ends_add(&e->ends, n->hash[0]));
  return n->count == 0 && n->held == AX_NONE ? ax_explorer_look_at_end(e, n->state) : AX_OK;
}

/* Adds the acts that led to a state to its hash: where counts are read, states that differ in these acts are distinct. */
static void hash_histories(const ax_explorer *e, uint64_t hash[2]) {
  for (uint32_t a = 0; a < e->done_count; a++) {
    const uint64_t word = ax_history_hash(&e->history[a]);
    if (word == 0) continue;
    hash[0] = ax_hash_word(ax_hash_word(hash[0], a), word);
    hash[1] = ax_hash_word(ax_hash_word(hash[1], word), a);
  }
}

static void hash_held(const ax_system *s, const void *state, uint32_t held, uint64_t hash[2]) {
  const uint64_t word = s->hash_agent != NULL ? s->hash_agent(s->context, state, held) : held + 1;
  hash[0] = ax_hash_word(hash[0], word);
  hash[1] ^= word * 0x9e3779b97f4a7c15ull;
}

/* Puts a state on the way, if it is new; the state is the explorer's from now on. after: the history of `came` from now on.
   *on_way: it is known, and on the way. */
static ax_status enter(ax_explorer *e, void *state, uint32_t held, uint32_t came, const ax_history *after, bool *on_way) {
  const ax_system *s = e->s;
  ax_explorer_node n = {.state = state, .held = held, .came = came, .before = came != AX_NONE ? e->history[came] : (ax_history){0}};
  uint64_t slot;
  bool is_new = false;
  *on_way = false;
  s->hash(s->context, state, n.hash);
  if (came != AX_NONE) e->history[came] = *after;
  if (e->assumed.reads) hash_histories(e, n.hash);
  if (e->depth == 0) e->first = n.hash[0];
  bool step = ax_explorer_notes_ends(e) && held == AX_NONE && came != AX_NONE;
  if (held != AX_NONE) hash_held(s, state, held, n.hash);
  ax_status status = step ? ax_ends_add_step(&e->ends, e->nodes[e->depth - 1].hash[0], n.hash[0], came) : AX_OK;
  if (status == AX_OK) status = ax_known_states_add(&e->known, n.hash, &slot, &is_new);
  if (status == AX_OK && is_new) status = ax_grow(&e->nodes, sizeof e->nodes[0], e->depth, 1, &e->node_capacity);
  if (status != AX_OK || !is_new) {
    if (status == AX_OK) *on_way = ax_known_states_on_way(&e->known, slot);
    e->circles = e->circles || (*on_way && held == AX_NONE);
    if (came != AX_NONE) e->history[came] = n.before;
    s->release(s->context, state);
    return status;
  }
  e->out->states++;
  n.bytes = s->bytes(s->context, state) + sizeof n;
  e->way_bytes += n.bytes;
  e->nodes[e->depth++] = n;
  size_t known_bytes = e->known.capacity * sizeof e->known.keys[0];
  if (known_bytes > e->out->known_bytes) e->out->known_bytes = known_bytes;
  if (known_bytes + e->way_bytes > e->out->bytes) e->out->bytes = known_bytes + e->way_bytes;
  if (came != AX_NONE) e->done[came]++;
  return look(e, &e->nodes[e->depth - 1]);
}

static void leave(ax_explorer *e) {
  ax_explorer_node *n = &e->nodes[--e->depth];
  ax_known_states_leave(&e->known, n->hash);
  if (n->came != AX_NONE) e->done[n->came]--, e->history[n->came] = n->before;
  e->way_bytes -= n->bytes;
  e->s->release(e->s->context, n->state);
  e->choice_count = n->first;
}

/* Takes the next choice of the last node. */
static ax_status advance(ax_explorer *e) {
  const ax_system *s = e->s;
  ax_explorer_node *n = &e->nodes[e->depth - 1];
  ax_explorer_choice c = e->choices[n->first + n->next++];
  uint32_t at = e->depth - 1;
  void *state;
  bool on_way, is_new;
  AX_TRY(s->clone(s->context, n->state, &state));
  if (c.holds) return enter(e, state, c.agent, AX_NONE, NULL, &on_way);
  ax_act_fault fault = {.region = AX_NONE};
  ax_act act;
  bool enabled;
  ax_status status = s->peek(s->context, state, c.agent, &act, &enabled);
  ax_history after = {0};
  if (status == AX_OK)
    after = ax_history_add(&e->history[c.agent], &act, s->touches,
                           act.kind == AX_ACT_READ ? s->semaphore(s->context, state, act.object) : 0);
  if (status == AX_OK) status = s->step(s->context, state, c.agent, &fault);
  e->out->transitions++;
  if (status == AX_OK && fault.kind != AX_FINDING_NONE) {
    ax_act_finding finding = ax_act_finding_of(fault.kind);
    finding.agent = c.agent;
    finding.position = e->done[c.agent];
    finding.object = fault.region;
    finding.fault = fault;
    status = ax_explorer_tell(e, finding, c.agent, &is_new);
  }
  if (status != AX_OK) {
    s->release(s->context, state);
    return status;
  }
  AX_TRY(enter(e, state, n->held, c.agent, &after, &on_way));
  n = &e->nodes[at];
  return on_way && n->alone ? choose_others(e, n, c.agent) : AX_OK;
}

static bool is_at_limit(ax_explorer *e) {
  uint64_t most = e->options->most_states > 0 ? e->options->most_states : 10 * 1000 * 1000;
  if (e->out->states >= most) return true;
  if (e->options->results_suffice && e->second_at > 0 && e->out->states >= 11 * e->second_at + 50000) return true;
  return e->options->most_seconds > 0 && (e->out->transitions & 255) == 0 && ax_seconds() - e->begin > e->options->most_seconds;
}

/* Searches all states once, under the present assumptions. */
static ax_status go_through(ax_explorer *e) {
  void *state;
  bool on_way;
  ax_known_states_clear(&e->known);
  ax_ends_clear(&e->ends);
  e->assumed.refuted = e->assumed.again = false;
  e->out->passes++;
  AX_TRY(e->s->create(e->s->context, &state));
  ax_status status = enter(e, state, AX_NONE, AX_NONE, NULL, &on_way);
  while (e->depth > 0 && status == AX_OK && !e->stopped) {
    ax_explorer_node *n = &e->nodes[e->depth - 1];
    if (n->next == n->count)
      leave(e);
    else
      status = advance(e);
    e->stopped = is_at_limit(e);
  }
  while (e->depth > 0) leave(e);
  return status;
}

static ax_status end_of_scout(void *context, const void *state, const ax_interleaving *schedule, bool whole) {
  ax_explorer *e = context;
  e->scouted = schedule;
  const ax_status status = whole ? ax_explorer_add_outcome(e, state) : AX_OK;
  e->scouted = NULL;
  return status == AX_OK ? ax_explorer_prove_scout(e, schedule) : status;
}

ax_status ax_explore(const ax_system *system, const ax_explore_options *options, ax_exploration *out) {
  *out = (ax_exploration){0};
  ax_explorer e = {.s = system, .options = options, .out = out, .begin = ax_seconds()};
  enum { scouts = 24 };
  ax_status status = options->results_suffice ? ax_scout(system, scouts, end_of_scout, &e) : AX_OK;
  for (bool again = true; again && status == AX_OK && !e.stopped;) {
    const bool noted = ax_explorer_notes_ends(&e);
    status = go_through(&e);
    again = (options->mode == AX_EXPLORE_REDUCED ? e.assumed.refuted : e.assumed.again) || noted != ax_explorer_notes_ends(&e);
  }
  out->bounded = e.stopped;
  if (status == AX_OK) status = ax_explorer_tell_whole(&e);
  ax_races_sort(&out->races);
  ax_known_states_deinit(&e.known);
  ax_known_states_deinit(&e.told);
  ax_known_states_deinit(&e.runs);
  ax_ends_deinit(&e.ends);
  ax_orders_deinit(&e.orders);
  ax_interleaving_deinit(&e.other);
  ax_interleaving_deinit(&e.end_way);
  system->release(system->context, e.end);
  ax_assumptions_deinit(&e.assumed);
  void *memory[] = {e.nodes, e.choices, e.done, e.history, e.acts};
  for (uint32_t k = 0; k < AX_COUNT(memory); k++) ax_free(memory[k]);
  ax_touches_deinit(&e.pool);
  if (status != AX_OK) ax_exploration_deinit(out);
  out->seconds = ax_seconds() - e.begin;
  return status;
}

void ax_exploration_deinit(ax_exploration *x) {
  ax_act_findings_deinit(&x->findings);
  ax_free(x->races.items);
  ax_free(x->outcomes);
  *x = (ax_exploration){0};
}
