/* Attributes of operations as VHLO has them, by the tables: every one that its form has, in groups no more, what StableHLO leaves out
   written out. */
#include <string.h>

#include "hlo/canonical.h"
#include "hlo/writer.h"

typedef struct writing { /* one operation */
  ax_hlo_writer *w;
  const ax_hlo_operation *op;
  const ax_hlo_listed *known;
  uint32_t form;
  ax_hlo_entry_index *entries;
  uint32_t count;
} writing;

static ax_status absent(const writing *r, const char *what) {
  return ax_error(AX_ABSENT, "VHLO %u.%u has no %s of it", r->w->version >> 16, r->w->version & 0xffff, what);
}

static bool in_form(const ax_hlo_slot *slot, uint32_t form) {
  return slot->first <= form && (slot->last == 0 || form <= slot->last);
}

static void add(writing *r, const char *name, uint32_t value) {
  r->entries[r->count++] = (ax_hlo_entry_index){{name, strlen(name)}, value};
}

/* --- What is left out --- */

/* The entries of the list whose length another one has; 0: it is not there. */
static uint32_t length_of(const writing *r, const char *name) {
  for (uint32_t i = 0; i < r->op->attribute_count; i++) {
    const ax_hlo_attribute *a = &r->op->attributes[i], *item = a->kind == AX_HLO_DICTIONARY ? ax_hlo_item(a, name) : NULL;
    const ax_hlo_attribute *list = ax_hlo_slice_is(a->name, name) ? a : item;
    if (list == NULL) continue;
    return list->kind == AX_HLO_ELEMENTS && list->type->rank == 1 ? (uint32_t)list->type->dims[0] : list->count;
  }
  return 0;
}

static ax_status write_filled(writing *r, const ax_hlo_slot *slot, uint32_t *out) {
  enum { most = 64 };
  const uint32_t count = slot->like != NULL ? length_of(r, slot->like) : 0;
  const bool pairs = slot->kind == AX_HLO_SLOT_PAIRS && slot->like != NULL;
  int64_t numbers[2 * most];
  if (count > most) return ax_error(AX_INVALID_ARGUMENT, "%s is too long", slot->like);
  for (uint32_t i = 0; i < 2 * most; i++) numbers[i] = slot->otherwise;
  return ax_hlo_write_numbers(r->w, numbers, count, pairs ? 2 : 0, slot->kind == AX_HLO_SLOT_TRUTHS, out);
}

static ax_status write_two_words(writing *r, const ax_hlo_slot *slot, uint32_t *out) {
  uint32_t items[2];
  const char *word = slot->words->words[slot->otherwise];
  AX_TRY(ax_hlo_write_word(r->w, slot->words, (ax_hlo_slice){word, strlen(word)}, &items[0]));
  items[1] = items[0];
  return ax_hlo_write_array(r->w, items, 2, out);
}

/* Configurations of typed calls are dictionaries, those of others strings. */
static bool is_typed_call(const writing *r) {
  enum { typed = 4 };
  const ax_hlo_attribute *version = ax_hlo_find(r->op, "api_version");
  return version != NULL && version->integer == typed;
}

static ax_status write_otherwise(writing *r, const ax_hlo_slot *slot, uint32_t *out) {
  const char *word = slot->words != NULL ? slot->words->words[slot->otherwise] : "";
  const bool dictionary = slot->kind == AX_HLO_SLOT_DICTIONARY || (slot->kind == AX_HLO_SLOT_ANY && is_typed_call(r));
  ax_hlo_attribute empty = {.kind = dictionary ? AX_HLO_DICTIONARY : AX_HLO_STRING};
  switch (slot->kind) {
    case AX_HLO_SLOT_INTEGERS:
    case AX_HLO_SLOT_TRUTHS:
    case AX_HLO_SLOT_PAIRS:
      return write_filled(r, slot, out);
    case AX_HLO_SLOT_INTEGER:
      return ax_hlo_write_integer(r->w, slot->otherwise, "i64", out);
    case AX_HLO_SLOT_INTEGER32:
      return ax_hlo_write_integer(r->w, slot->otherwise, "i32", out);
    case AX_HLO_SLOT_BOOL:
    case AX_HLO_SLOT_UNIT:
      empty = (ax_hlo_attribute){.kind = AX_HLO_BOOL, .integer = slot->otherwise};
      return ax_hlo_write_attribute(r->w, &empty, out);
    case AX_HLO_SLOT_NUMBER:
    case AX_HLO_SLOT_WORD:
      return ax_hlo_write_word(r->w, slot->words, (ax_hlo_slice){word, strlen(word)}, out);
    case AX_HLO_SLOT_WORDS:
      return write_two_words(r, slot, out);
    case AX_HLO_SLOT_ACCURACY:
      return ax_hlo_write_accuracy(r->w, NULL, out);
    case AX_HLO_SLOT_SYMBOLS:
    case AX_HLO_SLOT_ARRAY:
      return ax_hlo_write_array(r->w, NULL, 0, out);
    default:
      return ax_hlo_write_attribute(r->w, &empty, out);
  }
}

/* --- What is there --- */

static ax_status write_words(writing *r, const ax_hlo_slot *slot, const ax_hlo_attribute *a, uint32_t *out) {
  uint32_t *items = ax_arena_alloc(&r->w->arena, (a->count + 1) * sizeof items[0]);
  if (items == NULL) return ax_out_of_memory(a->count * sizeof items[0]);
  for (uint32_t i = 0; i < a->count; i++) AX_TRY(ax_hlo_write_word(r->w, slot->words, a->items[i].text, &items[i]));
  return ax_hlo_write_array(r->w, items, a->count, out);
}

static ax_status write_value(writing *r, const ax_hlo_slot *slot, const ax_hlo_attribute *a, uint32_t *out) {
  const ax_hlo_attribute yes = {.kind = AX_HLO_BOOL, .integer = 1};
  switch (slot->kind) {
    case AX_HLO_SLOT_WORD:
      if (a->kind == AX_HLO_WORD) return ax_hlo_write_word(r->w, slot->words, a->text, out);
      break;
    case AX_HLO_SLOT_WORDS:
      if (a->kind == AX_HLO_ARRAY) return write_words(r, slot, a, out);
      break;
    case AX_HLO_SLOT_NUMBER:
      if (a->kind != AX_HLO_INTEGER || a->integer < 0 || a->integer >= slot->words->count) break;
      return ax_hlo_write_word(r->w, slot->words,
                               (ax_hlo_slice){slot->words->words[a->integer], strlen(slot->words->words[a->integer])}, out);
    case AX_HLO_SLOT_ACCURACY:
      return ax_hlo_write_accuracy(r->w, a, out);
    case AX_HLO_SLOT_UNIT:
      return ax_hlo_write_attribute(r->w, a->kind == AX_HLO_UNIT ? &yes : a, out);
    case AX_HLO_SLOT_INTEGERS:
    case AX_HLO_SLOT_TRUTHS:
      if (a->kind != AX_HLO_NUMBERS) break;
      return ax_hlo_write_numbers(r->w, a->numbers, a->count, 0, slot->kind == AX_HLO_SLOT_TRUTHS, out);
    case AX_HLO_SLOT_PAIRS:
      if (a->kind != AX_HLO_ELEMENTS || a->type->rank != 2 || a->type->dtype != AX_S64 || a->splat) break;
      return ax_hlo_write_numbers(r->w, a->data, a->type->dims[0], a->type->dims[1], false, out);
    case AX_HLO_SLOT_INTEGER32:
      if (a->kind == AX_HLO_INTEGER) return ax_hlo_write_integer(r->w, a->integer, "i32", out);
      break;
    default:
      break;
  }
  return ax_hlo_write_attribute(r->w, a, out);
}

/* The attribute is needed, or has a value that stands for none, or the form has it not. */
static ax_status write_slot(writing *r, const ax_hlo_slot *slot, const ax_hlo_attribute *given) {
  ax_hlo_attribute canonical = {0};
  const char *name = ax_hlo_vhlo_name(slot);
  uint32_t value;
  if (name[0] == '\0') return AX_OK;
  if (given != NULL) AX_TRY(ax_hlo_canonical(&r->w->arena, slot, given, &canonical));
  if (!in_form(slot, r->form)) return given == NULL || ax_hlo_is_default(slot, &canonical) ? AX_OK : absent(r, slot->name);
  if (given == NULL && !slot->optional)
    return ax_error(AX_INVALID_ARGUMENT, "the attribute %s is missing", slot->name);
  AX_TRY(given != NULL ? write_value(r, slot, &canonical, &value) : write_otherwise(r, slot, &value));
  add(r, name, value);
  return AX_OK;
}

/* A channel of number 0, or an algorithm of no types. */
static ax_status write_no_group(writing *r, const ax_hlo_slot *slot) {
  const ax_hlo_group *group = slot->group;
  for (uint32_t i = 0; i < group->count; i++) {
    uint32_t value;
    if (!in_form(&group->slots[i], r->form) || ax_hlo_vhlo_name(&group->slots[i])[0] == '\0') continue;
    if (group->slots[0].kind == AX_HLO_SLOT_TYPE) {
      const ax_hlo_value_type none = {.kind = AX_HLO_SCALAR, .text = {"none", 4}};
      const ax_hlo_attribute a = {.kind = AX_HLO_TYPE, .type = &none};
      AX_TRY(ax_hlo_write_attribute(r->w, &a, &value));
    } else {
      AX_TRY(ax_hlo_write_integer(r->w, 0, "i64", &value));
    }
    add(r, ax_hlo_vhlo_name(&group->slots[i]), value);
  }
  return AX_OK;
}

static ax_status write_group(writing *r, const ax_hlo_slot *slot, const ax_hlo_attribute *given) {
  const ax_hlo_group *group = slot->group;
  if (given == NULL && slot->optional) return write_no_group(r, slot);
  if (given == NULL || given->kind != AX_HLO_DICTIONARY)
    return ax_error(AX_INVALID_ARGUMENT, "the attribute %s is missing", slot->name);
  for (uint32_t i = 0; i < group->count; i++) AX_TRY(write_slot(r, &group->slots[i], ax_hlo_item(given, group->slots[i].name)));
  return AX_OK;
}

/* --- Operations --- */

static bool in_table(const ax_hlo_listed *known, ax_hlo_slice name) {
  for (uint32_t i = 0; known != NULL && i < known->count; i++)
    if (ax_hlo_slice_is(name, known->slots[i].name)) return true;
  return ax_hlo_slice_is(name, AX_HLO_ARGUMENT_NAMES);
}

static ax_status write_all(writing *r) {
  for (uint32_t i = 0; r->known != NULL && i < r->known->count; i++) {
    const ax_hlo_slot *slot = &r->known->slots[i];
    const ax_hlo_attribute *given = ax_hlo_find(r->op, slot->name);
    AX_TRY(slot->group != NULL ? write_group(r, slot, given) : write_slot(r, slot, given));
  }
  for (uint32_t i = 0; i < r->op->attribute_count; i++) {
    const ax_hlo_attribute *a = &r->op->attributes[i];
    if (in_table(r->known, a->name)) continue;
    r->entries[r->count].name = a->name;
    AX_TRY(ax_hlo_write_attribute(r->w, a, &r->entries[r->count].value));
    r->count++;
  }
  return AX_OK;
}

/* The form of the operation that the version has. */
static ax_status find_form(writing *r) {
  const uint32_t *since = r->known != NULL ? r->known->since : (const uint32_t[AX_HLO_MOST_FORMS]){0};
  r->form = since[1] != 0 && since[1] <= r->w->version ? 2 : 1;
  if (r->form == 1 && r->op->region_count > 0 && ax_hlo_slice_is(r->op->name, "stablehlo.composite")) return absent(r, "regions");
  if (since[0] > r->w->version)
    return ax_error(AX_ABSENT, "VHLO has it since version %u.%u", since[0] >> 16, since[0] & 0xffff);
  if (r->form == 1 && r->known != NULL && r->known->single && (r->op->operand_count != 1 || r->op->result_count != 1))
    return absent(r, "form of several operands");
  return AX_OK;
}

/* add of stablehlo.add, and func of func.func. */
static ax_status base_of(const writing *r, ax_hlo_slice *out) {
  static const char *const dialects[] = {"stablehlo.", "func."};
  for (size_t i = 0; i < AX_COUNT(dialects); i++) {
    const size_t length = strlen(dialects[i]);
    if (r->op->name.length <= length || memcmp(r->op->name.start, dialects[i], length) != 0) continue;
    *out = (ax_hlo_slice){r->op->name.start + length, r->op->name.length - length};
    return AX_OK;
  }
  if (ax_hlo_beside(r->op) == AX_HLO_WRITES_VHLO) return ax_error(AX_ABSENT, "VHLO has no such operation");
  return ax_error(AX_ABSENT, "VHLO has no such operation; version %u.%u.0+mixed keeps those of chlo and sdy beside its own",
                  AX_HLO_MAJOR(r->w->version), AX_HLO_MINOR(r->w->version));
}

ax_status ax_hlo_write_named(ax_hlo_writer *w, const ax_hlo_operation *op, uint32_t *name, uint32_t *attributes) {
  writing r = {.w = w, .op = op, .known = ax_hlo_find_known(op->name)};
  ax_hlo_slice base = {0};
  ax_text text = {0};
  AX_TRY(base_of(&r, &base));
  AX_TRY(find_form(&r));
  ax_text_add(&text, "%.*s_v%u", (int)base.length, base.start, r.form);
  AX_TRY(ax_hlo_intern(w, &w->names, AX_HLO_WRITES_VHLO, &text, name));
  r.entries = ax_arena_alloc(&w->arena, (op->attribute_count + AX_HLO_MOST_SLOTS) * sizeof r.entries[0]);
  if (r.entries == NULL) return ax_out_of_memory(op->attribute_count * sizeof r.entries[0]);
  AX_TRY(write_all(&r));
  *attributes = AX_NONE;
  return r.count > 0 ? ax_hlo_write_dictionary(w, r.entries, r.count, attributes) : AX_OK;
}
