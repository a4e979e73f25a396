/* Locks: what is proved without looking at orders of sections is what a search of all of them finds. By hand, and at random: locks
   of one count and of several, sections within sections, sections taken again and again, sections that read, write and add, to bytes
   that overlap, that start copies and wait for them or for others, or at a barrier; supply that comes late; drains. */
#include <stdio.h>
#include <string.h>

#include "check/explore.h"
#include "check/locks.h"
#include "check/prove.h"
#include "check/scout.h"
#include "kernel/machine/state.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"
#include "support/script.h"
#include "support/tensor.h"

static uint32_t bit(ax_finding_kind kind) { return 1u << kind; }

/* What all three ways come to. */
typedef struct answers {
  ax_act_record record;
  ax_proof proof;
  ax_exploration all, reduced;
} answers;

static void look(const ax_system *system, uint64_t most_states, answers *a) {
  TEST_OK(ax_system_record(system, NULL, true, 0, &a->record));
  TEST_OK(ax_prove(&a->record, NULL, &a->proof));
  TEST_OK(ax_explore(system, &(ax_explore_options){.mode = AX_EXPLORE_ALL, .most_states = most_states}, &a->all));
  TEST_OK(ax_explore(system, &(ax_explore_options){.mode = AX_EXPLORE_REDUCED, .most_states = most_states}, &a->reduced));
}

static void free_answers(answers *a) {
  ax_act_record_deinit(&a->record);
  ax_proof_deinit(&a->proof);
  ax_exploration_deinit(&a->all);
  ax_exploration_deinit(&a->reduced);
}

static bool same_results(const ax_exploration *a, const ax_exploration *b) {
  return a->outcome_count == b->outcome_count &&
         (a->outcome_count == 0 || memcmp(a->outcomes, b->outcomes, a->outcome_count * sizeof a->outcomes[0]) == 0);
}

/* NULL: all agree. */
static const char *judge(const answers *a) {
  if (a->all.bounded || a->reduced.bounded) return NULL;
  if (a->all.kinds != a->reduced.kinds) return "kinds differ between all and reduced";
  if (!same_results(&a->all, &a->reduced)) return "results differ between all and reduced";
  if (a->proof.proved && (a->all.kinds != 0 || a->all.outcome_count != 1)) return "proved what is not so";
  if (a->proof.locks > 0 && !a->proof.proved) return "locks, and not proved";
  return NULL;
}

/* --- By hand --- */

/* locks: that the proof goes without their order; 0: it does not prove. kinds: what a search finds. */
static void expect(const char *text, uint32_t locks, uint32_t kinds) {
  test_script s;
  answers a = {0};
  test_script_parse(text, &s);
  look(&s.system, 0, &a);
  const char *wrong = judge(&a);
  if (wrong != NULL || a.proof.locks != locks || a.all.kinds != kinds)
    fail_msg("%s: %u locks, kinds %x: %s", wrong != NULL ? wrong : "not as expected", a.proof.locks, a.all.kinds, text);
  free_answers(&a);
  test_script_free(&s);
}

static void test_sections(void **state) {
  (void)state;
  const uint32_t results = bit(AX_FINDING_RESULTS), deadlock = bit(AX_FINDING_DEADLOCK), race = bit(AX_FINDING_RACE);
#define END "core C: signal s; wait done 2; load x 0 4; wait s\n"
#define BEGIN "region x 4\nsem s\nsem t\nsem done\n"
  /* Other bytes; additions, in two acts and in one; a write that decides. */
  expect(BEGIN END "core A: wait s; store x 0 1; signal s; signal done\ncore B: wait s; store x 1 2; signal s; signal done", 1, 0);
  expect(BEGIN END "core A: wait s; load+ x 0 1; store+ x 0 1; signal s; signal done\ncore B: wait s; add x 0 1; signal s; signal done",
         1, 0);
  expect(BEGIN END "core A: wait s; store x 0 1; signal s; signal done\ncore B: wait s; store x 0 1; signal s; signal done", 0,
         results);
  /* An addition that is no whole: let go between; another load between; never stored. */
  expect(BEGIN END "core A: wait s; load+ x 0 1; signal s; wait s; store+ x 0 1; signal s; signal done\n"
                   "core B: wait s; add x 0 1; signal s; signal done", 0, results);
  expect(BEGIN END "core A: wait s; load+ x 0 1; load x 0 1; store+ x 0 1; signal s; signal done\n"
                   "core B: wait s; add x 0 1; signal s; signal done", 0, 0);
  expect(BEGIN END "core A: wait s; load+ x 0 1; signal s; signal done\ncore B: wait s; add x 0 1; signal s; signal done", 0, 0);
  /* Other updates than sums: of one kind they commute, and of two they do not. */
  for (const char *sign = "*><&|^"; *sign != 0; sign++) {
    char text[512];
    for (int mixed = 0; mixed < 2; mixed++) {
      const char other = mixed ? *sign == '*' ? '+' : '*' : *sign;
      (void)snprintf(text, sizeof text,
                     BEGIN
                     "core C: store x 0 4; signal s; wait done 2; load x 0 4; wait s\n"
                     "core A: wait s; load%c x 0 1; store%c x 0 1; signal s; signal done\n"
                     "core B: nothing *2; wait s; add%c x 0 1; signal s; signal done",
                     other, other, *sign);
      expect(text, !mixed, mixed ? results : 0);
    }
  }
  /* What is stored is of bytes that others write as well. */
  expect(BEGIN END
         "core A: wait s; load x 1 2; load> x 0 1; store> x 0 1; store x 2 3; signal s; signal done\n"
         "core B: wait s; load x 2 3; add> x 0 1; store x 1 2; signal s; signal done",
         0, results);
  /* .. but of one agent alone they may be anything. */
  expect(BEGIN END "core A: wait s; load+ x 1 2; load x 1 2; store+ x 1 2; signal s; signal done\n"
                   "core B: wait s; add x 0 1; signal s; signal done", 1, 0);
  expect(BEGIN END "core A: wait s; load+ x 1 2; signal s; wait s; add x 1 2; load+ x 1 2; signal s; signal done\n"
                   "core B: wait s; load x 0 1; signal s; signal done", 1, 0);
  /* Not within the section: a race. Read after the section, which only its order tells of: a race as well. */
  expect(BEGIN END "core A: add x 0 1; wait s; signal s; signal done\ncore B: wait s; add x 0 1; signal s; signal done", 0, race);
  expect(BEGIN END "core A: wait s; store x 0 1; signal s; signal done\ncore B: wait s; signal s; load x 0 1; signal done", 0, race);
  /* What the supplier wrote before is there. */
  expect("region x 4\nsem s\nsem done\ncore C: store x 0 4; signal s; wait done 2; wait s\n"
         "core A: wait s; add x 0 1; signal s; signal done\ncore B: wait s; load x 1 4; add x 0 1; signal s; signal done", 1, 0);
  /* Several counts: readers, and one that shuts them out; additions of readers race. */
  expect("region x 4\nsem s = 2\nsem done\ncore C: wait done 2; wait s 2\n"
         "core A: wait s; load x 0 1; signal s; signal done\ncore B: wait s; load x 0 1; signal s; signal done", 1, 0);
  expect("region x 4\nsem s = 2\nsem done\ncore C: wait done 2; wait s 2\n"
         "core A: wait s 2; add x 0 1; signal s 2; signal done\ncore B: wait s 2; add x 0 1; signal s 2; signal done", 1, 0);
  expect("region x 4\nsem s = 2\nsem done\ncore C: wait done 2; wait s 2\n"
         "core A: wait s; add x 0 1; signal s; signal done\ncore B: wait s; add x 0 1; signal s; signal done", 0, race);
  /* Sections within sections; in another order, a deadlock. */
  expect("region x 4\nsem s = 1\nsem t = 1\nsem done\ncore C: wait done 2; wait s; wait t\n"
         "core A: wait s; wait t; add x 0 1; signal t; signal s; signal done\n"
         "core B: wait s; wait t; add x 0 1; signal t; signal s; signal done", 2, 0);
  expect("region x 4\nsem s = 1\nsem t = 1\nsem done\ncore C: wait done 2; wait s; wait t\n"
         "core A: wait s; wait t; add x 0 1; signal t; signal s; signal done\n"
         "core B: wait t; wait s; add x 0 1; signal s; signal t; signal done", 0, deadlock);
  /* Supply of the inner lock that needs the outer one: a deadlock if the supplier comes last. */
  expect("region x 4\nsem s = 1\nsem t\nsem done\ncore C: wait done 2; wait s; wait t\n"
         "core A: wait s; signal t; signal s; wait t; signal t; signal done\n"
         "core B: wait s; wait t; signal t; signal s; signal done", 0, deadlock);
  /* A section that waits for another's signal, which comes only after its section. */
  expect("region x 4\nsem s = 1\nsem t\nsem done\ncore C: wait done 2; wait s\n"
         "core A: wait s; wait t; signal s; signal done\ncore B: wait s; signal s; signal t; signal done", 0, deadlock);
  /* A copy of its own in the section. */
  expect("region x 4\nregion y 4\nsem s = 1\nsem t\nsem done\ncopy K: load y 0 1; store x 0 1; signal t\n"
         "core C: wait done 2; wait s\ncore A: wait s; start K; wait t; signal s; signal done\n"
         "core B: wait s; store x 1 2; signal s; signal done", 1, 0);
  /* The same three, where the run that is looked at comes to its end. */
  expect("region x 4\nsem s = 1\nsem t = 1\nsem done\ncore C: wait done 2; wait s; wait t\n"
         "core A: wait s; wait t; add x 0 1; signal t; signal s; signal done\n"
         "core B: nothing *9; wait t; wait s; add x 0 1; signal s; signal t; signal done", 0, deadlock);
  expect("region x 4\nsem s = 1\nsem t\nsem done\ncore C: wait done 2; wait s\n"
         "core A: nothing *9; wait s; wait t; signal s; signal done\ncore B: wait s; signal s; signal t; signal done", 0, deadlock);
  expect(BEGIN END "core A: wait s; load+ x 0 1; signal s; wait s; store+ x 0 1; signal s; signal done\n"
                   "core B: nothing *9; wait s; add x 0 1; signal s; signal done", 0, results);
  /* A supply that comes after one drain, and not after the other. */
  expect("sem s = 1\nsem t\ncore A: wait s; signal t\ncore B: wait t; signal s\ncore C: nothing *9; wait s", 0, deadlock);
  /* A drain that may come before the sections: a deadlock. */
  expect("region x 4\nsem s = 1\nsem done\ncore C: wait s\ncore A: wait s; signal s\ncore B: wait s; signal s", 0, deadlock);
}

/* --- Their parts --- */

static void locks_of_a_game_shut_nobody_out(void **state) {
  (void)state;
  test_script s;
  ax_act_record record;
  ax_game *game;
  ax_locks locks;
  ax_pair_list pairs = {0};
  test_script_parse("region x 4\nsem s\nsem done\ncore C: signal s; wait done 2; wait s\n"
                    "core A: wait s; add x 0 1; signal s; signal done\ncore B: wait s; add x 0 1; signal s; signal done", &s);
  TEST_OK(ax_system_record(&s.system, NULL, true, 0, &record));
  TEST_OK(ax_game_create(&record, &game));
  TEST_OK(ax_locks_find(game, &locks));
  assert_int_equal(locks.count, 1);
  assert_true(locks.is_lock[0] && !locks.is_lock[1]);
  for (uint32_t k = 0; k < record.step_count; k++)
    if (record.steps[k].act.touch_count > 0) assert_int_equal(locks.held[k], 1);
  TEST_OK(ax_locks_pair(&locks, &pairs));
  assert_int_equal(pairs.count, 2); /* the gives of A and B, for C's drain; its supply is its own */
  ax_locks_free(&locks, game);
  ax_game_reset(game);
  ax_game_hold(game, 1, 1); /* A, within its section */
  ax_game_run(game);
  assert_int_equal(game->at[1], 1);
  assert_int_equal(game->at[2], 4); /* B does not mind */
  ax_free(pairs.items);
  ax_locks_deinit(&locks);
  ax_game_destroy(game);
  ax_act_record_deinit(&record);
  test_script_free(&s);
}

/* `times` pieces of text for each of three agents, around them `before` and `after`. */
static char *repeated(const char *objects, const char *before, const char *piece, uint32_t times, const char *after) {
  ax_text text = {0};
  char *out;
  ax_text_add(&text, "%s", objects);
  for (char name = 'A'; name < 'D'; name++) {
    ax_text_add(&text, "\ncore %c: %s", name, before);
    for (uint32_t k = 0; k < times; k++) ax_text_add(&text, "%s%s", k > 0 ? "; " : "", piece);
    ax_text_add(&text, after, (char)(name - 'A' + 'a'));
  }
  TEST_OK(ax_text_finish(&text, &out));
  return out;
}

static uint32_t pairs_of(char *text) {
  test_script s;
  ax_act_record record;
  ax_game *game;
  ax_locks locks;
  ax_pair_list pairs = {0};
  test_script_parse(text, &s);
  TEST_OK(ax_system_record(&s.system, NULL, true, 0, &record));
  TEST_OK(ax_game_create(&record, &game));
  TEST_OK(ax_locks_find(game, &locks));
  assert_true(locks.count > 0);
  TEST_OK(ax_conflicts_find(game, false, &locks, &pairs));
  assert_false(locks.refused);
  ax_free(pairs.items);
  ax_locks_deinit(&locks);
  ax_game_destroy(game);
  ax_act_record_deinit(&record);
  test_script_free(&s);
  ax_free(text);
  return pairs.count;
}

/* How often an agent comes changes nothing: of many additions before many reads, of drains, of sections within sections. */
static void pairs_are_as_many_as_agents(void **state) {
  (void)state;
  for (uint32_t n = 2; n <= 200; n *= 10) {
    const char *sums =
        "region x 4\nsem s = 1\nsem done\nsem a\nsem b\nsem c\ncore P: wait done 3; wait s; signal a; signal b; signal c";
    char reads[4096] = "; signal done; wait %c";
    for (uint32_t k = 0; k < n; k++) strcat(reads, "; load x 0 1");
    /* Each reader after each of the others who add; all gives before the drain. */
    assert_int_equal(pairs_of(repeated(sums, "", "wait s; add x 0 1; signal s", n, reads)), 6 + 3);
    const char *drains = "sem s\ncore P: signal s 1000";
    assert_int_equal(pairs_of(repeated(drains, "", "wait s", n, "")), 3);
    const char *nests = "region x 4\nsem s = 1\nsem t\nsem done\ncore P: signal t; wait done 3; wait s; wait t; load x 0 1";
    const char *nest = "wait s; wait t; add x 0 1; signal t; signal s";
    /* The supply of t for each agent; all gives of both for the drains; all additions before the load. */
    assert_int_equal(pairs_of(repeated(nests, "", nest, n, "; signal done")), 3 + 2 * 3 + 3);
  }
}

typedef struct met {
  const ax_system *system;
  uint64_t first;
  uint32_t ends, others;
} met;

static ax_status meets(void *context, const void *state, const ax_interleaving *schedule, bool whole) {
  met *m = context;
  const uint64_t outcome = m->system->outcome(m->system->context, state);
  if (m->ends++ == 0) m->first = outcome;
  m->others += outcome != m->first;
  assert_true(whole);
  assert_int_equal(schedule->count, 6);
  return AX_OK;
}

static void scouts_meet_other_results(void **state) {
  (void)state;
  test_script s;
  test_script_parse("region x 4\nsem s = 1\ncore A: wait s; store x 0 1; signal s\ncore B: wait s; store x 0 1; signal s", &s);
  met m = {.system = &s.system};
  TEST_OK(ax_scout(&s.system, 24, meets, &m));
  assert_int_equal(m.ends, 24);
  assert_true(m.others > 0 && m.others < 24);
  test_script_free(&s);
}

static ax_status gets_stuck(void *context, const void *state, const ax_interleaving *schedule, bool whole) {
  uint32_t *stuck = context;
  (void)state;
  stuck[whole]++;
  assert_true(whole ? schedule->count == 8 : schedule->count < 8);
  return AX_OK;
}

/* Two agents that take two locks in two orders: runs in which they wait for one another are handed over as well. */
static void scouts_get_stuck(void **state) {
  (void)state;
  test_script s;
  uint32_t stuck[2] = {0};
  test_script_parse("sem s = 1\nsem t = 1\ncore A: wait s; wait t; signal t; signal s\ncore B: wait t; wait s; signal s; signal t",
                    &s);
  TEST_OK(ax_scout(&s.system, 24, gets_stuck, stuck));
  assert_true(stuck[false] > 0 && stuck[true] > 0 && stuck[false] + stuck[true] == 24);
  test_script_free(&s);
}

/* A race that is far from where the search begins, and that only what a run at random proves tells of. */
static void scouts_find_what_the_search_does_not_come_to(void **state) {
  (void)state;
  test_script s;
  ax_exploration found;
  char text[2048] = "region x 16\nsem s = 1\ncore A: wait s; nothing; signal s; store x 8 9\n";
  for (char name = 'B'; name < 'K'; name++) {
    char line[160];
    (void)snprintf(line, sizeof line, "core %c: wait s; store x 0 1; signal s; nothing *2; store x %d %d\n", name, name - 'A',
                   name - 'A' + 1);
    strcat(text, line);
  }
  test_script_parse(text, &s);
  ax_explore_options options = {.mode = AX_EXPLORE_REDUCED, .most_states = 2000};
  TEST_OK(ax_explore(&s.system, &options, &found));
  assert_true(found.bounded && (found.kinds & bit(AX_FINDING_RACE)) == 0);
  ax_exploration_deinit(&found);
  options.results_suffice = true;
  TEST_OK(ax_explore(&s.system, &options, &found));
  assert_true(found.bounded && (found.kinds & bit(AX_FINDING_RACE)) != 0);
  assert_int_equal(found.races.items[0].agent, 0);
  assert_int_equal(found.races.items[0].other, 8);
  bool told = false;
  for (uint32_t k = 0; k < found.findings.count; k++)
    told = told || strstr(found.findings.items[k].text, "data race: x[8]") != NULL;
  assert_true(told);
  ax_exploration_deinit(&found);
  test_script_free(&s);
}

static void stores_are_copied(void **state) {
  (void)state;
  ax_touches pool = {0};
  ax_stored stored = {0}, copy;
  const ax_core_code_step steps[2] = {0};
  TEST_OK(ax_touches_add(&pool, 3, true, false, 1, &(ax_bytes){4, 8}));
  TEST_OK(ax_touches_add(&pool, 3, true, false, 1, &(ax_bytes){8, 12}));
  TEST_OK(ax_stored_put(&stored, &pool, &pool.touches[0], &steps[0]));
  TEST_OK(ax_stored_copy(&stored, &copy));
  assert_int_equal(ax_stored_hash(&copy, 1), ax_stored_hash(&stored, 1));
  TEST_OK(ax_stored_put(&copy, &pool, &pool.touches[1], &steps[1]));
  assert_int_equal(copy.count, 2);
  assert_true(ax_stored_hash(&copy, 1) != ax_stored_hash(&stored, 1));
  ax_stored_deinit(&copy);
  ax_stored_deinit(&stored);
  ax_touches_deinit(&pool);
}

/* At random, against a step for each byte: several regions, runs and steps; put in and taken out. */
static void stores_are_bytes(void **state) {
  (void)state;
  enum { regions = 2, bytes = 24, rounds = 20000 };
  const ax_core_code_step steps[3] = {0};
  const ax_core_code_step *by_byte[regions][bytes] = {0};
  test_random random = {7};
  ax_stored stored = {0};
  for (uint32_t round = 0; round < rounds; round++) {
    ax_touches pool = {0};
    ax_bytes runs[bytes];
    uint32_t count = 0, at = 0;
    const uint32_t region = (uint32_t)test_random_below(&random, regions), which = (uint32_t)test_random_below(&random, 5);
    const ax_core_code_step *step = which < 3 ? &steps[which] : NULL;
    while ((at += (uint32_t)test_random_below(&random, 9)) < bytes - 1) {
      runs[count].begin = at;
      at += 1 + (uint32_t)test_random_below(&random, 6);
      if (at > bytes) at = bytes;
      runs[count++].end = at++; /* not the next byte: a touch's runs do not meet */
    }
    if (count == 0) continue;
    TEST_OK(ax_touches_add(&pool, region, true, false, count, runs));
    TEST_OK(ax_stored_put(&stored, &pool, &pool.touches[0], step));
    for (uint32_t k = 0; k < count; k++)
      for (uint64_t b = runs[k].begin; b < runs[k].end; b++) by_byte[region][b] = step;
    uint32_t expected = 0; /* runs: as few as there can be */
    for (uint32_t r = 0; r < regions; r++)
      for (uint32_t b = 0; b < bytes; b++) {
        expected += by_byte[r][b] != NULL && (b == 0 || by_byte[r][b] != by_byte[r][b - 1]);
        uint32_t k = 0;
        while (k < stored.count && (stored.runs[k].region != r || stored.runs[k].bytes.begin > b || stored.runs[k].bytes.end <= b))
          k++;
        assert_ptr_equal(k < stored.count ? stored.runs[k].step : NULL, by_byte[r][b]);
      }
    assert_int_equal(stored.count, expected);
    ax_touches_deinit(&pool);
  }
  ax_stored_deinit(&stored);
}

/* --- At random --- */

enum { scripts = 2500, most_states = 40000, cores = 3, shared_cell = 3, region_bytes = 6, updates = AX_UPDATE_XOR + 1 };

typedef struct maker {
  test_random random;
  ax_script script;
  uint32_t copies, amounts[2];
  bool faulty; /* anything may be left out, or be somewhere else */
  bool wide;   /* accesses are of one to three bytes from a cell on, not of a cell */
  uint8_t usual, update;          /* ax_update: of most additions of the script; of the next */
  bool meets_before, meets_after; /* all cores, at a barrier: before their sections, and after these */
  int64_t awaited[cores];
} maker;

enum { LOCK, INNER, DONE, COPIED, OTHER, LATE, SEMAPHORES };
static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};

static uint32_t below(maker *m, uint32_t count) { return (uint32_t)test_random_below(&m->random, count); }
static bool chance(maker *m, uint32_t percent) { return below(m, 100) < percent; }

static void add(maker *m, uint32_t agent, ax_act act, uint32_t skip) {
  if (m->faulty && chance(m, 4)) return;
  TEST_OK(ax_script_add(&m->script, agent, act, skip));
}

static void meet(maker *m, uint32_t agent, ax_act_kind kind, uint32_t semaphore, uint32_t amount) {
  add(m, agent, (ax_act){.kind = kind, .object = semaphore, .amount = amount}, 0);
}

/* What the acts that come next are of: a cell; or some bytes at the cell that all share, or of a core and the next one. */
static ax_bytes bytes_at(maker *m, uint32_t cell) {
  ax_bytes bytes = {cell, cell + 1};
  if (!m->wide) return bytes;
  if (cell == shared_cell) bytes.begin += below(m, 2);
  bytes.end = bytes.begin + 1 + (cell == shared_cell || m->faulty ? below(m, 3) : 0);
  if (bytes.end > region_bytes) bytes.end = region_bytes;
  return bytes;
}

/* Additions of a script are of one kind, with a few others between. */
static void touch(maker *m, ax_act *act, ax_bytes bytes, bool write, bool sum) {
  ax_touches *touches = &m->script.touches;
  if (act->touch_count++ == 0) act->touch_first = touches->touch_count;
  TEST_OK(ax_touches_add(touches, 0, write, false, 1, &bytes));
  if (sum) touches->touches[touches->touch_count - 1].sum = (ax_touch_sum){.bits = AX_SUM_WRAPS, .update = m->update};
}

static void access_bytes(maker *m, uint32_t agent, ax_bytes bytes, bool read, bool write, bool sum) {
  ax_act act = {.kind = AX_ACT_LOCAL};
  if (read) touch(m, &act, bytes, false, sum);
  if (write) touch(m, &act, bytes, true, sum);
  add(m, agent, act, read && !sum && chance(m, 10) ? 1 : 0);
}

static void access(maker *m, uint32_t agent, uint32_t cell, bool read, bool write, bool sum) {
  access_bytes(m, agent, bytes_at(m, cell), read, write, sum);
}

/* Arrives, and waits for the others. */
static void gather(maker *m, uint32_t agent) {
  add(m, agent, (ax_act){.kind = AX_ACT_ARRIVE}, 0);
  TEST_OK(ax_script_add(&m->script, agent, (ax_act){.kind = AX_ACT_AWAIT, .amount = ++m->awaited[agent]}, 0));
}

static void add_up(maker *m, uint32_t agent, uint32_t cell) {
  const bool whole = chance(m, 40);
  ax_bytes bytes = bytes_at(m, cell);
  m->update = m->faulty && chance(m, 15) ? (uint8_t)below(m, updates) : m->usual;
  access_bytes(m, agent, bytes, true, whole, true);
  /* Of these bytes, as a script's other stores depend on what is loaded, and an addition has no other use of it (act.h). */
  if (!whole && chance(m, 10)) access_bytes(m, agent, bytes, true, chance(m, 50), chance(m, 50));
  if (!whole && m->wide && chance(m, 10)) bytes = bytes_at(m, cell); /* it is no addition, where these are others */
  if (!whole) access_bytes(m, agent, bytes, false, true, true);
}

static void copy(maker *m, uint32_t agent) {
  if (m->copies == 2) return;
  const uint32_t copy = cores + m->copies++;
  const bool joined = chance(m, 40);
  access(m, copy, agent, false, true, false);
  if (!joined) meet(m, copy, AX_ACT_SIGNAL, chance(m, 90) ? COPIED : below(m, SEMAPHORES), 1);
  add(m, agent, (ax_act){.kind = AX_ACT_START, .object = copy}, 0);
  if (joined)
    add(m, agent, (ax_act){.kind = AX_ACT_JOIN, .object = copy, .amount = 1}, 0);
  else
    meet(m, agent, AX_ACT_WAIT, COPIED, 1);
}

static void section(maker *m, uint32_t agent, uint32_t lock) {
  const uint32_t inner = lock == LOCK || m->faulty ? 1 - lock : lock;
  const bool nests = inner != lock && chance(m, 30);
  const uint32_t amount = m->faulty && chance(m, 10) ? 1 : m->amounts[lock];
  meet(m, agent, AX_ACT_WAIT, lock, amount);
  const uint32_t way = below(m, 12);
  if (way < 5) add_up(m, agent, shared_cell);
  if (way == 5 || way == 6) access(m, agent, agent, chance(m, 50), true, false);
  if (way == 7) access(m, agent, shared_cell, true, m->faulty, false);
  if (way == 8 && m->faulty) access(m, agent, shared_cell, false, true, false);
  if (way == 9) copy(m, agent);
  if (way == 10) meet(m, agent, AX_ACT_SIGNAL, OTHER, 1);
  if (way == 10 || (way == 11 && m->faulty)) meet(m, agent, AX_ACT_WAIT, OTHER, 1);
  if (nests && m->script.agents[agent].count < 7) section(m, agent, inner);
  if (m->faulty && chance(m, 10)) access(m, agent, shared_cell, chance(m, 50), true, chance(m, 50));
  if (m->faulty && m->meets_after && chance(m, 10)) gather(m, agent);
  meet(m, agent, AX_ACT_SIGNAL, lock, amount);
}

static void make_core(maker *m, uint32_t agent) {
  const uint32_t sections = 1 + chance(m, 30);
  if (m->meets_before) gather(m, agent);
  for (uint32_t k = 0; k < sections && m->script.agents[agent].count < 9; k++) {
    if (chance(m, 20)) access(m, agent, agent, chance(m, 50), true, false);
    section(m, agent, chance(m, 75) ? LOCK : INNER);
  }
  if (m->faulty && chance(m, 10)) access(m, agent, shared_cell, true, chance(m, 50), false);
  if (m->meets_after) gather(m, agent);
  if (m->meets_after && chance(m, 30)) access(m, agent, shared_cell, true, false, false);
  meet(m, agent, AX_ACT_SIGNAL, DONE, 1);
}

static void make_objects(maker *m, const uint32_t *counts, bool supplied) {
  ax_act_objects *o = &m->script.objects;
  for (uint32_t a = 0; a < cores + 2; a++) TEST_OK(ax_act_objects_add_agent(o, (ax_act_agent){.name = names[a], .initial = a < cores}));
  for (uint32_t s = 0; s < SEMAPHORES; s++)
    TEST_OK(ax_act_objects_add_semaphore(o, (ax_act_semaphore){names[s], 0, s <= INNER && supplied ? (int64_t)counts[s] : 0}));
  TEST_OK(ax_act_objects_add_barrier(o, (ax_act_barrier){names[0], 0, m->faulty && chance(m, 40) ? cores - 1 : cores}));
  TEST_OK(ax_act_objects_add_region(
      o, (ax_act_region){.name = "x", .bytes = region_bytes, .elem_bytes = 1, .rank = 1, .dims = {region_bytes}}));
}

/* What is supplied is drained: by the first core at its end, or by others, one after the other for sure or not. */
static void drain(maker *m, uint32_t lock, uint32_t count) {
  const uint32_t agent = m->faulty ? below(m, cores) : 0;
  if (count == 2 && chance(m, 50)) {
    meet(m, agent, AX_ACT_WAIT, lock, 1);
    if (m->faulty && chance(m, 50)) meet(m, agent, AX_ACT_SIGNAL, LATE, 1);
    count = 1;
  }
  meet(m, m->faulty && chance(m, 50) ? below(m, cores) : agent, AX_ACT_WAIT, lock, count);
}

static void supply(maker *m, uint32_t lock, uint32_t count) {
  const uint32_t agent = m->faulty && chance(m, 30) ? below(m, cores) : 0;
  if (count == 2 && m->faulty && chance(m, 40)) {
    const uint32_t other = below(m, cores);
    meet(m, other, AX_ACT_WAIT, LATE, 1);
    meet(m, other, AX_ACT_SIGNAL, lock, 1);
    count = 1;
  }
  meet(m, agent, AX_ACT_SIGNAL, lock, count);
}

/* The first core supplies, and reads all at the end. */
static ax_script make_script(uint64_t seed) {
  maker m = {.random = {seed}};
  const bool supplied = chance(&m, 50);
  const uint32_t counts[2] = {1 + chance(&m, 30), 1 + chance(&m, 20)};
  m.faulty = chance(&m, 50);
  m.wide = chance(&m, 60);
  m.usual = m.update = chance(&m, 40) ? AX_UPDATE_ADD : (uint8_t)below(&m, updates);
  m.meets_before = chance(&m, 20);
  m.meets_after = chance(&m, 20);
  for (uint32_t k = 0; k < 2; k++) m.amounts[k] = chance(&m, 70) ? counts[k] : 1;
  make_objects(&m, counts, supplied);
  for (uint32_t a = 0; a < cores; a++) TEST_OK(ax_script_add(&m.script, a, (ax_act){.kind = AX_ACT_LOCAL}, 0));
  if (chance(&m, 50)) access(&m, 0, shared_cell, false, true, false);
  const bool late = chance(&m, 30);
  for (uint32_t k = 0; k < 2 && !supplied && !late; k++) supply(&m, k, counts[k]);
  if (m.meets_before) gather(&m, 0);
  for (uint32_t a = 1; a < cores; a++) make_core(&m, a);
  for (uint32_t k = 0; k < 2 && !supplied && late; k++) supply(&m, k, counts[k]);
  if (chance(&m, 50)) section(&m, 0, LOCK);
  if (m.meets_after) gather(&m, 0);
  meet(&m, 0, AX_ACT_WAIT, DONE, cores - 1);
  access_bytes(&m, 0, (ax_bytes){shared_cell, region_bytes}, true, false, false);
  for (uint32_t k = 0; k < 2; k++)
    if (chance(&m, 85)) drain(&m, k, counts[k]);
  return m.script;
}

static struct { uint64_t scripts, right, proved, of_locks, wide, bounded, kinds[AX_FINDING_KINDS]; } total;

/* Whether two additions have some of their bytes in common, and others not. */
static bool overlaps(const ax_touches *t) {
  for (uint32_t i = 0; i < t->touch_count; i++)
    for (uint32_t k = 0; k < i; k++) {
      const ax_bytes a = t->runs[t->touches[i].first], b = t->runs[t->touches[k].first];
      const bool sums = t->touches[i].sum.bits != 0 && t->touches[k].sum.bits != 0;
      if (sums && a.begin < b.end && b.begin < a.end && (a.begin != b.begin || a.end != b.end)) return true;
    }
  return false;
}

static void one(uint64_t seed, bool show) {
  (void)show;
  ax_script script = make_script(seed);
  ax_system system;
  answers a = {0};
  TEST_OK(ax_script_system(&script, &system));
  look(&system, most_states, &a);
  const char *wrong = judge(&a);
  if (wrong != NULL) fail_msg("seed %llu: %s", (unsigned long long)seed, wrong);
  total.scripts++;
  total.bounded += a.all.bounded;
  total.right += !a.all.bounded && a.all.kinds == 0;
  total.proved += a.proof.proved;
  total.of_locks += a.proof.locks > 0;
  total.wide += a.proof.locks > 0 && overlaps(&script.touches);
  for (uint32_t k = 0; k < AX_FINDING_KINDS; k++) total.kinds[k] += a.all.kinds >> k & 1;
  free_answers(&a);
  ax_script_deinit(&script);
}

static void test_at_random(void **state) {
  (void)state;
  test_each_seed(scripts, one);
  print_message("%llu scripts: %llu right, %llu proved, %llu of these for their locks, %llu with sums of bytes that overlap; "
                "%llu bounded\n",
                (unsigned long long)total.scripts, (unsigned long long)total.right, (unsigned long long)total.proved,
                (unsigned long long)total.of_locks, (unsigned long long)total.wide, (unsigned long long)total.bounded);
  for (uint32_t k = 1; k < AX_FINDING_KINDS; k++)
    if (total.kinds[k] > 0)
      print_message("  %s: %llu\n", ax_finding_kind_name((ax_finding_kind)k), (unsigned long long)total.kinds[k]);
  if (total.scripts < scripts) return;
  assert_true(total.of_locks > total.scripts / 12 && total.wide > total.scripts / 80 && total.bounded < total.scripts / 8);
  const ax_finding_kind all[] = {AX_FINDING_DEADLOCK, AX_FINDING_RACE, AX_FINDING_LEAK, AX_FINDING_RESULTS, AX_FINDING_BARRIER};
  for (uint32_t k = 0; k < AX_COUNT(all); k++) assert_true(total.kinds[all[k]] > total.scripts / 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_sections),
                                     cmocka_unit_test(locks_of_a_game_shut_nobody_out),
                                     cmocka_unit_test(pairs_are_as_many_as_agents),
                                     cmocka_unit_test(scouts_meet_other_results),
                                     cmocka_unit_test(scouts_get_stuck),
                                     cmocka_unit_test(scouts_find_what_the_search_does_not_come_to),
                                     cmocka_unit_test(stores_are_copied),
                                     cmocka_unit_test(stores_are_bytes),
                                     cmocka_unit_test(test_at_random)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
