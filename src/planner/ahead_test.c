/* Jobs ahead of the search: each trial is made once, and what is found does not depend on how many threads there are. */
#include "planner/ahead.h"

#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "machine/machine.h"
#include "support/cmocka.h"
#include "support/layered.h"
#include "support/tensor.h"

static const char machine_text[] =
    "machine \"test\" device flops f32 1e12 memory 1e11 launch 1e-6 capacity 1e9\n"
    "node devices 4 latency 1e-6 bandwidth 1e10 overhead 5e-7\nnetwork latency 3e-6 bandwidth 2e9 overhead 1e-6\n";

typedef struct fixture {
  ax_cluster *machine;
  ax_program *loss;
  ax_planner p;
} fixture;

/* From now on a machine of so many processors. */
static void pretend(uint32_t processors) {
  ax_description own;
  TEST_OK(ax_machine_parse("", &own));
  for (int f = 0; f < AX_FACT_COUNT; f++) own.facts[f].source = AX_SOURCE_ASKED;
  own.facts[AX_FACT_USABLE].value = processors;
  own.facts[AX_FACT_QUOTA].value = 0;
  ax_machine_pretend(&own);
}

static void set_up(fixture *f) {
  const ax_planner_options options = test_options(16, 8);
  TEST_OK(ax_cluster_parse(machine_text, "test", &f->machine));
  TEST_OK(test_trace_loss(AX_F32, 2, 64, 256, &f->loss));
  TEST_OK(ax_planner_begin(f->loss, f->machine, &options, &f->p));
}

static void tear_down(fixture *f) {
  ax_planner_end(&f->p);
  ax_program_release(f->loss);
  ax_cluster_release(f->machine);
}

/* As a job has it. */
static ax_planner view_of(const ax_planner *p) {
  ax_planner view = *p;
  view.is_view = true;
  return view;
}

static void test_known(void **state) {
  (void)state;
  fixture f;
  ax_trial trial = {.bytes = 7, .seconds = 3};
  set_up(&f);
  ax_planner *p = &f.p, view = view_of(p);
  const double before = p->tried;
  assert_false(ax_ahead_ask(p, 11, &trial));
  ax_ahead_answer(p, 11, NULL); /* it failed */
  assert_false(ax_ahead_ask(p, 11, &trial));
  ax_ahead_answer(p, 11, &(ax_trial){.bytes = 5, .seconds = 2});
  assert_true(ax_ahead_ask(p, 11, &trial) && trial.bytes == 5 && trial.seconds == 2);
  assert_true(ax_ahead_ask(&view, 11, &trial));
  for (uint64_t hash = 100; hash < 1100; hash++) { /* the table grows */
    assert_false(ax_ahead_ask(p, hash, &trial));
    ax_ahead_answer(p, hash, &(ax_trial){.bytes = 1, .seconds = (double)hash});
  }
  for (uint64_t hash = 100; hash < 1100; hash++) assert_true(ax_ahead_ask(p, hash, &trial) && trial.seconds == (double)hash);
  assert_true(p->tried == before + 2 + 1000);
  /* What a job tried counts when the search asks for it. */
  assert_false(ax_ahead_ask(&view, 12, &trial));
  ax_ahead_answer(&view, 12, &(ax_trial){.bytes = 1, .seconds = 1});
  assert_true(p->tried == before + 1002 && ax_ahead_ask(p, 12, &trial) && p->tried == before + 1003);
  assert_true(ax_ahead_ask(p, 12, &trial) && p->tried == before + 1003);
  tear_down(&f);
}

/* A way is looked for without a limit of memory. What a job tried so is tried again where there is one, if it does not fit. */
static void test_other_memory(void **state) {
  (void)state;
  fixture f;
  ax_trial trial;
  set_up(&f);
  ax_planner view = view_of(&f.p);
  view.capacity = INFINITY;
  assert_false(ax_ahead_ask(&view, 1, &trial) || ax_ahead_ask(&view, 2, &trial));
  ax_ahead_answer(&view, 1, &(ax_trial){.bytes = 0.5 * f.p.capacity, .seconds = 1});
  ax_ahead_answer(&view, 2, &(ax_trial){.bytes = 2 * f.p.capacity, .seconds = 1});
  assert_true(ax_ahead_ask(&f.p, 1, &trial));
  assert_false(ax_ahead_ask(&f.p, 2, &trial));
  ax_ahead_answer(&f.p, 2, &(ax_trial){.bytes = 2 * f.p.capacity, .seconds = INFINITY});
  assert_true(ax_ahead_ask(&view, 2, &trial) && isinf(trial.seconds));
  tear_down(&f);
}

/* A job that the search has come to ends early, and so does one whose part of the search is over. */
static void test_wanted(void **state) {
  (void)state;
  fixture f;
  ax_trial trial;
  set_up(&f);
  ax_planner view = view_of(&f.p), other = view_of(&f.p);
  assert_false(ax_ahead_ask(&f.p, 1, &trial));
  assert_true(ax_ahead_is_wanted(&view) && !ax_planner_is_late(&view, 1));
  assert_true(ax_ahead_ask(&view, 1, &trial) && isinf(trial.seconds));
  assert_false(ax_ahead_is_wanted(&view));
  assert_true(ax_planner_is_late(&view, 1));
  ax_ahead_note_best(&f.p, 3);
  ax_ahead_note_best(&f.p, 5);
  ax_ahead_note_best(&other, 1); /* what a job finds is not known */
  assert_true(ax_ahead_is_wanted(&other) && ax_ahead_best(&other) == 3);
  ax_ahead_forget(&other); /* a view forgets nothing */
  assert_true(ax_ahead_is_wanted(&other));
  ax_ahead_forget(&f.p);
  assert_false(ax_ahead_is_wanted(&other));
  assert_true(isinf(ax_ahead_best(&other)));
  assert_false(ax_planner_is_late(&f.p, 1));
  tear_down(&f);
}

static void test_steps(void **state) {
  (void)state;
  fixture f;
  ax_program *a, *b, *c;
  set_up(&f);
  TEST_OK(ax_ahead_step(&f.p, 2, AX_SAVE_DOTS, &a));
  TEST_OK(ax_ahead_step(&f.p, 2, AX_SAVE_DOTS, &b));
  TEST_OK(ax_ahead_step(&f.p, 4, AX_SAVE_DOTS, &c));
  assert_true(a == b && a != c);
  tear_down(&f);
}

enum { JOBS = 400 };
static atomic_int made[JOBS], jobs_done;

static void make_once(ax_planner *p, int number) {
  ax_trial trial;
  if (!ax_ahead_ask(p, (uint64_t)number + 1, &trial)) {
    atomic_fetch_add(&made[number], 1);
    ax_ahead_answer(p, (uint64_t)number + 1, &(ax_trial){.bytes = 1, .seconds = number});
  } else if (p->is_view && isinf(trial.seconds)) {
    return; /* the search is at it */
  } else {
    assert_true(trial.seconds == number);
  }
}

static ax_status work(ax_planner *view, ax_candidate *candidate, int number) {
  assert_true(view->is_view && view->found_count == 0 && candidate->microbatches == number + 1);
  make_once(view, number);
  atomic_fetch_add(&jobs_done, 1);
  return AX_OK;
}

/* Each trial is made once, by a job or by the search; without other processors there are no jobs. */
static void check_jobs(uint32_t processors) {
  fixture f;
  set_up(&f);
  pretend(processors);
  memset(made, 0, sizeof made);
  atomic_store(&jobs_done, 0);
  ax_candidate c = {0};
  TEST_OK(ax_arrangement_whole(&f.p.families, &c.layout));
  for (int i = 0; i < JOBS; i++) {
    c.microbatches = i + 1;
    ax_ahead_offer(&f.p, work, &c, i);
  }
  for (int i = 0; i < JOBS; i++) make_once(&f.p, i);
  for (int i = 0; i < JOBS; i++) assert_int_equal(atomic_load(&made[i]), 1);
  if (processors == 1) assert_int_equal(atomic_load(&jobs_done), 0);
  if (processors == 1) assert_false(ax_ahead_is_idle(&f.p));
  const double end = ax_seconds() + 30; /* until then all jobs are done, and a thread has nothing to do */
  while (processors > 1 && (atomic_load(&jobs_done) < JOBS || !ax_ahead_is_idle(&f.p)) && ax_seconds() < end) (void)sched_yield();
  if (processors > 1) assert_true(atomic_load(&jobs_done) == JOBS && ax_ahead_is_idle(&f.p));
  ax_candidate_deinit(&c);
  tear_down(&f);
  ax_machine_pretend(NULL);
}

static void test_jobs(void **state) {
  (void)state;
  check_jobs(1);
  check_jobs(2);
  check_jobs(6);
}

/* Sanitizers make it ten times as slow. */
static void search(uint32_t processors, ax_strategies *out) {
#ifdef __SANITIZE_THREAD__
  const int64_t devices = 4;
#else
  const int64_t devices = AX_HOSTILE ? 4 : 8;
#endif
  fixture f;
  set_up(&f);
  const ax_planner_options options = test_options(16, devices);
  pretend(processors);
  TEST_OK(ax_planner_search(f.loss, f.machine, &options, out));
  ax_machine_pretend(NULL);
  tear_down(&f);
}

static void check_same(const ax_strategies *alone, const ax_strategies *many) {
  assert_true(alone->complete && many->complete);
  assert_true(alone->tried == many->tried && alone->count == many->count && alone->count > 1);
  for (uint32_t i = 0; i < alone->count; i++) {
    assert_true(alone->list[i].seconds == many->list[i].seconds);
    assert_string_equal(alone->list[i].specs, many->list[i].specs);
  }
}

static _Thread_local bool searches;
static atomic_uint asked_by_others;

static void *allocate(void *user, size_t bytes, size_t align) {
  void *memory = NULL;
  (void)user;
  if (!searches && atomic_fetch_add(&asked_by_others, 1) % 400 == 399) return NULL;
  return posix_memalign(&memory, align, bytes) == 0 ? memory : NULL;
}

static void release(void *user, void *memory) {
  (void)user;
  free(memory);
}

/* Nor on whether other threads get the memory that they ask for. */
static void test_same(void **state) {
  static const ax_allocator allocator = {allocate, release, NULL};
  ax_strategies alone, many, disturbed;
  (void)state;
  search(1, &alone);
  search(5, &many);
  check_same(&alone, &many);
  searches = true;
  ax_set_allocator(&allocator);
  search(5, &disturbed);
  assert_true(atomic_load(&asked_by_others) >= 400);
  check_same(&alone, &disturbed);
  ax_strategies_release(&disturbed);
  ax_set_allocator(NULL);
  ax_strategies_release(&alone), ax_strategies_release(&many);
}

static void test_create(void **state) {
  (void)state;
  ax_ahead *ahead;
  TEST_OK(ax_ahead_create(&ahead));
  ax_ahead_destroy(ahead);
  ax_ahead_destroy(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_create), cmocka_unit_test(test_known), cmocka_unit_test(test_other_memory),
      cmocka_unit_test(test_wanted), cmocka_unit_test(test_steps), cmocka_unit_test(test_jobs),
      cmocka_unit_test(test_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
