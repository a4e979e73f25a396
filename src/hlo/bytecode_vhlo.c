/* Attributes of VHLO, by their codes. What they are to StableHLO depends on the operation (vhlo.c). */
#include <string.h>

#include "hlo/bytecode.h"

static ax_status read_bool(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out) {
  uint32_t truth;
  AX_TRY(ax_hlo_read_below(b, from, 2, "truth value", &truth));
  out->kind = AX_HLO_BOOL;
  out->integer = truth;
  return AX_OK;
}

static ax_status read_string(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out) {
  out->kind = AX_HLO_STRING;
  return ax_hlo_read_string(b, from, &out->text);
}

static ax_status read_type(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out) {
  out->kind = AX_HLO_TYPE;
  return ax_hlo_read_type(b, from, &out->type);
}

static ax_status read_alias(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out) {
  enum { stablehlo_alias = 14 };
  return ax_hlo_read_group(b, from, ax_hlo_find_group(stablehlo_alias), out);
}

typedef ax_status reader(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out);
static reader *const readers[] = {[1] = ax_hlo_read_array,
                                  [2] = read_bool,
                                  [6] = ax_hlo_read_dictionary,
                                  [8] = ax_hlo_read_float_of,
                                  [9] = ax_hlo_read_integer_of,
                                  [10] = read_alias,
                                  [14] = read_string,
                                  [15] = ax_hlo_read_elements_of,
                                  [17] = read_type,
                                  [18] = ax_hlo_read_bounds,
                                  [20] = ax_hlo_read_accuracy};

ax_status ax_hlo_read_vhlo_attribute(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out) {
  uint64_t code;
  AX_TRY(ax_hlo_read_number(b, from, &code));
  const ax_hlo_words *words = ax_hlo_find_words(true, code);
  if (words != NULL) return ax_hlo_read_word(b, from, words, "stablehlo", out);
  if (code < AX_COUNT(readers) && readers[code] != NULL) return readers[code](b, from, out);
  bool known;
  AX_TRY(ax_hlo_read_mesh_attribute(b, from, true, code, &known, out));
  return known ? AX_OK : ax_hlo_broken(b, from->next, "VHLO's attribute %llu is not known", (unsigned long long)code);
}
