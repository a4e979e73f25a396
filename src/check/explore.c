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

   Where counts are read, three things are added. States that differ in the acts that led to them are distinct (history.c), so that
   every complete run is met, up to the order of its acts. orders.c looks at these runs in other orders. And ends.c finds states
   from which no end can be reached.

   A system has one result, or there is a finding: runs that end well with different results are reported, unless acts race anyway.

   Agents that are alike (explore.h) may change places in a state, and it stays as good or bad as it was. So r can be followed up to
   such changes, and states that differ in nothing else are one. What one of these agents does, another may have done on the way that
   r is, so whatever is theirs counts as that of several. The exhaustive search of a kernel (check.c) joins no such states.

   States may be joined by hash, because the search from a state depends only on the state, the held agents and the assumptions.
   Where runs go in circles (a count that is read again and again), one agent could keep all others from going on: if the one step
   leads to a state on the present path, every step is taken. */
#include "check/explore.h"

#include <stdlib.h>
#include <string.h>

#include "check/conflict.h"
#include "check/ends.h"
#include "check/history.h"
#include "check/known.h"
#include "check/orders.h"
#include "check/scout.h"

enum { most_told = 24, most_deadlocks = 4 };

typedef struct choice {
  uint32_t agent;
  bool holds; /* the agent does not go on, and is held instead */
} choice;

typedef struct node {
  void *state;
  uint64_t hash[2];
  uint32_t held;               /* AX_NONE: nobody */
  uint32_t first, count, next; /* its choices, the last on the stack */
  uint32_t came;               /* whose step led here; AX_NONE: nobody's */
  ax_history before;            /* of `came`: before that step */
  size_t bytes;                /* of the state */
  bool alone;                  /* the one step is the only choice taken so far */
} node;

typedef struct next_act { /* of an agent */
  uint32_t agent;
  ax_act act; /* touches in the explorer's pool */
  bool enabled;
} next_act;

typedef struct semaphore_use {
  uint32_t waiter; /* AX_NONE: nobody yet */
  bool several, read;
} semaphore_use;

typedef struct region_use {
  uint32_t agent;
  bool several;
} region_use;

typedef struct contended_bytes {
  uint32_t region;
  ax_bytes bytes;
} contended_bytes;

typedef struct explorer {
  const ax_system *s;
  const ax_explore_options *options;
  ax_exploration *out;
  ax_known_states known;
  node *nodes;
  uint32_t depth, node_capacity;
  choice *choices;
  uint32_t choice_count, choice_capacity;
  uint32_t *done; /* by agent: acts done on the way */
  uint32_t done_count, done_capacity, history_capacity;
  next_act *acts; /* of the state that was entered last, of agents that are not through */
  uint32_t act_count, act_capacity;
  ax_touches pool;
  semaphore_use *semaphores;
  uint32_t semaphore_count, semaphore_capacity;
  region_use *regions;
  uint32_t region_count, region_capacity;
  contended_bytes *bytes;
  uint32_t byte_count, byte_capacity;
  ax_known_states told; /* findings, by what they are */
  uint32_t deadlocks;
  size_t way_bytes; /* of states on the way */
  double begin;
  ax_history *history; /* by agent, as `done` */
  bool reads;        /* counts are read: histories tell states apart */
  ax_known_states runs;     /* complete runs, by their histories */
  ax_orders orders;  /* what these come to in other orders */
  ax_interleaving other; /* to a second result */
  void *end;             /* a state with the first; NULL */
  bool beyond_rounding;  /* others differ from it by more than the order of additions */
  const ax_interleaving *scouted; /* to the state that is looked at, of a run at random; NULL: nodes are the way */
  uint64_t scout_steps;  /* that games of proofs of such runs have played */
  uint64_t second_at;    /* states, when a second result was found; 0: there is one */
  ax_ends ends;      /* where counts are read: of this pass */
  uint64_t first;    /* the first state's hash */
  bool refuted, again, stopped; /* again: refuted, and an exhaustive search has to begin again as well */
} explorer;

/* --- Findings --- */

static ax_status add_steps(ax_interleaving *to, const ax_interleaving *way) {
  for (uint32_t k = 0; k < way->count; k++) AX_TRY(ax_interleaving_add(to, way->agents[k]));
  return AX_OK;
}

/* The steps to the present state. */
static ax_status way_to(const explorer *e, ax_interleaving *out) {
  if (e->scouted != NULL) return add_steps(out, e->scouted);
  for (uint32_t d = 1; d < e->depth; d++)
    if (e->nodes[d].came != AX_NONE) AX_TRY(ax_interleaving_add(out, e->nodes[d].came));
  return AX_OK;
}

/* Adds a finding that the present state shows, after a step of agent `last` (AX_NONE: none); *is_new: it was not told before. */
static ax_status tell(explorer *e, ax_act_finding finding, uint32_t last, bool *is_new) {
  uint64_t key[2], slot,
      word = ax_hash_word((uint64_t)finding.kind << 32 | finding.object, (uint64_t)finding.agent << 32 | finding.position);
  word = ax_hash_word(word, (uint64_t)finding.other << 32 | finding.other_position);
  key[0] = ax_next_random(&word);
  key[1] = ax_next_random(&word);
  AX_TRY(ax_known_states_add(&e->told, key, &slot, is_new));
  e->out->kinds |= 1u << finding.kind;
  if (!*is_new || e->out->findings.count >= most_told) return AX_OK;
  if (finding.kind == AX_FINDING_DEADLOCK) {
    if (e->deadlocks++ >= most_deadlocks) return AX_OK;
    finding.object = AX_NONE;
  }
  ax_status status = way_to(e, &finding.schedule);
  if (last != AX_NONE && status == AX_OK) status = ax_interleaving_add(&finding.schedule, last);
  if (status == AX_OK) return ax_act_findings_add(&e->out->findings, finding);
  ax_interleaving_deinit(&finding.schedule);
  return status;
}

/* Words for what was found: each schedule is run again. */
static ax_status explain_all(explorer *e) {
  for (uint32_t k = 0; k < e->out->findings.count; k++) {
    ax_act_finding *finding = &e->out->findings.items[k];
    ax_act_record record;
    AX_TRY(ax_system_record(e->s, &finding->schedule, false, 0, &record));
    ax_act_run run = ax_act_record_run(&record);
    ax_status status = ax_act_finding_explain(finding, &run);
    ax_act_record_deinit(&record);
    AX_TRY(status);
  }
  return AX_OK;
}

/* --- What is assumed --- */

static bool is_contended_memory(const explorer *e, const ax_act *act) {
  for (uint32_t t = act->touch_first; t < act->touch_first + act->touch_count; t++) {
    const ax_touch *touch = &e->pool.touches[t];
    for (uint32_t b = 0; b < e->byte_count; b++) {
      if (e->bytes[b].region != touch->region) continue;
      for (uint32_t r = touch->first; r < touch->first + touch->count; r++)
        if (e->pool.runs[r].begin < e->bytes[b].bytes.end && e->bytes[b].bytes.begin < e->pool.runs[r].end) return true;
    }
  }
  return false;
}

static bool is_contended(const explorer *e, const ax_act *act) {
  if (act->kind == AX_ACT_SIGNAL && e->semaphores[act->object].read) return true;
  if (act->kind == AX_ACT_READ || act->kind == AX_ACT_SEEN) return true;
  if (act->kind == AX_ACT_WAIT && (e->semaphores[act->object].several || e->semaphores[act->object].read)) return true;
  return e->byte_count > 0 && is_contended_memory(e, act);
}

static void grow_uses(explorer *e, ax_status *status) {
  const ax_act_objects *o = e->s->objects;
  *status = AX_OK;
  if (e->semaphore_count < o->semaphore_count)
    *status = ax_grow(&e->semaphores, sizeof e->semaphores[0], e->semaphore_count, o->semaphore_count - e->semaphore_count,
                      &e->semaphore_capacity);
  if (*status == AX_OK && e->region_count < o->region_count)
    *status = ax_grow(&e->regions, sizeof e->regions[0], e->region_count, o->region_count - e->region_count, &e->region_capacity);
  if (*status != AX_OK) return;
  while (e->semaphore_count < o->semaphore_count) e->semaphores[e->semaphore_count++] = (semaphore_use){.waiter = AX_NONE};
  while (e->region_count < o->region_count) e->regions[e->region_count++] = (region_use){.agent = AX_NONE};
}

/* Drops the assumptions that an act contradicts, which is an agent's next somewhere. What an agent does, those like it do. */
static void note_use(explorer *e, const next_act *n) {
  const ax_act *act = &n->act;
  const bool alike = e->s->has_like != NULL && e->s->has_like(e->s->context, n->agent);
  if (act->kind == AX_ACT_WAIT) {
    semaphore_use *use = &e->semaphores[act->object];
    if (use->waiter == AX_NONE) use->waiter = n->agent;
    if ((use->waiter != n->agent || alike) && !use->several) use->several = e->refuted = true;
  }
  if ((act->kind == AX_ACT_READ || act->kind == AX_ACT_SEEN) && !e->semaphores[act->object].read)
    e->semaphores[act->object].read = e->refuted = true;
  if (act->kind == AX_ACT_READ && !e->reads) e->reads = e->again = e->refuted = true;
  for (uint32_t t = act->touch_first; t < act->touch_first + act->touch_count; t++) {
    region_use *use = &e->regions[e->pool.touches[t].region];
    if (use->agent == AX_NONE) use->agent = n->agent;
    if ((use->agent != n->agent || alike) && !use->several) use->several = e->refuted = true;
  }
}

/* The bytes that two acts race about are contended from now on. */
static ax_status add_contended(explorer *e, const ax_act *a, const ax_act *b) {
  for (uint32_t i = a->touch_first; i < a->touch_first + a->touch_count; i++)
    for (uint32_t k = b->touch_first; k < b->touch_first + b->touch_count; k++) {
      const ax_touch *x = &e->pool.touches[i], *y = &e->pool.touches[k];
      if (x->region != y->region || (!x->write && !y->write)) continue;
      for (uint32_t p = 0, q = 0; p < x->count && q < y->count;) {
        ax_bytes m = e->pool.runs[x->first + p], n = e->pool.runs[y->first + q];
        ax_bytes both = {m.begin > n.begin ? m.begin : n.begin, m.end < n.end ? m.end : n.end};
        bool known = both.begin >= both.end;
        for (uint32_t c = 0; c < e->byte_count && !known; c++)
          known = e->bytes[c].region == x->region && e->bytes[c].bytes.begin <= both.begin && both.end <= e->bytes[c].bytes.end;
        if (!known) {
          AX_TRY(ax_grow(&e->bytes, sizeof e->bytes[0], e->byte_count, 1, &e->byte_capacity));
          e->bytes[e->byte_count++] = (contended_bytes){x->region, both};
          e->refuted = true;
        }
        if (m.end < n.end)
          p++;
        else
          q++;
      }
    }
  return AX_OK;
}

/* --- Looking at a state --- */

static ax_status peek_all(explorer *e, void *state) {
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
    next_act *n = &e->acts[e->act_count];
    n->agent = a;
    AX_TRY(s->peek(s->context, state, a, &n->act, &n->enabled));
    if (n->act.kind == AX_ACT_NONE) continue;
    uint32_t first = e->pool.touch_count;
    for (uint32_t t = 0; t < n->act.touch_count; t++)
      AX_TRY(ax_touches_copy(&e->pool, s->touches, &s->touches->touches[n->act.touch_first + t]));
    n->act.touch_first = first;
    e->act_count++;
  }
  ax_status status;
  grow_uses(e, &status);
  for (uint32_t k = 0; k < e->act_count && status == AX_OK; k++) note_use(e, &e->acts[k]);
  return status;
}

static ax_status look_at_races(explorer *e) {
  for (uint32_t i = 0; i < e->act_count; i++) {
    if (!e->acts[i].enabled || e->acts[i].act.touch_count == 0) continue;
    for (uint32_t k = i + 1; k < e->act_count; k++) {
      const next_act *a = &e->acts[i], *b = &e->acts[k];
      bool scope, is_new;
      if (!b->enabled || b->act.touch_count == 0) continue;
      if (!ax_touches_conflict(&e->pool, &a->act, &e->pool, &b->act, &scope)) continue;
      if (e->options->mode == AX_EXPLORE_REDUCED) AX_TRY(add_contended(e, &a->act, &b->act));
      ax_act_finding finding = ax_act_finding_of(scope ? AX_FINDING_AFTER_SCOPE : AX_FINDING_RACE);
      finding.agent = a->agent;
      finding.position = e->done[a->agent];
      finding.other = b->agent;
      finding.other_position = e->done[b->agent];
      AX_TRY(tell(e, finding, AX_NONE, &is_new));
      if (!is_new) continue;
      AX_TRY(ax_races_add(&e->out->races, (ax_race){a->agent, finding.position, b->agent, finding.other_position, scope}));
    }
  }
  return AX_OK;
}

static ax_status look_at_barriers(explorer *e, void *state) {
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
    AX_TRY(tell(e, finding, AX_NONE, &is_new));
  }
  return AX_OK;
}

/* Copies that are under way though all cores are through. */
static ax_status look_at_copies(explorer *e) {
  bool is_new;
  for (uint32_t i = 0; i < e->act_count; i++)
    if (e->s->objects->agents[e->acts[i].agent].initial) return AX_OK;
  for (uint32_t i = 0; i < e->act_count; i++) {
    if (!ax_act_has_effect(&e->acts[i].act) || e->s->objects->agents[e->acts[i].agent].signal) continue;
    ax_act_finding finding = ax_act_finding_of(AX_FINDING_COPY_NOT_AWAITED);
    finding.agent = e->acts[i].agent;
    AX_TRY(tell(e, finding, AX_NONE, &is_new));
  }
  return AX_OK;
}

static ax_status add_outcome(explorer *e, const void *state) {
  ax_exploration *out = e->out;
  const uint64_t outcome = e->s->outcome(e->s->context, state);
  uint32_t at = 0;
  while (at < out->outcome_count && out->outcomes[at] < outcome) at++;
  if (at < out->outcome_count && out->outcomes[at] == outcome) return AX_OK;
  AX_TRY(ax_grow(&out->outcomes, sizeof out->outcomes[0], out->outcome_count, 1, &out->outcome_capacity));
  if (out->outcome_count == 0) AX_TRY(e->s->clone(e->s->context, state, &e->end));
  else e->beyond_rounding = e->beyond_rounding || e->s->rounded == NULL || !e->s->rounded(e->s->context, e->end, state);
  if (out->outcome_count == 1) {
    AX_TRY(way_to(e, &e->other));
    e->second_at = out->states + 1;
  }
  memmove(out->outcomes + at + 1, out->outcomes + at, (out->outcome_count - at) * sizeof out->outcomes[0]);
  out->outcomes[at] = outcome;
  out->outcome_count++;
  return AX_OK;
}

/* Nobody can go on, and all are through: the same acts in other orders, which reads of counts do not forbid. A run with other
   findings is wrong as it is. */
static ax_status look_at_orders(explorer *e) {
  uint64_t word = AX_HASH_SEED, key[2], slot;
  bool is_new;
  if (!e->reads || e->out->kinds != 0) return AX_OK;
  for (uint32_t a = 0; a < e->done_count; a++) word = ax_hash_word(word, ax_history_hash(&e->history[a]));
  key[0] = ax_next_random(&word), key[1] = ax_next_random(&word);
  AX_TRY(ax_known_states_add(&e->runs, key, &slot, &is_new));
  if (!is_new) return AX_OK;
  ax_interleaving schedule = {0};
  ax_act_record record = {0};
  ax_status status = way_to(e, &schedule);
  if (status == AX_OK) status = ax_system_record(e->s, &schedule, false, 0, &record);
  if (status == AX_OK) status = ax_orders_add(&e->orders, &record, e->options->most_states);
  ax_act_record_deinit(&record);
  ax_interleaving_deinit(&schedule);
  return status;
}

/* Nobody can go on. */
static ax_status look_at_end(explorer *e, void *state) {
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
    return tell(e, finding, AX_NONE, &is_new);
  }
  AX_TRY(add_outcome(e, state));
  for (uint32_t k = 0; k < s->objects->semaphore_count; k++) {
    ax_act_finding finding = ax_act_finding_of(AX_FINDING_LEAK);
    finding.object = k;
    finding.amount = s->semaphore(s->context, state, k);
    if (finding.amount != 0) AX_TRY(tell(e, finding, AX_NONE, &is_new));
  }
  for (uint32_t k = 0; k < s->objects->barrier_count; k++) {
    ax_act_finding finding = ax_act_finding_of(AX_FINDING_BARRIER);
    finding.object = k;
    if (s->arrivals(s->context, state, k) % s->objects->barriers[k].arrivals != 0) AX_TRY(tell(e, finding, AX_NONE, &is_new));
  }
  return look_at_orders(e);
}

/* --- Going on --- */

static ax_status add_choice(explorer *e, node *n, uint32_t agent, bool holds) {
  AX_TRY(ax_grow(&e->choices, sizeof e->choices[0], e->choice_count, 1, &e->choice_capacity));
  e->choices[e->choice_count++] = (choice){agent, holds};
  n->count++;
  return AX_OK;
}

/* May others do something to it before this act, or is it a matter of how far they come meanwhile? */
static bool is_worth_holding(const explorer *e, const next_act *n) {
  if (n->act.kind == AX_ACT_AWAIT) return true;
  const ax_act_agent *agent = &e->s->objects->agents[n->agent];
  if (!agent->initial && !agent->signal && ax_act_has_effect(&n->act)) return true;
  for (uint32_t t = n->act.touch_first; t < n->act.touch_first + n->act.touch_count; t++)
    if (e->regions[e->pool.touches[t].region].several) return true;
  return false;
}

static ax_status choose(explorer *e, node *n) {
  n->first = e->choice_count;
  n->count = n->next = 0;
  if (e->options->mode == AX_EXPLORE_REDUCED)
    for (uint32_t i = 0; i < e->act_count; i++) {
      const next_act *a = &e->acts[i];
      if (!a->enabled || a->agent == n->held || is_contended(e, &a->act)) continue;
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
static ax_status choose_others(explorer *e, node *n, uint32_t but) {
  n->alone = false;
  AX_TRY(peek_all(e, n->state));
  for (uint32_t i = 0; i < e->act_count; i++)
    if (e->acts[i].enabled && e->acts[i].agent != n->held && e->acts[i].agent != but)
      AX_TRY(add_choice(e, n, e->acts[i].agent, false));
  return AX_OK;
}

static ax_status look(explorer *e, node *n) {
  AX_TRY(peek_all(e, n->state));
  AX_TRY(look_at_races(e));
  AX_TRY(look_at_barriers(e, n->state));
  AX_TRY(look_at_copies(e));
  AX_TRY(choose(e, n));
  if (e->reads && n->count == 0 && n->held == AX_NONE) AX_TRY(ax_ends_add(&e->ends, n->hash[0]));
  return n->count == 0 && n->held == AX_NONE ? look_at_end(e, n->state) : AX_OK;
}

/* Adds the acts that led to a state to its hash: where counts are read, states that differ in these acts are distinct. */
static void hash_histories(const explorer *e, uint64_t hash[2]) {
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
static ax_status enter(explorer *e, void *state, uint32_t held, uint32_t came, const ax_history *after, bool *on_way) {
  const ax_system *s = e->s;
  node n = {.state = state, .held = held, .came = came, .before = came != AX_NONE ? e->history[came] : (ax_history){0}};
  uint64_t slot;
  bool is_new = false;
  *on_way = false;
  s->hash(s->context, state, n.hash);
  if (came != AX_NONE) e->history[came] = *after;
  if (e->reads) hash_histories(e, n.hash);
  if (e->depth == 0) e->first = n.hash[0];
  bool step = e->reads && held == AX_NONE && came != AX_NONE;
  if (held != AX_NONE) hash_held(s, state, held, n.hash);
  ax_status status = step ? ax_ends_add_step(&e->ends, e->nodes[e->depth - 1].hash[0], n.hash[0], came) : AX_OK;
  if (status == AX_OK) status = ax_known_states_add(&e->known, n.hash, &slot, &is_new);
  if (status == AX_OK && is_new) status = ax_grow(&e->nodes, sizeof e->nodes[0], e->depth, 1, &e->node_capacity);
  if (status != AX_OK || !is_new) {
    if (status == AX_OK) *on_way = ax_known_states_on_way(&e->known, slot);
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

static void leave(explorer *e) {
  node *n = &e->nodes[--e->depth];
  ax_known_states_leave(&e->known, n->hash);
  if (n->came != AX_NONE) e->done[n->came]--, e->history[n->came] = n->before;
  e->way_bytes -= n->bytes;
  e->s->release(e->s->context, n->state);
  e->choice_count = n->first;
}

/* Takes the next choice of the last node. */
static ax_status advance(explorer *e) {
  const ax_system *s = e->s;
  node *n = &e->nodes[e->depth - 1];
  choice c = e->choices[n->first + n->next++];
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
    status = tell(e, finding, c.agent, &is_new);
  }
  if (status != AX_OK) {
    s->release(s->context, state);
    return status;
  }
  AX_TRY(enter(e, state, n->held, c.agent, &after, &on_way));
  n = &e->nodes[at];
  return on_way && n->alone ? choose_others(e, n, c.agent) : AX_OK;
}

static bool is_at_limit(explorer *e) {
  uint64_t most = e->options->most_states > 0 ? e->options->most_states : 10 * 1000 * 1000;
  if (e->out->states >= most) return true;
  if (e->options->results_suffice && e->second_at > 0 && e->out->states >= 11 * e->second_at + 50000) return true;
  return e->options->most_seconds > 0 && (e->out->transitions & 255) == 0 && ax_seconds() - e->begin > e->options->most_seconds;
}

/* Searches all states once, under the present assumptions. */
static ax_status go_through(explorer *e) {
  void *state;
  bool on_way;
  ax_known_states_clear(&e->known);
  ax_ends_clear(&e->ends);
  e->refuted = e->again = false;
  e->out->passes++;
  AX_TRY(e->s->create(e->s->context, &state));
  ax_status status = enter(e, state, AX_NONE, AX_NONE, NULL, &on_way);
  while (e->depth > 0 && status == AX_OK && !e->stopped) {
    node *n = &e->nodes[e->depth - 1];
    if (n->next == n->count)
      leave(e);
    else
      status = advance(e);
    e->stopped = is_at_limit(e);
  }
  while (e->depth > 0) leave(e);
  return status;
}

/* Reports states from which no end can be reached: an agent reads a count again and again, and no agent is left to change it. */
static ax_status tell_endless(explorer *e) {
  bool found;
  if (!e->reads || e->stopped) return AX_OK;
  ax_act_finding finding = ax_act_finding_of(AX_FINDING_DEADLOCK);
  finding.endless = true;
  ax_status status = ax_ends_missing(&e->ends, e->first, &found, &finding.schedule);
  if (status == AX_OK && found) {
    e->out->kinds |= 1u << AX_FINDING_DEADLOCK;
    return ax_act_findings_add(&e->out->findings, finding);
  }
  ax_interleaving_deinit(&finding.schedule);
  return status;
}

/* Reports that there are several results, unless a race explains them. */
static ax_status tell_results(explorer *e) {
  const uint32_t racy = 1u << AX_FINDING_RACE | 1u << AX_FINDING_AFTER_SCOPE;
  if (e->out->outcome_count < 2 || (e->out->kinds & racy) != 0) return AX_OK;
  ax_act_finding finding = ax_act_finding_of(e->beyond_rounding ? AX_FINDING_RESULTS : AX_FINDING_ROUNDING);
  finding.amount = e->out->outcome_count;
  finding.at_least = e->stopped;
  finding.searched = e->out->states;
  finding.schedule = e->other;
  e->other = (ax_interleaving){0};
  e->out->kinds |= 1u << finding.kind;
  return ax_act_findings_add(&e->out->findings, finding);
}

/* Reports the findings of other orders, if there are no findings besides several results. */
static ax_status tell_orders(explorer *e) {
  ax_orders *orders = &e->orders;
  if ((e->out->kinds & ~(1u << AX_FINDING_RESULTS | 1u << AX_FINDING_ROUNDING)) != 0) return AX_OK;
  e->out->kinds |= orders->kinds;
  e->out->bounded = e->out->bounded || orders->undecided;
  for (uint32_t k = 0; k < orders->findings.count; k++) {
    ax_act_finding finding = orders->findings.items[k];
    orders->findings.items[k] = ax_act_finding_of(AX_FINDING_NONE);
    AX_TRY(ax_act_findings_add(&e->out->findings, finding));
  }
  for (uint32_t k = 0; k < orders->races.count; k++) AX_TRY(ax_races_add(&e->out->races, orders->races.items[k]));
  return AX_OK;
}

/* Adds a finding of the proof from a run at random, as the search would have. */
static ax_status adopt(explorer *e, const ax_act_finding *found, const ax_act_record *run) {
  ax_act_finding finding = *found;
  bool is_new;
  finding.schedule = (ax_interleaving){0};
  finding.text = NULL;
  if (finding.kind == AX_FINDING_COPY_NOT_AWAITED) finding.position = 0;
  if (finding.kind == AX_FINDING_DEADLOCK) {
    uint64_t word = 0;
    for (uint32_t k = 0; k < run->pending_count; k++) word = ax_hash_word(word, run->pending[k].agent);
    finding.object = (uint32_t)word;
  }
  const bool race = finding.other != AX_NONE;
  if (race && finding.agent > finding.other) {
    finding.agent = found->other, finding.position = found->other_position;
    finding.other = found->agent, finding.other_position = found->position;
  }
  e->scouted = &found->schedule;
  const ax_status status = tell(e, finding, AX_NONE, &is_new);
  e->scouted = NULL;
  if (status != AX_OK || !race || !is_new) return status;
  return ax_races_add(&e->out->races, (ax_race){finding.agent, finding.position, finding.other, finding.other_position,
                                                finding.kind == AX_FINDING_AFTER_SCOPE});
}

/* What a run at random proves of others that begin like it: certain findings are right whatever else holds (prove.c). */
static ax_status prove_scout(explorer *e, const ax_interleaving *schedule) {
  enum { most_steps = 20 * 1000 * 1000 };
  ax_act_record run = {0};
  ax_proof proof = {0};
  if (e->scout_steps > most_steps) return AX_OK;
  ax_status status = ax_system_record(e->s, schedule, false, 0, &run);
  bool seen = false;
  for (uint32_t k = 0; k < run.pending_count; k++) seen = seen || run.pending[k].act.kind == AX_ACT_SEEN;
  if (status == AX_OK && !seen) status = ax_prove(&run, NULL, &proof);
  e->scout_steps += proof.steps + run.step_count;
  for (uint32_t k = 0; k < proof.findings.count && status == AX_OK; k++)
    if (proof.findings.items[k].certain) status = adopt(e, &proof.findings.items[k], &run);
  ax_proof_deinit(&proof);
  ax_act_record_deinit(&run);
  return status;
}

static ax_status end_of_scout(void *context, const void *state, const ax_interleaving *schedule, bool whole) {
  explorer *e = context;
  e->scouted = schedule;
  const ax_status status = whole ? add_outcome(e, state) : AX_OK;
  e->scouted = NULL;
  return status == AX_OK ? prove_scout(e, schedule) : status;
}

ax_status ax_explore(const ax_system *system, const ax_explore_options *options, ax_exploration *out) {
  *out = (ax_exploration){0};
  explorer e = {.s = system, .options = options, .out = out, .begin = ax_seconds()};
  enum { scouts = 24 };
  ax_status status = options->results_suffice ? ax_scout(system, scouts, end_of_scout, &e) : AX_OK;
  for (bool again = true; again && status == AX_OK && !e.stopped;) {
    status = go_through(&e);
    again = options->mode == AX_EXPLORE_REDUCED ? e.refuted : e.again;
  }
  out->bounded = e.stopped;
  if (status == AX_OK) status = tell_endless(&e);
  if (status == AX_OK) status = tell_results(&e);
  if (status == AX_OK) status = explain_all(&e);
  if (status == AX_OK) status = tell_orders(&e);
  ax_races_sort(&out->races);
  ax_known_states_deinit(&e.known);
  ax_known_states_deinit(&e.told);
  ax_known_states_deinit(&e.runs);
  ax_ends_deinit(&e.ends);
  ax_orders_deinit(&e.orders);
  ax_interleaving_deinit(&e.other);
  system->release(system->context, e.end);
  void *memory[] = {e.nodes, e.choices, e.done, e.history, e.acts, e.semaphores, e.regions, e.bytes};
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
