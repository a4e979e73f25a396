/* Groups of members along axes: read, checked, numbered, put in order. */
#include "ir/program.h"
#include "support/arena.h"
#include "support/cmocka.h"
#include "support/tensor.h"

/* The groups of "x {0,1} {2,3}". */
static ax_groups groups_of(const char *names) {
  ax_axes axes;
  TEST_OK(ax_axes_parse(names, &test_arena, &axes));
  return axes.groups;
}

static void a_list_is_filled_group_by_group(void **state) {
  (void)state;
  ax_group_list list = {0};
  ax_groups groups;
  ax_text text = {0};
  TEST_OK(ax_group_list_open(&list));
  TEST_OK(ax_group_list_add(&list, 3));
  TEST_OK(ax_group_list_add(&list, 1));
  TEST_OK(ax_group_list_open(&list));
  TEST_OK(ax_group_list_add(&list, 0));
  TEST_FAILS(ax_group_list_add(&list, -1), AX_INVALID_ARGUMENT, "member -1");
  TEST_OK(ax_group_list_close(&list, &test_arena, &groups));
  ax_groups_text(&text, &groups);
  assert_string_equal(text.data, " {3,1} {0}");
  ax_text_deinit(&text);
}

static void groups_begin_where_others_end(void **state) {
  (void)state;
  const ax_groups groups = groups_of("x {3,1} {0} {2,4,5}");
  assert_int_equal(groups.count, 3);
  assert_int_equal(ax_group_begin(&groups, 0), 0);
  assert_int_equal(ax_group_begin(&groups, 2), 3);
  assert_int_equal(ax_group_size(&groups, 0), 2);
  assert_int_equal(ax_group_size(&groups, 2), 3);
}

static void groups_of_one_size_are_even(void **state) {
  (void)state;
  const ax_groups even = groups_of("x {0,1} {2,3}"), uneven = groups_of("x {0,1} {2,3} {4}");
  assert_true(ax_groups_even(&even));
  assert_false(ax_groups_even(&uneven));
}

static void order_makes_other_groups(void **state) {
  (void)state;
  const ax_groups a = groups_of("x {0,1} {2,3}"), same = groups_of("x {0,1} {2,3}"), turned = groups_of("x {1,0} {2,3}"),
                  longer = groups_of("x {0,1,2} {3}"), all = {0};
  assert_true(ax_groups_equal(&a, &same) && ax_groups_equal(&all, &all));
  assert_false(ax_groups_equal(&a, &turned) || ax_groups_equal(&a, &longer) || ax_groups_equal(&a, &all));
}

static void members_know_their_group_and_number(void **state) {
  (void)state;
  const ax_groups groups = groups_of("x {3,1} {0,2}");
  uint32_t group[4], number[4];
  ax_groups_numbers(&groups, group, number);
  assert_memory_equal(group, ((uint32_t[]){1, 0, 1, 0}), sizeof group);
  assert_memory_equal(number, ((uint32_t[]){0, 1, 1, 0}), sizeof number);
  ax_groups_numbers(&groups, NULL, NULL);
}

static void sorted_groups_come_by_their_least_member(void **state) {
  (void)state;
  ax_groups groups = groups_of("x {5,3} {4,0,2} {1}");
  ax_text text = {0};
  assert_true(ax_groups_sorted(&groups, &test_arena, &groups));
  ax_groups_text(&text, &groups);
  assert_string_equal(text.data, " {0,2,4} {1} {3,5}");
  ax_text_deinit(&text);
}

static void each_member_is_in_one_group(void **state) {
  (void)state;
  const ax_groups good = groups_of("x {3,1} {0,2}"), out = groups_of("x {0,4} {1,2}"), twice = groups_of("x {0,1,0} {2,3}"),
                  overlap = groups_of("x {0,1} {1,2,3}"), missing = groups_of("x {0,1} {3}");
  TEST_OK(ax_groups_check(&good, 4));
  TEST_FAILS(ax_groups_check(&out, 4), AX_INVALID_ARGUMENT, "group 0 names member 4, but the members along the axes are 0 to 3");
  TEST_FAILS(ax_groups_check(&twice, 4), AX_INVALID_ARGUMENT, "group 0 names member 0 twice");
  TEST_FAILS(ax_groups_check(&overlap, 4), AX_INVALID_ARGUMENT, "groups 0 and 1 overlap: both name member 1");
  TEST_FAILS(ax_groups_check(&missing, 4), AX_INVALID_ARGUMENT, "leave out member 2 of the 4");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_list_is_filled_group_by_group, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(groups_begin_where_others_end, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(groups_of_one_size_are_even, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(order_makes_other_groups, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(members_know_their_group_and_number, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(sorted_groups_come_by_their_least_member, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(each_member_is_in_one_group, test_arena_start, test_arena_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
