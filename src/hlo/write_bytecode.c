/* A module as VHLO in bytecode of version 0, which every reader of MLIR's knows. Operations are written first; strings, names, attributes
   and types are what they asked for. */
#include "hlo/write_bytecode.h"

#include <stdio.h>
#include <string.h>

#include "hlo/writer.h"

enum { HAS_ATTRIBUTES = 1, HAS_RESULTS = 2, HAS_OPERANDS = 4, HAS_REGIONS = 16 };
enum { SECTION_STRINGS, SECTION_DIALECTS, SECTION_ATTRIBUTES, SECTION_OFFSETS, SECTION_OPERATIONS };

/* plain: the operation around it has types of builtin, so that its arguments have. */
static ax_status add_region(ax_hlo_writer *w, const ax_hlo_region *region, bool plain, ax_text *out);

/* --- Operations --- */

static ax_status add_types(ax_hlo_writer *w, const ax_hlo_operation *op, bool plain, ax_text *out) {
  uint32_t type;
  ax_hlo_add_number(out, op->result_count);
  for (uint32_t k = 0; k < op->result_count; k++) {
    const ax_hlo_value_type *of = w->module->values[op->result + k];
    AX_TRY(plain ? ax_hlo_write_plain_type(w, of, &type) : ax_hlo_write_type(w, of, &type));
    ax_hlo_add_number(out, type);
  }
  return AX_OK;
}

/* Functions see no values outside: theirs are counted anew. */
static ax_status add_regions(ax_hlo_writer *w, const ax_hlo_operation *op, ax_text *out) {
  const ax_hlo_region declared = {0};
  const bool isolated = ax_hlo_slice_is(op->name, "func.func");
  const uint32_t scope = w->scope, count = isolated && op->region_count == 0 ? 1 : op->region_count;
  ax_hlo_add_number(out, (uint64_t)count << 1 | isolated);
  if (isolated) w->scope = 0;
  const bool plain = ax_hlo_beside(op) != AX_HLO_WRITES_VHLO;
  for (uint32_t i = 0; i < count; i++) AX_TRY(add_region(w, op->region_count > 0 ? &op->regions[i] : &declared, plain, out));
  w->scope = scope;
  return AX_OK;
}

/* Values of builtin's types become those of VHLO's. */
static ax_status add_changed(ax_hlo_writer *w, uint32_t first, uint32_t count, uint32_t *next, ax_text *out) {
  for (uint32_t k = first; k < first + count; k++) {
    const uint32_t cast = *next;
    AX_TRY(ax_hlo_add_cast(w, w->module->values[k], w->ids[k], true, next, out));
    w->ids[k] = cast;
  }
  return AX_OK;
}

/* `operands`: their numbers in the file. */
static ax_status add_parts(ax_hlo_writer *w, const ax_hlo_operation *op, const uint32_t *operands, bool plain, uint32_t *next,
                           ax_text *out) {
  uint32_t name, attributes, place;
  AX_TRY(ax_hlo_blame(w->module, op, plain ? ax_hlo_write_beside(w, op, &name, &attributes) : ax_hlo_write_named(w, op, &name, &attributes)));
  AX_TRY(ax_hlo_write_place(w, &op->place, &place));
  const bool regions = op->region_count > 0 || ax_hlo_slice_is(op->name, "func.func");
  const char mask = (char)((attributes != AX_NONE ? HAS_ATTRIBUTES : 0) | (op->result_count > 0 ? HAS_RESULTS : 0) |
                           (op->operand_count > 0 ? HAS_OPERANDS : 0) | (regions ? HAS_REGIONS : 0));
  ax_hlo_add_number(out, name);
  ax_text_add_bytes(out, &mask, 1);
  ax_hlo_add_number(out, place);
  if (attributes != AX_NONE) ax_hlo_add_number(out, attributes);
  if (op->result_count > 0) AX_TRY(ax_hlo_blame(w->module, op, add_types(w, op, plain, out)));
  if (op->operand_count > 0) ax_hlo_add_number(out, op->operand_count);
  for (uint32_t i = 0; i < op->operand_count; i++) ax_hlo_add_number(out, operands[i]);
  for (uint32_t k = 0; k < op->result_count; k++) w->ids[op->result + k] = (*next)++;
  return regions ? add_regions(w, op, out) : AX_OK;
}

static ax_status add_operation(ax_hlo_writer *w, const ax_hlo_operation *op, uint32_t *next, ax_text *out) {
  const bool plain = w->mixed && ax_hlo_beside(op) != AX_HLO_WRITES_VHLO;
  uint32_t *operands = ax_arena_alloc(&w->arena, (op->operand_count + 1) * sizeof operands[0]);
  if (operands == NULL) return ax_out_of_memory(op->operand_count * sizeof operands[0]);
  for (uint32_t i = 0; i < op->operand_count; i++) {
    operands[i] = w->ids[op->operands[i]];
    if (!plain) continue;
    const uint32_t cast = *next;
    AX_TRY(ax_hlo_add_cast(w, w->module->values[op->operands[i]], operands[i], false, next, out));
    operands[i] = cast;
  }
  AX_TRY(add_parts(w, op, operands, plain, next, out));
  return plain ? add_changed(w, op->result, op->result_count, next, out) : AX_OK;
}

/* --- Regions --- */

static uint32_t casts_in(const ax_hlo_writer *w, const ax_hlo_block *block, bool plain) {
  uint32_t count = plain ? block->argument_count : 0;
  for (uint32_t i = 0; w->mixed && i < block->operation_count; i++) count += ax_hlo_casts_of(block->operations[i]);
  return count;
}

static ax_status add_block(ax_hlo_writer *w, const ax_hlo_block *block, bool plain, uint32_t *next, ax_text *out) {
  const ax_hlo_place nowhere = {0};
  uint32_t type, place;
  ax_hlo_add_number(out, ((uint64_t)block->operation_count + casts_in(w, block, plain)) << 1 | (block->argument_count > 0));
  if (block->argument_count > 0) ax_hlo_add_number(out, block->argument_count);
  for (uint32_t i = 0; i < block->argument_count; i++) {
    const ax_hlo_value_type *of = w->module->values[block->argument + i];
    AX_TRY(plain ? ax_hlo_write_plain_type(w, of, &type) : ax_hlo_write_type(w, of, &type));
    AX_TRY(ax_hlo_write_place(w, &nowhere, &place));
    ax_hlo_add_number(out, type);
    ax_hlo_add_number(out, place);
    w->ids[block->argument + i] = (*next)++;
  }
  if (plain) AX_TRY(add_changed(w, block->argument, block->argument_count, next, out));
  for (uint32_t i = 0; i < block->operation_count; i++) AX_TRY(add_operation(w, block->operations[i], next, out));
  return AX_OK;
}

static ax_status add_region(ax_hlo_writer *w, const ax_hlo_region *region, bool plain, ax_text *out) {
  uint32_t values = 0;
  ax_hlo_add_number(out, region->block_count);
  if (region->block_count == 0) return AX_OK;
  for (uint32_t b = 0; b < region->block_count; b++) {
    values += region->blocks[b].argument_count + casts_in(w, &region->blocks[b], plain);
    for (uint32_t i = 0; i < region->blocks[b].operation_count; i++) values += region->blocks[b].operations[i]->result_count;
  }
  ax_hlo_add_number(out, values);
  uint32_t next = w->scope;
  w->scope += values;
  for (uint32_t b = 0; b < region->block_count; b++) AX_TRY(add_block(w, &region->blocks[b], plain, &next, out));
  w->scope -= values;
  return AX_OK;
}

/* builtin.module, alone in a block, and its region, which is isolated. */
static ax_status add_module(ax_hlo_writer *w, ax_text *out) {
  const ax_hlo_module *m = w->module;
  const ax_hlo_place nowhere = {0};
  const ax_hlo_region region = {.block_count = 1, .blocks = &m->body};
  ax_hlo_entry_index *entries = ax_arena_alloc(&w->arena, (m->attribute_count + 1) * sizeof entries[0]);
  ax_text word = {0};
  uint32_t name, place, attributes;
  if (entries == NULL) return ax_out_of_memory(0);
  for (uint32_t i = 0; i < m->attribute_count; i++) {
    ax_hlo_attribute a = m->attributes[i];
    if (a.kind == AX_HLO_SYMBOL) a.kind = AX_HLO_STRING;
    entries[i].name = a.name;
    AX_TRY(ax_hlo_write_builtin(w, &a, &entries[i].value));
  }
  AX_TRY(ax_hlo_write_dictionary(w, entries, m->attribute_count, &attributes));
  AX_TRY(ax_hlo_write_place(w, &nowhere, &place));
  ax_text_add(&word, "module");
  AX_TRY(ax_hlo_intern(w, &w->names, AX_HLO_WRITES_BUILTIN, &word, &name));
  const char mask = HAS_ATTRIBUTES | HAS_REGIONS;
  ax_hlo_add_number(out, 1 << 1);
  ax_hlo_add_number(out, name);
  ax_text_add_bytes(out, &mask, 1);
  ax_hlo_add_number(out, place);
  ax_hlo_add_number(out, attributes);
  ax_hlo_add_number(out, 1 << 1 | 1);
  return add_region(w, &region, false, out);
}

/* --- Sections --- */

static void add_section(ax_text *out, uint32_t id, ax_text *section) {
  const char byte = (char)id;
  ax_text_add_bytes(out, &byte, 1);
  ax_hlo_add_number(out, section->length);
  if (section->length > 0) ax_text_add_bytes(out, section->data, section->length);
  out->failed = out->failed || section->failed;
  ax_text_deinit(section);
  *section = (ax_text){0};
}

/* Things of one dialect that follow each other are a group. */
static uint32_t group_end(const ax_hlo_pool *pool, uint32_t i) {
  uint32_t end = i + 1;
  while (end < pool->count && pool->items[end].dialect == pool->items[i].dialect) end++;
  return end;
}

static void add_lengths(const ax_hlo_pool *pool, ax_text *out) {
  for (uint32_t i = 0; i < pool->count;) {
    const uint32_t end = group_end(pool, i);
    const bool custom = pool->items[i].dialect != AX_HLO_WRITES_TEXT;
    ax_hlo_add_number(out, custom ? pool->items[i].dialect : AX_HLO_WRITES_BUILTIN);
    ax_hlo_add_number(out, end - i);
    for (; i < end; i++) ax_hlo_add_number(out, pool->items[i].bytes.length << 1 | custom);
  }
}

static void add_all(const ax_hlo_pool *pool, ax_text *out) {
  for (uint32_t i = 0; i < pool->count; i++) ax_text_add_bytes(out, pool->items[i].bytes.start, pool->items[i].bytes.length);
}

static ax_status add_dialects(ax_hlo_writer *w, ax_text *out) {
  static const char *const names[AX_HLO_WRITES_COUNT] = {"builtin", "vhlo", "chlo", "sdy"};
  const uint32_t count = w->mixed ? AX_HLO_WRITES_COUNT : AX_HLO_WRITES_VHLO + 1;
  uint32_t string;
  ax_hlo_add_number(out, count);
  for (uint32_t i = 0; i < count; i++) {
    AX_TRY(ax_hlo_intern_string(w, (ax_hlo_slice){names[i], strlen(names[i])}, &string));
    ax_hlo_add_number(out, string);
  }
  for (uint32_t i = 0; i < w->names.count;) {
    const uint32_t end = group_end(&w->names, i);
    ax_hlo_add_number(out, w->names.items[i].dialect);
    ax_hlo_add_number(out, end - i);
    for (; i < end; i++) {
      AX_TRY(ax_hlo_intern_string(w, w->names.items[i].bytes, &string));
      ax_hlo_add_number(out, string);
    }
  }
  return AX_OK;
}

static void add_strings(const ax_hlo_pool *strings, ax_text *out) {
  ax_hlo_add_number(out, strings->count);
  for (uint32_t i = strings->count; i-- > 0;) ax_hlo_add_number(out, strings->items[i].bytes.length + 1);
  for (uint32_t i = 0; i < strings->count; i++)
    ax_text_add_bytes(out, strings->items[i].bytes.start, strings->items[i].bytes.length + 1);
}

static void add_tables(ax_hlo_writer *w, ax_text *dialects, ax_text *out) {
  ax_text section = {0};
  add_strings(&w->strings, &section);
  add_section(out, SECTION_STRINGS, &section);
  add_section(out, SECTION_DIALECTS, dialects);
  add_all(&w->attributes, &section);
  add_all(&w->types, &section);
  add_section(out, SECTION_ATTRIBUTES, &section);
  ax_hlo_add_number(&section, w->attributes.count);
  ax_hlo_add_number(&section, w->types.count);
  add_lengths(&w->attributes, &section);
  add_lengths(&w->types, &section);
  add_section(out, SECTION_OFFSETS, &section);
}

static ax_status write_file(ax_hlo_writer *w, ax_text *operations, ax_text *dialects, ax_text *out) {
  static const char magic[] = {'M', 'L', (char)0xef, 'R'};
  w->ids = ax_arena_alloc(&w->arena, (w->module->value_count + 1) * sizeof w->ids[0]);
  if (w->ids == NULL) return ax_out_of_memory(w->module->value_count * sizeof w->ids[0]);
  AX_TRY(add_module(w, operations));
  AX_TRY(add_dialects(w, dialects));
  ax_text_add_bytes(out, magic, sizeof magic);
  ax_hlo_add_number(out, 0);
  ax_text_add(out, "StableHLO_v%u.%u.0", w->version >> 16, w->version & 0xffff);
  ax_text_add_bytes(out, "", 1);
  add_tables(w, dialects, out);
  add_section(out, SECTION_OPERATIONS, operations);
  return out->failed ? ax_out_of_memory(out->length) : AX_OK;
}

ax_status ax_hlo_write_bytecode(const ax_hlo_module *module, uint32_t version, ax_text *out) {
  ax_hlo_writer w = {.module = module, .version = version & ~(uint32_t)AX_HLO_MIXED, .mixed = (version & AX_HLO_MIXED) != 0,
                     .attributes_left = 1 << 26};
  ax_text operations = {0}, dialects = {0};
  const ax_status status = write_file(&w, &operations, &dialects, out);
  ax_text_deinit(&operations);
  ax_text_deinit(&dialects);
  ax_hlo_pool_deinit(&w.strings);
  ax_hlo_pool_deinit(&w.names);
  ax_hlo_pool_deinit(&w.attributes);
  ax_hlo_pool_deinit(&w.types);
  ax_arena_deinit(&w.arena);
  return status;
}

/* --- Versions --- */

ax_status ax_hlo_parse_version(const char *word, uint32_t *out) {
  unsigned major = 1, minor = 0, patch = 0;
  int length = 0;
  const bool read = word == NULL || sscanf(word, "%4u.%4u.%4u%n", &major, &minor, &patch, &length) == 3;
  const bool mixed = read && word != NULL && strcmp(word + length, "+mixed") == 0, whole = mixed || word == NULL || word[length] == '\0';
  const uint32_t version = AX_HLO_VERSION(major, minor);
  *out = version | (mixed ? AX_HLO_MIXED : 0);
  if (read && whole && version >= AX_HLO_OLDEST && version <= AX_HLO_NEWEST) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "\"%s\" is no version of VHLO from 0.9.0 to 1.20.0", word);
}
