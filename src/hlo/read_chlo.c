/* The short forms of chlo.scan, and of tensor.cast, which is beside StableHLO's operations where shapes are open. */
#include "hlo/reader.h"

/* (%a, %b) inits (%c) dimension = 0 attributes {is_reverse = true} {..} : (types) -> types */
ax_status ax_hlo_read_scan(ax_hlo_scan *r, ax_hlo_draft *draft) {
  ax_hlo_attribute dimension = {.kind = AX_HLO_INTEGER}, segments = {.kind = AX_HLO_NUMBERS, .count = 2};
  int64_t *counts = ax_arena_alloc(&r->module->arena, 2 * sizeof counts[0]);
  if (counts == NULL) return ax_out_of_memory(2 * sizeof counts[0]);
  AX_TRY(ax_hlo_want_operands(r, draft));
  counts[0] = draft->operands.count;
  AX_TRY(ax_hlo_want(r, "inits"));
  AX_TRY(ax_hlo_want_operands(r, draft));
  counts[1] = (int64_t)draft->operands.count - counts[0];
  segments.numbers = counts;
  const int64_t carries = counts[1];
  AX_TRY(ax_hlo_draft_attribute(draft, "operandSegmentSizes", &segments));
  AX_TRY(ax_hlo_want(r, "dimension"));
  AX_TRY(ax_hlo_want(r, "="));
  AX_TRY(ax_hlo_want_integer(r, &dimension.integer));
  AX_TRY(ax_hlo_draft_attribute(draft, "dimension", &dimension));
  if (ax_hlo_take(r, "attributes")) AX_TRY(ax_hlo_draft_attributes(r, draft));
  AX_TRY(ax_hlo_want_region(r, draft, NULL));
  AX_TRY(ax_hlo_want_typed(r, draft));
  int64_t *given = ax_arena_alloc(&r->module->arena, 2 * sizeof given[0]);
  if (given == NULL) return ax_out_of_memory(2 * sizeof given[0]);
  given[0] = draft->results.count > carries ? draft->results.count - carries : 0, given[1] = carries;
  segments.numbers = given;
  return ax_hlo_draft_attribute(draft, "resultSegmentSizes", &segments);
}

/* %a : tensor<4xf32> to tensor<?xf32> */
ax_status ax_hlo_read_cast(ax_hlo_scan *r, ax_hlo_draft *draft) {
  const ax_hlo_value_type *from, *to;
  uint32_t value;
  AX_TRY(ax_hlo_want_operand(r, &value));
  AX_TRY(ax_hlo_list_add(&draft->operands, &value, sizeof value));
  AX_TRY(ax_hlo_draft_attributes(r, draft));
  AX_TRY(ax_hlo_want(r, ":"));
  AX_TRY(ax_hlo_want_type(r, &from));
  if (r->module->values[value] != from) return ax_hlo_refuse(r, draft->at, "the operand has another type than that before `to`");
  AX_TRY(ax_hlo_want(r, "to"));
  AX_TRY(ax_hlo_want_type(r, &to));
  return ax_hlo_list_add(&draft->results, &to, sizeof to);
}
