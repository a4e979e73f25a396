/* Reductions whose body computes with wider elements than the operands have: what is reduced, and what it starts from, is converted to
   the type of the body's argument first. The specification allows it (is_promotable), and the verifier has seen to it that nothing gets
   lost.

     reduce(i8[2,3], i8) by (i32, i32) -> i32     convert_element_type[i32] of both, then the reduction of i32 */
#include "axle/ops.h"
#include "bridge/import.h"

/* Which argument of the body stands for operand i. AX_NONE: none does. */
static uint32_t by_place(AX_UNUSED const ax_hlo_operation *op, uint32_t i) { return i; }
static uint32_t of_scatter(const ax_hlo_operation *op, uint32_t i) { /* arrays, indices, updates */
  const uint32_t count = (op->operand_count - 1) / 2;
  return i < count ? i : i == count ? AX_NONE : i - 1;
}
static uint32_t of_selection(AX_UNUSED const ax_hlo_operation *op, uint32_t i) { return i == 0 ? AX_NONE : 0; } /* region 0 has the array */

static const struct {
  const char *op;
  uint32_t region;
  uint32_t (*argument)(const ax_hlo_operation *op, uint32_t i);
} reductions[] = {{"stablehlo.reduce", 0, by_place},
                  {"stablehlo.reduce_window", 0, by_place},
                  {"stablehlo.scatter", 0, of_scatter},
                  {"stablehlo.select_and_scatter", 1, of_selection}};

static void convert(const ax_hlo_value_type *said, ax_value *value) {
  if (said->kind != AX_HLO_TENSOR || !said->element_known || said->quantized != NULL) return;
  if (ax_typeof(*value).dtype != said->dtype && !ax_failed()) *value = ax_convert_element_type(*value, said->dtype);
}

void ax_hlo_promote(const ax_hlo_import *import, const ax_hlo_operation *op, ax_value *in) {
  for (size_t k = 0; k < AX_COUNT(reductions); k++) {
    const uint32_t region = reductions[k].region;
    if (!ax_hlo_slice_is(op->name, reductions[k].op) || region >= op->region_count || op->regions[region].block_count != 1) continue;
    const ax_hlo_block *body = &op->regions[region].blocks[0];
    for (uint32_t i = 0; i < op->operand_count; i++) {
      const uint32_t argument = reductions[k].argument(op, i);
      if (argument < body->argument_count) convert(import->module->values[body->argument + argument], &in[i]);
    }
  }
}
