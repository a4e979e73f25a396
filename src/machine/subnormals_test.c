/* What is asked for wins over the environment, and that over the default, which flushes. */
#include "machine/subnormals.h"

#include <stdlib.h>

#include "support/cmocka.h"
#include "support/tensor.h"

static bool flushes(ax_subnormals asked) {
  bool flush;
  TEST_OK(ax_subnormals_flush(asked, &flush));
  return flush;
}

static void the_caller_then_the_environment_then_the_default(void **state) {
  (void)state;
  unsetenv("AXLE_SUBNORMALS");
  assert_true(flushes(AX_SUBNORMALS_DEFAULT));
  setenv("AXLE_SUBNORMALS", "keep", 1);
  assert_false(flushes(AX_SUBNORMALS_DEFAULT));
  assert_true(flushes(AX_SUBNORMALS_FLUSH));
  setenv("AXLE_SUBNORMALS", "flush", 1);
  assert_true(flushes(AX_SUBNORMALS_DEFAULT));
  assert_false(flushes(AX_SUBNORMALS_KEEP));
  setenv("AXLE_SUBNORMALS", "", 1); /* as if it were not set */
  assert_true(flushes(AX_SUBNORMALS_DEFAULT));
  unsetenv("AXLE_SUBNORMALS");
}

static void what_is_neither_is_refused(void **state) {
  bool flush;
  (void)state;
  TEST_FAILS(ax_subnormals_flush((ax_subnormals)3, &flush), AX_INVALID_ARGUMENT, "subnormals is 3; it is keep or flush");
  setenv("AXLE_SUBNORMALS", "Keep", 1);
  TEST_FAILS(ax_subnormals_flush(AX_SUBNORMALS_DEFAULT, &flush), AX_INVALID_ARGUMENT, "AXLE_SUBNORMALS is \"Keep\"; it is keep or flush");
  assert_false(flushes(AX_SUBNORMALS_KEEP)); /* who says what he wants is not asked for the environment */
  unsetenv("AXLE_SUBNORMALS");
}

static void words(void **state) {
  ax_subnormals found = AX_SUBNORMALS_DEFAULT;
  (void)state;
  assert_true(ax_subnormals_find("keep", &found) && found == AX_SUBNORMALS_KEEP);
  assert_true(ax_subnormals_find("flush", &found) && found == AX_SUBNORMALS_FLUSH);
  assert_false(ax_subnormals_find("", &found) || ax_subnormals_find("flushed", &found));
  assert_int_equal(found, AX_SUBNORMALS_FLUSH);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_caller_then_the_environment_then_the_default),
      cmocka_unit_test(what_is_neither_is_refused),
      cmocka_unit_test(words),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
