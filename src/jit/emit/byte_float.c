/* Floats of a byte: their bits, in words of 32 bits, from an f32 and back. All by the columns of the table of dtypes. */
#include "jit/emit/byte_float.h"

typedef struct format {
  const ax_codegen *cg;
  LLVMBuilderRef b;
  ax_dtype dtype;
  const ax_dtype_info *info;
  uint32_t lanes, shift;  /* shift: from the last bit of an f32 to that of its fraction */
  LLVMTypeRef word, f32;
} format;

static format format_of(const ax_codegen *cg, ax_dtype dtype, uint32_t lanes) {
  const ax_dtype_info *info = ax_dtype_get(dtype);
  return (format){cg, cg->builder, dtype, info, lanes, 23 - info->fraction, ax_cg_int(cg, 32, lanes), ax_cg_register(cg, AX_F32, lanes)};
}

static LLVMValueRef all(const format *f, uint64_t value) { return ax_cg_splat(LLVMConstInt(ax_cg_int(f->cg, 32, 1), value, false), f->lanes); }
static LLVMValueRef cast(const format *f, LLVMOpcode op, LLVMValueRef x, LLVMTypeRef to) { return LLVMBuildCast(f->b, op, x, to, ""); }
static LLVMValueRef binary(const format *f, LLVMOpcode op, LLVMValueRef x, uint64_t by) { return LLVMBuildBinOp(f->b, op, x, all(f, by), ""); }

/* Where x compares so with a number it is replaced. */
static LLVMValueRef where(const format *f, LLVMValueRef x, LLVMIntPredicate is, uint64_t number, LLVMValueRef taken, LLVMValueRef other) {
  return LLVMBuildSelect(f->b, LLVMBuildICmp(f->b, is, x, all(f, number), ""), taken, other, "");
}

static uint64_t magnitudes(const format *f) { return ((uint64_t)1 << (f->info->exponent + f->info->fraction)) - 1; }

/* --- From f32 --- */

/* Normal numbers: just below half of the last kept bit is added, and one more when that bit is odd. Then the bits that are not kept
   are cut off, and the bias is the format's. */
static LLVMValueRef rounded_normal(const format *f, LLVMValueRef size) {
  LLVMValueRef odd = binary(f, LLVMAnd, binary(f, LLVMLShr, size, f->shift), 1);
  LLVMValueRef up = LLVMBuildAdd(f->b, binary(f, LLVMAdd, size, ((uint64_t)1 << (f->shift - 1)) - 1), odd, "");
  return binary(f, LLVMSub, binary(f, LLVMLShr, up, f->shift), (uint64_t)(127 - f->info->bias) << f->info->fraction);
}

/* Subnormal ones: an addition rounds, of a power of 2 whose last bit is that of the format's subnormal numbers. */
static LLVMValueRef rounded_subnormal(const format *f, LLVMValueRef size) {
  const uint64_t power = (uint64_t)(127 + 24 - f->info->bias - (int)f->info->fraction) << 23;
  LLVMValueRef magic = cast(f, LLVMBitCast, all(f, power), f->f32);
  LLVMValueRef sum = LLVMBuildFAdd(f->b, cast(f, LLVMBitCast, size, f->f32), magic, "");
  return binary(f, LLVMSub, cast(f, LLVMBitCast, sum, f->word), power);
}

/* Halves are rounded up, and so is all between the two smallest powers. */
static LLVMValueRef power_of(const format *f, LLVMValueRef bits) {
  const uint64_t nan = ax_float_nan_bits(f->dtype);
  LLVMValueRef near = binary(f, LLVMLShr, binary(f, LLVMAdd, bits, 0x400000), 23);
  near = where(f, bits, LLVMIntSLE, 0x400000, all(f, 0), near);
  near = where(f, bits, LLVMIntSLE, 0, all(f, nan), near);
  return where(f, bits, LLVMIntSGE, 0x7f800000, all(f, nan), near);
}

LLVMValueRef ax_cg_byte_float_bits(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef value, bool computed, uint32_t lanes) {
  const format f = format_of(cg, dtype, lanes);
  const ax_specials specials = f.info->specials;
  const uint64_t least = (uint64_t)(128 - f.info->bias) << 23;
  LLVMValueRef bits = cast(&f, LLVMBitCast, value, f.word);
  if (specials == AX_SPECIALS_POWERS) return power_of(&f, bits);
  LLVMValueRef size = binary(&f, LLVMAnd, bits, 0x7fffffff);
  LLVMValueRef sign = binary(&f, LLVMAnd, binary(&f, LLVMLShr, bits, 31 - f.info->exponent - f.info->fraction), magnitudes(&f) + 1);
  LLVMValueRef near = where(&f, size, LLVMIntULT, least, rounded_subnormal(&f, size), rounded_normal(&f, size));
  near = where(&f, near, LLVMIntUGT, ax_float_largest_bits(dtype), all(&f, ax_float_infinity_bits(dtype)), near);
  LLVMValueRef made = LLVMBuildOr(f.b, near, sign, ""), nan = all(&f, ax_float_nan_bits(dtype));
  if (specials == AX_SPECIALS_ONE_ZERO) made = where(&f, near, LLVMIntEQ, 0, near, made);
  else if (specials != AX_SPECIALS_SATURATED || !computed) nan = LLVMBuildBinOp(f.b, LLVMXor, nan, sign, "");
  return where(&f, size, LLVMIntUGT, 0x7f800000, nan, made);
}

/* --- To f32 --- */

static LLVMValueRef widened_power(const format *f, LLVMValueRef bits) {
  LLVMValueRef made = where(f, bits, LLVMIntEQ, 0, all(f, 0x400000), binary(f, LLVMShl, bits, 23));
  return cast(f, LLVMBitCast, where(f, bits, LLVMIntEQ, ax_float_nan_bits(f->dtype), all(f, 0x7fc00000), made), f->f32);
}

LLVMValueRef ax_cg_byte_float_widen(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef bits, uint32_t lanes) {
  const format f = format_of(cg, dtype, lanes);
  const ax_specials specials = f.info->specials;
  const int fraction = (int)f.info->fraction;
  const uint64_t nan = ax_float_nan_bits(dtype), infinity = ax_float_infinity_bits(dtype);
  if (specials == AX_SPECIALS_POWERS) return widened_power(&f, bits);
  LLVMValueRef size = binary(&f, LLVMAnd, bits, magnitudes(&f));
  LLVMValueRef sign = binary(&f, LLVMShl, binary(&f, LLVMAnd, bits, magnitudes(&f) + 1), 31 - f.info->exponent - f.info->fraction);
  LLVMValueRef normal = binary(&f, LLVMAdd, binary(&f, LLVMShl, size, f.shift), (uint64_t)(127 - f.info->bias) << 23);
  LLVMValueRef unit = cast(&f, LLVMBitCast, all(&f, (uint64_t)(128 - f.info->bias - fraction) << 23), f.f32);
  LLVMValueRef units = LLVMBuildFMul(f.b, cast(&f, LLVMSIToFP, size, f.f32), unit, "");
  LLVMValueRef made = where(&f, size, LLVMIntULT, (uint64_t)1 << fraction, cast(&f, LLVMBitCast, units, f.word), normal);
  if (specials == AX_SPECIALS_IEEE) {
    made = where(&f, size, LLVMIntEQ, infinity, all(&f, 0x7f800000), made);
    made = where(&f, size, LLVMIntUGT, infinity, all(&f, 0x7fc00000), made);
  }
  if (specials == AX_SPECIALS_FINITE) made = where(&f, size, LLVMIntEQ, nan, all(&f, 0x7fc00000), made);
  made = LLVMBuildOr(f.b, made, sign, "");
  if (specials == AX_SPECIALS_ONE_ZERO) made = where(&f, bits, LLVMIntEQ, nan, all(&f, 0xffc00000), made);
  return cast(&f, LLVMBitCast, made, f.f32);
}
