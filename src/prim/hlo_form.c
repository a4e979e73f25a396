/* Primitives that are one StableHLO op on the same operands, written and read by the form in their records; constants, and what they
   mean to readers of reductions. */
#include <stdio.h>
#include <string.h>

#include "hlo/dialect.h"
#include "hlo/hlo.h"
#include "hlo/read.h"
#include "ir/number.h"
#include "prim/prims.h"
#include "prim/rules.h"
#include "prim/shape.h"

/* "lhs_spec[0]": the name without what is behind it. */
static const ax_param *param_of(const ax_prim *prim, const char *name) {
  const size_t length = strcspn(name, "[");
  for (uint32_t i = 0; i < prim->param_count; i++)
    if (strlen(prim->params[i].name) == length && memcmp(prim->params[i].name, name, length) == 0) return &prim->params[i];
  assert(false && "a form names a parameter that the primitive has not");
  return NULL;
}

typedef enum part { WHOLE, FIRST, SECOND, REST } part; /* of a list: an entry, or those from the third on */

static part part_of(const ax_hlo_field *field) {
  const char *bracket = strchr(field->param, '[');
  return bracket == NULL ? WHOLE : bracket[1] == '0' ? FIRST : bracket[1] == '1' ? SECOND : REST;
}

/* --- Attributes by the tables --- */

static bool same_word(const char *word, const char *start, size_t length) {
  return strlen(word) == length && memcmp(word, start, length) == 0;
}

static const ax_hlo_slot *slot_of(const ax_hlo_slot *slots, uint32_t count, const char *name, size_t length) {
  for (uint32_t i = 0; i < count; i++)
    if (same_word(slots[i].name, name, length)) return &slots[i];
  assert(false && "a form names an attribute that the tables have not");
  return NULL;
}

typedef struct place_of_field { /* where an attribute stands */
  const ax_hlo_slot *slot;  /* of the operation; */
  const ax_hlo_slot *entry; /* in it, if it is a group */
  const char *inside;       /* what its name has behind the point; NULL: there is none */
} place_of_field;

static place_of_field find_place(const ax_hlo_form *form, const ax_hlo_field *field) {
  const ax_hlo_listed *known = ax_hlo_find_known((ax_hlo_slice){form->op, strlen(form->op)});
  const char *point = strchr(field->attribute, '.');
  const size_t length = point != NULL ? (size_t)(point - field->attribute) : strlen(field->attribute);
  place_of_field place = {.inside = point != NULL ? point + 1 : NULL};
  assert(known != NULL);
  place.slot = slot_of(known->slots, known->count, field->attribute, length);
  if (place.slot->kind == AX_HLO_SLOT_GROUP)
    place.entry = slot_of(place.slot->group->slots, place.slot->group->count, place.inside, strlen(place.inside));
  return place;
}

static const ax_hlo_field *next_field(const ax_hlo_field *field) {
  while (field != NULL && field->param != NULL && field->attribute == NULL) field++;
  return field != NULL && field->param != NULL ? field : NULL;
}

/* --- Writing --- */

static void write_value(ax_hlo_attributes *to, const ax_hlo_slot *slot, const ax_hlo_field *field, const ax_param *param,
                        const void *at) {
  const ax_dims *dims = at;
  if (param->kind == AX_PARAM_DIMS && part_of(field) == WHOLE) ax_hlo_add_dims(to, slot->name, dims);
  else if (param->kind == AX_PARAM_DIMS && part_of(field) == REST) ax_hlo_add_integers(to, slot->name, dims->v + 2, dims->count - 2);
  else if (param->kind == AX_PARAM_DIMS) ax_hlo_add_integer(to, slot->name, dims->v[part_of(field) == SECOND]);
  else if (param->kind == AX_PARAM_BOOL) ax_hlo_add_bool(to, slot->name, *(const bool *)at);
  else if (param->kind == AX_PARAM_TEXT) ax_hlo_add_word(to, slot->name, *(const char *const *)at);
  else if (slot->kind == AX_HLO_SLOT_INTEGERS) ax_hlo_add_integers(to, slot->name, at, 1);
  else if (slot->kind == AX_HLO_SLOT_INTEGER32) ax_hlo_add_short(to, slot->name, *(const int64_t *)at, "i32");
  else ax_hlo_add_integer(to, slot->name, *(const int64_t *)at);
}

static const void *value_at(const ax_prim *prim, const ax_hlo_field *field, const void *params, const ax_param **param) {
  *param = param_of(prim, field->param);
  return (const char *)params + (*param)->offset;
}

void ax_hlo_add_fields(ax_hlo_attributes *to, const ax_prim *prim, const void *params) {
  const ax_hlo_form *form = prim->form;
  const ax_param *param;
  if (form->word_of != NULL) ax_hlo_add_word(to, form->word_of, form->word);
  for (const ax_hlo_field *field = next_field(form->fields); field != NULL; field = next_field(field + 1)) {
    const place_of_field place = find_place(form, field);
    const void *at = value_at(prim, field, params, &param);
    if (place.inside == NULL) {
      write_value(to, place.slot, field, param, at);
    } else if (place.slot->kind == AX_HLO_SLOT_PAIRS) {
      ax_hlo_add_pairs(to, place.slot->name, at, value_at(prim, ++field, params, &param));
    } else {
      ax_hlo_attributes group = {.hlo = to->hlo};
      for (place_of_field inner = place; inner.slot == place.slot;) {
        at = value_at(prim, field, params, &param);
        write_value(&group, inner.entry, field, param, at);
        inner = field[1].attribute != NULL ? find_place(form, field + 1) : (place_of_field){0};
        if (inner.slot == place.slot) field++;
      }
      ax_hlo_add_group(to, place.slot->name, place.slot->group->name, &group);
    }
  }
}

/* Only where factors have more bits than some processors' products take: others are whole however precise. */
static ax_status add_precision(ax_hlo_attributes *to, ax_dtype dtype) {
  char text[96];
  if (to->hlo->precision == NULL || (dtype != AX_F32 && dtype != AX_C64)) return AX_OK;
  snprintf(text, sizeof text, "precision_config = [#stablehlo<precision %s>, #stablehlo<precision %s>]", to->hlo->precision, to->hlo->precision);
  return ax_hlo_add_spelled(to, text);
}

ax_status ax_hlo_by_form(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  ax_hlo_attributes attributes = {.hlo = hlo};
  ax_hlo_add_fields(&attributes, eqn->prim, eqn->params);
  if (eqn->prim->form->precise) AX_TRY(add_precision(&attributes, hlo->program->types[eqn->in[0]].dtype));
  return ax_hlo_simple(hlo, eqn, eqn->prim->form->op, in, &attributes, out);
}

/* --- Reading --- */

/* How many entries the list has whose length this one shares: that of an attribute, or of an entry of a group. AX_NONE: it is not
   there. */
static uint32_t length_like(const ax_hlo_operation *op, const char *name) {
  for (uint32_t i = 0; i < op->attribute_count; i++) {
    const ax_hlo_attribute *a = &op->attributes[i];
    const ax_hlo_attribute *list = ax_hlo_slice_is(a->name, name) ? a : a->kind == AX_HLO_DICTIONARY ? ax_hlo_item(a, name) : NULL;
    if (list != NULL) return list->kind == AX_HLO_ELEMENTS ? (uint32_t)list->type->dims[0] : list->count;
  }
  return AX_NONE;
}

static ax_status read_list(const ax_hlo_operation *op, const ax_hlo_slot *slot, ax_dims *out) {
  if (!slot->optional || slot->like == NULL) return ax_hlo_integers(op, slot->name, out);
  const uint32_t count = length_like(op, slot->like);
  if (count == AX_NONE || count > AX_MAX_RANK)
    return ax_error(AX_INVALID_ARGUMENT, "%s must be a list of at most %d integers", slot->like, AX_MAX_RANK);
  return ax_hlo_integers_or(op, slot->name, count, slot->otherwise, out);
}

static ax_status read_word(const ax_hlo_operation *op, const ax_hlo_slot *slot, const char **out) {
  const ax_hlo_attribute *found = ax_hlo_find(op, slot->name);
  *out = found == NULL && slot->optional ? slot->words->words[slot->otherwise] : NULL;
  for (uint32_t i = 0; found != NULL && found->kind == AX_HLO_WORD && i < slot->words->count; i++)
    if (ax_hlo_slice_is(found->text, slot->words->words[i])) *out = slot->words->words[i];
  return *out != NULL ? AX_OK : ax_error(AX_INVALID_ARGUMENT, "%s must be a word, as %s", slot->name, slot->words->words[0]);
}

static ax_status read_entry(const ax_hlo_operation *op, const place_of_field *place, const ax_hlo_field *field, ax_dims *dims) {
  const ax_hlo_attribute *group = ax_hlo_find(op, place->slot->name);
  const ax_hlo_attribute *item = group != NULL ? ax_hlo_item(group, place->entry->name) : NULL;
  ax_dims others;
  if (group == NULL || group->kind != AX_HLO_DICTIONARY)
    return ax_error(AX_INVALID_ARGUMENT, "%s must be #%s<..>", place->slot->name, place->slot->group->name);
  if (part_of(field) == WHOLE) return ax_hlo_item_integers(group, place->entry->name, dims);
  if (part_of(field) != REST) {
    if (item == NULL || item->kind != AX_HLO_INTEGER) return ax_error(AX_INVALID_ARGUMENT, "%s lacks %s", place->slot->name, place->entry->name);
    dims->v[part_of(field) == SECOND] = item->integer;
    return AX_OK;
  }
  AX_TRY(ax_hlo_item_integers(group, place->entry->name, &others));
  if (others.count + 2 > AX_MAX_RANK) return ax_error(AX_INVALID_ARGUMENT, "%s has too many dimensions", place->slot->name);
  dims->count = others.count + 2;
  memcpy(dims->v + 2, others.v, others.count * sizeof others.v[0]);
  return AX_OK;
}

static ax_status read_result(const ax_hlo_read_args *args, const ax_param *param, void *at) {
  const ax_type *type = &args->out_types[0];
  if (param->kind == AX_PARAM_DTYPE) {
    memcpy(at, &type->dtype, sizeof type->dtype);
    return AX_OK;
  }
  ax_dims *dims = at;
  AX_TRY(ax_hlo_want_shape(args, 0));
  dims->count = type->rank;
  memcpy(dims->v, type->dims, type->rank * sizeof dims->v[0]);
  return AX_OK;
}

static ax_status read_value(const ax_hlo_operation *op, const ax_hlo_slot *slot, const ax_param *param, void *at) {
  if (param->kind == AX_PARAM_DIMS) return read_list(op, slot, at);
  if (param->kind == AX_PARAM_BOOL) return slot->optional ? ax_hlo_bool_or(op, slot->name, slot->otherwise != 0, at) : ax_hlo_bool(op, slot->name, at);
  if (param->kind == AX_PARAM_TEXT) return read_word(op, slot, at);
  return slot->optional ? ax_hlo_integer_or(op, slot->name, slot->otherwise, at) : ax_hlo_integer(op, slot->name, at);
}

ax_status ax_hlo_read_fields(const ax_hlo_read_args *args, const ax_prim *prim, void *params) {
  const ax_hlo_form *form = prim->form;
  for (const ax_hlo_field *field = form->fields; field != NULL && field->param != NULL; field++) {
    const ax_param *param = param_of(prim, field->param);
    void *at = (char *)params + param->offset;
    const place_of_field place = field->attribute != NULL ? find_place(form, field) : (place_of_field){0};
    if (field->attribute == NULL) {
      AX_TRY(read_result(args, param, at));
    } else if (place.entry != NULL) {
      AX_TRY(read_entry(args->op, &place, field, at));
    } else if (place.slot->kind == AX_HLO_SLOT_PAIRS) {
      const uint32_t count = length_like(args->op, place.slot->like);
      const ax_param *high = param_of(prim, (++field)->param);
      if (count > AX_MAX_RANK) return ax_error(AX_INVALID_ARGUMENT, "%s must be a list of at most %d integers", place.slot->like, AX_MAX_RANK);
      AX_TRY(ax_hlo_read_padding(args->op, count, at, (ax_dims *)(void *)((char *)params + high->offset)));
    } else {
      AX_TRY(read_value(args->op, place.slot, param, at));
    }
  }
  return AX_OK;
}

ax_status ax_hlo_read_by_form(const ax_hlo_read_args *args) {
  const ax_prim *prim = args->prim;
  const ax_hlo_operation *op = args->op;
  void *params = prim->params_bytes > 0 ? ax_trace_alloc(prim->params_bytes) : NULL;
  if (prim->params_bytes > 0 && params == NULL) return AX_OK; /* the trace has failed */
  if (params != NULL) memset(params, 0, prim->params_bytes);
  AX_TRY(ax_hlo_read_fields(args, prim, params));
  if (prim->in_count >= 0 && op->operand_count != (uint32_t)prim->in_count)
    return ax_error(AX_INVALID_ARGUMENT, "it takes %d operands, and here are %u", prim->in_count, op->operand_count);
  ax_bind(prim, params, args->in, op->operand_count, args->out, op->result_count);
  return AX_OK;
}

/* --- Regions that combine two scalars --- */

static const char *const combinations[] = {[AX_SCALAR_ADD] = "stablehlo.add",     [AX_SCALAR_MAX] = "stablehlo.maximum",
                                           [AX_SCALAR_MIN] = "stablehlo.minimum", [AX_SCALAR_MUL] = "stablehlo.multiply",
                                           [AX_SCALAR_AND] = "stablehlo.and",     [AX_SCALAR_OR] = "stablehlo.or",
                                           [AX_SCALAR_XOR] = "stablehlo.xor"};

const char *ax_hlo_combination_name(ax_scalar op) { return combinations[op]; }

ax_scalar ax_hlo_body_scalar(const ax_hlo_operation *op, uint32_t region) {
  const ax_hlo_slice name = ax_hlo_body_operation(op, region);
  for (size_t i = 0; i < AX_COUNT(combinations); i++)
    if (combinations[i] != NULL && ax_hlo_slice_is(name, combinations[i])) return (ax_scalar)i;
  return AX_SCALAR_NONE;
}

const ax_prim *ax_hlo_reducer_of(const ax_prim *const *family, uint32_t count, ax_scalar op) {
  for (uint32_t i = 0; op != AX_SCALAR_NONE && i < count; i++)
    if (family[i]->form->reducer == op) return family[i];
  return NULL;
}

/* --- Constants --- */

ax_status ax_hlo_elements_value(const ax_hlo_attribute *elements, ax_value *out) {
  ax_type type;
  AX_TRY(ax_hlo_array_type(elements->type, &type));
  const ax_type scalar = ax_array_type(type.dtype, AX_DIMS());
  const ax_literal literal = {elements->splat ? scalar : type, (void *)(uintptr_t)elements->data, elements->owner};
  *out = ax_bind1(&ax_prim_constant, &literal, NULL, 0);
  if (elements->splat) *out = ax_broadcast_in_dim(*out, AX_LIST(type.rank, type.dims), AX_DIMS());
  return AX_OK;
}

bool ax_hlo_starts_neutral(const ax_hlo_read_args *args, ax_scalar op) {
  const ax_hlo_attribute *start = args->op->operand_count == 2 ? ax_hlo_constant_operand(args, 1) : NULL;
  const ax_dtype dtype = ax_typeof(args->in[0]).dtype;
  if (start == NULL || start->type->dtype != dtype) return false;
  if (ax_is_complex(dtype) && op != AX_SCALAR_ADD && op != AX_SCALAR_MUL) return false; /* no number is below all others */
  const ax_number has = ax_number_load(dtype, start->data, 0), neutral = ax_reduce_identity(op, dtype);
  if (ax_is_complex(dtype)) return has.f == neutral.f && has.imag == neutral.imag;
  return ax_is_float(dtype) ? has.f == neutral.f : has.u == neutral.u;
}
