/* The geometry of windows along one dimension, place by place. */
#include "ops/window.h"

#include "support/cmocka.h"
#include "support/tensor.h"

/* The elements that each position sees: letters, and dots where none is; positions apart by a blank. */
static void sees(ax_window w, const char *wanted) {
  ax_text text = {0};
  const int64_t positions = ax_window_count(&w);
  for (int64_t p = 0; p < positions; p++) {
    ax_text_add(&text, "%s", p > 0 ? " " : "");
    for (int64_t tap = 0; tap < w.size; tap++) {
      const int64_t element = ax_window_element(&w, p, tap);
      ax_text_add(&text, "%c", element < 0 ? '.' : 'a' + (char)element);
    }
  }
  assert_string_equal(text.data != NULL ? text.data : "", wanted);
  ax_text_deinit(&text);
}

static void elements_that_are_apart_have_gaps(void **state) {
  (void)state;
  assert_int_equal(ax_dilated(3, 2), 5);
  assert_int_equal(ax_dilated(1, 7), 1);
  assert_int_equal(ax_dilated(0, 7), 0);
}

/* The picture of window.h. */
static void windows_move_by_their_stride(void **state) {
  (void)state;
  sees((ax_window){.array = 3, .base = 2, .low = 1, .high = 0, .size = 3, .dilation = 1, .stride = 2}, ".a. .b.");
}

static void padding_is_outside_and_cuts_where_it_is_negative(void **state) {
  (void)state;
  sees((ax_window){.array = 3, .base = 1, .low = 1, .high = 1, .size = 3, .dilation = 1, .stride = 1}, ".ab abc bc.");
  sees((ax_window){.array = 4, .base = 1, .low = -1, .high = -1, .size = 1, .dilation = 1, .stride = 1}, "b c");
}

static void places_of_a_window_may_be_apart(void **state) {
  (void)state;
  sees((ax_window){.array = 5, .base = 1, .size = 2, .dilation = 3, .stride = 1}, "ad be");
}

static void a_window_larger_than_all_has_no_position(void **state) {
  (void)state;
  assert_int_equal(ax_window_count(&(ax_window){.array = 2, .base = 1, .size = 7, .dilation = 1, .stride = 1}), 0);
}

/* An element is seen by a position where the transposed window sees that position, at the mirrored place. */
static void a_transposed_window_sees_what_sees(void **state) {
  (void)state;
  const ax_window windows[] = {
      {.array = 5, .base = 1, .low = 1, .high = 2, .size = 3, .dilation = 1, .stride = 2},
      {.array = 4, .base = 3, .low = 0, .high = 1, .size = 2, .dilation = 2, .stride = 1},
      {.array = 6, .base = 1, .low = -1, .high = 0, .size = 2, .dilation = 1, .stride = 3},
  };
  for (size_t i = 0; i < AX_COUNT(windows); i++) {
    const ax_window w = windows[i], t = ax_window_transposed(&w);
    assert_int_equal(t.array, ax_window_count(&w));
    assert_int_equal(ax_window_count(&t), w.array);
    for (int64_t e = 0; e < w.array; e++)
      for (int64_t tap = 0; tap < w.size; tap++) {
        const int64_t p = ax_window_element(&t, e, w.size - 1 - tap);
        if (p >= 0) assert_int_equal(ax_window_element(&w, p, tap), e);
        for (int64_t q = 0; q < t.array && p < 0; q++) assert_int_not_equal(ax_window_element(&w, q, tap), e);
      }
  }
}

/* As jax.lax.padtype_to_pads. */
static void same_padding_puts_the_odd_one_behind(void **state) {
  (void)state;
  ax_window w = {.array = 5, .base = 1, .size = 2, .dilation = 1, .stride = 1};
  assert_true(ax_window_pads("f", "SAME", &w) && w.low == 0 && w.high == 1);
  assert_true(ax_window_pads("f", "SAME_LOWER", &w) && w.low == 1 && w.high == 0);
  assert_true(ax_window_pads("f", "VALID", &w) && w.low == 0 && w.high == 0);
  w = (ax_window){.array = 5, .base = 1, .size = 4, .dilation = 2, .stride = 3}; /* 2 positions: 3 + 7 places, 5 there */
  assert_true(ax_window_pads("f", "SAME", &w) && w.low == 2 && w.high == 3);
  w = (ax_window){.array = 5, .base = 1, .size = 1, .dilation = 1, .stride = 3}; /* the last one is not seen */
  assert_true(ax_window_pads("f", "SAME", &w) && w.low == 0 && w.high == 0);
}

static void windows_that_cannot_be_are_refused(void **state) {
  (void)state;
  int64_t positions;
  const ax_window good = {.array = 3, .base = 1, .size = 2, .dilation = 1, .stride = 1};
  ax_window w = good;
  TEST_OK(ax_window_positions(&w, "x", 0, &positions));
  assert_int_equal(positions, 2);
  w = good, w.stride = 0;
  TEST_FAILS(ax_window_positions(&w, "x", 4, &positions), AX_INVALID_ARGUMENT, "the stride of dimension 4 is 0");
  w = good, w.base = -1;
  TEST_FAILS(ax_window_positions(&w, "x", 0, &positions), AX_INVALID_ARGUMENT, "the base dilation of dimension 0 is -1");
  w = good, w.dilation = 0;
  TEST_FAILS(ax_window_positions(&w, "x", 0, &positions), AX_INVALID_ARGUMENT, "the window dilation");
  w = good, w.low = -2, w.high = -2;
  TEST_FAILS(ax_window_positions(&w, "the operand", 1, &positions), AX_INVALID_ARGUMENT,
             "paddings -2 and -2 cut more than dimension 1 of the operand has, 3");
  w = good, w.low = INT64_MAX;
  TEST_FAILS(ax_window_positions(&w, "x", 0, &positions), AX_INVALID_ARGUMENT, "too large");
}

/* --- Values --- */

static AX_BODY(parts_and_padding) {
  ax_window windows[] = {{.array = 2, .base = 1, .size = 1, .dilation = 1, .stride = 1},
                         {.array = 3, .base = 2, .low = 1, .high = -1, .size = 1, .dilation = 1, .stride = 1}};
  (void)context;
  out[0] = ax_window_part(in[0], 1, 0, 2, 2);
  out[1] = ax_window_part(in[0], 0, 1, 1, 1);
  out[2] = ax_window_padded(in[0], ax_full(AX_F32, AX_DIMS(), 9), 0, 2, windows);
  assert_true(windows[1].array == 5 && windows[1].base == 1 && windows[1].low == 0 && windows[1].high == 0);
}

static void parts_are_cut_out_and_padded(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F32, 2, 3);
  ax_program *program = test_trace(parts_and_padding, NULL, &type, 1, 3);
  ax_tensor *x = test_tensor(type, (const double[]){0, 1, 2, 3, 4, 5}), *y[3], *wanted[3] = {
                test_tensor(TEST_TYPE(AX_F32, 2, 2), (const double[]){0, 2, 3, 5}),
                test_tensor(TEST_TYPE(AX_F32, 1, 3), (const double[]){3, 4, 5}),
                test_tensor(TEST_TYPE(AX_F32, 2, 5), (const double[]){9, 0, 9, 1, 9, 9, 3, 9, 4, 9})};
  test_run(program, &x, y);
  for (uint32_t k = 0; k < 3; k++) TEST_TENSORS_NEAR(y[k], wanted[k], 0);
  test_release(&x, 1), test_release(y, 3), test_release(wanted, 3);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(elements_that_are_apart_have_gaps),
      cmocka_unit_test(windows_move_by_their_stride),
      cmocka_unit_test(padding_is_outside_and_cuts_where_it_is_negative),
      cmocka_unit_test(places_of_a_window_may_be_apart),
      cmocka_unit_test(a_window_larger_than_all_has_no_position),
      cmocka_unit_test(a_transposed_window_sees_what_sees),
      cmocka_unit_test(same_padding_puts_the_odd_one_behind),
      cmocka_unit_test(windows_that_cannot_be_are_refused),
      cmocka_unit_test(parts_are_cut_out_and_padded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
