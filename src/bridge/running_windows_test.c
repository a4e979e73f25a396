/* Windows that see all elements up to their place, or all from it on, are read as cumsum and its like: which are, and what they give. */
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(running_ones), cmocka_unit_test(others)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
