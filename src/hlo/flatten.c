/* Operations are gone through in the order of the text, so that operands are known. Those that have to do with no such value stay as
   they are; of others there is a copy with other operands, and with results that have new numbers, one after the other. */
#include "hlo/flatten.h"

#include <stdio.h>
#include <string.h>

#include "hlo/sdy.h"

enum {
  most_nested = 64,      /* tuples inside each other */
  most_parts = 1u << 22, /* of all tuples' types together, as often as they are looked at */
};

typedef struct numbers { /* of values */
  uint32_t *v, count, room;
} numbers;

typedef struct flatten {
  ax_hlo_module *module;
  uint32_t old_count;            /* values that the module had */
  uint32_t *first, *count;       /* by these: where in `leaves` the arrays are that they became; count + 1, 0: they are as they were */
  numbers leaves, list;          /* list: of the operation at hand */
  const ax_hlo_value_type **types; /* of the value at hand */
  uint32_t type_count, type_room, parts;
  uint32_t value_room, maker_room;
  const ax_hlo_value_type *entry_token; /* the array that a token of the entry function is; NULL: tokens are nothing there, too */
  const ax_hlo_value_type *token; /* the same while the function's signature is looked at; else NULL */
} flatten;

static bool is_made(const ax_hlo_value_type *type) {
  return type->kind == AX_HLO_TOKEN || type->kind == AX_HLO_TUPLE || type->kind == AX_HLO_FUTURE_TYPE;
}

static ax_status add_number(numbers *list, uint32_t value) {
  AX_TRY(ax_grow(&list->v, sizeof list->v[0], list->count, 1, &list->room));
  list->v[list->count++] = value;
  return AX_OK;
}

/* --- Types --- */

/* Adds the types of arrays that a value of this type is made of to w->types. */
static ax_status add_types(flatten *w, const ax_hlo_value_type *type, uint32_t depth) {
  if (depth > 0 && w->parts++ == most_parts) return ax_error(AX_ABSENT, "the tuples of the module have more than %u elements altogether", most_parts);
  if (type->kind == AX_HLO_TOKEN && w->token != NULL && depth == 0) type = w->token;
  if (type->kind == AX_HLO_TOKEN) return AX_OK;
  if (!is_made(type)) {
    AX_TRY(ax_grow(&w->types, sizeof w->types[0], w->type_count, 1, &w->type_room));
    w->types[w->type_count++] = type;
    return AX_OK;
  }
  if (depth == most_nested) return ax_error(AX_ABSENT, "tuples are nested more than %d deep", most_nested);
  for (uint32_t i = 0; i < type->part_count; i++) AX_TRY(add_types(w, type->parts[i], depth + 1));
  return AX_OK;
}

static ax_status find_types(flatten *w, const ax_hlo_value_type *type) {
  w->type_count = 0;
  return add_types(w, type, 0);
}

/* --- Values --- */

static bool has_moved(const flatten *w, uint32_t value) { return value < w->old_count && w->count[value] > 0; }

/* What the value became. */
static ax_status add_leaves(flatten *w, uint32_t value, numbers *out) {
  if (!has_moved(w, value)) return add_number(out, value);
  for (uint32_t i = 0; i + 1 < w->count[value]; i++) AX_TRY(add_number(out, w->leaves.v[w->first[value] + i]));
  return AX_OK;
}

/* `value` stands for these from now on. */
static ax_status become(flatten *w, uint32_t value, const uint32_t *leaves, uint32_t count) {
  const uint32_t first = w->leaves.count;
  for (uint32_t i = 0; i < count; i++) AX_TRY(add_number(&w->leaves, leaves[i]));
  w->first[value] = first, w->count[value] = count + 1;
  return AX_OK;
}

static bool any_made(const flatten *w, uint32_t first, uint32_t count) {
  bool any = false;
  for (uint32_t k = 0; k < count && !any; k++) any = is_made(w->module->values[first + k]);
  return any;
}

/* New values, one after the other, for what `count` values from *first on are made of. */
static ax_status make_values(flatten *w, const ax_hlo_operation *maker, uint32_t *first, uint32_t *count) {
  ax_hlo_module *m = w->module;
  const uint32_t old = *first, old_count = *count, begin = m->value_count;
  for (uint32_t k = 0; k < old_count; k++) {
    const uint32_t from = m->value_count;
    AX_TRY(find_types(w, m->values[old + k]));
    AX_TRY(ax_grow(&m->values, sizeof m->values[0], from, w->type_count, &w->value_room));
    AX_TRY(ax_grow(&m->makers, sizeof m->makers[0], from, w->type_count, &w->maker_room));
    w->first[old + k] = w->leaves.count, w->count[old + k] = w->type_count + 1;
    for (uint32_t i = 0; i < w->type_count; i++) {
      m->values[from + i] = w->types[i], m->makers[from + i] = maker;
      AX_TRY(add_number(&w->leaves, from + i));
    }
    m->value_count = from + w->type_count;
  }
  *first = begin, *count = m->value_count - begin;
  return AX_OK;
}

/* --- Operations that are values already --- */

static ax_status check_types(flatten *w, const ax_hlo_value_type *type, const uint32_t *leaves, uint32_t count) {
  AX_TRY(find_types(w, type));
  bool same = w->type_count <= count;
  for (uint32_t i = 0; same && i < w->type_count; i++) same = w->types[i] == w->module->values[leaves[i]];
  return same ? AX_OK : ax_error(AX_INVALID_ARGUMENT, "its elements have other types than %.*s", (int)type->text.length, type->text.start);
}

/* tuple, after_all, async_done, ..: the results are what the operands are made of. */
static ax_status join(flatten *w, const ax_hlo_operation *op) {
  uint32_t at = 0;
  for (uint32_t k = 0; k < op->result_count; k++) {
    AX_TRY(check_types(w, w->module->values[op->result + k], w->list.v + at, w->list.count - at));
    AX_TRY(become(w, op->result + k, w->list.v + at, w->type_count));
    at += w->type_count;
  }
  return at == w->list.count ? AX_OK : ax_error(AX_INVALID_ARGUMENT, "its operands have more elements than its results");
}

static ax_status pick(flatten *w, const ax_hlo_operation *op) {
  int64_t index;
  uint32_t before = 0;
  if (op->operand_count != 1 || op->result_count != 1) return ax_error(AX_INVALID_ARGUMENT, "it takes one operand and has one result");
  const ax_hlo_value_type *tuple = w->module->values[op->operands[0]];
  AX_TRY(ax_hlo_integer(op, "index", &index));
  if (tuple->kind != AX_HLO_TUPLE || index < 0 || index >= tuple->part_count)
    return ax_error(AX_INVALID_ARGUMENT, "%.*s has no element %lld", (int)tuple->text.length, tuple->text.start, (long long)index);
  for (uint32_t i = 0; i < (uint32_t)index; i++) {
    AX_TRY(find_types(w, tuple->parts[i]));
    before += w->type_count;
  }
  if (before > w->list.count) return ax_error(AX_INVALID_ARGUMENT, "the operand has fewer elements than its type");
  AX_TRY(check_types(w, w->module->values[op->result], w->list.v + before, w->list.count - before));
  return become(w, op->result, w->list.v + before, w->type_count);
}

static const struct {
  const char *op;
  ax_status (*rule)(flatten *w, const ax_hlo_operation *op);
} rules[] = {{"stablehlo.tuple", join},        {"stablehlo.get_tuple_element", pick}, {"stablehlo.after_all", join},
             {"stablehlo.create_token", join}, {"stablehlo.async_done", join}};

/* --- Functions --- */

/* The list with an item for each array: `item` makes that of leaf `i` of an argument that is made of others. */
static ax_status spread_items(flatten *w, ax_hlo_attribute *list, const ax_hlo_value_type *const *types, uint32_t count,
                              ax_status (*item)(flatten *w, const ax_hlo_attribute *of, uint32_t i, ax_hlo_attribute *out)) {
  ax_hlo_attribute *items = NULL;
  uint32_t made = 0, room = 0;
  ax_status status = AX_OK;
  for (uint32_t i = 0; status == AX_OK && i < list->count && i < count; i++) {
    status = find_types(w, types[i]);
    if (status == AX_OK) status = ax_grow(&items, sizeof items[0], made, w->type_count, &room);
    for (uint32_t k = 0; status == AX_OK && k < w->type_count; k++) {
      items[made] = list->items[i];
      if (is_made(types[i])) status = item(w, &list->items[i], k, &items[made]);
      made++;
    }
  }
  list->count = made;
  list->items = NULL;
  if (status == AX_OK && made > 0) list->items = ax_arena_copy(&w->module->arena, items, made * sizeof items[0]);
  ax_free(items);
  return status != AX_OK || made == 0 || list->items != NULL ? status : ax_out_of_memory(made * sizeof items[0]);
}

static ax_status name_item(flatten *w, const ax_hlo_attribute *of, uint32_t i, ax_hlo_attribute *out) {
  ax_text text = {0};
  ax_text_add(&text, "%.*s.%u", (int)of->text.length, of->text.start, i);
  out->name = (ax_hlo_slice){0};
  out->text.length = text.length;
  out->text.start = text.failed ? NULL : ax_arena_copy(&w->module->arena, text.data, text.length + 1);
  ax_text_deinit(&text);
  return out->text.start != NULL ? AX_OK : ax_out_of_memory(out->text.length);
}

/* What a tuple's attributes say is said of no array. */
static ax_status no_item(flatten *w, const ax_hlo_attribute *of, uint32_t i, ax_hlo_attribute *out) {
  (void)w, (void)i;
  *out = (ax_hlo_attribute){.kind = AX_HLO_DICTIONARY, .name = of->name};
  return AX_OK;
}

/* A function's type without tuples. */
static ax_status flat_signature(flatten *w, const ax_hlo_value_type *from, const ax_hlo_value_type **out) {
  ax_hlo_value_type *type = ax_arena_copy(&w->module->arena, from, sizeof *from);
  w->type_count = 0;
  for (uint32_t i = 0; i < from->part_count; i++) {
    AX_TRY(add_types(w, from->parts[i], 0));
    if (type != NULL && i + 1 == from->in_count) type->in_count = w->type_count;
  }
  if (type == NULL) return ax_out_of_memory(sizeof *type);
  type->part_count = w->type_count;
  if (w->type_count == 0) return *out = type, AX_OK;
  type->parts = ax_arena_copy(&w->module->arena, w->types, w->type_count * sizeof type->parts[0]);
  *out = type;
  return type->parts != NULL ? AX_OK : ax_out_of_memory(w->type_count * sizeof type->parts[0]);
}

static ax_status flatten_function(flatten *w, ax_hlo_operation *op, const ax_hlo_value_type *type) {
  const ax_hlo_value_type *const *parts = type->parts, *const *outs = type->part_count > 0 ? &parts[type->in_count] : NULL;
  const uint32_t ins = type->in_count, out_count = type->part_count - ins;
  ax_hlo_attribute *attributes = ax_arena_copy(&w->module->arena, op->attributes, op->attribute_count * sizeof attributes[0]);
  if (attributes == NULL) return ax_out_of_memory(op->attribute_count * sizeof attributes[0]);
  op->attributes = attributes;
  for (uint32_t i = 0; i < op->attribute_count; i++) {
    ax_hlo_attribute *a = &attributes[i];
    if (ax_hlo_slice_is(a->name, "function_type")) AX_TRY(flat_signature(w, type, &a->type));
    if (a->kind != AX_HLO_ARRAY) continue;
    if (ax_hlo_slice_is(a->name, "arg_attrs")) AX_TRY(spread_items(w, a, parts, ins, no_item));
    if (ax_hlo_slice_is(a->name, "res_attrs")) AX_TRY(spread_items(w, a, outs, out_count, no_item));
    if (ax_hlo_slice_is(a->name, AX_HLO_ARGUMENT_NAMES)) AX_TRY(spread_items(w, a, parts, ins, name_item));
  }
  return AX_OK;
}

/* --- Custom calls, whose attributes have an entry for each value, or name some --- */

/* The type of value number i of these: of a list, or, where that is NULL, of those that follow each other from `first` on. */
static const ax_hlo_value_type *type_of(const flatten *w, uint32_t first, const uint32_t *values, uint32_t i) {
  return w->module->values[values != NULL ? values[i] : first + i];
}

/* Of a list with an entry for each value the entries of arrays; the one result may be a tuple, of which each element has an entry. */
static ax_status keep_layouts(flatten *w, uint32_t first, const uint32_t *values, uint32_t count, ax_hlo_attribute *list) {
  const ax_hlo_value_type *whole = count == 1 ? type_of(w, first, values, 0) : NULL;
  const bool tuple = whole != NULL && whole->kind == AX_HLO_TUPLE;
  if (list->kind != AX_HLO_ARRAY || list->count != (tuple ? whole->part_count : count)) return AX_OK; /* its reader says what is wrong */
  ax_hlo_attribute *items = ax_arena_copy(&w->module->arena, list->items, list->count * sizeof items[0]);
  if (items == NULL && list->count > 0) return ax_out_of_memory(list->count * sizeof items[0]);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < list->count; i++) {
    const ax_hlo_value_type *type = tuple ? whole->parts[i] : type_of(w, first, values, i);
    if (!is_made(type)) items[kept++] = list->items[i];
  }
  list->items = items, list->count = kept;
  return AX_OK;
}

/* Adds the number of arrays in front of the one at these places in a value of the type. */
static ax_status count_before(flatten *w, const ax_hlo_value_type *type, const int64_t *places, uint32_t count, int64_t *number) {
  for (uint32_t i = 0; i < count; i++) {
    if (type->kind != AX_HLO_TUPLE || places[i] < 0 || places[i] >= type->part_count)
      return ax_error(AX_INVALID_ARGUMENT, "output_operand_aliases: %.*s has no element %lld", (int)type->text.length, type->text.start,
                      (long long)places[i]);
    for (uint32_t k = 0; k < places[i]; k++) {
      AX_TRY(find_types(w, type->parts[k]));
      *number += w->type_count;
    }
    type = type->parts[places[i]];
  }
  return is_made(type) ? ax_error(AX_INVALID_ARGUMENT, "output_operand_aliases names what is no array") : AX_OK;
}

/* The arrays of the values in front of number `at`. */
static ax_status count_values(flatten *w, uint32_t first, const uint32_t *values, int64_t at, int64_t *number) {
  for (uint32_t i = 0; i < at; i++) {
    AX_TRY(find_types(w, type_of(w, first, values, i)));
    *number += w->type_count;
  }
  return AX_OK;
}

static ax_status flatten_alias(flatten *w, const ax_hlo_operation *op, ax_hlo_attribute *alias) {
  ax_dims out = {0}, in = {0};
  const ax_hlo_attribute *operand = alias->kind == AX_HLO_DICTIONARY ? ax_hlo_item(alias, "operand_index") : NULL;
  if (operand == NULL || operand->kind != AX_HLO_INTEGER) return AX_OK; /* its reader says so */
  AX_TRY(ax_hlo_item_integers(alias, "output_tuple_indices", &out));
  AX_TRY(ax_hlo_item_integers(alias, "operand_tuple_indices", &in));
  const int64_t i = operand->integer, k = op->result_count > 1 && out.count > 0 ? out.v[0] : 0;
  if (i < 0 || i >= op->operand_count || k < 0 || k >= op->result_count)
    return ax_error(AX_INVALID_ARGUMENT, "output_operand_aliases names result %lld and operand %lld, which there are not", (long long)k, (long long)i);
  int64_t *numbers = ax_arena_alloc(&w->module->arena, 2 * sizeof numbers[0]);
  ax_hlo_attribute *items = ax_arena_alloc(&w->module->arena, 2 * sizeof items[0]);
  if (numbers == NULL || items == NULL) return ax_out_of_memory(0);
  numbers[0] = numbers[1] = 0;
  const uint32_t skipped = op->result_count > 1 && out.count > 0;
  AX_TRY(count_values(w, op->result, NULL, k, &numbers[0]));
  AX_TRY(count_before(w, w->module->values[op->result + k], out.v + skipped, out.count - skipped, &numbers[0]));
  AX_TRY(count_values(w, 0, op->operands, i, &numbers[1]));
  AX_TRY(count_before(w, w->module->values[op->operands[i]], in.v, in.count, &numbers[1]));
  items[0] = (ax_hlo_attribute){.kind = AX_HLO_NUMBERS, .name = {"output_tuple_indices", 20}, .numbers = numbers, .count = 1};
  items[1] = (ax_hlo_attribute){.kind = AX_HLO_INTEGER, .name = {"operand_index", 13}, .integer = numbers[1]};
  alias->items = items, alias->count = 2;
  return AX_OK;
}

/* Layouts are of arrays alone, and aliases have the numbers of arrays. */
static ax_status flatten_call(flatten *w, const ax_hlo_operation *op, ax_hlo_operation *copy) {
  ax_hlo_attribute *attributes = ax_arena_copy(&w->module->arena, op->attributes, op->attribute_count * sizeof attributes[0]);
  if (attributes == NULL && op->attribute_count > 0) return ax_out_of_memory(op->attribute_count * sizeof attributes[0]);
  copy->attributes = attributes;
  for (uint32_t i = 0; i < op->attribute_count; i++) {
    ax_hlo_attribute *a = &attributes[i];
    if (ax_hlo_slice_is(a->name, "operand_layouts")) AX_TRY(keep_layouts(w, 0, op->operands, op->operand_count, a));
    if (ax_hlo_slice_is(a->name, "result_layouts")) AX_TRY(keep_layouts(w, op->result, NULL, op->result_count, a));
    if (!ax_hlo_slice_is(a->name, "output_operand_aliases") || a->kind != AX_HLO_ARRAY || a->count == 0) continue;
    ax_hlo_attribute *list = ax_arena_copy(&w->module->arena, a->items, a->count * sizeof list[0]);
    if (list == NULL) return ax_out_of_memory(a->count * sizeof list[0]);
    for (uint32_t k = 0; k < a->count; k++) AX_TRY(flatten_alias(w, op, &list[k]));
    a->items = list;
  }
  return AX_OK;
}

/* --- Layouts of Shardy's: text with an item for each value --- */

static ax_status keep_shardings(flatten *w, uint32_t first, const uint32_t *values, uint32_t count, ax_hlo_attribute *list) {
  static const char per_value[] = "#sdy.sharding_per_value";
  const bool is_list = list->text.length > 0 && list->text.start[0] == '[';
  if (!is_list && (list->text.length < sizeof per_value || memcmp(list->text.start, per_value, sizeof per_value - 1) != 0)) return AX_OK;
  ax_text text = {0};
  const char *at = NULL;
  ax_hlo_slice item;
  uint32_t seen = 0, kept = 0;
  ax_text_add(&text, "#sdy.sharding_per_value<[");
  for (; ax_sdy_next(list->text, &at, &item); seen++) {
    if (seen < count && type_of(w, first, values, seen)->kind == AX_HLO_TOKEN) continue;
    ax_text_add(&text, "%s%.*s", kept++ > 0 ? ", " : "", (int)item.length, item.start);
  }
  ax_text_add(&text, "]>");
  const bool changes = seen == count && kept < count; /* what does not fit is for the operation's reader to say */
  char *made = text.failed ? NULL : changes ? ax_arena_copy(&w->module->arena, text.data, text.length + 1) : "";
  if (changes && made != NULL) list->text = (ax_hlo_slice){made, text.length};
  ax_text_deinit(&text);
  return made != NULL ? AX_OK : ax_out_of_memory(list->text.length);
}

/* `op` has values that change, and `copy` stands for it. */
static ax_status flatten_shardings(flatten *w, const ax_hlo_operation *op, ax_hlo_operation *copy) {
  ax_hlo_attribute *attributes = ax_arena_copy(&w->module->arena, copy->attributes, copy->attribute_count * sizeof attributes[0]);
  if (attributes == NULL && copy->attribute_count > 0) return ax_out_of_memory(copy->attribute_count * sizeof attributes[0]);
  copy->attributes = attributes;
  for (uint32_t i = 0; i < copy->attribute_count; i++) {
    ax_hlo_attribute *a = &attributes[i];
    const bool of_results = ax_hlo_slice_is(a->name, "out_shardings") || ax_hlo_slice_is(a->name, "sdy.sharding");
    if (of_results && a->kind == AX_HLO_OPAQUE) AX_TRY(keep_shardings(w, op->result, NULL, op->result_count, a));
    if (ax_hlo_slice_is(a->name, "in_shardings") && a->kind == AX_HLO_OPAQUE) AX_TRY(keep_shardings(w, 0, op->operands, op->operand_count, a));
  }
  return AX_OK;
}

/* --- Tokens of the entry function --- */

static ax_status make_token_type(flatten *w, const ax_hlo_value_type **out) {
  static const int64_t none[] = {0};
  static const char text[] = "tensor<0xi1>";
  const ax_hlo_value_type type = {.kind = AX_HLO_TENSOR, .element_known = true, .ranked = true, .dtype = AX_BOOL, .rank = 1, .dims = none,
                                  .text = {text, sizeof text - 1}};
  *out = ax_arena_copy(&w->module->arena, &type, sizeof type);
  return *out != NULL ? AX_OK : ax_out_of_memory(sizeof type);
}

/* The constant that is returned for tokens: *out, which stands before the return. */
static ax_status make_token(flatten *w, const ax_hlo_operation *before, const ax_hlo_operation **out) {
  ax_hlo_module *m = w->module;
  const ax_hlo_value_type *type = w->entry_token;
  const ax_hlo_attribute attributes[] = {{.kind = AX_HLO_ELEMENTS, .name = {"value", 5}, .type = type, .data = ""},
                                         {.kind = AX_HLO_UNIT, .name = {AX_HLO_IS_TOKEN, sizeof AX_HLO_IS_TOKEN - 1}}};
  ax_hlo_operation made = {.name = {"stablehlo.constant", 18}, .result = m->value_count, .result_count = 1, .attribute_count = AX_COUNT(attributes),
                           .attributes = ax_arena_copy(&m->arena, attributes, sizeof attributes), .place = before->place};
  *out = made.attributes != NULL ? ax_arena_copy(&m->arena, &made, sizeof made) : NULL;
  if (*out == NULL) return ax_out_of_memory(sizeof made);
  AX_TRY(ax_grow(&m->values, sizeof m->values[0], m->value_count, 1, &w->value_room));
  AX_TRY(ax_grow(&m->makers, sizeof m->makers[0], m->value_count, 1, &w->maker_room));
  m->values[m->value_count] = type, m->makers[m->value_count] = *out;
  m->value_count++;
  return AX_OK;
}

static bool is_token(const flatten *w, uint32_t value) { return w->module->values[value]->kind == AX_HLO_TOKEN; }

/* The values of the return: each token is the array, which all of them share. *constant stays NULL if there are none. */
static ax_status return_tokens(flatten *w, const ax_hlo_operation *op, const ax_hlo_operation **constant, const ax_hlo_operation **out) {
  w->list.count = 0;
  for (uint32_t i = 0; i < op->operand_count; i++) {
    if (!is_token(w, op->operands[i])) {
      AX_TRY(add_number(&w->list, op->operands[i])); /* flattened with the other operations */
      continue;
    }
    if (*constant == NULL) AX_TRY(make_token(w, op, constant));
    AX_TRY(add_number(&w->list, (*constant)->result));
  }
  ax_hlo_operation *copy = ax_arena_copy(&w->module->arena, op, sizeof *op);
  if (copy == NULL) return ax_out_of_memory(sizeof *op);
  *out = copy;
  copy->operand_count = w->list.count;
  if (w->list.count == 0) return AX_OK;
  copy->operands = ax_arena_copy(&w->module->arena, w->list.v, w->list.count * sizeof w->list.v[0]);
  return copy->operands != NULL ? AX_OK : ax_out_of_memory(w->list.count * sizeof w->list.v[0]);
}

/* The entry function's block, whose arguments and return have arrays for tokens. */
static ax_status begin_entry(flatten *w, ax_hlo_block *block) {
  const uint32_t first = block->argument, count = block->argument_count;
  w->token = w->entry_token;
  const ax_status status = make_values(w, NULL, &block->argument, &block->argument_count);
  w->token = NULL;
  for (uint32_t i = 0; status == AX_OK && i < count; i++)
    if (is_token(w, first + i)) w->count[first + i] = 1; /* nothing, wherever it is used */
  return status;
}

static ax_status end_entry(flatten *w, ax_hlo_block *block) {
  const ax_hlo_operation *constant = NULL;
  const uint32_t count = block->operation_count;
  const ax_hlo_operation *last = count > 0 ? block->operations[count - 1] : NULL;
  if (last == NULL || !ax_hlo_slice_is(last->name, "func.return")) return AX_OK;
  const ax_hlo_operation **operations = ax_arena_alloc(&w->module->arena, (count + (size_t)1) * sizeof operations[0]);
  if (operations == NULL) return ax_out_of_memory(count * sizeof operations[0]);
  memcpy(operations, block->operations, count * sizeof operations[0]);
  AX_TRY(return_tokens(w, last, &constant, &last));
  block->operations = operations;
  if (constant != NULL) operations[block->operation_count++ - 1] = constant;
  operations[block->operation_count - 1] = last;
  return AX_OK;
}

/* --- Operations --- */

static ax_status flatten_block(flatten *w, ax_hlo_block *block, bool entry);

static ax_status flatten_regions(flatten *w, const ax_hlo_operation *op, bool entry) {
  for (uint32_t r = 0; r < op->region_count; r++)
    for (uint32_t b = 0; b < op->regions[r].block_count; b++) AX_TRY(flatten_block(w, (ax_hlo_block *)&op->regions[r].blocks[b], entry));
  return AX_OK;
}

/* A copy with the operands in w->list, and arrays as results. */
static ax_status flatten_values(flatten *w, const ax_hlo_operation *op, ax_hlo_operation **out) {
  ax_hlo_operation *copy = ax_arena_copy(&w->module->arena, op, sizeof *op);
  if (copy == NULL) return ax_out_of_memory(sizeof *op);
  copy->operand_count = w->list.count;
  if (w->list.count > 0) {
    copy->operands = ax_arena_copy(&w->module->arena, w->list.v, w->list.count * sizeof w->list.v[0]);
    if (copy->operands == NULL) return ax_out_of_memory(w->list.count * sizeof w->list.v[0]);
  }
  *out = copy;
  if (any_made(w, op->result, op->result_count)) return make_values(w, copy, &copy->result, &copy->result_count);
  for (uint32_t k = 0; k < op->result_count; k++) w->module->makers[op->result + k] = copy;
  return AX_OK;
}

/* *out: what stands in the operation's place; NULL: nothing. */
static ax_status flatten_operation(flatten *w, const ax_hlo_operation *op, const ax_hlo_operation **out) {
  bool changes = any_made(w, op->result, op->result_count);
  w->list.count = 0;
  for (uint32_t i = 0; i < op->operand_count; i++) {
    changes = changes || has_moved(w, op->operands[i]);
    AX_TRY(add_leaves(w, op->operands[i], &w->list));
  }
  *out = NULL;
  for (size_t i = 0; i < AX_COUNT(rules); i++)
    if (ax_hlo_slice_is(op->name, rules[i].op)) return rules[i].rule(w, op);
  const ax_hlo_attribute *type = ax_hlo_slice_is(op->name, "func.func") ? ax_hlo_find(op, "function_type") : NULL;
  const bool function = type != NULL && type->kind == AX_HLO_TYPE && type->type->kind == AX_HLO_FUNCTION;
  ax_hlo_operation *copy = NULL;
  if (changes || function) AX_TRY(flatten_values(w, op, &copy));
  if (changes && ax_hlo_slice_is(op->name, "stablehlo.custom_call")) AX_TRY(flatten_call(w, op, copy));
  if (changes && !function) AX_TRY(flatten_shardings(w, op, copy));
  const ax_hlo_attribute *name = function && w->entry_token != NULL ? ax_hlo_find(op, "sym_name") : NULL;
  const bool entry = name != NULL && ax_hlo_slice_is(name->text, "main");
  w->token = entry ? w->entry_token : NULL;
  const ax_status status = function ? flatten_function(w, copy, type->type) : AX_OK;
  w->token = NULL;
  *out = copy != NULL ? copy : op;
  return status == AX_OK ? flatten_regions(w, op, entry) : status;
}

/* Modules are the arena's, and may be written until they are read. */
static ax_status flatten_block(flatten *w, ax_hlo_block *block, bool entry) {
  uint32_t kept = 0;
  if (entry) {
    AX_TRY(end_entry(w, block)); /* first: the return's tokens are still seen */
    AX_TRY(begin_entry(w, block));
  } else if (any_made(w, block->argument, block->argument_count)) {
    AX_TRY(make_values(w, NULL, &block->argument, &block->argument_count));
  }
  for (uint32_t i = 0; i < block->operation_count; i++) {
    const ax_hlo_operation *op = block->operations[i], *made = NULL;
    const bool outer = op->region_count > 0; /* the message has the innermost operation alone */
    const ax_status status = flatten_operation(w, op, &made);
    if (status != AX_OK) return outer ? status : ax_hlo_blame(w->module, op, status);
    if (made != NULL) block->operations[kept++] = made;
  }
  block->operation_count = kept;
  return AX_OK;
}

ax_status ax_hlo_flatten(ax_hlo_module *module, bool entry_tokens) {
  flatten w = {.module = module,  .old_count = module->value_count, .value_room = module->value_count, .maker_room = module->value_count};
  if (!any_made(&w, 0, module->value_count)) return AX_OK;
  w.first = ax_calloc(w.old_count, sizeof w.first[0]);
  w.count = ax_calloc(w.old_count, sizeof w.count[0]);
  ax_status status = w.first != NULL && w.count != NULL ? AX_OK : ax_out_of_memory(w.old_count * sizeof w.first[0]);
  if (status == AX_OK && entry_tokens) status = make_token_type(&w, &w.entry_token);
  if (status == AX_OK) status = flatten_block(&w, &module->body, false);
  ax_free(w.first);
  ax_free(w.count);
  ax_free(w.leaves.v);
  ax_free(w.list.v);
  ax_free(w.types);
  return status;
}
