/* The words, types, axes and literals that programs' texts are made of, each read by itself. */
#include "ir/parse.h"

#include <string.h>

#include "support/cmocka.h"
#include "support/tensor.h"

static ax_parser open_text(const char *text) {
  ax_parser parser = {.hooks = NULL};
  TEST_OK(ax_lexer_init(&parser.lexer, text, strlen(text), "t"));
  return parser;
}

static void close_text(ax_parser *parser) { ax_arena_deinit(&parser->arena); }

/* --- Words --- */

static void a_word_is_skipped_where_it_is_next(void **state) {
  (void)state;
  ax_parser parser = open_text("a b");
  bool found;
  TEST_OK(ax_accept(&parser, "b", &found));
  assert_true(!found && ax_next_is(&parser, "a"));
  TEST_OK(ax_accept(&parser, "a", &found));
  assert_true(found && ax_next_is(&parser, "b"));
  TEST_FAILS(ax_expect(&parser, "c"), AX_PARSE_ERROR, "t:1:3: expected 'c', got 'b'");
  TEST_OK(ax_expect(&parser, "b"));
  TEST_FAILS(ax_unexpected(&parser, "more"), AX_PARSE_ERROR, "expected more, got the end of the text");
  close_text(&parser);
}

static void names_and_integers_are_read(void **state) {
  (void)state;
  ax_parser parser = open_text("x -12 3.5");
  ax_lexeme name;
  int64_t number;
  TEST_OK(ax_expect_name(&parser, "a name", &name));
  assert_true(ax_token_is(&name, "x"));
  TEST_FAILS(ax_expect_name(&parser, "a name", &name), AX_PARSE_ERROR, "expected a name, got '-12'");
  TEST_OK(ax_expect_integer(&parser, &number));
  assert_int_equal(number, -12);
  TEST_FAILS(ax_expect_integer(&parser, &number), AX_PARSE_ERROR, "expected an integer, got '3.5'");
  close_text(&parser);
}

static void a_tuple_goes_on_after_a_comma(void **state) {
  (void)state;
  ax_parser parser = open_text(", x ) ,) ;");
  bool more;
  TEST_OK(ax_expect_more(&parser, ")", &more));
  assert_true(more);
  TEST_OK(ax_expect(&parser, "x"));
  TEST_OK(ax_expect_more(&parser, ")", &more));
  assert_false(more);
  TEST_OK(ax_expect_more(&parser, ")", &more)); /* a last comma is allowed */
  assert_false(more);
  TEST_FAILS(ax_expect_more(&parser, ")", &more), AX_PARSE_ERROR, "expected ',' or ')', got ';'");
  close_text(&parser);
}

static bool is_literal(const char *text) {
  const ax_parser parser = open_text(text);
  return ax_is_literal(&parser.lexer.token);
}

static void some_words_are_literals(void **state) {
  (void)state;
  static const char *const literals[] = {"1", "-2.5", "true", "nan", "inf", "nan_0x7fc00001"}, *const names[] = {"x", "nan1",
                                                                                                                 "infinite"};
  for (size_t i = 0; i < AX_COUNT(literals); i++) assert_true(is_literal(literals[i]));
  for (size_t i = 0; i < AX_COUNT(names); i++) assert_false(is_literal(names[i]));
}

static void a_word_for_a_reader_of_numbers_is_short(void **state) {
  (void)state;
  char word[128], text[200];
  memset(text, '1', sizeof text);
  const ax_lexeme fits = {.start = text, .length = 127}, longer = {.start = text, .length = 128};
  assert_true(ax_token_word(&fits, word));
  assert_int_equal(strlen(word), 127);
  assert_false(ax_token_word(&longer, word));
}

static void a_list_doubles_when_it_is_full(void **state) {
  (void)state;
  ax_parser parser = open_text("");
  ax_list list = {0};
  for (int i = 0; i < 20; i++) {
    int *item = ax_list_add(&parser, &list, sizeof(int));
    assert_int_equal(*item, 0);
    *item = i;
  }
  assert_true(list.count == 20 && list.capacity == 32);
  for (int i = 0; i < 20; i++) assert_int_equal(((int *)list.items)[i], i);
  close_text(&parser);
}

/* --- Types and axes --- */

static void axes_end_at_a_word(void **state) {
  (void)state;
  ax_parser parser = open_text("data=4 model=2? ; x=2, y=3) )");
  ax_mesh mesh;
  TEST_OK(ax_parse_axes(&parser, ";", false, &mesh));
  assert_true(mesh.count == 2 && mesh.axis[0].size == 4 && !mesh.axis[0].unchecked && mesh.axis[1].unchecked);
  TEST_OK(ax_parse_axes(&parser, ")", true, &mesh));
  assert_true(mesh.count == 2 && mesh.axis[1].size == 3);
  TEST_OK(ax_parse_axes(&parser, ")", true, &mesh));
  assert_int_equal(mesh.count, 0);
  close_text(&parser);
}

static void a_type_names_axes_of_its_environment(void **state) {
  (void)state;
  ax_parser parser = open_text("f32[8,4]{V:data} future<s32[]>");
  ax_mesh mesh;
  ax_type type;
  TEST_OK(ax_mesh_parse("data=4", &mesh));
  TEST_OK(ax_parse_type(&parser, &mesh, &type));
  assert_true(type.dtype == AX_F32 && type.rank == 2 && type.dims[1] == 4 && type.spread.varying == 1);
  TEST_OK(ax_parse_type(&parser, &mesh, &type));
  assert_true(type.form == AX_FUTURE && type.dtype == AX_S32 && type.rank == 0);
  close_text(&parser);
  parser = open_text("f32[2]{V:model}");
  TEST_FAILS(ax_parse_type(&parser, &mesh, &type), AX_PARSE_ERROR, "model");
  close_text(&parser);
}

/* --- Literals --- */

static void a_literal_reads_back(const char *text, const char *wanted) {
  ax_arena arena = {0};
  ax_literal literal;
  ax_text out = {0};
  TEST_OK(ax_literal_parse(text, "t", &arena, &literal));
  ax_literal_text(&out, &literal);
  assert_string_equal(out.data, wanted);
  ax_text_deinit(&out);
  ax_arena_deinit(&arena);
}

static void literals_are_written_with_their_type(void **state) {
  (void)state;
  a_literal_reads_back("0.1:f32[]", "0.1:f32[]");
  a_literal_reads_back("[[1,2],[3,4]]:s32[2,2]", "[[1, 2], [3, 4]]:s32[2,2]");
  a_literal_reads_back("[7, 7, 7]:s32[3]", "7:s32[3]"); /* equal elements are written once */
  a_literal_reads_back("2:f32[2,3]", "2.0:f32[2,3]");
  a_literal_reads_back("[]:f32[0]", "[]:f32[0]");
}

static void wrong_literals_are_refused(void **state) {
  (void)state;
  ax_arena arena = {0};
  ax_literal literal;
  TEST_FAILS(ax_literal_parse("[1, 2]:s32[3]", "t", &arena, &literal), AX_PARSE_ERROR, "2 numbers are given for s32[3]");
  TEST_FAILS(ax_literal_parse("300:s8[]", "t", &arena, &literal), AX_PARSE_ERROR, "300");
  TEST_FAILS(ax_literal_parse("1:semaphore[]", "t", &arena, &literal), AX_PARSE_ERROR, "a literal is an array");
  TEST_FAILS(ax_literal_parse("1:future<s32[]>", "t", &arena, &literal), AX_PARSE_ERROR, "a literal is an array");
  ax_arena_deinit(&arena);
}

static void an_integer_is_all_digits(void **state) {
  (void)state;
  int64_t number;
  assert_true(ax_integer_parse("-9223372036854775808", &number) && number == INT64_MIN);
  assert_false(ax_integer_parse("9223372036854775808", &number) || ax_integer_parse("1e3", &number) ||
               ax_integer_parse("-", &number));
}

static void any_bytes_are_quoted(void **state) {
  (void)state;
  ax_text text = {0};
  char back[16];
  ax_quoted_text(&text, "a\"\\\n\x07");
  assert_string_equal(text.data, "\"a\\x22\\\\\\n\\x07\"");
  assert_null(ax_quoted_parse(text.data + 1, text.length - 2, back));
  assert_string_equal(back, "a\"\\\n\x07");
  assert_non_null(ax_quoted_parse("\\q", 2, back));
  assert_non_null(ax_quoted_parse("\\x00", 4, back));
  assert_non_null(ax_quoted_parse("a\\", 2, back));
  ax_text_deinit(&text);
}

static void values_are_called_by_letters(void **state) {
  (void)state;
  char name[16];
  ax_label_name(0, name);
  assert_string_equal(name, "a");
  ax_label_name(26, name);
  assert_string_equal(name, "aa");
  ax_label_name(26 + 8 * 26 + 13, name); /* "in" would be next, which is a word of the language */
  assert_string_equal(name, "io");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_word_is_skipped_where_it_is_next),
      cmocka_unit_test(names_and_integers_are_read),
      cmocka_unit_test(a_tuple_goes_on_after_a_comma),
      cmocka_unit_test(some_words_are_literals),
      cmocka_unit_test(a_word_for_a_reader_of_numbers_is_short),
      cmocka_unit_test(a_list_doubles_when_it_is_full),
      cmocka_unit_test(axes_end_at_a_word),
      cmocka_unit_test(a_type_names_axes_of_its_environment),
      cmocka_unit_test(literals_are_written_with_their_type),
      cmocka_unit_test(wrong_literals_are_refused),
      cmocka_unit_test(an_integer_is_all_digits),
      cmocka_unit_test(any_bytes_are_quoted),
      cmocka_unit_test(values_are_called_by_letters),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
