/* Going to another processor: the thread is elsewhere afterwards, and may run where it could before. */
#include "machine/processor.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "support/cmocka.h"

static cpu_set_t allowed(void) {
  cpu_set_t all;
  memset(&all, 0, sizeof all);
  assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
  return all;
}

/* It may be moved back at any time: some of many times it is not. */
static bool goes_away(void) {
  bool went = false;
  for (int i = 0; i < 50; i++) {
    const int here = ax_processor();
    ax_processor_leave(here);
    went = went || ax_processor() != here;
  }
  return went;
}

/* Some sandboxes take note of where a thread may run, and leave it where it is. */
static bool system_moves(const cpu_set_t *all) {
  cpu_set_t others = *all;
  const int here = ax_processor();
  CPU_CLR(here, &others);
  const bool moves = CPU_COUNT(&others) == 0 || (sched_setaffinity(0, sizeof others, &others) == 0 && ax_processor() != here);
  return sched_setaffinity(0, sizeof *all, all) == 0 && moves;
}

static void elsewhere(void **state) {
  (void)state;
  const cpu_set_t before = allowed();
  if (!system_moves(&before)) skip();
  const bool several = CPU_COUNT(&before) > 1;
  assert_true(ax_processor() >= 0);
  assert_int_equal(goes_away(), several);
  const cpu_set_t after = allowed();
  assert_true(CPU_EQUAL(&before, &after));
}

/* A thread that may run on one only stays there, and so does one that is not where others are. */
static void stays(void **state) {
  (void)state;
  const cpu_set_t before = allowed();
  cpu_set_t one;
  const int here = ax_processor();
  CPU_ZERO(&one);
  CPU_SET(here, &one);
  assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
  for (int i = 0; i < 10; i++) {
    ax_processor_leave(here);
    ax_processor_leave(here + 1);
    ax_processor_leave(AX_NO_PROCESSOR);
    ax_processor_leave(1 << 20);
    assert_int_equal(ax_processor(), here);
  }
  const cpu_set_t after = allowed();
  assert_true(CPU_EQUAL(&one, &after));
  assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

/* --- Real-time priority --- */

static void *come(void *there) {
  atomic_store((atomic_bool *)there, true);
  return NULL;
}

/* Two threads of one real-time priority on one processor: the one that waits lets the other run. The system may not let us try. */
static void one_that_waits_lets_others_run(void **state) {
  (void)state;
  enum { most_turns = 4000000 };
  const cpu_set_t before = allowed();
  const struct sched_param usual = {0}, real_time = {.sched_priority = 1};
  atomic_bool there = false;
  pthread_t other;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(ax_processor(), &one);
  assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0); /* the other thread is created with the same */
  const bool may = sched_setscheduler(0, SCHED_FIFO, &real_time) == 0;
  uint32_t turns = 0;
  if (may) {
    assert_int_equal(pthread_create(&other, NULL, come, &there), 0);
    while (!atomic_load(&there) && turns < most_turns) ax_wait_turn(turns++);
    assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &usual), 0);
    pthread_join(other, NULL);
  }
  assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
  if (!may) skip();
  assert_true(turns < most_turns);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(elsewhere), cmocka_unit_test(stays), cmocka_unit_test(one_that_waits_lets_others_run)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
