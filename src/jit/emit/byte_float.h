/* Floats of a byte (ax_is_byte_float), which registers hold as f32, as the words of 32 bits that memory has a byte of. */
#ifndef AX_JIT_EMIT_BYTE_FLOAT_H
#define AX_JIT_EMIT_BYTE_FLOAT_H

#include "jit/emit/codegen.h"

/* The bits of the number nearest to an f32. `computed`: it is a result of arithmetic, whose NaN has no sign that would count. */
LLVMValueRef ax_cg_byte_float_bits(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef value, bool computed, uint32_t lanes);
/* The f32 that the bits stand for. Bits above those of the dtype do not count. */
LLVMValueRef ax_cg_byte_float_widen(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef bits, uint32_t lanes);

#endif
