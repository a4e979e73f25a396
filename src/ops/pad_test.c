/* Padding at both ends and between elements, read by others and alone: whatever way it is lowered, as the reference has it; and
   that what is between rows is written once, with them. */
#include "axle/ops.h"
#include "axle/transform.h"
#include "plan/passes.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"
#include "support/tensor.h"

typedef struct padding {
  int64_t low[3], high[3], interior[3];
  double value;
} padding;

static ax_value pad(ax_value x, const padding *p) {
  return ax_pad(x, ax_full(ax_typeof(x).dtype, AX_DIMS(), p->value), AX_LIST(3, p->low), AX_LIST(3, p->high), AX_LIST(3, p->interior));
}

static void alone(const ax_value *in, ax_value *out, void *context) { out[0] = pad(in[0], context); }

/* Read as it is and from the end, beside what its readers might take it for. */
static void read_by_others(const ax_value *in, ax_value *out, void *context) {
  const ax_value made = pad(ax_mul(in[0], in[0]), context);
  out[0] = ax_sub(ax_rev(made, AX_DIMS(1)), ax_mul(made, ax_real(3)));
  out[1] = ax_reduce_sum(made, AX_DIMS(0), false);
}

static void squared(const ax_value *in, ax_value *out, void *context) {
  out[0] = ax_reduce_sum(ax_square(pad(in[0], context)), AX_ALL_DIMS, false);
}
static void backward(const ax_value *in, ax_value *out, void *context) {
  ax_grad(AX_CLOSURE(squared, 1, 1, context), AX_FIRST(1), AX_LIST(1, in), AX_LIST(1, out));
}

static void as_the_reference(ax_function function, uint32_t results, padding *p, const ax_type *type, uint64_t seed) {
  ax_program *program = test_trace(function, p, type, 1, results);
  test_random_run(program, seed, false, 1e-5);
  ax_program_release(program);
}

/* What slices with steps leave out of their gradients: every second or third row, from each on, and whatever else. */
static void of_all_kinds(void **state) {
  test_random random = {3};
  (void)state;
  for (uint64_t k = 0; k < 160; k++) {
    padding p = {.value = k % 4 == 0 ? 0 : -3};
    int64_t dims[3];
    for (int d = 0; d < 3; d++) {
      dims[d] = test_random_below(&random, 6) + (d == 2 ? 9 : 1);
      p.interior[d] = k % 3 == 2 ? test_random_below(&random, 4) : d < 2 ? (int64_t)(k >> d) % 4 : 0;
      p.low[d] = k % 3 == 2 ? test_random_below(&random, 7) - 3 : test_random_below(&random, p.interior[d] + 1);
      p.high[d] = k % 3 == 2 ? test_random_below(&random, 7) - 3 : p.interior[d] - p.low[d];
      if (dims[d] + (dims[d] - 1) * p.interior[d] + p.low[d] + p.high[d] < 0) p.high[d] = 0, p.low[d] = 0;
    }
    const ax_type type = TEST_TYPE(k % 5 == 4 ? AX_S32 : AX_F32, dims[0], dims[1], dims[2]);
    as_the_reference(alone, 1, &p, &type, k + 1);
    if (type.dtype == AX_F32) as_the_reference(read_by_others, 2, &p, &type, k + 1);
    if (type.dtype == AX_F32) as_the_reference(backward, 1, &p, &type, k + 1);
  }
}

static uint32_t operations(padding *p) {
  const ax_type type = TEST_TYPE(AX_F32, 100, 60, 50);
  ax_program *program = test_trace(alone, p, &type, 1, 1);
  ax_plan *plan;
  TEST_OK(ax_plan_create(program, NULL, NULL, NULL, &plan));
  const uint32_t count = plan->block.count;
  ax_plan_destroy(plan);
  ax_program_release(program);
  return count;
}

static void rows_and_what_is_between_are_one_pass(void **state) {
  (void)state;
  for (int64_t low = 0; low < 2; low++) {
    assert_int_equal(operations(&(padding){{low}, {1 - low}, {1}, 0}), 1);
    assert_int_equal(operations(&(padding){{0, low}, {0, 1 - low}, {0, 1}, 2}), 1);
    assert_int_equal(operations(&(padding){{low, low}, {1 - low, 1 - low}, {1, 1}, 0}), 1);
  }
  assert_int_equal(operations(&(padding){{1}, {1}, {1}, 0}), 2);             /* the rows at the end are more */
  assert_int_equal(operations(&(padding){{0}, {9}, {9}, 0}), 2);             /* little of it is rows */
  assert_int_equal(operations(&(padding){{0, 0, 1}, {0}, {0, 0, 1}, 0}), 2); /* between elements */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(of_all_kinds), cmocka_unit_test(rows_and_what_is_between_are_one_pass)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
