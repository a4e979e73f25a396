/* Numbers and parts of bytes: each length of a number, and each way in which bytes can end too early. */
#include <stdlib.h>
#include <string.h>

#include "hlo/bytecode.h"
#include "support/cmocka.h"

typedef struct fixture {
  ax_hlo_module module;
  ax_hlo_bytecode b;
  ax_hlo_bytes from;
} fixture;

static void begin(fixture *f, const char *bytes, size_t count) {
  static const ax_hlo_slice strings[] = {{"a", 1}, {"bc", 2}};
  *f = (fixture){.module = {.source = "m"}};
  f->b = (ax_hlo_bytecode){
      .scan = {.module = &f->module}, .start = (const unsigned char *)bytes, .strings = strings, .string_count = 2};
  f->from = (ax_hlo_bytes){f->b.start, f->b.start + count};
}
#define BEGIN(f, bytes) begin(f, bytes, sizeof(bytes) - 1)

static void refused(ax_status status, const char *message) {
  assert_int_equal(status, AX_PARSE_ERROR);
  if (strstr(ax_message(), message) == NULL) fail_msg("%s\nand not: %s", ax_message(), message);
}

static void test_numbers(void **state) {
  (void)state;
  static const struct {
    const char *bytes;
    size_t count;
    uint64_t number;
  } numbers[] = {{"\x01", 1, 0},
                 {"\xff", 1, 127},
                 {"\x02\x02", 2, 128},
                 {"\xfe\xff", 2, 16383},
                 {"\x04\x00\x02", 3, 16384},
                 {"\x08\x00\x00\x02", 4, 1 << 21},
                 {"\x10\x00\x00\x00\x02", 5, 1 << 28},
                 {"\x80\x00\x00\x00\x00\x00\x00\x80", 8, 1ull << 55},
                 {"\x00\xff\xff\xff\xff\xff\xff\xff\xff", 9, UINT64_MAX}};
  for (size_t i = 0; i < AX_COUNT(numbers); i++) {
    fixture f;
    uint64_t number;
    begin(&f, numbers[i].bytes, numbers[i].count);
    assert_int_equal(ax_hlo_read_number(&f.b, &f.from, &number), AX_OK);
    assert_true(number == numbers[i].number);
    assert_int_equal(ax_hlo_left(&f.from), 0);
    begin(&f, numbers[i].bytes, numbers[i].count - 1);
    refused(ax_hlo_read_number(&f.b, &f.from, &number), "the bytes end here");
  }
}

static void test_kinds_of_numbers(void **state) {
  (void)state;
  fixture f;
  int64_t number;
  uint64_t half, bits;
  unsigned char byte;
  bool flag;
  BEGIN(&f, "\x05\x07\x0b\x7f\x09\x03");
  assert_int_equal(ax_hlo_read_signed(&f.b, &f.from, &number), AX_OK);
  assert_int_equal(number, 1);
  assert_int_equal(ax_hlo_read_signed(&f.b, &f.from, &number), AX_OK);
  assert_int_equal(number, -2);
  assert_int_equal(ax_hlo_read_flagged(&f.b, &f.from, &half, &flag), AX_OK);
  assert_true(half == 2 && flag);
  assert_int_equal(ax_hlo_read_byte(&f.b, &f.from, &byte), AX_OK);
  assert_int_equal(byte, 0x7f);
  assert_int_equal(ax_hlo_read_bits(&f.b, &f.from, 4, &bits), AX_OK);
  assert_true(bits == 9);
  assert_int_equal(ax_hlo_read_bits(&f.b, &f.from, 32, &bits), AX_OK);
  assert_true(bits == 0xffffffffu);
  refused(ax_hlo_read_bits(&f.b, &f.from, 65, &bits), "m: byte 6: numbers of 65 bits");
}

static void test_bounds(void **state) {
  (void)state;
  fixture f;
  uint32_t index;
  ax_hlo_slice string;
  BEGIN(&f, "\x03\x03\x07\x0b\x01");
  assert_int_equal(ax_hlo_read_below(&f.b, &f.from, 2, "type", &index), AX_OK);
  assert_int_equal(index, 1);
  assert_int_equal(ax_hlo_read_string(&f.b, &f.from, &string), AX_OK);
  assert_true(ax_hlo_slice_is(string, "bc"));
  refused(ax_hlo_read_below(&f.b, &f.from, 3, "type", &index), "m: byte 2: type 3 is asked for, and there are 3");
  refused(ax_hlo_read_count(&f.b, &f.from, &index), "m: byte 3: 5 entries cannot be in the 1 bytes that follow");
  refused(ax_hlo_broken(&f.b, f.from.next, "%d", 7), "m: byte 4: 7");
}

static void test_parts(void **state) {
  (void)state;
  fixture f;
  ax_hlo_bytes part;
  uint32_t id;
  BEGIN(&f, "\x05xy\x83\x03\x11\xcb\xcbz\x00");
  assert_int_equal(ax_hlo_read_blob(&f.b, &f.from, &part), AX_OK);
  assert_memory_equal(part.next, "xy", 2);
  assert_int_equal(ax_hlo_read_section(&f.b, &f.from, &id, &part), AX_OK); /* aligned to 8 */
  assert_int_equal(id, 3);
  assert_memory_equal(part.next, "z", 1);
  assert_int_equal(ax_hlo_left(&part), 1);
  assert_int_equal(ax_hlo_read_part(&f.b, &f.from, 1, &part), AX_OK);
  refused(ax_hlo_read_part(&f.b, &f.from, 1, &part), "1 bytes must follow, and there are 0");
  refused(ax_hlo_align(&f.b, &f.from, 3), "an alignment must be a power of 2");
}

static void test_memory(void **state) {
  (void)state;
  fixture f;
  const int64_t *numbers;
  uint32_t count;
  char *made;
  BEGIN(&f, "\x05\x05\x07");
  assert_int_equal(ax_hlo_read_integers(&f.b, &f.from, &numbers, &count), AX_OK);
  assert_int_equal(count, 2);
  assert_true(numbers[0] == 1 && numbers[1] == -2);
  assert_int_equal(ax_hlo_make(&f.b, 3, 1, &made), AX_OK);
  assert_memory_equal(made, "\0\0\0", 3);
  ax_hlo_module_deinit(&f.module);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers), cmocka_unit_test(test_kinds_of_numbers),
                                     cmocka_unit_test(test_bounds), cmocka_unit_test(test_parts), cmocka_unit_test(test_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
