/* Slots of kernels inside a fused loop whose values stay in registers: elements as scalars, which the kernel has in one step
   and names by numbers, or all vectors of a slot that the kernel goes through once. */
#include "jit/emit/nest.h"

LLVMTypeRef ax_nest_held_type(const ax_codegen *cg, ax_dtype dtype, uint32_t lanes) {
  return dtype == AX_BOOL && lanes == 1 ? ax_cg_register(cg, dtype, 1) : ax_cg_memory(cg, dtype, lanes);
}

static bool walks_along(const ax_nest_schedule *s, const ax_nest_access *access) {
  return !ax_access_has_starts(s, access) && access->offset == 0 && access->stride[s->vector] == 1 && !access->transposed;
}

bool ax_nest_walks_once(const ax_nest_schedule *s, uint32_t slot, int64_t elems) {
  if (s->shape != AX_NEST_LANES || s->loops[s->vector].extent != elems) return false;
  for (uint32_t l = 0; l < s->loop_count; l++)
    if (l != s->vector && s->loops[l].extent != 1) return false;
  for (uint32_t a = 0; a < s->kernel->expr_count + s->kernel->store_count; a++)
    if (s->accesses[a].live && s->accesses[a].slot == slot && !walks_along(s, &s->accesses[a])) return false;
  return true;
}

LLVMValueRef *ax_nest_held_at(const ax_nest *nest, const ax_nest_access *access, uint32_t instance) {
  const ax_nest_schedule *s = nest->schedule;
  LLVMValueRef *held = nest->inside != NULL ? nest->inside->held[access->slot] : NULL;
  if (held == NULL) return NULL;
  const ax_slot *slot = &s->kernel->slots[access->slot];
  if (LLVMGetTypeKind(LLVMTypeOf(*held)) != LLVMVectorTypeKind)
    return held + (ax_dims_elems(slot->rank, slot->dims) > 1 ? access->offset : 0);
  return held + LLVMConstIntGetSExtValue(nest->index[s->vector]) / s->lanes + (s->unrolled == s->vector ? instance : 0);
}

LLVMValueRef ax_nest_load_held(ax_nest *nest, uint32_t access, ax_dtype dtype, LLVMValueRef held, bool guarded, uint32_t instance) {
  const ax_nest_schedule *schedule = nest->schedule;
  const bool is_vector = LLVMGetTypeKind(LLVMTypeOf(held)) == LLVMVectorTypeKind;
  const uint32_t lanes = is_vector || ax_nest_schedule_depends(schedule, access, schedule->vector) ? schedule->lanes : 1;
  LLVMValueRef value = dtype == AX_BOOL && !is_vector ? held : ax_cg_to_register(&nest->cg, dtype, held, is_vector ? lanes : 1);
  if (!is_vector) value = ax_cg_broadcast(&nest->cg, value, lanes);
  if (!guarded) return value;
  LLVMValueRef guard = ax_nest_value(nest, schedule->accesses[access].guard, instance, lanes);
  return LLVMBuildSelect(nest->cg.builder, guard, value, LLVMConstNull(LLVMTypeOf(value)), "");
}

/* If the slot has one element, a single step stores it: that of lane 0. Lanes that do not exist may hold anything. */
void ax_nest_store_held(ax_nest *nest, ax_dtype dtype, LLVMValueRef *held, LLVMValueRef value, uint32_t lanes) {
  if (LLVMGetTypeKind(LLVMTypeOf(*held)) == LLVMVectorTypeKind) {
    if (lanes == 1) value = ax_cg_broadcast(&nest->cg, value, nest->schedule->lanes);
    *held = ax_cg_to_memory(&nest->cg, dtype, value, nest->schedule->lanes);
    return;
  }
  if (lanes > 1) value = LLVMBuildExtractElement(nest->cg.builder, value, ax_cg_i64(&nest->cg, 0), "");
  *held = dtype == AX_BOOL ? value : ax_cg_to_memory(&nest->cg, dtype, value, 1);
}
