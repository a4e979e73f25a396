/* Declarations shared by the parser's files. parse.c reads programs and equations, parse_param.c types and parameters. */
#ifndef AX_IR_PARSE_H
#define AX_IR_PARSE_H

#include "ir/lex.h"
#include "ir/text.h"

/* An array in the parser's arena that doubles when it is full. Zero-initialise to start. */
typedef struct ax_list {
  void *items;
  uint32_t count, capacity;
} ax_list;

typedef struct ax_parser {
  ax_lexer lexer;
  ax_arena arena;   /* lives until the whole text is read */
  ax_list programs; /* ax_program *: the nested programs, released at the end */
  struct ax_named_programs *named; /* those that have names (parse.c); NULL: none yet */
  ax_list callbacks; /* ax_callback *: released at the end too */
  const ax_hooks *hooks; /* the host in which callbacks are looked up; NULL: none */
  uint32_t depth;
} ax_parser;

/* Adds a cleared item to the list. NULL: no memory. */
void *ax_list_add(ax_parser *parser, ax_list *list, size_t item_bytes);

/* --- Tokens --- */
bool ax_next_is(const ax_parser *parser, const char *word);
/* Skips `word` if it is the next token. */
AX_MUST_USE ax_status ax_accept(ax_parser *parser, const char *word, bool *found);
AX_MUST_USE ax_status ax_expect(ax_parser *parser, const char *word);
/* "expected `what`, got ..." at the current token. */
AX_MUST_USE ax_status ax_unexpected(const ax_parser *parser, const char *what);
AX_MUST_USE ax_status ax_expect_name(ax_parser *parser, const char *what, ax_lexeme *out);
AX_MUST_USE ax_status ax_expect_integer(ax_parser *parser, int64_t *out);
/* Continues a tuple: skips a comma, or the end bracket, which sets *more to false. */
AX_MUST_USE ax_status ax_expect_more(ax_parser *parser, const char *end, bool *more);
/* The token as a word for number readers; false when it is too long for one. `word` has 128 bytes. */
bool ax_token_word(const ax_lexeme *token, char *word);
bool ax_is_literal(const ax_lexeme *token);

/* --- parse_param.c --- */
/* f32[8,4]{V:data}; `axes` NULL: no axis sets. */
AX_MUST_USE ax_status ax_parse_type(ax_parser *parser, const ax_mesh *axes, ax_type *out);
/* Parses data=4 model=2?, with a comma between entries if `commas`, up to and including `end`. */
AX_MUST_USE ax_status ax_parse_axes(ax_parser *parser, const char *end, bool commas, ax_mesh *out);
/* 0.1:f32[], [[1, 2], [3, 4]]:s32[2,2], 0.0:f32[8,4]. The data is the parser's. */
AX_MUST_USE ax_status ax_parse_literal(ax_parser *parser, ax_literal *out);
/* Parses [name=value ..]: each parameter of `prim` once, in any order except that specs follow their mesh. */
AX_MUST_USE ax_status ax_parse_params(ax_parser *parser, const ax_prim *prim, const ax_mesh *axes, void *params);

/* --- parse.c --- */
/* A program in the environment `outer`. The caller's reference is in parser->programs. */
AX_MUST_USE ax_status ax_parse_nested(ax_parser *parser, const ax_mesh *outer, bool unify, ax_program **out);

#endif
