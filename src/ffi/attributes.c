/* Attributes of custom calls: asked by name, as XLA's interface has them, and as text. */
#include "ffi/attributes.h"

#include <inttypes.h>
#include <string.h>

#include "ir/dtype.h"
#include "ir/number.h"

/* --- By name --- */

const ax_attribute *ax_attribute_find(const ax_attribute *dictionary, const char *name) {
  if (dictionary == NULL || name == NULL || dictionary->kind != AX_ATTRIBUTE_DICTIONARY) return NULL;
  size_t low = 0, high = dictionary->count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const int order = strcmp(dictionary->entries[middle].name, name);
    if (order == 0) return &dictionary->entries[middle];
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return NULL;
}

static ax_status find(const ax_attribute *dictionary, const char *name, ax_attribute_kind kind, const ax_attribute **out) {
  AX_TRY(ax_require(name, "name"));
  *out = ax_attribute_find(dictionary, name);
  if (*out == NULL) return ax_error(AX_INVALID_ARGUMENT, "the attribute %.255s is missing", name);
  if ((*out)->kind == kind) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "the attribute %.255s must be a %s", name, kind == AX_ATTRIBUTE_SCALAR ? "number" : "string");
}

ax_status ax_attribute_integer(const ax_attribute *dictionary, const char *name, int64_t *out) {
  const ax_attribute *found;
  AX_TRY(find(dictionary, name, AX_ATTRIBUTE_SCALAR, &found));
  const ax_dtype_kind kind = ax_dtype_get(found->dtype)->kind;
  const ax_number number = ax_number_load(found->dtype, found->data, 0);
  if (kind != AX_KIND_SIGNED && kind != AX_KIND_UNSIGNED && kind != AX_KIND_BOOL)
    return ax_error(AX_INVALID_ARGUMENT, "the attribute %.255s must be an integer, and is of %s", name, ax_dtype_name(found->dtype));
  if (kind != AX_KIND_SIGNED && number.u > INT64_MAX)
    return ax_error(AX_INVALID_ARGUMENT, "the attribute %.255s is too large: %" PRIu64, name, number.u);
  *out = kind == AX_KIND_SIGNED ? number.i : (int64_t)number.u;
  return AX_OK;
}

ax_status ax_attribute_number(const ax_attribute *dictionary, const char *name, double *out) {
  const ax_attribute *found;
  AX_TRY(find(dictionary, name, AX_ATTRIBUTE_SCALAR, &found));
  if (ax_is_complex(found->dtype)) return ax_error(AX_INVALID_ARGUMENT, "the attribute %.255s must be a real number", name);
  *out = ax_number_convert(found->dtype, AX_F64, ax_number_load(found->dtype, found->data, 0)).f;
  return AX_OK;
}

ax_status ax_attribute_text(const ax_attribute *dictionary, const char *name, const char **out) {
  const ax_attribute *found;
  AX_TRY(find(dictionary, name, AX_ATTRIBUTE_STRING, &found));
  *out = found->data;
  return AX_OK;
}

/* --- As XLA's interface has them --- */

static const int numbers[AX_DTYPE_COUNT] = {
    [AX_BOOL] = 1,        [AX_S8] = 2,          [AX_S16] = 3,        [AX_S32] = 4,           [AX_S64] = 5,         [AX_U8] = 6,
    [AX_U16] = 7,         [AX_U32] = 8,         [AX_U64] = 9,        [AX_F16] = 10,          [AX_F32] = 11,        [AX_F64] = 12,
    [AX_C64] = 15,        [AX_BF16] = 16,       [AX_C128] = 18,      [AX_F8E5M2] = 19,       [AX_F8E4M3FN] = 20,   [AX_F8E4M3B11FNUZ] = 23,
    [AX_F8E5M2FNUZ] = 24, [AX_F8E4M3FNUZ] = 25, [AX_F8E4M3] = 28,    [AX_F8E3M4] = 29,       [AX_F8E8M0FNU] = 33};

int ax_ffi_dtype(ax_dtype dtype) { return dtype > AX_NO_DTYPE && dtype < AX_DTYPE_COUNT ? numbers[dtype] : 0; }

static void *mutable(const void *data) { return (void *)(uintptr_t)data; } /* handlers only read what they are given as void * */

static ax_status make_value(ax_arena *arena, const ax_attribute *from, int *kind, void **out) {
  union {
    ax_ffi_scalar scalar;
    ax_ffi_array array;
    ax_ffi_bytes bytes;
    ax_ffi_attributes dictionary;
  } *made = ax_arena_alloc(arena, sizeof *made);
  if (made == NULL) return ax_out_of_memory(sizeof *made);
  *out = made;
  const int dtype = ax_ffi_dtype(from->dtype);
  if (dtype == 0 && from->dtype != AX_NO_DTYPE)
    return ax_error(AX_ABSENT, "the attribute %.255s is of %s, which XLA's interface has not in this form", from->name,
                    ax_dtype_name(from->dtype));
  switch (from->kind) {
    case AX_ATTRIBUTE_SCALAR:
      *kind = AX_FFI_ATTRIBUTE_SCALAR;
      made->scalar = (ax_ffi_scalar){dtype, mutable(from->data)};
      return AX_OK;
    case AX_ATTRIBUTE_ARRAY:
      *kind = AX_FFI_ATTRIBUTE_ARRAY;
      made->array = (ax_ffi_array){dtype, from->count, mutable(from->data)};
      return AX_OK;
    case AX_ATTRIBUTE_STRING:
      *kind = AX_FFI_ATTRIBUTE_STRING;
      made->bytes = (ax_ffi_bytes){from->data, from->count};
      return AX_OK;
    default:
      *kind = AX_FFI_ATTRIBUTE_DICTIONARY;
      return ax_ffi_attributes_make(arena, from, &made->dictionary);
  }
}

ax_status ax_ffi_attributes_make(ax_arena *arena, const ax_attribute *dictionary, ax_ffi_attributes *out) {
  const size_t count = dictionary->count;
  ax_ffi_bytes *names = ax_arena_alloc(arena, (count + 1) * sizeof names[0]);
  *out = (ax_ffi_attributes){.struct_size = sizeof *out,
                             .count = (int64_t)count,
                             .kinds = ax_arena_alloc(arena, (count + 1) * sizeof out->kinds[0]),
                             .names = ax_arena_alloc(arena, (count + 1) * sizeof out->names[0]),
                             .values = ax_arena_alloc(arena, (count + 1) * sizeof out->values[0])};
  if (names == NULL || out->kinds == NULL || out->names == NULL || out->values == NULL) return ax_out_of_memory(count);
  for (size_t i = 0; i < count; i++) {
    const ax_attribute *entry = &dictionary->entries[i];
    names[i] = (ax_ffi_bytes){entry->name, strlen(entry->name)};
    out->names[i] = &names[i];
    AX_TRY(make_value(arena, entry, &out->kinds[i], &out->values[i]));
  }
  return AX_OK;
}

/* --- As text --- */

void ax_ffi_quoted_text(ax_text *text, const char *bytes, size_t count) {
  ax_text_add(text, "\"");
  for (size_t i = 0; i < count; i++) {
    const unsigned char c = (unsigned char)bytes[i];
    if (c < ' ' || c == '"' || c == '\\' || c > '~') ax_text_add(text, "\\%02X", c);
    else ax_text_add(text, "%c", c);
  }
  ax_text_add(text, "\"");
}

/* Floats by their bits, which are exact. */
static void element(ax_text *text, ax_dtype dtype, const void *data, size_t index) {
  const ax_dtype_info *info = ax_dtype_get(dtype);
  uint64_t bits = 0;
  const ax_number number = ax_number_load(dtype, data, (int64_t)index);
  if (info->kind == AX_KIND_BOOL) ax_text_add(text, number.u != 0 ? "true" : "false");
  else if (info->kind == AX_KIND_SIGNED) ax_text_add(text, "%" PRId64, number.i);
  else if (info->kind == AX_KIND_UNSIGNED) ax_text_add(text, "%" PRIu64, number.u);
  else {
    memcpy(&bits, (const char *)data + index * info->bytes, info->bytes); /* the machine is little-endian, as all of the house is */
    ax_text_add(text, "0x%0*" PRIX64, (int)(2 * info->bytes), bits);
  }
}

/* array<i32: 1, 2>; of unsigned ones, which that cannot have, dense<[1, 2]> : tensor<2xui32>. */
static void array_text(ax_text *text, const ax_attribute *array) {
  const char *type = ax_dtype_get(array->dtype)->hlo;
  const bool dense = ax_dtype_get(array->dtype)->kind == AX_KIND_UNSIGNED;
  if (dense) ax_text_add(text, array->count == 0 ? "dense<" : "dense<[");
  else ax_text_add(text, "array<%s%s", type, array->count > 0 ? ": " : "");
  for (size_t i = 0; i < array->count; i++) {
    if (i > 0) ax_text_add(text, ", ");
    element(text, array->dtype, array->data, i);
  }
  if (dense) ax_text_add(text, "%s> : tensor<%zux%s>", array->count == 0 ? "" : "]", array->count, type);
  else ax_text_add(text, ">");
}

static void value_text(ax_text *text, const ax_attribute *value) {
  switch (value->kind) {
    case AX_ATTRIBUTE_SCALAR:
      element(text, value->dtype, value->data, 0);
      if (value->dtype != AX_BOOL) ax_text_add(text, " : %s", ax_dtype_get(value->dtype)->hlo);
      return;
    case AX_ATTRIBUTE_ARRAY:
      array_text(text, value);
      return;
    case AX_ATTRIBUTE_STRING:
      ax_ffi_quoted_text(text, value->data, value->count);
      return;
    default:
      ax_ffi_attributes_text(text, value);
  }
}

void ax_ffi_attributes_text(ax_text *text, const ax_attribute *dictionary) {
  ax_text_add(text, "{");
  for (size_t i = 0; i < dictionary->count; i++) {
    if (i > 0) ax_text_add(text, ", ");
    ax_ffi_quoted_text(text, dictionary->entries[i].name, strlen(dictionary->entries[i].name));
    ax_text_add(text, " = ");
    value_text(text, &dictionary->entries[i]);
  }
  ax_text_add(text, "}");
}
