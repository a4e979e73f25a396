/* Transforms on functions inside a trace, nested. */
#include <math.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "ir/transform.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/tensor.h"

static ax_status run(ax_function f, const double *x, uint32_t in_count, double *y, uint32_t out_count) {
  ax_type types[8];
  ax_program *program;
  for (uint32_t i = 0; i < in_count; i++) types[i] = TEST_SCALAR(AX_F64);
  ax_status status = ax_trace(AX_FN(f, in_count, out_count), types, &program);
  if (status != AX_OK) return status;
  TEST_OK(ax_program_verify(program));
  test_run_scalars(program, x, y);
  ax_program_release(program);
  return AX_OK;
}

static void cube(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(in[0], ax_mul(in[0], in[0]));
}

/* x^3 c, where the context is the handle of c: of an enclosing trace */
static void scaled_cube(const ax_value *in, ax_value *out, void *context) {
  cube(in, out, NULL);
  out[0] = ax_mul(out[0], *(ax_value *)context);
}

/* --- grad --- */

static void grads(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value c = ax_exp(in[1]);
  ax_value_and_grad(AX_CLOSURE(scaled_cube, 1, 1, &c), AX_FIRST(1), in, out);
}

static void captured_values(void **state) {
  (void)state;
  double x[] = {2, 0.5}, y[2];
  TEST_OK(run(grads, x, 2, y, 2));
  TEST_NEAR(y[0], 8 * exp(0.5), 1e-15);
  TEST_NEAR(y[1], 12 * exp(0.5), 1e-15);
}

/* More values of the enclosing trace than are looked through one by one, each used twice. */
enum { many = 100 };
static void many_captured(const ax_value *in, ax_value *out, void *context) {
  const ax_value *c = context;
  out[0] = ax_mul(in[0], in[0]);
  for (int i = 0; i < many; i++) out[0] = ax_add(out[0], ax_mul(in[0], ax_mul(c[i], c[i])));
}

static void grad_of_many(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value c[many];
  for (int i = 0; i < many; i++) c[i] = i % 2 == 0 ? ax_exp(in[1]) : in[1];
  ax_grad(AX_CLOSURE(many_captured, 1, 1, c), AX_FIRST(1), in, out);
}

static void many_captured_values(void **state) {
  (void)state;
  double x[] = {3, 0.25}, y;
  TEST_OK(run(grad_of_many, x, 2, &y, 1));
  TEST_NEAR(y, 6 + many / 2 * (exp(0.5) + 0.0625), 1e-14);
}

static void first_order(const ax_value *in, ax_value *out, void *context) {
  ax_grad(AX_CLOSURE(cube, 1, 1, context), AX_FIRST(1), in, out);
}
static void second_order(const ax_value *in, ax_value *out, void *context) {
  ax_grad(AX_CLOSURE(first_order, 1, 1, context), AX_FIRST(1), in, out);
}
static void third_order(const ax_value *in, ax_value *out, void *context) {
  ax_grad(AX_CLOSURE(second_order, 1, 1, context), AX_FIRST(1), in, out);
}

static void nested_grads(void **state) {
  (void)state;
  double x = 5, y;
  TEST_OK(run(second_order, &x, 1, &y, 1));
  assert_true(y == 30);
  TEST_OK(run(third_order, &x, 1, &y, 1));
  assert_true(y == 6);
}

/* d/dc of d/dx x^3 c: by a value that the inner grad captures. */
static void inner_grad(const ax_value *in, ax_value *out, void *context) {
  ax_value c = in[0];
  ax_grad(AX_CLOSURE(scaled_cube, 1, 1, &c), AX_FIRST(1), context, out);
}
static void through_capture(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = in[0];
  ax_grad(AX_CLOSURE(inner_grad, 1, 1, &x), AX_FIRST(1), &in[1], out);
}

static void grad_through_captures(void **state) {
  (void)state;
  double x[] = {3, 7}, y;
  TEST_OK(run(through_capture, x, 2, &y, 1));
  assert_true(y == 27);
}

/* --- jvp --- */

static void product(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(in[0], in[1]);
  out[1] = ax_lt(in[0], in[1]);
  out[2] = ax_full_like(in[0], 1);
}
static void jvp_product(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value made[6];
  ax_jvp(AX_FN(product, 2, 3), AX_FIRST(2), in, in + 2, made, made + 3);
  out[0] = made[0];
  out[1] = made[3];
  out[2] = made[5];
  assert_true(ax_typeof(made[4]).dtype == AX_BOOL);
}
/* Forward over reverse: a Hessian times a vector. */
static void hessian_vector(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value made[2];
  ax_jvp(AX_FN(first_order, 1, 1), AX_FIRST(1), in, in + 1, made, made + 1);
  out[0] = made[1];
}

static void forward(void **state) {
  (void)state;
  double x[] = {2, 3, 10, 100}, y[3];
  TEST_OK(run(jvp_product, x, 4, y, 3));
  assert_true(y[0] == 6 && y[1] == 230 && y[2] == 0);
  TEST_OK(run(hessian_vector, x, 2, y, 1));
  assert_true(y[0] == 36);
}

/* --- vmap --- */

enum { size = 4 };

static ax_value row(void) { return ax_iota(AX_F64, AX_DIMS(size), 0); }
static ax_value total(ax_value x) { return ax_reduce_sum(x, AX_ALL_DIMS, false); }

/* The sum over i of (i + x)^3: its derivative by grad of vmap. */
static void vmapped(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_vmap_options options = {0};
  ax_value shifted = ax_add(row(), in[0]), cubes;
  ax_vmap(AX_FN(cube, 1, 1), &shifted, &cubes, &options);
  out[0] = total(cubes);
}
static void grad_of_vmap(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value_and_grad(AX_FN(vmapped, 1, 1), AX_FIRST(1), in, out);
}
/* The same by vmap of grad. */
static void vmap_of_grad(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_vmap_options options = {0};
  ax_value shifted = ax_add(row(), in[0]), slopes;
  ax_vmap(AX_FN(first_order, 1, 1), &shifted, &slopes, &options);
  out[0] = total(slopes);
}

static void vmap_and_grad(void **state) {
  (void)state;
  double x = 0.5, y[2], value = 0, slope = 0;
  for (int i = 0; i < size; i++) {
    value += pow(i + x, 3);
    slope += 3 * pow(i + x, 2);
  }
  TEST_OK(run(grad_of_vmap, &x, 1, y, 2));
  TEST_NEAR(y[0], value, 1e-15);
  TEST_NEAR(y[1], slope, 1e-15);
  TEST_OK(run(vmap_of_grad, &x, 1, y, 1));
  TEST_NEAR(y[0], slope, 1e-15);
}

/* Captured values are not mapped; in_axes and out_axes -1. */
static void plus_captured(const ax_value *in, ax_value *out, void *context) {
  out[0] = ax_add(ax_mul(in[0], in[1]), *(ax_value *)context);
  out[1] = in[1];
}
static void vmap_captures(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_vmap_options options = {.in_axes = {AX_DIMS(0, AX_NOT_MAPPED)}, .out_axes = {AX_DIMS(0, AX_NOT_MAPPED)}};
  ax_value operands[] = {row(), in[0]}, c = in[1], made[2];
  ax_vmap(AX_CLOSURE(plus_captured, 2, 2, &c), operands, made, &options);
  out[0] = total(made[0]);
  out[1] = made[1];
}

/* Each member less the mean over the named axis; and grad inside, where the psum's transpose is a psum. */
static void centred(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value off = ax_sub(in[0], ax_pmean(in[0], "i"));
  out[0] = ax_mul(off, off);
}
static void grad_centred(const ax_value *in, ax_value *out, void *context) {
  ax_value_and_grad(AX_CLOSURE(centred, 1, 1, context), AX_FIRST(1), in, out);
}
static void vmap_named(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_vmap_options options = {.axis_name = "i"};
  ax_value x = ax_mul(row(), in[0]), made[2];
  ax_vmap(AX_FN(grad_centred, 1, 2), &x, made, &options);
  out[0] = total(made[0]);
  out[1] = total(ax_mul(made[1], row()));
}

static void vmap_forms(void **state) {
  (void)state;
  double x[] = {2, 3}, y[2];
  TEST_OK(run(vmap_captures, x, 2, y, 2));
  assert_true(y[0] == 2 * 6 + 4 * 3 && y[1] == 2);
  /* sum of (2i - 3)^2 over i = 0..3; gradient of that sum by member i: 2 (2i - 3) */
  TEST_OK(run(vmap_named, x, 1, y, 2));
  TEST_NEAR(y[0], 20, 1e-15);
  TEST_NEAR(y[1], 2 * (-1 * 1 + 1 * 2 + 3 * 3), 1e-15);
}

/* --- Refusals --- */

static void grad_of_vector(const ax_value *in, ax_value *out, void *context) {
  (void)in, (void)context;
  ax_value x = row();
  ax_grad(AX_FN(cube, 1, 1), AX_FIRST(1), &x, out);
}
static void grad_by_integer(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value operands[] = {ax_convert_element_type(in[0], AX_S32), in[0]};
  ax_grad(AX_FN(cube, 2, 1), AX_FIRST(1), operands, out);
}
static void grad_by_too_many(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value made[2];
  ax_grad(AX_FN(cube, 1, 1), AX_FIRST(2), in, made);
  out[0] = made[0];
}
static void jvp_wrong_tangent(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value operands[] = {in[0], row()}, made[2];
  ax_jvp(AX_FN(cube, 1, 1), AX_FIRST(1), operands, operands + 1, made, made + 1);
  out[0] = made[0];
}
static void vmap_sizes(const ax_value *in, ax_value *out, void *context) {
  (void)in;
  const int64_t three[] = {3, 4};
  ax_value operands[] = {row(), ax_full(AX_F64, AX_LIST(2, three), 1)}, made[3];
  const ax_vmap_options options = {0};
  ax_vmap(AX_CLOSURE(product, 2, 3, context), operands, made, &options);
  out[0] = made[0];
}
static void vmap_scalar(const ax_value *in, ax_value *out, void *context) {
  const ax_vmap_options options = {0};
  ax_vmap(AX_CLOSURE(cube, 1, 1, context), in, out, &options);
}
static void vmap_nothing(const ax_value *in, ax_value *out, void *context) {
  const ax_vmap_options options = {.in_axes = {AX_DIMS(AX_NOT_MAPPED)}};
  ax_vmap(AX_CLOSURE(cube, 1, 1, context), in, out, &options);
}
static void bad_body(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], row());
  out[0] = ax_add(out[0], ax_full(AX_F64, AX_DIMS(3), 0));
}
static void grad_of_bad_body(const ax_value *in, ax_value *out, void *context) {
  ax_grad(AX_CLOSURE(bad_body, 1, 1, context), AX_FIRST(1), in, out);
}
static void name_in_use(const ax_value *in, ax_value *out, void *context) {
  const ax_vmap_options options = {.axis_name = "i"};
  ax_value x = ax_add(in[0], row());
  ax_vmap(AX_CLOSURE(vmap_named, 1, 1, context), &x, out, &options);
}

static void refusals(void **state) {
  (void)state;
  double x[] = {1, 1}, y[2];
  TEST_FAILS(run(grad_of_vector, x, 1, y, 1), AX_INVALID_ARGUMENT, "grad: the first result must be a float scalar; it is f64[4]");
  TEST_FAILS(run(grad_by_integer, x, 1, y, 1), AX_INVALID_ARGUMENT, "grad: operand 0 is s32[]");
  TEST_FAILS(run(grad_by_too_many, x, 1, y, 1), AX_INVALID_ARGUMENT, "grad: there is no operand 1: there is 1");
  TEST_FAILS(run(jvp_wrong_tangent, x, 1, y, 1), AX_INVALID_ARGUMENT, "operand 0 is f64[], but its tangent is f64[4]");
  TEST_FAILS(run(vmap_sizes, x, 1, y, 1), AX_INVALID_ARGUMENT,
             "in_axes[1]=0 of f64[3,4] has size 3, but the size is 4");
  TEST_FAILS(run(vmap_scalar, x, 1, y, 1), AX_INVALID_ARGUMENT, "in_axes[0]=0 of f64[] is out of range");
  TEST_FAILS(run(vmap_nothing, x, 1, y, 1), AX_INVALID_ARGUMENT, "in_axes maps no operand");
  TEST_FAILS(run(grad_of_bad_body, x, 1, y, 1), AX_INVALID_ARGUMENT, "f64[4] f64[3]");
  TEST_FAILS(run(name_in_use, x, 1, y, 2), AX_INVALID_ARGUMENT, "there is an axis \"i\" already");
}

static ax_status trace_nested(void *context) {
  (void)context;
  ax_type type = TEST_SCALAR(AX_F64);
  ax_program *program;
  ax_status status = ax_trace(AX_FN(vmap_named, 1, 2), &type, &program);
  ax_program_release(program);
  return status;
}

static void survives_lack_of_memory(void **state) {
  (void)state;
  assert_true(test_each_allocation(trace_nested, NULL) > 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(captured_values),
      cmocka_unit_test(many_captured_values),
      cmocka_unit_test(nested_grads),
      cmocka_unit_test(grad_through_captures),
      cmocka_unit_test(forward),
      cmocka_unit_test(vmap_and_grad),
      cmocka_unit_test(vmap_forms),
      cmocka_unit_test(refusals),
      cmocka_unit_test(survives_lack_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
