/* Floats as integers of the same order, for the largest or the smallest of many. An integer comparison takes one instruction and
   one cycle. With floats it takes seven dependent instructions, because of NaN, and because -0 is less than +0. Negative numbers
   have their bits below the sign inverted; then the bits, as signed integers, stand in the order of the numbers:

     -NaN   -inf ... -0   +0 ... +inf   +NaN

   Then all are shifted around by the number of NaNs of one sign: down for the largest, so that all NaNs come last, up for the
   smallest, so that they come first. So the result over no elements, -inf or +inf, is the least or the greatest integer. */
#include "jit/emit/codegen.h"

static uint32_t bits_of(ax_dtype dtype) { return ax_dtype_get(dtype)->bits; }
/* How many NaNs there are of one sign. */
static uint64_t nans(ax_dtype dtype) { return ((uint64_t)1 << ax_dtype_get(dtype)->fraction) - 1; }

ax_dtype ax_cg_order(ax_dtype dtype) { return bits_of(dtype) == 16 ? AX_S16 : bits_of(dtype) == 32 ? AX_S32 : AX_S64; }

static LLVMValueRef constant(const ax_codegen *cg, ax_dtype dtype, uint32_t lanes, uint64_t value) {
  return ax_cg_integer(cg, ax_cg_order(dtype), lanes, value);
}

/* a ^ (b & c) of whole registers of 64 bytes. LLVM by itself would make shifts of "and", of which a processor has fewer units. */
static LLVMValueRef exclusive_or_of_and(const ax_codegen *cg, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c) {
  enum { bits_of_result = 0x78 }; /* by the bits of a, b and c as a number */
  LLVMTypeRef type = LLVMTypeOf(a), words = ax_cg_int(cg, 32, 16);
  LLVMValueRef args[] = {a, b, c, LLVMConstInt(ax_cg_int(cg, 32, 1), bits_of_result, false)};
  for (int i = 0; i < 3; i++) args[i] = LLVMBuildCast(cg->builder, LLVMBitCast, args[i], words, "");
  return LLVMBuildCast(cg->builder, LLVMBitCast, ax_cg_intrinsic(cg, "llvm.x86.avx512.pternlog.d.512", NULL, 0, args, 4), type, "");
}

/* Its own inverse. */
static LLVMValueRef turned(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef bits, uint32_t lanes) {
  LLVMBuilderRef b = cg->builder;
  LLVMValueRef sign = LLVMBuildAShr(b, bits, constant(cg, dtype, lanes, bits_of(dtype) - 1), "");
  LLVMValueRef below = constant(cg, dtype, lanes, UINT64_MAX >> (65 - bits_of(dtype)));
  if (cg->vector_bytes == 64 && lanes * bits_of(dtype) == 512) return exclusive_or_of_and(cg, bits, sign, below);
  return LLVMBuildBinOp(b, LLVMXor, bits, LLVMBuildAnd(b, sign, below, ""), "");
}

static LLVMValueRef moved(const ax_codegen *cg, ax_dtype dtype, bool down, LLVMValueRef bits, uint32_t lanes) {
  return LLVMBuildBinOp(cg->builder, down ? LLVMSub : LLVMAdd, bits, constant(cg, dtype, lanes, nans(dtype)), "");
}

/* A subnormal number is as good as zero if the thread flushes them. Which of many is the largest does not depend on that, so only
   the result is looked at. */
static LLVMValueRef flushed_bf16(const ax_codegen *cg, LLVMValueRef bits, uint32_t lanes) {
  LLVMBuilderRef b = cg->builder;
  LLVMTypeRef word = ax_cg_int(cg, 32, lanes), f32 = ax_cg_register(cg, AX_F32, lanes);
  LLVMValueRef half = ax_cg_splat(LLVMConstInt(ax_cg_int(cg, 32, 1), 16, false), lanes);
  LLVMValueRef wide = LLVMBuildBinOp(b, LLVMShl, LLVMBuildCast(b, LLVMZExt, bits, word, ""), half, "");
  LLVMValueRef kept = ax_cg_flushed(cg, AX_F32, LLVMBuildCast(b, LLVMBitCast, wide, f32, ""), lanes);
  wide = LLVMBuildLShr(b, LLVMBuildCast(b, LLVMBitCast, kept, word, ""), half, "");
  return LLVMBuildCast(b, LLVMTrunc, wide, LLVMTypeOf(bits), "");
}

LLVMValueRef ax_cg_to_order(const ax_codegen *cg, ax_scalar reduce, ax_dtype dtype, LLVMValueRef value, uint32_t lanes) {
  LLVMValueRef bits = LLVMBuildCast(cg->builder, LLVMBitCast, value, ax_cg_int(cg, bits_of(dtype), lanes), "");
  return moved(cg, dtype, reduce == AX_SCALAR_MAX, turned(cg, dtype, bits, lanes), lanes);
}

LLVMValueRef ax_cg_from_order(const ax_codegen *cg, ax_scalar reduce, ax_dtype dtype, LLVMValueRef value, uint32_t lanes) {
  LLVMValueRef bits = turned(cg, dtype, moved(cg, dtype, reduce != AX_SCALAR_MAX, value, lanes), lanes);
  if (dtype == AX_BF16) return flushed_bf16(cg, bits, lanes);
  if (dtype == AX_F16) return bits;
  return ax_cg_flushed(cg, dtype, LLVMBuildCast(cg->builder, LLVMBitCast, bits, ax_cg_register(cg, dtype, lanes), ""), lanes);
}
