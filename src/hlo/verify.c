#include "hlo/verify.h"

#include <inttypes.h>
#include <string.h>

#include "hlo/dialect.h"
#include "hlo/verify_rules.h"
#include "ir/dtype.h"

typedef struct verifier {
  const ax_hlo_module *module;
  ax_hlo_symbols symbols;
  const ax_hlo_listed *known[AX_HLO_MOST_RULES]; /* by rule: the operation's attributes, once they were looked up */
  bool looked[AX_HLO_MOST_RULES];
} verifier;

/* --- What has a name --- */

static const ax_hlo_attribute *name_of(const ax_hlo_operation *op) { return ax_hlo_find(op, "sym_name"); }

static const ax_hlo_operation **symbol_slot(const ax_hlo_symbols *symbols, ax_hlo_slice name) {
  uint32_t slot = (uint32_t)ax_hash_bytes(AX_HASH_SEED, name.start, name.length) & (symbols->size - 1);
  for (; symbols->slots[slot] != NULL; slot = (slot + 1) & (symbols->size - 1))
    if (ax_hlo_slice_same(name_of(symbols->slots[slot])->text, name)) break;
  return &symbols->slots[slot];
}

const ax_hlo_operation *ax_hlo_symbol(const ax_verified *v, ax_hlo_slice name) { return *symbol_slot(v->symbols, name); }

static ax_status find_symbols(verifier *w) {
  const ax_hlo_block *body = &w->module->body;
  for (w->symbols.size = 16; w->symbols.size / 2 <= body->operation_count;) w->symbols.size *= 2;
  w->symbols.slots = ax_calloc(w->symbols.size, sizeof w->symbols.slots[0]);
  if (w->symbols.slots == NULL) return ax_out_of_memory(w->symbols.size * sizeof w->symbols.slots[0]);
  for (uint32_t i = 0; i < body->operation_count; i++) {
    const ax_hlo_attribute *name = name_of(body->operations[i]);
    const ax_hlo_operation **slot = name != NULL ? symbol_slot(&w->symbols, name->text) : NULL;
    if (slot != NULL && *slot == NULL) *slot = body->operations[i];
  }
  return AX_OK;
}

/* --- Numbers of operands, results and regions --- */

static ax_status check_count(const char *what, uint32_t count, uint8_t least, uint8_t most) {
  if (count >= least && (most == AX_HLO_MANY || count <= most)) return AX_OK;
  if (least == most) return ax_error(AX_INVALID_ARGUMENT, "it must have %u %s, and has %u", least, what, count);
  if (most == AX_HLO_MANY) return ax_error(AX_INVALID_ARGUMENT, "it must have at least %u %s, and has %u", least, what, count);
  return ax_error(AX_INVALID_ARGUMENT, "it must have %u to %u %s, and has %u", least, most, what, count);
}

static ax_status check_counts(const ax_verified *v, const ax_hlo_rule *rule) {
  AX_TRY(check_count("operands", v->op->operand_count, rule->least_in, rule->most_in));
  AX_TRY(check_count("results", v->op->result_count, rule->least_out, rule->most_out));
  if ((rule->common & AX_HLO_SAME_COUNT) != 0 && v->op->operand_count != v->op->result_count)
    return ax_error(AX_INVALID_ARGUMENT, "it must have as many results as operands, and has %u and %u", v->op->result_count,
                    v->op->operand_count);
  if (rule->regions == AX_HLO_ANY_REGIONS) return AX_OK;
  return rule->regions == AX_HLO_MANY ? check_count("regions", v->op->region_count, 1, AX_HLO_MANY)
                                      : check_count("regions", v->op->region_count, rule->regions, rule->regions);
}

/* --- Types --- */

static const struct {
  uint32_t bit;
  const char *name;
} class_names[] = {{AX_HLO_FLOATS, "floats"},
                   {AX_HLO_COMPLEXES, "complex numbers"},
                   {AX_HLO_SIGNED, "signed integers"},
                   {AX_HLO_UNSIGNED, "unsigned integers"},
                   {AX_HLO_TRUTHS, "i1"},
                   {AX_HLO_SCALED, "quantized numbers of one scale"},
                   {AX_HLO_CHANNELS, "quantized numbers of several scales"},
                   {AX_HLO_TOKENS, "a token"},
                   {AX_HLO_TUPLES, "a tuple"},
                   {AX_HLO_FUTURES, "a future"}};

/* A dimension with a scale for each index has as many indices as scales. */
static ax_status check_scales(const ax_hlo_value_type *type) {
  const ax_hlo_quantized *q = type->kind == AX_HLO_TENSOR ? type->quantized : NULL;
  if (q == NULL || q->axis < 0 || !type->ranked) return AX_OK;
  if (q->axis < type->rank && ax_hlo_extents_fit(type->dims[q->axis], q->count)) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%.*s: dimension %" PRId64 " must be there, and have %u indices, one for each scale",
                  ax_hlo_length(type->text), type->text.start, q->axis, q->count);
}

static ax_status check_class(const char *what, uint32_t i, const ax_hlo_value_type *type, uint32_t classes, bool any_rank) {
  char text[256] = "";
  const bool ranked = type->kind != AX_HLO_TENSOR || type->ranked || any_rank;
  if ((ax_hlo_class_of(type) & classes) != 0 && ranked) return check_scales(type);
  for (size_t k = 0; k < AX_COUNT(class_names); k++) {
    if ((classes & class_names[k].bit) == 0) continue;
    if (text[0] != '\0') strcat(text, ", ");
    strcat(text, class_names[k].name);
  }
  return ax_error(AX_INVALID_ARGUMENT, "%s %u is %.*s, and must be %sof these: %s", what, i, ax_hlo_length(type->text),
                  type->text.start, ranked ? "" : "an array of a known rank ", text);
}

static ax_status check_types(const ax_verified *v, const ax_hlo_rule *rule) {
  uint32_t classes = AX_HLO_ALL;
  const bool any_rank = (rule->common & AX_HLO_ANY_RANK) != 0;
  for (uint32_t i = 0; i < v->op->operand_count; i++) {
    if (i < AX_HLO_MOST_CLASSES && rule->in[i] != 0) classes = rule->in[i];
    AX_TRY(check_class("operand", i, ax_verified_in(v, i), classes, any_rank));
  }
  for (uint32_t k = 0; k < v->op->result_count && rule->out != 0; k++)
    AX_TRY(check_class("result", k, ax_verified_out(v, k), rule->out, any_rank));
  return AX_OK;
}

static ax_status differ(const char *what, const ax_hlo_value_type *a, const ax_hlo_value_type *b) {
  return ax_error(AX_INVALID_ARGUMENT, "all operands and results must have the same %s, and there are %.*s and %.*s", what,
                  ax_hlo_length(a->text), a->text.start, ax_hlo_length(b->text), b->text.start);
}

static ax_status check_common(const ax_verified *v, const ax_hlo_rule *rule) {
  const uint32_t ins = v->op->operand_count, all = ins + v->op->result_count;
  const ax_hlo_value_type *first = NULL;
  for (uint32_t i = 0; i < all && (rule->common & (AX_HLO_ONE_SHAPE | AX_HLO_ONE_ELEMENT)) != 0; i++) {
    const ax_hlo_value_type *type = i < ins ? ax_verified_in(v, i) : ax_verified_out(v, i - ins);
    if (type->kind != AX_HLO_TENSOR) continue;
    if (first == NULL) first = type;
    if ((rule->common & AX_HLO_ONE_SHAPE) != 0 && !ax_hlo_shapes_fit(first, type)) return differ("shape", first, type);
    if ((rule->common & AX_HLO_ONE_ELEMENT) != 0 && !ax_hlo_elements_fit(first, type)) return differ("elements", first, type);
  }
  for (uint32_t k = 0; k < v->op->result_count && k < ins && (rule->common & AX_HLO_PAIRWISE) != 0; k++)
    AX_TRY(ax_hlo_check_elements(v, k, k));
  return AX_OK;
}

/* --- Attributes --- */

/* The least that integers of these names may be; of all operations that have them, but for those that count from behind. */
static const struct {
  const char *name;
  int64_t least;
} least_of[] = {{"all_gather_dim", 0},
                {"scatter_dimension", 0},
                {"split_dimension", 0},
                {"concat_dimension", 0},
                {"split_count", 1},
                {"iota_dimension", 0},
                {"feature_index", 0},
                {"index", 0},
                {"feature_group_count", 1},
                {"batch_group_count", 1},
                {"exponent_bits", 1},
                {"mantissa_bits", 0},
                {"k", 0},
                {"dimension", 0}};

static ax_status check_least(const ax_hlo_attribute *found, const ax_hlo_slot *slot) {
  for (size_t i = 0; i < AX_COUNT(least_of) && slot->otherwise >= 0; i++)
    if (strcmp(slot->name, least_of[i].name) == 0 && found->integer < least_of[i].least)
      return ax_error(AX_INVALID_ARGUMENT, "the attribute %s is %" PRId64 ", and must be at least %" PRId64, slot->name,
                      found->integer, least_of[i].least);
  return AX_OK;
}

static ax_status check_word(const ax_hlo_attribute *found, const ax_hlo_slot *slot) {
  for (uint32_t i = 0; i < slot->words->count && found->kind == AX_HLO_WORD; i++)
    if (ax_hlo_slice_is(found->text, slot->words->words[i])) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "the attribute %s must be one of the words of %s", slot->name, slot->words->name);
}

/* Kinds of attributes, as bits, that a slot takes; and what messages call them. */
#define KIND(kind) (1u << AX_HLO_##kind)
static const struct {
  uint32_t kinds; /* 0: any; rules look at these themselves */
  const char *name;
} slot_kinds[] = {[AX_HLO_SLOT_INTEGER] = {KIND(INTEGER), "an integer"},
                  [AX_HLO_SLOT_INTEGER32] = {KIND(INTEGER), "an integer"},
                  [AX_HLO_SLOT_NUMBER] = {KIND(INTEGER), "an integer"},
                  [AX_HLO_SLOT_INTEGERS] = {KIND(NUMBERS) | KIND(ARRAY) | KIND(ELEMENTS), "a list of integers"},
                  [AX_HLO_SLOT_TRUTHS] = {KIND(NUMBERS) | KIND(ARRAY) | KIND(ELEMENTS), "a list of truth values"},
                  [AX_HLO_SLOT_SEGMENTS] = {KIND(NUMBERS), "a list of integers"},
                  [AX_HLO_SLOT_BOOL] = {KIND(BOOL) | KIND(UNIT), "true or false"},
                  [AX_HLO_SLOT_UNIT] = {KIND(BOOL) | KIND(UNIT), "there, or left out"},
                  [AX_HLO_SLOT_STRING] = {KIND(STRING) | KIND(SYMBOL), "a string"}, /* custom_call @target */
                  [AX_HLO_SLOT_SYMBOL] = {KIND(SYMBOL), "a symbol"},
                  [AX_HLO_SLOT_SYMBOLS] = {KIND(ARRAY), "a list of symbols"},
                  [AX_HLO_SLOT_TYPE] = {KIND(TYPE) | KIND(WORD), "a type"}, /* tf32 is no dtype of elements */
                  [AX_HLO_SLOT_FLOAT] = {KIND(FLOAT), "a number of f32"},
                  [AX_HLO_SLOT_DICTIONARY] = {KIND(DICTIONARY), "a dictionary"},
                  [AX_HLO_SLOT_ARRAY] = {KIND(ARRAY), "a list"},
                  [AX_HLO_SLOT_ACCURACY] = {KIND(DICTIONARY), "a #stablehlo.result_accuracy<..>"},
                  [AX_HLO_SLOT_GROUP] = {KIND(DICTIONARY), NULL /* #stablehlo.gather<..> or the like */}};

static ax_status check_kind(const ax_hlo_attribute *found, const ax_hlo_slot *slot) {
  const uint32_t kinds = slot->kind < AX_COUNT(slot_kinds) ? slot_kinds[slot->kind].kinds : 0;
  const bool narrow = slot->kind != AX_HLO_SLOT_FLOAT || (found->type != NULL && found->type->element_known && found->type->dtype == AX_F32);
  if (kinds == 0 || ((kinds >> found->kind & 1) != 0 && narrow)) return AX_OK;
  if (slot->group != NULL) return ax_error(AX_INVALID_ARGUMENT, "the attribute %s must be a #%s<..>", slot->name, slot->group->name);
  return ax_error(AX_INVALID_ARGUMENT, "the attribute %s must be %s", slot->name, slot_kinds[slot->kind].name);
}

/* Functions of modules inside of modules: @a::@f. */
static ax_status check_flat(const ax_hlo_attribute *symbol, const char *name) {
  if (symbol->kind != AX_HLO_SYMBOL || symbol->count == 0) return AX_OK;
  const ax_hlo_slice outer = symbol->items[symbol->count - 1].text;
  return ax_error(AX_INVALID_ARGUMENT, "the attribute %s must be a symbol of one name, and not ..@%.*s::@%.*s", name,
                  ax_hlo_length(outer), outer.start, ax_hlo_length(symbol->text), symbol->text.start);
}

static ax_status check_slot(const ax_verified *v, const ax_hlo_slot *slot) {
  const ax_hlo_attribute *found = ax_hlo_find(v->op, slot->name);
  if (found == NULL) return slot->optional ? AX_OK : ax_error(AX_INVALID_ARGUMENT, "the attribute %s is missing", slot->name);
  AX_TRY(check_kind(found, slot));
  AX_TRY(check_flat(found, slot->name));
  for (uint32_t i = 0; slot->kind == AX_HLO_SLOT_SYMBOLS && i < found->count; i++) AX_TRY(check_flat(&found->items[i], slot->name));
  for (uint32_t i = 0; slot->group != NULL && i < slot->group->count; i++) {
    const ax_hlo_attribute *item = ax_hlo_item(found, slot->group->slots[i].name);
    if (item != NULL) AX_TRY(check_kind(item, &slot->group->slots[i]));
  }
  if (slot->kind == AX_HLO_SLOT_INTEGER || slot->kind == AX_HLO_SLOT_INTEGER32) return check_least(found, slot);
  return slot->kind == AX_HLO_SLOT_WORD ? check_word(found, slot) : AX_OK;
}

static bool is_zero(const ax_hlo_attribute *number) {
  if (number == NULL) return true;
  if (number->kind == AX_HLO_INTEGER) return number->integer == 0;
  for (size_t i = 0; i < number->text.length && number->text.start[i] != 'e' && number->text.start[i] != 'E'; i++)
    if (number->text.start[i] >= '1' && number->text.start[i] <= '9') return false;
  return true;
}

/* Tolerances belong to the mode TOLERANCE. */
static ax_status check_accuracy(const ax_hlo_attribute *found) {
  const ax_hlo_attribute *mode = found != NULL ? ax_hlo_item(found, "mode") : NULL;
  const ax_hlo_attribute *units = found != NULL ? ax_hlo_item(found, "ulps") : NULL;
  if (mode == NULL) return AX_OK;
  const bool tolerance = ax_hlo_slice_is(mode->text, "TOLERANCE");
  if (units != NULL && units->kind == AX_HLO_INTEGER && units->integer < 0)
    return ax_error(AX_INVALID_ARGUMENT, "result_accuracy: ulps must be 0 or more");
  const bool zero = is_zero(ax_hlo_item(found, "atol")) && is_zero(ax_hlo_item(found, "rtol")) && is_zero(units);
  if (tolerance || zero) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "result_accuracy: the mode %.*s has no tolerances, which must be 0",
                  ax_hlo_length(mode->text), mode->text.start);
}

static ax_status check_attributes(verifier *w, const ax_verified *v, uint32_t index) {
  if (!w->looked[index]) w->known[index] = ax_hlo_find_known(v->op->name), w->looked[index] = true;
  const ax_hlo_listed *known = w->known[index];
  for (uint32_t i = 0; known != NULL && i < known->count; i++) {
    if (known->slots[i].last != 0) continue;
    AX_TRY(check_slot(v, &known->slots[i]));
    if (known->slots[i].kind == AX_HLO_SLOT_ACCURACY) AX_TRY(check_accuracy(ax_hlo_find(v->op, known->slots[i].name)));
    if (strcmp(known->slots[i].name, "precision_config") == 0) AX_TRY(ax_hlo_check_precision(v));
  }
  return AX_OK;
}

/* The types of a function's arguments and results. */
static ax_status check_signature(const ax_verified *v) {
  const ax_hlo_attribute *said = ax_hlo_slice_is(v->op->name, "func.func") ? ax_hlo_find(v->op, "function_type") : NULL;
  if (said == NULL || said->kind != AX_HLO_TYPE) return AX_OK;
  for (uint32_t i = 0; i < said->type->part_count; i++) AX_TRY(ax_hlo_check_type(said->type->parts[i]));
  return AX_OK;
}

/* Functions and calls, for which the table has no row. */
static ax_status check_function(const ax_verified *v) {
  const ax_hlo_attribute *callee = ax_hlo_slice_is(v->op->name, "func.call") ? ax_hlo_find(v->op, "callee") : NULL;
  return callee != NULL ? check_flat(callee, "callee") : check_signature(v);
}

/* --- Walking --- */

/* Before its regions: what an operation is made of. */
static ax_status check_parts(verifier *w, const ax_verified *v, const ax_hlo_rule *rule, uint32_t index) {
  for (uint32_t k = 0; k < v->op->result_count; k++) AX_TRY(ax_hlo_check_type(ax_verified_out(v, k)));
  if (rule == NULL) return check_function(v);
  AX_TRY(check_counts(v, rule));
  AX_TRY(check_types(v, rule));
  return check_attributes(w, v, index);
}

/* Behind them: how these go together. */
static ax_status check_whole(const ax_verified *v, const ax_hlo_rule *rule) {
  if (rule == NULL) return AX_OK;
  AX_TRY(check_common(v, rule));
  return rule->check != NULL ? rule->check(v) : AX_OK;
}

static ax_status check_block(verifier *w, const ax_hlo_block *block) {
  for (uint32_t i = 0; i < block->operation_count; i++) {
    const ax_hlo_operation *op = block->operations[i];
    uint32_t index = 0;
    const ax_verified v = {w->module, op, &w->symbols};
    const ax_hlo_rule *rule = ax_hlo_find_rule(op->name, &index);
    AX_TRY(ax_hlo_blame(w->module, op, check_parts(w, &v, rule, index)));
    for (uint32_t r = 0; r < op->region_count; r++)
      for (uint32_t b = 0; b < op->regions[r].block_count; b++) AX_TRY(check_block(w, &op->regions[r].blocks[b]));
    AX_TRY(ax_hlo_blame(w->module, op, check_whole(&v, rule)));
  }
  return AX_OK;
}

ax_status ax_hlo_verify(const ax_hlo_module *module) {
  verifier w = {.module = module};
  ax_status status = find_symbols(&w);
  if (status == AX_OK) status = check_block(&w, &module->body);
  ax_free(w.symbols.slots);
  return status;
}
