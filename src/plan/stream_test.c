/* Which kernels store past the caches, of a machine whose last one has 32 MiB. */
#include "axle/ops.h"
#include "machine/machine.h"
#include "plan/passes.h"
#include "support/cmocka.h"
#include "support/tensor.h"

static void negate(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_neg(in[0]);
}

static void two_results(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_concatenate(AX_VALUES(ax_neg(in[0]), in[0]), 0);
}

static void side_by_side(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_concatenate(AX_VALUES(in[0], in[0]), 1);
}

static void turned(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_transpose(in[0], AX_DIMS(1, 0));
}

static void total(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_reduce_sum(in[0], AX_DIMS(1), false);
}

static void softmax(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value e = ax_exp(in[0]);
  out[0] = ax_div(e, ax_reduce_sum(e, AX_DIMS(1), true));
}

/* The first result is read for the second one. */
static void two_of_rows(const ax_value *in, ax_value *out, void *context) {
  softmax(in, out, context);
  out[1] = ax_reduce_max(out[0], AX_DIMS(1), false);
}

static bool streams(const ax_op *op) {
  for (uint32_t m = 0; op->kind == AX_OP_ROWS && m < op->rows->count; m++)
    if (op->rows->members[m].kind == AX_OP_KERNEL && op->rows->members[m].kernel.kernel->streams) return true;
  return op->kind == AX_OP_KERNEL && op->kernel.kernel->streams;
}

/* Two letters for each operation of the plan: a kernel or a group of rows, which streams or not. */
static void expect(ax_function body, uint32_t outs, ax_type type, bool donated, const char *wanted) {
  ax_program *program = test_trace(body, NULL, &type, 1, outs);
  ax_plan *plan;
  ax_text line = {0};
  char *got;
  TEST_OK(ax_plan_create(program, NULL, NULL, NULL, &plan));
  plan->donate = &donated;
  TEST_OK(ax_plan_optimise(plan, NULL, NULL));
  for (uint32_t i = 0; i < plan->block.count; i++) {
    const ax_op *op = &plan->block.ops[i];
    ax_text_add(&line, "%s%s", op->kind == AX_OP_ROWS ? "r" : "k", streams(op) ? "+" : "-");
  }
  TEST_OK(ax_text_finish(&line, &got));
  assert_string_equal(got, wanted);
  ax_free(got);
  ax_plan_destroy(plan);
  ax_program_release(program);
}

static void large_results(void **state) {
  (void)state;
  if (AX_HOSTILE) skip(); /* where other kernels are done together over rows */
  expect(negate, 1, TEST_TYPE(AX_F32, 1 << 23), false, "k+");
  expect(negate, 1, TEST_TYPE(AX_F32, (1 << 23) - 1), false, "k-"); /* a cache may hold it */
  expect(negate, 1, TEST_TYPE(AX_F32, 1 << 23), true, "k-");        /* what is overwritten has just been read */
  expect(two_results, 1, TEST_TYPE(AX_F32, 1 << 22), false, "k+k+"); /* parts of what is large */
  expect(side_by_side, 1, TEST_TYPE(AX_F32, 1 << 12, 1 << 11), false, "r+"); /* other members write other parts */
  expect(side_by_side, 1, TEST_TYPE(AX_BF16, 1 << 12, 1 << 12), false, "r+"); /* what is only moved costs no time to compute */
  expect(turned, 1, TEST_TYPE(AX_F32, 1 << 10, 5 << 9), false, "k+"); /* each line is of another row */
  expect(turned, 1, TEST_TYPE(AX_F32, 1 << 10, (5 << 9) - 1), false, "k-");
  expect(total, 1, TEST_TYPE(AX_F32, 1 << 23, 16), false, "k-");
  expect(softmax, 1, TEST_TYPE(AX_F32, 1 << 13, 1 << 12), false, "r+");
  expect(softmax, 1, TEST_TYPE(AX_F32, 1 << 13, 1 << 12), true, "r-");
  expect(softmax, 1, TEST_TYPE(AX_BF16, 1 << 13, 1 << 12), false, "r-");
  expect(two_of_rows, 2, TEST_TYPE(AX_F32, 1 << 13, 1 << 12), false, "r-"); /* read by the next member */
}

static int pretend(void **state) {
  ax_description machine;
  (void)state;
  TEST_OK(ax_machine_parse("l1 32 KiB\nl2 1 MiB\nl3 32 MiB\nl3_cores 8\n", &machine));
  ax_machine_pretend(&machine);
  return 0;
}

/* The size of the last cache decides. */
static void on_other_machines(void **state) {
  (void)state;
  ax_description small, large;
  TEST_OK(ax_machine_parse("l3 8 MiB", &small));
  TEST_OK(ax_machine_parse("l3 96 MiB", &large));
  ax_machine_pretend(&small);
  expect(negate, 1, TEST_TYPE(AX_F32, 1 << 21), false, "k+");
  expect(negate, 1, TEST_TYPE(AX_F32, (1 << 21) - 1), false, "k-");
  ax_machine_pretend(&large);
  expect(negate, 1, TEST_TYPE(AX_F32, 1 << 23), false, "k-");
  expect(negate, 1, TEST_TYPE(AX_F32, 3 << 23), false, "k+");
  pretend(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(large_results), cmocka_unit_test(on_other_machines)};
  return cmocka_run_group_tests(tests, pretend, NULL);
}
