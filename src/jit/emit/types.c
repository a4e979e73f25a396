/* Functions, types, constants and the shuffles everything else uses. */
#include <string.h>

#include "ir/number.h"
#include "jit/emit/codegen.h"

enum { max_lanes = 256 }; /* bytes of a register of 64, four of which may be one vector for a moment (woven.c) */

/* --- Functions --- */

static void set_attribute(const ax_codegen *cg, const char *key, const char *value) {
  LLVMAttributeRef attribute = LLVMCreateStringAttribute(cg->context, key, (unsigned)strlen(key), value, (unsigned)strlen(value));
  LLVMAddAttributeAtIndex(cg->function, LLVMAttributeFunctionIndex, attribute);
}

static void set_flag(const ax_codegen *cg, const char *name) {
  unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
  LLVMAddAttributeAtIndex(cg->function, LLVMAttributeFunctionIndex, LLVMCreateEnumAttribute(cg->context, kind, 0));
}

void ax_cg_begin_function(ax_codegen *cg, const char *name) {
  LLVMTypeRef pointer = LLVMPointerTypeInContext(cg->context, 0), word = LLVMInt64TypeInContext(cg->context);
  LLVMTypeRef parameters[] = {pointer, pointer, word, word};
  cg->function = LLVMAddFunction(cg->module, name, LLVMFunctionType(LLVMVoidTypeInContext(cg->context), parameters, 4, false));
  set_flag(cg, "nounwind");
  set_flag(cg, "noinline"); /* optnone asks for it */
  set_flag(cg, "optnone");  /* twice as fast to compile; register allocation, which counts, is done all the same */
  /* The caller's stack is aligned to 16 bytes: spilled vectors that lay across two cache lines would take twice the time. */
  if (cg->vector_bytes > 16) set_attribute(cg, "stackrealign", "");
  if (cg->vector_bytes == 64) set_attribute(cg, "prefer-vector-width", "512");
  set_attribute(cg, "denormal-fp-math", "dynamic,dynamic"); /* the thread's mode says whether subnormal numbers are flushed */
  LLVMPositionBuilderAtEnd(cg->builder, LLVMAppendBasicBlockInContext(cg->context, cg->function, ""));
}

/* In the function's first block: elsewhere it would be taken again in each round of a loop, until there is no more. */
static void position_at_beginning(const ax_codegen *cg, LLVMBasicBlockRef here) {
  LLVMBasicBlockRef first = LLVMGetEntryBasicBlock(LLVMGetBasicBlockParent(here));
  LLVMValueRef instruction = LLVMGetFirstInstruction(first);
  if (instruction != NULL) LLVMPositionBuilderBefore(cg->builder, instruction);
  else LLVMPositionBuilderAtEnd(cg->builder, first);
}

LLVMValueRef ax_cg_stack(const ax_codegen *cg, LLVMTypeRef type) {
  LLVMBasicBlockRef here = LLVMGetInsertBlock(cg->builder);
  position_at_beginning(cg, here);
  LLVMValueRef memory = LLVMBuildAlloca(cg->builder, type, "");
  LLVMSetAlignment(memory, 64);
  LLVMPositionBuilderAtEnd(cg->builder, here);
  return memory;
}

/* --- Types --- */

static LLVMTypeRef lanes_of(LLVMTypeRef element, uint32_t lanes) {
  return lanes == 1 ? element : LLVMVectorType(element, lanes);
}

LLVMTypeRef ax_cg_int(const ax_codegen *cg, uint32_t bits, uint32_t lanes) {
  return lanes_of(LLVMIntTypeInContext(cg->context, bits), lanes);
}

LLVMTypeRef ax_cg_register(const ax_codegen *cg, ax_dtype dtype, uint32_t lanes) {
  if (dtype == AX_BOOL) return ax_cg_int(cg, 1, lanes);
  if (dtype == AX_F64) return lanes_of(LLVMDoubleTypeInContext(cg->context), lanes);
  if (dtype == AX_F16 && cg->f16) return lanes_of(LLVMHalfTypeInContext(cg->context), lanes);
  if (ax_is_float(dtype)) return lanes_of(LLVMFloatTypeInContext(cg->context), lanes);
  return ax_cg_int(cg, (uint32_t)ax_dtype_bytes(dtype) * 8, lanes);
}

LLVMTypeRef ax_cg_memory(const ax_codegen *cg, ax_dtype dtype, uint32_t lanes) {
  if (dtype == AX_BOOL) return ax_cg_int(cg, 8, lanes);
  if (ax_is_narrow_float(dtype)) return ax_cg_int(cg, 8 * (uint32_t)ax_dtype_bytes(dtype), lanes);
  return ax_cg_register(cg, dtype, lanes);
}

LLVMValueRef ax_cg_i64(const ax_codegen *cg, int64_t value) {
  return LLVMConstInt(LLVMInt64TypeInContext(cg->context), (uint64_t)value, true);
}

LLVMValueRef ax_cg_splat(LLVMValueRef constant, uint32_t lanes) {
  if (lanes == 1) return constant;
  LLVMValueRef all[max_lanes];
  for (uint32_t i = 0; i < lanes; i++) all[i] = constant;
  return LLVMConstVector(all, lanes);
}

LLVMValueRef ax_cg_integer(const ax_codegen *cg, ax_dtype dtype, uint32_t lanes, uint64_t value) {
  return ax_cg_splat(LLVMConstInt(ax_cg_register(cg, dtype, 1), value, false), lanes);
}

LLVMValueRef ax_cg_number(const ax_codegen *cg, ax_dtype dtype, uint32_t lanes, double value) {
  return ax_cg_splat(LLVMConstReal(ax_cg_register(cg, dtype, 1), value), lanes);
}

LLVMValueRef ax_cg_bits(const ax_codegen *cg, ax_dtype dtype, uint64_t bits) {
  if (dtype == AX_BOOL) return ax_cg_integer(cg, dtype, 1, bits != 0);
  if (ax_dtype_bytes(dtype) == 1) { /* memory's bits are not a register's */
    const ax_number number = ax_number_load(dtype, &(uint8_t){(uint8_t)bits}, 0);
    return ax_is_float(dtype) ? ax_cg_number(cg, dtype, 1, number.f) : ax_cg_integer(cg, dtype, 1, number.u);
  }
  if (!ax_is_float(dtype)) return ax_cg_integer(cg, dtype, 1, bits);
  LLVMTypeRef type = ax_cg_register(cg, dtype, 1);
  if (dtype == AX_F16) {
    LLVMValueRef half =
        LLVMConstBitCast(LLVMConstInt(ax_cg_int(cg, 16, 1), bits, false), LLVMHalfTypeInContext(cg->context));
    return cg->f16 ? half : LLVMBuildFPExt(cg->builder, half, type, ""); /* folds */
  }
  if (dtype == AX_BF16) bits <<= 16;
  return LLVMConstBitCast(LLVMConstInt(ax_cg_int(cg, dtype == AX_F64 ? 64 : 32, 1), bits, false), type);
}

LLVMValueRef ax_cg_shuffle(const ax_codegen *cg, LLVMValueRef a, LLVMValueRef b, const int64_t *from, uint32_t count) {
  LLVMTypeRef type = LLVMInt32TypeInContext(cg->context);
  LLVMValueRef mask[max_lanes];
  for (uint32_t i = 0; i < count; i++)
    mask[i] = from[i] < 0 ? LLVMGetPoison(type) : LLVMConstInt(type, (uint64_t)from[i], false);
  if (b == NULL) b = LLVMGetPoison(LLVMTypeOf(a));
  return LLVMBuildShuffleVector(cg->builder, a, b, LLVMConstVector(mask, count), "");
}

LLVMValueRef ax_cg_broadcast(const ax_codegen *cg, LLVMValueRef scalar, uint32_t lanes) {
  if (lanes == 1) return scalar;
  if (LLVMIsConstant(scalar)) return ax_cg_splat(scalar, lanes);
  LLVMValueRef zero = LLVMConstInt(LLVMInt32TypeInContext(cg->context), 0, false);
  LLVMValueRef one =
      LLVMBuildInsertElement(cg->builder, LLVMGetPoison(LLVMVectorType(LLVMTypeOf(scalar), lanes)), scalar, zero, "");
  int64_t from[max_lanes] = {0};
  return ax_cg_shuffle(cg, one, NULL, from, lanes);
}

LLVMValueRef ax_cg_iota(const ax_codegen *cg, uint32_t bits, uint32_t lanes, int64_t step) {
  LLVMValueRef all[max_lanes];
  for (uint32_t i = 0; i < lanes; i++) all[i] = LLVMConstInt(ax_cg_int(cg, bits, 1), (uint64_t)(step * i), true);
  return lanes == 1 ? all[0] : LLVMConstVector(all, lanes);
}

LLVMValueRef ax_cg_slice(const ax_codegen *cg, LLVMValueRef vector, uint32_t first, uint32_t count) {
  uint32_t lanes = LLVMGetVectorSize(LLVMTypeOf(vector));
  int64_t from[max_lanes];
  for (uint32_t i = 0; i < count; i++) from[i] = first + i < lanes ? (int64_t)(first + i) : -1;
  return ax_cg_shuffle(cg, vector, NULL, from, count);
}

LLVMValueRef ax_cg_concat(const ax_codegen *cg, LLVMValueRef low, LLVMValueRef high, uint32_t lanes_each) {
  int64_t from[max_lanes];
  for (uint32_t i = 0; i < 2 * lanes_each; i++) from[i] = i;
  return ax_cg_shuffle(cg, low, high, from, 2 * lanes_each);
}

LLVMValueRef ax_cg_reverse(const ax_codegen *cg, LLVMValueRef vector, uint32_t lanes) {
  int64_t from[max_lanes];
  for (uint32_t i = 0; i < lanes; i++) from[i] = lanes - 1 - i;
  return ax_cg_shuffle(cg, vector, NULL, from, lanes);
}

LLVMValueRef ax_cg_intrinsic(const ax_codegen *cg, const char *name, LLVMTypeRef *types, uint32_t type_count,
                             LLVMValueRef *arguments, uint32_t count) {
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  LLVMValueRef function = LLVMGetIntrinsicDeclaration(cg->module, id, types, type_count);
  return LLVMBuildCall2(cg->builder, LLVMGlobalGetValueType(function), function, arguments, count, "");
}
