/* Constants as text: few elements as numbers, which people can read, and many as bytes. Either way equal elements have one text. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/canonical.h"
#include "hlo/print.h"
#include "ir/dtype.h"
#include "ir/number.h"

/* --- Numbers --- */

/* Adds a finite value in 2, 7, 12 or 17 digits, the first of these that reads back as the same number. MLIR wants a point after the
   first digit, whatever sign the locale has for it. */
static void add_float(ax_text *text, ax_dtype dtype, double value) {
  char digits[64];
  for (int precision = 1; precision <= 16; precision += 5) {
    snprintf(digits, sizeof digits, "%.*e", precision, value);
    double again = ax_number_round(dtype, (ax_number){.f = strtod(digits, NULL)}).f;
    if (again == value) break;
  }
  size_t whole = digits[0] == '-' ? 2 : 1, fraction = whole + strcspn(digits + whole, "0123456789");
  ax_text_add(text, "%.*s.%s", (int)whole, digits, digits + fraction);
}

static void add_element(ax_text *text, ax_dtype dtype, const void *data, int64_t index) {
  const ax_dtype_info *info = ax_dtype_get(dtype);
  ax_number number = ax_number_load(dtype, data, index);
  uint64_t bits = 0;
  switch (info->kind) {
    case AX_KIND_BOOL:
      ax_text_add(text, number.u != 0 ? "true" : "false");
      break;
    case AX_KIND_SIGNED:
      ax_text_add(text, "%" PRId64, number.i);
      break;
    case AX_KIND_UNSIGNED:
      ax_text_add(text, "%" PRIu64, number.u);
      break;
    case AX_KIND_KEY: break; /* they are written as words */
    case AX_KIND_COMPLEX:
      ax_text_add(text, "(");
      add_element(text, ax_part_dtype(dtype), data, 2 * index);
      ax_text_add(text, ", ");
      add_element(text, ax_part_dtype(dtype), data, 2 * index + 1);
      ax_text_add(text, ")");
      break;
    case AX_KIND_FLOAT:
      memcpy(&bits, (const char *)data + (size_t)index * info->bytes, info->bytes);
      if (isfinite(number.f))
        add_float(text, dtype, number.f);
      else
        ax_text_add(text, "0x%0*" PRIX64, (int)info->bytes * 2, bits);
      break;
  }
}

void ax_hlo_print_number(ax_text *text, const ax_hlo_attribute *a) {
  ax_dtype dtype;
  ax_element bits;
  const bool known = ax_hlo_number(a, &dtype, &bits);
  if (!known && a->kind == AX_HLO_INTEGER) {
    ax_text_add(text, "%" PRId64, a->integer);
  } else if (!known) {
    ax_text_add_bytes(text, a->text.start, a->text.length);
  } else if (a->kind == AX_HLO_INTEGER || !isfinite(ax_number_load(dtype, &bits, 0).f)) {
    add_element(text, dtype, &bits, 0);
  } else {
    ax_text_add(text, dtype == AX_F64 ? "%.16e" : "%.8e", ax_number_load(dtype, &bits, 0).f);
  }
}

/* Adds "[[a, b], [c, d]]": dimension `dim` and those inside it, which hold `count` elements from number `first` on. */
static void add_nested(ax_text *text, const ax_hlo_value_type *type, const void *data, uint32_t dim, int64_t first, int64_t count) {
  if (dim == type->rank) {
    add_element(text, type->dtype, data, first);
    return;
  }
  const int64_t step = count / type->dims[dim];
  ax_text_add(text, "[");
  for (int64_t i = 0; i < type->dims[dim]; i++) {
    ax_text_add(text, "%s", i > 0 ? ", " : "");
    add_nested(text, type, data, dim + 1, first + i * step, step);
  }
  ax_text_add(text, "]");
}

/* --- Bytes --- */

/* "0x3F80..": the bytes as they lie in memory, which MLIR takes to be little-endian. */
static void add_hex(ax_text *text, const unsigned char *bytes, size_t count) {
  static const char digits[] = "0123456789ABCDEF";
  ax_text_add(text, "\"0x");
  for (size_t i = 0; i < count; i++) {
    const char pair[] = {digits[bytes[i] >> 4], digits[bytes[i] & 15]};
    ax_text_add_bytes(text, pair, 2);
  }
  ax_text_add(text, "\"");
}

static void add_type(ax_text *text, const ax_hlo_value_type *type) {
  if (type->text.length > 0)
    ax_text_add_bytes(text, type->text.start, type->text.length);
  else /* a matrix that the printer has made */
    ax_text_add(text, "tensor<%" PRId64 "x%" PRId64 "xi64>", type->dims[0], type->dims[1]);
}

void ax_hlo_print_elements(ax_text *text, const ax_hlo_attribute *a) {
  enum { few = 64 };
  const int64_t count = ax_hlo_element_count(a->type);
  ax_text_add(text, "dense<");
  if (count > 0 && ax_hlo_is_splat(a))
    add_element(text, a->type->dtype, a->data, 0);
  else if (count > 0 && (count <= few || a->type->dtype == AX_BOOL)) /* MLIR's versions differ in how many truth values a byte has */
    add_nested(text, a->type, a->data, 0, 0, count);
  else if (count > 0)
    add_hex(text, a->data, (size_t)count * ax_dtype_bytes(a->type->dtype));
  ax_text_add(text, "> : ");
  add_type(text, a->type);
}
