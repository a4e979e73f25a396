/* Loads and stores. An access, which is one load or store of the kernel, has a pointer for each level (nest.h). When a loop is
   entered, its part of the address is added to the pointer of the level outside. Instances, which are iterations of an unrolled
   loop side by side, lie at constant distances from the pointer. What the kernel itself computes of an access's place is in starts.c. */
#include "jit/emit/nest.h"
#include "jit/emit/windows.h"

static LLVMValueRef *pointer_at(ax_nest *nest, uint32_t level, uint32_t access) {
  return &nest->pointers[level * ax_nest_schedule_access_count(nest->schedule) + access];
}

LLVMTypeRef ax_nest_element(const ax_nest *nest, uint32_t access) {
  const ax_nest_schedule *schedule = nest->schedule;
  return ax_cg_memory(&nest->cg, schedule->kernel->slots[schedule->accesses[access].slot].dtype, 1);
}

LLVMValueRef ax_nest_advance(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointer, LLVMValueRef count) {
  if (LLVMIsConstant(count) && LLVMIsNull(count)) return pointer;
  return LLVMBuildGEP2(nest->cg.builder, element, pointer, &count, 1, "");
}

static LLVMValueRef scaled(ax_nest *nest, LLVMValueRef index, int64_t by) {
  return by == 1 ? index : LLVMBuildMul(nest->cg.builder, index, ax_cg_i64(&nest->cg, by), "");
}

LLVMValueRef ax_nest_base(ax_nest *nest, uint32_t access) {
  const ax_nest_access *a = &nest->schedule->accesses[access];
  LLVMValueRef offset = ax_nest_add_starts(nest, access, 0, 0, 1, 64, a->offset != 0 ? ax_cg_i64(&nest->cg, a->offset) : NULL);
  if (offset == NULL) offset = ax_cg_i64(&nest->cg, 0);
  return *pointer_at(nest, 0, access) =
             ax_nest_advance(nest, ax_nest_element(nest, access), nest->slot_bases[a->slot], offset);
}

void ax_nest_move_pointer(ax_nest *nest, uint32_t access) {
  if (nest->schedule->accesses[access].moved == 0) return;
  LLVMValueRef *pointer = pointer_at(nest, nest->level, access), offset = ax_nest_add_starts(nest, access, nest->level, 0, 1, 64, NULL);
  if (offset != NULL) *pointer = ax_nest_advance(nest, ax_nest_element(nest, access), *pointer, offset);
}

/* The elements from an access's place at index 0 of a loop to its place at `index`. */
LLVMValueRef ax_nest_offset(ax_nest *nest, uint32_t access, uint32_t loop, LLVMValueRef index) {
  const ax_nest_access *a = &nest->schedule->accesses[access];
  LLVMValueRef even = scaled(nest, index, a->stride[loop]);
  if (a->uneven[loop] == 0) return even;
  LLVMValueRef rows = LLVMBuildUDiv(nest->cg.builder, index, ax_cg_i64(&nest->cg, nest->schedule->loops[loop].inner), "");
  return LLVMBuildAdd(nest->cg.builder, even, scaled(nest, rows, a->uneven[loop]), "");
}

void ax_nest_step_pointers(ax_nest *nest, uint32_t loop, LLVMValueRef index) {
  for (uint32_t a = 0; a < ax_nest_schedule_access_count(nest->schedule); a++) {
    const ax_nest_access *access = &nest->schedule->accesses[a];
    if (!access->live) continue;
    LLVMValueRef pointer = *pointer_at(nest, nest->level, a);
    /* The rows of such a square compute their own addresses (transposed.c). */
    const bool by_row = access->transposed && access->uneven[loop] != 0;
    if ((access->stride[loop] != 0 || access->uneven[loop] != 0) && !by_row)
      pointer = ax_nest_advance(nest, ax_nest_element(nest, a), pointer, ax_nest_offset(nest, a, loop, index));
    *pointer_at(nest, nest->level + 1, a) = pointer;
  }
}

LLVMValueRef ax_nest_pointer(ax_nest *nest, uint32_t access) { return *pointer_at(nest, nest->level, access); }

LLVMValueRef ax_nest_instance_pointer(ax_nest *nest, uint32_t access, uint32_t instance) {
  const ax_nest_schedule *schedule = nest->schedule;
  int64_t step = schedule->unrolled == schedule->vector ? schedule->lanes : 1;
  int64_t count = schedule->accesses[access].stride[schedule->unrolled] * step * instance;
  return ax_nest_advance(nest, ax_nest_element(nest, access), *pointer_at(nest, nest->level, access),
                         ax_cg_i64(&nest->cg, count));
}

/* --- Vectors --- */

static uint32_t alignment(LLVMTypeRef element) {
  LLVMTypeKind kind = LLVMGetTypeKind(element);
  return kind == LLVMDoubleTypeKind ? 8 : kind == LLVMFloatTypeKind ? 4 : LLVMGetIntTypeWidth(element) / 8;
}

LLVMValueRef ax_nest_load_one(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointer) {
  LLVMValueRef value = LLVMBuildLoad2(nest->cg.builder, element, pointer, "");
  LLVMSetAlignment(value, alignment(element));
  return value;
}

/* The address of the lane that comes first in memory, for strides 1 and -1. */
static LLVMValueRef lowest(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointer, int64_t stride) {
  int64_t back = stride == 1 ? 0 : 1 - (int64_t)nest->schedule->lanes;
  return ax_nest_advance(nest, element, pointer, ax_cg_i64(&nest->cg, back));
}

/* Turns a vector from the order of lanes into that of memory, or back. NULL, which stands for no mask, stays NULL. */
static LLVMValueRef oriented(ax_nest *nest, LLVMValueRef vector, int64_t stride) {
  return stride == 1 || vector == NULL ? vector : ax_cg_reverse(&nest->cg, vector, nest->schedule->lanes);
}

static LLVMValueRef lane_pointers(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointer, int64_t stride) {
  uint32_t lanes = nest->schedule->lanes;
  bool near = stride > INT32_MIN / 64 && stride < INT32_MAX / 64; /* 32-bit indices make the faster gather */
  LLVMValueRef offsets = ax_cg_iota(&nest->cg, near ? 32 : 64, lanes, stride);
  return LLVMBuildGEP2(nest->cg.builder, element, pointer, &offsets, 1, "");
}

static LLVMValueRef all_lanes(const ax_nest *nest) {
  return LLVMConstAllOnes(ax_cg_int(&nest->cg, 1, nest->schedule->lanes));
}

static LLVMValueRef align_argument(const ax_nest *nest, LLVMTypeRef element) {
  return LLVMConstInt(LLVMInt32TypeInContext(nest->cg.context), alignment(element), false);
}

LLVMValueRef ax_nest_load_side_by_side(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointer, LLVMValueRef mask) {
  LLVMTypeRef vector = LLVMVectorType(element, nest->schedule->lanes);
  if (mask == NULL) {
    LLVMValueRef value = LLVMBuildLoad2(nest->cg.builder, vector, pointer, "");
    LLVMSetAlignment(value, alignment(element));
    return value;
  }
  LLVMTypeRef types[] = {vector, LLVMTypeOf(pointer)};
  LLVMValueRef arguments[] = {pointer, align_argument(nest, element), mask, LLVMConstNull(vector)};
  return ax_cg_intrinsic(&nest->cg, "llvm.masked.load", types, 2, arguments, 4);
}

static LLVMValueRef gather_lanes(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointers, LLVMValueRef mask) {
  LLVMTypeRef types[] = {LLVMVectorType(element, nest->schedule->lanes), LLVMTypeOf(pointers)};
  LLVMValueRef all = mask != NULL ? mask : all_lanes(nest);
  LLVMValueRef arguments[] = {pointers, align_argument(nest, element), all, LLVMConstNull(types[0])};
  return ax_cg_intrinsic(&nest->cg, "llvm.masked.gather", types, 2, arguments, 4);
}

/* The number of lanes that exist, if it is known while code is generated; else -1. */
static int64_t known_lanes(const ax_nest *nest, LLVMValueRef mask) {
  if (mask == NULL) return nest->schedule->lanes;
  return mask == nest->mask ? nest->present_count : -1; /* any other mask has a guard in it */
}

static LLVMValueRef lane_place(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointer, int64_t offset) {
  return ax_nest_advance(nest, element, pointer, ax_cg_i64(&nest->cg, offset));
}

/* Loads lanes that are `stride` elements apart. If it is known which lanes exist, they are loaded one by one: the hardware
   prefetcher does not follow gather instructions, so these take ten times as long where data is in no cache. */
static LLVMValueRef gather(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointer, int64_t stride,
                           LLVMValueRef mask) {
  int64_t count = known_lanes(nest, mask);
  LLVMValueRef all = LLVMGetPoison(LLVMVectorType(element, nest->schedule->lanes));
  for (int64_t l = 0; l < count; l++) {
    LLVMValueRef one = ax_nest_load_one(nest, element, lane_place(nest, element, pointer, l * stride));
    all = LLVMBuildInsertElement(nest->cg.builder, all, one, ax_cg_i64(&nest->cg, l), "");
  }
  if (count >= 0) return all;
  return gather_lanes(nest, element, lane_pointers(nest, element, pointer, stride), mask);
}

LLVMValueRef ax_nest_mask_up_to(ax_nest *nest, int64_t stride, int64_t span, int64_t start) {
  LLVMBuilderRef b = nest->cg.builder;
  LLVMTypeRef i32 = LLVMInt32TypeInContext(nest->cg.context);
  LLVMValueRef steps = LLVMBuildSub(b, LLVMBuildTrunc(b, nest->present, i32, ""), LLVMConstInt(i32, 1, false), "");
  LLVMValueRef last = LLVMBuildMul(b, steps, LLVMConstInt(i32, (uint64_t)stride, false), "");
  last = LLVMBuildAdd(b, last, LLVMConstInt(i32, (uint64_t)(span - 1 - start), true), "");
  LLVMValueRef iota = ax_cg_iota(&nest->cg, 32, nest->schedule->lanes, 1);
  return LLVMBuildICmp(b, LLVMIntSLE, iota, ax_cg_broadcast(&nest->cg, last, nest->schedule->lanes), "");
}

void ax_nest_load_rows(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointer, uint32_t row, uint32_t span, bool partial,
                       LLVMValueRef *columns) {
  const int64_t lanes = nest->schedule->lanes, count = (lanes - 1) * row + span;
  for (int64_t v = 0; v < row; v++) {
    const int64_t first = v * lanes, start = first + lanes > count ? count - lanes : first;
    int64_t from[AX_MAX_LANES];
    columns[v] = NULL;
    if (first >= count) continue;
    LLVMValueRef mask = partial ? ax_nest_mask_up_to(nest, row, span, start) : NULL;
    columns[v] = ax_nest_load_side_by_side(nest, element, lane_place(nest, element, pointer, start), mask);
    for (int64_t l = 0; l < lanes; l++) from[l] = first + l < count ? first + l - start : -1;
    if (start < first) columns[v] = ax_cg_shuffle(&nest->cg, columns[v], NULL, from, (uint32_t)lanes);
  }
  ax_cg_deinterleave(&nest->cg, columns, row, (uint32_t)lanes);
}

/* Lanes side by side that a small kernel of a loop moves, as of an array that one step writes and the next one reads: how many of them
   there are, if they are moved in parts of 2^k lanes. Processors do not hand on what is stored under a mask: who reads it waits until
   it is in the cache, for some 10 ns. They do hand on a part, to who loads the same part. 0: they are moved together. */
static int64_t lanes_in_parts(const ax_nest *nest, LLVMValueRef mask) {
  enum { most_elems = 1 << 14 };
  const int64_t count = mask != NULL && nest->inside != NULL && nest->schedule->work <= most_elems ? known_lanes(nest, mask) : 0;
  return count > 0 ? count : 0;
}

static int64_t part_of(int64_t count) { return (int64_t)1 << (63 - __builtin_clzll((uint64_t)count)); }

/* Lanes that are not there are 0, as under a mask. */
static LLVMValueRef load_parts(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointer, int64_t count) {
  const uint32_t lanes = nest->schedule->lanes;
  LLVMValueRef all = LLVMConstNull(LLVMVectorType(element, lanes));
  for (int64_t at = 0, part; at < count; at += part) {
    int64_t from[AX_MAX_LANES], within[AX_MAX_LANES];
    part = part_of(count - at);
    LLVMTypeRef type = LLVMVectorType(element, (unsigned)part);
    LLVMValueRef loaded = LLVMBuildLoad2(nest->cg.builder, type, lane_place(nest, element, pointer, at), "");
    LLVMSetAlignment(loaded, alignment(element));
    for (int64_t l = 0; l < (int64_t)lanes; l++) {
      within[l] = l < part ? l : -1;
      from[l] = l >= at && l < at + part ? (int64_t)lanes + l - at : l;
    }
    all = ax_cg_shuffle(&nest->cg, all, ax_cg_shuffle(&nest->cg, loaded, NULL, within, lanes), from, lanes);
  }
  return all;
}

void ax_nest_store_parts(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointer, int64_t count, LLVMValueRef value) {
  for (int64_t at = 0, part; at < count; at += part) {
    int64_t from[AX_MAX_LANES];
    part = part_of(count - at);
    for (int64_t l = 0; l < part; l++) from[l] = at + l;
    LLVMValueRef one = ax_cg_shuffle(&nest->cg, value, NULL, from, (uint32_t)part);
    LLVMSetAlignment(LLVMBuildStore(nest->cg.builder, one, lane_place(nest, element, pointer, at)), alignment(element));
  }
}

LLVMValueRef ax_nest_load_lanes(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointer, int64_t stride,
                                LLVMValueRef mask) {
  const int64_t parts = stride == 1 ? lanes_in_parts(nest, mask) : 0;
  if (parts > 0) return load_parts(nest, element, pointer, parts);
  if (ax_stride_picks(stride, nest->schedule->lanes)) {
    LLVMValueRef columns[AX_MOST_IN_TURN];
    ax_nest_load_rows(nest, element, pointer, (uint32_t)stride, 1, mask != NULL, columns);
    return columns[0];
  }
  if (stride != 1 && stride != -1) return gather(nest, element, pointer, stride, mask);
  LLVMValueRef value = ax_nest_load_side_by_side(nest, element, lowest(nest, element, pointer, stride), oriented(nest, mask, stride));
  return oriented(nest, value, stride);
}

void ax_nest_store_lanes(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointer, int64_t stride, LLVMValueRef mask,
                         LLVMValueRef value) {
  LLVMValueRef align = align_argument(nest, element);
  const int64_t parts = stride == 1 ? lanes_in_parts(nest, mask) : 0;
  if (parts > 0) {
    ax_nest_store_parts(nest, element, pointer, parts, value);
    return;
  }
  for (int64_t l = 0; stride != 1 && stride != -1 && l < known_lanes(nest, mask); l++) {
    LLVMValueRef one = LLVMBuildExtractElement(nest->cg.builder, value, ax_cg_i64(&nest->cg, l), "");
    LLVMSetAlignment(LLVMBuildStore(nest->cg.builder, one, lane_place(nest, element, pointer, l * stride)), alignment(element));
  }
  if (stride != 1 && stride != -1 && known_lanes(nest, mask) >= 0) return;
  if (stride != 1 && stride != -1) {
    LLVMValueRef lanes = lane_pointers(nest, element, pointer, stride);
    LLVMTypeRef types[] = {LLVMTypeOf(value), LLVMTypeOf(lanes)};
    LLVMValueRef arguments[] = {value, lanes, align, mask != NULL ? mask : all_lanes(nest)};
    ax_cg_intrinsic(&nest->cg, "llvm.masked.scatter", types, 2, arguments, 4);
    return;
  }
  pointer = lowest(nest, element, pointer, stride);
  value = oriented(nest, value, stride);
  if (mask == NULL) {
    LLVMSetAlignment(LLVMBuildStore(nest->cg.builder, value, pointer), alignment(element));
    return;
  }
  LLVMTypeRef types[] = {LLVMTypeOf(value), LLVMTypeOf(pointer)};
  LLVMValueRef arguments[] = {value, pointer, align, oriented(nest, mask, stride)};
  ax_cg_intrinsic(&nest->cg, "llvm.masked.store", types, 2, arguments, 4);
}

/* --- By access --- */

/* Loads the element at each lane's offset. No processor gathers less than four bytes, and LLVM, which then loads the lanes one by one itself, makes
   a vector of pointers first. */
static LLVMValueRef load_one_by_one(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointer, LLVMValueRef offsets, int64_t count) {
  LLVMBuilderRef b = nest->cg.builder;
  LLVMValueRef all = LLVMGetPoison(LLVMVectorType(element, nest->schedule->lanes));
  for (int64_t l = 0; l < count; l++) {
    LLVMValueRef offset = LLVMBuildExtractElement(b, offsets, ax_cg_i64(&nest->cg, l), "");
    LLVMValueRef one = ax_nest_load_one(nest, element, LLVMBuildGEP2(b, element, pointer, &offset, 1, ""));
    all = LLVMBuildInsertElement(b, all, one, ax_cg_i64(&nest->cg, l), "");
  }
  return all;
}

/* Whether load_from_words is the faster way to look elements up: it is so for those of one or two bytes, as long as caches hold the array. Its
   bytes are counted in 32 bits. */
static bool looks_up_words(const ax_nest *nest, const ax_slot *slot) {
  const int64_t element = (int64_t)ax_dtype_bytes(slot->dtype), bytes = ax_dims_elems(slot->rank, slot->dims) * element;
  return element < 4 && nest->cg.gathers && nest->schedule->lanes >= 8 && bytes <= 4 * ax_caches_here()->second && bytes < INT32_MAX;
}

/* Loads elements of one or two bytes at each lane's offset, of 32 bits, by a gather of the aligned words of four bytes that hold them.
   Such a word may reach past the array's ends, but not into another page. */
static LLVMValueRef load_from_words(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointer, LLVMValueRef offsets, LLVMValueRef mask) {
  const ax_codegen *cg = &nest->cg;
  LLVMBuilderRef b = cg->builder;
  const uint32_t lanes = nest->schedule->lanes, bytes = alignment(element);
  LLVMTypeRef word = ax_cg_int(cg, 32, 1);
  LLVMValueRef two = ax_cg_splat(LLVMConstInt(word, 2, false), lanes), three = ax_cg_splat(LLVMConstInt(word, 3, false), lanes);
  LLVMValueRef beyond = LLVMBuildAnd(b, LLVMBuildCast(b, LLVMPtrToInt, pointer, ax_cg_int(cg, 64, 1), ""), ax_cg_i64(cg, 3), "");
  LLVMValueRef aligned = ax_nest_advance(nest, ax_cg_int(cg, 8, 1), pointer, LLVMBuildNeg(b, beyond, ""));
  LLVMValueRef byte = bytes == 1 ? offsets : LLVMBuildAdd(b, offsets, offsets, "");
  byte = LLVMBuildAdd(b, byte, ax_cg_broadcast(cg, LLVMBuildTrunc(b, beyond, word, ""), lanes), "");
  LLVMValueRef at = LLVMBuildAShr(b, byte, two, ""), within = LLVMBuildShl(b, LLVMBuildAnd(b, byte, three, ""), three, "");
  LLVMValueRef pointers = LLVMBuildGEP2(b, word, aligned, &at, 1, "");
  LLVMValueRef loaded = gather_lanes(nest, word, pointers, mask);
  return LLVMBuildTrunc(b, LLVMBuildLShr(b, loaded, within, ""), ax_cg_int(cg, 8 * bytes, lanes), "");
}

static void prefetch_at(ax_nest *nest, LLVMValueRef pointer, LLVMValueRef bytes) {
  LLVMTypeRef type = LLVMTypeOf(pointer), i32 = LLVMInt32TypeInContext(nest->cg.context);
  LLVMValueRef arguments[] = {ax_nest_advance(nest, ax_cg_int(&nest->cg, 8, 1), pointer, bytes), LLVMConstInt(i32, 0, false),
                              LLVMConstInt(i32, 3, false), LLVMConstInt(i32, 1, false)};
  ax_cg_intrinsic(&nest->cg, "llvm.prefetch", &type, 1, arguments, 4);
}

/* For look-ups of the vector's lanes each in a row of its own, as take_along_axis makes: the row's bytes, if the rows lie behind one another,
   no cache near the core holds them, and most lines of a row are wanted. 0: it is not so. */
static int64_t row_looked_up(const ax_nest_schedule *s, const ax_nest_access *a) {
  const ax_slot *slot = &s->kernel->slots[a->slot];
  const int64_t bytes = (int64_t)ax_dtype_bytes(slot->dtype), row = slot->rank > 0 ? slot->dims[slot->rank - 1] : 0;
  bool moves = false;
  if (slot->rank < 2 || a->stride[s->vector] != 0 || a->at[slot->rank - 1].dynamic == AX_NONE) return 0;
  for (uint32_t d = 0; d + 1 < slot->rank; d++)
    if (a->at[d].dynamic != AX_NONE) return 0;
  for (uint32_t l = 0; l < s->loop_count; l++) moves = moves || (l != s->vector && a->stride[l] == row);
  if (!moves || ax_dims_elems(slot->rank, slot->dims) * bytes <= ax_caches_here()->second) return 0;
  return s->loops[s->vector].extent * 2 * AX_LINE_BYTES >= row * bytes ? row * bytes : 0;
}

/* Which lines come next nobody foresees, so each vector fetches its share of a row that comes later. */
static void prefetch_row_looked_up(ax_nest *nest, const ax_nest_access *a, LLVMValueRef pointer, uint32_t instance) {
  enum { rows_ahead = 2, most_lines = 8 };
  const ax_nest_schedule *s = nest->schedule;
  const int64_t row = row_looked_up(s, a), extent = s->loops[s->vector].extent;
  if (row == 0 || extent == 0) return;
  const int64_t share = (row + extent - 1) / extent;
  const int64_t lines = (share * s->lanes + AX_LINE_BYTES - 1) / AX_LINE_BYTES;
  LLVMBuilderRef b = nest->cg.builder;
  if (lines > most_lines || nest->index[s->vector] == NULL) return;
  const int64_t before = s->unrolled == s->vector ? (int64_t)instance * s->lanes : 0;
  LLVMValueRef done = LLVMBuildMul(b, nest->index[s->vector], ax_cg_i64(&nest->cg, share), "");
  for (int64_t line = 0; line < lines; line++)
    prefetch_at(nest, pointer, LLVMBuildAdd(b, done, ax_cg_i64(&nest->cg, rows_ahead * row + before * share + line * AX_LINE_BYTES), ""));
}

/* Loads an element for each lane at that lane's own dynamic starts. A gather with 32-bit indices, if they are enough, is faster. */
static LLVMValueRef load_looked_up(ax_nest *nest, uint32_t access, LLVMValueRef pointer, uint32_t instance, LLVMValueRef mask) {
  const ax_nest_schedule *schedule = nest->schedule;
  const ax_nest_access *a = &schedule->accesses[access];
  const ax_slot *slot = &schedule->kernel->slots[a->slot];
  LLVMTypeRef element = ax_nest_element(nest, access);
  int64_t stride = a->stride[schedule->vector];
  const uint32_t bits = ax_dims_elems(slot->rank, slot->dims) <= INT32_MAX ? 32 : 64;
  LLVMValueRef offsets = stride == 0 ? NULL : ax_cg_iota(&nest->cg, bits, schedule->lanes, stride);
  prefetch_row_looked_up(nest, a, pointer, instance);
  offsets = ax_nest_add_starts(nest, access, AX_NONE, instance, schedule->lanes, bits, offsets);
  if (looks_up_words(nest, slot)) return load_from_words(nest, element, pointer, offsets, mask);
  if (alignment(element) < 4 && known_lanes(nest, mask) >= 0) return load_one_by_one(nest, element, pointer, offsets, known_lanes(nest, mask));
  LLVMValueRef pointers = LLVMBuildGEP2(nest->cg.builder, element, pointer, &offsets, 1, "");
  return gather_lanes(nest, element, pointers, mask);
}

static LLVMValueRef any_lane(ax_nest *nest, LLVMValueRef mask) {
  LLVMTypeRef type = LLVMTypeOf(mask);
  return ax_cg_intrinsic(&nest->cg, "llvm.vector.reduce.or", &type, 1, &mask, 1);
}

/* The same of a table that registers hold, which costs little whoever wants it; or if any lane wants it (wanted.c), and otherwise zeros. */
static LLVMValueRef load_wanted(ax_nest *nest, uint32_t access, LLVMValueRef pointer, uint32_t instance) {
  const ax_nest_schedule *s = nest->schedule;
  LLVMBuilderRef b = nest->cg.builder;
  LLVMValueRef mask = ax_nest_mask(nest, instance), values[2];
  if (ax_nest_has_small_table(nest, access)) {
    values[0] = ax_nest_add_starts(nest, access, AX_NONE, instance, s->lanes, 32, NULL);
    return ax_nest_look_up_small(nest, access, ax_nest_element(nest, access), pointer, values[0]);
  }
  if (nest->wanted[access] == AX_NONE) return load_looked_up(nest, access, pointer, instance, mask);
  LLVMValueRef wish = ax_nest_value(nest, nest->wanted[access], instance, s->lanes);
  if (mask != NULL) wish = LLVMBuildAnd(b, wish, mask, "");
  LLVMValueRef any = any_lane(nest, wish);
  LLVMBasicBlockRef read = LLVMAppendBasicBlockInContext(nest->cg.context, nest->cg.function, ""),
                    after = LLVMAppendBasicBlockInContext(nest->cg.context, nest->cg.function, ""), from[2] = {LLVMGetInsertBlock(b)};
  LLVMBuildCondBr(b, any, read, after);
  LLVMPositionBuilderAtEnd(b, read);
  values[1] = load_looked_up(nest, access, pointer, instance, mask);
  values[0] = LLVMConstNull(LLVMTypeOf(values[1]));
  from[1] = LLVMGetInsertBlock(b);
  LLVMBuildBr(b, after);
  LLVMPositionBuilderAtEnd(b, after);
  LLVMValueRef phi = LLVMBuildPhi(b, LLVMTypeOf(values[0]), "");
  LLVMAddIncoming(phi, values, from, 2);
  return phi;
}

/* The result of a load whose guard is known to be false: zeros, in as many lanes as the load would have. */
static LLVMValueRef zeros(ax_nest *nest, uint32_t access, ax_dtype dtype) {
  return LLVMConstNull(ax_cg_register(&nest->cg, dtype, ax_nest_lanes_of(nest, access)));
}

/* Where is read what is not wanted: a vector from there on, or up to there. A slot's own first element may be no memory, as where
   a call is for rows of a block that lies elsewhere (run/rows.c). */
static LLVMValueRef nowhere(ax_nest *nest) {
  enum { register_bytes = 64 };
  LLVMTypeRef byte = ax_cg_int(&nest->cg, 8, 1);
  LLVMValueRef middle = ax_cg_i64(&nest->cg, register_bytes);
  if (nest->nowhere == NULL) nest->nowhere = ax_cg_stack(&nest->cg, LLVMArrayType2(byte, 2 * register_bytes));
  return LLVMBuildGEP2(nest->cg.builder, byte, nest->nowhere, &middle, 1, "");
}

/* Loads one element under a guard that is the same for all lanes. If the guard is false, it reads what is nowhere instead and
   returns 0. */
static LLVMValueRef load_one_guarded(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointer, LLVMValueRef guard) {
  LLVMBuilderRef b = nest->cg.builder;
  uint32_t bits = 8 * alignment(element);
  LLVMTypeRef word = ax_cg_int(&nest->cg, bits, 1);
  pointer = LLVMBuildSelect(b, guard, pointer, nowhere(nest), "");
  LLVMValueRef value = LLVMBuildLoad2(b, word, pointer, "");
  LLVMSetAlignment(value, alignment(element));
  return LLVMBuildCast(b, LLVMBitCast, LLVMBuildSelect(b, guard, value, LLVMConstNull(word), ""), element, "");
}

/* Where a vector is loaded under a mask: where no lane is, nowhere. There processors find nothing to fault, which takes them a
   hundred times as long as a load, though no lane needs it. */
static LLVMValueRef masked_place(ax_nest *nest, const ax_nest_access *a, LLVMValueRef pointer, uint32_t instance, LLVMValueRef mask) {
  const bool differs = ax_nest_schedule_depends(nest->schedule, a->guard, nest->schedule->vector);
  if (differs && LLVMIsConstant(mask)) return pointer; /* some lane is there: known_by_lanes */
  LLVMValueRef any = differs ? any_lane(nest, mask) : ax_nest_value(nest, a->guard, instance, 1);
  return LLVMBuildSelect(nest->cg.builder, any, pointer, nowhere(nest), "");
}

/* Loads under a guard. Lanes for which it is false are not read; their elements are 0. */
static LLVMValueRef load_guarded(ax_nest *nest, uint32_t access, ax_dtype dtype, uint32_t instance) {
  const ax_nest_schedule *schedule = nest->schedule;
  const ax_nest_access *a = &schedule->accesses[access];
  int64_t stride = a->stride[schedule->vector];
  LLVMTypeRef element = ax_nest_element(nest, access);
  LLVMValueRef pointer = ax_nest_instance_pointer(nest, access, instance), mask = ax_nest_mask(nest, instance), value;
  bool moved = ax_access_is_moved(a, schedule->vector), differs = ax_nest_schedule_depends(schedule, a->guard, schedule->vector);
  if (!moved && ax_nest_start_is_added_by_load(schedule, a->moved))
    pointer = ax_nest_advance(nest, element, pointer, ax_nest_add_starts(nest, access, AX_NONE, instance, 1, 64, NULL));
  if (stride == 0 && !moved && !differs)
    return ax_cg_to_register(&nest->cg, dtype,
                             load_one_guarded(nest, element, pointer, ax_nest_value(nest, a->guard, instance, 1)), 1);
  LLVMValueRef guard = ax_nest_value(nest, a->guard, instance, schedule->lanes);
  mask = mask == NULL ? guard : LLVMBuildAnd(nest->cg.builder, mask, guard, "");
  if (moved)
    value = load_looked_up(nest, access, pointer, instance, mask);
  else if (stride == 1 || stride == -1)
    value = ax_nest_load_lanes(nest, element, masked_place(nest, a, pointer, instance, guard), stride, mask);
  else
    value = gather(nest, element, pointer, stride, mask);
  return ax_cg_to_register(&nest->cg, dtype, value, schedule->lanes);
}

/* Whether the loops around this kernel lead it from row to long row of an array that is too large for the caches near the core. */
static bool walks_far_rows(const ax_nest *nest, const ax_nest_access *a) {
  enum { least_row = 3 << 10 };
  const ax_slot *slot = &nest->schedule->kernel->slots[a->slot];
  const ax_loop *row = &nest->schedule->loops[nest->schedule->vector];
  const int64_t bytes = (int64_t)ax_dtype_bytes(slot->dtype);
  if (nest->inside == NULL || nest->inside->unrolled || row->extent < least_row / bytes) return false;
  return nest->inside->far[a->slot] || (ax_access_has_starts(nest->schedule, a) && ax_dims_elems(slot->rank, slot->dims) >= ax_caches_here()->far_rows / bytes);
}

/* In shape RUNS (jit/nest/schedule.h), if the array is too large for the caches near the core: the bytes from one of the rows that
   are added up to the next. 0: it is another shape, or a smaller array. */
static int64_t to_next_run(const ax_nest_schedule *s, const ax_nest_access *a) {
  const ax_slot *slot = &s->kernel->slots[a->slot];
  const int64_t bytes = (int64_t)ax_dtype_bytes(slot->dtype);
  if (s->shape != AX_NEST_RUNS || s->listed == 0 || !s->loops[s->listed - 1].reduced ||
      ax_dims_elems(slot->rank, slot->dims) < ax_caches_here()->far_rows / bytes)
    return 0;
  return a->stride[s->listed - 1] * bytes;
}

/* Whether the kernel stores past the caches while it reads an array that no cache holds. */
static bool streams_from(const ax_nest *nest, const ax_nest_access *a) {
  const ax_slot *slot = &nest->schedule->kernel->slots[a->slot];
  return nest->streaming && ax_dims_elems(slot->rank, slot->dims) >= ax_caches_here()->far_rows / (int64_t)ax_dtype_bytes(slot->dtype);
}

/* Prefetches rows of such arrays. The kernel's stores keep the hardware prefetcher from running as far ahead as memory's latency
   needs; some stop at the end of a page besides. */
static void prefetch_rows(ax_nest *nest, const ax_nest_access *a, LLVMValueRef pointer) {
  enum { ahead = 4096 };
  const bool far = walks_far_rows(nest, a) || streams_from(nest, a);
  const int64_t bytes = far ? ahead : to_next_run(nest->schedule, a);
  if (bytes != 0) prefetch_at(nest, pointer, ax_cg_i64(&nest->cg, bytes));
}

/* What is known of a guard whose lanes are constants, as in rows that are short (walk.c): of the lanes that exist. */
static ax_guard_state known_by_lanes(ax_nest *nest, const ax_nest_access *a, uint32_t instance) {
  const ax_nest_schedule *s = nest->schedule;
  const int64_t count = known_lanes(nest, ax_nest_mask(nest, instance));
  if (count < 0 || nest->narrow || !ax_nest_schedule_depends(s, a->guard, s->vector)) return AX_KNOWN_NOT;
  LLVMValueRef guard = ax_nest_value(nest, a->guard, instance, s->lanes), all = ax_walk_constant_mask(nest, count);
  if (!LLVMIsConstant(guard)) return AX_KNOWN_NOT;
  LLVMValueRef holds = LLVMBuildAnd(nest->cg.builder, guard, all, "");
  return holds == LLVMConstNull(LLVMTypeOf(all)) ? AX_KNOWN_FALSE : holds == all ? AX_KNOWN_TRUE : AX_KNOWN_NOT;
}

LLVMValueRef ax_nest_load(ax_nest *nest, uint32_t access, ax_dtype dtype, uint32_t instance) {
  const ax_nest_access *a = &nest->schedule->accesses[access];
  int64_t stride = a->stride[nest->schedule->vector];
  LLVMValueRef *held = ax_nest_held_at(nest, a, instance);
  ax_guard_state guard = a->guard == AX_NONE ? AX_KNOWN_TRUE : ax_nest_known(nest, a->guard, instance);
  if (guard == AX_KNOWN_NOT) guard = known_by_lanes(nest, a, instance);
  if (guard == AX_KNOWN_FALSE) return zeros(nest, access, dtype);
  if (held != NULL) return ax_nest_load_held(nest, access, dtype, *held, guard == AX_KNOWN_NOT, instance);
  if (nest->narrow && a->guard != AX_NONE)
    return ax_cg_to_register(&nest->cg, dtype, ax_nest_load_narrow(nest, access, instance), nest->schedule->lanes);
  if (guard == AX_KNOWN_NOT) return load_guarded(nest, access, dtype, instance);
  if (a->transposed) return ax_nest_load_transposed(nest, access, dtype);
  if (nest->narrow)
    return ax_cg_to_register(&nest->cg, dtype, ax_nest_load_narrow(nest, access, instance), nest->schedule->lanes);
  const ax_ex first = ax_nest_schedule_first_of_column(nest->schedule, access);
  if (first < access) return ax_nest_value(nest, first, instance, nest->schedule->lanes);
  LLVMTypeRef element = ax_nest_element(nest, access);
  LLVMValueRef pointer = ax_nest_instance_pointer(nest, access, instance), value;
  if (ax_access_is_moved(a, nest->schedule->vector))
    return ax_cg_to_register(&nest->cg, dtype, load_wanted(nest, access, pointer, instance),
                             nest->schedule->lanes);
  if (ax_nest_start_is_added_by_load(nest->schedule, a->moved))
    pointer = ax_nest_advance(nest, element, pointer, ax_nest_add_starts(nest, access, AX_NONE, instance, 1, 64, NULL));
  if (ax_nest_is_paired(nest, access, instance)) return ax_nest_load_paired(nest, access, pointer, instance);
  uint32_t lanes = stride == 0 ? 1 : nest->schedule->lanes;
  if (stride == 0) {
    value = ax_nest_load_one(nest, element, pointer);
  } else if (!ax_nest_load_columns(nest, access, pointer, instance, &value)) {
    if (stride == 1) prefetch_rows(nest, a, pointer);
    value = ax_nest_load_lanes(nest, element, pointer, stride, ax_nest_mask(nest, instance));
  }
  value = ax_cg_to_register(&nest->cg, dtype, value, lanes);
  /* Lanes can differ by the guard alone, which is known to be true here. */
  bool same_in_lanes = lanes == 1 && ax_nest_schedule_depends(nest->schedule, access, nest->schedule->vector);
  return same_in_lanes ? ax_cg_broadcast(&nest->cg, value, nest->schedule->lanes) : value;
}

/* If all lanes store to one place, the kernel is valid only if their values agree. So lane 0 is stored. */
void ax_nest_store(ax_nest *nest, uint32_t access, LLVMValueRef value, uint32_t lanes, uint32_t instance) {
  const ax_nest_access *a = &nest->schedule->accesses[access];
  ax_dtype dtype = nest->schedule->kernel->slots[a->slot].dtype;
  int64_t stride = a->stride[nest->schedule->vector];
  LLVMTypeRef element = ax_nest_element(nest, access);
  LLVMValueRef *held = ax_nest_held_at(nest, a, instance);
  if (held != NULL) {
    ax_nest_store_held(nest, dtype, held, value, lanes);
    return;
  }
  LLVMValueRef pointer = ax_nest_instance_pointer(nest, access, instance);
  if (stride == 0 && !nest->narrow) {
    if (lanes > 1) value = LLVMBuildExtractElement(nest->cg.builder, value, ax_cg_i64(&nest->cg, 0), "");
    value = LLVMBuildStore(nest->cg.builder, ax_cg_to_memory(&nest->cg, dtype, value, 1), pointer);
    LLVMSetAlignment(value, alignment(element));
    return;
  }
  if (lanes == 1) value = ax_cg_broadcast(&nest->cg, value, nest->schedule->lanes);
  if (ax_nest_is_paired(nest, access, instance)) {
    ax_nest_store_paired(nest, access, pointer, value, instance);
    return;
  }
  value = ax_cg_to_memory(&nest->cg, dtype, value, nest->schedule->lanes);
  if (nest->narrow)
    ax_nest_store_narrow(nest, access, value, instance);
  else if (nest->streaming && ax_nest_mask(nest, instance) == NULL)
    ax_nest_mark_streamed(nest, LLVMBuildStore(nest->cg.builder, value, pointer), nest->schedule->lanes * alignment(element));
  else
    ax_nest_store_lanes(nest, element, pointer, stride, ax_nest_mask(nest, instance), value);
}
