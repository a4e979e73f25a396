/* Operations, regions and values of bytecode:

     operation  name  mask of what follows  location  attributes  properties  results' types  operands  successors  orders  regions
     region     number of blocks  number of values  blocks
     block      number of operations, and whether it has arguments  arguments  operations

   Operands are numbers of values, which are counted from the start of the innermost operation around them whose regions see nothing
   outside. A region's values follow those of the regions around it, in the order in which they are defined. */
#include <stdio.h>
#include <string.h>

#include "hlo/bytecode.h"

enum {
  HAS_ATTRIBUTES = 1,
  HAS_RESULTS = 2,
  HAS_OPERANDS = 4,
  HAS_SUCCESSORS = 8,
  HAS_REGIONS = 16,
  HAS_ORDERS = 32,
  HAS_PROPERTIES = 64
};
enum { with_sections = 2, with_orders = 3, with_flagged_locations = 4 };

typedef struct scope { /* the values of a region: those that are still to come */
  uint32_t next, end;  /* in `values` */
} scope;

/* owner: the operation whose region it is; NULL: none. */
static ax_status read_block(ax_hlo_bytecode *b, ax_hlo_bytes *from, scope *values, const ax_hlo_operation *owner,
                            ax_hlo_block *out);

static bool is_function(const ax_hlo_operation *op) { return op != NULL && ax_hlo_slice_is(op->name, "func.func"); }

/* --- Values --- */

static ax_status open_scope(ax_hlo_bytecode *b, const ax_hlo_bytes *at, uint32_t count, scope *out) {
  if (count > b->values_left) return ax_hlo_broken(b, at->next, "the file's regions say that they have more values than it has bytes");
  b->values_left -= count;
  AX_TRY(ax_grow(&b->values, sizeof b->values[0], b->count, count, &b->capacity));
  *out = (scope){b->count, b->count + count};
  for (uint32_t i = 0; i < count; i++) b->values[b->count++] = AX_NONE;
  return AX_OK;
}

/* Keeps places for values that are defined now. */
static ax_status take_places(ax_hlo_bytecode *b, const ax_hlo_bytes *at, scope *values, uint32_t count, uint32_t *first) {
  if (count > values->end - values->next) return ax_hlo_broken(b, at->next, "the region defines more values than it says");
  *first = values->next;
  values->next += count;
  return AX_OK;
}

static ax_status read_operand(ax_hlo_bytecode *b, ax_hlo_bytes *from, uint32_t *out) {
  const unsigned char *at = from->next;
  uint32_t number;
  AX_TRY(ax_hlo_read_below(b, from, b->count - b->base, "value", &number));
  *out = b->values[b->base + number];
  return *out != AX_NONE ? AX_OK : ax_hlo_broken(b, at, "value %u is not defined before it is used here", number);
}

/* --- Orders of uses, which mean nothing here --- */

static ax_status pass_orders(ax_hlo_bytecode *b, ax_hlo_bytes *from, uint32_t values) {
  uint64_t count = 1, number, entries;
  bool pairs;
  if (values > 1) AX_TRY(ax_hlo_read_number(b, from, &count));
  for (uint64_t i = 0; i < count; i++) {
    if (values > 1) AX_TRY(ax_hlo_read_number(b, from, &number));
    AX_TRY(ax_hlo_read_flagged(b, from, &entries, &pairs));
    for (uint64_t k = 0; k < entries; k++) AX_TRY(ax_hlo_read_number(b, from, &number));
  }
  return AX_OK;
}

/* --- Attributes --- */

static uint32_t count_numbers(const ax_hlo_bytecode *b, ax_hlo_bytes bytes) {
  uint32_t count = 0;
  uint64_t number;
  while (bytes.next < bytes.end && ax_hlo_read_number(b, &bytes, &number) == AX_OK) count++;
  return count;
}

/* How many operands belong to each list: few that are not 0, with where they stand, or all. */
static ax_status read_segments(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out) {
  enum { most = 2 };
  uint64_t count, width = 0, number;
  bool sparse;
  int64_t *numbers;
  AX_TRY(ax_hlo_make(b, most, sizeof numbers[0], &numbers));
  memset(numbers, 0, most * sizeof numbers[0]);
  AX_TRY(ax_hlo_read_flagged(b, from, &count, &sparse));
  if (sparse) AX_TRY(ax_hlo_read_number(b, from, &width));
  for (uint64_t i = 0; i < count; i++) {
    const unsigned char *at = from->next;
    AX_TRY(ax_hlo_read_number(b, from, &number));
    const uint64_t place = !sparse ? i : width < 64 ? number & (((uint64_t)1 << width) - 1) : number;
    if (width > 32 || place >= most || number >> width > INT32_MAX) return ax_hlo_broken(b, at, "an operation has no such list of operands");
    numbers[place] = (int64_t)(number >> width);
  }
  *out = (ax_hlo_attribute){.kind = AX_HLO_NUMBERS, .numbers = numbers, .count = most};
  return AX_OK;
}

/* Of files since this version these are behind the other attributes, in numbers. */
enum { with_segments_apart = 6 };

static ax_status add_segments(ax_hlo_bytecode *b, ax_hlo_bytes *from, const ax_hlo_coded_name *name, ax_hlo_list *out) {
  for (uint32_t i = 0; i < name->slot_count; i++) {
    if (name->slots[i]->kind != AX_HLO_SLOT_SEGMENTS) continue;
    ax_hlo_attribute segments;
    AX_TRY(read_segments(b, from, &segments));
    segments.name = (ax_hlo_slice){name->slots[i]->name, strlen(name->slots[i]->name)};
    AX_TRY(ax_hlo_list_add(out, &segments, sizeof segments));
  }
  return AX_OK;
}

/* An operation's own attributes, in the order of their names. Files that are older than attributes that were added to an operation have
   fewer. */
static ax_status add_slots(ax_hlo_bytecode *b, ax_hlo_bytes *from, const ax_hlo_coded_name *name, ax_hlo_list *out) {
  const bool fewer = name->form == 0 && count_numbers(b, *from) < name->slot_count;
  const ax_hlo_attribute *found;
  for (uint32_t i = 0; i < name->slot_count && from->next < from->end; i++) {
    const ax_hlo_slot *slot = name->slots[i];
    const bool segments = slot->kind == AX_HLO_SLOT_SEGMENTS;
    if ((fewer && slot->first > 1) || (segments && b->version >= with_segments_apart)) continue;
    AX_TRY(name->form == 0 && slot->optional && !segments ? ax_hlo_read_optional(b, from, &found) : ax_hlo_read_attribute(b, from, &found));
    if (found == NULL) continue;
    ax_hlo_attribute named = *found;
    const char *word = name->form > 0 ? ax_hlo_vhlo_name(slot) : slot->name;
    named.name = (ax_hlo_slice){word, strlen(word)};
    AX_TRY(ax_hlo_list_add(out, &named, sizeof named));
  }
  return b->version >= with_segments_apart ? add_segments(b, from, name, out) : AX_OK;
}

static ax_status add_properties(ax_hlo_bytecode *b, const ax_hlo_coded_name *name, ax_hlo_bytes bytes, ax_hlo_list *out) {
  AX_TRY(add_slots(b, &bytes, name, out));
  if (bytes.next == bytes.end) return AX_OK;
  return ax_error(AX_ABSENT, "%s: byte %zu: the attributes of %.*s, as bytecode encodes them, are not known",
                  b->scan.module->source, (size_t)(bytes.next - b->start), (int)name->name.length, name->name.start);
}

static ax_status add_dictionary(ax_hlo_bytecode *b, const ax_hlo_attribute *dictionary, const ax_hlo_bytes *at, ax_hlo_list *out) {
  if (dictionary->kind != AX_HLO_DICTIONARY) return ax_hlo_broken(b, at->next, "an operation's attributes must be a dictionary");
  if (dictionary->count > b->attributes_left) return ax_hlo_broken(b, at->next, "operations have too many attributes");
  b->attributes_left -= dictionary->count;
  for (uint32_t i = 0; i < dictionary->count; i++) AX_TRY(ax_hlo_list_add(out, &dictionary->items[i], sizeof dictionary->items[i]));
  return AX_OK;
}

static ax_status set_attributes(ax_hlo_bytecode *b, const ax_hlo_coded_name *name, ax_hlo_list *list, ax_status status,
                                ax_hlo_operation *op) {
  if (status == AX_OK && name->form > 0) {
    status = ax_hlo_from_vhlo(b, name, list->items, list->count, op);
    ax_free(list->items);
    return status;
  }
  op->attribute_count = list->count;
  op->attributes = ax_hlo_list_end(&b->scan, list, sizeof op->attributes[0], &status);
  return status;
}

static ax_status collect(ax_hlo_bytecode *b, ax_hlo_bytes *from, unsigned char mask, const ax_hlo_coded_name *name,
                         ax_hlo_list *out) {
  const ax_hlo_attribute *dictionary;
  uint32_t index;
  if ((mask & HAS_ATTRIBUTES) != 0) AX_TRY(ax_hlo_read_attribute(b, from, &dictionary));
  if ((mask & HAS_PROPERTIES) != 0) {
    AX_TRY(ax_hlo_read_below(b, from, b->property_count, "property", &index));
    AX_TRY(add_properties(b, name, b->properties[index], out));
  }
  return (mask & HAS_ATTRIBUTES) != 0 ? add_dictionary(b, dictionary, from, out) : AX_OK;
}

static ax_status read_attributes(ax_hlo_bytecode *b, ax_hlo_bytes *from, unsigned char mask, const ax_hlo_coded_name *name,
                                 ax_hlo_operation *op) {
  ax_hlo_list list = {0};
  const ax_status status = collect(b, from, mask, name, &list);
  return set_attributes(b, name, &list, status, op);
}

/* --- Results and operands --- */

static ax_status read_results(ax_hlo_bytecode *b, ax_hlo_bytes *from, const ax_hlo_value_type ***types, ax_hlo_operation *op) {
  AX_TRY(ax_hlo_read_count(b, from, &op->result_count));
  AX_TRY(ax_hlo_make(b, op->result_count, sizeof **types, types));
  for (uint32_t k = 0; k < op->result_count; k++) AX_TRY(ax_hlo_read_type(b, from, &(*types)[k]));
  return AX_OK;
}

static ax_status read_operands(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_operation *op) {
  uint32_t *operands;
  AX_TRY(ax_hlo_read_count(b, from, &op->operand_count));
  AX_TRY(ax_hlo_make(b, op->operand_count, sizeof operands[0], &operands));
  for (uint32_t i = 0; i < op->operand_count; i++) AX_TRY(read_operand(b, from, &operands[i]));
  op->operands = operands;
  return AX_OK;
}

static ax_status pass_successors(ax_hlo_bytecode *b, ax_hlo_bytes *from) {
  uint32_t count;
  uint64_t block;
  AX_TRY(ax_hlo_read_count(b, from, &count));
  for (uint32_t i = 0; i < count; i++) AX_TRY(ax_hlo_read_number(b, from, &block));
  return AX_OK;
}

/* --- Regions --- */

static ax_status read_region(ax_hlo_bytecode *b, ax_hlo_bytes *from, const ax_hlo_operation *owner, ax_hlo_region *out) {
  ax_hlo_block *blocks;
  uint32_t count;
  scope values;
  AX_TRY(ax_hlo_read_count(b, from, &out->block_count));
  if (out->block_count == 0) return AX_OK;
  AX_TRY(ax_hlo_read_count(b, from, &count));
  const uint32_t before = b->count;
  AX_TRY(open_scope(b, from, count, &values));
  AX_TRY(ax_hlo_make(b, out->block_count, sizeof blocks[0], &blocks));
  for (uint32_t i = 0; i < out->block_count; i++) AX_TRY(read_block(b, from, &values, owner, &blocks[i]));
  out->blocks = blocks;
  b->count = before;
  return AX_OK;
}

/* Regions that see no values outside are a section of their own, since version 2. */
static ax_status read_regions(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_operation *op) {
  const uint32_t base = b->base;
  ax_hlo_bytes own;
  ax_hlo_region *regions;
  uint64_t count;
  uint32_t id;
  bool isolated;
  AX_TRY(ax_hlo_read_flagged(b, from, &count, &isolated));
  if (count > ax_hlo_left(from)) return ax_hlo_broken(b, from->next, "there are fewer regions");
  op->region_count = (uint32_t)count;
  AX_TRY(ax_hlo_make(b, count, sizeof regions[0], &regions));
  if (isolated) b->base = b->count;
  const bool apart = isolated && b->version >= with_sections;
  if (apart) AX_TRY(ax_hlo_read_section(b, from, &id, &own));
  for (uint32_t i = 0; i < op->region_count; i++) AX_TRY(read_region(b, apart ? &own : from, op, &regions[i]));
  if (is_function(op) && op->region_count == 1 && regions[0].block_count == 0) op->region_count = 0; /* it is only declared */
  op->regions = regions;
  b->base = base;
  return AX_OK;
}

/* --- Operations --- */

static ax_status add_argument_names(ax_hlo_bytecode *b, ax_hlo_operation *op);

/* Between operations of VHLO and of Shardy, which both stand in files of jax.export, values change their types: to those that they have here
   already. Such an operation is its operands. */
static bool is_cast(const ax_hlo_bytecode *b, const ax_hlo_operation *op, const ax_hlo_value_type *const *types) {
  bool same = ax_hlo_slice_is(op->name, "builtin.unrealized_conversion_cast") && op->operand_count == op->result_count;
  for (uint32_t i = 0; same && i < op->operand_count; i++) same = b->scan.module->values[op->operands[i]] == types[i];
  return same;
}

/* *cast: nothing stands in the module for it. */
static ax_status read_parts(ax_hlo_bytecode *b, ax_hlo_bytes *from, unsigned char mask, scope *values, ax_hlo_operation *op,
                            bool *cast) {
  const ax_hlo_value_type **types = NULL;
  uint32_t place = 0;
  if ((mask & HAS_RESULTS) != 0) {
    AX_TRY(read_results(b, from, &types, op));
    AX_TRY(take_places(b, from, values, op->result_count, &place));
  }
  if ((mask & HAS_OPERANDS) != 0) AX_TRY(read_operands(b, from, op));
  if ((mask & HAS_SUCCESSORS) != 0) AX_TRY(pass_successors(b, from));
  if ((mask & HAS_ORDERS) != 0 && b->version >= with_orders) AX_TRY(pass_orders(b, from, op->result_count));
  if ((mask & HAS_REGIONS) != 0) AX_TRY(read_regions(b, from, op));
  *cast = is_cast(b, op, types);
  for (uint32_t k = 0; *cast && k < op->result_count; k++) b->values[place + k] = op->operands[k];
  if (*cast) return AX_OK;
  AX_TRY(ax_hlo_new_values(&b->scan, op->result_count, types, &op->result));
  for (uint32_t k = 0; k < op->result_count; k++) {
    b->values[place + k] = op->result + k;
    b->scan.module->makers[op->result + k] = op;
  }
  return AX_OK;
}

/* return_v1 ends functions and regions alike. */
static ax_hlo_slice name_in(const ax_hlo_coded_name *name, bool in_function) {
  const bool inner = name->form > 0 && !in_function && ax_hlo_slice_is(name->name, "func.return");
  return inner ? (ax_hlo_slice){"stablehlo.return", strlen("stablehlo.return")} : name->name;
}

/* *out: NULL where nothing stands in the module for it. */
static ax_status read_operation(ax_hlo_bytecode *b, ax_hlo_bytes *from, scope *values, bool in_function,
                                const ax_hlo_operation **out) {
  const ax_hlo_attribute *location;
  ax_hlo_operation *op;
  unsigned char mask;
  uint32_t index;
  AX_TRY(ax_hlo_read_below(b, from, b->name_count, "name of an operation", &index));
  AX_TRY(ax_hlo_make(b, 1, sizeof *op, &op));
  const ax_hlo_coded_name *name = &b->names[index];
  op->name = name_in(name, in_function);
  op->place.line = ++b->operations;
  AX_TRY(ax_hlo_read_byte(b, from, &mask));
  AX_TRY(ax_hlo_read_attribute(b, from, &location));
  op->place.location = location->text;
  AX_TRY(read_attributes(b, from, mask, name, op));
  AX_TRY(ax_hlo_enter(&b->scan));
  bool cast;
  AX_TRY(read_parts(b, from, mask, values, op, &cast));
  ax_hlo_leave(&b->scan);
  *out = cast ? NULL : op;
  if (cast) return AX_OK;
  if (ax_hlo_is_called(b, op)) AX_TRY(ax_hlo_called_attributes(b, op));
  return is_function(op) ? add_argument_names(b, op) : AX_OK;
}

/* A copy in the module's arena, between marks. */
static ax_status keep(ax_hlo_bytecode *b, ax_hlo_slice name, const char *mark, ax_hlo_slice *out) {
  ax_text text = {0};
  ax_text_add(&text, "%s%.*s%s", mark, (int)name.length, name.start, mark);
  *out = (ax_hlo_slice){text.failed ? NULL : ax_arena_copy(&b->scan.module->arena, text.data, text.length), text.length};
  ax_text_deinit(&text);
  return out->start != NULL ? AX_OK : ax_out_of_memory(name.length);
}

/* Functions' arguments are called as MLIR calls them in texts: arg0, arg1, .. */
static ax_status add_argument_names(ax_hlo_bytecode *b, ax_hlo_operation *op) {
  const uint32_t count = op->region_count == 1 && op->regions[0].block_count > 0 ? op->regions[0].blocks[0].argument_count : 0;
  ax_hlo_attribute *attributes, *items;
  AX_TRY(ax_hlo_make(b, op->attribute_count + 1, sizeof attributes[0], &attributes));
  AX_TRY(ax_hlo_make(b, count, sizeof items[0], &items));
  for (uint32_t i = 0; i < count; i++) {
    char name[16];
    items[i].kind = AX_HLO_STRING;
    snprintf(name, sizeof name, "arg%u", i);
    AX_TRY(keep(b, (ax_hlo_slice){name, strlen(name)}, "", &items[i].text));
    if (i < b->called_count && b->called[i].length > 0) AX_TRY(keep(b, b->called[i], "\"", &items[i].name));
  }
  if (op->attribute_count > 0) memcpy(attributes, op->attributes, op->attribute_count * sizeof attributes[0]);
  attributes[op->attribute_count++] = (ax_hlo_attribute){
      .kind = AX_HLO_ARRAY, .name = {AX_HLO_ARGUMENT_NAMES, strlen(AX_HLO_ARGUMENT_NAMES)}, .items = items, .count = count};
  op->attributes = attributes;
  return AX_OK;
}

/* --- Blocks --- */

/* *name: NULL, it is not wanted; else what the argument's location calls it. */
static ax_status read_argument(ax_hlo_bytecode *b, ax_hlo_bytes *from, const ax_hlo_value_type **out, ax_hlo_slice *name) {
  const ax_hlo_attribute *place;
  const unsigned char *at = from->next;
  uint64_t type, location;
  bool located = true;
  if (b->version >= with_flagged_locations)
    AX_TRY(ax_hlo_read_flagged(b, from, &type, &located));
  else
    AX_TRY(ax_hlo_read_number(b, from, &type));
  if (type >= b->type_count) return ax_hlo_broken(b, at, "there is no such type");
  if (located && name != NULL) AX_TRY(ax_hlo_read_attribute(b, from, &place));
  else if (located) AX_TRY(ax_hlo_read_number(b, from, &location));
  if (located && name != NULL) *name = place->name;
  return ax_hlo_type_at(b, (uint32_t)type, out);
}

typedef struct argument_types {
  const ax_hlo_value_type **types;
  ax_hlo_slice *names; /* of a function's; empty: it has none */
  uint32_t count;
} argument_types;

static ax_status read_arguments(ax_hlo_bytecode *b, ax_hlo_bytes *from, bool named, argument_types *out) {
  unsigned char ordered = 0;
  AX_TRY(ax_hlo_read_count(b, from, &out->count));
  AX_TRY(ax_hlo_make(b, out->count, sizeof out->types[0], &out->types));
  if (named) AX_TRY(ax_hlo_make(b, out->count, sizeof out->names[0], &out->names));
  for (uint32_t i = 0; i < out->count; i++) AX_TRY(read_argument(b, from, &out->types[i], named ? &out->names[i] : NULL));
  if (b->version >= with_orders) AX_TRY(ax_hlo_read_byte(b, from, &ordered));
  return ordered != 0 ? pass_orders(b, from, out->count) : AX_OK;
}

/* *first: an operation in front of the block's own; NULL: none. */
static ax_status define_arguments(ax_hlo_bytecode *b, const ax_hlo_bytes *at, const argument_types *arguments, scope *values,
                                  const ax_hlo_operation *owner, ax_hlo_block *out, const ax_hlo_operation **first) {
  uint32_t place = 0;
  AX_TRY(take_places(b, at, values, arguments->count, &place));
  if (is_function(owner)) b->called = arguments->names, b->called_count = arguments->count;
  if (ax_hlo_is_called(b, owner))
    return ax_hlo_called_arguments(b, out, arguments->count, arguments->types, arguments->count > 0 ? &b->values[place] : NULL, first);
  out->argument_count = arguments->count;
  AX_TRY(ax_hlo_new_values(&b->scan, arguments->count, arguments->types, &out->argument));
  for (uint32_t i = 0; i < arguments->count; i++) b->values[place + i] = out->argument + i;
  return AX_OK;
}

static ax_status read_block(ax_hlo_bytecode *b, ax_hlo_bytes *from, scope *values, const ax_hlo_operation *owner,
                            ax_hlo_block *out) {
  const ax_hlo_operation *first = NULL;
  argument_types arguments = {0};
  uint64_t count;
  bool has_arguments;
  AX_TRY(ax_hlo_read_flagged(b, from, &count, &has_arguments));
  if (count > ax_hlo_left(from)) return ax_hlo_broken(b, from->next, "there are fewer operations");
  if (has_arguments) AX_TRY(read_arguments(b, from, is_function(owner), &arguments));
  AX_TRY(define_arguments(b, from, &arguments, values, owner, out, &first));
  AX_TRY(ax_hlo_make(b, count + 1, sizeof out->operations[0], &out->operations));
  if (first != NULL) out->operations[out->operation_count++] = first;
  for (uint64_t i = 0; i < count; i++) {
    const ax_hlo_operation **at = &out->operations[out->operation_count];
    AX_TRY(read_operation(b, from, values, is_function(owner), at));
    out->operation_count += *at != NULL;
  }
  return AX_OK;
}

ax_status ax_hlo_read_operations(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_block *out) {
  scope values;
  AX_TRY(open_scope(b, from, 0, &values));
  return read_block(b, from, &values, NULL, out);
}
