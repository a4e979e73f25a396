/* Treedefs: leaves in order, found by name.

     names  types  specs      by leaf
     table                    what each name means, leaves' and nodes', by hash

   All nodes that leaves stand below are in the table too, so that a name which would be both a leaf and a node is refused when it
   is added, whichever of the two comes first. */
#include "tree/treedef.h"

#include <stdio.h>
#include <string.h>

#include "ir/program.h"
#include "tree/pattern.h"

/* --- Made and released --- */

ax_status ax_treedef_begin(ax_treedef **out) {
  ax_treedef *def = *out = ax_calloc(1, sizeof *def);
  if (def == NULL) return ax_out_of_memory(sizeof *def);
  atomic_init(&def->references, 1);
  pthread_mutex_init(&def->lock, NULL);
  return AX_OK;
}

ax_treedef *ax_treedef_retain(ax_treedef *def) {
  if (def != NULL) atomic_fetch_add(&def->references, 1);
  return def;
}

void ax_treedef_release(ax_treedef *def) {
  if (def == NULL || atomic_fetch_sub(&def->references, 1) != 1) return;
  pthread_mutex_destroy(&def->lock);
  ax_arena_deinit(&def->selected);
  ax_arena_deinit(&def->arena);
  ax_free(def->names);
  ax_free(def->specs);
  ax_free(def->types);
  ax_free(def->table);
  ax_free(def->all_specs);
  ax_free(def);
}

static ax_status put_specs_together(ax_treedef *def) {
  ax_text text = {0};
  ax_text_add(&text, "%s", def->count > 0 ? def->specs[0] : "");
  for (uint32_t i = 1; i < def->count; i++) ax_text_add(&text, "; %s", def->specs[i]);
  return ax_text_finish(&text, &def->all_specs);
}

ax_status ax_treedef_finish(ax_treedef *def, ax_status status, ax_treedef **out) {
  if (status == AX_OK) status = put_specs_together(def);
  if (status != AX_OK) ax_treedef_release(def);
  *out = status == AX_OK ? def : NULL;
  return status;
}

/* --- Names --- */

/* The place of a name in the table: its own, or the empty one where it would be. The table has empty places. */
static ax_tree_name *place_of(const ax_treedef *def, const char *name, size_t length) {
  uint64_t hash = ax_hash_bytes(AX_HASH_SEED, name, length);
  for (uint32_t i = (uint32_t)hash;; i++) {
    ax_tree_name *place = &def->table[i & (def->table_size - 1)];
    if (place->start == NULL || (place->length == length && memcmp(place->start, name, length) == 0)) return place;
  }
}

uint32_t ax_treedef_leaf(const ax_treedef *def, const char *name, size_t length) {
  if (def->table_size == 0) return AX_NONE;
  const ax_tree_name *place = place_of(def, name, length);
  return place->start != NULL ? place->leaf : AX_NONE;
}

uint32_t ax_treedef_first(const ax_treedef *def, const char *name) {
  if (def->table_size == 0) return AX_NONE;
  const ax_tree_name *place = place_of(def, name, strlen(name));
  return place->start != NULL ? place->first : AX_NONE;
}

/* Room for `more` names, with half of the places left empty. */
static ax_status make_room(ax_treedef *def, uint32_t more) {
  uint32_t size = def->table_size > 0 ? def->table_size : 16;
  while (size / 2 < def->table_count + more) size *= 2;
  if (size == def->table_size) return AX_OK;
  ax_tree_name *old = def->table, *fresh = ax_calloc(size, sizeof fresh[0]);
  uint32_t old_size = def->table_size;
  if (fresh == NULL) return ax_out_of_memory(size * sizeof fresh[0]);
  def->table = fresh;
  def->table_size = size;
  for (uint32_t i = 0; i < old_size; i++)
    if (old[i].start != NULL) *place_of(def, old[i].start, old[i].length) = old[i];
  ax_free(old);
  return AX_OK;
}

static int shown(size_t length) { return length < AX_MAX_LEAF_NAME ? (int)length : AX_MAX_LEAF_NAME; }

/* *nodes: how many the leaf is below. */
static ax_status check_name(const char *name, size_t length, uint32_t *nodes) {
  *nodes = 0;
  if (length == 0) return ax_error(AX_INVALID_ARGUMENT, "a leaf needs a name");
  if (length >= AX_MAX_LEAF_NAME)
    return ax_error(AX_INVALID_ARGUMENT, "the name \"%.*s..\" has more than %d bytes", 64, name, AX_MAX_LEAF_NAME - 1);
  for (size_t i = 0; i < length; i++) {
    bool empty = name[i] == '/' && (i == 0 || i + 1 == length || name[i - 1] == '/');
    *nodes += name[i] == '/';
    if (empty)
      return ax_error(AX_INVALID_ARGUMENT, "the name \"%.*s\" has an empty word: '/' stands between words", shown(length), name);
    if (!ax_is_leaf_character(name[i]))
      return ax_error(AX_INVALID_ARGUMENT, "\"%.*s\" is not a name: it has letters, digits and any of _ - . /", shown(length),
                      name);
  }
  return AX_OK;
}

/* The name, which is in the arena, becomes the next leaf's, and all its beginnings before a '/' nodes. There is room for them. */
static ax_status enter_name(ax_treedef *def, const char *name, size_t length) {
  ax_tree_name *place;
  for (size_t i = 1; i < length; i++) {
    if (name[i] != '/') continue;
    place = place_of(def, name, i);
    if (place->start != NULL && place->leaf != AX_NONE)
      return ax_error(AX_INVALID_ARGUMENT, "\"%s\" cannot be below \"%.*s\", which is a leaf", name, (int)i, name);
    if (place->start != NULL) continue;
    def->table_count++;
    *place = (ax_tree_name){name, (uint32_t)i, AX_NONE, def->count};
  }
  place = place_of(def, name, length);
  if (place->start != NULL && place->leaf != AX_NONE) return ax_error(AX_INVALID_ARGUMENT, "there is a leaf \"%s\" already", name);
  if (place->start != NULL) return ax_error(AX_INVALID_ARGUMENT, "\"%s\" cannot be a leaf: there are leaves below it", name);
  def->table_count++;
  *place = (ax_tree_name){name, (uint32_t)length, def->count, def->count};
  return AX_OK;
}

/* --- Leaves --- */

static bool is_open(const char *spec, const char *word, size_t bytes) {
  return bytes == 1 && *word == '_' && word[1] != '+' && (word == spec || word[-1] == ',');
}

/* Entries with commas between: `_`, or names with `+` between, none of them twice. */
static ax_status check_spec(const char *name, const char *spec, uint32_t rank) {
  ax_mesh used = {0}; /* the names, as a mesh's */
  uint32_t entries = *spec != '\0';
  for (const char *word = spec; *spec != '\0';) {
    size_t bytes = strcspn(word, ",+");
    if (!is_open(spec, word, bytes)) {
      if (!ax_is_name(word, bytes))
        return ax_error(AX_INVALID_ARGUMENT, "%s: spec \"%s\": expected an axis or _, got \"%.*s\"", name, spec, shown(bytes),
                        word);
      if (used.count == AX_MAX_AXES)
        return ax_error(AX_INVALID_ARGUMENT, "%s: spec \"%s\": more than %d axes", name, spec, AX_MAX_AXES);
      char *axis = used.axis[used.count].name;
      memcpy(axis, word, bytes);
      if (ax_mesh_find(&used, axis) >= 0)
        return ax_error(AX_INVALID_ARGUMENT, "%s: spec \"%s\": axis \"%s\" is used twice", name, spec, axis);
      used.count++;
    }
    entries += word[bytes] == ',';
    if (word[bytes] == '\0') break;
    word += bytes + 1;
  }
  if (entries <= rank) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%s: spec \"%s\" has %u entries for %u dimensions", name, spec, entries, rank);
}

/* The text without blanks, the arena's. NULL: no memory. */
static char *copy_spec(ax_treedef *def, const char *spec, size_t length) {
  char *copy = ax_arena_alloc(&def->arena, length + 1);
  size_t written = 0;
  for (size_t i = 0; copy != NULL && i < length; i++)
    if (spec[i] != ' ' && spec[i] != '\t' && spec[i] != '\r') copy[written++] = spec[i];
  return copy;
}

ax_status ax_treedef_add(ax_treedef *def, const char *name, size_t name_length, const ax_type *type, const char *spec,
                         size_t spec_length) {
  uint32_t nodes, i = def->count;
  AX_TRY(check_name(name, name_length, &nodes));
  if (def->count == AX_MAX_LEAVES) return ax_error(AX_INVALID_ARGUMENT, "more than %d leaves", AX_MAX_LEAVES);
  char *own_name = ax_arena_alloc(&def->arena, name_length + 1), *own_spec = copy_spec(def, spec, spec_length);
  if (own_name == NULL || own_spec == NULL) return ax_out_of_memory(name_length + spec_length);
  memcpy(own_name, name, name_length);
  ax_status status = ax_type_check(type, &(ax_mesh){0});
  if (status == AX_OK && type->form != AX_ARRAY) status = ax_error(AX_INVALID_ARGUMENT, "a leaf is an array, not a future");
  if (status != AX_OK) return ax_error_context(status, "%s: ", own_name);
  AX_TRY(check_spec(own_name, own_spec, type->rank));
  AX_TRY(make_room(def, nodes + 1));
  AX_TRY(ax_grow(&def->names, sizeof def->names[0], i, 1, &def->name_capacity));
  AX_TRY(ax_grow(&def->specs, sizeof def->specs[0], i, 1, &def->spec_capacity));
  AX_TRY(ax_grow(&def->types, sizeof def->types[0], i, 1, &def->type_capacity));
  AX_TRY(enter_name(def, own_name, name_length));
  def->names[i] = own_name;
  def->specs[i] = own_spec;
  def->types[i] = *type;
  def->count++;
  return AX_OK;
}

/* --- Of other things --- */

static ax_status add_all(ax_treedef *def, uint32_t count, const char *const *names, const ax_type *types,
                         const char *const *specs) {
  if (count > 0) {
    AX_TRY(ax_require(names, "list of names"));
    AX_TRY(ax_require(types, "list of types"));
  }
  for (uint32_t i = 0; i < count; i++) {
    const char *spec = specs == NULL ? "" : specs[i];
    if (names[i] == NULL || spec == NULL)
      return ax_error(AX_INVALID_ARGUMENT, "leaf %u has no %s", i, names[i] == NULL ? "name" : "spec");
    ax_type type = types[i];
    type.spread = (ax_spread){0};
    AX_TRY(ax_treedef_add(def, names[i], strlen(names[i]), &type, spec, strlen(spec)));
  }
  return AX_OK;
}

ax_status (ax_treedef_create)(uint32_t count, const char *const *names, uint32_t type_count, const ax_type *types,
                              uint32_t spec_count, const char *const *specs, ax_treedef **out) {
  *out = NULL;
  AX_TRY(ax_list_check("treedef_create", "the names take", "type", type_count, count));
  if (specs != NULL) AX_TRY(ax_list_check("treedef_create", "the names take", "spec", spec_count, count));
  AX_TRY(ax_treedef_begin(out));
  ax_status status = ax_treedef_finish(*out, add_all(*out, count, names, types, specs), out);
  return status == AX_INVALID_ARGUMENT ? ax_error_context(status, "treedef_create: ") : status;
}

static ax_status add_part(ax_treedef *def, const char *prefix, size_t length, const ax_treedef *part) {
  char name[2 * AX_MAX_LEAF_NAME];
  if (length >= AX_MAX_LEAF_NAME)
    return ax_error(AX_INVALID_ARGUMENT, "the prefix \"%.*s..\" has more than %d bytes", 64, prefix, AX_MAX_LEAF_NAME - 1);
  for (uint32_t i = 0; i < part->count; i++) {
    int bytes = snprintf(name, sizeof name, "%.*s%s%s", (int)length, prefix, length > 0 ? "/" : "", part->names[i]);
    AX_TRY(ax_treedef_add(def, name, (size_t)bytes, &part->types[i], part->specs[i], strlen(part->specs[i])));
  }
  return AX_OK;
}

static uint32_t pieces_of(const char *text) {
  uint32_t count = 1;
  for (const char *c = text; *c != '\0'; c++) count += *c == ';';
  return count;
}

static ax_status add_parts(ax_treedef *def, const char *prefixes, uint32_t count, ax_treedef *const *parts) {
  const char *from = prefixes;
  if (pieces_of(prefixes) != count && (count > 0 || *prefixes != '\0'))
    return ax_error(AX_INVALID_ARGUMENT, "\"%.200s\" has %u names for %u parts", prefixes, pieces_of(prefixes), count);
  for (uint32_t i = 0; i < count; i++) {
    size_t length = strcspn(from, ";"), lead = strspn(from, " ");
    const char *prefix = from + (lead < length ? lead : length), *end = from + length;
    while (end > prefix && end[-1] == ' ') end--;
    if (parts[i] == NULL) return ax_error(AX_INVALID_ARGUMENT, "part %u has no treedef", i);
    AX_TRY(add_part(def, prefix, (size_t)(end - prefix), parts[i]));
    from += length + 1;
  }
  return AX_OK;
}

ax_status (ax_treedef_join)(const char *prefixes, uint32_t count, ax_treedef *const *parts, ax_treedef **out) {
  *out = NULL;
  AX_TRY(ax_require(prefixes, "list of prefixes"));
  count = ax_list_entries(count, pieces_of(prefixes));
  if (count > 0) AX_TRY(ax_require(parts, "list of treedefs"));
  AX_TRY(ax_treedef_begin(out));
  ax_status status = ax_treedef_finish(*out, add_parts(*out, prefixes, count, parts), out);
  return status == AX_INVALID_ARGUMENT ? ax_error_context(status, "treedef_join: ") : status;
}

static ax_status add_with_specs(ax_treedef *def, const ax_treedef *from, const ax_rules *rules) {
  for (uint32_t i = 0; i < from->count; i++) {
    const char *name = from->names[i];
    const ax_rule *rule = ax_rules_find(rules, name);
    if (rule == NULL) return ax_error(AX_INVALID_ARGUMENT, "no pattern matches the leaf \"%s\"; \"*: \" would", name);
    AX_TRY(ax_treedef_add(def, name, strlen(name), &from->types[i], rule->value.start, rule->value.length));
  }
  return AX_OK;
}

ax_status ax_treedef_with_specs(const ax_treedef *def, const char *rules, ax_treedef **out) {
  ax_rules parsed = {0};
  *out = NULL;
  AX_TRY(ax_require(def, "treedef"));
  ax_status status = ax_rules_parse(rules, "treedef_with_specs", true, &parsed);
  if (status == AX_OK) status = ax_treedef_begin(out);
  if (status == AX_OK) status = ax_treedef_finish(*out, add_with_specs(*out, def, &parsed), out);
  ax_rules_deinit(&parsed);
  return status == AX_INVALID_ARGUMENT ? ax_error_context(status, "treedef_with_specs: ") : status;
}
