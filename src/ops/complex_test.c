/* Complex numbers: what takes them and what refuses them by name, operations without derivatives of real numbers that have some here,
   conventions of gradients, and numbers beside complex operands. */
#include "ops/complex.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "axle/exec.h"
#include "axle/host.h"
#include "axle/ops.h"
#include "axle/stablehlo.h"
#include "axle/transform.h"
#include "ops/pointwise.h"
#include "prim/rules.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"
#include "base/complex_numbers.h" /* after the record, which has a slot of its macro's name */
#undef complex

/* --- Primitives --- */

/* Those that jax.lax allows and that are here, by what lowers them. */
static void primitives_say_how(void **state) {
  (void)state;
  static const char *const pointwise[] = {"add", "mul", "div", "pow", "max", "atan2", "exp", "atanh", "eq", "abs", "integer_pow"},
                    *const parts[] = {"reshape", "pad", "select_n", "reduce_sum", "cumsum", "slice", "psum", "all_gather"},
                    *const products[] = {"dot_general", "conv_general_dilated"}, *const whole[] = {"constant", "scan", "pvary", "pure_callback", "start"},
                    *const none[] = {"lt", "floor", "erf", "lgamma", "argmax", "top_k", "is_finite", "ref_load", "kernel_call"};
#define EACH(list, rule)                                                                     \
  for (size_t i = 0; i < AX_COUNT(list); i++) {                                              \
    const ax_prim *prim = ax_prim_find(list[i], strlen(list[i]));                            \
    if (prim == NULL || prim->complex != (rule)) fail_msg("%s has another rule", list[i]);    \
  }
  EACH(pointwise, ax_complex_pointwise)
  EACH(parts, ax_complex_parts)
  EACH(products, ax_complex_product)
  EACH(whole, ax_complex_whole)
  EACH(none, NULL)
#undef EACH
}

static void refused(const char *equation, const char *error) {
  char text[256];
  ax_program *program;
  snprintf(text, sizeof text, "{ lambda x:c64[4] y:f32[4] w:f64[4]. let %s in (z,) }", equation);
  TEST_FAILS(ax_program_parse(text, strlen(text), NULL, &program), AX_PARSE_ERROR, error);
}

static void others_refuse(void **state) {
  (void)state;
  refused("z:c64[4] = rem x x", "rem c64[4] c64[4]: operand 0 is c64[4], and rem takes no complex numbers");
  refused("z:bool[4] = lt x x", "lt takes no complex numbers");
  refused("z:c64[4] = bitcast_convert_type[dtype=c64] w", "the bits of a complex number are those of its parts, which real and imag give: f64 to c64");
  refused("z:c64[4] = mul x y", "mul c64[4] f32[4]: operand dtypes differ: c64 and f32");
  refused("z:c64[4] = complex y w", "the parts must be both f32 or both f64, got f32 and f64");
  refused("z:f32[4] = real y", "needs a complex dtype, got f32");
  refused("z:c64[4] = exp[accuracy=2] x", "functions of complex numbers have no bounds in units of the last place");
}

/* --- Evaluation --- */

static void evaluation_is_that_of_c(void **state) {
  (void)state;
  const ax_number x[] = {{.f = 0.5, .imag = -1.25}, {.f = 2, .imag = 0.75}};
  const double _Complex a = CMPLX(0.5, -1.25), b = CMPLX(2, 0.75), quotient = a / b, sine = csin(a);
  ax_number made = ax_complex_eval(AX_SCALAR_DIV, AX_C128, x, 0);
  TEST_NEAR(made.f, creal(quotient), 1e-15);
  TEST_NEAR(made.imag, cimag(quotient), 1e-15);
  made = ax_complex_eval(AX_SCALAR_SIN, AX_C128, x, 0);
  TEST_NEAR(made.f, creal(sine), 1e-15);
  TEST_NEAR(made.imag, cimag(sine), 1e-15);
  assert_true(ax_complex_eval(AX_SCALAR_EQ, AX_C64, x, 0).u == 0 && ax_complex_eval(AX_SCALAR_NE, AX_C64, x, 0).u == 1);
  assert_true(ax_complex_eval(AX_SCALAR_INTEGER_POW, AX_C128, x, 0).f == 1);
}

/* A product is the plain one, as XLA's, not C's: an infinity times i is NaN + infinity i. */
static void products_are_plain(void **state) {
  (void)state;
  const ax_number x[] = {{.f = INFINITY, .imag = 0}, {.f = 0, .imag = 1}};
  const ax_number made = ax_complex_eval(AX_SCALAR_MUL, AX_C64, x, 0);
  assert_true(isnan(made.f) && isinf(made.imag));
}

/* Of c64 they are computed in f64: each part is rounded once, also where terms cancel. */
static AX_BODY(functions) {
  (void)context;
  out[0] = ax_log(in[0]);
  out[1] = ax_log1p(in[0]);
  out[2] = ax_asin(in[0]);
  out[3] = ax_acos(in[0]);
  out[4] = ax_atan(in[0]);
  out[5] = ax_asinh(in[0]);
  out[6] = ax_acosh(in[0]);
  out[7] = ax_atanh(in[0]);
}

static double _Complex log1p_of(double _Complex z) { return clog(CMPLX(1 + creal(z), cimag(z))); }
static bool is_rounded(double made, double exact) {
  return fabs(made - exact) <= 0.51 * (nextafterf((float)fabs(exact), INFINITY) - (float)fabs(exact));
}

static void functions_of_c64_are_rounded_once(void **state) {
  static double _Complex (*const exact[])(double _Complex) = {clog, log1p_of, casin, cacos, catan, casinh, cacosh, catanh};
  const double z[] = {0.6, 0.8001, -1.5211778, 0.6160304, -0.27304316, 0.8598795, 3.5090592, 4.0924478, 2.591592, -2.138027, -6.5, 0.003};
  const ax_type type = TEST_TYPE(AX_C64, 6);
  (void)state;
  ax_program *program = test_trace((ax_function)functions, NULL, &type, 1, 8);
  ax_tensor *in = test_tensor(type, z), *out[8];
  test_run(program, &in, out);
  for (int f = 0; f < 8; f++) {
    for (int i = 0; i < 6; i++) {
      const double _Complex w = exact[f](CMPLX(test_get(in, 2 * i), test_get(in, 2 * i + 1)));
      const double x = test_get(out[f], 2 * i), y = test_get(out[f], 2 * i + 1);
      if (!is_rounded(x, creal(w)) || !is_rounded(y, cimag(w)))
        fail_msg("function %d of element %d is (%.9g,%.9g), and (%.17g,%.17g) exactly", f, i, x, y, creal(w), cimag(w));
    }
    ax_tensor_release(out[f]);
  }
  ax_tensor_release(in), ax_program_release(program);
}

/* --- Gradients: df/dx - i df/dy --- */

static AX_BODY(square_of_size) {
  (void)context;
  ax_value z = ax_mul(in[0], ax_conj(in[0]));
  out[0] = ax_reduce_sum(ax_real_part(z), AX_ALL_DIMS, false);
}
static AX_BODY(size) { (void)context, out[0] = ax_abs(in[0]); }
static AX_BODY(square) { (void)context, out[0] = ax_mul(in[0], in[0]); }

static double _Complex gradient_of(ax_function f, double _Complex z) {
  const double at[] = {creal(z), cimag(z)};
  const ax_type type = TEST_SCALAR(AX_C128);
  ax_program *program = test_trace(f, NULL, &type, 1, 1), *grad;
  ax_tensor *in = test_tensor(type, at), *out;
  TEST_OK(ax_program_grad(program, AX_FIRST(1), &grad));
  test_run(grad, &in, &out);
  const double _Complex made = CMPLX(test_get(out, 0), test_get(out, 1));
  ax_tensor_release(in), ax_tensor_release(out);
  ax_program_release(program), ax_program_release(grad);
  return made;
}

static void gradients_are_those_of_jax(void **state) {
  (void)state;
  double _Complex z = gradient_of(square_of_size, CMPLX(3, -4));
  assert_true(creal(z) == 6 && cimag(z) == 8);
  z = gradient_of(size, CMPLX(3, -4));
  TEST_NEAR(creal(z), 0.6, 1e-15);
  TEST_NEAR(cimag(z), 0.8, 1e-15);
  z = gradient_of(size, 0);
  assert_true(creal(z) == 0 && cimag(z) == 0);
}

static void complex_losses_are_refused(void **state) {
  (void)state;
  const ax_type type = TEST_SCALAR(AX_C64);
  ax_program *program = test_trace(square, NULL, &type, 1, 1), *made;
  TEST_FAILS(ax_program_grad(program, AX_FIRST(1), &made), AX_INVALID_ARGUMENT,
             "the first result must be a float scalar; it is c64[]. vjp differentiates complex results");
  ax_program_release(program);
}

static AX_BODY(whole_derivative) { (void)context, ax_jacfwd(AX_FN(square, 1, 1), AX_FIRST(1), AX_LIST(1, in), AX_LIST(1, out)); }

static void jacobians_are_refused(void **state) {
  (void)state;
  const ax_type type = TEST_SCALAR(AX_C64);
  ax_program *program;
  TEST_FAILS(ax_trace(AX_FN(whole_derivative, 1, 1), &type, &program), AX_INVALID_ARGUMENT, "Jacobians are by floats of floats");
}

/* --- Memory of C --- */

static AX_BODY(turned) { (void)context, out[0] = ax_add(ax_mul(in[0], in[1]), ax_integer(1)); }

/* C's own complex numbers, and a real number beside them. */
static void arrays_of_c(void **state) {
  (void)state;
  float _Complex numbers[] = {1, I, 2 - I};
  const float _Complex by = I;
  ax_host_array x = AX_HOST(numbers), y = AX_HOST(by), made;
  assert_true(x.dtype == AX_C64 && x.rank == 1 && y.rank == 0);
  TEST_OK(ax_apply(NULL, AX_FN(turned, 2, 1), ((ax_host_array[]){x, y}), &made));
  const float _Complex *z = made.data;
  for (int i = 0; i < 3; i++) assert_true(z[i] == numbers[i] * by + 1);
  assert_true(ax_host_at(&made, 1) == 0);
  ax_host_array_release(&made);
}

/* --- StableHLO --- */

static void stablehlo_has_them(void **state) {
  (void)state;
  static const char text[] = "{ lambda x:c64[2] y:f32[2]. let a:c64[2] = complex y y b:c64[2] = mul a x c:c64[2] = conj b "
                             "d:c64[2] = add c (1.5,-2.0):c64[] in (d,) }";
  static const char good[] = "{ lambda x:c64[2] y:f32[2]. let a:c64[2] = complex y y b:c64[2] = mul a x c:c64[2] = conj b "
                             "k:c64[2] = constant[value=(1.5,-2.0):c64[2]] d:c64[2] = add c k in (d,) }";
  static const char *const lines[] = {"stablehlo.complex", "(tensor<2xf32>, tensor<2xf32>) -> tensor<2xcomplex<f32>>", "stablehlo.real",
                                      "stablehlo.imag", "dense<(1.5e+00, -2.0e+00)> : tensor<2xcomplex<f32>>"};
  ax_program *program;
  char *module;
  TEST_FAILS(ax_program_parse(text, strlen(text), NULL, &program), AX_PARSE_ERROR, "operand shapes differ");
  TEST_OK(ax_program_parse(good, strlen(good), NULL, &program));
  TEST_OK(ax_program_stablehlo(program, &module));
  for (size_t i = 0; i < AX_COUNT(lines); i++)
    if (strstr(module, lines[i]) == NULL) fail_msg("no %s in\n%s", lines[i], module);
  ax_string_free(module);
  ax_program_release(program);
}

/* --- Pieces of an array that lies in memory, in a loop, and of one whose parts were just computed --- */

static AX_BODY(pieces_of_carry) {
  static const int64_t one[] = {1, 1}, column[] = {5, 1};
  const ax_value i = in[0], zero = ax_full(AX_S32, AX_DIMS(), 0), at[] = {i, zero}, across[] = {zero, i}, next[] = {i, ax_full(AX_S32, AX_DIMS(), 3)};
  ax_value x = in[1];
  if (*(const bool *)context) x = ax_mul(x, x);
  const ax_value z = (ax_dynamic_slice)(x, 2, at, 2, one), w = (ax_dynamic_slice)(x, 2, across, 2, column);
  x = (ax_dynamic_update_slice)(x, ax_mul(z, ax_reduce_sum(w, AX_DIMS(0), true)), 2, next);
  x = (ax_dynamic_update_slice)(x, ax_add(w, z), 2, across);
  x = (ax_at_add)(x, ax_reshape(i, AX_DIMS(1)), (ax_dynamic_slice)(x, 2, at, 2, (const int64_t[]){1, 5}), 0, NULL);
  out[0] = (ax_at_set)(x, ax_reshape(i, AX_DIMS(1)), w, 1, NULL);
}

static AX_BODY(loop_of_pieces) { (ax_fori_loop)(ax_integer(0), ax_integer(5), (ax_fn){pieces_of_carry, 2, 1, context}, 1, in, 1, out); }

static void pieces_in_loops(void **state) {
  (void)state;
  static const ax_dtype dtypes[] = {AX_C64, AX_C128};
  for (int d = 0; d < 2; d++)
    for (int computed = 0; computed < 2; computed++) {
      bool is_computed = computed == 1;
      const ax_type type = TEST_TYPE(dtypes[d], 5, 5);
      test_random random = {9};
      ax_program *program = test_trace(loop_of_pieces, &is_computed, &type, 1, 1);
      ax_tensor *x = test_random_tensor(&random, type, -0.5, 0.5);
      TEST_EVERY_WAY(program, &x, 1e-5);
      ax_tensor_release(x), ax_program_release(program);
    }
}

/* --- Transposes and gathers, of an array in memory and of one that is computed; of few elements and of many --- */

static AX_BODY(moves) {
  out[0] = ax_transpose(in[0], AX_DIMS(1, 2, 0));
  out[1] = ax_mul(ax_transpose(ax_exp(in[0]), AX_DIMS(2, 0, 1)), ax_transpose(in[0], AX_DIMS(2, 0, 1)));
  const ax_value at = ax_sub(ax_iota(AX_S32, AX_DIMS(6), 0), ax_integer(1)), first = ax_take(in[0], at, 0); /* some are outside */
  out[3] = ax_add(first, ax_take_with(ax_exp(in[0]), at, 0, (&(ax_index_options){.mode = AX_INDEX_FILL})));
  out[4] = ax_take_with(in[0], at, 2, (&(ax_index_options){.mode = AX_INDEX_FILL}));
  out[2] = ax_transpose(ax_slice(in[0], AX_DIMS(1, 0, 0), AX_DIMS(2, 3, 4), AX_DIMS(1, 1, 1)), AX_DIMS(1, 2, 0)); /* the same memory */
}

static void moved_numbers(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_C64, 3, 3, 4), TEST_TYPE(AX_C64, 17, 5, 19), TEST_TYPE(AX_C64, 32, 3, 32), TEST_TYPE(AX_C128, 17, 5, 19)};
  for (size_t i = 0; i < AX_COUNT(types); i++) {
    test_random random = {4};
    ax_program *program = test_trace(moves, NULL, &types[i], 1, 5);
    ax_tensor *x = test_random_tensor(&random, types[i], -1, 1);
    TEST_EVERY_WAY(program, &x, 1e-5);
    ax_tensor_release(x), ax_program_release(program);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(primitives_say_how),         cmocka_unit_test(others_refuse),
      cmocka_unit_test(evaluation_is_that_of_c),    cmocka_unit_test(products_are_plain),
      cmocka_unit_test(gradients_are_those_of_jax), cmocka_unit_test(complex_losses_are_refused),
      cmocka_unit_test(jacobians_are_refused),      cmocka_unit_test(arrays_of_c),
      cmocka_unit_test(stablehlo_has_them),         cmocka_unit_test(functions_of_c64_are_rounded_once),
      cmocka_unit_test(pieces_in_loops),            cmocka_unit_test(moved_numbers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
