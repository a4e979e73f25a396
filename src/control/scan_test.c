/* A scan whose carries differ between devices only before its first step: that step stands before the loop, and what is then the
   same everywhere is stored once, and combined by one device alone. */
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "control/scan.h"
#include "prim/prims.h"
#include "support/cmocka.h"
#include "support/run.h"

typedef struct loop {
  ax_function body;
  uint32_t carries, results;
  int64_t length;
  bool reverse;
} loop;

static ax_value number(double x) { return ax_full(AX_F32, AX_DIMS(), x); }

static void mean(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_pmean(in[0], "a,b");
}

/* After one step the first carry differs along a alone, and the other still along both. */
static void one_after_the_other(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(ax_psum(in[1], "b"), number(0.3));
  out[1] = ax_sub(ax_pmax(ax_mul(in[0], number(0.7)), "a"), ax_mul(in[1], number(0.2)));
  out[2] = ax_tanh(out[0]);
}

static void exchanged(const ax_value *in, ax_value *out, void *context) {
  const int64_t first = 0;
  (void)context;
  ax_value all = ax_all_gather(ax_pmin(in[0], "b"), "b", 0, false); /* of what is the same along b */
  out[0] =
      ax_mul(ax_reduce_sum(ax_all_gather(ax_pbroadcast(in[0], "a", 1), "b", 0, false), AX_LIST(1, &first), false), number(0.3));
  out[1] = ax_sub(ax_pbroadcast(ax_psum(in[1], "a,b"), "a", 1), ax_reduce_max(all, AX_LIST(1, &first), false));
  out[2] = ax_convert_element_type(ax_psum(ax_psum(ax_convert_element_type(in[2], AX_BF16), "a"), "a"), AX_F32);
}

/* The first carry differs before the second step as well, as it takes over what the other was; the other one does not any more. */
static void swapped(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[1];
  out[1] = ax_mul(ax_psum(in[0], "a,b"), number(0.15));
  out[2] = in[0];
}

static void never_the_same(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(ax_psum(in[0], "a"), ax_mul(in[0], number(0.1)));
}

static void on_device(const ax_value *in, ax_value *out, void *context) {
  const loop *l = context;
  const ax_value operands[] = {in[0], ax_sin(in[0]), ax_cos(in[0])};
  ax_scan(AX_FN(l->body, l->carries, l->results), l->carries, l->length, l->reverse, operands, out);
}

/* xs that differ between devices, and ys that do so in the first step alone. */
static void folded(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(ax_psum(ax_add(in[0], in[1]), "a,b"), number(0.15));
  out[1] = ax_tanh(in[0]);
}
static void over_rows(const ax_value *in, ax_value *out, void *context) {
  const loop *l = context;
  ax_value operands[] = {ax_reduce_max(in[0], AX_DIMS(0), false), in[0]};
  ax_scan(AX_FN(folded, 2, 2), 1, l->length, l->reverse, operands, out);
}

/* Trips of the first loop, and whether it has an operation of all devices in it. */
static int64_t find_loop(const ax_plan *plan, bool *alone) {
  for (uint32_t i = 0; i < plan->block.count; i++) {
    const ax_op *op = &plan->block.ops[i];
    if (op->kind != AX_OP_LOOP) continue;
    *alone = true;
    for (uint32_t k = 0; k < op->loop.body.count; k++) *alone = *alone && op->loop.body.ops[k].axes == 0;
    return op->loop.trips;
  }
  return -1;
}

/* The loop goes round `trips` times; `alone`: all of it is done by one device. */
static void expect(const test_map *map, const ax_type *in, int64_t trips, bool alone) {
  ax_program *program = test_trace_map(map, in);
  ax_plan *plan = test_plan(program);
  bool is_alone;
  assert_int_equal(find_loop(plan, &is_alone), trips);
  assert_int_equal(is_alone, alone);
  ax_plan_destroy(plan);
  test_random_run(program, 7, false, 1e-5);
  ax_program_release(program);
}

static void expect_steps(const loop *l, int64_t trips, bool alone) {
  const ax_type type = TEST_TYPE(AX_F32, 6 * 5);
  for (int unchecked = 0; unchecked < 2; unchecked++) {
    test_map map = {.mesh = "a=2,b=3", .in_specs = {"a+b"}, .body = on_device, .unchecked = unchecked, .context = (void *)l};
    for (uint32_t k = 0; k < l->results; k++) map.out_specs[k] = k < l->carries ? "a+b" : "_,a+b";
    expect(&map, &type, trips, alone);
  }
}

static void first_step(void **state) {
  (void)state;
  expect_steps(&(loop){mean, 1, 1, 4, false}, 3, true);
  expect_steps(&(loop){swapped, 2, 3, 2, false}, 1, false);
  expect_steps(&(loop){swapped, 2, 3, 5, false}, 4, false);
  expect_steps(&(loop){one_after_the_other, 2, 3, 5, false}, 4, false);
  expect_steps(&(loop){exchanged, 3, 3, 4, false}, 3, false);
  expect_steps(&(loop){never_the_same, 1, 1, 4, false}, 4, false);
}

static void short_loops(void **state) {
  (void)state;
  expect_steps(&(loop){mean, 1, 1, 2, false}, 1, true);
  expect_steps(&(loop){mean, 1, 1, 1, false}, 1, false);
  expect_steps(&(loop){mean, 1, 1, 0, false}, 0, false);
}

static void stacked(void **state) {
  (void)state;
  for (int reverse = 0; reverse < 2; reverse++) {
    loop l = {NULL, 0, 0, 4, reverse};
    const ax_type type = TEST_TYPE(AX_F32, 4, 6 * 5);
    expect(&(test_map){"a=2,b=3", {"_,a+b"}, {"a+b", "_,a+b"}, .body = over_rows, .context = &l}, &type, 3, false);
  }
}

static void number_alone(const ax_value *in, ax_value *out, void *context) {
  (void)in, (void)context;
  out[0] = number(2);
}

/* Equal parameters have equal bytes once they are an equation's, whatever lay between them. */
static void parameters_without_gaps(void **state) {
  (void)state;
  ax_program *body = test_trace(number_alone, NULL, NULL, 0, 1);
  ax_arena arena = {0};
  ax_scan_params given[2];
  const void *copies[2];
  for (int i = 0; i < 2; i++) {
    memset(&given[i], i == 0 ? 0 : 0xff, sizeof given[i]);
    given[i].length = 3, given[i].reverse = true, given[i].num_consts = 1, given[i].num_carry = 2, given[i].body = body;
    TEST_OK(ax_params_copy(&arena, &ax_prim_scan, &given[i], &copies[i]));
  }
  assert_memory_equal(copies[0], copies[1], sizeof given[0]);
  for (int i = 0; i < 2; i++) ax_params_release(&ax_prim_scan, copies[i]);
  ax_program_release(body);
  ax_arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(parameters_without_gaps), cmocka_unit_test(first_step), cmocka_unit_test(short_loops), cmocka_unit_test(stacked)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
