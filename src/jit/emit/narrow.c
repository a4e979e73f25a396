/* Several rows a vector: loops so short that a register would be mostly empty.

     for r:  for c < 3:  y[r, c] = x[r, c] + b[c]          lanes:  r0c0 r0c1 r0c2 r1c0 | r1c1 r1c2 r2c0 r2c1 | r2c2 r3c0 r3c1 r3c2

   A block is `lanes` rows, N vectors of which each is an instance: which row and column a lane of it has are constants. So a load
   is one that is contiguous, or windows (jit/emit/windows.h) and a shuffle; so is a store, under constant masks. What does not
   depend on the row is computed once, before the blocks. Rows that make no whole block are done row by row, as LANES does.

   Guards of loads (guards.c) are known in each lane if they are conditions on columns, and for the whole block if all its rows are
   settled. Lanes that they exclude are no part of any window. Blocks of other rows are done row by row. */
#include "jit/emit/nest.h"
#include "jit/emit/windows.h"

/* --- Where lanes are --- */

/* Row and columns of a lane, by loop. */
static int64_t lane_index(const ax_nest_schedule *s, uint32_t loop, uint32_t instance, uint32_t lane) {
  int64_t rest = (int64_t)instance * s->lanes + lane;
  for (uint32_t l = s->loop_count - 1; l > loop; l--) rest /= s->loops[l].extent;
  return loop == s->outer ? rest : rest % s->loops[loop].extent;
}

static int64_t lane_offset(const ax_nest_schedule *s, const ax_nest_access *access, uint32_t instance, uint32_t lane) {
  int64_t offset = 0;
  for (uint32_t l = s->outer; l < s->loop_count; l++) offset += lane_index(s, l, instance, lane) * access->stride[l];
  return offset;
}

static void lane_offsets(const ax_nest_schedule *s, const ax_nest_access *access, uint32_t instance, int64_t *offset) {
  for (uint32_t lane = 0; lane < s->lanes; lane++) offset[lane] = lane_offset(s, access, instance, lane);
}

static int guarded_loop(const ax_nest_schedule *s, const ax_expr *inside) {
  return inside->at->dim < 0 ? -1 : s->loop_of_dim[inside->at->dim];
}

/* Whether a guard holds in a lane of a block of settled rows. `holds`: conditions on rows, by node; NULL: they all do. */
static bool lane_exists(const ax_nest_schedule *s, const bool *holds, ax_ex guard, uint32_t instance, uint32_t lane) {
  const ax_expr *expr = &s->kernel->exprs[guard];
  if (expr->op == AX_SCALAR_AND)
    return lane_exists(s, holds, expr->arg[0], instance, lane) && lane_exists(s, holds, expr->arg[1], instance, lane);
  const int loop = guarded_loop(s, expr);
  if (loop >= 0 && loop <= (int)s->outer) return holds == NULL || holds[guard];
  const int64_t index = loop < 0 ? 0 : lane_index(s, (uint32_t)loop, instance, lane);
  return s->stretches[guard].first <= index && index < s->stretches[guard].end;
}

/* Lanes that do not exist get the offset of one that does. False: none exists. */
static bool existing_offsets(const ax_nest_schedule *s, const bool *holds, const ax_nest_access *access, uint32_t instance,
                             int64_t *offset, bool *exists) {
  int64_t some = INT64_MIN;
  lane_offsets(s, access, instance, offset);
  for (uint32_t l = 0; l < s->lanes; l++) {
    exists[l] = access->guard == AX_NONE || lane_exists(s, holds, access->guard, instance, l);
    if (exists[l]) some = offset[l];
  }
  for (uint32_t l = 0; l < s->lanes; l++)
    if (!exists[l]) offset[l] = some;
  return some != INT64_MIN;
}

/* The last element that a guarded load reads in a block: it lies in the last row, or in the first if rows lie backwards. */
static int64_t last_existing(const ax_nest_schedule *s, const ax_nest_access *access) {
  int64_t last = INT64_MIN;
  const uint32_t row = access->stride[s->outer] > 0 ? s->lanes - 1 : 0;
  for (uint32_t i = s->narrow * row; i < s->narrow * (row + 1); i++) {
    const int64_t offset = lane_offset(s, access, i / s->lanes, i % s->lanes);
    if (lane_exists(s, NULL, access->guard, i / s->lanes, i % s->lanes) && offset > last) last = offset;
  }
  return last;
}

/* No lane of a whole block reads beyond the block's last element. So windows may read up to it. */
static ax_row_windows load_windows(const ax_nest_schedule *s, const ax_nest_access *access, const int64_t *offset) {
  int64_t last = 0;
  if (access->guard != AX_NONE) return ax_windows_cover(offset, s->lanes, last_existing(s, access));
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
  const bool guarded = !store && access->guard != AX_NONE;
  if ((ax_access_starts(s, access) & narrow_loops(s)) != 0 || (guarded && (access->moved != 0 || access->stride[s->outer] == 0)))
    return -1;
  if (!store && access->stride[s->outer] == 0) return 0.5 * s->narrow;
  for (uint32_t l = s->outer; store && l < s->loop_count; l++)
    if (access->stride[l] == 0) return -1;
  bool no_masks = s->vector_bytes < 64 && ax_dtype_bytes(s->kernel->slots[access->slot].dtype) < 4;
  for (uint32_t v = 0; v < s->narrow; v++) {
    int64_t offset[AX_MAX_LANES];
    bool exists[AX_MAX_LANES];
    if (!store && !existing_offsets(s, NULL, access, v, offset, exists)) continue;
    if (store) lane_offsets(s, access, v, offset);
    ax_row_windows w = load_windows(s, access, offset);
    bool whole = in_order(&w, offset, s->lanes);
    if (store && !whole) w = store_windows(s, access, offset);
    if (w.count > AX_MAX_WINDOWS || (store && !whole && no_masks)) return -1;
    cost += whole ? 1 : store ? 4 * w.count : 2 * w.count;
  }
  return cost;
}

bool ax_is_guard(const ax_nest_schedule *s, ax_ex node) {
  const ax_expr *expr = &s->kernel->exprs[node];
  if (expr->op == AX_LEAF_INSIDE) return true;
  return expr->op == AX_SCALAR_AND && expr->dtype == AX_BOOL && ax_is_guard(s, expr->arg[0]) && ax_is_guard(s, expr->arg[1]);
}

/* Whether a guard is the same for all columns of a row, so that a block of settled rows knows it. */
static bool is_of_rows(const ax_nest_schedule *s, ax_ex guard) {
  const ax_expr *expr = &s->kernel->exprs[guard];
  if (expr->op == AX_SCALAR_AND) return is_of_rows(s, expr->arg[0]) && is_of_rows(s, expr->arg[1]);
  return guarded_loop(s, expr) <= (int)s->outer;
}

/* Whether all that conditions on indices do is to guard loads, and to choose by rows. */
static bool guards_only(const ax_nest_schedule *s) {
  const ax_loop_kernel *k = s->kernel;
  for (uint32_t i = 0; i < k->store_count; i++)
    if (ax_is_guard(s, k->stores[i].expr)) return false;
  for (ax_ex node = 0; node < k->expr_count; node++)
    for (int i = 0; s->live[node] && !ax_is_guard(s, node) && i < ax_scalar_arity(k->exprs[node].op); i++) {
      const ax_ex arg = k->exprs[node].arg[i];
      if (ax_is_guard(s, arg) && !(i == 0 && k->exprs[node].op == AX_SCALAR_SELECT && is_of_rows(s, arg))) return false;
    }
  return true;
}

double ax_narrow_cost(const ax_nest_schedule *s) {
  double cost = 0;
  if (!guards_only(s)) return -1;
  for (uint32_t a = 0; a < s->kernel->expr_count + s->kernel->store_count; a++) {
    const ax_nest_access *access = &s->accesses[a];
    bool store = a >= s->kernel->expr_count, inside = !store && (s->deps[a] & narrow_loops(s)) != 0;
    if (!store && s->live[a] && ax_is_guard(s, a)) continue;
    if (!store && access->live && access->guard != AX_NONE && !ax_is_guard(s, access->guard)) return -1;
    const bool before = !store && !inside && access->guard != AX_NONE; /* computed once, under its guard, before the blocks */
    double each = before ? 0 : access->live ? moves(s, access, store) : inside && s->live[a] ? 0.5 * s->narrow : 0;
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

static LLVMValueRef existing_or(ax_nest *nest, LLVMValueRef value, LLVMValueRef other, const bool *exists) {
  LLVMValueRef lane[AX_MAX_LANES];
  const uint32_t lanes = nest->schedule->lanes;
  for (uint32_t l = 0; l < lanes; l++) lane[l] = LLVMConstInt(LLVMInt1TypeInContext(nest->cg.context), exists[l], false);
  return LLVMBuildSelect(nest->cg.builder, LLVMConstVector(lane, lanes), value, other, "");
}

LLVMValueRef ax_nest_load_narrow(ax_nest *nest, uint32_t access, uint32_t instance) {
  const ax_nest_schedule *s = nest->schedule;
  const ax_nest_access *a = &s->accesses[access];
  int64_t offset[AX_MAX_LANES], from[AX_MAX_LANES];
  bool exists[AX_MAX_LANES];
  LLVMValueRef picked = NULL, zeros = LLVMConstNull(LLVMVectorType(ax_nest_element(nest, access), s->lanes));
  if (!existing_offsets(s, nest->holds, a, instance, offset, exists)) return zeros;
  if (a->stride[s->outer] == 0) return load_columns(nest, access, offset);
  ax_row_windows w = load_windows(s, a, offset);
  for (uint32_t i = 0; i < w.count; i++) {
    LLVMValueRef whole = ax_nest_load_lanes(nest, ax_nest_element(nest, access), place(nest, access, w.start[i]), 1, NULL);
    if (in_order(&w, offset, s->lanes)) return whole;
    for (uint32_t l = 0; l < s->lanes; l++) {
      int64_t here = offset[l] - w.start[i] + (i > 0 ? s->lanes : 0);
      from[l] = w.window[l] < i ? l : w.window[l] == i ? here : -1;
    }
    picked = ax_cg_shuffle(&nest->cg, i > 0 ? picked : whole, i > 0 ? whole : NULL, from, s->lanes);
  }
  return a->guard == AX_NONE ? picked : existing_or(nest, picked, zeros, exists);
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
      uint32_t lanes = ax_nest_lanes_of(nest, value);
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
