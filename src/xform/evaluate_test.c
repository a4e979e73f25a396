/* Reference evaluation: devices in lock step, collectives, regions, and what it reports when they part. */
#include "xform/evaluate.h"

#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/tensor.h"

static void cubic(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(in[0], ax_mul(in[0], in[0]));
}

static void evaluates(void **state) {
  (void)state;
  double x[] = {1, -2, 3}, want[] = {1, -8, 27};
  ax_type type = TEST_TYPE(AX_F32, 3);
  ax_program *program = test_trace(cubic, NULL, &type, 1, 1);
  ax_tensor *in = test_tensor(type, x), *expected = test_tensor(type, want), *out;
  test_run(program, &in, &out);
  TEST_TENSORS_NEAR(out, expected, 0);
  test_release((ax_tensor *[]){in, expected, out}, 3);
  ax_program_release(program);
}

/* Results that are inputs, or the same value twice, are tensors of their own. */
static void shared(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[0];
  out[1] = out[2] = ax_neg(in[0]);
  ax_exp(in[0]); /* used by nobody */
}

static void results_have_one_owner(void **state) {
  (void)state;
  double x = 2, y[3];
  ax_type type = TEST_SCALAR(AX_F64);
  ax_program *program = test_trace(shared, NULL, &type, 1, 3);
  test_run_scalars(program, &x, y);
  assert_true(y[0] == 2 && y[1] == -2 && y[2] == -2);
  ax_program_release(program);
}

static void refuses_bad_inputs(void **state) {
  (void)state;
  ax_type type = TEST_TYPE(AX_F32, 3), other = TEST_TYPE(AX_F32, 4);
  ax_program *program = test_trace(cubic, NULL, &type, 1, 1);
  ax_tensor *in = test_tensor(other, NULL), *out = in;
  TEST_FAILS(ax_evaluate(program, &in, &out), AX_INVALID_ARGUMENT, "input 0 is f32[4], but the program takes f32[3]");
  assert_null(out);
  ax_tensor_release(in);
  ax_program_release(program);
}

/* --- Many devices --- */

enum { devices = 6 };

static ax_program *trace_on(ax_function function, const char *axes, void *context) {
  ax_mesh mesh;
  ax_program *program;
  TEST_OK(ax_mesh_parse("data=3,model=2", &mesh));
  ax_type type = TEST_SCALAR(AX_F64);
  type.spread.varying = 3;
  TEST_OK(ax_trace_on(&mesh, AX_CLOSURE(function, 1, 1, context != NULL ? context : (void *)axes), &type, &program));
  return program;
}

/* Device d holds 10^d. */
static ax_status run_on(const ax_program *program, const int64_t *device, uint32_t lanes, double *result) {
  ax_tensor *in[devices] = {0}, *out[devices];
  for (uint32_t lane = 0; lane < lanes; lane++) {
    double x = 1;
    for (int64_t d = 0; d < device[lane]; d++) x *= 10;
    in[lane] = test_tensor(TEST_SCALAR(AX_F64), &x);
  }
  ax_status status = ax_evaluate_lanes(NULL, program, lanes, device, in, out);
  for (uint32_t lane = 0; lane < lanes; lane++) {
    if (status == AX_OK) result[lane] = test_get(out[lane], 0);
    if (status != AX_OK) assert_null(out[lane]);
  }
  test_release(in, lanes);
  if (status == AX_OK) test_release(out, lanes);
  return status;
}

static void sum(const ax_value *in, ax_value *out, void *axes) { out[0] = ax_psum(in[0], axes); }

static void groups(void **state) {
  (void)state;
  const int64_t all[] = {5, 4, 3, 2, 1, 0}; /* in any order */
  const double along_data[] = {101010, 10101, 101010, 10101, 101010, 10101},
               along_model[] = {110000, 110000, 1100, 1100, 11, 11};
  double result[devices];
  ax_program *program = trace_on(sum, "data", NULL);
  TEST_OK(run_on(program, all, devices, result));
  assert_memory_equal(result, along_data, sizeof result);
  ax_program_release(program);
  program = trace_on(sum, "model", NULL);
  TEST_OK(run_on(program, all, devices, result));
  assert_memory_equal(result, along_model, sizeof result);
  ax_program_release(program);
  program = trace_on(sum, "model,data", NULL);
  TEST_OK(run_on(program, all, devices, result));
  for (int i = 0; i < devices; i++) assert_true(result[i] == 111111);
  ax_program_release(program);
}

/* Some of the devices: their groups are whole, or the report says who waits and who never comes. */
static void parts(void **state) {
  (void)state;
  const int64_t column[] = {0, 2, 4}, torn[] = {0, 1, 2, 5};
  double result[devices];
  ax_program *program = trace_on(sum, "data", NULL);
  TEST_OK(run_on(program, column, 3, result));
  assert_true(result[0] == 10101);
  TEST_FAILS(run_on(program, torn, 4, result), AX_DEADLOCK,
             "deadlock: psum f64[]{V:data,model} (equation 0): devices wait: 0 (data=0,model=0), 2 (data=1,model=0), "
             "1 (data=0,model=1), 5 (data=2,model=1); devices never come: 4 (data=2,model=0), 3 (data=1,model=1)");
  ax_program_release(program);
}

/* --- Regions: only devices with data=0 take the branch that communicates --- */

static void branch_sum(const ax_value *in, ax_value *out, void *axes) { out[0] = ax_psum(in[0], axes); }
static void branch_neg(const ax_value *in, ax_value *out, void *axes) { (void)axes, out[0] = ax_neg(in[0]); }

static void diverging(const ax_value *in, ax_value *out, void *axes) {
  const ax_fn branches[] = {AX_CLOSURE(branch_sum, 1, 1, axes), AX_CLOSURE(branch_neg, 1, 1, axes)};
  ax_switch(ax_axis_index("data"), AX_LIST(2, branches), in, out);
}

static ax_program *trace_diverging(const char *axes) {
  ax_mesh mesh;
  ax_program *program;
  ax_type type = TEST_SCALAR(AX_F64);
  TEST_OK(ax_mesh_parse("data=3,model=2", &mesh));
  mesh.axis[0].unchecked = mesh.axis[1].unchecked = true;
  TEST_OK(ax_trace_on(&mesh, AX_CLOSURE(diverging, 1, 1, (void *)axes), &type, &program));
  return program;
}

static void regions(void **state) {
  (void)state;
  const int64_t all[] = {0, 1, 2, 3, 4, 5};
  const double want[] = {11, 11, -100, -1000, -10000, -100000};
  double result[devices];
  ax_program *program = trace_diverging("model"); /* both members of a group go one way */
  TEST_OK(run_on(program, all, devices, result));
  assert_memory_equal(result, want, sizeof want);
  ax_program_release(program);
  program = trace_diverging("data");
  TEST_FAILS(run_on(program, all, devices, result), AX_DEADLOCK,
             "deadlock: psum f64[] (equation 0 of branch 0 of cond, equation 1): devices wait: ");
  TEST_FAILS(run_on(program, all, devices, result), AX_DEADLOCK, "devices never come: 2 (data=1,model=0), ");
  ax_program_release(program);
}

static void many(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value sum = ax_psum(ax_mul(in[0], in[0]), "data");
  out[0] = ax_exp(ax_mul(ax_neg(sum), in[0]));
}

static ax_status run_many(void *program) {
  const int64_t all[] = {0, 1, 2, 3, 4, 5};
  ax_tensor *in[devices] = {0}, *out[devices];
  double x = 0.5;
  ax_type type = TEST_SCALAR(AX_F64);
  ax_status status = AX_OK;
  for (int i = 0; i < devices; i++) in[i] = NULL;
  for (int i = 0; i < devices && status == AX_OK; i++) {
    status = ax_tensor_create(&type, &in[i]);
    if (status == AX_OK) test_set(in[i], 0, x);
  }
  if (status == AX_OK) {
    status = ax_evaluate_lanes(NULL, program, devices, all, in, out);
    if (status == AX_OK) test_release(out, devices);
  }
  test_release(in, devices);
  return status;
}

static void survives_lack_of_memory(void **state) {
  (void)state;
  ax_program *program = trace_on(many, NULL, NULL);
  assert_true(test_each_allocation(run_many, program) > 20);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(evaluates),
      cmocka_unit_test(results_have_one_owner),
      cmocka_unit_test(refuses_bad_inputs),
      cmocka_unit_test(groups),
      cmocka_unit_test(parts),
      cmocka_unit_test(regions),
      cmocka_unit_test(survives_lack_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
