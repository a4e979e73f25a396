/* debug_print's formats: text with fields, in which values are written. */
#ifndef AX_CONTROL_FORMAT_H
#define AX_CONTROL_FORMAT_H

#include "ir/prim.h"

/* Text, then a field or the end. */
typedef struct ax_format_piece {
  const char *text; /* where "{{" and "}}" stand for a brace */
  size_t length;
  bool field;
  int width, precision; /* of the field; -1: not given */
  char type;            /* e f g d x; 0: not given */
} ax_format_piece;

/* Reads a piece from *at on; false at the end of the format. *wrong: what is wrong there, or NULL. */
bool ax_format_next(const char **at, ax_format_piece *piece, const char **wrong);
/* AX_INVALID_ARGUMENT: a format that is none, with the place; other than `count` fields; a field whose type a value's dtype has
   not. */
AX_MUST_USE ax_status ax_format_check(const char *format, uint32_t count, const ax_type *values);
/* The text of a format that was checked. values: of lane 0 of `stride` lanes each. In the "C" locale. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_format_text(ax_text *text, const char *format, ax_tensor *const *values, size_t stride);

#endif
