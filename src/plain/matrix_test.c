/* What the rules of matrices share: scales near the limits of a dtype, and divisions of complex numbers by real ones. */
#include <math.h>

#include "axle/ops.h"
#include "plain/matrix.h"
#include "support/cmocka.h"
#include "support/run.h"

static AX_BODY(scale) {
  (void)context;
  out[0] = ax_plain_scale(in[0]);
}

static double scale_of(ax_dtype dtype, double first, double second) {
  const ax_type type = TEST_TYPE(dtype, 1, 1);
  ax_program *program = test_trace(scale, NULL, &type, 1, 1);
  ax_tensor *x = test_tensor(type, NULL), *got;
  test_set(x, 0, first);
  if (ax_is_complex(dtype)) test_set(x, 1, second);
  TEST_OK(test_try(program, &x, &got));
  const double value = test_get(got, 0);
  ax_tensor_release(x), ax_tensor_release(got);
  ax_program_release(program);
  return value;
}

static void scales(void **state) {
  static const double sizes[] = {3.4e38, -2e38, 1e30, 3, 1, -1e-30, 1e-37};
  (void)state;
  for (size_t i = 0; i < AX_COUNT(sizes); i++)
    for (int dtype = 0; dtype < 2; dtype++) {
      const double by = scale_of(dtype == 0 ? AX_F32 : AX_C64, sizes[i] * 1e-3, sizes[i]), size = fabs(dtype == 0 ? sizes[i] * 1e-3 : sizes[i]);
      int exponent;
      if (size < 1e-37) continue; /* whose half is nearly 0 */
      assert_true(frexp(by, &exponent) == 0.5);
      assert_true(by >= size / 4 && by <= size * 0.75);
    }
  assert_true(scale_of(AX_F32, 0, 0) == 1);
  assert_true(scale_of(AX_F64, 1.7e308, 0) == ldexp(1, 1023));
}

static AX_BODY(divided) {
  (void)context;
  out[0] = ax_plain_divided(in[0], in[1]);
}

/* Squares of these numbers are no f32, and their quotients are. */
static void divides(void **state) {
  static const double sizes[] = {1e-30, 1e-19, 1, 1e30};
  const ax_type types[] = {TEST_TYPE(AX_C64, 1), TEST_TYPE(AX_F32, 1)};
  ax_program *program = test_trace(divided, NULL, types, 2, 1);
  (void)state;
  for (size_t i = 0; i < AX_COUNT(sizes); i++) {
    ax_tensor *in[] = {test_tensor(types[0], NULL), test_tensor(types[1], NULL)}, *got;
    test_set(in[0], 0, 3 * sizes[i]), test_set(in[0], 1, -4 * sizes[i]), test_set(in[1], 0, 2 * sizes[i]);
    TEST_OK(test_try(program, in, &got));
    assert_true(fabs(test_get(got, 0) - 1.5) < 1e-6 && fabs(test_get(got, 1) + 2) < 1e-6);
    test_release(in, 2), ax_tensor_release(got);
  }
  ax_program_release(program);
}

static AX_BODY(reflected) {
  const ax_plain_reflector r = ax_plain_reflect(in[0], ax_integer(0));
  (void)context;
  out[0] = r.v, out[1] = r.tau, out[2] = r.beta;
}

/* What is much smaller than the first element has a reflector, too, as in larfg: its squares are no f32. */
static void reflects_small_numbers(void **state) {
  static const double first[] = {1, -3e18, 2e-25};
  const ax_type type = TEST_TYPE(AX_F32, 3, 1);
  ax_program *program = test_trace(reflected, NULL, &type, 1, 3);
  (void)state;
  for (size_t i = 0; i < AX_COUNT(first); i++) {
    ax_tensor *x = test_tensor(type, NULL), *got[3];
    test_set(x, 0, first[i]), test_set(x, 1, 4e-26 * first[i]), test_set(x, 2, -1e-27 * first[i]);
    if (i == 2) test_set(x, 1, 4e-26), test_set(x, 2, -3e-26);
    TEST_OK(test_try(program, &x, got));
    const double rest = hypot(test_get(x, 1), test_get(x, 2)), all = hypot(test_get(x, 0), rest), beta = first[i] < 0 ? all : -all;
    assert_true(fabs(test_get(got[2], 0) / beta - 1) < 1e-6);
    assert_true(fabs(test_get(got[1], 0) - (beta - test_get(x, 0)) / beta) < 1e-6);
    for (int k = 1; k < 3; k++) assert_true(fabs(test_get(got[0], k) * (test_get(x, 0) - beta) / test_get(x, k) - 1) < 1e-6);
    test_release(got, 3), ax_tensor_release(x);
  }
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(scales), cmocka_unit_test(divides), cmocka_unit_test(reflects_small_numbers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
