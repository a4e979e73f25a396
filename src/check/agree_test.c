/* Scripts at random: one run proved, all interleavings, and the reduced search must say the same.

   A script without branches is its own token game, so there the proof has each race, exactly. Where what an agent does follows from
   what it has read, it has some race if and only if there is one. What fails is made smaller, act by act, and printed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/explore.h"
#include "check/game.h"
#include "check/prove.h"
#include "check/script.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

enum { most_states = 60000, scripts = 3000 };

/* --- Scripts at random --- */

typedef struct maker {
  test_random random;
  ax_script script;
  uint32_t cores, copies, semaphores, barriers, regions;
  uint32_t owner[8]; /* by semaphore: who waits on it, where there is one */
  bool several;      /* semaphores that several wait on, and reads */
  bool skips;
  int64_t count[8], arrivals[8], awaited[8][8]; /* as things stand where acts are made to be possible */
  bool started[8];
  uint32_t acts[8];
} maker;

static uint32_t below(maker *m, uint32_t count) { return (uint32_t)test_random_below(&m->random, count); }
static bool chance(maker *m, uint32_t percent) { return below(m, 100) < percent; }

static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};

static void make_objects(maker *m) {
  m->cores = 2 + below(m, 2);
  m->copies = below(m, 3);
  m->semaphores = 1 + below(m, 3);
  m->barriers = below(m, 2);
  m->regions = 1 + below(m, 2);
  ax_act_objects *o = &m->script.objects;
  for (uint32_t a = 0; a < m->cores + m->copies; a++) {
    m->started[a] = a < m->cores;
    assert_int_equal(ax_act_objects_add_agent(o, (ax_act_agent){.name = names[a], .initial = a < m->cores}), AX_OK);
  }
  for (uint32_t s = 0; s < m->semaphores; s++) {
    m->count[s] = chance(m, 15) ? 1 : 0;
    m->owner[s] = below(m, m->cores);
    assert_int_equal(ax_act_objects_add_semaphore(o, (ax_act_semaphore){names[s], 0, m->count[s]}), AX_OK);
  }
  for (uint32_t b = 0; b < m->barriers; b++)
    assert_int_equal(ax_act_objects_add_barrier(o, (ax_act_barrier){names[b], 0, 1 + below(m, 2)}), AX_OK);
  for (uint32_t r = 0; r < m->regions; r++)
    assert_int_equal(
        ax_act_objects_add_region(o, (ax_act_region){.name = names[r], .bytes = 4, .elem_bytes = 1, .rank = 1, .dims = {4}}),
        AX_OK);
}

static void touch(maker *m, ax_act *act, uint32_t touches) {
  act->touch_first = m->script.touches.touch_count;
  act->touch_count = touches;
  for (uint32_t t = 0; t < touches; t++) {
    uint64_t begin = below(m, 3), end = begin + 1 + below(m, (uint32_t)(4 - begin));
    ax_bytes runs[2] = {{begin, end}, {3, 4}};
    bool write = chance(m, 50);
    assert_int_equal(ax_touches_add(&m->script.touches, below(m, m->regions), write, write && chance(m, 10),
                                    end < 3 && chance(m, 20) ? 2 : 1, runs),
                     AX_OK);
  }
}

static void add(maker *m, uint32_t agent, ax_act act) {
  uint32_t skip = m->skips && (act.kind == AX_ACT_READ || act.touch_count > 0) && chance(m, 30) ? 1 + below(m, 2) : 0;
  m->acts[agent]++;
  assert_int_equal(ax_script_add(&m->script, agent, act, skip), AX_OK);
}

/* One more act of the agent, which could be done now if `possible`. */
static void add_some(maker *m, uint32_t agent, bool possible) {
  ax_act act = {.kind = AX_ACT_LOCAL};
  uint32_t s = below(m, m->semaphores), b = m->barriers > 0 ? below(m, m->barriers) : 0, kind = below(m, 20), c;
  if (kind < 4) {
    act = (ax_act){.kind = AX_ACT_SIGNAL, .object = s, .amount = 1 + below(m, 2)};
    m->count[s] += act.amount;
  } else if (kind < 8) {
    act = (ax_act){.kind = AX_ACT_WAIT, .object = s, .amount = 1 + (chance(m, 30) ? 1 : 0)};
    if (!m->several && m->owner[s] != agent) return;
    if (possible && m->count[s] < act.amount) return;
    m->count[s] -= act.amount;
  } else if (kind < 9 && m->several) {
    act = (ax_act){.kind = AX_ACT_READ, .object = s};
  } else if (kind < 11 && m->barriers > 0) {
    act = (ax_act){.kind = AX_ACT_ARRIVE, .object = b};
    m->arrivals[b]++;
  } else if (kind < 13 && m->barriers > 0) {
    act = (ax_act){.kind = AX_ACT_AWAIT, .object = b, .amount = m->awaited[agent][b] + 1};
    if (possible && m->arrivals[b] < act.amount * m->script.objects.barriers[b].arrivals) return;
    m->awaited[agent][b]++;
  } else if (kind < 15 && agent < m->cores && m->copies > 0) {
    for (c = m->cores; c < m->cores + m->copies && m->started[c]; c++) continue;
    if (c == m->cores + m->copies) return;
    m->started[c] = true;
    act = (ax_act){.kind = AX_ACT_START, .object = c};
  } else if (kind < 16 && m->copies > 0) {
    c = m->cores + below(m, m->copies);
    if (c == agent || m->acts[c] == 0) return;
    act = (ax_act){.kind = AX_ACT_JOIN, .object = c, .amount = m->acts[c]};
  } else {
    touch(m, &act, 1 + (chance(m, 20) ? 1 : 0));
  }
  add(m, agent, act);
}

static ax_script make_script(uint64_t seed) {
  maker m = {.random = {seed}};
  m.several = chance(&m, 40);
  m.skips = chance(&m, 25);
  make_objects(&m);
  bool possible = chance(&m, 75);
  uint32_t total = 4 + below(&m, 12), agents = m.cores + m.copies;
  for (uint32_t k = 0; k < total; k++) {
    uint32_t agent = below(&m, agents);
    if (m.started[agent] && m.acts[agent] < 6) add_some(&m, agent, possible);
  }
  if (possible && chance(&m, 70)) /* what is left is taken */
    for (uint32_t s = 0; s < m.semaphores; s++)
      if (m.count[s] > 0) add(&m, m.owner[s], (ax_act){.kind = AX_ACT_WAIT, .object = s, .amount = m.count[s]});
  if (chance(&m, 50)) /* copies are awaited */
    for (uint32_t c = m.cores; c < agents; c++)
      if (m.started[c] && m.acts[c] > 0)
        add(&m, below(&m, m.cores), (ax_act){.kind = AX_ACT_JOIN, .object = c, .amount = m.acts[c]});
  return m.script;
}

/* --- What must agree --- */

typedef struct answers {
  ax_act_record record;
  ax_proof proof;
  ax_exploration all, reduced;
} answers;

static void free_answers(answers *a) {
  ax_act_record_deinit(&a->record);
  ax_proof_deinit(&a->proof);
  ax_exploration_deinit(&a->all);
  ax_exploration_deinit(&a->reduced);
}

static bool same_races(const ax_race_list *x, const ax_race_list *y) {
  if (x->count != y->count) return false;
  for (uint32_t k = 0; k < x->count; k++) {
    const ax_race *a = &x->items[k], *b = &y->items[k];
    if (a->agent != b->agent || a->position != b->position || a->other != b->other || a->other_position != b->other_position)
      return false;
  }
  return true;
}

static bool some_races_of(const ax_race_list *x, const ax_race_list *y) {
  for (uint32_t k = 0; k < x->count; k++) {
    bool found = false;
    for (uint32_t i = 0; i < y->count && !found; i++)
      found = same_races(&(ax_race_list){&x->items[k], 1, 1}, &(ax_race_list){&y->items[i], 1, 1});
    if (!found) return false;
  }
  return true;
}

static const ax_act_step *next_of(const ax_act_record *r, uint32_t agent, uint32_t position) {
  uint32_t done = 0;
  for (uint32_t s = 0; s < r->step_count; s++) done += r->steps[s].agent == agent;
  for (uint32_t s = 0; s < r->pending_count && done == position; s++)
    if (r->pending[s].agent == agent) return &r->pending[s];
  return NULL;
}

/* The schedule leads to where the finding is. */
static bool shows(const ax_system *system, const ax_act_finding *f) {
  ax_act_record r;
  if (ax_system_record(system, &f->schedule, false, 0, &r) != AX_OK) return false;
  bool good = true;
  if (f->reordered && f->other != AX_NONE)
    good = next_of(&r, f->agent, f->position) != NULL || next_of(&r, f->other, f->other_position) != NULL;
  else if (f->reordered)
    good = r.pending_count == 0;
  else if (f->other != AX_NONE)
    good = next_of(&r, f->agent, f->position) != NULL && next_of(&r, f->other, f->other_position) != NULL;
  else if (f->kind == AX_FINDING_BARRIER && f->amount > 0)
    good = next_of(&r, f->agent, f->position) != NULL;
  else if (f->kind == AX_FINDING_DEADLOCK)
    good = r.pending_count > 0;
  else if (f->kind == AX_FINDING_LEAK)
    good = r.pending_count == 0;
  for (uint32_t k = 0; k < r.pending_count && f->kind == AX_FINDING_COPY_NOT_AWAITED; k++)
    good = good && !r.objects.agents[r.pending[k].agent].initial;
  ax_act_record_deinit(&r);
  return good && f->text != NULL && f->text[0] != 0;
}

static const char *judge(const ax_system *system, const answers *a, bool skips, bool reads) {
  const ax_proof *p = &a->proof;
  const uint32_t racy = 1u << AX_FINDING_RACE | 1u << AX_FINDING_AFTER_SCOPE;
  for (uint32_t k = 0; k < p->findings.count; k++)
    if ((p->findings.items[k].certain || !skips) && !shows(system, &p->findings.items[k]))
      return "a schedule of the proof shows nothing";
  if (!p->complete) return "the run is not complete";
  if (a->all.bounded || a->reduced.bounded) return NULL;
  for (uint32_t k = 0; k < a->reduced.findings.count; k++)
    if (!shows(system, &a->reduced.findings.items[k])) return "a schedule of the search shows nothing";
  if (a->all.kinds != a->reduced.kinds) return "kinds differ between all and reduced";
  if ((a->all.races.count > 0) != (a->reduced.races.count > 0)) return "all and reduced differ in whether there are races";
  bool any = skips && reads; /* of runs that differ in reads alone, one is looked at: places count them */
  if (!any && !same_races(&a->all.races, &a->reduced.races)) return "races differ between all and reduced";
  if (a->all.outcome_count != a->reduced.outcome_count ||
      (a->all.outcome_count > 0 &&
       memcmp(a->all.outcomes, a->reduced.outcomes, a->all.outcome_count * sizeof a->all.outcomes[0]) != 0))
    return "results differ between all and reduced";
  if (a->reduced.passes == 1 && a->reduced.transitions > a->all.transitions * (1 + 2 * a->record.step_count))
    return "nothing is reduced";
  if (p->proved && (a->all.kinds != 0 || a->all.outcome_count != 1)) return "proved what is not so";
  if (!skips && !some_races_of(&p->races, &a->all.races)) return "the proof has races that there are not";
  if (!skips && (p->kinds & ~a->all.kinds) != 0) return "the proof has findings that there are not";
  if (!p->confluent) return NULL;
  if ((p->races.count > 0) != ((a->all.kinds & racy) != 0)) return "the proof and all differ in whether there are races";
  if (!skips && !same_races(&p->races, &a->all.races)) return "races differ between the proof and all";
  if (skips && p->races.count > 0) return NULL;
  if (p->kinds != a->all.kinds) return "kinds differ between the proof and all";
  if (p->races.count == 0 && a->all.outcome_count > 1) return "no races, and several results";
  return NULL;
}

/* NULL: all agree. `tally` (NULL: none) counts. */
/* Whether a game comes to the same with an agent held at each of its acts, from the beginning and from the end. */
static bool comes_to_the_same(const ax_act_record *record) {
  ax_game *g, *back;
  bool same = true;
  TEST_OK(ax_game_create(record, &g));
  TEST_OK(ax_game_create(record, &back));
  ax_game_reset(back);
  ax_game_run(back);
  for (uint32_t a = 0; a < g->agent_count; a++) {
    if (g->starter[a] != AX_NONE) continue;
    ax_game_reset(g);
    ax_game_hold(g, a, 0);
    same = same && ax_game_find_dependent(back, a, UINT64_MAX);
    ax_game_take_back(back, a);
    for (uint32_t position = 0; position <= g->done[a]; position++) {
      ax_game_hold(g, a, position);
      ax_game_run(g);
      ax_game_hold(back, a, position);
      ax_game_run(back);
      same = same && memcmp(g->at, back->at, g->agent_count * sizeof g->at[0]) == 0 &&
             memcmp(g->count, back->count, record->objects.semaphore_count * sizeof g->count[0]) == 0 &&
             memcmp(g->turns, back->turns, record->objects.semaphore_count * sizeof g->turns[0]) == 0;
    }
  }
  ax_game_destroy(g);
  ax_game_destroy(back);
  return same;
}

typedef struct tally {
  uint64_t scripts, confluent, proved, racy, deadlocks, bounded, skipping, kinds[AX_FINDING_KINDS], states, reduced_states;
} tally;

static const char *compare(ax_script *script, tally *t) {
  answers a = {0};
  ax_system system;
  bool skips = false, reads = false;
  for (uint32_t k = 0; k < script->agent_count; k++)
    for (uint32_t i = 0; i < script->agents[k].count; i++) {
      skips = skips || script->agents[k].acts[i].skip > 0;
      reads = reads || script->agents[k].acts[i].act.kind == AX_ACT_READ;
    }
  assert_int_equal(ax_script_system(script, &system), AX_OK);
  const char *wrong = NULL;
  if (ax_system_record(&system, NULL, true, 0, &a.record) != AX_OK)
    wrong = "it does not run";
  else if (ax_prove(&a.record, &(ax_proof_options){.all_races = true}, &a.proof) != AX_OK)
    wrong = ax_message();
  else if (ax_explore(&system, &(ax_explore_options){.mode = AX_EXPLORE_ALL, .most_states = most_states}, &a.all) != AX_OK)
    wrong = ax_message();
  else if (ax_explore(&system, &(ax_explore_options){.mode = AX_EXPLORE_REDUCED, .most_states = 10 * most_states}, &a.reduced) != AX_OK)
    wrong = ax_message();
  else
    wrong = judge(&system, &a, skips, reads);
  /* What looks at neighbours alone finds a race if there is one. */
  ax_proof few = {0};
  if (wrong == NULL && (ax_prove(&a.record, NULL, &few) != AX_OK || few.proved != a.proof.proved ||
                        (few.races.count > 0) != (a.proof.races.count > 0) || !some_races_of(&few.races, &a.proof.races)))
    wrong = "pairs that are neighbours do not tell of all";
  ax_proof_deinit(&few);
  if (wrong == NULL && (ax_prove(&a.record, &(ax_proof_options){.first_suffices = true}, &few) != AX_OK || few.proved != a.proof.proved))
    wrong = "the first that fails does not tell whether any does";
  ax_proof_deinit(&few);
  if (wrong == NULL && !comes_to_the_same(&a.record)) wrong = "a game that is taken back comes to something else";
  if (t != NULL) {
    t->scripts++;
    t->confluent += a.proof.confluent;
    t->proved += a.proof.proved;
    t->bounded += a.all.bounded;
    t->skipping += skips;
    t->states += a.all.states;
    t->reduced_states += a.reduced.states;
    for (uint32_t k = 0; k < AX_FINDING_KINDS; k++) t->kinds[k] += a.all.kinds >> k & 1;
  }
  free_answers(&a);
  return wrong;
}

static void show_script(const ax_script *s) {
  for (uint32_t k = 0; k < s->objects.semaphore_count; k++)
    print_message("semaphore %u = %lld\n", k, (long long)s->objects.semaphores[k].initial);
  for (uint32_t k = 0; k < s->objects.barrier_count; k++) print_message("barrier %u: %u\n", k, s->objects.barriers[k].arrivals);
  for (uint32_t a = 0; a < s->agent_count; a++) {
    print_message("%u%s:", a, s->objects.agents[a].initial ? "" : " (started)");
    for (uint32_t k = 0; k < s->agents[a].count; k++) {
      const ax_act *act = &s->agents[a].acts[k].act;
      print_message("  %s %u %lld", ax_act_kind_name(act->kind), act->object, (long long)act->amount);
      for (uint32_t t = act->touch_first; t < act->touch_first + act->touch_count; t++) {
        const ax_touch *x = &s->touches.touches[t];
        print_message(" %c%u", x->scope ? 's' : x->write ? 'w' : 'r', x->region);
        for (uint32_t r = x->first; r < x->first + x->count; r++)
          print_message("[%d:%d]", (int)s->touches.runs[r].begin, (int)s->touches.runs[r].end);
      }
      if (s->agents[a].acts[k].skip > 0) print_message(" skip %u", s->agents[a].acts[k].skip);
    }
    print_message("\n");
  }
}

/* Takes acts out for as long as it still fails in the same way. */
static void shrink(ax_script *s, const char *wrong) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (uint32_t a = 0; a < s->agent_count; a++)
      for (uint32_t k = 0; k < s->agents[a].count; k++) {
        ax_script_agent *agent = &s->agents[a];
        ax_script_act taken = agent->acts[k];
        memmove(agent->acts + k, agent->acts + k + 1, (--agent->count - k) * sizeof taken);
        const char *still = compare(s, NULL);
        if (still != NULL && strcmp(still, wrong) == 0) {
          smaller = true;
          k--;
          continue;
        }
        memmove(agent->acts + k + 1, agent->acts + k, (agent->count++ - k) * sizeof taken);
        agent->acts[k] = taken;
      }
  }
}

static tally total;

static void one(uint64_t seed, bool show) {
  ax_script script = make_script(seed);
  if (show) show_script(&script);
  const char *wrong = compare(&script, &total);
  if (wrong != NULL) {
    char said[200];
    snprintf(said, sizeof said, "%s", wrong);
    shrink(&script, said);
    show_script(&script);
    fail_msg("seed %llu: %s", (unsigned long long)seed, said);
  }
  ax_script_deinit(&script);
}

static void test_scripts_agree(void **state) {
  (void)state;
  test_each_seed(scripts, one);
  print_message("%llu scripts: %llu confluent, %llu proved, %llu with branches, %llu bounded; states %llu, reduced %llu\n",
                (unsigned long long)total.scripts, (unsigned long long)total.confluent, (unsigned long long)total.proved,
                (unsigned long long)total.skipping, (unsigned long long)total.bounded, (unsigned long long)total.states,
                (unsigned long long)total.reduced_states);
  for (uint32_t k = 1; k < AX_FINDING_KINDS; k++)
    if (total.kinds[k] > 0)
      print_message("  %s: %llu\n", ax_finding_kind_name((ax_finding_kind)k), (unsigned long long)total.kinds[k]);
  if (total.scripts < scripts) return;
  assert_true(total.proved > total.scripts / 50 && total.confluent < total.scripts);
  ax_finding_kind all[] = {AX_FINDING_DEADLOCK, AX_FINDING_RACE,        AX_FINDING_LEAK,
                           AX_FINDING_BARRIER,  AX_FINDING_AFTER_SCOPE, AX_FINDING_COPY_NOT_AWAITED};
  for (uint32_t k = 0; k < AX_COUNT(all); k++) assert_true(total.kinds[all[k]] > total.scripts / 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_scripts_agree)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
