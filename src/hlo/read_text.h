/* Reading StableHLO modules as text: MLIR's generic form, and the short forms of builtin, func, stablehlo and chlo. */
#ifndef AX_HLO_READ_TEXT_H
#define AX_HLO_READ_TEXT_H

#include "hlo/module.h"

/* Reads a module. `text` need not end in NUL, and must stay until ax_hlo_module_deinit, as `source`, its name in messages, must.
   On failure *out is empty. Errors: AX_PARSE_ERROR with line, column, what was read and what was expected; AX_OUT_OF_MEMORY. Time
   and memory grow with the text's length. */
AX_MUST_USE ax_status ax_hlo_read_text(const char *text, size_t bytes, const char *source, ax_hlo_module *out);
/* lender: as ax_hlo_read_lent's (hlo/files.h). */
AX_MUST_USE ax_status ax_hlo_read_lent_text(const char *text, size_t bytes, const char *source, struct ax_shared *lender,
                                            ax_hlo_module *out);

#endif
