#include "hlo/print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/canonical.h"
#include "ir/dtype.h"
#include "ir/number.h"

typedef struct printer {
  const ax_hlo_module *module;
  ax_text *text;
  ax_arena arena;
  uint32_t *names; /* by value */
  uint32_t next, indent;
  uint32_t attributes_left; /* that may still be printed, since parts are shared */
  uint32_t types_left;      /* parts of types, likewise */
  bool lacks_types;         /* some were left out, of which there are too many */
  bool bare;                /* inside <..> of a dialect, where integers have no types */
} printer;

static void add_slice(printer *p, ax_hlo_slice slice) { ax_text_add_bytes(p->text, slice.start, slice.length); }

static void add_quoted(printer *p, ax_hlo_slice slice) {
  ax_text_add(p->text, "\"");
  for (size_t i = 0; i < slice.length; i++) {
    const unsigned char c = (unsigned char)slice.start[i];
    if (c < ' ' || c == '"' || c == '\\' || c >= 0x7f)
      ax_text_add(p->text, "\\%02X", c);
    else
      ax_text_add_bytes(p->text, &slice.start[i], 1);
  }
  ax_text_add(p->text, "\"");
}

/* --- Types --- */

static void add_type(printer *p, const ax_hlo_value_type *type);

static void add_types(printer *p, const char *open, const ax_hlo_value_type *const *types, uint32_t count, const char *close) {
  ax_text_add(p->text, "%s", open);
  for (uint32_t i = 0; i < count; i++) {
    if (i > 0) ax_text_add(p->text, ", ");
    add_type(p, types[i]);
  }
  ax_text_add(p->text, "%s", close);
}

static void add_type(printer *p, const ax_hlo_value_type *type) {
  p->lacks_types = p->lacks_types || type->part_count > p->types_left;
  if (p->lacks_types) return;
  p->types_left -= type->part_count;
  if (type->kind == AX_HLO_TUPLE || type->kind == AX_HLO_FUTURE_TYPE) {
    add_types(p, type->kind == AX_HLO_TUPLE ? "tuple<" : "!stablehlo.future<", type->parts, type->part_count, ">");
    return;
  }
  if (type->kind != AX_HLO_FUNCTION) {
    add_slice(p, type->text);
    return;
  }
  const uint32_t results = type->part_count - type->in_count;
  add_types(p, "(", type->parts, type->in_count, ")");
  ax_text_add(p->text, " -> ");
  if (results == 1 && type->parts[type->in_count]->kind != AX_HLO_FUNCTION)
    add_type(p, type->parts[type->in_count]);
  else
    add_types(p, "(", results > 0 ? &type->parts[type->in_count] : NULL, results, ")");
}

/* --- Attributes --- */

static ax_status add_attribute(printer *p, const ax_hlo_attribute *a);
static ax_status add_group(printer *p, const ax_hlo_group *group, const ax_hlo_attribute *a);

static int by_name(const void *a, const void *b) {
  return ax_hlo_slice_order((*(const ax_hlo_attribute *const *)a)->name, (*(const ax_hlo_attribute *const *)b)->name);
}

static bool is_word(ax_hlo_slice name) {
  for (size_t i = 0; i < name.length; i++) {
    const char c = name.start[i];
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && (i == 0 || ((c < '0' || c > '9') && c != '.' && c != '$'))) return false;
  }
  return name.length > 0;
}

static ax_status add_entry(printer *p, const ax_hlo_attribute *a) {
  if (is_word(a->name))
    add_slice(p, a->name);
  else
    add_quoted(p, a->name);
  if (a->kind == AX_HLO_UNIT) return AX_OK;
  ax_text_add(p->text, " = ");
  return add_attribute(p, a);
}

/* a = .., b = .., in the order of the names. */
static ax_status add_entries(printer *p, const ax_hlo_attribute *const *entries, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (i > 0) ax_text_add(p->text, ", ");
    AX_TRY(add_entry(p, entries[i]));
  }
  return AX_OK;
}

static ax_status sorted(printer *p, const ax_hlo_attribute *items, uint32_t count, const ax_hlo_attribute ***out) {
  *out = ax_arena_alloc(&p->arena, (count + 1) * sizeof **out);
  if (*out == NULL) return ax_out_of_memory(count * sizeof **out);
  for (uint32_t i = 0; i < count; i++) (*out)[i] = &items[i];
  if (count > 1) qsort(*out, count, sizeof **out, by_name);
  return AX_OK;
}

/* {a = 1 : i64}, or #dialect.name<a = 1>; of a name in the tables the entries stand as these say. */
static ax_status add_dictionary(printer *p, const ax_hlo_attribute *a) {
  const ax_hlo_attribute **entries;
  const bool before = p->bare, named = a->text.length > 0;
  const ax_hlo_group *group = named ? ax_hlo_find_named_group(a->text) : NULL;
  if (group != NULL) return add_group(p, group, a);
  AX_TRY(sorted(p, a->items, a->count, &entries));
  if (named) ax_text_add(p->text, "#%.*s", (int)a->text.length, a->text.start);
  p->bare = named;
  ax_text_add(p->text, named ? "<" : "{");
  AX_TRY(add_entries(p, entries, a->count));
  ax_text_add(p->text, named ? ">" : "}");
  p->bare = before;
  return AX_OK;
}

static ax_status add_array(printer *p, const ax_hlo_attribute *a) {
  ax_text_add(p->text, "[");
  for (uint32_t i = 0; i < a->count; i++) {
    if (i > 0) ax_text_add(p->text, ", ");
    AX_TRY(add_attribute(p, &a->items[i]));
  }
  ax_text_add(p->text, "]");
  return AX_OK;
}

static void add_numbers(printer *p, const ax_hlo_attribute *a, const char *type) {
  ax_text_add(p->text, p->bare ? "[" : "array<%s", type);
  for (uint32_t i = 0; i < a->count; i++) {
    ax_text_add(p->text, i > 0 ? ", " : p->bare ? "" : ": ");
    if (a->type != NULL && ax_is_float(a->type->dtype))
      ax_text_add(p->text, "0x%0*" PRIX64, (int)(2 * ax_dtype_bytes(a->type->dtype)), (uint64_t)a->numbers[i]);
    else if (strcmp(type, "i1") == 0)
      ax_text_add(p->text, a->numbers[i] != 0 ? "true" : "false");
    else
      ax_text_add(p->text, "%" PRId64, a->numbers[i]);
  }
  ax_text_add(p->text, p->bare ? "]" : ">");
}

static void add_type_behind(printer *p, const ax_hlo_value_type *type) {
  if (p->bare || type == NULL) return;
  ax_text_add(p->text, " : ");
  add_slice(p, type->text);
}

/* Truth values say themselves of what type they are. */
static void add_number(printer *p, const ax_hlo_attribute *a) {
  ax_hlo_print_number(p->text, a);
  if (a->type != NULL && a->type->element_known && a->type->dtype == AX_BOOL) return;
  if (a->type != NULL || a->kind != AX_HLO_INTEGER) add_type_behind(p, a->type);
  else if (!p->bare) ax_text_add(p->text, " : i64");
}

/* #complex.number<:f32 1.0, 2.0> : complex<f32> */
static void add_complex(printer *p, const ax_hlo_attribute *a) {
  ax_text_add(p->text, "#complex.number<:%.*s ", (int)a->items[0].type->text.length, a->items[0].type->text.start);
  for (uint32_t i = 0; i < 2; i++) {
    ax_text_add(p->text, "%s", i > 0 ? ", " : "");
    ax_hlo_print_number(p->text, &a->items[i]);
  }
  ax_text_add(p->text, ">");
  add_type_behind(p, a->type);
}

static void add_symbol(printer *p, ax_hlo_slice name) {
  ax_text_add(p->text, "@");
  if (is_word(name))
    add_slice(p, name);
  else
    add_quoted(p, name);
}

/* #stablehlo<precision HIGH>; a word that is of no enumeration alone. */
static void add_word_of(printer *p, const ax_hlo_attribute *a) {
  const ax_hlo_attribute *of = a->count == 1 ? &a->items[0] : NULL;
  if (of == NULL) {
    add_slice(p, a->text);
    return;
  }
  ax_text_add(p->text, "#%.*s<", (int)of->name.length, of->name.start);
  if (of->text.length > 0) ax_text_add(p->text, "%.*s ", (int)of->text.length, of->text.start);
  ax_text_add(p->text, "%.*s>", (int)a->text.length, a->text.start);
}

static ax_status add_value(printer *p, const ax_hlo_attribute *a) {
  switch (a->kind) {
    case AX_HLO_UNIT:
      ax_text_add(p->text, "unit");
      return AX_OK;
    case AX_HLO_BOOL:
      ax_text_add(p->text, a->integer != 0 ? "true" : "false");
      return AX_OK;
    case AX_HLO_INTEGER:
    case AX_HLO_FLOAT:
      add_number(p, a);
      return AX_OK;
    case AX_HLO_COMPLEX:
      add_complex(p, a);
      return AX_OK;
    case AX_HLO_STRING:
      add_quoted(p, a->text);
      add_type_behind(p, a->type);
      return AX_OK;
    case AX_HLO_SYMBOL:
      for (uint32_t i = 0; i < a->count; i++) {
        add_symbol(p, a->items[i].text);
        ax_text_add(p->text, "::");
      }
      add_symbol(p, a->text);
      return AX_OK;
    case AX_HLO_WORD:
      add_word_of(p, a);
      return AX_OK;
    case AX_HLO_TYPE:
      add_type(p, a->type);
      return AX_OK;
    case AX_HLO_ARRAY:
      return add_array(p, a);
    case AX_HLO_DICTIONARY:
      return add_dictionary(p, a);
    case AX_HLO_NUMBERS:
      add_numbers(p, a, a->type != NULL && a->type->element_known ? ax_dtype_get(a->type->dtype)->hlo : "i64");
      return AX_OK;
    case AX_HLO_ELEMENTS:
      ax_hlo_print_elements(p->text, a);
      return AX_OK;
    default:
      add_slice(p, a->text);
      return AX_OK;
  }
}

static ax_status add_attribute(printer *p, const ax_hlo_attribute *a) {
  if (p->attributes_left == 0) return ax_error(AX_ABSENT, "%s: the attributes are too large as text", p->module->source);
  p->attributes_left--;
  return add_value(p, a);
}

/* --- Attributes of the tables --- */

/* [b, 0, f]: the two dimensions with letters, and the spatial ones. */
static void add_conv_part(printer *p, const ax_hlo_attribute *numbers, const ax_hlo_slot *slots, const char letters[2]) {
  const ax_hlo_attribute *first = ax_hlo_item(numbers, slots[0].name), *second = ax_hlo_item(numbers, slots[1].name);
  const ax_hlo_attribute *spatial = ax_hlo_item(numbers, slots[2].name);
  const uint32_t count = spatial != NULL && spatial->kind == AX_HLO_NUMBERS ? spatial->count : 0;
  ax_text_add(p->text, "[");
  for (int64_t place = 0; place < (int64_t)count + 2; place++) {
    if (place > 0) ax_text_add(p->text, ", ");
    if (first != NULL && first->integer == place)
      ax_text_add(p->text, "%c", letters[0]);
    else if (second != NULL && second->integer == place)
      ax_text_add(p->text, "%c", letters[1]);
    for (uint32_t i = 0; i < count; i++)
      if (spatial->numbers[i] == place) ax_text_add(p->text, "%u", i);
  }
  ax_text_add(p->text, "]");
}

static void add_conv(printer *p, const ax_hlo_group *group, const ax_hlo_attribute *numbers) {
  ax_text_add(p->text, "#%s<", group->name);
  add_conv_part(p, numbers, group->slots, "bf");
  ax_text_add(p->text, "x");
  add_conv_part(p, numbers, group->slots + 3, "io");
  ax_text_add(p->text, "->");
  add_conv_part(p, numbers, group->slots + 6, "bf");
  ax_text_add(p->text, ">");
}

/* The group's entries in their order, each as its slot says. Collectives' channels have a type that means nothing. */
static ax_status add_group(printer *p, const ax_hlo_group *group, const ax_hlo_attribute *a) {
  const bool before = p->bare;
  const char *comma = "";
  const bool all = strcmp(group->name, "stablehlo.output_operand_alias") == 0; /* which has no defaults */
  if (a->kind != AX_HLO_DICTIONARY) return add_attribute(p, a);
  if (strcmp(group->name, "stablehlo.conv") == 0) return add_conv(p, group, a), AX_OK;
  ax_text_add(p->text, "#%s<", group->name);
  p->bare = true;
  for (uint32_t i = 0; i < group->count; i++) {
    const ax_hlo_slot *slot = &group->slots[i];
    const ax_hlo_attribute *item = ax_hlo_item(a, slot->name);
    ax_hlo_attribute canonical = {0};
    if (item == NULL) continue;
    AX_TRY(ax_hlo_canonical(&p->arena, slot, item, &canonical));
    if (ax_hlo_is_default(slot, &canonical) && !all) continue;
    if (slot->vhlo_name != NULL && slot->vhlo_name[0] == '\0') canonical.integer = 0;
    ax_text_add(p->text, "%s%s = ", comma, slot->name);
    AX_TRY(add_attribute(p, &canonical));
    comma = ", ";
  }
  ax_text_add(p->text, ">");
  p->bare = before;
  return AX_OK;
}

static ax_status add_word(printer *p, const ax_hlo_slot *slot, const ax_hlo_attribute *a, const char *dialect) {
  if (a->kind != AX_HLO_WORD) return add_attribute(p, a);
  ax_text_add(p->text, "#%s<%s %.*s>", dialect, slot->words->name, (int)a->text.length, a->text.start);
  return AX_OK;
}

static ax_status add_words(printer *p, const ax_hlo_slot *slot, const ax_hlo_attribute *a, const char *dialect) {
  if (a->kind != AX_HLO_ARRAY) return add_attribute(p, a);
  ax_text_add(p->text, "[");
  for (uint32_t i = 0; i < a->count; i++) {
    if (i > 0) ax_text_add(p->text, ", ");
    AX_TRY(add_word(p, slot, &a->items[i], dialect));
  }
  ax_text_add(p->text, "]");
  return AX_OK;
}

static ax_status add_accuracy(printer *p, const ax_hlo_attribute *a) {
  const ax_hlo_attribute *mode = ax_hlo_item(a, "mode"), *ulps = ax_hlo_item(a, "ulps");
  static const char *const names[] = {"atol", "rtol"};
  if (mode == NULL) return add_attribute(p, a);
  ax_text_add(p->text, "#stablehlo.result_accuracy<");
  p->bare = true;
  for (size_t i = 0; i < AX_COUNT(names); i++) {
    const ax_hlo_attribute *number = ax_hlo_item(a, names[i]);
    ax_text_add(p->text, "%s = ", names[i]);
    if (number != NULL)
      AX_TRY(add_attribute(p, number));
    else
      ax_text_add(p->text, "%.16e", 0.0);
    ax_text_add(p->text, ", ");
  }
  p->bare = false;
  ax_text_add(p->text, "ulps = %" PRId64 ", mode = #stablehlo.result_accuracy_mode<%.*s>>", ulps != NULL ? ulps->integer : 0,
              (int)mode->text.length, mode->text.start);
  return AX_OK;
}

static ax_status add_slot(printer *p, const ax_hlo_slot *slot, const ax_hlo_attribute *a, const char *dialect) {
  ax_text_add(p->text, "%s", slot->name);
  if (a->kind == AX_HLO_UNIT) return AX_OK;
  ax_text_add(p->text, " = ");
  switch (slot->kind) {
    case AX_HLO_SLOT_GROUP:
      return add_group(p, slot->group, a);
    case AX_HLO_SLOT_WORD:
      return add_word(p, slot, a, dialect);
    case AX_HLO_SLOT_WORDS:
      return add_words(p, slot, a, dialect);
    case AX_HLO_SLOT_ACCURACY:
      return add_accuracy(p, a);
    case AX_HLO_SLOT_TRUTHS:
    case AX_HLO_SLOT_SEGMENTS:
      if (a->kind != AX_HLO_NUMBERS) return add_attribute(p, a);
      add_numbers(p, a, slot->kind == AX_HLO_SLOT_TRUTHS ? "i1" : "i32");
      return AX_OK;
    case AX_HLO_SLOT_INTEGER:
    case AX_HLO_SLOT_INTEGER32:
    case AX_HLO_SLOT_NUMBER:
      if (a->kind != AX_HLO_INTEGER) return add_attribute(p, a);
      ax_text_add(p->text, "%" PRId64 " : %s", a->integer, slot->kind == AX_HLO_SLOT_INTEGER ? "i64" : "i32");
      return AX_OK;
    default:
      return add_attribute(p, a);
  }
}

static const ax_hlo_slot *slot_of(const ax_hlo_listed *known, ax_hlo_slice name) {
  for (uint32_t i = 0; known != NULL && i < known->count; i++)
    if (ax_hlo_slice_is(name, known->slots[i].name)) return &known->slots[i];
  return NULL;
}

/* One attribute of an operation; false in *said if it may be left out. */
static ax_status add_own(printer *p, const ax_hlo_listed *known, const ax_hlo_attribute *a, const char *dialect,
                         const char **comma) {
  const ax_hlo_slot *slot = slot_of(known, a->name);
  ax_hlo_attribute canonical = *a;
  if (slot != NULL) AX_TRY(ax_hlo_canonical(&p->arena, slot, a, &canonical));
  if (slot != NULL && (ax_hlo_is_default(slot, &canonical) || slot->last > 0)) return AX_OK;
  if (ax_hlo_slice_is(a->name, AX_HLO_ARGUMENT_NAMES)) return AX_OK;
  ax_text_add(p->text, "%s", *comma);
  *comma = ", ";
  return slot != NULL ? add_slot(p, slot, &canonical, dialect) : add_entry(p, a);
}

/* {a = 1 : i64, ..}; nothing if all may be left out. `open` stands before the first. */
static ax_status add_attributes(printer *p, const char *open, ax_hlo_slice op, const ax_hlo_attribute *items, uint32_t count) {
  const ax_hlo_attribute **entries;
  const char *comma = open;
  const char *dialect = op.length > 5 && memcmp(op.start, "chlo.", 5) == 0 ? "chlo" : "stablehlo";
  const ax_hlo_listed *known = ax_hlo_find_known(op);
  AX_TRY(sorted(p, items, count, &entries));
  for (uint32_t i = 0; i < count; i++) AX_TRY(add_own(p, known, entries[i], dialect, &comma));
  if (comma != open) ax_text_add(p->text, "}");
  return AX_OK;
}

/* --- Operations --- */

static ax_status add_operation(printer *p, const ax_hlo_operation *op);

static void new_line(printer *p) { ax_text_add(p->text, "\n%*s", (int)(2 * p->indent), ""); }

static void name_values(printer *p, uint32_t first, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) p->names[first + i] = p->next++;
}

static void add_values(printer *p, const uint32_t *values, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) ax_text_add(p->text, "%s%%%u", i > 0 ? ", " : "", p->names[values[i]]);
}

static ax_status add_block(printer *p, const ax_hlo_block *block) {
  name_values(p, block->argument, block->argument_count);
  if (block->argument_count > 0) {
    new_line(p);
    ax_text_add(p->text, "^bb0(");
    for (uint32_t i = 0; i < block->argument_count; i++) {
      ax_text_add(p->text, "%s%%%u: ", i > 0 ? ", " : "", p->names[block->argument + i]);
      add_type(p, p->module->values[block->argument + i]);
    }
    ax_text_add(p->text, "):");
  }
  p->indent++;
  for (uint32_t i = 0; i < block->operation_count; i++) AX_TRY(add_operation(p, block->operations[i]));
  p->indent--;
  return AX_OK;
}

static ax_status add_regions(printer *p, const ax_hlo_operation *op) {
  for (uint32_t i = 0; i < op->region_count; i++) {
    ax_text_add(p->text, i == 0 ? " ({" : ", {");
    for (uint32_t k = 0; k < op->regions[i].block_count; k++) AX_TRY(add_block(p, &op->regions[i].blocks[k]));
    new_line(p);
    ax_text_add(p->text, "}");
  }
  if (op->region_count > 0) ax_text_add(p->text, ")");
  return AX_OK;
}

static void add_signature(printer *p, const ax_hlo_operation *op) {
  ax_text_add(p->text, " : (");
  for (uint32_t i = 0; i < op->operand_count; i++) {
    ax_text_add(p->text, i > 0 ? ", " : "");
    add_type(p, p->module->values[op->operands[i]]);
  }
  ax_text_add(p->text, ") -> ");
  if (op->result_count == 1 && p->module->values[op->result]->kind != AX_HLO_FUNCTION)
    add_type(p, p->module->values[op->result]);
  else
    add_types(p, "(", op->result_count > 0 ? &p->module->values[op->result] : NULL, op->result_count, ")");
}

/* {a = 1 : i64} behind an argument or result: entry i of a list of dictionaries. */
static ax_status add_listed(printer *p, const ax_hlo_attribute *list, uint32_t i) {
  const ax_hlo_attribute *item = list != NULL && list->kind == AX_HLO_ARRAY && i < list->count ? &list->items[i] : NULL;
  if (item == NULL || item->kind != AX_HLO_DICTIONARY || item->count == 0) return AX_OK;
  ax_text_add(p->text, " ");
  return add_attribute(p, item);
}

static bool is_spelled(ax_hlo_slice name) {
  static const char *const names[] = {"sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs", AX_HLO_ARGUMENT_NAMES};
  for (size_t i = 0; i < AX_COUNT(names); i++)
    if (ax_hlo_slice_is(name, names[i])) return true;
  return false;
}

/* attributes {..}: what the short form does not say otherwise. */
static ax_status add_others(printer *p, const ax_hlo_attribute *items, uint32_t count) {
  const ax_hlo_attribute **entries;
  const char *comma = " attributes {";
  AX_TRY(sorted(p, items, count, &entries));
  for (uint32_t i = 0; i < count; i++) {
    if (is_spelled(entries[i]->name)) continue;
    ax_text_add(p->text, "%s", comma);
    AX_TRY(add_entry(p, entries[i]));
    comma = ", ";
  }
  if (comma[0] == ',') ax_text_add(p->text, "}");
  return AX_OK;
}

/* (%0: tensor<4xf32> {..}) -> (tensor<4xf32>): the types alone if there is no block. */
static ax_status add_declared(printer *p, const ax_hlo_operation *op, const ax_hlo_value_type *function, const ax_hlo_block *block) {
  const ax_hlo_attribute *in_attributes = ax_hlo_find(op, "arg_attrs"), *out_attributes = ax_hlo_find(op, "res_attrs");
  ax_text_add(p->text, "(");
  for (uint32_t i = 0; i < function->in_count; i++) {
    ax_text_add(p->text, "%s", i > 0 ? ", " : "");
    if (block != NULL) ax_text_add(p->text, "%%%u: ", p->names[block->argument + i]);
    add_type(p, function->parts[i]);
    AX_TRY(add_listed(p, in_attributes, i));
  }
  ax_text_add(p->text, ") -> (");
  for (uint32_t k = 0; k + function->in_count < function->part_count; k++) {
    ax_text_add(p->text, k > 0 ? ", " : "");
    add_type(p, function->parts[function->in_count + k]);
    AX_TRY(add_listed(p, out_attributes, k));
  }
  ax_text_add(p->text, ")");
  return AX_OK;
}

/* func.func public @main(%0: tensor<4xf32>) -> (tensor<4xf32>) {..}; of a declaration the first line. Values of a function are numbered
   from 0. */
static ax_status add_function(printer *p, const ax_hlo_operation *op, const ax_hlo_attribute *name, const ax_hlo_attribute *type) {
  const ax_hlo_attribute *visibility = ax_hlo_find(op, "sym_visibility");
  const ax_hlo_block *block = op->region_count == 1 && op->regions[0].block_count == 1 ? &op->regions[0].blocks[0] : NULL;
  p->next = 0;
  if (block != NULL) name_values(p, block->argument, block->argument_count);
  new_line(p);
  ax_text_add(p->text, "func.func ");
  if (visibility != NULL && visibility->text.length > 0) ax_text_add(p->text, "%.*s ", (int)visibility->text.length, visibility->text.start);
  AX_TRY(add_value(p, &(ax_hlo_attribute){.kind = AX_HLO_SYMBOL, .text = name->text}));
  AX_TRY(add_declared(p, op, type->type, block));
  AX_TRY(add_others(p, op->attributes, op->attribute_count));
  if (block == NULL) return AX_OK;
  ax_text_add(p->text, " {");
  p->indent++;
  for (uint32_t i = 0; i < block->operation_count; i++) AX_TRY(add_operation(p, block->operations[i]));
  p->indent--;
  new_line(p);
  ax_text_add(p->text, "}");
  return AX_OK;
}

/* Whether the operation is a function, or the declaration of one, that the short form can say. */
static bool is_function(const ax_hlo_operation *op, const ax_hlo_attribute **name, const ax_hlo_attribute **type) {
  *name = ax_hlo_find(op, "sym_name"), *type = ax_hlo_find(op, "function_type");
  if (!ax_hlo_slice_is(op->name, "func.func") || *name == NULL || *type == NULL || (*type)->kind != AX_HLO_TYPE) return false;
  const uint32_t blocks = op->region_count > 0 ? op->regions[0].block_count : 0;
  return (*type)->type->kind == AX_HLO_FUNCTION && op->region_count <= 1 &&
         (blocks == 0 || (blocks == 1 && op->regions[0].blocks[0].argument_count == (*type)->type->in_count));
}

static ax_status add_operation(printer *p, const ax_hlo_operation *op) {
  const ax_hlo_attribute *name, *type;
  if (is_function(op, &name, &type)) return add_function(p, op, name, type);
  new_line(p);
  name_values(p, op->result, op->result_count);
  for (uint32_t k = 0; k < op->result_count; k++) ax_text_add(p->text, "%s%%%u", k > 0 ? ", " : "", p->names[op->result + k]);
  ax_text_add(p->text, "%s\"%.*s\"(", op->result_count > 0 ? " = " : "", (int)op->name.length, op->name.start);
  add_values(p, op->operands, op->operand_count);
  ax_text_add(p->text, ")");
  AX_TRY(add_regions(p, op));
  AX_TRY(add_attributes(p, " {", op->name, op->attributes, op->attribute_count));
  add_signature(p, op);
  return AX_OK;
}

/* module @name attributes {..} {. */
static ax_status add_module(printer *p) {
  const ax_hlo_module *m = p->module;
  p->names = ax_arena_alloc(&p->arena, (m->value_count + 1) * sizeof p->names[0]);
  if (p->names == NULL) return ax_out_of_memory(m->value_count * sizeof p->names[0]);
  ax_text_add(p->text, "module");
  for (uint32_t i = 0; i < m->attribute_count; i++) {
    if (!ax_hlo_slice_is(m->attributes[i].name, "sym_name")) continue;
    ax_text_add(p->text, " ");
    AX_TRY(add_value(p, &(ax_hlo_attribute){.kind = AX_HLO_SYMBOL, .text = m->attributes[i].text}));
  }
  AX_TRY(add_others(p, m->attributes, m->attribute_count));
  ax_text_add(p->text, " {");
  AX_TRY(add_block(p, &m->body));
  ax_text_add(p->text, "\n}\n");
  return AX_OK;
}

static printer printer_of(const ax_hlo_module *module, ax_text *text) {
  return (printer){.module = module, .text = text, .attributes_left = 1 << 24, .types_left = 1 << 26};
}

static ax_status finish(printer *p, ax_status status) {
  ax_arena_deinit(&p->arena);
  AX_TRY(status);
  if (p->lacks_types) return ax_error(AX_ABSENT, "%s: the types are too large as text", p->module->source);
  return p->text->failed ? ax_out_of_memory(p->text->length) : AX_OK;
}

ax_status ax_hlo_print(const ax_hlo_module *module, ax_text *text) {
  printer p = printer_of(module, text);
  return finish(&p, add_module(&p));
}

ax_status ax_hlo_print_attributes(const ax_hlo_module *module, const ax_hlo_operation *op, ax_text *text) {
  printer p = printer_of(module, text);
  const size_t before = text->length;
  const ax_status status = add_attributes(&p, "{", op->name, op->attributes, op->attribute_count);
  if (text->length == before) ax_text_add(text, "{}");
  return finish(&p, status);
}

ax_status ax_hlo_print_attribute(const ax_hlo_module *module, const ax_hlo_attribute *attribute, ax_text *text) {
  printer p = printer_of(module, text);
  return finish(&p, add_attribute(&p, attribute));
}

ax_status ax_hlo_print_type(const ax_hlo_module *module, const ax_hlo_value_type *type, ax_text *text) {
  printer p = printer_of(module, text);
  add_type(&p, type);
  return finish(&p, AX_OK);
}
