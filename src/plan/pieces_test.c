/* Arrays put together from parts, or padded, of which slices are read: not made if kernels read them, left whole if anything else does.
   What comes out is what it was. */
#include "axle/ops.h"
#include "plan/passes.h"
#include "support/cmocka.h"
#include "support/run.h"

enum { rows = 80, columns = 96 };

static ax_value slice_of(ax_value x, int64_t first, int64_t count) { return ax_slice_in_dim(x, first, first + count, 1, 0); }

static ax_value tall_of(ax_value above, ax_value u, ax_value below) { return ax_concatenate(AX_VALUES(above, u, below), 0); }

/* u: [rows, columns], a row above it and one below. */
static AX_BODY(joined_rows) {
  (void)context;
  const ax_value tall = tall_of(in[1], in[0], in[2]);
  out[0] = ax_sub(ax_add(slice_of(tall, 0, rows), slice_of(tall, 2, rows)), ax_mul(ax_real(2), in[0]));
}
static AX_BODY(padded_rows) {
  (void)context;
  const ax_value tall = ax_pad(in[0], ax_full(AX_F32, AX_DIMS(), 3), AX_DIMS(2, 0), AX_DIMS(2, 0), AX_DIMS(0, 0));
  out[0] = slice_of(tall, 0, rows);
  for (int64_t k = 1; k < 5; k++) out[0] = ax_add(ax_mul(out[0], ax_real(0.5)), slice_of(tall, k, rows));
}
/* jnp.pad's number is an integer. */
static AX_BODY(padded_columns) {
  (void)context;
  const ax_value number = ax_convert_element_type(ax_full(AX_S32, AX_DIMS(), 0), AX_F32);
  const ax_value wide = ax_pad(in[0], number, AX_DIMS(0, 1), AX_DIMS(0, 1), AX_DIMS(0, 0));
  out[0] = ax_add(ax_slice(wide, AX_DIMS(0, 0), AX_DIMS(rows, columns), NULL), ax_slice(wide, AX_DIMS(0, 2), AX_DIMS(rows, columns + 2), NULL));
}
/* So many loads would each choose between the array and the number. */
static AX_BODY(padded_for_many) {
  (void)context;
  enum { points = 13 };
  const ax_value wide = ax_pad(in[0], ax_full(AX_F32, AX_DIMS(), 2), AX_DIMS(0, 6), AX_DIMS(0, 6), AX_DIMS(0, 0));
  out[0] = ax_slice(wide, AX_DIMS(0, 0), AX_DIMS(rows, columns), NULL);
  for (int64_t k = 1; k < points; k++)
    out[0] = ax_add(ax_mul(out[0], ax_real(0.5)), ax_slice(wide, AX_DIMS(0, k), AX_DIMS(rows, columns + k), NULL));
}
static AX_BODY(joined_for_many) {
  (void)context;
  const ax_value tall = tall_of(in[1], in[0], in[2]);
  out[0] = slice_of(tall, 0, rows - 8);
  for (int64_t k = 1; k < 10; k++) out[0] = ax_add(ax_mul(out[0], ax_real(0.5)), slice_of(tall, k, rows - 8));
}
static AX_BODY(differences) {
  (void)context;
  const ax_value tall = ax_concatenate(AX_VALUES(in[1], in[0]), 0);
  out[0] = ax_sub(slice_of(tall, 1, rows), slice_of(tall, 0, rows));
}
/* A slice of two halves, which are computed. */
static AX_BODY(computed) {
  (void)context;
  const ax_value both = ax_concatenate(AX_VALUES(ax_exp(in[0]), ax_sin(in[0])), 0);
  out[0] = ax_mul(slice_of(both, rows / 2, rows), in[0]);
}
/* A product takes a slice as it lies. */
static AX_BODY(multiplied) {
  (void)context;
  const ax_value tall = tall_of(in[1], in[0], in[2]);
  out[0] = ax_matmul(slice_of(tall, 1, rows), ax_transpose(slice_of(tall, 2, rows), AX_DIMS(1, 0)));
}
static AX_BODY(returned) {
  (void)context;
  const ax_value tall = tall_of(in[1], in[0], in[2]);
  out[0] = ax_add(slice_of(tall, 0, rows), slice_of(tall, 2, rows));
  out[1] = tall;
}
static AX_BODY(looked_up) {
  (void)context;
  const ax_value tall = tall_of(in[1], in[0], in[2]), part = slice_of(tall, 1, rows);
  out[0] = ax_take(part, ax_rem(ax_iota(AX_S32, AX_DIMS(200), 0), ax_full(AX_S32, AX_DIMS(200), rows)), 0);
  out[1] = ax_reduce_sum(slice_of(tall, 2, rows), AX_DIMS(0), false);
}
/* Each step reads what the one before has left beside the carry. */
static AX_BODY(step) {
  const ax_value *edges = context;
  const ax_value tall = tall_of(edges[0], in[0], edges[1]);
  out[0] = ax_mul(ax_real(0.25), ax_add(ax_add(slice_of(tall, 0, rows), slice_of(tall, 2, rows)), in[0]));
}
static AX_BODY(repeated) {
  (void)context;
  ax_value edges[] = {in[1], in[2]};
  ax_scan(AX_CLOSURE(step, 1, 1, edges), 1, 7, false, in, out);
}

static void count(void *context, ax_op *op) { *(uint32_t *)context += op->kind == AX_OP_KERNEL; }

/* So many kernels are left behind the pass fuse, wherever they are; 0: any number. */
static void expect(ax_function function, uint32_t out_count, uint32_t kernels) {
  const ax_type types[] = {TEST_TYPE(AX_F32, rows, columns), TEST_TYPE(AX_F32, 1, columns), TEST_TYPE(AX_F32, 1, columns)};
  ax_program *program = test_trace(function, NULL, types, 3, out_count);
  ax_plan *plan = test_plan(program);
  uint32_t found = 0;
  TEST_OK(ax_plan_optimise(plan, "fuse", NULL));
  TEST_OK(ax_plan_verify(plan));
  ax_block_walk(&plan->block, count, &found);
  if (kernels > 0 && !AX_HOSTILE) assert_int_equal(found, kernels);
  ax_plan_destroy(plan);
  test_random_run(program, 7, false, 1e-5);
  ax_program_release(program);
}

static void slices_of_what_is_not_made(void **state) {
  (void)state;
  expect(joined_rows, 1, 1);
  expect(padded_rows, 1, 1);
  expect(padded_columns, 1, 1);
  expect(differences, 1, 1);
  expect(repeated, 1, 3); /* a step, the carry's start, and the copy that `alternate` drops */
}

static void many_slices_of_what_is_made(void **state) {
  (void)state;
  expect(padded_for_many, 1, 2);
  expect(joined_for_many, 1, 4); /* the parts, and who reads them */
}

static void slices_across_parts(void **state) {
  (void)state;
  expect(computed, 1, 2);
}

static void others_read_it(void **state) {
  (void)state;
  expect(multiplied, 1, 0);
  expect(returned, 2, 0);
  expect(looked_up, 2, 0);
}

/* What a sum takes from each part is known: the parts, stacked, are not made. */
enum { stacked = 7 };
static ax_value stack(const ax_value *in, int64_t dim) {
  ax_value parts[stacked];
  for (int64_t i = 0; i < stacked; i++) {
    const ax_value row = ax_slice_in_dim(in[0], i, i + rows, 1, 0), next = ax_slice_in_dim(in[0], i + 1, i + 1 + rows, 1, 0);
    parts[i] = ax_expand_dims(ax_mul(row, ax_sin(next)), dim);
  }
  return ax_concatenate(AX_LIST(stacked, parts), dim);
}
static AX_BODY(summed_stack) {
  (void)context;
  out[0] = ax_reduce_sum(stack(in, 0), AX_DIMS(0), false);
}
static AX_BODY(greatest_of_stack) {
  (void)context;
  out[0] = ax_reduce_max(stack(in, 1), AX_DIMS(1), false);
}
/* So many rows would each be stored by themselves where what reads them is not a sum. */
static AX_BODY(greatest_of_many) {
  (void)context;
  out[0] = ax_reduce_max(ax_abs(stack(in, 1)), AX_DIMS(1), false);
}
/* A sum and a product of the same parts, and one that goes on. */
static AX_BODY(stack_for_many) {
  (void)context;
  const ax_value all = stack(in, 1);
  out[0] = ax_reduce_sum(all, AX_DIMS(1), false);
  out[1] = ax_reduce_prod(all, AX_DIMS(1), false);
  out[2] = ax_reduce_max(ax_slice_in_dim(ax_exp(all), 2, 5, 1, 1), AX_DIMS(1), false);
}
/* Sums over other dimensions, and of numbers that are rounded once. */
static AX_BODY(rows_of_stack) {
  (void)context;
  out[0] = ax_reduce_sum(stack(in, 0), AX_DIMS(1), false);
}
static AX_BODY(narrow_stack) {
  (void)context;
  const ax_value narrow = ax_convert_element_type(in[0], AX_BF16);
  out[0] = ax_convert_element_type(ax_reduce_sum(stack(&narrow, 0), AX_DIMS(0), false), AX_F32);
}

static void parts_that_a_sum_takes_are_not_put_together(void **state) {
  static const struct {
    ax_function body;
    uint32_t out_count, kernels; /* 0: any number */
  } cases[] = {{summed_stack, 1, 1},   {greatest_of_stack, 1, 1}, {greatest_of_many, 1, 8},
               {stack_for_many, 3, 0}, {rows_of_stack, 1, 0},     {narrow_stack, 1, 0}};
  (void)state;
  for (size_t i = 0; i < AX_COUNT(cases); i++) {
    const ax_type type = TEST_TYPE(AX_F32, rows + stacked, 300);
    ax_program *program = test_trace(cases[i].body, NULL, &type, 1, cases[i].out_count);
    ax_plan *plan = test_plan(program);
    uint32_t found = 0;
    TEST_OK(ax_plan_optimise(plan, "fuse", NULL));
    TEST_OK(ax_plan_verify(plan));
    ax_block_walk(&plan->block, count, &found);
    if (cases[i].kernels > 0 && !AX_HOSTILE) assert_int_equal(found, cases[i].kernels);
    ax_plan_destroy(plan);
    test_random_run(program, 11, false, cases[i].body == narrow_stack ? 0.05 : 1e-5);
    ax_program_release(program);
  }
}

/* A picture and its first columns from the right to the left, in front of it. */
static AX_BODY(reflected) {
  (void)context;
  const ax_value first = ax_rev(ax_slice_in_dim(in[0], 1, 5, 1, 1), AX_DIMS(1));
  out[0] = ax_sin(ax_concatenate(AX_VALUES(first, in[0]), 1));
}
static AX_BODY(rolled) {
  (void)context;
  const int64_t wide = ax_typeof(in[0]).dims[1];
  out[0] = ax_sin(ax_concatenate(AX_VALUES(ax_slice_in_dim(in[0], wide - 4, wide, 1, 1), in[0]), 1));
}

/* Kernels that choose among parts at each element, */
static void count_choosing(void *context, ax_op *op) {
  uint32_t *found = context;
  bool any = false;
  for (uint32_t i = 0; op->kind == AX_OP_KERNEL && i < op->kernel.kernel->expr_count; i++)
    any = any || (op->kernel.kernel->exprs[i].op == AX_LEAF_LOAD && op->kernel.kernel->exprs[i].arg[0] != AX_NONE);
  *found += any;
}
/* of pictures of so many colours. */
static uint32_t choosing(ax_function body, int64_t colours) {
  const ax_type type = TEST_TYPE(AX_F32, 40, 90, colours);
  ax_program *program = test_trace(body, NULL, &type, 1, 1);
  ax_plan *plan;
  uint32_t found = 0;
  TEST_OK(ax_plan_create(program, NULL, NULL, NULL, &plan));
  TEST_OK(ax_plan_optimise(plan, "fuse", NULL));
  ax_block_walk(&plan->block, count_choosing, &found);
  ax_plan_destroy(plan);
  test_random_run(program, 3, false, 1e-6);
  ax_program_release(program);
  return found;
}

static void colours_are_not_chosen_one_by_one(void **state) {
  (void)state;
  assert_int_equal(choosing(reflected, 3), 0);
  assert_int_equal(choosing(reflected, 40), 1);
  assert_int_equal(choosing(rolled, 3), 1); /* rows of all colours, forwards */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(slices_of_what_is_not_made),
                                     cmocka_unit_test(many_slices_of_what_is_made),
                                     cmocka_unit_test(slices_across_parts),
                                     cmocka_unit_test(others_read_it),
                                     cmocka_unit_test(colours_are_not_chosen_one_by_one),
                                     cmocka_unit_test(parts_that_a_sum_takes_are_not_put_together)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
