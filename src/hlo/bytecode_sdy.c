/* Shardy's attributes as bytecode encodes them, by their codes. They become their texts, which hlo/sdy.c reads: an attribute's parts are
   attributes of their own, with texts of their own. */
#include <inttypes.h>
#include <string.h>

#include "hlo/bytecode.h"

enum { most_characters = 1 << 20 }; /* of one attribute's text */

/* Names are strings; a mesh is a symbol or an attribute. */
static void add_text(ax_text *text, const ax_hlo_attribute *part) {
  const char *around = part->kind == AX_HLO_STRING ? "\"" : "";
  if (text->length > most_characters) return;
  ax_text_add(text, "%s%s%.*s%s", around, part->kind == AX_HLO_SYMBOL ? "@" : "", (int)part->text.length, part->text.start, around);
}

static ax_status add_part(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_text *text) {
  const ax_hlo_attribute *part;
  AX_TRY(ax_hlo_read_attribute(b, from, &part));
  add_text(text, part);
  return AX_OK;
}

/* A list, with what stands before it and behind it; an empty one is left out where `always` is false. */
static ax_status add_list(ax_hlo_bytecode *b, ax_hlo_bytes *from, const char *open, const char *close, bool always, ax_text *text) {
  uint32_t count;
  AX_TRY(ax_hlo_read_count(b, from, &count));
  if (count == 0 && !always) return AX_OK;
  ax_text_add(text, "%s", open);
  for (uint32_t i = 0; i < count; i++) {
    if (i > 0) ax_text_add(text, ", ");
    AX_TRY(add_part(b, from, text));
  }
  ax_text_add(text, "%s", close);
  return AX_OK;
}

static ax_status add_name(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_text *text) {
  ax_hlo_slice name;
  AX_TRY(ax_hlo_read_string(b, from, &name));
  ax_text_add(text, "\"%.*s\"", (int)name.length, name.start);
  return AX_OK;
}

static ax_status add_signed(ax_hlo_bytecode *b, ax_hlo_bytes *from, const char *before, ax_text *text) {
  int64_t number;
  AX_TRY(ax_hlo_read_signed(b, from, &number));
  ax_text_add(text, "%s%" PRId64, before, number);
  return AX_OK;
}

/* --- By code --- */

static ax_status add_manual_axes(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_text *text) {
  return add_list(b, from, "#sdy<manual_axes{", "}>", true, text);
}
static ax_status add_mesh_axis(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_text *text) {
  AX_TRY(add_name(b, from, text));
  return add_signed(b, from, "=", text);
}
static ax_status add_mesh(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_text *text) {
  const int64_t *ids;
  uint32_t count;
  AX_TRY(add_list(b, from, "#sdy.mesh<[", "]", true, text));
  AX_TRY(ax_hlo_read_integers(b, from, &ids, &count));
  for (uint32_t i = 0; i < count; i++) ax_text_add(text, "%s%" PRId64, i > 0 ? ", " : ", device_ids=[", ids[i]);
  ax_text_add(text, count > 0 ? "]>" : ">");
  return AX_OK;
}
static ax_status add_sub_axis(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_text *text) {
  AX_TRY(add_signed(b, from, ":(", text));
  return add_signed(b, from, ")", text);
}
static ax_status add_axis(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_text *text) {
  const ax_hlo_attribute *part;
  AX_TRY(add_name(b, from, text));
  AX_TRY(ax_hlo_read_optional(b, from, &part));
  if (part != NULL) add_text(text, part);
  return AX_OK;
}
/* {"x", "y", ?}p1: an open one ends in a question mark. */
static ax_status add_dimension(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_text *text) {
  unsigned char closed = 1;
  uint64_t priority;
  bool has_priority;
  AX_TRY(add_list(b, from, "{", "", true, text));
  AX_TRY(ax_hlo_read_byte(b, from, &closed));
  if (closed == 0) ax_text_add(text, text->length > 1 ? ", ?" : "?");
  ax_text_add(text, "}");
  AX_TRY(ax_hlo_read_flagged(b, from, &priority, &has_priority));
  if (has_priority) ax_text_add(text, "p%" PRIu64, priority);
  return AX_OK;
}
static ax_status add_sharding(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_text *text) {
  ax_text_add(text, "#sdy.sharding<");
  AX_TRY(add_part(b, from, text));
  AX_TRY(add_list(b, from, ", [", "]", true, text));
  AX_TRY(add_list(b, from, ", replicated={", "}", false, text));
  if (from->next < from->end) AX_TRY(add_list(b, from, ", unreduced={", "}", false, text));
  if (from->next < from->end)
    return ax_error(AX_ABSENT, "%s: layouts that are reduced by other than sums are not read", b->scan.module->source);
  ax_text_add(text, ">");
  return AX_OK;
}
static ax_status add_shardings(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_text *text) {
  return add_list(b, from, "#sdy.sharding_per_value<[", "]>", true, text);
}
/* Rules say how a custom call's dimensions correspond, by factors, which are called i, j, .., z, z_1, z_2, ..
     #sdy.op_sharding_rule<([i, j], [j, k])->([i, k]) {i=2, j=4, k=8} reduction={j}, custom> */
static void name_factor(ax_text *text, uint64_t factor) {
  enum { letters = 'z' - 'i' + 1 };
  if (factor < letters) ax_text_add(text, "%c", 'i' + (int)factor);
  else ax_text_add(text, "z_%" PRIu64, factor - letters + 1);
}
static ax_status add_factors(ax_hlo_bytecode *b, ax_hlo_bytes *from, const char *open, const char *between, const char *close, ax_text *text) {
  const unsigned char *at = from->next;
  const int64_t *factors;
  uint32_t count;
  AX_TRY(ax_hlo_read_integers(b, from, &factors, &count));
  if (count > 0) ax_text_add(text, "%s", open);
  for (uint32_t i = 0; i < count; i++) {
    if (factors[i] < 0) return ax_hlo_broken(b, at, "a factor has a number below 0");
    if (i > 0) ax_text_add(text, "%s", between);
    name_factor(text, (uint64_t)factors[i]);
  }
  if (count > 0) ax_text_add(text, "%s", close);
  return AX_OK;
}
static ax_status add_mapping(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_text *text) { return add_factors(b, from, "", "", "", text); }
static ax_status add_rule(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_text *text) {
  static const char *const roles[] = {" reduction={", " need_replication={", " permutation={", " blocked_propagation={"};
  const int64_t *sizes;
  uint32_t count;
  unsigned char custom = 0;
  ax_text_add(text, "#sdy.op_sharding_rule<");
  AX_TRY(ax_hlo_read_integers(b, from, &sizes, &count));
  AX_TRY(add_list(b, from, "(", ")", true, text));
  AX_TRY(add_list(b, from, "->(", ") {", true, text));
  for (uint32_t i = 0; i < count; i++) {
    ax_text_add(text, i > 0 ? ", " : "");
    name_factor(text, i);
    ax_text_add(text, "=%" PRId64, sizes[i]);
  }
  ax_text_add(text, "}");
  for (size_t i = 0; i < AX_COUNT(roles) && ax_hlo_left(from) > 1; i++) AX_TRY(add_factors(b, from, roles[i], ", ", "}", text));
  AX_TRY(ax_hlo_read_byte(b, from, &custom));
  ax_text_add(text, custom != 0 ? ", custom>" : ">");
  return AX_OK;
}
static ax_status add_axes(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_text *text) { return add_list(b, from, "{", "}", true, text); }
static ax_status add_lists(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_text *text) {
  return add_list(b, from, "[", "]", true, text);
}
/* {"x"}: 0->1 */
static ax_status add_exchange(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_text *text) {
  AX_TRY(add_list(b, from, "{", "}", true, text));
  AX_TRY(add_signed(b, from, ": ", text));
  return add_signed(b, from, "->", text);
}

typedef ax_status writer(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_text *text);
static writer *const writers[] = {add_manual_axes, add_mesh_axis, add_mesh,  add_sub_axis, add_axis,      add_dimension,
                                  add_sharding,    add_shardings, add_mapping, add_lists,  add_rule,      add_axes,
                                  add_lists,       add_exchange,  add_lists, add_sharding, add_shardings, add_sharding};

ax_status ax_hlo_read_sdy_attribute(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out) {
  ax_text text = {0};
  uint64_t code;
  AX_TRY(ax_hlo_read_number(b, from, &code));
  if (code >= AX_COUNT(writers)) return ax_hlo_broken(b, from->next, "sdy's attribute %llu is not known", (unsigned long long)code);
  ax_status status = writers[code](b, from, &text);
  if (status == AX_OK && text.failed) status = ax_out_of_memory(text.length);
  if (status == AX_OK && (text.length > most_characters || text.length > b->text_left))
    status = ax_hlo_broken(b, from->next, "an attribute of sdy has too many parts");
  char *copy = status == AX_OK ? ax_arena_copy(&b->scan.module->arena, text.data, text.length) : NULL;
  if (status == AX_OK && copy == NULL) status = ax_out_of_memory(text.length);
  if (status == AX_OK) b->text_left -= text.length;
  *out = (ax_hlo_attribute){.kind = AX_HLO_OPAQUE, .text = {copy, text.length}};
  ax_text_deinit(&text);
  return status;
}
