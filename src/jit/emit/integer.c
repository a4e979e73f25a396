/* Integer division and powers, which vector units lack. */
#include "jit/emit/codegen.h"

static bool is_signed(ax_dtype dtype) { return ax_dtype_get(dtype)->kind == AX_KIND_SIGNED; }

/* Truncating the float quotient of short integers is exact: a quotient that is no integer is at least 1/b away from the next
   one, and that is more than the rounding error of f32 for 16 bits, of f64 for 32. */
static LLVMValueRef divide_as_float(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef a, LLVMValueRef b,
                                    uint32_t lanes) {
  LLVMBuilderRef builder = cg->builder;
  LLVMTypeRef type = ax_cg_register(cg, ax_dtype_bytes(dtype) == 4 ? AX_F64 : AX_F32, lanes), integer = LLVMTypeOf(a);
  LLVMOpcode widen = is_signed(dtype) ? LLVMSIToFP : LLVMUIToFP, narrow = is_signed(dtype) ? LLVMFPToSI : LLVMFPToUI;
  LLVMValueRef x = LLVMBuildCast(builder, widen, a, type, ""), y = LLVMBuildCast(builder, widen, b, type, "");
  return LLVMBuildCast(builder, narrow, LLVMBuildFDiv(builder, x, y, ""), integer, "");
}

static LLVMValueRef any_set(const ax_codegen *cg, LLVMValueRef value, uint32_t lanes) {
  LLVMTypeRef type = LLVMTypeOf(value);
  if (lanes > 1) value = ax_cg_intrinsic(cg, "llvm.vector.reduce.or", &type, 1, &value, 1);
  return LLVMBuildICmp(cg->builder, LLVMIntNE, value, LLVMConstNull(LLVMTypeOf(value)), "");
}

/* Divides 64-bit integers. If all lanes are below 2^51 in size, it divides them as f64, which is exact: a and b together stay
   below 2^53, so the next integer is more than half a unit in the last place away from the quotient. Otherwise each lane is
   divided by the scalar instruction. */
static LLVMValueRef divide_long(const ax_codegen *cg, bool with_sign, LLVMValueRef a, LLVMValueRef b, uint32_t lanes) {
  LLVMBuilderRef builder = cg->builder;
  LLVMTypeRef type = LLVMTypeOf(a);
  LLVMValueRef half = ax_cg_splat(LLVMConstInt(ax_cg_int(cg, 64, 1), 1ull << 51, false), lanes);
  LLVMValueRef high = ax_cg_splat(LLVMConstInt(ax_cg_int(cg, 64, 1), with_sign ? ~0ull << 52 : ~0ull << 51, false), lanes);
  LLVMValueRef x = with_sign ? LLVMBuildAdd(builder, a, half, "") : a, y = with_sign ? LLVMBuildAdd(builder, b, half, "") : b;
  LLVMValueRef large = any_set(cg, LLVMBuildAnd(builder, LLVMBuildOr(builder, x, y, ""), high, ""), lanes);
  LLVMBasicBlockRef blocks[] = {LLVMAppendBasicBlockInContext(cg->context, cg->function, "short"),
                                LLVMAppendBasicBlockInContext(cg->context, cg->function, "long")};
  LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(cg->context, cg->function, "divided");
  LLVMBuildCondBr(builder, large, blocks[1], blocks[0]);
  LLVMPositionBuilderAtEnd(builder, blocks[0]);
  LLVMTypeRef f64 = ax_cg_register(cg, AX_F64, lanes);
  LLVMValueRef dividend = LLVMBuildCast(builder, LLVMSIToFP, a, f64, ""), divisor = LLVMBuildCast(builder, LLVMSIToFP, b, f64, "");
  LLVMValueRef ratio = LLVMBuildFDiv(builder, dividend, divisor, "");
  LLVMValueRef quotients[] = {LLVMBuildCast(builder, LLVMFPToSI, ratio, type, ""), NULL};
  LLVMBuildBr(builder, done);
  LLVMPositionBuilderAtEnd(builder, blocks[1]);
  quotients[1] = with_sign ? LLVMBuildSDiv(builder, a, b, "") : LLVMBuildUDiv(builder, a, b, "");
  LLVMBuildBr(builder, done);
  LLVMPositionBuilderAtEnd(builder, done);
  LLVMValueRef quotient = LLVMBuildPhi(builder, type, "");
  LLVMAddIncoming(quotient, quotients, blocks, 2);
  return quotient;
}

/* Divides one integer of up to 32 bits by a number of at least 2, with a product instead of the processor's division, which takes
   several times as long: LLVM does the same, but not where it is to compile fast (types.c). */
static LLVMValueRef divide_by_number(const ax_codegen *cg, bool with_sign, LLVMValueRef a, uint64_t number) {
  LLVMBuilderRef b = cg->builder;
  LLVMTypeRef i64 = ax_cg_int(cg, 64, 1), wider = ax_cg_int(cg, 128, 1);
  if (!with_sign) { /* ceil(2^64 / number), of which the product's upper half is the quotient */
    LLVMValueRef factor = LLVMConstInt(wider, UINT64_MAX / number + 1, false);
    LLVMValueRef product = LLVMBuildMul(b, LLVMBuildCast(b, LLVMZExt, a, wider, ""), factor, "");
    return LLVMBuildTrunc(b, LLVMBuildLShr(b, product, LLVMConstInt(wider, 64, false), ""), LLVMTypeOf(a), "");
  }
  uint64_t digits = 0;
  while (((uint64_t)1 << digits) < number) digits++;
  const uint64_t shift = 31 + digits; /* 2^shift / number, rounded up, has at most 32 bits, and is exact enough for 31 and a sign */
  LLVMValueRef factor = LLVMConstInt(i64, ((uint64_t)1 << shift) / number + 1, false);
  LLVMValueRef product = LLVMBuildMul(b, LLVMBuildCast(b, LLVMSExt, a, i64, ""), factor, "");
  LLVMValueRef below = LLVMBuildTrunc(b, LLVMBuildAShr(b, product, LLVMConstInt(i64, shift, false), ""), LLVMTypeOf(a), "");
  LLVMValueRef negative = LLVMBuildICmp(b, LLVMIntSLT, a, LLVMConstNull(LLVMTypeOf(a)), "");
  return LLVMBuildAdd(b, below, LLVMBuildCast(b, LLVMZExt, negative, LLVMTypeOf(a), ""), ""); /* towards 0 */
}

/* The number that a value is known to be, if it is at least 2 and divides as a product does; 0: it is none of these. */
static uint64_t known_divisor(LLVMValueRef b, uint32_t bits, bool with_sign, uint32_t lanes) {
  if (lanes != 1 || bits > 32 || !LLVMIsConstant(b)) return 0;
  const int64_t number = LLVMConstIntGetSExtValue(b), of_bits = number & (int64_t)(UINT64_MAX >> (64 - bits));
  return (with_sign ? number : of_bits) >= 2 ? (uint64_t)of_bits : 0;
}

/* By what is not 0, and not -1 where it divides the most negative number. */
static LLVMValueRef divide(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef a, LLVMValueRef b, uint32_t lanes) {
  const bool vector = lanes > 1 && !LLVMIsConstant(b);
  if (vector && ax_dtype_bytes(dtype) < 8) return divide_as_float(cg, dtype, a, b, lanes);
  if (vector) return divide_long(cg, is_signed(dtype), a, b, lanes);
  return is_signed(dtype) ? LLVMBuildSDiv(cg->builder, a, b, "") : LLVMBuildUDiv(cg->builder, a, b, "");
}

LLVMValueRef ax_cg_integer_div(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef a, LLVMValueRef b, bool positive, uint32_t lanes) {
  LLVMBuilderRef builder = cg->builder;
  uint32_t bits = (uint32_t)ax_dtype_bytes(dtype) * 8;
  LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(a)), ones = LLVMConstAllOnes(LLVMTypeOf(a));
  const uint64_t number = known_divisor(b, bits, is_signed(dtype), lanes);
  if (number != 0) return divide_by_number(cg, is_signed(dtype), a, number);
  if (positive) return divide(cg, dtype, a, b, lanes);
  LLVMValueRef by_zero = LLVMBuildICmp(builder, LLVMIntEQ, b, zero, ""), unsafe = by_zero;
  if (is_signed(dtype)) {
    LLVMValueRef least = LLVMBuildICmp(builder, LLVMIntEQ, a, ax_cg_integer(cg, dtype, lanes, 1ull << (bits - 1)), "");
    LLVMValueRef minus = LLVMBuildICmp(builder, LLVMIntEQ, b, ones, "");
    unsafe = LLVMBuildOr(builder, by_zero, LLVMBuildAnd(builder, least, minus, ""), "");
  }
  LLVMValueRef safe = LLVMBuildSelect(builder, unsafe, ax_cg_integer(cg, dtype, lanes, 1), b, "");
  return LLVMBuildSelect(builder, by_zero, ones, divide(cg, dtype, a, safe, lanes), "");
}

/* Of one number: a branch, which the processor foresees, instead of a divisor that is chosen, since who waits for it is often the next step
   of a loop. One instruction has both results. */
static void divide_one(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef a, LLVMValueRef b, LLVMValueRef *quotient, LLVMValueRef *rest) {
  LLVMBuilderRef builder = cg->builder;
  LLVMTypeRef type = LLVMTypeOf(a);
  LLVMValueRef zero = LLVMConstNull(type), ones = LLVMConstAllOnes(type), by_zero = LLVMBuildICmp(builder, LLVMIntEQ, b, zero, "");
  LLVMValueRef apart = by_zero;
  if (is_signed(dtype)) apart = LLVMBuildOr(builder, by_zero, LLVMBuildICmp(builder, LLVMIntEQ, b, ones, ""), "");
  LLVMBasicBlockRef blocks[] = {LLVMAppendBasicBlockInContext(cg->context, cg->function, "apart"),
                                LLVMAppendBasicBlockInContext(cg->context, cg->function, "divides")};
  LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(cg->context, cg->function, "divided");
  LLVMBuildCondBr(builder, apart, blocks[0], blocks[1]);
  LLVMPositionBuilderAtEnd(builder, blocks[0]); /* by 0: all bits, and a is left; by -1: -a, which the least number is itself */
  LLVMValueRef quotients[] = {LLVMBuildSelect(builder, by_zero, ones, LLVMBuildSub(builder, zero, a, ""), ""), NULL};
  LLVMValueRef rests[] = {LLVMBuildSelect(builder, by_zero, a, zero, ""), NULL};
  LLVMBuildBr(builder, done);
  LLVMPositionBuilderAtEnd(builder, blocks[1]);
  quotients[1] = is_signed(dtype) ? LLVMBuildSDiv(builder, a, b, "") : LLVMBuildUDiv(builder, a, b, "");
  rests[1] = is_signed(dtype) ? LLVMBuildSRem(builder, a, b, "") : LLVMBuildURem(builder, a, b, "");
  LLVMBuildBr(builder, done);
  LLVMPositionBuilderAtEnd(builder, done);
  *quotient = LLVMBuildPhi(builder, type, "");
  *rest = LLVMBuildPhi(builder, type, "");
  LLVMAddIncoming(*quotient, quotients, blocks, 2);
  LLVMAddIncoming(*rest, rests, blocks, 2);
}

void ax_cg_integer_divide(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef a, LLVMValueRef b, bool positive, uint32_t lanes,
                          LLVMValueRef *quotient, LLVMValueRef *rest) {
  if (lanes == 1 && !positive && !LLVMIsConstant(b)) {
    divide_one(cg, dtype, a, b, quotient, rest);
    return;
  }
  *quotient = ax_cg_integer_div(cg, dtype, a, b, positive, lanes);
  *rest = LLVMBuildSub(cg->builder, a, LLVMBuildMul(cg->builder, *quotient, b, ""), "");
}

static LLVMValueRef bit_set(const ax_codegen *cg, LLVMValueRef value, LLVMValueRef one) {
  return LLVMBuildICmp(cg->builder, LLVMIntNE, LLVMBuildAnd(cg->builder, value, one, ""),
                       LLVMConstNull(LLVMTypeOf(value)), "");
}

/* Repeated squaring, all lanes together, until no exponent has bits left. */
static LLVMValueRef power_loop(const ax_codegen *cg, LLVMValueRef base, LLVMValueRef exponent, LLVMValueRef one,
                               uint32_t lanes) {
  LLVMBuilderRef b = cg->builder;
  LLVMTypeRef type = LLVMTypeOf(base);
  LLVMBasicBlockRef entry = LLVMGetInsertBlock(b);
  LLVMBasicBlockRef head = LLVMAppendBasicBlockInContext(cg->context, cg->function, "pow");
  LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(cg->context, cg->function, "powered");
  LLVMBuildBr(b, head);
  LLVMPositionBuilderAtEnd(b, head);
  LLVMValueRef result = LLVMBuildPhi(b, type, ""), square = LLVMBuildPhi(b, type, ""), left = LLVMBuildPhi(b, type, "");
  LLVMValueRef product = LLVMBuildMul(b, result, square, "");
  LLVMValueRef next = LLVMBuildSelect(b, bit_set(cg, left, one), product, result, "");
  LLVMValueRef next_square = LLVMBuildMul(b, square, square, ""), next_left = LLVMBuildLShr(b, left, one, "");
  LLVMBuildCondBr(b, any_set(cg, next_left, lanes), head, done);
  LLVMBasicBlockRef blocks[] = {entry, head};
  LLVMAddIncoming(result, (LLVMValueRef[]){one, next}, blocks, 2);
  LLVMAddIncoming(square, (LLVMValueRef[]){base, next_square}, blocks, 2);
  LLVMAddIncoming(left, (LLVMValueRef[]){exponent, next_left}, blocks, 2);
  LLVMPositionBuilderAtEnd(b, done);
  return next;
}

/* Negative exponents: 0, except for the bases 1 and -1. */
LLVMValueRef ax_cg_integer_pow(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef base, LLVMValueRef exponent,
                               uint32_t lanes) {
  LLVMBuilderRef b = cg->builder;
  LLVMValueRef one = ax_cg_integer(cg, dtype, lanes, 1), zero = LLVMConstNull(LLVMTypeOf(base));
  LLVMValueRef minus = LLVMConstAllOnes(LLVMTypeOf(base));
  if (!is_signed(dtype)) return power_loop(cg, base, exponent, one, lanes);
  LLVMValueRef negative = LLVMBuildICmp(b, LLVMIntSLT, exponent, zero, "");
  LLVMValueRef odd = bit_set(cg, exponent, one);
  LLVMValueRef power = power_loop(cg, base, LLVMBuildSelect(b, negative, zero, exponent, ""), one, lanes);
  LLVMValueRef of_one = LLVMBuildICmp(b, LLVMIntEQ, base, one, ""),
               of_minus = LLVMBuildICmp(b, LLVMIntEQ, base, minus, "");
  LLVMValueRef sign = LLVMBuildSelect(b, odd, minus, one, "");
  LLVMValueRef reciprocal = LLVMBuildSelect(b, of_one, one, LLVMBuildSelect(b, of_minus, sign, zero, ""), "");
  return LLVMBuildSelect(b, negative, reciprocal, power, "");
}
