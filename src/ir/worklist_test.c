/* Equations to look at again: each once, in order. */
#include "ir/worklist.h"

#include "support/cmocka.h"

static void take_all(bool backward, const uint32_t *wanted, uint32_t count) {
  ax_arena arena = {0};
  ax_worklist list;
  assert_true(ax_worklist_init(&list, &arena, 10, backward));
  const uint32_t added[] = {5, 2, 9, 2, 0, 7, 5};
  for (uint32_t i = 0; i < AX_COUNT(added); i++) ax_worklist_add(&list, added[i]);
  for (uint32_t i = 0; i < count; i++) assert_int_equal(ax_worklist_take(&list), wanted[i]);
  assert_int_equal(ax_worklist_take(&list), AX_NONE);
  ax_arena_deinit(&arena);
}

static void equations_come_once_and_in_order(void **state) {
  (void)state;
  take_all(false, (uint32_t[]){0, 2, 5, 7, 9}, 5);
  take_all(true, (uint32_t[]){9, 7, 5, 2, 0}, 5);
}

static void one_that_was_taken_may_come_again(void **state) {
  (void)state;
  ax_arena arena = {0};
  ax_worklist list;
  assert_true(ax_worklist_init(&list, &arena, 4, false));
  ax_worklist_add(&list, 3);
  assert_int_equal(ax_worklist_take(&list), 3);
  ax_worklist_add(&list, 3);
  ax_worklist_add(&list, 1);
  assert_int_equal(ax_worklist_take(&list), 1);
  assert_int_equal(ax_worklist_take(&list), 3);
  ax_arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equations_come_once_and_in_order),
      cmocka_unit_test(one_that_was_taken_may_come_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
