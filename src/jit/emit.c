/* The loops of a kernel. Trip counts are constants except along the ranged dimension; a loop is entered only when it runs at least once,
   so each is a single block with its test at the end. */
#include "jit/nest.h"

#include <string.h>

enum { tile_elems_in_all = 4096, most_masked = 1 << 15 };

typedef struct range { /* lo .. hi; `count` is hi - lo where it is a constant, else -1 and a multiple of `multiple` */
  LLVMValueRef lo, hi;
  int64_t count, multiple;
} range;

typedef void (*leaf)(ax_nest *nest, LLVMValueRef index);

static LLVMValueRef i64(const ax_nest *nest, int64_t value) { return ax_cg_i64(&nest->cg, value); }

static range static_range(const ax_nest *nest, int64_t extent) {
  return (range){i64(nest, 0), i64(nest, extent), extent, extent};
}

static range loop_range(const ax_nest *nest, uint32_t loop) {
  const ax_loop *l = &nest->schedule->loops[loop];
  if (!l->ranged || nest->inside != NULL) return static_range(nest, l->extent);
  return (range){nest->begin, nest->end, -1, l->scale};
}

static LLVMBasicBlockRef new_block(const ax_nest *nest) {
  return LLVMAppendBasicBlockInContext(nest->cg.context, nest->cg.function, "");
}

/* --- One loop --- */

/* How many accumulators a store carries through the loops that are opened now; 0: none. */
static uint32_t carried(const ax_nest *nest, uint32_t store) {
  const ax_schedule *schedule = nest->schedule;
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
  LLVMValueRef next = LLVMBuildAdd(b, l->index, i64(nest, step), ""), phi = l->index;
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
static void repeat(ax_nest *nest, LLVMValueRef lo, LLVMValueRef hi, int64_t step, bool once, leaf body) {
  ax_nest_loop l = ax_nest_open_loop(nest, lo, once);
  body(nest, l.index);
  ax_nest_close_loop(nest, &l, hi, step);
}

static LLVMValueRef constant_mask(const ax_nest *nest, int64_t present) {
  LLVMValueRef lane[64];
  uint32_t lanes = nest->schedule->lanes;
  for (uint32_t i = 0; i < lanes; i++)
    lane[i] = LLVMConstInt(LLVMInt1TypeInContext(nest->cg.context), i < present, false);
  return LLVMConstVector(lane, lanes);
}

/* In a register from the start, where registers can hold masks: made in each iteration, it would go through half of a register, and so
   wait for whatever was in there. */
static void make_rest_mask(ax_nest *nest) {
  const ax_schedule *schedule = nest->schedule;
  int64_t rest = schedule->loops[schedule->vector].extent % schedule->lanes;
  if (nest->cg.vector_bytes < 64 || rest == 0 || schedule->loops[schedule->vector].ranged) return;
  nest->rest_mask = LLVMBuildFreeze(nest->cg.builder, constant_mask(nest, rest), "");
}

static LLVMValueRef add(const ax_nest *nest, LLVMValueRef a, int64_t b) {
  return LLVMBuildAdd(nest->cg.builder, a, i64(nest, b), "");
}

static bool vector_unrolled(const ax_nest *nest) { return nest->schedule->unrolled == nest->schedule->vector; }

static LLVMValueRef partial_mask(ax_nest *nest, LLVMValueRef present) {
  LLVMBuilderRef b = nest->cg.builder;
  uint32_t lanes = nest->schedule->lanes;
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
   halves the time to compile. Not for much data: masked stores of whole cache lines still fetch them first. */
static bool masks_are_cheap(const ax_nest *nest) {
  const ax_schedule *schedule = nest->schedule;
  if (nest->cg.vector_bytes < 64 || schedule->work > most_masked) return false;
  for (uint32_t a = 0; a < schedule->kernel->expr_count + schedule->kernel->store_count; a++) {
    const ax_access *access = &schedule->accesses[a];
    int64_t stride = access->stride[schedule->vector];
    bool short_element = ax_dtype_bytes(schedule->kernel->slots[access->slot].dtype) < 4,
         near = ((stride >= -1 && stride <= 1) || ax_stride_picks(stride, schedule->lanes)) && !ax_access_is_moved(access, schedule->vector);
    if (access->live && short_element && !near) return false;
  }
  return true;
}

/* lo < hi; masks all iterations. */
static void repeat_masked(ax_nest *nest, LLVMValueRef lo, LLVMValueRef hi, leaf body) {
  LLVMTypeRef type = LLVMInt64TypeInContext(nest->cg.context);
  ax_nest_loop l = ax_nest_open_loop(nest, lo, false);
  LLVMValueRef left[] = {LLVMBuildSub(nest->cg.builder, hi, l.index, ""), i64(nest, nest->schedule->lanes)};
  LLVMValueRef present = ax_cg_intrinsic(&nest->cg, "llvm.smin", &type, 1, left, 2);
  mask_first(nest, partial_mask(nest, present), present);
  body(nest, l.index);
  mask_first(nest, NULL, NULL);
  ax_nest_close_loop(nest, &l, hi, nest->schedule->lanes);
}

/* What is held in registers is found by number: no loop could do that. */
static void repeat_whole(ax_nest *nest, LLVMValueRef lo, int64_t whole, int64_t step, leaf body) {
  bool unrolled = nest->inside != NULL && nest->inside->unrolled;
  if (!unrolled && whole > 0) repeat(nest, lo, add(nest, lo, whole), step, whole == step, body);
  for (int64_t at = 0; unrolled && at < whole; at += step) body(nest, add(nest, lo, at));
}

/* Whole blocks, then one shorter block whose last vector may be partial. */
static void walk_static(ax_nest *nest, const range *r, uint32_t block, leaf body) {
  int64_t lanes = nest->schedule->lanes, step = block * lanes, whole = r->count / step * step, rest = r->count - whole;
  if (vector_unrolled(nest)) nest->instances = block;
  bool unrolled = nest->inside != NULL && nest->inside->unrolled;
  if (block == 1 && whole > 0 && rest > 0 && !nest->accumulating && !unrolled && masks_are_cheap(nest)) {
    repeat_masked(nest, r->lo, add(nest, r->lo, r->count), body);
    return;
  }
  repeat_whole(nest, r->lo, whole, step, body);
  if (rest == 0) return;
  if (vector_unrolled(nest)) nest->instances = (uint32_t)((rest + lanes - 1) / lanes);
  if (rest % lanes != 0) {
    bool made = nest->rest_mask != NULL && rest % lanes == nest->schedule->loops[nest->schedule->vector].extent % lanes;
    mask_first(nest, made ? nest->rest_mask : constant_mask(nest, rest % lanes), i64(nest, rest % lanes));
  }
  nest->present_count = rest % lanes;
  body(nest, add(nest, r->lo, whole));
  mask_first(nest, NULL, NULL);
}

/* A block that is skipped when lo = hi; `skip` gets what close_guard needs. */
static void open_guard(ax_nest *nest, LLVMValueRef lo, LLVMValueRef hi, LLVMBasicBlockRef *skip) {
  LLVMBasicBlockRef then = new_block(nest);
  *skip = new_block(nest);
  LLVMBuildCondBr(nest->cg.builder, LLVMBuildICmp(nest->cg.builder, LLVMIntSLT, lo, hi, ""), then, *skip);
  LLVMPositionBuilderAtEnd(nest->cg.builder, then);
}

static void close_guard(ax_nest *nest, LLVMBasicBlockRef skip) {
  LLVMBuildBr(nest->cg.builder, skip);
  LLVMPositionBuilderAtEnd(nest->cg.builder, skip);
}

/* As many steps, of a power of two, as fit; returns where they end. */
static LLVMValueRef walk_steps(ax_nest *nest, LLVMValueRef lo, LLVMValueRef hi, int64_t step, leaf body) {
  LLVMBuilderRef b = nest->cg.builder;
  LLVMBasicBlockRef skip;
  LLVMValueRef whole = LLVMBuildAnd(b, LLVMBuildSub(b, hi, lo, ""), i64(nest, -step), ""),
               end = LLVMBuildAdd(b, lo, whole, "");
  open_guard(nest, lo, end, &skip);
  repeat(nest, lo, end, step, false, body);
  close_guard(nest, skip);
  return end;
}

/* What no whole block covers: under masks all of it, or whole vectors and then one partial vector. */
static void walk_rest(ax_nest *nest, LLVMValueRef lo, const range *r, leaf body) {
  LLVMBasicBlockRef skip;
  bool partial = r->multiple % nest->schedule->lanes != 0, cheap = partial && masks_are_cheap(nest);
  if (!cheap) lo = walk_steps(nest, lo, r->hi, nest->schedule->lanes, body);
  if (!partial) return;
  open_guard(nest, lo, r->hi, &skip);
  if (cheap) {
    repeat_masked(nest, lo, r->hi, body);
  } else {
    LLVMValueRef present = LLVMBuildSub(nest->cg.builder, r->hi, lo, "");
    mask_first(nest, partial_mask(nest, present), present);
    body(nest, lo);
    mask_first(nest, NULL, NULL);
  }
  close_guard(nest, skip);
}

static void walk_dynamic(ax_nest *nest, const range *r, uint32_t block, leaf body) {
  int64_t step = block * (int64_t)nest->schedule->lanes;
  LLVMValueRef lo = r->lo;
  if (vector_unrolled(nest)) nest->instances = block;
  if (block > 1) lo = walk_steps(nest, lo, r->hi, step, body);
  if (vector_unrolled(nest)) nest->instances = 1;
  if (block == 1 || r->multiple % step != 0) walk_rest(nest, lo, r, body);
}

static void walk(ax_nest *nest, const range *r, leaf body) {
  uint32_t block = vector_unrolled(nest) ? nest->schedule->unroll : 1;
  if (r->count >= 0)
    walk_static(nest, r, block, body);
  else
    walk_dynamic(nest, r, block, body);
}

/* --- Guarded loads --- */

/* The steps before the settled ones and those after them, by one code; both may be none. */
static void walk_unsettled(ax_nest *nest, const range *r, LLVMValueRef first, LLVMValueRef end, leaf body) {
  LLVMBuilderRef b = nest->cg.builder;
  LLVMBasicBlockRef skip;
  ax_nest_loop side = ax_nest_open_loop(nest, i64(nest, 0), false);
  LLVMValueRef before = LLVMBuildICmp(b, LLVMIntSLT, side.index, i64(nest, 1), "");
  LLVMValueRef lo = LLVMBuildSelect(b, before, r->lo, end, ""), hi = LLVMBuildSelect(b, before, first, r->hi, "");
  open_guard(nest, lo, hi, &skip);
  repeat_masked(nest, lo, hi, body);
  close_guard(nest, skip);
  ax_nest_close_loop(nest, &side, i64(nest, 2), 1);
}

/* Whole vectors of settled steps, a multiple of the lanes from where the range begins, and all others under masks. Nothing is accumulated. */
static void walk_guarded(ax_nest *nest, const range *r, leaf body) {
  LLVMBuilderRef b = nest->cg.builder;
  LLVMTypeRef type = LLVMInt64TypeInContext(nest->cg.context);
  LLVMBasicBlockRef skip;
  int64_t lanes = nest->schedule->lanes;
  LLVMValueRef row = ax_nest_row_settled(nest), zero = i64(nest, 0);
  LLVMValueRef late[] = {LLVMBuildSub(b, i64(nest, nest->settled_first + lanes - 1), r->lo, ""), zero};
  LLVMValueRef before = LLVMBuildAnd(b, ax_cg_intrinsic(&nest->cg, "llvm.smax", &type, 1, late, 2), i64(nest, -lanes), "");
  LLVMValueRef ends[] = {i64(nest, nest->settled_end), r->hi}, first = LLVMBuildAdd(b, r->lo, before, "");
  LLVMValueRef count[] = {LLVMBuildSub(b, ax_cg_intrinsic(&nest->cg, "llvm.smin", &type, 1, ends, 2), first, ""), zero};
  LLVMValueRef whole = LLVMBuildAnd(b, ax_cg_intrinsic(&nest->cg, "llvm.smax", &type, 1, count, 2), i64(nest, -lanes), "");
  whole = LLVMBuildSelect(b, row, whole, zero, "");
  first = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, zero, whole, ""), first, r->hi, "");
  LLVMValueRef end = LLVMBuildAdd(b, first, whole, "");
  if (vector_unrolled(nest)) nest->instances = 1;
  walk_unsettled(nest, r, first, end, body);
  open_guard(nest, first, end, &skip);
  nest->settled = true;
  repeat(nest, first, end, lanes, false, body);
  nest->settled = false;
  close_guard(nest, skip);
}

/* --- Reduced loops --- */

typedef void (*inner)(ax_nest *nest, const range *tile);

static void reduced_loops(ax_nest *nest, uint32_t loop_id, uint32_t end, const range *tile, inner body);

static void one_trip(ax_nest *nest, uint32_t loop_id, LLVMValueRef index, uint32_t end, const range *tile, inner body) {
  ax_nest_enter(nest, loop_id, index);
  reduced_loops(nest, loop_id + 1, end, tile, body);
  ax_nest_leave(nest);
}

/* `unroll` rows at a time, then the few that are left together. */
static void rows(ax_nest *nest, uint32_t loop_id, uint32_t end, const range *tile, inner body) {
  int64_t extent = nest->schedule->loops[loop_id].extent, step = nest->schedule->unroll, whole = extent / step * step;
  nest->instances = (uint32_t)step;
  if (whole > 0) {
    ax_nest_loop l = ax_nest_open_loop(nest, i64(nest, 0), whole == step);
    one_trip(nest, loop_id, l.index, end, tile, body);
    ax_nest_close_loop(nest, &l, i64(nest, whole), step);
  }
  nest->instances = (uint32_t)(extent - whole);
  if (whole < extent) one_trip(nest, loop_id, i64(nest, whole), end, tile, body);
  nest->instances = 1;
}

static void reduced_loops(ax_nest *nest, uint32_t loop_id, uint32_t end, const range *tile, inner body) {
  const ax_schedule *schedule = nest->schedule;
  if (loop_id == end) {
    body(nest, tile);
    return;
  }
  if (loop_id == schedule->unrolled) {
    rows(nest, loop_id, end, tile, body);
    return;
  }
  ax_nest_loop l = ax_nest_open_loop(nest, i64(nest, 0), schedule->loops[loop_id].extent == 1);
  one_trip(nest, loop_id, l.index, end, tile, body);
  ax_nest_close_loop(nest, &l, i64(nest, schedule->loops[loop_id].extent), 1);
}

/* --- The shapes --- */

static void enter_and_accumulate(ax_nest *nest, LLVMValueRef index) {
  ax_nest_enter(nest, nest->schedule->vector, index);
  ax_nest_accumulate(nest);
  ax_nest_leave(nest);
}

static void walk_and_accumulate(ax_nest *nest, const range *r) { walk(nest, r, enter_and_accumulate); }

static void emit_lanes(ax_nest *nest) {
  range r = loop_range(nest, nest->schedule->vector);
  bool unrolled = nest->inside != NULL && nest->inside->unrolled;
  if (!nest->schedule->reduces && !unrolled && ax_nest_find_settled(nest) && nest->settled_end - nest->settled_first >= 2 * (int64_t)nest->schedule->lanes) {
    walk_guarded(nest, &r, enter_and_accumulate);
    return;
  }
  if (nest->schedule->reduces) ax_nest_init(nest);
  reduced_loops(nest, nest->schedule->outer, nest->schedule->vector, &r, walk_and_accumulate);
  if (nest->schedule->reduces) ax_nest_finish(nest);
}

static void accumulate(ax_nest *nest, const range *unused) {
  (void)unused;
  ax_nest_accumulate(nest);
}

static void results_in_registers(ax_nest *nest, LLVMValueRef index) {
  ax_nest_enter(nest, nest->schedule->vector, index);
  ax_nest_init(nest);
  reduced_loops(nest, nest->schedule->vector + 1, nest->schedule->loop_count, NULL, accumulate);
  ax_nest_finish(nest);
  ax_nest_leave(nest);
}

static void emit_block(ax_nest *nest) {
  range r = loop_range(nest, nest->schedule->vector);
  walk(nest, &r, results_in_registers);
}

/* Tiles of even size, all stores' together small enough for the first-level cache and for any thread's stack. Those of RUNS have a vector a row. */
static int64_t tile_elems(const ax_nest *nest) {
  const ax_schedule *schedule = nest->schedule;
  int64_t lanes = schedule->lanes, extent = schedule->shape == AX_NEST_RUNS ? schedule->loops[schedule->listed].extent * lanes : schedule->loops[schedule->vector].extent;
  int64_t stores = nest->schedule->kernel->store_count, most = tile_elems_in_all / (stores < 2 ? 2 : stores);
  if (most < lanes) most = lanes;
  int64_t tiles = (extent + most - 1) / most, even = (extent + tiles - 1) / tiles;
  return (even + lanes - 1) / lanes * lanes;
}

static void fill_tile(ax_nest *nest, LLVMValueRef index) {
  const ax_loop_kernel *kernel = nest->schedule->kernel;
  for (uint32_t s = 0; s < kernel->store_count; s++) {
    if (kernel->stores[s].reduce == AX_SCALAR_NONE) continue;
    ax_dtype dtype = ax_nest_accumulator_dtype(nest, s);
    LLVMTypeRef element = ax_cg_memory(&nest->cg, dtype, 1);
    LLVMValueRef pointer = LLVMBuildGEP2(nest->cg.builder, element, nest->tiles[s], &index, 1, "");
    LLVMValueRef identity = ax_cg_identity(&nest->cg, kernel->stores[s].reduce, dtype, nest->schedule->lanes);
    identity = ax_cg_to_memory(&nest->cg, dtype, identity, nest->schedule->lanes);
    ax_nest_store_lanes(nest, element, pointer, 1, NULL, identity);
  }
}

static void finish_along(ax_nest *nest, uint32_t loop, LLVMValueRef index) {
  nest->index[loop] = index;
  ax_nest_step_pointers(nest, loop, index);
  nest->level++;
  ax_nest_finish(nest);
  nest->level--;
}

static void finish_tile(ax_nest *nest, LLVMValueRef index) { finish_along(nest, nest->schedule->vector, index); }

static range tile_range(ax_nest *nest, const range *all, LLVMValueRef lo, int64_t elems) {
  if (all->count >= 0 && all->count % elems == 0) return (range){lo, add(nest, lo, elems), elems, elems};
  LLVMTypeRef type = LLVMInt64TypeInContext(nest->cg.context);
  LLVMValueRef ends[] = {add(nest, lo, elems), all->hi};
  LLVMValueRef hi = ax_cg_intrinsic(&nest->cg, "llvm.smin", &type, 1, ends, 2);
  return (range){lo, hi, -1, all->multiple};
}

static void emit_tile(ax_nest *nest) {
  const ax_schedule *schedule = nest->schedule;
  range all = loop_range(nest, schedule->vector);
  int64_t elems = tile_elems(nest), lanes = schedule->lanes;
  ax_nest_loop l = ax_nest_open_loop(nest, all.lo, all.count == elems);
  range tile = tile_range(nest, &all, l.index, elems);
  nest->tile_start = l.index;
  repeat(nest, i64(nest, 0), LLVMBuildSub(nest->cg.builder, tile.hi, tile.lo, ""), lanes, tile.count == lanes,
         fill_tile);
  reduced_loops(nest, schedule->outer, schedule->vector, &tile, walk_and_accumulate);
  walk(nest, &tile, finish_tile);
  ax_nest_close_loop(nest, &l, all.hi, elems);
}

/* A block of rows along p, whose sums the tile has. */
static void rows_of_runs(ax_nest *nest, const range *block) {
  uint32_t loop = nest->schedule->listed;
  range r = loop_range(nest, nest->schedule->vector);
  ax_nest_loop l = ax_nest_open_loop(nest, block->lo, block->count == 1);
  ax_nest_enter(nest, loop, l.index);
  ax_nest_take_up(nest);
  walk(nest, &r, enter_and_accumulate);
  ax_nest_put_down(nest);
  ax_nest_leave(nest);
  ax_nest_close_loop(nest, &l, block->hi, 1);
}

static void emit_runs(ax_nest *nest) {
  const ax_schedule *schedule = nest->schedule;
  range all = loop_range(nest, schedule->listed);
  int64_t lanes = schedule->lanes, rows = tile_elems(nest) / lanes;
  ax_nest_loop l = ax_nest_open_loop(nest, all.lo, all.count == rows);
  range block = tile_range(nest, &all, l.index, rows);
  LLVMValueRef count = LLVMBuildSub(nest->cg.builder, block.hi, block.lo, "");
  nest->tile_start = l.index;
  repeat(nest, i64(nest, 0), LLVMBuildMul(nest->cg.builder, count, i64(nest, lanes), ""), lanes, block.count == 1, fill_tile);
  reduced_loops(nest, schedule->outer, schedule->listed, &block, rows_of_runs);
  ax_nest_loop row = ax_nest_open_loop(nest, block.lo, block.count == 1);
  finish_along(nest, schedule->listed, row.index);
  ax_nest_close_loop(nest, &row, block.hi, 1);
  ax_nest_close_loop(nest, &l, all.hi, rows);
}

static void transposed_square(ax_nest *nest, LLVMValueRef index) {
  uint32_t innermost = nest->schedule->loop_count - 1;
  ax_nest_enter(nest, nest->schedule->vector, index);
  ax_nest_fill_squares(nest);
  ax_nest_loop l = ax_nest_open_loop(nest, nest->block_lo, false);
  ax_nest_enter(nest, innermost, l.index);
  ax_nest_leave(nest);
  ax_nest_close_loop(nest, &l, nest->block_hi, 1);
  ax_nest_leave(nest);
}

/* Squares side by side along the innermost loop, and below each other along the vector loop. They reach over the end of a range, but never of the
   extent: the last one begins early enough. */
static void squares(ax_nest *nest, const range *along, const range *across) {
  int64_t lanes = nest->schedule->lanes, extent = nest->schedule->loops[nest->schedule->loop_count - 1].extent;
  LLVMTypeRef type = LLVMInt64TypeInContext(nest->cg.context);
  ax_nest_loop l = ax_nest_open_loop(nest, along->lo, along->count == lanes);
  range block = tile_range(nest, along, l.index, lanes);
  LLVMValueRef starts[] = {l.index, i64(nest, extent - lanes)};
  nest->tile_start = ax_cg_intrinsic(&nest->cg, "llvm.smin", &type, 1, starts, 2);
  nest->block_lo = block.lo;
  nest->block_hi = block.hi;
  walk(nest, across, transposed_square);
  ax_nest_close_loop(nest, &l, along->hi, lanes);
}

/* Large squares in blocks, so that what is near in memory is come to soon on both sides; strips of small ones are faster from end to end. */
static void emit_turn(ax_nest *nest) {
  const ax_schedule *schedule = nest->schedule;
  int64_t edge = AX_SQUARES_A_BLOCK * (int64_t)schedule->lanes;
  range along = loop_range(nest, schedule->loop_count - 1), across = loop_range(nest, schedule->vector);
  if (schedule->lanes <= 16) {
    squares(nest, &along, &across);
    return;
  }
  bool narrow = along.count >= 0 && along.count <= edge, low = across.count >= 0 && across.count <= edge;
  ax_nest_loop a = ax_nest_open_loop(nest, along.lo, narrow);
  range columns = narrow ? along : tile_range(nest, &along, a.index, edge);
  ax_nest_loop b = ax_nest_open_loop(nest, across.lo, low);
  range rows = low ? across : tile_range(nest, &across, b.index, edge);
  squares(nest, &columns, &rows);
  ax_nest_close_loop(nest, &b, across.hi, edge);
  ax_nest_close_loop(nest, &a, along.hi, edge);
}

/* Whole blocks, then rows. */
static void emit_narrow(ax_nest *nest) {
  const ax_schedule *schedule = nest->schedule;
  range rows = loop_range(nest, schedule->outer), last = static_range(nest, schedule->loops[schedule->vector].extent);
  LLVMBasicBlockRef skip;
  ax_nest_begin_narrow(nest);
  LLVMValueRef done = walk_steps(nest, rows.lo, rows.hi, schedule->lanes, ax_nest_narrow_block);
  ax_nest_end_narrow(nest);
  if (rows.multiple % schedule->lanes == 0) return;
  open_guard(nest, done, rows.hi, &skip);
  ax_nest_loop l = ax_nest_open_loop(nest, done, false);
  one_trip(nest, schedule->outer, l.index, schedule->vector, &last, walk_and_accumulate);
  ax_nest_close_loop(nest, &l, rows.hi, 1);
  close_guard(nest, skip);
}

static void parallel_loops(ax_nest *nest, uint32_t loop_id);

static void one_loop(ax_nest *nest, uint32_t loop_id, range r) {
  ax_nest_loop l = ax_nest_open_loop(nest, r.lo, r.count == 1);
  ax_nest_enter(nest, loop_id, l.index);
  parallel_loops(nest, loop_id + 1);
  ax_nest_leave(nest);
  ax_nest_close_loop(nest, &l, r.hi, 1);
}

/* The loop, once for each block of the next one. */
static void in_blocks(ax_nest *nest, uint32_t loop_id) {
  int64_t step = nest->schedule->blocked;
  range next = loop_range(nest, loop_id + 1);
  ax_nest_loop l = ax_nest_open_loop(nest, next.lo, false);
  range block = tile_range(nest, &next, l.index, step);
  nest->block_lo = block.lo;
  nest->block_hi = block.hi;
  one_loop(nest, loop_id, loop_range(nest, loop_id));
  ax_nest_close_loop(nest, &l, next.hi, step);
}

static void parallel_loops(ax_nest *nest, uint32_t loop_id) {
  if (loop_id == nest->schedule->outer) {
    switch (nest->schedule->shape) {
      case AX_NEST_LANES:
        emit_lanes(nest);
        break;
      case AX_NEST_TILE:
        emit_tile(nest);
        break;
      case AX_NEST_RUNS:
        emit_runs(nest);
        break;
      case AX_NEST_NARROW:
        emit_narrow(nest);
        break;
      case AX_NEST_TRANSPOSE:
        emit_turn(nest);
        break;
      case AX_NEST_BLOCK:
      case AX_NEST_STRIP:
        emit_block(nest);
    }
    return;
  }
  if (nest->schedule->blocked > 0 && loop_id + 2 == nest->schedule->outer) {
    in_blocks(nest, loop_id);
    return;
  }
  bool in_block = nest->schedule->blocked > 0 && loop_id + 1 == nest->schedule->outer;
  one_loop(nest, loop_id, in_block ? (range){nest->block_lo, nest->block_hi, -1, 1} : loop_range(nest, loop_id));
}

/* --- The function --- */

static void begin_function(ax_nest *nest, const char *name) {
  ax_cg_begin_function(&nest->cg, name);
  nest->slots = LLVMGetParam(nest->cg.function, 0);
  nest->coordinates = LLVMGetParam(nest->cg.function, 1);
  nest->begin = LLVMGetParam(nest->cg.function, 2);
  nest->end = LLVMGetParam(nest->cg.function, 3);
}

static void load_slot_bases(ax_nest *nest) {
  const ax_schedule *schedule = nest->schedule;
  LLVMTypeRef pointer = LLVMPointerTypeInContext(nest->cg.context, 0);
  for (uint32_t a = 0; a < schedule->kernel->expr_count + schedule->kernel->store_count; a++) {
    uint32_t slot = schedule->accesses[a].slot;
    if (!schedule->accesses[a].live || nest->slot_bases[slot] != NULL) continue;
    LLVMValueRef index = i64(nest, slot);
    LLVMValueRef place = LLVMBuildGEP2(nest->cg.builder, pointer, nest->slots, &index, 1, "");
    nest->slot_bases[slot] = LLVMBuildLoad2(nest->cg.builder, pointer, place, "");
  }
}

static void allocate_tiles(ax_nest *nest) {
  const ax_loop_kernel *kernel = nest->schedule->kernel;
  for (uint32_t s = 0; s < kernel->store_count; s++) {
    if (kernel->stores[s].reduce == AX_SCALAR_NONE) continue;
    ax_dtype dtype = ax_nest_accumulator_dtype(nest, s);
    LLVMTypeRef type = LLVMArrayType2(ax_cg_memory(&nest->cg, dtype, 1), (uint64_t)tile_elems(nest));
    nest->tiles[s] = ax_cg_stack(&nest->cg, type);
  }
}

/* Ranges are in iterations of the loop that carries the ranged dimension. */
static void scale_range(ax_nest *nest) {
  for (uint32_t l = 0; l < nest->schedule->loop_count; l++) {
    if (!nest->schedule->loops[l].ranged || nest->schedule->loops[l].scale == 1) continue;
    LLVMValueRef scale = i64(nest, nest->schedule->loops[l].scale);
    nest->begin = LLVMBuildMul(nest->cg.builder, nest->begin, scale, "");
    nest->end = LLVMBuildMul(nest->cg.builder, nest->end, scale, "");
  }
}

static bool is_ranged(const ax_schedule *schedule) {
  for (uint32_t l = 0; l < schedule->loop_count; l++)
    if (schedule->loops[l].ranged) return true;
  return false;
}

static void emit_body(ax_nest *nest) {
  LLVMBasicBlockRef skip = NULL;
  if (nest->schedule->shape == AX_NEST_TILE || nest->schedule->shape == AX_NEST_RUNS) allocate_tiles(nest);
  if (nest->schedule->shape == AX_NEST_TRANSPOSE) ax_nest_allocate_squares(nest);
  if (nest->inside == NULL) {
    if (is_ranged(nest->schedule)) open_guard(nest, nest->begin, nest->end, &skip);
    scale_range(nest);
    load_slot_bases(nest);
  }
  make_rest_mask(nest);
  ax_nest_find_divisors(nest);
  ax_nest_entry(nest);
  parallel_loops(nest, 0);
  if (skip != NULL) close_guard(nest, skip);
}

static bool allocate(ax_arena *arena, ax_nest *nest) {
  const ax_loop_kernel *kernel = nest->schedule->kernel;
  size_t word = sizeof(LLVMValueRef), accesses = kernel->expr_count + kernel->store_count;
  size_t instances = nest->schedule->narrow > AX_MAX_UNROLL ? nest->schedule->narrow : AX_MAX_UNROLL;
  nest->slot_bases = ax_arena_alloc(arena, kernel->slot_count * word);
  nest->pointers = ax_arena_alloc(arena, (nest->schedule->loop_count + 1) * accesses * word);
  nest->pairs = ax_arena_alloc(arena, accesses * word);
  nest->values = ax_arena_alloc(arena, instances * (size_t)kernel->expr_count * word);
  nest->reciprocals = ax_arena_alloc(arena, 2 * instances * (size_t)kernel->expr_count * word);
  nest->is_divisor = ax_arena_alloc(arena, kernel->expr_count + (size_t)1);
  nest->accumulators = ax_arena_alloc(arena, AX_MAX_UNROLL * (size_t)kernel->store_count * word);
  nest->tiles = ax_arena_alloc(arena, accesses * word);
  nest->holds = ax_arena_alloc(arena, kernel->expr_count + (size_t)1);
  return nest->holds && nest->slot_bases && nest->pointers && nest->pairs && nest->values && nest->reciprocals && nest->is_divisor && nest->accumulators && nest->tiles;
}

/* Nothing to reduce over: the results are the identities, stored by a kernel over the other dimensions. */
static ax_loop_kernel *identities(ax_arena *arena, const ax_loop_kernel *kernel) {
  ax_loop_kernel *fill = ax_kernel_create(arena, kernel->rank - kernel->reduce_rank, 0, kernel->dims);
  if (fill == NULL) return NULL;
  fill->ranged = kernel->ranged;
  fill->slots = kernel->slots;
  fill->slot_count = fill->slot_capacity = kernel->slot_count;
  fill->exprs = kernel->exprs; /* for dynamic starts; at its capacity, so adding to it copies it first */
  fill->expr_count = fill->expr_capacity = kernel->expr_count;
  for (uint32_t i = 0; i < kernel->store_count; i++) {
    const ax_store *store = &kernel->stores[i];
    ax_dtype dtype = kernel->slots[store->slot].dtype;
    if (store->reduce == AX_SCALAR_NONE) continue;
    ax_ex value = ax_kernel_const(fill, dtype, (int64_t)ax_cg_identity_bits(store->reduce, dtype));
    ax_kernel_store(fill, store->slot, store->at, value, AX_SCALAR_NONE);
  }
  return fill->failed ? NULL : fill;
}

static bool any_empty(const int64_t *dims, uint32_t count) {
  for (uint32_t d = 0; d < count; d++)
    if (dims[d] == 0) return true;
  return false;
}

/* The schedule of what there is to do; NULL: nothing. */
static ax_status schedule_of(ax_arena *arena, const ax_loop_kernel *kernel, uint32_t vector_bytes, ax_schedule **out) {
  uint32_t parallel = kernel->rank - kernel->reduce_rank;
  *out = NULL;
  if (any_empty(kernel->dims, parallel)) return AX_OK;
  if (any_empty(kernel->dims + parallel, kernel->reduce_rank)) kernel = identities(arena, kernel);
  return kernel != NULL ? ax_schedule_create(arena, kernel, vector_bytes, out) : ax_out_of_memory(sizeof *kernel);
}

static ax_status begin(ax_arena *arena, ax_nest *nest, const ax_schedule *schedule) {
  nest->schedule = schedule;
  ax_nest_end_narrow(nest);
  return allocate(arena, nest) ? AX_OK : ax_out_of_memory(AX_MAX_UNROLL * schedule->kernel->expr_count * sizeof(LLVMValueRef));
}

ax_status ax_nest_emit(ax_arena *arena, const ax_codegen *cg, const ax_loop_kernel *kernel, const char *name) {
  ax_nest nest = {.cg = *cg, .instances = 1};
  ax_schedule *schedule;
  AX_TRY(schedule_of(arena, kernel, cg->vector_bytes, &schedule));
  if (schedule != NULL) AX_TRY(begin(arena, &nest, schedule));
  begin_function(&nest, name);
  if (schedule != NULL) emit_body(&nest);
  LLVMBuildRetVoid(cg->builder);
  return AX_OK;
}

static bool reduces(const ax_loop_kernel *kernel) {
  for (uint32_t i = 0; i < kernel->store_count; i++)
    if (kernel->stores[i].reduce != AX_SCALAR_NONE) return true;
  return false;
}

/* Nobody asks for a range, so that dimensions of size 1 need no loop. A reduction keeps it all the same: its order of additions is that of its
   schedule. */
ax_status ax_nest_schedule_inside(ax_arena *arena, const ax_loop_kernel *kernel, uint32_t vector_bytes, ax_schedule **out) {
  ax_loop_kernel *whole = ax_arena_copy(arena, kernel, sizeof *whole);
  if (whole == NULL) return ax_out_of_memory(sizeof *whole);
  if (!reduces(kernel)) whole->ranged = UINT32_MAX;
  return schedule_of(arena, whole, vector_bytes, out);
}

ax_status ax_nest_emit_inside(ax_arena *arena, const ax_codegen *cg, const ax_schedule *schedule, const ax_nest_inside *inside) {
  ax_nest nest = {.cg = *cg, .instances = 1, .inside = inside, .coordinates = inside->coordinates};
  AX_TRY(begin(arena, &nest, schedule));
  memcpy(nest.slot_bases, inside->bases, schedule->kernel->slot_count * sizeof inside->bases[0]);
  emit_body(&nest);
  return AX_OK;
}
