/* The smaller of two floats by the processor's instruction, whose result is its second operand where they are equal or one is NaN. Taken
   both ways, the results are one number, or two zeros of which "or" makes -0 if one is, or a NaN and something else of which "or" makes a
   NaN:

     min(x, y) | min(y, x)        -min of negated operands: the larger

   That is three instructions, two of them one after the other, where LLVM makes seven of llvm.minimum, and of one element sixteen. */
#include "jit/emit/codegen.h"

#if defined(__x86_64__)

typedef struct instruction {
  const char *name; /* NULL: there is none */
  bool rounds;      /* takes a rounding mode, too */
} instruction;

static instruction of_registers(const ax_codegen *cg, bool is_double, uint32_t lanes) {
  const uint32_t bits = lanes * (is_double ? 64 : 32);
  if (lanes == 1) return (instruction){is_double ? "llvm.x86.sse2.min.sd" : "llvm.x86.sse.min.ss", false};
  if (bits == 512 && cg->vector_bytes == 64)
    return (instruction){is_double ? "llvm.x86.avx512.min.pd.512" : "llvm.x86.avx512.min.ps.512", true};
  if (bits == 256 && cg->vector_bytes >= 32) return (instruction){is_double ? "llvm.x86.avx.min.pd.256" : "llvm.x86.avx.min.ps.256", false};
  if (bits == 128) return (instruction){is_double ? "llvm.x86.sse2.min.pd" : "llvm.x86.sse.min.ps", false};
  return (instruction){0};
}

/* One element is the first of a register of 16 bytes. */
static LLVMValueRef in_register(const ax_codegen *cg, LLVMValueRef x, uint32_t lanes, bool is_double) {
  if (lanes > 1) return x;
  return LLVMBuildInsertElement(cg->builder, LLVMGetPoison(LLVMVectorType(LLVMTypeOf(x), is_double ? 2 : 4)), x, ax_cg_i64(cg, 0), "");
}

LLVMValueRef ax_cg_extreme(const ax_codegen *cg, ax_dtype dtype, bool larger, LLVMValueRef x, LLVMValueRef y, uint32_t lanes) {
  enum { rounding_as_set = 4 };
  const bool is_double = dtype == AX_F64;
  const instruction min = of_registers(cg, is_double, lanes);
  if (min.name == NULL || LLVMIsConstant(x) || LLVMIsConstant(y)) return NULL;
  LLVMBuilderRef b = cg->builder;
  if (larger) x = LLVMBuildFNeg(b, x, ""), y = LLVMBuildFNeg(b, y, "");
  const uint32_t in_all = lanes > 1 ? lanes : is_double ? 2 : 4; /* one element stays in its register, as to move it takes long */
  LLVMTypeRef words = ax_cg_int(cg, is_double ? 64 : 32, in_all);
  LLVMValueRef both[2], args[] = {in_register(cg, x, lanes, is_double), in_register(cg, y, lanes, is_double),
                                  LLVMConstInt(ax_cg_int(cg, 32, 1), rounding_as_set, false)};
  for (int i = 0; i < 2; i++) {
    LLVMValueRef turned[] = {args[i], args[1 - i], args[2]}, made = ax_cg_intrinsic(cg, min.name, NULL, 0, turned, min.rounds ? 3 : 2);
    both[i] = LLVMBuildCast(b, LLVMBitCast, made, words, "");
  }
  LLVMValueRef made = LLVMBuildCast(b, LLVMBitCast, LLVMBuildOr(b, both[0], both[1], ""), LLVMTypeOf(args[0]), "");
  if (larger) made = LLVMBuildFNeg(b, made, "");
  return lanes > 1 ? made : LLVMBuildExtractElement(b, made, ax_cg_i64(cg, 0), "");
}

#else

LLVMValueRef ax_cg_extreme(const ax_codegen *cg, ax_dtype dtype, bool larger, LLVMValueRef x, LLVMValueRef y, uint32_t lanes) {
  (void)cg, (void)dtype, (void)x, (void)y, (void)larger, (void)lanes;
  return NULL;
}

#endif
