/* Words of the text form, one by one, and errors with their place. */
#include "ir/lex.h"

#include <string.h>

#include "support/cmocka.h"
#include "support/tensor.h"

static ax_lexer open_text(const char *text) {
  ax_lexer lexer;
  TEST_OK(ax_lexer_init(&lexer, text, strlen(text), "t.axle"));
  return lexer;
}

/* The words of a text, each with a letter for its kind and its line: "Na1". */
static void reads(const char *text, const char *words) {
  ax_lexer lexer = open_text(text);
  ax_text out = {0};
  for (; lexer.token.kind != AX_TOKEN_END; TEST_OK(ax_lexer_next(&lexer)))
    ax_text_add(&out, " %c%u:%.*s", "EN9SM"[lexer.token.kind], lexer.token.line, (int)lexer.token.length, lexer.token.start);
  assert_string_equal(out.data, words);
  ax_text_deinit(&out);
}

static void words_are_of_five_kinds(void **state) {
  (void)state;
  reads("_a1=-2.5e-3 \"two words\"]", " N1:_a1 M1:= 91:-2.5e-3 S1:\"two words\" M1:]");
  reads("1+2", " 91:1 M1:+ 91:2"); /* a sign belongs to a number behind its e */
  reads("inf nan", " N1:inf N1:nan");
}

static void comments_and_blanks_are_skipped(void **state) {
  (void)state;
  reads("a # b\n\t\r\n  c", " N1:a N3:c");
}

static void the_end_goes_on(void **state) {
  (void)state;
  ax_lexer lexer = open_text("a");
  TEST_OK(ax_lexer_next(&lexer));
  TEST_OK(ax_lexer_next(&lexer));
  assert_int_equal(lexer.token.kind, AX_TOKEN_END);
  assert_false(ax_token_is(&lexer.token, ""));
}

static void a_copy_is_a_bookmark(void **state) {
  (void)state;
  ax_lexer lexer = open_text("a b c");
  const ax_lexer mark = lexer;
  TEST_OK(ax_lexer_next(&lexer));
  TEST_OK(ax_lexer_next(&lexer));
  assert_true(ax_token_is(&lexer.token, "c"));
  lexer = mark;
  TEST_OK(ax_lexer_next(&lexer));
  assert_true(ax_token_is(&lexer.token, "b"));
}

static void a_word_is_compared_whole(void **state) {
  (void)state;
  const ax_lexer lexer = open_text("let");
  assert_true(ax_token_is(&lexer.token, "let"));
  assert_false(ax_token_is(&lexer.token, "le") || ax_token_is(&lexer.token, "lett"));
}

static void long_words_are_shown_cut(void **state) {
  (void)state;
  const ax_lexeme shorter = {.length = 9}, longer = {.length = 1000};
  assert_int_equal(ax_token_shown(&shorter), 9);
  assert_int_equal(ax_token_shown(&longer), 127);
}

static void an_error_shows_line_and_column(void **state) {
  (void)state;
  ax_lexer lexer = open_text("one\n  two three");
  TEST_OK(ax_lexer_next(&lexer));
  assert_int_equal(ax_lexer_error(&lexer, &lexer.token, "no %d", 2), AX_PARSE_ERROR);
  assert_string_equal(ax_message(), "t.axle:2:3: no 2\n    two three\n    ^");
  assert_int_equal(ax_error(AX_INVALID_ARGUMENT, "inner"), AX_INVALID_ARGUMENT);
  assert_int_equal(ax_lexer_place(&lexer, &lexer.token, AX_INVALID_ARGUMENT), AX_PARSE_ERROR);
  assert_string_equal(ax_message(), "t.axle:2:3: inner\n    two three\n    ^");
  assert_int_equal(ax_lexer_place(&lexer, &lexer.token, AX_OUT_OF_MEMORY), AX_OUT_OF_MEMORY);
}

static void what_is_no_word_is_refused(void **state) {
  (void)state;
  ax_lexer lexer;
  TEST_FAILS(ax_lexer_init(&lexer, "$", 1, NULL), AX_PARSE_ERROR, "program:1:1: '$' has no meaning here");
  TEST_FAILS(ax_lexer_init(&lexer, "\x01", 1, NULL), AX_PARSE_ERROR, "the byte 0x01 has no meaning here");
  TEST_FAILS(ax_lexer_init(&lexer, "\"a\nb\"", 5, NULL), AX_PARSE_ERROR, "the string has no end on its line");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(words_are_of_five_kinds),
      cmocka_unit_test(comments_and_blanks_are_skipped),
      cmocka_unit_test(the_end_goes_on),
      cmocka_unit_test(a_copy_is_a_bookmark),
      cmocka_unit_test(a_word_is_compared_whole),
      cmocka_unit_test(long_words_are_shown_cut),
      cmocka_unit_test(an_error_shows_line_and_column),
      cmocka_unit_test(what_is_no_word_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
