/* Flat kernels: shapes of one class share their code, which gives the bits of the kernel's own over any part of its range; what
   depends on more than the element it is at stays as it is. */
#include <stdlib.h>
#include <string.h>

#include "assemble/flat.h"
#include "jit/jit.h"
#include "support/cmocka.h"

enum { most_elems = 70000 };
static float x[most_elems], w[1] = {0.3f};

static ax_position along(int dim) { return (ax_position){.dim = dim, .coef = 1, .dynamic = AX_NONE}; }

/* y = tanh(x) * w, w a single element. */
static ax_loop_kernel *make(ax_arena *arena, uint32_t rank, const int64_t *dims, uint32_t ranged) {
  ax_loop_kernel *k = ax_kernel_create(arena, rank, 0, dims);
  ax_position at[AX_MAX_RANK];
  ax_at_identity(at, rank);
  ax_ex e = ax_kernel_load(k, ax_kernel_slot(k, AX_F32, rank, dims), at);
  ax_ex by = ax_kernel_load(k, ax_kernel_slot(k, AX_F32, 0, NULL), NULL);
  e = ax_kernel_op(k, AX_SCALAR_MUL, AX_F32, ax_kernel_op(k, AX_SCALAR_TANH, AX_F32, e, AX_NONE, AX_NONE), by, AX_NONE);
  ax_kernel_store(k, ax_kernel_slot(k, AX_F32, rank, dims), at, e, AX_SCALAR_NONE);
  k->ranged = ranged;
  assert_false(k->failed);
  return k;
}

static const struct {
  uint32_t rank, ranged;
  int64_t dims[4];
} shapes[] = {{1, 0, {511}},        {1, 0, {512}},      {1, 0, {513}},      {2, 0, {23, 29}},
              {2, 0, {1, 600}},     {2, 1, {1, 600}},   {3, 0, {7, 1, 91}}, {1, 0, {32768}},
              {1, 0, {32769}},      {2, 0, {181, 179}}, {2, 0, {257, 255}}, {4, 0, {3, 5, 7, 11}},
              {3, 1, {1, 40, 400}}, {2, 0, {69999, 1}}, {2, 0, {2, 256}},   {2, 0, {100, 640}}};

static ax_kernel_code compile(ax_compiler *jit, const ax_loop_kernel *kernel) {
  ax_kernel_code code;
  assert_int_equal(ax_jit_compile(jit, &kernel, 1, &code), AX_OK);
  return code;
}

static void same_bits(void **state) {
  (void)state;
  static float own[most_elems], flat_y[most_elems];
  for (int64_t i = 0; i < most_elems; i++) x[i] = (float)(i % 1999) / 300 - 3;
  ax_compiler *jit;
  assert_int_equal(ax_jit_create(NULL, &jit), AX_OK);
  for (size_t s = 0; s < AX_COUNT(shapes); s++) {
    ax_arena arena = {0};
    int64_t scale, cuts[] = {0, 1, 3, 0};
    const ax_loop_kernel *kernel = make(&arena, shapes[s].rank, shapes[s].dims, shapes[s].ranged),
                         *flat = ax_kernel_flat(&arena, kernel, &scale);
    const int64_t extent = cuts[3] = ax_kernel_extent(kernel);
    memset(own, 0, sizeof own);
    memset(flat_y, 0, sizeof flat_y);
    compile(jit, kernel)((void *[]){x, w, own}, NULL, 0, extent);
    for (int c = 0; c < 3; c++) {
      const int64_t begin = cuts[c] < extent ? cuts[c] : extent, end = c == 2                 ? extent
                                                                       : cuts[c + 1] < extent ? cuts[c + 1]
                                                                                              : extent;
      if (begin < end) compile(jit, flat)((void *[]){x, w, flat_y}, NULL, begin * scale, end * scale);
    }
    assert_memory_equal(own, flat_y, sizeof own);
    ax_arena_deinit(&arena);
  }
  ax_jit_destroy(jit);
}

/* One code for all shapes of a class: of blocks, of few elements, of many. */
static void code_is_shared(void **state) {
  (void)state;
  enum { blocks, few, many };
  const ax_loop_kernel *of[3] = {NULL};
  ax_arena arena = {0};
  for (size_t s = 0; s < AX_COUNT(shapes); s++) {
    int64_t scale, elems = 1;
    for (uint32_t d = 0; d < shapes[s].rank; d++) elems *= shapes[s].dims[d];
    const ax_loop_kernel *kernel = make(&arena, shapes[s].rank, shapes[s].dims, shapes[s].ranged),
                         *flat = ax_kernel_flat(&arena, kernel, &scale);
    assert_true((flat == kernel) == (elems < 512));
    if (flat == kernel) continue;
    const int64_t step = elems / ax_kernel_extent(kernel);
    const int class = step % 64 == 0 ? blocks : elems <= 32768 ? few : many;
    assert_int_equal(scale, class == blocks ? step / 64 : step);
    if (of[class] == NULL) of[class] = flat;
    assert_true(ax_kernel_equal(flat, of[class]));
  }
  assert_false(ax_kernel_equal(of[few], of[many]));
  assert_false(ax_kernel_equal(of[blocks], of[many]));
  ax_arena_deinit(&arena);
}

/* A kernel over [40, 50] that loads a slot of rank 2 at these positions, guarded or reduced, and stores what becomes of it. */
static bool is_flat(const int64_t *slot_dims, const ax_position *at, ax_position second, bool index, uint32_t ranged) {
  static const int64_t dims[] = {40, 50};
  ax_arena arena = {0};
  ax_position positions[2] = {at != NULL ? at[0] : along(0), second}, there[2];
  ax_at_identity(there, 2);
  int64_t scale;
  ax_loop_kernel *k = ax_kernel_create(&arena, 2, 0, dims);
  ax_ex e = ax_kernel_load(k, ax_kernel_slot(k, AX_S64, 2, slot_dims), positions);
  if (index) e = ax_kernel_op(k, AX_SCALAR_ADD, AX_S64, e, ax_kernel_index(k, 1), AX_NONE);
  ax_kernel_store(k, ax_kernel_slot(k, AX_S64, 2, dims), there, e, AX_SCALAR_NONE);
  k->ranged = ranged;
  const bool flat = ax_kernel_flat(&arena, k, &scale) != k;
  assert_true(flat || scale == 1);
  ax_arena_deinit(&arena);
  return flat;
}

static void others_stay(void **state) {
  (void)state;
  static const int64_t same[] = {40, 50}, wider[] = {40, 51}, turned[] = {50, 40}, row[] = {1, 50};
  const ax_position none = {.dim = -1, .dynamic = AX_NONE}, across = along(1),
                    reversed = {.dim = 1, .coef = -1, .offset = 49, .dynamic = AX_NONE},
                    shifted = {.dim = 1, .coef = 1, .offset = 1, .dynamic = AX_NONE};
  assert_true(is_flat(same, NULL, along(1), false, 0));
  assert_false(is_flat(same, NULL, along(1), false, 1));   /* a range is no interval of elements */
  assert_false(is_flat(same, NULL, along(1), true, 0));    /* the index is used */
  assert_false(is_flat(wider, NULL, along(1), false, 0));  /* rows are longer */
  assert_false(is_flat(wider, NULL, shifted, false, 0));
  assert_false(is_flat(same, NULL, reversed, false, 0));
  assert_false(is_flat(turned, &across, along(0), false, 0)); /* transposed */
  assert_false(is_flat(row, &none, along(1), false, 0));      /* one row for all */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits), cmocka_unit_test(code_is_shared), cmocka_unit_test(others_stay)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
