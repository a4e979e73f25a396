/* Kernels that are given their numbers: those that differ in numbers alone share code, which gives the bits of the kernel's own. */
#include "assemble/given.h"

#include <string.h>

#include "axle/ops.h"
#include "code/compiled.h"
#include "ir/number.h"
#include "jit/widths_test.h"
#include "support/cmocka.h"
#include "support/run.h"

enum { rows = 5, columns = 37 };

static ax_ex number(ax_loop_kernel *k, ax_dtype dtype, double value) {
  int64_t bits = 0;
  ax_number_store(dtype, &bits, 0, (ax_number){.f = value});
  return ax_kernel_const(k, dtype, bits);
}
static ax_ex op(ax_loop_kernel *k, ax_scalar what, ax_dtype dtype, ax_ex a, ax_ex b) {
  return ax_kernel_op(k, what, dtype, a, b, AX_NONE);
}

/* y = max((x[i0, i1] * a + b) / c, d - x) where x > a, elsewhere b; summed up along i1 if asked for. */
static ax_loop_kernel *make(ax_arena *arena, ax_dtype dtype, bool sums, const double *n) {
  static const int64_t dims[] = {rows, columns};
  ax_loop_kernel *k = ax_kernel_create(arena, 2, sums, dims);
  ax_position at[2];
  ax_at_identity(at, 2);
  const uint32_t from = ax_kernel_slot(k, dtype, 2, dims), to = ax_kernel_slot(k, dtype, sums ? 1 : 2, dims);
  const ax_ex x = ax_kernel_load(k, from, at), a = number(k, dtype, n[0]), b = number(k, dtype, n[1]);
  ax_ex y = op(k, AX_SCALAR_DIV, dtype, op(k, AX_SCALAR_ADD, dtype, op(k, AX_SCALAR_MUL, dtype, x, a), b), number(k, dtype, n[2]));
  y = op(k, AX_SCALAR_MAX, dtype, y, op(k, AX_SCALAR_SUB, dtype, number(k, dtype, n[3]), x));
  y = ax_kernel_op(k, AX_SCALAR_SELECT, dtype, op(k, AX_SCALAR_GT, AX_BOOL, x, a), y, b);
  ax_kernel_store(k, to, at, y, sums ? AX_SCALAR_ADD : AX_SCALAR_NONE);
  assert_false(k->failed);
  return k;
}

static const double some[] = {1.5, -0.375, 3, 7}, others[] = {-4.25, 0.625, 3, 100};

static void run(ax_compiler *jit, const ax_loop_kernel *kernel, void *x, void *y, const uint64_t *bits, uint32_t count) {
  ax_kernel_code code;
  void *slots[2 + AX_MAX_GIVEN] = {x, y};
  if (count > 0) memcpy(&slots[2], bits, count * sizeof bits[0]);
  assert_int_equal(ax_jit_compile(jit, &kernel, 1, &code), AX_OK);
  code(slots, NULL, 0, rows);
}

static void same_bits(void **state) {
  (void)state;
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_BF16, AX_F16};
  for (size_t d = 0; d < AX_COUNT(dtypes); d++) {
    _Alignas(64) static double x[rows * columns], own[rows * columns], given[rows * columns];
    for (int i = 0; i < rows * columns; i++) ax_number_store(dtypes[d], x, i, (ax_number){.f = (double)(i * 29 % 83) / 7 - 4});
    for (int w = 0; w < width_count; w++)
      for (int sums = 0; sums < 2; sums++)
        for (int which = 0; which < 2; which++) {
          ax_arena arena = {0};
          uint64_t bits[AX_MAX_GIVEN];
          uint32_t count;
          const ax_loop_kernel *kernel = make(&arena, dtypes[d], sums, which == 0 ? some : others),
                               *shared = ax_kernel_given(&arena, kernel, bits, &count);
          assert_int_equal(count, 3);
          memset(own, 0, sizeof own);
          memset(given, 0, sizeof given);
          run(jits[w], kernel, x, own, NULL, 0);
          run(jits[w], shared, x, given, bits, count);
          assert_memory_equal(own, given, sizeof own);
          ax_arena_deinit(&arena);
        }
  }
}

/* Whether kernels with these numbers share code. */
static bool alike(const double *a, const double *b) {
  ax_arena arena = {0};
  uint64_t bits[AX_MAX_GIVEN];
  uint32_t count;
  const bool equal = ax_kernel_equal(ax_kernel_given(&arena, make(&arena, AX_F32, false, a), bits, &count),
                                     ax_kernel_given(&arena, make(&arena, AX_F32, false, b), bits, &count));
  ax_arena_deinit(&arena);
  return equal;
}

static void code_is_shared(void **state) {
  (void)state;
  assert_true(alike(some, others));
  assert_false(alike(some, (const double[]){1.5, -0.375, 4, 7})); /* a divisor, which may become a product */
  assert_false(alike(some, (const double[]){1, -0.375, 3, 7}));  /* numbers with instructions of their own */
  assert_false(alike(some, (const double[]){1.5, 0, 3, 7}));
  assert_false(alike(some, (const double[]){1.5, -0.375, 3, 2}));
}

/* Whether two kernels share code that add (or multiply by) 40 numbers, of which the first is `a` in one and `b` in the other. */
static bool long_ones_alike(ax_scalar what, double a, double b) {
  static const int64_t dims[] = {columns};
  ax_arena arena = {0};
  uint64_t bits[AX_MAX_GIVEN];
  uint32_t count;
  const ax_loop_kernel *made[2];
  for (int k = 0; k < 2; k++) {
    ax_loop_kernel *kernel = ax_kernel_create(&arena, 1, 0, dims);
    ax_position at[1];
    ax_at_identity(at, 1);
    ax_ex y = ax_kernel_load(kernel, ax_kernel_slot(kernel, AX_F32, 1, dims), at);
    for (int i = 0; i < 40; i++) y = op(kernel, what, AX_F32, y, number(kernel, AX_F32, i > 0 ? 3 + i + 50 * k : k == 0 ? a : b));
    ax_kernel_store(kernel, ax_kernel_slot(kernel, AX_F32, 1, dims), at, y, AX_SCALAR_NONE);
    made[k] = ax_kernel_given(&arena, kernel, bits, &count);
    assert_true(count == 39 || count == 40);
  }
  const bool equal = ax_kernel_equal(made[0], made[1]);
  ax_arena_deinit(&arena);
  return equal;
}

/* In a kernel of many numbers 1, 2 and a half are as others are, where no product is made of them. */
static void one_of_many_is_given(void **state) {
  (void)state;
  assert_true(long_ones_alike(AX_SCALAR_ADD, 0.5, 0.75));
  assert_true(long_ones_alike(AX_SCALAR_MAX, -1, 2));
  assert_false(long_ones_alike(AX_SCALAR_MUL, 0.5, 0.75));
  assert_false(long_ones_alike(AX_SCALAR_ADD, 0, 0.75));
}

/* Places and functions keep their numbers. */
static void others_are_kept(void **state) {
  (void)state;
  static const int64_t dims[] = {columns};
  ax_arena arena = {0};
  uint64_t bits[AX_MAX_GIVEN];
  uint32_t count;
  ax_loop_kernel *k = ax_kernel_create(&arena, 1, 0, dims);
  ax_position at[1];
  ax_at_identity(at, 1);
  const uint32_t from = ax_kernel_slot(k, AX_F32, 1, dims), to = ax_kernel_slot(k, AX_F32, 1, dims);
  at[0].dynamic = ax_kernel_const(k, AX_S64, 3);
  const ax_ex x = ax_kernel_load(k, from, at), power = op(k, AX_SCALAR_POW, AX_F32, x, number(k, AX_F32, 2.75));
  ax_at_identity(at, 1);
  ax_kernel_store(k, to, at, power, AX_SCALAR_NONE);
  assert_ptr_equal(ax_kernel_given(&arena, k, bits, &count), k);
  assert_int_equal(count, 0);
  ax_arena_deinit(&arena);
}

/* Sums one after the other, of numbers that the last sum is added to and a factor of its own scales. */
static void sums(const ax_value *in, ax_value *out, void *context) {
  out[0] = in[1];
  for (int i = 0; i < *(const int *)context; i++)
    out[0] = ax_reduce_sum(ax_mul(ax_add(in[0], out[0]), ax_full_like(in[0], 1.0 / (3 + i))), AX_DIMS(0), false);
}

/* How many kernels are given numbers, of so many sums. */
static uint32_t given_in(int count) {
  ax_runtime *runtime;
  ax_executable *executable;
  const ax_type types[] = {TEST_TYPE(AX_F32, 64), TEST_SCALAR(AX_F32)};
  uint32_t given = 0;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_jit(runtime, AX_CLOSURE(sums, 2, 1, &count), types, NULL, &executable));
  const ax_code *code = &test_compiled(executable)->codes[0];
  for (uint32_t i = 0; i < code->instr_count; i++)
    given += code->instrs[i].kind == AX_INSTR_KERNEL && code->instrs[i].kernel.given != NULL;
  ax_executable_release(executable);
  ax_runtime_release(runtime);
  return given;
}

static void few_kernels_keep_their_numbers(void **state) {
  (void)state;
  assert_int_equal(given_in(3), 0);
  assert_int_equal(given_in(4), 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(same_bits),
      cmocka_unit_test(code_is_shared),
      cmocka_unit_test(one_of_many_is_given),
      cmocka_unit_test(others_are_kept),
      cmocka_unit_test(few_kernels_keep_their_numbers),
  };
  return cmocka_run_group_tests(tests, make_jits, destroy_jits);
}
