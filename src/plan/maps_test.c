/* Loops that become a dimension of their kernels, and loops that must stay: the steps of those need one another. All give what they gave. */
#include "axle/ops.h"
#include "plan/passes.h"
#include "support/cmocka.h"
#include "support/run.h"

enum { steps = 12, columns = 5 };

static ax_value integer(int64_t n) { return ax_full_i64(AX_S32, AX_DIMS(), n); }
static ax_value times(ax_value x, double n) { return ax_mul(x, ax_full_like(x, n)); }

/* --- Over rows --- */

/* x: steps x columns, y likewise. The step's number, and y so far. */
typedef ax_value make_row(ax_value x, ax_value y, ax_value i);
typedef struct row_loop {
  make_row *make; /* y with what the step stores */
  int64_t first, count;
  const ax_value *x;
} row_loop;

static AX_BODY_OF(row_step, const row_loop, l) { out[0] = l->make(*l->x, in[1], in[0]); }

static AX_BODY_OF(over_rows, const row_loop, l) {
  row_loop of = *l;
  of.x = &in[0];
  ax_fori_loop(integer(l->first), integer(l->first + l->count), AX_CLOSURE(row_step, 2, 1, &of), &in[1], out);
}

static ax_value at(ax_value x, ax_value i) { return ax_dynamic_at(x, i, 0); }
static ax_value put(ax_value y, ax_value row, ax_value i) { return ax_dynamic_at_set(y, row, i, 0); }

static ax_value scaled(ax_value x, ax_value y, ax_value i) { return put(y, times(at(x, i), 3), i); }
static ax_value from_behind(ax_value x, ax_value y, ax_value i) { return put(y, at(x, ax_sub(integer(steps - 1), i)), i); }
static ax_value by_number(ax_value x, ax_value y, ax_value i) {
  return put(y, ax_add(at(x, i), ax_broadcast_in_dim(ax_convert_element_type(i, AX_F32), AX_DIMS(columns), AX_DIMS())), i);
}
static ax_value to_own(ax_value x, ax_value y, ax_value i) { return put(y, ax_add(at(y, i), at(x, i)), i); }
static ax_value sums_of_rows(ax_value x, ax_value y, ax_value i) {
  const ax_value row = at(x, i), sum = ax_reduce_sum(row, AX_ALL_DIMS, false);
  return put(y, ax_sub(row, ax_broadcast_in_dim(sum, AX_DIMS(columns), AX_DIMS())), i);
}
static ax_value three_rows(ax_value x, ax_value y, ax_value i) {
  const ax_value from[] = {ax_mul(i, integer(3)), integer(0)};
  return ax_dynamic_update_slice(y, times(ax_dynamic_slice(x, from, AX_DIMS(3, columns)), 2), from);
}
static ax_value even_of_odd(ax_value x, ax_value y, ax_value i) {
  const ax_value even = ax_mul(i, integer(2));
  return put(y, ax_add(at(y, ax_add(even, integer(1))), at(x, even)), even);
}
static ax_value column(ax_value x, ax_value y, ax_value i) { return ax_dynamic_at_set(y, times(ax_dynamic_at(x, i, 1), 2), i, 1); }
/* As jax.numpy's y.at[i].set: negative numbers count from the end, and rows that are not there are left out. */
static ax_value checked(ax_value x, ax_value y, ax_value i) {
  const ax_value there = ax_where(ax_lt(i, integer(0)), ax_add(i, integer(steps)), i);
  const ax_value inside = ax_and(ax_ge(there, integer(0)), ax_lt(there, integer(steps)));
  return put(y, ax_where(ax_broadcast_in_dim(inside, AX_DIMS(columns), AX_DIMS()), at(x, there), at(y, there)), there);
}

/* These need one another. */
static ax_value of_the_one_before(ax_value x, ax_value y, ax_value i) {
  return put(y, ax_add(at(y, ax_sub(i, integer(1))), at(x, i)), i);
}
static ax_value of_the_other_end(ax_value x, ax_value y, ax_value i) {
  return put(y, ax_add(at(y, ax_sub(integer(steps - 1), i)), at(x, i)), i);
}
static ax_value all_in_one(ax_value x, ax_value y, ax_value i) { return put(y, at(x, i), integer(0)); }
static ax_value overlapping(ax_value x, ax_value y, ax_value i) {
  const ax_value from[] = {ax_mul(i, integer(2)), integer(0)};
  return ax_dynamic_update_slice(y, ax_dynamic_slice(x, from, AX_DIMS(3, columns)), from);
}
static ax_value even_of_next(ax_value x, ax_value y, ax_value i) {
  const ax_value even = ax_mul(i, integer(2));
  return put(y, ax_add(at(y, ax_add(even, integer(2))), at(x, even)), even);
}
static ax_value past_the_end(ax_value x, ax_value y, ax_value i) { return put(y, at(x, i), ax_add(i, integer(4))); }
static ax_value where_data_says(ax_value x, ax_value y, ax_value i) {
  const ax_value place = ax_convert_element_type(at(at(x, i), integer(0)), AX_S32);
  return put(y, at(x, i), place);
}
static ax_value all_of_it(ax_value x, ax_value y, ax_value i) {
  return ax_add(y, ax_broadcast_in_dim(at(x, i), AX_DIMS(steps, columns), AX_DIMS(1)));
}

/* --- Plans --- */

static uint32_t loops_in(ax_block *block) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < block->count; i++) {
    count += block->ops[i].kind == AX_OP_LOOP;
    for (uint32_t k = 0; ax_op_block(&block->ops[i], k) != NULL; k++) count += loops_in(ax_op_block(&block->ops[i], k));
  }
  return count;
}

static void expect_loops(ax_fn function, const ax_type *in, uint32_t in_count, uint32_t loops) {
  ax_program *program;
  ax_plan *plan;
  TEST_OK((ax_trace)(function, in_count, in, &program));
  TEST_OK(ax_plan_create(program, NULL, NULL, NULL, &plan));
  TEST_OK(ax_plan_optimise(plan, "maps", NULL));
  assert_int_equal(loops_in(&plan->block), loops);
  ax_plan_destroy(plan);
  ax_tensor *tensors[2];
  for (uint32_t k = 0; k < in_count; k++) {
    TEST_OK(ax_tensor_create(&in[k], &tensors[k]));
    for (int64_t i = 0; i < ax_type_elems(&in[k]); i++) test_set(tensors[k], i, (double)((i * 7 + k) % 11));
  }
  (void)test_as_reference(program, tensors, true);
  for (uint32_t k = 0; k < in_count; k++) ax_tensor_release(tensors[k]);
  ax_program_release(program);
}

static void expect_rows(make_row *make, int64_t first, int64_t count, uint32_t loops) {
  const ax_type in[] = {TEST_TYPE(AX_F32, steps, columns), TEST_TYPE(AX_F32, steps, columns)};
  const row_loop l = {make, first, count, NULL};
  expect_loops(AX_CLOSURE(over_rows, 2, 1, (void *)&l), in, 2, loops);
}

static void rows_of_their_own(void **state) {
  (void)state;
  make_row *const rows[] = {scaled, from_behind, by_number, to_own, sums_of_rows, checked};
  for (size_t k = 0; k < AX_COUNT(rows); k++) {
    expect_rows(rows[k], 0, steps, 0);
    expect_rows(rows[k], 2, steps - 5, 0); /* the other rows stay */
  }
  expect_rows(three_rows, 0, steps / 3, 0);
  expect_rows(even_of_odd, 0, steps / 2, 0);
  expect_rows(column, 0, columns, 0);
}

static void rows_of_others(void **state) {
  (void)state;
  expect_rows(of_the_one_before, 1, steps - 1, 1);
  expect_rows(of_the_other_end, 0, steps, 1);
  expect_rows(all_in_one, 0, steps, 1);
  expect_rows(overlapping, 0, 5, 1);
  expect_rows(even_of_next, 0, steps / 2 - 1, 1);
  expect_rows(past_the_end, 0, steps, 1);
  expect_rows(where_data_says, 0, steps, 1);
  expect_rows(all_of_it, 0, steps, 1);
}

/* --- Scans --- */

static AX_BODY(squared) { out[0] = ax_mul(in[0], in[0]); }
static AX_BODY(less_than_most) {
  out[0] = ax_sub(in[0], ax_broadcast_in_dim(ax_reduce_max(in[0], AX_ALL_DIMS, false), AX_DIMS(columns), AX_DIMS()));
}
static AX_BODY(handed_on) { out[0] = in[0], out[1] = ax_add(in[1], in[0]); }
static AX_BODY(added_up) { out[0] = ax_add(in[0], in[1]), out[1] = in[0]; }
static AX_BODY_OF(mapped, const ax_function, f) { ax_map(AX_FN(*f, 1, 1), 1, in, out); }
static AX_BODY_OF(backwards, const ax_function, f) { ax_scan(AX_FN(*f, 1, 1), 0, steps, true, in, out); }
static AX_BODY(carried_along) {
  ax_value made[2];
  ax_scan(AX_FN(handed_on, 2, 2), 1, steps, false,
          AX_VALUES(ax_reshape(ax_slice(in[0], AX_DIMS(0, 0), AX_DIMS(1, columns), NULL), AX_DIMS(columns)), in[0]), made);
  out[0] = made[1];
}
static AX_BODY(summed) {
  ax_value made[2];
  ax_scan(AX_FN(added_up, 2, 2), 1, steps, false,
          AX_VALUES(ax_reshape(ax_slice(in[0], AX_DIMS(0, 0), AX_DIMS(1, columns), NULL), AX_DIMS(columns)), in[0]), made);
  out[0] = made[1];
}
static AX_BODY(over_columns) { ax_map(AX_FN(squared, 1, 1), 1, in, out); }
static AX_BODY(in_another) { ax_map(AX_FN(over_columns, 1, 1), 1, in, out); }

static void scans(void **state) {
  (void)state;
  const ax_type x = TEST_TYPE(AX_F32, steps, columns), large = TEST_TYPE(AX_F32, 1024, columns, columns);
  const ax_function squares = squared, differences = less_than_most;
  expect_loops(AX_CLOSURE(mapped, 1, 1, (void *)&squares), &x, 1, 0);
  expect_loops(AX_CLOSURE(mapped, 1, 1, (void *)&differences), &x, 1, 0);
  expect_loops(AX_CLOSURE(backwards, 1, 1, (void *)&differences), &x, 1, 0);
  expect_loops(AX_FN(carried_along, 1, 1), &x, 1, 0);
  expect_loops(AX_FN(summed, 1, 1), &x, 1, 1);
  expect_loops(AX_FN(in_another, 1, 1), &x, 1, 0);
  expect_loops(AX_FN(in_another, 1, 1), &large, 1, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows_of_their_own), cmocka_unit_test(rows_of_others),
                                     cmocka_unit_test(scans)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
