/* Stores that fill memory together. Each alone takes every second element, or every third and so on, and so a store for each lane;
   together they take all, as the real and the imaginary parts of complex numbers do, or the columns of a matrix of three:

     r0 r1 r2 r3            r0 i0 r1 i1 | r2 i2 r3 i3
     i0 i1 i2 i3     ->     two stores of whole registers

   They are several stores of a kernel, or the instances of one, where another loop than the vector loop is unrolled (columns.c). */
#include "jit/emit/nest.h"

_Static_assert((int)AX_MOST_WOVEN <= (int)AX_MOST_IN_TURN, "what is woven is interleaved at once");

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

/* Whole vectors; where not `all` rows are there, as many elements of the vectors together as these have, and no more. */
static void store_rows(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointer, LLVMValueRef *values, uint32_t count, bool all) {
  const int64_t lanes = nest->schedule->lanes;
  for (int64_t k = 0; k < count; k++) {
    LLVMValueRef place = ax_nest_advance(nest, element, pointer, ax_cg_i64(&nest->cg, k * lanes));
    const int64_t rest = nest->present_count * count - k * lanes;
    if (all)
      ax_nest_store_lanes(nest, element, place, 1, NULL, values[k]);
    else if (nest->present_count < 0)
      ax_nest_store_lanes(nest, element, place, 1, ax_nest_mask_up_to(nest, count, count, k * lanes), values[k]);
    else if (rest > 0)
      ax_nest_store_parts(nest, element, place, rest < lanes ? rest : lanes, values[k]);
  }
}

/* All are made when the last of them, by number, is asked for. */
bool ax_nest_store_woven(ax_nest *nest, uint32_t store, uint32_t instance) {
  const ax_nest_schedule *s = nest->schedule;
  strand strands[AX_MOST_WOVEN];
  LLVMValueRef values[AX_MOST_WOVEN];
  const uint32_t count = find(nest, store, instance, strands);
  const ax_dtype dtype = ax_nest_store_dtype(nest, store);
  const bool all = ax_nest_mask(nest, instance) == NULL;
  if (count == 0) return false;
  /* Before AVX-512 a mask of short elements is a branch for each. */
  if (!all && nest->present_count < 0 && nest->cg.vector_bytes < 64 && ax_dtype_bytes(dtype) < 4) return false;
  for (uint32_t k = 0; k < count; k++)
    if (strands[k].store > store || strands[k].instance > instance) return true;
  for (uint32_t k = 0; k < count; k++) {
    const ax_ex value = s->kernel->stores[strands[k].store].expr;
    values[k] = ax_cg_to_memory(&nest->cg, dtype, ax_nest_value(nest, value, strands[k].instance, s->lanes), s->lanes);
  }
  LLVMValueRef pointer = ax_nest_instance_pointer(nest, s->kernel->expr_count + strands[0].store, strands[0].instance);
  ax_cg_interleave(&nest->cg, values, count, s->lanes);
  store_rows(nest, ax_nest_element(nest, s->kernel->expr_count + store), pointer, values, count, all);
  return true;
}
