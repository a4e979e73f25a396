/* Gradients of what a loop gathers: added to the carry where they belong, without a table of zeros in each step; as the reference
   has them. */
#include "axle/ops.h"
#include "axle/transform.h"
#include "plan/passes.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"
#include "support/tensor.h"

enum { rows = 50, columns = 8, picked = 12, steps_made = 5 };

typedef enum way { ROWS, ELEMENTS, TWICE, WAYS } way;

typedef struct looked_up {
  way by;
  ax_value table, all; /* all: s32[steps_made, picked], numbers of rows */
} looked_up;

static ax_value pick(const looked_up *l, ax_value numbers) {
  if (l->by == ELEMENTS) return ax_take(ax_reshape(l->table, AX_DIMS(rows * columns)), numbers, 0);
  return ax_reduce_sum(ax_take(l->table, numbers, 0), AX_DIMS(1), false);
}

static void step(const ax_value *in, ax_value *out, void *context) {
  const looked_up *l = context;
  ax_value h = ax_add(in[0], pick(l, in[1]));
  if (l->by == TWICE) h = ax_mul(h, pick(l, ax_rev(in[1], AX_DIMS(0))));
  out[0] = ax_tanh(ax_mul(h, ax_real(0.25)));
}

static void total(const ax_value *in, ax_value *out, void *context) {
  looked_up l = *(const looked_up *)context;
  l.table = in[0];
  ax_value sequences[] = {ax_full(AX_F32, AX_DIMS(picked), 0), l.all}, last;
  ax_scan(AX_CLOSURE(step, 2, 1, &l), 1, steps_made, false, sequences, &last);
  out[0] = ax_reduce_sum(ax_square(last), AX_ALL_DIMS, false);
}

static void gradient(const ax_value *in, ax_value *out, void *context) {
  looked_up l = *(const looked_up *)context;
  l.all = in[1];
  ax_grad(AX_CLOSURE(total, 1, 1, &l), AX_FIRST(1), AX_LIST(1, in), AX_LIST(1, out));
}

/* Kernels that go through as many elements as the table has. */
static void count_wide(void *context, ax_op *op) {
  uint32_t *wide = context;
  if (op->kind == AX_OP_KERNEL) *wide += ax_dims_elems(op->kernel.kernel->rank, op->kernel.kernel->dims) >= rows * columns;
}

static void nothing_in_a_step_goes_through_the_table(void **state) {
  const ax_type in[] = {TEST_TYPE(AX_F32, rows, columns), TEST_TYPE(AX_S32, steps_made, picked)};
  (void)state;
  for (looked_up l = {.by = ROWS}; l.by < TWICE; l.by++) { /* both sums of a step are a table, which is added to the carry */
    ax_program *program = test_trace(gradient, &l, in, 2, 1);
    ax_plan *plan;
    TEST_OK(ax_plan_create(program, NULL, NULL, NULL, &plan));
    TEST_OK(ax_plan_optimise(plan, NULL, NULL));
    for (uint32_t i = 0; i < plan->block.count; i++) {
      uint32_t wide = 0;
      if (plan->block.ops[i].kind == AX_OP_LOOP) ax_block_walk(&plan->block.ops[i].loop.body, count_wide, &wide);
      assert_int_equal(wide, 0);
    }
    ax_plan_destroy(plan);
    ax_program_release(program);
  }
}

static void as_the_reference(void **state) {
  const ax_type in[] = {TEST_TYPE(AX_F32, rows, columns), TEST_TYPE(AX_S32, steps_made, picked)};
  test_random random = {4};
  (void)state;
  for (looked_up l = {.by = ROWS}; l.by < WAYS; l.by++) {
    ax_program *program = test_trace(gradient, &l, in, 2, 1);
    ax_tensor *given[] = {test_random_tensor(&random, in[0], -1, 1), test_tensor(in[1], NULL)};
    for (int i = 0; i < steps_made * picked; i++) test_set(given[1], i, test_random_below(&random, rows / 4)); /* many of them several times */
    TEST_EVERY_WAY(program, given, 1e-5);
    test_release(given, 2);
    ax_program_release(program);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_in_a_step_goes_through_the_table), cmocka_unit_test(as_the_reference)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
