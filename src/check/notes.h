/* What the checker says of a kernel besides findings: what may be meant, and may be a slip. */
#ifndef AX_CHECK_NOTES_H
#define AX_CHECK_NOTES_H

#include "ir/text.h"
#include "kernel/kernel.h"

/* Adds lines, "\n" between them; in: the types of the equation's operands. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_check_notes(const ax_kernel_params *params, const ax_type *in, uint32_t in_count, ax_text *text);

#endif
