/* What stands beside VHLO in one file: operations of chlo and sdy, as StableHLO's own writer leaves them where other dialects are allowed.

     %1 = builtin.unrealized_conversion_cast %0 : !vhlo.tensor_v1<4x!vhlo.f32_v1> to tensor<4xf32>
     %2 = chlo.erf %1 : tensor<4xf32>
     %3 = builtin.unrealized_conversion_cast %2 : tensor<4xf32> to !vhlo.tensor_v1<4x!vhlo.f32_v1>

   Such operations have the types and attributes of MLIR, which are written as text. So a value has two numbers in the file, and for the
   rest of the writer it is the one of VHLO's type: an operation changes what it takes and gives back by itself. */
#include <string.h>

#include "hlo/print.h"
#include "hlo/writer.h"

static const struct {
  const char *prefix;
  ax_hlo_written dialect;
} dialects[] = {{"chlo.", AX_HLO_WRITES_CHLO}, {"sdy.", AX_HLO_WRITES_SDY}};

ax_hlo_written ax_hlo_beside(const ax_hlo_operation *op) {
  for (size_t i = 0; i < AX_COUNT(dialects); i++)
    if (op->name.length > strlen(dialects[i].prefix) && memcmp(op->name.start, dialects[i].prefix, strlen(dialects[i].prefix)) == 0)
      return dialects[i].dialect;
  return AX_HLO_WRITES_VHLO;
}

uint32_t ax_hlo_casts_of(const ax_hlo_operation *op) {
  return ax_hlo_beside(op) != AX_HLO_WRITES_VHLO ? op->operand_count + op->result_count : 0;
}

/* MLIR's reader takes texts up to a NUL, which belongs to them. */
static ax_status intern_text(ax_hlo_writer *w, ax_hlo_pool *pool, ax_status status, ax_text *text, uint32_t *out) {
  ax_text_add_bytes(text, "", 1);
  if (status == AX_OK) return ax_hlo_intern(w, pool, AX_HLO_WRITES_TEXT, text, out);
  ax_text_deinit(text);
  return status;
}

ax_status ax_hlo_write_plain_type(ax_hlo_writer *w, const ax_hlo_value_type *type, uint32_t *out) {
  ax_text text = {0};
  if (w->attributes_left-- == 0) return ax_error(AX_ABSENT, "types share their parts too often");
  const ax_status status = ax_hlo_print_type(w->module, type, &text);
  return intern_text(w, &w->types, status, &text, out);
}

ax_status ax_hlo_write_as_text(ax_hlo_writer *w, const ax_hlo_attribute *attribute, uint32_t *out) {
  ax_text text = {0};
  const ax_status status = ax_hlo_print_attribute(w->module, attribute, &text);
  return intern_text(w, &w->attributes, status, &text, out);
}

ax_status ax_hlo_write_beside(ax_hlo_writer *w, const ax_hlo_operation *op, uint32_t *name, uint32_t *attributes) {
  const char *dot = memchr(op->name.start, '.', op->name.length);
  ax_text word = {0}, text = {0};
  ax_text_add_bytes(&word, dot + 1, op->name.length - (size_t)(dot + 1 - op->name.start));
  AX_TRY(ax_hlo_intern(w, &w->names, ax_hlo_beside(op), &word, name));
  const ax_status status = ax_hlo_print_attributes(w->module, op, &text);
  return intern_text(w, &w->attributes, status, &text, attributes);
}

ax_status ax_hlo_add_cast(ax_hlo_writer *w, const ax_hlo_value_type *type, uint32_t id, bool to_vhlo, uint32_t *next, ax_text *out) {
  enum { has_results = 2, has_operands = 4 };
  static const char name[] = "unrealized_conversion_cast", mask = has_results | has_operands;
  const ax_hlo_place nowhere = {0};
  ax_text word = {0};
  uint32_t index, place, to;
  ax_text_add(&word, "%s", name);
  AX_TRY(ax_hlo_intern(w, &w->names, AX_HLO_WRITES_BUILTIN, &word, &index));
  AX_TRY(ax_hlo_write_place(w, &nowhere, &place));
  AX_TRY(to_vhlo ? ax_hlo_write_type(w, type, &to) : ax_hlo_write_plain_type(w, type, &to));
  ax_hlo_add_number(out, index);
  ax_text_add_bytes(out, &mask, 1);
  ax_hlo_add_number(out, place);
  ax_hlo_add_number(out, 1);
  ax_hlo_add_number(out, to);
  ax_hlo_add_number(out, 1);
  ax_hlo_add_number(out, id);
  (*next)++;
  return AX_OK;
}
