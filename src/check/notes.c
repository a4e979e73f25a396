#include "check/notes.h"

#include "kernel/beside.h"
#include "kernel/discharge.h"

static void begin_line(ax_text *text) {
  if (text->length > 0) ax_text_add(text, "\n");
}

/* Stores to operands that no result is one memory with. */
static ax_status note_lost(const ax_kernel_params *params, uint32_t operands, ax_text *text) {
  bool *stored = ax_calloc((size_t)operands + 1, sizeof stored[0]);
  ax_status status = stored != NULL ? AX_OK : ax_out_of_memory(operands);
  for (uint32_t b = 0; b < params->bodies.count && status == AX_OK; b++) {
    const ax_program *body = params->bodies.v[b];
    bool *written = ax_calloc((size_t)body->in_count + 1, sizeof written[0]);
    status = written != NULL ? ax_written_inputs(body, written) : ax_out_of_memory(body->in_count);
    for (uint32_t i = 0; i < operands && status == AX_OK; i++) stored[i] = stored[i] || written[(uint32_t)params->consts + i];
    ax_free(written);
  }
  for (uint32_t i = 0; i < operands && status == AX_OK; i++) {
    if (!stored[i] || ax_alias_of_operand(params, i) != AX_NONE) continue;
    begin_line(text);
    ax_text_add(text, "operand %u is stored to, and no result is its memory (aliases): what is stored is lost at the kernel's end", i);
  }
  ax_free(stored);
  return status;
}

/* Dimensions of the grid that are said to be in no order, where that does not follow from the blocks. */
static ax_status note_parallel(const ax_kernel_params *params, const ax_type *in, uint32_t operands, ax_text *text) {
  ax_beside beside;
  ax_kernel_params in_order = *params; /* what follows without the caller's word */
  in_order.semantics.count = 0;
  ax_status status = ax_beside_find(&in_order, in + params->consts, operands, &beside);
  for (uint32_t g = 0; g < params->semantics.count && status == AX_OK; g++) {
    if (params->semantics.v[g] != AX_PARALLEL || params->grid.v[g] < 2 || beside.dim[g]) continue;
    begin_line(text);
    ax_text_add(text, "the points along dimension %u of the grid, AX_PARALLEL, were run in order: nothing shows that they need nothing of "
                      "one another, as a run may take from it", g);
  }
  ax_beside_deinit(&beside);
  return status;
}

ax_status ax_check_notes(const ax_kernel_params *params, const ax_type *in, uint32_t in_count, ax_text *text) {
  const uint32_t operands = in_count - (uint32_t)params->consts;
  AX_TRY(note_lost(params, operands, text));
  AX_TRY(note_parallel(params, in, operands, text));
  return text->failed ? ax_out_of_memory(0) : AX_OK;
}
