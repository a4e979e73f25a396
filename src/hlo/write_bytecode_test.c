/* Modules written as VHLO of each version and read again say the same; what a version has not is refused. */
#include "hlo/write_bytecode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/stablehlo.h"
#include "hlo/writer.h"
#include "support/cmocka.h"
#include "support/oom.h"

static char *load(const char *name) {
  char path[256];
  snprintf(path, sizeof path, "tests/bytecode/%s", name);
  FILE *stream = fopen(path, "rb");
  if (stream == NULL) fail_msg("there is no %s", path);
  fseek(stream, 0, SEEK_END);
  const size_t count = (size_t)ftell(stream);
  char *text = calloc(count + 1, 1);
  rewind(stream);
  assert_int_equal(fread(text, 1, count, stream), count);
  fclose(stream);
  return text;
}

static char *print(const char *module, size_t bytes) {
  char *out;
  if (ax_stablehlo_text(module, bytes, "m", &out) != AX_OK) fail_msg("%s", ax_message());
  return out;
}

static void check_round(const char *module, const char *version) {
  char *out, *before = print(module, strlen(module));
  size_t bytes;
  if (ax_stablehlo_bytecode(module, strlen(module), "m", version, &out, &bytes) != AX_OK) fail_msg("%s", ax_message());
  char *after = print(out, bytes);
  assert_string_equal(after, before);
  ax_string_free(out);
  ax_string_free(before);
  ax_string_free(after);
}

static void test_versions(void **state) {
  (void)state;
  static const char *const versions[] = {"0.9.0", "0.10.0", "0.20.0", "1.0.0",  "1.1.0",
                                         "1.6.0", "1.9.0",  "1.10.0", "1.18.0", "1.20.0"};
  char *module = load("all.mlir");
  for (size_t i = 0; i < AX_COUNT(versions); i++) check_round(module, versions[i]);
  check_round(module, NULL);
  free(module);
}

/* Attributes that few operations have, and types. */
static void test_rest(void **state) {
  (void)state;
  check_round(
      "module @m {\n"
      "  func.func @main(%a: tensor<4xf32>, %t: !stablehlo.token, %d: tensor<?x4xi4, #stablehlo.bounds<8, ?>>) -> tensor<4xf32> {\n"
      "    %0 = \"stablehlo.dot_general\"(%a, %a) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], "
      "rhs_contracting_dimensions = [0]>, algorithm = #stablehlo.dot_algorithm<lhs_precision_type = bf16, rhs_precision_type = "
      "bf16, "
      "accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 3, "
      "allow_imprecise_accumulation = false>}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>\n"
      "    %1 = \"stablehlo.exponential\"(%a) <{result_accuracy = #stablehlo.result_accuracy<atol = 0.25, ulps = 3, mode = "
      "#stablehlo.result_accuracy_mode<TOLERANCE>>}> : (tensor<4xf32>) -> tensor<4xf32>\n"
      "    %2 = \"stablehlo.all_reduce\"(%1) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = "
      "#stablehlo.channel_handle<handle = 2, type = 0>, use_global_device_ids}> ({\n    ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
      "      %9 = stablehlo.add %x, %y : tensor<f32>\n      stablehlo.return %9 : tensor<f32>\n    }) : (tensor<4xf32>) -> "
      "tensor<4xf32>\n"
      "    %3 = \"stablehlo.custom_call\"(%2) <{call_target_name = \"f\", api_version = 4 : i32, backend_config = {a = 1 : i32, b "
      "= 0.5 : f32, c "
      "= [true, \"x\"]}, called_computations = [@g], operand_layouts = [dense<0> : tensor<1xindex>], result_layouts = [dense<0> : "
      "tensor<1xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, "
      "operand_tuple_indices = []>]}> {extra = 7 : i64} : (tensor<4xf32>) -> tensor<4xf32>\n"
      "    %4 = stablehlo.constant dense<[-3, 5]> : tensor<2xi4>\n"
      "    %5 = stablehlo.tuple %a, %0 : tuple<tensor<4xf32>, tensor<f32>>\n"
      "    return %3 : tensor<4xf32>\n  }\n"
      "  func.func private @g(tensor<*xf64>) -> (tensor<0xcomplex<f64>>, tensor<f8E4M3FN>)\n}\n",
      "1.10.0");
}

static void test_quantized(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%a: tensor<4x!quant.uniform<i8:f32, 5.000000e-01:3>>, %b: tensor<2x3x!quant.uniform<i8<-127:127>:f32:1, "
      "{5.000000e-01:1, 2.500000e-01, 2.000000e+00:-3}>>) -> (tensor<4xf32>, tensor<2x3xf32>, tensor<4x!quant.uniform<u4:bf16, 1.000000e-01>>) {\n"
      "  %0 = stablehlo.uniform_dequantize %a : (tensor<4x!quant.uniform<i8:f32, 5.000000e-01:3>>) -> tensor<4xf32>\n"
      "  %1 = stablehlo.uniform_dequantize %b : (tensor<2x3x!quant.uniform<i8<-127:127>:f32:1, {5.000000e-01:1, 2.500000e-01, "
      "2.000000e+00:-3}>>) -> tensor<2x3xf32>\n"
      "  %2 = stablehlo.convert %0 : (tensor<4xf32>) -> tensor<4xbf16>\n"
      "  %3 = stablehlo.uniform_quantize %2 : (tensor<4xbf16>) -> tensor<4x!quant.uniform<u4:bf16, 1.000000e-01>>\n"
      "  return %0, %1, %3 : tensor<4xf32>, tensor<2x3xf32>, tensor<4x!quant.uniform<u4:bf16, 1.000000e-01>>\n}\n";
  check_round(text, "0.18.0");
  check_round(text, "1.20.0");
}

/* Operations of chlo and sdy beside VHLO's, with regions and without; attributes of sdy; symbols and lists that VHLO has not. */
static void test_mixed(void **state) {
  (void)state;
  static const char *const names[] = {"all.mlir", "plain.mlir", "mixed.mlir"};
  for (size_t i = 0; i < AX_COUNT(names); i++) {
    char *module = load(names[i]);
    check_round(module, "1.20.0+mixed");
    free(module);
  }
  check_round(
      "module @m attributes {a.list = [1 : i64, \"s\"], b.dictionary = {x = f32}} {\n"
      "  sdy.mesh @mesh = <[\"x\"=4]>\n"
      "  func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>}) -> (tensor<8x4xf32> {sdy.sharding = "
      "#sdy.sharding<@mesh, [{\"x\"}, {?}]>}) attributes {c.symbol = @a::@b} {\n"
      "    %0 = chlo.erf %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{\"x\"}, {?}]>]>} : tensor<8x4xf32> -> tensor<8x4xf32>\n"
      "    %1 = chlo.tan %0 : tensor<8x4xf32> -> tensor<8x4xf32>\n"
      "    %2 = stablehlo.sine %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{\"x\"}, {?}]>]>} : tensor<8x4xf32>\n"
      "    return %2 : tensor<8x4xf32>\n  }\n}\n",
      "1.0.0+mixed");
}

static void check_refused(const char *operation, const char *version, const char *message) {
  ax_text text = {0};
  char *out;
  size_t bytes;
  ax_text_add(&text, "func.func @f(%%a: tensor<4xf32>, %%b: tensor<4xf32>) {\n  %s\n  return\n}\n", operation);
  assert_int_not_equal(ax_stablehlo_bytecode(text.data, text.length, "m", version, &out, &bytes), AX_OK);
  assert_null(out);
  if (strstr(ax_message(), message) == NULL) fail_msg("%s\nand not: %s", ax_message(), message);
  ax_text_deinit(&text);
}

static void test_refused(void **state) {
  (void)state;
  check_refused("%0 = stablehlo.tan %a : tensor<4xf32>", "1.3.0", "m:2: stablehlo.tan: VHLO has it since version 1.4");
  check_refused("%0 = chlo.erf %a : tensor<4xf32> -> tensor<4xf32>", "1.0.0", "m:2: chlo.erf: VHLO has no such operation");
  check_refused(
      "%0 = \"stablehlo.sine\"(%a) {result_accuracy = #stablehlo.result_accuracy<ulps = 3, mode = "
      "#stablehlo.result_accuracy_mode<TOLERANCE>>} : (tensor<4xf32>) -> tensor<4xf32>",
      "1.9.0", "m:2: stablehlo.sine: VHLO 1.9 has no result_accuracy of it");
  check_refused("%0 = \"stablehlo.concatenate\"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>", "1.0.0",
                "m:2: stablehlo.concatenate: the attribute dimension is missing");
  check_refused("%0 = stablehlo.convert %a : (tensor<4xf32>) -> tensor<4xf8E3M4>", "1.6.0",
                "the type f8E3M4 cannot be written as VHLO 1.6");
  check_refused("%0 = stablehlo.uniform_quantize %a : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32:0, {1.0, 1.0, 1.0, 2.0}>>",
                "0.17.0", "!quant.uniform<i8:f32:0, {1.0, 1.0, 1.0, 2.0}>> cannot be written as VHLO 0.17");
  check_refused("%0 = stablehlo.sine %a {x = @a::@b} : tensor<4xf32>", "1.0.0",
                "m:2: stablehlo.sine: VHLO has no symbols inside of others, as @a::@b");
  check_refused("%0 = \"tensor.cast\"(%a) : (tensor<4xf32>) -> tensor<?xf32>", "1.20.0+mixed", "m:2: tensor.cast: VHLO has no such operation");
  check_refused("%0 = \"stablehlo.sine\"(%a) {x = #sdy.sharding<@m, [{}]>} : (tensor<4xf32>) -> tensor<4xf32>", "1.0.0",
                "m:2: stablehlo.sine: VHLO has no attribute for #sdy.sharding");
  check_refused("%0 = \"stablehlo.custom_call\"(%a) {call_target_name = \"f\", backend_config = {n = array<i32: 1>}} : (tensor<4xf32>) -> tensor<4xf32>",
                "1.0.0", "VHLO has no attribute for n");
  check_refused("%0 = stablehlo.sine %a : tensor<4xf32>", "0.8.0", "\"0.8.0\" is no version of VHLO");
  check_refused("%0 = stablehlo.sine %a : tensor<4xf32>", "1.x", "is no version of VHLO");
  check_refused("%0 = stablehlo.sine %a : tensor<4xf32>", "1.0.0+mix", "\"1.0.0+mix\" is no version of VHLO");
}

static void test_numbers(void **state) {
  (void)state;
  static const struct {
    uint64_t number;
    const char *bytes;
    size_t count;
  } numbers[] = {{0, "\x01", 1},
                 {127, "\xff", 1},
                 {128, "\x02\x02", 2},
                 {16384, "\x04\x00\x02", 3},
                 {UINT64_MAX, "\0\xff\xff\xff\xff\xff\xff\xff\xff", 9}};
  for (size_t i = 0; i < AX_COUNT(numbers); i++) {
    ax_text text = {0};
    ax_hlo_add_number(&text, numbers[i].number);
    assert_int_equal(text.length, numbers[i].count);
    assert_memory_equal(text.data, numbers[i].bytes, numbers[i].count);
    ax_text_deinit(&text);
  }
  ax_text text = {0};
  ax_hlo_add_signed(&text, -2);
  assert_memory_equal(text.data, "\x07", 1);
  ax_text_deinit(&text);
}

static ax_status write_whole(void *context) {
  char *out;
  size_t bytes;
  const ax_status status = ax_stablehlo_bytecode(context, strlen(context), "m", NULL, &out, &bytes);
  ax_string_free(out);
  return status;
}

static ax_status write_mixed(void *context) {
  char *out;
  size_t bytes;
  const ax_status status = ax_stablehlo_bytecode(context, strlen(context), "m", "1.20.0+mixed", &out, &bytes);
  ax_string_free(out);
  return status;
}

static void test_out_of_memory(void **state) {
  (void)state;
  char *module = load("all.mlir");
  ax_arena_chunk_bytes = 1024;
  assert_true(test_each_allocation(write_whole, module) > 100);
  free(module);
  module = load("plain.mlir");
  assert_true(test_each_allocation(write_mixed, module) > 100);
  free(module);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_versions), cmocka_unit_test(test_rest), cmocka_unit_test(test_quantized), cmocka_unit_test(test_mixed), cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_numbers), cmocka_unit_test(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
