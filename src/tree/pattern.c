/* Matching goes back to the last `*` only, since the last one can take any text that an earlier one could have taken. So matching
   takes at most the product of the two lengths. */
#include "tree/pattern.h"

#include <string.h>

bool ax_is_leaf_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.' || c == '/';
}

/* Whether pattern[0 .. length) matches the name, or that of a node it is below. */
static bool matches(const char *pattern, size_t length, const char *name) {
  size_t at = 0, star = SIZE_MAX; /* in the pattern */
  const char *taken = NULL;       /* in the name: what the last star has taken ends here */
  for (;;) {
    if (at == length && (*name == '\0' || *name == '/')) return true;
    if (at < length && pattern[at] == '*') {
      star = at++;
      taken = name;
    } else if (at < length && *name != '\0' && (pattern[at] == '?' || pattern[at] == *name)) {
      at++;
      name++;
    } else if (star != SIZE_MAX && *taken != '\0') {
      name = ++taken;
      at = star + 1;
    } else {
      return false;
    }
  }
}

const ax_rule *ax_rules_find(const ax_rules *rules, const char *name) {
  for (uint32_t i = 0; i < rules->count; i++) {
    const ax_lexeme *pattern = &rules->list[i].pattern;
    bool anywhere = pattern->length > 2 && memcmp(pattern->start, "*/", 2) == 0;
    if (matches(pattern->start, pattern->length, name) ||
        (anywhere && matches(pattern->start + 2, pattern->length - 2, name)))
      return &rules->list[i];
  }
  return NULL;
}

bool ax_rules_pick(const ax_rules *rules, const char *name) {
  const ax_rule *rule = ax_rules_find(rules, name);
  return rule != NULL && !rule->leaves_out;
}

/* --- Parsing --- */

/* text[from .. to) without blanks at its ends. */
static ax_lexeme trimmed(const char *from, const char *to, uint32_t line) {
  while (from < to && ax_is_blank(*from)) from++;
  while (from < to && ax_is_blank(to[-1])) to--;
  return (ax_lexeme){.kind = AX_TOKEN_NAME, .start = from, .length = (size_t)(to - from), .line = line};
}

static ax_status check_pattern(const ax_rules *rules, const ax_lexeme *pattern) {
  if (pattern->length == 0) return ax_lexer_error(&rules->lexer, pattern, "expected a pattern");
  for (size_t i = 0; i < pattern->length; i++) {
    char c = pattern->start[i];
    ax_lexeme here = {.start = pattern->start + i, .length = 1, .line = pattern->line};
    if (!ax_is_leaf_character(c) && c != '*' && c != '?')
      return ax_lexer_error(&rules->lexer, &here, "a pattern has letters, digits and any of _ - . / * ?");
  }
  return AX_OK;
}

/* One rule, in text[from .. to). */
static ax_status add(ax_rules *rules, const char *from, const char *to, uint32_t line, bool with_values) {
  ax_rule rule = {.pattern = trimmed(from, to, line)};
  if (with_values) {
    const char *colon = memchr(from, ':', (size_t)(to - from));
    if (colon == NULL) {
      ax_lexeme end = {.start = to, .line = line};
      return ax_lexer_error(&rules->lexer, &end, "expected ':' and a value after the pattern");
    }
    rule.pattern = trimmed(from, colon, line);
    rule.value = trimmed(colon + 1, to, line);
  } else if (rule.pattern.length > 0 && rule.pattern.start[0] == '!') {
    rule.leaves_out = true;
    rule.pattern = trimmed(rule.pattern.start + 1, to, line);
  }
  AX_TRY(check_pattern(rules, &rule.pattern));
  AX_TRY(ax_grow(&rules->list, sizeof rules->list[0], rules->count, 1, &rules->capacity));
  rules->list[rules->count++] = rule;
  return AX_OK;
}

ax_status ax_rules_parse(const char *text, const char *source, bool with_values, ax_rules *out) {
  *out = (ax_rules){0};
  AX_TRY(ax_require(text, "list of patterns"));
  const char *end = text + strlen(text);
  out->lexer = (ax_lexer){.source = source, .text = text, .end = end};
  uint32_t line = 1;
  for (const char *from = text; from < end;) {
    const char *to = from + strcspn(from, ";\n");
    if (trimmed(from, to, line).length > 0) AX_TRY(add(out, from, to, line, with_values));
    line += *to == '\n';
    from = to + (to < end);
  }
  return AX_OK;
}

void ax_rules_deinit(ax_rules *rules) {
  ax_free(rules->list);
  *rules = (ax_rules){0};
}
