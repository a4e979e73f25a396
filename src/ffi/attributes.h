/* Attributes of custom calls as XLA's interface has them, and dtypes by its numbers. */
#ifndef AX_FFI_ATTRIBUTES_H
#define AX_FFI_ATTRIBUTES_H

#include "axle/custom_call.h"
#include "base/base.h"
#include "ffi/abi.h"

/* The number of a dtype; 0: XLA has none, or its arrays have other bytes than Axle's (elements of less than 8 bits, keys). */
int ax_ffi_dtype(ax_dtype dtype);
/* A dictionary and all in it; made in the arena, of whose data it borrows. AX_ABSENT: elements without a number, by name.
   AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_ffi_attributes_make(ax_arena *arena, const ax_attribute *dictionary, ax_ffi_attributes *out);
/* Writes characters between quotes as MLIR does: "a\\0Ab". */
void ax_ffi_quoted_text(ax_text *text, const char *bytes, size_t count);
/* Writes a dictionary as MLIR does: {a = 1 : i32, b = array<f64: 0x3FF0000000000000>}. */
void ax_ffi_attributes_text(ax_text *text, const ax_attribute *dictionary);

#endif
