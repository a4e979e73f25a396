/* Files of jax.export, Exported.serialize(): a module as bytecode, and how it is called. They are flatbuffers, of the schema
   jax/_src/export/serialization.fbs. The wire format is read here, with every offset checked: of a hundred fields a dozen are needed, and
   no library for it in C checks bytes that may be hostile without code that is generated from the schema. */
#ifndef AX_HLO_EXPORTED_H
#define AX_HLO_EXPORTED_H

#include "hlo/module.h"

/* How a function that was exported calls @main of its module: @main has the index of the platform first, if it was exported for several,
   and then the arguments that are kept. */
typedef struct ax_hlo_calling {
  bool has_platform;
  int64_t platform;       /* the index of "cpu" */
  uint32_t in_count;      /* arguments of the function that was exported */
  const ax_hlo_slice *in; /* their types as text */
  uint32_t kept_count;
  const uint32_t *kept; /* in ascending order: which of them @main has */
} ax_hlo_calling;

/* The bytes are such a file. */
bool ax_hlo_is_exported(const char *bytes, size_t count);
/* The module in the file, and how it is called, which is in `arena`. AX_PARSE_ERROR; AX_ABSENT: calling conventions that are not read,
   effects in an order, platforms without "cpu", by name; AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_hlo_read_exported(const char *bytes, size_t count, const char *source, ax_arena *arena,
                                           ax_hlo_slice *module, ax_hlo_calling *out);

#endif
