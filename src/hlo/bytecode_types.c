/* Types: each is written as MLIR's text of it, which the reader of texts reads. So types that texts and bytecode have are found in one
   table, and say the same in messages. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "hlo/bytecode.h"
#include "ir/dtype.h"
#include "ir/number.h"

enum { most_characters = 1 << 24 }; /* of one type */

void ax_hlo_scan_text(ax_hlo_bytecode *b, ax_hlo_slice text) {
  ax_hlo_scan *r = &b->scan;
  r->text = r->cursor = r->line_start = text.start;
  r->end = text.start + text.length;
  r->line = 1;
}

ax_status ax_hlo_type_of_text(ax_hlo_bytecode *b, const char *text, size_t length, const ax_hlo_value_type **out) {
  if (length > b->text_left || length > most_characters)
    return ax_error(AX_PARSE_ERROR, "%s: the types of the file have too many parts", b->scan.module->source);
  b->text_left -= length;
  char *copy = ax_arena_copy(&b->scan.module->arena, text, length);
  if (copy == NULL) return ax_out_of_memory(length);
  ax_hlo_scan_text(b, (ax_hlo_slice){copy, length});
  AX_TRY(ax_hlo_want_type(&b->scan, out));
  if (b->scan.cursor == b->scan.end) return AX_OK;
  return ax_hlo_refuse(&b->scan, b->scan.cursor, "a type, and more behind it");
}

/* --- Texts of types --- */

static void add_slice(ax_text *text, ax_hlo_slice slice) { ax_text_add_bytes(text, slice.start, slice.length); }

static ax_status add_type(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_text *text) {
  const ax_hlo_value_type *type;
  AX_TRY(ax_hlo_read_type(b, from, &type));
  if (text->length < most_characters) add_slice(text, type->text);
  return AX_OK;
}

static ax_status add_types(ax_hlo_bytecode *b, ax_hlo_bytes *from, const char *open, const char *close, ax_text *text) {
  uint32_t count;
  AX_TRY(ax_hlo_read_count(b, from, &count));
  ax_text_add(text, "%s", open);
  for (uint32_t i = 0; i < count; i++) {
    if (i > 0) ax_text_add(text, ", ");
    AX_TRY(add_type(b, from, text));
  }
  ax_text_add(text, "%s", close);
  return AX_OK;
}

static ax_status add_dims(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_text *text) {
  uint32_t rank;
  int64_t extent;
  AX_TRY(ax_hlo_read_count(b, from, &rank));
  for (uint32_t d = 0; d < rank; d++) {
    AX_TRY(ax_hlo_read_signed(b, from, &extent));
    if (extent < 0)
      ax_text_add(text, "?x");
    else
      ax_text_add(text, "%" PRId64 "x", extent);
  }
  return AX_OK;
}

/* "tensor<" dimensions elements, and what is said of the layout. */
static ax_status add_tensor(ax_hlo_bytecode *b, ax_hlo_bytes *from, bool encoded, ax_text *text) {
  const ax_hlo_attribute *encoding = NULL;
  if (encoded) AX_TRY(ax_hlo_read_attribute(b, from, &encoding));
  if (encoding != NULL && encoding->kind != AX_HLO_OPAQUE)
    return ax_hlo_broken(b, from->next, "a tensor's encoding is of a kind that is not read");
  ax_text_add(text, "tensor<");
  AX_TRY(add_dims(b, from, text));
  AX_TRY(add_type(b, from, text));
  if (encoding != NULL) {
    ax_text_add(text, ", ");
    add_slice(text, encoding->text);
  }
  ax_text_add(text, ">");
  return AX_OK;
}

static ax_status add_of(ax_hlo_bytecode *b, ax_hlo_bytes *from, const char *before, ax_text *text) {
  ax_text_add(text, "%s", before);
  AX_TRY(add_type(b, from, text));
  ax_text_add(text, ">");
  return AX_OK;
}

/* (types) -> type, or (types) where there are none or several. */
static ax_status add_function(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_text *text) {
  uint32_t count;
  AX_TRY(add_types(b, from, "(", ") -> ", text));
  const ax_hlo_bytes results = *from;
  AX_TRY(ax_hlo_read_count(b, from, &count));
  if (count == 1) return add_type(b, from, text);
  *from = results;
  return add_types(b, from, "(", ")", text);
}

/* --- Quantized types of VHLO --- */

/* As MLIR prints it: six digits if these are the number, else as many as tell it from others. */
static void add_double(ax_text *text, uint64_t bits) {
  double number;
  char *end;
  memcpy(&number, &bits, sizeof number);
  const size_t start = text->length;
  ax_text_add(text, "%.6e", number);
  if (text->failed || ax_number_decimal(AX_F64, text->data + start, &end).f == number) return;
  text->length = start;
  ax_text_add(text, "%.17g", number);
}

typedef struct quantized {
  uint64_t flags, dimension;
  const ax_hlo_value_type *storage, *expressed;
  int64_t low, high;
} quantized;

/* i8:f32, with the limits where they are not those of the type; :1 behind it where each slice of a dimension has its own scale. */
static void add_storage(const quantized *q, bool per_axis, ax_text *text) {
  const bool is_signed = (q->flags & 1) != 0;
  const uint32_t bits = q->storage->element_known ? ax_dtype_get(q->storage->dtype)->bits : 0;
  const int64_t low = is_signed && bits > 0 && bits < 64 ? -((int64_t)1 << (bits - 1)) : 0;
  const int64_t high = bits > 0 && bits < 63 ? ((int64_t)1 << (is_signed ? bits - 1 : bits)) - 1 : 0;
  ax_text_add(text, "!quant.uniform<%c%u", is_signed ? 'i' : 'u', bits);
  if (q->low != low || q->high != high) ax_text_add(text, "<%" PRId64 ":%" PRId64 ">", q->low, q->high);
  ax_text_add(text, ":");
  add_slice(text, q->expressed->text);
  if (per_axis) ax_text_add(text, ":%" PRIu64, q->dimension);
  ax_text_add(text, ", ");
}

static void add_scale(ax_text *text, uint64_t scale, int64_t zero) {
  add_double(text, scale);
  if (zero != 0) ax_text_add(text, ":%" PRId64, zero);
}

static ax_status read_quantized(ax_hlo_bytecode *b, ax_hlo_bytes *from, quantized *q) {
  AX_TRY(ax_hlo_read_number(b, from, &q->flags));
  AX_TRY(ax_hlo_read_type(b, from, &q->storage));
  return ax_hlo_read_type(b, from, &q->expressed);
}

static ax_status add_quantized(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_text *text) {
  quantized q = {0};
  uint64_t scale;
  int64_t zero;
  AX_TRY(read_quantized(b, from, &q));
  AX_TRY(ax_hlo_read_bits(b, from, 64, &scale));
  AX_TRY(ax_hlo_read_signed(b, from, &zero));
  AX_TRY(ax_hlo_read_signed(b, from, &q.low));
  AX_TRY(ax_hlo_read_signed(b, from, &q.high));
  add_storage(&q, false, text);
  add_scale(text, scale, zero);
  ax_text_add(text, ">");
  return AX_OK;
}

static ax_status add_quantized_by_axis(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_text *text) {
  quantized q = {0};
  uint32_t scales, zeros;
  uint64_t scale;
  int64_t zero;
  AX_TRY(read_quantized(b, from, &q));
  AX_TRY(ax_hlo_read_number(b, from, &q.dimension));
  AX_TRY(ax_hlo_read_signed(b, from, &q.low));
  AX_TRY(ax_hlo_read_signed(b, from, &q.high));
  add_storage(&q, true, text);
  AX_TRY(ax_hlo_read_count(b, from, &scales));
  ax_hlo_bytes at = *from;
  for (uint32_t i = 0; i < scales; i++) AX_TRY(ax_hlo_read_bits(b, from, 64, &scale));
  AX_TRY(ax_hlo_read_count(b, from, &zeros));
  if (zeros != scales) return ax_hlo_broken(b, from->next, "a quantized type has %u scales and %u zeros", scales, zeros);
  for (uint32_t i = 0; i < scales; i++) {
    AX_TRY(ax_hlo_read_bits(b, &at, 64, &scale));
    AX_TRY(ax_hlo_read_signed(b, from, &zero));
    ax_text_add(text, i > 0 ? ", " : "{");
    add_scale(text, scale, zero);
  }
  ax_text_add(text, "}>");
  return AX_OK;
}

/* --- By dialect and code --- */

enum {
  vhlo_complex = 1,
  vhlo_function = 8,
  vhlo_tensor = 20,
  vhlo_encoded = 21,
  vhlo_tuple = 23,
  vhlo_quantized = 24,
  vhlo_unranked = 25,
  vhlo_by_axis = 30,
  vhlo_buffer = 41,
  vhlo_future = 42
};

static ax_status add_vhlo(ax_hlo_bytecode *b, ax_hlo_bytes *from, uint64_t code, ax_text *text) {
  const ax_hlo_simple_type *simple = ax_hlo_simple_type_of(code);
  if (simple != NULL) return ax_text_add(text, "%s", simple->text), AX_OK;
  switch (code) {
    case vhlo_complex:
      return add_of(b, from, "complex<", text);
    case vhlo_function:
      return add_function(b, from, text);
    case vhlo_tensor:
    case vhlo_encoded:
      return add_tensor(b, from, code == vhlo_encoded, text);
    case vhlo_tuple:
      return add_types(b, from, "tuple<", ">", text);
    case vhlo_quantized:
      return add_quantized(b, from, text);
    case vhlo_unranked:
      return add_of(b, from, "tensor<*x", text);
    case vhlo_by_axis:
      return add_quantized_by_axis(b, from, text);
    case vhlo_buffer:
      ax_text_add(text, "memref<");
      AX_TRY(add_dims(b, from, text));
      return add_of(b, from, "", text);
    case vhlo_future:
      return add_types(b, from, "!stablehlo.future<", ">", text);
    default:
      return ax_hlo_broken(b, from->next, "VHLO's type %llu is not known", (unsigned long long)code);
  }
}

static const char *const builtin_simple[] = {
    [1] = "index",   [3] = "bf16",      [4] = "f16",         [5] = "f32",         [6] = "f64",
    [7] = "f80",     [8] = "f128",      [12] = "none",       [21] = "tf32",       [22] = "f8E5M2",
    [23] = "f8E4M3", [24] = "f8E4M3FN", [25] = "f8E5M2FNUZ", [26] = "f8E4M3FNUZ", [27] = "f8E4M3B11FNUZ",
    [28] = "f8E3M4", [29] = "f4E2M1FN", [30] = "f6E2M3FN",   [31] = "f6E3M2FN",   [32] = "f8E8M0FNU"};
enum {
  builtin_integer = 0,
  builtin_function = 2,
  builtin_complex = 9,
  builtin_tensor = 13,
  builtin_encoded = 14,
  builtin_tuple = 15,
  builtin_unranked = 18
};

static ax_status add_builtin(ax_hlo_bytecode *b, ax_hlo_bytes *from, uint64_t code, ax_text *text) {
  static const char *const signs[] = {"i", "si", "ui", "i"};
  uint64_t width;
  if (code < AX_COUNT(builtin_simple) && builtin_simple[code] != NULL) return ax_text_add(text, "%s", builtin_simple[code]), AX_OK;
  switch (code) {
    case builtin_integer:
      AX_TRY(ax_hlo_read_number(b, from, &width));
      ax_text_add(text, "%s%llu", signs[width & 3], (unsigned long long)(width >> 2));
      return AX_OK;
    case builtin_function:
      return add_function(b, from, text);
    case builtin_complex:
      return add_of(b, from, "complex<", text);
    case builtin_tensor:
    case builtin_encoded:
      return add_tensor(b, from, code == builtin_encoded, text);
    case builtin_tuple:
      return add_types(b, from, "tuple<", ">", text);
    case builtin_unranked:
      return add_of(b, from, "tensor<*x", text);
    default:
      return ax_error(AX_ABSENT, "%s: byte %zu: types of code %llu of the dialect builtin (memref, vector) are not read",
                      b->scan.module->source, (size_t)(from->next - b->start), (unsigned long long)code);
  }
}

static ax_status add_stablehlo(ax_hlo_bytecode *b, ax_hlo_bytes *from, uint64_t code, ax_text *text) {
  if (code == 0) return ax_text_add(text, "!stablehlo.token"), AX_OK;
  if (code == 1) return add_types(b, from, "!stablehlo.future<", ">", text);
  return ax_hlo_broken(b, from->next, "StableHLO's type %llu is not known", (unsigned long long)code);
}

static ax_status add_coded(ax_hlo_bytecode *b, const ax_hlo_coded *coded, ax_text *text) {
  const ax_hlo_named_dialect *dialect = &b->dialects[coded->dialect];
  ax_hlo_bytes bytes = coded->bytes;
  uint64_t code;
  if (!coded->custom) { /* text that ends in NUL */
    size_t length = ax_hlo_left(&bytes);
    if (length > 0 && bytes.next[length - 1] == '\0') length--;
    ax_text_add_bytes(text, (const char *)bytes.next, length);
    return AX_OK;
  }
  AX_TRY(ax_hlo_read_number(b, &bytes, &code));
  if (dialect->which == AX_HLO_VHLO) return add_vhlo(b, &bytes, code, text);
  if (dialect->which == AX_HLO_BUILTIN) return add_builtin(b, &bytes, code, text);
  if (dialect->which == AX_HLO_STABLEHLO) return add_stablehlo(b, &bytes, code, text);
  return ax_error(AX_ABSENT, "%s: types of the dialect %.*s, as bytecode encodes them, are not read", b->scan.module->source,
                  (int)dialect->name.length, dialect->name.start);
}

ax_status ax_hlo_type_at(ax_hlo_bytecode *b, uint32_t index, const ax_hlo_value_type **out) {
  ax_hlo_coded *coded = &b->types[index];
  ax_text text = {0};
  if (coded->made == NULL) {
    if (coded->in_progress) return ax_hlo_broken(b, coded->bytes.next, "a type is part of itself");
    coded->in_progress = true;
    AX_TRY(ax_hlo_enter(&b->scan));
    ax_status status = add_coded(b, coded, &text);
    if (status == AX_OK && text.failed) status = ax_out_of_memory(text.length);
    if (status == AX_OK) status = ax_hlo_type_of_text(b, text.data != NULL ? text.data : "", text.length, out);
    ax_text_deinit(&text);
    AX_TRY(status);
    ax_hlo_leave(&b->scan);
    coded->made = *out;
  }
  *out = coded->made;
  return AX_OK;
}

ax_status ax_hlo_read_type(ax_hlo_bytecode *b, ax_hlo_bytes *from, const ax_hlo_value_type **out) {
  uint32_t index;
  AX_TRY(ax_hlo_read_below(b, from, b->type_count, "type", &index));
  return ax_hlo_type_at(b, index, out);
}
