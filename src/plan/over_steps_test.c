/* Kernels of a loop's body over all steps of the loop, by hand, and what they must become, as text. */
#include <string.h>

#include "plan/over_steps.h"
#include "support/arena.h"
#include "support/cmocka.h"
#include "support/tensor.h"

enum { steps = 7, columns = 5 };

static ax_position along(int dim, int64_t coef, int64_t offset) { return (ax_position){.dim = dim, .coef = coef, .offset = offset, .dynamic = AX_NONE}; }

/* y[3 t + 2 .. of rows, i] = 2 x[t, i], t a counter: x, y and the counter are slots 0, 1 and 2. */
static ax_bound row_of_step(void) {
  const int64_t dims[] = {columns}, x_dims[] = {steps, columns}, y_dims[] = {3 * steps, columns};
  ax_loop_kernel *k = ax_kernel_create(&test_arena, 1, 0, dims);
  ax_bound b = {k, ax_arena_copy(&test_arena, ((const uint32_t[]){10, 11, 12}), 3 * sizeof(uint32_t))};
  ax_kernel_slot(k, AX_F32, 2, x_dims);
  ax_kernel_slot(k, AX_F32, 2, y_dims);
  ax_kernel_slot(k, AX_S32, 0, NULL);
  const ax_ex t = ax_kernel_op(k, AX_SCALAR_CONVERT, AX_S64, ax_kernel_load(k, 2, NULL), AX_NONE, AX_NONE);
  const ax_ex row = ax_kernel_op(k, AX_SCALAR_MUL, AX_S64, t, ax_kernel_const(k, AX_S64, 3), AX_NONE);
  ax_position from[] = {along(-1, 0, 0), along(0, 1, 0)}, to[] = {along(-1, 0, 2), along(0, 1, 0)};
  from[0].dynamic = t, from[0].limit = steps - 1;
  to[0].dynamic = row, to[0].limit = 3 * steps - 1;
  const ax_ex x = ax_kernel_load(k, 0, from);
  ax_kernel_store(k, 1, to, ax_kernel_op(k, AX_SCALAR_ADD, AX_F32, x, x, AX_NONE), AX_SCALAR_NONE);
  return b;
}

static void expect(const ax_step_slot *slots, const bool *dropped, const char *wanted) {
  const ax_bound b = row_of_step();
  ax_bound made, pruned;
  ax_text text = {0};
  char *got;
  TEST_OK(ax_kernel_over_steps(&test_arena, &b, steps, slots, dropped, NULL, &made));
  if (made.kernel == NULL) {
    assert_null(wanted);
    return;
  }
  assert_non_null(wanted);
  TEST_OK(ax_kernel_prune(&test_arena, &made, NULL, &pruned));
  for (uint32_t i = 0; i < pruned.kernel->slot_count; i++) ax_text_add(&text, "b%u ", pruned.buffers[i]);
  ax_kernel_text(&text, pruned.kernel);
  TEST_OK(ax_text_finish(&text, &got));
  assert_string_equal(got, wanted);
  ax_free(got);
}

static void the_step_is_the_first_dimension(void **state) {
  (void)state;
  const ax_step_slot same = {.use = AX_STEP_SAME}, number = {.use = AX_STEP_NUMBER, .first = 0, .each = 1};
  expect((const ax_step_slot[]){same, same, number}, NULL, "b10 b11 for i0<7 i1<5\n"
                                                           "  e0:f32 = load s0[i0, i1]\n"
                                                           "  e1:f32 = add e0 e0\n"
                                                           "  s1[3*i0+2, i1] = e1\n");
}

static void a_number_that_no_step_changes(void **state) {
  (void)state;
  const ax_step_slot same = {.use = AX_STEP_SAME}, four = {.use = AX_STEP_CONSTANT, .first = 4};
  expect((const ax_step_slot[]){same, same, four}, NULL, "b10 b11 for i0<7 i1<5\n"
                                                         "  e0:f32 = load s0[4, i1]\n"
                                                         "  e1:f32 = add e0 e0\n"
                                                         "  s1[14, i1] = e1\n");
}

/* Counted from elsewhere, some of the rows that are stored to are clamped: then the place is no number. */
static void places_that_are_clamped(void **state) {
  (void)state;
  const ax_step_slot same = {.use = AX_STEP_SAME}, late = {.use = AX_STEP_NUMBER, .first = 1, .each = 1}, unknown = same;
  expect((const ax_step_slot[]){same, same, late}, NULL, NULL);
  expect((const ax_step_slot[]){same, same, unknown}, NULL, NULL);
}

static void what_steps_know(void **state) {
  (void)state;
  const int64_t dims[] = {steps, columns};
  ax_loop_kernel *k = ax_kernel_create(&test_arena, 2, 0, dims);
  const ax_ex t = ax_kernel_index(k, 0), twice = ax_kernel_op(k, AX_SCALAR_ADD, AX_S64, t, t, AX_NONE);
  ax_step_slot known;
  assert_true(ax_over_steps_known(k, ax_kernel_op(k, AX_SCALAR_SUB, AX_S64, twice, ax_kernel_const(k, AX_S64, 9), AX_NONE), &known));
  assert_true(known.use == AX_STEP_NUMBER && known.first == -9 && known.each == 2);
  assert_true(ax_over_steps_known(k, ax_kernel_const(k, AX_BOOL, 1), &known));
  assert_true(known.use == AX_STEP_CONSTANT && known.first == 1);
  assert_false(ax_over_steps_known(k, ax_kernel_op(k, AX_SCALAR_ADD, AX_S64, t, ax_kernel_index(k, 1), AX_NONE), &known));
  assert_false(ax_over_steps_known(k, ax_kernel_op(k, AX_SCALAR_MUL, AX_S64, t, t, AX_NONE), &known));
}

/* Dimensions of one step behind are none; any other makes something else. */
static void kernels_that_make_arrays(void **state) {
  (void)state;
  const int64_t dims[] = {steps, columns, 1}, longer[] = {steps, columns, 2};
  for (int k = 0; k < 2; k++) {
    ax_loop_kernel *kernel = ax_kernel_create(&test_arena, 3, 0, k == 0 ? dims : longer);
    ax_kernel_slot(kernel, AX_F32, 2, dims);
    ax_position at[] = {along(0, 1, 0), along(1, 1, 0)};
    ax_kernel_store(kernel, 0, at, ax_kernel_const(kernel, AX_F32, 0), AX_SCALAR_NONE);
    assert_int_equal(ax_kernel_makes(kernel, &kernel->stores[0]), k == 0);
    assert_false(ax_kernel_covers(kernel, 0, at));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(the_step_is_the_first_dimension, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(a_number_that_no_step_changes, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(places_that_are_clamped, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(what_steps_know, test_arena_start, test_arena_end),
      cmocka_unit_test_setup_teardown(kernels_that_make_arrays, test_arena_start, test_arena_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
