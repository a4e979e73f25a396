/* The way in which work is done, by a clock that the test moves. */
#include "run/pace.h"

#include "support/cmocka.h"

enum { instrs = 3 };

typedef struct machine { /* nanoseconds of a step: shared, alone */
  int64_t shared[instrs], alone[instrs];
} machine;

typedef struct runs {
  ax_pace_step steps[instrs];
  ax_pace pace;
  int64_t now;
  uint64_t random;
} runs;

static void begin(runs *r) {
  *r = (runs){.pace.count = instrs, .now = 1, .random = 1};
  r->pace.steps = r->steps;
}

/* Calls of so many rounds each, for so many milliseconds; returns the nanoseconds spent in them for each round. Between two calls the
   caller does something else, and now and then a step is held up. */
static double work(runs *r, const machine *m, int rounds_a_call, int64_t milliseconds) {
  const int64_t begin = r->now;
  int64_t inside = 0, rounds = 0;
  while (r->now - begin < milliseconds * 1000000) {
    const int64_t call = r->now;
    for (int i = 0; i < rounds_a_call; i++, rounds++)
      for (uint32_t k = 0; k < instrs; k++) {
        const bool alone = ax_pace_step_begins(&r->pace, k, r->now);
        r->random = r->random * 6364136223846793005u + 1442695040888963407u;
        const bool held_up = r->random >> 40 < (1 << 24) / 1000;
        r->now += (alone ? m->alone[k] : m->shared[k]) + (held_up ? 3000000 : (int64_t)(r->random >> 56));
        inside += alone ? m->alone[k] : m->shared[k];
      }
    ax_pace_ends(&r->pace, r->now);
    assert_true(r->pace.begun == 0 && call < r->now);
    r->now += 50000; /* not in a call */
  }
  return (double)inside / (double)rounds;
}

static void keeps_to_what_is_faster(void **state) {
  (void)state;
  static const machine pays = {{5000, 3000, 20000}, {9000, 5500, 39000}}, costs = {{15000, 9000, 40000}, {6000, 4000, 20000}},
                       little = {{5000, 3000, 20000}, {5100, 3100, 20900}};
  static const int rounds[] = {1, 7, 1000};
  for (size_t i = 0; i < AX_COUNT(rounds); i++) {
    runs r;
    begin(&r);
    assert_true(work(&r, &pays, rounds[i], 1000) < 28000 * 1.03); /* tried, and left */
    assert_false(r.pace.alone && !r.pace.tries);
    work(&r, &costs, rounds[i], 400); /* the processors lie elsewhere now: found out within that time */
    assert_true(work(&r, &costs, rounds[i], 1000) < 30000 * 1.05);
    work(&r, &pays, rounds[i], 400);
    assert_true(work(&r, &pays, rounds[i], 1000) < 28000 * 1.05);
    begin(&r);
    work(&r, &little, rounds[i], 1000);
    assert_false(r.pace.alone && !r.pace.tries); /* helpers stay where there is little in it */
  }
}

/* Steps that only one way did, as those of a branch, are not compared. */
static void compares_what_both_did(void **state) {
  (void)state;
  runs r;
  begin(&r);
  for (int i = 0; i < 100000; i++) {
    const bool trial = r.pace.tries;
    for (uint32_t k = 0; k < instrs; k++) {
      if (k == 2 && trial) continue; /* slow, and never in a trial */
      ax_pace_step_begins(&r.pace, k, r.now);
      r.now += k == 2 ? 100000 : 4000;
    }
    ax_pace_ends(&r.pace, r.now);
    assert_false(r.pace.alone && !r.pace.tries);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(keeps_to_what_is_faster), cmocka_unit_test(compares_what_both_did)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
