/* What is made before a loop instead of in each step, what is not, and that results stay. */
#include "axle/collectives.h"
#include "axle/ops.h"
#include "plan/passes.h"
#include "support/cmocka.h"
#include "support/nest.h"
#include "support/run.h"

static ax_value product(ax_value a, ax_value b) { return ax_dot_general(a, b, AX_DIMS(1), AX_DIMS(1), AX_DIMS(), AX_DIMS()); }
static ax_value halved(ax_value x) { return ax_mul(x, ax_full_like(x, 0.5)); }

/* h, and w by the context: another matrix is made of w in each step. */
static void of_captured(const ax_value *in, ax_value *out, void *w) {
  out[0] = ax_sin(product(in[0], ax_sin(*(const ax_value *)w)));
}
static void product_of_captured(const ax_value *in, ax_value *out, void *w) {
  out[0] = ax_sin(product(in[0], product(*(const ax_value *)w, *(const ax_value *)w)));
}

/* The same of what a step changes, and of what lies in another place in each. */
static void of_carry(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_sin(product(in[0], ax_sin(in[1])));
  out[1] = halved(in[1]);
}
static void changed(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value made[2];
  ax_scan(AX_FN(of_carry, 2, 2), 2, 3, false, in, made);
  out[0] = made[0];
}

/* A result of each step, and the carry that the next one reads first. */
static void given_out(const ax_value *in, ax_value *out, void *w) {
  out[0] = ax_sin(product(in[0], *(const ax_value *)w));
  out[1] = ax_sin(*(const ax_value *)w);
}
static void results(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_scan(AX_CLOSURE(given_out, 1, 2, (void *)&in[1]), 1, 3, false, in, out);
}
static void late(const ax_value *in, ax_value *out, void *w) {
  out[0] = ax_sin(product(in[0], in[1]));
  out[1] = ax_sin(*(const ax_value *)w);
}
static void carried(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value made[2];
  ax_scan(AX_CLOSURE(late, 2, 2, (void *)&in[1]), 2, 3, false, in, made);
  out[0] = made[0];
}

/* Operations on the matrix w alone: how many stand outside of loops, in one, and in a loop in a loop. */
static void count(const ax_plan *plan, ax_block *block, uint32_t depth, uint32_t *found) {
  for (uint32_t i = 0; i < block->count; i++) {
    ax_op *op = &block->ops[i];
    const bool square = op->kind == AX_OP_GEMM && op->gemm->m == op->gemm->n;
    if (square || (op->kind == AX_OP_KERNEL && ax_dims_elems(op->kernel.kernel->rank, op->kernel.kernel->dims) == 33 * 33))
      found[depth]++;
    for (uint32_t k = 0; ax_op_block(op, k) != NULL; k++) count(plan, ax_op_block(op, k), depth + (op->kind == AX_OP_LOOP), found);
  }
}

static void expect(ax_function body, void *context, uint32_t outs, uint32_t inside, uint32_t outside) {
  const ax_type in[] = {TEST_TYPE(AX_F32, 16, 33), TEST_TYPE(AX_F32, 33, 33)};
  ax_program *program = test_trace(body, context, in, 2, outs);
  ax_plan *plan;
  uint32_t found[4] = {0};
  TEST_OK(ax_plan_create(program, NULL, NULL, NULL, &plan));
  TEST_OK(ax_plan_optimise(plan, "hoist", NULL));
  count(plan, &plan->block, 0, found);
  assert_int_equal(found[1], inside);
  assert_int_equal(found[0], outside);
  assert_int_equal(found[2], 0);
  ax_plan_destroy(plan);
  test_random_run(program, 3, false, 1e-4);
  ax_program_release(program);
}

static void expect_nest(test_nest nest, uint32_t inside, uint32_t outside) { expect(test_nested, &nest, 1, inside, outside); }

static void made_before(void **state) {
  (void)state;
  expect_nest((test_nest){of_captured, {{TEST_SCAN, 3}}}, 0, 1);
  expect_nest((test_nest){product_of_captured, {{TEST_SCAN, 3}}}, 0, 1);
  expect_nest((test_nest){of_captured, {{TEST_SCAN, 3}, {TEST_SCAN, 2}}}, 0, 1);
  expect_nest((test_nest){of_captured, {{TEST_WHILE, 0}}}, 0, 1);
  expect_nest((test_nest){of_captured, {{TEST_WHILE, 11}}}, 0, 1); /* that never goes round */
}

static void made_in_each_step(void **state) {
  (void)state;
  expect_nest((test_nest){of_captured, {{TEST_SCAN, 1}}}, 1, 0);
  expect(changed, NULL, 1, 2, 1);       /* outside: w, which the loop is given as a memory of its own */
  expect_nest((test_nest){of_captured, {{TEST_SCAN, 3}, {TEST_IF, 0}}}, 1, 0);
  expect(results, NULL, 2, 1, 1); /* inside: the copy that is given out */
  expect(carried, NULL, 1, 1, 1);
  expect_nest((test_nest){of_captured, {{TEST_EACH, 3}}}, 1, 0);
  expect_nest((test_nest){of_captured, {{TEST_EACH, 3}, {TEST_SCAN, 2}}}, 1, 0); /* of the outer loop */
}

/* --- Before fusion: what takes longer to do than to read --- */

static ax_value decay(ax_value w) { return ax_exp(ax_neg(w)); }
static ax_value mask(ax_value w) { return ax_add(w, ax_full_like(w, 1)); }
static ax_value rows_of_decay(ax_value w) { return ax_broadcast_in_dim(decay(ax_reduce_max(w, AX_DIMS(0), false)), AX_DIMS(33, 33), AX_DIMS(1)); }
static ax_value turned(ax_value w) { return ax_transpose(w, AX_DIMS(1, 0)); }
static ax_value rows_of_sum(ax_value w) { /* a long sum is no reason to keep what is made of it */
  const ax_value powers = ax_pow(ax_broadcast_in_dim(w, AX_DIMS(33, 33, 33), AX_DIMS(1, 2)), ax_full(AX_F32, AX_DIMS(33, 33, 33), 2));
  return ax_neg(ax_broadcast_in_dim(ax_reduce_sum(powers, AX_DIMS(0, 1), false), AX_DIMS(33, 33), AX_DIMS(1)));
}
static ax_value looked_up_along(ax_value w, uint32_t axis) {
  const ax_value at = ax_convert_element_type(ax_clamp(ax_real(0), ax_slice(w, AX_DIMS(0, 0), AX_DIMS(1, 33), AX_DIMS(1, 1)), ax_real(32)), AX_S32);
  return ax_take(w, ax_reshape(at, AX_DIMS(33)), axis);
}
static ax_value rows_looked_up(ax_value w) { return looked_up_along(w, 0); }
static ax_value looked_up(ax_value w) { return looked_up_along(w, 1); }

typedef ax_value made_of(ax_value w);
typedef struct step { /* h times what is made of w, which a loop does not change */
  made_of *make;
  const ax_value *w;
} step;
static void scaled(const ax_value *in, ax_value *out, void *context) {
  const step *s = context;
  out[0] = ax_mul(in[0], s->make(*s->w));
}
static void scales(const ax_value *in, ax_value *out, void *context) {
  step s = {*(made_of **)context, &in[1]};
  ax_scan(AX_CLOSURE(scaled, 1, 1, &s), 1, 3, false, in, out);
}

/* `outside`: kernels before the loop once all is fused, copies left out; inside is one. */
static void expect_scaled(made_of *make, uint32_t outside) {
  const ax_type in[] = {TEST_TYPE(AX_F32, 33, 33), TEST_TYPE(AX_F32, 33, 33)};
  ax_program *program = test_trace(scales, &make, in, 2, 1);
  ax_plan *plan;
  uint32_t before = 0, copies = 0, loops = 0;
  TEST_OK(ax_plan_create(program, NULL, NULL, NULL, &plan));
  TEST_OK(ax_plan_optimise(plan, "hoist", NULL));
  for (uint32_t i = 0; i < plan->block.count; i++) {
    const ax_op *op = &plan->block.ops[i];
    before += op->kind == AX_OP_KERNEL;
    copies += op->kind == AX_OP_KERNEL && op->kernel.kernel->expr_count == 1;
    loops += op->kind == AX_OP_LOOP;
    if (op->kind == AX_OP_LOOP) assert_int_equal(op->loop.body.count, 1);
  }
  assert_int_equal(loops, 1);
  assert_int_equal(before - copies, outside);
  ax_plan_destroy(plan);
  test_random_run(program, 3, false, 1e-4);
  ax_program_release(program);
}

static void what_takes_long_goes_alone(void **state) {
  (void)state;
  expect_scaled(decay, 1);
  expect_scaled(mask, 0);
  expect_scaled(turned, 0);
  expect_scaled(rows_of_decay, 2); /* the largest, and of 33 */
  expect_scaled(rows_of_sum, 1);
  expect_scaled(looked_up, 2);      /* where, and what stands there */
  expect_scaled(rows_looked_up, 1); /* where: a row is read where it stands */
}

static void devices(void **state) {
  (void)state;
  static const char *const w[] = {"_,_", "a,_", "b,_"};
  for (size_t i = 0; i < AX_COUNT(w); i++) {
    const ax_type in[] = {TEST_TYPE(AX_F32, 6 * 4, 33), TEST_TYPE(AX_F32, i == 0 ? 33 : i == 1 ? 66 : 99, 33)};
    test_map map = {.mesh = "a=2,b=3",
                    .in_specs = {"a+b,_", w[i]},
                    .out_specs = {"a+b,_"},
                    .body = test_nested,
                    .unchecked = true,
                    .context = &(test_nest){of_captured, {{TEST_SCAN, 3}}}};
    ax_program *program = test_trace_map(&map, in);
    test_random_run(program, 5, false, 1e-4);
    ax_program_release(program);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(made_before), cmocka_unit_test(made_in_each_step),
                                     cmocka_unit_test(what_takes_long_goes_alone), cmocka_unit_test(devices)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
