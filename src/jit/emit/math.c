/* Transcendental functions are calls on whole registers: scalars and short vectors are padded and long ones cut up, so that a
   result never depends on where in a vector it was computed. What is called is found by accuracy: our own functions
   (vector_math.h), which are within 4 units of the last place, or SLEEF's, which are within 1 and are slower; where a register has
   no function of ours, SLEEF's as well. Code names them by what they are (operation, dtype, size of the registers, whether the most
   precise is asked for), and ax_math_find has their addresses when the code is loaded: no address is part of it. */
#include <stdio.h>

#include "jit/emit/codegen.h"
#include "jit/math/vector_math.h"

#if defined(__x86_64__)
#define AX_MATH_VARIANTS(name)                                                            \
  {                                                                                       \
    {Sleef_##name##f4_u10sse2, Sleef_##name##f8_u10avx2, Sleef_##name##f16_u10avx512f}, { \
      Sleef_##name##d2_u10sse2, Sleef_##name##d4_u10avx2, Sleef_##name##d8_u10avx512f     \
    }                                                                                     \
  }
#define AX_MATH_DECLARE(name)                                                                              \
  void Sleef_##name##f4_u10sse2(void), Sleef_##name##f8_u10avx2(void), Sleef_##name##f16_u10avx512f(void); \
  void Sleef_##name##d2_u10sse2(void), Sleef_##name##d4_u10avx2(void), Sleef_##name##d8_u10avx512f(void);
#else
#define AX_MATH_VARIANTS(name)                                               \
  {                                                                          \
    {Sleef_##name##f4_u10, NULL, NULL}, { Sleef_##name##d2_u10, NULL, NULL } \
  }
#define AX_MATH_DECLARE(name) void Sleef_##name##f4_u10(void), Sleef_##name##d2_u10(void);
#endif

/* Where SLEEF has a function within 1.5 units instead of 1. */
#if defined(__x86_64__)
#define AX_MATH_VARIANTS_15(name)                                                         \
  {                                                                                       \
    {Sleef_##name##f4_u15sse2, Sleef_##name##f8_u15avx2, Sleef_##name##f16_u15avx512f}, { \
      Sleef_##name##d2_u15sse2, Sleef_##name##d4_u15avx2, Sleef_##name##d8_u15avx512f     \
    }                                                                                     \
  }
#define AX_MATH_DECLARE_15(name)                                                                           \
  void Sleef_##name##f4_u15sse2(void), Sleef_##name##f8_u15avx2(void), Sleef_##name##f16_u15avx512f(void); \
  void Sleef_##name##d2_u15sse2(void), Sleef_##name##d4_u15avx2(void), Sleef_##name##d8_u15avx512f(void);
#else
#define AX_MATH_VARIANTS_15(name)                                            \
  {                                                                          \
    {Sleef_##name##f4_u15, NULL, NULL}, { Sleef_##name##d2_u15, NULL, NULL } \
  }
#define AX_MATH_DECLARE_15(name) void Sleef_##name##f4_u15(void), Sleef_##name##d2_u15(void);
#endif

/* Only their addresses are used; the true types have vectors of widths this file is not compiled for. */
AX_MATH_DECLARE(exp)
AX_MATH_DECLARE(log)
AX_MATH_DECLARE(log1p)
AX_MATH_DECLARE(expm1)
AX_MATH_DECLARE(sin)
AX_MATH_DECLARE(cos)
AX_MATH_DECLARE(tanh)
AX_MATH_DECLARE(erf)
AX_MATH_DECLARE(pow)
AX_MATH_DECLARE(exp2)
AX_MATH_DECLARE(cbrt)
AX_MATH_DECLARE(tan)
AX_MATH_DECLARE(asin)
AX_MATH_DECLARE(acos)
AX_MATH_DECLARE(atan)
AX_MATH_DECLARE(sinh)
AX_MATH_DECLARE(cosh)
AX_MATH_DECLARE(asinh)
AX_MATH_DECLARE(acosh)
AX_MATH_DECLARE(atanh)
AX_MATH_DECLARE(atan2)
AX_MATH_DECLARE_15(erfc)

/* [f32, f64][16, 32, 64 byte registers] */
static const ax_object_function sleef[AX_SCALAR_COUNT][2][3] = {
    [AX_SCALAR_EXP] = AX_MATH_VARIANTS(exp),     [AX_SCALAR_LOG] = AX_MATH_VARIANTS(log),
    [AX_SCALAR_LOG1P] = AX_MATH_VARIANTS(log1p), [AX_SCALAR_EXPM1] = AX_MATH_VARIANTS(expm1),
    [AX_SCALAR_SIN] = AX_MATH_VARIANTS(sin),     [AX_SCALAR_COS] = AX_MATH_VARIANTS(cos),
    [AX_SCALAR_TANH] = AX_MATH_VARIANTS(tanh),   [AX_SCALAR_ERF] = AX_MATH_VARIANTS(erf),
    [AX_SCALAR_POW] = AX_MATH_VARIANTS(pow),
    [AX_SCALAR_EXP2] = AX_MATH_VARIANTS(exp2),
    [AX_SCALAR_CBRT] = AX_MATH_VARIANTS(cbrt),
    [AX_SCALAR_TAN] = AX_MATH_VARIANTS(tan),
    [AX_SCALAR_ASIN] = AX_MATH_VARIANTS(asin),
    [AX_SCALAR_ACOS] = AX_MATH_VARIANTS(acos),
    [AX_SCALAR_ATAN] = AX_MATH_VARIANTS(atan),
    [AX_SCALAR_SINH] = AX_MATH_VARIANTS(sinh),
    [AX_SCALAR_COSH] = AX_MATH_VARIANTS(cosh),
    [AX_SCALAR_ASINH] = AX_MATH_VARIANTS(asinh),
    [AX_SCALAR_ACOSH] = AX_MATH_VARIANTS(acosh),
    [AX_SCALAR_ATANH] = AX_MATH_VARIANTS(atanh),
    [AX_SCALAR_ATAN2] = AX_MATH_VARIANTS(atan2),
    [AX_SCALAR_ERFC] = AX_MATH_VARIANTS_15(erfc),
};

static ax_object_function own(ax_scalar op, bool is_f64, uint32_t size, bool precise) {
  static const ax_vector_math *const by_size[] = {&ax_vector_math_16, &ax_vector_math_32, &ax_vector_math_64};
  const ax_vector_math *math = by_size[size];
  if (precise) return is_f64 ? math->precise_f64[op] : NULL;
  return is_f64 ? math->f64[op] : math->f32[op];
}

#define AX_MATH_PREFIX "axle_math"

ax_object_function ax_math_find(const char *name) {
  unsigned op, is_f64, size, precise;
  char end;
  if (sscanf(name, AX_MATH_PREFIX "_%2u_%1u_%1u_%1u%c", &op, &is_f64, &size, &precise, &end) != 4) return NULL;
  if (op >= AX_SCALAR_COUNT || is_f64 > 1 || size > 2 || precise > 1) return NULL;
  ax_object_function found = own(op, is_f64, size, precise);
  return found != NULL ? found : sleef[op][is_f64][size];
}

static uint32_t register_size(const ax_codegen *cg) { return cg->vector_bytes == 64 ? 2 : cg->vector_bytes == 32 ? 1 : 0; }

bool ax_cg_has_own(const ax_codegen *cg, ax_scalar op, ax_dtype dtype) {
  return own(op, dtype == AX_F64, register_size(cg), false) != NULL;
}

/* One call on a whole register. SLEEF's functions and the C library's look at bits in places. So they get zeros where subnormal
   numbers are flushed. */
static LLVMValueRef call(const ax_codegen *cg, ax_scalar op, ax_dtype dtype, bool precise, LLVMValueRef *args, uint32_t width) {
  if (ax_cg_has_half(cg, op, dtype)) return ax_cg_half(cg, op, dtype, args[0]);
  if (cg->in_line && op == AX_SCALAR_EXP && dtype == AX_F32 && !precise) {
    LLVMValueRef x = args[0];
    ax_cg_exp(cg, &x, 1);
    return x;
  }
  uint32_t count = (uint32_t)ax_scalar_arity(op);
  const bool ours = !precise && ax_cg_has_own(cg, op, dtype);
  LLVMValueRef operands[2] = {NULL};
  for (uint32_t i = 0; i < count; i++) operands[i] = ours ? args[i] : ax_cg_flushed(cg, dtype, args[i], width);
  LLVMTypeRef vector = ax_cg_register(cg, dtype == AX_F64 ? AX_F64 : AX_F32, width), parameters[] = {vector, vector};
  LLVMTypeRef type = LLVMFunctionType(vector, parameters, count, false);
  char name[32];
  snprintf(name, sizeof name, AX_MATH_PREFIX "_%u_%u_%u_%u", (unsigned)op, (unsigned)(dtype == AX_F64), (unsigned)register_size(cg),
           (unsigned)precise);
  LLVMValueRef function = LLVMGetNamedFunction(cg->module, name);
  if (function == NULL) function = LLVMAddFunction(cg->module, name, type);
  return LLVMBuildCall2(cg->builder, type, function, operands, count, "");
}

static LLVMValueRef call_padded(const ax_codegen *cg, ax_scalar op, ax_dtype dtype, bool precise, LLVMValueRef *args,
                                uint32_t lanes, uint32_t width) {
  LLVMValueRef wide[2] = {NULL};
  for (int i = 0; i < ax_scalar_arity(op); i++)
    wide[i] = lanes == 1 ? ax_cg_broadcast(cg, args[i], width) : ax_cg_slice(cg, args[i], 0, width);
  LLVMValueRef result = call(cg, op, dtype, precise, wide, width);
  if (lanes > 1) return ax_cg_slice(cg, result, 0, lanes);
  return LLVMBuildExtractElement(cg->builder, result, LLVMConstInt(LLVMInt32TypeInContext(cg->context), 0, false), "");
}

/* Powers of f32 are computed in f64, in two halves of a register: of one number, as loops carry it, more than processors do at once
   that halve registers of 64 bytes again. Those of 32 bytes give the same bits. */
static LLVMValueRef call_of_few(const ax_codegen *cg, ax_scalar op, ax_dtype dtype, bool precise, LLVMValueRef *args,
                                uint32_t lanes, uint32_t width) {
  ax_codegen narrower = *cg;
  if (cg->vector_bytes < 64 || 2 * lanes > width || op != AX_SCALAR_POW || dtype == AX_F64)
    return call_padded(cg, op, dtype, precise, args, lanes, width);
  narrower.vector_bytes = 32;
  return call_padded(&narrower, op, dtype, precise, args, lanes, width / 2);
}

LLVMValueRef ax_cg_math(const ax_codegen *cg, ax_scalar op, ax_dtype dtype, bool precise, LLVMValueRef *args, uint32_t lanes) {
  uint32_t width = cg->vector_bytes / (dtype == AX_F64 ? 8 : 4), half = lanes / 2;
  if (lanes == width) return call(cg, op, dtype, precise, args, width);
  if (lanes < width) return call_of_few(cg, op, dtype, precise, args, lanes, width);
  LLVMValueRef low[2] = {NULL}, high[2] = {NULL};
  for (int i = 0; i < ax_scalar_arity(op); i++) {
    low[i] = ax_cg_slice(cg, args[i], 0, half);
    high[i] = ax_cg_slice(cg, args[i], half, half);
  }
  LLVMValueRef first = ax_cg_math(cg, op, dtype, precise, low, half);
  return ax_cg_concat(cg, first, ax_cg_math(cg, op, dtype, precise, high, half), half);
}

/* --- A number to the power y --- */

typedef struct doubles { /* f64 in so many lanes */
  const ax_codegen *cg;
  LLVMBuilderRef b;
  uint32_t lanes;
} doubles;

static LLVMValueRef all(const doubles *w, double value) { return ax_cg_number(w->cg, AX_F64, w->lanes, value); }
static LLVMValueRef sum(const doubles *w, LLVMValueRef x, LLVMValueRef y) { return LLVMBuildFAdd(w->b, x, y, ""); }
static LLVMValueRef difference(const doubles *w, LLVMValueRef x, LLVMValueRef y) {
  return LLVMBuildBinOp(w->b, LLVMFSub, x, y, "");
}
static LLVMValueRef product(const doubles *w, LLVMValueRef x, LLVMValueRef y) { return LLVMBuildFMul(w->b, x, y, ""); }

/* x y + z */
static LLVMValueRef fused(const doubles *w, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z) {
  LLVMTypeRef type = LLVMTypeOf(x);
  LLVMValueRef args[] = {x, y, z};
  return ax_cg_intrinsic(w->cg, "llvm.fma", &type, 1, args, 3);
}

/* c[0] + c[1] x */
static LLVMValueRef pair(const doubles *w, LLVMValueRef x, const double *c) { return fused(w, x, all(w, c[1]), all(w, c[0])); }

/* f64_seven of jit/math/vector_f32.h */
static LLVMValueRef seven_terms(const doubles *w, const double *c, LLVMValueRef x) {
  LLVMValueRef x2 = product(w, x, x), x4 = product(w, x2, x2), four = fused(w, x2, pair(w, x, c + 2), pair(w, x, c));
  return fused(w, x4, fused(w, x2, all(w, c[6]), pair(w, x, c + 4)), four);
}

static LLVMValueRef bounded(const doubles *w, LLVMRealPredicate keeps, LLVMValueRef x, double bound) {
  return LLVMBuildSelect(w->b, LLVMBuildFCmp(w->b, keeps, x, all(w, bound), ""), x, all(w, bound), "");
}

/* f64_exp2_short of jit/math/vector_f32.h */
static LLVMValueRef exp2_short(const doubles *w, LLVMValueRef t) {
  LLVMTypeRef words = ax_cg_int(w->cg, 64, w->lanes);
  LLVMValueRef shift = all(w, 6755399441055744.0);
  t = bounded(w, LLVMRealOLT, bounded(w, LLVMRealOGT, t, -200), 200);
  LLVMValueRef moved = sum(w, t, shift), power = seven_terms(w, ax_exp2_terms, difference(w, t, difference(w, moved, shift)));
  LLVMValueRef exponent =
      LLVMBuildShl(w->b, LLVMBuildCast(w->b, LLVMBitCast, moved, words, ""), ax_cg_integer(w->cg, AX_U64, w->lanes, 52), "");
  power = LLVMBuildAdd(w->b, LLVMBuildCast(w->b, LLVMBitCast, power, words, ""), exponent, "");
  return LLVMBuildCast(w->b, LLVMBitCast, power, LLVMTypeOf(t), "");
}

bool ax_cg_raises(const ax_codegen *cg, double base) {
  return ax_cg_has_own(cg, AX_SCALAR_POW, AX_F32) && cg->vector_bytes > 16 && base >= 0x1p-126 && base <= 0x1.fffffep127 &&
         base != 1;
}

LLVMValueRef ax_cg_raise(const ax_codegen *cg, double base, LLVMValueRef y, uint32_t lanes) {
  const doubles w = {cg, cg->builder, lanes};
  LLVMValueRef exponent = LLVMBuildCast(w.b, LLVMFPExt, y, ax_cg_register(cg, AX_F64, lanes), "");
  LLVMValueRef power = exp2_short(&w, product(&w, all(&w, ax_vector_math_32.log2_of_f32((float)base)), exponent));
  power = LLVMBuildCast(w.b, LLVMFPTrunc, power, LLVMTypeOf(y), "");
  return LLVMBuildSelect(w.b, LLVMBuildFCmp(w.b, LLVMRealUNO, y, y, ""), y, power, "");
}
