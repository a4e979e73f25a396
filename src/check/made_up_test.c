/* Inputs that are made up: floats are small, integers 0 or unlike one another. */
#include "check/made_up.h"

#include "axle/axle.h"
#include "ir/number.h"
#include "support/cmocka.h"
#include "support/tensor.h"

static double number(const ax_tensor *tensor, int64_t at) {
  const ax_number n = ax_number_convert(tensor->dtype, AX_F64, ax_number_load(tensor->dtype, tensor->data, at));
  return n.f;
}

static ax_tensor *input(const ax_type *type, uint32_t index, bool distinct) {
  ax_tensor *made;
  TEST_OK(ax_made_up_input(type, NULL, index, distinct, &made));
  return made;
}

static void test_integers(void **state) {
  (void)state;
  const ax_dtype dtypes[] = {AX_S8, AX_U8, AX_S32, AX_U64, AX_BOOL};
  enum { elems = 300 };
  for (uint32_t d = 0; d < AX_COUNT(dtypes); d++) {
    const ax_type type = AX_TYPE(dtypes[d], elems);
    ax_tensor *zeros = input(&type, 1, false), *a = input(&type, 1, true), *b = input(&type, 2, true);
    for (int64_t i = 0; i < elems; i++) {
      assert_true(number(zeros, i) == 0);
      assert_true(number(a, i) >= 0 && number(a, i) != number(b, i));
      if (i > 0) assert_true(number(a, i) != number(a, i - 1));
    }
    ax_tensor_release(zeros);
    ax_tensor_release(a);
    ax_tensor_release(b);
  }
}

static void test_floats_and_given(void **state) {
  (void)state;
  const ax_type type = AX_TYPE(AX_F32, 4);
  const float values[] = {1, 2, 3, 4};
  const ax_host_array given = ax_host_view(AX_F32, AX_DIMS(4), values);
  ax_tensor *made = input(&type, 0, true), *taken;
  for (int64_t i = 0; i < 4; i++) assert_true(number(made, i) >= -2 && number(made, i) <= 2);
  TEST_OK(ax_made_up_input(&type, &given, 0, true, &taken));
  for (int64_t i = 0; i < 4; i++) assert_true(number(taken, i) == values[i]);
  ax_tensor_release(made);
  ax_tensor_release(taken);
  const ax_type other = AX_TYPE(AX_F32, 5);
  assert_int_equal(ax_made_up_input(&other, &given, 3, false, &taken), AX_INVALID_ARGUMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_integers), cmocka_unit_test(test_floats_and_given)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
