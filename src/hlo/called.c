/* @main of a module that was exported, as a function of the arguments that the user's function has: of those that @main has not, which it
   does not use, nothing comes of it; and the platform is a constant. */
#include <string.h>

#include "hlo/bytecode.h"
#include "ir/dtype.h"

bool ax_hlo_is_called(const ax_hlo_bytecode *b, const ax_hlo_operation *op) {
  if (b->calling == NULL || op == NULL || !ax_hlo_slice_is(op->name, "func.func")) return false;
  const ax_hlo_attribute *name = ax_hlo_find(op, "sym_name");
  return name != NULL && ax_hlo_slice_is(name->text, "main");
}

/* The platform's index, as the first argument would have it. */
static ax_status make_platform(ax_hlo_bytecode *b, const ax_hlo_value_type *type, const ax_hlo_operation **out) {
  ax_hlo_operation *op;
  ax_hlo_attribute *value;
  int64_t *data;
  if (type->kind != AX_HLO_TENSOR || type->rank > 0 || (type->dtype != AX_S32 && type->dtype != AX_S64))
    return ax_error(AX_PARSE_ERROR, "%s: the index of the platform is %.*s", b->scan.module->source, (int)type->text.length,
                    type->text.start);
  AX_TRY(ax_hlo_make(b, 1, sizeof *op, &op));
  AX_TRY(ax_hlo_make(b, 1, sizeof *value, &value));
  AX_TRY(ax_hlo_make(b, 1, sizeof *data, &data));
  *data = b->calling->platform; /* small, so its lower bytes are the number of 32 bits */
  *value = (ax_hlo_attribute){.kind = AX_HLO_ELEMENTS, .name = {"value", strlen("value")}, .type = type, .data = data};
  *op = (ax_hlo_operation){.name = {"stablehlo.constant", strlen("stablehlo.constant")},
                           .attributes = value,
                           .attribute_count = 1,
                           .result_count = 1,
                           .place = {.line = b->operations}};
  AX_TRY(ax_hlo_new_values(&b->scan, 1, &type, &op->result));
  b->scan.module->makers[op->result] = op;
  *out = op;
  return AX_OK;
}

/* What the arguments are called, of those that the user's function has. */
static ax_status call_arguments(ax_hlo_bytecode *b) {
  const ax_hlo_calling *calling = b->calling;
  ax_hlo_slice *names;
  AX_TRY(ax_hlo_make(b, calling->in_count, sizeof names[0], &names));
  for (uint32_t k = 0; k < calling->kept_count && b->called != NULL; k++)
    names[calling->kept[k]] = b->called[calling->has_platform + k];
  b->called = names, b->called_count = calling->in_count;
  return AX_OK;
}

ax_status ax_hlo_called_arguments(ax_hlo_bytecode *b, ax_hlo_block *block, uint32_t count, const ax_hlo_value_type *const *types,
                                  uint32_t *values, const ax_hlo_operation **first) {
  const ax_hlo_calling *calling = b->calling;
  const ax_hlo_value_type **all;
  const uint32_t before = calling->has_platform;
  if (count != before + calling->kept_count)
    return ax_error(AX_PARSE_ERROR, "%s: @main has %u arguments, and %u are kept", b->scan.module->source, count,
                    calling->kept_count);
  AX_TRY(ax_hlo_make(b, calling->in_count, sizeof all[0], &all));
  for (uint32_t i = 0, k = 0; i < calling->in_count; i++) {
    if (k < calling->kept_count && calling->kept[k] == i)
      all[i] = types[before + k++];
    else
      AX_TRY(ax_hlo_type_of_text(b, calling->in[i].start, calling->in[i].length, &all[i]));
  }
  AX_TRY(call_arguments(b));
  block->argument_count = calling->in_count;
  AX_TRY(ax_hlo_new_values(&b->scan, calling->in_count, all, &block->argument));
  for (uint32_t k = 0; k < calling->kept_count; k++) values[before + k] = block->argument + calling->kept[k];
  if (before == 0) return AX_OK;
  AX_TRY(make_platform(b, types[0], first));
  values[0] = (*first)->result;
  return AX_OK;
}

ax_status ax_hlo_called_attributes(ax_hlo_bytecode *b, ax_hlo_operation *op) {
  const ax_hlo_attribute *list = ax_hlo_find(op, "arg_attrs");
  const uint32_t before = b->calling->has_platform;
  ax_hlo_attribute *items, *attributes;
  if (list == NULL || list->kind != AX_HLO_ARRAY || list->count != before + b->calling->kept_count) return AX_OK;
  AX_TRY(ax_hlo_make(b, b->calling->in_count, sizeof items[0], &items));
  for (uint32_t i = 0; i < b->calling->in_count; i++) items[i] = (ax_hlo_attribute){.kind = AX_HLO_DICTIONARY};
  for (uint32_t k = 0; k < b->calling->kept_count; k++) items[b->calling->kept[k]] = list->items[before + k];
  AX_TRY(ax_hlo_make(b, op->attribute_count, sizeof attributes[0], &attributes));
  memcpy(attributes, op->attributes, op->attribute_count * sizeof attributes[0]);
  attributes[list - op->attributes].items = items;
  attributes[list - op->attributes].count = b->calling->in_count;
  op->attributes = attributes;
  return AX_OK;
}
