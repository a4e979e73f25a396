/* Characters and words of MLIR's texts, and errors with their place. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/reader.h"

/* --- Places and errors --- */

/* Places are asked for from first to last, so lines are counted once. */
ax_hlo_place ax_hlo_place_at(ax_hlo_scan *r, const char *at) {
  if (at < r->line_start) r->line_start = r->text, r->line = 1;
  for (const char *end; (end = memchr(r->line_start, '\n', (size_t)(at - r->line_start))) != NULL; r->line++)
    r->line_start = end + 1;
  return (ax_hlo_place){.line = r->line, .column = (uint32_t)(at - r->line_start) + 1};
}

enum { most_shown = 160 }; /* characters of a line */

ax_status ax_hlo_refuse(ax_hlo_scan *r, const char *at, const char *format, ...) {
  char message[1024], line[most_shown + 1], caret[most_shown + 1];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  if (at < r->text || at > r->end) at = r->cursor; /* in a copy of a string */
  const ax_hlo_place place = ax_hlo_place_at(r, at);
  const char *start = at - r->line_start > most_shown / 2 ? at - most_shown / 2 : r->line_start;
  size_t length = 0, before = (size_t)(at - start);
  while (length < most_shown && start + length < r->end && start[length] != '\n' && start[length] != '\0') length++;
  memcpy(line, start, length);
  line[length] = '\0';
  for (size_t i = 0; i < before; i++) caret[i] = line[i] == '\t' ? '\t' : ' ';
  caret[before] = '\0';
  return ax_error(AX_PARSE_ERROR, "%s:%u:%u: %s\n  %s\n  %s^", r->module->source, place.line, place.column, message, line, caret);
}

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool in_word(char c) { return is_letter(c) || ax_hlo_is_digit(c) || c == '$' || c == '.'; }
static bool in_name(char c) { return in_word(c) || c == '-'; }

ax_status ax_hlo_expected(ax_hlo_scan *r, const char *what) {
  ax_hlo_skip(r);
  size_t length = 0;
  while (length < 40 && r->cursor + length < r->end && in_word(r->cursor[length])) length++;
  if (length == 0 && r->cursor < r->end) length = 1;
  if (length == 0) return ax_hlo_refuse(r, r->cursor, "expected %s, and the text ends", what);
  return ax_hlo_refuse(r, r->cursor, "expected %s, not '%.*s'", what, (int)length, r->cursor);
}

ax_status ax_hlo_enter(ax_hlo_scan *r) {
  if (++r->nested <= AX_HLO_MOST_NESTED) return AX_OK;
  return ax_hlo_refuse(r, r->cursor, "more than %d regions, attributes and types are nested here", AX_HLO_MOST_NESTED);
}

/* --- Words --- */

void ax_hlo_skip(ax_hlo_scan *r) {
  const char *p = r->cursor;
  for (;; p++) {
    while (p < r->end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')) p++;
    if (r->end - p < 2 || p[0] != '/' || p[1] != '/') break;
    const char *line_end = memchr(p, '\n', (size_t)(r->end - p));
    p = line_end != NULL ? line_end : r->end - 1;
  }
  r->cursor = p;
}

bool ax_hlo_sees(ax_hlo_scan *r, const char *mark) {
  const size_t length = strlen(mark);
  ax_hlo_skip(r);
  if ((size_t)(r->end - r->cursor) < length || memcmp(r->cursor, mark, length) != 0) return false;
  return !is_letter(mark[0]) || r->cursor + length == r->end || !in_word(r->cursor[length]);
}

bool ax_hlo_take(ax_hlo_scan *r, const char *mark) {
  if (!ax_hlo_sees(r, mark)) return false;
  r->cursor += strlen(mark);
  return true;
}

ax_status ax_hlo_want(ax_hlo_scan *r, const char *mark) {
  char what[64];
  if (ax_hlo_take(r, mark)) return AX_OK;
  snprintf(what, sizeof what, "'%s'", mark);
  return ax_hlo_expected(r, what);
}

ax_hlo_slice ax_hlo_take_word(ax_hlo_scan *r) {
  ax_hlo_skip(r);
  ax_hlo_slice word = {.start = r->cursor};
  if (r->cursor < r->end && is_letter(*r->cursor))
    while (r->cursor < r->end && in_word(*r->cursor)) r->cursor++;
  word.length = (size_t)(r->cursor - word.start);
  return word;
}

ax_status ax_hlo_want_word(ax_hlo_scan *r, const char *what, ax_hlo_slice *out) {
  *out = ax_hlo_take_word(r);
  return out->length > 0 ? AX_OK : ax_hlo_expected(r, what);
}

ax_status ax_hlo_want_name(ax_hlo_scan *r, char mark, ax_hlo_slice *out) {
  const char word[] = {mark, '\0'};
  AX_TRY(ax_hlo_want(r, word));
  out->start = r->cursor;
  while (r->cursor < r->end && in_name(*r->cursor)) {
    if (r->cursor[0] == '-' && r->end - r->cursor > 1 && r->cursor[1] == '>') break; /* an arrow behind the name */
    r->cursor++;
  }
  out->length = (size_t)(r->cursor - out->start);
  return out->length > 0 ? AX_OK : ax_hlo_expected(r, "a name");
}

int ax_hlo_hex_digit(char c) {
  return ax_hlo_is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* \n, \t, \", \\ and \XX, two hexadecimal digits. */
static size_t unescape(const char *from, size_t length, char *to) {
  size_t count = 0;
  for (size_t i = 0; i < length; i++) {
    if (from[i] != '\\' || i + 1 == length) {
      to[count++] = from[i];
    } else if (i + 2 < length && ax_hlo_hex_digit(from[i + 1]) >= 0 && ax_hlo_hex_digit(from[i + 2]) >= 0) {
      to[count++] = (char)(ax_hlo_hex_digit(from[i + 1]) * 16 + ax_hlo_hex_digit(from[i + 2]));
      i += 2;
    } else {
      i++;
      to[count++] = from[i] == 'n' ? '\n' : from[i] == 't' ? '\t' : from[i];
    }
  }
  return count;
}

ax_status ax_hlo_want_string(ax_hlo_scan *r, ax_hlo_slice *out) {
  if (!ax_hlo_take(r, "\"")) return ax_hlo_expected(r, "a string");
  bool escapes = false;
  out->start = r->cursor;
  for (; r->cursor < r->end && *r->cursor != '"'; r->cursor++) {
    if (*r->cursor == '\n') return ax_hlo_refuse(r, out->start - 1, "the string does not end on its line");
    if (*r->cursor != '\\') continue;
    escapes = true;
    if (++r->cursor == r->end) break;
  }
  if (r->cursor >= r->end) return ax_hlo_refuse(r, out->start - 1, "the string does not end");
  out->length = (size_t)(r->cursor++ - out->start);
  if (!escapes) return AX_OK;
  char *copy = ax_arena_alloc(&r->module->arena, out->length);
  if (copy == NULL) return ax_out_of_memory(out->length);
  out->length = unescape(out->start, out->length, copy);
  out->start = copy;
  return AX_OK;
}

ax_status ax_hlo_want_integer(ax_hlo_scan *r, int64_t *out) {
  char digits[32], *end;
  size_t length = 0;
  ax_hlo_skip(r);
  const char *at = r->cursor;
  if (r->cursor < r->end && (*r->cursor == '-' || *r->cursor == '+')) digits[length++] = *r->cursor++;
  while (r->cursor < r->end && length < sizeof digits - 1 && (is_letter(*r->cursor) || ax_hlo_is_digit(*r->cursor)))
    digits[length++] = *r->cursor++;
  digits[length] = '\0';
  errno = 0;
  const bool hex = strncmp(digits, "0x", 2) == 0, negative = digits[0] == '-';
  const uint64_t u = strtoull(negative ? digits + 1 : digits, &end, hex ? 16 : 10);
  const bool fits = !negative || u <= (uint64_t)INT64_MAX + 1;
  if (length == 0 || *end != '\0' || end == digits || errno != 0 || !fits) {
    r->cursor = at;
    return ax_hlo_expected(r, "an integer of 64 bits");
  }
  *out = (int64_t)(negative ? 0 - u : u);
  return AX_OK;
}

static ax_status want_one_symbol(ax_hlo_scan *r, ax_hlo_slice *out) {
  if (!ax_hlo_sees(r, "@")) return ax_hlo_expected(r, "a symbol, @name");
  if (r->end - r->cursor < 2 || r->cursor[1] != '"') return ax_hlo_want_name(r, '@', out);
  r->cursor++;
  return ax_hlo_want_string(r, out);
}

static ax_status add_symbols(ax_hlo_scan *r, ax_hlo_list *outer, ax_hlo_attribute *out) {
  AX_TRY(want_one_symbol(r, &out->text));
  while (r->end - r->cursor > 2 && memcmp(r->cursor, "::@", 3) == 0) {
    const ax_hlo_attribute before = {.kind = AX_HLO_SYMBOL, .text = out->text};
    r->cursor += 2;
    AX_TRY(ax_hlo_list_add(outer, &before, sizeof before));
    AX_TRY(want_one_symbol(r, &out->text));
  }
  return AX_OK;
}

ax_status ax_hlo_want_symbol(ax_hlo_scan *r, ax_hlo_attribute *out) {
  ax_hlo_list outer = {0};
  ax_status status = add_symbols(r, &outer, out);
  out->kind = AX_HLO_SYMBOL;
  out->count = outer.count;
  out->items = ax_hlo_list_end(r, &outer, sizeof out->items[0], &status);
  return status;
}

/* Characters of numbers and of lists of them, which neither open nor close anything. */
static const char *behind_numbers(const char *at, const char *end) {
  static const bool of_numbers[256] = {['0'] = true, ['1'] = true, ['2'] = true, ['3'] = true, ['4'] = true, ['5'] = true, ['6'] = true,
                                       ['7'] = true, ['8'] = true, ['9'] = true, ['.'] = true, [','] = true, [' '] = true, ['e'] = true,
                                       ['+'] = true};
  while (at < end && of_numbers[(unsigned char)*at]) at++;
  return at;
}

/* Strings and comments are passed whole; the > of an arrow ends nothing. */
ax_status ax_hlo_want_balanced(ax_hlo_scan *r, ax_hlo_slice *out) {
  char open[AX_HLO_MOST_NESTED];
  uint32_t depth = 0;
  ax_hlo_skip(r);
  const char *first = r->cursor;
  ax_hlo_slice string;
  if (first == r->end || strchr("<({[", *first) == NULL) return ax_hlo_expected(r, "a bracket");
  do {
    r->cursor = behind_numbers(r->cursor, r->end);
    if (r->cursor >= r->end) return ax_hlo_refuse(r, first, "the bracket is not closed");
    const char c = *r->cursor;
    const char *closes = strchr(">)}]", c), *opens = strchr("<({[", c);
    if (c == '\0') return ax_hlo_refuse(r, r->cursor, "a character that no text has");
    if (c == '"') {
      AX_TRY(ax_hlo_want_string(r, &string));
      continue;
    }
    if (ax_hlo_sees_comment(r)) {
      ax_hlo_skip(r);
      continue;
    }
    if (c == '-' && r->end - r->cursor > 1 && r->cursor[1] == '>')
      r->cursor++;
    else if (opens != NULL && depth == AX_HLO_MOST_NESTED)
      return ax_hlo_refuse(r, r->cursor, "brackets are nested too deeply");
    else if (opens != NULL)
      open[depth++] = ">)}]"[opens - "<({["];
    else if (closes != NULL && open[--depth] != c)
      return ax_hlo_refuse(r, r->cursor, "expected '%c', not '%c'", open[depth], c);
    r->cursor++;
  } while (depth > 0);
  *out = (ax_hlo_slice){first + 1, (size_t)(r->cursor - first) - 2};
  return AX_OK;
}

/* --- Lists --- */

ax_status ax_hlo_list_add(ax_hlo_list *list, const void *item, size_t bytes) {
  AX_TRY(ax_grow(&list->items, bytes, list->count, 1, &list->capacity));
  memcpy((char *)list->items + bytes * list->count++, item, bytes);
  return AX_OK;
}

void *ax_hlo_list_end(ax_hlo_scan *r, ax_hlo_list *list, size_t bytes, ax_status *status) {
  void *copy = NULL;
  if (*status == AX_OK && list->count > 0) {
    copy = ax_arena_copy(&r->module->arena, list->items, bytes * list->count);
    if (copy == NULL) *status = ax_out_of_memory(bytes * list->count);
  }
  ax_free(list->items);
  *list = (ax_hlo_list){0};
  return copy;
}
