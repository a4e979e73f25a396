/* A word at a time, with one line counter; a message shows the line and a caret under the word, cut to fit a terminal. */
#include "ir/lex.h"

#include <stdio.h>
#include <string.h>

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

ax_status ax_lexer_init(ax_lexer *lexer, const char *text, size_t bytes, const char *source) {
  *lexer = (ax_lexer){
      .source = source != NULL ? source : "program", .text = text, .end = text + bytes, .cursor = text, .line = 1};
  return ax_lexer_next(lexer);
}

static void skip_blanks(ax_lexer *lexer) {
  bool comment = false;
  for (; lexer->cursor < lexer->end; lexer->cursor++) {
    char c = *lexer->cursor;
    if (c == '\n') {
      lexer->line++;
      comment = false;
    } else if (c == '#') {
      comment = true;
    } else if (!comment && c != ' ' && c != '\t' && c != '\r') {
      return;
    }
  }
}

static size_t name_length(const char *start, const char *end) {
  const char *c = start;
  while (c < end && (is_letter(*c) || is_digit(*c))) c++;
  return (size_t)(c - start);
}

/* Signs belong to a number in front and after its e. */
static size_t number_length(const char *start, const char *end) {
  const char *c = start + 1;
  while (c < end &&
         (is_letter(*c) || is_digit(*c) || *c == '.' || ((*c == '+' || *c == '-') && (c[-1] == 'e' || c[-1] == 'E'))))
    c++;
  return (size_t)(c - start);
}

ax_status ax_lexer_next(ax_lexer *lexer) {
  skip_blanks(lexer);
  ax_lexeme *token = &lexer->token;
  *token = (ax_lexeme){.kind = AX_TOKEN_END, .start = lexer->cursor, .line = lexer->line};
  if (lexer->cursor == lexer->end) return AX_OK;
  char c = *lexer->cursor;
  token->length = 1;
  if (is_letter(c)) {
    token->kind = AX_TOKEN_NAME;
    token->length = name_length(lexer->cursor, lexer->end);
  } else if (is_digit(c) || c == '-') {
    token->kind = AX_TOKEN_NUMBER;
    token->length = number_length(lexer->cursor, lexer->end);
  } else if (c == '"') {
    token->kind = AX_TOKEN_STRING;
    const char *end = lexer->cursor + 1;
    while (end < lexer->end && *end != '"' && (unsigned char)*end >= ' ') end++;
    if (end == lexer->end || *end != '"') return ax_lexer_error(lexer, token, "the string has no end on its line");
    token->length = (size_t)(end - lexer->cursor) + 1;
  } else if (c != '\0' && strchr("{}[]():;,.=?+<>@", c) != NULL) {
    token->kind = AX_TOKEN_MARK;
  } else if (c > ' ' && c <= '~') {
    return ax_lexer_error(lexer, token, "'%c' has no meaning here", c);
  } else {
    return ax_lexer_error(lexer, token, "the byte 0x%02x has no meaning here", (unsigned char)c);
  }
  lexer->cursor += token->length;
  return AX_OK;
}

bool ax_token_is(const ax_lexeme *token, const char *word) {
  return token->kind != AX_TOKEN_END && strlen(word) == token->length && memcmp(word, token->start, token->length) == 0;
}

enum { excerpt_columns = 110, lead_columns = 70 };

/* The part of the line around the token; blanks for what a terminal might act on. Returns the caret's column in it. */
static int excerpt(const ax_lexer *lexer, const char *at, const char *line, char *out) {
  const char *from = at - line > lead_columns ? at - lead_columns : line;
  int length = 0;
  for (const char *c = from; c < lexer->end && *c != '\n' && length < excerpt_columns; c++)
    out[length++] = (unsigned char)*c >= ' ' && *c != 0x7f ? *c : ' ';
  out[length] = '\0';
  return (int)(at - from);
}

static ax_status report(const ax_lexer *lexer, const ax_lexeme *token, const char *message) {
  char shown[excerpt_columns + 1];
  const char *line = token->start;
  while (line > lexer->text && line[-1] != '\n') line--;
  int caret = excerpt(lexer, token->start, line, shown);
  return ax_error(AX_PARSE_ERROR, "%s:%u:%zu: %s\n  %s\n  %*s^", lexer->source, token->line,
                  (size_t)(token->start - line) + 1, message, shown, caret, "");
}

ax_status ax_lexer_error(const ax_lexer *lexer, const ax_lexeme *token, const char *format, ...) {
  char message[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return report(lexer, token, message);
}

ax_status ax_lexer_place(const ax_lexer *lexer, const ax_lexeme *token, ax_status status) {
  return status == AX_OUT_OF_MEMORY ? status : report(lexer, token, ax_message());
}
