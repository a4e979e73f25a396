/* Attributes as bytecode encodes them: those of the dialect builtin, StableHLO's and CHLO's. An attribute is a number that says which
   kind it is, and its parts, which are numbers of strings, types and other attributes of the file. Locations become the text
   "file.py":3:1 of the first line that they name, which is what messages show. */
#include <inttypes.h>
#include <string.h>

#include "hlo/bytecode.h"
#include "ir/dtype.h"
#include "ir/number.h"

/* --- By index --- */

ax_status ax_hlo_read_attribute(ax_hlo_bytecode *b, ax_hlo_bytes *from, const ax_hlo_attribute **out) {
  uint32_t index;
  AX_TRY(ax_hlo_read_below(b, from, b->attribute_count, "attribute", &index));
  return ax_hlo_attribute_at(b, index, out);
}

ax_status ax_hlo_read_optional(ax_hlo_bytecode *b, ax_hlo_bytes *from, const ax_hlo_attribute **out) {
  const unsigned char *at = from->next;
  uint64_t index;
  bool present;
  *out = NULL;
  AX_TRY(ax_hlo_read_flagged(b, from, &index, &present));
  if (!present) return AX_OK;
  if (index >= b->attribute_count)
    return ax_hlo_broken(b, at, "attribute %llu is asked for, and there are %u", (unsigned long long)index, b->attribute_count);
  return ax_hlo_attribute_at(b, (uint32_t)index, out);
}

/* --- Collections --- */

ax_status ax_hlo_read_array(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out) {
  ax_hlo_attribute *items;
  const ax_hlo_attribute *item;
  AX_TRY(ax_hlo_read_count(b, from, &out->count));
  AX_TRY(ax_hlo_make(b, out->count, sizeof items[0], &items));
  for (uint32_t i = 0; i < out->count; i++) {
    AX_TRY(ax_hlo_read_attribute(b, from, &item));
    items[i] = *item;
  }
  out->kind = AX_HLO_ARRAY;
  out->items = items;
  return AX_OK;
}

ax_status ax_hlo_read_dictionary(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out) {
  ax_hlo_attribute *items;
  const ax_hlo_attribute *name, *item;
  AX_TRY(ax_hlo_read_count(b, from, &out->count));
  AX_TRY(ax_hlo_make(b, out->count, sizeof items[0], &items));
  for (uint32_t i = 0; i < out->count; i++) {
    AX_TRY(ax_hlo_read_attribute(b, from, &name));
    AX_TRY(ax_hlo_read_attribute(b, from, &item));
    if (name->kind != AX_HLO_STRING) return ax_hlo_broken(b, from->next, "the name of an attribute must be a string");
    items[i] = *item;
    items[i].name = name->text;
  }
  out->kind = AX_HLO_DICTIONARY;
  out->items = items;
  return AX_OK;
}

static ax_status read_string(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out) {
  out->kind = AX_HLO_STRING;
  return ax_hlo_read_string(b, from, &out->text);
}
static ax_status read_typed_string(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out) {
  AX_TRY(read_string(b, from, out));
  return ax_hlo_read_type(b, from, &out->type);
}

static ax_status read_symbol(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out) {
  const ax_hlo_attribute *root;
  AX_TRY(ax_hlo_read_attribute(b, from, &root));
  out->kind = AX_HLO_SYMBOL;
  out->text = root->text;
  return AX_OK;
}
/* @a::@b, of which the last counts and the others are items. */
static ax_status read_nested_symbol(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out) {
  ax_hlo_attribute rest = {0};
  ax_hlo_attribute *outer;
  AX_TRY(read_symbol(b, from, out));
  AX_TRY(ax_hlo_read_array(b, from, &rest));
  AX_TRY(ax_hlo_make(b, rest.count, sizeof outer[0], &outer));
  for (uint32_t i = 0; i < rest.count; i++) {
    outer[i].kind = AX_HLO_SYMBOL, outer[i].text = out->text;
    out->text = rest.items[i].text;
  }
  out->items = outer, out->count = rest.count;
  return AX_OK;
}

static ax_status read_type(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out) {
  out->kind = AX_HLO_TYPE;
  return ax_hlo_read_type(b, from, &out->type);
}
static ax_status read_unit(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out) {
  (void)b, (void)from;
  out->kind = AX_HLO_UNIT;
  return AX_OK;
}

/* --- Numbers --- */

ax_status ax_hlo_read_integer_of(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out) {
  uint64_t number;
  AX_TRY(ax_hlo_read_type(b, from, &out->type));
  if (!out->type->element_known || ax_is_float(out->type->dtype) || ax_is_complex(out->type->dtype))
    return ax_hlo_broken(b, from->next, "integers of type %.*s are not read", (int)out->type->text.length, out->type->text.start);
  const uint32_t bits = ax_dtype_get(out->type->dtype)->bits;
  AX_TRY(ax_hlo_read_bits(b, from, bits, &number));
  out->kind = out->type->dtype == AX_BOOL ? AX_HLO_BOOL : AX_HLO_INTEGER;
  out->integer = (int64_t)number;
  if (ax_dtype_get(out->type->dtype)->kind == AX_KIND_SIGNED && bits < 64)
    out->integer = (int64_t)(number ^ (uint64_t)1 << (bits - 1)) - ((int64_t)1 << (bits - 1));
  if (out->kind == AX_HLO_BOOL) out->integer = number != 0, out->type = NULL;
  return AX_OK;
}

/* The decimal of a number; of what is none its bits. */
static ax_status write_float(ax_hlo_bytecode *b, ax_dtype dtype, uint64_t bits, ax_hlo_attribute *out) {
  ax_text text = {0};
  const double number = ax_number_load(dtype, &bits, 0).f;
  if (number - number != 0)
    ax_text_add(&text, "0x%0*" PRIX64, (int)(2 * ax_dtype_bytes(dtype)), bits);
  else
    ax_text_add(&text, dtype == AX_F64 ? "%.16e" : "%.8e", number);
  char *copy = text.failed ? NULL : ax_arena_copy(&b->scan.module->arena, text.data, text.length);
  out->kind = AX_HLO_FLOAT;
  out->text = (ax_hlo_slice){copy, text.length};
  ax_text_deinit(&text);
  return copy != NULL ? AX_OK : ax_out_of_memory(0);
}

ax_status ax_hlo_read_float_of(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out) {
  uint64_t bits;
  AX_TRY(ax_hlo_read_type(b, from, &out->type));
  if (!out->type->element_known || !ax_is_float(out->type->dtype))
    return ax_hlo_broken(b, from->next, "floats of type %.*s are not read", (int)out->type->text.length, out->type->text.start);
  AX_TRY(ax_hlo_read_bits(b, from, ax_dtype_get(out->type->dtype)->bits, &bits));
  return write_float(b, out->type->dtype, bits, out);
}

ax_status ax_hlo_read_elements_of(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out) {
  ax_hlo_bytes blob;
  AX_TRY(ax_hlo_read_type(b, from, &out->type));
  AX_TRY(ax_hlo_read_blob(b, from, &blob));
  ax_hlo_scan_text(b, out->type->text);
  return ax_hlo_elements_of(&b->scan, blob.next, ax_hlo_left(&blob), out);
}

static ax_status read_resource(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out) {
  uint32_t index;
  AX_TRY(ax_hlo_read_type(b, from, &out->type));
  AX_TRY(ax_hlo_read_below(b, from, b->resource_count, "resource", &index));
  const ax_hlo_bytes blob = b->resources[index].bytes;
  ax_hlo_scan_text(b, out->type->text);
  return ax_hlo_elements_of(&b->scan, blob.next, ax_hlo_left(&blob), out);
}

/* array<i64: ..>; of floats their bits. */
static ax_status read_numbers(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out) {
  uint64_t count;
  ax_hlo_bytes blob;
  int64_t *numbers;
  AX_TRY(ax_hlo_read_type(b, from, &out->type));
  AX_TRY(ax_hlo_read_number(b, from, &count));
  AX_TRY(ax_hlo_read_blob(b, from, &blob));
  const bool known = out->type->element_known && !ax_is_complex(out->type->dtype);
  const size_t bytes = known ? ax_dtype_bytes(out->type->dtype) : 0;
  if (!known || count > ax_hlo_left(&blob) || count * bytes != ax_hlo_left(&blob))
    return ax_hlo_broken(b, from->next, "an array of numbers has other bytes than its type says");
  AX_TRY(ax_hlo_make(b, count, sizeof numbers[0], &numbers));
  for (uint64_t i = 0; i < count; i++) {
    uint64_t element = 0;
    memcpy(&element, blob.next + i * bytes, bytes);
    numbers[i] = ax_is_float(out->type->dtype) ? (int64_t)element : ax_number_load(out->type->dtype, &element, 0).i;
  }
  out->kind = AX_HLO_NUMBERS;
  out->numbers = numbers;
  out->count = (uint32_t)count;
  return AX_OK;
}

/* --- Locations: `integer` is the line, 0 where there is none; `name` is that of a named one --- */

static ax_status set_location(ax_hlo_bytecode *b, ax_hlo_slice file, uint64_t line, ax_hlo_attribute *out) {
  ax_text text = {0};
  ax_text_add(&text, "\"");
  for (size_t i = 0; i < file.length; i++)
    if (file.start[i] != '"' && file.start[i] != '\n') ax_text_add_bytes(&text, &file.start[i], 1);
  ax_text_add(&text, "\":%" PRIu64, line);
  char *copy = text.failed ? NULL : ax_arena_copy(&b->scan.module->arena, text.data, text.length);
  *out = (ax_hlo_attribute){.kind = AX_HLO_OPAQUE, .text = {copy, text.length}, .integer = line <= INT32_MAX ? (int64_t)line : 0};
  ax_text_deinit(&text);
  return copy != NULL ? AX_OK : ax_out_of_memory(0);
}

static ax_status read_file_line(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out) {
  const ax_hlo_attribute *file;
  uint64_t line;
  AX_TRY(ax_hlo_read_attribute(b, from, &file));
  AX_TRY(ax_hlo_read_number(b, from, &line));
  return set_location(b, file->text, line, out);
}
/* A list of one to four numbers, of which the first is the line. */
static ax_status read_file_range(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out) {
  const ax_hlo_attribute *file;
  uint32_t count;
  uint64_t line = 0;
  AX_TRY(ax_hlo_read_attribute(b, from, &file));
  AX_TRY(ax_hlo_read_count(b, from, &count));
  if (count > 0) AX_TRY(ax_hlo_read_number(b, from, &line));
  return set_location(b, file->text, line, out);
}

static ax_status read_no_location(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out) {
  (void)b, (void)from;
  out->kind = AX_HLO_OPAQUE;
  return AX_OK;
}
/* The next one if none before it has a line. */
static ax_status read_inner_location(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out) {
  const ax_hlo_attribute *inner;
  AX_TRY(ax_hlo_read_attribute(b, from, &inner));
  if (out->kind != AX_HLO_OPAQUE || out->integer == 0) *out = *inner;
  out->name = (ax_hlo_slice){0};
  return AX_OK;
}
static ax_status read_call_site(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out) {
  AX_TRY(read_inner_location(b, from, out));
  return read_inner_location(b, from, out);
}
static ax_status read_fused(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out) {
  uint32_t count;
  out->kind = AX_HLO_OPAQUE;
  AX_TRY(ax_hlo_read_count(b, from, &count));
  for (uint32_t i = 0; i < count; i++) AX_TRY(read_inner_location(b, from, out));
  return AX_OK;
}
static ax_status read_named_location(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out) {
  const ax_hlo_attribute *name;
  AX_TRY(ax_hlo_read_attribute(b, from, &name));
  AX_TRY(read_inner_location(b, from, out));
  out->name = name->text;
  return AX_OK;
}

typedef ax_status reader(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out);
static reader *const builtin[] = {ax_hlo_read_array,
                                  ax_hlo_read_dictionary,
                                  read_string,
                                  read_typed_string,
                                  read_symbol,
                                  read_nested_symbol,
                                  read_type,
                                  read_unit,
                                  ax_hlo_read_integer_of,
                                  ax_hlo_read_float_of,
                                  read_call_site,
                                  read_file_line,
                                  read_fused,
                                  read_fused,
                                  read_named_location,
                                  read_no_location,
                                  read_resource,
                                  read_numbers,
                                  ax_hlo_read_elements_of,
                                  NULL /* strings */,
                                  NULL /* sparse */,
                                  NULL /* distinct */,
                                  read_file_range};

static ax_status read_builtin(ax_hlo_bytecode *b, ax_hlo_bytes *from, uint64_t code, ax_hlo_attribute *out) {
  if (code < AX_COUNT(builtin) && builtin[code] != NULL) return builtin[code](b, from, out);
  return ax_error(AX_ABSENT, "%s: byte %zu: attributes of code %llu of the dialect builtin are not read", b->scan.module->source,
                  (size_t)(from->next - b->start), (unsigned long long)code);
}

/* --- StableHLO's --- */

ax_status ax_hlo_read_word(ax_hlo_bytecode *b, ax_hlo_bytes *from, const ax_hlo_words *words, const char *dialect,
                           ax_hlo_attribute *out) {
  uint32_t number;
  ax_hlo_attribute *of;
  AX_TRY(ax_hlo_read_below(b, from, words->count, words->name, &number));
  AX_TRY(ax_hlo_make(b, 1, sizeof of[0], &of));
  if (words == &ax_hlo_accuracy_modes) dialect = "stablehlo.result_accuracy_mode"; /* an attribute by itself */
  else of->text = (ax_hlo_slice){words->name, strlen(words->name)};
  of->name = (ax_hlo_slice){dialect, strlen(dialect)};
  out->kind = AX_HLO_WORD;
  out->text = (ax_hlo_slice){words->words[number], strlen(words->words[number])};
  out->items = of, out->count = 1;
  return AX_OK;
}

static ax_status read_slot(ax_hlo_bytecode *b, ax_hlo_bytes *from, const ax_hlo_slot *slot, ax_hlo_attribute *out) {
  unsigned char truth;
  switch (slot->kind) {
    case AX_HLO_SLOT_INTEGERS:
      out->kind = AX_HLO_NUMBERS;
      return ax_hlo_read_integers(b, from, &out->numbers, &out->count);
    case AX_HLO_SLOT_TYPE:
      return read_type(b, from, out);
    case AX_HLO_SLOT_BOOL:
      out->kind = AX_HLO_BOOL;
      AX_TRY(ax_hlo_read_byte(b, from, &truth));
      out->integer = truth != 0;
      return AX_OK;
    default:
      out->kind = AX_HLO_INTEGER;
      return ax_hlo_read_signed(b, from, &out->integer);
  }
}

ax_status ax_hlo_read_group(ax_hlo_bytecode *b, ax_hlo_bytes *from, const ax_hlo_group *group, ax_hlo_attribute *out) {
  ax_hlo_attribute *items;
  AX_TRY(ax_hlo_make(b, group->count, sizeof items[0], &items));
  for (uint32_t i = 0; i < group->count; i++) {
    AX_TRY(read_slot(b, from, &group->slots[i], &items[i]));
    items[i].name = (ax_hlo_slice){group->slots[i].name, strlen(group->slots[i].name)};
  }
  out->kind = AX_HLO_DICTIONARY;
  out->text = (ax_hlo_slice){group->name, strlen(group->name)};
  out->items = items;
  out->count = group->count;
  return AX_OK;
}

/* atol, rtol, ulps and mode. */
ax_status ax_hlo_read_accuracy(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out) {
  static const char *const names[] = {"atol", "rtol", "ulps", "mode"};
  ax_hlo_attribute *items;
  const ax_hlo_attribute *mode;
  uint64_t bits;
  AX_TRY(ax_hlo_make(b, AX_COUNT(names), sizeof items[0], &items));
  for (size_t i = 0; i < 2; i++) {
    AX_TRY(ax_hlo_read_bits(b, from, 64, &bits));
    AX_TRY(write_float(b, AX_F64, bits, &items[i]));
  }
  items[2].kind = AX_HLO_INTEGER;
  AX_TRY(ax_hlo_read_signed(b, from, &items[2].integer));
  AX_TRY(ax_hlo_read_attribute(b, from, &mode));
  items[3] = *mode;
  for (size_t i = 0; i < AX_COUNT(names); i++) items[i].name = (ax_hlo_slice){names[i], strlen(names[i])};
  *out = (ax_hlo_attribute){.kind = AX_HLO_DICTIONARY, .items = items, .count = AX_COUNT(names)};
  out->text = (ax_hlo_slice){"stablehlo.result_accuracy", strlen("stablehlo.result_accuracy")};
  return AX_OK;
}

/* #stablehlo.bounds<?, 4> */
ax_status ax_hlo_read_bounds(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out) {
  const int64_t *bounds;
  uint32_t count;
  ax_text text = {0};
  AX_TRY(ax_hlo_read_integers(b, from, &bounds, &count));
  ax_text_add(&text, "#stablehlo.bounds<");
  for (uint32_t i = 0; i < count; i++) {
    ax_text_add(&text, i > 0 ? ", " : "");
    if (bounds[i] < 0)
      ax_text_add(&text, "?");
    else
      ax_text_add(&text, "%" PRId64, bounds[i]);
  }
  ax_text_add(&text, ">");
  char *copy = text.failed ? NULL : ax_arena_copy(&b->scan.module->arena, text.data, text.length);
  *out = (ax_hlo_attribute){.kind = AX_HLO_OPAQUE, .text = {copy, text.length}};
  ax_text_deinit(&text);
  return copy != NULL ? AX_OK : ax_out_of_memory(0);
}

enum { code_bounds = 13, code_accuracy = 17 };

static ax_status read_stablehlo(ax_hlo_bytecode *b, ax_hlo_bytes *from, uint64_t code, ax_hlo_attribute *out) {
  const ax_hlo_words *words = ax_hlo_find_words(false, code);
  const ax_hlo_group *group = ax_hlo_find_group(code);
  if (words != NULL) return ax_hlo_read_word(b, from, words, "stablehlo", out);
  if (group != NULL) return ax_hlo_read_group(b, from, group, out);
  if (code == code_bounds) return ax_hlo_read_bounds(b, from, out);
  if (code == code_accuracy) return ax_hlo_read_accuracy(b, from, out);
  bool known;
  AX_TRY(ax_hlo_read_mesh_attribute(b, from, false, code, &known, out));
  return known ? AX_OK : ax_hlo_broken(b, from->next, "StableHLO's attribute %llu is not known", (unsigned long long)code);
}

/* CHLO has the two enumerations of comparisons, as StableHLO has them, under other numbers. */
static ax_status read_chlo(ax_hlo_bytecode *b, ax_hlo_bytes *from, uint64_t code, ax_hlo_attribute *out) {
  const ax_hlo_words *words = code < 2 ? ax_hlo_find_words(false, code + 2) : NULL;
  if (words != NULL) return ax_hlo_read_word(b, from, words, "chlo", out);
  return ax_hlo_broken(b, from->next, "CHLO's attribute %llu is not known", (unsigned long long)code);
}

/* --- Any attribute --- */

static ax_status read_text(ax_hlo_bytecode *b, ax_hlo_bytes bytes, ax_hlo_attribute *out) {
  size_t length = ax_hlo_left(&bytes);
  if (length > 0 && bytes.next[length - 1] == '\0') length--;
  ax_hlo_scan_text(b, (ax_hlo_slice){(const char *)bytes.next, length});
  AX_TRY(ax_hlo_want_attribute(&b->scan, out));
  ax_hlo_skip(&b->scan);
  if (b->scan.cursor == b->scan.end) return AX_OK;
  return ax_hlo_refuse(&b->scan, b->scan.cursor, "an attribute, and more behind it");
}

static ax_status read_coded(ax_hlo_bytecode *b, const ax_hlo_coded *coded, ax_hlo_attribute *out) {
  const ax_hlo_named_dialect *dialect = &b->dialects[coded->dialect];
  ax_hlo_bytes bytes = coded->bytes;
  uint64_t code;
  if (!coded->custom) return read_text(b, bytes, out);
  if (dialect->which == AX_HLO_VHLO) return ax_hlo_read_vhlo_attribute(b, &bytes, out);
  if (dialect->which == AX_HLO_SDY) return ax_hlo_read_sdy_attribute(b, &bytes, out);
  AX_TRY(ax_hlo_read_number(b, &bytes, &code));
  if (dialect->which == AX_HLO_BUILTIN) return read_builtin(b, &bytes, code, out);
  if (dialect->which == AX_HLO_STABLEHLO) return read_stablehlo(b, &bytes, code, out);
  if (dialect->which == AX_HLO_CHLO) return read_chlo(b, &bytes, code, out);
  return ax_error(AX_ABSENT, "%s: attributes of the dialect %.*s, as bytecode encodes them, are not read", b->scan.module->source,
                  (int)dialect->name.length, dialect->name.start);
}

ax_status ax_hlo_attribute_at(ax_hlo_bytecode *b, uint32_t index, const ax_hlo_attribute **out) {
  ax_hlo_coded *coded = &b->attributes[index];
  ax_hlo_attribute *made;
  if (coded->made == NULL) {
    if (coded->in_progress) return ax_hlo_broken(b, coded->bytes.next, "an attribute is part of itself");
    coded->in_progress = true;
    AX_TRY(ax_hlo_make(b, 1, sizeof *made, &made));
    AX_TRY(ax_hlo_enter(&b->scan));
    AX_TRY(read_coded(b, coded, made));
    ax_hlo_leave(&b->scan);
    coded->made = made;
  }
  *out = coded->made;
  return AX_OK;
}
