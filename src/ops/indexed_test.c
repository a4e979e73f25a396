/* Windows at places that indices give: which dimensions belong together, and where each element is. */
#include "ops/indexed.h"

#include "ops/sort.h"
#include "support/cmocka.h"
#include "support/tensor.h"

/* Rows of a table f32[4,3] by s64[2,1] indices: a result f32[2,3]. */
static const ax_indexing rows = {.window = {1, {1}}, .collapsed = {1, {0}}, .map = {1, {0}}, .mode = "clip"};
static const char *const names[] = {"offset_dims", "collapsed", "start_index_map", "operand_batching", "indices_batching"};

static ax_type table(void) { return ax_array_type(AX_F32, AX_DIMS(4, 3)); }
static ax_type places(ax_dtype dtype, int64_t numbers) { return ax_array_type(dtype, AX_DIMS(2, numbers)); }

static ax_index_windows windows_of_rows(void) {
  const ax_type operand = table(), indices = places(AX_S64, 1);
  return ax_windows_of(&rows, &operand, &indices, (const int64_t[]){1, 3});
}

static void dimensions_that_belong_together(void **state) {
  (void)state;
  const ax_index_windows w = windows_of_rows();
  assert_int_equal(w.wide_rank, 2);
  assert_true(w.wide_of[0] == -1 && w.wide_of[1] == 1);
  assert_true(w.component_of[0] == 0 && w.component_of[1] == -1);
  assert_int_equal(w.wide_of_index[0], 0);
  assert_true(w.limit[0] == 3 && w.limit[1] == 0);
}

static void an_index_picks_single_places_of_what_is_collapsed(void **state) {
  (void)state;
  const ax_index_windows w = windows_of_rows();
  assert_true(ax_window_picks(&w, &rows, 0));
  assert_false(ax_window_picks(&w, &rows, 1));
  const ax_type single = ax_array_type(AX_F32, AX_DIMS(1, 3)), indices = places(AX_S64, 1);
  const ax_index_windows only = ax_windows_of(&rows, &single, &indices, (const int64_t[]){1, 3});
  assert_false(ax_window_picks(&only, &rows, 0)); /* there is one place */
}

static void batched_dimensions_go_together(void **state) {
  (void)state;
  const ax_indexing at = {.collapsed = {1, {1}}, .map = {1, {1}}, .batching = {1, {0}}, .index_batching = {1, {0}}, .mode = "clip"};
  const ax_type operand = table(), indices = ax_array_type(AX_S64, AX_DIMS(4, 2, 1));
  const ax_index_windows w = ax_windows_of(&at, &operand, &indices, (const int64_t[]){1, 1});
  TEST_OK(ax_indexing_check(&at, names, &operand, &indices));
  assert_int_equal(w.wide_of[0], 0); /* the row is the batch */
  assert_int_equal(w.component_of[0], -1);
  assert_int_equal(w.component_of[1], 0);
}

static int64_t place(int64_t row, int64_t wide_index, bool clips) {
  int64_t rows_read[] = {0, row};
  ax_tensor operand = {.dtype = AX_F32, .rank = 2, .dims = {4, 3}}, wide = {.dtype = AX_F32, .rank = 2, .dims = {2, 3}},
            indices = {.dtype = AX_S64, .rank = 2, .dims = {2, 1}, .data = rows_read};
  const ax_index_windows w = windows_of_rows();
  return ax_window_place(&w, &operand, &indices, &wide, wide_index, clips);
}

static void an_element_of_a_row_is_where_its_index_says(void **state) {
  (void)state;
  assert_int_equal(place(2, 0, true), 0); /* of index 0 */
  assert_int_equal(place(2, 3, true), 6);
  assert_int_equal(place(2, 5, true), 8);
}

static void windows_outside_are_moved_in_or_left_out(void **state) {
  (void)state;
  assert_int_equal(place(7, 4, true), 10);
  assert_int_equal(place(-1, 4, true), 1);
  assert_int_equal(place(7, 4, false), -1);
  assert_int_equal(place(-1, 4, false), -1);
  assert_int_equal(place(3, 4, false), 10);
  assert_true(ax_indexing_fills(&(ax_indexing){.mode = "fill"}) && !ax_indexing_fills(&rows));
}

static void sizes_of_windows_follow_from_the_wide_array(void **state) {
  (void)state;
  const ax_type operand = table(), wide = ax_array_type(AX_F32, AX_DIMS(2, 3));
  int64_t sizes[2];
  ax_window_sizes(&rows, &operand, &wide, sizes);
  assert_true(sizes[0] == 1 && sizes[1] == 3);
  const ax_type indices = places(AX_S32, 1);
  const ax_index_windows w = ax_scatter_windows(&rows, &operand, &indices, &wide);
  assert_true(w.sizes[0] == 1 && w.sizes[1] == 3);
}

static void refused(ax_indexing at, ax_type indices, const char *why) {
  const ax_type operand = table();
  TEST_FAILS(ax_indexing_check(&at, names, &operand, &indices), AX_INVALID_ARGUMENT, why);
}

static void lists_that_do_not_fit_are_refused(void **state) {
  (void)state;
  ax_indexing at;
  refused(rows, places(AX_F32, 1), "the indices are f32; they must be integers");
  refused(rows, ax_array_type(AX_S32, AX_DIMS()), "the indices are a scalar");
  refused(rows, places(AX_S32, 2), "an index has 2 numbers, but start_index_map has 1 entries");
  at = rows, at.collapsed.count = 0;
  refused(at, places(AX_S32, 1), "have 1 dimensions together, the operand has 2");
  at = rows, at.map.v[0] = 5;
  refused(at, places(AX_S32, 1), "start_index_map has 5, which is outside rank 2");
  at = rows, at.mode = "wrap";
  refused(at, places(AX_S32, 1), "wrap");
}

/* --- Keys of sorting --- */

static void keys_ascend_with_elements(void **state) {
  (void)state;
  const float floats[] = {-__builtin_inff(), -2, -1, -0x1p-149f, 0, 0x1p-149f, 3, __builtin_inff(), __builtin_nanf("")};
  for (int i = 1; i < 9; i++) assert_true(ax_sort_key(AX_F32, floats, i - 1) < ax_sort_key(AX_F32, floats, i));
  const double zeros[] = {0, -0.0, __builtin_nan(""), -__builtin_nan("")};
  assert_true(ax_sort_key(AX_F64, zeros, 0) == ax_sort_key(AX_F64, zeros, 1));
  assert_true(ax_sort_key(AX_F64, zeros, 2) == ax_sort_key(AX_F64, zeros, 3));
  const int8_t bytes[] = {-128, -1, 0, 127};
  for (int i = 1; i < 4; i++) assert_true(ax_sort_key(AX_S8, bytes, i - 1) < ax_sort_key(AX_S8, bytes, i));
  assert_true(ax_sort_key(AX_U8, bytes, 0) > ax_sort_key(AX_U8, bytes, 3)); /* 128 and 127 */
}

static AX_BODY(taken) {
  (void)context;
  out[0] = ax_taken_in_order(in[0], in[1], 0);
}

static void elements_are_taken_along_a_dimension(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 2, 3), TEST_TYPE(AX_S32, 2, 3)};
  ax_program *program = test_trace(taken, NULL, types, 2, 1);
  ax_tensor *in[] = {test_tensor(types[0], (const double[]){0, 1, 2, 3, 4, 5}),
                     test_tensor(types[1], (const double[]){1, 0, 1, 0, 0, 1})},
            *wanted = test_tensor(types[0], (const double[]){3, 1, 5, 0, 1, 5}), *y;
  test_run(program, in, &y);
  TEST_TENSORS_NEAR(y, wanted, 0);
  test_release(in, 2), test_release(&y, 1), test_release(&wanted, 1);
  ax_program_release(program);
}

static AX_BODY(with_another_part) {
  const ax_literal other = ax_not_picked(ax_typeof(in[0]).dtype);
  (void)context;
  out[0] = ax_add(in[0], ax_constant(&other.type, other.data));
}

/* Of each dtype whose picked elements are parts of a sum. */
static void what_is_not_picked_changes_no_bit(void **state) {
  (void)state;
  const ax_dtype summed[] = {AX_F32, AX_F64, AX_F16, AX_BF16, AX_F8E5M2, AX_F8E4M3FNUZ, AX_C64, AX_C128, AX_S8, AX_U64},
                 others[] = {AX_BOOL, AX_F8E8M0FNU, AX_KEY};
  for (size_t i = 0; i < AX_COUNT(others); i++) assert_false(ax_picked_adds_up(others[i]));
  for (size_t i = 0; i < AX_COUNT(summed); i++) {
    const ax_type type = ax_array_type(summed[i], AX_DIMS(4));
    ax_program *program = test_trace(with_another_part, NULL, &type, 1, 1);
    ax_tensor *x = test_tensor(type, (const double[]){0, -0.0, 1, -0.0, -0.0, 0, -0.0, -2}), *y; /* complex numbers have two each */
    assert_true(ax_picked_adds_up(summed[i]));
    test_run(program, &x, &y);
    assert_memory_equal(x->data, y->data, 4 * ax_dtype_bytes(summed[i]));
    test_release(&x, 1), test_release(&y, 1);
    ax_program_release(program);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dimensions_that_belong_together),
      cmocka_unit_test(an_index_picks_single_places_of_what_is_collapsed),
      cmocka_unit_test(batched_dimensions_go_together),
      cmocka_unit_test(an_element_of_a_row_is_where_its_index_says),
      cmocka_unit_test(windows_outside_are_moved_in_or_left_out),
      cmocka_unit_test(sizes_of_windows_follow_from_the_wide_array),
      cmocka_unit_test(lists_that_do_not_fit_are_refused),
      cmocka_unit_test(keys_ascend_with_elements),
      cmocka_unit_test(elements_are_taken_along_a_dimension),
      cmocka_unit_test(what_is_not_picked_changes_no_bit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
