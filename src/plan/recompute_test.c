/* What is made again and what is kept, in programs of two parts with a long way between; and that the numbers stay as they are. */
#include <stdlib.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "plan/passes.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

enum { ROWS = 256, COLUMNS = 1024, STEPS = 40 }; /* a value is a MiB */

static ax_value number(double x) { return ax_full(AX_F32, AX_DIMS(), x); }

/* --- Programs --- */

/* Each step needs all of the one before it, so that they stay apart. */
static ax_value long_way(ax_value x) {
  for (int i = 0; i < STEPS; i++) {
    ax_value row = ax_reduce_sum(ax_mul(x, x), AX_DIMS(0), false);
    x = ax_add(x, ax_mul(number(1e-9), ax_broadcast_in_dim(row, AX_DIMS(ROWS, COLUMNS), AX_DIMS(1))));
  }
  return x;
}

/* What comes late: some values made early, and how they are used in the end. */
typedef struct part {
  uint32_t count;
  void (*early)(const ax_value *in, ax_value *made);
} part;

static ax_value late(const ax_value *made, uint32_t count, ax_value y) {
  for (uint32_t i = 0; i < count; i++) y = ax_add(ax_mul(y, number(0.5)), ax_mul(made[i], y));
  return y;
}

/* in: x, w [1024, 1024] */
static void both_parts(const ax_value *in, ax_value *out, void *context) {
  const part *p = context;
  ax_value made[8];
  p->early(in, made);
  out[1] = long_way(made[p->count - 1]);
  out[0] = late(made, p->count, out[1]);
}

/* The late part by itself, given what comes out of the first. */
static void late_part(const ax_value *in, ax_value *out, void *context) {
  const part *p = context;
  ax_value made[8];
  p->early(in, made);
  out[0] = late(made, p->count, in[2]);
}

static void of_arguments(const ax_value *in, ax_value *made) {
  made[0] = ax_tanh(in[0]);
  made[1] = ax_exp(made[0]);
  made[2] = ax_add(ax_mul(made[0], made[1]), in[0]);
}

/* Each by itself would not be worth a product that is not held anyway; all of them are. */
static void of_a_product(const ax_value *in, ax_value *made) {
  ax_value x = ax_matmul(in[0], in[1]);
  made[0] = ax_tanh(x);
  made[1] = ax_exp(x);
  made[2] = ax_mul(ax_add(x, number(1)), number(0.25));
}

/* The first is held: its product is not needed any more, and is as large. */
static void of_one_another(const ax_value *in, ax_value *made) {
  made[0] = ax_tanh(ax_matmul(in[0], in[1]));
  made[1] = ax_mul(made[0], made[0]);
  made[2] = ax_sub(number(1), made[1]);
}

static void products(const ax_value *in, ax_value *made) {
  made[0] = ax_matmul(in[0], in[1]);
  made[1] = ax_matmul(made[0], in[1]);
  made[2] = ax_tanh(ax_matmul(made[1], in[1]));
}

static void softmax(const ax_value *in, ax_value *made) {
  ax_value x = ax_matmul(in[0], in[1]), most = ax_expand_dims(ax_reduce_max(x, AX_DIMS(1), false), 1);
  made[0] = ax_exp(ax_sub(x, most));
  ax_value sum = ax_expand_dims(ax_reduce_sum(made[0], AX_DIMS(1), false), 1);
  made[1] = ax_div(made[0], sum);
  made[2] = ax_neg(ax_mul(made[1], made[1]));
}

/* --- How much is alive --- */

typedef struct living {
  const ax_plan *plan;
  uint32_t *first, *last; /* by allocation; operations from 1 */
  uint32_t now;
} living;

static void note(void *context, uint32_t buffer, bool writes) {
  living *l = context;
  uint32_t allocation = l->plan->buffers[buffer].allocation;
  (void)writes;
  if (l->first[allocation] == 0) l->first[allocation] = l->now;
  l->last[allocation] = l->now;
}

static void note_op(living *l, ax_op *op) {
  ax_op_visit(op, note, l);
  for (uint32_t k = 0; ax_op_block(op, k) != NULL; k++)
    for (uint32_t i = 0; i < ax_op_block(op, k)->count; i++) note_op(l, &ax_op_block(op, k)->ops[i]);
}

/* MiB of temporaries alive across the middle of the plan. */
static int64_t held(ax_program *program, bool fused) {
  ax_plan *plan = test_plan(program);
  bool found;
  TEST_OK(ax_plan_optimise(plan, fused ? "fuse" : "recompute", &found));
  assert_true(found);
  living l = {
      .plan = plan, .first = calloc(plan->buffer_count, sizeof(uint32_t)), .last = calloc(plan->buffer_count, sizeof(uint32_t))};
  assert_true(l.first != NULL && l.last != NULL);
  for (uint32_t i = 0; i < plan->block.count; i++) {
    l.now = i + 1;
    note_op(&l, &plan->block.ops[i]);
  }
  int64_t bytes = 0;
  uint32_t middle = plan->block.count / 2;
  for (uint32_t i = 0; i < plan->buffer_count; i++)
    if (plan->buffers[i].kind == AX_BUFFER_TEMP && l.first[i] > 0 && l.first[i] + 3 < middle && l.last[i] > middle + 3)
      bytes += ax_buffer_bytes(&plan->buffers[i]) * ax_axis_set_size(plan->buffers[i].axes, &plan->mesh);
  free(l.first);
  free(l.last);
  ax_plan_destroy(plan);
  return bytes >> 20;
}

/* --- Tests --- */

static void run(ax_function function, part *p, ax_tensor *const *in, uint32_t in_count, ax_tensor **out, uint32_t out_count) {
  const ax_type types[] = {TEST_TYPE(AX_F32, ROWS, COLUMNS), TEST_TYPE(AX_F32, COLUMNS, COLUMNS), TEST_TYPE(AX_F32, ROWS, COLUMNS)};
  ax_program *program = test_trace(function, p, types, in_count, out_count);
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  test_execute(runtime, program, in, out);
  ax_runtime_release(runtime);
  ax_program_release(program);
}

/* So many MiB are held on the way, and what comes out is what it is without a way between, bit for bit. */
static void expect(void (*early)(const ax_value *, ax_value *), int64_t mebibytes) {
  part p = {3, early};
  const ax_type types[] = {TEST_TYPE(AX_F32, ROWS, COLUMNS), TEST_TYPE(AX_F32, COLUMNS, COLUMNS)};
  test_random data = {1};
  ax_tensor *in[3], *out[2], *again;
  ax_program *program = test_trace(both_parts, &p, types, 2, 2);
  assert_int_equal(held(program, false), mebibytes);
  assert_int_equal(held(program, true), mebibytes);
  ax_program_release(program);
  in[0] = test_random_tensor(&data, types[0], -0.1, 0.1);
  in[1] = test_random_tensor(&data, types[1], -0.1, 0.1);
  run(both_parts, &p, in, 2, out, 2);
  in[2] = out[1];
  run(late_part, &p, in, 3, &again, 1);
  assert_memory_equal(again->data, out[0]->data, (size_t)test_elems(again) * sizeof(float));
  test_release(in, 2);
  test_release(out, 2);
  test_release(&again, 1);
}

static void bases(void **state) {
  (void)state;
  expect(of_arguments, 0);
  expect(of_a_product, 1);
  expect(of_one_another, 1);
  expect(products, 3);
  expect(softmax, 1);
}

/* A value that is the same on two devices is made again on both; one that is the same on eight is held. */
static void on_devices(const ax_value *in, ax_value *out, void *context) {
  const char *axis = context;
  ax_value t = ax_tanh(in[0]), y = long_way(ax_mul(t, ax_pvary(in[1], axis)));
  out[0] = ax_add(ax_mul(t, y), y);
}

static void devices(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, ROWS, COLUMNS), TEST_TYPE(AX_F32, 2 * ROWS, COLUMNS)};
  const ax_type more[] = {types[0], TEST_TYPE(AX_F32, 8 * ROWS, COLUMNS)};
  ax_program *two =
      test_trace_map(&(test_map){"d=2", {"", "d"}, {"d"}, .unchecked = true, .body = on_devices, .context = "d"}, types);
  ax_program *eight =
      test_trace_map(&(test_map){"d=8", {"", "d"}, {"d"}, .unchecked = true, .body = on_devices, .context = "d"}, more);
  assert_int_equal(held(two, true), 0);
  assert_int_equal(held(eight, true), 1);
  ax_program_release(two);
  ax_program_release(eight);
}

/* Zeros around a late part are filled in late. */
static void padded(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value y = long_way(in[0]), row = ax_slice(y, AX_DIMS(0, 0), AX_DIMS(1, COLUMNS), NULL);
  out[0] =
      ax_matmul(ax_pad(row, number(0), AX_DIMS(7, 0), AX_DIMS(ROWS - 8, 0), AX_DIMS(0, 0)), in[1]);
}

static void fills(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, ROWS, COLUMNS), TEST_TYPE(AX_F32, COLUMNS, COLUMNS)};
  ax_program *program = test_trace(padded, NULL, types, 2, 1);
  assert_int_equal(held(program, false), 0);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bases), cmocka_unit_test(devices), cmocka_unit_test(fills)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
