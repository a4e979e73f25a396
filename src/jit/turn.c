/* Transposed reads. A square of lanes by lanes elements is read along the loop it lies along, turned in registers and left on the
   stack, from where the body reads it the other way. So memory is touched in whole vectors in both directions.

   Exchanging with the row d further on, where bit d of the row and of the lane differ, for d = lanes/2 .. 1:

     0 1 2 3      0 1 8 9      0 4 8 c
     4 5 6 7      4 5 c d      1 5 9 d
     8 9 a b  ->  2 3 a b  ->  2 6 a e
     c d e f      6 7 e f      3 7 b f                                                                              */
#include "jit/nest.h"

void ax_nest_allocate_squares(ax_nest *nest) {
  const ax_schedule *schedule = nest->schedule;
  for (uint32_t a = 0; a < schedule->kernel->expr_count; a++) {
    if (!schedule->accesses[a].turned) continue;
    LLVMTypeRef square = LLVMArrayType2(ax_nest_element(nest, a), (uint64_t)schedule->lanes * schedule->lanes);
    nest->tiles[a] = LLVMBuildAlloca(nest->cg.builder, square, "");
    LLVMSetAlignment(nest->tiles[a], 64);
  }
}

/* Rows that do not exist repeat the last one that does. */
static LLVMValueRef row_number(ax_nest *nest, uint32_t row) {
  LLVMValueRef number = ax_cg_i64(&nest->cg, row);
  if (nest->mask == NULL || row == 0) return number;
  LLVMTypeRef i64 = LLVMInt64TypeInContext(nest->cg.context);
  LLVMValueRef last = LLVMBuildSub(nest->cg.builder, nest->present, ax_cg_i64(&nest->cg, 1), "");
  LLVMValueRef both[] = {number, last};
  return ax_cg_intrinsic(&nest->cg, "llvm.smin", &i64, 1, both, 2);
}

static void exchange(ax_nest *nest, LLVMValueRef *low, LLVMValueRef *high, uint32_t d) {
  uint32_t lanes = nest->schedule->lanes;
  int64_t to_low[64], to_high[64];
  for (uint32_t l = 0; l < lanes; l++) {
    to_low[l] = l & d ? lanes + (l - d) : l;
    to_high[l] = l & d ? lanes + l : l + d;
  }
  LLVMValueRef fresh = ax_cg_shuffle(&nest->cg, *low, *high, to_low, lanes);
  *high = ax_cg_shuffle(&nest->cg, *low, *high, to_high, lanes);
  *low = fresh;
}

static LLVMValueRef tile_row(ax_nest *nest, uint32_t access, LLVMValueRef row) {
  LLVMValueRef offset = LLVMBuildMul(nest->cg.builder, row, ax_cg_i64(&nest->cg, nest->schedule->lanes), "");
  return ax_nest_advance(nest, ax_nest_element(nest, access), nest->tiles[access], offset);
}

static void fill_square(ax_nest *nest, uint32_t access) {
  const ax_schedule *schedule = nest->schedule;
  LLVMTypeRef element = ax_nest_element(nest, access);
  LLVMValueRef rows[64], corner = ax_nest_advance(nest, element, ax_nest_pointer(nest, access), nest->tile_start);
  LLVMValueRef pitch = ax_cg_i64(&nest->cg, schedule->accesses[access].stride[schedule->vector]);
  for (uint32_t r = 0; r < schedule->lanes; r++) {
    LLVMValueRef offset = LLVMBuildMul(nest->cg.builder, row_number(nest, r), pitch, "");
    rows[r] = ax_nest_load_lanes(nest, element, ax_nest_advance(nest, element, corner, offset), 1, NULL);
  }
  for (uint32_t d = schedule->lanes / 2; d >= 1; d /= 2)
    for (uint32_t r = 0; r < schedule->lanes; r++)
      if ((r & d) == 0) exchange(nest, &rows[r], &rows[r + d], d);
  for (uint32_t r = 0; r < schedule->lanes; r++)
    ax_nest_store_lanes(nest, element, tile_row(nest, access, ax_cg_i64(&nest->cg, r)), 1, NULL, rows[r]);
}

void ax_nest_fill_squares(ax_nest *nest) {
  for (uint32_t a = 0; a < nest->schedule->kernel->expr_count; a++)
    if (nest->schedule->accesses[a].turned) fill_square(nest, a);
}

LLVMValueRef ax_nest_load_turned(ax_nest *nest, uint32_t access, ax_dtype dtype) {
  LLVMValueRef row = LLVMBuildSub(nest->cg.builder, nest->index[nest->schedule->loop_count - 1], nest->tile_start, "");
  LLVMTypeRef element = ax_nest_element(nest, access);
  LLVMValueRef memory = ax_nest_load_lanes(nest, element, tile_row(nest, access, row), 1, NULL);
  return ax_cg_to_register(&nest->cg, dtype, memory, nest->schedule->lanes);
}
