/* grad and value_and_grad. */
#include <math.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "ir/prim.h"
#include "ir/transform.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/random.h"

/* x e^(xy) + tanh(x)/y */
static void smooth(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value product = ax_mul(in[0], ax_exp(ax_mul(in[0], in[1])));
  out[0] = ax_add(product, ax_div(ax_tanh(in[0]), in[1]));
}

static ax_program *trace_smooth(void) {
  ax_type types[] = {TEST_SCALAR(AX_F64), TEST_SCALAR(AX_F64)};
  return test_trace(smooth, NULL, types, 2, 1);
}

static void closed_forms(void **state) {
  (void)state;
  ax_program *program = trace_smooth(), *grad, *second;
  TEST_OK(ax_program_value_and_grad(program, AX_FIRST(2), &grad));
  TEST_OK(ax_program_grad(program, AX_FIRST(1), &second));
  ax_program *first = second;
  TEST_OK(ax_program_grad(first, AX_FIRST(1), &second));
  for (double x = -1; x <= 1; x += 0.5)
    for (double y = 0.5; y <= 2; y += 0.5) {
      double in[] = {x, y}, out[3], e = exp(x * y), t = tanh(x), s = 1 - t * t;
      test_run_scalars(grad, in, out);
      TEST_NEAR(out[0], x * e + t / y, 1e-14);
      TEST_NEAR(out[1], e + x * y * e + s / y, 1e-14);
      TEST_NEAR(out[2], x * x * e - t / (y * y), 1e-14);
      test_run_scalars(second, in, out);
      TEST_NEAR(out[0], 2 * y * e + x * y * y * e - 2 * t * s / y, 1e-13);
    }
  ax_program *all[] = {program, grad, first, second};
  for (size_t i = 0; i < AX_COUNT(all); i++) ax_program_release(all[i]);
}

static uint32_t count_prim(const ax_program *program, const char *name) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < program->eqn_count; i++) count += program->eqns[i].prim == ax_prim_find(name, strlen(name));
  return count;
}

static void forward_stands_once(void **state) {
  (void)state;
  ax_program *program = trace_smooth(), *grad;
  TEST_OK(ax_program_value_and_grad(program, AX_FIRST(2), &grad));
  assert_int_equal(count_prim(grad, "exp"), 1);
  assert_int_equal(count_prim(grad, "tanh"), 1);
  ax_program_release(grad);
  ax_program_release(program);
}

/* sum of (a x)^2 / 2 and a second result that is carried along */
static void quadratic(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value ax = ax_mul(in[0], in[1]), half = ax_full_like(ax, 0.5);
  out[0] = ax_reduce_sum(ax_mul(half, ax_mul(ax, ax)), AX_ALL_DIMS, false);
  out[1] = ax_exp(ax);
}

static void vectors(void **state) {
  (void)state;
  double a[] = {1, 2, 3}, x[] = {4, -5, 6}, want[] = {4, -20, 54};
  ax_type type = TEST_TYPE(AX_F64, 3), types[] = {type, type};
  ax_program *program = test_trace(quadratic, NULL, types, 2, 2), *grad;
  TEST_OK(ax_program_value_and_grad(program, AX_ARGS(1), &grad));
  ax_tensor *in[] = {test_tensor(type, a), test_tensor(type, x)}, *out[3], *expected = test_tensor(type, want);
  test_run(grad, in, out);
  TEST_NEAR(test_get(out[0], 0), (16 + 100 + 324) / 2.0, 1e-15);
  TEST_NEAR(test_get(out[1], 0), exp(4), 1e-15);
  TEST_TENSORS_NEAR(out[2], expected, 1e-15);
  test_release(in, 2);
  test_release(out, 3);
  ax_tensor_release(expected);
  ax_program_release(grad);
  ax_program_release(program);
}

static void not_scalar(const ax_value *in, ax_value *out, void *context) { (void)context, out[0] = ax_neg(in[0]); }

static void nothing(const ax_value *in, ax_value *out, void *context) { (void)in, (void)out, (void)context; }

static void refusals(void **state) {
  (void)state;
  ax_type type = TEST_TYPE(AX_F32, 3), integer = TEST_SCALAR(AX_S32);
  ax_program *vector = test_trace(not_scalar, NULL, &type, 1, 1),
             *number = test_trace(not_scalar, NULL, &integer, 1, 1);
  ax_program *none = test_trace(nothing, NULL, &type, 1, 0), *grad;
  TEST_FAILS(ax_program_grad(vector, AX_FIRST(1), &grad), AX_INVALID_ARGUMENT,
             "grad: the first result must be a float scalar; it is f32[3]");
  TEST_FAILS(ax_program_grad(number, AX_FIRST(1), &grad), AX_INVALID_ARGUMENT,
             "grad: the first result must be a float scalar; it is s32[]");
  TEST_FAILS(ax_program_grad(none, AX_FIRST(1), &grad), AX_INVALID_ARGUMENT,
             "grad: the first result must be a float scalar; there is no result");
  assert_null(grad);
  ax_program_release(vector), ax_program_release(number), ax_program_release(none);
}

/* --- On devices: mean over the batch of (w x)^2 --- */

static void mean_loss(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value y = ax_mul(in[0], in[1]);
  out[0] = ax_pmean(ax_mul(y, y), "data");
}

static void local_loss(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value y = ax_mul(in[0], in[1]);
  out[0] = ax_mul(y, y);
}

static void check_devices(ax_function f, const char *axes, bool w_varies, const double *want_value,
                          const double *want) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse(axes, &mesh));
  ax_type types[] = {TEST_SCALAR(AX_F64), TEST_SCALAR(AX_F64)};
  types[0].spread.varying = w_varies;
  types[1].spread.varying = 1;
  ax_program *program, *grad;
  TEST_OK(ax_trace_on(&mesh, AX_FN(f, 2, 1), types, &program));
  TEST_OK(ax_program_value_and_grad(program, AX_FIRST(1), &grad));
  assert_int_equal(ax_program_out_type(grad, 1)->spread.varying, w_varies);
  double w = 3, x[] = {1, 2};
  const int64_t device[] = {0, 1};
  ax_tensor *in[4], *out[4];
  for (int d = 0; d < 2; d++) {
    in[d] = test_tensor(TEST_SCALAR(AX_F64), &w);
    in[2 + d] = test_tensor(TEST_SCALAR(AX_F64), &x[d]);
  }
  TEST_OK(ax_evaluate_lanes(NULL, grad, 2, device, in, out));
  for (int d = 0; d < 2; d++) {
    TEST_NEAR(test_get(out[d], 0), want_value[d], 1e-15);
    TEST_NEAR(test_get(out[2 + d], 0), want[d], 1e-15);
  }
  test_release(in, 4);
  test_release(out, 4);
  ax_program_release(grad);
  ax_program_release(program);
}

static void devices(void **state) {
  (void)state;
  const double means[] = {22.5, 22.5}, locals[] = {9, 36};
  check_devices(mean_loss, "data=2", false, means, (const double[]){15, 15});   /* 2 w mean(x^2), the same on both */
  check_devices(mean_loss, "data=2", true, means, (const double[]){3, 12});     /* each device's own w: 2 w x^2 / 2 */
  check_devices(local_loss, "data=2", false, locals, (const double[]){30, 30}); /* of the sum of the devices' losses */
  check_devices(local_loss, "data=2", true, locals, (const double[]){6, 24});
}

/* --- Depth and memory --- */

static void long_chain(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[0];
  for (int i = 0; i < 20000; i++) out[0] = ax_mul(out[0], in[1]);
}

static void deep_programs(void **state) {
  (void)state;
  ax_type types[] = {TEST_SCALAR(AX_F64), TEST_SCALAR(AX_F64)};
  ax_program *program = test_trace(long_chain, NULL, types, 2, 1), *grad;
  double in[] = {2, 1}, out[3];
  TEST_OK(ax_program_value_and_grad(program, AX_FIRST(2), &grad));
  test_run_scalars(grad, in, out);
  assert_true(out[0] == 2 && out[1] == 1 && out[2] == 40000);
  ax_program_release(grad);
  ax_program_release(program);
}

static ax_status transform_all(void *program) {
  ax_program *grad = NULL, *jvp = NULL, *vmap = NULL;
  ax_status status = ax_program_value_and_grad(program, AX_FIRST(2), &grad);
  if (status == AX_OK) status = ax_program_jvp(grad, AX_ALL_ARGS, &jvp);
  if (status == AX_OK) status = ax_program_vmap(jvp, &(ax_vmap_options){.size = 5}, &vmap);
  ax_program_release(grad);
  ax_program_release(jvp);
  ax_program_release(vmap);
  return status;
}

/* --- What a scan keeps of each step --- */

enum { STEPS = 5, SIDE = 6 };

/* A product and what gelu makes of it, which takes five values of its size. */
static void gelu_step(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_gelu(ax_matmul(in[0], in[1]));
}

static void scanned(const ax_value *in, ax_value *out, void *context) {
  ax_value x;
  (void)context;
  ax_scan(AX_FN(gelu_step, 2, 1), 1, -1, false, in, &x);
  out[0] = ax_reduce_sum(ax_mul(x, x), AX_ALL_DIMS, false);
}

static void unrolled(const ax_value *in, ax_value *out, void *context) {
  ax_value x[2] = {in[0]};
  for (int64_t i = 0; i < STEPS; i++) {
    x[1] = ax_reshape(ax_slice(in[1], AX_DIMS(i, 0, 0), AX_DIMS(i + 1, SIDE, SIDE), NULL), AX_DIMS(SIDE, SIDE));
    gelu_step(x, x, context);
  }
  out[0] = ax_reduce_sum(ax_mul(x[0], x[0]), AX_ALL_DIMS, false);
}

/* How many values of each step the scans of a program give. */
static uint32_t stacked(const ax_program *program) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < program->eqn_count; i++) {
    const ax_eqn *eqn = &program->eqns[i];
    for (uint32_t k = 0; k < eqn->out_count && strcmp(eqn->prim->name, "scan") == 0; k++)
      count += program->types[eqn->out + k].rank == 3;
  }
  return count;
}

static void scans_keep_little(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F64, SIDE, SIDE), TEST_TYPE(AX_F64, STEPS, SIDE, SIDE)};
  test_random data = {1};
  ax_program *one = test_trace(scanned, NULL, types, 2, 1), *other = test_trace(unrolled, NULL, types, 2, 1), *grads[2];
  TEST_OK(ax_program_grad(one, AX_FIRST(2), &grads[0]));
  TEST_OK(ax_program_grad(other, AX_FIRST(2), &grads[1]));
  assert_int_equal(stacked(grads[0]), 3); /* the carry and the product, going forward; the weights' gradients, going back */
  ax_tensor *in[] = {test_random_tensor(&data, types[0], -1, 1), test_random_tensor(&data, types[1], -1, 1)}, *out[2][2];
  for (int k = 0; k < 2; k++) test_run(grads[k], in, out[k]);
  for (int i = 0; i < 2; i++) TEST_TENSORS_NEAR(out[0][i], out[1][i], 0);
  for (int k = 0; k < 2; k++) {
    test_release(out[k], 2);
    ax_program_release(grads[k]);
  }
  test_release(in, 2);
  ax_program_release(one);
  ax_program_release(other);
}

static void survives_lack_of_memory(void **state) {
  (void)state;
  ax_program *program = trace_smooth();
  assert_true(test_each_allocation(transform_all, program) > 20);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(closed_forms),
      cmocka_unit_test(forward_stands_once),
      cmocka_unit_test(vectors),
      cmocka_unit_test(refusals),
      cmocka_unit_test(devices),
      cmocka_unit_test(deep_programs),
      cmocka_unit_test(scans_keep_little),
      cmocka_unit_test(survives_lack_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
