/* Complex values go through a plan as their parts: a chain is one kernel, which stores no pairs but those of results; regions take
   and give pairs. */
#include "axle/ops.h"
#include "plan/lower.h"
#include "plan/passes.h"
#include "support/cmocka.h"
#include "support/nest.h"
#include "support/random.h"
#include "support/run.h"

typedef struct counted {
  uint32_t kernels, stores;
  uint32_t words; /* stores of them */
} counted;

static counted count_of(ax_function body, uint32_t ins, uint32_t outs) {
  const ax_type in[] = {TEST_TYPE(AX_C64, 40, 33), TEST_TYPE(AX_C64, 40, 33)};
  ax_program *program = test_trace(body, NULL, in, ins, outs);
  ax_plan *plan;
  counted made = {0};
  TEST_OK(ax_plan_create(program, NULL, NULL, NULL, &plan));
  TEST_OK(ax_plan_optimise(plan, "fuse", NULL));
  for (uint32_t i = 0; i < plan->block.count; i++) {
    const ax_op *op = &plan->block.ops[i];
    if (op->kind != AX_OP_KERNEL) continue;
    made.kernels++;
    const ax_loop_kernel *kernel = op->kernel.kernel;
    made.stores += kernel->store_count;
    for (uint32_t k = 0; k < kernel->store_count; k++) made.words += kernel->slots[kernel->stores[k].slot].dtype == AX_U64;
  }
  ax_plan_destroy(plan);
  ax_program_release(program);
  return made;
}

static void chain(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value product = ax_mul(in[0], in[1]), moved = ax_conj(ax_add(product, in[0]));
  out[0] = ax_exp(ax_sub(moved, product));
}

/* Both parts of the one result. */
static void chains_are_one_kernel(void **state) {
  (void)state;
  const counted made = count_of(chain, 2, 1);
  assert_int_equal(made.kernels, 1);
  assert_int_equal(made.stores, 2);
}

static void size(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value z = ax_mul(in[0], in[0]), x = ax_real_part(z), y = ax_imag_part(z);
  out[0] = ax_add(ax_mul(x, x), ax_mul(y, y));
}

/* No pairs at all. */
static void real_results_need_no_pairs(void **state) {
  (void)state;
  const counted made = count_of(size, 1, 1);
  assert_int_equal(made.kernels, 1);
  assert_int_equal(made.stores, 1);
}

static void turned(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_transpose(in[0], AX_DIMS(1, 0));
}

static void product_turned(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_transpose(ax_mul(in[0], in[1]), AX_DIMS(1, 0));
}

static void rows(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_take(in[0], ax_cumsum(ax_full(AX_S32, AX_DIMS(7), 5), 0, false), 0);
}

/* One store of a word for both parts. What is computed is stored first, as two parts. */
static void words_are_moved(void **state) {
  (void)state;
  counted made = count_of(turned, 1, 1);
  assert_int_equal(made.kernels, 1);
  assert_int_equal(made.stores, 1);
  assert_int_equal(made.words, 1);
  made = count_of(product_turned, 2, 1);
  assert_int_equal(made.kernels, 2);
  assert_int_equal(made.stores, 3);
  assert_int_equal(made.words, 1);
  assert_int_equal(count_of(rows, 1, 1).words, 1);
}

/* A part is remembered in the block where it was made, and taken from memory in others. */
static void parts_are_remembered(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_C64, 6), TEST_TYPE(AX_F32, 6)};
  ax_program *program = test_trace(size, NULL, types, 1, 1);
  ax_plan *plan;
  TEST_OK(ax_plan_create(program, NULL, NULL, NULL, &plan));
  ax_block other = {0};
  ax_lower lower = {.plan = plan, .block = &plan->block, .program = program};
  uint32_t part[2], pairs, again, reals, words;
  for (int k = 0; k < 2; k++) TEST_OK(ax_lower_buffer(&lower, &types[1], 0, &part[k]));
  TEST_OK(ax_lower_of_parts(&lower, &types[0], 0, part, &pairs));
  TEST_OK(ax_lower_part(&lower, pairs, 1, &again));
  assert_int_equal(again, part[1]);
  TEST_OK(ax_lower_part(&lower, part[0], 0, &again));
  assert_int_equal(again, part[0]);
  TEST_OK(ax_lower_as_reals(&lower, pairs, &reals));
  assert_int_equal(ax_lower_type(&lower, reals)->dims[0], 12);
  TEST_OK(ax_lower_as_words(&lower, pairs, &words));
  assert_true(ax_type_equal(ax_lower_type(&lower, words), &(ax_type){.dtype = AX_U64, .rank = 1, .dims = {6}}));
  lower.block = &other;
  TEST_OK(ax_lower_part(&lower, pairs, 1, &again));
  assert_int_not_equal(again, part[1]);
  assert_int_equal(other.count, 2);
  ax_free(lower.parts);
  ax_free(lower.buffers);
  ax_plan_destroy(plan);
  ax_program_release(program);
}

/* Also of rank 16, which has no dimension more for the parts. */
static void of_the_greatest_rank(void **state) {
  (void)state;
  int64_t dims[AX_MAX_RANK] = {2, 1, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2};
  const ax_type type = ax_array_type(AX_C128, AX_LIST(AX_MAX_RANK, dims));
  ax_program *program = test_trace(chain, NULL, (const ax_type[]){type, type}, 2, 1);
  test_random random = {1};
  ax_tensor *in[] = {test_random_tensor(&random, type, -1, 1), test_random_tensor(&random, type, -1, 1)};
  TEST_EVERY_WAY(program, in, 1e-13);
  test_release(in, 2);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(chains_are_one_kernel), cmocka_unit_test(real_results_need_no_pairs),
                                     cmocka_unit_test(parts_are_remembered), cmocka_unit_test(of_the_greatest_rank),
                                     cmocka_unit_test(words_are_moved)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
