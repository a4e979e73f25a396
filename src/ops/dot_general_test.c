/* Into how many products along the contracted dimension a product is cut, which sizes alone decide: many if the result is a single
   tile, which threads cannot share. And products of widened numbers, which read the narrow ones. */
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

/* --- Products of s32 whose factors were widened --- */

typedef struct widening {
  const char *subscripts;
  ax_dtype left, right, wide;
  bool kept; /* the left factor is a result too */
} widening;

static AX_BODY(product_of_widened) {
  const widening *w = context;
  const ax_value factors[] = {ax_convert_element_type(in[0], w->wide), ax_convert_element_type(in[1], w->wide)};
  out[0] = ax_einsum(w->subscripts, AX_LIST(2, factors));
  if (w->kept) out[1] = factors[0];
}

/* The dtype of the factors of the plan's product; *others: how many other operations there are, after fusion. */
static ax_dtype factors_of(widening w, uint32_t *others) {
  const ax_type types[] = {TEST_TYPE(w.left, 20, 30), TEST_TYPE(w.right, 30, 40)};
  ax_program *program = test_trace(product_of_widened, &w, types, 2, w.kept ? 2 : 1);
  ax_plan *plan;
  ax_dtype dtype = AX_BOOL;
  bool found;
  TEST_OK(ax_plan_create(program, NULL, NULL, NULL, &plan));
  TEST_OK(ax_plan_optimise(plan, "fuse", &found));
  for (uint32_t i = 0; i < plan->block.count; i++)
    if (plan->block.ops[i].kind == AX_OP_GEMM) dtype = plan->block.ops[i].gemm->dtype;
  *others = plan->block.count - 1;
  ax_plan_destroy(plan);
  ax_program_release(program);
  return dtype;
}

static void expect_factors(widening w, ax_dtype wanted, uint32_t wanted_others) {
  uint32_t others;
  w.subscripts = "ij,jk->ik";
  assert_int_equal(factors_of(w, &others), wanted);
  assert_int_equal(others, wanted_others);
}

static void products_read_narrow_factors(void **state) {
  (void)state;
  expect_factors((widening){.left = AX_S8, .right = AX_S8, .wide = AX_S32}, AX_S8, 0);
  expect_factors((widening){.left = AX_U8, .right = AX_U8, .wide = AX_S32}, AX_U8, 0);
  expect_factors((widening){.left = AX_S8, .right = AX_S8, .wide = AX_S32, .kept = true}, AX_S8, 1);
  expect_factors((widening){.left = AX_S8, .right = AX_U8, .wide = AX_S32}, AX_S32, 2);
  expect_factors((widening){.left = AX_S8, .right = AX_S32, .wide = AX_S32}, AX_S32, 1);
  expect_factors((widening){.left = AX_S8, .right = AX_S8, .wide = AX_F32}, AX_F32, 2);
  expect_factors((widening){.left = AX_S16, .right = AX_S16, .wide = AX_S32}, AX_S32, 2);
}

static void widened_every_way(test_random *random, widening w, ax_type left, ax_type right) {
  const ax_type types[] = {left, right};
  ax_program *program = test_trace(product_of_widened, &w, types, 2, 1);
  ax_tensor *in[] = {test_edge_tensor(random, left), test_edge_tensor(random, right)};
  TEST_EVERY_WAY(program, in, 0);
  test_release(in, 2);
  ax_program_release(program);
}

/* Limits among the numbers; factors as they lie, transposed, in batches, and with dimensions that are not one beside another. */
static void narrow_products_are_exact(void **state) {
  test_random random = {2};
  (void)state;
  for (int i = 0; i < 2; i++) {
    const ax_dtype d = i == 0 ? AX_S8 : AX_U8;
    const widening rows = {"ij,jk->ik", d, d, AX_S32, false}, turned = {"ji,kj->ik", d, d, AX_S32, false},
                   batch = {"bij,bkj->bik", d, d, AX_S32, false}, apart = {"jil,jkl->ik", d, d, AX_S32, false};
    widened_every_way(&random, rows, TEST_TYPE(d, 33, 70), TEST_TYPE(d, 70, 65));
    widened_every_way(&random, rows, TEST_TYPE(d, 3, 1700), TEST_TYPE(d, 1700, 40));
    widened_every_way(&random, rows, TEST_TYPE(d, 150, 66), TEST_TYPE(d, 66, 5));
    widened_every_way(&random, turned, TEST_TYPE(d, 66, 18), TEST_TYPE(d, 90, 66));
    widened_every_way(&random, batch, TEST_TYPE(d, 6, 17, 65), TEST_TYPE(d, 6, 40, 65));
    widened_every_way(&random, apart, TEST_TYPE(d, 7, 20, 9), TEST_TYPE(d, 7, 34, 9));
  }
}

/* Weights that the steps of a loop read are packed once, before it. */
static AX_BODY(quantised_step) {
  const ax_value *weights = context, x = ax_convert_element_type(in[0], AX_S32);
  const ax_value sums = ax_matmul(x, ax_convert_element_type(*weights, AX_S32));
  out[0] = ax_convert_element_type(ax_div(sums, ax_full(AX_S32, AX_DIMS(40, 64), 512)), AX_S8);
}
static AX_BODY(quantised_steps) {
  ax_value weights = in[1];
  (void)context;
  ax_scan(AX_CLOSURE(quantised_step, 1, 1, &weights), 1, 5, false, in, out);
}
static void narrow_products_in_loops(void **state) {
  test_random random = {3};
  const ax_type types[] = {TEST_TYPE(AX_S8, 40, 64), TEST_TYPE(AX_S8, 64, 64)};
  ax_program *program = test_trace(quantised_steps, NULL, types, 2, 1);
  ax_tensor *in[] = {test_random_tensor(&random, types[0], -128, 127), test_random_tensor(&random, types[1], -128, 127)};
  (void)state;
  TEST_EVERY_WAY(program, in, 0);
  test_release(in, 2);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(single_tiles_are_cut_along_their_sums),
      cmocka_unit_test(sums_of_blocks),
      cmocka_unit_test(products_read_narrow_factors),
      cmocka_unit_test(narrow_products_are_exact),
      cmocka_unit_test(narrow_products_in_loops),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
