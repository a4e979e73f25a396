/* Conversions between dtypes, and between registers and memory. Every conversion rounds once: where it would go through a wider
   type first (f64 -> f32 -> bf16), the first step rounds to odd, which leaves the second one its correct answer. */
#include <math.h>

#include "jit/codegen.h"

static LLVMValueRef cast(const ax_codegen *cg, LLVMOpcode op, LLVMValueRef value, LLVMTypeRef type) {
  return LLVMBuildCast(cg->builder, op, value, type, "");
}

static LLVMValueRef constant(const ax_codegen *cg, uint32_t bits, uint32_t lanes, uint64_t value) {
  return ax_cg_splat(LLVMConstInt(ax_cg_int(cg, bits, 1), value, false), lanes);
}

/* --- Narrow floats --- */

/* Adds just below half of the last kept bit, and one more when that bit is odd: round to nearest even. */
static LLVMValueRef round_bf16(const ax_codegen *cg, LLVMValueRef value, uint32_t lanes) {
  LLVMBuilderRef b = cg->builder;
  LLVMTypeRef type = ax_cg_int(cg, 32, lanes);
  LLVMValueRef bits = cast(cg, LLVMBitCast, value, type);
  LLVMValueRef odd =
      LLVMBuildAnd(b, LLVMBuildLShr(b, bits, constant(cg, 32, lanes, 16), ""), constant(cg, 32, lanes, 1), "");
  LLVMValueRef up = LLVMBuildAdd(b, LLVMBuildAdd(b, bits, constant(cg, 32, lanes, 0x7fff), ""), odd, "");
  LLVMValueRef nan = LLVMBuildOr(b, bits, constant(cg, 32, lanes, 0x400000), "");
  LLVMValueRef kept = LLVMBuildSelect(b, LLVMBuildFCmp(b, LLVMRealUNO, value, value, ""), nan, up, "");
  return cast(cg, LLVMBitCast, LLVMBuildAnd(b, kept, constant(cg, 32, lanes, 0xffff0000u), ""), LLVMTypeOf(value));
}

static LLVMTypeRef half_type(const ax_codegen *cg, uint32_t lanes) {
  LLVMTypeRef half = LLVMHalfTypeInContext(cg->context);
  return lanes == 1 ? half : LLVMVectorType(half, lanes);
}

LLVMValueRef ax_cg_round(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef value, uint32_t lanes) {
  if (dtype == AX_BF16) return round_bf16(cg, value, lanes);
  if (dtype != AX_F16) return value;
  return cast(cg, LLVMFPExt, cast(cg, LLVMFPTrunc, value, half_type(cg, lanes)), LLVMTypeOf(value));
}

LLVMValueRef ax_cg_to_register(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef memory, uint32_t lanes) {
  LLVMTypeRef type = ax_cg_register(cg, dtype, lanes);
  if (dtype == AX_BOOL) return LLVMBuildICmp(cg->builder, LLVMIntNE, memory, LLVMConstNull(LLVMTypeOf(memory)), "");
  if (dtype == AX_F16) return cast(cg, LLVMFPExt, cast(cg, LLVMBitCast, memory, half_type(cg, lanes)), type);
  if (dtype != AX_BF16) return memory;
  LLVMValueRef wide = cast(cg, LLVMZExt, memory, ax_cg_int(cg, 32, lanes));
  return cast(cg, LLVMBitCast, LLVMBuildShl(cg->builder, wide, constant(cg, 32, lanes, 16), ""), type);
}

LLVMValueRef ax_cg_to_memory(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef value, uint32_t lanes) {
  LLVMTypeRef type = ax_cg_memory(cg, dtype, lanes);
  if (dtype == AX_BOOL) return cast(cg, LLVMZExt, value, type);
  if (dtype == AX_F16) return cast(cg, LLVMBitCast, cast(cg, LLVMFPTrunc, value, half_type(cg, lanes)), type);
  if (dtype != AX_BF16) return value;
  LLVMValueRef bits = cast(cg, LLVMBitCast, value, ax_cg_int(cg, 32, lanes));
  return cast(cg, LLVMTrunc, LLVMBuildLShr(cg->builder, bits, constant(cg, 32, lanes, 16), ""), type);
}

/* --- Rounding to odd --- */

/* f64 to an f32 that is exact, or the odd one of its two neighbours. */
static LLVMValueRef to_odd(const ax_codegen *cg, LLVMValueRef value, uint32_t lanes) {
  LLVMBuilderRef b = cg->builder;
  LLVMTypeRef f64 = ax_cg_register(cg, AX_F64, lanes), i32 = ax_cg_int(cg, 32, lanes);
  LLVMValueRef nearest = cast(cg, LLVMFPTrunc, value, ax_cg_register(cg, AX_F32, lanes));
  LLVMValueRef back = cast(cg, LLVMFPExt, nearest, f64);
  LLVMValueRef a = ax_cg_intrinsic(cg, "llvm.fabs", &f64, 1, &back, 1);
  LLVMValueRef v = ax_cg_intrinsic(cg, "llvm.fabs", &f64, 1, &value, 1);
  LLVMValueRef away = cast(cg, LLVMZExt, LLVMBuildFCmp(b, LLVMRealOGT, a, v, ""), i32);
  LLVMValueRef inexact = cast(cg, LLVMZExt, LLVMBuildFCmp(b, LLVMRealONE, a, v, ""), i32);
  LLVMValueRef bits = LLVMBuildSub(b, cast(cg, LLVMBitCast, nearest, i32), away, "");
  return cast(cg, LLVMBitCast, LLVMBuildOr(b, bits, inexact, ""), LLVMTypeOf(nearest));
}

/* A 64-bit integer to an f64 that still rounds to the right narrow float: beyond 52 bits, in units of 4096, made odd. */
static LLVMValueRef wide_int_to_f64(const ax_codegen *cg, bool is_signed, LLVMValueRef value, uint32_t lanes) {
  LLVMBuilderRef b = cg->builder;
  LLVMTypeRef type = LLVMTypeOf(value), f64 = ax_cg_register(cg, AX_F64, lanes);
  LLVMOpcode to_float = is_signed ? LLVMSIToFP : LLVMUIToFP;
  LLVMValueRef twelve = constant(cg, 64, lanes, 12), limit = constant(cg, 64, lanes, 1ull << 52);
  LLVMValueRef low = LLVMBuildAnd(b, value, constant(cg, 64, lanes, 4095), "");
  LLVMValueRef sticky = cast(cg, LLVMZExt, LLVMBuildICmp(b, LLVMIntNE, low, LLVMConstNull(type), ""), type);
  LLVMValueRef high = is_signed ? LLVMBuildAShr(b, value, twelve, "") : LLVMBuildLShr(b, value, twelve, "");
  LLVMValueRef units = cast(cg, to_float, LLVMBuildOr(b, high, sticky, ""), f64);
  LLVMValueRef large = LLVMBuildFMul(b, units, ax_cg_number(cg, AX_F64, lanes, 4096), "");
  LLVMValueRef biased = is_signed ? LLVMBuildAdd(b, value, limit, "") : value;
  LLVMValueRef bound = is_signed ? constant(cg, 64, lanes, 1ull << 53) : limit;
  LLVMValueRef small = LLVMBuildICmp(b, LLVMIntULT, biased, bound, "");
  return LLVMBuildSelect(b, small, cast(cg, to_float, value, f64), large, "");
}

/* --- By kind --- */

static bool is_narrow(ax_dtype dtype) { return dtype == AX_BF16 || dtype == AX_F16; }

static LLVMValueRef int_to_float(const ax_codegen *cg, ax_dtype from, ax_dtype to, LLVMValueRef value, uint32_t lanes) {
  bool is_signed = ax_dtype_get(from)->kind == AX_KIND_SIGNED;
  LLVMOpcode op = is_signed ? LLVMSIToFP : LLVMUIToFP;
  size_t bytes = ax_dtype_bytes(from);
  if (!is_narrow(to)) return cast(cg, op, value, ax_cg_register(cg, to, lanes));
  if (bytes < 4) return ax_cg_round(cg, to, cast(cg, op, value, ax_cg_register(cg, AX_F32, lanes)), lanes);
  LLVMValueRef wide = bytes == 8 ? wide_int_to_f64(cg, is_signed, value, lanes)
                                 : cast(cg, op, value, ax_cg_register(cg, AX_F64, lanes));
  return ax_cg_round(cg, to, to_odd(cg, wide, lanes), lanes);
}

/* Clamped to what both types have, converted, and put right where there was nothing to clamp to: LLVM's own saturating conversion
   is taken apart into scalars. Not a number becomes the least value on the way, then 0. */
static LLVMValueRef float_to_int(const ax_codegen *cg, ax_dtype from, ax_dtype to, LLVMValueRef value, uint32_t lanes) {
  LLVMBuilderRef b = cg->builder;
  bool is_signed = ax_dtype_get(to)->kind == AX_KIND_SIGNED;
  int bits = 8 * (int)ax_dtype_bytes(to), digits = is_signed ? bits - 1 : bits, held = from == AX_F64 ? 53 : 24;
  double limit = ldexp(1, digits), last = limit - (digits <= held ? 1 : ldexp(1, digits - held));
  ax_dtype dtype = from == AX_F64 ? AX_F64 : AX_F32;
  LLVMValueRef least = ax_cg_number(cg, dtype, lanes, is_signed ? -limit : 0), most = ax_cg_number(cg, dtype, lanes, last);
  LLVMValueRef inside = LLVMBuildSelect(b, LLVMBuildFCmp(b, LLVMRealOGT, value, least, ""), value, least, "");
  inside = LLVMBuildSelect(b, LLVMBuildFCmp(b, LLVMRealOLT, inside, most, ""), inside, most, "");
  LLVMValueRef whole = cast(cg, is_signed || bits < 32 ? LLVMFPToSI : LLVMFPToUI, inside, ax_cg_int(cg, bits < 32 ? 32 : (uint32_t)bits, lanes));
  if (bits < 32) whole = cast(cg, LLVMTrunc, whole, ax_cg_register(cg, to, lanes));
  LLVMTypeRef type = LLVMTypeOf(whole);
  if (digits > held) {
    LLVMValueRef top = constant(cg, (uint32_t)bits, lanes, UINT64_MAX >> (64 - digits));
    whole = LLVMBuildSelect(b, LLVMBuildFCmp(b, LLVMRealOGT, value, most, ""), top, whole, "");
  }
  return LLVMBuildSelect(b, LLVMBuildFCmp(b, LLVMRealUNO, value, value, ""), LLVMConstNull(type), whole, "");
}

static LLVMValueRef int_to_int(const ax_codegen *cg, ax_dtype from, ax_dtype to, LLVMValueRef value, uint32_t lanes) {
  size_t a = ax_dtype_bytes(from), b = ax_dtype_bytes(to);
  LLVMTypeRef type = ax_cg_register(cg, to, lanes);
  if (a == b && from != AX_BOOL) return value;
  if (a > b) return cast(cg, LLVMTrunc, value, type);
  return cast(cg, ax_dtype_get(from)->kind == AX_KIND_SIGNED ? LLVMSExt : LLVMZExt, value, type);
}

static LLVMValueRef float_to_float(const ax_codegen *cg, ax_dtype from, ax_dtype to, LLVMValueRef value,
                                   uint32_t lanes) {
  LLVMTypeRef type = ax_cg_register(cg, to, lanes);
  if (to == AX_F64) return cast(cg, LLVMFPExt, value, type);
  if (from == AX_F64) value = is_narrow(to) ? to_odd(cg, value, lanes) : cast(cg, LLVMFPTrunc, value, type);
  return ax_cg_round(cg, to, value, lanes);
}

static LLVMValueRef to_bool(const ax_codegen *cg, ax_dtype from, LLVMValueRef value) {
  LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(value));
  if (ax_is_float(from)) return LLVMBuildFCmp(cg->builder, LLVMRealUNE, value, zero, "");
  return LLVMBuildICmp(cg->builder, LLVMIntNE, value, zero, "");
}

LLVMValueRef ax_cg_convert(const ax_codegen *cg, ax_dtype from, ax_dtype to, LLVMValueRef value, uint32_t lanes) {
  if (from == to) return value;
  if (to == AX_BOOL) return to_bool(cg, from, value);
  if (ax_is_float(from) && ax_is_float(to)) return float_to_float(cg, from, to, value, lanes);
  if (ax_is_float(to)) return int_to_float(cg, from, to, value, lanes);
  if (ax_is_float(from)) return float_to_int(cg, from, to, value, lanes);
  return int_to_int(cg, from, to, value, lanes);
}
