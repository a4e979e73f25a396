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
/* The same for bytes that `lender` holds (base/shared.h), which must live as long as the module: constants that lie in them are its,
   and parts that had to be copied are forgotten. NULL: as ax_hlo_read. */
AX_MUST_USE ax_status ax_hlo_read_lent(const char *bytes, size_t count, const char *source, struct ax_shared *lender, ax_hlo_module *out);

#endif
