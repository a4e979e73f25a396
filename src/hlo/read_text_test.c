/* Texts read as trees: each short form beside the generic one, elements in every form, scopes, errors with their places; and no
   text, cut off or changed anywhere, does harm. */
#include "hlo/read_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"
#include "support/oom.h"
#include "support/random.h"

/* A copy of exactly as many bytes, so that a sanitizer sees a read beyond them. It stays as long as the module. */
typedef struct reading {
  char *copy;
  ax_hlo_module module;
} reading;

static ax_status read_bytes(const char *text, size_t bytes, reading *out) {
  out->copy = malloc(bytes > 0 ? bytes : 1);
  if (bytes > 0) memcpy(out->copy, text, bytes);
  return ax_hlo_read_text(out->copy, bytes, "m.mlir", &out->module);
}

static void end(reading *r) {
  ax_hlo_module_deinit(&r->module);
  free(r->copy);
}

static void read_ok(const char *text, reading *out) {
  if (read_bytes(text, strlen(text), out) != AX_OK) fail_msg("%s", ax_message());
}

/* --- Trees as text, in a form of the test's own: what both forms of an operation must give --- */

static void add_slice(ax_text *text, ax_hlo_slice slice) { ax_text_add_bytes(text, slice.start, slice.length); }

static void add_value(ax_text *text, const ax_hlo_attribute *a) {
  switch (a->kind) {
    case AX_HLO_UNIT:
      ax_text_add(text, "unit");
      break;
    case AX_HLO_BOOL:
    case AX_HLO_INTEGER:
      ax_text_add(text, "%lld", (long long)a->integer);
      break;
    case AX_HLO_TYPE:
      add_slice(text, a->type->text);
      break;
    case AX_HLO_ARRAY:
    case AX_HLO_NUMBERS:
      ax_text_add(text, "[");
      for (uint32_t i = 0; i < a->count; i++) {
        if (a->kind == AX_HLO_ARRAY)
          add_value(text, &a->items[i]);
        else
          ax_text_add(text, "%lld", (long long)a->numbers[i]);
        ax_text_add(text, " ");
      }
      ax_text_add(text, "]");
      break;
    case AX_HLO_DICTIONARY:
      ax_text_add(text, "{");
      for (uint32_t i = 0; i < a->count; i++) {
        add_slice(text, a->items[i].name);
        ax_text_add(text, "=");
        add_value(text, &a->items[i]);
        ax_text_add(text, " ");
      }
      ax_text_add(text, "}");
      break;
    case AX_HLO_ELEMENTS:
      ax_text_add(text, "dense");
      break;
    default:
      add_slice(text, a->text);
      break;
  }
}

static void add_region(ax_text *text, const ax_hlo_module *module, const ax_hlo_region *region);

static void add_operation(ax_text *text, const ax_hlo_module *module, const ax_hlo_operation *op) {
  add_slice(text, op->name);
  ax_text_add(text, "(");
  for (uint32_t i = 0; i < op->operand_count; i++) ax_text_add(text, "%u ", op->operands[i]);
  ax_text_add(text, ") ");
  for (uint32_t i = 0; i < op->attribute_count; i++) {
    add_slice(text, op->attributes[i].name);
    ax_text_add(text, "=");
    add_value(text, &op->attributes[i]);
    ax_text_add(text, " ");
  }
  for (uint32_t i = 0; i < op->region_count; i++) add_region(text, module, &op->regions[i]);
  ax_text_add(text, "->");
  for (uint32_t k = 0; k < op->result_count; k++) {
    ax_text_add(text, " ");
    add_slice(text, module->values[op->result + k]->text);
  }
  ax_text_add(text, "\n");
}

static void add_region(ax_text *text, const ax_hlo_module *module, const ax_hlo_region *region) {
  for (uint32_t b = 0; b < region->block_count; b++) {
    const ax_hlo_block *block = &region->blocks[b];
    ax_text_add(text, "{%u:\n", block->argument_count);
    for (uint32_t i = 0; i < block->operation_count; i++) add_operation(text, module, block->operations[i]);
    ax_text_add(text, "}");
  }
}

/* The operation in a function of a few parameters. */
static char *tree_of(const char *operation) {
  ax_text text = {0}, module = {0};
  char *out;
  reading r;
  ax_text_add(&module,
              "func.func @f(%%a: tensor<4x6xf32>, %%b: tensor<4x6xf32>, %%p: tensor<4x6xi1>, %%s: tensor<f32>, %%i: tensor<i32>, "
              "%%z: tensor<4xcomplex<f32>>) {\n%s\n  return\n}\n",
              operation);
  read_ok(module.data, &r);
  const ax_hlo_block *block = &r.module.body.operations[0]->regions[0].blocks[0];
  add_operation(&text, &r.module, block->operations[0]);
  end(&r);
  ax_text_deinit(&module);
  assert_int_equal(ax_text_finish(&text, &out), AX_OK);
  return out;
}

/* --- Both forms --- */

static const char *const forms[][2] = {
    {"%0 = stablehlo.sine %a : tensor<4x6xf32>", "%0 = \"stablehlo.sine\"(%a) : (tensor<4x6xf32>) -> tensor<4x6xf32>"},
    {"%0 = stablehlo.add %a, %b : tensor<4x6xf32> loc(\"f.py\":3:1)",
     "%0 = \"stablehlo.add\"(%a, %b) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>"},
    {"%0 = stablehlo.select %p, %a, %b : tensor<4x6xi1>, tensor<4x6xf32>",
     "%0 = \"stablehlo.select\"(%p, %a, %b) : (tensor<4x6xi1>, tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>"},
    {"%0 = stablehlo.compare  LT, %a, %b,  FLOAT : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1>",
     "%0 = \"stablehlo.compare\"(%a, %b) <{comparison_direction = #stablehlo<comparison_direction LT>, compare_type = "
     "#stablehlo<comparison_type FLOAT>}> : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1>"},
    {"%0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>",
     "%0 = \"stablehlo.transpose\"(%a) <{permutation = array<i64: 1, 0>}> : (tensor<4x6xf32>) -> tensor<6x4xf32>"},
    {"%0 = stablehlo.slice %a [1:3, 0:6:2] : (tensor<4x6xf32>) -> tensor<2x3xf32>",
     "%0 = \"stablehlo.slice\"(%a) {start_indices = array<i64: 1, 0>, limit_indices = array<i64: 3, 6>, strides = array<i64: 1, "
     "2>} : "
     "(tensor<4x6xf32>) -> tensor<2x3xf32>"},
    {"%0 = stablehlo.iota dim = 1 : tensor<2x3xi32>",
     "%0 = \"stablehlo.iota\"() <{iota_dimension = 1 : i64}> : () -> tensor<2x3xi32>"},
    {"%0 = stablehlo.dynamic_slice %a, %i, %i, sizes = [1, 2] : (tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>",
     "%0 = \"stablehlo.dynamic_slice\"(%a, %i, %i) <{slice_sizes = array<i64: 1, 2>}> : (tensor<4x6xf32>, tensor<i32>, "
     "tensor<i32>) -> "
     "tensor<1x2xf32>"},
    {"%0 = stablehlo.dynamic_slice %s, , sizes = [] : (tensor<f32>) -> tensor<f32>",
     "%0 = \"stablehlo.dynamic_slice\"(%s) <{slice_sizes = array<i64>}> : (tensor<f32>) -> tensor<f32>"},
    {"%0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>",
     "%0 = \"stablehlo.concatenate\"(%a, %b) <{dimension = 0 : i64}> : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>"},
    {"%0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : "
     "(tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4xf32>",
     "%0 = \"stablehlo.dot_general\"(%a, %b) <{precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>], "
     "dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], "
     "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>}> : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4xf32>"},
    {"%0 = stablehlo.reduce(%a init: %s) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> "
     "tensor<4xf32>",
     "%0 = \"stablehlo.reduce\"(%a, %s) <{dimensions = array<i64: 1>}> ({\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n  %1 = "
     "\"stablehlo.add\"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n  \"stablehlo.return\"(%1) : (tensor<f32>) -> ()\n}) "
     ": "
     "(tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>"},
    {"%0:2 = stablehlo.reduce(%a init: %s), (%b init: %s) across dimensions = [0] : (tensor<4x6xf32>, tensor<4x6xf32>, "
     "tensor<f32>, "
     "tensor<f32>) -> (tensor<6xf32>, tensor<6xf32>)\n reducer(%x: tensor<f32> loc(\"a\"), %u: tensor<f32> loc(unknown)) (%y: tensor<f32>, %v: "
     "tensor<f32>) {\n"
     "  stablehlo.return %x, %v : tensor<f32>, tensor<f32>\n}",
     "%0:2 = \"stablehlo.reduce\"(%a, %b, %s, %s) <{dimensions = array<i64: 0>}> ({\n^bb0(%x: tensor<f32>, %y: tensor<f32>, %u: "
     "tensor<f32>, %v: tensor<f32>):\n  \"stablehlo.return\"(%x, %v) : (tensor<f32>, tensor<f32>) -> ()\n}) : (tensor<4x6xf32>, "
     "tensor<4x6xf32>, tensor<f32>, tensor<f32>) -> (tensor<6xf32>, tensor<6xf32>)"},
    {"%0 = stablehlo.while(%x = %s) : tensor<f32>\n cond {\n  %1 = stablehlo.is_finite %x : (tensor<f32>) -> tensor<i1>\n  "
     "stablehlo.return %1 : tensor<i1>\n} do {\n  stablehlo.return %x : tensor<f32>\n}",
     "%0 = \"stablehlo.while\"(%s) ({\n^bb0(%x: tensor<f32>):\n  %1 = \"stablehlo.is_finite\"(%x) : (tensor<f32>) -> tensor<i1>\n  "
     "\"stablehlo.return\"(%1) : (tensor<i1>) -> ()\n}, {\n^bb0(%x: tensor<f32>):\n  \"stablehlo.return\"(%x) : (tensor<f32>) -> "
     "()\n}) : (tensor<f32>) -> tensor<f32>"},
    {"%0 = stablehlo.custom_call @t(%a) {x = array<f32: 1.0, -2.5e1, 0x7FC00000>, y = array<f64: 0.5>} : (tensor<4x6xf32>) -> tensor<4x6xf32>",
     "%0 = \"stablehlo.custom_call\"(%a) {call_target_name = \"t\", x = array<i64: 1065353216, 3251109888, 2143289344>, "
     "y = array<i64: 4602678819172646912>} : (tensor<4x6xf32>) -> tensor<4x6xf32>"}, /* floats are kept as their bits */
    {"%0 = stablehlo.custom_call @t(%a) {api_version = 4 : i32, mhlo.backend_config = {k = [1, 2]}} : (tensor<4x6xf32>) -> "
     "tensor<f32>",
     "%0 = \"stablehlo.custom_call\"(%a) {call_target_name = \"t\", api_version = 4 : i32, mhlo.backend_config = {k = [1, 2]}} : "
     "(tensor<4x6xf32>) -> tensor<f32>"},
    {"%0 = stablehlo.pad %a, %s, low = [1, 0], high = [0, -1], interior = [0, 2] : (tensor<4x6xf32>, tensor<f32>) -> "
     "tensor<5x15xf32>",
     "%0 = \"stablehlo.pad\"(%a, %s) <{edge_padding_low = array<i64: 1, 0>, edge_padding_high = array<i64: 0, -1>, "
     "interior_padding = "
     "array<i64: 0, 2>}> : (tensor<4x6xf32>, tensor<f32>) -> tensor<5x15xf32>"},
    {"%0 = chlo.erf %a : tensor<4x6xf32> -> tensor<4x6xf32>", "%0 = \"chlo.erf\"(%a) : (tensor<4x6xf32>) -> tensor<4x6xf32>"},
    {"%0:2 = chlo.top_k(%a, k = 2) : tensor<4x6xf32> -> (tensor<4x2xf32>, tensor<4x2xi32>)",
     "%0:2 = \"chlo.top_k\"(%a) {k = 2 : i64} : (tensor<4x6xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>)"},
    {"%0:2 = stablehlo.optimization_barrier %a, %s : tensor<4x6xf32>, tensor<f32>",
     "%0:2 = \"stablehlo.optimization_barrier\"(%a, %s) : (tensor<4x6xf32>, tensor<f32>) -> (tensor<4x6xf32>, tensor<f32>)"},
};

static void test_forms(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(forms); i++) {
    char *pretty = tree_of(forms[i][0]), *generic = tree_of(forms[i][1]);
    assert_string_equal(pretty, generic);
    ax_free(pretty);
    ax_free(generic);
  }
}

/* --- Elements --- */

static void check_elements(const char *constant, const void *data, size_t bytes, bool splat) {
  ax_text text = {0};
  reading r;
  ax_text_add(&text, "func.func @f() {\n  %%0 = stablehlo.constant ");
  ax_text_add(&text, "%s", constant);
  ax_text_add(&text, "\n  return\n}\n");
  read_ok(text.data, &r);
  const ax_hlo_attribute *value = ax_hlo_constant(&r.module, 0);
  assert_non_null(value);
  assert_int_equal(value->splat, splat);
  assert_memory_equal(value->data, data, bytes);
  end(&r);
  ax_text_deinit(&text);
}
#define ELEMENTS(constant, splat, type, ...) \
  check_elements(constant, (const type[]){__VA_ARGS__}, sizeof(const type[]){__VA_ARGS__}, splat)

static void test_elements(void **state) {
  (void)state;
  ELEMENTS("dense<1.5> : tensor<f32>", false, float, 1.5f);
  ELEMENTS("dense<1.5> : tensor<2x3xf32>", true, float, 1.5f);
  ELEMENTS("dense<[[1, 2], [3, -4]]> : tensor<2x2xi32>", false, int32_t, 1, 2, 3, -4);
  ELEMENTS("dense<[0x7FC00000, 0xFF800000, -0.0]> : tensor<3xf32>", false, uint32_t, 0x7fc00000u, 0xff800000u, 0x80000000u);
  ELEMENTS("dense<\"0x0000803F00000040\"> : tensor<2xf32>", false, float, 1, 2);
  ELEMENTS("dense<\"0x0000803F\"> : tensor<2xf32>", true, float, 1);
  ELEMENTS("dense<\"0x0000803F\"> : tensor<1000000x1000000xf32>", true, float, 1);
  ELEMENTS("dense<[true, false, true]> : tensor<3xi1>", false, uint8_t, 1, 0, 1);
  ELEMENTS("dense<\"0x0502\"> : tensor<10xi1>", false, uint8_t, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1);
  ELEMENTS("dense<[(1.0, -2.0), (3.0, 4.0)]> : tensor<2xcomplex<f32>>", false, float, 1, -2, 3, 4);
  ELEMENTS("dense<18446744073709551615> : tensor<ui64>", false, uint64_t, UINT64_MAX);
  ELEMENTS("dense<-9223372036854775808> : tensor<i64>", false, int64_t, INT64_MIN);
  ELEMENTS("dense<-3> : tensor<i4>", false, uint8_t, 13);
  ELEMENTS("dense<1.000000e+00> : tensor<bf16>", false, uint16_t, 0x3f80);
  check_elements("dense<> : tensor<0x3xf32>", "", 0, false);
}

static void test_resources(void **state) {
  (void)state;
  reading r;
  read_ok(
      "func.func @f() {\n  %0 = stablehlo.constant dense_resource<w> : tensor<2xf32>\n  return\n}\n"
      "{-# dialect_resources: { builtin: { v: \"0x04000000FFFFFFFFFFFFFFFF\", w: \"0x040000000000803F00000040\" } } #-}\n",
      &r);
  const float wanted[] = {1, 2};
  assert_memory_equal(ax_hlo_constant(&r.module, 0)->data, wanted, sizeof wanted);
  end(&r);
}

/* --- Places --- */

static void test_places(void **state) {
  (void)state;
  char place[64];
  reading r;
  read_ok(
      "#loc1 = loc(\"train.py\":31:4)\nmodule @m {\n  func.func @f(%a: tensor<f32> loc(\"a\")) -> tensor<f32> {\n"
      "    %0 = stablehlo.sine %a : tensor<f32> loc(#loc2)\n    %1 = stablehlo.sine %0 : tensor<f32>\n"
      "    %2 = stablehlo.sine %1 : tensor<f32> loc(callsite(\"g\"(\"lib.py\":7:1) at #loc1))\n"
      "    return %2 : tensor<f32> loc(#loc3)\n  } loc(#loc)\n} loc(#loc)\n#loc = loc(unknown)\n"
      "#loc2 = loc(\"jit(f)/sin\"(#loc1))\n#loc3 = loc(#loc3)\n",
      &r);
  const ax_hlo_block *block = &r.module.body.operations[0]->regions[0].blocks[0];
  static const char *const wanted[] = {"train.py:31", "m.mlir:5", "lib.py:7", "m.mlir:7"};
  for (uint32_t i = 0; i < AX_COUNT(wanted); i++) {
    ax_hlo_place_text(&r.module, &block->operations[i]->place, place, sizeof place);
    assert_string_equal(place, wanted[i]);
  }
  end(&r);
}

/* --- Errors --- */

static const struct {
  const char *text, *message;
} errors[] = {
    {"module {\n  func.func @f() {\n    %0 = stablehlo.sine %x : tensor<f32>\n  }\n}\n",
     "m.mlir:3:25: %x is not defined before it is used here"},
    {"module {", "m.mlir:1:9: expected an operation or '}', and the text ends"},
    {"modul {\n}", "m.mlir:1:1: there is no operation 'modul'"},
    {"func.func @f(%a: tensor<4xf33>) {\n  %0:2 = stablehlo.sine %a : tensor<4xf33>\n  return\n}",
     "m.mlir:2:10: stablehlo.sine has 1 results, and names for 2"},
    {"func.func @f(%a: tensor<4x) {\n}", "m.mlir:1:27: expected a type, not ')'"},
    {"func.func @f(%a: tensor<99999999999999999999xf32>) {\n}", "m.mlir:1:25: the extent is larger than 64 bits hold"},
    {"func.func @f() {\n  %0 = stablehlo.constant dense<[1, 2]> : tensor<3xi32>\n}",
     "m.mlir:2:33: the list has other than the 3 elements of dimension 0"},
    {"func.func @f() {\n  %0 = stablehlo.constant dense<[1, x]> : tensor<2xi32>\n}",
     "m.mlir:2:37: expected an integer of 64 bits, not 'x'"},
    {"func.func @f() {\n  %0 = stablehlo.constant dense<[1]> : tensor<1000000000000xi32>\n}",
     "the list has fewer elements than its type"},
    {"func.func @f() {\n  %0 = stablehlo.constant dense<\"0x00\"> : tensor<3xi32>\n}", "1 bytes are not those of 3 elements"},
    {"func.func @f() {\n  %0 = stablehlo.constant dense<\"0x0Z\"> : tensor<3xi32>\n}", "m.mlir:2:37: no hexadecimal digit"},
    {"func.func @f() {\n  %0 = stablehlo.constant dense<2> : tensor<i1>\n}", "bool does not have 2"},
    {"func.func @f() {\n  %0 = stablehlo.constant dense_resource<w> : tensor<3xi32>\n}", "the text has no resources"},
    {"func.func @f() {\n  %0 = stablehlo.constant dense_resource<__elided__> : tensor<3xi32>\n}",
     "m.mlir:2:27: the constant's elements were left out when the text was printed"},
    {"func.func @f(%a: tensor<f32>) {\n  %0 = \"a.b\"(%a) : (tensor<f64>) -> ()\n}",
     "operand 0 is tensor<f32>, and its type is given as tensor<f64>"},
    {"func.func @f(%a: tensor<f32>) {\n  %0 = \"a.b\"(%a) : () -> ()\n}", "the operation has 1 operands, and types for 0"},
    {"func.func @f(%a: tensor<f32>) {\n  \"a.b\"(%a#1) : (tensor<f32>) -> ()\n}", "%a has 1 values, and this is number 1"},
    {"func.func @f() {\n  %0 = stablehlo.constant dense<[1.5, 2.9]> : tensor<2xi32>\n}", "m.mlir:2:34: '1.5' is no integer"},
    {"func.func @f() {\n  %0 = stablehlo.constant dense<300> : tensor<2xi8>\n}", "s8 does not have 300"},
    {"#a = #a\nmodule attributes {x = #a} {\n}", "are nested here"},
    {"module attributes {x = \"open} {\n}", "the string does not end on its line"},
    {"module attributes {x = #no} {\n}", "there is no alias #no"},
    {"func.func @f(%a: tensor<f32>) {\n  %0 = stablehlo.sine %a : tensor<f32>\n  %0 = stablehlo.sine %a : tensor<f32>\n  "
     "return\n}\n",
     "m.mlir:3:4: %0 is defined twice here"},
    {"func.func @f(%a: tensor<f32>, %a: tensor<f32>) {\n  return\n}\n", "m.mlir:1:32: %a is defined twice here"},
    {"module attributes {a = 1, b = 2, a = 3} {\n}\n", "m.mlir:1:34: the attribute a is there twice"},
    {"module {\n  %c = stablehlo.constant dense<1.0> : tensor<f32>\n  func.func @main() {\n    %d = stablehlo.sine %c : "
     "tensor<f32>\n    "
     "return\n  }\n}\n",
     "m.mlir:4:25: %c is not defined before it is used here"},
    {"#a = 1\n#ab = 2\n#a = 3\nmodule {\n}", "m.mlir:3:1: the alias #a is there twice"},
};

static void test_errors(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(errors); i++) {
    reading r;
    assert_int_equal(read_bytes(errors[i].text, strlen(errors[i].text), &r), AX_PARSE_ERROR);
    if (strstr(ax_message(), errors[i].message) == NULL)
      fail_msg("%s\nis said of\n%s\nand not: %s", ax_message(), errors[i].text, errors[i].message);
    free(r.copy);
  }
}

/* Comments end an alias, and what stands in them opens no bracket. */
static void test_comments(void **state) {
  (void)state;
  reading r;
  read_ok("#map = affine_map<(d0) -> (d0)> // foo (bar\n#a = [1, // one [\n 2] \t// two\n#q = \"x // y\"\nmodule attributes {a.a = #a, a.m = #map, a.q = #q} {\n}\n", &r);
  assert_int_equal(r.module.attribute_count, 3);
  assert_int_equal(r.module.attributes[0].count, 2);
  assert_true(ax_hlo_slice_is(r.module.attributes[1].text, "affine_map<(d0) -> (d0)>"));
  assert_true(ax_hlo_slice_is(r.module.attributes[2].text, "x // y"));
  assert_true(ax_hlo_slice_is(r.module.aliases[1].text, "[1, // one [\n 2]"));
  end(&r);
}

/* Aliases of aliases double at each level; each is read once. */
static void test_aliases_of_aliases(void **state) {
  (void)state;
  ax_text text = {0};
  reading r;
  ax_text_add(&text, "#a0 = 1 : i64\n!t0 = tensor<f32>\n#loc0 = loc(fused[#loc0, #loc0])\n");
  for (int i = 1; i < 60; i++)
    ax_text_add(&text, "#a%d = [#a%d, #a%d]\n!t%d = tuple<!t%d, !t%d>\n", i, i - 1, i - 1, i, i - 1, i - 1);
  ax_text_add(&text, "module attributes {x = #a59} {\n  func.func @f(%%a: !t59) {\n    return loc(#loc0)\n  }\n}\n");
  read_ok(text.data, &r);
  char place[64];
  ax_hlo_place_text(&r.module, &r.module.body.operations[0]->regions[0].blocks[0].operations[0]->place, place, sizeof place);
  assert_string_equal(place, "m.mlir:124");
  end(&r);
  ax_text_deinit(&text);
}

static void test_deep(void **state) {
  (void)state;
  static const char *const brackets[] = {"[", "{a = ", "(", "tuple<", "dense<"};
  for (size_t k = 0; k < AX_COUNT(brackets); k++) {
    ax_text text = {0};
    reading r;
    ax_text_add(&text, "module attributes {x = ");
    for (int i = 0; i < 100000; i++) ax_text_add(&text, "%s", brackets[k]);
    assert_int_equal(read_bytes(text.data, text.length, &r), AX_PARSE_ERROR);
    free(r.copy);
    ax_text_deinit(&text);
  }
}

/* --- Any bytes --- */

static const char whole[] =
    "#loc1 = loc(\"a.py\":1:1)\n!t = tensor<4xf32>\nmodule @m attributes {mhlo.num_partitions = 1 : i32} {\n"
    "  func.func public @main(%a: !t {x.y = \"z\\22\"}, %s: tensor<f32>) -> (tensor<f32> {r = \"\"}) {\n"
    "    %cst = stablehlo.constant dense<[1.0, 0x7FC00000, -2.5e-3, 4.0]> : tensor<4xf32>\n"
    "    %0 = stablehlo.add %a, %cst : tensor<4xf32> loc(#loc1)\n"
    "    %1:2 = \"x.sort\"(%0, %cst) <{dimension = 0 : i64, is_stable = true}> ({\n"
    "    ^bb0(%x: tensor<f32>, %y: tensor<f32>, %u: tensor<f32>, %v: tensor<f32>):\n"
    "      %7 = stablehlo.compare LT, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
    "      stablehlo.return %7 : tensor<i1>\n    }) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)\n"
    "    %2 = stablehlo.reduce(%1#1 init: %s) applies stablehlo.maximum across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> "
    "tensor<f32>\n"
    "    %3 = stablehlo.convolution(%a, %a) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], pad = [[0, 0]]} "
    "{g = #stablehlo.gather<offset_dims = [1], index_vector_dim = 1>, c = array<i1: true, false>} : (tensor<4xf32>, tensor<4xf32>) "
    "-> "
    "tensor<f32>\n"
    "    %4 = stablehlo.while(%i = %2) : tensor<f32> cond {\n      %7 = stablehlo.is_finite %i : (tensor<f32>) -> tensor<i1>\n"
    "      stablehlo.return %7 : tensor<i1>\n    } do {\n      stablehlo.return %i : tensor<f32>\n    }\n"
    "    return %4 : tensor<f32>\n  }\n}\n";

static void test_cut_off(void **state) {
  (void)state;
  for (size_t bytes = 0; bytes < sizeof whole; bytes++) {
    reading r;
    if (read_bytes(whole, bytes, &r) == AX_OK)
      end(&r);
    else
      free(r.copy);
  }
}

static void test_changed(void **state) {
  (void)state;
  test_random random = {.state = 7};
  char text[sizeof whole];
  for (int round = 0; round < 20000; round++) {
    reading r;
    memcpy(text, whole, sizeof text);
    for (int64_t change = test_random_below(&random, 3); change >= 0; change--)
      text[test_random_below(&random, sizeof text - 1)] = whole[test_random_below(&random, sizeof text - 1)];
    if (read_bytes(text, sizeof text - 1, &r) == AX_OK)
      end(&r);
    else
      free(r.copy);
  }
}

static void test_location_names(void **state) {
  (void)state;
  static const char text[] = "#a = loc(\"x[0]\")\n#b = loc(#a)\n#c = loc(#c)\nmodule {\n}\n";
  static const struct {
    const char *location, *name;
  } cases[] = {{"\"w\"", "w"}, {"\"w\"(#a)", "w"}, {"#a", "x[0]"}, {"#b", "x[0]"}, {"#c", ""}, {"#d", ""},
               {"\"f.py\":3:1", ""}, {"\"open", ""}, {"unknown", ""}, {"", ""}};
  ax_hlo_module module;
  TEST_OK(ax_hlo_read_text(text, sizeof text - 1, "m.mlir", &module));
  for (size_t i = 0; i < AX_COUNT(cases); i++) {
    const ax_hlo_slice name = ax_hlo_location_name(&module, (ax_hlo_slice){cases[i].location, strlen(cases[i].location)});
    assert_true(ax_hlo_slice_is(name, cases[i].name));
  }
  ax_hlo_module_deinit(&module);
}

static ax_status read_whole(void *context) {
  ax_hlo_module module;
  (void)context;
  const ax_status status = ax_hlo_read_text(whole, sizeof whole - 1, "m.mlir", &module);
  if (status == AX_OK) ax_hlo_module_deinit(&module);
  return status;
}

static void test_out_of_memory(void **state) {
  (void)state;
  assert_true(test_each_allocation(read_whole, NULL) > 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms),
                                     cmocka_unit_test(test_elements),
                                     cmocka_unit_test(test_resources),
                                     cmocka_unit_test(test_places),
                                     cmocka_unit_test(test_location_names),
                                     cmocka_unit_test(test_errors),
                                     cmocka_unit_test(test_deep),
                                     cmocka_unit_test(test_aliases_of_aliases),
                                     cmocka_unit_test(test_comments),
                                     cmocka_unit_test(test_cut_off),
                                     cmocka_unit_test(test_changed),
                                     cmocka_unit_test(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
