#include "check/notes.h"

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

ax_status ax_check_notes(const ax_kernel_params *params, uint32_t in_count, bool points_unknown, ax_text *text) {
  AX_TRY(note_lost(params, in_count - (uint32_t)params->consts, text));
  if (points_unknown) {
    begin_line(text);
    ax_text_add(text, "what points along AX_PARALLEL dimensions of the grid need of one another was not looked for, as a run in the "
                      "grid's order does not come to its end");
  }
  return text->failed ? ax_out_of_memory(0) : AX_OK;
}
