/* The tables of scalar operations: what they say agrees. */
#include "ir/scalar.h"

#include "support/cmocka.h"

/* Each function has a bound of its error in ir/accuracy.def, and no other operation has one. */
static void functions(void **state) {
  (void)state;
  for (ax_scalar op = AX_SCALAR_NONE; op < AX_SCALAR_COUNT; op++)
    assert_int_equal(ax_scalar_is_function(op), ax_scalar_error(op, AX_F32, false) > 0);
  assert_false(ax_scalar_is_function(AX_LEAF_LOAD));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(functions)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
