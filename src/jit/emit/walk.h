/* The ways along a kernel's vector loop. */
#ifndef AX_JIT_EMIT_WALK_H
#define AX_JIT_EMIT_WALK_H

#include "jit/emit/nest.h"

typedef void (*ax_leaf)(ax_nest *nest, LLVMValueRef index);

static inline LLVMValueRef ax_nest_i64(const ax_nest *nest, int64_t value) { return ax_cg_i64(&nest->cg, value); }
static inline LLVMValueRef ax_nest_add(const ax_nest *nest, LLVMValueRef a, int64_t b) {
  return LLVMBuildAdd(nest->cg.builder, a, ax_nest_i64(nest, b), "");
}

ax_range ax_range_static(const ax_nest *nest, int64_t extent);
ax_range ax_range_of_loop(const ax_nest *nest, uint32_t loop);

/* Before any walk, outside of all loops. */
void ax_walk_prepare(ax_nest *nest);
/* `hi` - `lo` is a positive multiple of `step`. */
void ax_walk_repeat(ax_nest *nest, LLVMValueRef lo, LLVMValueRef hi, int64_t step, bool once, ax_leaf body);
/* As many steps, of a power of two, as fit; returns where they end. */
LLVMValueRef ax_walk_steps(ax_nest *nest, LLVMValueRef lo, LLVMValueRef hi, int64_t step, ax_leaf body);
/* All of a range, in vectors, the last of which may be partial. */
void ax_nest_walk(ax_nest *nest, const ax_range *range, ax_leaf body);
/* As ax_nest_walk, where the schedule streams: vectors from where the store comes to a line of the cache, and what is before and
   after under masks. */
void ax_walk_streamed(ax_nest *nest, const ax_range *range, ax_leaf body);
/* Whole vectors of settled steps, and all others under masks (guards.c). Nothing is accumulated. */
void ax_walk_guarded(ax_nest *nest, const ax_range *range, ax_leaf body);

/* A block that is skipped when lo = hi; `skip` gets what closing needs. */
void ax_walk_open_guard(ax_nest *nest, LLVMValueRef lo, LLVMValueRef hi, LLVMBasicBlockRef *skip);
void ax_walk_close_guard(ax_nest *nest, LLVMBasicBlockRef skip);

#endif
