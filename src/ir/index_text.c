/* The text is split into items at its commas. Only then is it known for how many dimensions `...` stands, so the items are applied
   to the dimensions in a second pass. */
#include "ir/index_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most_items = 2 * AX_MAX_RANK + 1 };

typedef struct item {
  enum { RANGE, NUMBER, ELLIPSIS, NEW } kind;
  const char *at;   /* in the text */
  bool given[3];    /* of a range: start, stop, step */
  int64_t value[3]; /* of a number: the first */
} item;

typedef struct items {
  const char *text;
  uint32_t count, used; /* used: items that each take a dimension */
  item v[most_items];
} items;

static ax_status wrong(const items *all, const char *at, const char *what) {
  return ax_error(AX_INVALID_ARGUMENT, "\"%s\", character %d: %s", all->text, (int)(at - all->text) + 1, what);
}

/* --- The text --- */

static const char *after_blanks(const char *at) { return at + strspn(at, " \t"); }

static bool takes_word(const char **at, const char *word) {
  const size_t length = strlen(word);
  if (strncmp(*at, word, length) != 0 || isalnum((unsigned char)(*at)[length])) return false;
  *at += length;
  return true;
}

/* Reads the number at *at, if there is one. */
static ax_status read_number(const items *all, const char **at, bool *given, int64_t *value) {
  const char *digits = *at + (**at == '-' || **at == '+');
  char *end;
  *given = isdigit((unsigned char)*digits);
  if (!*given) return AX_OK;
  errno = 0;
  *value = strtoll(*at, &end, 10);
  if (errno == ERANGE) return wrong(all, *at, "the number is beyond 64 bits");
  *at = end;
  return AX_OK;
}

static ax_status read_range(const items *all, const char **at, item *into) {
  uint32_t part = 0;
  const char *step = *at;
  for (;; part++) {
    *at = step = after_blanks(*at);
    AX_TRY(read_number(all, at, &into->given[part], &into->value[part]));
    *at = after_blanks(*at);
    if (**at != ':' || part == 2) break;
    ++*at;
  }
  into->kind = part == 0 ? NUMBER : RANGE;
  if (part == 0 && !into->given[0]) return wrong(all, *at, "an index is a number, start:stop:step, ... or None");
  if (part == 2 && into->given[2] && into->value[2] == 0) return wrong(all, step, "the step is 0");
  return AX_OK;
}

static ax_status read_items(items *all) {
  for (const char *at = after_blanks(all->text); *at != '\0'; at = after_blanks(at + 1)) {
    if (all->count == most_items) return wrong(all, at, "there are too many indices");
    item *next = &all->v[all->count++];
    *next = (item){.kind = NEW, .at = at};
    if (strncmp(at, "...", 3) == 0) next->kind = ELLIPSIS, at += 3;
    else if (!takes_word(&at, "None") && !takes_word(&at, "newaxis")) AX_TRY(read_range(all, &at, next));
    all->used += next->kind == RANGE || next->kind == NUMBER;
    at = after_blanks(at);
    if (*at == '\0') return AX_OK;
    if (*at != ',') return wrong(all, at, "a comma or the end is expected here");
  }
  return AX_OK;
}

/* --- The dimensions --- */

/* A bound as Python's slices have it: counted from the end below 0, and moved inside low .. high. */
static int64_t bound(const item *from, uint32_t which, int64_t otherwise, int64_t size, int64_t low, int64_t high) {
  if (!from->given[which]) return otherwise;
  int64_t value = from->value[which] < 0 ? from->value[which] + size : from->value[which];
  return value < low ? low : value > high ? high : value;
}

static ax_index_range range_of(const item *from, int64_t size) {
  ax_index_range range = {.step = from->given[2] ? from->value[2] : 1};
  if (range.step < -INT64_MAX) range.step = -INT64_MAX;
  const bool forward = range.step > 0;
  const int64_t low = forward ? 0 : -1, high = forward ? size : size - 1;
  const int64_t stop = bound(from, 1, forward ? high : low, size, low, high);
  range.start = bound(from, 0, forward ? low : high, size, low, high);
  const int64_t way = forward ? stop - range.start : range.start - stop;
  range.count = way > 0 ? (way - 1) / (forward ? range.step : -range.step) + 1 : 0;
  if (range.count == 0) range.start = 0;
  if (range.count < 2) range.step = 1;
  return range;
}

static ax_status one_of(const items *all, const item *from, uint32_t dimension, int64_t size, ax_index_range *out) {
  const int64_t given = from->value[0], index = given < 0 ? given + size : given;
  char what[128];
  *out = (ax_index_range){index, 1, 1};
  if (index >= 0 && index < size) return AX_OK;
  snprintf(what, sizeof what, "%lld is outside of dimension %u, of %lld", (long long)given, dimension, (long long)size);
  return wrong(all, from->at, what);
}

static ax_status keep(const items *all, const item *at, int64_t size, ax_index_part *out) {
  if (out->result.count == AX_MAX_RANK) return wrong(all, at->at, "the part has too many dimensions");
  out->result.v[out->result.count++] = size;
  return AX_OK;
}

/* Dimensions that no item names are taken whole. */
static ax_status keep_whole(const items *all, const item *at, const ax_type *type, uint32_t *dimension, uint32_t until,
                            ax_index_part *out) {
  for (; *dimension < until; ++*dimension) {
    out->along[*dimension] = (ax_index_range){0, type->dims[*dimension], 1};
    AX_TRY(keep(all, at, type->dims[*dimension], out));
  }
  return AX_OK;
}

/* A range or a number takes dimension d. */
static ax_status take(const items *all, const item *now, const ax_type *type, uint32_t d, ax_index_part *out) {
  if (d == type->rank) {
    char what[96];
    snprintf(what, sizeof what, "there is no dimension %u to index", d);
    return wrong(all, now->at, what);
  }
  if (now->kind == NUMBER) return one_of(all, now, d, type->dims[d], &out->along[d]);
  out->along[d] = range_of(now, type->dims[d]);
  return keep(all, now, out->along[d].count, out);
}

static ax_status apply(const items *all, const ax_type *type, ax_index_part *out) {
  const item *last = &all->v[all->count > 0 ? all->count - 1 : 0];
  const uint32_t left = all->used < type->rank ? type->rank - all->used : 0; /* dimensions that `...` stands for */
  bool has_ellipsis = false;
  uint32_t d = 0;
  for (uint32_t i = 0; i < all->count; i++) {
    const item *now = &all->v[i];
    switch (now->kind) {
      case NEW: AX_TRY(keep(all, now, 1, out)); break;
      case ELLIPSIS:
        if (has_ellipsis) return wrong(all, now->at, "there is a second ...");
        has_ellipsis = true;
        AX_TRY(keep_whole(all, now, type, &d, d + left, out));
        break;
      default: AX_TRY(take(all, now, type, d++, out));
    }
  }
  return keep_whole(all, last, type, &d, type->rank, out);
}

ax_status ax_index_read(const char *text, const ax_type *type, ax_index_part *out) {
  items all = {.text = text};
  *out = (ax_index_part){0};
  if (text == NULL) return ax_error(AX_INVALID_ARGUMENT, "there is no text");
  all.v[0] = (item){.at = text};
  AX_TRY(read_items(&all));
  return apply(&all, type, out);
}
