/* Random kernels against the plain way of running them: shapes, strides, ranges, reductions. Values are small integers, of which
   every sum is exact in any order, so results must be equal bit for bit; arrays stand next to forbidden pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <stdio.h>

#include "jit/jit.h"
#include "jit/guarded_test.h"
#include "jit/reference_test.h"
#include "jit/widths_test.h"
#include "plan/blocks.h"

enum { max_slots = 12 };

static uint64_t random_state;
static uint64_t pick(uint64_t below) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (random_state >> 33) % below;
}
static bool chance(uint64_t one_in) { return pick(one_in) == 0; }

/* --- Making kernels --- */

static ax_dtype pick_dtype(void) {
  static const ax_dtype often[] = {AX_F32, AX_F32, AX_F32, AX_S32, AX_BF16, AX_F16,
                                   AX_F64, AX_S64, AX_U8,  AX_S16, AX_BOOL};
  return often[pick(AX_COUNT(often))];
}

static int64_t pick_extent(int64_t room) {
  static const int64_t extents[] = {1,  2,  3,  4,  5,  7,  8,  10, 15,  16,  17,
                                    24, 31, 32, 33, 40, 63, 64, 65, 130, 300, 1100};
  int64_t extent = extents[pick(AX_COUNT(extents))];
  return extent > room ? 1 + (int64_t)pick(3) % room : extent;
}

/* Different at each step: looked up by one or two loop indices, or made of one. */
static ax_ex make_moving_start(ax_loop_kernel *k) {
  int64_t dims[2];
  ax_position at[2];
  uint32_t rank = 1 + (uint32_t)pick(2);
  if (chance(4)) return ax_kernel_index(k, (uint32_t)pick(k->rank));
  for (uint32_t d = 0; d < rank; d++) {
    int dim = (int)pick(k->rank);
    dims[d] = k->dims[dim];
    at[d] = (ax_position){.dim = dim, .coef = 1, .dynamic = AX_NONE};
  }
  if (rank == 2 && dims[0] * dims[1] > 1 << 16) rank = 1;
  ax_dtype dtype = chance(2) ? AX_S64 : AX_S32;
  ax_ex start = ax_kernel_load(k, ax_kernel_slot(k, dtype, rank, dims), at);
  return dtype == AX_S64 ? start : ax_kernel_op(k, AX_SCALAR_CONVERT, AX_S64, start, AX_NONE, AX_NONE);
}

/* A dimension of one index; -1. */
static int single_dim(const ax_loop_kernel *k) {
  for (uint32_t d = 0; d < k->rank; d++)
    if (k->dims[d] == 1) return (int)d;
  return -1;
}

static ax_ex make_start(ax_loop_kernel *k) {
  if (single_dim(k) >= 0 && chance(6)) return ax_kernel_index(k, (uint32_t)single_dim(k));
  switch (pick(3)) {
    case 0:
      return ax_kernel_const(k, AX_S64, (int64_t)pick(9) - 3);
    case 1:
      return ax_kernel_axis(k, (uint32_t)pick(2));
    default: {
      int64_t one = 1;
      return ax_kernel_load(k, ax_kernel_slot(k, AX_S64, 1, &one),
                            (ax_position[]){{.dim = single_dim(k), .coef = 1, .dynamic = AX_NONE}});
    }
  }
}

/* Fills one dimension of a slot so that `at` stays inside; returns its size. */
static int64_t make_at(ax_loop_kernel *k, ax_position *at, int dim, bool plain, bool moves) {
  static const int64_t coefs[] = {1, 1, 1, 1, 1, 2, 3, 5, 9, -1, -1, -2};
  int64_t last = dim >= 0 ? k->dims[dim] - 1 : 0, reach;
  *at = (ax_position){.dim = dim, .coef = plain ? 1 : coefs[pick(AX_COUNT(coefs))], .dynamic = AX_NONE};
  reach = (at->coef < 0 ? -at->coef : at->coef) * (last > 0 ? last : 0);
  at->offset = (at->coef < 0 ? reach : 0) + (plain ? 0 : (int64_t)pick(3));
  int64_t size = (at->coef < 0 ? at->offset : at->offset + reach) + 1 + (plain ? 0 : (int64_t)pick(2));
  moves = moves && k->rank > 0 && chance(4) && k->slot_count < max_slots / 2;
  if (plain || !(moves || chance(6))) return size;
  at->limit = (int64_t)pick(4);
  at->dynamic = moves ? make_moving_start(k) : make_start(k);
  return size + at->limit;
}

/* A position that goes beyond the slot at either end, and the condition under which it does not. Returns the slot's size. */
static int64_t make_guarded_at(ax_loop_kernel *k, ax_position *at, int dim, ax_ex *guard) {
  static const int64_t coefs[] = {1, 1, 1, 1, 2, 5, -1, -3};
  int64_t coef = coefs[pick(AX_COUNT(coefs))], extent = dim >= 0 ? k->dims[dim] : 1, reach = coef * (extent - 1);
  int64_t low = reach < 0 ? reach : 0, span = (reach < 0 ? -reach : reach) + 1, before = (int64_t)pick(4),
          size = span - before - (int64_t)pick(3);
  if (size < 1) size = 1;
  if (chance(4)) size = 1 + (int64_t)pick((uint64_t)span);
  *at = (ax_position){.dim = dim, .coef = coef, .offset = -low - before, .dynamic = AX_NONE};
  *guard = ax_kernel_both(k, *guard, ax_kernel_inside(k, dim, coef, at->offset, size));
  return size;
}

static ax_ex to_dtype(ax_loop_kernel *k, ax_ex value, ax_dtype dtype) {
  return k->exprs[value].dtype == dtype ? value : ax_kernel_op(k, AX_SCALAR_CONVERT, dtype, value, AX_NONE, AX_NONE);
}

/* Over the kernel's dimensions in order, some left out. */
static ax_ex make_guarded_load(ax_loop_kernel *k, ax_dtype dtype) {
  ax_position at[AX_MAX_RANK];
  int64_t dims[AX_MAX_RANK], elems = 1;
  ax_ex guard = AX_NONE;
  uint32_t rank = k->rank;
  bool turned = chance(5);
  for (uint32_t d = 0; d < rank; d++) {
    int dim = chance(6) ? -1 : (int)(turned ? rank - 1 - d : d);
    if (dim >= 0 && elems * k->dims[dim] * 5 > 1 << 21) dim = -1;
    if (chance(3)) dims[d] = make_at(k, &at[d], dim, false, false);
    else dims[d] = make_guarded_at(k, &at[d], dim, &guard);
    elems *= dims[d];
  }
  if (k->rank > 0 && chance(4))
    guard = ax_kernel_both(k, guard, ax_kernel_inside(k, (int)pick(k->rank), 1, (int64_t)pick(5) - 3, 1 + (int64_t)pick(20)));
  ax_ex value = ax_kernel_load_where(k, ax_kernel_slot(k, dtype, rank, dims), at, guard);
  if (guard == AX_NONE || chance(2)) return value;
  return ax_kernel_op(k, AX_SCALAR_SELECT, dtype, guard, value, to_dtype(k, ax_kernel_const(k, AX_S64, 3), dtype));
}

static ax_ex make_load(ax_loop_kernel *k, ax_dtype dtype) {
  ax_position at[AX_MAX_RANK];
  int64_t dims[AX_MAX_RANK], elems = 1;
  uint32_t rank = k->rank, parallel = rank - k->reduce_rank, order = (uint32_t)pick(5);
  bool plain = !chance(3);
  if (chance(4) && ax_dims_elems(k->rank, k->dims) > 0) return make_guarded_load(k, dtype);
  if (order == 0) rank = (uint32_t)pick(k->rank + 2);
  for (uint32_t d = 0; d < rank; d++) {
    int dim = (int)(order == 1 ? rank - 1 - d : d);
    if (order == 3) dim = (int)((d + parallel) % k->rank); /* reduced dimensions first */
    if (order == 4 && k->reduce_rank > 0 && d <= parallel) dim = (int)(d == 0 ? parallel : d - 1); /* only one of them */
    if (order == 0) dim = k->rank == 0 || chance(4) ? -1 : (int)pick(k->rank);
    if (order == 2 && chance(3)) dim = -1;
    if (dim >= 0 && elems * k->dims[dim] * 9 > 1 << 21) dim = -1;
    dims[d] = make_at(k, &at[d], dim, plain, true);
    elems *= dims[d];
  }
  return ax_kernel_load(k, ax_kernel_slot(k, dtype, rank, dims), at);
}

static ax_ex make_leaf(ax_loop_kernel *k, ax_dtype dtype) {
  if (k->rank > 0 && chance(8)) { /* small enough to be exact in any dtype */
    ax_ex index = ax_kernel_index(k, (uint32_t)pick(k->rank)), two = ax_kernel_const(k, AX_S64, 2);
    return to_dtype(k, ax_kernel_op(k, AX_SCALAR_MIN, AX_S64, index, two, AX_NONE), dtype);
  }
  if (chance(8)) return to_dtype(k, ax_kernel_const(k, AX_S32, (int64_t)pick(3)), dtype);
  if (chance(5)) return to_dtype(k, make_load(k, AX_U8), dtype);
  return make_load(k, dtype);
}

static ax_ex make_expr(ax_loop_kernel *k, ax_dtype dtype) {
  static const ax_scalar ops[] = {AX_SCALAR_ADD, AX_SCALAR_MUL, AX_SCALAR_MAX, AX_SCALAR_MIN};
  ax_ex value = make_leaf(k, dtype);
  for (uint64_t i = pick(4); i > 0; i--) {
    ax_ex other = make_leaf(k, dtype);
    if (chance(4)) {
      ax_ex less = ax_kernel_op(k, AX_SCALAR_LT, AX_BOOL, value, other, AX_NONE);
      value = ax_kernel_op(k, AX_SCALAR_SELECT, dtype, less, other, value);
    } else {
      value = ax_kernel_op(k, ops[pick(4)], dtype, value, other, AX_NONE);
    }
  }
  return value;
}

/* Every dimension the store uses, once, in some order. */
static void make_store(ax_loop_kernel *k, ax_dtype dtype, ax_scalar reduce) {
  ax_position at[AX_MAX_RANK];
  int64_t dims[AX_MAX_RANK];
  uint32_t rank = reduce == AX_SCALAR_NONE ? k->rank : k->rank - k->reduce_rank;
  bool transposed = chance(4), plain = !chance(4);
  ax_ex value = make_expr(k, dtype);
  if (reduce == AX_SCALAR_NONE && chance(5)) { /* bytes beside whatever the others store */
    value = ax_kernel_op(k, AX_SCALAR_LT, AX_BOOL, value, make_leaf(k, dtype), AX_NONE);
    dtype = AX_BOOL;
  }
  for (uint32_t d = 0; d < rank; d++) dims[d] = make_at(k, &at[d], (int)(transposed ? rank - 1 - d : d), plain, false);
  ax_kernel_store(k, ax_kernel_slot(k, dtype, rank, dims), at, value, reduce);
}

static ax_scalar pick_reduce(ax_dtype dtype) {
  static const ax_scalar ops[] = {AX_SCALAR_ADD, AX_SCALAR_ADD, AX_SCALAR_MAX,
                                  AX_SCALAR_MIN, AX_SCALAR_AND, AX_SCALAR_OR};
  return ops[pick(ax_is_float(dtype) ? 4 : 6)];
}

static ax_loop_kernel *make_kernel(ax_arena *arena) {
  int64_t dims[4], room = chance(12) ? 100000 : 6000;
  uint32_t rank = (uint32_t)pick(5);
  for (uint32_t d = 0; d < rank; d++) {
    dims[d] = pick_extent(room);
    room /= dims[d];
  }
  bool long_sums = chance(6), narrow = !long_sums && rank >= 2 && chance(3); /* many results of many rows each; many rows of few */
  bool apart = !long_sums && !narrow && rank >= 3 && chance(2); /* what is reduced over may lie on both sides of the rest */
  static const int64_t widths_of_rows[] = {2, 3, 3, 4, 5, 6, 7, 8, 9, 11, 13, 15, 16, 17},
                       rows[] = {1, 15, 16, 17, 31, 63, 64, 65, 127, 129, 300, 4095, 4096, 4097, 4111, 4200};
  if (narrow) {
    rank = 2 + (uint32_t)pick(2);
    dims[rank - 1] = widths_of_rows[pick(AX_COUNT(widths_of_rows))];
    dims[rank - 2] = chance(3) ? 2 : rows[pick(AX_COUNT(rows))];
    if (rank == 3) dims[0] = dims[1] == 2 ? rows[pick(AX_COUNT(rows))] : 1 + (int64_t)pick(2);
  }
  if (long_sums) {
    rank = 2;
    dims[0] = 1 + (int64_t)pick(1500);
    dims[1] = 1 + (int64_t)pick(60);
  }
  ax_loop_kernel *k = ax_kernel_create(arena, rank, long_sums ? 1 : apart ? 2 : chance(2) ? 0 : (uint32_t)pick(rank + 1), dims);
  if (rank > k->reduce_rank && chance(2)) k->ranged = (uint32_t)pick(rank - k->reduce_rank);
  for (uint64_t stores = 1 + pick(chance(4) ? 6 : 2); stores > 0;
       stores--) { /* many: masks and addresses are more than registers hold */
    ax_dtype dtype = pick_dtype();
    bool reduces = k->reduce_rank > 0 && !chance(4);
    make_store(k, dtype, reduces ? pick_reduce(dtype) : AX_SCALAR_NONE);
  }
  k->streams = k->reduce_rank == 0 && k->store_count == 1 && chance(2);
  assert_false(k->failed);
  return k;
}

/* --- Running them --- */

static int64_t slot_elems(const ax_slot *slot) {
  int64_t elems = 1;
  for (uint32_t d = 0; d < slot->rank; d++) elems *= slot->dims[d];
  return elems;
}

static void fill(const ax_slot *slot, void *data) {
  for (int64_t i = 0; i < slot_elems(slot); i++) {
    int64_t value = slot->dtype == AX_BOOL ? (int64_t)pick(2)
                    : slot->dtype == AX_U8 ? (int64_t)pick(3)
                                           : (int64_t)pick(5) - 2;
    store_number(slot->dtype, data, i, ax_is_float(slot->dtype) ? (number){.f = (double)value} : (number){.i = value});
  }
}

static void explain(const ax_loop_kernel *kernel, uint32_t width, uint32_t slot, size_t at) {
  ax_text text = {0};
  char *words = NULL;
  ax_kernel_text(&text, kernel);
  assert_int_equal(ax_text_finish(&text, &words), AX_OK);
  print_error("width %u, slot %u, byte %zu of:\n%s", widths[width], slot, at, words);
  ax_free(words);
}

/* In pieces where it may be split, in whatever order. */
static void run_pieces(ax_kernel_code code, const ax_loop_kernel *kernel, void *const *slots, const int64_t *coordinates) {
  int64_t extent = ax_kernel_extent(kernel);
  if (kernel->reduce_rank == kernel->rank || chance(2)) {
    code(slots, coordinates, 0, extent);
    return;
  }
  int64_t a = (int64_t)pick((uint64_t)extent + 1), b = a + (int64_t)pick((uint64_t)(extent - a) + 1);
  code(slots, coordinates, b, extent);
  code(slots, coordinates, 0, a);
  code(slots, coordinates, a, b);
}

/* Its reduction made in blocks. False: it cannot be. */
static bool run_blocks(const ax_loop_kernel *kernel, void *const *slots, const int64_t *coordinates) {
  ax_plan plan = {0};
  ax_op op = {.kind = AX_OP_KERNEL}, made[AX_BLOCKED_OPS];
  uint32_t buffers[64], count = 0, dim = kernel->rank - kernel->reduce_rank;
  void *memory[2 * 64 + AX_BLOCKED_OPS] = {NULL};
  if (kernel->reduce_rank > 0) dim += (uint32_t)pick(kernel->reduce_rank);
  if (kernel->reduce_rank == 0 || kernel->dims[dim] < 2) return false;
  for (uint32_t s = 0; s < kernel->slot_count; s++) {
    const ax_slot *slot = &kernel->slots[s];
    ax_buffer buffer = {.type = ax_array_type(slot->dtype, AX_LIST(slot->rank, slot->dims)), .allocation = AX_NONE};
    assert_int_equal(ax_plan_add_buffer(&plan, &buffer, &buffers[s]), AX_OK);
    memory[s] = slots[s];
  }
  op.kernel.kernel = (ax_loop_kernel *)kernel;
  op.kernel.buffers = buffers;
  int64_t blocks = 2 + (int64_t)pick((uint64_t)(kernel->dims[dim] < 6 ? kernel->dims[dim] - 1 : 5));
  assert_int_equal(ax_reduce_in_blocks(&plan, &op, dim, blocks, made, &count), AX_OK);
  for (uint32_t b = kernel->slot_count; b < plan.buffer_count; b++) /* parts, and views of slots */
    memory[b] = plan.buffers[b].allocation != b
                    ? memory[plan.buffers[b].allocation]
                    : calloc((size_t)ax_type_elems(&plan.buffers[b].type), ax_dtype_bytes(plan.buffers[b].type.dtype));
  for (uint32_t i = 0; i < count; i++) {
    const ax_loop_kernel *part = made[i].kernel.kernel;
    void *part_slots[64];
    ax_kernel_code code;
    for (uint32_t s = 0; s < part->slot_count; s++) part_slots[s] = memory[made[i].kernel.buffers[s]];
    if (ax_jit_compile(jits[0], &part, 1, &code) != AX_OK) fail_msg("%s", ax_message());
    run_pieces(code, part, part_slots, coordinates);
  }
  for (uint32_t b = kernel->slot_count; b < plan.buffer_count; b++)
    if (plan.buffers[b].allocation == b) free(memory[b]);
  ax_free(plan.buffers);
  ax_arena_deinit(&plan.arena);
  return count > 0;
}

static void compare(const ax_loop_kernel *kernel, uint32_t width, void *const *got, void *const *wanted, const size_t *bytes) {
  for (uint32_t s = 0; s < kernel->slot_count; s++)
    for (size_t i = 0; i < bytes[s]; i++)
      if (((char *)got[s])[i] != ((char *)wanted[s])[i]) {
        explain(kernel, width, s, i);
        fail();
      }
}

/* Whether it could also be made in blocks. */
static bool try_kernel(const ax_loop_kernel *kernel) {
  static const int64_t coordinates[] = {1, 5};
  guarded got[64], wanted[64];
  void *slots[64], *reference_slots[64], *before[64];
  size_t bytes[64];
  assert_true(kernel->slot_count <= 64);
  for (uint32_t s = 0; s < kernel->slot_count; s++) {
    bytes[s] = (size_t)slot_elems(&kernel->slots[s]) * ax_dtype_bytes(kernel->slots[s].dtype);
    got[s] = guarded_create(bytes[s], s % 2 == 0);
    wanted[s] = guarded_create(bytes[s], true);
    slots[s] = got[s].data;
    reference_slots[s] = wanted[s].data;
    fill(&kernel->slots[s], wanted[s].data);
    before[s] = malloc(bytes[s] + 1);
    memcpy(before[s], wanted[s].data, bytes[s]);
  }
  reference_run(kernel, reference_slots, coordinates, 0, kernel->rank > 0 ? kernel->dims[0] : 1);
  for (uint32_t w = 0; w < width_count; w++) {
    ax_kernel_code code;
    if (ax_jit_compile(jits[w], &kernel, 1, &code) != AX_OK) fail_msg("%s", ax_message());
    for (uint32_t s = 0; s < kernel->slot_count; s++) memcpy(slots[s], before[s], bytes[s]);
    run_pieces(code, kernel, slots, coordinates);
    compare(kernel, w, slots, reference_slots, bytes);
  }
  for (uint32_t s = 0; s < kernel->slot_count; s++) memcpy(slots[s], before[s], bytes[s]);
  bool blocked = run_blocks(kernel, slots, coordinates);
  if (blocked) compare(kernel, 0, slots, reference_slots, bytes);
  for (uint32_t s = 0; s < kernel->slot_count; s++) {
    free(before[s]);
    guarded_destroy(&got[s]);
    guarded_destroy(&wanted[s]);
  }
  return blocked;
}

static void random_kernels(void **state) {
  const char *seed = getenv("AXLE_JIT_SEED"), *count = getenv("AXLE_JIT_KERNELS");
  int kernels = count != NULL ? atoi(count) : 150, blocked = 0;
  (void)state;
  random_state = seed != NULL ? strtoull(seed, NULL, 10) : 1;
  for (int i = 0; i < kernels; i++) {
    ax_arena arena = {0};
    blocked += try_kernel(make_kernel(&arena));
    ax_arena_deinit(&arena);
  }
  if (kernels >= 150 && blocked < kernels / 50) fail_msg("only %d of %d kernels were made in blocks", blocked, kernels);
}

/* Shapes that are large enough for each way to walk what lies in one order and is wanted in another. */
typedef struct walk {
  uint32_t rank, reduced; /* the last dimensions are reduced over */
  int64_t dims[4];        /* of the kernel */
  int order[4];           /* of these, in the array that is read */
} walk;

static void try_walk(const walk *w, ax_dtype dtype) {
  ax_arena arena = {0};
  ax_position from[4], to[4];
  int64_t dims[4];
  ax_loop_kernel *k = ax_kernel_create(&arena, w->rank, w->reduced, w->dims);
  for (uint32_t d = 0; d < w->rank; d++) {
    from[d] = (ax_position){.dim = w->order[d], .coef = 1, .dynamic = AX_NONE};
    dims[d] = w->dims[w->order[d]];
  }
  ax_at_identity(to, w->rank - w->reduced);
  if (w->rank > w->reduced + 1) k->ranged = (uint32_t)pick(w->rank - w->reduced);
  ax_ex value = ax_kernel_load(k, ax_kernel_slot(k, dtype, w->rank, dims), from);
  ax_kernel_store(k, ax_kernel_slot(k, dtype, w->rank - w->reduced, w->dims), to, value,
                  w->reduced == 0 ? AX_SCALAR_NONE
                  : chance(2)     ? AX_SCALAR_MAX
                                  : AX_SCALAR_ADD);
  assert_false(k->failed);
  try_kernel(k);
  k->streams = w->reduced == 0;
  if (k->streams) try_kernel(k);
  k->ranged = w->rank - 1; /* so that parts begin anywhere in the lines of a cache */
  if (k->streams) try_kernel(k);
  ax_arena_deinit(&arena);
}

static void orders_of_dimensions(void **state) {
  static const walk walks[] = {
      {2, 0, {64, 64}, {1, 0}},
      {2, 0, {65, 130}, {1, 0}},
      {2, 0, {200, 33}, {1, 0}},
      {2, 0, {17, 16}, {1, 0}},
      {2, 0, {16, 257}, {1, 0}},
      {2, 0, {300, 271}, {1, 0}},
      {3, 0, {3, 70, 63}, {0, 2, 1}},
      {3, 0, {40, 5, 66}, {2, 1, 0}},
      {2, 0, {128, 192}, {1, 0}},
      {3, 0, {70, 3, 64}, {2, 1, 0}},
      {2, 0, {3, 2100}, {0, 1}},
      {3, 0, {20, 7, 950}, {0, 2, 1}},
      {3, 0, {5, 13, 256}, {0, 2, 1}},
      {3, 0, {10, 300, 7}, {2, 1, 0}},
      {3, 0, {8, 500, 8}, {2, 1, 0}},
      {3, 0, {40, 30, 5}, {2, 1, 0}},
      {3, 0, {33, 17, 9}, {2, 1, 0}},
      {4, 0, {14, 6, 9, 5}, {3, 2, 1, 0}},
      {4, 0, {3, 70, 11, 2}, {3, 1, 2, 0}},
      {4, 0, {9, 5, 70, 4}, {2, 3, 1, 0}},
      {4, 0, {4, 31, 25, 3}, {3, 2, 1, 0}},
      {3, 0, {1100, 6, 7}, {2, 1, 0}},
      {4, 0, {2, 9, 1201, 31}, {0, 2, 1, 3}},
      {4, 0, {1, 16, 4500, 8}, {0, 2, 1, 3}},
      {3, 2, {37, 5, 100}, {1, 0, 2}},
      {3, 2, {300, 64, 17}, {1, 0, 2}},
      {3, 2, {37, 2, 100}, {1, 0, 2}},
      {4, 2, {3, 130, 9, 70}, {2, 0, 1, 3}},
      {4, 2, {5, 33, 7, 40}, {0, 2, 1, 3}},
  };
  static const ax_dtype dtypes[] = {AX_U8, AX_S16, AX_BF16, AX_F32, AX_F64};
  (void)state;
  random_state = 1;
  for (uint32_t i = 0; i < AX_COUNT(walks); i++)
    for (uint32_t d = 0; d < AX_COUNT(dtypes); d++) try_walk(&walks[i], walks[i].reduced > 0 && d < 3 ? AX_F32 : dtypes[d]);
}

/* Sums and extremes of stencils: each element and its neighbours, `reach` away in either direction, with 0 outside of the array. */
typedef struct stencil {
  uint32_t rank, reduced;
  int64_t dims[3], reach;
} stencil;

static void try_stencil(const stencil *s, ax_dtype dtype) {
  ax_arena arena = {0};
  ax_position at[3];
  ax_loop_kernel *k = ax_kernel_create(&arena, s->rank, s->reduced, s->dims);
  const uint32_t slot = ax_kernel_slot(k, dtype, s->rank, s->dims);
  ax_at_identity(at, s->rank);
  ax_ex value = ax_kernel_load(k, slot, at);
  for (uint32_t d = 0; d < s->rank; d++)
    for (int64_t side = -s->reach; side <= s->reach; side += 2 * s->reach) {
      at[d].offset = side;
      const ax_ex near = ax_kernel_load_where(k, slot, at, ax_kernel_inside(k, (int)d, 1, side, s->dims[d]));
      value = ax_kernel_op(k, AX_SCALAR_ADD, dtype, value, near, AX_NONE);
      at[d].offset = 0;
    }
  ax_at_identity(at, s->rank - s->reduced);
  ax_kernel_store(k, ax_kernel_slot(k, dtype, s->rank - s->reduced, s->dims), at, value, AX_SCALAR_ADD);
  ax_kernel_store(k, ax_kernel_slot(k, dtype, s->rank - s->reduced, s->dims), at, value, AX_SCALAR_MAX);
  assert_false(k->failed);
  try_kernel(k);
  ax_arena_deinit(&arena);
}

static void sums_of_stencils(void **state) {
  static const stencil stencils[] = {
      {1, 1, {1000}, 1},      {1, 1, {256}, 3},       {1, 1, {70}, 40},     {2, 2, {9, 250}, 1},   {2, 2, {20, 64}, 1},
      {2, 2, {7, 129}, 2},    {2, 1, {33, 200}, 1},   {2, 1, {5, 16}, 1},   {2, 2, {3, 1024}, 70}, {3, 3, {5, 6, 77}, 1},
      {3, 2, {4, 5, 160}, 1}, {3, 1, {3, 40, 96}, 2}, {3, 3, {2, 3, 31}, 5}};
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_BF16, AX_S32};
  (void)state;
  random_state = 1;
  for (uint32_t i = 0; i < AX_COUNT(stencils); i++)
    for (uint32_t d = 0; d < AX_COUNT(dtypes); d++) try_stencil(&stencils[i], dtypes[d]);
}

/* `value`, but for the first rows, which are 3, and the first ones of what is around them, which are `other`. */
static ax_ex chosen_by_rows(ax_loop_kernel *k, ax_dtype dtype, ax_ex value, ax_ex other) {
  const ax_ex rows = ax_kernel_inside(k, 1, 1, -10, 700), around = ax_kernel_inside(k, 0, 1, -1, k->dims[0]);
  value = ax_kernel_op(k, AX_SCALAR_SELECT, dtype, rows, value, to_dtype(k, ax_kernel_const(k, AX_S64, 3), dtype));
  return ax_kernel_op(k, AX_SCALAR_SELECT, dtype, ax_kernel_both(k, around, rows), value, other);
}

/* Rows of few elements between others, of which conditions on rows and columns pick those that are loaded; where conditions on
   rows and on what is around them do not hold, they are others, or numbers. */
static void padded_short_rows(void **state) {
  static const struct padding {
    int64_t before, rows, columns, low[2], high[2]; /* elements beside the array, by dimension; columns may be read backwards */
    int64_t coef, rows_coef;                        /* rows may be read backwards too */
    bool chooses;
  } paddings[] = {{1, 5000, 5, {1, 1}, {1, 1}, 1, 1, false},   {1, 5000, 3, {0, 0}, {1, 1}, 1, 1, false},
                  {1, 4200, 7, {0, 3}, {9, 0}, 1, 1, false},   {3, 4200, 4, {2, 1}, {70, 2}, 1, 1, false},
                  {1, 6000, 2, {0, 6}, {0, 6}, 1, 1, false},   {1, 5000, 5, {3, 2}, {2, 1}, -1, 1, false},
                  {1, 4200, 9, {-2, -3}, {5, 1}, 1, 1, false}, {1, 5000, 3, {0, 0}, {0, 0}, 1, -1, false},
                  {4, 2000, 5, {3, 1}, {20, 2}, 1, -1, false}, {3, 2000, 4, {1, 2}, {5, 0}, -1, -1, false},
                  {7, 900, 3, {0, 0}, {0, 0}, 1, 1, true},     {7, 900, 3, {4, 0}, {9, 0}, 1, -1, true},
                  {5, 800, 5, {2, 1}, {3, 1}, 1, 1, true}};
  static const ax_dtype dtypes[] = {AX_U8, AX_BF16, AX_F32, AX_F64};
  (void)state;
  random_state = 1;
  for (uint32_t i = 0; i < AX_COUNT(paddings); i++)
    for (uint32_t d = 0; d < AX_COUNT(dtypes); d++) {
      const struct padding *p = &paddings[i];
      const int64_t dims[] = {p->before, p->rows + p->low[0] + p->high[0], p->columns + p->low[1] + p->high[1]};
      const int64_t from[] = {p->before, p->rows, p->columns}, last = p->coef < 0 ? p->columns - 1 + p->low[1] : -p->low[1];
      ax_arena arena = {0};
      ax_loop_kernel *k = ax_kernel_create(&arena, 3, 0, dims);
      ax_position at[3];
      ax_at_identity(at, 3);
      at[1].coef = p->rows_coef, at[1].offset = p->rows_coef < 0 ? p->rows - 1 + p->low[0] : -p->low[0];
      at[2].coef = p->coef, at[2].offset = last;
      const ax_ex guard = ax_kernel_both(k, ax_kernel_inside(k, 1, at[1].coef, at[1].offset, p->rows),
                                         ax_kernel_inside(k, 2, p->coef, last, p->columns));
      const uint32_t slot = ax_kernel_slot(k, dtypes[d], 3, from);
      ax_ex value = ax_kernel_load_where(k, slot, at, guard);
      const ax_ex middle = ax_kernel_both(k, guard, ax_kernel_inside(k, 0, 1, -2, 3));
      if (p->chooses) value = chosen_by_rows(k, dtypes[d], value, ax_kernel_load_where(k, slot, at, middle));
      ax_at_identity(at, 3);
      ax_kernel_store(k, ax_kernel_slot(k, dtypes[d], 3, dims), at, value, AX_SCALAR_NONE);
      k->ranged = 1;
      assert_false(k->failed);
      try_kernel(k);
      ax_arena_deinit(&arena);
    }
}

/* Rows of 6 in vectors of 8, of which functions are computed, sums are made and bools are stored: the mask of a row's bytes has 8 bits,
   and the instruction that stores them looks at 16. */
static void bools_of_short_rows(void **state) {
  static const ax_dtype dtypes[] = {AX_BOOL, AX_U8, AX_S8, AX_BF16};
  (void)state;
  random_state = 1;
  for (int64_t columns = 1; columns < 8; columns++)
    for (uint32_t d = 0; d < AX_COUNT(dtypes); d++)
      for (uint32_t others = 0; others < 6; others++) {
        const int64_t dims[] = {21, columns};
        ax_arena arena = {0};
        ax_loop_kernel *k = ax_kernel_create(&arena, 2, 1, dims);
        ax_position at[2], of_row[1];
        ax_at_identity(at, 2);
        ax_at_identity(of_row, 1);
        const ax_ex x = ax_kernel_load(k, ax_kernel_slot(k, AX_F64, 2, dims), at), zero = ax_kernel_const(k, AX_F64, 0),
                    power = ax_kernel_op(k, AX_SCALAR_ERF, AX_F64, x, AX_NONE, AX_NONE),
                    bit = ax_kernel_op(k, AX_SCALAR_GE, AX_BOOL, x, zero, AX_NONE);
        const ax_ex byte = dtypes[d] == AX_BOOL ? bit : ax_kernel_op(k, AX_SCALAR_CONVERT, dtypes[d], bit, AX_NONE, AX_NONE);
        ax_kernel_store(k, ax_kernel_slot(k, AX_F64, 1, dims), of_row, x, AX_SCALAR_MAX);
        ax_kernel_store(k, ax_kernel_slot(k, dtypes[d], 2, dims), at, byte, AX_SCALAR_NONE);
        for (uint32_t i = 0; i < others; i++)
          ax_kernel_store(k, ax_kernel_slot(k, AX_F64, 2, dims), at,
                          ax_kernel_op(k, AX_SCALAR_MUL, AX_F64, power, i % 2 == 0 ? x : power, AX_NONE), AX_SCALAR_NONE);
        assert_false(k->failed);
        try_kernel(k);
        ax_arena_deinit(&arena);
      }
}

/* A number for each short row, of the first rows only: in blocks of rows that have none it is a zero in all lanes. */
static void numbers_of_some_short_rows(void **state) {
  static const int64_t columns[] = {3, 5, 7, 15};
  (void)state;
  random_state = 1;
  for (uint32_t i = 0; i < 2 * AX_COUNT(columns); i++) {
    const int64_t dims[] = {4096, columns[i / 2]}, table[] = {5 * 4096, 3};
    ax_arena arena = {0};
    ax_loop_kernel *k = ax_kernel_create(&arena, 2, 0, dims);
    ax_position of_row[2] = {{.dim = 0, .coef = 5, .dynamic = AX_NONE}, {.dim = -1, .offset = 2, .dynamic = AX_NONE}}, at[2];
    ax_at_identity(at, 2);
    const ax_ex guard = ax_kernel_inside(k, 0, 1, 1, i % 2 == 0 ? 13 : 4000),
                x = ax_kernel_load(k, ax_kernel_slot(k, AX_F32, 2, dims), at),
                column = ax_kernel_op(k, AX_SCALAR_CONVERT, AX_F32, ax_kernel_index(k, 1), AX_NONE, AX_NONE),
                number = ax_kernel_load_where(k, ax_kernel_slot(k, AX_F32, 2, table), of_row, guard);
    ax_kernel_store(k, ax_kernel_slot(k, AX_F32, 2, dims), at, ax_kernel_op(k, AX_SCALAR_MIN, AX_F32, column, number, AX_NONE),
                    AX_SCALAR_NONE);
    ax_kernel_store(k, ax_kernel_slot(k, AX_F32, 2, dims), at, x, AX_SCALAR_NONE);
    assert_false(k->failed);
    try_kernel(k);
    ax_arena_deinit(&arena);
  }
}

/* table[p[i, j]] = x[i, j, k], where calls do a range of a dimension that has one index. */
static void stores_that_start_where_loads_say(void **state) {
  static const int64_t shapes[][3] = {{1, 1, 1}, {1, 1, 9}, {1, 1, 100}};
  static const ax_dtype dtypes[] = {AX_BOOL, AX_U8, AX_BF16, AX_F32, AX_F64};
  (void)state;
  random_state = 1;
  for (uint32_t i = 0; i < AX_COUNT(shapes) * AX_COUNT(dtypes) * 2 * 8; i++) {
    const int64_t *dims = shapes[i % AX_COUNT(shapes)], table[] = {5, 4, dims[2]};
    const ax_dtype dtype = dtypes[i % AX_COUNT(dtypes)];
    ax_arena arena = {0};
    ax_loop_kernel *k = ax_kernel_create(&arena, 3, 0, dims);
    ax_position at[3];
    ax_at_identity(at, 3);
    const ax_ex start = ax_kernel_load(k, ax_kernel_slot(k, AX_S64, 2, dims), at), x = ax_kernel_load(k, ax_kernel_slot(k, dtype, 3, dims), at);
    at[0].dynamic = start, at[0].limit = 4;
    at[1].dynamic = ax_kernel_op(k, AX_SCALAR_ADD, AX_S64, start, ax_kernel_index(k, 0), AX_NONE), at[1].limit = 3;
    ax_kernel_store(k, ax_kernel_slot(k, dtype, 3, table), at, x, AX_SCALAR_NONE);
    k->ranged = (uint32_t)pick(2);
    assert_false(k->failed);
    try_kernel(k);
    ax_arena_deinit(&arena);
  }
}

/* y[i, j] = table[i, p[i, j]], of a table that no cache near the core holds: later rows are prefetched, also behind the last one. */
static void look_ups_in_rows_of_their_own(void **state) {
  static const struct table {
    int64_t rows, row, lookups;
  } tables[] = {{600, 1003, 211}, {40, 16000, 500}, {700, 900, 1700}, {5, 200000, 7}};
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_BF16};
  (void)state;
  random_state = 1;
  for (uint32_t i = 0; i < AX_COUNT(tables) * AX_COUNT(dtypes); i++) {
    const struct table *t = &tables[i % AX_COUNT(tables)];
    const ax_dtype dtype = dtypes[i / AX_COUNT(tables)];
    const int64_t dims[] = {t->rows, t->lookups}, from[] = {t->rows, t->row};
    ax_arena arena = {0};
    ax_loop_kernel *k = ax_kernel_create(&arena, 2, 0, dims);
    ax_position at[2], looked[2];
    ax_at_identity(at, 2);
    ax_at_identity(looked, 2);
    const ax_ex number = ax_kernel_load(k, ax_kernel_slot(k, AX_S32, 2, dims), at), column = ax_kernel_index(k, 1);
    const ax_ex place = ax_kernel_op(k, AX_SCALAR_ADD, AX_S64, ax_kernel_op(k, AX_SCALAR_CONVERT, AX_S64, number, AX_NONE, AX_NONE), column, AX_NONE);
    looked[1] = (ax_position){.dim = -1, .dynamic = place, .limit = t->row - 1};
    ax_kernel_store(k, ax_kernel_slot(k, dtype, 2, dims), at, ax_kernel_load(k, ax_kernel_slot(k, dtype, 2, from), looked), AX_SCALAR_NONE);
    k->ranged = 1;
    assert_false(k->failed);
    try_kernel(k);
    ax_arena_deinit(&arena);
  }
}

/* y = table[p] where a mask holds that seldom does, of which each of four arrays has a part; else another number. Also sums over j, and look-ups by
   what was looked up. */
static void look_ups_that_few_want(void **state) {
  static const int64_t shapes[][2] = {{3, 211}, {40, 8}, {700, 5}, {1, 4000}, {129, 64}};
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_S32, AX_U8, AX_BF16};
  (void)state;
  random_state = 1;
  for (uint32_t i = 0; i < AX_COUNT(shapes) * AX_COUNT(dtypes) * 4; i++) {
    const int64_t *dims = shapes[i % AX_COUNT(shapes)], table[] = {300};
    const ax_dtype dtype = dtypes[i / AX_COUNT(shapes) % AX_COUNT(dtypes)];
    const bool sums = i / AX_COUNT(shapes) / AX_COUNT(dtypes) % 2 == 1, twice = i / AX_COUNT(shapes) / AX_COUNT(dtypes) / 2 == 1;
    ax_arena arena = {0};
    ax_loop_kernel *k = ax_kernel_create(&arena, 2, sums, dims);
    ax_position at[2], looked = {.dim = -1, .limit = 299};
    ax_at_identity(at, 2);
    ax_ex mask = ax_kernel_load(k, ax_kernel_slot(k, AX_BOOL, 2, dims), at);
    for (int part = 0; part < 3; part++)
      mask = ax_kernel_op(k, AX_SCALAR_AND, AX_BOOL, mask, ax_kernel_load(k, ax_kernel_slot(k, AX_BOOL, 2, dims), at), AX_NONE);
    looked.dynamic = ax_kernel_op(k, AX_SCALAR_CONVERT, AX_S64, ax_kernel_load(k, ax_kernel_slot(k, AX_S32, 2, dims), at), AX_NONE, AX_NONE);
    if (twice) looked.dynamic = ax_kernel_op(k, AX_SCALAR_CONVERT, AX_S64, ax_kernel_load(k, ax_kernel_slot(k, AX_S32, 1, table), &looked), AX_NONE, AX_NONE);
    const ax_ex found = ax_kernel_load(k, ax_kernel_slot(k, dtype, 1, table), &looked), other = to_dtype(k, ax_kernel_const(k, AX_S32, 3), dtype);
    const ax_ex y = ax_kernel_op(k, AX_SCALAR_SELECT, dtype, mask, ax_kernel_op(k, AX_SCALAR_ADD, dtype, found, found, AX_NONE), other);
    ax_kernel_store(k, ax_kernel_slot(k, dtype, 2 - sums, dims), at, y, sums ? AX_SCALAR_ADD : AX_SCALAR_NONE);
    assert_false(k->failed);
    try_kernel(k);
    ax_arena_deinit(&arena);
  }
}

/* y[i, j] = table[p[i, j] + j] and table[p[i, j] + columns - 1 - j], also where a guard holds, of numbers of one and two bytes: words of four bytes
   are gathered, which reach past both ends. */
static void look_ups_of_narrow_numbers(void **state) {
  static const ax_dtype dtypes[] = {AX_S8, AX_BOOL, AX_F8E4M3FN, AX_U16, AX_F16, AX_BF16};
  static const int64_t widths_of_rows[] = {37, 128}, beyond[] = {0, 2, 1001};
  enum { ways = 4 };
  (void)state;
  random_state = 1;
  for (uint32_t i = 0; i < AX_COUNT(dtypes) * AX_COUNT(widths_of_rows) * AX_COUNT(beyond) * ways; i++) {
    const ax_dtype dtype = dtypes[i % AX_COUNT(dtypes)];
    const uint32_t shape = i / AX_COUNT(dtypes), way = shape / AX_COUNT(widths_of_rows) / AX_COUNT(beyond);
    const int64_t columns = widths_of_rows[shape % AX_COUNT(widths_of_rows)], more = beyond[shape / AX_COUNT(widths_of_rows) % AX_COUNT(beyond)];
    const int64_t dims[] = {3, columns}, size = columns + more;
    const bool backwards = way % 2 == 1;
    ax_arena arena = {0};
    ax_loop_kernel *k = ax_kernel_create(&arena, 2, 0, dims);
    ax_position at[2], looked = {.dim = 1, .coef = backwards ? -1 : 1, .offset = backwards ? columns - 1 : 0, .limit = more};
    ax_at_identity(at, 2);
    const ax_ex number = ax_kernel_load(k, ax_kernel_slot(k, AX_S32, 2, dims), at);
    const ax_ex place = ax_kernel_op(k, AX_SCALAR_REM, AX_S32, number, ax_kernel_const(k, AX_S32, 2 * more + 1), AX_NONE);
    const ax_ex guard = way < 2 ? AX_NONE : ax_kernel_load(k, ax_kernel_slot(k, AX_BOOL, 2, dims), at);
    looked.dynamic = ax_kernel_op(k, AX_SCALAR_CONVERT, AX_S64, place, AX_NONE, AX_NONE);
    ax_kernel_store(k, ax_kernel_slot(k, dtype, 2, dims), at, ax_kernel_load_where(k, ax_kernel_slot(k, dtype, 1, &size), &looked, guard), AX_SCALAR_NONE);
    assert_false(k->failed);
    try_kernel(k);
    ax_arena_deinit(&arena);
  }
}

/* y[i, j] = table[p[i, j]], table[i, p[i, j]] or table[i, p[i, j], q[i, j]], of tables that a few registers hold and of tables that are just too
   large for that (ax_nest_has_small_table, ax_nest_look_up_small). Half of the places are beyond an end, and stand for what is there. */
static void look_ups_in_small_tables(void **state) {
  static const ax_dtype dtypes[] = {AX_F32, AX_S8, AX_BOOL, AX_BF16, AX_U16, AX_S32, AX_F64, AX_S64};
  static const int64_t sizes[] = {1, 2, 5, 16, 17, 31, 32, 33, 63, 64, 97, 128, 129, 160}, widths_of_rows[] = {16, 37, 64};
  (void)state;
  random_state = 1;
  for (uint32_t i = 0; i < AX_COUNT(dtypes) * AX_COUNT(sizes) * 3; i++) {
    const ax_dtype dtype = dtypes[i % AX_COUNT(dtypes)];
    const int64_t dims[] = {3, widths_of_rows[(i + i / AX_COUNT(dtypes)) % AX_COUNT(widths_of_rows)]};
    const int64_t size = sizes[i / AX_COUNT(dtypes) % AX_COUNT(sizes)], table[] = {3, size, 3};
    const uint32_t rank = 1 + i / AX_COUNT(dtypes) / AX_COUNT(sizes);
    ax_arena arena = {0};
    ax_loop_kernel *k = ax_kernel_create(&arena, 2, 0, dims);
    ax_position at[2], looked[3];
    ax_at_identity(at, 2);
    ax_at_identity(looked, 2);
    for (uint32_t d = rank > 1; d < rank; d++) {
      const ax_ex number = ax_kernel_load(k, ax_kernel_slot(k, AX_S32, 2, dims), at);
      const ax_ex place = ax_kernel_op(k, AX_SCALAR_REM, AX_S32, number, ax_kernel_const(k, AX_S32, 2 * size), AX_NONE);
      looked[d] = (ax_position){.dim = -1, .limit = (rank == 1 ? size : table[d]) - 1};
      looked[d].dynamic = ax_kernel_op(k, AX_SCALAR_CONVERT, AX_S64, place, AX_NONE, AX_NONE);
    }
    const ax_ex found = ax_kernel_load(k, ax_kernel_slot(k, dtype, rank, rank == 1 ? &size : table), looked);
    ax_kernel_store(k, ax_kernel_slot(k, dtype, 2, dims), at, found, AX_SCALAR_NONE);
    assert_false(k->failed);
    try_kernel(k);
    ax_arena_deinit(&arena);
  }
}

/* y = x[i - down, j - right] + x[i + down, j + right], with indices that wrap, or that find 0 beyond the ends: rows of a few vectors, each of which
   has code of its own (ax_walk_is_short, ax_walk_short, known_by_lanes). */
static void rolls_of_short_rows(void **state) {
  static const int64_t shapes[][2] = {{5, 16}, {5, 17}, {4, 31}, {33, 33}, {3, 48}, {6, 65}, {4, 95}, {3, 97}, {1, 40}}, shifts[] = {0, 1, 3, 15};
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_BF16, AX_S8};
  (void)state;
  random_state = 1;
  for (uint32_t i = 0; i < AX_COUNT(shapes) * AX_COUNT(shifts) * 4; i++) {
    const int64_t *dims = shapes[i % AX_COUNT(shapes)], by = shifts[i / AX_COUNT(shapes) % AX_COUNT(shifts)];
    const ax_dtype dtype = dtypes[(i + i / AX_COUNT(shapes)) % AX_COUNT(dtypes)];
    const uint32_t kind = i / AX_COUNT(shapes) / AX_COUNT(shifts);
    const bool wraps = kind % 2 == 1;
    const int64_t shift[] = {kind / 2 == 1 ? by % dims[0] : 0, by};
    ax_arena arena = {0};
    ax_loop_kernel *k = ax_kernel_create(&arena, 2, 0, dims);
    const uint32_t x = ax_kernel_slot(k, dtype, 2, dims);
    ax_position at[2], from[2];
    ax_ex sum = AX_NONE;
    for (int side = -1; side <= 1; side += 2)
      for (uint32_t around = 0; around < (wraps ? 4u : 1u); around++) { /* a bit each: whether it is beyond the end of dimension d */
        ax_ex guard = AX_NONE;
        ax_at_identity(from, 2);
        for (uint32_t d = 0; d < 2; d++) {
          from[d].offset = side * shift[d] - (around >> d & 1 ? side * dims[d] : 0);
          guard = ax_kernel_both(k, guard, ax_kernel_inside(k, (int)d, 1, from[d].offset, dims[d]));
        }
        const ax_ex loaded = ax_kernel_load_where(k, x, from, guard);
        sum = sum == AX_NONE ? loaded : ax_kernel_op(k, AX_SCALAR_ADD, dtype, sum, loaded, AX_NONE);
      }
    ax_at_identity(at, 2);
    ax_kernel_store(k, ax_kernel_slot(k, dtype, 2, dims), at, sum, AX_SCALAR_NONE);
    assert_false(k->failed);
    try_kernel(k);
    ax_arena_deinit(&arena);
  }
}

/* Sums of a number that is the same in all of the many steps, which LLVM must not compute itself: they take no more memory than others. */
static void long_sums_of_constants(void **state) {
  static const int64_t shapes[][3] = {{1, 16, 1 << 20}, {1, 1, 1 << 20}, {2, 3, 300000}};
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_BF16};
  static const int64_t coordinates[] = {1, 5};
  (void)state;
  for (uint32_t i = 0; i < AX_COUNT(shapes) * AX_COUNT(dtypes); i++) {
    const int64_t *dims = shapes[i % AX_COUNT(shapes)];
    const ax_dtype dtype = dtypes[i / AX_COUNT(shapes)];
    ax_arena arena = {0};
    ax_loop_kernel *k = ax_kernel_create(&arena, 3, 1, dims);
    ax_position at[2];
    ax_at_identity(at, 2);
    const ax_ex x = to_dtype(k, ax_kernel_const(k, AX_S32, 1), dtype);
    ax_kernel_store(k, ax_kernel_slot(k, dtype, 2, dims), at, x, AX_SCALAR_ADD);
    assert_false(k->failed);
    for (uint32_t w = 0; w < width_count; w++) {
      char sums[6 * 8 * 8];
      ax_kernel_code code;
      const ax_loop_kernel *kernel = k;
      if (ax_jit_compile(jits[w], &kernel, 1, &code) != AX_OK) fail_msg("%s", ax_message());
      code((void *[]){sums}, coordinates, 0, ax_kernel_extent(k));
      for (int64_t r = 0; r < dims[0] * dims[1]; r++)
        assert_true(fabs(load_number(dtype, sums, r).f - (double)dims[2]) <= (double)dims[2] / 256);
    }
    ax_arena_deinit(&arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_kernels),
                                     cmocka_unit_test(orders_of_dimensions),
                                     cmocka_unit_test(sums_of_stencils),
                                     cmocka_unit_test(padded_short_rows),
                                     cmocka_unit_test(stores_that_start_where_loads_say),
                                     cmocka_unit_test(look_ups_in_rows_of_their_own),
                                     cmocka_unit_test(look_ups_that_few_want),
                                     cmocka_unit_test(look_ups_of_narrow_numbers), cmocka_unit_test(look_ups_in_small_tables),
                                     cmocka_unit_test(rolls_of_short_rows),
                                     cmocka_unit_test(bools_of_short_rows),
                                     cmocka_unit_test(numbers_of_some_short_rows),
                                     cmocka_unit_test(long_sums_of_constants)};
  return cmocka_run_group_tests(tests, make_jits, destroy_jits);
}
