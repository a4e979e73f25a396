/* Bytes in words: as slices, where they are whole elements. */
#include "check/finding.h"

#include <string.h>

#include "support/cmocka.h"
#include "support/tensor.h"

static void expect(const ax_act_region *region, const ax_bytes *runs, uint32_t count, const char *expected) {
  ax_text text = {0};
  char *made;
  ax_act_region_print(region, runs, count, &text);
  TEST_OK(ax_text_finish(&text, &made));
  assert_string_equal(made, expected);
  ax_free(made);
}

static void bytes_are_slices(void **state) {
  (void)state;
  const ax_act_region x = {.name = "x", .bytes = 256, .elem_bytes = 4, .rank = 2, .dims = {8, 8}},
                      y = {.name = "y", .bytes = 24, .elem_bytes = 1, .rank = 3, .dims = {2, 3, 4}},
                      plain = {.name = "z", .bytes = 64};
  expect(&x, (const ax_bytes[]){{0, 32}}, 1, "x[0, 0:8]");
  expect(&x, (const ax_bytes[]){{16, 32}, {48, 64}}, 2, "x[0:2, 4:8]");
  /* No block: a few of them. */
  expect(&x, (const ax_bytes[]){{80, 256}}, 1, "x[2, 4:8], [3:8, 0:8]");
  expect(&x, (const ax_bytes[]){{80, 100}}, 1, "x[2, 4:8], [3, 0]");
  expect(&y, (const ax_bytes[]){{5, 21}}, 1, "y[0, 1, 1:4], [0, 2, 0:4], [1, 0:2, 0:4] and 1 more element");
  expect(&x, (const ax_bytes[]){{0, 4}, {8, 12}, {16, 20}, {32, 36}, {40, 52}}, 5, "x[0, 0], [0, 2], [0, 4] and 4 more elements");
  /* No elements. */
  expect(&x, (const ax_bytes[]){{81, 90}}, 1, "x bytes 81:90");
  expect(&plain, (const ax_bytes[]){{0, 4}, {8, 12}}, 2, "z bytes 0:4, 8:12");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bytes_are_slices)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
