/* jvp and linearize. */
#include <math.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "ir/transform.h"
#include "support/cmocka.h"
#include "support/tensor.h"
#include "xform/xform.h"

/* --- Functions of one scalar, with their derivatives --- */

static void f_tanh(const ax_value *in, ax_value *out, void *context) { (void)context, out[0] = ax_tanh(in[0]); }
static void f_logistic(const ax_value *in, ax_value *out, void *context) { (void)context, out[0] = ax_logistic(in[0]); }
static void f_ratio(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_div(in[0], ax_add(ax_full_like(in[0], 1), ax_mul(in[0], in[0])));
}
static void f_gauss(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_exp(ax_neg(ax_mul(in[0], in[0])));
}
static void f_cube(const ax_value *in, ax_value *out, void *context) {
  (void)context, out[0] = ax_integer_pow(in[0], 3);
}
static void f_log(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_log(ax_add(ax_full_like(in[0], 2), ax_tanh(in[0])));
}

static double d_tanh(double x) { return 1 - tanh(x) * tanh(x); }
static double d_logistic(double x) { return exp(-x) / ((1 + exp(-x)) * (1 + exp(-x))); }
static double d_ratio(double x) { return (1 - x * x) / ((1 + x * x) * (1 + x * x)); }
static double d_gauss(double x) { return -2 * x * exp(-x * x); }
static double d_cube(double x) { return 3 * x * x; }
static double d_log(double x) { return d_tanh(x) / (2 + tanh(x)); }

typedef struct example {
  ax_function f;
  double (*derivative)(double);
} example;
static const example examples[] = {{f_tanh, d_tanh},   {f_logistic, d_logistic}, {f_ratio, d_ratio},
                                   {f_gauss, d_gauss}, {f_cube, d_cube},         {f_log, d_log}};

/* f, f' by jvp, and f'' by jvp of jvp, the last against differences of the closed form. */
static void check_example(const example *e) {
  ax_type type = TEST_SCALAR(AX_F64);
  ax_program *f = test_trace(e->f, NULL, &type, 1, 1), *first, *second;
  TEST_OK(ax_program_jvp(f, AX_ALL_ARGS, &first));
  TEST_OK(ax_program_jvp(first, AX_FIRST(1), &second));
  assert_int_equal(ax_program_in_count(second), 3);
  for (double x = -1.5; x <= 1.5; x += 0.5) {
    double y, once[2], twice[4], h = 1e-5;
    test_run_scalars(f, &x, &y);
    test_run_scalars(first, (double[]){x, 3}, once);
    TEST_NEAR(once[0], y, 1e-15);
    TEST_NEAR(once[1], 3 * e->derivative(x), 1e-14);
    test_run_scalars(second, (double[]){x, 3, 1}, twice);
    TEST_NEAR(twice[2], e->derivative(x), 1e-14);
    TEST_NEAR(twice[3], 3 * (e->derivative(x + h) - e->derivative(x - h)) / (2 * h), 1e-8);
  }
  ax_program_release(f);
  ax_program_release(first);
  ax_program_release(second);
}

static void closed_forms(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(examples); i++) check_example(&examples[i]);
}

/* --- What has a tangent --- */

static void mixed(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(in[0], in[0]);
  out[1] = ax_add(in[1], in[1]); /* s32 */
  out[2] = ax_exp(in[2]);
  out[3] = ax_lt(in[0], in[2]);
}

static void what_has_tangents(void **state) {
  (void)state;
  ax_type types[] = {TEST_SCALAR(AX_F64), TEST_SCALAR(AX_S32), TEST_SCALAR(AX_F64)};
  ax_program *program = test_trace(mixed, NULL, types, 3, 4), *jvp;
  TEST_OK(ax_program_jvp(program, AX_ALL_ARGS, &jvp));
  assert_int_equal(ax_program_in_count(jvp), 5);
  assert_int_equal(ax_program_out_count(jvp), 6);
  ax_program_release(jvp);
  TEST_FAILS(ax_program_jvp(program, AX_ARGS(1), &jvp), AX_INVALID_ARGUMENT, "input 1 is s32[]");
  assert_null(jvp);

  const ax_want want[] = {AX_WANT_ZERO, AX_WANT_ALWAYS, AX_WANT_ALWAYS, AX_WANT_ALWAYS};
  const ax_want wrong[] = {AX_WANT_NEVER, AX_WANT_NEVER, AX_WANT_ZERO, AX_WANT_NEVER};
  TEST_OK(ax_jvp_program(program, (bool[]){false, false, true}, want, &jvp));
  assert_int_equal(ax_program_out_count(jvp), 5); /* result 2 has a tangent; 1 and 3 are no floats */
  ax_program_release(jvp);
  TEST_FAILS(ax_jvp_program(program, (bool[]){false, false, true}, wrong, &jvp), AX_INTERNAL,
             "result 2 has a tangent where none was expected");
  ax_program_release(program);
}

/* A tangent has its value's type also where the tangent alone would vary less. */
static void widening(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(ax_exp(in[0]), in[1]);
}

static void tangents_vary_as_values(void **state) {
  (void)state;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("data=2", &mesh));
  ax_type types[] = {TEST_SCALAR(AX_F64), TEST_SCALAR(AX_F64)};
  types[1].spread.varying = 1;
  ax_program *program, *jvp;
  TEST_OK(ax_trace_on(&mesh, AX_FN(widening, 2, 1), types, &program));
  TEST_OK(ax_program_jvp(program, AX_FIRST(1), &jvp));
  assert_int_equal(ax_program_in_type(jvp, 2)->spread.varying, 0);
  assert_int_equal(ax_program_out_type(jvp, 1)->spread.varying, 1);
  ax_program_release(jvp);
  ax_program_release(program);
}

/* --- linearize --- */

static void deep(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = ax_mul(ax_tanh(in[0]), ax_exp(in[1]));
  out[0] = ax_div(x, ax_add(in[1], ax_full_like(in[1], 3)));
  out[1] = ax_sub(ax_mul(x, x), in[0]);
}

static void linearize_is_jvp(void **state) {
  (void)state;
  ax_type types[] = {TEST_SCALAR(AX_F64), TEST_SCALAR(AX_F64)};
  ax_program *program = test_trace(deep, NULL, types, 2, 2), *jvp, *primal, *tangent;
  uint32_t residuals;
  double x[] = {0.3, -0.7, 1.25, 0.5}, want[4], made[16], dy[2];
  TEST_OK(ax_program_jvp(program, AX_ALL_ARGS, &jvp));
  TEST_OK(ax_program_linearize(program, AX_ALL_ARGS, &primal, &tangent, &residuals));
  assert_int_equal(ax_program_out_count(primal), 2 + residuals);
  assert_int_equal(ax_program_in_count(tangent), residuals + 2);
  test_run_scalars(jvp, x, want);
  test_run_scalars(primal, x, made);
  made[2 + residuals] = x[2];
  made[3 + residuals] = x[3];
  test_run_scalars(tangent, made + 2, dy);
  TEST_NEAR(made[0], want[0], 1e-15);
  TEST_NEAR(dy[0], want[2], 1e-14);
  TEST_NEAR(dy[1], want[3], 1e-14);
  for (uint32_t i = 0; i < jvp->eqn_count; i++) assert_non_null(jvp->eqns[i].prim);
  ax_program *all[] = {program, jvp, primal, tangent};
  for (size_t i = 0; i < AX_COUNT(all); i++) ax_program_release(all[i]);
}

/* The factor 2 of x + x is made again, and x is kept before it is spread over 1,000 elements. */
static void spread(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const int64_t dims[] = {1000};
  ax_value wide = ax_broadcast_in_dim(in[0], AX_LIST(1, dims), NULL);
  out[0] = ax_mul(ax_mul(wide, ax_full_like(wide, 2)), in[1]);
}

static void residuals_are_small(void **state) {
  (void)state;
  ax_type types[] = {TEST_SCALAR(AX_F64), TEST_TYPE(AX_F64, 1000)};
  ax_program *program = test_trace(spread, NULL, types, 2, 1), *primal, *tangent;
  uint32_t residuals;
  TEST_OK(ax_program_linearize(program, AX_FIRST(1), &primal, &tangent, &residuals));
  assert_int_equal(residuals, 1); /* in[1] */
  ax_program_release(primal);
  ax_program_release(tangent);
  ax_program_release(program);
}

/* --- Which inputs have tangents --- */

static ax_program *parse_text(const char *text) {
  ax_program *program;
  TEST_OK(ax_program_parse(text, strlen(text), "t.axle", &program));
  return program;
}

static void floats_have_tangents(void **state) {
  (void)state;
  ax_program *program = parse_text("{ lambda x:f32[2] n:s32[] y:f64[]. let in (y, x) }");
  const bool some[] = {false, false, true}, wrong[] = {true, true, false};
  bool *mask;
  assert_true(ax_has_tangent(program, NULL, 0) && !ax_has_tangent(program, NULL, 1));
  assert_true(ax_has_tangent(program, some, 2) && !ax_has_tangent(program, some, 0));
  TEST_OK(ax_check_wrt(program, NULL));
  TEST_OK(ax_check_wrt(program, some));
  TEST_FAILS(ax_check_wrt(program, wrong), AX_INVALID_ARGUMENT, "input 1 is s32[]: only floats have derivatives");
  TEST_OK(ax_wrt_mask(program, AX_ALL_ARGS, &mask));
  assert_true(mask[0] && !mask[1] && mask[2]);
  ax_free(mask);
  TEST_OK(ax_wrt_mask(program, AX_ARGS(1), &mask)); /* whether it is a float is asked later */
  assert_true(!mask[0] && mask[1] && !mask[2]);
  ax_free(mask);
  TEST_FAILS(ax_wrt_mask(program, AX_ARGS(3), &mask), AX_INVALID_ARGUMENT, "there is no input 3");
  assert_null(mask);
  ax_program_release(program);
}

static void a_loss_is_a_float_scalar(void **state) {
  (void)state;
  ax_program *good = parse_text("{ lambda x:f32[] y:f32[2]. let in (x, y) }"),
             *vector = parse_text("{ lambda y:f32[2]. let in (y,) }"), *integer = parse_text("{ lambda n:s32[]. let in (n,) }"),
             *none = parse_text("{ lambda n:s32[]. let in () }");
  TEST_OK(ax_check_loss(good));
  TEST_FAILS(ax_check_loss(vector), AX_INVALID_ARGUMENT, "it is f32[2]");
  TEST_FAILS(ax_check_loss(integer), AX_INVALID_ARGUMENT, "it is s32[]");
  TEST_FAILS(ax_check_loss(none), AX_INVALID_ARGUMENT, "there is no result");
  ax_program_release(good), ax_program_release(vector), ax_program_release(integer), ax_program_release(none);
}

/* Of a value that varies along x alone there are two, of eight bytes each. */
static void a_value_weighs_what_all_devices_hold(void **state) {
  (void)state;
  ax_program *program = parse_text("{ axes x=2 y=3 ; lambda a:f32[2]{V:x} b:f32[2]. let in (a, b) }");
  assert_true(ax_value_weight(program, 0) == 16 && ax_value_weight(program, 1) == 8);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(closed_forms),
      cmocka_unit_test(what_has_tangents),
      cmocka_unit_test(tangents_vary_as_values),
      cmocka_unit_test(linearize_is_jvp),
      cmocka_unit_test(residuals_are_small),
      cmocka_unit_test(floats_have_tangents),
      cmocka_unit_test(a_loss_is_a_float_scalar),
      cmocka_unit_test(a_value_weighs_what_all_devices_hold),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
