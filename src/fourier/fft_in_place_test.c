/* Transforms over their operands (plan/overwrite.c): how many arrays of complex numbers a plan is left with, and that results stay right. */
#include "axle/numpy.h"
#include "axle/ops.h"
#include "fourier/engines.h"
#include "plan/op.h"
#include "plan/passes.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"
#include "support/tensor.h"

enum { rows = 64, columns = 48 };

/* To frequencies and back, with numbers multiplied there: one array of complex numbers does for all. */
static AX_BODY(filtered) {
  const ax_value x = ax_fft(ax_complex(in[0], in[1]), 0);
  out[0] = ax_real_part(ax_ifft(ax_mul(x, ax_complex(in[1], in[0])), 0));
}

/* The first transform is needed once more behind the second. */
static AX_BODY(read_again) {
  const ax_value x = ax_fft(ax_complex(in[0], in[1]), 0), y = ax_fft(x, 1);
  out[0] = ax_real_part(ax_mul(ax_ifft(y, 0), x));
}

/* Real numbers have other places than their transform. */
static AX_BODY(real_ones) { out[0] = ax_irfft(ax_rfft(in[0], 1), columns, 1); }

static uint32_t allocations_of(ax_function body, uint32_t in_count, ax_dtype dtype) {
  const ax_type in[] = {TEST_TYPE(AX_F32, rows, columns), TEST_TYPE(AX_F32, rows, columns)};
  ax_program *program = test_trace(body, NULL, in, in_count, 1);
  ax_plan *plan;
  bool used[512] = {false};
  uint32_t count = 0;
  TEST_OK(ax_plan_create(program, NULL, NULL, NULL, &plan));
  TEST_OK(ax_plan_optimise(plan, NULL, NULL));
  assert_true(plan->buffer_count <= AX_COUNT(used));
  for (uint32_t i = 0; i < plan->block.count; i++) {
    const ax_op *op = &plan->block.ops[i];
    if (op->kind != AX_OP_ROUTINE) continue;
    for (uint32_t k = 0; k < op->routine->in_count + op->routine->out_count; k++) used[plan->buffers[op->routine->buffers[k]].allocation] = true;
  }
  for (uint32_t i = 0; i < plan->buffer_count; i++) count += used[i] && plan->buffers[i].type.dtype == dtype;
  ax_plan_destroy(plan);
  test_random random = {3};
  ax_tensor *values[] = {test_random_tensor(&random, in[0], -1, 1), test_random_tensor(&random, in[1], -1, 1)};
  TEST_EVERY_WAY(program, values, 1e-3);
  test_release(values, 2);
  ax_program_release(program);
  return count;
}

static void transforms(void **state) {
  (void)state;
  if (ax_fourier_engine_here() == NULL) skip(); /* transforms are products then */
  assert_int_equal(allocations_of(filtered, 2, AX_C64), 1);
  assert_int_equal(allocations_of(read_again, 2, AX_C64), 2);
  assert_int_equal(allocations_of(real_ones, 1, AX_C64), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(transforms)};
  return cmocka_run_group_tests_name("fft_in_place", tests, NULL, NULL);
}
