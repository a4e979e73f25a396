/* Values that are known in part: from tensors, symbols and bounds; two of them joined. */
#include "check/abstract.h"

#include "ir/number.h"
#include "support/cmocka.h"
#include "support/tensor.h"

static const ax_type three = {.form = AX_ARRAY, .dtype = AX_S32, .rank = 1, .dims = {3}};

static ax_abstract *tensor_of(int32_t a, int32_t b, int32_t c) {
  ax_tensor *tensor;
  ax_abstract *made;
  TEST_OK(ax_tensor_create(&three, &tensor));
  const int32_t values[] = {a, b, c};
  for (uint32_t i = 0; i < 3; i++) ((int32_t *)tensor->data)[i] = values[i];
  TEST_OK(ax_abstract_tensor(tensor, &made));
  ax_tensor_release(tensor);
  return made;
}

static uint32_t id_of(ax_symbols *symbols, const ax_abstract *value, uint64_t element) {
  uint32_t id;
  assert_true(ax_abstract_has_ids(value, AX_S32));
  TEST_OK(ax_abstract_id(symbols, value, AX_S32, element, &id));
  return id;
}

static void expect_bounds(const ax_symbols *symbols, const ax_abstract *value, int64_t low, int64_t high) {
  const ax_interval bounds = ax_abstract_bounds(symbols, value);
  assert_true(bounds.low == low && bounds.high == high);
}

/* Elements that are equal on both ways stay what they are; others are one of two. */
static void test_join(void **state) {
  (void)state;
  ax_symbols *symbols;
  ax_abstract *a = tensor_of(1, 5, 9), *b = tensor_of(1, 2, 9), *joined, *range, *mixed;
  TEST_OK(ax_symbols_create(&symbols));
  TEST_OK(ax_abstract_join(symbols, &three, a, b, &joined));
  assert_true(id_of(symbols, joined, 0) == id_of(symbols, a, 0) && id_of(symbols, joined, 2) == id_of(symbols, b, 2));
  assert_true(id_of(symbols, joined, 1) != id_of(symbols, a, 1) && id_of(symbols, joined, 1) != id_of(symbols, b, 1));
  const ax_interval middle = ax_symbols_range(symbols, id_of(symbols, joined, 1));
  assert_true(middle.low == 2 && middle.high == 5);
  assert_int_equal(ax_symbols_dtype(symbols, id_of(symbols, joined, 1)), AX_S32);
  expect_bounds(symbols, joined, 1, 9);
  TEST_OK(ax_abstract_range(3, (ax_interval){-4, 3}, &range));
  TEST_OK(ax_abstract_join(symbols, &three, a, range, &mixed));
  assert_false(ax_abstract_has_ids(mixed, AX_S32));
  expect_bounds(symbols, mixed, -4, 9);
  ax_abstract *all[] = {a, b, joined, range, mixed};
  for (uint32_t k = 0; k < AX_COUNT(all); k++) ax_abstract_release(all[k]);
  ax_symbols_release(symbols);
}

/* Symbols that are all constants are the value itself. */
static void test_settle(void **state) {
  (void)state;
  ax_symbols *symbols;
  ax_abstract *value;
  uint32_t symbol;
  TEST_OK(ax_symbols_create(&symbols));
  TEST_OK(ax_symbols_fresh(symbols, AX_S32, (ax_interval){0, 7}, &symbol));
  TEST_OK(ax_abstract_ids(symbols, 3, &value));
  for (int64_t i = 0; i < 3; i++) TEST_OK(ax_symbols_constant(symbols, AX_S32, 10 + i, &value->ids[i]));
  value->ids[1] = symbol;
  TEST_OK(ax_abstract_settle(symbols, &three, &value));
  assert_null(value->tensor);
  expect_bounds(symbols, value, 0, 12);
  TEST_OK(ax_symbols_constant(symbols, AX_S32, -3, &value->ids[1]));
  TEST_OK(ax_abstract_settle(symbols, &three, &value));
  assert_non_null(value->tensor);
  for (int64_t i = 0; i < 3; i++) assert_true(ax_number_load(AX_S32, value->tensor->data, i).i == (i == 1 ? -3 : 10 + i));
  ax_abstract_release(value);
  ax_symbols_release(symbols);
}

/* Two ways with different memory leave none that may be used. */
static void test_views(void **state) {
  (void)state;
  ax_type type = three;
  type.form = AX_REF;
  ax_view view = {.region = 1, .type = type, .strides = {4}};
  ax_abstract *a, *same, *other, *joined;
  TEST_OK(ax_abstract_view(&view, &a));
  TEST_OK(ax_abstract_view(&view, &same));
  view.offset = 4;
  TEST_OK(ax_abstract_view(&view, &other));
  TEST_OK(ax_abstract_join(NULL, &type, a, same, &joined));
  assert_non_null(joined);
  ax_abstract_release(joined);
  TEST_OK(ax_abstract_join(NULL, &type, a, other, &joined));
  assert_null(joined);
  same->shift_count = 1; /* it begins at a symbol */
  TEST_OK(ax_abstract_join(NULL, &type, a, same, &joined));
  assert_null(joined);
  ax_abstract *all[] = {a, same, other};
  for (uint32_t k = 0; k < AX_COUNT(all); k++) ax_abstract_release(all[k]);
}

static void test_intervals(void **state) {
  (void)state;
  assert_true(ax_is_counted(AX_S32) && ax_is_counted(AX_U32) && ax_is_counted(AX_BOOL) && ax_is_counted(AX_S64));
  assert_false(ax_is_counted(AX_U64) || ax_is_counted(AX_F32));
  const ax_interval bytes = ax_interval_of_dtype(AX_U8), truths = ax_interval_of_dtype(AX_BOOL),
                    shorts = ax_interval_of_dtype(AX_S16);
  assert_true(bytes.low == 0 && bytes.high == 255 && truths.low == 0 && truths.high == 1);
  assert_true(shorts.low == INT16_MIN && shorts.high == INT16_MAX);
  const ax_interval common = ax_interval_common(bytes, (ax_interval){-4, 9}), hull = ax_interval_hull(truths, (ax_interval){-4, 0});
  assert_true(common.low == 0 && common.high == 9 && hull.low == -4 && hull.high == 1 && !ax_interval_is_one(hull));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_join), cmocka_unit_test(test_settle), cmocka_unit_test(test_views),
                                     cmocka_unit_test(test_intervals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
