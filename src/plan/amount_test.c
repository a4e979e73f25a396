/* What products read: each number of their factors once, however many results it goes into. */
#include <math.h>

#include "axle/ops.h"
#include "axle/program.h"
#include "plan/amount.h"
#include "support/cmocka.h"
#include "support/run.h"

static void expect(const ax_gemm *gemm, double read, double written) {
  const ax_op op = {.kind = AX_OP_GEMM, .gemm = (ax_gemm *)(uintptr_t)(const void *)gemm};
  const ax_amount amount = ax_op_amount(NULL, &op);
  assert_true(amount.read == read && amount.written == written);
}

static void of_matrices(void **state) {
  (void)state;
  ax_gemm g = {.dtype = AX_F32, .m = 5, .n = 7, .k = 3, .lda = 3, .ldb = 7, .ldc = 7};
  expect(&g, 4 * (15 + 21), 4 * 35);
  g.transpose_a = true, g.lda = 9; /* some columns of a larger one */
  expect(&g, 4 * (15 + 21), 4 * 35);
  g.accumulate = true;
  expect(&g, 4 * (15 + 21 + 35), 4 * 35);
  g = (ax_gemm){.dtype = AX_F64, .m = 0, .n = 7, .k = 3, .lda = 3, .ldb = 7, .ldc = 7};
  expect(&g, 8 * 21, 0);
}

/* A batch whose right factors are one. */
static void of_batches(void **state) {
  (void)state;
  const ax_gemm g = {.dtype = AX_BF16,
                     .m = 5,
                     .n = 7,
                     .k = 3,
                     .lda = 3,
                     .ldb = 7,
                     .ldc = 7,
                     .batch_rank = 1,
                     .batch = {11},
                     .a_stride = {15},
                     .c_stride = {35}};
  expect(&g, 2 * (11 * 15 + 21), 2 * 11 * 35);
}

/* Windows of 3 by 3 in an image of 10 by 12, 8 features: rows and places overlap. With a stride that is longer than the window,
   some is never read. */
static void of_windows(void **state) {
  (void)state;
  ax_gemm g = {.dtype = AX_F32,
               .m = 10,
               .n = 4,
               .k = 3 * 8,
               .lda = 8,
               .ldb = 4,
               .ldc = 4,
               .batch_rank = 1,
               .batch = {8},
               .a_stride = {96},
               .c_stride = {40},
               .term_rank = 1,
               .terms = {3},
               .a_term = {96},
               .b_term = {96}};
  expect(&g, 4 * (10 * 12 * 8 + 9 * 8 * 4), 4 * 8 * 10 * 4);
  g.m = 3, g.lda = 4 * 8;
  expect(&g, 4 * (10 * (3 * 3 * 8) + 9 * 8 * 4), 4 * 8 * 3 * 4);
}

/* --- Kernels --- */

static ax_position along(int dim, int64_t coef) { return (ax_position){.dim = dim, .coef = coef, .dynamic = AX_NONE}; }

/* y[i] = the sum over j of exp(x[i, j]) + b[j], x of bf16. */
static void of_kernels(void **state) {
  (void)state;
  ax_arena arena = {0};
  const int64_t dims[] = {10, 20}, longer[] = {1000};
  ax_loop_kernel *k = ax_kernel_create(&arena, 2, 1, dims);
  const ax_position at[] = {along(0, 1), along(1, 1)};
  const ax_ex x = ax_kernel_load(k, ax_kernel_slot(k, AX_BF16, 2, dims), at);
  const ax_ex wide = ax_kernel_op(k, AX_SCALAR_CONVERT, AX_F32, x, AX_NONE, AX_NONE);
  const ax_ex b = ax_kernel_load(k, ax_kernel_slot(k, AX_F32, 1, longer), &at[1]);
  const ax_ex sum =
      ax_kernel_op(k, AX_SCALAR_ADD, AX_F32, ax_kernel_op(k, AX_SCALAR_EXP, AX_F32, wide, AX_NONE, AX_NONE), b, AX_NONE);
  ax_kernel_store(k, ax_kernel_slot(k, AX_F32, 1, dims), at, sum, AX_SCALAR_ADD);
  const ax_amount amount = ax_kernel_amount(k);
  assert_true(amount.read == 2 * 200 + 4 * 20); /* b's first 20, once, however many rows they are added to */
  assert_true(amount.written == 4 * 10);
  assert_true(amount.flops == 3 * 200); /* exp, add, and the sum's; a conversion is none */
  assert_int_equal(amount.dtype, AX_F32);
  assert_true(ax_kernel_time(k) > 0);
  ax_arena_deinit(&arena);
}

/* A running sum takes longer along the rows that lie in memory, a last dimension of one aside, than across them. */
static ax_amount running(ax_arena *arena, int64_t last, bool along_rows) {
  const int64_t dims[] = {100, 100}, all[] = {100, 100, last};
  const ax_position at[] = {along(along_rows ? 0 : 1, 1), along(along_rows ? 1 : 0, 1), along(-1, 0)};
  ax_loop_kernel *k = ax_kernel_create(arena, 2, 1, dims);
  const ax_ex x = ax_kernel_load(k, ax_kernel_slot(k, AX_F32, 3, all), at);
  k->running = true;
  ax_kernel_store(k, ax_kernel_slot(k, AX_F32, 3, all), at, x, AX_SCALAR_ADD);
  return ax_kernel_amount(k);
}

static void of_running_sums(void **state) {
  (void)state;
  ax_arena arena = {0};
  const ax_amount across = running(&arena, 1, false), rows = running(&arena, 1, true);
  assert_true(rows.core_ns > 2 * across.core_ns && rows.read == across.read && rows.written == across.written);
  assert_true(running(&arena, 2, true).core_ns == running(&arena, 2, false).core_ns); /* its rows lie two apart */
  ax_arena_deinit(&arena);
}

/* Small products: y[b, i, j] = the sum over k of x[b, i, k] z[b, k, j]. Of each number of x and z, which lie in other orders, several
   results are made, so lines are turned once for them, and not for each multiplication. */
static void of_small_products(void **state) {
  (void)state;
  enum { n = 8 };
  ax_arena arena = {0};
  const int64_t dims[] = {100, n, n, n}, square[] = {100, n, n};
  const ax_position left[] = {along(0, 1), along(1, 1), along(3, 1)}, right[] = {along(0, 1), along(3, 1), along(2, 1)},
                    to[] = {along(0, 1), along(1, 1), along(2, 1)};
  ax_loop_kernel *k = ax_kernel_create(&arena, 4, 1, dims);
  const ax_ex x = ax_kernel_load(k, ax_kernel_slot(k, AX_F32, 3, square), left),
              z = ax_kernel_load(k, ax_kernel_slot(k, AX_F32, 3, square), right);
  ax_kernel_store(k, ax_kernel_slot(k, AX_F32, 3, square), to, ax_kernel_op(k, AX_SCALAR_MUL, AX_F32, x, z, AX_NONE), AX_SCALAR_ADD);
  const ax_amount amount = ax_kernel_amount(k);
  assert_true(amount.turning_ns > 0 && amount.turning_ns < 0.1 * 100 * n * n * n);
  ax_arena_deinit(&arena);
}

/* What waits: the longest way through the operations, not their number. */
static void of_chains(void **state) {
  (void)state;
  ax_arena arena = {0};
  const int64_t dims[] = {1};
  const ax_position at = along(0, 1);
  double chain[2];
  for (int i = 0; i < 2; i++) { /* ((x + x) + x) + x; (x + x) + (x + x) */
    ax_loop_kernel *k = ax_kernel_create(&arena, 1, 0, dims);
    const ax_ex x = ax_kernel_load(k, ax_kernel_slot(k, AX_F32, 1, dims), &at),
                twice = ax_kernel_op(k, AX_SCALAR_ADD, AX_F32, x, x, AX_NONE),
                other = i == 0 ? ax_kernel_op(k, AX_SCALAR_ADD, AX_F32, twice, x, AX_NONE)
                               : ax_kernel_op(k, AX_SCALAR_MUL, AX_F32, x, x, AX_NONE),
                sum = ax_kernel_op(k, AX_SCALAR_ADD, AX_F32, other, i == 0 ? x : twice, AX_NONE);
    ax_kernel_store(k, ax_kernel_slot(k, AX_F32, 1, dims), &at, sum, AX_SCALAR_NONE);
    chain[i] = ax_kernel_amount(k).chain_ns;
  }
  assert_true(chain[1] > 0 && fabs(2 * chain[0] - 3 * chain[1]) < 1e-9);
  ax_arena_deinit(&arena);
}

/* y = sqrt(x / (x + x)): what divides is said apart, and counted once. */
static void of_quotients(void **state) {
  (void)state;
  ax_arena arena = {0};
  const int64_t dims[] = {1000};
  const ax_position at = along(0, 1);
  ax_amount amounts[2];
  for (int i = 0; i < 2; i++) {
    ax_loop_kernel *k = ax_kernel_create(&arena, 1, 0, dims);
    const ax_ex x = ax_kernel_load(k, ax_kernel_slot(k, AX_F32, 1, dims), &at),
                twice = ax_kernel_op(k, AX_SCALAR_ADD, AX_F32, x, x, AX_NONE),
                made = ax_kernel_op(k, i == 0 ? AX_SCALAR_MUL : AX_SCALAR_DIV, AX_F32, x, twice, AX_NONE);
    ax_kernel_store(k, ax_kernel_slot(k, AX_F32, 1, dims), &at, made, AX_SCALAR_NONE);
    amounts[i] = ax_kernel_amount(k);
  }
  assert_true(amounts[0].dividing_ns == 0 && amounts[1].dividing_ns > 0 && amounts[1].dividing_ns < amounts[1].core_ns);
  assert_true(fabs(ax_amount_seconds(&amounts[1], 1, 1) - 1e-9 * amounts[1].core_ns) < 1e-15);
  const double slower = ax_amount_seconds(&amounts[1], 1, 3) - ax_amount_seconds(&amounts[1], 1, 1);
  assert_true(fabs(slower - 2e-9 * amounts[1].dividing_ns) < 1e-15);
  ax_arena_deinit(&arena);
}

/* Every fourth element of 77: lines are read whole, as far as there are elements. */
static void of_strides(void **state) {
  (void)state;
  ax_arena arena = {0};
  const int64_t dims[] = {20}, all[] = {77}, far[] = {2000};
  ax_loop_kernel *k = ax_kernel_create(&arena, 1, 0, dims);
  const ax_position fourth = along(0, 4), hundredth = along(0, 100), at = along(0, 1);
  const ax_ex near = ax_kernel_load(k, ax_kernel_slot(k, AX_F32, 1, all), &fourth),
              apart = ax_kernel_load(k, ax_kernel_slot(k, AX_F32, 1, far), &hundredth);
  ax_kernel_store(k, ax_kernel_slot(k, AX_F32, 1, dims), &at, ax_kernel_op(k, AX_SCALAR_ADD, AX_F32, near, apart, AX_NONE),
                  AX_SCALAR_NONE);
  assert_true(ax_kernel_amount(k).read == 4 * 77 + 64 * 20); /* a line of 64 bytes for each of the other's */
  ax_arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(of_matrices),
      cmocka_unit_test(of_batches),
      cmocka_unit_test(of_windows),
      cmocka_unit_test(of_kernels),
      cmocka_unit_test(of_strides),
      cmocka_unit_test(of_running_sums),
      cmocka_unit_test(of_quotients),
      cmocka_unit_test(of_small_products),
      cmocka_unit_test(of_chains),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
