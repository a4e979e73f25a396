/* Two registers of bf16 at once. Where everything along the vector loop is bf16, side by side in memory, an even instance and the
   one after it are one register of memory, as words of 32 bits of which the even instance takes the lower halves and the odd one
   the upper halves:

     memory      e0 e1 e2 e3 e4 e5 ..
     instance 0  e0    e2    e4          a shift to the left makes these f32
     instance 1     e1    e3    e5       a mask these

   That takes one instruction for each register, where widening elements that lie together takes three, and as little when they are
   stored. */
#include "jit/emit/nest.h"

/* --- Which kernels --- */

static bool lies_in_pairs(const ax_nest_schedule *s, const ax_nest_access *access) {
  return s->kernel->slots[access->slot].dtype == AX_BF16 && access->stride[s->vector] == 1 &&
         !ax_access_is_moved(access, s->vector) && !access->transposed;
}

bool ax_nest_schedule_can_pair(const ax_nest_schedule *s) {
  enum {
    least_work = 1 << 15
  }; /* below, twice the code takes longer to make than it saves; and no vectors are held in registers (fused_loop_emit.c) */
  const ax_loop_kernel *kernel = s->kernel;
  bool any = false;
  if (s->running || (s->shape != AX_NEST_LANES && s->shape != AX_NEST_BLOCK)) return false;
  if (s->work <= least_work || s->lanes * 4 != s->vector_bytes || s->loops[s->vector].extent < 2 * (int64_t)s->lanes) return false;
  for (ax_ex id = 0; id < kernel->expr_count; id++) {
    const ax_scalar op = kernel->exprs[id].op;
    const bool positions = op == AX_LEAF_INSIDE || (op == AX_LEAF_INDEX && s->reduces); /* sums keep their order */
    if (s->live[id] && positions && ax_nest_schedule_depends(s, id, s->vector)) return false;
  }
  for (uint32_t a = 0; a < kernel->expr_count + kernel->store_count; a++) {
    const ax_nest_access *access = &s->accesses[a];
    if (!access->live || (access->stride[s->vector] == 0 && !ax_access_is_moved(access, s->vector))) continue;
    if (!lies_in_pairs(s, access)) return false;
    any = true;
  }
  return any;
}

/* --- Loads and stores --- */

bool ax_nest_makes_pair(const ax_nest *nest, uint32_t instance) {
  return nest->schedule->paired && (instance | 1) < nest->instances && ax_nest_mask(nest, instance | 1) == NULL;
}

bool ax_nest_is_paired(const ax_nest *nest, uint32_t access, uint32_t instance) {
  return ax_nest_makes_pair(nest, instance) && nest->schedule->accesses[access].stride[nest->schedule->vector] == 1;
}

static LLVMTypeRef words(const ax_nest *nest) { return ax_cg_int(&nest->cg, 32, nest->schedule->lanes); }
static LLVMValueRef all(const ax_nest *nest, uint32_t value) {
  return ax_cg_integer(&nest->cg, AX_U32, nest->schedule->lanes, value);
}

LLVMValueRef ax_nest_load_paired(ax_nest *nest, uint32_t access, LLVMValueRef pointer, uint32_t instance) {
  LLVMBuilderRef b = nest->cg.builder;
  LLVMValueRef *pair = &nest->pairs[access], half;
  if (instance % 2 == 0) {
    *pair = LLVMBuildLoad2(b, words(nest), pointer, "");
    LLVMSetAlignment(*pair, 2);
    half = LLVMBuildBinOp(b, LLVMShl, *pair, all(nest, 16), "");
  } else {
    half = LLVMBuildAnd(b, *pair, all(nest, 0xffff0000), "");
  }
  return LLVMBuildCast(b, LLVMBitCast, half, ax_cg_register(&nest->cg, AX_BF16, nest->schedule->lanes), "");
}

void ax_nest_store_paired(ax_nest *nest, uint32_t access, LLVMValueRef pointer, LLVMValueRef value, uint32_t instance) {
  LLVMBuilderRef b = nest->cg.builder;
  LLVMValueRef *pair = &nest->pairs[access];
  if (instance % 2 == 0) {
    *pair = LLVMBuildLShr(b, ax_cg_upper_half(&nest->cg, value, nest->schedule->lanes), all(nest, 16), "");
    return;
  }
  LLVMValueRef one = LLVMBuildOr(b, LLVMBuildCast(b, LLVMBitCast, value, words(nest), ""), *pair, ""),
               back = ax_cg_i64(&nest->cg, -(int64_t)nest->schedule->lanes);
  pointer = ax_nest_advance(nest, ax_nest_element(nest, access), pointer, back);
  LLVMValueRef store = LLVMBuildStore(b, one, pointer);
  LLVMSetAlignment(store, 2);
  if (nest->streaming) ax_nest_mark_streamed(nest, store, nest->schedule->lanes * 4);
}
