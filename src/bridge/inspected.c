/* Values whose layouts the caller asks for: jax.debug.inspect_array_sharding writes

     %1 = custom_call @InspectSharding(%0) {backend_config = ".."}

   whose text is the caller's own. If the caller wants it, each such value of the entry function, and of functions that it calls, which are
   read in place for that, is one more result of the program, behind the others: it lies as it is made. Those in loops, branches and manual
   computations are passed over. */
#include <string.h>

#include "axle/ops.h"
#include "bridge/import.h"
#include "bridge/parts.h"

static bool is_question(const ax_hlo_operation *op) {
  const ax_hlo_attribute *target = ax_hlo_find(op, "call_target_name");
  return target != NULL && ax_hlo_slice_is(target->text, "InspectSharding") && op->operand_count == 1;
}

/* How many there are in the function; marks the calls of functions that have some. */
static uint32_t count_in(ax_hlo_import *import, const ax_hlo_operation *function, uint32_t depth) {
  enum { deepest = 256 };
  uint32_t count = 0;
  if (function == NULL || depth > deepest || function->regions[0].block_count != 1) return 0;
  const ax_hlo_block *block = &function->regions[0].blocks[0];
  for (uint32_t i = 0; i < block->operation_count && count < AX_HLO_MOST_INSPECTED; i++) {
    const ax_hlo_operation *op = block->operations[i];
    const ax_hlo_attribute *callee = ax_hlo_slice_is(op->name, "func.call") ? ax_hlo_find(op, "callee") : NULL;
    count += is_question(op);
    if (callee == NULL || op->result_count == 0) continue;
    const uint32_t inside = count_in(import, ax_hlo_function_of(import, callee->text), depth + 1);
    if (inside > 0) import->opened[op->result] = true;
    count += inside;
  }
  return count;
}

ax_status ax_inspected_begin(ax_hlo_import *import, const ax_hlo_operation *main) {
  if (import->opened == NULL) return AX_OK;
  const uint32_t count = count_in(import, main, 0);
  if (count == 0 || count > AX_HLO_MOST_INSPECTED) return AX_OK;
  import->inspected = ax_arena_alloc(&import->arena, count * sizeof import->inspected[0]);
  if (import->inspected == NULL) return ax_out_of_memory(count * sizeof import->inspected[0]);
  import->inspected_room = count;
  return AX_OK;
}

ax_status ax_inspected_read(const ax_hlo_read_args *args) {
  ax_hlo_import *import = args->import;
  const ax_hlo_attribute *config = ax_hlo_find(args->op, "backend_config");
  if (!is_question(args->op) || args->op->result_count > 1) return ax_error(AX_INVALID_ARGUMENT, "it takes one operand");
  if (args->op->result_count == 1) args->out[0] = args->in[0];
  if (import->inspected_count == import->inspected_room || !ax_hlo_parts_here(args->devices)) return AX_OK;
  const ax_hlo_slice text = config != NULL && config->kind == AX_HLO_STRING ? config->text : (ax_hlo_slice){0};
  import->inspected[import->inspected_count++] = (ax_inspected){args->in[0], text};
  return AX_OK;
}

/* A function that is called on a way that ends in an error, say, has not been read: a number stands for its value. */
void ax_inspected_give(const ax_hlo_import *import, ax_value *out) {
  for (uint32_t i = 0; i < import->inspected_room && !ax_failed(); i++)
    out[i] = i < import->inspected_count ? import->inspected[i].value : ax_full(AX_F32, AX_DIMS(), 0);
}

ax_status ax_inspected_keep(const ax_hlo_import *import, ax_program_names *names) {
  const uint32_t count = import->inspected_room;
  const char **texts = ax_arena_alloc(&names->arena, (count + (size_t)1) * sizeof texts[0]);
  size_t *lengths = ax_arena_alloc(&names->arena, (count + (size_t)1) * sizeof lengths[0]);
  if (texts == NULL || lengths == NULL) return ax_out_of_memory(count * (sizeof texts[0] + sizeof lengths[0]));
  for (uint32_t i = 0; i < count; i++) {
    const ax_hlo_slice text = i < import->inspected_count ? import->inspected[i].text : (ax_hlo_slice){0};
    char *copy = ax_arena_alloc(&names->arena, text.length + 1);
    if (copy == NULL) return ax_out_of_memory(text.length);
    if (text.length > 0) memcpy(copy, text.start, text.length);
    texts[i] = copy, lengths[i] = text.length;
  }
  names->inspected_count = count, names->inspected = texts, names->inspected_bytes = lengths;
  return AX_OK;
}
