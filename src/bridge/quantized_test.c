/* Quantized values: what is stored after each kind of operation, what is refused, and input that is damaged. */
#include <stdio.h>
#include <string.h>

#include "axle/exec.h"
#include "axle/stablehlo.h"
#include "bridge/quantized.h"
#include "bridge/stablehlo_read.h"
#include "ir/program.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/random.h"
#include "support/run.h"
#include "support/tensor.h"

#define Q "!quant.uniform<i8:f32, 0.5:10>"    /* (stored - 10) / 2 */
#define QI "!quant.uniform<i8<1:100>:f32, 0.25>"
#define QH "!quant.uniform<i8:f32, 0.5>"
#define Q2 "!quant.uniform<i8:f32, 2.0>"
#define QU "!quant.uniform<u8<1:200>:f32, 0.25>"
#define QA "!quant.uniform<i8:f32:1, {0.5:-1, 2.0}>"
#define X \
  "  %x = stablehlo.constant dense<[[1.0, -2.25], [3.25, 100.0]]> : tensor<2x2xf32>\n" \
  "  %q = stablehlo.uniform_quantize %x : (tensor<2x2xf32>) -> tensor<2x2x" Q ">\n" \
  "  %a = stablehlo.uniform_quantize %x : (tensor<2x2xf32>) -> tensor<2x2x" QA ">\n"
#define STORED(value, type, numbers, dtype) \
  "  %s = stablehlo.bitcast_convert " value " : (" type ") -> tensor<" dtype ">\n  check.expect_eq_const %s, dense<" numbers "> : tensor<" \
  dtype ">\n"

static const char *const operations[] = {
    /* 5.5 and 16.5 lie between two: the even one; 210 does not fit */
    STORED("%q", "tensor<2x2x" Q ">", "[[12, 6], [16, 127]]", "2x2xi8"),
    /* each column has its own scale */
    STORED("%a", "tensor<2x2x" QA ">", "[[1, -1], [6, 50]]", "2x2xi8"),
    "  %u = stablehlo.uniform_quantize %x : (tensor<2x2xf32>) -> tensor<2x2x" QU ">\n"
    STORED("%u", "tensor<2x2x" QU ">", "[[4, 1], [13, 200]]", "2x2xui8"),
    "  %d = stablehlo.uniform_dequantize %q : (tensor<2x2x" Q ">) -> tensor<2x2xf32>\n"
    "  check.expect_eq_const %d, dense<[[1.0, -2.0], [3.0, 58.5]]> : tensor<2x2xf32>\n",
    "  %d = stablehlo.uniform_dequantize %a : (tensor<2x2x" QA ">) -> tensor<2x2xf32>\n"
    "  check.expect_eq_const %d, dense<[[1.0, -2.0], [3.5, 100.0]]> : tensor<2x2xf32>\n",
    /* from one to another, of one scale and of several */
    "  %u = stablehlo.uniform_quantize %q : (tensor<2x2x" Q ">) -> tensor<2x2x" QU ">\n"
    STORED("%u", "tensor<2x2x" QU ">", "[[4, 1], [12, 200]]", "2x2xui8"),
    "  %u = stablehlo.uniform_quantize %a : (tensor<2x2x" QA ">) -> tensor<2x2x" Q ">\n"
    STORED("%u", "tensor<2x2x" Q ">", "[[12, 6], [17, 127]]", "2x2xi8"),
    /* what they stand for is added, and the sum is quantized */
    "  %u = stablehlo.add %q, %q : (tensor<2x2x" Q ">, tensor<2x2x" Q ">) -> tensor<2x2x" QI ">\n"
    STORED("%u", "tensor<2x2x" QI ">", "[[8, 1], [24, 100]]", "2x2xi8"),
    "  %f = stablehlo.constant dense<[[2.0, 0.0], [0.0, 1.0]]> : tensor<2x2xf32>\n"
    "  %h = stablehlo.uniform_quantize %x : (tensor<2x2xf32>) -> tensor<2x2x" QH ">\n"
    "  %d = stablehlo.dot_general %f, %h, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x2x" QH ">) -> tensor<2x2xf32>\n"
    "  check.expect_eq_const %d, dense<[[2.0, -4.0], [3.0, 63.5]]> : tensor<2x2xf32>\n",
    "  %k = stablehlo.uniform_quantize %x : (tensor<2x2xf32>) -> tensor<2x2x" Q2 ">\n"
    "  %d = stablehlo.compare LT, %q, %k : (tensor<2x2x" Q ">, tensor<2x2x" Q2 ">) -> tensor<2x2xi1>\n"
    "  check.expect_eq_const %d, dense<[[false, false], [true, true]]> : tensor<2x2xi1>\n",
    /* elements that only move */
    "  %t = stablehlo.transpose %q, dims = [1, 0] : (tensor<2x2x" Q ">) -> tensor<2x2x" Q ">\n"
    "  %c = stablehlo.constant dense<[[1], [2]]> : tensor<2x1x" Q ">\n"
    "  %u = stablehlo.concatenate %t, %c, dim = 1 : (tensor<2x2x" Q ">, tensor<2x1x" Q ">) -> tensor<2x3x" Q ">\n"
    STORED("%u", "tensor<2x3x" Q ">", "[[12, 16, 1], [6, 127, 2]]", "2x3xi8"),
    /* a body computes with what is stored, step by step: 58.5 + 3 is more than there is room for */
    "  %z = stablehlo.constant dense<10> : tensor<" Q ">\n"
    "  %u = stablehlo.reduce(%q init: %z) applies stablehlo.add across dimensions = [0] : (tensor<2x2x" Q ">, tensor<" Q ">) -> tensor<2x" Q
    ">\n" STORED("%u", "tensor<2x" Q ">", "[18, 123]", "2xi8"),
    "  %u = call @f(%q) : (tensor<2x2x" Q ">) -> tensor<2x2x" Q ">\n" STORED("%u", "tensor<2x2x" Q ">", "[[8, 14], [4, -107]]", "2x2xi8"),
    "  %u = stablehlo.custom_call @check.eq(%x, %x) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<i1>\n"
    "  check.expect_eq_const %u, dense<true> : tensor<i1>\n"};

static void module_text(const char *body, ax_text *out) {
  ax_text_add(out, "!q = " Q "\nmodule {\nfunc.func @main() {\n%s%s  return\n}\n", X, body);
  ax_text_add(out, "func.func private @f(%%q: tensor<2x2x!q>) -> tensor<2x2x" Q "> {\n  %%0 = stablehlo.negate %%q : (tensor<2x2x!q>) -> "
                   "tensor<2x2x" Q ">\n  return %%0 : tensor<2x2x" Q ">\n}\n}\n");
}

static ax_status import(const char *text, ax_program **out) { return ax_program_from_stablehlo(text, strlen(text), "m.mlir", out); }

static void test_operations(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(operations); i++) {
    ax_text text = {0};
    ax_program *program;
    module_text(operations[i], &text);
    if (import(text.data, &program) != AX_OK) fail_msg("%s\n%s", ax_message(), text.data);
    if (test_try(program, NULL, NULL) != AX_OK) fail_msg("%s\n%s", ax_message(), text.data);
    ax_program_release(program);
    ax_text_deinit(&text);
  }
}

static const struct {
  const char *body;
  ax_status status;
  const char *message;
} refused[] = {
    {"  %u = stablehlo.reshape %q : (tensor<2x2x" Q ">) -> tensor<4x" QU ">\n", AX_INVALID_ARGUMENT,
     "all operands and results must have the same elements, and there are tensor<2x2x!quant.uniform<i8:f32"},
    {"  %u = call @f(%a) : (tensor<2x2x" QA ">) -> tensor<2x2x" Q ">\n", AX_INVALID_ARGUMENT, "argument 0 of @f is quantized otherwise"},
    {"  %u = stablehlo.uniform_quantize %x : (tensor<2x2xf32>) -> tensor<2x2xi8>\n", AX_INVALID_ARGUMENT, "result 0 is tensor<2x2xi8>, and must be of these: quantized numbers of one scale, quantized numbers "},
    {"  %u = stablehlo.uniform_dequantize %x : (tensor<2x2xf32>) -> tensor<2x2xf32>\n", AX_INVALID_ARGUMENT, "operand 0 is tensor<2x2xf32>, and must be of these: quantized numbers of one scale, quantized number"},
    {"  %u = stablehlo.uniform_quantize %x : (tensor<2x2xf32>) -> tensor<2x2x!quant.uniform<i8:f32:1, {0.5}>>\n", AX_INVALID_ARGUMENT,
     "tensor<2x2x!quant.uniform<i8:f32:1, {0.5}>>: dimension 1 must be there, and have 1 indices, one for "},
    {"  %u = stablehlo.uniform_quantize %x : (tensor<2x2xf32>) -> tensor<2x2x!quant.uniform<i8:f32:2, {0.5, 1.0}>>\n", AX_INVALID_ARGUMENT,
     "tensor<2x2x!quant.uniform<i8:f32:2, {0.5, 1.0}>>: dimension 2 must be there, and have 2 indices, one"},
    {"  %u = stablehlo.uniform_quantize %x : (tensor<2x2xf32>) -> tensor<2x2x!quant.uniform<i8:f32, 0.0>>\n", AX_INVALID_ARGUMENT,
     "result 0 is tensor<2x2x!quant.uniform<i8:f32, 0.0>>, and must be of these: quantized numbers of one "},
    {"  %u = stablehlo.uniform_quantize %x : (tensor<2x2xf32>) -> tensor<2x2x!quant.uniform<i8<-200:7>:f32, 1.0>>\n", AX_INVALID_ARGUMENT,
     "result 0 is tensor<2x2x!quant.uniform<i8<-200:7>:f32, 1.0>>, and must be of these: quantized numbers"},
    {"  %u = stablehlo.uniform_quantize %x : (tensor<2x2xf32>) -> tensor<2x2x!quant.uniform<i8:f32, 1.0:200>>\n", AX_INVALID_ARGUMENT,
     "result 0 is tensor<2x2x!quant.uniform<i8:f32, 1.0:200>>, and must be of these: quantized numbers of "},
    {"  %u = stablehlo.uniform_quantize %x : (tensor<2x2xf32>) -> tensor<2x2x!quant.any<i8:f32>>\n", AX_ABSENT,
     "elements of this type are not supported"},
};

static void test_refused(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(refused); i++) {
    ax_text text = {0};
    ax_program *program;
    module_text(refused[i].body, &text);
    TEST_FAILS(import(text.data, &program), refused[i].status, refused[i].message);
    ax_text_deinit(&text);
  }
}

static void test_damaged(void **state) {
  (void)state;
  test_random random = {.state = 5};
  for (int round = 0; round < 3000; round++) {
    ax_text text = {0};
    ax_program *program;
    module_text(operations[test_random_below(&random, AX_COUNT(operations))], &text);
    if (round % 4 == 0) text.data[test_random_below(&random, (int64_t)text.length)] = '\0';
    for (int64_t changes = 1 + test_random_below(&random, 3); changes > 0; changes--)
      text.data[test_random_below(&random, (int64_t)text.length)] = "0123456789<>:,.{}!-uifqx"[test_random_below(&random, 24)];
    if (import(text.data, &program) == AX_OK) ax_program_release(program);
    ax_text_deinit(&text);
  }
}

static ax_status import_some(void *context) {
  ax_program *program;
  const ax_status status = import(context, &program);
  if (status == AX_OK) ax_program_release(program);
  return status;
}

static void test_out_of_memory(void **state) {
  (void)state;
  ax_text text = {0};
  module_text(operations[6], &text);
  assert_true(test_each_allocation(import_some, text.data) > 50);
  ax_text_deinit(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_operations), cmocka_unit_test(test_refused), cmocka_unit_test(test_damaged),
                                     cmocka_unit_test(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
