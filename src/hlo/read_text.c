/* Modules as MLIR's texts. The generic form has one grammar for every operation:

     %5:2 = "name"(%1, %2) <{properties}> ({ ^bb0(%7: type): operations }, {..}) {attributes} : (types) -> types loc(..)

   An operation whose name is not in quotes has a short form (read_pretty.c). Values are read once they are defined: in StableHLO
   definitions come first. */
#include "hlo/read_text.h"

#include <stdlib.h>
#include <string.h>

#include "hlo/reader.h"

/* --- Values and their names --- */

ax_status ax_hlo_new_values(ax_hlo_scan *r, uint32_t count, const ax_hlo_value_type *const *types, uint32_t *first) {
  ax_hlo_module *m = r->module;
  AX_TRY(ax_grow(&m->values, sizeof m->values[0], m->value_count, count, &r->value_capacity));
  AX_TRY(ax_grow(&m->makers, sizeof m->makers[0], m->value_count, count, &r->maker_capacity));
  *first = m->value_count;
  for (uint32_t i = 0; i < count; i++) m->makers[m->value_count + i] = NULL;
  if (count > 0) memcpy(m->values + m->value_count, types, count * sizeof types[0]);
  m->value_count += count;
  return AX_OK;
}

static bool name_is(const void *names, uint32_t number, const void *name) {
  return ax_hlo_slice_same(((const ax_hlo_named *)names)[number].name, *(const ax_hlo_slice *)name);
}

static uint32_t *name_slot(const ax_hlo_scan *r, ax_hlo_slice name) {
  return ax_table_slot(&r->table, ax_hash_bytes(AX_HASH_SEED, name.start, name.length), name_is, r->names, &name);
}

/* The entry comes into scope, in the slot of the one that it hides. */
static void show_name(ax_hlo_scan *r, uint32_t entry) {
  uint32_t *slot = name_slot(r, r->names[entry].name);
  r->hidden[entry] = *slot;
  *slot = entry + 1;
}

ax_status ax_hlo_name_values(ax_hlo_scan *r, ax_hlo_slice name, uint32_t first, uint32_t count) {
  bool emptied;
  AX_TRY(ax_table_room(&r->table, r->name_count, &emptied));
  for (uint32_t i = 0; emptied && i < r->name_count; i++) show_name(r, i);
  AX_TRY(ax_grow(&r->names, sizeof r->names[0], r->name_count, 1, &r->name_capacity));
  AX_TRY(ax_grow(&r->hidden, sizeof r->hidden[0], r->name_count, 1, &r->hidden_capacity));
  if (*name_slot(r, name) > r->scope) return ax_hlo_refuse(r, name.start, "%%%.*s is defined twice here", (int)name.length, name.start);
  r->names[r->name_count] = (ax_hlo_named){name, first, count};
  show_name(r, r->name_count++);
  return AX_OK;
}

/* From the last to the first, each slot is emptied that was empty before it was filled, so no run of slots has a gap. */
void ax_hlo_names_drop(ax_hlo_scan *r, uint32_t mark) {
  for (; r->name_count > mark; r->name_count--) *name_slot(r, r->names[r->name_count - 1].name) = r->hidden[r->name_count - 1];
}

ax_status ax_hlo_want_operand(ax_hlo_scan *r, uint32_t *out) {
  ax_hlo_slice name;
  int64_t number = 0;
  ax_hlo_skip(r);
  const char *at = r->cursor;
  if (!ax_hlo_sees(r, "%")) return ax_hlo_expected(r, "a value, %name");
  AX_TRY(ax_hlo_want_name(r, '%', &name));
  const uint32_t entry = r->table.size == 0 ? 0 : *name_slot(r, name);
  if (entry <= r->isolated) return ax_hlo_refuse(r, at, "%%%.*s is not defined before it is used here", (int)name.length, name.start);
  const ax_hlo_named *named = &r->names[entry - 1];
  if (r->cursor < r->end && *r->cursor == '#') {
    r->cursor++;
    AX_TRY(ax_hlo_want_integer(r, &number));
  } /* without a number it is the first of several */
  if (number < 0 || number >= named->count)
    return ax_hlo_refuse(r, at, "%%%.*s has %u values, and this is number %lld", (int)name.length, name.start, named->count,
                         (long long)number);
  *out = named->value + (uint32_t)number;
  return AX_OK;
}

/* --- Drafts --- */

static ax_status want_operation(ax_hlo_scan *r, const ax_hlo_operation **out);

ax_status ax_hlo_draft_attribute(ax_hlo_draft *draft, const char *name, const ax_hlo_attribute *attribute) {
  ax_hlo_attribute named = *attribute;
  named.name = (ax_hlo_slice){name, strlen(name)};
  return ax_hlo_list_add(&draft->attributes, &named, sizeof named);
}

ax_status ax_hlo_draft_attributes(ax_hlo_scan *r, ax_hlo_draft *draft) {
  return ax_hlo_sees(r, "{") ? ax_hlo_want_entries(r, &draft->attributes) : AX_OK;
}

ax_status ax_hlo_draft_region(ax_hlo_scan *r, ax_hlo_draft *draft, const ax_hlo_block *block) {
  const ax_hlo_region region = {.block_count = 1, .blocks = ax_arena_copy(&r->module->arena, block, sizeof *block)};
  if (region.blocks == NULL) return ax_out_of_memory(sizeof *block);
  return ax_hlo_list_add(&draft->regions, &region, sizeof region);
}

static void free_draft(ax_hlo_draft *draft) {
  ax_free(draft->operands.items);
  ax_free(draft->attributes.items);
  ax_free(draft->regions.items);
  ax_free(draft->results.items);
}

/* The operation that the draft has become, in the arena; its results are values. */
static ax_status end_draft(ax_hlo_scan *r, ax_hlo_draft *draft, const ax_hlo_operation **out) {
  ax_hlo_operation *op = &draft->op;
  ax_status status = ax_hlo_new_values(r, draft->results.count, draft->results.items, &op->result);
  op->operand_count = draft->operands.count, op->attribute_count = draft->attributes.count;
  op->region_count = draft->regions.count, op->result_count = draft->results.count;
  op->operands = ax_hlo_list_end(r, &draft->operands, sizeof op->operands[0], &status);
  op->attributes = ax_hlo_list_end(r, &draft->attributes, sizeof op->attributes[0], &status);
  op->regions = ax_hlo_list_end(r, &draft->regions, sizeof op->regions[0], &status);
  *out = status == AX_OK ? ax_arena_copy(&r->module->arena, op, sizeof *op) : NULL;
  if (status == AX_OK && *out == NULL) status = ax_out_of_memory(sizeof *op);
  for (uint32_t k = 0; status == AX_OK && k < op->result_count; k++) r->module->makers[op->result + k] = *out;
  return status;
}

/* --- Locations --- */

ax_status ax_hlo_take_location(ax_hlo_scan *r, ax_hlo_slice *out) {
  if (!ax_hlo_sees(r, "loc")) return AX_OK;
  r->cursor += 3;
  return ax_hlo_want_balanced(r, out);
}

/* --- Blocks and regions --- */

/* (%0: type, ..) behind a label: the block's arguments. */
static ax_status want_arguments(ax_hlo_scan *r, ax_hlo_block *block) {
  ax_hlo_slice location;
  if (!ax_hlo_take(r, "(") || ax_hlo_take(r, ")")) return AX_OK;
  do {
    ax_hlo_slice name;
    const ax_hlo_value_type *type;
    uint32_t value;
    AX_TRY(ax_hlo_want_name(r, '%', &name));
    AX_TRY(ax_hlo_want(r, ":"));
    AX_TRY(ax_hlo_want_type(r, &type));
    AX_TRY(ax_hlo_take_location(r, &location));
    AX_TRY(ax_hlo_new_values(r, 1, &type, &value));
    AX_TRY(ax_hlo_name_values(r, name, value, 1));
    if (block->argument_count++ == 0) block->argument = value;
  } while (ax_hlo_take(r, ","));
  return ax_hlo_want(r, ")");
}

static ax_status add_operations(ax_hlo_scan *r, ax_hlo_list *operations) {
  const ax_hlo_operation *op;
  while (!ax_hlo_sees(r, "}") && !ax_hlo_sees(r, "^")) {
    if (r->cursor >= r->end) return ax_hlo_expected(r, "an operation or '}'");
    AX_TRY(want_operation(r, &op));
    AX_TRY(ax_hlo_list_add(operations, &op, sizeof op));
  }
  return AX_OK;
}

static ax_status want_block(ax_hlo_scan *r, ax_hlo_block *block) {
  ax_hlo_list operations = {0};
  ax_status status = add_operations(r, &operations);
  block->operation_count = operations.count;
  block->operations = ax_hlo_list_end(r, &operations, sizeof block->operations[0], &status);
  return status;
}

static ax_status give_arguments(ax_hlo_scan *r, const ax_hlo_arguments *arguments, ax_hlo_block *block) {
  if (arguments == NULL) return AX_OK;
  block->argument_count = arguments->count;
  AX_TRY(ax_hlo_new_values(r, arguments->count, arguments->types, &block->argument));
  for (uint32_t i = 0; i < arguments->count; i++)
    if (arguments->names != NULL) AX_TRY(ax_hlo_name_values(r, arguments->names[i], block->argument + i, 1));
  return AX_OK;
}

static ax_status add_blocks(ax_hlo_scan *r, const ax_hlo_arguments *arguments, ax_hlo_list *blocks) {
  AX_TRY(ax_hlo_want(r, "{"));
  do {
    ax_hlo_block block = {0};
    if (blocks->count == 0) AX_TRY(give_arguments(r, arguments, &block));
    if (ax_hlo_sees(r, "^")) {
      ax_hlo_slice label;
      AX_TRY(ax_hlo_want_name(r, '^', &label));
      AX_TRY(want_arguments(r, &block));
      AX_TRY(ax_hlo_want(r, ":"));
    }
    AX_TRY(want_block(r, &block));
    AX_TRY(ax_hlo_list_add(blocks, &block, sizeof block));
  } while (!ax_hlo_take(r, "}"));
  return AX_OK;
}

/* Regions of these see no value around them. */
static bool is_isolated(ax_hlo_slice op) { return ax_hlo_slice_is(op, "func.func") || ax_hlo_slice_is(op, "builtin.module"); }

ax_status ax_hlo_want_region(ax_hlo_scan *r, ax_hlo_draft *draft, const ax_hlo_arguments *arguments) {
  ax_hlo_list blocks = {0};
  const uint32_t mark = ax_hlo_names_mark(r), scope = r->scope, isolated = r->isolated;
  AX_TRY(ax_hlo_enter(r));
  r->scope = mark;
  if (is_isolated(draft->op.name)) r->isolated = mark;
  ax_status status = add_blocks(r, arguments, &blocks);
  ax_hlo_region region = {.block_count = blocks.count};
  region.blocks = ax_hlo_list_end(r, &blocks, sizeof region.blocks[0], &status);
  ax_hlo_leave(r);
  ax_hlo_names_drop(r, mark);
  r->scope = scope, r->isolated = isolated;
  return status == AX_OK ? ax_hlo_list_add(&draft->regions, &region, sizeof region) : status;
}

/* --- The generic form --- */

static ax_status want_generic_operands(ax_hlo_scan *r, ax_hlo_draft *draft) {
  uint32_t value;
  AX_TRY(ax_hlo_want(r, "("));
  if (ax_hlo_take(r, ")")) return AX_OK;
  do {
    AX_TRY(ax_hlo_want_operand(r, &value));
    AX_TRY(ax_hlo_list_add(&draft->operands, &value, sizeof value));
  } while (ax_hlo_take(r, ","));
  return ax_hlo_want(r, ")");
}

static ax_status want_generic_regions(ax_hlo_scan *r, ax_hlo_draft *draft) {
  ax_hlo_skip(r);
  const char *before = r->cursor;
  if (!ax_hlo_take(r, "(")) return AX_OK;
  if (!ax_hlo_sees(r, "{")) {
    r->cursor = before;
    return AX_OK;
  }
  do AX_TRY(ax_hlo_want_region(r, draft, NULL));
  while (ax_hlo_take(r, ","));
  return ax_hlo_want(r, ")");
}

ax_status ax_hlo_want_typed(ax_hlo_scan *r, ax_hlo_draft *draft) {
  const ax_hlo_value_type *signature;
  const char *at = r->cursor;
  AX_TRY(ax_hlo_want(r, ":"));
  AX_TRY(ax_hlo_want_signature(r, &signature));
  if (signature->in_count != draft->operands.count)
    return ax_hlo_refuse(r, at, "the operation has %u operands, and types for %u", draft->operands.count, signature->in_count);
  for (uint32_t i = 0; i < signature->in_count; i++) {
    const ax_hlo_value_type *has = r->module->values[((const uint32_t *)draft->operands.items)[i]];
    if (has != signature->parts[i])
      return ax_hlo_refuse(r, at, "operand %u is %.*s, and its type is given as %.*s", i, (int)has->text.length, has->text.start,
                           (int)signature->parts[i]->text.length, signature->parts[i]->text.start);
  }
  for (uint32_t i = signature->in_count; i < signature->part_count; i++)
    AX_TRY(ax_hlo_list_add(&draft->results, &signature->parts[i], sizeof signature->parts[i]));
  return AX_OK;
}

static ax_status want_generic(ax_hlo_scan *r, ax_hlo_draft *draft) {
  AX_TRY(ax_hlo_want_string(r, &draft->op.name));
  AX_TRY(want_generic_operands(r, draft));
  if (ax_hlo_take(r, "<")) {
    AX_TRY(ax_hlo_want_entries(r, &draft->attributes));
    AX_TRY(ax_hlo_want(r, ">"));
  }
  AX_TRY(want_generic_regions(r, draft));
  AX_TRY(ax_hlo_draft_attributes(r, draft));
  return ax_hlo_want_typed(r, draft);
}

/* --- One operation --- */

typedef struct result_names { /* %a, %b:2 = */
  ax_hlo_list names;          /* ax_hlo_named */
  uint32_t values;
} result_names;

static ax_status want_result_names(ax_hlo_scan *r, result_names *out) {
  if (!ax_hlo_sees(r, "%")) return AX_OK;
  do {
    ax_hlo_named named = {.count = 1, .value = out->values};
    int64_t count = 1;
    AX_TRY(ax_hlo_want_name(r, '%', &named.name));
    if (r->cursor < r->end && *r->cursor == ':') {
      r->cursor++;
      AX_TRY(ax_hlo_want_integer(r, &count));
    }
    if (count < 1 || count > UINT16_MAX || out->values > UINT16_MAX)
      return ax_hlo_refuse(r, r->cursor, "a number of results out of range");
    named.count = (uint32_t)count;
    out->values += named.count;
    AX_TRY(ax_hlo_list_add(&out->names, &named, sizeof named));
  } while (ax_hlo_take(r, ","));
  return ax_hlo_want(r, "=");
}

static ax_status name_results(ax_hlo_scan *r, const char *at, const result_names *names, const ax_hlo_operation *op) {
  if (names->names.count > 0 && names->values != op->result_count)
    return ax_hlo_refuse(r, at, "%.*s has %u results, and names for %u", (int)op->name.length, op->name.start, op->result_count,
                         names->values);
  for (uint32_t i = 0; i < names->names.count; i++) {
    const ax_hlo_named *named = &((const ax_hlo_named *)names->names.items)[i];
    AX_TRY(ax_hlo_name_values(r, named->name, op->result + named->value, named->count));
  }
  return AX_OK;
}

static ax_status want_named_operation(ax_hlo_scan *r, result_names *names, ax_hlo_draft *draft, const ax_hlo_operation **out) {
  AX_TRY(want_result_names(r, names));
  ax_hlo_skip(r);
  draft->at = r->cursor;
  draft->op.place = ax_hlo_place_at(r, r->cursor);
  AX_TRY(ax_hlo_sees(r, "\"") ? want_generic(r, draft) : ax_hlo_want_pretty(r, draft));
  AX_TRY(ax_hlo_take_location(r, &draft->op.place.location));
  const char *at = draft->at;
  AX_TRY(end_draft(r, draft, out));
  return name_results(r, at, names, *out);
}

static ax_status want_operation(ax_hlo_scan *r, const ax_hlo_operation **out) {
  result_names names = {0};
  ax_hlo_draft draft = {0};
  const ax_status status = want_named_operation(r, &names, &draft, out);
  free_draft(&draft);
  ax_free(names.names.items);
  return status;
}

/* --- The text --- */

/* #name = attribute, !name = type: kept as text, read where it is used. */
static ax_status want_alias_text(ax_hlo_scan *r) {
  const char mark = *r->cursor, *at = r->cursor;
  ax_hlo_slice name, text, location;
  AX_TRY(ax_hlo_want_name(r, mark, &name));
  AX_TRY(ax_hlo_want(r, "="));
  ax_hlo_skip(r);
  text.start = r->cursor;
  if (ax_hlo_sees(r, "loc")) {
    AX_TRY(ax_hlo_take_location(r, &location));
  } else { /* to the end of the line, or of the brackets that are open there */
    ax_hlo_slice inside;
    for (; r->cursor < r->end && *r->cursor != '\n' && !ax_hlo_sees_comment(r);)
      if (strchr("<({[", *r->cursor) != NULL)
        AX_TRY(ax_hlo_want_balanced(r, &inside));
      else if (*r->cursor == '"')
        AX_TRY(ax_hlo_want_string(r, &inside));
      else
        r->cursor++;
  }
  text.length = (size_t)(r->cursor - text.start);
  while (text.length > 0 && strchr(" \t\r", text.start[text.length - 1]) != NULL) text.length--;
  const ax_hlo_slice marked = {at, name.length + 1};
  if (ax_hlo_find_alias(r->module, marked) != NULL)
    return ax_hlo_refuse(r, at, "the alias %.*s is there twice", (int)marked.length, marked.start);
  return ax_hlo_add_alias(r->module, marked, text);
}

/* XLA has a text of its own for its operations. */
static ax_status check_language(ax_hlo_scan *r) {
  if (!ax_hlo_sees(r, "HloModule")) return AX_OK;
  return ax_hlo_refuse(r, r->cursor, "this is HLO text; StableHLO is read");
}

static ax_status add_toplevel(ax_hlo_scan *r, ax_hlo_list *operations) {
  const ax_hlo_operation *op;
  ax_hlo_slice resources;
  for (ax_hlo_skip(r); r->cursor < r->end; ax_hlo_skip(r)) {
    if (*r->cursor == '#' || *r->cursor == '!')
      AX_TRY(want_alias_text(r));
    else if (ax_hlo_sees(r, "{-#"))
      AX_TRY(ax_hlo_want_balanced(r, &resources));
    else {
      AX_TRY(want_operation(r, &op));
      AX_TRY(ax_hlo_list_add(operations, &op, sizeof op));
    }
  }
  return AX_OK;
}

/* The functions of a text without a module around them, or of the one in it. */
void ax_hlo_find_body(ax_hlo_module *m, const ax_hlo_block *block) {
  m->body = *block;
  while (m->body.operation_count == 1) {
    const ax_hlo_operation *op = m->body.operations[0];
    if (!ax_hlo_slice_is(op->name, "builtin.module") || op->region_count != 1 || op->regions[0].block_count != 1) return;
    m->attributes = op->attributes;
    m->attribute_count = op->attribute_count;
    m->body = op->regions[0].blocks[0];
  }
}

void ax_hlo_free_scan(ax_hlo_scan *r) {
  ax_free(r->names);
  ax_table_deinit(&r->table);
  ax_free(r->hidden);
  ax_free(r->types);
}

ax_status ax_hlo_read_text(const char *text, size_t bytes, const char *source, ax_hlo_module *out) {
  return ax_hlo_read_lent_text(text, bytes, source, NULL, out);
}

ax_status ax_hlo_read_lent_text(const char *text, size_t bytes, const char *source, struct ax_shared *lender, ax_hlo_module *out) {
  *out = (ax_hlo_module){.source = source, .lender = lender};
  ax_hlo_scan r = {.module = out, .text = text, .end = text + bytes, .cursor = text, .line_start = text, .line = 1};
  ax_hlo_list operations = {0};
  ax_hlo_block block = {0};
  ax_status status = check_language(&r);
  if (status == AX_OK) status = add_toplevel(&r, &operations);
  block.operation_count = operations.count;
  block.operations = ax_hlo_list_end(&r, &operations, sizeof block.operations[0], &status);
  if (status == AX_OK) ax_hlo_find_body(out, &block);
  ax_hlo_free_scan(&r);
  if (status != AX_OK) ax_hlo_module_deinit(out);
  return status;
}
