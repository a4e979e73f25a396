/* Short sums that are spelled out, and sums that stay. What comes out is what it was. */
#include "axle/ops.h"
#include "plan/passes.h"
#include "support/cmocka.h"
#include "support/run.h"

static AX_BODY(turned) {
  (void)context;
  out[0] = ax_add(ax_matmul(in[0], in[1]), ax_real(1));
}
static AX_BODY(products_of_rows) {
  (void)context;
  out[0] = ax_reduce_sum(ax_mul(in[0], ax_abs(in[0])), AX_DIMS(1), false);
}
static AX_BODY(narrow) {
  (void)context;
  const ax_value x = ax_convert_element_type(in[0], AX_BF16);
  out[0] = ax_convert_element_type(ax_reduce_sum(ax_mul(x, x), AX_DIMS(1), false), AX_F32);
}
static AX_BODY(greatest) {
  (void)context;
  out[0] = ax_reduce_max(in[0], AX_DIMS(1), false);
}
static AX_BODY(logarithms) {
  (void)context;
  out[0] = ax_reduce_sum(ax_log(ax_add(ax_abs(in[0]), ax_real(1))), AX_DIMS(1), false);
}
static AX_BODY(distances) { /* of all pairs */
  (void)context;
  const ax_type t = ax_typeof(in[0]);
  const int64_t all[] = {t.dims[0], t.dims[0], t.dims[1]};
  const ax_value x = ax_broadcast_in_dim(in[0], AX_LIST(3, all), AX_DIMS(0, 2)),
                 y = ax_broadcast_in_dim(in[0], AX_LIST(3, all), AX_DIMS(1, 2));
  out[0] = ax_reduce_sum(ax_square(ax_sub(x, y)), AX_DIMS(2), false);
}
static AX_BODY(extremes_of_three) { /* several numbers each, as a picture's colours */
  (void)context;
  out[0] = ax_reduce_min(ax_reshape(in[0], AX_DIMS(500, 2, 3)), AX_DIMS(1), false);
}

static void count_sums(void *context, ax_op *op) {
  *(uint32_t *)context += op->kind == AX_OP_KERNEL && op->kernel.kernel->reduce_rank > 0;
}

/* So many kernels still sum behind the pass. */
static void expect(ax_function body, const ax_type *types, uint32_t count, uint32_t sums) {
  ax_program *program = test_trace(body, NULL, types, count, 1);
  ax_plan *plan = test_plan(program);
  uint32_t found = 0;
  TEST_OK(ax_plan_optimise(plan, "unroll", NULL));
  TEST_OK(ax_plan_verify(plan));
  ax_block_walk(&plan->block, count_sums, &found);
  if (!AX_HOSTILE) assert_int_equal(found, sums);
  ax_plan_destroy(plan);
  test_random_run(program, 5, false, body == narrow ? 0.05 : 1e-5);
  ax_program_release(program);
}

static void short_rows(void **state) {
  (void)state;
  expect(turned, (ax_type[]){TEST_TYPE(AX_F32, 1000, 3), TEST_TYPE(AX_F32, 3, 3)}, 2, 0);
  expect(turned, (ax_type[]){TEST_TYPE(AX_F64, 500, 6), TEST_TYPE(AX_F64, 6, 8)}, 2, 0);
  expect(turned, (ax_type[]){TEST_TYPE(AX_F32, 400, 5, 4), TEST_TYPE(AX_F32, 400, 4, 3)}, 2, 0);
  expect(extremes_of_three, (ax_type[]){TEST_TYPE(AX_F32, 1000, 3)}, 1, 0);
  expect(products_of_rows, (ax_type[]){TEST_TYPE(AX_F32, 2000, 3)}, 1, 0);
  expect(products_of_rows, (ax_type[]){TEST_TYPE(AX_F64, 1025, 6)}, 1, 0);
}

static void other_sums(void **state) {
  (void)state;
  expect(turned, (ax_type[]){TEST_TYPE(AX_F32, 100, 3), TEST_TYPE(AX_F32, 3, 3)}, 2, 1); /* few results */
  expect(products_of_rows, (ax_type[]){TEST_TYPE(AX_F32, 2000, 7)}, 1, 1);               /* longer rows */
  expect(narrow, (ax_type[]){TEST_TYPE(AX_F32, 2000, 3)}, 1, 1);                         /* rounded once */
  expect(greatest, (ax_type[]){TEST_TYPE(AX_F32, 2000, 5)}, 1, 1);                       /* loaded in lines */
  expect(logarithms, (ax_type[]){TEST_TYPE(AX_F32, 2000, 5)}, 1, 1);                     /* called */
  expect(distances, (ax_type[]){TEST_TYPE(AX_F32, 60, 3)}, 1, 1);                        /* the same rows again */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(short_rows), cmocka_unit_test(other_sums)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
