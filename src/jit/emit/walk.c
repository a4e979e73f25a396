/* Single loops, and the walks along the vector loop: whole blocks of vectors, the rest of the range, and settled steps between
   others. A loop is entered only if it runs at least once, so it is a single block with its test at the end. */
#include "jit/emit/walk.h"

#include <string.h>

enum {
  most_masked = 1 << 15,
  light = 8,    /* of a body: to make the mask takes as long, */
  long_row = 16 /* and so many vectors bring back the time that a second body takes to compile */
};

ax_range ax_range_static(const ax_nest *nest, int64_t extent) {
  return (ax_range){ax_nest_i64(nest, 0), ax_nest_i64(nest, extent), extent, extent};
}

ax_range ax_range_of_loop(const ax_nest *nest, uint32_t loop) {
  const ax_loop *l = &nest->schedule->loops[loop];
  if (!l->ranged || nest->inside != NULL) return ax_range_static(nest, l->extent);
  return (ax_range){nest->begin, nest->end, -1, l->scale};
}

static LLVMBasicBlockRef new_block(const ax_nest *nest) {
  return LLVMAppendBasicBlockInContext(nest->cg.context, nest->cg.function, "");
}

/* --- One loop --- */

/* How many accumulators a store carries through the loops that are opened now; 0: none. */
static uint32_t carried(const ax_nest *nest, uint32_t store) {
  const ax_nest_schedule *schedule = nest->schedule;
  if (!nest->accumulating || schedule->kernel->stores[store].reduce == AX_SCALAR_NONE) return 0;
  return schedule->shape == AX_NEST_BLOCK ? nest->instances : ax_nest_partial_sums(nest, store);
}

static LLVMValueRef add_phi(const ax_nest *nest, LLVMValueRef first, LLVMBasicBlockRef from) {
  LLVMValueRef phi = LLVMBuildPhi(nest->cg.builder, LLVMTypeOf(first), "");
  LLVMAddIncoming(phi, &first, &from, 1);
  return phi;
}

ax_nest_loop ax_nest_open_loop(ax_nest *nest, LLVMValueRef lo, bool once) {
  if (once) return (ax_nest_loop){NULL, lo};
  LLVMBasicBlockRef before = LLVMGetInsertBlock(nest->cg.builder);
  ax_nest_loop l = {.head = new_block(nest)};
  LLVMBuildBr(nest->cg.builder, l.head);
  LLVMPositionBuilderAtEnd(nest->cg.builder, l.head);
  l.index = add_phi(nest, lo, before);
  for (uint32_t s = 0; s < nest->schedule->kernel->store_count; s++)
    for (uint32_t i = 0; i < carried(nest, s); i++) {
      LLVMValueRef *sum = ax_nest_accumulator(nest, s, i);
      *sum = add_phi(nest, *sum, before);
    }
  return l;
}

/* The accumulators' phis follow the index's, in the order they were added. */
void ax_nest_close_loop(ax_nest *nest, const ax_nest_loop *l, LLVMValueRef hi, int64_t step) {
  if (l->head == NULL) return;
  LLVMBuilderRef b = nest->cg.builder;
  LLVMValueRef next = LLVMBuildAdd(b, l->index, ax_nest_i64(nest, step), ""), phi = l->index;
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(b), after = new_block(nest);
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, next, hi, ""), l->head, after);
  LLVMAddIncoming(phi, &next, &latch, 1);
  for (uint32_t s = 0; s < nest->schedule->kernel->store_count; s++)
    for (uint32_t i = 0; i < carried(nest, s); i++) {
      phi = LLVMGetNextInstruction(phi);
      LLVMAddIncoming(phi, ax_nest_accumulator(nest, s, i), &latch, 1);
    }
  LLVMPositionBuilderAtEnd(b, after);
}

/* --- Along the vector loop --- */

/* `hi` - `lo` is a positive multiple of `step`. */
void ax_walk_repeat(ax_nest *nest, LLVMValueRef lo, LLVMValueRef hi, int64_t step, bool once, ax_leaf body) {
  ax_nest_loop l = ax_nest_open_loop(nest, lo, once);
  body(nest, l.index);
  ax_nest_close_loop(nest, &l, hi, step);
}

LLVMValueRef ax_walk_constant_mask(const ax_nest *nest, int64_t present) {
  LLVMValueRef lane[64];
  uint32_t lanes = nest->schedule->lanes;
  for (uint32_t i = 0; i < lanes; i++)
    lane[i] = LLVMConstInt(LLVMInt1TypeInContext(nest->cg.context), i < present, false);
  return LLVMConstVector(lane, lanes);
}

/* Whether instructions look at more bits of a mask than there are lanes, as those of bytes do: at 16, however few lanes there are. */
static bool has_longer_masks(const ax_nest_schedule *schedule) {
  enum { least_bits = 16 };
  for (uint32_t a = 0; schedule->lanes < least_bits && a < ax_nest_schedule_access_count(schedule); a++)
    if (schedule->accesses[a].live && ax_dtype_bytes(schedule->kernel->slots[schedule->accesses[a].slot].dtype) == 1) return true;
  return false;
}

/* In a register from the start, where registers can hold masks: made in each iteration, it would go through half of a register, and
   so wait for whatever was in there. LLVM 19 makes no more bits of it there than there are lanes, and takes the others, which are
   anything, for zeros. */
void ax_walk_prepare(ax_nest *nest) {
  const ax_nest_schedule *schedule = nest->schedule;
  int64_t rest = schedule->loops[schedule->vector].extent % schedule->lanes;
  if (nest->cg.vector_bytes < 64 || rest == 0 || schedule->loops[schedule->vector].ranged || has_longer_masks(schedule)) return;
  nest->rest_mask = LLVMBuildFreeze(nest->cg.builder, ax_walk_constant_mask(nest, rest), "");
}

static bool vector_unrolled(const ax_nest *nest) { return nest->schedule->unrolled == nest->schedule->vector; }

/* The first `present` bits, where registers hold masks: three instructions, and none that needs a vector. */
static LLVMValueRef mask_of_bits(ax_nest *nest, LLVMValueRef present) {
  LLVMBuilderRef b = nest->cg.builder;
  const uint32_t lanes = nest->schedule->lanes;
  LLVMValueRef absent = LLVMBuildSub(b, ax_nest_i64(nest, 64), present, ""),
               bits = LLVMBuildLShr(b, ax_nest_i64(nest, -1), absent, "");
  if (lanes < 64) bits = LLVMBuildTrunc(b, bits, LLVMIntTypeInContext(nest->cg.context, lanes), "");
  return LLVMBuildCast(b, LLVMBitCast, bits, ax_cg_int(&nest->cg, 1, lanes), "");
}

/* 0 < present <= lanes */
static LLVMValueRef partial_mask(ax_nest *nest, LLVMValueRef present) {
  LLVMBuilderRef b = nest->cg.builder;
  uint32_t lanes = nest->schedule->lanes;
  if (nest->cg.vector_bytes == 64 && lanes >= 8) return mask_of_bits(nest, present);
  LLVMValueRef count = LLVMBuildTrunc(b, present, LLVMInt32TypeInContext(nest->cg.context), "");
  return LLVMBuildICmp(b, LLVMIntULT, ax_cg_iota(&nest->cg, 32, lanes, 1), ax_cg_broadcast(&nest->cg, count, lanes),
                       "");
}

static void mask_first(ax_nest *nest, LLVMValueRef mask, LLVMValueRef present) {
  nest->mask = mask;
  nest->present = present;
  nest->present_count = -1;
}

/* Whether every iteration may run under a mask at little cost: one body then serves whole vectors and remainders alike, which
   halves the time to compile. Not for much data: masked stores of whole cache lines still fetch them first. Nor where the body
   does so little that making the mask counts, or stores elements apart, as the parts of complex numbers are, which may take a store
   for each. Nor inside a loop, where what one step stores is soon read: see
   lanes_in_parts (memory.c). */
static bool masks_are_cheap(const ax_nest *nest) {
  const ax_nest_schedule *schedule = nest->schedule;
  if (nest->cg.vector_bytes < 64 || nest->inside != NULL || schedule->work > most_masked) return false;
  if (schedule->weight <= light && schedule->loops[schedule->vector].extent >= long_row * (int64_t)schedule->lanes) return false;
  for (uint32_t a = 0; a < schedule->kernel->expr_count + schedule->kernel->store_count; a++) {
    const ax_nest_access *access = &schedule->accesses[a];
    int64_t stride = access->stride[schedule->vector];
    bool short_element = ax_dtype_bytes(schedule->kernel->slots[access->slot].dtype) < 4,
         near = ((stride >= -1 && stride <= 1) || ax_stride_picks(stride, schedule->lanes) ||
                 ax_nest_schedule_in_columns(schedule, a, schedule->vector)) &&
                !ax_access_is_moved(access, schedule->vector);
    const bool apart = a >= schedule->kernel->expr_count && (stride < -1 || stride > 1);
    if (access->live && ((short_element && !near) || apart)) return false;
  }
  return true;
}

/* lo < hi; masks all iterations. */
static void repeat_masked(ax_nest *nest, LLVMValueRef lo, LLVMValueRef hi, ax_leaf body) {
  LLVMTypeRef type = LLVMInt64TypeInContext(nest->cg.context);
  ax_nest_loop l = ax_nest_open_loop(nest, lo, false);
  LLVMValueRef left[] = {LLVMBuildSub(nest->cg.builder, hi, l.index, ""), ax_nest_i64(nest, nest->schedule->lanes)};
  LLVMValueRef present = ax_cg_intrinsic(&nest->cg, "llvm.smin", &type, 1, left, 2);
  mask_first(nest, partial_mask(nest, present), present);
  body(nest, l.index);
  mask_first(nest, NULL, NULL);
  ax_nest_close_loop(nest, &l, hi, nest->schedule->lanes);
}

/* Repeats `body` over whole vectors. If slots are held in vector registers, the loop is unrolled, because registers cannot be
   indexed at run time. */
static void repeat_whole(ax_nest *nest, LLVMValueRef lo, int64_t whole, int64_t step, ax_leaf body) {
  bool unrolled = nest->inside != NULL && nest->inside->unrolled;
  if (!unrolled && whole > 0) ax_walk_repeat(nest, lo, ax_nest_add(nest, lo, whole), step, whole == step, body);
  for (int64_t at = 0; unrolled && at < whole; at += step) body(nest, ax_nest_add(nest, lo, at));
}

/* The block at the end of a range, if the rest is shorter: its last vector may be partial. */
static void walk_last(ax_nest *nest, LLVMValueRef at, int64_t rest, ax_leaf body) {
  const int64_t lanes = nest->schedule->lanes;
  if (vector_unrolled(nest)) nest->instances = (uint32_t)((rest + lanes - 1) / lanes);
  if (rest % lanes != 0) {
    bool made = nest->rest_mask != NULL && rest % lanes == nest->schedule->loops[nest->schedule->vector].extent % lanes;
    mask_first(nest, made ? nest->rest_mask : ax_walk_constant_mask(nest, rest % lanes), ax_nest_i64(nest, rest % lanes));
  }
  nest->present_count = rest % lanes;
  body(nest, at);
  mask_first(nest, NULL, NULL);
}

/* Whole blocks, then a shorter one. */
static void walk_static(ax_nest *nest, const ax_range *r, uint32_t block, ax_leaf body) {
  int64_t lanes = nest->schedule->lanes, step = block * lanes, whole = r->count / step * step, rest = r->count - whole;
  if (vector_unrolled(nest)) nest->instances = block;
  bool unrolled = nest->inside != NULL && nest->inside->unrolled;
  if (block == 1 && whole > 0 && rest > 0 && !nest->accumulating && !unrolled && masks_are_cheap(nest)) {
    repeat_masked(nest, r->lo, ax_nest_add(nest, r->lo, r->count), body);
    return;
  }
  repeat_whole(nest, r->lo, whole, step, body);
  if (rest > 0) walk_last(nest, ax_nest_add(nest, r->lo, whole), rest, body);
}

/* A block that is skipped when lo = hi; `skip` gets what close_guard needs. */
void ax_walk_open_guard(ax_nest *nest, LLVMValueRef lo, LLVMValueRef hi, LLVMBasicBlockRef *skip) {
  LLVMBasicBlockRef then = new_block(nest);
  *skip = new_block(nest);
  LLVMBuildCondBr(nest->cg.builder, LLVMBuildICmp(nest->cg.builder, LLVMIntSLT, lo, hi, ""), then, *skip);
  LLVMPositionBuilderAtEnd(nest->cg.builder, then);
}

void ax_walk_close_guard(ax_nest *nest, LLVMBasicBlockRef skip) {
  LLVMBuildBr(nest->cg.builder, skip);
  LLVMPositionBuilderAtEnd(nest->cg.builder, skip);
}

/* As many steps, of a power of two, as fit; returns where they end. */
LLVMValueRef ax_walk_steps(ax_nest *nest, LLVMValueRef lo, LLVMValueRef hi, int64_t step, ax_leaf body) {
  LLVMBuilderRef b = nest->cg.builder;
  LLVMBasicBlockRef skip;
  LLVMValueRef whole = LLVMBuildAnd(b, LLVMBuildSub(b, hi, lo, ""), ax_nest_i64(nest, -step), ""),
               end = LLVMBuildAdd(b, lo, whole, "");
  ax_walk_open_guard(nest, lo, end, &skip);
  ax_walk_repeat(nest, lo, end, step, false, body);
  ax_walk_close_guard(nest, skip);
  return end;
}

/* Walks the rest after the whole blocks: all of it under masks, or whole vectors and then one partial vector. */
static void walk_rest(ax_nest *nest, LLVMValueRef lo, const ax_range *r, ax_leaf body) {
  LLVMBasicBlockRef skip;
  bool partial = r->multiple % nest->schedule->lanes != 0, cheap = partial && masks_are_cheap(nest);
  if (!cheap) lo = ax_walk_steps(nest, lo, r->hi, nest->schedule->lanes, body);
  if (!partial) return;
  ax_walk_open_guard(nest, lo, r->hi, &skip);
  if (cheap) {
    repeat_masked(nest, lo, r->hi, body);
  } else {
    LLVMValueRef present = LLVMBuildSub(nest->cg.builder, r->hi, lo, "");
    mask_first(nest, partial_mask(nest, present), present);
    body(nest, lo);
    mask_first(nest, NULL, NULL);
  }
  ax_walk_close_guard(nest, skip);
}

static void walk_dynamic(ax_nest *nest, const ax_range *r, uint32_t block, ax_leaf body) {
  int64_t step = block * (int64_t)nest->schedule->lanes;
  LLVMValueRef lo = r->lo;
  if (vector_unrolled(nest)) nest->instances = block;
  if (block > 1) lo = ax_walk_steps(nest, lo, r->hi, step, body);
  if (vector_unrolled(nest)) nest->instances = 1;
  if (block == 1 || r->multiple % step != 0) walk_rest(nest, lo, r, body);
}

void ax_nest_walk(ax_nest *nest, const ax_range *r, ax_leaf body) {
  uint32_t block = vector_unrolled(nest) ? nest->schedule->unroll : 1;
  if (r->count >= 0)
    walk_static(nest, r, block, body);
  else
    walk_dynamic(nest, r, block, body);
}

/* --- Guarded loads --- */

/* The steps before the settled ones and those after them, by one code; both may be none. */
static void walk_unsettled(ax_nest *nest, const ax_range *r, LLVMValueRef first, LLVMValueRef end, ax_leaf body) {
  LLVMBuilderRef b = nest->cg.builder;
  LLVMBasicBlockRef skip;
  ax_nest_loop side = ax_nest_open_loop(nest, ax_nest_i64(nest, 0), false);
  LLVMValueRef before = LLVMBuildICmp(b, LLVMIntSLT, side.index, ax_nest_i64(nest, 1), "");
  LLVMValueRef lo = LLVMBuildSelect(b, before, r->lo, end, ""), hi = LLVMBuildSelect(b, before, first, r->hi, "");
  ax_walk_open_guard(nest, lo, hi, &skip);
  repeat_masked(nest, lo, hi, body);
  ax_walk_close_guard(nest, skip);
  ax_nest_close_loop(nest, &side, ax_nest_i64(nest, 2), 1);
}

/* Whole vectors of settled steps, a multiple of the lanes from where the ax_range begins or from a line of the cache on, and all
   others under masks. Nothing is accumulated. */
void ax_walk_guarded(ax_nest *nest, const ax_range *r, ax_leaf body) {
  LLVMBuilderRef b = nest->cg.builder;
  LLVMTypeRef type = LLVMInt64TypeInContext(nest->cg.context);
  LLVMBasicBlockRef skip;
  int64_t lanes = nest->schedule->lanes;
  LLVMValueRef row = ax_nest_row_settled(nest), zero = ax_nest_i64(nest, 0);
  const bool streams = nest->schedule->streams && nest->inside == NULL;
  LLVMValueRef late[] = {LLVMBuildSub(b, ax_nest_i64(nest, nest->settled_first + (streams ? 0 : lanes - 1)), r->lo, ""), zero};
  LLVMValueRef before =
      LLVMBuildAnd(b, ax_cg_intrinsic(&nest->cg, "llvm.smax", &type, 1, late, 2), ax_nest_i64(nest, streams ? -1 : -lanes), "");
  LLVMValueRef ends[] = {ax_nest_i64(nest, nest->settled_end), r->hi}, first = LLVMBuildAdd(b, r->lo, before, "");
  if (streams) first = LLVMBuildAdd(b, first, ax_nest_steps_to_line(nest, first), "");
  LLVMValueRef count[] = {LLVMBuildSub(b, ax_cg_intrinsic(&nest->cg, "llvm.smin", &type, 1, ends, 2), first, ""), zero};
  LLVMValueRef whole = LLVMBuildAnd(b, ax_cg_intrinsic(&nest->cg, "llvm.smax", &type, 1, count, 2), ax_nest_i64(nest, -lanes), "");
  whole = LLVMBuildSelect(b, row, whole, zero, "");
  first = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, zero, whole, ""), first, r->hi, "");
  LLVMValueRef end = LLVMBuildAdd(b, first, whole, "");
  if (vector_unrolled(nest)) nest->instances = 1;
  walk_unsettled(nest, r, first, end, body);
  ax_walk_open_guard(nest, first, end, &skip);
  nest->row_settled = true;
  nest->settled = (uint32_t)AX_ALL_SETTLED;
  nest->streaming = streams;
  ax_walk_repeat(nest, first, end, lanes, false, body);
  nest->row_settled = nest->streaming = false;
  nest->settled = 0;
  ax_walk_close_guard(nest, skip);
}

/* --- Rows inside the box of settled steps --- */

/* Finds the vectors of a row that are settled steps: a bit for each of the block that begins at `at`. */
static uint32_t settled_instances(const ax_nest *nest, int64_t at, uint32_t block) {
  const int64_t lanes = nest->schedule->lanes;
  uint32_t settled = 0;
  for (uint32_t i = 0; i < block; i++, at += lanes)
    if (at >= nest->settled_first && at + lanes <= nest->settled_end) settled |= 1u << i;
  return settled;
}

/* A row inside the box, from `at` on up to `end`, block after block. All settled ones are a loop. */
static void walk_settled_row(ax_nest *nest, int64_t extent, uint32_t block, ax_leaf body) {
  const int64_t step = block * (int64_t)nest->schedule->lanes;
  const uint32_t all = (uint32_t)(((uint64_t)1 << block) - 1);
  nest->row_settled = true;
  for (int64_t at = 0, end; at < extent; at = end) {
    nest->settled = settled_instances(nest, at, block);
    nest->instances = block;
    for (end = at + step; nest->settled == all && end + step <= extent && settled_instances(nest, end, block) == all;) end += step;
    if (at + step <= extent) ax_walk_repeat(nest, ax_nest_i64(nest, at), ax_nest_i64(nest, end), step, end - at == step, body);
    else walk_last(nest, ax_nest_i64(nest, at), extent - at, body);
  }
  nest->row_settled = false;
  nest->settled = 0;
}

bool ax_walk_is_short(const ax_nest *nest, const ax_range *r) {
  enum { most_vectors = 6, most_in_all = 192 };
  const int64_t lanes = nest->schedule->lanes, vectors = (r->count + lanes - 1) / lanes;
  if (nest->schedule->streams && nest->inside == NULL) return false; /* they begin where a line of the cache does */
  return r->count >= lanes && vectors <= most_vectors && vectors * nest->schedule->weight <= most_in_all;
}

void ax_walk_short(ax_nest *nest, const ax_range *r, ax_leaf body) {
  LLVMBuilderRef b = nest->cg.builder;
  LLVMValueRef row = ax_nest_row_settled(nest);
  if (LLVMIsConstant(row)) { /* no condition on any other loop */
    walk_settled_row(nest, r->count, 1, body);
    return;
  }
  LLVMBasicBlockRef inside = new_block(nest), outside = new_block(nest), after = new_block(nest);
  LLVMBuildCondBr(b, row, inside, outside);
  LLVMPositionBuilderAtEnd(b, inside);
  walk_settled_row(nest, r->count, 1, body);
  LLVMBuildBr(b, after);
  LLVMPositionBuilderAtEnd(b, outside);
  walk_static(nest, r, 1, body);
  LLVMBuildBr(b, after);
  LLVMPositionBuilderAtEnd(b, after);
}

/* --- Guarded loads of sums --- */

/* The blocks of a row inside the box that are no part of its loop. */
static int64_t blocks_apart(const ax_nest *nest, int64_t extent, uint32_t block) {
  const int64_t step = block * (int64_t)nest->schedule->lanes, first = (nest->settled_first + step - 1) / step,
                end = nest->settled_end / step, blocks = (extent + step - 1) / step;
  return end > first ? blocks - (end - first) : blocks;
}

bool ax_walk_can_settle_sums(ax_nest *nest, const ax_range *r) {
  enum { most_apart = 4 };
  const bool unrolled = nest->inside != NULL && nest->inside->unrolled;
  const uint32_t block = nest->schedule->unroll;
  return !unrolled && r->count >= 0 && nest->schedule->kernel->store_count <= AX_MAX_SLOTS && vector_unrolled(nest) &&
         ax_nest_find_settled(nest) && blocks_apart(nest, r->count, block) <= most_apart;
}

/* Both ways add the same numbers to the same sums. */
void ax_walk_settled_sums(ax_nest *nest, const ax_range *r, ax_leaf body) {
  LLVMBuilderRef b = nest->cg.builder;
  LLVMBasicBlockRef inside = new_block(nest), outside = new_block(nest), after = new_block(nest), from[2];
  const uint32_t stores = nest->schedule->kernel->store_count;
  LLVMValueRef before[AX_MAX_SLOTS * AX_MAX_UNROLL], sums[AX_MAX_SLOTS * AX_MAX_UNROLL];
  memcpy(before, nest->accumulators, stores * AX_MAX_UNROLL * sizeof before[0]);
  LLVMBuildCondBr(b, ax_nest_row_settled(nest), inside, outside);
  LLVMPositionBuilderAtEnd(b, inside);
  walk_settled_row(nest, r->count, nest->schedule->unroll, body);
  from[0] = LLVMGetInsertBlock(b);
  LLVMBuildBr(b, after);
  memcpy(sums, nest->accumulators, stores * AX_MAX_UNROLL * sizeof sums[0]);
  memcpy(nest->accumulators, before, stores * AX_MAX_UNROLL * sizeof before[0]);
  LLVMPositionBuilderAtEnd(b, outside);
  walk_static(nest, r, nest->schedule->unroll, body);
  from[1] = LLVMGetInsertBlock(b);
  LLVMBuildBr(b, after);
  LLVMPositionBuilderAtEnd(b, after);
  for (uint32_t s = 0; s < stores; s++)
    for (uint32_t i = 0; i < carried(nest, s); i++) {
      LLVMValueRef *sum = ax_nest_accumulator(nest, s, i), both[] = {sums[s * AX_MAX_UNROLL + i], *sum};
      *sum = LLVMBuildPhi(b, LLVMTypeOf(*sum), "");
      LLVMAddIncoming(*sum, both, from, 2);
    }
}

void ax_walk_streamed(ax_nest *nest, const ax_range *r, ax_leaf body) {
  LLVMBuilderRef b = nest->cg.builder;
  LLVMTypeRef type = LLVMInt64TypeInContext(nest->cg.context);
  LLVMBasicBlockRef skip;
  const int64_t block = vector_unrolled(nest) ? nest->schedule->unroll : 1, step = block * (int64_t)nest->schedule->lanes;
  LLVMValueRef ends[] = {LLVMBuildAdd(b, r->lo, ax_nest_steps_to_line(nest, r->lo), ""), r->hi};
  LLVMValueRef first = ax_cg_intrinsic(&nest->cg, "llvm.smin", &type, 1, ends, 2);
  LLVMValueRef whole = LLVMBuildAnd(b, LLVMBuildSub(b, r->hi, first, ""), ax_nest_i64(nest, -step), ""),
               end = LLVMBuildAdd(b, first, whole, "");
  if (vector_unrolled(nest)) nest->instances = 1;
  walk_unsettled(nest, r, first, end, body);
  ax_walk_open_guard(nest, first, end, &skip);
  if (vector_unrolled(nest)) nest->instances = (uint32_t)block;
  nest->streaming = true;
  ax_walk_repeat(nest, first, end, step, false, body);
  nest->streaming = false;
  ax_walk_close_guard(nest, skip);
}
