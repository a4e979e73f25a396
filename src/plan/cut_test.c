/* Along which dimension kernels are cut, and into how many parts. */
#include "axle/ops.h"
#include "machine/machine.h"
#include "plan/passes.h"
#include "support/cmocka.h"
#include "support/tensor.h"

typedef struct sum_case {
  int64_t axes[AX_MAX_RANK];
  uint32_t count;
} sum_case;

static void sum(const ax_value *in, ax_value *out, void *context) {
  const sum_case *c = context;
  out[0] = ax_reduce_sum(in[0], AX_LIST(c->count, c->axes), false);
}

static void transpose(const ax_value *in, ax_value *out, void *permutation) { out[0] = ax_transpose(in[0], permutation); }

static void add(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], in[0]);
}

/* The plan's kernels: the dimension each is cut along, and its parts. */
static void expect(ax_function body, void *context, ax_type type, const char *wanted) {
  ax_program *program = test_trace(body, context, &type, 1, 1);
  ax_plan *plan;
  ax_text line = {0};
  char *got;
  TEST_OK(ax_plan_create(program, NULL, NULL, NULL, &plan));
  TEST_OK(ax_plan_optimise(plan, NULL, NULL));
  for (uint32_t i = 0; i < plan->block.count; i++) {
    const ax_loop_kernel *kernel = plan->block.ops[i].kernel.kernel;
    assert_int_equal(plan->block.ops[i].kind, AX_OP_KERNEL);
    ax_text_add(&line, "%si%u in %u", i ? "; " : "", kernel->ranged, kernel->parts);
  }
  TEST_OK(ax_text_finish(&line, &got));
  assert_string_equal(got, wanted);
  ax_free(got);
  ax_plan_destroy(plan);
  ax_program_release(program);
}

static void small_kernels(void **state) {
  (void)state;
  expect(add, NULL, TEST_TYPE(AX_F32, 100, 100), "i0 in 1");
  expect(add, NULL, TEST_TYPE(AX_F32, 1 << 16), "i0 in 2");
  expect(add, NULL, TEST_TYPE(AX_F32, 1 << 18), "i0 in 4");
  expect(sum, &(sum_case){{0}, 1}, TEST_TYPE(AX_F32, 200, 200), "i0 in 1");
}

static void pretend(const char *text) {
  ax_description machine;
  TEST_OK(ax_machine_parse(text, &machine));
  ax_machine_pretend(&machine);
}

/* More parts where computing takes long, fewer where sharing does. How a sum is put together stays: it decides bits. */
static void by_what_the_machine_takes(void **state) {
  (void)state;
  const ax_type sixteenth = TEST_TYPE(AX_F32, 1 << 16), quarter = TEST_TYPE(AX_F32, 1 << 18), long_sum = TEST_TYPE(AX_F32, 1 << 22);
  pretend("mixed 8 Gflop/s\n");
  expect(add, NULL, sixteenth, "i0 in 4");
  expect(add, NULL, quarter, "i0 in 10");
  expect(sum, &(sum_case){{0}, 1}, long_sum, "i0 in 16; i0 in 1");
  pretend("exchange 1000 ns\n");
  expect(add, NULL, sixteenth, "i0 in 1");
  expect(add, NULL, quarter, "i0 in 1");
  expect(sum, &(sum_case){{0}, 1}, long_sum, "i0 in 4; i0 in 1");
  ax_machine_pretend(NULL);
}

static void one_long_dimension(void **state) {
  (void)state;
  expect(add, NULL, TEST_TYPE(AX_F32, 1 << 22), "i0 in 49");
  expect(add, NULL, TEST_TYPE(AX_F32, 1, 1 << 22), "i1 in 49");
  expect(add, NULL, TEST_TYPE(AX_F32, 3, 1 << 22), "i1 in 140");
  expect(add, NULL, TEST_TYPE(AX_F32, 1 << 18, 16), "i0 in 49");
}

/* A part goes over 2 KiB at a time of what it reads and of what it writes. */
static void transposes(void **state) {
  (void)state;
  expect(transpose, (int64_t[]){1, 0}, TEST_TYPE(AX_F32, 4096, 4096), "i0 in 8");
  expect(transpose, (int64_t[]){1, 0}, TEST_TYPE(AX_F32, 1 << 20, 16), "i1 in 256");
  expect(transpose, (int64_t[]){1, 0}, TEST_TYPE(AX_F32, 16, 1 << 20), "i0 in 256");
  expect(transpose, (int64_t[]){3, 2, 1, 0}, TEST_TYPE(AX_F32, 64, 64, 64, 64), "i1 in 8");
}

/* Where no dimension has runs of that length, a few parts go over shorter ones; over less than two lines of a cache, none. */
static void short_runs(void **state) {
  (void)state;
  expect(transpose, (int64_t[]){1, 0}, TEST_TYPE(AX_F32, 512, 512), "i0 in 4");
  expect(transpose, (int64_t[]){1, 0}, TEST_TYPE(AX_S8, 1000, 1000), "i0 in 7");
  expect(transpose, (int64_t[]){2, 1, 0}, TEST_TYPE(AX_F32, 200, 200, 200), "i1 in 66");
  expect(transpose, (int64_t[]){0, 2, 1}, TEST_TYPE(AX_S8, 1, 100, 60), "i0 in 1");
  expect(sum, &(sum_case){{1}, 1}, TEST_TYPE(AX_F32, 16, 3, 16), "i0 in 1");
}

static void sums(void **state) {
  (void)state;
  expect(sum, &(sum_case){{1}, 1}, TEST_TYPE(AX_F32, 4096, 4096), "i0 in 95");
  expect(sum, &(sum_case){{0, 2}, 2}, TEST_TYPE(AX_F32, 64, 128, 512), "i0 in 17");
}

/* Parts of the results would be read in runs of a few KiB, and blocks lie in one piece. */
static void sums_in_long_runs(void **state) {
  (void)state;
  expect(sum, &(sum_case){{0, 2}, 2}, TEST_TYPE(AX_F32, 64, 512, 512), "i0 in 32; i0 in 1");
  expect(sum, &(sum_case){{0, 2}, 2}, TEST_TYPE(AX_F32, 26, 1000, 511), "i0 in 26; i0 in 1");
  expect(sum, &(sum_case){{0, 2}, 2}, TEST_TYPE(AX_F32, 8, 3000, 511), "i0 in 46"); /* in runs of 128 KiB */
  expect(sum, &(sum_case){{0, 2}, 2}, TEST_TYPE(AX_BF16, 53, 1000, 515), "i0 in 26; i0 in 4; i0 in 1");
}

/* Too few results to cut: blocks, then their combination. */
static void sums_in_blocks(void **state) {
  (void)state;
  expect(sum, &(sum_case){{0}, 1}, TEST_TYPE(AX_F32, 1 << 24), "i0 in 32; i0 in 1");
  expect(sum, &(sum_case){{0, 1}, 2}, TEST_TYPE(AX_F32, 4096, 4096), "i0 in 32; i0 in 1");
  expect(sum, &(sum_case){{0}, 1}, TEST_TYPE(AX_F32, 4096, 4096), "i0 in 32; i0 in 2");
  expect(sum, &(sum_case){{0}, 1}, TEST_TYPE(AX_F32, 1 << 20, 16), "i0 in 32; i0 in 1");
  expect(sum, &(sum_case){{1}, 1}, TEST_TYPE(AX_F32, 3, 1 << 20), "i0 in 8; i0 in 1");
  expect(sum, &(sum_case){{0}, 1}, TEST_TYPE(AX_F32, (1 << 20) + 7), "i0 in 7; i0 in 1; i0 in 1"); /* a prime: some are left over */
  expect(sum, &(sum_case){{0}, 1}, TEST_TYPE(AX_F32, (1 << 20) + 7, 3), "i0 in 14; i0 in 1; i0 in 1");
  expect(sum, &(sum_case){{1}, 1}, TEST_TYPE(AX_F32, 2, (1 << 20) + 7), "i0 in 2"); /* some would be left over, but not in front */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sums_in_blocks),     cmocka_unit_test(small_kernels),
                                     cmocka_unit_test(by_what_the_machine_takes),
                                     cmocka_unit_test(one_long_dimension), cmocka_unit_test(transposes),
                                     cmocka_unit_test(short_runs),         cmocka_unit_test(sums),
                                     cmocka_unit_test(sums_in_long_runs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
