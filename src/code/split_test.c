/* Into how many parts work may be cut: one for small work, more for more, and never more than the most. */
#include "code/split.h"

#include <math.h>

#include "machine/machine.h"
#include "support/cmocka.h"

static ax_gemm product(int64_t m, int64_t n, int64_t k, ax_dtype dtype) {
  return (ax_gemm){.m = m, .n = n, .k = k, .dtype = dtype};
}

static void products(void **state) {
  (void)state;
  ax_gemm small = product(8, 8, 8, AX_F32), middle = product(256, 256, 256, AX_F32), large = product(8192, 8192, 8192, AX_F32);
  assert_int_equal(ax_gemm_parts(&small), 1);
  assert_in_range(ax_gemm_parts(&middle), 2, 255);
  assert_int_equal(ax_gemm_parts(&large), 256);
}

/* A batch of products is as much work as so many of them; numbers of twice the width take longer. */
static void batches(void **state) {
  (void)state;
  ax_gemm one = product(128, 128, 128, AX_F32), wide = product(128, 128, 128, AX_F64), batch = one;
  batch.batch_rank = 1;
  batch.batch[0] = 16;
  assert_true(ax_gemm_wanted_parts(&one, 16) == 16 * ax_gemm_wanted_parts(&one, 1));
  assert_int_equal(ax_gemm_parts(&batch), (uint32_t)ax_gemm_wanted_parts(&one, 16));
  assert_true(ax_gemm_wanted_parts(&wide, 1) > ax_gemm_wanted_parts(&one, 1));
}

/* More parts where arithmetic takes long, fewer where cores take long to hand work over. */
static void by_the_machine(void **state) {
  (void)state;
  const ax_gemm one = product(128, 128, 128, AX_F32);
  const double assumed = ax_gemm_wanted_parts(&one, 1);
  ax_description machine;
  assert_int_equal(ax_machine_parse("exchange 200 ns", &machine), AX_OK);
  ax_machine_pretend(&machine);
  assert_true(fabs(ax_gemm_wanted_parts(&one, 1) / assumed - 0.5) < 1e-6);
  assert_int_equal(ax_machine_parse("f32 20 Gflop/s", &machine), AX_OK);
  ax_machine_pretend(&machine);
  assert_true(ax_gemm_wanted_parts(&one, 1) > 5 * assumed);
  ax_machine_pretend(NULL);
}

static uint32_t check_parts(int64_t elems, ax_dtype dtype) {
  return ax_check_parts(&(ax_value_check){.dtype = &dtype, .elems = &elems});
}

/* Checks are cut by bytes: a part is 256 KiB. */
static void checks(void **state) {
  (void)state;
  assert_int_equal(check_parts(0, AX_F32), 1);
  assert_int_equal(check_parts((128 << 10) - 1, AX_F32), 1);
  assert_int_equal(check_parts(128 << 10, AX_F32), 2);
  assert_int_equal(check_parts(128 << 10, AX_F64), 4);
  assert_int_equal(check_parts((int64_t)1 << 30, AX_F16), 64);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(products), cmocka_unit_test(batches), cmocka_unit_test(by_the_machine),
                                     cmocka_unit_test(checks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
