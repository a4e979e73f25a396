/* Small kernels by hand: what is wrong with them, and that each of the three ways to look finds just that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/explore.h"
#include "check/prove.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/script.h"
#include "support/tensor.h"

/* --- What is found --- */

static uint32_t bit(ax_finding_kind kind) { return 1u << kind; }

/* Proved, or what is found; `text`: what the first finding says, in part. NULL: nothing. */
static void expect(const char *script, uint32_t kinds, const char *text) {
  test_script s;
  ax_act_record record;
  ax_proof proof;
  test_script_parse(script, &s);
  TEST_OK(ax_system_record(&s.system, NULL, true, 0, &record));
  TEST_OK(ax_prove(&record, NULL, &proof));
  if (proof.kinds != kinds || (text != NULL && (proof.findings.count == 0 || strstr(proof.findings.items[0].text, text) == NULL))) {
    for (uint32_t k = 0; k < proof.findings.count; k++) print_message("%s\n", proof.findings.items[k].text);
    fail_msg("found %x, not %x: %s", proof.kinds, kinds, script);
  }
  assert_true(proof.confluent && proof.complete && proof.proved == (kinds == 0));
  for (int mode = 0; mode < 2; mode++) {
    ax_exploration x;
    TEST_OK(ax_explore(&s.system, &(ax_explore_options){.mode = (ax_explore_mode)mode}, &x));
    assert_false(x.bounded);
    if (x.kinds != kinds) fail_msg("mode %d found %x, not %x: %s", mode, x.kinds, kinds, script);
    ax_exploration_deinit(&x);
  }
  ax_proof_deinit(&proof);
  ax_act_record_deinit(&record);
  test_script_free(&s);
}

static void test_two_signallers(void **state) {
  (void)state;
  /* One signal is enough, and either may be it: who signals happens before the wait in no run for sure. */
  expect("region x 4\nsem s\ncore A: store x 0 4; signal s\ncore B: signal s\ncore C: wait s; load x 0 4; wait s",
         bit(AX_FINDING_RACE), "data race: x[0:4]");
  expect("region x 4\nsem s\ncore A: store x 0 4; signal s\ncore B: signal s\ncore C: wait s 2; load x 0 4", 0, NULL);
  expect("region x 4\nsem s\ncore A: store x 0 4; signal s\ncore B: signal s\ncore C: wait s; wait s; load x 0 4", 0, NULL);
}

static void test_double_buffer(void **state) {
  (void)state;
  /* A writes slots in turn; B reads them. With two credits nobody is overtaken, with three the first slot is. */
  const char *form =
      "region a 4\nregion b 4\nsem full\nsem free = %d\n"
      "core A: wait free; store a 0 4; signal full; wait free; store b 0 4; signal full; wait free; store a 0 4; signal full%s\n"
      "core B: wait full; load a 0 4; signal free; wait full; load b 0 4; signal free; wait full; load a 0 4; signal free";
  char text[1000];
  snprintf(text, sizeof text, form, 2, "; wait free; wait free");
  expect(text, 0, NULL);
  snprintf(text, sizeof text, form, 3, "; wait free; wait free; wait free");
  expect(text, bit(AX_FINDING_RACE), "a[0:4]");
  snprintf(text, sizeof text, form, 2, "");
  expect(text, bit(AX_FINDING_LEAK), "free of device 0 holds 2 at the end; signalled by B (3 times); waited for by A (3 times)");
}

static void test_barriers(void **state) {
  (void)state;
  expect(
      "barrier b 2\nregion x 4\ncore A: store x 0 2; arrive b; await b; load x 0 4\ncore B: store x 2 4; arrive b; await b; load x "
      "0 4",
      0, NULL);
  expect("barrier b 2\nregion x 4\ncore A: store x 0 2; arrive b; load x 0 4\ncore B: store x 2 4; arrive b; await b; load x 0 4",
         bit(AX_FINDING_RACE), "x[2:4]");
  /* B arrives twice without having waited: A may find phase 2 complete. */
  expect("barrier b 1\ncore A: await b; await b\ncore B: arrive b; arrive b", bit(AX_FINDING_BARRIER),
         "phase 2 of b of device 0 is complete before A has waited for phase 1");
  expect("barrier b 1\nsem s\ncore A: await b; signal s; await b\ncore B: arrive b; wait s; arrive b", 0, NULL);
  expect("barrier b 2\ncore A: await b\ncore B: arrive b; arrive b; arrive b", bit(AX_FINDING_BARRIER),
         "left with 1 of 2 arrivals");
}

static void test_deadlocks(void **state) {
  (void)state;
  expect("sem s\nsem t\ncore A: wait s; signal t\ncore B: wait t; signal s", bit(AX_FINDING_DEADLOCK),
         "deadlock: 2 of 2 agents wait for what never comes\n  A: wait s >= 1\n    semaphore s of device 0 holds 0 of 1; nobody "
         "has signalled it");
  expect("sem s\ncore A: wait s 3\ncore B: signal s 2", bit(AX_FINDING_DEADLOCK), "holds 2 of 3; signalled by B");
  expect("barrier b 2\ncore A: arrive b; await b\ncore B: nothing", bit(AX_FINDING_DEADLOCK),
         "phase 1 of barrier b of device 0 has 1 of 2");
  expect("core A: join C\ncopy C: nothing", bit(AX_FINDING_DEADLOCK), "C has done 0 acts of 1, and is not started");
}

static void test_copies(void **state) {
  (void)state;
  const char *objects = "region x 4\nregion y 4\nsem sent\nsem came\n";
  const char *copy = "copy C: load x 0 4; signal sent; store y 0 4; signal came\n";
  char text[1000];
  snprintf(text, sizeof text, "%s%score A: store x 0 4; start C; wait sent; store x 0 4; wait came; load y 0 4", objects, copy);
  expect(text, 0, NULL);
  snprintf(text, sizeof text, "%s%score A: store x 0 4; start C; store x 0 4; wait sent; wait came; load y 0 4", objects, copy);
  expect(text, bit(AX_FINDING_RACE), "x[0:4]");
  snprintf(text, sizeof text, "%s%score A: store x 0 4; start C; wait sent", objects, copy);
  expect(text, bit(AX_FINDING_COPY_NOT_AWAITED) | bit(AX_FINDING_LEAK), "came of device 0 holds 1");
  snprintf(text, sizeof text, "%s%score A: scope x; store x 0 4; start C; wait came; scope x; wait sent", objects, copy);
  expect(text, 0, NULL);
  snprintf(text, sizeof text, "%scopy C: load x 0 4; signal came\ncore A: scope x; store x 0 4; start C; scope x; wait came",
           objects);
  expect(text, bit(AX_FINDING_AFTER_SCOPE), "use after scope: x[0:4]");
  /* A copy of nothing: nobody can wait for it, and nobody needs to. */
  expect("sem sent\nsem came\ncopy C: signal sent 0; signal came 0\ncore A: start C; wait sent 0; wait came 0", 0, NULL);
}

static void test_waiters(void **state) {
  (void)state;
  test_script s;
  ax_act_record record;
  ax_proof proof;
  /* One after the other for sure: as good as one waiter. */
  expect("sem s\nsem t\ncore A: wait s; signal t\ncore B: wait t; wait s\ncore C: signal s 2", 0, NULL);
  /* Either may have the only signal. */
  test_script_parse(
      "sem s\nregion x 1\ncore A: wait s; store x 0 1; signal s\ncore B: wait s; store x 0 1; signal s\ncore C: signal s", &s);
  TEST_OK(ax_system_record(&s.system, NULL, true, 0, &record));
  TEST_OK(ax_prove(&record, NULL, &proof));
  assert_true(!proof.confluent && !proof.proved);
  assert_non_null(strstr(proof.why_not, "semaphore s of device 0: "));
  for (int mode = 0; mode < 2; mode++) {
    ax_exploration x;
    TEST_OK(ax_explore(&s.system, &(ax_explore_options){.mode = (ax_explore_mode)mode}, &x));
    assert_int_equal(x.kinds, bit(AX_FINDING_LEAK) | bit(AX_FINDING_RESULTS)); /* a lock: no race, two results */
    assert_int_equal(x.outcome_count, 2);
    ax_exploration_deinit(&x);
  }
  ax_proof_deinit(&proof);
  ax_act_record_deinit(&record);
  test_script_free(&s);
}

/* --- A ring of devices, with credits --- */

typedef struct ring {
  uint32_t devices, steps, slots; /* each step sends a slot to the right neighbour by a copy */
  uint32_t credits;               /* slots that a neighbour may fill ahead */
  bool one_came;                  /* one semaphore says that a slot is full, whichever it is */
} ring;

static ax_act synchronise(ax_act_kind kind, uint32_t object, int64_t amount) {
  return (ax_act){.kind = kind, .object = object, .amount = amount};
}

static void add(ax_script *s, uint32_t agent, ax_act act) { assert_int_equal(ax_script_add(s, agent, act, 0), AX_OK); }

static void add_touch(ax_script *s, uint32_t agent, uint32_t region, bool write, uint64_t slot) {
  ax_act act = {.kind = AX_ACT_LOCAL, .touch_first = s->touches.touch_count, .touch_count = 1};
  assert_int_equal(ax_touches_add(&s->touches, region, write, false, 1, &(ax_bytes){4 * slot, 4 * slot + 4}), AX_OK);
  add(s, agent, act);
}

/* Each device begins with slot 0; at step k it reads slot k, and sends it into slot k + 1 of the next device, which has given a
   credit for that. Semaphores of a device: sent, credit, and for each slot that it is full. */
static void make_ring(const ring *r, ax_script *s) {
  *s = (ax_script){0};
  const uint32_t per = 2 + r->slots;
  for (uint32_t d = 0; d < r->devices; d++)
    assert_int_equal(ax_act_objects_add_agent(&s->objects, (ax_act_agent){.name = "core", .device = d, .initial = true}), AX_OK);
  for (uint32_t c = 0; c < r->devices * r->steps; c++)
    assert_int_equal(ax_act_objects_add_agent(&s->objects, (ax_act_agent){.name = "copy", .device = c / r->steps}), AX_OK);
  for (uint32_t d = 0; d < r->devices; d++) {
    for (uint32_t k = 0; k < per; k++)
      assert_int_equal(ax_act_objects_add_semaphore(&s->objects, (ax_act_semaphore){k == 0   ? "sent"
                                                                                    : k == 1 ? "credit"
                                                                                             : "came",
                                                                                    d, 0}),
                       AX_OK);
    assert_int_equal(ax_act_objects_add_region(&s->objects, (ax_act_region){.name = "slots", .device = d, .bytes = 4 * r->slots}),
                     AX_OK);
  }
  for (uint32_t d = 0; d < r->devices; d++) {
    uint32_t right = (d + 1) % r->devices, left = (d + r->devices - 1) % r->devices;
    add_touch(s, d, d, true, 0);
    add(s, d, synchronise(AX_ACT_SIGNAL, per * left + 1, r->credits));
    for (uint32_t k = 0; k < r->steps; k++) {
      uint32_t copy = r->devices + d * r->steps + k, came = 2 + (r->one_came ? 0 : (k + 1) % r->slots);
      add(s, d, synchronise(AX_ACT_WAIT, per * d + 1, 1));
      add(s, d, synchronise(AX_ACT_START, copy, 0));
      add_touch(s, copy, d, false, k % r->slots);
      add(s, copy, synchronise(AX_ACT_SIGNAL, per * d, 1));
      add_touch(s, copy, right, true, (k + 1) % r->slots);
      add(s, copy, synchronise(AX_ACT_SIGNAL, per * right + came, 1));
      add_touch(s, d, d, false, k % r->slots);
      add(s, d, synchronise(AX_ACT_WAIT, per * d, 1));
      add(s, d, synchronise(AX_ACT_SIGNAL, per * left + 1, 1));
      add(s, d, synchronise(AX_ACT_WAIT, per * d + came, 1));
    }
    add_touch(s, d, d, false, r->steps % r->slots);
    add(s, d, synchronise(AX_ACT_WAIT, per * d + 1, r->credits));
  }
}

static void record_ring(const ring *r, ax_script *s, ax_system *system, ax_act_record *record) {
  make_ring(r, s);
  TEST_OK(ax_script_system(s, system));
  TEST_OK(ax_system_record(system, NULL, true, 0, record));
}

static void test_ring(void **state) {
  (void)state;
  for (uint32_t devices = 2; devices <= 6; devices++)
    for (uint32_t slots = 2; slots <= 4; slots++)
      for (uint32_t credits = slots - 1; credits <= slots; credits++) {
        ring r = {devices, 5, slots, credits, false};
        ax_script s;
        ax_system system;
        ax_act_record record;
        ax_proof proof, turned;
        uint32_t turn[64];
        record_ring(&r, &s, &system, &record);
        TEST_OK(ax_prove(&record, NULL, &proof));
        /* As many credits as slots: the slot that is being read is written, if devices can be as far apart. */
        assert_int_equal(proof.kinds, credits < slots || slots > devices ? 0 : bit(AX_FINDING_RACE));
        assert_true(proof.confluent && proof.complete);
        for (uint32_t d = 0; d < devices; d++) turn[d] = (d + 1) % devices;
        TEST_OK(ax_prove(&record, &(ax_proof_options){.symmetry = turn}, &turned));
        assert_true(turned.symmetric && turned.kinds == proof.kinds && turned.races.count == proof.races.count);
        assert_true(turned.holds * devices == proof.holds);
        if (devices == 2) {
          ax_exploration x, y;
          TEST_OK(ax_explore(&system, &(ax_explore_options){.mode = AX_EXPLORE_ALL}, &x));
          TEST_OK(ax_explore(&system, &(ax_explore_options){.mode = AX_EXPLORE_REDUCED}, &y));
          assert_true(!x.bounded && x.kinds == proof.kinds && !y.bounded && y.kinds == proof.kinds);
          assert_true(x.outcome_count == y.outcome_count && x.races.count == y.races.count);
          print_message("ring of 2, %u slots, %u credits: %llu states, reduced %llu\n", slots, credits,
                        (unsigned long long)x.states, (unsigned long long)y.states);
          ax_exploration_deinit(&x);
          ax_exploration_deinit(&y);
        }
        ax_proof_deinit(&proof);
        ax_proof_deinit(&turned);
        ax_act_record_deinit(&record);
        ax_script_deinit(&s);
      }
}

/* The next slot may be there before this one is, and nobody can tell which has come. */
static void test_ring_with_one_semaphore(void **state) {
  (void)state;
  for (uint32_t slots = 2; slots <= 4; slots++) {
    ring r = {3, 4, slots, slots - 1, true};
    ax_script s;
    ax_system system;
    ax_act_record record;
    ax_proof proof;
    record_ring(&r, &s, &system, &record);
    TEST_OK(ax_prove(&record, NULL, &proof));
    assert_int_equal(proof.kinds, bit(AX_FINDING_RACE));
    ax_proof_deinit(&proof);
    ax_act_record_deinit(&record);
    ax_script_deinit(&s);
  }
}

static void test_no_symmetry(void **state) {
  (void)state;
  test_script s;
  ax_act_record record;
  ax_proof proof;
  test_script_parse("sem s\ncore A: signal s\ncore B: wait s", &s);
  TEST_OK(ax_system_record(&s.system, NULL, true, 0, &record));
  TEST_OK(ax_prove(&record, &(ax_proof_options){.symmetry = (uint32_t[]){1, 0}}, &proof));
  assert_true(!proof.symmetric && proof.proved);
  ax_proof_deinit(&proof);
  ax_act_record_deinit(&record);
  test_script_free(&s);
}

/* --- What it costs --- */

static void test_cost_grows_slowly(void **state) {
  (void)state;
  double last = 0;
  uint64_t last_steps = 0;
  for (uint32_t steps = 13; steps <= 1300; steps *= 10) {
    ring r = {8, steps, 4, 3, false};
    ax_script s;
    ax_system system;
    ax_act_record record;
    ax_proof proof;
    record_ring(&r, &s, &system, &record);
    TEST_OK(ax_prove(&record, NULL, &proof));
    assert_true(proof.proved);
    print_message("ring of 8, %u acts: %.4f s, %llu pairs, %llu holds, %llu acts played\n", record.step_count, proof.seconds,
                  (unsigned long long)proof.pairs, (unsigned long long)proof.holds, (unsigned long long)proof.steps);
    if (last_steps > 0) assert_true(proof.steps < 12 * last_steps); /* ten times the acts */
    last = proof.seconds;
    last_steps = proof.steps;
    ax_proof_deinit(&proof);
    ax_act_record_deinit(&record);
    ax_script_deinit(&s);
  }
  assert_true(last < 10);
}

/* --- Memory --- */

static ax_status prove_ring(void *context) {
  ax_act_record *record = context;
  ax_proof proof;
  ax_status status = ax_prove(record, NULL, &proof);
  ax_proof_deinit(&proof);
  return status;
}

static void test_out_of_memory(void **state) {
  (void)state;
  ring r = {3, 3, 2, 2, false};
  ax_script s;
  ax_system system;
  ax_act_record record;
  record_ring(&r, &s, &system, &record);
  assert_true(test_each_allocation(prove_ring, &record) > 20);
  ax_act_record_deinit(&record);
  ax_script_deinit(&s);
}

static void test_no_run(void **state) {
  (void)state;
  test_script s;
  ax_act_record record;
  ax_proof proof;
  test_script_parse("sem s\ncore A: signal s\ncore B: wait s", &s);
  TEST_OK(ax_system_record(&s.system, NULL, true, 0, &record));
  ax_act_step first = record.steps[0];
  record.steps[0] = record.steps[1];
  record.steps[1] = first;
  assert_int_equal(ax_prove(&record, NULL, &proof), AX_INVALID_ARGUMENT);
  assert_string_equal(ax_message(), "step 0: B cannot wait 0");
  record.steps[0].act.object = 7;
  assert_int_equal(ax_prove(&record, NULL, &proof), AX_INVALID_ARGUMENT);
  ax_act_record_deinit(&record);
  test_script_free(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_two_signallers),
      cmocka_unit_test(test_double_buffer),
      cmocka_unit_test(test_barriers),
      cmocka_unit_test(test_deadlocks),
      cmocka_unit_test(test_copies),
      cmocka_unit_test(test_waiters),
      cmocka_unit_test(test_ring),
      cmocka_unit_test(test_ring_with_one_semaphore),
      cmocka_unit_test(test_no_symmetry),
      cmocka_unit_test(test_no_run),
      cmocka_unit_test(test_cost_grows_slowly),
      cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
