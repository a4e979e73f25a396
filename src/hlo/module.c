/* Questions about a module: attributes by name and kind, types as programs have them, places in messages. */
#include "hlo/module.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/shared.h"
#include "ir/dtype.h"
#include "ir/equation.h"

/* --- Memory --- */

struct ax_hlo_held {
  ax_shared *memory;
  struct ax_hlo_held *next;
};

void *ax_hlo_room(ax_hlo_module *module, size_t bytes, ax_shared **owner) {
  *owner = NULL;
  if (bytes < AX_SHARED_LEAST) return ax_arena_alloc(&module->arena, bytes);
  struct ax_hlo_held *held = ax_arena_alloc(&module->arena, sizeof *held);
  if (held == NULL || ax_shared_create(bytes, owner) != AX_OK) return NULL;
  *held = (struct ax_hlo_held){*owner, module->held};
  module->held = held;
  return ax_shared_data(*owner);
}

void ax_hlo_own(ax_hlo_module *module, const char *bytes, size_t count, ax_shared *owner) {
  for (uint32_t v = 0; v < module->value_count; v++) {
    const ax_hlo_operation *maker = module->makers[v];
    for (uint32_t i = 0; maker != NULL && i < maker->attribute_count; i++) {
      ax_hlo_attribute *a = (ax_hlo_attribute *)(uintptr_t)&maker->attributes[i]; /* the module's own */
      const uintptr_t at = (uintptr_t)a->data;
      if (a->kind == AX_HLO_ELEMENTS && at >= (uintptr_t)bytes && at < (uintptr_t)bytes + count) a->owner = owner;
    }
  }
}

void ax_hlo_module_deinit(ax_hlo_module *module) {
  for (struct ax_hlo_held *h = module->held; h != NULL; h = h->next) ax_shared_release(h->memory);
  ax_arena_deinit(&module->arena);
  ax_free(module->values);
  ax_free(module->makers);
  ax_free(module->aliases);
  ax_table_deinit(&module->alias_table);
  *module = (ax_hlo_module){0};
}

/* --- By name --- */

int ax_hlo_slice_order(ax_hlo_slice a, ax_hlo_slice b) {
  const size_t shared = a.length < b.length ? a.length : b.length;
  const int order = shared > 0 ? memcmp(a.start, b.start, shared) : 0; /* empty slices may be nowhere */
  return order != 0 ? order : a.length < b.length ? -1 : a.length > b.length;
}

static const ax_hlo_attribute *find(const ax_hlo_attribute *items, uint32_t count, const char *name) {
  for (uint32_t i = 0; i < count; i++)
    if (ax_hlo_slice_is(items[i].name, name)) return &items[i];
  return NULL;
}

const ax_hlo_attribute *ax_hlo_find(const ax_hlo_operation *op, const char *name) {
  return find(op->attributes, op->attribute_count, name);
}

const ax_hlo_attribute *ax_hlo_item(const ax_hlo_attribute *dictionary, const char *name) {
  return dictionary->kind == AX_HLO_DICTIONARY ? find(dictionary->items, dictionary->count, name) : NULL;
}

/* The scalar that is broadcast or reshaped to a scalar, or converted to its own type, as JAX writes starts of reductions; AX_NONE: the
   value is made in another way. */
static uint32_t same_scalar(const ax_hlo_module *module, uint32_t value) {
  static const char *const names[] = {"stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.convert"};
  const ax_hlo_operation *op = module->makers[value];
  for (size_t i = 0; op != NULL && op->operand_count == 1 && i < AX_COUNT(names); i++) {
    const ax_hlo_value_type *type = module->values[op->operands[0]];
    if (ax_hlo_slice_is(op->name, names[i]) && type == module->values[value] && type->kind == AX_HLO_TENSOR && type->ranked && type->rank == 0)
      return op->operands[0];
  }
  return AX_NONE;
}

bool ax_hlo_calls_target(const ax_hlo_operation *op, const char *target) {
  if (!ax_hlo_slice_is(op->name, "stablehlo.custom_call")) return false;
  const ax_hlo_attribute *name = ax_hlo_find(op, "call_target_name");
  return name != NULL && ax_hlo_slice_is(name->text, target);
}

const ax_hlo_attribute *ax_hlo_constant(const ax_hlo_module *module, uint32_t value) {
  for (uint32_t steps = 0, before; steps < 4 && (before = same_scalar(module, value)) != AX_NONE; steps++) value = before;
  const ax_hlo_operation *made_by = module->makers[value];
  static const char *const names[] = {"stablehlo.constant", "sdy.constant", "chlo.constant"};
  bool constant = false;
  for (size_t i = 0; made_by != NULL && i < AX_COUNT(names); i++) constant = constant || ax_hlo_slice_is(made_by->name, names[i]);
  const ax_hlo_attribute *found = constant ? ax_hlo_find(made_by, "value") : NULL;
  return found != NULL && found->kind == AX_HLO_ELEMENTS && found->type == module->values[value] ? found : NULL;
}

uint32_t ax_hlo_chosen(const ax_hlo_module *module, const ax_hlo_operation *op) {
  const ax_hlo_attribute *index = op->operand_count == 1 ? ax_hlo_constant(module, op->operands[0]) : NULL;
  int32_t number;
  if (index == NULL || index->type->dtype != AX_S32 || index->type->rank > 0 || op->region_count == 0) return AX_NONE;
  memcpy(&number, index->data, sizeof number);
  return number >= 0 && (uint32_t)number < op->region_count ? (uint32_t)number : op->region_count - 1;
}

/* --- Aliases --- */

static bool alias_is(const void *aliases, uint32_t number, const void *name) {
  return ax_hlo_slice_same(((const ax_hlo_alias_entry *)aliases)[number].name, *(const ax_hlo_slice *)name);
}

static uint32_t *alias_slot(const ax_hlo_module *module, ax_hlo_slice name) {
  return ax_table_slot(&module->alias_table, ax_hash_bytes(AX_HASH_SEED, name.start, name.length), alias_is, module->aliases, &name);
}

ax_status ax_hlo_add_alias(ax_hlo_module *module, ax_hlo_slice name, ax_hlo_slice text) {
  bool emptied;
  AX_TRY(ax_table_room(&module->alias_table, module->alias_count, &emptied));
  for (uint32_t i = 0; emptied && i < module->alias_count; i++) *alias_slot(module, module->aliases[i].name) = i + 1;
  AX_TRY(ax_grow(&module->aliases, sizeof module->aliases[0], module->alias_count, 1, &module->alias_capacity));
  module->aliases[module->alias_count++] = (ax_hlo_alias_entry){.name = name, .text = text};
  *alias_slot(module, name) = module->alias_count;
  return AX_OK;
}

ax_hlo_alias_entry *ax_hlo_find_alias(const ax_hlo_module *module, ax_hlo_slice name) {
  const uint32_t found = module->alias_table.size > 0 ? *alias_slot(module, name) : 0;
  return found > 0 ? &module->aliases[found - 1] : NULL;
}

/* --- Places --- */

/* The text of loc(..), through aliases: the first file with a line in it, which is the innermost call's. *steps bounds how many
   aliases are looked up, since they may stand for each other. */
static bool find_line(const ax_hlo_module *module, ax_hlo_slice text, uint32_t *steps, ax_hlo_slice *file, int64_t *line) {
  const char *p = text.start, *end = text.start + text.length;
  for (; p < end; p++) {
    if (*p == '"') {
      const char *quote = memchr(p + 1, '"', (size_t)(end - p - 1));
      if (quote == NULL) return false;
      if (end - quote > 2 && quote[1] == ':' && quote[2] >= '0' && quote[2] <= '9') {
        *file = (ax_hlo_slice){p + 1, (size_t)(quote - p) - 1};
        *line = 0;
        for (p = quote + 2; p < end && *p >= '0' && *p <= '9' && *line < INT32_MAX; p++) *line = *line * 10 + (*p - '0');
        return true;
      }
      p = quote;
    } else if (*p == '#') {
      size_t length = 1;
      while (p + length < end && strchr(" \t\n,()<>[]", p[length]) == NULL) length++;
      const ax_hlo_alias_entry *alias = *steps > 0 ? ax_hlo_find_alias(module, (ax_hlo_slice){p, length}) : NULL;
      if (alias != NULL && (*steps)-- > 0 && find_line(module, alias->text, steps, file, line)) return true;
      p += length - 1;
    }
  }
  return false;
}

bool ax_hlo_place_line(const ax_hlo_module *module, const ax_hlo_place *place, ax_hlo_slice *file, int64_t *line) {
  uint32_t steps = 64;
  return place->location.length > 0 && find_line(module, place->location, &steps, file, line);
}

/* A name in quotes, behind which a place in brackets may stand, but no line. */
static ax_hlo_slice quoted_name(ax_hlo_slice text) {
  const ax_hlo_slice none = {0};
  const char *end = text.start + text.length;
  const char *quote = text.length > 1 && text.start[0] == '"' ? memchr(text.start + 1, '"', text.length - 1) : NULL;
  if (quote == NULL || (quote + 1 < end && quote[1] != '(')) return none;
  return (ax_hlo_slice){text.start + 1, (size_t)(quote - text.start) - 1};
}

ax_hlo_slice ax_hlo_location_name(const ax_hlo_module *module, ax_hlo_slice location) {
  enum { most_aliases = 8 }; /* that stand for each other */
  static const char opening[] = "loc(";
  const size_t length = strlen(opening);
  for (uint32_t steps = 0; steps < most_aliases && location.length > 0; steps++) {
    if (location.length > length && memcmp(location.start, opening, length) == 0)
      location = (ax_hlo_slice){location.start + length, location.length - length - 1};
    if (location.length == 0 || location.start[0] != '#') return quoted_name(location);
    const ax_hlo_alias_entry *alias = ax_hlo_find_alias(module, location);
    location = alias != NULL ? alias->text : (ax_hlo_slice){0};
  }
  return (ax_hlo_slice){0};
}

void ax_hlo_place_text(const ax_hlo_module *module, const ax_hlo_place *place, char *out, size_t bytes) {
  ax_hlo_slice file;
  int64_t line;
  if (ax_hlo_place_line(module, place, &file, &line))
    snprintf(out, bytes, "%.*s:%" PRId64, (int)file.length, file.start, line);
  else if (place->line > 0)
    snprintf(out, bytes, "%s:%u", module->source, place->line);
  else
    snprintf(out, bytes, "%s", module->source);
}

ax_status ax_hlo_blame(const ax_hlo_module *module, const ax_hlo_operation *op, ax_status status) {
  char place[512];
  if (status == AX_OK || status == AX_OUT_OF_MEMORY) return status;
  ax_hlo_place_text(module, &op->place, place, sizeof place);
  return ax_error_context(status, "%s: %.*s: ", place, (int)op->name.length, op->name.start);
}

/* --- Numbers --- */

enum { most_digits = 400 }; /* of a float */

/* A decimal, or the bits in hexadecimal, of which there must not be too many. */
static bool float_of(ax_hlo_slice text, ax_dtype dtype, void *out) {
  char word[most_digits + 1] = {0}, *end;
  if (text.length == 0 || text.length > most_digits) return false;
  memcpy(word, text.start, text.length);
  if (strncmp(word, "0x", 2) != 0) {
    ax_number_store(dtype, out, 0, ax_number_decimal(dtype, word, &end));
    return *end == '\0' && end != word;
  }
  errno = 0;
  const uint64_t bits = strtoull(word, &end, 16);
  memcpy(out, &bits, ax_dtype_bytes(dtype));
  return *end == '\0' && errno == 0 && (ax_dtype_get(dtype)->bits == 64 || bits >> ax_dtype_get(dtype)->bits == 0);
}

bool ax_hlo_number(const ax_hlo_attribute *attribute, ax_dtype *dtype, ax_element *out) {
  const ax_hlo_value_type *type = attribute->type;
  *out = (ax_element){0};
  if (type != NULL && (!type->element_known || ax_is_key(type->dtype))) return false;
  *dtype = type != NULL ? type->dtype : attribute->kind == AX_HLO_FLOAT ? AX_F64 : attribute->kind == AX_HLO_BOOL ? AX_BOOL : AX_S64;
  const ax_dtype part = ax_part_dtype(*dtype);
  switch (attribute->kind) {
    case AX_HLO_BOOL:
    case AX_HLO_INTEGER:
      if (ax_is_float(*dtype) || ax_is_complex(*dtype)) return false;
      ax_number_store(*dtype, out, 0, (ax_number){.i = attribute->integer});
      return true;
    case AX_HLO_FLOAT:
      return ax_is_float(*dtype) && float_of(attribute->text, *dtype, out);
    case AX_HLO_COMPLEX:
      return ax_is_complex(*dtype) && float_of(attribute->items[0].text, part, out) &&
             float_of(attribute->items[1].text, part, (char *)out + ax_dtype_bytes(part));
    default:
      return false;
  }
}

/* --- Kinds --- */

static ax_status wrong(const char *name, const ax_hlo_attribute *found, const char *wanted) {
  return ax_error(AX_INVALID_ARGUMENT, "the attribute %s %s %s", name, found == NULL ? "is missing: it must be" : "must be",
                  wanted);
}

ax_status ax_hlo_integer(const ax_hlo_operation *op, const char *name, int64_t *out) {
  const ax_hlo_attribute *found = ax_hlo_find(op, name);
  if (found == NULL || found->kind != AX_HLO_INTEGER) return wrong(name, found, "an integer");
  *out = found->integer;
  return AX_OK;
}

ax_status ax_hlo_bool(const ax_hlo_operation *op, const char *name, bool *out) {
  const ax_hlo_attribute *found = ax_hlo_find(op, name);
  if (found != NULL && found->kind == AX_HLO_UNIT) return *out = true, AX_OK;
  if (found == NULL || found->kind != AX_HLO_BOOL) return wrong(name, found, "true or false");
  *out = found->integer != 0;
  return AX_OK;
}

ax_status ax_hlo_integer_or(const ax_hlo_operation *op, const char *name, int64_t otherwise, int64_t *out) {
  *out = otherwise;
  return ax_hlo_find(op, name) != NULL ? ax_hlo_integer(op, name, out) : AX_OK;
}

ax_status ax_hlo_bool_or(const ax_hlo_operation *op, const char *name, bool otherwise, bool *out) {
  *out = otherwise;
  return ax_hlo_find(op, name) != NULL ? ax_hlo_bool(op, name, out) : AX_OK;
}

/* [1, 2], array<i64: 1, 2> and dense<[1, 2]> : tensor<2xi64>. False: it is none of these, or too long. */
static bool as_integers(const ax_hlo_attribute *found, ax_dims *out) {
  int64_t count = found->count;
  if (found->kind == AX_HLO_ELEMENTS) {
    if (found->type->dtype != AX_S64 || found->type->rank > 1) return false;
    count = found->type->rank == 0 ? 1 : found->type->dims[0];
  } else if (found->kind == AX_HLO_NUMBERS ? found->type != NULL && ax_is_float(found->type->dtype) : found->kind != AX_HLO_ARRAY) {
    return false;
  }
  if (count > AX_MAX_RANK) return false;
  out->count = (uint32_t)count;
  for (uint32_t i = 0; i < out->count; i++) {
    if (found->kind == AX_HLO_ARRAY && found->items[i].kind != AX_HLO_INTEGER && found->items[i].kind != AX_HLO_BOOL) return false;
    out->v[i] = found->kind == AX_HLO_ARRAY     ? found->items[i].integer
                : found->kind == AX_HLO_NUMBERS ? found->numbers[i]
                                                : ((const int64_t *)found->data)[found->splat ? 0 : i];
  }
  return true;
}

ax_status ax_hlo_integers(const ax_hlo_operation *op, const char *name, ax_dims *out) {
  const ax_hlo_attribute *found = ax_hlo_find(op, name);
  return found != NULL && as_integers(found, out) ? AX_OK : wrong(name, found, "a list of at most 16 integers");
}

ax_status ax_hlo_item_integers(const ax_hlo_attribute *dictionary, const char *name, ax_dims *out) {
  const ax_hlo_attribute *found = ax_hlo_item(dictionary, name);
  out->count = 0;
  if (found == NULL || as_integers(found, out)) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%.*s must be a list of at most 16 integers", (int)found->name.length, found->name.start);
}

ax_status ax_hlo_integers_or(const ax_hlo_operation *op, const char *name, uint32_t count, int64_t otherwise, ax_dims *out) {
  *out = (ax_dims){0};
  if (ax_hlo_find(op, name) != NULL) AX_TRY(ax_hlo_integers(op, name, out));
  if (out->count == 0)
    for (; out->count < count; out->count++) out->v[out->count] = otherwise;
  return out->count == count ? AX_OK
                             : ax_error(AX_INVALID_ARGUMENT, "%s has %u entries, and must have %u", name, out->count, count);
}

/* Entry `row` of the attribute; false: it is no pair of integers. */
static bool pair_of(const ax_hlo_attribute *found, uint32_t count, uint32_t row, int64_t out[2]) {
  if (found->kind == AX_HLO_ELEMENTS) {
    const ax_hlo_value_type *type = found->type;
    const int64_t *v = found->data;
    if (!type->element_known || type->dtype != AX_S64 || type->rank != 2 || type->dims[0] != count || type->dims[1] != 2)
      return false;
    out[0] = v[found->splat ? 0 : 2 * row], out[1] = v[found->splat ? 0 : 2 * row + 1];
    return true;
  }
  const ax_hlo_attribute *pair = found->kind == AX_HLO_ARRAY && found->count == count ? &found->items[row] : NULL;
  if (pair == NULL || pair->kind != AX_HLO_ARRAY || pair->count != 2) return false;
  if (pair->items[0].kind != AX_HLO_INTEGER || pair->items[1].kind != AX_HLO_INTEGER) return false;
  out[0] = pair->items[0].integer, out[1] = pair->items[1].integer;
  return true;
}

ax_status ax_hlo_read_padding(const ax_hlo_operation *op, uint32_t count, ax_dims *low, ax_dims *high) {
  const ax_hlo_attribute *found = ax_hlo_find(op, "padding");
  int64_t pair[2] = {0, 0};
  low->count = high->count = count;
  if (found != NULL && found->kind == AX_HLO_ARRAY && found->count == 0) found = NULL;
  for (uint32_t d = 0; d < count; d++) {
    if (found != NULL && !pair_of(found, count, d, pair))
      return ax_error(AX_INVALID_ARGUMENT, "padding must be a list of %u pairs of integers", count);
    low->v[d] = pair[0], high->v[d] = pair[1];
  }
  return AX_OK;
}

/* --- Types --- */

ax_status ax_hlo_open_type(const ax_hlo_value_type *type, ax_type *out) {
  const int length = type->text.length < 200 ? (int)type->text.length : 200;
  const char *text = type->text.start;
  if (type->kind == AX_HLO_TOKEN) return *out = (ax_type){.form = AX_TOKEN, .dtype = AX_BOOL}, AX_OK;
  if (type->kind != AX_HLO_TENSOR) return ax_error(AX_ABSENT, "values of type %.*s are not supported", length, text);
  if (!type->element_known) return ax_error(AX_ABSENT, "%.*s: elements of this type are not supported", length, text);
  if (type->dynamic && type->encoding != NULL) /* #stablehlo.bounds<..> */
    return ax_error(AX_ABSENT, "%.*s: extents of which only a bound is known are not supported", length, text);
  if (type->rank > AX_MAX_RANK) return ax_error(AX_ABSENT, "%.*s: the rank exceeds %d", length, text, AX_MAX_RANK);
  *out = (ax_type){.form = AX_ARRAY, .dtype = type->dtype, .rank = type->ranked ? type->rank : AX_MAX_RANK};
  if (type->rank > 0) memcpy(out->dims, type->dims, type->rank * sizeof type->dims[0]);
  for (uint32_t d = 0; !type->ranked && d < out->rank; d++) out->dims[d] = AX_HLO_DYNAMIC;
  return AX_OK;
}

ax_status ax_hlo_array_type(const ax_hlo_value_type *type, ax_type *out) {
  AX_TRY(ax_hlo_open_type(type, out));
  if (type->kind != AX_HLO_TENSOR || (type->ranked && !type->dynamic)) return AX_OK;
  return ax_error(AX_ABSENT, "%.*s: shapes that are not known are not supported here", type->text.length < 200 ? (int)type->text.length : 200,
                  type->text.start);
}

bool ax_hlo_type_fits(const ax_hlo_value_type *said, const ax_type *is) {
  ax_type open;
  if (ax_hlo_open_type(said, &open) != AX_OK || is->form != open.form || is->dtype != open.dtype) return false;
  if (said->kind != AX_HLO_TENSOR || !said->ranked) return true;
  bool fits = is->rank == open.rank;
  for (uint32_t d = 0; fits && d < open.rank; d++) fits = open.dims[d] == AX_HLO_DYNAMIC || open.dims[d] == is->dims[d];
  return fits;
}

bool ax_hlo_same_quantized(const ax_hlo_quantized *a, const ax_hlo_quantized *b) {
  if (a == NULL || b == NULL) return a == b;
  return a->storage == b->storage && a->expressed == b->expressed && a->least == b->least && a->greatest == b->greatest &&
         a->axis == b->axis && a->count == b->count && memcmp(a->scales, b->scales, a->count * sizeof a->scales[0]) == 0 &&
         memcmp(a->zeros, b->zeros, a->count * sizeof a->zeros[0]) == 0;
}
