/* Bounds of results, beside all results of all operands within small bounds; and what happens at the ends of 64 bits. */
#include "prim/intervals.h"

#include "prim/prims.h"
#include "support/cmocka.h"

enum { MOST = 4 };

static int64_t result(const ax_prim *prim, int64_t a, int64_t b) {
  if (prim == &ax_prim_add) return a + b;
  if (prim == &ax_prim_sub) return a - b;
  if (prim == &ax_prim_mul) return a * b;
  if (prim == &ax_prim_div) return a / b;
  if (prim == &ax_prim_rem) return a % b;
  if (prim == &ax_prim_max) return a > b ? a : b;
  if (prim == &ax_prim_min) return a < b ? a : b;
  if (prim == &ax_prim_lt) return a < b;
  return a == b;
}

/* Within the bounds, and of operations that grow with their operands at both ends. */
static void check(const ax_prim *prim, ax_interval a, ax_interval b) {
  const bool divides = prim == &ax_prim_div || prim == &ax_prim_rem, compares = prim == &ax_prim_lt || prim == &ax_prim_eq;
  const ax_eqn eqn = {.prim = prim, .in_count = 2, .out_count = 1};
  const ax_interval in[] = {a, b}, found = ax_interval_of_eqn(&eqn, (const ax_dtype[]){AX_S32, AX_S32}, in, compares ? AX_BOOL : AX_S32);
  ax_interval all = {INT64_MAX, INT64_MIN};
  for (int64_t x = a.low; x <= a.high; x++)
    for (int64_t y = b.low; y <= b.high; y++)
      if (!divides || y != 0) all = ax_interval_hull(all, (ax_interval){result(prim, x, y), result(prim, x, y)});
  if (all.low > all.high) return;
  assert_true(ax_interval_is_within(all, found));
  if (!divides || (prim == &ax_prim_div && b.low > 0)) assert_true(ax_interval_is_within(found, all));
}

static void all_small_ones(void **state) {
  static const ax_prim *const prims[] = {&ax_prim_add, &ax_prim_sub, &ax_prim_mul, &ax_prim_div, &ax_prim_rem,
                                         &ax_prim_max, &ax_prim_min, &ax_prim_lt,  &ax_prim_eq};
  (void)state;
  for (size_t p = 0; p < AX_COUNT(prims); p++)
    for (int64_t low = -MOST; low <= MOST; low++)
      for (int64_t high = low; high <= MOST; high++)
        for (int64_t from = -MOST; from <= MOST; from++)
          for (int64_t to = from; to <= MOST; to++) check(prims[p], (ax_interval){low, high}, (ax_interval){from, to});
}

static void beyond_64_bits(void **state) {
  const ax_interval large = {INT64_MAX - 1, INT64_MAX}, two = {2, 2}, none = {1, 0};
  ax_interval out;
  (void)state;
  assert_false(ax_interval_sum(large, two, &out));
  assert_false(ax_interval_product(large, two, &out));
  assert_true(ax_interval_sum(large, (ax_interval){-5, 0}, &out) && out.low == INT64_MAX - 6 && out.high == INT64_MAX);
  assert_true(ax_interval_product((ax_interval){-3, 2}, (ax_interval){-7, 5}, &out) && out.low == -15 && out.high == 21);
  /* By the numbers of a grid that has none. */
  const ax_eqn divides = {.prim = &ax_prim_div, .in_count = 2, .out_count = 1};
  out = ax_interval_of_eqn(&divides, (const ax_dtype[]){AX_S32, AX_S32}, (const ax_interval[]){two, none}, AX_S32);
  assert_true(out.low == INT32_MIN && out.high == INT32_MAX);
}

static void of_constants(void **state) {
  (void)state;
  static const int32_t numbers[] = {7, -3, 5};
  const ax_literal literal = {.type = ax_array_type(AX_S32, AX_DIMS(3)), .data = (void *)(uintptr_t)numbers};
  ax_interval all = ax_interval_of_literal(&literal, 3);
  assert_true(all.low == -3 && all.high == 7);
  all = ax_interval_of_literal(&literal, 2);
  assert_true(all.low == INT32_MIN && all.high == INT32_MAX);
  const ax_type count = ax_array_type(AX_U8, AX_DIMS(2, 200)), wraps = ax_array_type(AX_S8, AX_DIMS(200)), none = ax_array_type(AX_S8, AX_DIMS(0));
  all = ax_interval_of_iota(&count);
  assert_true(all.low == 0 && all.high == 199);
  all = ax_interval_of_iota(&wraps);
  assert_true(all.low == -128 && all.high == 127);
  all = ax_interval_of_iota(&none);
  assert_true(all.low == 0 && all.high == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_small_ones), cmocka_unit_test(beyond_64_bits), cmocka_unit_test(of_constants)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
