/* The caller wins over the environment; what is neither word is refused, and nothing said stays open. */
#include "base/choice.h"

#include <stdlib.h>

#include "support/cmocka.h"
#include "support/tensor.h"

static const ax_choice tea = {"tea", "AXLE_TEST_TEA", {"green", "black"}};

static int decided(int asked) {
  int value = -1;
  TEST_OK(ax_choice_decide(&tea, asked, &value));
  return value;
}

static void the_caller_then_the_environment(void **state) {
  (void)state;
  unsetenv(tea.variable);
  assert_int_equal(decided(0), 0);
  assert_int_equal(decided(2), 2);
  setenv(tea.variable, "green", 1);
  assert_int_equal(decided(0), 1);
  assert_int_equal(decided(2), 2);
  setenv(tea.variable, "", 1); /* as if it were not set */
  assert_int_equal(decided(0), 0);
  unsetenv(tea.variable);
}

static void what_is_neither_is_refused(void **state) {
  int value = 2;
  (void)state;
  TEST_FAILS(ax_choice_decide(&tea, 3, &value), AX_INVALID_ARGUMENT, "tea is 3; it is green or black");
  TEST_FAILS(ax_choice_decide(&tea, -1, &value), AX_INVALID_ARGUMENT, "tea is -1; it is green or black");
  setenv(tea.variable, "Green", 1);
  TEST_FAILS(ax_choice_decide(&tea, 0, &value), AX_INVALID_ARGUMENT, "AXLE_TEST_TEA is \"Green\"; it is green or black");
  unsetenv(tea.variable);
  value = 2;
  assert_false(ax_choice_find(&tea, "gree", &value) || ax_choice_find(&tea, "", &value));
  assert_int_equal(value, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_caller_then_the_environment), cmocka_unit_test(what_is_neither_is_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
