/* Patterns on the names of leaves, and lists of them: "PATTERN: VALUE; PATTERN: VALUE" or "PATTERN; !PATTERN". axle/tree.h says
   what they mean. The first pattern that matches a name decides. */
#ifndef AX_TREE_PATTERN_H
#define AX_TREE_PATTERN_H

#include "ir/lex.h"

typedef struct ax_rule {
  ax_lexeme pattern, value; /* in the text, without blanks around them; a pattern's "!" is not part of it */
  bool leaves_out;         /* the pattern began with "!" */
} ax_rule;

/* Borrows its text. */
typedef struct ax_rules {
  ax_lexer lexer; /* for messages only */
  ax_rule *list;
  uint32_t count, capacity;
} ax_rules;

/* `source` names the text in messages. with_values: each pattern has a value, and none begins with "!". AX_PARSE_ERROR,
   AX_OUT_OF_MEMORY; AX_INVALID_ARGUMENT: no text. Call ax_rules_deinit in either case. */
AX_MUST_USE ax_status ax_rules_parse(const char *text, const char *source, bool with_values, ax_rules *out);
void ax_rules_deinit(ax_rules *rules);
/* The first rule that matches the name; NULL: none does. */
const ax_rule *ax_rules_find(const ax_rules *rules, const char *name);
/* Says whether the first rule that matches exists and does not leave the leaf out. */
bool ax_rules_pick(const ax_rules *rules, const char *name);

/* The characters of names, and of patterns, which may also have `*` and `?`. */
bool ax_is_leaf_character(char c);
static inline bool ax_is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; } /* between words of a line */

#endif
