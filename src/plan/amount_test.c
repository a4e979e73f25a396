/* What products read: each number of their factors once, however many results it goes into. */
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(of_matrices), cmocka_unit_test(of_batches), cmocka_unit_test(of_windows)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
