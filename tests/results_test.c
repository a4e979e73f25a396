/* Results nobody uses have no part in derivatives, and operands and results may be one array. */
#include <math.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "axle/transform.h"
#include "support/cmocka.h"
#include "support/run.h"
#include "support/tensor.h"

/* At 0 the derivative of the second is infinite: with a cotangent of real zeros it would be NaN. */
static void square_and_log(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(in[0], in[0]);
  out[1] = ax_log(in[0]);
}

static void by_shard_map(const ax_value *in, ax_value *out, void *context) {
  const char *in_specs[] = {"d"}, *out_specs[] = {"d", "d"};
  ax_value both[2];
  test_shard_map(context, in_specs, out_specs, false, AX_FN(square_and_log, 1, 2), in, both);
  out[0] = ax_reduce_sum(both[0], AX_ALL_DIMS, false);
}

static void by_cond(const ax_value *in, ax_value *out, void *context) {
  ax_value both[2], index = ax_gt(ax_reduce_sum(in[0], AX_ALL_DIMS, false), ax_full(AX_F64, AX_DIMS(), 0));
  ax_if(index, AX_FN(square_and_log, 1, 2), AX_FN(square_and_log, 1, 2), in, both);
  (void)context;
  out[0] = ax_reduce_sum(both[0], AX_ALL_DIMS, false);
}

static void sliced(const ax_value *in, ax_value *out, void *context) { /* carry a, carry b, x -> a + x x, log of b too, log x */
  (void)context;
  out[0] = ax_add(in[0], ax_mul(in[2], in[2]));
  out[1] = ax_add(in[1], ax_log(in[2]));
  out[2] = ax_log(in[2]);
}

static void by_scan(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value zero = ax_full(AX_F64, AX_DIMS(), 0), results[3];
  ax_scan(AX_FN(sliced, 3, 3), 2, -1, false, AX_VALUES(zero, zero, in[0]), results);
  out[0] = results[0];
}

static void gradients(ax_function function) {
  ax_mesh mesh;
  const double x[] = {0, 1, 2, 3};
  ax_type type = TEST_TYPE(AX_F64, 4);
  TEST_OK(ax_mesh_parse("d=2", &mesh));
  ax_program *program = test_trace(function, &mesh, &type, 1, 1), *grad;
  TEST_OK(ax_program_grad(program, AX_FIRST(1), &grad));
  ax_tensor *in = test_tensor(type, x), *out;
  test_run(grad, &in, &out);
  for (int i = 0; i < 4; i++) TEST_NEAR(test_get(out, i), 2 * x[i], 0);
  test_release(&in, 1);
  test_release(&out, 1);
  ax_program_release(grad);
  ax_program_release(program);
}

static void unused_results(void **state) {
  (void)state;
  gradients(by_shard_map);
  gradients(by_cond);
  gradients(by_scan);
}

static void below_nine(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_lt(in[0], ax_full_like(in[0], 9));
}

static void doubled(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], in[0]);
}

static void squared(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(in[0], in[0]);
}

static void in_place(const ax_value *in, ax_value *out, void *context) {
  ax_value x = in[0];
  ax_while(AX_FN(below_nine, 1, 1), AX_FN(doubled, 1, 1), &x, &x);
  ax_switch(ax_full(AX_S32, AX_DIMS(), 1), AX_FNS(AX_FN(squared, 1, 1), AX_FN(doubled, 1, 1)), &x, &x);
  ax_scan(AX_FN(doubled, 1, 1), 1, 2, false, &x, &x);
  ax_grad(AX_FN(squared, 1, 1), AX_FIRST(1), &x, &x);
  const char *specs[] = {""};
  test_shard_map(context, specs, specs, false, AX_FN(doubled, 1, 1), &x, &x);
  out[0] = x;
}

static void one_array_for_both(void **state) {
  (void)state;
  ax_mesh mesh;
  ax_type type = TEST_SCALAR(AX_F64);
  TEST_OK(ax_mesh_parse("d=2", &mesh));
  ax_program *program = test_trace(in_place, &mesh, &type, 1, 1);
  ax_tensor *in = test_tensor(type, (const double[]){3}), *out;
  test_run(program, &in, &out);
  TEST_NEAR(test_get(out, 0), 3 * 4 * 2 * 4 * 2 * 2, 0); /* 3 6 12, doubled, doubled twice, 2x, doubled */
  test_release(&in, 1);
  test_release(&out, 1);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(unused_results),
      cmocka_unit_test(one_array_for_both),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
