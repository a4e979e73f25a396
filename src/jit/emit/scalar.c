/* One scalar operation to IR. A table gives what each means on floats, signed and unsigned integers and bool; what takes more
   than one instruction is a function of its own. No fast-math and no contraction anywhere: results equal those of the
   reference evaluator, which rounds after every operation. */
#include <math.h>

#include "jit/emit/codegen.h"
#include "jit/nest/schedule.h"

typedef struct op { /* what an emitter sees */
  const ax_codegen *cg;
  const ax_expr *expr;
  ax_dtype dtype; /* of the operands */
  ax_dtype_kind kind;
  LLVMValueRef *args;
  LLVMTypeRef type; /* of the operands' registers */
  uint32_t lanes;
  bool widened; /* operands of f16 are f32 here, where registers hold them as f16 */
} op;

typedef LLVMValueRef (*emitter)(const op *o);

static LLVMValueRef number(const op *o, double value) {
  return ax_cg_number(o->cg, o->widened ? AX_F32 : o->dtype, o->lanes, value);
}
static LLVMValueRef zero(const op *o) { return LLVMConstNull(o->type); }

static LLVMValueRef unary(const op *o, const char *name, LLVMValueRef a) {
  LLVMTypeRef type = o->type;
  return ax_cg_intrinsic(o->cg, name, &type, 1, &a, 1);
}

/* The processor's comparison reads a subnormal number as zero if it flushes them; both zeros stay as they are. */
LLVMValueRef ax_cg_flushed(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef value, uint32_t lanes) {
  LLVMBuilderRef b = cg->builder;
  if (dtype == AX_F16) return value; /* never flushed */
  const ax_dtype words = dtype == AX_F64 ? AX_S64 : AX_S32;
  LLVMTypeRef type = LLVMTypeOf(value), word = ax_cg_register(cg, words, lanes);
  LLVMValueRef sign = ax_cg_integer(cg, words, lanes, dtype == AX_F64 ? 1ull << 63 : 1ull << 31);
  LLVMValueRef none = LLVMBuildAnd(b, LLVMBuildCast(b, LLVMBitCast, value, word, ""), sign, "");
  LLVMValueRef is_none = LLVMBuildFCmp(b, LLVMRealOEQ, value, LLVMConstNull(type), "");
  return LLVMBuildSelect(b, is_none, LLVMBuildCast(b, LLVMBitCast, none, type, ""), value, "");
}

static LLVMValueRef flushed(const op *o, LLVMValueRef x) { return ax_cg_flushed(o->cg, o->dtype, x, o->lanes); }

/* --- Arithmetic --- */

/* A constant that LLVM does not know. Of constants alone LLVM would compute the result itself, with subnormal numbers kept. */
static LLVMValueRef hidden(const op *o, LLVMValueRef x) {
  LLVMValueRef memory = ax_cg_stack(o->cg, o->type);
  LLVMBuildStore(o->cg->builder, x, memory);
  LLVMValueRef loaded = LLVMBuildLoad2(o->cg->builder, o->type, memory, "");
  LLVMSetVolatile(loaded, true);
  return loaded;
}

static void hide_constants(const op *o) {
  bool all = o->kind == AX_KIND_FLOAT;
  for (int i = 0; i < ax_scalar_arity(o->expr->op); i++) all = all && LLVMIsConstant(o->args[i]);
  if (all) o->args[0] = hidden(o, o->args[0]);
}

static LLVMValueRef binary(const op *o, LLVMOpcode on_float, LLVMOpcode on_int, LLVMOpcode on_bool) {
  LLVMOpcode code = o->kind == AX_KIND_FLOAT ? on_float : o->kind == AX_KIND_BOOL ? on_bool : on_int;
  return LLVMBuildBinOp(o->cg->builder, code, o->args[0], o->args[1], "");
}

static LLVMValueRef emit_add(const op *o) { return binary(o, LLVMFAdd, LLVMAdd, LLVMOr); }
static LLVMValueRef emit_sub(const op *o) { return binary(o, LLVMFSub, LLVMSub, LLVMXor); }
static LLVMValueRef emit_mul(const op *o) { return binary(o, LLVMFMul, LLVMMul, LLVMAnd); }
static LLVMValueRef emit_and(const op *o) { return LLVMBuildAnd(o->cg->builder, o->args[0], o->args[1], ""); }
static LLVMValueRef emit_or(const op *o) { return LLVMBuildOr(o->cg->builder, o->args[0], o->args[1], ""); }
static LLVMValueRef emit_not(const op *o) { return LLVMBuildNot(o->cg->builder, o->args[0], ""); }

static LLVMValueRef emit_div(const op *o) {
  if (o->kind == AX_KIND_FLOAT) return LLVMBuildFDiv(o->cg->builder, o->args[0], o->args[1], "");
  if (o->kind == AX_KIND_BOOL) return emit_or(o);
  return ax_cg_integer_div(o->cg, o->dtype, o->args[0], o->args[1], false, o->lanes);
}

static ax_dtype computed(const op *o) { return o->dtype == AX_F64 ? AX_F64 : AX_F32; }

/* Of one number whose size is below the divisor's, it is that number: as a phase is most of the time, to which a little is added in each
   step of a loop. A branch, which the processor foresees, so that the next step waits for no division. Subnormal numbers, which may count
   as 0, take the other way. */
static LLVMValueRef rem_of_one(const op *o) {
  LLVMBuilderRef b = o->cg->builder;
  const double least = computed(o) == AX_F64 ? 0x1p-1022 : 0x1p-126;
  LLVMValueRef x = unary(o, "llvm.fabs", o->args[0]), y = unary(o, "llvm.fabs", o->args[1]);
  LLVMValueRef normal = LLVMBuildFCmp(b, LLVMRealOGE, x, number(o, least), ""), below = LLVMBuildFCmp(b, LLVMRealOLT, x, y, "");
  LLVMBasicBlockRef from[] = {LLVMGetInsertBlock(b), LLVMAppendBasicBlockInContext(o->cg->context, o->cg->function, "divided")};
  LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(o->cg->context, o->cg->function, "rest");
  LLVMBuildCondBr(b, LLVMBuildAnd(b, normal, below, ""), done, from[1]);
  LLVMPositionBuilderAtEnd(b, from[1]);
  LLVMValueRef rests[] = {o->args[0], ax_cg_math(o->cg, AX_SCALAR_REM, computed(o), false, o->args, 1)};
  LLVMBuildBr(b, done);
  LLVMPositionBuilderAtEnd(b, done);
  LLVMValueRef rest = LLVMBuildPhi(b, LLVMTypeOf(x), "");
  LLVMAddIncoming(rest, rests, from, 2);
  return rest;
}

/* The remainder of floats is exact, and so is that of bf16 and f16, computed as f32. Where registers have no function for it, it is the C
   library's fmod, lane by lane. */
static LLVMValueRef emit_rem(const op *o) {
  LLVMBuilderRef b = o->cg->builder;
  if (o->kind == AX_KIND_FLOAT && ax_cg_has_own(o->cg, AX_SCALAR_REM, computed(o)))
    return o->lanes == 1 ? rem_of_one(o) : ax_cg_math(o->cg, AX_SCALAR_REM, computed(o), false, o->args, o->lanes);
  if (o->kind == AX_KIND_FLOAT) {
    LLVMValueRef x = flushed(o, o->args[0]), y = flushed(o, o->args[1]);
    return flushed(o, LLVMBuildFRem(b, x, y, ""));
  }
  LLVMValueRef quotient, rest;
  ax_cg_integer_divide(o->cg, o->dtype, o->args[0], o->args[1], false, o->lanes, &quotient, &rest);
  return rest;
}

/* llvm.maximum: NaN if either is, and -0 is less than +0. */
static LLVMValueRef extreme(const op *o, const char *on_float, const char *on_signed, const char *on_unsigned) {
  const char *name = o->kind == AX_KIND_FLOAT ? on_float : o->kind == AX_KIND_SIGNED ? on_signed : on_unsigned;
  LLVMTypeRef type = o->type;
  return ax_cg_intrinsic(o->cg, name, &type, 1, o->args, 2);
}

/* The same of registers that hold f16, for which LLVM has a longer way. Equal operands differ at most in the sign of 0. A sum with
   NaN is the operand that is NaN. */
static LLVMValueRef half_extreme(const op *o, LLVMRealPredicate taken, LLVMOpcode of_zeros) {
  LLVMBuilderRef b = o->cg->builder;
  LLVMValueRef x = o->args[0], y = o->args[1];
  LLVMTypeRef bits = ax_cg_int(o->cg, 16, o->lanes);
  LLVMValueRef one = LLVMBuildSelect(b, LLVMBuildFCmp(b, taken, x, y, ""), x, y, "");
  LLVMValueRef same = LLVMBuildCast(b, LLVMBitCast, x, bits, "");
  same = LLVMBuildBinOp(b, of_zeros, same, LLVMBuildCast(b, LLVMBitCast, y, bits, ""), "");
  one = LLVMBuildSelect(b, LLVMBuildFCmp(b, LLVMRealOEQ, x, y, ""), LLVMBuildCast(b, LLVMBitCast, same, o->type, ""), one, "");
  return LLVMBuildSelect(b, LLVMBuildFCmp(b, LLVMRealUNO, x, y, ""), LLVMBuildFAdd(b, x, y, ""), one, "");
}

static bool holds_f16(const op *o) { return o->cg->f16 && o->dtype == AX_F16 && !o->widened; }

/* NULL: there is no instruction for it. */
static LLVMValueRef by_instruction(const op *o, bool larger) {
  return o->kind == AX_KIND_FLOAT ? ax_cg_extreme(o->cg, computed(o), larger, o->args[0], o->args[1], o->lanes) : NULL;
}

static LLVMValueRef emit_max(const op *o) {
  if (holds_f16(o)) return half_extreme(o, LLVMRealOGT, LLVMAnd);
  const LLVMValueRef larger = by_instruction(o, true);
  return larger != NULL ? larger : extreme(o, "llvm.maximum", "llvm.smax", "llvm.umax");
}
static LLVMValueRef emit_min(const op *o) {
  if (holds_f16(o)) return half_extreme(o, LLVMRealOLT, LLVMOr);
  const LLVMValueRef smaller = by_instruction(o, false);
  return smaller != NULL ? smaller : extreme(o, "llvm.minimum", "llvm.smin", "llvm.umin");
}

static LLVMValueRef emit_pow(const op *o) {
  if (o->kind == AX_KIND_FLOAT) {
    LLVMValueRef args[] = {o->args[0], o->args[1]};
    const bool ours = o->cg->vector_bytes > 16 && ax_cg_has_own(o->cg, AX_SCALAR_POW, computed(o));
    for (int i = 0; i < 2 && !ours; i++) args[i] = flushed(o, args[i]); /* SLEEF's reads bits in places */
    LLVMValueRef power = ax_cg_math(o->cg, AX_SCALAR_POW, computed(o), false, args, o->lanes);
    return ours ? power : flushed(o, power);
  }
  return ax_cg_integer_pow(o->cg, o->dtype, o->args[0], o->args[1], o->lanes);
}

static LLVMValueRef emit_neg(const op *o) {
  if (o->kind == AX_KIND_FLOAT) return LLVMBuildFNeg(o->cg->builder, o->args[0], "");
  return LLVMBuildNeg(o->cg->builder, o->args[0], "");
}

static LLVMValueRef emit_abs(const op *o) {
  if (o->kind == AX_KIND_FLOAT) return unary(o, "llvm.fabs", o->args[0]);
  if (o->kind != AX_KIND_SIGNED) return o->args[0];
  LLVMValueRef with_flag[] = {o->args[0], LLVMConstInt(LLVMInt1TypeInContext(o->cg->context), 0, false)};
  LLVMTypeRef type = o->type;
  return ax_cg_intrinsic(o->cg, "llvm.abs", &type, 1, with_flag, 2);
}

static LLVMValueRef emit_sign(const op *o) {
  LLVMBuilderRef b = o->cg->builder;
  LLVMValueRef x = o->args[0];
  if (o->kind == AX_KIND_FLOAT) { /* NaN and both zeros are their own sign */
    LLVMValueRef args[] = {number(o, 1), x}, itself = LLVMBuildFAdd(b, x, x, ""); /* of zeros and NaN; flushed */
    LLVMTypeRef type = o->type;
    LLVMValueRef is_some = LLVMBuildFCmp(b, LLVMRealONE, x, zero(o), "");
    return LLVMBuildSelect(b, is_some, ax_cg_intrinsic(o->cg, "llvm.copysign", &type, 1, args, 2), itself, "");
  }
  LLVMValueRef one = ax_cg_integer(o->cg, o->dtype, o->lanes, 1);
  LLVMValueRef nonzero = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntNE, x, zero(o), ""), one, zero(o), "");
  if (o->kind != AX_KIND_SIGNED) return nonzero;
  return LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, x, zero(o), ""), LLVMConstAllOnes(o->type), nonzero, "");
}

static LLVMValueRef emit_floor(const op *o) { return unary(o, "llvm.floor", o->args[0]); }
static LLVMValueRef emit_ceil(const op *o) { return unary(o, "llvm.ceil", o->args[0]); }
static LLVMValueRef emit_round_nearest_even(const op *o) { return unary(o, "llvm.roundeven", o->args[0]); }

/* --- Functions --- */

/* More accurate than by default: f32 in f64 and rounded, f64 by other functions. */
static bool precise(const op *o) { return ax_scalar_precise(o->expr->op, o->dtype, o->expr->imm); }
static LLVMValueRef in_f64(const op *o, emitter emit) {
  LLVMTypeRef f64 = ax_cg_register(o->cg, AX_F64, o->lanes);
  LLVMValueRef x = LLVMBuildCast(o->cg->builder, LLVMFPExt, o->args[0], f64, "");
  const ax_expr wide = {.op = o->expr->op, .dtype = AX_F64};
  const op inner = {.cg = o->cg, .expr = &wide, .dtype = AX_F64, .kind = o->kind, .args = &x, .type = f64, .lanes = o->lanes};
  return LLVMBuildCast(o->cg->builder, LLVMFPTrunc, emit(&inner), o->type, "");
}

static LLVMValueRef emit_math(const op *o) {
  if (precise(o) && o->dtype == AX_F32) return in_f64(o, emit_math);
  return ax_cg_math(o->cg, o->expr->op, o->dtype, precise(o), o->args, o->lanes);
}

/* The tanh that is more precise is off by a little more than 1 unit of the last place where the result is the operand. */
static LLVMValueRef emit_tanh(const op *o) {
  LLVMValueRef result = emit_math(o), x = flushed(o, o->args[0]);
  if (!precise(o) || o->dtype != AX_F64) return result;
  LLVMValueRef tiny = LLVMBuildFCmp(o->cg->builder, LLVMRealOLT, unary(o, "llvm.fabs", x), number(o, 0x1p-28), "");
  return LLVMBuildSelect(o->cg->builder, tiny, x, result, "");
}

/* SLEEF's log1p loses subnormals and calls the largest numbers infinite: those are scaled down by 2^64 before, and up after. */
static LLVMValueRef emit_log1p(const op *o) {
  if (precise(o) && o->dtype == AX_F32) return in_f64(o, emit_log1p);
  if (!precise(o) && ax_cg_has_own(o->cg, AX_SCALAR_LOG1P, computed(o))) return emit_math(o);
  LLVMBuilderRef b = o->cg->builder;
  LLVMValueRef x = flushed(o, o->args[0]), size = unary(o, "llvm.fabs", x);
  LLVMValueRef large = LLVMBuildFCmp(b, LLVMRealOGT, x, number(o, o->dtype == AX_F64 ? 1e306 : 1e37), "");
  LLVMValueRef tiny = LLVMBuildFCmp(b, LLVMRealOLT, size, number(o, 0x1p-60), "");
  LLVMValueRef scaled = LLVMBuildSelect(b, large, LLVMBuildFMul(b, x, number(o, 0x1p-64), ""), x, "");
  LLVMValueRef log = ax_cg_math(o->cg, AX_SCALAR_LOG1P, computed(o), precise(o), &scaled, o->lanes);
  LLVMValueRef back = LLVMBuildFAdd(b, log, number(o, 44.361419555836499802702855773323), ""); /* 64 log 2 */
  return LLVMBuildSelect(b, tiny, x, LLVMBuildSelect(b, large, back, log, ""), "");
}

/* 1 / (1 + exp(-x)), as e / (1 + e) with e = exp(x) below 0, where exp(-x) would overflow. */
static LLVMValueRef emit_logistic(const op *o) {
  if (precise(o) && o->dtype == AX_F32) return in_f64(o, emit_logistic);
  if (ax_cg_has_own(o->cg, AX_SCALAR_LOGISTIC, computed(o))) return emit_math(o);
  LLVMBuilderRef b = o->cg->builder;
  LLVMValueRef minus = LLVMBuildFNeg(b, unary(o, "llvm.fabs", o->args[0]), ""), one = number(o, 1);
  LLVMValueRef e = ax_cg_math(o->cg, AX_SCALAR_EXP, computed(o), false, &minus, o->lanes);
  LLVMValueRef below = LLVMBuildFCmp(b, LLVMRealOLT, o->args[0], zero(o), "");
  return LLVMBuildFDiv(b, LLVMBuildSelect(b, below, e, one, ""), LLVMBuildFAdd(b, one, e, ""), "");
}

static LLVMValueRef emit_sqrt(const op *o) { return unary(o, "llvm.sqrt", o->args[0]); }
static LLVMValueRef emit_rsqrt(const op *o) {
  if (precise(o) && o->dtype == AX_F32) return in_f64(o, emit_rsqrt);
  return LLVMBuildFDiv(o->cg->builder, number(o, 1), emit_sqrt(o), "");
}

/* A function that is ours at every width (jit/math), and as accurate as there is. */
static LLVMValueRef emit_special(const op *o) {
  return ax_cg_math(o->cg, o->expr->op, computed(o), false, o->args, o->lanes);
}

/* Whether the function, one of those that are SLEEF's in registers of 16 bytes, is our own (jit/math/vector_angles_f32.h): it takes
   and gives all numbers as they have to be. */
static bool is_whole(const op *o) {
  return o->cg->vector_bytes > 16 && !precise(o) && ax_cg_has_own(o->cg, o->expr->op, computed(o));
}

/* A function that is SLEEF's where it is not ours. Its results may be made by operations on bits. */
static LLVMValueRef emit_sleef(const op *o) {
  if (precise(o) && o->dtype == AX_F32) return in_f64(o, emit_sleef);
  return flushed(o, ax_cg_math(o->cg, o->expr->op, computed(o), precise(o), o->args, o->lanes));
}

static LLVMValueRef emit_other(const op *o) { return is_whole(o) ? emit_math(o) : emit_sleef(o); }

/* Whether x is so small that its square does not count beside 1. */
static LLVMValueRef is_tiny(const op *o, LLVMValueRef x) {
  const double limit = o->dtype == AX_F64 ? 0x1p-28 : 0x1p-13;
  return LLVMBuildFCmp(o->cg->builder, LLVMRealOLT, unary(o, "llvm.fabs", x), number(o, limit), "");
}

/* The same where small operands are their own results, among them subnormal ones, which SLEEF's asinh loses. */
static LLVMValueRef emit_odd(const op *o) {
  if (is_whole(o)) return emit_math(o);
  if (precise(o) && o->dtype == AX_F32) return in_f64(o, emit_odd);
  LLVMValueRef result = emit_sleef(o), x = flushed(o, o->args[0]);
  return LLVMBuildSelect(o->cg->builder, is_tiny(o, x), x, result, "");
}

/* Where subnormal numbers are flushed, SLEEF's sin and erf lose digits of operands near the smallest ones. sin(x) is x there, and
   erf(x) is 2 x / sqrt(pi). */
static LLVMValueRef emit_sin(const op *o) {
  const bool own = ax_cg_has_own(o->cg, AX_SCALAR_SIN, computed(o)) && !precise(o);
  return own ? emit_math(o) : emit_odd(o);
}

static LLVMValueRef emit_erf(const op *o) {
  if (precise(o) && o->dtype == AX_F32) return in_f64(o, emit_erf);
  LLVMValueRef result = emit_math(o);
  if (!precise(o) && ax_cg_has_own(o->cg, AX_SCALAR_ERF, computed(o))) return result;
  LLVMValueRef x = flushed(o, o->args[0]), slope = LLVMBuildFMul(o->cg->builder, x, number(o, 1.1283791670955126), "");
  return LLVMBuildSelect(o->cg->builder, is_tiny(o, x), slope, result, "");
}

/* f32 in f64 where it is not ours: where subnormal numbers are flushed, SLEEF's erfc of f32 loses digits of small results. */
static LLVMValueRef emit_erfc(const op *o) {
  const bool own = ax_cg_has_own(o->cg, AX_SCALAR_ERFC, computed(o)) && !precise(o);
  return computed(o) == AX_F32 && !own ? in_f64(o, emit_sleef) : emit_sleef(o);
}

/* SLEEF's atan2 divides by the operands' size, which must not be near the ends of the range; and where the result is as good as
   y / x, it is that. */
static LLVMValueRef emit_atan2(const op *o) {
  if (is_whole(o)) return emit_math(o);
  LLVMBuilderRef b = o->cg->builder;
  LLVMTypeRef f64 = ax_cg_register(o->cg, AX_F64, o->lanes);
  LLVMValueRef args[2], scaled[2], ends[2];
  const ax_expr wide = {.op = AX_SCALAR_ATAN2, .dtype = AX_F64};
  const op w = {.cg = o->cg, .expr = &wide, .dtype = AX_F64, .kind = o->kind, .args = args, .type = f64, .lanes = o->lanes};
  for (int i = 0; i < 2; i++) args[i] = o->dtype == AX_F64 ? flushed(o, o->args[i]) : LLVMBuildCast(b, LLVMFPExt, o->args[i], f64, "");
  LLVMValueRef quotient = LLVMBuildFDiv(b, args[0], args[1], "");
  LLVMValueRef sizes[] = {unary(&w, "llvm.fabs", args[0]), unary(&w, "llvm.fabs", args[1])};
  for (int i = 0; i < 2; i++) /* the larger size is above 2^400; below 2^-400 */
    ends[i] = LLVMBuildFCmp(b, i == 0 ? LLVMRealOGT : LLVMRealOLE, sizes[0], number(&w, i == 0 ? 0x1p400 : 0x1p-400), "");
  ends[0] = LLVMBuildOr(b, ends[0], LLVMBuildFCmp(b, LLVMRealOGT, sizes[1], number(&w, 0x1p400), ""), "");
  ends[1] = LLVMBuildAnd(b, ends[1], LLVMBuildFCmp(b, LLVMRealOLE, sizes[1], number(&w, 0x1p-400), ""), "");
  LLVMValueRef scale = LLVMBuildSelect(b, ends[0], number(&w, 0x1p-600), LLVMBuildSelect(b, ends[1], number(&w, 0x1p600), number(&w, 1), ""), "");
  for (int i = 0; i < 2; i++) scaled[i] = LLVMBuildFMul(b, args[i], scale, "");
  LLVMValueRef angle = ax_cg_math(o->cg, AX_SCALAR_ATAN2, AX_F64, false, scaled, o->lanes);
  LLVMValueRef small = LLVMBuildFCmp(b, LLVMRealOLT, unary(&w, "llvm.fabs", quotient), number(&w, 0x1p-28), "");
  small = LLVMBuildAnd(b, small, LLVMBuildFCmp(b, LLVMRealOGT, args[1], LLVMConstNull(f64), ""), "");
  LLVMValueRef result = LLVMBuildSelect(b, small, quotient, angle, "");
  return o->dtype == AX_F64 ? result : LLVMBuildCast(b, LLVMFPTrunc, result, o->type, "");
}

/* `large` where |x| is above the limit, with the sign of x if the function is odd. */
static LLVMValueRef where_large(const op *o, double limit, LLVMValueRef large, bool is_odd, LLVMValueRef otherwise) {
  LLVMValueRef args[] = {large, o->args[0]}, size = unary(o, "llvm.fabs", o->args[0]);
  LLVMTypeRef type = o->type;
  if (is_odd) large = ax_cg_intrinsic(o->cg, "llvm.copysign", &type, 1, args, 2);
  LLVMValueRef above = LLVMBuildFCmp(o->cg->builder, LLVMRealOGT, size, number(o, limit), "");
  return LLVMBuildSelect(o->cg->builder, above, large, otherwise, "");
}

/* SLEEF's sinh and cosh are infinite a little too early. There they are e^|x| / 2, as e^(|x| - c) e^c / 2, whose difference is
   exact. */
static LLVMValueRef emit_hyperbolic(const op *o) {
  if (precise(o) && o->dtype == AX_F32) return in_f64(o, emit_hyperbolic);
  if (ax_cg_has_own(o->cg, o->expr->op, computed(o))) return emit_sleef(o);
  const bool is_f64 = o->dtype == AX_F64;
  const double c = is_f64 ? 512 : 64;
  LLVMBuilderRef b = o->cg->builder;
  LLVMValueRef rest = LLVMBuildFAdd(b, unary(o, "llvm.fabs", o->args[0]), number(o, -c), "");
  LLVMValueRef large = LLVMBuildFMul(b, ax_cg_math(o->cg, AX_SCALAR_EXP, computed(o), false, &rest, o->lanes), number(o, exp(c) / 2), "");
  const bool is_odd = o->expr->op == AX_SCALAR_SINH;
  return where_large(o, is_f64 ? 709 : 88, large, is_odd, is_odd ? emit_odd(o) : emit_sleef(o));
}

/* SLEEF's asinh and acosh are infinite where x^2 is. There they are log(2 |x|). */
static LLVMValueRef emit_inverse_hyperbolic(const op *o) {
  if (precise(o) && o->dtype == AX_F32) return in_f64(o, emit_inverse_hyperbolic);
  if (ax_cg_has_own(o->cg, o->expr->op, computed(o))) return emit_sleef(o);
  LLVMValueRef size = unary(o, "llvm.fabs", o->args[0]);
  LLVMValueRef log = ax_cg_math(o->cg, AX_SCALAR_LOG, computed(o), false, &size, o->lanes);
  LLVMValueRef large = LLVMBuildFAdd(o->cg->builder, log, number(o, 0.69314718055994530942), "");
  const bool is_odd = o->expr->op == AX_SCALAR_ASINH;
  if (!is_odd) { /* acosh of numbers below 1 is NaN */
    LLVMValueRef positive = LLVMBuildFCmp(o->cg->builder, LLVMRealOGT, o->args[0], zero(o), "");
    large = LLVMBuildSelect(o->cg->builder, positive, large, number(o, NAN), "");
  }
  return where_large(o, o->dtype == AX_F64 ? 0x1p500 : 0x1p60, large, is_odd, is_odd ? emit_odd(o) : emit_sleef(o));
}

static LLVMValueRef multiply(const op *o, LLVMValueRef a, LLVMValueRef b) {
  return o->kind == AX_KIND_FLOAT ? LLVMBuildFMul(o->cg->builder, a, b, "") : LLVMBuildMul(o->cg->builder, a, b, "");
}

/* Squares, low bit of the exponent first; the reciprocal of it when the exponent is negative. */
static LLVMValueRef emit_integer_pow(const op *o) {
  int64_t exponent = o->expr->imm;
  uint64_t left = exponent < 0 ? 0 - (uint64_t)exponent : (uint64_t)exponent;
  bool is_float = o->kind == AX_KIND_FLOAT;
  LLVMValueRef one = is_float ? number(o, 1) : ax_cg_integer(o->cg, o->dtype, o->lanes, 1);
  LLVMValueRef square = o->args[0], result = NULL;
  for (; left > 0; left >>= 1) {
    if (left & 1) result = result == NULL ? square : multiply(o, result, square);
    if (left > 1) square = multiply(o, square, square);
  }
  if (result == NULL) return one;
  if (exponent == 1 && is_float) return flushed(o, result);
  if (exponent > 0) return result;
  return is_float ? LLVMBuildFDiv(o->cg->builder, one, result, "")
                  : ax_cg_integer_div(o->cg, o->dtype, one, result, false, o->lanes);
}

/* --- Bits --- */

static LLVMValueRef emit_xor(const op *o) { return LLVMBuildBinOp(o->cg->builder, LLVMXor, o->args[0], o->args[1], ""); }
static LLVMValueRef emit_shift(const op *o) {
  return ax_cg_shift(o->cg, o->expr->op, o->dtype, o->args[0], o->args[1], o->lanes);
}

/* The bits of an integer, in a byte if they are fewer. */
static LLVMValueRef own_bits(const op *o) { return ax_cg_to_memory(o->cg, o->dtype, o->args[0], o->lanes); }
static uint64_t bits_above(const op *o) { return 8 * ax_dtype_bytes(o->dtype) - ax_dtype_get(o->dtype)->bits; }

static LLVMValueRef emit_population_count(const op *o) { return unary(o, "llvm.ctpop", own_bits(o)); }
/* The flag: 0 has a result too. */
static LLVMValueRef zeros(const op *o, const char *name, LLVMValueRef x) {
  LLVMValueRef with_flag[] = {x, LLVMConstInt(LLVMInt1TypeInContext(o->cg->context), 0, false)};
  LLVMTypeRef type = o->type;
  return ax_cg_intrinsic(o->cg, name, &type, 1, with_flag, 2);
}
static LLVMValueRef emit_clz(const op *o) {
  LLVMValueRef count = zeros(o, "llvm.ctlz", own_bits(o));
  if (bits_above(o) == 0) return count;
  return LLVMBuildSub(o->cg->builder, count, ax_cg_integer(o->cg, o->dtype, o->lanes, bits_above(o)), "");
}
static LLVMValueRef emit_ctz(const op *o) {
  LLVMValueRef x = own_bits(o);
  if (bits_above(o) > 0) /* a 1 behind the last bit, for 0 */
    x = LLVMBuildOr(o->cg->builder, x, ax_cg_integer(o->cg, o->dtype, o->lanes, 1ull << ax_dtype_get(o->dtype)->bits), "");
  return zeros(o, "llvm.cttz", x);
}

static LLVMValueRef emit_bitcast(const op *o) {
  return ax_cg_of_bits(o->cg, o->expr->dtype, ax_cg_bits_of(o->cg, o->dtype, o->args[0], o->lanes), o->lanes);
}

static LLVMValueRef emit_is_finite(const op *o) {
  return LLVMBuildFCmp(o->cg->builder, LLVMRealOLT, unary(o, "llvm.fabs", o->args[0]), number(o, INFINITY), "");
}

static LLVMValueRef emit_threefry(const op *o) {
  LLVMValueRef out;
  ax_cg_threefry(o->cg, &o->args[0], &o->args[1], o->lanes, 1, &out);
  return out;
}
static LLVMValueRef emit_nextafter(const op *o) { return ax_cg_nextafter(o->cg, o->dtype, o->args[0], o->args[1], o->lanes); }
static LLVMValueRef emit_reduce_precision(const op *o) {
  return ax_cg_reduce_precision(o->cg, o->dtype, o->expr->imm, o->args[0], o->lanes);
}

/* Half is added with the operand's sign and the fraction cut off. It is the number below a half, so that the sum with the number
   below a half stays below 1. */
static LLVMValueRef emit_round_nearest_afz(const op *o) {
  LLVMValueRef x = o->args[0];
  const double below = holds_f16(o) ? 0x1p-12 : o->dtype == AX_F64 ? 0x1p-54 : 0x1p-25;
  LLVMValueRef args[] = {number(o, 0.5 - below), x};
  LLVMTypeRef type = o->type;
  LLVMValueRef half = ax_cg_intrinsic(o->cg, "llvm.copysign", &type, 1, args, 2);
  return unary(o, "llvm.trunc", LLVMBuildFAdd(o->cg->builder, x, half, ""));
}

/* --- Comparisons, select, convert --- */

static LLVMValueRef compare(const op *o, LLVMRealPredicate on_float, LLVMIntPredicate on_signed,
                            LLVMIntPredicate on_unsigned) {
  if (o->kind == AX_KIND_FLOAT) return LLVMBuildFCmp(o->cg->builder, on_float, o->args[0], o->args[1], "");
  LLVMIntPredicate predicate = o->kind == AX_KIND_SIGNED ? on_signed : on_unsigned;
  return LLVMBuildICmp(o->cg->builder, predicate, o->args[0], o->args[1], "");
}

static LLVMValueRef emit_eq(const op *o) { return compare(o, LLVMRealOEQ, LLVMIntEQ, LLVMIntEQ); }
static LLVMValueRef emit_ne(const op *o) { return compare(o, LLVMRealUNE, LLVMIntNE, LLVMIntNE); }
static LLVMValueRef emit_lt(const op *o) { return compare(o, LLVMRealOLT, LLVMIntSLT, LLVMIntULT); }
static LLVMValueRef emit_le(const op *o) { return compare(o, LLVMRealOLE, LLVMIntSLE, LLVMIntULE); }
static LLVMValueRef emit_gt(const op *o) { return compare(o, LLVMRealOGT, LLVMIntSGT, LLVMIntUGT); }
static LLVMValueRef emit_ge(const op *o) { return compare(o, LLVMRealOGE, LLVMIntSGE, LLVMIntUGE); }

static LLVMValueRef emit_select(const op *o) {
  return LLVMBuildSelect(o->cg->builder, o->args[0], o->args[1], o->args[2], "");
}

static LLVMValueRef emit_convert(const op *o) {
  return ax_cg_convert(o->cg, o->dtype, o->expr->dtype, o->args[0], o->lanes);
}

/* Whether the f32 result of a narrow float operation may need rounding; of arithmetic, which has no NaN but its operands' and the
   processor's own. */
typedef enum rounding { EXACT, ROUND, ARITHMETIC } rounding;

static const struct {
  emitter emit;
  rounding narrow;
} ops[AX_SCALAR_COUNT] = {
    [AX_SCALAR_ADD] = {emit_add, ARITHMETIC},
    [AX_SCALAR_SUB] = {emit_sub, ARITHMETIC},
    [AX_SCALAR_MUL] = {emit_mul, ARITHMETIC},
    [AX_SCALAR_DIV] = {emit_div, ARITHMETIC},
    [AX_SCALAR_MAX] = {emit_max, EXACT},
    [AX_SCALAR_MIN] = {emit_min, EXACT},
    [AX_SCALAR_POW] = {emit_pow, ROUND},
    [AX_SCALAR_REM] = {emit_rem, EXACT},
    [AX_SCALAR_NEG] = {emit_neg, EXACT},
    [AX_SCALAR_ABS] = {emit_abs, EXACT},
    [AX_SCALAR_SIGN] = {emit_sign, EXACT},
    [AX_SCALAR_FLOOR] = {emit_floor, EXACT},
    [AX_SCALAR_CEIL] = {emit_ceil, EXACT},
    [AX_SCALAR_ROUND_NEAREST_EVEN] = {emit_round_nearest_even, EXACT},
    [AX_SCALAR_EXP] = {emit_math, ROUND},
    [AX_SCALAR_LOG] = {emit_math, ROUND},
    [AX_SCALAR_LOG1P] = {emit_log1p, ROUND},
    [AX_SCALAR_EXPM1] = {emit_math, ROUND},
    [AX_SCALAR_SIN] = {emit_sin, ROUND},
    [AX_SCALAR_COS] = {emit_math, ROUND},
    [AX_SCALAR_TANH] = {emit_tanh, ROUND},
    [AX_SCALAR_LOGISTIC] = {emit_logistic, ROUND},
    [AX_SCALAR_SQRT] = {emit_sqrt, ARITHMETIC},
    [AX_SCALAR_RSQRT] = {emit_rsqrt, ARITHMETIC},
    [AX_SCALAR_ERF] = {emit_erf, ROUND},
    [AX_SCALAR_EXP2] = {emit_other, ROUND},
    [AX_SCALAR_CBRT] = {emit_other, ROUND},
    [AX_SCALAR_TAN] = {emit_odd, ROUND},
    [AX_SCALAR_ASIN] = {emit_odd, ROUND},
    [AX_SCALAR_ACOS] = {emit_other, ROUND},
    [AX_SCALAR_ATAN] = {emit_odd, ROUND},
    [AX_SCALAR_SINH] = {emit_hyperbolic, ROUND},
    [AX_SCALAR_COSH] = {emit_hyperbolic, ROUND},
    [AX_SCALAR_ASINH] = {emit_inverse_hyperbolic, ROUND},
    [AX_SCALAR_ACOSH] = {emit_inverse_hyperbolic, ROUND},
    [AX_SCALAR_ATANH] = {emit_odd, ROUND},
    [AX_SCALAR_ERFC] = {emit_erfc, ROUND},
    [AX_SCALAR_ATAN2] = {emit_atan2, ROUND},
    [AX_SCALAR_ERF_INV] = {emit_special, ROUND},
    [AX_SCALAR_LGAMMA] = {emit_special, ROUND},
    [AX_SCALAR_DIGAMMA] = {emit_special, ROUND},
    [AX_SCALAR_BESSEL_I0E] = {emit_special, ROUND},
    [AX_SCALAR_BESSEL_I1E] = {emit_special, ROUND},
    [AX_SCALAR_POLYGAMMA] = {emit_special, ROUND},
    [AX_SCALAR_ZETA] = {emit_special, ROUND},
    [AX_SCALAR_INTEGER_POW] = {emit_integer_pow, ARITHMETIC},
    [AX_SCALAR_EQ] = {emit_eq, EXACT},
    [AX_SCALAR_NE] = {emit_ne, EXACT},
    [AX_SCALAR_LT] = {emit_lt, EXACT},
    [AX_SCALAR_LE] = {emit_le, EXACT},
    [AX_SCALAR_GT] = {emit_gt, EXACT},
    [AX_SCALAR_GE] = {emit_ge, EXACT},
    [AX_SCALAR_AND] = {emit_and, EXACT},
    [AX_SCALAR_OR] = {emit_or, EXACT},
    [AX_SCALAR_NOT] = {emit_not, EXACT},
    [AX_SCALAR_SELECT] = {emit_select, EXACT},
    [AX_SCALAR_CONVERT] = {emit_convert, EXACT},
    [AX_SCALAR_XOR] = {emit_xor, EXACT},
    [AX_SCALAR_SHIFT_LEFT] = {emit_shift, EXACT},
    [AX_SCALAR_SHIFT_RIGHT_LOGICAL] = {emit_shift, EXACT},
    [AX_SCALAR_SHIFT_RIGHT_ARITHMETIC] = {emit_shift, EXACT},
    [AX_SCALAR_POPULATION_COUNT] = {emit_population_count, EXACT},
    [AX_SCALAR_CLZ] = {emit_clz, EXACT},
    [AX_SCALAR_CTZ] = {emit_ctz, EXACT},
    [AX_SCALAR_BITCAST] = {emit_bitcast, EXACT},
    [AX_SCALAR_IS_FINITE] = {emit_is_finite, EXACT},
    [AX_SCALAR_NEXTAFTER] = {emit_nextafter, EXACT},
    [AX_SCALAR_REDUCE_PRECISION] = {emit_reduce_precision, EXACT},
    [AX_SCALAR_ROUND_NEAREST_AFZ] = {emit_round_nearest_afz, EXACT},
    [AX_SCALAR_THREEFRY] = {emit_threefry, EXACT},
};

/* An operation on f16 that the processor computes in f32: its operands are widened, and its result is rounded. */
static LLVMValueRef through_f32(op *o) {
  LLVMValueRef wide[2];
  for (int i = 0; i < ax_scalar_arity(o->expr->op); i++) wide[i] = ax_cg_widen_half(o->cg, o->args[i], o->lanes);
  o->args = wide;
  o->widened = true;
  o->type = ax_cg_register(o->cg, AX_F32, o->lanes);
  return ax_cg_round(o->cg, AX_F16, ops[o->expr->op].emit(o), o->lanes);
}

/* Results of the operation are other numbers than its operands: also of floats without -0, of which NEG makes none. */
static bool is_computed(ax_scalar op) {
  return op != AX_SCALAR_SELECT && op != AX_SCALAR_CONVERT && op != AX_SCALAR_BITCAST;
}

LLVMValueRef ax_cg_scalar(const ax_codegen *cg, const ax_expr *expr, ax_dtype operand, LLVMValueRef *args,
                          uint32_t lanes) {
  op o = {.cg = cg, .expr = expr, .dtype = operand, .kind = ax_dtype_get(operand)->kind, .args = args, .lanes = lanes};
  if (cg->f16 && operand == AX_F16 && !ax_scalar_in_f16(expr->op)) return through_f32(&o);
  o.type = ax_cg_register(cg, operand, lanes);
  if (ops[expr->op].narrow == ARITHMETIC) hide_constants(&o);
  LLVMValueRef value = ops[expr->op].emit(&o);
  if (is_computed(expr->op) && ax_dtype_bytes(expr->dtype) == 1) return ax_cg_round(cg, expr->dtype, value, lanes);
  if (ops[expr->op].narrow == ARITHMETIC || ax_cg_has_half(cg, expr->op, operand))
    return ax_cg_round_arithmetic(cg, expr->dtype, value, lanes);
  return ops[expr->op].narrow == ROUND ? ax_cg_round(cg, expr->dtype, value, lanes) : value;
}

/* --- Reductions --- */

ax_dtype ax_cg_accumulator(ax_dtype dtype, bool wide) {
  if (wide && ax_rounds(dtype)) return AX_F64;
  return ax_dtype_get(dtype)->computed == AX_F32 ? AX_F32 : dtype;
}

static uint64_t least_bits(ax_dtype dtype) {
  const uint64_t sign = 1ull << (ax_dtype_get(dtype)->bits - 1);
  if (ax_is_float(dtype)) return ax_float_infinity_bits(dtype) | sign;
  return ax_dtype_get(dtype)->kind == AX_KIND_SIGNED ? sign : 0;
}

static uint64_t greatest_bits(ax_dtype dtype) {
  if (ax_is_float(dtype)) return ax_float_infinity_bits(dtype);
  const uint64_t all = UINT64_MAX >> (64 - ax_dtype_get(dtype)->bits);
  return ax_dtype_get(dtype)->kind == AX_KIND_SIGNED ? all >> 1 : all;
}

uint64_t ax_cg_identity_bits(ax_scalar reduce, ax_dtype dtype) {
  switch (reduce) {
    case AX_SCALAR_MUL: {
      const ax_dtype_info *info = ax_dtype_get(dtype);
      return info->kind == AX_KIND_FLOAT ? (uint64_t)info->bias << info->fraction : 1;
    }
    case AX_SCALAR_MAX: return least_bits(dtype);
    case AX_SCALAR_MIN: return greatest_bits(dtype);
    case AX_SCALAR_AND: return UINT64_MAX >> (64 - ax_dtype_get(dtype)->bits);
    default: return 0;
  }
}

LLVMValueRef ax_cg_identity(const ax_codegen *cg, ax_scalar reduce, ax_dtype dtype, uint32_t lanes) {
  dtype = ax_cg_accumulator(dtype, false);
  return ax_cg_splat(ax_cg_bits(cg, dtype, ax_cg_identity_bits(reduce, dtype)), lanes);
}

LLVMValueRef ax_cg_combine(const ax_codegen *cg, ax_scalar reduce, ax_dtype dtype, LLVMValueRef a, LLVMValueRef b,
                           uint32_t lanes) {
  LLVMValueRef args[] = {a, b};
  dtype = ax_cg_accumulator(dtype, false);
  return ax_cg_scalar(cg, &(ax_expr){.op = reduce, .dtype = dtype}, dtype, args, lanes);
}
