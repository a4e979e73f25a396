/* Numbers and names of the text form. */
#include "ir/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/number.h"

/* --- Names --- */

static const char *const reserved[] = {"in", "let", "lambda", "axes", "true", "false", "nan", "inf"};

bool ax_is_reserved(const char *word, size_t length) {
  for (size_t i = 0; i < AX_COUNT(reserved); i++)
    if (strlen(reserved[i]) == length && memcmp(reserved[i], word, length) == 0) return true;
  return length >= 4 && memcmp(word, "nan_", 4) == 0; /* a literal */
}

/* Bijective base 26: 0 is a, 25 z, 26 aa. */
static void spell(uint64_t number, char *name) {
  char reversed[16];
  int length = 0;
  for (number++; number > 0; number = (number - 1) / 26) reversed[length++] = (char)('a' + (number - 1) % 26);
  for (int i = 0; i < length; i++) name[i] = reversed[length - 1 - i];
  name[length] = '\0';
}

static uint64_t number_of(const char *word) {
  uint64_t number = 0;
  for (; *word != '\0'; word++) number = number * 26 + (uint64_t)(*word - 'a' + 1);
  return number - 1;
}

void ax_label_name(uint32_t label, char *name) {
  uint64_t number = label;
  /* Each reserved word at or before the name shifts it by one; again, until none more is passed. */
  for (uint64_t shifted = label;; number = shifted) {
    uint64_t passed = 0;
    for (size_t i = 0; i < AX_COUNT(reserved); i++) passed += number_of(reserved[i]) <= number;
    shifted = label + passed;
    if (shifted == number) break;
  }
  spell(number, name);
}

/* --- Numbers --- */

static bool same_bits(ax_dtype dtype, const void *a, const void *b) { return memcmp(a, b, ax_dtype_bytes(dtype)) == 0; }

static const void *element_at(ax_dtype dtype, const void *data, int64_t index) {
  return (const char *)data + (size_t)index * ax_dtype_bytes(dtype);
}

/* nan, or nan with all its bits where they are not those that `nan` reads as. */
static void nan_text(ax_text *text, ax_dtype dtype, const void *element) {
  uint64_t plain = 0, bits = 0;
  ax_number_store(dtype, &plain, 0, (ax_number){.f = (double)NAN});
  memcpy(&bits, element, ax_dtype_bytes(dtype));
  if (bits == plain)
    ax_text_add(text, "nan");
  else
    ax_text_add(text, "nan_%" PRIx64, bits);
}

/* Of a dtype without infinities, which would make its largest number of it. */
static bool is_beyond(ax_dtype dtype, const char *digits) { return !ax_has_infinity(dtype) && !ax_number_holds(dtype, strtod(digits, NULL)); }

static void float_text(ax_text *text, ax_dtype dtype, const void *element) {
  double value = ax_number_load(dtype, element, 0).f;
  char digits[40], *end;
  uint64_t back = 0;
  if (isnan(value)) {
    nan_text(text, dtype, element);
    return;
  }
  if (isinf(value)) {
    ax_text_add(text, value < 0 ? "-inf" : "inf");
    return;
  }
  int precision = 0;
  do { /* not 8 for the 7.5 that is the largest of its dtype: what is above it is refused */
    snprintf(digits, sizeof digits, "%.*e", precision, value);
    ax_number_store(dtype, &back, 0, ax_number_decimal(dtype, digits, &end));
  } while ((!same_bits(dtype, &back, element) || is_beyond(dtype, digits)) && ++precision < 17);
  int exponent = atoi(strchr(digits, 'e') + 1), decimals = precision - exponent;
  if (exponent < -4 || exponent > 15)
    ax_text_add(text, "%.*e", precision, value);
  else
    ax_text_add(text, decimals > 0 ? "%.*f" : "%.*f.0", decimals > 0 ? decimals : 0, value);
}

void ax_element_text(ax_text *text, ax_dtype dtype, const void *data, int64_t index) {
  ax_number number = ax_number_load(dtype, data, index);
  switch (ax_dtype_get(dtype)->kind) {
    case AX_KIND_BOOL: ax_text_add(text, number.u ? "true" : "false"); break;
    case AX_KIND_SIGNED: ax_text_add(text, "%" PRId64, number.i); break;
    case AX_KIND_UNSIGNED:
    case AX_KIND_KEY: ax_text_add(text, "%" PRIu64, number.u); break;
    case AX_KIND_FLOAT: float_text(text, dtype, element_at(dtype, data, index)); break;
    case AX_KIND_COMPLEX:
      ax_text_add(text, "(");
      ax_element_text(text, ax_part_dtype(dtype), data, 2 * index);
      ax_text_add(text, ",");
      ax_element_text(text, ax_part_dtype(dtype), data, 2 * index + 1);
      ax_text_add(text, ")");
      break;
  }
}

static bool all_digits(const char *word) {
  if (*word == '\0') return false;
  while (*word >= '0' && *word <= '9') word++;
  return *word == '\0';
}

bool ax_integer_parse(const char *word, int64_t *out) {
  if (!all_digits(word + (word[0] == '-'))) return false;
  errno = 0;
  *out = strtoll(word, NULL, 10);
  return errno == 0;
}

static bool integer_parse(const char *word, ax_dtype dtype, ax_number *number) {
  if (ax_dtype_get(dtype)->kind == AX_KIND_SIGNED) {
    if (!ax_integer_parse(word, &number->i)) return false;
    return ax_number_round(dtype, *number).i == number->i;
  }
  if (!all_digits(word)) return false;
  errno = 0;
  number->u = strtoull(word, NULL, 10);
  return errno == 0 && ax_number_round(dtype, *number).u == number->u;
}

static bool nan_parse(const char *word, ax_dtype dtype, void *element) {
  char *end;
  size_t bytes = ax_dtype_bytes(dtype);
  errno = 0;
  uint64_t bits = strtoull(word + 4, &end, 16);
  if (word[4] == '\0' || strspn(word + 4, "0123456789abcdef") != strlen(word + 4) || *end != '\0' || errno != 0)
    return false;
  if (bytes < 8 && bits >> (ax_dtype_get(dtype)->bits) != 0) return false;
  memcpy(element, &bits, bytes);
  return isnan(ax_number_load(dtype, element, 0).f);
}

/* A number that is beyond the dtype is refused: 1e39 is no f32, but inf is. */
static bool float_parse(const char *word, ax_dtype dtype, void *data, int64_t index) {
  const char *digits = word + (word[0] == '-');
  double value, sign = word[0] == '-' ? -1 : 1;
  if (strncmp(word, "nan_", 4) == 0)
    return nan_parse(word, dtype, (char *)data + (size_t)index * ax_dtype_bytes(dtype));
  if (strcmp(word, "nan") == 0) {
    value = (double)NAN;
  } else if (strcmp(digits, "inf") == 0) {
    value = sign * (double)INFINITY;
  } else {
    char *end;
    if (digits[0] < '0' || digits[0] > '9' || digits[strspn(digits, "0123456789.eE+-")] != '\0') return false;
    value = ax_number_decimal(dtype, word, &end).f;
    if (*end != '\0' || !isfinite(value)) return false;
    if (is_beyond(dtype, word)) return false;
  }
  if (!ax_number_holds(dtype, value)) return false;
  ax_number_store(dtype, data, index, (ax_number){.f = value});
  return true;
}

bool ax_element_parse(const char *word, ax_dtype dtype, void *data, int64_t index) {
  ax_number number = {0};
  switch (ax_dtype_get(dtype)->kind) {
    case AX_KIND_FLOAT: return float_parse(word, dtype, data, index);
    case AX_KIND_COMPLEX: return false; /* its parts are words of their own */
    case AX_KIND_BOOL:
      number.u = strcmp(word, "true") == 0;
      if (!number.u && strcmp(word, "false") != 0) return false;
      break;
    default:
      if (!integer_parse(word, dtype, &number)) return false;
  }
  ax_number_store(dtype, data, index, number);
  return true;
}

bool ax_axes_begin_with(const ax_mesh *axes, const ax_mesh *parent) {
  if (axes->count == 0) return true;
  if (axes->count < parent->count) return false;
  ax_mesh front = *axes, around = *parent;
  front.count = parent->count;
  for (uint32_t i = 0; i < parent->count; i++)
    if (axes->axis[i].unchecked || (parent->axis[i].automatic && !axes->axis[i].automatic))
      around.axis[i].automatic = axes->axis[i].automatic && parent->axis[i].automatic,
      around.axis[i].unchecked = axes->axis[i].unchecked;
  return ax_mesh_equal(&front, &around, true);
}

/* --- Texts between quotes --- */

void ax_quoted_text(ax_text *text, const char *bytes) {
  ax_text_add(text, "\"");
  for (const char *c = bytes; *c != '\0'; c++) {
    if (*c == '\n') ax_text_add(text, "\\n");
    else if (*c == '\\') ax_text_add(text, "\\\\");
    else if (*c == '"' || *c == 0x7f || (unsigned char)*c < ' ') ax_text_add(text, "\\x%02x", (unsigned)(unsigned char)*c);
    else ax_text_add_bytes(text, c, 1);
  }
  ax_text_add(text, "\"");
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

const char *ax_quoted_parse(const char *quoted, size_t length, char *out) {
  static const char wrong[] = "a backslash is followed by n, another one, or x and two hexadecimal digits that are not 00";
  const char *end = quoted + length;
  for (const char *c = quoted; c < end; c++) {
    if (*c != '\\') {
      *out++ = *c;
      continue;
    }
    if (++c == end) return wrong;
    if (*c == 'n' || *c == '\\') {
      *out++ = *c == 'n' ? '\n' : '\\';
      continue;
    }
    int high = *c == 'x' && end - c > 2 ? hex_digit(c[1]) : -1, low = high >= 0 ? hex_digit(c[2]) : -1;
    if (low < 0 || (high == 0 && low == 0)) return wrong;
    *out++ = (char)(high * 16 + low);
    c += 2;
  }
  *out = '\0';
  return NULL;
}
