#include "hlo/canonical.h"

#include <string.h>

#include "ir/dtype.h"

int64_t ax_hlo_element_count(const ax_hlo_value_type *tensor) {
  int64_t count = 1;
  for (uint32_t d = 0; d < tensor->rank; d++) count *= tensor->dims[d];
  return count;
}

bool ax_hlo_is_splat(const ax_hlo_attribute *elements) {
  const size_t bytes = ax_dtype_bytes(elements->type->dtype);
  const int64_t count = ax_hlo_element_count(elements->type);
  const char *data = elements->data;
  if (elements->splat || count < 2) return elements->splat || count == 1; /* MLIR knows one element as a splat, too */
  return memcmp(data, data + bytes, (size_t)(count - 1) * bytes) == 0;
}

/* --- What may be left out --- */

static bool all_are(const ax_hlo_attribute *attribute, int64_t otherwise) {
  if (attribute->kind == AX_HLO_INTEGER) return attribute->integer == otherwise;
  if (attribute->kind == AX_HLO_NUMBERS) {
    for (uint32_t i = 0; i < attribute->count; i++)
      if (attribute->numbers[i] != otherwise) return false;
    return true;
  }
  if (attribute->kind != AX_HLO_ELEMENTS || attribute->type->dtype != AX_S64) return false;
  const int64_t count = attribute->splat ? 1 : ax_hlo_element_count(attribute->type);
  for (int64_t i = 0; i < count; i++)
    if (((const int64_t *)attribute->data)[i] != otherwise) return false;
  return true;
}

static bool all_words_are(const ax_hlo_attribute *attribute, const char *word) {
  for (uint32_t i = 0; i < attribute->count; i++)
    if (attribute->items[i].kind != AX_HLO_WORD || !ax_hlo_slice_is(attribute->items[i].text, word)) return false;
  return attribute->kind == AX_HLO_ARRAY;
}

/* Only a mode that is not the default says anything. */
static bool is_default_accuracy(const ax_hlo_attribute *attribute) {
  const ax_hlo_attribute *mode = ax_hlo_item(attribute, "mode");
  return mode != NULL && ax_hlo_slice_is(mode->text, ax_hlo_accuracy_modes.words[0]);
}

/* A channel of number 0, or an algorithm of no types. */
static bool is_default_group(const ax_hlo_attribute *attribute) {
  const ax_hlo_attribute *first = attribute->kind == AX_HLO_DICTIONARY && attribute->count > 0 ? &attribute->items[0] : NULL;
  if (first == NULL) return attribute->kind == AX_HLO_DICTIONARY;
  if (first->kind == AX_HLO_TYPE) return ax_hlo_slice_is(first->type->text, "none");
  return first->kind == AX_HLO_INTEGER && first->integer == 0;
}

/* Lists of dictionaries are empty if these are. */
static bool is_empty(const ax_hlo_attribute *attribute) {
  if (attribute->kind == AX_HLO_STRING) return attribute->text.length == 0;
  if (attribute->kind == AX_HLO_DICTIONARY) return attribute->count == 0;
  if (attribute->kind != AX_HLO_ARRAY) return false;
  for (uint32_t i = 0; i < attribute->count; i++)
    if (attribute->items[i].kind != AX_HLO_DICTIONARY || attribute->items[i].count > 0) return false;
  return true;
}

bool ax_hlo_is_default(const ax_hlo_slot *slot, const ax_hlo_attribute *attribute) {
  if (!slot->optional) return false;
  switch (slot->kind) {
    case AX_HLO_SLOT_INTEGERS: /* of those without a count of their own only the empty ones */
    case AX_HLO_SLOT_TRUTHS:
      if (slot->like == NULL) return slot->otherwise == 0 && attribute->kind == AX_HLO_NUMBERS && attribute->count == 0;
      return all_are(attribute, slot->otherwise);
    case AX_HLO_SLOT_PAIRS:
    case AX_HLO_SLOT_INTEGER:
    case AX_HLO_SLOT_INTEGER32:
    case AX_HLO_SLOT_NUMBER:
      return all_are(attribute, slot->otherwise);
    case AX_HLO_SLOT_BOOL:
    case AX_HLO_SLOT_UNIT:
      return attribute->kind == AX_HLO_BOOL && attribute->integer == slot->otherwise;
    case AX_HLO_SLOT_WORD:
      return attribute->kind == AX_HLO_WORD && ax_hlo_slice_is(attribute->text, slot->words->words[slot->otherwise]);
    case AX_HLO_SLOT_WORDS:
      return all_words_are(attribute, slot->words->words[slot->otherwise]);
    case AX_HLO_SLOT_ACCURACY:
      return is_default_accuracy(attribute);
    case AX_HLO_SLOT_GROUP:
      return is_default_group(attribute);
    default:
      return is_empty(attribute);
  }
}

/* --- Lists --- */

static bool is_integer(const ax_hlo_attribute *attribute) {
  return attribute->kind == AX_HLO_INTEGER || attribute->kind == AX_HLO_BOOL;
}

/* Entry i of elements of 64 bits or of truth values. */
static int64_t element(const ax_hlo_attribute *elements, int64_t i) {
  const int64_t k = elements->splat ? 0 : i;
  return elements->type->dtype == AX_BOOL ? ((const unsigned char *)elements->data)[k] : ((const int64_t *)elements->data)[k];
}

static bool has_integers(const ax_hlo_attribute *from, uint32_t rank) {
  if (from->kind != AX_HLO_ELEMENTS || from->type->rank != rank || ax_hlo_element_count(from->type) > UINT16_MAX) return false;
  return from->type->dtype == AX_S64 || from->type->dtype == AX_BOOL;
}

static ax_status to_numbers(ax_arena *arena, const ax_hlo_attribute *from, ax_hlo_attribute *out) {
  const bool elements = has_integers(from, 1);
  const uint32_t count = elements ? (uint32_t)from->type->dims[0] : from->count;
  if (from->kind != AX_HLO_ARRAY && !elements) return AX_OK;
  for (uint32_t i = 0; !elements && i < count; i++)
    if (!is_integer(&from->items[i])) return AX_OK;
  int64_t *numbers = ax_arena_alloc(arena, (count + 1) * sizeof numbers[0]);
  if (numbers == NULL) return ax_out_of_memory(count * sizeof numbers[0]);
  for (uint32_t i = 0; i < count; i++) numbers[i] = elements ? element(from, i) : from->items[i].integer;
  *out = (ax_hlo_attribute){.kind = AX_HLO_NUMBERS, .name = from->name, .numbers = numbers, .count = count};
  return AX_OK;
}

typedef struct matrix {
  ax_hlo_value_type type;
  int64_t dims[2];
} matrix;

/* [[1, 2], [3, 4]] as elements. */
static ax_status to_matrix(ax_arena *arena, const ax_hlo_attribute *from, ax_hlo_attribute *out) {
  const int64_t rows = from->count, columns = rows > 0 ? from->items[0].count : 2;
  for (int64_t i = 0; i < rows; i++)
    if (from->items[i].kind != AX_HLO_ARRAY || from->items[i].count != columns) return AX_OK;
  matrix *m = ax_arena_alloc(arena, sizeof *m);
  int64_t *data = ax_arena_alloc(arena, (size_t)(rows * columns + 1) * sizeof data[0]);
  if (m == NULL || data == NULL) return ax_out_of_memory(sizeof *m);
  m->dims[0] = rows, m->dims[1] = columns;
  m->type = (ax_hlo_value_type){
      .kind = AX_HLO_TENSOR, .element_known = true, .ranked = true, .dtype = AX_S64, .rank = 2, .dims = m->dims};
  for (int64_t i = 0; i < rows * columns; i++) data[i] = from->items[i / columns].items[i % columns].integer;
  *out = (ax_hlo_attribute){.kind = AX_HLO_ELEMENTS, .name = from->name, .type = &m->type, .data = data};
  return AX_OK;
}

static ax_status to_symbols(ax_arena *arena, ax_hlo_attribute *out) {
  if (out->kind != AX_HLO_ARRAY || out->count == 0) return AX_OK;
  ax_hlo_attribute *items = ax_arena_copy(arena, out->items, out->count * sizeof items[0]);
  if (items == NULL) return ax_out_of_memory(out->count * sizeof items[0]);
  for (uint32_t i = 0; i < out->count; i++)
    if (items[i].kind == AX_HLO_STRING) items[i].kind = AX_HLO_SYMBOL;
  out->items = items;
  return AX_OK;
}

/* The text with what short forms leave out. */
static ax_status to_whole(ax_arena *arena, const ax_hlo_slot *slot, ax_hlo_attribute *out) {
  const size_t before = strlen(slot->before), behind = strlen(slot->behind);
  if (out->kind != AX_HLO_OPAQUE || out->text.length == 0 || out->text.start[0] == '#') return AX_OK;
  char *text = ax_arena_alloc(arena, before + out->text.length + behind + 1);
  if (text == NULL) return ax_out_of_memory(out->text.length);
  memcpy(text, slot->before, before);
  memcpy(text + before, out->text.start, out->text.length);
  memcpy(text + before + out->text.length, slot->behind, behind);
  out->text = (ax_hlo_slice){text, before + out->text.length + behind};
  return AX_OK;
}

ax_status ax_hlo_canonical(ax_arena *arena, const ax_hlo_slot *slot, const ax_hlo_attribute *from, ax_hlo_attribute *out) {
  *out = *from;
  if (slot->before != NULL) return to_whole(arena, slot, out);
  switch (slot->kind) {
    case AX_HLO_SLOT_INTEGERS:
    case AX_HLO_SLOT_TRUTHS:
    case AX_HLO_SLOT_SEGMENTS:
      return to_numbers(arena, from, out);
    case AX_HLO_SLOT_PAIRS:
      return from->kind == AX_HLO_ARRAY ? to_matrix(arena, from, out) : AX_OK;
    case AX_HLO_SLOT_STRING:
      if (out->kind == AX_HLO_SYMBOL) out->kind = AX_HLO_STRING;
      return AX_OK;
    case AX_HLO_SLOT_SYMBOL:
      if (out->kind == AX_HLO_STRING) out->kind = AX_HLO_SYMBOL;
      return AX_OK;
    case AX_HLO_SLOT_SYMBOLS:
      return to_symbols(arena, out);
    case AX_HLO_SLOT_UNIT:
      if (out->kind == AX_HLO_BOOL && out->integer != 0) out->kind = AX_HLO_UNIT;
      return AX_OK;
    case AX_HLO_SLOT_BOOL:
      if (out->kind == AX_HLO_UNIT) out->kind = AX_HLO_BOOL, out->integer = 1;
      return AX_OK;
    case AX_HLO_SLOT_NUMBER:
      if (out->kind != AX_HLO_WORD) return AX_OK;
      out->kind = AX_HLO_INTEGER;
      for (uint32_t i = 0; i < slot->words->count; i++)
        if (ax_hlo_slice_is(from->text, slot->words->words[i])) out->integer = i;
      return AX_OK;
    default:
      return AX_OK;
  }
}
