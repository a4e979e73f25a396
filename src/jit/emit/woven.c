/* Stores that fill memory together. Each alone takes every second element, or every third or fourth, and so a store for each lane;
   together they take all, as the real and the imaginary parts of complex numbers do, or the columns of a matrix of three:

     r0 r1 r2 r3            r0 i0 r1 i1 | r2 i2 r3 i3
     i0 i1 i2 i3     ->     two stores of whole registers

   They are several stores of a kernel, or the instances of one, where another loop than the vector loop is unrolled (columns.c). */
#include "jit/emit/nest.h"

typedef struct strand { /* one of the stores, or instances, that take turns */
  uint32_t store, instance;
} strand;

/* In the order of memory. */
static uint32_t find(const ax_nest *nest, uint32_t store, uint32_t instance, strand *out) {
  const ax_nest_schedule *s = nest->schedule;
  const ax_nest_access *a = ax_nest_schedule_store(s, store);
  uint32_t stores[AX_MOST_WOVEN], count;
  if (nest->narrow || nest->streaming || (nest->inside != NULL && nest->inside->held[a->slot] != NULL)) return 0;
  if (s->unrolled == s->vector) {
    count = ax_nest_schedule_woven(s, store, stores);
    for (uint32_t k = 0; k < count; k++) out[k] = (strand){stores[k], instance};
    return count;
  }
  if (a->stride[s->unrolled] != 1 || a->stride[s->vector] != (int64_t)nest->instances || nest->instances > AX_MOST_WOVEN) return 0;
  for (uint32_t k = 0; k < nest->instances; k++) out[k] = (strand){store, k};
  return nest->instances > 1 ? nest->instances : 0;
}

/* Of count * lanes elements each strand's in turn. */
static LLVMValueRef weave(ax_nest *nest, LLVMValueRef *values, uint32_t count) {
  enum { most_lanes = 64 };
  const uint32_t lanes = nest->schedule->lanes;
  int64_t from[AX_MOST_WOVEN * most_lanes];
  for (uint32_t k = count; k < AX_MOST_WOVEN; k++) values[k] = LLVMGetPoison(LLVMTypeOf(values[0]));
  LLVMValueRef low = ax_cg_concat(&nest->cg, values[0], values[1], lanes);
  LLVMValueRef high = count > 2 ? ax_cg_concat(&nest->cg, values[2], values[3], lanes) : NULL;
  for (uint32_t e = 0; e < count * lanes; e++) from[e] = e % count * lanes + e / count;
  return ax_cg_shuffle(&nest->cg, low, high, from, count * lanes);
}

/* All are made when the last of them, by number, is asked for. */
bool ax_nest_store_woven(ax_nest *nest, uint32_t store, uint32_t instance) {
  const ax_nest_schedule *s = nest->schedule;
  strand strands[AX_MOST_WOVEN];
  LLVMValueRef values[AX_MOST_WOVEN];
  const uint32_t count = find(nest, store, instance, strands);
  const ax_dtype dtype = ax_nest_store_dtype(nest, store);
  if (count == 0 || ax_nest_mask(nest, instance) != NULL) return false;
  for (uint32_t k = 0; k < count; k++)
    if (strands[k].store > store || strands[k].instance > instance) return true;
  for (uint32_t k = 0; k < count; k++) {
    const ax_ex value = s->kernel->stores[strands[k].store].expr;
    values[k] = ax_cg_to_memory(&nest->cg, dtype, ax_nest_value(nest, value, strands[k].instance, s->lanes), s->lanes);
  }
  LLVMValueRef pointer = ax_nest_instance_pointer(nest, s->kernel->expr_count + strands[0].store, strands[0].instance);
  LLVMSetAlignment(LLVMBuildStore(nest->cg.builder, weave(nest, values, count), pointer), (uint32_t)ax_dtype_bytes(dtype));
  return true;
}
