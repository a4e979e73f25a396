/* Touches at places that depend on inputs: where they may be, and which of them race. */
#include "check/wide.h"

#include "check/prove.h"
#include "support/cmocka.h"
#include "support/tensor.h"

enum { rows = 8, row_bytes = 16 };

/* A row of f32[8,4], and so many columns of it; the row is `part` + constant, from 0 to last. */
static ax_abstract *row(uint32_t part, int64_t constant, int64_t last, int64_t columns) {
  ax_type type = AX_TYPE(AX_F32, 1, columns);
  type.form = AX_REF;
  ax_view view = {.type = type, .strides = {row_bytes, 4}};
  ax_abstract *made;
  TEST_OK(ax_abstract_view(&view, &made));
  made->shift_count = 1;
  made->shifts[0] = (ax_shift){.stride = row_bytes, .part = part, .constant = constant, .low = 0, .high = last};
  return made;
}

static void test_bytes(void **state) {
  (void)state;
  ax_bytes *runs;
  uint32_t count;
  ax_abstract *whole = row(1, 0, 7, 4), *two = row(1, 0, 2, 2);
  TEST_OK(ax_wide_bytes(whole, &runs, &count));
  assert_true(count == 1 && runs[0].begin == 0 && runs[0].end == rows * row_bytes);
  ax_free(runs);
  TEST_OK(ax_wide_bytes(two, &runs, &count));
  assert_int_equal(count, 3);
  for (uint32_t k = 0; k < count; k++) assert_true(runs[k].begin == k * row_bytes && runs[k].end == k * row_bytes + 8);
  ax_free(runs);
  two->nowhere = true;
  TEST_OK(ax_wide_bytes(two, &runs, &count));
  assert_int_equal(count, 0);
  ax_abstract_release(whole);
  ax_abstract_release(two);
}

/* Two agents, each with one touch; whether that is proved. */
static bool is_proved(const ax_abstract *first, const ax_abstract *second, bool reads) {
  ax_act_objects objects = {0};
  ax_wide wide = {0};
  ax_act_record record;
  ax_proof proof;
  const ax_act local = {.kind = AX_ACT_LOCAL, .what = "store"};
  for (uint32_t a = 0; a < 2; a++) TEST_OK(ax_act_objects_add_agent(&objects, (ax_act_agent){.name = "core", .initial = true}));
  TEST_OK(ax_act_objects_add_region(&objects, (ax_act_region){.name = "x", .bytes = rows * row_bytes}));
  TEST_OK(ax_wide_act(&wide, 0, &local));
  TEST_OK(ax_wide_view(&wide, first, true));
  TEST_OK(ax_wide_act(&wide, 1, &local));
  TEST_OK(ax_wide_view(&wide, second, !reads));
  TEST_OK(ax_wide_record(&wide, &objects, &record));
  TEST_OK(ax_prove(&record, NULL, &proof));
  const bool proved = proof.proved;
  ax_proof_deinit(&proof);
  ax_act_record_deinit(&record);
  ax_wide_deinit(&wide);
  ax_act_objects_deinit(&objects);
  return proved;
}

static void test_pairs(void **state) {
  (void)state;
  ax_abstract *a = row(1, 0, 7, 4), *next = row(1, 1, 7, 4), *before = row(1, -1, 7, 4), *other = row(2, 0, 7, 4),
              *right = row(2, 0, 7, 2);
  assert_true(is_proved(a, next, false) && is_proved(a, before, false) && is_proved(before, next, true));
  assert_false(is_proved(a, a, false));
  assert_false(is_proved(a, other, false));
  assert_false(is_proved(a, other, true));
  right->view.offset = 8; /* the other two columns */
  a->view.type.dims[1] = 2;
  assert_true(is_proved(a, right, false));
  a->view.type.dims[1] = 3;
  assert_false(is_proved(a, right, false));
  ax_abstract *fixed = row(0, 0, 0, 4);
  fixed->shift_count = 0; /* row 0 */
  assert_false(is_proved(next, fixed, false));
  next->shifts[0].low = 1; /* it is another row */
  assert_true(is_proved(next, fixed, false));
  ax_abstract *all[] = {a, next, before, other, right, fixed};
  for (uint32_t k = 0; k < AX_COUNT(all); k++) ax_abstract_release(all[k]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_bytes), cmocka_unit_test(test_pairs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
