/* Bytecode of all kinds of operations, as JAX's libraries write it, is read as the text of the same module is; and no bytes, cut off or
   changed anywhere, do harm. */
#include "hlo/read_bytecode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/files.h"
#include "hlo/print.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/random.h"

/* --- Files --- */

typedef struct file {
  char *bytes;
  size_t count;
} file;

/* Exactly as many bytes, so that a sanitizer sees a read beyond them. */
static file load(const char *name) {
  char path[256];
  file f = {0};
  snprintf(path, sizeof path, "tests/bytecode/%s", name);
  FILE *stream = fopen(path, "rb");
  if (stream == NULL) fail_msg("there is no %s", path);
  fseek(stream, 0, SEEK_END);
  f.count = (size_t)ftell(stream);
  f.bytes = malloc(f.count);
  rewind(stream);
  assert_int_equal(fread(f.bytes, 1, f.count, stream), f.count);
  fclose(stream);
  return f;
}

static char *printed(const char *bytes, size_t count) {
  ax_hlo_module module;
  ax_text text = {0};
  char *out;
  if (ax_hlo_read(bytes, count, "m", &module) != AX_OK) fail_msg("%s", ax_message());
  assert_int_equal(ax_hlo_print(&module, &text), AX_OK);
  assert_int_equal(ax_text_finish(&text, &out), AX_OK);
  ax_hlo_module_deinit(&module);
  return out;
}

static void check_same(const char *name, const char *other) {
  file a = load(name), b = load(other);
  char *from_a = printed(a.bytes, a.count), *from_b = printed(b.bytes, b.count);
  assert_string_equal(from_a, from_b);
  ax_free(from_a);
  ax_free(from_b);
  free(a.bytes);
  free(b.bytes);
}

/* --- The same as texts --- */

static const char *const artifacts[] = {"all.0.9.0.mlirbc", "all.0.12.0.mlirbc", "all.0.14.0.mlirbc", "all.1.0.0.mlirbc",
                                        "all.1.17.0.mlirbc"};

static void test_versions(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(artifacts); i++) check_same(artifacts[i], "all.mlir");
}

static void test_plain(void **state) {
  (void)state;
  check_same("all.plain.mlirbc", "all.mlir");
  check_same("plain.plain.mlirbc", "plain.mlir");
  check_same("plain.5.mlirbc", "plain.mlir"); /* version 5, which has the numbers of chlo.scan's operands among its attributes */
}

/* Values between operations of VHLO and of Shardy have one type. */
static void test_mixed(void **state) {
  (void)state;
  check_same("mixed.1.0.0.mlirbc", "mixed.mlir");
}

/* What is printed is read, and printed again as it was. */
static void test_printed(void **state) {
  (void)state;
  static const char *const names[] = {"all.mlir", "all.1.0.0.mlirbc", "plain.plain.mlirbc"};
  for (size_t i = 0; i < AX_COUNT(names); i++) {
    file f = load(names[i]);
    char *once = printed(f.bytes, f.count), *twice = printed(once, strlen(once));
    assert_string_equal(once, twice);
    assert_non_null(strstr(once, "  func.func public @main("));
    ax_free(once);
    ax_free(twice);
    free(f.bytes);
  }
}

/* Types made of others are printed without aliases, which are not printed, and only as long as texts can be. */
static void test_printed_types(void **state) {
  static const char text[] = "!f = tensor<2xf32>\n!p = tuple<!f, tuple< !f >>\nfunc.func @main(%x: !p, %y: !stablehlo.future<!f>) {\n  return\n}\n";
  (void)state;
  char *once = printed(text, sizeof text - 1);
  assert_non_null(strstr(once, "@main(%0: tuple<tensor<2xf32>, tuple<tensor<2xf32>>>, %1: !stablehlo.future<tensor<2xf32>>)"));
  ax_free(once);
  ax_text many = {0}, out = {0};
  ax_hlo_module module;
  ax_text_add(&many, "!t0 = tensor<f32>\n");
  for (int i = 1; i < 60; i++) ax_text_add(&many, "!t%d = tuple<!t%d, !t%d>\n", i, i - 1, i - 1);
  ax_text_add(&many, "func.func @main(%%x: !t59) {\n  return\n}\n");
  assert_int_equal(ax_hlo_read(many.data, many.length, "m", &module), AX_OK);
  assert_int_equal(ax_hlo_print(&module, &out), AX_ABSENT);
  assert_string_equal(ax_message(), "m: the types are too large as text");
  ax_hlo_module_deinit(&module);
  ax_text_deinit(&many);
  ax_text_deinit(&out);
}

/* Attributes that mean nothing to StableHLO come back as MLIR prints them, and once more the same. */
static void test_printed_attributes(void **state) {
  static const char *const cases[][2] = {{"18446744073709551615 : ui64", NULL},
                                         {"9223372036854775808 : i64", "-9223372036854775808 : i64"},
                                         {"4294967295 : i32", "-1 : i32"},
                                         {"255 : ui8", NULL},
                                         {"@a::@b::@\"c d\"", NULL},
                                         {"\"s\" : f32", NULL},
                                         {"1.0e400 : f64", "0x7FF0000000000000 : f64"},
                                         {"0x7FC1 : bf16", NULL},
                                         {"0x3F800000 : f32", "1.00000000e+00 : f32"},
                                         {"#stablehlo<precision HIGH>", NULL},
                                         {"#chlo<comparison_direction GE>", NULL},
                                         {"#stablehlo.result_accuracy_mode<HIGHEST>", NULL},
                                         {"#complex.number<:f32 1.0, 0x7F800000>", "#complex.number<:f32 1.00000000e+00, 0x7F800000> : complex<f32>"}};
  (void)state;
  for (size_t i = 0; i < AX_COUNT(cases); i++) {
    char text[256], wanted[256];
    snprintf(text, sizeof text, "module attributes {x.y = %s} {\n}\n", cases[i][0]);
    snprintf(wanted, sizeof wanted, "module attributes {x.y = %s} {\n}\n", cases[i][cases[i][1] != NULL]);
    char *once = printed(text, strlen(text)), *twice = printed(once, strlen(once));
    assert_string_equal(once, wanted);
    assert_string_equal(twice, wanted);
    ax_free(once);
    ax_free(twice);
  }
}

static void test_formats(void **state) {
  (void)state;
  file f = load("all.1.0.0.mlirbc");
  assert_int_equal(ax_hlo_format_of(f.bytes, f.count), AX_HLO_BYTECODE);
  assert_int_equal(ax_hlo_format_of(f.bytes, 3), AX_HLO_NO_MODULE);
  assert_false(ax_hlo_is_bytecode(f.bytes, 3));
  assert_int_equal(ax_hlo_format_of("// a\nmodule {}", 14), AX_HLO_TEXT);
  assert_int_equal(ax_hlo_format_of("HloModule f\n", 12), AX_HLO_TEXT);
  assert_int_equal(ax_hlo_format_of("{ lambda .", 10), AX_HLO_NO_MODULE);
  assert_int_equal(ax_hlo_format_of("", 0), AX_HLO_NO_MODULE);
  free(f.bytes);
}

/* Lines of the module's own, and numbers of operations where there are none. */
static void test_places(void **state) {
  (void)state;
  static const struct {
    const char *op, *place;
  } wanted[] = {{"stablehlo.broadcast_in_dim", "model.py:7"}, {"stablehlo.multiply", "lib.py:3"}};
  file f = load("plain.plain.mlirbc");
  ax_hlo_module module;
  char place[64];
  uint32_t found = 0;
  assert_int_equal(ax_hlo_read(f.bytes, f.count, "m", &module), AX_OK);
  const ax_hlo_block *block = &module.body.operations[1]->regions[0].blocks[0];
  for (uint32_t i = 0; i < block->operation_count; i++)
    for (size_t k = 0; k < AX_COUNT(wanted); k++)
      if (ax_hlo_slice_is(block->operations[i]->name, wanted[k].op)) {
        ax_hlo_place_text(&module, &block->operations[i]->place, place, sizeof place);
        assert_string_equal(place, wanted[k].place);
        found++;
      }
  assert_int_equal(found, 2);
  ax_hlo_module_deinit(&module);
  free(f.bytes);
}

/* --- Any bytes --- */

/* A copy, since a read beyond the end must be seen. */
static ax_status read_copy(const char *bytes, size_t count) {
  ax_hlo_module module;
  char *copy = malloc(count > 0 ? count : 1);
  if (count > 0) memcpy(copy, bytes, count);
  const ax_status status = ax_hlo_read_bytecode(copy, count, "m", &module);
  if (status == AX_OK) {
    ax_text text = {0};
    (void)!ax_hlo_print(&module, &text);
    ax_text_deinit(&text);
    ax_hlo_module_deinit(&module);
  }
  free(copy);
  return status;
}

static void test_cut_off(void **state) {
  (void)state;
  static const char *const names[] = {"all.0.9.0.mlirbc", "all.1.17.0.mlirbc", "plain.plain.mlirbc"};
  for (size_t i = 0; i < AX_COUNT(names); i++) {
    file f = load(names[i]);
    for (size_t count = 0; count < f.count; count++) assert_int_not_equal(read_copy(f.bytes, count), AX_OK);
    assert_int_equal(read_copy(f.bytes, f.count), AX_OK);
    free(f.bytes);
  }
}

static void test_changed(void **state) {
  (void)state;
  static const char *const names[] = {"all.0.12.0.mlirbc", "all.1.0.0.mlirbc", "plain.plain.mlirbc"};
  test_random random = {.state = 11};
  for (size_t i = 0; i < AX_COUNT(names); i++) {
    file f = load(names[i]);
    char *changed = malloc(f.count);
    for (int round = 0; round < 4000; round++) {
      memcpy(changed, f.bytes, f.count);
      for (int64_t change = test_random_below(&random, 3); change >= 0; change--)
        changed[test_random_below(&random, (int64_t)f.count)] = (char)test_random_below(&random, 256);
      (void)!read_copy(changed, f.count);
    }
    free(changed);
    free(f.bytes);
  }
}

static void test_errors(void **state) {
  (void)state;
  static const struct {
    const char *bytes;
    size_t count;
    ax_status status;
    const char *message;
  } errors[] = {{"module", 6, AX_PARSE_ERROR, "m: byte 0: this is no bytecode"},
                {"ML\xefR\x11x\0", 7, AX_ABSENT, "m: bytecode of version 8 is not read: the newest is 6"},
                {"ML\xefR\x0dx", 6, AX_PARSE_ERROR, "m: byte 5: the name of the producer does not end"},
                {"ML\xefR\x0dx\0", 7, AX_PARSE_ERROR, "m: byte 7: section 0 is missing"},
                {"ML\xefR\x0dx\0\x00\x01\x00\x01", 11, AX_PARSE_ERROR, "m: byte 9: section 0 is not known, or stands here again"},
                {"ML\xefR\x0dx\0\x05\xff", 9, AX_PARSE_ERROR, "m: byte 9: 127 bytes must follow, and there are 0"},
                {"ML\xefR\x0dx\0\x85\x01\x0d", 10, AX_PARSE_ERROR, "m: byte 10: an alignment must be a power of 2"}};
  for (size_t i = 0; i < AX_COUNT(errors); i++) {
    assert_int_equal(read_copy(errors[i].bytes, errors[i].count), errors[i].status);
    if (strstr(ax_message(), errors[i].message) == NULL) fail_msg("%s\nand not: %s", ax_message(), errors[i].message);
  }
}

/* A number as MLIR encodes it. */
static void add_number(ax_text *to, uint64_t v) {
  const int bytes = v < 1u << 7 ? 1 : v < 1u << 14 ? 2 : 3;
  const uint64_t coded = v << bytes | (uint64_t)1 << (bytes - 1);
  for (int i = 0; i < bytes; i++) ax_text_add_bytes(to, (const char[]){(char)(coded >> (8 * i))}, 1);
}

static void add_section(ax_text *to, char kind, const char *bytes, size_t count) {
  ax_text_add_bytes(to, &kind, 1);
  add_number(to, count);
  ax_text_add_bytes(to, bytes, count);
}

/* Operations one after the other, whose regions say that they have `values` values each, and define none. */
static ax_status read_regions(uint32_t count, uint32_t values) {
  static const char strings[] = "\x09\x09\x09\x0f\x11" "builtin\0module\0foo\0bar";
  static const char dialects[] = {5, 1, 5, 1, 3, 3, 3, 3, 7};
  static const char offsets[] = {3, 1, 1, 3, 7};
  ax_text file = {0}, operations = {0};
  add_number(&operations, (uint64_t)count << 1);
  for (uint32_t i = 0; i < count; i++) {
    static const char begin[] = {3, 16, 1, 5, 3};
    ax_text_add_bytes(&operations, begin, sizeof begin);
    add_number(&operations, values);
    add_number(&operations, 0);
  }
  ax_text_add_bytes(&file, "ML\xefR\x01x\0", 7);
  add_section(&file, 0, strings, sizeof strings);
  add_section(&file, 1, dialects, sizeof dialects);
  add_section(&file, 2, (const char[]){31}, 1);
  add_section(&file, 3, offsets, sizeof offsets);
  add_section(&file, 4, operations.data, operations.length);
  const ax_status status = read_copy(file.data, file.length);
  ax_text_deinit(&file);
  ax_text_deinit(&operations);
  return status;
}

/* Each region alone may have so many values, with so many bytes behind it; all of them together may not. */
static void test_regions_of_values(void **state) {
  (void)state;
  if (read_regions(100, 0) != AX_OK) fail_msg("%s", ax_message());
  assert_int_equal(read_regions(100, 1), AX_OK);
  assert_int_equal(read_regions(101, 20), AX_PARSE_ERROR);
  if (strstr(ax_message(), "have more values than it has bytes") == NULL) fail_msg("%s", ax_message());
}

static ax_status read_and_print(void *context) {
  const file *f = context;
  ax_hlo_module module;
  ax_text text = {0};
  ax_status status = ax_hlo_read_bytecode(f->bytes, f->count, "m", &module);
  if (status != AX_OK) return status;
  status = ax_hlo_print(&module, &text);
  ax_hlo_module_deinit(&module);
  ax_text_deinit(&text);
  return status;
}

static void test_out_of_memory(void **state) {
  (void)state;
  static const char *const names[] = {"all.1.0.0.mlirbc", "plain.plain.mlirbc"};
  ax_arena_chunk_bytes = 512;
  for (size_t i = 0; i < AX_COUNT(names); i++) {
    file f = load(names[i]);
    assert_true(test_each_allocation(read_and_print, &f) > 100);
    free(f.bytes);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_versions), cmocka_unit_test(test_plain), cmocka_unit_test(test_mixed), cmocka_unit_test(test_printed),
      cmocka_unit_test(test_printed_types), cmocka_unit_test(test_printed_attributes), cmocka_unit_test(test_regions_of_values),
      cmocka_unit_test(test_formats),  cmocka_unit_test(test_places), cmocka_unit_test(test_cut_off),
      cmocka_unit_test(test_changed),  cmocka_unit_test(test_errors), cmocka_unit_test(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
