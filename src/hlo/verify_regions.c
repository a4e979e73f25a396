#include "hlo/verify_rules.h"

#include <inttypes.h>
#include <string.h>

#include "ir/dtype.h"

/* A return gives what the operation's results are. */
static ax_status check_returned(const ax_verified *v, uint32_t region, const ax_hlo_operation *last) {
  if (last->operand_count != v->op->result_count)
    return ax_error(AX_INVALID_ARGUMENT, "region %u returns %u values, and there are %u results", region, last->operand_count,
                    v->op->result_count);
  for (uint32_t k = 0; k < last->operand_count; k++) {
    const ax_hlo_value_type *type = v->module->values[last->operands[k]], *out = ax_verified_out(v, k);
    if (!ax_hlo_types_fit(type, out))
      return ax_error(AX_INVALID_ARGUMENT, "region %u returns %.*s as value %u, and result %u is %.*s", region,
                      ax_hlo_length(type->text), type->text.start, k, k, ax_hlo_length(out->text), out->text.start);
  }
  return AX_OK;
}

static ax_status check_branches(const ax_verified *v) {
  const ax_hlo_block *block;
  const ax_hlo_operation *last, *first = NULL;
  for (uint32_t r = 0; r < v->op->region_count; r++) {
    AX_TRY(ax_hlo_check_block(v, r, 0, &block, &last));
    if (first == NULL) first = last;
    for (uint32_t k = 0; k < last->operand_count && last->operand_count == first->operand_count; k++)
      if (!ax_hlo_types_fit(v->module->values[last->operands[k]], v->module->values[first->operands[k]]))
        return ax_error(AX_INVALID_ARGUMENT, "regions 0 and %u return different types as value %u", r, k);
    AX_TRY(check_returned(v, r, last));
  }
  return AX_OK;
}

static ax_status check_choice(const ax_verified *v, ax_dtype dtype, const char *text) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0);
  if (!in->ranked || ax_hlo_is_scalar(in, dtype)) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "operand 0 is %.*s, and must be %s", ax_hlo_length(in->text), in->text.start, text);
}

ax_status ax_hlo_check_if(const ax_verified *v) {
  AX_TRY(check_choice(v, AX_BOOL, "tensor<i1>"));
  return check_branches(v);
}

ax_status ax_hlo_check_case(const ax_verified *v) {
  AX_TRY(check_choice(v, AX_S32, "tensor<i32>"));
  return check_branches(v);
}

ax_status ax_hlo_check_while(const ax_verified *v) {
  const ax_hlo_block *block;
  const ax_hlo_operation *last;
  for (uint32_t r = 0; r < 2; r++) {
    AX_TRY(ax_hlo_check_block(v, r, v->op->operand_count, &block, &last));
    for (uint32_t i = 0; i < block->argument_count; i++) {
      const ax_hlo_value_type *type = v->module->values[block->argument + i], *in = ax_verified_in(v, i);
      if (!ax_hlo_types_fit(type, in))
        return ax_error(AX_INVALID_ARGUMENT, "region %u: argument %u is %.*s, and operand %u is %.*s", r, i,
                        ax_hlo_length(type->text), type->text.start, i, ax_hlo_length(in->text), in->text.start);
    }
    if (r == 0 && (last->operand_count != 1 || !ax_hlo_is_scalar(v->module->values[last->operands[0]], AX_BOOL)))
      return ax_error(AX_INVALID_ARGUMENT, "region 0 must return one tensor<i1>");
    if (r == 1) AX_TRY(check_returned(v, r, last));
  }
  for (uint32_t k = 0; k < v->op->result_count; k++)
    if (!ax_hlo_types_fit(ax_verified_in(v, k), ax_verified_out(v, k)))
      return ax_error(AX_INVALID_ARGUMENT, "result %u must have the type of operand %u", k, k);
  return AX_OK;
}

ax_status ax_hlo_check_sort(const ax_verified *v) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0);
  const uint32_t count = v->op->operand_count;
  const ax_hlo_block *block;
  const ax_hlo_operation *last;
  int64_t dimension;
  AX_TRY(ax_hlo_integer_or(v->op, "dimension", -1, &dimension));
  if (ax_hlo_ranked(in) && in->rank > 0 && (dimension < -(int64_t)in->rank || dimension >= in->rank))
    return ax_error(AX_INVALID_ARGUMENT, "dimension is %" PRId64 ", and must be in [-%u, %u)", dimension, in->rank, in->rank);
  AX_TRY(ax_hlo_check_block(v, 0, 2 * count, &block, &last));
  for (uint32_t i = 0; i < 2 * count; i++) {
    const ax_hlo_value_type *type = v->module->values[block->argument + i], *of = ax_verified_in(v, i / 2);
    if (!ax_hlo_ranked(type) || (type->rank == 0 && ax_hlo_elements_fit(type, of))) continue;
    return ax_error(AX_INVALID_ARGUMENT, "region 0: argument %u is %.*s, and must be a scalar of the elements of operand %u, %.*s",
                    i, ax_hlo_length(type->text), type->text.start, i / 2, ax_hlo_length(of->text), of->text.start);
  }
  if (last->operand_count == 1 && ax_hlo_is_scalar(v->module->values[last->operands[0]], AX_BOOL)) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "region 0 must return one tensor<i1>");
}

ax_status ax_hlo_check_map(const ax_verified *v) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0), *out = ax_verified_out(v, 0);
  const ax_hlo_block *block;
  const ax_hlo_operation *last;
  ax_dims list;
  AX_TRY(ax_hlo_check_block(v, 0, v->op->operand_count, &block, &last));
  for (uint32_t i = 0; i < block->argument_count; i++) {
    const ax_hlo_value_type *type = v->module->values[block->argument + i];
    if (type->kind != AX_HLO_TENSOR || (type->ranked && type->rank > 0) || !ax_hlo_elements_fit(type, ax_verified_in(v, i)))
      return ax_error(AX_INVALID_ARGUMENT, "region 0: argument %u is %.*s, and must be a scalar of the elements of operand %u", i,
                      ax_hlo_length(type->text), type->text.start, i);
  }
  if (last->operand_count != 1)
    return ax_error(AX_INVALID_ARGUMENT, "region 0 must return one value, and returns %u", last->operand_count);
  const ax_hlo_value_type *made = v->module->values[last->operands[0]];
  if (made->kind != AX_HLO_TENSOR || (made->ranked && made->rank > 0) || !ax_hlo_elements_fit(made, out))
    return ax_error(AX_INVALID_ARGUMENT, "region 0 returns %.*s, and must return a scalar of the elements of the result",
                    ax_hlo_length(made->text), made->text.start);
  AX_TRY(ax_hlo_integers(v->op, "dimensions", &list));
  if (!ax_hlo_ranked(in)) return AX_OK;
  bool all = list.count == in->rank;
  for (uint32_t d = 0; all && d < list.count; d++) all = list.v[d] == d;
  return all ? AX_OK : ax_error(AX_INVALID_ARGUMENT, "dimensions must be 0 to %d, one after the other", (int)in->rank - 1);
}

/* --- CHLO's scan: inputs along a dimension, then carries --- */

ax_status ax_hlo_check_scan(const ax_verified *v) {
  const ax_hlo_attribute *sizes = ax_hlo_find(v->op, "operandSegmentSizes");
  const ax_hlo_block *block;
  const ax_hlo_operation *last;
  int64_t along;
  uint32_t carries = v->op->operand_count;
  AX_TRY(ax_hlo_integer(v->op, "dimension", &along));
  AX_TRY(ax_hlo_check_block(v, 0, v->op->operand_count, &block, &last));
  if (sizes != NULL && sizes->kind == AX_HLO_NUMBERS && sizes->count == 2 && sizes->numbers[0] >= 0 &&
      sizes->numbers[0] <= v->op->operand_count)
    carries = (uint32_t)sizes->numbers[0];
  int64_t steps = AX_HLO_DYNAMIC;
  AX_TRY(ax_hlo_integer_or(v->op, "scan_dim_size", AX_HLO_DYNAMIC, &steps));
  for (uint32_t i = 0; i < v->op->operand_count; i++) {
    const ax_hlo_value_type *in = ax_verified_in(v, i), *type = v->module->values[block->argument + i];
    if (!ax_hlo_ranked(in) || !ax_hlo_ranked(type)) continue;
    if (!ax_hlo_elements_fit(in, type))
      return ax_error(AX_INVALID_ARGUMENT, "operand %u and argument %u of the region have different elements", i, i);
    if (sizes == NULL) continue;
    if (i >= carries && !ax_hlo_shapes_fit(in, type))
      return ax_error(AX_INVALID_ARGUMENT, "operand %u, a carry, and argument %u of the region have different shapes", i, i);
    if (i >= carries) continue;
    if (along < 0 || along >= in->rank)
      return ax_error(AX_INVALID_ARGUMENT, "dimension is %" PRId64 ", which operand %u does not have", along, i);
    if (!ax_hlo_extents_fit(steps, in->dims[along]))
      return ax_error(AX_INVALID_ARGUMENT, "operand %u has the extent %" PRId64 " along dimension %" PRId64 ", and others %" PRId64,
                      i, in->dims[along], along, steps);
    if (steps == AX_HLO_DYNAMIC) steps = in->dims[along];
  }
  return AX_OK;
}

/* --- What begins here and is done elsewhere --- */

static const char *const begun[] = {
    "stablehlo.all_gather",           "stablehlo.all_reduce",          "stablehlo.all_to_all",     "stablehlo.collective_permute",
    "stablehlo.collective_broadcast", "stablehlo.collective_reduce",   "stablehlo.reduce_scatter", "stablehlo.slice",
    "stablehlo.dynamic_slice",        "stablehlo.dynamic_update_slice"};

ax_status ax_hlo_check_async_start(const ax_verified *v) {
  const ax_hlo_value_type *future = ax_verified_out(v, 0);
  const ax_hlo_block *block;
  const ax_hlo_operation *last;
  AX_TRY(ax_hlo_check_block(v, 0, v->op->operand_count, &block, &last));
  if (block->operation_count != 2) return ax_error(AX_INVALID_ARGUMENT, "region 0 must have one operation and a return");
  bool known = false;
  for (size_t i = 0; i < AX_COUNT(begun); i++) known = known || ax_hlo_slice_is(block->operations[0]->name, begun[i]);
  if (!known) return ax_error(AX_INVALID_ARGUMENT, "the operation in region 0 must be a collective or a slice");
  for (uint32_t i = 0; i < block->argument_count; i++)
    if (!ax_hlo_types_fit(v->module->values[block->argument + i], ax_verified_in(v, i)))
      return ax_error(AX_INVALID_ARGUMENT, "region 0: argument %u has another type than operand %u", i, i);
  bool fit = future->part_count == last->operand_count;
  for (uint32_t k = 0; fit && k < last->operand_count; k++)
    fit = ax_hlo_types_fit(v->module->values[last->operands[k]], future->parts[k]);
  return fit ? AX_OK : ax_error(AX_INVALID_ARGUMENT, "the result must be a future of what region 0 returns");
}

ax_status ax_hlo_check_async_done(const ax_verified *v) {
  const ax_hlo_value_type *future = ax_verified_in(v, 0);
  bool fit = future->part_count == v->op->result_count;
  for (uint32_t k = 0; fit && k < v->op->result_count; k++) fit = ax_hlo_types_fit(future->parts[k], ax_verified_out(v, k));
  return fit ? AX_OK
             : ax_error(AX_INVALID_ARGUMENT, "the results must be what the future, %.*s, is of", ax_hlo_length(future->text),
                        future->text.start);
}

/* --- Tuples --- */

ax_status ax_hlo_check_tuple(const ax_verified *v) {
  const ax_hlo_value_type *tuple = ax_verified_out(v, 0);
  bool fit = tuple->part_count == v->op->operand_count;
  for (uint32_t i = 0; fit && i < tuple->part_count; i++) fit = ax_hlo_types_fit(tuple->parts[i], ax_verified_in(v, i));
  return fit ? AX_OK
             : ax_error(AX_INVALID_ARGUMENT, "the result, %.*s, must be the tuple of the operands", ax_hlo_length(tuple->text),
                        tuple->text.start);
}

ax_status ax_hlo_check_tuple_element(const ax_verified *v) {
  const ax_hlo_value_type *tuple = ax_verified_in(v, 0);
  int64_t index;
  AX_TRY(ax_hlo_integer(v->op, "index", &index));
  if (index >= tuple->part_count)
    return ax_error(AX_INVALID_ARGUMENT, "index is %" PRId64 ", and %.*s has %u elements", index, ax_hlo_length(tuple->text),
                    tuple->text.start, tuple->part_count);
  if (ax_hlo_types_fit(tuple->parts[index], ax_verified_out(v, 0))) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "the result must have the type of element %" PRId64 " of %.*s", index,
                  ax_hlo_length(tuple->text), tuple->text.start);
}
