/* Attributes of VHLO's operations as StableHLO has them, by the tables: entries of groups come together, lists of integers and symbols
   are what they were, and what StableHLO may leave out is left out. Attributes that the tables do not have stay. */
#include <string.h>

#include "hlo/bytecode.h"
#include "hlo/canonical.h"

/* The attribute as the tables say, with its type where it is a list or a number. A list has an entry for each dimension, so that many
   operations may have it. */
static ax_status convert(ax_hlo_bytecode *b, const ax_hlo_slot *slot, ax_hlo_attribute *attribute) {
  enum { most_listed = 64 };
  const bool listed = slot->kind == AX_HLO_SLOT_INTEGERS || slot->kind == AX_HLO_SLOT_TRUTHS;
  const ax_hlo_attribute from = *attribute;
  if (listed && from.kind == AX_HLO_ELEMENTS && ax_hlo_element_count(from.type) > most_listed)
    return ax_error(AX_PARSE_ERROR, "%s: %s is too long", b->scan.module->source, slot->name);
  if (slot->kind == AX_HLO_SLOT_SYMBOLS && from.kind == AX_HLO_ARRAY) {
    if (from.count > b->attributes_left) return ax_error(AX_PARSE_ERROR, "%s: %s is too long", b->scan.module->source, slot->name);
    b->attributes_left -= from.count;
  }
  AX_TRY(ax_hlo_canonical(&b->scan.module->arena, slot, &from, attribute));
  if (slot->kind == AX_HLO_SLOT_NUMBER) attribute->text = (ax_hlo_slice){0};
  if (slot->kind == AX_HLO_SLOT_NUMBER) return ax_hlo_type_of_text(b, "i32", 3, &attribute->type);
  if (!listed || attribute->kind != AX_HLO_NUMBERS || from.kind == AX_HLO_NUMBERS) return AX_OK;
  return ax_hlo_type_of_text(b, slot->kind == AX_HLO_SLOT_TRUTHS ? "i1" : "i64", slot->kind == AX_HLO_SLOT_TRUTHS ? 2 : 3,
                             &attribute->type);
}

/* --- Operations --- */

static const ax_hlo_attribute *find(const ax_hlo_attribute *items, uint32_t count, const char *name) {
  for (uint32_t i = 0; i < count; i++)
    if (ax_hlo_slice_is(items[i].name, name)) return &items[i];
  return NULL;
}

/* The group's entries that are there, and 0 for those that VHLO does not have. */
static ax_status gather_group(ax_hlo_bytecode *b, const ax_hlo_slot *slot, const ax_hlo_attribute *items, uint32_t count,
                              ax_hlo_attribute *out) {
  const ax_hlo_group *group = slot->group;
  ax_hlo_attribute *entries;
  AX_TRY(ax_hlo_make(b, group->count, sizeof entries[0], &entries));
  *out = (ax_hlo_attribute){.kind = AX_HLO_DICTIONARY, .text = {group->name, strlen(group->name)}, .items = entries};
  for (uint32_t i = 0; i < group->count; i++) {
    const ax_hlo_slot *part = &group->slots[i];
    const bool absent = part->vhlo_name != NULL && part->vhlo_name[0] == '\0';
    const ax_hlo_attribute *found = absent ? NULL : find(items, count, ax_hlo_vhlo_name(part));
    if (found == NULL && !absent) continue;
    ax_hlo_attribute *entry = &entries[out->count++];
    *entry = found != NULL ? *found : (ax_hlo_attribute){.kind = AX_HLO_INTEGER};
    entry->name = (ax_hlo_slice){part->name, strlen(part->name)};
    AX_TRY(convert(b, part, entry));
  }
  return AX_OK;
}

static bool in_tables(const ax_hlo_listed *known, ax_hlo_slice name) {
  for (uint32_t i = 0; known != NULL && i < known->count; i++) {
    const ax_hlo_slot *slot = &known->slots[i];
    if (slot->group == NULL && ax_hlo_slice_is(name, ax_hlo_vhlo_name(slot))) return true;
    for (uint32_t k = 0; slot->group != NULL && k < slot->group->count; k++)
      if (ax_hlo_slice_is(name, ax_hlo_vhlo_name(&slot->group->slots[k]))) return true;
  }
  return false;
}

static ax_status add_known(ax_hlo_bytecode *b, const ax_hlo_slot *slot, const ax_hlo_attribute *items, uint32_t count,
                           ax_hlo_attribute *out, uint32_t *out_count) {
  ax_hlo_attribute attribute = {0};
  if (slot->group != NULL) {
    AX_TRY(gather_group(b, slot, items, count, &attribute));
  } else {
    const ax_hlo_attribute *found = find(items, count, ax_hlo_vhlo_name(slot));
    if (found == NULL) return AX_OK;
    attribute = *found;
    AX_TRY(convert(b, slot, &attribute));
  }
  if (ax_hlo_is_default(slot, &attribute)) return AX_OK;
  attribute.name = (ax_hlo_slice){slot->name, strlen(slot->name)};
  out[(*out_count)++] = attribute;
  return AX_OK;
}

ax_status ax_hlo_from_vhlo(ax_hlo_bytecode *b, const ax_hlo_coded_name *name, const ax_hlo_attribute *items, uint32_t count,
                           ax_hlo_operation *op) {
  const ax_hlo_listed *known = name->known;
  ax_hlo_attribute *out;
  AX_TRY(ax_hlo_make(b, count + (known != NULL ? known->count : 0), sizeof out[0], &out));
  for (uint32_t i = 0; known != NULL && i < known->count; i++)
    AX_TRY(add_known(b, &known->slots[i], items, count, out, &op->attribute_count));
  for (uint32_t i = 0; i < count; i++)
    if (!in_tables(known, items[i].name)) out[op->attribute_count++] = items[i];
  op->attributes = out;
  return AX_OK;
}
