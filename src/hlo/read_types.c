/* Types of MLIR's texts. Equal texts of one module are one type, found by a hash table, so that most types of a long module are
   looked at once. Types made of others are one if their parts are, however these are spelled: aliases may share parts so often that
   neither a text of them nor a walk over them would end. */
#include <inttypes.h>
#include <string.h>

#include "hlo/reader.h"
#include "ir/dtype.h"
#include "ir/text.h"

/* --- The table --- */

static uint32_t slot_of(const ax_hlo_scan *r, ax_hlo_slice text) {
  uint32_t slot = (uint32_t)ax_hash_bytes(AX_HASH_SEED, text.start, text.length) & (r->type_capacity - 1);
  for (; r->types[slot].type != NULL; slot = (slot + 1) & (r->type_capacity - 1))
    if (ax_hlo_slice_same(r->types[slot].text, text)) break;
  return slot;
}

static ax_status grow_types(ax_hlo_scan *r) {
  ax_hlo_type_entry *old = r->types;
  const uint32_t count = r->type_capacity;
  if (2 * (r->type_count + 1) <= count) return AX_OK;
  const uint32_t capacity = count == 0 ? 64 : 2 * count;
  r->types = ax_calloc(capacity, sizeof r->types[0]);
  if (r->types == NULL) {
    r->types = old;
    return ax_out_of_memory(capacity * sizeof r->types[0]);
  }
  r->type_capacity = capacity;
  for (uint32_t i = 0; i < count; i++)
    if (old[i].type != NULL) r->types[slot_of(r, old[i].text)] = old[i];
  ax_free(old);
  return AX_OK;
}

static const ax_hlo_value_type *known_type(const ax_hlo_scan *r, ax_hlo_slice text) {
  return r->type_capacity == 0 ? NULL : r->types[slot_of(r, text)].type;
}

/* The type that is known by the key: this one, if there is none yet. */
static ax_status keep_type(ax_hlo_scan *r, ax_hlo_slice key, const ax_hlo_value_type *type, const ax_hlo_value_type **out) {
  AX_TRY(grow_types(r));
  ax_hlo_type_entry *entry = &r->types[slot_of(r, key)];
  if (entry->type == NULL) {
    entry->text = key;
    entry->type = ax_arena_copy(&r->module->arena, type, sizeof *type);
    if (entry->type == NULL) return ax_out_of_memory(sizeof *type);
    r->type_count++;
  }
  *out = entry->type;
  return AX_OK;
}

/* Finds the type by another text as well. */
static ax_status keep_spelling(ax_hlo_scan *r, ax_hlo_slice text, const ax_hlo_value_type *type) {
  AX_TRY(grow_types(r));
  r->types[slot_of(r, text)] = (ax_hlo_type_entry){text, type};
  r->type_count++;
  return AX_OK;
}

/* --- Elements of tensors --- */

/* index, which only shapes have, is an integer of 64 bits. MLIR's si8 is no i8, and no type of StableHLO. */
bool ax_hlo_find_dtype(ax_hlo_slice name, ax_dtype *out) {
  for (uint32_t d = AX_NO_DTYPE + 1; d < AX_DTYPE_COUNT; d++) {
    const char *hlo = ax_dtype_get((ax_dtype)d)->hlo;
    if (ax_is_key((ax_dtype)d) || hlo == NULL || !ax_hlo_slice_is(name, hlo)) continue;
    *out = (ax_dtype)d;
    return true;
  }
  if (!ax_hlo_slice_is(name, "index")) return false;
  *out = AX_S64;
  return true;
}

/* !quant.uniform<..>, or an alias of one. */
static ax_status want_quantized(ax_hlo_scan *r, ax_hlo_value_type *type) {
  static const char start[] = "!quant.uniform";
  const char *at = r->cursor;
  ax_hlo_slice name, inside, text;
  AX_TRY(ax_hlo_want_name(r, '!', &name));
  if (r->cursor < r->end && *r->cursor == '<') AX_TRY(ax_hlo_want_balanced(r, &inside));
  text = (ax_hlo_slice){at, (size_t)(r->cursor - at)};
  const ax_hlo_alias_entry *alias = ax_hlo_find_alias(r->module, text);
  if (alias != NULL) text = alias->text;
  const size_t length = sizeof start - 1;
  if (text.length < length + 2 || memcmp(text.start, start, length) != 0 || text.start[length] != '<') return AX_OK;
  inside = (ax_hlo_slice){text.start + length + 1, text.length - length - 2};
  AX_TRY(ax_hlo_read_quantized(&r->module->arena, inside, &type->quantized));
  if (type->quantized == NULL) return AX_OK;
  type->element_known = true;
  type->dtype = type->quantized->storage;
  return AX_OK;
}

/* f32, complex<f32>, !quant.uniform<..>. */
static ax_status want_element(ax_hlo_scan *r, ax_hlo_value_type *type, ax_hlo_slice *text) {
  ax_hlo_slice inside;
  ax_hlo_skip(r);
  text->start = r->cursor;
  if (ax_hlo_sees(r, "!")) {
    AX_TRY(want_quantized(r, type));
  } else {
    AX_TRY(ax_hlo_want_word(r, "a type", &inside));
    if (r->cursor < r->end && *r->cursor == '<') AX_TRY(ax_hlo_want_balanced(r, &inside));
  }
  text->length = (size_t)(r->cursor - text->start);
  if (type->quantized == NULL) type->element_known = ax_hlo_find_dtype(*text, &type->dtype);
  return AX_OK;
}

/* 4x?x: what stands before the elements' type. */
static ax_status want_dims(ax_hlo_scan *r, ax_hlo_value_type *type) {
  int64_t dims[64];
  type->ranked = !ax_hlo_take(r, "*x");
  ax_hlo_skip(r);
  while (type->ranked && r->cursor < r->end && (ax_hlo_is_digit(*r->cursor) || *r->cursor == '?')) {
    int64_t extent = 0;
    const char *at = r->cursor;
    if (type->rank == AX_COUNT(dims)) return ax_hlo_refuse(r, at, "a tensor of more than %zu dimensions", AX_COUNT(dims));
    if (*r->cursor == '?') r->cursor++, extent = AX_HLO_DYNAMIC, type->dynamic = true;
    for (; r->cursor < r->end && ax_hlo_is_digit(*r->cursor); r->cursor++)
      if (__builtin_mul_overflow(extent, 10, &extent) || __builtin_add_overflow(extent, *r->cursor - '0', &extent))
        return ax_hlo_refuse(r, at, "the extent is larger than 64 bits hold");
    dims[type->rank++] = extent;
    if (r->cursor == r->end || *r->cursor != 'x') return ax_hlo_expected(r, "'x'");
    r->cursor++;
  }
  type->dims = ax_arena_copy(&r->module->arena, dims, type->rank * sizeof dims[0]);
  return type->dims != NULL || type->rank == 0 ? AX_OK : ax_out_of_memory(sizeof dims);
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/* --- Bounds of extents that are not known --- */

/* What is listed in #stablehlo.bounds<3, ?> or #stablehlo.type_extensions<bounds = [3, ?]>, with the bracket behind it; empty: neither. */
static ax_hlo_slice bounds_listed(ax_hlo_slice text) {
  static const char bounds[] = "#stablehlo.bounds<", extensions[] = "#stablehlo.type_extensions<";
  const char *start = NULL, *end = text.start + text.length;
  if (text.length >= sizeof bounds && memcmp(text.start, bounds, sizeof bounds - 1) == 0) start = text.start + sizeof bounds - 1;
  if (text.length >= sizeof extensions && memcmp(text.start, extensions, sizeof extensions - 1) == 0)
    start = memchr(text.start, '[', text.length), start += start != NULL;
  return start != NULL ? (ax_hlo_slice){start, (size_t)(end - start)} : (ax_hlo_slice){0};
}

/* One bound; *p goes to behind it. */
static bool take_bound(const char **p, const char *end, int64_t *bound) {
  *bound = **p == '?' ? AX_HLO_DYNAMIC : 0;
  if (**p == '?') return ++*p, true;
  if (!ax_hlo_is_digit(**p)) return false;
  for (; *p < end && ax_hlo_is_digit(**p); ++*p)
    if (__builtin_mul_overflow(*bound, 10, bound) || __builtin_add_overflow(*bound, **p - '0', bound)) return false;
  return true;
}

enum { most_dims = 64 };

/* How many bounds the text lists; -1: it is no such list. */
static int64_t find_bounds(ax_hlo_slice text, int64_t bounds[most_dims]) {
  const ax_hlo_slice list = bounds_listed(text);
  const char *p = list.start, *const end = list.start + list.length;
  for (int64_t count = 0; p < end; count++) {
    while (p < end && (*p == ',' || is_blank(*p))) p++;
    if (p < end && (*p == '>' || *p == ']')) return count;
    if (p == end || count == most_dims || !take_bound(&p, end, &bounds[count])) return -1;
  }
  return -1;
}

static ax_status want_encoding(ax_hlo_scan *r, ax_hlo_value_type *type) {
  int64_t bounds[most_dims];
  ax_hlo_attribute *encoding = ax_arena_alloc(&r->module->arena, sizeof *encoding);
  if (encoding == NULL) return ax_out_of_memory(sizeof *encoding);
  AX_TRY(ax_hlo_want_attribute(r, encoding));
  type->encoding = encoding;
  const int64_t count = encoding->kind == AX_HLO_OPAQUE ? find_bounds(encoding->text, bounds) : -1;
  if (count < 0) return AX_OK;
  int64_t *copy = ax_arena_alloc(&r->module->arena, ((size_t)count + 1) * sizeof copy[0]); /* not NULL, where there are none */
  if (copy == NULL) return ax_out_of_memory((size_t)count * sizeof copy[0]);
  memcpy(copy, bounds, (size_t)count * sizeof copy[0]);
  type->bounds = copy, type->bound_count = (uint32_t)count;
  return AX_OK;
}

static void add_extent(ax_text *text, int64_t extent, const char *behind) {
  if (extent == AX_HLO_DYNAMIC)
    ax_text_add(text, "?%s", behind);
  else
    ax_text_add(text, "%" PRId64 "%s", extent, behind);
}

/* Gives a tensor the text that all spellings of it have in common: without blanks, and bounds in their own form. */
static ax_status respell(ax_hlo_scan *r, ax_hlo_value_type *type, ax_hlo_slice element) {
  ax_text text = {0};
  ax_text_add(&text, "tensor<%s", type->ranked ? "" : "*x");
  for (uint32_t d = 0; d < type->rank; d++) add_extent(&text, type->dims[d], "x");
  ax_text_add_bytes(&text, element.start, element.length);
  for (uint32_t d = 0; d < type->bound_count; d++) {
    if (d == 0) ax_text_add(&text, ", #stablehlo.bounds<");
    add_extent(&text, type->bounds[d], d + 1 < type->bound_count ? ", " : ">");
  }
  ax_text_add(&text, ">");
  type->text.length = text.length;
  type->text.start = text.failed ? NULL : ax_arena_copy(&r->module->arena, text.data, text.length);
  ax_text_deinit(&text);
  return type->text.start != NULL ? AX_OK : ax_out_of_memory(type->text.length);
}

static ax_status want_tensor(ax_hlo_scan *r, ax_hlo_value_type *type) {
  const char *start = type->text.start;
  ax_hlo_slice element;
  type->kind = AX_HLO_TENSOR;
  AX_TRY(ax_hlo_want(r, "<"));
  AX_TRY(want_dims(r, type));
  AX_TRY(want_element(r, type, &element));
  if (ax_hlo_take(r, ",")) AX_TRY(want_encoding(r, type));
  AX_TRY(ax_hlo_want(r, ">"));
  type->text.length = (size_t)(r->cursor - start);
  if (type->encoding != NULL) return type->bounds != NULL ? respell(r, type, element) : AX_OK;
  size_t blanks = 0;
  for (const char *p = start; p < element.start; p++) blanks += is_blank(*p);
  return blanks > 0 || element.start + element.length + 1 != r->cursor ? respell(r, type, element) : AX_OK;
}

/* --- Types made of others --- */

static ax_status add_types_until(ax_hlo_scan *r, const char *end, ax_hlo_list *types) {
  const ax_hlo_value_type *type;
  if (ax_hlo_take(r, end)) return AX_OK;
  do {
    AX_TRY(ax_hlo_want_type(r, &type));
    AX_TRY(ax_hlo_list_add(types, &type, sizeof type));
  } while (ax_hlo_take(r, ","));
  return ax_hlo_want(r, end);
}

ax_status ax_hlo_want_results(ax_hlo_scan *r, ax_hlo_list *types) {
  const ax_hlo_value_type *type;
  if (ax_hlo_take(r, "(")) return add_types_until(r, ")", types);
  AX_TRY(ax_hlo_want_type(r, &type));
  return ax_hlo_list_add(types, &type, sizeof type);
}

/* What such a type is known by: its kind and number of parameters, and its parts, in front of which the first two stand in memory. No
   text has these bytes, of which some are 0. */
typedef uint64_t made_head;

static ax_hlo_slice made_key(const ax_hlo_value_type *type) {
  return (ax_hlo_slice){(const char *)type->parts - sizeof(made_head), sizeof(made_head) + type->part_count * sizeof type->parts[0]};
}

static void add_size(ax_hlo_value_type *type, const ax_hlo_value_type *part) {
  if (__builtin_add_overflow(type->size, part->size, &type->size) || ++type->size == 0) type->size = UINT32_MAX;
}

static ax_status end_parts(ax_hlo_scan *r, ax_hlo_list *parts, ax_status status, ax_hlo_value_type *type) {
  const made_head head = (made_head)type->kind << 32 | type->in_count;
  const size_t bytes = parts->count * sizeof type->parts[0];
  char *key = status == AX_OK ? ax_arena_alloc(&r->module->arena, sizeof head + bytes) : NULL;
  if (status == AX_OK && key == NULL) status = ax_out_of_memory(bytes);
  if (key != NULL) {
    memcpy(key, &head, sizeof head);
    if (bytes > 0) memcpy(key + sizeof head, parts->items, bytes);
    type->parts = (const ax_hlo_value_type **)(void *)(key + sizeof head);
    type->part_count = parts->count;
  }
  for (uint32_t i = 0; i < type->part_count; i++) add_size(type, type->parts[i]);
  ax_free(parts->items);
  return status;
}

static ax_status add_signature(ax_hlo_scan *r, ax_hlo_value_type *type, ax_hlo_list *parts) {
  AX_TRY(add_types_until(r, ")", parts));
  type->in_count = parts->count;
  AX_TRY(ax_hlo_want(r, "->"));
  return ax_hlo_want_results(r, parts);
}

static ax_status want_parts(ax_hlo_scan *r, ax_hlo_value_type *type) {
  ax_hlo_list parts = {0};
  if (type->kind == AX_HLO_FUNCTION) return end_parts(r, &parts, add_signature(r, type, &parts), type);
  AX_TRY(ax_hlo_want(r, "<"));
  return end_parts(r, &parts, add_types_until(r, ">", &parts), type);
}

/* !dialect.name, perhaps with <..> behind it. */
static ax_status want_dialect_type(ax_hlo_scan *r, ax_hlo_value_type *type) {
  ax_hlo_slice name, inside;
  AX_TRY(ax_hlo_want_name(r, '!', &name));
  type->kind = ax_hlo_slice_is(name, "stablehlo.token")    ? AX_HLO_TOKEN
               : ax_hlo_slice_is(name, "stablehlo.future") ? AX_HLO_FUTURE_TYPE
                                                           : AX_HLO_OTHER;
  if (type->kind == AX_HLO_FUTURE_TYPE) return want_parts(r, type);
  return r->cursor < r->end && *r->cursor == '<' ? ax_hlo_want_balanced(r, &inside) : AX_OK;
}

static ax_status read_type(ax_hlo_scan *r, ax_hlo_value_type *type) {
  if (ax_hlo_take(r, "tensor")) return want_tensor(r, type);
  if (ax_hlo_take(r, "tuple")) {
    type->kind = AX_HLO_TUPLE;
    return want_parts(r, type);
  }
  if (ax_hlo_take(r, "(")) {
    type->kind = AX_HLO_FUNCTION;
    return want_parts(r, type);
  }
  if (ax_hlo_sees(r, "!")) return want_dialect_type(r, type);
  ax_hlo_slice element;
  type->kind = AX_HLO_SCALAR;
  return want_element(r, type, &element);
}

/* Reads the alias's text where it stands, once, and returns to behind the alias. */
static ax_status want_alias(ax_hlo_scan *r, const ax_hlo_alias_entry *alias, const ax_hlo_value_type **out) {
  const char *cursor = r->cursor;
  if ((*out = known_type(r, alias->name)) != NULL) return AX_OK;
  r->cursor = alias->text.start;
  AX_TRY(ax_hlo_want_type(r, out));
  r->cursor = cursor;
  return keep_spelling(r, alias->name, *out);
}

/* A tensor's text, by which the table has its type; empty: what comes next is no tensor. */
static ax_hlo_slice tensor_text(const ax_hlo_scan *r) {
  const char *p = r->cursor;
  uint32_t depth = 0;
  if (r->end - p < 7 || memcmp(p, "tensor<", 7) != 0) return (ax_hlo_slice){0};
  for (p += 6; p < r->end && *p != '\n' && *p != '"'; p++) {
    depth += *p == '<';
    if (*p == '>' && --depth == 0) return (ax_hlo_slice){r->cursor, (size_t)(p + 1 - r->cursor)};
  }
  return (ax_hlo_slice){0};
}

ax_status ax_hlo_want_type(ax_hlo_scan *r, const ax_hlo_value_type **out) {
  ax_hlo_value_type type = {0};
  ax_hlo_skip(r);
  const ax_hlo_slice tensor = tensor_text(r);
  if (tensor.length > 0 && (*out = known_type(r, tensor)) != NULL) {
    r->cursor += tensor.length;
    return AX_OK;
  }
  type.text.start = r->cursor;
  AX_TRY(ax_hlo_enter(r));
  if (r->cursor < r->end && *r->cursor == '!') {
    const char *at = r->cursor;
    ax_hlo_slice name;
    AX_TRY(ax_hlo_want_name(r, '!', &name));
    const ax_hlo_alias_entry *alias = ax_hlo_find_alias(r->module, (ax_hlo_slice){at, name.length + 1});
    if (alias != NULL) {
      AX_TRY(want_alias(r, alias, out));
      ax_hlo_leave(r);
      return AX_OK;
    }
    r->cursor = at;
  }
  const char *start = r->cursor;
  AX_TRY(read_type(r, &type));
  ax_hlo_leave(r);
  const ax_hlo_slice spelling = {start, (size_t)(r->cursor - start)};
  if (type.kind != AX_HLO_TENSOR) type.text = spelling;
  AX_TRY(keep_type(r, type.parts != NULL ? made_key(&type) : type.text, &type, out));
  return known_type(r, spelling) != NULL ? AX_OK : keep_spelling(r, spelling, *out);
}

ax_status ax_hlo_spelled_type(ax_hlo_scan *r, ax_hlo_slice text, const ax_hlo_value_type **out) {
  if ((*out = known_type(r, text)) != NULL) return AX_OK;
  const char *own = ax_arena_copy(&r->module->arena, text.start, text.length);
  if (own == NULL) return ax_out_of_memory(text.length);
  r->text = r->cursor = r->line_start = own;
  r->end = own + text.length;
  return ax_hlo_want_type(r, out);
}

ax_status ax_hlo_want_signature(ax_hlo_scan *r, const ax_hlo_value_type **out) {
  if (!ax_hlo_sees(r, "(")) return ax_hlo_expected(r, "a signature, (types) -> types");
  return ax_hlo_want_type(r, out);
}
