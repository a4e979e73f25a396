/* Which kernels are done together over rows, and that what others touch stays in memory. */
#include "axle/ops.h"
#include "axle/transform.h"
#include "machine/caches.h"
#include "machine/machine.h"
#include "plan/passes.h"
#include "product/product.h"
#include "support/cmocka.h"
#include "support/tensor.h"

static const int64_t last = -1;

static ax_value mean(ax_value x) { return ax_expand_dims(ax_reduce_mean(x, AX_LIST(1, &last), false), -1); }

static void layernorm(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value centred = ax_sub(in[0], mean(in[0]));
  out[0] = ax_mul(centred, ax_rsqrt(ax_add(mean(ax_mul(centred, centred)), ax_real(1e-5))));
}

static void softmax(const ax_value *in, ax_value *out, void *axis) { out[0] = ax_softmax(in[0], *(const int64_t *)axis); }

/* The sum of each row, added to the row as far from the end. */
static void from_another_row(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_type type = ax_typeof(in[0]);
  ax_value sums = ax_rev(ax_reduce_sum(in[0], AX_LIST(1, &last), true), AX_DIMS(0));
  out[0] = ax_add(in[0], ax_broadcast_to(sums, AX_LIST(type.rank, type.dims)));
}

/* Exponentials are a result too. */
static void kept(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_exp(in[0]);
  out[1] = ax_div(out[0], ax_reduce_sum(out[0], AX_LIST(1, &last), true));
}

static void two_chains(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  for (int k = 0; k < 2; k++) out[k] = ax_softmax(in[k], -1);
}

/* Rows of several tables side by side, at numbers that are rows of an array of their own. */
enum { tables = 12, batch = 8192 };
static void looked_up(const ax_value *in, ax_value *out, void *context) {
  ax_value rows[tables];
  (void)context;
  for (int64_t t = 0; t < tables; t++) {
    const ax_value table = ax_slice(in[0], AX_DIMS(1000 * t, 0), AX_DIMS(1000 * t + 1000, 16), NULL);
    rows[t] = ax_take(table, ax_reshape(ax_slice(in[1], AX_DIMS(t, 0), AX_DIMS(t + 1, batch), NULL), AX_DIMS(batch)), 0);
  }
  out[0] = ax_concatenate(AX_LIST(tables, rows), 1);
}

/* Each of two products is of an array that is made of columns of the same one. */
static void made_for_products(const ax_value *in, ax_value *out, void *context) {
  const int64_t rows = ax_typeof(in[0]).dims[0];
  (void)context;
  for (int64_t k = 0; k < 2; k++)
    out[k] = ax_matmul(in[1], ax_exp(ax_slice(in[0], AX_DIMS(0, 0), AX_DIMS(rows, rows - 32 * k), NULL)));
}

static void describe(ax_text *line, const ax_op *op) {
  if (op->kind == AX_OP_KERNEL) ax_text_add(line, "kernel");
  else if (op->kind == AX_OP_ROWS) {
    const ax_rows *rows = op->rows;
    uint32_t local = 0;
    for (uint32_t i = 0; i < rows->slot_count; i++) local += rows->slots[i].row_bytes != 0;
    ax_text_add(line, "%u members over %lldx%lld, %u of %u slots local", rows->count, (long long)rows->outer,
                (long long)rows->extent, local, rows->slot_count);
  } else ax_text_add(line, "other");
}

static void expect(ax_function body, void *context, uint32_t in_count, uint32_t out_count, ax_type type, const char *wanted) {
  ax_type in[2] = {type, type};
  ax_program *program = test_trace(body, context, in, in_count, out_count);
  ax_plan *plan;
  ax_text line = {0};
  char *got;
  TEST_OK(ax_plan_create(program, NULL, NULL, NULL, &plan));
  TEST_OK(ax_plan_optimise(plan, NULL, NULL));
  for (uint32_t i = 0; i < plan->block.count; i++) {
    if (i > 0) ax_text_add(&line, "; ");
    describe(&line, &plan->block.ops[i]);
  }
  TEST_OK(ax_text_finish(&line, &got));
  assert_string_equal(got, wanted);
  ax_free(got);
  ax_plan_destroy(plan);
  ax_program_release(program);
}

static void rows_are_done_together(void **state) {
  (void)state;
  if (AX_HOSTILE) skip(); /* where whatever may be done together is */
  expect(layernorm, NULL, 1, 1, TEST_TYPE(AX_F32, 512, 512), "5 members over 1x512, 10 of 13 slots local");
  expect(softmax, &(int64_t){-1}, 1, 1, TEST_TYPE(AX_F32, 512, 512), "3 members over 1x512, 6 of 9 slots local");
  expect(softmax, &(int64_t){-1}, 1, 1, TEST_TYPE(AX_BF16, 4, 8, 512, 512), "3 members over 32x512, 6 of 9 slots local");
  expect(softmax, &(int64_t){-1}, 1, 1, TEST_TYPE(AX_F32, 100000, 7), "3 members over 1x100000, 6 of 9 slots local");
}

/* Scores of other rows and what they weigh: neither the scores nor what becomes of them lies in memory. */
static void attention(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value shares = ax_softmax(ax_einsum("hqd,hkd->hqk", AX_LIST(2, in)), -1);
  out[0] = ax_einsum("hqk,hkd->hqd", AX_VALUES(shares, in[1]));
}

static void products_take_part(void **state) {
  (void)state;
  if (AX_HOSTILE) skip(); /* where whatever may be done together is */
  expect(attention, NULL, 2, 1, TEST_TYPE(AX_F32, 8, 512, 64), "5 members over 8x512, 11 of 15 slots local");
  /* Where the processor's products take the sums over 512 in several blocks, they are rounded afterwards. */
  expect(attention, NULL, 2, 1, TEST_TYPE(AX_BF16, 8, 512, 64),
         ax_product_rounds(AX_BF16, 512) ? "5 members over 8x512, 11 of 15 slots local" : "6 members over 8x512, 13 of 17 slots local");
}

/* The same where a query looks at some keys only. context: a bool, whether they are those up to its own place, which are found at each element. */
static void masked_attention(const ax_value *in, ax_value *out, void *context) {
  const int64_t length = ax_typeof(in[0]).dims[1], dims[] = {length, length};
  ax_value row = ax_iota(AX_S32, AX_LIST(2, dims), 0), column = ax_iota(AX_S32, AX_LIST(2, dims), 1);
  if (!*(const bool *)context) row = ax_xor(row, ax_integer(3)), column = ax_mul(column, column);
  ax_value past = ax_ge(row, column);
  ax_value scores = ax_where(past, ax_einsum("hqd,hkd->hqk", AX_LIST(2, in)), ax_real(-1e9));
  out[0] = ax_einsum("hqk,hkd->hqd", AX_VALUES(ax_softmax(scores, -1), in[1]));
}

/* Backward too: the product that gives the gradient of the queries goes with the rows, over that which gives the values'. */
static void squared(const ax_value *in, ax_value *out, void *context) {
  ax_value y;
  attention(in, &y, context);
  out[0] = ax_reduce_sum(ax_square(y), AX_ALL_DIMS, false);
}
static void attention_gradient(const ax_value *in, ax_value *out, void *context) {
  ax_grad(AX_CLOSURE(squared, 2, 1, context), AX_FIRST(2), AX_LIST(2, in), AX_LIST(2, out));
}

static void products_go_with_the_rows_backward(void **state) {
  (void)state;
  if (AX_HOSTILE) skip(); /* where whatever may be done together is */
  expect(attention_gradient, NULL, 2, 2, TEST_TYPE(AX_F32, 8, 512, 64),
         "10 members over 8x512, 20 of 32 slots local; other; other; kernel");
}

/* The mask is made before the scores, though the program makes it after them. */
static void what_members_need_goes_before(void **state) {
  (void)state;
  if (AX_HOSTILE) skip(); /* where whatever may be done together is */
  expect(masked_attention, &(bool){false}, 2, 1, TEST_TYPE(AX_F32, 8, 512, 64),
         "kernel; 5 members over 8x512, 12 of 17 slots local");
  expect(masked_attention, &(bool){true}, 2, 1, TEST_TYPE(AX_F32, 8, 512, 64), "5 members over 8x512, 12 of 16 slots local");
}

/* Two layers of a network, whose weights are as large as the keys of long attention: they would be read for each block, to keep
   little. */
static void two_layers(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value weights = ax_slice_in_dim(in[1], 0, 512, 1, 0);
  out[0] = ax_matmul(ax_tanh(ax_matmul(in[0], weights)), weights);
}

/* What is made of neighbours, put to both of them: each element is read under a guard, at two places that differ, and no guard
   lets one row read another. */
static void to_both_neighbours(const ax_value *in, ax_value *out, void *context) {
  const int64_t columns = ax_typeof(in[0]).dims[1];
  (void)context;
  const ax_value made = ax_exp(ax_sub(ax_slice_in_dim(in[0], 1, columns, 1, 1), ax_slice_in_dim(in[0], 0, columns - 1, 1, 1)));
  out[0] = ax_add(ax_pad(made, ax_real(0), AX_DIMS(0, 1), AX_DIMS(0, 0), AX_DIMS(0, 0)),
                  ax_pad(made, ax_real(0), AX_DIMS(0, 0), AX_DIMS(0, 1), AX_DIMS(0, 0)));
}

static void guards_keep_rows_apart(void **state) {
  (void)state;
  if (AX_HOSTILE) skip(); /* where whatever may be done together is */
  expect(to_both_neighbours, NULL, 1, 1, TEST_TYPE(AX_F32, 512, 512), "2 members over 1x512, 2 of 4 slots local");
}

/* Products of two, four, eight .. neighbours: rows of ever fewer elements, and more passes over those of few. */
static void products_of_neighbours(const ax_value *in, ax_value *out, void *context) {
  ax_value x = in[0];
  int made = 0;
  (void)context;
  for (int64_t columns = ax_typeof(x).dims[1]; columns > 2; columns /= 2) {
    x = ax_exp(ax_mul(ax_slice_in_dim(x, 0, columns, 2, 1), ax_slice_in_dim(x, 1, columns, 2, 1)));
    if (columns <= 32) out[made++] = ax_tanh(ax_rev(x, AX_DIMS(1)));
    if (columns <= 32) out[made++] = ax_reduce_sum(x, AX_LIST(1, &last), false);
  }
}

static void few_elements_are_not_called_for_row_by_row(void **state) {
  (void)state;
  if (AX_HOSTILE) skip(); /* where whatever may be done together is */
  expect(products_of_neighbours, NULL, 1, 8, TEST_TYPE(AX_F32, 512, 1024),
         "kernel; kernel; kernel; kernel; kernel; kernel; kernel; kernel; kernel");
}

static void pretend(const char *text) {
  ax_description machine;
  TEST_OK(ax_machine_parse(text, &machine));
  ax_machine_pretend(&machine);
}

static int pretend_usual(void **state) {
  (void)state;
  pretend("l1 32 KiB\nl2 1 MiB\nl3 32 MiB\nl3_cores 8\n");
  return 0;
}

/* Factors that a core's part of the last cache holds are gone through for each block of rows, if that keeps more out of memory. */
static void far_factors(void **state) {
  const char *together = "5 members over 8x4096, 11 of 15 slots local",
             *apart = "other; 3 members over 8x4096, 6 of 9 slots local; other";
  if (AX_HOSTILE) skip(); /* where whatever may be done together is */
  expect(attention, NULL, 2, 1, TEST_TYPE(AX_F32, 8, 4096, 64), together);
  expect(attention, NULL, 2, 1, TEST_TYPE(AX_F32, 2, 16384, 64), "other; 3 members over 2x16384, 6 of 9 slots local; other");
  expect(two_layers, NULL, 2, 1, TEST_TYPE(AX_F32, 2048, 512), "other; kernel; other");
  pretend("l1 32 KiB\nl2 1 MiB\nl3 0 MiB\n");
  expect(attention, NULL, 2, 1, TEST_TYPE(AX_F32, 8, 4096, 64), apart);
  pretend("l1 32 KiB\nl2 256 KiB\nl3 32 MiB\nl3_cores 8\n");
  expect(attention, NULL, 2, 1, TEST_TYPE(AX_F32, 8, 4096, 64), apart); /* no room for the scores */
  pretend_usual(state);
}

/* What is added up lies between other dimensions: rows are those around it. */
static void columns_are_done_row_by_row(void **state) {
  (void)state;
  if (AX_HOSTILE) skip(); /* where whatever may be done together is */
  expect(softmax, &(int64_t){1}, 1, 1, TEST_TYPE(AX_F32, 64, 50, 1000), "4 members over 1x64, 7 of 10 slots local");
  expect(softmax, &(int64_t){2}, 1, 1, TEST_TYPE(AX_F32, 8, 8, 30, 500), "4 members over 8x8, 7 of 10 slots local");
  expect(softmax, &(int64_t){1}, 1, 1, TEST_TYPE(AX_F32, 4, 1000, 3000),
         "kernel; kernel; kernel; kernel; kernel; kernel"); /* too much for a cache */
}

static void what_is_small_or_long_is_not(void **state) {
  (void)state;
  if (AX_HOSTILE) skip(); /* where whatever may be done together is */
  expect(softmax, &(int64_t){-1}, 1, 1, TEST_TYPE(AX_F32, 32, 32), "kernel; kernel; kernel");
  expect(softmax, &(int64_t){-1}, 1, 1, TEST_TYPE(AX_F32, 4, 1 << 20), "kernel; kernel; kernel; kernel; kernel; kernel");
}

static void rows_that_depend_on_others_are_not(void **state) {
  (void)state;
  expect(from_another_row, NULL, 1, 1, TEST_TYPE(AX_F32, 512, 512), "kernel; kernel");
  expect(softmax, &(int64_t){0}, 1, 1, TEST_TYPE(AX_F32, 512, 512), "kernel; kernel; kernel; kernel");
}

static void results_lie_in_memory(void **state) {
  (void)state;
  expect(kept, NULL, 1, 2, TEST_TYPE(AX_F32, 512, 512), "2 members over 1x512, 2 of 6 slots local");
}

static void chains_stay_apart(void **state) {
  (void)state;
  expect(two_chains, NULL, 2, 2, TEST_TYPE(AX_F32, 512, 512),
         "3 members over 1x512, 6 of 9 slots local; 3 members over 1x512, 6 of 9 slots local");
}

/* Together with the first array the second would be held while the first product is made; small ones may be. */
static void what_is_large_is_made_where_it_is_needed(void **state) {
  (void)state;
  if (AX_HOSTILE) skip();
  expect(made_for_products, NULL, 2, 2, TEST_TYPE(AX_F32, 512, 512), "kernel; other; kernel; other");
  expect(made_for_products, NULL, 2, 2, TEST_TYPE(AX_F32, 224, 224), "2 members over 1x224, 0 of 4 slots local; other; other");
}

/* Each row is looked up where it is to lie; many are done at a time, though the numbers of a row of results lie far apart. */
static void many_tables(void **state) {
  const ax_type in[] = {TEST_TYPE(AX_F32, tables * 1000, 16), TEST_TYPE(AX_S32, tables, batch)};
  (void)state;
  if (AX_HOSTILE) skip(); /* where blocks are short */
  ax_program *program = test_trace(looked_up, NULL, in, 2, 1);
  ax_plan *plan;
  TEST_OK(ax_plan_create(program, NULL, NULL, NULL, &plan));
  TEST_OK(ax_plan_optimise(plan, NULL, NULL));
  assert_int_equal(plan->block.count, 1);
  assert_int_equal(plan->block.ops[0].kind, AX_OP_ROWS);
  assert_int_equal(plan->block.ops[0].rows->count, tables);
  assert_int_equal(plan->block.ops[0].rows->step, 20);
  ax_plan_destroy(plan);
  ax_program_release(program);
}

/* What a block of rows touches takes half of the first cache at most, wherever it lies. */
static void blocks_leave_half_of_the_cache(void **state) {
  const ax_type in = TEST_TYPE(AX_F32, 4096, 256);
  (void)state;
  if (AX_HOSTILE) skip(); /* where blocks are short */
  ax_program *program = test_trace(softmax, &(int64_t){-1}, &in, 1, 1);
  ax_plan *plan;
  TEST_OK(ax_plan_create(program, NULL, NULL, NULL, &plan));
  TEST_OK(ax_plan_optimise(plan, NULL, NULL));
  assert_int_equal(plan->block.ops[0].kind, AX_OP_ROWS);
  const int64_t touched = plan->block.ops[0].rows->step * 2 * 256 * 4; /* an operand and a result */
  assert_in_range(touched, ax_caches_here()->first / 4, ax_caches_here()->first / 2);
  ax_plan_destroy(plan);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_done_together),
                                     cmocka_unit_test(blocks_leave_half_of_the_cache),
                                     cmocka_unit_test(products_take_part),
                                     cmocka_unit_test(what_members_need_goes_before),
                                     cmocka_unit_test(guards_keep_rows_apart),
                                     cmocka_unit_test(few_elements_are_not_called_for_row_by_row),
                                     cmocka_unit_test(products_go_with_the_rows_backward),
                                     cmocka_unit_test(far_factors),
                                     cmocka_unit_test(columns_are_done_row_by_row),
                                     cmocka_unit_test(what_is_small_or_long_is_not),
                                     cmocka_unit_test(rows_that_depend_on_others_are_not),
                                     cmocka_unit_test(results_lie_in_memory),
                                     cmocka_unit_test(chains_stay_apart),
                                     cmocka_unit_test(what_is_large_is_made_where_it_is_needed),
                                     cmocka_unit_test(many_tables)};
  return cmocka_run_group_tests(tests, pretend_usual, NULL);
}
