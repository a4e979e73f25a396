/* Functions of bf16 and f16, and exp of f32 in kernels of many vectors, emitted in line. For 8 or 11 significant bits they take so
   few instructions that a call, which saves and restores all registers, would cost more. They compute in f32, and the caller rounds
   once; results are within 0.51 units of the narrow last place (ir/accuracy.def). Registers of 64 and of 32 bytes do the same
   operations in the same order, so they give the same bits. Registers of 16 bytes have no fused multiply-add and no such functions.
   Coefficients belong to the polynomials of least largest relative error over the range given with them. */
#include <math.h>

#include "jit/emit/codegen.h"

enum { x86_current_rounding = 4, x86_floor = 1 };

typedef struct half { /* what stands in all of them */
  const ax_codegen *cg;
  LLVMBuilderRef b;
  uint32_t lanes; /* a whole register of f32 */
  bool is_f16;    /* which has more digits than bf16 */
} half;

static LLVMValueRef all(const half *h, double value) { return ax_cg_number(h->cg, AX_F32, h->lanes, value); }
static LLVMValueRef mul(const half *h, LLVMValueRef a, LLVMValueRef b) { return LLVMBuildFMul(h->b, a, b, ""); }

static LLVMValueRef subtract(const half *h, LLVMValueRef a, LLVMValueRef b) { return LLVMBuildBinOp(h->b, LLVMFSub, a, b, ""); }

/* Gives x the sign of `sign`. x must be 0 or have that sign already. */
static LLVMValueRef signed_as(const half *h, LLVMValueRef x, LLVMValueRef sign) {
  LLVMTypeRef words = ax_cg_int(h->cg, 32, h->lanes);
  LLVMValueRef bit = LLVMBuildAnd(h->b, LLVMBuildCast(h->b, LLVMBitCast, sign, words, ""),
                                  ax_cg_integer(h->cg, AX_U32, h->lanes, 0x80000000u), "");
  return LLVMBuildCast(h->b, LLVMBitCast, LLVMBuildOr(h->b, LLVMBuildCast(h->b, LLVMBitCast, x, words, ""), bit, ""), LLVMTypeOf(x),
                       "");
}

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
  if (!is_wide(h)) return subtract(h, y, ax_cg_intrinsic(h->cg, "llvm.floor", &type, 1, &y, 1));
  LLVMValueRef args[] = {y, i32(h, x86_floor), y, every_lane(h), i32(h, x86_current_rounding)};
  return ax_cg_intrinsic(h->cg, "llvm.x86.avx512.mask.reduce.ps.512", NULL, 0, args, 5);
}

/* 2^n as bits, of whole numbers for which it is normal. */
static LLVMValueRef power(const half *h, LLVMValueRef n) {
  LLVMValueRef biased = LLVMBuildAdd(h->b, n, ax_cg_integer(h->cg, AX_S32, h->lanes, 127), "");
  LLVMValueRef bits = LLVMBuildBinOp(h->b, LLVMShl, biased, ax_cg_integer(h->cg, AX_S32, h->lanes, 23), "");
  return LLVMBuildCast(h->b, LLVMBitCast, bits, ax_cg_register(h->cg, AX_F32, h->lanes), "");
}

/* p 2^floor(y), rounded once: in two steps where no instruction does it, of which the first is exact. p is about 1, y within the
   bounds of exp2. */
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
static LLVMValueRef at_least(const half *h, LLVMValueRef x, double least) {
  return LLVMBuildSelect(h->b, LLVMBuildFCmp(h->b, LLVMRealOLT, x, all(h, least), ""), all(h, least), x, "");
}
static LLVMValueRef at_most(const half *h, LLVMValueRef x, double most) {
  return LLVMBuildSelect(h->b, LLVMBuildFCmp(h->b, LLVMRealOGT, x, all(h, most), ""), all(h, most), x, "");
}
static LLVMValueRef within(const half *h, LLVMValueRef x, double least, double most) {
  return at_most(h, at_least(h, x, least), most);
}

/* For y from -140 on. Above 130 it is infinite. */
static LLVMValueRef exp2_above(const half *h, LLVMValueRef y) {
  static const double c[] = {1.0000025933692647, 0.6930038344324988, 0.24144275709800028, 0.052011460299324144,
                             0.013534168062382872}; /* 0 .. 1 */
  if (!is_wide(h)) y = at_most(h, y, 130);
  return scaled(h, polynomial(h, c, AX_COUNT(c), fraction(h, y)), y);
}

/* If the result is rounded to 0, the power is not computed: it would underflow in f32, and an instruction whose result underflows
   takes 40 to 60 ns on some processors. The least f16 is 2^-24, the least bf16 2^-133. */
static LLVMValueRef exp2_of(const half *h, LLVMValueRef y) {
  if (h->is_f16) return exp2_above(h, at_least(h, y, -26));
  LLVMValueRef none = LLVMBuildFCmp(h->b, LLVMRealOLT, y, all(h, -136), ""), zero = all(h, 0);
  return LLVMBuildSelect(h->b, none, zero, exp2_above(h, LLVMBuildSelect(h->b, none, zero, y, "")), "");
}

/* --- x = 2^k m, m from 3/4 to 3/2 --- */

/* For x = 0, k is -inf. For x < 0 and NaN, m is NaN. Where m is below 1, k is one more than the exponent of x. */
static LLVMValueRef split_wide(const half *h, LLVMValueRef x, LLVMValueRef *k) {
  enum { from_three_quarters = 3, negative_is_nan = 2 << 2 };
  LLVMValueRef current = i32(h, x86_current_rounding);
  LLVMValueRef exponent[] = {x, x, every_lane(h), current},
               mantissa[] = {x, i32(h, from_three_quarters | negative_is_nan), x, every_lane(h), current};
  LLVMValueRef below = ax_cg_intrinsic(h->cg, "llvm.x86.avx512.mask.getexp.ps.512", NULL, 0, exponent, 4),
               m = ax_cg_intrinsic(h->cg, "llvm.x86.avx512.mask.getmant.ps.512", NULL, 0, mantissa, 5);
  LLVMValueRef less = LLVMBuildFCmp(h->b, LLVMRealOLT, m, all(h, 1), "");
  *k = LLVMBuildSelect(h->b, less, LLVMBuildFAdd(h->b, below, all(h, 1), ""), below, "");
  return m;
}

/* The same with integer operations. x > 0 and finite; for other x the result is undefined. */
static LLVMValueRef split(const half *h, LLVMValueRef x, LLVMValueRef *k) {
  LLVMValueRef small = LLVMBuildFCmp(h->b, LLVMRealOLT, x, all(h, 0x1p-126), "");
  LLVMValueRef normal = LLVMBuildSelect(h->b, small, mul(h, x, all(h, 0x1p64)), x, "");
  LLVMTypeRef type = LLVMTypeOf(x), words = ax_cg_int(h->cg, 32, h->lanes);
  LLVMValueRef bits = LLVMBuildCast(h->b, LLVMBitCast, normal, words, "");
  LLVMValueRef moved = LLVMBuildAdd(h->b, bits, ax_cg_integer(h->cg, AX_S32, h->lanes, 0x400000), "");
  LLVMValueRef exponent = LLVMBuildAShr(h->b, moved, ax_cg_integer(h->cg, AX_S32, h->lanes, 23), "");
  LLVMValueRef bias = LLVMBuildSelect(h->b, small, all(h, 127 + 64), all(h, 127), "");
  *k = subtract(h, LLVMBuildCast(h->b, LLVMSIToFP, exponent, type, ""), bias);
  LLVMValueRef fraction = LLVMBuildAnd(h->b, moved, ax_cg_integer(h->cg, AX_S32, h->lanes, 0x7fffff), "");
  return LLVMBuildCast(h->b, LLVMBitCast, LLVMBuildAdd(h->b, fraction, ax_cg_integer(h->cg, AX_S32, h->lanes, 0x3f400000), ""),
                       type, "");
}

/* --- The functions --- */

static LLVMValueRef exp_of(const half *h, LLVMValueRef x) { return exp2_of(h, mul(h, x, all(h, 1.44269504))); }

/* 1 / (1 + e^-x), both times 2^-8, so that it does not overflow where the result is a bf16. Less than 2^-60 does not change the
   sum. */
static LLVMValueRef logistic_of(const half *h, LLVMValueRef x) {
  LLVMValueRef least = all(h, 0x1p-8), e = exp2_above(h, at_least(h, fused(h, x, all(h, -1.44269504), all(h, -8)), -60));
  return LLVMBuildFDiv(h->b, least, LLVMBuildFAdd(h->b, least, e, ""), "");
}

/* y / (y + 2) with y = e^2x - 1 = 2^n (2^r - 1) + (2^n - 1). This form keeps the digits of small x. */
static LLVMValueRef tanh_of(const half *h, LLVMValueRef x) {
  static const double f16[] = {0.6931471435061587, 0.24022351343132514, 0.05550500213429321, 0.009666245425790861,
                               0.0013333538732232045};
  static const double bf16[] = {0.6931368577804886, 0.24023252160542183, 0.05583728827013547,
                                0.009618110838395026}; /* (2^r - 1) / r, -1/2 .. 1/2 */
  LLVMTypeRef type = LLVMTypeOf(x);
  LLVMValueRef one = all(h, 1), t = mul(h, within(h, x, -9, 9), all(h, 2.88539008));
  LLVMValueRef n = ax_cg_intrinsic(h->cg, "llvm.rint", &type, 1, &t, 1), r = subtract(h, t, n);
  LLVMValueRef slope = h->is_f16 ? polynomial(h, f16, AX_COUNT(f16), r) : polynomial(h, bf16, AX_COUNT(bf16), r);
  LLVMValueRef scale = scaled(h, one, n), y = fused(h, scale, mul(h, r, slope), subtract(h, scale, one));
  return signed_as(h, LLVMBuildFDiv(h->b, y, LLVMBuildFAdd(h->b, y, all(h, 2), ""), ""), x);
}

/* x times a polynomial in x^2, up to where the result is rounded to 1. */
static LLVMValueRef erf_of(const half *h, LLVMValueRef x) {
  static const double f16[] = {1.1283751026259827,    -0.37603720198821244,    0.11249925519839188,
                               -0.026351446654812566, 0.004816358933710594,    -0.0006642278192542795,
                               6.407201265353402e-05, -3.7809377843074682e-06, 1.0117258302422858e-07}; /* 0 .. 2.6 */
  static const double bf16[] = {1.128353414775583,    -0.37564386506190717,   0.11127344366198802,   -0.024869383271129024,
                                0.003936391608694607, -0.0003854374342563905, 1.7121943382078013e-05}; /* 0 .. 2.2 */
  const double most = h->is_f16 ? 2.6 : 2.2;
  LLVMValueRef inside = within(h, x, -most, most), square = mul(h, inside, inside);
  return mul(h, inside, h->is_f16 ? polynomial(h, f16, AX_COUNT(f16), square) : polynomial(h, bf16, AX_COUNT(bf16), square));
}

/* f times log(1 + f) / f, 1 + f from 3/4 to 3/2. */
static LLVMValueRef log_of(const half *h, LLVMValueRef x) {
  static const double f16[] = {1.000000884166864,   -0.4999863076395227,  0.333144639616701,  -0.2506230472633327,
                               0.20675210141215247, -0.16807150424749276, 0.08290274471020394};
  static const double bf16[] = {0.9999974639841411,   -0.4998775956106833, 0.3335753385580707,
                                -0.25613382318936334, 0.20457803531800625, -0.10552980308002749};
  LLVMValueRef k, m = is_wide(h) ? split_wide(h, x, &k) : split(h, x, &k), f = subtract(h, m, all(h, 1));
  LLVMValueRef slope = h->is_f16 ? polynomial(h, f16, AX_COUNT(f16), f) : polynomial(h, bf16, AX_COUNT(bf16), f);
  LLVMValueRef result = fused(h, k, all(h, 0.693147182), mul(h, f, slope));
  if (is_wide(h)) return result;
  const double inf = (double)INFINITY;
  result = LLVMBuildSelect(h->b, LLVMBuildFCmp(h->b, LLVMRealOLT, x, all(h, inf), ""), result, x, "");
  result = LLVMBuildSelect(h->b, LLVMBuildFCmp(h->b, LLVMRealOLT, x, all(h, 0), ""), all(h, (double)NAN), result, "");
  return LLVMBuildSelect(h->b, LLVMBuildFCmp(h->b, LLVMRealOEQ, x, all(h, 0), ""), all(h, -inf), result, "");
}

/* --- exp of f32, operation by operation as f32_exp has it (math/vector_f32.h), but for the way of numbers that underflow, which
   all lanes take here: it costs as much as to look for them. Several registers go through it side by side, as the operations of one
   wait for each other --- */

static LLVMValueRef rounded(const half *h, LLVMValueRef x) {
  LLVMTypeRef type = LLVMTypeOf(x);
  return ax_cg_intrinsic(h->cg, "llvm.roundeven", &type, 1, &x, 1);
}

/* x, but 0 where the result is, and at most 90, from where on it is infinite. */
static LLVMValueRef exp_operand(const half *h, LLVMValueRef x, LLVMValueRef none) {
  LLVMValueRef most = all(h, 90);
  LLVMValueRef below = LLVMBuildSelect(h->b, LLVMBuildFCmp(h->b, LLVMRealOLT, most, x, ""), most, x, "");
  return LLVMBuildSelect(h->b, none, all(h, 0), below, "");
}

void ax_cg_exp(const ax_codegen *cg, LLVMValueRef *x, uint32_t count) {
  static const float c[] = {0.0083666835f, 0.0416675098f, 0.16666542f, 0.49999997f, 1, 1};
  const half h = {.cg = cg, .b = cg->builder, .lanes = cg->vector_bytes / 4};
  LLVMValueRef none[AX_CG_ABREAST], n[AX_CG_ABREAST], r[AX_CG_ABREAST], p[AX_CG_ABREAST];
  for (uint32_t i = 0; i < count; i++) none[i] = LLVMBuildFCmp(h.b, LLVMRealOLT, x[i], all(&h, (double)-103.98f), "");
  for (uint32_t i = 0; i < count; i++) r[i] = exp_operand(&h, x[i], none[i]);
  for (uint32_t i = 0; i < count; i++) n[i] = mul(&h, r[i], all(&h, (double)1.44269504f));
  for (uint32_t i = 0; i < count; i++) n[i] = rounded(&h, n[i]);
  for (uint32_t i = 0; i < count; i++) r[i] = fused(&h, n[i], all(&h, (double)-0.693359375f), r[i]); /* less n log(2), */
  for (uint32_t i = 0; i < count; i++) r[i] = fused(&h, n[i], all(&h, (double)0.000212194442f), r[i]); /* in two parts */
  for (uint32_t i = 0; i < count; i++) p[i] = all(&h, (double)0.00138638774f);
  for (uint32_t k = 0; k < AX_COUNT(c); k++)
    for (uint32_t i = 0; i < count; i++) p[i] = fused(&h, p[i], r[i], all(&h, (double)c[k]));
  for (uint32_t i = 0; i < count; i++) p[i] = scaled(&h, p[i], n[i]);
  for (uint32_t i = 0; i < count; i++) x[i] = LLVMBuildSelect(h.b, none[i], all(&h, 0), p[i], "");
}

typedef LLVMValueRef (*function)(const half *h, LLVMValueRef x);
static const function functions[AX_SCALAR_COUNT] = {
    [AX_SCALAR_EXP] = exp_of,   [AX_SCALAR_LOGISTIC] = logistic_of, [AX_SCALAR_LOG] = log_of,
    [AX_SCALAR_TANH] = tanh_of, [AX_SCALAR_ERF] = erf_of,
};

bool ax_cg_has_half(const ax_codegen *cg, ax_scalar op, ax_dtype dtype) {
  return ax_is_narrow_float(dtype) && cg->vector_bytes >= 32 && functions[op] != NULL;
}

LLVMValueRef ax_cg_half(const ax_codegen *cg, ax_scalar op, ax_dtype dtype, LLVMValueRef x) {
  const half h = {.cg = cg, .b = cg->builder, .lanes = cg->vector_bytes / 4, .is_f16 = dtype == AX_F16};
  return functions[op](&h, x);
}
