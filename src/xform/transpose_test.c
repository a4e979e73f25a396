/* Transposes: <A dx, dy> = <dx, A^T dy> for the tangent program A of many functions. */
#include "axle/collectives.h"
#include "axle/ops.h"
#include "ir/transform.h"
#include "support/cmocka.h"
#include "support/random.h"

enum { most = 16 };

static void arithmetic(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = ax_sub(ax_mul(in[0], in[1]), ax_div(in[0], ax_exp(in[1])));
  out[0] = ax_add(ax_neg(x), in[1]);
  out[1] = ax_tanh(ax_add(x, x));
}

static void shapes(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const int64_t permutation[] = {1, 0}, flat[] = {12}, start[] = {1, 0}, limit[] = {3, 4}, swapped[] = {4, 3};
  ax_value product = ax_mul(ax_transpose(in[0], permutation), ax_reshape(in[1], AX_LIST(2, swapped)));
  out[0] = ax_reshape(product, AX_LIST(1, flat));
  out[1] = ax_slice(ax_mul(in[0], in[0]), start, limit, NULL);
  out[2] = ax_add(ax_reduce_sum(in[1], AX_DIMS(0), false), ax_reduce_sum(in[0], AX_DIMS(0), false));
}

static void choices(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_where(ax_lt(in[0], in[1]), ax_mul(in[0], in[1]), in[0]);
  out[1] = ax_max(in[0], in[1]);
  out[2] = ax_abs(ax_min(in[0], ax_neg(in[1])));
}

static void untouched(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = out[1] = in[0]; /* twice a result; in[1] not at all */
  out[2] = ax_full_like(in[0], 4);
}

/* Runs `program` on the residuals, then `x`. */
static void run_linear(const ax_program *program, ax_tensor **residuals, uint32_t count, ax_tensor **x,
                       uint32_t x_count, ax_tensor **out) {
  ax_tensor *in[2 * most];
  assert_true(count + x_count <= AX_COUNT(in));
  for (uint32_t i = 0; i < count; i++) in[i] = residuals[i];
  for (uint32_t i = 0; i < x_count; i++) in[count + i] = x[i];
  test_run(program, in, out);
}

static void random_tensors(test_random *random, const ax_program *program, uint32_t first, uint32_t count, bool out,
                           ax_tensor **made) {
  for (uint32_t i = 0; i < count; i++)
    made[i] = test_random_tensor(
        random, out ? *ax_program_out_type(program, first + i) : *ax_program_in_type(program, first + i), -2, 2);
}

static void check_adjoint(ax_function f, uint32_t out_count) {
  test_random random = {7};
  ax_type types[] = {TEST_TYPE(AX_F64, 3, 4), TEST_TYPE(AX_F64, 3, 4)};
  ax_program *program = test_trace(f, NULL, types, 2, out_count), *primal, *tangent, *transposed;
  uint32_t n;
  TEST_OK(ax_program_linearize(program, AX_ALL_ARGS, &primal, &tangent, &n));
  bool linear[2 * most] = {0};
  linear[n] = linear[n + 1] = true;
  TEST_OK(ax_program_transpose(tangent, test_args(linear, ax_program_in_count(tangent)), &transposed));
  assert_int_equal(ax_program_in_count(transposed), n + out_count);
  assert_int_equal(ax_program_out_count(transposed), 2);
  ax_tensor *x[2], *dx[2], *made[2 * most], *dy[most], *ct[most], *ctx[2];
  random_tensors(&random, program, 0, 2, false, x);
  random_tensors(&random, program, 0, 2, false, dx);
  random_tensors(&random, program, 0, out_count, true, ct);
  test_run(primal, x, made);
  run_linear(tangent, made + out_count, n, dx, 2, dy);
  run_linear(transposed, made + out_count, n, ct, out_count, ctx);
  TEST_NEAR(test_inner(dy, ct, out_count), test_inner(dx, ctx, 2), 1e-12);
  test_release(x, 2), test_release(dx, 2), test_release(ctx, 2);
  test_release(ct, out_count), test_release(dy, out_count), test_release(made, out_count + n);
  ax_program *all[] = {program, primal, tangent, transposed};
  for (size_t i = 0; i < AX_COUNT(all); i++) ax_program_release(all[i]);
}

static void adjoint_identity(void **state) {
  (void)state;
  check_adjoint(arithmetic, 2);
  check_adjoint(shapes, 3);
  check_adjoint(choices, 3);
  check_adjoint(untouched, 3);
}

/* An invariant value used by varying ones: its cotangent is summed over the devices. */
static void scaled(const ax_value *in, ax_value *out, void *context) { (void)context, out[0] = ax_mul(in[0], in[1]); }

static void invariant_operands_get_psum(void **state) {
  (void)state;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("data=2", &mesh));
  ax_type types[] = {TEST_SCALAR(AX_F64), TEST_SCALAR(AX_F64)};
  types[1].spread.varying = 1;
  ax_program *program, *transposed;
  TEST_OK(ax_trace_on(&mesh, AX_FN(scaled, 2, 1), types, &program));
  TEST_OK(ax_program_transpose(program, AX_FIRST(1), &transposed));
  assert_int_equal(ax_program_out_type(transposed, 0)->spread.varying, 0);
  const int64_t device[] = {0, 1};
  double x[] = {3, 5}, ct[] = {1, 10};
  ax_tensor *in[4], *out[2];
  for (int i = 0; i < 2; i++) {
    in[i] = test_tensor(types[0], &x[i]);
    in[2 + i] = test_tensor(types[0], &ct[i]);
  }
  TEST_OK(ax_evaluate_lanes(NULL, transposed, 2, device, in, out));
  assert_true(test_get(out[0], 0) == 53 && test_get(out[1], 0) == 53);
  test_release(in, 4);
  test_release(out, 2);
  ax_program_release(transposed);
  ax_program_release(program);
}

static void not_linear(const ax_value *in, ax_value *out, void *context) { (void)context, out[0] = ax_exp(in[0]); }

static void square(const ax_value *in, ax_value *out, void *context) { (void)context, out[0] = ax_mul(in[0], in[0]); }

static void refuses_what_is_not_linear(void **state) {
  (void)state;
  ax_type type = TEST_SCALAR(AX_F64);
  ax_program *product = test_trace(square, NULL, &type, 1, 1), *none;
  TEST_FAILS(ax_program_transpose(product, AX_FIRST(1), &none), AX_ABSENT, "is not linear");
  TEST_FAILS(ax_program_transpose(product, AX_ARGS(1), &none), AX_INVALID_ARGUMENT, "there is no input 1: there is 1");
  ax_program_release(product);
  ax_program *program = test_trace(not_linear, NULL, &type, 1, 1), *transposed;
  TEST_FAILS(ax_program_transpose(program, AX_FIRST(1), &transposed), AX_ABSENT, "exp has no transpose rule");
  assert_null(transposed);
  ax_program_release(program);
}

/* A cotangent's type is the dual of its value's: what is reduced and what is unreduced change places. */
static void cotangents_are_dual(void **state) {
  (void)state;
  const char text[] = "{ axes a=2 b=2 c=2 ; lambda a:f32[]{V:a R:b U:c}. let in (a,) }";
  const bool linear[] = {true};
  ax_program *program, *transposed, *back;
  TEST_OK(ax_program_parse(text, sizeof text - 1, NULL, &program));
  TEST_OK(ax_program_transpose(program, test_args(linear, ax_program_in_count(program)), &transposed));
  const ax_type *type = ax_program_in_type(transposed, 0);
  assert_true(type->spread.varying == 1 && type->spread.reduced == 4 && type->spread.unreduced == 2);
  assert_true(ax_type_equal(type, ax_program_out_type(transposed, 0)));
  TEST_OK(ax_program_transpose(transposed, test_args(linear, ax_program_in_count(transposed)), &back));
  assert_true(ax_program_equal(program, back));
  ax_program_release(program);
  ax_program_release(transposed);
  ax_program_release(back);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cotangents_are_dual),
      cmocka_unit_test(adjoint_identity),
      cmocka_unit_test(invariant_operands_get_psum),
      cmocka_unit_test(refuses_what_is_not_linear),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
