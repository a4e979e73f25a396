/* Proves properties of all runs of a kernel from one run.

   K is a kernel: agents that act, as act.h promises. R is the record of a run of K that went on until no agent could. The game
   (game.h) has R's acts without data. A *position* says how many acts each agent has done; counts of semaphores and barriers follow
   from it. Two acts of different agents *conflict* if they touch the same byte and one writes it, if both wait on one semaphore, or
   if one reads a semaphore's count and the other changes it.

   Lemma 1. If agent i's next act can be done at position c, it can be done at every reachable position c' that is nowhere behind c
   and has i at the same act. For others only add to counts: no agent but i takes from a semaphore that i alone waits on. Where
   several agents wait, the game lets them take in R's order, so that the amount taken before i's turn is fixed. So for any limits
   that agents may not go beyond, there is one furthest position M(limits): doing enabled acts leads to it in any order, and no run
   under these limits gets any agent further.

   Say that e, act p of agent i, is *needed* for f, act q of agent j, if f is not done at M(i <= p). This is transitive: every run
   that has done f has done e before.

   Lemma 2. Let e be before f in R, and not needed for it. Then the game comes to a position where both are next and both can be
   done: M(i <= p, j <= q). For R comes to a position x with e next and f not yet done, a run that holds i to one y with f next and
   e not done. Both are under both limits, so M is nowhere behind them: e and f are next there, and by lemma 1 can be done.

   Theorem 1. If in each conflicting pair the act that is earlier in R is needed for the later (and a wait is not even next before
   those waits on the same semaphore that are earlier in R are done), then each run of K does, agent by agent, R's acts, with the
   same reads; none ends before R's end; and conflicting acts are never next, and both possible, at the same time.

     By induction over a run that is a run of the game, with the same reads, so far. Let a be what K does next, of agent i. It
   follows from what i has done and read, so it is R's. Counts are the game's, so the game can do it too; unless it is a wait out of
     turn, which is excluded. Now let a read a byte. Let w be the write before it in R. It is needed for a, so it is done.
   Any other write is earlier in R than w, then it is needed for w and was done before w; or later than a, then a is needed for it
   and it is not done. So a reads what w wrote, as in R; with counts likewise. Let a run end at c, and not where R does. The first
   step of R that is not done at c is the next of its agent; the steps of R before it are done, so by lemma 1 it can be done: the
   run has not ended. Conflicting acts that are next together, and can both be done, could be done in either order, but one is
   needed for the other.

   Theorem 2. If that holds for waits and counts, and not for memory, K has a race: it comes to where two acts conflict and can both
   be done. For suppose it does not. Then acts that can be done at the same time commute in K, so that all its runs that do not stop
   early are orders of the same acts with the same reads: R's. Then each run of the game is one of K, by induction: the next act is
   R's, and counts are the same. So is the run to the position of lemma 2, which has a race.

   Reads of counts. In the game a read is never held up, whatever it gave in R: so a count that is read orders nothing, and pairs of
   acts that only a read puts in order are not needed for one another. If theorem 1 holds, the changes of a count are in order with
   its reads by waits and starts alone. Then no order of R's acts, as orders.c has them, comes to anything else.

   A race that is found is a race of the game. Its schedule leads K there, if no acts that race are done in another order than in
   R: such findings are `certain`. If no finding is certain, theorem 2 still says that K has a race; running the schedule shows it.

   Other faults show at a furthest position, since they only grow worse the further others go:

     deadlock           M() is not the end. It is R's own end, so every run ends there
     leaked semaphore   a count at M() is not 0; a barrier is left in the middle of a phase
     barrier misuse     agent i is held before it waits for phase n, and phase n + 1 is complete
     copy not awaited   a copy is held before the last it does to others, and all cores are through
     use after scope    a copy is held before it touches memory of a scope that several agents share, and all of these have left it

   Where waits or counts are not in order, R decides about R's order only: findings are true, but nothing is proved. If all such
   waits are those of locks, another game is played, in which agents do not shut one another out: locks.c says when it proves that
   any order of them will do. explore.c does the rest; a kernel that it proves has one result as well.

   Cost. Which pairs to look at: conflict.c, as many as touches. Where starts and joins already say that an act is needed (joins.c),
   no agent is held. M(i <= p) is computed going on from M(i <= p'), p' < p, so that all holds of an agent cost as much as one run.
   There are many copies, but each begins late: the game with a copy held continues from the position before its start, and is
   undone afterwards. This costs as much as the others' acts while the copy does nothing. Where few agents need anything of the one
   that is held, the game goes on from its end, and only these are taken back. Of agents that a symmetry makes alike,
   one is held. */
#include "check/prove.h"

#include <stdlib.h>
#include <string.h>

#include "check/conflict.h"
#include "check/joins.h"
#include "check/locks.h"
#include "check/symmetry.h"

enum { most_races_told = 12, most_told = 64 };

typedef enum check_kind { CHECK_PAIR, CHECK_BARRIER, CHECK_COPY, CHECK_SCOPE } check_kind;

typedef struct check { /* something to look at while an agent is held */
  uint32_t agent, position;
  check_kind kind;
  uint32_t target, target_position; /* of PAIR: the later act, turned as the agent is; of SCOPE: the region */
  uint32_t source;                  /* PAIR: which; else the agent that `agent` stands for */
} check;

typedef struct leaving { /* a step by which an agent leaves a scope that it shares */
  uint32_t region, step;
} leaving;

typedef struct prover {
  ax_game *g;
  ax_proof *out;
  ax_joins joins;
  ax_pair_list pairs;
  ax_symmetry symmetry;
  check *checks;
  uint32_t check_count, check_capacity;
  uint32_t *first;             /* by agent: of checks, which are sorted */
  bool *wanted;                /* by agent: it or whom it starts has checks */
  uint32_t *cores, core_count; /* agents that are there from the beginning */
  leaving *leavings;           /* by region */
  uint32_t leaving_count, leaving_capacity;
  check *failed;               /* checks that found something */
  uint32_t failed_count, failed_capacity;
  bool first_suffices; /* of its options */
} prover;

static const ax_act_objects *objects_of(const prover *p) { return &p->g->record->objects; }
static const ax_act_step *step_of(const prover *p, uint32_t step) { return ax_game_step(p->g, step); }

/* --- What to look at --- */

static ax_status add_check(prover *p, uint32_t agent, check made) {
  AX_TRY(ax_grow(&p->checks, sizeof p->checks[0], p->check_count, 1, &p->check_capacity));
  made.agent = ax_symmetry_chosen(&p->symmetry, agent);
  p->checks[p->check_count++] = made;
  return AX_OK;
}

static ax_status list_pairs(prover *p) {
  for (uint32_t k = 0; k < p->pairs.count; k++) {
    const ax_pair *pair = &p->pairs.items[k];
    uint32_t agent = step_of(p, pair->earlier)->agent, other = step_of(p, pair->later)->agent;
    if (ax_joins_need(&p->joins, agent, p->g->position[pair->earlier], other, p->g->position[pair->later])) continue;
    AX_TRY(add_check(p, agent,
                     (check){.position = p->g->position[pair->earlier],
                             .kind = CHECK_PAIR,
                             .target = ax_symmetry_turned(&p->symmetry, agent, other),
                             .target_position = p->g->position[pair->later],
                             .source = k}));
  }
  return AX_OK;
}

/* Waits for phases that are complete in the end, and the next as well. */
static ax_status list_barriers(prover *p, const int64_t *arrivals) {
  const ax_act_record *r = p->g->record;
  for (uint32_t s = 0; s < r->step_count; s++) {
    const ax_act *act = &r->steps[s].act;
    if (act->kind != AX_ACT_AWAIT || arrivals[act->object] < (act->amount + 1) * objects_of(p)->barriers[act->object].arrivals)
      continue;
    AX_TRY(add_check(p, r->steps[s].agent,
                     (check){.position = p->g->position[s], .kind = CHECK_BARRIER, .source = r->steps[s].agent}));
  }
  return AX_OK;
}

static bool cores_through(const prover *p) {
  const ax_game *g = p->g;
  for (uint32_t k = 0; k < p->core_count; k++)
    if (g->at[p->cores[k]] < ax_game_acts(g, p->cores[k])) return false;
  return true;
}

/* Whether the core that a copy stems from needs the act before it is through. */
static bool is_joined(const prover *p, uint32_t copy, uint32_t position) {
  const ax_game *g = p->g;
  uint32_t core = copy;
  while (g->starter[core] != AX_NONE) core = g->starter[core];
  return g->done[core] > 0 && ax_joins_need(&p->joins, copy, position, core, g->done[core] - 1);
}

/* The last that each copy does to others; nothing where cores are not through at the end. */
static ax_status list_copies(prover *p) {
  const ax_game *g = p->g;
  if (!cores_through(p)) return AX_OK;
  for (uint32_t a = 0; a < g->agent_count; a++) {
    if (objects_of(p)->agents[a].initial || objects_of(p)->agents[a].signal) continue;
    for (uint32_t k = g->done[a]; k-- > 0;) {
      if (!ax_act_has_effect(&step_of(p, ax_game_token(g, a, k)->step)->act)) continue;
      if (is_joined(p, a, k)) break;
      AX_TRY(add_check(p, a, (check){.position = k, .kind = CHECK_COPY, .source = a}));
      break;
    }
  }
  return AX_OK;
}

static int by_region(const void *a, const void *b) {
  const leaving *x = a, *y = b;
  if (x->region != y->region) return x->region < y->region ? -1 : 1;
  return x->step < y->step ? -1 : x->step > y->step;
}

static ax_status list_leavings(prover *p) {
  const ax_act_record *r = p->g->record;
  for (uint32_t s = 0; s < r->step_count; s++) {
    const ax_act *act = &r->steps[s].act;
    for (uint32_t t = act->touch_first; t < act->touch_first + act->touch_count; t++) {
      if (!ax_touch_leaves(&r->touches.touches[t])) continue;
      AX_TRY(ax_grow(&p->leavings, sizeof p->leavings[0], p->leaving_count, 1, &p->leaving_capacity));
      p->leavings[p->leaving_count++] = (leaving){r->touches.touches[t].region, s};
    }
  }
  if (p->leaving_count > 0) qsort(p->leavings, p->leaving_count, sizeof p->leavings[0], by_region);
  return AX_OK;
}

/* The first of the region's leavings; leaving_count: nobody shares it. */
static uint32_t leavings_of(const prover *p, uint32_t region) {
  uint32_t low = 0, high = p->leaving_count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (p->leavings[middle].region < region)
      low = middle + 1;
    else
      high = middle;
  }
  return low < p->leaving_count && p->leavings[low].region == region ? low : p->leaving_count;
}

/* Acts of copies on memory that several agents have together; these leave its scope after what they do themselves. */
static ax_status list_scopes(prover *p) {
  const ax_act_record *r = p->g->record;
  AX_TRY(list_leavings(p));
  for (uint32_t s = 0; s < r->step_count && p->leaving_count > 0; s++) {
    const ax_act *act = &r->steps[s].act;
    uint32_t agent = r->steps[s].agent;
    if (objects_of(p)->agents[agent].initial) continue;
    for (uint32_t t = act->touch_first; t < act->touch_first + act->touch_count; t++) {
      uint32_t region = r->touches.touches[t].region;
      if (leavings_of(p, region) == p->leaving_count) continue;
      AX_TRY(add_check(p, agent, (check){.position = p->g->position[s], .kind = CHECK_SCOPE, .target = region, .source = agent}));
    }
  }
  return AX_OK;
}

static int by_place(const void *a, const void *b) {
  const check *x = a, *y = b;
  if (x->agent != y->agent) return x->agent < y->agent ? -1 : 1;
  if (x->position != y->position) return x->position < y->position ? -1 : 1;
  return 0;
}

static ax_status index_checks(prover *p) {
  uint32_t agents = p->g->agent_count;
  if (p->check_count > 0) qsort(p->checks, p->check_count, sizeof p->checks[0], by_place);
  p->first = ax_calloc((size_t)agents + 1, sizeof p->first[0]);
  p->wanted = ax_calloc(agents, sizeof p->wanted[0]);
  if (p->first == NULL || p->wanted == NULL) return ax_out_of_memory(0);
  for (uint32_t k = 0; k < p->check_count; k++) p->first[p->checks[k].agent + 1]++;
  for (uint32_t a = 0; a < agents; a++) p->first[a + 1] += p->first[a];
  for (uint32_t a = 0; a < agents; a++)
    if (p->first[a + 1] > p->first[a])
      for (uint32_t b = a; b != AX_NONE && !p->wanted[b]; b = p->g->starter[b]) p->wanted[b] = true;
  return AX_OK;
}

/* --- Holding --- */

static bool is_next(const ax_game *g, uint32_t agent, uint32_t position) { return g->started[agent] && g->at[agent] == position; }

/* Whether all have left the scope that the check is about; turned: as the agent that stands for its own is. */
static bool all_left(const prover *p, const check *c, bool turned) {
  for (uint32_t k = leavings_of(p, c->target); k < p->leaving_count && p->leavings[k].region == c->target; k++) {
    uint32_t agent = step_of(p, p->leavings[k].step)->agent;
    if (turned) agent = ax_symmetry_turned(&p->symmetry, c->source, agent);
    if (p->g->at[agent] <= p->g->position[p->leavings[k].step]) return false;
  }
  return true;
}

static bool fails(const prover *p, const check *c) {
  const ax_game *g = p->g;
  if (c->kind == CHECK_SCOPE) return is_next(g, c->agent, c->position) && all_left(p, c, true);
  if (c->kind == CHECK_COPY) return is_next(g, c->agent, c->position) && cores_through(p);
  if (c->kind == CHECK_BARRIER) {
    const ax_game_act *t = ax_game_token(g, c->agent, c->position);
    return is_next(g, c->agent, c->position) &&
           g->arrivals[t->object] >= (t->amount + 1) * objects_of(p)->barriers[t->object].arrivals;
  }
  bool waits = p->pairs.items[c->source].conflict == AX_CONFLICT_WAITS;
  return g->at[c->target] > c->target_position || (waits && is_next(g, c->target, c->target_position));
}

/* Looks at all of one act, from check `at` on; *at: the first beyond. */
static ax_status look(prover *p, uint32_t *at) {
  const check *c = &p->checks[*at];
  p->out->holds++;
  for (uint32_t k = *at; k < p->check_count && by_place(c, &p->checks[k]) == 0; k++, ++*at) {
    if (!fails(p, &p->checks[k])) continue;
    AX_TRY(ax_grow(&p->failed, sizeof p->failed[0], p->failed_count, 1, &p->failed_capacity));
    p->failed[p->failed_count++] = p->checks[k];
  }
  return AX_OK;
}

static bool is_over(const prover *p) { return p->first_suffices && p->failed_count > 0; }

/* Holds the agent, which nothing has held up to where it stands, before each of its acts in turn; and in between whom it starts. */
static ax_status hold(prover *p, uint32_t agent) {
  ax_game *g = p->g;
  uint32_t at = p->first[agent];
  for (uint32_t position = 0; position < g->done[agent]; position++) {
    const ax_game_act *t = ax_game_token(g, agent, position);
    bool checked = at < p->first[agent + 1] && p->checks[at].position == position;
    bool starts = t->kind == AX_ACT_START && p->wanted[t->object];
    if (!checked && !starts) continue;
    ax_game_hold(g, agent, position);
    ax_game_run(g);
    if (checked) AX_TRY(look(p, &at));
    if (is_over(p)) return AX_OK;
    if (!starts) continue;
    uint32_t mark = g->trail_count;
    ax_game_hold(g, t->object, 0);
    ax_game_hold(g, agent, g->done[agent]);
    ax_status status = hold(p, t->object);
    g->limit[t->object] = g->done[t->object];
    g->limit[agent] = position;
    if (status != AX_OK || is_over(p)) return status;
    ax_game_undo(g, mark);
  }
  return AX_OK;
}

/* From the beginning; or, where few others need anything of the agent, from the end, with those taken back. */
static ax_status hold_root(prover *p, uint32_t agent, bool *at_end) {
  ax_game *g = p->g;
  const bool few = ax_game_find_dependent(g, agent, g->first[g->agent_count] / 4);
  if (!few || !*at_end) ax_game_reset(g);
  if (!few) {
    *at_end = false;
    ax_game_hold(g, agent, 0);
    return hold(p, agent);
  }
  if (!*at_end) ax_game_run(g);
  ax_game_take_back(g, agent);
  AX_TRY(hold(p, agent));
  ax_game_hold(g, agent, g->done[agent]);
  ax_game_run(g);
  *at_end = true;
  return AX_OK;
}

static ax_status hold_all(prover *p) {
  uint64_t before = p->g->steps;
  bool at_end = false;
  for (uint32_t a = 0; a < p->g->agent_count && !is_over(p); a++)
    if (p->wanted[a] && p->g->starter[a] == AX_NONE) AX_TRY(hold_root(p, a, &at_end));
  p->out->steps = p->g->steps - before;
  return AX_OK;
}

/* --- What was found --- */

typedef struct goal { /* a position that shows a finding, and the least that it takes */
  const check *c;
  uint32_t agent, position, target, target_position; /* as they are, not turned; target AX_NONE: none */
} goal;

static bool reached(const prover *p, const goal *goal) {
  const ax_game *g = p->g;
  if (!is_next(g, goal->agent, goal->position)) return false;
  if (goal->c->kind == CHECK_SCOPE) return all_left(p, goal->c, false);
  if (goal->c->kind == CHECK_COPY) return cores_through(p);
  if (goal->c->kind == CHECK_BARRIER) {
    const ax_game_act *t = ax_game_token(g, goal->agent, goal->position);
    return g->arrivals[t->object] >= (t->amount + 1) * objects_of(p)->barriers[t->object].arrivals;
  }
  if (!is_next(g, goal->target, goal->target_position)) return false;
  return p->pairs.items[goal->c->source].conflict == AX_CONFLICT_WAITS ||
         (ax_game_enabled(g, goal->agent) && ax_game_enabled(g, goal->target));
}

static void play(prover *p, const uint32_t *limits) {
  ax_game_reset(p->g);
  memcpy(p->g->limit, limits, p->g->agent_count * sizeof limits[0]);
  ax_game_run(p->g);
}

/* Lowers limits, one agent after the other, as far as the goal is still reached: by halves, as less never helps. */
static void shrink(prover *p, const goal *goal, uint32_t *limits) {
  enum { patience = 20 * 1000 * 1000 };
  uint64_t stop = p->g->steps + patience;
  for (uint32_t a = p->g->agent_count; a-- > 0 && p->g->steps < stop;) {
    if (a == goal->agent || a == goal->target) continue;
    uint32_t low = 0, high = limits[a]; /* high is enough */
    while (low < high) {
      limits[a] = low == 0 ? 0 : low + (high - low) / 2;
      play(p, limits);
      if (reached(p, goal))
        high = limits[a];
      else
        low = limits[a] + 1;
    }
    limits[a] = high;
  }
  play(p, limits);
}

static goal goal_of(const prover *p, const check *c) {
  if (c->kind != CHECK_PAIR) return (goal){c, c->source, c->position, AX_NONE, 0};
  const ax_pair *pair = &p->pairs.items[c->source];
  return (goal){c, step_of(p, pair->earlier)->agent, c->position, step_of(p, pair->later)->agent, c->target_position};
}

/* No two acts that race have been done in the other order than in the record, as the trail says. `when`: room for all steps. */
static bool is_certain(const prover *p, uint32_t *when) {
  const ax_game *g = p->g;
  for (uint32_t k = g->trail_count; k-- > 0;) { /* backwards: at what position each step was */
    uint32_t agent = g->trail[k];
    when[ax_game_token(g, agent, --g->at[agent])->step] = k;
  }
  for (uint32_t k = 0; k < g->trail_count; k++) g->at[g->trail[k]]++;
  for (uint32_t k = 0; k < p->failed_count; k++) {
    const ax_pair *pair = &p->pairs.items[p->failed[k].source];
    if (p->failed[k].kind != CHECK_PAIR || pair->conflict == AX_CONFLICT_WAITS) continue;
    goal of = goal_of(p, &p->failed[k]);
    if (g->at[of.target] <= of.target_position) continue;
    if (g->at[of.agent] <= of.position || when[pair->later] < when[pair->earlier]) return false;
  }
  return true;
}

/* Says whether the present position is certain. If not, comes to the same position in the record's order and asks again. */
static ax_status make_certain(prover *p, const uint32_t *limits, bool *certain) {
  uint32_t *when = ax_alloc(p->g->record->step_count * sizeof when[0]);
  if (when == NULL) return ax_out_of_memory(0);
  *certain = is_certain(p, when);
  if (!*certain) {
    ax_game_reset(p->g);
    memcpy(p->g->limit, limits, p->g->agent_count * sizeof limits[0]);
    ax_game_run_in_order(p->g);
    *certain = is_certain(p, when);
  }
  ax_free(when);
  return AX_OK;
}

/* The present position of the game, as a run. `steps`, `pending`: room for all. */
static ax_act_run present_run(const prover *p, ax_act_step *steps, ax_act_step *pending) {
  const ax_game *g = p->g;
  uint32_t waiting = 0;
  for (uint32_t k = g->trail_count, *at = g->at; k-- > 0;) { /* backwards: at what position each step was */
    uint32_t agent = g->trail[k];
    steps[k] = *step_of(p, ax_game_token(g, agent, --at[agent])->step);
  }
  for (uint32_t k = 0; k < g->trail_count; k++) g->at[g->trail[k]]++;
  for (uint32_t a = 0; a < g->agent_count; a++)
    if (g->started[a] && g->at[a] < ax_game_acts(g, a)) pending[waiting++] = *step_of(p, ax_game_token(g, a, g->at[a])->step);
  return (ax_act_run){objects_of(p), &g->record->touches, steps, pending, g->trail_count, waiting};
}

/* Adds a finding that the game's present position shows; the schedule is its trail, or the record's first steps. */
static ax_status tell(prover *p, ax_act_finding finding, uint32_t record_steps) {
  p->out->kinds |= 1u << finding.kind;
  const ax_act_record *r = p->g->record;
  ax_act_step *steps = ax_alloc((p->g->trail_count + 1) * sizeof steps[0]);
  ax_act_step *pending = ax_alloc((p->g->agent_count + 1) * sizeof pending[0]);
  ax_status status = steps == NULL || pending == NULL ? ax_out_of_memory(0) : AX_OK;
  if (status != AX_OK) goto cleanup;
  ax_act_run run = record_steps != AX_NONE ? ax_act_record_run(r) : present_run(p, steps, pending);
  if (record_steps != AX_NONE && record_steps < r->step_count) {
    run.step_count = record_steps;
    run.pending_count = 0;
  }
  for (uint32_t k = 0; k < run.step_count && status == AX_OK; k++)
    status = ax_interleaving_add(&finding.schedule, run.steps[k].agent);
  if (status == AX_OK) status = ax_act_finding_explain(&finding, &run);
cleanup:
  ax_free(steps);
  ax_free(pending);
  if (status == AX_OK) return ax_act_findings_add(&p->out->findings, finding);
  ax_interleaving_deinit(&finding.schedule);
  ax_free(finding.text);
  return status;
}

static ax_status show_failed(prover *p, const check *c, ax_act_finding finding) {
  goal goal = goal_of(p, c);
  uint32_t *limits = ax_alloc(p->g->agent_count * sizeof limits[0]);
  if (limits == NULL) return ax_out_of_memory(0);
  memcpy(limits, p->g->done, p->g->agent_count * sizeof limits[0]);
  limits[goal.agent] = goal.position;
  if (goal.target != AX_NONE && limits[goal.target] > goal.target_position) limits[goal.target] = goal.target_position;
  play(p, limits);
  memcpy(limits, p->g->at, p->g->agent_count * sizeof limits[0]);
  if (!p->first_suffices) shrink(p, &goal, limits);
  assert(reached(p, &goal));
  ax_status status = make_certain(p, limits, &finding.certain);
  ax_free(limits);
  return status == AX_OK ? tell(p, finding, AX_NONE) : status;
}

static ax_status report_race(prover *p, const check *c, uint32_t *told) {
  goal g = goal_of(p, c);
  const ax_pair *pair = &p->pairs.items[c->source];
  const ax_touches *pool = &p->g->record->touches;
  bool scope = false;
  ax_touches_conflict(pool, &step_of(p, pair->earlier)->act, pool, &step_of(p, pair->later)->act, &scope);
  ax_race race = {g.agent, g.position, g.target, g.target_position, scope};
  if (g.agent > g.target) race = (ax_race){g.target, g.target_position, g.agent, g.position, scope};
  AX_TRY(ax_races_add(&p->out->races, race));
  p->out->kinds |= 1u << (scope ? AX_FINDING_AFTER_SCOPE : AX_FINDING_RACE);
  if (++*told > most_races_told) return AX_OK;
  ax_act_finding finding = ax_act_finding_of(scope ? AX_FINDING_AFTER_SCOPE : AX_FINDING_RACE);
  finding.agent = g.agent;
  finding.position = g.position;
  finding.other = g.target;
  finding.other_position = g.target_position;
  return show_failed(p, c, finding);
}

/* A line that says what makes runs differ. */
static void add_reason(const prover *p, const check *c, ax_text *text) {
  const ax_pair *pair = &p->pairs.items[c->source];
  const ax_act_step *a = step_of(p, pair->earlier), *b = step_of(p, pair->later);
  const ax_act_objects *o = objects_of(p);
  const ax_act_semaphore *s = &o->semaphores[a->act.object];
  bool waits = pair->conflict == AX_CONFLICT_WAITS;
  ax_text_add(text, "%ssemaphore %s of device %u: %s and %s %s, and nothing says which of them comes first",
              text->length > 0 ? "\n" : "", s->name, s->device, o->agents[a->agent].name, o->agents[b->agent].name,
              waits ? "may wait for it at the same time" : "read its count and change it");
}

static ax_status report_failed(prover *p) {
  uint32_t races = 0, reasons = 0, others = 0;
  ax_text why = {0};
  ax_status status = AX_OK;
  p->out->confluent = true;
  for (uint32_t k = 0; k < p->failed_count && status == AX_OK; k++) {
    const check *c = &p->failed[k];
    if (c->kind == CHECK_PAIR && p->pairs.items[c->source].conflict != AX_CONFLICT_MEMORY) {
      p->out->confluent = false;
      if (++reasons <= most_races_told) add_reason(p, c, &why);
    } else if (c->kind == CHECK_PAIR) {
      status = report_race(p, c, &races);
    } else if (++others <= most_told) {
      ax_act_finding finding = ax_act_finding_of(c->kind == CHECK_COPY    ? AX_FINDING_COPY_NOT_AWAITED
                                           : c->kind == CHECK_SCOPE ? AX_FINDING_AFTER_SCOPE
                                                                    : AX_FINDING_BARRIER);
      finding.agent = c->source;
      finding.position = c->position;
      const ax_game_act *t = ax_game_token(p->g, c->source, c->position);
      if (c->kind == CHECK_SCOPE) finding.object = c->target;
      if (c->kind == CHECK_BARRIER) finding.object = t->object, finding.amount = t->amount + 1;
      status = show_failed(p, c, finding);
    }
  }
  if (p->out->confluent || status != AX_OK)
    ax_text_deinit(&why);
  else
    status = ax_text_finish(&why, &p->out->why_not);
  return status;
}

/* At the end of the record, where the game stands. */
static ax_status report_end(prover *p) {
  const ax_act_record *r = p->g->record;
  const ax_act_objects *o = objects_of(p);
  for (uint32_t k = 0; k < r->fault_count && k < most_told; k++) {
    ax_act_finding finding = ax_act_finding_of(r->faults[k].fault.kind);
    finding.agent = r->steps[r->faults[k].step].agent;
    finding.position = p->g->position[r->faults[k].step];
    finding.object = r->faults[k].fault.region;
    finding.fault = r->faults[k].fault;
    AX_TRY(tell(p, finding, r->faults[k].step + 1));
  }
  if (!p->out->complete) return AX_OK;
  if (r->pending_count > 0) return tell(p, ax_act_finding_of(AX_FINDING_DEADLOCK), r->step_count);
  for (uint32_t s = 0, told = 0; s < o->semaphore_count && told < most_told; s++) {
    if (p->g->count[s] == 0) continue;
    ax_act_finding finding = ax_act_finding_of(AX_FINDING_LEAK);
    finding.object = s;
    finding.amount = p->g->count[s];
    told++;
    AX_TRY(tell(p, finding, r->step_count));
  }
  for (uint32_t b = 0, told = 0; b < o->barrier_count && told < most_told; b++) {
    if (p->g->arrivals[b] % o->barriers[b].arrivals == 0) continue;
    ax_act_finding finding = ax_act_finding_of(AX_FINDING_BARRIER);
    finding.object = b;
    told++;
    AX_TRY(tell(p, finding, r->step_count));
  }
  return AX_OK;
}

static ax_status list_cores(prover *p) {
  p->cores = ax_alloc(p->g->agent_count * sizeof p->cores[0]);
  if (p->cores == NULL) return ax_out_of_memory(0);
  for (uint32_t a = 0; a < p->g->agent_count; a++)
    if (objects_of(p)->agents[a].initial) p->cores[p->core_count++] = a;
  return AX_OK;
}

/* Lists all that is to be looked at, in the game that stands at the record's end. */
static ax_status list_checks(prover *p, const ax_proof_options *options, ax_locks *locks) {
  AX_TRY(list_cores(p));
  AX_TRY(ax_symmetry_find(p->g, options->symmetry, &p->symmetry, &p->out->symmetric));
  AX_TRY(ax_joins_init(&p->joins, p->g));
  AX_TRY(ax_conflicts_find(p->g, options->all_races, locks, &p->pairs));
  p->out->pairs = p->pairs.count;
  AX_TRY(list_pairs(p));
  AX_TRY(list_barriers(p, p->g->arrivals));
  AX_TRY(list_copies(p));
  AX_TRY(list_scopes(p));
  return index_checks(p);
}

static ax_status prove(prover *p, const ax_proof_options *options) {
  p->out->complete = p->g->complete;
  AX_TRY(report_end(p));
  p->first_suffices = options->first_suffices;
  AX_TRY(list_checks(p, options, NULL));
  AX_TRY(hold_all(p));
  AX_TRY(report_failed(p));
  ax_races_sort(&p->out->races);
  p->out->proved = p->out->confluent && p->out->complete && p->out->kinds == 0;
  return AX_OK;
}

static void deinit(prover *p) {
  ax_game_destroy(p->g);
  ax_symmetry_deinit(&p->symmetry);
  ax_free(p->pairs.items);
  ax_joins_deinit(&p->joins);
  void *memory[] = {p->checks, p->first, p->wanted, p->cores, p->leavings, p->failed};
  for (uint32_t k = 0; k < AX_COUNT(memory); k++) ax_free(memory[k]);
}

/* The game in which locks shut no agent out: if nothing fails there, all is right (locks.c). */
static ax_status prove_locks(const ax_act_record *record, ax_proof *out) {
  ax_proof attempt = {0};
  ax_locks locks = {0};
  prover p = {.out = &attempt};
  bool found = false;
  ax_status status = ax_game_create(record, &p.g);
  if (status == AX_OK) status = ax_locks_find(p.g, &locks);
  if (status == AX_OK && locks.count > 0) {
    status = list_checks(&p, &(ax_proof_options){0}, &locks);
    found = status == AX_OK && !locks.refused;
  }
  if (found) {
    ax_locks_free(&locks, p.g);
    status = hold_all(&p);
    found = status == AX_OK && p.failed_count == 0;
  }
  out->holds += attempt.holds, out->steps += attempt.steps;
  if (found) {
    out->confluent = out->proved = true;
    out->locks = locks.count;
    out->exact = locks.floats;
    out->extremes = locks.extremes;
    ax_free(out->why_not);
    out->why_not = NULL;
  }
  ax_locks_deinit(&locks);
  deinit(&p);
  ax_proof_deinit(&attempt);
  return status;
}

ax_status ax_prove(const ax_act_record *record, const ax_proof_options *options, ax_proof *out) {
  static const ax_proof_options none;
  double begin = ax_seconds();
  *out = (ax_proof){0};
  prover p = {.out = out};
  ax_status status = ax_game_create(record, &p.g); /* it stands at the record's end */
  if (status == AX_OK) status = prove(&p, options != NULL ? options : &none);
  deinit(&p);
  if (status == AX_OK && !out->confluent && out->complete && out->kinds == 0 && record->pending_count == 0)
    status = prove_locks(record, out);
  if (status != AX_OK) ax_proof_deinit(out);
  out->seconds = ax_seconds() - begin;
  return status;
}

void ax_proof_deinit(ax_proof *proof) {
  ax_free(proof->why_not);
  ax_act_findings_deinit(&proof->findings);
  ax_free(proof->races.items);
  *proof = (ax_proof){0};
}
