/* A file of bytecode:

     'M' 'L' 0xef 'R'   version   producer, ending in 0   sections

   A section is its kind, its length, perhaps an alignment, and its bytes. They stand in any order, so each is found first. Strings and
   names of dialects and operations are listed at once; attributes, types and resources only where they begin and end. */
#include "hlo/read_bytecode.h"

#include <string.h>

#include "hlo/bytecode.h"

enum { newest_version = 6, with_dialect_versions = 1, with_name_counts = 4 };
typedef enum section {
  SECTION_STRINGS,
  SECTION_DIALECTS,
  SECTION_ATTRIBUTES, /* and types */
  SECTION_OFFSETS,    /* of these */
  SECTION_OPERATIONS,
  SECTION_RESOURCES,
  SECTION_RESOURCE_OFFSETS,
  SECTION_VERSIONS, /* inside that of dialects */
  SECTION_PROPERTIES,
  SECTION_COUNT
} section;

static const unsigned char magic[] = {'M', 'L', 0xef, 'R'};

bool ax_hlo_is_bytecode(const char *bytes, size_t count) {
  return count >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}

/* Memory that is needed only while reading. */
static ax_status make(ax_hlo_bytecode *b, size_t count, size_t bytes, void *out) {
  void *made = ax_arena_alloc(&b->arena, count * bytes);
  memcpy(out, &made, sizeof made);
  return made != NULL || count == 0 ? AX_OK : ax_out_of_memory(count * bytes);
}

/* --- Strings: their number, their lengths from the last to the first, their characters; each ends in 0 --- */

static ax_status read_strings(ax_hlo_bytecode *b, ax_hlo_bytes from) {
  ax_hlo_slice *strings;
  ax_hlo_bytes characters;
  uint32_t count;
  uint64_t length;
  AX_TRY(ax_hlo_read_count(b, &from, &count));
  AX_TRY(make(b, count, sizeof strings[0], &strings));
  for (uint32_t i = count; i-- > 0;) {
    AX_TRY(ax_hlo_read_number(b, &from, &length));
    if (length == 0) return ax_hlo_broken(b, from.next, "a string has no end");
    strings[i].length = (size_t)length - 1;
  }
  for (uint32_t i = 0; i < count; i++) {
    AX_TRY(ax_hlo_read_part(b, &from, (uint64_t)strings[i].length + 1, &characters));
    strings[i].start = (const char *)characters.next;
  }
  b->strings = strings;
  b->string_count = count;
  return AX_OK;
}

/* --- Dialects and operations --- */

static ax_hlo_dialect which_dialect(ax_hlo_slice name) {
  static const char *const names[] = {[AX_HLO_BUILTIN] = "builtin",
                                      [AX_HLO_STABLEHLO] = "stablehlo",
                                      [AX_HLO_CHLO] = "chlo",
                                      [AX_HLO_VHLO] = "vhlo",
                                      [AX_HLO_SDY] = "sdy"};
  for (size_t i = AX_HLO_BUILTIN; i < AX_COUNT(names); i++)
    if (ax_hlo_slice_is(name, names[i])) return (ax_hlo_dialect)i;
  return AX_HLO_OTHER_DIALECT;
}

static ax_status read_dialects(ax_hlo_bytecode *b, ax_hlo_bytes *from) {
  ax_hlo_named_dialect *dialects;
  ax_hlo_bytes version;
  uint32_t section;
  uint64_t name;
  bool versioned = false;
  AX_TRY(ax_hlo_read_count(b, from, &b->dialect_count));
  AX_TRY(make(b, b->dialect_count, sizeof dialects[0], &dialects));
  for (uint32_t i = 0; i < b->dialect_count; i++) {
    const unsigned char *at = from->next;
    if (b->version >= with_dialect_versions)
      AX_TRY(ax_hlo_read_flagged(b, from, &name, &versioned));
    else
      AX_TRY(ax_hlo_read_number(b, from, &name));
    if (name >= b->string_count) return ax_hlo_broken(b, at, "there is no such string");
    if (versioned) AX_TRY(ax_hlo_read_section(b, from, &section, &version));
    dialects[i] = (ax_hlo_named_dialect){b->strings[name], which_dialect(b->strings[name])};
  }
  b->dialects = dialects;
  return AX_OK;
}

/* The name without _v and its number, which is *form; 0: there is none. */
static ax_hlo_slice without_form(ax_hlo_slice name, uint32_t *form) {
  size_t digits = 0, length = name.length;
  uint32_t number = 0;
  while (digits < length && digits < 3 && ax_hlo_is_digit(name.start[length - 1 - digits])) digits++;
  for (size_t i = length - digits; i < length; i++) number = 10 * number + (uint32_t)(name.start[i] - '0');
  if (digits == 0 || length < digits + 2 || name.start[length - digits - 1] != 'v' || name.start[length - digits - 2] != '_')
    return *form = 0, name;
  *form = number;
  name.length -= digits + 2;
  return name;
}

/* An operation's name as the tree has it: of VHLO's those of func and StableHLO. */
static ax_status name_operation(ax_hlo_bytecode *b, const ax_hlo_named_dialect *dialect, ax_hlo_slice word,
                                ax_hlo_coded_name *out) {
  static const char *const functions[] = {"func", "call", "return"};
  ax_hlo_slice prefix = dialect->name;
  if (dialect->which == AX_HLO_VHLO) {
    word = without_form(word, &out->form);
    if (out->form == 0) return ax_hlo_broken(b, b->start, "VHLO's operation %.*s has no version", (int)word.length, word.start);
    prefix = (ax_hlo_slice){"stablehlo", strlen("stablehlo")};
    for (size_t i = 0; i < AX_COUNT(functions); i++)
      if (ax_hlo_slice_is(word, functions[i])) prefix = (ax_hlo_slice){"func", strlen("func")};
  }
  char *name = ax_arena_alloc(&b->scan.module->arena, prefix.length + word.length + 1);
  if (name == NULL) return ax_out_of_memory(prefix.length + word.length);
  memcpy(name, prefix.start, prefix.length);
  name[prefix.length] = '.';
  memcpy(name + prefix.length + 1, word.start, word.length);
  out->name = (ax_hlo_slice){name, prefix.length + word.length + 1};
  out->known = ax_hlo_find_known(out->name);
  const ax_hlo_slot *slots[AX_HLO_MOST_SLOTS];
  out->slot_count = ax_hlo_order_slots(out->known, out->form, slots);
  const ax_hlo_slot **kept = ax_arena_alloc(&b->arena, sizeof slots);
  if (kept == NULL) return ax_out_of_memory(sizeof slots);
  memcpy(kept, slots, out->slot_count * sizeof slots[0]);
  out->slots = kept;
  return AX_OK;
}

static ax_status read_name(ax_hlo_bytecode *b, ax_hlo_bytes *from, const ax_hlo_named_dialect *dialect, ax_hlo_list *names) {
  const unsigned char *at = from->next;
  ax_hlo_coded_name name = {0};
  uint64_t string;
  bool registered;
  if (b->version >= AX_HLO_PROPERTIES)
    AX_TRY(ax_hlo_read_flagged(b, from, &string, &registered));
  else
    AX_TRY(ax_hlo_read_number(b, from, &string));
  if (string >= b->string_count) return ax_hlo_broken(b, at, "there is no such string");
  AX_TRY(name_operation(b, dialect, b->strings[string], &name));
  return ax_hlo_list_add(names, &name, sizeof name);
}

/* Operations by dialects. */
static ax_status add_names(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_list *names) {
  uint32_t dialect, count;
  while (from->next < from->end) {
    AX_TRY(ax_hlo_read_below(b, from, b->dialect_count, "dialect", &dialect));
    AX_TRY(ax_hlo_read_count(b, from, &count));
    for (uint32_t i = 0; i < count; i++) AX_TRY(read_name(b, from, &b->dialects[dialect], names));
  }
  return AX_OK;
}

static ax_status read_names(ax_hlo_bytecode *b, ax_hlo_bytes from) {
  ax_hlo_list names = {0};
  uint32_t count;
  AX_TRY(read_dialects(b, &from));
  if (b->version >= with_name_counts && from.next < from.end) AX_TRY(ax_hlo_read_count(b, &from, &count));
  ax_status status = add_names(b, &from, &names);
  b->name_count = names.count;
  b->names = ax_hlo_list_end(&b->scan, &names, sizeof b->names[0], &status);
  return status;
}

/* --- Where attributes and types lie: for each dialect lengths, with a flag for those that the dialect encodes itself --- */

static ax_status read_lengths(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_bytes *data, ax_hlo_coded *coded, uint32_t count) {
  uint32_t dialect, group;
  uint64_t length;
  bool custom;
  for (uint32_t done = 0; done < count;) {
    AX_TRY(ax_hlo_read_below(b, from, b->dialect_count, "dialect", &dialect));
    AX_TRY(ax_hlo_read_count(b, from, &group));
    if (group > count - done) return ax_hlo_broken(b, from->next, "more attributes or types than there are");
    for (const uint32_t end = done + group; done < end; done++) {
      AX_TRY(ax_hlo_read_flagged(b, from, &length, &custom));
      AX_TRY(ax_hlo_read_part(b, data, length, &coded[done].bytes));
      coded[done].dialect = dialect;
      coded[done].custom = custom;
    }
  }
  return AX_OK;
}

static ax_status read_offsets(ax_hlo_bytecode *b, ax_hlo_bytes from, ax_hlo_bytes data) {
  AX_TRY(ax_hlo_read_count(b, &from, &b->attribute_count));
  AX_TRY(ax_hlo_read_count(b, &from, &b->type_count));
  AX_TRY(make(b, b->attribute_count, sizeof b->attributes[0], &b->attributes));
  AX_TRY(make(b, b->type_count, sizeof b->types[0], &b->types));
  AX_TRY(read_lengths(b, &from, &data, b->attributes, b->attribute_count));
  return read_lengths(b, &from, &data, b->types, b->type_count);
}

/* --- Resources: large constants. Each has a name, a length and a kind; blobs have an alignment and their length before them --- */

static ax_status read_resource(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_bytes *data, ax_hlo_resource *out) {
  enum { blob = 0 };
  unsigned char kind;
  uint64_t length, alignment;
  ax_hlo_bytes bytes;
  AX_TRY(ax_hlo_read_string(b, from, &out->name));
  AX_TRY(ax_hlo_read_number(b, from, &length));
  AX_TRY(ax_hlo_read_byte(b, from, &kind));
  AX_TRY(ax_hlo_read_part(b, data, length, &bytes));
  if (kind != blob) return AX_OK;
  AX_TRY(ax_hlo_read_number(b, &bytes, &alignment));
  AX_TRY(ax_hlo_read_number(b, &bytes, &length));
  AX_TRY(ax_hlo_align(b, &bytes, alignment));
  return ax_hlo_read_part(b, &bytes, length, &out->bytes);
}

static ax_status add_resources(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_bytes *data, ax_hlo_list *list) {
  uint32_t count;
  AX_TRY(ax_hlo_read_count(b, from, &count));
  for (uint32_t i = 0; i < count; i++) {
    ax_hlo_resource resource = {0};
    AX_TRY(read_resource(b, from, data, &resource));
    if (list != NULL) AX_TRY(ax_hlo_list_add(list, &resource, sizeof resource));
  }
  return AX_OK;
}

/* Groups of others come first, then those of dialects, which attributes refer to by their numbers. */
static ax_status add_groups(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_bytes *data, ax_hlo_list *list) {
  uint32_t others, dialect;
  ax_hlo_slice key;
  AX_TRY(ax_hlo_read_count(b, from, &others));
  for (uint32_t i = 0; i < others; i++) {
    AX_TRY(ax_hlo_read_string(b, from, &key));
    AX_TRY(add_resources(b, from, data, NULL));
  }
  while (from->next < from->end) {
    AX_TRY(ax_hlo_read_below(b, from, b->dialect_count, "dialect", &dialect));
    AX_TRY(add_resources(b, from, data, list));
  }
  return AX_OK;
}

static ax_status read_resources(ax_hlo_bytecode *b, ax_hlo_bytes from, ax_hlo_bytes data) {
  ax_hlo_list list = {0};
  if (from.next == from.end) return AX_OK;
  ax_status status = add_groups(b, &from, &data, &list);
  b->resource_count = list.count;
  b->resources = ax_hlo_list_end(&b->scan, &list, sizeof b->resources[0], &status);
  return status;
}

/* --- Properties: each operation's own attributes --- */

static ax_status read_properties(ax_hlo_bytecode *b, ax_hlo_bytes from) {
  ax_hlo_bytes *properties;
  if (from.next == from.end) return AX_OK;
  AX_TRY(ax_hlo_read_count(b, &from, &b->property_count));
  AX_TRY(make(b, b->property_count, sizeof properties[0], &properties));
  for (uint32_t i = 0; i < b->property_count; i++) AX_TRY(ax_hlo_read_blob(b, &from, &properties[i]));
  b->properties = properties;
  return AX_OK;
}

/* --- The whole --- */

static ax_status find_sections(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_bytes *sections) {
  static const section needed[] = {SECTION_STRINGS, SECTION_DIALECTS, SECTION_ATTRIBUTES, SECTION_OFFSETS, SECTION_OPERATIONS};
  while (from->next < from->end) {
    const unsigned char *at = from->next;
    ax_hlo_bytes bytes;
    uint32_t id;
    AX_TRY(ax_hlo_read_section(b, from, &id, &bytes));
    if (id >= SECTION_COUNT || sections[id].next != NULL)
      return ax_hlo_broken(b, at, "section %u is not known, or stands here again", id);
    sections[id] = bytes;
  }
  for (size_t i = 0; i < AX_COUNT(needed); i++)
    if (sections[needed[i]].next == NULL) return ax_hlo_broken(b, from->end, "section %u is missing", needed[i]);
  return AX_OK;
}

static ax_status read_header(ax_hlo_bytecode *b, ax_hlo_bytes *from) {
  from->next += sizeof magic;
  AX_TRY(ax_hlo_read_number(b, from, &b->version));
  if (b->version > newest_version)
    return ax_error(AX_ABSENT, "%s: bytecode of version %llu is not read: the newest is %d", b->scan.module->source,
                    (unsigned long long)b->version, newest_version);
  const unsigned char *end = memchr(from->next, '\0', ax_hlo_left(from));
  if (end == NULL) return ax_hlo_broken(b, from->next, "the name of the producer does not end");
  from->next = end + 1;
  return AX_OK;
}

static ax_status read_file(ax_hlo_bytecode *b, ax_hlo_bytes from, ax_hlo_block *out) {
  ax_hlo_bytes sections[SECTION_COUNT] = {{0}};
  AX_TRY(read_header(b, &from));
  AX_TRY(find_sections(b, &from, sections));
  AX_TRY(read_strings(b, sections[SECTION_STRINGS]));
  AX_TRY(read_names(b, sections[SECTION_DIALECTS]));
  AX_TRY(read_offsets(b, sections[SECTION_OFFSETS], sections[SECTION_ATTRIBUTES]));
  AX_TRY(read_resources(b, sections[SECTION_RESOURCE_OFFSETS], sections[SECTION_RESOURCES]));
  AX_TRY(read_properties(b, sections[SECTION_PROPERTIES]));
  return ax_hlo_read_operations(b, &sections[SECTION_OPERATIONS], out);
}

ax_status ax_hlo_read_bytecode(const char *bytes, size_t count, const char *source, ax_hlo_module *out) {
  return ax_hlo_read_called(bytes, count, source, NULL, NULL, out);
}

ax_status ax_hlo_read_called(const char *bytes, size_t count, const char *source, const ax_hlo_calling *calling,
                             struct ax_shared *lender, ax_hlo_module *out) {
  *out = (ax_hlo_module){.source = source, .lender = lender};
  ax_hlo_bytecode b = {.scan = {.module = out},
                       .calling = calling,
                       .start = (const unsigned char *)bytes,
                       .text_left = 64 * count + (1 << 20),
                       .attributes_left = 16 * count,
                       .values_left = count};
  ax_hlo_block body = {0};
  ax_status status = ax_hlo_is_bytecode(bytes, count) ? AX_OK : ax_hlo_broken(&b, b.start, "this is no bytecode of MLIR's");
  if (status == AX_OK) status = read_file(&b, (ax_hlo_bytes){b.start, b.start + count}, &body);
  if (status == AX_OK) ax_hlo_find_body(out, &body);
  if (status == AX_OK && calling != NULL) status = ax_hlo_spread_platform(out);
  ax_arena_deinit(&b.arena);
  ax_free(b.values);
  ax_hlo_free_scan(&b.scan);
  if (status != AX_OK) ax_hlo_module_deinit(out);
  return status;
}
