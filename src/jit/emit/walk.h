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

/* Called once before any walk, outside of all loops. */
void ax_walk_prepare(ax_nest *nest);
/* Runs `body` from `lo` to `hi`; hi - lo is a positive multiple of `step`. */
void ax_walk_repeat(ax_nest *nest, LLVMValueRef lo, LLVMValueRef hi, int64_t step, bool once, ax_leaf body);
/* Runs `body` for as many whole steps as fit, perhaps none; returns the index where they end. `step` is a power of two. */
LLVMValueRef ax_walk_steps(ax_nest *nest, LLVMValueRef lo, LLVMValueRef hi, int64_t step, ax_leaf body);
/* Walks a whole range in vectors, the last of which may be partial. */
void ax_nest_walk(ax_nest *nest, const ax_range *range, ax_leaf body);
/* As ax_nest_walk, for streaming stores: whole vectors begin where the store reaches a cache line; the steps before and after
   them are done under masks. */
void ax_walk_streamed(ax_nest *nest, const ax_range *range, ax_leaf body);
/* Walks settled steps in whole vectors, and all others under masks (guards.c). For kernels without accumulators. */
void ax_walk_guarded(ax_nest *nest, const ax_range *range, ax_leaf body);
/* Whether rows are so short that each of their vectors may have code of its own. */
bool ax_walk_is_short(const ax_nest *nest, const ax_range *range);
/* The same for such rows: of rows in the box of settled steps each vector knows, while its code is made, for which of its lanes the
   conditions hold. All others go as in ax_nest_walk. */
void ax_walk_short(ax_nest *nest, const ax_range *range, ax_leaf body);
/* Whether rows that are added up have settled steps enough for ax_walk_settled_sums. */
bool ax_walk_can_settle_sums(ax_nest *nest, const ax_range *range);
/* As ax_nest_walk, with accumulators. Of rows in the box of settled steps (guards.c) a vector is loaded without masks if all its
   lanes are settled; the order of the sums stays the same. */
void ax_walk_settled_sums(ax_nest *nest, const ax_range *range, ax_leaf body);

/* Opens a block that is skipped if lo = hi; `skip` is for the call that closes it. */
void ax_walk_open_guard(ax_nest *nest, LLVMValueRef lo, LLVMValueRef hi, LLVMBasicBlockRef *skip);
void ax_walk_close_guard(ax_nest *nest, LLVMBasicBlockRef skip);

#endif
