/* Questions about a module: names, attributes with what stands for those that are missing, types, places, constants. */
#include "hlo/module.h"

#include <string.h>

#include "hlo/print.h"
#include "hlo/read_text.h"
#include "hlo/reader.h"
#include "hlo/writer.h"
#include "support/cmocka.h"
#include "support/tensor.h"

static ax_hlo_slice slice(const char *text) { return (ax_hlo_slice){text, strlen(text)}; }

static const char text[] =
    "#loc = loc(\"train.py\":31:4)\n"
    "#loc1 = loc(\"loss\"(#loc))\n"
    "func.func @main(%a: tensor<2x3xf32>, %b: tensor<?x3xf32>, %q: tensor<2x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<2x3xf32> {\n"
    "  %0 = stablehlo.constant dense<2> : tensor<i32>\n"
    "  %1 = \"stablehlo.op\"(%a) {n = 7 : i64, yes = true, list = array<i64: 1, 2>, same = dense<5> : tensor<3xi64>, pads = dense<[[1, 2]]> : "
    "tensor<1x2xi64>} : (tensor<2x3xf32>) -> tensor<2x3xf32> loc(#loc1)\n"
    "  %2 = stablehlo.add %1, %1 : tensor<2x3xf32>\n"
    "  return %2 : tensor<2x3xf32>\n"
    "}\n";

typedef struct opened {
  ax_hlo_module module;
  const ax_hlo_operation *function, *constant, *op;
} opened;

static opened open(void) {
  opened o;
  if (ax_hlo_read_text(text, strlen(text), "m.mlir", &o.module) != AX_OK) fail_msg("%s", ax_message());
  o.function = o.module.body.operations[0];
  const ax_hlo_block *block = &o.function->regions[0].blocks[0];
  o.constant = block->operations[0];
  o.op = block->operations[1];
  return o;
}

static void test_slices(void **state) {
  (void)state;
  const ax_hlo_slice nowhere = {0};
  assert_true(ax_hlo_slice_order(slice("add"), slice("adds")) < 0);
  assert_true(ax_hlo_slice_order(slice("b"), slice("adds")) > 0);
  assert_int_equal(ax_hlo_slice_order(nowhere, nowhere), 0);
  assert_true(ax_hlo_slice_order(nowhere, slice("a")) < 0);
  assert_true(ax_hlo_slice_same(slice("add"), slice("add")));
  assert_false(ax_hlo_slice_same(slice("add"), nowhere));
  assert_true(ax_hlo_is_digit('0') && ax_hlo_is_digit('9') && !ax_hlo_is_digit('a'));
  assert_int_equal(ax_hlo_hex_digit('F'), 15);
  assert_int_equal(ax_hlo_hex_digit('b'), 11);
  assert_int_equal(ax_hlo_hex_digit('g'), -1);
  ax_dtype dtype;
  assert_true(ax_hlo_find_dtype(slice("bf16"), &dtype) && dtype == AX_BF16);
  assert_true(ax_hlo_find_dtype(slice("ui8"), &dtype) && dtype == AX_U8);
  assert_false(ax_hlo_find_dtype(slice("f33"), &dtype));
}

static void test_attributes(void **state) {
  (void)state;
  opened o = open();
  int64_t number;
  bool yes;
  ax_dims dims, high;
  TEST_OK(ax_hlo_integer(o.op, "n", &number));
  assert_int_equal(number, 7);
  TEST_OK(ax_hlo_integer_or(o.op, "none", 9, &number));
  assert_int_equal(number, 9);
  TEST_FAILS(ax_hlo_integer(o.op, "none", &number), AX_INVALID_ARGUMENT, "none");
  TEST_FAILS(ax_hlo_integer_or(o.op, "list", 9, &number), AX_INVALID_ARGUMENT, "list");
  TEST_OK(ax_hlo_bool(o.op, "yes", &yes));
  assert_true(yes);
  TEST_OK(ax_hlo_bool_or(o.op, "none", true, &yes));
  assert_true(yes);
  TEST_FAILS(ax_hlo_bool_or(o.op, "n", true, &yes), AX_INVALID_ARGUMENT, "n");
  TEST_OK(ax_hlo_integers(o.op, "list", &dims));
  assert_true(dims.count == 2 && dims.v[1] == 2);
  TEST_OK(ax_hlo_integers(o.op, "same", &dims)); /* a splat is each element */
  assert_true(dims.count == 3 && dims.v[2] == 5);
  TEST_OK(ax_hlo_integers_or(o.op, "none", 2, 1, &dims));
  assert_true(dims.count == 2 && dims.v[1] == 1);
  TEST_FAILS(ax_hlo_integers_or(o.op, "list", 3, 1, &dims), AX_INVALID_ARGUMENT, "list");
  ax_hlo_operation padded = *o.op;
  ax_hlo_attribute pads = *ax_hlo_find(o.op, "pads");
  pads.name = slice("padding");
  padded.attributes = &pads, padded.attribute_count = 1;
  TEST_OK(ax_hlo_read_padding(&padded, 1, &dims, &high));
  assert_true(dims.v[0] == 1 && high.v[0] == 2);
  ax_hlo_module_deinit(&o.module);
}

static void test_types(void **state) {
  (void)state;
  opened o = open();
  const uint32_t first = o.function->regions[0].blocks[0].argument;
  const ax_hlo_value_type *known = o.module.values[first], *open_type = o.module.values[first + 1], *quantized = o.module.values[first + 2];
  ax_type type;
  TEST_OK(ax_hlo_array_type(known, &type));
  assert_true(type.rank == 2 && type.dims[1] == 3 && type.dtype == AX_F32);
  assert_true(ax_hlo_type_fits(known, &type));
  assert_true(ax_hlo_type_fits(open_type, &type)); /* any extent may stand for `?` */
  TEST_FAILS(ax_hlo_array_type(open_type, &type), AX_ABSENT, "?");
  TEST_OK(ax_hlo_open_type(open_type, &type));
  assert_true(type.dims[0] == AX_HLO_DYNAMIC && type.dims[1] == 3);
  type.dims[0] = 2, type.dims[1] = 4;
  assert_false(ax_hlo_type_fits(open_type, &type));
  assert_true(ax_hlo_same_quantized(NULL, NULL));
  assert_false(ax_hlo_same_quantized(quantized->quantized, NULL));
  ax_hlo_quantized other = *quantized->quantized;
  assert_true(ax_hlo_same_quantized(quantized->quantized, &other));
  other.zeros = &(const int64_t){4};
  assert_false(ax_hlo_same_quantized(quantized->quantized, &other));
  assert_ptr_equal(known, o.module.values[o.op->result]); /* equal types are one */
  ax_hlo_module_deinit(&o.module);
}

static void test_places(void **state) {
  (void)state;
  opened o = open();
  ax_hlo_slice file;
  int64_t line;
  char place[64];
  assert_true(ax_hlo_place_line(&o.module, &o.op->place, &file, &line));
  assert_true(ax_hlo_slice_is(file, "train.py") && line == 31);
  assert_false(ax_hlo_place_line(&o.module, &o.constant->place, &file, &line));
  ax_hlo_place_text(&o.module, &o.op->place, place, sizeof place);
  assert_string_equal(place, "train.py:31");
  ax_hlo_place_text(&o.module, &o.constant->place, place, sizeof place);
  assert_string_equal(place, "m.mlir:4");
  ax_hlo_module_deinit(&o.module);
}

static void test_constants(void **state) {
  (void)state;
  opened o = open();
  const ax_hlo_attribute *two = ax_hlo_constant(&o.module, o.constant->result);
  assert_non_null(two);
  assert_int_equal(*(const int32_t *)two->data, 2);
  assert_null(ax_hlo_constant(&o.module, o.op->result));
  assert_null(ax_hlo_constant(&o.module, o.function->regions[0].blocks[0].argument));
  const ax_hlo_region regions[3] = {{0}};
  ax_hlo_operation branches = {.operands = &o.constant->result, .operand_count = 1, .regions = regions, .region_count = 3};
  assert_int_equal(ax_hlo_chosen(&o.module, &branches), 2);
  branches.region_count = 2;
  assert_int_equal(ax_hlo_chosen(&o.module, &branches), 1); /* one outside is the last */
  branches.operands = &o.op->result;
  assert_int_equal(ax_hlo_chosen(&o.module, &branches), AX_NONE);
  ax_hlo_module_deinit(&o.module);
}

/* Strings and types are in a file once, however many there are. */
static void test_pools(void **state) {
  (void)state;
  opened o = open();
  ax_hlo_writer w = {.module = &o.module, .version = AX_HLO_VERSION(1, 0), .attributes_left = 1000};
  uint32_t first, again, other;
  TEST_OK(ax_hlo_intern_string(&w, slice("x"), &first));
  TEST_OK(ax_hlo_intern_string(&w, slice("y"), &other));
  TEST_OK(ax_hlo_intern_string(&w, slice("x"), &again));
  assert_true(first == again && other != first && w.strings.count == 2);
  for (uint32_t dialect = 0; dialect < 2; dialect++) {
    ax_text bytes = {0};
    ax_text_add(&bytes, "module");
    TEST_OK(ax_hlo_intern(&w, &w.names, dialect, &bytes, &again));
    assert_int_equal(again, dialect); /* of another dialect it is another name */
    ax_text_deinit(&bytes);
  }
  TEST_OK(ax_hlo_write_type(&w, o.module.values[o.op->result], &first));
  const uint32_t types = w.types.count;
  TEST_OK(ax_hlo_write_type(&w, o.module.values[o.op->result], &again));
  assert_true(first == again && w.types.count == types);
  TEST_OK(ax_hlo_write_simple(&w, slice("f32"), &other)); /* the tensor's element has it already */
  assert_int_equal(w.types.count, types);
  TEST_OK(ax_hlo_write_integer(&w, 7, "i64", &first));
  TEST_OK(ax_hlo_write_integer(&w, 7, "i32", &other));
  assert_int_not_equal(first, other);
  TEST_OK(ax_hlo_write_numbers(&w, (const int64_t[]){1, 2}, 2, 0, false, &first));
  TEST_OK(ax_hlo_write_attribute(&w, ax_hlo_find(o.op, "list"), &again));
  const uint32_t items[] = {first, first};
  TEST_OK(ax_hlo_write_array(&w, items, 2, &other));
  assert_int_not_equal(other, first);
  const ax_hlo_entry_index entries[] = {{slice("b"), first}, {slice("a"), other}};
  TEST_OK(ax_hlo_write_dictionary(&w, entries, 2, &again));
  TEST_OK(ax_hlo_write_place(&w, &o.op->place, &again));
  TEST_OK(ax_hlo_write_accuracy(&w, NULL, &again));
  /* what is written as text is another than VHLO's */
  const uint32_t before = w.types.count;
  TEST_OK(ax_hlo_write_plain_type(&w, o.module.values[o.op->result], &first));
  TEST_OK(ax_hlo_write_plain_type(&w, o.module.values[o.op->result], &again));
  assert_true(first == again && w.types.count == before + 1 && w.types.items[first].dialect == AX_HLO_WRITES_TEXT);
  TEST_OK(ax_hlo_write_as_text(&w, ax_hlo_find(o.op, "list"), &again));
  assert_int_equal(w.attributes.items[again].bytes.start[w.attributes.items[again].bytes.length - 1], '\0');
  ax_hlo_pool_deinit(&w.strings);
  ax_hlo_pool_deinit(&w.names);
  ax_hlo_pool_deinit(&w.attributes);
  ax_hlo_pool_deinit(&w.types);
  ax_arena_deinit(&w.arena);
  ax_hlo_module_deinit(&o.module);
}

static void test_beside(void **state) {
  (void)state;
  ax_hlo_operation op = {.name = slice("chlo.erf"), .operand_count = 2, .result_count = 1};
  assert_true(ax_hlo_beside(&op) == AX_HLO_WRITES_CHLO && ax_hlo_casts_of(&op) == 3);
  op.name = slice("sdy.mesh");
  assert_int_equal(ax_hlo_beside(&op), AX_HLO_WRITES_SDY);
  op.name = slice("stablehlo.sine");
  assert_true(ax_hlo_beside(&op) == AX_HLO_WRITES_VHLO && ax_hlo_casts_of(&op) == 0);
  opened o = open();
  ax_text text = {0};
  TEST_OK(ax_hlo_print_type(&o.module, o.module.values[o.op->result], &text));
  ax_text_add(&text, " ");
  TEST_OK(ax_hlo_print_attribute(&o.module, ax_hlo_find(o.op, "list"), &text));
  ax_text_add(&text, " ");
  TEST_OK(ax_hlo_print_attributes(&o.module, &op, &text));
  ax_text_add_bytes(&text, "", 1);
  assert_string_equal(text.data, "tensor<2x3xf32> array<i64: 1, 2> {}");
  ax_text_deinit(&text);
  ax_hlo_module_deinit(&o.module);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_slices), cmocka_unit_test(test_attributes), cmocka_unit_test(test_types),
                                     cmocka_unit_test(test_places), cmocka_unit_test(test_constants), cmocka_unit_test(test_pools), cmocka_unit_test(test_beside)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
