/* Carries that change places: loops of any length come to what they came to with copies, under every policy, and have no copies. */
#include "axle/collectives.h"
#include "axle/ops.h"
#include "plan/passes.h"
#include "support/cmocka.h"
#include "support/run.h"

typedef struct loop {
  ax_function body;
  uint32_t carries, results; /* results: of the body */
  int64_t length;
  bool reverse;
} loop;

static const int64_t ring[][2] = {{0, 1}, {1, 2}, {2, 3}, {3, 0}}, line[][2] = {{0, 1}, {2, 3}};
static ax_value number(double x) { return ax_full(AX_F32, AX_DIMS(), x); }

static void all_to_all(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_all_to_all(in[0], "d", 0, 0, true);
}
static void around(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_ppermute(in[0], "d", 4, ring);
}
static void with_zeros(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(ax_ppermute(in[0], "d", 2, line), ax_mul(in[0], number(0.5)));
  out[1] = ax_ppermute(in[1], "d", 2, line);
}
/* Read at other places than it is written. */
static void turned(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = ax_transpose(ax_reshape(in[0], AX_DIMS(2, 4)), AX_DIMS(1, 0));
  out[0] = ax_tanh(ax_reshape(x, AX_DIMS(8)));
}
/* Two exchanges in a step: the second one's result is made in the carry's place, since all that are to write there have seen that it has
   been read. */
static void twice(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = ax_all_to_all(ax_mul(in[0], number(0.5)), "d", 0, 0, true);
  out[0] = ax_all_to_all(ax_sin(x), "d", 0, 0, true);
}
static ax_value gathered(ax_value x) { /* of each device something else */
  ax_value own = ax_convert_element_type(ax_add(ax_axis_index("d"), ax_integer(1)), AX_F32);
  return ax_all_gather(ax_sin(ax_mul(ax_slice_in_dim(x, 1, 3, 1, 0), own)), "d", 0, true);
}
static void gathered_twice(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = gathered(gathered(in[0]));
}
/* The same, but the carry is read beside the first, or behind it; and by a device that the first does not ask. */
static void twice_read_late(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = ax_all_to_all(ax_mul(in[0], number(0.5)), "d", 0, 0, true);
  out[0] = ax_all_to_all(ax_add(ax_sin(x), ax_rev(in[0], AX_DIMS(0))), "d", 0, 0, true);
}
static void twice_across(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = ax_all_to_all(ax_mul(in[0], number(0.5)), "e", 0, 0, true);
  out[0] = ax_all_to_all(ax_sin(x), "d", 0, 0, true);
}
static void twice_after_all(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = ax_all_to_all(ax_mul(in[0], number(0.5)), "d,e", 0, 0, true);
  out[0] = ax_all_to_all(ax_sin(x), "d", 0, 0, true);
}
static void twice_in_pairs(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = ax_ppermute(ax_mul(in[0], number(0.5)), "d", 4, ring);
  out[0] = ax_all_to_all(ax_sin(x), "d", 0, 0, true);
}

/* Two that change places among themselves, and one that is added up where it is. */
static void mixed(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_all_to_all(in[1], "d", 0, 0, true);
  out[1] = ax_ppermute(in[0], "d", 4, ring);
  out[2] = ax_add(in[2], ax_mul(ax_psum(in[0], "d"), number(0.1)));
}
/* With xs and ys. */
static void over_rows(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_all_to_all(ax_add(in[0], in[1]), "d", 0, 0, true);
  out[1] = ax_ppermute(in[0], "d", 4, ring);
  out[2] = ax_sub(ax_ppermute(in[1], "d", 4, ring), in[0]);
}
/* The carry is read beside the exchange that makes the next. */
static void read_beside(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_ppermute(in[0], "d", 4, ring);
  out[1] = ax_add(in[1], ax_sin(in[0]));
}

static void looped(const ax_value *in, ax_value *out, void *context) {
  const loop *l = context;
  const ax_value operands[] = {in[0], ax_sin(in[0]), ax_cos(in[0])};
  ax_scan(AX_FN(l->body, l->carries, l->results), l->carries, l->length, l->reverse, operands, out);
}
static void looped_over_rows(const ax_value *in, ax_value *out, void *context) {
  const loop *l = context;
  const ax_value operands[] = {ax_reduce_max(in[0], AX_DIMS(0), false), in[0]};
  ax_scan(AX_FN(over_rows, 2, 3), 1, l->length, l->reverse, operands, out);
}
static void nested(const ax_value *in, ax_value *out, void *context) {
  ax_scan(AX_CLOSURE(looped, 1, 1, context), 1, 3, false, in, out);
}

/* What the last step has the other devices write into the second carry is read by nobody before it has its first value again. */
static AX_BODY(passed_on) {
  (void)context;
  out[0] = in[0];
  out[1] = ax_ppermute(in[0], "d", 4, ring);
  out[2] = in[1];
}
static AX_BODY(steps) {
  const loop *l = context;
  ax_value to[3];
  ax_scan(AX_CLOSURE(passed_on, 2, 3, NULL), 2, l->length, false, in, to);
  out[0] = in[0];
  out[1] = in[1];
  out[2] = to[2];
}
static void overwritten(const ax_value *in, ax_value *out, void *context) {
  const ax_value operands[] = {in[0], ax_sin(in[0])};
  ax_value to[3];
  ax_scan(AX_CLOSURE(steps, 2, 3, context), 2, 4, false, operands, to);
  out[0] = to[2];
}

/* Of all loops: copies in their bodies, and trips. */
typedef struct counted {
  uint32_t copies;
  int64_t trips;
} counted;

static void count(void *context, ax_op *op) {
  counted *c = context;
  if (op->kind != AX_OP_LOOP) return;
  c->trips += op->loop.trips;
  for (uint32_t i = 0; i < op->loop.body.count; i++) {
    uint32_t to, from;
    c->copies += ax_op_copies_all(&op->loop.body.ops[i], &to, &from);
  }
}

static void expect(const test_map *map, const ax_type *in, uint32_t copies, int64_t trips) {
  ax_program *program = test_trace_map(map, in);
  ax_plan *plan = test_plan(program);
  counted c = {0};
  TEST_OK(ax_plan_optimise(plan, "alternate", NULL));
  ax_block_walk(&plan->block, count, &c);
  assert_int_equal(c.copies, copies);
  assert_int_equal(c.trips, trips);
  ax_plan_destroy(plan);
  test_random_run(program, 5, false, 1e-5);
  ax_program_release(program);
}

static void expect_loop(ax_function body, uint32_t carries, int64_t length, uint32_t copies, int64_t trips) {
  loop l = {body, carries, carries, length, false};
  const ax_type type = TEST_TYPE(AX_F32, 4 * 8);
  expect(&(test_map){"d=4", {"d"}, {"d", carries > 1 ? "d" : NULL, carries > 2 ? "d" : NULL}, .body = looped, .context = &l}, &type,
         copies, trips);
}

static void exchanges(void **state) {
  (void)state;
  for (int64_t n = 2; n < 6; n++) {
    expect_loop(all_to_all, 1, n, 0, n / 2);
    expect_loop(around, 1, n, 0, n / 2);
    expect_loop(read_beside, 2, n, 0, n / 2);
  }
  expect_loop(all_to_all, 1, 1, 1, 1);
  expect_loop(with_zeros, 2, 5, 0, 2);
  expect_loop(mixed, 3, 5, 0, 5); /* fusion has made one kernel of the copies and the addition */
}

/* In another loop, where nobody reads the inner loop's carry behind it: what is put there last must not meet its next first value. */
static AX_BODY(twice_beside_a_sum) {
  (void)context;
  ax_value x = ax_tanh(in[0]);
  out[1] = ax_add(in[1], in[0]);
  out[0] = ax_all_to_all(ax_sin(ax_all_to_all(x, "d", 0, 0, true)), "d", 0, 0, true);
}
static AX_BODY(of_sums) {
  const ax_value operands[] = {in[0], ax_cos(in[0])};
  ax_value to[2];
  ax_scan(AX_CLOSURE(twice_beside_a_sum, 2, 2, context), 2, 3, false, operands, to);
  out[0] = ax_tanh(to[1]);
}
static void sums_in_a_loop(const ax_value *in, ax_value *out, void *context) {
  ax_scan(AX_CLOSURE(of_sums, 1, 1, context), 1, 6, false, in, out);
}

static void two_in_a_step_of_an_inner_loop(void **state) {
  const ax_type type = TEST_TYPE(AX_F32, 4 * 4096);
  (void)state;
  expect(&(test_map){"d=4", {"d"}, {"d"}, .body = sums_in_a_loop}, &type, 1, 6 + 1);
}

static void expect_on_grid(ax_function body, int64_t length, uint32_t copies, int64_t trips) {
  loop l = {body, 1, 1, length, false};
  const ax_type type = TEST_TYPE(AX_F32, 4 * 8);
  expect(&(test_map){"d=2,e=2", {"d+e"}, {"d+e"}, .body = looped, .context = &l}, &type, copies, trips);
}

static void two_in_a_step(void **state) {
  (void)state;
  for (int64_t n = 2; n < 6; n++) {
    expect_loop(twice, 1, n, 0, n);
    expect_loop(gathered_twice, 1, n, 0, n - 1); /* the first step comes before: each device has its own carry there */
    expect_loop(twice_read_late, 1, n, 0, n / 2);
    expect_loop(twice_in_pairs, 1, n, 0, n / 2);
    expect_on_grid(twice_across, n, 0, n / 2);
    expect_on_grid(twice_after_all, n, 0, n);
  }
}

static void kernels(void **state) {
  (void)state;
  expect_loop(turned, 1, 4, 0, 2);
  expect_loop(turned, 1, 5, 0, 2);
}

static void rows(void **state) {
  (void)state;
  for (int64_t n = 2; n < 6; n++)
    for (int reverse = 0; reverse < 2; reverse++) {
      loop l = {.length = n, .reverse = reverse};
      const ax_type type = TEST_TYPE(AX_F32, n, 4 * 8);
      expect(&(test_map){"d=4", {"_,d"}, {"d", "_,d", "_,d"}, .body = looped_over_rows, .context = &l}, &type, 0, n / 2);
    }
}

static void loops_in_loops(void **state) {
  (void)state;
  for (int64_t n = 2; n < 4; n++) {
    loop l = {around, 1, 1, n, false};
    const ax_type type = TEST_TYPE(AX_F32, 4 * 8);
    expect(&(test_map){"d=4", {"d"}, {"d"}, .body = nested, .context = &l}, &type, 2 + n % 2,
           3 + n / 2); /* the outer loop's, with the odd step */
  }
}

/* Two steps keep their copies in another loop, three do without. */
static void overwritten_without_a_read(void **state) {
  const ax_type type = TEST_TYPE(AX_F32, 4 * 8);
  (void)state;
  for (int64_t n = 2; n < 4; n++) {
    loop l = {.length = n};
    expect(&(test_map){"d=4", {"d"}, {"_,_,d"}, .body = overwritten, .context = &l}, &type, n == 2 ? 4 : 6, n == 2 ? 2 + 4 : 1 + 4);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(exchanges), cmocka_unit_test(two_in_a_step),
                                     cmocka_unit_test(two_in_a_step_of_an_inner_loop), cmocka_unit_test(kernels), cmocka_unit_test(rows),
                                     cmocka_unit_test(loops_in_loops), cmocka_unit_test(overwritten_without_a_read)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
