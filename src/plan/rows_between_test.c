/* What moves before a group of rows and what stays, on plans of three kernels. */
#include "axle/ops.h"
#include "plan/passes.h"
#include "plan/rows_between.h"
#include "plan/rows_blocks.h"
#include "support/cmocka.h"
#include "support/tensor.h"

enum { first, other, last, ops };

static AX_BODY(last_needs_other) {
  out[1] = ax_sin(in[1]);
  out[0] = ax_mul(ax_exp(in[0]), out[1]);
  (void)context;
}
static AX_BODY(last_needs_nothing) {
  ax_value a = ax_exp(in[0]);
  out[1] = ax_sin(in[1]);
  out[0] = ax_sqrt(a);
  (void)context;
}
static AX_BODY(other_needs_first) {
  ax_value a = ax_exp(in[0]);
  out[1] = ax_sin(a);
  out[0] = ax_mul(a, out[1]);
  (void)context;
}

typedef struct between {
  ax_program *program;
  ax_plan *plan;
  ax_arena tables;
  ax_rows_between b;
  bool gone[ops];
} between;

/* exp, then sin, then what is made of them: the first is a member, sin is not. */
static void begin(between *t, ax_function body, bool movable) {
  const ax_type in[] = {TEST_TYPE(AX_F32, 8, 8), TEST_TYPE(AX_F32, 8, 8)};
  *t = (between){.program = test_trace(body, NULL, in, 2, 2)};
  TEST_OK(ax_plan_create(t->program, NULL, NULL, NULL, &t->plan));
  ax_block *block = &t->plan->block;
  assert_int_equal(block->count, ops);
  for (uint32_t i = 0; i < ops; i++) assert_int_equal(block->ops[i].kind, AX_OP_KERNEL);
  if (body == last_needs_other) { /* sin comes first there */
    const ax_op sine = block->ops[0];
    block->ops[0] = block->ops[1];
    block->ops[1] = sine;
  }
  TEST_OK(ax_rows_between_init(&t->b, t->plan, &t->tables, t->plan->buffer_count));
  ax_rows_between_clear(&t->b);
  ax_rows_note_member(&t->b, &block->ops[first]);
  ax_rows_note_other(&t->b, &block->ops[other], other, movable);
  assert_int_equal(ax_rows_others(&t->b), 1);
}

static void end(between *t) {
  ax_rows_between_deinit(&t->b);
  ax_arena_deinit(&t->tables);
  ax_plan_destroy(t->plan);
  ax_program_release(t->program);
}

static void what_is_needed_moves(void **state) {
  (void)state;
  between t;
  uint32_t places[] = {first, last};
  begin(&t, last_needs_other, true);
  const ax_bound sine = t.plan->block.ops[other].kernel;
  assert_true(ax_rows_moves_up(&t.b, &t.plan->block.ops[last]));
  assert_int_equal(ax_rows_move_before(&t.b, &t.plan->block, t.gone, places, 2), 1);
  assert_ptr_equal(t.plan->block.ops[first].kernel.kernel, sine.kernel);
  assert_int_equal(places[0], other); /* the group is behind it */
  assert_int_equal(places[1], last);
  end(&t);
}

static void what_is_not_needed_stays(void **state) {
  (void)state;
  between t;
  uint32_t places[] = {first, last};
  begin(&t, last_needs_nothing, true);
  assert_true(ax_rows_moves_up(&t.b, &t.plan->block.ops[last]));
  assert_int_equal(ax_rows_move_before(&t.b, &t.plan->block, t.gone, places, 2), 0);
  assert_int_equal(places[0], first);
  end(&t);
}

/* What needs a member cannot move before it, nor what must not wait for a device earlier; then no member moves over it. */
static void what_cannot_move_is_in_the_way(void **state) {
  (void)state;
  between t;
  begin(&t, other_needs_first, true);
  assert_false(ax_rows_moves_up(&t.b, &t.plan->block.ops[last]));
  end(&t);
  begin(&t, last_needs_other, false);
  assert_false(ax_rows_moves_up(&t.b, &t.plan->block.ops[last]));
  end(&t);
}

static void far_factors_are_the_larger(void **state) {
  (void)state;
  assert_true(ax_rows_far_factors() >= AX_ROWS_NEAR_FACTORS);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_needed_moves),
                                     cmocka_unit_test(what_is_not_needed_stays),
                                     cmocka_unit_test(what_cannot_move_is_in_the_way),
                                     cmocka_unit_test(far_factors_are_the_larger)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
