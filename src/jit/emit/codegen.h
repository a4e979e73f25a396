/* Scalar operations as LLVM IR, on one element or on a vector of them (`lanes` 1: a plain scalar).

   Registers hold bool as i1, and narrow floats as f32 values that the narrow type can represent: each operation computes in f32
   and rounds back, so conversions cost nothing until the store. Where the processor computes in f16, registers hold f16 as they
   are, and operations of several steps are computed in f32. Memory holds bool as a byte, bf16 and f16 as 16 bits, f8 and f4 as
   a byte. Integers of less than 8 bits are bytes in registers too, extended by their sign or by zeros; in memory the bits above are 0. */
#ifndef AX_JIT_EMIT_CODEGEN_H
#define AX_JIT_EMIT_CODEGEN_H

#include "ir/program.h"
#include "jit/llvm/llvm.h"
#include "jit/object/object.h"
#include "plan/kernel.h"

typedef struct ax_codegen {
  uint32_t vector_bytes; /* of the target's registers: 64, 32 or 16 */
  bool f16;              /* the target computes in f16 (ax_registers.f16) */
  bool gathers;          /* gathers are faster than loads one by one, as long as caches hold what they load */
  bool in_line;          /* exp of f32 is code in line, not a call */
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMBuilderRef builder;
  LLVMValueRef function;
} ax_codegen;

/* --- types.c: functions, types, constants, vectors --- */
/* A function of the type of ax_kernel_code; the builder stands at its begin. */
void ax_cg_begin_function(ax_codegen *cg, const char *name);
LLVMValueRef ax_cg_stack(const ax_codegen *cg, LLVMTypeRef type); /* memory on the stack, aligned to a cache line */
LLVMTypeRef ax_cg_int(const ax_codegen *cg, uint32_t bits, uint32_t lanes);
LLVMTypeRef ax_cg_register(const ax_codegen *cg, ax_dtype dtype, uint32_t lanes);
LLVMTypeRef ax_cg_memory(const ax_codegen *cg, ax_dtype dtype, uint32_t lanes);
LLVMValueRef ax_cg_i64(const ax_codegen *cg, int64_t value);
/* Constants of a register type. */
LLVMValueRef ax_cg_splat(LLVMValueRef constant, uint32_t lanes);
LLVMValueRef ax_cg_integer(const ax_codegen *cg, ax_dtype dtype, uint32_t lanes, uint64_t value);
LLVMValueRef ax_cg_number(const ax_codegen *cg, ax_dtype dtype, uint32_t lanes, double value);
LLVMValueRef ax_cg_bits(const ax_codegen *cg, ax_dtype dtype, uint64_t bits); /* an AX_LEAF_CONST */
LLVMValueRef ax_cg_broadcast(const ax_codegen *cg, LLVMValueRef scalar, uint32_t lanes);
LLVMValueRef ax_cg_iota(const ax_codegen *cg, uint32_t bits, uint32_t lanes, int64_t step); /* 0, step, 2 step, ... */
/* Lane i is lane from[i] of a followed by b; b may be NULL; a negative one is poison. */
LLVMValueRef ax_cg_shuffle(const ax_codegen *cg, LLVMValueRef a, LLVMValueRef b, const int64_t *from, uint32_t count);
/* interleave.c: `count` vectors become as many with an element of each in turn, v[0][0] v[1][0] .. v[0][1] ..; and back. NULL: a
   vector whose elements are none, or that is not needed. At most AX_MOST_IN_TURN. */
enum { AX_MOST_IN_TURN = 16 };
void ax_cg_interleave(const ax_codegen *cg, LLVMValueRef *values, uint32_t count, uint32_t lanes);
void ax_cg_deinterleave(const ax_codegen *cg, LLVMValueRef *values, uint32_t count, uint32_t lanes);
/* `count` lanes from `first`; lanes beyond the end are poison. */
LLVMValueRef ax_cg_slice(const ax_codegen *cg, LLVMValueRef vector, uint32_t first, uint32_t count);
LLVMValueRef ax_cg_concat(const ax_codegen *cg, LLVMValueRef low, LLVMValueRef high, uint32_t lanes_each);
LLVMValueRef ax_cg_reverse(const ax_codegen *cg, LLVMValueRef vector, uint32_t lanes);
/* The intrinsic overloaded on the given types. */
LLVMValueRef ax_cg_intrinsic(const ax_codegen *cg, const char *name, LLVMTypeRef *types, uint32_t type_count,
                             LLVMValueRef *arguments, uint32_t count);

/* --- scalar.c --- */
/* One node's operation; `operand` is the dtype of its first value operand (that of the second for SELECT). */
LLVMValueRef ax_cg_scalar(const ax_codegen *cg, const ax_expr *expr, ax_dtype operand, LLVMValueRef *args,
                          uint32_t lanes);
/* A register of floats of `dtype`, in which subnormal numbers become the zero of their sign if the thread flushes them. For results
   that instructions on integers or selections made: results of arithmetic are so already. */
LLVMValueRef ax_cg_flushed(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef value, uint32_t lanes);
/* The dtype in which a reduction to `dtype` adds up. `wide`: f64 for all floats; otherwise f32 for bf16 and f16. */
ax_dtype ax_cg_accumulator(ax_dtype dtype, bool wide);
/* The result of a reduction over no elements: 0, 1, the least or greatest value, all ones. */
uint64_t ax_cg_identity_bits(ax_scalar reduce, ax_dtype dtype);
/* Both work on `lanes` elements of `dtype`, either accumulators or values to be added to one. bf16 and f16 are held as f32. */
LLVMValueRef ax_cg_identity(const ax_codegen *cg, ax_scalar reduce, ax_dtype dtype, uint32_t lanes);
LLVMValueRef ax_cg_combine(const ax_codegen *cg, ax_scalar reduce, ax_dtype dtype, LLVMValueRef a, LLVMValueRef b,
                           uint32_t lanes);

enum { AX_CG_ABREAST = 16 }; /* most vectors that go through an operation side by side */

/* --- bits.c: operations on bits --- */
/* A register of floats or integers as a register of integers of the dtype's size, and back. */
LLVMValueRef ax_cg_bits_of(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef value, uint32_t lanes);
LLVMValueRef ax_cg_of_bits(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef bits, uint32_t lanes);
/* SHIFT_LEFT, SHIFT_RIGHT_LOGICAL or SHIFT_RIGHT_ARITHMETIC of integers, by any amount. */
LLVMValueRef ax_cg_shift(const ax_codegen *cg, ax_scalar op, ax_dtype dtype, LLVMValueRef value, LLVMValueRef amount, uint32_t lanes);
/* Of up to AX_CG_ABREAST keys and counts of u64, round by round. */
void ax_cg_threefry(const ax_codegen *cg, const LLVMValueRef *keys, const LLVMValueRef *counts, uint32_t lanes, uint32_t count,
                    LLVMValueRef *out);
LLVMValueRef ax_cg_nextafter(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef x, LLVMValueRef y, uint32_t lanes);
LLVMValueRef ax_cg_reduce_precision(const ax_codegen *cg, ax_dtype dtype, int64_t imm, LLVMValueRef x, uint32_t lanes);

/* --- order.c: the largest and the smallest --- */
/* The integer dtype in which floats of `dtype` are compared. In these functions registers of bf16 and f16 hold their 16 bits;
   everywhere else they hold f32. */
ax_dtype ax_cg_order(ax_dtype dtype);
LLVMValueRef ax_cg_to_order(const ax_codegen *cg, ax_scalar reduce, ax_dtype dtype, LLVMValueRef value, uint32_t lanes);
LLVMValueRef ax_cg_from_order(const ax_codegen *cg, ax_scalar reduce, ax_dtype dtype, LLVMValueRef value, uint32_t lanes);

/* --- extremes.c --- */
/* The smaller or the larger of two floats, AX_F32 or AX_F64: NaN if either is, and -0 is less than +0. NULL: there is no such instruction for
   so many lanes, or one is a constant, of which LLVM's own way is short. */
LLVMValueRef ax_cg_extreme(const ax_codegen *cg, ax_dtype dtype, bool larger, LLVMValueRef x, LLVMValueRef y, uint32_t lanes);

/* --- integer.c: division and powers --- */
/* Truncates; x/0 has all bits set; the most negative number by -1 is itself. positive: b is 1 or more in each lane, or the result is
   undefined, and the process may end. */
LLVMValueRef ax_cg_integer_div(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef a, LLVMValueRef b, bool positive, uint32_t lanes);
/* The same quotient, and what it leaves of a. */
void ax_cg_integer_divide(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef a, LLVMValueRef b, bool positive, uint32_t lanes,
                          LLVMValueRef *quotient, LLVMValueRef *rest);
LLVMValueRef ax_cg_integer_pow(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef base, LLVMValueRef exponent,
                               uint32_t lanes);

/* --- convert.c --- */
LLVMValueRef ax_cg_convert(const ax_codegen *cg, ax_dtype from, ax_dtype to, LLVMValueRef value, uint32_t lanes);
/* A register of f16 as f32, whichever it holds. Values of other dtypes are returned as they are. */
LLVMValueRef ax_cg_widen_half(const ax_codegen *cg, LLVMValueRef value, uint32_t lanes);
/* Rounds an f32 to a value that a narrow float has, and takes a byte modulo the size of a short integer. Values of other dtypes, and
   those that are f16, are returned as they are. */
LLVMValueRef ax_cg_round(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef value, uint32_t lanes);
/* As ax_cg_round, for values that hold no NaN with bits beyond the narrow type's. Results of arithmetic on values of the narrow
   type are such values. */
LLVMValueRef ax_cg_round_arithmetic(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef value, uint32_t lanes);
LLVMValueRef ax_cg_to_register(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef memory, uint32_t lanes);
/* Returns words of 32 bits whose upper half is that of an f32. The lower half is undefined: the store drops it, so no
   instruction is spent on clearing it. */
LLVMValueRef ax_cg_upper_half(const ax_codegen *cg, LLVMValueRef value, uint32_t lanes);
LLVMValueRef ax_cg_to_memory(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef value, uint32_t lanes);

/* --- half_math.c --- */
/* Whether a function of a narrow dtype is computed in line. The only NaNs in its results are its operands' and the processor's
   default NaN. */
bool ax_cg_has_half(const ax_codegen *cg, ax_scalar op, ax_dtype dtype);
LLVMValueRef ax_cg_half(const ax_codegen *cg, ax_scalar op, ax_dtype dtype, LLVMValueRef x); /* x: a whole register of f32 */
/* exp of up to AX_CG_ABREAST whole registers of f32, of 64 or 32 bytes, in place; the same bits as the function that is called. */
void ax_cg_exp(const ax_codegen *cg, LLVMValueRef *x, uint32_t count);

/* --- math.c --- */
/* exp, log, ... and pow. Registers are f64 for f64, and f32 for f32 and narrower dtypes; the caller rounds results to the
   narrower dtype. */
LLVMValueRef ax_cg_math(const ax_codegen *cg, ax_scalar op, ax_dtype dtype, bool precise, LLVMValueRef *args, uint32_t lanes);
/* base^y of f32, in line and without a logarithm: the same bits as AX_SCALAR_POW. If ax_cg_raises says so of a base. */
bool ax_cg_raises(const ax_codegen *cg, double base);
LLVMValueRef ax_cg_raise(const ax_codegen *cg, double base, LLVMValueRef y, uint32_t lanes);
ax_object_function ax_math_find(const char *name); /* a function that code of ax_cg_math calls; NULL: unknown name */
/* Whether ax_cg_math calls a function of ours (vector_math.h), which is right for all operands. */
bool ax_cg_has_own(const ax_codegen *cg, ax_scalar op, ax_dtype dtype);

#endif
