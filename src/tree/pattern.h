/* Patterns on the names of leaves, and lists of them: "PATTERN: VALUE; PATTERN: VALUE" or "PATTERN; !PATTERN". axle/tree.h says
   what they mean. The first that matches counts. */
#ifndef AX_TREE_PATTERN_H
#define AX_TREE_PATTERN_H

#include "ir/lex.h"

typedef struct ax_rule {
  ax_lexeme pattern, value; /* places in the text, blanks trimmed; a pattern's "!" is not part of it */
  bool leaves_out;         /* it began with "!" */
} ax_rule;

/* Borrows its text. */
typedef struct ax_rules {
  ax_lexer lexer; /* for messages only */
  ax_rule *list;
  uint32_t count, capacity;
} ax_rules;

/* `source` names the text in messages. with_values: each pattern has one, and none begins with "!". AX_PARSE_ERROR,
   AX_OUT_OF_MEMORY; AX_INVALID_ARGUMENT: no text. To be deinited in any case. */
AX_MUST_USE ax_status ax_rules_parse(const char *text, const char *source, bool with_values, ax_rules *out);
void ax_rules_deinit(ax_rules *rules);
/* The first that matches; NULL: none does. */
const ax_rule *ax_rules_find(const ax_rules *rules, const char *name);
/* Whether the first that matches is there and does not leave the leaf out. */
bool ax_rules_pick(const ax_rules *rules, const char *name);

/* The characters that names, and patterns with `*` and `?`, are made of. */
bool ax_is_leaf_character(char c);
static inline bool ax_is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; } /* between words of a line */

#endif
