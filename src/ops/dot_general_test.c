/* Into how many products along the contracted dimension a product is cut, which sizes alone decide: many if the result is a single
   tile, which threads cannot share. */
#include "axle/ops.h"
#include "plan/passes.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"
#include "support/tensor.h"

static AX_BODY(multiplied) {
  (void)context;
  out[0] = ax_matmul(in[0], in[1]);
}

static ax_program *trace_product(ax_dtype dtype, int64_t m, int64_t k, int64_t n) {
  const ax_type types[] = {TEST_TYPE(dtype, m, k), TEST_TYPE(dtype, k, n)};
  return test_trace(multiplied, NULL, types, 2, 1);
}

/* The products of the plan, each as often as its batch has it. */
static int64_t blocks_of(ax_dtype dtype, int64_t m, int64_t k, int64_t n) {
  ax_program *program = trace_product(dtype, m, k, n);
  ax_plan *plan;
  int64_t blocks = 0;
  TEST_OK(ax_plan_create(program, NULL, NULL, NULL, &plan));
  for (uint32_t i = 0; i < plan->block.count; i++)
    if (plan->block.ops[i].kind == AX_OP_GEMM)
      blocks += ax_dims_elems(plan->block.ops[i].gemm->batch_rank, plan->block.ops[i].gemm->batch);
  ax_plan_destroy(plan);
  ax_program_release(program);
  return blocks;
}

static void single_tiles_are_cut_along_their_sums(void **state) {
  (void)state;
  assert_int_equal(blocks_of(AX_F32, 16, 16384, 16), 4);
  assert_int_equal(blocks_of(AX_F32, 16, 4096, 16), 1); /* less than two blocks are worth */
  assert_int_equal(blocks_of(AX_F32, 55, 8192, 63), 4);
  assert_int_equal(blocks_of(AX_F64, 40, 8192, 40), 4);
  assert_int_equal(blocks_of(AX_F32, 60, 8000, 60), 1); /* threads share its rows */
  assert_int_equal(blocks_of(AX_F32, 32, 2048, 32), 1);
}

/* Two blocks and what is left, by any number of threads. */
static void sums_of_blocks(void **state) {
  test_random random = {1};
  ax_program *program = trace_product(AX_F32, 30, 4099, 50);
  const ax_type types[] = {TEST_TYPE(AX_F32, 30, 4099), TEST_TYPE(AX_F32, 4099, 50)};
  ax_tensor *in[] = {test_random_tensor(&random, types[0], -1, 1), test_random_tensor(&random, types[1], -1, 1)};
  (void)state;
  assert_int_equal(blocks_of(AX_F32, 30, 4099, 50), 3);
  TEST_EVERY_WAY(program, in, 1e-3);
  test_release(in, 2);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(single_tiles_are_cut_along_their_sums),
      cmocka_unit_test(sums_of_blocks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
