/* Writing modules as VHLO, the form of StableHLO that is stable over versions, in MLIR's bytecode. */
#ifndef AX_HLO_WRITE_BYTECODE_H
#define AX_HLO_WRITE_BYTECODE_H

#include "hlo/module.h"

/* Beside a version of VHLO: operations and attributes of chlo and sdy are written, too, as they are. */
#define AX_HLO_MIXED ((uint32_t)1 << 31)
/* Adds the bytes of the module for readers of VHLO `version` (AX_HLO_VERSION, and perhaps AX_HLO_MIXED) and later. AX_INVALID_ARGUMENT: attributes that are missing.
   AX_ABSENT, by name: operations, attributes and types that the version has not, or that VHLO has not. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_hlo_write_bytecode(const ax_hlo_module *module, uint32_t version, ax_text *out);
/* "1.0.0", of which the first two numbers count; NULL: that; "1.0.0+mixed": with AX_HLO_MIXED. AX_INVALID_ARGUMENT: no version from 0.9.0 to 1.20.0. */
AX_MUST_USE ax_status ax_hlo_parse_version(const char *version, uint32_t *out);

#endif
