/* Functions of bf16 and f16, in line: of 8 or 11 digits, they take so few instructions that a call, which leaves nothing in the registers,
   would cost more. In f32 and rounded once by who asks; within 0.51 units of the narrow last place (ir/accuracy.def). Both sizes of register
   do the same operations in the same order, so that they give the same bits; there is none for registers of 16 bytes, which have no fused
   multiply-add. Coefficients are those of the polynomials of least largest relative error over the range that is said with them. */
#include "jit/codegen.h"

enum { x86_current_rounding = 4, x86_floor = 1 };

typedef struct half { /* what stands in all of them */
  const ax_codegen *cg;
  LLVMBuilderRef b;
  uint32_t lanes; /* a whole register of f32 */
} half;

static LLVMValueRef all(const half *h, double value) { return ax_cg_number(h->cg, AX_F32, h->lanes, value); }
static LLVMValueRef mul(const half *h, LLVMValueRef a, LLVMValueRef b) { return LLVMBuildFMul(h->b, a, b, ""); }

static LLVMValueRef fused(const half *h, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c) {
  LLVMTypeRef type = LLVMTypeOf(a);
  LLVMValueRef args[] = {a, b, c};
  return ax_cg_intrinsic(h->cg, "llvm.fma", &type, 1, args, 3);
}

static bool is_wide(const half *h) { return h->cg->vector_bytes == 64; }

static LLVMValueRef i32(const half *h, uint64_t value) { return LLVMConstInt(ax_cg_int(h->cg, 32, 1), value, false); }
static LLVMValueRef every_lane(const half *h) { return LLVMConstInt(ax_cg_int(h->cg, 16, 1), 0xffff, false); }

/* Coefficients from the constant on. */
static LLVMValueRef polynomial(const half *h, const double *c, uint32_t count, LLVMValueRef x) {
  LLVMValueRef p = all(h, c[count - 1]);
  for (uint32_t i = count - 1; i-- > 0;) p = fused(h, p, x, all(h, c[i]));
  return p;
}

/* --- 2^y --- */

/* y less the largest whole number that is not larger; of an infinity, 0. */
static LLVMValueRef fraction(const half *h, LLVMValueRef y) {
  LLVMTypeRef type = LLVMTypeOf(y);
  if (!is_wide(h)) return LLVMBuildBinOp(h->b, LLVMFSub, y, ax_cg_intrinsic(h->cg, "llvm.floor", &type, 1, &y, 1), "");
  LLVMValueRef args[] = {y, i32(h, x86_floor), y, every_lane(h), i32(h, x86_current_rounding)};
  return ax_cg_intrinsic(h->cg, "llvm.x86.avx512.mask.reduce.ps.512", NULL, 0, args, 5);
}

/* 2^n as bits, of whole numbers for which it is normal. */
static LLVMValueRef power(const half *h, LLVMValueRef n) {
  LLVMValueRef biased = LLVMBuildAdd(h->b, n, ax_cg_integer(h->cg, AX_S32, h->lanes, 127), "");
  LLVMValueRef bits = LLVMBuildBinOp(h->b, LLVMShl, biased, ax_cg_integer(h->cg, AX_S32, h->lanes, 23), "");
  return LLVMBuildCast(h->b, LLVMBitCast, bits, ax_cg_register(h->cg, AX_F32, h->lanes), "");
}

/* p 2^floor(y), rounded once: in two steps where no instruction does it, of which the first is exact. p is about 1, y within the bounds of exp2. */
static LLVMValueRef scaled(const half *h, LLVMValueRef p, LLVMValueRef y) {
  LLVMTypeRef type = LLVMTypeOf(y);
  if (is_wide(h)) {
    LLVMValueRef args[] = {p, y, p, every_lane(h), i32(h, x86_current_rounding)};
    return ax_cg_intrinsic(h->cg, "llvm.x86.avx512.mask.scalef.ps.512", NULL, 0, args, 5);
  }
  LLVMValueRef floor = ax_cg_intrinsic(h->cg, "llvm.floor", &type, 1, &y, 1);
  LLVMValueRef n = LLVMBuildCast(h->b, LLVMFPToSI, floor, ax_cg_int(h->cg, 32, h->lanes), "");
  LLVMValueRef first = LLVMBuildAShr(h->b, n, ax_cg_integer(h->cg, AX_S32, h->lanes, 1), "");
  return mul(h, mul(h, p, power(h, first)), power(h, LLVMBuildSub(h->b, n, first, "")));
}

/* NaN stays, as it is on no side of anything. */
static LLVMValueRef within(const half *h, LLVMValueRef x, double least, double most) {
  LLVMValueRef inside = LLVMBuildSelect(h->b, LLVMBuildFCmp(h->b, LLVMRealOLT, x, all(h, least), ""), all(h, least), x, "");
  return LLVMBuildSelect(h->b, LLVMBuildFCmp(h->b, LLVMRealOGT, inside, all(h, most), ""), all(h, most), inside, "");
}

/* Beyond the bounds it is 0 or infinite, as it is at them. */
static LLVMValueRef exp2_of(const half *h, LLVMValueRef y) {
  static const double c[] = {1.0000025933692647, 0.6930038344324988, 0.24144275709800028, 0.052011460299324144, 0.013534168062382872}; /* 0 .. 1 */
  if (!is_wide(h)) y = within(h, y, -152, 130);
  return scaled(h, polynomial(h, c, AX_COUNT(c), fraction(h, y)), y);
}

/* --- The functions --- */

static LLVMValueRef exp_of(const half *h, LLVMValueRef x) { return exp2_of(h, mul(h, x, all(h, 1.44269504))); }

/* 1 / (1 + e^-x), both times 2^-8, so that it does not overflow where the result is a bf16. */
static LLVMValueRef logistic_of(const half *h, LLVMValueRef x) {
  LLVMValueRef least = all(h, 0x1p-8), e = exp2_of(h, fused(h, x, all(h, -1.44269504), all(h, -8)));
  return LLVMBuildFDiv(h->b, least, LLVMBuildFAdd(h->b, least, e, ""), "");
}

typedef LLVMValueRef (*function)(const half *h, LLVMValueRef x);
static const function functions[AX_SCALAR_COUNT] = {
    [AX_SCALAR_EXP] = exp_of,
    [AX_SCALAR_LOGISTIC] = logistic_of,
};

bool ax_cg_has_half(const ax_codegen *cg, ax_scalar op, ax_dtype dtype) {
  return (dtype == AX_BF16 || dtype == AX_F16) && cg->vector_bytes >= 32 && functions[op] != NULL;
}

LLVMValueRef ax_cg_half(const ax_codegen *cg, ax_scalar op, LLVMValueRef x) {
  const half h = {.cg = cg, .b = cg->builder, .lanes = cg->vector_bytes / 4};
  return functions[op](&h, x);
}
