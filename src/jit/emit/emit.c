/* The loops of a kernel. Trip counts are constants except along the ranged dimension; a loop is entered only when it runs at least
   once, so each is a single block with its test at the end. */
#include "jit/emit/walk.h"

#include <string.h>

enum { tile_elems_in_all = 4096 };

/* --- Reduced loops --- */

typedef void (*inner)(ax_nest *nest, const ax_range *tile);

static void reduced_loops(ax_nest *nest, uint32_t loop_id, uint32_t end, const ax_range *tile, inner body);

static void one_trip(ax_nest *nest, uint32_t loop_id, LLVMValueRef index, uint32_t end, const ax_range *tile, inner body) {
  ax_nest_enter(nest, loop_id, index);
  reduced_loops(nest, loop_id + 1, end, tile, body);
  ax_nest_leave(nest);
}

/* `unroll` rows at a time, then the few that are left together. */
static void rows(ax_nest *nest, uint32_t loop_id, uint32_t end, const ax_range *tile, inner body) {
  int64_t extent = nest->schedule->loops[loop_id].extent, step = nest->schedule->unroll, whole = extent / step * step;
  nest->instances = (uint32_t)step;
  if (whole > 0) {
    ax_nest_loop l = ax_nest_open_loop(nest, ax_nest_i64(nest, 0), whole == step);
    one_trip(nest, loop_id, l.index, end, tile, body);
    ax_nest_close_loop(nest, &l, ax_nest_i64(nest, whole), step);
  }
  nest->instances = (uint32_t)(extent - whole);
  if (whole < extent) one_trip(nest, loop_id, ax_nest_i64(nest, whole), end, tile, body);
  nest->instances = 1;
}

/* Some steps of the last reduced loop, whose terms are added up in their own precision before they are added to wider sums. */
static void few_steps(ax_nest *nest, uint32_t loop_id, LLVMValueRef lo, int64_t count, const ax_range *tile, inner body) {
  LLVMValueRef before[AX_MAX_SLOTS * AX_MAX_UNROLL];
  memcpy(before, nest->accumulators, nest->schedule->kernel->store_count * AX_MAX_UNROLL * sizeof before[0]);
  ax_nest_begin_few(nest);
  ax_nest_loop l = ax_nest_open_loop(nest, lo, count == 1);
  one_trip(nest, loop_id, l.index, loop_id + 1, tile, body);
  ax_nest_close_loop(nest, &l, ax_nest_add(nest, lo, count), 1);
  ax_nest_end_few(nest, before);
}

static void few_by_few(ax_nest *nest, uint32_t loop_id, const ax_range *tile, inner body) {
  const int64_t extent = nest->schedule->loops[loop_id].extent, whole = extent / AX_FEW_ADDITIONS * AX_FEW_ADDITIONS;
  if (whole > 0) {
    ax_nest_loop l = ax_nest_open_loop(nest, ax_nest_i64(nest, 0), whole == AX_FEW_ADDITIONS);
    few_steps(nest, loop_id, l.index, AX_FEW_ADDITIONS, tile, body);
    ax_nest_close_loop(nest, &l, ax_nest_i64(nest, whole), AX_FEW_ADDITIONS);
  }
  if (whole < extent) few_steps(nest, loop_id, ax_nest_i64(nest, whole), extent - whole, tile, body);
}

static void reduced_loops(ax_nest *nest, uint32_t loop_id, uint32_t end, const ax_range *tile, inner body) {
  const ax_nest_schedule *schedule = nest->schedule;
  if (loop_id == end) {
    body(nest, tile);
    return;
  }
  if (loop_id == schedule->unrolled) {
    rows(nest, loop_id, end, tile, body);
    return;
  }
  const bool few = schedule->kernel->store_count <= AX_MAX_SLOTS; /* few_steps has room for the sums of so many */
  if (schedule->shape == AX_NEST_BLOCK && schedule->wide && !schedule->running && few && loop_id + 1 == end) {
    few_by_few(nest, loop_id, tile, body);
    return;
  }
  ax_nest_loop l = ax_nest_open_loop(nest, ax_nest_i64(nest, 0), schedule->loops[loop_id].extent == 1);
  one_trip(nest, loop_id, l.index, end, tile, body);
  ax_nest_close_loop(nest, &l, ax_nest_i64(nest, schedule->loops[loop_id].extent), 1);
}

/* --- The shapes --- */

static void enter_and_accumulate(ax_nest *nest, LLVMValueRef index) {
  ax_nest_enter(nest, nest->schedule->vector, index);
  ax_nest_accumulate(nest);
  ax_nest_leave(nest);
}

static void walk_and_accumulate(ax_nest *nest, const ax_range *r) { ax_nest_walk(nest, r, enter_and_accumulate); }

/* A row, added to the sums that loops carry around. */
static void add_row(ax_nest *nest, const ax_range *r) {
  if (nest->accumulating && ax_walk_can_settle_sums(nest, r)) ax_walk_settled_sums(nest, r, enter_and_accumulate);
  else ax_nest_walk(nest, r, enter_and_accumulate);
}

static void emit_lanes(ax_nest *nest) {
  ax_range r = ax_range_of_loop(nest, nest->schedule->vector);
  bool unrolled = nest->inside != NULL && nest->inside->unrolled;
  if (!nest->schedule->reduces && !unrolled && ax_nest_find_settled(nest)) {
    const bool is_short = ax_walk_is_short(nest, &r);
    if (is_short || nest->settled_end - nest->settled_first >= 2 * (int64_t)nest->schedule->lanes) {
      (is_short ? ax_walk_short : ax_walk_guarded)(nest, &r, enter_and_accumulate);
      return;
    }
  }
  if (nest->schedule->streams && nest->inside == NULL) {
    ax_walk_streamed(nest, &r, enter_and_accumulate);
    return;
  }
  if (nest->schedule->reduces) ax_nest_init(nest);
  reduced_loops(nest, nest->schedule->outer, nest->schedule->vector, &r, add_row);
  if (nest->schedule->reduces) ax_nest_finish(nest);
}

static void accumulate(ax_nest *nest, const ax_range *unused) {
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
  ax_range r = ax_range_of_loop(nest, nest->schedule->vector);
  ax_nest_walk(nest, &r, results_in_registers);
}

/* Tiles of even size, all stores' together small enough for the first-level cache and for any thread's stack. Those of RUNS have a
   vector a row. */
static int64_t tile_elems(const ax_nest *nest) {
  const ax_nest_schedule *schedule = nest->schedule;
  int64_t lanes = schedule->lanes, extent = schedule->shape == AX_NEST_RUNS ? schedule->loops[schedule->listed].extent * lanes
                                                                            : schedule->loops[schedule->vector].extent;
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

static ax_range tile_range(ax_nest *nest, const ax_range *all, LLVMValueRef lo, int64_t elems) {
  if (all->count >= 0 && all->count % elems == 0) return (ax_range){lo, ax_nest_add(nest, lo, elems), elems, elems};
  LLVMTypeRef type = LLVMInt64TypeInContext(nest->cg.context);
  LLVMValueRef ends[] = {ax_nest_add(nest, lo, elems), all->hi};
  LLVMValueRef hi = ax_cg_intrinsic(&nest->cg, "llvm.smin", &type, 1, ends, 2);
  return (ax_range){lo, hi, -1, all->multiple};
}

static void emit_tile(ax_nest *nest) {
  const ax_nest_schedule *schedule = nest->schedule;
  ax_range all = ax_range_of_loop(nest, schedule->vector);
  int64_t elems = tile_elems(nest), lanes = schedule->lanes;
  ax_nest_loop l = ax_nest_open_loop(nest, all.lo, all.count == elems);
  ax_range tile = tile_range(nest, &all, l.index, elems);
  nest->tile_start = l.index;
  ax_walk_repeat(nest, ax_nest_i64(nest, 0), LLVMBuildSub(nest->cg.builder, tile.hi, tile.lo, ""), lanes, tile.count == lanes,
         fill_tile);
  reduced_loops(nest, schedule->outer, schedule->vector, &tile, walk_and_accumulate);
  if (!schedule->running) ax_nest_walk(nest, &tile, finish_tile);
  ax_nest_close_loop(nest, &l, all.hi, elems);
}

/* A block of rows along p, whose sums the tile has. */
static void rows_of_runs(ax_nest *nest, const ax_range *block) {
  uint32_t loop = nest->schedule->listed;
  ax_range r = ax_range_of_loop(nest, nest->schedule->vector);
  ax_nest_loop l = ax_nest_open_loop(nest, block->lo, block->count == 1);
  ax_nest_enter(nest, loop, l.index);
  ax_nest_take_up(nest);
  add_row(nest, &r);
  ax_nest_put_down(nest);
  ax_nest_leave(nest);
  ax_nest_close_loop(nest, &l, block->hi, 1);
}

static void emit_runs(ax_nest *nest) {
  const ax_nest_schedule *schedule = nest->schedule;
  ax_range all = ax_range_of_loop(nest, schedule->listed);
  int64_t lanes = schedule->lanes, rows = tile_elems(nest) / lanes;
  ax_nest_loop l = ax_nest_open_loop(nest, all.lo, all.count == rows);
  ax_range block = tile_range(nest, &all, l.index, rows);
  LLVMValueRef count = LLVMBuildSub(nest->cg.builder, block.hi, block.lo, "");
  nest->tile_start = l.index;
  ax_walk_repeat(nest, ax_nest_i64(nest, 0), LLVMBuildMul(nest->cg.builder, count, ax_nest_i64(nest, lanes), ""), lanes,
                 block.count == 1, fill_tile);
  reduced_loops(nest, schedule->outer, schedule->listed, &block, rows_of_runs);
  ax_nest_loop row = ax_nest_open_loop(nest, block.lo, block.count == 1);
  finish_along(nest, schedule->listed, row.index);
  ax_nest_close_loop(nest, &row, block.hi, 1);
  ax_nest_close_loop(nest, &l, all.hi, rows);
}

/* The square at l, or what there is of it before `hi`; it reaches over the end of a range, but never of the extent: the last one
   begins early enough. */
static void place_square(ax_nest *nest, LLVMValueRef at, const ax_range *block) {
  int64_t lanes = nest->schedule->lanes, extent = nest->schedule->loops[nest->schedule->loop_count - 1].extent;
  LLVMTypeRef type = LLVMInt64TypeInContext(nest->cg.context);
  LLVMValueRef starts[] = {at, ax_nest_i64(nest, extent - lanes)};
  nest->tile_start = ax_cg_intrinsic(&nest->cg, "llvm.smin", &type, 1, starts, 2);
  nest->block_lo = block->lo;
  nest->block_hi = block->hi;
}

/* Accumulators go around the loops that fill the squares. */
static void turn_square(ax_nest *nest) {
  const bool accumulating = nest->accumulating;
  nest->accumulating = false;
  ax_nest_fill_squares(nest);
  nest->accumulating = accumulating;
  ax_nest_loop l = ax_nest_open_loop(nest, nest->block_lo, false);
  ax_nest_enter(nest, nest->schedule->loop_count - 1, l.index);
  if (accumulating) ax_nest_accumulate(nest);
  ax_nest_leave(nest);
  ax_nest_close_loop(nest, &l, nest->block_hi, 1);
}

static void transposed_square(ax_nest *nest, LLVMValueRef index) {
  ax_nest_enter(nest, nest->schedule->vector, index);
  turn_square(nest);
  ax_nest_leave(nest);
}

/* Squares side by side along the innermost loop, and below each other along the vector loop. */
static void squares(ax_nest *nest, const ax_range *along, const ax_range *across) {
  int64_t lanes = nest->schedule->lanes;
  ax_nest_loop l = ax_nest_open_loop(nest, along->lo, along->count == lanes);
  ax_range block = tile_range(nest, along, l.index, lanes);
  place_square(nest, l.index, &block);
  ax_nest_walk(nest, across, transposed_square);
  ax_nest_close_loop(nest, &l, along->hi, lanes);
}

/* The squares of one strip, one after the other along the innermost loop. */
static void squares_of_rows(ax_nest *nest, LLVMValueRef index) {
  const ax_range *along = &nest->strip;
  int64_t lanes = nest->schedule->lanes;
  ax_nest_enter(nest, nest->schedule->vector, index);
  ax_nest_loop l = ax_nest_open_loop(nest, along->lo, along->count == lanes);
  ax_range block = tile_range(nest, along, l.index, lanes);
  place_square(nest, l.index, &block);
  turn_square(nest);
  ax_nest_close_loop(nest, &l, along->hi, lanes);
  ax_nest_leave(nest);
}

/* Rows that lie in several places are done in strips. A strip is long enough that each place is read in runs, and short enough
   that the lines written for all places stay in a cache until the next rows are written beside them. Squares that are stored past
   the caches are done so too: what is written need not stay anywhere, and what is read comes in runs, which are fetched ahead,
   whatever the distance of rows. */
static void emit_strips(ax_nest *nest, const ax_range *along, const ax_range *across) {
  const int64_t elems = AX_STRIP_BYTES / (int64_t)ax_dtype_bytes(
                                             nest->schedule->kernel->slots[ax_nest_schedule_store(nest->schedule, 0)->slot].dtype);
  ax_nest_loop l = ax_nest_open_loop(nest, along->lo, along->count >= 0 && along->count <= elems);
  nest->strip = along->count >= 0 && along->count <= elems ? *along : tile_range(nest, along, l.index, elems);
  ax_nest_walk(nest, across, squares_of_rows);
  ax_nest_close_loop(nest, &l, along->hi, elems);
}

/* Whether one matrix of small squares is more than the caches hold until its lines are whole, which they are late where rows do not
   begin with lines. */
static bool turns_far(const ax_nest_schedule *schedule) {
  const ax_slot *to = &schedule->kernel->slots[ax_nest_schedule_store(schedule, 0)->slot];
  const int64_t elems = schedule->loops[schedule->vector].extent * schedule->loops[schedule->loop_count - 1].extent;
  return schedule->lanes <= 16 && elems * (int64_t)ax_dtype_bytes(to->dtype) >= ax_caches_here()->shared;
}

/* Large squares are done in blocks, so that neighbours in memory are touched soon on both sides. Small squares are faster in
   strips from end to end, unless they are very many; then in larger blocks, row by row. So are those of reductions: walks along
   blocks may be empty, and carry no accumulators then. */
static void emit_squares(ax_nest *nest) {
  const ax_nest_schedule *schedule = nest->schedule;
  const bool far = turns_far(schedule);
  int64_t edge = (far ? 2 : 1) * AX_SQUARES_A_BLOCK * (int64_t)schedule->lanes;
  ax_range along = ax_range_of_loop(nest, schedule->loop_count - 1), across = ax_range_of_loop(nest, schedule->vector);
  if (schedule->loops[schedule->vector].inner > 0 || nest->streaming) {
    emit_strips(nest, &along, &across);
    return;
  }
  if ((schedule->lanes <= 16 && !far) || schedule->reduces) {
    squares(nest, &along, &across);
    return;
  }
  bool narrow = along.count >= 0 && along.count <= edge, low = across.count >= 0 && across.count <= edge;
  ax_nest_loop a = ax_nest_open_loop(nest, along.lo, narrow);
  ax_range columns = narrow ? along : tile_range(nest, &along, a.index, edge);
  ax_nest_loop b = ax_nest_open_loop(nest, across.lo, low);
  ax_range rows = low ? across : tile_range(nest, &across, b.index, edge);
  nest->strip = columns;
  if (far) ax_nest_walk(nest, &rows, squares_of_rows);
  else squares(nest, &columns, &rows);
  ax_nest_close_loop(nest, &b, across.hi, edge);
  ax_nest_close_loop(nest, &a, along.hi, edge);
}

static bool calls(const ax_nest *nest) { return nest->schedule->called && nest->inside == NULL; }

static void emit_turn(ax_nest *nest) {
  if (calls(nest)) {
    const ax_range along = ax_range_of_loop(nest, nest->schedule->loop_count - 1),
                   across = ax_range_of_loop(nest, nest->schedule->vector);
    ax_nest_call_turn(nest, &across, &along);
    return;
  }
  if (nest->schedule->reduces) ax_nest_init(nest);
  emit_squares(nest);
  if (nest->schedule->reduces) ax_nest_finish(nest);
}

/* Row by row. */
static void short_rows(ax_nest *nest, LLVMValueRef lo, LLVMValueRef hi) {
  const ax_nest_schedule *schedule = nest->schedule;
  const ax_range last = ax_range_static(nest, schedule->loops[schedule->vector].extent);
  LLVMBasicBlockRef skip;
  ax_walk_open_guard(nest, lo, hi, &skip);
  ax_nest_loop l = ax_nest_open_loop(nest, lo, false);
  one_trip(nest, schedule->outer, l.index, schedule->vector, &last, walk_and_accumulate);
  ax_nest_close_loop(nest, &l, hi, 1);
  ax_walk_close_guard(nest, skip);
}

static LLVMValueRef blocks_of_rows(ax_nest *nest, LLVMValueRef lo, LLVMValueRef hi) {
  ax_nest_begin_narrow(nest);
  LLVMValueRef done = ax_walk_steps(nest, lo, hi, nest->schedule->lanes, ax_nest_narrow_block);
  ax_nest_end_narrow(nest);
  return done;
}

static LLVMValueRef bounded(ax_nest *nest, const char *bound, LLVMValueRef a, LLVMValueRef b) {
  LLVMTypeRef type = LLVMInt64TypeInContext(nest->cg.context);
  LLVMValueRef both[] = {a, b};
  return ax_cg_intrinsic(&nest->cg, bound, &type, 1, both, 2);
}

/* Blocks of settled rows; those before them and after them row by row, by one code. */
static void emit_guarded_narrow(ax_nest *nest, const ax_range *rows) {
  LLVMBuilderRef b = nest->cg.builder;
  int64_t first = 0, end = 0;
  if (ax_nest_find_settled(nest)) ax_nest_settled_rows(nest, &first, &end);
  LLVMValueRef lo = bounded(nest, "llvm.smin", bounded(nest, "llvm.smax", rows->lo, ax_nest_i64(nest, first)), rows->hi);
  LLVMValueRef hi = bounded(nest, "llvm.smax", bounded(nest, "llvm.smin", rows->hi, ax_nest_i64(nest, end)), lo);
  LLVMValueRef done = blocks_of_rows(nest, lo, LLVMBuildSelect(b, ax_nest_outer_settled(nest), hi, lo, ""));
  ax_nest_loop side = ax_nest_open_loop(nest, ax_nest_i64(nest, 0), false);
  LLVMValueRef before = LLVMBuildICmp(b, LLVMIntSLT, side.index, ax_nest_i64(nest, 1), "");
  short_rows(nest, LLVMBuildSelect(b, before, rows->lo, done, ""), LLVMBuildSelect(b, before, lo, rows->hi, ""));
  ax_nest_close_loop(nest, &side, ax_nest_i64(nest, 2), 1);
}

/* Whole blocks, then rows. */
static void emit_narrow(ax_nest *nest) {
  const ax_range rows = ax_range_of_loop(nest, nest->schedule->outer);
  if (ax_nest_has_guards(nest)) {
    emit_guarded_narrow(nest, &rows);
    return;
  }
  LLVMValueRef done = blocks_of_rows(nest, rows.lo, rows.hi);
  if (rows.multiple % nest->schedule->lanes != 0) short_rows(nest, done, rows.hi);
}

static void parallel_loops(ax_nest *nest, uint32_t loop_id);

static void one_loop(ax_nest *nest, uint32_t loop_id, ax_range r) {
  ax_nest_loop l = ax_nest_open_loop(nest, r.lo, r.count == 1);
  ax_nest_enter(nest, loop_id, l.index);
  parallel_loops(nest, loop_id + 1);
  ax_nest_leave(nest);
  ax_nest_close_loop(nest, &l, r.hi, 1);
}

/* The loop, once for each block of the next one. */
static void in_blocks(ax_nest *nest, uint32_t loop_id) {
  int64_t step = nest->schedule->blocked;
  ax_range next = ax_range_of_loop(nest, loop_id + 1);
  ax_nest_loop l = ax_nest_open_loop(nest, next.lo, false);
  ax_range block = tile_range(nest, &next, l.index, step);
  nest->block_lo = block.lo;
  nest->block_hi = block.hi;
  one_loop(nest, loop_id, ax_range_of_loop(nest, loop_id));
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
      case AX_NEST_COLUMNS:
        emit_block(nest);
    }
    return;
  }
  if (nest->schedule->blocked > 0 && loop_id + 2 == nest->schedule->outer) {
    in_blocks(nest, loop_id);
    return;
  }
  bool in_block = nest->schedule->blocked > 0 && loop_id + 1 == nest->schedule->outer;
  one_loop(nest, loop_id, in_block ? (ax_range){nest->block_lo, nest->block_hi, -1, 1} : ax_range_of_loop(nest, loop_id));
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
  const ax_nest_schedule *schedule = nest->schedule;
  LLVMTypeRef pointer = LLVMPointerTypeInContext(nest->cg.context, 0);
  for (uint32_t a = 0; a < schedule->kernel->expr_count + schedule->kernel->store_count; a++) {
    uint32_t slot = schedule->accesses[a].slot;
    if (!schedule->accesses[a].live || nest->slot_bases[slot] != NULL) continue;
    LLVMValueRef index = ax_nest_i64(nest, slot);
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
    LLVMValueRef scale = ax_nest_i64(nest, nest->schedule->loops[l].scale);
    nest->begin = LLVMBuildMul(nest->cg.builder, nest->begin, scale, "");
    nest->end = LLVMBuildMul(nest->cg.builder, nest->end, scale, "");
  }
}

static bool is_ranged(const ax_nest_schedule *schedule) {
  for (uint32_t l = 0; l < schedule->loop_count; l++)
    if (schedule->loops[l].ranged) return true;
  return false;
}

/* The nest of TRANSPOSE twice: once with streaming stores, and once with plain ones, for arrays whose vectors do not begin with
   lines of the cache. Its code is short, so the copy is cheap. */
static void turn_streamed(ax_nest *nest) {
  LLVMBuilderRef b = nest->cg.builder;
  LLVMBasicBlockRef past = LLVMAppendBasicBlockInContext(nest->cg.context, nest->cg.function, ""),
                    plain = LLVMAppendBasicBlockInContext(nest->cg.context, nest->cg.function, ""),
                    after = LLVMAppendBasicBlockInContext(nest->cg.context, nest->cg.function, "");
  LLVMBuildCondBr(b, ax_nest_begins_line(nest, ax_range_of_loop(nest, nest->schedule->vector).lo), past, plain);
  LLVMPositionBuilderAtEnd(b, past);
  nest->streaming = true;
  parallel_loops(nest, 0);
  nest->streaming = false;
  LLVMBuildBr(b, after);
  LLVMPositionBuilderAtEnd(b, plain);
  parallel_loops(nest, 0);
  LLVMBuildBr(b, after);
  LLVMPositionBuilderAtEnd(b, after);
}

static void emit_loops(ax_nest *nest) {
  const bool streams = nest->schedule->streams && nest->inside == NULL;
  if (streams && nest->schedule->shape == AX_NEST_TRANSPOSE && !calls(nest)) turn_streamed(nest);
  else parallel_loops(nest, 0);
  if (streams) ax_cg_intrinsic(&nest->cg, "llvm.x86.sse.sfence", NULL, 0, NULL, 0); /* before other threads hear that it is done */
}

static void emit_body(ax_nest *nest) {
  LLVMBasicBlockRef skip = NULL;
  if (nest->schedule->shape == AX_NEST_TILE || nest->schedule->shape == AX_NEST_RUNS) allocate_tiles(nest);
  if (calls(nest)) ax_nest_allocate_turn(nest);
  else if (nest->schedule->shape == AX_NEST_TRANSPOSE) ax_nest_allocate_squares(nest);
  if (nest->inside == NULL) {
    if (is_ranged(nest->schedule)) ax_walk_open_guard(nest, nest->begin, nest->end, &skip);
    scale_range(nest);
    load_slot_bases(nest);
  }
  ax_walk_prepare(nest);
  ax_nest_find_spread(nest);
  ax_nest_find_divisors(nest);
  ax_nest_find_wanted(nest);
  ax_nest_find_together(nest);
  ax_nest_entry(nest);
  emit_loops(nest);
  if (skip != NULL) ax_walk_close_guard(nest, skip);
}

static bool allocate(ax_arena *arena, ax_nest *nest) {
  const ax_loop_kernel *kernel = nest->schedule->kernel;
  size_t word = sizeof(LLVMValueRef), accesses = kernel->expr_count + kernel->store_count;
  size_t instances = nest->schedule->narrow > AX_MAX_UNROLL ? nest->schedule->narrow : AX_MAX_UNROLL;
  nest->slot_bases = ax_arena_alloc(arena, kernel->slot_count * word);
  nest->pointers = ax_arena_alloc(arena, (nest->schedule->loop_count + 1) * accesses * word);
  nest->pairs = ax_arena_alloc(arena, accesses * word);
  nest->columns = ax_arena_alloc(arena, instances * (size_t)kernel->expr_count * word);
  nest->values = ax_arena_alloc(arena, instances * (size_t)kernel->expr_count * word);
  nest->reciprocals = ax_arena_alloc(arena, 2 * instances * (size_t)kernel->expr_count * word);
  nest->spread_values = ax_arena_alloc(arena, kernel->expr_count * word + 1);
  nest->is_spread = ax_arena_alloc(arena, kernel->expr_count + (size_t)1);
  nest->is_fetched = ax_arena_alloc(arena, kernel->expr_count + (size_t)1);
  nest->is_divisor = ax_arena_alloc(arena, kernel->expr_count + (size_t)1);
  nest->wanted = ax_arena_alloc(arena, (kernel->expr_count + (size_t)1) * sizeof nest->wanted[0]);
  nest->accumulators = ax_arena_alloc(arena, AX_MAX_UNROLL * (size_t)kernel->store_count * word);
  nest->tiles = ax_arena_alloc(arena, accesses * word);
  nest->order = ax_arena_alloc(arena, (kernel->expr_count + (size_t)1) * sizeof nest->order[0]);
  nest->depth = ax_arena_alloc(arena, (kernel->expr_count + (size_t)1) * sizeof nest->depth[0]);
  nest->holds = ax_arena_alloc(arena, kernel->expr_count + (size_t)1);
  return nest->holds && nest->order && nest->depth && nest->slot_bases && nest->pointers && nest->pairs && nest->columns &&
         nest->values && nest->reciprocals && nest->spread_values && nest->is_spread && nest->is_fetched && nest->is_divisor &&
         nest->wanted && nest->accumulators && nest->tiles;
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
static ax_status schedule_of(ax_arena *arena, const ax_loop_kernel *kernel, ax_registers registers, bool often, ax_nest_schedule **out) {
  uint32_t parallel = kernel->rank - kernel->reduce_rank;
  *out = NULL;
  if (any_empty(kernel->dims, kernel->running ? kernel->rank : parallel)) return AX_OK;
  if (any_empty(kernel->dims + parallel, kernel->reduce_rank)) kernel = identities(arena, kernel);
  return kernel != NULL ? ax_nest_schedule_create(arena, kernel, registers, often, out) : ax_out_of_memory(sizeof *kernel);
}

static ax_status begin(ax_arena *arena, ax_nest *nest, const ax_nest_schedule *schedule) {
  nest->schedule = schedule;
  nest->cg.in_line = schedule->in_line;
  ax_nest_end_narrow(nest);
  return allocate(arena, nest) ? AX_OK : ax_out_of_memory(AX_MAX_UNROLL * schedule->kernel->expr_count * sizeof(LLVMValueRef));
}

ax_status ax_nest_emit(ax_arena *arena, const ax_codegen *cg, const ax_loop_kernel *kernel, const char *name) {
  ax_nest nest = {.cg = *cg, .instances = 1};
  ax_nest_schedule *schedule;
  AX_TRY(schedule_of(arena, kernel, (ax_registers){cg->vector_bytes, cg->f16}, false, &schedule));
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

/* Nobody asks for a range, so that dimensions of size 1 need no loop. A reduction keeps it all the same: its order of additions is
   that of its schedule. */
ax_status ax_nest_schedule_inside(ax_arena *arena, const ax_loop_kernel *kernel, ax_registers registers, bool often,
                                  ax_nest_schedule **out) {
  ax_loop_kernel *whole = ax_arena_copy(arena, kernel, sizeof *whole);
  if (whole == NULL) return ax_out_of_memory(sizeof *whole);
  if (!reduces(kernel)) whole->ranged = UINT32_MAX;
  return schedule_of(arena, whole, registers, often, out);
}

ax_status ax_nest_emit_inside(ax_arena *arena, const ax_codegen *cg, const ax_nest_schedule *schedule,
                              const ax_nest_inside *inside) {
  ax_nest nest = {.cg = *cg, .instances = 1, .inside = inside, .coordinates = inside->coordinates};
  AX_TRY(begin(arena, &nest, schedule));
  memcpy(nest.slot_bases, inside->bases, schedule->kernel->slot_count * sizeof inside->bases[0]);
  emit_body(&nest);
  return AX_OK;
}
