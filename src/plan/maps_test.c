/* Loops that become a dimension of their kernels, and loops that must stay: the steps of those need one another. All give what they gave. */
#include "axle/ops.h"
#include "plan/passes.h"
#include "support/cmocka.h"
#include "support/run.h"

enum { steps = 40, columns = 5 };

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

/* --- Sums --- */

/* x: steps x columns; a value that each step changes. */
static ax_value root_of(ax_value x) { return ax_sqrt(times(x, 0.1)); } /* the same bits everywhere */
static ax_value row_sum(ax_value x, ax_value i) { return ax_reduce_sum(at(x, i), AX_ALL_DIMS, false); }
static ax_value element(ax_value x, ax_value i) { return at(at(x, i), integer(0)); }
static ax_value even(ax_value x, ax_value i) {
  return ax_eq(ax_rem(ax_convert_element_type(element(x, i), AX_S32), integer(2)), integer(0));
}
static ax_value whole(ax_value x, ax_value i) { return ax_convert_element_type(element(x, i), AX_S32); }

static ax_value plus(ax_value x, ax_value s, ax_value i) { return ax_add(s, root_of(at(x, i))); }
static ax_value plus_before(ax_value x, ax_value s, ax_value i) { return ax_add(root_of(at(x, i)), s); }
static ax_value minus(ax_value x, ax_value s, ax_value i) { return ax_sub(s, root_of(element(x, i))); }
static ax_value product(ax_value x, ax_value s, ax_value i) { return ax_mul(s, root_of(element(x, i))); }
static ax_value plus_where(ax_value x, ax_value s, ax_value i) {
  return ax_where(even(x, i), ax_add(s, root_of(element(x, i))), s);
}
static ax_value minus_unless(ax_value x, ax_value s, ax_value i) {
  return ax_where(even(x, i), s, ax_sub(s, root_of(element(x, i))));
}
static ax_value plus_many(ax_value x, ax_value s, ax_value i) {
  return ax_add(s, ax_convert_element_type(root_of(element(x, i)), AX_BF16));
}

static ax_value count(ax_value x, ax_value s, ax_value i) { return ax_add(s, whole(x, i)); }
static ax_value count_down(ax_value x, ax_value s, ax_value i) { return ax_sub(s, whole(x, i)); }
static ax_value count_even(ax_value x, ax_value s, ax_value i) { return ax_where(even(x, i), ax_add(s, integer(1)), s); }
static ax_value whole_product(ax_value x, ax_value s, ax_value i) { return ax_mul(s, ax_add(whole(x, i), integer(1))); }
static ax_value all_bits(ax_value x, ax_value s, ax_value i) { return ax_or(s, whole(x, i)); }
static ax_value odd_bits(ax_value x, ax_value s, ax_value i) { return ax_xor(whole(x, i), s); }
static ax_value common_bits(ax_value x, ax_value s, ax_value i) { return ax_and(s, ax_add(whole(x, i), integer(8))); }
static ax_value greatest(ax_value x, ax_value s, ax_value i) { return ax_max(s, at(x, i)); }
static ax_value least(ax_value x, ax_value s, ax_value i) { return ax_min(element(x, i), s); }

static ax_value root_of_short_sum(ax_value x, ax_value s, ax_value i) { return ax_add(s, root_of(row_sum(x, i))); }

/* These are no sums, or not of what each step makes by itself. */
static ax_value faded(ax_value x, ax_value s, ax_value i) { return ax_add(times(s, 0.5), root_of(at(x, i))); }
static ax_value signs_by_turns(ax_value x, ax_value s, ax_value i) { return ax_sub(root_of(at(x, i)), s); }
static ax_value of_itself(ax_value x, ax_value s, ax_value i) { return ax_add(s, ax_sqrt(ax_abs(ax_add(at(x, i), s)))); }
static ax_value while_small(ax_value x, ax_value s, ax_value i) {
  return ax_where(ax_lt(s, ax_full_like(s, 9)), ax_add(s, root_of(element(x, i))), s);
}
static ax_value doubled(ax_value x, ax_value s, ax_value i) { return ax_add(s, ax_mul(s, root_of(element(x, i)))); }
static ax_value greatest_where(ax_value x, ax_value s, ax_value i) {
  return ax_where(even(x, i), ax_max(s, root_of(element(x, i))), s);
}
static ax_value turned(ax_value x, ax_value s, ax_value i) { return ax_add(ax_rev(s, AX_DIMS(0)), root_of(at(x, i))); }
static ax_value the_same(ax_value x, ax_value s, ax_value i) {
  (void)i;
  return ax_add(s, root_of(at(x, integer(3))));
}
static ax_value quotient(ax_value x, ax_value s, ax_value i) { return ax_div(s, root_of(element(x, i))); }

/* How many kernels in loops are called; those that do more than add are `busy`. */
static void look_into_loops(ax_block *block, bool inside, uint32_t *busy) {
  for (uint32_t i = 0; i < block->count; i++) {
    const ax_op *op = &block->ops[i];
    for (ax_ex e = 0; inside && op->kind == AX_OP_KERNEL && e < op->kernel.kernel->expr_count; e++)
      *busy += ax_scalar_is_function(op->kernel.kernel->exprs[e].op);
    for (uint32_t k = 0; ax_op_block(&block->ops[i], k) != NULL; k++)
      look_into_loops(ax_op_block(&block->ops[i], k), inside || op->kind == AX_OP_LOOP, busy);
  }
}

typedef struct a_sum {
  make_row *make;
  ax_type type;
  uint32_t loops, busy; /* that are left; of these, functions in them */
} a_sum;

static void expect_sum(const a_sum *s) {
  const ax_type in[] = {TEST_TYPE(AX_F32, steps, columns), s->type};
  const row_loop l = {s->make, 0, steps, NULL};
  ax_program *program;
  ax_plan *plan;
  uint32_t busy = 0;
  expect_loops(AX_CLOSURE(over_rows, 2, 1, (void *)&l), in, 2, s->loops);
  TEST_OK((ax_trace)(AX_CLOSURE(over_rows, 2, 1, (void *)&l), 2, in, &program));
  TEST_OK(ax_plan_create(program, NULL, NULL, NULL, &plan));
  TEST_OK(ax_plan_optimise(plan, "maps", NULL));
  look_into_loops(&plan->block, false, &busy);
  assert_int_equal(busy, s->busy);
  ax_plan_destroy(plan);
  ax_program_release(program);
}

static void sums_of_steps(void **state) {
  (void)state;
  const ax_type real = TEST_SCALAR(AX_F32), row = TEST_TYPE(AX_F32, columns), integer_type = TEST_SCALAR(AX_S32),
                one = TEST_TYPE(AX_F32, 1, 1), brain = TEST_SCALAR(AX_BF16);
  const a_sum sums[] = {
      /* floats are added in the order of the steps, in a loop that does nothing else */
      {plus, row, 1, 0},
      {plus_before, row, 1, 0},
      {minus, real, 1, 0},
      {product, real, 1, 0},
      {minus, one, 1, 0},
      {plus_many, brain, 1, 0},
      /* others in any order */
      {count, integer_type, 0, 0},
      {count_down, integer_type, 0, 0},
      {count_even, integer_type, 0, 0},
      {whole_product, integer_type, 0, 0},
      {all_bits, integer_type, 0, 0},
      {odd_bits, integer_type, 0, 0},
      {common_bits, integer_type, 0, 0},
      {greatest, row, 0, 0},
      {least, real, 0, 0},
      /* floats that stay where a condition says so: -0 or 0 added to some would change them */
      {plus_where, real, 1, 1},
      {minus_unless, real, 1, 1},
      /* a step is as fast by itself */
      {root_of_short_sum, real, 1, 1},
      {plus, TEST_TYPE(AX_F32, 32, columns), 1, 1},
      /* no sums */
      {faded, row, 1, 1},
      {signs_by_turns, row, 1, 1},
      {of_itself, row, 1, 1},
      {while_small, real, 1, 1},
      {doubled, real, 1, 1},
      {greatest_where, real, 1, 1},
      {turned, row, 1, 1},
      {the_same, row, 1, 1},
      {quotient, real, 1, 1},
  };
  for (size_t k = 0; k < AX_COUNT(sums); k++) expect_sum(&sums[k]);
}

/* Sums that are read on the way, and several of one loop. */
static AX_BODY(before) { out[0] = ax_add(in[0], root_of(in[1])), out[1] = in[0]; }
static AX_BODY(after) { out[0] = out[1] = ax_add(in[0], root_of(in[1])); }
static AX_BODY(half_after) { out[0] = ax_add(in[0], root_of(in[1])), out[1] = times(out[0], 0.5); }
static AX_BODY(first_and_second) {
  out[0] = ax_add(in[0], root_of(in[2]));
  out[1] = ax_max(in[1], in[2]);
  out[2] = times(in[2], 2);
}
typedef struct read_sum {
  ax_function body;
  bool reverse, scalar;
} read_sum;

static AX_BODY_OF(read_on_the_way, const read_sum, r) {
  ax_value made[2];
  const ax_value first = r->scalar ? at(in[1], integer(0)) : in[1],
                 rows = r->scalar ? at(ax_transpose(in[0], AX_DIMS(1, 0)), integer(0)) : in[0];
  ax_scan(AX_FN(*r->body, 2, 2), 1, steps, r->reverse, AX_VALUES(first, rows), made);
  out[0] = ax_concatenate(AX_VALUES(made[1], ax_expand_dims(made[0], 0)), 0);
}
static AX_BODY_OF(several, const bool, reverse) {
  ax_value made[3];
  ax_scan(AX_FN(first_and_second, 3, 3), 2, steps, *reverse, AX_VALUES(in[1], in[1], in[0]), made);
  out[0] =
      ax_concatenate(AX_VALUES(made[2], ax_reshape(made[0], AX_DIMS(1, columns)), ax_reshape(made[1], AX_DIMS(1, columns))), 0);
}

static void sums_beside_others(void **state) {
  (void)state;
  const ax_type in[] = {TEST_TYPE(AX_F32, steps, columns), TEST_TYPE(AX_F32, columns)};
  const ax_type numbers[] = {TEST_TYPE(AX_F32, steps, columns), TEST_SCALAR(AX_S32)};
  const row_loop few = {count, 0, 4, NULL}, enough = {count, 0, 8, NULL};
  expect_loops(AX_CLOSURE(over_rows, 2, 1, (void *)&few), numbers, 2,
               1); /* takes less than the operations that would be made of it */
  expect_loops(AX_CLOSURE(over_rows, 2, 1, (void *)&enough), numbers, 2, 0);
  const ax_function bodies[] = {before, after, half_after};
  for (size_t k = 0; k < 4 * AX_COUNT(bodies); k++)
    expect_loops(AX_CLOSURE(read_on_the_way, 2, 1, &((read_sum){bodies[k / 4], k % 2 == 1, k % 4 > 1})), in, 2, 1);
  for (int reverse = 0; reverse < 2; reverse++) expect_loops(AX_CLOSURE(several, 2, 1, &(bool){reverse}), in, 2, 1);
}

/* What the sums of a loop hold for all steps is bounded, together. */
enum { many_steps = 1 << 18 };

static AX_BODY_OF(roots_of_numbers, const uint32_t, sums) {
  for (uint32_t k = 0; k < *sums; k++)
    out[k] = ax_add(in[k + 1], ax_sqrt(times(ax_convert_element_type(in[0], AX_F32), k + 1)));
}
static AX_BODY_OF(long_loop, const uint32_t, sums) {
  ax_value all[8];
  for (uint32_t k = 0; k < *sums; k++) all[k] = in[0];
  ax_fori_loop(integer(0), integer(many_steps), AX_CLOSURE(roots_of_numbers, *sums + 1, *sums, (void *)(uintptr_t)sums), all, all);
  out[0] = all[0];
  for (uint32_t k = 1; k < *sums; k++) out[0] = ax_add(out[0], all[k]);
}

static void shares_are_bounded(void **state) {
  (void)state;
  const ax_type in = TEST_SCALAR(AX_F32);
  for (uint32_t sums = 2; sums <= 8; sums += 6) {
    ax_program *program = test_trace(long_loop, &sums, &in, 1, 1);
    ax_plan *plan;
    uint32_t busy = 0;
    TEST_OK(ax_plan_create(program, NULL, NULL, NULL, &plan));
    TEST_OK(ax_plan_optimise(plan, "maps", NULL));
    look_into_loops(&plan->block, false, &busy);
    assert_int_equal(busy, sums == 2 ? 0 : sums);
    ax_plan_destroy(plan);
    ax_program_release(program);
  }
}

/* Long ones are cut for threads, whole or not. */
static AX_BODY(squares_of) { out[0] = ax_add(in[0], ax_rem(ax_mul(in[1], in[1]), integer(7))); }
static AX_BODY(long_sum) { ax_scan(AX_FN(squares_of, 2, 1), 1, -1, false, AX_VALUES(integer(3), in[0]), out); }

static void long_sums(void **state) {
  (void)state;
  for (int64_t length = (1 << 15) - 1; length < (1 << 15) + 2; length++) {
    const ax_type in = TEST_TYPE(AX_S32, length);
    expect_loops(AX_FN(long_sum, 1, 1), &in, 1, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_of_their_own), cmocka_unit_test(rows_of_others),     cmocka_unit_test(scans),
      cmocka_unit_test(sums_of_steps),     cmocka_unit_test(sums_beside_others),
      cmocka_unit_test(shares_are_bounded), cmocka_unit_test(long_sums)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
