/* Several rows a vector: loops so short that a register would be mostly empty.

     for r:  for c < 3:  y[r, c] = x[r, c] + b[c]          lanes:  r0c0 r0c1 r0c2 r1c0 | r1c1 r1c2 r2c0 r2c1 | r2c2 r3c0 r3c1 r3c2

   A block is `lanes` rows, N vectors of which each is an instance: which row and column a lane of it has are constants. So a load
   is one that is contiguous, or windows (jit/emit/windows.h) and a shuffle; so is a store, under constant masks. What does not
   depend on the row is computed once, before the blocks. Rows that make no whole block are done row by row, as LANES does. */
#include "jit/emit/nest.h"
#include "jit/emit/windows.h"

/* --- Where lanes are --- */

/* Row and columns of a lane, by loop. */
static int64_t lane_index(const ax_nest_schedule *s, uint32_t loop, uint32_t instance, uint32_t lane) {
  int64_t rest = (int64_t)instance * s->lanes + lane;
  for (uint32_t l = s->loop_count - 1; l > loop; l--) rest /= s->loops[l].extent;
  return loop == s->outer ? rest : rest % s->loops[loop].extent;
}

static void lane_offsets(const ax_nest_schedule *s, const ax_nest_access *access, uint32_t instance, int64_t *offset) {
  for (uint32_t lane = 0; lane < s->lanes; lane++) {
    offset[lane] = 0;
    for (uint32_t l = s->outer; l < s->loop_count; l++) offset[lane] += lane_index(s, l, instance, lane) * access->stride[l];
  }
}

/* No lane of a whole block reads beyond the block's last element. So windows may read up to it. */
static ax_row_windows load_windows(const ax_nest_schedule *s, const ax_nest_access *access, const int64_t *offset) {
  int64_t last = 0;
  for (uint32_t l = s->outer; l < s->loop_count; l++) {
    int64_t steps = (l == s->outer ? s->lanes : s->loops[l].extent) - 1;
    if (access->stride[l] > 0) last += steps * access->stride[l];
  }
  return ax_windows_cover(offset, s->lanes, last);
}

/* In cache lines, where the array begins with one and blocks are whole ones: a masked store over two of them takes several times as
   long. */
static ax_row_windows store_windows(const ax_nest_schedule *s, const ax_nest_access *access, const int64_t *offset) {
  return ax_windows_cover_aligned(offset, s->lanes, -access->offset);
}

static bool in_order(const ax_row_windows *w, const int64_t *offset, uint32_t lanes) {
  for (uint32_t l = 0; l < lanes; l++)
    if (offset[l] != w->start[0] + l) return false;
  return w->count == 1;
}

/* --- What it costs --- */

static uint64_t narrow_loops(const ax_nest_schedule *s) { return ((uint64_t)2 << (s->loop_count - 1)) - ((uint64_t)1 << s->outer); }

/* Instructions to move all vectors of a block; below 0: it cannot be done. */
static double moves(const ax_nest_schedule *s, const ax_nest_access *access, bool store) {
  double cost = 0;
  if ((access->moved & narrow_loops(s)) != 0 || (!store && access->guard != AX_NONE)) return -1;
  if (!store && access->stride[s->outer] == 0) return 0.5 * s->narrow;
  for (uint32_t l = s->outer; store && l < s->loop_count; l++)
    if (access->stride[l] == 0) return -1;
  bool no_masks = s->vector_bytes < 64 && ax_dtype_bytes(s->kernel->slots[access->slot].dtype) < 4;
  for (uint32_t v = 0; v < s->narrow; v++) {
    int64_t offset[AX_MAX_LANES];
    lane_offsets(s, access, v, offset);
    ax_row_windows w = load_windows(s, access, offset);
    bool whole = in_order(&w, offset, s->lanes);
    if (store && !whole) w = store_windows(s, access, offset);
    if (w.count > AX_MAX_WINDOWS || (store && !whole && no_masks)) return -1;
    cost += whole ? 1 : store ? 4 * w.count : 2 * w.count;
  }
  return cost;
}

double ax_narrow_cost(const ax_nest_schedule *s) {
  double cost = 0;
  for (uint32_t a = 0; a < s->kernel->expr_count + s->kernel->store_count; a++) {
    const ax_nest_access *access = &s->accesses[a];
    bool store = a >= s->kernel->expr_count, inside = !store && (s->deps[a] & narrow_loops(s)) != 0;
    if (!store && s->live[a] && s->kernel->exprs[a].op == AX_LEAF_INSIDE) return -1;
    double each = access->live ? moves(s, access, store) : inside && s->live[a] ? 0.5 * s->narrow : 0;
    if (each < 0) return -1;
    cost += each;
  }
  return cost / ((double)s->lanes * (double)s->narrow);
}

/* --- Loads and stores --- */

static LLVMValueRef place(ax_nest *nest, uint32_t access, int64_t offset) {
  return ax_nest_advance(nest, ax_nest_element(nest, access), ax_nest_pointer(nest, access), ax_cg_i64(&nest->cg, offset));
}

/* The same in each row: element by element, which is done once. */
static LLVMValueRef load_columns(ax_nest *nest, uint32_t access, const int64_t *offset) {
  uint32_t lanes = nest->schedule->lanes, count = 0;
  LLVMTypeRef element = ax_nest_element(nest, access);
  LLVMValueRef all = LLVMGetPoison(LLVMVectorType(element, lanes));
  int64_t from[AX_MAX_LANES], seen[AX_MAX_LANES];
  for (uint32_t l = 0; l < lanes; l++) {
    uint32_t k = 0;
    while (k < count && seen[k] != offset[l]) k++;
    from[l] = k;
    if (k < count) continue;
    seen[count++] = offset[l];
    LLVMValueRef one = ax_nest_load_one(nest, element, place(nest, access, offset[l]));
    all = LLVMBuildInsertElement(nest->cg.builder, all, one, ax_cg_i64(&nest->cg, k), "");
  }
  return ax_cg_shuffle(&nest->cg, all, NULL, from, lanes);
}

LLVMValueRef ax_nest_load_narrow(ax_nest *nest, uint32_t access, uint32_t instance) {
  const ax_nest_schedule *s = nest->schedule;
  const ax_nest_access *a = &s->accesses[access];
  int64_t offset[AX_MAX_LANES], from[AX_MAX_LANES];
  lane_offsets(s, a, instance, offset);
  if (a->stride[s->outer] == 0) return load_columns(nest, access, offset);
  ax_row_windows w = load_windows(s, a, offset);
  LLVMValueRef picked = NULL;
  for (uint32_t i = 0; i < w.count; i++) {
    LLVMValueRef whole = ax_nest_load_lanes(nest, ax_nest_element(nest, access), place(nest, access, w.start[i]), 1, NULL);
    if (in_order(&w, offset, s->lanes)) return whole;
    for (uint32_t l = 0; l < s->lanes; l++) {
      int64_t here = offset[l] - w.start[i] + (i > 0 ? s->lanes : 0);
      from[l] = w.window[l] < i ? l : w.window[l] == i ? here : -1;
    }
    picked = ax_cg_shuffle(&nest->cg, i > 0 ? picked : whole, i > 0 ? whole : NULL, from, s->lanes);
  }
  return picked;
}

void ax_nest_store_narrow(ax_nest *nest, uint32_t access, LLVMValueRef value, uint32_t instance) {
  const ax_nest_schedule *s = nest->schedule;
  int64_t offset[AX_MAX_LANES];
  lane_offsets(s, &s->accesses[access], instance, offset);
  ax_row_windows w = load_windows(s, &s->accesses[access], offset);
  if (!in_order(&w, offset, s->lanes)) w = store_windows(s, &s->accesses[access], offset);
  for (uint32_t i = 0; i < w.count; i++) {
    LLVMValueRef exists[AX_MAX_LANES], part = value, mask = NULL;
    LLVMTypeRef bit = LLVMInt1TypeInContext(nest->cg.context);
    int64_t from[AX_MAX_LANES];
    uint32_t count = 0;
    for (uint32_t l = 0; l < s->lanes; l++) from[l] = -1;
    for (uint32_t l = 0; l < s->lanes; l++)
      if (w.window[l] == i) from[offset[l] - w.start[i]] = l;
    for (uint32_t l = 0; l < s->lanes; l++) {
      exists[l] = LLVMConstInt(bit, from[l] >= 0, false);
      count += from[l] >= 0;
    }
    if (count < s->lanes) mask = LLVMConstVector(exists, s->lanes);
    if (!in_order(&w, offset, s->lanes)) part = ax_cg_shuffle(&nest->cg, value, NULL, from, s->lanes);
    ax_nest_store_lanes(nest, ax_nest_element(nest, access), place(nest, access, w.start[i]), 1, mask, part);
  }
}

LLVMValueRef ax_nest_narrow_index(ax_nest *nest, uint32_t loop, uint32_t instance) {
  const ax_nest_schedule *s = nest->schedule;
  LLVMValueRef lane[AX_MAX_LANES];
  for (uint32_t l = 0; l < s->lanes; l++) lane[l] = ax_cg_i64(&nest->cg, lane_index(s, loop, instance, l));
  LLVMValueRef index = LLVMConstVector(lane, s->lanes);
  if (loop != s->outer) return index;
  return LLVMBuildAdd(nest->cg.builder, ax_cg_broadcast(&nest->cg, nest->index[loop], s->lanes), index, "");
}

/* --- Blocks --- */

void ax_nest_begin_narrow(ax_nest *nest) {
  uint64_t loops = narrow_loops(nest->schedule), row = (uint64_t)1 << nest->schedule->outer;
  nest->narrow = true;
  nest->spread = nest->repeated = loops;
  for (uint32_t i = 0; i < nest->schedule->narrow; i++) ax_nest_emit_nodes(nest, loops & ~row, row, i);
}

/* One vector after the other: few values are alive at a time. */
void ax_nest_narrow_block(ax_nest *nest, LLVMValueRef index) {
  const ax_nest_schedule *s = nest->schedule;
  nest->index[s->outer] = index;
  ax_nest_step_pointers(nest, s->outer, index);
  nest->level++;
  for (uint32_t i = 0; i < s->narrow; i++) {
    ax_nest_emit_nodes(nest, (uint64_t)1 << s->outer, 0, i);
    for (uint32_t k = 0; k < s->kernel->store_count; k++) {
      ax_ex value = s->kernel->stores[k].expr;
      uint32_t lanes = (s->deps[value] & nest->spread) != 0 ? s->lanes : 1;
      ax_nest_store(nest, s->kernel->expr_count + k, ax_nest_value(nest, value, i, lanes), lanes, i);
    }
  }
  nest->level--;
}

void ax_nest_end_narrow(ax_nest *nest) {
  nest->narrow = false;
  nest->spread = (uint64_t)1 << nest->schedule->vector;
  nest->repeated = (uint64_t)1 << nest->schedule->unrolled;
}
