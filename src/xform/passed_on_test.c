/* AX_GRAD, AX_VALUE_AND_GRAD and AX_VMAPPED: the same programs as functions written for them, alone and in each other, and where
   errors say that they were made. */
#undef AXLE_NO_LINES
#include "axle/axle.h"

#include <math.h>
#include <string.h>

#include "support/cmocka.h"
#include "support/tensor.h"

/* x f32[3], y f32[3] -> the sum of sin(x) y, and the sines */
static AX_BODY(loss) {
  out[1] = ax_sin(in[0]);
  out[0] = ax_reduce_sum(ax_mul(out[1], in[1]), AX_ALL_DIMS, false);
}

static AX_BODY(by_hand_grad) { ax_grad(AX_FN(loss, 2, 2), AX_ARGS(0, 1), in, out); }
static AX_BODY(by_hand_value) { ax_value_and_grad(AX_FN(loss, 2, 2), AX_FIRST(1), in, out); }
static AX_BODY(by_hand_vmap) { ax_vmap(AX_FN(loss, 2, 2), in, out, &(ax_vmap_options){.in_axes = {AX_DIMS(0, AX_NOT_MAPPED)}}); }
static AX_BODY(by_hand_each) { ax_vmap(AX_FN(by_hand_grad, 2, 2), in, out, NULL); }

static void same(ax_fn made, ax_fn by_hand, const ax_type *types) {
  ax_program *program, *wanted;
  assert_int_equal(made.in_count, by_hand.in_count);
  assert_int_equal(made.out_count, by_hand.out_count);
  TEST_OK(ax_trace(made, types, &program));
  TEST_OK(ax_trace(by_hand, types, &wanted));
  assert_true(ax_program_equal(program, wanted));
  ax_program_release(program);
  ax_program_release(wanted);
}

static void programs(void **state) {
  (void)state;
  const ax_type row[] = {AX_TYPE(AX_F32, 3), AX_TYPE(AX_F32, 3)}, rows[] = {AX_TYPE(AX_F32, 5, 3), AX_TYPE(AX_F32, 5, 3)},
                mixed[] = {AX_TYPE(AX_F32, 5, 3), AX_TYPE(AX_F32, 3)};
  same(AX_GRAD(AX_ARGS(0, 1), AX_FN(loss, 2, 2)), AX_FN(by_hand_grad, 2, 2), row);
  same(AX_VALUE_AND_GRAD(AX_FIRST(1), AX_FN(loss, 2, 2)), AX_FN(by_hand_value, 2, 3), row);
  const ax_vmap_options options = {.in_axes = {AX_DIMS(0, AX_NOT_MAPPED)}};
  same(AX_VMAPPED(&options, AX_FN(loss, 2, 2)), AX_FN(by_hand_vmap, 2, 2), mixed);
  same(AX_VMAPPED(NULL, AX_GRAD(AX_ARGS(0, 1), AX_FN(loss, 2, 2))), AX_FN(by_hand_each, 2, 2), rows);
}

static void numbers(void **state) {
  (void)state;
  float x[2][3] = {{0, 1, 2}, {-3, 0.5f, 4}}, y[2][3] = {{1, 2, 3}, {4, 5, 6}};
  ax_host_array in[] = {ax_host_view(AX_F32, AX_DIMS(2, 3), x), ax_host_view(AX_F32, AX_DIMS(2, 3), y)};
  AX_OWNED_HOSTS(out, 3);
  TEST_OK(ax_apply(NULL, AX_VMAPPED(NULL, AX_VALUE_AND_GRAD(AX_ARGS(1), AX_FN(loss, 2, 2))), in, out));
  for (int i = 0; i < 2; i++) {
    double sum = 0;
    for (int j = 0; j < 3; j++) {
      const double sine = sin((double)x[i][j]);
      sum += sine * (double)y[i][j];
      assert_true(fabs(ax_host_at(&out[1], 3 * i + j) - sine) < 1e-6 && fabs(ax_host_at(&out[2], 3 * i + j) - sine) < 1e-6);
    }
    assert_true(fabs(ax_host_at(&out[0], i) - sum) < 1e-5);
  }
}

static void errors(void **state) {
  (void)state;
  const ax_type types[] = {AX_TYPE(AX_F32, 3), AX_TYPE(AX_S32, 3)};
  ax_program *program;
  TEST_FAILS(ax_trace(AX_GRAD(AX_ALL_ARGS, AX_FN(loss, 2, 2)), types, &program), AX_INVALID_ARGUMENT,
             "grad: a function that is passed on needs the numbers of its operands");
  assert_non_null(strstr(ax_message(), "passed_on_test.c:"));
  TEST_FAILS(ax_trace(AX_VALUE_AND_GRAD(AX_ALL_ARGS, AX_FN(loss, 2, 2)), types, &program), AX_INVALID_ARGUMENT,
             "value_and_grad: a function");
  TEST_FAILS(ax_trace(AX_GRAD(AX_ARGS(1), AX_FN(loss, 2, 2)), types, &program), AX_INVALID_ARGUMENT, "grad");
  TEST_FAILS(ax_trace(AX_GRAD(AX_FIRST(3), AX_FN(loss, 2, 2)), types, &program), AX_INVALID_ARGUMENT, "grad");
  TEST_FAILS(ax_trace(AX_VMAPPED(&(ax_vmap_options){.size = 4}, AX_FN(loss, 2, 2)), types, &program), AX_INVALID_ARGUMENT, "vmap");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(programs), cmocka_unit_test(numbers), cmocka_unit_test(errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
