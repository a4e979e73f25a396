/* Sums that would read an operand across its rows: what is turned for them, and what is not. All give what they gave. */
#include "axle/collectives.h"
#include "axle/ops.h"
#include "plan/passes.h"
#include "support/cmocka.h"
#include "support/run.h"

/* x and y as pairs: x[.., i, d] and y[.., j, d] at [.., i, j, d]. */
static void pairs_of(ax_value x, ax_value y, ax_value *a, ax_value *b) {
  const ax_type tx = ax_typeof(x), ty = ax_typeof(y);
  if (tx.rank == 2) {
    const int64_t dims[] = {tx.dims[0], ty.dims[0], tx.dims[1]};
    *a = ax_broadcast_in_dim(x, AX_LIST(3, dims), AX_DIMS(0, 2)), *b = ax_broadcast_in_dim(y, AX_LIST(3, dims), AX_DIMS(1, 2));
  } else {
    const int64_t dims[] = {tx.dims[0], tx.dims[1], ty.dims[1], tx.dims[2]};
    *a = ax_broadcast_in_dim(x, AX_LIST(4, dims), AX_DIMS(0, 1, 3)), *b = ax_broadcast_in_dim(y, AX_LIST(4, dims), AX_DIMS(0, 2, 3));
  }
}

static ax_value last(ax_value x, bool largest) {
  const int64_t d = ax_typeof(x).rank - 1;
  return largest ? ax_reduce_max(x, AX_DIMS(d), false) : ax_reduce_sum(x, AX_DIMS(d), false);
}

static ax_value distances(ax_value x, ax_value y, bool largest) {
  ax_value a, b;
  pairs_of(x, y, &a, &b);
  return last(ax_abs(ax_sub(a, b)), largest);
}

static AX_BODY(sums) { out[0] = distances(in[0], in[1], false); }
static AX_BODY(extremes) { out[0] = distances(in[0], in[1], true); }
static AX_BODY(of_two) { /* both y and y y are read across */
  ax_value a, b, c;
  pairs_of(in[0], in[1], &a, &b);
  pairs_of(in[0], in[2], &a, &c);
  out[0] = last(ax_add(ax_mul(ax_sub(a, b), c), b), false);
}
static AX_BODY(of_a_part) {
  const ax_type t = ax_typeof(in[1]);
  out[0] = distances(ax_slice(in[0], AX_DIMS(0, 1), AX_DIMS(ax_typeof(in[0]).dims[0], 7), NULL),
                     ax_slice(in[1], AX_DIMS(3, 1), AX_DIMS(t.dims[0] - 2, 7), NULL), false);
}
static AX_BODY(backwards) { out[0] = distances(in[0], ax_rev(in[1], AX_DIMS(0)), false); }

/* Points that move by what they are far from, in each step; and points that stay. */
static AX_BODY(step) {
  const ax_value far = distances(in[1], in[2], false);
  out[0] = ax_add(in[1], ax_broadcast_in_dim(ax_reduce_max(far, AX_DIMS(1), false), AX_DIMS(40, 8), AX_DIMS(0)));
  out[1] = in[2];
}
static AX_BODY(in_a_loop) {
  ax_value made[2];
  ax_fori_loop(ax_full_i64(AX_S32, AX_DIMS(), 0), ax_full_i64(AX_S32, AX_DIMS(), 3), AX_FN(step, 3, 2), in, made);
  out[0] = made[0];
}

static AX_BODY(both_move_step) {
  const ax_value far = distances(in[1], in[2], false);
  out[0] = ax_add(in[1], ax_broadcast_in_dim(ax_reduce_max(far, AX_DIMS(1), false), AX_DIMS(40, 8), AX_DIMS(0)));
  out[1] = ax_sub(in[2], ax_broadcast_in_dim(ax_reduce_max(far, AX_DIMS(0), false), AX_DIMS(50, 8), AX_DIMS(0)));
}
static AX_BODY(both_move) {
  ax_value made[2];
  ax_fori_loop(ax_full_i64(AX_S32, AX_DIMS(), 0), ax_full_i64(AX_S32, AX_DIMS(), 3), AX_FN(both_move_step, 3, 2), in, made);
  out[0] = ax_add(ax_reduce_sum(made[0], AX_ALL_DIMS, false), ax_reduce_sum(made[1], AX_ALL_DIMS, false));
}

/* Kernels that read one operand, soon after one another, share its copy; not if so many operations are between that it would lie long, */
static AX_BODY(of_one) {
  const ax_value far = distances(in[0], in[1], false);
  out[0] = ax_add(ax_reduce_max(far, AX_DIMS(1), false),
                  ax_reduce_max(distances(ax_mul(in[0], ax_real(3)), in[1], true), AX_DIMS(1), false));
}
static AX_BODY(of_one_late) {
  ax_value x = in[0];
  const ax_value far = distances(x, in[1], false);
  for (int i = 0; i < 70; i++) x = ax_sort(ax_rev(x, AX_DIMS(i % 2)), 0);
  out[0] = ax_add(ax_reduce_max(far, AX_DIMS(1), false), ax_reduce_max(distances(x, in[1], false), AX_DIMS(1), false));
}
/* nor if it is written meanwhile. */
static AX_BODY(of_one_changed) {
  const ax_value y = ax_mul(in[1], ax_real(2)), far = distances(in[0], y, false);
  const ax_value row = ax_reshape(ax_slice(far, AX_DIMS(0, 0), AX_DIMS(1, 8), NULL), AX_DIMS(1, 8));
  const ax_value changed = ax_dynamic_update_slice_in_dim(y, row, ax_full(AX_S32, AX_DIMS(), 3), 0);
  out[0] = ax_add(ax_reduce_max(far, AX_DIMS(1), false), ax_reduce_max(distances(in[0], changed, false), AX_DIMS(1), false));
}

static uint32_t kernels_in(ax_block *block) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < block->count; i++) {
    count += block->ops[i].kind == AX_OP_KERNEL;
    for (uint32_t k = 0; ax_op_block(&block->ops[i], k) != NULL; k++) count += kernels_in(ax_op_block(&block->ops[i], k));
  }
  return count;
}

static uint32_t kernels_after(const ax_program *program, const char *pass) {
  ax_plan *plan;
  TEST_OK(test_make_plan(program, &plan));
  TEST_OK(ax_plan_optimise(plan, pass, NULL));
  const uint32_t count = kernels_in(&plan->block);
  ax_plan_destroy(plan);
  return count;
}

/* The pass turns so many operands. Sums are of small whole numbers, and so the same in any order. */
static void expect(ax_fn function, const ax_type *in, uint32_t in_count, uint32_t turned) {
  ax_program *program;
  ax_tensor *tensors[3];
  TEST_OK((ax_trace)(function, in_count, in, &program));
  assert_int_equal(kernels_after(program, "turn") - kernels_after(program, "maps"), turned);
  for (uint32_t k = 0; k < in_count; k++) {
    TEST_OK(ax_tensor_create(&in[k], &tensors[k]));
    for (int64_t i = 0; i < ax_type_elems(&in[k]); i++) test_set(tensors[k], i, (double)((i * 7 + i / 11 + k) % 13));
  }
  (void)test_as_reference(program, tensors, true);
  for (uint32_t k = 0; k < in_count; k++) ax_tensor_release(tensors[k]);
  ax_program_release(program);
}

static void all_pairs(void **state) {
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_BF16, AX_S32, AX_S8};
  static const int64_t terms[] = {1, 2, 3, 8, 17, 64};
  (void)state;
  for (size_t d = 0; d < AX_COUNT(dtypes); d++)
    for (size_t t = 0; t < AX_COUNT(terms); t++) {
      const ax_type in[] = {TEST_TYPE(dtypes[d], 70, terms[t]), TEST_TYPE(dtypes[d], 61, terms[t])};
      const uint32_t turned = terms[t] > 1; /* of one term there is nothing to add up */
      expect(AX_FN(sums, 2, 1), in, 2, turned);
      expect(AX_FN(extremes, 2, 1), in, 2, turned);
    }
  const ax_type batches[] = {TEST_TYPE(AX_F32, 5, 20, 8), TEST_TYPE(AX_F32, 5, 33, 8)}, three[] = {TEST_TYPE(AX_F32, 40, 8), TEST_TYPE(AX_F32, 50, 8), TEST_TYPE(AX_F32, 50, 8)};
  expect(AX_FN(sums, 2, 1), batches, 2, 1);
  expect(AX_FN(of_two, 3, 1), three, 3, 2);
  expect(AX_FN(of_a_part, 2, 1), three, 2, 1);
}

static void what_stays(void **state) {
  (void)state;
  const ax_type seldom[] = {TEST_TYPE(AX_F32, 7, 8), TEST_TYPE(AX_F32, 1000, 8)}, little[] = {TEST_TYPE(AX_F32, 9, 8), TEST_TYPE(AX_F32, 20, 8)},
                many[] = {TEST_TYPE(AX_F32, 40, 65), TEST_TYPE(AX_F32, 50, 65)}, few[] = {TEST_TYPE(AX_F32, 400, 8), TEST_TYPE(AX_F32, 7, 8)},
                plain[] = {TEST_TYPE(AX_F32, 40, 8), TEST_TYPE(AX_F32, 50, 8)};
  expect(AX_FN(sums, 2, 1), seldom, 2, 0);
  expect(AX_FN(sums, 2, 1), little, 2, 0);
  expect(AX_FN(sums, 2, 1), many, 2, 0);
  expect(AX_FN(sums, 2, 1), few, 2, 0);
  expect(AX_FN(backwards, 2, 1), plain, 2, 0);
}

static void in_loops(void **state) {
  (void)state;
  const ax_type moving[] = {TEST_TYPE(AX_F32, 40, 8), TEST_TYPE(AX_F32, 50, 8)};
  expect(AX_FN(in_a_loop, 2, 1), moving, 2, 1);
  expect(AX_FN(both_move, 2, 1), moving, 2, 1);
}

static void copies_are_shared(void **state) {
  (void)state;
  const ax_type in[] = {TEST_TYPE(AX_F32, 40, 8), TEST_TYPE(AX_F32, 50, 8)};
  expect(AX_FN(of_one, 2, 1), in, 2, 1);
  expect(AX_FN(of_one_late, 2, 1), in, 2, 2);
  expect(AX_FN(of_one_changed, 2, 1), in, 2, 2);
}

/* A copy of what devices exchange stands behind the end of the exchange, so that what is computed meanwhile does not wait. */
static AX_BODY(of_gathered) {
  const ax_value all = ax_all_gather(in[1], "d", 0, true), made = ax_tanh(ax_matmul(in[2], in[2]));
  out[0] = ax_add(ax_reduce_max(distances(in[0], all, false), AX_DIMS(1), false), ax_reduce_max(made, AX_ALL_DIMS, false));
}

static bool touches(const ax_plan *plan, const ax_op *op, uint32_t buffer) {
  for (uint32_t k = 0; op->kind == AX_OP_KERNEL && k < op->kernel.kernel->slot_count; k++)
    if (plan->buffers[op->kernel.buffers[k]].allocation == plan->buffers[buffer].allocation) return true;
  return false;
}

static void copies_wait_for_exchanges_alone(void **state) {
  (void)state;
  const test_map map = {.mesh = "d=2", .in_specs = {"d", "d", "d"}, .out_specs = {"d"}, .body = of_gathered, .unchecked = true};
  const ax_type in[] = {TEST_TYPE(AX_F32, 80, 8), TEST_TYPE(AX_F32, 50, 8), TEST_TYPE(AX_F32, 64, 32)};
  ax_program *program = test_trace_map(&map, in);
  ax_plan *plan;
  TEST_OK(test_make_plan(program, &plan));
  TEST_OK(ax_plan_optimise(plan, "turn", NULL));
  const ax_exchange *under_way = NULL, *done = NULL;
  uint32_t readers = 0;
  for (uint32_t i = 0; i < plan->block.count; i++) {
    const ax_op *op = &plan->block.ops[i];
    if (op->kind == AX_OP_START) under_way = op->exchange;
    if (op->kind == AX_OP_DONE) done = op->exchange, under_way = NULL;
    assert_false(under_way != NULL && touches(plan, op, under_way->out));
    readers += done != NULL && touches(plan, op, done->out);
  }
  assert_true(readers > 0);
  ax_plan_destroy(plan);
  test_random_run(program, 3, false, 1e-5);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_pairs), cmocka_unit_test(copies_are_shared),
                                     cmocka_unit_test(copies_wait_for_exchanges_alone), cmocka_unit_test(what_stays),
                                     cmocka_unit_test(in_loops)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
