/* Fields are {} or {:[width][.precision][type]}. An array is written as nested lists of its elements, each in the field's format.
   In a large array the middle of each long dimension is left out, as in NumPy. */
#include "control/format.h"

#include <inttypes.h>

#include "ir/number.h"
#include "ir/program.h"
#include "ir/text.h"

enum { most_width = 99, most_shown = 1000, most_along = 6, shown_at_ends = 3 };

/* --- Reading --- */

/* Digits, to 99; -1: there are none. */
static int read_number(const char **at) {
  int number = -1;
  for (; **at >= '0' && **at <= '9' && number <= most_width; ++*at) number = (number < 0 ? 0 : number * 10) + (**at - '0');
  return number;
}

/* Behind the opening brace. */
static const char *read_field(const char **at, ax_format_piece *piece) {
  if (**at == ':') {
    ++*at;
    piece->width = read_number(at);
    if (**at == '.') {
      ++*at;
      piece->precision = read_number(at);
      if (piece->precision < 0) return "the point is not followed by a precision";
    }
    if (piece->width > most_width || piece->precision > most_width) return "a width or precision is above 99";
    if (**at == 'e' || **at == 'f' || **at == 'g' || **at == 'd' || **at == 'x') piece->type = *(*at)++;
  }
  if (**at != '}') return "a field is {} or {:[width][.precision][type]}, the type one of e f g d x";
  ++*at;
  return NULL;
}

bool ax_format_next(const char **at, ax_format_piece *piece, const char **wrong) {
  *piece = (ax_format_piece){.text = *at, .width = -1, .precision = -1};
  *wrong = NULL;
  if (**at == '\0') return false;
  for (; **at != '\0'; ++*at) {
    if (**at != '{' && **at != '}') continue;
    if ((*at)[1] == **at) {
      ++*at;
      piece->length = (size_t)(*at - piece->text); /* the first of the two; the piece ends here */
      ++*at;
      return true;
    }
    piece->length = (size_t)(*at - piece->text);
    if (**at == '}') {
      *wrong = "a closing brace stands alone; as text it is }}";
      return true;
    }
    ++*at;
    piece->field = true;
    *wrong = read_field(at, piece);
    return true;
  }
  piece->length = (size_t)(*at - piece->text);
  return true;
}

/* --- Checking --- */

static ax_status check_field(const ax_format_piece *piece, uint32_t index, const ax_type *value) {
  bool is_float = ax_is_float(value->dtype), floats = piece->type == 'e' || piece->type == 'f' || piece->type == 'g';
  bool wants_float = floats || (piece->type == 0 && piece->precision >= 0), wants_integer = piece->type != 0 && !floats;
  if (piece->precision >= 0 && wants_integer)
    return ax_error(AX_INVALID_ARGUMENT, "field %u has a precision, which type %c has not", index, piece->type);
  if (wants_float && !is_float)
    return ax_error(AX_INVALID_ARGUMENT, "field %u is for floats, but its value is %s", index, ax_type_string(value, NULL));
  if (wants_integer && (ax_rounds(value->dtype) || value->dtype == AX_BOOL))
    return ax_error(AX_INVALID_ARGUMENT, "field %u is for integers, but its value is %s", index, ax_type_string(value, NULL));
  return AX_OK;
}

ax_status ax_format_check(const char *format, uint32_t count, const ax_type *values) {
  const char *at = format, *wrong;
  ax_format_piece piece;
  uint32_t fields = 0;
  for (const char *from = at; ax_format_next(&at, &piece, &wrong); from = at) {
    if (wrong != NULL)
      return ax_error(AX_INVALID_ARGUMENT, "the format, at byte %zu: %s", (size_t)(from - format) + piece.length, wrong);
    if (piece.field && fields < count) AX_TRY(check_field(&piece, fields, &values[fields]));
    fields += piece.field;
  }
  if (fields == count) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "the format has %u field%s, but there %s %u value%s", fields, fields == 1 ? "" : "s",
                  count == 1 ? "is" : "are", count, count == 1 ? "" : "s");
}

/* --- Writing --- */

static void add_element(ax_text *text, const ax_format_piece *piece, const ax_tensor *value, int64_t index) {
  const int width = piece->width < 0 ? 0 : piece->width, precision = piece->precision < 0 ? 6 : piece->precision;
  const ax_number number = ax_number_load(value->dtype, value->data, index);
  switch (piece->type) {
    case 'e': ax_text_add(text, "%*.*e", width, precision, number.f); return;
    case 'f': ax_text_add(text, "%*.*f", width, precision, number.f); return;
    case 'g': ax_text_add(text, "%*.*g", width, precision, number.f); return;
    case 'x': ax_text_add(text, "%*" PRIx64, width, number.u & (UINT64_MAX >> (64 - ax_dtype_get(value->dtype)->bits))); return;
    default: break;
  }
  if (piece->precision >= 0) {
    ax_text_add(text, "%*.*g", width, precision, number.f);
    return;
  }
  ax_text word = {0};
  ax_element_text(&word, value->dtype, value->data, index);
  if (word.failed) text->failed = true;
  else ax_text_add(text, "%*s", width, word.data);
  ax_text_deinit(&word);
}

/* Dimensions from `d` on, whose elements begin at *index, which goes past them. */
static void add_list(ax_text *text, const ax_format_piece *piece, const ax_tensor *value, uint32_t d, bool all, int64_t *index) {
  if (d == value->rank) {
    add_element(text, piece, value, (*index)++);
    return;
  }
  const int64_t count = value->dims[d], inside = ax_dims_elems(value->rank - d - 1, value->dims + d + 1);
  ax_text_add(text, "[");
  for (int64_t i = 0; i < count; i++) {
    ax_text_add(text, i > 0 ? ", " : "");
    if (!all && count > most_along && i == shown_at_ends) {
      *index += (count - 2 * shown_at_ends) * inside;
      i = count - shown_at_ends;
      ax_text_add(text, "..., ");
    }
    add_list(text, piece, value, d + 1, all, index);
  }
  ax_text_add(text, "]");
}

static void add_value(ax_text *text, const ax_format_piece *piece, const ax_tensor *value) {
  int64_t index = 0;
  add_list(text, piece, value, 0, ax_dims_elems(value->rank, value->dims) <= most_shown, &index);
}

ax_status ax_format_text(ax_text *text, const char *format, ax_tensor *const *values, size_t stride) {
  const char *at = format, *wrong;
  ax_format_piece piece;
  locale_t saved;
  AX_TRY(ax_text_locale_enter(&saved));
  while (ax_format_next(&at, &piece, &wrong)) {
    ax_text_add_bytes(text, piece.text, piece.length);
    if (!piece.field) continue;
    add_value(text, &piece, *values);
    values += stride;
  }
  ax_text_locale_leave(saved);
  return text->failed ? ax_out_of_memory(0) : AX_OK;
}
