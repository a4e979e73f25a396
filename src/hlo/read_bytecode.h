/* Reading modules as MLIR's bytecode, of its versions 0 to 6: StableHLO as jax.export and portable artifacts have it (VHLO), and as it
   is in memory. The tree is that which the text of the same module gives (hlo/read_text.h). */
#ifndef AX_HLO_READ_BYTECODE_H
#define AX_HLO_READ_BYTECODE_H

#include "hlo/exported.h"

/* The bytes begin as bytecode does. */
bool ax_hlo_is_bytecode(const char *bytes, size_t count);
/* Reads a module. The bytes, and `source`, their name in messages, must stay until ax_hlo_module_deinit. On failure *out is empty.
   Places are numbers of operations, from 1 on, where the module names no line. Errors: AX_PARSE_ERROR with the byte at which the file
   is not what it should be; AX_ABSENT, by name: encodings that are not read; AX_OUT_OF_MEMORY. Time and memory grow with the count. */
AX_MUST_USE ax_status ax_hlo_read_bytecode(const char *bytes, size_t count, const char *source, ax_hlo_module *out);
/* calling: of a module that was exported, whose @main takes the arguments of the function that was exported; NULL: of others. lender:
   as ax_hlo_read_lent's (hlo/files.h). */
AX_MUST_USE ax_status ax_hlo_read_called(const char *bytes, size_t count, const char *source, const ax_hlo_calling *calling,
                                         struct ax_shared *lender, ax_hlo_module *out);

#endif
