/* The text form of treedefs: "NAME: TYPE @ SPEC" entries, braces in names. axle/tree.h describes it; types are written as in
   programs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/parse.h"
#include "tree/pattern.h"
#include "tree/treedef.h"

typedef struct entry {
  ax_treedef *def;
  const ax_lexer *lexer; /* for messages */
  ax_lexeme name;         /* with its braces */
  ax_type type;
  const char *spec;
  size_t spec_length;
  uint32_t braces; /* that are being expanded, one inside the other's rest */
  char expanded[AX_MAX_LEAF_NAME];
} entry;

/* --- Names with braces --- */

static ax_status expand(entry *e, size_t written, const char *rest);

/* name[0 .. written) with text[0 .. length) behind it, and then the rest. */
static ax_status expand_with(entry *e, size_t written, const char *text, size_t length, const char *rest) {
  if (written + length >= sizeof e->expanded)
    return ax_lexer_error(e->lexer, &e->name, "a name has at most %d bytes", AX_MAX_LEAF_NAME - 1);
  memcpy(e->expanded + written, text, length);
  return expand(e, written + length, rest);
}

/* Digits that fill text[0 .. length). */
static bool read_number(const char *text, size_t length, long *out) {
  char *end, word[12];
  if (length == 0 || length > 9 || strspn(text, "0123456789") < length) return false;
  memcpy(word, text, length);
  word[length] = '\0';
  *out = strtol(word, &end, 10);
  return true;
}

static ax_status expand_range(entry *e, size_t written, const char *inside, const char *dots, const char *close) {
  ax_lexeme range = {.start = inside, .length = (size_t)(close - inside), .line = e->name.line};
  long first, last;
  if (!read_number(inside, (size_t)(dots - inside), &first) || !read_number(dots + 2, (size_t)(close - dots - 2), &last) ||
      first > last)
    return ax_lexer_error(e->lexer, &range, "expected {first..last}, two numbers in order of at most 9 digits");
  if (last - first >= AX_MAX_LEAVES) return ax_lexer_error(e->lexer, &range, "more than %d leaves", AX_MAX_LEAVES);
  for (long i = first; i <= last; i++) {
    char number[24];
    int length = snprintf(number, sizeof number, "%ld", i);
    AX_TRY(expand_with(e, written, number, (size_t)length, close + 1));
  }
  return AX_OK;
}

static ax_status expand_braces(entry *e, size_t written, const char *open) {
  const char *end = e->name.start + e->name.length, *inside = open + 1, *close = memchr(open, '}', (size_t)(end - open));
  ax_lexeme brace = {.start = open, .length = 1, .line = e->name.line};
  if (e->braces > AX_MAX_LEAF_NAME) return ax_lexer_error(e->lexer, &brace, "more than %d braces in a name", AX_MAX_LEAF_NAME);
  if (close == NULL) return ax_lexer_error(e->lexer, &brace, "this brace is not closed");
  if (memchr(inside, '{', (size_t)(close - inside)) != NULL)
    return ax_lexer_error(e->lexer, &brace, "braces cannot stand in braces");
  for (const char *dots = inside; dots + 1 < close; dots++)
    if (dots[0] == '.' && dots[1] == '.') return expand_range(e, written, inside, dots, close);
  for (const char *word = inside; word <= close;) {
    const char *comma = memchr(word, ',', (size_t)(close - word));
    const char *stop = comma != NULL ? comma : close;
    AX_TRY(expand_with(e, written, word, (size_t)(stop - word), close + 1));
    word = stop + 1;
  }
  return AX_OK;
}

/* name[0 .. written) is made; `rest` of the entry's name is not. */
static ax_status expand(entry *e, size_t written, const char *rest) {
  const char *end = e->name.start + e->name.length, *open = memchr(rest, '{', (size_t)(end - rest));
  size_t plain = (size_t)((open != NULL ? open : end) - rest);
  if (written + plain >= sizeof e->expanded)
    return ax_lexer_error(e->lexer, &e->name, "a name has at most %d bytes", AX_MAX_LEAF_NAME - 1);
  memcpy(e->expanded + written, rest, plain);
  if (open != NULL) {
    e->braces++;
    ax_status within = expand_braces(e, written + plain, open);
    e->braces--;
    return within;
  }
  ax_status status = ax_treedef_add(e->def, e->expanded, written + plain, &e->type, e->spec, e->spec_length);
  return status == AX_OK ? status : ax_lexer_place(e->lexer, &e->name, status);
}

/* --- Entries --- */

/* text[from .. to) is a type, and nothing else. */
static ax_status parse_type(const ax_lexer *lexer, const char *from, const char *to, uint32_t line, ax_type *out) {
  ax_parser parser = {.lexer = *lexer};
  parser.lexer.cursor = from;
  parser.lexer.end = to;
  parser.lexer.line = line;
  AX_TRY(ax_lexer_next(&parser.lexer));
  AX_TRY(ax_parse_type(&parser, NULL, out));
  return parser.lexer.token.kind == AX_TOKEN_END ? AX_OK : ax_unexpected(&parser, "'@', ';' or the line's end");
}

/* One entry, text[from .. to), which is not blank. */
static ax_status parse_entry(ax_treedef *def, const ax_lexer *lexer, const char *from, const char *to, uint32_t line) {
  entry e = {.def = def, .lexer = lexer};
  while (ax_is_blank(*from)) from++;
  const char *colon = memchr(from, ':', (size_t)(to - from));
  if (colon == NULL) {
    ax_lexeme end = {.start = to, .line = line};
    return ax_lexer_error(lexer, &end, "expected ':' and a type after the name");
  }
  const char *stop = colon, *at = memchr(colon, '@', (size_t)(to - colon));
  while (stop > from && ax_is_blank(stop[-1])) stop--;
  e.name = (ax_lexeme){.kind = AX_TOKEN_NAME, .start = from, .length = (size_t)(stop - from), .line = line};
  AX_TRY(parse_type(lexer, colon + 1, at != NULL ? at : to, line, &e.type));
  e.spec = at != NULL ? at + 1 : to;
  while (to > e.spec && ax_is_blank(to[-1])) to--;
  while (e.spec < to && ax_is_blank(*e.spec)) e.spec++;
  e.spec_length = (size_t)(to - e.spec);
  return expand(&e, 0, e.name.start);
}

static ax_status parse_text(ax_treedef *def, const char *text) {
  const ax_lexer lexer = {.source = "treedef_parse", .text = text, .end = text + strlen(text)};
  uint32_t line = 1;
  for (const char *from = text; *from != '\0';) {
    const char *to = from + strcspn(from, ";\n#"), *first = from + strspn(from, " \t\r");
    if (first < to) AX_TRY(parse_entry(def, &lexer, from, to, line));
    if (*to == '#') to += strcspn(to, "\n");
    line += *to == '\n';
    from = to + (*to != '\0');
  }
  return AX_OK;
}

ax_status ax_treedef_parse(const char *text, ax_treedef **out) {
  *out = NULL;
  AX_TRY(ax_require(text, "text of a treedef"));
  AX_TRY(ax_treedef_begin(out));
  return ax_treedef_finish(*out, parse_text(*out, text), out);
}
