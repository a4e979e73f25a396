/* The scheduler, step by step: one thread takes activations, parks them and signals counters, as the executor does. */
#include "run/scheduler.h"

#include "run/stage_test.h"
#include "support/tensor.h"

static stage s;

static int alone(void **state) {
  (void)state;
  stage_set_up(&s, false);
  return 0;
}
static int threaded(void **state) {
  (void)state;
  stage_set_up(&s, true);
  return 0;
}
static int over(void **state) {
  (void)state;
  stage_tear_down(&s);
  return 0;
}

/* An activation that waits is parked; the signal that reaches its target makes it ready, and it comes before new ones. */
static void a_signal_wakes_who_waits_for_it(void **state) {
  (void)state;
  ax_worker_slot *slot = ax_scheduler_enter(&s.run);
  assert_int_equal(ax_scheduler_take(&s.run, slot), 0);
  assert_false(ax_scheduler_await(&s.run, slot, 0, 2, 3, false));
  assert_int_equal(s.activations[0].state, ACTIVATION_PARKED);
  assert_int_equal(ax_scheduler_take(&s.run, slot), 1);
  ax_scheduler_signal(&s.run, 2, 2); /* one too few */
  assert_int_equal(ax_scheduler_take(&s.run, slot), 2);
  ax_scheduler_signal(&s.run, 2, 1);
  assert_int_equal(ax_scheduler_take(&s.run, slot), 0);
  assert_int_equal(s.activations[0].state, ACTIVATION_ACTIVE);
  assert_true(ax_scheduler_await(&s.run, slot, 0, 2, 3, false)); /* it is reached for good */
  assert_int_equal(ax_scheduler_take(&s.run, slot), AX_NONE);
  ax_scheduler_leave(&s.run, slot);
}

static void one_that_makes_way_comes_again(void **state) {
  (void)state;
  ax_worker_slot *slot = ax_scheduler_enter(&s.run);
  for (uint32_t f = 0; f < devices; f++) assert_int_equal(ax_scheduler_take(&s.run, slot), f);
  ax_scheduler_yield(&s.run, 2);
  ax_scheduler_yield(&s.run, 0);
  assert_int_equal(ax_scheduler_take(&s.run, slot), 2);
  assert_int_equal(ax_scheduler_take(&s.run, slot), 0);
  assert_int_equal(ax_scheduler_take(&s.run, slot), AX_NONE);
}

static void a_run_ends_with_its_last_activation(void **state) {
  (void)state;
  ax_worker_slot *slot = ax_scheduler_enter(&s.run);
  for (uint32_t f = 0; f < devices; f++) {
    assert_false(s.run.over);
    ax_scheduler_end(&s.run, slot, ax_scheduler_take(&s.run, slot));
    assert_int_equal(s.activations[f].state, ACTIVATION_DONE);
  }
  assert_true(s.run.over);
  assert_true(ax_scheduler_exhausted(&s.run));
  assert_int_equal(s.run.status, AX_OK);
}

/* The activation with the least target goes on by itself: whoever takes it out resumes it. */
static void one_parked_activation_is_taken_out(void **state) {
  (void)state;
  ax_worker_slot *slot = ax_scheduler_enter(&s.run);
  for (uint32_t f = 0; f < 2; f++) {
    assert_int_equal(ax_scheduler_take(&s.run, slot), f);
    assert_false(ax_scheduler_await(&s.run, slot, f, 1, 5 + f, false));
  }
  assert_false(ax_scheduler_is_next(&s.run, 1, 6));
  assert_int_equal(ax_scheduler_unpark(&s.run, 1, 6), AX_NONE);
  assert_int_equal(ax_scheduler_take_out(&s.run, 1, 6), AX_NONE); /* another comes before it */
  assert_true(ax_scheduler_is_next(&s.run, 1, 5));
  assert_int_equal(ax_scheduler_unpark(&s.run, 1, 5), 0);
  assert_int_equal(ax_scheduler_take_out(&s.run, 1, 6), 1);
  ax_scheduler_resume(&s.run, 1);
  assert_int_equal(ax_scheduler_take(&s.run, slot), 1);
}

/* Every activation whose target is reached, and no other. */
static void a_release_lets_all_go_on_that_may(void **state) {
  (void)state;
  ax_worker_slot *slot = ax_scheduler_enter(&s.run);
  for (uint32_t f = 0; f < devices; f++) {
    assert_int_equal(ax_scheduler_take(&s.run, slot), f);
    assert_false(ax_scheduler_park(&s.run, slot, f, 3, f < 2 ? 1 : 9, false));
  }
  s.counters[3].count = 1;
  ax_scheduler_release(&s.run, 3);
  const uint32_t first = ax_scheduler_take(&s.run, slot), second = ax_scheduler_take(&s.run, slot);
  assert_int_equal(first + second, 1);
  assert_int_equal(ax_scheduler_take(&s.run, slot), AX_NONE);
}

/* A block of scratch memory: one that parks gives it back, and the next takes the same one. */
static void scratch_memory_goes_from_one_to_the_next(void **state) {
  (void)state;
  ax_worker_slot *slot = ax_scheduler_enter(&s.run);
  (void)ax_scheduler_take(&s.run, slot);
  TEST_OK(ax_scheduler_scratch(&s.run, slot, &s.activations[0]));
  void *block = s.activations[0].scratch;
  assert_non_null(block);
  assert_ptr_equal(s.part[0], block);
  TEST_OK(ax_scheduler_scratch(&s.run, slot, &s.activations[0])); /* it has one */
  assert_ptr_equal(s.activations[0].scratch, block);
  assert_false(ax_scheduler_await(&s.run, slot, 0, 0, 1, true));
  assert_null(s.activations[0].scratch);
  (void)ax_scheduler_take(&s.run, slot);
  TEST_OK(ax_scheduler_give_scratch(&s.run, slot, &s.activations[1]));
  assert_ptr_equal(s.activations[1].scratch, block);
  ax_scheduler_end(&s.run, slot, 1);
}

/* As many slots as threads; each thread has one of its own. */
static void threads_have_slots_of_their_own(void **state) {
  (void)state;
  ax_worker_slot *first = ax_scheduler_enter(&s.run), *second = ax_scheduler_enter(&s.run);
  assert_non_null(first);
  assert_non_null(second);
  assert_ptr_not_equal(first, second);
  assert_null(ax_scheduler_enter(&s.run));
  ax_scheduler_leave(&s.run, first);
  assert_ptr_equal(ax_scheduler_enter(&s.run), first);
}

/* Where its memory is warm. Another thread takes it only if it has no work itself. */
static void who_is_woken_goes_to_the_thread_it_ran_on(void **state) {
  (void)state;
  ax_worker_slot *first = ax_scheduler_enter(&s.run), *second = ax_scheduler_enter(&s.run);
  const uint32_t f = ax_scheduler_take(&s.run, second);
  assert_false(ax_scheduler_await(&s.run, second, f, 0, 1, false));
  ax_scheduler_signal(&s.run, 0, 1);
  assert_int_equal(second->count, 1);
  assert_int_equal(first->count, 0);
  assert_int_equal(ax_scheduler_take(&s.run, second), f);
}

/* A thread is not busy while it waits; then it is again. */
static void a_thread_waits_until_there_is_work(void **state) {
  (void)state;
  ax_worker_slot *first = ax_scheduler_enter(&s.run), *second = ax_scheduler_enter(&s.run);
  uint32_t f[devices];
  for (uint32_t i = 0; i < devices; i++) f[i] = ax_scheduler_take(&s.run, first);
  assert_int_equal(ax_scheduler_take(&s.run, second), AX_NONE);
  assert_false(ax_scheduler_exhausted(&s.run)); /* the first thread still has activations */
  assert_int_equal(s.run.busy, 1);
  ax_scheduler_wake(&s.run, true); /* nobody sleeps yet */
  ax_scheduler_end(&s.run, first, f[0]);
  assert_false(ax_scheduler_await(&s.run, first, f[1], 0, 1, false));
  ax_scheduler_signal(&s.run, 0, 1);
  ax_scheduler_wait(&s.run); /* there is work: returns at once */
  assert_int_equal(s.run.busy, 2);
  assert_int_equal(ax_scheduler_take(&s.run, second), f[1]);
}

static void the_first_failure_stops_a_run(void **state) {
  (void)state;
  ax_scheduler_stop(&s.run, AX_INVALID_ARGUMENT, "one");
  ax_scheduler_stop(&s.run, AX_INTERNAL, "two");
  assert_true(s.run.over);
  assert_int_equal(s.run.status, AX_INVALID_ARGUMENT);
  assert_string_equal(s.run.message, "one");
}

/* As long as something outside will still signal, parked activations are no deadlock. */
static void a_post_from_outside_lets_a_run_go_on(void **state) {
  (void)state;
  ax_worker_slot *slot = ax_scheduler_enter(&s.run);
  for (uint32_t f = 0; f < devices; f++) {
    assert_int_equal(ax_scheduler_take(&s.run, slot), f);
    if (f == 1) assert_false(ax_scheduler_await(&s.run, slot, f, 0, 2, false));
    else ax_scheduler_end(&s.run, slot, f);
  }
  TEST_OK(ax_execution_begin_flight(&s.run));
  assert_false(ax_scheduler_exhausted(&s.run));
  ax_execution_post(&s.run, 0, 2);
  ax_scheduler_wait(&s.run);
  assert_int_equal(ax_scheduler_take(&s.run, slot), 1);
  ax_scheduler_end(&s.run, slot, 1);
  ax_scheduler_land(&s.run); /* nothing is in flight any more */
  assert_true(s.run.over);
}

/* --- What a run says of its devices --- */

static void a_device_and_its_coordinates(void **state) {
  (void)state;
  ax_text text = {0};
  ax_execution_device_text(&text, &s.run, 2);
  assert_string_equal(text.data, "device 2 (d=2)");
  ax_text_deinit(&text);
}

static void what_a_parked_activation_waits_for(void **state) {
  (void)state;
  s.compiled.link_count = 1;
  s.compiled.first_link = 2;
  s.compiled.turns = 1;
  for (uint32_t f = 0; f < devices; f++) s.parking[f].counter = f;
  assert_true(ax_execution_awaits_message(&s.run, 2));
  assert_false(ax_execution_awaits_message(&s.run, 1));
  assert_true(ax_execution_awaits_turn(&s.run, 1));
  assert_false(ax_execution_awaits_turn(&s.run, 0));
}

/* Run after run, a helper has the slot that it had, and leaves the first one to the caller. */
static void helpers_keep_their_slots(void **state) {
  (void)state;
  ax_worker_slot *first = ax_scheduler_enter(&s.run), *second = ax_scheduler_join(&s.run);
  assert_ptr_equal(first, &s.run.worker_slots[0]);
  assert_ptr_equal(second, &s.run.worker_slots[1]);
  ax_scheduler_leave(&s.run, first);
  ax_scheduler_leave(&s.run, second);
  assert_ptr_equal(ax_scheduler_join(&s.run), second); /* before the caller has come */
  assert_ptr_equal(ax_scheduler_join(&s.run), first);  /* where it is taken, another one */
  ax_scheduler_leave(&s.run, first);
  ax_scheduler_leave(&s.run, second);
  assert_ptr_equal(ax_scheduler_join(&s.run), first); /* which it keeps */
  ax_scheduler_leave(&s.run, first);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_signal_wakes_who_waits_for_it, alone, over),
      cmocka_unit_test_setup_teardown(one_that_makes_way_comes_again, alone, over),
      cmocka_unit_test_setup_teardown(a_run_ends_with_its_last_activation, alone, over),
      cmocka_unit_test_setup_teardown(one_parked_activation_is_taken_out, alone, over),
      cmocka_unit_test_setup_teardown(a_release_lets_all_go_on_that_may, alone, over),
      cmocka_unit_test_setup_teardown(scratch_memory_goes_from_one_to_the_next, alone, over),
      cmocka_unit_test_setup_teardown(threads_have_slots_of_their_own, threaded, over),
      cmocka_unit_test_setup_teardown(helpers_keep_their_slots, threaded, over),
      cmocka_unit_test_setup_teardown(who_is_woken_goes_to_the_thread_it_ran_on, threaded, over),
      cmocka_unit_test_setup_teardown(a_thread_waits_until_there_is_work, threaded, over),
      cmocka_unit_test_setup_teardown(the_first_failure_stops_a_run, alone, over),
      cmocka_unit_test_setup_teardown(a_post_from_outside_lets_a_run_go_on, alone, over),
      cmocka_unit_test_setup_teardown(a_device_and_its_coordinates, alone, over),
      cmocka_unit_test_setup_teardown(what_a_parked_activation_waits_for, alone, over),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
