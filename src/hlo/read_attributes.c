/* Attributes of MLIR's texts: those of every dialect, and StableHLO's own, which become dictionaries and words:

     #stablehlo.gather<offset_dims = [1], index_vector_dim = 1>   a dictionary called "stablehlo.gather"
     #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>              likewise, with VHLO's names: input_batch_dimension, ..
     #stablehlo<precision HIGH>                                   the word HIGH

   Attributes of other dialects keep their text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/dialect.h"
#include "hlo/reader.h"
#include "ir/dtype.h"
#include "ir/number.h"

enum { most_float = 63 }; /* characters of a float in an array */

static bool at_end(const ax_hlo_scan *r) { return r->cursor >= r->end; }
static bool in_number(char c) {
  return ax_hlo_is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == 'x' || c == '.' || c == '+' || c == '-';
}

/* --- Numbers --- */

/* The characters of a number: 12, -1.5e+00, 0x7FC00000. The sign of an exponent belongs to it, an arrow behind it does not. */
static ax_status want_number_text(ax_hlo_scan *r, ax_hlo_slice *out) {
  ax_hlo_skip(r);
  const char *start = r->cursor;
  if (!at_end(r) && (*r->cursor == '-' || *r->cursor == '+')) r->cursor++;
  const bool hex = r->end - r->cursor > 1 && r->cursor[0] == '0' && r->cursor[1] == 'x';
  for (; !at_end(r) && in_number(*r->cursor); r->cursor++) {
    const char before = r->cursor[-(r->cursor > start)];
    if ((*r->cursor == '-' || *r->cursor == '+') && (hex || (before != 'e' && before != 'E'))) break;
    if (*r->cursor == 'x' && !hex) break;
  }
  *out = (ax_hlo_slice){start, (size_t)(r->cursor - start)};
  if (out->length > 0 && (ax_hlo_is_digit(start[0]) || (out->length > 1 && ax_hlo_is_digit(start[1])))) return AX_OK;
  r->cursor = start;
  return ax_hlo_expected(r, "a number");
}

static bool is_float_text(ax_hlo_slice text) {
  if (text.length > 2 && text.start[0] == '0' && text.start[1] == 'x') return false;
  return memchr(text.start, '.', text.length) != NULL || memchr(text.start, 'e', text.length) != NULL ||
         memchr(text.start, 'E', text.length) != NULL;
}

static ax_status want_number(ax_hlo_scan *r, ax_hlo_attribute *out) {
  ax_hlo_skip(r);
  const char *at = r->cursor;
  AX_TRY(want_number_text(r, &out->text));
  if (ax_hlo_take(r, ":")) AX_TRY(ax_hlo_want_type(r, &out->type));
  const char *behind = r->cursor;
  const bool of_float = out->type != NULL && out->type->element_known && ax_is_float(out->type->dtype);
  out->kind = of_float || is_float_text(out->text) ? AX_HLO_FLOAT : AX_HLO_INTEGER;
  if (out->kind == AX_HLO_FLOAT) return AX_OK;
  r->cursor = at;
  AX_TRY(ax_hlo_want_integer(r, &out->integer));
  r->cursor = behind;
  return AX_OK;
}

/* --- Collections --- */

static ax_status add_items(ax_hlo_scan *r, ax_hlo_list *items) {
  if (ax_hlo_take(r, "]")) return AX_OK;
  do {
    ax_hlo_attribute item = {0};
    AX_TRY(ax_hlo_want_attribute(r, &item));
    AX_TRY(ax_hlo_list_add(items, &item, sizeof item));
  } while (ax_hlo_take(r, ","));
  return ax_hlo_want(r, "]");
}

static ax_status end_items(ax_hlo_scan *r, ax_hlo_list *items, ax_status status, ax_hlo_attribute *out) {
  out->count = items->count;
  out->items = ax_hlo_list_end(r, items, sizeof out->items[0], &status);
  return status;
}

static ax_status want_array(ax_hlo_scan *r, ax_hlo_attribute *out) {
  ax_hlo_list items = {0};
  out->kind = AX_HLO_ARRAY;
  return end_items(r, &items, add_items(r, &items), out);
}

/* (1)2: a part of a mesh's axis, its place and its size. */
static ax_status want_sub_axis(ax_hlo_scan *r, ax_hlo_attribute *out) {
  ax_hlo_attribute sizes[] = {{.kind = AX_HLO_INTEGER, .name = {"pre_size", strlen("pre_size")}},
                              {.kind = AX_HLO_INTEGER, .name = {"size", strlen("size")}}};
  AX_TRY(ax_hlo_want(r, "("));
  AX_TRY(ax_hlo_want_integer(r, &sizes[0].integer));
  AX_TRY(ax_hlo_want(r, ")"));
  AX_TRY(ax_hlo_want_integer(r, &sizes[1].integer));
  out->kind = AX_HLO_DICTIONARY;
  out->count = AX_COUNT(sizes);
  out->items = ax_arena_copy(&r->module->arena, sizes, sizeof sizes);
  return out->items != NULL ? AX_OK : ax_out_of_memory(sizeof sizes);
}

/* name = value, or name alone. */
static ax_status want_entry(ax_hlo_scan *r, ax_hlo_list *entries) {
  ax_hlo_attribute entry = {0};
  if (ax_hlo_sees(r, "\""))
    AX_TRY(ax_hlo_want_string(r, &entry.name));
  else
    AX_TRY(ax_hlo_want_word(r, "the name of an attribute", &entry.name));
  if (ax_hlo_take(r, "="))
    AX_TRY(ax_hlo_slice_is(entry.name, "sub_axis_info") ? want_sub_axis(r, &entry) : ax_hlo_want_attribute(r, &entry));
  return ax_hlo_list_add(entries, &entry, sizeof entry);
}

static int by_name(const void *a, const void *b) {
  return ax_hlo_slice_order((*(const ax_hlo_attribute *const *)a)->name, (*(const ax_hlo_attribute *const *)b)->name);
}

/* No two of the entries have one name. */
static ax_status check_names(ax_hlo_scan *r, const ax_hlo_attribute *entries, uint32_t count) {
  const ax_hlo_attribute *few[16], **sorted = count <= AX_COUNT(few) ? few : ax_alloc(count * sizeof sorted[0]);
  ax_status status = AX_OK;
  if (sorted == NULL) return ax_out_of_memory(count * sizeof sorted[0]);
  for (uint32_t i = 0; i < count; i++) sorted[i] = &entries[i];
  if (count > 1) qsort(sorted, count, sizeof sorted[0], by_name);
  for (uint32_t i = 1; i < count && status == AX_OK; i++) {
    const ax_hlo_slice name = sorted[i]->name, before = sorted[i - 1]->name;
    const char *at = name.start > before.start ? name.start : before.start;
    if (ax_hlo_slice_same(name, before)) status = ax_hlo_refuse(r, at, "the attribute %.*s is there twice", (int)name.length, name.start);
  }
  if (sorted != few) ax_free(sorted);
  return status;
}

static ax_status add_entries(ax_hlo_scan *r, const char *end, ax_hlo_list *entries) {
  const uint32_t before = entries->count;
  if (ax_hlo_take(r, end)) return AX_OK;
  do AX_TRY(want_entry(r, entries));
  while (ax_hlo_take(r, ",") && !ax_hlo_sees(r, end)); /* a comma may stand behind the last one */
  AX_TRY(check_names(r, (const ax_hlo_attribute *)entries->items + before, entries->count - before));
  return ax_hlo_want(r, end);
}

ax_status ax_hlo_want_entries(ax_hlo_scan *r, ax_hlo_list *entries) {
  AX_TRY(ax_hlo_want(r, "{"));
  return add_entries(r, "}", entries);
}

static ax_status want_dictionary(ax_hlo_scan *r, const char *end, ax_hlo_attribute *out) {
  ax_hlo_list entries = {0};
  out->kind = AX_HLO_DICTIONARY;
  return end_items(r, &entries, add_entries(r, end, &entries), out);
}

ax_status ax_hlo_want_group(ax_hlo_scan *r, ax_hlo_attribute *out) { return want_dictionary(r, ">", out); }

static ax_status want_float_bits(ax_hlo_scan *r, ax_dtype dtype, ax_hlo_slice text, int64_t *out) {
  char word[most_float + 1] = {0}, *end;
  if (text.length > most_float) return ax_hlo_refuse(r, text.start, "the number has more than %d characters", most_float);
  memcpy(word, text.start, text.length);
  const ax_number number = ax_number_decimal(dtype, word, &end);
  if (*end != '\0' || end == word) return ax_hlo_refuse(r, text.start, "'%s' is no number", word);
  ax_number_store(dtype, out, 0, number);
  return AX_OK;
}

/* array<i64: 1, 2>, array<i1: true>; floats, decimal or as bits, become their bits. */
static ax_status add_numbers(ax_hlo_scan *r, ax_dtype dtype, ax_hlo_list *numbers) {
  do {
    int64_t number = 0;
    ax_hlo_slice text;
    if (ax_hlo_take(r, "true"))
      number = 1;
    else if (ax_hlo_take(r, "false"))
      number = 0;
    else {
      AX_TRY(want_number_text(r, &text));
      const char *behind = r->cursor;
      r->cursor = text.start;
      const bool bits = text.length > 1 && text.start[1] == 'x';
      if (ax_is_float(dtype) && !bits) AX_TRY(want_float_bits(r, dtype, text, &number));
      else AX_TRY(ax_hlo_want_integer(r, &number));
      r->cursor = behind;
    }
    AX_TRY(ax_hlo_list_add(numbers, &number, sizeof number));
  } while (ax_hlo_take(r, ","));
  return AX_OK;
}

static ax_status want_numbers(ax_hlo_scan *r, ax_hlo_attribute *out) {
  ax_hlo_list numbers = {0};
  out->kind = AX_HLO_NUMBERS;
  AX_TRY(ax_hlo_want(r, "<"));
  AX_TRY(ax_hlo_want_type(r, &out->type));
  ax_status status = ax_hlo_take(r, ":") ? add_numbers(r, out->type->element_known ? out->type->dtype : AX_S64, &numbers) : AX_OK;
  out->count = numbers.count;
  out->numbers = ax_hlo_list_end(r, &numbers, sizeof out->numbers[0], &status);
  AX_TRY(status);
  return ax_hlo_want(r, ">");
}

/* --- Dialects --- */

typedef struct conv_part { /* one operand's or the result's dimensions */
  char first, second;      /* the letters of the two that are not spatial */
  const char *names[3];    /* of the attributes for them, and for those that are */
} conv_part;
static const conv_part conv_parts[] = {
    {'b', 'f', {"input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions"}},
    {'i', 'o', {"kernel_input_feature_dimension", "kernel_output_feature_dimension", "kernel_spatial_dimensions"}},
    {'b', 'f', {"output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions"}}};

static ax_status add_integer(ax_hlo_list *entries, const char *name, int64_t integer) {
  const ax_hlo_attribute entry = {.kind = AX_HLO_INTEGER, .name = {name, strlen(name)}, .integer = integer};
  return ax_hlo_list_add(entries, &entry, sizeof entry);
}

/* [b, 0, 1, f]: the place of each letter, and of each spatial dimension in order. */
static ax_status want_conv_part(ax_hlo_scan *r, const conv_part *part, ax_hlo_list *entries) {
  int64_t spatial[AX_MAX_RANK], place = 0, count = 0;
  bool seen[2] = {false, false};
  for (uint32_t i = 0; i < AX_MAX_RANK; i++) spatial[i] = -1;
  AX_TRY(ax_hlo_want(r, "["));
  do {
    const char letter[][2] = {{part->first, '\0'}, {part->second, '\0'}};
    int64_t dimension;
    const int which = ax_hlo_take(r, letter[0]) ? 0 : ax_hlo_take(r, letter[1]) ? 1 : 2;
    if (which < 2) {
      if (seen[which]) return ax_hlo_refuse(r, r->cursor, "the dimension %c is there twice", letter[which][0]);
      seen[which] = true;
      AX_TRY(add_integer(entries, part->names[which], place++));
    } else if (ax_hlo_take(r, "?"))
      place++;
    else {
      AX_TRY(ax_hlo_want_integer(r, &dimension));
      if (dimension < 0 || dimension >= AX_MAX_RANK || spatial[dimension] >= 0)
        return ax_hlo_refuse(r, r->cursor, "the spatial dimensions must be 0, 1, .., each once");
      spatial[dimension] = place++, count++;
    }
  } while (ax_hlo_take(r, ","));
  for (int k = 0; k < 2; k++)
    if (!seen[k]) return ax_hlo_refuse(r, r->cursor, "the dimension %c is missing", k == 0 ? part->first : part->second);
  for (int64_t d = 0; d < count; d++)
    if (spatial[d] < 0) return ax_hlo_refuse(r, r->cursor, "the spatial dimension %d is missing", (int)d);
  int64_t *numbers = ax_arena_copy(&r->module->arena, spatial, sizeof spatial);
  if (numbers == NULL) return ax_out_of_memory(sizeof spatial);
  const ax_hlo_attribute entry = {
      .kind = AX_HLO_NUMBERS, .name = {part->names[2], strlen(part->names[2])}, .numbers = numbers, .count = (uint32_t)count};
  AX_TRY(ax_hlo_list_add(entries, &entry, sizeof entry));
  return ax_hlo_want(r, "]");
}

static ax_status add_conv(ax_hlo_scan *r, ax_hlo_list *entries) {
  AX_TRY(want_conv_part(r, &conv_parts[0], entries));
  AX_TRY(ax_hlo_want(r, "x"));
  AX_TRY(want_conv_part(r, &conv_parts[1], entries));
  AX_TRY(ax_hlo_want(r, "->"));
  return want_conv_part(r, &conv_parts[2], entries);
}

ax_status ax_hlo_want_conv(ax_hlo_scan *r, ax_hlo_attribute *out) {
  ax_hlo_list entries = {0};
  out->kind = AX_HLO_DICTIONARY;
  return end_items(r, &entries, add_conv(r, &entries), out);
}

/* Reads the alias's text where it stands, once, and returns to behind the alias. */
static ax_status want_alias(ax_hlo_scan *r, ax_hlo_alias_entry *alias, ax_hlo_attribute *out) {
  const ax_hlo_slice name = out->name;
  const char *cursor = r->cursor;
  if (alias->attribute == NULL) {
    ax_hlo_attribute *made = ax_arena_alloc(&r->module->arena, sizeof *made);
    const uint32_t number = (uint32_t)(alias - r->module->aliases);
    if (made == NULL) return ax_out_of_memory(sizeof *made);
    r->cursor = alias->text.start;
    AX_TRY(ax_hlo_want_attribute(r, made));
    r->cursor = cursor;
    alias = &r->module->aliases[number];
    alias->attribute = made;
  }
  *out = *alias->attribute;
  out->name = name;
  return AX_OK;
}

/* #stablehlo.gather<..> and the like have no entries but their own, each once. */
static ax_status check_group(ax_hlo_scan *r, const ax_hlo_group *group, const ax_hlo_attribute *found) {
  for (uint32_t i = 0; i < found->count; i++) {
    const ax_hlo_slice name = found->items[i].name;
    bool known = false;
    for (uint32_t k = 0; k < group->count; k++) known = known || ax_hlo_slice_is(name, group->slots[k].name);
    if (!known) return ax_hlo_refuse(r, name.start, "#%s has no entry %.*s", group->name, (int)name.length, name.start);
    for (uint32_t k = 0; k < i; k++)
      if (ax_hlo_slice_same(name, found->items[k].name))
        return ax_hlo_refuse(r, name.start, "#%s has %.*s twice", group->name, (int)name.length, name.start);
  }
  return AX_OK;
}

static ax_status want_group(ax_hlo_scan *r, ax_hlo_slice name, ax_hlo_attribute *out) {
  const ax_hlo_group *group = ax_hlo_find_named_group(name);
  AX_TRY(ax_hlo_want(r, "<"));
  AX_TRY(want_dictionary(r, ">", out));
  return group != NULL ? check_group(r, group, out) : AX_OK;
}

/* What a word is one of. */
static ax_status say_enumeration(ax_hlo_scan *r, ax_hlo_slice dialect, ax_hlo_slice kind, ax_hlo_attribute *out) {
  const ax_hlo_attribute *last = r->enumeration, of = {.kind = AX_HLO_WORD, .name = dialect, .text = kind};
  if (last == NULL || !ax_hlo_slice_same(last->name, dialect) || !ax_hlo_slice_same(last->text, kind)) {
    r->enumeration = ax_arena_copy(&r->module->arena, &of, sizeof of);
    if (r->enumeration == NULL) return ax_out_of_memory(sizeof of);
  }
  out->items = r->enumeration;
  out->count = 1;
  return AX_OK;
}

/* Behind #stablehlo: <kind WORD>, or <WORD>. */
static ax_status want_enumerated(ax_hlo_scan *r, ax_hlo_slice dialect, ax_hlo_attribute *out) {
  ax_hlo_slice kind = {0};
  out->kind = AX_HLO_WORD;
  AX_TRY(ax_hlo_want(r, "<"));
  AX_TRY(ax_hlo_want_word(r, "a word", &out->text));
  if (!ax_hlo_sees(r, ">")) {
    kind = out->text;
    AX_TRY(ax_hlo_want_word(r, "a word", &out->text));
  }
  AX_TRY(say_enumeration(r, dialect, kind, out));
  return ax_hlo_want(r, ">");
}

/* complex<f32> of f32, which no text says. */
static ax_status find_complex(ax_hlo_scan *r, const ax_hlo_value_type *part, const ax_hlo_value_type **out) {
  char name[64];
  const ax_hlo_scan before = *r;
  const int length = snprintf(name, sizeof name, "complex<%.*s>", (int)part->text.length, part->text.start);
  const ax_status status = length < (int)sizeof name ? ax_hlo_spelled_type(r, (ax_hlo_slice){name, (size_t)length}, out) : AX_PARSE_ERROR;
  r->text = before.text, r->end = before.end, r->cursor = before.cursor, r->line_start = before.line_start, r->line = before.line;
  return status == AX_PARSE_ERROR ? ax_hlo_expected(r, "': complex<type>'") : status;
}

/* Behind #complex.number: <:f32 1.0, 2.0>, and perhaps : complex<f32>. */
static ax_status want_complex(ax_hlo_scan *r, ax_hlo_attribute *out) {
  ax_hlo_attribute parts[2] = {{.kind = AX_HLO_FLOAT}, {.kind = AX_HLO_FLOAT}};
  out->kind = AX_HLO_COMPLEX;
  AX_TRY(ax_hlo_want(r, "<"));
  AX_TRY(ax_hlo_want(r, ":"));
  AX_TRY(ax_hlo_want_type(r, &parts[0].type));
  parts[1].type = parts[0].type;
  AX_TRY(want_number_text(r, &parts[0].text));
  AX_TRY(ax_hlo_want(r, ","));
  AX_TRY(want_number_text(r, &parts[1].text));
  AX_TRY(ax_hlo_want(r, ">"));
  out->count = 2;
  out->items = ax_arena_copy(&r->module->arena, parts, sizeof parts);
  if (out->items == NULL) return ax_out_of_memory(sizeof parts);
  return ax_hlo_take(r, ":") ? ax_hlo_want_type(r, &out->type) : find_complex(r, parts[0].type, &out->type);
}

/* #name, #stablehlo<kind WORD>, #stablehlo.name<entries>, #dialect.name<text>. */
static ax_status want_dialect(ax_hlo_scan *r, ax_hlo_attribute *out) {
  static const char *const dictionaries[] = {"stablehlo.gather",
                                             "stablehlo.scatter",
                                             "stablehlo.dot",
                                             "stablehlo.channel_handle",
                                             "mhlo.channel_handle",
                                             "stablehlo.output_operand_alias",
                                             "stablehlo.dot_algorithm",
                                             "stablehlo.result_accuracy",
                                             "stablehlo.replica_group_mesh_axes",
                                             "stablehlo.axis_ref",
                                             "stablehlo.mesh_axis",
                                             "chlo.ragged_dot",
                                             "mhlo.result_alias"};
  ax_hlo_skip(r);
  const char *at = r->cursor;
  ax_hlo_slice name, inside;
  AX_TRY(ax_hlo_want_name(r, '#', &name));
  ax_hlo_alias_entry *alias = ax_hlo_find_alias(r->module, (ax_hlo_slice){at, name.length + 1});
  if (alias != NULL) return want_alias(r, alias, out);
  out->text = name;
  static const char *const enumerated[] = {"stablehlo", "chlo", "mhlo", "stablehlo.result_accuracy_mode"};
  for (size_t i = 0; i < AX_COUNT(enumerated); i++)
    if (ax_hlo_slice_is(name, enumerated[i])) return want_enumerated(r, name, out);
  if (ax_hlo_slice_is(name, "complex.number")) return want_complex(r, out);
  if (ax_hlo_slice_is(name, "stablehlo.conv")) {
    AX_TRY(ax_hlo_want(r, "<"));
    if (ax_hlo_take(r, "raw")) return want_dictionary(r, ">", out);
    AX_TRY(ax_hlo_want_conv(r, out));
    return ax_hlo_want(r, ">");
  }
  for (size_t i = 0; i < AX_COUNT(dictionaries); i++)
    if (ax_hlo_slice_is(name, dictionaries[i])) return want_group(r, name, out);
  out->kind = AX_HLO_OPAQUE;
  if (at_end(r) || *r->cursor != '<') return ax_hlo_refuse(r, at, "there is no alias #%.*s", (int)name.length, name.start);
  AX_TRY(ax_hlo_want_balanced(r, &inside));
  out->text = (ax_hlo_slice){at, (size_t)(r->cursor - at)};
  return AX_OK;
}

/* --- Any attribute --- */

/* A word: a dtype's name is a type, others stand for themselves. */
static ax_status want_word(ax_hlo_scan *r, ax_hlo_attribute *out) {
  ax_hlo_skip(r);
  const char *at = r->cursor;
  if (ax_hlo_sees(r, "tensor") || ax_hlo_sees(r, "tuple") || ax_hlo_sees(r, "complex") || ax_hlo_sees(r, "(") ||
      ax_hlo_sees(r, "!")) {
    out->kind = AX_HLO_TYPE;
    return ax_hlo_want_type(r, &out->type);
  }
  out->kind = AX_HLO_WORD;
  AX_TRY(ax_hlo_want_word(r, "an attribute", &out->text));
  if (!at_end(r) && (*r->cursor == '<' || ax_hlo_slice_is(out->text, "loc"))) { /* affine_map<..>, loc(..) */
    ax_hlo_slice inside;
    out->kind = AX_HLO_OPAQUE;
    AX_TRY(ax_hlo_want_balanced(r, &inside));
    out->text = (ax_hlo_slice){at, (size_t)(r->cursor - at)};
    return AX_OK;
  }
  const char *behind = r->cursor;
  const ax_hlo_value_type *type;
  r->cursor = at;
  AX_TRY(ax_hlo_want_type(r, &type));
  r->cursor = behind;
  if (type->element_known) out->kind = AX_HLO_TYPE, out->type = type;
  return AX_OK;
}

static ax_status want_string(ax_hlo_scan *r, ax_hlo_attribute *out) {
  out->kind = AX_HLO_STRING;
  AX_TRY(ax_hlo_want_string(r, &out->text));
  return ax_hlo_take(r, ":") ? ax_hlo_want_type(r, &out->type) : AX_OK;
}

static ax_status want_truth(ax_hlo_attribute *out, bool truth) {
  out->kind = AX_HLO_BOOL;
  out->integer = truth;
  return AX_OK;
}

static ax_status want_any(ax_hlo_scan *r, ax_hlo_attribute *out) {
  ax_hlo_skip(r);
  const char c = at_end(r) ? '\0' : *r->cursor;
  if (c == '"') return want_string(r, out);
  if (c == '#') return want_dialect(r, out);
  if (ax_hlo_is_digit(c) || c == '-' || c == '+') return want_number(r, out);
  if (c == '@') return ax_hlo_want_symbol(r, out);
  if (ax_hlo_take(r, "[")) return want_array(r, out);
  if (ax_hlo_take(r, "{")) return want_dictionary(r, "}", out);
  if (ax_hlo_take(r, "true")) return want_truth(out, true);
  if (ax_hlo_take(r, "false")) return want_truth(out, false);
  if (ax_hlo_take(r, "unit")) return AX_OK;
  if (ax_hlo_take(r, "array")) return want_numbers(r, out);
  if (ax_hlo_sees(r, "dense") || ax_hlo_sees(r, "dense_resource")) return ax_hlo_want_elements(r, out);
  return want_word(r, out);
}

ax_status ax_hlo_want_attribute(ax_hlo_scan *r, ax_hlo_attribute *out) {
  AX_TRY(ax_hlo_enter(r));
  AX_TRY(want_any(r, out));
  ax_hlo_leave(r);
  return AX_OK;
}
