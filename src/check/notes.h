/* What the checker says of a kernel besides findings: what may be meant, and may be a slip. */
#ifndef AX_CHECK_NOTES_H
#define AX_CHECK_NOTES_H

#include "ir/text.h"
#include "kernel/kernel.h"

/* Adds lines, "\n" between them. points_unknown: strands were not compared (strands.h). AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_check_notes(const ax_kernel_params *params, uint32_t in_count, bool points_unknown, ax_text *text);

#endif
