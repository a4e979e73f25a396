/* Attributes and types in the bytecode of VHLO. Each is written once: the parts first, then itself, with the numbers of its parts. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/canonical.h"
#include "hlo/writer.h"
#include "ir/dtype.h"
#include "ir/number.h"

/* Codes of VHLO's attributes and types, and of builtin's. */
enum {
  vhlo_array = 1,
  vhlo_bool = 2,
  vhlo_dictionary = 6,
  vhlo_float = 8,
  vhlo_integer = 9,
  vhlo_alias = 10,
  vhlo_string = 14,
  vhlo_tensor = 15,
  vhlo_type = 17,
  vhlo_bounds = 18,
  vhlo_accuracy = 20
};
enum {
  type_complex = 1,
  type_function = 8,
  type_tensor = 20,
  type_encoded = 21,
  type_tuple = 23,
  type_quantized = 24,
  type_unranked = 25,
  type_quantized_by_axis = 30,
  type_future = 42
};
enum {
  builtin_dictionary = 1,
  builtin_string = 2,
  builtin_unit = 7,
  builtin_integer = 8,
  builtin_file_line = 11,
  builtin_no_place = 15
};
enum { type_integer = 0 };
enum { most_nested = 192 };

/* --- Numbers and pools --- */

void ax_hlo_add_number(ax_text *text, uint64_t number) {
  unsigned char bytes[9] = {0};
  uint32_t count = 1;
  while (count < 9 && number >> (7 * count) != 0) count++;
  const uint64_t value = count == 9 ? number : (number << 1 | 1) << (count - 1);
  for (uint32_t i = 0; i < 8; i++) bytes[i + (count == 9)] = (unsigned char)(value >> 8 * i);
  ax_text_add_bytes(text, (const char *)bytes, count);
}

void ax_hlo_add_signed(ax_text *text, int64_t number) {
  ax_hlo_add_number(text, (uint64_t)number << 1 ^ (number < 0 ? UINT64_MAX : 0));
}

/* An integer of so many bits as MLIR has it. */
static void add_bits(ax_text *bytes, uint32_t bits, uint64_t number) {
  const char byte = (char)number;
  if (bits <= 8)
    ax_text_add_bytes(bytes, &byte, 1);
  else
    ax_hlo_add_signed(bytes, bits < 64 ? (int64_t)(number & (((uint64_t)1 << bits) - 1)) : (int64_t)number);
}

static void add_double(ax_text *bytes, double number) {
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  add_bits(bytes, 64, bits);
}

void ax_hlo_pool_deinit(ax_hlo_pool *pool) {
  ax_free(pool->items);
  ax_table_deinit(&pool->table);
}

static bool item_is(const void *items, uint32_t number, const void *key) {
  const ax_hlo_interned *item = (const ax_hlo_interned *)items + number, *wanted = key;
  return item->dialect == wanted->dialect && ax_hlo_slice_same(item->bytes, wanted->bytes);
}

static uint32_t *slot_of(const ax_hlo_pool *pool, const ax_hlo_interned *item) {
  const uint64_t hash = ax_hash_bytes(ax_hash_word(AX_HASH_SEED, item->dialect), item->bytes.start, item->bytes.length);
  return ax_table_slot(&pool->table, hash, item_is, pool->items, item);
}

static ax_status intern(ax_hlo_writer *w, ax_hlo_pool *pool, uint32_t dialect, ax_hlo_slice bytes, uint32_t *out) {
  bool emptied;
  AX_TRY(ax_table_room(&pool->table, pool->count, &emptied));
  for (uint32_t i = 0; emptied && i < pool->count; i++) *slot_of(pool, &pool->items[i]) = i + 1;
  AX_TRY(ax_grow(&pool->items, sizeof pool->items[0], pool->count, 1, &pool->capacity));
  uint32_t *slot = slot_of(pool, &(ax_hlo_interned){bytes, dialect});
  if (*slot == 0) {
    char *copy = ax_arena_alloc(&w->arena, bytes.length + 1);
    if (copy == NULL) return ax_out_of_memory(bytes.length);
    if (bytes.length > 0) memcpy(copy, bytes.start, bytes.length);
    pool->items[pool->count] = (ax_hlo_interned){{copy, bytes.length}, dialect};
    *slot = ++pool->count;
  }
  *out = *slot - 1;
  return AX_OK;
}

ax_status ax_hlo_intern(ax_hlo_writer *w, ax_hlo_pool *pool, uint32_t dialect, ax_text *bytes, uint32_t *out) {
  const ax_hlo_slice slice = {bytes->data != NULL ? bytes->data : "", bytes->length};
  const ax_status status = bytes->failed ? ax_out_of_memory(bytes->length) : intern(w, pool, dialect, slice, out);
  ax_text_deinit(bytes);
  *bytes = (ax_text){0};
  return status;
}

ax_status ax_hlo_intern_string(ax_hlo_writer *w, ax_hlo_slice string, uint32_t *out) {
  return intern(w, &w->strings, 0, string, out);
}

static ax_status attribute_of(ax_hlo_writer *w, ax_text *bytes, uint32_t *out) {
  return ax_hlo_intern(w, &w->attributes, AX_HLO_WRITES_VHLO, bytes, out);
}

/* --- Types --- */

static ax_status absent_type(const ax_hlo_writer *w, ax_hlo_slice text) {
  return ax_error(AX_ABSENT, "the type %.*s cannot be written as VHLO %u.%u",
                  (int)(text.length < 200 ? text.length : 200), text.start, w->version >> 16, w->version & 0xffff);
}

ax_status ax_hlo_write_simple(ax_hlo_writer *w, ax_hlo_slice name, uint32_t *out) {
  const uint32_t code = ax_hlo_simple_code(name);
  ax_text bytes = {0};
  if (code == AX_NONE || ax_hlo_simple_type_of(code)->since > w->version) return absent_type(w, name);
  ax_hlo_add_number(&bytes, code);
  return ax_hlo_intern(w, &w->types, AX_HLO_WRITES_VHLO, &bytes, out);
}

/* The elements' type, as the tensor's text has it behind the dimensions. */
static ax_hlo_slice element_text(const ax_hlo_value_type *type) {
  const char *p = type->text.start, *end = p + type->text.length;
  uint32_t skip = type->ranked ? type->rank : 1, depth = 0;
  while (p < end && *p != '<') p++;
  if (p < end) p++;
  for (; skip > 0 && p < end; p++) skip -= *p == 'x';
  while (p < end && *p == ' ') p++;
  const char *start = p;
  for (; p < end && (depth > 0 || (*p != ',' && *p != '>')); p++) depth += *p == '<', depth -= *p == '>';
  return (ax_hlo_slice){start, (size_t)(p - start)};
}

static ax_status write_element(ax_hlo_writer *w, ax_hlo_slice element, uint32_t *out) {
  static const char complex[] = "complex<";
  ax_text bytes = {0};
  uint32_t part;
  if (element.length < sizeof complex || memcmp(element.start, complex, sizeof complex - 1) != 0)
    return ax_hlo_write_simple(w, element, out);
  AX_TRY(ax_hlo_write_simple(w, (ax_hlo_slice){element.start + sizeof complex - 1, element.length - sizeof complex}, &part));
  ax_hlo_add_number(&bytes, type_complex);
  ax_hlo_add_number(&bytes, part);
  return ax_hlo_intern(w, &w->types, AX_HLO_WRITES_VHLO, &bytes, out);
}

/* #stablehlo.bounds<?, 4> */
static ax_status write_bounds(ax_hlo_writer *w, const ax_hlo_value_type *type, uint32_t *out) {
  ax_text bytes = {0};
  if (type->bounds == NULL) return absent_type(w, type->text);
  ax_hlo_add_number(&bytes, vhlo_bounds);
  ax_hlo_add_number(&bytes, type->bound_count);
  for (uint32_t d = 0; d < type->bound_count; d++)
    ax_hlo_add_signed(&bytes, type->bounds[d] == AX_HLO_DYNAMIC ? INT64_MIN : type->bounds[d]);
  return attribute_of(w, &bytes, out);
}

/* !quant.uniform<i8:f32, 0.5:3>: what is stored has no sign in its type, and a flag says it. */
static ax_status write_quantized(ax_hlo_writer *w, const ax_hlo_value_type *type, uint32_t *out) {
  const ax_hlo_quantized *q = type->quantized;
  const ax_dtype_info *stored = ax_dtype_get(q->storage);
  const bool by_axis = q->axis >= 0;
  ax_text bytes = {0};
  char name[8];
  uint32_t storage, expressed;
  if (by_axis && w->version < AX_HLO_VERSION(0, 18)) return absent_type(w, type->text);
  (void)snprintf(name, sizeof name, "i%u", stored->bits);
  AX_TRY(ax_hlo_write_simple(w, (ax_hlo_slice){name, strlen(name)}, &storage));
  const char *of = ax_dtype_get(q->expressed)->hlo;
  AX_TRY(ax_hlo_write_simple(w, (ax_hlo_slice){of, strlen(of)}, &expressed));
  ax_hlo_add_number(&bytes, by_axis ? type_quantized_by_axis : type_quantized);
  ax_hlo_add_number(&bytes, stored->kind == AX_KIND_SIGNED);
  ax_hlo_add_number(&bytes, storage);
  ax_hlo_add_number(&bytes, expressed);
  if (by_axis) ax_hlo_add_number(&bytes, (uint64_t)q->axis);
  if (!by_axis) add_double(&bytes, q->scales[0]);
  if (!by_axis) ax_hlo_add_signed(&bytes, q->zeros[0]);
  ax_hlo_add_signed(&bytes, q->least);
  ax_hlo_add_signed(&bytes, q->greatest);
  if (by_axis) ax_hlo_add_number(&bytes, q->count);
  for (uint32_t i = 0; by_axis && i < q->count; i++) add_double(&bytes, q->scales[i]);
  if (by_axis) ax_hlo_add_number(&bytes, q->count);
  for (uint32_t i = 0; by_axis && i < q->count; i++) ax_hlo_add_signed(&bytes, q->zeros[i]);
  return ax_hlo_intern(w, &w->types, AX_HLO_WRITES_VHLO, &bytes, out);
}

static ax_status write_tensor(ax_hlo_writer *w, const ax_hlo_value_type *type, uint32_t *out) {
  ax_text bytes = {0};
  uint32_t element, bounds = 0;
  AX_TRY(type->quantized != NULL ? write_quantized(w, type, &element) : write_element(w, element_text(type), &element));
  if (type->encoding != NULL) AX_TRY(write_bounds(w, type, &bounds));
  ax_hlo_add_number(&bytes, !type->ranked ? type_unranked : type->encoding != NULL ? type_encoded : type_tensor);
  if (type->encoding != NULL) ax_hlo_add_number(&bytes, bounds);
  if (type->ranked) ax_hlo_add_number(&bytes, type->rank);
  for (uint32_t d = 0; type->ranked && d < type->rank; d++)
    ax_hlo_add_signed(&bytes, type->dims[d] == AX_HLO_DYNAMIC ? INT64_MIN : type->dims[d]);
  ax_hlo_add_number(&bytes, element);
  return ax_hlo_intern(w, &w->types, AX_HLO_WRITES_VHLO, &bytes, out);
}

static ax_status add_types(ax_hlo_writer *w, const ax_hlo_value_type *const *types, uint32_t count, ax_text *bytes) {
  uint32_t part;
  ax_hlo_add_number(bytes, count);
  for (uint32_t i = 0; i < count; i++) {
    AX_TRY(ax_hlo_write_type(w, types[i], &part));
    ax_hlo_add_number(bytes, part);
  }
  return AX_OK;
}

static ax_status write_parts(ax_hlo_writer *w, const ax_hlo_value_type *type, uint32_t *out) {
  ax_text bytes = {0};
  ax_hlo_add_number(&bytes, type->kind == AX_HLO_FUNCTION ? type_function : type->kind == AX_HLO_TUPLE ? type_tuple : type_future);
  const uint32_t in = type->kind == AX_HLO_FUNCTION ? type->in_count : type->part_count;
  ax_status status = add_types(w, type->parts, in, &bytes);
  if (status == AX_OK && type->kind == AX_HLO_FUNCTION) status = add_types(w, type->part_count > in ? &type->parts[in] : NULL, type->part_count - in, &bytes);
  if (status == AX_OK) return ax_hlo_intern(w, &w->types, AX_HLO_WRITES_VHLO, &bytes, out);
  ax_text_deinit(&bytes);
  return status;
}

ax_status ax_hlo_write_type(ax_hlo_writer *w, const ax_hlo_value_type *type, uint32_t *out) {
  if (w->attributes_left-- == 0) return ax_error(AX_ABSENT, "types share their parts too often");
  if (type->kind == AX_HLO_TENSOR) return write_tensor(w, type, out);
  if (type->kind == AX_HLO_FUTURE_TYPE && w->version < AX_HLO_VERSION(1, 15)) return absent_type(w, type->text);
  if (type->kind == AX_HLO_FUNCTION || type->kind == AX_HLO_TUPLE || type->kind == AX_HLO_FUTURE_TYPE)
    return write_parts(w, type, out);
  return ax_hlo_write_simple(w, type->text, out);
}

/* --- Attributes of VHLO --- */

static ax_status write_coded(ax_hlo_writer *w, uint32_t code, uint64_t number, uint32_t *out) {
  ax_text bytes = {0};
  ax_hlo_add_number(&bytes, code);
  ax_hlo_add_number(&bytes, number);
  return attribute_of(w, &bytes, out);
}

static ax_status write_string(ax_hlo_writer *w, ax_hlo_slice string, uint32_t *out) {
  uint32_t index;
  AX_TRY(ax_hlo_intern_string(w, string, &index));
  return write_coded(w, vhlo_string, index, out);
}

static ax_status write_number(ax_hlo_writer *w, int64_t number, ax_hlo_slice type, uint32_t bits, uint32_t *out) {
  ax_text bytes = {0};
  uint32_t index;
  AX_TRY(ax_hlo_write_simple(w, type, &index));
  ax_hlo_add_number(&bytes, vhlo_integer);
  ax_hlo_add_number(&bytes, index);
  add_bits(&bytes, bits, (uint64_t)number);
  return attribute_of(w, &bytes, out);
}

ax_status ax_hlo_write_integer(ax_hlo_writer *w, int64_t number, const char *type, uint32_t *out) {
  return write_number(w, number, (ax_hlo_slice){type, strlen(type)}, strcmp(type, "i32") == 0 ? 32 : 64, out);
}

/* Of a number as f64; NULL: 0. */
static uint64_t bits_of(const ax_hlo_attribute *a) {
  ax_dtype dtype;
  ax_element number;
  uint64_t bits = 0;
  if (a != NULL && ax_hlo_number(a, &dtype, &number))
    ax_number_store(AX_F64, &bits, 0, ax_number_convert(dtype, AX_F64, ax_number_load(dtype, &number, 0)));
  return bits;
}

static ax_status write_float(ax_hlo_writer *w, const ax_hlo_attribute *a, uint32_t *out) {
  ax_text bytes = {0};
  ax_dtype dtype;
  ax_element number;
  uint32_t type;
  if (!ax_hlo_number(a, &dtype, &number))
    return ax_error(AX_ABSENT, "%.*s is no float that Axle has", (int)(a->text.length < 100 ? a->text.length : 100), a->text.start);
  AX_TRY(ax_hlo_write_simple(w, a->type != NULL ? a->type->text : (ax_hlo_slice){"f64", 3}, &type));
  ax_hlo_add_number(&bytes, vhlo_float);
  ax_hlo_add_number(&bytes, type);
  add_bits(&bytes, ax_dtype_get(dtype)->bits, number.bits[0]);
  return attribute_of(w, &bytes, out);
}

ax_status ax_hlo_write_word(ax_hlo_writer *w, const ax_hlo_words *words, ax_hlo_slice word, uint32_t *out) {
  for (uint32_t i = 0; i < words->count; i++)
    if (ax_hlo_slice_is(word, words->words[i])) return write_coded(w, words->vhlo, i, out);
  return ax_error(AX_INVALID_ARGUMENT, "there is no %s %.*s", words->name, (int)word.length, word.start);
}

ax_status ax_hlo_write_array(ax_hlo_writer *w, const uint32_t *items, uint32_t count, uint32_t *out) {
  ax_text bytes = {0};
  ax_hlo_add_number(&bytes, vhlo_array);
  ax_hlo_add_number(&bytes, count);
  for (uint32_t i = 0; i < count; i++) ax_hlo_add_number(&bytes, items[i]);
  return attribute_of(w, &bytes, out);
}

/* --- Constants --- */

static void add_truths(ax_text *data, const unsigned char *truths, int64_t count, bool splat) {
  for (int64_t i = 0; i < (splat ? 1 : count); i += 8) {
    unsigned char byte = splat && truths[0] != 0 ? 0xff : 0;
    for (int64_t k = i; !splat && k < count && k < i + 8; k++) byte |= (unsigned char)((truths[k] != 0) << (k - i));
    ax_text_add_bytes(data, (const char *)&byte, 1);
  }
}

/* Integers of less than a byte have the bits of their sign above them. */
static void add_short(ax_text *data, ax_dtype dtype, const unsigned char *elements, int64_t count) {
  const ax_dtype_info *info = ax_dtype_get(dtype);
  for (int64_t i = 0; i < count; i++) {
    const bool negative = info->kind == AX_KIND_SIGNED && (elements[i] >> (info->bits - 1) & 1) != 0;
    const char byte = (char)(negative ? elements[i] | (0xff << info->bits) : elements[i]);
    ax_text_add_bytes(data, &byte, 1);
  }
}

static ax_status write_tensor_of(ax_hlo_writer *w, uint32_t type, ax_text *data, uint32_t *out) {
  ax_text bytes = {0};
  ax_hlo_add_number(&bytes, vhlo_tensor);
  ax_hlo_add_number(&bytes, type);
  ax_hlo_add_number(&bytes, data->length);
  ax_text_add_bytes(&bytes, data->data != NULL ? data->data : "", data->length);
  bytes.failed = bytes.failed || data->failed;
  ax_text_deinit(data);
  return attribute_of(w, &bytes, out);
}

static ax_status write_elements(ax_hlo_writer *w, const ax_hlo_attribute *a, uint32_t *out) {
  const int64_t count = ax_hlo_element_count(a->type);
  const bool splat = count > 0 && ax_hlo_is_splat(a);
  ax_text data = {0};
  uint32_t type;
  AX_TRY(ax_hlo_write_type(w, a->type, &type));
  if (count > 0 && a->type->dtype == AX_BOOL)
    add_truths(&data, a->data, count, splat);
  else if (count > 0 && ax_dtype_get(a->type->dtype)->bits < 8)
    add_short(&data, a->type->dtype, a->data, splat ? 1 : count);
  else if (count > 0)
    ax_text_add_bytes(&data, a->data, (splat ? 1 : (size_t)count) * ax_dtype_bytes(a->type->dtype));
  return write_tensor_of(w, type, &data, out);
}

ax_status ax_hlo_write_numbers(ax_hlo_writer *w, const int64_t *numbers, int64_t count, int64_t columns, bool truths,
                               uint32_t *out) {
  const int64_t all = columns > 0 ? count * columns : count;
  ax_text data = {0}, bytes = {0};
  uint32_t element, type;
  AX_TRY(ax_hlo_write_simple(w, truths ? (ax_hlo_slice){"i1", 2} : (ax_hlo_slice){"i64", 3}, &element));
  ax_hlo_add_number(&bytes, type_tensor);
  ax_hlo_add_number(&bytes, columns > 0 ? 2 : 1);
  ax_hlo_add_signed(&bytes, count);
  if (columns > 0) ax_hlo_add_signed(&bytes, columns);
  ax_hlo_add_number(&bytes, element);
  AX_TRY(ax_hlo_intern(w, &w->types, AX_HLO_WRITES_VHLO, &bytes, &type));
  bool splat = all > 1;
  for (int64_t i = 1; i < all; i++) splat = splat && numbers[i] == numbers[0];
  if (!truths) ax_text_add_bytes(&data, (const char *)numbers, (splat ? 1 : (size_t)all) * sizeof numbers[0]);
  for (int64_t i = 0; truths && i < (splat ? 1 : all); i += 8) {
    unsigned char byte = splat && numbers[0] != 0 ? 0xff : 0;
    for (int64_t k = i; !splat && k < all && k < i + 8; k++) byte |= (unsigned char)((numbers[k] != 0) << (k - i));
    ax_text_add_bytes(&data, (const char *)&byte, 1);
  }
  return write_tensor_of(w, type, &data, out);
}

/* --- Attributes with parts --- */

static ax_status write_parts_of(ax_hlo_writer *w, const ax_hlo_attribute *a, uint32_t *out) {
  const bool named = a->kind == AX_HLO_DICTIONARY;
  ax_text bytes = {0};
  ax_status status = AX_OK;
  ax_hlo_add_number(&bytes, named ? vhlo_dictionary : vhlo_array);
  ax_hlo_add_number(&bytes, a->count);
  for (uint32_t i = 0; i < a->count && status == AX_OK; i++) {
    uint32_t name = 0, value = 0;
    if (named) status = write_string(w, a->items[i].name, &name);
    if (named) ax_hlo_add_number(&bytes, name);
    if (status == AX_OK) status = ax_hlo_write_attribute(w, &a->items[i], &value);
    ax_hlo_add_number(&bytes, value);
  }
  if (status == AX_OK) return attribute_of(w, &bytes, out);
  ax_text_deinit(&bytes);
  return status;
}

static void add_list(ax_text *bytes, const ax_hlo_attribute *list) {
  const bool array = list != NULL && list->kind == AX_HLO_ARRAY;
  const uint32_t count = array || (list != NULL && list->kind == AX_HLO_NUMBERS) ? list->count : 0;
  ax_hlo_add_number(bytes, count);
  for (uint32_t i = 0; i < count; i++) ax_hlo_add_signed(bytes, array ? list->items[i].integer : list->numbers[i]);
}

static ax_status write_alias(ax_hlo_writer *w, const ax_hlo_attribute *a, uint32_t *out) {
  const ax_hlo_attribute *operand = ax_hlo_item(a, "operand_index");
  ax_text bytes = {0};
  ax_hlo_add_number(&bytes, vhlo_alias);
  add_list(&bytes, ax_hlo_item(a, "output_tuple_indices"));
  ax_hlo_add_signed(&bytes, operand != NULL ? operand->integer : 0);
  add_list(&bytes, ax_hlo_item(a, "operand_tuple_indices"));
  return attribute_of(w, &bytes, out);
}

ax_status ax_hlo_write_accuracy(ax_hlo_writer *w, const ax_hlo_attribute *a, uint32_t *out) {
  const ax_hlo_attribute *parts[] = {a != NULL ? ax_hlo_item(a, "atol") : NULL, a != NULL ? ax_hlo_item(a, "rtol") : NULL};
  const ax_hlo_attribute *ulps = a != NULL ? ax_hlo_item(a, "ulps") : NULL, *mode = a != NULL ? ax_hlo_item(a, "mode") : NULL;
  const ax_hlo_slice word = {ax_hlo_accuracy_modes.words[0], strlen(ax_hlo_accuracy_modes.words[0])};
  ax_text bytes = {0};
  uint32_t index;
  AX_TRY(ax_hlo_write_word(w, &ax_hlo_accuracy_modes, mode != NULL ? mode->text : word, &index));
  ax_hlo_add_number(&bytes, vhlo_accuracy);
  for (size_t i = 0; i < AX_COUNT(parts); i++) add_bits(&bytes, 64, bits_of(parts[i]));
  ax_hlo_add_signed(&bytes, ulps != NULL ? ulps->integer : 0);
  ax_hlo_add_number(&bytes, index);
  return attribute_of(w, &bytes, out);
}

static ax_status write_integer_of(ax_hlo_writer *w, const ax_hlo_attribute *a, uint32_t *out) {
  const bool known = a->type != NULL && a->type->element_known;
  if (!known) return ax_hlo_write_integer(w, a->integer, "i64", out);
  return write_number(w, a->integer, a->type->text, ax_dtype_get(a->type->dtype)->bits, out);
}

/* @a::@b: VHLO's symbols are strings, of one name each. */
static ax_status write_nested_symbol(ax_hlo_writer *w, const ax_hlo_attribute *a, uint32_t *out) {
  if (w->mixed) return ax_hlo_write_as_text(w, a, out);
  const ax_hlo_slice outer = a->items[a->count - 1].text;
  return ax_error(AX_ABSENT, "VHLO has no symbols inside of others, as @%.*s::@%.*s", (int)(outer.length < 100 ? outer.length : 100),
                  outer.start, (int)(a->text.length < 100 ? a->text.length : 100), a->text.start);
}

static bool is_of_sdy(const ax_hlo_attribute *a) {
  static const char start[] = "#sdy";
  return a->kind == AX_HLO_OPAQUE && a->text.length > sizeof start && memcmp(a->text.start, start, sizeof start - 1) == 0;
}

static ax_status write_any(ax_hlo_writer *w, const ax_hlo_attribute *a, uint32_t *out) {
  uint32_t type;
  switch (a->kind) {
    case AX_HLO_BOOL:
      return write_coded(w, vhlo_bool, a->integer != 0, out);
    case AX_HLO_INTEGER:
      return write_integer_of(w, a, out);
    case AX_HLO_FLOAT:
      return write_float(w, a, out);
    case AX_HLO_STRING:
    case AX_HLO_SYMBOL:
      return a->count == 0 ? write_string(w, a->text, out) : write_nested_symbol(w, a, out);
    case AX_HLO_TYPE:
      AX_TRY(ax_hlo_write_type(w, a->type, &type));
      return write_coded(w, vhlo_type, type, out);
    case AX_HLO_ARRAY:
      return write_parts_of(w, a, out);
    case AX_HLO_DICTIONARY:
      if (ax_hlo_slice_is(a->text, "stablehlo.output_operand_alias")) return write_alias(w, a, out);
      if (a->text.length == 0) return write_parts_of(w, a, out);
      break;
    case AX_HLO_NUMBERS:
      if (a->type != NULL && a->type->dtype != AX_S64 && a->type->dtype != AX_BOOL) break; /* as StableHLO's own writer */
      return ax_hlo_write_numbers(w, a->numbers, a->count, 0, a->type != NULL && a->type->dtype == AX_BOOL, out);
    case AX_HLO_ELEMENTS:
      return write_elements(w, a, out);
    default:
      break;
  }
  if (w->mixed && is_of_sdy(a)) return ax_hlo_write_as_text(w, a, out);
  const ax_hlo_slice text = a->text.length > 0 ? a->text : a->name;
  return ax_error(AX_ABSENT, "VHLO has no attribute for %.*s", (int)(text.length < 100 ? text.length : 100),
                  text.start);
}

ax_status ax_hlo_write_attribute(ax_hlo_writer *w, const ax_hlo_attribute *attribute, uint32_t *out) {
  if (w->nested == most_nested || w->attributes_left == 0)
    return ax_error(AX_ABSENT, "attributes are nested too deeply, or share their parts too often");
  w->nested++, w->attributes_left--;
  const ax_status status = write_any(w, attribute, out);
  w->nested--;
  return status;
}

/* --- Attributes of builtin --- */

static ax_status builtin_of(ax_hlo_writer *w, ax_text *bytes, uint32_t *out) {
  return ax_hlo_intern(w, &w->attributes, AX_HLO_WRITES_BUILTIN, bytes, out);
}

static ax_status write_builtin_string(ax_hlo_writer *w, ax_hlo_slice string, uint32_t *out) {
  ax_text bytes = {0};
  uint32_t index;
  AX_TRY(ax_hlo_intern_string(w, string, &index));
  ax_hlo_add_number(&bytes, builtin_string);
  ax_hlo_add_number(&bytes, index);
  return builtin_of(w, &bytes, out);
}

static ax_status write_builtin_type(ax_hlo_writer *w, uint32_t bits, uint32_t *out) {
  ax_text bytes = {0};
  ax_hlo_add_number(&bytes, type_integer);
  ax_hlo_add_number(&bytes, (uint64_t)bits << 2);
  return ax_hlo_intern(w, &w->types, AX_HLO_WRITES_BUILTIN, &bytes, out);
}

static ax_status write_builtin_integer(ax_hlo_writer *w, const ax_hlo_attribute *a, uint32_t *out) {
  const uint32_t bits = a->kind == AX_HLO_BOOL                      ? 1
                        : a->type != NULL && a->type->element_known ? ax_dtype_get(a->type->dtype)->bits
                                                                    : 64;
  ax_text bytes = {0};
  uint32_t type;
  AX_TRY(write_builtin_type(w, bits, &type));
  ax_hlo_add_number(&bytes, builtin_integer);
  ax_hlo_add_number(&bytes, type);
  add_bits(&bytes, bits, (uint64_t)a->integer);
  return builtin_of(w, &bytes, out);
}

ax_status ax_hlo_write_dictionary(ax_hlo_writer *w, const ax_hlo_entry_index *entries, uint32_t count, uint32_t *out) {
  ax_text bytes = {0};
  ax_status status = AX_OK;
  ax_hlo_add_number(&bytes, builtin_dictionary);
  ax_hlo_add_number(&bytes, count);
  for (uint32_t i = 0; i < count && status == AX_OK; i++) {
    uint32_t name = 0;
    status = write_builtin_string(w, entries[i].name, &name);
    ax_hlo_add_number(&bytes, name);
    ax_hlo_add_number(&bytes, entries[i].value);
  }
  if (status == AX_OK) return builtin_of(w, &bytes, out);
  ax_text_deinit(&bytes);
  return status;
}

ax_status ax_hlo_write_builtin(ax_hlo_writer *w, const ax_hlo_attribute *a, uint32_t *out) {
  ax_text bytes = {0};
  if (a->kind == AX_HLO_STRING) return write_builtin_string(w, a->text, out);
  if (a->kind == AX_HLO_INTEGER || a->kind == AX_HLO_BOOL) return write_builtin_integer(w, a, out);
  if (a->kind == AX_HLO_UNIT) {
    ax_hlo_add_number(&bytes, builtin_unit);
    return builtin_of(w, &bytes, out);
  }
  return ax_hlo_write_as_text(w, a, out);
}

ax_status ax_hlo_write_place(ax_hlo_writer *w, const ax_hlo_place *place, uint32_t *out) {
  ax_text bytes = {0};
  ax_hlo_slice file;
  int64_t line;
  uint32_t name;
  if (!ax_hlo_place_line(w->module, place, &file, &line)) {
    ax_hlo_add_number(&bytes, builtin_no_place);
    return builtin_of(w, &bytes, out);
  }
  AX_TRY(write_builtin_string(w, file, &name));
  ax_hlo_add_number(&bytes, builtin_file_line);
  ax_hlo_add_number(&bytes, name);
  ax_hlo_add_number(&bytes, (uint64_t)line);
  ax_hlo_add_number(&bytes, 0);
  return builtin_of(w, &bytes, out);
}
