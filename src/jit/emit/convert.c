/* Conversions between dtypes, and between registers and memory. Every conversion rounds once: where it would go through a wider
   type first (f64 -> f32 -> bf16), the first step leaves a sticky bit of what it drops, so that the second has its correct
   answer. */
#include <math.h>

#include "jit/emit/byte_float.h"
#include "jit/emit/codegen.h"

static LLVMValueRef cast(const ax_codegen *cg, LLVMOpcode op, LLVMValueRef value, LLVMTypeRef type) {
  return LLVMBuildCast(cg->builder, op, value, type, "");
}

static LLVMValueRef constant(const ax_codegen *cg, uint32_t bits, uint32_t lanes, uint64_t value) {
  return ax_cg_splat(LLVMConstInt(ax_cg_int(cg, bits, 1), value, false), lanes);
}

/* --- Narrow floats --- */

/* Adds just below half of the last kept bit, and one more when that bit is odd: round to nearest even. The one more counts only
   where exactly half is dropped, whose lowest bit is 0; so it is put there by "or", which with "and" is one instruction. */
static LLVMValueRef round_bf16(const ax_codegen *cg, LLVMValueRef value, bool may_be_nan, uint32_t lanes) {
  LLVMBuilderRef b = cg->builder;
  LLVMTypeRef type = ax_cg_int(cg, 32, lanes);
  LLVMValueRef bits = cast(cg, LLVMBitCast, value, type);
  LLVMValueRef odd =
      LLVMBuildAnd(b, LLVMBuildLShr(b, bits, constant(cg, 32, lanes, 16), ""), constant(cg, 32, lanes, 1), "");
  LLVMValueRef up = LLVMBuildAdd(b, LLVMBuildOr(b, bits, odd, ""), constant(cg, 32, lanes, 0x7fff), "");
  if (may_be_nan) {
    LLVMValueRef nan = LLVMBuildOr(b, bits, constant(cg, 32, lanes, 0x400000), "");
    up = LLVMBuildSelect(b, LLVMBuildFCmp(b, LLVMRealUNO, value, value, ""), nan, up, "");
  }
  return cast(cg, LLVMBitCast, LLVMBuildAnd(b, up, constant(cg, 32, lanes, 0xffff0000u), ""), LLVMTypeOf(value));
}

LLVMValueRef ax_cg_upper_half(const ax_codegen *cg, LLVMValueRef value, uint32_t lanes) {
  LLVMValueRef from = LLVMIsABitCastInst(value) != NULL ? LLVMGetOperand(value, 0) : NULL;
  if (from != NULL && LLVMIsABinaryOperator(from) != NULL && LLVMGetInstructionOpcode(from) == LLVMAnd &&
      LLVMGetOperand(from, 1) == constant(cg, 32, lanes, 0xffff0000u))
    return LLVMGetOperand(from, 0);
  return cast(cg, LLVMBitCast, value, ax_cg_int(cg, 32, lanes));
}

static LLVMTypeRef half_type(const ax_codegen *cg, uint32_t lanes) {
  LLVMTypeRef half = LLVMHalfTypeInContext(cg->context);
  return lanes == 1 ? half : LLVMVectorType(half, lanes);
}

static bool is_half(const ax_codegen *cg, LLVMValueRef value, uint32_t lanes) { return LLVMTypeOf(value) == half_type(cg, lanes); }

LLVMValueRef ax_cg_widen_half(const ax_codegen *cg, LLVMValueRef value, uint32_t lanes) {
  return is_half(cg, value, lanes) ? cast(cg, LLVMFPExt, value, ax_cg_register(cg, AX_F32, lanes)) : value;
}

/* An integer of less than 8 bits, from the lower bits of a byte. */
static LLVMValueRef wrap(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef value, uint32_t lanes) {
  const ax_dtype_info *info = ax_dtype_get(dtype);
  LLVMValueRef above = constant(cg, 8, lanes, 8 - info->bits);
  if (info->kind == AX_KIND_UNSIGNED) return LLVMBuildAnd(cg->builder, value, constant(cg, 8, lanes, 0xff >> (8 - info->bits)), "");
  return LLVMBuildAShr(cg->builder, LLVMBuildShl(cg->builder, value, above, ""), above, "");
}

static LLVMValueRef round_byte(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef value, bool computed, uint32_t lanes) {
  return ax_cg_byte_float_widen(cg, dtype, ax_cg_byte_float_bits(cg, dtype, value, computed, lanes), lanes);
}

LLVMValueRef ax_cg_round(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef value, uint32_t lanes) {
  if (ax_is_byte_float(dtype)) return round_byte(cg, dtype, value, true, lanes);
  if (ax_is_short_integer(dtype)) return wrap(cg, dtype, value, lanes);
  if (dtype == AX_BF16) return round_bf16(cg, value, true, lanes);
  if (dtype != AX_F16 || is_half(cg, value, lanes)) return value;
  LLVMValueRef half = cast(cg, LLVMFPTrunc, value, half_type(cg, lanes));
  return cg->f16 ? half : cast(cg, LLVMFPExt, half, LLVMTypeOf(value));
}

LLVMValueRef ax_cg_round_arithmetic(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef value, uint32_t lanes) {
  return dtype == AX_BF16 ? round_bf16(cg, value, false, lanes) : ax_cg_round(cg, dtype, value, lanes);
}

LLVMValueRef ax_cg_to_register(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef memory, uint32_t lanes) {
  LLVMTypeRef type = ax_cg_register(cg, dtype, lanes);
  if (ax_is_short_integer(dtype)) return wrap(cg, dtype, memory, lanes);
  if (ax_is_byte_float(dtype)) return ax_cg_byte_float_widen(cg, dtype, cast(cg, LLVMZExt, memory, ax_cg_int(cg, 32, lanes)), lanes);
  if (dtype == AX_BOOL) return LLVMBuildICmp(cg->builder, LLVMIntNE, memory, LLVMConstNull(LLVMTypeOf(memory)), "");
  if (dtype == AX_F16) {
    LLVMValueRef half = cast(cg, LLVMBitCast, memory, half_type(cg, lanes));
    return cg->f16 ? half : cast(cg, LLVMFPExt, half, type);
  }
  if (dtype != AX_BF16) return memory;
  LLVMValueRef wide = cast(cg, LLVMZExt, memory, ax_cg_int(cg, 32, lanes));
  return cast(cg, LLVMBitCast, LLVMBuildShl(cg->builder, wide, constant(cg, 32, lanes, 16), ""), type);
}

LLVMValueRef ax_cg_to_memory(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef value, uint32_t lanes) {
  LLVMTypeRef type = ax_cg_memory(cg, dtype, lanes);
  if (dtype == AX_BOOL) return cast(cg, LLVMZExt, value, type);
  if (ax_is_short_integer(dtype))
    return LLVMBuildAnd(cg->builder, value, constant(cg, 8, lanes, 0xff >> (8 - ax_dtype_get(dtype)->bits)), "");
  if (ax_is_byte_float(dtype)) return cast(cg, LLVMTrunc, ax_cg_byte_float_bits(cg, dtype, value, false, lanes), type);
  if (dtype == AX_F16) {
    LLVMValueRef half = is_half(cg, value, lanes) ? value : cast(cg, LLVMFPTrunc, value, half_type(cg, lanes));
    return cast(cg, LLVMBitCast, half, type);
  }
  if (dtype != AX_BF16) return value;
  LLVMValueRef bits = ax_cg_upper_half(cg, value, lanes);
  return cast(cg, LLVMTrunc, LLVMBuildLShr(cg->builder, bits, constant(cg, 32, lanes, 16), ""), type);
}

/* --- Sticky bits --- */

/* The bits below bit `count`, made one: bit `count` is set where any of them is, and they are cleared. What is rounded to a unit of
   at least four times that bit is rounded alike, also where numbers are negative in two's complement. */
static LLVMValueRef collapse(const ax_codegen *cg, LLVMValueRef bits, uint32_t width, uint32_t count, uint32_t lanes) {
  LLVMBuilderRef b = cg->builder;
  const uint64_t low = (1ull << count) - 1;
  LLVMValueRef mask = constant(cg, width, lanes, low);
  LLVMValueRef sticky = LLVMBuildAdd(b, LLVMBuildAnd(b, bits, mask, ""), mask, "");
  return LLVMBuildAnd(b, LLVMBuildOr(b, bits, sticky, ""), constant(cg, width, lanes, ~low), "");
}

/* f64 to an f32 that rounds to the same bf16 or f16: of 15 digits, the last of them sticky, which f32 has down to where both are
   0. */
static LLVMValueRef to_sticky(const ax_codegen *cg, LLVMValueRef value, uint32_t lanes) {
  LLVMValueRef bits = collapse(cg, cast(cg, LLVMBitCast, value, ax_cg_int(cg, 64, lanes)), 64, 38, lanes);
  return cast(cg, LLVMFPTrunc, cast(cg, LLVMBitCast, bits, LLVMTypeOf(value)), ax_cg_register(cg, AX_F32, lanes));
}

/* bf16 has 8 significant bits. So in an integer of 2^24 or more, all bits below bit 8 (of 32) or bit 15 (of 64) can be replaced
   by one sticky bit. The other bits then fit f32 (of 32) or f64 (of 64) exactly. */
static LLVMValueRef int_to_sticky(const ax_codegen *cg, ax_dtype from, LLVMValueRef value, uint32_t lanes) {
  LLVMBuilderRef b = cg->builder;
  const bool is_signed = ax_dtype_get(from)->kind == AX_KIND_SIGNED;
  const uint32_t width = 8 * (uint32_t)ax_dtype_bytes(from);
  LLVMValueRef limit = constant(cg, width, lanes, 1u << 24), bound = is_signed ? constant(cg, width, lanes, 1u << 25) : limit;
  LLVMValueRef biased = is_signed ? LLVMBuildAdd(b, value, limit, "") : value;
  LLVMValueRef large = collapse(cg, value, width, width == 64 ? 15 : 8, lanes);
  LLVMValueRef kept = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntULT, biased, bound, ""), value, large, "");
  LLVMValueRef exact =
      cast(cg, is_signed ? LLVMSIToFP : LLVMUIToFP, kept, ax_cg_register(cg, width == 64 ? AX_F64 : AX_F32, lanes));
  return width == 64 ? to_sticky(cg, exact, lanes) : exact;
}

/* --- By kind --- */

/* One integer to f32 or f64, by the instruction for vectors of 16 bytes (cvtdq2ps). That for one number (cvtsi2ss) keeps the rest of the
   register that it writes, and so waits for what was in that before, which another chain of operations may be making. NULL: there is
   none for vectors. */
static LLVMValueRef one_int_to_float(const ax_codegen *cg, bool is_signed, LLVMValueRef value, ax_dtype to) {
#if defined(__x86_64__)
  LLVMBuilderRef b = cg->builder;
  uint32_t width = LLVMGetIntTypeWidth(LLVMTypeOf(value));
  if (width < 32) {
    value = LLVMBuildCast(b, is_signed ? LLVMSExt : LLVMZExt, value, LLVMInt32TypeInContext(cg->context), "");
    is_signed = true, width = 32;
  }
  if (LLVMIsConstant(value) || ((width > 32 || !is_signed) && cg->vector_bytes < 64)) return NULL;
  const uint32_t lanes = width == 64 || to == AX_F64 ? 2 : 4;
  LLVMTypeRef words = LLVMVectorType(LLVMTypeOf(value), lanes), floats = ax_cg_register(cg, to, lanes);
  LLVMValueRef all = LLVMBuildInsertElement(b, LLVMGetPoison(words), value, ax_cg_i64(cg, 0), "");
  return LLVMBuildExtractElement(b, cast(cg, is_signed ? LLVMSIToFP : LLVMUIToFP, all, floats), ax_cg_i64(cg, 0), "");
#else
  (void)cg, (void)is_signed, (void)value, (void)to;
  return NULL;
#endif
}

/* To f32 or f64. */
static LLVMValueRef int_to_wide(const ax_codegen *cg, bool is_signed, LLVMValueRef value, ax_dtype to, uint32_t lanes) {
  LLVMValueRef one = lanes == 1 ? one_int_to_float(cg, is_signed, value, to) : NULL;
  return one != NULL ? one : cast(cg, is_signed ? LLVMSIToFP : LLVMUIToFP, value, ax_cg_register(cg, to, lanes));
}

static LLVMValueRef int_to_float(const ax_codegen *cg, ax_dtype from, ax_dtype to, LLVMValueRef value, uint32_t lanes) {
  bool is_signed = ax_dtype_get(from)->kind == AX_KIND_SIGNED;
  if (!ax_is_narrow_float(to)) return int_to_wide(cg, is_signed, value, to, lanes);
  const bool direct = ax_dtype_bytes(from) < 4 || to == AX_F16; /* from 2^24 on, f16 is infinite */
  LLVMValueRef wide = direct ? int_to_wide(cg, is_signed, value, AX_F32, lanes) : int_to_sticky(cg, from, value, lanes);
  return ax_cg_round_arithmetic(cg, to, wide, lanes);
}

/* Clamped to what both types have, converted, and put right where there was nothing to clamp to: LLVM's own saturating conversion
   is taken apart into scalars. Not a number becomes the least value on the way, then 0. */
static LLVMValueRef float_to_int(const ax_codegen *cg, ax_dtype from, ax_dtype to, LLVMValueRef value, uint32_t lanes) {
  LLVMBuilderRef b = cg->builder;
  bool is_signed = ax_dtype_get(to)->kind == AX_KIND_SIGNED;
  int bits = (int)ax_dtype_get(to)->bits, digits = is_signed ? bits - 1 : bits, held = from == AX_F64 ? 53 : 24;
  double limit = ldexp(1, digits), last = limit - (digits <= held ? 1 : ldexp(1, digits - held));
  ax_dtype dtype = from == AX_F64 ? AX_F64 : AX_F32;
  LLVMValueRef least = ax_cg_number(cg, dtype, lanes, is_signed ? -limit : 0), most = ax_cg_number(cg, dtype, lanes, last);
  LLVMValueRef inside = LLVMBuildSelect(b, LLVMBuildFCmp(b, LLVMRealOGT, value, least, ""), value, least, "");
  inside = LLVMBuildSelect(b, LLVMBuildFCmp(b, LLVMRealOLT, inside, most, ""), inside, most, "");
  LLVMValueRef whole =
      cast(cg, is_signed || bits < 32 ? LLVMFPToSI : LLVMFPToUI, inside, ax_cg_int(cg, bits < 32 ? 32 : (uint32_t)bits, lanes));
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
  if (ax_is_short_integer(to) && a > b) return wrap(cg, to, cast(cg, LLVMTrunc, value, type), lanes);
  if (ax_is_short_integer(to) && from != AX_BOOL) return wrap(cg, to, value, lanes);
  if (a == b && from != AX_BOOL) return value;
  if (a > b) return cast(cg, LLVMTrunc, value, type);
  return cast(cg, ax_dtype_get(from)->kind == AX_KIND_SIGNED ? LLVMSExt : LLVMZExt, value, type);
}

static LLVMValueRef float_to_float(const ax_codegen *cg, ax_dtype from, ax_dtype to, LLVMValueRef value,
                                   uint32_t lanes) {
  LLVMTypeRef type = ax_cg_register(cg, to, lanes);
  if (to == AX_F64) return cast(cg, LLVMFPExt, value, type);
  if (from == AX_F64) value = ax_is_narrow_float(to) ? to_sticky(cg, value, lanes) : cast(cg, LLVMFPTrunc, value, type);
  return ax_is_byte_float(to) ? round_byte(cg, to, value, false, lanes) : ax_cg_round(cg, to, value, lanes);
}

static LLVMValueRef to_bool(const ax_codegen *cg, ax_dtype from, LLVMValueRef value) {
  LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(value));
  if (ax_is_float(from)) return LLVMBuildFCmp(cg->builder, LLVMRealUNE, value, zero, "");
  return LLVMBuildICmp(cg->builder, LLVMIntNE, value, zero, "");
}

LLVMValueRef ax_cg_convert(const ax_codegen *cg, ax_dtype from, ax_dtype to, LLVMValueRef value, uint32_t lanes) {
  if (from == to) return value;
  if (to == AX_BOOL) return to_bool(cg, from, value);
  value = ax_cg_widen_half(cg, value, lanes);
  if (ax_is_float(from) && ax_is_float(to)) return float_to_float(cg, from, to, value, lanes);
  if (ax_is_float(to)) return int_to_float(cg, from, to, value, lanes);
  if (ax_is_float(from)) return float_to_int(cg, from, to, value, lanes);
  return int_to_int(cg, from, to, value, lanes);
}
