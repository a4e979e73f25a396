/* Sums whose loops are put in the order of memory, by hand, and what they become, as text. */
#include "plan/kernel_order.h"

#include "base/base.h"
#include "support/arena.h"
#include "support/cmocka.h"

static ax_position along(int dim, int64_t coef) { return (ax_position){.dim = dim, .coef = coef, .dynamic = AX_NONE}; }

static void expect(const ax_loop_kernel *made, const char *wanted) {
  ax_text text = {0};
  char *got;
  ax_kernel_text(&text, made);
  assert_int_equal(ax_text_finish(&text, &got), AX_OK);
  assert_string_equal(got, wanted);
  ax_free(got);
}

/* Row sums of a 6 x 15 by blocks of 5 columns: y[block, row] = sum of x[row, 5 block + i] + block. */
static ax_loop_kernel *sums_of_blocks(bool rows_first, ax_scalar reduce) {
  const int64_t x_dims[] = {6, 3, 5}, y_dims[] = {3, 6};
  const int row = rows_first ? 0 : 1, block = 1 - row;
  const int64_t dims[] = {rows_first ? 6 : 3, rows_first ? 3 : 6, 5};
  ax_loop_kernel *k = ax_kernel_create(&test_arena, 3, reduce != AX_SCALAR_NONE, dims);
  ax_kernel_slot(k, AX_F32, 3, x_dims);
  ax_kernel_slot(k, AX_F32, 2, y_dims);
  const ax_position from[] = {along(row, 1), along(block, 1), along(2, 1)}, to[] = {along(block, 1), along(row, 1)};
  const ax_ex number = ax_kernel_op(k, AX_SCALAR_CONVERT, AX_F32, ax_kernel_index(k, (uint32_t)block), AX_NONE, AX_NONE);
  ax_kernel_store(k, 1, to, ax_kernel_op(k, AX_SCALAR_ADD, AX_F32, ax_kernel_load(k, 0, from), number, AX_NONE), reduce);
  return k;
}

static void along_memory(void **state) {
  (void)state;
  ax_loop_kernel *kernel = sums_of_blocks(false, AX_SCALAR_ADD), *made = ax_kernel_in_memory_order(&test_arena, kernel);
  assert_ptr_not_equal(made, kernel);
  expect(made,
         "for i0<6 i1<3 reduce i2<5\n"
         "  e0:s64 = index 1\n"
         "  e1:f32 = convert e0\n"
         "  e2:f32 = load s0[i0, i1, i2]\n"
         "  e3:f32 = add e2 e1\n"
         "  s1[i1, i0] = reduce add e3\n");
}

/* All pairs: y[j, i] = sum of x[i, k] w[j, k]. */
static ax_loop_kernel *pairs(void) {
  const int64_t x_dims[] = {6, 5}, y_dims[] = {7, 6}, w_dims[] = {7, 5}, dims[] = {7, 6, 5};
  ax_loop_kernel *k = ax_kernel_create(&test_arena, 3, 1, dims);
  ax_kernel_slot(k, AX_F32, 2, x_dims);
  ax_kernel_slot(k, AX_F32, 2, w_dims);
  ax_kernel_slot(k, AX_F32, 2, y_dims);
  const ax_position x[] = {along(1, 1), along(2, 1)}, w[] = {along(0, 1), along(2, 1)}, to[] = {along(0, 1), along(1, 1)};
  ax_kernel_store(k, 2, to, ax_kernel_op(k, AX_SCALAR_MUL, AX_F32, ax_kernel_load(k, 0, x), ax_kernel_load(k, 1, w), AX_NONE),
                  AX_SCALAR_ADD);
  return k;
}

static void as_they_are(void **state) {
  (void)state;
  ax_loop_kernel *in_order = sums_of_blocks(true, AX_SCALAR_ADD), *no_sum = sums_of_blocks(false, AX_SCALAR_NONE), *all = pairs();
  assert_ptr_equal(ax_kernel_in_memory_order(&test_arena, in_order), in_order);
  assert_ptr_equal(ax_kernel_in_memory_order(&test_arena, no_sum), no_sum);
  assert_ptr_equal(ax_kernel_in_memory_order(&test_arena, all), all);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(along_memory, test_arena_start, test_arena_end),
                                     cmocka_unit_test_setup_teardown(as_they_are, test_arena_start, test_arena_end)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
