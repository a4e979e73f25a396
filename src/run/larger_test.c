/* Blocks put in and taken out in any order, beside a list. */
#include "run/larger.h"

#include "support/cmocka.h"
#include "support/random.h"

enum { most = 300, steps = 20000 };

static void beside_a_list(void **state) {
  (void)state;
  static char memory[most * 64];
  size_t bytes[most] = {0};
  test_random random = {.state = 9};
  ax_larger larger = {0};
  uint32_t count = 0;
  for (int i = 0; i < steps; i++) {
    const int64_t k = test_random_below(&random, i < steps / 2 ? most : 20);
    void *block = memory + k * 64;
    if (bytes[k] == 0) {
      bytes[k] = (size_t)i + 1;
      assert_true(ax_larger_put(&larger, block, bytes[k]));
      count++;
    } else {
      assert_int_equal(ax_larger_take(&larger, block), bytes[k]);
      bytes[k] = 0;
      count--;
    }
    assert_int_equal(larger.count, count);
  }
  for (int k = 0; k < most; k++) assert_int_equal(ax_larger_take(&larger, memory + k * 64), bytes[k]);
  assert_int_equal(larger.count, 0);
  ax_larger_deinit(&larger);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(beside_a_list)};
  return cmocka_run_group_tests_name("larger", tests, NULL, NULL);
}
