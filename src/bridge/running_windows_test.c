/* Windows that see all elements up to their place, or all from it on, are read as cumsum and its like: which are, and what they give. */
#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "axle/exec.h"
#include "axle/stablehlo.h"
#include "support/cmocka.h"
#include "support/run.h"

typedef struct windows {
  const char *body, *start, *sizes, *padding, *read_as; /* NULL: as windows of any kind */
  double wanted[6];                                     /* of the two rows 1 2 3 and 4 0 6 */
} windows;

static ax_program *import(const windows *w) {
  char text[1024];
  ax_program *program;
  snprintf(text, sizeof text,
           "func.func @main(%%a: tensor<2x3xf32>) -> tensor<2x3xf32> {\n"
           "  %%z = stablehlo.constant dense<%s> : tensor<f32>\n"
           "  %%0 = \"stablehlo.reduce_window\"(%%a, %%z) <{padding = dense<%s> : tensor<2x2xi64>, window_dimensions = array<i64: %s>}> ({\n"
           "  ^bb0(%%x: tensor<f32>, %%y: tensor<f32>):\n    %%s = stablehlo.%s %%x, %%y : tensor<f32>\n"
           "    stablehlo.return %%s : tensor<f32>\n  }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>\n"
           "  return %%0 : tensor<2x3xf32>\n}\n",
           w->start, w->padding, w->sizes, w->body);
  if (ax_program_from_stablehlo(text, strlen(text), "m.mlir", &program) != AX_OK) fail_msg("%s\n%s", ax_message(), text);
  return program;
}

static void expect(const windows *w) {
  const ax_type type = TEST_TYPE(AX_F32, 2, 3);
  ax_program *program = import(w);
  ax_tensor *x = test_tensor(type, (const double[]){1, 2, 3, 4, 0, 6}), *wanted = test_tensor(type, w->wanted), *y;
  char *text;
  TEST_OK(ax_program_print(program, &text));
  if (w->read_as != NULL && strstr(text, w->read_as) == NULL) fail_msg("there is no %s in\n%s", w->read_as, text);
  if (w->read_as == NULL && strstr(text, " cum") != NULL) fail_msg("what is no running window was read as one:\n%s", text);
  test_run(program, &x, &y);
  TEST_TENSORS_NEAR(y, wanted, 0);
  TEST_EVERY_WAY(program, &x, 0);
  ax_string_free(text);
  ax_tensor_release(x), ax_tensor_release(y), ax_tensor_release(wanted);
  ax_program_release(program);
}

#define LOW "[[0, 0], [2, 0]]"
#define HIGH "[[0, 0], [0, 2]]"

static void running_ones(void **state) {
  (void)state;
  static const windows rows[] = {
      {"add", "0.0", "1, 3", LOW, "cumsum[axis=1 reverse=false]", {1, 3, 6, 4, 4, 10}},
      {"add", "0.0", "1, 3", HIGH, "cumsum[axis=1 reverse=true]", {6, 5, 3, 10, 6, 6}},
      {"add", "-0.0", "2, 1", "[[1, 0], [0, 0]]", "cumsum[axis=0 reverse=false]", {1, 2, 3, 5, 2, 9}},
      {"multiply", "1.0", "1, 3", LOW, "cumprod[axis=1 reverse=false]", {1, 2, 6, 4, 0, 0}},
      {"multiply", "1.0", "2, 1", "[[0, 1], [0, 0]]", "cumprod[axis=0 reverse=true]", {4, 0, 18, 4, 0, 6}},
      {"maximum", "0xFF800000", "1, 3", LOW, "cummax[axis=1 reverse=false]", {1, 2, 3, 4, 4, 6}},
      {"minimum", "0x7F800000", "1, 3", HIGH, "cummin[axis=1 reverse=true]", {1, 2, 3, 0, 0, 6}},
  };
  for (size_t i = 0; i < AX_COUNT(rows); i++) expect(&rows[i]);
}

static void others(void **state) {
  (void)state;
  static const windows rows[] = {
      {"add", "0.0", "1, 2", "[[0, 0], [1, 0]]", NULL, {1, 3, 5, 4, 4, 6}},             /* not all up to there */
      {"multiply", "1.0", "1, 3", "[[0, 0], [1, 1]]", NULL, {2, 6, 6, 0, 0, 0}},        /* around it */
      {"multiply", "1.0", "2, 3", "[[1, 0], [2, 0]]", NULL, {1, 2, 6, 4, 0, 0}},        /* along both */
      {"multiply", "2.0", "1, 3", LOW, NULL, {8, 8, 12, 32, 0, 0}},                     /* the padding counts as well as the start */
      {"maximum", "2.0", "1, 3", LOW, NULL, {2, 2, 3, 4, 4, 6}},
      {"subtract", "0.0", "1, 1", "[[0, 0], [0, 0]]", NULL, {-1, -2, -3, -4, 0, -6}},
  };
  for (size_t i = 0; i < AX_COUNT(rows); i++) expect(&rows[i]);
}

/* JAX's cumlogsumexp, with a compare's direction, the operand of a negation and the last operation's operands. */
static ax_program *import_logs(const char *direction, const char *negated, const char *selected, const char *padding) {
  char text[2048];
  ax_program *program;
  snprintf(text, sizeof text,
           "func.func @main(%%a: tensor<2x3xf32>) -> tensor<2x3xf32> {\n"
           "  %%z = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
           "  %%0 = \"stablehlo.reduce_window\"(%%a, %%z) <{padding = dense<%s> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 3>}> ({\n"
           "  ^bb0(%%x: tensor<f32>, %%y: tensor<f32>):\n"
           "    %%1 = stablehlo.maximum %%x, %%y : tensor<f32>\n    %%2 = stablehlo.subtract %%x, %%y : tensor<f32>\n"
           "    %%3 = stablehlo.compare %s, %%2, %%2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
           "    %%4 = stablehlo.add %%x, %%y : tensor<f32>\n    %%5 = stablehlo.abs %%2 : tensor<f32>\n"
           "    %%6 = stablehlo.negate %s : tensor<f32>\n    %%7 = stablehlo.exponential %%6 : tensor<f32>\n"
           "    %%8 = stablehlo.log_plus_one %%7 : tensor<f32>\n    %%9 = stablehlo.add %%1, %%8 : tensor<f32>\n"
           "    %%10 = stablehlo.select %%3, %s : tensor<i1>, tensor<f32>\n    stablehlo.return %%10 : tensor<f32>\n"
           "  }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>\n  return %%0 : tensor<2x3xf32>\n}\n",
           padding, direction, negated, selected);
  if (ax_program_from_stablehlo(text, strlen(text), "m.mlir", &program) != AX_OK) fail_msg("%s\n%s", ax_message(), text);
  return program;
}

static void logarithms_of_sums(void **state) {
  (void)state;
  static const double elements[] = {1, 2, 3, 4, 0, 6};
  static const struct {
    const char *direction, *negated, *selected, *padding, *read_as;
  } rows[] = {{"NE", "%5", "%4, %9", LOW, "cumlogsumexp[axis=1 reverse=false]"},
              {"NE", "%5", "%4, %9", HIGH, "cumlogsumexp[axis=1 reverse=true]"},
              {"EQ", "%5", "%9, %4", LOW, NULL},
              {"NE", "%2", "%4, %9", LOW, NULL},
              {"NE", "%5", "%9, %9", LOW, NULL}};
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    ax_program *program = import_logs(rows[i].direction, rows[i].negated, rows[i].selected, rows[i].padding);
    char *text;
    TEST_OK(ax_program_print(program, &text));
    if (rows[i].read_as == NULL) assert_null(strstr(text, " cum"));
    else assert_non_null(strstr(text, rows[i].read_as));
    ax_tensor *x = test_tensor(TEST_TYPE(AX_F32, 2, 3), elements), *y;
    test_run(program, &x, &y);
    const bool back = strcmp(rows[i].padding, HIGH) == 0;
    for (int row = 0; row < 2 && rows[i].read_as != NULL; row++)
      for (int k = 0; k < 3; k++) {
        double sum = 0;
        for (int e = back ? k : 0; e <= (back ? 2 : k); e++) sum += exp(elements[3 * row + e]);
        assert_true(fabs(((float *)y->data)[3 * row + k] - log(sum)) < 2e-6);
      }
    ax_string_free(text);
    ax_tensor_release(x), ax_tensor_release(y);
    ax_program_release(program);
  }
}

/* logaddexp of complex numbers as JAX writes it, but for the range of the imaginary part. From -inf it gives NaN where two starts meet. */
static ax_program *import_complex_logs(const char *start, const char *padding) {
  char text[2048];
  ax_program *program;
  snprintf(text, sizeof text,
           "func.func @main(%%a: tensor<2x3xcomplex<f32>>) -> tensor<2x3xcomplex<f32>> {\n"
           "  %%z = stablehlo.constant dense<(%s)> : tensor<complex<f32>>\n"
           "  %%0 = \"stablehlo.reduce_window\"(%%a, %%z) <{padding = dense<%s> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 3>}> ({\n"
           "  ^bb0(%%x: tensor<complex<f32>>, %%y: tensor<complex<f32>>):\n"
           "    %%1 = stablehlo.real %%x : (tensor<complex<f32>>) -> tensor<f32>\n"
           "    %%2 = stablehlo.real %%y : (tensor<complex<f32>>) -> tensor<f32>\n"
           "    %%3 = stablehlo.compare GT, %%1, %%2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
           "    %%4 = stablehlo.select %%3, %%x, %%y : tensor<i1>, tensor<complex<f32>>\n"
           "    %%5 = stablehlo.add %%x, %%y : tensor<complex<f32>>\n    %%6 = stablehlo.add %%4, %%4 : tensor<complex<f32>>\n"
           "    %%7 = stablehlo.subtract %%5, %%6 : tensor<complex<f32>>\n    %%8 = stablehlo.exponential %%7 : tensor<complex<f32>>\n"
           "    %%9 = stablehlo.log_plus_one %%8 : tensor<complex<f32>>\n    %%10 = stablehlo.add %%4, %%9 : tensor<complex<f32>>\n"
           "    stablehlo.return %%10 : tensor<complex<f32>>\n"
           "  }) : (tensor<2x3xcomplex<f32>>, tensor<complex<f32>>) -> tensor<2x3xcomplex<f32>>\n"
           "  return %%0 : tensor<2x3xcomplex<f32>>\n}\n",
           start, padding);
  if (ax_program_from_stablehlo(text, strlen(text), "m.mlir", &program) != AX_OK) fail_msg("%s\n%s", ax_message(), text);
  return program;
}

/* The logarithm of the sum of exp(z) over the elements first .. last of a row, and of exp(start). */
static float _Complex log_of_sum(const double *row, int first, int last, double start) {
  double _Complex sum = exp(start);
  for (int e = first; e <= last; e++) sum += cexp(CMPLX(row[2 * e], row[2 * e + 1]));
  return (float _Complex)clog(sum);
}

/* Padding is left out where the start is -inf. Where it is not, as of 0, a window of n places has n starts or more, which count. */
static void logarithms_of_complex_sums(void **state) {
  (void)state;
  static const double elements[2][6] = {{1, .5, 2, -1, -3, 0.25}, {4, 0, 0, 2, 6, -.5}};
  static const char *const paddings[] = {LOW, HIGH};
  for (int back = 0; back < 2; back++) {
    ax_program *program = import_complex_logs("0xFF800000, 0.0", paddings[back]);
    ax_tensor *x = test_tensor(TEST_TYPE(AX_C64, 2, 3), elements[0]), *y;
    test_run(program, &x, &y);
    for (int row = 0; row < 2; row++)
      for (int k = 0; k < 3; k++) {
        const float _Complex wanted = log_of_sum(elements[row], back ? k : 0, back ? 2 : k, -INFINITY);
        assert_true(cabsf(((float _Complex *)y->data)[3 * row + k] - wanted) < 4e-6f);
      }
    TEST_EVERY_WAY(program, &x, 4e-6);
    ax_tensor_release(x), ax_tensor_release(y);
    ax_program_release(program);
  }
  ax_program *program = import_complex_logs("0.0, 0.0", LOW);
  ax_tensor *x = test_tensor(TEST_TYPE(AX_C64, 2, 3), elements[0]), *y;
  test_run(program, &x, &y);
  assert_true(cabsf(((float _Complex *)y->data)[0] - log_of_sum(elements[0], 0, 0, log(3))) < 4e-6f);
  ax_tensor_release(x), ax_tensor_release(y);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(running_ones), cmocka_unit_test(others), cmocka_unit_test(logarithms_of_sums),
                                     cmocka_unit_test(logarithms_of_complex_sums)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
