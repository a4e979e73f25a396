/* Programs called inside traces whose values vary more than the program's own did. */
#include "axle/ops.h"
#include "prim/bind.h"
#include "support/cmocka.h"
#include "support/tensor.h"

static void scaled_sum(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(ax_mul(in[0], ax_full_like(in[0], 3)), in[1]);
}

static void call_it(const ax_value *in, ax_value *out, void *context) { ax_call(context, in, out); }

static void operands_are_made_to_agree(void **state) {
  (void)state;
  ax_mesh axes;
  ax_type types[] = {TEST_TYPE(AX_F32, 4), TEST_TYPE(AX_F32, 4)};
  ax_program *plain = test_trace(scaled_sum, NULL, types, 2, 1), *called;
  TEST_OK(ax_mesh_parse("a=2,b=3", &axes));
  types[0].spread.varying = 1;
  types[1].spread.varying = 2;
  TEST_OK(ax_trace_on(&axes, AX_CLOSURE(call_it, 2, 1, plain), types, &called));
  assert_int_equal(ax_program_out_type(called, 0)->spread.varying, 3);
  TEST_OK(ax_program_verify(called));
  ax_program_release(called);
  ax_program_release(plain);
}

static void operands_of_other_types_are_refused(void **state) {
  (void)state;
  ax_type types[] = {TEST_TYPE(AX_F32, 4), TEST_TYPE(AX_F32, 4)}, other[] = {TEST_TYPE(AX_F32, 4), TEST_TYPE(AX_F32, 5)};
  ax_program *plain = test_trace(scaled_sum, NULL, types, 2, 1), *called;
  TEST_FAILS(ax_trace(AX_CLOSURE(call_it, 2, 1, plain), other, &called), AX_INVALID_ARGUMENT, "operand 1 is f32[5]");
  assert_null(called);
  ax_program_release(plain);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(operands_are_made_to_agree),
      cmocka_unit_test(operands_of_other_types_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
