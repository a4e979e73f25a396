/* Formats: what they write, and that any bytes go through a program's text and back. */
#include "control/format.h"

#include <string.h>

#include "axle/ops.h"
#include "ir/prim.h"
#include "ir/program.h"
#include "ir/text.h"
#include "support/cmocka.h"
#include "support/host.h"
#include "support/random.h"
#include "support/tensor.h"

static void formats(void **state) {
  (void)state;
  static const float floats[] = {1, -2.5f, 1e-9f, 3};
  static const int32_t ints[] = {-1, 255};
  static const struct {
    const char *format, *wanted;
  } rows[] = {{"{} {}", "[[1.0, -2.5], [1e-09, 3.0]] [-1, 255]"},
              {"{:.1f}|{:x}", "[[1.0, -2.5], [0.0, 3.0]]|[ffffffff, ff]"},
              {"{:8.2e}{{}}{:4d}", "[[1.00e+00, -2.50e+00], [1.00e-09, 3.00e+00]]{}[  -1,  255]"},
              {"{:6}{:2}", "[[   1.0,   -2.5], [ 1e-09,    3.0]][-1, 255]"},
              {"{:.2}, {}}}", "[[1, -2.5], [1e-09, 3]], [-1, 255]}"},
              {"{:g}{}", "[[1, -2.5], [1e-09, 3]][-1, 255]"}};
  ax_tensor a = {AX_F32, 2, {2, 2}, (void *)floats}, b = {AX_S32, 1, {2}, (void *)ints}, *values[] = {&a, &b};
  const ax_type types[] = {AX_TYPE(AX_F32, 2, 2), AX_TYPE(AX_S32, 2)};
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    ax_text text = {0};
    TEST_OK(ax_format_check(rows[i].format, 2, types));
    TEST_OK(ax_format_text(&text, rows[i].format, values, 1));
    assert_string_equal(text.data, rows[i].wanted);
    ax_text_deinit(&text);
  }
}

/* The middle of long dimensions of large arrays is left out. */
static void long_arrays(void **state) {
  (void)state;
  static int32_t elements[8 * 200];
  for (int i = 0; i < 8 * 200; i++) elements[i] = i;
  ax_tensor a = {AX_S32, 2, {8, 200}, elements}, *value = &a;
  ax_text text = {0};
  TEST_OK(ax_format_text(&text, "{}", &value, 1));
  assert_string_equal(text.data,
                      "[[0, 1, 2, ..., 197, 198, 199], [200, 201, 202, ..., 397, 398, 399], [400, 401, 402, ..., 597, 598, 599], "
                      "..., [1000, 1001, 1002, ..., 1197, 1198, 1199], [1200, 1201, 1202, ..., 1397, 1398, 1399], "
                      "[1400, 1401, 1402, ..., 1597, 1598, 1599]]");
  ax_text_deinit(&text);
}

/* Any bytes go through a program's text and back, and are a format, or are refused, the same way. */
static void any_bytes(void **state) {
  (void)state;
  test_random random = {7};
  uint32_t formats_made = 0;
  for (int i = 0; i < 20000; i++) {
    static const char likely[] = "{}{}:.0123fegdx\\\"n\n";
    char format[24] = "", *whole, *again;
    int length = (int)(ax_next_random(&random.state) % 23);
    for (int c = 0; c < length; c++) {
      uint64_t r = ax_next_random(&random.state);
      format[c] = r % 4 == 0 ? (char)(1 + r / 4 % 255) : likely[r / 4 % (sizeof likely - 1)];
    }
    const ax_type type = AX_TYPE(AX_F32, 2);
    if (ax_format_check(format, 1, &type) != AX_OK && ax_format_check(format, 0, NULL) != AX_OK) continue;
    formats_made++;
    ax_text text = {0};
    ax_program *program, *other;
    ax_text_add(&text, "{ lambda x:f32[2]. let = debug_print[axes=() format=");
    ax_quoted_text(&text, format);
    ax_text_add(&text, "]%s in () }", ax_format_check(format, 1, &type) == AX_OK ? " x" : "");
    TEST_OK(ax_text_finish(&text, &whole));
    program = test_parsed(whole);
    TEST_OK(ax_program_print(program, &again));
    other = test_parsed(again);
    assert_true(ax_program_equal(program, other));
    assert_string_equal(*(const char *const *)ax_param_at(&program->eqns[0], &program->eqns[0].prim->params[1]), format);
    ax_free(whole);
    ax_string_free(again);
    ax_program_release(program);
    ax_program_release(other);
  }
  assert_true(formats_made > 1000);
}

/* A format, piece by piece: the text in quotes, then the field's width, precision and type. */
static void pieces(void **state) {
  (void)state;
  const char *at = "a{{b {:12.3e}{}", *wrong;
  ax_format_piece piece;
  ax_text text = {0};
  while (ax_format_next(&at, &piece, &wrong)) {
    assert_null(wrong);
    ax_text_add(&text, "'%.*s'", (int)piece.length, piece.text);
    if (piece.field) ax_text_add(&text, "%d,%d,%c ", piece.width, piece.precision, piece.type != 0 ? piece.type : '-');
  }
  assert_string_equal(text.data, "'a{''b '12,3,e ''-1,-1,- ");
  ax_text_deinit(&text);
}

static void wrong_pieces(void **state) {
  (void)state;
  static const struct {
    const char *format, *wrong;
  } rows[] = {{"a}", "a closing brace stands alone; as text it is }}"},
              {"{:.e}", "the point is not followed by a precision"},
              {"{:100}", "a width or precision is above 99"},
              {"{:q}", "a field is {} or"},
              {"{", "a field is {} or"}};
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    const char *at = rows[i].format, *wrong;
    ax_format_piece piece;
    assert_true(ax_format_next(&at, &piece, &wrong));
    assert_non_null(wrong);
    assert_memory_equal(wrong, rows[i].wrong, strlen(rows[i].wrong));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(formats),
      cmocka_unit_test(long_arrays),
      cmocka_unit_test(any_bytes),
      cmocka_unit_test(pieces),
      cmocka_unit_test(wrong_pieces),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
