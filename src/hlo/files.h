/* Modules in any of the forms that files have. Which one it is, is found from the first bytes. */
#ifndef AX_HLO_FILES_H
#define AX_HLO_FILES_H

#include "hlo/module.h"

typedef enum ax_hlo_format {
  AX_HLO_NO_MODULE, /* none of those below */
  AX_HLO_TEXT,
  AX_HLO_BYTECODE,
  AX_HLO_EXPORTED /* jax.export's */
} ax_hlo_format;

ax_hlo_format ax_hlo_format_of(const char *bytes, size_t count);
/* Reads a module: bytecode and what jax.export wrote as such, anything else as text. As ax_hlo_read_text, ax_hlo_read_bytecode and
   ax_hlo_read_exported. */
AX_MUST_USE ax_status ax_hlo_read(const char *bytes, size_t count, const char *source, ax_hlo_module *out);

#endif
