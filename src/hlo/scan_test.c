/* The pieces that the reader of texts is made of, each on a text of its own: words, marks, numbers, strings, brackets, types,
   attributes, names in scopes; and the questions that primitives ask about attributes. */
#include <stdio.h>
#include <string.h>

#include "hlo/reader.h"
#include "support/cmocka.h"
#include "support/tensor.h"

static ax_hlo_module module;

static ax_hlo_scan at(const char *text) {
  ax_hlo_module_deinit(&module);
  module.source = "t";
  return (ax_hlo_scan){.module = &module, .text = text, .end = text + strlen(text), .cursor = text, .line_start = text, .line = 1};
}
static void done(ax_hlo_scan *r) {
  ax_free(r->names);
  ax_table_deinit(&r->table);
  ax_free(r->hidden);
  ax_free(r->types);
  ax_hlo_module_deinit(&module);
}
static void expect_slice(ax_hlo_slice slice, const char *text) {
  if (!ax_hlo_slice_is(slice, text)) fail_msg("%.*s, and not %s", (int)slice.length, slice.start, text);
}

/* --- Words --- */

static void test_words(void **state) {
  (void)state;
  ax_hlo_slice word;
  ax_hlo_attribute symbol = {0};
  int64_t number;
  ax_hlo_scan r = at("  // comment\n name.of -> \"a\\22\\n\\\\b\" @\"x y\" @m::@f %arg-1 -17 0xFF (<[a]>\"(\") tail");
  ax_hlo_skip(&r);
  assert_true(ax_hlo_sees(&r, "name.of"));
  assert_false(ax_hlo_sees(&r, "name")); /* the beginning of a longer word */
  TEST_OK(ax_hlo_want_word(&r, "a word", &word));
  expect_slice(word, "name.of");
  assert_false(ax_hlo_take(&r, "<-"));
  TEST_OK(ax_hlo_want(&r, "->"));
  TEST_OK(ax_hlo_want_string(&r, &word));
  expect_slice(word, "a\"\n\\b");
  TEST_OK(ax_hlo_want_symbol(&r, &symbol));
  expect_slice(symbol.text, "x y");
  TEST_OK(ax_hlo_want_symbol(&r, &symbol));
  expect_slice(symbol.text, "f");
  assert_int_equal(symbol.count, 1);
  expect_slice(symbol.items[0].text, "m");
  TEST_OK(ax_hlo_want_name(&r, '%', &word));
  expect_slice(word, "arg-1");
  TEST_OK(ax_hlo_want_integer(&r, &number));
  assert_int_equal(number, -17);
  TEST_OK(ax_hlo_want_integer(&r, &number));
  assert_int_equal(number, 255);
  TEST_OK(ax_hlo_want_balanced(&r, &word));
  expect_slice(word, "<[a]>\"(\"");
  expect_slice(ax_hlo_take_word(&r), "tail");
  assert_int_equal(ax_hlo_take_word(&r).length, 0);
  done(&r);
}

static void test_places(void **state) {
  (void)state;
  ax_hlo_scan r = at("one\n  two three");
  const ax_hlo_place place = ax_hlo_place_at(&r, r.text + 6), before = ax_hlo_place_at(&r, r.text + 1);
  assert_int_equal(place.line, 2);
  assert_int_equal(place.column, 3);
  assert_int_equal(before.line, 1);
  assert_int_equal(before.column, 2);
  TEST_FAILS(ax_hlo_refuse(&r, r.text + 10, "no %s", "three"), AX_PARSE_ERROR, "t:2:7: no three\n    two three\n        ^");
  r.cursor = r.end;
  TEST_FAILS(ax_hlo_expected(&r, "more"), AX_PARSE_ERROR, "expected more, and the text ends");
  done(&r);
}

static void test_nesting(void **state) {
  (void)state;
  ax_hlo_scan r = at("x");
  for (int i = 0; i < AX_HLO_MOST_NESTED; i++) TEST_OK(ax_hlo_enter(&r));
  TEST_FAILS(ax_hlo_enter(&r), AX_PARSE_ERROR, "are nested here");
  ax_hlo_leave(&r);
  ax_hlo_leave(&r);
  TEST_OK(ax_hlo_enter(&r));
  done(&r);
}

static void test_lists(void **state) {
  (void)state;
  ax_hlo_scan r = at("");
  ax_hlo_list list = {0}, failed = {0};
  ax_status status = AX_OK;
  for (int64_t i = 0; i < 100; i++) {
    TEST_OK(ax_hlo_list_add(&list, &i, sizeof i));
    TEST_OK(ax_hlo_list_add(&failed, &i, sizeof i));
  }
  const int64_t *items = ax_hlo_list_end(&r, &list, sizeof items[0], &status);
  TEST_OK(status);
  for (int64_t i = 0; i < 100; i++) assert_int_equal(items[i], i);
  assert_int_equal(list.count, 0);
  status = AX_PARSE_ERROR;
  assert_null(ax_hlo_list_end(&r, &failed, sizeof items[0], &status));
  done(&r);
}

/* --- Types and attributes --- */

static void test_types(void **state) {
  (void)state;
  const ax_hlo_value_type *a, *b, *signature;
  ax_type type;
  ax_hlo_scan r =
      at("tensor<4x?xbf16> tensor<2x3xi4> tensor<2x3xi4> (tensor<f32>, tuple<tensor<i1>, !stablehlo.token>) -> (i64, index)");
  TEST_OK(ax_hlo_want_type(&r, &a));
  assert_true(a->dynamic && a->dtype == AX_BF16 && a->rank == 2 && a->dims[0] == 4 && a->dims[1] == AX_HLO_DYNAMIC);
  TEST_FAILS(ax_hlo_array_type(a, &type), AX_ABSENT, "tensor<4x?xbf16>: shapes that are not known");
  TEST_OK(ax_hlo_want_type(&r, &a));
  TEST_OK(ax_hlo_want_type(&r, &b));
  assert_ptr_equal(a, b);
  TEST_OK(ax_hlo_array_type(a, &type));
  assert_true(type.dtype == AX_S4 && type.rank == 2 && type.dims[1] == 3);
  TEST_OK(ax_hlo_want_signature(&r, &signature));
  assert_int_equal(signature->in_count, 2);
  assert_int_equal(signature->part_count, 4);
  assert_int_equal(signature->parts[1]->kind, AX_HLO_TUPLE);
  TEST_FAILS(ax_hlo_array_type(signature->parts[1], &type), AX_ABSENT, "values of type tuple<");
  TEST_OK(ax_hlo_array_type(signature->parts[1]->parts[1], &type));
  assert_int_equal(type.form, AX_TOKEN);
  TEST_FAILS(ax_hlo_want_signature(&r, &signature), AX_PARSE_ERROR, "expected a signature");
  done(&r);
  ax_hlo_list list = {0};
  r = at("(tensor<f32>, tensor<f64>) tensor<i8>");
  TEST_OK(ax_hlo_want_results(&r, &list));
  TEST_OK(ax_hlo_want_results(&r, &list));
  assert_int_equal(list.count, 3);
  ax_free(list.items);
  done(&r);
}

static void test_attributes(void **state) {
  (void)state;
  ax_hlo_list entries = {0};
  ax_hlo_attribute one = {0}, conv = {0};
  ax_hlo_scan r =
      at("{i = 7 : i32, t = true, u, n = array<i64: 1, 2>, d = dense<[3, 4]> : tensor<2xi64>, l = [5, 6], s = \"x\", far = [1.5]} "
         "0x7F : f32 "
         "[b, 0, f]x[0, i, o]->[b, 0, f]");
  TEST_OK(ax_hlo_want_entries(&r, &entries));
  const ax_hlo_operation op = {.name = {"a.b", 3}, .attributes = entries.items, .attribute_count = entries.count};
  const ax_hlo_attribute all = {.kind = AX_HLO_DICTIONARY, .items = entries.items, .count = entries.count};
  int64_t integer;
  bool truth;
  ax_dims dims;
  TEST_OK(ax_hlo_integer(&op, "i", &integer));
  assert_int_equal(integer, 7);
  TEST_FAILS(ax_hlo_integer(&op, "s", &integer), AX_INVALID_ARGUMENT, "the attribute s must be an integer");
  TEST_OK(ax_hlo_bool(&op, "t", &truth));
  assert_true(truth);
  TEST_OK(ax_hlo_bool(&op, "u", &truth));
  TEST_FAILS(ax_hlo_bool(&op, "none", &truth), AX_INVALID_ARGUMENT, "the attribute none is missing");
  static const char *const lists[] = {"n", "d", "l"};
  for (int i = 0; i < 3; i++) {
    TEST_OK(ax_hlo_integers(&op, lists[i], &dims));
    assert_true(dims.count == 2 && dims.v[0] == 1 + 2 * i && dims.v[1] == 2 + 2 * i);
  }
  TEST_FAILS(ax_hlo_integers(&op, "far", &dims), AX_INVALID_ARGUMENT, "the attribute far must be a list");
  TEST_OK(ax_hlo_item_integers(&all, "absent", &dims));
  assert_int_equal(dims.count, 0);
  assert_ptr_equal(ax_hlo_item(&all, "i"), ax_hlo_find(&op, "i"));
  TEST_OK(ax_hlo_want_attribute(&r, &one));
  assert_int_equal(one.kind, AX_HLO_FLOAT);
  TEST_OK(ax_hlo_want_conv(&r, &conv));
  assert_int_equal(ax_hlo_item(&conv, "kernel_output_feature_dimension")->integer, 2);
  assert_int_equal(ax_hlo_item(&conv, "input_spatial_dimensions")->numbers[0], 1);
  ax_free(entries.items);
  done(&r);
}

static void test_elements(void **state) {
  (void)state;
  ax_hlo_attribute value = {0};
  ax_hlo_scan r = at("dense<[1, 2]> : tensor<2xui8>");
  TEST_OK(ax_hlo_want_elements(&r, &value));
  assert_memory_equal(value.data, "\1\2", 2);
  done(&r);
  /* one number in a file's bytes is kept as one, however many elements it stands for and wherever it lies */
  static const uint32_t words[] = {0x3f800000u, 0x3f800000u};
  r = at("");
  ax_hlo_scan of_type = at("tensor<1000000x1000000xf32>");
  TEST_OK(ax_hlo_want_type(&of_type, &value.type));
  TEST_OK(ax_hlo_elements_of(&r, (const char *)words + 1, 4, &value));
  assert_true(value.splat);
  assert_memory_equal(value.data, (const char *)words + 1, 4);
  done(&of_type);
  done(&r);
}

/* --- Names --- */

static void expect_operand(ax_hlo_scan *r, uint32_t wanted) {
  uint32_t value;
  TEST_OK(ax_hlo_want_operand(r, &value));
  assert_int_equal(value, wanted);
}

/* An inner name hides an outer one until its scope ends, however large the table has become meanwhile. */
static void test_scopes(void **state) {
  (void)state;
  static char names[1000][8];
  const ax_hlo_value_type *type;
  ax_hlo_scan r = at("tensor<f32> %a %a %b#1 %a %b %c");
  uint32_t first, value;
  TEST_OK(ax_hlo_want_type(&r, &type));
  const ax_hlo_value_type *const types[] = {type, type, type};
  TEST_OK(ax_hlo_new_values(&r, 3, types, &first));
  TEST_OK(ax_hlo_name_values(&r, (ax_hlo_slice){"a", 1}, first, 1));
  TEST_OK(ax_hlo_name_values(&r, (ax_hlo_slice){"b", 1}, first + 1, 2));
  TEST_FAILS(ax_hlo_name_values(&r, (ax_hlo_slice){"a", 1}, first, 1), AX_PARSE_ERROR, "%a is defined twice here");
  const uint32_t mark = ax_hlo_names_mark(&r);
  r.scope = mark; /* an inner region begins */
  expect_operand(&r, first);
  for (uint32_t i = 0; i < 1000; i++) {
    snprintf(names[i], sizeof names[i], "n%u", i);
    TEST_OK(ax_hlo_name_values(&r, (ax_hlo_slice){names[i], strlen(names[i])}, first, 1));
  }
  TEST_OK(ax_hlo_name_values(&r, (ax_hlo_slice){"a", 1}, first + 2, 1));
  expect_operand(&r, first + 2);
  expect_operand(&r, first + 2);
  ax_hlo_names_drop(&r, mark);
  expect_operand(&r, first);
  expect_operand(&r, first + 1); /* the first of two */
  TEST_FAILS(ax_hlo_want_operand(&r, &value), AX_PARSE_ERROR, "%c is not defined before it is used here");
  done(&r);
}

static void test_aliases(void **state) {
  (void)state;
  ax_hlo_module with = {0};
  static char names[1000][8];
  assert_null(ax_hlo_find_alias(&with, (ax_hlo_slice){"#a", 2}));
  TEST_OK(ax_hlo_add_alias(&with, (ax_hlo_slice){"!t", 2}, (ax_hlo_slice){"tensor<f32>", 11}));
  TEST_OK(ax_hlo_add_alias(&with, (ax_hlo_slice){"#a", 2}, (ax_hlo_slice){"5", 1}));
  TEST_OK(ax_hlo_add_alias(&with, (ax_hlo_slice){"#ab", 3}, (ax_hlo_slice){"6", 1}));
  for (uint32_t i = 0; i < AX_COUNT(names); i++) {
    snprintf(names[i], sizeof names[i], "#n%u", i);
    TEST_OK(ax_hlo_add_alias(&with, (ax_hlo_slice){names[i], strlen(names[i])}, (ax_hlo_slice){names[i], strlen(names[i])}));
  }
  expect_slice(ax_hlo_find_alias(&with, (ax_hlo_slice){"#a", 2})->text, "5");
  expect_slice(ax_hlo_find_alias(&with, (ax_hlo_slice){"!t", 2})->text, "tensor<f32>");
  expect_slice(ax_hlo_find_alias(&with, (ax_hlo_slice){"#n777", 5})->text, "#n777");
  assert_null(ax_hlo_find_alias(&with, (ax_hlo_slice){"#b", 2}));
  ax_hlo_module_deinit(&with);
}

static void test_windows(void **state) {
  (void)state;
  ax_hlo_list entries = {0};
  ax_hlo_scan r = at("{padding = [[1, 2], [3, 4]], n = [5, 6]}");
  TEST_OK(ax_hlo_want_entries(&r, &entries));
  const ax_hlo_operation op = {.attributes = entries.items, .attribute_count = entries.count};
  ax_dims low, high;
  TEST_OK(ax_hlo_read_padding(&op, 2, &low, &high));
  assert_true(low.v[0] == 1 && high.v[0] == 2 && low.v[1] == 3 && high.v[1] == 4);
  TEST_FAILS(ax_hlo_read_padding(&op, 3, &low, &high), AX_INVALID_ARGUMENT, "padding must be a list of 3 pairs of integers");
  TEST_OK(ax_hlo_integers_or(&op, "m", 2, 7, &low));
  assert_int_equal(low.v[1], 7);
  TEST_FAILS(ax_hlo_integers_or(&op, "n", 3, 7, &low), AX_INVALID_ARGUMENT, "n has 2 entries, and must have 3");
  ax_free(entries.items);
  done(&r);
}

/* --- Drafts --- */

static void test_drafts(void **state) {
  (void)state;
  ax_hlo_draft draft = {0};
  ax_hlo_scan r = at("{k = 1} {\n  \"x.y\"() : () -> ()\n} : () -> tensor<f32>");
  const ax_hlo_attribute two = {.kind = AX_HLO_INTEGER, .integer = 2};
  const ax_hlo_block block = {.argument_count = 1};
  TEST_OK(ax_hlo_draft_attributes(&r, &draft));
  TEST_OK(ax_hlo_draft_attribute(&draft, "l", &two));
  TEST_OK(ax_hlo_want_region(&r, &draft, NULL));
  TEST_OK(ax_hlo_draft_region(&r, &draft, &block));
  TEST_OK(ax_hlo_want_typed(&r, &draft));
  assert_int_equal(draft.attributes.count, 2);
  assert_int_equal(draft.regions.count, 2);
  assert_int_equal(draft.results.count, 1);
  assert_int_equal(((const ax_hlo_region *)draft.regions.items)[0].blocks[0].operation_count, 1);
  ax_free(draft.attributes.items);
  ax_free(draft.regions.items);
  ax_free(draft.results.items);
  done(&r);
  ax_hlo_draft pretty = {0};
  r = at("stablehlo.iota dim = 0 : tensor<3xi32>");
  TEST_OK(ax_hlo_want_pretty(&r, &pretty));
  expect_slice(pretty.op.name, "stablehlo.iota");
  ax_free(pretty.attributes.items);
  ax_free(pretty.results.items);
  done(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_words),    cmocka_unit_test(test_places), cmocka_unit_test(test_nesting),
      cmocka_unit_test(test_lists),    cmocka_unit_test(test_types),  cmocka_unit_test(test_attributes),
      cmocka_unit_test(test_elements), cmocka_unit_test(test_scopes), cmocka_unit_test(test_aliases),
      cmocka_unit_test(test_windows),  cmocka_unit_test(test_drafts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
