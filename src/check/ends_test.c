/* States from which no end can be reached, and schedules, by hand. */
#include "check/ends.h"

#include "support/cmocka.h"
#include "support/tensor.h"

/* --- Schedules --- */

static void is_printed(const uint32_t *agents, uint32_t count, const char *wanted) {
  ax_interleaving schedule = {0}, back = {0};
  char *text;
  for (uint32_t i = 0; i < count; i++) TEST_OK(ax_interleaving_add(&schedule, agents[i]));
  TEST_OK(ax_interleaving_print(&schedule, &text));
  assert_string_equal(text, wanted);
  TEST_OK(ax_interleaving_parse(text, &back));
  assert_int_equal(back.count, count);
  if (count > 0) assert_memory_equal(back.agents, agents, count * sizeof agents[0]);
  ax_free(text);
  ax_interleaving_deinit(&schedule);
  ax_interleaving_deinit(&back);
}

static void steps_of_one_agent_are_counted(void **state) {
  (void)state;
  is_printed((uint32_t[]){7, 7, 7, 0, 12, 12}, 6, "7x3 0 12x2");
  is_printed((uint32_t[]){1, 2, 1}, 3, "1 2 1");
  is_printed(NULL, 0, "");
}

static void refused(const char *text, const char *why) {
  ax_interleaving schedule = {0};
  TEST_FAILS(ax_interleaving_parse(text, &schedule), AX_PARSE_ERROR, why);
  ax_interleaving_deinit(&schedule);
}

static void what_is_no_schedule_is_refused(void **state) {
  (void)state;
  refused("1 a", "expected an agent's number");
  refused("1x", "expected how many steps, at least 1");
  refused("1x0", "expected how many steps, at least 1");
  refused("1,2", "expected a space");
  refused("1x16777217", "more steps than a schedule may have");
}

/* --- Ends --- */

/* Steps are triples of from, agent, to. */
static void leads(uint64_t (*steps)[3], uint32_t count, const char *schedule_to_trap) {
  ax_ends ends = {0};
  ax_interleaving schedule = {0};
  char *text;
  bool found;
  for (uint32_t i = 0; i < count; i++) TEST_OK(ax_ends_add_step(&ends, steps[i][0], steps[i][2], (uint32_t)steps[i][1]));
  TEST_OK(ax_ends_add(&ends, 99));
  TEST_OK(ax_ends_missing(&ends, 10, &found, &schedule));
  assert_int_equal(found, schedule_to_trap != NULL);
  TEST_OK(ax_interleaving_print(&schedule, &text));
  assert_string_equal(text, schedule_to_trap != NULL ? schedule_to_trap : "");
  ax_free(text);
  ax_interleaving_deinit(&schedule);
  ax_ends_deinit(&ends);
}

static void all_states_reach_the_end(void **state) {
  (void)state;
  leads((uint64_t[][3]){{10, 1, 20}, {20, 2, 99}, {10, 2, 99}}, 3, NULL);
}

static void a_ring_that_can_be_left_is_no_trap(void **state) {
  (void)state;
  leads((uint64_t[][3]){{10, 1, 20}, {20, 1, 10}, {20, 2, 99}}, 3, NULL);
}

/* 10 goes to the end, or by 3 to 30 and by 4 to 40, where 5 goes round for ever. */
static void a_ring_without_a_way_out_is_found_with_its_way(void **state) {
  (void)state;
  leads((uint64_t[][3]){{10, 1, 99}, {10, 3, 30}, {30, 4, 40}, {40, 5, 30}}, 4, "3 4");
}

static void what_was_cleared_counts_no_more(void **state) {
  (void)state;
  ax_ends ends = {0};
  ax_interleaving schedule = {0};
  bool found;
  TEST_OK(ax_ends_add_step(&ends, 10, 20, 1));
  ax_ends_clear(&ends);
  TEST_OK(ax_ends_add(&ends, 10));
  TEST_OK(ax_ends_missing(&ends, 10, &found, &schedule));
  assert_false(found);
  ax_ends_deinit(&ends);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_of_one_agent_are_counted),
      cmocka_unit_test(what_is_no_schedule_is_refused),
      cmocka_unit_test(all_states_reach_the_end),
      cmocka_unit_test(a_ring_that_can_be_left_is_no_trap),
      cmocka_unit_test(a_ring_without_a_way_out_is_found_with_its_way),
      cmocka_unit_test(what_was_cleared_counts_no_more),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
