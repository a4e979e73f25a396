/* Columns of narrow arrays that are overwritten at a place that is computed, and read there: rows of few elements go several to a vector. */
#include <stdio.h>

#include "support/cmocka.h"
#include "support/host.h"
#include "support/random.h"
#include "support/run.h"

static void check(const char *t, int rows, int columns, int wide, const char *index, test_random *random) {
  char text[700];
  snprintf(text, sizeof text,
           "{ lambda x:%s[%d,%d] u:%s[%d,%d] j:%s[]. let k:%s[] = add j j y:%s[%d,%d] = dynamic_update_slice x u 0:%s[] k "
           "z:%s[%d,%d] = dynamic_slice[slice_sizes=(%d, %d)] y 0:%s[] j in (y, z) }",
           t, rows, columns, t, rows, wide, index, index, t, rows, columns, index, t, rows, wide, rows, wide, index);
  ax_program *program = test_parsed(text);
  for (double at = 0; 2 * at < columns; at++) {
    ax_tensor *in[] = {test_edge_tensor(random, program->types[0]), test_edge_tensor(random, program->types[1]),
                       test_tensor(program->types[2], &at)};
    TEST_EVERY_WAY(program, in, 0);
    test_release(in, 3);
  }
  ax_program_release(program);
}

static void columns_at_a_computed_place(void **state) {
  (void)state;
  test_random random = {11};
  check("f32", 70, 6, 1, "s32", &random);
  check("f64", 66, 3, 1, "s64", &random);
  check("f32", 200, 7, 2, "s32", &random);
  check("s8", 130, 5, 1, "u8", &random);
  check("bf16", 5000, 3, 1, "s32", &random);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(columns_at_a_computed_place)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
