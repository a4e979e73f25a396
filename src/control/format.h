/* The formats of debug_print: text with fields, in which values are written. */
#ifndef AX_CONTROL_FORMAT_H
#define AX_CONTROL_FORMAT_H

#include "ir/equation.h"

/* Text, then a field or the end. */
typedef struct ax_format_piece {
  const char *text; /* "{{" and "}}" in it stand for a brace */
  size_t length;
  bool field;
  int width, precision; /* of the field; -1: not given */
  char type;            /* e f g d x; 0: not given */
} ax_format_piece;

/* Reads a piece from *at on. False: the end of the format. *wrong: the error found there, or NULL. */
bool ax_format_next(const char **at, ax_format_piece *piece, const char **wrong);
/* AX_INVALID_ARGUMENT: a malformed format, with the place; a number of fields other than `count`; a field whose type does not suit
   the value's dtype. */
AX_MUST_USE ax_status ax_format_check(const char *format, uint32_t count, const ax_type *values);
/* Writes a format that was checked. Value i is values[i * stride], its lane 0. In the "C" locale. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_format_text(ax_text *text, const char *format, ax_tensor *const *values, size_t stride);

#endif
