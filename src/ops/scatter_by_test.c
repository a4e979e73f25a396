/* Scatters of several arrays, and by any body: modules that check their own results, and the function itself. */
#include <string.h>

#include "axle/stablehlo.h"
#include "ops/scatter.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/random.h"
#include "support/run.h"

#define C(name, value, type) "  " name " = stablehlo.constant dense<" value "> : " type "\n"
#define EQ(value, wanted, type) "  check.expect_eq_const " value ", dense<" wanted "> : " type "\n"
#define NUMBERS(lists, rest) "<{scatter_dimension_numbers = #stablehlo.scatter<" lists ", index_vector_dim = 1>" rest "}>"
#define SQUARE_AND_ADD                                                                                                    \
  " ({\n  ^bb0(%x: tensor<f32>, %u: tensor<f32>):\n    %1 = stablehlo.multiply %x, %x : tensor<f32>\n"                    \
  "    %2 = stablehlo.add %1, %u : tensor<f32>\n    stablehlo.return %2 : tensor<f32>\n  })"

static const char *const modules[] = {
    /* two arrays; the same element twice, in order; one index outside */
    C("%a", "[1.0, 10.0]", "tensor<2xf32>") C("%b", "[100, 200]", "tensor<2xi32>") C("%i", "[[0], [0], [1], [5]]", "tensor<4x1xi32>")
    C("%u", "[1.0, 2.0, 3.0, 4.0]", "tensor<4xf32>") C("%v", "[1, 2, 3, 4]", "tensor<4xi32>")
    "  %0:2 = \"stablehlo.scatter\"(%a, %b, %i, %u, %v) " NUMBERS("inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]", "") " ({\n"
    "  ^bb0(%x: tensor<f32>, %y: tensor<i32>, %p: tensor<f32>, %q: tensor<i32>):\n    %1 = stablehlo.add %x, %x : tensor<f32>\n"
    "    %2 = stablehlo.add %1, %p : tensor<f32>\n    %3 = stablehlo.constant dense<3> : tensor<i32>\n"
    "    %4 = stablehlo.multiply %y, %3 : tensor<i32>\n    %5 = stablehlo.subtract %4, %q : tensor<i32>\n"
    "    stablehlo.return %2, %5 : tensor<f32>, tensor<i32>\n  }) : (tensor<2xf32>, tensor<2xi32>, tensor<4x1xi32>, tensor<4xf32>, "
    "tensor<4xi32>) -> (tensor<2xf32>, tensor<2xi32>)\n"
    EQ("%0#0", "[8.0, 23.0]", "tensor<2xf32>") EQ("%0#1", "[895, 597]", "tensor<2xi32>"),
    /* windows, one over the other; the window in front of the indices */
    C("%a", "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]", "tensor<2x3xf32>") C("%i", "[[1], [1]]", "tensor<2x1xi32>")
    C("%u", "[[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]]", "tensor<3x2xf32>")
    "  %0 = \"stablehlo.scatter\"(%a, %i, %u) "
    NUMBERS("update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]", "") SQUARE_AND_ADD
    " : (tensor<2x3xf32>, tensor<2x1xi32>, tensor<3x2xf32>) -> tensor<2x3xf32>\n"
    EQ("%0", "[[1.0, 2.0, 3.0], [291.0, 678.0, 1371.0]]", "tensor<2x3xf32>"),
    /* indices that are unique, and windows that are not whole; one is outside */
    C("%a", "[1.0, 2.0, 3.0, 4.0, 5.0]", "tensor<5xf32>") C("%i", "[[3], [0], [4]]", "tensor<3x1xi32>")
    C("%u", "[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]", "tensor<3x2xf32>")
    "  %0 = \"stablehlo.scatter\"(%a, %i, %u) "
    NUMBERS("update_window_dims = [1], scatter_dims_to_operand_dims = [0]", ", unique_indices = true") SQUARE_AND_ADD
    " : (tensor<5xf32>, tensor<3x1xi32>, tensor<3x2xf32>) -> tensor<5xf32>\n" EQ("%0", "[4.0, 8.0, 3.0, 17.0, 27.0]", "tensor<5xf32>"),
    /* a dimension of the batch */
    C("%a", "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]", "tensor<2x3xf32>") C("%i", "[[[0], [0]], [[2], [1]]]", "tensor<2x2x1xui8>")
    C("%u", "1.0", "tensor<2x2xf32>")
    "  %0 = \"stablehlo.scatter\"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], "
    "input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>}>" SQUARE_AND_ADD
    " : (tensor<2x3xf32>, tensor<2x2x1xui8>, tensor<2x2xf32>) -> tensor<2x3xf32>\n"
    EQ("%0", "[[5.0, 2.0, 3.0], [4.0, 26.0, 37.0]]", "tensor<2x3xf32>"),
    /* no index at all */
    C("%a", "[1.0, 2.0]", "tensor<2xf32>") C("%i", "0", "tensor<0x1xi32>") C("%u", "0.0", "tensor<0xf32>")
    "  %0 = \"stablehlo.scatter\"(%a, %i, %u) " NUMBERS("inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]", "") SQUARE_AND_ADD
    " : (tensor<2xf32>, tensor<0x1xi32>, tensor<0xf32>) -> tensor<2xf32>\n  check.expect_eq %0, %a : tensor<2xf32>\n",
    /* nothing to scatter to, one index or several */
    C("%a", "0.0", "tensor<0x2xf32>") C("%i", "[[0], [1]]", "tensor<2x1xi32>") C("%u", "1.0", "tensor<2x2xf32>")
    "  %0 = \"stablehlo.scatter\"(%a, %i, %u) "
    NUMBERS("update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]", "") SQUARE_AND_ADD
    " : (tensor<0x2xf32>, tensor<2x1xi32>, tensor<2x2xf32>) -> tensor<0x2xf32>\n  check.expect_eq %0, %a : tensor<0x2xf32>\n"
    C("%i1", "[[0]]", "tensor<1x1xi32>") C("%u1", "1.0", "tensor<1x2xf32>")
    "  %2 = \"stablehlo.scatter\"(%a, %i1, %u1) "
    NUMBERS("update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]", "") SQUARE_AND_ADD
    " : (tensor<0x2xf32>, tensor<1x1xi32>, tensor<1x2xf32>) -> tensor<0x2xf32>\n  check.expect_eq %2, %a : tensor<0x2xf32>\n",
    /* two windows select one element: its start is squared and added to twice */
    C("%a", "[1.0, 3.0, 2.0, 5.0]", "tensor<4xf32>") C("%u", "[1.0, 2.0, 3.0]", "tensor<3xf32>") C("%z", "2.0", "tensor<f32>")
    "  %0 = \"stablehlo.select_and_scatter\"(%a, %u, %z) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 1>}> ({\n"
    "  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n    %1 = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
    "    stablehlo.return %1 : tensor<i1>\n  }, {\n  ^bb0(%x: tensor<f32>, %u1: tensor<f32>):\n    %1 = stablehlo.multiply %x, %x : tensor<f32>\n"
    "    %2 = stablehlo.add %1, %u1 : tensor<f32>\n    stablehlo.return %2 : tensor<f32>\n  }) : (tensor<4xf32>, tensor<3xf32>, tensor<f32>) -> "
    "tensor<4xf32>\n" EQ("%0", "[2.0, 27.0, 2.0, 7.0]", "tensor<4xf32>"),
};

static ax_program *import(const char *module) {
  ax_text text = {0};
  ax_program *program;
  ax_text_add(&text, "func.func @main() {\n%s  return\n}\n", module);
  if (ax_program_from_stablehlo(text.data, text.length, "m.mlir", &program) != AX_OK) fail_msg("%s\n%s", ax_message(), text.data);
  ax_text_deinit(&text);
  return program;
}

static void test_modules(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(modules); i++) {
    ax_program *program = import(modules[i]);
    if (test_try(program, NULL, NULL) != AX_OK) fail_msg("%s\n%s", ax_message(), modules[i]);
    ax_program_release(program);
  }
}

/* --- The function: against the same in a loop of C --- */

static AX_BODY(body) { out[0] = ax_sub(ax_mul(in[0], in[1]), in[1]); }

static AX_BODY(scatter) {
  const ax_scatter_params params = {.at = {.collapsed = {1, {0}}, .map = {1, {0}}, .mode = "fill", .unique = *(bool *)context}};
  ax_status status = ax_scatter_by(1, in, in[1], in + 2, &params, (ax_fn){body, 2, 1, NULL}, out);
  assert_int_equal(status, AX_OK);
}

static void test_function(void **state) {
  (void)state;
  enum { places = 5, updates = 40 };
  test_random random = {.state = 5};
  const ax_type types[] = {TEST_TYPE(AX_F32, places), TEST_TYPE(AX_S32, updates, 1), TEST_TYPE(AX_F32, updates)};
  ax_tensor *in[] = {test_random_tensor(&random, types[0], -1, 1), test_random_tensor(&random, types[1], -1, places + 1),
                     test_random_tensor(&random, types[2], -1, 1)};
  bool unique = false;
  ax_program *program = test_trace(scatter, &unique, types, 3, 1);
  float wanted[places];
  memcpy(wanted, in[0]->data, sizeof wanted);
  for (int i = 0; i < updates; i++) {
    const int32_t at = ((const int32_t *)in[1]->data)[i];
    const float u = ((const float *)in[2]->data)[i];
    if (at >= 0 && at < places) wanted[at] = wanted[at] * u - u;
  }
  ax_tensor *out[1];
  TEST_OK(test_try(program, in, out));
  for (int i = 0; i < places; i++) assert_float_equal(((const float *)out[0]->data)[i], wanted[i], 1e-6);
  TEST_EVERY_WAY(program, in, 1e-6);
  for (int i = 0; i < 3; i++) ax_tensor_release(in[i]);
  ax_tensor_release(out[0]);
  ax_program_release(program);
}

/* --- What is refused --- */

#define S(results, arrays, types, region) \
  "func.func @main(%a: tensor<4xf32>, %b: tensor<3xf32>, %i: tensor<2x1xi32>, %u: tensor<2xf32>) {\n  " results " = \"stablehlo.scatter\"(" arrays ") " \
  NUMBERS("inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]", "") " ({\n" region "  }) : " types "\n  return\n}\n"
#define ONE "(tensor<4xf32>, tensor<2x1xi32>, tensor<2xf32>) -> tensor<4xf32>"
static const char *const refused[][2] = {
    {S("%0", "%a, %i, %u", ONE, "  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n    %1 = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> "
       "tensor<i1>\n    stablehlo.return %1 : tensor<i1>\n"), "region 0: argument 0 is tensor<f32>, which does not fit tensor<i1>"},
    {S("%0", "%a, %i, %u", ONE, "  ^bb0(%x: tensor<f32>):\n    stablehlo.return %x : tensor<f32>\n"), "region 0 must take 2 values, and takes 1"},
    {S("%0", "%a, %i, %u", ONE, "  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n    stablehlo.return %x, %y : tensor<f32>, tensor<f32>\n"), "region 0 must return 1 values, and returns 2"},
    {S("%0", "%a, %i, %u", ONE, "  ^bb0(%x: tensor<i32>, %y: tensor<f32>):\n    %1 = stablehlo.sine %y : tensor<f32>\n    stablehlo.return %1 : tensor<f32>\n"), "region 0: argument 0 is tensor<i32>, which does not fit tensor<f32>"},
    {S("%0", "%a, %i", "(tensor<4xf32>, tensor<2x1xi32>) -> tensor<4xf32>", "  ^bb0(%x: tensor<f32>):\n    stablehlo.return %x : tensor<f32>\n"), "it must have at least 3 operands, and has 2"},
    {S("%0:2", "%a, %b, %i, %u, %u", "(tensor<4xf32>, tensor<3xf32>, tensor<2x1xi32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<4xf32>, tensor<3xf32>)",
       "  ^bb0(%w: tensor<f32>, %x: tensor<f32>, %y: tensor<f32>, %z: tensor<f32>):\n    stablehlo.return %y, %z : tensor<f32>, tensor<f32>\n"),
     "all arrays that are scattered into must have one shape"},
};

static void test_refused(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(refused); i++) {
    ax_program *program;
    const ax_status status = ax_program_from_stablehlo(refused[i][0], strlen(refused[i][0]), "m.mlir", &program);
    if (status == AX_OK || strstr(ax_message(), refused[i][1]) == NULL) fail_msg("%d: %s\n%s", (int)status, ax_message(), refused[i][0]);
  }
}

static ax_status import_each(void *context) {
  (void)context;
  ax_program *program;
  ax_text text = {0};
  ax_text_add(&text, "func.func @main() {\n%s  return\n}\n", modules[0]);
  const ax_status status = text.failed ? AX_OUT_OF_MEMORY : ax_program_from_stablehlo(text.data, text.length, "m.mlir", &program);
  ax_text_deinit(&text);
  if (status == AX_OK) ax_program_release(program);
  return status;
}

static void test_out_of_memory(void **state) {
  (void)state;
  assert_true(test_each_allocation(import_each, NULL) > 50);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_modules), cmocka_unit_test(test_function), cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
