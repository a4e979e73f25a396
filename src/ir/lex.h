/* Words of the text form, and errors that show their place. These functions allocate no memory. */
#ifndef AX_IR_LEX_H
#define AX_IR_LEX_H

#include "base/base.h"

typedef enum ax_lexeme_kind {
  AX_TOKEN_END,
  AX_TOKEN_NAME,   /* letters, digits, _; not a digit first */
  AX_TOKEN_NUMBER, /* begins with a digit or a minus; the reader of numbers checks the rest */
  AX_TOKEN_STRING, /* "..", on one line, with its quotes; nothing is escaped in it */
  AX_TOKEN_MARK    /* one of { } [ ] ( ) : ; , . = ? + < > @ */
} ax_lexeme_kind;

typedef struct ax_lexeme {
  ax_lexeme_kind kind;
  const char *start;
  size_t length;
  uint32_t line;
} ax_lexeme;

/* A copy is a bookmark: assigning it back returns to that place. */
typedef struct ax_lexer {
  const char *source, *text, *end, *cursor;
  uint32_t line;
  ax_lexeme token; /* the current one */
} ax_lexer;

/* Reads the first token. The text need not end in NUL and may hold any bytes. */
AX_MUST_USE ax_status ax_lexer_init(ax_lexer *lexer, const char *text, size_t bytes, const char *source);
/* Reads the next token. Skips blanks, line ends and comments (# to the end of the line). */
AX_MUST_USE ax_status ax_lexer_next(ax_lexer *lexer);
bool ax_token_is(const ax_lexeme *token, const char *word);
/* The length that a message shows, as a precision for %.*s, since names may be longer than any message. */
static inline int ax_token_shown(const ax_lexeme *token) { return token->length < 127 ? (int)token->length : 127; }

/* AX_PARSE_ERROR, "source:line:column: message", the line itself and a caret under `token`. */
AX_MUST_USE ax_status ax_lexer_error(const ax_lexer *lexer, const ax_lexeme *token, const char *format, ...)
    AX_PRINTF(3, 4);
/* The same with this thread's message. AX_OUT_OF_MEMORY is returned as it is. */
AX_MUST_USE ax_status ax_lexer_place(const ax_lexer *lexer, const ax_lexeme *token, ax_status status);

#endif
