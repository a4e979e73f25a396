/* Locks, and why one order of taking them is enough.

   Let s be a semaphore that several agents wait on. Say that a wait of an agent is a *take* if the agent's next act on s is a signal
   of the same amount, the *give*. What the agent does between is a *section*: it *holds* the amount. Other signals *supply* s, other
   waits *drain* it:

       core 0   .. signal s (supply) | wait s (take)  section  signal s (give) | .. wait s (drain)
       core 1                          wait s (take)  section  signal s (give)

   prove.c decides about all runs from one, R, if all waits on a semaphore are in order. Sections are not: each may come first. The
   *free game* is R's game, but takes and drains wait for the supply alone and take nothing, and gives give nothing. So all orders of
   sections, and more, are runs of it. s is a *lock* if

     (1) no count of s is read
     (2) in a section its agent can be held up by takes of other locks alone. It may wait for copies that it has itself started, or
         for signals that it or these copies give, if it alone waits for these
     (3) if sections of t stand within sections of s, none of s stands, directly or by others between, within one of t. And then all
         supply of t is needed for the take of s, in the free game
     (4) all gives and all supply of s are needed for each drain, in the free game

   Theorem 3. Let there be only locks among the semaphores whose waits are not in order, and let all conditions of theorem 1 hold
   in the free game, for all conflicting pairs but these: two additions (act.h) within sections of one lock that shut each other
   out, as each holds more than half of the supply T. Each of these additions is whole (conflict.c), all that meet in a group are
   of one kind (sums, products, maxima, minima, or bits that are joined by and, or, xor), and they commute: always of integers;
   sums of floats if they are exact, maxima and minima of floats if no term is NaN and no zeros differ in their sign. Then what
   theorem 1 says holds for each run of K, but for what additions load: this may differ, and no other value does.

     Each run of K is one of the free game, as far as it comes: by induction, with the same acts and reads as R. A take that K can do
     finds an amount that was supplied, so the free game can do it. A read of a byte reads what it read in R, as for theorem 1: all
     accesses of the group before (conflict.c) are needed for it. If these are additions, they are whole and come one after the
     other, since no two agents are in such sections of one lock at once; so they leave what their one operation makes of the same
     terms and of what was there before the first. That operation commutes and is associative on these values, so the order does not
     matter. The terms are the same, as each follows from reads that are no loads of additions: had a term been read from bytes that
     others write, that read and those writes would be a conflicting pair, which is in order.
     What an addition loads, only its result depends on.

     No run ends before R does. Suppose that K stands at c and no agent can go on. If c is not R's end, the first step of R that is
     not done at c is possible in the free game. Other acts than takes and drains are possible in K when they are in the free game.
     So an agent stands before a take or drain of a lock s whose supply is there. Before a drain: by (4) all is supplied and no
     agent is in a section of s, so that only drains are missing from T; R did all of them, so it is possible in K. Before a take: no drain of s
     is done, by (4), as that take's give is not; so what is missing is held by agents in sections of s. Such an agent cannot go on;
     by (2) it stands before a take of another lock t. By (3) all of t's supply is there; so again what is missing is held, by an
     agent in a section of t. And so on; by (3) no lock comes twice, and there is no end. But there are finitely many locks.

     Two acts that conflict, can both be next and possible: not by theorem 1, if one is needed for the other; not if they shut each
     other out.

   Barriers, copies and scopes are looked at in the free game, which comes further than K: what is not found there is not in K.
   Where any condition fails, nothing is said, and explore.c decides. */
#include "check/locks.h"

#include <string.h>

typedef enum role { ROLE_NONE, ROLE_TAKE, ROLE_GIVE, ROLE_SUPPLY, ROLE_DRAIN } role;

enum { most_bits = 64 };

typedef struct finder {
  const ax_game *g;
  ax_locks *out;
  uint32_t *open;    /* by semaphore, of the present agent: a token that waited and has not been answered; AX_NONE */
  int64_t *total, *given, *taken; /* by semaphore: supply; of the present agent: signals, waits */
  int64_t *arrived;  /* by barrier: of the present agent */
  bool *never_held;  /* by agent: a copy that nothing holds up */
  bool *started;     /* by agent: by the present one */
  uint64_t *within;  /* by lock: the locks that sections within its own are of, directly or by others */
  uint32_t *number;  /* by semaphore: of the lock; AX_NONE */
} finder;

static uint32_t semaphore_count(const ax_game *g) { return g->record->objects.semaphore_count; }

static bool is_on_lock(const ax_locks *l, const ax_game_act *t) {
  return (t->kind == AX_ACT_WAIT || t->kind == AX_ACT_SIGNAL) && l->is_lock[t->object];
}

/* --- Candidates, and roles of acts --- */

static void find_candidates(finder *f) {
  const ax_game *g = f->g;
  for (uint32_t s = 0; s < semaphore_count(g); s++) {
    f->out->is_lock[s] = g->waiters.first[s + 1] - g->waiters.first[s] > 1;
    f->total[s] = g->record->objects.semaphores[s].initial;
  }
  for (uint32_t t = 0; t < g->first[g->agent_count]; t++)
    if (g->tokens[t].kind == AX_ACT_READ) f->out->is_lock[g->tokens[t].object] = false;
}

static void close_open(finder *f, uint32_t s) {
  if (f->open[s] != AX_NONE) f->out->role[f->open[s]] = ROLE_DRAIN;
  f->open[s] = AX_NONE;
}

static void find_roles(finder *f, uint32_t agent) {
  const ax_game *g = f->g;
  for (uint32_t t = g->first[agent]; t < g->first[agent + 1]; t++) {
    const ax_game_act *act = &g->tokens[t];
    const uint32_t s = act->object;
    if (!is_on_lock(f->out, act)) continue;
    if (act->kind == AX_ACT_WAIT) {
      close_open(f, s);
      f->open[s] = t;
    } else if (f->open[s] != AX_NONE && g->tokens[f->open[s]].amount == act->amount) {
      f->out->role[f->open[s]] = ROLE_TAKE;
      f->out->role[t] = ROLE_GIVE;
      f->open[s] = AX_NONE;
    } else {
      close_open(f, s);
      f->out->role[t] = ROLE_SUPPLY;
      f->total[s] += act->amount;
    }
  }
  for (uint32_t t = g->first[agent]; t < g->first[agent + 1]; t++)
    if (is_on_lock(f->out, &g->tokens[t])) close_open(f, g->tokens[t].object);
}

/* --- Condition (2): what is done within sections --- */

static void find_never_held(finder *f) {
  const ax_game *g = f->g;
  for (uint32_t a = 0; a < g->agent_count; a++) {
    f->never_held[a] = g->starter[a] != AX_NONE;
    for (uint32_t t = g->first[a]; t < g->first[a + 1] && f->never_held[a]; t++) {
      const ax_act_kind kind = g->tokens[t].kind;
      f->never_held[a] = kind != AX_ACT_WAIT && kind != AX_ACT_AWAIT && kind != AX_ACT_JOIN && kind != AX_ACT_START;
    }
  }
}

static void count_own(finder *f, uint32_t agent, int sign) {
  const ax_game *g = f->g;
  for (uint32_t t = g->first[agent]; t < g->first[agent + 1]; t++) {
    const ax_game_act *act = &g->tokens[t];
    if (act->kind == AX_ACT_SIGNAL) f->given[act->object] += sign * act->amount;
    if (act->kind == AX_ACT_ARRIVE) f->arrived[act->object] += sign;
  }
}

/* Whether the act cannot hold its agent up, as all that it waits for is the agent's own, and its copies'. */
static bool goes_on(const finder *f, const ax_game_act *act) {
  const ax_game *g = f->g;
  const ax_act_objects *o = &g->record->objects;
  if (act->kind == AX_ACT_JOIN) return f->started[act->object] && f->never_held[act->object];
  if (act->kind == AX_ACT_AWAIT) return f->arrived[act->object] >= act->amount * o->barriers[act->object].arrivals;
  if (act->kind != AX_ACT_WAIT) return true;
  return g->waiters.first[act->object + 1] - g->waiters.first[act->object] == 1 &&
         o->semaphores[act->object].initial + f->given[act->object] >= f->taken[act->object] + act->amount;
}

static void refuse_open(finder *f, uint32_t agent, bool *again) {
  const ax_game *g = f->g;
  for (uint32_t t = g->first[agent]; t < g->first[agent + 1]; t++) {
    const uint32_t s = g->tokens[t].object;
    if (f->out->role[t] == ROLE_NONE || f->open[s] == AX_NONE || !f->out->is_lock[s]) continue;
    f->out->is_lock[s] = false;
    *again = true;
  }
}

/* Adds what the agent has done by this act to what is its own: `sign` -1 takes it back. */
static void note_own(finder *f, const ax_game_act *act, int sign) {
  if (act->kind == AX_ACT_SIGNAL) f->given[act->object] += sign * act->amount;
  if (act->kind == AX_ACT_WAIT) f->taken[act->object] += sign * act->amount;
  if (act->kind == AX_ACT_ARRIVE) f->arrived[act->object] += sign;
  if (act->kind != AX_ACT_START) return;
  f->started[act->object] = sign > 0;
  if (f->never_held[act->object]) count_own(f, act->object, sign);
}

static void check_sections(finder *f, uint32_t agent, bool *again) {
  const ax_game *g = f->g;
  uint32_t depth = 0; /* sections that are open */
  for (uint32_t t = g->first[agent]; t < g->first[agent + 1]; t++) {
    const ax_game_act *act = &g->tokens[t];
    const role r = is_on_lock(f->out, act) ? (role)f->out->role[t] : ROLE_NONE;
    if (depth > 0 && (r == ROLE_DRAIN || (r == ROLE_NONE && !goes_on(f, act)))) {
      refuse_open(f, agent, again);
      depth = 0;
    }
    if (r == ROLE_TAKE) f->open[act->object] = t, depth++;
    if (r == ROLE_GIVE && depth > 0) f->open[act->object] = AX_NONE, depth--;
    note_own(f, act, 1);
  }
  for (uint32_t t = g->first[agent]; t < g->first[agent + 1]; t++) {
    note_own(f, &g->tokens[t], -1);
    if (f->out->role[t] != ROLE_NONE) f->open[g->tokens[t].object] = AX_NONE;
  }
}

/* --- Condition (3): sections within sections --- */

static void number_locks(finder *f) {
  f->out->count = 0;
  for (uint32_t s = 0; s < semaphore_count(f->g); s++) f->number[s] = f->out->is_lock[s] ? f->out->count++ : AX_NONE;
}

/* Calls for each section, with the sections that it is within (those that are open at its take). */
static void note_within(finder *f, uint32_t agent) {
  const ax_game *g = f->g;
  uint64_t holds = 0;
  for (uint32_t t = g->first[agent]; t < g->first[agent + 1]; t++) {
    if (!is_on_lock(f->out, &g->tokens[t])) continue;
    const uint32_t lock = f->number[g->tokens[t].object];
    const uint64_t bit = (uint64_t)1 << lock;
    if (f->out->role[t] == ROLE_GIVE) holds &= ~bit;
    if (f->out->role[t] != ROLE_TAKE) continue;
    for (uint32_t l = 0; l < f->out->count; l++)
      if ((holds >> l & 1) != 0) f->within[l] |= bit;
    holds |= bit;
  }
}

static bool has_order(finder *f) {
  for (uint32_t a = 0; a < f->g->agent_count; a++) note_within(f, a);
  for (uint32_t k = 0; k < f->out->count; k++) /* by others between, the highest of which is k */
    for (uint32_t l = 0; l < f->out->count; l++)
      if ((f->within[l] >> k & 1) != 0) f->within[l] |= f->within[k];
  for (uint32_t l = 0; l < f->out->count; l++)
    if ((f->within[l] >> l & 1) != 0) return false;
  return true;
}

/* --- What steps hold --- */

static void note_held(finder *f, uint32_t agent) {
  const ax_game *g = f->g;
  uint64_t held = 0;
  uint32_t stretch = 0;
  for (uint32_t t = g->first[agent]; t < g->first[agent + 1]; t++) {
    const ax_game_act *act = &g->tokens[t];
    if (is_on_lock(f->out, act)) {
      const uint64_t bit = (uint64_t)1 << f->number[act->object];
      stretch++;
      if (f->out->role[t] == ROLE_GIVE) held &= ~bit;
      if (f->out->role[t] == ROLE_TAKE && 2 * act->amount > f->total[act->object]) held |= bit;
    }
    f->out->held[act->step] = held;
    f->out->stretch[act->step] = stretch;
  }
}

static ax_status find(finder *f) {
  const ax_game *g = f->g;
  find_candidates(f);
  for (uint32_t a = 0; a < g->agent_count; a++) find_roles(f, a);
  find_never_held(f);
  for (bool again = true; again;) {
    again = false;
    for (uint32_t a = 0; a < g->agent_count; a++) check_sections(f, a, &again);
  }
  number_locks(f);
  if (f->out->count > most_bits || !has_order(f)) f->out->count = 0;
  if (f->out->count > 0)
    for (uint32_t a = 0; a < g->agent_count; a++) note_held(f, a);
  return AX_OK;
}

ax_status ax_locks_find(const ax_game *g, ax_locks *out) {
  const ax_act_objects *o = &g->record->objects;
  const uint32_t steps = g->record->step_count + g->record->pending_count, semaphores = o->semaphore_count;
  *out = (ax_locks){.g = g,
                    .is_lock = ax_calloc(semaphores + 1, sizeof(bool)),
                    .role = ax_calloc((size_t)steps + 1, 1),
                    .held = ax_calloc((size_t)steps + 1, sizeof(uint64_t)),
                    .stretch = ax_calloc((size_t)steps + 1, sizeof(uint32_t))};
  finder f = {.g = g,
              .out = out,
              .open = ax_alloc((semaphores + 1) * sizeof(uint32_t)),
              .total = ax_calloc(semaphores + 1, sizeof(int64_t)),
              .given = ax_calloc(semaphores + 1, sizeof(int64_t)),
              .taken = ax_calloc(semaphores + 1, sizeof(int64_t)),
              .arrived = ax_calloc(o->barrier_count + 1, sizeof(int64_t)),
              .never_held = ax_calloc(g->agent_count + 1, sizeof(bool)),
              .started = ax_calloc(g->agent_count + 1, sizeof(bool)),
              .within = ax_calloc(semaphores + 1, sizeof(uint64_t)),
              .number = ax_alloc((semaphores + 1) * sizeof(uint32_t))};
  void *all[] = {f.open, f.total, f.given, f.taken, f.arrived, f.never_held, f.started, f.within, f.number};
  ax_status status = AX_OK;
  for (uint32_t k = 0; k < AX_COUNT(all); k++)
    if (all[k] == NULL) status = ax_out_of_memory(0);
  if (out->is_lock == NULL || out->role == NULL || out->held == NULL || out->stretch == NULL) status = ax_out_of_memory(0);
  if (status == AX_OK) memset(f.open, 0xff, (semaphores + 1) * sizeof(uint32_t));
  if (status == AX_OK) status = find(&f);
  for (uint32_t k = 0; k < AX_COUNT(all); k++) ax_free(all[k]);
  if (status != AX_OK) ax_locks_deinit(out);
  return status;
}

void ax_locks_deinit(ax_locks *l) {
  ax_free(l->is_lock);
  ax_free(l->role);
  ax_free(l->held);
  ax_free(l->stretch);
  *l = (ax_locks){0};
}

/* --- Their acts in pairs --- */

/* The last supply and the last give of each agent on each semaphore: later acts of an agent need those before. */
typedef struct last {
  uint32_t agent, step, next;
} last;

typedef struct pairer {
  ax_locks *l;
  ax_pair_list *out;
  uint32_t *supply, *give; /* by semaphore: heads of lists in `items`; AX_NONE */
  uint32_t *drained, *nested; /* by semaphore: the last agent whose first drain, or take within a section, was paired; AX_NONE */
  last *items;
  uint32_t count, capacity;
} pairer;

/* Agents come one after the other, so the head of a list is of the present one if any is. */
static ax_status note_last(pairer *p, uint32_t *head, uint32_t agent, uint32_t step) {
  if (*head == AX_NONE || p->items[*head].agent != agent) {
    AX_TRY(ax_grow(&p->items, sizeof p->items[0], p->count, 1, &p->capacity));
    p->items[p->count] = (last){.agent = agent, .next = *head};
    *head = p->count++;
  }
  p->items[*head].step = step;
  return AX_OK;
}

static ax_status find_last(pairer *p) {
  const ax_game *g = p->l->g;
  for (uint32_t a = 0; a < g->agent_count; a++)
    for (uint32_t t = g->first[a]; t < g->first[a + 1]; t++) {
      const ax_game_act *act = &g->tokens[t];
      if (!is_on_lock(p->l, act)) continue;
      if (p->l->role[t] == ROLE_SUPPLY) AX_TRY(note_last(p, &p->supply[act->object], a, act->step));
      if (p->l->role[t] == ROLE_GIVE) AX_TRY(note_last(p, &p->give[act->object], a, act->step));
    }
  return AX_OK;
}

/* All acts of a list are needed for the step. Its own agent's cannot be if they come later. */
static ax_status need(pairer *p, uint32_t head, uint32_t agent, uint32_t later) {
  for (uint32_t k = head; k != AX_NONE; k = p->items[k].next) {
    if (p->items[k].agent != agent)
      AX_TRY(ax_pairs_add(p->out, (ax_pair){p->items[k].step, later, AX_CONFLICT_LOCK}));
    else if (later < p->items[k].step)
      p->l->refused = true;
  }
  return AX_OK;
}

/* Of a take within other sections: supply for the outermost of those; of a drain: all. What is needed for an agent's first drain, or
   outermost section, is needed for its later ones. */
static ax_status pair_agent(pairer *p, uint32_t agent) {
  const ax_locks *l = p->l;
  const ax_game *g = l->g;
  uint32_t outer = AX_NONE, depth = 0;
  for (uint32_t t = g->first[agent]; t < g->first[agent + 1]; t++) {
    const ax_game_act *act = &g->tokens[t];
    const uint32_t s = act->object;
    if (!is_on_lock(l, act)) continue;
    if (l->role[t] == ROLE_DRAIN && p->drained[s] != agent) {
      p->drained[s] = agent;
      AX_TRY(need(p, p->supply[s], agent, act->step));
      AX_TRY(need(p, p->give[s], agent, act->step));
    }
    if (l->role[t] == ROLE_GIVE) depth--;
    if (l->role[t] != ROLE_TAKE) continue;
    if (depth++ == 0) {
      outer = act->step;
    } else if (p->nested[s] != agent) {
      p->nested[s] = agent;
      AX_TRY(need(p, p->supply[s], agent, outer));
    }
  }
  return AX_OK;
}

ax_status ax_locks_pair(ax_locks *l, ax_pair_list *out) {
  const size_t bytes = ((size_t)semaphore_count(l->g) + 1) * sizeof(uint32_t);
  pairer p = {.l = l,
              .out = out,
              .supply = ax_alloc(bytes),
              .give = ax_alloc(bytes),
              .drained = ax_alloc(bytes),
              .nested = ax_alloc(bytes)};
  uint32_t *all[] = {p.supply, p.give, p.drained, p.nested};
  ax_status status = AX_OK;
  for (uint32_t k = 0; k < AX_COUNT(all); k++) {
    if (all[k] == NULL) status = ax_out_of_memory(bytes);
    else memset(all[k], 0xff, bytes);
  }
  if (status == AX_OK) status = find_last(&p);
  for (uint32_t a = 0; a < l->g->agent_count && status == AX_OK; a++) status = pair_agent(&p, a);
  for (uint32_t k = 0; k < AX_COUNT(all); k++) ax_free(all[k]);
  ax_free(p.items);
  return status;
}

void ax_locks_free(const ax_locks *l, ax_game *g) {
  assert(l->g == g);
  for (uint32_t t = 0; t < g->first[g->agent_count]; t++) {
    ax_game_act *act = &g->tokens[t];
    if (!is_on_lock(l, act)) continue;
    act->free = l->role[t] != ROLE_SUPPLY;
    g->out_of_order[act->object] = true;
    act->ordered = false;
  }
}
