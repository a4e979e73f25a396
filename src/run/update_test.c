/* Parts overwritten in place: whatever else reads the value, before or after, sees what it must, under every policy. */
#include "axle/collectives.h"
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

enum { ROWS = 6 };

static ax_value number(double value) { return ax_full(AX_F32, AX_DIMS(), value); }
static ax_value integer(double value) { return ax_full(AX_S32, AX_DIMS(), value); }

static void check(ax_function function, void *context, const ax_type *types, uint32_t in_count, uint32_t out_count) {
  test_random random = {11};
  ax_tensor *in[3];
  ax_program *program = test_trace(function, context, types, in_count, out_count);
  for (uint32_t i = 0; i < in_count; i++) in[i] = test_random_tensor(&random, types[i], -1, 1);
  TEST_EVERY_WAY(program, in, 1e-5);
  test_release(in, in_count);
  ax_program_release(program);
}

static const ax_type table = {.dtype = AX_F32, .rank = 2, .dims = {ROWS, 4}};

static ax_value with_row(ax_value x, ax_value row, ax_value at) {
  return ax_dynamic_update_slice(x, row, AX_VALUES(at, integer(0)));
}
static ax_value row_of(ax_value x, ax_value at) {
  return ax_dynamic_slice(x, AX_VALUES(at, integer(0)), AX_DIMS(1, 4));
}
static ax_value halved(ax_value x) { return ax_mul(x, ax_full_like(x, 0.5)); }
static ax_value next(ax_value i) { return ax_add(i, integer(1)); }

/* --- One after another --- */

static void old_value_after(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = ax_tanh(in[0]), y = with_row(x, halved(row_of(x, integer(1))), integer(2));
  out[0] = ax_matmul(y, ax_transpose(x, AX_DIMS(1, 0)));
  out[1] = y;
}

static void both_results(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value row = row_of(in[0], integer(3));
  out[0] = with_row(in[0], row, integer(0));
  out[1] = with_row(out[0], halved(row), integer(1));
  out[2] = with_row(out[0], row, integer(5));
}

static void a_chain(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = in[0];
  for (int i = 0; i + 1 < ROWS; i++) x = with_row(x, ax_add(row_of(x, integer(i)), row_of(x, integer(i + 1))), integer(i + 1));
  out[0] = x;
}

static void in_a_branch(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = with_row(in[0], halved(row_of(in[0], integer(2))), integer(4));
}

static void in_no_branch(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[0];
}

static void branches(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = ax_tanh(in[0]), sum = ax_reduce_sum(x, AX_DIMS(0, 1), false);
  ax_value index = ax_convert_element_type(ax_gt(sum, number(0)), AX_S32);
  ax_switch(index, AX_FNS(AX_FN(in_a_branch, 1, 1), AX_FN(in_no_branch, 1, 1)), &x, out);
  out[1] = ax_add(out[0], x);
}

static void test_straight(void **state) {
  (void)state;
  check(old_value_after, NULL, &table, 1, 2);
  check(both_results, NULL, &table, 1, 3);
  check(a_chain, NULL, &table, 1, 1);
  check(branches, NULL, &table, 1, 2);
}

/* --- Carries --- */

static void step_row(const ax_value *in, ax_value *out, void *context) { /* i, x */
  (void)context;
  out[0] = next(in[0]);
  out[1] = with_row(in[1], ax_add(halved(row_of(in[1], in[0])), number(1)), in[0]);
}

static void step_old_read_after(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = next(in[0]);
  out[1] = with_row(in[1], halved(row_of(in[1], next(in[0]))), in[0]);
  out[2] = ax_add(row_of(in[1], in[0]), row_of(out[1], in[0])); /* stacked: the row's old and new value */
}

static void step_two_updates(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value once = with_row(in[1], halved(row_of(in[1], next(in[0]))), in[0]);
  out[0] = next(in[0]);
  out[1] = with_row(once, ax_add(row_of(once, in[0]), row_of(in[1], integer(2))), integer(2));
}

static void step_swap(const ax_value *in, ax_value *out, void *context) { /* i, x, y */
  (void)context;
  out[0] = next(in[0]);
  out[1] = with_row(in[2], halved(row_of(in[1], in[0])), in[0]);
  out[2] = with_row(in[1], row_of(in[2], in[0]), next(in[0]));
}

static void step_same_to_both(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = next(in[0]);
  out[1] = out[2] = with_row(in[1], halved(row_of(in[2], in[0])), in[0]);
}

static void step_inner(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value start[] = {integer(0), in[1]}, end[2];
  ax_scan(AX_FN(step_row, 2, 2), 2, 3, false, start, end);
  out[0] = next(in[0]);
  out[1] = with_row(end[1], row_of(in[1], in[0]), integer(5));
}

typedef struct repeated {
  ax_function step;
  uint32_t carries, ys;
  bool keeps; /* the start is read after the loop */
} repeated;

static void repeat(const ax_value *in, ax_value *out, void *context) {
  const repeated *r = context;
  ax_value start[3] = {integer(0), in[0], in[1]}, end[4];
  if (r->keeps) start[1] = ax_tanh(start[1]);
  ax_scan(AX_FN(r->step, 1 + r->carries, 1 + r->carries + r->ys), 1 + r->carries, ROWS - 1, false, start, end);
  for (uint32_t k = 0; k < r->carries + r->ys; k++) out[k] = end[1 + k];
  if (r->keeps) out[0] = ax_sub(out[0], start[1]);
}

static void test_carries(void **state) {
  (void)state;
  repeated cases[] = {{step_row, 1, 0, false},  {step_old_read_after, 1, 1, false}, {step_two_updates, 1, 0, false},
                      {step_swap, 2, 0, false}, {step_same_to_both, 2, 0, false},   {step_inner, 1, 0, false}};
  for (size_t i = 0; i < AX_COUNT(cases); i++)
    for (int keeps = 0; keeps < 2; keeps++) {
      cases[i].keeps = keeps != 0;
      check(repeat, &cases[i], (ax_type[]){table, table}, 2, cases[i].carries + cases[i].ys);
    }
}

static void more(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_and(ax_lt(in[0], integer(ROWS - 1)), ax_lt(ax_reduce_max(in[1], AX_DIMS(0, 1), false), number(100)));
}

static void while_more(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value start[] = {integer(0), in[0]}, end[2];
  ax_while(AX_FN(more, 2, 1), AX_FN(step_row, 2, 2), start, end);
  out[0] = end[1];
}

static void test_while(void **state) {
  (void)state;
  check(while_more, NULL, &table, 1, 1);
}

/* --- Other devices read, or wrote, what is overwritten --- */

static void step_shared(const ax_value *in, ax_value *out, void *context) { /* i, x the same everywhere, mine */
  (void)context;
  ax_value seen = ax_add(ax_matmul(in[2], in[1]), in[2]);
  out[0] = next(in[0]);
  out[1] = with_row(
      in[1], ax_psum(halved(ax_reshape(ax_slice(seen, AX_DIMS(0, 0), AX_DIMS(1, 4), NULL), AX_DIMS(1, 4))), "d"),
      in[0]);
  out[2] = ax_tanh(ax_add(seen, ax_pvary(row_of(out[1], in[0]), "d")));
}

static void shared_carry(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value start[] = {integer(0), in[0], in[1]}, end[3];
  ax_scan(AX_FN(step_shared, 3, 3), 3, 4, false, start, end);
  out[0] = end[1];
  out[1] = end[2];
}

/* The sum is written by all, its row by one of them. */
static void sum_updated(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value sum = ax_psum(in[1], "d");
  ax_value x = with_row(sum, ax_full(AX_F32, AX_DIMS(1, 4), 7), integer(1));
  out[0] = with_row(x, row_of(in[0], integer(2)), integer(3));
  out[1] = ax_add(in[1], ax_pvary(out[0], "d"));
}

static void step_sum_updated(const ax_value *in, ax_value *out, void *context) {
  sum_updated(in, out, context);
}

static void sums_updated(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_scan(AX_FN(step_sum_updated, 2, 2), 2, 3, false, in, out);
}

static void test_shared(void **state) {
  (void)state;
  const ax_type square[] = {TEST_TYPE(AX_F32, 4, 4), TEST_TYPE(AX_F32, 12, 4)};
  check(test_map_body, &(test_map){"d=3", {"", "d"}, {"", "d"}, .body = shared_carry}, square, 2, 2);
  check(test_map_body, &(test_map){"d=3", {"", "d"}, {"", "d"}, .body = sum_updated}, square, 2, 2);
  check(test_map_body, &(test_map){"d=3", {"", "d"}, {"", "d"}, .body = sums_updated}, square, 2, 2);
}

/* --- Derivatives and batches --- */

static void looked_up(const ax_value *in, ax_value *out, void *context) { /* rows of a table, one after another */
  (void)context;
  ax_value sum = number(0);
  const int at[] = {1, 4, 1, 2};
  for (int i = 0; i < 4; i++) {
    ax_value row = row_of(in[0], integer(at[i]));
    sum = ax_add(sum, ax_reduce_sum(ax_mul(row, ax_add(row, number(i))), AX_DIMS(0, 1), false));
  }
  out[0] = sum;
}

static void gradient(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_grad(AX_FN(looked_up, 1, 1), AX_FIRST(1), in, out);
}

static void look_up(const ax_value *in, ax_value *out, void *context) {
  (void)in;
  out[0] = row_of(*(const ax_value *)context, in[0]);
}

static void loss_of_many(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const int32_t at[] = {1, 4, 1, 2, 0, 1};
  const ax_type type = TEST_TYPE(AX_S32, 6);
  ax_value whole = in[0], rows, places = ax_constant(&type, at);
  ax_vmap(AX_CLOSURE(look_up, 1, 1, &whole), &places, &rows, NULL);
  out[0] = ax_reduce_sum(ax_mul(rows, ax_tanh(rows)), AX_ALL_DIMS, false);
}

static void gradient_of_many(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_grad(AX_FN(loss_of_many, 1, 1), AX_FIRST(1), in, out);
}

static void gradients_of_devices(const ax_value *in, ax_value *out, void *context) { /* the table is the same on all */
  ax_value mine = ax_pvary(in[0], "d");
  gradient_of_many(&mine, out, context);
  out[0] = ax_psum(ax_mul(out[0], ax_convert_element_type(next(ax_axis_index("d")), AX_F32)), "d");
}

static void loss_of_loop(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value start[] = {integer(0), in[0]}, end[2];
  ax_scan(AX_FN(step_row, 2, 2), 2, ROWS - 1, false, start, end);
  out[0] = ax_reduce_sum(ax_mul(end[1], ax_tanh(end[1])), AX_DIMS(0, 1), false);
}

static void gradient_of_loop(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_grad(AX_FN(loss_of_loop, 1, 1), AX_FIRST(1), in, out);
}

static void test_derivatives(void **state) {
  (void)state;
  check(gradient, NULL, &table, 1, 1);
  check(gradient_of_many, NULL, &table, 1, 1);
  check(test_map_body, &(test_map){"d=3", {""}, {""}, .body = gradients_of_devices}, &table, 1, 1);
  check(gradient_of_loop, NULL, &table, 1, 1);
}

/* --- A sum whose other operand another loop made, further down in its body than this one's has operations --- */

static void much_work(const ax_value *in, ax_value *out, void *context) {
  out[0] = ax_add(in[0], *(const ax_value *)context);
  for (int i = 0; i < 40; i++) out[0] = ax_mul(out[0], *(const ax_value *)context);
}

static void row_and_sum(const ax_value *in, ax_value *out, void *context) {
  const ax_value *of = context; /* the sum, zeros, a row */
  (void)in;
  out[0] = ax_add(of[0], with_row(of[1], of[2], integer(2)));
}

static void sum_of_another_loop(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value of[] = {in[0], ax_full_like(in[0], 0), row_of(in[0], integer(1))}, x = in[0];
  ax_scan(AX_CLOSURE(much_work, 1, 1, &x), 1, 4, false, &of[1], of);
  ax_scan(AX_CLOSURE(row_and_sum, 1, 1, of), 1, 3, false, in, out);
}

static void test_other_loops(void **state) {
  (void)state;
  check(sum_of_another_loop, NULL, &table, 1, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_straight),    cmocka_unit_test(test_carries),
                                     cmocka_unit_test(test_while),       cmocka_unit_test(test_shared),
                                     cmocka_unit_test(test_derivatives), cmocka_unit_test(test_other_loops)};
  return cmocka_run_group_tests_name("update", tests, NULL, NULL);
}
