/* Elements of constants: dense<..> with numbers in nested lists, one number for all, or all bytes in hexadecimal;
   dense_resource<..> with bytes at the end of the text. Data is kept as Axle's arrays have it. The type stands behind the
   elements, so their text is passed first and read when the type is known. */
#include <stdlib.h>
#include <string.h>

#include "base/shared.h"
#include "hlo/reader.h"
#include "ir/number.h"

enum { most_digits = 400 }; /* of one number's text */

typedef struct elements {
  ax_dtype dtype;
  size_t bytes; /* of an element */
  uint32_t rank;
  const int64_t *dims;
  int64_t count, next; /* elements; those that are read */
  char *data;
  struct ax_shared *owner; /* of the data */
} elements;

/* --- One number --- */

static bool is_hex(const char *word) { return word[word[0] == '-'] == '0' && word[1 + (word[0] == '-')] == 'x'; }

/* An integer, read as 64 bits, is one of the dtype. Texts write those of unsigned dtypes with or without a sign. */
static bool holds(ax_dtype dtype, int64_t i) {
  const uint32_t bits = ax_dtype_get(dtype)->bits;
  if (dtype == AX_BOOL) return i >= -1 && i <= 1;
  if (bits >= 64) return true;
  return i >= -((int64_t)1 << (bits - 1)) && i < (int64_t)1 << (ax_dtype_get(dtype)->kind == AX_KIND_SIGNED ? bits - 1 : bits);
}

/* true, -5, 1.5e+00, 0x7FC00000; floats that are not numbers have the bits of theirs. */
static ax_status store_real(ax_hlo_scan *r, ax_dtype dtype, const char *at, size_t length, void *out, int64_t index) {
  char word[most_digits + 1], *end = word;
  ax_number number = {0};
  if (length == 0) return ax_hlo_expected(r, "a number");
  if (length > most_digits) return ax_hlo_refuse(r, at, "the number has more than %d digits", most_digits);
  memcpy(word, at, length);
  word[length] = '\0';
  const bool of_float = ax_is_float(dtype), truth = strcmp(word, "true") == 0;
  if (truth || strcmp(word, "false") == 0) {
    number = of_float ? (ax_number){.f = truth} : (ax_number){.i = truth};
  } else if (of_float && !is_hex(word)) {
    number = ax_number_decimal(dtype, word, &end);
    if (*end != '\0' || end == word) return ax_hlo_refuse(r, at, "'%s' is no number", word);
  } else {
    r->cursor = at;
    AX_TRY(ax_hlo_want_integer(r, &number.i));
    if (r->cursor != at + length) return ax_hlo_refuse(r, at, "'%s' is no integer", word);
    if (!of_float && !holds(dtype, number.i)) return ax_hlo_refuse(r, at, "%s does not have %s", ax_dtype_name(dtype), word);
    const size_t bytes = ax_dtype_bytes(dtype);
    if (of_float && ax_dtype_get(dtype)->bits < 64 && (uint64_t)number.i >> ax_dtype_get(dtype)->bits != 0)
      return ax_hlo_refuse(r, at, "%s has %u bits, and %s more", ax_dtype_name(dtype), ax_dtype_get(dtype)->bits, word);
    if (of_float) {
      memcpy((char *)out + (size_t)index * bytes, &number.i, bytes);
      return AX_OK;
    }
  }
  ax_number_store(dtype, out, index, number);
  return AX_OK;
}

static size_t word_length(const ax_hlo_scan *r) {
  static const bool ends[256] = {[' '] = true, ['\t'] = true, ['\r'] = true, ['\n'] = true, [','] = true, ['('] = true, [')'] = true,
                                 ['['] = true, [']'] = true,  ['<'] = true,  ['>'] = true,  [':'] = true, ['\0'] = true};
  const char *p = r->cursor;
  while (p < r->end && !ends[(unsigned char)*p]) p++;
  return (size_t)(p - r->cursor);
}

static ax_status read_real(ax_hlo_scan *r, ax_dtype dtype, void *out, int64_t index) {
  ax_hlo_skip(r);
  const char *at = r->cursor;
  const size_t length = word_length(r);
  AX_TRY(store_real(r, dtype, at, length, out, index));
  r->cursor = at + length;
  return AX_OK;
}

static ax_status read_element(ax_hlo_scan *r, ax_dtype dtype, void *out, int64_t index) {
  const ax_dtype part = ax_part_dtype(dtype);
  if (!ax_is_complex(dtype)) return read_real(r, dtype, out, index);
  AX_TRY(ax_hlo_want(r, "("));
  AX_TRY(read_real(r, part, out, 2 * index));
  AX_TRY(ax_hlo_want(r, ","));
  AX_TRY(read_real(r, part, out, 2 * index + 1));
  return ax_hlo_want(r, ")");
}

/* --- Lists --- */

static ax_status read_list(ax_hlo_scan *r, elements *e, uint32_t dim) {
  const char *at = r->cursor;
  if (dim == e->rank) return read_element(r, e->dtype, e->data, e->next++);
  AX_TRY(ax_hlo_want(r, "["));
  int64_t i = 0;
  for (; i < e->dims[dim] && !ax_hlo_sees(r, "]"); i++) {
    if (i > 0) AX_TRY(ax_hlo_want(r, ","));
    AX_TRY(read_list(r, e, dim + 1));
  }
  if (i == e->dims[dim] && ax_hlo_take(r, "]")) return AX_OK;
  return ax_hlo_refuse(r, at, "the list has other than the %lld elements of dimension %u", (long long)e->dims[dim], dim);
}

/* --- Bytes --- */

enum { piece = 4 << 20 }; /* bytes that are decoded or copied, before their text is forgotten: elements are never in memory twice */

static ax_status decode_hex(ax_hlo_scan *r, const char *text, size_t bytes, unsigned char *out) {
  for (size_t i = 0; i < bytes; i++) {
    if (i % piece == 0 && i > 0) ax_shared_forget(r->module->lender, text + 2 * (i - piece), 2 * (size_t)piece);
    const int high = ax_hlo_hex_digit(text[2 * i]), low = ax_hlo_hex_digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return ax_hlo_refuse(r, text + 2 * i, "no hexadecimal digit");
    out[i] = (unsigned char)(high << 4 | low);
  }
  return AX_OK;
}

/* MLIR packs booleans, eight to a byte, the first one in the lowest bit; integers of less than 8 bits may have their sign's bits
   above. From the last element to the first, since packed ones take less room. */
static void unpack(const elements *e, const unsigned char *from, size_t bytes, int64_t count) {
  unsigned char *data = (unsigned char *)e->data;
  const bool packed = e->dtype == AX_BOOL && bytes < (size_t)count;
  const uint32_t bits = ax_dtype_get(e->dtype)->bits;
  if (bits >= 8 && from != data) memcpy(data, from, bytes);
  if (bits >= 8) return;
  for (int64_t i = count - 1; i >= 0; i--) {
    if (e->dtype == AX_BOOL)
      data[i] = packed ? from[i / 8] >> (i % 8) & 1 : from[i] != 0;
    else
      data[i] = from[i] & (unsigned char)((1u << bits) - 1);
  }
}

/* So many bytes are the elements, one that stands for all, or booleans that are packed: *room is what the elements take. */
static ax_status measure(ax_hlo_scan *r, const elements *e, const char *at, size_t bytes, size_t *room, bool *splat) {
  const size_t all = (size_t)e->count * e->bytes;
  const bool packed = e->dtype == AX_BOOL && bytes == ((size_t)e->count + 7) / 8;
  *splat = bytes == e->bytes && e->count != 1 && !packed;
  *room = *splat ? e->bytes : bytes > all ? bytes : all;
  if (bytes == all || packed || *splat) return AX_OK;
  return ax_hlo_refuse(r, at, "%zu bytes are not those of %lld elements", bytes, (long long)e->count);
}

/* at: the first digit. */
static ax_status read_hex(ax_hlo_scan *r, elements *e, const char *at, size_t digits, ax_hlo_attribute *out) {
  const size_t bytes = digits / 2;
  size_t room;
  const ax_status fits = measure(r, e, at, bytes, &room, &out->splat);
  for (size_t i = 0; fits != AX_OK && i < digits; i++) /* what is no number at all has no length either */
    if (ax_hlo_hex_digit(at[i]) < 0) return ax_hlo_refuse(r, at + i, "no hexadecimal digit");
  AX_TRY(fits);
  if (digits % 2 != 0) return ax_hlo_refuse(r, at, "an odd number of digits");
  e->data = ax_hlo_room(r->module, room, &e->owner);
  if (e->data == NULL) return ax_out_of_memory(room);
  AX_TRY(decode_hex(r, at, bytes, (unsigned char *)e->data));
  unpack(e, (unsigned char *)e->data, bytes, out->splat ? 1 : e->count);
  return AX_OK;
}

/* --- Resources: {-# dialect_resources: { builtin: { name: "0x.." } } #-} at the end of the text; the first four bytes of each are
   its alignment --- */

static int by_name(const void *a, const void *b) {
  return ax_hlo_slice_order(((const ax_hlo_attribute *)a)->name, ((const ax_hlo_attribute *)b)->name);
}

/* Every name: "text" of the section. */
static ax_status add_resources(ax_hlo_scan *r, ax_hlo_list *list) {
  while (r->cursor < r->end) {
    ax_hlo_attribute one = {0};
    if (ax_hlo_sees(r, "\""))
      AX_TRY(ax_hlo_want_string(r, &one.name));
    else if ((one.name = ax_hlo_take_word(r)).length == 0) {
      r->cursor += r->cursor < r->end;
      continue;
    }
    if (!ax_hlo_take(r, ":") || !ax_hlo_sees(r, "\"")) continue;
    AX_TRY(ax_hlo_want_string(r, &one.text));
    AX_TRY(ax_hlo_list_add(list, &one, sizeof one));
  }
  return AX_OK;
}

static ax_status index_resources(ax_hlo_scan *r, const char *at) {
  const char *p = r->end, *cursor = r->cursor;
  ax_hlo_list list = {0};
  while (p - r->text >= 3 && memcmp(p - 3, "{-#", 3) != 0) p--;
  if (p - r->text < 3) return ax_hlo_refuse(r, at, "the text has no resources, {-# .. #-}");
  r->cursor = p;
  ax_status status = add_resources(r, &list);
  r->resource_count = list.count;
  r->resources = ax_hlo_list_end(r, &list, sizeof r->resources[0], &status);
  if (status == AX_OK && r->resource_count > 0) qsort(r->resources, r->resource_count, sizeof r->resources[0], by_name);
  r->has_resources = status == AX_OK;
  r->cursor = cursor;
  return status;
}

static ax_status find_resource(ax_hlo_scan *r, const char *at, ax_hlo_slice name, ax_hlo_slice *out) {
  const ax_hlo_attribute wanted = {.name = name}, *found = NULL;
  if (ax_hlo_slice_is(name, "__elided__"))
    return ax_hlo_refuse(r, at, "the constant's elements were left out when the text was printed (large_elements_limit): print them, or write bytecode");
  if (!r->has_resources) AX_TRY(index_resources(r, at));
  if (r->resource_count > 0) found = bsearch(&wanted, r->resources, r->resource_count, sizeof wanted, by_name);
  if (found == NULL) return ax_hlo_refuse(r, at, "there is no resource '%.*s'", (int)name.length, name.start);
  *out = found->text;
  return AX_OK;
}

static ax_status read_resource(ax_hlo_scan *r, elements *e, const char *at, ax_hlo_slice name, ax_hlo_attribute *out) {
  ax_hlo_slice blob = {0};
  AX_TRY(find_resource(r, at, name, &blob));
  if (blob.length < 10 || blob.start[0] != '0' || blob.start[1] != 'x')
    return ax_hlo_refuse(r, at, "a resource is \"0x\", four bytes of alignment, and its bytes");
  return read_hex(r, e, blob.start + 10, blob.length - 10, out);
}

/* --- The whole --- */

static ax_status read_dense(ax_hlo_scan *r, elements *e, ax_hlo_slice inside, ax_hlo_attribute *out) {
  r->cursor = inside.start;
  if (ax_hlo_take(r, "\"")) {
    const char *start = r->cursor, *quote = memchr(start, '"', (size_t)(r->end - start));
    if (quote == NULL || quote - start < 2 || start[0] != '0' || start[1] != 'x') return ax_hlo_expected(r, "\"0x\" and bytes");
    return read_hex(r, e, start + 2, (size_t)(quote - start) - 2, out);
  }
  out->splat = !ax_hlo_sees(r, "[") && e->rank > 0 && inside.length > 0;
  const size_t bytes = (out->splat ? 1 : (size_t)e->count) * e->bytes;
  e->data = ax_hlo_room(r->module, bytes, &e->owner);
  if (e->data == NULL) return ax_out_of_memory(bytes);
  if (inside.length == 0 && e->count == 0) return AX_OK;
  return read_list(r, e, out->splat ? e->rank : 0);
}

static ax_status type_of_elements(ax_hlo_scan *r, const char *at, const ax_hlo_value_type *type, elements *e) {
  if (type->kind != AX_HLO_TENSOR || !type->element_known)
    return ax_hlo_refuse(r, at, "constants of type %.*s are not supported", (int)type->text.length, type->text.start);
  if (!type->ranked || type->dynamic) return ax_hlo_refuse(r, at, "a constant's shape must be known");
  *e = (elements){.dtype = type->dtype, .bytes = ax_dtype_bytes(type->dtype), .rank = type->rank, .dims = type->dims, .count = 1};
  for (uint32_t d = 0; d < e->rank; d++)
    if (!ax_mul_i64(e->count, e->dims[d], &e->count) || e->count > INT64_MAX / 16)
      return ax_hlo_refuse(r, at, "the constant has more elements than memory can hold");
  return AX_OK;
}

/* A constant of one element said once needs no more than that of text; one of many needs as much as it has. So the memory that is
   asked for is bounded by the text's length, but for a list that says less than its type. */
static bool can_be(const elements *e, ax_hlo_slice inside) {
  return e->count <= (int64_t)inside.length || memchr(inside.start, '[', inside.length) == NULL;
}

ax_status ax_hlo_want_elements(ax_hlo_scan *r, ax_hlo_attribute *out) {
  const char *at = r->cursor;
  const bool resource = ax_hlo_take(r, "dense_resource");
  ax_hlo_slice inside;
  elements e;
  if (!resource) AX_TRY(ax_hlo_want(r, "dense"));
  AX_TRY(ax_hlo_want_balanced(r, &inside));
  AX_TRY(ax_hlo_want(r, ":"));
  AX_TRY(ax_hlo_want_type(r, &out->type));
  const char *behind = r->cursor;
  out->kind = AX_HLO_ELEMENTS;
  AX_TRY(type_of_elements(r, at, out->type, &e));
  if (!resource && !can_be(&e, inside)) return ax_hlo_refuse(r, at, "the list has fewer elements than its type");
  AX_TRY(resource ? read_resource(r, &e, at, inside, out) : read_dense(r, &e, inside, out));
  out->data = e.data, out->owner = e.owner;
  r->cursor = behind;
  return AX_OK;
}

static void copy_piecewise(const ax_hlo_module *module, void *to, const void *from, size_t bytes) {
  for (size_t at = 0; at < bytes; at += piece) {
    const size_t length = bytes - at < piece ? bytes - at : piece;
    memcpy((char *)to + at, (const char *)from + at, length);
    ax_shared_forget(module->lender, (const char *)from + at, length);
  }
}

ax_status ax_hlo_elements_of(ax_hlo_scan *r, const void *bytes, size_t count, ax_hlo_attribute *out) {
  const size_t alignment = out->type->element_known ? ax_dtype_bytes(ax_part_dtype(out->type->dtype)) : 1;
  size_t room;
  elements e;
  out->kind = AX_HLO_ELEMENTS;
  AX_TRY(type_of_elements(r, r->cursor, out->type, &e));
  AX_TRY(measure(r, &e, r->cursor, count, &room, &out->splat));
  if (ax_dtype_get(e.dtype)->bits >= 8 && (uintptr_t)bytes % alignment == 0) {
    out->data = bytes;
    return AX_OK;
  }
  e.data = ax_hlo_room(r->module, room, &e.owner);
  if (e.data == NULL) return ax_out_of_memory(room);
  if (ax_dtype_get(e.dtype)->bits < 8) unpack(&e, bytes, count, out->splat ? 1 : e.count);
  else copy_piecewise(r->module, e.data, bytes, count);
  out->data = e.data, out->owner = e.owner;
  return AX_OK;
}
